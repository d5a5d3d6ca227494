//! Commands on a machine that can protect no file in a folder that a command writes, because it has Landlock alone.
//!
//! A line that is known to change nothing runs where only temporary folders can be written; the project's tests may write its
//! build folders, too. Every other line needs a rule that allows its commands, or a person, who is told what is not protected:
//! neither a mode nor an approved plan says anything about protected files.

use super::command::names_change;
use super::{AutoAllow, Basis, JudgedAction, Judgement, RuleSubject, then};
use crate::policy::command_line::{CommandLine, SimpleCommand};
use crate::policy::program::{self, CommandEffect, DEPTH_MAX};
use crate::policy::{ActionKind, CommandReach, Hint, Recourse, RememberedRule, Verdict, grant};

impl JudgedAction<'_> {
    /// The judgement of a command on such a machine; `judged` is the one as if protected files were protected.
    pub(super) fn unshielded(&self, judged: Judgement) -> Judgement {
        let reach = match judged.verdict {
            Verdict::Deny => return judged,
            _ if self.is_still => Some(CommandReach::ReadOnly),
            _ if self.is_harmless() => Some(CommandReach::Temporary),
            Verdict::Allow if judged.reach == CommandReach::ReadOnly => Some(CommandReach::ReadOnly),
            Verdict::Allow if self.is_test_run(&judged) => Some(CommandReach::BuildFolders),
            Verdict::Allow | Verdict::Ask => None,
        };
        if let Some(reach) = reach {
            return Judgement { reach, ..judged };
        }
        let missing = self.missing_rules();
        let reach = if judged.reach.is_read_only() { judged.reach } else { CommandReach::Unshielded };
        match judged.verdict {
            Verdict::Allow if missing.is_empty() => Judgement { reach, ..judged },
            _ => self.asking(Judgement { reach, ..questioned(judged, missing) }),
        }
    }

    /// Whether all that the line does is known, and it changes nothing.
    fn is_harmless(&self) -> bool {
        match &self.action.line {
            Some(CommandLine::Plain(parts)) => parts.iter().all(is_harmless),
            Some(CommandLine::Opaque { .. }) | None => false,
        }
    }

    /// Whether only built-in rules allow the line, one of them because it runs the project's tests or an approved check.
    fn is_test_run(&self, judged: &Judgement) -> bool {
        let bases = judged.all_bases();
        let is_changing = match &self.action.line {
            Some(CommandLine::Plain(parts)) => parts.iter().any(names_change),
            Some(CommandLine::Opaque { .. }) => true,
            None => false,
        };
        !is_changing
            && !self.action.writes()
            && bases.iter().all(|basis| matches!(basis, Basis::BuiltIn(_)))
            && bases.contains(&Basis::BuiltIn(AutoAllow::Check))
    }

    /// Rules for the commands that may change something and that no rule and no answer allows yet.
    fn missing_rules(&self) -> Vec<String> {
        if self.rules.grants.iter().any(|grant| grant.kind == Some(ActionKind::Execute)) {
            return Vec::new();
        }
        let is_named = |argv: &[String]| self.allow(RuleSubject::Command(&program::spellings(argv))).is_some();
        let mut missing = match &self.action.line {
            Some(CommandLine::Plain(parts)) => parts
                .iter()
                .filter(|part| !is_harmless(part) && !is_named(&part.argv))
                .map(|part| grant::proposed(&part.argv))
                .collect(),
            Some(CommandLine::Opaque { text, .. }) if self.exact(RuleSubject::Text(text)) => Vec::new(),
            Some(CommandLine::Opaque { text, .. }) => vec![grant::for_text(text)],
            None => {
                let argv: Vec<String> = self.action.target.split_whitespace().map(str::to_owned).collect();
                if is_named(&argv) { Vec::new() } else { vec![grant::proposed(&argv)] }
            }
        };
        missing.dedup();
        missing
    }
}

/// Whether all that a part of a line does is known, and it changes nothing.
fn is_harmless(part: &SimpleCommand) -> bool {
    let is_plain = part.env.iter().all(|(name, value)| program::variable(name, value).is_empty());
    is_plain && !names_change(part) && is_known(&part.argv, DEPTH_MAX)
}

/// Whether the effects of a command, and of those that it starts, are all that it does.
fn is_known(argv: &[String], depth: usize) -> bool {
    let facts = program::effects_of(argv);
    let is_open = |effect: &CommandEffect| match effect {
        CommandEffect::Run(inner) => depth == 0 || !is_known(inner, depth - 1),
        CommandEffect::Code(_) => true,
        _ => false,
    };
    let is_cd = argv.first().is_some_and(|program| program == "cd");
    (facts.is_whole || is_cd) && !facts.effects.iter().any(is_open)
}

/// A question that says what is not protected. A remembered answer covers the commands as well.
fn questioned(judged: Judgement, missing: Vec<String>) -> Judgement {
    let memory = match (judged.verdict, &judged.memory) {
        (Verdict::Allow, _) => RememberedRule::Rules(missing),
        (_, RememberedRule::Rules(rules)) => {
            let new = missing.into_iter().filter(|rule| !rules.contains(rule));
            RememberedRule::Rules(rules.iter().cloned().chain(new).collect())
        }
        (_, memory) => memory.clone(),
    };
    let hint = match &memory {
        RememberedRule::Rules(rules) => Hint::Allow { rules: rules.clone(), edits: false },
        RememberedRule::Kind | RememberedRule::Nothing => judged.hint.clone(),
    };
    let (verdict, recourse) = (Verdict::Ask, judged.recourse.max(Recourse::Rule));
    let judged = then(judged, Basis::Unshielded);
    Judgement { verdict, memory, hint, recourse, rules: Vec::new(), bases: Vec::new(), ..judged }
}
