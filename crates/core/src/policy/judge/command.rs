//! A command line: every part, every program that a part starts, every place that it touches.

use super::path::{self, PathAccess};
use super::{
    AutoAllow, Basis, JudgedAction, Judgement, Rules, asked, constrained, danger, free, said, still, strictest, then,
};
use crate::limits::FOLDERS_MAX;
use crate::policy::command_line::{CommandLine, Operator, RedirectTarget, SimpleCommand, join};
use crate::policy::program::{self, CommandEffect, CommandFacts, DEPTH_MAX, HistoryQuery};
use crate::policy::rule::{List, Rule, RuleScope, RuleSubject, Spelling, absolute};
use crate::policy::{
    Action, ActionKind, GrantScope, HiddenReason, Hint, Mode, RememberedRule, ShellSyntax, Verdict, glob, grant,
};
use crate::text::quote;

/// Tools that run the project's test command in the sandbox of commands.
const TEST_TOOLS: [&str; 2] = ["run_test", "coverage_report"];

/// Whether an action is a command that runs in the sandbox of commands.
pub(super) fn is_sandboxed(tool: &str, action: &Action) -> bool {
    action.kind == ActionKind::Execute && (action.line.is_some() || TEST_TOOLS.contains(&tool))
}

/// Whether a command can run read-only and offline: it names no file to change and no host, and does not set `writes: true`,
/// which counts for nothing where the agent can change nothing.
pub(super) fn can_look(tool: &str, action: &Action, is_still: bool) -> bool {
    if action.kind != ActionKind::Execute || (action.writes() && !is_still) {
        return false;
    }
    match &action.line {
        Some(CommandLine::Plain(parts)) => !parts.iter().any(names_change),
        Some(CommandLine::Opaque { .. }) => true,
        None => TEST_TOOLS.contains(&tool),
    }
}

/// Whether a part of a line names a file to change, a host, or an effect that always asks.
pub(super) fn names_change(part: &SimpleCommand) -> bool {
    let is_file = |path: &str| !path::is_device(path);
    let is_written = part.flows.iter().any(|flow| match &flow.to {
        RedirectTarget::Write(path) | RedirectTarget::Append(path) => is_file(path),
        RedirectTarget::Read(_) | RedirectTarget::Same(_) => false,
    });
    is_written
        || has_effect(&part.argv, DEPTH_MAX, &|effect| match effect {
            CommandEffect::Write(path) => is_file(path),
            CommandEffect::Delete(_) | CommandEffect::Reach(_) | CommandEffect::Discard | CommandEffect::Danger(_) => {
                true
            }
            CommandEffect::Read(_) | CommandEffect::Run(_) | CommandEffect::Code(_) | CommandEffect::History => false,
        })
}

/// Whether a command, or one that it starts, has such an effect.
fn has_effect(argv: &[String], depth: usize, is: &dyn Fn(&CommandEffect) -> bool) -> bool {
    program::effects_of(argv).effects.iter().any(|effect| match effect {
        CommandEffect::Run(inner) => depth > 0 && has_effect(inner, depth - 1, is),
        effect => is(effect),
    })
}

/// Whether git itself runs: its commands may change the repository, so code that comes with them is never covered by a plan.
fn is_git(argv: &[String]) -> bool {
    argv.iter().any(|word| word.rsplit('/').next() == Some("git"))
}

impl<'a> JudgedAction<'a> {
    pub(super) fn execute(&self) -> Judgement {
        match &self.action.line {
            Some(CommandLine::Plain(parts)) if !parts.is_empty() => self.plain(parts),
            Some(CommandLine::Plain(_)) => said(Verdict::Deny, Basis::EmptyLine),
            Some(CommandLine::Opaque { text, why }) => self.opaque(text, why),
            // A tool of this project made the line from parts that were judged one by one: only the command counts,
            // not its words.
            None => {
                let argv: Vec<String> = self.action.target.split_whitespace().map(str::to_owned).collect();
                let facts = CommandFacts { effects: Vec::new(), ..program::effects_of(&argv) };
                self.command_of_tool(&argv, &facts)
            }
        }
    }

    fn plain(&self, parts: &[SimpleCommand]) -> Judgement {
        // The folders that the line may be in here: if the chain so far succeeded, and at any point.
        let (mut here, mut ever) = (vec![String::new()], vec![String::new()]);
        let mut all = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            if matches!(part.join, Operator::Then | Operator::Or) {
                here.clone_from(&ever);
            }
            all.push(self.part(part, &here));
            if part.argv.first().is_some_and(|program| program == "cd") {
                let is_piped = parts.get(index + 1).is_some_and(|next| next.join == Operator::Pipe);
                let is_sure = matches!(part.join, Operator::Then | Operator::And) && !is_piped;
                here = moved(part, &here, is_sure);
                ever.extend(here.iter().cloned());
                ever.sort_unstable();
                ever.dedup();
            }
            if ever.len() > FOLDERS_MAX {
                all.push(self.hidden(HiddenReason::ManyFolders(FOLDERS_MAX), RememberedRule::Nothing));
                break;
            }
        }
        strictest(all).unwrap_or_else(|| said(Verdict::Deny, Basis::EmptyLine))
    }

    fn part(&self, part: &SimpleCommand, folders: &[String]) -> Judgement {
        let variables = part.env.iter().flat_map(|(name, value)| program::variable(name, value));
        let flows = part.flows.iter().filter_map(|flow| match &flow.to {
            RedirectTarget::Read(path) => Some(CommandEffect::Read(path.clone())),
            RedirectTarget::Write(path) | RedirectTarget::Append(path) => Some(CommandEffect::Write(path.clone())),
            RedirectTarget::Same(_) => None,
        });
        let extra: Vec<CommandEffect> = variables.chain(flows).collect();
        // A rule that names the exact command was written by a person who knew all of it.
        let spelled = [Spelling::new(part.argv.clone(), true)];
        let is_exact = self.exact(RuleSubject::Command(&spelled))
            || [self.rules.checks, self.tests()].iter().any(|list| is_in(list, &part.argv, folders));
        let is_seen = part.env.is_empty() && part.flows.is_empty() && is_exact;
        // In mode `DontAsk` questions become refusals. To find the questions that the exact rule covers, the command
        // is judged as in the default mode.
        let asked = JudgedAction { rules: Rules { mode: Mode::Default, ..self.rules }, ..*self };
        let case = if is_seen && self.rules.mode == Mode::DontAsk { &asked } else { self };
        let all = case.deep(&part.argv, folders, 0);
        let extra = extra.iter().flat_map(|effect| case.effect(effect, &part.argv, folders, 0));
        let covered = |judged: &Judgement| is_seen && is_plain_question(judged);
        let mut all: Vec<Judgement> = all.into_iter().chain(extra).filter(|judged| !covered(judged)).collect();
        if part.join == Operator::Pipe && all.is_empty() {
            all.push(free(AutoAllow::Rest));
        }
        let judged = strictest(all).or_else(|| self.allow(RuleSubject::Command(&spelled)));
        let judged = judged.or_else(|| is_seen.then(|| free(AutoAllow::Check)));
        self.asking(judged.unwrap_or_else(|| self.by_mode(Verdict::Ask)))
    }

    /// The test commands that need no question. In a worktree without an approved plan they do: the agent can change
    /// without a question what such a command runs.
    fn tests(&self) -> &'a [Vec<String>] {
        let is_unseen = !self.rules.permissions.copy.is_empty() && !self.rules.approved;
        if is_unseen { &[] } else { self.rules.tests }
    }

    /// A line that a tool of this project made: after a check or a test command it may select some of the tests.
    fn command_of_tool(&self, argv: &[String], facts: &CommandFacts) -> Judgement {
        let is_chosen = |rest: &str| rest.is_empty() || rest.starts_with(' ');
        let begins = |list: &[Vec<String>]| {
            list.iter().any(|known| self.action.target.strip_prefix(&join(known)).is_some_and(is_chosen))
        };
        let judged = self.command(argv, facts, begins(self.rules.checks));
        if is_plain_question(&judged) && begins(self.tests()) { free(AutoAllow::Check) } else { judged }
    }

    /// Whether this is a test command of the project, in the sandbox also with further words that choose tests. What else
    /// those words do is judged apart.
    fn is_test(&self, argv: &[String], folders: &[String]) -> bool {
        self.rules.sandboxed
            && folders.iter().all(String::is_empty)
            && self.tests().iter().any(|known| argv.starts_with(known))
    }

    /// A command and all its effects.
    fn deep(&self, argv: &[String], folders: &[String], depth: usize) -> Vec<Judgement> {
        let facts = program::effects_of(argv);
        let judged = self.command(argv, &facts, depth == 0 && is_in(self.rules.checks, argv, folders));
        let is_free_test = depth == 0 && is_plain_question(&judged) && self.is_test(argv, folders);
        let mut all = vec![if is_free_test { free(AutoAllow::Check) } else { judged }];
        for effect in &facts.effects {
            all.extend(self.effect(effect, argv, folders, depth));
        }
        all
    }

    fn effect(&self, effect: &CommandEffect, argv: &[String], folders: &[String], depth: usize) -> Vec<Judgement> {
        let each = |touch, path: &str| folders.iter().map(|folder| self.place(touch, folder, path)).collect();
        match effect {
            CommandEffect::Read(path) => each(PathAccess::Read, path),
            CommandEffect::Write(path) => each(PathAccess::Write, path),
            CommandEffect::Delete(path) => each(PathAccess::Delete, path),
            CommandEffect::Run(_) if depth >= DEPTH_MAX => {
                vec![self.hidden(HiddenReason::ManyPrograms, RememberedRule::Nothing)]
            }
            CommandEffect::Run(inner) => self.deep(inner, folders, depth + 1),
            CommandEffect::Code(why) => vec![self.code(why, argv)],
            CommandEffect::History => vec![self.history(argv)],
            // The judgement of the command itself covers it.
            CommandEffect::Discard => Vec::new(),
            CommandEffect::Reach(host) => {
                let judged = self.fetch(host);
                vec![Judgement { memory: RememberedRule::Nothing, ..judged }]
            }
            CommandEffect::Danger(why) => vec![self.asking(danger(Basis::Danger(why.clone())))],
        }
    }

    /// The command by itself. A check may run outside `allowed_commands`, and is not asked about.
    fn command(&self, argv: &[String], facts: &CommandFacts, is_check: bool) -> Judgement {
        let spelled = program::spellings(argv);
        let is_free = is_check || argv.first().is_some_and(|program| program == "cd");
        if let Some(allowed) = self.rules.constraints.allowed_commands.as_ref().filter(|_| !is_free) {
            let within = |argv: &[String]| {
                let words: Vec<&str> = argv.iter().map(String::as_str).collect();
                glob::commands(allowed, &words)
            };
            if !spelled.iter().any(|spelling| spelling.is_literal && within(&spelling.argv)) {
                let denied = self.deny(RuleSubject::Command(&spelled));
                return denied.unwrap_or_else(|| self.beyond_list(self.unlisted(allowed, argv)));
            }
        }
        let subject = RuleSubject::Command(&spelled);
        if let Some(judged) = self.deny(subject) {
            return judged;
        }
        if !facts.is_whole && self.rules.mode == Mode::Plan && !self.can_look {
            return self.by_mode(Verdict::Deny);
        }
        if let Some(judged) = self.ask(subject) {
            let is_change = !facts.is_whole && self.rules.mode == Mode::Plan;
            return if is_change { self.by_mode(Verdict::Deny) } else { judged };
        }
        if facts.is_whole {
            return free(AutoAllow::Places);
        }
        if self.can_look && self.rules.mode == Mode::Plan {
            return still();
        }
        if facts.effects.contains(&CommandEffect::Discard) {
            return self.discard(argv, subject);
        }
        if let Some(judged) = self.allow(subject) {
            return judged;
        }
        if is_check {
            return free(AutoAllow::Check);
        }
        if self.rules.grants.iter().any(|grant| grant.kind == Some(ActionKind::Execute)) {
            return said(Verdict::Allow, Basis::Granted(GrantScope::Session));
        }
        if let Some(judged) = self.plan(ActionKind::Execute, "") {
            return judged;
        }
        let judged = self.mode(ActionKind::Execute, RememberedRule::Rules(vec![grant::proposed(argv)]), false);
        let looks = self.can_look && judged.verdict != Verdict::Allow && (self.is_still || !program::is_writer(argv));
        if looks { still() } else { judged }
    }

    /// Code that cannot be seen. In the sandbox of an approved plan it can do no more than the plan's other commands.
    fn code(&self, why: &HiddenReason, argv: &[String]) -> Judgement {
        let is_covered = self.rules.sandboxed && !self.is_still && !is_git(argv);
        let planned = is_covered.then(|| self.plan(ActionKind::Execute, "")).flatten();
        planned.unwrap_or_else(|| self.hidden(why.clone(), RememberedRule::Rules(vec![grant::exactly(argv)])))
    }

    /// Only the user's yes to this very call goes beyond `allowed_commands`: no rule, no mode and no plan does. An empty list
    /// allows nothing.
    fn beyond_list(&self, limit: Basis) -> Judgement {
        let is_empty = self.rules.constraints.allowed_commands.as_ref().is_some_and(Vec::is_empty);
        match self.rules.mode {
            _ if is_empty => constrained(limit),
            Mode::Plan | Mode::DontAsk => constrained(limit),
            _ => Judgement { hint: Hint::Constraints, is_danger: true, ..asked(limit) },
        }
    }

    /// The limit of a command outside `allowed_commands`, with the nearest command that is allowed itself.
    fn unlisted(&self, allowed: &[String], argv: &[String]) -> Basis {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        // If the list has the program with other words only, the message also names the first of the refused command's
        // words.
        let program = words.first().copied().unwrap_or_default();
        let is_known = allowed.iter().any(|command| command.split_whitespace().next() == Some(program));
        let named = words.get(..2).filter(|_| is_known).map_or_else(|| program.to_owned(), |words| words.join(" "));
        let usable: Vec<&str> = allowed.iter().map(String::as_str).filter(|command| self.is_usable(command)).collect();
        let near = glob::nearest_command(&usable, &words).map(|near| near.to_string());
        Basis::NotAllowed { command: quote(&named).to_string(), near, is_empty: allowed.is_empty() }
    }

    /// Whether a command of `allowed_commands` is not refused by a rule or the mode.
    fn is_usable(&self, command: &str) -> bool {
        // A folder stands for the files in it, which are not known here.
        if command.ends_with('/') {
            return true;
        }
        let argv: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let is_open = |judged: &Judgement| match judged.verdict {
            Verdict::Allow => true,
            Verdict::Ask => !self.rules.permissions.never_asks,
            Verdict::Deny => false,
        };
        self.deep(&argv, &[String::new()], 0).iter().all(is_open)
    }

    /// A command that can discard uncommitted work: a plan covers it only for files that the task owns, and a remembered
    /// answer covers only exactly the same command.
    fn discard(&self, argv: &[String], subject: RuleSubject<'_>) -> Judgement {
        let covers = |rule: &Rule| rule.is_exact() || rule.origin.scope != RuleScope::Answer;
        if let Some(judged) = self.allow_by(subject, covers) {
            return judged;
        }
        if self.discards_own(argv) {
            return said(Verdict::Allow, Basis::Plan);
        }
        let judged = self.mode(ActionKind::Execute, RememberedRule::Rules(vec![grant::exactly(argv)]), false);
        then(judged, Basis::Discards)
    }

    /// Whether a command discards only changes of files that the task of an approved plan owns.
    fn discards_own(&self, argv: &[String]) -> bool {
        let Some(owns) = self.rules.owns.filter(|_| self.rules.approved && !self.changes_folder()) else {
            return false;
        };
        let is_own = |path: &String| {
            let full = absolute(self.root(), path);
            let within = full.strip_prefix(self.root()).and_then(|rest| rest.strip_prefix('/'));
            within.is_some_and(|within| glob::is_owned(owns, within))
                && self.place(PathAccess::Write, "", path).verdict == Verdict::Allow
        };
        program::discarded_paths(argv).is_some_and(|paths| paths.iter().all(is_own))
    }

    /// Whether a part of the line runs in another folder than the first.
    fn changes_folder(&self) -> bool {
        let is_cd = |part: &SimpleCommand| part.argv.first().is_some_and(|program| program == "cd");
        matches!(&self.action.line, Some(CommandLine::Plain(parts)) if parts.iter().any(is_cd))
    }

    /// A hidden effect may be anything, even one that always asks: no mode and no plan allows it, but it may run where it
    /// changes nothing.
    fn hidden(&self, why: HiddenReason, memory: RememberedRule) -> Judgement {
        if self.can_look {
            return still();
        }
        if self.rules.mode == Mode::Plan {
            return self.by_mode(Verdict::Deny);
        }
        let hint = Hint::PlainCommand(memory.rules().to_vec());
        self.asking(Judgement { hint, memory, ..said(Verdict::Ask, Basis::Hidden(why)) })
    }

    /// Contents of files in the history that may be out of sight, or that a rule denies or asks about. A query runs without
    /// those files: the tool adds them to it as paths to leave out.
    fn history(&self, argv: &[String]) -> Judgement {
        let is_denied = self.rules.permissions.rules.iter().any(|rule| rule.list != List::Allow && rule.is_of_places());
        if (self.sight.is_whole() && !is_denied) || self.is_query(argv) {
            return free(AutoAllow::Read);
        }
        let is_open = |tool: &&'static str| Self { tool, ..*self }.deny(RuleSubject::Tool).is_none();
        let tools: Vec<String> =
            ["git_diff", "git_log"].iter().filter(|tool| is_open(tool)).map(|tool| (*tool).to_owned()).collect();
        let hint = if tools.is_empty() { Hint::None } else { Hint::Tools(tools) };
        let judged = self.mode(ActionKind::ReadLinked, RememberedRule::Nothing, false);
        Judgement { hint, ..then(judged, Basis::History) }
    }

    /// Whether every part of the line with these words is a query of the history.
    fn is_query(&self, argv: &[String]) -> bool {
        let Some(line @ CommandLine::Plain(parts)) = &self.action.line else { return false };
        let queries: Vec<usize> = HistoryQuery::of_line(line).into_iter().map(|(at, _)| at).collect();
        let mut same = parts.iter().enumerate().filter(|(_, part)| part.argv == argv).peekable();
        same.peek().is_some() && same.all(|(at, _)| queries.contains(&at))
    }

    /// A line that only a shell can parse. Only a rule for exactly this text can allow it.
    fn opaque(&self, text: &str, why: &ShellSyntax) -> Judgement {
        let pieces: Vec<Vec<String>> = grant::pieces(text);
        let spelled: Vec<Spelling> = pieces
            .iter()
            .flat_map(|argv| program::spellings(argv))
            .map(|spelling| Spelling::new(spelling.argv, false))
            .collect();
        let (subject, pieced) = (RuleSubject::Text(text), RuleSubject::Command(&spelled));
        if let Some(judged) = self.deny(subject).or_else(|| self.deny(pieced)) {
            return judged;
        }
        if self.rules.constraints.allowed_commands.is_some() {
            return self.beyond_list(Basis::NeedsShell(why.clone()));
        }
        let told = pieces.iter().flat_map(|argv| program::effects_of(argv).effects).find_map(|effect| match effect {
            CommandEffect::Danger(why) => Some(self.asking(danger(Basis::Danger(why)))),
            _ => None,
        });
        let question = told.or_else(|| self.ask(subject)).or_else(|| self.ask(pieced));
        if self.rules.mode == Mode::Plan {
            return if question.is_none() && self.can_look { still() } else { self.by_mode(Verdict::Deny) };
        }
        if let Some(judged) = question {
            return judged;
        }
        if self.exact(subject) {
            return self.allow(subject).unwrap_or_else(|| self.by_mode(Verdict::Ask));
        }
        let is_covered = self.rules.sandboxed && !self.is_still && self.action.writes();
        if let Some(judged) = is_covered.then(|| self.plan(ActionKind::Execute, "")).flatten() {
            return judged;
        }
        let why = HiddenReason::Shell(why.clone());
        self.hidden(why, RememberedRule::Rules(vec![grant::for_text(text)]))
    }

    /// Whether a rule or an answer allows exactly this.
    pub(super) fn exact(&self, subject: RuleSubject<'_>) -> bool {
        let is_text = matches!(subject, RuleSubject::Text(_));
        let fits = |rule: &Rule| {
            let is_exact = rule.is_exact() || (is_text && !rule.is_whole());
            rule.list == List::Allow && is_exact && rule.fits(self.tool, &self.action.parameters, subject)
        };
        self.rules.permissions.rules.iter().any(fits) || self.grants(fits).is_some()
    }
}

/// Whether only the lack of a permission asks, which a rule, the plan or the project's tests can give.
fn is_plain_question(judged: &Judgement) -> bool {
    judged.verdict == Verdict::Ask && !judged.is_danger && judged.origin.is_none()
}

/// Whether a command is exactly one of the list and runs in the project's folder.
fn is_in(list: &[Vec<String>], argv: &[String], folders: &[String]) -> bool {
    folders.iter().all(String::is_empty) && list.iter().any(|known| known == argv)
}

/// The folders that the rest of a chain may run in after a `cd`, which may have failed.
fn moved(part: &SimpleCommand, here: &[String], is_sure: bool) -> Vec<String> {
    let to = part.argv.iter().skip(1).find(|word| !word.starts_with('-') || *word == "-");
    let moved = here.iter().map(|folder| joined(folder, to.map_or("", |to| to)));
    moved.chain(here.iter().filter(|_| !is_sure).cloned()).collect()
}

fn joined(folder: &str, path: &str) -> String {
    // Without a path it is the user's home folder; `-` is a folder that is unknown here.
    match path {
        "" | "-" => "/".to_owned(),
        path if path.starts_with('/') => absolute("", path),
        path if folder.is_empty() => path.to_owned(),
        path => format!("{folder}/{path}"),
    }
}
