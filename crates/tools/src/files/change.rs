//! A change of one file: told first, then made exactly as told.
//!
//! The action holds the hashes of the file before and after. When it is carried out, the file must still be as it was
//! before, or already be as it shall be after (an earlier process did it and died before it could say so). In any
//! other case nothing is written. Nothing here knows what the change is for.

use max_team_core::agent_dirs::AgentDir;
use max_team_core::hash::Hash;
use max_team_core::limits::WRITE_BYTES_MAX;
use max_team_core::policy::Action;

use super::atomic_write::{AtomicWrite, ExistingFile, guard};
use super::diff;
use super::rel_path::RelPath;
use crate::agent_store::AgentStore;
use crate::text::size;
use crate::tool::{ToolContext, ToolError};

/// What came of a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChangeOutcome {
    /// The file was as wanted already.
    Already,
    /// There is a new file.
    Created { added: usize },
    /// The file was replaced.
    Replaced { added: usize, removed: usize },
}

/// Says what a change would do. `make` gives the new content from the old one; it is called again when the change is
/// made, and must then give the same.
pub(crate) fn propose(
    cx: &ToolContext,
    place: &RelPath,
    make: impl FnOnce(Option<&ExistingFile>) -> Result<Vec<u8>, ToolError>,
) -> Result<Action, ToolError> {
    if cx.hides(place) {
        return Ok(Action { kind: place.writing(), ..Action::read(place.to_string()) });
    }
    let old = match cx.reach(place)? {
        Some(at) => AtomicWrite::find(&at.root, &at.sight, place)?.map(|slot| slot.look()).transpose()?.flatten(),
        None => guard(&cx.sight_at(place), place).map(|()| None)?,
    };
    let new = bounded(place, make(old.as_ref())?)?;
    let after = Hash::of(&new);
    let is_same = old.as_ref().is_some_and(|old| old.hash == after);
    Ok(Action {
        // A change that changes nothing needs no permission: carrying it out only reads.
        kind: if is_same { place.reading() } else { place.writing() },
        preview: if is_same { String::new() } else { preview(place, old.as_ref(), &new) },
        before: old.map(|old| old.hash),
        after: Some(after),
        ..Action::read(place.to_string())
    })
}

/// Makes the change that was proposed.
pub(crate) fn carry_out(
    cx: &ToolContext,
    place: &RelPath,
    intent: &Action,
    make: impl FnOnce(Option<&ExistingFile>) -> Result<Vec<u8>, ToolError>,
) -> Result<ChangeOutcome, ToolError> {
    if intent.target != place.to_string() || intent.after.is_none() {
        return Err(ToolError::fatal(format!("`{place}` is not what was judged (`{}`)", intent.target)));
    }
    let store = place.folder().and_then(|folder| cx.store(folder));
    store.map_or(Ok(()), AgentStore::make)?;
    let at = cx.look(place)?;
    let cx = &*at;
    let slot = AtomicWrite::find(&cx.root, &cx.sight, place)?;
    let old = match &slot {
        Some(slot) => slot.look()?,
        None => None,
    };
    let now = old.as_ref().map(|old| old.hash);
    if let (Some(slot), true) = (&slot, now == intent.after) {
        slot.settle()?;
        return Ok(ChangeOutcome::Already);
    }
    if now != intent.before {
        return Err(ToolError::correctable(format!(
            "`{place}` has changed since it was looked at; read it again and repeat the change if it still fits"
        )));
    }
    let new = bounded(place, make(old.as_ref())?)?;
    if Some(Hash::of(&new)) != intent.after {
        return Err(ToolError::fatal(format!("the change of `{place}` is not the one that was judged")));
    }
    if let Some(store) = store {
        store.check_room(&cx.root, new.len() as u64, old.as_ref().map(|old| old.bytes.len() as u64))?;
    }
    let slot = match slot {
        Some(slot) => slot,
        None => AtomicWrite::make(&cx.root, &cx.sight, place)?,
    };
    slot.put(&new, old.as_ref())?;
    let text = String::from_utf8_lossy(&new);
    Ok(match old {
        None => ChangeOutcome::Created { added: diff::counts("", &text).0 },
        Some(old) => {
            let (added, removed) = diff::counts(&String::from_utf8_lossy(&old.bytes), &text);
            ChangeOutcome::Replaced { added, removed }
        }
    })
}

/// Puts a new file into an agent's folder; `None` if there is a file of that name already.
pub(crate) fn store_bytes(
    cx: &ToolContext,
    folder: AgentDir,
    path: &str,
    bytes: &[u8],
) -> Result<Option<RelPath>, ToolError> {
    let none = || ToolError::correctable(format!("there is no folder `{}` to keep files in", folder.name()));
    let store = cx.store(folder).ok_or_else(none)?;
    store.put_new(&cx.sight.in_agent_dir(folder), path, bytes)
}

fn bounded(place: &RelPath, new: Vec<u8>) -> Result<Vec<u8>, ToolError> {
    if new.len() as u64 > WRITE_BYTES_MAX {
        let (is, most) = (size(new.len() as u64), size(WRITE_BYTES_MAX));
        return Err(ToolError::correctable(format!("`{place}` would be {is}; at most {most} can be written")));
    }
    Ok(new)
}

/// What the person who decides is shown: all that is new, even if the old content is no text.
fn preview(place: &RelPath, old: Option<&ExistingFile>, new: &[u8]) -> String {
    let path = place.to_string();
    let new = String::from_utf8_lossy(new);
    let Some(old) = old else { return diff::unified(&path, None, &new) };
    let mut preview = match std::str::from_utf8(&old.bytes) {
        Ok(text) => diff::unified(&path, Some(text), &new),
        Err(_) => {
            let before = size(old.bytes.len() as u64);
            format!("note: this replaces {before} of binary data\n{}", diff::unified(&path, None, &new))
        }
    };
    if old.is_linked() {
        preview.push_str("note: the file has other names (hard links); those keep the old content\n");
    }
    preview
}
