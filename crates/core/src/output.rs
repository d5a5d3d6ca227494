//! The output of a command: the lines that a terminal would show at the end.

use std::iter::Peekable;

use crate::limits::OUTPUT_TAIL_BYTES_MAX;

/// The lines that a terminal would show at the end: escape sequences are gone, and what a carriage return, a backspace or
/// "erase the line" has overwritten is not there any more, so that a progress bar is one line. Other control characters
/// stay, for [`crate::text::visible`].
pub fn rendered(text: &str) -> String {
    if !text.contains(['\u{1b}', '\r', '\u{8}']) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut line = TerminalLine::default();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => {
                shown.push_str(&line.take());
                shown.push('\n');
            }
            '\r' => line.column = 0,
            '\u{8}' => line.column = line.column.saturating_sub(1),
            '\u{1b}' => match next_on_line(&mut letters) {
                Some('[') => {
                    let (parameters, end) = control_sequence(&mut letters);
                    line.control(&parameters, end);
                }
                // Titles, links and the like: up to BEL or ESC \.
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut letters),
                // A character set is named by one more character.
                Some('(' | ')' | '*' | '+' | '#' | '%') => drop(next_on_line(&mut letters)),
                _ => {}
            },
            letter => line.put(letter),
        }
    }
    shown.push_str(&line.take());
    shown
}

/// The next character, unless the line ends before it: no escape sequence goes on in the next line.
fn next_on_line(letters: &mut Peekable<impl Iterator<Item = char>>) -> Option<char> {
    letters.next_if(|letter| *letter != '\n')
}

/// Parameters up to the letter that ends the sequence.
fn control_sequence(letters: &mut Peekable<impl Iterator<Item = char>>) -> (String, char) {
    let mut parameters = String::new();
    while let Some(letter) = letters.next_if(|letter| ('\u{20}'..='~').contains(letter)) {
        if letter >= '@' {
            return (parameters, letter);
        }
        parameters.push(letter);
    }
    (String::new(), ' ')
}

fn skip_string(letters: &mut Peekable<impl Iterator<Item = char>>) {
    while let Some(letter) = next_on_line(letters) {
        if letter == '\u{7}' || (letter == '\u{1b}' && letters.next_if_eq(&'\\').is_some()) {
            return;
        }
    }
}

/// One line of a terminal, written from left to right and over itself.
#[derive(Default)]
struct TerminalLine {
    cells: Vec<char>,
    column: usize,
}

impl TerminalLine {
    fn put(&mut self, letter: char) {
        match self.cells.get_mut(self.column) {
            Some(cell) => *cell = letter,
            None => self.cells.push(letter),
        }
        self.column += 1;
    }

    /// Only erasing and going to a column of the line are carried out.
    fn control(&mut self, parameters: &str, end: char) {
        match (end, parameters) {
            ('K', "" | "0") => self.cells.truncate(self.column),
            ('K', "1" | "2") => {
                self.cells.clear();
                self.column = 0;
            }
            ('G', "" | "0" | "1") => self.column = 0,
            _ => {}
        }
    }

    fn take(&mut self) -> String {
        self.column = 0;
        std::mem::take(&mut self.cells).into_iter().collect()
    }
}

/// The last bytes of an output that goes on.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    /// Adds printed text, and drops the oldest lines beyond the bound.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let over = self.bytes.len().saturating_sub(OUTPUT_TAIL_BYTES_MAX);
        self.bytes.drain(..over);
    }

    /// The last lines that say anything, as a terminal would show them.
    pub fn lines(&self, max: usize) -> String {
        let text = rendered(&String::from_utf8_lossy(&self.bytes));
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines.get(lines.len().saturating_sub(max)..).unwrap_or_default().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rendered_output_keeps_only_visible_lines() {
        for (printed, want) in [
            ("plain\ntext\n", "plain\ntext\n"),
            ("crlf\r\nlines\r\n", "crlf\nlines\n"),
            ("10%\r50%\r100%\ndone", "100%\ndone"),
            ("downloading 90%\rdone\n", "doneloading 90%\n"),
            ("downloading 90%\r\u{1b}[Kdone\n", "done\n"),
            ("downloading 90%\u{1b}[2K\rdone\n", "done\n"),
            ("a\u{1b}[1Gb", "b"),
            ("\u{1b}[31m\u{1b}[1mred\u{1b}[0m é", "red é"),
            ("\u{1b}]0;a title\u{7}text", "text"),
            ("\u{1b}]8;;https://a.example\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]unended\nnext", "\nnext"),
            ("\u{1b}(Bset \u{1b}=keys\u{1b}", "set keys"),
            ("spin |\u{8}/\u{8}-", "spin -"),
            ("\u{8}\u{8}x", "x"),
            ("\u{1b}[2J\u{1b}[Hcleared", "cleared"),
            ("bell \u{7} and null \0", "bell \u{7} and null \0"),
            ("进度 1\r进度 2\n", "进度 2\n"),
            ("", ""),
        ] {
            assert_eq!(rendered(printed), want, "{printed:?}");
        }
    }

    #[test]
    fn a_tail_keeps_the_last_output() {
        let mut tail = Tail::default();
        assert_eq!(tail.lines(3), "");
        tail.push("1\n2\n\n3\r".as_bytes());
        tail.push("4 \n中".as_bytes());
        assert_eq!(tail.lines(2), "4\n中");
        assert_eq!(tail.lines(9), "1\n2\n4\n中");
        tail.push(&vec![b'x'; OUTPUT_TAIL_BYTES_MAX * 2]);
        assert!(tail.bytes.len() == OUTPUT_TAIL_BYTES_MAX && tail.lines(2).lines().count() == 1);
    }

    proptest! {
        #[test]
        fn nothing_that_drives_a_terminal_is_left(text in "[\\x1b\\r\\n\\x08\\x07\\[\\]0-9;a-zK中]{0,60}") {
            let shown = rendered(&text);
            prop_assert!(!shown.contains(['\u{1b}', '\r', '\u{8}']), "{:?}", shown);
            prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
            prop_assert_eq!(rendered(&shown), shown);
        }
    }
}
