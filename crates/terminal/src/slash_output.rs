//! What the slash commands show: help, costs, the window, models, sessions.
//!
//! Each is one row made from values that the caller has fetched. Nothing here asks the team for anything or decides
//! what happens next.

use max_team_core::agent::Model;
use max_team_core::cost::SessionCost;
use max_team_core::id::AgentId;
use max_team_core::mcp::SourceStatus;
use max_team_core::plan::event::PlanQuestion;
use max_team_runtime::{AgentRow, AgentSpec, Enrolled, Roll, SessionDetails, SessionRow, Team};

use super::members::Members;
use super::plans::Plans;
use super::question::{Question, QuestionKind};
use super::rows::Row;
use super::slash;
use crate::text::clean_line;
use max_team_workspace::config::choice::WhileBusy;
use max_team_workspace::format::{bytes, dollars, since, spent, tokens};
use max_team_workspace::i18n::Lang;

/// Bytes that make a token, about: for the part of a request that is not counted in tokens.
const BYTES_PER_TOKEN: usize = 4;
/// Columns of a session's last words in the list.
const PREVIEW_COLUMNS: usize = 50;

/// Columns of a plan's goal in a list.
const GOAL_COLUMNS: usize = 30;
/// Columns of what waits in the list.
const INBOX_COLUMNS: usize = 120;

/// Keys, and what they do.
const KEYS: [(&str, slash::Phrase); 13] = [
    ("\\ Enter, Shift-Enter, Ctrl-J", Lang::help_new_line),
    ("Alt-Enter", Lang::help_alt_enter),
    ("Esc", Lang::help_esc),
    ("Ctrl-C", Lang::help_ctrl_c),
    ("Ctrl-D", Lang::help_ctrl_d),
    ("Up, Down", Lang::help_up_down),
    ("Ctrl-R", Lang::help_ctrl_r),
    ("Tab", Lang::help_tab),
    ("Shift-Tab", Lang::help_shift_tab),
    ("Ctrl-T", Lang::help_ctrl_t),
    ("Ctrl-O", Lang::help_ctrl_o),
    ("Ctrl-A E K U W, Alt-B F", Lang::help_edit_keys),
    ("Ctrl-L, Ctrl-Z", Lang::help_redraw),
];

pub(super) fn help(lang: Lang, while_busy: WhileBusy) -> Vec<Row> {
    let command = |entry: &slash::HelpEntry| {
        let name = format!("/{} {}", entry.name, entry.argument).trim_end().to_owned();
        (name, entry.about(lang).to_owned())
    };
    let key = |(key, about): &(&str, slash::Phrase)| ((*key).to_owned(), about(lang).to_owned());
    let mut keys = vec![("Enter".to_owned(), lang.enter_does(while_busy).to_owned())];
    if while_busy == WhileBusy::Interrupt {
        keys.push(("Shift-Enter".to_owned(), lang.shift_enter_does().to_owned()));
    }
    keys.extend(KEYS.iter().map(key));
    vec![Row::Table(slash::ENTRIES.iter().map(command).collect()), Row::Table(keys)]
}

pub(super) fn cost(lang: Lang, status: &SessionDetails, cost: &SessionCost, lead: AgentId, plans: &Plans) -> Row {
    let (sum, others) = (cost.total(), cost.others(lead));
    let mut rows = vec![
        (lang.spent(), spent(sum.nano, sum.unknown_nano)),
        (lang.tokens_in(), tokens(sum.usage.input)),
        (lang.tokens_cached(), tokens(sum.usage.cache_read)),
        (lang.tokens_cache_written(), tokens(sum.usage.cache_write)),
        (lang.tokens_out(), tokens(sum.usage.output)),
    ];
    if let Some(cap) = status.ledger.cap_nano {
        rows.insert(1, (lang.cap(), dollars(cap)));
    }
    if others.nano > 0 {
        rows.push((lang.spent_by_others(), spent(others.nano, others.unknown_nano)));
    }
    if sum.unknown_nano > 0 {
        rows.push((lang.maybe_spent(), dollars(sum.unknown_nano)));
    }
    if sum.unpriced_calls > 0 {
        rows.push((lang.unpriced(), sum.unpriced_calls.to_string()));
    }
    let mut rows: Vec<(String, String)> = rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    // The team's work is on its plans' accounts, not on the lead's.
    for (known, draft) in plans.all().filter_map(|known| Some((known, known.plan.draft()?))) {
        let name = format!("{}: {}", lang.plan(), super::text::cut(&draft.goal, GOAL_COLUMNS));
        let sum = known.plan.tally().spent;
        rows.push((name, spent(sum.nano, sum.unknown_nano)));
    }
    Row::Table(rows)
}

pub(super) fn context(lang: Lang, status: &SessionDetails) -> Row {
    let percent = percent(status).map_or_else(String::new, |percent| format!(" ({percent}%)"));
    let mut rows = vec![
        (lang.conversation().to_owned(), tokens(status.window_tokens)),
        (lang.frame().to_owned(), tokens(frame_tokens(status))),
        (lang.window().to_owned(), format!("{}{percent}", tokens(status.settings.model.context_tokens))),
        (lang.messages().to_owned(), format!("{} / {}", status.messages.0, status.messages.1)),
    ];
    let files = status.instructions.iter().map(|(name, size)| (name.clone(), bytes(*size)));
    rows.extend(files);
    Row::Table(rows)
}

/// Prompts of one server that are listed.
const PROMPTS_SHOWN_MAX: usize = 20;

/// The MCP servers, their states, and the commands that their prompts are.
pub(super) fn servers(lang: Lang, status: &SessionDetails) -> Row {
    if status.sources.is_empty() {
        return Row::Table(vec![(String::new(), lang.no_servers().to_owned())]);
    }
    let rows = |source: &SourceStatus| {
        let state = (clean_line(&source.name), clean_line(&lang.source_state(source)));
        let prompts = source.prompts.iter().take(PROMPTS_SHOWN_MAX).map(|prompt| (String::new(), clean_line(prompt)));
        std::iter::once(state).chain(prompts).collect::<Vec<_>>()
    };
    Row::Table(status.sources.iter().flat_map(rows).collect())
}

/// How full the model's window is.
pub(super) fn percent(status: &SessionDetails) -> Option<u64> {
    let used = status.window_tokens.saturating_add(frame_tokens(status));
    used.saturating_mul(100).checked_div(status.settings.model.context_tokens)
}

fn frame_tokens(status: &SessionDetails) -> u64 {
    u64::try_from(status.frame_bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX)
}

pub(super) fn models(lang: Lang, current: &Model, names: &[String]) -> Row {
    let mut rows = vec![(lang.model_now().to_owned(), format!("{}/{}", current.provider, current.name))];
    rows.extend(names.iter().map(|name| (String::new(), name.clone())));
    rows.push((String::new(), lang.model_hint().to_owned()));
    Row::Table(rows)
}

pub(super) fn sessions(lang: Lang, rows: &[SessionRow], now_ms: i64) -> Row {
    if rows.is_empty() {
        return Row::Note(lang.no_sessions().to_owned());
    }
    let mut table: Vec<(String, String)> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let age = lang.ago(since(row.last_at_ms, now_ms));
            (format!("{} · {age}", index + 1), super::text::cut(&row.preview, PREVIEW_COLUMNS))
        })
        .collect();
    table.push((String::new(), lang.resume_hint().to_owned()));
    Row::Table(table)
}

pub(super) fn instruction(lang: Lang, name: &str, size: usize) -> String {
    format!("{}: {name} ({})", lang.instructions(), bytes(size))
}

/// Who is on the team, with what, doing what.
pub(super) fn team(lang: Lang, team: &Team, crew: &Members) -> Row {
    let row = |teammate: &AgentSpec| {
        let definition = &teammate.definition;
        let busy = crew.busy().filter(|at| at.name == definition.name);
        let busy: Vec<String> = busy
            .map(|at| at.task.as_ref().map_or_else(|| lang.working().to_owned(), |(_, task)| task.clone()))
            .collect();
        let state = if busy.is_empty() { lang.idle().to_owned() } else { busy.join(", ") };
        let about = format!(
            "{} · {} · {}: {state} · {}: {}",
            definition.role,
            teammate.settings.model.name,
            lang.state(),
            lang.tools(),
            definition.tools.join(", ")
        );
        (definition.name.clone(), about)
    };
    Row::Table(team.members.iter().map(row).collect())
}

/// The registry: the lead and the teammates, what each does, and why an idle one does nothing.
pub(super) fn roll(lang: Lang, roll: &Roll, now_ms: i64) -> Row {
    let row = |member: &Enrolled| {
        let kind = if member.person.lead { lang.is_lead() } else { &member.kind };
        let mut parts = vec![kind.to_owned(), member.color.clone(), lang.member_state(member).to_owned()];
        parts.extend(lang.member_why(member));
        parts.push(lang.ago(since(member.last_at_ms, now_ms)));
        if member.unread > 0 {
            parts.push(lang.unread(member.unread));
        }
        parts.push(member.person.model.clone());
        if member.person.nano > 0 {
            parts.push(spent(member.person.nano, member.person.unknown_nano));
        }
        parts.push(super::text::cut(&member.title, PREVIEW_COLUMNS));
        parts.retain(|part| !part.is_empty());
        (member.person.name.clone(), parts.join(" · "))
    };
    Row::Table(roll.lead.iter().chain(&roll.teammates).map(row).collect())
}

/// Those who were called, with what for.
pub(super) fn called(lang: Lang, rows: &[AgentRow]) -> Row {
    if rows.is_empty() {
        return Row::Note(lang.nobody_was_called().to_owned());
    }
    let about = |row: &AgentRow| match &row.assignment {
        Some(given) if !given.title.is_empty() => given.title.clone(),
        Some(given) => given.task.clone(),
        None => String::new(),
    };
    let line =
        |row: &AgentRow| (row.handle(), super::text::cut(&super::text::clean_line(&about(row)), PREVIEW_COLUMNS));
    Row::Table(rows.iter().map(line).collect())
}

/// What waits for the user.
pub(super) fn inbox(lang: Lang, waits: &[&Question]) -> Row {
    if waits.is_empty() {
        return Row::Note(lang.nothing_waits().to_owned());
    }
    let row = |question: &&Question| {
        let what = match &question.matter {
            QuestionKind::Permit(permit) => format!("{} {} {}", lang.wants_to_use(), permit.tool, permit.target),
            QuestionKind::Words(words) => lang.asks_what(&words.question),
            QuestionKind::Plan { about, .. } => match about {
                PlanQuestion::Proposal => lang.may_run().to_owned(),
                PlanQuestion::Rest => lang.ask_rest().to_owned(),
                PlanQuestion::Budget => lang.ask_budget().to_owned(),
                PlanQuestion::Start { task } => lang.may_start(task),
                PlanQuestion::Failure { error, kind, .. } => lang.failed_with(&lang.task_error(error, kind), false),
            },
        };
        let who = match &question.matter {
            QuestionKind::Plan { .. } => {
                question.by.task.clone().map_or_else(|| lang.plan().to_owned(), |task| lang.at_task(lang.plan(), &task))
            }
            _ => question.by.title(lang),
        };
        (who, super::text::cut(&super::text::clean_line(&what), INBOX_COLUMNS))
    };
    Row::Table(waits.iter().map(row).collect())
}
