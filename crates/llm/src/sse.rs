//! Server-sent events out of bytes that arrive in any pieces.
//!
//! Follows the HTML standard: lines end in LF, CR or CRLF, a byte order mark at the start is skipped, `data` lines
//! join with a newline, comments and unknown fields are ignored, and an event that no blank line closed is dropped.
//! It knows nothing of what events mean.

use std::borrow::Cow;

use max_team_core::limits::SSE_EVENT_BYTES_MAX;
use memchr::memchr2;

const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<'p> {
    /// Its `event` field; empty if it had none.
    pub(crate) name: &'p str,
    /// Its `data` lines.
    pub(crate) data: &'p str,
}

/// An event grew past its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// The state between two pieces. An answer is some hundred events in a row, so the buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The line that has not ended yet.
    line: Vec<u8>,
    open: OpenEvent,
    /// The last byte was a CR: a LF that follows belongs to it.
    after_cr: bool,
}

/// The event that has not ended yet.
#[derive(Debug, Default)]
struct OpenEvent {
    name: Vec<u8>,
    data: Vec<u8>,
    /// Whether there is a `data` line: without one there is no event.
    has_data: bool,
    /// Whether the first line is behind us.
    started: bool,
}

impl Parser {
    /// Takes the next bytes and hands over the events that they complete.
    pub(crate) fn feed<E: From<TooLarge>>(
        &mut self,
        mut chunk: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                chunk = chunk.get(1..).unwrap_or_default();
                continue;
            }
            let end = memchr2(b'\n', b'\r', chunk).unwrap_or(chunk.len());
            let (piece, rest) = chunk.split_at(end);
            if self.line.len() + piece.len() + self.open.data.len() > SSE_EVENT_BYTES_MAX {
                return Err(TooLarge.into());
            }
            let Some(ending) = rest.first() else {
                self.line.extend_from_slice(piece);
                break;
            };
            self.after_cr = *ending == b'\r';
            chunk = rest.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                self.open.line(piece, &mut each)?;
            } else {
                self.line.extend_from_slice(piece);
                let ended = self.open.line(&self.line, &mut each);
                self.line.clear();
                ended?;
            }
        }
        Ok(())
    }
}

/// The text of some bytes. Valid UTF-8 is checked as a whole, not character by character.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

impl OpenEvent {
    /// Takes a line; a blank one ends the event.
    fn line<E>(&mut self, line: &[u8], each: &mut impl FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        let line =
            if std::mem::replace(&mut self.started, true) { line } else { line.strip_prefix(BOM).unwrap_or(line) };
        if line.is_empty() {
            // Characters are decoded here, so one that was split over two pieces is whole by now.
            let ended = match std::mem::take(&mut self.has_data) {
                true => each(Event { name: &decoded(&self.name), data: &decoded(&self.data) }),
                false => Ok(()),
            };
            self.name.clear();
            self.data.clear();
            return ended;
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let field = halves.next().unwrap_or_default();
        let value = halves.next().unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Told = (String, String);

    fn event(name: &str, data: &str) -> Told {
        (name.into(), data.into())
    }

    fn fed(parser: &mut Parser, chunk: &[u8]) -> Result<Vec<Told>, TooLarge> {
        let mut events = Vec::new();
        parser.feed(chunk, |told| {
            events.push(event(told.name, told.data));
            Ok::<_, TooLarge>(())
        })?;
        Ok(events)
    }

    fn whole(stream: &str) -> Vec<Told> {
        fed(&mut Parser::default(), stream.as_bytes()).unwrap()
    }

    #[test]
    fn the_standard_is_followed() {
        let table = [
            ("data: a\n\n", vec![event("", "a")]),
            ("event: x\ndata: a\n\ndata: b\n\n", vec![event("x", "a"), event("", "b")]),
            ("data: a\r\ndata: b\r\n\r\n", vec![event("", "a\nb")]),
            ("data: a\rdata: b\r\r", vec![event("", "a\nb")]),
            ("data:a\n\ndata:  b\n\n", vec![event("", "a"), event("", " b")]),
            (": ping\n\nid: 1\nretry: 5\ndata: a\n\n", vec![event("", "a")]),
            ("data\n\n", vec![event("", "")]),
            ("event: x\n\ndata: a\n\n", vec![event("", "a")]),
            ("\u{feff}data: a\n\n", vec![event("", "a")]),
            ("data: 你好 🦀\n\n", vec![event("", "你好 🦀")]),
            ("data: a: b\n\n", vec![event("", "a: b")]),
            ("data: cut", vec![]),
            ("data: cut\n", vec![]),
        ];
        for (stream, want) in table {
            assert_eq!(whole(stream), want, "{stream:?}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut parser = Parser::default();
        let mebibyte = vec![b'x'; 1 << 20];
        let refused = (0..=SSE_EVENT_BYTES_MAX >> 20).map(|_| fed(&mut parser, &mebibyte)).find(Result::is_err);
        assert_eq!(refused, Some(Err(TooLarge)));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            lines in prop::collection::vec("(data: ?|event: ?|: |)[a-zé你🦀:]{0,6}", 0..20),
            endings in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 20),
            cuts in prop::collection::vec(0_usize..200, 0..20),
        ) {
            let stream: String = lines.iter().zip(&endings).flat_map(|(line, end)| [line.as_str(), end]).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for pair in cuts.windows(2) {
                events.extend(fed(&mut parser, &stream.as_bytes()[pair[0]..pair[1]]).unwrap());
            }
            prop_assert_eq!(events, whole(&stream));
        }
    }
}
