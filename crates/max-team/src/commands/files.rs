//! `files`: what sessions and agents keep in folders of their own, looked at and cleared from any terminal.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use max_team_core::agent_dirs::AgentDir;
use max_team_tools::{AgentStore, DirUsage, StoredFile, ToolError};
use serde_json::{Value, json};

use super::context::JournalContext;
use super::table::table;
use crate::args::{self, FolderOwner};
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::bytes;
use max_team_workspace::format::local;
use max_team_workspace::setup::{self, AppEnv};

pub(crate) fn run(place: &AppEnv, command: &args::Files) -> anyhow::Result<Exit> {
    let config = place.settings(None, Vec::new())?;
    let root = setup::project_root(place, &config)?;
    let shelf = AgentFolders { context: JournalContext::open(place)?, home: place.home.clone(), root };
    match command {
        args::Files::List { whose, json } => shelf.list(whose, *json)?,
        args::Files::Show { path, whose, json } => shelf.show(path, whose, *json)?,
        args::Files::Path { whose } => super::print(&format!("{}\n", shelf.chosen(whose)?.path().display()))?,
        args::Files::Clear { whose } => shelf.clear(whose)?,
    }
    Ok(Exit::Ok)
}

struct AgentFolders {
    context: JournalContext,
    /// The user's folder, and the project's.
    home: PathBuf,
    root: PathBuf,
}

impl AgentFolders {
    /// The folder that is meant.
    fn chosen(&self, whose: &FolderOwner) -> Result<AgentStore, CliError> {
        if let Some(agent) = &whose.agent {
            return self.of_agent(agent);
        }
        let session = match &whose.session {
            Some(id) => setup::session(&self.context.team, id)?,
            None => self.context.latest_session(&self.root)?,
        };
        Ok(AgentStore::files(&self.home, session))
    }

    /// An agent's folder, by its name or by what `list` can show of it.
    fn of_agent(&self, agent: &str) -> Result<AgentStore, CliError> {
        let own = AgentStore::data(&self.home, &self.root, agent);
        if own.path().exists() {
            return Ok(own);
        }
        let mut like = self.all(AgentDir::Data)?;
        like.retain(|store| store.whose() == agent);
        match like.as_slice() {
            [only] => Ok(only.clone()),
            _ => Ok(own),
        }
    }

    fn all(&self, folder: AgentDir) -> Result<Vec<AgentStore>, CliError> {
        let failed = |error: std::io::Error| CliError::new(Exit::Failed, error.to_string());
        AgentStore::all(&self.home, folder, &self.root).map_err(failed)
    }

    fn list(&self, whose: &FolderOwner, json: bool) -> Result<(), CliError> {
        let is_one = whose.session.is_some() || whose.agent.is_some();
        let stores = match is_one {
            true => vec![self.chosen(whose)?],
            false => self.all(AgentDir::Files)?.into_iter().chain(self.all(AgentDir::Data)?).collect(),
        };
        let mut found = Vec::new();
        for store in stores {
            let held = store.held().map_err(failed)?;
            if !held.files.is_empty() {
                found.push((store, held));
            }
        }
        if json {
            let all: Value = found.iter().map(|(store, held)| as_json(store, held)).collect();
            return super::print(&format!("{all:#}\n"));
        }
        let lang = self.context.lang;
        match found.as_slice() {
            [] => super::print(&format!("{}\n", lang.nothing_kept())),
            [(store, held)] if is_one => {
                let name = |file: &StoredFile| format!("{}/{}", store.folder().name(), file.path.display());
                let row = |file: &StoredFile| vec![local(at_ms(file.changed_at)), size(file.bytes), name(file)];
                let text = table(&lang.kept_file_heads(), &held.files.iter().map(row).collect::<Vec<_>>());
                super::print(&format!("{text}{}", if held.more { "…\n" } else { "" }))
            }
            found => {
                let row = |(store, held): &(AgentStore, DirUsage)| {
                    let last = held.files.iter().map(|file| at_ms(file.changed_at)).max().unwrap_or_default();
                    let (name, count) = (store.folder().name().to_owned(), held.files.len().to_string());
                    vec![name, count, size(held.bytes()), local(last), store.whose().to_owned()]
                };
                super::print(&table(&lang.kept_heads(), &found.iter().map(row).collect::<Vec<_>>()))
            }
        }
    }

    fn show(&self, path: &str, whose: &FolderOwner, json: bool) -> Result<(), CliError> {
        let is_data = AgentDir::split(path).is_some_and(|(folder, _)| folder == AgentDir::Data);
        if is_data && whose.agent.is_none() {
            return Err(CliError::said(Exit::Usage, |lang| lang.whose_data().to_owned()));
        }
        let store = self.chosen(whose)?;
        let content = store.read(path).map_err(failed)?;
        let text = String::from_utf8_lossy(&content);
        if json {
            let told = json!({ "folder": store.folder().name(), "whose": store.whose(), "path": path,
                "bytes": content.len(), "text": text });
            return super::print(&format!("{told:#}\n"));
        }
        // A terminal gets the text without control characters, since a model wrote it; a pipe gets the file unchanged.
        let is_seen = std::io::IsTerminal::is_terminal(&std::io::stdout());
        if is_seen { super::print(&clean(&text)) } else { super::print_bytes(&content) }
    }

    fn clear(&self, whose: &FolderOwner) -> Result<(), CliError> {
        if whose.session.is_none() && whose.agent.is_none() {
            return Err(CliError::said(Exit::Usage, |lang| lang.clear_whose().to_owned()));
        }
        let store = self.chosen(whose)?;
        if let Some(agent) = whose.agent.as_deref().filter(|_| !store.path().exists()) {
            return Err(CliError::said(Exit::Failed, |lang| lang.agent_keeps_no_files(clean_line(agent))));
        }
        let count = store.clear().map_err(failed)?;
        super::print(&format!("{}\n", self.context.lang.files_cleared(count)))
    }
}

fn failed(error: ToolError) -> CliError {
    CliError::new(Exit::Failed, error.to_string())
}

fn size(count: u64) -> String {
    bytes(usize::try_from(count).unwrap_or(usize::MAX))
}

fn at_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn as_json(store: &AgentStore, held: &DirUsage) -> Value {
    let file = |file: &StoredFile| json!({ "path": file.path.to_string_lossy(), "bytes": file.bytes, "changed_at_ms": at_ms(file.changed_at) });
    let files: Vec<Value> = held.files.iter().map(file).collect();
    json!({ "folder": store.folder().name(), "whose": store.whose(), "path": store.path().to_string_lossy(),
        "bytes": held.bytes(), "files": files, "more": held.more })
}
