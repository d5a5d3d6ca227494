//! Corrections: the owner of a task that is over was asked again, by the lead or the user, and has answered.

use super::event::{Correction, PlanEnded, Recheck, TaskCorrected, TaskResult, Totals};
use super::input::{Findings, NewAnswer};
use super::state::Plan;
use super::task_state::TaskState;
use crate::delegation::ending::not_done;
use crate::event::Event;
use crate::limits::EARLIER_ANSWER_BYTES_MAX;

impl Plan {
    /// The newest answer becomes the task's result, with the earlier one appended. If the owner changed something,
    /// only checks after that count.
    pub(super) fn corrected(&self, task: usize, answer: NewAnswer) -> Vec<Event> {
        let (Some(id), Some(slot)) = (self.name(task), self.slots.get(task)) else { return Vec::new() };
        if !slot.state.is_settled() {
            return Vec::new();
        }
        let NewAnswer { output, findings, checks, spent } = answer;
        let known = slot.outcome.result.as_deref().cloned().unwrap_or_default();
        let mut result = TaskResult { output: with_earlier(&output, &known.output), ..known.clone() };
        result.spent.add(spent);
        if checks != Recheck::Unneeded {
            let Findings { artifacts, proof, evidence, .. } = findings.unwrap_or_default();
            result.artifacts = if artifacts.is_empty() { known.artifacts } else { artifacts };
            (result.proof, result.evidence) = (proof, evidence);
        }
        let is_said = |content: &str| content == known.output || content == output;
        for artifact in result.artifacts.iter_mut().filter(|artifact| is_said(&artifact.content)) {
            artifact.content.clone_from(&result.output);
        }
        let correction = Correction { spent, checks, not_done: not_done(&output).is_some() };
        let ended = self.closing.end.map(|end| PlanEnded { end, tally: self.tally_with(task, &result) });
        vec![Event::TaskCorrected(TaskCorrected { task: id, attempt: slot.tries.attempt, result, correction, ended })]
    }

    /// The task keeps its state; only its result and the counts that follow from it change.
    pub(super) fn correct(&mut self, task: usize, result: TaskResult, correction: Option<Correction>) {
        self.progress.tally = self.tally_with(task, &result);
        let more = self.slots.get(task).map(|slot| slot.newly_spent(&result)).unwrap_or_default();
        self.progress.results += 1;
        let number = self.progress.results;
        self.slot(task, |slot| {
            slot.money.spent.add(more);
            slot.outcome.result = Some(Box::new(result));
            slot.outcome.correction = correction;
            slot.outcome.number = number;
            // The owner was told of all results so far when it was asked again.
            slot.outcome.told = number;
        });
    }

    /// The counts of the plan with another result of a task that is over.
    fn tally_with(&self, task: usize, result: &TaskResult) -> Totals {
        let mut tally = self.progress.tally;
        let Some(slot) = self.slots.get(task) else { return tally };
        tally.spent.add(slot.newly_spent(result));
        if slot.state == TaskState::Done {
            tally.verified = tally.verified.saturating_sub(usize::from(slot.is_verified()));
            tally.verified += usize::from(result.is_verified());
        }
        tally
    }

    /// The needs of a task that have a newer result than its owner was told of.
    pub fn newer_needs(&self, task: usize) -> Vec<usize> {
        let (Some(graph), Some(slot)) = (&self.graph, self.slots.get(task)) else { return Vec::new() };
        let is_newer =
            |need: &&usize| self.slots.get(**need).is_some_and(|need| need.outcome.number > slot.outcome.told);
        graph.needs(task).iter().filter(is_newer).copied().collect()
    }
}

/// The newest answer of a task's owner, with the beginning of its earlier one. An empty answer leaves the earlier one.
fn with_earlier(now: &str, before: &str) -> String {
    let now = now.trim_end();
    match (now.is_empty(), before.is_empty()) {
        (true, _) => before.to_owned(),
        (false, true) => now.to_owned(),
        (false, false) => {
            let end = before.floor_char_boundary(EARLIER_ANSWER_BYTES_MAX);
            let cut = if end < before.len() { "\n[cut]" } else { "" };
            format!("{now}\n\n(Before it was asked again it had said:)\n{}{cut}", before.get(..end).unwrap_or(before))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_answers_stay_within_a_bound() {
        let long = "x".repeat(EARLIER_ANSWER_BYTES_MAX);
        let mut text = "first".to_owned();
        for _ in 0..5 {
            text = with_earlier(&long, &text);
        }
        assert!(text.len() < long.len() + EARLIER_ANSWER_BYTES_MAX + 100, "{}", text.len());
        assert!(text.ends_with("[cut]"));
        for (now, before, want) in [
            ("", "old", "old"),
            ("new", "", "new"),
            ("new\n", "old", "new\n\n(Before it was asked again it had said:)\nold"),
        ] {
            assert_eq!(with_earlier(now, before), want);
        }
    }
}
