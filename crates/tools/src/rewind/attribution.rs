//! The commands that a change belongs to.
//!
//! A change belongs to all commands that ran since the last look. A command whose process was killed ended at a known time: changes
//! after it are the user's, unless another command runs, and are named, because the command may have changed the same file before.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use max_team_core::limits::{REWIND_FILES_MAX, REWIND_LATER_MAX};
use max_team_core::rewind::{FileChange, FileState, SkippedChange, SkippedReason};

use super::commands::{CommandNote, KilledCommand, TreeCommands};
use super::tree::TreeStep;

/// The changes of one look, as steps of the commands that they belong to; changes of the user are left out.
pub(super) fn attributed(root: &Path, changes: Vec<FileChange>, commands: &TreeCommands) -> Vec<TreeStep> {
    // Of a command without a known end no change is known.
    let killed: Vec<&KilledCommand> = commands.killed.iter().filter(|killed| killed.ended.is_some()).collect();
    // A step without changes still says that the killed commands were looked after.
    let mut steps: BTreeMap<usize, (Vec<FileChange>, Vec<SkippedChange>)> = BTreeMap::new();
    if !killed.is_empty() {
        steps.insert(killed.len(), Default::default());
    }
    for change in changes {
        let time = if killed.is_empty() { None } else { changed_at(root, &change) };
        // Those that ended last are the authors of the latest changes.
        let count = killed.iter().filter(|killed| time.is_some_and(|time| killed.ended >= Some(time))).count();
        if count > 0 || !commands.running.is_empty() {
            steps.entry(count).or_default().0.push(change);
        } else if let Some((_, left)) = steps.get_mut(&killed.len()).filter(|(_, left)| left.len() < REWIND_LATER_MAX) {
            left.push(SkippedChange { path: change.path, why: SkippedReason::Later });
        }
    }
    let mut latest = killed;
    latest.sort_by_key(|killed| Reverse(killed.ended));
    let step = |(count, (changes, left)): (usize, (Vec<FileChange>, Vec<SkippedChange>))| {
        let authors = latest.iter().take(count).map(|killed| &killed.entry);
        bounded(root, authors.chain(&commands.running).collect(), changes, left)
    };
    steps.into_iter().rev().map(step).collect()
}

fn bounded(
    root: &Path,
    authors: Vec<&CommandNote>,
    changes: Vec<FileChange>,
    mut left: Vec<SkippedChange>,
) -> TreeStep {
    let since_ms = authors.iter().map(|entry| entry.since_ms).min().unwrap_or_default();
    let callers = authors.into_iter().map(|entry| entry.caller.clone()).collect();
    let root = root.to_owned();
    if changes.len() > REWIND_FILES_MAX {
        let left = vec![SkippedChange { path: String::new(), why: SkippedReason::Many }];
        return TreeStep { root, callers, changes: Vec::new(), left, since_ms };
    }
    let large = changes.iter().filter(|change| change.before.is_large());
    left.extend(large.map(|change| SkippedChange { path: change.path.clone(), why: SkippedReason::Large }));
    TreeStep { root, callers, changes, left, since_ms }
}

/// When a file was last changed; of a removed file, when something in its folder last was.
fn changed_at(root: &Path, change: &FileChange) -> Option<SystemTime> {
    let path = root.join(&change.path);
    let above = path.ancestors().skip(usize::from(change.after == FileState::Gone));
    let known = above.take_while(|path| path.starts_with(root)).find_map(|path| fs::symlink_metadata(path).ok())?;
    let (seconds, nanos) = (u64::try_from(known.ctime()).ok()?, u32::try_from(known.ctime_nsec()).ok()?);
    Some(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos))
}
