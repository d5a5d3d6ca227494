//! The words of an element's class and id that say what it is for, as sites commonly name their parts.
//!
//! Names are compared word by word: `siteNav`, `site-nav` and `site_nav` have the word `nav`, and `navel` has not.

use dom_query::Element;

/// What the words of an element's class and id say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Hints {
    pub(super) is_hidden: bool,
    pub(super) is_boilerplate: bool,
    /// Boilerplate if much of it is links.
    pub(super) may_be_boilerplate: bool,
    /// The head of a page, or of an article.
    pub(super) is_header: bool,
    /// Comments of readers.
    pub(super) is_comments: bool,
    /// A discussion, in which the comments are the content.
    pub(super) is_thread: bool,
    /// The name of an author.
    pub(super) is_author: bool,
}

#[derive(Debug, Clone, Copy)]
enum Hint {
    Boilerplate,
    Linked,
    Header,
    Comments,
    Thread,
    Author,
}

/// Bytes of a word that is looked up.
const WORD_BYTES_MAX: usize = 16;

/// The words in the order of their letters.
const WORDS: [(&str, Hint); 160] = [
    ("account", Hint::Linked),
    ("actions", Hint::Linked),
    ("ad", Hint::Boilerplate),
    ("ads", Hint::Boilerplate),
    ("adsense", Hint::Boilerplate),
    ("advert", Hint::Boilerplate),
    ("advertisement", Hint::Boilerplate),
    ("advertising", Hint::Boilerplate),
    ("answer", Hint::Thread),
    ("answers", Hint::Thread),
    ("anzeige", Hint::Boilerplate),
    ("archive", Hint::Linked),
    ("archives", Hint::Linked),
    ("authi", Hint::Author),
    ("author", Hint::Author),
    ("authorname", Hint::Author),
    ("backlinks", Hint::Linked),
    ("banner", Hint::Boilerplate),
    ("bar", Hint::Linked),
    ("breadcrumb", Hint::Boilerplate),
    ("breadcrumbs", Hint::Boilerplate),
    ("breaking", Hint::Linked),
    ("btn", Hint::Linked),
    ("buttons", Hint::Linked),
    ("byline", Hint::Author),
    ("captcha", Hint::Boilerplate),
    ("categories", Hint::Linked),
    ("catlinks", Hint::Linked),
    ("cmt", Hint::Comments),
    ("comment", Hint::Comments),
    ("commentlist", Hint::Comments),
    ("comments", Hint::Comments),
    ("consent", Hint::Boilerplate),
    ("controls", Hint::Linked),
    ("cookie", Hint::Boilerplate),
    ("cookiebanner", Hint::Boilerplate),
    ("cookiebar", Hint::Boilerplate),
    ("cookies", Hint::Boilerplate),
    ("copyright", Hint::Boilerplate),
    ("crumb", Hint::Boilerplate),
    ("crumbs", Hint::Boilerplate),
    ("cta", Hint::Linked),
    ("deals", Hint::Linked),
    ("disclaimer", Hint::Boilerplate),
    ("disclosure", Hint::Boilerplate),
    ("discussion", Hint::Thread),
    ("disqus", Hint::Boilerplate),
    ("edit", Hint::Linked),
    ("editor", Hint::Linked),
    ("editsection", Hint::Boilerplate),
    ("feedback", Hint::Boilerplate),
    ("feeds", Hint::Linked),
    ("follow", Hint::Linked),
    ("followers", Hint::Linked),
    ("foot", Hint::Boilerplate),
    ("footer", Hint::Boilerplate),
    ("forum", Hint::Thread),
    ("ft", Hint::Linked),
    ("gdpr", Hint::Boilerplate),
    ("hd", Hint::Header),
    ("hdr", Hint::Header),
    ("header", Hint::Header),
    ("hidden", Hint::Boilerplate),
    ("hotlist", Hint::Boilerplate),
    ("icons", Hint::Linked),
    ("jump", Hint::Linked),
    ("keywords", Hint::Linked),
    ("labels", Hint::Linked),
    ("leftcol", Hint::Linked),
    ("links", Hint::Linked),
    ("login", Hint::Boilerplate),
    ("masthead", Hint::Boilerplate),
    ("menu", Hint::Boilerplate),
    ("modal", Hint::Boilerplate),
    ("mostpop", Hint::Linked),
    ("nav", Hint::Boilerplate),
    ("navbar", Hint::Boilerplate),
    ("navigation", Hint::Boilerplate),
    ("newsletter", Hint::Boilerplate),
    ("noprint", Hint::Boilerplate),
    ("offcanvas", Hint::Boilerplate),
    ("overlay", Hint::Boilerplate),
    ("pager", Hint::Boilerplate),
    ("pagination", Hint::Boilerplate),
    ("paywall", Hint::Boilerplate),
    ("permalink", Hint::Linked),
    ("popular", Hint::Linked),
    ("popup", Hint::Boilerplate),
    ("poster", Hint::Author),
    ("postlist", Hint::Thread),
    ("previous", Hint::Linked),
    ("print", Hint::Linked),
    ("printfooter", Hint::Boilerplate),
    ("promo", Hint::Boilerplate),
    ("promoted", Hint::Boilerplate),
    ("promotion", Hint::Boilerplate),
    ("question", Hint::Thread),
    ("rail", Hint::Linked),
    ("rank", Hint::Linked),
    ("ranking", Hint::Linked),
    ("rating", Hint::Linked),
    ("ratings", Hint::Linked),
    ("recent", Hint::Linked),
    ("recommend", Hint::Boilerplate),
    ("recommendations", Hint::Boilerplate),
    ("recommended", Hint::Boilerplate),
    ("related", Hint::Boilerplate),
    ("relatedposts", Hint::Boilerplate),
    ("report", Hint::Linked),
    ("respond", Hint::Comments),
    ("review", Hint::Thread),
    ("reviews", Hint::Thread),
    ("rightcol", Hint::Linked),
    ("screenreader", Hint::Boilerplate),
    ("secondary", Hint::Linked),
    ("seealso", Hint::Linked),
    ("share", Hint::Boilerplate),
    ("sharebar", Hint::Boilerplate),
    ("sharedaddy", Hint::Boilerplate),
    ("sharing", Hint::Boilerplate),
    ("side", Hint::Linked),
    ("sidebar", Hint::Boilerplate),
    ("sidenav", Hint::Linked),
    ("signature", Hint::Boilerplate),
    ("signin", Hint::Boilerplate),
    ("signup", Hint::Boilerplate),
    ("similar", Hint::Linked),
    ("sitenotice", Hint::Boilerplate),
    ("skip", Hint::Boilerplate),
    ("skiplink", Hint::Boilerplate),
    ("sns", Hint::Boilerplate),
    ("social", Hint::Boilerplate),
    ("sponsor", Hint::Boilerplate),
    ("sponsored", Hint::Boilerplate),
    ("submeta", Hint::Linked),
    ("subnav", Hint::Boilerplate),
    ("subscribe", Hint::Boilerplate),
    ("subscription", Hint::Boilerplate),
    ("tabs", Hint::Linked),
    ("tag", Hint::Linked),
    ("taglist", Hint::Linked),
    ("tags", Hint::Linked),
    ("teaser", Hint::Linked),
    ("teaserbox", Hint::Linked),
    ("thread", Hint::Thread),
    ("toc", Hint::Boilerplate),
    ("tool", Hint::Linked),
    ("toolbar", Hint::Boilerplate),
    ("tools", Hint::Linked),
    ("topbar", Hint::Boilerplate),
    ("topic", Hint::Thread),
    ("topics", Hint::Linked),
    ("trending", Hint::Linked),
    ("userbar", Hint::Linked),
    ("username", Hint::Author),
    ("utility", Hint::Linked),
    ("vcard", Hint::Author),
    ("vote", Hint::Linked),
    ("votes", Hint::Linked),
    ("widget", Hint::Boilerplate),
];

/// Reads the class, the id and the style of an element.
pub(super) fn read(element: &Element) -> Hints {
    let mut hints = Hints::default();
    for names in [element.attr("class"), element.attr("id")].into_iter().flatten() {
        each_word(&names, |word| hints.add(word));
        for name in names.split_ascii_whitespace() {
            joined(name, |word| hints.add(word));
            hints.is_hidden |= is_hidden_class(name);
        }
    }
    hints.is_hidden |= element.has_attr("hidden")
        || element.attr("aria-hidden").as_deref() == Some("true")
        || element.attr("style").is_some_and(|style| is_hidden_style(&style));
    hints
}

impl Hints {
    fn add(&mut self, word: &str) {
        let Ok(at) = WORDS.binary_search_by(|(known, _)| (*known).cmp(word)) else { return };
        match WORDS.get(at).map(|(_, hint)| *hint) {
            Some(Hint::Boilerplate) => self.is_boilerplate = true,
            Some(Hint::Linked) => self.may_be_boilerplate = true,
            Some(Hint::Header) => self.is_header = true,
            Some(Hint::Comments) => self.is_comments = true,
            Some(Hint::Thread) => self.is_thread = true,
            Some(Hint::Author) => self.is_author = true,
            None => {}
        }
    }
}

/// Classes of text that only a screen reader reads: it repeats in words how the page looks.
fn is_hidden_class(class: &str) -> bool {
    ["sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"].contains(&class)
}

fn is_hidden_style(style: &str) -> bool {
    let style = style.to_ascii_lowercase().replace(' ', "");
    style.contains("display:none") || style.contains("visibility:hidden")
}

/// A name as one word: `skip-link` is `skiplink` to other sites.
fn joined(name: &str, take: impl FnOnce(&str)) {
    let mut word = [0; WORD_BYTES_MAX];
    let mut letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    let mut len = 0;
    for (place, letter) in word.iter_mut().zip(letters.by_ref()) {
        *place = letter.to_ascii_lowercase();
        len += 1;
    }
    if letters.next().is_none()
        && let Some(word) = word.get(..len).and_then(|word| std::str::from_utf8(word).ok())
    {
        take(word);
    }
}

/// The words of a class or an id in lower case.
fn each_word(names: &str, mut take: impl FnMut(&str)) {
    let mut word = [0; WORD_BYTES_MAX];
    let mut len = 0;
    let mut end = |word: &[u8; WORD_BYTES_MAX], len: &mut usize| {
        if let Some(word) = word.get(..*len).and_then(|word| std::str::from_utf8(word).ok()) {
            take(word);
        }
        *len = 0;
    };
    let mut was_lower = false;
    for byte in names.bytes() {
        if !byte.is_ascii_alphanumeric() || (byte.is_ascii_uppercase() && was_lower) {
            end(&word, &mut len);
        }
        was_lower = byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if byte.is_ascii_alphanumeric() {
            if let Some(place) = word.get_mut(len) {
                *place = byte.to_ascii_lowercase();
            }
            len += 1;
        }
    }
    end(&word, &mut len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_names() {
        let words = |names: &str| {
            let mut found = Vec::new();
            each_word(names, |word| found.push(word.to_owned()));
            found.retain(|word| !word.is_empty());
            found
        };
        assert_eq!(words("siteNav site-nav  c-ad__Box2 TOC"), ["site", "nav", "site", "nav", "c", "ad", "box2", "toc"]);
        assert!(words("averyverylongwordindeed").is_empty());
        assert!(WORDS.is_sorted_by(|(one, _), (two, _)| one < two));
        assert!(WORDS.iter().all(|(word, _)| word.len() <= WORD_BYTES_MAX));
    }
}
