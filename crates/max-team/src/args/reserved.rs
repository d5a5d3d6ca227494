//! Names kept for commands of later versions: an error today, never a prompt that costs money.

pub(crate) const RESERVED: [&str; 4] = ["acp", "channels", "cron", "pairing"];

/// The reserved name that a command line begins with; the language may stand before it.
pub(crate) fn reserved(mut words: impl Iterator<Item = String>) -> Option<&'static str> {
    let mut first = words.next()?;
    while first.starts_with("--lang") {
        if first == "--lang" {
            words.next();
        }
        first = words.next()?;
    }
    find(&first)
}

/// The reserved name that a word is.
pub(crate) fn find(word: &str) -> Option<&'static str> {
    RESERVED.into_iter().find(|name| *name == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_name_comes_first_or_behind_the_language() {
        let reserved = |line: &str| reserved(line.split(' ').map(str::to_owned));
        assert_eq!(reserved("channels list"), Some("channels"));
        assert_eq!(reserved("--lang zh cron list"), Some("cron"));
        assert_eq!(reserved("--lang=zh acp"), Some("acp"));
        assert_eq!(reserved("-p cron"), None);
        assert_eq!(reserved("--lang zh"), None);
        assert_eq!(reserved("crontab"), None);
    }
}
