//! Giving a task to somebody, and looking at what they left.
//!
//! Whoever begins to exist with a task is told to the journal in the commit that gives it to them, together with their
//! first step. How things were before is remembered there too, for what they will be found to have changed.

use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::calling::cache::Asked;
use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::message::{Assignment, Envelope};
use max_team_core::plan::event::{Approve, Proof, TaskAssigned};
use max_team_core::plan::{Findings, Input, Status};
use max_team_core::policy::Sight;
use max_team_core::team::Settings;
use max_team_journal::Commit;
use max_team_tools::command::Walls;
use max_team_tools::{Store, command, git};
use tokio_util::sync::CancellationToken;

use super::apart::{self, Apart};
use super::check::{self, Checker, Leaves, Look};
use super::{Batch, Before, Flight, Landed, PlanLoop};
use crate::agent::Newcomer;
use crate::error::RuntimeError;
use crate::floor::under;
use crate::handle::Mate;
use crate::purse::least;
use crate::rewind::Merger;
use crate::{session, worktree};

impl PlanLoop {
    /// Somebody who begins to exist with this task: what the journal is told about them goes into the same commit.
    /// `None` for somebody who exists already; they read the letter themselves.
    pub(super) fn welcome(
        &self,
        assigned: &TaskAssigned,
        given: Assignment,
        letter: Option<&Envelope>,
        commit: &mut Commit,
    ) -> Result<Option<Newcomer>, RuntimeError> {
        let stream = session::agent_stream(assigned.agent);
        let known = assigned.attempt > 1 && self.floor.shared.journal.head(&stream)? > 0;
        let mate = self.floor.owner(&assigned.member).filter(|_| !known);
        let (Some(mate), Some(letter)) = (mate, letter) else { return Ok(None) };
        let settings = Arc::new(self.settings(&mate, assigned));
        Newcomer::welcome(&self.floor, assigned.agent, &mate.definition, settings, given.into(), letter, commit)
    }

    /// What whoever has a task is given, and what their answer is kept under.
    pub(super) fn given(&self, assigned: &TaskAssigned, asked: Option<&Asked>) -> Assignment {
        Assignment {
            reply_to: self.stream.clone(),
            plan: Some(self.id),
            task: assigned.task.clone(),
            attempt: assigned.attempt,
            cache: asked.cloned().map(Box::new),
            ..Assignment::default()
        }
    }

    /// What a member works under in this plan. Never more than in the session.
    pub(super) fn settings(&self, mate: &Mate, assigned: &TaskAssigned) -> Settings {
        let mut settings = mate.settings.clone();
        let index = self.plan.graph().and_then(|graph| graph.index(&assigned.task));
        let task = index.and_then(|index| Some((index, self.plan.draft()?.tasks.get(index)?)));
        if let Some((index, task)) = task {
            settings.owns.clone_from(&task.owns);
            let budget = self.plan.task_budget(index);
            // Another member than the planned one gets neither the checks that were approved for that one nor more money.
            let is_other = task.agent != assigned.member;
            if !is_other {
                settings.checks.extend(task.verify.iter().filter_map(|line| command::split(line).ok()));
            }
            let given = |own, given: Option<u64>| if is_other { least(own, given) } else { given.or(own) };
            settings.budget_nano = given(settings.budget_nano, budget.nano);
            settings.budget_tokens = given(settings.budget_tokens, budget.tokens);
        }
        if self.plan.approve() != Approve::Each {
            (settings.approved, settings.mode) = (true, under(self.plan.approve(), settings.mode));
        }
        if let Some(team) = self.floor.team()
            && let Some(model) = assigned.model.as_ref().and_then(|name| team.models.get(name))
        {
            settings.model = model.clone();
            let constraints = settings.constraints.clone();
            settings = settings.under(&constraints);
        }
        if index.is_some_and(|index| self.is_apart(index)) {
            settings = worktree::within(&self.floor.shared, assigned.agent, settings);
        }
        settings
    }

    /// How declared files are before tasks begin: written down with the assignment, so that the next process measures
    /// against the same.
    pub(super) async fn remember(&mut self, events: &mut [Event]) {
        let mut begun = Vec::new();
        for event in events.iter() {
            let Event::TaskAssigned(assigned) = event else { continue };
            let Some(index) = self.plan.graph().and_then(|graph| graph.index(&assigned.task)) else { continue };
            let outputs = self.plan.draft().and_then(|draft| draft.tasks.get(index)).map(|task| task.outputs.clone());
            let outputs = outputs.unwrap_or_default();
            if !self.before.contains_key(&index) && !outputs.is_empty() {
                begun.push((index, outputs));
            }
        }
        if !begun.is_empty() {
            let (root, files) = (self.floor.root.clone(), self.files());
            let look = move || {
                let seen = begun.into_iter().map(|(index, outputs)| {
                    let outputs = outputs.iter().map(|path| check::hash(&root, &files, path)).collect();
                    (index, Before { outputs, ..Before::default() })
                });
                seen.collect::<Vec<_>>()
            };
            self.before.extend(tokio::task::spawn_blocking(look).await.unwrap_or_default());
        }
        for event in events {
            let Event::TaskAssigned(assigned) = event else { continue };
            let index = self.plan.graph().and_then(|graph| graph.index(&assigned.task));
            if let Some(before) = index.and_then(|index| self.before.get(&index)) {
                assigned.before.clone_from(&before.outputs);
            }
        }
    }

    /// The coders among these tasks that work in the project itself and have no snapshot of the working tree yet: their tools
    /// that change files wait until it is committed (`TaskMarked`). So do those of tasks whose checks run first.
    pub(super) fn hold_unmarked(&mut self, tasks: &[usize]) {
        let waits = tasks.iter().copied().filter(|index| {
            let is_coder = self.leaves(*index) == Leaves::Diff && self.plan.tree(*index).is_none();
            // A copy knows by itself how it was.
            (is_coder || self.is_probed(*index)) && !self.is_apart(*index)
        });
        let held: Vec<(AgentId, usize)> =
            waits.filter_map(|index| Some((self.plan.task(index)?.agent?, index))).collect();
        self.floor.marks.begin(held.iter().map(|(agent, _)| *agent), &self.wanted);
        self.unmarked.extend(held);
    }

    /// Takes one snapshot of the working tree for all coders without one: none of them has changed anything.
    pub(super) fn mark(&mut self) {
        self.end_probes();
        let tasks: Vec<(usize, AgentId)> = self.unmarked.iter().map(|(agent, task)| (*task, *agent)).collect();
        self.is_marking = true;
        // An owner that leaves no diff only waited for the checks that ran before it changes anything.
        if !tasks.iter().any(|(task, _)| self.leaves(*task) == Leaves::Diff) {
            self.flights.push(Box::pin(async move { Landed::Marked { tasks, tree: None } }));
            return;
        }
        let (root, cancel) = (self.floor.root.clone(), self.cancel.clone());
        self.flights.push(Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || git::snapshot(&root, &cancel).ok().flatten()).await;
            Landed::Marked { tasks, tree: looked.ok().flatten() }
        }));
    }

    /// Commits the snapshot and releases the tools that wait for it.
    pub(super) async fn marked(
        &mut self,
        tasks: Vec<(usize, AgentId)>,
        tree: Option<git::Snapshot>,
    ) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        if let Some((tree, bytes)) = tree.and_then(|tree| serde_json::to_vec(&tree).ok().map(|bytes| (tree, bytes))) {
            let hash = Hash::of(&bytes);
            batch.blobs.push(bytes);
            for (task, _) in &tasks {
                self.decide(Input::Marked { task: *task, tree: hash }, &mut batch);
                if self.plan.tree(*task) == Some(hash) {
                    self.before.entry(*task).or_default().tree = Some(tree.clone());
                }
            }
        }
        let written = self.commit(batch).await;
        self.is_marking = false;
        for (_, agent) in &tasks {
            self.unmarked.remove(agent);
        }
        self.floor.marks.end(tasks.into_iter().map(|(_, agent)| agent));
        written
    }

    /// How the working tree was when a task was first given to somebody, also by a process before this one.
    fn tree(&self, index: usize) -> Option<git::Snapshot> {
        let here = self.before.get(&index).and_then(|before| before.tree.clone());
        let kept = || self.floor.shared.journal.blob(&self.plan.tree(index)?).ok()?;
        here.or_else(|| serde_json::from_slice(&kept()?).ok())
    }

    pub(super) fn check(&mut self, index: usize, attempt: u32) -> Option<Flight> {
        self.check_saying(index, attempt, self.plan.output(index).to_owned())
    }

    /// Looks at what a task left, whose owner says this.
    pub(super) fn check_saying(&mut self, index: usize, attempt: u32, output: String) -> Option<Flight> {
        let task = self.plan.draft()?.tasks.get(index)?.clone();
        let leaves = self.leaves(index);
        let member = self.plan.task(index).map(|view| view.member.to_owned()).unwrap_or_default();
        let owner = self.floor.owner(&member).map(|mate| mate.settings);
        let seen = |settings: &Settings| Sight::under(&settings.constraints, &settings.permissions);
        let sight = owner.as_ref().map(seen).unwrap_or_default();
        let risks = self.plan.proposed().map(|proposed| proposed.risks.clone()).unwrap_or_default();
        let unknown = self.plan.unknown_outcomes(index).to_vec();
        let mut before = self.before.get(&index).cloned().unwrap_or_default();
        before.tree = self.tree(index);
        // What was written down with the first attempt is what the task is measured against.
        if !self.plan.before(index).is_empty() {
            before.outputs = self.plan.before(index).to_vec();
        }
        let passed = self.plan.passed_before(index).to_vec();
        let (root, files, cancel) = (self.floor.root.clone(), self.files(), self.cancel.child_token());
        let shared = Arc::clone(&self.floor.shared);
        let agent = self.plan.task(index).and_then(|view| view.agent);
        let worker = agent.and_then(|agent| self.worker(index, agent));
        if worker.is_none() && self.is_apart(index) {
            let nobody =
                max_team_tools::copy::CopyError::NotFound(agent.map(|agent| agent.to_string()).unwrap_or_default());
            let findings = apart::unseen(&nobody);
            return Some(Box::pin(async move { Landed::Checked { task: index, attempt, findings } }));
        }
        self.checking.insert((index, attempt), cancel.clone());
        let (session, fence) = (self.floor.session, Some(self.floor.fence.clone()));
        let key = format!("{} {} {attempt}", self.stream, task.id);
        Some(Box::pin(async move {
            let gone = CancellationToken::new();
            let _here = gone.clone().drop_guard();
            let looked = tokio::task::spawn_blocking(move || {
                let apart = match worker.map(|worker| Apart::of(&worker, &shared, &sight, &cancel)).transpose() {
                    Ok(apart) => apart,
                    Err(error) => return apart::unseen(&error),
                };
                let sight = Arc::new(sight);
                let (root, reads) = match &apart {
                    Some(apart) => (apart.copy.root(), apart.copy.reads()),
                    None => (root, Vec::new()),
                };
                // The checks of somebody who only looks write as little as they do.
                let read_only = owner.as_ref().is_some_and(|owner| owner.constraints.read_only);
                let on = shared.walled || read_only;
                let walls = Walls { on, read_only, sight: Arc::clone(&sight), reads, ..Walls::around(&root) };
                let look = Look {
                    checker: Checker { root: &root, task: &task, owner: owner.as_ref(), risks: &risks, walls: &walls },
                    files: &files,
                    leaves,
                    output: &output,
                    before: before.tree.as_ref(),
                    changed: apart.as_ref().map(|apart| &apart.review),
                    sight: &sight,
                    passed_before: &passed,
                    unknown: &unknown,
                    outputs_before: &before.outputs,
                };
                let mut findings = check::look(&look, &cancel);
                if let Some(apart) = apart.filter(|_| findings.proof != Proof::Failed) {
                    let (journal, actor) = (&shared.journal, "plan".to_owned());
                    let merger = Merger { journal, session, fence, actor, gone: Some(gone), key };
                    apart.merge(&mut findings, &sight, &merger, &cancel);
                }
                findings
            });
            let findings = looked.await.unwrap_or_default();
            Landed::Checked { task: index, attempt, findings }
        }))
    }

    /// Looks at a task again that its owner has changed after its end. The changes of a worktree wait for the user: nothing of
    /// them is seen here.
    pub(super) async fn look_again(
        &mut self,
        index: usize,
        output: &str,
    ) -> Result<(Option<Findings>, Option<Input>), RuntimeError> {
        let Some(view) = self.plan.task(index).filter(|view| view.status == Status::Done) else {
            return Ok((None, None));
        };
        let (attempt, known) = (view.attempt, view.result.map(|result| result.artifacts.clone()).unwrap_or_default());
        if self.is_apart(index) {
            return Ok((Some(Findings { artifacts: known, ..Findings::default() }), None));
        }
        let Some(flight) = self.check_saying(index, attempt, output.to_owned()) else { return Ok((None, None)) };
        let cancel = self.checking.remove(&(index, attempt)).unwrap_or_default();
        let (landed, stopped) = self.hear_while(flight, &cancel).await?;
        let findings = match landed {
            Landed::Checked { findings, .. } => Some(findings),
            _ => None,
        };
        Ok((findings, stopped))
    }

    /// Where the session's own files lie.
    pub(super) fn files(&self) -> PathBuf {
        Store::files(&self.floor.shared.home, self.floor.session).path().to_owned()
    }

    pub(super) fn leaves(&self, task: usize) -> Leaves {
        let member = self.plan.task(task).map(|view| view.member.to_owned()).unwrap_or_default();
        self.floor.owner(&member).map_or(Leaves::Words, |mate| Leaves::of(&mate.definition.role))
    }
}
