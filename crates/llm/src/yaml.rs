//! YAML text into values: the one place in this crate that knows the YAML crate.
//!
//! For files that come with the product or that a test or demo hands in; the user's own settings are read, with
//! places, by the binary.

use serde::de::DeserializeOwned;

/// Reads one document.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())
}
