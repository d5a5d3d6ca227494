//! The text of office documents: Word, Excel, PowerPoint, and the OpenDocument formats.
//!
//! All are ZIP archives with XML inside. The text is taken in reading order: paragraphs as lines, cells of tables
//! between tabs, sheets and slides under their names. Entries are unpacked up to a bound, regardless of the size that
//! they declare; entities that a document defines are unknown, so they cannot grow.

use std::io::{Cursor, Read as _};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;

/// Bytes of one entry, unpacked.
const ENTRY_BYTES_MAX: u64 = 64 << 20;
/// Bytes of text at which reading ends.
const TEXT_BYTES_MAX: usize = max_team_core::limits::DOCUMENT_TEXT_BYTES_MAX;
/// Sheets or slides that are read.
const PARTS_MAX: usize = 1_000;
/// Empty cells in a row that are shown.
const EMPTY_CELLS_MAX: usize = 100;

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// The text of a document, or why there is none.
pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|err| err.to_string())?;
    if archive.index_for_name("word/document.xml").is_some() {
        let xml = entry(&mut archive, "word/document.xml")?;
        return flow(&xml, "t");
    }
    if archive.index_for_name("xl/workbook.xml").is_some() {
        return sheets(&mut archive);
    }
    if archive.index_for_name("ppt/presentation.xml").is_some() {
        return slides(&mut archive);
    }
    if archive.index_for_name("mimetype").is_some() && archive.index_for_name("content.xml").is_some() {
        let xml = entry(&mut archive, "content.xml")?;
        return flow(&xml, "");
    }
    Err("it is a ZIP archive, but no office document that is known here".to_owned())
}

fn entry(archive: &mut Archive<'_>, name: &str) -> Result<String, String> {
    let file = archive.by_name(name).map_err(|err| format!("`{name}`: {err}"))?;
    let mut bytes = Vec::new();
    file.take(ENTRY_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|err| format!("`{name}`: {err}"))?;
    if bytes.len() as u64 > ENTRY_BYTES_MAX {
        return Err(format!("`{name}` unpacks to more than {} MiB", ENTRY_BYTES_MAX >> 20));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Paragraphs in reading order. Text counts inside of elements of that name only; all of it if the name is empty.
fn flow(xml: &str, inside: &str) -> Result<String, String> {
    let mut reader = Reader::from_str(xml);
    let mut out = String::new();
    let (mut is_text, mut paragraphs, mut cells) = (inside.is_empty(), 0_usize, 0_usize);
    while out.len() < TEXT_BYTES_MAX {
        match reader.read_event().map_err(|err| err.to_string())? {
            Event::Start(tag) => match name(&tag).as_str() {
                "tc" | "table-cell" => cells += 1,
                "p" | "h" => paragraphs += 1,
                own => is_text |= own == inside,
            },
            Event::End(tag) => match local(tag.name().as_ref()) {
                "tc" | "table-cell" => {
                    cells = cells.saturating_sub(1);
                    out.truncate(out.trim_end_matches(' ').len());
                    out.push('\t');
                }
                "tr" | "table-row" => {
                    out.truncate(out.trim_end_matches('\t').len());
                    out.push('\n');
                }
                "p" | "h" => {
                    paragraphs = paragraphs.saturating_sub(1);
                    out.push(if cells > 0 { ' ' } else { '\n' });
                }
                own if own == inside => is_text = false,
                _ => {}
            },
            Event::Empty(tag) => match name(&tag).as_str() {
                "tab" => out.push('\t'),
                "br" | "line-break" | "cr" => out.push('\n'),
                "p" | "h" if cells == 0 => out.push('\n'),
                "s" => out.push(' '),
                "tc" | "table-cell" => out.push('\t'),
                _ => {}
            },
            Event::Eof => break,
            other if is_text && (paragraphs > 0 || !inside.is_empty()) => push(&mut out, &other),
            _ => {}
        }
    }
    Ok(out)
}

/// Adds what an event says, if it is text.
fn push(out: &mut String, event: &Event<'_>) {
    match event {
        Event::Text(text) => out.push_str(&text.xml10_content()),
        Event::CData(text) => out.push_str(&text.xml10_content()),
        Event::GeneralRef(name) => {
            let known = match &**name {
                "amp" => Some('&'),
                "lt" => Some('<'),
                "gt" => Some('>'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                _ => name.resolve_char_ref().ok().flatten(),
            };
            out.extend(known);
        }
        _ => {}
    }
}

fn name(tag: &BytesStart<'_>) -> String {
    local(tag.name().as_ref()).to_owned()
}

fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

fn attribute(tag: &BytesStart<'_>, wanted: &str) -> Option<String> {
    let mut attributes = tag.attributes().flatten();
    let found = attributes.find(|attribute| local(attribute.key.as_ref()) == wanted)?;
    Some(found.value.to_string())
}

/// The numbers of entries like `ppt/slides/slide12.xml`, in order.
fn numbers(archive: &Archive<'_>, before: &str) -> Vec<usize> {
    let number = |name: &str| name.strip_prefix(before)?.strip_suffix(".xml")?.parse().ok();
    let mut numbers: Vec<usize> = archive.file_names().flatten().filter_map(|name| number(&name)).collect();
    numbers.sort_unstable();
    numbers.truncate(PARTS_MAX);
    numbers
}

fn slides(archive: &mut Archive<'_>) -> Result<String, String> {
    let mut out = String::new();
    for number in numbers(archive, "ppt/slides/slide") {
        let xml = entry(archive, &format!("ppt/slides/slide{number}.xml"))?;
        out.push_str(&format!("[slide {number}]\n{}\n", flow(&xml, "t")?));
        if out.len() >= TEXT_BYTES_MAX {
            break;
        }
    }
    Ok(out)
}

fn sheets(archive: &mut Archive<'_>) -> Result<String, String> {
    let shared = match entry(archive, "xl/sharedStrings.xml") {
        Ok(xml) => strings(&xml)?,
        Err(_) => Vec::new(),
    };
    let names = sheet_names(&entry(archive, "xl/workbook.xml")?)?;
    let mut out = String::new();
    for (at, number) in numbers(archive, "xl/worksheets/sheet").into_iter().enumerate() {
        let xml = entry(archive, &format!("xl/worksheets/sheet{number}.xml"))?;
        let title = names.get(at).cloned().unwrap_or_else(|| format!("sheet {number}"));
        out.push_str(&format!("[{title}]\n"));
        rows(&xml, &shared, &mut out)?;
        out.push('\n');
        if out.len() >= TEXT_BYTES_MAX {
            break;
        }
    }
    Ok(out)
}

fn sheet_names(xml: &str) -> Result<Vec<String>, String> {
    let mut reader = Reader::from_str(xml);
    let mut names = Vec::new();
    loop {
        match reader.read_event().map_err(|err| err.to_string())? {
            Event::Start(tag) | Event::Empty(tag) if name(&tag) == "sheet" => names.extend(attribute(&tag, "name")),
            Event::Eof => return Ok(names),
            _ => {}
        }
    }
}

/// The strings that cells refer to by number.
fn strings(xml: &str) -> Result<Vec<String>, String> {
    let mut reader = Reader::from_str(xml);
    let (mut strings, mut one, mut is_text) = (Vec::new(), String::new(), false);
    loop {
        match reader.read_event().map_err(|err| err.to_string())? {
            Event::Start(tag) => is_text |= name(&tag) == "t",
            Event::Empty(tag) if name(&tag) == "si" => strings.push(String::new()),
            Event::End(tag) => match local(tag.name().as_ref()) {
                "t" => is_text = false,
                "si" => strings.push(std::mem::take(&mut one)),
                _ => {}
            },
            Event::Eof => return Ok(strings),
            other if is_text => push(&mut one, &other),
            _ => {}
        }
    }
}

fn rows(xml: &str, shared: &[String], out: &mut String) -> Result<(), String> {
    let mut reader = Reader::from_str(xml);
    let (mut column, mut is_shared, mut is_value, mut value) = (0, false, false, String::new());
    while out.len() < TEXT_BYTES_MAX {
        match reader.read_event().map_err(|err| err.to_string())? {
            Event::Start(tag) => match name(&tag).as_str() {
                "row" => column = 0,
                "c" => {
                    is_shared = attribute(&tag, "t").as_deref() == Some("s");
                    let at = attribute(&tag, "r").and_then(|place| column_of(&place)).unwrap_or(column);
                    let empty = at.saturating_sub(column).min(EMPTY_CELLS_MAX);
                    out.extend(std::iter::repeat_n('\t', empty));
                    column = at;
                }
                "v" | "t" => is_value = true,
                _ => {}
            },
            Event::End(tag) => match local(tag.name().as_ref()) {
                "v" | "t" => is_value = false,
                "c" => {
                    let text = std::mem::take(&mut value);
                    let looked_up = || shared.get(text.trim().parse::<usize>().ok()?);
                    let shown = if is_shared { looked_up().unwrap_or(&text) } else { &text };
                    out.push_str(&shown.replace('\n', " "));
                    out.push('\t');
                    column += 1;
                }
                "row" => {
                    out.truncate(out.trim_end_matches('\t').len());
                    out.push('\n');
                }
                _ => {}
            },
            Event::Eof => break,
            other if is_value => push(&mut value, &other),
            _ => {}
        }
    }
    Ok(())
}

/// The column of a place like `AB12`, counted from 0.
fn column_of(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic).take(4);
    let number = letters.fold(0, |sum, letter| sum * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1);
    number.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn each_format_gives_its_text() {
        let word = "<w:document xmlns:w='w'><w:body><w:p><w:r><w:t>Hello &amp; </w:t></w:r><w:r><w:tab/><w:t>you&#33;</w:t></w:r></w:p>\
            <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>";
        assert_eq!(text(&archive(&[("word/document.xml", word)])).unwrap(), "Hello & \tyou!\na\tb\n");

        let sheet = "<worksheet><sheetData><row r='1'><c r='A1' t='s'><v>1</v></c><c r='C1'><v>2.5</v></c></row>\
            <row><c t='inlineStr'><is><t>in</t></is></c></row></sheetData></worksheet>";
        let excel = [
            ("xl/workbook.xml", "<workbook><sheets><sheet name='Prices' sheetId='1'/></sheets></workbook>"),
            ("xl/sharedStrings.xml", "<sst><si><t>zero</t></si><si><r><t>o</t></r><r><t>ne</t></r></si></sst>"),
            ("xl/worksheets/sheet1.xml", sheet),
        ];
        assert_eq!(text(&archive(&excel)).unwrap(), "[Prices]\none\t\t2.5\nin\n\n");

        let slide =
            |words: &str| format!("<p:sld xmlns:p='p' xmlns:a='a'><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:sld>");
        let (ten, two) = (slide("ten"), slide("two"));
        let point =
            [("ppt/presentation.xml", "<x/>"), ("ppt/slides/slide10.xml", &ten), ("ppt/slides/slide2.xml", &two)];
        assert_eq!(text(&archive(&point)).unwrap(), "[slide 2]\ntwo\n\n[slide 10]\nten\n\n");

        let open = "<office:d xmlns:office='o' xmlns:text='t'><text:h>Head</text:h> <text:p>one<text:s/>two <text:span>three</text:span></text:p></office:d>";
        assert_eq!(text(&archive(&[("mimetype", "x"), ("content.xml", open)])).unwrap(), "Head\none two three\n");

        assert!(text(&archive(&[("a.txt", "x")])).unwrap_err().contains("ZIP archive"));
    }

    #[test]
    fn hostile_archives_are_refused_or_cut() {
        let bomb = "<w:t>".to_owned() + &" ".repeat(usize::try_from(ENTRY_BYTES_MAX).unwrap()) + "</w:t>";
        let packed = archive(&[("word/document.xml", &bomb)]);
        assert!(packed.len() < 1 << 20);
        assert!(text(&packed).unwrap_err().contains("unpacks to more than"));

        let deep = "<w:p>".repeat(200_000);
        assert!(text(&archive(&[("word/document.xml", &deep)])).is_ok());

        // Entities that stand for ever more of each other are not known, so they say nothing.
        let laughs = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><w:p><w:t>&b;!</w:t></w:p>";
        assert_eq!(text(&archive(&[("word/document.xml", laughs)])).unwrap(), "!\n");

        let whole = archive(&[("word/document.xml", "<w:p><w:t>x</w:t></w:p>")]);
        for end in 0..whole.len() {
            assert!(text(&whole[..end]).is_err(), "{end}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn any_archive_is_read_or_refused(at in 0_usize..400, byte in any::<u8>()) {
            let mut bytes = archive(&[("xl/workbook.xml", "<sheet name='a'/>"), ("xl/worksheets/sheet1.xml", "<row><c><v>1</v></c></row>")]);
            let length = bytes.len();
            bytes[at % length] = byte;
            let _ = text(&bytes);
        }
    }
}
