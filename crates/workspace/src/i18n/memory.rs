//! The phrases of what is remembered. Keys, values and quotes are passed through as they are.

use max_team_core::limits::{MEMORY_FACTS_MAX, MEMORY_VALUE_BYTES_MAX};
use max_team_core::memory::{KeyError, RecallReason, Section, WriteRefusal};

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
        if self == Self::En {
            return error.to_string();
        }
        match error {
            KeyError::Section { text, .. } => {
                let sections = Section::NAMES.map(|(name, _)| format!("`{name}`")).join("、");
                format!("`{text}` 不是有效的键；键须以 {sections} 之一开头，其他内容放在 `notes.` 下")
            }
            KeyError::Part(text) => format!("`{text}` 不是有效的键：各部分由字母、数字、`_` 和 `-` 组成，以点连接"),
            KeyError::Long(text) => format!("`{text}` 不是有效的键：太长"),
        }
    }

    pub fn memory_refusal(self, refusal: &WriteRefusal) -> String {
        match (self, refusal) {
            (Self::Zh, WriteRefusal::TooLarge { key, bytes }) => {
                format!("`{key}` 的值有 {bytes} 字节，上限为 {MEMORY_VALUE_BYTES_MAX}；请写得短些")
            }
            (Self::Zh, WriteRefusal::Full) => {
                format!("该分区已有 {MEMORY_FACTS_MAX} 条记忆；用 `max-team memory forget` 腾出空间")
            }
            (Self::Zh, WriteRefusal::Nothing(key)) => self.nothing_under(key.as_str()),
            (Self::Zh, WriteRefusal::Covers { section, facts }) => format!(
                "`{section}` 下有 {facts} 条记忆，直接写入一个值会使其丢失：请写在其中的某个名称下，例如 `{section}.name`，\
                 或先用 `max-team memory forget {section}` 忘记它们"
            ),
            (Self::Zh, WriteRefusal::Within(section)) => format!(
                "`{section}` 本身存有一个值，写入其下的内容会取代它：请先用 `max-team memory forget {section}` 忘记它，\
                 或把它写在某个名称下"
            ),
            (Self::Zh, WriteRefusal::Empty(key)) => format!("`{key}` 的值中没有可以记住的内容"),
            (Self::Zh, WriteRefusal::Key(error)) => self.no_key(error),
            _ => refusal.to_string(),
        }
    }
}
