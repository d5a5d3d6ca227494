//! Git commands that print contents of files from the history, which may contain paths that are hidden in the working
//! tree.

/// Options that leave contents out of a diff.
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
/// Flags that show contents in a log, or information about contents.
const CONTENTS: [char; 9] = ['p', 'u', 'U', 'L', 'c', 'm', 'S', 'G', 'W'];
/// Long forms of these flags; git accepts them shortened.
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

/// Whether a command prints contents of files that no path in it names.
pub(super) fn are_shown(sub: &str, args: &[&str]) -> bool {
    let names_only =
        || args.iter().any(|word| NAMES_ONLY.iter().any(|name| word == name || word.starts_with(&format!("{name}="))));
    match sub {
        "diff" | "diff-tree" | "diff-index" | "diff-files" => !names_only() || patches(args),
        // `HEAD:src/main.rs` is that file, or the names in that folder, and nothing else.
        "show" if are_files(args) => false,
        // Options for commits do not apply to a blob, which is shown as a whole. Of all names, only `HEAD` is
        // certainly a commit.
        "show" => !names_only() || patches(args) || !revisions(args).all(is_head),
        "stash" => args.first() == Some(&"show") || patches(args),
        "cat-file" if are_files(args) => false,
        "cat-file" => !args.iter().any(|word| matches!(*word, "-t" | "-s" | "-e") || word.starts_with("--batch-check")),
        "grep" | "range-diff" => true,
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

/// Whether every argument names a file in a revision (`HEAD:src/main.rs`) or in the index (`:src/main.rs`).
fn are_files(args: &[&str]) -> bool {
    let is_file = |word: &str| {
        word.split_once(':').is_some_and(|(revision, path)| {
            !revision.contains('{') && !path.is_empty() && !path.starts_with(['/', ':', '(', '!', '^'])
        })
    };
    let options = args.iter().take_while(|word| **word != "--").filter(|word| word.starts_with('-'));
    let plain = |word: &&str| matches!(*word, "-p" | "--no-color" | "--no-textconv" | "--textconv");
    revisions(args).next().is_some() && revisions(args).all(is_file) && options.into_iter().all(plain)
}

/// `HEAD`, `HEAD~2`, `@^`.
fn is_head(word: &str) -> bool {
    let steps = word.strip_prefix("HEAD").or_else(|| word.strip_prefix('@'));
    steps.is_some_and(|steps| steps.chars().all(|letter| matches!(letter, '~' | '^') || letter.is_ascii_digit()))
}
