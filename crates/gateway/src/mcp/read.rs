//! Tools that only read: `status`, `search_memory`, `read_artifact`, `list_agents`.

use std::io::Read as _;
use std::path::Path;

use max_team_core::limits::{KEPT_BYTES_MAX, MCP_ROWS_MAX};
use max_team_core::memory::BoardScope;
use max_team_core::plan::TaskView;
use max_team_core::plan::event::{Artifact, ArtifactType};
use max_team_core::time::rfc3339;
use max_team_runtime::{RuntimeError, SessionRow, project_scope, query};
use max_team_workspace::agents;
use serde::Deserialize;
use serde_json::{Value, json};

use super::McpServer;
use super::answer::about;
use super::caller::Caller;
use super::result::{CallError, CallReply, page, row_text};

/// Sessions that are looked through for those of this folder.
const SESSIONS_READ_MAX: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchMemory {
    words: String,
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    10
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArtifact {
    plan: String,
    task: String,
    name: Option<String>,
    #[serde(default)]
    offset: usize,
}

impl McpServer {
    pub(super) fn status(&self, caller: &Caller) -> Result<CallReply, CallError> {
        let reader = &self.shared.reader;
        let failed = |error: RuntimeError| self.failed(&error);
        let mut sessions = reader.ask(query::Sessions { limit: SESSIONS_READ_MAX }).map_err(failed)?;
        sessions.retain(|row| self.is_here(row));
        let is_known = |session| sessions.iter().any(|row| row.session == session);
        let mut people = reader.ask(query::Ps { all: false }).map_err(failed)?;
        people.retain(|person| is_known(person.session));
        let mut inbox = reader.ask(query::Inbox {}).map_err(failed)?;
        inbox.retain(|pending| pending.session.is_some_and(is_known));
        let mut plans = Vec::new();
        for plan in reader.ask(query::OpenPlans { session: None }).map_err(failed)? {
            let (plan, state) = reader.ask(query::PlanWithState { plan }).map_err(failed)?;
            if plan.session().is_some_and(is_known) {
                let goal = plan.draft().map(|draft| row_text(&draft.goal));
                let is_approved = plan.is_approved();
                plans.push(json!({ "id": plan.id(), "goal": goal, "state": state.name(), "approved": is_approved }));
            }
        }
        let agents = people.iter().map(|person| {
            json!({ "name": person.name, "role": row_text(&person.role), "state": person.state.name(), "task": person.task,
                "plan": person.plan, "session": person.session })
        });
        let questions = inbox.iter().map(|pending| {
            let answer = format!("max-team approve {}", pending.row.question);
            json!({ "id": pending.row.question, "session": pending.session, "from": pending.who, "about": about(pending),
                "user_answers_with": answer })
        });
        let rows = sessions.iter().map(|row| session_row(row, caller));
        Ok(CallReply::Data(json!({
            "sessions": bounded(rows), "agents": bounded(agents), "questions": bounded(questions), "plans": bounded(plans),
        })))
    }

    pub(super) fn search_memory(&self, given: SearchMemory) -> Result<CallReply, CallError> {
        let scopes = vec![project_scope(&self.shared.root), BoardScope::User];
        let question = query::SearchMemory { scopes, words: given.words, limit: given.limit.min(MCP_ROWS_MAX) };
        let hits = self.shared.reader.ask(question).map_err(|error| self.failed(&error))?;
        let facts = hits.iter().map(|hit| {
            json!({ "key": hit.fact.key, "value": row_text(&hit.fact.value_text()), "written_at": rfc3339(hit.fact.at_ms) })
        });
        Ok(CallReply::Data(json!({ "facts": bounded(facts) })))
    }

    pub(super) fn read_artifact(&self, given: &ReadArtifact) -> Result<CallReply, CallError> {
        let id = self.find_plan(&given.plan)?;
        let (plan, _) = self.plan_here(id)?;
        let Some(task) = plan.tasks().find(|view| view.task.id == given.task) else {
            let known: Vec<&str> = plan.tasks().map(|view| view.task.id.as_str()).collect();
            return Err(CallError(format!("plan `{id}` has no task `{}`; it has {}", given.task, known.join(", "))));
        };
        let Some(result) = task.result else {
            return Err(CallError(format!("task `{}` has no result yet: it is {}", given.task, task.status.name())));
        };
        let Some(name) = &given.name else {
            return Ok(CallReply::Text(overview(&task, &result.output, &result.artifacts, given.offset)));
        };
        let Some(artifact) = result.artifacts.iter().find(|artifact| artifact.name == *name) else {
            let known: Vec<&str> = result.artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
            return Err(CallError(format!(
                "task `{}` has no artifact `{name}`; it has {}",
                given.task,
                known.join(", ")
            )));
        };
        let text = match artifact.kind {
            ArtifactType::FilePath => self.read_file(&artifact.content)?,
            ArtifactType::Text | ArtifactType::Json => artifact.content.clone(),
        };
        Ok(CallReply::Text(page(&text, given.offset)))
    }

    /// A file of the project. A link that leads out of it is not followed.
    fn read_file(&self, path: &str) -> Result<String, CallError> {
        let unreadable = |error: std::io::Error| CallError(format!("`{path}` cannot be read: {error}"));
        let real = self.shared.root.join(path).canonicalize().map_err(unreadable)?;
        if !real.starts_with(&self.shared.root) || !is_plain_file(&real) {
            return Err(CallError(format!("`{path}` is no file of the project")));
        }
        let mut content = Vec::new();
        let most = u64::try_from(KEPT_BYTES_MAX).unwrap_or(u64::MAX);
        let file = std::fs::File::open(&real).map_err(unreadable)?;
        file.take(most).read_to_end(&mut content).map_err(unreadable)?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    pub(super) fn list_agents(&self) -> Result<CallReply, CallError> {
        let team = agents::team(self.shared.selection.agents.as_deref(), &self.shared.place);
        let team = team.map_err(|error| self.refused(&error))?;
        let rows = agents::people(&team);
        let rows = rows.iter().map(|listed| {
            let own = &listed.member.definition;
            let what = if own.description.is_empty() { &own.role } else { &own.description };
            json!({ "name": own.name, "place": own.place, "does": row_text(what) })
        });
        Ok(CallReply::Data(json!({ "agents": bounded(rows) })))
    }
}

fn is_plain_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file())
}

fn session_row(row: &SessionRow, caller: &Caller) -> Value {
    json!({ "id": row.session, "yours": caller.owns(row), "last_message": row_text(&row.preview), "answered": row.answered,
        "last_at": rfc3339(row.last_at_ms) })
}

/// At most a page of rows, and the number of those that are left out.
fn bounded(rows: impl IntoIterator<Item = Value>) -> Value {
    let mut rows: Vec<Value> = rows.into_iter().collect();
    let left_out = rows.len().saturating_sub(MCP_ROWS_MAX);
    rows.truncate(MCP_ROWS_MAX);
    if left_out > 0 {
        rows.push(json!({ "left_out": left_out }));
    }
    Value::from(rows)
}

/// The result of a task and the names of its artifacts.
fn overview(task: &TaskView<'_>, output: &str, artifacts: &[Artifact], offset: usize) -> String {
    let names: Vec<&str> = artifacts.iter().take(MCP_ROWS_MAX).map(|artifact| artifact.name.as_str()).collect();
    let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("{} ({}): {}\nArtifacts: {list}\n\n{}", task.task.id, task.member, task.status.name(), page(output, offset))
}
