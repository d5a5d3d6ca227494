//! What a command line deletes that `/rewind` finds by no scan of the project: repositories and their references, ignored and
//! large files, files outside the project.
//!
//! The line names the targets ([`deletion_targets`]), the tool measures them on the disk, and [`Deletion::decide`] says
//! which are kept before the command runs and which are lost. Only a person who types a word approves a loss.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Action;
use super::command_line::{CommandLine, SimpleCommand};
use super::grant::pieces;
use super::program::{self, CommandEffect, DEPTH_MAX};
use crate::limits::{DELETION_KEPT_BYTES_MAX, DELETION_KEPT_FILES_MAX, FOLDERS_MAX};

/// The word that approves a loss.
pub const DELETION_WORD: &str = "delete";
/// The same in the other languages of the interface; any of them counts.
const DELETION_WORDS_ELSEWHERE: [&str; 1] = ["删除"];

/// Paths that a text names; the others are counted.
const NAMED_MAX: usize = 5;

/// Something that a line deletes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeletionTarget {
    /// A path and everything beneath, relative to the folder that the line starts in.
    Path(String),
    /// What `git clean` removes in that folder, with arguments that only choose files.
    Clean { folder: String, args: Vec<String> },
    /// Git's references and its index, for the repository around that folder: the objects behind them stay.
    References { folder: String },
    /// A part that only running the line tells: what a `find` with conditions finds.
    Unmeasured,
}

/// A measured part of a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedPath {
    /// Relative to the project, or absolute outside it.
    pub path: String,
    pub files: usize,
    pub bytes: u64,
}

/// What becomes of the parts of a deletion that no scan watches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deletion {
    /// Kept before the command runs, so that `/rewind` gives them back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<DeletedPath>,
    /// Too large to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<DeletedPath>,
    /// Whether the line also deletes what was not measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmeasured: bool,
}

impl Deletion {
    /// Keeps parts, the earlier ones first, as long as all that is kept stays within the bounds.
    pub fn decide(parts: impl IntoIterator<Item = DeletedPath>) -> Self {
        let (mut deletion, mut files, mut bytes) = (Self::default(), 0_usize, 0_u64);
        for part in parts {
            let (more_files, more_bytes) = (files.saturating_add(part.files), bytes.saturating_add(part.bytes));
            if more_files <= DELETION_KEPT_FILES_MAX && more_bytes <= DELETION_KEPT_BYTES_MAX {
                (files, bytes) = (more_files, more_bytes);
                deletion.kept.push(part);
            } else {
                deletion.lost.push(part);
            }
        }
        deletion
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.lost.is_empty() && !self.unmeasured
    }

    /// The first paths that are lost, and how many more there are.
    pub fn lost_names(&self) -> (Vec<&str>, usize) {
        first_names(&self.lost)
    }

    /// The first paths that are kept, and how many more there are.
    pub fn kept_names(&self) -> (Vec<&str>, usize) {
        first_names(&self.kept)
    }
}

fn first_names(paths: &[DeletedPath]) -> (Vec<&str>, usize) {
    let names = paths.iter().take(NAMED_MAX).map(|deleted| deleted.path.as_str()).collect();
    (names, paths.len().saturating_sub(NAMED_MAX))
}

/// The paths that are lost.
impl fmt::Display for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (names, more) = self.lost_names();
        for (at, name) in names.into_iter().enumerate() {
            write!(f, "{}`{name}`", if at == 0 { "" } else { ", " })?;
        }
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

impl Action {
    /// What it deletes for good, if it does.
    pub fn loss(&self) -> Option<&Deletion> {
        self.deletion.as_deref().filter(|deletion| !deletion.lost.is_empty())
    }
}

/// Whether a typed word approves a loss.
pub fn is_deletion_word(word: &str) -> bool {
    let word = word.trim().to_lowercase();
    word == DELETION_WORD || DELETION_WORDS_ELSEWHERE.contains(&word.as_str())
}

/// What a line deletes, as far as it names it. A moved file is not lost, and what a `find` with conditions deletes of all that
/// it names is not measured. In a line that only a shell can parse, the words that look like deletions count.
pub fn deletion_targets(line: &CommandLine) -> Vec<DeletionTarget> {
    let mut targets = Vec::new();
    match line {
        CommandLine::Plain(parts) => {
            let mut folders = vec![String::new()];
            for part in parts {
                folders.iter().for_each(|folder| collect(&part.argv, folder, DEPTH_MAX, &mut targets));
                enter(part, &mut folders);
            }
        }
        CommandLine::Opaque { text, .. } => {
            pieces(text).iter().for_each(|argv| collect(argv, "", DEPTH_MAX, &mut targets));
        }
    }
    targets.sort();
    targets.dedup();
    targets
}

/// Whether a line does nothing but touch the paths that it names, so that a sandbox may open what it deletes.
pub fn only_touches_paths(line: &CommandLine) -> bool {
    let is_named = |effect: &CommandEffect| {
        matches!(effect, CommandEffect::Read(_) | CommandEffect::Write(_) | CommandEffect::Delete(_))
    };
    let is_plain = |part: &SimpleCommand| {
        let facts = program::effects_of(&part.argv);
        let moves = part.argv.first().is_some_and(|program| program == "cd");
        part.env.is_empty() && (moves || (facts.is_whole && facts.effects.iter().all(is_named)))
    };
    matches!(line, CommandLine::Plain(parts) if parts.iter().all(is_plain))
}

/// Adds the folders that the rest of the line may run in after a `cd`, which may have failed.
fn enter(part: &SimpleCommand, folders: &mut Vec<String>) {
    if part.argv.first().is_none_or(|program| program != "cd") || folders.len() > FOLDERS_MAX {
        return;
    }
    let Some(to) = part.argv.iter().skip(1).find(|word| !word.starts_with('-')) else { return };
    let moved: Vec<String> = folders.iter().map(|folder| joined(folder, to)).collect();
    folders.extend(moved);
    folders.dedup();
}

fn collect(argv: &[String], folder: &str, depth: usize, targets: &mut Vec<DeletionTarget>) {
    let program = argv.first().map(|program| program.rsplit('/').next().unwrap_or(program)).unwrap_or_default();
    if let Some((base, sub, args)) = program::git_arguments(argv) {
        let folder = if base.is_empty() { folder.to_owned() } else { joined(folder, &base) };
        match sub {
            "mv" => return,
            "clean" => {
                targets.extend(cleaned(args).map(|args| DeletionTarget::Clean { folder, args }));
                return;
            }
            _ if discards_references(argv, sub, args) => {
                targets.push(DeletionTarget::References { folder });
                return;
            }
            _ => {}
        }
    }
    if program == "mv" {
        return;
    }
    if program == "find" && !deletes_all(argv) {
        targets.extend(is_deleting(argv).then_some(DeletionTarget::Unmeasured));
        return;
    }
    for effect in program::effects_of(argv).effects {
        match effect {
            CommandEffect::Delete(path) => targets.push(DeletionTarget::Path(joined(folder, &path))),
            CommandEffect::Run(inner) if depth > 0 => collect(&inner, folder, depth - 1, targets),
            _ => {}
        }
    }
}

/// Whether a `find` deletes all that it finds: it has no conditions.
fn deletes_all(argv: &[String]) -> bool {
    let words = argv.iter().skip(1).skip_while(|word| !word.starts_with('-'));
    words.into_iter().all(|word| word == "-delete" || word == "-depth")
}

/// Whether a `find` deletes something, itself or with a program that it starts.
fn is_deleting(argv: &[String]) -> bool {
    let deletes = |effect: &CommandEffect| match effect {
        CommandEffect::Delete(_) => true,
        CommandEffect::Run(inner) => {
            program::effects_of(inner).effects.iter().any(|effect| matches!(effect, CommandEffect::Delete(_)))
        }
        _ => false,
    };
    program::effects_of(argv).effects.iter().any(deletes)
}

/// Whether a git command can leave commits or staged files that no name leads to.
fn discards_references(argv: &[String], sub: &str, args: &[String]) -> bool {
    let is_discarding = || program::effects_of(argv).effects.contains(&CommandEffect::Discard);
    let is_forced = || {
        let short = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('f');
        args.iter().take_while(|word| *word != "--").any(|word| word.starts_with("--f") || short(word))
    };
    match sub {
        "reset" | "branch" | "switch" | "update-ref" | "reflog" => is_discarding(),
        "stash" => matches!(args.first().map(String::as_str), Some("drop" | "clear" | "pop")),
        "checkout" => is_forced(),
        _ => false,
    }
}

/// What `git clean` with these arguments removes, in arguments that only choose files; `None`: it only says what it would
/// remove. An unknown option may choose anything, so all that is not tracked counts.
fn cleaned(args: &[String]) -> Option<Vec<String>> {
    let all = || Some(["-d", "-x"].map(str::to_owned).to_vec());
    let (mut chosen, mut paths, mut is_dry) = (Vec::new(), Vec::new(), false);
    let mut words = args.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--" => paths.extend(words.by_ref()),
            "--force" | "--quiet" | "--interactive" => {}
            "--dry-run" => is_dry = true,
            "--exclude" => chosen.push(format!("--exclude={}", words.next()?)),
            _ if word.starts_with("--exclude=") => chosen.push(word.to_owned()),
            _ if word.starts_with("--") => return all(),
            _ if word.len() > 1 && word.starts_with('-') => {
                for (at, letter) in word.char_indices().skip(1) {
                    match letter {
                        'f' | 'q' | 'i' => {}
                        'n' => is_dry = true,
                        'd' | 'x' | 'X' => chosen.push(format!("-{letter}")),
                        'e' => {
                            let rest = word.get(at + 1..).filter(|rest| !rest.is_empty());
                            chosen.push(format!("--exclude={}", rest.or_else(|| words.next())?));
                            break;
                        }
                        _ => return all(),
                    }
                }
            }
            path => paths.push(path),
        }
    }
    chosen.push("--".to_owned());
    chosen.extend(paths.into_iter().map(str::to_owned));
    (!is_dry).then_some(chosen)
}

fn joined(folder: &str, path: &str) -> String {
    match path {
        path if path.starts_with('/') || folder.is_empty() => path.to_owned(),
        path => format!("{folder}/{path}"),
    }
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

    fn found(line: &CommandLine) -> Vec<String> {
        let shown = |target: DeletionTarget| match target {
            DeletionTarget::Path(path) => path,
            DeletionTarget::Clean { folder, args } => format!("clean[{folder}] {}", args.join(" ")),
            DeletionTarget::References { folder } => format!("references[{folder}]"),
            DeletionTarget::Unmeasured => "unmeasured".to_owned(),
        };
        deletion_targets(line).into_iter().map(shown).collect()
    }

    #[test]
    fn lines_name_what_they_delete() {
        for (line, want) in [
            ("rm -rf .git", &[".git"][..]),
            ("rm a ../b", &["../b", "a"]),
            ("/bin/rm -r a && make", &["a"]),
            ("timeout 9 rm -rf a", &["a"]),
            ("cd sub && rm -rf .git", &[".git", "sub/.git"]),
            ("cd /x && rm y", &["/x/y", "y"]),
            ("shred -u a", &["a"]),
            ("find build -delete", &["build"]),
            ("find build -exec rm {} ;", &["unmeasured"]),
            ("find . -name *.o -delete", &["unmeasured"]),
            ("find . -name *.o", &[]),
            ("find . -name *.o -exec cat {} ;", &[]),
            ("mv .git /elsewhere", &[]),
            ("git mv a b", &[]),
            ("git clean -fdx", &["clean[] -d -x --"]),
            ("git -C sub clean -fd a", &["clean[sub] -d -- a"]),
            ("git clean -fdx --no-dry-run", &["clean[] -d -x"]),
            ("git clean -nf --no-dry", &["clean[] -d -x"]),
            ("git clean -fdxenothing", &["clean[] -d -x --exclude=nothing --"]),
            ("git clean -f -e -n", &["clean[] --exclude=-n --"]),
            ("git clean -f -- -n", &["clean[] -- -n"]),
            ("cd -P sub && rm a", &["a", "sub/a"]),
            ("cd -- sub && rm a", &["a", "sub/a"]),
            ("git clean -nfdx", &[]),
            ("git clean --dry-run", &[]),
            ("git clean -f -e next", &["clean[] --exclude=next --"]),
            ("git reset --hard", &["references[]"]),
            ("git -C sub reset --hard HEAD~1", &["references[sub]"]),
            ("git reset a.txt", &[]),
            ("git branch -D side", &["references[]"]),
            ("git branch side", &[]),
            ("git stash drop", &["references[]"]),
            ("git stash clear", &["references[]"]),
            ("git --no-pager -C stash stash drop", &["references[stash]"]),
            ("git -c advice.detachedHead=false -P clean -f", &["clean[] --"]),
            ("git stash list", &[]),
            ("git checkout -f", &["references[]"]),
            ("git checkout --force main", &["references[]"]),
            ("git checkout -- -f", &[]),
            ("cat a", &[]),
        ] {
            assert_eq!(found(&plain(line)), want, "{line}");
        }
        let opaque = |text: &str| CommandLine::Opaque { text: text.into(), why: ShellSyntax::ControlStructure };
        assert_eq!(found(&opaque("for f in a b; do rm -rf $f; done; rm -r .git")), [".git", "f"]);
        assert_eq!(found(&opaque("rm -rf build/*")), ["build/*"]);
    }

    #[test]
    fn a_sandbox_is_opened_for_lines_that_touch_paths_alone() {
        for (line, want) in [
            ("rm -rf .git", true),
            ("cd sub && rm -rf .git && ls", true),
            ("rm -rf .git && make", false),
            ("timeout 9 rm -rf .git", false),
            ("git clean -fdx", false),
        ] {
            assert_eq!(only_touches_paths(&plain(line)), want, "{line}");
        }
    }

    #[test]
    fn parts_are_kept_within_the_bounds_and_the_rest_is_lost() {
        let part = |path: &str, files: usize, bytes: u64| DeletedPath { path: path.into(), files, bytes };
        let names = |paths: &[DeletedPath]| paths.iter().map(|one| one.path.clone()).collect::<Vec<_>>();
        for (parts, kept, lost) in [
            (vec![], &[][..], &[][..]),
            (vec![part(".git", 30, 9_000)], &[".git"], &[]),
            (vec![part("a", 1, DELETION_KEPT_BYTES_MAX), part("b", 1, 1)], &["a"], &["b"]),
            (vec![part("a", DELETION_KEPT_FILES_MAX + 1, 1), part("b", 1, 1)], &["b"], &["a"]),
        ] {
            let decided = Deletion::decide(parts);
            assert_eq!(
                (names(&decided.kept), names(&decided.lost)),
                (
                    kept.iter().map(|one| (*one).to_owned()).collect(),
                    lost.iter().map(|one| (*one).to_owned()).collect()
                )
            );
        }
        let many = Deletion { lost: (0..7).map(|at| part(&format!("f{at}"), 1, 1)).collect(), ..Deletion::default() };
        assert_eq!(many.to_string(), "`f0`, `f1`, `f2`, `f3`, `f4` and 2 more");
    }

    #[test]
    fn only_the_word_approves_a_loss() {
        for (word, want) in [
            ("delete", true),
            (" Delete ", true),
            ("删除", true),
            ("y", false),
            ("yes", false),
            ("", false),
            ("delete it", false),
        ] {
            assert_eq!(is_deletion_word(word), want, "{word}");
        }
    }
}
