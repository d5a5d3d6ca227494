//! Phrases about the web server.

use super::{Lang, heads};

impl Lang {
    /// The heads of the list of tokens.
    pub fn serve_token_heads(self) -> [&'static str; 5] {
        heads(self.serve_token_heads_row())
    }
}
