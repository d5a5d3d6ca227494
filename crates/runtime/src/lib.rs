//! The team at work.
//!
//! [`TeamHandle`] is the one interface under every frontend: commands go in, queries are answered, notices come out. A
//! frontend never reaches past it. Behind it the [`Runtime`] keeps the journal, the models and the tools, and gives
//! every open session an agent whose loop (`agent`) follows one rule: decide, commit, apply, do.

mod active_session;
mod agent;
mod audit;
mod budget;
mod cache;
mod definitions;
mod driver;
mod error;
mod executor;
pub mod front_matter;
mod handle;
pub mod maintenance;
mod memory;
mod notices;
mod outbox;
pub mod parallel;
mod plan;
pub mod query;
mod query_fields;
mod read_model;
mod reader;
pub mod replay;
pub mod rewind;
mod rows;
mod runtime;
mod session;
mod session_files;
mod shared;
pub mod skills;
pub mod stream;
mod tasks;
mod team_tools;
mod template;
mod user_mail;
mod work_clock;
mod worktree;
pub mod yaml;

/// The journal's types that reports and errors about storage are made of. The journal itself is behind [`maintenance::Storage`].
pub mod storage {
    pub use max_team_journal::{
        Drift, DriftKind, DriftReport, Entry, ExternalSeal, Fault, FaultDetail, FaultKind, JournalError, Report,
        SchemaChange, WorkerInfo,
    };
}

pub use agent::{TIME_OVER, is_path};
pub use audit::{AuditFailure, AuditLevel, AuditOptions};
pub use cache::Caches;
pub use definitions::{Changes, Definitions};
pub use error::RuntimeError;
pub use executor::block_on;
pub use handle::{
    AgentSpec, Attached, Command, Delta, Lead, Notice, OpenOptions, OpenQuestion, OpenedSession, Order, Origin, Queued,
    Recovered, SessionDetails, Team, TeamDefinitions, TeamHandle, Which, require,
};
pub use maintenance::{
    SessionsForgotten, Tombstone, WEB_ANSWERS, compare_rows, forget_sessions, forks_of, prune_images, rebuild_rows,
};
pub use max_team_core::delegation::tool_filter::{AGENT, SEND_MESSAGE, TASK};
pub use max_team_core::teammate::Spawn;
pub use max_team_tools::worktree::WorktreeError;
pub use memory::{FactUse, ForgottenFacts, Hit, Memories, MemoryUses, RecalledFacts, Remember, project_scope};
pub use memory::{READ as MEMORY_READ, WRITE as MEMORY_WRITE};
pub use outbox::OutgoingMessage;
pub use plan::{Basis, propose::preview};
pub use query::{Query, Question, Reply, StoredQuestion};
pub use query_fields::{FieldKind, QueryField, QueryForm};
pub use read_model::{
    Allowed, AnswerEvidence, Cost, Enrolled, EvidenceItem, Fate, Filter, IdTarget, MailRecord, Person, PlanLine,
    ReadModel, Record, RecordText, RefusedEvidence, Roll, RuleText, Set, Span, SpanAuthor, SpanKind, SpanName,
    SpanOutcome, ToolEnd, Unmet, WalkStep, WalkSummary,
};
pub use reader::{LogEntry, LogFollower, TeamReader};
pub use rows::{
    AgentRow, AnswerWord, AnsweredRow, CostRow, InboxRow, Matter, PlanEndRow, PlanRow, TeammateRow, project_entry,
};
pub use runtime::{Options, ResumedLead, Runtime};
pub use session::instructions;
pub use session::{SessionRow, Sessions};
pub use session_files::SessionFile;
pub use shared::{new_id, now_ms};
pub use stream::{Mark, Scope, StreamEvent, StreamReader, What, Who};
pub use tasks::{ListedTask as TaskLine, TaskLists, user as list_user};
pub use team_tools::{ASK_USER, DISPATCH_TASK, NEED_CLARIFY, with_team};
pub use user_mail::{
    CONTINUE, EndMode, NotedAnswer, PendingHandover, PendingQuestion, PersonReply, READ_ON, Recipient, ResumableWork,
    SentMessages, ShownContent, UserMail, envelope_of, is_go_on,
};
pub use worktree::{ConflictText, WaitingWorktree, WorktreeReview};
