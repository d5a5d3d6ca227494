//! A home, a project and a scripted model for one story of the real program, and what is left of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

/// The words that begin it.
const BEGIN: &str = "Do it.";
/// What else is always said: why it failed is then one line of its output.
const HOW: [&str; 8] = [
    "--approve",
    "never",
    "--permission-mode",
    "acceptEdits",
    "--allowed-tools",
    "Bash(tee:*)",
    "--output-format",
    "json",
];

/// One run of the story, in a folder of its own.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: ModelServer,
    bin: PathBuf,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// None: it was killed.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// What is left when everything is over.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    files: BTreeMap<String, String>,
    plans: Vec<Value>,
    envelopes: BTreeMap<String, usize>,
    words: BTreeSet<String>,
}

impl Place {
    pub(crate) fn new(bin: &Path, pays: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        // The log says whose answer it has.
        let script = Script::new().when(move |request| Some(reply(request, pays).request_id(name(request))));
        Self { folder, server: ModelServer::start(script), bin: bin.to_path_buf() }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The program under another one (`strace …`).
    pub(crate) fn under(&self, prefix: &[&str], words: &[&str]) -> Command {
        let bin = self.bin.display().to_string();
        let mut all = prefix.iter().copied().chain([bin.as_str()]).chain(words.iter().copied());
        let mut command = Command::new(all.next().unwrap());
        command
            .args(all)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("MAX_TEAM_HOME", self.home())
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .env("ANTHROPIC_API_KEY", "sk-test-0123456789abcdef")
            .current_dir(self.folder.path().join("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What is started: the story from its beginning, or whatever of it is left.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        let begun = self.entries().iter().any(|entry| entry["event"] == "said");
        if begun { go_on() } else { ["-p", BEGIN].iter().chain(&HOW).copied().collect() }
    }

    pub(crate) fn start(&self, prefix: &[&str]) -> Child {
        self.under(prefix, &self.words()).spawn().unwrap()
    }

    pub(crate) fn run(&self, prefix: &[&str]) -> Ran {
        finish(self.start(prefix))
    }

    pub(crate) fn entries(&self) -> Vec<Value> {
        let ran = finish(self.under(&[], &["audit", "export"]).spawn().unwrap());
        ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn verify(&self) -> Ran {
        finish(self.under(&[], &["audit", "verify"]).spawn().unwrap())
    }

    /// Starts it until it has come to its end, and judges that.
    pub(crate) fn end(&self, calm: Option<&Outcome>, kills: usize) -> Result<Outcome, String> {
        let ran = self.run(&[]);
        if ran.code != Some(0) {
            return Err(format!("it does not go on: {ran:?}"));
        }
        self.judge(calm, Some(kills))
    }

    /// What must hold at the end, after so many kills. None: the log itself was harmed, and cannot tell what was paid.
    pub(crate) fn judge(&self, calm: Option<&Outcome>, kills: Option<usize>) -> Result<Outcome, String> {
        let verified = self.verify();
        if verified.code != Some(0) {
            return Err(format!("the journal does not hold: {verified:?}"));
        }
        let entries = self.entries();
        if let Some(kills) = kills {
            self.paid_once(&entries, kills)?;
        }
        self.effects(&entries)?;
        if !self.server.problems().is_empty() {
            return Err(format!("the model was asked something odd: {:?}", self.server.problems()));
        }
        let mut outcome = self.outcome(&entries);
        match calm {
            Some(calm) => {
                // An effect that nobody can tell about has been judged already.
                let paid = calm.files.get("paid.txt").cloned();
                outcome.files.remove("paid.txt");
                outcome.files.extend(paid.map(|paid| ("paid.txt".to_owned(), paid)));
                if outcome == *calm {
                    Ok(outcome)
                } else {
                    Err(format!("another end: {outcome:?}\nundisturbed: {calm:?}"))
                }
            }
            None => Ok(outcome),
        }
    }

    /// Each answer is there once and every request was announced. What an answer is there for was not asked again; what
    /// none is there for was on its way at a kill, one per agent and kill.
    fn paid_once(&self, entries: &[Value], kills: usize) -> Result<(), String> {
        let of = |event: &str| entries.iter().filter(|entry| entry["event"] == event).cloned().collect::<Vec<_>>();
        let intents = of("llm_intent").len();
        let (mut done, mut answered) = (BTreeSet::new(), BTreeSet::new());
        for entry in of("llm_ended") {
            let ended = &entry["payload"]["llm_ended"];
            let Some(answer) = ended["outcome"].get("done") else { continue };
            if !done.insert((entry["stream"].to_string(), ended["call"].to_string())) {
                return Err(format!("an answer is there twice: {entry}"));
            }
            if !answered.insert(answer["request_id"].as_str().unwrap_or_default().to_owned()) {
                return Err(format!("an answer is there for two calls: {entry}"));
            }
        }
        let requests = self.server.requests();
        if requests.len() > intents {
            return Err(format!("{} requests, and only {intents} announced", requests.len()));
        }
        if let Some(odd) = answered.iter().find(|id| !requests.iter().any(|request| name(request) == **id)) {
            return Err(format!("an answer that nobody gave: `{odd}`"));
        }
        let (mut paid, mut lost) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
        for request in &requests {
            // The whole history, which grows with each answer; instructions may tell the time.
            let history = request.body["messages"].to_string();
            let agent = request.user_texts().into_iter().next().unwrap_or_default();
            if paid.contains(&history) {
                return Err(format!("asked again, and its answer was there: {history}"));
            }
            if answered.contains(&name(request)) {
                paid.insert(history);
                continue;
            }
            let times = lost.entry(agent).or_default();
            *times += 1;
            if *times > kills {
                return Err(format!("{times} requests without an answer after {kills} kills: {history}"));
            }
        }
        Ok(())
    }

    /// What cannot be looked at afterwards has happened once at most; if it has not, that it is unknown was said.
    fn effects(&self, entries: &[Value]) -> Result<(), String> {
        let paid = std::fs::read_to_string(self.folder.path().join("project/paid.txt")).unwrap_or_default();
        let unknown = entries.iter().any(|entry| entry["payload"]["tool_done"]["ending"] == "unknown");
        let wanted = entries.iter().any(|entry| entry["payload"]["tool_intent"]["tool"] == "run_shell");
        match paid.lines().count() {
            0 if wanted && !unknown => Err("an effect is said to have happened and has not".into()),
            0 | 1 => Ok(()),
            times => Err(format!("an effect happened {times} times")),
        }
    }

    fn outcome(&self, entries: &[Value]) -> Outcome {
        let mut files = BTreeMap::new();
        for folder in ["project", "project/out"] {
            for file in std::fs::read_dir(self.folder.path().join(folder)).into_iter().flatten().flatten() {
                if file.path().is_file() {
                    let text = std::fs::read_to_string(file.path()).unwrap_or_default();
                    files.insert(file.file_name().to_string_lossy().into_owned(), text);
                }
            }
        }
        let payload = |name: &str| {
            entries.iter().map(|entry| entry["payload"][name].clone()).filter(|v| !v.is_null()).collect::<Vec<_>>()
        };
        let plans = payload("plan_ended").into_iter().map(|ended| {
            let tally = &ended["tally"];
            json!([ended["end"], tally["ran"], tally["done"], tally["verified"], tally["failed"]])
        });
        let mut envelopes = BTreeMap::new();
        for envelope in payload("mailed").into_iter().filter(|envelope| envelope["kind"] == "text") {
            *envelopes.entry(envelope["body"]["text"].to_string()).or_default() += 1;
        }
        let words = payload("replied").into_iter().map(|replied| replied["text"].to_string());
        Outcome { files, plans: plans.collect(), envelopes, words: words.collect() }
    }
}

/// What the model's server calls a request.
fn name(request: &Recorded) -> String {
    format!("req_{}", request.n)
}

/// What is started for whatever is left of the story.
pub(crate) fn go_on() -> Vec<&'static str> {
    ["-c", "-p", ""].iter().chain(&HOW).copied().collect()
}

pub(crate) fn finish(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Answers by how far the conversation is, so that a call that is made again gets the same answer.
fn reply(request: &Recorded, pays: bool) -> Reply {
    let (done, first) = (request.tool_results(), request.user_texts().into_iter().next().unwrap_or_default());
    let call = |tool: &str, input: Value| Reply::new().tool(format!("toolu_{tool}{done}"), tool, input);
    let write = |name: &str| call("write_file", json!({ "path": format!("out/{name}.txt"), "content": name }));
    let spawn = |reply: Reply, name: &str| {
        let input = json!({ "name": name, "role": "mate", "prompt": "Work." });
        reply.tool(format!("toolu_{name}"), "spawn_teammate", input)
    };
    let has = |words: &str| first.contains(words);
    match done {
        0 if has("# Your task: Do alpha") => write("alpha"),
        0 if has("# Your task: Do beta") => write("beta"),
        1 if has("# Your task: Do beta") && pays => {
            call("run_shell", json!({ "command": "echo paid | tee -a paid.txt" }))
        }
        0 if has("# Your task: Do join") => call("read_file", json!({ "path": "out/alpha.txt" })),
        0 if has("You are `ann`") => call("send_message", json!({ "to": "ben", "message": "the word is tide" })),
        _ if has("# Your task") || has("You are `ann`") => Reply::text("It is done."),
        _ if has("You are `ben`") => Reply::text("Noted by ben."),
        0 => ["ann", "ben"].into_iter().fold(Reply::new(), spawn),
        2 => {
            let task = |id: &str, agent: &str, more: Value| {
                let mut task = json!({ "id": id, "agent": agent, "description": format!("Do {id}.") });
                if let (Some(task), Some(more)) = (task.as_object_mut(), more.as_object()) {
                    task.extend(more.clone());
                }
                task
            };
            let tasks = [
                task("alpha", "leo", json!({ "owns": ["out/alpha.txt"], "outputs": ["out/alpha.txt"] })),
                task("beta", "leo", json!({ "owns": ["out/beta.txt", "paid.txt"], "outputs": ["out/beta.txt"] })),
                task("join", "ada", json!({ "depends_on": ["alpha", "beta"] })),
            ];
            call("submit_plan", json!({ "goal": "g", "tasks": tasks }))
        }
        _ => Reply::text("Noted."),
    }
}
