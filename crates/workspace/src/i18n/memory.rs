//! The phrases of what is remembered. Keys, values and quotes are passed through as they are.

use max_team_core::limits::{MEMORY_FACTS_MAX, MEMORY_VALUE_BYTES_MAX};
use max_team_core::memory::{KeyError, RecallReason, Section, WriteRefusal};
use max_team_core::suggest::nearest;

use super::{Lang, heads};

impl Lang {
    pub fn memory_heads(self) -> [&'static str; 5] {
        heads(self.memory_heads_row())
    }

    pub fn told_because(self, why: &RecallReason) -> String {
        match why {
            RecallReason::Personality => self.recalled_character().to_owned(),
            RecallReason::LastConversation => self.recalled_last_conversation().to_owned(),
            RecallReason::Standing => self.recalled_about_user().to_owned(),
            RecallReason::Matched { terms, .. } => {
                let terms = terms.join(", ");
                self.same_words(&terms)
            }
        }
    }

    pub fn no_key(self, error: &KeyError) -> String {
        match error {
            KeyError::Section { text, .. } => {
                let first = text.split('.').next().unwrap_or_default();
                let near = nearest(first, Section::NAMES.map(|(name, _)| name));
                let sections = Section::NAMES.map(|(name, _)| format!("`{name}`")).join(self.comma());
                match near {
                    Some(near) => self.memory_key_section_near(text, near, sections),
                    None => self.memory_key_section(text, sections),
                }
            }
            KeyError::Part(text) => self.memory_key_part(text),
            KeyError::Long(text) => self.memory_key_long(text),
        }
    }

    /// Why a write is refused. Refusals that only models meet stay in English.
    pub fn memory_refusal(self, refusal: &WriteRefusal) -> String {
        match refusal {
            WriteRefusal::TooLarge { key, bytes } => self.memory_refused_too_large(key, bytes, MEMORY_VALUE_BYTES_MAX),
            WriteRefusal::Full => self.memory_refused_full(MEMORY_FACTS_MAX),
            WriteRefusal::Nothing(key) => self.memory_refused_nothing(key),
            WriteRefusal::Covers { section, facts } => self.memory_refused_covers(section, facts),
            WriteRefusal::Within(section) => self.memory_refused_within(section),
            WriteRefusal::Empty(key) => self.memory_refused_empty(key),
            WriteRefusal::Key(error) => self.no_key(error),
            refusal => refusal.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::memory::Key;

    use super::*;

    #[test]
    fn refusals_are_the_same_on_screens_and_for_models() {
        let key: Key = "notes.a".parse().unwrap();
        let long = format!("notes.{}", "a".repeat(1_000));
        let bad = ["nots.a", "zzz", "notes.a b", &long].map(|text| text.parse::<Key>().unwrap_err());
        for error in &bad {
            assert_eq!(Lang::En.no_key(error), error.to_string());
            assert_ne!(Lang::Zh.no_key(error), error.to_string());
        }
        let refusals = [
            WriteRefusal::TooLarge { key: key.clone(), bytes: 7 },
            WriteRefusal::Full,
            WriteRefusal::Nothing(key.clone()),
            WriteRefusal::Covers { section: key.clone(), facts: 2 },
            WriteRefusal::Within(key.clone()),
            WriteRefusal::Empty(key),
        ];
        for refusal in refusals.into_iter().chain(bad.map(WriteRefusal::Key)) {
            assert_eq!(Lang::En.memory_refusal(&refusal), refusal.to_string());
            assert_ne!(Lang::Zh.memory_refusal(&refusal), refusal.to_string());
        }
    }
}
