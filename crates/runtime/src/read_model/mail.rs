//! The messages of a session, and what became of each.
//!
//! A message waits in its reader's mailbox until a commit of the reader takes it; the reader's own stream says for
//! which turn. A message that an agent was started with never was in a mailbox: it is found in that stream, too.

use std::collections::{BTreeSet, HashMap, HashSet};

use max_team_core::body::{Body, ReturnCause, Task, Undelivered};
use max_team_core::chat::Part;
use max_team_core::event::{Event, TurnOutcome};
use max_team_core::id::{EnvelopeId, SessionId, TurnId};
use max_team_core::message::{Address, Envelope, MessageKind};
use max_team_journal::Entry;
use serde::Serialize;

use super::{ReadModel, only};
use crate::agent::asked_of;
use crate::error::RuntimeError;
use crate::plan::plan_stream;
use crate::rows::{self, PlanRow, event_of};
use crate::session;

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Fate {
    /// It waits, and no process runs the session.
    Queued,
    /// It waits, and a process runs the session.
    Delivered,
    /// It is being acted on, in this turn; or a person has seen it.
    Read(Option<TurnId>),
    /// It was acted on; in this turn, if it took one.
    Acted(Option<TurnId>),
    /// It was returned, for this reason.
    Dead { why: String, cause: ReturnCause },
    /// It was not accepted, for this reason.
    Refused(String),
    /// Its author took it back unread.
    Withdrawn,
}

impl Fate {
    /// All names, in the order in which a message goes through them.
    pub const NAMES: [&str; 7] = ["queued", "delivered", "read", "acted", "dead", "refused", "withdrawn"];

    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Read(_) => "read",
            Self::Acted(_) => "acted",
            Self::Dead { .. } => "dead",
            Self::Refused(_) => "refused",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// The turn that it was read in.
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Self::Read(turn) | Self::Acted(turn) => *turn,
            _ => None,
        }
    }

    /// Why it was not read.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Dead { why, .. } | Self::Refused(why) => Some(why),
            _ => None,
        }
    }
}

/// A message, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MailRecord {
    /// All that it says.
    pub envelope: Envelope,
    /// Its number in the log; messages are ordered by it.
    pub seq: u64,
    /// Name of the sender.
    pub from: String,
    /// Name of the reader.
    pub to: String,
    /// What became of it.
    pub fate: Fate,
}

impl MailRecord {
    pub fn text(&self) -> String {
        self.envelope.text().to_owned()
    }

    /// Whether it is a control message (idle notices, permissions, shutdown) without content for a reader.
    pub fn is_control(&self) -> bool {
        !matches!(
            self.envelope.kind,
            MessageKind::UserInput
                | MessageKind::Text
                | MessageKind::TaskAssign
                | MessageKind::TaskResult
                | MessageKind::TaskFailed
                | MessageKind::NeedClarify
                | MessageKind::PlanApprovalRequest
                | MessageKind::PlanApprovalResponse
        )
    }
}

/// What a reader's stream says about its messages.
#[derive(Default)]
struct Reading {
    turns: Vec<TurnMail>,
    refused: HashMap<EnvelopeId, String>,
}

/// A turn, and the messages that began it.
struct TurnMail {
    turn: TurnId,
    began: u64,
    ended: Option<u64>,
    /// It ended before a model had answered.
    is_unheard: bool,
    envelopes: Vec<EnvelopeId>,
}

/// A mailbox: its messages, and when each was taken.
#[derive(Default)]
struct Mailbox {
    envelopes: Vec<(u64, Envelope)>,
    taken: HashMap<EnvelopeId, u64>,
    /// Messages that a person read. In older versions the sender of a message to a person took it out of the mailbox
    /// again.
    seen: HashSet<EnvelopeId>,
}

impl ReadModel<'_> {
    /// All messages of a session, in the order they were written.
    pub fn messages(&self, session: SessionId) -> Result<Vec<MailRecord>, RuntimeError> {
        let agents = self.agents(session)?;
        let mut names: HashMap<Address, String> =
            agents.iter().map(|row| (session::agent_stream(row.agent), row.name.clone())).collect();
        for (_, plan) in rows::rows::<PlanRow>(self.journal, rows::PLAN)? {
            if plan.session == session {
                names.insert(plan_stream(plan.plan), "plan".to_owned());
            }
        }
        let is_run = self.owner(session)?.is_some();
        let (mut found, mut dead) = (Vec::new(), HashMap::new());
        for address in names.keys() {
            let mut mailbox = self.mailbox(address)?;
            let reading = self.reading(address, &mut mailbox)?;
            for (seq, envelope) in mailbox.envelopes {
                if let Body::Undelivered(back) = Body::read(&envelope)
                    && let Undelivered { envelope: Some(message), why, cause, text, .. } = back
                {
                    // Older returned messages have the reason only in their text, together with the original message.
                    let why = if why.is_empty() { text } else { why }.to_owned();
                    dead.insert(message, Fate::Dead { why, cause });
                }
                let fate = reading.fate(envelope.id, mailbox.taken.get(&envelope.id), is_run);
                found.push((seq, envelope, fate));
            }
        }
        let users: BTreeSet<Address> =
            found.iter().map(|(_, envelope, _)| &envelope.from).filter(|from| is_user(from)).cloned().collect();
        for user in users {
            let Mailbox { envelopes: messages, seen, .. } = self.mailbox(&user)?;
            let own = messages.into_iter().filter(|(_, envelope)| names.contains_key(&envelope.from));
            found.extend(own.map(|(seq, envelope)| {
                let fate = if seen.contains(&envelope.id) { Fate::Read(None) } else { Fate::Delivered };
                (seq, envelope, fate)
            }));
        }
        let name = |address: &str| match names.get(address) {
            Some(name) => name.clone(),
            None => address.strip_prefix("user/").map_or(address, |_| "user").to_owned(),
        };
        let withdrawn = self.withdrawn(session)?;
        let told = |(seq, envelope, fate): (u64, Envelope, Fate)| {
            // A message that was taken back has left its mailbox, too, but unread.
            let fate = if withdrawn.contains(&envelope.id) { Fate::Withdrawn } else { fate };
            let fate = dead.get(&envelope.id).cloned().unwrap_or(fate);
            MailRecord { from: name(&envelope.from), to: name(&envelope.to), envelope, seq, fate }
        };
        let mut messages: Vec<MailRecord> = found.into_iter().map(told).collect();
        messages.sort_by_key(|message| message.seq);
        Ok(messages)
    }

    /// The message with that id, or the only one whose id begins or ends with it.
    pub fn find_envelope(&self, session: SessionId, text: &str) -> Result<Option<MailRecord>, RuntimeError> {
        let messages = self.messages(session)?;
        let id: Option<EnvelopeId> = only(messages.iter().map(|message| message.envelope.id.to_string()), text)?;
        Ok(messages.into_iter().find(|message| Some(message.envelope.id) == id))
    }

    /// Messages that people have taken back.
    fn withdrawn(&self, session: SessionId) -> Result<BTreeSet<EnvelopeId>, RuntimeError> {
        let mut withdrawn = BTreeSet::new();
        self.entries(&session::stream(session), |entry| {
            if &*entry.event == "withdrawn"
                && let Event::Withdrawn(of) = event_of(entry)?
            {
                withdrawn.insert(of.envelope);
            }
            Ok(())
        })?;
        Ok(withdrawn)
    }

    fn mailbox(&self, address: &str) -> Result<Mailbox, RuntimeError> {
        let mut mailbox = Mailbox::default();
        self.entries(&format!("mail/{address}"), |entry| {
            if &*entry.event == "acked" {
                let ids = entry.payload.as_deref().and_then(|payload| serde_json::from_slice(payload).ok());
                let ids: Vec<EnvelopeId> = ids.unwrap_or_default();
                if is_user(&entry.actor) {
                    mailbox.seen.extend(&ids);
                }
                mailbox.taken.extend(ids.into_iter().map(|id| (id, entry.seq)));
            } else if entry.payload.is_some()
                && let Event::Mailed(envelope) = event_of(entry)?
            {
                mailbox.envelopes.push((entry.seq, envelope));
            }
            Ok(())
        })?;
        Ok(mailbox)
    }

    /// What a reader did with its messages; adds the message that it was started with to those of its mailbox.
    fn reading(&self, address: &str, mailbox: &mut Mailbox) -> Result<Reading, RuntimeError> {
        let mut reading = Reading::default();
        let names = ["turn_started", "turn_ended", "letter_refused"];
        self.entries(address, |entry| {
            if !names.contains(&&*entry.event) {
                return Ok(());
            }
            match event_of(entry)? {
                Event::TurnStarted(started) => {
                    let is_first = reading.turns.is_empty();
                    let is_known = mailbox.envelopes.iter().any(|(_, message)| message.id == started.envelope);
                    if let Some(given) = started.assignment.as_ref().filter(|_| is_first && !is_known) {
                        let message = in_hand(address, &given.reply_to, started.envelope, &started.input, entry.at_ms);
                        mailbox.envelopes.push((entry.seq, message));
                    }
                    let messages = std::iter::once(started.envelope).chain(started.envelopes).collect();
                    let turn = started.turn;
                    reading.turns.push(TurnMail {
                        turn,
                        began: entry.seq,
                        ended: None,
                        is_unheard: false,
                        envelopes: messages,
                    });
                }
                Event::TurnEnded(ended) => {
                    let turn = reading.turns.iter_mut().rfind(|taken| taken.turn == ended.turn);
                    // A turn that could pay or reach no model has told no model of its messages.
                    let is_cut = matches!(ended.end, TurnOutcome::Budget | TurnOutcome::Failed { .. })
                        && ended.charges.is_empty();
                    turn.into_iter().for_each(|taken| (taken.ended, taken.is_unheard) = (Some(entry.seq), is_cut));
                }
                Event::MessageRefused(refused) => drop(reading.refused.insert(refused.envelope, refused.why)),
                _ => {}
            }
            Ok(())
        })?;
        Ok(reading)
    }

    fn entries(
        &self,
        stream: &str,
        mut look: impl FnMut(&Entry) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        rows::entries(self.journal, stream, 0).try_for_each(|entry| look(&entry?))
    }
}

impl Reading {
    fn fate(&self, message: EnvelopeId, taken: Option<&u64>, is_run: bool) -> Fate {
        if let Some(why) = self.refused.get(&message) {
            return Fate::Refused(why.clone());
        }
        let began = self.turns.iter().find(|turn| turn.envelopes.contains(&message));
        // An agent that calls `check_inbox` during a turn reads the message in that turn.
        let during = |taken: &u64| {
            let is_in = |turn: &&TurnMail| turn.began < *taken && turn.ended.is_none_or(|ended| *taken <= ended);
            self.turns.iter().find(is_in)
        };
        match (began.or_else(|| taken.and_then(during)), taken) {
            (Some(TurnMail { turn, ended: None, .. }), _) => Fate::Read(Some(*turn)),
            // The next turn with a model call includes earlier messages, too.
            (Some(TurnMail { turn, began, is_unheard: true, .. }), _) => {
                match self.turns.iter().find(|later| later.began > *began && !later.is_unheard) {
                    Some(later) if later.ended.is_some() => Fate::Acted(Some(later.turn)),
                    later => Fate::Read(Some(later.map_or(*turn, |later| later.turn))),
                }
            }
            (Some(TurnMail { turn, .. }), _) => Fate::Acted(Some(*turn)),
            (None, Some(_)) => Fate::Acted(None),
            (None, None) if is_run => Fate::Delivered,
            (None, None) => Fate::Queued,
        }
    }
}

fn is_user(address: &str) -> bool {
    address.starts_with("user/")
}

fn in_hand(address: &str, from: &str, id: EnvelopeId, input: &[Part], sent_at_ms: i64) -> Envelope {
    let words = input.iter().find_map(|part| if let Part::Text { text } = part { Some(asked_of(text)) } else { None });
    let body = Body::Task(Task { text: words.unwrap_or_default(), ..Task::default() });
    let (from, to) = (from.to_owned(), address.to_owned());
    Envelope::new(id, from, to, MessageKind::TaskAssign, body, sent_at_ms)
}
