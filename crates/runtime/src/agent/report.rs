//! Messages about the outcome of a turn: the result for a plan or a caller, a teammate's answer to its lead or to the
//! user, and the line that tells a lead about the user's message to a teammate. `core::mates::report` decides what the
//! lead gets.

use max_team_core::calling::ending::not_done;
use max_team_core::event::{End, QuestionAnswered, Short, TurnEnded};
use max_team_core::ledger::dollars;
use max_team_core::mates::report::{DONE, FAILED, Rest, Telling, telling, waits};
use max_team_core::mates::{Life, Teammate};
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::plan::Budget;
use max_team_core::policy::{By, Deed};
use max_team_core::turn::{ASIDE, trigger};
use serde_json::{Value, json};

use super::Agent;
use super::calls::TIME_OVER;
use super::mail::{add, derived, result_id, text_at};
use crate::error::RuntimeError;
use crate::plan::recheck::unchecked;
use crate::post::is_go_on;
use crate::{rows, session, team_tools};

/// The field of a letter to a plan by which the owner of a task that is done says something else about it.
pub(crate) const CORRECTS: &str = "corrects";
/// The field of a result that says that the time limit of its agent stopped it.
pub(super) const TIMED_OUT: &str = "timed_out";
/// The reason why a stopped turn did not finish its work.
pub(super) const STOPPED_WORDS: &str = "it was stopped";

impl Agent {
    /// Messages to the plan, the caller, the lead or the user about the outcome of this turn.
    pub(super) fn result_letters(
        &self,
        assignment: &Assignment,
        ended: &TurnEnded,
        stopped_by: Option<&str>,
        quiet: bool,
        at_ms: i64,
    ) -> Vec<Envelope> {
        let Some(mate) = self.turn.mate() else {
            let result = self.result_letter(assignment, ended, stopped_by, at_ms);
            let copy = self.correction(assignment, ended, at_ms);
            return std::iter::once(result).chain(copy).collect();
        };
        let (ok, _, text) = self.result(ended, stopped_by);
        self.reports(mate, assignment, ended, (ok, &text), quiet, at_ms)
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

    /// The letter that tells the plan what a member says now whose task of it is done.
    fn correction(&self, assignment: &Assignment, ended: &TurnEnded, at_ms: i64) -> Option<Envelope> {
        let task = self.floor.row_of(self.origin.agent?)?.assignment?;
        task.plan.filter(|_| assignment.plan.is_none())?;
        let is_answer = ended.end == End::Answered && not_done(&ended.text).is_none() && !ended.text.trim().is_empty();
        (is_answer && self.is_plan_open()).then(|| {
            let id = derived(&[self.stream.as_bytes(), ended.turn.to_string().as_bytes(), b"correction"]);
            let acted = !self.turn.only_looked();
            let spent = self.spent(ended);
            let body =
                json!({ "assignment": task, CORRECTS: true, "output": ended.text, "acted": acted, "spent": spent });
            Envelope::new(id, &self.stream, &task.reply_to, Kind::TaskResult, body, at_ms)
        })
    }

    /// The letter to the plan or the caller that waits for this turn.
    pub(super) fn result_letter(
        &self,
        assignment: &Assignment,
        ended: &TurnEnded,
        stopped_by: Option<&str>,
        at_ms: i64,
    ) -> Envelope {
        let (ok, error, text) = self.result(ended, stopped_by);
        let spent = self.spent(ended);
        let shared = self.purse.left_to_all();
        let left = Budget { nano: shared.nano, tokens: shared.tokens, wall_ms: None };
        let own = self.is_own_short(ended.short);
        let mut body = json!({
            "assignment": assignment, "call": assignment.task, "ok": ok, "is_error": !ok, "text": text,
            "output": ended.text, "error": error, "end": ended.end, "spent": spent, "ms": spent.ms,
            "left": left, "own": own, "by": &*self.origin.name, "structured": ended.structured,
            "acted": !self.turn.only_looked(),
        });
        if is_time_over(ended, stopped_by) {
            add(&mut body, TIMED_OUT, &true);
        }
        let may_change = ["write_file", "edit_file"].iter().any(|tool| self.frame.registry.get(tool).is_some());
        add(&mut body, "did", &self.turn.did().words(may_change && !self.frame.settings().constraints.read_only));
        let unknown = self.turn.unknown_outcomes();
        if !unknown.is_empty() {
            add(&mut body, "unknown", &unknown);
        }
        if let (Life::Background, Some(agent)) = (&assignment.life, self.origin.agent) {
            if assignment.corrects.is_some() && !self.is_plan_open() {
                let unchecked = unchecked(!self.turn.only_looked(), spent);
                add(&mut body, "text", &format!("{text}\n\n{unchecked}"));
            }
            let handle = rows::handle(&self.origin.name, agent);
            add(&mut body, "session", &self.floor.session);
            add(&mut body, "mate", &handle);
            add(&mut body, "from", &handle);
            add(&mut body, "stopped", &(ended.end == End::Interrupted));
        }
        Envelope::new(
            result_id(&self.stream, ended.turn),
            &self.stream,
            &assignment.reply_to,
            Kind::TaskResult,
            body,
            at_ms,
        )
    }

    /// The limit that ended a turn, in words for the waiting caller; `None` for other endings.
    fn bound_hit(&self, ended: &TurnEnded, stopped_by: Option<&str>) -> Option<String> {
        let settings = self.frame.settings();
        match ended.end {
            _ if is_time_over(ended, stopped_by) => {
                let seconds = settings.turn_limit_ms().unwrap_or_default().div_ceil(1_000);
                Some(format!("its time is over: it may take {seconds} s"))
            }
            End::Rounds => Some(format!("the limit of {} rounds was reached", settings.rounds_max)),
            End::Budget => {
                let own = Some(self.purse.own_cap()).filter(|_| self.is_own_short(ended.short))?;
                let cap = match ended.short {
                    Some(Short::Tokens) => own.tokens.map(|tokens| format!("{tokens} tokens")),
                    None => own.nano.map(|nano| format!("${:.2}", dollars(nano))),
                };
                cap.map(|cap| format!("its own budget of {cap} was used up"))
            }
            _ => None,
        }
    }

    /// Whether the agent has less left, of money or of what else is short, than all who share a plan or a session have.
    fn is_own_short(&self, short: Option<Short>) -> bool {
        let (mine, shared) = (self.purse.left(), self.purse.left_to_all());
        let (mine, shared) = match short {
            Some(Short::Tokens) => (mine.tokens, shared.tokens),
            None => (mine.nano.into_iter().chain(self.turn.ledger().left_nano()).min(), shared.nano),
        };
        mine.is_some_and(|mine| shared.is_none_or(|left| mine < left))
    }

    /// The messages of a teammate after a turn. `text` is its answer, or the reason of the failure.
    pub(super) fn reports(
        &self,
        mate: &Teammate,
        given: &Assignment,
        ended: &TurnEnded,
        (ok, text): (bool, &str),
        quiet: bool,
        at_ms: i64,
    ) -> Vec<Envelope> {
        let rest = match ended.end {
            End::Interrupted => Rest::Stopped,
            _ if !ok => Rest::Failed,
            _ if waits(&ended.text) => Rest::Silent,
            _ => Rest::Answered,
        };
        let mut body = json!({
            "session": self.floor.session, "mate": mate.name, "from": mate.name, "color": mate.color, "turn": ended.turn,
            "reason": if ok { DONE } else { FAILED }, "spent": self.spent(ended), "stopped": rest == Rest::Stopped,
        });
        let id = result_id(&self.stream, ended.turn);
        let letter = |id, to: &str, kind, body: Value| Envelope::new(id, &self.stream, to, kind, body, at_ms);
        let lead = self.turn.engaged().map_or(given.reply_to.as_str(), |engaged| engaged.reply_to.as_str());
        let told = telling(trigger(Some(given), quiet), rest, self.turn.owes());
        if told != Telling::Idle || given.is_for_user() {
            add(&mut body, "text", &text);
        }
        if told == Telling::Note {
            add(&mut body, ASIDE, &true);
        }
        let kind = if told == Telling::Idle { Kind::IdleNotification } else { Kind::TaskResult };
        if !given.is_for_user() {
            return vec![letter(id, lead, kind, body)];
        }
        let answer = letter(id, &given.reply_to, Kind::Text, body.clone());
        add(&mut body, "text", &format!("(Answered to the user.)\n{text}"));
        let copy = derived(&[id.to_string().as_bytes(), b"lead"]);
        let copy = (told != Telling::Idle).then(|| letter(copy, lead, kind, body));
        std::iter::once(answer).chain(copy).collect()
    }

    /// The line for the lead about the user's message to a teammate.
    pub(super) fn users_words(&self, words: &str, about: &str, at_ms: i64) -> Option<Envelope> {
        let (mate, lead) = (self.turn.mate()?, &self.turn.engaged()?.reply_to);
        if words.trim().is_empty() || is_go_on(words) {
            return None;
        }
        let text = format!("(The user wrote to me: {})", team_tools::title(words));
        let id = derived(&[self.stream.as_bytes(), about.as_bytes(), b"user wrote"]);
        let body = json!({ "text": text, "from": mate.name, "color": mate.color, "about": about, ASIDE: true });
        Some(Envelope::new(id, &self.stream, lead, Kind::Text, body, at_ms))
    }

    /// The messages that follow from an answer to this agent's question.
    pub(super) fn answered_letters(
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
        let action = self.turn.asks(answered.question).filter(|action| action.deed == Deed::Ask)?;
        let said = match (&answered.answer.by, answered.answer.allow, answered.answer.comment.as_str()) {
            (By::Nobody(_), ..) => "was not there to answer".to_owned(),
            (_, true, "") => "answered: Yes.".to_owned(),
            (_, false, "") => "answered: No.".to_owned(),
            (.., comment) => format!("answered: {comment}"),
        };
        let text = format!("(In task `{}` I asked: {} The user {said})", given.task, action.preview.trim());
        let id = derived(&[self.stream.as_bytes(), answered.question.to_string().as_bytes(), b"user answered"]);
        let body = json!({ "text": text, "from": &*self.origin.name, ASIDE: true });
        let lead = session::agent_stream(self.floor.lead);
        Some(Envelope::new(id, &self.stream, lead, Kind::Text, body, at_ms))
    }

    /// The same for messages that begin a turn.
    pub(super) fn users_words_of(&self, letters: &[Envelope], at_ms: i64) -> Vec<Envelope> {
        let said = letters.iter().filter(|letter| letter.kind == Kind::UserInput);
        let line = |letter: &Envelope| self.users_words(&text_at(&letter.body, "text"), &letter.id.to_string(), at_ms);
        said.filter_map(line).collect()
    }
}

/// Whether the time limit of the agent stopped the turn.
fn is_time_over(ended: &TurnEnded, stopped_by: Option<&str>) -> bool {
    ended.end == End::Interrupted && stopped_by == Some(TIME_OVER)
}

/// Whether a turn finished its work; if not, the reason.
pub(super) fn outcome(ended: &TurnEnded) -> (bool, String) {
    let failed = |words: &str| (false, words.to_owned());
    match &ended.end {
        End::Answered if not_done(&ended.text).is_some() => failed("its task is not done"),
        End::Answered | End::Proposed => (true, String::new()),
        End::Truncated => failed("the answer was cut off at the model's output limit"),
        End::Refused => failed("the model refused to answer"),
        End::Empty => failed("the model said nothing"),
        End::Unstructured => failed("the model did not give the structured answer"),
        End::Looping => failed("the model repeated the same call and was stopped"),
        End::Rounds => failed("the limit of rounds was reached"),
        End::Budget => failed("the budget was used up"),
        End::Interrupted => failed(STOPPED_WORDS),
        End::Failed { detail, .. } | End::Broken { detail } => (false, detail.clone()),
    }
}
