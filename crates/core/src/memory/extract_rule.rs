//! When a conversation is worth searching for facts: a cheap rule, not a model.
//!
//! It errs on the side of searching: a search that finds nothing costs one short call, and what the rule misses is
//! searched with everything else after a few exchanges.

use serde::{Deserialize, Serialize};

/// A message of the user and the answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Exchange {
    /// The user's words.
    pub said: String,
    pub answered: String,
}

/// Phrases with which users speak of themselves or ask to remember something. Each must begin at the beginning of a
/// word.
const ENGLISH: [&str; 36] = [
    "remember",
    "don't forget",
    "do not forget",
    "note that",
    "for the record",
    "my name",
    "call me",
    "i am ",
    "i'm ",
    "i live",
    "i work",
    "i like",
    "i love",
    "i hate",
    "i prefer",
    "i want you to",
    "i always",
    "i never",
    "i usually",
    "i use ",
    "i speak",
    "i have ",
    "i've ",
    "i don't",
    "i do not",
    "i moved",
    "my favorite",
    "my favourite",
    "my wife",
    "my husband",
    "my email",
    "my birthday",
    "from now on",
    "in future",
    "always ",
    "never ",
];
const CHINESE: [&str; 34] = [
    "记住",
    "记得",
    "别忘",
    "记一下",
    "记下",
    "我叫",
    "我是",
    "我住",
    "我在",
    "我喜欢",
    "我爱",
    "我讨厌",
    "我不喜欢",
    "我不吃",
    "我不喝",
    "我偏好",
    "我更喜欢",
    "我习惯",
    "我通常",
    "我总是",
    "我从不",
    "我用",
    "我有",
    "我没有",
    "我对",
    "我的",
    "叫我",
    "以后",
    "从现在起",
    "今后",
    "请总是",
    "过敏",
    "生日",
    "我家",
];

/// Whether a text says something that may hold beyond the moment.
pub fn says_something_lasting(text: &str) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    let begins = |at: usize| {
        text.get(..at).and_then(|before| before.chars().next_back()).is_none_or(|letter| !letter.is_alphanumeric())
    };
    ENGLISH.iter().any(|phrase| text.match_indices(phrase).any(|(at, _)| begins(at)))
        || CHINESE.iter().any(|phrase| text.contains(phrase))
}

/// Whether the exchanges since the last search should be searched now: one says something lasting, or there are enough
/// of them.
pub fn is_due(exchanges: &[Exchange], every: u32) -> bool {
    let count = u32::try_from(exchanges.len()).unwrap_or(u32::MAX);
    count >= every.max(1) || exchanges.iter().any(|exchange| says_something_lasting(&exchange.said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_about_oneself_are_lasting() {
        for text in [
            "I live in Berlin",
            "Remember: the tests are slow",
            "my name is Ada",
            "From now on answer in German",
            "I’m allergic to nuts",
            "hello. I prefer tabs",
            "我住北京通州",
            "记住我喜欢茶",
            "最近花粉过敏厉害",
            "以后用中文回答",
        ] {
            assert!(says_something_lasting(text), "{text}");
        }
        for text in
            ["what is the weather today?", "fix the bug in a.rs", "semi am i", "今天天气怎么样", "解释一下这个函数", ""]
        {
            assert!(!says_something_lasting(text), "{text}");
        }
    }

    #[test]
    fn at_the_latest_after_a_few() {
        let dull = Exchange { said: "ok?".into(), answered: "ok".into() };
        let kept = Exchange { said: "我叫小王".into(), answered: "你好".into() };
        for (exchanges, every, want) in [
            (vec![], 3, false),
            (vec![dull.clone()], 3, false),
            (vec![dull.clone(), kept], 3, true),
            (vec![dull.clone(), dull.clone(), dull], 3, true),
        ] {
            assert_eq!(is_due(&exchanges, every), want, "{exchanges:?}");
        }
    }
}
