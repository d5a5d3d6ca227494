//! Patterns of file names in a line (`src/*.rs`), replaced by the names that they stand for.
//!
//! They are expanded when the line is read, so that the judged command is the one that runs. The result equals a
//! shell's only if nothing earlier in the line changes a file and the command only reads its arguments; any other line
//! with a pattern is left to a shell and asks a person.

use max_team_core::policy::ShellSyntax;
use std::fs;
use std::path::Path;

use max_team_core::limits::{GLOB_LOOKED_MAX, GLOB_NAMES_MAX};
use max_team_core::policy::command_line::{Operator, RedirectTarget, SimpleCommand};
use max_team_core::policy::glob::Glob;
use max_team_core::policy::program::{self, CommandEffect};

/// A word of a line that is a pattern: which part, which word of it, and the pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) part: usize,
    pub(super) word: usize,
    /// Letters that stand for themselves have a backslash where they could stand for others.
    pub(super) text: String,
}

/// Puts names in the place of patterns.
pub(super) fn expand(parts: &mut [SimpleCommand], patterns: &[Pattern], root: &Path) -> Result<(), ShellSyntax> {
    let mut folder = String::new();
    for at in 0..parts.len() {
        let (before, rest) = parts.split_at_mut(at);
        let Some(part) = rest.first_mut() else { break };
        let own: Vec<&Pattern> = patterns.iter().filter(|pattern| pattern.part == at).collect();
        if !own.is_empty() {
            if !before.iter().all(only_looks) {
                return Err(ShellSyntax::Pattern);
            }
            replace(part, &own, &root.join(&folder), root)?;
        }
        match part.argv.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            // Where the rest of the line is, if it is anywhere.
            ["cd", to] if at == 0 => (*to).clone_into(&mut folder),
            ["cd", ..] if patterns.iter().any(|pattern| pattern.part > at) => return Err(ShellSyntax::Pattern),
            _ => {}
        }
    }
    let is_chain = parts.iter().skip(1).all(|part| matches!(part.join, Operator::And | Operator::Pipe));
    if !folder.is_empty() && !is_chain { Err(ShellSyntax::Pattern) } else { Ok(()) }
}

/// Whether a command changes no file.
fn only_looks(part: &SimpleCommand) -> bool {
    let facts = program::effects_of(&part.argv);
    let changes = |effect: &CommandEffect| {
        matches!(effect, CommandEffect::Write(_) | CommandEffect::Delete(_) | CommandEffect::Run(_))
    };
    let writes = part.flows.iter().any(
        |flow| matches!(&flow.to, RedirectTarget::Write(path) | RedirectTarget::Append(path) if path != "/dev/null"),
    );
    facts.is_whole && !writes && !facts.effects.iter().any(changes)
}

fn replace(part: &mut SimpleCommand, patterns: &[&Pattern], folder: &Path, root: &Path) -> Result<(), ShellSyntax> {
    let mut argv = Vec::with_capacity(part.argv.len());
    let mut found = Vec::new();
    for (at, word) in part.argv.iter().enumerate() {
        match patterns.iter().find(|pattern| pattern.word == at) {
            None => argv.push(word.clone()),
            Some(pattern) => {
                let mut names = names(&pattern.text, folder, root)?;
                // A shell hands on a pattern that fits nothing as it stands.
                if names.is_empty() {
                    names.push(word.clone());
                }
                found.extend(names.iter().cloned());
                argv.extend(names);
            }
        }
        if argv.len() > GLOB_NAMES_MAX {
            return Err(ShellSyntax::WidePattern(GLOB_NAMES_MAX));
        }
    }
    // The command must be judged as a reader of each name.
    let effects = program::effects_of(&argv).effects;
    let is_read =
        |name: &String| effects.iter().any(|effect| matches!(effect, CommandEffect::Read(path) if path == name));
    let changes = effects.iter().any(|effect| matches!(effect, CommandEffect::Write(_) | CommandEffect::Delete(_)));
    if changes || !found.iter().all(is_read) {
        return Err(ShellSyntax::Pattern);
    }
    part.argv = argv;
    Ok(())
}

/// The names in the project that a pattern fits; none if it leads out of it, or fits too many.
pub(crate) fn matching_names(pattern: &str, root: &Path) -> Vec<String> {
    names(pattern, root, root).unwrap_or_default()
}

/// The names that a pattern fits, sorted, as they are written from the folder.
fn names(pattern: &str, folder: &Path, root: &Path) -> Result<Vec<String>, ShellSyntax> {
    if pattern.starts_with('/') || pattern.split('/').any(|name| name == "..") {
        return Err(ShellSyntax::Pattern);
    }
    let (mut found, mut looked) = (vec![String::new()], 0);
    for name in pattern.split('/') {
        let mut next = Vec::new();
        for base in &found {
            if is_plain(name) {
                let path = format!("{base}{}", plain(name));
                if folder.join(&path).symlink_metadata().is_ok() {
                    next.push(format!("{path}/"));
                }
                continue;
            }
            let glob = Glob::new(&name.replace("**", "*"), false).map_err(|_| ShellSyntax::Pattern)?;
            let Some(entries) = entries(&folder.join(base), root)? else { continue };
            for entry in entries {
                looked += 1;
                if looked > GLOB_LOOKED_MAX {
                    return Err(ShellSyntax::SlowPattern(GLOB_LOOKED_MAX));
                }
                let is_hidden = entry.starts_with('.') && !name.starts_with(['.', '\\']);
                if !is_hidden && glob.names(&entry) {
                    next.push(format!("{base}{entry}/"));
                }
            }
        }
        found = next;
    }
    let mut names: Vec<String> = found.iter().map(|name| name.trim_end_matches('/').to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// The names in a folder; `None` if it is no folder. A folder outside the project is an error.
fn entries(folder: &Path, root: &Path) -> Result<Option<Vec<String>>, ShellSyntax> {
    let (Ok(real), Ok(root)) = (folder.canonicalize(), root.canonicalize()) else { return Ok(None) };
    if !real.starts_with(&root) {
        return Err(ShellSyntax::Pattern);
    }
    let Ok(entries) = fs::read_dir(&real) else { return Ok(None) };
    // A name that is no text cannot be a word of a line.
    entries
        .map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect::<Option<Vec<String>>>()
        .map(Some)
        .ok_or(ShellSyntax::Pattern)
}

fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '*' | '?' | '[' => return false,
            _ => {}
        }
    }
    true
}

fn plain(name: &str) -> String {
    let mut letters = name.chars();
    let mut text = String::with_capacity(name.len());
    while let Some(letter) = letters.next() {
        text.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    text
}
