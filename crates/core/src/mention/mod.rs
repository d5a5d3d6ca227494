//! Files and folders that a user mentions in a message: `@src/main.rs`, `@docs/`, `@"my file.txt"`.
//!
//! [`find`] reads the text and knows no disk: a mention comes with its possible spellings, and the reader takes the first
//! one that exists. A mention that names nothing stays plain text, so `@dataclass`, `@types/node` and addresses need no
//! rules of their own. `block` is for how its content is handed to a model.

mod block;
mod server;

pub use block::{Label, content, label, labels, left_out, prompt_text, resource_text};
pub use server::{SERVER_MENTIONS_MAX, ServerMention};

/// Mentions of one message that are looked up.
pub const MENTIONS_MAX: usize = 64;
/// Bytes of a path that is looked up.
const PATH_BYTES_MAX: usize = 1_024;
/// The line before text that was piped in beside a prompt: the user did not write what follows.
const STDIN: &str = "<stdin>";
/// What ends a bare path; a path with one of these is written in quotes.
pub const ENDS: &str = "\"'`<>|*，。；：！？、（）「」『』【】《》“”‘’…";
/// Characters that may follow a path and do not belong to it.
const TRAILING: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '~'];

/// A path that a message mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// How the path may be spelled, the most literal first: `a.rs:12,` is `a.rs:12,`, `a.rs:12` or `a.rs`.
    pub spellings: Vec<String>,
}

/// Finds the mentions in a message, each once, in order. Code and piped text are passed over.
pub fn find(message: &str) -> Vec<Mention> {
    let prose = prose(message);
    let mut mentions: Vec<Mention> = Vec::new();
    let mut rest = prose.as_str();
    let mut before = None;
    while let Some(at) = rest.find('@') {
        let (skipped, from) = rest.split_at(at);
        let before_sign = skipped.chars().next_back().or(before);
        rest = from.get(1..).unwrap_or_default();
        before = Some('@');
        if !may_precede(before_sign) {
            continue;
        }
        let spellings = spellings(rest);
        let mention = Mention { spellings };
        if !mention.spellings.is_empty() && !mentions.contains(&mention) {
            mentions.push(mention);
        }
        if mentions.len() == MENTIONS_MAX {
            break;
        }
    }
    mentions
}

/// The message without code (fenced blocks, text between back-ticks) and without piped text.
pub fn prose(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut is_block = false;
    for line in message.lines().take_while(|line| *line != STDIN) {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
            continue;
        }
        if is_block {
            continue;
        }
        let parts: Vec<&str> = line.split('`').collect();
        let last = parts.len() - 1;
        for (index, part) in parts.iter().enumerate() {
            // A piece with an odd index lies between two back-ticks, unless the second one is missing.
            match (index % 2 == 0, index == last) {
                (true, _) => text.push_str(part),
                (false, true) => text.extend(["`", part]),
                (false, false) => text.push(' '),
            }
        }
        text.push('\n');
    }
    text
}

/// Whether an `@` behind this character can begin a mention; in an address (`me@example.org`) it does not.
pub fn may_precede(before: Option<char>) -> bool {
    before.is_none_or(|before| !before.is_ascii_alphanumeric() && !"._%+-/\\@".contains(before))
}

/// The ways to read the text behind an `@` as a path.
fn spellings(behind: &str) -> Vec<String> {
    if let Some(quoted) = behind.strip_prefix('"') {
        let line = quoted.lines().next().unwrap_or_default();
        let path = line.split_once('"').map(|(path, _)| path.trim());
        return path.filter(|path| is_path(path)).map(str::to_owned).into_iter().collect();
    }
    let end = behind.find(|letter: char| letter.is_whitespace() || ENDS.contains(letter)).unwrap_or(behind.len());
    let token = behind.get(..end).unwrap_or_default();
    // In Chinese or Japanese the sentence may go on without a space.
    let ascii = token.find(|letter: char| !letter.is_ascii()).and_then(|at| token.get(..at)).unwrap_or(token);
    let mut spellings: Vec<String> = Vec::new();
    for token in [token, ascii] {
        let trimmed = token.trim_end_matches(TRAILING);
        for spelling in [token, trimmed, without_line(trimmed)] {
            if is_path(spelling) && !spellings.iter().any(|known| known == spelling) {
                spellings.push(spelling.to_owned());
            }
        }
    }
    spellings
}

/// The path without the line that is named behind it: `a.rs:12`, `a.rs:12-20`, `a.rs:12:5`, `a.rs#L12-L20`.
fn without_line(path: &str) -> &str {
    let is_line = |letter: char| letter.is_ascii_digit() || matches!(letter, '-' | ':' | '#' | 'L');
    let shorter = path.trim_end_matches(is_line);
    let is_named = path.get(shorter.len()..).is_some_and(|line| line.starts_with([':', '#']));
    if is_named { shorter } else { path }
}

/// Whether a path can be mentioned without quotes.
pub fn is_bare(path: &str) -> bool {
    let ends = |letter: char| letter.is_whitespace() || ENDS.contains(letter);
    path.is_ascii() && !path.contains(ends) && !path.ends_with(TRAILING)
}

/// A mention of a path.
pub fn written(path: &str) -> String {
    if is_bare(path) { format!("@{path}") } else { format!("@\"{path}\"") }
}

/// Whether a text can be looked up as a path. `@skill:name` asks for a skill.
fn is_path(text: &str) -> bool {
    let is_short = text.len() <= PATH_BYTES_MAX && !text.chars().any(char::is_control);
    is_short && !text.starts_with('@') && !text.starts_with("skill:") && text.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn firsts(message: &str) -> Vec<String> {
        find(message).into_iter().map(|mention| mention.spellings.join(" ")).collect()
    }

    #[test]
    fn mentions_are_found_in_a_message() {
        let cases: [(&str, &[&str]); 30] = [
            ("explain @src/main.rs", &["src/main.rs"]),
            ("@src/main.rs", &["src/main.rs"]),
            ("@a.rs and @b.rs and @a.rs", &["a.rs", "b.rs"]),
            ("see @docs/ first", &["docs/"]),
            ("(@a.rs)", &["a.rs) a.rs"]),
            ("read @a.rs, then go", &["a.rs, a.rs"]),
            ("read @a.rs.", &["a.rs. a.rs"]),
            ("fix @a.rs:12", &["a.rs:12 a.rs"]),
            ("fix @a.rs:12-20!", &["a.rs:12-20! a.rs:12-20 a.rs"]),
            ("fix @a.rs#L3-L9", &["a.rs#L3-L9 a.rs"]),
            ("@\"my file.txt\" please", &["my file.txt"]),
            ("@\"我的 文件.txt\"和@b.md", &["我的 文件.txt", "b.md"]),
            ("看看@src/main.rs这个文件", &["src/main.rs这个文件 src/main.rs"]),
            ("看看@笔记.md，好吗", &["笔记.md"]),
            ("**@a.rs** is bold", &["a.rs"]),
            ("'@a.rs'", &["a.rs"]),
            ("-d @data.json", &["data.json"]),
            ("@./a.rs", &["./a.rs"]),
            ("@../secret and @/etc/passwd", &["../secret", "/etc/passwd"]),
            ("@types/node is a package", &["types/node"]),
            ("me@example.org, a.b@c.de, x/@y", &[]),
            ("a@@b @@c", &[]),
            ("@ alone, @, @. and @...", &[]),
            ("@\"\" and @\"open", &[]),
            ("@skill:pdf @skill:all", &[]),
            ("`@a.rs` is code, `@b` too", &[]),
            ("```\n@a.rs\n```\n@b.rs", &["b.rs"]),
            ("sum it up @a.rs\n\n<stdin>\n@b.rs\n</stdin>\n@c.rs", &["a.rs"]),
            ("\u{1b}@a.rs", &["a.rs"]),
            ("", &[]),
        ];
        for (message, want) in cases {
            assert_eq!(firsts(message), want, "{message}");
        }
    }

    #[test]
    fn mentions_are_bounded() {
        let many: String = (0..MENTIONS_MAX * 2).map(|index| format!("@f{index} ")).collect();
        assert_eq!(find(&many).len(), MENTIONS_MAX);
        assert_eq!(find(&format!("@{}", "a".repeat(PATH_BYTES_MAX + 1))), []);
    }

    proptest! {
        #[test]
        fn any_message_is_read(message in "[@\"a-z./:，这 \n]{0,80}") {
            for mention in find(&message) {
                prop_assert!(!mention.spellings.is_empty() && mention.spellings.len() <= 6);
                prop_assert!(mention.spellings.iter().all(|path| message.contains(path.as_str())));
            }
        }
    }
}
