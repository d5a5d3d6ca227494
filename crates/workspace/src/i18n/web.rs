//! The phrases about pages of the web: why one does not come, and what is to be known about one that came.

use max_team_tools::{AddressFlaw, BodyFlaw, PageAnswer, PageNote, RedirectFlaw, SearchAddressFlaw, WebFault};

use super::Lang;
use crate::format::bytes;

impl Lang {
    /// Why a page did not come, for the user who has asked for it.
    pub fn web_fault(self, fault: &WebFault) -> String {
        match fault {
            WebFault::Address { url, flaw } => match flaw {
                AddressFlaw::TooLong => self.address_too_long(url),
                AddressFlaw::Unusable(why) => self.address_unusable(url, why),
                AddressFlaw::NotWeb => self.address_not_web(url),
                AddressFlaw::HasPassword => self.address_has_password(url),
            },
            WebFault::Private { url, address } => self.page_private(url, &address.host, address.address.to_string()),
            WebFault::NotRecorded(url) => self.page_not_recorded(url),
            WebFault::NoClient { url, why } => self.page_no_client(url, why),
            WebFault::Unreachable { url, why } => self.page_unreachable(url, why),
            WebFault::Body { url, flaw } => self.page_broke_off(url, self.body_flaw(flaw)),
            WebFault::Late { url, seconds } => self.page_late(url, *seconds),
            WebFault::Redirect { url, to, flaw: RedirectFlaw::NotWeb } => self.redirect_not_web(url, to),
            WebFault::Redirect { url, to, flaw: RedirectFlaw::Unencrypted } => self.redirect_unencrypted(url, to),
            WebFault::RedirectLoop(url) => self.redirect_loop(url),
            WebFault::NoPart { url, number, count } => self.page_no_part(url, *count, *number),
            WebFault::NoSelector { url, selector } => self.page_no_selector(url, selector),
            WebFault::NotFound { url, title, selector } => self.page_not_found(url, title, selector),
            WebFault::PartOfDocument { url, flaw, bytes: count, kind } => {
                self.page_part_of_document(url, self.body_flaw(flaw), size(*count), self.document_kind(kind))
            }
            WebFault::LargeDocument { url, kind, most } => {
                self.page_large_document(url, self.document_kind(kind), size(*most))
            }
            WebFault::Document { url, why } => self.page_document(url, why),
            WebFault::NoChromium(url) => self.page_no_chromium(url),
            WebFault::NotRendered { url, why } => self.page_not_rendered(url, why),
            WebFault::BrowserPath(path) => self.browser_path_wrong(path),
            WebFault::NoBrowser => self.browser_missing().to_owned(),
            WebFault::NoNamespaces => self.browser_no_namespaces().to_owned(),
            WebFault::BrowserStart(why) => self.browser_no_start(why),
            WebFault::BrowserEnds { times, minutes } => self.browser_ends(*times, *minutes),
            WebFault::SearchAddress(SearchAddressFlaw::Unset(service)) => self.search_url_unset(service),
            WebFault::SearchAddress(SearchAddressFlaw::Unusable(why)) => self.search_url_unusable(why),
            WebFault::Other(words) => words.clone(),
        }
    }

    /// What is to be known about a page, behind its address.
    pub fn page_about(self, page: &PageAnswer) -> String {
        let notes: Vec<String> = page.notes.iter().map(|note| self.page_note(note)).collect();
        self.page_told(&page.url, notes.join(self.between_notes()))
    }

    fn page_note(self, note: &PageNote) -> String {
        match note {
            PageNote::Answer { status, media_type } if media_type.is_empty() => self.note_no_type(*status),
            PageNote::Answer { status, media_type } => self.note_answer(*status, media_type),
            PageNote::Title(title) => self.note_title(title),
            PageNote::Incomplete { bytes, flaw } => self.note_incomplete(size(*bytes), self.body_flaw(flaw)),
            PageNote::Cut(bytes) => self.note_cut(size(*bytes)),
            PageNote::TextCut(bytes) => self.note_text_cut(size(*bytes)),
            PageNote::Document(kind) => self.note_document(self.document_kind(kind)),
            PageNote::Empty => self.note_empty().to_owned(),
            PageNote::Compressed(how) => self.note_compressed(how),
            PageNote::Binary(bytes) => self.note_binary(size(*bytes)),
            PageNote::Part { number, count } => self.note_part(*number, *count),
            PageNote::NeedsChromium => self.note_needs_chromium().to_owned(),
            PageNote::Rendered => self.note_rendered().to_owned(),
            PageNote::NoText => self.note_no_text().to_owned(),
            PageNote::NotRendered(fault) => self.note_not_rendered(self.web_fault(fault)),
        }
    }

    fn body_flaw(self, flaw: &BodyFlaw) -> String {
        match flaw {
            BodyFlaw::BrokeOff(why) => self.body_broke_off(why),
            BodyFlaw::Compressed(why) => self.body_damaged(why),
        }
    }

    fn document_kind(self, kind: &str) -> &str {
        match kind {
            "a PDF document" => self.kind_pdf(),
            "an office document" => self.kind_office(),
            other => other,
        }
    }
}

fn size(count: u64) -> String {
    bytes(usize::try_from(count).unwrap_or(usize::MAX))
}
