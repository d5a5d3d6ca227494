//! The house: what all sessions of this process share, and who is at work in it.
//!
//! Opening a session claims it for this process (a second owner is refused, by name), folds its agent's stream and
//! starts the loop. Saying something is one transaction: the words in the session's stream and the letter in the
//! lead's mailbox; the loop hears of it afterwards. Nothing lives only in a channel.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use max_team_core::event::{AgentStarted, Event, Said, SessionOpened, VERSION};
use max_team_core::id::{AgentId, SessionId};
use max_team_core::limits::{CONTROLS_MAX, MESSAGE_BYTES_MAX, NOTICES_MAX, QUEUE_MAX};
use max_team_core::message::{Envelope, Kind, Principal};
use max_team_core::turn::{Effect, Turn};
use max_team_journal::{Append, Commit, Entry, Fence, Journal, JournalError, Strength, Worker};
use max_team_llm::Router;
use max_team_tools::Registry;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::agent::{Agent, Control, Frame, SNAPSHOT_VERSION, Seat};
use crate::audit::{Audit, AuditOptions};
use crate::error::RuntimeError;
use crate::handle::{Asked, Command, Notice, Open, Opened, Order, Status, TeamHandle, Which};
use crate::session::{self, Sessions, event_of};

/// What a house is built from.
#[derive(Debug)]
pub struct Options {
    /// What survives.
    pub journal: Journal,
    /// This process, as an owner.
    pub worker: Worker,
    /// The models.
    pub router: Router,
    /// The tools there are.
    pub tools: Registry,
    /// The user's folder, for their own instructions.
    pub home: PathBuf,
    /// Today's date and the platform, as the model is told them.
    pub surroundings: String,
    /// Where the audit lines go, if anywhere.
    pub audit: Option<AuditOptions>,
}

/// What every loop of this process shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub journal: Journal,
    pub worker: Worker,
    pub router: Router,
    pub tools: Registry,
    pub home: PathBuf,
    pub surroundings: String,
    audit: Option<Audit>,
    watchers: Mutex<Vec<mpsc::Sender<Notice>>>,
}

impl Shared {
    /// Tells every face; waits for the slow ones.
    pub(crate) async fn publish(&self, notice: Notice) {
        let watchers = lock(&self.watchers).clone();
        for watcher in &watchers {
            if watcher.send(notice.clone()).await.is_err() {
                lock(&self.watchers).retain(|watcher| !watcher.is_closed());
            }
        }
    }

    /// Tells every face that keeps up: for what is only for show.
    pub(crate) fn show(&self, notice: &Notice) {
        for watcher in lock(&self.watchers).iter() {
            // A face that has fallen behind sees the finished answer instead; half of its queue is kept for that.
            if watcher.capacity() > NOTICES_MAX / 2 {
                drop(watcher.try_send(notice.clone()));
            }
        }
    }

    pub(crate) fn audit(&self, agent: &str, at_ms: i64, event: &Event) {
        if let Some(audit) = &self.audit {
            audit.record(agent, at_ms, event);
        }
    }
}

/// All sessions of this process.
#[derive(Debug)]
pub struct House {
    pub(crate) shared: Arc<Shared>,
    desks: Mutex<HashMap<SessionId, Desk>>,
}

/// An open session.
#[derive(Debug)]
struct Desk {
    agent: AgentId,
    epoch: u64,
    root: String,
    controls: mpsc::Sender<Control>,
    task: JoinHandle<()>,
}

impl House {
    /// Builds the house; nothing runs until a session is opened.
    #[must_use]
    pub fn build(options: Options) -> TeamHandle {
        let shared = Shared {
            journal: options.journal,
            worker: options.worker,
            router: options.router,
            tools: options.tools,
            home: options.home,
            surroundings: options.surroundings,
            audit: options.audit.map(Audit::new),
            watchers: Mutex::new(Vec::new()),
        };
        TeamHandle { house: Arc::new(Self { shared: Arc::new(shared), desks: Mutex::new(HashMap::new()) }) }
    }

    pub(crate) fn watch(&self) -> mpsc::Receiver<Notice> {
        let (sender, receiver) = mpsc::channel(NOTICES_MAX);
        lock(&self.shared.watchers).push(sender);
        receiver
    }

    pub(crate) async fn open(&self, by: Principal, cwd: &Path, open: Open) -> Result<Opened, RuntimeError> {
        let sessions = Sessions::new(&self.shared.journal);
        let found = match open.which {
            Which::New => None,
            Which::Latest => Some(sessions.latest(cwd)?),
            Which::Id(session) => Some(sessions.row(session)?),
        };
        let resumed = found.is_some();
        let (session, agent, root) = match found {
            Some(row) => (row.session, row.lead, PathBuf::from(row.cwd)),
            None => (SessionId::new(Uuid::now_v7()), AgentId::new(Uuid::now_v7()), cwd.to_path_buf()),
        };
        if lock(&self.desks).contains_key(&session) {
            return Err(RuntimeError::AlreadyOpen(session));
        }
        let resource = session::stream(session);
        let epoch = self.shared.journal.claim(&resource, &self.shared.worker).await?;
        let fence = Fence { resource, worker: self.shared.worker.id(), epoch };
        let opened = self.seat(session, agent, fence.clone(), &root, by, &open, resumed).await;
        if opened.is_err() {
            // What could not be opened is not kept from others.
            drop(self.shared.journal.release(&fence.resource, &self.shared.worker, epoch).await);
        }
        opened
    }

    /// Folds what is there, writes down what is new, and starts the loop.
    #[expect(clippy::too_many_arguments, reason = "the parts of one session, used once")]
    async fn seat(
        &self,
        session: SessionId,
        agent: AgentId,
        fence: Fence,
        root: &Path,
        by: Principal,
        open: &Open,
        resumed: bool,
    ) -> Result<Opened, RuntimeError> {
        let (turn, head) = if resumed { self.fold(agent)? } else { (Turn::new(), 0) };
        let definition = turn.identity().map_or(&open.definition, |(_, _, definition)| definition).clone();
        let frame = Frame::new(&self.shared, root, definition, open.settings.clone(), open.schema.clone())?;
        let mut seat = Seat { session, agent, fence, head, turn, frame };
        self.settle_in(&mut seat, by, root, open, resumed).await?;
        let waiting = self.shared.journal.pending_mail(&session::agent_stream(agent))?;
        let opened = Opened {
            session,
            agent,
            resumed,
            continuing: seat.turn.is_busy() || waiting.iter().any(|mail| mail.kind == Kind::UserInput),
            history: seat.turn.history().to_vec(),
            last: seat.turn.last().cloned(),
            asked: asked(&seat.turn),
            instructions: seat.frame.files().to_vec(),
            notes: seat.frame.notes().to_vec(),
        };
        let (controls, receiver) = mpsc::channel(CONTROLS_MAX);
        let epoch = seat.fence.epoch;
        let task = tokio::spawn(watch_over(
            Arc::clone(&self.shared),
            session,
            Agent::new(Arc::clone(&self.shared), seat).run(receiver),
        ));
        lock(&self.desks).insert(session, Desk { agent, epoch, root: root.display().to_string(), controls, task });
        Ok(opened)
    }

    /// Writes down that the session and its agent exist, and the settings if they are not the ones of before.
    async fn settle_in(
        &self,
        seat: &mut Seat,
        by: Principal,
        root: &Path,
        open: &Open,
        resumed: bool,
    ) -> Result<(), RuntimeError> {
        let at_ms = now_ms();
        let stream = session::agent_stream(seat.agent);
        let mut commit = commit_at(at_ms);
        commit.fence = Some(seat.fence.clone());
        let mut events = Vec::new();
        if !resumed {
            let opened = Event::SessionOpened(SessionOpened {
                session: seat.session,
                lead: seat.agent,
                cwd: root.display().to_string(),
                by,
            });
            let session_stream = session::stream(seat.session);
            commit.projections.extend(session::project(&session_stream, at_ms, &opened));
            commit.appends.push(append(&session_stream, &opened, "house")?);
            let definition = open.definition.clone();
            events.push(Event::AgentStarted(AgentStarted { agent: seat.agent, session: seat.session, definition }));
        }
        if seat.turn.settings() != Some(&open.settings) {
            events.push(Event::Configured(max_team_core::event::Configured { settings: open.settings.clone() }));
        }
        for event in &events {
            commit.appends.push(append(&stream, event, "house")?);
        }
        if commit.appends.is_empty() {
            return Ok(());
        }
        self.shared.journal.commit(commit).await?;
        seat.head += events.len() as u64;
        events.iter().for_each(|event| seat.turn.apply(event));
        Ok(())
    }

    fn fold(&self, agent: AgentId) -> Result<(Turn, u64), RuntimeError> {
        let apply = |turn: &mut Turn, entry: &Entry| {
            turn.apply(&event_of(entry)?);
            Ok::<_, RuntimeError>(())
        };
        let stream = session::agent_stream(agent);
        let folded = self.shared.journal.fold(&stream, SNAPSHOT_VERSION, Turn::new(), apply)?;
        Ok((folded.state, folded.stream_seq))
    }

    pub(crate) async fn command(&self, order: Order) -> Result<(), RuntimeError> {
        match order.command {
            Command::Say { session, ref text } => self.say(session, text, &order).await,
            Command::Answer { session, question, ref answer } => {
                let body = json!({ "question": question, "answer": answer });
                let mut commit = commit_at(now_ms());
                commit.sends.push(self.letter(session, &order, Kind::PermissionResponse, body)?);
                // The answer lets a tool run: it must not be forgotten.
                commit.strength = Strength::Full;
                self.shared.journal.commit(commit).await?;
                self.tell(session, Control::Mail).await
            }
            Command::Interrupt { session } => self.tell(session, Control::Interrupt { by: order.by.door }).await,
            Command::Configure { session, settings } => {
                self.tell(session, Control::Configure(Box::new(settings))).await
            }
        }
    }

    async fn say(&self, session: SessionId, text: &str, order: &Order) -> Result<(), RuntimeError> {
        if text.len() > MESSAGE_BYTES_MAX {
            return Err(RuntimeError::TooLong { bytes: text.len(), max: MESSAGE_BYTES_MAX });
        }
        let letter = self.letter(session, order, Kind::UserInput, json!({ "text": text }))?;
        if self.shared.journal.has_mail(letter.id)? {
            // The same order came twice: it was acknowledged, and is again.
            return Ok(());
        }
        if self.shared.journal.pending_mail(&letter.to)?.len() >= QUEUE_MAX {
            return Err(RuntimeError::QueueFull(QUEUE_MAX));
        }
        let at_ms = now_ms();
        let cwd = lock(&self.desks).get(&session).map(|desk| desk.root.clone()).unwrap_or_default();
        let said = Event::Said(Said { envelope: order.key, text: text.to_owned(), by: order.by.clone(), cwd });
        let stream = session::stream(session);
        let mut commit = commit_at(at_ms);
        commit.strength = Strength::Full;
        commit.projections.extend(session::project(&stream, at_ms, &said));
        commit.appends.push(append(&stream, &said, &order.by.address())?);
        commit.sends.push(letter);
        self.shared.journal.commit(commit).await?;
        // Whoever says something must not wait for faces, of which it may be one; one that is behind reads the log.
        self.shared.show(&Notice::Event { session, at_ms, event: Arc::new(said) });
        self.tell(session, Control::Mail).await
    }

    fn letter(
        &self,
        session: SessionId,
        order: &Order,
        kind: Kind,
        body: serde_json::Value,
    ) -> Result<Envelope, RuntimeError> {
        let agent = lock(&self.desks).get(&session).map(|desk| desk.agent).ok_or(RuntimeError::NotOpen(session))?;
        Ok(Envelope {
            id: order.key,
            from: order.by.address(),
            to: session::agent_stream(agent),
            kind,
            body,
            reply_to: None,
            cause: None,
            sent_at_ms: now_ms(),
        })
    }

    async fn tell(&self, session: SessionId, control: Control) -> Result<(), RuntimeError> {
        let controls = lock(&self.desks).get(&session).map(|desk| desk.controls.clone());
        let controls = controls.ok_or(RuntimeError::NotOpen(session))?;
        let gone = |_| RuntimeError::AgentStopped("see the error above".to_owned());
        controls.send(control).await.map_err(gone)
    }

    pub(crate) async fn status(&self, session: SessionId) -> Result<Status, RuntimeError> {
        let (sender, receiver) = oneshot::channel();
        self.tell(session, Control::Status(sender)).await?;
        receiver.await.map_err(|_| RuntimeError::AgentStopped("it ended before it answered".to_owned()))
    }

    pub(crate) async fn close_session(&self, session: SessionId) {
        let desk = lock(&self.desks).remove(&session);
        if let Some(desk) = desk {
            // A loop that has already gone needs no telling.
            drop(desk.controls.send(Control::Stop).await);
            drop(desk.task.await);
            // A claim that cannot be given back dies with the process.
            drop(self.shared.journal.release(&session::stream(session), &self.shared.worker, desk.epoch).await);
        }
    }

    pub(crate) async fn shutdown(&self) -> Result<(), RuntimeError> {
        let open: Vec<SessionId> = lock(&self.desks).keys().copied().collect();
        for session in open {
            self.close_session(session).await;
        }
        Ok(self.shared.journal.close().await?)
    }
}

/// Questions that were open when the last process went.
fn asked(turn: &Turn) -> Vec<Asked> {
    let open = turn.pending().into_iter().filter_map(|effect| match effect {
        Effect::Ask { question, tool, action } => Some(Asked { question, tool, action }),
        _ => None,
    });
    open.collect()
}

/// Runs an agent's loop; if it crashes, the faces are told instead of waiting for ever. The log knows where it was.
async fn watch_over(shared: Arc<Shared>, session: SessionId, work: impl Future<Output = ()> + Send + 'static) {
    if let Err(crash) = tokio::spawn(work).await {
        let error = Arc::new(RuntimeError::AgentStopped(format!("{crash}; go on with `max-team -r {session}`")));
        shared.publish(Notice::Stopped { session, error }).await;
    }
}

/// An event as the journal takes it.
pub(crate) fn append(stream: &str, event: &Event, actor: &str) -> Result<Append, RuntimeError> {
    let malformed =
        |error: serde_json::Error| JournalError::Malformed { what: "an event".to_owned(), detail: error.to_string() };
    let payload = serde_json::to_vec(event).map_err(malformed)?;
    Ok(Append {
        stream: stream.to_owned(),
        event: event.name().into(),
        version: VERSION,
        payload,
        actor: actor.to_owned(),
        cause: None,
    })
}

/// A commit decided now, by the house.
pub(crate) fn commit_at(at_ms: i64) -> Commit {
    Commit { at_ms, actor: "house".to_owned(), ..Commit::default() }
}

/// Milliseconds since 1970, UTC.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A lock whose holder panicked still guards plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
