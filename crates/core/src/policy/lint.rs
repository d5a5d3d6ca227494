//! Finds rules that do not do what they seem to: dead, shadowed or too wide.

use super::program::{self, CommandEffect};
use super::rule::{List, Rule, RuleTool};

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding<'a> {
    pub rule: &'a Rule,
    /// What kind of fault it is.
    pub kind: LintKind,
    /// What is wrong, and what to write instead.
    pub words: String,
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

/// Checks all rules. Each rule has at most one finding, the gravest.
pub fn lint(rules: &[Rule]) -> Vec<LintFinding<'_>> {
    let check = |(index, rule)| {
        let before = rules.get(..index).unwrap_or_default();
        let found = dead(rule).or_else(|| shadowed(rule, rules)).or_else(|| twice(rule, before)).or_else(|| wide(rule));
        found.map(|(kind, words)| LintFinding { rule, kind, words })
    };
    rules.iter().enumerate().filter_map(check).collect()
}

fn dead(rule: &Rule) -> Option<(LintKind, String)> {
    if let Some(flaw) = rule.flaw() {
        return Some((LintKind::Dead, flaw.to_string()));
    }
    let words = rule.command_pattern().filter(|_| rule.list == List::Allow)?;
    let argv: Vec<String> = words.literal_prefix().split_whitespace().map(str::to_owned).collect();
    let why = program::effects_of(&argv).effects.into_iter().find_map(|effect| match effect {
        CommandEffect::Danger(why) => Some(why),
        _ => None,
    })?;
    Some((LintKind::Dead, format!("it is asked about all the same: {why}")))
}

fn shadowed(rule: &Rule, rules: &[Rule]) -> Option<(LintKind, String)> {
    let covers = |other: &&Rule| {
        let is_stricter = other.list < rule.list && other.tool() == rule.tool();
        let by_words = || match (other.command_pattern(), rule.command_pattern()) {
            (Some(other), Some(own)) => other.covers(own),
            _ => false,
        };
        is_stricter && (other.is_whole() || other.text == rule.text || by_words())
    };
    let other = rules.iter().find(covers)?;
    Some((LintKind::Shadowed, format!("{other} counts first")))
}

fn twice(rule: &Rule, before: &[Rule]) -> Option<(LintKind, String)> {
    let same = before.iter().find(|other| other.list == rule.list && other.text == rule.text)?;
    Some((LintKind::Twice, format!("it stands in {} already", same.origin)))
}

fn wide(rule: &Rule) -> Option<(LintKind, String)> {
    if rule.list != List::Allow {
        return None;
    }
    let wide = |words: String| Some((LintKind::Wide, words));
    match (rule.tool(), rule.command_pattern()) {
        (RuleTool::Bash, None) if rule.is_whole() => {
            wide("every command runs without a question; name the commands".to_owned())
        }
        (_, Some(words)) => {
            let head = words.literal_prefix();
            let program = head.split(' ').next().unwrap_or_default();
            if words.has_inner_star() {
                return wide("a `*` spans every word and flag, also those that were not meant; write all words before the last, as in `Bash(git log:*)`".to_owned());
            }
            let runs_anything = !words.is_exact() && program::is_interpreter(program) && !head.contains(' ');
            if runs_anything {
                return wide(format!("`{program}` runs any script that it is given; name the script"));
            }
            None
        }
        (RuleTool::Read | RuleTool::Edit, _) => {
            let inside = rule.text.split_once('(').map(|(_, rest)| rest.trim_end_matches(')'))?;
            let everywhere = matches!(inside, "//" | "//**" | "//**/*" | "~" | "~/" | "~/**" | "~/**/*");
            everywhere.then(|| (LintKind::Wide, "it reaches beyond every project; name a folder".to_owned()))
        }
        _ => None,
    }
}
