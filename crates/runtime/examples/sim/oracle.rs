//! What must hold after a death, at rest, and at the end.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use futures_util::FutureExt as _;
use max_team_core::event::{Approval, Event, LlmOutcome, ToolIntent, ToolOutcome};
use max_team_core::id::{AgentId, EnvelopeId, PlanId, WorkerId};
use max_team_core::message::MessageKind;
use max_team_core::plan::TaskStatus;
use max_team_core::plan::event::{PlanEnd, Proof};
use max_team_core::task_list::{StatusChange, TaskList};
use max_team_journal::Journal;
use max_team_llm::Replay;
use max_team_runtime::query;
use max_team_runtime::{new_id, project_entry};

use crate::play::{STREAM, World, told};
use crate::team::{Ledger, runtime};

/// The rows that are looked at; all of them follow from the log.
const TABLES: [&str; 14] = [
    "agent",
    "working",
    "plan",
    "plan_open",
    "plan_end",
    "inbox",
    "answered",
    "commands",
    "session",
    "session_last",
    "session_asked",
    "session_in",
    "tasks",
    "cache_expert",
];
const ALL: usize = 100_000;

/// What is left when everything is over, whoever did it and however often the processes died.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcomes {
    plans: Vec<Ended>,
    files: BTreeMap<String, String>,
    /// What the user was answered.
    words: BTreeSet<String>,
    /// What colleagues wrote to each other, and how often.
    envelopes: BTreeMap<String, usize>,
    list: Vec<(String, max_team_core::task_list::ListTaskStatus)>,
    said: Vec<String>,
}

/// How a plan ended, and each of its tasks.
type Ended = (Option<PlanEnd>, Vec<Task>);

#[derive(Debug, PartialEq)]
struct Task {
    id: String,
    status: TaskStatus,
    attempt: u32,
    result: Option<(String, Proof)>,
}

/// The journal's events, each in its stream.
pub(crate) fn events(journal: &Journal) -> Result<Vec<(String, Event)>, String> {
    let entries = told(journal.read_all(0, ALL))?.into_iter();
    let read = |entry: max_team_journal::Entry| {
        let event = serde_json::from_slice(entry.payload.as_deref()?).ok()?;
        Some((entry.stream, event))
    };
    Ok(entries.filter_map(read).collect())
}

/// A call of a model: who asks, and the number.
pub(crate) type Call = (String, u32);

/// The answers of models that are in the journal, under the names that the recording counts them by.
pub(crate) fn answers(journal: &Journal) -> Result<BTreeSet<Call>, String> {
    let (mut names, mut speakers, mut answers) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for (stream, event) in events(journal)? {
        match event {
            Event::AgentStarted(started) => {
                let teammate = started.assignment.as_ref().and_then(|given| given.life.teammate());
                names.insert(stream, teammate.map_or(&started.definition.name, |teammate| &teammate.name).clone());
            }
            Event::TurnStarted(started) => {
                let name = names.get(&stream).ok_or(format!("`{stream}` has a turn and no beginning"))?;
                // Whoever is spoken to again goes on with another task.
                let given = started.assignment.filter(|given| given.plan.is_some() || given.depth > 0);
                speakers.insert(stream, given.map_or(name.clone(), |given| format!("{name}/{}", given.task)));
            }
            Event::LlmEnded(ended) if matches!(ended.outcome, LlmOutcome::Done(_)) => {
                let speaker = speakers.get(&stream).ok_or(format!("`{stream}` has an answer and no turn"))?;
                if !answers.insert((speaker.clone(), ended.call)) {
                    return Err(format!("call {} of `{speaker}` was answered twice", ended.call));
                }
            }
            _ => {}
        }
    }
    Ok(answers)
}

/// Of the answers that were in the journal each was asked for, and none again.
pub(crate) fn paid_once(
    finished: &BTreeSet<Call>,
    before: &BTreeMap<Call, u32>,
    after: &BTreeMap<Call, u32>,
) -> Result<(), String> {
    for call @ (speaker, number) in finished {
        match before.get(call) {
            None => return Err(format!("call {number} of `{speaker}` was answered, and nobody has asked")),
            times if times != after.get(call) => {
                return Err(format!("call {number} of `{speaker}` was paid for twice"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// What must be there after a death.
pub(crate) fn after_death(world: &World<'_>, journal: &Journal) -> Result<(), String> {
    let entries = told(journal.read_all(0, ALL))?;
    let (events, mut heard) = (events(journal)?, BTreeSet::new());
    allowed(&events)?;
    for (_, event) in events {
        match event {
            Event::Said(said) => drop(heard.insert(said.text)),
            Event::Mailed(envelope) => heard.extend(envelope.body["question"].as_str().map(str::to_owned)),
            _ => {}
        }
    }
    if let Some(lost) = world.accepted.difference(&heard).next() {
        return Err(format!("accepted and lost: `{lost}`"));
    }
    let stored: HashSet<&[u8]> = entries.iter().filter_map(|entry| entry.payload.as_deref()).collect();
    for event in &world.shown {
        if !stored.contains(told(serde_json::to_vec(event))?.as_slice()) {
            return Err(format!("shown and lost: {} {event:?}", event.name()));
        }
    }
    effects(&world.ledger)?;
    rows(journal)
}

/// What was done on somebody's word has that word before it.
fn allowed(events: &[(String, Event)]) -> Result<(), String> {
    let mut allowed = BTreeSet::new();
    for (stream, event) in events {
        match event {
            Event::QuestionAnswered(answered) if answered.answer.allow => drop(allowed.insert(answered.question)),
            Event::ToolIntent(ToolIntent { approval: Approval::Question(question), key, .. })
                if !allowed.contains(question) =>
            {
                return Err(format!("nobody has allowed `{key}` of `{stream}`: no answer to {question}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn effects(ledger: &Ledger) -> Result<(), String> {
    match ledger.count().into_iter().find(|(_, times)| *times > 1) {
        Some((what, _)) if what == "alarm" => Err("the alarm rang twice".into()),
        Some((what, times)) => Err(format!("an effect happened twice: `{what}`, {times} times")),
        None => Ok(()),
    }
}

/// The rows are those that follow from the log.
fn rows(journal: &Journal) -> Result<(), String> {
    let look = || -> Result<Vec<_>, String> {
        let tables = TABLES.iter().map(|table| Ok((*table, told(journal.list(table, ALL, None))?)));
        tables.collect()
    };
    let found = look()?;
    told(journal.rebuild(project_entry))?;
    for (found, made) in found.into_iter().zip(look()?) {
        if found != made {
            return Err(format!("the rows of `{}` do not follow from the log", made.0));
        }
    }
    Ok(())
}

/// What holds at rest, whatever happened before.
pub(crate) fn at_rest(world: &World<'_>, journal: &Journal) -> Result<(), String> {
    let report = told(journal.verify())?;
    if !report.faults.is_empty() {
        return Err(format!("the chain is broken: {:?}", report.faults));
    }
    let events = events(journal)?;
    lists(&events)?;
    turns(journal, &events)?;
    envelopes(&events)?;
    paid(world, &events)?;
    after_death(world, journal)?;
    let rang = told(journal.read(STREAM, 0, ALL))?.iter().filter(|entry| entry.event == "rang").count();
    if rang == 1 { Ok(()) } else { Err(format!("the alarm rang {rang} times")) }
}

/// Every turn has ended, every call has one result, and no mail is left.
fn turns(journal: &Journal, events: &[(String, Event)]) -> Result<(), String> {
    let mut open: BTreeMap<&str, i32> = BTreeMap::new();
    let mut done = BTreeSet::new();
    for (stream, event) in events {
        match event {
            Event::TurnStarted(_) => *open.entry(stream).or_default() += 1,
            Event::TurnEnded(_) => *open.entry(stream).or_default() -= 1,
            Event::ToolDone(tool) if !done.insert((stream, &tool.key)) => {
                return Err(format!("call `{}` in `{stream}` has two results", tool.key));
            }
            _ => {}
        }
    }
    if let Some((stream, _)) = open.iter().find(|(_, open)| **open != 0) {
        return Err(format!("`{stream}` is in the middle of something"));
    }
    match told(journal.mailboxes())?.into_iter().find(|address| address.starts_with("agent/")) {
        Some(address) => Err(format!("unread mail at `{address}`: {:?}", told(journal.pending_mail(&address))?)),
        None => Ok(()),
    }
}

/// Each message of a colleague is read in one turn; what a task came to is told once.
fn envelopes(events: &[(String, Event)]) -> Result<(), String> {
    let mut read: BTreeMap<EnvelopeId, usize> = BTreeMap::new();
    let mut results: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (_, event) in events {
        match event {
            Event::TurnStarted(started) => {
                for envelope in std::iter::once(&started.envelope).chain(&started.envelopes) {
                    *read.entry(*envelope).or_default() += 1;
                }
            }
            Event::Steered(steered) => {
                let all = steered.envelopes.iter().chain(&steered.from_team);
                all.for_each(|id| *read.entry(*id).or_default() += 1);
            }
            Event::Mailed(envelope) if matches!(envelope.kind, MessageKind::TaskResult | MessageKind::Text) => {
                let what = if envelope.kind == MessageKind::Text { "message was written" } else { "result was told" };
                let line = (what, format!("{} {} {}", envelope.from, envelope.to, envelope.body));
                *results.entry(line).or_default() += 1;
            }
            _ => {}
        }
    }
    if let Some((id, times)) = read.into_iter().find(|(_, times)| *times > 1) {
        return Err(format!("a message was read twice: {id}, {times} times"));
    }
    match results.into_iter().find(|(_, times)| *times > 1) {
        Some(((what, result), times)) => Err(format!("a {what} twice: {result}, {times} times")),
        None => Ok(()),
    }
}

/// What was paid was paid once, or it is known that nobody knows.
fn paid(world: &World<'_>, events: &[(String, Event)]) -> Result<(), String> {
    let unknown =
        events.iter().any(|(_, event)| matches!(event, Event::ToolDone(done) if done.ending == ToolOutcome::Unknown));
    let wanted: BTreeSet<String> = world
        .story
        .recording
        .split("tool: pay, input: {what: ")
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
        .map(|what| format!("pay {what}"))
        .collect();
    let count = world.ledger.count();
    match wanted.into_iter().find(|what| !count.contains_key(what)) {
        Some(what) if !unknown => Err(format!("an effect is said to have happened and has not: `{what}`")),
        _ => Ok(()),
    }
}

/// Nobody ever claims what somebody holds, and nobody holds anything at rest.
fn lists(events: &[(String, Event)]) -> Result<BTreeMap<&str, TaskList>, String> {
    let mut lists: BTreeMap<&str, TaskList> = BTreeMap::new();
    for (stream, event) in events.iter().filter(|(stream, _)| stream.starts_with("tasks/")) {
        let tasks = lists.entry(stream).or_default();
        if let Event::ItemMoved(moved) = event
            && moved.what == StatusChange::Claimed
        {
            let was =
                tasks.find(&moved.id.to_string()).ok().map(|item| (item.state.holder.clone(), item.state.epoch + 1));
            if was != Some((None, moved.state.epoch)) {
                return Err(format!("a task was claimed twice: {moved:?}"));
            }
        }
        tasks.apply(event);
    }
    if let Some((stream, _)) = lists.iter().find(|(_, tasks)| tasks.items().any(|item| item.state.holder.is_some())) {
        return Err(format!("a task of `{stream}` is held by somebody who is done"));
    }
    Ok(lists)
}

/// What has come of it all.
pub(crate) fn outcomes(world: &World<'_>, journal: &Journal) -> Result<Outcomes, String> {
    let events = events(journal)?;
    let list = lists(&events)?.into_values();
    let list = list
        .flat_map(|tasks| tasks.items().map(|item| (item.text.subject.clone(), item.state.status)).collect::<Vec<_>>());
    let names: BTreeMap<AgentId, String> = events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::AgentStarted(started) => Some((started.agent, started.definition.name.clone())),
            _ => None,
        })
        .collect();
    let name = |address: &str| {
        let id = address.strip_prefix("agent/").and_then(|id| id.parse().ok());
        id.and_then(|id: AgentId| names.get(&id).cloned()).unwrap_or_else(|| address.to_owned())
    };
    let (mut words, mut envelopes, mut said) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
    for (_, event) in &events {
        match event {
            Event::Replied(replied) => drop(words.insert(replied.text.clone())),
            Event::Said(spoken) => said.push(spoken.text.clone()),
            Event::Mailed(envelope) if envelope.kind == MessageKind::Text => {
                let line = format!("{} to {}: {}", name(&envelope.from), name(&envelope.to), envelope.body["text"]);
                *envelopes.entry(line).or_default() += 1;
            }
            _ => {}
        }
    }
    Ok(Outcomes {
        plans: plans(world, journal, &events)?,
        files: files(world.root)?,
        words,
        envelopes,
        list: list.collect(),
        said,
    })
}

fn plans(world: &World<'_>, journal: &Journal, events: &[(String, Event)]) -> Result<Vec<Ended>, String> {
    let ids: BTreeSet<PlanId> =
        events.iter().filter_map(|(stream, _)| stream.strip_prefix("plan/")?.parse().ok()).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let worker = WorkerId::new(new_id());
    let team = runtime(journal, world.root, worker, Replay::default(), &world.ledger);
    let plans = ids.into_iter().map(|plan| {
        let plan = told(told(team.ask(query::Plan { plan }).now_or_never().ok_or("a plan is read at once"))?)?;
        let tasks = plan.tasks().map(|view| Task {
            id: view.task.id.clone(),
            status: view.status,
            attempt: view.attempt,
            result: view.result.map(|result| (result.output.clone(), result.proof)),
        });
        Ok((plan.ended(), tasks.collect()))
    });
    plans.collect()
}

fn files(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    for file in told(std::fs::read_dir(root))? {
        let path = told(file)?.path();
        if path.is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.insert(name, told(std::fs::read_to_string(&path))?);
        }
    }
    Ok(files)
}
