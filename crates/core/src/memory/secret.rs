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
/// What secrets are called.
const NAMES: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "api_key",
    "apikey",
    "api key",
    "secret",
    "secretkey",
    "access_key",
    "accesskey",
    "access_token",
    "private_key",
    "privatekey",
    "密码",
    "口令",
    "密钥",
];
/// What secrets are called and much else is, too.
const VAGUE: [&str; 2] = ["token", "authorization"];
/// Letters of a value under such a name that make it a secret.
const VAGUE_MIN: usize = 8;
/// What may stand between a name and the secret.
const LINKS: [&str; 9] = [" is ", ":", "=", "：", "是", "为", " ", "\"", "\\"];
/// Links that alone do not make a secret of what follows.
const LOOSE: [&str; 3] = [" ", "\"", "\\"];
/// What stands before the secret in a header.
const SCHEMES: [&str; 3] = ["bearer ", "basic ", "token "];
/// How a private key in a file begins.
const BLOCK: &str = "-----BEGIN ";

/// The text without what looks like a secret.
pub fn redact(text: &str) -> Cow<'_, str> {
    if let Some(at) = text.find(BLOCK).filter(|at| text.get(*at..).is_some_and(|rest| rest.contains("PRIVATE KEY"))) {
        // It ends where nobody can tell.
        let before = text.get(..at).unwrap_or_default();
        return Cow::Owned(format!("{}{REDACTED}", redact(before)));
    }
    let mut doomed = keys(text);
    doomed.extend(named(text));
    doomed.extend(in_addresses(text));
    if doomed.is_empty() {
        return Cow::Borrowed(text);
    }
    doomed.sort_unstable();
    let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
    for (start, end) in doomed {
        // Two may overlap: whatever one of them covers goes.
        if start >= from {
            kept.push_str(text.get(from..start).unwrap_or_default());
            kept.push_str(REDACTED);
        }
        from = from.max(end);
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(kept)
}

/// The same for every text in a value, and for whatever is called like a secret. JSON in a text stays JSON.
pub fn redact_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact_json(text).unwrap_or_else(|| redact(text).into_owned())),
        Value::Array(items) => Value::Array(items.iter().map(redact_value).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), redact_member(name, value))).collect())
        }
        other => other.clone(),
    }
}

/// The same for a text that is an object or a list; nothing if it is neither.
pub fn redact_json(text: &str) -> Option<String> {
    let parsed: Value = text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str(text).ok())??;
    let safe = redact_value(&parsed);
    // What has no secret stays as it was written.
    Some(if safe == parsed { text.to_owned() } else { safe.to_string() })
}

fn redact_member(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if !text.is_empty() && is_name(name) => Value::String(REDACTED.to_owned()),
        value => redact_value(value),
    }
}

/// Whether a secret may be called so.
fn is_name(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut all = NAMES.iter().chain(&VAGUE).flat_map(|name| lower.match_indices(name));
    all.any(|(at, name)| tail(text, at + name.len()) == Some(text.len()))
}

/// Where a name ends that goes on behind such a word, as in `SECRET_KEY`; nothing if the word is another one, as in
/// `tokens`.
fn tail(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let begins = |next: char| match next {
        'a'..='z' => false,
        'A'..='Z' => text.get(..at).is_some_and(|before| before.ends_with(|last: char| last.is_ascii_lowercase())),
        _ => true,
    };
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
    rest.chars().next().is_none_or(begins).then_some(at + length)
}

/// Keys that are known by how they begin: where each stands.
fn keys(text: &str) -> Vec<(usize, usize)> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | '+');
    let key = |prefix: &str, at: usize| {
        let rest = text.get(at..).filter(|_| begins(text, at))?;
        let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        (length >= prefix.len() + REST_MIN).then_some((at, at + length))
    };
    PREFIXES.iter().flat_map(|prefix| text.match_indices(prefix).filter_map(move |(at, _)| key(prefix, at))).collect()
}

/// Whether a word may begin there: behind no letter, unless that is the end of a line that is written as `\n`.
fn begins(text: &str, at: usize) -> bool {
    let mut before = text.get(..at).unwrap_or_default().chars().rev();
    match before.next() {
        Some('n' | 'r' | 't') => before.next() == Some('\\'),
        Some(letter) => !letter.is_ascii_alphanumeric() && letter != '_',
        None => true,
    }
}

/// Passwords in addresses, as in `postgres://me:secret@host`.
fn in_addresses(text: &str) -> Vec<(usize, usize)> {
    let password = |(at, mark): (usize, &str)| {
        let from = at + mark.len();
        let rest = text.get(from..)?;
        let end =
            rest.find(|letter: char| letter.is_whitespace() || "/\"'`<>\\".contains(letter)).unwrap_or(rest.len());
        let (person, _) = rest.get(..end)?.rsplit_once('@')?;
        let (name, secret) = person.split_once(':')?;
        // What only stands for one is none.
        let is_none = secret.is_empty() || secret.starts_with(['$', '{', '[', '%', '*']);
        (!is_none).then(|| (from + name.len() + 1, from + person.len()))
    };
    text.match_indices("://").filter_map(password).collect()
}

/// What follows a word such as `password`.
fn named(text: &str) -> Vec<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let starts = |from: usize, word: &str| lower.get(from..).is_some_and(|rest| rest.starts_with(word));
    let mut found = Vec::new();
    for name in NAMES.iter().chain(&VAGUE) {
        for (at, _) in lower.match_indices(name) {
            let Some(end) = tail(text, at + name.len()) else { continue };
            let (mut from, mut linked) = (end, false);
            while let Some(link) = LINKS.iter().find(|link| starts(from, link)) {
                linked |= !LOOSE.contains(link);
                from += link.len();
            }
            from += SCHEMES.iter().find(|scheme| starts(from, scheme)).map_or(0, |scheme| scheme.len());
            let secret = value(text.get(from..).unwrap_or_default());
            let called = Called { vague: VAGUE.contains(name), name: text.get(at..end).unwrap_or_default() };
            if linked && called.hides(secret, starts(end, "\"") || starts(end, "\\\"")) {
                found.push((from, from + secret.len()));
            }
        }
    }
    found
}

/// What stands there, up to where it may end.
fn value(rest: &str) -> &str {
    let end = rest.find(|letter: char| letter.is_whitespace() || "\"',;，。；".contains(letter));
    let value = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
    match rest.get(value.len()..).is_some_and(|after| after.starts_with('"')) {
        // The mark before a quotation mark is its own.
        true => value.trim_end_matches('\\'),
        false => value,
    }
}

/// A name as it stands in a text.
struct Called<'t> {
    vague: bool,
    name: &'t str,
}

impl Called<'_> {
    /// Whether a value under it is a secret.
    fn hides(&self, value: &str, quoted: bool) -> bool {
        let is_plain = !self.name.contains(['_', '-']) && !self.vague;
        if value.is_empty() || (!is_plain && value.chars().all(|letter| letter.is_ascii_digit())) {
            return false;
        }
        let is_upper = !self.name.contains(|letter: char| letter.is_ascii_lowercase());
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.~+/=".contains(letter);
        let is_random = value.contains(|letter: char| letter.is_ascii_digit()) && value.chars().all(is_part);
        !self.vague || quoted || (value.len() >= VAGUE_MIN && (is_upper || is_random))
    }
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
            ("password=ghp_0123456789abcdef!tail", "password=[redacted]"),
            (r#"{\"password\":\"hunter2horse\"}"#, r#"{\"password\":\"[redacted]\"}"#),
            ("Authorization: Bearer abc123def456", "Authorization: Bearer [redacted]"),
            ("clientSecret: s3cr3t, ok", "clientSecret: [redacted], ok"),
            ("\n+ghp_0123456789abcdef0123\n-xoxb-0123456789abcdef", "\n+[redacted]\n-[redacted]"),
            (r"a\nAKIAIOSFODNN7EXAMPLE\n\\tsk-ant-api03-abcdefgh", r"a\n[redacted]\n\\t[redacted]"),
            ("https://x.org/sk-ant-api03-abcdefgh?x", "https://x.org/[redacted]?x"),
            ("URL=postgres://admin:s3cr3tpw99@db/x", "URL=postgres://admin:[redacted]@db/x"),
        ] {
            assert_eq!(redact(text), want, "{text}");
        }
        let value = json!({ "a": ["password: x1", 3], "b": null });
        assert_eq!(redact_value(&value), json!({ "a": ["password: [redacted]", 3], "b": null }));
    }

    #[test]
    fn a_file_of_secrets_keeps_its_names() {
        let file = "GITHUB_TOKEN=ghp_0123456789abcdef0123\nAWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\n\
                    AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\nSECRET_KEY=django-insecure-1\n\
                    export API_TOKEN=\"correct-horse\"\nPORT=8080\nDEBUG=true\n";
        let want = "GITHUB_TOKEN=[redacted]\nAWS_ACCESS_KEY_ID=[redacted]\nAWS_SECRET_ACCESS_KEY=[redacted]\n\
                    SECRET_KEY=[redacted]\nexport API_TOKEN=\"[redacted]\"\nPORT=8080\nDEBUG=true\n";
        assert_eq!(redact(file), want);
        assert_eq!(redact(want), want, "what is taken out is not taken out again");
    }

    #[test]
    fn members_are_judged_by_their_names() {
        for (value, want) in [
            (json!({ "password": "hunter2horse" }), json!({ "password": "[redacted]" })),
            (
                json!({ "user": { "api_key": "x", "id": "7" } }),
                json!({ "user": { "api_key": "[redacted]", "id": "7" } }),
            ),
            (json!({ "Authorization": "Bearer a b" }), json!({ "Authorization": "[redacted]" })),
            (json!({ "accessToken": "a" }), json!({ "accessToken": "[redacted]" })),
            (json!({ "SECRET_KEY_BASE": "a" }), json!({ "SECRET_KEY_BASE": "[redacted]" })),
            // JSON in a text is still JSON.
            (
                json!({ "arguments": r#"{"password":"a\"b","n":1}"# }),
                json!({ "arguments": r#"{"password":"[redacted]","n":1}"# }),
            ),
        ] {
            assert_eq!(redact_value(&value), want, "{value}");
        }
        for same in [
            json!({ "tokens": "12", "max_tokens": 4096, "secretary": "Ann", "password": "" }),
            json!({ "properties": { "password": { "type": "string" } }, "required": ["password"] }),
            json!({ "text": r#"{ "a":  1 }"# }),
        ] {
            assert_eq!(redact_value(&same), same);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "tokens: 12",
            "TOKENS: 12",
            "max_tokens=4096",
            "token_limit: 5000",
            "password reset works",
            "the secretary is Ann",
            "let token = lexer.next();",
            "the next token is a brace",
            "authorization: denied",
            "a == b and c=d",
            "postgres://admin:$PASSWORD@db and postgres://admin:[redacted]@db",
            "https://example.org:8080/@me and mail to a:b@c",
            "the desk-of-management-people and masks_test_everything",
        ] {
            assert_eq!(redact(text), text);
        }
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
