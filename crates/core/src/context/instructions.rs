//! Instruction files (AGENTS.md, CLAUDE.md and what they import) become one text with hard caps.
//!
//! This module decides the order, finds `@imports` and cuts what is too long, with a mark where it cut. It opens
//! no file: the runtime reads what `imports` names and hands the texts in.

use crate::limits::{INSTRUCTION_FILE_BYTES_MAX, INSTRUCTIONS_BYTES_MAX};
use crate::text::{code_points, hidden_lines};

/// One file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Where it is, as shown to the model and the user.
    pub path: String,
    /// Its text, perhaps only the beginning.
    pub text: String,
    /// Its size, in bytes.
    pub bytes: usize,
}

/// The assembled text and what was left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Instructions {
    /// Everything, one section per file.
    pub text: String,
    /// Files with the bytes that each contributes.
    pub files: Vec<(String, usize)>,
    /// What the user should know: files cut or left out.
    pub notes: Vec<String>,
}

/// The paths a file imports with `@path`, in order, not inside code.
pub fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => imports_of_line(line, &mut found),
            _ => {}
        }
    }
    found
}

fn imports_of_line<'a>(line: &'a str, found: &mut Vec<&'a str>) {
    // Every second piece between back-ticks is a code span.
    for piece in line.split('`').step_by(2) {
        for word in piece.split_whitespace() {
            let Some(path) = word.strip_prefix('@') else { continue };
            let path = path.trim_end_matches([',', ';', ':', ')', ']', '!', '?', '"', '\'']);
            let path = path.strip_suffix('.').unwrap_or(path);
            // `@someone` is a person, `@scope/name@1.0` a package; a file has a dot or a slash and no second @.
            if (path.contains('/') || path.contains('.')) && !path.contains('@') && !found.contains(&path) {
                found.push(path);
            }
        }
    }
}

/// Puts the files together, broadest first, so that the nearest has the last word.
pub fn assemble(files: &[InstructionFile]) -> Instructions {
    let mut whole = Instructions::default();
    for file in files {
        let body = file.text.trim();
        if body.is_empty() {
            continue;
        }
        let room = INSTRUCTIONS_BYTES_MAX.saturating_sub(whole.text.len());
        let cap = INSTRUCTION_FILE_BYTES_MAX.min(room);
        if cap == 0 {
            whole
                .notes
                .push(format!("`{}` left out: instructions are capped at {INSTRUCTIONS_BYTES_MAX} bytes", file.path));
            continue;
        }
        for (line, letters) in hidden_lines(&file.text) {
            let letters = code_points(&letters);
            whole.notes.push(format!("`{}` line {line}: invisible characters ({letters}) are left out", file.path));
        }
        let kept = body.get(..body.floor_char_boundary(cap)).unwrap_or_default();
        // A file's name is data: it must not close the tag and forge another.
        let name: String =
            file.path.chars().map(|c| if c.is_control() || "<>\"".contains(c) { '_' } else { c }).collect();
        whole.text.push_str(&format!("<instructions file=\"{name}\">\n{kept}\n"));
        if kept.len() < body.len() {
            whole.text.push_str(&format!("[cut here: {} of {} bytes shown]\n", kept.len(), file.bytes));
            whole.notes.push(format!("`{}` cut to {} of {} bytes", file.path, kept.len(), file.bytes));
        }
        whole.text.push_str("</instructions>\n");
        whole.files.push((file.path.clone(), kept.len()));
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_paths_outside_code() {
        let text = "See @docs/style.md, and @./x.md.\nmail @leo or me@example.com\n`@not/this.md` but @that.md\n\
                    ```\n@nor/this.md\n```\n- @docs/style.md again, (@~/mine.md) and @pkg/name@1.2\n";
        assert_eq!(imports(text), ["docs/style.md", "./x.md", "that.md"]);
    }

    #[test]
    fn hidden_characters_in_a_file_are_noted() {
        let text = "do this\nand\u{202e} that\u{e0041}\n".to_owned();
        let whole = assemble(&[InstructionFile { path: "AGENTS.md".into(), bytes: text.len(), text }]);
        assert_eq!(whole.notes, ["`AGENTS.md` line 2: invisible characters (U+202E, U+E0041) are left out"]);
    }

    #[test]
    fn caps_are_marked_and_never_split_a_character() {
        let text = "字".repeat(INSTRUCTION_FILE_BYTES_MAX);
        let long = InstructionFile { path: "A.md".into(), bytes: text.len(), text };
        let files = vec![
            long.clone(),
            long.clone(),
            long.clone(),
            InstructionFile { path: "B.md".into(), text: " b ".into(), bytes: 3 },
        ];
        let whole = assemble(&files);
        assert!(whole.text.contains("[cut here: "));
        assert_eq!(whole.files.len(), 3);
        assert_eq!(whole.notes.len(), 4);
        assert!(whole.notes.last().is_some_and(|note| note.starts_with("`B.md` left out")));
        assert!(whole.text.len() < INSTRUCTIONS_BYTES_MAX + 1_000);
    }
}
