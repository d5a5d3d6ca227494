//! Server-sent events out of bytes that arrive in any pieces.
//!
//! Follows the HTML standard: lines end in LF, CR or CRLF, a byte order mark at the start is skipped, `data` lines
//! join with a newline, comments and unknown fields are ignored, and an event that no blank line closed is dropped.
//! It knows nothing of what events mean.

use max_team_core::limits::SSE_EVENT_BYTES_MAX;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its `event` field; empty if it had none.
    pub(crate) name: String,
    /// Its `data` lines.
    pub(crate) data: String,
}

/// An event grew past its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// The state between two pieces.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The event that has not ended yet; without a `data` line there is none.
    name: String,
    data: Option<Vec<u8>>,
    /// Whether the first line is behind us.
    started: bool,
    /// The last byte was a CR: a LF that follows belongs to it.
    after_cr: bool,
}

impl Parser {
    /// Takes the next bytes and gives the events that they complete.
    pub(crate) fn feed(&mut self, mut chunk: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                chunk = chunk.get(1..).unwrap_or_default();
                continue;
            }
            let end = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(chunk.len());
            let (piece, rest) = chunk.split_at(end);
            self.line.extend_from_slice(piece);
            if self.line.len() + self.data.as_ref().map_or(0, Vec::len) > SSE_EVENT_BYTES_MAX {
                return Err(TooLarge);
            }
            let Some(ending) = rest.first() else { break };
            self.after_cr = *ending == b'\r';
            chunk = rest.get(1..).unwrap_or_default();
            let mut line = std::mem::take(&mut self.line);
            events.extend(self.end_line(&line));
            line.clear();
            self.line = line;
        }
        Ok(events)
    }

    fn end_line(&mut self, line: &[u8]) -> Option<Event> {
        let line =
            if std::mem::replace(&mut self.started, true) { line } else { line.strip_prefix(BOM).unwrap_or(line) };
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            return self.data.take().map(|data| Event { name, data: decode(&data) });
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let field = halves.next().unwrap_or_default();
        let value = halves.next().unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.name = decode(value),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            _ => {}
        }
        None
    }
}

/// Characters are decoded per line, so a character split over two pieces is whole by now.
fn decode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    fn whole(stream: &str) -> Vec<Event> {
        Parser::default().feed(stream.as_bytes()).unwrap()
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
        let fed = (0..=SSE_EVENT_BYTES_MAX >> 20).map(|_| parser.feed(&mebibyte)).find(Result::is_err);
        assert_eq!(fed, Some(Err(TooLarge)));
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
                events.extend(parser.feed(&stream.as_bytes()[pair[0]..pair[1]]).unwrap());
            }
            prop_assert_eq!(events, whole(&stream));
        }
    }
}
