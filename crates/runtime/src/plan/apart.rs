//! Tasks that are done in a worktree of the project.
//!
//! The worktree is made before the owner gets the task; if that fails, the task fails with the reason, and no agent
//! works in the project instead. Checks run in the worktree. Changes that pass them are merged all or none, before the
//! task is done; the worktree is removed once the log says so. Declared outputs are merged even if git ignores them; a
//! worktree with other ignored files stays.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use max_team_core::id::AgentId;
use max_team_core::message::MessageKind;
use max_team_core::plan::event::{Evidence, Proof, ResourceUse, TaskAssigned};
use max_team_core::plan::{Findings, PlanInput, Report, TaskStatus};
use max_team_core::policy::Visibility;
use max_team_core::policy::glob::is_owned;
use max_team_tools::worktree::{Review, Worktree, WorktreeError};
use tokio_util::sync::CancellationToken;

use super::serve::Beginning;
use super::{Batch, PlanControl, PlanEffectDone, PlanLoop};
use crate::error::RuntimeError;
use crate::rewind::Merger;
use crate::shared::Shared;
use crate::worktree::{self, Worker};

/// A task and its attempt.
pub(super) type Attempt = (String, u32);

/// The worktrees of a plan's tasks.
#[derive(Default)]
pub(super) struct Worktrees {
    /// The agents that have one.
    agents: HashSet<AgentId>,
    /// How many are being removed.
    pub(super) clearing: usize,
}

impl PlanLoop {
    /// Whether a task is done in a worktree: its definition says so now, or its owner got one when it did.
    pub(super) fn is_apart(&self, index: usize) -> bool {
        let Some(view) = self.plan.task(index) else { return false };
        let isolation =
            self.active.owner(view.member).map(|teammate| teammate.definition.isolation).unwrap_or_default();
        worktree::wanted(isolation, view.task.isolation)
            || view.agent.is_some_and(|agent| self.worktrees.agents.contains(&agent))
    }

    /// The owner of a task that is done in a worktree.
    pub(super) fn worker(&self, index: usize, agent: AgentId) -> Option<Worker> {
        let view = self.plan.task(index).filter(|_| self.is_apart(index))?;
        let settings = self.active.owner(view.member)?.settings;
        let by = format!("{} at `{}`", view.member, view.task.id);
        let settings = worktree::within(&self.active.shared, agent, settings);
        let named = view.task.outputs.clone();
        Some(Worker { id: agent.to_string(), project: self.active.root.clone(), settings, by, named })
    }

    /// The folder in which the owner of a task works.
    pub(super) fn root_of(&self, assigned: &TaskAssigned) -> PathBuf {
        let index = self.plan.graph().and_then(|graph| graph.index(&assigned.task));
        match index.and_then(|index| self.worker(index, assigned.agent)) {
            Some(worker) => PathBuf::from(worker.settings.permissions.copy),
            None => self.active.root.clone(),
        }
    }

    /// Makes the worktrees of tasks that are about to begin, in parallel. A task without one fails, and its owner is
    /// not started. Stopping the plan cancels this.
    pub(super) async fn make_copies(
        &mut self,
        assigned: &[TaskAssigned],
        beginning: &mut Beginning,
        batch: &mut Batch,
    ) -> Result<(), RuntimeError> {
        let begins: Vec<_> = assigned.iter().filter_map(|assigned| self.begins(assigned)).collect();
        if begins.is_empty() {
            return Ok(());
        }
        let cancel = self.cancel.child_token();
        let shared = Arc::clone(&self.active.shared);
        let made = join_all(begins.into_iter().map(|(index, attempt, worker)| {
            let (shared, cancel) = (Arc::clone(&shared), cancel.clone());
            async move {
                let copy = worker.id.clone();
                (index, attempt, copy, worker.prepare(&shared, &cancel).await)
            }
        }));
        let (made, stopped) = self.hear_while(made, &cancel).await?;
        let is_stopped = stopped.is_some();
        if let Some(input) = stopped {
            self.decide(input, batch);
        }
        for (task, (id, attempt), copy, made) in made {
            let Err(error) = made else {
                self.worktrees.agents.extend(copy.parse::<AgentId>());
                continue;
            };
            beginning.over.insert((id, attempt));
            let report = if is_stopped { Report::Stopped } else { Report::Failed { error, output: String::new() } };
            self.decide(PlanInput::Reported { task, attempt, report, spent: ResourceUse::default() }, batch);
        }
        Ok(())
    }

    /// The assignment of a task that is done in a worktree.
    fn begins(&self, assigned: &TaskAssigned) -> Option<(usize, Attempt, Worker)> {
        let TaskAssigned { task, attempt, agent, .. } = assigned;
        let index = self.plan.graph()?.index(task)?;
        Some((index, (task.clone(), *attempt), self.worker(index, *agent)?))
    }

    /// Awaits something slow and meanwhile watches for a stop of the plan. If the process closes, the decision is left
    /// to the next one.
    pub(super) async fn hear_while<T>(
        &mut self,
        work: impl Future<Output = T>,
        cancel: &CancellationToken,
    ) -> Result<(T, Option<PlanInput>), RuntimeError> {
        let (mut work, mut stopped) = (std::pin::pin!(work), None);
        let bell = Arc::clone(&self.bell);
        let mut rung = false;
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    if rung {
                        // The rest of the mail is read later.
                        bell.notify_one();
                    }
                    return Ok((done, stopped));
                }
                control = self.controls.recv() => match control {
                    None | Some(PlanControl::Stop) => {
                        cancel.cancel();
                        work.await;
                        self.parked = true;
                        return Err(RuntimeError::NotOpen(self.active.session));
                    }
                    // A live notice.
                    Some(PlanControl::Begun { .. }) => {}
                },
                () = bell.notified() => {
                    rung = true;
                    stopped = stopped.or(self.stop_in_mail()?);
                }
            }
            if stopped.is_some() {
                cancel.cancel();
            }
        }
    }

    /// A message that stops the whole plan. It is not acknowledged here, but in its turn.
    fn stop_in_mail(&self) -> Result<Option<PlanInput>, RuntimeError> {
        let mail = self.active.shared.journal.pending_mail(&self.plan.stream)?;
        let mut stops = mail.iter().filter(|envelope| envelope.kind == MessageKind::Shutdown);
        let stops_all = |input: &PlanInput| {
            matches!(input, PlanInput::Hold { .. } | PlanInput::Stop { task: None, .. } | PlanInput::Replaced { .. })
        };
        Ok(stops.find_map(|envelope| self.read(envelope).filter(stops_all)))
    }

    /// Removes the worktree of a task that is done, if all of it was merged.
    pub(super) fn drop_copy(&mut self, index: usize) {
        let Some(agent) = self.plan.task(index).and_then(|view| view.agent).filter(|_| self.is_apart(index)) else {
            return;
        };
        self.worktrees.agents.remove(&agent);
        let shared = Arc::clone(&self.active.shared);
        self.worktrees.clearing += 1;
        self.flights.push(Box::pin(async move {
            // A worktree that stays is listed, and can be cleaned later.
            drop(tokio::task::spawn_blocking(move || worktree::drop_settled(&shared, agent)).await);
            PlanEffectDone::Cleared
        }));
    }

    /// Undoes the merges that the last process had not finished.
    pub(super) async fn recover_copies(&mut self) {
        let home = self.active.shared.home.clone();
        let agents: Vec<AgentId> = self.plan.tasks().filter_map(|view| view.agent).collect();
        worktree::sweep(&home);
        // A plan without started agents has no worktrees.
        if agents.is_empty() {
            return;
        }
        drop(tokio::task::spawn_blocking(move || worktree::recover(&home, &agents)).await);
        let made = worktree::copies(&self.active.shared).list();
        self.worktrees.agents = made.iter().filter_map(|copy| copy.id().parse().ok()).collect();
        let done = self.plan.tasks().filter(|view| view.status == TaskStatus::Done);
        let done: Vec<usize> = done.map(|view| view.index).collect();
        done.into_iter().for_each(|index| self.drop_copy(index));
    }
}

/// A task's worktree while it is checked.
pub(super) struct Apart {
    pub(super) copy: Worktree,
    pub(super) review: Review,
}

impl Apart {
    pub(super) fn of(
        worker: &Worker,
        shared: &Shared,
        sight: &Visibility,
        cancel: &CancellationToken,
    ) -> Result<Self, WorktreeError> {
        let copy = worker.copy(shared, cancel)?;
        let review = copy.review_with(&worker.named, sight, cancel)?;
        Ok(Self { copy, review })
    }

    /// The files that differ although the task does not own them.
    pub(super) fn unowned(&self, owns: &[String]) -> Vec<String> {
        let paths = self.review.open().map(|change| change.path.clone());
        paths.filter(|path| !is_owned(owns, path)).collect()
    }

    /// Merges the changes that passed the checks, as they were before the checks ran, which is the state that other
    /// agents are shown; a failed merge is a failed check. Files that the checks themselves wrote stay in the
    /// worktree.
    pub(super) fn merge(
        mut self,
        findings: &mut Findings,
        sight: &Visibility,
        merger: &Merger<'_>,
        cancel: &CancellationToken,
    ) {
        let evidence = worktree::merge(&mut self.copy, &self.review, sight, merger, cancel);
        if !evidence.ok {
            findings.proof = Proof::Failed;
        }
        findings.evidence.push(evidence);
    }
}

/// The findings for a worktree that cannot be read.
pub(super) fn unseen(error: &WorktreeError) -> Findings {
    let evidence = vec![Evidence::new(worktree::MERGE, false, error.to_string())];
    Findings { proof: Proof::Failed, evidence, ..Findings::default() }
}
