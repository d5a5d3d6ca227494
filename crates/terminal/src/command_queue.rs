//! The way to the team: orders go out one after the other, and what became of each comes back.
//!
//! The face never waits for an order. While one is carried out its notices still have to be taken (an order that
//! publishes waits for slow faces, and the slowest would be the one that waits for the order). Orders keep their
//! sequence: an interrupt and the message after it arrive as they were given.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use max_team_core::agent::{Definition, Settings};
use max_team_core::event::{Event, LaunchFlags};
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::limits::HANDOVER_WAIT_MS;
use max_team_core::message::Principal;
use max_team_core::plan::event::PlanDecision;
use max_team_core::plan::{Draft, Plan};
use max_team_core::policy::PermissionAnswer;
use max_team_core::task_list::TaskList;
use max_team_runtime::rewind::{self, Moment, RewindPoint, Sheet};
use max_team_runtime::storage::WorkerInfo;
use max_team_runtime::{
    AgentRow, Command, MailRecord, OpenOptions, OpenedSession, Order, Roll, RuntimeError, SessionDetails, SessionRow,
    ShownContent, Spawn, Team, TeamHandle, Which, new_id,
};
use max_team_runtime::{Definitions, Question, query};
use tokio::time::timeout;

use super::teammates;
use max_team_workspace::format::short;
use max_team_workspace::permissions;

/// Sessions that `/resume` lists.
pub(super) const SESSIONS_MAX: usize = 10;

/// What a face wants done.
#[derive(Debug, Clone)]
pub(super) enum UiCommand {
    Say {
        key: EnvelopeId,
        text: String,
        /// Whether it waits until the turn that runs is over.
        wait: bool,
    },
    /// Take a message back.
    Withdraw {
        key: EnvelopeId,
        text: String,
    },
    Answer {
        question: QuestionId,
        answer: PermissionAnswer,
    },
    /// Rules that go into the project's local settings: a yes for the repository has counted.
    Remember(Vec<String>),
    /// Say something about a plan.
    Decide {
        question: QuestionId,
        say: PlanDecision,
    },
    Propose {
        draft: Box<Draft>,
        source: String,
    },
    /// Stop a plan, or one of its tasks.
    Stop {
        plan: PlanId,
        task: Option<String>,
    },
    /// How does a plan stand.
    Plan(PlanId),
    /// How does the shared list stand.
    Tasks,
    /// List the paths that a message can mention.
    Paths(Box<Settings>),
    Interrupt,
    /// The same, and what waits goes on waiting.
    StopSession,
    /// Sum up what was said, keeping this above all.
    Compact(String),
    Uncompact,
    /// The points that files can be put back to.
    Moments,
    /// What going back to one would do.
    Rewinding(RewindPoint),
    /// Put files back, as was shown.
    Rewind(Box<rewind::RewindPlan>),
    Configure(Box<Settings>),
    /// How does the session stand, and why is it asked.
    Status(StatusReason),
    /// Write to teammates, or to the lead beside them.
    Write {
        key: EnvelopeId,
        to: Vec<String>,
        text: String,
    },
    /// Resume all interrupted agents, or one of them; `lead`: the lead resumes, too.
    Continue {
        name: Option<String>,
        lead: bool,
    },
    /// How many messages wait for the lead since a stop; whether it is to read them now.
    Held {
        read: bool,
    },
    /// How many messages wait for these teammates since a stop.
    TeammatesHeld(Vec<(String, AgentId)>),
    /// Who of them rests because it was stopped.
    Standing,
    /// Let these teammates begin.
    Recruit(Vec<Spawn>),
    /// Who is on the team; whether it is to be shown.
    Roll(bool),
    /// What the team has written.
    Messages,
    /// This is on the screen: the messages to the user that say it are read.
    Seen(Vec<ShownContent>),
    /// Who has worked here, and what the one who is meant has done.
    Show(Option<String>),
    /// List the sessions, or find the one that is meant.
    Sessions(Option<String>),
    /// Close this session: none of its agents runs here any more, and another process may open it.
    Leave,
    /// Hand this session over to the server of its folder.
    Detach,
    /// Leave this session for another one, or take it up again.
    Open {
        which: Which,
        settings: Box<Settings>,
    },
}

/// Why the status is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusReason {
    /// To keep the footer right.
    Footer,
    Cost,
    Context,
    Mcp,
}

type Outcome<T> = Result<T, RuntimeError>;

/// What became of it.
#[derive(Debug)]
pub(super) enum CommandResult {
    Said {
        key: EnvelopeId,
        text: String,
        outcome: Outcome<()>,
    },
    Withdrawn {
        key: EnvelopeId,
        text: String,
        outcome: Outcome<()>,
    },
    Answered {
        question: QuestionId,
        outcome: Outcome<()>,
    },
    Remembered(Result<(), String>),
    Decided {
        question: QuestionId,
        outcome: Outcome<()>,
    },
    Proposed(Outcome<()>),
    Stopped(Outcome<()>),
    Plan {
        plan: PlanId,
        outcome: Outcome<Box<Plan>>,
    },
    Tasks(Outcome<TaskList>),
    Paths(Vec<String>),
    Interrupted(Outcome<()>),
    Compacted(Outcome<()>),
    Moments(Outcome<Vec<Moment>>),
    Rewinding(Outcome<(rewind::RewindPlan, Vec<Sheet>)>),
    Rewound(Outcome<rewind::Outcome>),
    Configured(Outcome<()>),
    Status {
        reason: StatusReason,
        outcome: Outcome<Box<SessionDetails>>,
    },
    Written {
        key: EnvelopeId,
        to: Vec<String>,
        text: String,
        outcome: Outcome<()>,
    },
    Continued {
        lead: bool,
        outcome: Outcome<(Vec<String>, usize)>,
    },
    Held {
        read: bool,
        outcome: Outcome<usize>,
    },
    TeammatesHeld(Outcome<Vec<(String, usize)>>),
    /// Who of them was there already, or about to begin.
    Recruited(Outcome<Vec<String>>),
    Roll {
        shown: bool,
        outcome: Outcome<Box<Roll>>,
    },
    Standing(Outcome<BTreeSet<String>>),
    Messages(Outcome<Vec<MailRecord>>),
    Shown {
        wanted: Option<String>,
        outcome: Outcome<AgentWork>,
    },
    Sessions {
        wanted: Option<String>,
        outcome: Outcome<Vec<SessionRow>>,
    },
    Left,
    /// The server that has opened the session; `None`: it has not done so in time.
    Detached(Outcome<Option<WorkerInfo>>),
    Seen,
    Opened {
        outcome: Outcome<Arrival>,
    },
}

/// Those who were called, and the one who is meant with what it has done.
pub(super) type AgentWork = (Vec<AgentRow>, Option<(AgentRow, Vec<(i64, Event)>)>);

#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) opened: Box<OpenedSession>,
    /// What was said in it.
    pub(super) events: Vec<(i64, Event)>,
}

/// Orders on their way.
pub(super) struct CommandQueue {
    context: CommandContext,
    waiting: PendingCommands,
    running: Option<Pin<Box<dyn Future<Output = CommandResult> + Send>>>,
}

/// Orders that wait. Events of the team cause many orders that only read; the user's orders, such as a stop, go before
/// them, and a new order that only reads replaces a waiting one of its kind.
#[derive(Default)]
struct PendingCommands {
    acts: VecDeque<UiCommand>,
}

impl PendingCommands {
    fn push(&mut self, mut act: UiCommand) {
        let same = match &act {
            UiCommand::Seen(_) => self.acts.iter().position(|act| matches!(act, UiCommand::Seen(_))),
            UiCommand::Standing => self.acts.iter().position(|act| matches!(act, UiCommand::Standing)),
            UiCommand::Paths(_) => self.acts.iter().position(|act| matches!(act, UiCommand::Paths(_))),
            _ => {
                let looks = self.acts.iter().rev().take_while(|act| looks(act)).count();
                return self.acts.insert(self.acts.len() - looks, act);
            }
        };
        let before = same.and_then(|at| self.acts.remove(at));
        if let (UiCommand::Seen(shown), Some(UiCommand::Seen(mut all))) = (&mut act, before) {
            all.append(shown);
            *shown = all;
        }
        self.acts.push_back(act);
    }
}

/// Whether an order only looks: a stop goes before it.
fn looks(act: &UiCommand) -> bool {
    matches!(act, UiCommand::Seen(_) | UiCommand::Standing | UiCommand::Paths(_))
}

/// What every order needs.
#[derive(Debug, Clone)]
pub(super) struct CommandContext {
    pub(super) handle: TeamHandle,
    pub(super) by: Principal,
    pub(super) cwd: PathBuf,
    pub(super) home: PathBuf,
    pub(super) definition: Definition,
    pub(super) team: Option<Team>,
    /// The flags that chose both.
    pub(super) choice: LaunchFlags,
    /// Where both are written.
    pub(super) definitions: Option<Arc<dyn Definitions>>,
    pub(super) session: SessionId,
}

impl CommandQueue {
    pub(super) fn new(context: CommandContext) -> Self {
        Self { context, waiting: PendingCommands::default(), running: None }
    }

    pub(super) fn send(&mut self, acts: impl IntoIterator<Item = UiCommand>) {
        acts.into_iter().for_each(|act| self.waiting.push(act));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_none() && self.waiting.acts.is_empty()
    }

    /// Waits for the next order to be done; forever if there is none. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> CommandResult {
        if self.running.is_none() {
            match self.waiting.acts.pop_front() {
                Some(act) => self.running = Some(Box::pin(self.context.clone().carry_out(act))),
                None => return std::future::pending().await,
            }
        }
        let done = match &mut self.running {
            Some(running) => running.await,
            None => return std::future::pending().await,
        };
        self.running = None;
        if let CommandResult::Opened { outcome: Ok(arrival), .. } = &done {
            self.context.session = arrival.opened.session;
        }
        done
    }
}

impl CommandContext {
    async fn carry_out(self, act: UiCommand) -> CommandResult {
        let session = self.session;
        match act {
            UiCommand::Say { key, text, wait } => {
                let said = text.clone();
                let command = if wait { Command::Queue { session, text } } else { Command::Say { session, text } };
                CommandResult::Said { key, text: said, outcome: self.command(key, command).await }
            }
            UiCommand::Withdraw { key, text } => {
                let outcome = self.give(Command::Withdraw { session, envelope: key }).await;
                CommandResult::Withdrawn { key, text, outcome }
            }
            UiCommand::Answer { question, answer } => {
                let command = Command::Answer { session, question, answer };
                CommandResult::Answered { question, outcome: self.give(command).await }
            }
            // A session is opened only where it works, so its project is the one we are in.
            UiCommand::Remember(rules) => {
                CommandResult::Remembered(permissions::remember(&self.home, &self.cwd, &rules))
            }
            UiCommand::Decide { question, say } => {
                CommandResult::Decided { question, outcome: self.give(Command::Decide { question, say }).await }
            }
            UiCommand::Propose { draft, source } => {
                CommandResult::Proposed(self.give(Command::Propose { session, draft, source }).await)
            }
            UiCommand::Stop { plan, task } => CommandResult::Stopped(self.give(Command::Stop { plan, task }).await),
            UiCommand::Plan(plan) => CommandResult::Plan { plan, outcome: self.ask(query::Plan { plan }).await },
            UiCommand::Tasks => CommandResult::Tasks(self.ask(query::Tasks { session }).await),
            UiCommand::Paths(settings) => CommandResult::Paths(self.paths(*settings).await),
            UiCommand::Interrupt => CommandResult::Interrupted(self.give(Command::Interrupt { session }).await),
            UiCommand::StopSession => CommandResult::Interrupted(self.give(Command::StopSession { session }).await),
            UiCommand::Compact(keep) => CommandResult::Compacted(self.give(Command::Compact { session, keep }).await),
            UiCommand::Uncompact => CommandResult::Compacted(self.give(Command::Uncompact { session }).await),
            UiCommand::Moments => CommandResult::Moments(self.ask(query::RewindPoints { session }).await),
            UiCommand::Rewinding(to) => CommandResult::Rewinding(self.ask(query::RewindPreview { session, to }).await),
            UiCommand::Rewind(plan) => CommandResult::Rewound(self.rewind(plan).await),
            UiCommand::Configure(settings) => {
                let command = Command::Configure { session, settings: *settings };
                CommandResult::Configured(self.give(command).await)
            }
            UiCommand::Status(reason) => {
                CommandResult::Status { reason, outcome: self.ask(query::Details { session }).await }
            }
            UiCommand::Write { key, to, text } => {
                let command = Command::Write { session, to: to.clone(), text: text.clone() };
                CommandResult::Written { key, outcome: self.command(key, command).await, to, text }
            }
            UiCommand::Continue { name, lead } => CommandResult::Continued { lead, outcome: self.go_on(name).await },
            UiCommand::Held { read } => {
                CommandResult::Held { read, outcome: self.ask(query::HeldMessages { session, agent: None }).await }
            }
            UiCommand::TeammatesHeld(teammates) => CommandResult::TeammatesHeld(self.held_by(teammates).await),
            UiCommand::Recruit(teammates) => CommandResult::Recruited(self.recruit(teammates).await),
            UiCommand::Roll(shown) => CommandResult::Roll { shown, outcome: self.ask(query::Team { session }).await },
            UiCommand::Standing => {
                CommandResult::Standing(self.ask(query::Team { session }).await.map(|roll| teammates::stopped(&roll)))
            }
            UiCommand::Messages => CommandResult::Messages(self.ask(query::Messages { session }).await),
            UiCommand::Seen(shown) => self.mark_read(shown).await,
            UiCommand::Show(wanted) => CommandResult::Shown { outcome: self.show(wanted.as_deref()).await, wanted },
            UiCommand::Sessions(wanted) => {
                CommandResult::Sessions { wanted, outcome: self.ask(query::Sessions { limit: SESSIONS_MAX }).await }
            }
            UiCommand::Leave => self.leave().await,
            UiCommand::Detach => CommandResult::Detached(self.detach().await),
            UiCommand::Open { which, settings } => self.open_another(which, *settings).await,
        }
    }

    /// Sends a command of its own, which is not sent again.
    async fn give(&self, command: Command) -> Outcome<()> {
        self.command(fresh(), command).await
    }

    async fn ask<Q: Question>(&self, question: Q) -> Outcome<Q::Answer> {
        self.handle.ask(question).await
    }

    /// Paths that cannot be looked for are not offered.
    async fn paths(&self, settings: Settings) -> Vec<String> {
        let (root, team) = (self.cwd.clone(), self.team.clone());
        self.ask(query::Paths { root, settings, team }).await.unwrap_or_default()
    }

    async fn held_by(&self, teammates: Vec<(String, AgentId)>) -> Outcome<Vec<(String, usize)>> {
        let mut counts = Vec::new();
        for (name, agent) in teammates {
            counts.push((name, self.ask(query::HeldMessages { session: self.session, agent: Some(agent) }).await?));
        }
        Ok(counts)
    }

    async fn leave(&self) -> CommandResult {
        self.handle.close(self.session).await;
        CommandResult::Left
    }

    /// Once the hand-over is stored, the server opens the session, also if this process dies before it has let go.
    async fn detach(&self) -> Outcome<Option<WorkerInfo>> {
        let session = self.session;
        let mut changes = self.handle.changes_elsewhere()?;
        self.give(Command::HandOver { session }).await?;
        self.handle.close(session).await;
        let opened = async {
            loop {
                match self.ask(query::Owner { session }).await {
                    Ok(None) if changes.next().await.is_ok() => {}
                    owner => return owner.ok().flatten(),
                }
            }
        };
        Ok(timeout(Duration::from_millis(HANDOVER_WAIT_MS), opened).await.ok().flatten())
    }

    async fn open_another(&self, which: Which, settings: Settings) -> CommandResult {
        CommandResult::Opened { outcome: self.open(which, settings).await }
    }

    /// Starts the teammates that do not exist yet and were not requested before. Returns the names of the others.
    async fn recruit(&self, teammates: Vec<Spawn>) -> Outcome<Vec<String>> {
        let (there, teammates) = self.ask(query::Newcomers { session: self.session, teammates }).await?;
        if !teammates.is_empty() {
            self.command(fresh(), Command::Team { session: self.session, teammates }).await?;
        }
        Ok(there.into_iter().map(|teammate| teammate.name).collect())
    }

    /// Continues one stopped agent, or all of them and the stopped plans. Returns their names, and the number of messages
    /// that wait for the lead if all continue.
    async fn go_on(&self, name: Option<String>) -> Outcome<(Vec<String>, usize)> {
        let session = self.session;
        if let Some(name) = name {
            self.command(fresh(), Command::Continue { session, to: vec![name.clone()] }).await?;
            return Ok((vec![name], 0));
        }
        let held = self.ask(query::HeldMessages { session, agent: None }).await?;
        let agents = self.ask(query::Stopped { session }).await?.into_iter().map(|reader| reader.name);
        let plans = self.ask(query::StoppedPlans { session }).await?;
        let names: Vec<String> = agents.chain(plans.iter().map(short)).collect();
        if !names.is_empty() {
            self.command(fresh(), Command::Continue { session, to: Vec::new() }).await?;
        }
        Ok((names, held))
    }

    /// What could not be written down now is read when it is shown the next time.
    async fn mark_read(&self, shown: Vec<ShownContent>) -> CommandResult {
        drop(self.command(fresh(), Command::MarkRead { shown }).await);
        CommandResult::Seen
    }

    async fn rewind(&self, plan: Box<rewind::RewindPlan>) -> Outcome<rewind::Outcome> {
        let (session, key) = (self.session, fresh());
        self.command(key, Command::Rewind { session, plan }).await?;
        Ok(self.ask(query::RewindOutcome { session, key }).await?.unwrap_or_default())
    }

    async fn show(&self, wanted: Option<&str>) -> Outcome<AgentWork> {
        let called: Vec<AgentRow> = self
            .handle
            .ask(query::Agents { session: self.session })
            .await?
            .into_iter()
            .filter(|row| row.assignment.is_some())
            .collect();
        // Of several with one name the last is meant.
        let meant = wanted.and_then(|wanted| called.iter().rfind(|row| row.is(wanted)).cloned());
        let shown = match meant {
            Some(row) => {
                let events = self.ask(query::AgentEvents { agent: row.agent }).await?;
                Some((row, events))
            }
            None => None,
        };
        Ok((called, shown))
    }

    async fn command(&self, key: EnvelopeId, command: Command) -> Outcome<()> {
        let order = Order { by: self.by.clone(), cwd: self.cwd.display().to_string(), key, command };
        self.handle.command(order).await
    }

    /// The other session is opened first: if that fails, this one is still there.
    async fn open(&self, which: Which, settings: Settings) -> Outcome<Arrival> {
        let (definition, team) = (self.definition.clone(), self.team.clone());
        let (choice, definitions) = (self.choice.clone(), self.definitions.clone());
        let open = OpenOptions { choice, definitions, ..OpenOptions::new(which, definition, settings, team) };
        let opened = self.handle.open(self.by.clone(), &self.cwd, open).await?;
        let events =
            if opened.resumed { self.ask(query::Events { session: opened.session }).await } else { Ok(Vec::new()) };
        // One of the two is left: this one if the other cannot be read.
        let left = if events.is_ok() { self.session } else { opened.session };
        if left != opened.session || events.is_err() {
            self.handle.close(left).await;
        }
        Ok(Arrival { opened: Box::new(opened), events: events? })
    }
}

/// A key for an order that is given once.
pub(super) fn fresh() -> EnvelopeId {
    EnvelopeId::new(new_id())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn queries_wait_behind_a_stop_and_once() {
        let envelope = |number| ShownContent::Message(EnvelopeId::new(Uuid::from_u128(number)));
        let mut queue = PendingCommands::default();
        let say = |text: &str| UiCommand::Say { key: fresh(), text: text.to_owned(), wait: false };
        for number in 1..=3 {
            queue.push(UiCommand::Seen(vec![envelope(number)]));
            queue.push(UiCommand::Standing);
            queue.push(UiCommand::Tasks);
        }
        queue.push(say("first"));
        queue.push(UiCommand::Interrupt);
        queue.push(UiCommand::Standing);
        queue.push(say("second"));
        queue.push(UiCommand::StopSession);
        let words: Vec<String> = queue
            .acts
            .iter()
            .map(|act| match act {
                UiCommand::Say { text, .. } => text.clone(),
                UiCommand::Seen(shown) => format!("{}", *shown == [envelope(1), envelope(2), envelope(3)]),
                act => format!("{act:?}"),
            })
            .collect();
        let want = ["Tasks", "Tasks", "Tasks", "first", "Interrupt", "second", "StopSession", "true", "Standing"];
        assert_eq!(words, want);
    }
}
