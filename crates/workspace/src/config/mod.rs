//! Settings: many sources, resolved once, into one typed value.
//!
//! From the weakest to the strongest: built-in defaults, the user's files, the project's files (or the one named with
//! `--config`), flags. [`load`] reads them all, checks every value and says where each one came from
//! ([`Config::explain`]). No other module reads a settings file or the environment. The annotated default file
//! (`config/config.yaml`) is the manual; `table.rs` is the only place that defines keys.
//!
//! It starts nothing, makes no network request, and does not read `llm.api_key_file` or run `llm.api_key_helper`: it
//! hands them over. Files that come with a project are not trusted; `trust.rs` lists the settings that they may not
//! choose.

pub mod choice;
mod env;
mod error;
pub mod expand;
mod explain;
mod files;
mod layers;
mod shape;
mod suggest;
mod table;
#[cfg(test)]
mod tests;
mod time;
pub mod trust;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::i18n::Lang;

pub use max_team_runtime::yaml;

pub use env::Env;
pub use error::{ConfigError, Problem, quote};
pub use files::{ConfigFile, FileTrust};
pub use layers::found;
pub use shape::{Count, Shape, Switch, Usd};
pub use table::{Audit, Journal, Keys, Limits, Llm, Memory, Permissions, Project, Server, Team, Tools, Ui};
pub use time::{Time, duration};

use choice::Language;
pub use explain::SettingRow;
use explain::{ValueSource, ValueTrail};
use layers::Layers;

/// The annotated default file: the manual of every key. It is not parsed at start-up; a test keeps it equal to the
/// defaults in the table.
pub const DEFAULT_FILE: &str = include_str!("../../../../config/config.yaml");

/// Where settings come from.
#[derive(Debug)]
pub struct Sources<'a> {
    /// The environment of the process.
    pub env: &'a Env,
    /// The folder we were started in, as an absolute path.
    pub cwd: &'a Path,
    /// `--config FILE`: must exist, is trusted, and stands in for the project's own files.
    pub explicit: Option<&'a Path>,
    /// Values from flags; of two for one key, the later counts.
    pub overrides: Vec<Override>,
}

/// One value that was given on the command line.
#[derive(Debug, Clone)]
pub struct Override {
    /// `llm.default_model`.
    pub key: String,
    /// As it was typed.
    pub value: String,
    /// How it is called in messages: `--model`.
    pub name: String,
}

/// All settings, with every path absolute.
#[derive(Clone)]
pub struct Config {
    /// The web page.
    pub server: Server,
    /// The model and the way to it.
    pub llm: Llm,
    /// The audit file.
    pub audit: Audit,
    /// The folder that is worked on.
    pub project: Project,
    /// What survives a crash.
    pub journal: Journal,
    /// Where work stops.
    pub limits: Limits,
    /// What agents may do unasked.
    pub team: Team,
    pub permissions: Permissions,
    /// What is remembered.
    pub memory: Memory,
    /// What tools may ask beyond the project.
    pub tools: Tools,
    /// What keys do.
    pub keys: Keys,
    pub ui: Ui,
    /// Rows for the catalogue of providers and models, as written; they are checked when the catalogue is built.
    pub catalog: serde_json::Value,
    /// What the user should be told, in their language: unknown keys and values that were held back.
    pub warnings: Vec<String>,
    trail: ValueTrail,
}

/// Who chose a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// Not set anywhere, so the default applies.
    Nobody,
    /// The user, or a source that the user vouches for.
    User,
    /// A file that came with the project.
    Project,
}

/// Reads and resolves all sources.
pub fn load(sources: Sources<'_>) -> Result<Config, ConfigError> {
    let Sources { env, cwd, explicit, overrides } = sources;
    let mut layers = Layers::new(env);
    for flag in overrides {
        layers.flag(flag);
    }
    for file in files::of_user(env, cwd).into_iter().chain(files::of_project(cwd, explicit)) {
        layers.file(file);
    }
    let (values, trail, warnings) = layers.finish()?;
    let ui = Ui::new(&values);
    let lang = ui.lang(env);
    let mut config = Config {
        server: Server::new(&values),
        llm: Llm::new(&values),
        audit: Audit::new(&values),
        project: Project::new(&values),
        journal: Journal::new(&values),
        limits: Limits::new(&values),
        team: Team::new(&values),
        permissions: Permissions::new(&values),
        memory: Memory::new(&values),
        tools: Tools::new(&values),
        keys: Keys::new(&values),
        ui,
        catalog: table::catalog(&values),
        warnings: warnings.iter().map(|warning| warning.get(lang).to_owned()).collect(),
        trail,
    };
    config.settle(env, cwd);
    Ok(config)
}

impl Config {
    /// Where values came from: of one key (`llm.timeout`), of one section (`llm`), or of all.
    pub fn explain(&self, key: Option<&str>, lang: Lang) -> Result<String, ConfigError> {
        self.trail.explain(key, lang)
    }

    /// All settings as they are in effect, with their sources.
    pub fn list(&self) -> Vec<SettingRow> {
        self.trail.list()
    }

    /// The files with settings that were read, the weakest first.
    pub fn files(&self) -> &[String] {
        &self.trail.read
    }

    /// Who chose a value.
    pub fn chooser(&self, key: &str) -> ChosenBy {
        match self.trail.source(key) {
            None => ChosenBy::Nobody,
            Some(source) if source.is_trusted() => ChosenBy::User,
            Some(_) => ChosenBy::Project,
        }
    }

    /// Whether the value came with the project, so that the user has not vouched for it.
    pub fn is_from_project(&self, key: &str) -> bool {
        self.chooser(key) == ChosenBy::Project
    }

    /// Makes paths absolute: the project below the folder we are in, the audit file below the project (or, by
    /// default, in our own folder), and the key beside the file that names it.
    fn settle(&mut self, env: &Env, cwd: &Path) {
        // Taking it apart and together again drops the `.` of the default.
        self.project.root = cwd.join(at_home(&self.project.root, env)).components().collect();
        // Without a setting, the audit file lies outside the project, so that a run leaves nothing behind there.
        let audit_base = match self.trail.source("audit.output") {
            None => env.home().map_or_else(|| self.project.root.clone(), |home| cwd.join(home)),
            Some(_) => self.project.root.clone(),
        };
        self.audit.output = audit_base.join(at_home(&self.audit.output, env));
        if let Some(key_file) = &mut self.llm.api_key_file {
            let beside = match self.trail.source("llm.api_key_file") {
                Some(ValueSource::File { file, .. }) => file.path.parent().unwrap_or(cwd),
                _ => cwd,
            };
            *key_file = beside.join(at_home(key_file, env));
        }
    }
}

impl Ui {
    /// The language of the interface: as set, else as the locale says.
    pub fn lang(&self, env: &Env) -> Lang {
        match self.language {
            Language::Zh => Lang::Zh,
            Language::En => Lang::En,
            Language::Auto => env.locale(),
        }
    }
}

/// The catalogue is left out: its rows may hold keys of other services.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("server", &self.server)
            .field("llm", &self.llm)
            .field("audit", &self.audit)
            .field("project", &self.project)
            .field("journal", &self.journal)
            .field("limits", &self.limits)
            .field("team", &self.team)
            .field("permissions", &self.permissions)
            .field("keys", &self.keys)
            .field("ui", &self.ui)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// `~/x` in the user's own folder, as a shell would have it.
fn at_home(path: &Path, env: &Env) -> PathBuf {
    match (path.strip_prefix("~"), env.user()) {
        (Ok(rest), Some(user)) => user.join(rest),
        _ => path.to_owned(),
    }
}
