//! Talking: chat, headless and demo are one path with different frontends and models.
//!
//! Settings → model → journal (while the connection is prepared on another thread) → runtime → frontend. However the
//! frontend ends, sessions are parked and the journal is closed before the program ends.

mod fork;

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use max_team_core::agent::Settings;
use max_team_core::event::{Event, LaunchFlags, TurnOutcome};
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::message::Principal;
use max_team_core::plan::Draft;
use max_team_runtime::skills::{Catalogue, Contract};
use max_team_runtime::{
    Command, OpenOptions, Order, RuntimeError, Spawn, TeamHandle, TeamReader, Which, new_id, query,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::args::{Demo, Format, Input, RunSkill, ServeOptions, TalkFlags, TeamFlags};
use crate::demo::{self, DemoStage};
use crate::flags;
use crate::headless::{self, Consent, DemoAnswers, Headless, RunVerdict, Task};
use crate::recordings;
use crate::signals::Signals;
use crate::stdin;
use max_team_terminal::{ChatExit, ChatOptions, ExitReason, Models, TeamFiles};
use max_team_workspace::config::Config;
use max_team_workspace::config::choice::Frontend;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::models::{self, ChosenModel};
use max_team_workspace::open::Workspace;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::skills;
use max_team_workspace::team::LeadKind;
use max_team_workspace::team_file::{self, TeamContext};

pub(crate) use fork::fork;

/// Threads for tools; each is only there while it works.
pub(crate) const TOOL_THREADS_MAX: usize = 8;

pub(crate) fn run(place: &AppEnv, mut talk: TalkFlags) -> anyhow::Result<Exit> {
    flags::check(&talk)?;
    // Memory treats piped lines as a conversation, and `-p` as a single question.
    let is_conversation = talk.print.is_none();
    if talk.print.is_none() && !has_screen(place) {
        // `git diff | max-team "review this"` is one question with its context, not a chat of many lines.
        talk.print = talk.prompt.take();
    }
    let record = asked_for(place, talk.record.as_deref())?;
    let (talk, who) = read_who(place, talk)?;
    let schema = talk.json_schema.as_deref().map(|given| stdin::schema(given, &place.cwd)).transpose()?;
    let selection = talk.selection();
    let workspace = Workspace::read_as(place, &selection, flags::overrides(&talk), who)?;
    if workspace.config.server.mode == Frontend::Web && talk.print.is_none() && has_screen(place) {
        drop(workspace);
        let options = ServeOptions { open: true, ..ServeOptions::at_home(&talk) };
        return crate::commands::serve::serve(place, &options);
    }
    let task = task(place, &workspace.root, &talk)?;
    match workspace.require_model(place) {
        Err(stop) if stop.exit == Exit::NoKey && talk.print.is_none() && offers_demo(&stop, place.speaks()) => {
            return demo(place, &Demo { no_color: talk.no_color, ..Demo::default() });
        }
        found => found?,
    }
    // The connection is prepared while the journal opens; a call that comes earlier simply waits for it.
    warm(&workspace.chosen);
    let storage = place.begin(&workspace.config)?;
    let stored = storage.reader();
    let which = flags::which(&talk, &stored)?;
    let open = OpenOptions {
        mode_is_named: talk.team.permission_mode.is_some(),
        choice: selection.choice(place),
        schema,
        ..workspace.request(which)
    };
    let initial = open.definition.work.initial_prompt.clone();
    let teammates = match talk.teammates.as_deref() {
        Some(name) => {
            let here = TeamContext::seated(&open.definition.name, open.team.as_ref(), open.settings.mode);
            teammates(place, name, &open.definition.name, &here)?
        }
        None => Vec::new(),
    };
    let (open, limit) = as_agreed(place, &stored, &workspace.root, task.as_ref(), open)?;
    let what = if task.is_some() { "a headless run" } else { "a chat" };
    let team = workspace.start(place, storage, what, is_conversation)?;
    let Workspace { config, chosen, root, .. } = workspace;
    if let Some(task) = task {
        let face = Headless {
            format: talk.formats.output_format,
            partial: talk.formats.include_partial_messages,
            key_source: chosen.key_source.clone(),
            verbose: talk.team.verbose,
            teammates,
            record,
            limit,
            ..Headless::new(place, &team, root, task, place.lang(&config))
        };
        let exit = drive(&team, |signals| face.run(open, signals))?;
        crate::commands::sessions::forget_old(place, &config, exit);
        return Ok(exit);
    }
    // Who was asked for by name may have something to begin with.
    let begins = talk.agent.is_some() && !talk.continue_last && talk.resume.is_none();
    let first = talk.prompt.or_else(|| Some(initial).filter(|initial| begins && !initial.is_empty()));
    let seating = ChatStart { first, no_color: talk.no_color, teammates, record, ..ChatStart::at(root) };
    let exit = chat(place, &config, &team, Some(chosen), open, seating)?;
    crate::commands::sessions::forget_old(place, &config, exit);
    Ok(exit)
}

/// The lead and the team that the flags choose. A session that is continued is led as it was opened, where the flags of today say
/// nothing about that and its agents can still be read.
fn read_who(place: &AppEnv, talk: TalkFlags) -> Result<(TalkFlags, LeadKind), CliError> {
    if let Some(same) = as_opened(place, &talk)?
        && let Ok(who) = LeadKind::read(&same.selection(), place)
    {
        return Ok((same, who));
    }
    let who = LeadKind::read(&talk.selection(), place)?;
    Ok((talk, who))
}

/// The flags with those that chose the lead and the team when the session was opened.
fn as_opened(place: &AppEnv, talk: &TalkFlags) -> Result<Option<TalkFlags>, CliError> {
    let is_chosen = talk.solo || talk.agent.is_some() || talk.coordinator || talk.team.agents.is_some();
    if is_chosen || !(talk.continue_last || talk.resume.is_some()) {
        return Ok(None);
    }
    let config = place.settings(talk.team.config.as_deref(), Vec::new())?;
    let root = setup::project_root(place, &config)?;
    // What is wrong with the journal is said when the session is opened.
    let Ok(storage) = place.storage_to_read() else { return Ok(None) };
    let stored = storage.reader();
    let row = match flags::which(talk, &stored)? {
        Which::Latest => stored.ask(query::LatestSession { root }),
        Which::Id(session) | Which::Before(session) => stored.ask(query::Session { session }),
        _ => return Ok(None),
    };
    let Ok(row) = row else { return Ok(None) };
    let LaunchFlags { agents, agent, solo, coordinator } =
        stored.ask(query::SessionChoice { session: row.session }).map_err(setup::failed)?;
    let team = TeamFlags { agents: agents.map(PathBuf::from), ..talk.team.clone() };
    Ok(Some(TalkFlags { agent, solo, coordinator, team, ..talk.clone() }))
}

/// The file that a run is to be written into; whether it can be is known before anything is paid for.
fn asked_for(place: &AppEnv, path: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let path = path.map(|path| place.cwd.join(path));
    path.iter().try_for_each(|path| recordings::check(path, false))?;
    Ok(path)
}

/// What a run without a chat is for; `None` for a chat.
fn task(place: &AppEnv, root: &Path, talk: &TalkFlags) -> Result<Option<Task>, CliError> {
    let Some(given) = &talk.print else {
        return Ok((!has_screen(place)).then_some(Task::Listen(Input::Text)));
    };
    match talk.formats.input_format {
        Input::Text => {
            // There is something to do without words.
            let goes_on = talk.continue_last || talk.resume.is_some() || talk.teammates.is_some();
            refuse_command(place, root, given)?;
            Ok(Some(Task::Say(stdin::prompt(given, goes_on)?)))
        }
        Input::StreamJson if given.is_empty() => Ok(Some(Task::Listen(Input::StreamJson))),
        Input::StreamJson => Err(CliError::said(Exit::Usage, |lang| lang.prompt_and_lines().to_owned())),
    }
}

/// Refuses a prompt that is for the chat.
fn refuse_command(place: &AppEnv, root: &Path, prompt: &str) -> Result<(), CliError> {
    let is_skill = |name: &str| Catalogue::read(&skills::places(place), root).all().any(|skill| skill.name == name);
    headless::slash_fault(prompt, is_skill).map_or(Ok(()), |words| Err(CliError::translated(Exit::Usage, &words)))
}

/// The members of a team that is written down; the user is told what is odd about it.
fn teammates(place: &AppEnv, name: &str, lead: &str, here: &TeamContext) -> Result<Vec<Spawn>, CliError> {
    let (team, warnings) = team_file::find(place, name, here)?;
    warnings.iter().for_each(|warning| headless::talk(warning.get(place.speaks())));
    crate::commands::team::tell_of_lead(&team, Some(lead), place.speaks());
    Ok(team.members)
}

/// `plan` and `run`: the team at work without a chat.
pub(crate) fn work(
    place: &AppEnv,
    talk: &TalkFlags,
    workspace: Workspace,
    task: Task,
    format: Format,
) -> anyhow::Result<Exit> {
    let record = asked_for(place, talk.record.as_deref())?;
    let open = OpenOptions { choice: talk.selection().choice(place), ..workspace.request(Which::New) };
    warm(&workspace.chosen);
    // With a terminal the user sees the plan and decides.
    let is_chat = matches!(task, Task::Run { .. }) && has_screen(place) && format == Format::Text && !talk.yes_to_plans;
    let runtime = workspace.start(place, place.begin(&workspace.config)?, "a plan", is_chat)?;
    let Workspace { config, chosen, root, .. } = workspace;
    let task = match task {
        Task::Run { draft, source } if is_chat => {
            let propose = Some((*draft, source));
            let seating = ChatStart { propose, no_color: talk.no_color, record, ..ChatStart::at(root) };
            return chat(place, &config, &runtime, Some(chosen), open, seating);
        }
        task => task,
    };
    let face = Headless {
        format,
        key_source: chosen.key_source.clone(),
        consent: if talk.yes_to_plans { Consent::Plans } else { Consent::Nothing },
        verbose: talk.team.verbose,
        record,
        ..Headless::new(place, &runtime, root, task, place.lang(&config))
    };
    drive(&runtime, |signals| face.run(open, signals))
}

/// A skill with a contract, carried out by an agent that has the tools it takes and no others. Its answer is held to the
/// shape that was agreed: what does not fit is sent back, and what never fits is no answer.
pub(crate) fn skill(
    place: &AppEnv,
    name: &str,
    contract: &Contract,
    input: &Value,
    options: &RunSkill,
) -> anyhow::Result<Exit> {
    let record = asked_for(place, options.record.as_deref())?;
    let talk = TalkFlags { team: options.team.clone(), ..TalkFlags::default() };
    let config = place.settings(options.team.config.as_deref(), flags::overrides(&talk))?;
    config.warnings.iter().for_each(|warning| headless::talk(warning));
    let chosen = models::choose(&config, place)?;
    let root = setup::project_root(place, &config)?;
    let settings = setup::settings_for(&chosen, &config, true)?;
    let settings = setup::permitted(place, &config, &root, &options.team.selection(), settings)?;
    let open = contracted(Which::New, name, contract, settings);
    warm(&chosen);
    let storage = place.begin(&config)?;
    let runtime =
        setup::runtime(place, &config, storage, chosen.router.clone(), "a skill", setup::RuntimeParts::only(None))?;
    let face = Headless {
        format: options.output_format,
        key_source: chosen.key_source.clone(),
        verbose: options.team.verbose,
        record,
        limit: Some(limit_of(name, contract)),
        ..Headless::new(place, &runtime, root, Task::Say(Contract::asked(input)), place.lang(&config))
    };
    drive(&runtime, |signals| face.run(open, signals))
}

/// A session with an agent that carries out a skill by itself.
fn contracted(which: Which, name: &str, contract: &Contract, settings: Settings) -> OpenOptions {
    OpenOptions::new(which, skills::hand(name, contract), settings, None)
}

/// How long a skill may take.
fn limit_of(name: &str, contract: &Contract) -> (String, Duration) {
    (name.to_owned(), Duration::from_millis(contract.timeout_ms))
}

/// A skill session that is continued without a prompt keeps its contract: time limit and output schema. With a prompt
/// it is an ordinary conversation without them, and the user is told so.
fn as_agreed(
    place: &AppEnv,
    stored: &TeamReader,
    root: &Path,
    task: Option<&Task>,
    open: OpenOptions,
) -> Result<(OpenOptions, Option<(String, Duration)>), CliError> {
    let Some((session, name)) = skill_before(stored, &open.which, root)? else { return Ok((open, None)) };
    if !matches!(task, Some(Task::Say(text)) if text.is_empty()) {
        // One that is gone or not to be used any more is not gone on with.
        let goes_on = skills::agreed(&Catalogue::read(&skills::places(place), root), &name).is_ok();
        headless::talk(&place.speaks().skill_talked_to(&name, goes_on));
        return Ok((open, None));
    }
    if open.schema.is_some() {
        return Err(CliError::said(Exit::Usage, |lang| lang.skill_has_its_form(&name)));
    }
    let (name, contract) = skills::agreed(&Catalogue::read(&skills::places(place), root), &name)?;
    let settings = Settings { structured: true, ..open.settings };
    // That session and no other: which one is the latest may have changed meanwhile.
    Ok((contracted(Which::Id(session), &name, &contract, settings), Some(limit_of(&name, &contract))))
}

/// The skill that a session was carrying out and has not come to an end with.
fn skill_before(stored: &TeamReader, which: &Which, root: &Path) -> Result<Option<(SessionId, String)>, CliError> {
    let row = match which {
        Which::Latest => stored.ask(query::LatestSession { root: root.to_owned() }),
        Which::Id(session) => stored.ask(query::Session { session: *session }),
        Which::New | Which::Before(_) | Which::Chat(_) | Which::Fork(..) => return Ok(None),
    };
    // Opening the session reports the error.
    let Ok(row) = row else { return Ok(None) };
    let turn = stored.ask(query::Agent { agent: row.lead }).map_err(setup::failed)?;
    let Some(name) = turn.identity().and_then(|(_, _, led)| skills::of(led)) else { return Ok(None) };
    let is_over = !turn.is_busy()
        && stored.ask(query::AgentEvents { agent: row.lead }).map_err(setup::failed)?.iter().any(is_end_of_skill);
    Ok((!is_over).then(|| (row.session, name.to_owned())))
}

/// Whether a skill came to its end there: with its object, or without having managed one. What is answered in words is
/// talk about it.
fn is_end_of_skill((_, event): &(i64, Event)) -> bool {
    let Event::TurnEnded(ended) = event else { return false };
    ended.structured.is_some() || !(ended.end == TurnOutcome::Answered || ended.end.is_unfinished())
}

/// Recorded models against real tools, in a scratch project with a journal of its own.
pub(crate) fn demo(place: &AppEnv, options: &Demo) -> anyhow::Result<Exit> {
    if options.list {
        crate::commands::print(&demo::list(place.speaks()))?;
        return Ok(Exit::Ok);
    }
    let scenario = demo::scenario(options.name.as_deref())?;
    let record = asked_for(place, options.record.as_deref())?;
    let lang = place.lang(&place.settings(None, Vec::new())?);
    let tape = scenario.tape(lang);
    let is_watched = !options.yes && has_screen(place);
    let answers = match options.yes {
        true => DemoAnswers::Flag,
        false if stdin::says_no()? => DemoAnswers::Input,
        false => DemoAnswers::Demo,
    };
    let stage = DemoStage::new(place, scenario, lang, is_watched)?;
    let DemoStage { scratch, root, place: away, config, open, team, unsandboxed, has_pages } = stage;
    let (intro, outro) = demo::words(lang, has_pages);
    // A user who watched may want to look at the files.
    let is_kept = options.keep || is_watched;
    let left = match is_kept {
        true => lang.demo_kept(root.display().to_string(), away.home.display().to_string()),
        false => lang.demo_removed().to_owned(),
    };
    let _removed_at_end = match scratch {
        Some(scratch) if is_kept => {
            scratch.keep();
            None
        }
        scratch => scratch,
    };
    crate::commands::print(&format!("{intro} {}\n{}\n", root.display(), unsandboxed.unwrap_or_default()))?;
    let exit = if is_watched {
        let first = Some(tape.prompt.to_owned());
        let seating = ChatStart { first, no_color: options.no_color, scratch: true, ..ChatStart::at(root) };
        chat(&away, &config, &team, None, open, seating)?
    } else {
        // The question is not typed, so it is printed.
        crate::commands::print(&format!("> {}\n\n", tape.prompt))?;
        let face = Headless {
            consent: Consent::Everything { answers, objection: tape.objection },
            ..Headless::new(&away, &team, root, Task::Say(tape.prompt.to_owned()), lang)
        };
        drive(&team, |signals| face.run(open, signals))?
    };
    // A refused plan and a failed task are parts of the story.
    let exit = if matches!(exit, Exit::Interrupted | Exit::Terminated | Exit::Failed) { exit } else { Exit::Ok };
    if let Some(path) = record {
        let saved = recordings::save(&recordings::find(&away, None)?, &path, false, lang)?;
        crate::commands::print(&format!("\n{saved}\n"))?;
    }
    crate::commands::print(&format!("\n{left}\n{outro}\n"))?;
    Ok(exit)
}

/// Runs a face on a runtime of its own, then parks everything.
pub(crate) fn drive<F: Future<Output = anyhow::Result<Exit>>>(
    team: &TeamHandle,
    face: impl FnOnce(Signals) -> F,
) -> anyhow::Result<Exit> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(TOOL_THREADS_MAX).build()?;
    let mut exit = Ok(Exit::Ok);
    let whole = async {
        let exit = face(Signals::listen()?).await;
        let mut again = Signals::listen()?;
        let closed = tokio::select! {
            closed = team.shutdown() => closed,
            // A second signal ends the program at once: the journal is complete at every moment.
            _ = again.next() => Ok(()),
        };
        // What went wrong first is what the user needs to know.
        match exit? {
            Exit::Failed => anyhow::Ok(Exit::Failed),
            exit => closed.map(|()| exit).map_err(|error| setup::failed(error).into()),
        }
    };
    max_team_runtime::block_on(&runtime, std::pin::pin!(async { exit = whole.await }));
    // A tool that does not stop must not keep the program: its intent is in the journal.
    runtime.shutdown_background();
    exit
}

fn warm(chosen: &ChosenModel) {
    let (router, provider) = (chosen.router.clone(), chosen.model.provider.clone());
    std::thread::spawn(move || router.warm(&provider));
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Whether a chat can be shown: without a terminal, or with `TERM=dumb`, lines of the input are messages (`Task::Listen`).
fn has_screen(place: &AppEnv) -> bool {
    is_terminal() && place.env.get("TERM").is_some_and(|term| term != "dumb")
}

/// Nothing is set up: in a terminal, the demo is one key away.
fn offers_demo(stop: &CliError, lang: Lang) -> bool {
    if !is_terminal() {
        return false;
    }
    headless::talk(stop.words(lang));
    let mut out = std::io::stdout();
    let asked = write!(out, "\n{} [Y/n] ", lang.play_demo()).and_then(|()| out.flush());
    let mut line = String::new();
    asked.is_ok()
        && std::io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0)
        && !line.trim().eq_ignore_ascii_case("n")
}

/// Where a chat sits and how it begins.
struct ChatStart {
    root: PathBuf,
    first: Option<String>,
    /// A plan that is put before the user.
    propose: Option<(Draft, String)>,
    no_color: bool,
    /// Its journal is thrown away afterwards.
    scratch: bool,
    /// Teammates that begin before anything is said.
    teammates: Vec<Spawn>,
    /// The file that the run is written into afterwards.
    record: Option<PathBuf>,
}

impl ChatStart {
    /// An interactive chat in a folder.
    fn at(root: PathBuf) -> Self {
        let (no_color, scratch, teammates) = (false, false, Vec::new());
        Self { root, first: None, propose: None, no_color, scratch, teammates, record: None }
    }
}

fn chat(
    place: &AppEnv,
    config: &Config,
    team: &TeamHandle,
    chosen: Option<Arc<ChosenModel>>,
    open: OpenOptions,
    seating: ChatStart,
) -> anyhow::Result<Exit> {
    let proposed = seating.propose.is_some();
    let lang = place.lang(config);
    let record = seating.record;
    let here = TeamContext::seated(&open.definition.name, open.team.as_ref(), open.settings.mode);
    let options = ChatOptions {
        handle: team.clone(),
        by: place.principal("terminal"),
        cwd: seating.root,
        home: place.home.clone(),
        open,
        first: seating.first,
        propose: seating.propose,
        models: models(chosen, config.limits.budget_usd.is_some()),
        while_busy: config.keys.enter_while_busy,
        color: place.color(config, seating.no_color),
        lang,
        scratch: seating.scratch,
        teammates: seating.teammates,
        teams: teams(place, here, lang),
        when_started: max_team_sandbox::release_code,
    };
    // Another process may use another session of the folder meanwhile: what is recorded is what this chat was in.
    let was_in = &Cell::new(None);
    let by = options.by.clone();
    let exit = drive(team, |mut signals| async move {
        let shutdown = CancellationToken::new();
        let told = shutdown.clone();
        let mut face = std::pin::pin!(max_team_terminal::chat(options, shutdown));
        let reason = tokio::select! {
            left = &mut face => {
                let left = left?;
                was_in.set(Some(left.session));
                leave(team, by, left.session).await?;
                return Ok(exit_of(&left, proposed));
            }
            signal = signals.next() => signal,
        };
        // The face puts the terminal back; the runtime parks what runs.
        told.cancel();
        let session = face.await?.session;
        was_in.set(Some(session));
        leave(team, by, session).await?;
        Ok(reason)
    })?;
    if let Some((path, session)) = record.zip(was_in.get()) {
        headless::talk(&recordings::save(&recordings::of(place, session)?, &path, false, lang)?);
    }
    Ok(exit)
}

/// Records that the user leaves, so that running plans are paused in their name.
async fn leave(team: &TeamHandle, by: Principal, session: SessionId) -> Result<(), RuntimeError> {
    let (cwd, key) = (String::new(), EnvelopeId::new(new_id()));
    team.command(Order { by, cwd, key, command: Command::Leave { session } }).await
}

/// The exit code of a chat. Leaving it is no failure, unless it was opened to run a plan.
fn exit_of(left: &ChatExit, proposed: bool) -> Exit {
    match &left.reason {
        ExitReason::Quit if proposed => left.plan.as_ref().map_or(Exit::Ok, |plan| RunVerdict::of_leaving(plan).exit),
        ExitReason::Quit => Exit::Ok,
        ExitReason::Shutdown => Exit::Terminated,
        // The terminal is gone.
        ExitReason::Hangup => Exit::Failed,
    }
}

/// How `/team load` finds teams.
fn teams(place: &AppEnv, here: TeamContext, lang: Lang) -> TeamFiles {
    let place = place.clone();
    TeamFiles(Box::new(move |name| {
        let (team, warnings) = team_file::find(&place, name, &here.clone().and(&place))?;
        Ok((team.members, warnings.iter().map(|warning| warning.get(lang).to_owned()).collect()))
    }))
}

/// How `/model` finds models: those of the catalogue, at providers that are set up.
fn models(chosen: Option<Arc<ChosenModel>>, capped: bool) -> Models {
    let listed = chosen.clone();
    Models {
        names: Box::new(move || listed.as_ref().map(|chosen| chosen.names()).unwrap_or_default()),
        resolve: Box::new(move |name| match &chosen {
            Some(chosen) => {
                let model = chosen.resolve(name)?;
                if capped && model.price.is_none() {
                    anyhow::bail!("there is no price for `{name}`, so the budget could not be kept");
                }
                Ok(model)
            }
            None => anyhow::bail!("a recording has only its own model"),
        }),
    }
}
