//! The team of a session: members from the agents file, each with its own model, tools and walls.
//!
//! This turns what is written down (`agents`) into what the runtime takes: every member resolved against the
//! catalogue once. It starts nothing.

use std::collections::BTreeMap;

use max_team_core::plan::event::Approve;
use max_team_core::team::{Constraints, Definition, Member, Settings};
use max_team_core::turn::SUBMIT_PLAN;
use max_team_runtime::{ASK_USER, DISPATCH_TASK, Mate, NEED_CLARIFY, TASK_CREATE, TASK_QUERY, TASK_UPDATE, Team};

use crate::agents;
use crate::args::Talk;
use crate::exit::{Exit, Stop};
use crate::headless;
use crate::models::Chosen;
use crate::setup::Place;

/// The tools of a lead.
const LEAD_TOOLS: [&str; 6] = [SUBMIT_PLAN, TASK_CREATE, TASK_UPDATE, TASK_QUERY, DISPATCH_TASK, ASK_USER];
/// What is said about definitions before a session; `agents list` says everything.
const TOLD_MAX: usize = 8;
/// Tasks that run at once, unless somebody says otherwise.
pub(crate) const PARALLEL_DEFAULT: u32 = 8;

/// Who is talked to: one agent with hands, or a lead with a team.
pub(crate) enum Who {
    Alone(agents::Agent),
    Team(Led),
}

impl Who {
    /// As the flags say.
    pub(crate) fn read(talk: &Talk, place: &Place) -> Result<Self, Stop> {
        if talk.solo || talk.agent.is_some() {
            return agents::choose(talk, place).map(Self::Alone);
        }
        let (led, warnings) = read(talk.team.agents.as_deref(), place)?;
        warnings.iter().take(TOLD_MAX).for_each(|warning| headless::talk(warning));
        if let Some(more) = warnings.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
            headless::talk(&place.speaks().more_about_agents(more));
        }
        Ok(Self::Team(led))
    }

    /// The model that whoever is talked to asks for.
    pub(crate) fn model(&self) -> Option<String> {
        match self {
            Self::Alone(agent) => agent.model.clone(),
            Self::Team(led) => led.model.clone(),
        }
    }

    /// What the session is opened with.
    pub(crate) fn seat(self, chosen: &Chosen, settings: &Settings, ways: Ways) -> Result<Seated, Stop> {
        match self {
            Self::Alone(agent) => {
                let own = narrowed(settings, &agent.definition);
                let mut own = Settings { structured: settings.structured, budget_nano: settings.budget_nano, ..own };
                let wished = agent.wish.as_deref().and_then(|name| chosen.wished(name));
                if let Some(model) = wished.filter(|model| own.budget_nano.is_none() || model.price.is_some()) {
                    own.model = model;
                }
                let Mate { definition, settings } = seated(agent.definition, own, &agent.constraints);
                Ok(Seated { definition, settings, team: None })
            }
            Self::Team(led) => {
                let team = Some(resolve(&led, chosen, settings, ways)?);
                Ok(Seated { settings: settings.clone().under(&led.constraints), definition: led.definition, team })
            }
        }
    }
}

/// Who leads a session, under what, with whom.
pub(crate) struct Seated {
    pub(crate) definition: Definition,
    pub(crate) settings: Settings,
    pub(crate) team: Option<Team>,
}

/// How the team works, as far as flags and settings say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) approve: Approve,
    pub(crate) max_parallel: u32,
}

/// A lead with its team.
pub(crate) struct Led {
    pub(crate) definition: Definition,
    pub(crate) model: Option<String>,
    pub(crate) constraints: Constraints,
    members: Vec<Member>,
    experts: Vec<Member>,
    /// Where each member's model is written down.
    models: BTreeMap<String, String>,
}

/// Reads who is on the team.
pub(crate) fn read(file: Option<&std::path::Path>, place: &Place) -> Result<(Led, Vec<String>), Stop> {
    let agents::Team { lead, members, experts, warnings, models, .. } = agents::team(file, place)?;
    let Member { mut definition, model, constraints, .. } = lead;
    // Whoever wrote the file may not know all of them; none of them can do anything by itself.
    for tool in LEAD_TOOLS {
        if !definition.tools.iter().any(|known| known == tool) {
            definition.tools.push(tool.to_owned());
        }
    }
    definition.prompt = format!("{}\n\n{}", definition.prompt.trim_end(), agents::roster(&members));
    Ok((Led { definition, model, constraints, members, experts, models }, warnings))
}

/// Resolves the members under the session's settings. Nobody gets more than the session has.
pub(crate) fn resolve(led: &Led, chosen: &Chosen, settings: &Settings, ways: Ways) -> Result<Team, Stop> {
    let mut members = Vec::new();
    for member in &led.members {
        let mut own = narrowed(settings, &member.definition);
        if let Some(name) = &member.model {
            let bad = |words: String| {
                let who = &member.definition.name;
                let place = led.models.get(who).map(|place| format!("{place}: ")).unwrap_or_default();
                Stop::new(Exit::Config, format!("{place}the model of member `{who}`: {words}"))
            };
            own.model = chosen.resolve(name).map_err(|error| bad(error.message))?;
            if own.model.price.is_none() && settings.budget_nano.is_some() {
                return Err(bad(format!(
                    "there is no price for `{name}`, so the budget cannot be kept; add a row to `catalog` in your \
                     settings, or leave the budget out"
                )));
            }
        }
        let mut definition = member.definition.clone();
        if !definition.tools.iter().any(|tool| tool == NEED_CLARIFY) {
            definition.tools.push(NEED_CLARIFY.to_owned());
        }
        members.push(seated(definition, own, &member.constraints));
    }
    let experts = led.experts.iter().map(|expert| mate(expert, chosen, settings)).collect();
    let known = chosen.names().into_iter().filter_map(|name| Some((name.clone(), chosen.resolve(&name).ok()?)));
    let models: BTreeMap<_, _> = known.collect();
    Ok(Team { members, experts, approve: ways.approve, max_parallel: ways.max_parallel, models })
}

/// An expert under the session's settings. Its definition was written for any session, so a model that this one does
/// not have is no failure: the session's own answers instead.
pub(crate) fn mate(expert: &Member, chosen: &Chosen, settings: &Settings) -> Mate {
    let mut own = narrowed(settings, &expert.definition);
    if let Some(model) = expert.model.as_deref().and_then(|name| chosen.wished(name))
        && (model.price.is_some() || settings.budget_nano.is_none())
    {
        own.model = model;
    }
    seated(expert.definition.clone(), own, &expert.constraints)
}

/// The session's settings as one agent works under them: never freer, never longer. Money comes out of the session's
/// purse; what its definition allots to it is a bound within that.
fn narrowed(settings: &Settings, definition: &Definition) -> Settings {
    let mut own = settings.clone();
    own.structured = false;
    own.budget_nano = None;
    own.rounds_max = definition.rounds_max.map_or(own.rounds_max, |rounds| rounds.min(own.rounds_max));
    if let Some(mode) = definition.mode.filter(|mode| mode.is_stricter(own.mode)) {
        own.mode = mode;
    }
    own
}

/// The same with its model's effort and its constraints.
fn seated(definition: Definition, mut own: Settings, constraints: &Constraints) -> Mate {
    if let Some(effort) = definition.effort {
        // Thoughts must leave room for an answer.
        own.model.thinking_tokens = effort.tokens().min(own.model.max_tokens / 2);
    }
    Mate { definition, settings: own.under(constraints) }
}
