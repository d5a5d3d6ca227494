//! What people see of the commands that do not talk.

use max_team_testkit::{ModelServer, Reply};

use crate::program::{Program, finish};

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

/// Wherever it stands, and whatever the locale and the settings say.
#[test]
fn every_command_speaks_the_language_that_is_asked_for() {
    let program = Program::alone().variable("LANG", "C.UTF-8");
    let table: [(&[&str], &str); 12] = [
        (&["--lang", "zh", "ps"], "没有智能体在工作"),
        (&["ps", "--lang", "zh"], "没有智能体在工作"),
        (&["--lang=zh", "inbox"], "没有等待您处理的事项"),
        (&["--lang", "zh", "team", "show"], "此目录还没有会话"),
        (&["team", "--lang", "zh", "show"], "此目录还没有会话"),
        (&["team", "show", "--lang", "zh"], "此目录还没有会话"),
        (&["--lang", "zh", "send", "nobody", "x"], "都没有 `nobody`"),
        (&["--lang", "zh", "permissions", "why", "touch a"], "权限模式 `default`"),
        (&["--lang", "zh", "-p", "hi"], "以下任选其一"),
        (&["--lang", "zh", "serve", "token", "list"], "没有令牌"),
        (&["serve", "--lang", "zh", "link"], "服务器在运行"),
        (&["--lang", "zh", "sesions", "list"], "没有命令 `sesions`\nmax-team: 您是否想用 `max-team sessions`"),
    ];
    let run = |program: &Program, words: &[&str]| finish(program.team_command(words).spawn().unwrap());
    for (words, wanted) in table {
        let ran = run(&program, words);
        assert!(format!("{}{}", ran.out, ran.err).contains(wanted), "{words:?}: {ran:?}");
    }
    let program = program.variable("LC_ALL", "zh_CN.UTF-8");
    assert_eq!(run(&program, &["--lang", "en", "inbox"]).out, "nothing waits for you\n");
    assert_eq!(run(&program, &["--lang", "xx", "inbox"]).code, 2);
}

#[test]
fn help_heeds_the_language_before_and_after_it() {
    let table: [&[&str]; 5] = [
        &["--lang", "zh", "help", "run"],
        &["--lang=zh", "--no-color", "help", "run"],
        &["help", "--lang", "zh", "run"],
        &["help", "run", "--lang=zh"],
        &["run", "--help", "--lang", "zh"],
    ];
    let program = Program::alone();
    let run = |words: &[&str]| finish(program.team_command(words).spawn().unwrap());
    for words in table {
        let ran = run(words);
        assert!(ran.code == 0 && ran.out.contains("用法： max-team run"), "{words:?}: {ran:?}");
    }
    let asked = run(&["help", "run", "--help"]);
    assert!(asked.code == 0 && asked.out.contains("Usage: max-team run"), "{asked:?}");
    let flags = run(&["replay", "--model", "x", "run.jsonl"]);
    assert!(flags.code == 2 && flags.err.contains("--strict"), "{flags:?}");
    let value = run(&["--approve", "sometimes"]);
    assert!(value.code == 2 && !value.err.contains("max-team approve"), "{value:?}");
}

#[test]
fn a_wrong_address_or_selector_is_a_usage_error() {
    let program = Program::alone();
    let table: [(&[&str], i32, &str); 6] = [
        (&["docs.rs"], 2, "begin with `https://`"),
        (&["ftp://docs.rs/"], 2, "is no web address"),
        (&["https://"], 2, "cannot be used"),
        (&["https://u:p@docs.rs/"], 2, "name or password"),
        (&["http://127.0.0.1:1/", "--selector", "p["], 2, "is no CSS selector"),
        (&["http://127.0.0.1:1/"], 1, "private network"),
    ];
    for (words, code, wanted) in table {
        let ran = program.run(&[&["fetch"], words].concat());
        assert!(ran.code == code && ran.err.contains(wanted) && ran.out.is_empty(), "{words:?}: {ran:?}");
    }
}

/// Each error names the address and what to do next.
#[test]
fn errors_of_pages_are_in_the_language_of_the_user() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let (url, open) = (format!("http://{closed}/"), closed.to_string());
    let program = Program::alone().variable("LC_ALL", "zh_CN.UTF-8");
    let table: [(&[&str], &str); 6] = [
        (&["docs.rs"], "请以 `https://` 开头"),
        (&["ftp://docs.rs/"], "不是网页地址"),
        (&[&url], "请用 `--allow-host`"),
        (&[&url, "--allow-host", &open], "请检查地址和网络"),
        (&[&url, "--selector", "p["], "不是 CSS 选择器"),
        (&["https://u:p@docs.rs/"], "请去掉"),
    ];
    for (words, wanted) in table {
        let ran = program.run(&[&["fetch"], words].concat());
        assert!(ran.code != 0 && ran.err.contains(wanted), "{words:?}: {ran:?}");
        assert!(ran.err.contains(words[0].split("u:p").next().unwrap()), "{words:?}: {ran:?}");
    }
    let program = program.variable("PATH", "/nowhere");
    let ran = program.run(&["fetch", &url, "--render", "always"]);
    assert!(ran.err.contains(&url) && ran.err.contains("sudo apt install chromium"), "{ran:?}");
}

#[test]
fn settings_are_explained_with_their_source() {
    let program = Program::alone().file(".max-team/config.yaml", "llm:\n  timeout: 5s\n");
    let ran = program.run(&["config", "explain", "llm.timeout"]);
    assert!(ran.code == 0 && ran.out.contains("5s") && ran.out.contains("config.yaml:2"), "{ran:?}");
    let ran = program.run(&["config", "explain", "llm.timout"]);
    assert!(ran.code == 2 && ran.err.contains("llm.timeout"), "{ran:?}");
}

/// Whatever stands behind a name, nothing is read without an end and nobody is waited for who may never come.
#[test]
fn a_file_that_is_named_has_an_end() {
    let program = Program::alone();
    std::os::unix::fs::symlink("/dev/zero", program.project().join("zero.json")).unwrap();
    let pipe = program.project().join("pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    for (name, why) in [("zero.json", "larger than"), ("pipe.json", "it is a pipe")] {
        let at = format!("@{name}");
        let table: [&[&str]; 6] = [
            &["memory", "import", name],
            &["-p", "x", "--json-schema", &at],
            &["skills", "run", "code_review", "--input", &at],
            &["-p", "x", "--config", name],
            &["agents", "list", "--agents", name],
            &["run", name],
        ];
        for words in table {
            let ran = program.run(words);
            let is_told = ran.err.contains(name) && ran.err.contains(why);
            assert!((1..=3).contains(&ran.code) && is_told, "{words:?}: {ran:?}");
        }
    }
    // What a shell pipes in by a name is the user's own wish.
    let cook = br#"{"cook": {"description": "Cooks", "prompt": "Cook."}}"#;
    let ran = program.pipe(&["agents", "show", "cook", "--agents", "/dev/stdin"], cook);
    assert!(ran.code == 0 && ran.out.contains("Cooks"), "{ran:?}");
}

#[test]
fn a_mistyped_command_is_a_usage_error() {
    for words in [&["sesions", "list"][..], &["sesions"], &["--lang", "zh", "doctor"]] {
        let ran = Program::alone().run(words);
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    assert!(Program::alone().run(&["sesions"]).err.contains("did you mean `max-team sessions`"));
    for words in [["permissions", "wy", "--lang", "zh"].as_slice(), &["permissions", "wy", "--lang=zh"]] {
        let ran = Program::alone().run(words);
        assert!(ran.code == 2 && ran.err.contains("您是否想用 `max-team permissions why"), "{words:?}: {ran:?}");
    }
    let hi = Program::alone().run(&["hi"]);
    assert!(hi.code == 2 && hi.err.contains("`max-team -p \"hi\"`") && !hi.err.contains("did you mean"), "{hi:?}");
    let ran = Program::alone().run(&["permisions", "why", "x"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean `max-team permissions`?"), "{ran:?}");
    let ran = Program::alone().run(&["permissions", "wy", "x"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean `max-team permissions why`?"), "{ran:?}");
    // Whole sentences have no spaces in some languages.
    assert_eq!(Program::alone().run(&["你好"]).code, 4);
}

#[test]
fn a_word_about_what_is_piped_in_is_a_question() {
    let server = ModelServer::start([Reply::text("Looks \u{1b}[31mfine\u{7}.")]);
    let program = Program::team(&server);
    let ran = program.pipe(&["review"], b"+ a line\n");
    assert_eq!((ran.code, ran.out.contains("fine")), (0, true), "{ran:?}");
    assert!(!ran.out.contains(['\u{1b}', '\u{7}']), "nothing that drives a terminal goes through a pipe: {ran:?}");
    let asked = server.requests();
    assert!(asked[0].contains("review") && asked[0].contains("+ a line"));
    let ran = program.pipe(&["sesions"], b"x");
    assert!(ran.code == 2 && ran.err.contains("did you mean `max-team sessions`"), "{ran:?}");
}

#[test]
fn permissions_are_told_of_searches_and_rules_about_the_web() {
    let settings = r#"{"permissions": {"allow": ["WebSearch", "WebFetch(domain:*.rust-lang.org)"], "deny": ["WebFetch(domain:bad.example)"]}}"#;
    let program = Program::alone();
    std::fs::create_dir_all(program.home()).unwrap();
    std::fs::write(program.home().join("settings.json"), settings).unwrap();
    let why = |words: &[&str]| program.run(&[&["permissions", "why"], words].concat());
    let table: [(&[&str], i32, &str); 8] = [
        (&["WebSearch"], 0, "allow: WebSearch"),
        (&["--tool", "WebSearch", "rust news"], 0, "html.duckduckgo.com"),
        (&["--tool", "web_search", "rust news"], 0, "allow: WebSearch"),
        (&["WebFetch(domain:doc.rust-lang.org)"], 0, "allow: WebFetch(domain:*.rust-lang.org)"),
        (&["WebFetch(domain:bad.example)"], 5, "deny: WebFetch(domain:bad.example)"),
        (&["WebFetch(domain:other.example)"], 5, "no rule names the host `other.example`"),
        (&["--tool", "browser", "https://bad.example/x"], 5, "deny: WebFetch(domain:bad.example)"),
        (&["--tool", "web_crawl", "x"], 2, "write_file, web_fetch, web_search, browser"),
    ];
    for (words, code, wanted) in table {
        let ran = why(words);
        assert!(ran.code == code && format!("{}{}", ran.out, ran.err).contains(wanted), "{words:?}: {ran:?}");
    }
    let program = program.variable("BRAVE_API_KEY", "b");
    let ran = program.run(&["permissions", "why", "WebSearch"]);
    assert!(ran.code == 0 && ran.out.contains("api.search.brave.com"), "{ran:?}");
}

/// A project's rules wait for the user's trust: those that would allow a call are named, and no others.
#[test]
fn permissions_name_the_rules_that_wait_for_trust() {
    let settings = r#"{"permissions": {"allow": ["Bash(ls:*)", "Bash(touch a)", "Bash(touch b)"]}}"#;
    let program = Program::alone().file(".max-team/settings.json", settings);
    let why = |words: &[&str]| program.run(&[&["permissions", "why", "ls && touch b"], words].concat());
    let told = |lang: &str, words: &str| {
        let ran = why(&["--lang", lang]);
        let hints: Vec<&str> = ran.out.lines().filter(|line| line.contains("permissions trust")).collect();
        assert!(ran.code == 5 && hints.len() == 1 && hints[0].contains(words), "{ran:?}");
    };
    told("en", "the rule `Bash(touch b)` in .max-team/settings.json:");
    told("zh", "中的规则 `Bash(touch b)` 正等待信任");
    let found = why(&["--json"]).json();
    let rules = found["untrusted"].as_array().unwrap();
    assert!(rules.len() == 1 && rules[0]["rule"] == "Bash(touch b)", "{found}");
    let refused = program.run(&["permissions", "why", "touch c", "--json"]).json();
    assert!(refused.get("untrusted").is_none(), "{refused}");
}

#[test]
fn permissions_are_told_of_an_address() {
    let program = Program::alone();
    for words in [
        &["permissions", "why", "https://Docs.rs:443/x?y"][..],
        &["permissions", "why", "--tool", "web_fetch", "http://docs.rs/x"],
    ] {
        let ran = program.run(words);
        assert!(ran.code == 5 && ran.out.contains("no rule names the host `docs.rs`"), "{ran:?}");
        assert!(ran.out.contains("WebFetch(domain:docs.rs)"), "{ran:?}");
    }
}

#[test]
fn tools_say_what_they_take() {
    let program = Program::alone();
    let list = program.run(&["tools", "list"]);
    assert!(list.out.starts_with("TOOL ") && list.code == 0, "{list:?}");
    for name in ["read_file", "search_code", "web_fetch", "query_log", "query_metrics", "run_test", "submit_plan"] {
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

#[test]
fn a_prompt_without_quotes_is_told_how_to_be_written() {
    let program = Program::alone();
    for (words, told) in [
        (&["fix", "the", "bug"][..], "put the prompt in quotes: max-team \"fix the bug\""),
        (&["fix", "the", "bug", "--lang", "zh"], "请给提示加上引号：max-team \"fix the bug\""),
    ] {
        let ran = program.run(words);
        assert!(ran.code == 2 && ran.err.contains(told), "{ran:?}");
    }
    let ran = program.run(&["sesions", "list"]);
    assert!(!ran.err.contains("in quotes"), "{ran:?}");
}

#[test]
fn the_list_of_demos_is_in_the_users_language() {
    let program = Program::alone();
    assert!(program.run(&["demo", "--list"]).out.contains("a feature in three steps"));
    let chinese = program.run(&["demo", "--list", "--lang", "zh"]).out;
    assert!(chinese.contains("三步完成一个功能") && !chinese.contains("three"), "{chinese}");
}

#[test]
fn flags_of_a_command_may_stand_before_its_name() {
    let plan = "goal: Say hello\ntasks:\n  - {id: speak, agent: ada, do: Speak up.}\n";
    let program = Program::alone().file("plan.yaml", plan);
    let url = "http://127.0.0.1:9";
    for words in [
        &["run", "plan.yaml", "--dry-run", "--base-url", url][..],
        &["--base-url", url, "run", "plan.yaml", "--dry-run"],
        &["--lang", "en", "--base-url", url, "--model=haiku", "run", "--dry-run", "plan.yaml"],
    ] {
        let ran = finish(program.team_command(words).spawn().unwrap());
        assert!(ran.code == 0 && ran.out.contains("speak (ada)"), "{words:?}: {ran:?}");
    }
    let ran = finish(program.team_command(&["--solo", "run", "plan.yaml"]).spawn().unwrap());
    assert_eq!(ran.code, 2, "a flag that the command does not have: {ran:?}");
}

/// A newcomer learns from each screen which file to edit or which command comes next.
#[test]
fn empty_pages_and_errors_say_what_to_do_next() {
    let program = Program::alone();
    let table: [(&[&str], i32, &[&str]); 15] = [
        (
            &["permissions", "list"],
            0,
            &["settings.json` (all projects)", ".max-team/settings.local.json", "Bash(cargo test:*)"],
        ),
        (&["permissions", "why", "touch a"], 5, &["write rules in", ".max-team/settings.local.json"]),
        (&["config", "set"], 2, &["config.yaml` (all projects)", "config default"]),
        (&["config", "--help"], 0, &["edit ~/.max-team/config.yaml"]),
        (&["restore", "nofile.db"], 1, &["there is no backup in", "nofile.db", "max-team backup"]),
        (&["backup"], 1, &["nothing to back up yet"]),
        (&["help", "sesions"], 2, &["did you mean `max-team sessions`?"]),
        (&["-p", "hi", "--approve", "yes"], 2, &["`never`, `plan`, `each`, `risky`", "needs your approval"]),
        (&["-p", "hi", "--permission-mode", "plann"], 2, &["did you mean `plan`?"]),
        (&["-p", "hi", "--max-budget-usd", "abc"], 3, &["such as `2.50`", "or leave the flag out"]),
        (&["rewind", "nosuch"], 1, &["none is called `nosuch`"]),
        (&["run", "nofile.yaml"], 3, &["there is no file `nofile.yaml`", "max-team plan"]),
        (&["files", "clear", "--agent", "nosuch"], 1, &["`nosuch`", "max-team files list"]),
        (&["audit", "show"], 0, &["no entry matches"]),
        (&["backup", "nofolder/x"], 2, &["nofolder", "does not exist"]),
    ];
    for (words, code, wanted) in table {
        let ran = program.run(words);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == code && wanted.iter().all(|words| said.contains(words)), "{words:?}: {ran:?}");
    }
    assert!(!program.run(&["help", "nosuch"]).err.contains("in quotes"));
}

/// Lines with four or more English words in a row that are no command, value or name in backticks or quotes.
fn english(text: &str) -> Vec<&str> {
    let plain = |line: &str| {
        let outside = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        outside.split('"').step_by(2).collect::<Vec<_>>().join("`")
    };
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_alphabetic());
    let is_sentence = |line: &&str| {
        let plain = plain(line);
        let words: Vec<&str> =
            plain.split(|c| " ,;:，；：（）、".contains(c)).filter(|word| !word.is_empty()).collect();
        words.windows(4).any(|four| four.iter().all(is_word))
    };
    text.lines().filter(is_sentence).collect()
}

#[test]
fn no_english_sentence_stands_on_a_chinese_screen() {
    assert_eq!(english("a\n错误：it cannot be read\n`it is not read`").len(), 1);
    let program = Program::alone().variable("LC_ALL", "zh_CN.UTF-8").file("odd.yaml", "llm: {timeout: soon}");
    let table: &[&[&str]] = &[
        &["ps", "--all"],
        &["inbox"],
        &["doctor"],
        &["sessions", "list"],
        &["plans", "list"],
        &["permissions", "list"],
        &["permissions", "lint"],
        &["permissions", "protected"],
        &["permissions", "why", "git push"],
        &["permissions", "why", "cat a && $X"],
        &["config", "explain", "nosuch"],
        &["config", "set"],
        &["models", "--provider", "nosuch"],
        &["restore", "nofile.db"],
        &["backup", "nofolder/x"],
        &["audit", "show"],
        &["audit", "verify"],
        &["memory", "list"],
        &["memory", "why"],
        &["memory", "import", "nofile.md"],
        &["tasks", "list"],
        &["team", "show"],
        &["trace"],
        &["cost"],
        &["replay", "nosuch"],
        &["fork", "nosuch"],
        &["rewind", "nosuch"],
        &["worktrees", "list"],
        &["files", "list"],
        &["files", "clear", "--agent", "nosuch"],
        &["mcp", "list"],
        &["serve", "token", "list"],
        &["run", "nofile.yaml"],
        &["plan", "hi"],
        &["-p", "hi"],
        &["-p", "hi", "--approve", "yes"],
        &["-p", "hi", "--config", "odd.yaml"],
        &["-p", "hi", "--config", "nofile.yaml"],
        &["-p", "hi", "--base-url", "x"],
        &["-p", "hi", "--max-budget-usd", "abc"],
        &["-p", "hi", "--agent", "nosuch"],
        &["-p", "hi", "--agents", "nofile.yaml"],
        &["-p", "hi", "--json-schema", "@nofile"],
        &["-p", "hi", "--mcp-config", "nofile"],
        &["--bogus"],
    ];
    for words in table {
        let ran = finish(program.team_command(words).spawn().unwrap());
        let said = format!("{}{}", ran.out, ran.err);
        assert!(!said.is_empty() && english(&said).is_empty(), "{words:?}: {:?}", english(&said));
    }
}
