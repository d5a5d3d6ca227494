//! From arguments and settings to a runtime: the place, the settings, the journal, the model, the team.
//!
//! Each step is taken only by commands that need it, and once. What a step finds wrong is a `CliError`: an exit code and
//! words that say what to do next.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::agent::{ALL_SOURCES, Compaction, Definition, Settings};
use max_team_core::delegation::offer::hidden_from;
use max_team_core::id::{SessionId, WorkerId};
use max_team_core::message::{Principal, Role};
use max_team_llm::Router;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::query;
use max_team_runtime::skills::SKILL;
use max_team_runtime::storage::{JournalError, WorkerInfo};
use max_team_runtime::{
    AuditLevel, AuditOptions, Options, Remember, Runtime, RuntimeError, TeamHandle, TeamReader, new_id,
};
use max_team_tools::command::{self, Engine};
use max_team_tools::{ChromiumRenderer, RecordedPages, Registry, Services, ToolSources, project};

use crate::config::choice::{Durability, ExtractWhen, Language, Level};
use crate::config::{self, Config, Env, Override, Sources};
use crate::exit::{CliError, Exit};
use crate::i18n::Lang;
use crate::models::ChosenModel;
use crate::selection::Selection;
use crate::{agents, found_backups, permissions, skills};

/// The words that the lead is given first.
const SOLO_PROMPT: &str = include_str!("../../../prompts/solo.md");
/// The tools of the agent with hands.
const SOLO_TOOLS: [&str; 17] = [
    "agent",
    "edit_file",
    "git_diff",
    "git_log",
    "git_status",
    "list_dir",
    "memory_read",
    "read_file",
    "run_shell",
    "run_test",
    "search_code",
    "send_message",
    SKILL,
    "task",
    "web_fetch",
    "web_search",
    "write_file",
];

/// The first argument with which the program starts itself to read a document in a process with next to no rights.
pub const DOCUMENT_READER: &str = "__read_document";

/// Where the program was started: the environment, the current directory, our own folder.
#[derive(Debug, Clone)]
pub struct AppEnv {
    pub env: Env,
    pub cwd: PathBuf,
    pub home: PathBuf,
    /// The language that was asked for; it overrides the settings.
    pub wished: Option<String>,
    /// Tells the user what is odd about files and settings.
    pub notice: fn(&str),
}

impl AppEnv {
    /// Looks at the process's own surroundings: the only place that reads the environment.
    pub fn here(notice: fn(&str)) -> Result<Self, CliError> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let env: Env = std::env::vars_os().filter_map(text).collect();
        max_team_tools::set_time_zone(env.get("TZ"), env.get("TZDIR"));
        let cwd = std::env::current_dir()
            .map_err(|error| CliError::said(Exit::Failed, |lang| lang.folder_unusable(lang.io_fault(&error))))?;
        let home = env.home().ok_or_else(|| CliError::said(Exit::Config, |lang| lang.no_home_folder().to_owned()))?;
        Ok(Self { env, cwd: canonical(&cwd), home: std::path::absolute(&home).unwrap_or(home), wished: None, notice })
    }

    /// Tells the user.
    pub fn tell(&self, words: &str) {
        (self.notice)(words);
    }

    /// Refuses a current directory, or a variable that names one of our folders, that is not UTF-8.
    pub fn check_names(&self) -> Result<(), CliError> {
        for name in Env::FOLDERS {
            if let Some(value) = std::env::var_os(name) {
                check_name(Path::new(&value), Some(name))?;
            }
        }
        check_name(&self.cwd, None)
    }

    /// The same, speaking a language that was asked for.
    pub fn speaking(self, wished: Option<String>) -> Self {
        Self { wished, ..self }
    }

    /// Reads the settings.
    pub fn settings(&self, explicit: Option<&Path>, mut overrides: Vec<Override>) -> Result<Config, CliError> {
        let wished = self.wished.clone();
        let spoken = |value| Override { key: "ui.language".to_owned(), value, name: "--lang".to_owned() };
        overrides.extend(wished.map(spoken));
        let sources = Sources { env: &self.env, cwd: &self.cwd, explicit, overrides };
        let mut config = config::load(sources)?;
        if !config.project.sandbox {
            config.warnings.push(self.lang(&config).setting_no_sandbox().to_owned());
        }
        Ok(config)
    }

    /// Opens the journal.
    pub fn storage(&self, strength: Durability) -> Result<Storage, JournalError> {
        Storage::open(&self.home, strength == Durability::Full)
    }

    /// Opens the journal for commands that mostly read; where nothing can be written, those that write say so.
    pub fn storage_to_read(&self) -> Result<Storage, JournalError> {
        Storage::open_read_only(&self.home)
    }

    /// Opens the journal to work with it. One that was emptied is told of: what is missing is not new.
    pub fn begin(&self, config: &Config) -> Result<Storage, CliError> {
        if let Some(words) = self.emptied(self.lang(config), Some(&config.audit.output)) {
            self.tell(&words);
        }
        self.storage(config.journal.sync).map_err(|error| stop(&error))
    }

    /// What is to be said of a journal that is empty where something shows that it was not.
    pub fn emptied(&self, lang: Lang, audit: Option<&Path>) -> Option<String> {
        let path = self.home.join("journal.db");
        let log = self.home.join("journal.db-wal");
        let is_filled = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
        if !path.is_file() || is_filled(&path) || is_filled(&log) {
            return None;
        }
        let copies = found_backups::beside(&path);
        let has_any = |folder: &PathBuf| std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
        let folders = ["logs", "files"].map(|name| self.home.join(name)).into_iter().find(has_any);
        let trace = folders.or_else(|| audit.map(Path::to_owned).filter(|file| is_filled(file)));
        let trace = trace.map(|trace| trace.display().to_string()).or_else(|| copies.first().cloned())?;
        Some(lang.journal_emptied(&path.display().to_string(), &trace, &copies))
    }

    /// Whether to paint.
    pub fn color(&self, config: &Config, off: bool) -> bool {
        use crate::config::choice::Color;
        let plain = off || self.env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
        match config.ui.color {
            _ if plain => false,
            Color::Never => false,
            Color::Always => true,
            Color::Auto => self.env.get("TERM") != Some("dumb"),
        }
    }

    /// The language of the interface: as set, else as the locale says.
    pub fn lang(&self, config: &Config) -> Lang {
        if config.ui.language == Language::Auto { self.locale() } else { config.ui.lang(&self.env) }
    }

    /// The interface's language where no other setting is needed. Unreadable settings are not reported here: the
    /// locale decides then.
    pub fn speaks(&self) -> Lang {
        self.settings(None, Vec::new()).map_or_else(|_| self.locale(), |config| self.lang(&config))
    }

    fn locale(&self) -> Lang {
        match self.wished.as_deref() {
            Some("zh") => Lang::Zh,
            Some("en") => Lang::En,
            _ => self.env.locale(),
        }
    }

    /// Who sits here.
    pub fn principal(&self, door: &str) -> Principal {
        let user = self.env.get("USER").filter(|user| !user.is_empty()).unwrap_or("owner").to_owned();
        Principal { door: door.to_owned(), user, role: Role::Owner }
    }
}

/// The agent that answers if no other is named.
pub fn solo() -> Definition {
    let tools = SOLO_TOOLS.map(str::to_owned).to_vec();
    Definition {
        name: "max".into(),
        role: "assistant".into(),
        prompt: SOLO_PROMPT.into(),
        hidden_tools: hidden_from(&tools, SOLO_PROMPT),
        tools,
        sources: vec![ALL_SOURCES.to_owned()],
        ..Definition::default()
    }
}

/// What the agent works under.
pub fn settings_for(chosen: &ChosenModel, config: &Config, structured: bool) -> Result<Settings, CliError> {
    let unpriced =
        [Some(&chosen.model), chosen.fallback.as_ref()].into_iter().flatten().find(|model| model.price.is_none());
    let budget_nano = match (config.limits.budget_usd, unpriced) {
        (Some(_), Some(model)) => {
            return Err(CliError::said(Exit::Config, |lang| lang.budget_needs_price(&model.name)));
        }
        (Some(dollars), None) => Some(max_team_llm::nano_dollars(dollars).unwrap_or(u64::MAX)),
        (None, _) => None,
    };
    Ok(Settings {
        fallback: chosen.fallback.clone(),
        mode: config.permissions.mode,
        rounds_max: config.limits.rounds,
        retries_max: config.llm.max_retries,
        budget_nano,
        structured,
        compaction: Compaction {
            at_percent: u64::from(config.limits.compact_at),
            model: chosen.fast.clone().filter(|fast| fast.price.is_some() || budget_nano.is_none()),
        },
        ..Settings::new(chosen.model.clone())
    })
}

/// The same with what settings files and flags say about permissions; the user is told what is wrong with them.
pub fn permitted(
    place: &AppEnv,
    config: &Config,
    root: &Path,
    flags: &Selection,
    settings: Settings,
) -> Result<Settings, CliError> {
    let opened = &config.tools.private_hosts;
    let given = permissions::RuleFlags { allowed: &flags.allowed_tools, denied: &flags.disallowed_tools, opened };
    let loaded = permissions::load(place, root, &given)?;
    let (mode, note) = loaded.mode(settings.mode, config.chooser("permissions.mode"));
    loaded.warnings.iter().for_each(|warning| place.tell(warning));
    if let Some(note) = note {
        place.tell(note.get(place.lang(config)));
    }
    let agents = flags.agents.as_ref().filter(|given| !agents::is_text(given));
    let given = flags.config.iter().chain(agents);
    let given = given.map(|file| place.cwd.join(file)).chain([config.audit.output.clone()]);
    let guarded = given.flat_map(|file| names(&file)).collect();
    let permissions = max_team_core::policy::Permissions { guarded, ..loaded.permissions };
    let settings = with_sandbox(config, settings);
    Ok(Settings { mode, permissions, tests: test_commands(config, root), ..settings })
}

/// The settings with what the sandbox of commands can do here.
pub fn with_sandbox(config: &Config, settings: Settings) -> Settings {
    let (sandboxed, unshielded) = sandbox_powers(config);
    Settings { sandboxed, unshielded, ..settings }
}

/// Whether commands run in a sandbox whose limits verdicts rely on, and whether it leaves protected files unprotected.
pub fn sandbox_powers(config: &Config) -> (bool, bool) {
    // To find out, a sandbox is built: not where commands run without one.
    let engine = if config.project.sandbox { command::engine().ok() } else { None };
    let unshielded = engine == Some(Engine::Landlock);
    (unshielded || engine.is_some_and(Engine::has_namespaces), unshielded)
}

/// The test commands of the project, which need no question while the sandbox is on.
pub fn test_commands(config: &Config, root: &Path) -> Vec<Vec<String>> {
    if config.project.sandbox { project::test_commands(&project::detect(root)) } else { Vec::new() }
}

/// A file as it is called, and where that leads.
fn names(file: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut names = vec![text(&file.components().collect::<PathBuf>())];
    names.extend(file.canonicalize().ok().map(|real| text(&real)).filter(|real| !names.contains(real)));
    names
}

/// Finds a session by its id or a piece of it.
pub fn session(team: &TeamReader, id: &str) -> Result<SessionId, CliError> {
    known(team, id)?.ok_or_else(|| failed(RuntimeError::NoSession(id.to_owned())))
}

/// The same where it may be none; one that was forgotten is said to have been.
pub fn known(team: &TeamReader, id: &str) -> Result<Option<SessionId>, CliError> {
    if let Some(found) = team.ask(query::FindSession { text: id.to_owned() }).map_err(failed)? {
        return Ok(Some(found));
    }
    match team.ask(query::ForgottenSession { text: id.to_owned() }).map_err(failed)? {
        Some(gone) => Err(CliError::said(Exit::Failed, |lang| lang.was_forgotten(&gone))),
        None => Ok(None),
    }
}

/// This process, as others are told of it.
pub fn worker_info(place: &AppEnv, what: &str) -> WorkerInfo {
    WorkerInfo {
        id: WorkerId::new(new_id()),
        pid: std::process::id(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        started_at_ms: jiff::Timestamp::now().as_millisecond(),
        what: format!("{what} in {}", place.cwd.display()),
    }
}

/// Builds the runtime over an open journal. Without `remember` nothing is extracted from conversations.
pub fn runtime(
    place: &AppEnv,
    config: &Config,
    storage: Storage,
    router: Router,
    what: &str,
    also: RuntimeParts,
) -> Result<TeamHandle, CliError> {
    if !config.project.sandbox {
        place.tell(place.lang(config).sandbox_is_off());
    }
    let strange = skills::untrusted(place, &config.project.root);
    if !strange.is_empty() {
        place.tell(&place.lang(config).skills_untrusted(&strange));
    }
    let home = place.env.user().and_then(|home| home.canonicalize().ok());
    if home.is_some() && home == config.project.root.canonicalize().ok() {
        place.tell(place.lang(config).project_is_home());
    }
    runtime_within(place, config, storage, router, what, config.project.sandbox, also)
}

/// What a runtime has beside its settings.
#[derive(Debug)]
pub struct RuntimeParts {
    /// How it looks after its memory; `None`: not at all.
    pub remember: Option<Remember>,
    /// The MCP servers.
    pub sources: Arc<dyn ToolSources>,
    /// What addresses answer in a demo, which reaches no network and none of the user's services.
    pub recorded_pages: Option<Arc<RecordedPages>>,
}

impl RuntimeParts {
    /// Without MCP servers.
    pub fn only(remember: Option<Remember>) -> Self {
        Self { remember, sources: Arc::new(Vec::new()), recorded_pages: None }
    }
}

/// Like `runtime`, but with or without a sandbox instead of by the settings.
pub fn runtime_within(
    place: &AppEnv,
    config: &Config,
    storage: Storage,
    router: Router,
    what: &str,
    sandboxed: bool,
    also: RuntimeParts,
) -> Result<TeamHandle, CliError> {
    let audit = config.audit.enabled.then(|| AuditOptions {
        path: config.audit.output.clone(),
        level: level(config.audit.level),
        within: config.is_from_project("audit.output").then(|| config.project.root.clone()),
    });
    let unwritable = |failure| CliError::said(Exit::Config, |lang| lang.audit_failure(&failure));
    audit.as_ref().map_or(Ok(()), AuditOptions::check).map_err(unwritable)?;
    let today = max_team_tools::now().date();
    let built = Runtime::build(Options {
        storage,
        process: worker_info(place, what),
        router,
        tools: Registry::builtin(),
        sources: also.sources,
        services: match also.recorded_pages {
            Some(pages) => Services { reader: document_reader(), recorded_pages: Some(pages), ..Services::default() },
            None => services(place, config)?,
        },
        home: place.home.clone(),
        others: place.env.user().map(|user| user.join(".claude")).into_iter().collect(),
        surroundings: surroundings(&place.cwd, &today.to_string()),
        walled: sandboxed,
        skills: skills::places(place),
        remember: also.remember,
        audit,
    });
    built.map_err(failed)
}

/// How the runtime looks after its memory.
pub fn remember(place: &AppEnv, config: &Config, chosen: &ChosenModel, is_chat: bool) -> Result<Remember, CliError> {
    let extracts = match config.memory.extract {
        ExtractWhen::Never => false,
        ExtractWhen::Chat => is_chat,
        ExtractWhen::Always => true,
    };
    let bad =
        |stop: CliError| CliError::said(Exit::Config, |lang| lang.setting_fault("memory.model", stop.words(lang)));
    Ok(Remember {
        recall: config.memory.recall,
        expert: extracts.then(|| agents::memory_keeper(place)).flatten(),
        model: config.memory.model.as_deref().map(|name| chosen.resolve(name)).transpose().map_err(bad)?,
        every: config.memory.every,
        notes: extracts,
    })
}

/// What tools may use beyond the project.
pub fn services(place: &AppEnv, config: &Config) -> Result<Services, CliError> {
    let tools = &config.tools;
    Ok(Services {
        loki_url: tools.loki_url.clone(),
        prometheus_url: tools.prometheus_url.clone(),
        geocode_url: tools.geocode_url.clone(),
        private_hosts: tools.private_hosts.clone(),
        source_tools_shown: tools.mcp_tools_shown,
        browser_path: tools.browser_path.as_ref().map(PathBuf::from),
        browser_profiles: tools.browser_profiles.clone(),
        profiles_dir: Some(place.home.join("browser")),
        cert_file: place.env.get("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(PathBuf::from),
        search: crate::search_service::resolve(&tools.web_search, &place.env)?,
        reader: document_reader(),
        renderer: Some(Arc::new(ChromiumRenderer)),
        recorded_pages: None,
    })
}

/// Documents are read by this very program, in a process with next to no rights.
fn document_reader() -> Vec<OsString> {
    std::env::current_exe().map(|program| vec![program.into(), DOCUMENT_READER.into()]).unwrap_or_default()
}

/// What every agent is told about where it is.
fn surroundings(cwd: &Path, today: &str) -> String {
    let mut text = format!("Platform: {}\nToday: {today}", std::env::consts::OS);
    let projects = project::describe(&project::detect(cwd));
    if !projects.trim().is_empty() {
        text.push_str(&format!("\nProject:\n{}", projects.trim_end()));
    }
    text
}

fn level(level: Level) -> AuditLevel {
    match level {
        Level::Debug => AuditLevel::Debug,
        Level::Info => AuditLevel::Info,
        Level::Warn => AuditLevel::Warn,
        Level::Error => AuditLevel::Error,
    }
}

/// The directory that is worked on. What came with a project is judged by where it really leads: a link must not move
/// the sandbox.
pub fn project_root(place: &AppEnv, config: &Config) -> Result<PathBuf, CliError> {
    let root = &config.project.root;
    let bad = |words: &dyn Fn(Lang) -> String| {
        CliError::said(Exit::Config, |lang| lang.setting_root_unusable(root.display(), words(lang)))
    };
    let real = root.canonicalize().map_err(|error| bad(&|lang| lang.system_fault(&error)))?;
    if config.is_from_project("project.root") && !real.starts_with(&place.cwd) {
        return Err(bad(&|lang| lang.setting_root_outside().to_owned()));
    }
    check_name(&real, None)?;
    Ok(real)
}

/// A journal's failure as the end of the program.
pub fn stop(error: &JournalError) -> CliError {
    CliError::said(Exit::Failed, |lang| told(lang, error))
}

/// A journal's failure in words; of a damaged one also what lies beside it to go on with.
pub fn told(lang: Lang, error: &JournalError) -> String {
    match error {
        JournalError::Corrupt { path, detail } => {
            lang.file_damaged(&path.display().to_string(), detail, &found_backups::beside(path))
        }
        JournalError::Absent { path } if !found_backups::beside(path).is_empty() => {
            lang.journal_failure(error) + &lang.copies_beside(&found_backups::beside(path))
        }
        error => lang.journal_failure(error),
    }
}

/// The same for one of the runtime.
pub fn failed(error: RuntimeError) -> CliError {
    let exit = match &error {
        RuntimeError::Ambiguous { .. } | RuntimeError::Silent => Exit::Usage,
        RuntimeError::Answered { .. } | RuntimeError::PlanStopping(_) | RuntimeError::PlanReplaced(_) => Exit::Denied,
        _ => Exit::Failed,
    };
    CliError::said(exit, |lang| match &error {
        RuntimeError::Journal(error) => told(lang, error),
        error => lang.runtime_failure(error),
    })
}

/// Refuses a folder whose name is not UTF-8: rules, events and the journal name folders by text, and a name with its bytes
/// replaced is another folder.
pub fn check_name(folder: &Path, variable: Option<&str>) -> Result<(), CliError> {
    if folder.to_str().is_some() {
        return Ok(());
    }
    let name = folder.as_os_str().as_encoded_bytes().escape_ascii().to_string();
    Err(CliError::said(Exit::Usage, |lang| lang.not_utf8(&name, variable)))
}

/// One name for one directory, so that `-c` finds its sessions through symbolic links.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
