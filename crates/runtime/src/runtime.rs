//! The runtime of one process: what all its sessions share, and the sessions that are open.
//!
//! Opening a session claims it for this process (a second owner is refused, by name), folds its agent's stream and
//! starts the loop. A user's message is one transaction: the text in the session's stream and the message in the
//! lead's mailbox; the loop hears of it afterwards. Nothing lives only in a channel.

mod beside;
mod command;
mod redefine;
mod resume;
mod withdraw;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use max_team_core::agent::{Definition, Isolation, Settings};
use max_team_core::body::Body;
use max_team_core::delegation::tool_filter::COORDINATING;
use max_team_core::event::{AgentStarted, Configured, Event, SessionOpened};
use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_core::message::{Envelope, Principal};
use max_team_core::policy::DecidedBy;
use max_team_core::turn::{Turn, is_stop};
use max_team_journal::{Fence, WorkerInfo};
use max_team_llm::Router;
use max_team_tools::worktree::Worktree;
use max_team_tools::{Registry, Services, ToolSources};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::active_session::ActiveSession;
use crate::agent::{Agent, Control, Frame, Seat, UNATTENDED};
use crate::audit::AuditOptions;
use crate::error::RuntimeError;
use crate::handle::{Notice, OpenOptions, OpenQuestion, OpenedSession, Queued, SessionDetails, TeamHandle, Which};
use crate::maintenance::Storage;
use crate::memory::Remember;
use crate::read_model::ReadModel;
use crate::rewind;
use crate::rows::{self, AgentRow, Matter};
use crate::session::{self, SessionRow, Sessions};
use crate::shared::{Shared, append, commit_at, lock, new_id, now_ms};
use crate::skills::Places;
use crate::user_mail::{self, PendingQuestion, UserMail};
use crate::worktree;

pub use resume::ResumedLead;

/// What the runtime is built from.
#[derive(Debug)]
pub struct Options {
    pub storage: Storage,
    /// This process, as others are told of it.
    pub process: WorkerInfo,
    pub router: Router,
    /// The tools that exist.
    pub tools: Registry,
    /// Sources of further tools, such as MCP servers; an agent has the tools of those that its definition names.
    pub sources: Arc<dyn ToolSources>,
    /// Services outside the project that tools may use.
    pub services: Services,
    /// The user's folder: their own instructions, and outputs that are too large for a result.
    pub home: PathBuf,
    /// The user's folders of other programs; notes of agents are read there, too.
    pub others: Vec<PathBuf>,
    /// Today's date and the platform, for prompts.
    pub surroundings: String,
    /// Whether commands run in a sandbox; only the user turns it off.
    pub walled: bool,
    /// Where the audit lines go, if anywhere.
    pub audit: Option<AuditOptions>,
    /// The folders of skills.
    pub skills: Places,
    /// How memory is kept. Without it leads still read the memory, but nothing is extracted from conversations.
    pub remember: Option<Remember>,
}

/// All sessions of this process.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) shared: Arc<Shared>,
    sessions: Mutex<HashMap<SessionId, SessionEntry>>,
    /// The accounts of channels and the folder that this process serves, with the epoch of each claim.
    pub(crate) served: Mutex<HashMap<String, u64>>,
    /// How many sessions are being opened.
    opening: Mutex<usize>,
    /// Set once this process listens for writes of other processes.
    listening: AtomicBool,
}

/// A session that is being opened.
struct Opening<'h>(&'h Mutex<usize>);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        *lock(self.0) -= 1;
    }
}

/// An open session.
#[derive(Debug, Clone)]
struct SessionEntry {
    active: Arc<ActiveSession>,
    epoch: u64,
}

impl Runtime {
    /// Builds the runtime; nothing runs until a session is opened.
    pub fn build(options: Options) -> Result<TeamHandle, RuntimeError> {
        let shared = Shared::new(options)?;
        let runtime = Self {
            shared: Arc::new(shared),
            sessions: Mutex::new(HashMap::new()),
            served: Mutex::default(),
            opening: Mutex::new(0),
            listening: AtomicBool::new(false),
        };
        Ok(TeamHandle { runtime: Arc::new(runtime) })
    }

    pub(crate) fn watch(&self) -> mpsc::Receiver<Notice> {
        self.shared.notices.watch()
    }

    pub(crate) async fn open(
        self: &Arc<Self>,
        by: Principal,
        cwd: &Path,
        open: OpenOptions,
    ) -> Result<OpenedSession, RuntimeError> {
        let (open, changes) = open.refreshed();
        let definitions = open.definitions.clone();
        let sessions = Sessions::new(&self.shared.journal);
        let found = match open.which.clone() {
            Which::New | Which::Fork(..) => None,
            Which::Latest => Some(sessions.latest(cwd)?),
            Which::Chat(ref chat) => sessions.of_chat(chat)?,
            Which::Id(session) | Which::Before(session) => Some(at(cwd, sessions.row(session)?)?),
        };
        let resumed = found.is_some();
        let (session, agent, root) = match found {
            Some(row) => (row.session, row.lead, PathBuf::from(row.cwd)),
            None => (SessionId::new(new_id()), AgentId::new(new_id()), cwd.to_path_buf()),
        };
        if lock(&self.sessions).contains_key(&session) {
            return Err(RuntimeError::AlreadyOpen(session));
        }
        let resource = session::stream(session);
        let opening = self.begin_opening()?;
        // Blobs of a session that was closed here may not have been stored.
        lock(&self.shared.stored).blobs.clear();
        let epoch = self.shared.journal.claim(&resource, &self.shared.worker).await?;
        let fence = Fence { resource, worker: self.shared.worker.id(), epoch };
        let opened = self.open_claimed((session, agent, root), fence.clone(), by, open, resumed).await;
        drop(opening);
        if opened.is_err() {
            // A session that could not be opened is released, and loops that already started there are closed.
            let entry = lock(&self.sessions).remove(&session);
            if let Some(entry) = entry {
                entry.active.close().await;
            }
            self.give_back(&fence.resource, epoch).await;
            return opened;
        }
        opened.map(|mut opened| {
            if let (Some(definitions), Some(crew)) = (definitions, &changes.crew) {
                definitions.accepted(crew);
            }
            opened.notes.extend(changes.notes);
            opened.crew = changes.crew;
            opened
        })
    }

    /// Opens a session that this process owns: from here on, a new one and a resumed one differ in their history alone.
    async fn open_claimed(
        self: &Arc<Self>,
        (session, lead, root): (SessionId, AgentId, PathBuf),
        fence: Fence,
        by: Principal,
        open: OpenOptions,
        resumed: bool,
    ) -> Result<OpenedSession, RuntimeError> {
        if resumed {
            let shared = Arc::clone(&self.shared);
            // Before any agent changes a file on top of them. If the runtime ends, no agent begins.
            drop(tokio::task::spawn_blocking(move || rewind::settle(&shared.journal, &shared.trees, session)).await);
        }
        let (turn, head) = if resumed { self.shared.fold_agent(lead)? } else { (Turn::new(), 0) };
        let bound = match &open.which {
            Which::Fork(_, bound, _) => Some(bound.clone()),
            _ => ResumedLead::read(&turn),
        };
        let open = match &bound {
            Some(bound) => bound.open(open, &self.shared.tools),
            None => open,
        };
        let cap = crate::plan::cap(&open.settings);
        let mut active =
            ActiveSession::new(Arc::clone(&self.shared), session, lead, fence, root, open.team.clone(), cap);
        active.bound = bound;
        active.is_unattended = open.unattended;
        active.chat = match &open.which {
            Which::Chat(chat) | Which::Fork(.., Some(chat)) => Some(chat.clone()),
            _ if resumed => Sessions::new(&self.shared.journal).row(session)?.chat,
            _ => None,
        };
        active.definitions.clone_from(&open.definitions);
        self.seat(&Arc::new(active), by, &open, turn, head, resumed).await
    }

    /// Releases a session, so that any process can claim it. If that cannot be written, this process gives up all of
    /// its claims.
    async fn give_back(&self, resource: &str, epoch: u64) {
        let released = self.shared.journal.release(resource, &self.shared.worker, epoch).await;
        // A session that is being opened is owned, too, although it has no desk yet.
        let opening = lock(&self.opening);
        if released.is_err() && *opening == 0 && lock(&self.sessions).is_empty() {
            self.shared.worker.rest();
        }
    }

    /// The unfinished plans of a session: they need a team.
    fn plans_of(&self, session: SessionId, open: &OpenOptions) -> Result<Vec<PlanId>, RuntimeError> {
        let plans = ReadModel::new(&self.shared.journal).open_plans(Some(session))?;
        if !plans.is_empty() && open.team.as_ref().is_none_or(|team| team.members.is_empty()) {
            let words = "this session has a plan at work, which needs its team: leave --solo and --agent out";
            return Err(RuntimeError::Plan(words.to_owned()));
        }
        Ok(plans)
    }

    /// A session is about to be opened: until that is decided, the worker keeps its lock.
    fn begin_opening(&self) -> Result<Opening<'_>, RuntimeError> {
        let mut opening = lock(&self.opening);
        self.shared.worker.revive()?;
        *opening += 1;
        drop(opening);
        Ok(Opening(&self.opening))
    }

    /// Folds the stored state, records what is new, and starts the loops.
    async fn seat(
        self: &Arc<Self>,
        active: &Arc<ActiveSession>,
        by: Principal,
        open: &OpenOptions,
        turn: Turn,
        head: u64,
        resumed: bool,
    ) -> Result<OpenedSession, RuntimeError> {
        let (session, lead) = (active.session, active.lead);
        let definition = Arc::new(open.definition.clone());
        let coordinates = open.team.as_ref().is_some_and(|team| team.coordinator);
        let copy = self.copy_for(active, &turn, &definition, open).await?;
        let (copy, settings) = copy.map_or((None, open.settings.clone()), |(copy, settings)| (Some(copy), settings));
        let (definition, frame) =
            self.lead_frame(active, copy.as_ref(), definition, settings, open.schema.clone(), coordinates)?;
        let pool = active.pool.clone();
        let mut seat =
            Seat { agent: lead, head, turn, frame, pool, lead: true, caller: None, aside: false, resumed: true };
        self.settle_in(active, &mut seat, by, open, definition, resumed).await?;
        let stream = session::agent_stream(lead);
        let waiting = self.shared.journal.pending_mail(&stream)?;
        let plans = if resumed { self.plans_of(session, open)? } else { Vec::new() };
        if active.pool.is_bounded() && resumed {
            self.charge(active, &seat.turn)?;
        }
        let (teammates, working) =
            if resumed { (active.teammates_with_mail()?, active.working()?) } else { Default::default() };
        let (is_busy, is_stopped) = (seat.turn.is_busy(), waiting.iter().any(is_stop));
        let begins = seat.turn.would_begin(&waiting, true);
        let late = if resumed { active.plans_with_mail(&plans)? } else { Vec::new() };
        let is_at_work =
            !plans.is_empty() || !late.is_empty() || !working.is_empty() || active.any_begins(&teammates)?;
        let recovered = if resumed { active.recovered(&seat.turn, &plans)? } else { Default::default() };
        let opened = OpenedSession {
            session,
            agent: lead,
            settings: Arc::clone(seat.frame.settings()),
            resumed,
            continuing: is_at_work || is_busy || begins,
            lead_goes_on: (is_busy && !is_stopped) || begins,
            lead_halts: is_busy && is_stopped,
            history: seat.turn.history().to_vec(),
            queued: waiting.iter().filter_map(unread).collect(),
            held: seat.turn.waiting(&waiting, true),
            last: seat.turn.last().cloned(),
            asked: self.asked(session, seat.agent)?,
            recovered,
            plans: plans.clone(),
            instructions: seat.frame.files().to_vec(),
            notes: seat.frame.notes().to_vec(),
            skills: self.shared.callable_skills(&active.root),
            moved: ReadModel::new(&self.shared.journal).moved_files(session)?,
            cost: ReadModel::new(&self.shared.journal).session_cost(session)?,
            crew: None,
        };
        if resumed {
            active.sweep_tasks().await?;
        }
        // A commit that was killed with its supervisor may have left locks that block git.
        max_team_tools::git::clear_left_locks(&active.root);
        let entry = SessionEntry { active: Arc::clone(active), epoch: active.fence.epoch };
        lock(&self.sessions).insert(session, entry);
        active.bind(&stream, seat.frame.settings());
        let place = active.sit(&stream);
        active.seat_plans(&plans)?;
        late.into_iter().try_for_each(|plan| active.seat_plan(plan))?;
        active.seat_working(working, &plans)?;
        teammates.into_iter().try_for_each(|agent| active.seat_agent(agent))?;
        if resumed {
            active.wake_claimers()?;
        }
        // Last, so that the session is not reported idle before all loops run.
        if let Some(place) = place {
            let agent = Agent::new(Arc::clone(active), seat, &place.bell);
            active.spawn(stream, Box::new(agent).run(place.controls));
        }
        // Other processes may answer a question of this session, or stop it.
        self.listen();
        Ok(opened)
    }

    /// The worktree of a lead that works itself, and its settings there. A lead with a team has no tools for files. A
    /// lead that was given a worktree before keeps it, with or without a team, and never works in the project.
    async fn copy_for(
        &self,
        active: &ActiveSession,
        turn: &Turn,
        definition: &Definition,
        open: &OpenOptions,
    ) -> Result<Option<(Worktree, Settings)>, RuntimeError> {
        let is_alone = open.team.as_ref().is_none_or(|team| team.members.is_empty());
        let had_one = turn.settings().is_some_and(|known| !known.permissions.copy.is_empty());
        if !had_one && (!is_alone || definition.isolation != Isolation::Worktree) {
            return Ok(None);
        }
        let settings = worktree::within(&self.shared, active.lead, open.settings.clone());
        let worker = worktree::Worker::leading(active, &settings, definition);
        let path = active.root.display().to_string();
        let made = worker.clone().prepare(&self.shared, &CancellationToken::new()).await;
        made.map_err(|detail| RuntimeError::Root { path, detail })?;
        Ok(Some((worker.place(&self.shared)?, settings)))
    }

    /// What the session has spent before: the lead's own ledger, and the turns of all other agents.
    fn charge(&self, active: &ActiveSession, lead: &Turn) -> Result<(), RuntimeError> {
        let ledger = lead.ledger();
        let lead_nano = ledger.spent_nano.saturating_add(ledger.unknown_nano);
        active.pool.charge(lead_nano, crate::budget::tokens(ledger.usage));
        active.pool.alone(|open| open.reserve(ledger.reserved_nano, 0));
        active.charge(None)
    }

    /// Records the session, its agent, and the settings if they have changed.
    async fn settle_in(
        &self,
        active: &ActiveSession,
        seat: &mut Seat,
        by: Principal,
        open: &OpenOptions,
        definition: Arc<Definition>,
        resumed: bool,
    ) -> Result<(), RuntimeError> {
        // Before any loop begins a turn.
        active.know_turn(seat.turn.newest());
        let at_ms = now_ms();
        let stream = session::agent_stream(seat.agent);
        let mut commit = commit_at(at_ms);
        commit.fence = Some(active.fence.clone());
        let mut events = Vec::new();
        if !resumed {
            let opened = Event::SessionOpened(SessionOpened {
                session: active.session,
                lead: seat.agent,
                cwd: active.root.display().to_string(),
                by: by.clone(),
                choice: open.choice.clone(),
                chat: active.chat.clone(),
            });
            let session_stream = session::stream(active.session);
            commit.projections.extend(rows::project(&session_stream, at_ms, &opened));
            commit.appends.push(append(&session_stream, &opened, "house")?);
            let definition = Arc::clone(&definition);
            let (agent, session) = (seat.agent, active.session);
            events.push(Event::AgentStarted(AgentStarted {
                agent,
                session,
                definition,
                assignment: None,
                settings: None,
            }));
        }
        let settings = seat.frame.settings();
        let changed = seat.turn.identity().is_some_and(|(_, _, known)| *known != definition);
        if seat.turn.settings() != Some(settings) || changed {
            let definition = changed.then_some(definition);
            let by = Some(DecidedBy::person(&by));
            events.push(Event::Configured(Configured { settings: Arc::clone(settings), definition, by }));
        }
        if let Which::Fork(forked, ..) = &open.which {
            events.push(Event::Forked(forked.clone()));
        }
        if let Which::Before(_) = open.which {
            events.push(seat.turn.uncompact().ok_or(RuntimeError::NothingCompacted)?);
        }
        for event in &events {
            commit.projections.extend(rows::project(&stream, at_ms, event));
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

    /// Listens for messages that other processes write into our mailboxes; started with the first session that is
    /// opened.
    fn listen(self: &Arc<Self>) {
        if self.listening.swap(true, Ordering::AcqRel) {
            return;
        }
        let Ok(mut nudges) = self.shared.journal.nudges() else { return };
        let runtime = Arc::downgrade(self);
        tokio::spawn(async move {
            while nudges.next().await.is_ok() {
                let Some(runtime) = runtime.upgrade() else { return };
                let actives: Vec<Arc<ActiveSession>> =
                    lock(&runtime.sessions).values().map(|entry| Arc::clone(&entry.active)).collect();
                for active in &actives {
                    active.ring_all();
                    drop(active.hear_of_list());
                    // What cannot be read now is looked at with the next nudge.
                    drop(active.wake_claimers());
                }
            }
        });
    }

    /// The request frame of a lead. One that only coordinates has only the tools for that.
    pub(crate) fn lead_frame(
        &self,
        active: &ActiveSession,
        copy: Option<&Worktree>,
        definition: Arc<Definition>,
        settings: Settings,
        schema: Option<serde_json::Value>,
        coordinates: bool,
    ) -> Result<(Arc<Definition>, Frame), RuntimeError> {
        let mut seen = Arc::clone(&definition);
        if coordinates {
            Arc::make_mut(&mut seen).tools.retain(|tool| COORDINATING.contains(&tool.as_str()));
        }
        let callees = active.callees(&seen);
        let root = copy.map_or_else(|| active.root.clone(), Worktree::root);
        let note = active.is_unattended.then_some(UNATTENDED);
        let frame = Frame::new(&self.shared, &root, seen, settings.into(), schema, callees, note)?;
        let frame = if let Some(copy) = copy { frame.at_work_in(copy) } else { frame };
        let frame = if active.call_depth() > 0 { frame } else { frame.left_alone(&self.shared) }.outlining();
        Ok((definition, if self.shared.recalls() { frame.recalling() } else { frame }))
    }

    fn active(&self, session: SessionId) -> Result<Arc<ActiveSession>, RuntimeError> {
        let entry = lock(&self.sessions).get(&session).map(|entry| Arc::clone(&entry.active));
        entry.ok_or(RuntimeError::NotOpen(session))
    }

    /// Wakes the loop at an address, if its session is open here; otherwise the session's owner hears of the message
    /// by a nudge.
    fn ring(&self, address: &str) {
        let session = user_mail::session_at(&self.shared.journal, address);
        if let Some(active) = session.and_then(|session| self.active(session).ok()) {
            active.ring(address);
        }
    }

    async fn tell(&self, session: SessionId, control: Control) -> Result<(), RuntimeError> {
        let active = self.active(session)?;
        active.tell(&session::agent_stream(active.lead), control).await
    }

    pub(crate) async fn details(&self, session: SessionId) -> Result<SessionDetails, RuntimeError> {
        let (sender, receiver) = oneshot::channel();
        self.tell(session, Control::Details(sender)).await?;
        heard(receiver).await
    }

    /// Waits until no agent of a session is busy, background agents included.
    pub(crate) async fn settled(&self, session: SessionId) -> Result<(), RuntimeError> {
        self.active(session)?.settle().await;
        Ok(())
    }

    pub(crate) async fn close_session(&self, session: SessionId) {
        let entry = lock(&self.sessions).remove(&session);
        if let Some(entry) = entry {
            entry.active.close().await;
            // The lead's own worktree is removed if nothing waits in it.
            drop(worktree::changed(&self.shared, entry.active.lead).await);
            self.give_back(&session::stream(session), entry.epoch).await;
        }
    }

    pub(crate) async fn shutdown(&self) -> Result<(), RuntimeError> {
        self.shared.trees.leave();
        let open: Vec<SessionId> = lock(&self.sessions).keys().copied().collect();
        for session in open {
            self.close_session(session).await;
        }
        let audited = self.shared.notices.close();
        self.shared.journal.close().await?;
        Ok(audited?)
    }

    /// Questions that were open when the last process ended; the lead's own first.
    fn asked(&self, session: SessionId, lead: AgentId) -> Result<Vec<OpenQuestion>, RuntimeError> {
        let lead = session::agent_stream(lead);
        let mut inbox = UserMail::new(&self.shared.journal).inbox()?;
        // A question with an answer in the mailbox is not shown again: its asker will read the answer.
        inbox.retain(|pending| pending.session == Some(session) && pending.noted.is_none());
        inbox.sort_by_key(|pending| pending.row.address != lead);
        let table = rows::agents_of(&session.to_string());
        let mut asked = Vec::new();
        for PendingQuestion { row, who, .. } in inbox {
            let Matter::Tool { tool, action, memory, rule, basis, recourse } = row.matter else { continue };
            let agent = row.address.strip_prefix("agent/").and_then(|id| id.parse::<AgentId>().ok());
            let known = agent.map(|agent| rows::row::<AgentRow>(&self.shared.journal, &table, &agent.to_string()));
            let given = known.transpose()?.flatten().and_then(|row| row.assignment);
            let teammate = given.as_ref().and_then(|given| given.life.teammate());
            let turn = agent.map(|agent| ReadModel::new(&self.shared.journal).turn(agent)).transpose()?;
            let now = turn.as_ref().and_then(|turn| turn.assignment()).or(given.as_deref());
            let task = given.as_ref().and_then(|given| match given.plan {
                Some(_) => Some(given.task.clone()),
                None => teammate.and(now).map(|now| now.title.clone()),
            });
            let color = teammate.map(|teammate| teammate.color.clone());
            let (question, action, at_ms) = (row.question, *action, row.at_ms);
            asked.push(OpenQuestion {
                question,
                tool,
                action,
                by: who,
                agent,
                task,
                color,
                rule,
                basis,
                recourse,
                memory,
                at_ms,
            });
        }
        Ok(asked)
    }
}

/// A session is opened only in its own directory, because its rules and its team were read there.
fn at(cwd: &Path, row: SessionRow) -> Result<SessionRow, RuntimeError> {
    if row.cwd == cwd.display().to_string() {
        return Ok(row);
    }
    Err(RuntimeError::Elsewhere { session: row.session, cwd: row.cwd })
}

/// An unread message of the user, from its envelope.
fn unread(envelope: &Envelope) -> Option<Queued> {
    let Body::Input(input) = Body::read(envelope) else { return None };
    Some(Queued { envelope: envelope.id, text: input.text.to_owned(), wait: input.wait, all: input.all })
}

/// The result of work on another thread.
fn finished<T>(ended: Result<Result<T, RuntimeError>, tokio::task::JoinError>) -> Result<T, RuntimeError> {
    ended.unwrap_or_else(|crash| Err(RuntimeError::AgentStopped(crash.to_string())))
}

async fn heard<T>(reply: oneshot::Receiver<T>) -> Result<T, RuntimeError> {
    reply.await.map_err(|_| RuntimeError::AgentStopped("it ended before it answered".to_owned()))
}
