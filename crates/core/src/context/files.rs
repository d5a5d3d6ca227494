//! Which files a conversation read or changed, and their last known content.

use std::collections::HashSet;

use serde_json::Value;

use crate::chat::{Message, Part};
use crate::hash::Hash;
use crate::mention;

/// Hexadecimal digits that identify a content.
const HASH_DIGITS: usize = 12;

/// A file that a conversation read or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedFile {
    /// The path as the call gave it.
    pub path: String,
    /// Whether it was changed, not only read.
    pub changed: bool,
    /// Line count and short hash of the content, if the conversation last wrote the file as a whole; `None` after an
    /// edit.
    pub seen: Option<(usize, String)>,
}

impl TouchedFile {
    /// One line for the model.
    pub fn summary_line(&self) -> String {
        let verb = if self.changed { "changed" } else { "read" };
        match &self.seen {
            Some((lines, hash)) => format!("`{}`: {verb}, {lines} lines, hash {hash}", self.path),
            None => format!("`{}`: {verb}", self.path),
        }
    }
}

/// The files of a history, the one last touched at the end. Calls that failed touched nothing.
pub fn touched_files(history: &[Message]) -> Vec<TouchedFile> {
    let parts = || history.iter().flat_map(|message| &message.parts);
    let failed: HashSet<&str> = parts()
        .filter_map(|part| match part {
            Part::ToolResult { id, is_error: true, .. } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    let mut files: Vec<TouchedFile> = Vec::new();
    for part in parts() {
        if let Part::Text { text } = part
            && let Some(mentioned) = mention::label(text).filter(|label| label.is_included)
        {
            if !files.iter().any(|file| file.path == mentioned.path) {
                files.push(TouchedFile { path: mentioned.path, changed: false, seen: None });
            }
            continue;
        }
        let Part::ToolUse { id, name, input } = part else { continue };
        let Some(path) = input.get("path").and_then(Value::as_str).filter(|_| !failed.contains(id.as_str())) else {
            continue;
        };
        let (changed, seen) = match name.as_str() {
            "read_file" => (false, None),
            "edit_file" => (true, None),
            "write_file" => (true, input.get("content").and_then(Value::as_str).map(looks)),
            _ => continue,
        };
        let before = files.iter().position(|file| file.path == path).map(|index| files.remove(index));
        // A read keeps what is known about the content.
        let (was_changed, was_seen) = before.map_or((false, None), |before| (before.changed, before.seen));
        let seen = if changed { seen } else { was_seen };
        files.push(TouchedFile { path: path.to_owned(), changed: changed || was_changed, seen });
    }
    files
}

fn looks(content: &str) -> (usize, String) {
    let mut hash = Hash::of(content).to_string();
    hash.truncate(HASH_DIGITS);
    (content.lines().count(), hash)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_state_of_each_file_counts_and_failures_do_not() {
        let call = |id: &str, tool: &str, input: Value| {
            let used = Part::ToolUse { id: id.into(), name: tool.into(), input: input.into() };
            let is_error = id.starts_with("bad");
            let done = Part::ToolResult { id: id.into(), content: vec![], is_error };
            [Message::assistant(vec![used]), Message::user(vec![done])]
        };
        let history: Vec<Message> = [
            call("1", "write_file", json!({"path": "a.rs", "content": "x\ny\n"})),
            call("2", "read_file", json!({"path": "b.rs"})),
            call("bad1", "write_file", json!({"path": "c.rs", "content": ""})),
            call("3", "read_file", json!({"path": "a.rs"})),
            call("4", "edit_file", json!({"path": "d.rs", "old": "x", "new": "y"})),
            call("5", "run_shell", json!({"path": "e.rs"})),
            [
                Message::user(vec![Part::text("@f.rs"), Part::text(mention::content("f.rs", false, "1\tx"))]),
                Message::assistant(vec![]),
            ],
        ]
        .into_iter()
        .flatten()
        .collect();
        let told: Vec<String> = touched_files(&history).iter().map(TouchedFile::summary_line).collect();
        let hash = looks("x\ny\n").1;
        assert_eq!(
            told,
            ["`b.rs`: read", &format!("`a.rs`: changed, 2 lines, hash {hash}"), "`d.rs`: changed", "`f.rs`: read"]
        );
    }
}
