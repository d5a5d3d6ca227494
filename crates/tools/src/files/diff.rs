//! What a change looks like: a unified diff for people who must say yes or no.
//!
//! Bounded, with what is left out said; control characters are shown, so that text cannot hide from the reader.
//! Nothing here touches files.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::text::{clip, many, visible};

/// Lines around a change.
const CONTEXT: usize = 3;
/// Lines of a preview.
const LINES_MAX: usize = 5_000;
/// Bytes of a preview.
const BYTES_MAX: usize = 512 << 10;
/// Bytes of one line of a preview.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How long to look for the smallest diff; after that a larger one does.
const SEARCH: Duration = Duration::from_millis(300);

/// How `new` differs from `old` (`None`: the file does not exist yet), as a unified diff under the file's name.
pub fn unified(path: &str, old: Option<&str>, new: &str) -> String {
    let diff = lines(old.unwrap_or_default(), new);
    let path = visible(path);
    let from = if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    let mut preview = format!("--- {from}\n+++ b/{path}\n");
    let (mut shown, mut hidden) = (0, (0, 0));
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        let mut header = Some(hunk.header().to_string());
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            if shown >= LINES_MAX || preview.len() >= BYTES_MAX {
                hidden.0 += usize::from(sign == '+');
                hidden.1 += usize::from(sign == '-');
                continue;
            }
            if let Some(header) = header.take() {
                preview.push_str(&format!("{header}\n"));
            }
            preview.push_str(&format!("{sign}{}\n", shown_line(change.value())));
            if change.missing_newline() {
                preview.push_str("\\ No newline at end of file\n");
            }
            shown += 1;
        }
    }
    if hidden != (0, 0) {
        let (added, removed) = (many(hidden.0, "added line"), many(hidden.1, "removed line"));
        preview.push_str(&format!("… not shown: {added} and {removed}\n"));
    }
    preview
}

fn shown_line(line: &str) -> String {
    let line = visible(line.trim_end_matches('\n'));
    match line.len().saturating_sub(LINE_BYTES_MAX) {
        0 => line,
        rest => format!("{} [{} more]", clip(&line, LINE_BYTES_MAX), many(rest, "byte")),
    }
}

/// How many lines `new` adds to and removes from `old`.
pub fn counts(old: &str, new: &str) -> (usize, usize) {
    let mut counts = (0, 0);
    for change in lines(old, new).iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => counts.0 += 1,
            ChangeTag::Delete => counts.1 += 1,
            ChangeTag::Equal => {}
        }
    }
    counts
}

fn lines<'a>(old: &'a str, new: &'a str) -> TextDiff<'a, 'a, 'a, str> {
    TextDiff::configure().timeout(SEARCH).diff_lines(old, new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_read_like_git() {
        assert_eq!(
            unified("a.txt", Some("x\ny\n"), "x\nz"),
            "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n\\ No newline at end of file\n"
        );
        assert_eq!(unified("a.txt", None, "x\n"), "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(counts("x\ny\n", "x\nz\nw\n"), (2, 1));
    }

    #[test]
    fn nothing_hides_in_a_preview() {
        let preview = unified("a", Some(""), "rm\u{1b}[8m -rf\r\n");
        assert!(preview.contains("+rm\\u{1b}[8m -rf␍\n"), "{preview}");
    }

    #[test]
    fn long_previews_say_what_is_missing() {
        let new: String = (0..9_000).map(|n| format!("line {n}\n")).collect();
        let preview = unified("a", None, &new);
        assert!(preview.len() < BYTES_MAX + 2 * LINE_BYTES_MAX);
        assert!(preview.ends_with("… not shown: 4000 added lines and 0 removed lines\n"), "{preview}");

        let wide = unified("a", None, &"é".repeat(1 << 20));
        assert!(wide.len() < 2 * LINE_BYTES_MAX);
    }
}
