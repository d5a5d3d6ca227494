//! The files and folders that a user's message mentions, read by the rules of `read_file` and `list_dir`; and the
//! paths that a mention can be completed to.
//!
//! Each is judged by the policy like a call of those tools, but no question is asked here: a path that would need an
//! answer is left out, with the reason. A path that does not exist is not a mention.

use std::collections::BTreeSet;
use std::path::Path;

use max_team_core::agent_dirs::AgentDir;
use max_team_core::chat::Part;
use max_team_core::limits::{MENTION_FILE_BYTES_MAX, MENTION_FILES_MAX, MENTION_IMAGES_MAX};
use max_team_core::mention::{self, Mention};
use max_team_core::policy::Verdict;
use serde_json::json;

use super::list::list_dir;
use super::read::read_file;
use super::rel_path::RelPath;
use super::walk::Walk;
use crate::text::{clip, many, size};
use crate::tool::{Tool, ToolContext, ToolError};

/// With less room than this left, a file is not begun.
const ROOM_BYTES_MIN: usize = 1 << 10;
/// Bytes of the note of `read_file` behind the content.
const NOTE_BYTES_MAX: usize = 1 << 10;
/// Bytes of a reason.
const REASON_BYTES_MAX: usize = 300;

/// Reads the files that are mentioned and exist, in order: a part of text for each, and the picture behind it if it is
/// one. All texts together have at most `bytes_max` bytes.
pub fn mentioned(cx: &ToolContext, mentions: &[Mention], bytes_max: usize) -> Vec<Part> {
    let (mut parts, mut seen) = (Vec::new(), BTreeSet::new());
    let (mut files, mut pictures, mut room) = (0, 0, bytes_max);
    let found = mentions.iter().filter_map(|mention| mention.spellings.iter().find_map(|path| find(cx, path)));
    for found in found {
        let path = match &found {
            MentionTarget::Place(place) => place.to_string(),
            MentionTarget::Outside(path) => path.clone(),
        };
        if !seen.insert(path.clone()) {
            continue;
        }
        let left_out = |why: &str| Part::text(mention::left_out(&path, &clip(why, REASON_BYTES_MAX)));
        let MentionTarget::Place(place) = found else {
            parts.push(left_out("it is outside the project folder"));
            continue;
        };
        files += 1;
        if cx.check().is_err() {
            parts.push(left_out("reading the files of this message took too long"));
            continue;
        }
        if files > MENTION_FILES_MAX || room < ROOM_BYTES_MIN {
            parts.push(left_out(&full(bytes_max)));
            continue;
        }
        let is_folder = cx.look(&place).is_ok_and(|at| at.is_dir(place.as_path()));
        let content = match read(cx, &place, is_folder) {
            Ok(content) => content,
            Err(error) => {
                parts.push(left_out(&error.to_string()));
                continue;
            }
        };
        for part in content {
            match part {
                Part::Text { text } => {
                    let text = mention::content(
                        &path,
                        is_folder,
                        &cut(&text, room.min(MENTION_FILE_BYTES_MAX + NOTE_BYTES_MAX)),
                    );
                    room = room.saturating_sub(text.len());
                    parts.push(Part::text(text));
                }
                Part::Image { .. } if pictures == MENTION_IMAGES_MAX => {
                    parts.pop();
                    let most = many(MENTION_IMAGES_MAX, "picture");
                    parts.push(left_out(&format!("a message can include at most {most}")));
                }
                part => {
                    pictures += 1;
                    parts.push(part);
                }
            }
        }
    }
    parts
}

fn full(bytes_max: usize) -> String {
    let (files, bytes) = (many(MENTION_FILES_MAX, "file"), size(bytes_max as u64));
    format!("a message can include at most {files} and {bytes} of text")
}

/// The meaning of a spelling.
enum MentionTarget {
    Place(RelPath),
    /// Something that lies outside the project folder, which the user hears about.
    Outside(String),
}

/// Looks a spelling up; `None`: nothing is there.
fn find(cx: &ToolContext, path: &str) -> Option<MentionTarget> {
    let Ok(project) = cx.root.place(path).map(RelPath::of_project) else {
        let exists = path.starts_with("~/") || cx.root.path().join(path).symlink_metadata().is_ok();
        return exists.then(|| MentionTarget::Outside(path.to_owned()));
    };
    if cx.root.has(project.as_path()) {
        return Some(MentionTarget::Place(project));
    }
    // Agents call their own folders `@files` and `@data`; the `@` is the mention's.
    let own = format!("@{path}");
    let (folder, rest) = AgentDir::split(&own)?;
    let place = RelPath::own(folder, rest).ok().filter(|_| cx.store(folder).is_some())?;
    cx.look(&place).is_ok_and(|at| at.root.has(place.as_path())).then_some(MentionTarget::Place(place))
}

/// Reads a place as the tool for it would, if it may.
fn read(cx: &ToolContext, place: &RelPath, is_folder: bool) -> Result<Vec<Part>, ToolError> {
    let tool: Box<dyn Tool> = if is_folder { Box::new(list_dir()) } else { Box::new(read_file()) };
    let args = json!({ "path": place.to_string() });
    let action = tool.action(cx, &args)?;
    let judged = cx.policy.judge(&tool.spec().name, &action);
    if judged.verdict != Verdict::Allow {
        return Err(ToolError::correctable(judged.rule));
    }
    Ok(tool.call(cx, args, &action, false)?.content)
}

/// The text, cut behind a line if it is longer.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default();
    let kept = kept.rsplit_once('\n').map_or("", |(kept, _)| kept);
    let lines = kept.lines().count();
    format!("{kept}\n[only the first {} are included]", many(lines, "line"))
}

/// The files beneath the project folder that are neither hidden nor ignored, and the folders they lie in (with a `/` at
/// the end), at most so many.
pub fn paths(cx: &ToolContext, max: usize) -> Vec<String> {
    let Ok((place, dir)) = cx.root.place(".").and_then(|place| Ok((place, cx.open_dir(Path::new("."))?))) else {
        return Vec::new();
    };
    let mut paths = BTreeSet::new();
    for file in Walk::new(cx, &place, dir) {
        let Some(file) = file.to_str().filter(|file| !file.chars().any(char::is_control)) else { continue };
        let folders = file.match_indices('/').filter_map(|(at, _)| file.get(..=at));
        paths.extend(folders.map(str::to_owned));
        paths.insert(file.to_owned());
        if paths.len() >= max {
            break;
        }
    }
    paths.into_iter().take(max).collect()
}
