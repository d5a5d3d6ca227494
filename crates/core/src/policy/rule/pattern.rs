//! Patterns of commands, hosts and tools.
//!
//! A command is matched word by word: a space in the pattern is the end of a word, not a space in one, so `git *` does
//! not match a program called `git x`. A `*` matches any letters and words. Denials are also matched loosely, with all
//! spaces and cases alike, so that every possible meaning is refused.

use core::net::IpAddr;

use crate::policy::glob::fits;

/// Marks the end of a word; it cannot occur in an argument.
const BREAK: char = '\u{0}';

/// One way to spell a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct Spelling {
    /// The words of the command.
    pub(in crate::policy) argv: Vec<String>,
    /// The words letter by letter, each with its end mark.
    letters: Vec<char>,
    /// Whether exactly this would run. A permission only matches such a spelling.
    pub(in crate::policy) is_literal: bool,
}

impl Spelling {
    pub(in crate::policy) fn new(argv: Vec<String>, is_literal: bool) -> Self {
        let letters = argv.iter().flat_map(|word| word.chars().chain([BREAK])).collect();
        Self { argv, letters, is_literal }
    }
}

/// A pattern of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct CommandPattern {
    text: String,
    tokens: Vec<PatternToken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternToken {
    Star,
    Letter(char),
}

impl CommandPattern {
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim();
        // `npm run:*` and `npm run *` mean the same: these words, then any others or none.
        let (head, has_tail) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
            Some(head) => (head.trim_end(), true),
            None => (text, false),
        };
        let mut tokens = tokens(head);
        if has_tail {
            tokens.extend([PatternToken::Letter(BREAK), PatternToken::Star]);
        } else if tokens.last() != Some(&PatternToken::Star) {
            tokens.push(PatternToken::Letter(BREAK));
        }
        Self { text: text.to_owned(), tokens }
    }

    /// Whether it has no `*`.
    pub(in crate::policy) fn is_exact(&self) -> bool {
        !self.tokens.contains(&PatternToken::Star)
    }

    /// The text before the first `*`.
    pub(in crate::policy) fn literal_prefix(&self) -> String {
        let letters = self.tokens.iter().map_while(|token| match token {
            PatternToken::Letter(BREAK) => Some(' '),
            PatternToken::Letter(letter) => Some(*letter),
            PatternToken::Star => None,
        });
        letters.collect::<String>().trim_end().to_owned()
    }

    /// Whether a `*` stands before the end, or inside a word.
    pub(in crate::policy) fn has_inner_star(&self) -> bool {
        let stars = self.tokens.iter().filter(|token| **token == PatternToken::Star).count();
        stars > 1 || (stars == 1 && !self.has_tail())
    }

    /// Whether it covers every command of another pattern, as far as this is easy to see.
    pub(in crate::policy) fn covers(&self, other: &Self) -> bool {
        let Some((_, head)) = self.tokens.split_last().filter(|_| self.has_tail()) else { return false };
        !head.contains(&PatternToken::Star) && other.tokens.starts_with(head)
    }

    fn has_tail(&self) -> bool {
        self.tokens.ends_with(&[PatternToken::Letter(BREAK), PatternToken::Star])
    }

    /// Whether a text that cannot be parsed is exactly this pattern.
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text.trim()
    }

    /// Whether it matches a command, word by word.
    pub(super) fn fits(&self, spelling: &Spelling) -> bool {
        self.holds(&spelling.letters, |token, letter| token == letter)
    }

    /// Whether it could match a command, loosely read.
    pub(super) fn resembles(&self, spelling: &Spelling) -> bool {
        let same = |token: char, letter: char| {
            let blank = |letter: char| letter == BREAK || letter.is_whitespace();
            (blank(token) && blank(letter)) || token.to_lowercase().eq(letter.to_lowercase())
        };
        self.holds(&spelling.letters, same)
    }

    fn holds(&self, letters: &[char], same: impl Fn(char, char) -> bool) -> bool {
        fits(
            &self.tokens,
            letters,
            |token| *token == PatternToken::Star,
            |token, letter| matches!(token, PatternToken::Letter(own) if same(*own, *letter)),
        )
    }
}

/// The letters of a pattern, with quotes removed as a shell would.
fn tokens(text: &str) -> Vec<PatternToken> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => tokens.extend(letters.next().map(PatternToken::Letter)),
            (letter, Some(_)) => tokens.push(PatternToken::Letter(letter)),
            ('*', None) if tokens.last() == Some(&PatternToken::Star) => {}
            ('*', None) => tokens.push(PatternToken::Star),
            (letter, None) if letter.is_whitespace() => {
                if tokens.last() != Some(&PatternToken::Letter(BREAK)) {
                    tokens.push(PatternToken::Letter(BREAK));
                }
            }
            (letter, None) => tokens.push(PatternToken::Letter(letter)),
        }
    }
    tokens
}

/// A pattern of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern {
    labels: Vec<String>,
    /// `*.x`: everything below `x` at any depth, but not `x` itself.
    is_beneath: bool,
    /// The port, or `*` for any; without one, the default web ports.
    port: Option<String>,
}

impl HostPattern {
    pub(super) fn new(text: &str) -> Self {
        let (name, port) = split_port(text);
        let name = host(name);
        let (rest, is_beneath) = match name.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (name.as_str(), false),
        };
        let port = port.map(str::to_owned);
        Self { labels: rest.split('.').map(str::to_owned).collect(), is_beneath, port }
    }

    /// Whether it names one host, though perhaps all its ports.
    pub(super) fn is_exact(&self) -> bool {
        !self.is_beneath && !self.labels.iter().any(|label| label.contains('*'))
    }

    /// Whether it names more than `*`.
    pub(super) fn is_of_domain(&self) -> bool {
        self.labels.iter().any(|label| !label.chars().all(|letter| letter == '*'))
    }

    /// Whether it matches a host. The host has its port unless that is the scheme's default. A denial without a port
    /// matches all ports.
    pub(super) fn fits(&self, given: &str, strict: bool) -> bool {
        let (given, port) = split_port(given);
        let port_fits = match (self.port.as_deref(), port) {
            (Some("*"), _) | (None, None) => true,
            (None, Some(_)) => strict,
            (own, port) => own == port,
        };
        let given = host(given);
        let labels: Vec<&str> = given.split('.').collect();
        let Some(extra) = labels.len().checked_sub(self.labels.len()) else { return false };
        let (above, own) = labels.split_at(extra);
        let depth_fits = if self.is_beneath { !above.is_empty() } else { above.is_empty() };
        port_fits && depth_fits && self.labels.iter().zip(own).all(|(pattern, label)| is_named(pattern, label))
    }
}

/// Whether a host is written as this machine's or as an address of a private network. A name that leads there is not, and
/// neither are link-local addresses, where clouds keep their metadata: only the settings open these.
pub fn is_local_host(text: &str) -> bool {
    let name = host(split_port(text).0);
    let address = name.trim_start_matches('[').trim_end_matches(']').parse();
    name == "localhost"
        || address.is_ok_and(|address| match address {
            IpAddr::V4(address) => address.is_loopback() || address.is_private(),
            IpAddr::V6(address) => address.is_loopback(),
        })
}

/// A host and the port behind it: `example.org:8080`, `[::1]:8080`.
fn split_port(text: &str) -> (&str, Option<&str>) {
    let is_port = |port: &str| port == "*" || (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    match text.trim().rsplit_once(':') {
        Some((host, port)) if is_port(port) && (!host.contains(':') || host.ends_with(']')) => (host, Some(port)),
        _ => (text.trim(), None),
    }
}

/// A host in the form in which hosts are compared: lower case, no final dot.
fn host(text: &str) -> String {
    text.trim().trim_end_matches('.').to_lowercase()
}

/// Whether a name matches a pattern with `*`. `mcp__server` matches every tool of the server.
pub(super) fn is_named(pattern: &str, name: &str) -> bool {
    let (letters, tokens): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let whole = fits(&tokens, &letters, |token| *token == '*', |token, letter| token == letter);
    whole || (pattern.starts_with("mcp__") && name.strip_prefix(pattern).is_some_and(|rest| rest.starts_with("__")))
}

/// Whether a pattern of tools is limited to one server.
pub(super) fn is_server(pattern: &str) -> bool {
    let server = pattern.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    server.is_some_and(|server| !server.is_empty() && !server.contains('*'))
}
