//! The questions of a plan that people have not answered: at most one about each task, and one about the whole plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::PlanQuestion;
use crate::hash::Hash;
use crate::id::{PlanId, QuestionId};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenQuestions {
    /// Each with the task that it is about; `None` for the whole plan.
    pub open: BTreeMap<QuestionId, (Option<usize>, PlanQuestion)>,
    /// Withdrawn questions that people have not been told about yet.
    pub withdrawn: Vec<QuestionId>,
    /// Questions asked so far.
    pub count: u32,
}

impl OpenQuestions {
    pub(super) fn about(&self, question: QuestionId) -> Option<&PlanQuestion> {
        self.open.get(&question).map(|(_, about)| about)
    }

    /// Whether a question about this task, or about the whole plan, is open.
    pub(super) fn is_asked(&self, task: Option<usize>) -> bool {
        self.open.values().any(|(about, _)| *about == task)
    }

    /// Withdraws the question about a task, or about the whole plan: its answer would change nothing.
    pub(super) fn close(&mut self, task: Option<usize>) {
        let is_about = |_: &QuestionId, (about, _): &mut (Option<usize>, PlanQuestion)| *about == task;
        self.withdrawn.extend(self.open.extract_if(.., is_about).map(|(question, _)| question));
    }

    /// Withdraws all questions.
    pub(super) fn close_all(&mut self) {
        self.withdrawn.extend(std::mem::take(&mut self.open).into_keys());
    }

    /// People have been told that these were withdrawn.
    pub(super) fn forget(&mut self, questions: &[QuestionId]) {
        self.open.retain(|question, _| !questions.contains(question));
        self.withdrawn.retain(|question| !questions.contains(question));
    }

    /// An id that follows from the plan and from how many questions it has asked.
    pub(super) fn next_id(&self, plan: Option<PlanId>, ahead: u32) -> QuestionId {
        let plan = plan.map(|plan| plan.to_string()).unwrap_or_default();
        let count = (self.count + ahead).to_string();
        QuestionId::new(Hash::of_fields(&[plan.as_bytes(), b"question", count.as_bytes()]).uuid())
    }
}
