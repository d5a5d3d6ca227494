//! Finds rules that do not do what they seem to: dead, shadowed or too wide.

use std::fmt;

use super::DangerReason;
use super::program::{self, CommandEffect};
use super::rule::{self, List, Origin, Rule, RuleFlaw, RuleTool};
use crate::suggest;

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding<'a> {
    pub rule: &'a Rule,
    /// What kind of fault it is.
    pub kind: LintKind,
    /// What is wrong, and what to write instead.
    pub reason: LintReason,
}

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LintReason {
    /// No tool has this name; with the nearest that there is.
    UnknownTool { name: String, near: Option<String> },
    /// It does not mean what it seems to.
    Flaw(RuleFlaw),
    /// A permission for an action that always asks.
    AlwaysAsks(DangerReason),
    /// This stricter rule counts first.
    Shadowed(String),
    /// The same rule is at this place.
    Twice(Origin),
    /// It allows every command.
    EveryCommand,
    /// A `*` in the middle spans every word.
    InnerStar,
    /// It allows this interpreter any script.
    AnyScript(String),
    /// Its path reaches beyond every project.
    Everywhere,
}

impl fmt::Display for LintReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool { name, near: Some(near) } => {
                write!(f, "there is no tool `{name}`, did you mean `{near}`?")
            }
            Self::UnknownTool { name, near: None } => {
                write!(f, "there is no tool `{name}`; `max-team tools list` shows them")
            }
            Self::Flaw(flaw) => flaw.fmt(f),
            Self::AlwaysAsks(why) => write!(f, "it still asks: {why}"),
            Self::Shadowed(other) => write!(f, "{other} counts first"),
            Self::Twice(origin) => write!(f, "it stands in {origin} already"),
            Self::EveryCommand => f.write_str("every command runs without a question; name the commands"),
            Self::InnerStar => f.write_str(
                "a `*` spans every word and flag, also those that were not meant; write all words before the last, as in \
                 `Bash(git log:*)`",
            ),
            Self::AnyScript(program) => write!(f, "`{program}` runs any script that it is given; name the script"),
            Self::Everywhere => f.write_str("it reaches beyond every project; name a folder"),
        }
    }
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LintKind {
    /// It never applies.
    Dead,
    /// A stricter rule applies first.
    Shadowed,
    /// It covers more than it seems to.
    Wide,
    /// The same rule exists twice.
    Twice,
}

impl LintKind {
    /// The name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Shadowed => "shadowed",
            Self::Wide => "wide",
            Self::Twice => "twice",
        }
    }
}

/// Checks all rules; `tools` are the names that calls can have. Each rule has at most one finding, the gravest.
pub fn lint<'a>(rules: &'a [Rule], tools: &[&str]) -> Vec<LintFinding<'a>> {
    let check = |(index, rule)| {
        let before = rules.get(..index).unwrap_or_default();
        let found = unknown(rule, tools).or_else(|| dead(rule)).or_else(|| shadowed(rule, rules));
        let found = found.or_else(|| twice(rule, before)).or_else(|| wide(rule));
        found.map(|(kind, reason)| LintFinding { rule, kind, reason })
    };
    rules.iter().enumerate().filter_map(check).collect()
}

/// A name that no tool has. Tools of MCP servers are not known here, and patterns may mean them.
fn unknown(rule: &Rule, tools: &[&str]) -> Option<(LintKind, LintReason)> {
    let RuleTool::Named(name) = rule.tool() else { return None };
    if name.is_empty() || name.starts_with("mcp__") || name.contains('*') || tools.contains(&name.as_str()) {
        return None;
    }
    let near = suggest::nearest(name, tools.iter().copied().chain(rule::KINDS)).map(str::to_owned);
    Some((LintKind::Dead, LintReason::UnknownTool { name: name.clone(), near }))
}

fn dead(rule: &Rule) -> Option<(LintKind, LintReason)> {
    if let Some(flaw) = rule.flaw() {
        return Some((LintKind::Dead, LintReason::Flaw(flaw.clone())));
    }
    let words = rule.command_pattern().filter(|_| rule.list == List::Allow)?;
    let argv: Vec<String> = words.literal_prefix().split_whitespace().map(str::to_owned).collect();
    let why = program::effects_of(&argv).effects.into_iter().find_map(|effect| match effect {
        CommandEffect::Danger(why) => Some(why),
        _ => None,
    })?;
    Some((LintKind::Dead, LintReason::AlwaysAsks(why)))
}

fn shadowed(rule: &Rule, rules: &[Rule]) -> Option<(LintKind, LintReason)> {
    let covers = |other: &&Rule| {
        let is_stricter = other.list < rule.list && other.tool() == rule.tool();
        let by_words = || match (other.command_pattern(), rule.command_pattern()) {
            (Some(other), Some(own)) => other.covers(own),
            _ => false,
        };
        is_stricter && (other.is_whole() || other.text == rule.text || by_words())
    };
    let other = rules.iter().find(covers)?;
    Some((LintKind::Shadowed, LintReason::Shadowed(other.to_string())))
}

fn twice(rule: &Rule, before: &[Rule]) -> Option<(LintKind, LintReason)> {
    let same = before.iter().find(|other| other.list == rule.list && other.text == rule.text)?;
    Some((LintKind::Twice, LintReason::Twice(same.origin.clone())))
}

fn wide(rule: &Rule) -> Option<(LintKind, LintReason)> {
    if rule.list != List::Allow {
        return None;
    }
    let wide = |reason| Some((LintKind::Wide, reason));
    match (rule.tool(), rule.command_pattern()) {
        (RuleTool::Bash, None) if rule.is_whole() => wide(LintReason::EveryCommand),
        (_, Some(words)) => {
            let head = words.literal_prefix();
            let program = head.split(' ').next().unwrap_or_default();
            if words.has_inner_star() {
                return wide(LintReason::InnerStar);
            }
            let runs_anything = !words.is_exact() && program::is_interpreter(program) && !head.contains(' ');
            if runs_anything {
                return wide(LintReason::AnyScript(program.to_owned()));
            }
            None
        }
        (RuleTool::Read | RuleTool::Edit, _) => {
            let inside = rule.text.split_once('(').map(|(_, rest)| rest.trim_end_matches(')'))?;
            let everywhere = matches!(inside, "//" | "//**" | "//**/*" | "~" | "~/" | "~/**" | "~/**/*");
            everywhere.then_some((LintKind::Wide, LintReason::Everywhere))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rule::{Anchors, RuleScope};

    #[test]
    fn names_of_no_tool_are_found() {
        let origin = Origin { scope: RuleScope::User, file: "s.json".to_owned(), line: 1 };
        let found = |text: &str| {
            let anchors = Anchors { root: "/p", base: "/p", home: "/" };
            let rules = [Rule::new(List::Deny, text, origin.clone(), &anchors)];
            lint(&rules, &["web_search", "git_log"]).first().map(|finding| finding.reason.to_string())
        };
        let table = [
            ("Edti", Some("there is no tool `Edti`, did you mean `Edit`?")),
            ("Wbe(domain:x.org)", Some("there is no tool `Wbe`; `max-team tools list` shows them")),
            ("WebFtech(domain:x.org)", Some("there is no tool `WebFtech`, did you mean `WebFetch`?")),
            ("git_lgo", Some("there is no tool `git_lgo`, did you mean `git_log`?")),
            ("git_log", None),
            ("WebSearch", None),
            ("Bash(git push:*)", None),
            ("mcp__docs__find", None),
            ("mcp__*", None),
        ];
        for (text, wanted) in table {
            assert_eq!(found(text).as_deref(), wanted, "{text}");
        }
    }
}
