//! Assigns tasks, and checks their results.
//!
//! The commit that assigns a task also creates its agent and holds the agent's first step. It records the state of
//! declared files, to find out later what the task changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::agent::Settings;
use max_team_core::delegation::cache::CacheKey;
use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::message::{Assignment, Envelope};
use max_team_core::plan::event::{ApprovalMode, Artifact, Proof, RiskyCheck, TaskAssigned};
use max_team_core::plan::{PlanInput, TaskDraft, TaskView};
use max_team_core::policy::Visibility;
use max_team_core::policy::glob::is_owned;
use max_team_journal::Commit;
use max_team_tools::command::CommandSandbox;
use max_team_tools::worktree::WorktreeError;
use max_team_tools::{AgentStore, command};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::apart::{self, Apart};
use super::check::{self, Checker, Leaves, Look};
use super::{Batch, Flight, PlanEffectDone, PlanLoop};
use crate::active_session::{ActiveSession, under};
use crate::agent::{Newcomer, owner_hosts};
use crate::budget::least;
use crate::error::RuntimeError;
use crate::handle::AgentSpec;
use crate::read_model::ReadModel;
use crate::rewind::{Merger, record_tree_step};
use crate::shared::Shared;
use crate::{session, worktree};

/// Owners whose tools wait for a snapshot of the working tree before they change anything.
#[derive(Default)]
pub(super) struct Marking {
    /// By their tasks.
    owners: HashMap<AgentId, usize>,
    /// Tells that one of them wants to change something.
    pub(super) wanted: Arc<Notify>,
    /// The snapshot is being taken.
    pub(super) is_under_way: bool,
}

impl Marking {
    fn hold(&mut self, active: &ActiveSession, owners: Vec<(AgentId, usize)>) {
        active.marks(|marks| marks.begin(owners.iter().map(|(agent, _)| *agent), &self.wanted));
        self.owners.extend(owners);
    }

    fn free(&mut self, active: &ActiveSession, owners: Vec<AgentId>) {
        self.owners.retain(|agent, _| !owners.contains(agent));
        active.marks(|marks| marks.end(owners.into_iter()));
    }

    /// The loop ends: no owner waits any more.
    pub(super) fn end(&mut self, active: &ActiveSession) {
        self.free(active, self.owners.keys().copied().collect());
    }
}

impl PlanLoop {
    /// The agent that starts with this task; its first entries go into the same commit. `None` for an agent that
    /// exists already and reads the message itself.
    pub(super) fn welcome(
        &self,
        assigned: &TaskAssigned,
        given: Assignment,
        envelope: Option<&Envelope>,
        commit: &mut Commit,
    ) -> Result<Option<Newcomer>, RuntimeError> {
        let stream = session::agent_stream(assigned.agent);
        let known = assigned.attempt > 1 && self.active.shared.journal.head(&stream)? > 0;
        let teammate = self.active.owner(&assigned.member).filter(|_| !known);
        let (Some(teammate), Some(envelope)) = (teammate, envelope) else { return Ok(None) };
        let settings = Arc::new(self.settings(&teammate, assigned));
        Newcomer::welcome(&self.active, assigned.agent, &teammate.definition, settings, given.into(), envelope, commit)
    }

    /// The assignment for the owner of a task, with the cache key of its answer.
    pub(super) fn given(&self, assigned: &TaskAssigned, asked: Option<&CacheKey>) -> Assignment {
        Assignment {
            reply_to: self.plan.stream.clone(),
            plan: Some(self.id),
            task: assigned.task.clone(),
            attempt: assigned.attempt,
            cache: asked.cloned().map(Box::new),
            ..Assignment::default()
        }
    }

    /// A member's settings in this plan. Never more than in the session.
    pub(super) fn settings(&self, teammate: &AgentSpec, assigned: &TaskAssigned) -> Settings {
        let mut settings = teammate.settings.clone();
        let index = self.plan.graph().and_then(|graph| graph.index(&assigned.task));
        let task = index.and_then(|index| Some((index, self.plan.draft()?.tasks.get(index)?)));
        if let Some((index, task)) = task {
            settings.owns.clone_from(&task.owns);
            let budget = self.plan.task_budget(index);
            // Another member than the planned one gets neither the checks that were approved for that one nor a larger
            // budget.
            let is_other = task.agent != assigned.member;
            if !is_other {
                settings.checks.extend(task.verify.iter().filter_map(|line| command::split(line).ok()));
                settings.registries = self.registries(task);
            }
            let given = |own, given: Option<u64>| if is_other { least(own, given) } else { given.or(own) };
            settings.budget_nano = given(settings.budget_nano, budget.nano);
            settings.budget_tokens = given(settings.budget_tokens, budget.tokens);
        }
        if self.plan.approve() != ApprovalMode::Each {
            (settings.approved, settings.mode) = (true, under(self.plan.approve(), settings.mode));
        }
        if let Some(team) = self.active.team()
            && let Some(model) = assigned.model.as_ref().and_then(|name| team.models.get(name))
        {
            settings.model = model.clone();
            let constraints = settings.constraints.clone();
            settings = settings.limited_by(&constraints);
        }
        if index.is_some_and(|index| self.is_apart(index)) {
            settings = worktree::within(&self.active.shared, assigned.agent, settings);
        }
        settings
    }

    /// Records the state of declared files before tasks begin, with the assignment, so that the next process compares
    /// with the same state.
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
            let (root, files) = (self.active.root.clone(), self.files());
            let look = move || {
                let seen = begun.into_iter().map(|(index, outputs)| {
                    let outputs = outputs.iter().map(|path| check::hash(&root, &files, path)).collect();
                    (index, outputs)
                });
                seen.collect::<Vec<_>>()
            };
            self.before.extend(tokio::task::spawn_blocking(look).await.unwrap_or_default());
        }
        for event in events {
            let Event::TaskAssigned(assigned) = event else { continue };
            let index = self.plan.graph().and_then(|graph| graph.index(&assigned.task));
            if let Some(before) = index.and_then(|index| self.before.get(&index)) {
                assigned.before.clone_from(before);
            }
        }
    }

    /// The coders among these tasks that work in the project itself and have no snapshot of the working tree yet: their tools
    /// that change files wait until it is committed (`TaskMarked`). So do those of tasks whose checks run first.
    pub(super) fn hold_unmarked(&mut self, tasks: &[usize]) {
        let waits = tasks.iter().copied().filter(|index| {
            let is_coder = self.leaves(*index) == Leaves::Diff && self.plan.tree(*index).is_none();
            // A worktree has its own record of the original state.
            (is_coder || self.is_probed(*index)) && !self.is_apart(*index)
        });
        let held: Vec<(AgentId, usize)> =
            waits.filter_map(|index| Some((self.plan.task(index)?.agent?, index))).collect();
        self.marking.hold(&self.active, held);
    }

    /// Takes one snapshot of the working tree for all coders without one: none of them has changed anything.
    pub(super) fn mark(&mut self) {
        self.end_probes();
        let tasks: Vec<(usize, AgentId)> = self.marking.owners.iter().map(|(agent, task)| (*task, *agent)).collect();
        self.marking.is_under_way = true;
        // An owner that leaves no diff only waited for the checks that ran before it changes anything.
        if !tasks.iter().any(|(task, _)| self.leaves(*task) == Leaves::Diff) {
            self.flights.push(Box::pin(async move { PlanEffectDone::Marked { tasks, tree: None } }));
            return;
        }
        let (root, cancel, shared) = (self.active.root.clone(), self.cancel.clone(), Arc::clone(&self.active.shared));
        self.flights.push(Box::pin(async move {
            let look = move || {
                let record = |step| record_tree_step(&shared.journal, step);
                shared.trees.snapshot(&root, &cancel, &record)
            };
            let looked = tokio::task::spawn_blocking(look).await;
            PlanEffectDone::Marked { tasks, tree: looked.ok().flatten() }
        }));
    }

    /// Commits the snapshot and releases the tools that wait for it.
    pub(super) async fn marked(
        &mut self,
        tasks: Vec<(usize, AgentId)>,
        tree: Option<Hash>,
    ) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        for (tree, (task, _)) in tree.into_iter().flat_map(|tree| tasks.iter().map(move |task| (tree, task))) {
            self.decide(PlanInput::Marked { task: *task, tree }, &mut batch);
        }
        let written = self.commit(batch).await;
        self.marking.is_under_way = false;
        self.marking.free(&self.active, tasks.into_iter().map(|(_, agent)| agent).collect());
        written
    }

    /// The state of a task's declared files at its first assignment, also if an earlier process made it.
    fn outputs_before(&self, index: usize) -> Vec<Option<Hash>> {
        match self.plan.before(index) {
            [] => self.before.get(&index).cloned().unwrap_or_default(),
            known => known.to_vec(),
        }
    }

    pub(super) fn check(&mut self, index: usize, attempt: u32) -> Option<Flight> {
        self.check_saying(index, attempt, self.plan.output(index).to_owned())
    }

    /// Checks the result of a task, with this text as its owner's answer.
    pub(super) fn check_saying(&mut self, index: usize, attempt: u32, output: String) -> Option<Flight> {
        let task = self.plan.draft()?.tasks.get(index)?.clone();
        let leaves = self.leaves(index);
        let member = self.plan.task(index).map(|view| view.member.to_owned()).unwrap_or_default();
        let owner = self.checking_owner(&member, &task);
        let seen = |settings: &Settings| Visibility::from_policy(&settings.constraints, &settings.permissions);
        let sight = owner.as_ref().map(seen).unwrap_or_default();
        let (covered, beside) = (self.covered(&task), self.owned_beside(index));
        let (before, outputs_before) = (self.plan.tree(index), self.outputs_before(index));
        let (unknown, passed) = (self.plan.unknown_outcomes(index).to_vec(), self.plan.passed_before(index).to_vec());
        let (root, files, cancel) = (self.active.root.clone(), self.files(), self.cancel.child_token());
        let shared = Arc::clone(&self.active.shared);
        let agent = self.plan.task(index).and_then(|view| view.agent);
        let worker = agent.and_then(|agent| self.worker(index, agent));
        if worker.is_none() && self.is_apart(index) {
            let missing = WorktreeError::NotFound(agent.map(|agent| agent.to_string()).unwrap_or_default());
            let findings = apart::unseen(&missing);
            return Some(Box::pin(async move { PlanEffectDone::Checked { task: index, attempt, findings } }));
        }
        self.checks.running.insert((index, attempt), cancel.clone());
        let (session, fence) = (self.active.session, Some(self.active.fence.clone()));
        let key = format!("{} {} {attempt}", self.plan.stream, task.id);
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
                // The checks of a read-only owner may not write either.
                let read_only = owner.as_ref().is_some_and(|owner| owner.constraints.read_only);
                let hosts = owner_hosts(owner.as_ref(), &shared.services.private_hosts);
                let (on, sight_of) = (shared.walled || read_only, Arc::clone(&sight));
                let isolation =
                    CommandSandbox { on, read_only, sight: sight_of, reads, hosts, ..CommandSandbox::around(&root) };
                let look = Look {
                    checker: Checker {
                        root: &root,
                        task: &task,
                        owner: owner.as_ref(),
                        covered: &covered,
                        isolation: &isolation,
                    },
                    files: &files,
                    leaves,
                    output: &output,
                    shared: &shared,
                    before,
                    changed: apart.as_ref().map(|apart| &apart.review),
                    sight: &sight,
                    passed_before: &passed,
                    unknown: &unknown,
                    outputs_before: &outputs_before,
                    unowned: unowned(&task, apart.as_ref(), agent, &root, &shared, &sight, &beside),
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
            PlanEffectDone::Checked { task: index, attempt, findings }
        }))
    }

    /// What the tasks own that were worked on at the same time: a scan cannot tell whose command changed a file of theirs.
    fn owned_beside(&self, index: usize) -> Vec<String> {
        let begun = self.plan.task(index).map(|view| view.since_ms.0).unwrap_or_default();
        let is_beside = |view: &TaskView<'_>| {
            let ended = view.since_ms.1;
            view.index != index && view.attempt > 0 && (ended == 0 || ended >= begun)
        };
        let beside = self.plan.tasks().filter(is_beside);
        beside.flat_map(|view| view.task.owned().iter().cloned()).collect()
    }

    /// The checks of a task that need a person and were approved with the plan.
    pub(super) fn covered(&self, task: &TaskDraft) -> Vec<String> {
        let is_covered = |line: &&String| {
            let check = RiskyCheck { task: task.id.clone(), line: (*line).clone() };
            self.plan.proposed().is_some_and(|proposed| proposed.covers(&check))
        };
        task.verify.iter().filter(is_covered).cloned().collect()
    }

    /// The settings under which the checks of a task run; `None`: its owner is not in the team any more.
    pub(super) fn checking_owner(&self, member: &str, task: &TaskDraft) -> Option<Settings> {
        let registries = if task.agent == member { self.registries(task) } else { Vec::new() };
        self.active.owner(member).map(|teammate| Settings { registries, ..teammate.settings })
    }

    /// The registries that the approval of the plan opens to the task's owner.
    fn registries(&self, task: &TaskDraft) -> Vec<String> {
        self.plan.proposed().map(|plan| plan.registries(&task.id)).unwrap_or_default()
    }

    /// The folder of the session's own files.
    pub(super) fn files(&self) -> PathBuf {
        AgentStore::files(&self.active.shared.home, self.active.session).path().to_owned()
    }

    pub(super) fn leaves(&self, task: usize) -> Leaves {
        let member = self.plan.task(task).map(|view| view.member.to_owned()).unwrap_or_default();
        let leaves = self.active.owner(&member).map_or(Leaves::Words, |teammate| Leaves::of(&teammate.definition.role));
        // An architect that gets the changes of a coder reviews them.
        let is_diff = |artifact: &Artifact| artifact.name == check::CODE_DIFF;
        let reviews = || self.plan.upstream(task).iter().any(|(_, artifacts)| artifacts.iter().any(is_diff));
        if leaves == Leaves::Design && reviews() { Leaves::Review } else { leaves }
    }
}

/// The visible files that commands of a task changed although the task does not own them.
fn unowned(
    task: &TaskDraft,
    apart: Option<&Apart>,
    agent: Option<AgentId>,
    root: &Path,
    shared: &Shared,
    sight: &Visibility,
    beside: &[String],
) -> Result<Vec<String>, RuntimeError> {
    let mut files = match (&task.owns, apart, agent) {
        (Some(owns), Some(apart), _) => apart.unowned(owns),
        (Some(owns), None, Some(agent)) => ReadModel::new(&shared.journal).unowned_changes(agent, root, owns)?,
        _ => Vec::new(),
    };
    files.retain(|path| sight.is_visible(path) && !is_owned(beside, path));
    Ok(files)
}
