//! What others ask about a plan.

use super::Budget;
use super::event::About;
use super::machine::Plan;
use super::slot::State;

impl Plan {
    /// Whether a task failed and somebody must say what to do.
    pub fn awaits_ruling(&self, task: usize) -> bool {
        self.slots.get(task).is_some_and(|slot| slot.state == State::Failed { settled: false })
    }

    /// Whether any task failed and somebody must say what to do.
    pub fn needs_ruling(&self) -> bool {
        !self.with_lead.is_empty() || self.asked.values().any(|about| matches!(about, About::Failure { .. }))
    }

    /// Whether the lead is to say something: about a failure, or to somebody who asked.
    pub fn awaits_lead(&self) -> bool {
        self.ended.is_none() && !(self.with_lead.is_empty() && self.asking.is_empty())
    }

    /// Tasks whose owners wait for an answer.
    pub fn asking(&self) -> Vec<usize> {
        self.asking.iter().copied().collect()
    }

    /// What the owner of a task that goes on was told, and the letter that had asked.
    pub fn answer_to(&self, task: usize) -> Option<(&str, crate::id::EnvelopeId)> {
        match &self.slots.get(task)?.state {
            State::Answered { answer, letter, .. } => Some((answer, *letter)),
            _ => None,
        }
    }

    /// Hashes of a task's declared files when it was first given to somebody.
    pub fn before(&self, task: usize) -> &[Option<crate::hash::Hash>] {
        self.slots.get(task).map_or(&[], |slot| &slot.before)
    }

    /// Whether tasks wait for money.
    pub fn is_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// What all of it may use: what was written down, and as much again each time that a person said so.
    pub fn budget(&self) -> Budget {
        let own = self.draft().map(|draft| draft.budget).unwrap_or_default();
        let times = self.grants.saturating_add(1);
        let all = |amount: Option<u64>| amount.map(|amount| amount.saturating_mul(times));
        Budget { nano: all(own.nano), tokens: all(own.tokens), ..own }
    }

    /// Whether a failed task will be tried again by itself.
    pub fn is_retrying(&self) -> bool {
        let waits =
            |task: &usize| self.slots.get(*task).is_some_and(|slot| matches!(slot.state, State::Waiting { .. }));
        self.clock.iter().any(|(_, task)| waits(task))
    }

    /// What a task's owner said last.
    pub fn output(&self, task: usize) -> &str {
        self.slots.get(task).map_or("", |slot| &slot.output)
    }
}

impl Plan {
    /// Tasks that have their answer and wait for a place: what they were told, and the letter that had asked.
    pub fn tasks_told(&self) -> impl Iterator<Item = (&str, &str, crate::id::EnvelopeId)> {
        self.answered.iter().filter_map(|task| {
            let (answer, letter) = self.answer_to(*task)?;
            Some((self.draft()?.tasks.get(*task)?.id.as_str(), answer, letter))
        })
    }

    /// The letter with which a task's owner asked.
    pub fn question_letter(&self, task: usize) -> Option<crate::id::EnvelopeId> {
        match &self.slots.get(task)?.state {
            State::Asking { letter, .. } | State::Answered { letter, .. } => Some(*letter),
            _ => None,
        }
    }
}
