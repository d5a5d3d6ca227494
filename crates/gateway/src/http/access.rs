//! Who sends a request, and from where.
//!
//! A web page of another origin must not reach the server through the user's browser: `Host` must be a name of this server (a name that
//! was rebound to 127.0.0.1 is none), and `Origin`, where a browser sends one, must be the same host. A visitor is known by a cookie,
//! which the browser sends only for requests of our own pages, or by a token.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use max_team_core::limits::{
    IMAGE_BYTES_MAX, MENTION_FILES_MAX, MENTION_IMAGES_MAX, WEB_COOKIE_MS, WEB_FILE_BYTES_MAX,
};
use max_team_core::message::Principal;
use max_team_runtime::now_ms;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ApiError;
use super::extract::Body;
use super::tokens::{AccessToken, TokenKind, scope_of};
use super::{WEB_DOOR, Web};

/// Names of this machine that a browser on it may use.
const LOCAL_HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
/// What pages may load: nothing but our own files.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The key under which failed logins are counted.
const LOGINS: &str = "login";

/// The person or program that sends a request.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) principal: Principal,
    pub(crate) token: AccessToken,
}

/// The hosts that requests may name.
#[derive(Debug, Clone)]
pub(crate) struct AllowedHosts {
    /// Host names, without a port, in lower case.
    names: Vec<String>,
    /// Whether addresses without a name are allowed: the server listens on all of them, and no name can be rebound to one.
    takes_addresses: bool,
    /// Whether pages are loaded over TLS: the cookie is never sent without it then.
    pub(crate) is_secure: bool,
}

impl AllowedHosts {
    /// The names of a loopback server, and further ones.
    pub(crate) fn new(more: &[String], takes_addresses: bool, is_secure: bool) -> Self {
        let names =
            LOCAL_HOSTS.iter().map(|name| (*name).to_owned()).chain(more.iter().map(|name| name.to_lowercase()));
        Self { names: names.collect(), takes_addresses, is_secure }
    }

    fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
        let host = text(header::HOST).unwrap_or_default().to_lowercase();
        let name = without_port(&host);
        let is_address = || name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
        let is_ours = self.names.iter().any(|known| known == name) || (self.takes_addresses && is_address());
        if !is_ours {
            return Err(ApiError::forbidden(format!("`{host}` is not a name of this server")));
        }
        let strange = || ApiError::forbidden("the request comes from a page of another origin");
        if let Some(origin) = text(header::ORIGIN) {
            let authority = origin.split_once("://").map(|(_, authority)| authority.to_lowercase());
            return if authority.as_deref() == Some(&host) { Ok(()) } else { Err(strange()) };
        }
        // A browser that sends no `Origin` (older ones, with GET) says at least whether the page is ours.
        let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        let is_navigation =
            *method == Method::GET && text(header::ACCEPT).is_some_and(|kinds| kinds.contains("text/html"));
        match site {
            Some("cross-site" | "same-site") if !is_navigation => Err(strange()),
            _ => Ok(()),
        }
    }
}

/// `[::1]:80` → `[::1]`, `a.example:80` → `a.example`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// Checks where every request comes from, and adds the headers that keep pages to themselves.
pub(crate) async fn guard(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    web.metrics.count_request();
    let mut response = match web.hosts.check(request.method(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (http::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (http::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

impl FromRequestParts<Arc<Web>> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, ApiError> {
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let secret = bearer(&parts.headers).or_else(|| web.cookie(&parts.headers));
        let token = secret.and_then(|secret| web.tokens.find(secret, now_ms())).ok_or_else(ApiError::unauthorized)?;
        web.requests.take(&token.id, Instant::now()).map_err(ApiError::rate_limited)?;
        let visitor = Self { principal: web.principal(&token), token };
        parts.extensions.insert(visitor.clone());
        Ok(visitor)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, secret) = given.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

impl Web {
    /// Cookies are shared by all ports of a host, so each server has a name of its own.
    fn cookie_name(&self) -> String {
        format!("max_team_{}", self.port)
    }

    fn cookie<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let name = self.cookie_name();
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.into_iter().find(|(known, _)| *known == name).map(|(_, secret)| secret)
    }

    fn set_cookie(&self, secret: &str, seconds: i64) -> String {
        let secure = if self.hosts.is_secure { "; Secure" } else { "" };
        format!("{}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}", self.cookie_name())
    }

    /// The user in a browser, or a program by the name of its token.
    fn principal(&self, token: &AccessToken) -> Principal {
        let user = match token.kind {
            TokenKind::Browser | TokenKind::Login => self.about.user.clone(),
            TokenKind::Named => format!("{WEB_DOOR}:{}", token.name),
        };
        Principal { door: WEB_DOOR.to_owned(), user, role: token.role }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Login {
    /// The code of a login link.
    Code(String),
    /// A token that the user has entered.
    Token(String),
}

pub(crate) async fn login(State(web): State<Arc<Web>>, Body(given): Body<Login>) -> Result<Response, ApiError> {
    web.logins.check(LOGINS, Instant::now()).map_err(ApiError::rate_limited)?;
    let now = now_ms();
    let broken = |error: std::io::Error| ApiError::internal(format!("the tokens cannot be kept: {error}"));
    let made = match given {
        Login::Code(code) => web.tokens.redeem(&code, now).map_err(broken)?,
        Login::Token(secret) => {
            let token = web.tokens.find(&secret, now).filter(|token| token.kind == TokenKind::Named);
            token.map(|token| web.tokens.browser_of(&token, now)).transpose().map_err(broken)?
        }
    };
    let Some((secret, _)) = made else {
        web.logins.take(LOGINS, Instant::now()).map_err(ApiError::rate_limited)?;
        return Err(ApiError::unauthorized());
    };
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, web.set_cookie(&secret, WEB_COOKIE_MS / 1_000))]).into_response())
}

/// Ends the login of a browser. The token of a program stays: only its owner revokes it.
pub(crate) async fn logout(State(web): State<Arc<Web>>, visitor: Visitor) -> Result<Response, ApiError> {
    if visitor.token.kind == TokenKind::Browser {
        let ended = web.tokens.revoke(&visitor.token.id, now_ms());
        ended.map_err(|error| ApiError::internal(format!("the tokens cannot be kept: {error}")))?;
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, web.set_cookie("", 0))]).into_response())
}

pub(crate) async fn me(State(web): State<Arc<Web>>, visitor: Visitor) -> Json<Value> {
    let Visitor { principal, token } = visitor;
    let about = &web.about;
    Json(json!({
        "user": principal.user, "role": principal.role, "scope": scope_of(token.role), "door": principal.door, "token": token.name,
        "version": env!("CARGO_PKG_VERSION"), "folder": about.folder, "demo": about.demo, "language": about.language,
        "stream": max_team_runtime::stream::STREAM_VERSION, "problem": web.sessions.source().problem(),
        "attach": { "bytes": WEB_FILE_BYTES_MAX, "image_bytes": IMAGE_BYTES_MAX, "files": MENTION_FILES_MAX, "images": MENTION_IMAGES_MAX },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, more: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        for (name, value) in more {
            headers.insert(*name, value.parse().unwrap());
        }
        AllowedHosts::new(&["Team.example".to_owned()], false, true).check(&Method::POST, &headers).is_ok()
    }

    #[test]
    fn only_our_own_hosts_and_pages_are_served() {
        for host in ["127.0.0.1:8080", "localhost:9", "localhost", "[::1]:8080", "team.example", "Team.Example:443"] {
            assert!(check(host, &[]), "{host}");
        }
        for host in ["", "evil.example", "127.0.0.1.evil.example:8080", "localhost.evil", "0.0.0.0:8080", "[::2]:1"] {
            assert!(!check(host, &[]), "{host}");
        }
        let mut headers = HeaderMap::new();
        for (host, is_allowed) in [("192.168.1.7:8080", true), ("[fe80::1]", true), ("evil.example", false)] {
            headers.insert(header::HOST, host.parse().unwrap());
            assert_eq!(AllowedHosts::new(&[], true, true).check(&Method::GET, &headers).is_ok(), is_allowed, "{host}");
        }
        let from = |origin| check("localhost:8080", &[("origin", origin)]);
        assert!(from("http://localhost:8080"));
        for origin in
            ["http://localhost:3000", "http://evil.example", "null", "http://localhost", "https://127.0.0.1:8080"]
        {
            assert!(!from(origin), "{origin}");
        }
        assert!(!check("localhost:8080", &[("sec-fetch-site", "cross-site")]));
        assert!(check("localhost:8080", &[("sec-fetch-site", "same-origin")]));
    }
}
