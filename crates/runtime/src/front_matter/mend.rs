//! Repairs front matter that is no valid YAML, where its meaning is plain: tabs as indentation, a colon within a
//! sentence, a sentence that continues on the next line. Lines keep their numbers.

use crate::yaml;

/// The name and the value of a line that begins an entry.
pub(super) fn key(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim_end();
    let is_word = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-.".contains(letter));
    (is_word && (value.is_empty() || value.starts_with([' ', '\t']))).then(|| (name, value.trim()))
}

/// Like `key`, for a known key without a blank after the colon.
fn tight(line: &str, is_key: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    line.split_once(':').filter(|(name, value)| is_key(name) && !value.starts_with("//"))
}

/// The entries in a form that YAML accepts, in as many lines.
pub(super) fn mended(lines: &[&str], is_key: impl Fn(&str) -> bool) -> String {
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    // The entry whose sentence may continue, with its line number.
    let mut open: Option<(usize, String, String)> = None;
    for (at, line) in lines.iter().enumerate() {
        let is_comment = line.trim_start().starts_with('#');
        let entry = if line.starts_with([' ', '\t']) { None } else { key(line).or_else(|| tight(line, &is_key)) };
        match (entry, &mut open) {
            (Some((name, value)), open)
                if is_key(name) || !open.as_ref().is_some_and(|(_, name, _)| is_prose(name)) =>
            {
                close(&mut out, open.take());
                *open = is_sentence(value).then(|| (at, name.to_owned(), value.to_owned()));
                out.push(indented(line));
            }
            (_, Some((_, _, value))) if !is_comment => {
                // It was joined to the line above.
                if !line.trim().is_empty() {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                out.push(String::new());
            }
            _ => out.push(indented(line)),
        }
    }
    close(&mut out, open);
    out.push(String::new());
    out.join("\n")
}

/// Whether the value of a key is prose, in which any word may be followed by a colon.
fn is_prose(key: &str) -> bool {
    key.eq_ignore_ascii_case("description") || key.to_ascii_lowercase().ends_with("prompt")
}

/// Whether a value is plain text on its own line, so that the next line can only continue it.
fn is_sentence(value: &str) -> bool {
    !value.is_empty() && !value.starts_with(['|', '>', '#', '&'])
}

/// Writes an entry whose sentence has ended; quoted, unless YAML reads it as something else.
fn close(out: &mut [String], open: Option<(usize, String, String)>) {
    let Some((at, name, value)) = open else { return };
    let Some(line) = out.get_mut(at) else { return };
    let written = format!("{name}: {value}");
    *line = if yaml::parse(&written).is_ok() {
        written
    } else {
        let quotes = |mark: char| value.len() > 1 && value.starts_with(mark) && value.ends_with(mark);
        let bare = if quotes('"') || quotes('\'') { value.get(1..value.len() - 1).unwrap_or(&value) } else { &value };
        format!("{name}: {}", serde_json::Value::from(bare))
    };
}

fn indented(line: &str) -> String {
    let rest = line.trim_start_matches([' ', '\t']);
    let indent = line.get(..line.len() - rest.len()).unwrap_or_default();
    format!("{}{rest}", indent.replace('\t', "  "))
}
