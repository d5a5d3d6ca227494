//! Runs the real binary in a home and a project of its own.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use max_team_journal::{Journal, Options};
use max_team_runtime::compare_rows;
use max_team_testkit::ModelServer;
use serde_json::Value;
use tempfile::TempDir;

/// A home, a project and a way to start the program in them.
pub(crate) struct Program {
    folder: TempDir,
    environment: Vec<(String, String)>,
    /// Talking goes to one agent with hands, not to a lead with a team.
    solo: bool,
}

/// Whatever a test was about, every row that it leaves follows from its log.
impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // One that cannot be read is what its test was about.
        let compared =
            Journal::open_existing(self.home(), Options::default()).and_then(|journal| compare_rows(&journal));
        if let Ok(rows) = compared {
            assert!(rows.is_empty(), "rows that do not follow from the log: {rows:?}");
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Program {
    /// Without a model.
    pub(crate) fn alone() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        Self { folder, environment: Vec::new(), solo: true }
    }

    /// With the scripted model as Anthropic's.
    pub(crate) fn with(server: &ModelServer) -> Self {
        Self::alone()
            .variable("ANTHROPIC_BASE_URL", server.url())
            .variable("ANTHROPIC_API_KEY", "sk-test-0123456789abcdef")
    }

    /// The same with the lead and the team that come with the program.
    pub(crate) fn team(server: &ModelServer) -> Self {
        let mut program = Self::with(server);
        program.solo = false;
        program
    }

    pub(crate) fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project().join(name)).unwrap()
    }

    pub(crate) fn binary() -> &'static Path {
        Path::new(env!("CARGO_BIN_EXE_max-team"))
    }

    /// The command, before it is started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.prefixed(&[], arguments)
    }

    /// The same for the lead and the team that come with the program.
    pub(crate) fn team_command(&self, arguments: &[&str]) -> Command {
        self.started(&[], arguments, false)
    }

    /// The same under another program (`strace …`).
    pub(crate) fn prefixed(&self, prefix: &[&str], arguments: &[&str]) -> Command {
        self.started(prefix, arguments, self.solo)
    }

    fn started(&self, prefix: &[&str], arguments: &[&str], solo: bool) -> Command {
        let binary = Self::binary().to_str().unwrap();
        let whom = ["--version", "--help", "--solo", "--agent", "--agents"];
        let talks = arguments.iter().all(|word| !whom.contains(word))
            && arguments.first().is_none_or(|first| first.starts_with('-') || first.contains(' '));
        let solo = (solo && talks).then_some("--solo");
        let mut words = prefix.iter().copied().chain([binary]).chain(solo).chain(arguments.iter().copied());
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("MAX_TEAM_HOME", self.home())
            .env("TZ", "UTC")
            .envs(std::env::var_os(max_team_sandbox::ENGINE).map(|engine| (max_team_sandbox::ENGINE, engine)))
            .envs(self.environment.iter().cloned())
            .current_dir(self.project())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command(arguments).spawn().unwrap())
    }

    /// A command whose messages and answers come in one stream, in their order.
    pub(crate) fn merged(&self, arguments: &[&str]) -> Command {
        self.prefixed(&["sh", "-c", "exec \"$0\" \"$@\" 2>&1"], arguments)
    }

    pub(crate) fn pipe(&self, arguments: &[&str], input: &[u8]) -> Ran {
        pipe(self.command(arguments), input)
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// Every entry of the journal, as `audit export` prints it.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let ran = self.run(&["audit", "export"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.lines()
    }

    /// The names of the events of the agent's stream.
    pub(crate) fn events(&self) -> Vec<String> {
        let entries = self.journal();
        let of_agent = entries.iter().filter(|entry| entry["stream"].as_str().unwrap().starts_with("agent/"));
        of_agent.map(|entry| entry["event"].as_str().unwrap().to_owned()).collect()
    }
}

/// Runs a command that is given something to read.
pub(crate) fn pipe(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The program may stop reading early; that is its right.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let ran = finish(child);
    writer.join().unwrap();
    ran
}

pub(crate) fn finish(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Whether something comes true before long.
pub(crate) fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        if what() {
            return true;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    false
}

/// Kills of one sweep, spread over all that there could be. `scripts/crash.sh` sets `KILL_EVERY` and makes each of them.
const KILLS_SAMPLED: usize = 6;

/// The numbers of the system calls of these kinds at which a command is to be killed, from those that an undisturbed run
/// makes. `start` gets the words to put before the command.
pub(crate) fn kill_points(calls: &str, start: impl FnOnce(&[&str]) -> Command) -> Vec<usize> {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let (path, traced) = (trace.path().to_str().unwrap(), format!("trace={calls}"));
    let ran = finish(start(&["strace", "-f", "-o", path, "-e", &traced]).spawn().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    // `when=` counts for each thread by itself.
    let mut made: HashMap<String, usize> = HashMap::new();
    let lines = std::fs::read_to_string(path).unwrap();
    for line in lines.lines().filter(|line| line.contains('(') && !line.contains(" resumed>")) {
        *made.entry(line.split_whitespace().next().unwrap().to_owned()).or_default() += 1;
    }
    let most = made.into_values().max().unwrap_or_default();
    assert!(most > 1, "strace saw none of {calls}");
    if std::env::var_os("KILL_EVERY").is_some() {
        return (1..=most).collect();
    }
    let last = KILLS_SAMPLED - 1;
    let mut points: Vec<usize> = (0..=last).map(|at| 1 + at * (most - 1) / last).collect();
    points.dedup();
    points
}

/// The words before a command that has it killed at one such call.
pub(crate) fn killed_at(calls: &str, n: usize) -> [String; 8] {
    let (traced, inject) = (format!("trace={calls}"), format!("inject={calls}:signal=SIGKILL:when={n}"));
    ["strace", "-f", "-o", "/dev/null", "-e", &traced, "-e", &inject].map(str::to_owned)
}

/// `kill -9`.
pub(crate) fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Sends a signal that the program may handle.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}
