//! Removes the parts of a page that are not its content: navigation, banners, footers, hidden elements.
//!
//! Names of classes are compared word by word, and an element that holds most of the page's text is never removed, so
//! that a `body` with the class `has-sidebar` stays.

use dom_query::{Document, NodeData, NodeRef};

/// Elements that are never content.
const NEVER: &str = "nav, footer, dialog, button, menu, [hidden], [aria-hidden=true], [role=navigation], \
    [role=banner], [role=contentinfo], [role=search], [role=complementary], [role=dialog], [role=alertdialog], \
    [role=menu], [role=menubar], [role=toolbar], [role=tablist]";
/// Elements that are content only in the middle of one.
const OUTSIDE: &str = "aside, body > header, [class*=header i], [id*=header i]";
/// Elements whose class or id is looked at.
const NAMED: &str = "[class], [id]";
/// Words of a class or an id that say what an element is for.
const WORDS: [&str; 58] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "advertising",
    "adsense",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "captcha",
    "consent",
    "cookie",
    "cookiebar",
    "cookies",
    "copyright",
    "disclaimer",
    "footer",
    "foot",
    "gdpr",
    "hidden",
    "hotlist",
    "login",
    "masthead",
    "menu",
    "modal",
    "nav",
    "navbar",
    "navigation",
    "newsletter",
    "offcanvas",
    "overlay",
    "pager",
    "pagination",
    "popup",
    "promo",
    "promoted",
    "promotion",
    "recommend",
    "recommendations",
    "recommended",
    "related",
    "share",
    "sharebar",
    "sharing",
    "sidebar",
    "signup",
    "skip",
    "skiplink",
    "social",
    "sponsor",
    "sponsored",
    "subnav",
    "subscribe",
    "subscription",
    "toc",
    "toolbar",
    "topbar",
    "widget",
];
/// Of all text, in percent: an element with more is content, also if its name says otherwise.
const MOST_PERCENT: usize = 40;

/// Removes boilerplate from a page.
pub(super) fn remove(document: &Document) {
    let all = document.body().map_or(0, |body| length(&body));
    let is_small = |node: &NodeRef<'_>| length(node) * 100 <= all * MOST_PERCENT;
    for node in document.select(NEVER).nodes() {
        if is_small(node) {
            node.remove_from_parent();
        }
    }
    for node in document.select(NAMED).nodes() {
        if is_attached(node) && is_named(node) && is_small(node) {
            node.remove_from_parent();
        }
    }
    for node in document.select(OUTSIDE).nodes() {
        if is_attached(node) && !is_in_content(node) && is_small(node) && !has_heading(node) {
            node.remove_from_parent();
        }
    }
}

fn length(node: &NodeRef<'_>) -> usize {
    let text = |node: NodeRef<'_>| {
        node.query_or(0, |inner| match &inner.data {
            NodeData::Text { contents } => contents.trim().len(),
            _ => 0,
        })
    };
    node.descendants_it().map(text).sum()
}

fn is_attached(node: &NodeRef<'_>) -> bool {
    node.parent().is_some()
}

fn is_named(node: &NodeRef<'_>) -> bool {
    if matches!(node.node_name().as_deref(), Some("html" | "body" | "main" | "article" | "h1" | "code" | "pre")) {
        return false;
    }
    let is_hidden = node.attr("style").is_some_and(|style| {
        let style = style.to_ascii_lowercase().replace(' ', "");
        style.contains("display:none") || style.contains("visibility:hidden")
    });
    let named = |text: &str| words(text).any(|word| WORDS.contains(&word.to_ascii_lowercase().as_str()));
    is_hidden || node.class().is_some_and(|class| named(&class)) || node.id_attr().is_some_and(|id| named(&id))
}

/// The words of a class or an id: `siteNav`, `site-nav` and `site_nav` have `nav`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).flat_map(|part| {
        let mut starts = vec![0];
        starts.extend(part.char_indices().skip(1).filter(|(_, letter)| letter.is_ascii_uppercase()).map(|(at, _)| at));
        starts.push(part.len());
        let pieces: Vec<&str> = starts.windows(2).filter_map(|pair| part.get(*pair.first()?..*pair.last()?)).collect();
        pieces.into_iter()
    })
}

fn is_in_content(node: &NodeRef<'_>) -> bool {
    node.ancestors_it(None).any(|above| matches!(above.node_name().as_deref(), Some("main" | "article" | "section")))
}

fn has_heading(node: &NodeRef<'_>) -> bool {
    node.descendants_it().any(|below| below.node_name().as_deref() == Some("h1"))
}
