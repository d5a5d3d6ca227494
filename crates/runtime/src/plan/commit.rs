//! Commits a plan's decisions, then carries them out.
//!
//! A decision about a message is in the commit that acknowledges the message. The assignments at the end follow from
//! it and would be decided again without them: they are split into several commits, so that the first members work
//! while the journal writes the last.

use max_team_core::body::{Body, PlanRevision, Stop, Words};
use max_team_core::event::Event;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::plan::event::{Cause, PlanEnd, TaskCancelled, TaskDone, TaskStopped};
use max_team_core::plan::{TaskStatus, TaskView, WaitReason};
use max_team_journal::Commit;

use super::serve::Beginning;
use super::{Batch, PlanLoop, messages, plan_stream};
use crate::agent::{Newcomer, derived};
use crate::driver::Part;
use crate::error::RuntimeError;
use crate::read_model::ReadModel;
use crate::session;
use crate::shared::now_ms;

/// Tasks that are given to members in one commit.
const ASSIGNED_TOGETHER_MAX: usize = 4;

/// The ends of the parts of a decision that are committed one after the other.
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
        // Before any agent that starts with this commit can read it.
        self.active.pool.plan(self.id, Some(self.plan.budget()));
        let word = self.active.shared.notices.ticket();
        let mut parts = Vec::new();
        let (mut from, mut writes, mut any) = (0, false, false);
        for end in ends(&batch.events) {
            let mut commit = self.plan.commit_at(&self.active, at_ms, from);
            // What was asked for is answered first; all that comes later follows from it.
            commit.sends = std::mem::take(&mut batch.sends);
            commit.acks = std::mem::take(&mut batch.acks);
            let events = batch.events.get(from..end).unwrap_or_default();
            let newcomers = self.tell(events, &beginning, &mut commit)?;
            writes |= !commit.sends.is_empty();
            any |= !newcomers.is_empty();
            parts.push(Part::hand_in(&self.active, commit, newcomers, end - from).await?);
            from = end;
        }
        for part in parts {
            self.plan.stored(&self.active, part, at_ms).await?;
        }
        self.plan.catch_up(&batch.events, at_ms);
        self.probe(&batch.events, &beginning);
        self.after(&batch.events);
        // Only now: the released paths are in the log.
        let free = self.active.paths(|paths| paths.settle(self.id, self.plan.held()));
        for plan in free {
            self.active.ring(&plan_stream(plan));
        }
        // Lets the agents that were just started run before subscribers are told; not if messages were sent, because
        // their readers would run first.
        if any && !writes {
            tokio::task::yield_now().await;
        }
        self.plan.will_tell(&self.active, word, at_ms, batch.events);
        self.plan.tell();
        self.plan.snapshot(&self.active).await
    }

    /// Adds events, their rows and their messages to a commit; returns the agents that start with it. A task that is
    /// over already starts no agent.
    fn tell(
        &self,
        events: &[Event],
        beginning: &Beginning,
        commit: &mut Commit,
    ) -> Result<Vec<Newcomer>, RuntimeError> {
        let (at_ms, mut newcomers) = (commit.at_ms, Vec::new());
        for event in events {
            self.plan.append(event, commit)?;
            if let Event::TaskAssigned(assigned) = event
                && let attempt = (assigned.task.clone(), assigned.attempt)
                && !beginning.over.contains(&attempt)
            {
                let given = self.given(assigned, beginning.asked.get(&attempt));
                let envelope =
                    messages::assignment(&self.active, &self.root_of(assigned), &self.plan, &given, assigned);
                let newcomer = self.welcome(assigned, given, envelope.as_ref(), commit)?;
                if newcomer.as_ref().is_some_and(Newcomer::has_begun) {
                    envelope.iter().for_each(|envelope| self.active.shared.notices.envelope(envelope));
                } else {
                    commit.sends.extend(envelope);
                }
                newcomers.extend(newcomer);
            }
            if let Some((kind, mut text)) = messages::news(&self.plan, self.id, event) {
                if matches!(event, Event::PlanEnded(ended) if ended.end == PlanEnd::Stopped) {
                    let left = ReadModel::new(&self.active.shared.journal).files_left(&self.plan)?;
                    text.push_str(&messages::files_words(&left));
                }
                commit.sends.push(self.to_lead(kind, text, event, at_ms));
            }
            commit.sends.extend(self.to_revised(event));
            commit.sends.extend(self.stopping(event));
            if matches!(event, Event::PlanPaused(paused) if paused.stopped) {
                let is_at_work = |view: &TaskView<'_>| {
                    matches!(view.status, TaskStatus::Dispatched | TaskStatus::Running)
                        && view.waits != WaitReason::Checks
                };
                let owners = self.plan.tasks().filter(is_at_work).map(|view| view.index);
                commit.sends.extend(owners.filter_map(|task| self.stop_owner(task, "the user")));
            }
        }
        Ok(newcomers)
    }

    /// Says which files stopped tasks had changed.
    fn name_files(&self, events: &mut [Event]) -> Result<(), RuntimeError> {
        let census = ReadModel::new(&self.active.shared.journal);
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

    /// What follows from events besides their messages.
    fn after(&mut self, events: &[Event]) {
        for event in events {
            if matches!(event, Event::PlanPaused(paused) if paused.stopped) {
                self.checks.stop(None);
            }
            let (Event::TaskDone(TaskDone { task, .. }) | Event::TaskCancelled(TaskCancelled { task, .. })) = event
            else {
                continue;
            };
            let Some(index) = self.plan.graph().and_then(|graph| graph.index(task)) else { continue };
            self.before.remove(&index);
            if matches!(event, Event::TaskDone(_)) {
                self.drop_copy(index);
            }
            // Results of its running checks are no longer needed.
            self.checks.stop(Some(index));
        }
    }

    /// The message that stops the owner of a task that is cancelled or out of time. It is part of the same commit, so
    /// that the owner also stops if this process dies.
    fn stopping(&self, event: &Event) -> Option<Envelope> {
        let (task, by) = match event {
            Event::TaskFailed(failed) if failed.cause == Cause::Timeout => (&failed.task, "its time is over"),
            Event::TaskCancelled(cancelled) => (&cancelled.task, "it was given up"),
            _ => return None,
        };
        self.stop_owner(self.plan.graph()?.index(task)?, by)
    }

    /// The message that stops the owner of a task.
    fn stop_owner(&self, task: usize, by: &str) -> Option<Envelope> {
        let view = self.plan.task(task)?;
        Some(Envelope::new(
            derived(&[self.plan.stream.as_bytes(), view.task.id.as_bytes(), &view.attempt.to_be_bytes(), b"stop"]),
            &self.plan.stream,
            session::agent_stream(view.agent?),
            MessageKind::Shutdown,
            Body::Stop(Stop { by, ..Stop::default() }),
            now_ms(),
        ))
    }

    fn to_lead(&self, kind: MessageKind, text: String, event: &Event, at_ms: i64) -> Envelope {
        let what = serde_json::to_vec(event).unwrap_or_default();
        let is_approved = matches!(event, Event::PlanAnswered(answered) if messages::is_yes(&answered.say));
        let is_over = kind == MessageKind::AllTasksDone;
        // A person who stopped the plan needs no report: the lead reads this message only with the next one.
        let stopped = is_over && self.plan.is_stopped_by_person();
        let aside = !stopped && (is_approved || (is_over && self.plan.replaced_by().is_some()));
        let words = Words { text: &text, plan: Some(self.id), stopped, aside, ..Words::default() };
        // A person's answer to the plan is news, however old the plan is.
        let is_said = kind == MessageKind::PlanApprovalResponse;
        let envelope = Envelope::new(
            derived(&[self.plan.stream.as_bytes(), &what, &self.plan.head.to_be_bytes()]),
            &self.plan.stream,
            session::agent_stream(self.active.lead),
            kind,
            Body::Words(words),
            at_ms,
        );
        let cause = self.plan.turn().filter(|_| !is_said).map(|turn| turn.to_string());
        Envelope { cause, ..envelope }
    }

    /// The message about a decision on a revision to the plan that it revises: an approval stops that plan; any other
    /// decision releases its held tasks, unless the user asked for another revision.
    fn to_revised(&self, event: &Event) -> Option<Envelope> {
        let old = self.plan.proposed()?.revises?;
        let by = format!("plan {}", self.id);
        let (what, kind, body) = match event {
            Event::PlanAnswered(answered) if messages::is_yes(&answered.say) => {
                let stop = Stop { by: &by, replaced_by: Some(self.id), ..Stop::default() };
                (&b"replaces"[..], MessageKind::Shutdown, Body::Stop(stop))
            }
            Event::PlanEnded(ended) if !self.plan.is_approved() => {
                let reworked = ended.end == PlanEnd::Replaced && self.plan.replaced_by().is_none();
                let revision = PlanRevision { revision: Some(self.id), tasks: None, reworked };
                (&b"ended"[..], MessageKind::PlanRevised, Body::Revision(revision))
            }
            _ => return None,
        };
        let id = derived(&[self.plan.stream.as_bytes(), what]);
        Some(Envelope::new(id, &self.plan.stream, plan_stream(old), kind, body, now_ms()))
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
