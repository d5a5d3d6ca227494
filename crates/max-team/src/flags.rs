//! The flags of a chat or a run: which of them contradict each other, and the settings and the session that they ask for.

use clap::CommandFactory;
use max_team_core::suggest::nearest;
use max_team_runtime::{TeamReader, Which};
use max_team_workspace::config::Override;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::setup::session;

use crate::args::{Cli, Format, TalkFlags, find_reserved};
use crate::stdin;

/// Flags and words that cannot be meant as they stand.
pub(crate) fn check(talk: &TalkFlags) -> Result<(), CliError> {
    if talk.print.is_none() && talk.formats.output_format != Format::Text {
        return Err(CliError::said(Exit::Usage, |lang| lang.format_needs_print().to_owned()));
    }
    let Some(word) = talk.prompt.as_deref().filter(|prompt| !prompt.contains(char::is_whitespace)) else {
        return Ok(());
    };
    if let Some(name) = find_reserved(word) {
        return Err(CliError::said(Exit::Usage, |lang| lang.reserved(name)));
    }
    // A question of one word is not written so: in a language with spaces it has a mark, in others it has no such letters.
    if !word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        return Ok(());
    }
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    let near = nearest(word, names);
    // `git diff | max-team review` has something to say it about; only what is nearly a command is not said.
    if near.is_none() && stdin::is_piped() {
        return Ok(());
    }
    Err(CliError::said(Exit::Usage, |lang| match near {
        Some(name) if name == word => lang.command_first(name),
        near => lang.no_command(word, near),
    }))
}

/// The values of flags that are settings.
pub(crate) fn overrides(talk: &TalkFlags) -> Vec<Override> {
    let pairs = [
        ("llm.default_model", "--model", talk.team.model.clone()),
        ("llm.fallback_model", "--fallback-model", talk.fallback_model.clone()),
        ("llm.provider", "--provider", talk.team.provider.clone()),
        ("llm.base_url", "--base-url", talk.team.base_url.clone()),
        ("permissions.mode", "--permission-mode", talk.team.permission_mode.map(|mode| mode.name().to_owned())),
        ("limits.rounds", "--max-turns", talk.max_turns.map(|rounds| rounds.to_string())),
        ("limits.budget_usd", "--max-budget-usd", talk.team.max_budget_usd.clone()),
    ];
    let given = |(key, name, value): (&str, &str, Option<String>)| {
        Some(Override { key: key.to_owned(), value: value?, name: name.to_owned() })
    };
    pairs.into_iter().filter_map(given).collect()
}

/// Which session the flags ask for.
pub(crate) fn which(talk: &TalkFlags, team: &TeamReader) -> Result<Which, CliError> {
    match (&talk.resume, talk.continue_last) {
        (Some(id), _) => {
            let which = if talk.before_compaction { Which::Before } else { Which::Id };
            session(team, id).map(which)
        }
        (None, true) => Ok(Which::Latest),
        (None, false) => Ok(Which::New),
    }
}
