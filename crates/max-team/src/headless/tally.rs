//! What a run without a chat has heard so far: enough to know when it is over, and what to say then.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use max_team_core::chat::Part;
use max_team_core::event::{Event, Refusal, Steered, ToolDone, TurnEnded, TurnStarted};
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::plan::event::PlanEnd;
use max_team_core::policy::Recourse;
use max_team_core::rewind::MovedFile;
use max_team_core::secret::Redactor;
use max_team_core::stop::Held;
use max_team_core::verdict::{Others, counts};
use max_team_runtime::{Opened, Origin, StreamReader};
use serde_json::{Value, json};

use super::questions::Waiting;
use crate::stream_json;
use max_team_workspace::exit::Exit;

/// What is known when it is over.
pub(super) struct Tally {
    pub(super) lines: stream_json::Lines,
    /// What the log tells, for whoever reads lines.
    pub(super) stream: Option<StreamReader>,
    /// The lines of those who were called.
    pub(super) called: HashMap<AgentId, stream_json::Lines>,
    /// When the run began; where it listens, the lead's turn.
    pub(super) began: Instant,
    pub(super) rounds: u32,
    pub(super) api_ms: u64,
    pub(super) first_ms: Option<u64>,
    /// The lead's words and thoughts on their way to standard output, which may end in half a secret.
    pub(super) said: Redactor,
    pub(super) thought: Redactor,
    pub(super) denials: Vec<Value>,
    /// Protected files that commands made without approval, and that were moved away.
    pub(super) moved: Vec<MovedFile>,
    /// The last error of a model server that a plan waits for.
    pub(super) outage: Option<String>,
    /// Calls that needed an approval that a headless run cannot get, and whether they always do.
    pub(super) unasked: Vec<(String, Recourse)>,
    /// Questions that wait in the user's inbox.
    pub(super) waiting: Vec<Waiting>,
    /// Refused calls that were named on standard error.
    pub(super) refusals_told: usize,
    pub(super) ended: Option<TurnEnded>,
    /// Whether the lead has begun a turn that is not over.
    is_open: bool,
    /// Whether the session has a team, and so more than one turn may belong to the answer.
    pub(super) team: bool,
    /// Somebody whom the user wanted on the team could not join.
    pub(super) unjoined: bool,
    /// The lead has worked as long as its definition lets it.
    pub(super) is_out_of_time: bool,
    /// Running commands, by agent and call.
    pub(super) commands: HashMap<(Option<AgentId>, String), String>,
    /// Who asked them.
    pub(super) asked_by: HashMap<QuestionId, String>,
    /// Questions that we have answered and whose answer is on its way.
    pub(super) sent: HashSet<QuestionId>,
    /// Letters that a turn has begun with.
    pub(super) heard: Vec<EnvelopeId>,
    /// Letters that a stop has left waiting.
    held: Vec<EnvelopeId>,
    /// Those whom a person has stopped and who have begun nothing since.
    stopped: Vec<Halt>,
    /// Stops that were said before the run, by whoever has still to read them: what the run comes to is not cut short by those.
    before: HashMap<AgentId, Before>,
    /// Plans whose end the lead's turn begins with.
    pub(super) reports: Vec<PlanId>,
    /// Those that one has begun with.
    reported: HashSet<PlanId>,
    /// Plans that were stopped before the run, or before the lead's last answer.
    pub(super) outlived: HashSet<PlanId>,
    /// Those who are at something that a person has asked them for, besides the lead.
    pub(super) for_user: HashSet<AgentId>,
    /// Whether somebody who works for the person here has written to them, and whether all of them had done what they were to.
    pub(super) written: Option<bool>,
    /// Agents other than the lead whose last turn the budget stopped, unless the lead has answered since.
    pub(super) unpaid: HashSet<AgentId>,
    /// Whether what there is to tell was answered before this run.
    pub(super) repeats: bool,
    /// What was said and nobody has taken up.
    pub(super) unheard: HashSet<EnvelopeId>,
    /// Those who are to go on and have not begun.
    pub(super) awaited: HashSet<AgentId>,
    /// Those who are to be on the team and have not begun, by name.
    pub(super) joining: Vec<String>,
    /// Whether it was told that copies of the project are being made.
    pub(super) copying: bool,
    /// Plans by id: the last question that is open, and how it ended.
    pub(super) plans: Vec<(PlanId, Option<QuestionId>, Option<PlanEnd>)>,
    /// How many of them were open when the run began: what we asked for is none of those.
    pub(super) plans_before: usize,
}

/// The stops of before the run that somebody had not read when it began.
#[derive(Default)]
struct Before {
    unread: Vec<EnvelopeId>,
    /// Those that it has read, and of which it was not heard yet that it has: several may be read before the first is heard of.
    unsaid: usize,
}

/// Somebody whom a person has stopped.
struct Halt {
    agent: Option<AgentId>,
    name: String,
    /// The lead has come to an answer since, without them.
    answered: bool,
}

impl Tally {
    /// What went wrong with agents besides the lead.
    pub(super) fn others(&self) -> Others {
        Others {
            is_stopped: self.stopped.iter().any(|halt| !halt.answered),
            is_unpaid: !self.unpaid.is_empty(),
            is_unjoined: self.unjoined,
            has_failed: self.ended.is_none() && self.written == Some(false),
        }
    }

    pub(super) fn new(session: SessionId, retries_max: u32) -> Self {
        Self {
            lines: stream_json::Lines::new(session, retries_max),
            stream: None,
            called: HashMap::new(),
            began: Instant::now(),
            rounds: 0,
            api_ms: 0,
            first_ms: None,
            said: Redactor::default(),
            thought: Redactor::default(),
            denials: Vec::new(),
            moved: Vec::new(),
            outage: None,
            unasked: Vec::new(),
            waiting: Vec::new(),
            refusals_told: 0,
            ended: None,
            is_open: false,
            team: false,
            unjoined: false,
            is_out_of_time: false,
            commands: HashMap::new(),
            asked_by: HashMap::new(),
            sent: HashSet::new(),
            heard: Vec::new(),
            held: Vec::new(),
            stopped: Vec::new(),
            before: HashMap::new(),
            reports: Vec::new(),
            reported: HashSet::new(),
            outlived: HashSet::new(),
            for_user: HashSet::new(),
            written: None,
            unpaid: HashSet::new(),
            repeats: false,
            unheard: HashSet::new(),
            awaited: HashSet::new(),
            joining: Vec::new(),
            copying: false,
            plans: Vec::new(),
            plans_before: 0,
        }
    }

    /// What was open when the session was opened.
    pub(super) fn open(&mut self, opened: &Opened) {
        for (agent, stop) in &opened.stops {
            self.before.entry(*agent).or_default().unread.push(*stop);
        }
    }

    /// What counts for one turn is counted anew.
    pub(super) fn next_turn(&mut self) {
        (self.api_ms, self.first_ms) = (0, None);
        self.denials.clear();
        self.unasked.clear();
    }

    /// The line for what somebody did who works for a call, if it is one like the lead's.
    pub(super) fn of_call(&mut self, from: &Origin, at_ms: i64, event: &Event) -> Option<Value> {
        let (agent, (caller, key)) = (from.agent?, from.call.as_ref()?);
        let parent = self.called.get(caller).unwrap_or(&self.lines).id(key);
        let fresh = self.lines.of_call(parent);
        let lines = self.called.entry(agent).or_insert(fresh);
        lines.hear(event);
        if let Event::TurnEnded(_) = event {
            self.called.remove(&agent);
            return None;
        }
        stream_json::Lines::tells(event).then(|| self.called.get(&agent)?.line(at_ms, event)).flatten()
    }

    /// Somebody has begun with something.
    pub(super) fn begins(&mut self, from: &Origin, started: &TurnStarted) {
        self.heard.push(started.envelope);
        self.heard.extend(&started.letters);
        if from.lead {
            self.held.clear();
            self.is_open = true;
            self.reports =
                if self.unheard.contains(&started.envelope) { Vec::new() } else { self.reports_in(&started.input) };
            self.reported.extend(&self.reports);
        }
        let is_users = started.assignment.as_ref().is_some_and(|given| given.is_for_user());
        self.for_user.extend(from.agent.filter(|_| is_users));
        self.stopped.retain(|halt| halt.agent != from.agent);
        self.unpaid.retain(|agent| from.agent != Some(*agent));
        from.agent.iter().for_each(|agent| drop(self.before.remove(agent)));
        self.unheard.retain(|key| *key != started.envelope && !started.letters.contains(key));
        self.awaited.retain(|agent| from.agent != Some(*agent));
        self.joining.retain(|name| **name != *from.name);
    }

    /// An agent was told something on its way.
    pub(super) fn steered(&mut self, from: &Origin, steered: &Steered) {
        self.unheard.retain(|key| !steered.envelopes.contains(key));
        if from.lead && !steered.letters.is_empty() {
            let reports = self.reports_in(&steered.input);
            self.reported.extend(&reports);
            self.reports.extend(reports);
        }
    }

    /// Plans whose end is reported to the lead: they are over, and a message that did not come from this run names
    /// them.
    fn reports_in(&self, told: &[Part]) -> Vec<PlanId> {
        let is_named =
            |name: String| told.iter().any(|part| matches!(part, Part::Text { text } if text.contains(&name)));
        let over = self.plans.iter().filter(|(.., end)| end.is_some()).map(|(plan, ..)| *plan);
        over.filter(|plan| is_named(plan.to_string())).collect()
    }

    /// Whether the lead has begun to say how a plan ended.
    pub(super) fn is_reported(&self, plan: PlanId) -> bool {
        self.reported.contains(&plan)
    }

    /// Whoever this is, if there may be stops of before that it has still to read.
    pub(super) fn told_before(&self, from: &Origin) -> Option<AgentId> {
        from.agent.filter(|agent| self.before.contains_key(agent))
    }

    /// Whether it is one of them that somebody was stopped by, by what it has not read: each that it has is said once.
    pub(super) fn reads_old(&mut self, agent: AgentId, unread: &[EnvelopeId]) -> bool {
        let Some(before) = self.before.get_mut(&agent) else { return false };
        let count = before.unread.len();
        before.unread.retain(|stop| unread.contains(stop));
        before.unsaid += count - before.unread.len();
        let is_old = before.unsaid > 0;
        before.unsaid = before.unsaid.saturating_sub(1);
        is_old
    }

    /// Somebody was stopped: what that has left waiting is for whoever goes on.
    pub(super) fn holds(&mut self, from: &Origin, held: &Held) {
        if from.lead {
            self.held.extend(&held.letters);
        }
        self.stopped.retain(|halt| halt.agent != from.agent);
        self.stopped.push(Halt { agent: from.agent, name: from.name.to_string(), answered: false });
        self.unheard.retain(|key| !held.letters.contains(key));
        self.awaited.retain(|agent| from.agent != Some(*agent));
        self.joining.retain(|name| **name != *from.name);
    }

    /// A turn of the lead's is over. Whoever was stopped before is none of what it leaves undone, if it came to an answer.
    pub(super) fn ends(&mut self, ended: &TurnEnded) {
        if Exit::of(&ended.end) == Exit::Ok {
            self.stopped.iter_mut().for_each(|halt| halt.answered = true);
            self.unpaid.clear();
            let stopped = self.plans.iter().filter(|(.., end)| *end == Some(PlanEnd::Stopped));
            self.outlived.extend(stopped.map(|(plan, ..)| *plan));
        }
        (self.ended, self.repeats, self.is_open) = (Some(ended.clone()), false, false);
    }

    /// Whether a result is owed to whoever has listened to those of the turns that are over.
    pub(super) fn owes_result(&self) -> bool {
        self.is_open || self.ended.is_none() || !self.unheard.is_empty()
    }

    /// Nothing new came of the run: what there is was answered before. Whether there is an answer to repeat.
    pub(super) fn repeat(&mut self, opened: &Opened) -> bool {
        if self.ended.is_none() && self.written.is_none() {
            self.ended.clone_from(&opened.last);
            self.repeats = self.ended.is_some();
        }
        self.repeats
    }

    /// Whether the plan that is spoken of was stopped, which nobody else says anything of.
    pub(super) fn has_stopped_plan(&self) -> bool {
        self.plan_to_tell().is_some_and(|(.., end)| *end == Some(PlanEnd::Stopped))
    }

    /// The names of those who were stopped.
    pub(super) fn stopped(&self) -> Vec<&str> {
        self.stopped.iter().map(|halt| halt.name.as_str()).collect()
    }

    /// Whether what we asked for waits for whoever goes on.
    pub(super) fn is_held(&self, waits_for: Option<EnvelopeId>) -> bool {
        waits_for.is_some_and(|key| self.held.contains(&key))
    }

    /// Whether something that we have said ourselves is still to be heard.
    pub(super) fn is_awaiting(&self) -> bool {
        !self.sent.is_empty() || !self.awaited.is_empty() || !self.joining.is_empty()
    }

    /// Whether what we asked for has been taken up.
    pub(super) fn begun(&self, waits_for: Option<EnvelopeId>) -> bool {
        self.plans.len() > self.plans_before || waits_for.is_some_and(|key| self.heard.contains(&key))
    }

    /// Whoever this is has no open questions any more.
    pub(super) fn forget(&mut self, from: &Origin) {
        let asked_by = &self.asked_by;
        self.sent.retain(|question| asked_by.get(question).is_none_or(|by| **by != *from.name));
        self.waiting.retain(|waiting| waiting.agent != from.agent);
    }

    /// A question has its answer.
    pub(super) fn answered(&mut self, question: QuestionId) {
        self.sent.remove(&question);
        self.waiting.retain(|waiting| waiting.question != question);
    }

    /// What is known of a plan.
    pub(super) fn plan(&mut self, plan: PlanId, event: &Event) {
        if !self.plans.iter().any(|(known, ..)| *known == plan) {
            self.plans.push((plan, None, None));
        }
        let Some((_, asked, end)) = self.plans.iter_mut().find(|(known, ..)| *known == plan) else { return };
        match event {
            Event::PlanAsked(question) => *asked = Some(question.question),
            Event::PlanAnswered(answered) if *asked == Some(answered.question) => *asked = None,
            Event::PlanUnasked(unasked) if asked.is_some_and(|open| unasked.questions.contains(&open)) => *asked = None,
            Event::PlanEnded(ended) => (*asked, *end) = (None, Some(ended.end)),
            _ => {}
        }
        // A plan that goes on after its revision was rejected is what the run came to.
        if matches!(event, Event::PlanEnded(ended) if ended.end != PlanEnd::Replaced) {
            self.plans.sort_by_key(|(known, ..)| *known == plan);
        }
    }

    /// The plan that is spoken of at the end: the last that waits, else the one that ended last.
    pub(super) fn plan_to_tell(&self) -> Option<&(PlanId, Option<QuestionId>, Option<PlanEnd>)> {
        self.plans.iter().rfind(|(_, asked, _)| asked.is_some()).or(self.plans.last())
    }

    /// A call of the lead was refused, by a rule or because no person could be asked.
    pub(super) fn refused(&mut self, done: &ToolDone) {
        let (id, tool) = (self.lines.id(&done.key), self.lines.tool(&done.key));
        self.denials.push(denial(&tool, Some(&id), done.refused.as_deref()));
    }

    /// Lists a call of another agent that its tool refuses also with an approval.
    pub(super) fn denied(&mut self, event: &Event) {
        let Event::ToolDone(ToolDone { refused: Some(refusal), .. }) = event else { return };
        if counts(refusal) {
            self.denials.push(denial(&refusal.tool, None, Some(refusal)));
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
    use max_team_core::plan::event::{About, PlanAsked, PlanUnasked};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn each_stop_of_before_is_said_once_however_many_are_read_at_once() {
        let [agent, other] = [2, 3].map(|number| AgentId::new(Uuid::from_u128(number)));
        let [first, second, third] = [4, 5, 6].map(|number| EnvelopeId::new(Uuid::from_u128(number)));
        let mut tally = Tally::new(SessionId::new(Uuid::from_u128(1)), 0);
        tally.before.insert(agent, Before { unread: vec![first, second, third], unsaid: 0 });
        assert!(!tally.reads_old(agent, &[first, second, third]), "none was read: this one is new");
        assert!(tally.reads_old(agent, &[third]), "two were read");
        assert!(tally.reads_old(agent, &[third]), "and are said one after the other");
        assert!(!tally.reads_old(agent, &[third]), "a third is new");
        assert!(tally.reads_old(agent, &[]));
        assert!(!tally.reads_old(agent, &[]) && !tally.reads_old(other, &[]));
    }

    #[test]
    fn a_question_that_nobody_asks_any_more_is_not_open() {
        let mut tally = Tally::new(SessionId::new(Uuid::from_u128(1)), 0);
        let plan = PlanId::new(Uuid::from_u128(2));
        let [open, other] = [3, 4].map(|number| QuestionId::new(Uuid::from_u128(number)));
        tally.plan(plan, &Event::PlanAsked(PlanAsked { question: open, about: About::Rest }));
        tally.plan(plan, &Event::PlanUnasked(PlanUnasked { questions: vec![other], replaced_by: None }));
        assert_eq!(tally.plans, [(plan, Some(open), None)]);
        tally.plan(plan, &Event::PlanUnasked(PlanUnasked { questions: vec![other, open], replaced_by: None }));
        assert_eq!(tally.plans, [(plan, None, None)]);
    }
}
