//! Silent models: a model that takes long to answer must not look like a program that hangs.
//!
//! It only keeps the time; the caller reports when it is due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use max_team_core::event::Event;
use max_team_core::id::AgentId;
use max_team_runtime::Origin;

/// Silence after which something is said.
const FIRST: Duration = Duration::from_secs(4);
/// Silence after which it is said again.
const AGAIN: Duration = Duration::from_secs(30);

/// Calls that are under way.
#[derive(Debug, Default)]
pub(super) struct SilenceWatch {
    calls: HashMap<Option<AgentId>, ModelCall>,
    /// No silence is long enough before; those that ended since may have been the ones it was for.
    look: Option<Instant>,
}

#[derive(Debug)]
struct ModelCall {
    who: Arc<str>,
    /// Provider and name.
    model: [String; 2],
    heard: Instant,
    due: Instant,
}

/// An agent whose model has sent nothing for a while.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SilentAgent {
    pub(super) who: String,
    /// Provider and name.
    pub(super) model: String,
    pub(super) seconds: u64,
}

impl SilenceWatch {
    pub(super) fn hear(&mut self, from: &Origin, event: &Event, now: Instant) {
        match event {
            Event::LlmIntent(intent) => {
                let model = [intent.model.provider.clone(), intent.model.name.clone()];
                let due = now + FIRST;
                self.calls.insert(from.agent, ModelCall { who: Arc::clone(&from.name), model, heard: now, due });
                self.look = Some(self.look.map_or(due, |look| look.min(due)));
            }
            Event::LlmEnded(_) | Event::TurnEnded(_) => drop(self.calls.remove(&from.agent)),
            _ => {}
        }
    }

    /// A piece of an answer has come.
    pub(super) fn delta(&mut self, from: &Origin, now: Instant) {
        if let Some(call) = self.calls.get_mut(&from.agent) {
            (call.heard, call.due) = (now, now + FIRST);
        }
    }

    /// When to look whether a silence is long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.look
    }

    /// Those that are, the longest first; each is due again only much later.
    pub(super) fn silences(&mut self, now: Instant) -> Vec<SilentAgent> {
        let due = self.calls.values_mut().filter(|call| call.due <= now);
        let mut silences: Vec<SilentAgent> = due
            .map(|call| {
                call.due = now + AGAIN;
                let seconds = now.duration_since(call.heard).as_secs();
                SilentAgent { who: call.who.to_string(), model: call.model.join("/"), seconds }
            })
            .collect();
        silences.sort_by(|a, b| b.seconds.cmp(&a.seconds).then_with(|| a.who.cmp(&b.who)));
        self.look = self.calls.values().map(|call| call.due).min();
        silences
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::agent::Model;
    use max_team_core::context::Window;
    use max_team_core::event::{LlmIntent, RequestRef, TurnEnded, TurnOutcome};
    use max_team_core::hash::Hash;
    use max_team_core::id::TurnId;
    use uuid::Uuid;

    use super::*;

    fn intent(call: u32, attempt: u32) -> Event {
        let hash = Hash::of("x");
        Event::LlmIntent(LlmIntent {
            call,
            attempt,
            request: RequestRef { instructions: hash, tools: hash, settings: hash, window: Window::default(), upto: 1 },
            model: Model {
                provider: "anthropic".into(),
                name: "m".into(),
                context_tokens: 200_000,
                max_tokens: 8_192,
                thinking_tokens: 0,
                price: None,
            },
            fallback: false,
            max_tokens: 8_192,
            reserved_nano: 0,
            bytes: 0,
            hand_back: false,
            summary: None,
        })
    }

    fn ended() -> Event {
        let (turn, end, text) = (TurnId::new(Uuid::from_u128(3)), TurnOutcome::Answered, String::new());
        let charges = Vec::new();
        Event::TurnEnded(TurnEnded { turn, end, text, structured: None, charges, short: None, unknown_nano: 0 })
    }

    #[test]
    fn silence_is_told_after_a_while_and_then_rarely() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let from = |number: u128, name: &str| Origin {
            agent: Some(AgentId::new(Uuid::from_u128(number))),
            ..Origin::named(name)
        };
        let (max, leo) = (from(1, "max"), from(2, "leo"));
        let mut vigil = SilenceWatch::default();
        assert_eq!(vigil.due(), None);
        vigil.hear(&max, &intent(1, 1), at(0));
        vigil.hear(&leo, &intent(1, 1), at(1));
        assert_eq!((vigil.due(), vigil.silences(at(3))), (Some(at(4)), Vec::new()));
        // One of them says something.
        vigil.delta(&max, at(3));
        let told = vigil.silences(at(5));
        assert_eq!((told.len(), told[0].who.as_str(), told[0].seconds), (1, "leo", 4));
        assert_eq!(vigil.due(), Some(at(7)));
        vigil.hear(&max, &ended(), at(6));
        assert_eq!((vigil.silences(at(34)), vigil.due()), (Vec::new(), Some(at(35))));
        assert_eq!(vigil.silences(at(35))[0].seconds, 34);
        // The next attempt is another wait.
        vigil.hear(&leo, &intent(1, 2), at(40));
        assert_eq!(vigil.due(), Some(at(44)));
    }
}
