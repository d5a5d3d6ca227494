//! Runs a task's checks before the task changes anything. A check that already passes then does not show that the task was done.
//!
//! They run while the owners of a wave make their first model calls, each distinct command once, and delay no task: as
//! soon as an owner wants to change something, unfinished checks are cancelled and count as unknown.

use std::collections::HashMap;
use std::sync::Arc;

use max_team_core::agent::Settings;
use max_team_core::event::Event;
use max_team_core::limits::CHECKS_BEFORE_MAX;
use max_team_core::plan::PlanInput;
use max_team_core::plan::event::TaskAssigned;
use max_team_core::policy::Visibility;
use max_team_tools::command::CommandSandbox;
use tokio_util::sync::CancellationToken;

use super::check::Checker;
use super::serve::Beginning;
use super::{PlanEffectDone, PlanLoop};
use crate::agent::owner_hosts;
use crate::error::RuntimeError;

/// A check that runs before some tasks.
struct Probe {
    tasks: Vec<usize>,
    cancel: CancellationToken,
}

/// The checks that run.
#[derive(Default)]
pub(super) struct Checks {
    /// Those of tasks and their attempts, with what stops each of them.
    pub(super) running: HashMap<(usize, u32), CancellationToken>,
    /// Those that run before their tasks have changed anything, by their lines.
    before: HashMap<String, Probe>,
}

impl Checks {
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.before.is_empty()
    }

    /// Stops the checks of a task, or of all.
    pub(super) fn stop(&self, only: Option<usize>) {
        let is_meant = |task: &usize| only.is_none_or(|only| only == *task);
        self.running.iter().filter(|((task, _), _)| is_meant(task)).for_each(|(_, cancel)| cancel.cancel());
    }
}

/// The tools by which an agent changes files.
const CHANGING: [&str; 4] = ["write_file", "edit_file", "run_shell", "run_test"];

impl PlanLoop {
    /// Starts the checks of newly assigned tasks, unless they already run.
    pub(super) fn probe(&mut self, events: &[Event], beginning: &Beginning) {
        for event in events {
            let Event::TaskAssigned(TaskAssigned { task, attempt: 1, .. }) = event else { continue };
            let Some(index) = self.plan.graph().and_then(|graph| graph.index(task)) else { continue };
            if beginning.over.contains(&(task.clone(), 1)) {
                continue;
            }
            let lines = self.plan.draft().and_then(|draft| draft.tasks.get(index)).map(|task| task.verify.clone());
            for line in lines.unwrap_or_default() {
                let is_full = self.checks.before.len() >= CHECKS_BEFORE_MAX;
                match self.checks.before.get_mut(&line) {
                    Some(probe) => probe.tasks.push(index),
                    None if is_full => {}
                    None => self.probe_one(index, line),
                }
            }
        }
    }

    fn probe_one(&mut self, index: usize, line: String) {
        let Some(view) = self.plan.task(index) else { return };
        let (task, owner) = (view.task.clone(), self.checking_owner(view.member, view.task));
        let covered = self.covered(&task);
        let (root, walled) = (self.active.root.clone(), self.active.shared.walled);
        let (cancel, services) = (self.cancel.child_token(), Arc::clone(&self.active.shared.services));
        self.checks.before.insert(line.clone(), Probe { tasks: vec![index], cancel: cancel.clone() });
        self.flights.push(Box::pin(async move {
            let what = line.clone();
            let ran = tokio::task::spawn_blocking(move || {
                let seen = |settings: &Settings| Visibility::from_policy(&settings.constraints, &settings.permissions);
                let sight = Arc::new(owner.as_ref().map(seen).unwrap_or_default());
                let read_only = owner.as_ref().is_some_and(|owner| owner.constraints.read_only);
                let hosts = owner_hosts(owner.as_ref(), &services.private_hosts);
                let on = walled || read_only;
                let isolation = CommandSandbox { on, read_only, sight, hosts, ..CommandSandbox::around(&root) };
                let checker = Checker {
                    root: &root,
                    task: &task,
                    owner: owner.as_ref(),
                    covered: &covered,
                    isolation: &isolation,
                };
                checker.run(&line, &cancel).ok && !cancel.is_cancelled()
            });
            PlanEffectDone::Probed { line: what, passed: ran.await.unwrap_or_default() }
        }));
    }

    /// A check has run before these tasks. That it passed is committed before any of their owners changes something.
    pub(super) async fn probed(&mut self, line: String, passed: bool) -> Result<(), RuntimeError> {
        match self.checks.before.remove(&line) {
            Some(probe) if passed && !probe.cancel.is_cancelled() => {
                self.step(PlanInput::Probed { tasks: probe.tasks, line }).await
            }
            _ => Ok(()),
        }
    }

    /// A file is about to change: a check that still runs would no longer show the state before the task.
    pub(super) fn end_probes(&mut self) {
        self.checks.before.values().for_each(|probe| probe.cancel.cancel());
    }

    /// Whether checks still run that were begun before a task: its own come after them.
    pub(super) fn is_probing(&self, index: usize) -> bool {
        self.checks.before.values().any(|probe| probe.tasks.contains(&index))
    }

    /// Whether checks run before a task.
    pub(super) fn is_probed(&self, index: usize) -> bool {
        self.plan.task(index).is_some_and(|view| view.attempt == 1 && !view.task.verify.is_empty())
    }

    /// The active tasks whose owners may change files that another task's checks read. A task in a worktree is not
    /// disturbed.
    pub(super) fn beside(&self, index: usize) -> Vec<usize> {
        if self.is_apart(index) {
            return Vec::new();
        }
        self.plan
            .active()
            .chain(self.plan.asking())
            .filter(|other| *other != index && self.changes_files(*other))
            .collect()
    }

    /// Whether the owner of a task can change files of the project while it works.
    pub(super) fn changes_files(&self, index: usize) -> bool {
        let Some(view) = self.plan.task(index).filter(|view| view.task.owns.as_deref() != Some(&[])) else {
            return false;
        };
        let Some(teammate) = self.active.owner(view.member) else { return false };
        let has_hands = teammate.definition.inherits_tools
            || teammate.definition.tools.iter().any(|tool| CHANGING.contains(&tool.as_str()));
        has_hands && !teammate.settings.constraints.read_only && !self.is_apart(index)
    }
}
