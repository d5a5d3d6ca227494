//! Compaction: where the boundary is, what the summarizing model is shown, and what replaces the messages before it.
//!
//! A summary is a model's text and may lose things. Facts that must not be lost are written from state (`facts`),
//! beside it. Both stand at the head of the window, before the messages that stay. Messages before the boundary stay
//! in the history and in the log, so that a compaction can be undone.

use serde::{Deserialize, Serialize};

use super::{RequestSize, Window, window_bytes};
use crate::chat::{ChatRole, Message, Part};
use crate::id::TurnId;
use crate::limits::{COMPACT_TAIL_PERCENT, SUMMARY_RESULT_BYTES_MAX, SUMMARY_WORDS_BYTES_MAX};

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// The window is nearly full.
    Full,
    /// The provider says that the request is too long.
    TooLong,
    /// The user asked for it.
    Asked,
}

/// The subject of a call for a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The first message that stays.
    pub before: usize,
    pub why: CompactionReason,
    /// What the summary should keep above all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub keep: String,
}

/// The user asked to compact the window now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionAsked {
    /// The turn that only compacts.
    pub turn: TurnId,
    /// What the summary should keep above all.
    #[serde(default)]
    pub keep: String,
}

/// Messages before a boundary are replaced by a summary from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The first message that stays.
    pub before: usize,
    /// The window before the compaction.
    pub window: Window,
    pub why: CompactionReason,
    /// The model's summary.
    pub summary: String,
    /// Facts written from state, without a model.
    #[serde(default)]
    pub facts: String,
    /// Messages in the window before and after; the head counts as one.
    pub messages: (usize, usize),
    /// Estimated tokens before and after.
    pub tokens: (u64, u64),
}

/// The compaction failed: the window is cut instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionFailed {
    /// The reason for people.
    pub detail: String,
}

/// The last compaction was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncompacted {
    /// The boundary of that compaction.
    pub before: usize,
}

impl Compacted {
    /// The message at the head of the window.
    pub fn head(&self) -> Message {
        summary_message(&self.facts, &self.summary)
    }
}

/// The message that stands at the head of a window for the messages that left it.
pub(crate) fn summary_message(facts: &str, summary: &str) -> Message {
    let mut text =
        "(What came before has left your window. What follows stands in its place; it is not a new request.)\n"
            .to_owned();
    if !facts.is_empty() {
        text.push_str(&format!("\n# What is certain (kept by the program)\n\n{}\n", facts.trim()));
    }
    text.push_str(&format!("\n# What came before, in short (written by a model)\n\n{}\n", summary.trim()));
    Message::user(vec![Part::text(text)])
}

/// The first message that stays in a compaction; `None` if it would gain too little. Whole turns leave first. The
/// beginning of the running turn leaves only if the turn alone is too large; its newest exchange never does.
///
/// `room` is in bytes, for history only.
pub fn boundary(history: &[Message], weights: &[RequestSize], window: Window, room: usize) -> Option<usize> {
    let most = usize::try_from(room as u64 * COMPACT_TAIL_PERCENT / 100).unwrap_or(usize::MAX);
    let rest = |from: usize| window_bytes(weights, Window { from, ..window });
    // The messages that leave must be worth a call: at least a tenth of the room.
    let pays = |from: &usize| rest(*from).saturating_add(room / 10) <= rest(window.from);
    let ahead = || weights.iter().enumerate().skip(window.from + 1);
    let turns = || ahead().filter(|(_, weight)| weight.starts_turn).map(|(index, _)| index);
    if let Some(turn) = turns().find(|turn| rest(*turn) <= most) {
        return Some(turn).filter(pays);
    }
    let last = turns().next_back();
    // The running turn stays whole if it takes at most half of the room.
    if let Some(turn) = last.filter(|turn| rest(*turn) <= room / 2) {
        return Some(turn).filter(pays);
    }
    let newest = weights.len().saturating_sub(2);
    let spoken = |index: &usize| history.get(*index).is_some_and(|message| message.role == ChatRole::Assistant);
    let within = || (last.unwrap_or(window.from) + 1..=newest).filter(spoken);
    within().find(|index| rest(*index) <= most).or_else(|| within().next_back()).or(last).filter(pays)
}

/// The messages to summarize as one text: texts, calls and the beginnings of results. If it is longer than `room`
/// bytes, the oldest part is left out, but never the last summary.
pub fn transcript(head: Option<&Message>, messages: &[Message], room: usize) -> String {
    let opening = head.map(Message::text).unwrap_or_default();
    let mut left = room.saturating_sub(opening.len());
    let mut kept: Vec<String> = Vec::new();
    let mut whole = true;
    for message in messages.iter().rev() {
        let text = told(message);
        if text.len() > left {
            whole = false;
            break;
        }
        left -= text.len();
        kept.push(text);
    }
    let mut text = opening;
    if !whole {
        text.push_str("\n[the oldest part is left out here]\n");
    }
    kept.iter().rev().for_each(|message| text.push_str(message));
    text
}

fn told(message: &Message) -> String {
    let who = if message.role == ChatRole::Assistant { "assistant" } else { "user" };
    let mut text = String::new();
    for part in &message.parts {
        match part {
            Part::Text { text: words } => {
                text.push_str(&format!("\n[{who}]\n{}\n", cut(words, SUMMARY_WORDS_BYTES_MAX)));
            }
            Part::ToolUse { name, input, .. } => {
                let input = input.to_string();
                text.push_str(&format!("\n[calls `{name}`] {}\n", cut(&input, SUMMARY_RESULT_BYTES_MAX)));
            }
            Part::ToolResult { content, is_error, .. } => {
                let words = Message::user(content.clone()).text();
                let mark = if *is_error { "failed" } else { "result" };
                text.push_str(&format!("\n[{mark}] {}\n", cut(&words, SUMMARY_RESULT_BYTES_MAX)));
            }
            Part::Image { .. } => text.push_str(&format!("\n[{who} shows a picture]\n")),
            Part::Thinking { .. } => {}
        }
    }
    text
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    format!("{kept} [cut: {} of {} bytes]", kept.len(), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: ChatRole, bytes: usize, starts_turn: bool) -> (Message, RequestSize) {
        let parts = vec![Part::text("x".repeat(bytes))];
        let message = if role == ChatRole::User { Message::user(parts) } else { Message::assistant(parts) };
        (message, RequestSize { full: bytes, light: bytes, starts_turn })
    }

    #[test]
    fn whole_turns_leave_first_and_the_newest_exchange_stays() {
        let talk = |table: &[(ChatRole, usize, bool)]| -> (Vec<Message>, Vec<RequestSize>) {
            table.iter().map(|&(role, bytes, starts)| said(role, bytes, starts)).unzip()
        };
        use ChatRole::{Assistant, User};
        let turns = talk(&[
            (User, 400, true),
            (Assistant, 400, false),
            (User, 50, true),
            (Assistant, 100, false),
            (User, 10, true),
        ]);
        let long = talk(&[
            (User, 10, true),
            (Assistant, 10, false),
            (User, 500, false),
            (Assistant, 10, false),
            (User, 300, false),
            (Assistant, 10, false),
            (User, 100, false),
        ]);
        let whole = Window::default();
        // As many of the newest turns stay as fit into a fifth of the room …
        assert_eq!(boundary(&turns.0, &turns.1, whole, 1_000), Some(2));
        assert_eq!(boundary(&turns.0, &turns.1, whole, 500), Some(4));
        // … and nothing is gained from what is the only turn's question.
        assert_eq!(boundary(&turns.0, &turns.1, Window { from: 4, elide: 0 }, 500), None);
        // A single long turn loses its early exchanges, never the newest.
        assert_eq!(boundary(&long.0, &long.1, whole, 1_000), Some(5));
        assert_eq!(boundary(&long.0, &long.1, whole, 10), Some(5));
        assert_eq!(boundary(&long.0, &long.1, Window { from: 5, elide: 0 }, 10), None);
        // One exchange that is too much by itself does not get smaller without its question.
        let huge = talk(&[(User, 10, true), (Assistant, 5_000, false), (User, 10, false)]);
        assert_eq!(boundary(&huge.0, &huge.1, whole, 1_000), None);
    }

    #[test]
    fn the_text_to_summarise_is_bounded_and_begins_with_the_last_summary() {
        let result =
            Part::ToolResult { id: "a".into(), content: vec![Part::text("字".repeat(9_000))], is_error: true };
        let call = Part::ToolUse { id: "a".into(), name: "grep".into(), input: serde_json::json!({"q": 1}).into() };
        let messages = [
            Message::user(vec![Part::text("first words")]),
            Message::assistant(vec![Part::Thinking { text: "hm".into() }, call]),
            Message::user(vec![result]),
        ];
        let head = summary_message("- a fact", "so far");
        let all = transcript(Some(&head), &messages, 1 << 20);
        assert!(all.starts_with("(What came before"), "{all}");
        for part in
            ["- a fact", "so far", "[user]\nfirst words", "[calls `grep`] {\"q\":1}", "[failed] 字", "[cut: 1023 of"]
        {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert!(!all.contains("hm"));
        let short = transcript(Some(&head), &messages, head.text().len() + 1_090);
        assert!(short.contains("so far") && short.contains("[the oldest part is left out here]"));
        assert!(short.contains("[failed]") && !short.contains("first words"), "{short}");
    }
}
