//! The phrases of what is remembered. Keys, values and quotes are passed through as they are.

use max_team_core::limits::{MEMORY_FACTS_MAX, MEMORY_VALUE_BYTES_MAX};
use max_team_core::memory::{KeyError, RecallReason, Section, WriteRefusal};

use super::Lang;

phrases! {
    nothing_remembered: "nothing is remembered yet; say something about yourself, or `max-team memory set KEY VALUE`",
        "还没有任何记忆；说说你自己，或用 `max-team memory set KEY VALUE`";
    nothing_found: "nothing that is remembered has to do with that", "没有与此相关的记忆";
    told_nothing: "(nothing from memory)", "（未使用记忆）";
    since_forgotten: "(forgotten since)", "（此后已忘记）";
    since_changed: "(changed since)", "（此后已更改）";
    remembered: "remembered", "已记住";
    forgotten: "forgotten", "已忘记";
    would_take: "would take", "将导入";
    taken: "taken", "已导入";
    not_taken: "left out", "未导入";
    value_word: "value", "内容";
    board_word: "scope", "范围";
    written_by: "written by", "记录者";
    written_at: "written", "记录时间";
    words_behind: "from the words", "依据原话";
    said_in: "said in", "来自会话";
    file_behind: "from the file", "来自文件";
    nothing_under(key: &str): "nothing is remembered under `{key}`; `max-team memory list` shows what is",
        "`{key}` 下没有记忆；用 `max-team memory list` 查看";
    erased(entries: u64): "its text is erased from {entries} entries of the memory's log",
        "已从记忆日志的 {entries} 条记录中抹去其内容";
    still_said_in(session: &str): "what was said in session {session} is still in that session",
        "会话 {session} 中说过的话仍保留在该会话中";
    still_told_in(session: &str): "a prompt in session {session} was told of it; that is still in that session",
        "会话 {session} 的提示中曾提到它，仍保留在该会话中";
    not_exported(facts: usize):
        "what belongs to this project ({facts}) is not among it: `max-team memory export --scope project` writes that",
        "不包含属于本项目的 {facts} 条记忆：用 `max-team memory export --scope project` 导出";
    no_room(count: usize): "({count} more found no room)", "（另有 {count} 条因篇幅未使用）";
    unknown_memory_file(name: &str):
        "`{name}`: only SOUL.md, USER.md, MEMORY.md (or other .md files) and .json are read",
        "`{name}`：只能读取 SOUL.md、USER.md、MEMORY.md（或其他 .md 文件）和 .json";
    memory_file_exists(path: &str): "`{path}` is there already; --force replaces it", "`{path}` 已存在；用 --force 覆盖";
    bad_memory_file(path: &str, why: &str): "`{path}` cannot be read: {why}", "无法读取 `{path}`：{why}";
}

impl Lang {
    pub fn memory_heads(self) -> [&'static str; 5] {
        match self {
            Self::En => ["KEY", "SCOPE", "BY", "WHEN", "VALUE"],
            Self::Zh => ["键", "范围", "记录者", "时间", "内容"],
        }
    }

    pub fn told_because(self, why: &RecallReason) -> String {
        match why {
            RecallReason::Personality => say!(self, "always: how the lead speaks", "始终：主持者的说话方式"),
            RecallReason::LastConversation => say!(self, "the last conversation here", "此处的上一次对话"),
            RecallReason::Standing => say!(self, "always: about the user", "始终：关于用户"),
            RecallReason::Matched { terms, .. } => {
                let terms = terms.join(", ");
                say!(self, "same words: {terms}", "相同词语：{terms}")
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
