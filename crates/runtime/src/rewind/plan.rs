//! What would be put back, and what would not.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use max_team_core::rewind::{Change, Left, Put, State, Step, Trail, trails};
use max_team_tools::diff;
use max_team_tools::rewind::Ground;

use super::Rewind;
use super::log::{Log, To};
use crate::error::RuntimeError;

/// What putting files back to a point comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Files become what they were behind the entry of this number.
    pub behind: u64,
    /// What is put back, in the order in which it is done: what goes makes room for what comes.
    pub puts: Vec<Put>,
    /// What is not.
    pub skipped: Vec<Skipped>,
    /// What was done since that nobody has seen in full.
    pub left: Vec<Left>,
}

/// A file that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The folder that its path lies beneath.
    pub root: String,
    /// Which.
    pub path: String,
    /// Why.
    pub why: Skip,
}

/// Why a file stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// Somebody else has changed it since.
    Changed,
    /// What it was is not kept.
    Lost,
    /// It cannot be looked at: why, in words.
    Unread(String),
}

/// How one file changes when it is put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// Its full path.
    pub path: PathBuf,
    /// As a unified diff; of what is no text, a line that says so.
    pub text: String,
}

/// Where files are, opened once.
struct Grounds<'r, 'j> {
    rewind: &'r Rewind<'j>,
    open: HashMap<String, Option<Ground>>,
}

impl<'r, 'j> Grounds<'r, 'j> {
    fn of(rewind: &'r Rewind<'j>) -> Self {
        Self { rewind, open: HashMap::new() }
    }

    fn at(&mut self, root: &str) -> Option<&Ground> {
        self.open.entry(root.to_owned()).or_insert_with(|| self.rewind.ground(root).ok()).as_ref()
    }
}

impl Rewind<'_> {
    /// What going back to a point comes to. `files`: only these, or what lies beneath them, by their full paths. Blocking.
    pub fn plan(&self, to: To, files: &[PathBuf]) -> Result<Plan, RuntimeError> {
        let log = Log::of(self.journal, self.session)?;
        let nowhere = || RuntimeError::NoPoint { session: self.session, turns: log.turns().len() };
        if to == To::Last {
            return self.plan_last(&log, files);
        }
        let behind = log.point(to).ok_or_else(nowhere)?;
        match log.last_rewound().filter(|_| to == To::Undo) {
            Some((_, rewound)) => {
                let puts = rewound.puts.iter();
                let steps = puts.map(|put| Step { root: &put.root, change: &put.change, is_sure: false });
                self.plan_for(behind, steps, Vec::new(), files)
            }
            None => self.plan_for(behind, log.behind(behind), log.left(behind), files),
        }
    }

    /// One step further back than now: to before the last words after which something was changed, or, where files were put back
    /// since, to before those whose files are not yet as they were then.
    fn plan_last(&self, log: &Log, files: &[PathBuf]) -> Result<Plan, RuntimeError> {
        let rewound = log.last_rewound().map_or(0, |(seq, _)| *seq);
        let (mut earlier, mut skipped) = (Vec::new(), None);
        for behind in log.turns().into_iter().rev() {
            let plan = self.plan_for(behind, log.behind(behind), log.left(behind), files)?;
            if behind > rewound && !plan.puts.is_empty() {
                return Ok(plan);
            }
            if skipped.is_none() && !plan.skipped.is_empty() {
                skipped = Some(plan.clone());
            }
            if behind < rewound {
                earlier.push(plan);
            }
        }
        // Going to where the files were already would only do again what was taken back.
        let reached = earlier.iter().rposition(|plan| plan.puts.is_empty()).map_or(0, |at| at + 1);
        let next = earlier.into_iter().skip(reached).find(|plan| !plan.puts.is_empty());
        Ok(next.or(skipped).unwrap_or_default())
    }

    fn plan_for<'s>(
        &self,
        behind: u64,
        steps: impl Iterator<Item = Step<'s>>,
        left: Vec<Left>,
        files: &[PathBuf],
    ) -> Result<Plan, RuntimeError> {
        let mut plan = Plan { behind, left, ..Plan::default() };
        let (mut grounds, mut folders) = (Grounds::of(self), Vec::new());
        for ((root, path), trail) in trails(steps) {
            let full = Path::new(&root).join(&path);
            if !files.is_empty() && !files.iter().any(|file| full.starts_with(file)) {
                continue;
            }
            // A copy that is no more has nothing in it to put back.
            let Some(ground) = grounds.at(&root) else { continue };
            match ground.look(&path) {
                Ok((now, _)) if now == trail.was => {}
                Ok((State::Other, _)) if trail.leads_to(State::Gone) => folders.push((root, path, trail)),
                Ok((now, _)) => self.add(&mut plan, root, path, &trail, now)?,
                Err(error) => plan.skipped.push(Skipped { root, path, why: Skip::Unread(error.to_string()) }),
            }
        }
        // A folder in the place of a file goes with what was put into it.
        for (root, path, trail) in folders {
            let goes = |put: &Put| {
                let inside = Path::new(&put.change.path).starts_with(&path);
                put.root == root && inside && put.change.after == State::Gone
            };
            let now = if plan.puts.iter().any(goes) { State::Gone } else { State::Other };
            self.add(&mut plan, root, path, &trail, now)?;
        }
        let depth = |put: &Put| Reverse(put.change.path.matches('/').count());
        plan.puts.sort_by_key(|put| (put.change.after != State::Gone, depth(put)));
        Ok(plan)
    }

    fn add(&self, plan: &mut Plan, root: String, path: String, trail: &Trail, now: State) -> Result<(), RuntimeError> {
        if !trail.leads_to(now) {
            plan.skipped.push(Skipped { root, path, why: Skip::Changed });
            return Ok(());
        }
        let is_kept = match (trail.was, trail.was.bytes()) {
            (State::Gone, _) => true,
            (_, Some(hash)) => self.bytes(&root, &hash)?.is_some(),
            (_, None) => false,
        };
        if is_kept {
            plan.puts.push(Put { root, change: Change { path, before: now, after: trail.was } });
        } else {
            plan.skipped.push(Skipped { root, path, why: Skip::Lost });
        }
        Ok(())
    }

    /// How each file changes. Blocking.
    pub fn sheets(&self, plan: &Plan) -> Result<Vec<Sheet>, RuntimeError> {
        let mut grounds = Grounds::of(self);
        let mut sheets = Vec::new();
        for Put { root, change } in &plan.puts {
            let now = grounds.at(root).and_then(|ground| ground.look(&change.path).ok()).and_then(|(_, bytes)| bytes);
            let then = match change.after.bytes() {
                Some(hash) => self.bytes(root, &hash)?,
                None => None,
            };
            let text = shown(change, now.as_deref(), then.as_deref());
            sheets.push(Sheet { path: Path::new(root).join(&change.path), text });
        }
        Ok(sheets)
    }
}

/// One file's change for people.
fn shown(change: &Change, now: Option<&[u8]>, then: Option<&[u8]>) -> String {
    let path = &change.path;
    let is_file = |state| matches!(state, State::File { .. });
    let texts = now.map_or(Ok(""), std::str::from_utf8).ok().zip(then.map_or(Ok(""), std::str::from_utf8).ok());
    let is_link = matches!(change.before, State::Link { .. }) || matches!(change.after, State::Link { .. });
    let mut text = match texts.filter(|_| !is_link) {
        Some((now, then)) => diff::unified(path, is_file(change.before).then_some(now), then),
        None => {
            let what = |state: State, bytes: Option<&[u8]>| match state {
                State::Link { .. } => format!("a link to {}", String::from_utf8_lossy(bytes.unwrap_or_default())),
                State::Gone => "nothing".to_owned(),
                _ => format!("{} bytes", bytes.unwrap_or_default().len()),
            };
            let (now, then) = (what(change.before, now), what(change.after, then));
            let shown = max_team_core::text::visible(&format!("{path}: {now} becomes {then}"));
            format!("{shown}\n")
        }
    };
    if let (State::File { program: now, .. }, State::File { program: then, .. }) = (change.before, change.after)
        && now != then
    {
        text.push_str(if then { "mode: becomes executable\n" } else { "mode: no longer executable\n" });
    }
    text
}
