//! Text for results: cut to fit, made visible, counted.
//!
//! Text of files and models may end up on a terminal and in front of a person who must decide, so control characters
//! are shown, never passed on. Nothing here reads or writes files.

/// The start of a text, at most `max` bytes, cut between characters; the cut is marked with `…`.
pub(crate) fn clip(text: &str, max: usize) -> String {
    match text.get(..text.floor_char_boundary(max)) {
        Some(head) if head.len() < text.len() => format!("{head}…"),
        _ => text.to_owned(),
    }
}

/// The beginning and the end of a text, together at most `max` bytes, cut between lines where there are some.
pub(crate) fn ends(text: &str, max: usize) -> (&str, &str) {
    /// Bytes of a cut line that are given up for a whole one.
    const SNAP: usize = 2_000;
    let half = max / 2;
    let (to, from) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len().saturating_sub(half)));
    let (head, tail) = (text.get(..to).unwrap_or_default(), text.get(from..).unwrap_or_default());
    let head = match head.rfind('\n') {
        Some(at) if head.len() - at <= SNAP => head.get(..=at).unwrap_or(head),
        _ => head,
    };
    let tail = match tail.find('\n') {
        Some(at) if at <= SNAP && at + 1 < tail.len() => tail.get(at + 1..).unwrap_or(tail),
        _ => tail,
    };
    (head, tail)
}

/// The text on one line, with everything written out that would act on a terminal, turn text around or hide.
pub(crate) fn visible(text: &str) -> String {
    max_team_core::text::visible(text).replace('\n', "\\u{a}")
}

/// A number of bytes as people read it.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = "bytes";
    for next in units {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1_024;
        unit = next;
    }
    if unit == "bytes" { many(bytes, "byte") } else { format!("{}.{} {unit}", tenths / 10, tenths % 10) }
}

/// A number with its noun: `1 line`, `2 lines`.
pub(crate) fn many(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let plural = match (count, noun) {
        (1, _) => "",
        (_, noun) if noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        let table = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1_023, "1023 bytes"),
            (1_024, "1.0 KiB"),
            (1_536, "1.5 KiB"),
            (2 << 30, "2.0 GiB"),
            (u64::MAX, "15.9 EiB"),
        ];
        for (bytes, want) in table {
            assert_eq!(size(bytes), want);
        }
    }

    #[test]
    fn clipping_never_splits_a_character() {
        assert_eq!(clip("añb", 2), "a…");
        assert_eq!(clip("añb", 3), "añ…");
        assert_eq!(clip("añb", 4), "añb");
    }

    #[test]
    fn ends_are_whole_lines_where_they_can_be() {
        assert_eq!(ends("one\ntwo\nthree\nfour\n", 12), ("one\n", "four\n"));
        assert_eq!(ends("ééééé", 6), ("é", "é"));
        let long = "x".repeat(10_000);
        assert_eq!(ends(&long, 100), (&long[..50], &long[..50]));
    }

    #[test]
    fn control_and_turning_characters_show() {
        assert_eq!(visible("a\tb\r\u{1b}[2J\u{202e}é"), "a\tb␍\\u{1b}[2J\\u{202e}é");
    }
}
