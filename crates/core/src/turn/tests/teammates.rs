//! Every order in which a shutdown, a plan's approval and mail can meet: a lead, a teammate and a user, each message read
//! at any time, a crash after any step.
//!
//! The deciding is the product's (`Turn`, `Requests`, `shutdown`); what is written here is only how a loop carries it out,
//! with one step per commit. Messages are read in any order, also where the journal keeps one.

use std::collections::HashSet;

use super::*;
use crate::limits::MAIL_WAITING_MAX;
use crate::message::{Assignment, Envelope, MessageKind};
use crate::teammate::requests::{Requested, Responded};
use crate::teammate::shutdown::{self, Shutdown};
use crate::teammate::{AgentEnded, Lifetime, MessageRefused, Teammate};

const LEAD: &str = "agent/lead";
const TEAMMATE: &str = "agent/mate";
const USER: &str = "user/me";
const DEADLINE_MS: i64 = 100;

/// What the three of them may still do by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Will {
    /// The lead asks for an end.
    asks: u8,
    /// The teammate's model says no, if it is asked.
    rejects: u8,
    /// Words that the lead writes.
    words: u8,
    /// The lead answers about the plan.
    lead_answers: u8,
    /// The user does.
    user_answers: u8,
    /// The user ends it.
    user_ends: u8,
    crashes: u8,
}

#[derive(Clone)]
struct Team {
    lead: Vec<Event>,
    teammate: Vec<Event>,
    lead_turn: Turn,
    teammate_turn: Turn,
    /// The mailboxes of both.
    mail: Vec<Envelope>,
    at_ms: i64,
    next: u128,
    question: Option<QuestionId>,
    will: Will,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Read(usize),
    Ask,
    Reject,
    Write,
    LeadAnswers,
    UserAnswers,
    UserEnds,
    /// The model of the teammate has nothing more to say.
    Finish,
    /// The deadline is over, and the lead sees it.
    Late,
    Crash,
}

fn started(assignment: Option<Assignment>) -> Event {
    Event::AgentStarted(AgentStarted {
        agent: AgentId::new(id(1)),
        session: SessionId::new(id(2)),
        definition: Definition { name: "general".into(), ..Definition::default() }.into(),
        assignment: assignment.map(Arc::new),
        settings: Some(Settings::new(model("m")).into()),
    })
}

/// The request that an event makes.
fn asked(event: &Event) -> Option<EnvelopeId> {
    if let Event::Requested(asked) = event { Some(asked.request) } else { None }
}

fn folded(log: &[Event]) -> Turn {
    let mut turn = Turn::new();
    log.iter().for_each(|event| turn.apply(event));
    turn
}

impl Team {
    /// A teammate that was given something, and has put a plan before its lead if it is to.
    fn new(will: Will, plans: bool) -> Self {
        let life = Lifetime::Teammate(Box::new(Teammate { name: "ann".into(), ..Teammate::default() }));
        let given = Assignment { reply_to: LEAD.into(), life, attempt: 1, ..Assignment::default() };
        let (lead, teammate) = (vec![started(None)], vec![started(Some(given))]);
        let (lead_turn, teammate_turn) = (folded(&lead), folded(&teammate));
        let (mail, at_ms) = (Vec::new(), 0);
        let mut team = Self { lead, teammate, lead_turn, teammate_turn, mail, at_ms, next: 10, question: None, will };
        let first = team.envelope(LEAD, TEAMMATE, MessageKind::Text, None);
        team.begin(&first);
        if plans {
            let outcome = uses(&[("plan", json!({}))]);
            let action = Action { kind: ActionKind::Propose, ..Action::read("plan") };
            let prepared = vec![PreparedCall { key: call_key(1, 0), found: Ok((action, Repeatability::Pure)) }];
            team.decide(TurnInput::ModelEnded {
                call: (1, 1),
                outcome,
                ms: 1,
                streamed: PartialAnswer::default(),
                prepared,
            });
            team.question = team.teammate.iter().find_map(|event| match event {
                Event::QuestionAsked(asked) => Some(asked.question),
                _ => None,
            });
            assert!(team.question.is_some(), "{:?}", team.teammate);
        }
        team
    }

    fn envelope(&mut self, from: &str, to: &str, kind: MessageKind, reply_to: Option<EnvelopeId>) -> Envelope {
        self.next += 1;
        let body = json!({ "end": kind == MessageKind::Shutdown });
        let (id, cause, sent_at_ms) = (EnvelopeId::new(id(self.next)), None, self.at_ms);
        Envelope { id, from: from.into(), to: to.into(), kind, body, reply_to, cause, sent_at_ms, hops: 0 }
    }

    fn send(&mut self, from: &str, to: &str, kind: MessageKind, reply_to: Option<EnvelopeId>) -> EnvelopeId {
        let envelope = self.envelope(from, to, kind, reply_to);
        self.mail.push(envelope.clone());
        envelope.id
    }

    fn ack(&mut self, envelope: EnvelopeId) {
        self.mail.retain(|known| known.id != envelope);
    }

    fn commit_teammate(&mut self, events: Vec<Event>) {
        events.iter().for_each(|event| self.teammate_turn.apply(event));
        self.teammate.extend(events);
    }

    fn commit_lead(&mut self, events: Vec<Event>) {
        events.iter().for_each(|event| self.lead_turn.apply(event));
        self.lead.extend(events);
    }

    fn decide(&mut self, input: TurnInput) {
        let frame = PromptRef {
            instructions: Hash::default(),
            tools: Hash::default(),
            settings: Hash::default(),
            bytes: 1_000,
        };
        let now = TurnEnv {
            at_ms: self.at_ms,
            jitter: 0,
            fresh: id(1_000 + self.teammate.len() as u128),
            frame,
            compact: frame,
            facts: String::new(),
            left: RemainingBudget::default(),
            later: RemainingBudget::default(),
            steer: None,
        };
        self.commit_teammate(self.teammate_turn.decide(input, &now));
    }

    fn begin(&mut self, message: &Envelope) {
        self.decide(TurnInput::Begin {
            turn: TurnId::new(message.id.uuid()),
            envelope: message.id,
            input: vec![Part::text("work")],
            assignment: self.teammate_turn.first_assignment().cloned().map(Arc::new),
            recall: None,
            rewound: Vec::new(),
            envelopes: Vec::new(),
            quiet: false,
            hops: 0,
        });
    }

    fn steps(&self) -> Vec<Step> {
        let will = &self.will;
        let busy = self.teammate_turn.is_busy();
        let asked_to_end = self.mail.iter().any(|envelope| envelope.kind == MessageKind::ShutdownRequest);
        let asks = !self.lead_turn.requests().is_asked(MessageKind::ShutdownRequest, TEAMMATE);
        let mut steps: Vec<Step> = (0..self.mail.len()).map(Step::Read).collect();
        for (step, can) in [
            (Step::Ask, will.asks > 0 && asks),
            (Step::Reject, will.rejects > 0 && asked_to_end && self.teammate_turn.calling().is_some()),
            (Step::Write, will.words > 0),
            (Step::LeadAnswers, will.lead_answers > 0),
            (Step::UserAnswers, will.user_answers > 0),
            (Step::UserEnds, will.user_ends > 0),
            (Step::Finish, busy && self.teammate_turn.calling().is_some()),
            (Step::Late, self.lead_turn.requests().next_ms().is_some()),
            (Step::Crash, will.crashes > 0),
        ] {
            if can {
                steps.push(step);
            }
        }
        steps
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Read(at) => self.read(self.mail[at].clone()),
            Step::Ask => {
                self.will.asks -= 1;
                let request = self.send(LEAD, TEAMMATE, MessageKind::ShutdownRequest, None);
                let until_ms = self.at_ms + DEADLINE_MS;
                let asked = Requested { request, kind: MessageKind::ShutdownRequest, to: TEAMMATE.into(), until_ms };
                self.commit_lead(vec![Event::Requested(asked)]);
            }
            Step::Reject => {
                self.will.rejects -= 1;
                let asked = self
                    .mail
                    .iter()
                    .find(|envelope| envelope.kind == MessageKind::ShutdownRequest)
                    .map(|envelope| envelope.id);
                self.send(TEAMMATE, LEAD, MessageKind::ShutdownRejected, asked);
                asked.into_iter().for_each(|asked| self.ack(asked));
            }
            Step::Write => {
                self.will.words -= 1;
                self.send(LEAD, TEAMMATE, MessageKind::Text, None);
            }
            Step::LeadAnswers => {
                self.will.lead_answers -= 1;
                self.send(LEAD, TEAMMATE, MessageKind::PlanApprovalResponse, None);
            }
            Step::UserAnswers => {
                self.will.user_answers -= 1;
                self.send(USER, TEAMMATE, MessageKind::PermissionResponse, None);
            }
            Step::UserEnds => {
                self.will.user_ends -= 1;
                self.send(USER, TEAMMATE, MessageKind::Shutdown, None);
            }
            Step::Finish => self.finish(),
            Step::Late => {
                self.at_ms = self.at_ms.max(self.lead_turn.requests().next_ms().unwrap_or_default());
                for asked in self.lead_turn.requests().overdue(self.at_ms).cloned().collect::<Vec<_>>() {
                    let over = Responded { request: asked.request, kind: None, envelope: None, reason: String::new() };
                    self.commit_lead(vec![Event::Responded(over)]);
                    self.send(LEAD, TEAMMATE, MessageKind::Shutdown, Some(asked.request));
                }
            }
            Step::Crash => {
                self.will.crashes -= 1;
                (self.lead_turn, self.teammate_turn) = (folded(&self.lead), folded(&self.teammate));
                self.decide(TurnInput::Recovered);
                self.end_stopped();
            }
        }
    }

    /// The model answers; or, if it was stopped, it is cut off.
    fn finish(&mut self) {
        let Some(intent) = self.teammate_turn.calling() else { return };
        let call = (intent.call, intent.attempt);
        let outcome = match self.teammate_turn.stopped_by() {
            Some(_) => LlmOutcome::Cancelled { partial: String::new(), usage: Usage::default() },
            None => says("done"),
        };
        self.decide(TurnInput::ModelEnded {
            call,
            outcome,
            ms: 1,
            streamed: PartialAnswer::default(),
            prepared: Vec::new(),
        });
        self.run();
    }

    /// What runs by itself after a decision: a plan that was approved is told to its author, who goes on.
    fn run(&mut self) {
        while let Some(TurnEffect::RunTool { key, .. }) = self.teammate_turn.pending().into_iter().next() {
            let content = vec![Part::text("ran")];
            self.decide(TurnInput::ToolEnded {
                key,
                content,
                is_error: false,
                ending: ToolOutcome::Ran,
                fatal: None,
                ms: 1,
            });
        }
    }

    /// A turn that was stopped before anything of it was under way ends.
    fn end_stopped(&mut self) {
        if matches!(self.teammate_turn.pending().as_slice(), [TurnEffect::CancelAll]) {
            self.finish();
        }
    }

    fn refuse(&mut self, envelope: &Envelope, why: &str) {
        let (why, from) = (why.to_owned(), envelope.from.clone());
        let refused = Event::MessageRefused(MessageRefused { envelope: envelope.id, from, kind: envelope.kind, why });
        if envelope.to == TEAMMATE {
            self.commit_teammate(vec![refused])
        } else {
            self.commit_lead(vec![refused])
        }
        self.ack(envelope.id);
    }

    fn read(&mut self, envelope: Envelope) {
        match (envelope.to.as_str(), envelope.kind) {
            (LEAD, MessageKind::ShutdownApproved | MessageKind::ShutdownRejected) => {
                match self.lead_turn.requests().respond(&envelope) {
                    Ok(responded) => {
                        self.commit_lead(vec![Event::Responded(responded)]);
                        self.ack(envelope.id);
                    }
                    Err(why) => self.refuse(&envelope, why),
                }
            }
            (LEAD, _) => self.ack(envelope.id),
            (_, kind) if self.teammate_turn.agent_end().is_some() => {
                self.give_back(&envelope, kind);
                self.ack(envelope.id);
            }
            (_, MessageKind::ShutdownRequest | MessageKind::Shutdown) => self.part(&envelope),
            (_, MessageKind::PlanApprovalResponse | MessageKind::PermissionResponse) => {
                let question = self.question.unwrap();
                match self.teammate_turn.answer_error(question, &envelope) {
                    Some(why) => self.refuse(&envelope, why),
                    None => {
                        let answer = PermissionAnswer::new(true, DecidedBy::Person("here".into()));
                        self.decide(TurnInput::Answered { question, answer });
                        self.ack(envelope.id);
                        self.run();
                    }
                }
            }
            _ if self.teammate_turn.is_busy() => {}
            _ => {
                self.begin(&envelope);
                self.ack(envelope.id);
            }
        }
    }

    fn give_back(&mut self, envelope: &Envelope, kind: MessageKind) {
        if shutdown::returns_to_sender(kind) {
            self.send(TEAMMATE, &envelope.from, MessageKind::Undelivered, Some(envelope.id));
        }
    }

    fn part(&mut self, envelope: &Envelope) {
        assert_eq!(shutdown::shutdown_error(envelope, self.teammate_turn.teammate().is_some(), LEAD), None);
        match shutdown::shutdown_time(envelope, self.teammate_turn.is_busy(), self.teammate_turn.stopped_by().is_some())
        {
            Shutdown::Later => {}
            Shutdown::Stopping => {
                self.decide(TurnInput::Interrupt { by: envelope.from.as_str().into() });
                self.end_stopped();
            }
            Shutdown::Now => {
                let forced = envelope.kind == MessageKind::Shutdown;
                let (name, by, reason) = ("ann".into(), envelope.from.clone(), String::new());
                let session = SessionId::new(id(2));
                self.commit_teammate(vec![Event::AgentEnded(AgentEnded { session, name, by, reason, forced })]);
                if !forced {
                    self.send(TEAMMATE, &envelope.from, MessageKind::ShutdownApproved, Some(envelope.id));
                }
                for waiting in self.mail.clone().into_iter().filter(|waiting| waiting.to == TEAMMATE) {
                    self.give_back(&waiting, waiting.kind);
                    self.ack(waiting.id);
                }
            }
        }
    }

    /// What decides what can still happen, whatever ids its messages have.
    fn key(&self) -> String {
        let requests: Vec<EnvelopeId> = self.lead.iter().filter_map(asked).collect();
        let outcome = |request: &EnvelopeId| {
            self.lead.iter().find_map(|event| match event {
                Event::Responded(responded) if responded.request == *request => Some(responded.kind),
                _ => None,
            })
        };
        let place = |envelope: EnvelopeId| requests.iter().position(|request| *request == envelope);
        let mut mail: Vec<String> = self
            .mail
            .iter()
            .map(|envelope| {
                let answers = envelope.reply_to.and_then(place);
                format!("{}{:?}{:?}{answers:?}{}", envelope.to, envelope.kind, place(envelope.id), envelope.from)
            })
            .collect();
        mail.sort_unstable();
        let turn = &self.teammate_turn;
        let asks = self.question.is_some_and(|question| turn.asked_action(question).is_some());
        let outcomes: Vec<_> = requests.iter().map(outcome).collect();
        let begun = self.teammate.iter().filter(|event| matches!(event, Event::TurnStarted(_))).count();
        let (calls, stopped, gone) =
            (turn.calling().is_some(), turn.stopped_by().is_some(), turn.agent_end().is_some());
        format!("{:?}{outcomes:?}{mail:?}{asks}{}{calls}{stopped}{gone}{begun}", self.will, turn.is_busy())
    }

    /// What holds after every step.
    fn check(&self) {
        let same = |turn: &Turn, log: &[Event]| {
            serde_json::to_value(turn).unwrap() == serde_json::to_value(folded(log)).unwrap()
        };
        assert!(
            same(&self.lead_turn, &self.lead) && same(&self.teammate_turn, &self.teammate),
            "a crash changes nothing"
        );
        let count = |log: &[Event], name: &str| log.iter().filter(|event| event.name() == name).count();
        assert!(count(&self.teammate, "agent_ended") <= 1);
        assert!(count(&self.teammate, "question_answered") <= 1, "a question has one answer");
        if let Some(at) = self.teammate.iter().position(|event| matches!(event, Event::AgentEnded(_))) {
            let after = &self.teammate[at + 1..];
            assert!(after.iter().all(|event| matches!(event, Event::MessageRefused(_))), "{after:?}");
        }
        for request in self.lead.iter().filter_map(asked) {
            let outcomes = self
                .lead
                .iter()
                .filter(|event| matches!(event, Event::Responded(responded) if responded.request == request));
            let is_open = self.lead_turn.requests().open().iter().any(|open| open.request == request);
            assert_eq!(outcomes.count() + usize::from(is_open), 1, "a request has one outcome");
        }
    }

    /// What holds when nothing is left to do.
    fn check_rest(&self, words: &HashSet<EnvelopeId>) {
        assert!(self.mail.is_empty(), "{:?}", self.mail);
        assert!(self.lead_turn.requests().open().is_empty());
        assert!(!self.teammate_turn.is_busy(), "nobody is at work or waits");
        let ends = self.lead.iter().filter_map(|event| match event {
            Event::Responded(responded) => Some(responded.kind),
            _ => None,
        });
        let is_gone = self.teammate_turn.agent_end().is_some();
        for kind in ends {
            assert!(
                kind == Some(MessageKind::ShutdownRejected) || is_gone,
                "what was asked for and not refused has happened"
            );
        }
        for envelope in words {
            let begun = self
                .teammate
                .iter()
                .filter(|event| matches!(event, Event::TurnStarted(started) if started.envelope == *envelope));
            assert!(begun.count() == 1 || is_gone, "words are read once, or come back");
        }
    }
}

/// Tries every order; how many states there are.
fn explore(first: Team) -> usize {
    let (mut seen, mut open) = (HashSet::from([first.key()]), vec![(first, HashSet::new(), HashSet::new())]);
    while let Some((team, words, returned)) = open.pop() {
        let mut rests = true;
        for step in team.steps() {
            let (mut next, mut words, mut returned) = (team.clone(), words.clone(), returned.clone());
            next.step(step);
            for envelope in &next.mail {
                if envelope.kind == MessageKind::Text {
                    words.insert(envelope.id);
                }
                if envelope.kind == MessageKind::Undelivered {
                    returned.extend(envelope.reply_to);
                }
            }
            let read =
                |event: &Event| matches!(event, Event::TurnStarted(started) if returned.contains(&started.envelope));
            assert!(!next.teammate.iter().any(read), "what has come back was not read");
            let key = next.key();
            rests &= key == team.key();
            if seen.insert(key) {
                next.check();
                open.push((next, words, returned));
            }
        }
        if rests {
            team.check_rest(&words);
            let read = |envelope: &EnvelopeId| {
                team.teammate
                    .iter()
                    .any(|event| matches!(event, Event::TurnStarted(started) if started.envelope == *envelope))
            };
            assert!(words.iter().all(|envelope| read(envelope) || returned.contains(envelope)), "no letter is lost");
        }
    }
    seen.len()
}

const NOTHING: Will =
    Will { asks: 0, rejects: 0, words: 0, lead_answers: 0, user_answers: 0, user_ends: 0, crashes: 1 };

#[test]
fn a_shutdown_has_one_outcome_in_every_order() {
    let asked = explore(Team::new(Will { asks: 2, rejects: 2, words: 1, ..NOTHING }, false));
    let ended = explore(Team::new(Will { asks: 1, rejects: 1, words: 1, user_ends: 1, ..NOTHING }, false));
    assert!(asked > 200 && ended > 200, "{asked} and {ended} states");
}

#[test]
fn a_plan_has_one_answer_in_every_order() {
    let answered = explore(Team::new(Will { lead_answers: 2, user_answers: 2, words: 1, ..NOTHING }, true));
    let ended = explore(Team::new(Will { asks: 1, lead_answers: 1, user_answers: 1, user_ends: 1, ..NOTHING }, true));
    assert!(answered > 100 && ended > 200, "{answered} and {ended} states");
}

/// A row has it: a stored state says what its own log says.
#[test]
fn a_session_stop_holds_an_idle_teammate_and_is_not_stored_in_its_state() {
    let life = Lifetime::Teammate(Box::new(Teammate { name: "ann".into(), ..Teammate::default() }));
    let mut turn = folded(&[started(Some(Assignment { reply_to: LEAD.into(), life, ..Assignment::default() }))]);
    let kept = serde_json::to_value(&turn).unwrap();
    let since = Some(TurnId::new(id(9)));
    turn.hold_idle(since);
    assert_eq!(turn.held().and_then(|held| held.since), since);
    assert_eq!(serde_json::to_value(&turn).unwrap(), kept);
}

/// Only those that may still lie in the mailbox matter.
#[test]
fn refused_messages_are_remembered_within_a_bound() {
    let envelope = |number: usize| EnvelopeId::new(id(u128::try_from(number).unwrap()));
    let refused = |number: usize| {
        let kind = MessageKind::TeamRequest;
        Event::MessageRefused(MessageRefused {
            envelope: envelope(number),
            from: "user/a".into(),
            kind,
            why: String::new(),
        })
    };
    let mut events = vec![started(None)];
    events.extend((0..=MAIL_WAITING_MAX).map(refused));
    let turn = folded(&events);
    assert!(!turn.has_refused(envelope(0)));
    assert!((1..=MAIL_WAITING_MAX).all(|number| turn.has_refused(envelope(number))));
}
