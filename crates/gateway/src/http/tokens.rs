//! Tokens of the web server: named ones for programs, those of browsers, and login codes that work once.
//!
//! Only hashes are kept, in a file of the user's folder that every process of the user reads and writes: a token that is revoked on the
//! command line is refused by a running server at its next request. The secrets are random, so a plain hash is enough.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use max_team_core::hash::Hash;
use max_team_core::limits::{WEB_COOKIE_MS, WEB_LOGIN_LINK_MS, WEB_TOKENS_MAX};
use max_team_core::message::Role;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::secret::new_secret;

/// The folder of the web server, beneath the user's.
const FOLDER: &str = "serve";
/// The beginning of a token, by which scanners of secrets recognise it.
const PREFIX: &str = "mt_";
/// Digits of a token's hash that name it in lists.
const ID_CHARS: usize = 8;

/// The roles that tokens give, with the names of the scopes that mean the same.
pub const ROLES: [(Role, &str); 3] = [(Role::Viewer, "read"), (Role::Member, "chat"), (Role::Owner, "operate")];

/// The role with this name, or that a scope of this name stands for.
pub fn role_named(text: &str) -> Option<Role> {
    ROLES.into_iter().find(|(role, scope)| role.name() == text || *scope == text).map(|(role, _)| role)
}

/// The scope that stands for a role.
pub fn scope_of(role: Role) -> &'static str {
    ROLES.into_iter().find(|(known, _)| *known == role).map_or("", |(_, scope)| scope)
}

/// Reads a role, also from a file that has the scope.
fn read_role<'de, D: Deserializer<'de>>(text: D) -> Result<Role, D::Error> {
    let text = String::deserialize(text)?;
    role_named(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no role")))
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// A program sends it with each request.
    Named,
    /// A browser holds it as a cookie.
    Browser,
    /// A login link that has not been opened.
    Login,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// A short name in lists.
    pub id: String,
    pub name: String,
    pub kind: TokenKind,
    /// What its holder may do.
    #[serde(alias = "scope", deserialize_with = "read_role")]
    pub role: Role,
    hash: Hash,
    pub created_at_ms: i64,
    /// When it ends, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<i64>,
}

impl AccessToken {
    fn is_alive(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_none_or(|end| now_ms < end)
    }
}

/// The tokens of a user.
#[derive(Debug)]
pub struct TokenStore {
    folder: PathBuf,
    /// The list as it was last read, with the time and size of the file then.
    known: Mutex<(Option<FileStamp>, Vec<AccessToken>)>,
}

type FileStamp = (SystemTime, u64);

impl TokenStore {
    /// The tokens that are kept in the user's folder.
    pub fn new(home: &Path) -> Self {
        Self { folder: home.join(FOLDER), known: Mutex::default() }
    }

    /// Makes a token and returns its secret, which cannot be shown again. A name is used once.
    pub fn create(&self, name: &str, role: Role, expires_at_ms: Option<i64>, now_ms: i64) -> io::Result<String> {
        let secret = format!("{PREFIX}{}", new_secret()?);
        self.add(&secret, (name, TokenKind::Named, role), expires_at_ms, now_ms)?;
        Ok(secret)
    }

    /// A code for one login as the user.
    pub fn login_code(&self, now_ms: i64) -> io::Result<String> {
        let code = new_secret()?;
        self.add(&code, ("login", TokenKind::Login, Role::Owner), Some(now_ms + WEB_LOGIN_LINK_MS), now_ms)?;
        Ok(code)
    }

    /// Exchanges a login code for the token of a browser; `None` if the code is wrong, old or used.
    pub(crate) fn redeem(&self, code: &str, now_ms: i64) -> io::Result<Option<(String, AccessToken)>> {
        let hash = Hash::of(code);
        let mut is_known = false;
        self.change(now_ms, |tokens| {
            tokens.retain(|token| {
                let is_it = token.kind == TokenKind::Login && token.hash == hash;
                is_known |= is_it;
                !is_it
            });
            Ok(())
        })?;
        if !is_known {
            return Ok(None);
        }
        let secret = new_secret()?;
        let kind = ("browser", TokenKind::Browser, Role::Owner);
        let token = self.add(&secret, kind, Some(now_ms + WEB_COOKIE_MS), now_ms)?;
        Ok(Some((secret, token)))
    }

    /// The cookie of a browser in which the user has entered a token: with the rights and the end of that token.
    pub(crate) fn browser_of(&self, token: &AccessToken, now_ms: i64) -> io::Result<(String, AccessToken)> {
        let secret = new_secret()?;
        let end = now_ms + WEB_COOKIE_MS;
        let end = token.expires_at_ms.map_or(end, |other| other.min(end));
        let token = self.add(&secret, (&token.name, TokenKind::Browser, token.role), Some(end), now_ms)?;
        Ok((secret, token))
    }

    /// The living token with this secret.
    pub(crate) fn find(&self, secret: &str, now_ms: i64) -> Option<AccessToken> {
        let hash = Hash::of(secret);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        if known.0 != stamp || stamp.is_none() {
            *known = (stamp, self.read().ok()?);
        }
        let is_it =
            |token: &&AccessToken| token.hash == hash && token.kind != TokenKind::Login && token.is_alive(now_ms);
        known.1.iter().find(is_it).cloned()
    }

    /// Whether a token is still there and has not ended.
    pub(crate) fn is_alive(&self, token: &AccessToken, now_ms: i64) -> bool {
        token.is_alive(now_ms) && self.read().is_ok_and(|tokens| tokens.iter().any(|other| other.hash == token.hash))
    }

    /// All tokens, the oldest first; expired ones, too.
    pub fn list(&self) -> io::Result<Vec<AccessToken>> {
        self.read()
    }

    /// Ends all tokens with this name or id; returns how many there were.
    pub fn revoke(&self, name: &str, now_ms: i64) -> io::Result<usize> {
        let mut count = 0;
        self.change(now_ms, |tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name && token.id != name);
            count = before - tokens.len();
            Ok(())
        })?;
        Ok(count)
    }

    fn add(
        &self,
        secret: &str,
        (name, kind, role): (&str, TokenKind, Role),
        expires_at_ms: Option<i64>,
        now_ms: i64,
    ) -> io::Result<AccessToken> {
        let hash = Hash::of(secret);
        let id: String = hash.to_string().chars().rev().take(ID_CHARS).collect();
        let token = AccessToken { id, name: name.to_owned(), kind, role, hash, created_at_ms: now_ms, expires_at_ms };
        self.change(now_ms, |tokens| {
            if kind == TokenKind::Named && tokens.iter().any(|other| other.kind == kind && other.name == name) {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("there is a token `{name}` already")));
            }
            if tokens.len() >= WEB_TOKENS_MAX {
                // The oldest browser or link makes room: named tokens stay until they are revoked.
                let Some(at) = tokens.iter().position(|other| other.kind != TokenKind::Named) else {
                    return Err(io::Error::other(format!("there are {WEB_TOKENS_MAX} tokens already: revoke some")));
                };
                tokens.remove(at);
            }
            tokens.push(token.clone());
            Ok(())
        })?;
        Ok(token)
    }

    /// Changes the list while no other process does; expired browsers and links are dropped on the way.
    fn change(&self, now_ms: i64, change: impl FnOnce(&mut Vec<AccessToken>) -> io::Result<()>) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let private = |name: &str| -> io::Result<File> {
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(self.folder.join(name))
        };
        let lock = private("tokens.lock")?;
        lock.lock()?;
        let mut tokens = self.read()?;
        tokens.retain(|token| token.kind == TokenKind::Named || token.is_alive(now_ms));
        change(&mut tokens)?;
        let mut file = private("tokens.new")?;
        file.write_all(&serde_json::to_vec_pretty(&tokens)?)?;
        file.sync_all()?;
        std::fs::rename(self.folder.join("tokens.new"), self.file())?;
        // The next request reads the file again, also if time and size happen to be the same.
        self.known.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    fn read(&self) -> io::Result<Vec<AccessToken>> {
        match std::fs::read(self.file()) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn stamp(&self) -> Option<FileStamp> {
        let facts = std::fs::metadata(self.file()).ok()?;
        Some((facts.modified().ok()?, facts.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_secret_until_it_ends_or_is_revoked() {
        let home = tempfile::tempdir().unwrap();
        let (store, other) = (TokenStore::new(home.path()), TokenStore::new(home.path()));
        let secret = store.create("ci", Role::Member, Some(100), 0).unwrap();
        assert_eq!(store.find(&secret, 99).unwrap().role, Role::Member);
        assert_eq!(other.find(&secret, 99).unwrap().name, "ci");
        assert!(store.find(&secret, 100).is_none() && store.find("mt_no", 0).is_none());
        assert!(store.create("ci", Role::Viewer, None, 0).is_err(), "a name is used once");
        assert!(!std::fs::read_to_string(store.file()).unwrap().contains(&secret));
        assert_eq!(other.revoke("ci", 0).unwrap(), 1);
        assert!(store.find(&secret, 0).is_none(), "revoked by another process");
    }

    #[test]
    fn a_role_has_one_name_and_is_known_by_its_scope() {
        for (role, scope) in ROLES {
            assert_eq!((role_named(role.name()), role_named(scope), scope_of(role)), (Some(role), Some(role), scope));
        }
        assert_eq!(role_named("admin"), None);
        let hash = Hash::of("secret");
        let old =
            format!(r#"{{"id":"a","name":"ci","kind":"named","scope":"chat","hash":"{hash}","created_at_ms":0}}"#);
        assert_eq!(serde_json::from_str::<AccessToken>(&old).unwrap().role, Role::Member);
    }

    #[test]
    fn a_login_code_works_once_and_is_no_token() {
        let home = tempfile::tempdir().unwrap();
        let store = TokenStore::new(home.path());
        let code = store.login_code(0).unwrap();
        assert!(store.find(&code, 0).is_none());
        let (cookie, _) = store.redeem(&code, 1).unwrap().unwrap();
        assert!(store.redeem(&code, 1).unwrap().is_none(), "used");
        assert_eq!(store.find(&cookie, 1).unwrap().kind, TokenKind::Browser);
        assert!(store.find(&cookie, WEB_COOKIE_MS + 1).is_none());
        let late = store.login_code(0).unwrap();
        assert!(store.redeem(&late, WEB_LOGIN_LINK_MS).unwrap().is_none(), "expired");
    }

    #[test]
    fn the_cookie_of_a_pasted_token_has_its_rights_and_its_end() {
        let home = tempfile::tempdir().unwrap();
        let store = TokenStore::new(home.path());
        let secret = store.create("phone", Role::Viewer, Some(50), 0).unwrap();
        let token = store.find(&secret, 0).unwrap();
        let (cookie, _) = store.browser_of(&token, 0).unwrap();
        assert_eq!(store.find(&cookie, 49).unwrap().role, Role::Viewer);
        assert!(store.find(&cookie, 50).is_none());
        assert_eq!(store.revoke("phone", 0).unwrap(), 2, "the browser goes with its token");
    }
}
