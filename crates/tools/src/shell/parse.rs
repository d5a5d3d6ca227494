//! Parses a text into a line.
//!
//! The grammar says what kind of thing every piece is, and any kind that is not listed here ends in *opaque*. What it
//! says about structure is not relied on: the accepted pieces are put together again in the order they stand, every
//! byte between them must be a space or a tab, and each word is unquoted by code of our own (`word`). So a fault in
//! the grammar can make us ask too often, but not run a command that was not judged.

use max_team_core::policy::ShellSyntax;
use std::cell::RefCell;
use std::path::Path;

use max_team_core::limits::{COMMAND_BYTES_MAX, COMMAND_PARTS_MAX};
use max_team_core::policy::command_line::{CommandLine, Operator, Redirect, RedirectTarget, SimpleCommand};
use tree_sitter::{Node, Parser, Tree};

use super::glob::{self, Pattern};
use super::word::unquote;

/// Words that mean something to a shell where a program could stand.
const RESERVED: [&str; 20] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "select", "then", "until", "while",
];
/// Descriptors that a redirection may name: those that every program has.
const FD_MAX: u32 = 2;

thread_local! {
    /// Making one costs more than using it.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Reads a command line by its text alone: a pattern of file names is not plain.
pub fn parse_line(text: &str) -> CommandLine {
    line(
        text,
        plain(text).and_then(|(parts, patterns)| match patterns.is_empty() {
            true => Ok(parts),
            false => Err(ShellSyntax::Pattern),
        }),
    )
}

/// Reads a command line that would run in a folder, with the names of its files in the place of patterns.
pub(super) fn parse_line_in(text: &str, folder: &Path) -> CommandLine {
    line(
        text,
        plain(text).and_then(|(mut parts, patterns)| {
            glob::expand(&mut parts, &patterns, folder)?;
            Ok(parts)
        }),
    )
}

fn line(text: &str, parts: Result<Vec<SimpleCommand>, ShellSyntax>) -> CommandLine {
    match parts {
        Ok(parts) => CommandLine::Plain(parts),
        Err(why) => CommandLine::Opaque { text: text.to_owned(), why },
    }
}

fn plain(text: &str) -> Result<(Vec<SimpleCommand>, Vec<Pattern>), ShellSyntax> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(ShellSyntax::TooLong(COMMAND_BYTES_MAX));
    }
    if text.contains('\0') {
        return Err(ShellSyntax::ZeroByte);
    }
    let text = text.trim_matches([' ', '\t', '\n']);
    if text.is_empty() {
        return Err(ShellSyntax::Nothing);
    }
    let tree = parse(&letters(text)).ok_or(ShellSyntax::Unparsed)?;
    let root = tree.root_node();
    if root.has_error() {
        return Err(ShellSyntax::Unparsed);
    }
    let mut pieces = Vec::new();
    flatten(root, text, 0, &mut pieces)?;
    assemble(&whole(&pieces, text)?, text)
}

/// The text as the grammar gets it, byte for byte as long: every character that is not plain ASCII becomes a letter. A
/// shell takes it for a letter, too, and the grammar's own scanner reads past its tables on some of them.
fn letters(text: &str) -> String {
    let plain = |letter: char| matches!(letter, ' '..='~' | '\t' | '\n');
    text.chars()
        .flat_map(|letter| {
            let (shown, times) = if plain(letter) { (letter, 1) } else { ('x', letter.len_utf8()) };
            std::iter::repeat_n(shown, times)
        })
        .collect()
}

fn parse(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|kept| {
        if kept.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *kept = Some(parser);
        }
        kept.as_mut()?.parse(text, None)
    })
}

/// A piece of the text that means one thing.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    start: usize,
    kind: TokenKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Word,
    Assignment,
    Join(Operator),
    Flow,
    Fd,
}

/// The pieces in the order they stand, or what is not plain among them.
fn flatten<'a>(node: Node<'_>, text: &'a str, depth: usize, pieces: &mut Vec<Token<'a>>) -> Result<(), ShellSyntax> {
    if depth > COMMAND_PARTS_MAX * 3 || pieces.len() > COMMAND_BYTES_MAX {
        return Err(ShellSyntax::TooDeep);
    }
    if node.is_error() || node.is_missing() {
        return Err(ShellSyntax::Unparsed);
    }
    let kind = match node.kind() {
        "program"
        | "list"
        | "pipeline"
        | "command"
        | "command_name"
        | "redirected_statement"
        | "file_redirect"
        | "test_command"
        | "unary_expression"
        | "binary_expression" => {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                flatten(child, text, depth + 1, pieces)?;
            }
            return Ok(());
        }
        "word" | "number" | "raw_string" | "string" | "concatenation" => {
            check(node, depth)?;
            TokenKind::Word
        }
        // The words of `[ -f x ]`; whether they are one is seen by the program's name.
        "[" | "]" | "test_operator" | "=" | "!=" | "!" => TokenKind::Word,
        // Ends of lines and comments stand between the pieces, and are seen there.
        "\n" | "comment" => return Ok(()),
        "variable_assignment" => TokenKind::Assignment,
        "file_descriptor" => TokenKind::Fd,
        ";" => TokenKind::Join(Operator::Then),
        "&&" => TokenKind::Join(Operator::And),
        "||" => TokenKind::Join(Operator::Or),
        "|" => TokenKind::Join(Operator::Pipe),
        "<" | ">" | ">>" | ">|" | ">&" | "&>" | "&>>" => TokenKind::Flow,
        kind => return Err(named(kind)),
    };
    let range = node.byte_range();
    let own = text.get(range.clone()).filter(|own| !own.is_empty()).ok_or(ShellSyntax::Unparsed)?;
    pieces.push(Token { text: own, start: range.start, kind });
    Ok(())
}

/// Inside a word there are only words and quotes.
fn check(node: Node<'_>, depth: usize) -> Result<(), ShellSyntax> {
    if depth > COMMAND_PARTS_MAX * 3 {
        return Err(ShellSyntax::TooDeep);
    }
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        match child.kind() {
            "word" | "number" | "raw_string" | "string" | "string_content" | "concatenation" | "\"" => {
                check(child, depth + 1)?;
            }
            kind => return Err(named(kind)),
        }
    }
    Ok(())
}

/// The name of a kind of the grammar, for people.
fn named(kind: &str) -> ShellSyntax {
    match kind {
        "simple_expansion" | "expansion" | "arithmetic_expansion" | "$" => ShellSyntax::Expansion,
        "command_substitution" => ShellSyntax::Substitution,
        "process_substitution" => ShellSyntax::ProcessSubstitution,
        "ansi_c_string" | "translated_string" => ShellSyntax::BashQuote,
        "heredoc_redirect" | "herestring_redirect" => ShellSyntax::HereText,
        "subshell" | "compound_statement" => ShellSyntax::Group,
        "&" => ShellSyntax::Background,
        "|&" => ShellSyntax::PipeOfBoth,
        "negated_command" => ShellSyntax::Negation,
        "[[" | "]]" | "((" | "))" => ShellSyntax::BashTest,
        "function_definition" => ShellSyntax::Function,
        "brace_expression" => ShellSyntax::Braces,
        "variable_assignments" | "declaration_command" | "unset_command" => ShellSyntax::ShellVariables,
        "if_statement" | "while_statement" | "for_statement" | "case_statement" | "c_style_for_statement" => {
            ShellSyntax::ControlStructure
        }
        kind => ShellSyntax::NotPlain(kind.to_owned()),
    }
}

/// Pieces of a word that the grammar took apart are one word again: there is no space between them.
fn whole<'a>(pieces: &[Token<'a>], text: &'a str) -> Result<Vec<Token<'a>>, ShellSyntax> {
    let mut all: Vec<Token<'a>> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let touches = |last: &Token<'_>| last.start + last.text.len() == piece.start;
        match all.last_mut().filter(|last| touches(last)) {
            Some(last) if last.kind == TokenKind::Word && piece.kind == TokenKind::Word => {
                let joined = text.get(last.start..piece.start + piece.text.len());
                last.text = joined.ok_or(ShellSyntax::Unparsed)?;
            }
            Some(last)
                if last.kind == TokenKind::Assignment
                    && matches!(piece.kind, TokenKind::Word | TokenKind::Assignment) =>
            {
                return Err(ShellSyntax::OddAssignment);
            }
            _ => all.push(*piece),
        }
    }
    Ok(all)
}

/// Puts the pieces together, and sees that nothing stands between them.
fn assemble(pieces: &[Token<'_>], text: &str) -> Result<(Vec<SimpleCommand>, Vec<Pattern>), ShellSyntax> {
    let (mut parts, mut patterns): (Vec<SimpleCommand>, Vec<Pattern>) = (Vec::new(), Vec::new());
    let mut part = SimpleCommand::default();
    let mut end = 0;
    let mut pieces = pieces.iter().peekable();
    while let Some(piece) = pieces.next() {
        if gap(text, end, piece.start)? && part != (SimpleCommand { join: part.join, ..SimpleCommand::default() }) {
            parts.push(finished(std::mem::take(&mut part))?);
        }
        end = piece.start + piece.text.len();
        match piece.kind {
            TokenKind::Word if part.argv.is_empty() => part.argv.push(program(piece.text)?),
            TokenKind::Word => {
                let word = unquote(piece.text)?;
                let (at, here) = (part.argv.len(), parts.len());
                patterns.extend(word.pattern.map(|text| Pattern { part: here, word: at, text }));
                part.argv.push(word.text);
            }
            TokenKind::Assignment if part.argv.is_empty() && part.flows.is_empty() => {
                part.env.push(assignment(piece.text)?)
            }
            TokenKind::Assignment => return Err(ShellSyntax::LateAssignment),
            TokenKind::Join(join) => {
                let is_last = pieces.peek().is_none() && join == Operator::Then;
                parts.push(finished(std::mem::replace(&mut part, SimpleCommand { join, ..SimpleCommand::default() }))?);
                if is_last {
                    gap(text, end, text.len())?;
                    return bounded(parts, patterns);
                }
            }
            TokenKind::Fd | TokenKind::Flow => {
                let (fd, sign) = match piece.kind {
                    TokenKind::Fd => {
                        let sign = pieces.next().filter(|next| next.kind == TokenKind::Flow && next.start == end);
                        let sign = sign.ok_or(ShellSyntax::OddRedirection)?;
                        end = sign.start + sign.text.len();
                        (Some(number(piece.text)?), sign.text)
                    }
                    _ => (None, piece.text),
                };
                let to =
                    pieces.next().filter(|next| next.kind == TokenKind::Word).ok_or(ShellSyntax::OddRedirection)?;
                if gap(text, end, to.start)? {
                    return Err(ShellSyntax::OddRedirection);
                }
                end = to.start + to.text.len();
                part.flows.extend(flow(fd, sign, to.text)?);
            }
        }
        // To a shell `2>x` is a descriptor, even if the grammar took it for something else.
        let is_digits = piece.kind == TokenKind::Word && piece.text.bytes().all(|byte| byte.is_ascii_digit());
        if is_digits && pieces.peek().is_some_and(|next| next.kind == TokenKind::Flow && next.start == end) {
            return Err(ShellSyntax::OddRedirection);
        }
    }
    gap(text, end, text.len())?;
    parts.push(finished(part)?);
    bounded(parts, patterns)
}

fn bounded(
    parts: Vec<SimpleCommand>,
    patterns: Vec<Pattern>,
) -> Result<(Vec<SimpleCommand>, Vec<Pattern>), ShellSyntax> {
    match parts.len() > COMMAND_PARTS_MAX {
        true => Err(ShellSyntax::ManyCommands(COMMAND_PARTS_MAX)),
        false => Ok((parts, patterns)),
    }
}

/// Reads the gap between two pieces: spaces, line ends, continued lines, comments. Returns whether a line ends there.
fn gap(text: &str, from: usize, to: usize) -> Result<bool, ShellSyntax> {
    let mut rest = text.get(from..to).ok_or(ShellSyntax::Unparsed)?;
    let (mut ends, mut is_open, mut goes_on) = (false, from == 0, false);
    while let Some(letter) = rest.chars().next() {
        let skip = match letter {
            ' ' | '\t' => 1,
            '\n' => {
                ends = true;
                1
            }
            '\\' if rest.starts_with("\\\n") => {
                goes_on = true;
                rest = rest.get(2..).unwrap_or_default();
                continue;
            }
            '#' if is_open => rest.find('\n').unwrap_or(rest.len()),
            _ => return Err(ShellSyntax::OddSign),
        };
        is_open = true;
        rest = rest.get(skip..).unwrap_or_default();
    }
    // Without a space two words would be one.
    if goes_on && !is_open { Err(ShellSyntax::ContinuedWord) } else { Ok(ends) }
}

fn finished(part: SimpleCommand) -> Result<SimpleCommand, ShellSyntax> {
    if part.argv.is_empty() { Err(ShellSyntax::NoCommand) } else { Ok(part) }
}

fn program(text: &str) -> Result<String, ShellSyntax> {
    let name = unquote(text)?.plain()?;
    if name.is_empty() || RESERVED.contains(&text) {
        return Err(ShellSyntax::NoProgram(name));
    }
    Ok(name)
}

/// `NAME=value` before a command.
fn assignment(text: &str) -> Result<(String, String), ShellSyntax> {
    let (name, value) = text.split_once('=').ok_or(ShellSyntax::OddAssignment)?;
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_name {
        return Err(ShellSyntax::OddAssignment);
    }
    // A `~` behind a `:` would be a home folder here.
    if value.starts_with('#') {
        return Ok((name.to_owned(), unquote(&format!("'{value}'"))?.plain()?));
    }
    Ok((name.to_owned(), unquote(value)?.plain()?))
}

fn number(text: &str) -> Result<u32, ShellSyntax> {
    text.parse().ok().filter(|fd| *fd <= FD_MAX).ok_or(ShellSyntax::OddDescriptor)
}

fn flow(fd: Option<u32>, sign: &str, to: &str) -> Result<Vec<Redirect>, ShellSyntax> {
    let both = |to| vec![Redirect { fd: 1, to }, Redirect { fd: 2, to: RedirectTarget::Same(1) }];
    let one = |usual: u32, to| vec![Redirect { fd: fd.unwrap_or(usual), to }];
    match (sign, fd) {
        (">&", _) => Ok(one(1, RedirectTarget::Same(number(to)?))),
        ("<", _) => Ok(one(0, RedirectTarget::Read(place(to)?))),
        (">" | ">|", _) => Ok(one(1, RedirectTarget::Write(place(to)?))),
        (">>", _) => Ok(one(1, RedirectTarget::Append(place(to)?))),
        ("&>", None) => Ok(both(RedirectTarget::Write(place(to)?))),
        ("&>>", None) => Ok(both(RedirectTarget::Append(place(to)?))),
        _ => Err(ShellSyntax::OddRedirection),
    }
}

fn place(text: &str) -> Result<String, ShellSyntax> {
    unquote(text)?.plain()
}
