//! What a run without a chat has heard so far: enough to know when it is over, and what to say then.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use max_team_core::chat::Part;
use max_team_core::cost::SessionCost;
use max_team_core::event::{Event, Refusal, Steered, ToolDone, ToolIntent, TurnEnded, TurnStarted};
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::interrupt::Hold;
use max_team_core::plan::event::PlanEnd;
use max_team_core::policy::{ActionKind, Recourse};
use max_team_core::rewind::MovedFile;
use max_team_core::secret::Redactor;
use max_team_core::status::SessionStatus;
use max_team_core::verdict::{OtherAgents, counts};
use max_team_runtime::{OpenedSession, Origin, StreamReader, now_ms};
use serde_json::{Value, json};

use super::questions::WaitingQuestion;
use crate::stream_json;
use max_team_workspace::exit::Exit;

/// What is known when it is over.
pub(super) struct RunState {
    pub(super) output: Output,
    pub(super) turn: LeadTurn,
    pub(super) refused_calls: RefusedCalls,
    pub(super) questions: OpenQuestions,
    pub(super) plans: PlanTally,
    pub(super) teammates: TeammateTally,
    /// Which agents work or were stopped since the session was opened, and which teammates are to begin.
    pub(super) agents: SessionStatus,
    lead: Option<AgentId>,
    /// Protected files that commands made without approval, and that were moved away.
    pub(super) moved: Vec<MovedFile>,
    /// The last error of a model server that a plan waits for.
    pub(super) outage: Option<String>,
    /// Whether the session has a team, and so more than one turn may belong to the answer.
    pub(super) team: bool,
    /// Running commands, by agent and call.
    pub(super) commands: HashMap<(Option<AgentId>, String), String>,
    /// Messages that a turn has begun with.
    pub(super) heard: Vec<EnvelopeId>,
    /// Messages of this run that no agent has read.
    pub(super) unheard: HashSet<EnvelopeId>,
    /// Whether it was told that worktrees are being made.
    pub(super) copying: bool,
    /// The cost of all agents of the session.
    pub(super) cost: SessionCost,
}

pub(super) struct Output {
    pub(super) lines: stream_json::StreamJson,
    /// The events of the log, for JSON lines.
    pub(super) stream: Option<StreamReader>,
    /// The lines of called agents.
    called: HashMap<AgentId, stream_json::StreamJson>,
    /// The lead's words and thoughts on their way to standard output, which may end in half a secret.
    pub(super) said: Redactor,
    pub(super) thought: Redactor,
}

/// The lead's turn, and how the last one ended.
pub(super) struct LeadTurn {
    /// When the run began; where it listens, the lead's turn.
    pub(super) began: Instant,
    pub(super) rounds: u32,
    pub(super) api_ms: u64,
    pub(super) first_ms: Option<u64>,
    pub(super) ended: Option<TurnEnded>,
    /// Whether the answer was given before this run.
    pub(super) repeats: bool,
    /// The lead has worked as long as its definition lets it.
    pub(super) is_out_of_time: bool,
}

/// Calls that were refused.
#[derive(Default)]
pub(super) struct RefusedCalls {
    pub(super) denials: Vec<Value>,
    /// Calls that needed an approval that a headless run cannot get, and whether they always do.
    pub(super) unasked: Vec<(String, Recourse)>,
    /// How many were named on standard error.
    pub(super) refusals_told: usize,
}

/// Questions to the user.
#[derive(Default)]
pub(super) struct OpenQuestions {
    /// Those that wait in the user's inbox.
    pub(super) waiting: Vec<WaitingQuestion>,
    /// Those that the run has answered, with the answer on its way; questions of a plan with the plan.
    pub(super) sent: HashMap<QuestionId, Option<PlanId>>,
}

/// The plans of the session.
#[derive(Default)]
pub(super) struct PlanTally {
    /// Plans by id: the last question that is open, and how it ended.
    pub(super) known: Vec<(PlanId, Option<QuestionId>, Option<PlanEnd>)>,
    /// How many of them were open when the run began.
    pub(super) before: usize,
    /// Plans whose end the lead's turn begins with.
    pub(super) reports: Vec<PlanId>,
    /// Those that a turn has begun with.
    reported: HashSet<PlanId>,
    /// Plans that were stopped before the run, or before the lead's last answer.
    pub(super) outlived: HashSet<PlanId>,
}

/// The agents besides the lead.
#[derive(Default)]
pub(super) struct TeammateTally {
    /// Agents that work on a request of the user.
    pub(super) for_user: HashSet<AgentId>,
    /// Whether such an agent has answered, and whether all of them did what they were asked for.
    pub(super) written: Option<bool>,
    /// Agents whose last turn the budget stopped, unless the lead has answered since.
    pub(super) unpaid: HashSet<AgentId>,
    /// Stopped agents without which the lead has answered since.
    answered: HashSet<AgentId>,
    /// A teammate that the user asked for could not begin.
    pub(super) unjoined: bool,
    /// Agents that are to go on and have not begun.
    pub(super) awaited: HashSet<AgentId>,
    /// Plans that are to go on and have recorded nothing since.
    pub(super) awaited_plans: HashSet<PlanId>,
}

impl RunState {
    /// What went wrong with agents besides the lead.
    pub(super) fn others(&self) -> OtherAgents {
        OtherAgents {
            is_stopped: self.agents.stopped().any(|(agent, _)| !self.teammates.answered.contains(&agent)),
            is_unpaid: !self.teammates.unpaid.is_empty(),
            is_unjoined: self.teammates.unjoined,
            has_failed: self.turn.ended.is_none() && self.teammates.written == Some(false),
        }
    }

    pub(super) fn new(session: SessionId, retries_max: u32) -> Self {
        Self {
            output: Output {
                lines: stream_json::StreamJson::new(session, retries_max),
                stream: None,
                called: HashMap::new(),
                said: Redactor::default(),
                thought: Redactor::default(),
            },
            turn: LeadTurn {
                began: Instant::now(),
                rounds: 0,
                api_ms: 0,
                first_ms: None,
                ended: None,
                repeats: false,
                is_out_of_time: false,
            },
            refused_calls: RefusedCalls::default(),
            questions: OpenQuestions::default(),
            plans: PlanTally::default(),
            teammates: TeammateTally::default(),
            agents: SessionStatus::since(now_ms()),
            lead: None,
            moved: Vec::new(),
            outage: None,
            team: false,
            commands: HashMap::new(),
            heard: Vec::new(),
            unheard: HashSet::new(),
            copying: false,
            cost: SessionCost::default(),
        }
    }

    /// The state of the session when it was opened.
    pub(super) fn open(&mut self, opened: &OpenedSession) {
        (self.cost, self.lead) = (opened.cost.clone(), Some(opened.agent));
        opened.asked.iter().for_each(|asked| self.agents.resume(asked.question, asked.agent));
    }

    /// Remembers a command that is about to run.
    pub(super) fn intends(&mut self, from: &Origin, intent: &ToolIntent) {
        if intent.action.kind == ActionKind::Execute {
            self.commands.insert((from.agent, intent.key.clone()), intent.action.target.clone());
        }
    }

    /// Takes an event of an agent into the folds of the session.
    pub(super) fn hear(&mut self, from: &Origin, event: &Event) {
        if let Some(agent) = from.agent {
            self.cost.apply(agent, event);
            self.agents.apply(agent, &from.name, event);
        }
        let ended = from.plan.filter(|_| matches!(event, Event::PlanEnded(_)));
        let is_asked = |question: &QuestionId| self.agents.is_asked(*question);
        self.questions.sent.retain(|question, plan| if plan.is_some() { *plan != ended } else { is_asked(question) });
        self.questions.waiting.retain(|waiting| is_asked(&waiting.question));
    }

    /// What counts for one turn is counted anew.
    pub(super) fn next_turn(&mut self) {
        (self.turn.api_ms, self.turn.first_ms) = (0, None);
        self.refused_calls.denials.clear();
        self.refused_calls.unasked.clear();
    }

    /// The line for an event of an agent that works for a call, if events of this kind have one.
    pub(super) fn of_call(&mut self, from: &Origin, at_ms: i64, event: &Event) -> Option<Value> {
        let (agent, (caller, key)) = (from.agent?, from.call.as_ref()?);
        let parent = self.output.called.get(caller).unwrap_or(&self.output.lines).id(key);
        let fresh = self.output.lines.of_call(parent);
        let lines = self.output.called.entry(agent).or_insert(fresh);
        lines.hear(event);
        if let Event::TurnEnded(_) = event {
            self.output.called.remove(&agent);
            return None;
        }
        stream_json::StreamJson::tells(event).then(|| self.output.called.get(&agent)?.line(at_ms, event)).flatten()
    }

    /// An agent has started a turn.
    pub(super) fn begins(&mut self, from: &Origin, started: &TurnStarted) {
        self.heard.push(started.envelope);
        self.heard.extend(&started.envelopes);
        if from.lead {
            self.plans.reports =
                if self.unheard.contains(&started.envelope) { Vec::new() } else { self.reports_in(&started.input) };
            self.plans.reported.extend(&self.plans.reports);
        }
        let is_users = started.assignment.as_ref().is_some_and(|given| given.is_for_user());
        self.teammates.for_user.extend(from.agent.filter(|_| is_users));
        self.teammates.unpaid.retain(|agent| from.agent != Some(*agent));
        self.unheard.retain(|key| *key != started.envelope && !started.envelopes.contains(key));
        self.teammates.awaited.retain(|agent| from.agent != Some(*agent));
    }

    /// An agent was told something on its way.
    pub(super) fn steered(&mut self, from: &Origin, steered: &Steered) {
        self.unheard.retain(|key| !steered.envelopes.contains(key));
        if from.lead && !steered.from_team.is_empty() {
            let reports = self.reports_in(&steered.input);
            self.plans.reported.extend(&reports);
            self.plans.reports.extend(reports);
        }
    }

    /// Plans whose end is reported to the lead: they are over, and a message that did not come from this run names
    /// them.
    fn reports_in(&self, told: &[Part]) -> Vec<PlanId> {
        let is_named =
            |name: String| told.iter().any(|part| matches!(part, Part::Text { text } if text.contains(&name)));
        let over = self.plans.known.iter().filter(|(.., end)| end.is_some()).map(|(plan, ..)| *plan);
        over.filter(|plan| is_named(plan.to_string())).collect()
    }

    /// Whether the lead has begun to say how a plan ended.
    pub(super) fn is_reported(&self, plan: PlanId) -> bool {
        self.plans.reported.contains(&plan)
    }

    /// An agent was stopped: the messages that it has not read are for the next run.
    pub(super) fn holds(&mut self, from: &Origin, held: &Hold) {
        self.unheard.retain(|key| !held.envelopes.contains(key));
        self.teammates.awaited.retain(|agent| from.agent != Some(*agent));
        self.teammates.answered.retain(|agent| from.agent != Some(*agent));
    }

    /// A turn of the lead is over. If it came to an answer, agents that were stopped before do not count as
    /// unfinished.
    pub(super) fn ends(&mut self, ended: &TurnEnded) {
        if Exit::of_turn_outcome(&ended.end) == Exit::Ok {
            self.teammates.answered.extend(self.agents.stopped().map(|(agent, _)| agent));
            self.teammates.unpaid.clear();
            let stopped = self.plans.known.iter().filter(|(.., end)| *end == Some(PlanEnd::Stopped));
            self.plans.outlived.extend(stopped.map(|(plan, ..)| *plan));
        }
        (self.turn.ended, self.turn.repeats) = (Some(ended.clone()), false);
    }

    /// Whether a result line is still owed after those of the finished turns.
    pub(super) fn owes_result(&self) -> bool {
        let is_open = self.lead.is_some_and(|lead| self.agents.is_working(lead));
        is_open || self.turn.ended.is_none() || !self.unheard.is_empty()
    }

    /// Nothing new came of the run: what there is was answered before. Whether there is an answer to repeat.
    pub(super) fn repeat(&mut self, opened: &OpenedSession) -> bool {
        if self.turn.ended.is_none() && self.teammates.written.is_none() {
            self.turn.ended.clone_from(&opened.last);
            self.turn.repeats = self.turn.ended.is_some();
        }
        self.turn.repeats
    }

    /// Whether the plan to report was stopped; the lead gives no answer about such a plan.
    pub(super) fn has_stopped_plan(&self) -> bool {
        self.plan_to_tell().is_some_and(|(.., end)| *end == Some(PlanEnd::Stopped))
    }

    /// The names of those who were stopped.
    pub(super) fn stopped(&self) -> Vec<&str> {
        self.agents.stopped().map(|(_, name)| name).collect()
    }

    /// Whether the session was stopped during the run: the lead is on hold, and our message, its answer or a plan waits for that.
    pub(super) fn is_held(&self, waits_for: Option<EnvelopeId>) -> bool {
        let Some(hold) = self.lead.and_then(|lead| self.agents.hold(lead)) else { return false };
        let is_unread = waits_for.is_some_and(|key| hold.envelopes.contains(&key));
        is_unread || self.turn.ended.is_none() || self.plans.known.iter().any(|(.., end)| end.is_none())
    }

    /// Whether something that we have said ourselves is still to be heard.
    pub(super) fn is_awaiting(&self) -> bool {
        let TeammateTally { awaited, awaited_plans, .. } = &self.teammates;
        !self.questions.sent.is_empty() || !awaited.is_empty() || !awaited_plans.is_empty() || self.agents.is_joining()
    }

    /// Whether what we asked for has been taken up.
    pub(super) fn begun(&self, waits_for: Option<EnvelopeId>) -> bool {
        self.plans.known.len() > self.plans.before || waits_for.is_some_and(|key| self.heard.contains(&key))
    }

    /// What is known of a plan.
    pub(super) fn plan(&mut self, plan: PlanId, event: &Event) {
        self.teammates.awaited_plans.remove(&plan);
        if !self.plans.known.iter().any(|(known, ..)| *known == plan) {
            self.plans.known.push((plan, None, None));
        }
        let Some((_, asked, end)) = self.plans.known.iter_mut().find(|(known, ..)| *known == plan) else { return };
        match event {
            Event::PlanAsked(question) => *asked = Some(question.question),
            Event::PlanAnswered(answered) if *asked == Some(answered.question) => *asked = None,
            Event::PlanUnasked(unasked) if asked.is_some_and(|open| unasked.questions.contains(&open)) => *asked = None,
            Event::PlanEnded(ended) => (*asked, *end) = (None, Some(ended.end)),
            _ => {}
        }
        // A plan that goes on after its revision was rejected is what the run came to.
        if matches!(event, Event::PlanEnded(ended) if ended.end != PlanEnd::Replaced) {
            self.plans.known.sort_by_key(|(known, ..)| *known == plan);
        }
    }

    /// The plan that is spoken of at the end: the last that waits, else the one that ended last.
    pub(super) fn plan_to_tell(&self) -> Option<&(PlanId, Option<QuestionId>, Option<PlanEnd>)> {
        self.plans.known.iter().rfind(|(_, asked, _)| asked.is_some()).or(self.plans.known.last())
    }

    /// A call of the lead was refused, by a rule or because no person could be asked.
    pub(super) fn refused(&mut self, done: &ToolDone) {
        let (id, tool) = (self.output.lines.id(&done.key), self.output.lines.tool(&done.key));
        self.refused_calls.denials.push(denial(&tool, Some(&id), done.refused.as_deref()));
    }

    /// Lists a call of another agent that its tool refuses also with an approval.
    pub(super) fn denied(&mut self, event: &Event) {
        let Event::ToolDone(ToolDone { refused: Some(refusal), .. }) = event else { return };
        if counts(refusal) {
            self.refused_calls.denials.push(denial(&refusal.tool, None, Some(refusal)));
        }
    }
}

/// An entry of `permission_denials`.
pub(super) fn denial(tool: &str, id: Option<&str>, refusal: Option<&Refusal>) -> Value {
    let target = refusal.map(|refusal| &refusal.target);
    let reason = refusal.map(|refusal| refusal.by.name());
    json!({ "tool_name": tool, "tool_use_id": id, "target": target, "reason": reason })
}

#[cfg(test)]
mod tests {
    use max_team_core::plan::event::{PlanAsked, PlanQuestion, PlanUnasked};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_withdrawn_question_is_not_open() {
        let mut tally = RunState::new(SessionId::new(Uuid::from_u128(1)), 0);
        let plan = PlanId::new(Uuid::from_u128(2));
        let [open, other] = [3, 4].map(|number| QuestionId::new(Uuid::from_u128(number)));
        tally.plan(plan, &Event::PlanAsked(PlanAsked { question: open, about: PlanQuestion::Rest }));
        tally.plan(plan, &Event::PlanUnasked(PlanUnasked { questions: vec![other], replaced_by: None }));
        assert_eq!(tally.plans.known, [(plan, Some(open), None)]);
        tally.plan(plan, &Event::PlanUnasked(PlanUnasked { questions: vec![other, open], replaced_by: None }));
        assert_eq!(tally.plans.known, [(plan, None, None)]);
    }
}
