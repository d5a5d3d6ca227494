//! Text as a terminal shows it: made harmless, measured, cut and wrapped.
//!
//! Everything that a model, a tool or a file says passes [`clean`] before it is shown, so that none of it can drive
//! the terminal. Widths are display columns (CJK and emoji take two) and are counted the way the painter counts
//! them; a grapheme is never split. Nothing here knows about Markdown, colours or the screen.

use std::borrow::Cow;

use max_team_core::text::{escape, has_hidden, judged};
use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

/// What a tab is shown as.
const TAB: &str = "    ";
/// Punctuation that must not begin a line, where East Asian text is broken between any two characters.
const CLOSING: &str = "，。、；：？！）】》」』〉〕’”…—,.;:?!)]}";
/// Punctuation that must not end one.
const OPENING: &str = "（【《「『〈〔‘“([{";

/// Makes text harmless: control characters become visible pictures of themselves, tabs become spaces, carriage
/// returns vanish, and characters that reorder or hide text are written out (`\u{202e}`). Newlines stay.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !has_hidden(text) && !text.contains(['\t', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (c, is_seen) in judged(text) {
        match c {
            '\n' => out.push(c),
            '\t' => out.push_str(TAB),
            '\r' => {}
            '\u{7f}' => out.push('␡'),
            // The pictures of the control characters lie in the same order from U+2400 on.
            c if u32::from(c) < 0x20 => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('�')),
            c if !is_seen => escape(c, &mut out),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Like [`clean`], for what must stay on one line.
pub fn clean_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// The columns that one grapheme takes.
pub(super) fn glyph_width(grapheme: &str) -> usize {
    if grapheme.contains(char::is_control) { 0 } else { usize::from(grapheme.cell_width()) }
}

/// The columns that a text takes on one line.
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(glyph_width).sum()
}

/// The columns of a line.
pub(super) fn line_width(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| width(&span.content)).sum()
}

/// The text, or as much of its beginning as fits with a `…` behind it.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += glyph_width(grapheme);
        if used >= columns {
            break;
        }
        out.push_str(grapheme);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// The text, or as much of its end as fits with a `…` before it.
pub(super) fn cut_front(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let mut from = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += glyph_width(grapheme);
        if used > columns {
            break;
        }
        from = at;
    }
    if columns == 0 { String::new() } else { format!("…{}", text.get(from..).unwrap_or_default()) }
}

/// Breaks styled text into lines of at most so many columns: between words, between East Asian characters, and
/// inside a word only if it is longer than a line. A newline always breaks.
pub(super) fn wrap(spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
    lines(spans, columns, true)
}

/// Like `wrap`, for plain text.
pub fn wrapped(words: &str, columns: usize) -> Vec<String> {
    let row = |line: &Line<'_>| line.spans.iter().map(|span| span.content.as_ref()).collect::<String>();
    wrap(&[Span::raw(words)], columns).iter().map(|line| row(line).trim_end().to_owned()).collect()
}

/// Breaks styled text wherever a line is full: for code, where every space counts.
pub(super) fn chop(spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
    lines(spans, columns, false)
}

struct Glyph<'a> {
    text: &'a str,
    width: usize,
    style: Style,
}

impl Glyph<'_> {
    fn is_space(&self) -> bool {
        self.text == " "
    }
}

fn lines(spans: &[Span<'_>], columns: usize, words: bool) -> Vec<Line<'static>> {
    let columns = columns.max(2);
    let glyphs: Vec<Glyph<'_>> = spans
        .iter()
        .flat_map(|span| {
            let glyph = |text| Glyph { text, width: glyph_width(text), style: span.style };
            span.content.graphemes(true).map(glyph)
        })
        .collect();
    let mut lines = Vec::new();
    let mut rest = glyphs.as_slice();
    while !rest.is_empty() {
        let (end, next) = fit(rest, columns, words);
        lines.push(join(rest.get(..end).unwrap_or_default()));
        rest = rest.get(next..).unwrap_or_default();
    }
    if lines.is_empty() {
        lines.push(Line::default());
    }
    lines
}

/// How many glyphs the next line shows, and where the one after it begins.
fn fit(glyphs: &[Glyph<'_>], columns: usize, words: bool) -> (usize, usize) {
    let mut used = 0;
    let mut chance = None;
    let mut blank = None;
    let mut before: Option<&Glyph<'_>> = None;
    for (index, glyph) in glyphs.iter().enumerate() {
        if glyph.text == "\n" {
            return (index, index + 1);
        }
        if words && before.is_some_and(|before| breaks_between(before, glyph)) {
            chance = Some((index, index));
        }
        if used + glyph.width > columns && index > 0 {
            if words && glyph.is_space() {
                let spaces = glyphs.iter().skip(index).take_while(|glyph| glyph.is_space()).count();
                return (blank.unwrap_or(index), index + spaces);
            }
            return chance.unwrap_or((index, index));
        }
        if glyph.is_space() {
            let start = *blank.get_or_insert(index);
            // Blanks before the first word are an indentation: breaking there would leave an empty line.
            if words && start > 0 {
                chance = Some((start, index + 1));
            }
        } else {
            blank = None;
        }
        used += glyph.width;
        before = Some(glyph);
    }
    (glyphs.len(), glyphs.len())
}

fn breaks_between(before: &Glyph<'_>, after: &Glyph<'_>) -> bool {
    let wide = before.width > 1 || after.width > 1;
    wide && !before.is_space() && !after.is_space() && !OPENING.contains(before.text) && !CLOSING.contains(after.text)
}

fn join(glyphs: &[Glyph<'_>]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for glyph in glyphs {
        match spans.last_mut() {
            Some(span) if span.style == glyph.style => span.content.to_mut().push_str(glyph.text),
            _ => spans.push(Span::styled(glyph.text.to_owned(), glyph.style)),
        }
    }
    Line::from(spans)
}

/// The beginning and the end of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt<'a> {
    /// The first lines.
    pub first: Vec<&'a str>,
    /// How many are left out in between.
    pub left_out: usize,
    /// The last lines.
    pub last: Vec<&'a str>,
}

/// At most so many lines of the beginning and of the end. Where only one line would be left out, it is shown: the note
/// about it would take as much room. Empty lines at the end do not count.
pub fn excerpt(text: &str, first_max: usize, last_max: usize) -> Excerpt<'_> {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(first_max.saturating_add(last_max));
    if left_out <= 1 {
        return Excerpt { first: lines, left_out: 0, last: Vec::new() };
    }
    let (first, rest) = lines.split_at(first_max);
    Excerpt { first: first.to_vec(), left_out, last: rest.get(left_out..).unwrap_or_default().to_vec() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        wrap(&[Span::raw(text)], columns).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_a_model_says_drives_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\u{7}\r\nc\td\u{7f}"), "a␛[2Jb␇\nc    d␡");
        assert_eq!(clean("\u{9b}31m \u{202e}txt \u{e0041}"), "\\u{9b}31m \\u{202e}txt \\u{e0041}");
        assert_eq!(clean("r\u{200b}m \u{feff}"), "r\\u{200b}m \\u{feff}");
        assert_eq!(clean("👩\u{200d}💻 ❤\u{fe0f}"), "👩\u{200d}💻 ❤\u{fe0f}");
        assert!(matches!(clean("plain 中文 👩‍💻\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn wraps_words_and_east_asian_text_by_width() {
        assert_eq!(wrapped("the quick  brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrapped("abcdefghijkl mn", 5), ["abcde", "fghij", "kl mn"]);
        assert_eq!(wrapped("你好，世界和平", 6), ["你好，", "世界和", "平"]);
        assert_eq!(wrapped("你好，世界", 5), ["你", "好，", "世界"]);
        assert_eq!(wrapped("说“你好”吗", 6), ["说“你", "好”吗"]);
        assert_eq!(wrapped("  indented words here", 12), ["  indented", "words here"]);
        assert_eq!(wrapped("a\n\nb", 10), ["a", "", "b"]);
        assert_eq!(wrapped("", 10), [""]);
        assert_eq!(wrapped("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
    }

    #[test]
    fn cuts_at_either_end() {
        assert_eq!(cut("你好世界", 5), "你好…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut_front("/home/me/project", 8), "…project");
        assert_eq!(cut_front("abcd", 0), "");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn lines_fit_and_lose_nothing_but_blanks(text in "([a-z ，\n]|中文|👩‍💻|e\u{301}){0,80}", columns in 2usize..20) {
            let text = clean(&text).into_owned();
            for line in wrapped(&text, columns) {
                prop_assert!(width(&line) <= columns);
            }
            let dense = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(dense(&wrapped(&text, columns).concat()), dense(&text));
            let chopped: String = chop(&[Span::raw(text.clone())], columns).iter().map(ToString::to_string).collect();
            prop_assert_eq!(chopped, text.replace('\n', ""));
        }
    }

    #[test]
    fn an_excerpt_is_the_beginning_and_the_end() {
        let lines: String = (1..=9).map(|number| format!("{number}\n")).collect();
        let cut = |text, first, last| {
            let Excerpt { first, left_out, last } = excerpt(text, first, last);
            (first.join(","), left_out, last.join(","))
        };
        assert_eq!(cut(&lines, 2, 3), ("1,2".to_owned(), 4, "7,8,9".to_owned()));
        assert_eq!(cut(&lines, 0, 5), (String::new(), 4, "5,6,7,8,9".to_owned()));
        assert_eq!(cut("1\n2\n3\n4\n5\n6\n", 2, 3), ("1,2,3,4,5,6".to_owned(), 0, String::new()));
        assert_eq!(cut("1\n\n\n", 2, 3), ("1".to_owned(), 0, String::new()));
        assert_eq!(cut("", 2, 3), (String::new(), 0, String::new()));
    }
}
