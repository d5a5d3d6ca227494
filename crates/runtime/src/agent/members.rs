//! Writing to members of plans: one that works gets the message with its next tool result, one whose task is over goes on in its
//! conversation and answers the call.

use std::sync::Arc;

use max_team_core::chat::Part;
use max_team_core::event::Ending;
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::near::candidates;
use max_team_core::plan::{Plan, Status};
use max_team_core::team::Settings;
use max_team_core::turn::Input;
use serde_json::json;

use super::acts::Done;
use super::flight::{Flight, Landed};
use super::mail::derived;
use super::{Agent, Extra};
use crate::census::Census;
use crate::error::RuntimeError;
use crate::plan::address;
use crate::plan::recheck::Correction;
use crate::rows::AgentRow;
use crate::session;
use crate::shared::now_ms;
use crate::team_tools;

/// A member of a plan that a lead writes to.
pub(super) enum Member {
    /// It works on its task.
    Working(AgentRow),
    /// Its task is over.
    Over(AgentRow, Arc<Assignment>),
    /// Its task failed and waits for a decision.
    Failed(String),
    /// The name stands for several tasks; the words name them.
    Several(String),
}

/// The result of a call, as it is told.
pub(super) struct CallResult {
    pub(super) words: String,
    pub(super) is_error: bool,
    pub(super) ms: u64,
}

impl Agent {
    /// The task of a plan that an address stands for: the id of a task, or the name of a member that has one task. The plan's
    /// record counts, so that the answer is the same before and after a crash.
    pub(super) fn member(&self, to: &str) -> Result<Option<Member>, RuntimeError> {
        if !self.lead {
            return Ok(None);
        }
        let found = match address::find_task(&self.floor.shared.journal, self.floor.session, to) {
            Err(error @ RuntimeError::SeveralTasks { .. }) => return Ok(Some(Member::Several(error.to_string()))),
            found => found?,
        };
        let Some(address::TaskAddress { row, task, status }) = found else { return Ok(None) };
        Ok(match (status, row.assignment.clone()) {
            (Some(Status::Dispatched | Status::Running), _) => Some(Member::Working(row)),
            (Some(Status::Failed), _) => Some(Member::Failed(task)),
            (_, Some(given)) => {
                let (reply_to, corrects) = (self.stream.clone(), given.plan);
                let own = Assignment { reply_to, plan: None, corrects, ..Assignment::clone(&given) };
                Some(Member::Over(row, own.into()))
            }
            (_, None) => None,
        })
    }

    /// Tells a member that works something: it reads it with its next tool result.
    pub(super) fn note_to(&self, key: &str, member: &AgentRow, text: &str) -> Done {
        let letter = Envelope::new(
            derived(&[self.stream.as_bytes(), key.as_bytes(), b"mail"]),
            &self.stream,
            session::agent_stream(member.agent),
            Kind::Text,
            json!({ "text": text, "from": &*self.origin.name }),
            now_ms(),
        );
        let task = member.assignment.as_ref().map_or("", |given| &given.task);
        let words = format!(
            "Sent: `{}` (task `{task}`) reads it with its next tool result. What comes of its task is told with the plan.",
            member.name
        );
        Done { extra: Extra::send(letter), ..Done::said(words) }
    }

    /// The work for a message that came after a member's task: the answer is sent to the lead.
    pub(super) fn told_late(&self, letters: &[Envelope]) -> Option<Assignment> {
        let letter = letters.iter().find(|letter| letter.kind == Kind::Text).filter(|_| !self.lead)?;
        let given = self.floor.row_of(self.origin.agent?)?.assignment?;
        let title = team_tools::title(&super::text_at(&letter.body, "text"));
        let (reply_to, life) = (letter.from.clone(), max_team_core::mates::Life::Background);
        let is_leads = letter.from == session::agent_stream(self.floor.lead);
        let (attempt, corrects) = (given.attempt + 1, given.plan.or(given.corrects).filter(|_| is_leads));
        Some(Assignment {
            reply_to,
            plan: None,
            corrects,
            title,
            attempt,
            cache: None,
            life,
            ..Arc::unwrap_or_clone(given)
        })
    }

    /// The approval of a plan covers its tasks: what a member does beside them is asked about as usual. For a correction that the
    /// lead asks for it keeps the files and checks of its task.
    pub(super) async fn leave_plan(&mut self, begin: &Input) -> Result<(), RuntimeError> {
        let Input::Begin { assignment: Some(given), .. } = begin else { return Ok(()) };
        let is_left = |settings: &&Arc<Settings>| (settings.approved || settings.corrects) && given.plan.is_none();
        let Some(known) = self.turn.settings().filter(is_left) else { return Ok(()) };
        let mut settings =
            Settings { approved: false, corrects: self.may_correct(given, known)?, ..Settings::clone(known) };
        if !settings.corrects {
            settings.owns = None;
            settings.checks.clear();
        }
        if settings == **known {
            return Ok(());
        }
        self.configure(settings, None).await
    }

    /// Whether this member may correct what it did for a plan: its task is done and owns files, and the plan was approved and
    /// not stopped.
    fn may_correct(&self, given: &Assignment, known: &Settings) -> Result<bool, RuntimeError> {
        let has_files = known.owns.as_ref().is_some_and(|owns| !owns.is_empty());
        let (Some(plan), Some(agent), true) = (given.corrects, self.origin.agent, has_files) else { return Ok(false) };
        let plan = Census::new(&self.floor.shared.journal).plan(plan)?;
        Ok(plan.is_approved() && !plan.is_stopped() && state(&plan, agent) == Some(Status::Done))
    }

    /// The answer of a member to a message about its task, after the plan has ended.
    pub(super) fn late_correction(&self, letter: &Envelope) -> Result<Option<Correction>, RuntimeError> {
        match self.whose(letter) {
            Some(member) => Correction::read(&self.floor, member, &letter.body),
            None => Ok(None),
        }
    }

    /// Runs the checks of a corrected task again; the call ends with the answer and what they say. The message is read once the
    /// call has ended, so that a crash loses nothing.
    pub(super) fn check_again(&mut self, key: String, letter: EnvelopeId, correction: Correction, told: CallResult) {
        let (flight, cancel) = (Flight::Tool(key.clone()), self.cancel.child_token());
        self.in_flight.insert(flight.clone());
        self.preparing.insert(key.clone());
        self.rechecked.insert(key.clone(), letter);
        let CallResult { words, is_error, ms } = told;
        self.flights.push(Box::pin(async move {
            let checked = correction.check(&cancel).await;
            let content = vec![Part::text(format!("{words}\n\n{checked}"))];
            let ending = if cancel.is_cancelled() { Ending::Interrupted } else { Ending::Ran };
            let input = Input::ToolEnded { key, content, is_error, ending, fatal: None, ms };
            Landed { flight, input: Some(input) }
        }));
    }

    /// Whether the plan that this agent began for is not over.
    pub(super) fn is_plan_open(&self) -> bool {
        let plan = self.origin.agent.and_then(|agent| self.floor.row_of(agent)?.assignment?.plan);
        plan.and_then(|plan| Census::new(&self.floor.shared.journal).plan(plan).ok())
            .is_some_and(|plan| plan.ended().is_none())
    }

    /// The error for an unknown name, with the names that exist.
    pub(super) fn nobody_called(&self, words: String, to: &str, handles: &[String]) -> Result<String, RuntimeError> {
        let tasks =
            if self.lead { address::task_ids(&self.floor.shared.journal, self.floor.session)? } else { Vec::new() };
        let known: Vec<&str> = handles.iter().chain(&tasks).map(String::as_str).collect();
        Ok(if known.is_empty() {
            format!("{words}; call an agent first")
        } else {
            format!("{words}{}", candidates(to, known))
        })
    }
}

/// How the task that an agent has stands.
fn state(plan: &Plan, agent: AgentId) -> Option<Status> {
    plan.tasks().find(|view| view.agent == Some(agent)).map(|view| view.status)
}
