//! The change that would let a refused call run, as data: messages, results and the inbox follow from it.

use serde::{Deserialize, Serialize};

/// What would let a refused or questioned call run, in order of difficulty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recourse {
    /// A rule that allows it, or another permission mode.
    RuleOrMode,
    /// Another permission mode: this one refuses the call before any rule that allows it.
    Mode,
    /// Other rules, settings or constraints, or another call. Also the value for older entries that do not record it.
    #[default]
    Rule,
    /// A person's approval, each time: no rule and no mode replaces it.
    Person,
    /// Nothing: the tool never does it, even with an approval.
    Nothing,
}

impl Recourse {
    /// Whether it is the value for entries that do not record it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether no rule and no permission mode lets the call run.
    pub fn is_beyond_rules(self) -> bool {
        matches!(self, Self::Person | Self::Nothing)
    }
}
