//! The state of a session, folded from its events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Interrupted};
use crate::id::{AgentId, EnvelopeId, PlanId, QuestionId};
use crate::interrupt::Hold;
use crate::message::MessageKind;

/// Which agents work, ask, or were stopped and have begun nothing since, and which teammates are still to begin.
///
/// It follows from the events of each agent since its last turn began, so that a reader that begins in the middle of the log has
/// the same state as one that read from the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Stops that are older do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    since_ms: i64,
    /// Agents that work or were stopped, in the order in which that began.
    agents: Vec<AgentState>,
    /// Teammates that a frontend asked for and that have not begun, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    joining: Vec<String>,
    /// Questions without an answer.
    questions: BTreeMap<QuestionId, OpenQuestion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AgentState {
    agent: AgentId,
    name: String,
    #[serde(rename = "working")]
    is_working: bool,
    #[serde(rename = "stopped", default, skip_serializing_if = "Option::is_none")]
    hold: Option<Hold>,
}

/// A question without an answer: its asker, and the call that needs the answer, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct OpenQuestion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<PlanId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    call: String,
}

fn is_zero(at_ms: &i64) -> bool {
    *at_ms == 0
}

impl SessionStatus {
    /// Counts only stops from this time on.
    pub fn since(since_ms: i64) -> Self {
        Self { since_ms, ..Self::default() }
    }

    /// Takes in an event of an agent.
    pub fn apply(&mut self, agent: AgentId, name: &str, event: &Event) {
        match event {
            Event::TurnStarted(_) => {
                self.change(agent, name, |known| (known.is_working, known.hold) = (true, None));
                self.forget_questions(agent);
                self.has_begun(name);
            }
            Event::TurnEnded(_) => {
                self.agents.iter_mut().filter(|known| known.agent == agent).for_each(|known| known.is_working = false);
                self.agents.retain(|known| known.agent != agent || known.hold.is_some());
                self.forget_questions(agent);
            }
            // A model is called once all calls have their results.
            Event::LlmIntent(_) => self.forget_questions(agent),
            Event::QuestionAsked(asked) => {
                let question = OpenQuestion { agent: Some(agent), plan: None, call: asked.key.clone() };
                self.questions.insert(asked.question, question);
            }
            Event::QuestionAnswered(answered) => drop(self.questions.remove(&answered.question)),
            // The call has its result without an answer.
            Event::ToolDone(done) => self.questions.retain(|_, of| of.agent != Some(agent) || of.call != done.key),
            Event::Interrupted(Interrupted { held: Some(held), .. }) if self.counts(held) => {
                self.change(agent, name, |known| known.hold.get_or_insert_default().add(held));
                self.has_begun(name);
            }
            Event::AgentEnded(ended) => {
                self.agents.retain(|known| known.agent != agent);
                self.has_begun(&ended.name);
            }
            Event::MessageRefused(refused) if refused.kind == MessageKind::TeamRequest => self.joining.clear(),
            _ => {}
        }
    }

    /// Takes in an event of a plan.
    pub fn hear_plan(&mut self, plan: PlanId, event: &Event) {
        match event {
            Event::PlanAsked(asked) => {
                let question = OpenQuestion { plan: Some(plan), ..OpenQuestion::default() };
                self.questions.insert(asked.question, question);
            }
            Event::PlanAnswered(answered) => drop(self.questions.remove(&answered.question)),
            Event::PlanUnasked(unasked) => unasked.questions.iter().for_each(|of| drop(self.questions.remove(of))),
            Event::PlanEnded(_) => self.questions.retain(|_, of| of.plan != Some(plan)),
            _ => {}
        }
    }

    /// Changes an agent's state and lists it last.
    fn change(&mut self, agent: AgentId, name: &str, change: impl FnOnce(&mut AgentState)) {
        let at = self.agents.iter().position(|known| known.agent == agent);
        let new = || AgentState { agent, name: name.to_owned(), is_working: false, hold: None };
        let mut known = at.map_or_else(new, |at| self.agents.remove(at));
        change(&mut known);
        self.agents.push(known);
    }

    fn forget_questions(&mut self, agent: AgentId) {
        self.questions.retain(|_, of| of.agent != Some(agent));
    }

    fn has_begun(&mut self, name: &str) {
        self.joining.retain(|joining| joining != name);
    }

    /// A question was open before the first event.
    pub fn resume(&mut self, question: QuestionId, by: Option<AgentId>) {
        self.questions.entry(question).or_insert(OpenQuestion { agent: by, ..OpenQuestion::default() });
    }

    /// Whether a question of an agent has no answer, and the agent still waits for one.
    pub fn is_asked(&self, question: QuestionId) -> bool {
        self.questions.contains_key(&question)
    }

    /// Whether any question waits for an answer.
    pub fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    /// How many questions wait for an answer.
    pub fn questions(&self) -> usize {
        self.questions.len()
    }

    /// The names of the agents that are in a turn.
    pub fn working(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().filter(|known| known.is_working).map(|known| known.name.as_str())
    }

    /// Whether an agent works, a teammate is about to begin, or a question waits for a person: closing the session would interrupt
    /// something.
    pub fn is_busy(&self) -> bool {
        self.working().next().is_some() || self.is_joining() || self.has_questions()
    }

    /// Leaves out agents beyond a bound; whether there were any.
    pub fn truncate(&mut self, agents_max: usize) -> bool {
        let is_cut = self.agents.len() > agents_max;
        self.agents.truncate(agents_max);
        is_cut
    }

    /// Whether an agent waits for the answer to a question.
    pub fn is_asking(&self, agent: AgentId) -> bool {
        self.questions.values().any(|of| of.agent == Some(agent))
    }

    /// These teammates were asked for.
    pub fn expect(&mut self, names: impl IntoIterator<Item = String>) {
        self.joining.extend(names);
    }

    /// A teammate that was asked for was there already. Asked for twice, it is still expected once.
    pub fn unexpect(&mut self, name: &str) {
        let last = self.joining.iter().rposition(|joining| joining == name);
        last.into_iter().for_each(|last| drop(self.joining.remove(last)));
    }

    /// No teammate begins any more.
    pub fn expect_none(&mut self) {
        self.joining.clear();
    }

    /// Whether teammates are about to begin.
    pub fn is_joining(&self) -> bool {
        !self.joining.is_empty()
    }

    /// Messages to an agent were read or taken back. Returns how many of them a stop had left unread.
    pub fn release(&mut self, agent: AgentId, messages: &[EnvelopeId]) -> usize {
        let known = self.agents.iter_mut().find(|known| known.agent == agent);
        let Some(hold) = known.and_then(|known| known.hold.as_mut()) else { return 0 };
        let before = hold.envelopes.len();
        hold.envelopes.retain(|envelope| !messages.contains(envelope));
        before - hold.envelopes.len()
    }

    /// Whether a stop is new enough to count.
    pub fn counts(&self, hold: &Hold) -> bool {
        hold.at_ms >= self.since_ms
    }

    /// Whether an agent is in a turn.
    pub fn is_working(&self, agent: AgentId) -> bool {
        self.agents.iter().any(|known| known.agent == agent && known.is_working)
    }

    /// The hold of an agent that was stopped and has begun nothing since.
    pub fn hold(&self, agent: AgentId) -> Option<&Hold> {
        self.agents.iter().find(|known| known.agent == agent)?.hold.as_ref()
    }

    /// The agents that were stopped and have begun nothing since, with their names, in the order of their stops.
    pub fn stopped(&self) -> impl Iterator<Item = (AgentId, &str)> {
        let stopped = self.agents.iter().filter(|known| known.hold.is_some());
        stopped.map(|known| (known.agent, known.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::event::{TurnEnded, TurnOutcome, TurnStarted};
    use crate::id::{SessionId, TurnId};
    use crate::teammate::{AgentEnded, MessageRefused};

    fn agent(number: u128) -> AgentId {
        AgentId::new(Uuid::from_u128(number))
    }

    fn message(number: u128) -> EnvelopeId {
        EnvelopeId::new(Uuid::from_u128(number))
    }

    fn started() -> Event {
        let turn = TurnId::new(Uuid::from_u128(1));
        let value = json!({ "turn": turn, "envelope": message(9), "input": [] });
        Event::TurnStarted(serde_json::from_value::<TurnStarted>(value).unwrap())
    }

    fn ended() -> Event {
        let turn = TurnId::new(Uuid::from_u128(1));
        let value = json!({ "turn": turn, "end": TurnOutcome::Answered, "text": "", "charges": [] });
        Event::TurnEnded(serde_json::from_value::<TurnEnded>(value).unwrap())
    }

    fn stopped(at_ms: i64, envelopes: &[u128]) -> Event {
        let envelopes = envelopes.iter().map(|number| message(*number)).collect();
        let held = Some(Hold { envelopes, since: None, at_ms });
        Event::Interrupted(Interrupted { by: "user".into(), who: None, ends: false, held })
    }

    fn gone(name: &str) -> Event {
        let session = SessionId::new(Uuid::from_u128(2));
        let (by, reason) = ("max".to_owned(), String::new());
        Event::AgentEnded(AgentEnded { session, name: name.to_owned(), by, reason, forced: false })
    }

    fn refused() -> Event {
        let value = json!({ "letter": message(1), "from": "user/me", "kind": "team_request", "why": "x" });
        Event::MessageRefused(serde_json::from_value::<MessageRefused>(value).unwrap())
    }

    /// Events of `bob`, and then: whether he works, the unread messages of his hold, and whether a teammate `bob` is still to begin.
    #[test]
    fn events_give_working_stopped_and_starting_agents() {
        let table: [(&[Event], bool, Option<usize>, bool); 9] = [
            (&[], false, None, true),
            (&[started()], true, None, false),
            (&[started(), ended()], false, None, false),
            (&[stopped(5, &[1, 2])], false, Some(2), false),
            (&[started(), stopped(5, &[1]), ended()], false, Some(1), false),
            (&[stopped(5, &[1]), stopped(6, &[1, 2])], false, Some(2), false),
            (&[stopped(5, &[1]), started()], true, None, false),
            (&[stopped(4, &[1])], false, None, true),
            (&[refused()], false, None, false),
        ];
        for (number, (events, is_working, unread, joins)) in table.into_iter().enumerate() {
            let mut status = SessionStatus::since(5);
            status.expect(["bob".to_owned()]);
            events.iter().for_each(|event| status.apply(agent(1), "bob", event));
            let hold = status.hold(agent(1)).map(|hold| hold.envelopes.len());
            assert_eq!(
                (status.is_working(agent(1)), hold, status.is_joining()),
                (is_working, unread, joins),
                "{number}"
            );
        }
    }

    #[test]
    fn stops_are_listed_in_their_order_until_an_agent_begins_or_ends() {
        let mut status = SessionStatus::default();
        for (number, name) in [(1, "ann"), (2, "bob"), (3, "cat"), (1, "ann")] {
            status.apply(agent(number), name, &stopped(1, &[number]));
        }
        assert_eq!(status.stopped().map(|(_, name)| name).collect::<Vec<_>>(), ["bob", "cat", "ann"]);
        assert_eq!(
            (status.release(agent(2), &[message(2), message(7)]), status.release(agent(2), &[message(2)])),
            (1, 0)
        );
        status.apply(agent(2), "bob", &gone("bob"));
        status.apply(agent(3), "cat", &started());
        assert_eq!(status.stopped().map(|(_, name)| name).collect::<Vec<_>>(), ["ann"]);
    }

    /// Events of the agent that asked, or of another one, and then: whether the question is still open.
    #[test]
    fn a_question_is_open_until_its_answer_or_the_end_of_its_call_or_turn() {
        let question = QuestionId::new(Uuid::from_u128(5));
        let answered = json!({ "question_answered": { "question": question, "answer": { "allow": true, "by": { "person": "me" } } } });
        let done = |key: &str| json!({ "tool_done": { "key": key, "content": [], "is_error": false, "ending": "ran", "ms": 1 } });
        let event = |value: Value| serde_json::from_value::<Event>(value).unwrap();
        let table = [
            (1, event(answered), false, false),
            (1, event(done("1.0")), false, true),
            (1, event(done("1.1")), true, true),
            (2, event(done("1.0")), true, true),
            (1, ended(), false, false),
            (2, ended(), true, true),
        ];
        for (number, (by, event, heard, resumed)) in table.into_iter().enumerate() {
            let mut status = SessionStatus::default();
            let of = OpenQuestion { agent: Some(agent(1)), plan: None, call: "1.0".into() };
            status.questions.insert(question, of);
            status.apply(agent(by), "bob", &event);
            assert_eq!((status.is_asked(question), status.is_asking(agent(1))), (heard, heard), "{number}");
            let mut status = SessionStatus::default();
            status.resume(question, Some(agent(1)));
            status.apply(agent(by), "bob", &event);
            assert_eq!(status.is_asked(question), resumed, "{number} resumed");
        }
    }

    #[test]
    fn a_session_is_busy_while_an_agent_works_or_a_question_waits() {
        let (question, plan) = (QuestionId::new(Uuid::from_u128(5)), PlanId::new(Uuid::from_u128(6)));
        let mut status = SessionStatus::default();
        let event = |value: Value| serde_json::from_value::<Event>(value).unwrap();
        assert!(!status.is_busy());
        status.apply(agent(2), "bob", &started());
        assert!(status.is_busy() && !status.has_questions());
        assert_eq!(status.working().collect::<Vec<_>>(), ["bob"]);
        status.apply(agent(2), "bob", &ended());
        assert_eq!(status, SessionStatus::default());
        status.hear_plan(plan, &event(json!({ "plan_asked": { "question": question, "about": "proposal" } })));
        assert!(status.is_busy() && status.is_asked(question));
        let sent = serde_json::to_value(&status).unwrap();
        assert_eq!(serde_json::from_value::<SessionStatus>(sent).unwrap(), status);
        status.hear_plan(plan, &event(json!({ "plan_unasked": { "questions": [question] } })));
        assert!(!status.is_busy());
    }

    #[test]
    fn a_teammate_that_was_there_is_expected_once_less() {
        let mut status = SessionStatus::default();
        status.expect(["bob".to_owned(), "bob".to_owned()]);
        status.unexpect("bob");
        assert!(status.is_joining());
        status.unexpect("bob");
        assert!(!status.is_joining());
    }
}
