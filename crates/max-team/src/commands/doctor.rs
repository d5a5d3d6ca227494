//! `doctor`: looks at everything that talking needs and says what it finds and what to do.
//!
//! It asks no provider anything and shows no key. What is wrong but does not stop work is a warning; what stops work
//! makes the exit code 1.

use std::path::Path;

use max_team_core::team::Member;
use max_team_sandbox::probe;

use crate::agents;
use crate::args;
use crate::config::Config;
use crate::config::choice::Face;
use crate::exit::{Exit, Stop};
use crate::models;
use crate::setup::Place;
use crate::words::Lang;

/// Entries that are verified on the side; more of them take their time and have a command of their own.
const VERIFIED_ENTRIES_MAX: u64 = 100_000;

pub(crate) fn run(place: &Place, options: &args::Doctor) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    let mut findings = Findings { text: String::new(), failed: false, lang };
    findings.good(lang.place(), lang.kept_in(&place.home.display().to_string()));
    let config = match place.settings(options.config.as_deref(), Vec::new()) {
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
        walls(config.project.sandbox, &mut findings);
        model(config, place, &mut findings);
    }
    team(place, options.agents.as_deref(), &mut findings);
    journal(place, options.rebuild, &mut findings);
    super::print(&findings.text)?;
    if findings.failed {
        return Err(Stop::said(Exit::Failed, |lang| lang.something_is_wrong().to_owned()).into());
    }
    Ok(Exit::Ok)
}

struct Findings {
    text: String,
    failed: bool,
    lang: Lang,
}

impl Findings {
    fn good(&mut self, what: &str, words: String) {
        self.text.push_str(&format!("ok    {what}: {words}\n"));
    }

    /// How it is, and no reason to do anything.
    fn note(&mut self, what: &str, words: String) {
        self.text.push_str(&format!("note  {what}: {words}\n"));
    }

    fn warn(&mut self, what: &str, words: String) {
        self.text.push_str(&format!("warn  {what}: {words}\n"));
    }

    fn bad(&mut self, what: &str, words: String) {
        self.failed = true;
        self.text.push_str(&format!("FAIL  {what}: {words}\n"));
    }
}

/// Settings that this version reads and cannot act on yet: said, not swallowed.
fn unheard(config: &Config, findings: &mut Findings) {
    if config.server.mode == Face::Web {
        findings.warn("server.mode", findings.lang.no_web_page(config.server.port));
    }
}

/// What this machine can put around a command, one line per wall.
fn walls(is_on: bool, findings: &mut Findings) {
    if !is_on {
        return findings
            .warn("walls", "turned off by `project.sandbox: false`: a command can do all that you can".into());
    }
    let power = probe();
    let is_whole = match (&power.bubblewrap, &power.landlock, &power.seatbelt) {
        (Ok(path), _, _) => {
            findings.good("walls", format!("bubblewrap ({}) and seccomp", path.display()));
            true
        }
        (_, _, Ok(())) => {
            findings.good("walls", "seatbelt".into());
            true
        }
        (Err(why), Ok(()), _) => {
            findings.warn("walls", format!("{why}: Landlock and seccomp only; install bubblewrap for all of them"));
            false
        }
        (Err(why), Err(also), _) => {
            let advice = "no command is run; install bubblewrap, or turn walls off by name (`project.sandbox: false`)";
            return findings.warn("walls", format!("{why}, and {also}: {advice}"));
        }
    };
    findings
        .good("wall", "files: the project is read, an agent's own folder written, home and the rest are hidden".into());
    if is_whole {
        findings.good("wall", "files within: .git/hooks, .git/config, agent and permission files stay as they are; blocked files cannot be opened".into());
    } else {
        findings.warn("wall", "files within: nothing in a folder that is written to can be protected or hidden: commands that nobody looks at are refused there".into());
    }
    findings.good("wall", "network: none, unless the agent has one".into());
    match power.bubblewrap {
        Ok(_) => findings.good("wall", "hosts: an allow-list is kept, by a proxy".into()),
        Err(_) => findings.note("wall", "hosts: an allow-list cannot be kept; such commands are refused".into()),
    }
    findings.good("wall", "processes: a supervisor ends the whole tree, at its limits and when we die".into());
    if power.seatbelt.is_ok() {
        findings.note("wall", "limits: time, output, processor, file size and open files for each process; memory and processes are not counted on macOS".into());
    } else {
        findings.good(
            "wall",
            "limits: time, output, processor, file size, open files; memory and processes are watched".into(),
        );
    }
}

fn model(config: &Config, place: &Place, findings: &mut Findings) {
    let lang = findings.lang;
    for (provider, names) in models::local_servers() {
        findings.good(lang.local_server(), lang.server_with(provider, names.len()));
    }
    match models::choose(config, &place.env) {
        Ok(chosen) => {
            let model = format!("{}/{}", chosen.model.provider, chosen.model.name);
            let words = lang.model_with_key(&model, &chosen.key_source, chosen.model.price.is_some());
            findings.good(lang.model_now(), words);
        }
        Err(stop) => findings.bad(lang.model_now(), stop.words(lang).to_owned()),
    }
}

/// Who is on the team, and what they ask for in vain.
fn team(place: &Place, file: Option<&Path>, findings: &mut Findings) {
    let team = match agents::team(file, place) {
        Ok(team) => team,
        Err(stop) => return findings.bad(findings.lang.team_word(), stop.words(findings.lang).to_owned()),
    };
    let lang = findings.lang;
    let one = |member: &Member| format!("{} ({})", member.definition.name, member.definition.role);
    let members: Vec<String> = team.members.iter().map(one).collect();
    let members = if members.is_empty() { lang.nobody().to_owned() } else { members.join(", ") };
    findings.good(lang.team_word(), format!("{}: {}", team.source, lang.leads(&one(&team.lead), &members)));
    // What is not available yet is said below, for the built-in team too.
    let told = team.warnings.iter().filter(|warning| !warning.contains("not available yet"));
    told.for_each(|warning| findings.warn(lang.team_word(), warning.clone()));
    for member in team.members.iter().filter(|member| !member.mcp_servers.is_empty()) {
        let servers: Vec<&str> = member.mcp_servers.iter().map(|server| server.name.as_str()).collect();
        let words = format!("{}: {}: {}", member.definition.name, servers.join(", "), lang.not_connected());
        findings.note(lang.mcp_servers(), words);
    }
    for (name, tools) in &team.later {
        findings.note(lang.tools(), format!("{name}: {}: {}", tools.join(", "), lang.not_yet()));
    }
}

fn journal(place: &Place, rebuild: bool, findings: &mut Findings) {
    let (lang, what) = (findings.lang, findings.lang.journal());
    let journal = match place.journal(crate::config::choice::Strength::Normal) {
        Ok(journal) => journal,
        Err(error) => return findings.bad(what, lang.journal_failure(&error)),
    };
    match journal.quick_check() {
        Ok(faults) if faults.is_empty() => findings.good(what, lang.database_sound().to_owned()),
        Ok(faults) => findings.bad(what, lang.database_damaged(&faults.join("; "))),
        Err(error) => findings.bad(what, lang.journal_failure(&error)),
    }
    match journal.last_seq() {
        Ok(entries) if entries > VERIFIED_ENTRIES_MAX => {
            findings.good(what, lang.entries_unchecked(entries));
        }
        Ok(entries) => match journal.verify() {
            Ok(report) if report.faults.is_empty() => {
                findings.good(what, lang.entries_hold(entries));
            }
            Ok(_) => findings.bad(what, lang.not_as_written().to_owned()),
            Err(error) => findings.bad(what, lang.journal_failure(&error)),
        },
        Err(error) => findings.bad(what, lang.journal_failure(&error)),
    }
    if rebuild {
        match journal.rebuild(max_team_runtime::project_entry) {
            Ok(()) => findings.good(what, lang.rebuilt().to_owned()),
            Err(error) => findings.bad(what, lang.journal_failure(&error)),
        }
    }
}
