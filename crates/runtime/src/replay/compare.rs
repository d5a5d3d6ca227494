//! Two runs side by side: where they parted, and what each came to.
//!
//! Agents that run in parallel never write in the same order twice, so each agent is compared with its counterpart in
//! the other run: the agent with the same name, the same task and the same count among those. Ids and positions, which
//! are new in every run, do not count. If one run was forked from the other, their shared beginning does not count
//! either.

use std::collections::{BTreeMap, HashSet};

use max_team_core::chat::{Part, Usage};
use max_team_core::event::{Event, LlmOutcome, Steered, ToolDone, TurnOutcome, TurnStarted};
use max_team_core::id::{AgentId, SessionId};
use max_team_core::ledger::Charge;
use max_team_core::turn::Turn;
use serde::Serialize;

use super::Tape;
use crate::error::RuntimeError;
use crate::rows::{event_of, handle};

/// Digits of an id behind its prefix.
const ID_DIGITS: usize = 32;

/// One step of an agent: an input, an answer, a tool call, a result, or the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentStep {
    /// Its number in the journal.
    pub seq: u64,
    /// Milliseconds since the run began.
    pub at_ms: u64,
    /// `told`, `answer`, `tool`, `result` or `end`.
    pub kind: &'static str,
    /// Its content, without ids and positions, which are new in every run.
    pub text: String,
}

/// The first difference of two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstDifference {
    /// The agent that first did something else.
    pub agent: String,
    /// The number of the step, from 1.
    pub step: usize,
    /// Its step in the first run; `None` if it had ended there.
    pub a: Option<AgentStep>,
    /// Its step in the second run; `None` if it had ended there.
    pub b: Option<AgentStep>,
}

/// Sums over a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Figures {
    /// Number of agents.
    pub agents: usize,
    pub turns: usize,
    /// Number of model calls.
    pub calls: usize,
    /// Those of them that ended without an answer.
    pub failed_calls: usize,
    /// Milliseconds of all model calls.
    pub model_ms: u64,
    /// Tool calls, and how many of them failed, by tool.
    pub tools: BTreeMap<String, (usize, usize)>,
    pub usage: Usage,
    /// Cost in nano-dollars.
    pub nano: u64,
    /// Milliseconds from the first entry to the last.
    pub ms: u64,
    /// The last answer of its lead.
    pub answer: String,
}

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// If one run was forked from the other, the last entry that both have. Only later entries are compared.
    pub shared_seq: Option<u64>,
    /// Where they first differ; `None` if all agents did the same.
    pub parting: Option<FirstDifference>,
    /// The first run.
    pub a: Figures,
    /// The second run.
    pub b: Figures,
}

/// The steps of one agent.
struct Voice {
    name: String,
    steps: Vec<AgentStep>,
}

impl Tape {
    /// Compares it with another run.
    pub fn compare(&self, other: &Self) -> Result<Comparison, RuntimeError> {
        let from_us = other.forked()?.filter(|(session, _)| *session == self.session).map(|(_, seq)| seq);
        let from_them = self.forked()?.filter(|(session, _)| *session == other.session).map(|(_, seq)| seq);
        let (ours, a) = self.voices(from_us.unwrap_or_default())?;
        let (theirs, b) = other.voices(from_them.unwrap_or_default())?;
        let mut partings: Vec<(u64, FirstDifference)> = Vec::new();
        for voice in &ours {
            let same = theirs.iter().find(|other| other.name == voice.name);
            partings.extend(parted(&voice.name, &voice.steps, same.map_or(&[], |other| &other.steps)));
        }
        for voice in theirs.iter().filter(|voice| ours.iter().all(|known| known.name != voice.name)) {
            partings.extend(parted(&voice.name, &[], &voice.steps));
        }
        let first = partings.into_iter().min_by_key(|(at_ms, _)| *at_ms);
        Ok(Comparison { shared_seq: from_us.or(from_them), parting: first.map(|(_, parting)| parting), a, b })
    }

    /// The session that it was forked from, and the last entry that it took over.
    fn forked(&self) -> Result<Option<(SessionId, u64)>, RuntimeError> {
        let Some(entry) = self.entries.iter().find(|entry| entry.event == "forked") else { return Ok(None) };
        Ok(match event_of(entry)? {
            Event::Forked(forked) => Some((forked.session, forked.seq)),
            _ => None,
        })
    }

    /// The steps of every agent after an entry, and the sums.
    fn voices(&self, behind: u64) -> Result<(Vec<Voice>, Figures), RuntimeError> {
        let later = || self.entries.iter().filter(|entry| entry.seq > behind);
        let began_ms = later().next().map_or(0, |entry| entry.at_ms);
        let active: HashSet<&str> = later().map(|entry| entry.stream.as_str()).collect();
        let mut figures =
            Figures { ms: since(began_ms, self.entries.last().map_or(0, |entry| entry.at_ms)), ..Figures::default() };
        let mut order: Vec<(AgentId, String)> = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.event == "agent_started") {
            let Event::AgentStarted(started) = event_of(entry)? else { continue };
            if !active.contains(entry.stream.as_str()) {
                continue;
            }
            let given = started.assignment.as_ref();
            let teammate = given.and_then(|given| given.life.teammate());
            let name = teammate.map_or(&started.definition.name, |teammate| &teammate.name);
            // The name of a call's task is its key, which is equal in both runs if everything before it was.
            let task =
                given.filter(|given| teammate.is_none() && given.plan.is_some()).map(|given| given.task.as_str());
            let mut full = task.map_or_else(|| name.clone(), |task| format!("{name}/{task}"));
            let before = order.iter().filter(|(_, known)| *known == full || known.starts_with(&format!("{full} #")));
            let count = before.count();
            if count > 0 {
                full = format!("{full} #{}", count + 1);
            }
            order.push((started.agent, full));
        }
        figures.agents = order.len();
        let mask = Mask::of(self, &order);
        let mut voices = Vec::new();
        for (agent, name) in &order {
            let (mut steps, mut names, mut turn) = (Vec::new(), BTreeMap::new(), Turn::new());
            for (seq, at_ms, event) in self.events(*agent)? {
                turn.apply(&event);
                if seq <= behind {
                    said(&event, &mut names);
                    continue;
                }
                figures.count(&event, *agent == self.lead, &names);
                let key = if let Event::ToolDone(done) = &event { Some(done.key.clone()) } else { None };
                let add = |(kind, text): (&'static str, String)| {
                    (key.clone(), AgentStep { seq, at_ms: since(began_ms, at_ms), kind, text: mask.text(&text) })
                };
                steps.extend(said(&event, &mut names).into_iter().map(add));
            }
            // The cost of an unfinished turn counts, too.
            figures.charge(turn.charges());
            in_order(&mut steps);
            let steps = steps.into_iter().map(|(_, step)| step).collect();
            voices.push(Voice { name: name.clone(), steps });
        }
        figures.answer = mask.text(&figures.answer);
        Ok((voices, figures))
    }
}

impl Figures {
    fn count(&mut self, event: &Event, leads: bool, names: &BTreeMap<String, String>) {
        match event {
            Event::ToolDone(done) if done.is_error => {
                if let Some(tool) = names.get(&done.key) {
                    self.tools.entry(tool.clone()).or_default().1 += 1;
                }
            }
            Event::TurnStarted(_) => self.turns += 1,
            Event::LlmIntent(_) => self.calls += 1,
            Event::LlmEnded(ended) => {
                self.model_ms = self.model_ms.saturating_add(ended.ms);
                self.failed_calls += usize::from(!matches!(ended.outcome, LlmOutcome::Done(_)));
                if let LlmOutcome::Done(answer) = &ended.outcome {
                    for (_, tool, _) in answer.message.tool_uses() {
                        self.tools.entry(tool.to_owned()).or_default().0 += 1;
                    }
                }
            }
            Event::TurnEnded(ended) => {
                self.charge(&ended.charges);
                if leads && !ended.text.is_empty() {
                    self.answer.clone_from(&ended.text);
                }
            }
            _ => {}
        }
    }

    fn charge(&mut self, charges: &[Charge]) {
        for charge in charges {
            self.usage += charge.usage;
            self.nano = self.nano.saturating_add(charge.nano);
        }
    }

    /// Number of tool calls, and how many failed.
    pub fn tool_calls(&self) -> (usize, usize) {
        self.tools.values().fold((0, 0), |(calls, failed), (more, bad)| (calls + more, failed + bad))
    }
}

/// The steps in an event.
fn said(event: &Event, names: &mut BTreeMap<String, String>) -> Vec<(&'static str, String)> {
    match event {
        Event::TurnStarted(TurnStarted { input, rewound, .. }) => {
            let beside = rewound.iter().map(|told| ("told", told.text.clone()));
            [("told", words(input))].into_iter().chain(beside).collect()
        }
        Event::Steered(Steered { input, .. }) => vec![("told", words(input))],
        Event::Nudged(nudged) => vec![("told", nudged.text.clone())],
        Event::LlmEnded(ended) => match &ended.outcome {
            _ if ended.summary => Vec::new(),
            LlmOutcome::Done(answer) => {
                let text = answer.message.text();
                let uses = answer.message.tool_uses().enumerate().map(|(index, (_, tool, input))| {
                    names.insert(max_team_core::turn::call_key(ended.call, index), tool.to_owned());
                    ("tool", format!("{tool} {input}"))
                });
                let text = (!text.is_empty()).then_some(("answer", text));
                text.into_iter().chain(uses).collect()
            }
            LlmOutcome::Failed { detail, .. } => vec![("answer", detail.clone())],
            LlmOutcome::Cancelled { .. } | LlmOutcome::Lost => Vec::new(),
        },
        Event::ToolDone(ToolDone { key, content, .. }) => {
            let tool = names.get(key).cloned().unwrap_or_default();
            vec![("result", format!("{tool}: {}", words(content)))]
        }
        Event::TurnEnded(ended) if ended.end != TurnOutcome::Answered => {
            vec![("end", serde_json::to_string(&ended.end).unwrap_or_default())]
        }
        _ => Vec::new(),
    }
}

/// Puts results of parallel calls into the order of the calls.
fn in_order(steps: &mut [(Option<String>, AgentStep)]) {
    for found in steps.chunk_by_mut(|(one, _), (next, _)| one.is_some() && next.is_some()) {
        let place = |key: &str| key.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>();
        found.sort_by_cached_key(|(key, _)| key.as_deref().map(place));
    }
}

/// The first difference between two sequences of one agent's steps, and its time.
fn parted(agent: &str, a: &[AgentStep], b: &[AgentStep]) -> Option<(u64, FirstDifference)> {
    let same = |(one, other): &(&AgentStep, &AgentStep)| (one.kind, &one.text) == (other.kind, &other.text);
    let step = a.iter().zip(b).take_while(same).count();
    let (a, b) = (a.get(step).cloned(), b.get(step).cloned());
    let at_ms = [&a, &b].into_iter().flatten().map(|step| step.at_ms).min()?;
    Some((at_ms, FirstDifference { agent: agent.to_owned(), step: step + 1, a, b }))
}

fn words(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None });
    texts.collect::<Vec<_>>().join("\n")
}

fn since(from_ms: i64, to_ms: i64) -> u64 {
    u64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or(0)
}

/// Replaces what is new in every run.
struct Mask {
    cwd: String,
    /// Handles of agents, with their names.
    handles: Vec<(String, String)>,
}

impl Mask {
    fn of(tape: &Tape, agents: &[(AgentId, String)]) -> Self {
        let short = |name: &str| name.split(['/', ' ']).next().unwrap_or_default().to_owned();
        let handles = agents.iter().map(|(agent, name)| (handle(&short(name), *agent), short(name)));
        Self { cwd: tape.cwd.clone(), handles: handles.collect() }
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.replace(&self.cwd, "<project>");
        for (handle, name) in &self.handles {
            text = text.replace(handle, name);
        }
        without_ids(&text)
    }
}

/// `ses_0199…` becomes `ses_…`.
fn without_ids(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('_') {
        let (before, after) = rest.split_at(at + 1);
        kept.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        rest = if digits == ID_DIGITS {
            kept.push('…');
            after.get(digits..).unwrap_or_default()
        } else {
            after
        };
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(texts: &[&str]) -> Vec<AgentStep> {
        let step =
            |(at, text): (usize, &&str)| AgentStep { seq: 0, at_ms: at as u64, kind: "told", text: (*text).to_owned() };
        texts.iter().enumerate().map(step).collect()
    }

    #[test]
    fn ways_part_where_one_goes_on_alone() {
        let table: [(&[&str], &[&str], Option<usize>); 4] = [
            (&["a", "b"], &["a", "b"], None),
            (&["a", "b"], &["a", "c"], Some(2)),
            (&["a"], &["a", "c"], Some(2)),
            (&[], &["c"], Some(1)),
        ];
        for (a, b, want) in table {
            assert_eq!(parted("x", &steps(a), &steps(b)).map(|(_, parting)| parting.step), want, "{a:?} {b:?}");
        }
    }

    #[test]
    fn ids_do_not_count() {
        let id = format!("pln_{}", "0a".repeat(16));
        assert_eq!(
            without_ids(&format!("Plan {id} is over; snake_case stays")),
            "Plan pln_… is over; snake_case stays"
        );
    }
}
