//! A skill's inline command with its placeholders filled in.
//!
//! The command is parsed first, with one marked word per placeholder, and a value is put into the parsed word: no
//! quoting and no character of a value can begin another command. A placeholder in a command that is not plain words, or
//! in a place that a program reads as code, is an error.

use max_team_core::policy::command_line::{CommandLine, SimpleCommand, quote};
use max_team_core::policy::program::insert;
use max_team_tools::shell::parse_line;

use super::fill::{Fill, Meaning, blank};

/// A placeholder of a command.
#[derive(Debug)]
struct Slot {
    /// As it is written.
    name: String,
    /// The value as one text.
    text: String,
    /// The value as separate words, where the placeholder stands alone and unquoted.
    words: Option<Vec<String>>,
}

/// A command whose placeholders are marked words.
#[derive(Debug)]
struct Template {
    text: String,
    /// Prefixes of the marks for arguments, and of those for our own paths; neither occurs elsewhere in the command.
    marks: [String; 2],
    slots: [Vec<Slot>; 2],
}

/// The command as it would be run, and whether an argument is in it.
pub(super) fn filled(command: &str, with: &Fill<'_>, words: &[String]) -> Result<(String, bool), String> {
    let template = Template::of(command, with, words);
    let [arguments, paths] = &template.slots;
    let is_used = !arguments.is_empty();
    if !is_used && paths.is_empty() {
        return Ok((template.text, false));
    }
    let name = arguments.iter().chain(paths).next().map(|slot| slot.name.clone()).unwrap_or_default();
    let refused = |why: String| {
        format!("`{name}` cannot be filled in: {why}; a placeholder must be a plain argument of a plain command")
    };
    let parts = match parse_line(&template.text) {
        CommandLine::Plain(parts) => parts,
        CommandLine::Opaque { why, .. } => return Err(refused(format!("the command has {why}"))),
    };
    let line =
        CommandLine::Plain(parts.iter().map(|part| template.fill(part)).collect::<Result<_, _>>().map_err(refused)?);
    let text = line.to_string();
    // The judged and executed command is parsed from this text again.
    if parse_line(&text) == line {
        Ok((text, is_used))
    } else {
        Err(refused("the value cannot be written as one word".into()))
    }
}

impl Template {
    fn of(command: &str, with: &Fill<'_>, words: &[String]) -> Self {
        let unused = |mut mark: String| {
            while command.contains(&mark) {
                mark.push('q');
            }
            mark
        };
        let marks = [unused("argslot".to_owned()), unused("pathslot".to_owned())];
        let (mut text, mut slots, mut rest) = (String::new(), [Vec::new(), Vec::new()], command);
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            text.push_str(before);
            let Some(found) = blank(after, with, words) else {
                text.push('$');
                rest = after.get(1..).unwrap_or_default();
                continue;
            };
            let (name, behind) = after.split_at_checked(found.length).unwrap_or((after, ""));
            rest = behind;
            let is_path = found.meaning == Meaning::Path;
            if is_path && quote(&found.text) == found.text {
                // Plain characters are the same in any quoting.
                text.push_str(&found.text);
                continue;
            }
            let starts = text.chars().next_back().is_none_or(char::is_whitespace);
            let ends = rest.chars().next().is_none_or(|next| next.is_whitespace() || ";|&<>".contains(next));
            let several = match found.meaning {
                Meaning::All => words.to_vec(),
                _ => Some(found.text.clone()).filter(|text| !text.is_empty()).into_iter().collect(),
            };
            let [arguments, paths] = &mut slots;
            let [argument, path] = &marks;
            let (mark, list) = if is_path { (path, paths) } else { (argument, arguments) };
            text.push_str(&format!("{mark}{}z", list.len()));
            list.push(Slot { name: name.to_owned(), text: found.text, words: (starts && ends).then_some(several) });
        }
        text.push_str(rest);
        Self { text, marks, slots }
    }

    fn fill(&self, part: &SimpleCommand) -> Result<SimpleCommand, String> {
        let [argument, path] = &self.marks;
        let [arguments, paths] = &self.slots;
        let part = insert(part, path, true, |word| values(word, path, paths))?;
        insert(&part, argument, false, |word| values(word, argument, arguments))
    }
}

/// The replacement of a word with marks.
fn values(word: &str, mark: &str, slots: &[Slot]) -> Vec<String> {
    let (mut text, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once(mark) {
        text.push_str(before);
        let (number, behind) = after.split_once('z').unwrap_or((after, ""));
        let Some(slot) = number.parse::<usize>().ok().and_then(|number| slots.get(number)) else { break };
        if let Some(words) = slot.words.as_ref().filter(|_| before.is_empty() && behind.is_empty() && text.is_empty()) {
            return words.clone();
        }
        text.push_str(&slot.text);
        rest = behind;
    }
    text.push_str(rest);
    vec![text]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fill::words;
    use super::*;

    fn put(command: &str, arguments: &str) -> Result<String, String> {
        let names = ["issue".to_owned()];
        let vars = [("CLAUDE_SKILL_DIR", "/s/x".to_owned()), ("CLAUDE_PROJECT_DIR", "/p; id/$(id)".to_owned())].into();
        let with = Fill { arguments, names: &names, vars, ..Fill::default() };
        filled(command, &with, &words(arguments)).map(|(text, _)| text)
    }

    const EVIL: [&str; 14] = [
        "x; touch pwned",
        "x && touch pwned",
        "x | sh",
        "$(touch pwned)",
        "`touch pwned`",
        "'; touch pwned; '",
        "\\\"; touch pwned; \\\"",
        "x\ntouch pwned",
        "x > pwned",
        "& touch pwned",
        "${IFS}touch",
        "x # y",
        "*",
        "~ {a,b} !x",
    ];

    #[test]
    fn a_value_is_one_word_in_any_quoting() {
        for evil in EVIL {
            let quoted = format!("\"{}\"", evil.replace('"', ""));
            let value = evil.replace('"', "");
            for command in
                ["echo $0", "echo \"$0\"", "echo '$0'", "echo a$0\"b\"", "echo \"a '$0' b\"", "git log --grep=$issue"]
            {
                let text = put(command, &quoted).unwrap_or_else(|why| panic!("{command} {evil}: {why}"));
                let CommandLine::Plain(parts) = parse_line(&text) else { panic!("{text}") };
                assert_eq!(parts.len(), 1, "{text}");
                assert!(parts[0].flows.is_empty() && parts[0].env.is_empty(), "{text}");
                assert!(parts[0].argv.iter().any(|word| word.contains(&value)), "{text}");
            }
        }
    }

    #[test]
    fn all_arguments_are_words_or_one_word() {
        let cases = [
            ("git diff $ARGUMENTS", "--stat 'a b'", "git diff --stat 'a b'"),
            ("git diff $ARGUMENTS", "", "git diff"),
            ("echo \"$ARGUMENTS\"", "a; b", "echo 'a; b'"),
            ("echo $ARGUMENTS[1]|cat", "a b", "echo b | cat"),
            ("${CLAUDE_SKILL_DIR}/run.sh $0", "a&b", "/s/x/run.sh 'a&b'"),
            ("${CLAUDE_PROJECT_DIR}/run.sh", "", "'/p; id/$(id)/run.sh'"),
            ("cat ${CLAUDE_PROJECT_DIR}/a < $0", "b c", "cat '/p; id/$(id)/a' <b"),
            ("LANG=$0 date", "a;b", "LANG='a;b' date"),
            ("echo $HOME", "x", "echo $HOME"),
            ("argslot0z $0", "x", "argslot0z x"),
        ];
        for (command, arguments, want) in cases {
            assert_eq!(put(command, arguments).as_deref(), Ok(want), "{command}");
        }
    }

    #[test]
    fn placeholders_in_code_are_refused() {
        let refused = [
            "$0 --version",
            "sh -c 'echo $0'",
            "sh -c \"echo $0\"",
            "echo $(cat $0)",
            "echo `cat $0`",
            "cat <<EOF\n$0\nEOF",
            "cat <<< $0",
            "for x in $0; do echo $x; done",
            "echo $0 $HOME",
            "echo $0 &",
            "python3 -c 'print(\"$0\")'",
            "awk '/$0/'",
            "PATH=$0 ls",
            "cat > \"\"$issue",
            "echo a >&$0",
        ];
        for command in refused {
            let arguments = if command.contains("issue") { "''" } else { "x" };
            assert!(put(command, arguments).is_err(), "{command}: {:?}", put(command, arguments));
        }
    }

    proptest! {
        #[test]
        fn the_structure_is_that_of_the_template(
            command in prop::sample::select(vec![
                "echo $0 | cat", "git log $0 && ls", "echo \"$0\"; true", "grep -- '$0' a", "cat \"x$0 y\" || false",
                "LANG=$0 ls", "echo \"$ARGUMENTS\"", "timeout 5 echo $0",
            ]),
            value in "[-a-z=;|&$`'(){}<>*~#!\\\\ \n/.@:A-Z0-9中\u{202e}]{1,24}",
        ) {
            let programs = |text: &str| match parse_line(text) {
                CommandLine::Plain(parts) => parts.iter().map(|part| (part.join, part.argv[0].clone(), part.argv.len(), part.flows.len())).collect::<Vec<_>>(),
                CommandLine::Opaque { .. } => Vec::new(),
            };
            if let Ok(text) = put(command, &format!("\"{value}\"")) {
                let want = programs(&command.replace("$0", "x").replace("$ARGUMENTS", "x"));
                prop_assert_eq!(programs(&text), want, "{}", text);
            }
        }
    }
}
