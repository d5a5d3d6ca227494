//! Keys and passwords are not remembered.
//!
//! By their shape, not by a list of those we know: a memory is read by models and written into prompts, and whatever
//! looks like a secret has no place there. What does not look like one cannot be told from a word.

use std::borrow::Cow;

use serde_json::Value;

/// What stands in its place.
const REDACTED: &str = "[redacted]";
/// How keys of well-known issuers begin.
const PREFIXES: [&str; 17] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
    "eyJ",
];
/// Letters after such a beginning that make it a key.
const REST_MIN: usize = 12;
/// Words before a secret.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "api_key",
    "apikey",
    "api key",
    "secret",
    "access_token",
    "private_key",
    "密码",
    "口令",
    "密钥",
];
/// What may stand between such a word and the secret.
const LINKS: [&str; 8] = [" is ", ":", "=", "：", "是", "为", " ", "\""];
/// How a private key in a file begins.
const BLOCK: &str = "-----BEGIN ";

/// The text without what looks like a secret.
pub fn redact(text: &str) -> Cow<'_, str> {
    if let Some(at) = text.find(BLOCK).filter(|at| text.get(*at..).is_some_and(|rest| rest.contains("PRIVATE KEY"))) {
        // It ends where nobody can tell.
        let before = text.get(..at).unwrap_or_default();
        return Cow::Owned(format!("{}{REDACTED}", redact(before)));
    }
    let mut doomed = words(text);
    doomed.retain(|(from, to)| text.get(*from..*to).is_some_and(is_key));
    doomed.extend(named(text));
    if doomed.is_empty() {
        return Cow::Borrowed(text);
    }
    doomed.sort_unstable();
    let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
    for (start, end) in doomed {
        if start >= from {
            kept.push_str(text.get(from..start).unwrap_or_default());
            kept.push_str(REDACTED);
            from = end;
        }
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(kept)
}

/// The same for every text in a value.
pub fn redact_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(text).into_owned()),
        Value::Array(items) => Value::Array(items.iter().map(redact_value).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), redact_value(value))).collect())
        }
        other => other.clone(),
    }
}

fn is_key(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.strip_prefix(prefix).is_some_and(|rest| rest.len() >= REST_MIN))
}

/// Runs of letters that keys are made of: where each begins and ends.
fn words(text: &str) -> Vec<(usize, usize)> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | '+' | '=');
    let (mut words, mut from) = (Vec::new(), None);
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        match (is_part(letter), from) {
            (true, None) => from = Some(at),
            (false, Some(start)) => {
                words.push((start, at));
                from = None;
            }
            _ => {}
        }
    }
    words
}

/// What follows a word such as `password`.
fn named(text: &str) -> Vec<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for name in NAMES {
        for (at, _) in lower.match_indices(name) {
            let mut from = at + name.len();
            let mut linked = false;
            while let Some(link) =
                LINKS.iter().find(|link| lower.get(from..).is_some_and(|rest| rest.starts_with(**link)))
            {
                linked |= *link != " " && *link != "\"";
                from += link.len();
            }
            let rest = text.get(from..).unwrap_or_default();
            let end = rest
                .find(|letter: char| letter.is_whitespace() || "\"',;，。；".contains(letter))
                .unwrap_or(rest.len());
            if linked && end > 0 {
                found.push((from, from + end));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_looks_like_a_secret_goes() {
        for (text, want) in [
            ("my key is sk-ant-REDACTED, ok?", "my key is [redacted], ok?"),
            ("token ghp_0123456789abcdef0123 and AKIAIOSFODNN7EXAMPLE", "token [redacted] and [redacted]"),
            ("password: hunter2 please", "password: [redacted] please"),
            ("The password is hunter2.", "The password is [redacted]"),
            ("PASSWORD=hunter2;x", "PASSWORD=[redacted];x"),
            ("我的密码是abc123，记住", "我的密码是[redacted]，记住"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "[redacted]"),
            ("he forgot his password again", "he forgot his password again"),
            ("sk-short and likes tea", "sk-short and likes tea"),
            ("我喜欢茶", "我喜欢茶"),
        ] {
            assert_eq!(redact(text), want, "{text}");
        }
        let value = json!({ "a": ["password: x1", 3], "b": null });
        assert_eq!(redact_value(&value), json!({ "a": ["password: [redacted]", 3], "b": null }));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,100}", key in "[a-zA-Z0-9]{20}") {
            redact(&text);
            let told = format!("{text} sk-{key}");
            prop_assert!(!redact(&told).contains(&key));
        }
    }
}
