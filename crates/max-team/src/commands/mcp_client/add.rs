//! `mcp add` and `mcp add-json`.

use max_team_core::secret::{redact, redact_arguments};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::mcp::{self, is_address};
use serde_json::{Map, Value};

use super::Folder;
use crate::args::mcp_client::{AddServer, Scope, Transport};

/// A pair that a flag gives: `NAME=VALUE` or `NAME: VALUE`.
#[derive(Clone, Copy)]
enum Pair {
    Variable,
    Header,
}

impl Pair {
    fn read(self, text: &str) -> Result<(String, Value), CliError> {
        let (mark, form) = match self {
            Self::Variable => ('=', "NAME=VALUE"),
            Self::Header => (':', "NAME: VALUE"),
        };
        let (name, value) =
            text.split_once(mark).ok_or_else(|| CliError::said(Exit::Usage, |lang| lang.pair_form(text, form)))?;
        let name = name.trim();
        if !self.is_name(name) {
            let what = |lang: Lang| match self {
                Self::Variable => lang.a_variable(),
                Self::Header => lang.a_header(),
            };
            return Err(CliError::said(Exit::Usage, |lang| lang.pair_name(name, what(lang))));
        }
        Ok((name.to_owned(), Value::from(value.trim())))
    }

    fn is_name(self, name: &str) -> bool {
        let fits = |letter: char| match self {
            Self::Variable => letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-'),
            Self::Header => letter.is_ascii_graphic() && !"()<>@,;:\\\"/[]?={}".contains(letter),
        };
        !name.is_empty() && !name.starts_with('-') && name.chars().all(fits)
    }

    fn read_all(self, all: &[String]) -> Result<Map<String, Value>, CliError> {
        all.iter().map(|text| self.read(text)).collect()
    }
}

impl AddServer {
    /// The entry as a file holds it.
    pub(super) fn entry(&self) -> Result<Value, CliError> {
        let refused = |words: &dyn Fn(Lang) -> String| Err(CliError::said(Exit::Usage, words));
        let target = self.target.as_str();
        let looks_remote = target.contains("://");
        let transport = self.transport.unwrap_or(if looks_remote { Transport::Http } else { Transport::Stdio });
        let is_program = transport == Transport::Stdio;
        if !is_program && !target.contains("${") && !is_address(target) {
            return refused(&|lang| lang.not_an_address(target));
        }
        if is_program && !self.header.is_empty() {
            return refused(&|lang| lang.header_needs_address(target));
        }
        if !is_program && !self.env.is_empty() {
            return refused(&|lang| lang.env_needs_program(target));
        }
        if let Some(arg) = self.args.first().filter(|_| !is_program) {
            return refused(&|lang| lang.args_need_program(target, arg));
        }
        let (env, headers) = (Pair::Variable.read_all(&self.env)?, Pair::Header.read_all(&self.header)?);
        let mut entry = Map::new();
        if is_program {
            entry.insert("command".into(), target.into());
            entry.insert("args".into(), self.args.clone().into());
        } else {
            let kind = if transport == Transport::Sse { "sse" } else { "http" };
            // Without `--transport`, HTTP is tried first, then the older event stream.
            if self.transport.is_some() {
                entry.insert("type".into(), kind.into());
            }
            entry.insert("url".into(), target.into());
        }
        for (name, map) in [("env", env), ("headers", headers)] {
            if !map.is_empty() {
                entry.insert(name.into(), Value::Object(map));
            }
        }
        Ok(Value::Object(entry))
    }
}

/// The entry in a JSON text: servers' manuals often show a whole list (`{"mcpServers": {"NAME": …}}`) of one.
pub(super) fn entry_of(name: &str, json: Value) -> Value {
    let list = ["mcpServers", "servers"].iter().find_map(|key| json.get(key)).and_then(Value::as_object);
    let one = list.and_then(|list| list.get(name).or_else(|| list.values().next().filter(|_| list.len() == 1)));
    one.cloned().unwrap_or(json)
}

/// Writes an entry, and says what to do next.
pub(super) fn put(
    folder: &Folder<'_>,
    lang: Lang,
    scope: Scope,
    (name, entry): (&str, Value),
    force: bool,
) -> anyhow::Result<Exit> {
    let secrets = if scope == Scope::Project { literals(&entry) } else { Vec::new() };
    let added = mcp::add(folder.place, &folder.root, scope.list(), (name, entry), force)
        .map_err(|why| CliError::new(Exit::Config, why))?;
    let file = added.path.display().to_string();
    if added.was_there && !force {
        return Err(CliError::said(Exit::Usage, |lang| lang.server_exists(name, &file)).into());
    }
    added.warnings.iter().for_each(|warning| folder.place.tell(warning));
    for key in secrets {
        folder.place.tell(&lang.server_shared_secret(mcp::PROJECT_FILE, &key, variable(&key)));
    }
    let done = if added.was_there { lang.server_replaced(name, &file) } else { lang.server_added(name, &file) };
    let next = if scope == Scope::Project { lang.server_trust_next(name) } else { lang.server_try(name) };
    crate::commands::print(&format!("{done}\n{next}\n"))?;
    Ok(Exit::Ok)
}

/// Secrets that are written as they are: variables, headers and flags by name, and the address.
fn literals(entry: &Value) -> Vec<String> {
    let args = || entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let safe = redact_arguments(args());
    let before = std::iter::once("args").chain(args());
    let named = args().zip(&safe).zip(before).filter(|((word, safe), _)| word != safe).map(|((word, _), before)| {
        let flag = if before.starts_with('-') { before } else { "args" };
        word.split_once('=').map_or(flag, |(flag, _)| flag).to_owned()
    });
    let url = entry.get("url").and_then(Value::as_str).filter(|url| redact(url) != *url).map(|_| "url".to_owned());
    named.chain(url).chain(pairs(entry)).collect()
}

/// The variables and headers whose values are written as they are, by name.
fn pairs(entry: &Value) -> Vec<String> {
    let pairs = ["env", "headers"].into_iter().filter_map(|key| entry.get(key).and_then(Value::as_object)).flatten();
    let is_literal = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty() && !text.contains("${"));
    pairs.filter(|(_, value)| is_literal(value)).map(|(name, _)| name.clone()).collect()
}

/// The name of a variable for a header or a variable.
fn variable(name: &str) -> String {
    name.trim_start_matches('-')
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' })
        .collect()
}
