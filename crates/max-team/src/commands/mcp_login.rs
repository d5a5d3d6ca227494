//! `mcp login` and `mcp logout`: the user's login at a remote server.

use std::io::{BufRead as _, IsTerminal as _};
use std::process::{Command, Stdio};

use max_team_core::mcp::McpServer;
use max_team_mcp::{SignIn, SignInError, log_out};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::mcp;
use max_team_workspace::setup::AppEnv;
use tokio::sync::oneshot;

use super::mcp_client::{Folder, wait};

pub(super) fn login(folder: &Folder<'_>, lang: Lang, name: &str) -> anyhow::Result<Exit> {
    let found = folder.one(name)?;
    if !found.is_trusted {
        return Err(CliError::said(Exit::Denied, |lang| lang.server_needs_trust(name)).into());
    }
    let server = &found.server;
    check(server, name)?;
    let failed =
        |error: SignInError| CliError::said(Exit::Failed, |lang| lang.server_failed(name, lang.sign_in_error(&error)));
    wait(async {
        let cert_file = mcp::cert_file(folder.place);
        let begun = SignIn::begin(&folder.place.home, server, cert_file.as_deref()).await.map_err(failed)?;
        super::print(&format!("{}\n\n  {}\n\n", lang.sign_in_open_this(name), begun.url()))?;
        open_browser(folder.place, begun.url());
        let (sender, pasted) = oneshot::channel();
        if std::io::stdin().is_terminal() {
            super::print(&format!("{}\n", lang.sign_in_paste()))?;
            // Ends with the process: a line that never comes must not hold it up.
            std::thread::spawn(move || {
                let mut line = String::new();
                if std::io::stdin().lock().read_line(&mut line).is_ok() {
                    drop(sender.send(line));
                }
            });
        }
        let pasted = async move {
            match pasted.await {
                Ok(line) => line,
                Err(_) => std::future::pending().await,
            }
        };
        begun.finish(pasted).await.map_err(failed)?;
        super::print(&format!("{}\n", lang.signed_in(name)))?;
        Ok(Exit::Ok)
    })?
}

fn check(server: &McpServer, name: &str) -> Result<(), CliError> {
    if server.is_local() {
        return Err(CliError::said(Exit::Usage, |lang| lang.sign_in_local(name)));
    }
    if server.headers.keys().any(|header| header.eq_ignore_ascii_case("authorization")) {
        return Err(CliError::said(Exit::Usage, |lang| lang.sign_in_has_header(name)));
    }
    Ok(())
}

/// Opens an address in the user's browser, if there is a screen. Without one, the user has the printed address.
pub(super) fn open_browser(place: &AppEnv, url: &str) {
    let has_screen =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| place.env.get(name).is_some_and(|it| !it.is_empty()));
    let program = match (cfg!(target_os = "macos"), has_screen) {
        (true, _) => "open",
        (false, true) => "xdg-open",
        (false, false) => return,
    };
    let started =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = started {
        std::thread::spawn(move || drop(child.wait()));
    }
}

pub(super) fn logout(folder: &Folder<'_>, lang: Lang, name: &str) -> anyhow::Result<Exit> {
    let was_there = log_out(&folder.place.home, &folder.one(name)?.server);
    super::print(&format!("{}\n", if was_there { lang.signed_out(name) } else { lang.not_signed_in(name) }))?;
    Ok(Exit::Ok)
}
