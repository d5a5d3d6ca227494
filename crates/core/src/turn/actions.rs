//! The actions of a turn as the program observed them, beside the claims of its model; and the detection of repeated
//! calls.

use serde::{Deserialize, Serialize};

use super::{RunningTurn, ToolCall, ToolCallStatus, Turn};
use crate::hash::Hash;
use crate::limits::{CHANGED_TOLD_MAX, REPEATS_DELEGATED_MAX, REPEATS_MAX};
use crate::policy::{Action, ActionKind};

/// The actions of a turn as the program observed them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnActions {
    /// Calls that ran.
    pub calls: u32,
    /// Commands among them.
    pub commands: u32,
    /// Calls that were refused or failed.
    pub failed: u32,
    /// Files that file tools changed, in order; without files that commands changed.
    pub changed: Vec<String>,
}

impl TurnActions {
    pub(super) fn add(&mut self, action: &Action) {
        self.calls += 1;
        match action.kind {
            ActionKind::Execute => self.commands += 1,
            // What ran is the command whose connection was asked about.
            ActionKind::Fetch if action.asking_call().is_some() => self.commands += 1,
            ActionKind::Write if self.changed.len() < CHANGED_TOLD_MAX && !self.changed.contains(&action.target) => {
                self.changed.push(action.target.clone());
            }
            _ => {}
        }
    }

    pub(super) fn add_failed(&mut self) {
        self.failed += 1;
    }

    /// The line after the answer of an agent that got a task. `may_change`: whether it has tools that change files.
    pub fn summary_line(&self, may_change: bool) -> Option<String> {
        Some(match (self.calls, self.changed.as_slice(), self.commands) {
            (0, ..) if self.failed == 1 => "made 1 tool call, and it failed".to_owned(),
            (0, ..) if self.failed > 1 => format!("made {} tool calls, and all of them failed", self.failed),
            (0, ..) => "called no tool: it read only what it was given".to_owned(),
            (_, [], 0) if may_change => "changed no file".to_owned(),
            (_, [], 0) => return None,
            (_, [], _) => "changed no file with its own tools, and ran commands".to_owned(),
            (_, changed, _) => format!("changed: {}", changed.join(", ")),
        })
    }
}

impl Turn {
    /// The actions of the running turn.
    pub fn did(&self) -> TurnActions {
        self.current.as_ref().map(|current| current.work.did.clone()).unwrap_or_default()
    }
}

impl RunningTurn {
    /// Whether it has reached the limit of repeated answers.
    pub(super) fn is_looping(&self) -> bool {
        let most = if self.assignment.is_some() { REPEATS_DELEGATED_MAX } else { REPEATS_MAX };
        self.repeats.count >= most
    }

    /// In a turn that works for another agent, calls with new results do not count as repetitions.
    pub(super) fn compare(&mut self, calls: &[ToolCall]) {
        let mut results = Vec::new();
        for call in calls {
            if let ToolCallStatus::Done { content, .. } = &call.status {
                results.extend(serde_json::to_vec(content).unwrap_or_default());
            }
        }
        let results = Hash::of(results);
        let is_new = self.repeats.results.replace(results).is_some_and(|known| known != results);
        if is_new && self.assignment.is_some() {
            self.repeats.count = self.repeats.count.min(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observed_actions_are_reported_beside_the_answer() {
        let act = |kind, target: &str| Action { kind, ..Action::read(target) };
        for (acts, may_change, want) in [
            (vec![], true, Some("called no tool: it read only what it was given")),
            (vec![act(ActionKind::Read, "a")], true, Some("changed no file")),
            (vec![act(ActionKind::Read, "a")], false, None),
            (
                vec![act(ActionKind::Write, "a"), act(ActionKind::Write, "b"), act(ActionKind::Write, "a")],
                true,
                Some("changed: a, b"),
            ),
            (
                vec![act(ActionKind::Execute, "make")],
                true,
                Some("changed no file with its own tools, and ran commands"),
            ),
        ] {
            let mut did = TurnActions::default();
            acts.iter().for_each(|action| did.add(action));
            assert_eq!(did.summary_line(may_change).as_deref(), want, "{acts:?}");
        }
        let mut did = TurnActions::default();
        did.add_failed();
        assert_eq!(did.summary_line(true).as_deref(), Some("made 1 tool call, and it failed"));
    }
}
