//! The phrases of the first minutes: what is missing, what was mistyped, what `doctor` finds, what failed underneath.

use max_team_core::id::SessionId;
use max_team_runtime::storage::{JournalError, WorkerInfo};
use max_team_runtime::{AuditFailure, RuntimeError, WorktreeError};
use max_team_tools::command::{Engine, LandlockPart, Obstacle};

use super::Lang;
use crate::format::bytes;

/// Names of agents that an error lists.
const NAMES_SHOWN_MAX: usize = 8;

/// The error in a line of JSON input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFault {
    /// It has more megabytes than this.
    TooLong(usize),
    NotJson(String),
    /// It is not UTF-8.
    NotText,
    /// It does not say what it is, or something that is not read here.
    Type(String),
    Role(String),
    Part(String),
    NoContent,
    Silent,
}

impl Lang {
    /// Why a mechanism is not used: it does not work here, or another one comes first.
    pub fn passed_over(self, engine: Engine, missing: Option<&Obstacle>) -> String {
        let name = match engine {
            Engine::Namespaces => self.namespaces_engine().to_owned(),
            Engine::Bubblewrap => "bubblewrap".to_owned(),
            _ => "Landlock".to_owned(),
        };
        match missing.map(|why| self.obstacle(why)) {
            Some(why) => self.engine_unusable(&name, &why),
            None => self.engine_not_needed(&name),
        }
    }

    fn obstacle(self, why: &Obstacle) -> String {
        match why {
            Obstacle::NoBubblewrap => self.no_bubblewrap().to_owned(),
            Obstacle::NoControlGroup(path) => self.no_control_group(path.display()),
            Obstacle::NoLandlock => self.no_landlock().to_owned(),
            Obstacle::OldLandlock(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.landlock_part(*part)).collect();
                self.old_landlock(parts.join(self.comma()))
            }
            Obstacle::Other(why) => why.clone(),
        }
    }

    fn landlock_part(self, part: LandlockPart) -> String {
        match part {
            LandlockPart::Moves => self.landlock_moves(part.since()),
            LandlockPart::Truncation => self.landlock_truncation(part.since()),
            LandlockPart::Devices => self.landlock_devices(part.since()),
            LandlockPart::Scopes => self.landlock_scopes(part.since()),
        }
    }

    /// Who caps memory and processes: the system, in a folder, or we, and why.
    pub fn sandbox_caps(self, group: &Result<std::path::PathBuf, Obstacle>) -> String {
        match group {
            Ok(place) => self.caps_by_group(place.display()),
            Err(why) => self.caps_by_supervisor(self.obstacle(why)),
        }
    }

    pub fn bad_line(self, number: usize, fault: &LineFault) -> String {
        let why = match fault {
            LineFault::TooLong(megabytes) => self.line_too_long(megabytes),
            LineFault::NotJson(detail) => self.not_json(detail),
            LineFault::NotText => self.line_not_utf8().to_owned(),
            LineFault::Type(kind) if kind.is_empty() => self.line_type_missing().to_owned(),
            LineFault::Type(kind) => self.line_type_unknown(kind),
            LineFault::Role(role) => self.line_role_unknown(role),
            LineFault::Part(kind) => self.bad_part_type(kind),
            LineFault::NoContent => self.line_content_unknown().to_owned(),
            LineFault::Silent => self.line_is_empty().to_owned(),
        };
        self.standard_input_line(number, &why)
    }

    /// A folder whose name is not UTF-8, with its bytes; `variable` names it.
    pub fn not_utf8(self, name: &str, variable: Option<&str>) -> String {
        match variable {
            Some(variable) => self.variable_not_utf8(variable, name),
            None => self.folder_not_utf8(name),
        }
    }

    /// A bare word that is no command.
    pub fn no_command(self, word: &str, near: Option<&str>) -> String {
        match near {
            Some(near) => self.no_command_near(word, near),
            None => self.unknown_word(word),
        }
    }

    pub fn no_space(self, folder: &str, free: u64) -> String {
        let free = bytes(usize::try_from(free).unwrap_or(usize::MAX));
        self.folder_full(folder, &free)
    }

    /// What other programs would use and has no effect here.
    pub fn not_honoured(self, kinds: &str, hooks: bool) -> String {
        let trust = if hooks { self.hooks_need_trust() } else { "" };
        self.claude_files_unused(kinds, trust)
    }

    pub fn unused_names(self, names: &str) -> String {
        if names.is_empty() {
            return self.has_no_effect_here().to_owned();
        }
        self.names_have_no_effect(names)
    }

    pub fn hook_left(self, matcher: &str, origin: &str) -> String {
        let tools = if matcher.is_empty() { "*" } else { matcher };
        self.without_hook(tools, origin)
    }

    pub fn little_space(self, free: u64) -> String {
        let free = bytes(usize::try_from(free).unwrap_or(usize::MAX));
        self.disk_almost_full(&free)
    }

    pub fn model_with_key(self, model: &str, key: &str, priced: bool) -> String {
        let price = if priced { "" } else { self.no_price_known() };
        self.key(model, key, price)
    }

    /// An audit file that cannot be written.
    pub fn audit_failure(self, failure: &AuditFailure) -> String {
        self.audit_unwritable(&failure.path, &failure.detail)
    }

    /// A failure of the runtime. Failures that only developers meet stay in English.
    pub fn runtime_failure(self, error: &RuntimeError) -> String {
        match error {
            error if error.is_anothers() => self.message_not_stored().to_owned(),
            RuntimeError::Journal(error) => self.journal_failure(error),
            RuntimeError::OwnedElsewhere { resource, by } => self.owned_by(resource, by),
            RuntimeError::Audit(failure) => self.audit_failure(failure),
            RuntimeError::Answered { by, said, at_ms } => {
                self.answered_by_now(*said, by, &max_team_core::time::rfc3339(*at_ms))
            }
            RuntimeError::Worktree(WorktreeError::Io(path, why)) => self.error_worktree_io(path, why),
            RuntimeError::Worktree(error) => self.worktree_failure(error),
            RuntimeError::Memory(refusal) => self.memory_refusal(refusal),
            RuntimeError::Tasks(refusal) => self.list_refusal(refusal),
            RuntimeError::DraftFlaws(flaws) => self.cannot_run(flaws),
            RuntimeError::NoPlan(plan) => self.error_no_plan(plan),
            RuntimeError::NoPlanTask(id) => self.error_no_plan_task(id),
            RuntimeError::PlanStopping(plan) => self.error_plan_stopping(plan),
            RuntimeError::PlanReplaced(plan) => self.error_plan_replaced(plan),
            RuntimeError::NeedsWord { deletion } => {
                format!("{} {}", self.deletion_is_for_good(deletion), self.deletion_needs_word(self.deletion_word()))
            }
            RuntimeError::NoQuestion(id) => self.error_no_question(id),
            RuntimeError::RoleTooLow { user, role, least } => self.error_role_too_low(user, role.name(), least.name()),
            error => self.session_failure(error).unwrap_or_else(|| self.message_failure(error)),
        }
    }

    /// A failure about a session and its files.
    fn session_failure(self, error: &RuntimeError) -> Option<String> {
        Some(match error {
            RuntimeError::NoSession(id) => self.error_no_session(id),
            RuntimeError::NotCleared { detail } => self.error_not_cleared(detail),
            RuntimeError::BadText { text, detail } => self.error_bad_text(text, detail),
            RuntimeError::NoPoint { session, turns } => self.error_no_point(session, turns),
            RuntimeError::NothingRewound(session) => self.error_nothing_rewound(session),
            RuntimeError::NoServer(folder) => self.error_no_server(folder),
            RuntimeError::NothingToContinue(folder) => self.error_nothing_to_continue(folder),
            RuntimeError::Ambiguous { text, among } => self.error_ambiguous(text, among.join(self.comma())),
            RuntimeError::Elsewhere { session, cwd } => self.error_elsewhere(session, cwd),
            RuntimeError::Root { path, detail } => self.error_root(path, detail),
            RuntimeError::Behind(count) => self.error_behind(count),
            _ => return None,
        })
    }

    /// A failure about a message and its readers.
    fn message_failure(self, error: &RuntimeError) -> String {
        match error {
            RuntimeError::TooLong { bytes, max } => self.error_too_long(bytes, max),
            RuntimeError::Silent => self.error_silent().to_owned(),
            RuntimeError::QueueFull(count) => self.error_queue_full(count),
            RuntimeError::Untaken { failed, why, read } => self.envelope_untaken(failed, why, read),
            RuntimeError::NoReader { name, session, there } => self.no_reader(name, *session, there),
            RuntimeError::SeveralTasks { name, tasks } => {
                let tasks: Vec<String> = tasks.iter().map(|task| format!("`{task}`")).collect();
                self.error_several_tasks(name, tasks.join(self.comma()))
            }
            RuntimeError::NotStopped { name, there } => self.not_stopped(name, there),
            RuntimeError::Gone { name, by, reason } if reason.is_empty() => self.error_gone(name, by),
            RuntimeError::Gone { name, by, reason } => self.error_gone_because(name, by, reason),
            RuntimeError::MailFull { name, max } => self.error_mail_full(name, max),
            error => error.to_string(),
        }
    }

    fn no_reader(self, name: &str, session: SessionId, there: &[String]) -> String {
        let names: Vec<String> = there.iter().take(NAMES_SHOWN_MAX).map(|name| self.reader_name(name)).collect();
        let others = match names.is_empty() {
            true => self.no_other_readers().to_owned(),
            false => self.other_readers(names.join(self.comma()), self.and_more(there.len() - names.len())),
        };
        self.error_no_reader(name, session, others)
    }

    fn not_stopped(self, name: &str, there: &[String]) -> String {
        let names: Vec<&str> = there.iter().take(NAMES_SHOWN_MAX).map(String::as_str).collect();
        let others = match names.is_empty() {
            true => self.no_other_interrupted().to_owned(),
            false => self.other_interrupted(names.join(self.comma())),
        };
        self.error_not_stopped(name, others)
    }

    /// A failure of the journal. Failures that only developers meet stay in English.
    pub fn journal_failure(self, error: &JournalError) -> String {
        match error {
            JournalError::Owned { resource, by } => self.owned_by(resource, by),
            JournalError::DiskFull { path } => self.storage_disk_full(path.display()),
            JournalError::Unwritable { path, detail } => self.storage_unwritable(path.display(), detail),
            JournalError::Exists { path } => self.storage_exists(path.display()),
            JournalError::InUse { path, by } => self.storage_in_use(path.display(), by),
            JournalError::NoFolder { path } => self.storage_no_folder(path.display()),
            JournalError::Absent { path } => self.storage_absent(path.display()),
            JournalError::Removed { path } => self.storage_removed(path.display()),
            JournalError::Newer { path, found, known } => self.storage_newer(path.display(), found, known),
            JournalError::Busy { path } => self.storage_busy(path.display()),
            error => error.to_string(),
        }
    }

    /// A session or journal that another process owns.
    fn owned_by(self, resource: &str, by: &WorkerInfo) -> String {
        self.owned_elsewhere(resource, &by.what, by.pid, &by.host)
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::hash::Hash;
    use max_team_core::message::Role;

    use super::*;

    const SESSION: &str = "ses_01990000000070008000000000000001";

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("leo-{number}")).collect()
    }

    fn worker() -> Box<WorkerInfo> {
        Box::new(WorkerInfo {
            id: "wrk_01990000000070008000000000000001".parse().unwrap(),
            pid: 7,
            host: "ant".to_owned(),
            started_at_ms: 0,
            what: "chat".to_owned(),
        })
    }

    fn is_chinese(text: &str) -> bool {
        text.chars().any(max_team_core::text::is_chinese)
    }

    #[test]
    fn the_names_of_variables_for_keys_are_no_secrets() {
        for lang in [Lang::En, Lang::Zh] {
            let texts = [
                lang.no_key_for("deepseek", "DEEPSEEK_API_KEY"),
                lang.model_with_key("claude", "ANTHROPIC_API_KEY", true),
            ];
            for text in texts {
                assert_eq!(max_team_core::secret::redact(&text), text);
            }
        }
    }

    #[test]
    fn failures_of_the_runtime_are_the_same_on_screens_and_for_developers() {
        let it = || "it".to_owned();
        let session: SessionId = SESSION.parse().unwrap();
        let plan = "pln_01990000000070008000000000000001".parse().unwrap();
        let no_reader = |count| RuntimeError::NoReader { name: it(), session, there: names(count) };
        let not_stopped = |count| RuntimeError::NotStopped { name: it(), there: names(count) };
        let gone = |reason: &str| RuntimeError::Gone { name: it(), by: it(), reason: reason.to_owned() };
        let untaken = |count| RuntimeError::Untaken { failed: names(2), why: it(), read: names(count) };
        let worktrees = [
            WorktreeError::NoRepository(it()),
            WorktreeError::NotFound(it()),
            WorktreeError::NoSandbox,
            WorktreeError::Busy(it()),
            WorktreeError::Name(it()),
            WorktreeError::TooLarge(it()),
            WorktreeError::NotChanged(it()),
            WorktreeError::Unwritten(it()),
            WorktreeError::Broken(it(), it()),
            WorktreeError::Io(it(), it()),
        ];
        let failures = [
            RuntimeError::OwnedElsewhere { resource: it(), by: worker() },
            RuntimeError::Audit(AuditFailure { path: it(), detail: it() }),
            RuntimeError::BadText { text: Hash::of("it"), detail: it() },
            RuntimeError::NoServer(it()),
            RuntimeError::NoSession(it()),
            RuntimeError::NotCleared { detail: it() },
            RuntimeError::NoPoint { session, turns: 3 },
            RuntimeError::NothingRewound(session),
            RuntimeError::NothingToContinue(it()),
            RuntimeError::Elsewhere { session, cwd: it() },
            RuntimeError::TooLong { bytes: 7, max: 6 },
            RuntimeError::Silent,
            RuntimeError::RoleTooLow { user: it(), role: Role::Viewer, least: Role::Owner },
            RuntimeError::NoQuestion(it()),
            RuntimeError::PlanStopping(plan),
            RuntimeError::PlanReplaced(plan),
            RuntimeError::Ambiguous { text: it(), among: names(2) },
            no_reader(0),
            no_reader(1),
            no_reader(NAMES_SHOWN_MAX + 2),
            RuntimeError::SeveralTasks { name: it(), tasks: names(2) },
            not_stopped(0),
            not_stopped(NAMES_SHOWN_MAX + 2),
            gone(""),
            gone("done"),
            RuntimeError::MailFull { name: it(), max: 7 },
            RuntimeError::NoPlan(plan),
            RuntimeError::NoPlanTask(it()),
            RuntimeError::QueueFull(7),
            untaken(0),
            untaken(2),
            RuntimeError::Behind(7),
            RuntimeError::Root { path: it(), detail: it() },
        ];
        for failure in failures.into_iter().chain(worktrees.map(RuntimeError::Worktree)) {
            assert_eq!(Lang::En.runtime_failure(&failure), failure.to_string());
            let chinese = Lang::Zh.runtime_failure(&failure);
            assert!(is_chinese(&chinese), "{chinese}");
        }
    }

    #[test]
    fn failures_of_the_journal_are_the_same_on_screens_and_for_developers() {
        let (it, path) = (|| "it".to_owned(), || "it".into());
        let failures = [
            JournalError::Owned { resource: it(), by: worker() },
            JournalError::DiskFull { path: path() },
            JournalError::Unwritable { path: path(), detail: it() },
            JournalError::Exists { path: path() },
            JournalError::InUse { path: path(), by: it() },
            JournalError::NoFolder { path: path() },
            JournalError::Absent { path: path() },
            JournalError::Removed { path: path() },
            JournalError::Newer { path: path(), found: 9, known: 7 },
            JournalError::Busy { path: path() },
        ];
        for failure in failures {
            assert_eq!(Lang::En.journal_failure(&failure), failure.to_string());
            let chinese = Lang::Zh.journal_failure(&failure);
            assert!(is_chinese(&chinese), "{chinese}");
        }
    }

    #[test]
    fn an_obstacle_is_the_same_on_screens_and_for_developers() {
        let old = Obstacle::OldLandlock(LandlockPart::ALL.map(|(part, _)| part).to_vec());
        for why in [Obstacle::NoBubblewrap, Obstacle::NoControlGroup("it".into()), Obstacle::NoLandlock, old] {
            assert_eq!(Lang::En.obstacle(&why), why.to_string());
            assert!(is_chinese(&Lang::Zh.obstacle(&why)));
        }
    }

    #[test]
    fn chinese_sentences_are_in_the_data_file() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let modules = std::fs::read_dir(format!("{folder}/i18n")).unwrap().map(|entry| entry.unwrap().path());
        let is_code = |path: &std::path::PathBuf| !path.ends_with("tests.rs");
        for path in modules.filter(is_code).chain([format!("{folder}/i18n.rs").into()]) {
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            let line = code.lines().find(|line| is_chinese(line));
            assert_eq!(line, None, "move the sentence in `{}` to i18n/zh.toml", path.display());
        }
    }
}
