//! Parses YAML into a small tree with the position of each value.
//!
//! The only module of this crate and the binary that knows the YAML crate, so replacing that crate is a change of one
//! file. A scalar keeps its text as written beside its YAML value: the reader of the key decides which one counts, so
//! `no` stays a string where a string is expected and `1.10` keeps its zero. It knows no keys of ours, reads no files
//! and expands no variables.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use serde_saphyr::{DuplicateKeyPolicy, Location, Spanned};

/// Nested deeper than this, a file is not a configuration but an attack on our stack.
const DEPTH_MAX: usize = 32;
/// Anchors and aliases included, so that a few lines cannot grow into gigabytes.
const NODES_MAX: usize = 50_000;
/// A map or a list has a beginning and an end; the document around them has two of its own.
const EVENTS_PER_NODE_MAX: usize = 4;

/// A place in a file, counted from one as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spot {
    pub line: u64,
    /// The character in it.
    pub col: u64,
}

/// A value and where it stands. Its content never prints itself, because it may be a key.
#[derive(Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    /// Where it begins.
    pub spot: Spot,
}

/// The three things YAML is made of.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// A string, a number, a boolean or null.
    Scalar(Scalar),
    /// Names and values, in the order of the file.
    Map(Vec<(Name, Node)>),
    /// Values in order.
    List(Vec<Node>),
}

/// A scalar as written, and as YAML's core schema understands it.
#[derive(Clone, PartialEq)]
pub struct Scalar {
    /// The scalar as it is written in the file.
    pub text: String,
    /// The scalar as YAML reads it.
    pub json: Json,
}

/// The name of one entry of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    pub text: String,
    pub spot: Spot,
}

/// Why a text is not YAML that we take.
#[derive(Debug, PartialEq)]
pub struct Fault {
    /// Where it was seen.
    pub spot: Spot,
    pub kind: FaultKind,
}

/// What is wrong with a YAML text, or with front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The key, as far as it is known.
    KeyTwice(Option<String>),
    SecondDocument,
    EmptyKey,
    NoNumber(String),
    TooLarge,
    /// Front matter without its last line.
    HeadUnclosed,
    /// Front matter of more bytes than this.
    HeadTooLong(usize),
    /// Something else, in the words of the YAML library.
    Syntax(String),
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyTwice(Some(key)) => write!(f, "the key `{key}` is written twice"),
            Self::KeyTwice(None) => f.write_str("a key is written twice"),
            Self::SecondDocument => f.write_str("a second document begins here, but only one is allowed"),
            Self::EmptyKey => f.write_str("a key is empty"),
            Self::NoNumber(value) => write!(f, "`{value}` is not a number that can be used"),
            Self::TooLarge => f.write_str("the YAML is too large or nested too deeply"),
            Self::HeadUnclosed => f.write_str("the front matter has no end; close it with a line `---`"),
            Self::HeadTooLong(bytes) => write!(f, "there are more than {bytes} bytes between the `---` lines"),
            Self::Syntax(said) => f.write_str(said),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("value", &self.value).field("spot", &self.spot).finish()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Map(entries) => f.debug_map().entries(entries.iter().map(|(name, node)| (&name.text, node))).finish(),
            Self::List(items) => f.debug_list().entries(items).finish(),
        }
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Reads one document of the size of a configuration; an empty one is null.
pub fn parse(text: &str) -> Result<Node, Fault> {
    parse_up_to(text, NODES_MAX)
}

/// Like `parse`, with another bound for the number of values.
pub fn parse_up_to(text: &str, nodes_max: usize) -> Result<Node, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: nodes_max,
            max_events: nodes_max.saturating_mul(EVENTS_PER_NODE_MAX),
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: NODES_MAX },
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let root: Spanned<Raw> = serde_saphyr::from_str_with_options(text, options).map_err(|error| fault(&error))?;
    Ok(node(root, text))
}

impl Node {
    /// A string that was not read from a file.
    pub fn word(text: &str) -> Self {
        let json = if text == "null" { Json::Null } else { Json::String(text.to_owned()) };
        Self { value: Value::Scalar(Scalar { text: text.to_owned(), json }), spot: Spot::default() }
    }

    /// Whether it is nothing.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.json.is_null())
    }

    /// The text of a scalar as written, independent of its YAML type; `None` for null.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) if !scalar.json.is_null() => Some(scalar.text.trim()),
            _ => None,
        }
    }

    /// The whole tree as JSON, with the types that YAML gives the scalars.
    pub fn json(&self) -> Json {
        match &self.value {
            Value::Scalar(scalar) => scalar.json.clone(),
            Value::Map(entries) => entries.iter().map(|(name, node)| (name.text.clone(), node.json())).collect(),
            Value::List(items) => items.iter().map(Node::json).collect(),
        }
    }
}

/// The tree as serde delivers it, before scalars get their text.
enum Raw {
    Scalar(Json),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
    List(Vec<Spanned<Raw>>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Json::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }
}

/// Puts the places and the spelling back to what serde delivered.
fn node(raw: Spanned<Raw>, text: &str) -> Node {
    let value = match raw.value {
        Raw::Scalar(Json::String(word)) => Value::Scalar(Scalar { text: word.clone(), json: Json::String(word) }),
        Raw::Scalar(json) => Value::Scalar(Scalar { text: written(text, raw.defined, &json), json }),
        Raw::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(name, raw)| (Name { spot: spot(name.referenced), text: name.value }, node(raw, text)))
                .collect(),
        ),
        Raw::List(items) => Value::List(items.into_iter().map(|raw| node(raw, text)).collect()),
    };
    Node { value, spot: spot(raw.referenced) }
}

/// A number, `true` or `null` as it stands in the file; serde has already forgotten the spelling.
fn written(text: &str, place: Location, json: &Json) -> String {
    let span = place.span();
    let range = span.byte_offset().zip(span.byte_len());
    let range = range.and_then(|(start, len)| usize::try_from(start).ok().zip(usize::try_from(start + len).ok()));
    match range.and_then(|(start, end)| text.get(start..end)).map(str::trim) {
        // An explicit tag or quotes in front: the value is clear, only its spelling is not worth keeping.
        Some(word) if !word.starts_with(['!', '&', '"', '\'', '|', '>']) => word.to_owned(),
        _ => json.to_string(),
    }
}

fn spot(place: Location) -> Spot {
    Spot { line: place.line(), col: place.column() }
}

/// The library's messages address programmers; those that a user is likely to meet have words of ours.
fn fault(error: &serde_saphyr::Error) -> Fault {
    use serde_saphyr::Error as Yaml;
    let spot = error.location().map_or(Spot { line: 1, col: 1 }, spot);
    let kind = match error.without_snippet() {
        Yaml::DuplicateMappingKey { key, .. } => FaultKind::KeyTwice(key.as_ref().map(ToString::to_string)),
        Yaml::MultipleDocuments { .. } => FaultKind::SecondDocument,
        Yaml::NullIntoString { .. } => FaultKind::EmptyKey,
        Yaml::NonFiniteFloat { value, .. } => FaultKind::NoNumber(value.to_string()),
        Yaml::Budget { .. } => FaultKind::TooLarge,
        other => {
            let said = other.to_string();
            FaultKind::Syntax(said.rsplit_once(" at line ").map_or(said.clone(), |(words, _)| words.to_owned()))
        }
    };
    Fault { spot, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        parse(text).unwrap().json()
    }

    fn entry(text: &str) -> Node {
        match parse(text).unwrap().value {
            Value::Map(mut entries) => entries.remove(0).1,
            other => panic!("not a map: {other:?}"),
        }
    }

    #[test]
    fn scalars_keep_their_spelling() {
        let cases =
            ["no", "yes", "1.10", "007", "0x1F", "true", "True", "18446744073709551616", "120s", "-0.50", "${X:-1}"];
        for case in cases {
            for text in [format!("a: {case}\n"), format!("a: {case}   # why\r\n"), format!("{{a: {case} }}")] {
                if case.contains('{') && text.starts_with('{') {
                    continue;
                }
                assert_eq!(entry(&text).text(), Some(case), "{text}");
            }
        }
        assert_eq!(entry("a: \"12\"").text(), Some("12"));
        assert_eq!(entry("b: &x 1.10\na: *x").text(), Some("1.10"));
        assert_eq!(entry("a: !!int \"5\"").text(), Some("5"));
        assert_eq!(entry("a: '汉 字'").text(), Some("汉 字"));
    }

    #[test]
    fn yaml_decides_in_json() {
        let text = "{a: no, b: 1, c: 1.5, d: '1', e: null, f: ~, g: true, h: [x, -2]}";
        let expected = serde_json::json!(
            {"a": "no", "b": 1, "c": 1.5, "d": "1", "e": null, "f": null, "g": true, "h": ["x", -2]}
        );
        assert_eq!(json(text), expected);
        assert_eq!(json(""), Json::Null);
        assert_eq!(json("# only a comment\n"), Json::Null);
        assert_eq!(json("\u{feff}a: 1\n"), serde_json::json!({"a": 1}));
    }

    #[test]
    fn places_count_characters_from_one() {
        let node = parse("# 汉\nllm:\r\n  模型: {x: \"y\", z: 1}\n").unwrap();
        let Value::Map(top) = node.value else { panic!() };
        assert_eq!(top[0].0.spot, Spot { line: 2, col: 1 });
        let Value::Map(inner) = &top[0].1.value else { panic!() };
        assert_eq!(inner[0].0.spot, Spot { line: 3, col: 3 });
        assert_eq!(inner[0].1.spot, Spot { line: 3, col: 7 });
        let Value::Map(flow) = &inner[0].1.value else { panic!() };
        assert_eq!(flow[1].1.spot, Spot { line: 3, col: 19 });
    }

    #[test]
    fn faults_are_placed_and_plain() {
        let cases = [
            ("a: 1\na: 2\n", 2, "the key `a` is written twice"),
            ("a: 1\n---\nb: 2\n", 3, "a second document begins here, but only one is allowed"),
            ("a: 1\n---\n", 2, "a second document begins here, but only one is allowed"),
            ("a: [1\n", 1, "unclosed bracket '['"),
            ("x: 1\na: b: c\n", 2, "mapping values are not allowed in this context"),
            ("~: 1\n", 1, "a key is empty"),
            ("a: .inf\n", 1, "`.inf` is not a number that can be used"),
            ("a: !include x\n", 1, "unsupported tag `!include`"),
            ("a: *x\n", 1, "alias references unknown anchor"),
        ];
        for (text, line, message) in cases {
            let fault = parse(text).unwrap_err();
            assert_eq!((fault.spot.line, fault.kind.to_string().as_str()), (line, message), "{text:?}");
        }
    }

    #[test]
    fn bombs_are_refused() {
        let deep = "[".repeat(100);
        let told = "the YAML is too large or nested too deeply";
        assert!(parse(&deep).is_err());
        assert_eq!(parse(&format!("{deep}{}", "]".repeat(100))).unwrap_err().kind.to_string(), told);
        assert_eq!(parse_up_to(&"- x\n".repeat(20), 10).unwrap_err().kind.to_string(), told);
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, below) in ["b", "c", "d", "e", "f", "g"].into_iter().zip(["a", "b", "c", "d", "e", "f"]) {
            let aliases = vec![format!("*{below}"); 10].join(", ");
            bomb.push_str(&format!("{name}: &{name} [{aliases}]\n"));
        }
        assert!(parse(&bomb).is_err());
    }
}
