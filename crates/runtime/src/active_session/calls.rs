//! Which agents can be called in a session, and by which settings called agents are bound.

use std::sync::Arc;

use max_team_core::agent::{Definition, Model, Settings, TeamRole};
use max_team_core::delegation::offer::hidden_from;
use max_team_core::delegation::tool_filter::{
    CHECK_INBOX, Caller, EXIT_PLAN_MODE, SEND_MESSAGE, TEAMMATES, allowed_tools, assigns_work, is_own, may_call,
    sources,
};
use max_team_core::id::PlanId;
use max_team_core::limits::CALL_DEPTH_MAX;
use max_team_core::policy::Permissions;
use max_team_core::suggest::candidates;
use max_team_core::task_list;

use super::{ActiveSession, under};
use crate::error::RuntimeError;
use crate::handle::{AgentSpec, Team};
use crate::shared::lock;
use crate::team_tools::Callee;
use crate::{rows, session, worktree};

impl ActiveSession {
    /// Replaces the members and experts, in the session's present mode. A member that was removed still owns its tasks
    /// of plans.
    pub(crate) fn set_crew(&self, mut members: Vec<AgentSpec>, mut experts: Vec<AgentSpec>) -> Option<Arc<Team>> {
        let mode = lock(&self.crew).bonds.get(&session::agent_stream(self.lead)).map(|settings| settings.mode);
        for teammate in members.iter_mut().chain(&mut experts) {
            teammate.settings.mode = mode.map_or(teammate.settings.mode, |mode| teammate.definition.mode_in(mode));
        }
        if let Some((bound, mode)) = self.bound.as_ref().zip(mode) {
            bound.bind_teammates(members.iter_mut().chain(&mut experts), mode);
        }
        let mut crew = lock(&self.crew);
        if let Some(known) = crew.team.clone() {
            crew.former
                .extend(known.members.iter().cloned().map(|teammate| (teammate.definition.name.clone(), teammate)));
            crew.team = Some(Arc::new(Team { members, experts, ..(*known).clone() }));
        }
        self.rules_changed();
        crew.team.clone()
    }

    /// Puts the previous team back, if the new one could not be used.
    pub(crate) fn restore(&self, team: Option<Arc<Team>>) {
        lock(&self.crew).team = team;
        self.rules_changed();
    }

    /// The owner of a task: a member, or an agent that was one when the task was planned.
    pub(crate) fn owner(&self, name: &str) -> Option<AgentSpec> {
        let known = self.agent_spec(name).or_else(|| lock(&self.crew).former.get(name).cloned());
        known.or_else(|| self.remembered(name))
    }

    /// A member that was removed before this process started, as it was when it last got a task here.
    fn remembered(&self, name: &str) -> Option<AgentSpec> {
        let table = rows::agents_of(&self.session.to_string());
        let all = rows::rows::<rows::AgentRow>(&self.shared.journal, &table).ok()?;
        let had_a_task = |row: &rows::AgentRow| row.assignment.as_ref().is_some_and(|given| given.plan.is_some());
        let mut those = all.into_iter().map(|(_, row)| row).filter(|row| row.name == name && had_a_task(row));
        let (turn, _) = self.shared.fold_agent(those.next_back()?.agent).ok()?;
        let (_, _, definition) = turn.identity()?;
        let settings = Settings::clone(turn.settings()?);
        let session = lock(&self.crew).bonds.get(&session::agent_stream(self.lead)).map(|settings| settings.mode);
        let mode = definition.mode_in(session.unwrap_or_default());
        // Without the rights for that task.
        let permissions = Permissions { copy: String::new(), ..settings.permissions };
        let settings = Settings { approved: false, corrects: false, mode, permissions, ..settings };
        let teammate = AgentSpec { definition: definition.clone(), settings };
        lock(&self.crew).former.insert(name.to_owned(), teammate.clone());
        Some(teammate)
    }

    /// The tools and the sources of tools that an agent at work has and its definition no longer gives it.
    pub(crate) fn lost(&self, own: &Definition, caller: Option<&str>) -> [Vec<String>; 2] {
        let Some(team) = self.team() else { return Default::default() };
        let now = match caller {
            Some(_) => callee(&team, &own.name),
            None => team.members.iter().find(|teammate| teammate.definition.name == own.name),
        };
        let Some(AgentSpec { definition: now, .. }) = now else { return Default::default() };
        let given = [CHECK_INBOX, SEND_MESSAGE, EXIT_PLAN_MODE];
        let is_teammate = own.tools.iter().any(|tool| tool == CHECK_INBOX);
        let is_given = |tool: &&String| is_teammate && given.iter().chain(&task_list::TOOLS).any(|given| given == tool);
        let tools = own.tools.iter().filter(|tool| !is_own(now, tool) && !is_given(tool));
        let sources = own.sources.iter().filter(|source| !now.sources.contains(source));
        [tools.cloned().collect(), sources.cloned().collect()]
    }

    /// The agents that the caller's tools tell the model about, built-in types first.
    pub(crate) fn callees(&self, caller: &Definition) -> Vec<Callee> {
        let Some(team) = self.team() else { return Vec::new() };
        let callee = |definition: &Definition| {
            let about = if definition.description.is_empty() { &definition.role } else { &definition.description };
            Callee { name: definition.name.clone(), about: about.clone() }
        };
        // A lead that only asks experts gets no list of members, but may call a member that the user names.
        let tells_members = assigns_work(&caller.tools) || caller.may_call.is_some();
        let is_told = |own: &&Definition| own.place != TeamRole::Member || tells_members;
        let mut callees: Vec<&Definition> = callable(&team, caller).filter(is_told).collect();
        // The list told to the model is bounded, and a project's files must not push the built-in types off it.
        callees.sort_by_key(|definition| !definition.builtin);
        callees.into_iter().map(callee).collect()
    }

    /// The agent of that name, if the caller may call it. Unlike the list told to the model this has no bound.
    pub(crate) fn callable(&self, caller: &Definition, name: &str) -> Result<AgentSpec, String> {
        let team = self.team();
        let found = team.iter().flat_map(|team| callable(team, caller)).find(|definition| definition.name == name);
        let teammate = found.and_then(|definition| self.callee(&definition.name));
        teammate.ok_or_else(|| {
            let there = team.iter().flat_map(|team| callable(team, caller)).map(|definition| definition.name.as_str());
            format!("there is no agent `{name}` that you may call{}", candidates(name, there))
        })
    }

    /// An agent that can be called, by name.
    pub(crate) fn callee(&self, name: &str) -> Option<AgentSpec> {
        callee(&*self.team()?, name).cloned()
    }

    /// The model that a skill asks for, if this session has it.
    pub(crate) fn wished(&self, name: &str) -> Option<Model> {
        self.team()?.wished.get(name).cloned()
    }

    /// The greatest call depth in this session.
    pub(crate) fn call_depth(&self) -> u32 {
        self.team().map_or(0, |team| team.call_depth.min(CALL_DEPTH_MAX))
    }

    /// An agent with its tools for this caller. A member that its lead asks (`caller.own` is `None`) always has the
    /// tools of the team's file.
    pub(crate) fn called(&self, teammate: AgentSpec, caller: Caller<'_>) -> AgentSpec {
        let own = &teammate.definition;
        if caller.own.is_none() && self.agent_spec(&own.name).is_some() {
            let tools = own.tools.iter().filter(|tool| is_own(own, tool)).cloned().collect();
            let definition = Definition { tools, ..Arc::unwrap_or_clone(teammate.definition) };
            return AgentSpec { definition: definition.into(), ..teammate };
        }
        let there = self.shared.tools.specs().map(|spec| spec.name.as_str());
        let tools = allowed_tools(there, own, caller).tools;
        let hidden_tools = if own.inherits_tools { hidden_from(&tools, &own.prompt) } else { own.hidden_tools.clone() };
        let (sources, disallowed_tools) = sources(own, caller);
        let own = Arc::unwrap_or_clone(teammate.definition);
        let definition = Definition { tools, hidden_tools, sources, disallowed_tools, inherits_tools: false, ..own };
        AgentSpec { definition: definition.into(), ..teammate }
    }

    /// The agent as a teammate: it gets messages and uses the shared list. Requests describe the list's tools to
    /// teammates that take tasks from it.
    pub(crate) fn as_teammate(own: Definition, plans: bool, claims: bool) -> Definition {
        let plan = plans.then_some(EXIT_PLAN_MODE);
        let given = || TEAMMATES.into_iter().chain(task_list::TOOLS).chain(plan);
        let is_new = |tool: &&str| !own.tools.iter().any(|has| has == tool);
        let is_hidden = |tool: &&str| *tool == CHECK_INBOX || (task_list::TOOLS.contains(tool) && !claims);
        let hidden: Vec<String> = given().filter(is_new).filter(is_hidden).map(str::to_owned).collect();
        let mut tools: Vec<String> = own.tools.iter().cloned().chain(given().map(str::to_owned)).collect();
        tools.sort_unstable();
        tools.dedup();
        let mut hidden_tools: Vec<String> = own.hidden_tools.iter().cloned().chain(hidden).collect();
        hidden_tools.retain(|tool| !claims || !task_list::TOOLS.contains(&tool.as_str()));
        hidden_tools.sort_unstable();
        hidden_tools.dedup();
        Definition { tools, hidden_tools, ..own }
    }

    /// Records the settings of an agent that may call others: they bound the agents that it calls.
    pub(crate) fn bind(&self, address: &str, settings: &Settings) {
        let bonds = &mut lock(&self.crew).bonds;
        if bonds.get(address).is_none_or(|known| **known != *settings) {
            bonds.insert(address.to_owned(), Arc::new(settings.clone()));
            self.rules_changed();
        }
    }

    /// Like `bind`, only for an agent that has called others before.
    pub(crate) fn rebind(&self, address: &str, settings: &Settings) {
        if lock(&self.crew).bonds.contains_key(address) {
            self.bind(address, settings);
        }
    }

    /// The present settings of a caller. If its loop has not started yet, they are read from the journal.
    fn bond(&self, address: &str) -> Result<Option<Arc<Settings>>, RuntimeError> {
        if let Some(known) = lock(&self.crew).bonds.get(address) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(agent) = address.strip_prefix("agent/").and_then(|id| id.parse().ok()) else { return Ok(None) };
        let (turn, _) = self.shared.fold_agent(agent)?;
        if let Some(settings) = turn.settings() {
            self.bind(address, settings);
        }
        Ok(lock(&self.crew).bonds.get(address).cloned())
    }

    /// The present settings of a member or called agent, if they differ from the known ones. The approved plan's mode
    /// is limited by `approve`.
    pub(crate) fn settings_now(
        &self,
        own: &Definition,
        known: &Settings,
        caller: Option<&str>,
    ) -> Result<Option<Settings>, RuntimeError> {
        let Some(team) = self.team() else { return Ok(None) };
        let owner = if caller.is_none() { self.owner(&own.name) } else { None };
        let mut next = known.clone();
        if let Some(AgentSpec { settings: now, .. }) = caller.and_then(|_| callee(&team, &own.name)).or(owner.as_ref())
        {
            next.permissions = worktree::still(&known.permissions, &now.permissions);
            // The constraints that it started with stay, and stricter new ones are added.
            if now.constraints != known.constraints {
                next.constraints = known.constraints.meet(&now.constraints);
            }
            next.rounds_max = known.rounds_max.min(now.rounds_max);
            let mode = own.mode_in(now.mode);
            next.mode = if known.approved && caller.is_none() { under(team.approve, mode) } else { mode };
        }
        if let Some(caller) = caller.map(|caller| self.bond(caller)).transpose()?.flatten() {
            next.within.clear();
            next = next.bounded_by(&caller);
            if known.corrects {
                (next.corrects, next.checks) = (true, known.checks.clone());
            }
        }
        Ok((next != *known).then_some(next))
    }

    /// The plan that an agent works for, directly or through calls.
    pub(crate) fn plan_behind(&self, address: &str) -> Option<PlanId> {
        let mut address = address.to_owned();
        for _ in 0..=CALL_DEPTH_MAX {
            let row = self.row_of(address.strip_prefix("agent/")?.parse().ok()?)?;
            let assignment = row.assignment?;
            if assignment.plan.is_some() {
                return assignment.plan;
            }
            address.clone_from(&assignment.reply_to);
        }
        None
    }
}

fn callee<'t>(team: &'t Team, name: &str) -> Option<&'t AgentSpec> {
    team.experts.iter().chain(&team.members).find(|teammate| teammate.definition.name == name)
}

/// The definitions that the caller may call.
pub(crate) fn callable<'t>(team: &'t Team, caller: &'t Definition) -> impl Iterator<Item = &'t Definition> {
    let there = team.experts.iter().chain(&team.members).filter(|_| team.call_depth > 0);
    there.map(|teammate| &*teammate.definition).filter(|definition| may_call(caller, definition))
}
