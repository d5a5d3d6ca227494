//! Where every value came from: the page behind `config explain`.
//!
//! Keeps the shown form of each value, so a secret is `***` long before it gets here. A value that was hidden by a
//! stronger one, held back for safety or left in a file that is not ours is still named: nothing vanishes silently.

use std::fmt::Write as _;
use std::sync::Arc;

use max_team_core::text::is_chinese;

use super::DEFAULT_FILE;
use super::error::{ConfigError, Problem, quote};
use super::files::{ConfigFile, FileTrust};
use super::suggest;
use super::table::{self, ConfigKey};
use super::trust::ProjectLimit;
use crate::i18n::Lang;

/// Who set a value.
#[derive(Debug, Clone)]
pub(super) enum ValueSource {
    /// A line of a file, and the variables that were read for it.
    File { file: Arc<ConfigFile>, line: u64, names: Vec<String> },
    /// The command line.
    Flag(String),
}

impl ValueSource {
    /// Whether the user vouches for it.
    pub(super) fn is_trusted(&self) -> bool {
        match self {
            Self::File { file, .. } => file.standing == FileTrust::Trusted,
            Self::Flag(_) => true,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Flag(name) => name.clone(),
            Self::File { file, line, names } if names.is_empty() => format!("{}:{line}", file.shown),
            Self::File { file, line, names } => format!("{}:{line} (${{{}}})", file.shown, names.join("}, ${")),
        }
    }
}

/// One value that was set.
#[derive(Debug, Clone)]
pub(super) struct ValueRow {
    pub(super) path: &'static str,
    pub(super) shown: String,
    pub(super) source: ValueSource,
}

/// One value that was not let through.
#[derive(Debug, Clone)]
pub(super) struct RejectedValue {
    pub(super) path: &'static str,
    pub(super) place: String,
    pub(super) shown: String,
    pub(super) why: ProjectLimit,
}

/// A setting as it is in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    pub key: &'static str,
    /// Its shown form: a secret is `***`.
    pub value: String,
    pub default: String,
    /// The file and line, or the flag, that set it; none when it has its default.
    pub source: Option<String>,
    /// What it means.
    pub about: &'static str,
}

/// All that happened while loading.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueTrail {
    /// Files with settings, the weakest first.
    pub(super) read: Vec<String>,
    /// Values in the order of their strength, the weakest first.
    pub(super) rows: Vec<ValueRow>,
    /// Values of projects' files that do not count.
    pub(super) held: Vec<RejectedValue>,
    /// Files that are not ours, and why we think so.
    pub(super) skipped: Vec<(String, &'static str)>,
}

impl ValueTrail {
    /// The source that set a key; none when it has its default.
    pub(super) fn source(&self, path: &str) -> Option<&ValueSource> {
        self.rows.iter().rev().find(|row| row.path == path).map(|row| &row.source)
    }

    /// The page for one key, for one section, or for everything.
    pub(super) fn explain(&self, asked: Option<&str>, lang: Lang) -> Result<String, ConfigError> {
        let Some(asked) = asked else {
            return Ok(self.table(|_| true, lang) + &self.files(lang));
        };
        if let Some(key) = table::key(asked) {
            return Ok(self.page(key, lang));
        }
        if table::SECTIONS.contains(&asked) {
            return Ok(self.table(|key| key.section() == asked, lang));
        }
        let (place, near) = ("config explain".to_owned(), suggest::nearest(asked));
        Err(Problem::UnknownKey { place, key: quote(asked), near }.into())
    }

    /// Value and source of a key as it is in effect.
    fn effective(&self, key: &ConfigKey, lang: Lang) -> (String, String) {
        match self.rows.iter().rev().find(|row| row.path == key.path) {
            Some(row) => (quote(&row.shown), row.source.show()),
            None => (quote(&(key.default)()), lang.explained_default().to_owned()),
        }
    }

    /// All settings as they are in effect.
    pub(super) fn list(&self) -> Vec<SettingRow> {
        let row = |key: &'static ConfigKey| {
            let set = self.rows.iter().rev().find(|row| row.path == key.path);
            let default = (key.default)();
            SettingRow {
                key: key.path,
                value: set.map_or_else(|| default.clone(), |row| row.shown.clone()),
                default,
                source: set.map(|row| row.source.show()),
                about: key.doc.trim(),
            }
        };
        table::keys().map(row).collect()
    }

    fn page(&self, key: &ConfigKey, lang: Lang) -> String {
        let (value, source) = self.effective(key, lang);
        let about = match lang {
            Lang::En => key.doc.trim().to_owned(),
            Lang::Zh => chinese_doc(key).unwrap_or_else(|| key.doc.trim().to_owned()),
        };
        let mut page = format!("{} = {value}\n  {about}\n  {}\n", key.path, lang.explained_from(source));
        let mut rows: Vec<&ValueRow> = self.rows.iter().filter(|row| row.path == key.path).collect();
        if rows.pop().is_some() {
            for row in rows.iter().rev() {
                let _ = writeln!(page, "  {}", lang.explained_instead(quote(&row.shown), row.source.show()));
            }
            let _ = writeln!(page, "  {}", lang.explained_instead_of_default((key.default)()));
        }
        for held in self.held.iter().filter(|held| held.path == key.path) {
            let why = lang.project_limit(held.why);
            let _ = writeln!(page, "  {}", lang.explained_held_back(&held.shown, &held.place, why));
        }
        page
    }

    fn table(&self, wanted: impl Fn(&ConfigKey) -> bool, lang: Lang) -> String {
        let rows: Vec<(&str, String, String)> = table::keys()
            .filter(|key| wanted(key))
            .map(|key| {
                let (value, source) = self.effective(key, lang);
                (key.path, value, source)
            })
            .collect();
        let key_width = rows.iter().map(|(key, ..)| key.len()).max().unwrap_or_default();
        let value_width = rows.iter().map(|(_, value, _)| value.chars().count()).max().unwrap_or_default();
        let mut page = String::new();
        for (key, value, source) in rows {
            let _ = writeln!(page, "{key:key_width$}  {value:value_width$}  {source}");
        }
        page
    }

    fn files(&self, lang: Lang) -> String {
        let mut page = String::new();
        let held = |held: &RejectedValue| format!("{}: {}: {}", held.place, held.path, lang.project_limit(held.why));
        let blocks = [
            (lang.explained_read(), self.read.clone()),
            (lang.explained_all_held_back(), self.held.iter().map(held).collect()),
            (lang.explained_left_alone(), self.skipped.iter().map(|(file, why)| format!("{file}: {why}")).collect()),
        ];
        for (title, lines) in blocks.iter().filter(|(_, lines)| !lines.is_empty()) {
            let _ = write!(page, "\n{title}\n");
            for line in lines {
                let _ = writeln!(page, "  {line}");
            }
        }
        page
    }
}

/// What a key means, from the Chinese comments above it in the file that `config default` prints.
fn chinese_doc(key: &ConfigKey) -> Option<String> {
    let (section, name) = match key.section() {
        "" => (None, format!("{}:", key.name())),
        section => (Some(format!("{section}:")), format!("  {}:", key.name())),
    };
    let mut comments = Vec::new();
    let lines = DEFAULT_FILE.lines().skip_while(|line| section.as_ref().is_some_and(|section| line != section));
    for line in lines {
        match line.trim().strip_prefix("# ") {
            Some(comment) => comments.push(comment),
            None if line.starts_with(&name) => break,
            None => comments.clear(),
        }
    }
    let doc: String = comments.into_iter().filter(|comment| comment.chars().any(is_chinese)).collect();
    Some(doc).filter(|doc| !doc.is_empty())
}
