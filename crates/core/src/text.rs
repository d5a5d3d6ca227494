//! Text from outside inside ours: quoted, and without characters that hide or reorder it.
//!
//! One table ([`is_hidden`]) says which characters a person cannot see or that change the direction of what stands around
//! them (CVE-2021-42574). A model gets a text without them ([`stripped`]), a screen shows them written out ([`visible`]),
//! and checkers name their lines ([`hidden_lines`]). Joiners and variation selectors inside an emoji stay everywhere, and so
//! do joiners between letters of scripts that are spelled with them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::limits::HIDDEN_LINES_MAX;

/// Letters of a quotation.
const QUOTE_MAX: usize = 80;
/// Joins two emoji into one, or two letters of a joining script.
const JOINER: char = '\u{200d}';
/// Keeps two letters of a joining script apart.
const NON_JOINER: char = '\u{200c}';
/// Ask for an emoji's colours, or for its plain form.
const SELECTORS: [char; 2] = ['\u{fe0e}', '\u{fe0f}'];

/// A text from outside, fit for a message: one line, no hidden characters, limited length.
pub fn quote(text: &str) -> String {
    let mut quoted = String::new();
    for letter in text.chars().take(QUOTE_MAX) {
        if letter.is_control() || is_hidden(letter) {
            quoted.extend(letter.escape_default());
        } else {
            quoted.push(letter);
        }
    }
    if text.chars().nth(QUOTE_MAX).is_some() {
        quoted.push('…');
    }
    quoted
}

/// The text with all characters escaped that would act on a terminal, reverse text or be invisible, so that a person
/// who decides sees everything. Tabs and line ends stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (letter, is_seen) in judged(text) {
        match letter {
            '\r' => shown.push('␍'),
            _ if is_seen => shown.push(letter),
            _ => escape(letter, &mut shown),
        }
    }
    shown
}

/// The same for one character: `\u{202e}`.
pub fn escape(letter: char, into: &mut String) {
    into.push_str(&format!("\\u{{{:x}}}", u32::from(letter)));
}

/// The text as a model gets it: without control characters and without what hides or reorders.
pub fn stripped(text: &str) -> Cow<'_, str> {
    if !has_hidden(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(judged(text).filter(|(_, is_seen)| *is_seen).map(|(letter, _)| letter).collect())
}

/// The same, and for each of its bytes the place in the text that it came from.
pub fn stripped_with_places(text: &str) -> (String, Vec<usize>) {
    let (mut plain, mut places, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    for (letter, is_seen) in judged(text) {
        if is_seen {
            plain.push(letter);
            places.extend(at..at + letter.len_utf8());
        }
        at += letter.len_utf8();
    }
    (plain, places)
}

/// Whether a model or a person would not see all of a text as it is.
pub fn has_hidden(text: &str) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
    if text.as_bytes().iter().all(is_plain) {
        return false;
    }
    judged(text).any(|(_, is_seen)| !is_seen)
}

/// The lines of a text that have hidden characters, from 1, and those characters; at most [`HIDDEN_LINES_MAX`] lines.
pub fn hidden_lines(text: &str) -> BTreeMap<usize, Vec<char>> {
    let mut found: BTreeMap<usize, Vec<char>> = BTreeMap::new();
    // A byte order mark in front of a file hides nothing.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !has_hidden(text) {
        return found;
    }
    let mut line = 1;
    for (letter, is_seen) in judged(text) {
        if !is_seen {
            let letters = found.entry(line).or_default();
            if !letters.contains(&letter) {
                letters.push(letter);
            }
        }
        line += usize::from(letter == '\n');
        if found.len() >= HIDDEN_LINES_MAX {
            break;
        }
    }
    found
}

/// Such characters as people name them: `U+202E, U+200B`.
pub fn code_points(letters: &[char]) -> String {
    letters.iter().map(|letter| format!("U+{:04X}", u32::from(*letter))).collect::<Vec<_>>().join(", ")
}

/// Every character of a text, and whether it is seen where it stands. A line's end and a tab are; a carriage return is.
pub fn judged(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut letters = text.chars().peekable();
    let mut before: [Option<char>; 2] = [None, None];
    std::iter::from_fn(move || {
        let letter = letters.next()?;
        let next = letters.peek().copied();
        let [earlier, last] = before;
        // A text that is shown as it comes may be cut inside an emoji.
        let is_pictured = |letter: Option<char>| letter.is_none_or(is_picture);
        let is_seen = match letter {
            '\n' | '\t' | '\r' => true,
            JOINER | NON_JOINER if last.is_some_and(is_joining) && next.is_none_or(is_joining) => true,
            JOINER => {
                let follows =
                    is_pictured(last) || (last.is_some_and(|last| SELECTORS.contains(&last)) && is_pictured(earlier));
                follows && is_pictured(next)
            }
            letter if SELECTORS.contains(&letter) => {
                let is_key = last.is_some_and(|last| last.is_ascii_digit() || matches!(last, '#' | '*'));
                is_pictured(last) || (is_key && next.is_none_or(|next| next == '\u{20e3}'))
            }
            letter => !letter.is_control() && !is_hidden(letter),
        };
        before = [last, Some(letter)];
        Some((letter, is_seen))
    })
}

/// The table: characters that change the direction of text, or have no width.
pub fn is_hidden(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Letters and signs of scripts in which a joiner changes how a word is spelled: Arabic, Syriac, N'Ko, Mongolian, the
/// scripts of India and its neighbours.
fn is_joining(letter: char) -> bool {
    matches!(letter,
        '\u{620}'..='\u{65f}' | '\u{66e}'..='\u{6d3}' | '\u{6d5}'..='\u{6dc}' | '\u{6fa}'..='\u{6ff}'
        | '\u{710}'..='\u{77f}' | '\u{7ca}'..='\u{7fa}' | '\u{840}'..='\u{85b}' | '\u{860}'..='\u{88e}'
        | '\u{8a0}'..='\u{8c9}' | '\u{900}'..='\u{dff}' | '\u{f40}'..='\u{fbc}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17d3}' | '\u{1820}'..='\u{18aa}' | '\u{1a20}'..='\u{1aad}'
        | '\u{1b00}'..='\u{1b4c}' | '\u{a840}'..='\u{a873}' | '\u{a8e0}'..='\u{a8ff}' | '\u{a980}'..='\u{a9c0}'
        | '\u{aa60}'..='\u{aa7f}' | '\u{fb50}'..='\u{fbb1}' | '\u{fbd3}'..='\u{fd3d}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10d00}'..='\u{10d27}' | '\u{11000}'..='\u{1174f}' | '\u{1e900}'..='\u{1e94b}')
}

/// Characters that an emoji is made of: those that joiners and selectors belong to.
fn is_picture(letter: char) -> bool {
    matches!(letter,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether a letter is a Chinese character.
pub fn is_chinese(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{323af}')
}

/// One page of a long text.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<'t> {
    /// Its number, from 1 on.
    pub number: usize,
    /// The number of pages.
    pub of: usize,
    pub text: &'t str,
}

impl<'t> Page<'t> {
    /// The page with this number, or the nearest one there is.
    pub fn of(text: &'t str, number: usize, chars: usize) -> Self {
        let chars = chars.max(1);
        let of = text.chars().count().div_ceil(chars).max(1);
        let number = number.clamp(1, of);
        let at = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
        let shown = text.get(at((number - 1) * chars)..at(number * chars)).unwrap_or_default();
        Self { number, of, text: shown }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(visible("a\tb\r\u{1b}[2J\u{202e}é\n"), "a\tb␍\\u{1b}[2J\\u{202e}é\n");
        assert_eq!(visible("r\u{200b}m \u{feff}x\u{e0041}中"), "r\\u{200b}m \\u{feff}x\\u{e0041}中");
        assert_eq!(quote("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn every_kind_is_stripped_and_named() {
        for letter in "\u{ad}\u{61c}\u{115f}\u{180e}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{202a}\u{202e}\u{2060}\
                       \u{2064}\u{2066}\u{2069}\u{3164}\u{fe00}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{e0001}\u{e007f}\u{e0100}\u{7}\
                       \u{1b}\u{7f}\u{9b}"
            .chars()
        {
            let text = format!("one\ntwo {letter}x");
            assert_eq!(stripped(&text), "one\ntwo x", "{letter:?}");
            assert_eq!(hidden_lines(&text), BTreeMap::from([(2, vec![letter])]), "{letter:?}");
            assert!(visible(&text).contains("\\u{"), "{letter:?}");
        }
        assert_eq!(code_points(&['\u{202e}', '\u{e0041}']), "U+202E, U+E0041");
    }

    #[test]
    fn emoji_stay_whole_and_carry_nothing() {
        for text in ["❤\u{fe0f}", "👩\u{200d}💻", "🏳\u{fe0f}\u{200d}🌈", "1\u{fe0f}\u{20e3}", "👍🏽", "中文，日本語", "é"]
        {
            assert_eq!((stripped(text), visible(text).as_str(), has_hidden(text)), (text.into(), text, false));
        }
        // More than one selector, or one where no emoji is, says something else.
        assert_eq!(stripped("❤\u{fe0f}\u{fe0f}\u{fe01}a\u{fe0f}b\u{200d}c"), "❤\u{fe0f}abc");
    }

    #[test]
    fn joiners_stay_where_a_script_is_spelled_with_them() {
        // Persian, Hindi, Sinhala, Malayalam, Bengali.
        for text in ["می\u{200c}خواهم", "क्\u{200d}ष क्\u{200c}ष", "ශ්\u{200d}රී", "ന്\u{200d}റ", "র\u{200d}্যাব"]
        {
            assert_eq!((stripped(text), visible(text).as_str(), has_hidden(text)), (text.into(), text, false));
        }
        assert_eq!(stripped("م\u{200c}a a\u{200c}م م\u{200c}\u{200c}م r\u{200c}m"), "مa aم مم rm");
    }

    proptest! {
        #[test]
        fn a_stripped_text_hides_nothing(text in "[a-z\n\u{200b}-\u{2030}❤\u{fe0f}👩中\u{e0041}\u{7}]{0,40}") {
            let (plain, places) = stripped_with_places(&text);
            prop_assert_eq!(stripped(&text).into_owned(), plain.clone());
            prop_assert!(places.len() == plain.len());
            for (at, place) in places.iter().enumerate() {
                prop_assert_eq!(plain.as_bytes()[at], text.as_bytes()[*place]);
            }
        }
    }

    #[test]
    fn a_text_is_shown_page_by_page() {
        let page = |number, of, text| Page { number, of, text };
        for (text, number, want) in [
            ("", 1, page(1, 1, "")),
            ("ab", 1, page(1, 1, "ab")),
            ("字b c", 1, page(1, 2, "字b ")),
            ("字b c", 2, page(2, 2, "c")),
            ("字b c", 9, page(2, 2, "c")),
            ("字b c", 0, page(1, 2, "字b ")),
        ] {
            assert_eq!(Page::of(text, number, 3), want, "{text} {number}");
        }
    }
}
