//! What a `sed` or `awk` script does, as far as its text shows.
//!
//! Only the plain part of each language is known here. Any other construct counts as hidden code: a wrong "plain"
//! would be a security hole, a wrong "hidden" is only one question.

/// Whether a `sed` script only chooses and changes lines.
pub(super) fn is_plain_sed(script: &str) -> bool {
    let mut rest = script.trim_start_matches(is_gap);
    while !rest.is_empty() {
        let Some(after) = command(rest) else { return false };
        rest = after.trim_start_matches(is_gap);
    }
    true
}

fn is_gap(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, ';' | '{' | '}')
}

/// Reads one command with its addresses; returns the text after it.
fn command(text: &str) -> Option<&str> {
    let mut rest = address(text)?;
    if let Some(after) = rest.strip_prefix(',') {
        rest = address(after.trim_start())?;
    }
    let rest = rest.trim_start().trim_start_matches('!').trim_start();
    let mut letters = rest.chars();
    match letters.next()? {
        'p' | 'P' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'x' | 'n' | 'N' | '=' | '{' => Some(letters.as_str()),
        'q' | 'Q' | 'l' => Some(letters.as_str().trim_start_matches(|letter: char| letter.is_ascii_digit())),
        's' => {
            let after = fields(letters.as_str())?;
            let flags = after.find(|letter: char| !"gIip0123456789mM".contains(letter)).unwrap_or(after.len());
            end(after.get(flags..)?)
        }
        'y' => end(fields(letters.as_str())?),
        _ => None,
    }
}

/// The text after a command, if the command ends here.
fn end(rest: &str) -> Option<&str> {
    (rest.is_empty() || rest.starts_with(is_gap)).then_some(rest)
}

fn address(text: &str) -> Option<&str> {
    match text.chars().next() {
        Some('0'..='9') => {
            Some(text.trim_start_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '~')))
        }
        Some('$') => text.get(1..),
        Some('+') => Some(text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '+')),
        Some('/') => field(text.get(1..)?, '/').map(|rest| rest.trim_start_matches(['I', 'M'])),
        _ => Some(text),
    }
}

/// Two fields after a delimiter.
fn fields(text: &str) -> Option<&str> {
    let sign = text.chars().next().filter(|sign| !sign.is_alphanumeric() && !matches!(sign, '\\' | '\n' | ' '))?;
    field(field(text.get(sign.len_utf8()..)?, sign)?, sign)
}

/// The text after the delimiter that ends a field.
fn field(text: &str, sign: char) -> Option<&str> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()?),
            // Inside a set some programs read the delimiter as a letter, others as the end.
            '[' | '\n'
                if letter == '\n'
                    || text
                        .get(at..)?
                        .find(']')
                        .is_some_and(|end| text.get(at..at + end).is_some_and(|set| set.contains(sign))) =>
            {
                return None;
            }
            letter if letter == sign => return text.get(at + sign.len_utf8()..),
            _ => {}
        }
    }
    None
}

/// Whether an `awk` script only reads what it is given and prints.
pub(super) fn is_plain_awk(script: &str) -> bool {
    const ODD: [&str; 7] = ["system", "getline", "@", "ARGV", "ARGC", "close", "ENVIRON"];
    // `||` is an "or"; a single sign is a pipe. A `>` writes to a file only behind a `print`.
    let pipes = script.replace("||", "").contains('|');
    let writes = script.find("print").and_then(|at| script.get(at..)).is_some_and(|rest| rest.contains('>'));
    !pipes && !writes && ODD.iter().all(|word| !script.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts() {
        let plain = [
            "s/a/b/",
            "s/a/b/g",
            "s|a/b|c|gI",
            "1,10p",
            "$d",
            "/foo/d",
            "/a/,/b/p",
            "10q",
            "s/a/b/;s/c/d/",
            "1!G;h;$!d",
            "/x/{s/a/b/;p}",
            "y/abc/xyz/",
            "1~2p",
            "s/[0-9]*/n/2p",
            "/a/,+3p",
            "",
        ];
        for script in plain {
            assert!(is_plain_sed(script), "{script}");
        }
        let odd = [
            "s/a/b/e",
            "s/a/b/w out",
            "w out",
            "1e id",
            "e",
            "r /etc/passwd",
            "R x",
            "W x",
            "s/a/b/gw x",
            "1,3w x",
            "s/a/b/;w x",
            "/a/e",
            "F",
            "i\\",
            "a text",
            "c x",
            "s/[/]/x/w y/",
            "v",
            "bx",
            ":a",
            "s\na\nb\ne",
            "s/a/b/ e",
            "{e}",
            "}e",
            "s/a\nb/c/",
        ];
        for script in odd {
            assert!(!is_plain_sed(script), "{script}");
        }
    }

    #[test]
    fn awk_scripts() {
        for script in
            ["{print $1}", "NR==1", "/x/ {n++} END {print n}", "BEGIN {FS=\":\"} {print $2}", "NR>1 || $3>5 {print}"]
        {
            assert!(is_plain_awk(script), "{script}");
        }
        for script in [
            "BEGIN{system(\"id\")}",
            "{print > \"x\"}",
            "{print | \"sh\"}",
            "NR>1{print \"}\" > \"x\"}",
            "{print ||| \"sh\"}",
            "{\"id\" | getline}",
            "@load \"x\"",
        ] {
            assert!(!is_plain_awk(script), "{script}");
        }
    }
}
