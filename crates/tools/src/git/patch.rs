//! The text of a diff as it grows, within bounds.
//!
//! Each file has its share and all of them have theirs, so that one lock file does not hide the rest; what is left
//! out is said where it is missing. Control characters are shown. Nothing here asks git or opens files.

use crate::text::{clip, visible};

/// Bytes of a diff's text.
pub const DIFF_BYTES_MAX: usize = 256 << 10;
/// Bytes of one file's part in it.
const FILE_BYTES_MAX: usize = 64 << 10;
/// Bytes of one line.
const LINE_BYTES_MAX: usize = 4 << 10;

/// A diff that is being read.
#[derive(Debug, Default)]
pub(crate) struct Patch {
    text: String,
    line: Vec<u8>,
    /// Where the part of the present file begins.
    file: usize,
    is_skipping: bool,
    is_full: bool,
    pub(crate) cut: bool,
}

impl Patch {
    /// Takes bytes of a unified diff; `false` once there is no more room.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = (LINE_BYTES_MAX + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
        !self.is_full
    }

    /// Ends a file's part: what comes next begins on a line of its own.
    pub(crate) fn end_file(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line);
        // Lines of content begin with a sign, so this is where a file begins and nothing else.
        if bytes.starts_with(b"diff --git ") {
            self.is_skipping = false;
            self.file = self.text.len();
        }
        if self.is_full || self.is_skipping {
            self.cut = true;
            return;
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        self.cut |= line.len() > LINE_BYTES_MAX;
        let is_long = line.len() > LINE_BYTES_MAX;
        let mut line = clip(&visible(line), LINE_BYTES_MAX);
        if is_long {
            line.push_str(" [the rest of this line is not shown]");
        }
        if self.text.len() + line.len() + 1 > DIFF_BYTES_MAX {
            self.is_full = true;
            self.cut = true;
            self.text.push_str("[… the rest of the diff is cut …]\n");
        } else if self.text.len() - self.file + line.len() + 1 > FILE_BYTES_MAX {
            self.is_skipping = true;
            self.cut = true;
            self.text.push_str("[… the rest of this file's diff is cut …]\n");
        } else {
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    pub(crate) fn text(mut self) -> String {
        self.end_file();
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_share() {
        let long = "+xxxxxxxxx\n".repeat(20_000);
        let mut patch = Patch::default();
        assert!(patch.push(format!("diff --git a/lock b/lock\n{long}").as_bytes()));
        assert!(patch.push(b"diff --git a/b b/b\n+new\x1b"));
        assert!(patch.cut);
        let text = patch.text();
        assert!(text.len() < FILE_BYTES_MAX + 200, "{}", text.len());
        assert!(text.ends_with("[… the rest of this file's diff is cut …]\ndiff --git a/b b/b\n+new\\u{1b}\n"));
    }

    #[test]
    fn the_whole_is_bounded_too() {
        let file = format!("diff --git a/x b/x\n{}", "+xxxxxxxxx\n".repeat(5_000));
        let mut patch = Patch::default();
        let took = (0..100).take_while(|_| patch.push(file.as_bytes())).count();
        assert!(took < 10);
        let text = patch.text();
        assert!(text.len() < DIFF_BYTES_MAX + 100 && text.ends_with("[… the rest of the diff is cut …]\n"));
        let mut patch = Patch::default();
        patch.push(&vec![b'+'; 1 << 20]);
        patch.push(b"\n+next\n");
        assert!(patch.line.capacity() < 1 << 16);
        assert!(patch.text().ends_with("… [the rest of this line is not shown]\n+next\n"));
    }
}
