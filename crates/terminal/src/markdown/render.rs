//! Blocks to lines.
//!
//! Each block's source goes through the parser on its own. The renderer keeps a stack of what stands before every line
//! (quote bars, list signs), collects words until a block ends, and then wraps them into what is left of the width. It
//! cannot fail: text that the parser does not know as Markdown is shown as written.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::super::text;
use super::super::theme::Theme;
use super::inline::Inline;
use super::split::{Block, Piece};
use super::table::Table;

/// How far code stands in.
const CODE_INDENT: &str = "  ";
/// The signs of list items, by depth.
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];
/// Columns of a horizontal rule, where there is room.
const RULE_COLUMNS: usize = 40;

/// The lines of some blocks.
pub(crate) fn render(pieces: &[Piece], columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for piece in pieces {
        let block = match &piece.block {
            Block::FenceOpened(label) => label_line(label, columns, theme).into_iter().collect(),
            Block::FenceLine(line) => code_lines(line, columns, theme),
            Block::Raw(text) => text::wrap(&[Span::raw(text.as_str())], columns),
            Block::Source { text, number } => Renderer::new(columns, theme, *number).run(text),
        };
        // The beginning of fenced code may show nothing and still be set off; an empty heading is nothing at all.
        let shows = !block.is_empty() || matches!(piece.block, Block::FenceOpened(_));
        if piece.gap && shows {
            lines.push(Line::default());
        }
        lines.extend(block);
    }
    lines
}

fn label_line(label: &str, columns: usize, theme: Theme) -> Option<Line<'static>> {
    let language = label.split_whitespace().next()?;
    let label = text::cut(&format!("{CODE_INDENT}{language}"), columns);
    Some(Line::from(Span::styled(label, theme.faint())))
}

fn code_lines(line: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let code = Span::styled(line, theme.code());
    let mut lines = text::chop(&[code], columns.saturating_sub(CODE_INDENT.len()));
    for line in &mut lines {
        line.spans.insert(0, Span::raw(CODE_INDENT));
    }
    lines
}

/// What stands before the lines of a container.
struct Prefix {
    /// On the next line only, if it has not been written yet.
    first: Option<Span<'static>>,
    rest: Span<'static>,
    /// Whether the container holds a line already.
    begun: bool,
}

struct Renderer {
    columns: usize,
    theme: Theme,
    /// The number that the outermost list begins with.
    number: Option<u64>,
    lines: Vec<Line<'static>>,
    inline: Inline,
    prefixes: Vec<Prefix>,
    lists: Vec<Option<u64>>,
    code: Option<String>,
    table: Option<Table>,
}

impl Renderer {
    fn new(columns: usize, theme: Theme, number: Option<u64>) -> Self {
        Self {
            columns,
            theme,
            number,
            lines: Vec::new(),
            inline: Inline::new(theme),
            prefixes: Vec::new(),
            lists: Vec::new(),
            code: None,
            table: None,
        }
    }

    fn run(mut self, source: &str) -> Vec<Line<'static>> {
        let source = keep_definitions(source);
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let mut events = Parser::new_ext(&source, options).peekable();
        if let Some(Event::Start(Tag::List(_))) = events.peek() {
            // An item that its writer moved in a little stays there.
            let indent = source.len() - source.trim_start_matches(' ').len();
            self.push_prefix(None, Span::raw(" ".repeat(indent)));
        }
        for event in events {
            self.event(event);
        }
        self.flush();
        self.lines
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.inline.text(&text),
            },
            Event::Code(code) => self.inline.code(&code),
            Event::Html(html) => self.inline.faint(&html),
            Event::InlineHtml(html) => self.inline.text(&html),
            // Models break lines where they want them broken.
            Event::SoftBreak | Event::HardBreak => self.inline.text("\n"),
            Event::Rule => {
                let columns = self.room().min(RULE_COLUMNS);
                self.write(vec![Line::from(Span::styled("─".repeat(columns), self.theme.faint()))]);
            }
            Event::TaskListMarker(done) => self.inline.text(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.inline.text(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.part(),
            Tag::Heading { level, .. } => {
                self.part();
                self.inline.push(self.theme.heading(depth(level)));
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.push_prefix(None, Span::styled("│ ", self.theme.faint()));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                if let CodeBlockKind::Fenced(label) = kind {
                    let label = label_line(&label, self.room(), self.theme);
                    self.write(label.into_iter().collect());
                }
                self.code = Some(String::new());
            }
            Tag::List(start) => {
                self.flush();
                let outermost = self.lists.is_empty();
                self.lists.push(start.map(|start| self.number.filter(|_| outermost).unwrap_or(start)));
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.inline.emphasize(Modifier::ITALIC),
            Tag::Strong => self.inline.emphasize(Modifier::BOLD),
            Tag::Strikethrough => self.inline.emphasize(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } => self.inline.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.inline.faint("🖼 ");
                self.inline.link(&dest_url);
            }
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.row();
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.inline.pop();
                self.flush();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                let room = self.room();
                self.write(code.lines().flat_map(|line| code_lines(line, room, self.theme)).collect());
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.write(vec![Line::default()]);
                }
                self.prefixes.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.inline.pop(),
            TagEnd::Link | TagEnd::Image => self.inline.end_link(),
            TagEnd::TableCell => {
                let cell = self.inline.take();
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.lines(self.room(), self.theme);
                    self.write(lines);
                }
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        let level = self.lists.len().saturating_sub(1);
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                let sign = format!("{number}. ");
                *number = number.saturating_add(1);
                sign
            }
            _ => BULLETS.get(level % BULLETS.len()).copied().unwrap_or("• ").to_owned(),
        };
        let rest = Span::raw(" ".repeat(text::width(&sign)));
        self.push_prefix(Some(Span::styled(sign, self.theme.faint())), rest);
    }

    fn push_prefix(&mut self, first: Option<Span<'static>>, rest: Span<'static>) {
        self.prefixes.push(Prefix { first, rest, begun: false });
    }

    /// A new paragraph begins: inside a container it is set off from what is there already.
    fn part(&mut self) {
        self.flush();
        if self.prefixes.last().is_some_and(|prefix| prefix.begun) {
            self.write(vec![Line::default()]);
        }
    }

    /// Columns that the containers leave.
    fn room(&self) -> usize {
        let taken: usize = self.prefixes.iter().map(|prefix| text::width(&prefix.rest.content)).sum();
        self.columns.saturating_sub(taken).max(2)
    }

    fn flush(&mut self) {
        if !self.inline.is_empty() {
            let spans = self.inline.take();
            let lines = text::wrap(&spans, self.room());
            self.write(lines);
        }
    }

    fn write(&mut self, lines: Vec<Line<'static>>) {
        for line in lines {
            let mut spans = Vec::with_capacity(self.prefixes.len() + line.spans.len());
            for prefix in &mut self.prefixes {
                spans.push(prefix.first.take().unwrap_or_else(|| prefix.rest.clone()));
                prefix.begun = true;
            }
            spans.extend(line.spans);
            self.lines.push(Line::from(spans));
        }
    }
}

fn depth(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        _ => 3,
    }
}

/// The parser swallows link definitions (`[x]: url`) because they are not text. Here they are the only place where
/// the reader could see the address, so they are kept as words.
fn keep_definitions(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        let start = line.len() - line.trim_start_matches(|c: char| " >-*+.)".contains(c) || c.is_ascii_digit()).len();
        let (before, rest) = line.split_at(start);
        kept.push_str(before);
        if rest.starts_with('[') && rest.contains("]:") {
            kept.push('\\');
        }
        kept.push_str(rest);
    }
    kept
}
