//! One word of a line as the program gets it, if every shell would give it the same.

/// Takes the quotes off; `Err` names what a shell would do more with.
pub(super) fn unquote(text: &str) -> Result<String, &'static str> {
    // `find -exec … {}`: no list, so nothing to expand.
    if text == "{}" {
        return Ok(text.to_owned());
    }
    let mut word = String::with_capacity(text.len());
    let mut before = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => single(&mut letters, &mut word)?,
            '"' => double(&mut letters, &mut word)?,
            '\\' => match letters.next() {
                Some('\n') | None => return Err("a line that goes on"),
                Some(next) => word.push(next),
            },
            '$' => return Err("a variable or an expansion (`$`)"),
            '`' => return Err("a command in backticks"),
            '*' | '?' | '[' => return Err("a pattern of file names"),
            '{' | '}' => return Err("braces"),
            '~' if matches!(before, None | Some('=' | ':')) => return Err("a home folder (`~`)"),
            '#' if before.is_none() => return Err("a comment"),
            '(' | ')' | '<' | '>' | '|' | '&' | ';' => return Err("a sign of the shell inside a word"),
            letter if letter.is_control() || (letter.is_whitespace()) => {
                return Err("a control character or an odd space");
            }
            letter => word.push(letter),
        }
        before = Some(letter);
    }
    Ok(word)
}

fn single(letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    for letter in letters {
        match letter {
            '\'' => return Ok(()),
            letter => word.push(letter),
        }
    }
    Err("a quote that does not end")
}

fn double(letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Ok(()),
            '$' => return Err("a variable or an expansion (`$`)"),
            '`' => return Err("a command in backticks"),
            '\\' => match letters.next() {
                Some(next @ ('$' | '`' | '"' | '\\')) => word.push(next),
                Some('\n') | None => return Err("a line that goes on"),
                Some(next) => word.extend(['\\', next]),
            },
            letter => word.push(letter),
        }
    }
    Err("a quote that does not end")
}
