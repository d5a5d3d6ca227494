//! Finds the proxy for a host: the one that the environment or the system names.
//!
//! If a proxy is named, nothing is sent without it: an address that cannot be understood is an error. The error does
//! not show the address, because a password may be in it.

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

const ALL: [&str; 2] = ["ALL_PROXY", "all_proxy"];
const HTTP: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
const HTTPS: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const NONE: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// What the environment and the system say of proxies.
#[derive(Debug)]
pub(super) struct Proxies {
    matcher: Matcher,
    /// The variables whose addresses are not understood: for plain requests, and for those over TLS.
    odd: [Option<&'static str>; 2],
    /// The hosts that are reached without a proxy.
    none: String,
}

impl Proxies {
    pub(super) fn from_system() -> Self {
        // In a CGI process a request could set `HTTP_PROXY` by a header, so no variable counts; the matcher ignores
        // them, too.
        let is_cgi = std::env::var_os("REQUEST_METHOD").is_some();
        let lossy = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self::by(Matcher::from_system(), |name| if is_cgi { None } else { lossy(name) })
    }

    /// Uses these variables instead of the environment.
    #[cfg(test)]
    pub(super) fn of(variables: &[(&str, &str)]) -> Self {
        let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let value = |names| first(&get, names).map(|(_, value)| value).unwrap_or_default();
        let matcher = Matcher::builder().all(value(ALL)).http(value(HTTP)).https(value(HTTPS)).no(value(NONE));
        Self::by(matcher.build(), get)
    }

    fn by(matcher: Matcher, get: impl Fn(&str) -> Option<String>) -> Self {
        let odd = [HTTP, HTTPS].map(|own| {
            let named = |names| first(&get, names).filter(|(_, value)| !value.is_empty());
            let (name, value) = named(own).or_else(|| named(ALL))?;
            (!is_understood(&value)).then_some(name)
        });
        let none = first(&get, NONE).map(|(_, value)| value).unwrap_or_default();
        Self { matcher, odd, none }
    }

    /// The proxy for this host; `None` if it is reached directly. An error says what has to be corrected first.
    pub(super) fn to(&self, host: &Uri) -> Result<Option<Intercept>, String> {
        // The matcher takes a star for a host name.
        if self.none.split(',').any(|part| part.trim() == "*") {
            return Ok(None);
        }
        let [plain, secure] = self.odd;
        match if is_secure(host) { secure } else { plain } {
            Some(name) if self.is_proxied(host) => Err(format!(
                "the proxy in `{name}` is not understood, and nothing is sent without it; write `http://HOST:PORT` \
                 (or `https`, `socks5`, `socks5h`, `socks4`, `socks4a`), a name and a password as `NAME:PASSWORD@` before the host, \
                 with `%40` for an `@` in them, `%2F` for `/`, `%3A` for `:` and `%23` for `#`"
            )),
            _ => Ok(self.matcher.intercept(host)),
        }
    }

    /// Whether any proxy is used for this host.
    fn is_proxied(&self, host: &Uri) -> bool {
        Matcher::builder().all("http://proxy.test").no(&self.none).build().intercept(host).is_some()
    }
}

pub(super) fn is_secure(to: &Uri) -> bool {
    to.scheme_str() == Some("https")
}

/// The first of these names that is set, even if to nothing.
fn first(get: &impl Fn(&str) -> Option<String>, names: [&'static str; 2]) -> Option<(&'static str, String)> {
    names.into_iter().find_map(|name| Some((name, get(name)?)))
}

fn is_understood(value: &str) -> bool {
    let proxy = Matcher::builder().all(value).build().intercept(&Uri::from_static("http://host.test/"));
    proxy.as_ref().and_then(|proxy| proxy.uri().authority()).is_some_and(|at| {
        // What is no port would be passed over, and a password that holds an `@` or a `/` cuts the address in two.
        (at.as_str() == at.host() || at.port_u16().is_some()) && value.matches('@').count() <= 1
    })
}
