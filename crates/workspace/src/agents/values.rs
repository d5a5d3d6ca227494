//! Parses single values of a definition, in all forms that users write.
//!
//! Every function takes one node; the caller reports what could not be parsed.

use std::str::FromStr as _;

use max_team_core::agent::{AgentBudget, CachePolicy, Constraints, Effort, Isolation, NotesScope, TeamRole};

use super::read::{LIST_MAX, unknown_key};
use crate::config::yaml::{Name, Node, Spot, Value};
use crate::config::{Count, Shape, Time, Usd, duration};
use crate::i18n::{Lang, Translated};

/// The keys of a `cache`.
pub(super) const CACHE: [&str; 2] = ["ttl", "keys"];
/// A number of rounds.
pub(super) type Rounds = Count<1, 10_000>;
/// Those of a `budget`.
pub(super) const BUDGET: [&str; 3] = ["usd", "tokens", "wall"];

/// Completes "expected …".
pub(super) fn wanted(key: &str, lang: Lang) -> String {
    let words = match key {
        "maxTurns" => return Rounds::wanted(lang),
        "max" => lang.wanted_tree(),
        "background" => lang.wanted_true_false(),
        "effort" => lang.wanted_effort(),
        "memory" => lang.wanted_notes_scope(),
        "isolation" => lang.wanted_worktree(),
        "cache" => lang.wanted_cache(),
        "budget" => lang.wanted_agent_budget(),
        "type" => lang.wanted_agent_place(),
        "tools" | "disallowedTools" | "skills" | "allowed_commands" => lang.wanted_word_list(),
        "owns" | "write_globs" => lang.wanted_patterns(),
        _ => lang.wanted_any_words(),
    };
    words.to_owned()
}

/// Words as they are written; a list of them is one text.
pub(super) fn text(node: &Node) -> Option<String> {
    match &node.value {
        Value::Scalar(_) => node.text().filter(|text| !text.is_empty()).map(str::to_owned),
        Value::List(items) => {
            let lines: Option<Vec<&str>> = items.iter().take(LIST_MAX).map(Node::text).collect();
            lines.filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n"))
        }
        Value::Map(_) => None,
    }
}

/// A list, or words with commas or blanks between them; what is in brackets stays together.
pub(super) fn spotted(node: &Node) -> Option<Vec<(String, Spot)>> {
    match &node.value {
        Value::Scalar(_) => Some(split(node.text()?).into_iter().map(|word| (word, node.spot)).collect()),
        Value::List(items) => {
            let words = items.iter().take(LIST_MAX).map(|item| Some((item.text()?.to_owned(), item.spot)));
            words.filter(|word| word.as_ref().is_none_or(|(word, _)| !word.is_empty())).collect()
        }
        Value::Map(_) => None,
    }
}

/// The same without places.
pub(super) fn words(node: &Node) -> Option<Vec<String>> {
    spotted(node).map(super::read::plain)
}

fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    // Some write a list as text: `"[a, b]"`.
    let line = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')).unwrap_or(line);
    for letter in line.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (matches!(letter, ',' | '，' | '、') || letter.is_whitespace()) {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(letter);
        }
    }
    words.push(word);
    let bare = |word: String| word.trim_matches(['"', '\'', '`']).trim().to_owned();
    words.into_iter().map(bare).filter(|word| !word.is_empty()).take(LIST_MAX).collect()
}

/// `Bash(git log:*)` as the tool and what is in the brackets.
pub(super) fn call(word: &str) -> (&str, Option<&str>) {
    match word.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end().trim_end_matches(')').trim())),
        None => (word.trim(), None),
    }
}

pub(super) fn entries(node: &Node) -> &[(Name, Node)] {
    match &node.value {
        Value::Map(entries) => entries,
        _ => &[],
    }
}

fn entry<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    entries(node).iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
}

fn named<T: Copy>(node: &Node, names: &[(&str, T)]) -> Option<T> {
    let word = node.text()?;
    names.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}

pub(super) fn effort(node: &Node) -> Option<Effort> {
    named(node, &Effort::NAMES).or_else(|| u32::from_str(node.text()?).ok().map(Effort::Tokens))
}

pub(super) fn memory(node: &Node) -> Option<NotesScope> {
    named(node, &NotesScope::NAMES)
}

pub(super) fn isolation(node: &Node) -> Option<Isolation> {
    named(node, &[("worktree", Isolation::Worktree), ("none", Isolation::None)])
}

pub(super) fn place(node: &Node) -> Option<TeamRole> {
    named(node, &[("main", TeamRole::Lead), ("sub", TeamRole::Expert), ("subagent", TeamRole::Expert)])
}

/// The unknown keys of a map: the place of each, and the warning about it.
pub(super) fn strange(node: &Node, key: &str, known: &[&'static str]) -> Vec<(Spot, Translated)> {
    let unknown = entries(node).iter().filter(|(name, _)| !known.contains(&name.text.as_str()));
    let told = |name: &Name| {
        let words = unknown_key(&name.text, known);
        (name.spot, Translated::new(|lang| lang.headed(format!("`{key}`"), words.get(lang))))
    };
    unknown.map(|(name, _)| told(name)).collect()
}

/// `{ttl, keys}`; the time in seconds, or with its unit.
pub(super) fn cache(node: &Node) -> Option<CachePolicy> {
    let ttl_s = duration(entry(node, "ttl")?.text()?)?.as_secs();
    let keys = entry(node, "keys").map_or_else(|| Some(Vec::new()), words)?;
    Some(CachePolicy { ttl_s, keys })
}

/// `{usd, tokens, wall}`, each if it is there.
pub(super) fn budget(node: &Node) -> Option<AgentBudget> {
    let Value::Map(_) = &node.value else { return None };
    let nano = entry(node, "usd").map(|node| max_team_llm::nano_dollars(Usd::read(node)?));
    let tokens = entry(node, "tokens").map(|node| u64::from_str(&node.text()?.replace('_', "")).ok());
    let wall = entry(node, "wall").map(|node| u64::try_from(Time::read(node)?.as_millis()).ok());
    let read = |value: Option<Option<u64>>| value.map_or(Some(None), |value| value.map(Some));
    Some(AgentBudget { nano: read(nano)?, tokens: read(tokens)?, wall_ms: read(wall)? })
}

/// Constraints that come in several pieces.
pub(super) fn merge(into: &mut Constraints, from: Constraints) {
    for (into, from) in [(&mut into.allowed_dirs, from.allowed_dirs), (&mut into.write_patterns, from.write_patterns)] {
        if let Some(from) = from {
            into.get_or_insert_default().extend(from);
        }
    }
    into.blocked_patterns.extend(from.blocked_patterns);
    into.allowed_hosts.extend(from.allowed_hosts);
    into.read_only |= from.read_only;
    into.foreign_commands |= from.foreign_commands;
    into.allowed_commands = from.allowed_commands.or(into.allowed_commands.take());
    into.max_tokens = from.max_tokens.or(into.max_tokens);
    into.timeout_ms = from.timeout_ms.or(into.timeout_ms);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::yaml;

    #[test]
    fn lists_come_in_many_shapes() {
        let table = [
            ("a, b", "a|b"),
            ("a,b,", "a|b"),
            ("a b", "a|b"),
            ("[a, b]", "a|b"),
            ("\"[a, 'b']\"", "a|b"),
            ("\n- a\n- \"b c\"", "a|b c"),
            ("Bash(git log:*), Read", "Bash(git log:*)|Read"),
            ("Agent(a, b) c", "Agent(a, b)|c"),
            ("'`a`'", "a"),
            ("a、b，c", "a|b|c"),
            ("\"\"", ""),
        ];
        for (written, want) in table {
            let node = yaml::parse(&format!("x: {written}\n")).unwrap();
            assert_eq!(words(&entries(&node)[0].1).unwrap().join("|"), want, "{written}");
        }
    }

    #[test]
    fn brackets_are_taken_apart() {
        assert_eq!(call("Bash(git log:*)"), ("Bash", Some("git log:*")));
        assert_eq!(
            (call("Read"), call("Agent()"), call("Bash(x")),
            (("Read", None), ("Agent", Some("")), ("Bash", Some("x")))
        );
    }
}
