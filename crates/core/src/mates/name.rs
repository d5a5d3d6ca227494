//! What teammates can be called.

use crate::limits::MATE_NAME_CHARS_MAX;

/// Everybody but whoever writes.
const EVERYBODY: [&str; 5] = ["*", "all", "everybody", "everyone", "team"];
/// Whoever leads.
const LEAD: [&str; 3] = ["lead", "leader", "team-lead"];
/// Whoever the team works for, as screens and letters call them.
const USER: [&str; 7] = ["user", "you", "me", "owner", "你", "我", "用户"];

/// Whom a letter is for, as far as the name alone says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means<'a> {
    /// All of the team but whoever writes.
    Everybody,
    /// Whoever leads.
    Lead,
    /// Somebody of this name.
    Somebody(&'a str),
}

/// Whom a name means, in a team whose lead is called so.
pub fn means<'a>(name: &'a str, lead: &str) -> Means<'a> {
    let name = name.trim();
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    if EVERYBODY.iter().any(&is) {
        Means::Everybody
    } else if name == lead || LEAD.iter().any(is) {
        Means::Lead
    } else {
        Means::Somebody(name)
    }
}

/// Why nobody can be called so; `None`: they can.
pub fn misfit(name: &str, lead: &str) -> Option<String> {
    if name.is_empty() {
        return Some("a teammate needs a name".to_owned());
    }
    if name.chars().count() > MATE_NAME_CHARS_MAX {
        return Some(format!("a name has at most {MATE_NAME_CHARS_MAX} characters"));
    }
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if !name.chars().all(fits) || !name.starts_with(char::is_alphanumeric) {
        return Some(format!("`{name}` is no name: use letters, digits, `-`, `_` and `.`"));
    }
    let is_leads = name.to_lowercase() == lead.to_lowercase();
    let is_users = USER.iter().any(|known| known.eq_ignore_ascii_case(name));
    let is_taken = is_leads || is_users || means(name, lead) != Means::Somebody(name);
    is_taken.then(|| format!("`{name}` means somebody else already"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_one_thing() {
        for (name, want) in [
            ("*", Means::Everybody),
            ("All", Means::Everybody),
            ("team", Means::Everybody),
            ("max", Means::Lead),
            ("Lead", Means::Lead),
            (" alice ", Means::Somebody("alice")),
            ("Max", Means::Somebody("Max")),
        ] {
            assert_eq!(means(name, "max"), want, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_a_name_is_told() {
        for name in ["alice", "a.b-c_2", "张三", "Maxi"] {
            assert_eq!(misfit(name, "max"), None, "{name}");
        }
        let long = "x".repeat(MATE_NAME_CHARS_MAX + 1);
        for name in [
            "",
            "max",
            "Max",
            "lead",
            "USER",
            "You",
            "owner",
            "你",
            "team",
            "*",
            "a b",
            "-a",
            "a/b",
            "a\"b",
            "<a>",
            long.as_str(),
        ] {
            assert!(misfit(name, "max").is_some(), "{name}");
        }
    }
}
