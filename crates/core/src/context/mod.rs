//! What fits into a model's window, and what leaves it first.
//!
//! Sizes are estimated from bytes and corrected by what providers report. When the estimate passes the high mark, the
//! cheapest parts leave first: tool results of earlier turns, then the oldest turns, then early results of the current
//! turn. Before that, old messages are summarized ([`summary`]). Nothing leaves the journal; only the window moves.

pub mod files;
pub mod instructions;
pub mod summary;

use serde::{Deserialize, Serialize};

use crate::chat::{Message, Part};
use crate::limits::{WINDOW_HIGH_PERCENT, WINDOW_LOW_PERCENT};

/// Bytes per thousand tokens, until a provider has reported its usage.
pub const BYTES_PER_KILOTOKEN: u64 = 3_500;

/// Bytes that a message adds to a request besides its parts.
const MESSAGE_BYTES: usize = 32;

/// Replaces a tool result that has left the window.
pub const ELIDED: &str = "[result left out to save room; call the tool again if it is still needed]";

/// The part of a history that a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Window {
    /// The first message.
    pub from: usize,
    /// Tool results before this message are elided.
    pub elide: usize,
}

/// What a message weighs, in bytes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSize {
    /// As it is.
    pub full: usize,
    /// With its tool results elided.
    pub light: usize,
    /// Whether a turn starts here, so that the window may.
    pub starts_turn: bool,
}

impl RequestSize {
    /// Weighs a message.
    pub fn of_message(message: &Message, starts_turn: bool) -> Self {
        let parts = Self::of_parts(&message.parts);
        let native = message.native.as_ref().map_or(0, |native| native.blocks.get().len() + MESSAGE_BYTES);
        Self { full: parts.full.max(native), starts_turn, ..parts }
    }

    /// Weighs the parts of a future message within a turn.
    pub fn of_parts(parts: &[Part]) -> Self {
        let empty = Self { full: MESSAGE_BYTES, light: MESSAGE_BYTES, starts_turn: false };
        parts.iter().fold(empty, |sum, part| {
            let full = part.weight();
            let light = if let Part::ToolResult { .. } = part { ELIDED.len() + 80 } else { full };
            Self { full: sum.full + full, light: sum.light + light, ..sum }
        })
    }
}

/// The message as it looks once its results have left the window.
pub fn elided(message: &Message) -> Message {
    let light = |part: &Part| match part {
        Part::ToolResult { id, is_error, .. } => {
            Part::ToolResult { id: id.clone(), content: vec![Part::text(ELIDED)], is_error: *is_error }
        }
        other => other.clone(),
    };
    Message { role: message.role, parts: message.parts.iter().map(light).collect(), native: message.native.clone() }
}

/// Bytes that a window sends, on top of `overhead`.
pub fn window_bytes(weights: &[RequestSize], window: Window) -> usize {
    let weigh_one = |(index, weight): (usize, &RequestSize)| {
        if index < window.elide { weight.light.min(weight.full) } else { weight.full }
    };
    weights.iter().enumerate().skip(window.from).map(weigh_one).sum()
}

/// Tokens that so many bytes make.
pub fn tokens(bytes: usize, bytes_per_kilotoken: u64) -> u64 {
    (bytes as u64).saturating_mul(1_000) / bytes_per_kilotoken.max(1)
}

/// Moves the window so that it fits, or returns it as it is when it does.
///
/// `room` is in bytes, for history only (instructions and the answer already taken off).
pub fn fit(weights: &[RequestSize], window: Window, room: usize) -> Window {
    if (window_bytes(weights, window) as u64) <= room as u64 * WINDOW_HIGH_PERCENT / 100 {
        return window;
    }
    let low = usize::try_from(room as u64 * WINDOW_LOW_PERCENT / 100).unwrap_or(usize::MAX);
    shrink(weights, window, low)
}

/// Moves the window until at most `low` bytes are left, or as far as it can go.
pub fn shrink(weights: &[RequestSize], mut window: Window, low: usize) -> Window {
    let turn = weights.iter().rposition(|weight| weight.starts_turn).unwrap_or(0);
    window.elide = window.elide.max(turn);
    if window_bytes(weights, window) <= low {
        return window;
    }
    for (start, _) in weights.iter().enumerate().skip(window.from + 1).filter(|(_, weight)| weight.starts_turn) {
        window.from = start;
        if window_bytes(weights, window) <= low {
            return window;
        }
    }
    // Only the current turn is left. The newest exchange of tool calls stays whole, even if messages follow it: the
    // model has not seen it yet.
    let newest = weights.iter().rposition(|weight| weight.light != weight.full).unwrap_or(weights.len());
    window.elide = window.elide.max(newest.min(weights.len().saturating_sub(2)));
    window
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(table: &[(usize, usize, bool)]) -> Vec<RequestSize> {
        table.iter().map(|&(full, light, starts_turn)| RequestSize { full, light, starts_turn }).collect()
    }

    #[test]
    fn the_cheapest_content_is_dropped_first() {
        // Two old turns (question, call, result, answer), then the current one.
        let history = weights(&[
            (10, 10, true),
            (10, 10, false),
            (400, 20, false),
            (50, 50, false),
            (10, 10, true),
            (10, 10, false),
            (400, 20, false),
            (50, 50, false),
            (10, 10, true),
            (10, 10, false),
            (200, 20, false),
            (10, 10, false),
            (100, 20, false),
        ]);
        let whole = Window::default();
        let table = [
            (2_000, whole),
            // Old results go first …
            (1_000, Window { from: 0, elide: 8 }),
            // … then the oldest turn …
            (800, Window { from: 4, elide: 8 }),
            // … then every turn but the current one …
            (600, Window { from: 8, elide: 8 }),
            // … then early results of the current one; the newest always stays.
            (300, Window { from: 8, elide: 11 }),
            (1, Window { from: 8, elide: 11 }),
        ];
        for (room, want) in table {
            assert_eq!(fit(&history, whole, room), want, "room {room}");
        }
        assert_eq!(window_bytes(&history, Window { from: 8, elide: 11 }), 10 + 10 + 20 + 10 + 100);
    }

    #[test]
    fn text_after_the_newest_results_does_not_push_them_out() {
        let exchange = [(10, 10, true), (10, 10, false), (400, 20, false), (10, 10, false), (300, 20, false)];
        for said in 0..4 {
            let history = weights(&[exchange.to_vec(), vec![(50, 50, false); said]].concat());
            let window = fit(&history, Window::default(), 1);
            assert!((3..=4).contains(&window.elide), "{said}: {window:?}");
        }
    }

    #[test]
    fn eliding_keeps_calls_and_results_paired() {
        let result = Part::ToolResult { id: "a".into(), content: vec![Part::text("x".repeat(999))], is_error: true };
        let light = elided(&Message::user(vec![result]));
        assert_eq!(
            light.parts,
            [Part::ToolResult { id: "a".into(), content: vec![Part::text(ELIDED)], is_error: true }]
        );
    }
}
