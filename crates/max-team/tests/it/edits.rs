//! Files of agents that are changed while somebody talks: the lead, members and experts are what is written when the next
//! message comes.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::program::Program;

/// A run that reads a message per line; its answers and messages come in one stream.
struct Chat {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Chat {
    fn start(program: &Program, arguments: &[&str]) -> Self {
        let mut child = program.merged(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { stdin: child.stdin.take(), child, lines }
    }

    /// Says something, and hears everything up to the answer.
    fn say(&mut self, words: &str) -> String {
        writeln!(self.stdin.as_mut().unwrap(), "{words}").unwrap();
        let mut heard = String::new();
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            heard.push_str(&line);
            heard.push('\n');
            if line.contains(&format!("heard {words}")) {
                return heard;
            }
        }
        panic!("no answer to {words}: {heard}");
    }

    fn leave(mut self) {
        drop(self.stdin.take());
        self.lines.by_ref().for_each(drop);
        assert!(self.child.wait().unwrap().success());
    }
}

fn system(request: &Recorded) -> String {
    request.body["system"].to_string()
}

fn tools(request: &Recorded) -> Vec<String> {
    let tools = request.body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// What was last said to whoever is asked.
fn last_words(request: &Recorded) -> String {
    let content = request.body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let text = |part: &Value| part["text"].as_str().map(str::to_owned);
    content.as_array().unwrap().iter().find_map(text).unwrap_or_default()
}

/// A lead that says what it heard; `give NAME` makes it give something to a member first.
fn model() -> ModelServer {
    ModelServer::start(Script::new().when(|request: &Recorded| {
        if !system(request).contains("LEAD") {
            return Some(Reply::text("member's word"));
        }
        let is_done = request.body["messages"].as_array().unwrap().last().unwrap().to_string().contains("tool_result");
        let asked = request.body["messages"].as_array().unwrap().iter().rev().find_map(|message| {
            let said = message["content"].as_array()?.iter().find_map(|part| part["text"].as_str())?;
            (message["role"] == "user").then(|| said.to_owned())
        });
        let asked = asked.unwrap_or_default();
        Some(match asked.strip_prefix("give ").filter(|_| !is_done) {
            Some(name) => {
                Reply::new().tool("g", "dispatch_task", json!({ "agent": name.trim(), "description": "do it" }))
            }
            None => Reply::text(format!("heard {}", last_asked(request))),
        })
    }))
}

/// The last words of the user's, whatever came back from tools since.
fn last_asked(request: &Recorded) -> String {
    let messages = request.body["messages"].as_array().unwrap().clone();
    let of_user = messages.iter().rev().filter(|message| message["role"] == "user");
    let texts = of_user.filter_map(|message| {
        message["content"].as_array()?.iter().find(|part| part["type"] == "text")?["text"].as_str().map(str::to_owned)
    });
    texts.into_iter().next().unwrap_or_default().trim().to_owned()
}

fn team(lead: &str, members: &str) -> String {
    format!("agents:\n  - {{name: max, role: team_lead, system_prompt: {lead}}}\n{members}")
}

const LEO: &str = "  - {name: leo, role: coder, system_prompt: LEO one, tools: [read_file, edit_file]}\n";
const RAY: &str = "  - {name: ray, role: tester, system_prompt: RAY, tools: [read_file]}\n";
const ZOE: &str = "  - {name: zoe, role: coder, system_prompt: ZOE, tools: [list_dir]}\n";

#[test]
fn the_lead_and_its_members_are_what_is_written_now() {
    let server = model();
    let program = Program::team(&server).file(".max-team/agents.yaml", team("LEAD one", &format!("{LEO}{RAY}")));
    let mut chat = Chat::start(&program, &[]);
    chat.say("first");
    let first = server.requests().pop().unwrap();
    assert!(system(&first).contains("LEAD one") && system(&first).contains("`ray`"), "{}", first.body);

    let leo = LEO.replace("LEO one", "LEO two").replace("edit_file", "search_code");
    let program = program.file(".max-team/agents.yaml", team("LEAD two", &format!("{leo}{ZOE}")));
    chat.say("give zoe");
    let requests = server.requests();
    let lead = requests.iter().rfind(|request| system(request).contains("LEAD")).unwrap();
    assert!(system(lead).contains("LEAD two") && system(lead).contains("`zoe`"), "{}", lead.body);
    assert!(!system(lead).contains("`ray`") && !system(lead).contains("LEAD one"), "{}", lead.body);
    assert!(lead.contains("heard first"), "the conversation goes on: {}", lead.body);
    assert!(lead.contains("member's word"), "{}", lead.body);
    chat.say("give leo");
    let leo = server.requests().into_iter().rfind(|request| system(request).contains("LEO")).unwrap();
    assert!(system(&leo).contains("LEO two"), "{}", leo.body);
    assert!(tools(&leo).contains(&"search_code".to_owned()) && !tools(&leo).contains(&"edit_file".to_owned()));
    chat.say("give ray");
    assert!(last_words(&server.requests().pop().unwrap()).is_empty());
    assert!(server.requests().pop().unwrap().contains("there is no member `ray`"));
    chat.leave();

    // Whoever comes back finds the same.
    let program = program.file(".max-team/agents.yaml", team("LEAD three", ZOE));
    let mut chat = Chat::start(&program, &["-c"]);
    chat.say("last");
    let last = server.requests().pop().unwrap();
    assert!(system(&last).contains("LEAD three") && last.contains("heard first"), "{}", last.body);
    chat.leave();
}

/// An edit counts and is told, also where the next thing that the user does is to begin anew.
#[test]
fn another_session_is_opened_with_what_is_written_now() {
    let server = model();
    let file = |lead: &str, more: &str| team(&format!("{lead}{more}"), LEO);
    let program = Program::team(&server).file(".max-team/agents.yaml", file("LEAD one", ", model: sonnet"));
    let mut terminal = Terminal::open(&program, &[]);
    let say = |terminal: &mut Terminal, orders: &[&str], words: &str| {
        for order in orders {
            terminal.keys(&[order, "Enter"]);
            terminal.wait(if order.starts_with("/model") { "model:" } else { "new session" });
        }
        terminal.keys(&[words, "Enter"]);
        terminal.wait("tokens in");
    };
    terminal.wait("or give a task");
    say(&mut terminal, &[], "first");
    let limits = ", model: haiku, constraints: {max_tokens: 777}";
    let program = program.file(".max-team/agents.yaml", file("LEAD two", limits));
    say(&mut terminal, &["/clear"], "second");
    let request = server.requests().pop().unwrap();
    assert!(system(&request).contains("LEAD two") && !request.contains("heard first"), "{}", request.body);
    let (model, most) = (request.body["model"].to_string(), &request.body["max_tokens"]);
    assert!(model.contains("haiku") && *most == 777, "{model}, {most}");
    // What the user chooses stays, until another model is written.
    say(&mut terminal, &["/model sonnet", "/clear"], "third");
    let model = server.requests().pop().unwrap().body["model"].to_string();
    assert!(model.contains("sonnet"), "{model}");
    std::fs::write(program.project().join(".max-team/agents.yaml"), "agents:\n  - {name: max}\n").unwrap();
    say(&mut terminal, &["/clear"], "fourth");
    let screen = terminal.screen();
    assert_eq!(screen.matches("correct that line").count(), 1, "{screen}");
}

#[test]
fn a_broken_definition_is_told_once_and_counts_as_it_was() {
    let server = model();
    let program = Program::team(&server).file(".max-team/agents.yaml", team("LEAD one", LEO));
    let expert = |text: &str| {
        let folder = program.home().join("agents");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("sage.md"), text).unwrap();
    };
    expert("---\nname: sage\ndescription: Knows one thing.\n---\nSAGE\n");
    let mut chat = Chat::start(&program, &[]);
    assert!(!chat.say("first").contains("the last valid version"));
    std::fs::write(program.project().join(".max-team/agents.yaml"), "agents:\n  - {name: max}\n").unwrap();
    expert("---\nname: sage\nname: sage\n---\n");
    let heard = chat.say("second");
    assert_eq!(heard.matches("the last valid version stays in use").count(), 2, "{heard}");
    assert!(heard.contains(".max-team/agents.yaml:2") && heard.contains("sage.md:3"), "{heard}");
    let request = server.requests().pop().unwrap();
    assert!(system(&request).contains("LEAD one") && request.contains("Knows one thing."), "{}", request.body);
    assert!(!chat.say("third").contains("the last valid version"), "once is enough");
    // A model that is not there is no reason to stop, either.
    let odd = LEO.replace("role: coder", "role: coder, model: openai/gpt-5");
    std::fs::write(program.project().join(".max-team/agents.yaml"), team("LEAD odd", &odd)).unwrap();
    let heard = chat.say("fourth");
    assert!(heard.contains("the last valid version stays in use") && heard.contains("gpt-5"), "{heard}");
    std::fs::write(program.project().join(".max-team/agents.yaml"), team("LEAD two", LEO)).unwrap();
    expert("---\nname: sage\ndescription: Knows two things.\n---\nSAGE\n");
    assert!(!chat.say("fifth").contains("the last valid version"));
    let request = server.requests().pop().unwrap();
    assert!(system(&request).contains("LEAD two") && request.contains("Knows two things."), "{}", request.body);
    chat.leave();
}

#[test]
fn a_member_that_is_a_file_comes_and_goes() {
    let server = model();
    let program = Program::team(&server).file(".max-team/agents.yaml", team("LEAD one", LEO));
    let mut chat = Chat::start(&program, &[]);
    chat.say("first");
    let file = program.project().join(".max-team/agents/kim.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "---\nname: kim\nrole: writer\ntools: read_file\n---\nKIM\n").unwrap();
    chat.say("give kim");
    assert!(server.requests().iter().any(|request| system(request).contains("KIM")));
    std::fs::remove_file(&file).unwrap();
    chat.say("give kim");
    assert!(server.requests().pop().unwrap().contains("there is no member `kim`"));
    chat.leave();
}
