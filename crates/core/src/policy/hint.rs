//! What would change a verdict, as data, so that screens say it in the user's language.

use std::fmt;

/// Advice beside a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Hint {
    #[default]
    None,
    /// Stricter rules or constraints would ask or refuse.
    Stricter,
    /// Stricter rules or a stricter mode would ask or refuse.
    StricterMode,
    /// Only without `denyInsteadOfPrompting`.
    Prompting,
    /// These rules, or mode `acceptEdits` if `edits` is set.
    Allow { rules: Vec<String>, edits: bool },
    /// Another mode; `acceptEdits` if `edits` is set.
    OtherMode { edits: bool },
    /// Only without the rule that denies.
    WithoutDenial,
    /// Only without the rule that asks.
    WithoutQuestion,
    /// The user's trust in the project goes on without the hook.
    WithoutHook,
    /// A plan whose task owns the path.
    OwningPlan,
    /// Only other constraints of the member.
    Constraints,
    /// Nothing: this always asks.
    AlwaysAsks,
    /// Only without the setting, or with the folder among the additional ones.
    Folders,
    /// A plain command, or one of these rules for exactly this one.
    PlainCommand(Vec<String>),
    /// These tools, which leave out hidden files.
    Tools(Vec<String>),
}

impl Hint {
    /// Whether the advice is to write a rule.
    pub fn wants_rule(&self) -> bool {
        match self {
            Self::Stricter | Self::StricterMode | Self::Prompting | Self::Allow { .. } | Self::AlwaysAsks => true,
            Self::PlainCommand(rules) => !rules.is_empty(),
            _ => false,
        }
    }

    /// Rules as settings have them: `"allow": ["A", "B"]`.
    pub fn setting(rules: &[String]) -> String {
        let rules: Vec<String> = rules.iter().map(|rule| format!("\"{rule}\"")).collect();
        format!("`\"allow\": [{}]`", rules.join(", "))
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "",
            Self::Stricter => "a `deny` or `ask` rule, or constraints of the member",
            Self::StricterMode => "a `deny` or `ask` rule, or a stricter mode",
            Self::Prompting => "only without `denyInsteadOfPrompting`, or with a rule that allows it",
            Self::Allow { rules, edits } => {
                let or_mode = if *edits { ", or mode `acceptEdits`" } else { "" };
                return write!(f, "{}{or_mode}", Self::setting(rules));
            }
            Self::OtherMode { edits: true } => "another permission mode, such as `acceptEdits`",
            Self::OtherMode { edits: false } => "another permission mode",
            Self::WithoutDenial => "only without that rule: no permission beats a denial",
            Self::WithoutQuestion => "only without that rule: no permission beats it",
            Self::WithoutHook => "`max-team permissions trust` goes on without the hook",
            Self::OwningPlan => "a plan whose task owns that path",
            Self::Constraints => "only other constraints of the member: no rule, mode, answer or plan loosens them",
            Self::AlwaysAsks => "nothing: this always asks; a `deny` rule would refuse it",
            Self::Folders => "only without that setting, or with the folder among `additionalDirectories`",
            Self::PlainCommand(rules) if rules.is_empty() => "a plain command",
            Self::PlainCommand(rules) => {
                return write!(f, "a plain command, or a rule for exactly this one: `{}`", rules.join("`, `"));
            }
            Self::Tools(tools) => {
                return write!(f, "`{}`, which leave out what is not for this agent", tools.join("`, `"));
            }
        })
    }
}
