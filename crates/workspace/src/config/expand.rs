//! `${NAME}` and `${NAME:-default}` inside values.
//!
//! Runs after parsing, on words only: never on keys, so a variable cannot add settings, only fill one.
//! `$${` stands for a literal `${`; a lone `$` is just a dollar. What a variable holds is not expanded again.

use super::env::Env;
use super::yaml::{Node, Spot, Value};

/// Why a value could not be filled in.
#[derive(Debug, PartialEq)]
pub enum ExpandError {
    /// The variable is not set and has no default.
    Unset(String),
    /// Not one of the forms we know.
    Form(String),
}

#[derive(Debug, PartialEq)]
enum TextPiece<'a> {
    Text(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
}

/// Fills in every word of a tree and returns the names that were asked for.
pub fn fill(node: &mut Node, env: &Env) -> Result<Vec<String>, (Spot, ExpandError)> {
    let mut names = Vec::new();
    walk(node, &mut |written| {
        let variables = pieces(written)?.into_iter().filter_map(|piece| match piece {
            TextPiece::Variable { name, .. } => Some(name.to_owned()),
            TextPiece::Text(_) => None,
        });
        names.extend(variables);
        text(written, env)
    })?;
    Ok(names)
}

/// Fills in one text.
pub fn text(written: &str, env: &Env) -> Result<String, ExpandError> {
    let mut filled = String::new();
    for piece in pieces(written)? {
        match piece {
            TextPiece::Text(text) => filled.push_str(text),
            TextPiece::Variable { name, default } => filled.push_str(value(name, default, env)?),
        }
    }
    Ok(filled)
}

/// As in a shell, `:-` also stands in for a variable that is set to nothing.
fn value<'a>(name: &str, default: Option<&'a str>, env: &'a Env) -> Result<&'a str, ExpandError> {
    let value = env.get(name).filter(|value| default.is_none() || !value.is_empty());
    value.or(default).ok_or_else(|| ExpandError::Unset(name.to_owned()))
}

/// The variables that a tree would read.
pub fn names(node: &Node) -> Vec<String> {
    let mut names = Vec::new();
    // A malformed reference reads nothing; it is reported when it is filled in.
    let _ = walk(&mut node.clone(), &mut |text| {
        for piece in pieces(text)? {
            if let TextPiece::Variable { name, .. } = piece {
                names.push(name.to_owned());
            }
        }
        Ok(text.to_owned())
    });
    names
}

type Rewrite<'a> = dyn FnMut(&str) -> Result<String, ExpandError> + 'a;

fn walk(node: &mut Node, rewrite: &mut Rewrite<'_>) -> Result<(), (Spot, ExpandError)> {
    match &mut node.value {
        Value::Scalar(scalar) if scalar.json.is_string() && scalar.text.contains("${") => {
            scalar.text = rewrite(&scalar.text).map_err(|flaw| (node.spot, flaw))?;
            scalar.json = scalar.text.clone().into();
        }
        Value::Scalar(_) => {}
        Value::Map(entries) => entries.iter_mut().try_for_each(|(_, node)| walk(node, rewrite))?,
        Value::List(items) => items.iter_mut().try_for_each(|node| walk(node, rewrite))?,
    }
    Ok(())
}

fn pieces(text: &str) -> Result<Vec<TextPiece<'_>>, ExpandError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            pieces.extend([TextPiece::Text(before), TextPiece::Text("${")]);
            rest = after;
            continue;
        }
        let form = || ExpandError::Form(format!("${{{}", after.split_inclusive('}').next().unwrap_or(after)));
        let (inside, after) = after.split_once('}').ok_or_else(form)?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(form());
        }
        pieces.extend([TextPiece::Text(before), TextPiece::Variable { name, default }]);
        rest = after;
    }
    pieces.push(TextPiece::Text(rest));
    Ok(pieces)
}

fn is_name(text: &str) -> bool {
    !text.starts_with(|first: char| first.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, ExpandError> {
        let env: Env = [("A", "1"), ("EMPTY", ""), ("NESTED", "${A}")].into_iter().collect();
        let mut node = Node::word(text);
        fill(&mut node, &env).map_err(|(_, flaw)| flaw)?;
        Ok(node.text().unwrap_or_default().to_owned())
    }

    #[test]
    fn forms() {
        let cases = [
            ("plain $A $", "plain $A $"),
            ("${A}", "1"),
            ("x${A}y${A}", "x1y1"),
            ("${B:-2}", "2"),
            ("${EMPTY:-2}", "2"),
            ("${EMPTY}", ""),
            ("${B:-}", ""),
            ("${B:-a:-b}", "a:-b"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("${NESTED}", "${A}"),
            ("汉${A}字", "汉1字"),
        ];
        for (text, expected) in cases {
            assert_eq!(filled(text), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn flaws() {
        assert_eq!(filled("${B}"), Err(ExpandError::Unset("B".to_owned())));
        for (text, form) in
            [("x ${A", "${A"), ("${}", "${}"), ("${1A}", "${1A}"), ("${A:?no} y", "${A:?no}"), ("${A-x}", "${A-x}")]
        {
            assert_eq!(filled(text), Err(ExpandError::Form(form.to_owned())), "{text}");
        }
    }

    #[test]
    fn trees_are_filled_but_never_their_keys() {
        let env: Env = [("A", "1")].into_iter().collect();
        let mut node = super::super::yaml::parse("${A}: [\"${A}\", {b: \"${A}\"}, 5]").unwrap();
        assert_eq!(names(&node), ["A", "A"]);
        assert_eq!(fill(&mut node, &env), Ok(vec!["A".to_owned(), "A".to_owned()]));
        assert_eq!(node.json(), serde_json::json!({"${A}": ["1", {"b": "1"}, 5]}));
    }
}
