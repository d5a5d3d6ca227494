//! Unified diffs: line numbers, signs, green and red.
//!
//! It shows what the gate was asked to judge and reads nothing from the disk. Text that is no diff (another kind of
//! preview) is shown as it is. Signs stand beside the colours, so that nothing depends on those.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{self, clean_line};
use super::theme::Theme;

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DiffRow<'a> {
    /// The next file, of a diff of several.
    File(&'a str),
    /// Lines are left out here.
    Skip,
    Same(u32, &'a str),
    Added(u32, &'a str),
    Removed(u32, &'a str),
    /// No part of a diff.
    Other(&'a str),
}

/// How many lines a diff adds and removes.
pub(super) fn counts(diff: &str) -> (usize, usize) {
    let rows = parse(diff);
    let count = |wanted: fn(&DiffRow<'_>) -> bool| rows.iter().filter(|row| wanted(row)).count();
    (count(|row| matches!(row, DiffRow::Added(..))), count(|row| matches!(row, DiffRow::Removed(..))))
}

/// The lines of a diff, wrapped behind their line numbers.
pub(super) fn lines(diff: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let rows = parse(diff);
    let widest = rows.iter().map(|row| row.number().unwrap_or(0)).max().unwrap_or(0);
    let gutter = widest.to_string().len().max(3);
    rows.iter().flat_map(|row| row.lines(gutter, columns, theme)).collect()
}

impl DiffRow<'_> {
    fn number(&self) -> Option<u32> {
        match self {
            Self::Same(number, _) | Self::Added(number, _) | Self::Removed(number, _) => Some(*number),
            Self::File(_) | Self::Skip | Self::Other(_) => None,
        }
    }

    fn lines(&self, gutter: usize, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let (sign, words, style) = match self {
            Self::File(name) => return text::chop(&[Span::styled(clean_line(name), theme.strong())], columns),
            Self::Skip => return vec![Line::from(Span::styled(format!("{:>gutter$}", "⋮"), theme.faint()))],
            Self::Other(words) => return text::chop(&[Span::styled(clean_line(words), theme.faint())], columns),
            Self::Same(_, words) => (" ", words, Style::new()),
            Self::Added(_, words) => ("+", words, theme.good()),
            Self::Removed(_, words) => ("-", words, theme.bad()),
        };
        let number = self.number().map_or_else(String::new, |number| number.to_string());
        let room = columns.saturating_sub(gutter + 3);
        let chopped = text::chop(&[Span::styled(clean_line(words), style)], room);
        chopped
            .into_iter()
            .enumerate()
            .map(|(index, line)| {
                let (number, sign) = if index == 0 { (number.as_str(), sign) } else { ("", " ") };
                let mut spans = vec![
                    Span::styled(format!("{number:>gutter$} "), theme.faint()),
                    Span::styled(format!("{sign} "), style),
                ];
                spans.extend(line.spans);
                Line::from(spans)
            })
            .collect()
    }
}

fn parse(diff: &str) -> Vec<DiffRow<'_>> {
    if !diff.lines().any(|line| hunk(line).is_some()) {
        return diff.lines().map(DiffRow::Other).collect();
    }
    let mut rows = Vec::new();
    let (mut old, mut new) = (0_u32, 0_u32);
    let (mut inside, mut named) = (false, false);
    for line in diff.lines() {
        // No line of a hunk begins so: those have a sign before them.
        if let Some(names) = line.strip_prefix("diff --git ") {
            (inside, named) = (false, true);
            rows.push(DiffRow::File(names.rsplit_once(" b/").map_or(names, |(_, name)| name)));
            continue;
        }
        if let Some((from, to)) = hunk(line) {
            if inside {
                rows.push(DiffRow::Skip);
            }
            (old, new, inside) = (from, to, true);
            continue;
        }
        // What stands before the first hunk names the file again, or says what else became of it.
        if !inside {
            let names = ["index ", "--- ", "+++ "].iter().any(|start| line.starts_with(start));
            rows.extend((named && !names).then_some(DiffRow::Other(line)));
            continue;
        }
        match line.split_at_checked(1) {
            Some(("+", words)) => {
                rows.push(DiffRow::Added(new, words));
                new = new.saturating_add(1);
            }
            Some(("-", words)) => {
                rows.push(DiffRow::Removed(old, words));
                old = old.saturating_add(1);
            }
            Some((" ", words)) => {
                rows.push(DiffRow::Same(new, words));
                (old, new) = (old.saturating_add(1), new.saturating_add(1));
            }
            _ => rows.push(DiffRow::Other(line)),
        }
    }
    rows
}

/// The first lines of a hunk, old and new, if this is the line that begins one.
fn hunk(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let first = |range: &str| range.split(',').next()?.parse().ok();
    Some((first(old)?, first(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/x\n+++ b/x\n@@ -9,3 +9,4 @@\n same\n-old\n+new 中文\n+\u{1b}[2J\n@@ -120 +121 @@\n-last\n\\ No newline at end of file\n… not shown: 3\n";

    #[test]
    fn numbers_signs_and_wrapping() {
        assert_eq!(counts(DIFF), (2, 2));
        let shown: Vec<String> = lines(DIFF, 12, Theme { color: true }).iter().map(ToString::to_string).collect();
        let want = [
            "  9   same",
            " 10 - old",
            " 10 + new 中",
            "      文",
            " 11 + ␛[2J",
            "  ⋮",
            "120 - last",
            "\\ No newline",
            " at end of f",
            "ile",
            "… not shown:",
            " 3",
        ];
        assert_eq!(shown, want);
    }

    #[test]
    fn of_several_files_each_is_named() {
        let several = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n\
                       diff --git a/y z b/y z\nnew file mode 100644\nindex 0..2\n--- /dev/null\n+++ b/y z\n@@ -0,0 +1 @@\n+one\n\
                       diff --git a/p.png b/p.png\nBinary files a/p.png and b/p.png differ\n";
        let shown: Vec<String> = lines(several, 60, Theme { color: true }).iter().map(ToString::to_string).collect();
        let want = [
            "x",
            "  1 - old",
            "  1 + new",
            "y z",
            "new file mode 100644",
            "  1 + one",
            "p.png",
            "Binary files a/p.png and b/p.png differ",
        ];
        assert_eq!((shown.as_slice(), counts(several)), (want.map(str::to_owned).as_slice(), (2, 1)));
    }

    #[test]
    fn text_that_is_no_diff_is_shown_as_it_is() {
        let shown: Vec<String> =
            lines("rm -rf x\n+ y", 40, Theme { color: true }).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["rm -rf x", "+ y"]);
        assert_eq!(counts("plain"), (0, 0));
    }
}
