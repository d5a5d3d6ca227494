//! What can go wrong in the runtime, in words that say what to do next.

use max_team_core::hash::Hash;
use max_team_core::id::{PlanId, SessionId};
use max_team_core::message::Role;
use max_team_journal::JournalError;

/// Ids that a message lists.
const CANDIDATES_MAX: usize = 8;

/// A command or query that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The journal refused or failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The audit file cannot be written any more.
    #[error(transparent)]
    Audit(#[from] crate::audit::AuditFailure),
    /// An entry that this version cannot read.
    #[error("entry {seq} of `{stream}` cannot be read: {detail}; run `max-team audit verify`")]
    Unreadable {
        /// Where.
        seq: u64,
        /// In which stream.
        stream: String,
        /// Why.
        detail: String,
    },
    /// A text beside the log that this version cannot read.
    #[error("the text `{text}` cannot be read: {detail}; if it comes from a recording, record the run again")]
    BadText {
        /// Which.
        text: Hash,
        /// Why.
        detail: String,
    },
    /// Somebody else wrote first, again and again.
    #[error("others write to `{0}` all the time; try again")]
    Busy(String),
    /// No such session.
    #[error("there is no session `{0}`; `max-team sessions list` shows those there are")]
    NoSession(String),
    /// What sessions keep in files is still there.
    #[error("what was kept in files could not be removed, and nothing was forgotten: {detail}; try again")]
    NotCleared {
        /// Why.
        detail: String,
    },
    /// No such point of a run.
    #[error(
        "there is no such point in `{session}`, in which the user spoke {turns} times; `max-team replay {session}` shows the \
         numbers"
    )]
    NoPoint {
        /// Of which.
        session: SessionId,
        /// How often the user spoke.
        turns: usize,
    },
    /// Nothing was put back that could be taken back.
    #[error("nothing was put back in `{0}` yet, so there is nothing to take back")]
    NothingRewound(SessionId),
    /// More than can be put back at once.
    #[error("that is more than can be put back at once; name some of the files or folders")]
    TooMuch,
    /// Somebody of the session is at work.
    #[error("an agent of this session works or waits for an answer; stop it first (`max-team stop`)")]
    AtWork,
    /// `-c` where nothing has been said yet.
    #[error("there is no earlier session in `{0}` to continue; start one without `-c`")]
    NothingToContinue(String),
    /// Nothing was said that could be summed up, or somebody is at work.
    #[error("there is nothing to compact now: nothing was said since the last time, or a turn runs; try again later")]
    NothingToCompact,
    /// Nothing was summed up that could be taken back.
    #[error("there is no compaction to take back now: none has happened, or a turn runs")]
    NothingCompacted,
    /// The session is not open in this process.
    #[error("session `{0}` is not open here")]
    NotOpen(SessionId),
    /// It is open already.
    #[error("session `{0}` is open here already")]
    AlreadyOpen(SessionId),
    /// It works in another directory, whose rules nobody has read here.
    #[error(
        "session `{session}` works in `{cwd}`, under the rules of that project: `cd` there, then `max-team -r {session}`"
    )]
    Elsewhere {
        /// Which.
        session: SessionId,
        /// Where it works.
        cwd: String,
    },
    /// The message is larger than a message may be.
    #[error("the message has {bytes} bytes, the limit is {max}; put the text into a file and name the file instead")]
    TooLong {
        /// Its size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// There is nothing in a message that anybody could read.
    #[error("the message says nothing")]
    Silent,
    /// The role of a person does not allow a command.
    #[error("`{user}` has the role `{}`; this needs `{}`", role.name(), least.name())]
    RoleTooLow {
        /// The person.
        user: String,
        /// Their role.
        role: Role,
        /// The least role that may.
        least: Role,
    },
    /// Nobody asks this.
    #[error("there is no open question `{0}`; `max-team inbox` shows those there are")]
    NoQuestion(String),
    /// An answer about a plan that is being stopped would change nothing.
    #[error("plan `{0}` is being stopped: the answer was not sent; `max-team plans show {0}` says how it ends")]
    PlanStopping(PlanId),
    /// Another plan was proposed or approved instead of the one that is answered.
    #[error(
        "that plan was replaced by plan `{0}`: your answer changes nothing; `max-team plans show {0}` shows the new one"
    )]
    PlanReplaced(PlanId),
    /// Several ids begin or end so.
    #[error("`{text}` may mean {}; give more of the id", among.join(", "))]
    Ambiguous {
        /// What was given.
        text: String,
        /// What it may mean: the first of them.
        among: Vec<String>,
    },
    /// Somebody was faster.
    #[error("this was already answered: `{said}` by {by}, {}", max_team_core::time::rfc3339(*at_ms))]
    Answered {
        /// Who.
        by: String,
        /// What they said.
        said: String,
        /// When.
        at_ms: i64,
    },
    /// Nobody of that name is there.
    #[error("there is no agent `{name}` in session `{session}`{}", named(there))]
    NoReader {
        /// The name.
        name: String,
        /// Where.
        session: SessionId,
        /// Who is.
        there: Vec<String>,
    },
    /// A member's name stands for several tasks of a plan.
    #[error("`{name}` works on `{}`: send to one of these", tasks.join("`, `"))]
    SeveralTasks {
        /// The name.
        name: String,
        /// The ids of the tasks.
        tasks: Vec<String>,
    },
    /// Nobody has interrupted somebody of that name, or it has gone on since.
    #[error("`{name}` was not interrupted, or has begun something since{}", interrupted(there))]
    NotStopped {
        /// The name.
        name: String,
        /// Those who were.
        there: Vec<String>,
    },
    /// A teammate that is no more.
    #[error("`{name}` is no more (by {by}{}); nothing was sent", because(reason))]
    Gone {
        /// Who.
        name: String,
        /// On whose word.
        by: String,
        /// Why.
        reason: String,
    },
    /// Somebody has more to read than fits.
    #[error("`{name}` has {max} letters that it has not read; nothing was sent: wait until it has")]
    MailFull {
        /// Who.
        name: String,
        /// The bound.
        max: usize,
    },
    /// Something that is not remembered.
    #[error("{0}")]
    Memory(#[from] max_team_core::memory::Refusal),
    /// Something that is not done to a list of tasks.
    #[error("{0}")]
    Tasks(#[from] max_team_core::tasks::Refusal),
    /// No plan at work has it.
    #[error("no plan at work has a task `{0}`; `TaskList` shows those there are")]
    NoPlanTask(String),
    /// A plan that cannot run.
    #[error("{0}")]
    Plan(String),
    /// Too much is queued.
    #[error("{0} messages are queued already; wait for the turn to end, or interrupt it")]
    QueueFull(usize),
    /// A message that is to be taken back waits nowhere any more.
    #[error(
        "it was too late to take the message back: it was read or taken back before; interrupt the turn, or say something else"
    )]
    Taken,
    /// The same of some of those it was written to; the others do not have it any more.
    #[error("taken back, but not from {}: they have read it", .0.join(", "))]
    TakenBy(Vec<String>),
    /// Some of those it was written to could not be asked for it and have it still; the others have read it, or do not have it
    /// any more.
    #[error("{}", untaken(.failed, .read, .why))]
    Untaken {
        /// Who could not be asked.
        failed: Vec<String>,
        /// Why the first of them could not.
        why: String,
        /// Who has read it.
        read: Vec<String>,
    },
    /// A face that does not listen.
    #[error(
        "{0} notices wait here to be read, and there are no more; the team goes on: open the session again to see how"
    )]
    Behind(usize),
    /// The agent's task is gone.
    #[error("the agent of this session has stopped: {0}")]
    AgentStopped(String),
    /// An agent's definition that cannot be used.
    #[error("the definition of agent `{agent}` cannot be used: {detail}")]
    Definition {
        /// Whose.
        agent: String,
        /// Why.
        detail: String,
    },
    /// A JSON Schema that cannot be used.
    #[error("--json-schema: {detail}")]
    Schema {
        /// Why.
        detail: String,
    },
    /// The directory that the session works in cannot be used.
    #[error("the directory `{path}` cannot be used: {detail}")]
    Root {
        /// Which.
        path: String,
        /// Why.
        detail: String,
    },
}

/// Who was interrupted, behind the name of somebody who was not.
fn untaken(failed: &[String], read: &[String], why: &str) -> String {
    let read = if read.is_empty() { String::new() } else { format!("; read already by {}", read.join(", ")) };
    format!("not taken back from {}: {why}{read}; nobody else has it", failed.join(", "))
}

fn interrupted(there: &[String]) -> String {
    match there {
        [] => "; nobody else was interrupted".to_owned(),
        there => format!(
            "; interrupted: {}",
            there.iter().take(CANDIDATES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Who else there is, behind the name of somebody who is not.
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

impl RuntimeError {
    /// Whether nobody of a session can go on where this has stopped one of them.
    pub(crate) fn is_everybodys(&self) -> bool {
        match self {
            Self::Journal(error) => matches!(error, JournalError::Fenced { .. }) || !error.is_refusal(),
            Self::Behind(_) | Self::Audit(_) => true,
            _ => false,
        }
    }

    /// Whether it only follows from what somebody else could not store: a letter that was handed over before it was in the journal.
    pub fn is_anothers(&self) -> bool {
        matches!(self, Self::Journal(JournalError::UnknownMail { .. }))
    }

    /// Several are meant; not all of too many are named.
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
