//! What a plan installs: said when it is proposed, so that its approval opens the registries to the tasks that install.

use std::path::Path;

use max_team_core::packages::{Installs, PackageManager};
use max_team_core::plan::{Draft, DraftFlaw, FlawReason, TaskDraft};
use max_team_core::policy::{Action, Verdict, judge};
use max_team_tools::{command, project};

use super::leave;
use crate::handle::{AgentSpec, Team};

/// What the tasks of a draft install from registries that no rule has opened or closed; `None`: nothing. Blocking.
pub(super) fn installs(team: &Team, root: &Path, draft: &Draft) -> Option<Installs> {
    let mut all = Installs { tasks: Vec::new(), managers: Vec::new(), registries: Vec::new() };
    for task in &draft.tasks {
        let owner = team.members.iter().find(|owner| owner.definition.name == task.agent);
        let managers = managers(task);
        let named = managers.iter().flat_map(|manager| project::registries(*manager, root));
        let undecided: Vec<_> =
            named.filter(|registry| owner.is_none_or(|owner| is_undecided(owner, &registry.host))).collect();
        if undecided.is_empty() {
            continue;
        }
        all.tasks.push(task.id.clone());
        all.managers.extend(managers);
        all.registries.extend(undecided);
    }
    all.managers.sort_unstable();
    all.managers.dedup();
    all.registries.sort_unstable();
    all.registries.dedup();
    (!all.tasks.is_empty()).then_some(all)
}

/// The same as flaws, for a run in which no person can approve it.
pub(super) fn flaws(installs: &Installs, draft: &Draft) -> Vec<DraftFlaw> {
    let hosts: Vec<String> = installs.registries.iter().map(|registry| registry.host.clone()).collect();
    let own = draft.tasks.iter().filter(|task| installs.tasks.contains(&task.id));
    own.map(|task| DraftFlaw::of(task, FlawReason::AskingInstalls(hosts.clone()))).collect()
}

/// The package managers that a task names, and those of its checks.
fn managers(task: &TaskDraft) -> Vec<PackageManager> {
    let of_check = |line: &String| PackageManager::installing(&command::split(line).ok()?);
    let mut managers: Vec<_> = task.installs.iter().copied().chain(task.verify.iter().filter_map(of_check)).collect();
    managers.sort_unstable();
    managers.dedup();
    managers
}

/// Whether only a person's approval opens a host to the commands of an agent. A rule that denies it stays.
fn is_undecided(owner: &AgentSpec, host: &str) -> bool {
    let judged = judge(&owner.settings.rules(), leave::TOOL, &Action::connection("", host, None, String::new()));
    judged.verdict != Verdict::Allow && !(judged.verdict == Verdict::Deny && judged.origin.is_some())
}
