//! Git commands that discard uncommitted changes of the paths that they name, and of nothing else.

use super::{general, joined};
use crate::policy::program::flags;
use crate::policy::program::table::{ArgMeaning, EffectKind, FlagStyle, ProgramRow};

const fn form(call: &'static str, flags: &'static str) -> ProgramRow {
    ProgramRow { call, does: EffectKind::Discards, args: ArgMeaning::Text, flags, style: FlagStyle::Gnu }
}

const RESTORE: ProgramRow =
    form("git restore", "-s= -S -W -q --source= --staged --worktree --quiet --progress --no-progress --ours --theirs");
const PUSH: ProgramRow = form("git stash push", "-m= -k -q --message= --keep-index --no-keep-index --quiet");
const CHECKOUT: ProgramRow = form("git checkout", "-q --quiet --progress --no-progress --ours --theirs");

/// The paths whose uncommitted changes a command discards, from where it is started; `None`: it discards more than it names.
pub fn discarded_paths(argv: &[String]) -> Option<Vec<String>> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let ("git", words) = words.split_first().map(|(program, words)| (*program, words))? else { return None };
    let found = general(words);
    let (row, args) = match found.rest {
        ["restore", args @ ..] => (RESTORE, args),
        ["stash", "push", args @ ..] => (PUSH, args),
        ["checkout", args @ ..] if args.contains(&"--") => (CHECKOUT, args),
        _ => return None,
    };
    let seen = flags::read(&row, args);
    let paths = match args.iter().position(|word| *word == "--").filter(|_| row.call == CHECKOUT.call) {
        // A word before `--` is the revision from which the files are taken.
        Some(at) => args.get(at + 1..)?,
        None => &seen.rest,
    };
    let is_plain = |path: &&str| !path.is_empty() && !path.contains(['*', '?', '[', ':', '\\']);
    let is_known = found.is_whole && seen.unknown.is_empty() && !paths.is_empty() && paths.iter().all(is_plain);
    is_known.then(|| paths.iter().map(|path| joined(&found.base, path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_paths_are_discarded() {
        for (text, want) in [
            ("git restore src/a.rs b.rs", Some(&["src/a.rs", "b.rs"][..])),
            ("git restore --staged --source HEAD~1 -- a", Some(&["a"])),
            ("git -C sub restore a", Some(&["sub/a"])),
            ("git restore a -- b", Some(&["a", "b"])),
            ("git stash push a -- b", Some(&["a", "b"])),
            ("git -C sub restore /p/a", Some(&["/p/a"])),
            ("git checkout -- a b", Some(&["a", "b"])),
            ("git checkout HEAD~1 -- a", Some(&["a"])),
            ("git stash push -m words -- a", Some(&["a"])),
            ("git stash push a", Some(&["a"])),
            ("git stash", None),
            ("git stash push", None),
            ("git stash push -u a", None),
            ("git stash pop", None),
            ("git checkout a", None),
            ("git checkout --", None),
            ("git checkout -f -- a", None),
            ("git restore", None),
            ("git restore *.rs", None),
            ("git restore :/", None),
            ("git restore --pathspec-from-file=x a", None),
            ("git restore --recurse-submodules a", None),
            ("git --work-tree=/ restore a", None),
            ("git reset --hard", None),
        ] {
            let argv: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let want = want.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
            assert_eq!(discarded_paths(&argv), want, "{text}");
        }
    }
}
