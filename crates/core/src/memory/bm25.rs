//! Search by words, in English and Chinese: terms, and how well a fact matches a question (BM25).
//!
//! Words end at every character that is no letter. Chinese, Japanese and Korean have no such places, so their terms
//! are pairs of neighbouring characters, which finds words of two characters without a dictionary. Words without a
//! meaning of their own are skipped. The numbers that BM25 takes from a whole collection are constants here: then a
//! fact's rows follow from the fact alone, and the order of the results hardly depends on them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Key;
use crate::limits::{MEMORY_FACTS_MAX, MEMORY_TERM_CHARS_MAX, MEMORY_TERMS_MAX};

/// Terms of a question that are looked for.
pub const QUERY_TERMS_MAX: usize = 24;
/// Terms that an average fact has.
const TERMS_USUAL: f64 = 12.0;
/// BM25's k1: how soon repetition stops to count.
const K1: f64 = 1.2;
/// BM25's b: how much a long fact is penalized.
const B: f64 = 0.5;

/// Words that say nothing about the topic.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "before", "but",
    "by", "can", "could", "did", "do", "does", "don", "for", "from", "get", "had", "has", "have", "he", "her", "his",
    "how", "if", "in", "into", "is", "it", "its", "just", "let", "like", "ll", "me", "my", "no", "not", "of", "on",
    "or", "our", "out", "please", "re", "she", "should", "so", "some", "than", "that", "the", "their", "them", "then",
    "there", "they", "this", "to", "up", "us", "use", "user", "ve", "was", "we", "were", "what", "when", "where",
    "which", "who", "why", "will", "with", "would", "you", "your",
];
/// Chinese function characters. A pair of two of them is no term.
const STOP_CHARACTERS: &str =
    "的了是我你他她它们在有和与或不也都就还很这那个一吗呢吧啊么什怎样请把被让给对要会能可以到从上下来去说用户";

/// The occurrences of a term in a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// How often the fact has it.
    pub count: u32,
    /// How many terms the fact has in all.
    pub of: u32,
}

/// The terms of a fact, with how often each occurs; those of its key count too.
pub fn terms(key: &Key, value: &Value) -> BTreeMap<String, Posting> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut of = 0_u32;
    let mut take = |term: String| {
        if counts.contains_key(&term) || counts.len() < MEMORY_TERMS_MAX {
            *counts.entry(term).or_default() += 1;
            of += 1;
        }
    };
    let own = key.as_str().split_once('.').map_or("", |(_, own)| own);
    split(own, &mut take);
    each_text(value, &mut |text| split(text, &mut take));
    counts.into_iter().map(|(term, count)| (term, Posting { count, of })).collect()
}

/// The terms of a question, each once, in the order they occur.
pub fn query_terms(text: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    split(text, &mut |term| {
        if terms.len() < QUERY_TERMS_MAX && !terms.contains(&term) {
            terms.push(term);
        }
    });
    terms
}

/// What one term adds to a fact's score; `found`: in how many facts it is.
pub fn score(posting: Posting, found: usize) -> f64 {
    let (all, found) = (MEMORY_FACTS_MAX as f64, found as f64);
    let rare = (1.0 + (all - found + 0.5).max(0.5) / (found + 0.5)).ln();
    let (count, of) = (f64::from(posting.count), f64::from(posting.of));
    rare * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * of / TERMS_USUAL))
}

fn each_text(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => take(&value.to_string()),
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, take)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            take(name);
            each_text(value, take);
        }),
    }
}

/// Passes every term of a text to `take`, in order.
pub(super) fn split(text: &str, take: &mut impl FnMut(String)) {
    let mut word = String::new();
    let mut run: Vec<char> = Vec::new();
    for letter in text.chars().map(narrow).flat_map(char::to_lowercase).chain([' ']) {
        let is_pictured = is_pictured(letter);
        if !is_pictured {
            pairs(&run, take);
            run.clear();
        }
        if is_pictured || !letter.is_alphanumeric() {
            if !word.is_empty() {
                stem(std::mem::take(&mut word)).into_iter().for_each(&mut *take);
            }
        } else if word.chars().count() < MEMORY_TERM_CHARS_MAX {
            word.push(letter);
        }
        if is_pictured {
            run.push(letter);
        }
    }
}

/// Pairs of neighbours; a character that stands alone is a term by itself.
fn pairs(run: &[char], take: &mut impl FnMut(String)) {
    let is_empty = |letter: &char| STOP_CHARACTERS.contains(*letter);
    match run {
        [alone] if !is_empty(alone) => take(alone.to_string()),
        run => run.windows(2).filter(|pair| !pair.iter().all(is_empty)).for_each(|pair| take(pair.iter().collect())),
    }
}

/// A word without its plural ending; `None` for a word without a meaning of its own.
fn stem(word: String) -> Option<String> {
    if STOP_WORDS.binary_search(&word.as_str()).is_ok() {
        return None;
    }
    let is_long = word.len() > 3;
    match word.strip_suffix("ies") {
        Some(stem) if stem.len() > 2 => Some(format!("{stem}y")),
        _ => match word.strip_suffix('s') {
            Some(stem) if is_long && !stem.ends_with(['s', 'u', 'i']) => Some(stem.to_owned()),
            _ => Some(word),
        },
    }
}

/// The normal form of a full-width character.
fn narrow(letter: char) -> char {
    match u32::from(letter) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(letter),
        _ => letter,
    }
}

/// Whether a character belongs to a script without spaces between words.
pub(super) fn is_pictured(letter: char) -> bool {
    matches!(u32::from(letter),
        0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn words_and_pairs() {
        for (text, want) in [
            ("The user likes green teas", &["like", "green", "tea"] as &[&str]),
            ("我住北京通州", &["我住", "住北", "北京", "京通", "通州"]),
            ("我的", &[]),
            ("茶", &["茶"]),
            ("用Rust写代码 v1.95", &["rust", "写代", "代码", "v1", "95"]),
            ("ＡＢＣ，cities class", &["abc", "city", "class"]),
            ("花粉过敏！花粉", &["花粉", "粉过", "过敏"]),
        ] {
            assert_eq!(query_terms(text), want, "{text}");
        }
    }

    #[test]
    fn a_fact_is_found_by_its_key_and_its_words() {
        let found = terms(&"user_profile.home_city".parse().unwrap(), &json!(["北京", { "zip": 101 }, "北京"]));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["101", "city", "home", "zip", "北京"]);
        assert_eq!(found["北京"], Posting { count: 2, of: 6 });
    }

    #[test]
    fn rare_words_and_short_facts_come_first() {
        let one = Posting { count: 1, of: 5 };
        assert!(score(one, 1) > score(one, 100));
        assert!(score(Posting { count: 2, of: 5 }, 9) > score(one, 9));
        assert!(score(one, 9) > score(Posting { count: 1, of: 100 }, 9));
        assert!(score(one, 2 * MEMORY_FACTS_MAX) > 0.0);
    }

    proptest! {
        #[test]
        fn any_text_has_bounded_terms(text in "\\PC{0,200}") {
            let key = "notes.x".parse().unwrap();
            let found = terms(&key, &json!(text));
            prop_assert!(found.len() <= MEMORY_TERMS_MAX);
            prop_assert!(found.keys().all(|term| !term.is_empty() && term.chars().count() <= MEMORY_TERM_CHARS_MAX + 2));
            // What is asked in the same words is found by each of them.
            prop_assert!(query_terms(&text).iter().all(|term| found.contains_key(term)));
        }
    }
}
