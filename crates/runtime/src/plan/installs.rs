//! What the tasks of a plan install: said when it is proposed, so that its approval opens the registries to them.

use std::path::Path;

use max_team_core::packages::{Installs, PackageManager};
use max_team_core::plan::{Draft, TaskDraft};
use max_team_core::policy::{Action, Verdict, judge};
use max_team_tools::{command, project};

use super::leave;
use crate::handle::{AgentSpec, Team};

/// The tasks of a draft that install from registries that no rule has opened or closed. Blocking.
pub(super) fn installs(team: &Team, root: &Path, draft: &Draft) -> Vec<Installs> {
    let of_task = |task: &TaskDraft| {
        let owner = team.members.iter().find(|owner| owner.definition.name == task.agent)?;
        let managers = managers(task);
        let named = managers.iter().flat_map(|manager| project::registries(*manager, root));
        let mut registries: Vec<_> = named.filter(|registry| is_undecided(owner, &registry.host)).collect();
        registries.sort_unstable();
        registries.dedup();
        (!registries.is_empty()).then(|| Installs { task: task.id.clone(), managers, registries })
    };
    draft.tasks.iter().filter_map(of_task).collect()
}

/// The package managers that a task names, and those of its checks.
fn managers(task: &TaskDraft) -> Vec<PackageManager> {
    let of_check = |line: &String| PackageManager::installing(&command::split(line).ok()?);
    let mut managers: Vec<_> = task.installs.iter().copied().chain(task.verify.iter().filter_map(of_check)).collect();
    managers.sort_unstable();
    managers.dedup();
    managers
}

/// Whether only a person's approval opens a host to the commands of an agent. A rule that denies it, or that asks each time,
/// stays.
fn is_undecided(owner: &AgentSpec, host: &str) -> bool {
    let judged = judge(&owner.settings.rules(), leave::TOOL, &Action::connection("", host, None, String::new()));
    judged.verdict != Verdict::Allow && judged.origin.is_none()
}
