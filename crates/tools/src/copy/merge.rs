//! Files of a copy on their way into the project, or not.
//!
//! What will be done is written down first, with how each file was and will be. Each file is then replaced in one step,
//! if it still is as it was. After a crash the list is gone through again: a file is as it was, and is replaced; or as
//! it will be, and that was done; or somebody else's, and is left. The same files come out as if nothing had happened.

use std::path::Path;

use max_team_core::policy::Sight;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::review::{Fate, IS, Review};
use super::{Change, Copy, CopyError, Settled, State, record, root};
use crate::files::{Content, Root, prune, swap};
use crate::tool::ToolError;

/// Where it is written down.
pub(super) const FILE: &str = "merge.json";

/// What is to be merged.
#[derive(Debug, Clone, Copy)]
pub struct Accept<'a> {
    /// These files; `None`: all that differ.
    pub files: Option<&'a [String]>,
    /// Nothing is merged unless all of them can be.
    pub whole: bool,
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
        self.go_on(step)?;
        // Whoever names a file that was said no to has changed their mind.
        for file in accept.files.unwrap_or_default() {
            self.record.settled.remove(clean(file));
        }
        let review = self.look(accept.sight, cancel)?;
        let chosen = chosen(&review, accept.files)?;
        let mut merged = Merged::default();
        let mut items = Vec::new();
        for change in &chosen {
            match &change.fate {
                Fate::Ready => items.push(item(change)),
                Fate::Done => merged.files.push(change.path.clone()),
                Fate::Rejected => {}
                Fate::Conflict { why } | Fate::Refused { why } => merged.stuck.push((change.path.clone(), why.clone())),
            }
        }
        if !(accept.whole && !merged.stuck.is_empty() || items.is_empty()) {
            record::write(&self.home.join(FILE), &Intent { items })?;
            let done = self.go_on(step)?;
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
        self.go_on(&mut |_| {})?;
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

    /// Finishes a merge that another process began. Blocking.
    pub(super) fn finish(&mut self, cancel: &CancellationToken, step: &mut dyn FnMut(Step)) -> Result<(), CopyError> {
        let _held = self.hold_anew()?;
        if cancel.is_cancelled() {
            return Ok(());
        }
        self.go_on(step).map(drop)
    }

    fn undecided(&self, review: &Review) -> usize {
        let is_settled = |change: &&Change| {
            let settled = self.record.settled.get(&change.path);
            settled.is_some_and(|settled| settled.after == change.after)
        };
        review.open().filter(|change| !is_settled(change)).count()
    }

    /// Does what is written down, from wherever it stands.
    fn go_on(&mut self, step: &mut dyn FnMut(Step)) -> Result<Merged, CopyError> {
        let mut merged = Merged::default();
        let Some(mut intent) = record::read::<Intent>(&self.home.join(FILE))? else { return Ok(merged) };
        let (project, is) = (root(&self.record.project)?, root(&self.home.join(IS))?);
        // Files that go make room for those that come; those deep down go first.
        intent.items.sort_by_key(|item| (item.after != State::Gone, std::cmp::Reverse(item.path.matches('/').count())));
        let of = intent.items.len();
        for (done, item) in intent.items.into_iter().enumerate() {
            step(Step { done, of });
            match put(&project, &is, &item, &self.root()) {
                Ok(()) => {
                    let settled = Settled { accepted: true, after: item.after };
                    self.record.settled.insert(item.path.clone(), settled);
                    merged.files.push(item.path);
                }
                Err(ToolError::Correctable(why)) => merged.stuck.push((item.path, why)),
                // The list stays: whoever mends it goes on from here.
                Err(fatal) => return Err(fatal.into()),
            }
        }
        step(Step { done: of, of });
        self.record.write(&self.home)?;
        record::remove(&self.home.join(FILE))?;
        Ok(merged)
    }
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
