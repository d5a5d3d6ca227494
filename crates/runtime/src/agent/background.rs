//! Whoever works for somebody without being waited for: what was given to them, how it stands, and how it is stopped.
//!
//! They are called like anybody else; only that the call has its result at once, and what comes of it is a letter. So only those
//! who stay to read it have something done like this.

use std::collections::BTreeSet;

use max_team_core::calling::answer::{Told, quoted};
use max_team_core::calling::ending::not_done;
use max_team_core::event::{End, Stopper};
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::limits::{BACKGROUND_TASKS_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_core::mates::Life;
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::near::candidates;
use max_team_core::policy::By;
use max_team_core::stop::Held;
use serde_json::json;

use super::acts::Done;
use super::calls::clip;
use super::commit::Guest;
use super::hold::Halt;
use super::mail::derived;
use super::report::outcome;
use super::{Agent, Extra};
use crate::census::Census;
use crate::error::RuntimeError;
use crate::handle::Mate;
use crate::rows::{self, AgentRow};
use crate::session;
use crate::shared::now_ms;
use crate::team_tools::Spawned;

impl Agent {
    /// Whether it is there to read what comes later.
    pub(super) fn stays(&self) -> bool {
        self.lead || self.turn.mate().is_some()
    }

    /// Lets somebody begin whom nobody waits for.
    pub(super) fn begin_apart(
        &self,
        id: AgentId,
        assignment: Assignment,
        mate: Mate,
        text: &str,
    ) -> Result<Done, RuntimeError> {
        let at_work = self.apart_from_us()?.iter().filter(|(_, busy)| *busy).count();
        if at_work >= BACKGROUND_TASKS_MAX {
            return Ok(Done::wrong(format!(
                "{BACKGROUND_TASKS_MAX} tasks run in the background already: wait for one, or stop one with `task_update` (`decision` give_up)"
            )));
        }
        self.floor.bind(&self.stream, self.frame.settings());
        let handle = rows::handle(&mate.definition.name, id);
        let assignment = Assignment { life: Life::Background, ..assignment };
        let letter = self.assigning(id, &assignment, text, b"dispatch");
        let words = format!(
            "It runs in the background as task `{handle}`. Its answer wakes you: go on with other work, or end your turn."
        );
        let guests = vec![Guest { id, mate, assignment: assignment.into(), letter }];
        Ok(Done { extra: Extra { guests, ..Extra::default() }, ..Done::said(words) })
    }

    /// Whoever works for this agent in the background, or did, oldest first; and whether they still do.
    fn apart_from_us(&self) -> Result<Vec<(AgentRow, bool)>, RuntimeError> {
        let journal = &self.floor.shared.journal;
        let all = rows::rows::<AgentRow>(journal, &rows::agents_of(&self.floor.session.to_string()))?;
        let is_ours = |row: &AgentRow| {
            row.assignment.as_ref().is_some_and(|given| given.life == Life::Background && given.reply_to == self.stream)
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

    /// How what runs in the background stands; or the end of one.
    pub(super) fn spawned(&self, key: &str, asked: &Spawned) -> Result<Done, RuntimeError> {
        let mut ours = self.apart_from_us()?;
        if let Some(id) = asked.id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
            let known: Vec<String> = ours.iter().map(|(row, _)| row.handle()).collect();
            ours.retain(|(row, _)| row.handle() == id || row.agent.to_string() == id);
            if ours.is_empty() {
                let there = candidates(id, known.iter().map(String::as_str));
                return Ok(Done::wrong(format!("there is no task `{id}` of yours in the background{there}")));
            }
        } else if asked.stop {
            return Ok(Done::wrong("say which: `id` is missing"));
        }
        if ours.is_empty() {
            return Ok(Done::said("Nothing runs in the background, and nothing has."));
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
        let sends: Vec<Envelope> = stops.map(|(row, _)| self.stop_letter(key, row.agent)).collect();
        if asked.stop {
            let words = if sends.is_empty() { "It had ended already." } else { "It is being stopped." };
            lines.push(words.to_owned());
        }
        Ok(Done { extra: Extra { sends, ..Extra::default() }, ..Done::said(lines.join("\n")) })
    }

    /// The outcome of a background task: its answer, or the reason of the failure and its last text.
    fn came_to(&self, row: &AgentRow) -> Result<Option<String>, RuntimeError> {
        let (turn, _) = self.floor.shared.fold_agent(row.agent)?;
        let Some(last) = turn.last() else { return Ok(None) };
        let mut said = quoted(&Told::read(&last.text).text);
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
        let (turn, _) = self.floor.shared.fold_agent(row.agent)?;
        let is_reviewed = turn.reviewing().is_some();
        let status = match (busy && !is_reviewed, turn.last().map(|last| &last.end)) {
            (true, _) if turn.is_busy() => "running",
            (true, _) | (false, None) => "pending",
            (false, Some(_)) if turn.last().is_some_and(|last| outcome(last).0) => "completed",
            (false, Some(End::Interrupted)) => "cancelled",
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

    fn stop_letter(&self, key: &str, agent: AgentId) -> Envelope {
        let to = session::agent_stream(agent);
        Envelope::new(
            derived(&[self.stream.as_bytes(), key.as_bytes(), to.as_bytes(), b"stop"]),
            &self.stream,
            to,
            Kind::Shutdown,
            json!({ "by": &*self.origin.name, "who": By::Lead(self.origin.name.to_string()) }),
            now_ms(),
        )
    }

    /// Where all are at work for this agent without being waited for. Whoever works aside does so for no turn of its.
    pub(super) fn stopped_apart(&self) -> Result<BTreeSet<String>, RuntimeError> {
        if !self.lead {
            return Ok(BTreeSet::new());
        }
        let stored = Census::new(&self.floor.shared.journal).stopped_with(self.floor.session)?;
        let all = stored.into_iter().map(session::agent_stream).chain(self.floor.mates_working()?);
        Ok(all.filter(|address| !self.floor.is_aside(address)).collect())
    }

    /// The letters that stop them. Where it was stopped by one itself that lay here when the session was opened, whoever has begun since
    /// that was said is not meant, nor is whoever was told so then: it may have been told to go on. Where that was said just now, only
    /// whoever a user has written to since is not: the others may have begun because it was not read yet.
    pub(super) fn stopping_apart(&self, by: &Stopper, read: &[EnvelopeId]) -> Result<Vec<Envelope>, RuntimeError> {
        let Held { since, listed, .. } = by.held.clone().unwrap_or_default();
        let halt = Halt { from: &self.stream, by: &by.name, who: by.who.as_ref(), since, listed, at_ms: now_ms() };
        let all = self.stopped_apart()?.into_iter();
        let Some(since) = since.filter(|_| !read.is_empty()) else {
            return Ok(all.map(|address| halt.letter(address)).collect());
        };
        let is_old = read.iter().any(|letter| self.floor.old_stop(*letter).is_some());
        let mut letters = Vec::new();
        for address in all {
            let has_begun = self.floor.has_begun_since(since, &address, is_old);
            let letter = halt.letter(address);
            let is_told = is_old && self.floor.shared.journal.has_mail(letter.id)?;
            letters.extend((!has_begun && !is_told).then_some(letter));
        }
        Ok(letters)
    }
}
