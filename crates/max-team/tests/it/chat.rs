//! The chat in a real terminal (tmux): what a person types and sees.

use std::fs::File;
use std::io::Read;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use max_team_testkit::{Gate, ModelServer, Reply};
use serde_json::json;

use crate::program::Program;

/// A terminal with a chat in it, on a tmux server of its own.
pub(crate) struct Terminal {
    socket: String,
    /// Everything the terminal is sent, as it is sent: waiting is reading.
    output: File,
    seen: String,
}

impl Terminal {
    pub(crate) fn open(program: &Program, arguments: &[&str]) -> Self {
        Self::start(program, arguments, |line| format!("exec {line}"))
    }

    /// The same; the code it ends with is written down for [`Terminal::code`].
    pub(crate) fn watched(program: &Program, arguments: &[&str]) -> Self {
        Self::start(program, arguments, |line| format!("{line}; echo $? > ../code"))
    }

    /// Waits for the end; the code of a program that was watched.
    pub(crate) fn code(&mut self, program: &Program) -> i32 {
        self.wait_end();
        std::fs::read_to_string(program.project().join("../code")).unwrap().trim().parse().unwrap()
    }

    fn start(program: &Program, arguments: &[&str], run: impl Fn(String) -> String) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let socket = format!("max-team-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let fifo = program.home().with_file_name("screen");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let command = program.command(arguments);
        let mut line = String::from("env -i TERM=screen-256color LC_ALL=C.UTF-8");
        for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            line.push_str(&format!(" {}='{}'", name.to_str().unwrap(), value.to_str().unwrap()));
        }
        line.push_str(&format!(" '{}'", Program::binary().display()));
        for argument in command.get_args() {
            line.push_str(&format!(" '{}'", argument.to_str().unwrap()));
        }
        let terminal = |words: &[&str]| {
            let status = Command::new("tmux").args(["-L", &socket, "-f", "/dev/null"]).args(words).status().unwrap();
            assert!(status.success(), "tmux {words:?}");
        };
        // The chat starts once the pipe is in place, so that nothing it says is missed.
        let hold = format!("cd '{}' && read go && {}", program.project().display(), run(line));
        terminal(&["new-session", "-d", "-s", "chat", "-x", "80", "-y", "24", &hold]);
        terminal(&["pipe-pane", "-O", "-t", "chat", &format!("exec cat > '{}'", fifo.display())]);
        let output = File::open(&fifo).unwrap();
        terminal(&["send-keys", "-t", "chat", "Enter"]);
        Self { socket, output, seen: String::new() }
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "chat"], keys].concat());
    }

    /// Reads on until the text has been painted.
    pub(crate) fn wait(&mut self, text: &str) {
        let mut chunk = [0; 4_096];
        while !self.seen.contains(text) {
            let read = self.output.read(&mut chunk).unwrap();
            assert!(read > 0, "`{text}` never came; the screen:\n{}", self.screen());
            self.seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
        self.seen.clear();
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-200", "-t", "chat"])
    }

    /// A question takes no key that was meant for the draft: it listens once nobody has typed for a moment. That
    /// moment is time, so it is waited for as time. A letter key chooses, Enter answers.
    pub(crate) fn answer(&mut self, key: &str) {
        let keys = [key, "Enter"];
        self.choose(if key.len() == 1 { &keys } else { &keys[..1] });
    }

    /// The same with several keys.
    pub(crate) fn choose(&mut self, keys: &[&str]) {
        std::thread::park_timeout(std::time::Duration::from_millis(900));
        self.keys(keys);
    }

    /// Reads until the chat has left.
    pub(crate) fn wait_end(&mut self) {
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
    }

    /// The process that runs in it.
    pub(crate) fn pid(&self) -> String {
        self.tmux(&["display-message", "-p", "-t", "chat", "#{pane_pid}"]).trim().to_owned()
    }

    /// `kill -9` of what runs in it.
    pub(crate) fn kill(&mut self) {
        assert!(Command::new("kill").args(["-9", &self.pid()]).status().unwrap().success());
        self.wait_end();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_question_is_answered_and_the_chat_is_left() {
    let server = ModelServer::start([Reply::text("你好，**Ada**")]);
    let program = Program::with(&server).variable("LANG", "C.UTF-8");
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["你好 hello", "Enter"]);
    terminal.wait("tokens in");
    let screen = terminal.screen();
    assert!(screen.contains("> 你好 hello") && screen.contains("你好，Ada"), "{screen}");
    assert_eq!(server.requests()[0].body["messages"][0]["content"][0]["text"], "你好 hello");
    terminal.keys(&["C-d"]);
    terminal.wait_end();
    assert_eq!(program.events().last().map(String::as_str), Some("turn_ended"));
}

/// More at once than one frame takes.
#[test]
fn a_flood_of_keys_loses_none() {
    let server = ModelServer::start([Reply::text("all there")]);
    let program = Program::with(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    let words: String = (0..300).map(|number| format!("{number:04}中")).collect();
    terminal.keys(&["-l", &words]);
    terminal.wait("0299");
    terminal.keys(&["Enter"]);
    terminal.wait("tokens in");
    assert_eq!(server.requests()[0].body["messages"][0]["content"][0]["text"], words);
}

#[test]
fn an_edit_is_shown_and_done_after_a_yes() {
    let server = ModelServer::start([
        Reply::new().tool("t1", "edit_file", json!({"path": "a.txt", "old": "one", "new": "two"})),
        Reply::new().tool("t2", "write_file", json!({"path": "b.txt", "content": "never"})),
        Reply::text("finished"),
    ]);
    let program = Program::with(&server).file("a.txt", "one\n");
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["change it", "Enter"]);
    terminal.wait("yes once");
    assert_eq!(program.read("a.txt"), "one\n", "nothing happens before the yes");
    let screen = terminal.screen();
    assert!(screen.contains("- one") && screen.contains("+ two"), "{screen}");
    // Words of one's own go along with a yes as with a no.
    terminal.answer("C-a");
    terminal.keys(&["y", "Tab", "mind the tabs", "Enter"]);
    terminal.wait("never");
    terminal.answer("n");
    terminal.wait("finished");
    assert_eq!(program.read("a.txt"), "two\n");
    assert!(server.requests()[1].contains("[The user said yes to `edit_file`. They say: mind the tabs]"));
    assert!(!program.project().join("b.txt").exists());
    assert!(server.requests()[2].contains("The user said no."));
}

#[test]
fn escape_interrupts_and_what_was_queued_is_said() {
    let gate = Gate::new();
    let server =
        ModelServer::start([Reply::text("long long story").chunk(4).gate_after(6, &gate), Reply::text("short")]);
    let program = Program::with(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["tell", "Enter"]);
    gate.wait_reached();
    terminal.wait("long");
    terminal.keys(&["make it short", "Enter"]);
    terminal.wait("make it short");
    terminal.keys(&["Escape"]);
    server.wait_requests(2);
    terminal.wait("tokens in");
    assert!(server.requests()[1].contains("make it short") && server.requests()[1].contains("long"));
    gate.open();
}

#[test]
fn a_killed_chat_goes_on() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::new().tool("t1", "read_file", json!({"path": "a.txt"})),
        Reply::text("lost").gate_before(&gate),
        Reply::text("found again"),
    ]);
    let program = Program::with(&server).file("a.txt", "alpha");
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["look", "Enter"]);
    gate.wait_reached();
    terminal.kill();
    drop(terminal);
    std::fs::remove_file(program.home().with_file_name("screen")).unwrap();
    let mut terminal = Terminal::open(&program, &["-c"]);
    terminal.wait("found again");
    assert_eq!(server.count(), 3, "the first call is not made again");
    assert!(terminal.screen().contains("> look"), "what was said before is shown: {}", terminal.screen());
}

#[test]
fn a_question_survives_a_kill_and_a_headless_run_refuses_it() {
    let server = ModelServer::start([
        Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "x"})),
        Reply::text("so be it"),
    ]);
    let program = Program::with(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["write", "Enter"]);
    terminal.wait("yes once");
    terminal.kill();
    let ran = program.run(&["-c", "-p", ""]);
    assert!(ran.code == 5 && ran.err.contains("waits for your answer"), "{ran:?}");
    assert!(!program.project().join("b.txt").exists());
}

#[test]
fn an_interrupt_at_a_question_lets_the_queue_go_on() {
    let server = ModelServer::start([
        Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "x"})),
        Reply::text("the second answer"),
    ]);
    let program = Program::with(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["write", "Enter"]);
    terminal.wait("yes once");
    // What is typed at a question is a message, not lost, unless it is an answer.
    terminal.answer("then go on");
    terminal.keys(&["Enter"]);
    terminal.wait("then go on");
    terminal.keys(&["C-c"]);
    terminal.wait("the second answer");
    assert!(server.requests()[1].contains("then go on"));
}
