//! `mcp serve`: the team as an MCP server.

use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use max_team_gateway::mcp::{HttpOptions, HttpServer, McpServer, ServeError};
use tokio_util::sync::CancellationToken;

use crate::args::{Mcp, ServeMcp};
use crate::converse::TOOL_THREADS_MAX;
use crate::headless;
use crate::signals::Signals;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::input_file;
use max_team_workspace::setup::{self, AppEnv};

/// Bytes of a token's file.
const TOKEN_FILE_BYTES_MAX: u64 = 4 << 10;
/// Characters of a token: fewer could be guessed.
const TOKEN_CHARS_MIN: usize = 16;
/// The permissions of others on a file.
const OTHERS: u32 = 0o077;

pub(crate) fn run(place: &AppEnv, command: Mcp) -> anyhow::Result<Exit> {
    match command {
        Mcp::Client(command) => super::mcp_client::run(place, command),
        Mcp::Serve(options) => serve(place, options),
    }
}

fn serve(place: &AppEnv, options: ServeMcp) -> anyhow::Result<Exit> {
    if let Some(origin) = options.allow_origin.iter().find(|origin| !is_origin(origin)) {
        return Err(CliError::said(Exit::Usage, |lang| lang.bad_origin(origin)).into());
    }
    let token = options.token_file.as_deref().map(read_token).transpose()?;
    let server = McpServer::open(place.clone(), options.served.selection())?;
    let lang = place.speaks();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(TOOL_THREADS_MAX).build()?;
    let mut exit = Ok(Exit::Ok);
    let whole = async {
        let shutdown = CancellationToken::new();
        let mut signals = Signals::listen()?;
        let served = async {
            if options.http {
                let ServeMcp { host, port, allow_origin: origins, .. } = options;
                serve_http(&server, HttpOptions { host, port, token, origins }, lang, &shutdown).await
            } else {
                if std::io::stdin().is_terminal() {
                    headless::talk(lang.mcp_needs_client());
                }
                server.serve_stdio(&shutdown).await
            }
        };
        let ended = tokio::select! {
            served = served => served.map(|()| Exit::Ok),
            signal = signals.next() => Ok(signal),
        };
        shutdown.cancel();
        let closed = tokio::select! {
            closed = server.close() => closed,
            // A second signal ends the program at once: the journal is complete at every moment.
            _ = signals.next() => Ok(()),
        };
        let exit = ended.map_err(|error| CliError::new(Exit::Failed, error.to_string()))?;
        closed.map_err(setup::failed)?;
        anyhow::Ok(exit)
    };
    max_team_runtime::block_on(&runtime, std::pin::pin!(async { exit = whole.await }));
    // Standard input may still be read on a thread.
    runtime.shutdown_background();
    exit
}

async fn serve_http(
    server: &McpServer,
    options: HttpOptions,
    lang: Lang,
    shutdown: &CancellationToken,
) -> Result<(), ServeError> {
    let http = HttpServer::bind(server.clone(), options).await?;
    headless::talk(&lang.mcp_listens(http.url()));
    if let Some(token) = http.generated_token() {
        // Not as other messages are told: those have no secrets in them, and this one is for the user's eyes.
        drop(writeln!(std::io::stderr(), "{}\n{token}", lang.mcp_token()));
    }
    http.run(shutdown).await;
    Ok(())
}

/// Whether a text is the origin of a web page, as browsers send it.
fn is_origin(text: &str) -> bool {
    let has_path = text.split_once("://").is_none_or(|(_, host)| host.contains(['/', '?', '#', '@']));
    !has_path && max_team_workspace::mcp::is_address(text)
}

/// The token in a file that only the user can read.
fn read_token(file: &Path) -> Result<String, CliError> {
    let shown = file.display().to_string();
    let unreadable =
        |why: &dyn std::fmt::Display| CliError::said(Exit::Config, |lang| lang.unreadable(&shown, why.to_string()));
    let facts = std::fs::metadata(file).map_err(|error| unreadable(&error))?;
    if facts.permissions().mode() & OTHERS != 0 {
        return Err(CliError::said(Exit::Config, |lang| lang.mcp_token_is_open(&shown)));
    }
    let text = input_file::text(file, TOKEN_FILE_BYTES_MAX).map_err(|error| unreadable(&error))?;
    let token = text.trim().to_owned();
    if token.chars().count() < TOKEN_CHARS_MIN {
        return Err(CliError::said(Exit::Config, |lang| lang.mcp_token_is_short(&shown, TOKEN_CHARS_MIN)));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_a_scheme_and_a_host() {
        for (text, is) in [
            ("http://localhost:6274", true),
            ("https://a.example", true),
            ("nonsense", false),
            ("http://a/", false),
            ("http://", false),
            ("*", false),
        ] {
            assert_eq!(is_origin(text), is, "{text}");
        }
    }
}
