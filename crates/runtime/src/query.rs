//! Questions about sessions, agents, plans and the journal, each with the type of its answer.
//!
//! A frontend in this process asks with [`TeamHandle::ask`](crate::TeamHandle::ask) and gets the answer's own type. A frontend behind a
//! wire sends a [`Query`] and gets a [`Reply`]; both are serialisable, and both lists come from the one table below.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, SessionId};
use max_team_core::memory::{Board, Scope};
use max_team_core::plan::event::{PlanEnd, TaskFiles};
use max_team_core::team::Settings as AgentSettings;
use serde::{Deserialize, Serialize};

use crate::census::{Census, Cost, Filter, Letter, Person, PlanLine, Record, Roll, Seen, Span};
use crate::error::RuntimeError;
use crate::floor::fold_plan;
use crate::house::House;
use crate::memory::{Hit, Memories};
use crate::post::{Left, Pending, Post, Reader};
use crate::rewind::{self, Rewind, Sheet, To};
use crate::rows::AgentRow;
use crate::session::{self, SessionRow};
use crate::shared::{Shared, now_ms};
use crate::stream::Mark;
use crate::tasks::TaskLists;
use crate::team_tools::Spawn;
use crate::{Status as SessionStatus, Team as SessionTeam, agent, worktree};

/// Audit records in one answer; the next page begins behind the last one.
pub const AUDIT_PAGE_MAX: usize = 1_000;

/// A question with the type of its answer.
#[expect(async_fn_in_trait, reason = "only this crate implements it, and no caller needs the future to be `Send`")]
pub trait Question {
    /// The answer.
    type Answer;
    /// Finds the answer.
    async fn answer(self, house: &House) -> Result<Self::Answer, RuntimeError>;
}

macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty),* $(,)? } -> $answer:ty, $house:ident => $body:expr;)*) => {
        /// A question about the team.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(clippy::large_enum_variant, reason = "queries are few, and the one with settings is the rarest of them")]
        pub enum Query {
            $($(#[$doc])* $name($name),)*
        }

        /// The answer to a [`Query`], under the same name.
        #[derive(Debug, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Reply {
            $($(#[$doc])* $name($answer),)*
        }

        impl Query {
            pub(crate) async fn answer(self, house: &House) -> Result<Reply, RuntimeError> {
                Ok(match self {
                    $(Self::$name(question) => Reply::$name(question.answer(house).await?),)*
                })
            }
        }

        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Serialize, Deserialize)]
            pub struct $name {
                $($(#[$about])* pub $field: $type,)*
            }

            impl Question for $name {
                type Answer = $answer;
                async fn answer(self, $house: &House) -> Result<$answer, RuntimeError> {
                    let Self { $($field),* } = self;
                    $body
                }
            }
        )*
    };
}

questions! {
    /// The place in the log behind everything that has happened so far.
    Position {} -> Mark, house => Ok(Mark { seq: house.shared.journal.last_seq()?, part: None });
    /// The sessions of the journal, last used first.
    Sessions {
        /// How many at most.
        limit: usize,
    } -> Vec<SessionRow>, house => session::Sessions::new(&house.shared.journal).list(limit);
    /// Money, tokens, window and settings of an open session.
    Status {
        /// The session.
        session: SessionId,
    } -> Box<SessionStatus>, house => house.status(session).await.map(Box::new);
    /// The events of a session, open or not, with their times.
    Events {
        /// The session.
        session: SessionId,
    } -> Vec<(i64, Event)>, house => session::Sessions::new(&house.shared.journal).events(session);
    /// The time of the user's last message in a session.
    LastMessageTime {
        /// The session.
        session: SessionId,
    } -> Option<i64>, house => session::Sessions::new(&house.shared.journal).last_said_ms(session);
    /// The agents that have worked in a session, in the order they began.
    Agents {
        /// The session.
        session: SessionId,
    } -> Vec<AgentRow>, house => census(house).agents(session);
    /// The events of one agent, with their times.
    AgentEvents {
        /// The agent.
        agent: AgentId,
    } -> Vec<(i64, Event)>, house => census(house).agent_events(agent);
    /// The lead and the teammates of a session.
    Team {
        /// The session.
        session: SessionId,
    } -> Box<Roll>, house => census(house).roll(session).map(Box::new);
    /// The agents of all sessions with unfinished work or a living owner, and what they are doing.
    Ps {
        /// Also those of sessions that were used within a day.
        all: bool,
    } -> Vec<Person>, house => census(house).people(now_ms(), all);
    /// Of teammates that are to begin in a session: first those that are there already, then the new ones.
    Newcomers {
        /// The session.
        session: SessionId,
        /// All that are to begin.
        teammates: Vec<Spawn>,
    } -> (Vec<Spawn>, Vec<Spawn>), house => census(house).newcomers(session, teammates);
    /// The teammates and called agents of a session that were interrupted and have begun nothing since.
    Stopped {
        /// The session.
        session: SessionId,
    } -> Vec<Reader>, house => post(house).stopped(session);
    /// What of a session would go on without a new message.
    Unfinished {
        /// The session.
        session: SessionId,
    } -> Box<Left>, house => post(house).left(session).map(Box::new);
    /// The number of messages that wait because of a stop, for the lead or for one other agent of a session.
    HeldMessages {
        /// The session.
        session: SessionId,
        /// The agent; the lead without one.
        agent: Option<AgentId>,
    } -> usize, house => held(&house.shared, session, agent);
    /// The messages that an agent has not read.
    Unread {
        /// The agent.
        agent: AgentId,
    } -> Vec<EnvelopeId>, house => {
        let mail = house.shared.journal.pending_mail(&session::agent_stream(agent))?;
        Ok(mail.iter().map(|letter| letter.id).collect())
    };
    /// The messages between the agents of a session.
    Messages {
        /// The session.
        session: SessionId,
    } -> Vec<Letter>, house => blocking(house, move |shared| Census::new(&shared.journal).letters(session)).await;
    /// Questions and plans that wait for a person, in all sessions, oldest first.
    Inbox {} -> Vec<Pending>, house => {
        let post = post(house);
        let mut waiting = post.inbox()?;
        post.note_along(&mut waiting)?;
        Ok(waiting)
    };
    /// The plans of a session, oldest first.
    Plans {
        /// The session.
        session: SessionId,
    } -> Vec<PlanLine>, house => {
        let mut plans = census(house).plans()?;
        plans.retain(|line| line.row.session == session);
        plans.reverse();
        Ok(plans)
    };
    /// The plans of a session that have not ended, oldest first.
    OpenPlans {
        /// The session.
        session: SessionId,
    } -> Vec<PlanId>, house => census(house).open_plans(Some(session));
    /// A plan as it stands.
    Plan {
        /// The plan.
        plan: PlanId,
    } -> Box<max_team_core::plan::Plan>, house => Ok(Box::new(fold_plan(&house.shared, plan)?.0));
    /// Whether a plan was stopped: it has ended so, or will before anything else happens in it.
    IsPlanStopped {
        /// The plan.
        plan: PlanId,
    } -> bool, house => {
        let census = census(house);
        let is_over = census.plan_end(plan)?.is_some_and(|row| row.end == PlanEnd::Stopped);
        Ok(is_over || census.stopping(plan)? == Some(None))
    };
    /// The files that unfinished tasks of a plan have changed so far.
    UnfinishedFiles {
        /// The plan.
        plan: PlanId,
    } -> Vec<TaskFiles>, house => census(house).files_left(&fold_plan(&house.shared, plan)?.0);
    /// The task list that a session's agents share.
    Tasks {
        /// The session.
        session: SessionId,
    } -> max_team_core::tasks::Tasks, house => TaskLists::new(&house.shared.journal).tasks(session);
    /// The cost of turns by agent and model.
    Costs {
        /// One session; all of them without one.
        session: Option<SessionId>,
        /// Only turns that ended after this time.
        since_ms: i64,
    } -> Vec<Cost>, house => census(house).costs(session, since_ms, now_ms());
    /// A session as a tree: calls, tools, tokens, cost, approvals.
    Trace {
        /// The session.
        session: SessionId,
    } -> Box<Span>, house => {
        blocking(house, move |shared| Census::new(&shared.journal).trace_session(session).map(Box::new)).await
    };
    /// A page of the audit trail of a session.
    Audit {
        /// The session; all of them without one.
        session: Option<SessionId>,
        /// Only records behind this place of the log.
        after_seq: u64,
    } -> Vec<Record>, house => blocking(house, move |shared| audit(shared, session, after_seq)).await;
    /// The facts of one memory board.
    Memory {
        /// The board.
        scope: Scope,
    } -> Board, house => Memories::new(&house.shared.journal).board(&scope);
    /// The facts of some memory boards that fit these words, best first.
    SearchMemory {
        /// The boards.
        scopes: Vec<Scope>,
        /// The words.
        words: String,
        /// How many at most.
        limit: usize,
    } -> Vec<Hit>, house => Memories::new(&house.shared.journal).search(&scopes, &words, limit);
    /// The points of a session that files can be put back to, oldest first.
    RewindPoints {
        /// The session.
        session: SessionId,
    } -> Vec<rewind::Moment>, house => {
        Rewind::new(&house.shared.journal, &house.shared.home, session).moments()
    };
    /// The changes, file by file, of putting files back to a point.
    RewindPreview {
        /// The session.
        session: SessionId,
        /// The point.
        to: To,
    } -> (rewind::Plan, Vec<Sheet>), house => house.rewinding(session, to).await;
    /// The worktrees of an open session with files that wait for the user.
    Worktrees {
        /// The session.
        session: SessionId,
    } -> Vec<worktree::Waiting>, house => house.waiting(session).await;
    /// The paths that a message to the lead can mention (`@path`): visible to the lead and not ignored by git.
    Paths {
        /// The project.
        root: PathBuf,
        /// What the lead works under.
        settings: AgentSettings,
        /// The team.
        team: Option<SessionTeam>,
    } -> Vec<String>, house => {
        blocking(house, move |shared| Ok(agent::paths(shared, &root, &settings, team.as_ref()))).await
    };
}

fn census(house: &House) -> Census<'_> {
    Census::new(&house.shared.journal)
}

fn post(house: &House) -> Post<'_> {
    Post::new(&house.shared.journal)
}

/// Reads that can take long run beside the agents.
async fn blocking<T: Send + 'static>(
    house: &House,
    read: impl FnOnce(&Shared) -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    let shared = Arc::clone(&house.shared);
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

fn audit(shared: &Shared, session: Option<SessionId>, after_seq: u64) -> Result<Vec<Record>, RuntimeError> {
    let mut records = Vec::new();
    let filter = Filter { session, after_seq, ..Filter::default() };
    Census::new(&shared.journal).records(&filter, |seen| {
        if let Seen::Record(_, record) = seen {
            records.push(record.clone());
        }
        if records.len() < AUDIT_PAGE_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(records)
}
