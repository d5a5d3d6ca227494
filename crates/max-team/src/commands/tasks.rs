//! `tasks`: the list that the agents of a session share, looked at and changed from any terminal.

use std::path::PathBuf;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::suggest::nearest;
use max_team_core::task_list::{ItemMoved, ListRequest, ListTaskStatus, NewTask, StatusChange, TaskUpdate};
use max_team_runtime::{Enrolled, TaskLine, query};
use serde_json::{Value, json};

use super::context::{JournalContext, stop, wait};
use super::table::table;
use crate::args::{self, TaskListScope};
use crate::headless::talk;
use max_team_terminal::text::clean;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::setup::{self, AppEnv};

pub(crate) fn run(place: &AppEnv, command: args::Tasks) -> anyhow::Result<Exit> {
    let config = place.settings(None, Vec::new())?;
    let counter = Counter { root: setup::project_root(place, &config)?, context: JournalContext::open(place)? };
    match command {
        args::Tasks::List { of, json } => counter.list(&of, json)?,
        args::Tasks::Show { id, of, json } => counter.show(&id, &of, json)?,
        args::Tasks::Add { subject, description, of } => {
            counter.write(&of, &ListRequest::Create(NewTask { subject, description, ..NewTask::default() }))?;
            let stopped = counter.context.read(query::StoppedClaimers { session: counter.session(&of)? })?;
            if !stopped.is_empty() {
                talk(&counter.context.lang.nobody_takes(&stopped));
            }
        }
        args::Tasks::Update(update) => {
            let args::Update { id, status, owner, subject, description, blocked_by, blocks, of } = update;
            counter.check_owner(place, &of, owner.as_deref())?;
            let update =
                TaskUpdate { id, status, owner, subject, description, blocked_by, blocks, ..TaskUpdate::default() };
            counter.write(&of, &ListRequest::Update(Box::new(update)))?;
        }
    }
    Ok(Exit::Ok)
}

struct Counter {
    context: JournalContext,
    root: PathBuf,
}

impl Counter {
    fn session(&self, of: &TaskListScope) -> Result<SessionId, CliError> {
        match &of.session {
            Some(id) => setup::session(&self.context.team, id),
            None => self.context.latest_session(&self.root),
        }
    }

    /// Refuses an unknown owner: no agent would ever start the task.
    fn check_owner(&self, place: &AppEnv, of: &TaskListScope, owner: Option<&str>) -> Result<(), CliError> {
        let Some(owner) = owner.map(str::trim).filter(|owner| !owner.is_empty()) else { return Ok(()) };
        let team = max_team_workspace::agents::team(None, place)?;
        let members = std::iter::once(&team.lead).chain(&team.members).chain(&team.experts);
        let mut names: Vec<String> = members.map(|member| member.definition.name.clone()).collect();
        let roll = self.context.read(query::Team { session: self.session(of)? })?;
        names.extend(roll.teammates.into_iter().filter(Enrolled::is_active).map(|teammate| teammate.person.name));
        names.extend(["user".to_owned(), self.context.by.user.clone()]);
        names.sort_unstable();
        names.dedup();
        if names.iter().any(|name| name == owner) {
            return Ok(());
        }
        let near = nearest(owner, names.iter().map(String::as_str)).map(str::to_owned);
        Err(CliError::said(Exit::Usage, |lang| lang.no_such_owner(owner, near.as_deref(), &names)))
    }

    fn list(&self, of: &TaskListScope, json: bool) -> Result<(), CliError> {
        let (lines, lang) = (self.context.read(query::TaskLines { session: self.session(of)? })?, self.context.lang);
        if json {
            return super::print(&format!("{:#}\n", lines.iter().map(as_json).collect::<Value>()));
        }
        if lines.is_empty() {
            return super::print(&format!("{}\n", lang.no_tasks()));
        }
        let row = |line: &TaskLine| {
            let waits = if line.status == ListTaskStatus::Pending { line.blocked_by.join(", ") } else { String::new() };
            let status = lang.list_status(line.status).to_owned();
            vec![line.id.clone(), status, line.owner.clone(), waits, line.subject.clone()]
        };
        super::print(&table(&lang.list_heads(), &lines.iter().map(row).collect::<Vec<_>>()))
    }

    fn show(&self, id: &str, of: &TaskListScope, json: bool) -> Result<(), CliError> {
        let line = self.context.read(query::FindTask { session: self.session(of)?, id: id.to_owned() })?;
        if json {
            return super::print(&format!("{:#}\n", as_json(&line)));
        }
        let lang = self.context.lang;
        let metadata = if line.metadata.is_empty() { String::new() } else { as_text(&line) };
        let facts = [
            (lang.list_status_word(), lang.list_status(line.status).to_owned()),
            (lang.list_owner_word(), line.owner.clone()),
            (lang.list_waits_word(), line.blocked_by.join(", ")),
            (lang.list_blocks_word(), line.blocks.join(", ")),
            (lang.list_metadata_word(), metadata),
        ];
        let facts = facts.iter().filter(|(_, value)| !value.is_empty());
        let facts: String = facts.map(|(name, value)| format!("    {name}: {value}\n")).collect();
        let description = if line.description.is_empty() { String::new() } else { format!("\n{}\n", line.description) };
        super::print(&clean(&format!("#{} {}\n{facts}{description}", line.id, line.subject)))
    }

    fn write(&self, of: &TaskListScope, input: &ListRequest) -> Result<(), CliError> {
        let session = self.session(of)?;
        let work = async { Ok(self.context.team.task_lists().write(session, &self.context.by, input).await) };
        let done = wait(work).map_err(|error| CliError::new(Exit::Failed, error.to_string()))?;
        let (events, lang) = (done.map_err(stop)?, self.context.lang);
        // Ending a task claims it first; that claim is not printed.
        let is_ended =
            |id| events.iter().any(|event| matches!(event, Event::ItemMoved(moved) if moved.id == id && is_end(moved)));
        let is_passed = |event: &&Event| matches!(event, Event::ItemMoved(moved) if moved.what == StatusChange::Claimed && is_ended(moved.id));
        let words: Vec<String> = events
            .iter()
            .filter(|event| !is_passed(event))
            .filter_map(|event| told(event, &self.context.by.user, lang))
            .collect();
        let words = if words.is_empty() { lang.so_already().to_owned() } else { words.join("\n") };
        super::print(&clean(&format!("{words}\n")))
    }
}

fn is_end(moved: &ItemMoved) -> bool {
    moved.what == StatusChange::Completed
}

fn told(event: &Event, user: &str, lang: max_team_workspace::i18n::Lang) -> Option<String> {
    match event {
        Event::ItemAdded(added) => Some(lang.list_added(added.id.to_string(), &added.text.subject)),
        Event::ItemWritten(written) => Some(lang.list_written(written.id.to_string())),
        Event::ItemMoved(moved) if moved.what == StatusChange::Claimed && moved.state.owner == user => {
            Some(lang.task_is_yours(moved.id))
        }
        Event::ItemMoved(moved) => Some(lang.list_moved(moved)),
        _ => None,
    }
}

fn as_text(line: &TaskLine) -> String {
    Value::Object(line.metadata.clone()).to_string()
}

/// With the names that the tools have for it.
fn as_json(line: &TaskLine) -> Value {
    json!({
        "id": line.id, "subject": line.subject, "description": line.description, "activeForm": line.active_form,
        "status": line.status, "owner": line.owner, "blockedBy": line.blocked_by, "blocks": line.blocks,
        "metadata": line.metadata, "claims": line.epoch, "plan": line.in_plan,
    })
}
