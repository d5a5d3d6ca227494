//! Parses the file of a skill.
//!
//! The format is the portable one with extensions of other programs. Reading is lenient: a wrong name is a warning, an
//! unknown key is a warning with the key that was probably meant, and a key that has a meaning only in other programs
//! is reported as idle. Only a file with unreadable front matter, or without a description, is no skill.

use std::path::Path;

use max_team_core::agent::Effort;
use max_team_core::delegation::tool_filter::GENERAL;
use max_team_core::suggest::did_you_mean;
use max_team_core::text::quote;

use super::{Fork, Head, NAME_CHARS_MAX, Needs, Scope, Skill, State};
use crate::front_matter::{self, ParsedFile};
use crate::yaml::{self, Node, Value};

/// Entries of one list.
const LIST_MAX: usize = 256;
/// Characters of a description, by the portable format.
const DESCRIPTION_CHARS: usize = 1_024;
/// Names of the program whose extensions stand under these keys.
const ADDED: [&str; 4] = ["openclaw", "clawdbot", "moltbot", "clawdis"];

/// Keys that have a meaning only with `context: fork`.
const FORKED: [&str; 3] = ["agent", "model", "effort"];

/// All keys, and whether they have a meaning here.
const KEYS: [(&str, bool); 26] = [
    ("name", true),
    ("description", true),
    ("license", true),
    ("compatibility", true),
    ("metadata", true),
    ("allowed-tools", true),
    ("disallowed-tools", true),
    ("when_to_use", true),
    ("argument-hint", true),
    ("arguments", true),
    ("disable-model-invocation", true),
    ("user-invocable", true),
    ("requires", true),
    ("os", true),
    ("always", true),
    ("version", true),
    ("homepage", true),
    ("model", true),
    ("effort", true),
    ("context", true),
    ("agent", true),
    ("paths", true),
    ("background", false),
    ("hooks", false),
    ("shell", false),
    ("command-dispatch", false),
];
/// Further keys without a meaning here, for which no correction is suggested.
const IDLE: [&str; 4] = ["command-tool", "command-arg-mode", "install", "primaryEnv"];

/// Reads a skill's file, or says why it is none. `called` is the name of its folder or file.
pub fn read(bytes: &[u8], file: &Path, called: &str, scope: Scope) -> Result<Skill, String> {
    let is_known = |key: &str| KEYS.iter().any(|(known, _)| *known == key);
    let whole = String::from_utf8_lossy(bytes);
    let page = front_matter::read(&whole, is_known)
        .map_err(|fault| format!("line {}, column {}: {}", fault.spot.line, fault.spot.col, fault.kind))?;
    if page.front.as_ref().is_some_and(|front| !matches!(front.value, Value::Map(_)) && !front.is_null()) {
        return Err("what stands between the `---` lines must be `key: value` lines".to_owned());
    }
    let mut warnings = Vec::new();
    if page.is_mended {
        warnings.push("its front matter is no YAML as it stands and was read kindly".to_owned());
    }
    let description = text(&page, "description").filter(|words| !words.is_empty());
    let Some(description) = description else {
        let words =
            if page.front.is_some() { "it has no `description`" } else { "it has no front matter (`---` lines)" };
        return Err(format!("{words}; say what it is for and when to use it"));
    };
    if description.chars().count() > DESCRIPTION_CHARS {
        warnings.push(format!("`description` is longer than {DESCRIPTION_CHARS} characters"));
    }
    let when = text(&page, "when_to_use").or_else(|| text(&page, "when-to-use")).filter(|words| !words.is_empty());
    let description = match when {
        Some(when) => format!("{description} {when}"),
        None => description,
    };
    let name = name(&page, called, &mut warnings);
    let head = head(&page, &mut warnings);
    Ok(Skill {
        name,
        description,
        scope,
        file: file.to_path_buf(),
        folder: None,
        head,
        first_line: front_matter::first_line(&whole),
        contract: None,
        warnings,
        state: State::Ready,
    })
}

/// Its own name if it can be written after a slash; else the name of its folder.
fn name(page: &ParsedFile, called: &str, warnings: &mut Vec<String>) -> String {
    let Some(own) = text(page, "name").filter(|name| !name.is_empty()) else {
        warnings.push(format!("it has no `name`; it is called `{}` like its folder or file", quote(called)));
        return called.to_owned();
    };
    if !is_name(&own) {
        warnings.push(format!(
            "`name: {}` cannot be written after a `/`; it is called `{}` like its folder or file",
            quote(&own),
            quote(called)
        ));
        return called.to_owned();
    }
    if own != called {
        warnings.push(format!("its name is `{own}` and its folder or file is called `{}`", quote(called)));
    } else if !is_portable(&own) {
        warnings.push(format!("other programs take only small letters, digits and single `-` in a name, not `{own}`"));
    }
    own
}

/// Whether a name can be written in a message and found again.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
    let starts = name.chars().next().is_some_and(char::is_alphanumeric);
    starts && name.chars().all(fits) && name.chars().count() <= NAME_CHARS_MAX && !matches!(name, "all" | "none")
}

fn is_portable(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.bytes().all(fits) && !name.starts_with('-') && !name.ends_with('-') && !name.contains("--")
}

fn head(page: &ParsedFile, warnings: &mut Vec<String>) -> Head {
    let fork = fork(page, warnings);
    let mut idle = Vec::new();
    for (key, _) in page.entries() {
        let known = KEYS.iter().find(|(name, _)| *name == spelled(&key.text));
        match known {
            Some((name, _)) if fork.is_none() && FORKED.contains(name) => idle.push((*name).to_owned()),
            Some((_, true)) => {}
            Some((name, false)) => idle.push((*name).to_owned()),
            None if IDLE.contains(&key.text.as_str()) => idle.push(key.text.clone()),
            None => {
                let near = did_you_mean(&key.text, KEYS.iter().map(|(name, _)| *name));
                let name = quote(&key.text);
                warnings.push(format!("line {}: `{name}` is no key of a skill{near}", key.spot.line));
            }
        }
    }
    let flag = |key: &str, usual: bool, warnings: &mut Vec<String>| match get(page, key) {
        None => usual,
        Some(node) => truth(node).unwrap_or_else(|| {
            warnings.push(format!("line {}: `{key}` must be `true` or `false`", node.spot.line));
            usual
        }),
    };
    Head {
        argument_hint: hint(page),
        arguments: get(page, "arguments").map(words).unwrap_or_default(),
        for_models: !flag("disable-model-invocation", false, warnings),
        for_users: flag("user-invocable", true, warnings),
        tools: get(page, "allowed-tools").map(pieces).unwrap_or_default(),
        without_tools: get(page, "disallowed-tools").map(pieces).unwrap_or_default(),
        needs: needs(page),
        license: text(page, "license"),
        compatibility: text(page, "compatibility"),
        fork,
        paths: get(page, "paths").map(pieces).unwrap_or_default(),
        idle,
    }
}

/// The agent that carries the skill out, if the file says `context: fork`.
fn fork(page: &ParsedFile, warnings: &mut Vec<String>) -> Option<Fork> {
    let node = get(page, "context")?;
    if node.text().is_none_or(|word| !word.eq_ignore_ascii_case("fork")) {
        warnings.push(format!("line {}: `context` can only be `fork`", node.spot.line));
        return None;
    }
    let named = |key: &str| text(page, key).filter(|word| !word.is_empty());
    let agent = match named("agent").map(|name| name.to_lowercase()) {
        // Other programs call the agent with all tools `general-purpose`.
        None => GENERAL.to_owned(),
        Some(name) if name == "general-purpose" => GENERAL.to_owned(),
        Some(name) => name,
    };
    let effort = named("effort").and_then(|word| {
        let level = Effort::NAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, level)| *level);
        let level = level.or_else(|| word.parse().ok().map(Effort::Tokens));
        if level.is_none() {
            let names = Effort::NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            warnings.push(format!("`effort: {}` is none of {names} and no number of tokens", quote(&word)));
        }
        level
    });
    Some(Fork { agent, model: named("model").filter(|name| name != "inherit"), effort })
}

/// A key in the spelling of the format: authors mix hyphens and underscores.
fn spelled(key: &str) -> String {
    match key {
        "when-to-use" => "when_to_use".to_owned(),
        "allowedTools" | "tools" => "allowed-tools".to_owned(),
        "disallowedTools" => "disallowed-tools".to_owned(),
        "when_to_use" => key.to_owned(),
        other => other.replace('_', "-"),
    }
}

fn get<'a>(page: &'a ParsedFile, key: &str) -> Option<&'a Node> {
    page.entries().iter().find(|(name, _)| spelled(&name.text) == key).map(|(_, node)| node)
}

fn text(page: &ParsedFile, key: &str) -> Option<String> {
    get(page, key).and_then(Node::text).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// `[issue] [priority]` is a hint that YAML takes for a list.
fn hint(page: &ParsedFile) -> Option<String> {
    let node = get(page, "argument-hint")?;
    match &node.value {
        Value::List(_) => Some(format!("[{}]", words(node).join(", "))),
        _ => node.text().map(str::to_owned),
    }
}

fn truth(node: &Node) -> Option<bool> {
    match node.text()?.to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// A list, or a text with items separated by blanks or commas.
fn words(node: &Node) -> Vec<String> {
    match &node.value {
        Value::List(items) => items.iter().take(LIST_MAX).filter_map(Node::text).map(str::to_owned).collect(),
        _ => {
            let text = node.text().unwrap_or_default();
            let words = text.split([',', ' ', '\n', '\t']).filter(|word| !word.is_empty());
            words.take(LIST_MAX).map(str::to_owned).collect()
        }
    }
}

/// Like `words`, but a text in parentheses or braces is part of its item: `Bash(git add:*), Read`, `src/*.{ts,tsx}`.
fn pieces(node: &Node) -> Vec<String> {
    if let Value::List(_) = node.value {
        return words(node);
    }
    let (mut found, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    for letter in node.text().unwrap_or_default().chars() {
        match letter {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter == ',' || letter.is_whitespace()) {
            found.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        } else {
            word.push(letter);
        }
    }
    found.extend(Some(word).filter(|word| !word.is_empty()));
    found.truncate(LIST_MAX);
    found
}

/// Its requirements: at the top level, or under the key of the program that defined them.
fn needs(page: &ParsedFile) -> Needs {
    let mut needs = Needs::default();
    let top: Vec<(&str, &Node)> = page
        .entries()
        .iter()
        .map(|(name, node)| (name.text.as_str(), node))
        .filter(|(key, _)| *key != "metadata")
        .collect();
    add(&mut needs, &top);
    let Some(Value::Map(metadata)) = page.get("metadata").map(|node| &node.value) else { return needs };
    for (_, node) in metadata.iter().filter(|(name, _)| ADDED.contains(&name.text.as_str())) {
        // Some write the map as a text.
        let inner = node.text().and_then(|text| yaml::parse(text).ok());
        let node = inner.as_ref().unwrap_or(node);
        if let Value::Map(entries) = &node.value {
            let entries: Vec<(&str, &Node)> = entries.iter().map(|(name, node)| (name.text.as_str(), node)).collect();
            add(&mut needs, &entries);
        }
    }
    needs
}

fn add(needs: &mut Needs, entries: &[(&str, &Node)]) {
    for (key, node) in entries {
        match (*key, &node.value) {
            ("os", _) => needs.os.extend(words(node)),
            ("always", _) => needs.always |= truth(node).unwrap_or(false),
            ("requires", Value::Map(lists)) => {
                for (name, node) in lists {
                    match name.text.as_str() {
                        "bins" => needs.bins.extend(words(node)),
                        "anyBins" | "any_bins" => needs.any_bins.extend(words(node)),
                        "env" => needs.env.extend(words(node)),
                        "config" => needs.config.extend(words(node)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
