//! Finds the answer that a later call rests on: the policy judges again, with one answer at a time.

use std::collections::HashMap;

use max_team_core::agent::Settings;
use max_team_core::event::{Event, QuestionAnswered, ToolIntent};
use max_team_core::id::{QuestionId, SessionId};
use max_team_core::policy::{self, ActionKind, DecidedBy, Grant, GrantScope, Mode, RememberedRule, Rules, Verdict};
use max_team_journal::Entry;

use super::record::{AnswerEvidence, Set};

/// Approvals that hold for longer, and the settings of all agents.
#[derive(Default)]
pub(super) struct Grants {
    /// The rule that each open question would be remembered as.
    asked: HashMap<QuestionId, (ActionKind, RememberedRule)>,
    given: Vec<GrantRecord>,
    /// The settings of each agent, by its stream.
    settings: HashMap<String, AgentSettings>,
    /// Modes that were set in a session, in order.
    wanted: Vec<(Option<SessionId>, Mode, Set)>,
}

struct GrantRecord {
    session: Option<SessionId>,
    /// The stream of the agent that asked.
    stream: String,
    until: GrantScope,
    /// Whether it holds for all agents of the session.
    shared: bool,
    grants: Vec<Grant>,
    word: AnswerEvidence,
}

struct AgentSettings {
    settings: Settings,
    mode_set: Set,
}

impl Grants {
    /// Remembers answers and settings for later calls.
    pub(super) fn learn(&mut self, session: Option<SessionId>, entry: &Entry, event: &Event) {
        match event {
            Event::Configured(configured) => {
                self.works_under(session, entry, &configured.settings, configured.by.as_ref());
            }
            Event::AgentStarted(started) => {
                if let Some(settings) = &started.settings {
                    self.works_under(session, entry, settings, None);
                }
            }
            Event::QuestionAsked(asked) => {
                self.asked.insert(asked.question, (asked.action.kind, asked.memory.clone()));
            }
            Event::QuestionAnswered(answered) => self.answered(session, entry, answered),
            Event::TurnEnded(_) => {
                self.given.retain(|given| given.until != GrantScope::Task || given.stream != entry.stream);
            }
            _ => {}
        }
    }

    /// The entry that set the mode of an agent: one for the agent itself, or for the session that it follows.
    pub(super) fn mode_set(&self, session: Option<SessionId>, stream: &str) -> Option<Set> {
        let known = self.settings.get(stream)?;
        let is_its = |(of, mode, _): &&(Option<SessionId>, Mode, Set)| *of == session && *mode == known.settings.mode;
        let followed = self.wanted.iter().rev().find(is_its).filter(|_| known.mode_set.by.is_none());
        Some(followed.map_or(&known.mode_set, |(_, _, set)| set).clone())
    }

    /// The last answer that by itself allows a call of an agent, as the rule says it.
    pub(super) fn behind(
        &self,
        session: Option<SessionId>,
        stream: &str,
        intent: &ToolIntent,
        rule: &str,
    ) -> Option<AnswerEvidence> {
        let settings = &self.settings.get(stream)?.settings;
        let reaches = |given: &&GrantRecord| given.stream == stream || (given.shared && given.session == session);
        let allows = |given: &&GrantRecord| {
            let rules = Rules { grants: &given.grants, ..settings.rules() };
            let judged = policy::judge(&rules, &intent.tool, &intent.action);
            judged.verdict == Verdict::Allow && judged.all().iter().any(|took| took == rule)
        };
        self.given.iter().rev().filter(reaches).find(allows).map(|given| given.word.clone())
    }

    fn works_under(&mut self, session: Option<SessionId>, entry: &Entry, settings: &Settings, by: Option<&DecidedBy>) {
        let before = self.settings.get(&entry.stream).filter(|known| known.settings.mode == settings.mode);
        let mode_set = match before {
            Some(known) => known.mode_set.clone(),
            None => {
                let here = Set { seq: entry.seq, at_ms: entry.at_ms, by: by.cloned(), actor: entry.actor.clone() };
                self.wanted.extend(by.map(|_| (session, settings.mode, here.clone())));
                here
            }
        };
        self.settings.insert(entry.stream.clone(), AgentSettings { settings: settings.clone(), mode_set });
    }

    fn answered(&mut self, session: Option<SessionId>, entry: &Entry, answered: &QuestionAnswered) {
        let answer = &answered.answer;
        let Some((kind, memory)) = self.asked.remove(&answered.question) else { return };
        if !answer.allow || !answer.always || answer.until == GrantScope::Once {
            return;
        }
        let root = self.settings.get(&entry.stream).map_or("", |known| &known.settings.permissions.root);
        let grants = match &memory {
            RememberedRule::Kind => vec![Grant::of_kind(kind)],
            memory => memory.rules().iter().map(|rule| Grant::rule(rule, answer.until, root)).collect(),
        };
        let shared = answer.until == GrantScope::Session && matches!(answer.by, DecidedBy::Person(_));
        let word = AnswerEvidence::of(answer, entry.at_ms);
        self.given.push(GrantRecord {
            session,
            stream: entry.stream.clone(),
            until: answer.until,
            shared,
            grants,
            word,
        });
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::agent::Model;
    use max_team_core::event::{Approval, Configured, QuestionAsked};
    use max_team_core::hash::Hash;
    use max_team_core::policy::{Action, Basis, PermissionAnswer, Recourse, Repeatability};
    use uuid::Uuid;

    use super::*;

    const STREAM: &str = "agent/a";

    fn heard(grants: &mut Grants, seq: u64, event: Event) {
        let entry = Entry {
            seq,
            stream: STREAM.into(),
            stream_seq: seq,
            at_ms: i64::try_from(seq).unwrap() * 100,
            actor: String::new(),
            cause: None,
            event: event.name().to_owned().into(),
            version: 1,
            payload_hash: Hash::default(),
            prev_hash: Hash::default(),
            hash: Hash::default(),
            payload: None,
        };
        grants.learn(None, &entry, &event);
    }

    fn configured(mode: Mode) -> Event {
        let model = Model {
            provider: String::new(),
            name: String::new(),
            context_tokens: 1,
            max_tokens: 1,
            thinking_tokens: 0,
            price: None,
        };
        Event::Configured(Configured {
            settings: Settings { mode, ..Settings::new(model) }.into(),
            definition: None,
            by: None,
        })
    }

    fn fetch(host: &str) -> Action {
        Action { kind: ActionKind::Fetch, ..Action::read(host) }
    }

    /// A question about a host, and a yes that is remembered.
    fn allowed(grants: &mut Grants, seq: u64, host: &str) {
        let question = QuestionId::new(Uuid::from_u128(seq.into()));
        let asked = QuestionAsked {
            question,
            key: String::new(),
            tool: "web_fetch".into(),
            action: fetch(host),
            class: Repeatability::Pure,
            rule: String::new(),
            basis: Basis::Rule,
            memory: RememberedRule::Rules(vec![format!("WebFetch(domain:{host})")]),
            recourse: Recourse::default(),
        };
        heard(grants, seq, Event::QuestionAsked(asked));
        let answer = PermissionAnswer { always: true, ..PermissionAnswer::new(true, DecidedBy::Person("ann".into())) };
        heard(grants, seq + 1, Event::QuestionAnswered(QuestionAnswered { question, answer }));
    }

    #[test]
    fn a_call_rests_on_the_answer_that_allows_it_and_a_mode_on_what_has_set_it() {
        let mut grants = Grants::default();
        heard(&mut grants, 1, configured(Mode::Default));
        allowed(&mut grants, 2, "a.example");
        allowed(&mut grants, 4, "b.example");
        let rule = "allowed for this session by the user";
        let behind = |host: &str| {
            let approval = Approval::Rule(rule.into());
            let (key, tool, input) = (String::new(), "web_fetch".into(), Hash::default());
            let (class, action, attended) = (Repeatability::Pure, fetch(host), false);
            let (rules, bases, words) = Default::default();
            let intent = ToolIntent { key, tool, input, class, approval, action, attended, rules, bases, words };
            grants.behind(None, STREAM, &intent, rule).map(|word| word.at_ms)
        };
        assert_eq!(["a.example", "b.example", "c.example"].map(behind), [Some(300), Some(500), None]);
        heard(&mut grants, 6, configured(Mode::Default));
        let set = |grants: &Grants| grants.mode_set(None, STREAM).map(|set| (set.seq, set.at_ms));
        assert_eq!(set(&grants), Some((1, 100)));
        heard(&mut grants, 7, configured(Mode::AcceptEdits));
        assert_eq!(set(&grants), Some((7, 700)));
    }
}
