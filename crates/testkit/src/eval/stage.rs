//! Where a job is played: a home and a project in a folder of its own, and the real program in them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::score::ModelReply;
use crate::gate::Gate;

/// The system's own programs: wrappers in a home folder (of version managers) cannot run in the sandbox.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How long one run of the program may take. It is only ever spent on a failure.
const RUN_MAX: Duration = Duration::from_secs(60);
/// How long a job may take to come to a gate. It is only ever spent on a failure.
const GATE_MAX: Duration = Duration::from_secs(20);
/// How long the last lines of a run are waited for: a command that it left behind may keep them open.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How a run of the program ended.
#[derive(Debug, Default)]
pub(super) struct ProgramOutput {
    pub(super) code: i32,
    pub(super) answer: String,
    pub(super) errors: String,
}

#[derive(Debug)]
pub(super) struct Stage {
    program: PathBuf,
    folder: PathBuf,
    url: String,
    pub(super) gates: BTreeMap<&'static str, Gate>,
    pub(super) runs: Vec<ProgramOutput>,
}

impl Stage {
    pub(super) fn new(program: &Path, folder: &Path, url: String, gates: BTreeMap<&'static str, Gate>) -> Stage {
        let stage = Stage { program: program.to_owned(), folder: folder.to_owned(), url, gates, runs: Vec::new() };
        std::fs::create_dir_all(stage.project()).expect("make the project's folder");
        stage
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
        std::fs::write(path, text).expect("write a file");
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project().join(name)).unwrap_or_default()
    }

    /// A program of the machine in the project; whether it went well.
    pub(super) fn shell(&self, words: &[&str]) -> bool {
        let (program, arguments) = words.split_first().expect("a program");
        let ran = self.clean(Command::new(program)).args(arguments).output();
        ran.is_ok_and(|output| output.status.success())
    }

    /// A prompt, to the end.
    pub(super) fn ask(&mut self, words: &[&str]) {
        let run = self.start(words, &[]);
        self.finish(run);
    }

    /// Starts a run with lines for its standard input, which stays open.
    pub(super) fn start(&self, words: &[&str], lines: &[String]) -> Run {
        let mut command = self.clean(Command::new(&self.program));
        command.args(words).args(["--output-format", "stream-json", "--approve", "never"]);
        command.args(["--permission-mode", "acceptEdits"]).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start the program");
        let (sender, lines_of_both) = channel();
        let sources: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("its standard output")),
            Box::new(child.stderr.take().expect("its standard error")),
        ];
        for (source, sender) in sources.into_iter().zip([sender.clone(), sender]) {
            std::thread::spawn(move || {
                for line in BufReader::new(source).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        let mut run = Run { child, lines: lines_of_both, heard: Vec::new(), until: Instant::now() + RUN_MAX };
        lines.iter().for_each(|line| run.say(line));
        if lines.is_empty() {
            run.child.stdin.take();
        }
        run
    }

    /// Input tokens, as the program counts them.
    pub(super) fn usage(&self) -> u64 {
        let ran = self.clean(Command::new(&self.program)).args(["cost", "--json"]).output().expect("ask for the cost");
        let cost: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        let count = |name: &str| cost.pointer(&format!("/total/{name}")).and_then(Value::as_u64).unwrap_or(0);
        count("input_tokens") + count("cached_tokens")
    }

    /// Waits for the end of a run and keeps how it ended.
    pub(super) fn finish(&mut self, mut run: Run) {
        run.child.stdin.take();
        let status = loop {
            match run.child.try_wait().expect("wait for the program") {
                Some(status) => break status,
                None if Instant::now() > run.until => run.kill(),
                None => {
                    run.listen(LOOK);
                }
            }
        };
        let until = Instant::now() + DRAIN_MAX;
        while Instant::now() < until && run.listen(LOOK) {}
        let (events, errors): (Vec<String>, Vec<String>) =
            run.heard.into_iter().partition(|line| line.starts_with('{'));
        let mut lines = events.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let result = lines.rfind(|line| line.get("type").is_some_and(|kind| kind == "result"));
        let answer = result.as_ref().and_then(|result| result.get("result")?.as_str()).unwrap_or_default();
        let code = status.code().unwrap_or(-1);
        self.runs.push(ProgramOutput { code, answer: answer.to_owned(), errors: errors.join("\n") });
    }

    /// Blocks until a reply waits at a gate, or the run is over; whether it waits.
    pub(super) fn reaches(&self, gate: &str, run: &mut Run) -> bool {
        run.sees(GATE_MAX, || self.gate(gate).is_reached())
    }

    /// Blocks until the policy has opened a gate, or does not come to it.
    pub(super) fn opened(&self, gate: &str, run: &mut Run) -> bool {
        run.sees(GATE_MAX, || self.gate(gate).is_open())
    }

    fn gate(&self, gate: &str) -> &Gate {
        self.gates.get(gate).expect("a gate of this job")
    }

    pub(super) fn open(&self, gate: &str) {
        self.gate(gate).open();
    }

    /// Leaves what the models saw and did, and how each run ended, beside the project.
    pub(super) fn keep_trace(&self, made: &[ModelReply]) {
        let mut text = String::new();
        for made in made {
            let mistake = made.mistake.map(|mistake| format!(", {mistake:?}")).unwrap_or_default();
            text.push_str(&format!("#{} {}{mistake}\n{}\n\n", made.request, made.role, made.trace.join("\n")));
        }
        for run in &self.runs {
            text.push_str(&format!("exit {}: {}\n{}\n\n", run.code, run.answer, run.errors));
        }
        std::fs::write(self.folder.join("trace.txt"), text).expect("write the trace");
    }

    fn clean(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &self.folder)
            .env("MAX_TEAM_HOME", self.folder.join("home"))
            .env("USER", "owner")
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ANTHROPIC_BASE_URL", &self.url)
            .env("ANTHROPIC_API_KEY", "sk-test-0123456789abcdef")
            .current_dir(self.project());
        command
    }
}

/// A run under way.
#[derive(Debug)]
pub(super) struct Run {
    child: Child,
    /// Of standard output (JSON) and standard error.
    lines: Receiver<String>,
    heard: Vec<String>,
    until: Instant,
}

impl Run {
    /// A line for its standard input.
    pub(super) fn say(&mut self, line: &str) {
        if let Some(stdin) = &mut self.child.stdin {
            // A program that has ended reads nothing; its end says so.
            let _ = writeln!(stdin, "{line}");
        }
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    pub(super) fn interrupt(&self) {
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
    }

    /// Blocks until each of these tasks was done or failed once, the run is over, or the time is up.
    pub(super) fn hears_of(&mut self, tasks: &[&str], at_most: Duration) {
        let is_end = |line: &String, task: &str| {
            let ends = ["\"state\":\"done\"", "\"state\":\"failed\""];
            line.contains(&format!("\"task\":\"{task}\"")) && ends.iter().any(|end| line.contains(end))
        };
        let until = Instant::now() + at_most;
        while !tasks.iter().all(|task| self.heard.iter().any(|line| is_end(line, task))) {
            if self.is_over() || Instant::now() > until {
                return;
            }
            self.listen(LOOK);
        }
    }

    /// Blocks until something is so, the run is over, or the time is up; whether it is so.
    fn sees(&mut self, at_most: Duration, what: impl Fn() -> bool) -> bool {
        let until = Instant::now() + at_most;
        while !what() {
            if self.is_over() || Instant::now() > until {
                return false;
            }
            self.listen(LOOK);
        }
        true
    }

    fn is_over(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Takes in the next line; false once there are no more.
    fn listen(&mut self, at_most: Duration) -> bool {
        match self.lines.recv_timeout(at_most) {
            Ok(line) => self.heard.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::park_timeout(at_most);
                return false;
            }
        }
        true
    }
}
