//! Tables for people; programs use `--json`.

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
pub(crate) fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_any_content() {
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
}
