//! Agents that work in the background for another agent: their tasks, their state, and how they are stopped.
//!
//! They are called like any other agent, but the call returns at once, and the answer comes as a message. So only
//! agents that stay to read it may start them.

use max_team_core::body::{Body, Stop};
use max_team_core::delegation::answer::{ExpertReply, quoted};
use max_team_core::delegation::ending::not_done;
use max_team_core::event::TurnOutcome;
use max_team_core::id::AgentId;
use max_team_core::limits::{BACKGROUND_TASKS_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::policy::DecidedBy;
use max_team_core::suggest::candidates;
use max_team_core::teammate::Lifetime;

use super::acts::ActionOutcome;
use super::calls::clip;
use super::commit::Guest;
use super::mail::derived;
use super::report::outcome;
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::handle::AgentSpec;
use crate::rows::{self, AgentRow};
use crate::session;
use crate::shared::now_ms;
use crate::team_tools::Spawned;

impl Agent {
    /// Whether it stays and can read later messages.
    pub(super) fn stays(&self) -> bool {
        self.turn.origin.lead || self.turn.teammate().is_some()
    }

    /// Starts a background agent.
    pub(super) fn begin_apart(
        &self,
        id: AgentId,
        assignment: Assignment,
        teammate: AgentSpec,
        text: &str,
    ) -> Result<ActionOutcome, RuntimeError> {
        let at_work = self.apart_from_us()?.iter().filter(|(_, busy)| *busy).count();
        if at_work >= BACKGROUND_TASKS_MAX {
            return Ok(ActionOutcome::wrong(format!(
                "{BACKGROUND_TASKS_MAX} tasks run in the background already: wait for one, or stop one with `task_update` (`decision` give_up)"
            )));
        }
        self.active.bind(&self.turn.stream, self.frame.settings());
        let handle = rows::handle(&teammate.definition.name, id);
        let assignment = Assignment { life: Lifetime::Background, ..assignment };
        let envelope = self.assigning(id, &assignment, text, b"dispatch");
        let words = format!(
            "It runs in the background as task `{handle}`. Its answer wakes you: go on with other work, or end your turn."
        );
        let guests = vec![Guest { id, teammate, assignment: assignment.into(), envelope }];
        Ok(ActionOutcome { extra: Extra { guests, ..Extra::default() }, ..ActionOutcome::said(words) })
    }

    /// The agents that work for this one in the background, or did, oldest first; and whether they still do.
    fn apart_from_us(&self) -> Result<Vec<(AgentRow, bool)>, RuntimeError> {
        let journal = &self.active.shared.journal;
        let all = rows::rows::<AgentRow>(journal, &rows::agents_of(&self.active.session.to_string()))?;
        let is_ours = |row: &AgentRow| {
            row.assignment
                .as_ref()
                .is_some_and(|given| given.life == Lifetime::Background && given.reply_to == self.turn.stream)
        };
        let mut ours = Vec::new();
        for (key, row) in all.into_iter().rev().filter(|(_, row)| is_ours(row)) {
            let busy = journal.get(rows::WORKING, &key)?.is_some();
            ours.push((row, busy));
        }
        Ok(ours)
    }

    /// Whether it has tasks in the background, or had.
    pub(super) fn has_apart(&self) -> Result<bool, RuntimeError> {
        Ok(!self.apart_from_us()?.is_empty())
    }

    /// Whether an id is that of a task in the background.
    pub(super) fn is_apart(&self, id: &str) -> Result<bool, RuntimeError> {
        Ok(self.apart_from_us()?.iter().any(|(row, _)| row.handle() == id || row.agent.to_string() == id))
    }

    /// Describes the state of background tasks, and stops one if asked to.
    pub(super) fn spawned(&self, key: &str, asked: &Spawned) -> Result<ActionOutcome, RuntimeError> {
        let mut ours = self.apart_from_us()?;
        if let Some(id) = asked.id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
            let known: Vec<String> = ours.iter().map(|(row, _)| row.handle()).collect();
            ours.retain(|(row, _)| row.handle() == id || row.agent.to_string() == id);
            if ours.is_empty() {
                let there = candidates(id, known.iter().map(String::as_str));
                return Ok(ActionOutcome::wrong(format!("there is no task `{id}` of yours in the background{there}")));
            }
        } else if asked.stop {
            return Ok(ActionOutcome::wrong("say which: `id` is missing"));
        }
        if ours.is_empty() {
            return Ok(ActionOutcome::said("Nothing runs in the background, and nothing has."));
        }
        let mut lines = Vec::new();
        for (row, busy) in &ours {
            let (status, what) = self.how_it_stands(row, *busy)?;
            let title = row.assignment.as_ref().map_or("", |given| given.title.as_str());
            lines.push(format!("`{}` ({title}): {status}{what}", row.handle()));
            if asked.id.is_some() && !*busy {
                lines.extend(self.came_to(row)?);
            }
        }
        let stops = ours.iter().filter(|(_, busy)| asked.stop && *busy);
        let sends: Vec<Envelope> = stops.map(|(row, _)| self.stop_envelope(key, row.agent)).collect();
        if asked.stop {
            let words = if sends.is_empty() { "It had ended already." } else { "It is being stopped." };
            lines.push(words.to_owned());
        }
        Ok(ActionOutcome { extra: Extra { sends, ..Extra::default() }, ..ActionOutcome::said(lines.join("\n")) })
    }

    /// The outcome of a background task: its answer, or the reason of the failure and its last text.
    fn came_to(&self, row: &AgentRow) -> Result<Option<String>, RuntimeError> {
        let (turn, _) = self.active.shared.fold_agent(row.agent)?;
        let Some(last) = turn.last() else { return Ok(None) };
        let mut said = quoted(&ExpertReply::parse(&last.text).text);
        clip(&mut said, TOOL_RESULT_BYTES_MAX / 2);
        Ok(Some(match outcome(last) {
            (true, _) if said.trim().is_empty() => "It answered nothing.".to_owned(),
            (true, _) => format!("Result:\n{said}"),
            (false, _) if not_done(&last.text).is_some() => format!("Result:\n{said}"),
            (false, why) if said.trim().is_empty() => format!("Reason: {why}."),
            (false, why) => format!("Reason: {why}. So far it had said:\n{said}"),
        }))
    }

    fn how_it_stands(&self, row: &AgentRow, busy: bool) -> Result<(&'static str, String), RuntimeError> {
        let (turn, _) = self.active.shared.fold_agent(row.agent)?;
        let is_reviewed = turn.review_message().is_some();
        let status = match (busy && !is_reviewed, turn.last().map(|last| &last.end)) {
            (true, _) if turn.is_busy() => "running",
            (true, _) | (false, None) => "pending",
            (false, Some(_)) if turn.last().is_some_and(|last| outcome(last).0) => "completed",
            (false, Some(TurnOutcome::Interrupted)) => "cancelled",
            (false, Some(_)) => "failed",
        };
        let calls = turn.charges().iter().map(|charge| charge.calls).sum::<u64>();
        let what = match (busy, is_reviewed) {
            (true, true) => ", and the user decides what becomes of its changes".to_owned(),
            (true, false) => format!(", {calls} model calls so far"),
            (false, _) => String::new(),
        };
        Ok((status, what))
    }

    fn stop_envelope(&self, key: &str, agent: AgentId) -> Envelope {
        let to = session::agent_stream(agent);
        Envelope::new(
            derived(&[self.turn.stream.as_bytes(), key.as_bytes(), to.as_bytes(), b"stop"]),
            &self.turn.stream,
            to,
            MessageKind::Shutdown,
            Body::Stop(Stop {
                by: &self.turn.origin.name,
                who: Some(DecidedBy::Lead(self.turn.origin.name.to_string())),
                ..Stop::default()
            }),
            now_ms(),
        )
    }
}
