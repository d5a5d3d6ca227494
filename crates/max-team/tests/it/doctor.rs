//! What `doctor` finds and says.

use max_team_testkit::{ModelServer, Reply};

use crate::context::ok;
use crate::program::Program;

#[test]
fn the_doctor_says_what_is_in_the_way() {
    let program = Program::alone().file("home-file", "");
    let path = program.project().join("home-file");
    let program = program.variable("MAX_TEAM_HOME", path.to_str().unwrap());
    let ran = program.run(&["doctor"]);
    let told = format!("FAIL  journal: `{}` is a file, and a folder is needed there; move it away", path.display());
    assert!(ran.code == 1 && ran.out.contains(&told) && !ran.out.contains("ok    place"), "{ran:?}");
}

#[test]
fn a_proxy_that_is_not_understood_is_told_before_anything_is_sent() {
    let program =
        Program::alone().variable("ANTHROPIC_API_KEY", "sk-test").variable("ALL_PROXY", "http://a:s3cr3t@h:1");
    let ran = program.run(&["doctor"]);
    assert!(ran.out.contains("note  proxy: h:1\n") && !ran.out.contains("s3cr3t"), "{ran:?}");
    let program = program.variable("HTTPS_PROXY", "ftp://a:s3cr3t@h:1");
    let words = "the proxy in `HTTPS_PROXY` is not understood";
    let ran = program.run(&["doctor"]);
    assert!(ran.code == 1 && ran.out.contains(&format!("FAIL  connection: {words}")), "{ran:?}");
    let ran = program.run(&["-p", "hello"]);
    assert!(ran.code == 3 && ran.err.contains(words) && !ran.err.contains("s3cr3t"), "{ran:?}");
    assert!(!ran.err.contains("retrying"), "{ran:?}");
}

#[test]
fn the_doctor_knows_the_team() {
    let program = Program::alone().variable("ANTHROPIC_API_KEY", "sk-test");
    let ran = program.run(&["doctor"]);
    assert!(ran.out.contains("ok    team: the built-in team: max (team_lead) leads leo (coder), ada"), "{ran:?}");
    assert!(!ran.out.contains("not available yet"), "{ran:?}");
    let file = "agents:\n  - {name: max, role: team_lead, system_prompt: lead}\n  - name: leo\n    role: coder\n    \
        system_prompt: code\n    tools: [read_file, web_crawl]\n    mcp_servers:\n      - {name: nexus, command: npx}\n";
    let program = program.file("mine.yaml", file);
    let ran = ok(program.run(&["doctor", "--agents", "mine.yaml"]));
    assert!(ran.out.contains("ok    team: mine.yaml: max (team_lead) leads leo (coder)\n"), "{ran:?}");
    assert!(ran.out.contains("note  mcp servers: leo: nexus\n"), "{ran:?}");
    assert!(ran.out.contains("note  tools: leo: web_crawl: not available yet"), "{ran:?}");
}

#[test]
fn the_doctor_checks_the_settings_of_the_web() {
    let program = Program::alone().variable("ANTHROPIC_API_KEY", "sk-test");
    std::fs::create_dir_all(program.home()).unwrap();
    let table = [
        ("", 0, "ok    web_search: DuckDuckGo, for `web_search`"),
        (
            "tools: {web_search: {provider: brave}}\n",
            1,
            "FAIL  web_search: `tools.web_search` cannot be used: `BRAVE_API_KEY`",
        ),
        ("tools: {web_search: {url: 'https://a.org/?q={query}'}}\n", 0, "ok    web_search: `a.org`, for `web_search`"),
        ("tools: {web_search: {url: nowhere}}\n", 1, "FAIL  web_search: `tools.web_search.url` is no address"),
        ("tools: {web_search: {url: 'ftp://a.org/'}}\n", 1, "FAIL  web_search: `tools.web_search.url` is no address"),
        (
            "tools: {browser_path: /nowhere/chromium}\n",
            0,
            "note  browser: `tools.browser_path` names `/nowhere/chromium`",
        ),
        ("tools: {browser_profiles: [my shop]}\n", 1, "a list of names such as `[shop, work-mail]`"),
    ];
    for (settings, code, words) in table {
        std::fs::write(program.home().join("config.yaml"), settings).unwrap();
        let ran = program.run(&["doctor"]);
        assert!(ran.code == code && format!("{}{}", ran.out, ran.err).contains(words), "{settings}: {ran:?}");
    }
}

#[test]
fn the_doctor_reports_the_sandbox() {
    let program = Program::alone().variable("ANTHROPIC_API_KEY", "sk-test");
    let ran = program.run(&["doctor"]);
    let lines: Vec<&str> =
        ran.out.lines().filter(|line| line.get(6..).is_some_and(|line| line.starts_with("sandbox"))).collect();
    assert!(lines.len() >= 6 && lines[1].contains("home and the rest are hidden"), "{ran:?}");
    // Which mechanism is used, and why each other one is not.
    let mechanisms = ["own namespaces", "bubblewrap", "Landlock"];
    assert!(mechanisms.iter().all(|name| lines.iter().any(|line| line.contains(name))), "{ran:?}");
    assert_eq!(
        lines.iter().filter(|line| line.contains("cannot be used here") || line.contains("is not needed")).count(),
        2
    );
    let program = program.file("own.yaml", "project: {sandbox: false}\n");
    let ran = ok(program.run(&["doctor", "--config", "own.yaml"]));
    assert!(ran.out.contains("warn  sandbox: turned off by `project.sandbox: false`"), "{ran:?}");
    assert!(ran.out.contains("warn  settings: `project.sandbox` is false: commands run without a sandbox"), "{ran:?}");
}

/// Where no namespaces can be made, one line says that there is no browser.
#[cfg(target_os = "linux")]
#[test]
fn the_doctor_says_that_a_browser_needs_namespaces() {
    let program = Program::alone().variable("ANTHROPIC_API_KEY", "sk-test").variable("MAX_TEAM_SANDBOX", "landlock");
    std::fs::create_dir_all(program.home()).unwrap();
    std::fs::write(program.home().join("config.yaml"), "tools: {browser_path: /bin/true}\n").unwrap();
    let ran = program.run(&["doctor"]);
    assert!(ran.out.contains("note  browser: Chromium is not started: its sandbox needs namespaces"), "{ran:?}");
}

#[test]
fn the_doctor_names_a_lock_that_blocks_git() {
    let program = Program::alone().variable("ANTHROPIC_API_KEY", "sk-test").file(".git/index.lock", "");
    let ran = program.run(&["doctor"]);
    let lock = program.project().canonicalize().unwrap().join(".git/index.lock");
    let want = format!("warn  git: `{}` blocks commits, and no running git was found to hold it", lock.display());
    assert!(ran.out.contains(&want), "{ran:?}");
}

/// Marks and headings are in the language of what they are about.
#[test]
fn the_doctor_speaks_one_language() {
    let file = "agents:\n  - {name: max, role: team_lead, system_prompt: lead}\n  - name: leo\n    role: coder\n    \
        system_prompt: code\n    tools: [read_file, web_crawl]\n";
    let program = Program::alone().variable("LC_ALL", "zh_CN.UTF-8").file("mine.yaml", file);
    let program = program.file("own.yaml", "project: {sandbox: false}\nserver: {mode: web}\n");
    let ran = program.run(&["doctor", "--agents", "mine.yaml", "--config", "own.yaml"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let marks = ["正常  ", "提示  ", "警告  ", "失败  "];
    for mark in marks {
        assert!(ran.out.lines().any(|line| line.starts_with(mark)), "`{mark}`: {}", ran.out);
    }
    assert!(ran.out.contains("警告  server.mode："), "a setting is called as it is written: {}", ran.out);
    for mark in ["ok ", "note ", "warn ", "FAIL "] {
        assert!(!ran.out.lines().any(|line| line.starts_with(mark)), "`{mark}`: {}", ran.out);
    }
}

/// Each fault has its own words, and costs one request at most.
#[test]
fn doctor_online_tells_key_server_model_and_address_apart() {
    let table = [
        (Reply::text("ok").usage(12, 1, 0, 0), 0, "answered in"),
        (Reply::status(401), 1, "the key was refused (it comes from ANTHROPIC_API_KEY)"),
        (Reply::status(404).error("not_found_error", "model: opus-99"), 1, "was refused"),
        (Reply::status(404).error("", "no such page"), 1, "no model answers at this address"),
        (Reply::status(529), 1, "the provider cannot answer now"),
        (Reply::status(400).error("invalid_request_error", "too small"), 1, "the request was refused"),
    ];
    for (reply, code, words) in table {
        let server = ModelServer::start([reply]);
        let program = Program::with(&server);
        let ran = program.run(&["doctor", "--online"]);
        assert!(ran.code == code && ran.out.contains(words), "{words}: {ran:?}");
        assert_eq!(server.requests().len(), 1, "one attempt");
        assert!(!ran.out.contains("sk-test") && !ran.err.contains("sk-test"), "{ran:?}");
        assert!(ran.out.contains("not tested: the fallback model"), "{ran:?}");
    }
    let server = ModelServer::start([]);
    let program = Program::with(&server);
    let ran = program.run(&["doctor"]);
    assert!(ran.code == 0 && ran.out.contains("doctor --online"), "{ran:?}");
    let ran = program.run(&["doctor", "--online", "--base-url", "http://127.0.0.1:9"]);
    assert!(ran.code == 1 && ran.out.contains("the server does not answer"), "{ran:?}");
    assert!(server.requests().is_empty());
    let ran = program.run(&["doctor", "--online", "--lang", "zh", "--base-url", "http://127.0.0.1:9"]);
    assert!(ran.out.contains("服务器没有回答"), "{ran:?}");
    let server = ModelServer::start([Reply::text("ok")]);
    let program = Program::alone().variable("OPENAI_API_KEY", "sk-test-0123456789abcdef");
    let words = ["doctor", "--online", "--provider", "openai", "--model", "gpt-5-mini", "--base-url", &server.url()];
    let ran = program.run(&words);
    assert!(ran.code == 0 && ran.out.contains("openai/gpt-5-mini answered"), "{ran:?}");
    assert!(server.requests()[0].contains("gpt-5-mini"));
}
