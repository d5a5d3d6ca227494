//! What happened, as one page to read: a table that needs nothing but a browser.
//!
//! Everything that an agent, a file or a person has said is data: it is escaped wherever it stands.

use max_team_core::text::{escape, judged};
use max_team_runtime::Record;
use max_team_runtime::storage::FaultDetail;

use max_team_workspace::format::local;
use max_team_workspace::i18n::Lang;

const STYLE: &str = include_str!("page.css");

pub(super) fn head(lang: Lang, now: &str) -> String {
    let heads: String = lang.audit_heads().iter().map(|head| format!("<th>{head}</th>")).collect();
    let (title, made) = (lang.audit_title(), lang.made_at(now));
    format!(
        "<!doctype html>\n<html lang=\"{}\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         <h1>{title}</h1>\n<p>{made}</p>\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>",
        lang.code()
    )
}

pub(super) fn row(record: &Record, lang: Lang) -> String {
    let whose = record.agent.as_deref().unwrap_or(&record.actor);
    let said = if record.erased { lang.forgotten_word().to_owned() } else { lang.record_text(&record.what) };
    let damaged = !record.damaged.is_empty();
    let said = if damaged { format!("{} {said}", lang.damaged(&record.damaged)) } else { said };
    let allowed = super::on_whose_word(record, lang).unwrap_or_default();
    let session = record.session.map(|session| session.to_string()).unwrap_or_default();
    let cells = [
        record.seq.to_string(),
        local(record.at_ms),
        session,
        whose.to_owned(),
        record.task.clone().unwrap_or_default(),
        record.event.clone(),
        said,
        allowed,
        record.hash.clone(),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
    format!("<tr{}>{cells}</tr>", if damaged { " class=\"damaged\"" } else { "" })
}

/// Entries that cannot be read, in the place of theirs.
pub(super) fn gap(from: u64, to: Option<u64>, lang: Lang) -> String {
    let words = lang.damaged(&[FaultDetail::Unread { from, to }]);
    format!("<tr class=\"damaged\"><td colspan=\"{}\">{}</td></tr>", lang.audit_heads().len(), escaped(&words))
}

/// The end of the page, with what is to be said about all of it.
pub(super) fn foot(note: Option<&str>) -> String {
    let note = note.map(|note| format!("<p class=\"damaged\">{}</p>\n", escaped(note))).unwrap_or_default();
    format!("</tbody>\n</table>\n{note}</html>")
}

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (letter, is_seen) in judged(text) {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter if !is_seen => escape(letter, &mut safe),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_said_is_more_than_text() {
        let said = "<script>alert(\"x\")</script> & 'y' \u{202e}z\u{7}";
        let safe = escaped(said);
        assert_eq!(safe, "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;y&#39; \\u{202e}z\\u{7}");
    }
}
