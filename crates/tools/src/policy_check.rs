//! The policy's judgement of actions that a tool takes beyond the call that was judged.

use std::fmt;
use std::sync::Arc;

use max_team_core::agent::Constraints;
use max_team_core::policy::{Action, Judgement, Mode, Rules, judge};

type JudgeFn = dyn Fn(&str, &Action) -> Judgement + Send + Sync;

/// Judges by the rules of the agent that made the call, without asking the user.
#[derive(Clone)]
pub struct PolicyCheck(Arc<JudgeFn>);

impl PolicyCheck {
    /// A gate with this judgement.
    pub fn new(judge: impl Fn(&str, &Action) -> Judgement + Send + Sync + 'static) -> Self {
        Self(Arc::new(judge))
    }

    /// Whether an action may be done as that tool's.
    pub fn judge(&self, tool: &str, action: &Action) -> Judgement {
        (self.0)(tool, action)
    }
}

impl Default for PolicyCheck {
    /// The strictest mode, for a caller that has no rules.
    fn default() -> Self {
        Self::new(|tool, action| judge(&Rules::new(Mode::Plan, &Constraints::default()), tool, action))
    }
}

impl fmt::Debug for PolicyCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}
