//! What a plan has decided goes into the journal; then what follows from it is done.
//!
//! Whatever was decided because of a letter is in the commit that acknowledges it. The assignments at the end follow
//! from that and would be decided again without them: they come in several commits, so that the first members are at
//! work while the journal writes about the last.

use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::limits::PLAN_SNAPSHOT_ENTRIES_MIN;
use max_team_core::message::{Envelope, Kind};
use max_team_core::plan::event::{Cause, PlanEnd, TaskCancelled, TaskDone, TaskStopped};
use max_team_core::turn::ASIDE;
use max_team_journal::{Commit, Expect, Projection};
use serde_json::json;

use super::serve::Beginning;
use super::{Batch, PLAN_SNAPSHOT_VERSION, PlanLoop, letters, plan_stream};
use crate::agent::{Newcomer, derived};
use crate::census::Census;
use crate::error::RuntimeError;
use crate::floor::fold_plan;
use crate::handle::Notice;
use crate::shared::{append, commit_at, now_ms};
use crate::{rows, session};

/// Tasks that are given to members in one commit.
const ASSIGNED_TOGETHER_MAX: usize = 4;

/// Where the parts of a decision end that are committed one after the other.
fn ends(events: &[Event]) -> Vec<usize> {
    let assigned = events.iter().rev().take_while(|event| matches!(event, Event::TaskAssigned(_))).count();
    let rest = assigned.saturating_sub(ASSIGNED_TOGETHER_MAX);
    let first = events.len() - rest;
    let later = (first + ASSIGNED_TOGETHER_MAX..events.len()).step_by(ASSIGNED_TOGETHER_MAX);
    let mut ends: Vec<usize> = std::iter::once(first).chain(later).collect();
    if rest > 0 {
        ends.push(events.len());
    }
    ends
}

impl PlanLoop {
    pub(super) async fn commit(&mut self, mut batch: Batch) -> Result<(), RuntimeError> {
        if batch.events.is_empty() && batch.acks.is_empty() && batch.sends.is_empty() {
            return Ok(());
        }
        let at_ms = now_ms();
        let beginning = self.prepare(&mut batch).await?;
        self.remember(&mut batch.events).await;
        self.name_files(&mut batch.events)?;
        let begun = batch.events.iter().filter_map(|event| match event {
            Event::TaskAssigned(assigned) => self.plan.graph()?.index(&assigned.task),
            _ => None,
        });
        let begun: Vec<usize> = begun.collect();
        self.hold_unmarked(&begun);
        let mut blobs = std::mem::take(&mut batch.blobs);
        // Before anybody it lets begin can look.
        self.floor.plan_purse(self.id, Some(self.plan.budget()));
        let word = self.floor.shared.herald.word();
        let mut handed_in = Vec::new();
        let (mut from, mut writes) = (0, false);
        for end in ends(&batch.events) {
            let mut commit = commit_at(at_ms);
            commit.fence = Some(self.floor.fence.clone());
            commit.expect.push((self.stream.clone(), Expect::At(self.head + from as u64)));
            commit.actor = "plan".to_owned();
            // What was asked for is answered first; all that comes later follows from it.
            commit.blobs = std::mem::take(&mut blobs);
            commit.sends = std::mem::take(&mut batch.sends);
            commit.acks = std::mem::take(&mut batch.acks);
            let events = batch.events.get(from..end).unwrap_or_default();
            let newcomers = self.tell(events, &beginning, &mut commit)?;
            writes |= !commit.sends.is_empty();
            handed_in.push((self.floor.hand_in(commit).await?, newcomers, end - from));
            from = end;
        }
        let mut any = false;
        for (handed, mut newcomers, count) in handed_in {
            any |= !newcomers.is_empty();
            newcomers.iter_mut().for_each(|newcomer| newcomer.prepare(at_ms));
            self.floor.stored(handed).await?;
            self.head += count as u64;
            newcomers.into_iter().for_each(|newcomer| newcomer.begin(&self.floor));
        }
        self.probe(&batch.events, &beginning);
        self.after(&batch.events);
        // Only now: what was given up is in the log.
        for plan in self.floor.paths.settle(self.id, &self.plan) {
            self.floor.ring(&plan_stream(plan));
        }
        // Whoever has just sat down is at work before anybody is told; but nobody who was written to speaks first.
        if any && !writes {
            tokio::task::yield_now().await;
        }
        let (session, from) = (self.floor.session, &self.origin);
        let notice = |event| Notice::Event { session, from: Arc::clone(from), at_ms, event: Arc::new(event) };
        word.tell(batch.events.into_iter().map(notice).collect());
        self.snapshot().await
    }

    /// Adds events, their rows and the letters they send to a commit; hands back whoever begins with it.
    /// Nobody is told to begin with what is over already.
    fn tell(
        &self,
        events: &[Event],
        beginning: &Beginning,
        commit: &mut Commit,
    ) -> Result<Vec<Newcomer>, RuntimeError> {
        let (at_ms, mut newcomers) = (commit.at_ms, Vec::new());
        for event in events {
            commit.appends.push(append(&self.stream, event, "plan")?);
            commit.projections.extend(rows::project(&self.stream, at_ms, event));
            if let Event::TaskAssigned(assigned) = event
                && let attempt = (assigned.task.clone(), assigned.attempt)
                && !beginning.over.contains(&attempt)
            {
                let given = self.given(assigned, beginning.asked.get(&attempt));
                let letter = letters::assignment(&self.floor, &self.root_of(assigned), &self.plan, &given, assigned);
                let newcomer = self.welcome(assigned, given, letter.as_ref(), commit)?;
                if newcomer.as_ref().is_some_and(Newcomer::has_begun) {
                    letter.iter().for_each(|letter| self.floor.shared.herald.letter(letter));
                } else {
                    commit.sends.extend(letter);
                }
                newcomers.extend(newcomer);
            }
            if let Some((kind, mut text)) = letters::news(&self.plan, self.id, event) {
                if matches!(event, Event::PlanEnded(ended) if ended.end == PlanEnd::Stopped) {
                    let left = Census::new(&self.floor.shared.journal).files_left(&self.plan)?;
                    text.push_str(&letters::files_words(&left));
                }
                commit.sends.push(self.to_lead(kind, text, event, at_ms));
            }
            commit.sends.extend(self.to_revised(event));
            commit.sends.extend(self.stopping(event));
        }
        Ok(newcomers)
    }

    /// Says which files stopped tasks had changed.
    fn name_files(&self, events: &mut [Event]) -> Result<(), RuntimeError> {
        let census = Census::new(&self.floor.shared.journal);
        for event in events {
            let (task, files) = match event {
                Event::TaskStopped(TaskStopped { task, files, .. })
                | Event::TaskCancelled(TaskCancelled { task, files, stopping: false, .. }) => (task, files),
                _ => continue,
            };
            let view = self.plan.graph().and_then(|graph| graph.index(task)).and_then(|index| self.plan.task(index));
            if let Some(agent) = view.and_then(|view| view.agent) {
                *files = census.changed_files(agent)?.files;
            }
        }
        Ok(())
    }

    /// Keeps folding short: at most one snapshot per doubling, of what the log says rather than of what we hold.
    async fn snapshot(&mut self) -> Result<(), RuntimeError> {
        if self.head < PLAN_SNAPSHOT_ENTRIES_MIN.max(self.snapshot_at.saturating_mul(2)) {
            return Ok(());
        }
        self.snapshot_at = self.head;
        let (shared, id) = (Arc::clone(&self.floor.shared), self.id);
        let fold = move || {
            let (plan, head) = fold_plan(&shared, id)?;
            Ok::<_, RuntimeError>((serde_json::to_vec(&plan).ok(), head))
        };
        let Ok(folded) = tokio::task::spawn_blocking(fold).await else { return Ok(()) };
        let (Some(state), stream_seq) = folded? else { return Ok(()) };
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.floor.fence.clone());
        let (stream, version) = (self.stream.clone(), PLAN_SNAPSHOT_VERSION);
        commit.projections.push(Projection::Snapshot { stream, stream_seq, version, state });
        self.floor.shared.keep(commit).await
    }

    /// What is done about events besides the letters they send.
    fn after(&mut self, events: &[Event]) {
        for event in events {
            let (Event::TaskDone(TaskDone { task, .. }) | Event::TaskCancelled(TaskCancelled { task, .. })) = event
            else {
                continue;
            };
            let Some(index) = self.plan.graph().and_then(|graph| graph.index(task)) else { continue };
            self.before.remove(&index);
            if matches!(event, Event::TaskDone(_)) {
                self.drop_copy(index);
            }
            // Nobody waits for what a check of it would find.
            self.checking.iter().filter(|((task, _), _)| *task == index).for_each(|(_, cancel)| cancel.cancel());
        }
    }

    /// Whoever is at a task that is given up, or out of time, is told to stop: in the same commit, so that it also
    /// stops if this process does.
    fn stopping(&self, event: &Event) -> Option<Envelope> {
        let (task, by) = match event {
            Event::TaskFailed(failed) if failed.cause == Cause::Timeout => (&failed.task, "its time is over"),
            Event::TaskCancelled(cancelled) => (&cancelled.task, "it was given up"),
            _ => return None,
        };
        let view = self.plan.task(self.plan.graph()?.index(task)?)?;
        Some(Envelope::new(
            derived(&[self.stream.as_bytes(), task.as_bytes(), &view.attempt.to_be_bytes(), b"stop"]),
            &self.stream,
            session::agent_stream(view.agent?),
            Kind::Shutdown,
            json!({ "by": by }),
            now_ms(),
        ))
    }

    fn to_lead(&self, kind: Kind, text: String, event: &Event, at_ms: i64) -> Envelope {
        let what = serde_json::to_vec(event).unwrap_or_default();
        let is_approved = matches!(event, Event::PlanAnswered(answered) if letters::is_yes(&answered.say));
        // Whoever stopped it needs not be told: a lead reads it with what is said next.
        let body = if kind == Kind::AllTasksDone && self.plan.is_stopped_by_person() {
            json!({ "text": text, "plan": self.id, "stopped": true })
        } else if is_approved || (kind == Kind::AllTasksDone && self.plan.replaced_by().is_some()) {
            json!({ "text": text, "plan": self.id, ASIDE: true })
        } else {
            json!({ "text": text, "plan": self.id })
        };
        // What a person says to the plan is news, whenever the plan began.
        let is_said = kind == Kind::PlanApprovalResponse;
        let letter = Envelope::new(
            derived(&[self.stream.as_bytes(), &what, &self.head.to_be_bytes()]),
            &self.stream,
            session::agent_stream(self.floor.lead),
            kind,
            body,
            at_ms,
        );
        let cause = self.plan.turn().filter(|_| !is_said).map(|turn| turn.to_string());
        Envelope { cause, ..letter }
    }

    /// What the user decides about a revision is told to the plan that it revises: a yes stops that plan, anything else lets
    /// its held tasks go on, unless the user asked for another revision.
    fn to_revised(&self, event: &Event) -> Option<Envelope> {
        let old = self.plan.proposed()?.revises?;
        let (what, kind, body) = match event {
            Event::PlanAnswered(answered) if letters::is_yes(&answered.say) => {
                (&b"replaces"[..], Kind::Shutdown, json!({ "by": format!("plan {}", self.id), "replaced_by": self.id }))
            }
            Event::PlanEnded(ended) if !self.plan.is_approved() => {
                let reworked = ended.end == PlanEnd::Replaced && self.plan.replaced_by().is_none();
                (&b"ended"[..], Kind::PlanRevised, json!({ "revision": self.id, "reworked": reworked }))
            }
            _ => return None,
        };
        let id = derived(&[self.stream.as_bytes(), what]);
        Some(Envelope::new(id, &self.stream, plan_stream(old), kind, body, now_ms()))
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::id::AgentId;
    use max_team_core::plan::event::{TaskAssigned, TaskQueued};

    use super::*;

    #[test]
    fn only_the_assignments_at_the_end_are_parted() {
        let assigned = || {
            Event::TaskAssigned(TaskAssigned {
                task: "a".into(),
                agent: AgentId::new(uuid::Uuid::nil()),
                member: "leo".into(),
                model: None,
                attempt: 1,
                deadline_ms: 0,
                note: String::new(),
                before: Vec::new(),
                tree: None,
                beside: Vec::new(),
            })
        };
        let queued = || Event::TaskQueued(TaskQueued { task: "a".into() });
        for (others, tasks, want) in [
            (0, 0, vec![0]),
            (3, 0, vec![3]),
            (3, 4, vec![7]),
            (3, 5, vec![7, 8]),
            (0, 10, vec![4, 8, 10]),
            (1, 12, vec![5, 9, 13]),
        ] {
            let mut events: Vec<Event> = (0..others).map(|_| queued()).collect();
            events.extend((0..tasks).map(|_| assigned()));
            assert_eq!(ends(&events), want, "{others} others, {tasks} tasks");
        }
        let mixed = [assigned(), queued()];
        assert_eq!(ends(&mixed), [2], "what comes after an assignment is not told before it");
    }
}
