//! The environment as it was when the process began, handed over by the binary.
//!
//! A plain map, so that tests need not touch the real one, and the place that knows which folder is ours.
//! It reads nothing from the process itself and never prints a value: any variable may hold a key.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::i18n::Lang;

/// Variables that name the locale; the first that is set counts.
const LOCALES: [&str; 4] = ["MAX_LANG", "LC_ALL", "LC_MESSAGES", "LANG"];

/// Variables by name.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// Variables that name the user's folders.
    pub const FOLDERS: [&'static str; 4] = ["HOME", "MAX_TEAM_HOME", "USERPROFILE", "XDG_CONFIG_HOME"];

    /// The value of a variable; an empty one counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names of all that are set and not empty.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.as_str())
    }

    /// Our folder: `$MAX_TEAM_HOME`, or `.max-team` in the user's own. None when there is no user.
    pub fn home(&self) -> Option<PathBuf> {
        self.folder("MAX_TEAM_HOME").or_else(|| Some(self.user()?.join(".max-team")))
    }

    /// The user's own folder.
    pub fn user(&self) -> Option<PathBuf> {
        self.folder("HOME").or_else(|| self.folder("USERPROFILE"))
    }

    /// The language that the locale asks for.
    pub fn locale(&self) -> Lang {
        let set = LOCALES.iter().find_map(|name| self.get(name).filter(|value| !value.is_empty()));
        if set.is_some_and(|locale| locale.starts_with("zh")) { Lang::Zh } else { Lang::En }
    }

    /// The same without a user: nothing of theirs is found.
    pub fn of_nobody(&self) -> Self {
        let is_users = |name: &str| Self::FOLDERS.contains(&name);
        Self(
            self.0
                .iter()
                .filter(|(name, _)| !is_users(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// Where the desktop keeps settings; the standard says that a relative path there is to be ignored.
    pub fn xdg_config(&self) -> Option<PathBuf> {
        let named = self.folder("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
        named.or_else(|| Some(self.user()?.join(".config")))
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        self.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Env({} variables)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_named_or_in_the_users_folder() {
        let home = |pairs: &[(&str, &str)]| pairs.iter().copied().collect::<Env>().home();
        assert_eq!(home(&[("MAX_TEAM_HOME", "/x"), ("HOME", "/u")]), Some("/x".into()));
        assert_eq!(home(&[("MAX_TEAM_HOME", ""), ("HOME", "/u")]), Some("/u/.max-team".into()));
        assert_eq!(home(&[("USERPROFILE", "/w")]), Some("/w/.max-team".into()));
        assert_eq!(home(&[]), None);
    }

    #[test]
    fn a_relative_xdg_folder_is_ignored() {
        let env: Env = [("XDG_CONFIG_HOME", "x"), ("HOME", "/u")].into_iter().collect();
        assert_eq!(env.xdg_config(), Some("/u/.config".into()));
    }

    #[test]
    fn values_are_not_printed() {
        let env: Env = [("KEY", "sk-secret")].into_iter().collect();
        assert_eq!(format!("{env:?}"), "Env(1 variables)");
    }
}
