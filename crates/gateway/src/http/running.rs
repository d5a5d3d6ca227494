//! The web servers that run, so that other commands of the user find them.
//!
//! A server writes a file into the user's folder and holds a lock on it. The system lets go of the lock when the process ends, also
//! when it is killed, so a file without a lock belongs to no server and is removed by the next look.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use max_team_runtime::new_id;
use serde::{Deserialize, Serialize};

/// The files of running servers, beneath the user's folder.
const FOLDER: &str = "serve/running";

/// A web server that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    /// The folder that it serves.
    pub folder: String,
    /// The address for browsers.
    pub url: String,
    pub port: u16,
    /// The recorded demo that it plays, if it plays one.
    pub demo: Option<String>,
    /// The folder that holds its tokens: a demo has one of its own.
    pub home: PathBuf,
}

/// The entry of a server: as long as it exists, the server is found.
#[derive(Debug)]
pub struct ServerEntry {
    path: PathBuf,
    _lock: File,
}

impl Drop for ServerEntry {
    fn drop(&mut self) {
        // A file that stays has no lock, and the next look removes it.
        drop(std::fs::remove_file(&self.path));
    }
}

impl RunningServer {
    /// Tells other processes of this server.
    pub fn enter(&self, home: &Path) -> io::Result<ServerEntry> {
        let folder = home.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(format!("{}.json", new_id().simple()));
        let new = path.with_extension("new");
        let mut lock = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
        // Locked before it has its name: a file without a lock is removed.
        lock.lock()?;
        lock.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(new, &path)?;
        Ok(ServerEntry { path, _lock: lock })
    }

    /// All servers that run, in the order in which they were started.
    pub fn list(home: &Path) -> io::Result<Vec<Self>> {
        let entries = match std::fs::read_dir(home.join(FOLDER)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
        paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
        paths.sort();
        let mut servers = Vec::new();
        for path in paths {
            // One that ended meanwhile has taken its file away.
            let Ok(file) = File::open(&path) else { continue };
            if file.try_lock_shared().is_ok() {
                drop(std::fs::remove_file(&path));
            } else if let Some(server) = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
                servers.push(server);
            }
        }
        Ok(servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_listed_while_it_runs() {
        let home = tempfile::tempdir().unwrap();
        let list = || RunningServer::list(home.path()).unwrap();
        assert_eq!(list(), []);
        let server = |port| RunningServer {
            folder: format!("/p{port}"),
            url: format!("http://127.0.0.1:{port}"),
            port,
            demo: None,
            home: home.path().to_owned(),
        };
        let entries = [1, 2].map(|port| server(port).enter(home.path()).unwrap());
        assert_eq!(list(), [server(1), server(2)]);
        // A killed process leaves its file, and the system takes the lock away.
        let [killed, _other] = entries;
        let (path, text) = (killed.path.clone(), std::fs::read(&killed.path).unwrap());
        drop(killed);
        std::fs::write(&path, text).unwrap();
        assert_eq!(list(), [server(2)]);
        assert!(!path.exists(), "removed by the look");
    }
}
