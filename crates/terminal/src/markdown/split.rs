//! Cuts Markdown into top-level blocks, line by line, as it comes.
//!
//! A block is handed out the moment no later line can change it, and it is rendered on its own: what is shown
//! depends on the lines alone, never on how they arrived. Lists are cut into items and fenced code into lines, so
//! that even a very long one leaves at once. What inside a block is a heading, a table or a nested list is not
//! decided here but by the parser, on the block's source.

/// Rows after which a table is cut and goes on under a repeated header: its columns cannot be measured before its
/// end, and an endless table must still be shown.
const TABLE_ROWS_MAX: usize = 100;

/// One block, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whether an empty row comes before it.
    pub(super) gap: bool,
    pub(super) block: Block,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// Fenced code begins, in this language.
    FenceOpened(String),
    /// A line of it.
    FenceLine(String),
    /// Anything else, as source; a list item may carry the number that its place in the list gives it.
    Source { text: String, number: Option<u64> },
    /// The end of something too long to be rendered again and again while it grows.
    Raw(String),
}

/// The state between two lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Splitter {
    state: State,
    /// Something was handed out before.
    begun: bool,
    /// An empty line came after it.
    gap: bool,
    /// The ordered list that the last block was an item of.
    list: Option<Ordered>,
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Between,
    Fence(Fence),
    Open(Open),
}

#[derive(Debug, Clone, Copy)]
struct Fence {
    marker: char,
    length: usize,
    indent: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ordered {
    indent: usize,
    delimiter: char,
    number: u64,
}

/// A block that the next line may still belong to.
#[derive(Debug, Clone)]
struct Open {
    kind: Kind,
    source: String,
    lines: usize,
    /// Empty lines that belong to it only if it goes on.
    blanks: usize,
}

#[derive(Debug, Clone)]
enum Kind {
    Paragraph,
    Table { header: String },
    Quote,
    Item { content: usize, fence: Option<Fence>, ordered: Option<Ordered> },
    Indented,
}

enum Fate {
    Taken,
    /// Taken, and nothing more can follow.
    Finished,
    Refused,
}

impl Splitter {
    /// Takes one line, without its newline.
    pub(super) fn line(&mut self, line: &str, out: &mut Vec<Piece>) {
        match std::mem::take(&mut self.state) {
            State::Between => self.start(line, out),
            State::Fence(fence) if fence.is_closed_by(line) => {}
            State::Fence(fence) => {
                out.push(Piece { gap: false, block: Block::FenceLine(dedent(line, fence.indent).to_owned()) });
                self.state = State::Fence(fence);
            }
            State::Open(mut open) => match open.take(line) {
                Fate::Taken => match open.cut() {
                    Some((full, next)) => {
                        self.close(full, out);
                        self.state = State::Open(next);
                    }
                    None => self.state = State::Open(open),
                },
                Fate::Finished => self.close(open, out),
                Fate::Refused => {
                    let blanks = open.blanks;
                    self.close(open, out);
                    self.gap = blanks > 0;
                    self.start(line, out);
                }
            },
        }
    }

    /// The text is over.
    pub(super) fn finish(&mut self, out: &mut Vec<Piece>) {
        if let State::Open(open) = std::mem::take(&mut self.state) {
            self.close(open, out);
        }
    }

    /// Whether no block is unfinished: neither one that a later line may belong to, nor a list or fenced code that goes on.
    pub(super) fn is_between(&self) -> bool {
        matches!(self.state, State::Between)
    }

    /// Bytes of the unfinished block.
    pub(super) fn held(&self) -> usize {
        if let State::Open(open) = &self.state { open.source.len() } else { 0 }
    }

    /// The end of the unfinished block, of at least so many bytes if it has them.
    pub(super) fn tail(&self, bytes: usize) -> &str {
        let State::Open(open) = &self.state else { return "" };
        let from = open.source.floor_char_boundary(open.source.len().saturating_sub(bytes));
        open.source.get(from..).unwrap_or_default()
    }

    fn start(&mut self, line: &str, out: &mut Vec<Piece>) {
        if is_blank(line) {
            self.gap = true;
        } else if let Some((fence, label)) = Fence::opened_by(line) {
            self.emit(Block::FenceOpened(label), None, out);
            self.state = State::Fence(fence);
        } else if is_heading(line) || is_rule(line) {
            self.emit(Block::Source { text: line.to_owned(), number: None }, None, out);
        } else {
            let kind = if let Some((content, ordered)) = marker(line) {
                let fence = Fence::opened_by(line.get(content..).unwrap_or_default()).map(|(fence, _)| fence);
                Kind::Item { content, fence, ordered }
            } else if is_quote(line) {
                Kind::Quote
            } else if indent(line) >= 4 {
                Kind::Indented
            } else {
                Kind::Paragraph
            };
            self.state = State::Open(Open { kind, source: line.to_owned(), lines: 1, blanks: 0 });
        }
    }

    fn close(&mut self, open: Open, out: &mut Vec<Piece>) {
        let mut ordered = if let Kind::Item { ordered, .. } = open.kind { ordered } else { None };
        if let (Some(now), Some(last)) = (&mut ordered, self.list)
            && (now.indent, now.delimiter) == (last.indent, last.delimiter)
        {
            // Only the first number of a list counts; many writers put `1.` before every item.
            now.number = last.number.saturating_add(1);
        }
        let number = ordered.map(|ordered| ordered.number);
        self.emit(Block::Source { text: open.source, number }, ordered, out);
    }

    fn emit(&mut self, block: Block, list: Option<Ordered>, out: &mut Vec<Piece>) {
        out.push(Piece { gap: self.begun && self.gap, block });
        self.begun = true;
        self.gap = false;
        self.list = list;
    }
}

impl Open {
    fn push(&mut self, line: &str) {
        for _ in 0..=self.blanks {
            self.source.push('\n');
        }
        self.blanks = 0;
        self.lines += 1;
        self.source.push_str(line);
    }

    fn take(&mut self, line: &str) -> Fate {
        if is_blank(line) {
            return match self.kind {
                Kind::Item { .. } | Kind::Indented => {
                    self.blanks += 1;
                    Fate::Taken
                }
                _ => Fate::Refused,
            };
        }
        let taken = match &mut self.kind {
            Kind::Paragraph if is_underline(line) => {
                self.push(line);
                return Fate::Finished;
            }
            Kind::Paragraph => {
                let last = self.source.rsplit('\n').next().unwrap_or_default();
                if last.contains('|') && is_delimiter_row(line) {
                    self.kind = Kind::Table { header: format!("{last}\n{line}") };
                    self.lines = 1;
                    true
                } else {
                    !interrupts(line)
                }
            }
            Kind::Table { .. } => !interrupts(line),
            Kind::Quote => is_quote(line) || !interrupts(line),
            Kind::Indented => indent(line) >= 4,
            Kind::Item { content, fence, .. } if indent(line) >= *content => {
                let inner = dedent(line, *content);
                *fence = match *fence {
                    Some(open) if open.is_closed_by(inner) => None,
                    Some(open) => Some(open),
                    None => Fence::opened_by(inner).map(|(fence, _)| fence),
                };
                true
            }
            // A paragraph inside the item may go on without its indentation.
            Kind::Item { fence, .. } => {
                self.blanks == 0 && fence.is_none() && marker(line).is_none() && !interrupts(line)
            }
        };
        if !taken {
            return Fate::Refused;
        }
        self.push(line);
        Fate::Taken
    }

    /// Splits a table that has become too long into what is shown now and what goes on.
    fn cut(&mut self) -> Option<(Open, Open)> {
        let Kind::Table { header } = &self.kind else { return None };
        if self.lines <= TABLE_ROWS_MAX {
            return None;
        }
        let next = Open { kind: Kind::Table { header: header.clone() }, source: header.clone(), lines: 1, blanks: 0 };
        Some((self.clone(), next))
    }
}

impl Fence {
    fn opened_by(line: &str) -> Option<(Self, String)> {
        let indent = indent(line);
        let rest = line.trim_start();
        let marker = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = rest.chars().take_while(|c| *c == marker).count();
        let label = rest.get(length..).unwrap_or_default().trim();
        if indent > 3 || length < 3 || (marker == '`' && label.contains('`')) {
            return None;
        }
        Some((Self { marker, length, indent }, label.to_owned()))
    }

    fn is_closed_by(self, line: &str) -> bool {
        let rest = line.trim();
        indent(line) <= 3 && rest.len() >= self.length && rest.chars().all(|c| c == self.marker)
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn dedent(line: &str, columns: usize) -> &str {
    line.get(indent(line).min(columns)..).unwrap_or_default()
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches(' ');
    let level = rest.len() - rest.trim_start_matches('#').len();
    let after = rest.get(level..).unwrap_or_default();
    indent(line) <= 3 && (1..=6).contains(&level) && (after.is_empty() || after.starts_with(' '))
}

fn is_rule(line: &str) -> bool {
    let mut signs = line.chars().filter(|c| *c != ' ');
    let Some(sign) = signs.next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    let mut more = 0;
    indent(line) <= 3 && signs.inspect(|_| more += 1).all(|c| c == sign) && more >= 2
}

/// The line under a heading of the older kind.
fn is_underline(line: &str) -> bool {
    let rest = line.trim();
    let all = |sign| rest.chars().all(|c| c == sign);
    indent(line) <= 3 && !rest.is_empty() && (all('=') || all('-'))
}

fn is_quote(line: &str) -> bool {
    indent(line) <= 3 && line.trim_start().starts_with('>')
}

fn is_delimiter_row(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// The column where the content of a list item begins, if the line begins one.
fn marker(line: &str) -> Option<(usize, Option<Ordered>)> {
    let indent = indent(line);
    let rest = line.get(indent..).filter(|_| indent <= 3 && !is_rule(line))?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (length, ordered) = if digits == 0 {
        rest.chars().next().filter(|c| matches!(c, '-' | '*' | '+'))?;
        (1, None)
    } else {
        let number = rest.get(..digits).filter(|_| digits <= 9)?.parse().ok()?;
        let delimiter = rest.get(digits..)?.chars().next().filter(|c| matches!(c, '.' | ')'))?;
        (digits + 1, Some(Ordered { indent, delimiter, number }))
    };
    let after = rest.get(length..)?;
    let spaces = after.len() - after.trim_start_matches(' ').len();
    match spaces {
        0 if !after.is_empty() => None,
        // An item that begins with nothing or with indented code has its content one column on.
        1..=4 if !is_blank(after) => Some((indent + length + spaces, ordered)),
        _ => Some((indent + length + 1, ordered)),
    }
}

/// Whether a line ends a paragraph that it stands directly below of.
fn interrupts(line: &str) -> bool {
    let item = || {
        marker(line).is_some_and(|(content, ordered)| {
            ordered.is_none_or(|ordered| ordered.number == 1) && line.len() >= content
        })
    };
    is_heading(line) || is_rule(line) || is_quote(line) || Fence::opened_by(line).is_some() || item()
}
