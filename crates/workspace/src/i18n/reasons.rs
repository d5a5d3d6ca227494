//! Why an action is dangerous, why a command cannot be seen through, what would change a verdict, and findings about rules.

use max_team_core::limits::CLAIM_BYTES_MAX;
use max_team_core::plan::DraftFlaw;
use max_team_core::plan::flaw::{FlawReason, UnknownTask, listed};
use max_team_core::policy::glob::GlobError;
use max_team_core::policy::lint::{LintKind, LintReason};
use max_team_core::policy::rule::RuleFlaw;
use max_team_core::policy::split::{LINE_BYTES_MAX, SplitError, shown};
use max_team_core::policy::{DangerReason, Deletion, HiddenReason, Hint, RemoteEffect, ShellSyntax};

use max_team_core::limits::{
    GLOB_BYTES_MAX, PLAN_DEPTH_MAX, PLAN_EDGES_MAX, PLAN_TASKS_MAX, TASK_CLAIMS_MAX, TASK_ID_BYTES_MAX, TASK_NEEDS_MAX,
    TASK_RETRIES_MAX,
};
use max_team_core::suggest::candidates;
use max_team_core::text::visible;
use max_team_runtime::WorktreeError;

use super::Lang;

impl Lang {
    pub(super) fn danger(self, reason: &DangerReason) -> String {
        match reason {
            DangerReason::Remote(effect) => self.remote_effect(*effect).to_owned(),
            DangerReason::PipedArguments(it) => self.danger_piped_arguments(it),
            DangerReason::SoundsLikePublishing(it) => self.danger_sounds_like_publishing(it),
            DangerReason::DeletesOutside(it) => self.danger_deletes_outside(it),
            DangerReason::DeletesProject => self.danger_deletes_project().to_owned(),
            DangerReason::DeletesForGood(it) => self.danger_deletes_for_good(it),
            DangerReason::Other(text) => text.clone(),
        }
    }

    /// The first sentence of a question about a deletion that cannot be taken back.
    pub fn deletion_is_for_good(self, deletion: &Deletion) -> String {
        self.deletion_lost(self.deleted_paths(deletion.lost_names()))
    }

    /// What is kept of a deletion, and whether more is deleted that was not measured; empty if there is neither.
    pub fn deletion_is_kept(self, deletion: &Deletion) -> String {
        let is_kept = !deletion.kept.is_empty();
        let kept = is_kept.then(|| self.deletion_kept(self.deleted_paths(deletion.kept_names())));
        let unmeasured = deletion.unmeasured.then(|| self.deletion_unmeasured().to_owned());
        unmeasured.into_iter().chain(kept).collect::<Vec<_>>().join(" ")
    }

    fn deleted_paths(self, (names, more): (Vec<&str>, usize)) -> String {
        let names: Vec<String> = names.into_iter().map(|name| format!("`{}`", visible(name))).collect();
        names.join(self.comma()) + &self.and_more(more)
    }

    fn remote_effect(self, effect: RemoteEffect) -> &'static str {
        match effect {
            RemoteEffect::PublishesCommits => self.remote_publishes_commits(),
            RemoteEffect::Publishes => self.remote_publishes(),
            RemoteEffect::ChangesAccounts => self.remote_changes_accounts(),
            RemoteEffect::Deploys => self.remote_deploys(),
            RemoteEffect::ActsAsOther => self.remote_acts_as_other(),
            RemoteEffect::Speaks => self.remote_speaks(),
            RemoteEffect::OtherMachine => self.remote_other_machine(),
        }
    }

    pub(super) fn hidden_reason(self, reason: &HiddenReason) -> String {
        match reason {
            HiddenReason::Shell(syntax) => self.shell_syntax(syntax),
            HiddenReason::ManyFolders(it) => self.hidden_many_folders(*it),
            HiddenReason::ManyPrograms => self.hidden_many_programs().to_owned(),
            HiddenReason::GitSetting(it) => self.hidden_git_setting(it),
            HiddenReason::GitOption(it) => self.hidden_git_option(it),
            HiddenReason::GitConfig => self.hidden_git_config().to_owned(),
            HiddenReason::GitTarget => self.hidden_git_target().to_owned(),
            HiddenReason::GitTransport(it) => self.hidden_git_transport(it),
            HiddenReason::EnvSplit(it) => self.hidden_env_split(it),
            HiddenReason::SedScript => self.hidden_sed_script().to_owned(),
            HiddenReason::SedBackup => self.hidden_sed_backup().to_owned(),
            HiddenReason::AwkScript => self.hidden_awk_script().to_owned(),
            HiddenReason::RemoteArchive => self.hidden_remote_archive().to_owned(),
            HiddenReason::SshOption(it) => self.hidden_ssh_option(it),
            HiddenReason::FlagFile(it) => self.hidden_flag_file(it),
            HiddenReason::PipedCode(it) => self.hidden_piped_code(it),
            HiddenReason::Script(it) => self.hidden_script(it),
            HiddenReason::Unseen(it) => self.hidden_unseen(it),
            HiddenReason::ReadsCode(it) => self.hidden_reads_code(it),
            HiddenReason::NoScriptFile(it) => self.hidden_no_script_file(it),
            HiddenReason::Setting(it) => self.hidden_setting(it),
            HiddenReason::Variable(it) => self.hidden_variable(it),
            HiddenReason::Filter(it) => self.hidden_filter(it),
            HiddenReason::Instructed(it) => self.hidden_instructed(it),
            HiddenReason::Anything(it) => self.hidden_anything(it),
            HiddenReason::OptionRuns(it) => self.hidden_option_runs(it),
            HiddenReason::Other(text) => text.clone(),
        }
    }

    pub(super) fn shell_syntax(self, syntax: &ShellSyntax) -> String {
        match syntax {
            ShellSyntax::Expansion => self.syntax_expansion().to_owned(),
            ShellSyntax::Substitution => self.syntax_substitution().to_owned(),
            ShellSyntax::Backticks => self.syntax_backticks().to_owned(),
            ShellSyntax::ProcessSubstitution => self.syntax_process_substitution().to_owned(),
            ShellSyntax::BashQuote => self.syntax_bash_quote().to_owned(),
            ShellSyntax::HereText => self.syntax_here_text().to_owned(),
            ShellSyntax::Group => self.syntax_group().to_owned(),
            ShellSyntax::Background => self.syntax_background().to_owned(),
            ShellSyntax::PipeOfBoth => self.syntax_pipe_of_both().to_owned(),
            ShellSyntax::Negation => self.syntax_negation().to_owned(),
            ShellSyntax::BashTest => self.syntax_bash_test().to_owned(),
            ShellSyntax::Function => self.syntax_function().to_owned(),
            ShellSyntax::Braces => self.syntax_braces().to_owned(),
            ShellSyntax::ShellVariables => self.syntax_shell_variables().to_owned(),
            ShellSyntax::ControlStructure => self.syntax_control_structure().to_owned(),
            ShellSyntax::Pattern => self.syntax_pattern().to_owned(),
            ShellSyntax::WidePattern(it) => self.syntax_wide_pattern(*it),
            ShellSyntax::SlowPattern(it) => self.syntax_slow_pattern(*it),
            ShellSyntax::TooLong(it) => self.syntax_too_long(*it),
            ShellSyntax::ManyCommands(it) => self.syntax_many_commands(*it),
            ShellSyntax::ManyPlaces(it) => self.syntax_many_places(*it),
            ShellSyntax::ZeroByte => self.syntax_zero_byte().to_owned(),
            ShellSyntax::Nothing => self.syntax_nothing().to_owned(),
            ShellSyntax::Unparsed => self.syntax_unparsed().to_owned(),
            ShellSyntax::TooDeep => self.syntax_too_deep().to_owned(),
            ShellSyntax::OddAssignment => self.syntax_odd_assignment().to_owned(),
            ShellSyntax::LateAssignment => self.syntax_late_assignment().to_owned(),
            ShellSyntax::OddRedirection => self.syntax_odd_redirection().to_owned(),
            ShellSyntax::OddDescriptor => self.syntax_odd_descriptor().to_owned(),
            ShellSyntax::OddSign => self.syntax_odd_sign().to_owned(),
            ShellSyntax::ContinuedWord => self.syntax_continued_word().to_owned(),
            ShellSyntax::NoCommand => self.syntax_no_command().to_owned(),
            ShellSyntax::NoProgram(it) => self.syntax_no_program(it),
            ShellSyntax::OpenQuote => self.syntax_open_quote().to_owned(),
            ShellSyntax::OpenBackslash => self.syntax_open_backslash().to_owned(),
            ShellSyntax::HomeFolder => self.syntax_home_folder().to_owned(),
            ShellSyntax::Comment => self.syntax_comment().to_owned(),
            ShellSyntax::SignInWord => self.syntax_sign_in_word().to_owned(),
            ShellSyntax::OddCharacter => self.syntax_odd_character().to_owned(),
            ShellSyntax::NotPlain(it) => self.syntax_not_plain(it),
            ShellSyntax::Other(text) => text.clone(),
        }
    }

    /// What would change a verdict.
    pub fn hint(self, hint: &Hint) -> String {
        let text = match hint {
            Hint::None => "",
            Hint::Stricter => self.hint_stricter(),
            Hint::StricterMode => self.hint_stricter_mode(),
            Hint::Prompting => self.hint_prompting(),
            Hint::Allow { rules, edits: true } => return self.hint_allow_or_edits(Hint::setting(rules)),
            Hint::Allow { rules, edits: false } => return Hint::setting(rules),
            Hint::OtherMode { edits: true } => self.hint_other_mode_or_edits(),
            Hint::OtherMode { edits: false } => self.hint_other_mode(),
            Hint::WithoutDenial => self.hint_without_denial(),
            Hint::WithoutQuestion => self.hint_without_question(),
            Hint::WithoutHook => self.hint_without_hook(),
            Hint::OwningPlan => self.hint_owning_plan(),
            Hint::Constraints => self.hint_constraints(),
            Hint::AlwaysAsks => self.hint_always_asks(),
            Hint::Folders => self.hint_folders(),
            Hint::PlainCommand(rules) if rules.is_empty() => self.hint_plain(),
            Hint::PlainCommand(rules) => return self.hint_plain_or_rules(rules.join("`, `")),
            Hint::Tools(tools) => return self.hint_tools(tools.join("`, `")),
        };
        text.to_owned()
    }

    /// The kind of a finding about a rule.
    pub fn lint_kind(self, kind: LintKind) -> &'static str {
        match kind {
            LintKind::Dead => self.lint_dead(),
            LintKind::Shadowed => self.lint_shadowed(),
            LintKind::Wide => self.lint_wide(),
            LintKind::Twice => self.lint_twice(),
        }
    }

    /// What is wrong with a rule.
    pub fn lint_reason(self, reason: &LintReason) -> String {
        match reason {
            LintReason::UnknownTool { name, near: Some(near) } => self.lint_unknown_near(name, near),
            LintReason::UnknownTool { name, near: None } => self.lint_unknown(name),
            LintReason::Flaw(flaw) => self.rule_flaw(flaw),
            LintReason::AlwaysAsks(why) => self.lint_always_asks(self.danger(why)),
            LintReason::Shadowed(rule) => self.lint_counts_first(rule),
            LintReason::Twice(place) => self.lint_already(place.to_string()),
            LintReason::EveryCommand => self.lint_every_command().to_owned(),
            LintReason::InnerStar => self.lint_inner_star().to_owned(),
            LintReason::AnyScript(program) => self.lint_any_script(program),
            LintReason::Everywhere => self.lint_everywhere().to_owned(),
        }
    }

    pub(crate) fn rule_flaw(self, flaw: &RuleFlaw) -> String {
        match flaw {
            RuleFlaw::Bare => self.flaw_bare().to_owned(),
            RuleFlaw::Dead(dead, good) => self.flaw_dead(dead, good),
            RuleFlaw::Form => self.flaw_form().to_owned(),
            RuleFlaw::Empty(tool) => self.flaw_empty(tool),
            RuleFlaw::Glob(error) => self.flaw_glob(self.glob_error(error)),
            RuleFlaw::Unknown(tool, inside) => self.flaw_unknown(tool, inside),
            RuleFlaw::Parameter(parameter) => self.flaw_parameter(parameter),
        }
    }

    /// Why something about a worktree failed.
    pub fn worktree_failure(self, error: &WorktreeError) -> String {
        match error {
            WorktreeError::NoRepository(folder) => self.worktree_no_repository(folder),
            WorktreeError::NotFound(id) => self.worktree_not_found(id),
            WorktreeError::NoSandbox => self.worktree_no_sandbox().to_owned(),
            WorktreeError::Busy(id) => self.worktree_busy(id),
            WorktreeError::Name(name) => self.worktree_name(name),
            WorktreeError::TooLarge(why) => self.worktree_too_large(why),
            WorktreeError::NotChanged(file) => self.worktree_not_changed(file),
            WorktreeError::Unwritten(why) => self.worktree_unwritten(why),
            WorktreeError::Broken(id, why) => self.worktree_broken(id, why),
            WorktreeError::Io(path, why) => self.unwritable(path, why),
            error => error.to_string(),
        }
    }

    /// Why a plan cannot run, in a sentence.
    pub fn cannot_run(self, flaws: &[DraftFlaw]) -> String {
        let all: Vec<String> = flaws.iter().map(|flaw| self.draft_flaw(flaw)).collect();
        self.plan_cannot_run(all.join(self.semicolon()))
    }

    /// What is wrong with a plan, and where.
    pub fn draft_flaw(self, flaw: &DraftFlaw) -> String {
        let reason = self.flaw_reason(&flaw.reason);
        if flaw.task.is_empty() { reason } else { self.of_task(&flaw.task, reason) }
    }

    fn flaw_reason(self, reason: &FlawReason) -> String {
        match reason {
            FlawReason::NoId(it) => self.draft_no_id(*it),
            FlawReason::BadId => self.draft_bad_id(TASK_ID_BYTES_MAX),
            FlawReason::SameId => self.draft_same_id().to_owned(),
            FlawReason::NoTasks => self.draft_no_tasks().to_owned(),
            FlawReason::TooManyTasks(it) => self.draft_too_many_tasks(*it, PLAN_TASKS_MAX),
            FlawReason::TooManyGates(it) => self.draft_too_many_gates(*it, PLAN_TASKS_MAX),
            FlawReason::LongText { field, bytes, most } => self.draft_long_text(field, bytes, most),
            FlawReason::NoParallel => self.draft_no_parallel().to_owned(),
            FlawReason::ZeroBudget(it) => self.draft_zero_budget(it),
            FlawReason::ZeroLimit(it) => self.draft_zero_limit(it),
            FlawReason::NoDescription => self.draft_no_description().to_owned(),
            FlawReason::NoOwner(members) => self.draft_no_owner(listed(members)),
            FlawReason::UnknownOwner { name, near: Some(near), members } => {
                self.draft_unknown_owner_near(name, near, listed(members))
            }
            FlawReason::UnknownOwner { name, near: None, members } => self.draft_unknown_owner(name, listed(members)),
            FlawReason::ManyRetries(it) => self.draft_many_retries(*it, TASK_RETRIES_MAX),
            FlawReason::ManyEntries { field, count } => self.draft_many_entries(field, count, TASK_CLAIMS_MAX),
            FlawReason::EmptyEntry(it) => self.draft_empty_entry(it),
            FlawReason::LongEntry(it) => self.draft_long_entry(it, CLAIM_BYTES_MAX),
            FlawReason::UnownedOutput(it) => self.draft_unowned_output(it),
            FlawReason::ControlCharacters(it) => self.draft_control_characters(it),
            FlawReason::LeadsOut(it) => self.draft_leads_out(it),
            FlawReason::ManyNeeds(it) => self.draft_many_needs(*it, TASK_NEEDS_MAX),
            FlawReason::BadWhen(it) => self.draft_bad_when(it),
            FlawReason::NeedsItself => self.draft_needs_itself().to_owned(),
            FlawReason::UnknownNeed(UnknownTask { id, near: Some(near) }) => self.draft_unknown_need_near(id, near),
            FlawReason::UnknownNeed(UnknownTask { id, near: None }) => self.draft_unknown_need(id),
            FlawReason::UnknownGate(UnknownTask { id, near: Some(near) }) => self.draft_unknown_gate_near(id, near),
            FlawReason::UnknownGate(UnknownTask { id, near: None }) => self.draft_unknown_gate(id),
            FlawReason::ManyEdges => self.draft_many_edges(PLAN_EDGES_MAX),
            FlawReason::Cycle(tasks) => self.draft_cycle(tasks.join(" → ")),
            FlawReason::LongChain(it) => self.draft_long_chain(*it, PLAN_DEPTH_MAX),
            FlawReason::NoTask { near: Some(near) } => self.draft_no_task_near(near),
            FlawReason::NoTask { near: None } => self.draft_no_task().to_owned(),
            FlawReason::NeededByRescue(it) => self.draft_needed_by_rescue(it),
            FlawReason::BadGlob { glob, error } => self.draft_bad_glob(glob, self.glob_error(error)),
            FlawReason::BadCheck { line, error } => self.draft_bad_check(line, self.split_error(error)),
            FlawReason::DeniedCheck { line, agent, rule, basis } => {
                self.draft_denied_check(line, agent, self.basis(basis, rule))
            }
            FlawReason::AskingCheck { line, agent } => self.draft_asking_check(line, agent),
            FlawReason::AskingInstalls(hosts) => {
                self.draft_asking_installs(hosts.join(", "), hosts.first().map_or("", String::as_str))
            }
            FlawReason::UnknownModel { name, known } => self.draft_unknown_model(name, known.join(", ")),
            FlawReason::NoPrice(it) => self.draft_no_price(it),
            FlawReason::More(it) => self.draft_more(*it),
        }
    }

    pub(crate) fn glob_error(self, error: &GlobError) -> String {
        match error {
            GlobError::Empty => self.glob_empty().to_owned(),
            GlobError::Long => self.glob_long(GLOB_BYTES_MAX),
            GlobError::Open => self.glob_open().to_owned(),
            GlobError::Escape => self.glob_escape().to_owned(),
            GlobError::Braces => self.glob_braces().to_owned(),
            GlobError::Dots => self.glob_dots().to_owned(),
        }
    }

    fn split_error(self, error: &SplitError) -> String {
        match error {
            SplitError::Empty => self.split_empty().to_owned(),
            SplitError::Long => self.split_long(LINE_BYTES_MAX),
            SplitError::Shell(it) => self.split_shell(shown(*it)),
            SplitError::Assignment(it) => self.split_assignment(it),
            SplitError::Unclosed(it) => self.split_unclosed(*it),
            SplitError::Backslash => self.split_backslash().to_owned(),
            SplitError::Zero => self.split_zero().to_owned(),
        }
    }

    /// There is no agent of this name; with the names there are.
    pub fn no_agent_named(self, name: &str, names: &[&str]) -> String {
        match self {
            Self::En => format!("there is no agent `{name}`{}", candidates(name, names.iter().copied())),
            Self::Zh => self.no_agent_among(name, format!("`{}`", names.join("`、`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;

    use max_team_core::policy::Basis;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    /// The reasons of a type that have texts whose keys begin so, with the texts for models and records in English.
    fn check<T: DeserializeOwned + Display>(
        prefix: &str,
        words: impl Fn(Lang, &T) -> String,
        is_other: fn(&T) -> bool,
    ) {
        let keys = include_str!("../../i18n/en.toml")
            .lines()
            .filter_map(|line| line.split_once(" = ")?.0.strip_prefix(prefix));
        for name in keys {
            let values = [json!({ name: "it" }), json!({ name: 7 }), json!(name)];
            let mut reasons = values.into_iter().filter_map(|value| serde_json::from_value::<T>(value).ok());
            let reason = reasons.find(|reason| !is_other(reason));
            let reason = reason.unwrap_or_else(|| panic!("`{prefix}{name}` belongs to no reason"));
            assert_eq!(words(Lang::En, &reason), reason.to_string(), "{prefix}{name}");
            assert_ne!(words(Lang::Zh, &reason), reason.to_string(), "{prefix}{name}");
        }
    }

    #[test]
    fn flaws_of_plans_are_the_same_on_screens_and_for_models() {
        let (it, near) = (|| "it".to_owned(), Some("near".to_owned()));
        let members = |count: usize| vec!["leo".to_owned(); count];
        let unknown = |near| UnknownTask { id: it(), near };
        let globs =
            [GlobError::Empty, GlobError::Long, GlobError::Open, GlobError::Escape, GlobError::Braces, GlobError::Dots];
        let lines = [
            SplitError::Empty,
            SplitError::Long,
            SplitError::Shell('|'),
            SplitError::Assignment(it()),
            SplitError::Unclosed('"'),
            SplitError::Backslash,
            SplitError::Zero,
        ];
        let mut reasons = vec![
            FlawReason::NoId(7),
            FlawReason::BadId,
            FlawReason::SameId,
            FlawReason::NoTasks,
            FlawReason::TooManyTasks(7),
            FlawReason::TooManyGates(7),
            FlawReason::LongText { field: it(), bytes: 7, most: 6 },
            FlawReason::NoParallel,
            FlawReason::ZeroBudget(it()),
            FlawReason::ZeroLimit(it()),
            FlawReason::NoDescription,
            FlawReason::NoOwner(members(21)),
            FlawReason::UnknownOwner { name: it(), near: near.clone(), members: members(2) },
            FlawReason::UnknownOwner { name: it(), near: None, members: members(2) },
            FlawReason::ManyRetries(7),
            FlawReason::ManyEntries { field: it(), count: 7 },
            FlawReason::EmptyEntry(it()),
            FlawReason::LongEntry(it()),
            FlawReason::UnownedOutput(it()),
            FlawReason::ControlCharacters(it()),
            FlawReason::LeadsOut(it()),
            FlawReason::ManyNeeds(7),
            FlawReason::BadWhen(it()),
            FlawReason::NeedsItself,
            FlawReason::UnknownNeed(unknown(near.clone())),
            FlawReason::UnknownNeed(unknown(None)),
            FlawReason::UnknownGate(unknown(near.clone())),
            FlawReason::UnknownGate(unknown(None)),
            FlawReason::ManyEdges,
            FlawReason::Cycle(vec![it(), it()]),
            FlawReason::LongChain(7),
            FlawReason::NoTask { near },
            FlawReason::NoTask { near: None },
            FlawReason::NeededByRescue(it()),
            FlawReason::DeniedCheck { line: it(), agent: it(), rule: it(), basis: Box::new(Basis::Rule) },
            FlawReason::AskingCheck { line: it(), agent: it() },
            FlawReason::AskingInstalls(members(2)),
            FlawReason::UnknownModel { name: it(), known: members(2) },
            FlawReason::NoPrice(it()),
            FlawReason::More(7),
        ];
        reasons.extend(globs.map(|error| FlawReason::BadGlob { glob: it(), error }));
        reasons.extend(lines.map(|error| FlawReason::BadCheck { line: it(), error }));
        for reason in reasons {
            let flaw = DraftFlaw { task: "a".to_owned(), reason };
            assert_eq!(Lang::En.draft_flaw(&flaw), flaw.to_string());
            let (chinese, english) = (Lang::Zh.flaw_reason(&flaw.reason), flaw.reason.to_string());
            assert!(chinese != english && !chinese.contains(" is "), "{chinese}");
            let stored = serde_json::to_string(&flaw).unwrap();
            assert_eq!(serde_json::from_str::<DraftFlaw>(&stored).unwrap(), flaw);
        }
    }

    #[test]
    fn reasons_are_the_same_on_screens_and_for_models() {
        check("remote_", |lang, effect: &RemoteEffect| lang.remote_effect(*effect).to_owned(), |_| false);
        check(
            "hidden_",
            |lang, reason: &HiddenReason| lang.hidden_reason(reason),
            |it| matches!(it, HiddenReason::Other(_)),
        );
        check(
            "syntax_",
            |lang, syntax: &ShellSyntax| lang.shell_syntax(syntax),
            |it| matches!(it, ShellSyntax::Other(_)),
        );
        check("danger_", |lang, reason: &DangerReason| lang.danger(reason), |it| matches!(it, DangerReason::Other(_)));
    }
}
