//! Broken files of every kind, read in Chinese: no message about them is an English sentence.

use std::fs;
use std::path::Path;

use max_team_core::text::is_chinese;
use tempfile::TempDir;

use crate::config::{ConfigError, Env, Problem};
use crate::i18n::{Lang, Translated};
use crate::permissions::{self, RuleFlags, TrustedRules};
use crate::setup::AppEnv;
use crate::{agents, plan_file};

/// A user's folder and a project with these files; the interface is Chinese.
struct Desk {
    _folder: TempDir,
    place: AppEnv,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (user, cwd) = (root.join("user"), root.join("project"));
        fs::create_dir_all(cwd.join(".git")).unwrap();
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let env: Env = [("HOME", user.to_str().unwrap()), ("LANG", "zh_CN.UTF-8")].into_iter().collect();
        let home = user.join(".max-team");
        Self { _folder: folder, place: AppEnv { env, home, cwd, wished: None, notice: |_| {} } }
    }

    fn team(&self, file: Option<&str>) -> Result<Vec<String>, String> {
        let team = agents::team(file.map(Path::new), &self.place);
        team.map(|team| team.warnings).map_err(|stop| stop.words(Lang::Zh).to_owned())
    }
}

/// Three English words in a row outside back-ticks.
fn english(message: &str) -> bool {
    let bare: Vec<&str> = message.split('`').step_by(2).collect();
    bare.iter().any(|part| {
        let is_word = |word: &str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_alphabetic());
        let words: Vec<bool> = part
            .split_whitespace()
            .map(|word| is_word(word.trim_matches([',', ';', ':', '.', '?', '(', ')'])))
            .collect();
        words.windows(3).any(|three| three.iter().all(|is_word| *is_word))
    })
}

/// Checks the lines of these messages, of which there are at least `least`.
fn all_chinese(least: usize, messages: impl IntoIterator<Item = impl AsRef<str>>) {
    let messages: Vec<String> = messages.into_iter().map(|message| message.as_ref().to_owned()).collect();
    let lines: Vec<&str> = messages.iter().flat_map(|message| message.lines()).collect();
    for line in &lines {
        assert!(!english(line) && line.chars().any(is_chinese), "not translated: {line}");
    }
    assert!(lines.len() >= least, "only {}: {lines:#?}", lines.len());
}

#[test]
fn english_is_noticed() {
    assert!(english("a.yaml:1:2: 没有 it is empty") && english("expected value at line 1"));
    assert!(!english("a.yaml:1：应为 `one of these words`，实际为 JSON") && !english("max-team agents 列表"));
}

#[test]
fn faults_of_agents_files() {
    let max = "agents:\n- {name: max, role: team_lead, system_prompt: x";
    let members = [
        "{role: coder, system_prompt: x}",
        "{name: Leo, role: coder, system_prompt: x}",
        "{name: user, role: coder, system_prompt: x}",
        "{name: max, role: coder, system_prompt: x}",
        "{name: a}",
        "{name: b, role: coder, system_prompt: '@builtin/none'}",
        "{name: c, role: lead, system_prompt: x}",
        "{name: d, role: [coder], system_prompt: x, tools: read_file}",
        "{name: e, role: coder, system_prompt: x, constraints: {walls: 1, allowed_dirs: [/tmp], timeout: soon}}",
        "{name: f, role: coder, system_prompt: x, constraints: {allowed_hosts: ['a b'], write_patterns: ['a/{b}']}}",
        "{name: g, role: coder, system_prompt: x, constraints: {allowed_commands: , read_only: perhaps}}",
        "{name: h, role: coder, system_prompt: x, mcp_servers: no}",
        "{name: i, role: coder, system_prompt: x, mcp_servers: [{name: y}, {name: x, command: x, env: x}]}",
        "{name: j, role: '${NONE}', system_prompt: '${1}'}",
        "just words",
    ];
    let table: [(usize, String); 9] = [
        (18, format!("{max}}}\n- {}\n", members.join("\n- "))),
        (2, String::new()),
        (2, "agents: none\n".to_owned()),
        (2, "agent: []\n".to_owned()),
        (2, "agents: [{name: a, role: b, system_prompt: c}]\n".to_owned()),
        (2, format!("{max}, tools: [read_file, no_such_tool, submit_plans]}}\n")),
        (
            2,
            format!(
                "{max}}}\n- {{name: a, role: b, system_prompt: c, tools: [ask_user, submit_plan, raed_file, xyz]}}\n"
            ),
        ),
        (2, format!("{max}}}\n- {{name: c, role: lead, system_prompt: x}}\n")),
        (2, "agents: [\n".to_owned()),
    ];
    for (least, text) in table {
        let desk = Desk::new(&[("project/a.yaml", &text)]);
        all_chinese(least, [desk.team(Some("a.yaml")).unwrap_err()]);
    }
    all_chinese(2, [Desk::new(&[]).team(Some("none.yaml")).unwrap_err()]);
    let many: String = (0..30).map(|at| format!(", key{at}: 1")).collect();
    let odd = [
        format!("{max}{many}}}\n"),
        format!("{max}, mcp_servers: [{{name: x, command: y}}]}}\n"),
        format!("{max}}}\n- {{name: a, role: b, system_prompt: c, rloe: x, tools: [web_crawl]}}\n"),
    ];
    for text in odd {
        all_chinese(1, Desk::new(&[("project/a.yaml", &text)]).team(Some("a.yaml")).unwrap());
    }
    let strange = format!(
        "{max}}}\n- {{name: a, role: b, system_prompt: c, mcp_servers: [{{name: x, command: y}}], \
         constraints: {{allowed_hosts: [a.org]}}}}\n"
    );
    all_chinese(2, Desk::new(&[("project/.max-team/agents.yaml", &strange)]).team(None).unwrap());
    let strange = format!("{max}, model: '${{HOME}}'}}\n");
    all_chinese(2, [Desk::new(&[("project/.max-team/agents.yaml", &strange)]).team(None).unwrap_err()]);
}

#[test]
fn faults_of_definitions() {
    let heads = [
        "descripton: x\ncolour: x",
        "tools: [Read(x), WebFetch(), no_such_tool, raed_file, ask_user, submit_plan]\nname: '!!'",
        "tools:\ncolor: {a: b}\nbackground: perhaps\neffort: {}\nmemory: everywhere\ncache: x\ntype: boss\nskills: {a: b}",
        "cache: {tll: 1}\nhooks: {Stop: x}\npermissionMode: bypassPermissions\nmemory: user\nmcpServers: {a: {command: b}}",
        "disallowedTools: [Bash(rm)]\nmcpServers: {a: {url: b}, c: {command: [d]}}",
        "name: max",
        "name: Some Name",
        "permissionMode: plann",
        "permissionMode: [plan]",
        "disallowedTools: [raed_file]",
        "maxTurns: many",
        "isolation: vm",
        "budget: {usd: free}",
        "budget: {dollars: 1}",
        "tools: {Bash: perhaps}",
        "tools: [{name: Read}]",
        "owns: {src: true}",
        "owns: ['a/{b}']",
        "max: [read_only]",
        "constraints: {wall: 1, write_patterns: }",
        "constraints: {allowed_hosts: ['a b']}",
        "name: x\nname: y",
        "name: [x",
        "- a\n- b",
    ];
    let texts = heads.iter().map(|head| format!("---\n{head}\n---\nYou review.\u{200b}\n"));
    let texts = texts.chain(["---\nname: x\n".to_owned(), String::new(), "x".repeat(300 << 10)]);
    let texts: Vec<String> = texts.collect();
    for folder in ["project/.claude/agents", "user/.max-team/agents"] {
        let named: Vec<String> = (0..texts.len()).map(|at| format!("{folder}/文件{at}.md")).collect();
        let files: Vec<(&str, &str)> = named.iter().zip(&texts).map(|(name, text)| (&**name, &**text)).collect();
        all_chinese(50, Desk::new(&files).team(None).unwrap());
    }
    // Names that are taken, and a folder that leads elsewhere.
    let lead = "agents: [{name: max, role: team_lead, system_prompt: x}, {name: a, role: b, system_prompt: c}]\n";
    let desk = Desk::new(&[
        ("project/.max-team/agents.yaml", lead),
        ("project/.max-team/agents/a.md", "---\nname: a\n---\nx"),
        ("project/.max-team/agents/max.md", "---\nname: max\n---\nx"),
        ("project/.max-team/agents/boss.md", "---\nname: boss\ntype: main\n---\nx"),
        ("project/.max-team/agents/explore.md", "---\nname: explore\n---\nx"),
        ("elsewhere/x.md", "---\nname: x\n---\nx"),
    ]);
    fs::create_dir_all(desk.place.cwd.join(".claude")).unwrap();
    std::os::unix::fs::symlink("../../elsewhere", desk.place.cwd.join(".claude/agents")).unwrap();
    std::os::unix::fs::symlink("../../../elsewhere/x.md", desk.place.cwd.join(".max-team/agents/x.md")).unwrap();
    std::os::unix::fs::symlink("loop.md", desk.place.cwd.join(".max-team/agents/loop.md")).unwrap();
    // The system's own words for a fault that is not translated.
    all_chinese(6, desk.team(None).unwrap().iter().filter(|words| !words.contains("os error")));
}

#[test]
fn faults_of_settings() {
    let usual = Desk::new(&[]).place.settings(None, Vec::new()).unwrap();
    // A value that no key takes.
    for row in usual.list().iter().filter(|row| row.key.contains('.')) {
        let (section, key) = row.key.split_once('.').unwrap();
        let text = format!("{section}: {{{key}: [[a]]}}\n");
        let desk = Desk::new(&[("user/.max-team/config.yaml", &text)]);
        all_chinese(2, [desk.place.settings(None, Vec::new()).unwrap_err().words(Lang::Zh)]);
    }
    let texts = [
        "- a\n",
        "llm: x\n",
        "llm: {model: '${NONE}', provider: '${1}'}\n",
        "llm: {provider: '${NONE}'}\n",
        "llm: [\n",
        "a: 1\na: 2\n",
    ];
    for text in texts {
        let desk = Desk::new(&[("user/.max-team/config.yaml", text)]);
        all_chinese(
            1,
            desk.place
                .settings(None, Vec::new())
                .map_or_else(|stop| vec![stop.words(Lang::Zh).to_owned()], |config| config.warnings),
        );
    }
    let many: String = (0..30).map(|at| format!("key{at}: 1\n")).collect();
    let own = format!("llm: {{modle: x}}\ntimeout: 1\nkubernetes: 1\nllm.timeout: 5\n{many}");
    let strange = "llm: {base_url: 'http://a', api_key_helper: [a], default_model: '${SECRET}'}\n\
                   permissions: {mode: bypassPermissions}\nlimits: {rounds: 900}\nproject: {root: /tmp, sandbox: false}\n\
                   audit: {enabled: false}\njournal: {keep_days: 1}\nmemory: {extract: always}\n\
                   server: {public_url: 'https://a'}\ntools: {private_hosts: [a]}\n";
    let desk = Desk::new(&[("user/.max-team/config.yaml", &own)]);
    all_chinese(21, desk.place.settings(None, Vec::new()).unwrap().warnings);
    let desk = Desk::new(&[("project/.max-team/config.yaml", strange)]);
    all_chinese(12, desk.place.settings(None, Vec::new()).unwrap().warnings);
    let desk = Desk::new(&[("user/.max-team/config.yaml", "project: {sandbox: false}\n")]);
    all_chinese(1, desk.place.settings(None, Vec::new()).unwrap().warnings);
    let file = || "x.yaml".to_owned();
    let problems = vec![
        Problem::Planted { file: file() },
        Problem::Irregular { file: file() },
        Problem::TooLarge { file: file() },
        Problem::NotText { file: file(), line: 1 },
    ];
    all_chinese(5, [ConfigError { problems }.words(Lang::Zh)]);
}

#[test]
fn faults_of_permissions() {
    let odd = r#"{
        "permisions": {}, "permissions": {
            "alow": [], "allow": ["*", "Read(", 1], "ask": [{}], "deny": "x", "defaultMode": "free", "disableAutoMode": "x",
            "additionalDirectories": ["/none", "..", ".", 1], "denyInsteadOfPrompting": "perhaps"
        }
    }"#;
    let projects = [odd, "{", "[]", "{\"a\": 1, \"a\": 2}", r#"{"permissions": [], "a": 1}"#];
    let load = |desk: &Desk| permissions::load(&desk.place, &desk.place.cwd, &RuleFlags::default());
    for (least, text) in [11, 1, 1, 1, 2].into_iter().zip(projects) {
        let desk = Desk::new(&[("project/.claude/settings.json", text)]);
        let loaded = load(&desk).unwrap();
        all_chinese(least, &loaded.warnings);
        let desk = Desk::new(&[("user/.max-team/settings.json", text)]);
        all_chinese(2, [load(&desk).unwrap_err().words(Lang::Zh)]);
    }
    let folders = r#"{"permissions": {"additionalDirectories": "x", "disableBypassPermissionsMode": "disable"}}"#;
    let desk = Desk::new(&[("user/.max-team/settings.json", folders), ("user/.max-team/trusted.json", "{")]);
    let loaded = load(&desk).unwrap();
    all_chinese(2, loaded.warnings.iter());
    let (_, note) = loaded.mode(max_team_core::policy::Mode::BypassPermissions, crate::config::ChosenBy::User);
    let trusted = TrustedRules::read(&desk.place.home).unwrap_err();
    all_chinese(2, [note.unwrap(), trusted].iter().map(|words: &Translated| words.get(Lang::Zh)));
}

#[test]
fn faults_of_plans() {
    let text = "gaol: x\nmax_parallel: many\nbudget: soon\ngates: [[a]]\ntasks:\n- [a]\n- {id: a, needs: {b: c}, \
                depends_on: b, agent: [x], timeout: later, skip: perhaps, isolation: vm, kubernetes: 1}\n# \u{200b}\n";
    let plan = plan_file::read(text, "x.yaml").unwrap();
    all_chinese(3, plan.warnings.iter().map(|words| words.get(Lang::Zh)));
    all_chinese(9, [plan.stop(&[]).words(Lang::Zh)]);
    for text in ["just words", "tasks: x", "a: 1\na: 2\n", "a: [1\n"] {
        let words = plan_file::read(text, "x.yaml").map_or_else(|stop| stop, |plan| plan.stop(&[]));
        all_chinese(2, [words.words(Lang::Zh)]);
    }
}
