//! One entry of a list of MCP servers, as `.mcp.json` and its relatives write it.

use std::collections::BTreeMap;

use max_team_core::hash::Hash;
use max_team_core::mcp::{HttpTransport, McpServer, OauthClient, ServerGrant, is_server_name};
use max_team_core::secret::{redact, redact_arguments};
use serde_json::{Map, Value};

use crate::config::expand::{self, ExpandError};
use crate::config::{Env, duration, quote};
use crate::i18n::Lang;

/// Every key that an entry may have.
const KEYS: [&str; 19] = [
    "command",
    "args",
    "env",
    "url",
    "type",
    "transport",
    "headers",
    "oauth",
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

/// A server, and what is odd about its entry.
#[derive(Debug, Default)]
pub(super) struct ReadEntry {
    pub(super) server: McpServer,
    pub(super) warnings: Vec<String>,
    pub(super) is_disabled: bool,
}

/// Reads one entry; an error says why it cannot be used.
pub(super) fn read(name: &str, value: &Value, env: &Env, lang: Lang) -> Result<ReadEntry, String> {
    if !is_server_name(name) {
        return Err(lang.entry_name(quote(name)));
    }
    let Value::Object(map) = value else { return Err(lang.entry_no_map(name)) };
    let mut entry = Entry { name, map, env, lang, warnings: Vec::new() };
    for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        entry.warnings.push(lang.entry_unknown_key(name, quote(key), lang.near(key, KEYS)));
    }
    if map.contains_key("cwd") {
        entry.warnings.push(lang.entry_no_cwd(name));
    }
    let (command, url) = (entry.text("command")?, entry.text("url")?);
    if command.is_empty() == url.is_empty() {
        return Err(lang.entry_either(name));
    }
    // A variable that is not set is named already.
    if !url.is_empty() && !url.contains("${") && !is_address(&url) {
        return Err(entry.wrong("url", lang.wanted_address()));
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
        oauth: entry.oauth()?,
        call_ms: entry.time("timeout")?,
        connect_ms: entry.time("connectTimeout")?,
        tools: entry.words("tools")?,
        grant: ServerGrant {
            network: entry.switch("network")?.unwrap_or(defaults.network),
            project: entry.switch("writeProject")?,
            read: entry.paths("read")?,
            write: entry.paths("write")?,
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
        "" => redact_arguments(std::iter::once(text("command")).chain(args)).join(" "),
        url => redact(url).into_owned(),
    }
}

/// Whether a text is an address that a server can be at.
pub fn is_address(text: &str) -> bool {
    // The parser takes any number of slashes before the host.
    let has_host = text.split_once("://").is_some_and(|(_, rest)| !rest.starts_with('/'));
    has_host && url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
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
    lang: Lang,
    warnings: Vec<String>,
}

impl Entry<'_> {
    fn wrong(&self, key: &str, wanted: &str) -> String {
        self.lang.entry_wrong(self.name, key, wanted)
    }

    /// Fills in variables. One that is not set stays as it is written, and is named.
    fn filled(&mut self, key: &str, text: &str) -> String {
        match expand::text(text, self.env) {
            Ok(filled) => filled,
            Err(ExpandError::Unset(variable)) => {
                self.warnings.push(self.lang.entry_variable_unset(self.name, key, variable));
                text.to_owned()
            }
            Err(ExpandError::Form(form)) => {
                self.warnings.push(self.lang.entry_variable_form(self.name, key, quote(&form)));
                text.to_owned()
            }
        }
    }

    fn text(&mut self, key: &str) -> Result<String, String> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(self.filled(key, text)),
            Some(_) => Err(self.wrong(key, self.lang.wanted_text())),
        }
    }

    fn words(&mut self, key: &str) -> Result<Option<Vec<String>>, String> {
        let items = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.wrong(key, self.lang.wanted_texts())),
        };
        let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
        let texts = texts.ok_or_else(|| self.wrong(key, self.lang.wanted_texts()))?;
        Ok(Some(texts.into_iter().map(|text| self.filled(key, text)).collect()))
    }

    /// Paths; `~` is the user's home folder.
    fn paths(&mut self, key: &str) -> Result<Vec<String>, String> {
        let home = self.env.user();
        let path = |word: String| match (word.strip_prefix('~'), &home) {
            (Some(""), Some(home)) => home.display().to_string(),
            (Some(rest), Some(home)) if rest.starts_with('/') => format!("{}{rest}", home.display()),
            _ => word,
        };
        Ok(self.words(key)?.unwrap_or_default().into_iter().map(path).collect())
    }

    fn texts(&mut self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let map = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(self.wrong(key, self.lang.wanted_map())),
        };
        let mut texts = BTreeMap::new();
        for (name, value) in map {
            let text = match value {
                Value::String(text) => self.filled(&format!("{key}.{name}"), text),
                Value::Number(number) => number.to_string(),
                Value::Bool(is) => is.to_string(),
                _ => return Err(self.wrong(&format!("{key}.{name}"), self.lang.wanted_text())),
            };
            texts.insert(name.clone(), text);
        }
        Ok(texts)
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, String> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(is)) => Ok(Some(*is)),
            Some(_) => Err(self.wrong(key, self.lang.wanted_switch())),
        }
    }

    /// Milliseconds as a number, or a time such as `30s`.
    fn time(&self, key: &str) -> Result<Option<u64>, String> {
        let wanted = || self.wrong(key, self.lang.wanted_time());
        let ms = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => duration(text).and_then(|time| u64::try_from(time.as_millis()).ok()),
            Some(_) => None,
        };
        ms.filter(|ms| (1..=3_600_000).contains(ms)).map(Some).ok_or_else(wanted)
    }

    fn oauth(&mut self) -> Result<OauthClient, String> {
        let map = match self.map.get("oauth") {
            None | Some(Value::Null) => return Ok(OauthClient::default()),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(self.wrong("oauth", self.lang.wanted_oauth())),
        };
        let mut inner = Entry { name: self.name, map, env: self.env, lang: self.lang, warnings: Vec::new() };
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let port = map.get("callbackPort").filter(|port| !port.is_null());
        let callback_port = port.map(|port| port.as_u64().and_then(|port| u16::try_from(port).ok()));
        let oauth = OauthClient {
            client_id: some(inner.text("clientId")?),
            client_secret: some(inner.text("clientSecret")?),
            // Some programs write one text, others a list.
            scopes: match map.get("scopes") {
                Some(Value::String(all)) => all.split_whitespace().map(str::to_owned).collect(),
                _ => inner.words("scopes")?.unwrap_or_default(),
            },
            callback_port: callback_port
                .map(|port| port.ok_or_else(|| self.wrong("oauth.callbackPort", self.lang.wanted_port())))
                .transpose()?,
        };
        self.warnings.append(&mut inner.warnings);
        Ok(oauth)
    }

    fn transport(&mut self) -> Result<HttpTransport, String> {
        let key = if self.map.contains_key("type") { "type" } else { "transport" };
        match self.text(key)?.as_str() {
            "" | "stdio" => Ok(HttpTransport::Either),
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" => Ok(HttpTransport::Http),
            "sse" => Ok(HttpTransport::Sse),
            _ => Err(self.wrong(key, self.lang.wanted_transport())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(value: Value) -> Result<ReadEntry, String> {
        let env: Env = [("TOKEN", "t1"), ("HOME", "/home/u")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        read("x", &value, &env, Lang::En)
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
            (json!({ "url": "http://a", "type": "tcp" }), "`x.type` must be `stdio`, `http` or `sse`"),
            (
                json!({ "url": "ftp://a" }),
                "`x.url` must be an address that begins with http:// or https:// and names a host",
            ),
        ] {
            assert_eq!(entry(value.clone()).unwrap_err(), words, "{value}");
        }
        let warnings = entry(json!({ "command": "${NONE}/a", "comand": "a" })).unwrap().warnings;
        assert_eq!(
            warnings,
            ["`x`: unknown key `comand`, did you mean `command`?", "`x.command`: the variable `NONE` is not set"]
        );
        assert!(
            read("a b", &json!({ "command": "a" }), &Env::default(), Lang::En)
                .unwrap_err()
                .starts_with("`a b` is no name")
        );
    }

    #[test]
    fn paths_begin_at_the_home_folder() {
        let grant = entry(json!({ "command": "a", "read": ["~", "~/a", "~b", "c/~"] })).unwrap().server.grant;
        assert_eq!(grant.read, ["/home/u", "/home/u/a", "~b", "c/~"]);
    }

    #[test]
    fn addresses_have_a_scheme_of_the_web_and_a_host() {
        for (text, is) in [
            ("https://example.com/mcp", true),
            ("http://127.0.0.1:8080", true),
            ("http://", false),
            ("https:///mcp", false),
            ("ftp://a", false),
            ("example.com", false),
            ("http://a b", false),
        ] {
            assert_eq!(is_address(text), is, "{text}");
        }
    }
}
