//! The servers of a running process as other commands see them: a file for each server that the process has started.
//!
//! A file names its process. Files that a killed process left are removed by the next process that writes one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

use max_team_core::hash::Hash;
use serde::{Deserialize, Serialize};

use crate::known_tools::replace_file;
use crate::server::ServerStatus;

/// A server that a process has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    pub pid: u32,
    pub name: String,
    pub status: ServerStatus,
    /// How many tools agents have of it.
    pub tools: usize,
}

fn folder(home: &Path) -> PathBuf {
    home.join("mcp").join("running")
}

fn file(home: &Path, pid: u32, config: &Hash) -> PathBuf {
    folder(home).join(format!("{pid}-{config}.json"))
}

/// The servers that a living process has started, by name.
pub fn running_servers(home: &Path, pid: u32) -> Vec<RunningServer> {
    let files = fs::read_dir(folder(home)).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read(file.path()).ok());
    let mut servers: Vec<RunningServer> = texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect();
    servers.retain(|server| server.pid == pid);
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    servers
}

/// Shows a server of this process to other commands. A file that cannot be written is only not seen.
pub(crate) fn show(home: &Path, config: &Hash, server: &RunningServer) {
    static SWEEP: Once = Once::new();
    SWEEP.call_once(|| sweep(home));
    replace_file(&file(home, server.pid, config), &serde_json::to_vec(server).unwrap_or_default());
}

pub(crate) fn hide(home: &Path, config: &Hash) {
    let _ = fs::remove_file(file(home, std::process::id(), config));
}

/// Removes the files of processes that have ended.
fn sweep(home: &Path) {
    for file in fs::read_dir(folder(home)).into_iter().flatten().flatten() {
        let name = file.file_name();
        let pid = name.to_str().and_then(|name| name.split_once('-')).map(|(pid, _)| pid);
        if pid.is_none_or(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::McpError;

    #[test]
    fn servers_of_living_processes_are_seen() {
        let home = tempfile::tempdir().unwrap();
        let (config, pid) = (Hash::of("a"), std::process::id());
        let status = ServerStatus::Failed(McpError::Connect("no such program".into()));
        let server = RunningServer { pid, name: "s".into(), status, tools: 0 };
        // No process has a number that large.
        let ended = RunningServer { pid: u32::MAX, ..server.clone() };
        show(home.path(), &config, &server);
        show(home.path(), &config, &ended);
        assert_eq!(running_servers(home.path(), pid), [server]);
        assert_eq!(running_servers(home.path(), u32::MAX).len(), 1);
        sweep(home.path());
        assert_eq!((running_servers(home.path(), pid).len(), running_servers(home.path(), u32::MAX).len()), (1, 0));
        hide(home.path(), &config);
        assert_eq!(running_servers(home.path(), pid), []);
    }
}
