//! `ps`: the agents of all sessions, what each does, and why an idle one does nothing.

use max_team_core::mcp::SourceStatus;
use max_team_core::status::Activity;
use max_team_core::time::rfc3339;
use max_team_mcp::{RunningServer, running_servers};
use max_team_runtime::{Person, query};
use max_team_tools::OutputStore;
use max_team_tools::shell::JobNote;
use serde_json::{Value, json};

use super::context::{self, JournalContext};
use super::table::{clip, table};
use crate::args;
use max_team_terminal::plan_text;
use max_team_terminal::text::clean_line;
use max_team_workspace::exit::Exit;
use max_team_workspace::format::short;
use max_team_workspace::format::{since, spent, tokens};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;

/// Characters of an agent's current action.
const DOING_CHARS: usize = 120;

pub(crate) fn run(place: &AppEnv, options: &args::Ps) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let now_ms = context::now_ms();
    let people = context.read(query::Ps { all: options.all })?;
    let text = if options.json {
        let rows = people.iter().map(|person| row(person, &jobs(place, person), &servers(place, person), now_ms));
        format!("{}\n", Value::from(rows.collect::<Vec<_>>()))
    } else if people.is_empty() {
        format!("{}\n", context.lang.nobody_at_work())
    } else {
        let mut rows = Vec::new();
        for person in &people {
            rows.push(cells(person, named(person, &people), now_ms, context.lang));
            rows.extend(jobs(place, person).iter().map(|job| command(job, now_ms, context.lang)));
            rows.extend(servers(place, person).iter().map(|running| server(running, context.lang)));
        }
        table(&context.lang.people_heads(), &rows)
    };
    super::print(&text)?;
    Ok(Exit::Ok)
}

/// The agent's background commands, if the process that runs it is alive.
fn jobs(place: &AppEnv, person: &Person) -> Vec<JobNote> {
    let Some((agent, pid)) = person.agent.zip(person.pid) else { return Vec::new() };
    JobNote::of(&OutputStore::of(&place.home, agent), pid)
}

/// The MCP servers that the session's process has started, with the session's lead.
fn servers(place: &AppEnv, person: &Person) -> Vec<RunningServer> {
    person.pid.filter(|_| person.lead).map(|pid| running_servers(&place.home, pid)).unwrap_or_default()
}

fn state(running: &RunningServer, lang: Lang) -> SourceStatus {
    let state = running.status.shown(|error| lang.server_error(error));
    SourceStatus { name: running.name.clone(), state, tools: running.tools, prompts: Vec::new() }
}

/// A line beneath the lead whose session uses the server.
fn server(running: &RunningServer, lang: Lang) -> Vec<String> {
    let mut cells = vec![String::new(); lang.people_heads().len()];
    let state = clip(&clean_line(&lang.source_state(&state(running, lang))), DOING_CHARS);
    for (at, text) in [(1, format!("└ {}", running.name)), (2, "MCP".to_owned()), (10, state)] {
        cells.get_mut(at).into_iter().for_each(|cell| text.clone_into(cell));
    }
    cells
}

/// A line beneath whose command it is.
fn command(job: &JobNote, now_ms: i64, lang: Lang) -> Vec<String> {
    let mut cells = vec![String::new(); lang.people_heads().len()];
    let time = if job.over.is_none() { plan_text::duration(since(job.since_ms, now_ms)) } else { String::new() };
    let over = job.over.iter().map(|over| format!("{}{over}", lang.semicolon()));
    let doing = clip(&job.command, DOING_CHARS) + &over.collect::<String>();
    for (at, text) in [(1, format!("└ {}", job.id)), (3, lang.job_state(job).to_owned()), (6, time), (10, doing)] {
        cells.get_mut(at).into_iter().for_each(|cell| text.clone_into(cell));
    }
    cells
}

/// How long the agent has been at it. Without a process that runs the session, no time passes for it.
fn elapsed(person: &Person, now_ms: i64) -> Option<u64> {
    person.since_ms.filter(|_| person.pid.is_some()).map(|since_ms| since(since_ms, now_ms))
}

/// The name, or the handle where another agent of the session has the same name: other commands take both.
fn named(person: &Person, people: &[Person]) -> String {
    let is_same = |other: &&Person| other.session == person.session && other.name == person.name;
    let handle = person.handle().filter(|_| people.iter().filter(is_same).count() > 1);
    handle.unwrap_or_else(|| person.name.clone())
}

fn cells(person: &Person, name: String, now_ms: i64, lang: Lang) -> Vec<String> {
    let used = person.usage.input_total() + person.usage.output;
    let doing = person.doing.as_ref().map(|doing| self::doing(doing, now_ms, lang));
    let reason = person.reason.as_ref().map(|reason| lang.idle_because(reason));
    let words: Vec<String> = doing.into_iter().chain(reason).collect();
    vec![
        short(&person.session),
        name,
        person.role.clone(),
        lang.person_state(person.state, person.reason.as_ref()).to_owned(),
        person.task.clone().unwrap_or_default(),
        if person.attempt > 0 { person.attempt.to_string() } else { String::new() },
        elapsed(person, now_ms).map(plan_text::duration).unwrap_or_default(),
        person.model.clone(),
        if used > 0 { tokens(used) } else { String::new() },
        if used > 0 { cost(person) } else { String::new() },
        clip(&words.join(lang.semicolon()), DOING_CHARS),
    ]
}

/// An agent's cost, as far as it is known.
pub(super) fn cost(person: &Person) -> String {
    match (person.unpriced, person.nano, person.unknown_nano) {
        (true, 0, _) => "?".to_owned(),
        (_, nano, unknown) => spent(nano, unknown),
    }
}

fn doing(doing: &Activity, now_ms: i64, lang: Lang) -> String {
    match doing {
        Activity::Calling { model, attempt } => lang.calling(model, *attempt),
        Activity::Running { tool, target } => lang.running(format!("{tool} {target}")),
        Activity::Asking { tool, target } => lang.asks_what(format!("{tool} {target}")),
        Activity::Retrying { at_ms } => lang.again_in(plan_text::duration(since(now_ms, *at_ms))),
        Activity::Affording => lang.affording().to_owned(),
        Activity::Preparing => lang.getting_ready().to_owned(),
        Activity::Checked => lang.being_checked().to_owned(),
        Activity::Stopping => lang.stopping().to_owned(),
    }
}

fn row(person: &Person, jobs: &[JobNote], servers: &[RunningServer], now_ms: i64) -> Value {
    let background = |job: &JobNote| {
        let state = Lang::En.job_state(job);
        json!({"id": job.id, "command": job.command, "state": state, "since": rfc3339(job.since_ms), "over": job.over})
    };
    json!({
        "session": person.session,
        "agent": person.agent,
        "name": person.name,
        "role": person.role,
        "lead": person.lead,
        "state": person.state,
        "reason": person.reason,
        "plan": person.plan,
        "task": person.task,
        "attempt": person.attempt,
        "since": person.since_ms.map(rfc3339),
        "elapsed_ms": elapsed(person, now_ms),
        "doing": person.doing,
        "model": person.model,
        "usage": person.usage,
        "cost_usd": if person.unpriced && person.nano == 0 { None } else { Some(max_team_core::ledger::dollars(person.nano)) },
        "unknown_cost_usd": max_team_core::ledger::dollars(person.unknown_nano),
        "pid": person.pid,
        "background": jobs.iter().map(background).collect::<Vec<_>>(),
        "mcp_servers": servers.iter().map(|server| state(server, Lang::En)).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use max_team_core::chat::Usage;
    use max_team_core::id::{AgentId, SessionId};
    use max_team_core::status::AgentStage;

    use super::*;

    fn person(name: &str, number: u128, pid: Option<u32>) -> Person {
        Person {
            session: SessionId::new(uuid::Uuid::from_u128(1)),
            agent: Some(AgentId::new(uuid::Uuid::from_u128(number))),
            name: name.into(),
            role: String::new(),
            lead: false,
            state: AgentStage::Ready,
            reason: None,
            plan: None,
            task: None,
            attempt: 0,
            since_ms: Some(1_000),
            doing: None,
            model: String::new(),
            usage: Usage::default(),
            nano: 0,
            unknown_nano: 0,
            unpriced: false,
            pid,
        }
    }

    #[test]
    fn equal_names_are_told_apart_and_time_stops_with_the_process() {
        let people = [person("leo", 0xabc_def, Some(7)), person("leo", 0xfed_cba, Some(7)), person("ada", 3, None)];
        let names: Vec<String> = people.iter().map(|person| named(person, &people)).collect();
        assert_eq!(names, ["leo-abcdef", "leo-fedcba", "ada"]);
        let times: Vec<Option<u64>> = people.iter().map(|person| elapsed(person, 5_000)).collect();
        assert_eq!(times, [Some(4_000), Some(4_000), None]);
    }
}
