//! Questions that wait for a person: all of them, in the order they were asked.
//!
//! Answering one never loses another. A question that was answered here is put aside until the journal has the
//! answer; if it could not be sent, the question comes back. Whatever closes a question elsewhere (an answer through
//! another door, an interrupt, the end of the turn) closes it here too.

use std::collections::VecDeque;

use max_team_core::event::QuestionAsked;
use max_team_core::id::QuestionId;

/// What is asked, for show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) id: QuestionId,
    key: String,
    pub(super) tool: String,
    pub(super) target: String,
    pub(super) preview: String,
    pub(super) rule: String,
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    open: VecDeque<Question>,
    /// Answered here, not yet in the journal.
    sent: Vec<Question>,
}

impl Questions {
    pub(super) fn ask(&mut self, asked: &QuestionAsked) {
        let known = self.open.iter().chain(&self.sent).any(|question| question.id == asked.question);
        if !known {
            self.open.push_back(Question {
                id: asked.question,
                key: asked.key.clone(),
                tool: asked.tool.clone(),
                target: asked.action.target.clone(),
                preview: asked.action.preview.clone(),
                rule: asked.rule.clone(),
            });
        }
    }

    /// The one to be answered next.
    pub(super) fn first(&self) -> Option<&Question> {
        self.open.front()
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// An answer is on its way.
    pub(super) fn answered_here(&mut self, id: QuestionId) {
        if let Some(index) = self.open.iter().position(|question| question.id == id) {
            self.sent.extend(self.open.remove(index));
        }
    }

    /// The answer did not get through: the question is asked again, before the others.
    pub(super) fn reopen(&mut self, id: QuestionId) {
        if let Some(index) = self.sent.iter().position(|question| question.id == id) {
            self.open.push_front(self.sent.remove(index));
        }
    }

    /// The journal has an answer. Returns whether somebody else gave it.
    pub(super) fn answered(&mut self, id: QuestionId) -> bool {
        self.sent.retain(|question| question.id != id);
        let before = self.open.len();
        self.open.retain(|question| question.id != id);
        self.open.len() < before
    }

    /// The call has its result without an answer.
    pub(super) fn close(&mut self, key: &str) {
        self.open.retain(|question| question.key != key);
        self.sent.retain(|question| question.key != key);
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.sent.clear();
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::policy::{Action, Class};
    use uuid::Uuid;

    use super::*;

    fn asked(number: u128) -> QuestionAsked {
        QuestionAsked {
            question: QuestionId::new(Uuid::from_u128(number)),
            key: format!("1.{number}"),
            tool: "edit_file".into(),
            action: Action::read("a"),
            class: Class::Idempotent,
            rule: "permission mode `default`".into(),
        }
    }

    #[test]
    fn answering_one_never_loses_another() {
        let ids: Vec<QuestionId> = (0..3).map(|number| asked(number).question).collect();
        let mut questions = Questions::default();
        (0..3).for_each(|number| questions.ask(&asked(number)));
        questions.ask(&asked(1));
        assert_eq!(questions.count(), 3);

        questions.answered_here(ids[0]);
        assert_eq!(questions.first().map(|question| question.id), Some(ids[1]));
        questions.ask(&asked(0));
        assert_eq!(questions.count(), 2, "a question on its way to being answered is not asked again");

        questions.reopen(ids[0]);
        assert_eq!(questions.first().map(|question| question.id), Some(ids[0]));
        assert!(questions.answered(ids[1]), "somebody else answered");
        questions.answered_here(ids[0]);
        assert!(!questions.answered(ids[0]), "we did");
        questions.close("1.2");
        assert_eq!(questions.count(), 0);
    }
}
