//! Where the last answer of a teammate's turn goes, and when it wakes the lead.
//!
//! A teammate that becomes idle reports to its lead. Reports of finished work wait until the whole team is idle, so
//! that the lead is woken once with all of them; every other report wakes it at once. The user's own conversation with
//! a teammate does not wake the lead: the lead gets a note, unless the teammate still owes it an answer.

use crate::message::{Envelope, MessageKind};

/// What began a teammate's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnTrigger {
    /// Its lead: the task, a message, or a task of the shared list.
    Lead,
    /// Other teammates, without the lead or the user.
    Colleague,
    /// The user, and not its lead.
    User,
}

/// How a teammate's turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TeammateOutcome {
    /// With an answer.
    Answered,
    /// With nothing but messages to others, or with the word `WAIT`.
    Silent,
    /// It failed, and says why.
    Failed,
    /// It was stopped.
    Stopped,
}

/// The report that the lead gets about a finished turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeadReport {
    /// The answer. It wakes the lead: once the team rests, or at once if the turn failed.
    Report,
    /// The answer, added to the lead's next turn without starting one.
    Note,
    /// Only that the teammate is idle. It wakes the lead once the team rests, if the teammate still owes a report then.
    Idle,
}

/// Whether a teammate's last answer only says that it waits for a message: empty, or the word `WAIT`.
pub fn says_wait(answer: &str) -> bool {
    let word = answer.trim().trim_matches(|c: char| !c.is_alphanumeric());
    word.is_empty() || word.eq_ignore_ascii_case("wait")
}

/// The report of a turn for the lead. `owes`: the lead gave the teammate a task, and the teammate was still waiting for
/// other teammates at its last report.
pub fn lead_report(trigger: TurnTrigger, rest: TeammateOutcome, owes: bool) -> LeadReport {
    match (trigger, rest) {
        (_, TeammateOutcome::Silent) | (TurnTrigger::Colleague, TeammateOutcome::Stopped) => LeadReport::Idle,
        (TurnTrigger::Lead | TurnTrigger::Colleague, _) => LeadReport::Report,
        (TurnTrigger::User, TeammateOutcome::Stopped) => LeadReport::Note,
        (TurnTrigger::User, _) if owes => LeadReport::Report,
        (TurnTrigger::User, _) => LeadReport::Note,
    }
}

/// The value of `reason` in a report of finished work.
pub const DONE: &str = "done";
/// The value of `reason` in a report of failed work.
pub const FAILED: &str = "failed";

/// Whether a message to the lead can wait until all teammates are idle: only a report of finished work and the news that
/// a teammate is idle can. A failure, and a message that a teammate wrote to the lead, cannot.
pub fn can_wait(message: &Envelope) -> bool {
    let is_done =
        || message.kind == MessageKind::TaskResult && message.teammate().is_some() && message.result().reason == DONE;
    is_idle(message) || is_done()
}

/// Whether a message says only that a teammate is idle, without a person's stop.
pub fn is_idle(message: &Envelope) -> bool {
    message.kind == MessageKind::IdleNotification && message.teammate().is_some() && !message.is_stopped()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::id::EnvelopeId;

    #[test]
    fn a_resting_teammate_reports_to_its_lead_after_any_trigger() {
        use {LeadReport::*, TeammateOutcome::*, TurnTrigger::*};
        for (trigger, rest, owes, want) in [
            (Lead, Answered, true, Report),
            (Lead, Failed, true, Report),
            (Lead, Stopped, true, Report),
            (Lead, Silent, true, Idle),
            (Colleague, Answered, false, Report),
            (Colleague, Answered, true, Report),
            (Colleague, Failed, false, Report),
            (Colleague, Silent, true, Idle),
            (Colleague, Stopped, true, Idle),
            (User, Answered, true, Report),
            (User, Answered, false, Note),
            (User, Failed, true, Report),
            (User, Failed, false, Note),
            (User, Stopped, true, Note),
            (User, Silent, true, Idle),
        ] {
            assert_eq!(lead_report(trigger, rest, owes), want, "{trigger:?} {rest:?} {owes}");
        }
    }

    #[test]
    fn a_teammate_that_only_waits_says_so_in_one_word() {
        for (answer, want) in [
            ("", true),
            (" \n", true),
            ("WAIT", true),
            ("`WAIT`.", true),
            ("Wait", true),
            ("I wait for bob.", false),
            ("WAIT: bob is late.", false),
            ("Done.", false),
        ] {
            assert_eq!(says_wait(answer), want, "{answer:?}");
        }
    }

    #[test]
    fn only_finished_work_and_idleness_wait_for_the_others() {
        let id = EnvelopeId::new(uuid::Uuid::nil());
        let message = |kind, body| Envelope::new(id, "agent/a", "agent/l", kind, body, 0);
        for (kind, body, waits) in [
            (MessageKind::TaskResult, json!({ "mate": "ann", "reason": DONE }), true),
            (MessageKind::TaskResult, json!({ "mate": "ann", "reason": FAILED }), false),
            (MessageKind::TaskResult, json!({ "mate": "ann", "reason": "blocked" }), false),
            (MessageKind::TaskResult, json!({ "mate": "general-1" }), false),
            (MessageKind::IdleNotification, json!({ "mate": "ann", "reason": DONE }), true),
            (MessageKind::IdleNotification, json!({ "mate": "ann", "stopped": true }), false),
            (MessageKind::TaskResult, json!({ "call": "1.0" }), false),
            (MessageKind::Text, json!({ "text": "hi", "from": "ann" }), false),
            (MessageKind::PlanApprovalRequest, json!({ "mate": "ann" }), false),
        ] {
            assert_eq!(can_wait(&message(kind, body.clone())), waits, "{body}");
        }
    }
}
