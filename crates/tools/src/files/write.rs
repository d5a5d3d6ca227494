//! `write_file`: a whole file, new or replaced.
//!
//! Bound to what was judged by `change`, put in place by `slot`. Writes exactly the bytes it is given.

use max_team_core::policy::{Action, Class};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{self, Done};
use crate::text::{many, size};
use crate::tool::{Cx, Output, ToolError};
use crate::typed::Typed;

/// Write a whole file of the project: create it, with its folders, or replace all of its content. Use `edit_file` to
/// change parts of a file that exists. Files in `.git/` and `.max-team/` cannot be written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// The file, relative to the project folder, like `src/main.rs`.
    path: String,
    /// Everything that the file shall contain, written as it is.
    content: String,
}

/// The tool.
pub(crate) fn write_file() -> Typed<WriteFile> {
    Typed::new("write_file", Class::Idempotent, action, call)
}

fn action(cx: &Cx, args: &WriteFile) -> Result<Action, ToolError> {
    let place = cx.root.place(&args.path)?;
    change::propose(cx, &place, |_| Ok(args.content.clone().into_bytes()))
}

fn call(cx: &Cx, args: WriteFile, intent: &Action, resumed: bool) -> Result<Output, ToolError> {
    let place = cx.seen(&args.path)?;
    let bytes = size(args.content.len() as u64);
    let done = change::carry_out(cx, &place, intent, |_| Ok(args.content.into_bytes()))?;
    Ok(Output::text(match done {
        Done::Already if resumed => format!("wrote `{place}` ({bytes})"),
        Done::Already => format!("`{place}` already has exactly this content; nothing was changed"),
        Done::Created { added } => format!("created `{place}` ({}, {bytes})", many(added, "line")),
        Done::Replaced { added, removed } => format!("replaced `{place}` (+{added} −{removed} lines, {bytes})"),
    }))
}
