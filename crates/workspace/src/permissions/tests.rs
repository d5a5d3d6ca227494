//! Settings files as they lie about, and what becomes of them.

use max_team_core::policy::{Action, ActionKind, Rules, Verdict, judge};

use super::*;
use crate::i18n::Lang;

struct Fixture {
    folder: tempfile::TempDir,
    place: AppEnv,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(at.join("p/.claude")).unwrap();
        std::fs::create_dir_all(at.join("p/.max-team")).unwrap();
        std::fs::create_dir_all(at.join(".claude")).unwrap();
        std::fs::create_dir_all(at.join("mt")).unwrap();
        let env =
            [("HOME", at.to_str().unwrap()), ("MAX_TEAM_HOME", at.join("mt").to_str().unwrap())].into_iter().collect();
        let place = AppEnv { env, cwd: at.join("p"), home: at.join("mt"), wished: None, notice: |_| {} };
        Self { folder, place }
    }

    fn put(&self, path: &str, text: &str) {
        std::fs::write(self.folder.path().join(path), text).unwrap();
    }

    fn load(&self) -> LoadedPermissions {
        self.try_load().unwrap()
    }

    fn try_load(&self) -> Result<LoadedPermissions, CliError> {
        load(&self.place, &self.place.cwd, &RuleFlags::default())
    }

    fn shown(&self) -> Vec<String> {
        self.load().permissions.rules.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn unsupported_settings_are_named() {
    let fixture = Fixture::new();
    fixture.put(
        "p/.claude/settings.json",
        r#"{"env": {"A": "1", "B": "2"}, "model": "opus", "apiKeyHelper": "x", "statusLine": {"type": "command"}, "theme": "",
            "enabledPlugins": {"a@b": true}, "hooks": {"Stop": [{"hooks": []}], "PreToolUse": []}}"#,
    );
    std::fs::create_dir_all(fixture.folder.path().join("p/.claude/commands")).unwrap();
    fixture.put("p/.claude/commands/fix.md", "x");
    std::fs::create_dir_all(fixture.folder.path().join("p/.claude/agents")).unwrap();
    fixture.put("p/.mcp.json", r#"{"mcpServers": {"github": {"command": "npx"}}}"#);
    let loaded = fixture.load();
    let named: Vec<String> =
        loaded.unused.iter().map(|one| format!("{} {} {}", one.what, one.place, one.names.join(","))).collect();
    assert_eq!(
        named,
        [
            "hooks.Stop .claude/settings.json ",
            "env .claude/settings.json A,B",
            "model .claude/settings.json ",
            "apiKeyHelper .claude/settings.json ",
            "statusLine .claude/settings.json type",
            "enabledPlugins .claude/settings.json a@b",
            "commands .claude/commands fix.md",
        ]
    );
    let line = "not used from .claude/: hooks.Stop, env (2), model, apiKeyHelper, statusLine (1), \
                enabledPlugins (1), commands (1); `max-team doctor` lists it";
    assert!(loaded.warnings.contains(&line.to_owned()), "{:?}", loaded.warnings);
    assert!(loaded.hooks.is_empty());
    assert!(Fixture::new().load().warnings.is_empty(), "nothing to name, nothing said");
}

#[test]
fn actions_that_a_hook_covers_are_asked_about_until_the_user_goes_on_without_it() {
    let hook = |command: &str| {
        format!(
            "{{\"hooks\": {{\"PreToolUse\": [\n{{\"matcher\": \"Bash|Write\", \"hooks\": [{{\"type\": \"command\", \"command\": \"{command}\"}}]}}]}}}}"
        )
    };
    let fixture = Fixture::new();
    fixture.put("p/.claude/settings.json", &hook("guard.sh"));
    let loaded = fixture.load();
    assert_eq!(fixture.shown(), ["`ask: Bash` (.claude/settings.json:2)", "`ask: Edit` (.claude/settings.json:2)"]);
    let none = max_team_core::agent::Constraints::default();
    let mode = |mode| Rules { permissions: &loaded.permissions, ..Rules::new(mode, &none) };
    let action = Action { kind: ActionKind::Write, ..Action::read("a.txt") };
    let judged = judge(&mode(Mode::BypassPermissions), "write_file", &action);
    assert_eq!(judged.verdict, Verdict::Ask);
    assert_eq!(judged.rule, "a `PreToolUse` hook (.claude/settings.json:2) covers `Edit` and is not run here");
    assert_eq!(judged.hint.to_string(), "`max-team permissions trust` goes on without the hook");
    let judged = judge(&mode(Mode::DontAsk), "write_file", &action);
    assert_eq!(judged.verdict, Verdict::Deny);
    // A yes holds for this command of the hook.
    let word = loaded.hooks.first().map(|(hook, _)| hook.word()).unwrap();
    TrustedRules::read(&fixture.place.home).unwrap().add(&fixture.place.cwd.to_string_lossy(), &[word]).unwrap();
    assert!(fixture.shown().is_empty() && fixture.load().hooks.is_empty());
    fixture.put("p/.claude/settings.json", &hook("other.sh"));
    assert_eq!(fixture.load().hooks.len(), 1);
    fixture.put("p/.claude/settings.json", &hook("other.sh").replacen('{', "{\"disableAllHooks\": true, ", 1));
    assert!(fixture.load().hooks.is_empty());
}

#[test]
fn files_are_merged_with_their_lines() {
    let fixture = Fixture::new();
    fixture.put(
        "mt/settings.json",
        "{\n  \"permissions\": {\n    \"allow\": [\n      \"Edit\",\n\t\t\"Bash(ls *)\"\n    ]\n  }\n}\n",
    );
    fixture.put(
        ".claude/settings.json",
        r#"{"model": "opus", "permissions": {"deny": ["Read(/secrets/**)"], "defaultMode": "plan"}}"#,
    );
    fixture.put(
        "p/.claude/settings.json",
        r#"{"permissions": {"ask": ["Bash(git commit *)"], "allow": ["Bash"], "defaultMode": "bypassPermissions"}}"#,
    );
    assert_eq!(
        fixture.shown(),
        [
            "`allow: Edit` (~/mt/settings.json:4)",
            "`allow: Bash(ls *)` (~/mt/settings.json:5)",
            "`deny: Read(/secrets/**)` (~/.claude/settings.json:1)",
            "`ask: Bash(git commit *)` (.claude/settings.json:1)",
        ]
    );
    let loaded = fixture.load();
    assert_eq!((loaded.mode, loaded.held.len()), (Some(Mode::Plan), 1));
    assert_eq!(
        loaded.warnings,
        [
            "1 of this project's permissions wait for you: `max-team permissions list` shows them, `max-team permissions trust` uses them",
            "not used from .claude/: model; `max-team doctor` lists it",
        ]
    );
}

#[test]
fn a_projects_permissions_wait_for_the_user() {
    let fixture = Fixture::new();
    fixture.put("p/.max-team/settings.local.json", r#"{"other": 1, "permissions": {"allow": ["Bash(rm *)"]}}"#);
    assert_eq!(fixture.shown(), [""; 0]);
    remember(&fixture.place.home, &fixture.place.cwd, &["Bash(cargo test:*)".into()]).unwrap();
    assert_eq!(
        fixture.shown(),
        ["`allow: Bash(cargo test:*)` (.max-team/settings.local.json:6)"],
        "the stranger's still waits"
    );
    let text = std::fs::read_to_string(fixture.place.cwd.join(".max-team/settings.local.json")).unwrap();
    assert!(text.contains("\"other\": 1") && text.contains("Bash(rm *)"));
    let root = fixture.place.cwd.to_string_lossy().into_owned();
    TrustedRules::read(&fixture.place.home).unwrap().add(&root, &["Bash(rm *)".into()]).unwrap();
    assert_eq!(fixture.shown().len(), 2);
}

#[test]
fn faults_are_told_and_the_rest_counts() {
    let fixture = Fixture::new();
    fixture.put(
        "mt/settings.json",
        "{\n\"permisions\": {},\n\"permissions\": {\"alow\": [], \"allow\": [\"*\", 1], \"defaultMode\": \"free\"}}",
    );
    fixture.put("p/.claude/settings.json", "{ not json");
    let warnings = fixture.load().warnings;
    assert_eq!(warnings[0], "~/mt/settings.json:2: unknown key `permisions`, did you mean `permissions`?");
    assert_eq!(warnings[1], "~/mt/settings.json:3: unknown key `permissions.alow`, did you mean `allow`?");
    assert_eq!(warnings[2], "~/mt/settings.json:3: there is no mode `free`");
    assert!(
        warnings.iter().any(|words| words.starts_with(".claude/settings.json is not used: it is no JSON:")),
        "{warnings:?}"
    );
    assert!(
        warnings.iter().any(|words| words.contains("`*`: a permission for tools by `*` is not taken")),
        "{warnings:?}"
    );
}

#[test]
fn flags_are_split_outside_brackets() {
    assert_eq!(split("Bash(git log:*), Edit Read(a b)"), ["Bash(git log:*)", "Edit", "Read(a b)"]);
    let fixture = Fixture::new();
    let (allowed, denied) = (["Edit".to_owned()], ["Bash(rm *)".to_owned()]);
    let opened = ["localhost:8000", "wiki.local", "::1", "[::1]:80"].map(str::to_owned);
    let given = RuleFlags { allowed: &allowed, denied: &denied, opened: &opened };
    let loaded = load(&fixture.place, &fixture.place.cwd, &given).unwrap();
    let shown: Vec<String> = loaded.permissions.rules.iter().map(ToString::to_string).collect();
    assert_eq!(shown[..2], ["`allow: Edit` (--allowed-tools)", "`deny: Bash(rm *)` (--disallowed-tools)"]);
    let hosts = ["localhost:8000", "wiki.local:*", "[::1]:*", "[::1]:80"];
    assert_eq!(shown[2..], hosts.map(|host| format!("`allow: WebFetch(domain:{host})` (tools.private_hosts)")));
}

#[test]
fn bypassing_can_be_forbidden() {
    let loaded = LoadedPermissions { no_bypass: true, ..LoadedPermissions::default() };
    assert_eq!(loaded.mode(Mode::BypassPermissions, ChosenBy::User).0, Mode::Default);
    assert_eq!(loaded.mode(Mode::AcceptEdits, ChosenBy::User), (Mode::AcceptEdits, None));
}

#[test]
fn a_project_only_makes_the_mode_stricter() {
    use Mode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
    // What the user's settings say, what the project's say, who chose what in the configuration, the mode.
    let table = [
        (None, None, ChosenBy::Nobody, Default, Default),
        (Some(Plan), Some(DontAsk), ChosenBy::Nobody, Default, Plan),
        (Some(Plan), None, ChosenBy::Project, Default, Plan),
        (Some(AcceptEdits), None, ChosenBy::Project, Default, Default),
        (Some(AcceptEdits), Some(Default), ChosenBy::Nobody, Default, Default),
        (Some(DontAsk), Some(BypassPermissions), ChosenBy::Nobody, Default, DontAsk),
        (None, Some(AcceptEdits), ChosenBy::Nobody, Default, Default),
        (None, Some(AcceptEdits), ChosenBy::Project, Default, Default),
        (None, Some(Plan), ChosenBy::Project, DontAsk, Plan),
        (Some(Plan), Some(Plan), ChosenBy::User, AcceptEdits, AcceptEdits),
    ];
    for (mode, foreign, by, chosen, want) in table {
        let loaded = LoadedPermissions { mode, foreign, ..LoadedPermissions::default() };
        assert_eq!(loaded.mode(chosen, by).0, want, "{mode:?} {foreign:?} {by:?} {chosen:?}");
    }
    let fixture = Fixture::new();
    fixture.put("mt/settings.json", r#"{"permissions": {"defaultMode": "plan"}}"#);
    fixture.put("p/.claude/settings.json", r#"{"permissions": {"defaultMode": "dontAsk"}}"#);
    fixture.put("p/.claude/settings.local.json", r#"{"permissions": {"defaultMode": "auto"}}"#);
    let loaded = fixture.load();
    assert_eq!((loaded.mode, loaded.foreign), (Some(Plan), Some(DontAsk)));
}

#[test]
fn denials_that_cannot_be_read_stop_the_program() {
    let many: String = (0..2_001).map(|at| format!("\"Read(./{at})\",")).collect();
    let many = format!("{{\"permissions\": {{\"deny\": [{}]}}}}", many.trim_end_matches(','));
    let broken = [
        "{\"permissions\": {\"deny\": [\"Bash\",]}}",
        "{\"permissions\": [\"Bash\"]}",
        "{\"permissions\": {\"deny\": \"Bash\"}}",
        "{\"permissions\": {\"ask\": [{}]}}",
        many.as_str(),
    ];
    for text in broken {
        for own in ["mt/settings.json", ".claude/settings.json"] {
            let fixture = Fixture::new();
            fixture.put(own, text);
            let stop = fixture.try_load().unwrap_err();
            assert_eq!(stop.exit, Exit::Config, "{own}: {text}");
            assert!(stop.words(Lang::En).starts_with(&format!("~/{own}")), "{}", stop.words(Lang::En));
        }
        let fixture = Fixture::new();
        fixture.put("p/.claude/settings.json", text);
        assert!(!fixture.load().warnings.is_empty(), "{text}");
    }
}

#[test]
fn a_list_of_trust_that_cannot_be_read_is_not_replaced() {
    let fixture = Fixture::new();
    fixture.put("mt/trusted.json", "{ not json");
    fixture.put("p/.claude/settings.json", r#"{"permissions": {"allow": ["Bash(ls *)"], "deny": ["Edit"]}}"#);
    let told = remember(&fixture.place.home, &fixture.place.cwd, &["Edit".into()]).unwrap_err();
    assert!(told.contains("trusted.json` cannot be read"), "{told}");
    assert_eq!(std::fs::read_to_string(fixture.place.home.join("trusted.json")).unwrap(), "{ not json");
    assert!(!fixture.place.cwd.join(".max-team/settings.local.json").exists());
    let loaded = fixture.load();
    assert_eq!((loaded.held.len(), loaded.permissions.rules.len()), (1, 1));
    assert!(
        loaded.warnings.iter().any(|words| words.contains("trusted.json` cannot be read")),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn further_folders_are_the_users_to_give_and_restrictions_anybodys() {
    let fixture = Fixture::new();
    let at = fixture.folder.path().canonicalize().unwrap();
    for folder in ["shared", "theirs"] {
        std::fs::create_dir(at.join(folder)).unwrap();
    }
    fixture.put(
        "mt/settings.json",
        r#"{"permissions": {"additionalDirectories": ["~/shared", "../shared", "~", "../nope", "../mt", "/"]}}"#,
    );
    fixture.put(
        "p/.claude/settings.json",
        r#"{"permissions": {"additionalDirectories": ["../theirs"], "denyInsteadOfPrompting": true,
            "blockReadsOutsideWorkingDirectories": true, "blockWritesOutsideWorkingDirectories": false}}"#,
    );
    let loaded = fixture.load();
    let text = |name: &str| at.join(name).to_str().unwrap().to_owned();
    assert_eq!(loaded.permissions.also, [text("shared")]);
    let held: Vec<&str> = loaded.held.iter().map(|rule| rule.text.as_str()).collect();
    let waits = format!("Read(/{}/**)", text("theirs"));
    assert_eq!(held, [&waits], "what a project gives waits for the user");
    let told: Vec<&String> = loaded.warnings.iter().filter(|words| words.contains("is not used: ")).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0].contains("the team's journal lies in it; name the folders that you mean"), "{told:?}");
    let Permissions { no_reads_outside, no_writes_outside, never_asks, .. } = loaded.permissions;
    assert_eq!((no_reads_outside, no_writes_outside, never_asks), (true, false, true));

    let root = fixture.place.cwd.to_string_lossy().into_owned();
    TrustedRules::read(&fixture.place.home).unwrap().add(&root, &[waits]).unwrap();
    assert_eq!(fixture.load().permissions.also, [text("shared"), text("theirs")]);
    fixture.put("mt/settings.json", r#"{"permissions": {"denyInsteadOfPrompting": "perhaps"}}"#);
    assert_eq!(fixture.try_load().unwrap_err().exit, Exit::Config, "it may have been meant to forbid");
}
