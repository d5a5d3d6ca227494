//! A skill's text with its placeholders filled in.
//!
//! The text is cut into pieces first and filled in afterwards, so that an argument is never taken for a placeholder or
//! a command. Commands are only found here, `inline` fills them in, and the caller judges and runs each by itself.

use std::collections::BTreeMap;

use super::{COMMANDS_MAX, inline};

/// Values of placeholders.
#[derive(Debug, Clone, Default)]
pub(super) struct Fill<'a> {
    /// The text after the skill's name.
    pub arguments: &'a str,
    /// Names of the first, second … argument.
    pub names: &'a [String],
    /// `${NAME}` by name.
    pub vars: BTreeMap<&'static str, String>,
    /// The skill's name and the line of its file that the text begins with, for errors.
    pub place: (&'a str, usize),
}

/// A text cut into pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplatePart {
    Text(String),
    /// A command whose output takes its place, and the line of the text that it begins in, from 0.
    Command(String, usize),
}

/// Cuts a text at its commands: `` !`…` `` outside of code blocks, and blocks that begin with ```` ```! ````.
pub(super) fn pieces(body: &str) -> Vec<TemplatePart> {
    let (mut pieces, mut text) = (Vec::new(), String::new());
    let mut fence: Option<(String, Option<String>)> = None;
    let mut opened = 0;
    for (number, line) in body.split_inclusive('\n').enumerate() {
        let bare = line.trim();
        if let Some((mark, script)) = &mut fence {
            let is_end = bare.starts_with(mark.as_str()) && bare.trim_start_matches(['`', '~']).is_empty();
            match (is_end, script) {
                (false, Some(script)) => script.push_str(line),
                (false, None) => text.push_str(line),
                (true, None) => {
                    text.push_str(line);
                    fence = None;
                }
                (true, Some(script)) => {
                    pieces.push(TemplatePart::Text(std::mem::take(&mut text)));
                    pieces.push(TemplatePart::Command(script.trim().to_owned(), opened));
                    text.push('\n');
                    fence = None;
                }
            }
            continue;
        }
        let mark: String = bare.chars().take_while(|letter| matches!(letter, '`' | '~')).collect();
        if mark.len() >= 3 {
            let is_script = bare.get(mark.len()..).is_some_and(|rest| rest.trim() == "!");
            if !is_script {
                text.push_str(line);
            }
            (fence, opened) = (Some((mark, is_script.then(String::new))), number + 1);
            continue;
        }
        cut_line(line, number, &mut text, &mut pieces);
    }
    if let Some((mark, Some(script))) = fence {
        // A block without an end is no command.
        text.push_str(&format!("{mark}!\n{script}"));
    }
    pieces.push(TemplatePart::Text(text));
    pieces.retain(|piece| !matches!(piece, TemplatePart::Text(text) if text.is_empty()));
    pieces
}

fn cut_line(line: &str, number: usize, text: &mut String, pieces: &mut Vec<TemplatePart>) {
    let mut rest = line;
    while let Some(at) = rest.find("!`") {
        let (before, after) = rest.split_at(at);
        let inner = after.get(2..).unwrap_or_default();
        let is_word = before.chars().next_back().is_some_and(|letter| letter.is_alphanumeric() || letter == '`');
        match inner.split_once('`').filter(|(command, _)| !is_word && !command.trim().is_empty()) {
            Some((command, after)) => {
                text.push_str(before);
                pieces.push(TemplatePart::Text(std::mem::take(text)));
                pieces.push(TemplatePart::Command(command.trim().to_owned(), number));
                rest = after;
            }
            None => {
                text.push_str(before);
                text.push_str("!`");
                rest = inner;
            }
        }
    }
    text.push_str(rest);
}

/// The commands in a skill's text, as they are written.
pub fn written_commands(body: &str) -> Vec<String> {
    let command = |piece| if let TemplatePart::Command(command, _) = piece { Some(command) } else { None };
    pieces(body).into_iter().filter_map(command).collect()
}

/// Fills in a skill's text. `run` gives the output of a command; it is called at most [`COMMANDS_MAX`] times.
pub(super) fn fill(body: &str, with: &Fill<'_>, mut run: impl FnMut(&str) -> String) -> String {
    let words = words(with.arguments);
    let (mut whole, mut used, mut commands) = (String::with_capacity(body.len()), false, 0);
    for piece in pieces(body) {
        match piece {
            TemplatePart::Text(text) => used |= blanks(&text, with, &words, &mut whole),
            TemplatePart::Command(written, line) => match inline::filled(&written, with, &words) {
                Ok((command, has_argument)) => {
                    used |= has_argument;
                    commands += 1;
                    if commands > COMMANDS_MAX {
                        let why = format!("at most {COMMANDS_MAX} commands are run for a skill");
                        whole.push_str(&unrun(&command, &why));
                    } else {
                        whole.push_str(run(&command).trim_end());
                    }
                }
                Err(why) => {
                    used = true;
                    let (skill, first) = with.place;
                    whole.push_str(&unrun(&written, &format!("skill `{skill}`, line {}: {why}", first + line)));
                }
            },
        }
    }
    if !used && !with.arguments.trim().is_empty() {
        whole.truncate(whole.trim_end().len());
        whole.push_str(&format!("\n\nARGUMENTS: {}\n", with.arguments.trim()));
    }
    whole
}

/// The text in place of a command that was not run.
pub(super) fn unrun(command: &str, why: &str) -> String {
    format!("[`{command}` was not run: {why}]")
}

/// The commands of a text as they would be run.
pub(super) fn commands(body: &str, with: &Fill<'_>) -> Vec<String> {
    let mut found = Vec::new();
    fill(body, with, |command| {
        found.push(command.to_owned());
        String::new()
    });
    found
}

/// Commands whose placeholders can never be filled in: the line of the text, and the reason.
pub fn misplaced(body: &str, names: &[String]) -> Vec<(usize, String)> {
    // One argument: `$1` and what follows may be `awk`'s own.
    let with = Fill { arguments: "x", names, ..Fill::default() };
    let words = words(with.arguments);
    let fault = |piece| match piece {
        TemplatePart::Command(command, line) => Some((line, inline::filled(&command, &with, &words).err()?)),
        TemplatePart::Text(_) => None,
    };
    pieces(body).into_iter().filter_map(fault).collect()
}

/// Fills in placeholders; whether one stood for an argument.
fn blanks(text: &str, with: &Fill<'_>, words: &[String], into: &mut String) -> bool {
    let (mut rest, mut used) = (text, false);
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        into.push_str(before);
        let found = blank(after, with, words);
        used |= found.as_ref().is_some_and(|found| found.meaning != Meaning::Path);
        let (filled, length) = found.map_or(("$".into(), 1), |found| (found.text, found.length));
        into.push_str(&filled);
        rest = after.get(length..).unwrap_or_default();
    }
    into.push_str(rest);
    used
}

/// A placeholder at the beginning of a text.
#[derive(Debug)]
pub(super) struct Blank {
    /// The value that replaces it.
    pub text: String,
    /// Length of the placeholder in bytes.
    pub length: usize,
    pub meaning: Meaning,
}

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// All arguments, as one text.
    All,
    /// One of the arguments.
    One,
    /// A path or an id of ours.
    Path,
}

/// The placeholder that a text begins with, if it has a value.
pub(super) fn blank(text: &str, with: &Fill<'_>, words: &[String]) -> Option<Blank> {
    let one =
        |index: usize, length| words.get(index).map(|text| Blank { text: text.clone(), length, meaning: Meaning::One });
    let none = |length| Blank { text: String::new(), length, meaning: Meaning::One };
    if let Some(inner) = text.strip_prefix("${").and_then(|rest| rest.split_once('}')).map(|(inner, _)| inner) {
        let (value, length) = (with.vars.get(inner)?, inner.len() + 3);
        return Some(Blank { text: value.clone(), length, meaning: Meaning::Path });
    }
    let rest = text.strip_prefix('$')?;
    if let Some(after) = rest.strip_prefix("ARGUMENTS") {
        let index = after.strip_prefix('[').and_then(|after| after.split_once(']')).map(|(index, _)| index);
        if let Some((index, number)) = index.and_then(|index| Some((index, index.parse::<usize>().ok()?))) {
            let length = "$ARGUMENTS[]".len() + index.len();
            return Some(one(number, length).unwrap_or(none(length)));
        }
        let ends = !after.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let (text, length) = (with.arguments.to_owned(), "$ARGUMENTS".len());
        return ends.then_some(Blank { text, length, meaning: Meaning::All });
    }
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    if !digits.is_empty() {
        // `$5` is a price unless there is a sixth argument.
        return one(digits.parse().ok()?, digits.len() + 1);
    }
    let name: String =
        rest.chars().take_while(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-')).collect();
    let index = with.names.iter().position(|known| *known == name && !name.is_empty())?;
    let length = name.len() + 1;
    Some(one(index, length).unwrap_or(none(length)))
}

/// Splits arguments; quotes keep blanks together.
pub(super) fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in text.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if matches!(letter, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(body: &str, arguments: &str) -> String {
        let names = ["issue".to_owned(), "due".to_owned()];
        let vars = [("CLAUDE_SKILL_DIR", "/s/x".to_owned()), ("CLAUDE_SESSION_ID", "s1".to_owned())].into();
        fill(body, &Fill { arguments, names: &names, vars, place: ("notes", 7) }, |command| format!("<{command}>"))
    }

    #[test]
    fn blanks_are_filled() {
        let cases = [
            ("Fix $ARGUMENTS now", "a b", "Fix a b now"),
            ("$ARGUMENTS[1] $0 $1", "a 'b c'", "b c a b c"),
            ("$ARGUMENTS[7].", "a", "."),
            ("$issue by $due", "'the bug' friday", "the bug by friday"),
            ("$issue|$due|", "only", "only||"),
            ("it costs $5, $HOME and $ARGUMENTSX", "", "it costs $5, $HOME and $ARGUMENTSX"),
            ("run ${CLAUDE_SKILL_DIR}/x.py in ${CLAUDE_SESSION_ID} ${PATH}", "", "run /s/x/x.py in s1 ${PATH}"),
            ("no blank", "a b", "no blank\n\nARGUMENTS: a b\n"),
            ("no blank", "  ", "no blank"),
            ("$", "x", "$\n\nARGUMENTS: x\n"),
        ];
        for (body, arguments, want) in cases {
            assert_eq!(filled(body, arguments), want, "{body}");
        }
    }

    #[test]
    fn commands_are_found_where_they_are_meant() {
        let cases = [
            ("Status: !`git status`\n", "Status: <git status>\n"),
            ("!`a` and !`b`", "<a> and <b>"),
            ("```!\ngit log\ngit diff\n```\nafter", "<git log\ngit diff>\nafter"),
            ("```sh\n!`in a block`\n```\n", "```sh\n!`in a block`\n```\n"),
            ("wow!`not this` ![image](x) !`", "wow!`not this` ![image](x) !`"),
            ("!`` nothing", "!`` nothing"),
            ("```!\nnever closed", "```!\nnever closed"),
        ];
        for (body, want) in cases {
            assert_eq!(filled(body, ""), want, "{body}");
        }
    }

    #[test]
    fn an_argument_is_neither_a_command_nor_a_blank() {
        assert_eq!(
            filled("say $ARGUMENTS", "!`rm -rf /` $0 ${CLAUDE_SKILL_DIR}"),
            "say !`rm -rf /` $0 ${CLAUDE_SKILL_DIR}"
        );
        assert_eq!(filled("!`echo $0`", "hi"), "<echo hi>");
        assert_eq!(filled("!`echo $0`", "'hi; rm -rf x'"), "<echo 'hi; rm -rf x'>");
    }

    #[test]
    fn a_misplaced_placeholder_names_skill_and_line() {
        let body = "one\n\n!`sh -c \"echo $0\"`\n```!\nls $(cat $ARGUMENTS)\n```\n!`awk '{print $1}' a`";
        let text = filled(body, "x");
        assert!(text.contains("skill `notes`, line 9: `$0` cannot be filled in"), "{text}");
        assert!(text.contains("skill `notes`, line 11: `$ARGUMENTS` cannot"), "{text}");
        assert_eq!(text.matches("was not run").count(), 2, "{text}");
        let lines: Vec<usize> = misplaced(body, &[]).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 4]);
    }

    #[test]
    fn there_is_an_end_to_commands() {
        let body = "!`x`\n".repeat(COMMANDS_MAX + 2);
        let text = filled(&body, "");
        assert_eq!((text.matches("<x>").count(), text.matches("was not run").count()), (COMMANDS_MAX, 2));
    }

    proptest! {
        #[test]
        fn any_text_is_filled(body in "[-!`~$a-zA-Z0-9{}\\[\\] \n\"']{0,200}", arguments in "[a-z'\" $!`]{0,40}") {
            let text = filled(&body, &arguments);
            prop_assert!(text.len() <= (body.len() + 64) * (arguments.len() + 64));
        }

        #[test]
        fn without_commands_or_blanks_a_text_stays_as_it_is(body in "[a-z #*`\n]{0,200}") {
            prop_assert_eq!(filled(&body, ""), body);
        }
    }
}
