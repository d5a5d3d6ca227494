//! Questions about sessions, agents, plans and the journal, each with the type of its answer.
//!
//! A frontend in this process asks with [`TeamHandle::ask`](crate::TeamHandle::ask) and gets the answer's own type; a command that
//! starts no team asks a [`TeamReader`](crate::TeamReader), which knows the stored answers. A frontend behind a
//! wire sends a [`Query`] and gets a [`Reply`]; both are serialisable, and both lists come from the one table below.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::agent::Settings as AgentSettings;
use max_team_core::event::{Event, LaunchFlags};
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::memory::{Board, BoardScope, Fact, Key};
use max_team_core::plan::PlanState;
use max_team_core::plan::event::{PlanEnd as PlanEnding, TaskFiles};
use max_team_core::status::SessionStatus;
use max_team_core::teammate::{CommandBegun, Spawn};
use max_team_core::turn::Turn;
use max_team_journal::{Journal, WorkerInfo};
use serde::{Deserialize, Serialize};

use crate::cache::Caches;
use crate::error::RuntimeError;
use crate::maintenance::Tombstone;
use crate::memory::{self, Hit, Memories, RecalledFacts};
use crate::outbox::{self, OutgoingMessage};
use crate::query_fields::{FieldType, QueryField, QueryForm};
use crate::read_model::{
    Cost, EvidenceItem, Filter, IdTarget, MailRecord, Person, PlanLine, ReadModel, Record, Roll, Span,
};
use crate::replay::Tape;
use crate::rewind::{self, Rewind, RewindPoint, Sheet};
use crate::rows::{AgentRow, AnsweredRow, PlanEndRow};
use crate::runtime::Runtime;
use crate::session::{self, SessionRow};
use crate::session_files::{self, SessionFile};
use crate::shared::{Shared, now_ms};
use crate::stream::{Mark, status_before};
use crate::tasks::{ListedTask as TaskLine, TaskLists};
use crate::user_mail::{self, PendingHandover, PendingQuestion, Recipient, ResumableWork, UserMail};
use crate::{SessionDetails, Team as SessionTeam, agent, worktree};

/// Audit records in one answer; the next page begins behind the last one.
pub const AUDIT_PAGE_MAX: usize = 1_000;

/// A question with the type of its answer.
#[expect(async_fn_in_trait, reason = "only this crate implements it, and no caller needs the future to be `Send`")]
pub trait Question {
    type Answer;
    /// Finds the answer.
    async fn answer(self, runtime: &Runtime) -> Result<Self::Answer, RuntimeError>;
}

/// A question that the journal answers by itself, without a running team.
pub trait StoredQuestion: Question {
    /// Reads the answer.
    fn read(self, journal: &Journal) -> Result<Self::Answer, RuntimeError>;
}

/// How a question is answered: `stored` by a short read of the journal, `slow` by a read that runs beside the agents, `live` by the
/// running team.
macro_rules! implement {
    (stored $name:ident, $answer:ty, $journal:ident, ($($field:ident),*), $body:expr) => {
        implement!(read $name, $answer, $journal, ($($field),*), $body);
        impl Question for $name {
            type Answer = $answer;
            async fn answer(self, runtime: &Runtime) -> Result<$answer, RuntimeError> {
                self.read(&runtime.shared.journal)
            }
        }
    };
    (slow $name:ident, $answer:ty, $journal:ident, ($($field:ident),*), $body:expr) => {
        implement!(read $name, $answer, $journal, ($($field),*), $body);
        impl Question for $name {
            type Answer = $answer;
            async fn answer(self, runtime: &Runtime) -> Result<$answer, RuntimeError> {
                blocking(runtime, move |shared| self.read(&shared.journal)).await
            }
        }
    };
    (live $name:ident, $answer:ty, $runtime:ident, ($($field:ident),*), $body:expr) => {
        impl Question for $name {
            type Answer = $answer;
            async fn answer(self, $runtime: &Runtime) -> Result<$answer, RuntimeError> {
                let Self { $($field),* } = self;
                $body
            }
        }
    };
    (read $name:ident, $answer:ty, $journal:ident, ($($field:ident),*), $body:expr) => {
        impl StoredQuestion for $name {
            fn read(self, $journal: &Journal) -> Result<$answer, RuntimeError> {
                let Self { $($field),* } = self;
                $body
            }
        }
    };
}

macro_rules! questions {
    ($($(#[doc = $doc:literal])* $kind:ident $name:ident { $($(#[doc = $about:literal])* $field:ident: $type:ty),* $(,)? } -> $answer:ty, $source:ident => $body:expr;)*) => {
        /// A question about the team.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(clippy::large_enum_variant, reason = "queries are few, and the one with settings is the rarest of them")]
        pub enum Query {
            $($(#[doc = $doc])* $name($name),)*
        }

        /// The answer to a [`Query`], under the same name.
        #[derive(Debug, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Reply {
            $($(#[doc = $doc])* $name($answer),)*
        }

        impl Query {
            /// All queries, as documents describe them.
            pub const FORMS: &'static [QueryForm] = &[$(QueryForm {
                name: stringify!($name),
                about: concat!($($doc),*).trim_ascii(),
                fields: &[$(QueryField {
                    name: stringify!($field),
                    about: concat!($($about),*).trim_ascii(),
                    kind: <$type as FieldType>::KIND,
                }),*],
            }),*];

            /// The name of its type.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }

            pub(crate) async fn answer(self, runtime: &Runtime) -> Result<Reply, RuntimeError> {
                Ok(match self {
                    $(Self::$name(question) => Reply::$name(question.answer(runtime).await?),)*
                })
            }
        }

        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Serialize, Deserialize)]
            pub struct $name {
                $($(#[doc = $about])* pub $field: $type,)*
            }

            implement!($kind $name, $answer, $source, ($($field),*), $body);
        )*
    };
}

questions! {
    /// The place in the log behind everything that has happened so far.
    stored Position {} -> Mark, journal => Ok(Mark { seq: journal.last_seq()?, part: None });
    /// The sessions of the journal, last used first.
    stored Sessions {
        /// How many at most.
        limit: usize,
    } -> Vec<SessionRow>, journal => session::Sessions::new(journal).list(limit);
    /// A session in the list of sessions.
    stored Session {
        session: SessionId,
    } -> SessionRow, journal => session::Sessions::new(journal).row(session);
    /// The session that was last used in a folder.
    stored LatestSession {
        root: PathBuf,
    } -> SessionRow, journal => session::Sessions::new(journal).latest(&root);
    /// The session that was last used anywhere.
    stored LastUsedSession {} -> Option<SessionRow>, journal => session::Sessions::new(journal).last_used();
    /// The sessions that were not used since a time.
    stored UnusedSessions {
        since_ms: i64,
    } -> Vec<SessionRow>, journal => session::Sessions::new(journal).unused_since(since_ms);
    /// The session with this id; a unique part of it is enough.
    stored FindSession {
        text: String,
    } -> Option<SessionId>, journal => ReadModel::new(journal).find_session(&text);
    /// The session or plan with this id; a unique part of it is enough.
    stored Find {
        text: String,
    } -> Option<IdTarget>, journal => ReadModel::new(journal).find(&text);
    /// The note that a session with this id was forgotten.
    stored ForgottenSession {
        text: String,
    } -> Option<Tombstone>, journal => ReadModel::new(journal).forgotten(&text);
    /// The flags that chose the lead and the team of a session.
    stored SessionChoice {
        session: SessionId,
    } -> LaunchFlags, journal => session::Sessions::new(journal).choice(session);
    /// The process that has a session open.
    stored Owner {
        session: SessionId,
    } -> Option<WorkerInfo>, journal => ReadModel::new(journal).owner(session);
    /// The process that serves a folder.
    stored Server {
        folder: String,
    } -> Option<WorkerInfo>, journal => user_mail::server(journal, &folder);
    /// The sessions that were handed over to the server of a folder and that it has not taken yet, oldest first.
    stored Handovers {
        folder: String,
    } -> Vec<PendingHandover>, journal => user_mail::handovers(journal, &folder);
    /// The sessions of the chats of an account of a channel, newest first.
    stored Chats {
        channel: String,
        account: String,
    } -> Vec<SessionRow>, journal => session::Sessions::new(journal).of_account(&channel, &account);
    /// The messages to chats of an account that are not sent yet, oldest first.
    stored Outbox {
        channel: String,
        account: String,
    } -> Vec<OutgoingMessage>, journal => outbox::unsent(journal, &channel, &account);
    /// The files of a session (`@files`), in order of their paths.
    live Files {
        session: SessionId,
    } -> Vec<SessionFile>, runtime => blocking(runtime, move |shared| session_files::list(shared, session)).await;
    /// Money, tokens, window and settings of an open session.
    live Details {
        session: SessionId,
    } -> Box<SessionDetails>, runtime => runtime.details(session).await.map(Box::new);
    /// Which agents of a session work or were stopped, and the questions that wait there.
    stored Status {
        session: SessionId,
    } -> SessionStatus, journal => status_before(journal, session, u64::MAX);
    /// The events of a session, open or not, with their times.
    stored Events {
        session: SessionId,
    } -> Vec<(i64, Event)>, journal => session::Sessions::new(journal).events(session);
    /// The time of the user's last message in a session.
    stored LastMessageTime {
        session: SessionId,
    } -> Option<i64>, journal => session::Sessions::new(journal).last_said_ms(session);
    /// The agents that have worked in a session, in the order they began.
    stored Agents {
        session: SessionId,
    } -> Vec<AgentRow>, journal => ReadModel::new(journal).agents(session);
    /// The agent with this name or id, in one session or in the last that has one.
    stored FindAgent {
        session: Option<SessionId>,
        /// The name or id.
        text: String,
    } -> Option<AgentRow>, journal => ReadModel::new(journal).find_agent(session, &text);
    /// An agent as it stands.
    stored Agent {
        agent: AgentId,
    } -> Box<Turn>, journal => ReadModel::new(journal).turn(agent).map(Box::new);
    /// The events of one agent, with their times.
    stored AgentEvents {
        agent: AgentId,
    } -> Vec<(i64, Event)>, journal => ReadModel::new(journal).agent_events(agent);
    /// The agents of a session that work or are about to.
    stored AgentsAtWork {
        session: SessionId,
    } -> Vec<AgentId>, journal => ReadModel::new(journal).at_work(session);
    /// The commands that agents of a session run in the background.
    stored BackgroundCommands {
        session: SessionId,
        /// Only those of one agent.
        agent: Option<AgentId>,
    } -> Vec<(AgentRow, CommandBegun)>, journal => ReadModel::new(journal).commands(session, agent);
    /// The lead and the teammates of a session.
    stored Team {
        session: SessionId,
    } -> Box<Roll>, journal => ReadModel::new(journal).roll(session).map(Box::new);
    /// The agents of all sessions with unfinished work or a living owner, and what they are doing.
    stored Ps {
        /// Also those of sessions that were used within a day.
        all: bool,
    } -> Vec<Person>, journal => ReadModel::new(journal).people(now_ms(), all);
    /// Of teammates that are to begin in a session: first those that are there already, then the new ones.
    stored Newcomers {
        session: SessionId,
        /// All that are to begin.
        teammates: Vec<Spawn>,
    } -> (Vec<Spawn>, Vec<Spawn>), journal => ReadModel::new(journal).newcomers(session, teammates);
    /// The teammates and called agents of a session that were interrupted and have begun nothing since.
    stored Stopped {
        session: SessionId,
    } -> Vec<Recipient>, journal => UserMail::new(journal).stopped(session);
    /// The plans of a session that the user stopped.
    stored StoppedPlans {
        session: SessionId,
    } -> Vec<PlanId>, journal => UserMail::new(journal).stopped_plans(session);
    /// Whether a plan of a session runs, or waits for anything but its approval.
    stored HasRunningPlan {
        session: SessionId,
    } -> bool, journal => ReadModel::new(journal).has_running_plan(session);
    /// Whether the user stopped a plan, and has neither continued it nor given it up.
    stored IsPlanHeld {
        plan: PlanId,
    } -> bool, journal => ReadModel::new(journal).is_plan_held(plan);
    /// The messages that an agent has not read.
    stored Unread {
        agent: AgentId,
    } -> Vec<EnvelopeId>, journal => {
        let mail = journal.pending_mail(&session::agent_stream(agent))?;
        Ok(mail.iter().map(|envelope| envelope.id).collect())
    };
    /// Whether an agent has not read a stop yet.
    stored HasUnreadStop {
        agent: AgentId,
    } -> bool, journal => UserMail::new(journal).has_unread_stop(agent);
    /// The agents of a session that these names mean.
    stored Readers {
        session: SessionId,
        to: Vec<String>,
    } -> Vec<Recipient>, journal => UserMail::new(journal).find_readers(session, &to);
    /// What of a session would go on without a new message.
    stored Unfinished {
        session: SessionId,
    } -> Box<ResumableWork>, journal => UserMail::new(journal).left(session).map(Box::new);
    /// The number of messages that wait because of a stop, for the lead or for one other agent of a session.
    live HeldMessages {
        session: SessionId,
        /// The agent; the lead without one.
        agent: Option<AgentId>,
    } -> usize, runtime => held(&runtime.shared, session, agent);
    /// The messages between the agents of a session.
    slow Messages {
        session: SessionId,
    } -> Vec<MailRecord>, journal => ReadModel::new(journal).messages(session);
    /// The message of a session with this id; a unique part of it is enough.
    stored FindMessage {
        session: SessionId,
        text: String,
    } -> Option<MailRecord>, journal => ReadModel::new(journal).find_envelope(session, &text);
    /// Questions and plans that wait for a person, in all sessions, oldest first.
    stored Inbox {} -> Vec<PendingQuestion>, journal => {
        let post = UserMail::new(journal);
        let mut waiting = post.inbox()?;
        post.note_along(&mut waiting)?;
        Ok(waiting)
    };
    /// The waiting question or plan with this id; a unique part of it is enough.
    stored FindPending {
        text: String,
    } -> PendingQuestion, journal => {
        let found = UserMail::new(journal).find(&text)?;
        let mut waiting = Inbox {}.read(journal)?;
        waiting.retain(|other| other.row.question == found.row.question);
        Ok(waiting.pop().unwrap_or(found))
    };
    /// The work that a waiting question belongs to.
    stored Purpose {
        /// The address that asks.
        address: String,
        session: Option<SessionId>,
        plan: Option<PlanId>,
        /// The task of the plan.
        task: Option<String>,
    } -> Option<String>, journal => ReadModel::new(journal).purpose(&address, session, plan, task.as_deref());
    /// The answer that a question got.
    stored Answered {
        question: QuestionId,
    } -> Option<AnsweredRow>, journal => UserMail::new(journal).answered(question);
    /// The plans of a session, oldest first.
    stored Plans {
        session: SessionId,
    } -> Vec<PlanLine>, journal => {
        let mut plans = ReadModel::new(journal).plans()?;
        plans.retain(|line| line.row.session == session);
        plans.reverse();
        Ok(plans)
    };
    /// The plans of all sessions, newest first.
    stored AllPlans {} -> Vec<PlanLine>, journal => ReadModel::new(journal).plans();
    /// The plans that have not ended, oldest first.
    stored OpenPlans {
        /// One session; all of them without one.
        session: Option<SessionId>,
    } -> Vec<PlanId>, journal => ReadModel::new(journal).open_plans(session);
    /// The plan with this id; a unique part of it is enough.
    stored FindPlan {
        text: String,
    } -> Option<PlanId>, journal => ReadModel::new(journal).find_plan(&text);
    /// A plan as it stands.
    stored Plan {
        plan: PlanId,
    } -> Box<max_team_core::plan::Plan>, journal => ReadModel::new(journal).plan(plan).map(Box::new);
    /// A plan as it stands, and its state with a stop that it has not read.
    stored PlanWithState {
        plan: PlanId,
    } -> (Box<max_team_core::plan::Plan>, PlanState), journal => {
        let census = ReadModel::new(journal);
        let plan = Box::new(census.plan(plan)?);
        let state = census.plan_state(&plan)?;
        Ok((plan, state))
    };
    /// The events of a plan, with their times.
    stored PlanEvents {
        plan: PlanId,
    } -> Vec<(i64, Event)>, journal => ReadModel::new(journal).plan_events(plan);
    /// The end of a plan, if it has ended.
    stored PlanEnd {
        plan: PlanId,
    } -> Option<PlanEndRow>, journal => ReadModel::new(journal).plan_end(plan);
    /// The session of a plan.
    stored SessionOfPlan {
        plan: PlanId,
    } -> Option<SessionId>, journal => ReadModel::new(journal).session_of(plan);
    /// Whether a plan was stopped: it has ended so, or will before anything else happens in it.
    stored IsPlanStopped {
        plan: PlanId,
    } -> bool, journal => {
        let census = ReadModel::new(journal);
        let is_over = census.plan_end(plan)?.is_some_and(|row| row.end == PlanEnding::Stopped);
        Ok(is_over || census.stopping(plan)? == Some(None))
    };
    /// The files that unfinished tasks of a plan have changed so far.
    stored UnfinishedFiles {
        plan: PlanId,
    } -> Vec<TaskFiles>, journal => {
        let census = ReadModel::new(journal);
        census.files_left(&census.plan(plan)?)
    };
    /// The task list that a session's agents share.
    stored Tasks {
        session: SessionId,
    } -> max_team_core::task_list::TaskList, journal => TaskLists::new(journal).tasks(session);
    /// The tasks of a session: its shared list, and those of its plans.
    stored TaskLines {
        session: SessionId,
    } -> Vec<TaskLine>, journal => TaskLists::new(journal).lines(session);
    /// One task of a session.
    stored FindTask {
        session: SessionId,
        id: String,
    } -> TaskLine, journal => TaskLists::new(journal).line(session, &id);
    /// The stopped teammates that would otherwise claim new tasks of a session's list, if no other teammate does.
    stored StoppedClaimers {
        session: SessionId,
    } -> Vec<String>, journal => ReadModel::new(journal).nobody_takes(session);
    /// The cost of turns by agent and model.
    stored Costs {
        /// One session; all of them without one.
        session: Option<SessionId>,
        /// Only turns that ended after this time.
        since_ms: i64,
    } -> Vec<Cost>, journal => ReadModel::new(journal).costs(session, since_ms, now_ms());
    /// A session as a tree: calls, tools, tokens, cost, approvals.
    slow Trace {
        session: SessionId,
    } -> Box<Span>, journal => ReadModel::new(journal).trace_session(session).map(Box::new);
    /// A plan as such a tree.
    slow TracePlan {
        plan: PlanId,
    } -> Box<Span>, journal => ReadModel::new(journal).trace_plan(plan).map(Box::new);
    /// A page of the audit trail of a session.
    slow Audit {
        /// The session; all of them without one.
        session: Option<SessionId>,
        /// Only records behind this place of the log.
        after_seq: u64,
    } -> Vec<Record>, journal => audit(journal, session, after_seq);
    /// The facts of one memory board.
    stored Memory {
        scope: BoardScope,
    } -> Board, journal => Memories::new(journal).board(&scope);
    /// One fact of a memory board.
    stored MemoryFact {
        scope: BoardScope,
        key: Key,
    } -> Option<Fact>, journal => Memories::new(journal).fact(&scope, &key);
    /// Where the facts under a key came from, and which turns were told them, and why.
    slow MemoryUses {
        scope: BoardScope,
        key: Key,
    } -> memory::MemoryUses, journal => Memories::new(journal).uses(&scope, &key);
    /// The facts that each turn of a session was told, and why.
    stored Recalled {
        session: SessionId,
    } -> Vec<RecalledFacts>, journal => Memories::new(journal).told(session);
    /// The facts of some memory boards that fit these words, best first.
    stored SearchMemory {
        scopes: Vec<BoardScope>,
        words: String,
        /// How many at most.
        limit: usize,
    } -> Vec<Hit>, journal => Memories::new(journal).search(&scopes, &words, limit);
    /// The experts whose answers are kept.
    stored CachedExperts {} -> Vec<String>, journal => Caches::new(journal).experts();
    /// The kept answers of an expert.
    stored CachedAnswers {
        expert: String,
    } -> Vec<max_team_core::delegation::cache::CacheEntry>, journal => Caches::new(journal).entries(&expert);
    /// The points of a session to which files can be restored, oldest first.
    live RewindPoints {
        session: SessionId,
    } -> Vec<rewind::Moment>, runtime => {
        Rewind::new(&runtime.shared.journal, &runtime.shared.home, session).moments()
    };
    /// The changes, file by file, of putting files back to a point.
    live RewindPreview {
        session: SessionId,
        to: RewindPoint,
    } -> (rewind::RewindPlan, Vec<Sheet>), runtime => runtime.rewinding(session, to).await;
    /// The outcome of a rewind, by the key of the order that asked for it; `None` if there was none, or it has not ended.
    live RewindOutcome {
        session: SessionId,
        /// The key of the order.
        key: EnvelopeId,
    } -> Option<rewind::Outcome>, runtime => {
        blocking(runtime, move |shared| Rewind::new(&shared.journal, &shared.home, session).outcome(key)).await
    };
    /// Answered once no agent of an open session is busy, background agents included.
    live Settled {
        session: SessionId,
    } -> (), runtime => runtime.settled(session).await;
    /// Everything that the journal holds of a session, as a recording.
    slow Recording {
        session: SessionId,
    } -> Box<Tape>, journal => Tape::of(journal, session).map(Box::new);
    /// The worktrees of an open session with files that wait for the user.
    live Worktrees {
        session: SessionId,
    } -> Vec<worktree::WaitingWorktree>, runtime => runtime.waiting(session).await;
    /// What differs in a worktree, and what would become of it; `None` if there is no such worktree.
    live WorktreeChanges {
        worktree: String,
    } -> Option<Box<worktree::WorktreeReview>>, runtime => {
        let read = move |shared: &Shared| worktree::WorktreeReview::find(shared, &worktree);
        Ok(blocking(runtime, read).await?.map(Box::new))
    };
    /// The paths that a message to the lead can mention (`@path`): visible to the lead and not ignored by git.
    live Paths {
        root: PathBuf,
        /// What the lead works under.
        settings: AgentSettings,
        team: Option<SessionTeam>,
    } -> Vec<String>, runtime => {
        blocking(runtime, move |shared| Ok(agent::paths(shared, &root, &settings, team.as_ref()))).await
    };
}

/// Reads that can take long run beside the agents.
pub(crate) async fn blocking<T: Send + 'static>(
    runtime: &Runtime,
    read: impl FnOnce(&Shared) -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    let shared = Arc::clone(&runtime.shared);
    match tokio::task::spawn_blocking(move || read(&shared)).await {
        Ok(answer) => answer,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn held(shared: &Shared, session: SessionId, agent: Option<AgentId>) -> Result<usize, RuntimeError> {
    let lead = session::Sessions::new(&shared.journal).row(session)?.lead;
    let agent = agent.unwrap_or(lead);
    let (turn, _) = shared.fold_agent(agent)?;
    let mail = shared.journal.pending_mail(&session::agent_stream(agent))?;
    Ok(turn.waiting(&mail, agent == lead))
}

fn audit(journal: &Journal, session: Option<SessionId>, after_seq: u64) -> Result<Vec<Record>, RuntimeError> {
    let mut records = Vec::new();
    let filter = Filter { session, after_seq, ..Filter::default() };
    ReadModel::new(journal).records(&filter, |seen| {
        if let EvidenceItem::Record(_, record) = seen {
            records.push(record.clone());
        }
        if records.len() < AUDIT_PAGE_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(records)
}
