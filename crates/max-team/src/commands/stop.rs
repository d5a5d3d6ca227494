//! `stop`: stops a session or one agent, or gives up a plan or one of its tasks, from any terminal.

use max_team_core::event::Event;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, SessionId};
use max_team_core::plan::TaskStatus;
use max_team_core::teammate::CommandBegun;
use max_team_runtime::storage::WorkerInfo;
use max_team_runtime::{AgentRow, IdTarget, LogEntry, LogFollower, new_id, query};

use super::context::{self, JournalContext, stop, until};
use super::mail;
use crate::args;
use crate::headless::talk;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::short;
use max_team_workspace::setup::AppEnv;

/// What is to be stopped.
enum StopTarget {
    /// Plans to give up, or the one plan of a task to give up.
    Plans(Vec<PlanId>),
    /// A session, or one agent of it.
    Work(Work),
}

/// The work of a session, or of one agent of it.
struct Work {
    session: SessionId,
    /// The agent; the lead, if the whole session is stopped.
    agent: AgentId,
    is_session: bool,
    /// Its name for the user.
    what: String,
    /// Its commands in the background.
    commands: Vec<Command>,
}

/// A command in the background: whose it is, and which.
type Command = (AgentRow, CommandBegun);

pub(crate) fn run(place: &AppEnv, options: &args::Stop) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let target = target(&context, place, options)?;
    if let Some(task) = &options.task {
        check_task(&context, &target, task)?;
    }
    context::wait(async {
        let mut watch = context.watch()?;
        let key = || EnvelopeId::new(new_id());
        let plans = match target {
            StopTarget::Plans(plans) => plans,
            StopTarget::Work(work) => {
                match work.is_session {
                    true => context.post().stop_session(&context.by, work.session).await,
                    false => context.post().stop_agent(&context.by, key(), work.agent).await,
                }
                .map_err(stop)?;
                match context.owner(Some(work.session))? {
                    None => talk(&format!("{}: {}", work.what, context.lang.noted(Some(work.session)))),
                    Some(owner) => await_stop(&context, &mut watch, &work, &owner).await?,
                }
                return Ok(Exit::Ok);
            }
        };
        for plan in &plans {
            context.post().stop(&context.by, key(), *plan, options.task.as_deref()).await.map_err(stop)?;
        }
        for plan in &plans {
            let session = context.read(query::SessionOfPlan { plan: *plan })?;
            match context.owner(session)? {
                None => {
                    let words = match &options.task {
                        Some(task) => context.lang.task_stop_noted(task, session),
                        None => context.lang.plan_stop_noted(session),
                    };
                    talk(&format!("{} {}: {words}", context.lang.plan_word(), short(plan)));
                }
                Some(owner) => told(&context, &mut watch, *plan, options.task.as_deref(), &owner).await?,
            }
        }
        Ok(Exit::Ok)
    })
}

fn target(context: &JournalContext, place: &AppEnv, options: &args::Stop) -> anyhow::Result<StopTarget> {
    let open = context.read(query::OpenPlans { session: None })?;
    let Some(id) = &options.id else {
        return match open.as_slice() {
            [] => Err(CliError::said(Exit::Failed, |lang| lang.no_plan_open().to_owned()).into()),
            [_] => Ok(StopTarget::Plans(open)),
            _ if options.all => Ok(StopTarget::Plans(open)),
            _ => {
                let ids: Vec<String> = open.iter().map(short).collect();
                Err(CliError::said(Exit::Usage, |lang| lang.which_plan(ids.join(", "))).into())
            }
        };
    };
    let session = match context.read(query::Find { text: id.clone() })? {
        Some(IdTarget::Plan(plan)) => {
            if let Some(row) = context.read(query::PlanEnd { plan })? {
                return Err(CliError::said(Exit::Failed, |lang| lang.plan_over(plan, row.end)).into());
            }
            return Ok(StopTarget::Plans(vec![plan]));
        }
        Some(IdTarget::Session(session)) => session,
        None => {
            // An agent by name.
            let Some(row) = mail::agent_of(context, place, None, id)? else {
                return Err(CliError::said(Exit::Failed, |lang| lang.no_plan_or_session(id)).into());
            };
            let (session, agent, what) = (row.session, row.agent, row.handle());
            let commands = left_running(context, session, Some(agent))?;
            let begins = || Ok::<_, CliError>(context.read(query::AgentsAtWork { session })?.contains(&agent));
            if commands.is_empty() && !context.read(query::Agent { agent })?.is_busy() && !begins()? {
                return Err(CliError::said(Exit::Failed, |lang| lang.agent_rests(&what)).into());
            }
            return Ok(StopTarget::Work(Work { session, agent, is_session: false, what, commands }));
        }
    };
    let lead = context.read(query::Session { session })?.lead;
    let commands = left_running(context, session, None)?;
    let is_busy = !commands.is_empty() || !context.read(query::AgentsAtWork { session })?.is_empty();
    if !is_busy && !context.read(query::HasRunningPlan { session })? {
        return Err(CliError::said(Exit::Failed, |lang| lang.does_nothing(session)).into());
    }
    let what = format!("{} {}", context.lang.session_word(), short(&session));
    Ok(StopTarget::Work(Work { session, agent: lead, is_session: true, what, commands }))
}

/// The background commands of the session, or of one agent. If no process runs the session, there are none: they end
/// with it.
fn left_running(context: &JournalContext, session: SessionId, of: Option<AgentId>) -> anyhow::Result<Vec<Command>> {
    if context.owner(Some(session))?.is_none() {
        return Ok(Vec::new());
    }
    Ok(context.read(query::BackgroundCommands { session, agent: of })?)
}

fn check_task(context: &JournalContext, target: &StopTarget, name: &str) -> anyhow::Result<()> {
    let StopTarget::Plans(plans) = target else {
        return Err(CliError::said(Exit::Usage, |lang| lang.one_plan_for_task().to_owned()).into());
    };
    let [plan] = plans.as_slice() else {
        return Err(CliError::said(Exit::Usage, |lang| lang.one_plan_for_task().to_owned()).into());
    };
    let plan = context.read(query::Plan { plan: *plan })?;
    let Some(view) = plan.tasks().find(|view| view.task.id == name) else {
        let names: Vec<&str> = plan.tasks().map(|view| view.task.id.as_str()).collect();
        return Err(CliError::said(Exit::Usage, |lang| lang.no_task_in_it(name, names.join(", "))).into());
    };
    if matches!(view.status, TaskStatus::Done | TaskStatus::Skipped | TaskStatus::Cancelled) {
        return Err(CliError::said(Exit::Failed, |lang| lang.task_over(name, view.status)).into());
    }
    Ok(())
}

async fn told(
    context: &JournalContext,
    watch: &mut LogFollower,
    plan: PlanId,
    task: Option<&str>,
    owner: &WorkerInfo,
) -> anyhow::Result<()> {
    let stream = format!("plan/{plan}");
    let heard = until(watch, |entry| {
        if entry.is_some_and(|entry| entry.stream() != stream) {
            return Ok(None);
        }
        if let Some(row) = context.read(query::PlanEnd { plan })? {
            return Ok(Some(context.lang.stopped_with(row.end, &row.tally)));
        }
        Ok(task
            .filter(|task| entry.is_some_and(|entry| is_given_up(entry, task)))
            .map(|task| format!("{task}: {}", context.lang.task_status(TaskStatus::Cancelled))))
    });
    match heard.await? {
        Some(words) => {
            let mut text = format!("{} {} {words}\n", context.lang.plan_word(), short(&plan));
            let left = context.read(query::UnfinishedFiles { plan })?;
            for left in left.iter().filter(|left| task.is_none_or(|task| left.task == task)) {
                text.push_str(&format!("  {}: {}\n", left.task, context.lang.task_left(left)));
            }
            super::print(&text)?;
        }
        None => talk(&format!("{} {}: {}", context.lang.plan_word(), short(&plan), context.lang.unheard(owner))),
    }
    Ok(())
}

fn is_given_up(entry: &LogEntry, task: &str) -> bool {
    matches!(entry.event(), Some(Event::TaskCancelled(cancelled)) if cancelled.task == task)
}

/// Waits until the process that runs the session has read the stop, and the stopped turn and commands are over.
async fn await_stop(
    context: &JournalContext,
    watch: &mut LogFollower,
    work: &Work,
    owner: &WorkerInfo,
) -> anyhow::Result<()> {
    let Work { session, agent, is_session, what, commands } = work;
    let stream = format!("agent/{agent}");
    let of = Some(*agent).filter(|_| !is_session);
    let heard = until(watch, |entry| {
        let news = entry.is_none_or(|entry| is_news((entry.stream(), entry.name()), &stream, *is_session));
        let left = || {
            Ok::<_, CliError>(is_left(
                commands,
                &context.read(query::BackgroundCommands { session: *session, agent: of })?,
            ))
        };
        let is_read = || Ok::<_, CliError>(!context.read(query::HasUnreadStop { agent: *agent })?);
        let is_over =
            || Ok::<_, CliError>(is_read()? && !context.read(query::Agent { agent: *agent })?.is_busy() && !left()?);
        Ok(if news && is_over()? { Some(()) } else { None })
    });
    match heard.await? {
        Some(()) => {
            let mut words = format!("{what} {}\n", context.lang.stopped_row());
            for (row, command) in commands {
                words.push_str(&format!("  {}\n", context.lang.command_stopped(&row.name, &command.name)));
            }
            super::print(&words)?;
        }
        None => talk(&format!("{what}: {}", context.lang.unheard(owner))),
    }
    Ok(())
}

/// Whether an entry may say that the work has stopped. Commands of other agents of a session end in their streams.
fn is_news((of, event): (&str, &str), stream: &str, is_session: bool) -> bool {
    of == stream || (is_session && event == "command_over")
}

/// Whether a command that ran before the stop still runs. Commands started since do not count.
fn is_left(before: &[Command], now: &[Command]) -> bool {
    before.iter().any(|(row, begun)| now.iter().any(|(other, runs)| other.agent == row.agent && runs.id == begun.id))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_end_of_what_others_left_running_is_news() {
        for (entry, is_lead, want) in [
            (("agent/a", "turn_ended"), true, true),
            (("agent/a", "turn_ended"), false, true),
            (("agent/b", "command_over"), true, true),
            (("agent/b", "command_over"), false, false),
            (("agent/b", "llm_ended"), true, false),
        ] {
            assert_eq!(is_news(entry, "agent/a", is_lead), want, "{entry:?}");
        }
    }

    #[test]
    fn work_begun_after_a_stop_is_not_waited_for() {
        let command = |agent: u128, id: &str| {
            let (agent, session) = (AgentId::new(Uuid::from_u128(agent)), SessionId::new(Uuid::from_u128(9)));
            let (name, role) = ("eva".to_owned(), String::new());
            let row = AgentRow { agent, session, name, role, assignment: None, at_ms: 0 };
            (row, CommandBegun { id: id.to_owned(), name: "`make`".to_owned() })
        };
        let before = [command(1, "sh-1"), command(2, "sh-1")];
        assert!(is_left(&before, &[command(3, "sh-1"), command(2, "sh-1")]));
        assert!(!is_left(&before, &[command(3, "sh-1"), command(2, "sh-2")]));
        assert!(!is_left(&[], &before));
    }
}
