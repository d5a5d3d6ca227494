//! The team of a session: members from the agents file, each with its own model, tools and sandbox.
//!
//! This turns what is written down (`agents`) into what the runtime takes: every member resolved against the
//! catalogue once. It starts nothing.

mod reload;

use std::collections::BTreeMap;
use std::sync::Arc;

use max_team_core::agent::{Constraints, Definition, Member, Model, Settings};
use max_team_core::mcp::McpServer;
use max_team_core::plan::event::ApprovalMode;
use max_team_runtime::skills::Catalogue;
use max_team_runtime::{AgentSpec, NEED_CLARIFY, Team};

use crate::agents;
use crate::config::Override;
use crate::exit::{CliError, Exit};
use crate::i18n::Lang;
use crate::models::ChosenModel;
use crate::selection::Selection;
use crate::setup::{self, AppEnv};
use crate::skills;

use reload::TeamSource;
pub use reload::{DefinitionSources, Reload};

/// What is said about definitions before a session; `agents list` says everything.
const TOLD_MAX: usize = 8;
/// Tasks that run at once, unless a flag or setting says otherwise.
pub const PARALLEL_DEFAULT: u32 = 8;

/// Who the user talks to: one agent with tools, an agent that runs one skill, or a lead with a team.
#[derive(Debug)]
pub enum LeadKind {
    Alone(agents::Agent),
    Skill(Definition),
    Team(LeadWithTeam),
}

impl LeadKind {
    /// As the flags say.
    pub fn read(wanted: &Selection, place: &AppEnv) -> Result<Self, CliError> {
        if let Some(name) = &wanted.skill {
            let config = place.settings(wanted.config.as_deref(), Vec::new())?;
            let root = setup::project_root(place, &config)?;
            let (name, contract) = skills::agreed(&Catalogue::read(&skills::places(place), &root), name)?;
            return Ok(Self::Skill(skills::hand(&name, &contract)));
        }
        if wanted.solo || wanted.agent.is_some() {
            return agents::choose(wanted, place).map(Self::Alone);
        }
        let (mut led, warnings) = read(wanted.agents.as_deref(), place)?;
        led.crew.name_model(wanted.model_is_named);
        warnings.iter().take(TOLD_MAX).for_each(|warning| place.tell(warning));
        if let Some(more) = warnings.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
            place.tell(&place.speaks().more_about_agents(more));
        }
        Ok(Self::Team(led))
    }

    /// Settings that flags name, behind the model that the lead's definition names: flags win.
    pub fn overrides(&self, flags: Vec<Override>) -> Vec<Override> {
        let key = "llm.default_model".to_owned();
        let model = self.model().map(|value| Override { key, value, name: "--agents".to_owned() });
        model.into_iter().chain(flags).collect()
    }

    /// The MCP servers that single agents bring along, with the agents' names.
    pub fn own_servers(&self) -> Vec<(String, Vec<McpServer>)> {
        let owned = |member: Member| (member.definition.name, member.mcp_servers);
        let mut all: Vec<(String, Vec<McpServer>)> = match self {
            Self::Alone(agent) => {
                let own = (agent.definition.name.clone(), agent.mcp_servers.clone());
                std::iter::once(own).chain(agent.crew.experts().into_iter().map(owned)).collect()
            }
            Self::Skill(_) => Vec::new(),
            Self::Team(led) => led.members.iter().cloned().chain(led.crew.experts()).map(owned).collect(),
        };
        all.retain(|(_, servers)| !servers.is_empty());
        all
    }

    fn model(&self) -> Option<String> {
        match self {
            Self::Alone(agent) => agent.model.clone(),
            Self::Skill(_) => None,
            Self::Team(led) => led.model.clone(),
        }
    }

    /// What the session is opened with.
    pub fn seat(self, chosen: &ChosenModel, settings: &Settings, ways: TeamOptions) -> Result<SessionLead, CliError> {
        match self {
            Self::Alone(agent) => {
                let mut own = narrowed(settings, &agent.definition);
                (own.structured, own.budget_nano) = (settings.structured, settings.budget_nano);
                wish(&mut own, agent.wish.as_deref(), chosen);
                let AgentSpec { definition, settings: own } = seated(agent.definition, own, &agent.constraints);
                // It has no members, only the experts that it may call.
                let crew = agent.crew.teammates(chosen, settings);
                let team = ways.team(Vec::new(), crew, BTreeMap::new(), chosen);
                let definition = Arc::unwrap_or_clone(definition);
                Ok(SessionLead { definition, settings: own, team: Some(team), crew: Some(agent.crew) })
            }
            Self::Skill(definition) => {
                let settings = Settings { structured: true, ..settings.clone() };
                Ok(SessionLead { definition, settings, team: None, crew: None })
            }
            Self::Team(mut led) => {
                led.definition = agents::leading(led.definition, &led.members, ways.coordinator);
                let team = resolve(&led, chosen, settings, ways)?;
                let teammates = team.experts.iter().chain(&team.members);
                let settings = settings.clone().limited_as_lead(&vouching(led.constraints, teammates));
                let team = Some(team);
                Ok(SessionLead { settings, definition: led.definition, team, crew: Some(led.crew) })
            }
        }
    }
}

/// The agent that leads a session, with its settings and team.
#[derive(Debug)]
pub struct SessionLead {
    pub definition: Definition,
    pub settings: Settings,
    pub team: Option<Team>,
    /// The files that define the agents it can call, to read them again; `None` for an agent that runs a skill, which
    /// calls no others.
    pub crew: Option<DefinitionSources>,
}

/// How the team works, as far as flags and settings say.
#[derive(Debug, Clone, Copy)]
pub struct TeamOptions {
    pub approve: ApprovalMode,
    pub max_parallel: u32,
    /// How deep calls go.
    pub call_depth: u32,
    /// Whether the lead only coordinates.
    pub coordinator: bool,
}

impl TeamOptions {
    fn team(
        self,
        members: Vec<AgentSpec>,
        experts: Vec<AgentSpec>,
        models: BTreeMap<String, Model>,
        chosen: &ChosenModel,
    ) -> Team {
        let Self { approve, max_parallel, call_depth, coordinator } = self;
        let wished = chosen.wishes();
        Team { members, experts, approve, max_parallel, models, wished, call_depth, coordinator }
    }
}

/// A lead with its team.
#[derive(Debug)]
pub struct LeadWithTeam {
    pub definition: Definition,
    pub model: Option<String>,
    pub constraints: Constraints,
    members: Vec<Member>,
    crew: DefinitionSources,
    /// Where each member's model is written down.
    models: BTreeMap<String, String>,
}

/// Reads who is on the team.
pub fn read(file: Option<&std::path::Path>, place: &AppEnv) -> Result<(LeadWithTeam, Vec<String>), CliError> {
    let agents::Team { lead, members, mut warnings, models, roster, merge, lead_at, .. } = agents::team(file, place)?;
    let Member { definition, model, constraints, .. } = lead.clone();
    // First, so that no number of other warnings hides it.
    warnings.splice(..0, lead_at.map(|at| place.speaks().project_leads(&at, &definition.name)));
    let taken = std::iter::once(&definition).chain(members.iter().map(|member| &member.definition));
    let crew = DefinitionSources::new(roster, merge, taken.map(|definition| definition.name.clone()).collect());
    let (path, place) = (file.map(std::path::Path::to_path_buf), place.clone());
    let crew = crew.of(TeamSource { path, place, model_is_named: false, lead, members: members.clone() });
    Ok((LeadWithTeam { definition, model, constraints, members, crew, models }, warnings))
}

/// Resolves the members under the session's settings, which no member can exceed.
pub fn resolve(
    led: &LeadWithTeam,
    chosen: &ChosenModel,
    settings: &Settings,
    ways: TeamOptions,
) -> Result<Team, CliError> {
    let members = colleagues(&led.members, &led.models, chosen, settings)?;
    let experts = led.crew.teammates(chosen, settings);
    let known = chosen.names().into_iter().filter_map(|name| Some((name.clone(), chosen.resolve(&name).ok()?)));
    Ok(ways.team(members, experts, known.collect(), chosen))
}

/// Resolves members; `places` says where each one's model is written down.
fn colleagues(
    members: &[Member],
    places: &BTreeMap<String, String>,
    chosen: &ChosenModel,
    settings: &Settings,
) -> Result<Vec<AgentSpec>, CliError> {
    let mut teammates = Vec::new();
    for member in members {
        let mut own = narrowed(settings, &member.definition);
        let who = &member.definition.name;
        if let Some(name) = &member.model {
            let bad = |fault: &dyn Fn(Lang) -> String| {
                CliError::said(Exit::Config, |lang| {
                    let words = lang.model_of_member(who, fault(lang));
                    places.get(who).map_or_else(|| words.clone(), |place| lang.headed(place, &words))
                })
            };
            own.model = chosen.resolve(name).map_err(|error| bad(&|lang| error.words(lang).to_owned()))?;
            if own.model.price.is_none() && settings.budget_nano.is_some() {
                return Err(bad(&|lang| lang.member_needs_price(name)));
            }
        }
        allot(&mut own, &member.definition);
        let mut teammate = seated(member.definition.clone(), own, &member.constraints);
        if !teammate.definition.tools.iter().any(|tool| tool == NEED_CLARIFY) {
            Arc::make_mut(&mut teammate.definition).tools.push(NEED_CLARIFY.to_owned());
        }
        let given = agents::given(&teammate.definition);
        let own = Arc::make_mut(&mut teammate.definition);
        own.hidden_tools.extend(given.iter().cloned());
        own.tools.extend(given);
        teammates.push(teammate);
    }
    Ok(teammates)
}

/// The model that a definition wishes for, where this session has it; else the session's own. The definition was written
/// for any session, so that is no failure.
fn wish(own: &mut Settings, name: Option<&str>, chosen: &ChosenModel) {
    let model = name.and_then(|name| chosen.wished(name));
    if let Some(model) = model.filter(|model| own.budget_nano.is_none() || model.price.is_some()) {
        own.fallback = Some(std::mem::replace(&mut own.model, model));
    }
}

/// The session's settings as one agent works under them: never freer, never longer. Money comes out of the session's
/// purse; what its definition allots to it is a bound within that.
fn narrowed(settings: &Settings, definition: &Definition) -> Settings {
    let mut own = settings.clone();
    own.structured = false;
    (own.budget_nano, own.budget_tokens) = (None, None);
    own.rounds_max = definition.work.rounds_max.map_or(own.rounds_max, |rounds| rounds.min(own.rounds_max));
    own.mode = definition.mode_in(own.mode);
    if own.owns.is_none() {
        own.owns.clone_from(&definition.work.owns);
    }
    own
}

/// What the definition allots to one call or task. Money can only be counted where prices are known.
fn allot(own: &mut Settings, definition: &Definition) {
    own.budget_nano = definition.work.budget.nano.filter(|_| own.model.price.is_some());
    own.budget_tokens = definition.work.budget.tokens;
}

/// The lead's constraints with the hosts of all agents that it can call: an agent gets at most its caller's hosts, and
/// the lead itself has no tool that uses a host. Each agent it calls is still limited to its own hosts.
fn vouching<'a>(mut constraints: Constraints, teammates: impl Iterator<Item = &'a AgentSpec>) -> Constraints {
    for host in teammates.flat_map(|teammate| &teammate.settings.constraints.allowed_hosts) {
        if !constraints.allowed_hosts.contains(host) {
            constraints.allowed_hosts.push(host.clone());
        }
    }
    constraints
}

/// The same with its model's effort and its constraints.
fn seated(definition: Definition, mut own: Settings, constraints: &Constraints) -> AgentSpec {
    if let Some(effort) = definition.work.effort {
        // Thoughts must leave room for an answer.
        own.model.thinking_tokens = effort.tokens().min(own.model.max_tokens / 2);
    }
    let times = [constraints.timeout_ms, definition.work.budget.wall_ms];
    let constraints = Constraints { timeout_ms: times.into_iter().flatten().min(), ..constraints.clone() };
    AgentSpec { definition: definition.into(), settings: own.limited_by(&constraints) }
}
