//! Sub-commands with several forms: one lists, another changes, a third discards uncommitted work.

use super::{CommandEffect, CommandFacts, places, remotes};
use crate::policy::HiddenReason;
use crate::policy::program::by_row;
use crate::policy::program::flags::{self, ParsedFlags};
use crate::policy::program::table::{self, ArgMeaning, EffectKind, FlagStyle, ProgramRow};

const fn form(call: &'static str, flags: &'static str) -> ProgramRow {
    ProgramRow { call, does: EffectKind::Looks, args: ArgMeaning::Text, flags, style: FlagStyle::Gnu }
}

const BRANCH: ProgramRow = form(
    "git branch",
    "-a -r -v -q -i -l --all --remotes --verbose --quiet --list --show-current --merged? --no-merged? --contains? --no-contains? --points-at= --sort= --format= --column? --no-column --color? --no-color --abbrev? --no-abbrev --ignore-case --omit-empty",
);
const TAG: ProgramRow = form(
    "git tag",
    "-l -n? -i --list --merged? --no-merged? --contains? --no-contains? --points-at= --sort= --format= --column? --no-column --color? --ignore-case --omit-empty",
);
/// Flags with which `git branch` and `git tag` list, so that words are patterns and not names to create.
const LISTS: [&str; 8] =
    ["--list", "-l", "-n", "--merged", "--no-merged", "--contains", "--no-contains", "--points-at"];
const CONFIG: ProgramRow = form(
    "git config",
    "-l -z -f< --file< --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --list --show-origin --show-scope --show-names --name-only --null --type= --bool --int --bool-or-int --path --expiry-date --default= --all --regexp --value= --fixed-value --url= --includes --no-includes --local --global --system --worktree",
);
/// Flags that make `git config` read.
const READS: [&str; 6] = ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"];
const REMOTE: ProgramRow = form("git remote", "-v -n --verbose --push --all");
const REFERENCE: ProgramRow = form("git symbolic-ref", "-q --quiet --short --no-recurse");
const CLEAN: ProgramRow = form("git clean", "-n -d -x -X -q -f -e= --dry-run --exclude= --quiet --force");

fn read<'a>(row: &ProgramRow, args: &[&'a str]) -> ParsedFlags<'a> {
    flags::read(row, args)
}

fn has(seen: &ParsedFlags<'_>, names: &[&str]) -> bool {
    seen.names.iter().any(|name| names.contains(name))
}

/// The effects of such a sub-command; `None`: the row of the table holds.
pub(super) fn form_effects(sub: &str, args: &[&str]) -> Option<CommandFacts> {
    let looks = |is: bool| is.then(|| CommandFacts { is_whole: true, effects: Vec::new(), head: 2 });
    let first = args.first().copied().unwrap_or_default();
    match sub {
        "branch" => looks(is_list(&read(&BRANCH, args))),
        "tag" => looks(is_list(&read(&TAG, args))),
        "config" => Some(config(args)),
        "remote" => remote(args),
        "symbolic-ref" => {
            let seen = read(&REFERENCE, args);
            looks(seen.unknown.is_empty() && seen.rest.len() == 1)
        }
        "clean" => {
            let seen = read(&CLEAN, args);
            let is_dry = seen.unknown.is_empty() && has(&seen, &["-n", "--dry-run"]);
            looks(is_dry).map(|facts| CommandFacts { effects: places(&seen.rest), ..facts })
        }
        "restore" | "checkout" | "rm" => Some(discarding(sub, args)),
        "bisect" if first == "run" => {
            let inner = args.iter().skip(1).map(|word| (*word).to_owned()).collect();
            Some(CommandFacts { is_whole: false, effects: vec![CommandEffect::Run(inner)], head: 0 })
        }
        "submodule" if first == "foreach" => Some(code(HiddenReason::Script("git submodule foreach".to_owned()))),
        "submodule" if args.is_empty() => looks(true),
        "submodule" if first != "status" => {
            let discards = args.iter().any(|word| matches!(*word, "-f" | "--force" | "deinit"));
            let effects = remotes(args).into_iter().chain(discards.then_some(CommandEffect::Discard)).collect();
            Some(CommandFacts { effects, ..CommandFacts::default() })
        }
        "filter-branch" => Some(code(HiddenReason::Script("git filter-branch".to_owned()))),
        "fetch" | "pull" | "clone" | "ls-remote" => {
            let words: Vec<&str> = std::iter::once(sub).chain(args.iter().copied()).collect();
            let (row, left, head) = table::find("git", &words)?;
            let mut facts = by_row(row, &left, head);
            facts.effects.retain(|effect| !matches!(effect, CommandEffect::Reach(_)));
            facts.effects.extend(remotes(args));
            Some(facts)
        }
        _ => None,
    }
}

fn code(why: HiddenReason) -> CommandFacts {
    CommandFacts { is_whole: false, effects: vec![CommandEffect::Code(why)], head: 0 }
}

fn is_list(seen: &ParsedFlags<'_>) -> bool {
    seen.unknown.is_empty() && (seen.rest.is_empty() || has(seen, &LISTS))
}

fn config(args: &[&str]) -> CommandFacts {
    let seen = read(&CONFIG, args);
    let is_verb = matches!(seen.rest.first(), Some(&("get" | "list")));
    // A key alone is read, a key with a value is set.
    let is_question = is_verb || has(&seen, &READS) || (seen.rest.len() == 1 && seen.rest.iter().all(is_key));
    if !seen.unknown.is_empty() || !is_question {
        return code(HiddenReason::GitConfig);
    }
    CommandFacts { is_whole: true, effects: seen.effects, head: 2 }
}

/// A key of the configuration has a section and a name.
fn is_key(word: &&str) -> bool {
    word.contains('.')
}

fn remote(args: &[&str]) -> Option<CommandFacts> {
    let seen = read(&REMOTE, args);
    let is_known = seen.unknown.is_empty();
    let looks = match seen.rest.as_slice() {
        [] | ["get-url", _] | ["show"] => is_known,
        // Without `-n` it contacts the remote.
        ["show", _] => is_known && has(&seen, &["-n"]),
        _ => false,
    };
    let changes = matches!(args.first(), Some(&("add" | "set-url" | "rename")));
    match (looks, changes) {
        (true, _) => Some(CommandFacts { is_whole: true, effects: Vec::new(), head: 2 }),
        (_, true) => Some(code(HiddenReason::GitTarget)),
        _ => None,
    }
}

/// `restore`, `checkout` and `rm`: the forms that leave the working tree as it is, and all others.
fn discarding(sub: &str, args: &[&str]) -> CommandFacts {
    let words: Vec<&str> = std::iter::once(sub).chain(args.iter().copied()).collect();
    let Some((row, left, head)) = table::find("git", &words) else { return CommandFacts::default() };
    let mut facts = by_row(row, &left, head);
    let options: Vec<&str> = args.iter().copied().take_while(|word| *word != "--").collect();
    let given = |names: &[&str]| options.iter().any(|word| names.contains(word));
    // Git accepts shortened long names and joined letters.
    let perhaps = |long: &str, letter: char| {
        options.iter().any(|word| match word.strip_prefix("--") {
            Some(name) => long.starts_with(name),
            None => word.strip_prefix('-').is_some_and(|letters| letters.contains(letter)),
        })
    };
    let keeps = match sub {
        "restore" => given(&["--staged", "-S"]) && !perhaps("worktree", 'W'),
        "rm" => given(&["--cached", "--dry-run", "-n"]),
        _ => {
            let makes = matches!(options.first(), Some(&("-b" | "-B" | "--orphan")));
            args.is_empty() || (makes && !perhaps("force", 'f'))
        }
    };
    facts.effects.retain(|effect| !keeps || *effect != CommandEffect::Discard);
    if !keeps && !facts.effects.contains(&CommandEffect::Discard) {
        facts.effects.push(CommandEffect::Discard);
    }
    facts
}
