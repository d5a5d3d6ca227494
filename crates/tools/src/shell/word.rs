//! One word of a line as the program gets it, if every shell would give it the same.

/// A word without its quotes.
#[derive(Debug, Default)]
pub(super) struct ShellWord {
    pub(super) text: String,
    /// The same as a pattern of file names, if it is one: letters that were quoted have a backslash.
    pub(super) pattern: Option<String>,
}

impl ShellWord {
    /// The letters of a word that must be no pattern.
    pub(super) fn plain(self) -> Result<String, &'static str> {
        if self.pattern.is_some() { Err("a pattern of file names") } else { Ok(self.text) }
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
pub(super) fn unquote(text: &str) -> Result<ShellWord, &'static str> {
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
                None => return Err("a backslash with nothing behind it"),
                Some(next) => word.push(next),
            },
            '$' => return Err("a variable or an expansion (`$`)"),
            '`' => return Err("a command in backticks"),
            '{' | '}' => return Err("braces"),
            '~' if matches!(before, None | Some('=' | ':')) => return Err("a home folder (`~`)"),
            '#' if before.is_none() => return Err("a comment"),
            '(' | ')' | '<' | '>' | '|' | '&' | ';' => return Err("a sign of the shell inside a word"),
            letter if letter.is_control() || (letter.is_whitespace()) => {
                return Err("a control character or an odd space");
            }
            letter => word.push_open(letter),
        }
        before = Some(letter);
    }
    let WordBuilder { text, pattern, is_pattern } = word;
    Ok(ShellWord { text, pattern: is_pattern.then_some(pattern) })
}

fn single(letters: &mut std::str::Chars<'_>, word: &mut WordBuilder) -> Result<(), &'static str> {
    for letter in letters {
        match letter {
            '\'' => return Ok(()),
            letter => word.push(letter),
        }
    }
    Err("a quote that does not end")
}

fn double(letters: &mut std::str::Chars<'_>, word: &mut WordBuilder) -> Result<(), &'static str> {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Ok(()),
            '$' => return Err("a variable or an expansion (`$`)"),
            '`' => return Err("a command in backticks"),
            '\\' => match letters.next() {
                Some(next @ ('$' | '`' | '"' | '\\')) => word.push(next),
                Some('\n') => {}
                None => return Err("a quote that does not end"),
                Some(next) => {
                    word.push('\\');
                    word.push(next);
                }
            },
            letter => word.push(letter),
        }
    }
    Err("a quote that does not end")
}
