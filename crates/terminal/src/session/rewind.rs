//! `/rewind`: the points, what going back to one would do, and doing it once the user has seen that.

use max_team_core::rewind::FailedRestore;
use max_team_runtime::rewind::{Moment, Outcome, RewindPlan, RewindPoint, Sheet};

use super::super::command_queue::{CommandResult, UiCommand};
use super::super::rows::Row;
use super::super::slash::RewindTo;
use super::super::text::{clean_line, cut};
use super::super::transcript::Item;
use super::{Session, note};

/// Points that are listed: the last ones.
const MOMENTS_MAX: usize = 10;
/// Columns of what the user said.
const WORDS_COLUMNS: usize = 60;

impl Session {
    pub(super) fn rewind(&mut self, back: RewindTo) -> Vec<Item> {
        if self.is_busy() {
            return vec![note(self.lang.busy_first().to_owned())];
        }
        let plan = self.offered.rewind.take();
        match (back, plan) {
            (RewindTo::List, _) => self.ask(UiCommand::Moments),
            (RewindTo::Turn(number), _) => self.ask(UiCommand::Rewinding(RewindPoint::Turn(number))),
            (RewindTo::Undo, _) => self.ask(UiCommand::Rewinding(RewindPoint::Undo)),
            (RewindTo::Yes, Some(plan)) => self.ask(UiCommand::Rewind(plan)),
            (RewindTo::Yes, None) => vec![note(self.lang.rewind_first().to_owned())],
        }
    }

    pub(super) fn rewind_done(&mut self, done: CommandResult) -> Vec<Item> {
        match done {
            CommandResult::Moments(Ok(moments)) => vec![self.moments(&moments)],
            CommandResult::Rewinding(Ok((plan, sheets))) => self.planned(plan, &sheets),
            CommandResult::Rewound(Ok(outcome)) => self.rewound(&outcome),
            CommandResult::Moments(Err(error))
            | CommandResult::Rewinding(Err(error))
            | CommandResult::Rewound(Err(error)) => {
                vec![Item::Row(Row::Error(self.lang.runtime_failure(&error)))]
            }
            _ => Vec::new(),
        }
    }

    fn moments(&self, moments: &[Moment]) -> Item {
        if moments.is_empty() {
            return note(self.lang.no_points().to_owned());
        }
        let mut rows = Vec::new();
        for moment in moments.iter().skip(moments.len().saturating_sub(MOMENTS_MAX)) {
            rows.push((moment.number.to_string(), cut(&moment.words, WORDS_COLUMNS)));
            rows.push((String::new(), clean_line(&self.lang.changes_after(moment))));
        }
        rows.push((String::new(), self.lang.rewind_list_hint().to_owned()));
        Item::Row(Row::Table(rows))
    }

    /// What would be put back. It is kept until the user says yes, or something else.
    fn planned(&mut self, plan: RewindPlan, sheets: &[Sheet]) -> Vec<Item> {
        let mut items: Vec<Item> = sheets.iter().map(|sheet| Item::Row(Row::Diff(named(sheet)))).collect();
        let skipped = plan.skipped.iter().map(|skip| format!("{}: {}", skip.path, self.lang.rewind_skip(&skip.why)));
        let mut left: Vec<String> = skipped.collect();
        if !left.is_empty() {
            left.insert(0, self.lang.rewind_skips().to_owned());
        }
        if !plan.left.is_empty() {
            left.push(self.lang.rewind_unseen().to_owned());
            left.extend(plan.left.iter().map(|left| self.lang.rewind_left(left)));
        }
        left.extend((plan.lost() > 0).then(|| self.lang.rewind_for_good(plan.lost())));
        items.extend(left.into_iter().map(note));
        if plan.puts.is_empty() {
            items.push(note(self.lang.nothing_put_back(&plan).to_owned()));
        } else {
            items.push(note(self.lang.rewind_yes_hint().to_owned()));
            self.offered.rewind = Some(Box::new(plan));
        }
        items
    }

    fn rewound(&self, outcome: &Outcome) -> Vec<Item> {
        let wrong = |failed: &FailedRestore| Item::Row(Row::Error(format!("{}: {}", failed.path, failed.why)));
        let mut items: Vec<Item> = outcome.failed.iter().map(wrong).collect();
        if !outcome.done.is_empty() {
            items.push(note(self.lang.rewound_here(outcome.done.len())));
        }
        items
    }
}

/// A diff with its file's name above it, where that does not stand in it anyway.
fn named(Sheet { path, text }: &Sheet) -> String {
    let name = path.display();
    if text.contains("\n@@ ") { format!("diff --git a/{name} b/{name}\n{text}") } else { text.clone() }
}
