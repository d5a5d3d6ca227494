//! How a teammate's turn comes to rest, and what it then owes its lead.

use super::*;
use crate::limits::REPEATS_DELEGATED_MAX;
use crate::message::Assignment;
use crate::teammate::report::TurnTrigger;
use crate::teammate::{Lifetime, Teammate};

const LEAD: &str = "agent/lead";

/// A teammate whose models say one thing after the other.
struct RestingTeammate {
    turn: Turn,
    log: Vec<Event>,
    calls: u32,
}

impl RestingTeammate {
    fn new() -> Self {
        let life = Lifetime::Teammate(Box::new(Teammate { name: "ann".into(), ..Teammate::default() }));
        let given = Assignment { reply_to: LEAD.into(), life, attempt: 1, ..Assignment::default() };
        let started = Event::AgentStarted(AgentStarted {
            agent: AgentId::new(id(1)),
            session: SessionId::new(id(2)),
            definition: Definition { name: "general".into(), ..Definition::default() }.into(),
            assignment: Some(Arc::new(given)),
            settings: Some(Settings { rounds_max: 100, ..Settings::new(model("m")) }.into()),
        });
        let mut teammate = Self { turn: Turn::new(), log: Vec::new(), calls: 0 };
        teammate.commit(vec![started]);
        teammate
    }

    fn commit(&mut self, events: Vec<Event>) {
        events.iter().for_each(|event| self.turn.apply(event));
        self.log.extend(events);
    }

    fn decide(&mut self, input: TurnInput) {
        let none = Hash::default();
        let frame = PromptRef { instructions: none, tools: none, settings: none, bytes: 1_000 };
        let (left, fresh) = (RemainingBudget::default(), id(1_000 + self.log.len() as u128));
        let (facts, later) = (String::new(), left);
        let now = TurnEnv { at_ms: 0, jitter: 0, fresh, frame, compact: frame, facts, left, later, steer: None };
        self.commit(self.turn.decide(input, &now));
    }

    fn begin(&mut self, trigger: TurnTrigger) {
        let engaged = self.turn.first_assignment().cloned().unwrap();
        let reply_to = if trigger == TurnTrigger::User { "user/me".to_owned() } else { engaged.reply_to.clone() };
        let number = id(10 + self.log.len() as u128);
        self.decide(TurnInput::Begin {
            turn: TurnId::new(number),
            envelope: EnvelopeId::new(number),
            input: vec![Part::text("work")],
            assignment: Some(Assignment { reply_to, ..engaged }.into()),
            recall: None,
            rewound: Vec::new(),
            envelopes: Vec::new(),
            quiet: trigger == TurnTrigger::Colleague,
            hops: 0,
        });
        assert_eq!(self.turn.trigger(), Some(trigger));
    }

    /// The model says this, and each of its calls comes to the words.
    fn hears(&mut self, outcome: LlmOutcome, came_to: &str) {
        self.calls += 1;
        let call = (self.calls, 1);
        self.decide(TurnInput::ModelEnded {
            call,
            outcome,
            ms: 1,
            streamed: PartialAnswer::default(),
            prepared: Vec::new(),
        });
        let key = call_key(self.calls, 0);
        if self.turn.call(&key).is_none() {
            return;
        }
        let action = Action { kind: ActionKind::Team, ..Action::read("bob") };
        self.decide(TurnInput::Prepared(vec![PreparedCall {
            key: key.clone(),
            found: Ok((action, Repeatability::Pure)),
        }]));
        let (content, ending) = (vec![Part::text(came_to)], ToolOutcome::Ran);
        self.decide(TurnInput::ToolEnded { key, content, is_error: false, ending, fatal: None, ms: 1 });
    }

    fn end(&self) -> Option<&TurnOutcome> {
        let Some(Event::TurnEnded(ended)) = self.log.last() else { return None };
        Some(&ended.end)
    }
}

fn writes(to: &str, wait: bool) -> LlmOutcome {
    uses(&[("send_message", json!({ "to": to, "message": "x", "wait": wait }))])
}

#[test]
fn a_message_that_waits_for_its_answer_ends_the_turn() {
    let mut teammate = RestingTeammate::new();
    teammate.begin(TurnTrigger::Lead);
    teammate.hears(writes("bob", true), "Sent.");
    assert_eq!(teammate.end(), Some(&TurnOutcome::Answered));
    let mut teammate = RestingTeammate::new();
    teammate.begin(TurnTrigger::Lead);
    teammate.hears(writes("bob", false), "Sent.");
    assert_eq!(teammate.end(), None, "it has more to do");
    teammate.hears(says(""), "");
    assert_eq!(teammate.end(), Some(&TurnOutcome::Answered), "nothing is left to say");
}

#[test]
fn a_teammate_that_waits_for_its_first_message_is_asked_for_nothing() {
    let mut teammate = RestingTeammate::new();
    teammate.begin(TurnTrigger::Lead);
    teammate.hears(says("WAIT"), "");
    assert_eq!((teammate.end(), teammate.turn.owes_report()), (Some(&TurnOutcome::Answered), true));
}

#[test]
fn a_teammate_owes_its_lead_an_answer_while_it_waits_for_colleagues() {
    let mut teammate = RestingTeammate::new();
    teammate.begin(TurnTrigger::Lead);
    assert!(teammate.turn.owes_report());
    teammate.hears(writes("bob", true), "Sent.");
    assert!(teammate.turn.owes_report(), "it waits for bob");
    teammate.begin(TurnTrigger::User);
    assert!(teammate.turn.owes_report(), "whichever message begins the next turn");
    teammate.hears(says("Decided."), "");
    assert!(!teammate.turn.owes_report());
    teammate.begin(TurnTrigger::User);
    teammate.hears(says("Hello."), "");
    assert!(!teammate.turn.owes_report(), "the user's own words are no task of the lead's");
    teammate.begin(TurnTrigger::Lead);
    teammate.hears(writes("lead", false), "Sent.");
    teammate.hears(says("Done."), "");
    assert!(!teammate.turn.owes_report(), "it wrote to its lead only");
}

#[test]
fn a_turn_for_others_ends_after_the_same_call_with_the_same_result() {
    let look = || uses(&[("task_query", json!({}))]);
    let mut teammate = RestingTeammate::new();
    teammate.begin(TurnTrigger::Lead);
    for _ in 0..REPEATS_DELEGATED_MAX {
        assert_eq!(teammate.end(), None);
        teammate.hears(look(), "nothing");
    }
    assert_eq!(teammate.end(), Some(&TurnOutcome::Looping));
    let mut teammate = RestingTeammate::new();
    teammate.begin(TurnTrigger::Lead);
    for number in 0..REPEATS_DELEGATED_MAX * 2 {
        teammate.hears(look(), &format!("{number} s"));
    }
    assert_eq!(teammate.end(), None, "what it finds changes");
}
