//! Rewind: what steps did to files, and which of it can be undone without losing changes of the user.
//!
//! A step records the state of each file before and after it. The steps after a point, in order, form a [`FileHistory`] per
//! file: it begins with the state at that point, and it is whole as long as each step begins where the last one ended.
//! If it is not, the file was changed outside these steps and counts as the user's. Nothing here touches the disk.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::hash::Hash;
use crate::message::Principal;
use crate::policy::command_line::{RedirectTarget, SimpleCommand};
use crate::policy::program::{self, CommandEffect};
use crate::policy::{Action, ActionKind, CommandLine, Repeatability};

/// Write permission of owner, group and others.
const WRITE: u16 = 0o222;

/// The state of a path, as far as needed to tell one content from another.
#[derive(Debug, Clone, Copy, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// There is nothing at the path.
    Gone,
    /// A regular file.
    File {
        /// Hash of its content.
        hash: Hash,
        /// Whether it is executable.
        program: bool,
        /// Whether only its owner may read it. Not compared: a restore needs it, and older steps do not record it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        private: bool,
        /// Its permissions (`0o640`); not recorded by older steps, nor for files in a worktree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u16>,
    },
    /// A symbolic link.
    Link {
        /// Hash of its target.
        hash: Hash,
    },
    /// A file that is too large to keep. Older steps, and files in a worktree, record no more about it.
    Large,
    /// A file that is too large to keep, identified by its metadata, which every write changes.
    Bulky {
        /// Size in bytes.
        size: u64,
        /// Hash of its metadata.
        print: Hash,
    },
    /// Something else: a folder, a pipe.
    Other,
}

impl PartialEq for FileState {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { hash, program, .. }, Self::File { hash: other, program: runs, .. }) => {
                (hash, program) == (other, runs)
            }
            (Self::Link { hash }, Self::Link { hash: other }) => hash == other,
            (Self::Bulky { print, .. }, Self::Bulky { print: other, .. }) => print == other,
            (Self::Gone, Self::Gone) | (Self::Large, Self::Large) | (Self::Other, Self::Other) => true,
            _ => false,
        }
    }
}

impl FileState {
    /// Whether both states can be the same, as far as both record it: equal and with the same permissions.
    pub fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Large, Self::Bulky { .. }) | (Self::Bulky { .. }, Self::Large) => true,
            _ => self == other && self.mode().zip(other.mode()).is_none_or(|(mode, other)| mode == other),
        }
    }

    /// Whether it is a file that is too large to keep.
    pub fn is_large(&self) -> bool {
        matches!(self, Self::Large | Self::Bulky { .. })
    }

    /// Its permissions, if it is a file and they are known.
    pub fn mode(&self) -> Option<u16> {
        match self {
            Self::File { mode, .. } => *mode,
            _ => None,
        }
    }

    /// The same state with these permissions, if it is a file.
    #[must_use]
    pub fn with_mode(self, mode: Option<u16>) -> Self {
        match self {
            Self::File { hash, program, private, .. } => Self::File { hash, program, private, mode },
            other => other,
        }
    }

    /// What remains known of the file at another place: permissions and metadata belong to one place.
    #[must_use]
    pub fn at_other_path(self) -> Self {
        if self.is_large() { Self::Large } else { self.with_mode(None) }
    }

    /// The state after this file replaced `old`: with the permissions of `old`, if both or neither are executable.
    #[must_use]
    pub fn replacing(self, old: Self) -> Self {
        match (self, old) {
            (Self::File { program, .. }, Self::File { program: ran, mode, .. }) if program == ran => {
                self.with_mode(mode)
            }
            _ => self.with_mode(None),
        }
    }

    /// Hash of the content of a file or link.
    pub fn bytes(&self) -> Option<Hash> {
        match self {
            Self::File { hash, .. } | Self::Link { hash } => Some(*hash),
            Self::Gone | Self::Large | Self::Bulky { .. } | Self::Other => None,
        }
    }
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path relative to the root.
    pub path: String,
    /// The state before the change.
    pub before: FileState,
    /// The state after the change.
    pub after: FileState,
}

/// A change that cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedChange {
    /// The path; empty for all files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Why it cannot be undone.
    pub why: SkippedReason,
}

/// Why a change cannot be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkippedReason {
    /// A file that is too large to keep.
    Large,
    /// More files, or more bytes in all, than are kept.
    Many,
    /// The scan took too long.
    Slow,
    /// It could not be read or kept.
    Unread,
    /// The command continues in the background: its changes are not observed.
    Background,
    /// The command was interrupted, and no supervisor could note when it was killed.
    Cut,
    /// It was killed, and the file was changed later: the file counts as the user's.
    Later,
}

/// The changes of an agent's step: committed with the intent of a file tool, or with the result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesChanged {
    /// Key of the tool call.
    pub key: String,
    /// The folder that the paths are relative to.
    pub root: String,
    /// The changes of files.
    pub changes: Vec<FileChange>,
    /// Changes that cannot be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<SkippedChange>,
    /// Whether the changes were observed after the call; if not, they are what the call is about to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen: bool,
    /// Protected files that the call made without the user's approval, and that were moved away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFile>,
    /// Time of the previous scan, in milliseconds since 1970: changes by others since then may be included. 0: the
    /// scan was made when the call began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since_ms: i64,
    /// Further calls that ran while the files changed: a change may come from any of them. In the session's stream,
    /// entries here and `key` consist of an agent's stream and the key of its call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

impl FilesChanged {
    /// A step of a call in a folder, without changes so far.
    pub fn new(key: String, root: &Path) -> Self {
        Self {
            key,
            root: root.display().to_string(),
            changes: Vec::new(),
            left: Vec::new(),
            seen: false,
            moved: Vec::new(),
            since_ms: 0,
            also: Vec::new(),
        }
    }

    /// The calls that the step belongs to: an agent's stream and the key of a call there.
    pub fn calls<'s>(&'s self, stream: &'s str) -> impl Iterator<Item = (&'s str, &'s str)> {
        let call = move |key: &'s str| key.split_once(' ').filter(|(by, _)| is_agent(by)).unwrap_or((stream, key));
        std::iter::once(&self.key).chain(&self.also).map(move |key| call(key))
    }
}

/// Whether a stream is an agent's: each call there has an end in the log.
pub fn is_agent(stream: &str) -> bool {
    stream.starts_with("agent/")
}

/// A protected file that a command created without the user's approval, and that was moved away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedFile {
    /// The absolute path that the command gave it.
    pub path: String,
    /// Where it is now; empty if it could not be moved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A file that a rewind restores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredFile {
    /// The folder that its path is relative to.
    pub root: String,
    /// From the present state to the earlier one.
    pub change: FileChange,
}

/// A rewind is about to restore files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewound {
    /// Id of the rewind.
    pub id: Uuid,
    /// Files get the state that they had after the entry of this number.
    pub behind: u64,
    /// The files to restore.
    pub puts: Vec<RestoredFile>,
    /// The person who asked for it, and the frontend they used; older entries do not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
}

/// A rewind has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindEnded {
    /// Id of the rewind.
    pub id: Uuid,
    /// Files that could not be restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedRestore>,
}

/// A file that a rewind could not restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRestore {
    /// The folder that its path is relative to.
    pub root: String,
    pub path: String,
    /// The reason for people.
    pub why: String,
}

/// Note to the lead about restored files, beside the message that begins its turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RewindNote {
    /// Text for the model.
    pub text: String,
    /// The first of the files, for display; older messages do not list them.
    #[serde(default)]
    pub files: Vec<String>,
    /// How many there are.
    #[serde(default)]
    pub count: usize,
    /// The rewind was undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// The history of one file after a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHistory {
    /// Its state at that point.
    pub was: FileState,
    /// The states that the last step may have left.
    now: Vec<FileState>,
    is_whole: bool,
}

impl FileHistory {
    fn begin(change: &FileChange, is_sure: bool) -> Self {
        let now = if is_sure { vec![change.after] } else { vec![change.before, change.after] };
        Self { was: change.before, now, is_whole: true }
    }

    fn follow(&mut self, change: &FileChange, is_sure: bool) {
        let (begins, ends) = (self.may_be(change.before), self.may_be(change.after));
        // A step that leads to the present state is the same change, observed by two calls that ran at the same time.
        self.is_whole &= begins || ends;
        match (begins, is_sure) {
            (true, false) => self.now.push(change.after),
            (false, false) if ends => {}
            (false, false) => self.now = vec![change.before, change.after],
            (_, true) => self.now = vec![change.after],
        }
    }

    /// Whether the present state was left by the steps alone, so that restoring the file loses no other change.
    pub fn leads_to(&self, now: FileState) -> bool {
        // A file without write permission counts as the user's, unless a step recorded that it removed the permission.
        let is_closed = now.mode().is_some_and(|mode| mode & WRITE == 0);
        let is_said = || self.now.iter().any(|known| known.fits(&now) && known.mode() == now.mode());
        self.is_whole && self.may_be(now) && (!is_closed || is_said())
    }

    /// Whether the steps recorded that they left exactly this state.
    pub fn names(&self, now: FileState) -> bool {
        self.is_whole && self.now.contains(&now)
    }

    fn may_be(&self, state: FileState) -> bool {
        self.now.iter().any(|now| now.fits(&state))
    }
}

/// One change of one file, and whether it is known to have happened.
#[derive(Debug, Clone, Copy)]
pub struct FileStep<'a> {
    /// The folder that the path is relative to.
    pub root: &'a str,
    pub change: &'a FileChange,
    /// Whether it is known to have happened; if not, it may have.
    pub is_sure: bool,
}

/// The trail of every file that these steps, in order, have touched, by root and path.
pub fn file_histories<'a>(steps: impl IntoIterator<Item = FileStep<'a>>) -> BTreeMap<(String, String), FileHistory> {
    let mut histories: BTreeMap<(String, String), FileHistory> = BTreeMap::new();
    for FileStep { root, change, is_sure } in steps {
        let key = (root.to_owned(), change.path.clone());
        match histories.get_mut(&key) {
            Some(trail) => trail.follow(change, is_sure),
            None => drop(histories.insert(key, FileHistory::begin(change, is_sure))),
        }
    }
    histories
}

/// Removes changes that other steps recorded themselves from a change that a scan found, so that each change belongs
/// to one step. `others` are in order, each with whether it is known to have happened. Each remaining part comes with
/// the index of the other that it happened before.
pub fn without_recorded(found: &FileChange, others: &[(&FileChange, bool)]) -> Vec<(usize, FileChange)> {
    let mut parts = Vec::new();
    let mut now = found.before;
    // The others up to here happened before the scan that the change begins with.
    let first = others.iter().rposition(|(other, _)| other.after.fits(&now)).map_or(0, |at| at + 1);
    let mut part = |at: usize, before: FileState, after: FileState| {
        if !before.fits(&after) {
            parts.push((at, FileChange { path: found.path.clone(), before, after }));
        }
    };
    for (at, (other, is_sure)) in others.iter().enumerate().skip(first) {
        if *is_sure || (other.before.fits(&now) && other.after.fits(&found.after)) {
            part(at, now, other.before);
            now = other.after;
        }
    }
    part(others.len(), now, found.after);
    parts
}

/// A change or a restore of one file at one entry of the log.
#[derive(Debug, Clone, Copy)]
pub struct FileTouch<'a> {
    /// Number of the entry.
    pub seq: u64,
    /// The folder that the path is relative to.
    pub root: &'a str,
    pub path: &'a str,
    /// The file was restored to its state after this entry; `None` if a step changed it.
    pub behind: Option<u64>,
}

/// The steps of one file, each with the step it builds on, and the topmost step at each time.
#[derive(Debug, Default)]
struct StepStack {
    steps: Vec<(u64, Option<usize>)>,
    tops: Vec<(u64, Option<usize>)>,
}

impl StepStack {
    fn add(&mut self, seq: u64, behind: Option<u64>) {
        let top = match behind {
            Some(behind) => self.tops.iter().rev().find(|(at, _)| *at <= behind).and_then(|(_, top)| *top),
            None => {
                self.steps.push((seq, self.tops.last().and_then(|(_, top)| *top)));
                self.steps.len().checked_sub(1)
            }
        };
        self.tops.push((seq, top));
    }

    fn standing(&self) -> Vec<u64> {
        let step = |at: Option<usize>| at.and_then(|at| self.steps.get(at));
        let top = step(self.tops.last().and_then(|(_, top)| *top));
        std::iter::successors(top, |(_, below)| step(*below)).map(|(seq, _)| *seq).collect()
    }
}

/// The steps of every file, by root and path, whose changes are still in place, newest first. Restoring a file leaves
/// the steps that were in place at that point, so undoing the restore brings back those that it removed.
pub fn standing_steps<'a>(touches: impl IntoIterator<Item = FileTouch<'a>>) -> BTreeMap<(String, String), Vec<u64>> {
    let mut piles: BTreeMap<(String, String), StepStack> = BTreeMap::new();
    for FileTouch { seq, root, path, behind } in touches {
        piles.entry((root.to_owned(), path.to_owned())).or_default().add(seq, behind);
    }
    piles.into_iter().map(|(file, pile)| (file, pile.standing())).collect()
}

/// Whether a call may change files that it does not name, so that the tree is scanned before and after it.
pub fn is_opaque(class: Repeatability, action: &Action) -> bool {
    match action.kind {
        ActionKind::Execute => {
            let changes = class == Repeatability::Opaque && !action.reach.is_read_only();
            changes && !action.line.as_ref().is_some_and(only_looks)
        }
        ActionKind::Merge => true,
        _ => false,
    }
}

/// Whether a command line only reads, as far as its programs are known.
fn only_looks(line: &CommandLine) -> bool {
    let looks = |part: &SimpleCommand| {
        let facts = program::effects_of(&part.argv);
        let reads = |effect: &CommandEffect| matches!(effect, CommandEffect::Read(_) | CommandEffect::History);
        let is_written =
            part.flows.iter().any(|flow| matches!(flow.to, RedirectTarget::Write(_) | RedirectTarget::Append(_)));
        facts.is_whole && facts.effects.iter().all(reads) && part.env.is_empty() && !is_written
    };
    matches!(line, CommandLine::Plain(parts) if parts.iter().all(looks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> FileState {
        FileState::File { hash: Hash::of(text), program: false, private: false, mode: None }
    }

    #[test]
    fn read_permission_is_recorded_and_not_compared() {
        let old = r#"{"file":{"hash":"HASH","program":true}}"#.replace("HASH", &Hash::of("1").to_string());
        let old: FileState = serde_json::from_str(&old).unwrap();
        let secret = FileState::File { hash: Hash::of("1"), program: true, private: true, mode: None };
        assert_eq!(old, secret);
        assert!(matches!(old, FileState::File { private: false, .. }), "an old step does not say");
        let told: FileState = serde_json::from_str(&serde_json::to_string(&secret).unwrap()).unwrap();
        assert!(matches!(told, FileState::File { private: true, .. }));
    }

    #[test]
    fn other_permissions_alone_are_a_change_where_they_are_known() {
        let (open, closed) = (file("1").with_mode(Some(0o644)), file("1").with_mode(Some(0o640)));
        assert!(open == closed && !open.fits(&closed) && open.fits(&file("1")) && file("1").fits(&closed));
        assert!(
            file("2").with_mode(Some(0o644)) != open && FileState::Gone.with_mode(Some(0o644)).fits(&FileState::Gone)
        );
        let told: FileState = serde_json::from_str(&serde_json::to_string(&closed).unwrap()).unwrap();
        assert_eq!(told.mode(), Some(0o640));

        let changed = trail(&[(change(open, closed), true)]);
        assert!(changed.leads_to(closed) && !changed.leads_to(open), "somebody has opened it again");
        assert_eq!(changed.was.mode(), Some(0o644));
        assert_eq!(without_recorded(&change(open, closed), &[]).len(), 1);
        assert_eq!(without_recorded(&change(open, closed), &[(&change(open, closed), true)]), []);

        let shut = |text: &str| file(text).with_mode(Some(0o444));
        let made = trail(&[(change(FileState::Gone, file("1")), true)]);
        assert!(
            made.leads_to(open) && !made.leads_to(shut("1")),
            "somebody else has closed it, which is to say: hands off"
        );
        assert!(trail(&[(change(open, shut("1")), true)]).leads_to(shut("1")));

        let runs = FileState::File { hash: Hash::of("1"), program: true, private: false, mode: None };
        assert_eq!(file("2").replacing(closed).mode(), Some(0o640));
        assert_eq!((runs.replacing(closed).mode(), closed.replacing(FileState::Gone).mode()), (None, None));
    }

    #[test]
    fn a_large_file_is_told_from_another_where_its_numbers_are_known() {
        let bulky = |print: &str| FileState::Bulky { size: 9, print: Hash::of(print) };
        let made = trail(&[(change(FileState::Gone, bulky("1")), true)]);
        assert!(made.leads_to(bulky("1")) && made.names(bulky("1")) && !made.leads_to(bulky("2")));
        let old = trail(&[(change(FileState::Gone, FileState::Large), true)]);
        assert!(old.leads_to(bulky("1")) && !old.names(bulky("1")), "an old step does not say which");
        let told: FileState = serde_json::from_str("\"large\"").unwrap();
        assert_eq!((told, bulky("1").at_other_path()), (FileState::Large, FileState::Large));
    }

    fn change(before: FileState, after: FileState) -> FileChange {
        FileChange { path: "a".into(), before, after }
    }

    fn trail(steps: &[(FileChange, bool)]) -> FileHistory {
        let steps = steps.iter().map(|(change, is_sure)| FileStep { root: "/p", change, is_sure: *is_sure });
        file_histories(steps).remove(&("/p".to_owned(), "a".to_owned())).unwrap()
    }

    #[test]
    fn a_file_history_is_whole_without_foreign_changes() {
        let (one, two, three) = (file("1"), file("2"), file("3"));
        let whole = trail(&[(change(FileState::Gone, one), true), (change(one, two), true)]);
        assert_eq!(whole.was, FileState::Gone);
        assert!(whole.leads_to(two));
        assert!(!whole.leads_to(one) && !whole.leads_to(three) && !whole.leads_to(FileState::Gone));

        let broken = trail(&[(change(FileState::Gone, one), true), (change(two, three), true)]);
        assert!(!broken.leads_to(three), "somebody made `2` of `1`, and that would be lost");
    }

    #[test]
    fn a_step_that_may_not_have_happened_leads_to_both() {
        let (one, two, three) = (file("1"), file("2"), file("3"));
        let unsure = trail(&[(change(one, two), false)]);
        assert!(unsure.leads_to(one) && unsure.leads_to(two) && !unsure.leads_to(three));
        let again = trail(&[(change(one, two), false), (change(one, three), true)]);
        assert!(again.leads_to(three) && !again.leads_to(two));
        let refused = trail(&[(change(one, two), true), (change(three, one), false)]);
        assert!(!refused.leads_to(three), "it was refused because somebody had made `3` of `2`");
    }

    #[test]
    fn a_change_that_two_calls_observed_counts_once() {
        let (one, two) = (file("1"), file("2"));
        let twice = trail(&[(change(one, two), true), (change(one, two), true)]);
        assert!(twice.leads_to(two));
    }

    #[test]
    fn changes_recorded_by_other_steps_are_removed() {
        let (one, two, three) = (file("1"), file("2"), file("3"));
        let (first, second, back) = (change(one, two), change(two, three), change(two, one));
        let seen = |found: FileChange, others: &[(&FileChange, bool)]| {
            let parts = without_recorded(&found, others).into_iter();
            parts.map(|(at, part)| (at, part.before, part.after)).collect::<Vec<_>>()
        };
        assert_eq!(seen(change(one, two), &[]), [(0, one, two)]);
        assert_eq!(seen(change(one, two), &[(&first, true)]), []);
        assert_eq!(seen(change(one, two), &[(&first, false)]), [], "it may have been, and then it was that");
        assert_eq!(seen(change(one, three), &[(&first, true)]), [(1, two, three)], "the rest is its own");
        assert_eq!(seen(change(one, three), &[(&first, false)]), [(1, one, three)]);
        assert_eq!(seen(change(one, three), &[(&first, true), (&second, true)]), []);
        assert_eq!(seen(change(two, one), &[(&first, true), (&back, true)]), [], "that was put back");
        assert_eq!(seen(change(two, three), &[(&first, true)]), [(1, two, three)], "that was before it looked");
        assert_eq!(seen(change(one, three), &[(&second, true)]), [(0, one, two)], "a tool went on from its change");
        let four = file("4");
        assert_eq!(seen(change(one, four), &[(&second, true)]), [(0, one, two), (1, three, four)]);
    }

    #[test]
    fn a_restored_step_counts_again_after_the_rewind_is_undone() {
        let stand = |touches: &[(u64, Option<u64>)]| {
            let touch =
                |(seq, behind): &(u64, Option<u64>)| FileTouch { seq: *seq, root: "/p", path: "a", behind: *behind };
            standing_steps(touches.iter().map(touch)).remove(&("/p".to_owned(), "a".to_owned())).unwrap()
        };
        let steps = [(2, None), (5, None)];
        assert_eq!(stand(&steps), [5, 2]);
        let back = [&steps[..], &[(7, Some(4))]].concat();
        assert_eq!(stand(&back), [2]);
        let all = [&back[..], &[(8, Some(1))]].concat();
        assert_eq!(stand(&all), [0_u64; 0]);
        let undone = [&all[..], &[(9, Some(7))]].concat();
        assert_eq!(stand(&undone), [2], "taking the last one back brings back what it took away");
        let again = [&undone[..], &[(11, None), (12, Some(6))]].concat();
        assert_eq!(stand(&again), [5, 2], "any point can be gone to, forwards, too");
    }

    #[test]
    fn only_commands_that_may_change_files_are_scanned() {
        let run = |words: &str| {
            let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let action =
                Action { kind: ActionKind::Execute, line: Some(CommandLine::single(&argv)), ..Action::read(words) };
            is_opaque(Repeatability::Opaque, &action)
        };
        for (words, want) in [("ls -l", false), ("cat a", false), ("rm -r a", true), ("make", true), ("touch a", true)]
        {
            assert_eq!(run(words), want, "{words}");
        }
        assert!(!is_opaque(Repeatability::Idempotent, &Action { kind: ActionKind::Write, ..Action::read("a") }));
    }
}
