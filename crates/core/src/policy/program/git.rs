//! Git: general options before the sub-command, and sub-commands that are several in one.
//!
//! Git runs what its configuration names (pagers, drivers, helpers, hooks), so whatever changes the configuration for a
//! call runs something that cannot be seen. What shows contents out of the history is told apart, because names that
//! are out of sight in the folder may be in there.

use super::{Effect, Facts, by_row, host, table};

/// Keys that name no program.
const SAFE_KEYS: [&str; 12] = [
    "color.",
    "advice.",
    "user.name",
    "user.email",
    "core.quotepath",
    "core.abbrev",
    "core.autocrlf",
    "core.safecrlf",
    "init.defaultbranch",
    "log.date",
    "diff.renames",
    "status.",
];
/// Options of `git branch` that only list.
const BRANCH: [&str; 12] = [
    "-a",
    "-r",
    "-v",
    "-vv",
    "--all",
    "--remotes",
    "--list",
    "-l",
    "--show-current",
    "--merged",
    "--no-merged",
    "--no-color",
];
/// Options that leave contents out of a difference.
const NAMES_ONLY: [&str; 9] = [
    "--stat",
    "--name-only",
    "--name-status",
    "--shortstat",
    "--numstat",
    "--summary",
    "--no-patch",
    "-s",
    "--dirstat",
];
/// Letters that put contents into a log, or tell what is in them.
const CONTENTS: [char; 9] = ['p', 'u', 'U', 'L', 'c', 'm', 'S', 'G', 'W'];
/// The same in words; git takes them cut short.
const CONTENT_WORDS: [&str; 10] = [
    "--patch",
    "--unified",
    "--binary",
    "--word-diff",
    "--color-words",
    "--cc",
    "--dd",
    "--remerge-diff",
    "--diff-merges",
    "--function-context",
];

/// Looks at a git command; `None`: it is none.
pub(super) fn look(program: &str, words: &[&str]) -> Option<Facts> {
    if program != "git" {
        return None;
    }
    let General { effects, is_whole, rest } = general(words);
    let Some((sub, args)) = rest.split_first() else {
        let asks = words.iter().all(|word| matches!(*word, "--version" | "-v" | "--help" | "-h"));
        return Some(Facts { is_whole: is_whole && asks && !words.is_empty(), effects, head: 0 });
    };
    let mut facts = special(sub, args).unwrap_or_else(|| match table::find("git", rest) {
        Some((row, left, head)) => {
            let mut facts = by_row(row, &left, head);
            facts.effects.extend(places(row.does == table::Does::Looks, &left));
            if shows_contents(sub, args) {
                facts.effects.push(Effect::History);
            }
            facts
        }
        None => Facts::default(),
    });
    facts.is_whole &= is_whole;
    facts.effects.splice(0..0, effects);
    if rest.len() < words.len() {
        facts.head = 0;
    }
    Some(facts)
}

struct General<'w, 'a> {
    effects: Vec<Effect>,
    is_whole: bool,
    rest: &'w [&'a str],
}

/// The options before the sub-command.
fn general<'w, 'a>(words: &'w [&'a str]) -> General<'w, 'a> {
    let (mut effects, mut is_whole, mut at) = (Vec::new(), true, 0);
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let (name, attached) = word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
        let is_pair = matches!(
            name,
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--super-prefix"
                | "--config-env"
                | "--attr-source"
        );
        let value = match attached {
            Some(value) if name != "-c" => value,
            _ if is_pair => {
                at += 1;
                words.get(at).copied().unwrap_or_default()
            }
            _ => "",
        };
        match name {
            "-C" | "--work-tree" => {
                effects.push(Effect::Read(value.to_owned()));
                is_whole = false;
            }
            "-c" if SAFE_KEYS.iter().any(|key| value.to_lowercase().starts_with(key)) => {}
            "-c" | "--config-env" => effects.push(Effect::Code(format!("`git -c {value}` can name a program to run"))),
            "--git-dir" | "--exec-path" if !value.is_empty() => {
                effects.push(Effect::Code(format!("`git {name}` can name programs to run")));
            }
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--no-replace-objects"
            | "--version"
            | "-v"
            | "--help"
            | "-h"
            | "--html-path"
            | "--exec-path" => {}
            _ => is_whole = false,
        }
        at += 1;
    }
    General { effects, is_whole, rest: words.get(at..).unwrap_or_default() }
}

/// A git command without its general options; `None`: it has none, or is no git command.
pub(super) fn plain(argv: &[String]) -> Option<Vec<String>> {
    let (program, rest) = argv.split_first()?;
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let left = general(&words).rest;
    if program != "git" || left.len() == words.len() {
        return None;
    }
    Some(std::iter::once(program.clone()).chain(left.iter().map(|word| (*word).to_owned())).collect())
}

/// Sub-commands that are several in one.
fn special(sub: &str, args: &[&str]) -> Option<Facts> {
    let first = args.first().copied().unwrap_or_default();
    let looks = |is: bool| is.then(|| Facts { is_whole: true, effects: Vec::new(), head: 2 });
    let code = |why: &str| Facts { is_whole: false, effects: vec![Effect::Code(why.to_owned())], head: 0 };
    match sub {
        "bisect" if first == "run" => {
            let inner = args.iter().skip(1).map(|word| (*word).to_owned()).collect();
            Some(Facts { is_whole: false, effects: vec![Effect::Run(inner)], head: 0 })
        }
        "submodule" if first == "foreach" => Some(code("`git submodule foreach` runs a script in a word")),
        "submodule" => Some(Facts { effects: remotes(args), ..Facts::default() }),
        "config" => {
            let asks =
                ["--get", "--list", "-l", "--get-all", "--get-regexp", "--show-origin", "--show-scope", "get", "list"];
            let is_question = args.iter().any(|word| asks.contains(word))
                && args.iter().all(|word| asks.contains(word) || !word.starts_with('-') || *word == "--local");
            Some(
                looks(is_question && args.len() <= 3)
                    .unwrap_or_else(|| code("git's configuration can name programs to run")),
            )
        }
        "remote" => match first {
            "" | "-v" | "--verbose" if args.len() <= 1 => looks(true),
            "get-url" => looks(true),
            "add" | "set-url" | "rename" => Some(code("it changes where commits go to")),
            _ => None,
        },
        "branch" => looks(
            args.iter()
                .all(|word| BRANCH.contains(word) || word.starts_with("--format=") || word.starts_with("--sort=")),
        ),
        "tag" => looks(
            args.is_empty()
                || (matches!(first, "-l" | "--list") && args.iter().skip(1).all(|word| !word.starts_with('-'))),
        ),
        "stash" => looks(first == "list" && args.len() == 1),
        "reflog" if matches!(first, "expire" | "delete" | "drop") => Some(Facts::default()),
        "filter-branch" => Some(code("`git filter-branch` runs scripts in words")),
        "fetch" | "pull" | "clone" | "ls-remote" => {
            let (row, left, head) =
                table::find("git", &std::iter::once(sub).chain(args.iter().copied()).collect::<Vec<_>>())?;
            let mut facts = by_row(row, &left, head);
            facts.effects.retain(|effect| !matches!(effect, Effect::Reach(_)));
            facts.effects.extend(remotes(args));
            Some(facts)
        }
        _ => None,
    }
}

/// The hosts of addresses among the words; the name of a remote is none.
fn remotes(words: &[&str]) -> Vec<Effect> {
    let told = |word: &&str| {
        if word.starts_with('-') {
            None
        } else if word.contains("::") {
            Some(Effect::Code(format!("`{word}` names a program to reach the repository with")))
        } else if word.contains("://") || word.split('/').next().is_some_and(|first| first.contains(':')) {
            Some(Effect::Reach(host(word)))
        } else {
            None
        }
    };
    words.iter().filter_map(told).collect()
}

/// Places among words that may as well be revisions: behind `--`, behind `rev:`, or by their looks.
fn places(is_looking: bool, words: &[&str]) -> Vec<Effect> {
    let behind = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let place = |(at, word): (usize, &&str)| {
        let named = if at > behind {
            Some(*word)
        } else if let Some((_, path)) = word.split_once(':').filter(|_| !word.starts_with('-')) {
            Some(path)
        } else if word.starts_with(['/', '~'])
            || word.split('/').any(|part| part == "..")
            || (word.starts_with('.') && !word.starts_with(".."))
        {
            Some(*word)
        } else {
            None
        };
        named.filter(|path| !path.is_empty()).map(|path| Effect::Read(path.to_owned()))
    };
    if is_looking { words.iter().enumerate().filter_map(place).collect() } else { Vec::new() }
}

/// Whether contents of files come out of the history.
fn shows_contents(sub: &str, args: &[&str]) -> bool {
    let names_only =
        || args.iter().any(|word| NAMES_ONLY.iter().any(|name| word == name || word.starts_with(&format!("{name}="))));
    match sub {
        "diff" | "diff-tree" => !names_only() || patches(args),
        // Whatever is asked of a commit, a blob is shown whole; of names, only this one is surely a commit's.
        "show" => !names_only() || patches(args) || !revisions(args).all(is_head),
        "stash" => args.first() == Some(&"show"),
        "cat-file" => !args.iter().any(|word| matches!(*word, "-t" | "-s" | "-e")),
        "grep" | "blame" => true,
        "log" | "whatchanged" | "rev-list" | "reflog" => patches(args),
        _ => false,
    }
}

/// Whether an option puts contents into a list of commits.
fn patches(args: &[&str]) -> bool {
    args.iter().take_while(|word| **word != "--").any(|word| match word.strip_prefix("--") {
        Some(_) => {
            let name = word.split('=').next().unwrap_or(word);
            let is = |known: &&str| name.starts_with(*known) || known.starts_with(name);
            !matches!(name, "--color" | "--diff") && CONTENT_WORDS.iter().any(is)
        }
        None => word.strip_prefix('-').is_some_and(|letters| letters.contains(CONTENTS)),
    })
}

/// The words before `--` that are no options.
fn revisions<'w, 'a>(args: &'w [&'a str]) -> impl Iterator<Item = &'a str> + use<'w, 'a> {
    args.iter().copied().take_while(|word| *word != "--").filter(|word| !word.starts_with('-'))
}

/// `HEAD`, `HEAD~2`, `@^`.
fn is_head(word: &str) -> bool {
    let steps = word.strip_prefix("HEAD").or_else(|| word.strip_prefix('@'));
    steps.is_some_and(|steps| steps.chars().all(|letter| matches!(letter, '~' | '^') || letter.is_ascii_digit()))
}
