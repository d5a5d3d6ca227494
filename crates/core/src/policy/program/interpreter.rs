//! Shells and interpreters: the script that they run, and the code that their flags load.

use super::{CommandEffect, CommandFacts, row_effects, task};
use crate::policy::HiddenReason;

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "pwsh"];
/// Flags of interpreters whose value is a file or folder of code to load.
const LOADS: [&str; 15] = [
    "--cwd",
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-I",
    "-C",
    "--env-file",
    "--preload",
    "--config",
    "--import-map",
    "-f",
    "--file",
    "-d",
];

/// The effects of a shell or an interpreter; `None` for other programs.
pub(super) fn interpreter_effects(program: &str, words: &[&str]) -> Option<CommandFacts> {
    if SHELLS.contains(&program) {
        return Some(shell(program, words));
    }
    // The sub-commands of `bun` have rows of their own.
    let is_row = program == "bun" && matches!(words.first(), Some(&("run" | "test" | "install" | "add")));
    if !super::table::is_interpreter(program) || is_row {
        return None;
    }
    if words.iter().all(|word| *word == "-") {
        let effects = vec![CommandEffect::Code(HiddenReason::ReadsCode(program.to_owned()))];
        return Some(CommandFacts { effects, ..CommandFacts::default() });
    }
    let mut effects = loaded(words);
    effects.extend(module(program, words));
    effects.extend(task(program, words));
    Some(CommandFacts { effects, ..CommandFacts::default() })
}

/// `sh script` runs a file; `sh -c text`, `sh -s` and a bare `sh` run what cannot be seen.
fn shell(name: &str, words: &[&str]) -> CommandFacts {
    let effects = match words.first() {
        Some(first) if !first.starts_with(['-', '+']) => {
            let mut effects = vec![CommandEffect::Read((*first).to_owned())];
            effects.extend(task(name, words));
            effects
        }
        _ => vec![CommandEffect::Code(HiddenReason::NoScriptFile(name.to_owned()))],
    };
    CommandFacts { effects, ..CommandFacts::default() }
}

/// The script, and the code that flags before it load.
fn loaded(words: &[&str]) -> Vec<CommandEffect> {
    let mut effects = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            // The sub-command of `deno run`, `bun run`.
            if matches!(word, "run" | "test" | "x") {
                continue;
            }
            effects.extend((word != "-").then(|| CommandEffect::Read(word.to_owned())));
            break;
        }
        if matches!(word, "-c" | "-e" | "-m" | "--eval" | "-p" | "--print") {
            break;
        }
        let (name, attached) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if LOADS.contains(&name) {
            let value = attached.or_else(|| words.next()).unwrap_or_default();
            effects.push(CommandEffect::Read(value.to_owned()));
        }
    }
    effects
}

/// `python -m pytest …` does what `pytest …` does.
fn module(program: &str, words: &[&str]) -> Vec<CommandEffect> {
    let at = words.iter().position(|word| *word == "-m").filter(|_| program.starts_with("python"));
    let inner = at.and_then(|at| words.get(at + 1..)).unwrap_or_default();
    row_effects(inner).effects.into_iter().filter(|effect| !matches!(effect, CommandEffect::Run(_))).collect()
}
