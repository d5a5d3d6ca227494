//! The verdict on one action.
//!
//! The order never changes: constraints, rules that deny, actions that always need a person (danger), rules that ask,
//! what is free, rules and answers that allow, the approved plan, the mode. An action with several effects (a command
//! line) is judged effect by effect, and the strictest verdict counts. A called agent is also judged under the modes
//! of its callers, so that it is never freer than they are.

mod basis;
mod command;
mod path;
mod unshielded;

pub use basis::{AutoAllow, Basis};

use super::glob;
use super::rule::{self, List, Origin, Rule, RuleScope, RuleSubject};
use super::{
    Action, ActionKind, CommandReach, DangerReason, Grant, Hint, Mode, Permissions, Recourse, RememberedRule, Verdict,
    Visibility,
};
use crate::agent::Constraints;

/// A verdict and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What may happen.
    pub verdict: Verdict,
    /// The rule or reason, for people and for the model.
    pub rule: String,
    /// All rules that allowed it, in order, if an action with several effects was allowed by several.
    pub rules: Vec<String>,
    /// The kind of authority behind `rule`.
    pub basis: Basis,
    /// The kind of authority behind each of `rules`.
    pub bases: Vec<Basis>,
    /// Where the rule is written, if it is in a file.
    pub origin: Option<Origin>,
    /// What would change the verdict.
    pub hint: Hint,
    /// What would let a refused or questioned call run.
    pub recourse: Recourse,
    /// The rule that "always allow" would add.
    pub memory: RememberedRule,
    /// Whether the action itself is dangerous: it asks even if a rule, a mode or a plan allows it.
    pub is_danger: bool,
    /// The sandbox in which a command may run without a person's yes to this very call.
    pub reach: CommandReach,
}

impl Judgement {
    /// All rules that took part.
    pub fn all(&self) -> &[String] {
        if self.rules.is_empty() { std::slice::from_ref(&self.rule) } else { &self.rules }
    }

    /// The kind of authority behind each of them.
    pub fn all_bases(&self) -> &[Basis] {
        if self.rules.is_empty() { std::slice::from_ref(&self.basis) } else { &self.bases }
    }
}

/// Everything that an action is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// How freely the agent may act.
    pub mode: Mode,
    /// The modes of the agents that it works for.
    pub within: &'a [Mode],
    /// The permission settings.
    pub permissions: &'a Permissions,
    /// What a person has granted.
    pub grants: &'a [Grant],
    /// The member's constraints.
    pub constraints: &'a Constraints,
    /// Whether the work belongs to an approved plan.
    pub approved: bool,
    /// Whether the work corrects a task of an approved plan: only the files that the task owns need no question.
    pub corrects: bool,
    /// Globs of the paths that the task owns; `None`: no restriction.
    pub owns: Option<&'a [String]>,
    /// Commands that may run exactly as written, even outside `allowed_commands`.
    pub checks: &'a [Vec<String>],
    /// Hosts of registries that the approval of the plan opens to commands.
    pub registries: &'a [String],
    /// Test commands of the project, which need no question.
    pub tests: &'a [Vec<String>],
    /// Whether commands run in a sandbox in which one of unknown effect can change nothing and reach no host.
    pub sandboxed: bool,
    /// Whether this sandbox can protect no file in a folder that a command writes.
    pub unshielded: bool,
}

impl<'a> Rules<'a> {
    /// Only a mode and constraints.
    pub fn new(mode: Mode, constraints: &'a Constraints) -> Self {
        Self {
            mode,
            within: &[],
            permissions: Permissions::none(),
            grants: &[],
            constraints,
            approved: false,
            corrects: false,
            owns: None,
            checks: &[],
            registries: &[],
            tests: &[],
            sandboxed: false,
            unshielded: false,
        }
    }

    /// Its own mode, and those of the agents that it works for.
    fn modes(&self) -> impl Iterator<Item = Mode> + use<'a> {
        let own = self.mode;
        std::iter::once(own).chain(self.within.iter().copied().filter(move |mode| *mode != own))
    }

    /// The sandbox of a command after a person's yes to this very call; `judged` is the one that the question named.
    pub fn reach_after_yes(&self, judged: CommandReach) -> CommandReach {
        match judged {
            _ if self.is_still() => judged,
            CommandReach::ReadOnly if self.unshielded => CommandReach::Unshielded,
            CommandReach::ReadOnly => CommandReach::Project,
            _ => judged,
        }
    }

    /// Whether the agent can change nothing in the project.
    pub fn is_still(&self) -> bool {
        self.constraints.read_only || self.modes().any(|mode| mode == Mode::Plan)
    }
}

/// Judges one call of a tool.
pub fn judge(rules: &Rules<'_>, tool: &str, action: &Action) -> Judgement {
    let sight = Visibility::from_constraints(rules.constraints);
    let is_still = rules.is_still();
    let can_look = rules.sandboxed && command::can_look(tool, action, is_still);
    let is_unshielded = rules.unshielded && command::is_sandboxed(tool, action);
    let all = rules.modes().map(|mode| {
        let rules = Rules { mode, ..*rules };
        let judged = JudgedAction { rules, tool, action, sight: &sight, is_still, can_look, is_unshielded };
        judged.judge()
    });
    let judged = strictest(all).unwrap_or_else(|| said(Verdict::Deny, "nothing to judge by"));
    let asks_a_person = judged.verdict == Verdict::Ask && action.kind != ActionKind::Propose;
    if asks_a_person && rules.permissions.never_asks { unasked(judged) } else { judged }
}

/// Turns a question into a refusal, because settings say `denyInsteadOfPrompting`.
fn unasked(judged: Judgement) -> Judgement {
    let Reason { rule, basis } = match judged.basis {
        Basis::Rule => format!("{}; settings say `denyInsteadOfPrompting`", judged.rule).into(),
        basis => Basis::NeverAsks(Box::new(basis)).into(),
    };
    let hint = Hint::Prompting;
    Judgement { verdict: Verdict::Deny, rule, basis, hint, memory: RememberedRule::Nothing, ..judged }
}

/// One action under one mode.
#[derive(Clone, Copy)]
struct JudgedAction<'a> {
    rules: Rules<'a>,
    tool: &'a str,
    action: &'a Action,
    sight: &'a Visibility,
    /// Whether the agent can change nothing in the project.
    is_still: bool,
    /// Whether it is a command that can run where it changes nothing and reaches no host.
    can_look: bool,
    /// Whether it is a command in a sandbox that can protect nothing in a folder that it writes.
    is_unshielded: bool,
}

impl JudgedAction<'_> {
    fn judge(&self) -> Judgement {
        let target = self.action.target.as_str();
        match self.action.kind {
            ActionKind::Answer => free(AutoAllow::Answer),
            ActionKind::Team => self.team(target),
            ActionKind::Ask => self.deny(RuleSubject::Tool).unwrap_or_else(|| self.question(Basis::Question)),
            // A rule can allow work in a worktree, but not its merge.
            ActionKind::Merge => self.question(Basis::WorktreeChanges),
            // Also in modes that never ask a person: the lead can always answer.
            ActionKind::Propose => asked(Basis::TeammatePlan),
            ActionKind::Read => self.place(path::PathAccess::Read, "", target),
            ActionKind::ReadLinked => self.place(path::PathAccess::ReadLinked, "", target),
            ActionKind::Write => self.place(path::PathAccess::Write, "", target),
            ActionKind::ReadOwn => self.own(false, target),
            ActionKind::WriteOwn => self.own(true, target),
            ActionKind::Fetch => self.connect(target),
            ActionKind::Query => self.query(),
            ActionKind::Remote => self.remote(),
            ActionKind::Execute if self.is_unshielded => self.unshielded(self.run()),
            ActionKind::Execute => self.run(),
        }
    }

    /// A command, with what it deletes for good.
    fn run(&self) -> Judgement {
        let all = self.loss().into_iter().chain([self.execute()]);
        strictest(all).unwrap_or_else(|| self.by_mode(Verdict::Deny))
    }

    /// The question about a deletion that cannot be taken back.
    fn loss(&self) -> Option<Judgement> {
        let lost = self.action.loss()?;
        Some(self.asking(danger(Basis::Danger(DangerReason::DeletesForGood(lost.to_string())))))
    }

    /// A question that only a person can answer.
    fn question(&self, why: impl Into<Reason>) -> Judgement {
        match self.rules.mode {
            Mode::DontAsk => self.by_mode(Verdict::Deny),
            _ => asked(why),
        }
    }

    /// Work with the team is free unless a rule names the tool or the member.
    fn team(&self, member: &str) -> Judgement {
        let subject = RuleSubject::Member(member);
        if let Some(judged) = self.deny(subject).or_else(|| self.ask(subject)) {
            return judged;
        }
        free(AutoAllow::Team)
    }

    /// Sources that the user has configured are free unless a rule names the tool.
    fn query(&self) -> Judgement {
        let spoken = self.deny(RuleSubject::Tool).or_else(|| self.ask(RuleSubject::Tool));
        spoken.unwrap_or_else(|| free(AutoAllow::SetUp))
    }

    /// A tool of a server that may change something is asked about until a rule or an answer allows that tool. An approved plan
    /// does not: it says nothing about what lies outside the project.
    fn remote(&self) -> Judgement {
        let subject = RuleSubject::Tool;
        if let Some(judged) = self.deny(subject).or_else(|| self.ask(subject)).or_else(|| self.allow(subject)) {
            return judged;
        }
        self.mode(ActionKind::Remote, RememberedRule::Rules(vec![self.tool.to_owned()]), false)
    }

    /// A host, and the private address that its name leads to: both must be allowed, because the owner of a name chooses the address.
    fn connect(&self, host: &str) -> Judgement {
        let all = [Some(host), self.action.address()].into_iter().flatten().map(|host| self.fetch(host));
        strictest(all).unwrap_or_else(|| self.fetch(host))
    }

    /// A host that neither a rule nor the member's definition names is always asked about. A host of this machine or of a private
    /// network is opened only by a rule or an answer with its name: the tools rely on this verdict.
    fn fetch(&self, host: &str) -> Judgement {
        let subject = RuleSubject::Host(host);
        let is_local = rule::is_local_host(host);
        let is_command = self.action.kind == ActionKind::Execute || self.action.asking_call().is_some();
        let opens = |rule: &Rule| match rule {
            rule if is_local => rule.names_host(),
            // A program can send any data, so only a rule for a domain opens a host to it.
            rule if is_command => rule.names_domain(),
            // An answer about a click in the browser must not open every host to it.
            rule => rule.is_of_hosts() || self.tool != rule::BROWSER,
        };
        let allow = || self.allow_by(subject, opens);
        if let Some(judged) = self.deny(subject).or_else(|| self.ask(subject)).or_else(allow) {
            return judged;
        }
        if is_command && self.rules.registries.iter().any(|registry| registry.eq_ignore_ascii_case(host)) {
            return said(Verdict::Allow, Basis::Plan);
        }
        if !is_local && glob::hosts(&self.rules.constraints.allowed_hosts, host) {
            return free(AutoAllow::Hosts);
        }
        if self.tool == rule::SEARCH {
            // The host belongs to a search service without a setting, so the rule to remember allows searches.
            let words = Basis::Searches(host.to_owned());
            let memory = RememberedRule::Rules(vec!["WebSearch".to_owned()]);
            let hint = Hint::Allow { rules: memory.rules().to_vec(), edits: false };
            return self.asking(Judgement { hint, memory, is_danger: true, ..said(Verdict::Ask, words) });
        }
        let words = match is_local {
            _ if self.action.asking_call().is_some() => {
                let address = self.action.address().map(str::to_owned);
                Basis::Connection { host: self.action.target.clone(), address }
            }
            true => Basis::LocalHost(host.to_owned()),
            false => Basis::Host(host.to_owned()),
        };
        let memory = RememberedRule::Rules(vec![format!("WebFetch(domain:{host})")]);
        let hint = Hint::Allow { rules: memory.rules().to_vec(), edits: false };
        self.asking(Judgement { hint, memory, is_danger: true, ..said(Verdict::Ask, words) })
    }

    /// The denial of a rule, if one applies.
    fn deny(&self, subject: RuleSubject<'_>) -> Option<Judgement> {
        let rule = self.rule(List::Deny, subject)?;
        let hint = Hint::WithoutDenial;
        Some(Judgement { origin: Some(rule.origin.clone()), hint, ..said(Verdict::Deny, written(rule)) })
    }

    /// The question of a rule, if one applies.
    fn ask(&self, subject: RuleSubject<'_>) -> Option<Judgement> {
        let rule = self.rule(List::Ask, subject)?;
        let (why, hint) = match rule.origin.scope {
            RuleScope::Hook => {
                (Basis::Hook { origin: rule.origin.to_string(), rule: rule.text.clone() }, Hint::WithoutHook)
            }
            _ => (written(rule), Hint::WithoutQuestion),
        };
        Some(self.asking(Judgement { origin: Some(rule.origin.clone()), hint, ..asked(why) }))
    }

    /// The permission of a rule or a remembered answer, if one applies.
    fn allow(&self, subject: RuleSubject<'_>) -> Option<Judgement> {
        self.allow_by(subject, |_| true)
    }

    /// The permission to delete: of a rule, or of a remembered answer that names the path. An answer about changes in
    /// general does not cover a deletion.
    fn allow_deleting(&self, subject: RuleSubject<'_>) -> Option<Judgement> {
        self.allow_by(subject, |rule| rule.is_of_places() || rule.origin.scope != RuleScope::Answer)
    }

    /// Like `allow`, but only for rules that satisfy `is`.
    fn allow_by(&self, subject: RuleSubject<'_>, is: impl Fn(&Rule) -> bool) -> Option<Judgement> {
        let fits = |rule: &Rule| is(rule) && rule.fits(self.tool, &self.action.parameters, subject);
        let mut own = self.rules.permissions.rules.iter().filter(|rule| rule.list == List::Allow);
        if let Some(rule) = own.find(|rule| fits(rule)) {
            let judged = said(Verdict::Allow, written(rule));
            return Some(Judgement { origin: Some(rule.origin.clone()), ..judged });
        }
        let grant = self.grants(fits)?;
        Some(said(Verdict::Allow, Basis::Granted(grant.until)))
    }

    fn grants(&self, fits: impl Fn(&Rule) -> bool) -> Option<&Grant> {
        self.rules.grants.iter().find(|grant| grant.rule.as_ref().is_some_and(&fits))
    }

    fn rule(&self, list: List, subject: RuleSubject<'_>) -> Option<&Rule> {
        let own = self.rules.permissions.rules.iter().filter(|rule| rule.list == list);
        own.into_iter().find(|rule| rule.fits(self.tool, &self.action.parameters, subject))
    }

    /// Turns a question into a refusal in mode `DontAsk`.
    fn asking(&self, judged: Judgement) -> Judgement {
        match (judged.verdict, self.rules.mode) {
            (Verdict::Ask, Mode::DontAsk) => Judgement { verdict: Verdict::Deny, ..judged },
            _ => judged,
        }
    }

    fn by_mode(&self, verdict: Verdict) -> Judgement {
        Judgement { recourse: Recourse::Mode, ..said(verdict, Basis::InMode(self.rules.mode)) }
    }

    /// The verdict of the mode, if nothing else decided.
    fn mode(&self, kind: ActionKind, memory: RememberedRule, edits: bool) -> Judgement {
        let verdict = match (self.rules.mode, kind) {
            (Mode::BypassPermissions, ActionKind::Execute) if self.is_unshielded => Verdict::Ask,
            (Mode::BypassPermissions, _) | (Mode::AcceptEdits | Mode::Auto, ActionKind::Write) => Verdict::Allow,
            (Mode::DontAsk, _) => Verdict::Deny,
            (Mode::Plan, ActionKind::Write | ActionKind::Execute | ActionKind::Remote) => Verdict::Deny,
            _ => Verdict::Ask,
        };
        let hint = match (verdict, &memory) {
            (Verdict::Allow, _) => Hint::StricterMode,
            (_, RememberedRule::Rules(rules)) if self.rules.mode != Mode::Plan => {
                Hint::Allow { rules: rules.clone(), edits }
            }
            _ => Hint::OtherMode { edits },
        };
        Judgement { hint, memory, recourse: Recourse::RuleOrMode, ..self.by_mode(verdict) }
    }

    /// The verdict of the approved plan, if it covers the action.
    fn plan(&self, kind: ActionKind, target: &str) -> Option<Judgement> {
        let Rules { mode, approved, corrects, owns, .. } = self.rules;
        if matches!(mode, Mode::Plan | Mode::BypassPermissions) {
            return None;
        }
        if !approved {
            let is_own = kind == ActionKind::Write && owns.is_some_and(|owns| glob::is_owned(owns, target));
            return (corrects && is_own).then(|| said(Verdict::Allow, Basis::Plan));
        }
        match kind {
            ActionKind::Write if owns.is_some_and(|owns| !glob::is_owned(owns, target)) => {
                let hint = Hint::OwningPlan;
                Some(self.asking(Judgement { hint, ..said(Verdict::Ask, Basis::Unowned) }))
            }
            ActionKind::Execute if self.is_unshielded => None,
            ActionKind::Write | ActionKind::Execute => Some(said(Verdict::Allow, Basis::Plan)),
            _ => None,
        }
    }
}

/// A reason: typed, or only a text.
struct Reason {
    rule: String,
    basis: Basis,
}

impl From<Basis> for Reason {
    fn from(basis: Basis) -> Self {
        Self { rule: basis.to_string(), basis }
    }
}

impl From<String> for Reason {
    fn from(rule: String) -> Self {
        Self { rule, basis: Basis::Rule }
    }
}

impl From<&str> for Reason {
    fn from(rule: &str) -> Self {
        rule.to_owned().into()
    }
}

/// A rule as it is written, with its place.
fn written(rule: &Rule) -> Basis {
    Basis::Written(rule.to_string())
}

/// A verdict with its reason.
fn said(verdict: Verdict, why: impl Into<Reason>) -> Judgement {
    let Reason { rule, basis } = why.into();
    let hint = if verdict == Verdict::Allow { Hint::Stricter } else { Hint::None };
    Judgement {
        verdict,
        rule,
        rules: Vec::new(),
        basis,
        bases: Vec::new(),
        origin: None,
        hint,
        recourse: Recourse::default(),
        memory: RememberedRule::Nothing,
        is_danger: false,
        reach: CommandReach::default(),
    }
}

/// A judgement with what came before it.
fn then(judged: Judgement, before: impl FnOnce(Box<Basis>) -> Basis) -> Judgement {
    let Reason { rule, basis } = before(Box::new(judged.basis)).into();
    Judgement { rule, basis, ..judged }
}

/// A built-in permission.
fn free(free: AutoAllow) -> Judgement {
    said(Verdict::Allow, Basis::BuiltIn(free))
}

/// The permission to run where nothing can be changed.
fn still() -> Judgement {
    Judgement { reach: CommandReach::ReadOnly, ..free(AutoAllow::Still) }
}

/// A question that a person must answer each time.
fn asked(why: impl Into<Reason>) -> Judgement {
    Judgement { recourse: Recourse::Person, ..said(Verdict::Ask, why) }
}

/// A refusal by the member's constraints.
fn constrained(limit: Basis) -> Judgement {
    let hint = Hint::Constraints;
    Judgement { hint, ..said(Verdict::Deny, limit) }
}

/// A question about an action that always needs a person.
fn danger(why: Basis) -> Judgement {
    let hint = Hint::AlwaysAsks;
    Judgement { hint, is_danger: true, ..asked(why) }
}

/// The strictest judgement, the first of equals; a danger before other questions. A remembered answer must cover all
/// judgements that ask, or there is none. All of the strictest must be lifted, so the hardest recourse counts. The narrowest
/// sandbox counts: a permission for one part does not widen that of another.
fn strictest(all: impl IntoIterator<Item = Judgement>) -> Option<Judgement> {
    let (mut worst, mut rules, mut is_kept): (Option<Judgement>, Vec<String>, bool) = (None, Vec::new(), true);
    let mut allowing: Vec<(String, Basis)> = Vec::new();
    let (mut hardest, mut reach) = ((Verdict::Allow, Recourse::RuleOrMode), CommandReach::Unshielded);
    for judged in all {
        reach = reach.max(judged.reach);
        hardest = hardest.max((judged.verdict, judged.recourse));
        for (rule, basis) in judged.all().iter().zip(judged.all_bases()) {
            if !allowing.iter().any(|known| (&known.0, &known.1) == (rule, basis)) {
                allowing.push((rule.clone(), basis.clone()));
            }
        }
        if judged.verdict == Verdict::Ask {
            match &judged.memory {
                RememberedRule::Rules(own) => {
                    rules.extend(own.iter().filter(|rule| !rules.contains(rule)).cloned().collect::<Vec<_>>())
                }
                RememberedRule::Kind | RememberedRule::Nothing => is_kept = false,
            }
        }
        let weight = |judged: &Judgement| (judged.verdict, judged.is_danger);
        if worst.as_ref().is_none_or(|known| weight(&judged) > weight(known)) {
            worst = Some(judged);
        }
    }
    let mut worst = worst?;
    (worst.recourse, worst.reach) = (hardest.1, reach);
    let is_many = worst.verdict == Verdict::Allow && allowing.len() > 1;
    (worst.rules, worst.bases) = if is_many { allowing.into_iter().unzip() } else { Default::default() };
    if worst.verdict == Verdict::Ask {
        worst.memory = if is_kept { RememberedRule::Rules(rules) } else { RememberedRule::Nothing };
    }
    Some(worst)
}
