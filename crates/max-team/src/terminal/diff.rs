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
enum Row<'a> {
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
    let count = |wanted: fn(&Row<'_>) -> bool| rows.iter().filter(|row| wanted(row)).count();
    (count(|row| matches!(row, Row::Added(..))), count(|row| matches!(row, Row::Removed(..))))
}

/// The lines of a diff, wrapped behind their line numbers.
pub(super) fn lines(diff: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let rows = parse(diff);
    let widest = rows.iter().map(|row| row.number().unwrap_or(0)).max().unwrap_or(0);
    let gutter = widest.to_string().len().max(3);
    rows.iter().flat_map(|row| row.lines(gutter, columns, theme)).collect()
}

impl Row<'_> {
    fn number(&self) -> Option<u32> {
        match self {
            Self::Same(number, _) | Self::Added(number, _) | Self::Removed(number, _) => Some(*number),
            Self::Skip | Self::Other(_) => None,
        }
    }

    fn lines(&self, gutter: usize, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let (sign, words, style) = match self {
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

fn parse(diff: &str) -> Vec<Row<'_>> {
    if !diff.lines().any(|line| hunk(line).is_some()) {
        return diff.lines().map(Row::Other).collect();
    }
    let mut rows = Vec::new();
    let (mut old, mut new) = (0_u32, 0_u32);
    let mut inside = false;
    for line in diff.lines() {
        if let Some((from, to)) = hunk(line) {
            if inside {
                rows.push(Row::Skip);
            }
            (old, new, inside) = (from, to, true);
            continue;
        }
        // What stands before the first hunk names the file, which is shown elsewhere.
        if !inside {
            continue;
        }
        match line.split_at_checked(1) {
            Some(("+", words)) => {
                rows.push(Row::Added(new, words));
                new = new.saturating_add(1);
            }
            Some(("-", words)) => {
                rows.push(Row::Removed(old, words));
                old = old.saturating_add(1);
            }
            Some((" ", words)) => {
                rows.push(Row::Same(new, words));
                (old, new) = (old.saturating_add(1), new.saturating_add(1));
            }
            _ => rows.push(Row::Other(line)),
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
    fn what_is_no_diff_is_shown_as_it_is() {
        let shown: Vec<String> =
            lines("rm -rf x\n+ y", 40, Theme { color: true }).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["rm -rf x", "+ y"]);
        assert_eq!(counts("plain"), (0, 0));
    }
}
