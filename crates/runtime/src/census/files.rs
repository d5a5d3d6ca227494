//! The files that agents have changed, as their logs tell.

use max_team_core::event::Event;
use max_team_core::id::AgentId;
use max_team_core::limits::{FILES_LEFT_MAX, STREAM_PAGE_ENTRIES};
use max_team_core::plan::event::TaskFiles;
use max_team_core::plan::{Plan, Status};

use super::Census;
use crate::error::RuntimeError;
use crate::rows::event_of;
use crate::session::agent_stream;

impl Census<'_> {
    /// The files that the unfinished tasks of a plan have changed so far, task by task.
    pub fn files_left(&self, plan: &Plan) -> Result<Vec<TaskFiles>, RuntimeError> {
        let mut left = Vec::new();
        for view in plan.tasks().filter(|view| view.status != Status::Done) {
            let files = view.agent.map(|agent| self.changed_files(agent)).transpose()?.unwrap_or_default();
            if !files.is_empty() {
                left.push(TaskFiles { task: view.task.id.clone(), files });
            }
        }
        Ok(left)
    }

    /// The files that an agent has changed, each once, in the order in which it first did.
    pub(crate) fn changed_files(&self, agent: AgentId) -> Result<Vec<String>, RuntimeError> {
        let (stream, mut after, mut files) = (agent_stream(agent), 0, Vec::<String>::new());
        loop {
            let entries = self.journal.read(&stream, after, STREAM_PAGE_ENTRIES)?;
            let Some(last) = entries.last() else { return Ok(files) };
            after = last.stream_seq;
            for entry in entries.iter().filter(|entry| &*entry.event == "files_changed") {
                let Event::FilesChanged(changed) = event_of(entry)? else { continue };
                for change in changed.changes {
                    if files.len() >= FILES_LEFT_MAX {
                        return Ok(files);
                    }
                    if !files.contains(&change.path) {
                        files.push(change.path);
                    }
                }
            }
        }
    }
}
