//! Plans as files: YAML that a person writes, reads, compares and runs again.
//!
//! [`read`] takes our names and those of other tools, and JSON, which is YAML; [`write()`] writes ours, so that a
//! written plan reads back the same. Only `target` touches the disk. `core::plan::Graph` decides whether the plan is
//! sound; [`ParsedPlan`] maps its errors to lines of the file.

mod reader;
pub mod scalar;
mod target;
#[cfg(test)]
mod tests;
mod writer;

use max_team_core::plan::{Draft, DraftFlaw, FlawReason};

use crate::config::yaml::Spot;
use crate::config::{ConfigError, Problem, quote};
use crate::exit::CliError;
use crate::i18n::Translated;

pub use reader::read;
pub use target::{has_place, put};
pub use writer::write;

/// What a file came to.
#[derive(Debug)]
pub struct ParsedPlan {
    /// The plan, unchecked.
    pub draft: Draft,
    /// What the user should be told.
    pub warnings: Vec<Translated>,
    name: String,
    /// Where the plan begins, and where each of its tasks does.
    begins: Spot,
    spots: Vec<Spot>,
    /// What could not be read, with the line it is in.
    problems: Vec<(u64, Problem)>,
    /// The tasks it belongs to.
    broken: Vec<usize>,
}

impl ParsedPlan {
    /// Whether all of it could be read, and every task has a name to be called by.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty() && self.draft.tasks.iter().all(|task| !task.id.is_empty())
    }

    /// The plan to be checked: tasks without a name have one, so that a check finds what else is wrong.
    pub fn named(&self) -> Draft {
        let mut draft = self.draft.clone();
        for (at, task) in draft.tasks.iter_mut().enumerate().filter(|(_, task)| task.id.is_empty()) {
            task.id = format!("task-{}", at + 1);
        }
        draft
    }

    /// Everything that is wrong with the file, in its order: what could not be read, and the flaws of the plan.
    pub fn stop(mut self, flaws: &[DraftFlaw]) -> CliError {
        let (named, read) = (self.named(), self.problems.is_empty());
        let nameless = self.draft.tasks.iter().enumerate().filter(|(_, task)| task.id.is_empty());
        for (at, _) in nameless.filter(|(at, _)| !self.broken.contains(at)) {
            let spot = self.spots.get(at).copied().unwrap_or(self.begins);
            let message = Translated::new(|lang| lang.task_without_id().to_owned());
            self.problems.push((spot.line, Problem::Rule { place: place(&self.name, spot), message }));
        }
        for flaw in flaws {
            let task = match &flaw.reason {
                FlawReason::Cycle(tasks) => tasks.first(),
                _ => Some(&flaw.task).filter(|task| !task.is_empty()),
            };
            let at = task.and_then(|task| named.tasks.iter().rposition(|known| quote(&known.id) == *task));
            // What a task or a plan that was half read lacks may be what could not be read.
            if at.map_or(!read, |at| self.broken.contains(&at)) {
                continue;
            }
            let spot = at.and_then(|at| self.spots.get(at)).copied().unwrap_or(self.begins);
            let place = place(&self.name, spot);
            let message = Translated::new(|lang| lang.draft_flaw(flaw));
            self.problems.push((spot.line, Problem::Rule { place, message }));
        }
        self.problems.sort_by_key(|(line, _)| *line);
        let problems = self.problems.into_iter().map(|(_, problem)| problem).collect();
        ConfigError { problems }.into()
    }
}

/// `file:line:col`.
fn place(name: &str, spot: Spot) -> String {
    format!("{name}:{}:{}", spot.line, spot.col)
}
