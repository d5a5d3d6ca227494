//! What a server prints on its standard error, and what is wrong with its messages: one bounded file per server.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use max_team_core::limits::MCP_LOG_BYTES_MAX;
use max_team_core::mcp::McpServer;

/// The file that holds a server's own output. Servers of one name in several projects have a file each.
pub fn log_file(home: &Path, server: &McpServer) -> PathBuf {
    let hash = server.hash().to_string();
    home.join("mcp").join("logs").join(format!("{}-{}.log", server.name, hash.get(..8).unwrap_or_default()))
}

/// Writes one server's log. Once the file is full it begins again, so the newest output is there.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    state: Mutex<Option<(File, u64)>>,
}

impl Log {
    pub(crate) fn new(home: &Path, server: &McpServer) -> Self {
        Self { path: log_file(home, server), state: Mutex::default() }
    }

    /// Adds bytes. A log that cannot be written is not worth a failed call.
    pub(crate) fn add(&self, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.as_ref().is_none_or(|(_, size)| *size > MCP_LOG_BYTES_MAX) {
            *state = self.open(state.is_some());
        }
        if let Some((file, size)) = state.as_mut() {
            let kept = bytes.get(bytes.len().saturating_sub(64 << 10)..).unwrap_or(bytes);
            *size += kept.len() as u64;
            let _ = file.write_all(kept);
        }
    }

    pub(crate) fn line(&self, words: &str) {
        self.add(format!("[max-team] {words}\n").as_bytes());
    }

    fn open(&self, is_full: bool) -> Option<(File, u64)> {
        fs::create_dir_all(self.path.parent()?).ok()?;
        let is_full = is_full || fs::metadata(&self.path).is_ok_and(|meta| meta.len() > MCP_LOG_BYTES_MAX);
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .append(!is_full)
            .truncate(is_full)
            // Programs print keys.
            .mode(0o600)
            .open(&self.path);
        let file = file.ok()?;
        let size = file.metadata().map_or(0, |meta| meta.len());
        Some((file, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_bounded_and_keeps_the_newest() {
        let home = tempfile::tempdir().unwrap();
        let server = McpServer { name: "a".into(), ..McpServer::default() };
        let log = Log::new(home.path(), &server);
        let block = [b'x'; 32 << 10];
        (0..80).for_each(|_| log.add(&block));
        log.line("the end");
        let kept = fs::read(log_file(home.path(), &server)).unwrap();
        assert!(kept.len() as u64 <= MCP_LOG_BYTES_MAX + (64 << 10) && kept.ends_with(b"the end\n"));
    }
}
