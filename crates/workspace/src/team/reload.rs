//! The agents of a session, as their files define them now.
//!
//! Definitions are files that people change while they talk. The runtime asks before each message; folders that have not changed
//! cost a look at their stamps. A file that cannot be read is told once, and its last good version counts.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use max_team_core::agent::{Member, Settings};
use max_team_runtime::{AgentSpec, Changes, Definitions, Lead, TeamDefinitions as Staff};

use super::{TeamOptions, allot, colleagues, narrowed, seated, vouching, wish};
use crate::agents::{self, FoundDefinitions, MergedTeam, TeamMerge};
use crate::exit::CliError;
use crate::i18n::Lang;
use crate::models::ChosenModel;
use crate::setup::AppEnv;

/// Where experts are written, and whose names they cannot have.
#[derive(Debug)]
pub struct DefinitionSources {
    roster: FoundDefinitions,
    merge: TeamMerge,
    taken: Vec<String>,
    /// Where the team is written; none for one agent that is talked to alone.
    team: Option<TeamSource>,
}

/// Where a team is written, and what was last read there.
#[derive(Debug)]
pub(super) struct TeamSource {
    /// As `--agents` says.
    pub(super) path: Option<PathBuf>,
    pub(super) place: AppEnv,
    /// The user named the lead's model, so a changed definition does not replace it.
    pub(super) model_is_named: bool,
    pub(super) lead: Member,
    pub(super) members: Vec<Member>,
}

impl DefinitionSources {
    pub fn new(roster: FoundDefinitions, merge: TeamMerge, taken: Vec<String>) -> Self {
        Self { roster, merge, taken, team: None }
    }

    /// The same beside a team.
    pub(super) fn of(self, team: TeamSource) -> Self {
        Self { team: Some(team), ..self }
    }

    /// The model that leads was named by the user.
    pub(super) fn name_model(&mut self, is_named: bool) {
        if let Some(team) = &mut self.team {
            team.model_is_named = is_named;
        }
    }

    /// All experts as their files define them.
    pub fn experts(&self) -> Vec<Member> {
        self.merge.experts(&self.roster, &self.taken)
    }

    /// All experts under the session's settings, which no expert can exceed.
    pub fn teammates(&self, chosen: &ChosenModel, settings: &Settings) -> Vec<AgentSpec> {
        let teammate = |expert: Member| {
            let mut own = narrowed(settings, &expert.definition);
            // A budget can only be kept where prices are known.
            own.budget_nano = settings.budget_nano;
            wish(&mut own, expert.model.as_deref(), chosen);
            allot(&mut own, &expert.definition);
            seated(expert.definition, own, &expert.constraints)
        };
        self.experts().into_iter().map(teammate).collect()
    }

    /// A way to ask again.
    pub fn look(self, chosen: Arc<ChosenModel>, settings: Settings, ways: TeamOptions, lang: Lang) -> Reload {
        let told = self.roster.broken().map(|fault| fault.get(lang).to_owned()).collect();
        let model = self.team.as_ref().and_then(|team| team.lead.model.clone());
        let seen = LastRead {
            crew: self,
            chosen,
            settings,
            ways,
            lang,
            is_new: false,
            has_changed: false,
            lead: None,
            model,
            told,
        };
        Reload(Arc::new(Mutex::new(seen)))
    }
}

/// Asks again who works here. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Reload(Arc<Mutex<LastRead>>);

#[derive(Debug)]
struct LastRead {
    crew: DefinitionSources,
    chosen: Arc<ChosenModel>,
    settings: Settings,
    ways: TeamOptions,
    lang: Lang,
    /// Something was read that no session has taken over yet.
    is_new: bool,
    /// Something was read that differs from what the session was opened with.
    has_changed: bool,
    /// Who leads, as it was last told.
    lead: Option<Lead>,
    /// The name of its model, as it was last told: until another one is written, the user may choose.
    model: Option<String>,
    /// What was wrong when this was last asked.
    told: Vec<String>,
}

impl Definitions for Reload {
    fn changes(&self) -> Changes {
        self.seen().changes()
    }

    fn current(&self) -> Changes {
        self.seen().current()
    }

    fn accepted(&self, crew: &Staff) {
        self.seen().accepted(crew);
    }
}

impl Reload {
    fn seen(&self) -> MutexGuard<'_, LastRead> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastRead {
    fn changes(&mut self) -> Changes {
        let notes = self.refresh();
        if !self.is_new {
            return Changes { crew: None, notes };
        }
        let mut staff = self.everybody();
        if staff.lead == self.lead {
            staff.lead = None;
        }
        Changes { crew: Some(Arc::new(staff)), notes }
    }

    fn current(&mut self) -> Changes {
        let notes = self.refresh();
        Changes { crew: self.has_changed.then(|| Arc::new(self.everybody())), notes }
    }

    fn accepted(&mut self, crew: &Staff) {
        if crew.lead.is_some() {
            self.lead.clone_from(&crew.lead);
        }
        self.model = self.crew.team.as_ref().and_then(|team| team.lead.model.clone());
        self.is_new = false;
    }

    /// Reads what has changed, and says what is wrong that was not before.
    fn refresh(&mut self) -> Vec<String> {
        self.is_new |= self.crew.roster.refresh();
        let lang = self.lang;
        let mut faults: Vec<String> = self.crew.roster.broken().map(|fault| fault.get(lang).to_owned()).collect();
        match self.read() {
            Ok(changed) => self.is_new |= changed,
            Err(stop) => faults.push(stop.words(lang).to_owned()),
        }
        self.has_changed |= self.is_new;
        let fresh = faults.iter().filter(|fault| !self.told.contains(fault));
        let said = fresh.map(|fault| lang.last_good_counts(fault)).collect();
        self.told = faults;
        said
    }

    /// What was read well can be resolved, or it was not taken over.
    fn everybody(&self) -> Staff {
        self.staff().unwrap_or_else(|_| self.alone())
    }

    /// Reads the team's own file again, and takes over what can be used. Says whether it is another one.
    fn read(&mut self) -> Result<bool, CliError> {
        let Some(source) = &self.crew.team else { return Ok(false) };
        let (joined, merge) = agents::again(source.path.as_deref(), &source.place, &self.crew.roster)?;
        let MergedTeam { lead, members, models, .. } = joined;
        if (&lead, &members) == (&source.lead, &source.members) {
            return Ok(false);
        }
        colleagues(&members, &models, &self.chosen, &self.settings)?;
        if let Some(name) = lead.model.as_ref().filter(|_| !source.model_is_named) {
            self.chosen.resolve(name)?;
        }
        let names = std::iter::once(&lead).chain(&members).map(|member| member.definition.name.clone());
        (self.crew.taken, self.crew.merge) = (names.collect(), merge);
        if let Some(source) = &mut self.crew.team {
            (source.lead, source.members) = (lead, members);
        }
        Ok(true)
    }

    /// All agents as they were last read without errors.
    fn staff(&self) -> Result<Staff, CliError> {
        let Some(source) = &self.crew.team else { return Ok(self.alone()) };
        let members = colleagues(&source.members, &Default::default(), &self.chosen, &self.settings)?;
        let experts = self.crew.teammates(&self.chosen, &self.settings);
        let definition = agents::leading(source.lead.definition.clone(), &source.members, self.ways.coordinator);
        let constraints = vouching(source.lead.constraints.clone(), experts.iter().chain(&members));
        let name = source.lead.model.as_ref().filter(|_| !source.model_is_named && source.lead.model != self.model);
        let model = name.map(|name| self.chosen.resolve(name)).transpose()?;
        Ok(Staff { lead: Some(Lead { definition, constraints, model }), members, experts })
    }

    /// Only those who can be called.
    fn alone(&self) -> Staff {
        Staff { lead: None, members: Vec::new(), experts: self.crew.teammates(&self.chosen, &self.settings) }
    }
}
