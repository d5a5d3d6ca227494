//! What comes in besides the command line: piped text, and schemas from files.
//!
//! Bounded and checked: too much, or what is not text, is an error that says what to do instead.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use max_team_core::limits::STDIN_BYTES_MAX;
use rustix::fs::FileType;
use serde_json::Value;

use crate::headless::talk;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::input_file;

/// How long an open pipe may stay silent when there is a prompt anyway.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Whether input is piped in: from a pipe, socket or file, not from a terminal or `/dev/null`.
pub(crate) fn is_piped() -> bool {
    let kind = rustix::fs::fstat(std::io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile | FileType::Socket))
}

/// Whether piped text begins with a no: the answer to the first question of a demo.
pub(crate) fn says_no() -> Result<bool, CliError> {
    if !is_piped() {
        return Ok(false);
    }
    let piped = piped(true)?.to_lowercase();
    Ok(matches!(piped.split_whitespace().next(), Some("n" | "no" | "否")))
}

/// The prompt with piped text added. Without either there is nothing to do, unless a session is continued.
pub(crate) fn prompt(given: &str, continues: bool) -> Result<String, CliError> {
    let piped = piped(!given.is_empty() || continues)?;
    let piped = piped.trim_end();
    match (given.is_empty(), piped.is_empty()) {
        (true, true) if continues => Ok(String::new()),
        (true, true) => Err(CliError::said(Exit::Usage, |lang| lang.no_prompt().to_owned())),
        (true, false) => Ok(piped.to_owned()),
        (false, true) => Ok(given.to_owned()),
        (false, false) => Ok(format!("{given}\n\n<stdin>\n{piped}\n</stdin>")),
    }
}

/// Everything on standard input, if it is not a terminal.
fn piped(optional: bool) -> Result<String, CliError> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Ok(String::new());
    }
    let (sender, receiver) = mpsc::channel();
    // Its own thread, because a read from an open pipe has no deadline.
    std::thread::spawn(move || {
        let mut first = [0; 1];
        let read = input.lock().read(&mut first);
        let begun = matches!(read, Ok(1));
        // If the receiver is gone, the program has gone on without the input.
        drop(sender.send(Ok(None)));
        let mut bytes = if begun { first.to_vec() } else { Vec::new() };
        let rest = match read {
            Ok(0) => Ok(0),
            Ok(_) => input.lock().take(STDIN_BYTES_MAX as u64 + 1).read_to_end(&mut bytes),
            Err(error) => Err(error),
        };
        drop(sender.send(rest.map(|_| Some(bytes))));
    });
    if optional && matches!(receiver.recv_timeout(SILENCE_MAX), Err(mpsc::RecvTimeoutError::Timeout)) {
        talk("nothing came on standard input for 3 s; going on without it");
        return Ok(String::new());
    }
    let bytes = loop {
        match receiver.recv() {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(bytes))) => break bytes,
            Ok(Err(error)) => {
                return Err(CliError::said(Exit::Failed, |lang| lang.stdin_unreadable(lang.io_fault(&error))));
            }
            Err(_) => break Vec::new(),
        }
    };
    if bytes.len() > STDIN_BYTES_MAX {
        let words = format!(
            "standard input has more than {} MB; put it into a file and name the file in the prompt",
            STDIN_BYTES_MAX >> 20
        );
        return Err(CliError::new(Exit::Usage, words));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let words =
            format!("standard input is not UTF-8 (byte {at}); convert it first, for example with `iconv -t utf-8`");
        CliError::new(Exit::Usage, words)
    })
}

/// A JSON Schema given as text, or as `@FILE`.
pub(crate) fn schema(given: &str, cwd: &Path) -> Result<Value, CliError> {
    let bad =
        |words: &dyn Fn(Lang) -> String| CliError::said(Exit::Usage, |lang| lang.headed("--json-schema", words(lang)));
    let text = match given.strip_prefix('@') {
        Some(path) => input_file::text(&cwd.join(path), input_file::JSON_BYTES_MAX)
            .map_err(|why| bad(&|lang| lang.unreadable(path, lang.input_fault(&why))))?,
        None => given.to_owned(),
    };
    let schema: Value =
        serde_json::from_str(&text).map_err(|error| bad(&|lang| lang.not_json(lang.json_fault(&error))))?;
    if schema.is_object() { Ok(schema) } else { Err(bad(&|lang| lang.schema_is_object().to_owned())) }
}
