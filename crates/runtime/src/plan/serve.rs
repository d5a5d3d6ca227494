//! Answers tasks from the cache of their owners' earlier answers.
//!
//! A task is assigned first, like every other; before the message is sent, the cache of its owner's answers is
//! searched, and a match is passed to the plan, which decides. So the log has both in one commit, and a process that
//! dies in between leaves nothing behind. An assignment that is sent names the cache key of its answer.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use max_team_core::agent::Settings;
use max_team_core::delegation::cache::{CacheKey, CacheLookup};
use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::plan::event::{ArtifactType, CachedAnswer, ResourceUse, TaskAssigned};
use max_team_core::plan::{Plan, PlanInput, Report, TaskStatus};
use serde_json::json;

use super::apart::Attempt;
use super::{Batch, PlanLoop, check};
use crate::cache::Caches;
use crate::error::RuntimeError;
use crate::shared::now_ms;

/// What is known about the assignments of a batch.
#[derive(Default)]
pub(super) struct Beginning {
    /// Attempts that start no agent: they have failed already, or are done.
    pub(super) over: HashSet<Attempt>,
    /// The cache keys of the others.
    pub(super) asked: HashMap<Attempt, CacheKey>,
}

impl PlanLoop {
    /// Prepares the assignments of a batch: cached answers, worktrees. A task that is over at once may free another,
    /// which is prepared, too.
    pub(super) async fn prepare(&mut self, batch: &mut Batch) -> Result<Beginning, RuntimeError> {
        let (mut beginning, mut at) = (Beginning::default(), 0);
        while let Some(events) = batch.events.get(at..).filter(|events| !events.is_empty()) {
            let given = |event: &Event| match event {
                Event::TaskAssigned(assigned) => Some(assigned.clone()),
                _ => None,
            };
            let assigned: Vec<TaskAssigned> = events.iter().filter_map(given).collect();
            at = batch.events.len();
            self.left_alone(&assigned, &mut beginning, batch);
            self.serve(&assigned, &mut beginning, batch).await?;
            self.make_copies(&assigned, &mut beginning, batch).await?;
        }
        Ok(beginning)
    }

    /// Tasks whose owner is no longer on the team fail: no agent would read the message.
    fn left_alone(&mut self, assigned: &[TaskAssigned], beginning: &mut Beginning, batch: &mut Batch) {
        for TaskAssigned { task: id, attempt, member, .. } in assigned {
            let Some(task) = self.plan.graph().and_then(|graph| graph.index(id)) else { continue };
            if self.active.owner(member).is_none() {
                beginning.over.insert((id.clone(), *attempt));
                let error = format!("`{member}` is not on the team any more");
                let report = Report::Failed { error, output: String::new() };
                self.decide(
                    PlanInput::Reported { task, attempt: *attempt, report, spent: ResourceUse::default() },
                    batch,
                );
            }
        }
    }

    /// Answers tasks from the cache.
    async fn serve(
        &mut self,
        assigned: &[TaskAssigned],
        beginning: &mut Beginning,
        batch: &mut Batch,
    ) -> Result<(), RuntimeError> {
        // Only first attempts: a later one gets more input, and finds what the first one left.
        for assigned in assigned.iter().filter(|assigned| assigned.attempt == 1) {
            let Some((task, asked)) = self.step_of(assigned).await else { continue };
            let attempt: Attempt = (assigned.task.clone(), assigned.attempt);
            if let Some(input) = self.kept(task, assigned, &asked)? {
                self.decide(input, batch);
            }
            if self.plan.task(task).is_some_and(|view| view.status == TaskStatus::Done) {
                beginning.over.insert(attempt);
            } else {
                beginning.asked.insert(attempt, asked);
            }
        }
        Ok(())
    }

    /// The cached answer for a task.
    fn kept(&self, task: usize, assigned: &TaskAssigned, asked: &CacheKey) -> Result<Option<PlanInput>, RuntimeError> {
        let (Some(step), now_ms) = (&asked.step, now_ms()) else { return Ok(None) };
        let entries = Caches::new(&self.active.shared.journal).entries(&assigned.member)?;
        let CacheLookup::Answer(entry) = asked.find(&entries, step, now_ms) else { return Ok(None) };
        let age_ms = entry.age_ms(now_ms).unwrap_or_default();
        Ok(Some(PlanInput::Served {
            task,
            attempt: assigned.attempt,
            findings: check::words(self.leaves(task), &entry.text),
            output: entry.text,
            cached: CachedAnswer { key: entry.key, age_ms },
        }))
    }

    /// The cache key of a task, if it can be answered from the cache.
    async fn step_of(&mut self, assigned: &TaskAssigned) -> Option<(usize, CacheKey)> {
        let team = self.active.team()?;
        let teammate = team.members.iter().find(|teammate| teammate.definition.name == assigned.member)?;
        teammate.definition.cache.as_ref()?;
        let task = self.plan.graph()?.index(&assigned.task)?;
        let written = self.plan.draft()?.tasks.get(task)?;
        if check::needs_a_look(written, self.leaves(task), true) || self.is_apart(task) {
            return None;
        }
        let (root, files, upstream) = (self.active.root.clone(), self.files(), upstream(&self.plan, task));
        // If an input cannot be read, the task is not known to be equal to an earlier one.
        let upstream = tokio::task::spawn_blocking(move || hashed(&root, &files, upstream)).await.ok()??;
        let Settings { model, constraints, .. } = self.settings(teammate, assigned);
        let place = json!([self.active.root, "", constraints]).to_string();
        let model = format!("{}/{}", model.provider, model.name);
        Some((task, CacheKey::step(&teammate.definition, &place, &model, written, &upstream)?))
    }
}

/// The inputs of a task: a name, and the text or the file.
fn upstream(plan: &Plan, task: usize) -> Vec<(String, ArtifactType, String)> {
    let mut all = Vec::new();
    for (need, artifacts) in plan.upstream(task) {
        let one = |name: &str| format!("{name} of `{need}`");
        all.extend(artifacts.iter().map(|left| (one(&left.name), left.kind, left.content.clone())));
    }
    let error = plan.upstream_error(task);
    all.extend(error.map(|(failed, why)| (format!("why `{failed}` failed"), ArtifactType::Text, why.to_owned())));
    all
}

/// Like `upstream`, with content hashes. Blocking. `None`: a file does not exist.
fn hashed(root: &Path, files: &Path, upstream: Vec<(String, ArtifactType, String)>) -> Option<Vec<(String, Hash)>> {
    let one = |(name, kind, content): (String, ArtifactType, String)| {
        let hash = match kind {
            ArtifactType::FilePath => check::hash(root, files, &content)?,
            ArtifactType::Text | ArtifactType::Json => Hash::of(&content),
        };
        Some((name, hash))
    };
    upstream.into_iter().map(one).collect()
}
