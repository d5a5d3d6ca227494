//! Rules as people write them, and what they cover.

use super::*;
use crate::agent::Constraints;
use crate::policy::command_line::{CommandLine, Operator, SimpleCommand};
use crate::policy::{Action, ActionKind, Grant, GrantScope, Judgement, Mode, Permissions, Rules, Verdict, judge};

const ROOT: &str = "/home/u/project";

fn rule(list: List, text: &str) -> Rule {
    // As if it stood in the user's own settings.
    let origin = Origin { scope: RuleScope::User, file: "~/.claude/settings.json".into(), line: 7 };
    Rule::new(list, text, origin, &Anchors { root: ROOT, base: "/home/u/.claude", home: "/home/u" })
}

fn judged(rules: &[(List, &str)], tool: &str, action: &Action) -> Judgement {
    let rules = rules.iter().map(|(list, text)| rule(*list, text)).collect();
    let (permissions, free) =
        (Permissions { root: ROOT.into(), rules, ..Permissions::default() }, Constraints::default());
    judge(&Rules { permissions: &permissions, ..Rules::new(Mode::Default, &free) }, tool, action)
}

/// A line of plain words with `&&` and assignments, enough for the documented examples.
fn command(text: &str) -> Action {
    let part = |(index, text): (usize, &str)| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let sets = words.iter().take_while(|word| word.contains('=')).count();
        let env = words.iter().take(sets).filter_map(|word| word.split_once('='));
        SimpleCommand {
            join: if index == 0 { Operator::Then } else { Operator::And },
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            argv: words.iter().skip(sets).map(|word| (*word).to_owned()).collect(),
            flows: Vec::new(),
        }
    };
    let line = CommandLine::Plain(text.split(" && ").enumerate().map(part).collect());
    Action { kind: ActionKind::Execute, line: Some(line), ..Action::read(text) }
}

fn touch(kind: ActionKind, path: &str) -> Action {
    Action { kind, ..Action::read(path) }
}

#[test]
fn the_documented_examples() {
    use List::{Allow as Yes, Deny as No};
    use Verdict::{Allow, Ask, Deny};
    type Row = (&'static [(List, &'static str)], Action, Verdict);
    let table: [Row; 14] = [
        (&[(No, "Bash(aws *)"), (Yes, "Bash(aws s3 ls)")], command("aws s3 ls"), Deny),
        (&[(Yes, "Bash(aws s3 ls)"), (No, "Bash(aws *)")], command("aws s3 ls"), Deny),
        (&[(Yes, "Bash(safe *)")], command("safe x && rm y"), Ask),
        (&[(Yes, "Bash(safe *)")], command("safe x"), Allow),
        (&[(Yes, "Bash(npm test *)")], command("timeout 30 npm test"), Allow),
        (&[(No, "Bash(rm *)")], command("FOO=1 rm -rf t"), Deny),
        (&[(Yes, "Edit(src/**)")], touch(ActionKind::Write, "vendor/p/src/a"), Ask),
        (&[(Yes, "Edit(src/**)")], touch(ActionKind::Write, "src/a/b"), Allow),
        (&[(No, "Edit(src/**)")], touch(ActionKind::Write, "vendor/p/src/a"), Deny),
        (&[(No, "Read(.env)")], touch(ActionKind::Read, ".env"), Deny),
        (&[(No, "Read(.env)")], touch(ActionKind::Read, "a/b/.ENV"), Deny),
        (&[(No, "Read(/secrets/**)")], touch(ActionKind::Read, "secrets/a"), Allow),
        (&[(No, "Read(/secrets/**)")], touch(ActionKind::Read, "../.claude/secrets/a"), Deny),
        (&[(No, "Read(~/.claude/**)")], touch(ActionKind::Read, "/home/u/.claude/x"), Deny),
    ];
    for (rules, action, want) in table {
        assert_eq!(judged(rules, "t", &action).verdict, want, "{rules:?} {action:?}");
    }
}

/// Whoever asks who allowed a line of several parts is told all of them, once each and in order; of one, only that.
#[test]
fn every_rule_that_took_part_is_named() {
    let rules = [(List::Allow, "Bash(safe *)"), (List::Allow, "Bash(make *)")];
    let both = judged(&rules, "t", &command("make x && safe y && make z"));
    let rules_of = |judged: &Judgement| judged.all().iter().map(|rule| rule.contains("make")).collect::<Vec<_>>();
    assert_eq!((both.verdict, rules_of(&both)), (Verdict::Allow, vec![true, false]), "{both:?}");
    let one = judged(&rules, "t", &command("make x"));
    assert!(one.rules.is_empty() && one.all() == [one.rule.clone()], "{one:?}");
    let asked = judged(&rules, "t", &command("make x && other y"));
    assert!(asked.verdict == Verdict::Ask && asked.rules.is_empty(), "{asked:?}");
}

#[test]
fn commands_fit_by_words() {
    let table = [
        ("npm run build", "npm run build", true),
        ("npm run build", "npm run build x", false),
        ("npm run *", "npm run", true),
        ("npm run *", "npm run x y", true),
        ("npm run:*", "npm run x y", true),
        ("npm run:*", "npm runx", false),
        ("ls*", "ls", true),
        ("ls*", "lsof -i", true),
        ("ls *", "lsof", false),
        ("git * main", "git push origin main", true),
        ("git * main", "git push origin main x", false),
        ("* --version", "node --version", true),
        ("*", "anything at all", true),
        ("echo 'a b'", "echo a b", false),
    ];
    for (pattern, line, want) in table {
        let rule = rule(List::Allow, &format!("Bash({pattern})"));
        let argv = line.split(' ').map(str::to_owned).collect();
        let spelled = [Spelling::new(argv, true)];
        assert_eq!(rule.fits("run_shell", &[], RuleSubject::Command(&spelled)), want, "{pattern} {line}");
    }
    let quoted = |argv: &[&str]| [Spelling::new(argv.iter().map(|word| (*word).to_owned()).collect(), true)];
    let fits = |list, text: &str, argv: &[&str]| rule(list, text).fits("x", &[], RuleSubject::Command(&quoted(argv)));
    assert!(fits(List::Allow, "Bash(echo 'a b')", &["echo", "a b"]));
    assert!(!fits(List::Allow, "Bash(git *)", &["git x", "y"]), "a program whose name has a space");
    assert!(fits(List::Deny, "Bash(git *)", &["git x", "y"]), "a denial is held against whatever could be meant");
    assert!(fits(List::Deny, "Bash(rm -rf *)", &["RM", "-rf", "x"]));
    assert!(
        fits(List::Allow, "Bash(echo \\*)", &["echo", "*"]) && !fits(List::Allow, "Bash(echo \\*)", &["echo", "x"])
    );
}

#[test]
fn denials_see_through_spelling() {
    let deny = |text| {
        judged(&[(List::Deny, text), (List::Allow, "Bash")], "run_shell", &command("/usr/bin/git -C . push x")).verdict
    };
    assert_eq!(deny("Bash(git push *)"), Verdict::Deny);
    for line in [
        "/bin/rm x",
        "nice rm x",
        "timeout 5 /bin/rm x",
        "env rm x",
        "xargs rm x",
        "find . -exec rm x ;",
        "busybox rm x",
    ] {
        assert_eq!(judged(&[(List::Deny, "Bash(rm *)")], "run_shell", &command(line)).verdict, Verdict::Deny, "{line}");
    }
}

#[test]
fn links_have_two_ends() {
    let linked =
        |path: &str, real: &str| Action { links: vec![(path.into(), real.into())], ..touch(ActionKind::Write, path) };
    let allow = [(List::Allow, "Edit(src/**)")];
    assert_eq!(judged(&allow, "t", &linked("src/a", "/home/u/project/src/b")).verdict, Verdict::Allow);
    assert_eq!(judged(&allow, "t", &linked("src/a", "/home/u/project/docs/b")).verdict, Verdict::Ask);
    assert_eq!(judged(&allow, "t", &linked("src/a", "/etc/passwd")).verdict, Verdict::Ask);
    let deny = [(List::Deny, "Edit(docs/**)"), (List::Allow, "Edit")];
    assert_eq!(judged(&deny, "t", &linked("src/a", "/home/u/project/docs/b")).verdict, Verdict::Deny);
    assert_eq!(judged(&deny, "t", &linked("docs/a", "/home/u/project/src/b")).verdict, Verdict::Deny);
    let guarded = [(List::Allow, "Edit")];
    assert_eq!(judged(&guarded, "t", &linked("src/a", "/home/u/project/.git/config")).verdict, Verdict::Ask);
}

#[test]
fn hosts_tools_members_and_parameters() {
    let fetch = |rule: &str, host: &str| {
        judged(&[(List::Allow, rule)], "http_get", &touch(ActionKind::Fetch, host)).verdict == Verdict::Allow
    };
    assert!(
        fetch("WebFetch(domain:example.com)", "Example.COM.")
            && !fetch("WebFetch(domain:example.com)", "a.example.com")
    );
    assert!(
        fetch("WebFetch(domain:*.example.com)", "a.b.example.com")
            && !fetch("WebFetch(domain:*.example.com)", "example.com")
    );
    assert!(
        !fetch("WebFetch(domain:*.example.com)", "evilexample.com")
            && !fetch("WebFetch(domain:example.com)", "example.com.evil.org")
    );
    assert!(
        fetch("WebFetch(domain:api-*.x.org)", "api-1.x.org") && !fetch("WebFetch(domain:api-*.x.org)", "api-1.y.x.org")
    );
    assert!(fetch("web_fetch", "x.org") && fetch("http_get", "x.org") && !fetch("WebFetch(x.org)", "x.org"));
    for (rule, host, want) in [
        ("WebFetch(domain:x.org)", "x.org:8080", false),
        ("WebFetch(domain:x.*)", "x.org:8080", false),
        ("WebFetch(domain:*.x.org)", "a.x.org:8080", false),
        ("WebFetch(domain:x.org:8080)", "x.org:8080", true),
        ("WebFetch(domain:x.org:8080)", "x.org", false),
        ("WebFetch(domain:x.org:8080)", "x.org:8081", false),
        ("WebFetch(domain:x.org:*)", "x.org:8081", true),
        ("WebFetch(domain:x.org:*)", "x.org", true),
        ("WebFetch(domain:[::1]:8080)", "[::1]:8080", true),
        ("WebFetch(domain:[::1])", "[::1]:8080", false),
    ] {
        assert_eq!(fetch(rule, host), want, "{rule} {host}");
    }
    // A denial without a port means all of them, and a question names the one that is asked for.
    let denied = judged(&[(List::Deny, "WebFetch(domain:x.org)")], "http_get", &touch(ActionKind::Fetch, "x.org:8080"));
    assert_eq!(denied.verdict, Verdict::Deny);
    let asked = judged(&[], "http_get", &touch(ActionKind::Fetch, "x.org:8080"));
    assert_eq!(asked.memory.rules(), ["WebFetch(domain:x.org:8080)"]);
    assert!(asked.rule.contains("`x.org:8080`"), "{}", asked.rule);
}

#[test]
fn a_local_host_is_opened_by_its_name_alone() {
    for (rule, host, want) in [
        ("WebFetch(domain:localhost:3000)", "localhost:3000", true),
        ("WebFetch(domain:localhost:*)", "localhost:3000", true),
        ("WebFetch(domain:localhost:3000)", "localhost:3001", false),
        ("WebFetch(domain:127.0.0.1)", "127.0.0.1:8080", false),
        ("WebFetch(domain:[::1]:8080)", "[::1]:8080", true),
        ("WebFetch(domain:192.168.1.2:80)", "192.168.1.2:80", true),
        ("WebFetch", "localhost:3000", false),
        ("web_fetch", "127.0.0.1", false),
        ("WebFetch(domain:*)", "localhost", false),
        ("WebFetch(domain:*:*)", "10.0.0.1:80", false),
        ("WebFetch(domain:192.168.1.*)", "192.168.1.2", false),
        ("WebFetch(domain:*.0.0.1)", "127.0.0.1", false),
    ] {
        let found = judged(&[(List::Allow, rule)], "web_fetch", &touch(ActionKind::Fetch, host)).verdict;
        assert_eq!(found == Verdict::Allow, want, "{rule} {host}");
        assert_ne!(found, Verdict::Deny, "{rule} {host}");
    }
    let asked = judged(&[], "web_fetch", &touch(ActionKind::Fetch, "localhost:3000"));
    assert_eq!(asked.memory.rules(), ["WebFetch(domain:localhost:3000)"]);
    assert!(asked.rule.contains("on this machine") && asked.is_danger, "{asked:?}");
    let others =
        ["example.org", "wiki.local", "169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "0.0.0.0", "localhost.a.org"];
    assert!(others.iter().all(|host| !super::is_local_host(host)));
}

#[test]
fn searches_are_allowed_by_their_own_rule() {
    let search = |rules: &[(List, &str)]| judged(rules, "web_search", &touch(ActionKind::Fetch, "html.duckduckgo.com"));
    let asked = search(&[]);
    assert_eq!((asked.verdict, asked.memory.rules()), (Verdict::Ask, vec!["WebSearch".to_owned()].as_slice()));
    assert_eq!(search(&[(List::Allow, "WebSearch")]).verdict, Verdict::Allow);
    assert_eq!(search(&[(List::Allow, "web_search")]).verdict, Verdict::Allow);
    assert_eq!(search(&[(List::Allow, "WebSearch"), (List::Deny, "WebSearch")]).verdict, Verdict::Deny);
    let elsewhere = [("WebSearch", "WebSearch"), ("KillShell", "shell_stop"), ("shell_output", "BashOutput")];
    for (rule, call) in elsewhere {
        let judged = judged(&[(List::Deny, rule)], call, &touch(ActionKind::Query, "x.org"));
        assert_eq!(judged.verdict, Verdict::Deny, "{rule} {call}");
    }
    let fetch = judged(&[(List::Allow, "WebSearch")], "web_fetch", &touch(ActionKind::Fetch, "x.org"));
    assert_eq!(fetch.verdict, Verdict::Ask);
    let own = judged(&[(List::Deny, "WebSearch")], "web_search", &touch(ActionKind::Query, "api.tavily.com"));
    assert_eq!(own.verdict, Verdict::Deny, "also a service that is set up");

    let team = |rules: &[(List, &str)], tool: &str, parameters: &[(&str, &str)]| {
        let parameters = parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        judged(rules, tool, &Action { parameters, ..touch(ActionKind::Team, "leo") }).verdict
    };
    assert_eq!(team(&[], "dispatch_task", &[]), Verdict::Allow);
    assert_eq!(team(&[(List::Deny, "Agent(leo)")], "dispatch_task", &[]), Verdict::Deny);
    assert_eq!(team(&[(List::Deny, "Agent(ada)")], "dispatch_task", &[]), Verdict::Allow);
    assert_eq!(team(&[(List::Ask, "Agent(model:opus)")], "dispatch_task", &[("model", "opus")]), Verdict::Ask);
    assert_eq!(team(&[(List::Ask, "Agent(model:opus)")], "dispatch_task", &[("model", "haiku")]), Verdict::Allow);
    for (rule, want) in [
        ("mcp__db", true),
        ("mcp__db__*", true),
        ("mcp__db__query", true),
        ("mcp__dbx", false),
        ("mcp__*", true),
        ("*", true),
        ("mcp__db__drop", false),
    ] {
        let said = team(&[(List::Deny, rule)], "mcp__db__query", &[]);
        assert_eq!(said == Verdict::Deny, want, "{rule}");
    }
}

#[test]
fn a_rule_about_one_skill_leaves_the_others() {
    let load = |list: List, text: &str, kind: ActionKind, name: &str| {
        let parameters = vec![("name".to_owned(), name.to_owned())];
        judged(&[(list, text)], "skill", &Action { parameters, ..touch(kind, name) }).verdict
    };
    for name in ["pdf", "天气", "team:deploy-it.2"] {
        let text = format!("skill(name:{name})");
        assert_eq!(rule(List::Deny, &text).flaw(), None, "{text}");
        assert!(!rule(List::Deny, &text).denies_tool("skill"), "{text}");
        for kind in [ActionKind::Query, ActionKind::Team] {
            assert_eq!(load(List::Deny, &text, kind, name), Verdict::Deny, "{text}");
            assert_eq!(load(List::Ask, &text, kind, name), Verdict::Ask, "{text}");
            assert_eq!(load(List::Deny, &text, kind, "other"), Verdict::Allow, "{text}");
        }
    }
    // What is not understood still covers all.
    assert_eq!(load(List::Deny, "skill(path:pdf)", ActionKind::Query, "other"), Verdict::Deny);
}

#[test]
fn empty_brackets_allow_nothing() {
    use Verdict::{Allow, Ask, Deny};
    let actions = || {
        [
            ("run_shell", "Bash", command("make x")),
            ("edit_file", "Edit", touch(ActionKind::Write, "a")),
            ("http_get", "WebFetch", touch(ActionKind::Fetch, "a.org")),
        ]
    };
    for (tool, name, action) in actions() {
        for (list, text, want) in [
            (List::Allow, name.to_owned(), Allow),
            (List::Allow, format!("{name}()"), Ask),
            (List::Allow, format!("{name}( )"), Ask),
            (List::Deny, format!("{name}()"), Deny),
        ] {
            assert_eq!(judged(&[(list, &text)], tool, &action).verdict, want, "{text}");
            assert_eq!(rule(list, &text).flaw().is_some(), want == Ask, "{text}");
        }
    }
    assert_eq!(judged(&[(List::Allow, "WebFetch(domain:)")], "http_get", &touch(ActionKind::Fetch, "")).verdict, Ask);
}

#[test]
fn flaws_are_taken_strictly() {
    let table = [
        (List::Allow, "*", "a permission for tools by `*`"),
        (List::Allow, "mcp__*", "a permission for tools by `*`"),
        (List::Allow, "Write(src/**)", "`Write(path)` is never consulted"),
        (List::Deny, "Write(src/**)", "`Write(path)` is never consulted"),
        (List::Allow, "Glob(src/**)", "`Glob(path)` is never consulted"),
        (List::Allow, "Bash(ls", "it is not of the form"),
        (List::Deny, "Edit([a)", "its path cannot be read: a `[` has no `]`"),
        (List::Allow, "Agent(model:opus)", "`model:opus` holds for `deny` and `ask` only"),
        (List::Allow, "WebFetch(x.org)", "`WebFetch` takes no `(x.org)`"),
        (List::Allow, "some_tool(x)", "`some_tool` takes no `(x)`"),
    ];
    for (list, text, want) in table {
        let flaw = rule(list, text).flaw().map(ToString::to_string).unwrap_or_default();
        assert!(flaw.starts_with(want), "{text}: {flaw}");
    }
    let write = |rules: &[(List, &str)]| judged(rules, "write_file", &touch(ActionKind::Write, "src/a")).verdict;
    assert_eq!(write(&[(List::Allow, "Write(src/**)")]), Verdict::Ask);
    assert_eq!(write(&[(List::Deny, "Write(src/**)"), (List::Allow, "Edit")]), Verdict::Deny);
    assert_eq!(write(&[(List::Deny, "Edit([a)")]), Verdict::Deny);
    assert_eq!(write(&[(List::Allow, "Edit([a)")]), Verdict::Ask);
    assert_eq!(write(&[(List::Allow, "write_file(src/**)")]), Verdict::Allow);
    assert_eq!(write(&[(List::Allow, "edit_file(src/**)")]), Verdict::Ask);
}

#[test]
fn a_verdict_names_its_rule_and_its_recourse() {
    let judged = judged(&[(List::Deny, "Bash(git push *)")], "run_shell", &command("git push"));
    assert_eq!(judged.rule, "the rule `deny: Bash(git push *)` (~/.claude/settings.json:7)");
    assert_eq!(judged.origin.unwrap().line, 7);
    assert_eq!(judged.hint.to_string(), "only without that rule: no permission beats a denial");
}

#[test]
fn rules_survive_the_journal() {
    for text in [
        "Bash(git log:*)",
        "Edit(/src/**)",
        "Read(//etc/**)",
        "WebFetch(domain:*.x.org)",
        "mcp__a",
        "Bash((",
        "Write(x)",
    ] {
        for list in [List::Deny, List::Ask, List::Allow] {
            let rule = rule(list, text);
            let kept: Rule = serde_json::from_str(&serde_json::to_string(&rule).unwrap()).unwrap();
            assert_eq!(kept, rule);
        }
    }
}

#[test]
fn a_tool_that_is_denied_whole_is_taken_away() {
    let table = [
        ("Bash", "run_shell", true),
        ("Bash(*)", "exec", true),
        ("Bash(rm *)", "run_shell", false),
        ("Edit", "write_file", true),
        ("write_file", "write_file", true),
        ("write_file", "edit_file", false),
        ("Read", "read_file", true),
        ("Agent", "dispatch_task", true),
        ("Agent(leo)", "dispatch_task", false),
        ("query_log", "query_log", true),
        ("TaskList", "task_query", true),
        ("TaskCreate", "task_update", false),
        ("query_log", "query_metrics", false),
    ];
    for (text, tool, want) in table {
        assert_eq!(rule(List::Deny, text).denies_tool(tool), want, "{text} {tool}");
        assert!(!rule(List::Ask, text).denies_tool(tool), "{text} only asks");
    }
}

#[test]
fn a_file_that_the_run_was_given_by_name_always_asks() {
    let free = Constraints::default();
    let guarded = vec![format!("{ROOT}/team/mine.yaml"), "/etc/mine.yaml".to_owned()];
    let permissions = Permissions { root: ROOT.into(), guarded, ..Permissions::default() };
    let rules = Rules { permissions: &permissions, ..Rules::new(Mode::BypassPermissions, &free) };
    let table = [("team/mine.yaml", true), ("/etc/mine.yaml", true), ("team", true), ("team/other.yaml", false)];
    for (path, asks) in table {
        let judged = judge(&rules, "write_file", &touch(ActionKind::Write, path));
        assert_eq!((judged.verdict == Verdict::Ask, judged.is_danger), (asks, asks), "{path}: {}", judged.rule);
    }
}

#[test]
fn outside_the_project_only_a_rule_with_a_path_allows() {
    let table = [
        ("Edit", "src/a", Verdict::Allow),
        ("Edit", "/etc/hosts", Verdict::Ask),
        ("write_file", "/etc/hosts", Verdict::Ask),
        ("Edit(//etc/hosts)", "/etc/hosts", Verdict::Allow),
        ("Edit(~/**)", "/home/u/x", Verdict::Allow),
    ];
    for (text, path, want) in table {
        let judged = judged(&[(List::Allow, text)], "write_file", &touch(ActionKind::Write, path));
        assert_eq!(judged.verdict, want, "{text} {path}");
    }
    let free = Constraints::default();
    let permissions = Permissions { root: ROOT.into(), ..Permissions::default() };
    let grants = [Grant::rule("Edit", GrantScope::Session, ROOT)];
    let rules = Rules { permissions: &permissions, grants: &grants, ..Rules::new(Mode::Default, &free) };
    assert_eq!(judge(&rules, "edit_file", &touch(ActionKind::Write, "src/a")).verdict, Verdict::Allow);
    assert_eq!(judge(&rules, "edit_file", &touch(ActionKind::Write, "/etc/hosts")).verdict, Verdict::Ask);
}

#[test]
fn an_exact_rule_also_holds_in_unattended_runs() {
    let table = [
        ("Bash(python3 -c x)", "python3 -c x", Verdict::Allow),
        ("Bash(python3 -c x)", "python3 -c y", Verdict::Deny),
        ("Bash(cp a /tmp/b)", "cp a /tmp/b", Verdict::Allow),
        ("Bash(git push)", "git push", Verdict::Deny),
    ];
    for (text, line, want) in table {
        let permissions =
            Permissions { root: ROOT.into(), rules: vec![rule(List::Allow, text)], ..Permissions::default() };
        let free = Constraints::default();
        let rules = Rules { permissions: &permissions, ..Rules::new(Mode::DontAsk, &free) };
        let judged = judge(&rules, "run_shell", &command(line));
        assert_eq!(judged.verdict, want, "{text} {line}: {}", judged.rule);
    }
    let rules = vec![rule(List::Allow, "Bash(python3 -c x)"), rule(List::Ask, "Bash(python3:*)")];
    let (permissions, free) =
        (Permissions { root: ROOT.into(), rules, ..Permissions::default() }, Constraints::default());
    let rules = Rules { permissions: &permissions, ..Rules::new(Mode::DontAsk, &free) };
    assert_eq!(judge(&rules, "run_shell", &command("python3 -c x")).verdict, Verdict::Deny, "a rule that asks");
}

#[test]
fn constraints_do_not_mean_places_outside_of_the_same_name() {
    let words = |word: &str| vec![word.to_owned()];
    let kept = Constraints { allowed_dirs: Some(words("src")), ..Constraints::default() };
    let named = Constraints { write_patterns: Some(words("src/**")), ..Constraints::default() };
    let permissions = Permissions { root: ROOT.into(), ..Permissions::default() };
    let table = [
        (&kept, ActionKind::Read, "/src/x", true),
        (&kept, ActionKind::Write, "/src/x", true),
        (&kept, ActionKind::Read, "src/x", false),
        (&named, ActionKind::Write, "/src/x", true),
        (&named, ActionKind::Read, "/src/x", false),
        (&named, ActionKind::Write, "src/x", false),
    ];
    for (constraints, kind, path, is_denied) in table {
        let rules = Rules { permissions: &permissions, ..Rules::new(Mode::BypassPermissions, constraints) };
        let judged = judge(&rules, "a_tool", &touch(kind, path));
        assert_eq!(judged.verdict == Verdict::Deny, is_denied, "{kind:?} {path}: {}", judged.rule);
    }
}

#[test]
fn additional_folders_and_paths_outside_all_of_them() {
    let open = Permissions { root: ROOT.into(), also: vec!["/home/u/shared".into()], ..Permissions::default() };
    let shut = Permissions { no_reads_outside: true, no_writes_outside: true, ..open.clone() };
    let mute = Permissions { never_asks: true, ..open.clone() };
    let rules = vec![rule(List::Allow, "Read(//etc/**)"), rule(List::Deny, "Read(~/shared/keys/**)")];
    let allowed = Permissions { rules, ..shut.clone() };
    let kept = Constraints { allowed_dirs: Some(vec!["src".into()]), ..Constraints::default() };
    let free = Constraints::default();
    let read = |path| touch(ActionKind::Read, path);
    let write = |path| touch(ActionKind::Write, path);
    use Mode::{AcceptEdits, BypassPermissions, Default};
    use Verdict::{Allow, Ask, Deny};
    let table = [
        (&open, &free, Default, read("/home/u/shared/a.rs"), Allow),
        (&open, &free, Default, read("/home/u/shared"), Allow),
        (&open, &free, Default, read("/home/u/shared-not/a.rs"), Ask),
        (&open, &free, Default, read("../shared/a.rs"), Allow),
        (&open, &free, Default, write("/home/u/shared/a.rs"), Ask),
        (&open, &free, AcceptEdits, write("/home/u/shared/a.rs"), Allow),
        (&open, &free, AcceptEdits, write("/home/u/other/a.rs"), Ask),
        (&open, &free, BypassPermissions, write("/home/u/shared/.git/hooks/x"), Ask),
        (&open, &kept, Default, read("/home/u/shared/a.rs"), Deny),
        (&shut, &free, BypassPermissions, read("/etc/hosts"), Deny),
        (&shut, &free, BypassPermissions, write("/home/u/x"), Deny),
        (&shut, &free, Default, read("/home/u/shared/a.rs"), Allow),
        (&shut, &free, Default, read("src/a.rs"), Allow),
        (&shut, &free, Default, read("/dev/null"), Allow),
        (&allowed, &free, Default, read("/etc/hosts"), Deny),
        (&allowed, &free, Default, read("/home/u/shared/keys/a"), Deny),
        (&mute, &free, Default, write("src/a.rs"), Deny),
        (&mute, &free, AcceptEdits, write("src/a.rs"), Allow),
        (&mute, &free, BypassPermissions, command("git push"), Deny),
    ];
    for (permissions, constraints, mode, action, want) in table {
        let judged = judge(&Rules { permissions, ..Rules::new(mode, constraints) }, "run_shell", &action);
        assert_eq!(judged.verdict, want, "{mode:?} {}: {judged:?}", action.target);
    }
    let told = judge(&Rules { permissions: &mute, ..Rules::new(Default, &free) }, "run_shell", &write("src/a.rs"));
    assert_eq!(told.rule, "permission mode `default`; settings say `denyInsteadOfPrompting`");
    let back: Permissions = serde_json::from_str(&serde_json::to_string(&shut).unwrap()).unwrap();
    assert_eq!(back, shut);
}
