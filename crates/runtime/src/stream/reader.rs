//! Reads the stream: catches up with the log, then follows it.
//!
//! A reader holds at most the events of one entry and a few live pieces. However slow it is, no writer waits for it:
//! unread entries are in the log. It also works in a process without a runtime: nudges wake it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_core::limits::STREAM_PIECES_MAX;
use max_team_core::message::Envelope;
use max_team_core::status::SessionStatus;
use max_team_journal::{Entry, Journal, Watch};
use tokio::sync::mpsc;

use super::bench::Bench;
use super::event::{Mark, STREAM_VERSION, StreamEvent, What, Who};
use super::pieces::{LiveContent, LivePiece, Pieces};
use super::status;
use super::tell::tell;
use crate::error::RuntimeError;
use crate::rows::{self, AgentRow, PlanRow, event_of};
use crate::session;

/// Agents and plans that a reader remembers. Beyond them it forgets some, and looks them up again.
const SOURCES_MAX: usize = 4_096;
/// The entry that ends the pieces of an answer.
const ANSWERED: &str = "llm_ended";
/// Entries that may be skipped before other tasks get their turn.
const PASSED_MAX: usize = 64;

/// The events that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Events of all sessions.
    All,
    /// Events of a session.
    Session(SessionId),
    /// Events of an agent of a session: its work, its mail, and its tasks.
    Agent(SessionId, AgentId),
}

/// The writer of a stream of the journal.
#[derive(Debug)]
pub(super) struct Source {
    session: SessionId,
    pub(super) who: Option<Who>,
    pub(super) plan: Option<PlanId>,
    /// The state of its turn, once an entry of it was read.
    bench: Option<Bench>,
    /// The number of the next piece of its running answer.
    next_piece: u64,
}

/// The stream from some place on, including future events.
#[derive(Debug)]
pub struct StreamReader {
    journal: Journal,
    watch: Watch,
    scope: Scope,
    /// The place to begin at, until it is passed.
    from: Mark,
    /// The last entry that was read.
    seq: u64,
    ready: VecDeque<StreamEvent>,
    /// By the name of their stream.
    sources: HashMap<String, Source>,
    /// The status of each session, once an entry that can change it was read.
    statuses: HashMap<SessionId, SessionStatus>,
    /// Whether all entries of the scope before the present one were read here.
    is_from_start: bool,
    pieces: Option<mpsc::Receiver<Arc<LivePiece>>>,
    /// Pieces that were received early.
    waiting: VecDeque<Arc<LivePiece>>,
}

enum Came {
    Entry(Box<Entry>),
    Piece(Option<Arc<LivePiece>>),
    /// A piece that waits until the log is read.
    Early,
}

impl StreamReader {
    /// The events after a place in a journal, and future ones.
    pub fn open(journal: &Journal, scope: Scope, from: Mark) -> Result<Self, RuntimeError> {
        let before = from.seq.saturating_sub(u64::from(from.part.is_some()));
        let beginning = beginning(journal, scope)?;
        let seq = before.max(beginning);
        Ok(Self {
            journal: journal.clone(),
            watch: journal.watch(seq)?,
            scope,
            from,
            seq,
            ready: VecDeque::new(),
            sources: HashMap::new(),
            statuses: HashMap::new(),
            is_from_start: before <= beginning,
            pieces: None,
            waiting: VecDeque::new(),
        })
    }

    /// Adds the live pieces of answers in this process.
    pub(crate) fn live(self, pieces: &Pieces) -> Self {
        Self { pieces: Some(pieces.read()), ..self }
    }

    /// The next event, as soon as there is one. Dropping the future loses nothing. Fails when the journal is closed; a
    /// reader in any process can then continue after the last event.
    pub async fn next(&mut self) -> Result<StreamEvent, RuntimeError> {
        let mut passed = 0;
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            passed += 1;
            if passed % PASSED_MAX == 0 {
                tokio::task::yield_now().await;
            }
            match self.come().await? {
                Came::Entry(entry) => self.take(&entry)?,
                Came::Piece(Some(piece)) => {
                    let event = self.piece(&piece);
                    self.ready.extend(event);
                }
                Came::Piece(None) => self.pieces = None,
                Came::Early => {}
            }
        }
    }

    /// The log comes first: a live piece is shown only after all entries before it.
    async fn come(&mut self) -> Result<Came, RuntimeError> {
        if !self.waiting.is_empty() {
            let entry = self.watch.try_next()?;
            return Ok(match entry {
                Some(entry) => Came::Entry(Box::new(entry)),
                None => Came::Piece(self.waiting.pop_front()),
            });
        }
        Ok(match &mut self.pieces {
            None => Came::Entry(Box::new(self.watch.next().await?)),
            Some(pieces) => tokio::select! {
                biased;
                entry = self.watch.next() => Came::Entry(Box::new(entry?)),
                piece = pieces.recv() => match piece {
                    // Another process has committed what comes before it, and may not have told us yet.
                    Some(piece) if piece.is_from_outside => {
                        self.waiting.push_back(piece);
                        Came::Early
                    }
                    piece => Came::Piece(piece),
                },
            },
        })
    }

    /// The place behind all entries that were read.
    pub fn position(&self) -> Mark {
        Mark { seq: self.seq, part: None }
    }

    /// The next event that is already in the log; `None` if all of it was read.
    pub fn try_next(&mut self) -> Result<Option<StreamEvent>, RuntimeError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.watch.try_next()? {
                Some(entry) => self.take(&entry)?,
                None => return Ok(None),
            }
        }
    }

    /// Reads an entry and queues its events.
    fn take(&mut self, entry: &Entry) -> Result<(), RuntimeError> {
        if entry.event == ANSWERED {
            self.last_pieces(&entry.stream);
        }
        self.seq = entry.seq;
        let events = match entry.stream.strip_prefix("mail/") {
            Some(address) => self.envelope(entry, address)?,
            None => self.entry(entry)?,
        };
        let (scope, skip) = (self.scope, self.from.part.filter(|_| entry.seq == self.from.seq).unwrap_or(0));
        let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
        for (number, mut event) in (1..).zip(events) {
            event.part = (number < count).then_some(number);
            if number > skip && is_meant(scope, &event) {
                self.ready.push_back(event);
            }
        }
        Ok(())
    }

    /// The events of an entry of an agent, a plan or a session.
    fn entry(&mut self, entry: &Entry) -> Result<Vec<StreamEvent>, RuntimeError> {
        let (scope, journal) = (self.scope, self.journal.clone());
        let Some(source) = self.source(&entry.stream)?.filter(|source| is_within(scope, source.session)) else {
            return Ok(Vec::new());
        };
        // An erased entry, or one that this version does not know, has no events.
        let Ok(event) = event_of(entry) else { return Ok(Vec::new()) };
        if source.bench.is_none() && source.who.is_some() {
            source.bench = Some(Bench::before(&journal, &entry.stream, entry.stream_seq)?);
        }
        let bench = source.bench.get_or_insert_default();
        bench.take(&event);
        if let Event::LlmIntent(_) = event {
            source.next_piece = 0;
        }
        let (session, whats) = (source.session, tell(bench, source.plan, &event));
        let mut events: Vec<StreamEvent> =
            whats.into_iter().map(|what| at(entry, session, source.who.clone(), what)).collect();
        if let Some(status) = self.changed_status(entry, session, &event)? {
            events.push(at(entry, session, None, What::Session { status }));
        }
        Ok(events)
    }

    /// The status of a session, if an entry has changed it.
    fn changed_status(
        &mut self,
        entry: &Entry,
        session: SessionId,
        event: &Event,
    ) -> Result<Option<Box<SessionStatus>>, RuntimeError> {
        if !status::can_change(entry) {
            return Ok(None);
        }
        if !self.statuses.contains_key(&session) {
            if self.statuses.len() >= SOURCES_MAX {
                self.statuses.clear();
                self.is_from_start = false;
            }
            let known = match self.is_from_start {
                true => SessionStatus::default(),
                false => status::status_before(&self.journal, session, entry.seq)?,
            };
            self.statuses.insert(session, known);
        }
        let (Some(source), Some(known)) = (self.sources.get(&entry.stream), self.statuses.get_mut(&session)) else {
            return Ok(None);
        };
        let before = known.clone();
        status::hear(known, source, event);
        Ok((*known != before).then(|| Box::new(known.clone())))
    }

    /// A message as an event. It belongs to the session of its reader, or else of its sender.
    fn envelope(&mut self, entry: &Entry, address: &str) -> Result<Vec<StreamEvent>, RuntimeError> {
        let scope = self.scope;
        let reader = self.source(address)?;
        let name = reader.as_ref().and_then(|source| source.who.as_ref()).map_or("", |who| &who.name).to_owned();
        let session = reader.map(|source| source.session);
        if session.is_some_and(|session| !is_within(scope, session)) {
            return Ok(Vec::new());
        }
        let Ok(event) = event_of(entry) else { return Ok(Vec::new()) };
        let Event::Mailed(Envelope { from, .. }) = &event else { return Ok(Vec::new()) };
        let sender = self.source(from)?;
        let Some(session) = session.or(sender.as_ref().map(|source| source.session)) else { return Ok(Vec::new()) };
        let who = sender.and_then(|source| source.who.clone());
        let mut whats = tell(&Bench::default(), None, &event);
        for what in &mut whats {
            if let What::Mail { to_name, .. } = what {
                to_name.clone_from(&name);
            }
        }
        let told = whats.into_iter().map(|what| at(entry, session, who.clone(), what));
        Ok(told.filter(|event| is_within(scope, event.session)).collect())
    }

    /// An answer is stored after its last piece was sent, so pieces that are still queued come before it.
    fn last_pieces(&mut self, stream: &str) {
        let Some(pieces) = &mut self.pieces else { return };
        while let (true, Ok(piece)) = (self.waiting.len() < STREAM_PIECES_MAX, pieces.try_recv()) {
            self.waiting.push_back(piece);
        }
        for piece in std::mem::take(&mut self.waiting) {
            if session::agent_stream(piece.agent) == stream {
                let event = self.piece(&piece);
                self.ready.extend(event);
            } else {
                self.waiting.push_back(piece);
            }
        }
    }

    /// A piece of an answer as an event, if all pieces before it were read.
    fn piece(&mut self, piece: &LivePiece) -> Option<StreamEvent> {
        let source = self.sources.get_mut(&session::agent_stream(piece.agent))?;
        let bench = source.bench.as_ref()?;
        let iteration = bench.iteration;
        let what = match &piece.live {
            LiveContent::Words { call, index, text } => {
                if bench.calling != Some(*call) || source.next_piece != *index {
                    return None;
                }
                source.next_piece += 1;
                What::ContentDelta { iteration, delta: text.clone(), whole: false }
            }
            LiveContent::Progress { key, words } => {
                bench.calls.get(key)?;
                What::Status { iteration, message: words.clone().into(), tool_id: Some(key.clone()), model: None }
            }
        };
        let (what, cut) = what.fit();
        let event = StreamEvent {
            v: STREAM_VERSION,
            seq: self.seq,
            part: None,
            session: piece.session,
            at_ms: piece.at_ms,
            agent: source.who.clone(),
            what,
            cut,
        };
        is_meant(self.scope, &event).then_some(event)
    }

    /// The writer of a stream, or the reader of the mailbox with that address.
    fn source(&mut self, stream: &str) -> Result<Option<&mut Source>, RuntimeError> {
        if !self.sources.contains_key(stream) {
            let Some(found) = find(&self.journal, stream)? else { return Ok(None) };
            if self.sources.len() >= SOURCES_MAX {
                self.sources.clear();
            }
            self.sources.insert(stream.to_owned(), found);
        }
        Ok(self.sources.get_mut(stream))
    }
}

/// The place before the first entry that can belong to the scope.
fn beginning(journal: &Journal, scope: Scope) -> Result<u64, RuntimeError> {
    let (Scope::Session(session) | Scope::Agent(session, _)) = scope else { return Ok(0) };
    let first = journal.read(&session::stream(session), 0, 1)?;
    Ok(first.first().map_or(0, |entry| entry.seq.saturating_sub(1)))
}

fn is_within(scope: Scope, session: SessionId) -> bool {
    match scope {
        Scope::All => true,
        Scope::Session(of) | Scope::Agent(of, _) => of == session,
    }
}

fn is_meant(scope: Scope, event: &StreamEvent) -> bool {
    let Scope::Agent(session, agent) = scope else { return is_within(scope, event.session) };
    let address = || session::agent_stream(agent);
    session == event.session
        && match &event.what {
            What::Mail { from, to, .. } => *from == address() || *to == address(),
            What::Task { worker, .. } => *worker == Some(agent),
            _ => event.agent.as_ref().is_some_and(|who| who.id == agent),
        }
}

fn at(entry: &Entry, session: SessionId, agent: Option<Who>, what: What) -> StreamEvent {
    let (what, cut) = what.fit();
    StreamEvent { v: STREAM_VERSION, seq: entry.seq, part: None, session, at_ms: entry.at_ms, agent, what, cut }
}

/// The writer of a stream. These facts never change, so they can be looked up at any time.
pub(super) fn find(journal: &Journal, stream: &str) -> Result<Option<Source>, RuntimeError> {
    let of = |session, who, plan| Some(Source { session, who, plan, bench: None, next_piece: 0 });
    if let Some(session) = session::session_of(stream) {
        return Ok(session.parse().ok().and_then(|session| of(session, None, None)));
    }
    if let Some(agent) = stream.strip_prefix("agent/") {
        let Some(session) = rows::row::<String>(journal, rows::AGENT, agent)? else { return Ok(None) };
        let row = rows::row::<AgentRow>(journal, &rows::agents_of(&session), agent)?;
        return Ok(row.and_then(|row| {
            let who = Who { id: row.agent, name: row.name, lead: row.assignment.is_none() };
            of(row.session, Some(who), None)
        }));
    }
    if let Some(session) = stream.strip_prefix("tasks/") {
        return Ok(session.parse().ok().and_then(|session| of(session, None, None)));
    }
    let Some(plan) = stream.strip_prefix("plan/") else { return Ok(None) };
    let session = match rows::row::<PlanRow>(journal, rows::PLAN, plan)? {
        Some(row) => Some(row.session),
        None => rows::row::<String>(journal, rows::PLAN_OPEN, plan)?.and_then(|session| session.parse().ok()),
    };
    Ok(session.and_then(|session| of(session, None, plan.parse().ok())))
}
