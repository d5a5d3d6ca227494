//! Why a server last failed, kept beside its tools until it works again: other commands can name the reason without starting it.

use std::fs;
use std::path::{Path, PathBuf};

use max_team_core::hash::Hash;

use crate::connection::McpError;
use crate::known_tools::replace_file;

fn file(home: &Path, config: &Hash) -> PathBuf {
    home.join("mcp").join("tools").join(format!("{config}.error.json"))
}

/// Why the server with this configuration failed when it was last used; `None` if it worked.
pub fn last_error(home: &Path, config: &Hash) -> Option<McpError> {
    serde_json::from_slice(&fs::read(file(home, config)).ok()?).ok()
}

/// Remembers a failure. One that cannot be written is only not shown later.
pub(crate) fn keep(home: &Path, config: &Hash, error: &McpError) {
    replace_file(&file(home, config), &serde_json::to_vec(error).unwrap_or_default());
}

/// Forgets the failure of a server that works again.
pub(crate) fn forget(home: &Path, config: &Hash) {
    let _ = fs::remove_file(file(home, config));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::server_end::ServerEnd;

    #[test]
    fn a_failure_is_found_by_the_configuration_until_it_is_forgotten() {
        let (home, config) = (tempfile::tempdir().unwrap(), Hash::of("a"));
        let ended = ServerEnd::Exited { code: 3, wrote: Some("no config".into()) };
        for error in [McpError::Gone(ended), McpError::Timeout(Duration::from_millis(300)), McpError::Changed] {
            keep(home.path(), &config, &error);
            assert_eq!(last_error(home.path(), &config), Some(error));
        }
        assert_eq!(last_error(home.path(), &Hash::of("b")), None);
        forget(home.path(), &config);
        assert_eq!(last_error(home.path(), &config), None);
    }
}
