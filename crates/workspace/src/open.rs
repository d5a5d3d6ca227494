//! From a folder and a selection to an open session, in the same steps for every frontend.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::event::LaunchFlags;
use max_team_mcp::Servers;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::{Definitions, OpenOptions, TeamHandle, Which};

use crate::agents;
use crate::config::{Config, Override};
use crate::exit::CliError;
use crate::mcp::{self, FoundServers};
use crate::models::{self, ChosenModel};
use crate::selection::Selection;
use crate::setup::{self, AppEnv, RuntimeParts};
use crate::team::{LeadKind, SessionLead, TeamOptions};

/// Settings, model, rules and team of a folder, read once.
#[derive(Debug)]
pub struct Workspace {
    pub config: Config,
    pub chosen: Arc<ChosenModel>,
    /// The folder that the team works in.
    pub root: PathBuf,
    /// The lead, its team and what they work under.
    pub open: OpenOptions,
    /// The MCP servers that they may use.
    pub servers: Arc<Servers>,
}

impl Workspace {
    /// Reads everything for the project's own folder, although the model's key may be missing
    /// ([`Workspace::require_model`]). `overrides` are settings that flags name.
    pub fn read(place: &AppEnv, selection: &Selection, overrides: Vec<Override>) -> Result<Self, CliError> {
        Self::read_as(place, selection, overrides, LeadKind::read(selection, place)?)
    }

    /// Reads everything else for an agent or team that is already read.
    pub fn read_as(
        place: &AppEnv,
        selection: &Selection,
        overrides: Vec<Override>,
        who: LeadKind,
    ) -> Result<Self, CliError> {
        Self::read_with(place, selection, overrides, who, |root| Ok(root.to_path_buf()), models::choose_or_wait)
    }

    /// Like [`Workspace::read_as`], but needs a model's key. `made` turns the project's folder into the folder to work in (a fork makes a
    /// worktree); the permission rules of that folder count.
    pub fn read_in(
        place: &AppEnv,
        selection: &Selection,
        overrides: Vec<Override>,
        who: LeadKind,
        made: impl FnOnce(&Path) -> Result<PathBuf, CliError>,
    ) -> Result<Self, CliError> {
        Self::read_with(place, selection, overrides, who, made, models::choose)
    }

    /// Fails if there is no model to ask, and says how to set one up.
    pub fn require_model(&self, place: &AppEnv) -> Result<(), CliError> {
        if self.chosen.is_pending() {
            models::choose(&self.config, place).map(|found| self.chosen.set_up(&found))
        } else {
            Ok(())
        }
    }

    fn read_with(
        place: &AppEnv,
        selection: &Selection,
        overrides: Vec<Override>,
        who: LeadKind,
        made: impl FnOnce(&Path) -> Result<PathBuf, CliError>,
        choose: fn(&Config, &AppEnv) -> Result<ChosenModel, CliError>,
    ) -> Result<Self, CliError> {
        let config = place.settings(selection.config.as_deref(), who.overrides(overrides))?;
        config.warnings.iter().for_each(|warning| place.tell(warning));
        let chosen = Arc::new(choose(&config, place)?);
        let root = made(&setup::project_root(place, &config)?)?;
        let settings = setup::settings_for(&chosen, &config, selection.structured)?;
        let settings = setup::permitted(place, &config, &root, selection, settings)?;
        let found = FoundServers::read(place, &config, &root, selection)?;
        found.warnings.iter().for_each(|warning| place.tell(warning));
        if let Some(words) = place.lang(&config).servers_untrusted(&found.untrusted()) {
            place.tell(&words);
        }
        let servers = mcp::servers(place, &config, &root, found.entries(&who.own_servers()));
        let ways = selection.ways(&config);
        let SessionLead { definition, settings, team, crew } = who.seat(&chosen, &settings, ways)?;
        let look = crew.map(|crew| crew.look(Arc::clone(&chosen), settings.clone(), ways, place.lang(&config)));
        let definitions = look.map(|look| Arc::new(look) as Arc<dyn Definitions>);
        let open = OpenOptions { definitions, ..OpenOptions::new(Which::New, definition, settings, team) };
        Ok(Self { config, chosen, root, open, servers })
    }

    /// Starts the runtime in this process on open storage ([`AppEnv::begin`]). `purpose` names the process to others.
    pub fn start(
        &self,
        place: &AppEnv,
        storage: Storage,
        purpose: &str,
        is_chat: bool,
    ) -> Result<TeamHandle, CliError> {
        let remember = setup::remember(place, &self.config, &self.chosen, is_chat)?;
        let also =
            RuntimeParts { remember: Some(remember), sources: Arc::clone(&self.servers) as _, recorded_pages: None };
        setup::runtime(place, &self.config, storage, self.chosen.router.clone(), purpose, also)
    }

    /// The request that opens a session here. Changed definitions are told to one session: read a workspace for each.
    pub fn request(&self, which: Which) -> OpenOptions {
        OpenOptions { which, ..self.open.clone() }
    }
}

impl Selection {
    /// How the team works: as selected, else as the settings say.
    pub fn ways(&self, config: &Config) -> TeamOptions {
        TeamOptions {
            approve: self.approve.unwrap_or_default(),
            max_parallel: self.max_parallel.unwrap_or(crate::team::PARALLEL_DEFAULT),
            call_depth: config.team.call_depth,
            coordinator: self.coordinator || config.team.coordinator,
        }
    }

    /// The part of the selection that a session is opened with again when it is continued.
    pub fn choice(&self, place: &AppEnv) -> LaunchFlags {
        let agents = self.agents.as_ref().map(|given| {
            let file = if agents::is_text(given) { given.clone() } else { place.cwd.join(given) };
            file.to_string_lossy().into_owned()
        });
        LaunchFlags { agents, agent: self.agent.clone(), solo: self.solo, coordinator: self.coordinator }
    }
}
