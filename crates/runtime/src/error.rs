//! Errors of the runtime; each message says what to do next.

use max_team_core::hash::Hash;
use max_team_core::id::{PlanId, SessionId};
use max_team_core::message::Role;
use max_team_core::plan::{DraftFlaw, cannot_run};
use max_team_core::policy::{DELETION_WORD, Deletion};
use max_team_journal::{JournalError, WorkerInfo};

use crate::rows::AnswerWord;

/// Ids that a message lists.
const CANDIDATES_MAX: usize = 8;

/// A command or query that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The journal refused or failed.
    #[error(transparent)]
    Journal(JournalError),
    /// Another process owns what was to be claimed, such as a session that it has open.
    #[error("`{resource}` is owned by `{}` (process {} on `{}`): go on there, or stop it first", by.what, by.pid, by.host)]
    OwnedElsewhere {
        /// What was to be claimed.
        resource: String,
        by: Box<WorkerInfo>,
    },
    /// The audit file cannot be written any more.
    #[error(transparent)]
    Audit(#[from] crate::audit::AuditFailure),
    /// An entry that this version cannot read.
    #[error("entry {seq} of `{stream}` cannot be read: {detail}; run `max-team audit verify`")]
    Unreadable {
        seq: u64,
        /// The stream that it belongs to.
        stream: String,
        detail: String,
    },
    /// A text beside the log that this version cannot read.
    #[error("the text `{text}` cannot be read: {detail}; if it comes from a recording, record the run again")]
    BadText { text: Hash, detail: String },
    /// Another writer was faster at every attempt to commit.
    #[error("other processes keep writing to `{0}`; try again")]
    Busy(String),
    /// This process does not serve that account of a channel.
    #[error("this process does not serve `{0}`: its messages are sent by the process that does")]
    NotServed(String),
    /// A worktree that cannot be read, merged or removed.
    #[error(transparent)]
    Worktree(#[from] max_team_tools::worktree::WorktreeError),
    /// An agent works in the worktree.
    #[error("an agent works in the worktree `{0}`; decide when it is done, or stop it first")]
    WorktreeInUse(String),
    /// Other changes than those that a person was shown.
    #[error("the worktree `{0}` has changed since it was shown, and nothing was decided; look at it again")]
    WorktreeChanged(String),
    /// All changes were to be decided, and nothing says which ones the person saw.
    #[error(
        "to decide about all changes of the worktree `{0}`, send `shown`, the digest of the changes that you looked at; or name `files`"
    )]
    WorktreeUnseen(String),
    /// No file of a worktree could be merged.
    #[error("nothing was accepted: {0}")]
    NothingMerged(String),
    /// A session was handed over, and no server of its folder runs.
    #[error(
        "no server runs for `{0}`: start `max-team serve` there, in another terminal or as a service, then hand the session over again"
    )]
    NoServer(String),
    /// A file of a session that cannot be kept or read.
    #[error("{0}")]
    File(String),
    /// No such session.
    #[error("there is no session `{0}`; `max-team sessions list` lists the sessions")]
    NoSession(String),
    /// Files of the sessions could not be removed.
    #[error("what was kept in files could not be removed, and nothing was forgotten: {detail}; try again")]
    NotCleared { detail: String },
    /// A point that the run does not have.
    #[error(
        "there is no such point in `{session}`, in which the user spoke {turns} times; `max-team replay {session}` shows the \
         numbers"
    )]
    NoPoint {
        /// The session whose run was searched.
        session: SessionId,
        /// How many messages the user sent.
        turns: usize,
    },
    /// There is no rewind to undo.
    #[error("no file of `{0}` was restored yet, so there is nothing to undo")]
    NothingRewound(SessionId),
    /// More files than one rewind may restore.
    #[error("these are too many files to restore at once; name some of the files or folders")]
    TooMuch,
    /// An agent of the session is at work.
    #[error("an agent of this session works or waits for an answer; stop it first (`max-team stop`)")]
    AtWork,
    /// `-c` in a folder without a session.
    #[error("there is no earlier session in `{0}` to continue; start one without `-c`")]
    NothingToContinue(String),
    /// There is nothing new to compact, or a turn runs.
    #[error(
        "there is nothing to compact now: no message came since the last compaction, or a turn runs; try again later"
    )]
    NothingToCompact,
    /// There is no compaction to undo.
    #[error("there is no compaction to undo now: none has happened, or a turn runs")]
    NothingCompacted,
    /// The session is not open in this process.
    #[error("session `{0}` is not open here")]
    NotOpen(SessionId),
    /// It is open already.
    #[error("session `{0}` is open here already")]
    AlreadyOpen(SessionId),
    /// It works in another directory, and the rules of that project were not read here.
    #[error(
        "session `{session}` works in `{cwd}`, under the rules of that project: `cd` there, then `max-team -r {session}`"
    )]
    Elsewhere {
        session: SessionId,
        /// Where it works.
        cwd: String,
    },
    /// The message is larger than a message may be.
    #[error("the message has {bytes} bytes, the limit is {max}; put the text into a file and name the file instead")]
    TooLong { bytes: usize, max: usize },
    /// A message without any visible text.
    #[error("the message is empty")]
    Silent,
    /// The role of a person does not allow a command.
    #[error("`{user}` has the role `{}`; this needs `{}`", role.name(), least.name())]
    RoleTooLow {
        user: String,
        role: Role,
        /// The least role that is allowed.
        least: Role,
    },
    /// No open question has this id.
    #[error("there is no open question `{0}`; `max-team inbox` lists the open questions")]
    NoQuestion(String),
    /// A yes to a deletion that cannot be taken back came without the word.
    #[error(
        "this deletes {deletion} for good, and `/rewind` cannot give it back: a yes needs the word `{DELETION_WORD}`"
    )]
    NeedsWord { deletion: Box<Deletion> },
    /// An answer about a plan that is being stopped would change nothing.
    #[error("plan `{0}` is being stopped: the answer was not sent; `max-team plans show {0}` says how it ends")]
    PlanStopping(PlanId),
    /// Another plan was proposed or approved instead of the one that is answered.
    #[error(
        "that plan was replaced by plan `{0}`: your answer changes nothing; `max-team plans show {0}` shows the new one"
    )]
    PlanReplaced(PlanId),
    /// Several ids begin or end with the given text.
    #[error("`{text}` may mean {}; give more of the id", among.join(", "))]
    Ambiguous {
        text: String,
        /// The first of the matching ids.
        among: Vec<String>,
    },
    /// Another answer came first.
    #[error("this was already answered: `{said}` by {by}, {}", max_team_core::time::rfc3339(*at_ms))]
    Answered {
        by: String,
        /// The answer that was given.
        said: AnswerWord,
        /// The time of the first answer.
        at_ms: i64,
    },
    /// No agent has that name.
    #[error("there is no agent `{name}` in session `{session}`{}", named(there))]
    NoReader {
        name: String,
        session: SessionId,
        /// The names that exist in the session.
        there: Vec<String>,
    },
    /// A member's name stands for several tasks of a plan.
    #[error("`{name}` works on `{}`: send to one of these", tasks.join("`, `"))]
    SeveralTasks {
        name: String,
        /// The ids of the tasks.
        tasks: Vec<String>,
    },
    /// No agent of that name is interrupted: it was never stopped, or has begun a turn since.
    #[error("`{name}` was not interrupted, or has begun something since{}", interrupted(there))]
    NotStopped {
        name: String,
        /// The names of the agents that are interrupted.
        there: Vec<String>,
    },
    /// A teammate that has ended.
    #[error("`{name}` has ended (by {by}{}); nothing was sent", because(reason))]
    Gone {
        name: String,
        /// Who asked for its end.
        by: String,
        reason: String,
    },
    /// A mailbox with as many unread messages as are allowed.
    #[error("`{name}` has {max} messages that it has not read; nothing was sent: wait until it reads them")]
    MailFull { name: String, max: usize },
    /// A write that the memory refuses.
    #[error("{0}")]
    Memory(#[from] max_team_core::memory::WriteRefusal),
    /// A change that the shared task list refuses.
    #[error("{0}")]
    Tasks(#[from] max_team_core::task_list::ListRefusal),
    /// No such plan.
    #[error("there is no plan `{0}`; `max-team plans list` shows those there are")]
    NoPlan(PlanId),
    /// No running plan has the task.
    #[error("no running plan has a task `{0}`; the task list shows those there are")]
    NoPlanTask(String),
    /// A session whose plan or teammates do not allow what was asked.
    #[error("{0}")]
    Plan(String),
    /// A plan that cannot run.
    #[error("{}", cannot_run(.0))]
    DraftFlaws(Vec<DraftFlaw>),
    /// The message queue is full.
    #[error("{0} messages are queued already; wait for the turn to end, or interrupt it")]
    QueueFull(usize),
    /// A message can no longer be taken back: it was read or taken back before.
    #[error(
        "it was too late to take the message back: it was read or taken back before; interrupt the turn, or say something else"
    )]
    Taken,
    /// Like `Taken`, for a message to several agents: these have read it, and it was taken back from the others.
    #[error("taken back, but not from {}: they have read it", .0.join(", "))]
    TakenBy(Vec<String>),
    /// Some mailboxes of a message could not be asked for it and still hold it; the other agents have read it, or no
    /// longer have it.
    #[error("{}", untaken(.failed, .read, .why))]
    Untaken {
        /// Names of the readers that could not be asked.
        failed: Vec<String>,
        /// Why the first of them could not be asked.
        why: String,
        /// Names of the agents that have read it.
        read: Vec<String>,
    },
    /// A frontend that does not read its notices.
    #[error(
        "{0} notices wait here to be read, and there are no more; the team goes on: open the session again to see how"
    )]
    Behind(usize),
    /// The agent's loop has ended.
    #[error("the agent of this session has stopped: {0}")]
    AgentStopped(String),
    /// An agent's definition that cannot be used.
    #[error("the definition of agent `{agent}` cannot be used: {detail}")]
    Definition { agent: String, detail: String },
    /// A JSON Schema that cannot be used.
    #[error("--json-schema: {detail}")]
    Schema { detail: String },
    /// The directory that the session works in cannot be used.
    #[error("the directory `{path}` cannot be used: {detail}")]
    Root { path: String, detail: String },
}

/// The rest of an error sentence: the agents whose copy of a message could not be taken back.
fn untaken(failed: &[String], read: &[String], why: &str) -> String {
    let read = if read.is_empty() { String::new() } else { format!("; read already by {}", read.join(", ")) };
    format!("not taken back from {}: {why}{read}; it was taken back from all others", failed.join(", "))
}

fn interrupted(there: &[String]) -> String {
    match there {
        [] => "; no other agent was interrupted".to_owned(),
        there => format!(
            "; interrupted: {}",
            there.iter().take(CANDIDATES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// The rest of an error sentence: the names that exist.
fn named(there: &[String]) -> String {
    let names: Vec<String> = there.iter().take(CANDIDATES_MAX).map(|name| format!("`{name}`")).collect();
    match there.len().saturating_sub(CANDIDATES_MAX) {
        _ if names.is_empty() => ", nor any other teammate".to_owned(),
        0 => format!("; there are {}", names.join(", ")),
        more => format!("; there are {} and {more} more", names.join(", ")),
    }
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

impl From<JournalError> for RuntimeError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Owned { resource, by } => Self::OwnedElsewhere { resource, by },
            error => Self::Journal(error),
        }
    }
}

impl RuntimeError {
    /// Whether this error, although it stopped one loop, stops the whole session.
    pub(crate) fn is_everybodys(&self) -> bool {
        match self {
            Self::Journal(error) => matches!(error, JournalError::Fenced { .. }) || !error.is_refusal(),
            Self::Behind(_) | Self::Audit(_) => true,
            _ => false,
        }
    }

    /// Whether this error follows from another writer's failed commit: a message was handed over before it was stored.
    pub fn is_anothers(&self) -> bool {
        matches!(self, Self::Journal(JournalError::UnknownMail { .. }))
    }

    /// Several ids match; names at most a few of them.
    pub(crate) fn ambiguous(text: &str, mut among: Vec<String>) -> Self {
        let more = among.len().saturating_sub(CANDIDATES_MAX);
        among.truncate(CANDIDATES_MAX);
        among.iter_mut().for_each(|id| *id = format!("`{id}`"));
        if more > 0 {
            among.push(format!("{more} more"));
        }
        Self::Ambiguous { text: text.to_owned(), among }
    }
}
