//! Markdown in any pieces: what is flushed while it streams is what the whole text gives.

use proptest::prelude::*;
use ratatui::style::{Color, Modifier};
use ratatui::text::Line;

use super::super::theme::Theme;
use super::*;

const THEME: Theme = Theme { color: true };

fn whole(text: &str, columns: usize) -> Vec<Line<'static>> {
    let mut stream = Stream::default();
    let mut pieces = stream.push(text);
    pieces.extend(stream.finish());
    render(&pieces, columns, THEME)
}

/// One string per line, with what is styled marked: *bold*, /italic/, `code`, ~faint~, [link].
fn marked(lines: &[Line<'_>]) -> String {
    let mut out = String::new();
    for line in lines {
        for span in &line.spans {
            let has = |modifier| span.style.add_modifier.contains(modifier);
            let mut text = span.content.to_string();
            if has(Modifier::BOLD) {
                text = format!("*{text}*");
            }
            if has(Modifier::ITALIC) {
                text = format!("/{text}/");
            }
            if span.style.fg == Some(Color::Cyan) {
                text = format!("`{text}`");
            }
            if has(Modifier::DIM) {
                text = format!("~{text}~");
            }
            if span.style.fg == Some(Color::Blue) {
                text = format!("[{text}]");
            }
            out.push_str(&text);
        }
        out.push('\n');
    }
    out
}

const EVERYTHING: &str = "\
# Title with `code`

A paragraph with **bold**, *italic*, ***both***, ~~gone~~, `code` and a [link](https://example.com/a).
A second line of it. <https://bare.example> stays bare.

Setext
------

1. first
1. second, with a continuation that is long enough to be wrapped
   - nested *one*
     - deeper
2. third

   second paragraph of the third
- [x] done
- [ ] open

> quoted **words**
> - and a list
>
> second

```rust title=x
fn main() {
    println!(\"a line of code that is longer than the screen is wide\");
}
```

    indented code

| name | count | note |
|:-----|------:|:----:|
| 中文 | 1 | wide |
| b | 20000 | `x` |

---

[ref]: https://example.com/ref
![picture](a.png)
<div>raw</div>
";

#[test]
fn renders_everything_at_forty_columns() {
    insta::with_settings!({ snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!("markdown_40", marked(&whole(EVERYTHING, 40)));
    });
}

#[test]
fn tables_are_narrowed_then_listed_and_never_cut() {
    let table =
        "| 名称 | description |\n|---|---|\n| 一个很长的中文名称 | a long description in English |\n| b | c |\n";
    insta::with_settings!({ snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!("table_30", marked(&whole(table, 30)));
        insta::assert_snapshot!("table_12", marked(&whole(table, 12)));
    });
}

#[test]
fn without_colour_code_keeps_its_backticks() {
    let mut stream = Stream::default();
    stream.push("use `x` now");
    let lines = render(&stream.finish(), 40, Theme { color: false });
    assert_eq!(lines, [Line::from("use `x` now")]);
}

#[test]
fn a_long_fence_leaves_line_by_line() {
    let mut stream = Stream::default();
    assert_eq!(stream.push("```py\n").len(), 1);
    for line in 0..500 {
        assert_eq!(stream.push(&format!("x = {line}\n")).len(), 1);
        assert!(stream.live().is_empty());
    }
    stream.push("unfin");
    assert_eq!(render(&stream.live(), 80, THEME).len(), 1);
}

#[test]
fn blocks_leave_as_soon_as_they_are_complete() {
    let mut stream = Stream::default();
    assert_eq!(stream.push("para").len(), 0);
    assert_eq!(stream.push("graph\n").len(), 0);
    assert_eq!(stream.push("\n").len(), 1);
    assert_eq!(stream.push("- a\n").len(), 0);
    assert_eq!(stream.push("- b\n").len(), 1);
    assert_eq!(stream.push("# h\n").len(), 2);
}

#[test]
fn a_giant_unfinished_paragraph_shows_only_its_end() {
    let mut stream = Stream::default();
    stream.push(&"word ".repeat(10_000));
    assert!(render(&stream.live(), 80, THEME).len() < 100);
    assert!(render(&stream.finish(), 80, THEME).len() > 600);
}

#[test]
fn an_endless_table_is_cut_under_a_repeated_header() {
    let rows = "| 1 | 2 |\n".repeat(250);
    let lines = whole(&format!("| a | b |\n|---|---|\n{rows}"), 40);
    let headers = lines.iter().filter(|line| line.to_string().starts_with('a')).count();
    assert_eq!((headers, lines.len()), (3, 250 + 3 * 2));
}

/// Words and signs from which Markdown of every kind comes about.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        3 => "[a-z]{1,6}",
        2 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        3 => prop::sample::select(vec![
            " ", "  ", "    ", "# ", "## ", "- ", "* ", "1. ", "2) ", "10. ", "> ", ">", "```", "~~~", "`", "**", "*", "_",
            "|", "|---|", " | ", "---", "===", "\n- ", "\n1. ", "\n   ", "\n> ", "\n```\n", "\n```rs\n", "[x](u)", "[a]: b",
            "<b>", "- [ ] ", "中文", "，", "👩‍💻", "e\u{301}", "\t", "\r\n", "\u{1b}[31m", "\\", "&amp;", "![i](p)", "~~",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(scrap, 0..60).prop_map(|scraps| scraps.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_do_not_change_what_is_shown(
        text in scraps(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        columns in 4usize..60,
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut stream = Stream::default();
        let mut flushed = Vec::new();
        for pair in cuts.windows(2) {
            let chunk = &text[pair[0]..pair[1]];
            flushed.extend(render(&stream.push(chunk), columns, THEME));
            if !is_unripe(&stream.line) {
                let mut shown = flushed.clone();
                shown.extend(render(&stream.live(), columns, THEME));
                prop_assert_eq!(marked(&shown), marked(&whole(&text[..pair[1]], columns)));
            }
        }
        flushed.extend(render(&stream.finish(), columns, THEME));
        prop_assert_eq!(marked(&flushed), marked(&whole(&text, columns)));
    }

    #[test]
    fn every_line_fits_and_no_word_is_lost(text in scraps(), columns in 12usize..60) {
        let lines = whole(&text, columns);
        for line in &lines {
            prop_assert!(text::line_width(line) <= columns, "{line}");
            prop_assert!(!line.to_string().contains(char::is_control));
        }
    }
}
