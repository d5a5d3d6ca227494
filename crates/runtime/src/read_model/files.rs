//! The files that agents have changed, read from their logs.

use std::collections::BTreeMap;
use std::path::Path;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, SessionId};
use max_team_core::limits::{FILES_LEFT_MAX, STREAM_PAGE_ENTRIES};
use max_team_core::plan::event::TaskFiles;
use max_team_core::plan::{Plan, TaskStatus};
use max_team_core::policy::glob::is_owned;
use max_team_core::rewind::{FileChange, MovedFile};

use super::ReadModel;
use crate::agent::runs_on;
use crate::error::RuntimeError;
use crate::rows::{self, MovedRow, event_of};
use crate::session::{agent_stream, stream as session_stream};

/// Events about an agent's file changes.
const READ: [&str; 2] = ["tool_intent", "files_changed"];

impl ReadModel<'_> {
    /// The files that the unfinished tasks of a plan have changed so far, task by task.
    pub fn files_left(&self, plan: &Plan) -> Result<Vec<TaskFiles>, RuntimeError> {
        let mut left = Vec::new();
        for view in plan.tasks().filter(|view| view.status != TaskStatus::Done) {
            let Some(agent) = view.agent else { continue };
            let TaskFiles { files, running, moved, .. } = self.changed_files(agent)?;
            if !(files.is_empty() && running.is_empty() && moved.is_empty()) {
                left.push(TaskFiles { task: view.task.id.clone(), files, running, moved });
            }
        }
        Ok(left)
    }

    /// The protected files that commands of a session made without approval and that are still where they were moved to.
    pub fn moved_files(&self, session: SessionId) -> Result<Vec<MovedFile>, RuntimeError> {
        let mut found = Vec::new();
        for (to, MovedRow { agent, path }) in rows::rows::<MovedRow>(self.journal, rows::MOVED)? {
            let of = rows::row::<String>(self.journal, rows::AGENT, &agent)?;
            if of.is_some_and(|of| of == session.to_string()) && Path::new(&to).symlink_metadata().is_ok() {
                found.push(MovedFile { path, to });
            }
        }
        Ok(found)
    }

    /// The files that an agent has changed, each once, in the order in which it first did; and its commands whose changes are
    /// not known, because they have not ended. A file that several commands may have changed counts for each of them.
    pub(crate) fn changed_files(&self, agent: AgentId) -> Result<TaskFiles, RuntimeError> {
        let stream = agent_stream(agent);
        let (mut files, mut moved) = (Vec::<String>::new(), Vec::new());
        let mut running: Vec<(String, String)> = Vec::new();
        let session = rows::row::<String>(self.journal, rows::AGENT, &agent.to_string())?;
        // The changes of commands are in the session's stream.
        let session = session.and_then(|session| session.parse().ok()).map(session_stream);
        for of in std::iter::once(stream.clone()).chain(session) {
            self.each_file_event(&of, |event| match event {
                Event::ToolIntent(intent) if runs_on(&intent.action) => {
                    running.push((intent.key, intent.action.target));
                }
                Event::FilesChanged(changed) if changed.calls(&of).any(|(by, _)| by == stream) => {
                    running.retain(|(key, _)| !changed.seen || *key != changed.key);
                    moved.extend(changed.moved);
                    let room = FILES_LEFT_MAX.saturating_sub(files.len());
                    let new = changed.changes.into_iter().map(|change| change.path);
                    let new: Vec<String> = new.filter(|path| !files.contains(path)).take(room).collect();
                    files.extend(new);
                }
                _ => {}
            })?;
        }
        moved.truncate(FILES_LEFT_MAX);
        let running = running.into_iter().map(|(_, command)| command).collect();
        Ok(TaskFiles { task: String::new(), files, running, moved })
    }

    /// The files that commands of an agent changed outside what its task owns, and that are not as they were before. A change
    /// while commands of other agents ran may be theirs and is not counted.
    pub(crate) fn unowned_changes(
        &self,
        agent: AgentId,
        root: &Path,
        owns: &[String],
    ) -> Result<Vec<String>, RuntimeError> {
        let (stream, row) = (agent_stream(agent), rows::row::<String>(self.journal, rows::AGENT, &agent.to_string())?);
        let Some(session) = row.and_then(|session| session.parse().ok()) else { return Ok(Vec::new()) };
        let of = session_stream(session);
        let mut changes = BTreeMap::<String, FileChange>::new();
        self.each_file_event(&of, |event| {
            let Event::FilesChanged(changed) = event else { return };
            // A step elsewhere is of a deletion that the user approved.
            if !changed.seen || Path::new(&changed.root) != root || !changed.calls(&of).all(|(by, _)| by == stream) {
                return;
            }
            for change in changed.changes {
                let known = changes.entry(change.path.clone()).or_insert_with(|| change.clone());
                known.after = change.after;
            }
        })?;
        let is_left = |change: &FileChange| change.before != change.after && !is_owned(owns, &change.path);
        Ok(changes.into_values().filter(is_left).map(|change| change.path).take(FILES_LEFT_MAX).collect())
    }

    fn each_file_event(&self, stream: &str, mut take: impl FnMut(Event)) -> Result<(), RuntimeError> {
        let mut after = 0;
        loop {
            let entries = self.journal.read(stream, after, STREAM_PAGE_ENTRIES)?;
            let Some(last) = entries.last() else { return Ok(()) };
            after = last.stream_seq;
            for entry in entries.iter().filter(|entry| READ.contains(&&*entry.event)) {
                take(event_of(entry)?);
            }
        }
    }
}
