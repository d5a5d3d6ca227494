//! Secrets that this program makes: tokens and login codes.

use std::io::Read as _;

/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// A new secret, as hexadecimal digits.
pub(crate) fn new_secret() -> Result<String, std::io::Error> {
    let mut bytes = [0_u8; SECRET_BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that does not tell how many bytes are right.
pub(crate) fn is_equal(given: &[u8], token: &[u8]) -> bool {
    let differences = given.iter().zip(token).fold(0, |differences, (one, other)| differences | (one ^ other));
    given.len() == token.len() && differences == 0
}
