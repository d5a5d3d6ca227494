//! `/rewind`: the points, what going back to one would do, and doing it once the user has seen that.

use max_team_core::rewind::FailedRestore;
use max_team_runtime::rewind::{Moment, Outcome, Plan, Sheet, To};

use super::super::link::{Act, Done};
use super::super::rows::Row;
use super::super::slash::Back;
use super::super::text::{clean_line, cut};
use super::super::transcript::Item;
use super::{Session, note};

/// Points that are listed: the last ones.
const MOMENTS_MAX: usize = 10;
/// Columns of what the user said.
const WORDS_COLUMNS: usize = 60;

impl Session {
    pub(super) fn rewind(&mut self, back: Back) -> Vec<Item> {
        if self.is_busy() {
            return vec![note(self.lang.busy_first().to_owned())];
        }
        let plan = self.offered.rewind.take();
        match (back, plan) {
            (Back::List, _) => self.ask(Act::Moments),
            (Back::Turn(number), _) => self.ask(Act::Rewinding(To::Turn(number))),
            (Back::Undo, _) => self.ask(Act::Rewinding(To::Undo)),
            (Back::Yes, Some(plan)) => self.ask(Act::Rewind(plan)),
            (Back::Yes, None) => vec![note(self.lang.rewind_first().to_owned())],
        }
    }

    pub(super) fn rewind_done(&mut self, done: Done) -> Vec<Item> {
        match done {
            Done::Moments(Ok(moments)) => vec![self.moments(&moments)],
            Done::Rewinding(Ok((plan, sheets))) => self.planned(plan, &sheets),
            Done::Rewound(Ok(outcome)) => self.rewound(&outcome),
            Done::Moments(Err(error)) | Done::Rewinding(Err(error)) | Done::Rewound(Err(error)) => {
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
    fn planned(&mut self, plan: Plan, sheets: &[Sheet]) -> Vec<Item> {
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
