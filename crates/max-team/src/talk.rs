//! Talking: chat, headless and demo are one path with different faces and models.
//!
//! Settings → model → journal (while the connection is prepared on another thread) → house → face. Whatever way the
//! face ends, sessions are parked and the journal is closed before the program is.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::team::Settings;
use max_team_llm::Router;
use max_team_runtime::{Open, RuntimeError, TeamHandle};

use crate::args::{Demo, Talk};
use crate::config::Config;
use crate::config::choice::Language;
use crate::demo::{self, Tape};
use crate::exit::{Exit, Stop};
use crate::headless::{self, Headless};
use crate::models::{self, Chosen};
use crate::setup::{self, Place};
use crate::signals::Signals;
use crate::{agents, stdin};

/// Threads for tools; each is only there while it works.
const TOOL_THREADS_MAX: usize = 8;

pub(crate) fn run(place: &Place, talk: Talk) -> anyhow::Result<Exit> {
    let agent = agents::choose(&talk, place)?;
    let config = place.settings(talk.config.as_deref(), setup::overrides(&talk, agent.model))?;
    config.warnings.iter().for_each(|warning| headless::talk(warning));
    let which = setup::which(&talk)?;
    let schema = talk.json_schema.as_deref().map(|given| stdin::schema(given, &place.cwd)).transpose()?;
    let chosen = match models::choose(&config, &place.env) {
        Err(stop) if stop.exit == Exit::NoKey && talk.print.is_none() && offers_demo(&stop) => {
            return demo(place, &Demo { yes: false, no_color: talk.no_color, lang: talk.lang });
        }
        chosen => chosen?,
    };
    let settings = setup::settings_for(&chosen, &config, schema.is_some())?;
    let open = Open { which, definition: agent.definition, settings, schema };
    let root = setup::project_root(&config)?;
    let prompt = match &talk.print {
        Some(given) => Some(stdin::prompt(given, talk.continue_last || talk.resume.is_some())?),
        None => None,
    };
    // The connection is prepared while the journal opens; a call that comes earlier simply waits for it.
    warm(&chosen.router, &chosen.model.provider);
    let journal = place.journal(config.journal.sync).map_err(|error| setup::stop(&error))?;
    let what = if prompt.is_some() { "a headless run" } else { "a chat" };
    let team = setup::house(place, &config, journal, chosen.router.clone(), what)?;
    if let Some(prompt) = prompt {
        let face = Headless {
            handle: team.clone(),
            by: place.principal("headless"),
            cwd: root,
            prompt,
            format: talk.output_format,
            partial: talk.include_partial_messages,
            key_source: chosen.key_source,
        };
        return drive(&team, |signals| face.run(open, signals));
    }
    let seating = Seating { root, first: talk.prompt, no_color: talk.no_color, tape: None };
    chat(place, &config, &team, Some(Arc::new(chosen)), open, seating)
}

/// A recorded model against real tools, in a scratch project with a journal of its own.
pub(crate) fn demo(place: &Place, options: &Demo) -> anyhow::Result<Exit> {
    let _ = (place, options);
    Err(Stop::new(Exit::Failed, "soon").into())
}

/// Runs a face on a runtime of its own, then parks everything.
fn drive<F: Future<Output = anyhow::Result<Exit>>>(
    team: &TeamHandle,
    face: impl FnOnce(Signals) -> F,
) -> anyhow::Result<Exit> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(TOOL_THREADS_MAX).build()?;
    let exit = runtime.block_on(async {
        let exit = face(Signals::listen()?).await;
        let closed = team.shutdown().await;
        // What went wrong first is what the user needs to know.
        let exit = exit?;
        closed?;
        anyhow::Ok(exit)
    });
    // A tool that does not stop must not keep the program: its intent is in the journal.
    runtime.shutdown_background();
    exit
}

fn warm(router: &Router, provider: &str) {
    let (router, provider) = (router.clone(), provider.to_owned());
    std::thread::spawn(move || router.warm(&provider));
}

/// Nothing is set up: in a terminal, the demo is one key away.
fn offers_demo(stop: &Stop) -> bool {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return false;
    }
    headless::talk(&stop.message);
    let mut out = std::io::stdout();
    let asked = write!(out, "\nPlay the demo now? [Y/n] ").and_then(|()| out.flush());
    let mut line = String::new();
    asked.is_ok()
        && std::io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0)
        && !line.trim().eq_ignore_ascii_case("n")
}

/// Where a chat sits and how it begins.
struct Seating {
    root: PathBuf,
    first: Option<String>,
    no_color: bool,
    tape: Option<&'static Tape>,
}

fn chat(
    place: &Place,
    config: &Config,
    team: &TeamHandle,
    chosen: Option<Arc<Chosen>>,
    open: Open,
    seating: Seating,
) -> anyhow::Result<Exit> {
    let _ = (place, config, team, chosen, open, seating.root, seating.first, seating.no_color, seating.tape);
    Err(Stop::new(Exit::Failed, "soon").into())
}
