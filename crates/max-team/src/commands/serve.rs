//! `serve`: the team in a browser, and for programs over HTTP.

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use max_team_core::time::rfc3339;
use max_team_gateway::http::running::RunningServer;
use max_team_gateway::http::tokens::{TokenKind, TokenStore, scope_of};
use max_team_gateway::http::{
    AboutServer, DemoPrompt, NewProject, SessionSource, WebError, WebOptions, WebServer, login_link,
};
use max_team_runtime::{TeamHandle, now_ms};
use max_team_workspace::config::{self, Config};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::i18n::Lang;
use max_team_workspace::open::Workspace;
use max_team_workspace::setup::{self, AppEnv};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::mcp_login::open_browser;
use super::table::table;
use crate::args::{Serve, ServeCommand, ServeOptions, ServeToken, ServerChoice};
use crate::converse::drive;
use crate::demo::{self, DemoStage};

/// Characters of a token's name.
const NAME_CHARS_MAX: usize = 64;

pub(crate) fn run(place: &AppEnv, command: Serve) -> anyhow::Result<Exit> {
    match command.command {
        Some(ServeCommand::Token { command, server }) => tokens(place, command, &server),
        Some(ServeCommand::Link { server }) => link(place, &server),
        None => serve(place, &command.options),
    }
}

/// The team that is served, and where it lives.
struct ServedTeam {
    team: TeamHandle,
    source: SessionSource,
    /// Where the server runs: a demo has a home of its own.
    place: AppEnv,
    about: AboutServer,
    /// Ends with the server.
    _stage: Option<DemoStage>,
}

pub(crate) fn serve(place: &AppEnv, options: &ServeOptions) -> anyhow::Result<Exit> {
    let config = place.settings(options.served.config.as_deref(), Vec::new())?;
    let web = web_options(&config, options)?;
    let lang = place.lang(&config);
    let user_home = place.home.clone();
    let ServedTeam { team, source, place, about, _stage } = match &options.demo {
        Some(name) => of_demo(place, name, lang)?,
        None => of_folder(place, options, lang)?,
    };
    let opens = options.open;
    let is_json = options.json;
    let problem = source.problem();
    drive(&team.clone(), |mut signals| async move {
        let home = place.home.clone();
        let demo = about.demo.as_ref().map(|demo| demo.name.clone());
        let folder = about.folder.clone();
        let server = WebServer::bind(team, source, home.clone(), about, web).await;
        let server = server.map_err(|error| refused(&user_home, &error))?;
        let (url, port) = (server.url().to_owned(), server.port());
        let _entry = RunningServer { folder: folder.clone(), url, port, demo: demo.clone(), home }.enter(&user_home)?;
        let login = server.login_link()?;
        // Of a server that does not start, only the reason is told.
        if let Some(words) = &problem {
            crate::headless::talk(&format!("{words}\n{}", lang.serve_starts_anyway()));
        }
        if is_json {
            let line = json!({ "url": server.url(), "port": server.port(), "login": login, "folder": folder, "demo": demo.is_some() });
            announce(&line.to_string());
        } else {
            announce(&lang.serve_listens(server.url(), &folder, &login));
        }
        if opens {
            open_browser(&place, &login);
        }
        let shutdown = CancellationToken::new();
        tokio::select! {
            () = server.run(&shutdown) => Ok(Exit::Ok),
            signal = signals.next() => Ok(signal),
        }
    })
}

/// Prints a line with a secret that is meant for the user's eyes: other output has none.
fn announce(line: &str) {
    let mut out = std::io::stdout();
    // A reader that went away does not need it.
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
}

fn web_options(config: &Config, options: &ServeOptions) -> Result<WebOptions, CliError> {
    let public_url = config.server.public_url.clone().map(|url| url.trim_end_matches('/').to_owned());
    if options.behind_proxy && public_url.is_none() {
        return Err(CliError::said(Exit::Usage, |lang| lang.serve_needs_public_url().to_owned()));
    }
    Ok(WebOptions {
        host: options.host.clone(),
        port: options.port.unwrap_or(config.server.port),
        tls: options.tls_cert.clone().zip(options.tls_key.clone()),
        public_url: public_url.filter(|_| options.behind_proxy || options.tls_cert.is_some()),
        is_behind_proxy: options.behind_proxy,
    })
}

fn of_folder(place: &AppEnv, options: &ServeOptions, lang: Lang) -> Result<ServedTeam, CliError> {
    let selection = options.served.selection();
    let workspace = Workspace::read(place, &selection, Vec::new())?;
    let storage = place.begin(&workspace.config)?;
    let team = workspace.start(place, storage.clone(), "a web server", true)?;
    let root = workspace.root.clone();
    let about = about(place, &root.display().to_string(), lang, None);
    let chosen = Arc::clone(&workspace.chosen);
    let (place_box, selection) = (Box::new(place.clone()), Box::new(selection));
    let source = SessionSource::Folder { place: place_box, selection, root, chosen, storage };
    Ok(ServedTeam { team, source, place: place.clone(), about, _stage: None })
}

fn of_demo(place: &AppEnv, name: &str, lang: Lang) -> anyhow::Result<ServedTeam> {
    let scenario = demo::scenario(Some(name))?;
    let stage = DemoStage::kept(place, scenario, lang)?;
    stage.unsandboxed.iter().for_each(|words| crate::headless::talk(words));
    let demo = DemoPrompt { name: name.to_owned(), prompt: scenario.tape(lang).prompt.to_owned() };
    let about = about(place, &stage.root.display().to_string(), lang, Some(demo));
    let first = stage.root.clone();
    let lay_out = NewProject::new(move || scenario.lay_out_beside(&first, lang));
    let source = SessionSource::Recorded { open: Box::new(stage.open.clone()), root: stage.root.clone(), lay_out };
    Ok(ServedTeam { team: stage.team.clone(), source, place: stage.place.clone(), about, _stage: Some(stage) })
}

fn about(place: &AppEnv, folder: &str, lang: Lang, demo: Option<DemoPrompt>) -> AboutServer {
    let language = if lang == Lang::Zh { "zh" } else { "en" };
    AboutServer { user: place.principal("web").user, folder: folder.to_owned(), language, demo }
}

/// Why a server could not be started. A server of this user that is in the way is named with its address.
fn refused(home: &Path, error: &WebError) -> CliError {
    let mut running = RunningServer::list(home).unwrap_or_default().into_iter();
    match error {
        WebError::Served { folder, pid } => {
            let found = running.find(|server| server.folder == *folder);
            CliError::said(Exit::Failed, |lang| match &found {
                Some(server) => lang.serve_runs_already(folder, &server.url),
                // It has not opened its port yet, or is about to end.
                None => lang.serve_starts_already(folder, pid),
            })
        }
        WebError::Bind { port, error, .. } if error.kind() == ErrorKind::AddrInUse => {
            let found = running.find(|server| server.port == *port);
            CliError::said(Exit::Failed, |lang| match &found {
                Some(server) => lang.serve_port_served(port, &server.folder),
                None => lang.serve_port_taken(port),
            })
        }
        WebError::Bind { host, port, error } => {
            CliError::said(Exit::Failed, |lang| lang.serve_no_address(host, port, error))
        }
        WebError::Exposed(address) => CliError::said(Exit::Failed, |lang| lang.serve_exposed(address)),
        error => CliError::new(Exit::Failed, error.to_string()),
    }
}

fn link(place: &AppEnv, choice: &ServerChoice) -> anyhow::Result<Exit> {
    let server = find_running(place, choice)?;
    announce(&login_link(&TokenStore::new(&server.home), server.url.trim_end_matches('/'))?);
    Ok(Exit::Ok)
}

/// The running server of this folder, or the one that the flags choose.
fn find_running(place: &AppEnv, ServerChoice { port, demo }: &ServerChoice) -> anyhow::Result<RunningServer> {
    let running = RunningServer::list(&place.home)?;
    let folder = setup::project_root(place, &place.settings(None, Vec::new())?)?.display().to_string();
    let is_meant = |server: &&RunningServer| match (port, demo) {
        (Some(port), _) => server.port == *port,
        (None, Some(_)) => server.demo == *demo,
        (None, None) => server.folder == folder,
    };
    // The last of several demos is the one that was just started.
    if let Some(server) = running.iter().rev().find(is_meant) {
        return Ok(server.clone());
    }
    let others: Vec<String> = running.iter().map(|server| format!("{} ({})", server.url, server.folder)).collect();
    let others = others.join(", ");
    let words = |lang: Lang| {
        let wanted = match (port, demo) {
            (Some(port), _) => lang.serve_none_at(port),
            (None, Some(demo)) => lang.serve_no_demo(demo),
            (None, None) => lang.serve_none_of(&folder),
        };
        if others.is_empty() { wanted } else { lang.serve_others_run(wanted, &others) }
    };
    Err(CliError::said(Exit::Failed, words).into())
}

fn tokens(place: &AppEnv, command: ServeToken, choice: &ServerChoice) -> anyhow::Result<Exit> {
    // The tokens of a user hold for all their servers; a demo has tokens of its own.
    let is_chosen = choice.port.is_some() || choice.demo.is_some();
    let home = if is_chosen { find_running(place, choice)?.home } else { place.home.clone() };
    let store = TokenStore::new(&home);
    let lang = place.speaks();
    match command {
        ServeToken::Create { name, role, expires } => {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
                return Err(CliError::said(Exit::Usage, |lang| lang.serve_token_name(&name, NAME_CHARS_MAX)).into());
            }
            let end = expires.map(|text| end_of(&text)).transpose()?;
            let made = store.create(&name, role, end, now_ms());
            announce(&made.map_err(|error| CliError::new(Exit::Failed, error.to_string()))?);
            crate::headless::talk(lang.serve_token_once());
        }
        ServeToken::List { json } => list(&store, json, lang)?,
        ServeToken::Revoke { name } => {
            if store.revoke(&name, now_ms())? == 0 {
                return Err(CliError::said(Exit::Failed, |lang| lang.serve_no_token(&name)).into());
            }
            super::print(&format!("{}\n", lang.serve_token_revoked(&name)))?;
        }
    }
    Ok(Exit::Ok)
}

/// The time at which a token ends that lasts so long.
fn end_of(text: &str) -> Result<i64, CliError> {
    let wrong = || CliError::said(Exit::Usage, |lang| lang.serve_bad_time(text));
    let duration = match text.strip_suffix('d') {
        Some(days) => days.parse::<u64>().ok().and_then(|days| days.checked_mul(86_400)).map(Duration::from_secs),
        None => config::duration(text),
    };
    let ms = duration.and_then(|duration| i64::try_from(duration.as_millis()).ok()).filter(|ms| *ms > 0);
    ms.and_then(|ms| now_ms().checked_add(ms)).ok_or_else(wrong)
}

fn list(store: &TokenStore, as_json: bool, lang: Lang) -> anyhow::Result<()> {
    let mut tokens = store.list()?;
    tokens.retain(|token| token.kind != TokenKind::Login);
    if as_json {
        let rows: Vec<Value> = tokens
            .iter()
            .map(|token| {
                json!({
                    "id": token.id, "name": token.name, "kind": token.kind, "role": token.role,
                    "scope": scope_of(token.role),
                    "created_at": rfc3339(token.created_at_ms), "expires_at": token.expires_at_ms.map(rfc3339),
                })
            })
            .collect();
        super::print(&format!("{}\n", Value::from(rows)))?;
        return Ok(());
    }
    if tokens.is_empty() {
        super::print(&format!("{}\n", lang.serve_no_tokens()))?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = tokens
        .iter()
        .map(|token| {
            let end = token.expires_at_ms.map_or_else(|| lang.serve_token_endless().to_owned(), local);
            vec![token.id.clone(), token.name.clone(), token.role.name().to_owned(), local(token.created_at_ms), end]
        })
        .collect();
    super::print(&table(&lang.serve_token_heads(), &rows))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_last_for_days_or_any_other_time() {
        for (text, ms) in [("30d", 30 * 86_400_000), ("12h", 12 * 3_600_000), ("90", 90_000)] {
            let end = end_of(text).map(|end| end - now_ms());
            assert!(end.is_ok_and(|left| (ms - 5_000..=ms).contains(&left)), "{text}");
        }
        for text in ["", "0", "soon", "d", "-1d"] {
            assert!(end_of(text).is_err(), "{text}");
        }
    }
}
