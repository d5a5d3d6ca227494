//! Figures in columns, for people. Whoever computes takes `--json`.

use max_team_core::ledger::NANO;

use max_team_terminal::text::{clean_line, width};

/// Columns of one cell, except in the last column.
const CELL_MAX: usize = 32;

/// A table under its heads. Columns whose head ends in `>` are set to the right.
pub(super) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let last = heads.len().saturating_sub(1);
    let fit = |index: usize, cell: &str| {
        let cell = clean_line(cell);
        if index == last { cell } else { clip(&cell, CELL_MAX) }
    };
    let names: Vec<String> = heads.iter().map(|head| head.trim_end_matches('>').to_owned()).collect();
    let body = rows.iter().map(|row| row.iter().enumerate().map(|(index, cell)| fit(index, cell)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(names).chain(body).collect();
    let mut widths = vec![0; heads.len()];
    for line in &lines {
        for (cell, widest) in line.iter().zip(&mut widths) {
            *widest = (*widest).max(width(cell));
        }
    }
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).zip(heads).map(|((cell, widest), head)| {
            let room = " ".repeat(widest.saturating_sub(width(cell)));
            if head.ends_with('>') { format!("{room}{cell}") } else { format!("{cell}{room}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The text, or its beginning.
pub(super) fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Money that is partly estimated.
pub(super) fn estimated(nano: u64) -> String {
    format!("≈ {}", money(nano))
}

/// `$0.0012`; what costs anything is never shown as nothing.
pub(super) fn money(nano: u64) -> String {
    let (whole, parts) = (nano / NANO, nano % NANO / 100_000);
    match (whole, parts) {
        (0, 0) if nano > 0 => "<$0.0001".to_owned(),
        (0, 0) => "$0".to_owned(),
        _ => format!("${whole}.{parts:04}"),
    }
}

/// `950`, `1.2k`, `3.4M`.
pub(super) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Milliseconds between two times; none if the clock went back.
pub(super) fn between(from_ms: i64, to_ms: i64) -> u64 {
    u64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let rows = [
            vec!["中文".to_owned(), "7".to_owned(), "a\nb\u{1b}[2J".to_owned()],
            vec!["x".repeat(40), "1234".into(), String::new()],
        ];
        let shown = table(&["NAME", "N>", "WHY"], &rows);
        let want = format!(
            "NAME{}     N  WHY\n中文{}     7  a b␛[2J\n{}…  1234\n",
            " ".repeat(29),
            " ".repeat(29),
            "x".repeat(32)
        );
        assert_eq!(shown, want);
    }

    #[test]
    fn figures_are_short_and_never_lie() {
        let dollars = [(0, "$0"), (1, "<$0.0001"), (1_500_000, "$0.0015"), (12_345_600_000, "$12.3456")];
        assert!(dollars.iter().all(|(nano, text)| money(*nano) == *text), "{dollars:?}");
        let counts = [(999, "999"), (1_250, "1.2k"), (3_400_000, "3.4M")];
        assert!(counts.iter().all(|(count, text)| tokens(*count) == *text));
    }
}
