//! The phrases of what sessions and agents keep in folders of their own.

use super::{Lang, heads};

impl Lang {
    pub fn kept_heads(self) -> [&'static str; 5] {
        heads(self.kept_heads_row())
    }

    pub fn kept_file_heads(self) -> [&'static str; 3] {
        heads(self.kept_file_heads_row())
    }
}
