//! What is remembered, through the whole program: by command, from a chat, into the next prompt.

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::program::{Program, Ran};

/// A lead that answers, and an expert that writes down where the user lives.
fn server() -> ModelServer {
    ModelServer::start(Script::new().when(|request| {
        if !request.contains("You keep the team's memory") {
            return Some(Reply::text("好的。"));
        }
        let location = json!({"key": "user_profile.location", "value": "北京通州", "quote": "我住北京通州"});
        let made_up = json!({"key": "user_profile.age", "value": 7, "quote": "I am seven years old"});
        Some(match request.tool_results() {
            0 => Reply::new().tool("t1", "memory_write", location).tool("t2", "memory_write", made_up),
            _ => Reply::text("location"),
        })
    }))
}

/// A list without the times in it.
fn timeless(text: &str) -> String {
    let is_time =
        |word: &str| word.len() > 7 && word.chars().all(|letter| letter.is_ascii_digit() || "-:".contains(letter));
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').map(|word| if is_time(word) { "TIME" } else { word }).collect();
        format!("{}\n", words.join(" "))
    };
    text.lines().map(line).collect()
}

fn ok(ran: Ran) -> String {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out
}

/// What is remembered, but for where the last conversation stood.
fn facts(program: &Program) -> Vec<(String, Value)> {
    let listed = program.run(&["memory", "list", "--json"]).json();
    let fact = |fact: &Value| (fact["key"].as_str().unwrap().to_owned(), fact["value"].clone());
    let all = listed.as_array().unwrap().iter().map(fact);
    all.filter(|(key, _)| !key.starts_with("dialog_context")).collect()
}

#[test]
fn the_user_writes_reads_finds_and_forgets() {
    let program = Program::alone().variable("USER", "ada");
    assert!(ok(program.run(&["memory", "list"])).contains("nothing is remembered yet"));
    ok(program.run(&["memory", "set", "user_profile.location", "北京通州"]));
    ok(program.run(&["memory", "set", "preferences", r#"{"tea": "龙井", "code": {"indent": 4}}"#]));
    ok(program.run(&["memory", "set", "notes.deploy", "Staging is deployed with helm"]));
    ok(program.run(&["memory", "set", "notes.key", "the password is hunter2"]));
    insta::assert_snapshot!("memory_list", timeless(&ok(program.run(&["memory", "list"]))));
    insta::assert_snapshot!("memory_list_of_a_key", timeless(&ok(program.run(&["memory", "list", "preferences"]))));
    insta::assert_snapshot!("memory_show", timeless(&ok(program.run(&["memory", "show", "preferences.tea"]))));
    // A value over a whole section would lose what is in it.
    let slip = program.run(&["memory", "set", "preferences", "coffee"]);
    assert!(slip.code == 1 && slip.err.contains("memory forget preferences"), "{slip:?}");
    let found = program.run(&["memory", "search", "我在通州喝什么茶，龙井？", "--json"]).json();
    let keys: Vec<&str> = found.as_array().unwrap().iter().map(|hit| hit["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["preferences.tea", "user_profile.location"]);
    assert!(ok(program.run(&["memory", "search", "how", "is", "staging", "deployed?"])).contains("notes.deploy"));
    let ran = program.run(&["memory", "forget", "preferences"]);
    assert!(ran.out.contains("forgotten (user): preferences.tea"), "{ran:?}");
    assert!(!program.run(&["audit", "export"]).out.contains("龙井"));
    assert_eq!(program.run(&["audit", "verify"]).code, 0);
    let left: Vec<String> = facts(&program).into_iter().map(|(key, _)| key).collect();
    assert_eq!(left, ["notes.deploy", "notes.key", "user_profile.location"]);
    assert_eq!(program.run(&["doctor", "--rebuild"]).code, 1, "there is no key; the rows are made again all the same");
    let again: Vec<String> = facts(&program).into_iter().map(|(key, _)| key).collect();
    assert_eq!(again, left);
    assert!(ok(program.run(&["memory", "search", "龙井"])).contains("no remembered fact matches"));
    // What is not there, and what cannot be meant.
    assert_eq!(program.run(&["memory", "forget", "preferences"]).code, 1);
    let near = program.run(&["memory", "show", "user_profil.x"]);
    assert!(near.code == 2 && near.err.contains("did you mean `user_profile`?"), "{near:?}");
}

#[test]
fn memory_speaks_chinese() {
    let program = Program::alone().variable("LANG", "zh_CN.UTF-8").variable("USER", "ada");
    assert!(ok(program.run(&["memory", "list"])).contains("还没有任何记忆"));
    ok(program.run(&["memory", "set", "user_profile.location", "北京通州"]));
    insta::assert_snapshot!("memory_show_zh", timeless(&ok(program.run(&["memory", "show", "user_profile"]))));
    assert!(
        ok(program.run(&["memory", "forget", "user_profile"])).starts_with("已忘记 (user): user_profile.location\n")
    );
}

#[test]
fn files_of_other_programs_come_in_and_go_out() {
    let program = Program::alone()
        .file("soul.md", "你是个幽默风趣的北京大妞\n")
        .file("user.md", "## 画像\n- location: 北京通州\n- allergies: [\"花粉\"]\n\n## AI观察到\n- 喜欢户外\n")
        .file("MEMORY.md", "# Facts\n- port: 8080\n- The tests are slow.\n")
        .file("odd.txt", "x");
    let shown = ok(program.run(&["memory", "import", "soul.md", "user.md", "MEMORY.md", "--dry-run"]));
    assert!(shown.contains("would import (user): user_profile.location: 北京通州"), "{shown}");
    assert!(facts(&program).is_empty());
    let taken = ok(program.run(&["memory", "import", "soul.md", "user.md", "MEMORY.md"]));
    assert_eq!(taken, shown.replace("would import", "imported"));
    let before = facts(&program);
    assert_eq!(before.len(), 6);
    ok(program.run(&["memory", "import", "soul.md", "user.md", "MEMORY.md"]));
    assert_eq!(facts(&program), before, "twice is once");
    for scope in ["user", "project"] {
        ok(program.run(&["memory", "export", scope, "--scope", scope]));
    }
    assert_eq!(program.run(&["memory", "export", "user"]).code, 1, "nothing is overwritten");
    let told = program.run(&["memory", "export", "user", "--force"]);
    assert!(told.code == 0 && told.err.contains("memory export --scope project"), "{told:?}");
    // A link that somebody left there is not written through.
    std::os::unix::fs::symlink("../odd.txt", program.project().join("user/MEMORY.md")).unwrap();
    ok(program.run(&["memory", "set", "notes.x", "y", "--scope", "user"]));
    let linked = program.run(&["memory", "export", "user", "--force"]);
    assert!(linked.code == 1 && linked.err.contains("it is a link"), "{linked:?}");
    assert_eq!(program.read("odd.txt"), "x");
    ok(program.run(&["memory", "forget", "notes.x", "--scope", "user"]));
    assert_eq!(program.read("user/SOUL.md"), "你是个幽默风趣的北京大妞\n");
    let other = Program::alone();
    for (scope, name) in [("user", "SOUL.md"), ("user", "USER.md"), ("project", "MEMORY.md")] {
        let path = program.project().join(scope).join(name);
        ok(other.run(&["memory", "import", path.to_str().unwrap()]));
    }
    assert_eq!(facts(&other), before);
    let json = ok(program.run(&["memory", "export"]));
    let third = Program::alone().file("memory.json", &json);
    ok(third.run(&["memory", "import", "memory.json"]));
    assert_eq!(ok(third.run(&["memory", "export"])), json);
    assert_eq!(program.run(&["memory", "import", "odd.txt"]).code, 2);
}

#[test]
fn a_stated_fact_is_known_in_the_next_run_with_its_source() {
    let server = server();
    let program = Program::team(&server).file("../home/config.yaml", "memory: {extract: always}\n");
    ok(program.run(&["-p", "我住北京通州"]));
    assert_eq!(facts(&program), [("user_profile.location".to_owned(), json!("北京通州"))]);
    assert!(!server.requests()[0].contains("北京通州\\\" (memory"));
    ok(program.run(&["-p", "今天天气怎么样"]));
    let asked = server.requests();
    let second = asked.iter().find(|request| request.contains("今天天气怎么样")).unwrap();
    assert!(second.body["system"].to_string().contains("user_profile.location"), "{}", second.body["system"]);
    assert!(second.body["tools"].to_string().contains("memory_read"));
    insta::assert_snapshot!("memory_why", timeless(&ok(program.run(&["memory", "why"]))));
    let why = program.run(&["memory", "why", "--json"]).json();
    assert_eq!(why[0]["facts"][0]["why"], json!("standing"));
    let costs = ok(program.run(&["cost", "--by", "agent"]));
    assert!(costs.contains("memory"), "{costs}");
    let off = Program::team(&server).file("../home/config.yaml", "memory: {extract: always, recall: false}\n");
    ok(off.run(&["memory", "set", "personality", "Speak like a pirate."]));
    ok(off.run(&["-p", "hello"]));
    assert!(server.requests().iter().all(|request| !request.contains("pirate")));
}

/// What is forgotten is in no byte of the memory, and whatever conversation still has it is named.
#[test]
fn forgetting_leaves_nothing_unsaid() {
    let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("Yes."))));
    let program = Program::team(&server);
    ok(program.run(&["memory", "set", "notes.safe", "behind the giraffe picture"]));
    ok(program.run(&["memory", "set", "notes.safe", "under the rhinoceros rug"]));
    for n in 0..40 {
        ok(program.run(&["memory", "set", &format!("notes.n{n}"), &"word ".repeat(n * 20)]));
    }
    ok(program.run(&["memory", "forget", "notes.safe"]));
    let file = String::from_utf8_lossy(&std::fs::read(program.home().join("journal.db")).unwrap()).into_owned();
    assert!(!file.contains("giraffe") && !file.contains("rhinoceros"));
    ok(program.run(&["memory", "set", "notes.spare", "a zebra has the spare key"]));
    ok(program.run(&["-p", "who has the spare key?"]));
    assert!(server.requests().last().unwrap().contains("zebra"));
    ok(program.run(&["-p", "what is two and two?"]));
    let sessions = program.run(&["sessions", "list", "--json"]).json();
    let told = sessions.as_array().unwrap().iter().find(|row| row.to_string().contains("spare key")).unwrap();
    let forgotten = ok(program.run(&["memory", "forget", "notes"]));
    let named: Vec<&str> = forgotten.lines().filter(|line| line.contains("a prompt in session")).collect();
    assert!(named.len() == 1 && named[0].contains(told["session"].as_str().unwrap()), "{forgotten} {told}");
}

/// A single question is not looked at unless somebody wants that; a project cannot want it.
#[test]
fn a_single_question_is_not_looked_at() {
    let server = server();
    let program = Program::team(&server).file(".max-team/config.yaml", "memory: {extract: always}\n");
    let ran = program.run(&["-p", "我住北京通州"]);
    assert!(ran.code == 0 && ran.err.contains("memory.extract"), "{ran:?}");
    assert_eq!(server.count(), 1);
}

/// A chat is looked at beside it. Whoever leaves too soon finds it done when the session is opened again.
#[test]
fn a_chat_is_looked_at_beside_it() {
    let server = server();
    let program = Program::team(&server);
    let ran = program.pipe(&[], "我住北京通州\n".as_bytes());
    assert!(ran.code == 0 && ran.out.contains("好的"), "{ran:?}");
    ok(program.run(&["-c", "-p", ""]));
    assert_eq!(facts(&program), [("user_profile.location".to_owned(), json!("北京通州"))]);
    let handed = program.journal().iter().filter(|entry| entry["event"] == "memory_handed").count();
    assert_eq!(handed, 1);
    let off = Program::team(&server).file("../home/config.yaml", "memory: {extract: false}\n");
    ok(off.pipe(&[], "我住北京通州\n".as_bytes()));
    assert!(off.journal().iter().all(|entry| entry["event"] != "memory_handed"));
}
