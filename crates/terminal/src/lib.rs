//! The chat in a terminal: `max-team` without `-p`.
//!
//! [`chat()`] opens the session and shows live rows under the terminal's own scrollback. It knows the team only through its
//! `TeamHandle`, and reads neither the environment nor the settings nor the journal.

mod app;
mod background;
mod chat;
mod command_queue;
mod details;
mod dialog;
mod diff;
mod editor;
mod history;
mod markdown;
mod members;
mod mention;
mod menu;
mod permission_dialog;
mod plan_dialog;
mod plan_editor;
mod plan_panel;
pub mod plan_text;
mod plans;
mod question;
mod question_dialog;
mod rows;
mod screen;
mod search;
mod session;
mod slash;
mod slash_output;
mod stream_preview;
mod task_panel;
mod teammates;
#[cfg(test)]
mod tests;
pub mod text;
mod theme;
mod transcript;
mod tty;
mod view;

use std::path::PathBuf;

use max_team_core::id::SessionId;
use max_team_core::message::Principal;
use max_team_core::plan::{Draft, Plan};
use max_team_runtime::query;
use max_team_runtime::{OpenOptions, Spawn, TeamHandle};
use tokio_util::sync::CancellationToken;

pub use session::{Models, TeamFiles};
pub use slash::{chat_command, unknown_command};

use app::App;
use chat::Chat;
use command_queue::{CommandContext, CommandQueue};
use session::Session;
use theme::Theme;

use max_team_workspace::config::choice::WhileBusy;
use max_team_workspace::i18n::Lang;

/// What a chat needs.
#[derive(Debug)]
pub struct ChatOptions {
    pub handle: TeamHandle,
    /// Who sits here.
    pub by: Principal,
    /// The directory that is worked on.
    pub cwd: PathBuf,
    /// Our folder, where the history of drafts is kept.
    pub home: PathBuf,
    /// The session to begin with; others are opened with the same definition.
    pub open: OpenOptions,
    /// What is said first, before anybody types.
    pub first: Option<String>,
    /// A plan that is put before the user first, and where it comes from.
    pub propose: Option<(Draft, String)>,
    /// How `/model` finds models.
    pub models: Models,
    /// What Enter does while a turn runs.
    pub while_busy: WhileBusy,
    /// Whether to paint in colour.
    pub color: bool,
    pub lang: Lang,
    /// A demo: its models are a recording, and its session is gone with the program.
    pub scratch: bool,
    /// Teammates that begin before anything is said.
    pub teammates: Vec<Spawn>,
    /// How `/team load` finds teams.
    pub teams: TeamFiles,
    /// Called once the chat has started and waits: gives memory back that only the start needed.
    pub when_started: fn(),
}

/// How a chat was left.
#[derive(Debug)]
pub struct ChatExit {
    pub reason: ExitReason,
    /// The session that was talked in at the end.
    pub session: SessionId,
    /// The last plan, as it stood.
    pub plan: Option<Plan>,
}

/// Why a chat ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ExitReason {
    /// The user left.
    Quit,
    /// The program is told to stop.
    Shutdown,
    /// The terminal is gone.
    Hangup,
}

/// Starts the teammates that the session does not have yet: a chat that goes on is begun with the same flags.
async fn recruit(
    handle: &TeamHandle,
    session: &mut Session,
    id: SessionId,
    teammates: Vec<Spawn>,
) -> anyhow::Result<()> {
    if teammates.is_empty() {
        return Ok(());
    }
    let (_, new) = handle.ask(query::Newcomers { session: id, teammates }).await?;
    if !new.is_empty() {
        session.recruit(new);
    }
    Ok(())
}

/// Opens the session and talks until the user leaves. The session stays open then: shutting the team down parks it.
/// Errors of opening are the runtime's own (`RuntimeError`).
pub async fn chat(options: ChatOptions, shutdown: CancellationToken) -> anyhow::Result<ChatExit> {
    let ChatOptions {
        handle,
        by,
        cwd,
        home,
        open,
        first,
        propose,
        models,
        while_busy,
        color,
        lang,
        scratch,
        teammates,
        teams,
        when_started,
    } = options;
    // First listen, then open: what happens in between is then heard, or in the journal, or both.
    let notices = handle.watch();
    let definition = open.definition.clone();
    let (team, choice, definitions) = (open.team.clone(), open.choice.clone(), open.definitions.clone());
    let opened = handle.open(by.clone(), &cwd, open).await?;
    let has_past = opened.resumed || !opened.history.is_empty();
    let events = if has_past { handle.ask(query::Events { session: opened.session }).await? } else { Vec::new() };
    let place = cwd.display().to_string();
    let session = Session::new(lang, definition.name.clone(), models, &opened);
    let mut session = session.with_team(team.clone()).with_keys(while_busy);
    session.find_teams(teams);
    session.set_recorded(scratch);
    let root = cwd.clone();
    session.find_files(move |name| max_team_runtime::is_path(&root, name));
    let mut begun = session.begin(&opened, events);
    recruit(&handle, &mut session, opened.session, teammates).await?;
    begun.extend(first.into_iter().flat_map(|first| session.say(first)));
    if let Some((draft, source)) = propose {
        session.propose(draft, source);
    }
    let link = CommandQueue::new(CommandContext {
        handle,
        by,
        cwd,
        home: home.clone(),
        definition,
        team,
        choice,
        definitions,
        session: opened.session,
    });
    let theme = Theme { color };
    let face = App::enter(link, notices, |size| {
        let mut chat = Chat::new(session, home.join("history"), place, theme, usize::from(size.width));
        if scratch {
            chat.forget();
        }
        chat.greet();
        chat.show(begun);
        chat
    })?;
    face.run(shutdown, when_started).await
}
