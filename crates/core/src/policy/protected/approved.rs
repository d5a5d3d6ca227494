//! Which protected files an approved command may change.

use super::{ProtectedRow, sandbox_rows};
use crate::policy::command_line::{CommandLine, SimpleCommand};
use crate::policy::program::{self, CommandEffect};

/// Sub-commands by which git itself changes the working tree to what a commit or a stash holds. Not `apply`
/// and `am`: an agent can write the file that they apply without a question.
const CHECKS_OUT: [&str; 11] =
    ["bisect", "checkout", "cherry-pick", "merge", "pull", "rebase", "reset", "restore", "revert", "stash", "switch"];

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
    let git = |part: &SimpleCommand| {
        let sub = program::git_command(&part.argv);
        let is_seen = part.env.is_empty() && !program::effects_of(&part.argv).effects.iter().any(runs);
        is_seen && sub.is_some_and(|sub| CHECKS_OUT.contains(&sub))
    };
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
