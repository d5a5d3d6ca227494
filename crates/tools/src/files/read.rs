//! `read_file`: a range of lines of a text, or a picture.
//!
//! Never reads more than it shows and a little ahead, however large the file is; never changes anything. Files that
//! have other names (hard links) are reported to the policy as such, because those names may lie outside the root.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use max_team_core::chat::Part;
use max_team_core::limits::{IMAGE_BYTES_MAX, READ_LINES_MAX, WRITE_BYTES_MAX};
use max_team_core::policy::{Action, ActionKind, Basis, Repeatability};
use max_team_core::secret::is_key_file;
use max_team_core::text::has_hidden;
use memchr::memchr;
use schemars::JsonSchema;
use serde::Deserialize;

use super::hard_links;
use super::line_range::{LineRange, is_no_text, line_range};
use super::rel_path::RelPath;
use super::root::OpenedFile;
use crate::document;
use crate::text::{many, size};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// Lines with invisible characters that a note names.
const NAMED_MAX: usize = 10;
/// Bytes at the start of a file that tell what it is.
const HEAD_BYTES: usize = 8 << 10;

/// Read a file. Lines come as `number<TAB>text`, at most 2000 lines or 64 KiB at once; a note says how to read on. PNG,
/// JPEG, GIF and WebP come as pictures, PDF and office documents as text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Relative to the project folder.
    path: String,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Number of lines.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

pub(crate) fn read_file() -> Typed<ReadFile> {
    Typed::new("read_file", Repeatability::Pure, action, call).or_inline(try_inline)
}

fn action(cx: &ToolContext, args: &ReadFile) -> Result<Action, ToolError> {
    if let Some((cx, name)) = cx.shelved(&args.path)? {
        cx.open_file(cx.root.place(name)?.as_path())?;
        return Ok(Action { kind: ActionKind::Query, ..Action::read(args.path.as_str()) });
    }
    let place = cx.place(&args.path)?;
    if cx.hides(&place) {
        return Ok(Action { kind: place.reading(), ..Action::read(place.to_string()) });
    }
    read_action(&*cx.look(&place)?, &place)
}

/// What reading the file at a place means to the policy.
pub(crate) fn read_action(cx: &ToolContext, place: &RelPath) -> Result<Action, ToolError> {
    let opened = cx.open_file(place.as_path())?;
    // Our tools never give a file in such a folder a second name, so one that has another name is not trusted.
    if opened.is_linked() && place.folder().is_some() {
        return Err(ToolError::correctable(format!("`{place}` has other names (hard links) and is not read")));
    }
    let kind = if opened.is_linked() { ActionKind::ReadLinked } else { place.reading() };
    Ok(Action { kind, ..Action::read(place.to_string()) })
}

/// Refuses a file that got another name since the policy judged it, or that has a blocked one. The latter needs a
/// search of all names, so it happens when the file is read, not when it is judged.
pub(crate) fn still_as_judged(
    cx: &ToolContext,
    place: &RelPath,
    opened: &OpenedFile,
    intent: &Action,
) -> Result<(), ToolError> {
    hard_links::check(cx, place, opened)?;
    if opened.is_linked() && intent.kind != ActionKind::ReadLinked {
        return Err(ToolError::correctable(format!(
            "`{place}` has become a hard link since it was looked at; ask for it again"
        )));
    }
    Ok(())
}

fn call(cx: &ToolContext, args: ReadFile, intent: &Action, _: bool) -> Result<Output, ToolError> {
    if let Some((cx, name)) = cx.shelved(&args.path)? {
        return call(&cx, ReadFile { path: name.to_owned(), ..args }, intent, false);
    }
    let place = cx.named(&args.path)?;
    let at = cx.look(&place)?;
    read(&at, &place, &args, begin(&at, &place, open(&at, &place, intent)?)?)
}

/// A small text is read at once, before another thread would begin to read it.
fn try_inline(cx: &ToolContext, args: &ReadFile, _: &Action) -> Option<Result<Output, ToolError>> {
    if !matches!(cx.shelved(&args.path), Ok(None)) {
        return None;
    }
    let place = cx.named(&args.path).ok()?;
    let at = cx.look(&place).ok()?;
    let opened = at.open_file(place.as_path()).ok()?;
    // Whether a file with other names may be read needs a search of all names.
    let is_brief = !opened.is_linked() && opened.size() < HEAD_BYTES as u64;
    let opened = is_brief.then_some(opened)?;
    let begun = begin(&at, &place, opened).ok().filter(PeekedFile::is_brief)?;
    Some(read(&at, &place, args, begun))
}

/// A file of which the first bytes have been read.
struct PeekedFile {
    file: File,
    whole: u64,
    head: Vec<u8>,
}

impl PeekedFile {
    /// Whether all of it has been read, and it needs no document parser.
    fn is_brief(&self) -> bool {
        self.head.len() < HEAD_BYTES && document::kind(&self.head).is_none()
    }
}

fn open(cx: &ToolContext, place: &RelPath, intent: &Action) -> Result<OpenedFile, ToolError> {
    let opened = cx.open_file(place.as_path())?;
    still_as_judged(cx, place, &opened, intent)?;
    Ok(opened)
}

fn begin(cx: &ToolContext, place: &RelPath, opened: OpenedFile) -> Result<PeekedFile, ToolError> {
    let whole = opened.size();
    let mut file = opened.file;
    // One more than there is, so that the end is seen at once.
    let room = usize::try_from(whole).unwrap_or(HEAD_BYTES).saturating_add(1).min(HEAD_BYTES);
    let mut head = Vec::with_capacity(room);
    (&mut file).take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(|err| failed(cx, place, &err))?;
    Ok(PeekedFile { file, whole, head })
}

fn failed(cx: &ToolContext, place: &RelPath, err: &io::Error) -> ToolError {
    match cx.check() {
        Err(stopped) => stopped,
        Ok(()) => cx.root.trouble("read", place.as_path(), super::atomic_write::errno(err)),
    }
}

fn read(cx: &ToolContext, place: &RelPath, args: &ReadFile, begun: PeekedFile) -> Result<Output, ToolError> {
    let PeekedFile { file, whole, head } = begun;
    let failed = |err: io::Error| failed(cx, place, &err);
    if head.is_empty() {
        return Ok(Output::text(format!("[`{place}` is empty]")));
    }
    if is_key_file(&head) {
        return Err(private_key(place));
    }
    if let Some(media_type) = picture(&head) {
        return show_picture(place, media_type, whole, Cursor::new(head).chain(file)).map_err(failed)?;
    }
    let wanted = LineRequest::new(args);
    if let Some(kind) = document::kind(&head) {
        let text = document::text(cx, Cursor::new(head).chain(file)).map_err(|err| within(place, err))?;
        let found = line_range(text.as_bytes(), wanted.offset, wanted.limit, &cx.cancel).map_err(failed)?;
        return wanted.show(place, whole, &found, Some(&format!("the text of {kind}")));
    }
    if let Some(decode) = utf16(&head) {
        if whole > WRITE_BYTES_MAX {
            return Err(ToolError::correctable(format!("`{place}` is UTF-16 and too large: {}", size(whole))));
        }
        let mut bytes = head;
        file.take(WRITE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        let text = decode(bytes.get(2..).unwrap_or_default());
        let found = line_range(text.as_bytes(), wanted.offset, wanted.limit, &cx.cancel).map_err(failed)?;
        return wanted.show(place, whole, &found, Some("the file is UTF-16, shown decoded"));
    }
    if memchr(0, &head).is_some() {
        return Err(binary(place, whole, &head));
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    let found = if head.len() < HEAD_BYTES {
        line_range(text, wanted.offset, wanted.limit, &cx.cancel)
    } else {
        let all = BufReader::with_capacity(64 << 10, Cursor::new(text).chain(&file));
        line_range(all, wanted.offset, wanted.limit, &cx.cancel)
    };
    let found = found.map_err(failed)?;
    // A few such bytes, or lines, among text make only themselves unreadable.
    if is_no_text(found.invalid + found.nuls, found.seen) || found.dark.1 > found.seen {
        return Err(binary(place, whole, &head));
    }
    wanted.show(place, whole, &found, None)
}

/// A private key is never shown to a model, regardless of its file's name.
fn private_key(place: &RelPath) -> ToolError {
    ToolError::Refused {
        target: place.to_string(),
        basis: Basis::PrivateKey(place.to_string()),
        words: format!(
            "`{place}` holds a private key and is not read. Go on without it; if its content matters, ask the user about it"
        ),
    }
}

/// Adds the file to an error.
fn within(place: &RelPath, err: ToolError) -> ToolError {
    match err {
        ToolError::Correctable(words) => ToolError::Correctable(format!("`{place}`: {words}")),
        other => other,
    }
}

/// The range that was asked for.
struct LineRequest {
    offset: usize,
    limit: usize,
}

impl LineRequest {
    fn new(args: &ReadFile) -> Self {
        let number = |given: Option<u64>, usual: usize| {
            given.map_or(usual, |given| usize::try_from(given).unwrap_or(usize::MAX)).max(1)
        };
        Self { offset: number(args.offset, 1), limit: number(args.limit, READ_LINES_MAX) }
    }

    fn show(&self, place: &RelPath, whole: u64, found: &LineRange, note: Option<&str>) -> Result<Output, ToolError> {
        if found.text.is_empty() {
            let total = found.total.unwrap_or(found.last);
            return Err(ToolError::correctable(format!(
                "`{place}` has only {}; offset {} is past its end",
                many(total, "line"),
                self.offset
            )));
        }
        let mut notes: Vec<String> = note.map(str::to_owned).into_iter().collect();
        let (first, last) = (self.offset, found.last);
        match found.total {
            Some(total) if total == last && first == 1 => {}
            Some(total) if total == last => notes.push(format!("lines {first}-{last} of {total}")),
            Some(total) => notes.push(format!("lines {first}-{last} of {total}; read on with offset {}", last + 1)),
            None => notes.push(format!(
                "lines {first}-{last}; more follow ({} in all); read on with offset {}",
                size(whole),
                last + 1
            )),
        }
        if found.cut > 0 {
            notes.push(format!("{} cut; look inside with search_code", many(found.cut, "long line")));
        }
        match (found.ends.crlf, found.ends.lf) {
            (true, false) => notes.push("lines end in CR LF".to_owned()),
            (true, true) => notes.push("mixed line ends".to_owned()),
            (false, _) => {}
        }
        if found.ends.cr {
            notes.push("CR alone ends no line".to_owned());
        }
        if let (lines @ 1.., _) = found.dark {
            let are = if lines == 1 { "is no text and is" } else { "are no text and are" };
            notes.push(format!("{} {are} not shown", many(lines, "line")));
        }
        if found.nuls > 0 {
            let (is, noun) = if found.nuls == 1 { ("is", "NUL") } else { ("are", "NULs") };
            notes.push(format!("{} {noun} {is} shown as \u{fffd}", found.nuls));
        }
        if found.invalid > 0 {
            let is = if found.invalid == 1 { "is" } else { "are" };
            let bytes = many(found.invalid, "byte");
            notes.push(format!("{bytes} that {is} not UTF-8 {is} shown as \u{fffd}; edit_file cannot edit this file"));
        }
        if let Some(line) = found.beyond.nul {
            notes.push(format!("further on, line {line} is the first with a NUL"));
        }
        if let Some(line) = found.beyond.invalid.filter(|_| found.invalid == 0) {
            notes.push(format!(
                "further on, line {line} is the first with bytes that are not UTF-8: edit_file cannot edit this file"
            ));
        }
        notes.extend(hidden_note(&found.text));
        let mut text = found.text.clone();
        if !notes.is_empty() {
            text.push_str(&format!("\n[{}]", notes.join("; ")));
        }
        Ok(Output::text(text))
    }
}

/// Which lines have characters that are left out for a model, so that it knows why an edit drops them.
fn hidden_note(text: &str) -> Option<String> {
    let numbers = text.lines().filter_map(|line| line.split_once('\t')).filter(|(_, line)| has_hidden(line));
    let mut lines: Vec<&str> = numbers.map(|(number, _)| number.trim()).take(NAMED_MAX + 1).collect();
    if lines.is_empty() {
        return None;
    }
    if lines.len() > NAMED_MAX {
        lines.pop();
        lines.push("…");
    }
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    Some(format!(
        "{noun} {}: invisible characters are left out here; edit_file finds the text as shown and drops those inside `old`",
        lines.join(", ")
    ))
}

fn picture(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn show_picture(
    place: &RelPath,
    media_type: &str,
    whole: u64,
    reader: impl Read,
) -> io::Result<Result<Output, ToolError>> {
    let mut bytes = Vec::new();
    reader.take(IMAGE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > IMAGE_BYTES_MAX {
        return Ok(Err(ToolError::correctable(format!(
            "`{place}` is a picture ({media_type}) of {}; at most {} can be shown",
            size(whole),
            size(IMAGE_BYTES_MAX)
        ))));
    }
    let words = format!("[`{place}`: {media_type}, {}]", size(bytes.len() as u64));
    let image = Part::Image { media_type: media_type.to_owned(), data: STANDARD.encode(&bytes) };
    Ok(Ok(Output { content: vec![Part::text(words), image], is_error: false }))
}

/// The way to decode a text that says of itself that it is UTF-16.
fn utf16(head: &[u8]) -> Option<fn(&[u8]) -> String> {
    fn decode(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
        let units = bytes.as_chunks().0.iter().map(|pair| unit(*pair));
        char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }
    match head {
        // UTF-32 begins the same way; it is hardly ever used, and not decoded.
        [0xff, 0xfe, 0, 0, ..] => None,
        [0xff, 0xfe, ..] => Some(|bytes| decode(bytes, u16::from_le_bytes)),
        [0xfe, 0xff, ..] => Some(|bytes| decode(bytes, u16::from_be_bytes)),
        _ => None,
    }
}

fn binary(place: &RelPath, whole: u64, head: &[u8]) -> ToolError {
    let kinds: [(&[u8], &str); 7] = [
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"\x7fELF", "an ELF program or library"),
        (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\0asm", "a WebAssembly module"),
        (b"MZ", "a Windows program or library"),
    ];
    let kind =
        kinds.iter().find(|(magic, _)| head.starts_with(magic)).map_or("binary data, not UTF-8 text", |kind| kind.1);
    ToolError::correctable(format!("`{place}` cannot be shown: {kind}, {}", size(whole)))
}
