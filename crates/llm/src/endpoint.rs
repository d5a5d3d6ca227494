//! Where a provider's requests go, and with which key.
//!
//! Base addresses are taken as people write them: with or without a trailing slash, with or without the version. Keys
//! live here and nowhere else; they never show in debug output, and [`Endpoint::redact`] removes them from text that a
//! server echoes.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use max_team_core::secret::{add_key, hide, redact};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use url::Url;

use crate::catalog::ProviderRow;
use crate::dialect::Dialect;

/// Header values shorter than this are settings (a version, a name), not secrets.
const SECRET_BYTES_MIN: usize = 16;

/// How a key is shown to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyStyle {
    /// `Authorization: Bearer …`.
    Bearer,
    /// A header of this name.
    Header(String),
}

/// Why an endpoint cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadEndpoint {
    /// The address is not valid.
    #[error("`{url}` is not an address for `{provider}`: {problem}")]
    Url {
        provider: String,
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A header cannot be sent.
    #[error("the header `{name}` for `{provider}` cannot be sent: it holds characters that headers may not")]
    Header {
        provider: String,
        /// The header; its value stays secret.
        name: String,
    },
}

/// Where a provider's requests go, and with which key.
#[derive(Clone)]
pub struct Endpoint {
    provider: ProviderRow,
    uri: Uri,
    path: Uri,
    /// What the `Host` header says.
    host: HeaderValue,
    origin: String,
    is_loopback: bool,
    headers: HeaderMap,
    secrets: Vec<SecretString>,
    has_key: bool,
}

impl Endpoint {
    /// An endpoint of a provider, at its own address unless another is given.
    pub fn new(provider: &ProviderRow, base_url: Option<&str>, key: Option<SecretString>) -> Result<Self, BadEndpoint> {
        // A key from a file ends in a newline, and an empty variable is no key.
        let key = key.map(|key| SecretString::from(key.expose_secret().trim()));
        let key = key.filter(|key| !key.expose_secret().is_empty());
        let base = base_url.unwrap_or(&provider.base_url);
        let bad = |problem| BadEndpoint::Url { provider: provider.name.clone(), url: base.to_owned(), problem };
        let url = address(base, provider.dialect).map_err(bad)?;
        let (uri, path, host) = spellings(&url).map_err(bad)?;
        let mut endpoint = Self {
            provider: provider.clone(),
            origin: url.origin().ascii_serialization(),
            is_loopback: is_loopback(&url),
            uri,
            path,
            host,
            headers: HeaderMap::new(),
            secrets: Vec::new(),
            has_key: key.is_some(),
        };
        for (name, value) in &provider.headers {
            endpoint.header(name, value)?;
        }
        if let Some(key) = key {
            match &provider.key {
                KeyStyle::Bearer => {
                    endpoint.header(AUTHORIZATION.as_str(), &format!("Bearer {}", key.expose_secret()))?
                }
                KeyStyle::Header(name) => endpoint.header(name, key.expose_secret())?,
            }
            add_key(key.expose_secret());
            endpoint.secrets.push(key);
        }
        // The longest first, so that a secret inside another does not leave half of it.
        endpoint.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        Ok(endpoint)
    }

    /// The provider's row.
    pub fn provider(&self) -> &ProviderRow {
        &self.provider
    }

    /// The full address of requests.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The address as the host itself is told it.
    pub(crate) fn path(&self) -> &Uri {
        &self.path
    }

    /// The host, with its port where that is not the usual one.
    pub(crate) fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// Endpoints of the same origin share connections.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether it is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// The variables that could hold the key that is missing; none if none is needed. A server on this machine, or
    /// on the user's own network, decides for itself.
    pub fn missing_key(&self) -> Option<String> {
        let needed = !self.has_key && !self.provider.local && !self.is_loopback() && !self.provider.key_env.is_empty();
        needed.then(|| self.provider.key_env.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or "))
    }

    /// Takes every secret of this endpoint out of a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        let known = |text: String, secret: &SecretString| hide(&text, secret.expose_secret()).into_owned();
        redact(&self.secrets.iter().fold(text.to_owned(), known)).into_owned()
    }

    fn header(&mut self, name: &str, value: &str) -> Result<(), BadEndpoint> {
        let bad = || BadEndpoint::Header { provider: self.provider.name.clone(), name: name.to_owned() };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut content = HeaderValue::from_str(value.trim()).map_err(|_| bad())?;
        content.set_sensitive(true);
        self.headers.insert(header, content);
        if value.len() >= SECRET_BYTES_MIN {
            self.secrets.push(SecretString::from(value.trim()));
        }
        Ok(())
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let local_name = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    local_name || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider.name)
            .field("uri", &self.uri)
            .field("has_key", &self.has_key)
            .finish_non_exhaustive()
    }
}

/// The full address, from a base address in any of its usual spellings.
fn address(base: &str, dialect: Dialect) -> Result<Url, String> {
    let mut url = Url::parse(base.trim()).map_err(|error| format!("{error}; write it like `https://host/v1`"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("it must begin with `https://` or `http://`".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds a user or a password; give the key as a key".into());
    }
    let path = url.path().trim_matches('/');
    let path = path.strip_suffix(dialect.path()).unwrap_or(path).trim_end_matches('/');
    let is_version =
        |segment: &str| segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let version = if path.split('/').any(is_version) { "" } else { "v1/" };
    let slash = if path.is_empty() { "" } else { "/" };
    url.set_path(&format!("/{path}{slash}{version}{}", dialect.path()));
    Ok(url)
}

/// An address as HTTP wants it: whole, without its host, and the host alone.
fn spellings(url: &Url) -> Result<(Uri, Uri, HeaderValue), String> {
    let uri: Uri = url.as_str().parse().map_err(|error| format!("{error}"))?;
    let path = uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let host = HeaderValue::from_str(host).map_err(|error| error.to_string())?;
    Ok((uri, path, host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn base_addresses_are_taken_as_written() {
        let (messages, chat) = (Dialect::Anthropic, Dialect::OpenaiChat);
        let table = [
            ("https://api.anthropic.com", messages, "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/", messages, "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1", messages, "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/", messages, "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/messages", messages, "https://api.anthropic.com/v1/messages"),
            ("https://api.deepseek.com/anthropic", messages, "https://api.deepseek.com/anthropic/v1/messages"),
            ("http://127.0.0.1:11434/v1", chat, "http://127.0.0.1:11434/v1/chat/completions"),
            ("http://127.0.0.1:11434", chat, "http://127.0.0.1:11434/v1/chat/completions"),
            ("https://open.bigmodel.cn/api/paas/v4", chat, "https://open.bigmodel.cn/api/paas/v4/chat/completions"),
            ("https://x/v1beta/openai/", chat, "https://x/v1beta/openai/chat/completions"),
            ("https://x/openai/v1?api-version=1", chat, "https://x/openai/v1/chat/completions?api-version=1"),
            ("https://x/vision", chat, "https://x/vision/v1/chat/completions"),
        ];
        for (base, dialect, want) in table {
            assert_eq!(address(base, dialect).unwrap().as_str(), want, "{base}");
        }
        for base in ["api.anthropic.com", "ftp://x", "", "https://me:secret@x"] {
            assert!(address(base, messages).is_err(), "{base}");
        }
    }

    #[test]
    fn keys_stay_inside() {
        let provider = Catalog::builtin().provider("openai").unwrap();
        let key = SecretString::from("sk-verysecretkey-0123456789\n");
        let endpoint = Endpoint::new(provider, None, Some(key)).unwrap();
        assert!(!format!("{endpoint:?} {:?}", endpoint.headers()).contains("verysecret"));
        let echo = "bad key sk-verysecretkey-0123456789 in `Bearer sk-verysecretkey-0123456789`";
        assert_eq!(endpoint.redact(echo), "bad key [redacted] in `[redacted]`");
        let bad = Endpoint::new(provider, None, Some(SecretString::from("sk-\u{1}verysecret"))).unwrap_err();
        assert!(!bad.to_string().contains("verysecret"), "{bad}");
    }

    #[test]
    fn a_key_is_missed_only_where_one_is_needed() {
        let catalog = Catalog::builtin();
        let missing = |name, base| Endpoint::new(catalog.provider(name).unwrap(), base, None).unwrap().missing_key();
        assert_eq!(missing("anthropic", None), Some("`ANTHROPIC_API_KEY`".into()));
        let empty = Endpoint::new(catalog.provider("openai").unwrap(), None, Some(SecretString::from(" "))).unwrap();
        assert_eq!(empty.missing_key(), Some("`OPENAI_API_KEY`".into()));
        assert_eq!(missing("anthropic", Some("http://localhost:9")), None);
        assert_eq!(missing("anthropic", Some("http://[::1]:9")), None);
        assert_eq!(missing("ollama", Some("http://10.0.0.5:11434")), None);
    }
}
