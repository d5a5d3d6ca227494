//! `cache`: answers of experts that are kept to be used again, looked at and cleared from any terminal.

use max_team_core::delegation::cache::CacheEntry;
use max_team_runtime::query;
use serde_json::{Value, json};

use super::context::{JournalContext, now_ms, stop, wait};
use super::table::table;
use crate::args;
use max_team_terminal::text::clean;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::setup::AppEnv;

pub(crate) fn run(place: &AppEnv, command: &args::Cache) -> anyhow::Result<Exit> {
    let shelf = CacheCommands { context: JournalContext::open(place)?, now_ms: now_ms() };
    match command {
        args::Cache::List { json } => shelf.list(*json)?,
        args::Cache::Show { expert, key, json } => shelf.show(expert, key.as_deref(), *json)?,
        args::Cache::Clear { expert } => shelf.clear(expert.as_deref())?,
    }
    Ok(Exit::Ok)
}

struct CacheCommands {
    context: JournalContext,
    now_ms: i64,
}

impl CacheCommands {
    /// The cached answers of one expert, or of all, each with its expert.
    fn kept(&self, expert: Option<&str>) -> Result<Vec<(String, CacheEntry)>, CliError> {
        let experts = match expert {
            Some(expert) => vec![expert.to_owned()],
            None => self.context.read(query::CachedExperts {})?,
        };
        let mut kept = Vec::new();
        for expert in experts {
            let entries = self.context.read(query::CachedAnswers { expert: expert.clone() })?;
            kept.extend(entries.into_iter().map(|entry| (expert.clone(), entry)));
        }
        Ok(kept)
    }

    fn list(&self, json: bool) -> Result<(), CliError> {
        let (kept, lang) = (self.kept(None)?, self.context.lang);
        if json {
            return self.print_json(&kept);
        }
        if kept.is_empty() {
            return super::print(&format!("{}\n", lang.nothing_cached()));
        }
        let row = |(expert, entry): &(String, CacheEntry)| {
            let raw = entry.raw.to_string();
            vec![expert.clone(), entry.key.clone(), local(entry.created_at_ms), self.left(entry), raw]
        };
        super::print(&table(&lang.cache_heads(), &kept.iter().map(row).collect::<Vec<_>>()))
    }

    fn show(&self, expert: &str, key: Option<&str>, json: bool) -> Result<(), CliError> {
        let mut kept = self.kept(Some(expert))?;
        kept.retain(|(_, entry)| key.is_none_or(|key| entry.key.starts_with(key)));
        if kept.is_empty() {
            return Err(CliError::said(Exit::Failed, |lang| lang.nothing_cached_of(expert, key)));
        }
        if json {
            return self.print_json(&kept);
        }
        let pages: Vec<String> = kept.iter().map(|(_, entry)| self.page(entry)).collect();
        super::print(&clean(&pages.join("\n")))
    }

    fn clear(&self, expert: Option<&str>) -> Result<(), CliError> {
        let experts = match expert {
            Some(expert) if self.kept(Some(expert))?.is_empty() => {
                return Err(CliError::said(Exit::Failed, |lang| lang.nothing_cached_of(expert, None)));
            }
            Some(expert) => vec![expert.to_owned()],
            None => self.context.read(query::CachedExperts {})?,
        };
        let mut cleared = 0;
        for expert in experts {
            let work = async { Ok(self.context.team.caches().clear(&expert, &self.context.by).await) };
            let done = wait(work).map_err(|error| CliError::new(Exit::Failed, error.to_string()))?;
            cleared += done.map_err(stop)?;
        }
        super::print(&format!("{}\n", self.context.lang.cleared(cleared)))
    }

    /// How long an answer may still be used.
    fn left(&self, entry: &CacheEntry) -> String {
        let lang = self.context.lang;
        match entry.age_ms(self.now_ms) {
            None => lang.expired().to_owned(),
            Some(age_ms) => lang.time_left((entry.ttl_s * 1_000).saturating_sub(age_ms)),
        }
    }

    fn page(&self, entry: &CacheEntry) -> String {
        let lang = self.context.lang;
        let data = entry.data.as_ref().map_or_else(|| lang.only_words().to_owned(), Value::to_string);
        let lines = [
            (lang.found_at(), format!("{} ({})", local(entry.created_at_ms), self.left(entry))),
            (lang.arguments_word(), entry.raw.to_string()),
            (lang.data_word(), data),
            (lang.said_word(), entry.text.replace('\n', "\n        ")),
        ];
        let lines: String = lines.iter().map(|(name, value)| format!("    {name}: {value}\n")).collect();
        format!("{}\n{lines}", entry.key)
    }

    fn print_json(&self, kept: &[(String, CacheEntry)]) -> Result<(), CliError> {
        let as_json = |(expert, entry): &(String, CacheEntry)| {
            let CacheEntry { key, raw, data, text, created_at_ms, ttl_s } = entry;
            json!({ "expert": expert, "key": key, "raw": raw, "data": data, "text": text,
                "created_at_ms": created_at_ms, "ttl_s": ttl_s, "fresh": entry.age_ms(self.now_ms).is_some() })
        };
        super::print(&format!("{:#}\n", kept.iter().map(as_json).collect::<Value>()))
    }
}
