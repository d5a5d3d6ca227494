//! The seam to a browser that runs a page's scripts.

use std::fmt;
use std::pin::Pin;

use reqwest::Url;

use super::fault::WebFault;
use crate::services::Services;
use crate::tool::ToolContext;

/// A browser that loads a page, runs its scripts and gives its HTML.
pub trait PageRenderer: Send + Sync + fmt::Debug {
    /// Whether the browser is installed.
    fn is_there(&self, services: &Services) -> bool;

    /// Loads a page. Every address that the page reaches is checked like the page's own. `is_judged`: the policy has judged its host.
    fn render<'a>(&'a self, cx: &'a ToolContext, url: &'a Url, is_judged: bool) -> RenderFuture<'a>;
}

/// A page that is being rendered.
pub type RenderFuture<'a> = Pin<Box<dyn Future<Output = Result<RenderedPage, WebFault>> + Send + 'a>>;

/// A page after its scripts ran.
#[derive(Debug, Clone)]
pub struct RenderedPage {
    /// The address that it ended at.
    pub url: Url,
    /// The status of the answer.
    pub status: u16,
    pub html: String,
}

/// When a page's scripts are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RenderMode {
    /// If the page without them has nearly no text.
    #[default]
    Auto,
    Never,
    Always,
}

impl RenderMode {
    /// The mode of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "never" => Some(Self::Never),
            "always" => Some(Self::Always),
            _ => None,
        }
    }
}
