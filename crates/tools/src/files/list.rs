//! `list_dir`: what is in a folder, and in the folders in it.
//!
//! Level by level, so that a huge folder deep down cannot push out what is near. Symbolic links are shown with their
//! target and never followed. Everything is in order of name, and what is left out is counted.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use max_team_core::limits::{LIST_ENTRIES_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_core::policy::{Action, Repeatability};
use rustix::fs::{AtFlags, FileType, readlinkat, statat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::root::bytes_in;
use super::walk::{self, DirEntry, IgnoreRules};
use crate::text::{clip, many, size, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// Bytes of one name or link target that are shown.
const NAME_BYTES_MAX: usize = 300;

/// List a folder. With `depth` above 1 also the folders inside, without what `.gitignore` ignores. At most 1000 names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListDir {
    /// Relative to the project folder. Default: `.`.
    path: Option<String>,
    /// Levels. Default: 1.
    #[schemars(range(min = 1, max = 10))]
    depth: Option<u32>,
}

pub(crate) fn list_dir() -> Typed<ListDir> {
    Typed::new("list_dir", Repeatability::Pure, action, call)
}

fn action(cx: &ToolContext, args: &ListDir) -> Result<Action, ToolError> {
    let place = cx.place(args.path.as_deref().unwrap_or("."))?;
    if !cx.hides(&place) {
        cx.look(&place)?.open_dir(place.as_path())?;
    }
    Ok(Action { kind: place.reading(), ..Action::read(place.to_string()) })
}

fn call(cx: &ToolContext, args: ListDir, _: &Action, _: bool) -> Result<Output, ToolError> {
    let place = cx.named(args.path.as_deref().unwrap_or("."))?;
    let at = cx.look(&place)?;
    let cx = &*at;
    let depth = args.depth.unwrap_or(1);
    let dir = cx.open_dir(place.as_path())?;
    let mut tree = Listing::default();
    let mut queue = VecDeque::from([PendingFolder {
        row: None,
        path: place.parts().collect(),
        depth: 1,
        rules: if depth > 1 { IgnoreRules::at(&cx.root, &place) } else { IgnoreRules::default() },
    }]);
    let mut first = Some(dir);
    while let Some(folder) = queue.pop_front() {
        cx.check()?;
        let opened = match first.take() {
            Some(dir) => Ok(dir),
            None => cx.open_dir(&folder.path),
        };
        match opened {
            Ok(dir) => folder.list(cx, &dir, depth, &mut tree, &mut queue),
            Err(fatal @ ToolError::Fatal(_)) => return Err(fatal),
            // This folder is gone or hidden; the others are still listed.
            Err(ToolError::Correctable(_) | ToolError::Refused { .. } | ToolError::Unknown(_) | ToolError::Asks(_)) => {
                tree.unread += 1
            }
        }
    }
    Ok(Output::text(tree.show(&place.to_string(), depth > 1)))
}

/// A folder that is yet to be listed.
struct PendingFolder {
    /// Its row in the tree; the one that was asked for has none.
    row: Option<usize>,
    path: PathBuf,
    depth: u32,
    rules: IgnoreRules,
}

impl PendingFolder {
    fn list(
        self,
        cx: &ToolContext,
        dir: &OwnedFd,
        depth_max: u32,
        tree: &mut Listing,
        queue: &mut VecDeque<PendingFolder>,
    ) {
        let Ok(found) = walk::entries(dir) else {
            tree.unread += 1;
            return;
        };
        let rules = if depth_max > 1 { self.rules.within(&cx.root, dir, &self.path) } else { self.rules };
        let mut left_out = usize::from(found.more);
        for entry in found.entries {
            let path = self.path.join(&entry.name);
            let is_dir = entry.kind == FileType::Directory;
            if depth_max > 1 && rules.hide(&cx.root.path().join(&path), is_dir) {
                tree.ignored += 1;
                continue;
            }
            if !cx.sight.is_visible(&path.to_string_lossy()) {
                tree.unseen += 1;
                continue;
            }
            if tree.rows.len() >= LIST_ENTRIES_MAX {
                left_out += 1;
                continue;
            }
            let row = tree.add(self.row, label(cx, dir, &path, &entry));
            if is_dir && self.depth < depth_max && entry.name != ".git" {
                queue.push_back(PendingFolder { row: Some(row), path, depth: self.depth + 1, rules: rules.clone() });
            }
        }
        tree.left_out += left_out;
    }
}

/// One line about one name.
fn label(cx: &ToolContext, dir: &OwnedFd, full: &Path, entry: &DirEntry) -> String {
    let name = clip(&visible(&entry.name.to_string_lossy()), NAME_BYTES_MAX);
    let path = Path::new(&entry.name);
    match entry.kind {
        FileType::Directory => format!("{name}/"),
        FileType::RegularFile => match statat(dir, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => format!("{name}  {}", size(bytes_in(&stat))),
            Err(_) => name,
        },
        FileType::Symlink => match readlinkat(dir, path, Vec::new()) {
            Ok(target) if is_seen(cx, full, &target.to_string_lossy()) => {
                format!("{name} -> {}", clip(&visible(&target.to_string_lossy()), NAME_BYTES_MAX))
            }
            _ => format!("{name} -> ?"),
        },
        _ => format!("{name}  (not a file)"),
    }
}

/// Whether what a link points to may be named.
fn is_seen(cx: &ToolContext, link: &Path, target: &str) -> bool {
    let beside = link.parent().unwrap_or(Path::new("")).join(target);
    // One that leads out names nothing that we keep, unless a part of it does.
    let path =
        cx.root.place(&beside.to_string_lossy()).map_or_else(|_| target.to_owned(), |place| place.as_str().to_owned());
    cx.sight.is_whole() || cx.sight.is_visible(&path)
}

/// What was found, each row under the one it belongs to.
#[derive(Debug, Default)]
struct Listing {
    rows: Vec<ListingRow>,
    top: Vec<usize>,
    ignored: usize,
    unseen: usize,
    left_out: usize,
    unread: usize,
}

#[derive(Debug)]
struct ListingRow {
    label: String,
    below: Vec<usize>,
}

impl Listing {
    fn add(&mut self, above: Option<usize>, label: String) -> usize {
        let row = self.rows.len();
        self.rows.push(ListingRow { label, below: Vec::new() });
        match above.and_then(|above| self.rows.get_mut(above)) {
            Some(above) => above.below.push(row),
            None => self.top.push(row),
        }
        row
    }

    fn show(&self, place: &str, is_deep: bool) -> String {
        let mut text = format!("{}/\n", place.trim_end_matches('/'));
        let mut shown = 0;
        // Last in, first out: the rows of a level are put on in reverse.
        let mut stack: Vec<(usize, usize)> = self.top.iter().rev().map(|row| (*row, 1)).collect();
        while let Some((index, level)) = stack.pop() {
            let Some(row) = self.rows.get(index) else { continue };
            if text.len() + row.label.len() > TOOL_RESULT_BYTES_MAX - 1_000 {
                break;
            }
            let _ = writeln!(text, "{:width$}{}", "", row.label, width = 2 * level);
            shown += 1;
            stack.extend(row.below.iter().rev().map(|below| (*below, level + 1)));
        }
        let mut notes = Vec::new();
        if self.rows.is_empty() && self.left_out + self.unseen == 0 {
            notes.push("empty".to_owned());
        }
        let left_out = self.left_out + self.rows.len() - shown;
        if left_out > 0 {
            notes.push(format!(
                "at least {} not shown; list the folders inside one by one",
                many(left_out, "more name")
            ));
        }
        if is_deep && self.ignored > 0 {
            notes.push(format!("{} ignored by .gitignore not shown", many(self.ignored, "name")));
        }
        if self.unseen > 0 {
            notes.push(format!("{} not for you to see left out", many(self.unseen, "name")));
        }
        if self.unread > 0 {
            notes.push(format!("{} could not be read", many(self.unread, "folder")));
        }
        if !notes.is_empty() {
            let _ = write!(text, "[{}]", notes.join("; "));
        }
        text
    }
}
