//! A range of lines out of a text of any length, in bounded memory and, from the start of it, in bounded time.
//!
//! Lines are numbered as `cat -n` does. What does not fit is left out and counted, never silently. Knows nothing of
//! files: it takes any reader.

use std::fmt::Write as _;
use std::io::{self, BufRead};

use max_team_core::limits::{READ_BYTES_MAX, READ_LINES_MAX};
use memchr::{memchr, memchr_iter, memchr2};
use tokio_util::sync::CancellationToken;

use crate::text::many;

/// Bytes of one line that are shown.
pub(crate) const LINE_BYTES_MAX: usize = 2_000;
/// Bytes that are looked at from the first wanted line on, to find the end of long lines and of the text.
const AHEAD_BYTES_MAX: usize = 4 << 20;

/// Bytes that are not UTF-8, or NUL, in something that is still taken for a text: so many, and one in ten more.
const ODD_MAX: usize = 8;

/// Lines as they were found.
#[derive(Debug, Default)]
pub(crate) struct LineRange {
    /// The lines, numbered.
    pub(crate) text: String,
    /// The last line shown; one less than the first wanted if none is.
    pub(crate) last: usize,
    /// How many lines there are in all, if that was found out.
    pub(crate) total: Option<usize>,
    /// Lines that were cut for their length.
    pub(crate) cut: usize,
    /// Line endings of the lines that are shown in full.
    pub(crate) ends: LineEndings,
    /// Binary lines among the lines that are shown: how many, and how many of their bytes were examined.
    pub(crate) dark: (usize, usize),
    /// Bytes of the other lines that were examined …
    pub(crate) seen: usize,
    /// … of these: bytes that are not UTF-8 …
    pub(crate) invalid: usize,
    /// … and bytes that are NUL.
    pub(crate) nuls: usize,
    /// Binary data after the last line shown, or in the part of a shown line that was cut off, as far as it was examined.
    pub(crate) beyond: HiddenLines,
}

/// The first hidden lines that are not text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HiddenLines {
    /// The first line with bytes that are not UTF-8.
    pub(crate) invalid: Option<usize>,
    /// The first line with a NUL.
    pub(crate) nul: Option<usize>,
    /// Bytes that the last examined character still lacks.
    missing: usize,
}

/// How lines end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineEndings {
    /// Some in CR LF.
    pub(crate) crlf: bool,
    /// Some in LF alone.
    pub(crate) lf: bool,
    /// Some contain a CR that does not end the line.
    pub(crate) cr: bool,
}

/// Collects up to `limit` lines from line `offset` (counted from 1) on.
pub(crate) fn line_range(
    reader: impl BufRead,
    offset: usize,
    limit: usize,
    cancel: &CancellationToken,
) -> io::Result<LineRange> {
    let before = offset.saturating_sub(1);
    let mut lines = Lines { reader, cancel, ahead: usize::MAX, turns: 0 };
    let mut found = LineRange { last: before, ..LineRange::default() };
    let mut line = Vec::new();
    for skipped in 0..before {
        if lines.next(&mut line, None)? == Next::End {
            return Ok(LineRange { last: skipped, total: Some(skipped), ..found });
        }
    }
    lines.ahead = AHEAD_BYTES_MAX;
    let mut read = before;
    while read - before < limit.min(READ_LINES_MAX) {
        let next = lines.next(&mut line, Some((&mut found.beyond, read + 1)))?;
        if next == Next::End {
            break;
        }
        read += 1;
        if !found.add(read, &line, &next) {
            found.beyond.missing = 0;
            found.beyond.look(untorn(&line), read);
            found.beyond.missing = 0;
            break;
        }
        found.last = read;
        if next == Next::TooFar {
            return Ok(found);
        }
    }
    let total = lines.count(read, &mut found.beyond)?.map(|rest| read + rest);
    Ok(LineRange { total, ..found })
}

impl LineRange {
    /// Shows one more line, unless there is no room left for it.
    fn add(&mut self, number: usize, kept: &[u8], next: &Next) -> bool {
        let kept_whole = kept.strip_suffix(b"\r").unwrap_or(kept);
        if !self.text.is_empty() && self.text.len() + kept_whole.len() + 16 > READ_BYTES_MAX {
            return false;
        }
        let (over, is_ended) = match next {
            Next::Line { over, is_ended } => (*over, *is_ended),
            Next::TooFar => (usize::MAX, false),
            Next::End => (0, false),
        };
        if over == 0 && is_ended {
            self.ends.crlf |= kept_whole.len() < kept.len();
            self.ends.lf |= kept_whole.len() == kept.len();
        }
        let _ = write!(self.text, "{number}\t");
        let (start, odd) = (self.text.len(), (self.invalid, self.nuls));
        self.decode(if over > 0 { untorn(kept) } else { kept_whole });
        if is_no_text(self.invalid - odd.0 + self.nuls - odd.1, kept.len()) {
            self.text.truncate(start);
            (self.invalid, self.nuls) = odd;
            self.dark = (self.dark.0 + 1, self.dark.1 + kept.len());
            self.text.push_str("[no text]\n");
            return true;
        }
        self.seen += kept.len();
        if over > 0 {
            self.cut += 1;
            let rest = if over == usize::MAX { "much more".to_owned() } else { format!("{} more", many(over, "byte")) };
            let _ = write!(self.text, "… [line cut: {rest}]");
        }
        self.text.push('\n');
        true
    }

    fn decode(&mut self, line: &[u8]) {
        // Nearly every line is whole, and to see that is much quicker than to go through its characters.
        let is_odd = memchr2(0, b'\r', line).is_some();
        self.ends.cr |= is_odd && memchr(b'\r', line).is_some();
        if let Some(line) = std::str::from_utf8(line).ok().filter(|_| !is_odd) {
            return self.text.push_str(line);
        }
        for chunk in line.utf8_chunks() {
            let nuls = memchr_iter(0, chunk.valid().as_bytes()).count();
            match nuls {
                0 => self.text.push_str(chunk.valid()),
                _ => self.text.push_str(&chunk.valid().replace('\0', "\u{fffd}")),
            }
            self.nuls += nuls;
            if !chunk.invalid().is_empty() {
                self.invalid += chunk.invalid().len();
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}

impl HiddenLines {
    /// The text ends here: a character that is not whole never will be.
    fn end(&mut self, line: usize) {
        self.look(b"\n", line);
    }

    /// Examines the part of a line that was cut off; joins the bytes of a character that the cut split.
    fn look_behind(&mut self, kept: &[u8], cut: &[u8], is_first: bool, line: usize) {
        if is_first {
            self.missing = 0;
            self.look(kept.get(untorn(kept).len()..).unwrap_or_default(), line);
        }
        self.look(cut, line);
    }

    /// Looks at the next bytes, which begin in this line.
    fn look(&mut self, bytes: &[u8], line: usize) {
        let at = |place: usize| Some(line + memchr_iter(b'\n', bytes.get(..place).unwrap_or(bytes)).count());
        if self.nul.is_none() {
            self.nul = memchr(0, bytes).and_then(at);
        }
        if self.invalid.is_some() {
            return;
        }
        // The rest of a character that began before.
        let rest = bytes.iter().take(self.missing).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
        if rest < self.missing.min(bytes.len()) {
            self.invalid = at(rest);
            return;
        }
        self.missing -= rest;
        let Err(err) = std::str::from_utf8(bytes.get(rest..).unwrap_or_default()) else { return };
        let place = rest + err.valid_up_to();
        match err.error_len() {
            Some(_) => self.invalid = at(place),
            None => {
                let whole = bytes.get(place).map_or(0, |first| first.leading_ones() as usize);
                self.missing = whole.saturating_sub(bytes.len() - place);
            }
        }
    }
}

/// Whether so many bytes that are no UTF-8, or NUL, are too many for a text of this length.
pub(crate) fn is_no_text(odd: usize, length: usize) -> bool {
    odd > ODD_MAX + length / 10
}

/// The bytes without a last character that the cut split.
fn untorn(kept: &[u8]) -> &[u8] {
    match std::str::from_utf8(kept) {
        Err(err) if err.error_len().is_none() => kept.get(..err.valid_up_to()).unwrap_or(kept),
        _ => kept,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// A line; so many bytes of it were not kept, and whether a line feed ends it.
    Line {
        over: usize,
        is_ended: bool,
    },
    /// The line is longer than the limit for reading.
    TooFar,
    End,
}

struct Lines<'a, R> {
    reader: R,
    cancel: &'a CancellationToken,
    /// Bytes that may still be looked at.
    ahead: usize,
    turns: u32,
}

impl<R: BufRead> Lines<'_, R> {
    fn check(&self) -> io::Result<()> {
        if self.cancel.is_cancelled() { Err(io::Error::other("stopped before it was done")) } else { Ok(()) }
    }

    /// How many lines are left behind the first `read`, and what is no text in them; `None`: more than are counted.
    fn count(&mut self, read: usize, beyond: &mut HiddenLines) -> io::Result<Option<usize>> {
        let (mut lines, mut is_open) = (0, false);
        loop {
            self.check()?;
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                beyond.end(read + lines + 1);
                return Ok(Some(lines + usize::from(is_open)));
            }
            if self.ahead == 0 {
                return Ok(None);
            }
            let looked = buffer.get(..self.ahead).unwrap_or(buffer);
            beyond.look(looked, read + lines + 1);
            lines += memchr_iter(b'\n', looked).count();
            is_open = looked.last() != Some(&b'\n');
            let taken = looked.len();
            self.ahead -= taken;
            self.reader.consume(taken);
        }
    }

    /// Takes one line, keeping its first bytes, without its line feed. With `beyond`, which gives the line's number, the rest is examined, too.
    fn next(&mut self, line: &mut Vec<u8>, mut beyond: Option<(&mut HiddenLines, usize)>) -> io::Result<Next> {
        line.clear();
        let mut length = 0;
        loop {
            // Asking takes a lock, so not for every line.
            self.turns = self.turns.wrapping_add(1);
            if self.turns.is_multiple_of(1_024) {
                self.check()?;
            }
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                let over = length - line.len();
                if let Some((beyond, number)) = beyond.filter(|_| over > 0) {
                    beyond.end(number);
                }
                return Ok(if length == 0 { Next::End } else { Next::Line { over, is_ended: false } });
            }
            if self.ahead == 0 {
                return Ok(Next::TooFar);
            }
            let looked = buffer.get(..self.ahead).unwrap_or(buffer);
            let end = memchr(b'\n', looked);
            let (part, taken) = match end {
                Some(end) => (looked.get(..end).unwrap_or_default(), end + 1),
                None => (looked, looked.len()),
            };
            let room = LINE_BYTES_MAX - line.len();
            line.extend_from_slice(part.get(..room).unwrap_or(part));
            if let Some((beyond, number)) = &mut beyond
                && part.len() + length > line.len()
            {
                // With its line feed, which ends every character.
                let cut = looked.get(..taken).unwrap_or(looked).get(room..).unwrap_or_default();
                beyond.look_behind(line, cut, length <= line.len(), *number);
            }
            length += part.len();
            self.ahead -= taken.min(self.ahead);
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(Next::Line { over: length - line.len(), is_ended: true });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    fn take(text: impl AsRef<[u8]>, offset: usize, limit: usize) -> LineRange {
        line_range(text.as_ref(), offset, limit, &CancellationToken::new()).unwrap()
    }

    #[test]
    fn ranges_are_numbered_and_counted() {
        let text = "a\nb\nc\n";
        let table = [
            (1, 10, "1\ta\n2\tb\n3\tc\n", 3, Some(3)),
            (2, 1, "2\tb\n", 2, Some(3)),
            (3, 10, "3\tc\n", 3, Some(3)),
            (4, 10, "", 3, Some(3)),
            (9, 10, "", 3, Some(3)),
        ];
        for (offset, limit, want, last, total) in table {
            let found = take(text, offset, limit);
            assert_eq!((found.text.as_str(), found.last, found.total), (want, last, total), "{offset} {limit}");
        }
        assert_eq!(take("a\nb", 1, 10).text, "1\ta\n2\tb\n");
        assert_eq!(take("", 1, 10).total, Some(0));
        assert_eq!(take("\n\n", 1, 10).total, Some(2));
    }

    #[test]
    fn binary_content_beyond_is_known_by_its_line() {
        let beyond = |text: &[u8], limit| {
            let found = line_range(BufReader::with_capacity(3, text), 1, limit, &CancellationToken::new()).unwrap();
            (found.beyond.invalid, found.beyond.nul)
        };
        let table: [(&[u8], _); 8] = [
            (b"a\nb\nc\n", (None, None)),
            ("a\né€😀é€😀\n😀".as_bytes(), (None, None)),
            (b"a\nb\nx\xffc\n\xff", (Some(3), None)),
            (b"a\nb\0\n\0\nx\xe9t\xe9", (Some(4), Some(2))),
            // A character that breaks off where what is looked at does.
            (b"a\nbc\xf0\x9f\x98\nz", (Some(2), None)),
            (b"a\nbc\xf0\x9f\nz", (Some(2), None)),
            (b"a\nb\n\x80", (Some(3), None)),
            // Faults in shown lines are reported with those lines, not here.
            (b"\xff\0\nb\n", (None, None)),
        ];
        for (text, want) in table {
            assert_eq!(beyond(text, 1), want, "{text:?}");
        }
        assert_eq!(beyond(b"a\nb\nx\xffc\n\xff", 9), (None, None));
        // What is cut off of a line, shown or not; a character that the cut goes through is whole.
        let long = |more: &[u8]| [&b"y".repeat(LINE_BYTES_MAX - 1)[..], more, b"\nb\n"].concat();
        for (more, want) in [
            (&b"yyyyy"[..], (None, None)),
            ("😀é😀".as_bytes(), (None, None)),
            (b"yyy\xffy", (Some(1), None)),
            (b"yyy\0y", (None, Some(1))),
            (b"\xf0\x9f\x98y", (Some(1), None)),
            (b"yyyy\xf0\x9f\x98", (Some(1), None)),
        ] {
            let found = beyond(&long(more), 9);
            assert_eq!(found, want, "{more:?}");
            assert_eq!(beyond(&[&b"a\n\n"[..], &long(more)].concat(), 1).0, want.0.map(|_| 3), "{more:?}");
        }
        assert_eq!(beyond(&[&long(b"yyy\xffy")[..], b"\xff\n"].concat(), 2), (Some(1), None));
        // A text that ends within a character.
        assert_eq!(beyond(&[&b"y".repeat(LINE_BYTES_MAX + 3)[..], b"\xf0\x9f"].concat(), 9), (Some(1), None));
        assert_eq!(beyond(b"a\nb\xf0\x9f", 1), (Some(2), None));
        // A line that was looked at and found no room.
        let wide = [b"y".repeat(1_500), b"\n".to_vec()].concat().repeat(READ_BYTES_MAX / 1_500);
        let at = wide.iter().filter(|byte| **byte == b'\n').count() + 1;
        let found = take([wide, b"x\xff".repeat(700), b"\nb\n".to_vec()].concat(), 1, READ_LINES_MAX);
        assert!(found.last < at);
        assert_eq!(found.beyond.invalid, Some(at));
    }

    #[test]
    fn a_window_has_a_most_of_lines_and_bytes() {
        let short = take("x\n".repeat(5_321), 1, usize::MAX);
        assert_eq!((short.last, short.total), (READ_LINES_MAX, Some(5_321)));

        let wide = take(format!("{}\n", "y".repeat(1_500)).repeat(100), 1, 100);
        assert!(wide.text.len() <= READ_BYTES_MAX);
        assert_eq!(wide.total, Some(100));
        assert_eq!(wide.text.lines().count(), wide.last);
        assert_eq!(take(format!("{}\n", "y".repeat(1_500)).repeat(100), wide.last + 1, 1).text.lines().count(), 1);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let found = take(format!("{}\nb\n", "é".repeat(1_500)), 1, 10);
        assert_eq!((found.cut, found.invalid), (1, 0));
        assert!(found.text.contains("é… [line cut: 1000 bytes more]\n2\tb\n"));
        let odd = take(format!("x{}\n", "é".repeat(1_500)), 1, 10);
        assert_eq!(odd.invalid, 0);
    }

    #[test]
    fn the_kind_of_text_comes_along() {
        assert_eq!(take("a\r\nb\r\n", 1, 10).text, "1\ta\n2\tb\n");
        // CR LF, LF alone, CR within a line.
        let table = [
            ("a\r\nb\r\n", (true, false, false)),
            ("a\r\nb", (true, false, false)),
            ("a\nb\n", (false, true, false)),
            ("a\r\nb\n", (true, true, false)),
            ("a\rb", (false, false, true)),
            ("a\rb\r\nc\n", (true, true, true)),
            ("a", (false, false, false)),
        ];
        for (text, (crlf, lf, cr)) in table {
            assert_eq!(take(text, 1, 10).ends, LineEndings { crlf, lf, cr }, "{text:?}");
        }
        let nul = take("a\0b\nc\n", 1, 10);
        assert_eq!((nul.text.as_str(), nul.nuls, nul.invalid), ("1\ta\u{fffd}b\n2\tc\n", 1, 0));
        let dark = take(format!("a\n{}\nc\n", "\0".repeat(40)), 1, 10);
        assert_eq!((dark.text.as_str(), dark.dark, dark.nuls), ("1\ta\n2\t[no text]\n3\tc\n", (1, 40), 0));
        let broken = take(b"caf\xe9 \xff\xfe\n", 1, 10);
        assert_eq!((broken.text.as_str(), broken.invalid), ("1\tcaf\u{fffd} \u{fffd}\u{fffd}\n", 3));
    }

    /// An endless text that counts what is taken from it.
    struct Endless<'a> {
        piece: &'static [u8],
        taken: &'a mut u64,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            for (to, from) in buffer.iter_mut().zip(self.piece.iter().cycle()) {
                *to = *from;
            }
            *self.taken += buffer.len() as u64;
            Ok(buffer.len())
        }
    }

    #[test]
    fn an_endless_text_is_read_for_a_bounded_while() {
        for (piece, last, cut) in [(b"some line\n".as_slice(), READ_LINES_MAX, 0), (b"x".as_slice(), 1, 1)] {
            let mut taken = 0;
            let reader = BufReader::new(Endless { piece, taken: &mut taken });
            let found = line_range(reader, 1, READ_LINES_MAX, &CancellationToken::new()).unwrap();
            assert_eq!((found.last, found.cut, found.total), (last, cut, None));
            assert!(taken <= 2 * AHEAD_BYTES_MAX as u64, "{taken}");
        }
    }

    #[test]
    fn a_deep_offset_can_be_stopped() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let mut taken = 0;
        let reader = BufReader::new(Endless { piece: b"x\n", taken: &mut taken });
        assert!(line_range(reader, usize::MAX, 1, &cancel).is_err());
    }
}
