//! `sign_in`: the user signs in to a site in a visible window, and a profile keeps it.
//!
//! The agent never sees the window, nor what is typed there. Chromium locks a profile, so the agent's browser ends before the window
//! opens, and the window closes before the agent goes on.

use std::time::Duration;

use max_team_core::policy::Action;
use serde_json::json;
use tokio::time::timeout;

use super::agent::{Seat, check, open};
use super::process::has_screen;
use super::{BrowserInput, address};
use crate::tool::{Output, ToolContext, ToolError};
use crate::web::host;

/// How long the agent's browser may take to leave its profile.
const LEAVE: Duration = Duration::from_secs(10);

/// Opens the window and asks the user; with the user's answer, closes it and opens the page for the agent.
pub(super) async fn sign_in(
    cx: &ToolContext,
    seat: &mut Option<Seat>,
    input: &BrowserInput,
    intent: &Action,
) -> Result<Output, ToolError> {
    let profile = input.profile.clone().unwrap_or_default();
    match intent.answer() {
        None => Err(ask(cx, seat, input, &profile).await?),
        Some(answer) => {
            if let Some(window) = cx.browsers.windows.lock().await.remove(&profile) {
                window.close().await;
            }
            if answer.is_none() {
                return Err(ToolError::correctable("the user did not sign in"));
            }
            open(cx, seat, input, intent, vec!["the user answered that this is done".to_owned()]).await
        }
    }
}

/// The question, with its window open.
async fn ask(
    cx: &ToolContext,
    seat: &mut Option<Seat>,
    input: &BrowserInput,
    profile: &str,
) -> Result<ToolError, ToolError> {
    let url = address(input.url.as_deref().unwrap_or_default())?;
    if profile.is_empty() {
        return Err(ToolError::correctable("`sign_in` needs `profile`: only a profile keeps who is signed in"));
    }
    if !has_screen() {
        return Err(ToolError::correctable(
            "there is no screen here to show a window on, so the user cannot sign in; tell the user that `sign_in` needs a desktop",
        ));
    }
    if let Some(seat) = seat.take() {
        let gone = seat.chromium.gone();
        drop(seat);
        let _ = timeout(LEAVE, gone.cancelled()).await;
    }
    if cx.browsers.is_in_use(profile).await {
        return Err(ToolError::correctable(format!("another agent uses the profile `{profile}` now")));
    }
    let mut windows = cx.browsers.windows.lock().await;
    if windows.get(profile).is_none_or(|window| window.ended().is_some()) {
        let window = cx.browsers.start(cx, profile, true).await?;
        check(&window.guard, &url).await?;
        let opened = window.devtools.call(None, "Target.createTarget", json!({ "url": url.as_str() })).await;
        opened.map_err(|error| ToolError::correctable(format!("the window could not be opened: {error}")))?;
        windows.insert(profile.to_owned(), window);
    }
    let host = host(&url);
    let question = format!(
        "Please sign in to {host} in the browser window that has just opened, then continue. The profile `{profile}` keeps it."
    );
    Ok(ToolError::Asks(Box::new(Action::asked_by_call(profile, host, question))))
}
