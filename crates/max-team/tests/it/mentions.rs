//! `@path` in a message: completed in the chat, read into the request, in the chat and with `-p`.

use max_team_testkit::{ModelServer, Reply};

use crate::chat::Terminal;
use crate::program::Program;

fn program(server: &ModelServer) -> Program {
    Program::team(server)
        .file("src/main.rs", "fn main() {}\n")
        .file("src/my notes.md", "remember the milk\n")
        .file(".env", "KEY=hidden\n")
        .file(".gitignore", "target\n")
        .file("target/main.rs", "built\n")
}

#[test]
fn a_prompt_brings_the_files_that_it_mentions() {
    let server = ModelServer::start([Reply::text("done")]);
    let program = program(&server);
    let ran = program.run(&["-p", "compare @src/main.rs with @\"src/my notes.md\" and @.env, mail me@src/main.rs"]);
    assert_eq!((ran.code, ran.out.trim()), (0, "done"), "{ran:?}");
    assert!(ran.err.contains("`.env` is not included in the message"), "{}", ran.err);
    let content = &server.requests()[0].body["messages"][0]["content"];
    let texts: Vec<&str> = content.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(texts[1], "<file path=\"src/main.rs\">\n1\tfn main() {}\n</file>");
    assert_eq!(texts[2], "<file path=\"src/my notes.md\">\n1\tremember the milk\n</file>");
    assert!(texts[3].starts_with("<file path=\".env\" not_included=\"") && texts.len() == 4, "{texts:?}");
    assert!(!server.requests()[0].contains("hidden"));
}

#[test]
fn piped_text_mentions_nothing() {
    let server = ModelServer::start([Reply::text("done")]);
    let program = program(&server);
    let ran = program.pipe(&["-p", "sum it up"], b"see @src/main.rs\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!server.requests()[0].contains("fn main"));
}

#[test]
fn tab_completes_a_path_in_the_chat() {
    let server = ModelServer::start([Reply::text("read it")]);
    let program = program(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["explain @notes"]);
    terminal.wait("src/my notes.md");
    assert!(terminal.screen().contains("❯ src/my notes.md"), "{}", terminal.screen());
    terminal.keys(&["Tab"]);
    terminal.wait("\"src/my notes.md\"");
    terminal.keys(&["and @main"]);
    terminal.wait("src/main.rs");
    assert!(terminal.screen().contains("❯ src/main.rs"), "{}", terminal.screen());
    assert!(!terminal.screen().contains("target/main.rs"), "{}", terminal.screen());
    terminal.keys(&["Tab", "Enter"]);
    terminal.wait("tokens in");
    let screen = terminal.screen();
    assert!(screen.contains("> explain @\"src/my notes.md\" and @src/main.rs"), "{screen}");
    assert!(screen.contains("⎿ src/my notes.md · 1 line") && screen.contains("⎿ src/main.rs · 1 line"), "{screen}");
    assert!(server.requests()[0].contains("remember the milk") && server.requests()[0].contains("fn main"));
}
