//! Corrections: the lead or the user asks the owner of a task that is over again. Its answer comes to the plan first, also
//! after the plan has ended: the checks run again, the plan records the new result, and the answer goes on to its reader with
//! what the checks say and what it cost.

use max_team_core::body::{Body, TaskResult, Words, Work};
use max_team_core::event::TurnOutcome;
use max_team_core::id::{AgentId, PlanId};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::plan::event::{Evidence, Recheck, ResourceUse};
use max_team_core::plan::{Findings, NewAnswer, Plan, PlanInput};

use super::messages::cost;
use super::{Batch, PlanEffectDone, PlanLoop, plan_stream};
use crate::agent::derived;
use crate::error::RuntimeError;
use crate::session;

/// The message that brings the answer of a member whose task is over to its plan, which passes it on.
pub(crate) fn to_plan(mut answer: Envelope, plan: PlanId) -> Envelope {
    let reader = std::mem::replace(&mut answer.to, plan_stream(plan));
    let mut result = answer.result();
    result.work.corrects = Some(&reader);
    answer.body = Body::Result(Box::new(result)).into();
    answer
}

/// The reader of a correction, if a message is one.
pub(super) fn reader_of(envelope: &Envelope) -> Option<&str> {
    match Body::read(envelope) {
        Body::Result(result) if envelope.kind == MessageKind::TaskResult => result.work.corrects,
        _ => None,
    }
}

impl PlanLoop {
    /// Records a correction and passes it on. A stop that comes meanwhile is decided after it.
    pub(super) async fn take_correction(
        &mut self,
        envelope: &Envelope,
        reader: &str,
        batch: &mut Batch,
    ) -> Result<(), RuntimeError> {
        let work = envelope.result().work;
        let spent = work.spent.unwrap_or_default();
        let agent: Option<AgentId> = envelope.from.strip_prefix("agent/").and_then(|id| id.parse().ok());
        let task = self.plan.tasks().find(|view| view.agent.is_some() && view.agent == agent).map(|view| view.index);
        let mut words = format!("[This answer cost {}.]", cost(spent));
        if let Some(task) = task {
            // An unfinished turn gives no answer.
            let output = if work.end == Some(TurnOutcome::Answered) { work.output.to_owned() } else { String::new() };
            let (checks, findings, stopped) = self.look_again(task, &work, &output).await?;
            let found = checked_words(checks, findings.as_ref());
            let answer = NewAnswer { output, findings, checks, spent };
            self.decide(PlanInput::Corrected { task, answer }, batch);
            stopped.into_iter().for_each(|stop| self.decide(stop, batch));
            words = format!("{found}{}", cost_words(&self.plan, task, spent));
            batch.sends.extend(self.note_to_lead(envelope, reader, task, &found));
        }
        batch.sends.push(passed_on(envelope, reader, &words));
        Ok(())
    }

    /// Looks at a task again that its owner may have changed. The changes of a worktree wait for the user, and a stopped plan
    /// starts no command.
    async fn look_again(
        &mut self,
        task: usize,
        work: &Work<'_>,
        output: &str,
    ) -> Result<(Recheck, Option<Findings>, Option<PlanInput>), RuntimeError> {
        let unseen = |checks| Ok((checks, None, None));
        if work.acted == Some(false) {
            return unseen(Recheck::Unneeded);
        }
        if work.end == Some(TurnOutcome::Interrupted) {
            return unseen(Recheck::Interrupted);
        }
        if !self.plan.is_approved() || self.plan.is_stopped() {
            return unseen(Recheck::Stopped);
        }
        if self.is_apart(task) {
            return unseen(Recheck::Worktree);
        }
        let attempt = self.plan.task(task).map_or(0, |view| view.attempt);
        let Some(flight) = self.check_saying(task, attempt, output.to_owned()) else {
            return unseen(Recheck::Unneeded);
        };
        let cancel = self.checks.running.remove(&(task, attempt)).unwrap_or_default();
        let (landed, stopped) = self.hear_while(flight, &cancel).await?;
        match landed {
            PlanEffectDone::Checked { findings, .. } if !cancel.is_cancelled() => {
                Ok((Recheck::Ran, Some(findings), stopped))
            }
            _ => Ok((Recheck::Interrupted, None, stopped)),
        }
    }

    /// Tells the lead of a correction that the user asked for.
    fn note_to_lead(&self, envelope: &Envelope, reader: &str, task: usize, found: &str) -> Option<Envelope> {
        let view = self.plan.task(task).filter(|_| reader.starts_with("user/"))?;
        let id = &view.task.id;
        let text = format!(
            "(The user asked the owner of task `{id}` again. {found}`task_query` with `task_id: {id}` shows its answer.)"
        );
        let body = Body::Words(Words { text: &text, from: view.member, aside: true, ..Words::default() });
        let note = derived(&[envelope.id.to_string().as_bytes(), b"lead"]);
        let lead = session::agent_stream(self.active.lead);
        Some(Envelope::new(note, &envelope.from, lead, MessageKind::Text, body, envelope.sent_at_ms))
    }
}

/// The answer for its reader, in the name of the member that gave it.
fn passed_on(envelope: &Envelope, reader: &str, words: &str) -> Envelope {
    let text = format!("{}\n\n{words}", envelope.text());
    let mut result = TaskResult { text: &text, ..envelope.result() };
    result.work.checked = words;
    let body = Body::Result(Box::new(result)).into();
    let id = derived(&[envelope.id.to_string().as_bytes(), b"passed on"]);
    Envelope { id, to: reader.to_owned(), body, ..envelope.clone() }
}

/// What the checks say after a correction, for its reader; empty if nothing was changed.
fn checked_words(checks: Recheck, findings: Option<&Findings>) -> String {
    let evidence = findings.map_or(&[][..], |found| &found.evidence);
    match (checks, checks.reason()) {
        (_, Some(reason)) => format!("The task's checks were not run after this correction: {reason}.\n\n"),
        (Recheck::Ran, _) if evidence.is_empty() => {
            "The task has no checks: nothing verifies this correction.\n\n".to_owned()
        }
        (Recheck::Ran, _) => format!("The task's checks after this correction:\n{}\n", evidence_lines(evidence)),
        _ => String::new(),
    }
}

fn cost_words(plan: &Plan, task: usize, spent: ResourceUse) -> String {
    let all = plan.task(task).map(|view| view.spent).unwrap_or_default();
    format!(
        "[This answer cost {}; the task has cost {} and the plan {} so far.]",
        cost(spent),
        cost(all),
        cost(plan.tally().spent)
    )
}

/// One line for each check.
pub(super) fn evidence_lines(evidence: &[Evidence]) -> String {
    let line = |one: &Evidence| {
        let caveat = one.caveat().map_or_else(String::new, |caveat| format!(" ({caveat})"));
        format!("{} {}: {}{caveat}\n", if one.ok { "✓" } else { "✗" }, one.what, one.detail)
    };
    evidence.iter().map(line).collect()
}
