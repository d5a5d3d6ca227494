//! Things by their name, found by the syntax of their language.
//!
//! A file is parsed only if the name is in it at all; parsing is bounded in size and can be stopped. What is found comes
//! with its lines, its signature and what it is part of. A file with faults in it is read as far as it makes sense.

use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;

use max_team_core::limits::SEARCH_MATCHES_MAX;
use tokio_util::sync::CancellationToken;
use tree_sitter::{Node, ParseOptions, ParseState, Parser};

use super::languages::{self, SourceLanguage, SymbolKind};
use super::report::{FileMatches, ReportLine, SkipReason};
use crate::text::{clip, visible};
use crate::tool::ToolError;

/// Bytes of a file that is parsed.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of a signature that are shown.
const SIGNATURE_BYTES_MAX: usize = 240;
/// Bytes of the signature of what something is part of.
const AROUND_BYTES_MAX: usize = 120;

/// Whether a file of that name can be read by its syntax.
pub(super) fn knows(path: &Path) -> bool {
    languages::of(path).is_some()
}

/// What is looked for.
pub(super) struct SymbolSearch {
    /// The pieces of the name between its stars.
    pieces: Vec<String>,
    /// `None`: anything that is defined.
    kind: Option<SymbolKind>,
}

impl SymbolSearch {
    pub(super) fn new(symbol: &str, kind: Option<&str>) -> Result<Self, ToolError> {
        let wrong =
            |words: &str| ToolError::correctable(format!("`symbol` is a name, like `parse` or `parse_*`; {words}"));
        if symbol.len() > NAME_BYTES_MAX || symbol.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
            return Err(wrong("it has no spaces"));
        }
        if symbol.contains([':', '.', '(']) {
            return Err(wrong("write the last part of it alone"));
        }
        let pieces: Vec<String> = symbol.split('*').map(str::to_owned).collect();
        if pieces.iter().all(String::is_empty) {
            return Err(wrong("it needs at least one letter"));
        }
        let kind = kind.map(|kind| {
            let known = SymbolKind::NAMES.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind);
            known.ok_or_else(|| ToolError::correctable("`kind` is function, type, constant, module or call"))
        });
        Ok(Self { pieces, kind: kind.transpose()? })
    }

    pub(super) fn search(&self, path: &Path, file: &File, cancel: &CancellationToken) -> FileMatches {
        let Some(tongue) = languages::of(path) else { return FileMatches::skipped(SkipReason::Unreadable) };
        let mut bytes = Vec::new();
        if file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).is_err() || bytes.len() as u64 > FILE_BYTES_MAX {
            return FileMatches::skipped(SkipReason::Unreadable);
        }
        let text = String::from_utf8_lossy(&bytes);
        // Most files do not have the name in them, and looking for it is much faster than parsing.
        if !self.pieces.iter().all(|piece| text.contains(piece.as_str())) {
            return FileMatches::default();
        }
        self.parse(tongue, &text, cancel).unwrap_or_else(|| FileMatches::skipped(SkipReason::Unreadable))
    }

    fn parse(&self, tongue: &SourceLanguage, text: &str, cancel: &CancellationToken) -> Option<FileMatches> {
        let mut parser = Parser::new();
        parser.set_language(&tongue.language()).ok()?;
        let mut stop =
            |_: &ParseState| if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let mut read = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
        let tree =
            parser.parse_with_options(&mut read, None, Some(ParseOptions::new().progress_callback(&mut stop)))?;
        let mut found = FileMatches::default();
        let mut cursor = tree.walk();
        let mut above: Vec<Node<'_>> = Vec::new();
        loop {
            let node = cursor.node();
            if let Some(line) = self.fits(tongue, node, &above, text) {
                if found.matches == SEARCH_MATCHES_MAX {
                    found.is_cut = true;
                    return Some(found);
                }
                found.matches += 1;
                found.lines.push(ReportLine::Match(line));
            }
            if cursor.goto_first_child() {
                above.push(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Some(found);
                }
                above.pop();
            }
        }
    }

    /// A line on a node, if it is what is looked for.
    fn fits(&self, tongue: &SourceLanguage, node: Node<'_>, above: &[Node<'_>], text: &str) -> Option<String> {
        let (kind, name) = tongue.named(node)?;
        let is_wanted = self.kind.map_or(kind != SymbolKind::Call, |wanted| wanted == kind);
        if !is_wanted || !self.is_name(text.get(name.byte_range())?) || is_mention(node, name, kind) {
            return None;
        }
        let (from, to) = (node.start_position().row + 1, node.end_position().row + 1);
        let lines = if from == to { from.to_string() } else { format!("{from}-{to}") };
        let around = above.iter().rev().find(|outer| tongue.is_around(**outer));
        let around = around.map(|outer| format!("  [in {}]", signature(*outer, text, AROUND_BYTES_MAX)));
        let shown = signature(node, text, SIGNATURE_BYTES_MAX);
        Some(format!("{lines} {}: {shown}{}", kind.name(), around.unwrap_or_default()))
    }

    fn is_name(&self, name: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.pieces.first().is_some_and(|whole| whole == name);
        };
        let Some(mut rest) = name.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            match rest.split_once(piece.as_str()) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

/// Whether a node only mentions what it names: C's `struct a x;` defines no `a`, and `int a;` is no function.
fn is_mention(node: Node<'_>, name: Node<'_>, kind: SymbolKind) -> bool {
    match node.kind() {
        "struct_specifier" | "union_specifier" | "enum_specifier" => node.child_by_field_name("body").is_none(),
        "declaration" => {
            let mut declarator = node.child_by_field_name("declarator");
            while let Some(inner) = declarator {
                if inner.kind() == "function_declarator" {
                    return false;
                }
                declarator = inner.child_by_field_name("declarator");
            }
            true
        }
        // Python has no constants of its own; a name that is given a value at the top is one.
        "assignment" => {
            let top = node.parent().and_then(|statement| statement.parent());
            kind == SymbolKind::Constant
                && (name.kind() != "identifier" || top.is_none_or(|top| top.kind() != "module"))
        }
        _ => false,
    }
}

/// The beginning of a thing, up to its body, on one line.
fn signature(node: Node<'_>, text: &str, max: usize) -> String {
    let body = node.child_by_field_name("body").or_else(|| {
        // What is a function by its value has its body there.
        node.child_by_field_name("value").and_then(|value| value.child_by_field_name("body"))
    });
    let end = body.map_or_else(|| node.end_byte(), |body| body.start_byte());
    let words = text.get(node.start_byte()..end).unwrap_or_default();
    // One of many lines without a body is told by the first few.
    let words = clip(words, 4 * max);
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&clip(line.trim_end_matches(['{', ':', ' ', '=']), max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_stars() {
        let table = [
            ("parse", "parse", true),
            ("parse", "parse_x", false),
            ("parse*", "parse_x", true),
            ("*parse", "reparse", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("a*a", "a", false),
        ];
        for (symbol, name, want) in table {
            assert_eq!(SymbolSearch::new(symbol, None).unwrap().is_name(name), want, "{symbol} {name}");
        }
        for symbol in ["", "*", "**", "a b", "a::b", "a.b", "f()", "a\nb"] {
            assert!(SymbolSearch::new(symbol, None).is_err(), "{symbol}");
        }
        assert!(SymbolSearch::new("a", Some("thing")).is_err());
    }
}
