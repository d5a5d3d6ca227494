//! The `Tool` trait and what passes through it.
//!
//! Both halves of a tool are plain blocking functions: the caller runs them on a blocking thread
//! (`tokio::task::spawn_blocking`) and cancels through [`Cx::cancel`], which long ones look at. A tool never decides
//! whether it may run; it is never called with anything but the action that was judged.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use max_team_core::chat::Part;
use max_team_core::limits::TOOL_RESULT_BYTES_MAX;
use max_team_core::policy::{Action, Class, Sight};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::command::Walls;
use crate::files::{Opened, Place, Root};
use crate::text::{clip, size};

/// Bytes of an error's words.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// One hand on the world. An open set: built-in tools, the team's own, those of MCP servers.
pub trait Tool: Send + Sync + fmt::Debug {
    /// What the model and the registry know about it.
    fn spec(&self) -> &Spec;

    /// What this call would do, for the gate to judge. Looks at whatever it must in order to be exact (a write is
    /// told with the hashes before and after, and a diff) and changes nothing. Blocking.
    fn action(&self, cx: &Cx, args: &Value) -> Result<Action, ToolError>;

    /// Does it. `intent` is the action that was judged: if the world has moved on since, the call is refused rather
    /// than adapted. `resumed` says that an earlier process may already have done it, wholly or in part. Blocking.
    fn call(&self, cx: &Cx, args: Value, intent: &Action, resumed: bool) -> Result<Output, ToolError>;
}

/// What is known about a tool before it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Its name, unique in a registry.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// JSON Schema of its input: always an object.
    pub schema: Value,
    /// What a crash in the middle of a call means.
    pub class: Class,
    /// Whether `null` stands for an optional input that is absent; many models write it so.
    pub null_is_absent: bool,
}

/// What a call works with.
#[derive(Debug, Clone)]
pub struct Cx {
    /// The folder it may reach into.
    pub root: Arc<Root>,
    /// What of it can be seen.
    pub sight: Arc<Sight>,
    /// What its commands are kept within.
    pub walls: Arc<Walls>,
    /// Fires when nobody wants the result any more.
    pub cancel: CancellationToken,
}

impl Cx {
    /// A context that sees everything and is not cancelled.
    pub fn new(root: Arc<Root>) -> Self {
        let walls = Arc::new(Walls::around(root.path()));
        Self { root, sight: Arc::default(), walls, cancel: CancellationToken::new() }
    }

    /// Whether a place is out of sight. Then nothing there is looked at, not even to say what a call would do: the
    /// gate says no to the name.
    pub(crate) fn hides(&self, place: &Place) -> bool {
        !self.sight.sees(&place.to_string())
    }

    /// A path that a model wrote, if it leads to something that can be seen.
    pub(crate) fn seen(&self, text: &str) -> Result<Place, ToolError> {
        let place = self.root.place(text)?;
        match self.sight.hides(&place.to_string()) {
            Some(rule) => Err(ToolError::correctable(format!("`{place}` is not for you to see: {rule}"))),
            None => Ok(place),
        }
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Path) -> Result<Opened, ToolError> {
        self.root.open_file(path, &self.sight)
    }

    /// Opens a folder for reading.
    pub(crate) fn open_dir(&self, path: &Path) -> Result<OwnedFd, ToolError> {
        self.root.open_dir(path, &self.sight)
    }

    /// Whether there is a folder at that path.
    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        self.root.is_dir(path, &self.sight)
    }

    /// Fails once the call has been cancelled.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() { Err(ToolError::correctable("stopped before it was done")) } else { Ok(()) }
    }
}

/// What a call gives back to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Text and images.
    pub content: Vec<Part>,
    /// Whether it failed in a way that is the tool's own to describe.
    pub is_error: bool,
}

impl Output {
    /// A result in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::text(text)], is_error: false }
    }

    /// The same within [`TOOL_RESULT_BYTES_MAX`] of text; what is cut is said.
    pub fn bounded(mut self) -> Self {
        let mut room = TOOL_RESULT_BYTES_MAX;
        for part in &mut self.content {
            let Part::Text { text } = part else { continue };
            if text.len() > room {
                let whole = text.len();
                text.truncate(text.floor_char_boundary(room.saturating_sub(80)));
                text.push_str(&format!("\n[cut: {} of {} shown]", size(text.len() as u64), size(whole as u64)));
            }
            room = room.saturating_sub(text.len());
        }
        self
    }
}

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Told to the model, which can do better.
    #[error("{0}")]
    Correctable(String),
    /// Nobody in this turn can do anything about it (disk full, folder gone): the turn ends.
    #[error("{0}")]
    Fatal(String),
}

impl ToolError {
    /// An error the model is told.
    pub fn correctable(text: impl Into<String>) -> Self {
        Self::Correctable(text.into())
    }

    /// The same with its words cut to what anybody wants to read.
    pub fn bounded(self) -> Self {
        match self {
            Self::Correctable(words) => Self::Correctable(clip(&words, ERROR_BYTES_MAX)),
            Self::Fatal(words) => Self::Fatal(clip(&words, ERROR_BYTES_MAX)),
        }
    }

    /// An error that ends the turn.
    pub fn fatal(text: impl Into<String>) -> Self {
        Self::Fatal(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_cut_to_fit_and_say_so() {
        let whole = Output::text("fits").bounded();
        assert_eq!(whole, Output::text("fits"));

        let long = Output { content: vec![Part::text("é".repeat(90_000)), Part::text("more")], is_error: false };
        let texts: Vec<String> = long
            .bounded()
            .content
            .into_iter()
            .map(|part| match part {
                Part::Text { text } => text,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(texts.iter().map(String::len).sum::<usize>() <= TOOL_RESULT_BYTES_MAX);
        assert!(texts[0].ends_with("of 175.7 KiB shown]"), "{}", &texts[0][texts[0].len() - 60..]);
    }
}
