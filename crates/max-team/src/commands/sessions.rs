//! `sessions list`, `show` and `forget`: what was said and done, and what is to be no more.

mod forget;

use max_team_core::chat::Part;
use max_team_core::event::{Event, LlmOutcome, Steered, TurnStarted};
use max_team_core::teammate::render::unwrap_tail;
use max_team_runtime::{SessionRow, is_go_on, query};
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

/// The input of a turn, each part under its author. The user's words are in the first part, with the team's messages behind
/// them; the program adds the other parts.
fn said(at: &str, is_users: bool, input: &[Part], lang: Lang) -> String {
    let mut texts =
        input.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None });
    let first = texts.next().unwrap_or_default();
    let (own, _) = if is_users { unwrap_tail(first) } else { ("", true) };
    let (resumed, words): (Vec<&str>, Vec<&str>) = own.split("\n\n").partition(|words| is_go_on(words));
    let added = resumed.into_iter().chain(first.get(own.len()..)).chain(texts).collect::<Vec<_>>().join("\n");
    let block = |(author, text): (&str, &str)| match text.trim() {
        "" => String::new(),
        text => format!("{at}  {author}\n{}\n\n", indent(text)),
    };
    [(lang.the_user(), words.join("\n\n").as_str()), (lang.the_program(), added.as_str())].map(block).concat()
}

fn show(at_ms: i64, event: &Event, lang: Lang) -> Option<String> {
    let at = local(at_ms);
    Some(match event {
        Event::TurnStarted(TurnStarted { envelope, input, rewound, .. }) => {
            let beside: String = rewound.iter().map(|told| format!("{at}  {}\n\n", lang.told_rewound(told))).collect();
            format!("{}{beside}", said(&at, !envelope.is_programs(), input, lang))
        }
        Event::Steered(Steered { envelopes, input, .. }) => said(&at, !envelopes.is_empty(), input, lang),
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
    fn words_of_the_user_and_of_the_program_have_different_heads() {
        let news = "(From the team, not from the user.) Plan pln_1 is over: totals";
        let (user, program) = ("at  user\n    ", "at  program\n    ");
        for (is_users, input, shown) in [
            (true, vec!["fix it"], format!("{user}fix it\n\n")),
            (false, vec!["4 of 4 tasks done"], format!("{program}4 of 4 tasks done\n\n")),
            (true, vec!["thanks", "skill: review"], format!("{user}thanks\n\n{program}skill: review\n\n")),
            (true, vec![&format!("thanks\n\n{news}")], format!("{user}thanks\n\n{program}{news}\n\n")),
        ] {
            let input: Vec<Part> = input.into_iter().map(Part::text).collect();
            assert_eq!(said("at", is_users, &input, Lang::En), shown);
        }
    }

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
