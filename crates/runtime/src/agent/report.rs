//! Messages about the outcome of a turn: the result for a plan or a caller, a teammate's answer to its lead or to the
//! user, and the line that tells a lead about the user's message to a teammate. `core::teammate::report` decides what the
//! lead gets.

use std::borrow::Cow;

use max_team_core::body::{Body, TaskResult, Words, Work};
use max_team_core::delegation::ending::not_done;
use max_team_core::event::{LimitedResource, QuestionAnswered, TurnEnded, TurnOutcome};
use max_team_core::ledger::dollars;
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::plan::Budget;
use max_team_core::policy::{ActionKind, DecidedBy};
use max_team_core::teammate::report::{DONE, FAILED, LeadReport, TeammateOutcome, lead_report, says_wait};
use max_team_core::teammate::{Lifetime, Teammate};
use max_team_core::turn::trigger;

use super::Agent;
use super::calls::TIME_OVER;
use super::mail::{derived, result_id};
use crate::error::RuntimeError;
use crate::plan::correct;
use crate::user_mail::is_go_on;
use crate::{rows, session, team_tools};

impl Agent {
    /// Messages to the plan, the caller, the lead or the user about the outcome of this turn.
    pub(super) fn result_envelopes(
        &self,
        assignment: &Assignment,
        ended: &TurnEnded,
        stopped_by: Option<&str>,
        quiet: bool,
        at_ms: i64,
    ) -> Vec<Envelope> {
        let Some(teammate) = self.turn.teammate() else {
            let result = self.result_envelope(assignment, ended, stopped_by, at_ms);
            // The plan of a task that is over records the new answer and passes it on.
            return vec![match assignment.corrects {
                Some(plan) => correct::to_plan(result, plan),
                None => result,
            }];
        };
        let (ok, _, text) = self.result(ended, stopped_by);
        self.reports(teammate, assignment, ended, (ok, &text), quiet, at_ms)
    }

    /// Whether a turn finished its work, else the reason, and the text for the reader.
    fn result(&self, ended: &TurnEnded, stopped_by: Option<&str>) -> (bool, String, String) {
        let (ok, error) = match self.bound_hit(ended, stopped_by) {
            Some(bound) => (false, bound),
            None => outcome(ended),
        };
        let is_said = ok || not_done(&ended.text).is_some();
        let text = if is_said { ended.text.clone() } else { format!("{error}\n{}", ended.text).trim().to_owned() };
        let text = if text.is_empty() { "(no words came back)".to_owned() } else { text };
        (ok, error, text)
    }

    /// The message to the plan or the caller that waits for this turn.
    pub(super) fn result_envelope(
        &self,
        assignment: &Assignment,
        ended: &TurnEnded,
        stopped_by: Option<&str>,
        at_ms: i64,
    ) -> Envelope {
        let (ok, error, text) = self.result(ended, stopped_by);
        let spent = self.spent(ended);
        let shared = self.money.pool.left_to_all();
        let left = Budget { nano: shared.nano, tokens: shared.tokens, wall_ms: None };
        let may_change = ["write_file", "edit_file"].iter().any(|tool| self.frame.registry.get(tool).is_some());
        let did = self.turn.did().summary_line(may_change && !self.frame.settings().constraints.read_only);
        let work = Work {
            assignment: Some(Cow::Borrowed(assignment)),
            call: &assignment.task,
            by: &self.turn.origin.name,
            ok,
            is_error: !ok,
            output: &ended.text,
            error: &error,
            end: Some(ended.end.clone()),
            structured: ended.structured.clone(),
            spent: Some(spent),
            ms: Some(spent.ms),
            left: Some(left),
            own: self.is_own_short(ended.short),
            acted: Some(!self.turn.only_looked()),
            timed_out: is_time_over(ended, stopped_by),
            did: did.as_deref().unwrap_or_default(),
            unknown: self.turn.unknown_outcomes().to_vec(),
            ..Work::default()
        };
        let agent = self.turn.origin.agent.filter(|_| assignment.life == Lifetime::Background);
        let handle = agent.map(|agent| rows::handle(&self.turn.origin.name, agent));
        let result = match handle.as_deref() {
            Some(handle) => TaskResult {
                session: Some(self.active.session),
                teammate: Some(handle),
                from: handle,
                stopped: ended.end == TurnOutcome::Interrupted,
                silent: ended.text.trim().is_empty(),
                ..TaskResult::default()
            },
            None => TaskResult::default(),
        };
        Envelope::new(
            result_id(&self.turn.stream, ended.turn),
            &self.turn.stream,
            &assignment.reply_to,
            MessageKind::TaskResult,
            Body::Result(Box::new(TaskResult { text: &text, work, ..result })),
            at_ms,
        )
    }

    /// The limit that ended a turn, as text for the waiting caller; `None` for other endings.
    fn bound_hit(&self, ended: &TurnEnded, stopped_by: Option<&str>) -> Option<String> {
        let settings = self.frame.settings();
        match ended.end {
            _ if is_time_over(ended, stopped_by) => {
                let seconds = settings.turn_limit_ms().unwrap_or_default().div_ceil(1_000);
                Some(format!("its time is over: it may take {seconds} s"))
            }
            TurnOutcome::Rounds => Some(format!("the limit of {} rounds was reached", settings.rounds_max)),
            TurnOutcome::Budget => {
                let own = Some(self.money.pool.own_cap()).filter(|_| self.is_own_short(ended.short))?;
                let cap = match ended.short {
                    Some(LimitedResource::Tokens) => own.tokens.map(|tokens| format!("{tokens} tokens")),
                    None => own.nano.map(|nano| format!("${:.2}", dollars(nano))),
                };
                cap.map(|cap| format!("its own budget of {cap} was used up"))
            }
            _ => None,
        }
    }

    /// Whether the agent's own budget has less left, of money or of what else is short, than the shared budgets of its
    /// plan or session.
    fn is_own_short(&self, short: Option<LimitedResource>) -> bool {
        let (mine, shared) = (self.money.pool.left(), self.money.pool.left_to_all());
        let (mine, shared) = match short {
            Some(LimitedResource::Tokens) => (mine.tokens, shared.tokens),
            None => (mine.nano.into_iter().chain(self.turn.ledger().left_nano()).min(), shared.nano),
        };
        mine.is_some_and(|mine| shared.is_none_or(|left| mine < left))
    }

    /// The messages of a teammate after a turn. `text` is its answer, or the reason of the failure.
    pub(super) fn reports(
        &self,
        teammate: &Teammate,
        given: &Assignment,
        ended: &TurnEnded,
        (ok, text): (bool, &str),
        quiet: bool,
        at_ms: i64,
    ) -> Vec<Envelope> {
        let rest = match ended.end {
            TurnOutcome::Interrupted => TeammateOutcome::Stopped,
            _ if !ok => TeammateOutcome::Failed,
            _ if says_wait(&ended.text) => TeammateOutcome::Silent,
            _ => TeammateOutcome::Answered,
        };
        let lead = self.turn.first_assignment().map_or(given.reply_to.as_str(), |engaged| engaged.reply_to.as_str());
        let told = lead_report(trigger(Some(given), quiet), rest, self.turn.owes_report());
        let is_told = told != LeadReport::Idle || given.is_for_user();
        let result = TaskResult {
            text: if is_told { text } else { "" },
            session: Some(self.active.session),
            teammate: Some(&teammate.name),
            from: &teammate.name,
            color: &teammate.color,
            turn: Some(ended.turn),
            reason: if ok { DONE } else { FAILED },
            stopped: rest == TeammateOutcome::Stopped,
            silent: rest == TeammateOutcome::Stopped && ended.text.trim().is_empty(),
            aside: told == LeadReport::Note,
            work: Work { spent: Some(self.spent(ended)), ..Work::default() },
        };
        let envelope = |id, to: &str, kind, result| {
            Envelope::new(id, &self.turn.stream, to, kind, Body::Result(Box::new(result)), at_ms)
        };
        let id = result_id(&self.turn.stream, ended.turn);
        let kind = if told == LeadReport::Idle { MessageKind::IdleNotification } else { MessageKind::TaskResult };
        if !given.is_for_user() {
            return vec![envelope(id, lead, kind, result)];
        }
        let answer = envelope(id, &given.reply_to, MessageKind::Text, result.clone());
        let text = format!("(Answered to the user.)\n{text}");
        let copy = derived(&[id.to_string().as_bytes(), b"lead"]);
        let copy = (told != LeadReport::Idle).then(|| envelope(copy, lead, kind, TaskResult { text: &text, ..result }));
        std::iter::once(answer).chain(copy).collect()
    }

    /// The line for the lead about the user's message to a teammate.
    pub(super) fn users_words(&self, words: &str, about: &str, at_ms: i64) -> Option<Envelope> {
        let (teammate, lead) = (self.turn.teammate()?, &self.turn.first_assignment()?.reply_to);
        if words.trim().is_empty() || is_go_on(words) {
            return None;
        }
        let text = format!("(The user wrote to me: {})", team_tools::title(words));
        let id = derived(&[self.turn.stream.as_bytes(), about.as_bytes(), b"user wrote"]);
        let (from, color) = (teammate.name.as_str(), teammate.color.as_str());
        let body = Body::Words(Words { text: &text, from, color, about, aside: true, ..Words::default() });
        Some(Envelope::new(id, &self.turn.stream, lead, MessageKind::Text, body, at_ms))
    }

    /// The messages that follow from an answer to this agent's question.
    pub(super) fn answered_envelopes(
        &self,
        answered: &QuestionAnswered,
        at_ms: i64,
    ) -> Result<Vec<Envelope>, RuntimeError> {
        let shared = self.sharing(answered, at_ms)?.into_iter();
        Ok(shared.chain(self.answered_words(answered, at_ms)).collect())
    }

    /// The line that tells the lead what the user answered to the question of a member of a plan.
    fn answered_words(&self, answered: &QuestionAnswered, at_ms: i64) -> Option<Envelope> {
        let given = self.turn.assignment().filter(|given| given.plan.is_some())?;
        let action = self.turn.asked_action(answered.question).filter(|action| action.kind == ActionKind::Ask)?;
        let said = match (&answered.answer.by, answered.answer.allow, answered.answer.comment.as_str()) {
            (DecidedBy::Nobody(_), ..) => "was not there to answer".to_owned(),
            (_, true, "") => "answered: Yes.".to_owned(),
            (_, false, "") => "answered: No.".to_owned(),
            (.., comment) => format!("answered: {comment}"),
        };
        let text = format!("(In task `{}` I asked: {} The user {said})", given.task, action.preview.trim());
        let id = derived(&[self.turn.stream.as_bytes(), answered.question.to_string().as_bytes(), b"user answered"]);
        let body = Body::Words(Words { text: &text, from: &self.turn.origin.name, aside: true, ..Words::default() });
        let lead = session::agent_stream(self.active.lead);
        Some(Envelope::new(id, &self.turn.stream, lead, MessageKind::Text, body, at_ms))
    }

    /// The same for messages that begin a turn.
    pub(super) fn users_words_of(&self, envelopes: &[Envelope], at_ms: i64) -> Vec<Envelope> {
        let said = envelopes.iter().filter(|envelope| envelope.kind == MessageKind::UserInput);
        let line = |envelope: &Envelope| self.users_words(envelope.text(), &envelope.id.to_string(), at_ms);
        said.filter_map(line).collect()
    }
}

/// Whether the time limit of the agent stopped the turn.
fn is_time_over(ended: &TurnEnded, stopped_by: Option<&str>) -> bool {
    ended.end == TurnOutcome::Interrupted && stopped_by == Some(TIME_OVER)
}

/// Whether a turn finished its work; if not, the reason.
pub(super) fn outcome(ended: &TurnEnded) -> (bool, String) {
    let failed = |words: &str| (false, words.to_owned());
    match &ended.end {
        TurnOutcome::Answered if not_done(&ended.text).is_some() => failed("its task is not done"),
        TurnOutcome::Answered | TurnOutcome::Proposed => (true, String::new()),
        TurnOutcome::Truncated => failed("the answer was cut off at the model's output limit"),
        TurnOutcome::Refused => failed("the model refused to answer"),
        TurnOutcome::Empty => failed("the model said nothing"),
        TurnOutcome::Unstructured => failed("the model did not give the structured answer"),
        TurnOutcome::Looping => failed("the model repeated the same call and was stopped"),
        TurnOutcome::Rounds => failed("the limit of rounds was reached"),
        TurnOutcome::Budget => failed("the budget was used up"),
        TurnOutcome::Interrupted => failed("it was stopped"),
        TurnOutcome::Failed { detail, .. } | TurnOutcome::Broken { detail } => (false, detail.clone()),
    }
}
