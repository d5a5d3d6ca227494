//! Writing to members of plans: one that works gets the message with its next tool result, one whose task is over goes on in its
//! conversation and answers the call.

use std::sync::Arc;

use max_team_core::agent::Settings;
use max_team_core::body::{Body, Words};
use max_team_core::chat::Part;
use max_team_core::id::AgentId;
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::plan::{Plan, TaskStatus};
use max_team_core::suggest::candidates;
use max_team_core::turn::{ToolCall, TurnInput};

use super::acts::ActionOutcome;
use super::mail::derived;
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::plan::{address, messages, upstream};
use crate::read_model::ReadModel;
use crate::rows::AgentRow;
use crate::session;
use crate::shared::now_ms;
use crate::team_tools::{self, Act};

/// A member of a plan that a lead writes to.
pub(super) enum Member {
    /// It works on its task.
    Working(AgentRow),
    /// Its task is over.
    Over(AgentRow, Arc<Assignment>),
    /// Its task failed and waits for a decision.
    Failed(String),
    /// The name stands for several tasks, which the text lists.
    Several(String),
}

impl Agent {
    /// The task of a plan that an address stands for: the id of a task, or the name of a member that has one task. The plan's
    /// record counts, so that the answer is the same before and after a crash.
    pub(super) fn member(&self, to: &str) -> Result<Option<Member>, RuntimeError> {
        if !self.turn.origin.lead {
            return Ok(None);
        }
        let found = match address::find_task(&self.active.shared.journal, self.active.session, to) {
            Err(error @ RuntimeError::SeveralTasks { .. }) => return Ok(Some(Member::Several(error.to_string()))),
            found => found?,
        };
        let Some(address::TaskAddress { row, task, status }) = found else { return Ok(None) };
        Ok(match (status, row.assignment.clone()) {
            (Some(TaskStatus::Dispatched | TaskStatus::Running), _) => Some(Member::Working(row)),
            (Some(TaskStatus::Failed), _) => Some(Member::Failed(task)),
            (_, Some(given)) => {
                let (reply_to, corrects) = (self.turn.stream.clone(), given.plan);
                let own = Assignment { reply_to, plan: None, corrects, ..Assignment::clone(&given) };
                Some(Member::Over(row, own.into()))
            }
            (_, None) => None,
        })
    }

    /// Whether the same answer writes to a task that this member's task builds on, and that message is not answered yet: the
    /// member then waits and reads the newer result.
    pub(super) fn builds_on_open_message(
        &self,
        key: &str,
        member: &AgentRow,
        given: &Assignment,
    ) -> Result<bool, RuntimeError> {
        let others: Vec<String> = self.turn.open_calls().filter(|call| call.key != key).filter_map(addressee).collect();
        let (Some(plan), false) = (given.corrects, others.is_empty()) else { return Ok(false) };
        let plan = ReadModel::new(&self.active.shared.journal).plan(plan)?;
        let index = |agent| plan.tasks().find(|view| view.agent == Some(agent)).map(|view| view.index);
        let (Some(graph), Some(own)) = (plan.graph(), index(member.agent)) else { return Ok(false) };
        for to in others {
            let found = address::find_task(&self.active.shared.journal, self.active.session, &to).ok().flatten();
            if found.and_then(|found| index(found.row.agent)).is_some_and(|other| graph.builds_on(own, other)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends a message to a working member, which reads it with its next tool result.
    pub(super) fn note_to(&self, key: &str, member: &AgentRow, text: &str) -> ActionOutcome {
        let envelope = Envelope::new(
            derived(&[self.turn.stream.as_bytes(), key.as_bytes(), b"mail"]),
            &self.turn.stream,
            session::agent_stream(member.agent),
            MessageKind::Text,
            Body::Words(Words { text, from: &self.turn.origin.name, ..Words::default() }),
            now_ms(),
        );
        let task = member.assignment.as_ref().map_or("", |given| &given.task);
        let words = format!(
            "Sent: `{}` (task `{task}`) reads it with its next tool result. What comes of its task is told with the plan.",
            member.name
        );
        ActionOutcome { extra: Extra::send(envelope), ..ActionOutcome::said(words) }
    }

    /// The assignment for a message that came after a member's task: the answer goes to the lead.
    pub(super) fn told_late(&self, envelopes: &[Envelope]) -> Option<Assignment> {
        let envelope =
            envelopes.iter().find(|envelope| envelope.kind == MessageKind::Text).filter(|_| !self.turn.origin.lead)?;
        let given = self.active.row_of(self.turn.origin.agent?)?.assignment?;
        let title = team_tools::title(envelope.text());
        let (reply_to, life) = (envelope.from.clone(), max_team_core::teammate::Lifetime::Background);
        let is_leads = envelope.from == session::agent_stream(self.active.lead);
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

    /// The approval of a plan covers its tasks only: other work of a member asks as usual. For a correction that the
    /// lead asks for it keeps the files and checks of its task.
    pub(super) async fn leave_plan(&mut self, begin: &TurnInput) -> Result<(), RuntimeError> {
        let TurnInput::Begin { assignment: Some(given), .. } = begin else { return Ok(()) };
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
        let (Some(plan), Some(agent), true) = (given.corrects, self.turn.origin.agent, has_files) else {
            return Ok(false);
        };
        let plan = ReadModel::new(&self.active.shared.journal).plan(plan)?;
        Ok(plan.is_approved() && !plan.is_stopped() && state(&plan, agent) == Some(TaskStatus::Done))
    }

    /// What a member whose task is over is told beside a message: newer results of the tasks before its own, and the tasks that
    /// are at work now.
    pub(super) fn plan_news(&self, begin: &TurnInput) -> Result<Option<Part>, RuntimeError> {
        let TurnInput::Begin { assignment: Some(given), .. } = begin else { return Ok(None) };
        let (Some(id), Some(agent)) = (given.corrects, self.turn.origin.agent) else { return Ok(None) };
        let plan = ReadModel::new(&self.active.shared.journal).plan(id)?;
        let Some(view) = plan.tasks().find(|view| view.agent == Some(agent)) else { return Ok(None) };
        let news = upstream::news(&self.active, self.frame.root(), &plan, id, &view);
        let beside = messages::beside_now(&self.active, &plan, &view);
        let text = [news.trim_end(), beside.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        Ok((!text.is_empty()).then(|| Part::text(text.join("\n\n"))))
    }

    /// The id of the plan task that an agent has.
    pub(super) fn task_id_of(&self, agent: AgentId) -> Option<String> {
        let given = self.active.row_of(agent)?.assignment.filter(|given| given.plan.is_some())?;
        Some(given.task.clone())
    }

    /// The error for an unknown name, with the names that exist.
    pub(super) fn nobody_called(&self, words: String, to: &str, handles: &[String]) -> Result<String, RuntimeError> {
        let tasks = if self.turn.origin.lead {
            address::task_ids(&self.active.shared.journal, self.active.session)?
        } else {
            Vec::new()
        };
        let known: Vec<&str> = handles.iter().chain(&tasks).map(String::as_str).collect();
        Ok(if known.is_empty() {
            format!("{words}; call an agent first")
        } else {
            format!("{words}{}", candidates(to, known))
        })
    }
}

/// The only address of a call of `send_message`.
fn addressee(call: &ToolCall) -> Option<String> {
    match Act::read(&call.tool, (*call.input).clone()) {
        Ok(Act::Message(message)) => message.to.into_iter().next(),
        _ => None,
    }
}

/// The status of an agent's task.
fn state(plan: &Plan, agent: AgentId) -> Option<TaskStatus> {
    plan.tasks().find(|view| view.agent == Some(agent)).map(|view| view.status)
}
