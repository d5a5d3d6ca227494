//! `sign_in`: the user signs in to a site in a visible window, and a profile keeps it.
//!
//! The agent never sees the window, nor what is typed there. One browser at a time uses a profile, so the agent's browser ends before
//! the window opens, and the window closes before the agent goes on.

use std::sync::Arc;

use max_team_core::agent::Constraints;
use max_team_core::policy::{Action, Mode, Rules, judge};
use serde_json::json;

use super::BrowserInput;
use super::agent::{Seat, check, open, private_host};
use super::devtools::lock;
use super::pages::Context;
use super::process::has_screen;
use crate::policy_check::PolicyCheck;
use crate::tool::{Output, ToolContext, ToolError};
use crate::web::{address, host};

/// Opens the window and asks the user; with the user's answer, closes it and opens the page for the agent.
pub(super) async fn sign_in(
    cx: &ToolContext,
    seat: &mut Option<Seat>,
    input: &BrowserInput,
    intent: &Action,
) -> Result<Output, ToolError> {
    match intent.answer() {
        None => Err(ask(cx, seat, input).await?),
        Some(None) => {
            if let Some(window) = cx.browser.window.lock().await.take() {
                window.close().await;
            }
            Err(ToolError::correctable(
                "the user did not sign in; go on without it, or ask the user. Your tabs were closed",
            ))
        }
        Some(Some(_)) => open(cx, seat, input, intent, vec!["the user says that this is done".to_owned()]).await,
    }
}

/// The question, with its window open.
async fn ask(cx: &ToolContext, seat: &mut Option<Seat>, input: &BrowserInput) -> Result<ToolError, ToolError> {
    let url = address(input.url.as_deref().unwrap_or_default())?;
    let profile = input.profile.clone().unwrap_or_default();
    if profile.is_empty() {
        return Err(ToolError::correctable("`sign_in` needs `profile`: only a profile keeps who is signed in"));
    }
    cx.services.profile_folder(&profile)?;
    if !has_screen() {
        return Err(ToolError::correctable(
            "there is no screen here to show a window on, so the user cannot sign in; tell the user that `sign_in` needs a desktop",
        ));
    }
    *seat = None;
    let mut held = cx.browser.window.lock().await;
    if let Some(window) = held.take() {
        window.close().await;
    }
    let window = cx.browsers.start(cx, &profile, true).await?;
    check(&window.guard, &url, true).await?;
    // The user decides where the window goes; only the private host that the user was asked to visit is reached.
    let policy = PolicyCheck::new(|tool, action| {
        judge(&Rules::new(Mode::BypassPermissions, &Constraints::default()), tool, action)
    });
    let id = Context::OWN.to_owned();
    let context = Context::new(id, policy, &cx.services.private_hosts, private_host(cx, &url, true));
    lock(&context.hosts).insert(host(&url));
    window.guard.judge_by(None, &Arc::new(context));
    let opened = window.devtools.call(None, "Target.createTarget", json!({ "url": url.as_str() })).await;
    opened.map_err(|error| ToolError::correctable(format!("the window could not be opened: {error}")))?;
    *held = Some(window);
    let host = host(&url);
    let question = format!(
        "Please sign in to {host} in the browser window that has just opened, then continue. The profile `{profile}` keeps it."
    );
    Ok(ToolError::Asks(Box::new(Action::asked_by_call(profile, host, question))))
}
