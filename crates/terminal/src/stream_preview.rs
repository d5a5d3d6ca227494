//! A model call in flight: what of its answer was shown already, and what is still to be shown when it ends.
//!
//! Deltas are only for show and may be dropped; the answer that ends the call is the truth. If what was streamed is
//! not its beginning, the reader is told so and gets the whole answer.

use max_team_core::chat::{Answer, Part};

use super::rows::Row;
use super::transcript::Item;
use max_team_workspace::format::since;
use max_team_workspace::i18n::Lang;

/// Bytes of the model's thoughts that are kept for show.
const THOUGHT_BYTES: usize = 400;

/// A model call in flight.
#[derive(Debug)]
pub(super) struct StreamPreview {
    pub(super) number: u32,
    /// The text that came as deltas.
    streamed: String,
    /// Whether the words are in the middle of being shown.
    pub(super) in_text: bool,
    pub(super) thinking_since_ms: Option<i64>,
    pub(super) thought: String,
    told_thought: bool,
    pub(super) tool: Option<String>,
    pub(super) paced_until_ms: Option<i64>,
}

impl StreamPreview {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            streamed: String::new(),
            in_text: false,
            thinking_since_ms: None,
            thought: String::new(),
            told_thought: false,
            tool: None,
            paced_until_ms: None,
        }
    }

    /// More of the answer's text.
    pub(super) fn text(&mut self, text: &str, now_ms: i64, out: &mut Vec<Item>) {
        self.end_thought(now_ms, out);
        self.tool = None;
        self.in_text = true;
        self.streamed.push_str(text);
        out.push(Item::Text(text.to_owned()));
    }

    /// More of the model's thoughts; only the end of them is kept.
    pub(super) fn think(&mut self, text: &str, now_ms: i64, out: &mut Vec<Item>) {
        self.end_text(out);
        self.thinking_since_ms.get_or_insert(now_ms);
        self.thought.push_str(text);
        if self.thought.len() > 2 * THOUGHT_BYTES {
            let cut = self.thought.ceil_char_boundary(self.thought.len() - THOUGHT_BYTES);
            self.thought.drain(..cut);
        }
    }

    pub(super) fn end_thought(&mut self, now_ms: i64, out: &mut Vec<Item>) {
        if let Some(since_ms) = self.thinking_since_ms.take() {
            self.told_thought = true;
            out.push(Item::Row(Row::Thought(Some(since(since_ms, now_ms)))));
        }
    }

    pub(super) fn end_text(&mut self, out: &mut Vec<Item>) {
        if std::mem::take(&mut self.in_text) {
            out.push(Item::TextEnd);
        }
    }

    /// The answer is there: shows what the deltas did not.
    pub(super) fn settle(&mut self, answer: &Answer, lang: Lang, out: &mut Vec<Item>) {
        if !self.streamed.is_empty() {
            let texts = answer.message.parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            });
            return self.settle_text(&texts.collect::<String>(), lang, out);
        }
        for part in &answer.message.parts {
            match part {
                Part::Thinking { .. } if !std::mem::replace(&mut self.told_thought, true) => {
                    out.push(Item::Row(Row::Thought(None)));
                }
                Part::Text { text } if !text.trim().is_empty() => {
                    out.push(Item::Text(text.clone()));
                    out.push(Item::TextEnd);
                }
                _ => {}
            }
        }
    }

    pub(super) fn settle_text(&mut self, whole: &str, lang: Lang, out: &mut Vec<Item>) {
        let dense = |text: &str| text.split_whitespace().collect::<String>();
        if let Some(rest) = whole.strip_prefix(&self.streamed) {
            if !rest.is_empty() {
                self.in_text = true;
                out.push(Item::Text(rest.to_owned()));
            }
        } else if !dense(&self.streamed).starts_with(&dense(whole)) {
            self.end_text(out);
            out.push(Item::Row(Row::Note(lang.gap_in_stream().to_owned())));
            self.in_text = true;
            out.push(Item::Text(whole.to_owned()));
        }
        self.end_text(out);
    }

    /// The call failed: what was shown of it will be said again.
    pub(super) fn break_off(&mut self, lang: Lang, out: &mut Vec<Item>) {
        self.end_text(out);
        if !self.streamed.is_empty() {
            out.push(Item::Row(Row::Note(lang.broke_off().to_owned())));
        }
    }
}
