//! Fault injection for tests: a journal in memory whose process dies at a commit, waits before one, or that has a bug.
//!
//! A caller that awaits the commit at which the process dies waits for ever, as if it had been killed. A handle
//! without faults pays for one lock per commit. The test that plants a bug says what becomes of each commit. Reads go
//! on, because they leave no trace.

use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::watch;

use crate::commit::{Commit, Durability};
use crate::memory::Tables;

/// How a process ends at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// The commit is stored, but neither it nor any later commit returns.
    After,
    /// The commit is not stored.
    Before,
    /// The commit is not stored, and all commits since the last one of full strength are lost.
    PowerCut,
}

/// What a journal with a bug makes of a commit.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one step of a test")]
pub enum Sabotage {
    /// These commits instead, each in its own transaction; the process can die in between.
    Apart(Vec<Commit>),
    /// It is acknowledged before it is stored: it is lost if the process dies before the next commit is stored.
    Early(Commit),
}

/// The faults of one handle, and whether its simulated process has died.
pub(crate) struct FaultInjector {
    faults: Mutex<Faults>,
    dead: watch::Sender<bool>,
}

#[derive(Default)]
struct Faults {
    /// How the process dies, and the commits until then.
    doom: Option<(CrashPoint, u64)>,
    /// The tables after the death, if they differ from those before it.
    left: Option<Box<Tables>>,
    wait: Option<Box<dyn FnMut() -> u32 + Send>>,
    bend: Option<Box<dyn FnMut(Commit) -> Sabotage + Send>>,
}

/// A commit on its way into the tables.
#[derive(Debug)]
pub(crate) struct CommitStep {
    pub(crate) commit: Commit,
    is_early: bool,
}

impl fmt::Debug for FaultInjector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life").field("dead", &*self.dead.borrow()).finish_non_exhaustive()
    }
}

impl Default for FaultInjector {
    fn default() -> Self {
        Self { faults: Mutex::default(), dead: watch::Sender::new(false) }
    }
}

impl FaultInjector {
    /// Dies at the n-th commit from now on; the future ends then, too.
    pub(crate) fn end(
        &self,
        death: CrashPoint,
        commit: u64,
        tables: &Tables,
    ) -> impl Future<Output = ()> + Send + use<> {
        let mut faults = self.faults();
        faults.doom = Some((death, commit));
        faults.left = (death == CrashPoint::PowerCut).then(|| Box::new(tables.clone()));
        let mut dead = self.dead.subscribe();
        async move {
            // If all handles are dropped first, the process never dies, and this future never ends.
            if dead.wait_for(|dead| *dead).await.is_err() {
                pending::<()>().await;
            }
        }
    }

    pub(crate) fn wait_before(&self, wait: impl FnMut() -> u32 + Send + 'static) {
        self.faults().wait = Some(Box::new(wait));
    }

    pub(crate) fn sabotage(&self, bend: impl FnMut(Commit) -> Sabotage + Send + 'static) {
        self.faults().bend = Some(Box::new(bend));
    }

    /// Returns if the process is alive; waits for ever if it has died.
    pub(crate) async fn go_on(&self) {
        if *self.dead.borrow() {
            pending::<()>().await;
        }
    }

    /// Takes a commit: yields to other tasks if the handle was told to, and returns what is to be stored of it.
    pub(crate) async fn arrive(&self, commit: Commit) -> Vec<CommitStep> {
        let mut turns = self.faults().wait.as_mut().map_or(0, |wait| wait());
        poll_fn(|cx| {
            if turns == 0 {
                return Poll::Ready(());
            }
            turns -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.go_on().await;
        let bent = match &mut self.faults().bend {
            Some(bend) => bend(commit),
            None => return vec![CommitStep { commit, is_early: false }],
        };
        match bent {
            Sabotage::Apart(commits) => {
                commits.into_iter().map(|commit| CommitStep { commit, is_early: false }).collect()
            }
            Sabotage::Early(commit) => vec![CommitStep { commit, is_early: true }],
        }
    }

    /// Called before a commit is stored. Returns false if the process dies here: the commit is not stored.
    pub(crate) fn before(&self, step: &CommitStep, tables: &mut Tables) -> bool {
        let mut faults = self.faults();
        match faults.doom {
            Some((CrashPoint::Before | CrashPoint::PowerCut, left)) if left <= 1 => {
                self.die(&mut faults, tables);
                return false;
            }
            Some((CrashPoint::Before | CrashPoint::After, _)) if step.is_early && faults.left.is_none() => {
                faults.left = Some(Box::new(tables.clone()));
            }
            _ => {}
        }
        true
    }

    /// Called after a commit was stored; the process may die here.
    pub(crate) fn after(&self, step: StoredCommit, tables: &mut Tables) {
        let mut faults = self.faults();
        let Some((death, left)) = faults.doom else { return };
        faults.doom = Some((death, left.saturating_sub(1)));
        match death {
            CrashPoint::PowerCut if step.strength == Durability::Full => faults.left = Some(Box::new(tables.clone())),
            CrashPoint::After | CrashPoint::Before if !step.is_early => faults.left = None,
            _ => {}
        }
        if death == CrashPoint::After && left <= 1 {
            self.die(&mut faults, tables);
        }
    }

    fn die(&self, faults: &mut Faults, tables: &mut Tables) {
        if let Some(left) = faults.left.take() {
            tables.fall_back(*left);
        }
        // A thread that still runs a tool may hold its worker for longer than the process would have lived.
        tables.end_workers();
        self.dead.send_replace(true);
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is remembered of a commit once it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredCommit {
    strength: Durability,
    is_early: bool,
}

impl CommitStep {
    pub(crate) fn kept(&self) -> StoredCommit {
        StoredCommit { strength: self.commit.strength, is_early: self.is_early }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Append, Commit, CrashPoint, Durability, Journal, Sabotage};

    fn one(event: &'static str, strength: Durability) -> Commit {
        let append = Append { stream: "s".into(), event: event.into(), payload: b"{}".to_vec(), ..Append::default() };
        Commit { strength, appends: vec![append], ..Commit::default() }
    }

    /// What the next process finds of these commits.
    async fn left(journal: Journal, death: CrashPoint, at: u64, commits: Vec<Commit>) -> Vec<String> {
        let died = journal.die(death, at);
        let write = async {
            for commit in commits {
                journal.commit(commit).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            () = died => {}
            () = write => panic!("it lives on"),
        }
        let entries = journal.reopen().unwrap().read("s", 0, 10).unwrap();
        entries.into_iter().map(|entry| entry.event.into_owned()).collect()
    }

    fn four() -> Vec<Commit> {
        use Durability::{Full, Normal};
        [("a", Full), ("b", Normal), ("c", Normal), ("d", Full)].map(|(event, strength)| one(event, strength)).to_vec()
    }

    #[tokio::test]
    async fn each_crash_point_leaves_the_documented_state() {
        assert_eq!(left(Journal::memory(), CrashPoint::After, 2, four()).await, ["a", "b"]);
        assert_eq!(left(Journal::memory(), CrashPoint::Before, 3, four()).await, ["a", "b"]);
        assert_eq!(left(Journal::memory(), CrashPoint::PowerCut, 4, four()).await, ["a"]);
        assert_eq!(left(Journal::memory(), CrashPoint::PowerCut, 1, four()).await, [""; 0]);
    }

    #[tokio::test]
    async fn an_early_acknowledged_commit_is_missing_until_the_next_is_stored() {
        let early = || {
            let journal = Journal::memory();
            journal.sabotage(|commit| match commit.appends.iter().any(|append| append.event == "b") {
                true => Sabotage::Early(commit),
                false => Sabotage::Apart(vec![commit]),
            });
            journal
        };
        assert_eq!(left(early(), CrashPoint::Before, 3, four()).await, ["a"]);
        assert_eq!(left(early(), CrashPoint::Before, 4, four()).await, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn a_crash_splits_a_commit_that_should_be_atomic() {
        let journal = Journal::memory();
        journal.sabotage(|commit| Sabotage::Apart(vec![commit.clone(), commit]));
        assert_eq!(left(journal, CrashPoint::After, 3, four()).await, ["a", "a", "b"]);
    }
}
