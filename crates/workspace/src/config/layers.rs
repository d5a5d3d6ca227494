//! Lays the sources over each other, from the weakest to the strongest.
//!
//! Takes flags first, then the user's files, then the project's, so that a project's file is judged against all
//! that the user has chosen. Every value is checked, also one that a stronger source hides: a mistake should not
//! wait for the day the other file is deleted. Finds no files and turns nothing into types of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::env::Env;
use super::error::{ConfigError, Problem, quote};
use super::expand::{self, ExpandError};
use super::explain::{RejectedValue, ValueRow, ValueSource, ValueTrail};
use super::files::{ConfigFile, FileContent, FileTrust};
use super::shape::Shape;
use super::table::{self, ConfigKey};
use super::trust::{self, ProjectLimit};
use super::yaml::{self, Node, Scalar, Value};
use super::{Override, suggest};
use crate::i18n::{Lang, Translated};

/// Warnings of one start; a strange file must not flood the terminal.
const WARNINGS_MAX: usize = 20;

/// The strongest value of every key that is set somewhere.
#[derive(Default)]
pub(super) struct Values(BTreeMap<&'static str, Node>);

impl Values {
    /// The value of a key, if it is set. It has been checked with the same shape, so it can be read.
    pub(super) fn get<S: Shape>(&self, path: &str) -> Option<S::Value> {
        self.0.get(path).and_then(S::read)
    }
}

/// The sources so far.
pub(super) struct Layers<'a> {
    env: &'a Env,
    values: Values,
    trail: ValueTrail,
    flags: Vec<(ValueRow, Node)>,
    seen: Vec<PathBuf>,
    problems: Vec<Problem>,
    warnings: Vec<Translated>,
    warnings_dropped: usize,
}

impl<'a> Layers<'a> {
    pub(super) fn new(env: &'a Env) -> Self {
        Self {
            env,
            values: Values::default(),
            trail: ValueTrail::default(),
            flags: Vec::new(),
            seen: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            warnings_dropped: 0,
        }
    }

    /// Takes one value from the command line. The shell has already expanded it.
    pub(super) fn flag(&mut self, flag: Override) {
        let Some(key) = table::key(&flag.key) else {
            let near = suggest::nearest(&flag.key);
            return self.problems.push(Problem::UnknownKey { place: flag.name, key: quote(&flag.key), near });
        };
        let word = Node::word(&flag.value);
        // What no word can be, a list or a map, is written as in a file.
        let tree = || yaml::parse(&flag.value).ok().filter(|node| (key.check)(node).is_ok());
        let node = if (key.check)(&word).is_ok() { word } else { tree().unwrap_or(word) };
        match (key.check)(&node) {
            Ok(shown) => {
                self.flags.push((ValueRow { path: key.path, shown, source: ValueSource::Flag(flag.name) }, node))
            }
            Err(wanted) => self.problems.push(mistake(flag.name, key, wanted, &node)),
        }
    }

    /// Takes one file; a stronger one comes later.
    pub(super) fn file(&mut self, file: ConfigFile) {
        let real = file.path.canonicalize().ok();
        // Started in the user's own folder, the project's file is the user's: it has been read, and it is trusted.
        if !file.named && real.as_ref().is_some_and(|real| self.seen.contains(real)) {
            return;
        }
        let node = match file.content() {
            Ok(FileContent::Ours(node)) => node,
            Ok(FileContent::Missing) => return,
            Ok(FileContent::Foreign(why)) => return self.trail.skipped.push((file.shown, why)),
            Err(problem) => return self.problems.push(problem),
        };
        self.seen.extend(real);
        self.trail.read.push(file.shown.clone());
        self.map(&Arc::new(file), "", node);
    }

    /// Everything that was found, or everything that is wrong.
    pub(super) fn finish(mut self) -> Result<(Values, ValueTrail, Vec<Translated>), ConfigError> {
        if !self.problems.is_empty() {
            return Err(ConfigError { problems: self.problems });
        }
        for (row, node) in std::mem::take(&mut self.flags) {
            self.set(row, node);
        }
        if self.warnings_dropped > 0 {
            let dropped = self.warnings_dropped;
            self.warnings.push(Translated::new(|lang| lang.more_warnings(dropped)));
        }
        Ok((self.values, self.trail, self.warnings))
    }

    /// The whole file (no section yet) or one section of it.
    fn map(&mut self, file: &Arc<ConfigFile>, section: &str, node: Node) {
        // A section whose lines are all commented out is null.
        if node.is_null() {
            return;
        }
        let Value::Map(entries) = node.value else {
            let key = Translated::new(|lang| if section.is_empty() { lang.key_file() } else { section }.to_owned());
            let (place, found) = (file.place(node.spot), found(&node));
            let wanted = Translated::new(|lang| lang.wanted_settings().to_owned());
            return self.problems.push(Problem::Value { place, key, wanted, found });
        };
        for (name, node) in entries {
            if let Some(key) = table::find(section, &name.text) {
                self.entry(file, key, node);
            } else if section.is_empty() && table::SECTIONS.contains(&name.text.as_str()) {
                self.map(file, &name.text, node);
            } else {
                self.unknown(file, section, &name);
            }
        }
    }

    fn entry(&mut self, file: &Arc<ConfigFile>, key: &'static ConfigKey, mut node: Node) {
        let stranger = file.standing != FileTrust::Trusted;
        if stranger && let Some(why) = trust::by_key(key.path).or_else(|| trust::by_names(&expand::names(&node))) {
            return self.hold(file, key, &node, why);
        }
        let names = match expand::fill(&mut node, self.env) {
            Ok(names) => names,
            Err((_, ExpandError::Unset(name))) if key.secret => {
                node.value = Node::word("null").value;
                vec![name]
            }
            Err((spot, flaw)) => {
                let (place, path) = (file.place(spot), key.path.to_owned());
                return self.problems.push(match flaw {
                    ExpandError::Unset(name) => Problem::Unset { place, key: path, name },
                    ExpandError::Form(_) if key.secret => {
                        Problem::Reference { place, key: path, text: "${…".to_owned() }
                    }
                    ExpandError::Form(text) => Problem::Reference { place, key: path, text: quote(&text) },
                });
            }
        };
        let shown = match (key.check)(&node) {
            Ok(shown) => shown,
            Err(wanted) => return self.problems.push(mistake(file.place(node.spot), key, wanted, &node)),
        };
        let settled = self.flags.iter().any(|(row, _)| row.path == key.path);
        if stranger
            && !settled
            && let Some(why) = trust::by_value(key.path, &shown, |path| self.chosen(path))
        {
            return self.hold(file, key, &node, why);
        }
        let source = ValueSource::File { file: Arc::clone(file), line: node.spot.line, names };
        self.set(ValueRow { path: key.path, shown, source }, node);
    }

    fn set(&mut self, row: ValueRow, node: Node) {
        self.values.0.insert(row.path, node);
        self.trail.rows.push(row);
    }

    /// What the user has set, by flag or in a trusted file.
    fn chosen(&self, path: &str) -> Option<String> {
        let flags = self.flags.iter().map(|(row, _)| row);
        let mut rows = self.trail.rows.iter().chain(flags).rev();
        rows.find(|row| row.path == path && row.source.is_trusted()).map(|row| row.shown.clone())
    }

    fn hold(&mut self, file: &ConfigFile, key: &ConfigKey, node: &Node, why: ProjectLimit) {
        let place = format!("{}:{}", file.shown, node.spot.line);
        if !trust::is_harmless(key.path, node, |path| self.chosen(path)) {
            let own = self.env.home().map(|home| format!("`{}`", home.join("config.yaml").display()));
            self.warn(|lang| {
                let own = own.as_deref().unwrap_or(lang.own_config_file());
                lang.setting_held_back(&place, key.path, lang.project_limit(why), own, &file.shown)
            });
        }
        let shown = if key.secret { "***".to_owned() } else { found(node).get(Lang::En).to_owned() };
        self.trail.held.push(RejectedValue { path: key.path, place, shown, why });
    }

    fn unknown(&mut self, file: &ConfigFile, section: &str, name: &yaml::Name) {
        let path = if section.is_empty() { name.text.clone() } else { format!("{section}.{}", name.text) };
        let place = file.place(name.spot);
        let (key, near) = (table::key(&path), suggest::nearest(&path));
        self.warn(|lang| {
            let advice = match (key, near) {
                // `llm.timeout: 5` at the top: the right key in the wrong form.
                (Some(key), _) => lang.setting_write_inside(key.name(), key.section()),
                (None, Some(near)) => lang.near_name(near),
                (None, None) => lang.setting_see_keys().to_owned(),
            };
            lang.headed(&place, lang.unknown_key(quote(&path), advice))
        });
    }

    fn warn(&mut self, words: impl Fn(Lang) -> String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(Translated::new(words));
        } else {
            self.warnings_dropped += 1;
        }
    }
}

fn mistake(place: String, key: &ConfigKey, wanted: Translated, node: &Node) -> Problem {
    let found = if key.secret { Translated::new(|lang| lang.found_other().to_owned()) } else { found(node) };
    Problem::Value { place, key: key.path.into(), wanted, found }
}

/// What stands there, in words for a message.
pub fn found(node: &Node) -> Translated {
    Translated::new(|lang| match &node.value {
        Value::Scalar(Scalar { json, .. }) if json.is_null() => lang.found_nothing().to_owned(),
        Value::Scalar(Scalar { text, .. }) => format!("`{}`", quote(text)),
        Value::Map(_) => lang.found_map().to_owned(),
        Value::List(_) => lang.found_list().to_owned(),
    })
}
