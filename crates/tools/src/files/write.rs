//! `write_file`: a whole file, new or replaced.
//!
//! Bound to what was judged by `change`, put in place by `atomic_write`. Writes what it is given, with the line endings of what it
//! replaces.

use max_team_core::policy::{Action, Repeatability};
use schemars::JsonSchema;
use serde::Deserialize;

use super::atomic_write::ExistingFile;
use super::change::{self, ChangeOutcome};
use super::edit::is_crlf;
use crate::text::{many, size};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// Create a file, with its folders, or replace its whole content. Use `edit_file` to change parts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Relative to the project folder.
    path: String,
    content: String,
}

pub(crate) fn write_file() -> Typed<WriteFile> {
    Typed::new("write_file", Repeatability::Idempotent, action, call)
}

fn action(cx: &ToolContext, args: &WriteFile) -> Result<Action, ToolError> {
    let place = cx.place(&args.path)?;
    change::propose(cx, &place, |old| Ok(content(old, &args.content)))
}

fn call(cx: &ToolContext, args: WriteFile, intent: &Action, resumed: bool) -> Result<Output, ToolError> {
    let place = cx.named(&args.path)?;
    let bytes = size(args.content.len() as u64);
    let done = change::carry_out(cx, &place, intent, |old| Ok(content(old, &args.content)))?;
    Ok(Output::text(match done {
        ChangeOutcome::Already if resumed => format!("wrote `{place}` ({bytes})"),
        ChangeOutcome::Already => format!("`{place}` already has exactly this content; nothing was changed"),
        ChangeOutcome::Created { added } => format!("created `{place}` ({}, {bytes})", many(added, "line")),
        ChangeOutcome::Replaced { added, removed } => {
            format!("replaced `{place}` (+{added} −{removed} lines, {bytes})")
        }
    }))
}

/// The new content with the line endings of the old, because models write LF. Content that has CR LF anywhere is taken
/// as it is.
fn content(old: Option<&ExistingFile>, new: &str) -> Vec<u8> {
    let is_crlf = old.and_then(|old| std::str::from_utf8(&old.bytes).ok()).is_some_and(is_crlf);
    if is_crlf && !new.contains("\r\n") { new.replace('\n', "\r\n").into_bytes() } else { new.as_bytes().to_vec() }
}
