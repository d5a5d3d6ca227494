//! Keeps the beginning and the end of an output that may be endless.
//!
//! Memory is bounded, and the bytes that are dropped in between are counted. Nothing here reads anything.

use std::collections::VecDeque;

/// The head and the tail of a stream of bytes.
#[derive(Debug)]
pub(crate) struct OutputBuffer {
    max: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

impl OutputBuffer {
    /// Keeps at most `max` bytes: a quarter of the beginning, the rest of the end, where results are told.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, head: Vec::new(), tail: VecDeque::new(), cut: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = (self.max / 4).saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let most = self.max - self.max / 4;
        let skipped = rest.len().saturating_sub(most);
        let (over, last) = rest.split_at(skipped);
        let out = (self.tail.len() + last.len()).saturating_sub(most);
        self.tail.drain(..out);
        self.tail.extend(last);
        self.cut += (over.len() + out) as u64;
    }

    /// As text; bytes that are no text are replaced. Where something was cut, the text says how much.
    pub(crate) fn text(mut self) -> String {
        if self.cut == 0 {
            self.head.extend(self.tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let tail = Vec::from(self.tail);
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        format!("{head}\n[… {} bytes cut …]\n{tail}", self.cut)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(max: usize, pieces: &[&[u8]]) -> String {
        let mut kept = OutputBuffer::new(max);
        pieces.iter().for_each(|piece| kept.push(piece));
        kept.text()
    }

    #[test]
    fn the_middle_falls_out_and_is_counted() {
        let table: [(&[&[u8]], &str); 5] = [
            (&[], ""),
            (&[b"12345678"], "12345678"),
            (&[b"1", b"2345", b"678"], "12345678"),
            (&[b"123456789"], "12\n[… 1 bytes cut …]\n456789"),
            (&[b"12345678", b"9abcdefghijk"], "12\n[… 12 bytes cut …]\nfghijk"),
        ];
        for (pieces, want) in table {
            assert_eq!(kept(8, pieces), want);
        }
        assert_eq!(kept(8, &[b"caf\xe9"]), "caf\u{fffd}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_is_lost_uncounted(pieces in prop::collection::vec("[a-z]{0,9}", 0..12), max in 4_usize..20) {
            let mut kept = OutputBuffer::new(max);
            pieces.iter().for_each(|piece| kept.push(piece.as_bytes()));
            let whole = pieces.concat();
            prop_assert!(kept.head.len() + kept.tail.len() <= max);
            prop_assert_eq!(kept.cut + (kept.head.len() + kept.tail.len()) as u64, whole.len() as u64);
            prop_assert!(whole.as_bytes().starts_with(&kept.head));
            prop_assert!(whole.as_bytes().ends_with(kept.tail.make_contiguous()));
        }
    }
}
