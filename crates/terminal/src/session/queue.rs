//! What the user says while a turn runs: on its way, waiting to be read, taken back.

use max_team_core::event::Event;
use max_team_core::id::EnvelopeId;
use max_team_core::interrupt::is_stop;
use max_team_core::teammate::name::{Addressee, resolve};
use max_team_runtime::{self as runtime, Origin, RuntimeError, envelope_of};

use super::super::command_queue::{UiCommand, fresh};
use super::super::rows::Row;
use super::super::transcript::Item;
use super::{Session, note};
use max_team_workspace::config::choice::WhileBusy;

/// A message that the lead has not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct QueuedMessage {
    pub(super) key: EnvelopeId,
    pub(in super::super) text: String,
    /// Whether it waits until the turn that runs is over.
    pub(in super::super) wait: bool,
}

/// A message to a teammate, or to all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentMessage {
    /// The order that wrote it.
    key: EnvelopeId,
    to: String,
    text: String,
    /// Who has not read it, as far as anybody knows.
    unread: Vec<String>,
}

impl Session {
    pub(in super::super) fn with_keys(mut self, while_busy: WhileBusy) -> Self {
        self.setup.while_busy = while_busy;
        self
    }

    /// What Enter does while a turn runs.
    pub(in super::super) fn while_busy(&self) -> WhileBusy {
        self.setup.while_busy
    }

    pub(in super::super) fn say(&mut self, text: String) -> Vec<Item> {
        self.say_by(text, self.setup.while_busy)
    }

    /// The same with a key of its own for what happens to a turn that runs. A word that stops is no message then.
    pub(in super::super) fn say_by(&mut self, text: String, how: WhileBusy) -> Vec<Item> {
        if is_stop(&text) && self.is_stoppable() {
            self.halt();
            return Vec::new();
        }
        if is_stop(&text) && (self.is_waiting() || self.run.halted) {
            // A second stop must not start the messages that the first one left waiting.
            return vec![note(self.lang.nothing_runs().to_owned())];
        }
        if how == WhileBusy::Interrupt && self.is_busy() {
            self.interrupt();
        }
        let (key, wait) = (fresh(), how == WhileBusy::Queue && self.is_busy());
        self.messages.queue.push(QueuedMessage { key, text: text.clone(), wait });
        self.acts.push(UiCommand::Say { key, text, wait });
        Vec::new()
    }

    /// Asks how many messages wait since a stop. The mail knows: some came after it, and some were taken back.
    pub(super) fn count_waiting(&mut self) {
        if self.agents.hold(self.lead).is_some() && !self.run.replaying {
            self.acts.push(UiCommand::Held { read: false });
        }
    }

    /// So many messages wait for the lead: told where it is news, once it rests.
    pub(super) fn counted(&mut self, count: usize) -> Option<Item> {
        let count = if self.is_busy() { 0 } else { count };
        let is_news = std::mem::replace(&mut self.messages.waiting, count) != count;
        (is_news && count > 0).then(|| note(self.lang.envelopes_wait(None, count)))
    }

    /// Whether messages wait for the lead since a stop.
    fn is_waiting(&self) -> bool {
        let is_listed = self.agents.hold(self.lead).is_some_and(|held| !held.envelopes.is_empty());
        (self.messages.waiting > 0 || is_listed) && !self.is_busy()
    }

    /// Whether a message waits since a stop.
    pub(super) fn is_left_waiting(&self, key: EnvelopeId) -> bool {
        self.agents.hold(self.lead).is_some_and(|held| held.envelopes.contains(&key))
    }

    /// Whether unread messages wait for a new one, since no turn runs.
    pub(in super::super) fn is_held(&self) -> bool {
        !self.messages.queue.is_empty() && !self.is_busy()
    }

    /// Requests the user's last unread message back. Returns whether there is one.
    pub(in super::super) fn take_back(&mut self) -> bool {
        let said = self.queue().last().map(|queued| (queued.key, queued.text.clone()));
        let sent = self.messages.sent.last().map(|sent| (sent.key, format!("@{} {}", sent.to, sent.text)));
        // Keys are made one after the other.
        let Some((key, text)) = said.into_iter().chain(sent).max_by_key(|(key, _)| *key) else { return false };
        // One at a time, so that none comes back into the words of another.
        if self.messages.taking_back.is_none() {
            self.messages.taking_back = Some(key);
            self.acts.push(UiCommand::Withdraw { key, text });
        }
        true
    }

    /// Takes over the messages that were unread when the session was opened. Events say which are read meanwhile.
    pub(super) fn queue_again(&mut self, queued: &[runtime::Queued]) {
        let again = |queued: &runtime::Queued| {
            let runtime::Queued { envelope, text, wait, all } = queued.clone();
            // What is taken back from all is, sent again, for all.
            let text = if all { format!("@team {text}") } else { text };
            QueuedMessage { key: envelope, text, wait }
        };
        (self.messages.queue, self.messages.taking_back) = (queued.iter().map(again).collect(), None);
    }

    /// Messages do not wait any more.
    pub(super) fn was_read(&mut self, envelopes: &[EnvelopeId]) {
        self.messages.queue.retain(|queued| !envelopes.contains(&queued.key));
        self.messages.waiting = self.messages.waiting.saturating_sub(self.agents.release(self.lead, envelopes));
        self.messages.read.extend(envelopes);
    }

    /// Whether a message is queued here or was read: the news that it was said may come after that.
    pub(super) fn is_known(&self, key: EnvelopeId) -> bool {
        self.messages.read.contains(&key) || self.messages.queue.iter().any(|queued| queued.key == key)
    }

    /// A message to a teammate, or to all, is on its way: until it is read it can be taken back. It is known before it is stored,
    /// for it may be read before that is heard of.
    pub(super) fn note_sent(&mut self, key: EnvelopeId, to: &str, text: &str) {
        let unread = match resolve(to, &self.who) {
            Addressee::Teammate(name) => vec![name.to_owned()],
            // The lead has it, too.
            Addressee::Everybody => {
                self.teammates.iter().map(|known| known.name.clone()).chain([self.who.clone()]).collect()
            }
            Addressee::Lead => return,
        };
        self.messages.sent.push(SentMessage { key, to: to.to_owned(), text: text.to_owned(), unread });
    }

    /// It was not stored.
    pub(super) fn unsent(&mut self, key: EnvelopeId) {
        self.messages.sent.retain(|sent| sent.key != key);
    }

    /// An agent has read the message, or never will. A message that is being taken back is kept until the outcome is
    /// known.
    fn one_read(&mut self, who: &str, is_meant: impl Fn(&SentMessage) -> bool) {
        for sent in self.messages.sent.iter_mut().filter(|sent| is_meant(sent)) {
            // It may be known by another name than it was written to by.
            let is_only_one = sent.unread.len() == 1;
            sent.unread.retain(|name| name != who && !is_only_one);
        }
        let taking_back = self.messages.taking_back;
        self.messages.sent.retain(|sent| !sent.unread.is_empty() || Some(sent.key) == taking_back);
    }

    /// The lead has read these.
    pub(super) fn lead_read(&mut self, envelopes: &[EnvelopeId]) {
        let who = self.who.clone();
        self.one_read(&who, |sent| envelopes.contains(&sent.key));
        self.was_read(envelopes);
    }

    /// A teammate has read these, or has come to its end.
    pub(super) fn teammate_read(&mut self, from: &Origin, event: &Event) {
        let Some(agent) = from.agent.filter(|_| !self.messages.sent.is_empty()) else { return };
        let is_read = |envelope: EnvelopeId| match event {
            Event::TurnStarted(started) => started.envelope == envelope || started.envelopes.contains(&envelope),
            Event::Steered(steered) => steered.envelopes.contains(&envelope),
            _ => false,
        };
        match event {
            Event::AgentEnded(ended) => self.one_read(&ended.name, |sent| sent.unread.contains(&ended.name)),
            _ => self.one_read(&from.name, |sent| is_read(envelope_of(sent.key, agent))),
        }
    }

    /// A message was taken back, or an agent has read it before.
    pub(super) fn withdrawn(&mut self, key: EnvelopeId, text: String, outcome: Result<(), RuntimeError>) -> Vec<Item> {
        self.messages.taking_back = None;
        if let Some(index) = self.messages.sent.iter().position(|sent| sent.key == key) {
            return self.envelope_withdrawn(index, text, outcome);
        }
        match outcome {
            Ok(()) => {
                self.was_read(&[key]);
                self.messages.returned.push(text);
                Vec::new()
            }
            Err(RuntimeError::Taken) => vec![note(self.lang.too_late_to_take_back(&self.who))],
            Err(RuntimeError::TakenBy(names)) => {
                self.was_read(&[key]);
                self.messages.returned.push(text);
                vec![note(self.lang.envelope_taken_back_but(&names))]
            }
            Err(error) => {
                if matches!(error, RuntimeError::Untaken { .. }) {
                    self.messages.returned.push(text);
                }
                vec![Item::Row(Row::Error(self.lang.runtime_failure(&error)))]
            }
        }
    }

    /// Like `withdrawn`, for a message to a teammate. Its text returns to the draft in any case, also if it was read.
    fn envelope_withdrawn(&mut self, index: usize, text: String, outcome: Result<(), RuntimeError>) -> Vec<Item> {
        // Removed in any case, so that the next request is about the message before it.
        let SentMessage { key, to, .. } = self.messages.sent.remove(index);
        self.messages.returned.push(text);
        let words = match outcome {
            Ok(()) => self.lang.message_taken_back(&to),
            Err(RuntimeError::Taken) => self.lang.message_was_read(&to),
            Err(RuntimeError::TakenBy(names)) => self.lang.envelope_taken_back_but(&names),
            Err(error) => return vec![Item::Row(Row::Error(self.lang.runtime_failure(&error)))],
        };
        self.was_read(&[key]);
        vec![note(words)]
    }
}
