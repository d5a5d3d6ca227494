//! Which protected files an approved command may change, and which lines may write in `.git`.

use super::{ProtectedRow, sandbox_rows};
use crate::policy::command_line::{CommandLine, SimpleCommand};
use crate::policy::program::{self, CommandEffect};

/// Sub-commands by which git itself changes the working tree to what a commit or a stash holds. Not `apply`
/// and `am`: an agent can write the file that they apply without a question.
const CHECKS_OUT: [&str; 13] = [
    "bisect",
    "checkout",
    "cherry-pick",
    "clone",
    "merge",
    "pull",
    "rebase",
    "reset",
    "restore",
    "revert",
    "stash",
    "submodule",
    "switch",
];

/// What a command may do in the repositories of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum GitAccess {
    /// Every `.git` stays as it is, and new repositories are moved away.
    #[default]
    Read,
    /// Git writes what it stores, and makes repositories; settings and hooks stay as they are.
    Write,
    /// Git also notes submodules in its settings.
    Submodules,
}

/// The access of a line that the policy has let pass: only git itself writes in `.git`, so every part must be git, or change
/// nothing.
pub fn git_access(line: &CommandLine) -> GitAccess {
    let CommandLine::Plain(parts) = line else { return GitAccess::Read };
    if !parts.iter().all(|part| git_sub_command(part).is_some() || only_looks(part)) {
        return GitAccess::Read;
    }
    let access = |part: &SimpleCommand| match git_sub_command(part) {
        Some("submodule") => GitAccess::Submodules,
        Some(_) if !only_looks(part) => GitAccess::Write,
        _ => GitAccess::Read,
    };
    parts.iter().map(access).max().unwrap_or_default()
}

/// The sub-command of a part that is git and starts no program which the line names.
fn git_sub_command(part: &SimpleCommand) -> Option<&str> {
    let is_seen = part.env.is_empty() && !program::effects_of(&part.argv).effects.iter().any(runs);
    program::git_command(&part.argv).filter(|_| is_seen)
}

/// The rows that the sandbox leaves open for a command that the user approved (`attended`): rows named in the line; if
/// the line only checks something out with git, all rows but those that configure this team.
pub fn approved_rows(line: &CommandLine, attended: bool) -> Vec<&'static ProtectedRow> {
    if !attended {
        return Vec::new();
    }
    let checks_out = checks_out(line);
    let text = super::folded(&line.to_string());
    sandbox_rows().filter(|row| !row.is_held && (checks_out || names(&text, row))).collect()
}

/// Whether a text names the row: by the first name of its pattern, because that is also how a whole folder is named.
fn names(text: &str, row: &ProtectedRow) -> bool {
    let first = row.pattern.trim_start_matches('/').split('/').next().unwrap_or_default().to_lowercase();
    let is_first = |name: &str| match first.split_once('*') {
        Some((before, behind)) => name.strip_prefix(before).is_some_and(|rest| rest.ends_with(behind)),
        None => name == first,
    };
    text.split(|letter: char| letter.is_whitespace() || "/'\"=:;&|<>(){},`".contains(letter)).any(is_first)
}

fn checks_out(line: &CommandLine) -> bool {
    let CommandLine::Plain(parts) = line else { return false };
    let git = |part: &SimpleCommand| git_sub_command(part).is_some_and(|sub| CHECKS_OUT.contains(&sub));
    parts.iter().any(git) && parts.iter().all(|part| git(part) || only_looks(part))
}

/// Whether a part of a line changes nothing: another command beside git must not get the files that are opened for
/// git.
fn only_looks(part: &SimpleCommand) -> bool {
    if part.argv.first().is_some_and(|program| program == "cd") {
        return true;
    }
    let facts = program::effects_of(&part.argv);
    let looks = |effect: &CommandEffect| matches!(effect, CommandEffect::Read(_) | CommandEffect::History);
    part.env.is_empty() && facts.is_whole && facts.effects.iter().all(looks)
}

fn runs(effect: &CommandEffect) -> bool {
    matches!(effect, CommandEffect::Run(_) | CommandEffect::Code(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ShellSyntax;

    fn plain(text: &str) -> CommandLine {
        let part = |words: &str| SimpleCommand {
            argv: words.split_whitespace().map(str::to_owned).collect(),
            ..SimpleCommand::default()
        };
        CommandLine::Plain(text.split("&&").map(part).collect())
    }

    #[test]
    fn only_lines_of_git_write_in_its_folder() {
        for (line, want) in [
            ("git commit -qm one", GitAccess::Write),
            ("git add . && git commit -m one", GitAccess::Write),
            ("cd sub && git stash && ls", GitAccess::Write),
            ("git -C sub restore a", GitAccess::Write),
            ("/usr/bin/git init new", GitAccess::Write),
            ("git submodule update", GitAccess::Submodules),
            ("git status", GitAccess::Read),
            ("git log && ls", GitAccess::Read),
            ("npm test", GitAccess::Read),
            ("git add . && npm test", GitAccess::Read),
            ("git rebase --exec ./evil main", GitAccess::Read),
            ("git bisect run ./evil", GitAccess::Read),
            ("git submodule foreach ./evil", GitAccess::Read),
            ("git -c core.pager=./evil commit", GitAccess::Read),
            ("git config core.fsmonitor ./evil", GitAccess::Read),
            ("./git commit", GitAccess::Read),
        ] {
            assert_eq!(git_access(&plain(line)), want, "{line}");
        }
    }

    #[test]
    fn only_named_or_checked_out_files_may_change() {
        let all = sandbox_rows().filter(|row| !row.is_held).count();
        for (line, attended, want) in [
            ("python3 build.py", false, 0),
            ("python3 build.py", true, 0),
            ("python3 build.py --into AGENTS.md", true, 1),
            ("python3 build.py --into AGENTS.md", false, 0),
            ("git checkout main", true, all),
            ("git checkout main", false, 0),
            ("git -C . switch main && git status", true, all),
            ("cd sub && git stash pop", true, all),
            ("git merge topic && python3 build.py", true, 0),
            ("git checkout main && cp -r evil .", true, 0),
            ("git rebase --exec ./evil main", true, 0),
            ("git -c core.pager=./evil checkout main", true, 0),
            ("git apply x.patch", true, 0),
            ("git bisect run ./evil", true, 0),
            // A name within another one is not that name.
            ("curl https://api.github.com/x https://raw.githubusercontent.com/y", true, 0),
            ("node vite.config.ts firestore.rules x.vim", true, 0),
            ("cp -r made .claude", true, 0),
        ] {
            assert_eq!(approved_rows(&plain(line), attended).len(), want, "{line}");
        }
        let opaque = CommandLine::Opaque {
            text: "for f in *; do cp $f .GITHUB/; done".into(),
            why: ShellSyntax::ControlStructure,
        };
        assert!(approved_rows(&opaque, true).iter().all(|row| row.pattern.starts_with(".github/")));
        assert!(!approved_rows(&opaque, true).is_empty() && approved_rows(&opaque, false).is_empty());
        assert!(
            approved_rows(&plain("cp a my.code-workspace"), true).iter().any(|row| row.pattern == "*.code-workspace")
        );
    }
}
