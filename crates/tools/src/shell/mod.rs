//! Command lines: what a text would run, and the action that the policy judges.
//!
//! A shell's language is read by a real grammar, but only its plain part is accepted: words, quotes, patterns of file
//! names, `&& || ; |`, lines, comments, and redirections to and from named files. Everything else is *opaque*, and a
//! person is asked. [`action`] and [`parse_line`] run nothing; `tool` runs what was judged, `background` the commands that
//! their agent does not wait for.

mod background;
mod ended;
mod exec;
mod glob;
mod history;
mod job_note;
mod parse;
mod tool;
mod word;

use std::path::{Path, PathBuf};

use max_team_core::policy::command_line::{CommandLine, RedirectTarget, SimpleCommand};
use max_team_core::policy::program::{self, CommandEffect};
use max_team_core::policy::{Action, ActionKind, ShellSyntax};
use max_team_core::text::visible;

pub use background::{Background, BackgroundStatus};
pub(crate) use background::{shell_output, shell_stop};
pub(crate) use glob::matching_names;
pub use job_note::JobNote;
pub use parse::parse_line;
use parse::parse_line_in;
pub(crate) use tool::run_shell;

/// Places of one line that are checked for links; a line with more is opaque, and asks.
const PLACES_MAX: usize = 256;
/// How deep commands inside commands are followed to find places.
const DEPTH_MAX: usize = 4;

/// What running a line in the project's folder would do. Looks at the disk only to see where links lead.
pub fn action(text: &str, root: &Path) -> Action {
    let line = parse_line_in(text, root);
    let shown = line.shown();
    let preview = match &line {
        CommandLine::Plain(_) => String::new(),
        CommandLine::Opaque { .. } => visible(text).to_string(),
    };
    let (line, links) = match &line {
        CommandLine::Plain(parts) => match links(parts, root) {
            Some(links) => (line, links),
            None => {
                (CommandLine::Opaque { text: text.to_owned(), why: ShellSyntax::ManyPlaces(PLACES_MAX) }, Vec::new())
            }
        },
        CommandLine::Opaque { .. } => (line, Vec::new()),
    };
    Action { kind: ActionKind::Execute, preview, line: Some(line), links, ..Action::read(shown.replace('\n', "␊")) }
}

/// The places of a line that lead elsewhere; `None`: there are too many to check.
fn links(parts: &[SimpleCommand], root: &Path) -> Option<Vec<(String, String)>> {
    let mut folders = vec![PathBuf::new()];
    let mut links = Vec::new();
    let mut looked = 0;
    for part in parts {
        let flows = part.flows.iter().filter_map(|flow| match &flow.to {
            RedirectTarget::Read(path) | RedirectTarget::Write(path) | RedirectTarget::Append(path) => {
                Some(path.clone())
            }
            RedirectTarget::Same(_) => None,
        });
        let mut places: Vec<String> = flows.collect();
        collect(&part.argv, DEPTH_MAX, &mut places);
        for folder in &folders {
            for place in &places {
                looked += 1;
                if looked > PLACES_MAX {
                    return None;
                }
                let path = folder.join(place);
                links.extend(led(root, &path));
            }
        }
        if let ["cd", to] = part.argv.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            let moved: Vec<PathBuf> = folders.iter().map(|folder| folder.join(to)).collect();
            folders.extend(moved);
        }
    }
    Some(links)
}

fn collect(argv: &[String], depth: usize, places: &mut Vec<String>) {
    for effect in program::effects_of(argv).effects {
        match effect {
            CommandEffect::Read(path) | CommandEffect::Write(path) | CommandEffect::Delete(path) => places.push(path),
            CommandEffect::Run(inner) if depth > 0 => collect(&inner, depth - 1, places),
            _ => {}
        }
    }
}

/// Where a path really leads, if that is not where its text says.
fn led(root: &Path, path: &Path) -> Option<(String, String)> {
    let named = clean(&root.join(path));
    let real = resolved(&root.join(path));
    (named != real).then(|| (named.to_string_lossy().into_owned(), real.to_string_lossy().into_owned()))
}

/// The path with its links followed, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut known = path;
    loop {
        if let Ok(real) = known.canonicalize() {
            return clean(&rest.iter().rev().fold(real, |folder, name| folder.join(name)));
        }
        // A link to nowhere is a place to write through.
        if let Ok(target) = known.read_link() {
            let through = known.parent().unwrap_or(known).join(target);
            return clean(&rest.iter().rev().fold(clean(&through), |folder, name| folder.join(name)));
        }
        match (known.parent(), known.components().next_back()) {
            (Some(parent), Some(name)) => {
                rest.push(name.as_os_str().to_owned());
                known = parent;
            }
            _ => return clean(path),
        }
    }
}

/// The path by its text alone, without following links.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(cleaned.pop()),
            std::path::Component::CurDir => {}
            part => cleaned.push(part),
        }
    }
    cleaned
}
