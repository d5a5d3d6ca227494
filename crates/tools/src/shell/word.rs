//! One word of a line as the program gets it, if every shell would give it the same.

use max_team_core::policy::ShellSyntax;

/// A word without its quotes.
#[derive(Debug, Default)]
pub(super) struct ShellWord {
    pub(super) text: String,
    /// The same as a pattern of file names, if it is one: letters that were quoted have a backslash.
    pub(super) pattern: Option<String>,
}

impl ShellWord {
    /// The letters of a word that must be no pattern.
    pub(super) fn plain(self) -> Result<String, ShellSyntax> {
        if self.pattern.is_some() { Err(ShellSyntax::Pattern) } else { Ok(self.text) }
    }
}

/// A word as it is put together.
#[derive(Default)]
struct WordBuilder {
    text: String,
    pattern: String,
    is_pattern: bool,
}

impl WordBuilder {
    /// A letter that stands for itself.
    fn push(&mut self, letter: char) {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\' | '!' | '^' | '-' | '{' | '}') {
            self.pattern.push('\\');
        }
        self.pattern.push(letter);
        self.text.push(letter);
    }

    /// A letter as it is written, which may stand for others.
    fn push_open(&mut self, letter: char) {
        self.is_pattern |= matches!(letter, '*' | '?' | '[');
        self.pattern.push(letter);
        self.text.push(letter);
    }
}

/// Takes the quotes off; `Err` names what a shell would do more with.
pub(super) fn unquote(text: &str) -> Result<ShellWord, ShellSyntax> {
    // `find -exec … {}` is no list, so nothing to expand; `[` and `]` alone are a command and its end.
    if matches!(text, "{}" | "[" | "]") {
        return Ok(ShellWord { text: text.to_owned(), pattern: None });
    }
    let mut word = WordBuilder::default();
    let mut before = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => single(&mut letters, &mut word)?,
            '"' => double(&mut letters, &mut word)?,
            '\\' => match letters.next() {
                // The line goes on with the next letter.
                Some('\n') => continue,
                None => return Err(ShellSyntax::OpenBackslash),
                Some(next) => word.push(next),
            },
            '$' => return Err(ShellSyntax::Expansion),
            '`' => return Err(ShellSyntax::Backticks),
            '{' | '}' => return Err(ShellSyntax::Braces),
            '~' if matches!(before, None | Some('=' | ':')) => return Err(ShellSyntax::HomeFolder),
            '#' if before.is_none() => return Err(ShellSyntax::Comment),
            '(' | ')' | '<' | '>' | '|' | '&' | ';' => return Err(ShellSyntax::SignInWord),
            letter if letter.is_control() || (letter.is_whitespace()) => {
                return Err(ShellSyntax::OddCharacter);
            }
            letter => word.push_open(letter),
        }
        before = Some(letter);
    }
    let WordBuilder { text, pattern, is_pattern } = word;
    Ok(ShellWord { text, pattern: is_pattern.then_some(pattern) })
}

fn single(letters: &mut std::str::Chars<'_>, word: &mut WordBuilder) -> Result<(), ShellSyntax> {
    for letter in letters {
        match letter {
            '\'' => return Ok(()),
            letter => word.push(letter),
        }
    }
    Err(ShellSyntax::OpenQuote)
}

fn double(letters: &mut std::str::Chars<'_>, word: &mut WordBuilder) -> Result<(), ShellSyntax> {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Ok(()),
            '$' => return Err(ShellSyntax::Expansion),
            '`' => return Err(ShellSyntax::Backticks),
            '\\' => match letters.next() {
                Some(next @ ('$' | '`' | '"' | '\\')) => word.push(next),
                Some('\n') => {}
                None => return Err(ShellSyntax::OpenQuote),
                Some(next) => {
                    word.push('\\');
                    word.push(next);
                }
            },
            letter => word.push(letter),
        }
    }
    Err(ShellSyntax::OpenQuote)
}
