//! What people see of the commands that do not talk.

use crate::program::Program;

#[test]
fn help_is_stable() {
    insta::assert_snapshot!(Program::alone().run(&["--help"]).out);
}

#[test]
fn asking_about_the_program_touches_nothing() {
    let program = Program::alone();
    for words in [&["--version"][..], &["--help"], &["completion", "bash"], &["man"], &["config", "default"]] {
        let ran = program.run(words);
        assert!(ran.code == 0 && !ran.out.is_empty() && ran.err.is_empty(), "{words:?}: {ran:?}");
    }
    assert!(!program.home().exists());
}

#[test]
fn settings_are_explained_with_their_source() {
    let program = Program::alone().file(".max-team/config.yaml", "llm:\n  timeout: 5s\n");
    let ran = program.run(&["config", "explain", "llm.timeout"]);
    assert!(ran.code == 0 && ran.out.contains("5s") && ran.out.contains("config.yaml:2"), "{ran:?}");
    let ran = program.run(&["config", "explain", "llm.timout"]);
    assert!(ran.code == 2 && ran.err.contains("llm.timeout"), "{ran:?}");
}

#[test]
fn a_mistyped_command_is_a_usage_error() {
    for words in [&["sesions", "list"][..], &["sesions"], &["--lang", "zh", "doctor"]] {
        let ran = Program::alone().run(words);
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    assert!(Program::alone().run(&["sesions"]).err.contains("did you mean `max-team sessions`"));
    let hi = Program::alone().run(&["hi"]);
    assert!(hi.code == 2 && hi.err.contains("`max-team -p \"hi\"`") && !hi.err.contains("did you mean"), "{hi:?}");
    // Whole sentences have no spaces in some languages.
    assert_eq!(Program::alone().run(&["你好"]).code, 4);
}

#[test]
fn tools_say_what_they_take() {
    let program = Program::alone();
    let list = program.run(&["tools", "list"]);
    assert!(list.out.starts_with("TOOL ") && list.code == 0, "{list:?}");
    for name in ["read_file", "search_code", "http_get", "query_log", "query_metrics", "run_test", "submit_plan"] {
        assert!(list.out.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}: {list:?}");
    }
    let all = program.run(&["tools", "list", "--json"]).json();
    assert_eq!(all.as_array().unwrap().len() + 1, list.out.lines().count());
    let one = program.run(&["tools", "show", "read_file", "--json"]).json();
    assert_eq!((one["class"].as_str(), one["schema"]["required"][0].as_str()), (Some("pure"), Some("path")));
    let page = program.run(&["tools", "show", "search_code"]);
    assert!(page.out.starts_with("search_code (pure)\n") && page.out.contains("One of: function, type"), "{page:?}");
    let wrong = program.run(&["tools", "show", "raed_file"]);
    assert!(wrong.code == 2 && wrong.err.contains("did you mean `read_file`?"), "{wrong:?}");
}
