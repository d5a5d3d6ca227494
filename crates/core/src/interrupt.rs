//! A stop by a person: the words that say it, the hold that it puts on an agent, and the note that tells a model of it.
//!
//! There are three stops. A session stop is written to the mailbox of every agent of the session and holds all of them. A
//! stop of one agent holds that agent. An interrupted turn (Esc, a time limit, a caller that was stopped) holds nothing.
//! An agent on hold begins no turn before a message comes that is newer than the stop.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::{EnvelopeId, TurnId};
use crate::message::{Envelope, MessageKind};
use crate::policy::DecidedBy;

/// All of them, in lower case.
const WORDS: [&str; 5] = ["stop", "/stop", "打断", "停", "停止"];

/// Whether a message consists of a stop word alone. While nothing runs it is a message like any other.
pub fn is_stop(message: &str) -> bool {
    let message = message.trim();
    WORDS.iter().any(|word| message.eq_ignore_ascii_case(word))
}

/// A person's stop of an agent. It lasts until a message comes that is newer than the stop: that message begins a turn,
/// and the turn reads the messages on hold, too. Until then the agent takes no task from the shared list either.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hold {
    /// The messages that were unread when the stop was read.
    #[serde(rename = "letters")]
    pub envelopes: Vec<EnvelopeId>,
    /// Of a session stop: messages that agents write in turns older than this one are on hold, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<TurnId>,
    /// When the stop was written; entries of earlier releases do not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at_ms: i64,
}

fn is_zero(at_ms: &i64) -> bool {
    *at_ms == 0
}

/// A turn id that is newer than a known one, also after the clock was set back.
pub fn newer_turn_id(fresh: TurnId, known: TurnId) -> TurnId {
    if fresh > known { fresh } else { TurnId::new(Uuid::from_u128(known.uuid().as_u128().saturating_add(1))) }
}

impl Hold {
    /// Adds a second stop: it releases no message of the first.
    pub fn add(&mut self, other: &Self) {
        let fresh = other.envelopes.iter().filter(|envelope| !self.envelopes.contains(envelope));
        let fresh: Vec<EnvelopeId> = fresh.copied().collect();
        self.envelopes.extend(fresh);
        self.since = self.since.max(other.since);
        self.at_ms = self.at_ms.max(other.at_ms);
    }

    /// Whether a message is not newer than the stop.
    pub fn holds(&self, envelope: &Envelope) -> bool {
        let turn = envelope.cause.as_deref().and_then(|cause| cause.parse::<TurnId>().ok());
        self.envelopes.contains(&envelope.id) || turn.zip(self.since).is_some_and(|(turn, since)| turn < since)
    }
}

/// The text of a report about a stopped turn without words of the model in earlier releases, which had no field for it.
const SILENT_TEXT: &str = "it was stopped";

/// Whether a message only reports that a teammate was stopped: the note says so for all of them.
pub fn is_bare_report(envelope: &Envelope) -> bool {
    let is_silent = || envelope.result().silent || envelope.text() == SILENT_TEXT;
    envelope.kind == MessageKind::TaskResult && envelope.teammate().is_some() && envelope.is_stopped() && is_silent()
}

/// The cause of a stop, in words for a model.
pub fn stopper_words(by: &str, who: Option<&DecidedBy>) -> String {
    match who {
        Some(DecidedBy::Person(_)) => "The user".to_owned(),
        Some(DecidedBy::Lead(name)) => format!("`{name}`"),
        Some(DecidedBy::Rule(_) | DecidedBy::Grant(_) | DecidedBy::Nobody(_)) | None => format!("A limit ({by})"),
    }
}

/// The beginning of a note that the program writes into a conversation.
pub const OF_PROGRAM: &str = "(From the program, not from the user.) ";

/// The note that an agent gets after a stop: the stopped work, the cause, and the work that goes on. `own`: the cause
/// of the stop of its own last turn, if it was stopped. `teammates`: its stopped teammates. `goes_on`: whether all of it
/// goes on now.
pub fn stop_note(own: Option<&str>, teammates: &[String], goes_on: bool) -> Option<String> {
    let who = own.unwrap_or("The user");
    let names = || teammates.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let what = match (own, teammates) {
        (None, []) => return None,
        (Some(_), []) => "your last turn before it was finished".to_owned(),
        (None, _) => names(),
        (Some(_), _) => format!("your last turn before it was finished, and {}", names()),
    };
    let next = match (goes_on, own, teammates) {
        (true, ..) => "All of it goes on now.",
        (false, Some(_), []) => "Nothing of it goes on by itself.",
        (false, _, []) => "",
        (false, None, _) => "They go on when you or the user write to them.",
        (false, Some(_), _) => "Nothing of it goes on by itself; teammates go on when you or the user write to them.",
    };
    Some(format!("{OF_PROGRAM}{who} stopped {what}. {next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_note_names_the_stop_and_the_remaining_work() {
        let teammates = ["alice".to_owned(), "bob".to_owned()];
        for (own, teammates, goes_on, want) in [
            (None, &[][..], false, None),
            (
                Some("The user"),
                &[],
                false,
                Some("The user stopped your last turn before it was finished. Nothing of it goes on by itself."),
            ),
            (
                Some("The user"),
                &[],
                true,
                Some("The user stopped your last turn before it was finished. All of it goes on now."),
            ),
            (
                Some("A limit (budget)"),
                &[],
                true,
                Some("A limit (budget) stopped your last turn before it was finished. All of it goes on now."),
            ),
            (
                None,
                &teammates,
                false,
                Some("The user stopped `alice`, `bob`. They go on when you or the user write to them."),
            ),
            (
                Some("The user"),
                &teammates,
                true,
                Some(
                    "The user stopped your last turn before it was finished, and `alice`, `bob`. All of it goes on now.",
                ),
            ),
        ] {
            let want = want.map(|want| format!("{OF_PROGRAM}{want}"));
            assert_eq!(stop_note(own, teammates, goes_on), want, "{own:?} {teammates:?} {goes_on}");
        }
    }

    #[test]
    fn a_message_newer_than_a_stop_is_not_held() {
        let turn = |number| TurnId::new(Uuid::from_u128(number));
        let envelope = |number, cause: Option<TurnId>| {
            let id = EnvelopeId::new(Uuid::from_u128(number));
            let envelope = Envelope::new(id, "agent/b", "agent/a", MessageKind::Text, serde_json::Value::Null, 0);
            Envelope { cause: cause.map(|cause| cause.to_string()), ..envelope }
        };
        let envelopes = vec![EnvelopeId::new(Uuid::from_u128(1))];
        let alone = Hold { envelopes: envelopes.clone(), ..Hold::default() };
        let all = Hold { envelopes, since: Some(turn(5)), at_ms: 0 };
        // Which message, written in which turn; whether it waits where one was stopped, and where everybody was.
        let table = [
            (1, None, true, true),
            (1, Some(turn(9)), true, true),
            (2, None, false, false),
            (2, Some(turn(4)), false, true),
            (2, Some(turn(6)), false, false),
        ];
        for (number, cause, is_held_alone, is_held_by_all) in table {
            let envelope = envelope(number, cause);
            let waits = (alone.holds(&envelope), all.holds(&envelope));
            assert_eq!(waits, (is_held_alone, is_held_by_all), "{number} {cause:?}");
        }
    }

    #[test]
    fn a_second_stop_lets_nothing_go_that_the_first_has_held() {
        let envelope = |number| EnvelopeId::new(Uuid::from_u128(number));
        let turn = |number| Some(TurnId::new(Uuid::from_u128(number)));
        let mut held = Hold { envelopes: vec![envelope(1)], since: turn(5), at_ms: 4 };
        let first = held.clone();
        held.add(&Hold::default());
        assert_eq!(held, first);
        held.add(&Hold { envelopes: vec![envelope(1), envelope(2)], since: turn(7), at_ms: 3 });
        assert_eq!(held, Hold { envelopes: vec![envelope(1), envelope(2)], since: turn(7), at_ms: 4 });
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_turn_older() {
        let turn = |number| TurnId::new(Uuid::from_u128(number));
        for (fresh, known, want) in [(7, 5, 7), (5, 5, 6), (3, 5, 6), (9, u128::MAX, u128::MAX)] {
            assert_eq!(newer_turn_id(turn(fresh), turn(known)), turn(want), "{fresh} {known}");
        }
    }

    #[test]
    fn only_whole_messages_stop() {
        let table = [
            ("stop", true),
            ("STOP", true),
            (" Stop\n", true),
            ("/stop", true),
            ("/Stop ", true),
            ("打断", true),
            ("　停　", true),
            ("停止", true),
            ("", false),
            ("stop it", false),
            ("stop!", false),
            ("please stop", false),
            ("/stop build", false),
            ("不要停", false),
            ("停止服务", false),
            ("stopp", false),
            ("//stop", false),
        ];
        for (message, want) in table {
            assert_eq!(is_stop(message), want, "{message:?}");
        }
    }
}
