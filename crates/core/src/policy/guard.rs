//! Protected files: those that a program runs, or an agent obeys, without being called by the user or an approved check.
//!
//! One table decides for all: the gate asks a person before any change of them, whatever was allowed or approved; of those
//! that this team itself obeys (`is_held`), tools refuse the change and the sandbox keeps the file as it is. Files that
//! run only when a build or a test is run (`Makefile`, `package.json`, `build.rs`, `conftest.py`) are ordinary work and
//! not in it. Names are compared as the most forgiving file systems do: letter case does not count, invisible characters
//! do not exist.

use std::fmt;

use super::rule::absolute;

/// Why a change of a file reaches further than the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// A program runs it by itself.
    Runs,
    /// An agent takes it for instructions.
    Instructs,
    /// It says what agents are and may do.
    Configures,
    /// It is evidence of what agents did.
    Records,
}

impl Reach {
    /// All of them, in the order they are listed.
    pub const ALL: [Self; 4] = [Self::Configures, Self::Instructs, Self::Runs, Self::Records];

    /// Its name in lists for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Instructs => "instructs",
            Self::Configures => "configures",
            Self::Records => "records",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protected {
    /// The names: `a/b` at any depth, with everything beneath; `/a/b` only from the project's folder; a `*` in a name
    /// stands for any letters.
    pub pattern: &'static str,
    /// Why it is protected.
    pub reach: Reach,
    /// The program or agent that runs or obeys it.
    pub by: &'static str,
    /// Whether this team itself obeys it, so that no tool changes it and the sandbox keeps it as it is.
    pub is_held: bool,
}

/// The reason for people and models.
impl fmt::Display for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.by;
        match self.reach {
            _ if self.pattern.is_empty() => write!(f, "this run was started with it, or keeps its record in it"),
            Reach::Runs => write!(f, "{by} runs it by itself"),
            Reach::Instructs => write!(f, "{by} takes it for instructions"),
            Reach::Configures => write!(f, "it configures {by}: who works there and what they may do"),
            Reach::Records => write!(f, "it is the record of what agents did"),
        }
    }
}

const fn held(pattern: &'static str, reach: Reach, by: &'static str) -> Protected {
    Protected { pattern, reach, by, is_held: true }
}

const fn runs(pattern: &'static str, by: &'static str) -> Protected {
    Protected { pattern, reach: Reach::Runs, by, is_held: false }
}

const fn instructs(pattern: &'static str, by: &'static str) -> Protected {
    Protected { pattern, reach: Reach::Instructs, by, is_held: false }
}

const GIT_HOOKS: &str = "a git hook";
const CI: &str = "the CI service";
const EDITOR: &str = "the editor";
const SHELL: &str = "the shell";
const PYTHON: &str = "every start of Python";
const LOGIN: &str = "every login";
const AGENTS: &str = "a coding agent";
const MAX_TEAM: &str = "max-team";

/// The table.
pub const PROTECTED: &[Protected] = &[
    held(".max-team", Reach::Configures, MAX_TEAM),
    held(".claude", Reach::Configures, "Claude Code and max-team"),
    held(".mcp.json", Reach::Configures, "the servers that agents start"),
    held("/config/agents.yaml", Reach::Configures, MAX_TEAM),
    held("/config/config.yaml", Reach::Configures, MAX_TEAM),
    held("/agents/*.md", Reach::Configures, MAX_TEAM),
    held(".git", Reach::Runs, "git (hooks, filters, settings)"),
    Protected { pattern: "logs/audit.jsonl", reach: Reach::Records, by: MAX_TEAM, is_held: true },
    // Instructions of coding agents.
    instructs("AGENTS.md", AGENTS),
    instructs("AGENTS.override.md", AGENTS),
    instructs("AGENT.md", AGENTS),
    instructs("CLAUDE.md", AGENTS),
    instructs("CLAUDE.local.md", AGENTS),
    instructs("GEMINI.md", AGENTS),
    instructs("QWEN.md", AGENTS),
    instructs("SKILL.md", AGENTS),
    instructs("skill.yaml", AGENTS),
    instructs(".agents", AGENTS),
    instructs(".codex", AGENTS),
    instructs(".gemini", AGENTS),
    instructs(".qwen", AGENTS),
    instructs(".opencode", AGENTS),
    instructs("opencode.json", AGENTS),
    instructs("opencode.jsonc", AGENTS),
    instructs(".cursor", AGENTS),
    instructs(".cursorrules", AGENTS),
    instructs(".windsurf", AGENTS),
    instructs(".windsurfrules", AGENTS),
    instructs(".clinerules", AGENTS),
    instructs(".roo", AGENTS),
    instructs(".roorules", AGENTS),
    instructs(".roomodes", AGENTS),
    instructs(".kiro", AGENTS),
    instructs(".continue", AGENTS),
    instructs(".amazonq", AGENTS),
    instructs(".augment", AGENTS),
    instructs(".junie", AGENTS),
    instructs(".trae", AGENTS),
    instructs(".goosehints", AGENTS),
    instructs(".rules", AGENTS),
    instructs(".aider.conf.yml", AGENTS),
    instructs(".github/copilot-instructions.md", AGENTS),
    instructs(".github/instructions", AGENTS),
    instructs(".github/prompts", AGENTS),
    instructs(".github/chatmodes", AGENTS),
    instructs(".github/agents", AGENTS),
    // Hooks that are kept outside of `.git`.
    runs(".husky", GIT_HOOKS),
    runs(".githooks", GIT_HOOKS),
    runs("lefthook.yml", GIT_HOOKS),
    runs("lefthook.yaml", GIT_HOOKS),
    runs("lefthook.toml", GIT_HOOKS),
    runs("lefthook.json", GIT_HOOKS),
    runs(".lefthook.yml", GIT_HOOKS),
    runs(".lefthook", GIT_HOOKS),
    runs(".pre-commit-config.yaml", GIT_HOOKS),
    runs(".overcommit.yml", GIT_HOOKS),
    // Continuous integration: a push runs it, with the repository's secrets.
    runs(".github/workflows", CI),
    runs(".github/actions", CI),
    runs(".gitea/workflows", CI),
    runs(".forgejo/workflows", CI),
    runs(".gitlab-ci.yml", CI),
    runs(".gitlab/ci", CI),
    runs(".circleci", CI),
    runs(".travis.yml", CI),
    runs("azure-pipelines.yml", CI),
    runs("azure-pipelines.yaml", CI),
    runs(".azure-pipelines", CI),
    runs("bitbucket-pipelines.yml", CI),
    runs("Jenkinsfile", CI),
    runs(".drone.yml", CI),
    runs(".drone.yaml", CI),
    runs(".woodpecker", CI),
    runs(".woodpecker.yml", CI),
    runs(".woodpecker.yaml", CI),
    runs("appveyor.yml", CI),
    runs(".appveyor.yml", CI),
    runs(".buildkite", CI),
    runs(".cirrus.yml", CI),
    runs(".semaphore", CI),
    runs(".teamcity", CI),
    runs("cloudbuild.yaml", CI),
    runs("cloudbuild.yml", CI),
    runs("cloudbuild.json", CI),
    runs("buildspec.yml", CI),
    runs("buildspec.yaml", CI),
    // Opening a folder, or stepping into it.
    runs(".envrc", "direnv"),
    runs("mise.toml", "mise"),
    runs("mise.local.toml", "mise"),
    runs(".config/mise", "mise"),
    runs(".mise.toml", "mise"),
    runs(".mise", "mise"),
    runs(".vscode", EDITOR),
    runs("*.code-workspace", EDITOR),
    runs(".idea", EDITOR),
    runs(".zed", EDITOR),
    runs(".devcontainer", EDITOR),
    runs(".devcontainer.json", EDITOR),
    runs(".gitpod.yml", EDITOR),
    runs("*.sublime-project", EDITOR),
    runs(".exrc", EDITOR),
    runs(".nvimrc", EDITOR),
    runs(".config/nvim", EDITOR),
    runs(".nvim.lua", EDITOR),
    runs(".vimrc", EDITOR),
    runs(".vim", EDITOR),
    runs(".dir-locals.el", EDITOR),
    runs(".emacs", EDITOR),
    runs(".emacs.d", EDITOR),
    // Starting a shell, an interpreter or a session.
    runs(".profile", SHELL),
    runs(".bashrc", SHELL),
    runs(".bash_profile", SHELL),
    runs(".bash_login", SHELL),
    runs(".bash_logout", SHELL),
    runs(".bash_aliases", SHELL),
    runs(".zshrc", SHELL),
    runs(".zshenv", SHELL),
    runs(".zprofile", SHELL),
    runs(".zlogin", SHELL),
    runs(".zlogout", SHELL),
    runs(".kshrc", SHELL),
    runs(".cshrc", SHELL),
    runs(".tcshrc", SHELL),
    runs(".config/fish", SHELL),
    runs("sitecustomize.py", PYTHON),
    runs("usercustomize.py", PYTHON),
    runs("site-packages/*.pth", PYTHON),
    runs("dist-packages/*.pth", PYTHON),
    runs(".pdbrc", PYTHON),
    runs(".Rprofile", "R"),
    runs(".irbrc", "irb"),
    runs(".gdbinit", "gdb"),
    runs(".ssh", "ssh"),
    runs(".gitconfig", "git"),
    runs(".config/git", "git"),
    runs(".xprofile", LOGIN),
    runs(".xinitrc", LOGIN),
    runs(".xsession", LOGIN),
    runs(".config/autostart", LOGIN),
    runs(".config/systemd", LOGIN),
    runs(".config/environment.d", LOGIN),
    runs("LaunchAgents", LOGIN),
    runs("LaunchDaemons", LOGIN),
];

/// What the sandbox keeps as it is beneath a project's folder, but for git's own folder, of which only a part is obeyed.
pub const GUARDED: [&str; 5] = [".max-team", ".claude", ".mcp.json", "config/agents.yaml", "config/config.yaml"];

/// A folder in which only the definitions are guarded: others keep code in one of that name. Who holds [`GUARDED`] as it
/// is holds those files too.
pub const DEFINITIONS: &str = "agents";

/// The file that a run was given by name, or writes its record to.
const GIVEN: Protected = held("", Reach::Configures, "this run");

/// The row that protects a path, if one does. A folder that holds such files counts as well: what is copied onto it may
/// bring them.
pub fn protected(path: &str) -> Option<&'static Protected> {
    let names: Vec<String> = path.split('/').filter(|part| !matches!(*part, "" | ".")).map(folded).collect();
    PROTECTED.iter().find(|row| row.covers(&names))
}

/// The same of what the team itself obeys.
pub fn guarded(path: &str) -> Option<&'static Protected> {
    let names: Vec<String> = path.split('/').filter(|part| !matches!(*part, "" | ".")).map(folded).collect();
    PROTECTED.iter().find(|row| row.is_held && row.covers(&names))
}

impl Protected {
    fn covers(&self, names: &[String]) -> bool {
        let (pattern, is_anchored) = match self.pattern.strip_prefix('/') {
            Some(pattern) => (pattern, true),
            None => (self.pattern, false),
        };
        let parts: Vec<String> = pattern.split('/').map(str::to_lowercase).collect();
        let starts = if is_anchored { 1 } else { names.len() };
        let is_at = |from: usize| {
            let here = names.get(from..).unwrap_or_default();
            let is_whole = here.len() >= parts.len();
            // Code is kept in folders called `agents` and `logs`, too.
            let is_above = !here.is_empty() && !matches!(here, [one] if one == DEFINITIONS || one == "logs");
            (is_whole || is_above) && parts.iter().zip(here).all(|(part, name)| is_named(part, name))
        };
        (0..starts).any(is_at)
    }
}

fn is_named(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
        None => pattern == name,
    }
}

/// The same for files that this run was given by name, all absolute; also a folder that one of them lies in.
pub(super) fn given(files: &[String], path: &str) -> Option<&'static Protected> {
    let path = folded(&absolute("", &format!("/{path}")));
    let lies_in =
        |file: &String| folded(file).strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    files.iter().any(lies_in).then_some(&GIVEN)
}

fn folded(name: &str) -> String {
    // What HFS+ leaves out when it compares names (CVE-2014-9390).
    let hidden = |letter: &char| !matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    name.chars().filter(hidden).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_list_for_all() {
        for path in GUARDED {
            assert!(guarded(path).is_some() && guarded(&path.to_uppercase()).is_some(), "{path}");
        }
        for path in ["src/.git/config", "a/.claude/x", "a/.mcp.json", "agents/Leo.MD", ".g\u{200c}it/x", "./config"] {
            assert!(guarded(path).is_some(), "{path}");
        }
        for path in ["src/config/agents.yaml", "agents/a.py", "src/agents/a.md", "config/other.yaml", "src/a.rs", "."] {
            assert!(guarded(path).is_none() && protected(path).is_none(), "{path}");
        }
        for path in ["logs/audit.jsonl", "deep/logs/audit.jsonl"] {
            assert!(guarded(path).is_some(), "{path}");
        }
    }

    #[test]
    fn every_row_protects_its_own_pattern_and_what_lies_beneath() {
        for row in PROTECTED {
            let path = row.pattern.trim_start_matches('/').replace('*', "x");
            assert!(protected(&path).is_some() && protected(&path.to_uppercase()).is_some(), "{path}");
            assert!(protected(&format!("{path}/beneath")).is_some(), "{path}");
            assert_eq!(protected(&format!("sub/{path}")).is_some(), !row.pattern.starts_with('/'), "sub/{path}");
            assert!(!row.to_string().is_empty() && !row.by.is_empty());
        }
        let (before, mut after) = (PROTECTED.len(), PROTECTED.iter().map(|row| row.pattern).collect::<Vec<_>>());
        after.sort_unstable();
        after.dedup();
        assert_eq!(before, after.len(), "each pattern is listed once");
    }

    #[test]
    fn ordinary_files_are_ordinary() {
        for path in [
            "Makefile",
            "package.json",
            "build.rs",
            "conftest.py",
            "Cargo.toml",
            ".cargo/config.toml",
            ".npmrc",
            ".env.example",
            ".gitignore",
            ".gitattributes",
            ".editorconfig",
            ".github/CODEOWNERS",
            ".github/dependabot.yml",
            "docs/skills.md",
            "src/skills/mod.rs",
            "logs/app.log",
            "logs",
            "agents",
            "README.md",
            "Dockerfile",
        ] {
            assert!(protected(path).is_none(), "{path}: {:?}", protected(path));
        }
        // What is copied onto such a folder may bring anything.
        for path in [".github", ".config", "config", "sub/.github"] {
            assert!(protected(path).is_some(), "{path}");
        }
    }

    #[test]
    fn files_that_were_named_are_kept_with_their_folders() {
        let files = ["/p/team/Mine.yaml".to_owned()];
        for (path, kept) in
            [("p/team/mine.yaml", true), ("/p/team", true), ("p/team/other.yaml", false), ("p/te", false)]
        {
            assert_eq!(given(&files, path).is_some(), kept, "{path}");
        }
    }
}
