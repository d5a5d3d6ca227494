//! The teammates as the chat knows them: their names and colours, and which of them a line is addressed to.
//!
//! They are known from their events, and from the registry if they came before the chat was opened.

use std::collections::BTreeSet;

use max_team_core::event::{Event, LlmOutcome};
use max_team_core::id::EnvelopeId;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::status::AgentStage;
use max_team_core::teammate::name::{Addressee, name_error, resolve};
use max_team_core::teammate::protocol::ProtocolMessage;
use max_team_runtime::{Enrolled, Origin, Roll, SEND_MESSAGE};
use serde_json::Value;

/// Messages on their way that are remembered of one answer.
const ENVELOPES_MAX: usize = 64;

/// All teammates, in the order they were started.
#[derive(Debug, Default)]
pub(super) struct Teammates {
    there: Vec<TeammateEntry>,
    /// Those who rest because they were stopped, as far as the registry was asked.
    stopped: BTreeSet<String>,
    /// Messages that came to nothing and were told.
    told: Vec<EnvelopeId>,
    /// Whether the session was opened again in this chat, which has shown what they wrote.
    is_again: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TeammateEntry {
    pub(super) name: String,
    pub(super) color: String,
}

/// A message from one agent to another, with the key of the tool call that sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TeamMessage {
    pub(super) key: String,
    pub(super) to: String,
    pub(super) text: String,
}

impl Teammates {
    pub(super) fn iter(&self) -> impl Iterator<Item = &TeammateEntry> {
        self.there.iter()
    }

    /// Whether the teammate is idle because it was stopped.
    pub(super) fn is_stopped(&self, name: &str) -> bool {
        self.stopped.contains(name)
    }

    pub(super) fn is_any_stopped(&self) -> bool {
        !self.stopped.is_empty()
    }

    /// A session is opened: the registry says who is there. Of one that is opened again it is known before that.
    pub(super) fn begin(&mut self, is_again: bool) {
        self.is_again = is_again;
        if !is_again {
            self.there.clear();
        }
        self.told.clear();
    }

    /// Whether what they have written is on the screen, and not only in the journal.
    pub(super) fn is_again(&self) -> bool {
        self.is_again
    }

    /// Whether the user has not been told yet of a message that failed. After a session is opened such a message may
    /// arrive twice: from the past, and as a new event.
    pub(super) fn is_news(&self, envelope: &Envelope) -> bool {
        !self.told.contains(&envelope.id)
    }

    /// Such a message is told.
    pub(super) fn tell(&mut self, envelope: &Envelope) {
        if matches!(envelope.kind, MessageKind::Undelivered | MessageKind::ShutdownRejected) && self.is_news(envelope) {
            self.told.push(envelope.id);
        }
    }

    /// Folds an event: adds the teammate that it comes from, or removes the one that has ended.
    pub(super) fn hear(&mut self, from: &Origin, event: &Event) {
        let Some(color) = from.color.as_deref() else { return };
        if matches!(event, Event::TurnStarted(_)) {
            self.stopped.remove(&*from.name);
        }
        match event {
            Event::AgentEnded(ended) => self.there.retain(|known| known.name != ended.name),
            _ if self.there.iter().any(|known| *known.name == *from.name) => {}
            Event::TurnStarted(_) => {
                self.there.push(TeammateEntry { name: from.name.to_string(), color: color.to_owned() });
            }
            _ => {}
        }
    }

    /// As the registry has it.
    pub(super) fn read(&mut self, roll: &Roll) {
        self.stopped = stopped(roll);
        let there = roll.teammates.iter().filter(|teammate| teammate.is_active());
        self.there = there
            .map(|teammate| TeammateEntry { name: teammate.person.name.clone(), color: teammate.color.clone() })
            .collect();
    }

    /// The registry was asked who rests because it was stopped.
    pub(super) fn stand(&mut self, stopped: BTreeSet<String>) {
        self.stopped = stopped;
    }

    /// The addressee and text of a line that begins with `@name`; `None`: it is an ordinary message.
    pub(super) fn addressed(&self, line: &str, lead: &str) -> Option<(String, String)> {
        let (name, words) = line.trim_start().strip_prefix('@')?.split_once(char::is_whitespace)?;
        self.means(name, lead).then(|| (name.to_owned(), words.trim().to_owned()))
    }

    /// The name in a line that begins with `@name`, if no agent of the team has it. A name with a dot is taken for a
    /// file or an address.
    pub(super) fn nobody<'a>(&self, line: &'a str, lead: &str, has_team: bool) -> Option<&'a str> {
        let (name, _) = line.trim_start().strip_prefix('@')?.split_once(char::is_whitespace)?;
        let is_name = !name.contains('.') && name_error(name, lead).is_none();
        (is_name && (has_team || !self.there.is_empty()) && !self.means(name, lead)).then_some(name)
    }

    /// A teammate whose name the line begins with, but in a form that addresses no agent: `@bob: hi`, `@bob,hi`, or
    /// the name alone.
    pub(super) fn nearly<'a>(&self, line: &'a str, lead: &str) -> Option<&'a str> {
        let line = line.trim().strip_prefix('@')?;
        let end = line.find(|letter: char| letter.is_whitespace() || ":,;：，；".contains(letter));
        let (name, rest) = line.split_at_checked(end.unwrap_or(line.len()))?;
        let is_lead = matches!(resolve(name, lead), Addressee::Lead);
        (!rest.starts_with(char::is_whitespace) && !is_lead && self.means(name, lead)).then_some(name)
    }

    /// Whether the name stands for an agent, or for the whole team.
    pub(super) fn means(&self, name: &str, lead: &str) -> bool {
        match resolve(name, lead) {
            Addressee::Lead => true,
            Addressee::Everybody => !self.there.is_empty(),
            Addressee::Teammate(name) => self.there.iter().any(|known| known.name == name),
        }
    }

    #[cfg(test)]
    pub(super) fn add(&mut self, name: &str, color: &str) {
        self.there.push(TeammateEntry { name: name.to_owned(), color: color.to_owned() });
    }
}

/// Who rests because it was stopped, as `/team` has it.
pub(super) fn stopped(roll: &Roll) -> BTreeSet<String> {
    let is_stopped = |teammate: &&Enrolled| teammate.is_active() && teammate.person.state == AgentStage::Stopped;
    roll.teammates.iter().filter(is_stopped).map(|teammate| teammate.person.name.clone()).collect()
}

/// What an answer writes to others.
pub(super) fn envelopes(event: &Event) -> Vec<TeamMessage> {
    let Event::LlmEnded(ended) = event else { return Vec::new() };
    let LlmOutcome::Done(answer) = &ended.outcome else { return Vec::new() };
    let uses = answer.message.tool_uses().enumerate().take(ENVELOPES_MAX);
    let sends = uses.filter(|(_, (_, name, _))| *name == SEND_MESSAGE);
    sends.filter_map(|(index, (_, _, input))| envelope(format!("{}.{index}", ended.call), input)).collect()
}

fn envelope(key: String, input: &Value) -> Option<TeamMessage> {
    let to = match input.get("to")? {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        _ => return None,
    };
    let word = ProtocolMessage::parse(input.get("message")?).ok()?;
    // A refused shutdown always goes to the agent that asked for it, so `to` may be wrong; it is shown by its own
    // event.
    if matches!(word, ProtocolMessage::ShutdownResponse { approve: false, .. }) {
        return None;
    }
    let text = match (&word, word.text()) {
        (ProtocolMessage::Text { .. }, text) => text.to_owned(),
        (word, "") => word.kind().name().to_owned(),
        (word, text) => format!("{}: {text}", word.kind().name()),
    };
    Some(TeamMessage { key, to, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn teammates(names: &[&str]) -> Teammates {
        let known = |name: &&str| TeammateEntry { name: (*name).to_owned(), color: "blue".to_owned() };
        Teammates { there: names.iter().map(known).collect(), ..Teammates::default() }
    }

    #[test]
    fn a_line_is_addressed_to_a_known_teammate() {
        let teammates = teammates(&["alice", "bob"]);
        let to = |line: &str| teammates.addressed(line, "max");
        assert_eq!(to("@alice use  tabs\nplease "), Some(("alice".into(), "use  tabs\nplease".into())));
        assert_eq!(to("@team stop"), Some(("team".into(), "stop".into())));
        assert_eq!(to("@max hello"), Some(("max".into(), "hello".into())));
        for line in ["@src/main.rs is wrong", "@alice", "alice hi", "hi @alice there", "@carol hi"] {
            assert_eq!(to(line), None, "{line}");
        }
        assert_eq!(Teammates::default().addressed("@team hi", "max"), None, "nobody is there");
    }

    #[test]
    fn an_unknown_name_is_told_from_plain_text() {
        let teammates = teammates(&["alice", "bob"]);
        for (line, name) in [("@carol hi", Some("carol")), (" @阿丽 你好", Some("阿丽"))] {
            assert_eq!(teammates.nobody(line, "max", false), name, "{line}");
        }
        let others = [
            "@alice hi",
            "@max hi",
            "@team hi",
            "@src/main.rs is wrong",
            "@main.rs too",
            "@a@b.org wrote",
            "@carol",
            "me@b.org hi",
        ];
        for line in others {
            assert_eq!(teammates.nobody(line, "max", false), None, "{line}");
        }
        assert_eq!(Teammates::default().nobody("@dataclass fails", "max", false), None, "there is no team");
        assert_eq!(
            Teammates::default().nobody("@nobody hi", "max", true),
            Some("nobody"),
            "there is one that has no teammates"
        );
    }

    #[test]
    fn a_name_with_punctuation_or_alone_is_suggested() {
        let teammates = teammates(&["alice", "bob"]);
        for line in ["@bob: hi", "@bob,hi", "@bob", " @bob ", "@bob：你好"] {
            assert_eq!(teammates.nearly(line, "max"), Some("bob"), "{line}");
        }
        for line in ["@bob hi", "@bobby: hi", "@max", "bob: hi", "@bob/src: hi", "@carol", "@"] {
            assert_eq!(teammates.nearly(line, "max"), None, "{line}");
        }
        assert_eq!(Teammates::default().nearly("@bob: hi", "max"), None, "nobody is there");
    }
}
