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
/// Letters of a value by which it is judged: a text may be as long as it likes.
const JUDGED_MAX: usize = 256;
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
    all.any(|(at, name)| tail(&mut Runs::of(text), at + name.len()) == Some(text.len()))
}

/// Where a name ends that goes on behind such a word, as in `SECRET_KEY`; nothing if the word is another one, as in
/// `tokens`.
fn tail(runs: &mut Runs<'_>, at: usize) -> Option<usize> {
    let text = runs.text;
    let rest = text.get(at..)?;
    let begins = |next: char| match next {
        'a'..='z' => false,
        'A'..='Z' => text.get(..at).is_some_and(|before| before.ends_with(|last: char| last.is_ascii_lowercase())),
        _ => true,
    };
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    rest.chars().next().is_none_or(begins).then(|| runs.end(at, is_part))
}

/// How far a run of letters goes on from places within a text, one behind the other: each run is walked once, however many
/// places are in it.
struct Runs<'t> {
    text: &'t str,
    known_to: usize,
}

impl<'t> Runs<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, known_to: 0 }
    }

    fn end(&mut self, from: usize, is_part: impl Fn(char) -> bool) -> usize {
        if from >= self.known_to {
            let rest = self.text.get(from..).unwrap_or_default();
            self.known_to = from + rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        }
        self.known_to
    }
}

/// Keys that are known by how they begin: where each stands.
fn keys(text: &str) -> Vec<(usize, usize)> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | '+');
    let mut found = Vec::new();
    for prefix in PREFIXES {
        let mut runs = Runs::of(text);
        let starts = text.match_indices(prefix).map(|(at, _)| at).filter(|at| begins(text, *at));
        let whole = starts.map(|at| (at, runs.end(at, is_part)));
        found.extend(whole.filter(|(at, end)| end - at >= prefix.len() + REST_MIN));
    }
    found
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
        (!stands_for_one(secret)).then(|| (from + name.len() + 1, from + person.len()))
    };
    text.match_indices("://").filter_map(password).collect()
}

/// Whether a text only stands for a secret: nothing, a variable, a mark in a template, stars.
fn stands_for_one(text: &str) -> bool {
    let within = |open: &str, close: &str| text.strip_prefix(open).is_some_and(|rest| rest.ends_with(close));
    let is_variable =
        |name: &str| name.chars().all(|letter| letter.is_ascii_uppercase() || "_0123456789".contains(letter));
    text.chars().all(|letter| letter == '*')
        || text.strip_prefix('$').is_some_and(is_variable)
        || [("${", "}"), ("$(", ")"), ("{", "}"), ("[", "]"), ("%(", ")s")]
            .iter()
            .any(|(open, close)| within(open, close))
        || matches!(text, "%s" | "%v")
}

/// What follows a word such as `password`.
fn named(text: &str) -> Vec<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let starts = |from: usize, word: &str| lower.get(from..).is_some_and(|rest| rest.starts_with(word));
    let mut found = Vec::new();
    for name in NAMES.iter().chain(&VAGUE) {
        let (mut words, mut values) = (Runs::of(text), Runs::of(text));
        let mut names: Vec<(usize, usize)> = Vec::new();
        for (at, _) in lower.match_indices(name) {
            let Some(end) = tail(&mut words, at + name.len()) else { continue };
            match names.last_mut() {
                // The shorter a name, the more it hides.
                Some((last, same)) if *same == end => *last = at,
                _ => names.push((at, end)),
            }
        }
        for (at, end) in names {
            let (mut from, mut linked) = (end, false);
            while let Some(link) = LINKS.iter().find(|link| starts(from, link)) {
                linked |= !LOOSE.contains(link);
                from += link.len();
            }
            from += SCHEMES.iter().find(|scheme| starts(from, scheme)).map_or(0, |scheme| scheme.len());
            let secret = value(&mut values, from);
            let called = Called { vague: VAGUE.contains(name), name: text.get(at..end).unwrap_or_default() };
            if linked && called.hides(secret, starts(end, "\"") || starts(end, "\\\"")) {
                found.push((from, from + secret.len()));
            }
        }
    }
    found
}

/// What stands there, up to where it may end.
fn value<'t>(runs: &mut Runs<'t>, from: usize) -> &'t str {
    let end = runs.end(from, |letter| !letter.is_whitespace() && !"\"',;，。；".contains(letter));
    let value = runs.text.get(from..end).unwrap_or_default();
    match runs.text.get(end..).is_some_and(|after| after.starts_with('"')) {
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
        let letters = || value.chars().take(JUDGED_MAX);
        if value.is_empty() || (!is_plain && letters().all(|letter| letter.is_ascii_digit())) {
            return false;
        }
        let is_upper = !self.name.contains(|letter: char| letter.is_ascii_lowercase());
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.~+/=".contains(letter);
        let is_random = letters().any(|letter| letter.is_ascii_digit()) && letters().all(is_part);
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
            ("postgres://admin:%40dm1n-s3cret@db", "postgres://admin:[redacted]@db"),
            (
                "amqp://me:*star$@mq redis://:{x@r redis://u:$ecret@r",
                "amqp://me:[redacted]@mq redis://:[redacted]@r redis://u:[redacted]@r",
            ),
            ("password_PASSWORD=123456", "password_PASSWORD=[redacted]"),
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
            "postgres://admin:${PASSWORD}@db and postgres://%s:%s@db and postgres://me:****@db",
            "https://example.org:8080/@me and mail to a:b@c",
            "the desk-of-management-people and masks_test_everything",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    /// If every place looked to the end of its run, each of these would take longer than a test may.
    #[test]
    fn a_text_that_begins_again_and_again_is_read_once() {
        const TIMES: usize = 20_000;
        for (word, want) in [
            ("sk-", "[redacted]".to_owned()),
            ("PASSWORD_", "PASSWORD_".repeat(TIMES)),
            ("password:", "password:[redacted]".to_owned()),
            ("token:", "token:".repeat(TIMES)),
            ("token=a", "token=a".repeat(TIMES)),
            ("://a:b@", "://a:[redacted]@".repeat(TIMES)),
        ] {
            assert!(redact(&word.repeat(TIMES)) == want, "{word}");
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
