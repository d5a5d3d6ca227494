//! `doctor`: looks at everything that talking needs and says what it finds and what to do.
//!
//! It shows no key, and asks a provider only with `--online`; its last line names the parts that were not tested. A
//! fault that does not stop work is a warning; any other fault makes the exit code 1.

mod online;

use std::io::{ErrorKind, Write};
use std::path::Path;

use max_team_core::agent::Member;
use max_team_core::time::rfc3339;
use max_team_runtime::instructions;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::skills::Catalogue;
use max_team_runtime::storage::JournalError;
use max_team_sandbox::{Engine, Obstacle, engine, probe};
use max_team_tools::SearchProvider;
use rustix::fs::Access;

use crate::args;
use max_team_terminal::text::clean_line;
use max_team_workspace::agents;
use max_team_workspace::config::choice::Frontend;
use max_team_workspace::config::{Config, Override};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::models;
use max_team_workspace::permissions;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::skills;

/// Entries that are verified on the side; more of them take their time and have a command of their own.
const VERIFIED_ENTRIES_MAX: u64 = 100_000;
/// Entries up to which rows are held against them as well: each row is made once more, which takes many times as long.
const COMPARED_ENTRIES_MAX: u64 = 10_000;

/// Free bytes in the home's file system below which it is tried whether anything can still be written.
const FREE_BYTES_MIN: u64 = 64 << 20;
/// Bytes that are written to try it: more than one commit takes.
const PROBE_BYTES: usize = 256 << 10;

/// The beginning of 2026, before which there was no such program: a clock that says less is wrong.
const CLOCK_MS_MIN: i64 = 1_767_225_600_000;

pub(crate) fn run(place: &AppEnv, options: &args::Doctor) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    let mut findings = Findings { text: String::new(), failed: false, lang };
    // What is in its way is said below, where it stops the journal.
    if !place.home.exists() || place.home.is_dir() {
        match unwritable(&place.home) {
            Some(error) => findings.bad(lang.place(), setup::told(lang, &error)),
            None => findings.good(lang.place(), lang.kept_in(place.home.display().to_string())),
        }
        space(&place.home, &mut findings);
    }
    clock(&mut findings);
    let config = match place.settings(options.config.as_deref(), overrides(options)) {
        Ok(config) => {
            config.warnings.iter().for_each(|warning| findings.warn(lang.settings(), warning.clone()));
            findings.good(lang.settings(), lang.settings_readable().to_owned());
            Some(config)
        }
        Err(stop) => {
            findings.bad(lang.settings(), stop.words(lang).to_owned());
            None
        }
    };
    if let Some(config) = &config {
        unheard(config, &mut findings);
        sandbox(config.project.sandbox, &mut findings);
        browser(config, &mut findings);
        web_search(config, place, &mut findings);
        model(config, place, options.online, &mut findings);
    }
    for lock in max_team_tools::git::blocking_locks(&place.cwd) {
        findings.warn("git", lang.lock_blocks(lock.display().to_string()));
    }
    team(place, options.agents.as_deref(), &mut findings);
    foreign(place, config.as_ref(), &mut findings);
    servers(place, config.as_ref(), &mut findings);
    if let Some(root) = config.as_ref().and_then(|config| setup::project_root(place, config).ok()) {
        unused_skills(place, &root, &mut findings);
    }
    journal(place, config.as_ref(), options.rebuild, &mut findings);
    findings.note(lang.untested_word(), lang.untested(options.online));
    super::print(&findings.text)?;
    if findings.failed {
        return Err(CliError::said(Exit::Failed, |lang| lang.something_is_wrong().to_owned()).into());
    }
    Ok(Exit::Ok)
}

/// The settings that flags stand for.
fn overrides(options: &args::Doctor) -> Vec<Override> {
    let given = [
        ("llm.provider", "--provider", &options.provider),
        ("llm.default_model", "--model", &options.model),
        ("llm.base_url", "--base-url", &options.base_url),
    ];
    let one = |(key, name, value): (&str, &str, &Option<String>)| {
        Some(Override { key: key.to_owned(), value: value.clone()?, name: name.to_owned() })
    };
    given.into_iter().filter_map(one).collect()
}

/// Certificates are judged by the clock, and times of the journal are taken from it.
fn clock(findings: &mut Findings) {
    let (lang, now_ms) = (findings.lang, jiff::Timestamp::now().as_millisecond());
    if now_ms < CLOCK_MS_MIN {
        findings.warn(lang.clock_word(), lang.clock_wrong(rfc3339(now_ms)));
    }
}

struct Findings {
    text: String,
    failed: bool,
    lang: Lang,
}

impl Findings {
    fn good(&mut self, what: &str, words: String) {
        self.put(self.lang.mark_good(), what, &words);
    }

    /// How it is, and no reason to do anything.
    fn note(&mut self, what: &str, words: String) {
        self.put(self.lang.mark_note(), what, &words);
    }

    fn warn(&mut self, what: &str, words: String) {
        self.put(self.lang.mark_warning(), what, &words);
    }

    fn bad(&mut self, what: &str, words: String) {
        self.failed = true;
        self.put(self.lang.mark_failed(), what, &words);
    }

    fn put(&mut self, mark: &str, what: &str, words: &str) {
        let line = self.lang.headed(what, words);
        self.text.push_str(&format!("{mark}  {line}\n"));
    }
}

/// What of the home cannot be written to, if something cannot. One that is not there yet is made where its parents are.
fn unwritable(home: &Path) -> Option<JournalError> {
    let there = home.ancestors().find(|folder| folder.is_dir())?;
    let within = ["workers", "journal.db", "journal.db-wal", "journal.db-shm"].map(|name| home.join(name));
    let needed = std::iter::once(there.to_owned()).chain(within.into_iter().filter(|path| path.exists()));
    needed.into_iter().find_map(|path| {
        let wanted = if path.is_dir() { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
        let detail = rustix::fs::access(&path, wanted).err()?;
        Some(JournalError::Unwritable { path, detail: std::io::Error::from(detail).to_string() })
    })
}

/// Whether there is room for more.
fn space(home: &Path, findings: &mut Findings) {
    let lang = findings.lang;
    // A home that is not there yet is made where its parents are.
    let Some(there) = home.ancestors().find(|folder| folder.is_dir()) else { return };
    let Ok(disk) = rustix::fs::statvfs(there) else { return };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= FREE_BYTES_MIN {
        return;
    }
    let probe = || {
        let mut file = tempfile::tempfile_in(there)?;
        file.write_all(&vec![1; PROBE_BYTES])?;
        file.sync_all()
    };
    match probe() {
        Ok(()) => findings.warn(lang.place(), lang.little_space(free)),
        // A place that cannot be written to at all is told of where it stops the journal.
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            findings.bad(lang.place(), lang.no_space(&there.display().to_string(), free));
        }
        Err(_) => {}
    }
}

/// Files among the skills that cannot be used, or are none.
fn unused_skills(place: &AppEnv, root: &Path, findings: &mut Findings) {
    let (lang, catalogue) = (findings.lang, Catalogue::read(&skills::places(place), root));
    for broken in &catalogue.broken {
        findings.warn(lang.skills_word(), lang.skill_broken(broken.file.display().to_string(), &broken.why));
    }
    for skipped in &catalogue.skipped {
        findings.note(lang.skills_word(), lang.skill_skipped(skipped.file.display().to_string(), &skipped.why));
    }
}

/// Settings that this version reads and cannot act on yet: said, not swallowed.
fn unheard(config: &Config, findings: &mut Findings) {
    if config.server.mode == Frontend::Web {
        findings.warn("server.mode", findings.lang.no_web_page(config.server.port));
    }
}

/// What this machine can put around a command, one line per mechanism.
fn sandbox(is_on: bool, findings: &mut Findings) {
    let lang = findings.lang;
    if !is_on {
        return findings.warn(lang.sandbox(), lang.sandbox_off().to_owned());
    }
    let power = probe();
    let chosen = engine();
    match &chosen {
        Ok(Engine::Namespaces) => findings.good(lang.sandbox(), lang.own_namespaces().to_owned()),
        Ok(Engine::Bubblewrap) => {
            let path = power.bubblewrap.as_ref().map_or(String::new(), |path| path.display().to_string());
            findings.good(lang.sandbox(), lang.by_bubblewrap(&path));
        }
        Ok(Engine::Landlock) => findings.warn(lang.sandbox(), lang.landlock_only().to_owned()),
        Ok(_) => findings.good(lang.sandbox(), "seatbelt".to_owned()),
        Err(_) => findings.warn(lang.sandbox(), lang.no_sandbox().to_owned()),
    }
    let Ok(chosen) = chosen else { return passed_over(None, findings) };
    let is_whole = chosen != Engine::Landlock;
    let good = |findings: &mut Findings, words: &str| findings.good(lang.sandbox(), words.to_owned());
    good(findings, lang.sandbox_files());
    if is_whole {
        good(findings, lang.sandbox_within());
        findings.note(lang.sandbox(), lang.sandbox_races().to_owned());
    } else {
        findings.warn(lang.sandbox(), lang.sandbox_not_within().to_owned());
        findings.note(lang.sandbox(), lang.sandbox_servers_read().to_owned());
    }
    if chosen.has_namespaces() {
        good(findings, lang.sandbox_network());
        good(findings, lang.sandbox_hosts());
    } else {
        findings.note(lang.sandbox(), lang.sandbox_no_hosts().to_owned());
    }
    good(findings, lang.sandbox_processes());
    if chosen == Engine::Seatbelt {
        findings.note(lang.sandbox(), lang.sandbox_few_limits().to_owned());
    } else {
        good(findings, lang.sandbox_limits());
        good(findings, &lang.sandbox_caps(&power.group));
        passed_over(Some(chosen), findings);
    }
}

/// Whether there is a Chromium for the tool `browser`. Nothing else needs it.
fn browser(config: &Config, findings: &mut Findings) {
    let lang = findings.lang;
    let Some(path) = max_team_tools::find_chromium(config.tools.browser_path.as_deref().map(Path::new)) else {
        let named = config.tools.browser_path.as_ref();
        let words = named.map_or_else(|| lang.browser_missing().to_owned(), |path| lang.browser_path_wrong(path));
        return findings.note("browser", words);
    };
    if config.project.sandbox && !engine().is_ok_and(|engine| engine != Engine::Landlock) {
        return findings.note("browser", lang.browser_no_namespaces().to_owned());
    }
    findings.good("browser", lang.browser_found(path.display().to_string()));
}

/// Whether the settings of the search service are complete. No service is asked.
fn web_search(config: &Config, place: &AppEnv, findings: &mut Findings) {
    let lang = findings.lang;
    match setup::services(place, config).map(|services| services.search) {
        Err(stop) => findings.bad("web_search", stop.words(lang).to_owned()),
        Ok(search) => match search.action("words") {
            // A service of the user's own is known by its host.
            Ok(action) if search.provider == SearchProvider::Custom => {
                findings.good("web_search", lang.search_found(format!("`{}`", action.target)));
            }
            Ok(_) => findings.good("web_search", lang.search_found(search.provider.title())),
            Err(fault) => findings.bad("web_search", lang.web_fault(&fault)),
        },
    }
}

/// Why the other mechanisms of Linux are not used.
fn passed_over(chosen: Option<Engine>, findings: &mut Findings) {
    let (power, lang) = (probe(), findings.lang);
    let other = |why: &String| Obstacle::Other(why.clone());
    let all = [
        (Engine::Namespaces, power.namespaces.as_ref().err().map(other)),
        (Engine::Bubblewrap, power.bubblewrap.as_ref().err().cloned()),
        (Engine::Landlock, power.landlock.as_ref().err().cloned()),
    ];
    for (other, missing) in all.into_iter().filter(|(other, _)| chosen != Some(*other)) {
        findings.note(lang.sandbox(), lang.passed_over(other, missing.as_ref()));
    }
}

fn model(config: &Config, place: &AppEnv, online: bool, findings: &mut Findings) {
    let lang = findings.lang;
    for (provider, names) in models::local_servers() {
        findings.good(lang.local_server(), lang.server_with(provider, names.len()));
    }
    match models::choose(config, place) {
        Ok(chosen) => {
            let model = format!("{}/{}", chosen.model.provider, chosen.model.name);
            let words = lang.model_with_key(&model, &chosen.key_source, chosen.model.price.is_some());
            findings.good(lang.model_now(), words);
            match chosen.router.proxy_for(&chosen.model.provider) {
                Ok(None) => {}
                Ok(Some(proxy)) => findings.note(lang.proxy_word(), proxy),
                Err(words) => findings.bad(lang.connection_word(), words),
            }
            if online {
                online::ask(&chosen, findings);
            }
        }
        Err(stop) => findings.bad(lang.model_now(), stop.words(lang).to_owned()),
    }
}

/// What `.claude/` holds without an effect, and instructions in which something is hidden.
fn foreign(place: &AppEnv, config: Option<&Config>, findings: &mut Findings) {
    let lang = findings.lang;
    let root = config.and_then(|config| setup::project_root(place, config).ok()).unwrap_or_else(|| place.cwd.clone());
    // Faults inside the files are reported where the files are used.
    if let Ok(loaded) = permissions::load(place, &root, &permissions::RuleFlags::default()) {
        for unused in &loaded.unused {
            let what = format!("{} ({})", unused.what, unused.place);
            findings.note(&clean_line(&what), clean_line(&lang.unused_names(&unused.names.join(", "))));
        }
        for (hook, origin) in &loaded.hooks {
            findings.warn(&format!("PreToolUse ({origin})"), lang.hook_asks(hook.rules().join(", ")));
        }
    }
    for note in instructions::read(&root, Some(&place.home)).notes {
        findings.warn(lang.instructions(), clean_line(&note));
    }
}

/// The MCP servers of the folder.
fn servers(place: &AppEnv, config: Option<&Config>, findings: &mut Findings) {
    let lang = findings.lang;
    let Some(config) = config else { return };
    match super::mcp_client::states(place, config, lang) {
        Ok((states, warnings)) => {
            states.iter().for_each(|(name, words)| findings.note(lang.mcp_servers(), lang.headed(name, words)));
            warnings.into_iter().for_each(|words| findings.warn(lang.mcp_servers(), clean_line(&words)));
        }
        Err(stop) => findings.bad(lang.mcp_servers(), stop.words(lang).to_owned()),
    }
}

/// Who is on the team, and what they ask for in vain.
fn team(place: &AppEnv, file: Option<&Path>, findings: &mut Findings) {
    let team = match agents::team(file, place) {
        Ok(team) => team,
        Err(stop) => return findings.bad(findings.lang.team_word(), stop.words(findings.lang).to_owned()),
    };
    let lang = findings.lang;
    let one = |member: &Member| format!("{} ({})", member.definition.name, member.definition.role);
    let members: Vec<String> = team.members.iter().map(one).collect();
    let members = if members.is_empty() { lang.nobody().to_owned() } else { members.join(", ") };
    findings.good(lang.team_word(), lang.headed(team.source.get(lang), lang.leads(one(&team.lead), &members)));
    // What is not available yet is said below, for the built-in team too.
    let told = team.warnings.iter().filter(|warning| !warning.contains(lang.not_yet()));
    told.for_each(|warning| findings.warn(lang.team_word(), warning.clone()));
    for member in team.members.iter().filter(|member| !member.mcp_servers.is_empty()) {
        let servers: Vec<&str> = member.mcp_servers.iter().map(|server| server.name.as_str()).collect();
        findings.note(lang.mcp_servers(), lang.headed(&member.definition.name, servers.join(", ")));
    }
    for (name, tools) in &team.later {
        findings.note(lang.tools(), lang.headed(name, lang.headed(tools.join(", "), lang.not_yet())));
    }
}

fn journal(place: &AppEnv, config: Option<&Config>, rebuild: bool, findings: &mut Findings) {
    let (lang, what) = (findings.lang, findings.lang.journal());
    if let Some(words) = place.emptied(lang, config.map(|config| &*config.audit.output)) {
        findings.warn(what, words);
    }
    let storage = match place.storage(max_team_workspace::config::choice::Durability::Normal) {
        Ok(storage) => storage,
        Err(error) => return findings.bad(what, setup::told(lang, &error)),
    };
    let is_sound = is_sound(&storage, rebuild, findings);
    match (rebuild, is_sound) {
        (false, _) => {}
        (true, true) => remake(&storage, findings),
        // Rows that follow from a damaged log would be worse than those there are.
        (true, false) => findings.bad(what, lang.not_rebuilt().to_owned()),
    }
}

/// Whether the file and the log are as they were written; a long log is only looked at where that is `wanted`.
fn is_sound(storage: &Storage, wanted: bool, findings: &mut Findings) -> bool {
    let (lang, what) = (findings.lang, findings.lang.journal());
    let bad = |findings: &mut Findings, words: String| {
        findings.bad(what, words);
        false
    };
    let file = match storage.check_file() {
        Ok(faults) if faults.is_empty() => {
            findings.good(what, lang.database_sound().to_owned());
            true
        }
        Ok(faults) => bad(findings, lang.database_damaged(faults.join("; "))),
        Err(error) => bad(findings, setup::told(lang, &error)),
    };
    let log = match storage.last_entry() {
        Ok(entries) if entries > VERIFIED_ENTRIES_MAX && !wanted => {
            findings.good(what, lang.entries_unchecked(entries));
            true
        }
        Ok(entries) => match storage.verify(None) {
            Ok(report) if report.is_sound() => {
                findings.good(what, lang.entries_hold(entries));
                // If the rows are rebuilt, that is reported there.
                match (wanted, entries <= COMPARED_ENTRIES_MAX) {
                    (true, _) => {}
                    (false, true) => rows(storage, findings),
                    (false, false) => findings.note(what, lang.rows_uncompared().to_owned()),
                }
                true
            }
            Ok(_) => bad(findings, lang.not_as_written().to_owned()),
            Err(error) => bad(findings, setup::told(lang, &error)),
        },
        Err(error) => bad(findings, setup::told(lang, &error)),
    };
    file && log
}

/// Says how many rows do not follow from the log; `audit verify` names them.
fn rows(storage: &Storage, findings: &mut Findings) {
    let (lang, what) = (findings.lang, findings.lang.journal());
    match storage.compare_rows() {
        Ok(rows) if rows.is_empty() => {}
        Ok(rows) => findings.warn(what, lang.rows_differ(rows.count())),
        Err(error) => findings.warn(what, setup::told(lang, &error)),
    }
}

/// Compares every row with the log, says what differs, and makes all of them again if any does.
fn remake(storage: &Storage, findings: &mut Findings) {
    let (lang, what) = (findings.lang, findings.lang.journal());
    match storage.compare_rows() {
        Ok(rows) if rows.is_empty() => return findings.good(what, lang.rows_same().to_owned()),
        Ok(rows) => {
            rows.rows.iter().for_each(|row| findings.warn(what, clean_line(&lang.drift(row))));
            if rows.more > 0 {
                findings.warn(what, lang.more_rows(rows.more));
            }
        }
        Err(error) => findings.warn(what, setup::told(lang, &error)),
    }
    match storage.rebuild_rows() {
        Ok(()) => findings.good(what, lang.rebuilt().to_owned()),
        Err(error) => findings.bad(what, setup::told(lang, &error)),
    }
}
