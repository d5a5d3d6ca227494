//! Which files may hold settings, and what is in them.
//!
//! Knows where to look, in which order, and how far each place is trusted. `config.yaml` is a name that many
//! programs use, so a file of that name in a project is first asked whether it is ours. Nothing here judges a
//! single key, and a file is read at most once.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use max_team_tools::command::is_planted;

use super::env::Env;
use super::error::Problem;
use super::table;
use super::yaml::{self, Node, Value};
use crate::i18n::Translated;
use crate::input_file;

/// Bytes of one file; ours has about six thousand.
pub(super) const BYTES_MAX: u64 = 1 << 20;
/// The sections that other programs seldom have; `server`, `limits` or `ui` could be anyone's.
const TELLING: [&str; 3] = ["llm", "audit", "project"];

/// Who vouches for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTrust {
    /// It lies in the user's own folder, or was named on the command line.
    Trusted,
    /// It came with the project, perhaps from a stranger; its name says that it is ours.
    Project,
    /// The same under a name that other programs use too.
    Shared,
}

/// A place to look.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// How messages call it: short, and good to click on.
    pub shown: String,
    /// How far it is trusted.
    pub standing: FileTrust,
    /// Whether it was asked for, so that it must exist.
    pub named: bool,
}

/// The user's own files, the stronger one last.
pub(super) fn of_user(env: &Env, cwd: &Path) -> Vec<ConfigFile> {
    let desktop = env.xdg_config().map(|folder| folder.join("max-team"));
    let folders = desktop.into_iter().chain(env.home());
    folders
        .map(|folder| {
            let path = cwd.join(folder).join("config.yaml");
            ConfigFile { shown: path.display().to_string(), path, standing: FileTrust::Trusted, named: false }
        })
        .collect()
}

/// The project's files, the strongest one last; one that was named takes the place of them all.
pub(super) fn of_project(cwd: &Path, explicit: Option<&Path>) -> Vec<ConfigFile> {
    if let Some(path) = explicit {
        let shown = path.display().to_string();
        return vec![ConfigFile { path: cwd.join(path), shown, standing: FileTrust::Trusted, named: true }];
    }
    let places = [
        ("config/config.yaml", FileTrust::Shared),
        ("config.yaml", FileTrust::Shared),
        (".max-team/config.yaml", FileTrust::Project),
    ];
    let file = |(name, standing): (&str, _)| ConfigFile {
        path: cwd.join(name),
        shown: name.to_owned(),
        standing,
        named: false,
    };
    places.into_iter().map(file).collect()
}

/// What reading a file came to.
pub(super) enum FileContent {
    /// There is no such file.
    Missing,
    /// Another program's file; the reason is for `config explain`.
    Foreign(&'static str),
    /// Settings for us.
    Ours(Node),
}

impl ConfigFile {
    /// Reads the file, and decides whether it is ours when its name does not say so.
    pub(super) fn content(&self) -> Result<FileContent, Problem> {
        let shared = self.standing == FileTrust::Shared;
        let bytes = match self.bytes() {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(FileContent::Missing),
            Err(_) if shared => return Ok(FileContent::Foreign("it cannot be read")),
            Err(problem) => return Err(problem),
        };
        match self.parse(&bytes) {
            Ok(node) if shared && !is_ours(&node) => Ok(FileContent::Foreign("it belongs to another program")),
            Ok(node) => Ok(FileContent::Ours(node)),
            // A template or a list of documents of another program is no fault of the user's. But where a section
            // of ours begins, a slip of the pen must not make the whole file vanish.
            Err(_) if shared && !mentions_us(&bytes) => Ok(FileContent::Foreign("it belongs to another program")),
            Err(problem) => Err(problem),
        }
    }

    /// The file's bytes, one more than allowed if it is too large.
    pub fn bytes(&self) -> Result<Option<Vec<u8>>, Problem> {
        let unreadable = |cause| Problem::Unreadable { file: self.shown.clone(), cause };
        match fs::metadata(&self.path) {
            Ok(meta) if meta.is_dir() => return Err(unreadable(std::io::ErrorKind::IsADirectory.into())),
            // A link to a pipe or a device would hold us up for ever; `--config <(command)` is the user's own wish.
            Ok(meta) if !meta.is_file() && !self.named => {
                return Err(Problem::Irregular { file: self.shown.clone() });
            }
            Ok(_) if !self.named && is_planted(&self.path) => {
                return Err(Problem::Planted { file: self.shown.clone() });
            }
            Ok(_) => {}
            Err(cause) if is_absent(&cause) && !self.named => return Ok(None),
            Err(cause) => return Err(unreadable(cause)),
        }
        let mut bytes = Vec::new();
        let file = input_file::open(&self.path).map_err(unreadable)?;
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(Some(bytes))
    }

    /// The tree in the file, if it is text, YAML and not too long.
    pub fn parse(&self, bytes: &[u8]) -> Result<Node, Problem> {
        if u64::try_from(bytes.len()).is_ok_and(|length| length > BYTES_MAX) {
            return Err(Problem::TooLarge { file: self.shown.clone() });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            Problem::NotText { file: self.shown.clone(), line }
        })?;
        yaml::parse(text).map_err(|fault| Problem::Syntax {
            place: self.place(fault.spot),
            message: Translated::new(|lang| lang.yaml_fault(&fault.kind)),
        })
    }

    /// `file:line:col`.
    pub fn place(&self, spot: yaml::Spot) -> String {
        format!("{}:{}:{}", self.shown, spot.line, spot.col)
    }
}

/// Also when a part of the path is a plain file: then there is nothing below it.
fn is_absent(cause: &std::io::Error) -> bool {
    matches!(cause.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Whether a file under a common name is meant for us: one of the telling sections holds a key of ours, and the
/// file does not have more keys that we do not know than keys that we do. Half a match is worse than none: taking
/// another program's file would stop the user with errors about a file that is right, or follow it by accident.
fn is_ours(node: &Node) -> bool {
    let Value::Map(top) = &node.value else { return false };
    let (mut telling, mut known, mut unknown) = (false, 0_usize, 0_usize);
    for (name, node) in top {
        match &node.value {
            Value::Map(entries) if table::SECTIONS.contains(&name.text.as_str()) => {
                for (inner, node) in entries {
                    // No key of ours in a section holds a map, so another program's `timeout: {connect: 5}` is not ours.
                    let hit = table::find(&name.text, &inner.text).is_some() && !matches!(node.value, Value::Map(_));
                    telling |= hit && TELLING.contains(&name.text.as_str());
                    *if hit { &mut known } else { &mut unknown } += 1;
                }
            }
            _ if table::SECTIONS.contains(&name.text.as_str()) || table::find("", &name.text).is_some() => {}
            _ => unknown += 1,
        }
    }
    telling && known >= unknown
}

/// The same question to a file that cannot be parsed: does a line open one of the telling sections?
fn mentions_us(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').any(|line| {
        TELLING.iter().any(|name| line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b":")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(text: &str) -> bool {
        is_ours(&yaml::parse(text).unwrap())
    }

    #[test]
    fn the_seeds_own_file_is_ours() {
        let text =
            "server: {port: 8080, mode: cli}\nllm: {provider: anthropic, timeout: 120s}\naudit: {enabled: true}\n";
        assert!(ours(text));
        assert!(ours("llm: {default_model: x}\n"));
        assert!(ours("llm: {provider: x, modle: y}\n"), "a slip does not make it foreign");
    }

    #[test]
    fn other_programs_files_are_not() {
        let foreign = [
            "",
            "- a\n- b\n",
            "server: {port: 8080}\nspring: {application: {name: x}}\n",
            "server: {port: 8080}\n",
            "ui: {language: en}\nlimits: {rounds: 3}\n",
            "project: {name: x, version: 1}\n",
            "project: shop\n",
            "llm: gpt\n",
            "llm: {provider: openai, temperature: 1, top_p: 1, stream: true}\n",
            "project: {root: .}\nplugins: []\ntheme: x\nnav: []\n",
        ];
        for text in foreign {
            assert!(!ours(text), "{text}");
        }
    }

    #[test]
    fn broken_files_are_asked_line_by_line() {
        assert!(mentions_us(b"# x\nllm:\n  a: [\n"));
        assert!(!mentions_us(b"{{ if .Values.llm: }}\n  llm: x\nllms: 1\n"));
    }
}
