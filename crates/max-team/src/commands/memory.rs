//! `memory`: what is remembered, why a prompt was told of it, and ways to change it.
//!
//! The user may write everything; all of it is on the journal, from any terminal. What agents wrote is shown with the
//! words it follows from.

use std::path::{Path, PathBuf};

use max_team_core::limits::MEMORY_FILE_BYTES_MAX;
use max_team_core::memory::{Board, BoardScope, Fact, Key, KeyError, MemoryFile, Source, WriteRefusal, Writer};
use max_team_runtime::{Hit, RecalledFacts, RuntimeError, project_scope, query};
use serde_json::{Value, json};

use super::context::{JournalContext, stop, wait};
use super::table::{clip, table};
use crate::args;
use crate::headless;
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::{input_file, plan_file};

/// Columns of a value in a list.
const VALUE_MAX: usize = 80;

pub(crate) fn run(place: &AppEnv, command: &args::Memory) -> anyhow::Result<Exit> {
    let shelf = MemoryContext::open(place)?;
    match command {
        args::Memory::List { key, scope, json } => shelf.list(key.as_deref(), *scope, *json),
        args::Memory::Search { words, limit, json } => shelf.search(&words.join(" "), *limit, *json),
        args::Memory::Show { key, scope, json } => shelf.show(key, *scope, *json),
        args::Memory::Set { key, value, scope } => shelf.set(key, value, *scope),
        args::Memory::Forget { key, scope } => shelf.forget(key, *scope),
        args::Memory::Why { session, all, json } => shelf.why(session.as_deref(), *all, *json),
        args::Memory::Export { folder, scope, force } => shelf.export(folder.as_deref(), *scope, *force),
        args::Memory::Import { files, scope, dry_run } => shelf.import(files, *scope, *dry_run),
    }?;
    Ok(Exit::Ok)
}

/// The journal, and which project's memory is meant.
struct MemoryContext {
    context: JournalContext,
    project: BoardScope,
}

impl MemoryContext {
    fn open(place: &AppEnv) -> Result<Self, CliError> {
        let config = place.settings(None, Vec::new())?;
        let project = project_scope(&setup::project_root(place, &config)?);
        Ok(Self { context: JournalContext::open(place)?, project })
    }

    fn user(&self) -> Writer {
        Writer::User(self.context.by.user.clone())
    }

    /// The boards that are meant, the project's first.
    fn scopes(&self, only: Option<args::Board>) -> Vec<BoardScope> {
        match only {
            None => vec![self.project.clone(), BoardScope::User],
            Some(args::Board::User) => vec![BoardScope::User],
            Some(args::Board::Project) => vec![self.project.clone()],
        }
    }

    /// The one board that is meant for a key.
    fn scope(&self, only: Option<args::Board>, key: &Key) -> BoardScope {
        let is_users = only.map_or_else(|| key.section().is_users(), |board| board == args::Board::User);
        if is_users { BoardScope::User } else { self.project.clone() }
    }

    /// Facts under a key, with their boards.
    fn found(&self, key: Option<&Key>, only: Option<args::Board>) -> Result<Vec<(BoardScope, Fact)>, CliError> {
        let mut found = Vec::new();
        for scope in self.scopes(only) {
            let board = self.context.read(query::Memory { scope: scope.clone() })?;
            let facts = board.facts().filter(|fact| key.is_none_or(|key| fact.key.below(key).is_some()));
            found.extend(facts.map(|fact| (scope.clone(), fact.clone())));
        }
        Ok(found)
    }

    fn list(&self, key: Option<&str>, only: Option<args::Board>, json: bool) -> Result<(), CliError> {
        let key = key.map(parse).transpose()?;
        let found = self.found(key.as_ref(), only)?;
        if json {
            return super::print(&lines(found.iter().map(|(scope, fact)| as_json(scope, fact)).collect()));
        }
        let lang = self.context.lang;
        if found.is_empty() {
            let words = match (key, only) {
                (Some(key), _) => lang.nothing_under(key.as_str()),
                (None, Some(_)) => lang.nothing_in_scope().to_owned(),
                (None, None) => lang.nothing_remembered().to_owned(),
            };
            return super::print(&format!("{words}\n"));
        }
        let rows: Vec<Vec<String>> = found.iter().map(|(scope, fact)| row(scope, fact)).collect();
        super::print(&table(&lang.memory_heads(), &rows))
    }

    fn search(&self, words: &str, limit: usize, json: bool) -> Result<(), CliError> {
        let hits =
            self.context.read(query::SearchMemory { scopes: self.scopes(None), words: words.to_owned(), limit })?;
        if json {
            let as_json = |hit: &Hit| {
                let mut found = as_json(&hit.scope, &hit.fact);
                if let Value::Object(found) = &mut found {
                    found.insert("terms".to_owned(), json!(hit.terms));
                    found.insert("score".to_owned(), json!(hit.score));
                }
                found
            };
            return super::print(&lines(hits.iter().map(as_json).collect()));
        }
        if hits.is_empty() {
            return super::print(&format!("{}\n", self.context.lang.nothing_found()));
        }
        let rows: Vec<Vec<String>> = hits.iter().map(|hit| row(&hit.scope, &hit.fact)).collect();
        super::print(&table(&self.context.lang.memory_heads(), &rows))
    }

    fn show(&self, key: &str, only: Option<args::Board>, json: bool) -> Result<(), CliError> {
        let (lang, key) = (self.context.lang, parse(key)?);
        let found = self.found(Some(&key), only)?;
        if found.is_empty() {
            return Err(CliError::said(Exit::Failed, |lang| lang.nothing_under(key.as_str())));
        }
        if json {
            return super::print(&lines(found.iter().map(|(scope, fact)| as_json(scope, fact)).collect()));
        }
        let pages: Vec<String> = found.iter().map(|(scope, fact)| page(lang, scope, fact)).collect();
        super::print(&clean(&pages.join("\n")))
    }

    fn set(&self, key: &str, value: &str, only: Option<args::Board>) -> Result<(), CliError> {
        let key = parse(key)?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        let scope = self.scope(only, &key);
        let set = async {
            Ok(self.context.team.memories().set(&scope, &self.user(), &key, &value, &Source::default()).await)
        };
        let keys = waited(set)?.map_err(stop)?;
        self.say(self.context.lang.remembered(), &scope, &keys)
    }

    fn forget(&self, key: &str, only: Option<args::Board>) -> Result<(), CliError> {
        let (lang, key) = (self.context.lang, parse(key)?);
        let mut is_any = false;
        for scope in self.scopes(only) {
            let forgotten =
                waited(async { Ok(self.context.team.memories().forget(&scope, &self.user(), &key).await) })?;
            let forgotten = match forgotten {
                // Neither is there anything under it, nor anything left of what once was.
                Err(RuntimeError::Memory(WriteRefusal::Nothing(_))) => continue,
                forgotten => forgotten.map_err(stop)?,
            };
            is_any = true;
            self.say(lang.forgotten(), &scope, &forgotten.keys)?;
            let mut text = format!("{}\n", lang.erased(forgotten.erased));
            for session in &forgotten.said_in {
                text.push_str(&format!("{}\n", lang.still_said_in(session.to_string())));
            }
            for session in &forgotten.told_in {
                text.push_str(&format!("{}\n", lang.still_told_in(session.to_string())));
            }
            super::print(&text)?;
        }
        if is_any { Ok(()) } else { Err(CliError::said(Exit::Failed, |lang| lang.nothing_under(key.as_str()))) }
    }

    fn say(&self, verb: &str, scope: &BoardScope, keys: &[Key]) -> Result<(), CliError> {
        let text: String = keys.iter().map(|key| format!("{verb} ({}): {key}\n", scope.kind())).collect();
        super::print(&text)
    }

    fn why(&self, session: Option<&str>, all: bool, json: bool) -> Result<(), CliError> {
        let session = match session {
            Some(id) => setup::session(&self.context.team, id)?,
            None => {
                let last = self.context.read(query::Sessions { limit: 1 })?;
                let none = || CliError::said(Exit::Failed, |lang| lang.no_sessions_yet().to_owned());
                last.first().map(|row| row.session).ok_or_else(none)?
            }
        };
        let mut told = self.context.read(query::Recalled { session })?;
        if !all {
            told = told.pop().into_iter().collect();
        }
        if json {
            let turns = told.iter().map(|told| {
                let RecalledFacts { turn, at_ms, said, recall } = told;
                json!({ "turn": turn, "at_ms": at_ms, "said": said, "facts": recall.facts, "text": recall.text,
                    "left_out": recall.left_out })
            });
            return super::print(&lines(turns.collect()));
        }
        if told.is_empty() {
            return super::print(&format!("{}\n", self.context.lang.nothing_recalled()));
        }
        let pages: Result<Vec<String>, CliError> = told.iter().map(|told| self.because(told)).collect();
        super::print(&clean(&pages?.join("\n")))
    }

    /// What a turn was told, and why.
    fn because(&self, told: &RecalledFacts) -> Result<String, CliError> {
        let lang = self.context.lang;
        let mut text = format!("{}  {}\n", local(told.at_ms), clean_line(&clip(&told.said, VALUE_MAX)));
        if told.recall.facts.is_empty() {
            text.push_str(&format!("    {}\n", lang.told_nothing()));
        }
        for fact in &told.recall.facts {
            let value =
                match self.context.read(query::MemoryFact { scope: fact.scope.clone(), key: fact.key.clone() })? {
                    None => lang.since_forgotten().to_owned(),
                    Some(now) if now.at_ms != fact.at_ms => lang.since_changed().to_owned(),
                    Some(now) => clean_line(&clip(&now.value_text(), VALUE_MAX)),
                };
            text.push_str(&format!("    {}: {value}\n        {}\n", fact.key, lang.told_because(&fact.why)));
        }
        if told.recall.left_out > 0 {
            text.push_str(&format!("    {}\n", lang.no_room(told.recall.left_out)));
        }
        Ok(text)
    }

    fn export(&self, folder: Option<&Path>, scope: args::Board, force: bool) -> Result<(), CliError> {
        let scope = self.scopes(Some(scope)).pop().unwrap_or(BoardScope::User);
        let board: Board = self.context.read(query::Memory { scope: scope.clone() })?;
        if scope == BoardScope::User {
            let others = self.context.read(query::Memory { scope: self.project.clone() })?.len();
            // Beside the output, which may be JSON.
            if others > 0 {
                headless::talk(&self.context.lang.not_exported(others));
            }
        }
        let Some(folder) = folder else {
            let text = MemoryFile::Json.write(&board);
            return super::print(if text.is_empty() { "{}\n" } else { &text });
        };
        let files = MemoryFile::WRITTEN.map(|(file, name)| (folder.join(name), file.write(&board)));
        let files: Vec<(PathBuf, String)> = files.into_iter().filter(|(_, text)| !text.is_empty()).collect();
        if let Some((path, _)) = files.iter().find(|(path, _)| !force && path.exists()) {
            let path = path.display().to_string();
            return Err(CliError::said(Exit::Failed, |lang| lang.memory_file_exists(&path)));
        }
        for (path, text) in files {
            let shown = path.display().to_string();
            let written = std::fs::create_dir_all(folder).and_then(|()| plan_file::put(&path, &text));
            written.map_err(|error| CliError::unwritable(&shown, &error))?;
            super::print(&format!("{shown}\n"))?;
        }
        Ok(())
    }

    fn import(&self, files: &[PathBuf], only: Option<args::Board>, dry_run: bool) -> Result<(), CliError> {
        // All of them are read before anything is taken.
        let mut read = Vec::new();
        for path in files {
            read.push((path.display().to_string(), read_file(path)?));
        }
        let lang = self.context.lang;
        let mut refused = None;
        for (file, facts) in read {
            for (key, value) in facts {
                let scope = self.scope(only, &key);
                let source = Source { file: file.clone(), ..Source::default() };
                let shown =
                    clean_line(&clip(&value.as_str().map_or_else(|| value.to_string(), str::to_owned), VALUE_MAX));
                let set =
                    async { Ok(self.context.team.memories().set(&scope, &self.user(), &key, &value, &source).await) };
                let verb = match (dry_run, if dry_run { Ok(Vec::new()) } else { waited(set)? }) {
                    (true, _) => lang.would_take().to_owned(),
                    (false, Ok(_)) => lang.taken().to_owned(),
                    (false, Err(error)) => {
                        let words = format!("{} ({})", lang.not_taken(), lang.runtime_failure(&error));
                        refused = Some(error);
                        words
                    }
                };
                super::print(&format!("{verb} ({}): {key}: {shown}\n", scope.kind()))?;
            }
        }
        refused.map_or(Ok(()), |error| Err(stop(error)))
    }
}

/// The facts of a file.
fn read_file(path: &Path) -> Result<Vec<(Key, Value)>, CliError> {
    let shown = path.display().to_string();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let file = MemoryFile::from_file_name(&name)
        .ok_or_else(|| CliError::said(Exit::Usage, |lang| lang.unknown_memory_file(&shown)))?;
    let bad = |why: String| CliError::said(Exit::Failed, |lang| lang.bad_memory_file(&shown, &why));
    let text = input_file::text(path, MEMORY_FILE_BYTES_MAX as u64);
    let unread = |why| CliError::said(Exit::Failed, |lang| lang.bad_memory_file(&shown, lang.input_fault(&why)));
    let text = text.map_err(unread)?;
    file.read(&text).map_err(bad)
}

fn parse(key: &str) -> Result<Key, CliError> {
    key.parse().map_err(|error: KeyError| CliError::said(Exit::Usage, |lang| lang.no_key(&error)))
}

fn waited<T>(work: impl Future<Output = anyhow::Result<T>>) -> Result<T, CliError> {
    wait(work).map_err(|error| CliError::new(Exit::Failed, error.to_string()))
}

fn row(scope: &BoardScope, fact: &Fact) -> Vec<String> {
    let value = clip(&fact.value_text(), VALUE_MAX);
    vec![fact.key.to_string(), scope.kind().to_owned(), fact.by.name().to_owned(), local(fact.at_ms), value]
}

fn as_json(scope: &BoardScope, fact: &Fact) -> Value {
    let Fact { key, value, by, source, at_ms } = fact;
    json!({ "scope": scope, "key": key, "value": value, "by": by.name(), "at_ms": at_ms, "source": source })
}

fn lines(items: Vec<Value>) -> String {
    format!("{:#}\n", Value::from(items))
}

fn page(lang: Lang, scope: &BoardScope, fact: &Fact) -> String {
    let mut text = format!("{}\n", fact.key);
    let mut line = |name: &str, value: String| text.push_str(&format!("    {name}: {value}\n"));
    line(lang.value_word(), fact.value_text());
    line(lang.board_word(), scope.to_string());
    line(lang.written_by(), fact.by.name().to_owned());
    line(lang.written_at(), local(fact.at_ms));
    let Source { session, quote, file, .. } = &fact.source;
    if !quote.is_empty() {
        line(lang.words_behind(), quote.clone());
    }
    if let Some(session) = session {
        line(lang.said_in(), session.to_string());
    }
    if !file.is_empty() {
        line(lang.file_behind(), file.clone());
    }
    text
}
