//! `stop`: a plan, one of its tasks, or everything a session does, from any terminal.

use max_team_core::event::Event;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, SessionId};
use max_team_core::mates::CommandBegun;
use max_team_core::plan::Status;
use max_team_journal::{Entry, Watch, WorkerInfo};
use max_team_runtime::{AgentRow, Found, Sessions, new_id};

use super::desk::{self, Desk, stop, until};
use super::mail;
use crate::args;
use crate::headless::talk;
use max_team_workspace::exit::{Exit, Stop};
use max_team_workspace::figures::short;
use max_team_workspace::setup::Place;

/// What is to be stopped.
struct Targets {
    plans: Vec<PlanId>,
    /// The lead of a session that is stopped as a whole, or somebody in it.
    lead: Option<Somebody>,
}

/// Somebody who is to be stopped, with what it has left running; of a lead, with what everybody has.
struct Somebody {
    session: SessionId,
    agent: AgentId,
    is_lead: bool,
    /// What it is called here.
    what: String,
    /// What runs in the background.
    commands: Vec<Command>,
}

/// A command in the background: whose it is, and which.
type Command = (AgentRow, CommandBegun);

pub(crate) fn run(place: &Place, options: &args::Halt) -> anyhow::Result<Exit> {
    let desk = Desk::open(place)?;
    let targets = targets(&desk, place, options)?;
    if let Some(task) = &options.task {
        check_task(&desk, &targets, task)?;
    }
    desk::wait(async {
        let mut watch = desk.watch()?;
        let key = || EnvelopeId::new(new_id());
        for plan in &targets.plans {
            desk.post().stop(&desk.by, key(), *plan, options.task.as_deref()).await.map_err(stop)?;
        }
        if let Some(somebody) = &targets.lead {
            desk.post().interrupt(&desk.by, key(), somebody.agent).await.map_err(stop)?;
        }
        for plan in &targets.plans {
            let session = desk.census().session_of(*plan).map_err(stop)?;
            match desk.owner(session)? {
                None => {
                    let words = match &options.task {
                        Some(task) => desk.lang.task_stop_noted(task, session),
                        None => desk.lang.plan_stop_noted(session),
                    };
                    talk(&format!("{} {}: {words}", desk.lang.plan_word(), short(plan)));
                }
                Some(owner) => told(&desk, &mut watch, *plan, options.task.as_deref(), &owner).await?,
            }
        }
        if let Some(somebody) = &targets.lead {
            match desk.owner(Some(somebody.session))? {
                None => talk(&format!("{}: {}", somebody.what, desk.lang.noted(Some(somebody.session)))),
                Some(owner) => lead_told(&desk, &mut watch, somebody, &owner).await?,
            }
        }
        Ok(Exit::Ok)
    })
}

fn targets(desk: &Desk, place: &Place, options: &args::Halt) -> anyhow::Result<Targets> {
    let census = desk.census();
    let open = census.open_plans(None).map_err(stop)?;
    let Some(id) = &options.id else {
        return match open.as_slice() {
            [] => Err(Stop::said(Exit::Failed, |lang| lang.no_plan_open().to_owned()).into()),
            [_] => Ok(Targets { plans: open, lead: None }),
            _ if options.all => Ok(Targets { plans: open, lead: None }),
            _ => {
                let ids: Vec<String> = open.iter().map(short).collect();
                Err(Stop::said(Exit::Usage, |lang| lang.which_plan(&ids.join(", "))).into())
            }
        };
    };
    let session = match census.find(id).map_err(stop)? {
        Some(Found::Plan(plan)) => {
            if let Some(row) = census.plan_end(plan).map_err(stop)? {
                return Err(Stop::said(Exit::Failed, |lang| lang.plan_over(plan, row.end)).into());
            }
            return Ok(Targets { plans: vec![plan], lead: None });
        }
        Some(Found::Session(session)) => session,
        None => {
            // Somebody by name: a teammate, or whoever was called.
            let Some(row) = mail::agent_of(desk, place, None, id)? else {
                return Err(Stop::said(Exit::Failed, |lang| lang.no_plan_or_session(id)).into());
            };
            let (session, agent, what, is_lead) = (row.session, row.agent, row.handle(), row.assignment.is_none());
            let commands = left_running(desk, session, Some(agent).filter(|_| !is_lead))?;
            // Whoever works for a lead that rests is stopped with it.
            let is_meant = |at_work: Vec<AgentId>| at_work.iter().any(|other| is_lead || *other == agent);
            let begins = || Ok::<_, Stop>(is_meant(census.at_work(session).map_err(stop)?));
            if commands.is_empty() && !census.turn(agent).map_err(stop)?.is_busy() && !begins()? {
                return Err(Stop::said(Exit::Failed, |lang| lang.agent_rests(&what)).into());
            }
            let somebody = Somebody { session, agent, is_lead, what, commands };
            return Ok(Targets { plans: Vec::new(), lead: Some(somebody) });
        }
    };
    let lead = Sessions::new(&desk.journal).row(session).map_err(stop)?.lead;
    let plans = census.open_plans(Some(session)).map_err(stop)?;
    // Whoever works for a lead that rests is stopped with it.
    let commands = left_running(desk, session, None)?;
    let busy = !commands.is_empty() || !census.at_work(session).map_err(stop)?.is_empty();
    if plans.is_empty() && !busy {
        return Err(Stop::said(Exit::Failed, |lang| lang.does_nothing(session)).into());
    }
    let what = format!("{} {}", desk.lang.session_word(), short(&session));
    let somebody = Somebody { session, agent: lead, is_lead: true, what, commands };
    Ok(Targets { plans, lead: busy.then_some(somebody) })
}

/// The commands that run on in the background. Without whoever owns the session there are none: they end with it.
fn left_running(desk: &Desk, session: SessionId, of: Option<AgentId>) -> anyhow::Result<Vec<Command>> {
    if desk.owner(Some(session))?.is_none() {
        return Ok(Vec::new());
    }
    Ok(desk.census().commands(session, of).map_err(stop)?)
}

fn check_task(desk: &Desk, targets: &Targets, name: &str) -> anyhow::Result<()> {
    let [plan] = targets.plans.as_slice() else {
        return Err(Stop::said(Exit::Usage, |lang| lang.one_plan_for_task().to_owned()).into());
    };
    let plan = desk.census().plan(*plan).map_err(stop)?;
    let Some(view) = plan.tasks().find(|view| view.task.id == name) else {
        let names: Vec<&str> = plan.tasks().map(|view| view.task.id.as_str()).collect();
        return Err(Stop::said(Exit::Usage, |lang| lang.no_task_in_it(name, &names.join(", "))).into());
    };
    if matches!(view.status, Status::Done | Status::Skipped | Status::Cancelled) {
        return Err(Stop::said(Exit::Failed, |lang| lang.task_over(name, view.status)).into());
    }
    Ok(())
}

async fn told(
    desk: &Desk,
    watch: &mut Watch,
    plan: PlanId,
    task: Option<&str>,
    owner: &WorkerInfo,
) -> anyhow::Result<()> {
    let stream = format!("plan/{plan}");
    let heard = until(watch, |entry| {
        if entry.is_some_and(|entry| entry.stream != stream) {
            return Ok(None);
        }
        if let Some(row) = desk.census().plan_end(plan).map_err(stop)? {
            return Ok(Some(desk.lang.stopped_with(row.end, &row.tally)));
        }
        Ok(task
            .filter(|task| entry.is_some_and(|entry| is_given_up(entry, task)))
            .map(|task| format!("{task}: {}", desk.lang.task_status(Status::Cancelled))))
    });
    match heard.await? {
        Some(words) => {
            let mut text = format!("{} {} {words}\n", desk.lang.plan_word(), short(&plan));
            let census = desk.census();
            let left = census.files_left(&census.plan(plan).map_err(stop)?).map_err(stop)?;
            for left in left.iter().filter(|left| task.is_none_or(|task| left.task == task)) {
                text.push_str(&format!("  {}: {}\n", left.task, desk.lang.task_left(left)));
            }
            super::print(&text)?;
        }
        None => talk(&format!("{} {}: {}", desk.lang.plan_word(), short(&plan), desk.lang.unheard(owner))),
    }
    Ok(())
}

fn is_given_up(entry: &Entry, task: &str) -> bool {
    let event = entry.payload.as_deref().and_then(|payload| serde_json::from_slice::<Event>(payload).ok());
    matches!(event, Some(Event::TaskCancelled(cancelled)) if cancelled.task == task)
}

async fn lead_told(desk: &Desk, watch: &mut Watch, somebody: &Somebody, owner: &WorkerInfo) -> anyhow::Result<()> {
    let Somebody { session, agent, is_lead, what, commands } = somebody;
    let (census, stream) = (desk.census(), format!("agent/{agent}"));
    let of = Some(*agent).filter(|_| !is_lead);
    let heard = until(watch, |entry| {
        let news = entry.is_none_or(|entry| is_news((&entry.stream, &entry.event), &stream, *is_lead));
        let left = || Ok::<_, Stop>(is_left(commands, &census.commands(*session, of).map_err(stop)?));
        let is_over = || Ok::<_, Stop>(!census.turn(*agent).map_err(stop)?.is_busy() && !left()?);
        Ok(if news && is_over()? { Some(()) } else { None })
    });
    match heard.await? {
        Some(()) => {
            let mut words = format!("{what} {}\n", desk.lang.stopped_row());
            for (row, command) in commands {
                words.push_str(&format!("  {}\n", desk.lang.command_stopped(&row.name, &command.name)));
            }
            super::print(&words)?;
        }
        None => talk(&format!("{what}: {}", desk.lang.unheard(owner))),
    }
    Ok(())
}

/// Whether an entry may say that somebody has stopped. What others have left running ends in their streams.
fn is_news((of, event): (&str, &str), stream: &str, is_lead: bool) -> bool {
    of == stream || (is_lead && event == "command_over")
}

/// Whether something of what ran still does. What began since is nobody's who was stopped.
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
    fn what_began_since_is_not_waited_for() {
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
