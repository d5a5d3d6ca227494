//! One entry of a list of MCP servers, as `.mcp.json` and its relatives write it.

use std::collections::BTreeMap;

use max_team_core::hash::Hash;
use max_team_core::mcp::{HttpTransport, McpServer, ServerGrant, is_server_name};
use max_team_core::suggest::did_you_mean;
use serde_json::{Map, Value};

use crate::config::expand::{self, ExpandError};
use crate::config::{Env, duration, quote};

/// Every key that an entry may have.
const KEYS: [&str; 18] = [
    "command",
    "args",
    "env",
    "url",
    "type",
    "transport",
    "headers",
    "timeout",
    "connectTimeout",
    "tools",
    "network",
    "writeProject",
    "read",
    "write",
    "description",
    "disabled",
    "alwaysLoad",
    "cwd",
];
/// Keys that other programs write and that need nothing here.
const QUIET: [&str; 2] = ["description", "alwaysLoad"];

/// A server, and what is odd about its entry.
#[derive(Debug, Default)]
pub(super) struct ReadEntry {
    pub(super) server: McpServer,
    pub(super) warnings: Vec<String>,
    pub(super) is_disabled: bool,
}

/// Reads one entry; an error says why it cannot be used.
pub(super) fn read(name: &str, value: &Value, env: &Env) -> Result<ReadEntry, String> {
    if !is_server_name(name) {
        return Err(format!(
            "`{}` is no name for a server: use letters, digits, `-`, and single `_` between them",
            quote(name)
        ));
    }
    let Value::Object(map) = value else { return Err(format!("`{name}` is no map of `command` or `url`")) };
    let mut entry = Entry { name, map, env, warnings: Vec::new() };
    for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        entry.warnings.push(format!("`{name}`: unknown key `{}`{}", quote(key), did_you_mean(key, KEYS)));
    }
    for key in map.keys().filter(|key| *key == "cwd" && !QUIET.contains(&key.as_str())) {
        entry.warnings.push(format!("`{name}`: `{key}` is not used: servers start in the project's folder"));
    }
    let (command, url) = (entry.text("command")?, entry.text("url")?);
    if command.is_empty() == url.is_empty() {
        return Err(format!("`{name}` needs either `command` or `url`"));
    }
    let defaults = ServerGrant::default();
    let server = McpServer {
        name: name.to_owned(),
        command,
        args: entry.words("args")?.unwrap_or_default(),
        env: entry.texts("env")?,
        transport: entry.transport()?,
        url,
        headers: entry.texts("headers")?,
        call_ms: entry.time("timeout")?,
        connect_ms: entry.time("connectTimeout")?,
        tools: entry.words("tools")?,
        grant: ServerGrant {
            network: entry.switch("network")?.unwrap_or(defaults.network),
            project: entry.switch("writeProject")?.unwrap_or(defaults.project),
            read: entry.words("read")?.unwrap_or_default(),
            write: entry.words("write")?.unwrap_or_default(),
        },
        shown: shown(map),
        written: Some(identity(map)),
    };
    let is_disabled = entry.switch("disabled")?.unwrap_or_default();
    Ok(ReadEntry { server, warnings: entry.warnings, is_disabled })
}

/// The program with its arguments, or the address, with variables as they are written: their values may be keys.
fn shown(map: &Map<String, Value>) -> String {
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    let args = map.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    match text("url") {
        "" => std::iter::once(text("command")).chain(args).collect::<Vec<_>>().join(" "),
        url => url.to_owned(),
    }
}

/// A hash of the entry as it is written, without the keys that only bound it.
fn identity(map: &Map<String, Value>) -> Hash {
    const BOUNDS: [&str; 6] = ["timeout", "connectTimeout", "tools", "disabled", "description", "alwaysLoad"];
    let mut fields: Vec<(&String, &Value)> = map.iter().filter(|(key, _)| !BOUNDS.contains(&key.as_str())).collect();
    fields.sort_by(|one, other| one.0.cmp(other.0));
    Hash::of(serde_json::to_vec(&fields).unwrap_or_default())
}

struct Entry<'a> {
    name: &'a str,
    map: &'a Map<String, Value>,
    env: &'a Env,
    warnings: Vec<String>,
}

impl Entry<'_> {
    fn wrong(&self, key: &str, wanted: &str) -> String {
        format!("`{}.{key}` must be {wanted}", self.name)
    }

    /// Fills in variables. One that is not set stays as it is written, and is named.
    fn filled(&mut self, key: &str, text: &str) -> String {
        match expand::text(text, self.env) {
            Ok(filled) => filled,
            Err(ExpandError::Unset(variable)) => {
                self.warnings.push(format!("`{}.{key}`: the variable `{variable}` is not set", self.name));
                text.to_owned()
            }
            Err(ExpandError::Form(form)) => {
                self.warnings.push(format!("`{}.{key}`: `{}` is no variable", self.name, quote(&form)));
                text.to_owned()
            }
        }
    }

    fn text(&mut self, key: &str) -> Result<String, String> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(self.filled(key, text)),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    fn words(&mut self, key: &str) -> Result<Option<Vec<String>>, String> {
        let items = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.wrong(key, "a list of texts")),
        };
        let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
        let texts = texts.ok_or_else(|| self.wrong(key, "a list of texts"))?;
        Ok(Some(texts.into_iter().map(|text| self.filled(key, text)).collect()))
    }

    fn texts(&mut self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let map = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(self.wrong(key, "a map of texts")),
        };
        let mut texts = BTreeMap::new();
        for (name, value) in map {
            let text = match value {
                Value::String(text) => self.filled(&format!("{key}.{name}"), text),
                Value::Number(number) => number.to_string(),
                Value::Bool(is) => is.to_string(),
                _ => return Err(self.wrong(&format!("{key}.{name}"), "a text")),
            };
            texts.insert(name.clone(), text);
        }
        Ok(texts)
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, String> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(is)) => Ok(Some(*is)),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    /// Milliseconds as a number, or a time such as `30s`.
    fn time(&self, key: &str) -> Result<Option<u64>, String> {
        let wanted = || self.wrong(key, "a number of milliseconds, or a time such as `30s`");
        let ms = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => duration(text).and_then(|time| u64::try_from(time.as_millis()).ok()),
            Some(_) => None,
        };
        ms.filter(|ms| (1..=3_600_000).contains(ms)).map(Some).ok_or_else(wanted)
    }

    fn transport(&mut self) -> Result<HttpTransport, String> {
        let key = if self.map.contains_key("type") { "type" } else { "transport" };
        match self.text(key)?.as_str() {
            "" | "stdio" => Ok(HttpTransport::Either),
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" => Ok(HttpTransport::Http),
            "sse" => Ok(HttpTransport::Sse),
            _ => Err(self.wrong(key, "`stdio`, `http` or `sse`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(value: Value) -> Result<ReadEntry, String> {
        let env: Env = [("TOKEN".to_owned(), "t1".to_owned())].into_iter().collect();
        read("x", &value, &env)
    }

    #[test]
    fn entries_of_other_programs_are_understood() {
        let read = entry(json!({
            "command": "npx", "args": ["-y", "${PACKAGE:-@a/b}"], "env": { "T": "${TOKEN}", "N": 1 }, "timeout": 5000,
        }));
        let server = read.unwrap().server;
        assert_eq!((server.target().as_str(), server.call_ms), ("npx -y ${PACKAGE:-@a/b}", Some(5_000)));
        assert_eq!(server.args, ["-y", "@a/b"]);
        assert_eq!(server.env, [("N".to_owned(), "1".to_owned()), ("T".to_owned(), "t1".to_owned())].into());
        let read = entry(json!({ "url": "https://h/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } })).unwrap();
        assert_eq!((read.server.transport, read.server.is_local()), (HttpTransport::Either, false));
        assert_eq!(read.server.headers["Authorization"], "Bearer t1");
        let read = entry(json!({ "type": "sse", "url": "https://h/sse", "timeout": "2m" })).unwrap();
        assert_eq!((read.server.transport, read.server.call_ms), (HttpTransport::Sse, Some(120_000)));
    }

    #[test]
    fn odd_entries_are_named() {
        for (value, words) in [
            (json!(1), "`x` is no map of `command` or `url`"),
            (json!({}), "`x` needs either `command` or `url`"),
            (json!({ "command": "a", "url": "b" }), "`x` needs either `command` or `url`"),
            (json!({ "command": ["a"] }), "`x.command` must be a text"),
            (json!({ "command": "a", "args": "b" }), "`x.args` must be a list of texts"),
            (
                json!({ "command": "a", "timeout": 0 }),
                "`x.timeout` must be a number of milliseconds, or a time such as `30s`",
            ),
            (json!({ "url": "a", "type": "tcp" }), "`x.type` must be `stdio`, `http` or `sse`"),
        ] {
            assert_eq!(entry(value.clone()).unwrap_err(), words, "{value}");
        }
        let warnings = entry(json!({ "command": "${NONE}/a", "comand": "a" })).unwrap().warnings;
        assert_eq!(
            warnings,
            ["`x`: unknown key `comand`, did you mean `command`?", "`x.command`: the variable `NONE` is not set"]
        );
        assert!(read("a b", &json!({ "command": "a" }), &Env::default()).unwrap_err().starts_with("`a b` is no name"));
    }
}
