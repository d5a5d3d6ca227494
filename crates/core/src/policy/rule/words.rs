//! Patterns of commands, hosts and tools.
//!
//! A command is held against a pattern word by word: a space in the pattern is the end of a word, not a space in one,
//! so `git *` says nothing about a program called `git x`. A `*` stands for any letters and words. Denials are also
//! held against the looser reading, in which every space is alike and letters of either case are: whatever could be
//! meant is refused.

use crate::policy::pattern::fits;

/// What ends a word; no argument of a line can hold it as a letter that matters here.
const BREAK: char = '\u{0}';

/// One way to spell a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct Spelling {
    /// Its words.
    pub(in crate::policy) argv: Vec<String>,
    /// The same, letter by letter, each word with its end.
    letters: Vec<char>,
    /// Whether it is what would run, and not only what it comes to. A permission needs the former.
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
pub(in crate::policy) struct Words {
    text: String,
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Star,
    Letter(char),
}

impl Words {
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim();
        // `npm run:*` and `npm run *` are one thing: the words, then any others, or none.
        let (head, has_tail) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
            Some(head) => (head.trim_end(), true),
            None => (text, false),
        };
        let mut tokens = tokens(head);
        if has_tail {
            tokens.extend([Token::Letter(BREAK), Token::Star]);
        } else if tokens.last() != Some(&Token::Star) {
            tokens.push(Token::Letter(BREAK));
        }
        Self { text: text.to_owned(), tokens }
    }

    /// Whether nothing in it stands for anything else.
    pub(in crate::policy) fn is_exact(&self) -> bool {
        !self.tokens.contains(&Token::Star)
    }

    /// The words before the first `*`, whole or not.
    pub(in crate::policy) fn head(&self) -> String {
        let letters = self.tokens.iter().map_while(|token| match token {
            Token::Letter(BREAK) => Some(' '),
            Token::Letter(letter) => Some(*letter),
            Token::Star => None,
        });
        letters.collect::<String>().trim_end().to_owned()
    }

    /// Whether a `*` stands before its last place, or inside a word.
    pub(in crate::policy) fn has_inner_star(&self) -> bool {
        let stars = self.tokens.iter().filter(|token| **token == Token::Star).count();
        stars > 1 || (stars == 1 && !self.has_tail())
    }

    /// Whether every command that another pattern means is meant by this one, as far as is easy to see.
    pub(in crate::policy) fn covers(&self, other: &Self) -> bool {
        let Some((_, head)) = self.tokens.split_last().filter(|_| self.has_tail()) else { return false };
        !head.contains(&Token::Star) && other.tokens.starts_with(head)
    }

    fn has_tail(&self) -> bool {
        self.tokens.ends_with(&[Token::Letter(BREAK), Token::Star])
    }

    /// Whether a text that nobody can take apart is this one, letter by letter.
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text.trim()
    }

    /// Whether a command is meant, word by word.
    pub(super) fn fits(&self, spelling: &Spelling) -> bool {
        self.holds(&spelling.letters, |token, letter| token == letter)
    }

    /// Whether a command could be meant.
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
            |token| *token == Token::Star,
            |token, letter| matches!(token, Token::Letter(own) if same(*own, *letter)),
        )
    }
}

/// A pattern's letters, with quotes taken off as a shell would.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => tokens.extend(letters.next().map(Token::Letter)),
            (letter, Some(_)) => tokens.push(Token::Letter(letter)),
            ('*', None) if tokens.last() == Some(&Token::Star) => {}
            ('*', None) => tokens.push(Token::Star),
            (letter, None) if letter.is_whitespace() => {
                if tokens.last() != Some(&Token::Letter(BREAK)) {
                    tokens.push(Token::Letter(BREAK));
                }
            }
            (letter, None) => tokens.push(Token::Letter(letter)),
        }
    }
    tokens
}

/// A pattern of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Domain {
    labels: Vec<String>,
    /// `*.x`: what lies beneath it, at any depth, but not itself.
    is_beneath: bool,
    /// The port it names, or `*` for any; without one it means the ports of the web.
    port: Option<String>,
}

impl Domain {
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

    /// Whether a host, with its port where that is not its scheme's own, is meant. A denial without a port means all of
    /// them.
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

/// A host and the port behind it: `example.org:8080`, `[::1]:8080`.
fn split_port(text: &str) -> (&str, Option<&str>) {
    let is_port = |port: &str| port == "*" || (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    match text.trim().rsplit_once(':') {
        Some((host, port)) if is_port(port) && (!host.contains(':') || host.ends_with(']')) => (host, Some(port)),
        _ => (text.trim(), None),
    }
}

/// A host as names are compared: small letters, no dot at the end.
fn host(text: &str) -> String {
    text.trim().trim_end_matches('.').to_lowercase()
}

/// Whether a name fits a pattern with `*`. `mcp__server` stands for every tool of the server.
pub(super) fn is_named(pattern: &str, name: &str) -> bool {
    let (letters, tokens): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let whole = fits(&tokens, &letters, |token| *token == '*', |token, letter| token == letter);
    whole || (pattern.starts_with("mcp__") && name.strip_prefix(pattern).is_some_and(|rest| rest.starts_with("__")))
}

/// Whether a pattern of tools stays with one server.
pub(super) fn is_server(pattern: &str) -> bool {
    let server = pattern.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    server.is_some_and(|server| !server.is_empty() && !server.contains('*'))
}
