//! Who may write to memory, and which events a write leads to.
//!
//! Only this module decides, so no prompt, file, web page or tool list can give another agent than the memory expert
//! the right to change the user's facts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Board, Key, MemoryForgotten, MemorySet, Section, Source};
use crate::agent::{Definition, TeamRole};
use crate::limits::{MEMORY_FACTS_MAX, MEMORY_QUOTE_CHARS_MAX, MEMORY_VALUE_BYTES_MAX, MEMORY_WRITE_FACTS_MAX};
use crate::secret::{redact, redact_value};
use crate::text::quote as shown;

/// The name of the expert in charge of the memory.
pub const EXPERT: &str = "memory";

/// The author of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writer {
    /// The user, by a command.
    User(String),
    /// The expert in charge.
    Expert,
    /// The runtime, which records where conversations stand and which agents fail.
    Program,
    /// A session's lead.
    Lead(String),
    /// Any other agent.
    Other(String),
}

impl Writer {
    /// The kind of writer that an agent is. A lead is a lead under any name. The memory expert is built in or the
    /// user's own; a plan's member, or an expert that a project's file defines, does not become the memory expert by
    /// its name.
    pub fn for_agent(definition: &Definition, leads: bool) -> Self {
        let name = definition.name.clone();
        match (leads, definition.place) {
            (true, _) | (_, TeamRole::Lead) => Self::Lead(name),
            (false, TeamRole::Expert) if is_keeper(definition) => Self::Expert,
            (false, _) => Self::Other(name),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::User(name) | Self::Lead(name) | Self::Other(name) => name,
            Self::Expert => EXPERT,
            Self::Program => "max-team",
        }
    }
}

/// Whether a definition is that of the expert in charge of the memory.
pub fn is_keeper(definition: &Definition) -> bool {
    definition.name == EXPERT && (definition.builtin || definition.trusted)
}

/// Why a write is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefusal {
    /// The writer may not write under this key.
    #[error("`{who}` may not write `{key}`: {why}")]
    NotYours {
        who: String,
        key: Key,
        /// The rule, and what to do instead.
        why: &'static str,
    },
    /// The value does not rest on the user's own words.
    #[error(
        "`{0}` speaks for the user: `quote` must be a phrase that the user said in this conversation, exactly as it was \
         said, and the value must be in words that the user used (a `personality` altogether); without that there is \
         nothing to remember"
    )]
    Unquoted(Key),
    /// One value is too large.
    #[error("the value of `{key}` has {bytes} bytes; at most {MEMORY_VALUE_BYTES_MAX} are remembered: say it shorter")]
    TooLarge { key: Key, bytes: usize },
    /// One write has too many facts.
    #[error("{0} facts at once; at most {MEMORY_WRITE_FACTS_MAX} are written at a time")]
    TooMany(usize),
    /// The section is full.
    #[error("this section holds {MEMORY_FACTS_MAX} facts and no more; `max-team memory forget` makes room")]
    Full,
    /// A member's name is no part of a key.
    #[error("{0}")]
    Key(#[from] super::KeyError),
    /// There is no fact under the key.
    #[error("nothing is remembered under `{0}`")]
    Nothing(Key),
    /// One value would replace all facts of a section.
    #[error(
        "`{section}` holds other facts ({facts}), which one value in their place would lose: write it under a name in it, \
         such as `{section}.name`, or forget them first (`max-team memory forget {section}`)"
    )]
    Covers {
        section: Key,
        /// How many it holds.
        facts: usize,
    },
    /// A fact would replace the one value of its section.
    #[error(
        "`{0}` holds a value of its own, which a fact in it would take the place of: forget that first (`max-team memory \
         forget {0}`), or write it under a name"
    )]
    Within(Key),
    /// The value contains no fact.
    #[error("the value of `{0}` is empty: there is nothing to remember")]
    Empty(Key),
}

const ONLY_CONTEXT: &str = "a lead writes `dialog_context` only; the `memory` expert writes the rest, by itself, from \
                            what the user says";
const ONLY_EXPERT: &str = "every agent reads, only the `memory` expert writes; say in your answer what should be \
                           remembered";

/// Whether a writer may write under a key.
pub fn may_write(who: &Writer, key: &Key) -> Result<(), WriteRefusal> {
    let no = |why| Err(WriteRefusal::NotYours { who: shown(who.name()), key: key.clone(), why });
    match who {
        Writer::User(_) | Writer::Expert => Ok(()),
        Writer::Lead(_) if key.section() == Section::DialogContext => Ok(()),
        Writer::Program if matches!(key.section(), Section::DialogContext | Section::AgentErrors) => Ok(()),
        Writer::Lead(_) | Writer::Program => no(ONLY_CONTEXT),
        Writer::Other(_) => no(ONLY_EXPERT),
    }
}

/// The events that store a value: an object becomes one fact per member, and facts above or below a new fact are
/// replaced. `vouched`: whether the quote is known to be the user's own words.
pub fn set(
    board: &Board,
    who: &Writer,
    key: &Key,
    value: &Value,
    source: &Source,
    vouched: bool,
) -> Result<Vec<MemorySet>, WriteRefusal> {
    allowed(who, key, vouched)?;
    let mut leaves = Vec::new();
    flatten(key, value, &mut leaves)?;
    if leaves.is_empty() {
        return Err(WriteRefusal::Empty(key.clone()));
    }
    if let Some((section, _)) = leaves.iter().find(|(leaf, _)| *leaf == Key::of(leaf.section()))
        && let facts @ 1.. = board.related(section).count()
    {
        return Err(WriteRefusal::Covers { section: section.clone(), facts });
    }
    let alone = |leaf: &Key| board.get(&Key::of(leaf.section())).filter(|fact| fact.key != *leaf);
    if let Some(fact) = leaves.iter().find_map(|(leaf, _)| alone(leaf)) {
        return Err(WriteRefusal::Within(fact.key.clone()));
    }
    let new = leaves.iter().filter(|(key, _)| board.get(key).is_none()).count();
    if board.len() + new > MEMORY_FACTS_MAX {
        return Err(WriteRefusal::Full);
    }
    let quote: String = redact(&source.quote).chars().take(MEMORY_QUOTE_CHARS_MAX).collect();
    let source = Source { quote, ..source.clone() };
    let facts = leaves.into_iter().map(|(leaf, value)| {
        let over = board.related(&leaf).map(|fact| fact.key.clone()).collect();
        MemorySet { key: leaf, value, by: who.clone(), source: source.clone(), over }
    });
    Ok(facts.collect())
}

/// The event that removes the facts under a key.
pub fn forget(board: &Board, who: &Writer, key: &Key, vouched: bool) -> Result<MemoryForgotten, WriteRefusal> {
    allowed(who, key, vouched)?;
    let keys: Vec<Key> = board.at_or_below(key).map(|fact| fact.key.clone()).collect();
    if keys.is_empty() {
        Err(WriteRefusal::Nothing(key.clone()))
    } else {
        Ok(MemoryForgotten { keys, by: who.clone() })
    }
}

fn allowed(who: &Writer, key: &Key, vouched: bool) -> Result<(), WriteRefusal> {
    may_write(who, key)?;
    let unquoted = *who == Writer::Expert && key.section().is_personal() && !vouched;
    if unquoted { Err(WriteRefusal::Unquoted(key.clone())) } else { Ok(()) }
}

fn flatten(key: &Key, value: &Value, leaves: &mut Vec<(Key, Value)>) -> Result<(), WriteRefusal> {
    match value {
        // A null value means unknown, which is not stored.
        Value::Null => Ok(()),
        Value::Object(members) => {
            members.iter().try_for_each(|(name, value)| flatten(&key.member(name)?, value, leaves))
        }
        value => {
            let value = redact_value(value);
            let bytes = value.to_string().len();
            if bytes > MEMORY_VALUE_BYTES_MAX {
                return Err(WriteRefusal::TooLarge { key: key.clone(), bytes });
            }
            leaves.push((key.clone(), value));
            if leaves.len() > MEMORY_WRITE_FACTS_MAX { Err(WriteRefusal::TooMany(leaves.len())) } else { Ok(()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(text: &str) -> Key {
        text.parse().unwrap()
    }

    fn agent(name: &str, place: TeamRole) -> Definition {
        let tools = vec!["memory_read".to_owned(), "memory_write".to_owned()];
        Definition { name: name.into(), place, tools, builtin: true, ..Definition::default() }
    }

    #[test]
    fn only_the_memory_keeper_writes() {
        let user = Writer::User("ada".into());
        let expert = Writer::for_agent(&agent("memory", TeamRole::Expert), false);
        let lead = Writer::for_agent(&agent("max", TeamRole::Lead), true);
        // A lead that calls itself so, and a member with the tool in its file, are what they are.
        let posing = Writer::for_agent(&agent("memory", TeamRole::Expert), true);
        let member = Writer::for_agent(&agent("memory", TeamRole::Member), false);
        let other = Writer::for_agent(&agent("weather", TeamRole::Expert), false);
        let theirs = Writer::for_agent(&Definition { builtin: false, ..agent("memory", TeamRole::Expert) }, false);
        let own = Definition { builtin: false, trusted: true, ..agent("memory", TeamRole::Expert) };
        let own = Writer::for_agent(&own, false);
        let weather = Definition { trusted: true, ..agent("weather", TeamRole::Expert) };
        assert_eq!((&own, Writer::for_agent(&weather, false)), (&Writer::Expert, Writer::Other("weather".into())));
        for (_, section) in Section::NAMES {
            let context = section == Section::DialogContext;
            let table = [
                (&user, true),
                (&expert, true),
                (&lead, context),
                (&own, true),
                (&Writer::Program, context || section == Section::AgentErrors),
                (&posing, context),
                (&member, false),
                (&other, false),
                (&theirs, false),
            ];
            for (who, want) in table {
                assert_eq!(may_write(who, &Key::of(section)).is_ok(), want, "{who:?} {section:?}");
                let set = set(&Board::default(), who, &Key::of(section), &json!("x"), &Source::default(), true);
                assert_eq!(set.is_ok(), want, "{who:?} {section:?}");
            }
        }
    }

    #[test]
    fn facts_about_the_user_need_the_users_words() {
        let write = |who: &Writer, at: &str, vouched| {
            set(&Board::default(), who, &key(at), &json!("x"), &Source::default(), vouched).is_ok()
        };
        for personal in ["personality", "user_profile.location", "preferences.tea"] {
            assert!(!write(&Writer::Expert, personal, false) && write(&Writer::Expert, personal, true), "{personal}");
            assert!(write(&Writer::User("ada".into()), personal, false));
        }
        for free in ["agent_errors.weather", "notes.x", "dialog_context.summary"] {
            assert!(write(&Writer::Expert, free, false), "{free}");
        }
    }

    #[test]
    fn objects_become_facts_and_leave_no_two_readings() {
        let user = Writer::User("ada".into());
        let write =
            |board: &Board, at: &str, value: Value| set(board, &user, &key(at), &value, &Source::default(), true);
        let profile = json!({ "location": "北京通州", "allergies": ["花粉"], "mood": null, "home": { "city": "x" } });
        let facts = write(&Board::default(), "user_profile", profile).unwrap();
        let got: Vec<_> = facts.iter().map(|fact| (fact.key.as_str(), fact.value.clone())).collect();
        let want = [
            ("user_profile.location", json!("北京通州")),
            ("user_profile.allergies", json!(["花粉"])),
            ("user_profile.home.city", json!("x")),
        ];
        assert_eq!(got, want);
        let mut board = Board::default();
        facts.iter().for_each(|fact| board.set(fact, 1));
        // A value in the place of members, and the other way round.
        let over = write(&board, "user_profile.home", json!("Berlin")).unwrap();
        assert_eq!(over[0].over, [key("user_profile.home.city")]);
        let over = write(&board, "user_profile.location.city", json!("Berlin")).unwrap();
        assert_eq!(over[0].over, [key("user_profile.location")]);
        // But a section is not emptied by a slip.
        let section = key("user_profile");
        assert_eq!(write(&board, "user_profile", json!("Ada")), Err(WriteRefusal::Covers { section, facts: 3 }));
        let alone = write(&Board::default(), "user_profile", json!("Ada")).unwrap();
        let mut single = Board::default();
        alone.iter().for_each(|fact| single.set(fact, 1));
        assert_eq!(write(&single, "user_profile.name", json!("Ada")), Err(WriteRefusal::Within(key("user_profile"))));
        assert!(write(&single, "user_profile", json!("Grace")).is_ok());
        assert_eq!(write(&board, "notes.x", json!({ "a": null })), Err(WriteRefusal::Empty(key("notes.x"))));
        let forgotten = forget(&board, &user, &key("user_profile"), false).unwrap();
        assert_eq!(forgotten.keys.len(), 3);
        assert_eq!(forget(&board, &user, &key("notes"), true), Err(WriteRefusal::Nothing(key("notes"))));
    }

    #[test]
    fn bounds_are_refusals_and_secrets_are_not_kept() {
        let user = Writer::User("ada".into());
        let write = |value: Value| set(&Board::default(), &user, &key("notes.x"), &value, &Source::default(), true);
        assert!(matches!(write(json!("x".repeat(MEMORY_VALUE_BYTES_MAX))), Err(WriteRefusal::TooLarge { .. })));
        let many: serde_json::Map<String, Value> =
            (0..=MEMORY_WRITE_FACTS_MAX).map(|n| (format!("k{n}"), json!(1))).collect();
        assert!(matches!(write(Value::Object(many)), Err(WriteRefusal::TooMany(_))));
        let kept = write(json!("the key is sk-ant-REDACTED")).unwrap();
        assert_eq!(kept[0].value, json!("the key is [redacted]"));
    }
}
