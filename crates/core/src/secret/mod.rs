//! Removes keys and passwords from texts for people and files: stored memory, events, audit lines, exports, recordings,
//! errors. Requests to a model are not changed.
//!
//! A secret is known by its shape (`sk-…`, a private key, a password in an address), by the name that it stands behind
//! (`password: …`, `?token=…`), or because it is a key of our own ([`add_key`]). A value that looks like code (a type, a
//! call, a variable) is none: a text that is redacted too eagerly is of no use to its reader.

mod code;
mod stream;
mod user_keys;

use std::borrow::Cow;

use serde_json::Value;

pub use stream::Redactor;
pub use user_keys::{add_key, hide};

/// The replacement of a secret.
const REDACTED: &str = "[redacted]";
/// How keys of well-known issuers begin.
const PREFIXES: [&str; 40] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "hf_",
    "npm_",
    "pypi-",
    "dop_v1_",
    "shpat_",
    "shpss_",
    "sq0atp-",
    "lin_api_",
    "xai-",
    "gsk_",
    "whsec_",
    "sntrys_",
    "ATATT3",
    "AGE-SECRET-KEY-",
    "eyJ",
];
/// Letters after such a beginning that make it a key.
const REST_MIN: usize = 12;
/// What secrets are called.
const NAMES: [&str; 24] = [
    "password",
    "passwd",
    "passphrase",
    "pgpass",
    "api_key",
    "apikey",
    "api key",
    "secret",
    "secretkey",
    "access_key",
    "accesskey",
    "access_token",
    "accesstoken",
    "api_token",
    "apitoken",
    "auth_token",
    "authtoken",
    "refresh_token",
    "refreshtoken",
    "private_key",
    "privatekey",
    "密码",
    "口令",
    "密钥",
];
/// Names that may stand for a secret or for something else.
const VAGUE: [&str; 4] = ["token", "authorization", "cookie", "credential"];
/// Last words of names that speak of a secret and hold none.
const ABOUT: [&str; 23] = [
    "source", "type", "count", "limit", "name", "names", "url", "uri", "path", "file", "env", "len", "length", "max",
    "min", "ttl", "expires", "expiry", "field", "label", "policy", "prompt", "hint",
];
/// Names of parameters in an address that hold secrets.
const PARAMETERS: [&str; 17] = [
    "token",
    "access_token",
    "refresh_token",
    "id_token",
    "auth",
    "key",
    "api_key",
    "apikey",
    "api-key",
    "sig",
    "signature",
    "secret",
    "client_secret",
    "password",
    "pwd",
    "x-amz-signature",
    "x-amz-security-token",
];
/// Letters of a value under such a name that make it a secret.
const VAGUE_MIN: usize = 8;
/// Separators between a name and its secret.
const LINKS: [&str; 10] = [" is ", ":", "=", "：", "是", "为", " ", "\"", "'", "\\"];
/// Bytes of a parameter's name in an address.
const PARAMETER_BYTES_MAX: usize = 32;
/// Letters of a parameter's value that make it a secret.
const PARAMETER_MIN: usize = 4;
/// Bytes of the first line of a private key.
const TITLE_BYTES_MAX: usize = 64;
/// Letters of a value by which it is judged: a text may be as long as it likes.
const JUDGED_MAX: usize = 256;
/// Separators that alone do not make the next word a secret.
const LOOSE: [&str; 4] = [" ", "\"", "'", "\\"];
/// The scheme before the secret in a header.
const SCHEMES: [&str; 3] = ["bearer ", "basic ", "token "];
/// How a private key in a file begins, and how it ends.
const BLOCK: (&str, &str) = ("-----BEGIN ", "-----END ");

/// The text without secrets.
pub fn redact(text: &str) -> Cow<'_, str> {
    let known = user_keys::without_keys(text);
    if let Cow::Owned(hidden) = known {
        return Cow::Owned(redact_unknown(&hidden).into_owned());
    }
    redact_unknown(text)
}

/// Like `redact`, but does not look for the user's own keys.
fn redact_unknown(text: &str) -> Cow<'_, str> {
    let mut doomed = keys(text);
    doomed.extend(named(text));
    doomed.extend(in_addresses(text));
    doomed.extend(in_parameters(text));
    doomed.extend(in_schemes(text));
    doomed.extend(blocks(text));
    if doomed.is_empty() {
        return Cow::Borrowed(text);
    }
    doomed.sort_unstable();
    let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
    for (start, end) in doomed {
        // Overlapping ranges are merged.
        if start >= from {
            kept.push_str(text.get(from..start).unwrap_or_default());
            kept.push_str(REDACTED);
        }
        from = from.max(end);
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(kept)
}

/// Redacts every text in a JSON value, and values under names of secrets. JSON inside a text stays JSON.
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

/// The words of a command without the values of flags that are called like secrets: `--api-key X`, `--token=X`. A variable
/// (`$NAME`) stays.
pub fn redact_arguments<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let is_secret = |flag: &str| {
        let name = flag.trim_start_matches('-').replace('-', "_");
        flag.starts_with('-') && (is_called(&name, &NAMES) || is_called(&name, &VAGUE))
    };
    let is_value = |text: &str| !text.is_empty() && !text.starts_with(['$', '-']);
    let mut is_next = false;
    let redacted = |word: &'a str| {
        let was_flag = std::mem::replace(&mut is_next, is_secret(word));
        match word.split_once('=') {
            Some((flag, value)) if is_secret(flag) && is_value(value) => {
                is_next = false;
                format!("{flag}={REDACTED}")
            }
            _ if was_flag && is_value(word) => REDACTED.to_owned(),
            _ => redact(word).into_owned(),
        }
    };
    words.into_iter().map(redacted).collect()
}

/// Redacts a text that is a JSON object or list; `None` for other texts.
pub fn redact_json(text: &str) -> Option<String> {
    let parsed: Value = text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str(text).ok())??;
    let safe = redact_value(&parsed);
    // A text without secrets keeps its exact form.
    Some(if safe == parsed { text.to_owned() } else { safe.to_string() })
}

fn redact_member(name: &str, value: &Value) -> Value {
    let hidden = || Value::String(REDACTED.to_owned());
    match value {
        Value::String(text) if !text.is_empty() && is_called(name, &NAMES) => hidden(),
        Value::String(text) if is_called(name, &VAGUE) && looks_secret(name, text) => hidden(),
        // `password_attempts: 3` only speaks of one.
        Value::Number(_) if ends_in(name, &NAMES) => hidden(),
        Value::Array(items) => Value::Array(items.iter().map(|item| redact_member(name, item)).collect()),
        value => redact_value(value),
    }
}

/// Whether a member's name is one of these, perhaps with words before or behind it: `db_password`, `SECRET_KEY_BASE`.
fn is_called(text: &str, names: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut all = names.iter().flat_map(|name| lower.match_indices(name));
    !is_about(text) && all.any(|(at, name)| tail(&mut Runs::of(text), at + name.len()) == Some(text.len()))
}

fn ends_in(text: &str, names: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    names.iter().any(|name| lower.ends_with(name))
}

/// Whether a member's value is a secret by its look, where the name alone does not say so.
fn looks_secret(name: &str, text: &str) -> bool {
    let called = SecretName { vague: true, name, link: ":" };
    let has_scheme = SCHEMES.iter().any(|scheme| {
        text.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)) && text.len() > scheme.len()
    });
    let mut words = text.split(|letter: char| letter.is_whitespace() || matches!(letter, ';' | ','));
    has_scheme || words.any(|word| called.hides(word))
}

/// Whether a name's last word says that it only speaks of a secret: `token_type`, `passwordFile`.
fn is_about(name: &str) -> bool {
    let at = name.rfind(|letter: char| matches!(letter, '_' | '-') || letter.is_ascii_uppercase());
    let last = at.and_then(|at| name.get(at..)).unwrap_or_default().trim_start_matches(['_', '-']).to_ascii_lowercase();
    // In `API_KEY_FILE` every letter is a capital, so only `_` and `-` separate its words.
    let whole = name.rsplit(['_', '-']).next().unwrap_or_default().to_ascii_lowercase();
    ABOUT.contains(&last.as_str()) || (name.contains(['_', '-']) && ABOUT.contains(&whole.as_str()))
}

/// The end of a longer name that continues after the match, as in `SECRET_KEY`; `None` if it is a different word, as in
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

/// Finds the end of a run of letters from several start positions in ascending order; walks each run only once.
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
        found.extend(whole.filter(|(at, end)| {
            let rest = text.get(at + prefix.len()..*end).unwrap_or_default();
            // Words that are joined (`sk-folding-cube`, `npm_config_registry`) are no key.
            let is_random = |letter: char| letter.is_ascii_digit() || letter.is_ascii_uppercase();
            rest.len() >= REST_MIN && rest.chars().take(JUDGED_MAX).any(is_random)
        }));
    }
    found
}

/// Whether a word may begin there: not after a letter, unless that letter belongs to an escape such as `\n`.
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

/// Values of parameters in an address, as in `?token=…&sig=…`.
fn in_parameters(text: &str) -> Vec<(usize, usize)> {
    let secret = |(at, _): (usize, &str)| {
        let rest = text.get(at + 1..)?;
        // A longer word cannot be the name of a parameter.
        let head = rest.get(..rest.floor_char_boundary(PARAMETER_BYTES_MAX))?;
        let (name, _) = head.split_once('=')?;
        let known = PARAMETERS.iter().any(|known| name.eq_ignore_ascii_case(known));
        let from = at + 1 + name.len() + 1;
        let value = text.get(from..).filter(|_| known)?;
        let is_end = |letter: char| letter.is_whitespace() || "&?#\"'`<>\\)]".contains(letter);
        let len = value.find(is_end).unwrap_or(value.len());
        let value = value.get(..len)?;
        (len >= PARAMETER_MIN && !stands_for_one(value)).then_some((from, from + len))
    };
    text.match_indices(['?', '&']).filter_map(secret).collect()
}

/// The word after `Bearer` or `Basic`, anywhere in a text.
fn in_schemes(text: &str) -> Vec<(usize, usize)> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.~+/=".contains(letter);
    let mut found = Vec::new();
    for scheme in ["Bearer ", "bearer ", "Basic "] {
        let mut runs = Runs::of(text);
        for (at, _) in text.match_indices(scheme).filter(|(at, _)| begins(text, *at)) {
            let from = at + scheme.len();
            let end = runs.end(from, is_part);
            let value = text.get(from..end).unwrap_or_default();
            let is_random = |letter: char| letter.is_ascii_digit() || letter.is_ascii_uppercase();
            if value.len() >= VAGUE_MIN && value.chars().skip(1).take(JUDGED_MAX).any(is_random) {
                found.push((from, end));
            }
        }
    }
    found
}

/// Private keys as they stand in files. One without its end goes to the end of the text.
fn blocks(text: &str) -> Vec<(usize, usize)> {
    let (begin, end) = BLOCK;
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(begin)).map(|at| from + at) {
        let rest = text.get(at..).unwrap_or_default();
        let title = rest.get(..rest.floor_char_boundary(TITLE_BYTES_MAX)).unwrap_or_default();
        let close = rest.find(end).and_then(|close| {
            let tail = rest.get(close + end.len()..)?;
            Some(at + close + end.len() + tail.find("-----").map_or(tail.len(), |dashes| dashes + 5))
        });
        let close = close.unwrap_or(text.len());
        if title.contains("PRIVATE KEY") {
            found.push((at, close));
        }
        from = close.max(at + begin.len());
    }
    found
}

/// Whether a file is a private key by its first bytes: in PEM or OpenPGP armour, of PuTTY or age, or a service account's JSON.
pub fn is_key_file(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let armoured = |text: &str| {
        let rest = text.strip_prefix(BLOCK.0).unwrap_or_default();
        rest.lines().next().is_some_and(|title| title.contains("PRIVATE KEY"))
    };
    // The key of a service account stands in one string, with its line ends as `\n`.
    let holds_one = || text.match_indices(BLOCK.0).any(|(at, _)| text.get(at..).is_some_and(armoured));
    armoured(text)
        || ["PuTTY-User-Key-File-", "AGE-SECRET-KEY-1"].iter().any(|mark| text.starts_with(mark))
        || (text.starts_with('{') && text.contains("\"private_key\"") && holds_one())
}

/// Whether a text only stands for a secret: nothing, a variable, a mark in a template, stars, dots.
fn stands_for_one(text: &str) -> bool {
    let within = |open: &str, close: &str| text.strip_prefix(open).is_some_and(|rest| rest.ends_with(close));
    let is_variable =
        |name: &str| name.chars().all(|letter| letter.is_ascii_uppercase() || "_0123456789".contains(letter));
    text.chars().all(|letter| matches!(letter, '*' | 'x' | 'X' | '.' | '…'))
        || text == REDACTED.trim_end_matches(']')
        || text.strip_prefix('$').is_some_and(is_variable)
        || [("${", "}"), ("$(", ")"), ("{", "}"), ("[", "]"), ("<", ">"), ("%(", ")s")]
            .iter()
            .any(|(open, close)| within(open, close))
        || matches!(text, "%s" | "%v")
}

/// The value after a word such as `password`.
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
                // Of two matches with one end, the later one counts.
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
            let link = text.get(end..from).unwrap_or_default();
            let called = SecretName { vague: VAGUE.contains(name), name: text.get(at..end).unwrap_or_default(), link };
            if linked && called.hides(secret) {
                found.push((from, from + secret.len()));
            }
        }
    }
    found
}

/// The value up to its possible end.
fn value<'t>(runs: &mut Runs<'t>, from: usize) -> &'t str {
    let end = runs.end(from, |letter| !letter.is_whitespace() && !"\"',;，。；".contains(letter));
    let value = runs.text.get(from..end).unwrap_or_default();
    match runs.text.get(end..).is_some_and(|after| after.starts_with('"')) {
        // A backslash before the closing quotation mark escapes the mark; it is not part of the value.
        true => value.trim_end_matches('\\'),
        false => value,
    }
}

/// A name as it stands in a text.
struct SecretName<'t> {
    vague: bool,
    name: &'t str,
    /// The separator before the value.
    link: &'t str,
}

impl SecretName<'_> {
    /// Whether a value under it is a secret.
    fn hides(&self, value: &str) -> bool {
        let value = value.get(..value.floor_char_boundary(JUDGED_MAX)).unwrap_or_default();
        let is_plain = !self.name.contains(['_', '-']) && !self.vague;
        let letters = || value.chars();
        if value.is_empty() || is_about(self.name) || stands_for_one(value) {
            return false;
        }
        if !is_plain && letters().all(|letter| letter.is_ascii_digit()) {
            return false;
        }
        // `"password":"…"` and `password = "…"`; the quotation mark before the link is the name's own.
        let is_quoted = self.link.ends_with(['"', '\'']);
        if !is_quoted && code::is_code(self.name, self.link, value) {
            return false;
        }
        let is_upper = !self.name.contains(|letter: char| letter.is_ascii_lowercase());
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.~+/=".contains(letter);
        let is_random = letters().any(|letter| letter.is_ascii_digit()) && letters().all(is_part);
        let is_long = value.len() >= VAGUE_MIN;
        !self.vague || (is_long && (is_upper || is_random))
    }
}

#[cfg(test)]
mod tests;
