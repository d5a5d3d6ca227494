//! Splits a command line into an argv.
//!
//! The grammar is a whitelist: plain words, quotes, backslashes. Everything else that a shell interprets is refused by
//! name, because nothing interprets it here: it would reach the program as it is. Nothing here runs anything.

use serde::{Deserialize, Serialize};

/// Bytes of a command line.
pub const LINE_BYTES_MAX: usize = 32 << 10;

/// A line that is not one plain command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitError {
    /// No words at all.
    #[error("the command is empty; write a program and its arguments")]
    Empty,
    /// The line is too long.
    #[error("the command is longer than {LINE_BYTES_MAX} bytes; put it into a file of the project and run that")]
    Long,
    /// Something that only a shell understands.
    #[error(
        "`{}` in the command means something to a shell only, and commands run without a shell: run one program at a time, and put `{}` in single quotes if it is meant as it stands",
        shown(*.0),
        shown(*.0)
    )]
    Shell(char),
    /// A variable set before the program.
    #[error(
        "`{0}=…` before the program is for a shell, and commands run without a shell; write only the program and its arguments"
    )]
    Assignment(String),
    /// A quote without its end.
    #[error("the quote {0} is not closed")]
    Unclosed(char),
    /// A backslash with nothing behind it.
    #[error("the command ends in a backslash; write two for one that is meant as it stands")]
    Backslash,
    /// What no argument can hold.
    #[error("the command has a zero byte in it; leave it out")]
    Zero,
}

/// A character as an error shows it.
pub fn shown(letter: char) -> String {
    match letter {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '`' => "backtick".to_owned(),
        letter => letter.to_string(),
    }
}

/// The words of a command line, as a shell would give them to the program if it had nothing else to do.
pub fn split(line: &str) -> Result<Vec<String>, SplitError> {
    if line.len() > LINE_BYTES_MAX {
        return Err(SplitError::Long);
    }
    if line.contains('\0') {
        return Err(SplitError::Zero);
    }
    let mut words: Vec<String> = Vec::new();
    // `None` between words: an empty pair of quotes is a word, too.
    let mut word: Option<String> = None;
    let mut is_plain = true;
    let mut letters = line.trim_matches(['\n', '\r']).chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => {
                words.extend(word.take());
                is_plain = true;
                continue;
            }
            ';' | '|' | '&' | '>' | '<' | '$' | '(' | ')' | '{' | '}' | '`' | '\n' | '\r' | '*' | '?' | '[' => {
                return Err(SplitError::Shell(letter));
            }
            '~' | '#' if word.is_none() => return Err(SplitError::Shell(letter)),
            '=' if words.is_empty() && is_plain && word.as_deref().is_some_and(is_name) => {
                return Err(SplitError::Assignment(word.unwrap_or_default()));
            }
            _ => {}
        }
        let word = word.get_or_insert_default();
        match letter {
            '\'' => single(&mut letters, word)?,
            '"' => double(&mut letters, word)?,
            '\\' => match letters.next() {
                Some(line_end @ ('\n' | '\r')) => return Err(SplitError::Shell(line_end)),
                Some(next) => word.push(next),
                None => return Err(SplitError::Backslash),
            },
            letter => word.push(letter),
        }
        is_plain &= !matches!(letter, '\'' | '"' | '\\');
    }
    words.extend(word);
    if words.first().is_none_or(String::is_empty) { Err(SplitError::Empty) } else { Ok(words) }
}

fn single(letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), SplitError> {
    for letter in letters {
        match letter {
            '\'' => return Ok(()),
            letter => word.push(letter),
        }
    }
    Err(SplitError::Unclosed('\''))
}

fn double(letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), SplitError> {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Ok(()),
            '$' | '`' => return Err(SplitError::Shell(letter)),
            '\\' => match letters.next() {
                Some(line_end @ ('\n' | '\r')) => return Err(SplitError::Shell(line_end)),
                Some(next @ ('$' | '`' | '"' | '\\')) => word.push(next),
                Some(next) => word.extend(['\\', next]),
                None => break,
            },
            letter => word.push(letter),
        }
    }
    Err(SplitError::Unclosed('"'))
}

fn is_name(word: &str) -> bool {
    let starts = word.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    starts && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::command_line::join;

    #[test]
    fn plain_lines_become_words() {
        let table: [(&str, &[&str]); 12] = [
            ("cargo test", &["cargo", "test"]),
            ("  a \t b  ", &["a", "b"]),
            ("a 'b c' \"d e\"", &["a", "b c", "d e"]),
            ("a '' \"\"", &["a", "", ""]),
            ("a\\ b c\\ ", &["a b", "c "]),
            ("go test '-gcflags=all=-N -l' ./...", &["go", "test", "-gcflags=all=-N -l", "./..."]),
            (r#"a "\$x \` \" \\ \n""#, &["a", "$x ` \" \\ \\n"]),
            ("a '$x;|&*' \\*", &["a", "$x;|&*", "*"]),
            ("a b~c d#e K=V", &["a", "b~c", "d#e", "K=V"]),
            ("'K'=v", &["K=v"]),
            ("-DX=1\n", &["-DX=1"]),
            ("a 'l1\nl2'", &["a", "l1\nl2"]),
        ];
        for (line, want) in table {
            assert_eq!(split(line).unwrap(), want, "{line}");
        }
    }

    #[test]
    fn shell_syntax_is_refused_by_name() {
        for letter in ";|&><$(){}`*?[".chars() {
            assert_eq!(split(&format!("a b{letter}c")), Err(SplitError::Shell(letter)));
        }
        let table = [
            ("", SplitError::Empty),
            (" \t\n", SplitError::Empty),
            ("'' a", SplitError::Empty),
            ("a\nb", SplitError::Shell('\n')),
            ("a\\\nb", SplitError::Shell('\n')),
            ("a ~/b", SplitError::Shell('~')),
            ("a #b", SplitError::Shell('#')),
            ("a \"$(b)\"", SplitError::Shell('$')),
            ("a \"`b`\"", SplitError::Shell('`')),
            ("RUST_LOG=1 a", SplitError::Assignment("RUST_LOG".into())),
            ("a 'b", SplitError::Unclosed('\'')),
            ("a \"b\\", SplitError::Unclosed('"')),
            ("a \\", SplitError::Backslash),
            ("a \0", SplitError::Zero),
        ];
        for (line, want) in table {
            assert_eq!(split(line), Err(want), "{line:?}");
        }
        assert_eq!(split(&"x".repeat(LINE_BYTES_MAX + 1)), Err(SplitError::Long));
        let told = split("a | b").unwrap_err().to_string();
        assert!(told.starts_with("`|`") && told.contains("without a shell"), "{told}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_line_is_split_or_refused(line in any::<String>(), odd in "[ab '\"\\\\$;=~#\n]{0,20}") {
            let _ = (split(&line), split(&odd));
        }

        #[test]
        fn quoted_words_come_back(words in prop::collection::vec("[^\0]{0,12}", 1..6)) {
            prop_assume!(!words[0].is_empty());
            prop_assert_eq!(split(&join(&words)), Ok(words));
        }
    }
}
