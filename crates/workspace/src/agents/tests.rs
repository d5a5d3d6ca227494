//! Agents files: what loads, what is said about those that do not, and who is whose.

use std::fs;

use max_team_core::policy::{Action, ActionKind, Mode, Permissions, Rules, Verdict, judge};
use max_team_tools::{Registry, shell};
use tempfile::TempDir;

use super::*;
use crate::config::Env;
use crate::i18n::Lang;

/// The example of the first design, word for word.
const FIRST_DESIGN: &str = include_str!("fixtures/first_design.yaml");

struct Table {
    _folder: TempDir,
    place: AppEnv,
}

fn fixture(files: &[(&str, &str)]) -> Table {
    let folder = TempDir::new().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    for (name, text) in files {
        let path = cwd.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let env: Env = [("HOME", "/nowhere"), ("WHO", "a poet"), ("MAX_TEAM_PROJECT_LANG", "Go")].into_iter().collect();
    Table { place: AppEnv { env, home: cwd.join("home"), cwd, wished: None, notice: |_| {} }, _folder: folder }
}

/// Reads a file that was named by the user.
fn named(text: &str) -> Result<Team, CliError> {
    let fixture = fixture(&[("a.yaml", text)]);
    team(Some(Path::new("a.yaml")), &fixture.place)
}

fn wrong(text: &str) -> String {
    let stop = named(text).unwrap_err();
    assert_eq!(stop.exit, Exit::Config);
    stop.message
}

const MAX: &str = "agents:\n- {name: max, role: team_lead, system_prompt: x}\n";

#[test]
fn the_built_in_team_loads_and_is_quiet() {
    let fixture = fixture(&[]);
    let team = team(None, &fixture.place).unwrap();
    let names: Vec<&str> = team.members.iter().map(|member| member.definition.name.as_str()).collect();
    assert_eq!((team.source.get(Lang::En), team.lead.definition.name.as_str()), ("the built-in team", "max"));
    assert_eq!(names, ["leo", "ada", "ray", "sam"]);
    let experts = team.experts.iter().map(|expert| (expert.definition.name.as_str(), expert.definition.builtin));
    let names = ["earthquake", "explore", "general", "hotel", "memory", "narrator", "plan", "train", "weather"];
    assert!(experts.eq(names.map(|name| (name, true))));
    assert_eq!(team.warnings, Vec::<String>::new());
    assert!(
        tool_roles::for_leads().eq(tool_roles::lead_tools(&team.lead.definition)),
        "the built-in lead has every tool of a lead"
    );
    for member in team.members.iter().chain([&team.lead]) {
        let lines = member.definition.prompt.lines().count();
        assert!((15..=60).contains(&lines), "{}: {lines}", member.definition.name);
        assert_eq!(member.model, None);
        assert!(member.definition.prompt.lines().all(|line| line.chars().count() <= 120));
    }
    let known = max_team_runtime::with_team(Registry::builtin());
    assert!(team.members.iter().flat_map(|member| &member.definition.tools).all(|tool| known.get(tool).is_some()));
}

#[test]
fn the_built_in_tester_writes_tests_of_any_language_and_nothing_else() {
    let fixture = fixture(&[]);
    let team = team(None, &fixture.place).unwrap();
    let ray = team.members.iter().find(|member| member.definition.name == "ray").unwrap();
    let rules = Rules { approved: true, ..Rules::new(Mode::AcceptEdits, &ray.constraints) };
    let may = |path: &str| {
        judge(&rules, "write_file", &Action { kind: ActionKind::Write, ..Action::read(path) }).verdict == Verdict::Allow
    };
    for path in [
        "a/b_test.go",
        "test_x.py",
        "pkg/x_test.py",
        "web/a.test.ts",
        "web/a.spec.js",
        "tests/it/main.rs",
        "crates/x/tests/it/main.rs",
        "src/XTest.java",
        "x_test.rs",
        "spec/models/a_spec.rb",
        "web/src/__tests__/a.js",
    ] {
        assert!(may(path), "{path}");
    }
    for path in ["main.go", "src/lib.rs", "tests", "src/contest.py", "tests/.env", "tests/secrets/a.py"] {
        assert!(!may(path), "{path}");
    }
}

/// What a coder does all day, in the built-in coder's hands with an approved plan behind it.
const ORDINARY: [&str; 69] = [
    "ls -la src",
    "cat README.md",
    "head -n 20 src/main.rs",
    "tail -5 build.log",
    "wc -l src/main.rs",
    "grep -rn TODO src",
    "rg 'fn main' src",
    "find . -name '*.rs' -type f",
    "find src -name '*.go' -exec grep -n foo {} +",
    "cat a.txt | sort | uniq -c | sort -rn | head -5",
    "diff -u a.txt b.txt",
    "stat Cargo.toml",
    "du -sh src",
    "echo done",
    "printf 'a b'",
    "test -f Cargo.toml && echo yes || echo no",
    "jq .version package.json",
    "sed -n '1,20p' src/main.rs",
    "sed -i s/a/b/ src/main.rs",
    "git status",
    "git status --short",
    "git branch -a",
    "git ls-files src",
    "git rev-parse HEAD",
    "mkdir -p src/new",
    "touch src/new/mod.rs",
    "cp src/a.rs src/b.rs",
    "mv src/a.rs src/b.rs",
    "rm src/old.rs",
    "rm -rf target/tmp",
    "chmod +x scripts/build.sh",
    "go build ./...",
    "go test ./...",
    "go test -run TestX -count=1 -v ./pkg",
    "go vet ./...",
    "go fmt ./...",
    "go mod tidy",
    "gofmt -l src",
    "cargo build",
    "cargo build --release",
    "cargo check --all-targets",
    "cargo clippy -- -D warnings",
    "cargo test -p core --lib",
    "cargo test 2>&1 | tail -20",
    "cargo fmt --all",
    "RUST_BACKTRACE=1 cargo test",
    "timeout 300 cargo test",
    "cd crates/core && cargo test",
    "cargo --version",
    "npm test",
    "npm run build",
    "npm run lint -- --fix",
    "pnpm test",
    "yarn test",
    "tsc --noEmit",
    "eslint src",
    "pytest -q tests/test_x.py",
    "python3 -m pytest -q",
    "ruff check .",
    "make test",
    "make -j4 build",
    "cmake --build build",
    "./gradlew test",
    "./scripts/check.sh --fast",
    "sh scripts/check.sh",
    "python3 main.py --help",
    "python3 -m app",
    "node tools/build.mjs",
    "npm start",
];

#[test]
fn the_built_in_coder_works_without_questions_and_no_further() {
    let fixture = fixture(&[]);
    let team = team(None, &fixture.place).unwrap();
    let leo = team.members.iter().find(|member| member.definition.name == "leo").unwrap();
    let root = "/home/u/project";
    let permissions = Permissions { root: root.into(), ..Permissions::default() };
    let rules = |mode| Rules {
        approved: true,
        sandboxed: true,
        permissions: &permissions,
        ..Rules::new(mode, &leo.constraints)
    };
    let judged = |mode, line: &str| judge(&rules(mode), "run_shell", &shell::action(line, root.as_ref()));
    for line in ORDINARY {
        let judged = judged(Mode::Default, line);
        assert_eq!(judged.verdict, Verdict::Allow, "{line}: {}", judged.rule);
    }
    // The sandbox decides about code that cannot be seen; what is dangerous asks, whatever a plan says.
    for (line, verdict) in [
        ("sh -c ls", Verdict::Allow),
        ("python3 -c 'print(1)'", Verdict::Allow),
        ("find . -exec sh -c ls \\;", Verdict::Allow),
        ("ls $HOME", Verdict::Allow),
        ("ls &", Verdict::Allow),
        ("cat .env", Verdict::Deny),
        ("curl https://example.org", Verdict::Ask),
        ("git push", Verdict::Ask),
        ("python3 ../elsewhere.py", Verdict::Ask),
        ("make deploy", Verdict::Ask),
        ("rm -rf ..", Verdict::Ask),
        ("cp x .git/hooks/pre-commit", Verdict::Ask),
        ("rm -rf .", Verdict::Ask),
        ("npm run publish", Verdict::Ask),
    ] {
        assert_eq!(judged(Mode::Default, line).verdict, verdict, "{line}");
        let is_free = judged(Mode::BypassPermissions, line).verdict == Verdict::Allow;
        assert!(!is_free || verdict == Verdict::Allow || line.contains("elsewhere"), "{line}");
    }
}

#[test]
fn the_first_designs_own_file_loads() {
    let team = named(FIRST_DESIGN).unwrap();
    assert!(team.lead.definition.prompt.starts_with("你是 Max,一个专业的项目经理和私人助理。\n"));
    assert_eq!(team.lead.definition.tools, ["task_create", "task_update", "task_query", "dispatch_task", "ask_user"]);
    assert_eq!(team.lead.constraints.timeout_ms, Some(60_000));
    let [leo, ada, ray, sam] = team.members.as_slice() else { panic!("{:?}", team.members) };
    assert_eq!(leo.model.as_deref(), Some("claude-opus-4-7"));
    assert_eq!(leo.mcp_servers[0].args, ["gitnexus-mcp"]);
    let commands = leo.constraints.allowed_commands.as_ref().unwrap();
    assert!(commands.contains(&"go mod tidy".to_owned()) && commands.len() == 10);
    assert_eq!((leo.constraints.max_tokens, leo.constraints.timeout_ms), (Some(8_192), Some(300_000)));
    assert_eq!(ada.mcp_servers.len(), 2);
    assert_eq!(ray.constraints.write_patterns.as_deref(), Some(&["*_test.go".to_owned()][..]));
    assert_eq!((sam.definition.tools.len(), sam.definition.role.as_str()), (2, "ops"));
    assert!(leo.definition.tools.contains(&"run_shell".to_owned()));
    assert!(team.warnings.iter().all(|warning| !warning.contains("not available yet")), "{:?}", team.warnings);
    assert!(team.warnings.iter().all(|warning| warning.starts_with("a.yaml:")), "{:?}", team.warnings);
}

#[test]
fn an_empty_list_of_an_agents_file_allows_nothing() {
    let text = |lead: &str, member: &str| {
        format!(
            "agents:\n  - {{name: max, role: team_lead, system_prompt: p{lead}}}\n  - {{name: leo, role: coder, system_prompt: p{member}}}\n"
        )
    };
    let none = Some(Vec::new());
    let all = named(&text("", "")).unwrap();
    assert!(!tool_roles::lead_tools(&all.lead.definition).is_empty(), "a lead without a list has every tool of a lead");
    let made = named(&text(", tools: []", ", tools: [], mcp_servers: []")).unwrap();
    assert_eq!(tool_roles::lead_tools(&made.lead.definition), Vec::<String>::new());
    assert!(made.members[0].definition.tools.is_empty() && !made.members[0].definition.inherits_tools);
    assert!(made.members[0].mcp_servers.is_empty());
    let limits = ", constraints: {allowed_dirs: [], write_patterns: [], allowed_commands: [], allowed_hosts: []}";
    let limits = named(&text("", limits)).unwrap().members[0].constraints.clone();
    assert_eq!((&limits.allowed_dirs, &limits.write_patterns, &limits.allowed_commands), (&none, &none, &none));
    assert!(limits.allowed_hosts.is_empty(), "each host is asked about");
}

#[test]
fn hosts_that_need_no_question_are_the_users_to_name() {
    let hosts = |list: &str| {
        format!(
            "agents:\n  - {{name: max, role: team_lead, system_prompt: p}}\n  - {{name: leo, role: coder, system_prompt: p, constraints: {{allowed_hosts: {list}}}}}\n"
        )
    };
    let team_of = named(&hosts("[docs.rs, '*.example.org']")).unwrap();
    assert_eq!(team_of.members[0].constraints.allowed_hosts, ["docs.rs", "*.example.org"]);
    let strange = fixture(&[("config/agents.yaml", &hosts("[evil.org]"))]);
    let found = team(None, &strange.place).unwrap();
    assert!(found.members[0].constraints.allowed_hosts.is_empty());
    let held = "`leo.constraints.allowed_hosts` is held back: a project's file may not loosen what agents may do";
    assert!(found.warnings.iter().any(|warning| warning.contains(held)), "{:?}", found.warnings);
    let commands = hosts("[]").replace("allowed_hosts: []", "allowed_commands: [make]");
    let strange = fixture(&[("config/agents.yaml", &commands)]);
    assert!(team(None, &strange.place).unwrap().members[0].constraints.foreign_commands);
    assert!(!named(&commands).unwrap().members[0].constraints.foreign_commands);
    let ours = team(None, &fixture(&[]).place).unwrap();
    assert!(ours.members.iter().all(|member| !member.constraints.foreign_commands), "ours vouch for what they name");
    for wrong in ["['http://a']", "['*']", "['a b']", "['*.']"] {
        assert!(named(&hosts(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn a_project_brings_its_team_but_no_programs() {
    let leo = |prompt: &str| FIRST_DESIGN.replace("你是 Leo", prompt);
    let desk1 = fixture(&[("config/agents.yaml", &leo("一")), (".max-team/agents.yaml", &leo("二"))]);
    let found = team(None, &desk1.place).unwrap();
    assert_eq!(found.source.get(Lang::En), "config/agents.yaml");
    assert!(found.members[0].definition.prompt.starts_with('一') && found.members[0].mcp_servers.is_empty());
    let held = "`leo.mcp_servers` is held back: a project's file may not choose programs to run; to allow it, pass \
                `--agents config/agents.yaml`";
    assert!(found.warnings.iter().any(|warning| warning.contains(held)), "{:?}", found.warnings);

    // Another program's file under the common name is no mistake; its own name is.
    let foreign = "researcher:\n  role: x\n  goal: y\n";
    let desk2 = fixture(&[("config/agents.yaml", foreign), (".max-team/agents.yaml", &leo("二"))]);
    assert_eq!(team(None, &desk2.place).unwrap().source.get(Lang::En), ".max-team/agents.yaml");
    let desk3 = fixture(&[(".max-team/agents.yaml", foreign)]);
    let stop = team(None, &desk3.place).unwrap_err();
    assert!(stop.message.contains("there is no list `agents`"), "{}", stop.message);
    let desk4 = fixture(&[("config/agents.yaml", "agents:\n - {\n")]);
    assert!(team(None, &desk4.place).unwrap_err().message.starts_with("config/agents.yaml:"));

    let project = |prompt: &str| {
        let text = format!("agents:\n- {{name: max, role: lead, system_prompt: \"{prompt}\"}}\n");
        let fixture = fixture(&[("config/agents.yaml", &text)]);
        team(None, &fixture.place).map(|team| team.lead.definition.prompt).map_err(|stop| stop.message)
    };
    assert_eq!(project("${MAX_TEAM_PROJECT_LANG}"), Ok("Go".to_owned()));
    assert!(project("${WHO}").unwrap_err().contains("MAX_TEAM_PROJECT_"));
}

#[test]
fn variables_are_filled_in() {
    let text = "agents:\n- {name: max, role: lead, system_prompt: \"you are ${WHO}, $${x}\", model: \"${M:-inherit}\"}\n\
                - name: leo\n  role: coder\n  system_prompt: x\n  mcp_servers:\n  - {name: s, command: c, env: {A: \"${WHO}\", B: 1}}\n";
    let team = named(text).unwrap();
    assert_eq!((team.lead.definition.prompt.as_str(), team.lead.model), ("you are a poet, ${x}", None));
    assert_eq!(team.members[0].mcp_servers[0].env["A"], "a poet");
    assert!(wrong(&MAX.replace("x}", "\"${NOT}\"}")).contains("a.yaml:2:47: `max.system_prompt`: the variable `NOT`"));
}

#[test]
fn mistakes_are_placed_and_plain() {
    let with = |member: &str| format!("{MAX}- {member}\n");
    let cases = [
        ("", "a.yaml:1:1: `the file`: expected a map with `agents`, found nothing"),
        ("agents: leo\n", "a.yaml:1:9: `agents`: expected a list of agents, found `leo`"),
        ("agents: []\n", "a.yaml:1:1: the team has no lead: add `{name: max, role: team_lead"),
        (&with("{role: coder}"), "a.yaml:3:3: an agent has no `name`"),
        (&with("{name: leo}"), "a.yaml:3:10: `leo` has no `role`, such as `coder`"),
        (
            &with("{name: leo, role: x}"),
            "a.yaml:3:10: `leo` has no `system_prompt`; write one, or name one of `@builtin/max`",
        ),
        (&with("{name: leo, role: x, system_prompt: '@builtin/bob'}"), "there is no prompt `@builtin/bob`"),
        (&with("{name: max, role: x, system_prompt: x}"), "a.yaml:3:10: there is another `max` in line 2"),
        (&with("{name: Leo, role: x, system_prompt: x}"), "`name`: expected a short name of small letters"),
        (&with("{name: user, role: x, system_prompt: x}"), "`user` is a reserved name"),
        (&with("{name: bob, role: lead, system_prompt: x}"), "a.yaml:3:10: `bob` is a second lead beside `max`"),
        (&with("leo"), "a.yaml:3:3: `agent`: expected a map with `name`, `role`"),
        (
            &with("{name: leo, role: x, system_prompt: x, tools: read_file}"),
            "`leo.tools`: expected a list of words, found `read_file`",
        ),
        (
            &with("{name: leo, role: x, system_prompt: x, tools: [reed_file]}"),
            "there is no tool `reed_file`, did you mean `read_file`?",
        ),
        (&with("{name: leo, role: x, system_prompt: x, tools: [fly]}"), "there is no tool `fly`; the tools are `"),
        (
            &with("{name: leo, role: x, system_prompt: x, tools: [ask_user]}"),
            "`ask_user` belongs to the lead; a member asks with `need_clarify`",
        ),
        (
            &with("{name: leo, role: x, system_prompt: x, constraints: {timeout: soon}}"),
            "`leo.constraints.timeout`: expected a duration",
        ),
        (
            &with("{name: leo, role: x, system_prompt: x, constraints: {max_tokens: 0}}"),
            "`leo.constraints.max_tokens`: expected a whole number",
        ),
        (&with("{name: leo, role: x, system_prompt: x, constraints: {write_patterns: ['*.{a,b}']}}"), "a.yaml:3:"),
        (
            &with("{name: leo, role: x, system_prompt: x, constraints: {write_patterns: ['*.{a,b}']}}"),
            "the pattern `*.{a,b}` cannot be used: braces",
        ),
        (&with("{name: leo, role: x, system_prompt: x, constraints: {blocked_patterns: ['[a']}}"), "a `[` has no `]`"),
        (
            &with("{name: leo, role: x, system_prompt: x, constraints: {allowed_dirs: [../x]}}"),
            "expected a folder inside the project",
        ),
        (&with("{name: leo, role: x, system_prompt: x, mcp_servers: [{name: x}]}"), "a server has no `command`"),
        (
            &MAX.replace("x}", "x, tools: [submit_plan, read_file]}"),
            "`max`: the lead has no hands: `read_file` belongs to a member",
        ),
        (&MAX.replace("x}", "x, tools: [run_shell]}"), "the lead has no hands"),
        (&MAX.replace("x}", "x, tools: [submit_plam]}"), "there is no tool `submit_plam`, did you mean `submit_plan`?"),
    ];
    for (text, want) in cases {
        let message = wrong(text);
        assert!(message.contains(want), "{text}\n{message}\nwanted: {want}");
    }
    let message =
        wrong(&with("{name: leo, role: x, system_prompt: x, tools: [fly], constraints: {timeout: x}}\n- {name: Y}"));
    assert!(message.contains("timeout") && message.contains("`Y`"), "all at once: {message}");
}

#[test]
fn bounds_hold() {
    let many: String = (0..65).map(|n| format!("- {{name: a{n}, role: x, system_prompt: x}}\n")).collect();
    assert!(wrong(&format!("{MAX}{many}")).contains("66 agents are too many; a team has at most 64"));
    let long = format!("{MAX}# {}\n", "x".repeat(1 << 20));
    assert!(wrong(&long).contains("larger than 1024 KiB"));
    let stop = team(Some(Path::new("none.yaml")), &fixture(&[]).place).unwrap_err();
    assert!(stop.message.starts_with("none.yaml: cannot be read") && stop.exit == Exit::Config, "{}", stop.message);
}

#[test]
fn strange_keys_and_tools_to_come_are_told() {
    let text = "agents:\n- {name: max, role: lead, system_prompt: x, tool: []}\n- name: leo\n  role: x\n  system_prompt: x\n  \
                tools: [read_file, read_file, need_clarify, mcp__git__log, web_save]\n  constraints: {timeout: 250ms}\nteam: 1\n";
    let team = named(text).unwrap();
    assert_eq!(
        team.warnings,
        [
            "a.yaml:8:1: unknown key `team`",
            "a.yaml:2:45: unknown key `tool`, did you mean `tools`?",
            "a.yaml:6:62: `leo`: not available yet: left out `web_save`",
        ]
    );
    assert_eq!(team.members[0].definition.tools, ["read_file"]);
    assert_eq!(team.members[0].constraints.timeout_ms, Some(250));
    assert!(
        tool_roles::for_leads().eq(tool_roles::lead_tools(&team.lead.definition)),
        "a lead without tools has all of them"
    );
}

#[test]
fn a_misspelt_wall_is_no_wall() {
    let text = "agents:\n- {name: max, role: lead, system_prompt: x}\n- name: leo\n  role: x\n  system_prompt: x\n  \
                constraints:\n    block_patterns: [.env]\n    walls: 3\n";
    let message = wrong(text);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(
        lines[0],
        "a.yaml:7:5: `leo.constraints`: unknown key `block_patterns`, did you mean `blocked_patterns`? (a misspelt constraint does not apply)"
    );
    assert!(lines[1].starts_with("a.yaml:8:5: `leo.constraints`: unknown key `walls`"), "{message}");
}

#[test]
fn an_agent_named_max_leads_by_default() {
    let text = "agents:\n- {name: leo, role: coder, system_prompt: x}\n- {name: max, role: boss, system_prompt: x}\n";
    assert_eq!(named(text).unwrap().lead.definition.name, "max");
    let text = text.replace("role: coder", "role: lead");
    assert_eq!(named(&text).unwrap().lead.definition.name, "leo");
}

#[test]
fn one_member_can_be_talked_to() {
    let fixture = fixture(&[]);
    let ask = |talk: Selection| choose(&talk, &fixture.place);
    let leo = ask(Selection { agent: Some("leo".into()), ..Selection::default() }).unwrap();
    assert_eq!(leo.definition.role, "coder");
    assert!(leo.constraints.blocked_patterns.contains(&"*.pem".to_owned()));
    let stop = ask(Selection { agent: Some("bob".into()), ..Selection::default() }).err().unwrap();
    let want = "the built-in team: there is no agent `bob`; there are `max`, `leo`, `ada`, `ray`, `sam`, `earthquake`, `explore`, `general`, `hotel`, `memory`, `narrator`, `plan`, `train`, `weather`";
    assert_eq!((stop.exit, stop.message.as_str()), (Exit::Config, want));
    assert_eq!(ask(Selection { solo: true, ..Selection::default() }).unwrap().definition, setup::solo());
    assert_eq!(ask(Selection::default()).unwrap().definition, setup::solo());
}

#[test]
fn the_lead_is_told_the_members() {
    let text = "agents:\n- {name: max, role: lead, system_prompt: x}\n\
                - {name: leo, role: coder, system_prompt: x, tools: [read_file, write_file], constraints: \
                {allowed_dirs: [src, docs], blocked_patterns: ['*.env'], write_patterns: ['*.rs'], \
                allowed_commands: [cargo test], timeout: 5m}}\n\
                - {name: sam, role: ops, system_prompt: x, constraints: {allowed_dirs: [.]}}\n";
    let want = "# Your members\n\n\
        - `leo` (coder): changes only files like `*.rs`, sees only `src`, `docs`\n\
        - `sam` (ops): reads only\n";
    assert_eq!(roster(&named(text).unwrap().members), want);
    assert!(roster(&[]).contains("There are none"));
}
