//! `sessions list`, `show` and `forget`: what was said and done, and what is to be no more.

mod forget;

use max_team_core::chat::Part;
use max_team_core::event::{Event, LlmOutcome, Steered, TurnStarted};
use max_team_runtime::{SessionRow, query};
use max_team_workspace::format::local;
use serde_json::json;

use super::context::JournalContext;
use crate::args;
use max_team_terminal::text::clean;
use max_team_workspace::exit::Exit;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

pub(crate) use forget::forget_old;

pub(crate) fn run(place: &AppEnv, command: &args::Sessions) -> anyhow::Result<Exit> {
    if let args::Sessions::Forget(options) = command {
        return forget::run(place, options);
    }
    let context = JournalContext::open(place)?;
    let lang = context.lang;
    match command {
        args::Sessions::List { limit, json } => {
            let rows = context.read(query::Sessions { limit: *limit })?;
            super::print(&clean(&list(&rows, *json, lang)))?;
        }
        args::Sessions::Show { id, json } => {
            let id = match id {
                Some(id) => setup::session(&context.team, id)?,
                None => crate::recordings::latest(&context.team)?,
            };
            let events = context.read(query::Events { session: id })?;
            let text = if *json {
                events.iter().map(|(at_ms, event)| format!("{}\n", json!({ "at_ms": at_ms, "event": event }))).collect()
            } else {
                // What a model or a file said must not drive the terminal.
                clean(&events.iter().filter_map(|(at_ms, event)| show(*at_ms, event, lang)).collect::<String>())
                    .into_owned()
            };
            super::print(&text)?;
        }
        args::Sessions::Forget(_) => {}
    }
    Ok(Exit::Ok)
}

fn list(rows: &[SessionRow], json: bool, lang: Lang) -> String {
    if json {
        return format!("{}\n", serde_json::to_string(rows).unwrap_or_default());
    }
    if rows.is_empty() {
        return format!("{}\n", lang.no_sessions_yet());
    }
    let line = |row: &SessionRow| {
        let state = if row.answered { "" } else { lang.unanswered() };
        let chat = row.chat.as_ref().map(|chat| format!("  {chat}")).unwrap_or_default();
        format!("{}  {}  {}{chat}{state}\n    {}\n", row.session, local(row.last_at_ms), row.cwd, row.preview)
    };
    rows.iter().map(line).collect()
}

/// Words of the user.
fn said(at: &str, input: &[Part], lang: Lang) -> String {
    let texts = input.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None });
    format!("{at}  {}\n{}\n\n", lang.the_user(), indent(&texts.collect::<Vec<_>>().join("\n")))
}

fn show(at_ms: i64, event: &Event, lang: Lang) -> Option<String> {
    let at = local(at_ms);
    Some(match event {
        Event::TurnStarted(TurnStarted { input, rewound, .. }) => {
            let beside: String = rewound.iter().map(|told| format!("{at}  {}\n\n", lang.told_rewound(told))).collect();
            format!("{}{beside}", said(&at, input, lang))
        }
        Event::Steered(Steered { input, .. }) => said(&at, input, lang),
        Event::LlmEnded(ended) => match &ended.outcome {
            LlmOutcome::Done(_) if ended.summary => return None,
            LlmOutcome::Done(answer) if !answer.message.text().is_empty() => {
                format!("{at}  {}\n{}\n\n", answer.model, indent(&answer.message.text()))
            }
            LlmOutcome::Failed { detail, .. } => format!("{at}  {}\n\n", lang.model_failed(detail)),
            LlmOutcome::Lost => format!("{at}  {}\n\n", lang.call_lost()),
            _ => return None,
        },
        Event::Compacted(compacted) => {
            let (before, after) = compacted.messages;
            format!("{at}  {}\n{}\n\n", lang.compacted(before, after), indent(&compacted.summary))
        }
        Event::Uncompacted(_) => format!("{at}  {}\n\n", lang.uncompacted()),
        Event::ToolIntent(intent) => {
            format!("{at}  {} {}\n{}\n", intent.tool, intent.action.target, indent(&intent.action.preview))
        }
        Event::ToolDone(done) if done.is_error => format!("{at}  {}\n\n", lang.call_failed(&done.key, done.ending)),
        Event::QuestionAnswered(answered) => {
            format!("{at}  {}\n\n", lang.question_answered(answered.answer.allow, &answered.answer.by.name()))
        }
        Event::TurnEnded(ended) => match lang.ended_because(&ended.end) {
            Some(words) => format!("{at}  {words}\n\n"),
            None => return None,
        },
        _ => return None,
    })
}

fn indent(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("    {line}\n")).collect::<String>().trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use max_team_core::channel::ChatAddress;
    use max_team_core::id::{AgentId, SessionId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_session_of_a_chat_names_the_chat() {
        let row = SessionRow {
            session: SessionId::new(Uuid::from_u128(1)),
            lead: AgentId::new(Uuid::from_u128(2)),
            cwd: "/home/ada".into(),
            opened_at_ms: 0,
            last_at_ms: 0,
            preview: "hello".into(),
            answered: true,
            chat: ChatAddress::new("telegram", "bot", "42").ok(),
        };
        assert!(list(std::slice::from_ref(&row), false, Lang::En).contains("/home/ada  telegram:bot/42\n"));
        assert!(list(&[row], true, Lang::En).contains(r#""chat":"telegram:bot/42""#));
    }
}
