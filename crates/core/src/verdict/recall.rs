//! The outcome of work that is over, out of the journal.

use std::collections::HashMap;

use crate::event::{Event, QuestionAsked, Refusal, ToolDone, ToolOutcome, TurnOutcome};
use crate::id::QuestionId;
use crate::plan::event::PlanEnd;
use crate::policy::{ActionKind, DecidedBy, Recourse};

use super::Exit;

/// Whether a plan that ended so was stopped before the lead's last answer, so that its end is not the answer's. The turn that
/// proposed the plan is not an answer to its end.
pub fn is_outlived(plan: PlanEnd, last: Option<&TurnOutcome>) -> bool {
    let is_answered = last.is_some_and(|end| *end != TurnOutcome::Proposed && Exit::of_turn_outcome(end) == Exit::Ok);
    is_answered && plan == PlanEnd::Stopped
}

/// The refused calls of one agent.
#[derive(Debug, Default)]
pub struct RefusedCalls {
    asked: HashMap<QuestionId, QuestionAsked>,
    /// Calls that needed an approval that a headless run cannot get.
    pub unasked: Vec<QuestionAsked>,
    /// Refused calls: all of the lead, and those of other agents that only a person could have allowed.
    pub denied: Vec<DeniedCall>,
}

/// One refused call.
#[derive(Debug, Clone, PartialEq)]
pub enum DeniedCall {
    /// Of the lead.
    Lead(Box<ToolDone>),
    /// Of another agent.
    Other(Refusal),
}

impl RefusedCalls {
    /// Takes the next event of the agent in.
    pub fn apply(&mut self, is_lead: bool, event: Event) {
        match event {
            Event::ToolDone(done) if is_lead && done.ending == ToolOutcome::Refused => {
                self.denied.push(DeniedCall::Lead(Box::new(done)));
            }
            Event::ToolDone(ToolDone { refused: Some(refusal), .. }) if !is_lead && counts(&refusal) => {
                self.denied.push(DeniedCall::Other(*refusal));
            }
            Event::QuestionAsked(question) => drop(self.asked.insert(question.question, question)),
            Event::QuestionAnswered(answered) if matches!(answered.answer.by, DecidedBy::Nobody(_)) => {
                let Some(question) = self.asked.remove(&answered.question) else { return };
                // A merge waits in its worktree, and a proposal is its lead's to answer: neither was refused.
                if matches!(question.action.kind, ActionKind::Merge | ActionKind::Propose) {
                    return;
                }
                if !is_lead {
                    let (tool, target) = (question.tool.clone(), question.action.target.clone());
                    let (by, basis, recourse) = (answered.answer.by, question.basis.clone(), question.recourse);
                    self.denied.push(DeniedCall::Other(Refusal { tool, target, by, basis, recourse }));
                }
                self.unasked.push(question);
            }
            _ => {}
        }
    }
}

/// Whether a refusal of an agent other than the lead is listed: only if the tool refuses the call also with an
/// approval. After a refusal by a rule the agent goes on without the call.
pub fn counts(refusal: &Refusal) -> bool {
    refusal.recourse == Recourse::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Basis;

    /// The reason is for people: no words in it decide whether a refusal is listed.
    #[test]
    fn a_refusal_is_listed_for_its_recourse_and_not_for_its_words() {
        for recourse in [Recourse::RuleOrMode, Recourse::Mode, Recourse::Rule, Recourse::Person, Recourse::Nothing] {
            for words in ["only the user changes `a`: x", "the rule `Edit`"] {
                let by = DecidedBy::Rule(words.to_owned());
                let (tool, target) = ("write_file".to_owned(), "a".to_owned());
                let refusal = Refusal { tool, target, by, basis: Basis::Rule, recourse };
                assert_eq!(counts(&refusal), recourse == Recourse::Nothing, "{words}: {recourse:?}");
            }
        }
    }
}
