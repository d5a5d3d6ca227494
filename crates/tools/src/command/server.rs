//! A program that serves tools for as long as this process lives.

use std::path::Path;
use std::time::Duration;

use max_team_sandbox::{Activity, Limits, Spec, StdinPipe, WatchOrder};
use tokio_util::sync::CancellationToken;

use super::isolation::BuiltSandbox;
use super::planted::PlantedFiles;
use super::{CommandError, CommandSandbox, variables};

/// How long a server may run: it ends with this process.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3_600);
/// Variables that a program needs in order to find its libraries, its files and the network. Everything else that it has
/// was given to it by name.
const BASE: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SHELL",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "npm_config_registry",
];

impl CommandSandbox {
    /// What is run to start a server: with the few variables that every program needs, those in `given`, and `stdin`.
    pub fn server(
        &self,
        argv: Vec<String>,
        dir: &Path,
        given: &[(String, String)],
        stdin: StdinPipe,
    ) -> Result<Spec, CommandError> {
        let mut env = variables();
        env.retain(|(name, _)| BASE.contains(&name.as_str()));
        let built = self.build(&mut env, &CancellationToken::new())?;
        env.retain(|(name, _)| given.iter().all(|(own, _)| own != name));
        env.extend(given.iter().cloned());
        let limits = Limits { time: LIFETIME, cpu: LIFETIME, output_bytes: u64::MAX, ..self.limits };
        Ok(Spec {
            argv,
            line: Vec::new(),
            dir: dir.to_owned(),
            env,
            temporary_env: Vec::new(),
            watch: built.as_ref().and_then(|built| self.watch_of_server(built, dir)),
            isolation: built.map(|built| built.isolation),
            limits,
            end_mark: None,
            stdin: Some(stdin),
            proxy: None,
            activity: Activity::default(),
            scratch: None,
            ends_its_children: false,
        })
    }

    /// Watches the folders of the project that a server writes, for as long as it runs. In its own folders no agent works.
    fn watch_of_server(&self, built: &BuiltSandbox, project: &Path) -> Option<WatchOrder> {
        let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        let folders = built.isolation.writable.iter().filter(|folder| folder.starts_with(&project)).cloned().collect();
        let planted = PlantedFiles { folders, lives_on: true, ..built.planted.clone() };
        self.watch(planted).map(|(order, _)| order)
    }
}
