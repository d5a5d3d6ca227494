//! The folder that the server works in: its settings, its team, and names to complete.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use max_team_core::agent::{Constraints, Definition, Settings};
use max_team_core::policy::{Mode, Rules};
use max_team_runtime::skills::Catalogue;
use max_team_runtime::{OpenOptions, query};
use max_team_workspace::i18n::Lang;
use max_team_workspace::open::Workspace;
use max_team_workspace::permissions::PermissionQuestion;
use max_team_workspace::skills;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::Body;
use super::sessions::SessionSource;

/// Paths that are offered for completion.
const PATHS_MAX: usize = 5_000;

impl Web {
    /// The lead and the team of a new session.
    pub(crate) fn new_session(&self) -> Result<OpenOptions, ApiError> {
        Ok(match self.sessions.source() {
            SessionSource::Recorded { open, .. } => (**open).clone(),
            SessionSource::Folder { place, selection, .. } => Workspace::read(place, selection, Vec::new())?.open,
        })
    }
}

/// The agents of a new session, each with the settings that it works under.
fn members(open: &OpenOptions) -> Vec<(&Definition, &Settings, &'static str)> {
    let mut all = vec![(&open.definition, &open.settings, "lead")];
    if let Some(team) = &open.team {
        let kinds = [(&team.members, "member"), (&team.experts, "expert")];
        all.extend(
            kinds
                .into_iter()
                .flat_map(|(specs, kind)| specs.iter().map(move |spec| (&*spec.definition, &spec.settings, kind))),
        );
    }
    all
}

pub(crate) async fn team(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Json<Value>, ApiError> {
    let open = web.new_session()?;
    let shown: Vec<Value> = members(&open)
        .into_iter()
        .map(|(definition, settings, kind)| {
            json!({
                "name": definition.name, "role": definition.role, "description": definition.description,
                "model": settings.model.name, "mode": settings.mode, "tools": definition.tools, "lead": kind == "lead",
                "expert": kind == "expert",
            })
        })
        .collect();
    Ok(Json(json!({ "members": shown })))
}

pub(crate) async fn complete(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Json<Value>, ApiError> {
    let open = web.new_session()?;
    let agents: Vec<Value> = members(&open)
        .into_iter()
        .map(|(definition, ..)| {
            json!({ "name": definition.name, "role": definition.role, "description": definition.description })
        })
        .collect();
    let root = web.sessions.source().root().to_owned();
    let skills: Vec<Value> = match web.sessions.source() {
        SessionSource::Recorded { .. } => Vec::new(),
        SessionSource::Folder { place, .. } => Catalogue::read(&skills::places(place), &root)
            .all()
            .map(|skill| json!({ "name": skill.name, "description": skill.description }))
            .collect(),
    };
    let mut paths = web.team.ask(query::Paths { root, settings: open.settings, team: open.team }).await?;
    paths.truncate(PATHS_MAX);
    Ok(Json(json!({ "paths": paths, "skills": skills, "agents": agents })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallToJudge {
    /// Without it, a web address is fetched and anything else is a command line.
    tool: Option<String>,
    input: String,
    agent: Option<String>,
    mode: Option<Mode>,
}

/// Judges a call by the rules of a new session: those of one of its agents, or without the constraints of any.
pub(crate) async fn why(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Body(call): Body<CallToJudge>,
) -> Result<Json<Value>, ApiError> {
    let open = web.new_session()?;
    let found = match &call.agent {
        None => None,
        Some(name) => {
            let mut members = members(&open).into_iter();
            let found = members.find(|(definition, ..)| definition.name == *name);
            Some(found.ok_or_else(|| ApiError::not_found(format!("there is no agent `{name}`")))?)
        }
    };
    let settings = match found {
        Some((_, settings, _)) => settings.clone(),
        None => Settings { constraints: Constraints::default(), ..open.settings.clone() },
    };
    let mode = call.mode.unwrap_or(settings.mode);
    let search = web.sessions.source().search_service()?;
    let question = PermissionQuestion { tool: call.tool.as_deref(), input: &call.input, search: &search };
    let rules = Rules { mode, ..settings.rules() };
    let explained = question.explain(web.sessions.source().root(), &rules)?;
    let is_offered = found.is_none_or(|(definition, ..)| definition.tools.contains(&explained.tool));
    let mut told = explained.json();
    if let Value::Object(told) = &mut told {
        // The rule is a sentence of the records; this is the same in Chinese.
        told.insert("rule_zh".to_owned(), json!(Lang::Zh.basis(&explained.judged.basis, &explained.judged.rule)));
        told.insert("tool".to_owned(), json!(explained.tool));
        told.insert("target".to_owned(), json!(explained.action.target));
        told.insert("mode".to_owned(), json!(mode));
        told.insert("offered".to_owned(), json!(is_offered));
    }
    Ok(Json(told))
}

pub(crate) async fn settings(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Json<Value>, ApiError> {
    let SessionSource::Folder { place, selection, .. } = web.sessions.source() else {
        return Ok(Json(json!({ "settings": [], "files": [] })));
    };
    let config = place.settings(selection.config.as_deref(), Vec::new())?;
    let settings: Vec<Value> = config
        .list()
        .into_iter()
        .map(|row| json!({ "key": row.key, "value": row.value, "default": row.default, "source": row.source, "about": row.about }))
        .collect();
    Ok(Json(json!({ "settings": settings, "files": config.files() })))
}
