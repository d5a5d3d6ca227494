//! Permissions out of settings files and flags, merged: managed, user, project, local, flags.
//!
//! The files are those that people already have: `settings.json` in our own folder or in `.claude`. What a project
//! brings along may forbid and ask at once; what it allows counts only after the user has said so, rule by rule
//! (`permissions trust`, or a yes that was to be remembered for the repository). This module reads and merges; it
//! judges nothing.

mod additional_dirs;
mod explain;
mod files;
mod foreign;
mod local;
mod trust;

use std::path::Path;

use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope, escape};
use max_team_core::policy::{Mode, Permissions, Rule};

use crate::config::{ChosenBy, quote};
use crate::exit::{CliError, Exit};
use crate::i18n::Translated;
use crate::setup::AppEnv;

pub use explain::{Explanation, PermissionQuestion};
use files::SettingsFile;
pub use foreign::{Hook, Unused};
pub use local::{remember, remembered, write};
pub use max_team_tools::SearchService;
pub use trust::TrustedRules;

/// Where the machine's own settings are.
const MANAGED: &str = "/etc/max-team/settings.json";

/// What settings files and flags say.
#[derive(Debug, Default)]
pub struct LoadedPermissions {
    /// The rules that count.
    pub permissions: Permissions,
    /// Permissions that the project brought along and that the user has not trusted yet.
    pub held: Vec<Rule>,
    /// The mode that the user's settings ask for.
    pub mode: Option<Mode>,
    /// The strictest mode that the project's settings ask for.
    pub foreign: Option<Mode>,
    /// Whether the mode that turns all questions off is forbidden.
    pub no_bypass: bool,
    /// Hooks before a tool that are not run here, and that the user has not said to go on without.
    pub hooks: Vec<(Hook, Origin)>,
    /// What `.claude/` and `.mcp.json` hold and has no effect here.
    pub unused: Vec<Unused>,
    /// What the user should be told, in their language.
    pub warnings: Vec<String>,
    /// Files that could not be read; a warning names each.
    pub unread: usize,
}

/// Rules that were given for this run.
#[derive(Debug, Clone, Default)]
pub struct RuleFlags<'a> {
    pub allowed: &'a [String],
    pub denied: &'a [String],
    /// Private hosts that the settings open: they need no further rule.
    pub opened: &'a [String],
}

/// One settings file that may be there.
struct SettingsSource {
    scope: RuleScope,
    path: std::path::PathBuf,
    /// The folder that `/x` in its rules means.
    base: std::path::PathBuf,
}

/// Reads everything for a project's folder. Settings of the user's own, or of the machine's, that cannot be read stop
/// the program: what they forbid would be free without them.
pub fn load(place: &AppEnv, root: &Path, flags: &RuleFlags<'_>) -> Result<LoadedPermissions, CliError> {
    let lang = place.speaks();
    let (trusted, problem) = match TrustedRules::read(&place.home) {
        Ok(trusted) => (trusted, None),
        Err(problem) => (TrustedRules::default(), Some(lang.trusted_none(problem.get(lang)))),
    };
    let mut loaded = read(&sources(place, root), place, root, flags, &trusted)?;
    loaded.warnings.extend(problem);
    loaded.unused.extend(lying_about(place, root));
    loaded.warnings.extend(foreign::line(&loaded.unused, !loaded.hooks.is_empty(), lang));
    Ok(loaded)
}

/// Other files without an effect: commands, plugins.
fn lying_about(place: &AppEnv, root: &Path) -> Vec<Unused> {
    let own = place.env.user().map(|user| user.join(".claude"));
    let theirs = root.join(".claude");
    let mut found = foreign::folder(&theirs, ".claude", own.as_ref() == Some(&theirs));
    if let Some(own) = own.filter(|own| *own != theirs) {
        found.extend(foreign::folder(&own, "~/.claude", true));
    }
    found
}

/// The file of a project that holds the user's own rules for it.
pub const LOCAL_FILE: &str = ".max-team/settings.local.json";

/// The file of the user's rules for all projects.
pub fn user_file(place: &AppEnv) -> std::path::PathBuf {
    place.home.join("settings.json")
}

/// The files of a project that hold rules.
pub const FILES: [&str; 4] =
    [".max-team/settings.json", ".claude/settings.json", LOCAL_FILE, ".claude/settings.local.json"];

fn sources(place: &AppEnv, root: &Path) -> Vec<SettingsSource> {
    let file = |scope, path: std::path::PathBuf, base: &Path| SettingsSource { scope, path, base: base.to_owned() };
    let mut all = vec![
        file(RuleScope::Managed, MANAGED.into(), Path::new("/etc/max-team")),
        file(RuleScope::User, user_file(place), &place.home),
    ];
    let theirs = place.env.user().map(|user| user.join(".claude"));
    all.extend(theirs.map(|folder| file(RuleScope::User, folder.join("settings.json"), &folder)));
    for name in FILES {
        let scope = if name.ends_with(".local.json") { RuleScope::Local } else { RuleScope::Project };
        all.push(file(scope, root.join(name), root));
    }
    // A project in the user's own folder would find the user's files twice.
    let mut seen = Vec::new();
    all.retain(|source| {
        !seen.contains(&source.path) && {
            seen.push(source.path.clone());
            true
        }
    });
    all
}

fn read(
    sources: &[SettingsSource],
    place: &AppEnv,
    root: &Path,
    flags: &RuleFlags<'_>,
    trusted: &TrustedRules,
) -> Result<LoadedPermissions, CliError> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (root_text, home) = (text(root), place.env.user().map(|user| text(&user)).unwrap_or_default());
    let (mut loaded, lang) = (LoadedPermissions::default(), place.speaks());
    for source in sources {
        let shown = shown(&source.path, root, &home);
        let is_foreign = matches!(source.scope, RuleScope::Project | RuleScope::Local);
        let file = match files::read(&source.path, &shown) {
            Ok(Some(SettingsFile { lost: Some(problem), .. })) | Err(problem) if !is_foreign => {
                return Err(unsafe_without(&problem));
            }
            Ok(Some(file)) => file,
            Ok(None) => continue,
            Err(problem) => {
                loaded.warnings.push(problem.get(lang).to_owned());
                loaded.unread += 1;
                continue;
            }
        };
        loaded.warnings.extend(file.warnings.iter().map(|warning| warning.get(lang).to_owned()));
        let base = text(&source.base);
        let anchors = Anchors { root: &root_text, base: &base, home: &home };
        for (list, text, line) in &file.rules {
            let origin = Origin { scope: source.scope, file: shown.clone(), line: *line };
            let rule = Rule::new(*list, text, origin, &anchors);
            if is_foreign && *list == List::Allow && !trusted.has(&root_text, text) {
                loaded.held.push(rule);
            } else {
                loaded.permissions.rules.push(rule);
            }
        }
        loaded.leave(&file, &shown, trusted.of(&root_text), &anchors);
        for (text, line) in &file.also {
            let origin = Origin { scope: source.scope, file: shown.clone(), line: *line };
            match additional_dirs::folder(text, &anchors, place) {
                Ok(folder) => {
                    let rule = Rule::new(List::Allow, &format!("Read(/{}/**)", escape(&folder)), origin, &anchors);
                    if is_foreign && !trusted.has(&root_text, &rule.text) {
                        loaded.held.push(rule);
                    } else if !loaded.permissions.also.contains(&folder) {
                        loaded.permissions.also.push(folder);
                    }
                }
                Err(why) => loaded.warnings.push(lang.folder_unused(origin, quote(text), why.get(lang))),
            }
        }
        loaded.permissions.no_reads_outside |= file.no_reads_outside;
        loaded.permissions.no_writes_outside |= file.no_writes_outside;
        loaded.permissions.never_asks |= file.never_asks;
        if is_foreign {
            loaded.foreign = stricter(loaded.foreign, file.mode);
        } else {
            loaded.mode = file.mode.or(loaded.mode);
        }
        loaded.no_bypass |= file.no_bypass;
    }
    let anchors = Anchors { root: &root_text, base: &root_text, home: &home };
    for (list, given, flag) in
        [(List::Allow, flags.allowed, "--allowed-tools"), (List::Deny, flags.denied, "--disallowed-tools")]
    {
        let origin = || Origin { scope: RuleScope::Flags, file: flag.to_owned(), line: 0 };
        let rules = given.iter().flat_map(|text| split(text));
        loaded.permissions.rules.extend(rules.map(|text| Rule::new(list, &text, origin(), &anchors)));
    }
    let origin = || Origin { scope: RuleScope::User, file: "tools.private_hosts".to_owned(), line: 0 };
    let opened = flags.opened.iter().map(|host| Rule::new(List::Allow, &opening(host), origin(), &anchors));
    loaded.permissions.rules.extend(opened);
    loaded.permissions.root = root_text;
    let flawed = loaded.permissions.rules.iter().filter_map(|rule| Some((rule, rule.flaw()?)));
    loaded
        .warnings
        .extend(flawed.map(|(rule, flaw)| format!("{}: `{}`: {}", rule.origin, rule.text, lang.rule_flaw(flaw))));
    if !loaded.held.is_empty() {
        let count = loaded.held.len();
        loaded.warnings.push(lang.permissions_wait(count));
    }
    Ok(loaded)
}

/// The rule for a host of `tools.private_hosts`, which has all its ports unless it names one.
fn opening(host: &str) -> String {
    let is_bare_address = host.parse::<std::net::Ipv6Addr>().is_ok();
    let has_port = !is_bare_address && host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match (is_bare_address, has_port) {
        (true, _) => format!("WebFetch(domain:[{host}]:*)"),
        (_, true) => format!("WebFetch(domain:{host})"),
        (_, false) => format!("WebFetch(domain:{host}:*)"),
    }
}

/// The stricter of two modes that may be asked for.
fn stricter(one: Option<Mode>, other: Option<Mode>) -> Option<Mode> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.is_stricter(one) { other } else { one }),
        (one, other) => one.or(other),
    }
}

fn unsafe_without(problem: &Translated) -> CliError {
    CliError::said(Exit::Config, |lang| lang.permissions_stop(problem.get(lang)))
}

/// A path as people read it.
fn shown(path: &Path, root: &Path, home: &str) -> String {
    if let Ok(inside) = path.strip_prefix(root) {
        return inside.display().to_string();
    }
    match path.strip_prefix(home) {
        Ok(own) if !home.is_empty() => format!("~/{}", own.display()),
        _ => path.display().to_string(),
    }
}

/// Rules of a flag: commas or spaces stand between them, but not inside brackets.
pub fn split(text: &str) -> Vec<String> {
    let (mut rules, mut rule, mut depth) = (Vec::new(), String::new(), 0_usize);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter == ',' || letter.is_whitespace()) {
            rules.push(std::mem::take(&mut rule));
        } else {
            rule.push(letter);
        }
    }
    rules.push(rule);
    rules.retain(|rule| !rule.trim().is_empty());
    rules
}

impl LoadedPermissions {
    /// Records settings without an effect here, and adds `ask` rules for hooks that are not run, except those that the
    /// user trusted to skip.
    fn leave(&mut self, file: &SettingsFile, shown: &str, words: &[String], anchors: &Anchors<'_>) {
        for hook in file.hooks.iter().filter(|hook| !words.contains(&hook.word())) {
            let origin = Origin { scope: RuleScope::Hook, file: shown.to_owned(), line: hook.line };
            let rules = hook.rules().into_iter().map(|text| Rule::new(List::Ask, &text, origin.clone(), anchors));
            self.permissions.rules.extend(rules);
            self.hooks.push((hook.clone(), origin));
        }
        let matchers: Vec<String> = file.hooks.iter().map(|hook| hook.matcher.clone()).collect();
        let before = (!matchers.is_empty()).then(|| ("hooks.PreToolUse".to_owned(), matchers));
        let events = file.events.iter().map(|event| (format!("hooks.{event}"), Vec::new()));
        let unused = before.into_iter().chain(events).chain(file.unused.iter().cloned());
        self.unused.extend(unused.map(|(what, names)| Unused { what, place: shown.to_owned(), names }));
    }

    /// The mode to work in: what the user chose, else what the user's settings ask for. What came with the project
    /// counts only where it is stricter than both.
    pub fn mode(&self, chosen: Mode, by: ChosenBy) -> (Mode, Option<Translated>) {
        let (own, foreign) = match by {
            ChosenBy::User => (chosen, None),
            ChosenBy::Project => (self.mode.unwrap_or_default(), stricter(Some(chosen), self.foreign)),
            ChosenBy::Nobody => (self.mode.unwrap_or(chosen), self.foreign),
        };
        let mode = foreign.filter(|foreign| foreign.is_stricter(own)).unwrap_or(own);
        if self.no_bypass && mode == Mode::BypassPermissions {
            return (Mode::Default, Some(Translated::new(|lang| lang.permissions_no_bypass().to_owned())));
        }
        (mode, None)
    }
}

#[cfg(test)]
mod tests;
