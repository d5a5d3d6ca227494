//! Files of a copy on their way into the project, or not.
//!
//! What will be done is written down first, with how each file was and will be. Each file is then replaced in one step,
//! if it still is as it was. After a crash the list is gone through again: a file is as it was, and is replaced; or as
//! it will be, and that was done; or somebody else's, and is left. The same files come out as if nothing had happened.
//!
//! A merge that is whole or nothing goes the other way: what was done of it is taken back, also after a crash, so that
//! nothing lands for somebody who has given it up meanwhile. Whoever still wants it begins again.

use std::path::Path;

use max_team_core::policy::Sight;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::review::{Fate, IS, Review, WAS};
use super::{Change, Copy, CopyError, Settled, State, record, root};
use crate::files::{Content, Root, prune, state, swap};
use crate::git::GitError;
use crate::tool::ToolError;

/// Where it is written down.
pub(super) const FILE: &str = "merge.json";

/// Why a file is not merged.
const MEANWHILE: &str = "it has changed in the project meanwhile";
const SINCE: &str = "it has changed in the copy since it was looked at";

/// What is to be merged.
#[derive(Debug, Clone, Copy)]
pub struct Accept<'a> {
    /// These files; `None`: all that differ.
    pub files: Option<&'a [String]>,
    /// Nothing is merged unless all of them can be.
    pub whole: bool,
    /// Only what was seen in this look, and only as it was then; `None`: whatever there is.
    pub shown: Option<&'a Review>,
    /// What may be changed in the project.
    pub sight: &'a Sight,
}

/// What came of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Files that are in the project now.
    pub files: Vec<String>,
    /// Files that are not, and why.
    pub stuck: Vec<(String, String)>,
    /// How many files nobody has decided about yet, those in conflict included.
    pub open: usize,
}

/// How far a merge is: said before each file and after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Files that are done.
    pub done: usize,
    /// Files there are.
    pub of: usize,
}

/// What a merge will do.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    items: Vec<Item>,
    /// All of them, or none.
    #[serde(default)]
    whole: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Item {
    path: String,
    before: State,
    after: State,
}

impl Copy {
    /// Merges files into the project. Blocking.
    pub fn accept(
        &mut self,
        accept: &Accept<'_>,
        cancel: &CancellationToken,
        step: &mut dyn FnMut(Step),
    ) -> Result<Merged, CopyError> {
        let _held = self.hold_anew()?;
        self.go_on(cancel, step)?;
        // Whoever names a file that was said no to has changed their mind.
        for file in accept.files.unwrap_or_default() {
            self.record.settled.remove(clean(file));
        }
        let mut review = self.look(accept.sight, cancel)?;
        let mut merged = Merged::default();
        if let Some(shown) = accept.shown {
            merged.stuck = keep_to(&mut review, shown);
        }
        let mut items = Vec::new();
        for change in chosen(&review, accept.files)? {
            match &change.fate {
                Fate::Ready => items.push(item(change)),
                Fate::Done => merged.files.push(change.path.clone()),
                Fate::Rejected => {}
                Fate::Conflict { why } | Fate::Refused { why } => merged.stuck.push((change.path.clone(), why.clone())),
            }
        }
        if !(accept.whole && !merged.stuck.is_empty() || items.is_empty()) {
            if cancel.is_cancelled() {
                return Err(GitError::Stopped.into());
            }
            record::write(&self.home.join(FILE), &Intent { items, whole: accept.whole })?;
            let done = if accept.whole { self.go_whole(cancel, step)? } else { self.go_on(cancel, step)? };
            merged.files.extend(done.files);
            merged.stuck.extend(done.stuck);
        }
        merged.files.sort();
        merged.open = self.undecided(&review);
        self.record.open = Some(merged.open);
        self.record.write(&self.home)?;
        Ok(merged)
    }

    /// Says no to files; they stay in the copy. Blocking.
    pub fn reject(&mut self, files: &[String], sight: &Sight, cancel: &CancellationToken) -> Result<usize, CopyError> {
        let _held = self.hold_anew()?;
        self.go_on(cancel, &mut |_| {})?;
        let review = self.look(sight, cancel)?;
        for change in chosen(&review, Some(files))? {
            let settled = Settled { accepted: false, after: change.after };
            self.record.settled.insert(change.path.clone(), settled);
        }
        let open = self.undecided(&review);
        self.record.open = Some(open);
        self.record.write(&self.home)?;
        Ok(open)
    }

    /// Finishes a merge that another process began, or takes it back. Blocking.
    pub(super) fn finish(&mut self, cancel: &CancellationToken, step: &mut dyn FnMut(Step)) -> Result<(), CopyError> {
        let _held = self.hold_anew()?;
        if cancel.is_cancelled() {
            return Ok(());
        }
        self.go_on(cancel, step).map(drop)
    }

    fn undecided(&self, review: &Review) -> usize {
        let is_settled = |change: &&Change| {
            let settled = self.record.settled.get(&change.path);
            settled.is_some_and(|settled| settled.after == change.after)
        };
        review.open().filter(|change| !is_settled(change)).count()
    }

    /// Does what is written down, from wherever it stands; takes back what was to be whole and is not.
    fn go_on(&mut self, cancel: &CancellationToken, step: &mut dyn FnMut(Step)) -> Result<Merged, CopyError> {
        let Some(intent) = self.intent()? else { return Ok(Merged::default()) };
        if intent.whole {
            self.go_back(&intent)?;
            return Ok(Merged::default());
        }
        let merged = self.go(&intent, false, cancel, step)?;
        self.record.write(&self.home)?;
        record::remove(&self.home.join(FILE))?;
        Ok(merged)
    }

    /// Does all that is written down, or nothing.
    fn go_whole(&mut self, cancel: &CancellationToken, step: &mut dyn FnMut(Step)) -> Result<Merged, CopyError> {
        let Some(intent) = self.intent()? else { return Ok(Merged::default()) };
        let project = root(&self.record.project)?;
        let settled = self.record.settled.clone();
        let changed = |item: &&Item| !item.fits(&project);
        let others = intent.items.iter().filter(changed).map(|item| (item.path.clone(), MEANWHILE.to_owned()));
        let others: Vec<_> = others.collect();
        let merged = match others.is_empty() {
            true => self.go(&intent, true, cancel, step),
            false => Ok(Merged { stuck: others, ..Merged::default() }),
        };
        match merged {
            Ok(merged) if merged.stuck.is_empty() => {
                self.record.write(&self.home)?;
                record::remove(&self.home.join(FILE))?;
                Ok(merged)
            }
            // What cannot be taken back now stays written down, and is taken back by whoever comes next.
            other => {
                self.record.settled = settled;
                self.go_back(&intent)?;
                other.map(|merged| Merged { stuck: merged.stuck, ..Merged::default() })
            }
        }
    }

    /// What is written down, in the order in which it is done: files that go make room for those that come, and those
    /// deep down go first.
    fn intent(&self) -> Result<Option<Intent>, CopyError> {
        let mut intent: Option<Intent> = record::read(&self.home.join(FILE))?;
        if let Some(intent) = &mut intent {
            let depth = |item: &Item| std::cmp::Reverse(item.path.matches('/').count());
            intent.items.sort_by_key(|item| (item.after != State::Gone, depth(item)));
        }
        Ok(intent)
    }

    /// Puts one file after the other; `whole`: up to the first that cannot be, and while somebody wants it.
    fn go(
        &mut self,
        intent: &Intent,
        whole: bool,
        cancel: &CancellationToken,
        step: &mut dyn FnMut(Step),
    ) -> Result<Merged, CopyError> {
        let (project, is) = (root(&self.record.project)?, root(&self.home.join(IS))?);
        let (of, mut merged) = (intent.items.len(), Merged::default());
        for (done, item) in intent.items.iter().enumerate() {
            step(Step { done, of });
            if whole && cancel.is_cancelled() {
                return Err(GitError::Stopped.into());
            }
            match put(&project, &is, item, &self.root()) {
                Ok(()) => {
                    let settled = Settled { accepted: true, after: item.after };
                    self.record.settled.insert(item.path.clone(), settled);
                    merged.files.push(item.path.clone());
                }
                Err(ToolError::Correctable(why)) => {
                    merged.stuck.push((item.path.clone(), why));
                    if whole {
                        return Ok(merged);
                    }
                }
                // The list stays: whoever mends it goes on from here.
                Err(fatal) => return Err(fatal.into()),
            }
        }
        step(Step { done: of, of });
        Ok(merged)
    }

    /// Takes back what was done of a merge, in the other order. What somebody has changed since is theirs.
    fn go_back(&self, intent: &Intent) -> Result<(), CopyError> {
        let (project, was) = (root(&self.record.project)?, root(&self.home.join(WAS))?);
        for item in intent.items.iter().rev() {
            match put_back(&project, &was, item) {
                Ok(()) | Err(ToolError::Correctable(_)) => {}
                Err(fatal) => return Err(fatal.into()),
            }
        }
        record::remove(&self.home.join(FILE))
    }
}

impl Item {
    /// Whether the project has it as it was, or as it will be.
    fn fits(&self, project: &Root) -> bool {
        let now = project.place(&self.path).and_then(|place| state(project, &place));
        // A folder makes room once it is empty.
        now.is_ok_and(|now| {
            now == self.before || now == self.after || (self.before, now) == (State::Gone, State::Other)
        })
    }
}

fn put_back(project: &Root, was: &Root, item: &Item) -> Result<(), ToolError> {
    let place = project.place(&item.path)?;
    let now = state(project, &place)?;
    // A link makes room before a file takes its place.
    let made_room = now == State::Gone && matches!((item.before, item.after), (State::Link { .. }, State::File { .. }));
    if now != item.after && !made_room {
        return Ok(());
    }
    let content = if item.before == State::Gone { Some(Content::Gone) } else { Content::read(was, &place)? };
    if let Some(content) = content.filter(|content| content.state() == item.before) {
        swap(project, &Sight::default(), &place, now, &content)?;
    }
    if item.before == State::Gone {
        prune(project, &place, &|_| true);
    }
    Ok(())
}

fn put(project: &Root, is: &Root, item: &Item, tree: &Path) -> Result<(), ToolError> {
    let place = project.place(&item.path)?;
    let content = if item.after == State::Gone { Some(Content::Gone) } else { Content::read(is, &place)? };
    let same = content.filter(|content| content.state() == item.after);
    let content = same.ok_or_else(|| ToolError::correctable(format!("`{place}` is not what was shown any more")))?;
    // The rules were asked when it was chosen; what is obeyed is kept once more.
    swap(project, &Sight::default(), &place, item.before, &content)?;
    if item.after == State::Gone {
        prune(project, &place, &|folder| tree.join(folder).symlink_metadata().map_or(true, |meta| !meta.is_dir()));
    }
    Ok(())
}

fn item(change: &Change) -> Item {
    Item { path: change.path.clone(), before: change.before, after: change.after }
}

/// Leaves of a look only what was shown before, as it was shown; hands back what was shown and is not there any more.
fn keep_to(review: &mut Review, shown: &Review) -> Vec<(String, String)> {
    review.changes.retain_mut(|change| {
        let known = shown.changes.iter().find(|known| known.path == change.path);
        if known.is_some_and(|known| known.after != change.after) {
            change.fate = Fate::Conflict { why: SINCE.to_owned() };
        }
        known.is_some()
    });
    let is_there = |known: &&Change| review.changes.iter().any(|change| change.path == known.path);
    let gone = shown.changes.iter().filter(|known| !is_there(known));
    gone.map(|known| (known.path.clone(), SINCE.to_owned())).collect()
}

fn clean(file: &str) -> &str {
    file.trim_start_matches("./")
}

/// The changes of these files; of all, if none are named.
fn chosen<'r>(review: &'r Review, files: Option<&[String]>) -> Result<Vec<&'r Change>, CopyError> {
    let Some(files) = files else { return Ok(review.changes.iter().collect()) };
    let find = |file: &String| {
        let found = review.changes.iter().find(|change| change.path == clean(file));
        found.ok_or_else(|| CopyError::NotChanged(file.clone()))
    };
    files.iter().map(find).collect()
}
