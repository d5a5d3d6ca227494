//! What a setting's text may look like, and what it becomes.
//!
//! A shape is a name for "a port", "a duration", "one of these words": it says what it wants, reads a value and
//! shows it again. The key decides the type, not the spelling, so `"8080"` is a port and `no` can be a model's name.
//! Shapes know no key, no file and no default.

use std::marker::PhantomData;
use std::path::PathBuf;

use secrecy::SecretString;
use serde_json::Value as Json;

use super::choice::Choice;
use super::yaml::{Node, Value};
use crate::i18n::Lang;

/// One kind of setting.
pub trait Shape {
    /// What the rest of the program gets.
    type Value;
    /// Whether the value must never be shown.
    const SECRET: bool = false;
    /// Completes "expected …".
    fn wanted(lang: Lang) -> String;
    /// The value, if the text is one.
    fn read(node: &Node) -> Option<Self::Value>;
    /// The value as a person would write it.
    fn show(value: &Self::Value) -> String;
}

/// `true` or `false`, and YAML 1.1's other words for them.
#[derive(Debug)]
pub struct Switch;

impl Shape for Switch {
    type Value = bool;

    fn wanted(lang: Lang) -> String {
        lang.wanted_switch().to_owned()
    }

    fn read(node: &Node) -> Option<bool> {
        match node.text()?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    fn show(value: &bool) -> String {
        value.to_string()
    }
}

/// A whole number between two bounds.
#[derive(Debug)]
pub struct Count<const LOW: u32, const HIGH: u32>;

impl<const LOW: u32, const HIGH: u32> Shape for Count<LOW, HIGH> {
    type Value = u32;

    fn wanted(lang: Lang) -> String {
        lang.wanted_count(LOW, HIGH)
    }

    fn read(node: &Node) -> Option<u32> {
        node.text()?.parse().ok().filter(|value| (LOW..=HIGH).contains(value))
    }

    fn show(value: &u32) -> String {
        value.to_string()
    }
}

/// A TCP port; 0 lets the system choose.
pub(super) struct Port;

impl Shape for Port {
    type Value = u16;

    fn wanted(lang: Lang) -> String {
        lang.wanted_port_number().to_owned()
    }

    fn read(node: &Node) -> Option<u16> {
        node.text()?.parse().ok()
    }

    fn show(value: &u16) -> String {
        value.to_string()
    }
}

/// An amount of money.
#[derive(Debug)]
pub struct Usd;

impl Shape for Usd {
    type Value = f64;

    fn wanted(lang: Lang) -> String {
        lang.wanted_usd().to_owned()
    }

    fn read(node: &Node) -> Option<f64> {
        node.text()?.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
    }

    fn show(value: &f64) -> String {
        value.to_string()
    }
}

pub(super) struct Text;

impl Shape for Text {
    type Value = String;

    fn wanted(lang: Lang) -> String {
        lang.wanted_word().to_owned()
    }

    fn read(node: &Node) -> Option<String> {
        node.text().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    fn show(value: &String) -> String {
        value.clone()
    }
}

/// A web address.
pub(super) struct Url;

impl Shape for Url {
    type Value = String;

    fn wanted(lang: Lang) -> String {
        lang.wanted_url().to_owned()
    }

    fn read(node: &Node) -> Option<String> {
        let text = node.text()?;
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
        let good = !host.is_empty() && !host.starts_with('/') && !host.contains(char::is_whitespace);
        good.then(|| text.to_owned())
    }

    /// Hides a name and password in front of the host.
    fn show(value: &String) -> String {
        let (scheme, rest) = value.split_once("://").unwrap_or(("", value));
        let host_end = rest.find('/').unwrap_or(rest.len());
        match rest.split_at(host_end).0.rsplit_once('@') {
            Some((login, _)) => value.replacen(&format!("{scheme}://{login}@"), &format!("{scheme}://***@"), 1),
            None => value.clone(),
        }
    }
}

/// A file or a folder.
pub(super) struct Location;

impl Shape for Location {
    type Value = PathBuf;

    fn wanted(lang: Lang) -> String {
        lang.wanted_path().to_owned()
    }

    fn read(node: &Node) -> Option<PathBuf> {
        node.text().filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    fn show(value: &PathBuf) -> String {
        value.display().to_string()
    }
}

/// A key or password: read, never shown.
pub(super) struct Secret;

impl Shape for Secret {
    type Value = SecretString;
    const SECRET: bool = true;

    fn wanted(lang: Lang) -> String {
        lang.wanted_secret().to_owned()
    }

    fn read(node: &Node) -> Option<SecretString> {
        node.text().filter(|text| !text.is_empty() && !text.contains('\n')).map(SecretString::from)
    }

    fn show(_: &SecretString) -> String {
        "***".to_owned()
    }
}

/// A program and its arguments; a list, so that nothing has to be quoted for a shell.
pub(super) struct Command;

impl Shape for Command {
    type Value = Vec<String>;

    fn wanted(lang: Lang) -> String {
        lang.wanted_command().to_owned()
    }

    fn read(node: &Node) -> Option<Vec<String>> {
        let Value::List(items) = &node.value else { return None };
        let words: Vec<String> = items.iter().map(|item| item.text().map(str::to_owned)).collect::<Option<_>>()?;
        words.first().is_some_and(|program| !program.is_empty()).then_some(words)
    }

    fn show(value: &Vec<String>) -> String {
        let words: Vec<String> = value.iter().map(|word| format!("{word:?}")).collect();
        format!("[{}]", words.join(", "))
    }
}

/// Hosts of the network.
pub(super) struct Hosts;

impl Shape for Hosts {
    type Value = Vec<String>;

    fn wanted(lang: Lang) -> String {
        lang.wanted_hosts().to_owned()
    }

    fn read(node: &Node) -> Option<Vec<String>> {
        let Value::List(items) = &node.value else { return None };
        let is_host = |text: &&str| !text.is_empty() && !text.contains(['/', '*', '@']) && !text.contains(' ');
        items.iter().map(|item| item.text().filter(is_host).map(str::to_lowercase)).collect()
    }

    fn show(value: &Vec<String>) -> String {
        format!("[{}]", value.join(", "))
    }
}

/// Names of profiles of a browser, which are also those of their folders.
pub(super) struct ProfileNames;

impl Shape for ProfileNames {
    type Value = Vec<String>;

    fn wanted(lang: Lang) -> String {
        lang.wanted_profiles().to_owned()
    }

    fn read(node: &Node) -> Option<Vec<String>> {
        let Value::List(items) = &node.value else { return None };
        let is_name = |text: &&str| {
            !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
        };
        items.iter().map(|item| item.text().filter(is_name).map(str::to_owned)).collect()
    }

    fn show(value: &Vec<String>) -> String {
        format!("[{}]", value.join(", "))
    }
}

/// A map that someone else understands.
pub(super) struct Tree;

impl Shape for Tree {
    type Value = Json;

    fn wanted(lang: Lang) -> String {
        lang.wanted_tree().to_owned()
    }

    fn read(node: &Node) -> Option<Json> {
        match &node.value {
            Value::Map(_) => Some(node.json()),
            _ => node.is_null().then(|| Json::Object(serde_json::Map::new())),
        }
    }

    /// Only the names at the top: what is below may hold keys of other services.
    fn show(value: &Json) -> String {
        let names: Vec<&str> = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        format!("{{{}}}", names.join(", "))
    }
}

/// The shape inside, or null; an empty word is null too, so that `${NAME:-}` means "not set".
pub(super) struct Maybe<S>(PhantomData<S>);

impl<S: Shape> Shape for Maybe<S> {
    type Value = Option<S::Value>;
    const SECRET: bool = S::SECRET;

    fn wanted(lang: Lang) -> String {
        lang.wanted_or_null(S::wanted(lang))
    }

    fn read(node: &Node) -> Option<Option<S::Value>> {
        if node.is_null() || node.text() == Some("") { Some(None) } else { S::read(node).map(Some) }
    }

    fn show(value: &Option<S::Value>) -> String {
        value.as_ref().map_or_else(|| "null".to_owned(), S::show)
    }
}

/// One word of a closed set.
pub(super) struct OneOf<T>(PhantomData<T>);

impl<T: Choice> Shape for OneOf<T> {
    type Value = T;

    fn wanted(lang: Lang) -> String {
        let names: Vec<String> = T::NAMES.iter().map(|(name, _)| format!("`{name}`")).collect();
        lang.wanted_one_of(names.join(lang.comma()))
    }

    fn read(node: &Node) -> Option<T> {
        let text = node.text()?;
        T::NAMES.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
    }

    fn show(value: &T) -> String {
        value.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::policy;

    use super::*;

    fn shown<S: Shape>(text: &str) -> Option<String> {
        let node = super::super::yaml::parse(text).unwrap();
        S::read(&node).map(|value| S::show(&value))
    }

    fn all<S: Shape>(cases: &[(&str, Option<&str>)]) {
        for (text, expected) in cases {
            assert_eq!(shown::<S>(text).as_deref(), *expected, "{text}");
        }
    }

    #[test]
    fn numbers_and_switches() {
        all::<Count<1, 20>>(&[("1", Some("1")), ("'20'", Some("20")), ("0", None), ("21", None), ("1.0", None)]);
        all::<Port>(&[("0", Some("0")), ("65535", Some("65535")), ("65536", None), ("-1", None), ("http", None)]);
        all::<Usd>(&[("2.50", Some("2.5")), ("0", Some("0")), ("-1", None), ("nan", None), ("free", None)]);
        all::<Switch>(&[
            ("true", Some("true")),
            ("No", Some("false")),
            ("'on'", Some("true")),
            ("1", None),
            ("", None),
        ]);
    }

    #[test]
    fn words() {
        all::<Text>(&[("no", Some("no")), ("1.10", Some("1.10")), ("'null'", Some("null")), ("null", None)]);
        all::<Maybe<Text>>(&[("null", Some("null")), ("''", Some("null")), ("~", Some("null")), ("{a: 1}", None)]);
        all::<Maybe<Secret>>(&[("sk-1", Some("***")), ("''", Some("null")), ("\"a\\nb\"", None)]);
        all::<Url>(&[
            ("https://a.b/c", Some("https://a.b/c")),
            ("http://localhost:1", Some("http://localhost:1")),
            ("https://me:pw@a.b/c@d", Some("https://***@a.b/c@d")),
            ("https://", None),
            ("file:///etc", None),
            ("a.b", None),
        ]);
        all::<OneOf<policy::Mode>>(&[("plan", Some("plan")), ("dontAsk", Some("dontAsk")), ("Plan", None)]);
        assert!(OneOf::<policy::Mode>::wanted(Lang::En).starts_with("one of `default`, `acceptEdits`, `plan`"));
    }

    #[test]
    fn lists_and_trees() {
        all::<Command>(&[("[pass, show, 1]", Some(r#"["pass", "show", "1"]"#)), ("[]", None), ("pass show", None)]);
        all::<Hosts>(&[("[Wiki.local, '::1']", Some("[wiki.local, ::1]")), ("[]", Some("[]")), ("[http://a]", None)]);
        all::<ProfileNames>(&[
            ("[Shop, a_b-1]", Some("[Shop, a_b-1]")),
            ("[]", Some("[]")),
            ("[a.b]", None),
            ("x", None),
        ]);
        assert!(!ProfileNames::wanted(Lang::En).contains("host"));
        all::<Tree>(&[("a: [1]", Some("{a}")), ("null", Some("{}")), ("[1]", None), ("x", None)]);
    }
}
