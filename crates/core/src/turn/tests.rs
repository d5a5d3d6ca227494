//! Whole turns against a scripted model and scripted tools, with a crash at every boundary.

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::agent::{Model, WorkSettings};
use crate::chat::{self, PartialAnswer, StopReason, Usage};
use crate::event::{AgentStarted, Event, ToolDone, ToolOutcome, TurnOutcome};
use crate::ledger::Price;
use crate::limits::{NUDGES_MAX, REPEATS_MAX};
use crate::policy::{ActionKind, DecidedBy, Mode};
use crate::recovery::Failure;

mod answers;
mod apart;
mod bills;
mod compact;
mod endings;
mod inbox;
mod merge;
mod past;
mod rest;
mod status;
mod steer;
mod teammates;
mod unknown;

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn model(name: &str) -> Model {
    Model {
        provider: "p".into(),
        name: name.into(),
        context_tokens: 100_000,
        max_tokens: 4_096,
        thinking_tokens: 0,
        price: Some(Price { input: 1_000, output: 5_000, cache_read: 100, cache_write: 1_250 }),
    }
}

fn answer(parts: Vec<Part>, stop: StopReason) -> LlmOutcome {
    LlmOutcome::Done(chat::Answer {
        message: Message::assistant(parts),
        stop,
        usage: Usage { input: 100, output: 10, ..Usage::default() },
        request_id: None,
        model: "m".into(),
    })
}

fn says(text: &str) -> LlmOutcome {
    answer(vec![Part::text(text)], StopReason::EndTurn)
}

fn uses(tools: &[(&str, Value)]) -> LlmOutcome {
    let part = |(n, (name, input)): (usize, &(&str, Value))| Part::ToolUse {
        id: format!("t{n}"),
        name: (*name).into(),
        input: input.clone().into(),
    };
    answer(tools.iter().enumerate().map(part).collect(), StopReason::ToolUse)
}

fn fails(failure: Failure) -> LlmOutcome {
    LlmOutcome::Failed { failure, detail: "d".into(), retry_at_ms: None, parked: false }
}

/// A world in which the model answers by call number and the tools keep a ledger of what they did.
struct World {
    log: Vec<Event>,
    turn: Turn,
    at_ms: i64,
    script: Vec<LlmOutcome>,
    /// Attempts seen per model call.
    model_calls: Vec<u32>,
    /// Keys of writes that happened.
    wrote: Vec<String>,
    answers: Vec<(bool, bool)>,
    /// Stop (as if killed) when the log has this many entries.
    crash_at: Option<usize>,
    /// What the team has left, now and later.
    left: (RemainingBudget, RemainingBudget),
    /// What the user says meanwhile.
    steer: Option<Steered>,
}

struct Killed;

impl World {
    fn new(script: Vec<LlmOutcome>) -> Self {
        Self::with(Settings::new(model("m")), script)
    }

    fn with(settings: Settings, script: Vec<LlmOutcome>) -> Self {
        let definition =
            Definition { name: "solo".into(), role: "r".into(), prompt: "p".into(), ..Definition::default() };
        let started = AgentStarted {
            agent: AgentId::new(id(1)),
            session: SessionId::new(id(2)),
            definition: definition.into(),
            assignment: None,
            settings: None,
        };
        let mut world = Self {
            log: Vec::new(),
            turn: Turn::new(),
            at_ms: 0,
            script,
            model_calls: Vec::new(),
            wrote: Vec::new(),
            answers: Vec::new(),
            crash_at: None,
            left: Default::default(),
            steer: None,
        };
        let _ = world.commit(vec![Event::AgentStarted(started)]);
        let _ = world.input(TurnInput::Configure(settings.into()));
        world
    }

    fn commit(&mut self, events: Vec<Event>) -> Result<(), Killed> {
        for event in &events {
            self.turn.apply(event);
        }
        if events.iter().any(|event| matches!(event, Event::Steered(_))) {
            self.steer = None;
        }
        self.log.extend(events);
        if self.crash_at.is_some_and(|at| self.log.len() >= at) { Err(Killed) } else { Ok(()) }
    }

    fn input(&mut self, input: TurnInput) -> Result<(), Killed> {
        let frame = PromptRef {
            instructions: Hash::default(),
            tools: Hash::default(),
            settings: Hash::default(),
            bytes: 1_000,
        };
        let now = TurnEnv {
            at_ms: self.at_ms,
            jitter: 0,
            fresh: id(1_000 + self.log.len() as u128),
            frame,
            compact: frame,
            facts: "- `b` changed".into(),
            steer: self.steer.clone(),
            left: self.left.0,
            later: self.left.1,
        };
        self.commit(self.turn.decide(input, &now))
    }

    fn begin(&mut self) -> Result<(), Killed> {
        self.input(TurnInput::Begin {
            turn: TurnId::new(id(3)),
            envelope: EnvelopeId::new(id(4)),
            input: vec![Part::text("hello")],
            assignment: None,
            recall: None,
            rewound: Vec::new(),
            envelopes: Vec::new(),
            quiet: false,
            hops: 0,
        })
    }

    /// Runs what is pending until the turn is idle.
    fn run(&mut self) -> Result<(), Killed> {
        while let Some(effect) = self.turn.pending().into_iter().next() {
            self.perform(effect)?;
        }
        Ok(())
    }

    fn perform(&mut self, effect: TurnEffect) -> Result<(), Killed> {
        match effect {
            TurnEffect::CallModel(intent) => {
                self.model_calls.push(intent.call);
                let next = self.model_calls.len() - 1;
                let outcome = self.script.get(next).cloned().unwrap_or_else(|| says("done"));
                self.input(TurnInput::ModelEnded {
                    call: (intent.call, intent.attempt),
                    outcome,
                    ms: 1,
                    streamed: PartialAnswer::default(),
                    prepared: Vec::new(),
                })
            }
            TurnEffect::Prepare(keys) => {
                let found = keys.into_iter().map(|key| self.look(key)).collect::<Vec<_>>();
                let stop = found.iter().position(|one| matches!(one.found, Ok((_, Repeatability::Idempotent))));
                let upto = stop.map_or(found.len(), |index| index + 1);
                self.input(TurnInput::Prepared(found[..upto].to_vec()))
            }
            TurnEffect::RunTool { key, action, .. } => {
                if action.kind == ActionKind::Write && !self.wrote.contains(&key) {
                    self.wrote.push(key.clone());
                }
                let content = vec![Part::text(format!("ran {key}"))];
                self.input(TurnInput::ToolEnded {
                    key,
                    content,
                    is_error: false,
                    ending: ToolOutcome::Ran,
                    fatal: None,
                    ms: 1,
                })
            }
            TurnEffect::Ask { question, .. } => {
                let (allow, always) = self.answers.pop().unwrap_or((true, false));
                let answer =
                    PermissionAnswer { always, ..PermissionAnswer::new(allow, DecidedBy::Person("here".into())) };
                self.input(TurnInput::Answered { question, answer })
            }
            TurnEffect::Afford => self.input(TurnInput::Woke),
            TurnEffect::Sleep { until_ms } => {
                self.at_ms = until_ms;
                self.input(TurnInput::Woke)
            }
            TurnEffect::CancelAll => panic!("nothing is in flight between two inputs"),
        }
    }

    fn look(&self, key: String) -> PreparedCall {
        let call = self.turn.call(&key).unwrap();
        let found = match call.tool.as_str() {
            STRUCTURED_OUTPUT if call.input["fits"] == false => Err(PrepareError::Told("it does not fit".into())),
            "read" | STRUCTURED_OUTPUT => Ok((Action::read("a"), Repeatability::Pure)),
            "linked" => Ok((Action { kind: ActionKind::ReadLinked, ..Action::read("l") }, Repeatability::Pure)),
            "write" => Ok((Action { kind: ActionKind::Write, ..Action::read("b") }, Repeatability::Idempotent)),
            "task_update" | "need_clarify" => {
                Ok((Action { kind: ActionKind::Team, ..Action::read("t") }, Repeatability::Pure))
            }
            "shell" => Ok((Action::read("c"), Repeatability::Opaque)),
            other => Err(PrepareError::Told(format!("there is no tool `{other}`"))),
        };
        PreparedCall { key, found }
    }

    fn refold(&mut self) {
        self.turn = Turn::new();
        for event in &self.log {
            self.turn.apply(event);
        }
        self.crash_at = None;
    }

    fn talk(mut self) -> Self {
        assert!(self.begin().is_ok() && self.run().is_ok());
        self
    }

    fn end(&self) -> &TurnOutcome {
        &self.turn.last().unwrap().end
    }

    fn dones(&self) -> Vec<&ToolDone> {
        self.log.iter().filter_map(|event| if let Event::ToolDone(done) = event { Some(done) } else { None }).collect()
    }
}

fn names(world: &World) -> Vec<&'static str> {
    world.log.iter().skip(2).map(Event::name).collect()
}

#[test]
fn an_answer_ends_the_turn() {
    let world = World::new(vec![says("hi")]).talk();
    assert_eq!(names(&world), ["turn_started", "llm_intent", "llm_ended", "turn_ended"]);
    assert_eq!(world.turn.last().unwrap().text, "hi");
    assert_eq!(world.turn.ledger().spent_nano, 100 * 1_000 + 10 * 5_000);
    assert_eq!(world.turn.ledger().reserved_nano, 0);
}

#[test]
fn looking_runs_side_by_side_and_changing_runs_alone() {
    let batch = [("read", json!({})), ("read", json!({"n": 1})), ("write", json!({})), ("read", json!({"n": 2}))];
    let mut world = World::new(vec![uses(&batch)]);
    assert!(world.begin().is_ok());
    let call = world.turn.pending().remove(0);
    assert!(world.perform(call).is_ok());
    let prepare = world.turn.pending().remove(0);
    assert_eq!(prepare, TurnEffect::Prepare(vec!["1.0".into(), "1.1".into(), "1.2".into(), "1.3".into()]));
    assert!(world.perform(prepare).is_ok());
    let kinds: Vec<String> = world.turn.pending().iter().map(|effect| format!("{effect:?}")).collect();
    assert_eq!(kinds.len(), 3, "{kinds:?}");
    assert!(kinds[0].starts_with("RunTool { key: \"1.0\"") && kinds[1].starts_with("RunTool { key: \"1.1\""));
    assert!(kinds[2].starts_with("Ask"), "the last read waits behind the write");
    assert!(world.run().is_ok());
    assert_eq!(world.wrote, ["1.2"]);
    assert_eq!(*world.end(), TurnOutcome::Answered);
}

#[test]
fn calls_that_were_looked_at_are_judged_with_their_answer() {
    let mut world = World::new(vec![]);
    assert!(world.begin().is_ok());
    let outcome = uses(&[("read", json!({})), ("fly", json!({}))]);
    let prepared = vec![
        PreparedCall { key: call_key(1, 0), found: Ok((Action::read("a"), Repeatability::Pure)) },
        PreparedCall { key: call_key(1, 1), found: Err(PrepareError::Told("there is no tool `fly`".into())) },
    ];
    assert!(
        world
            .input(TurnInput::ModelEnded { call: (1, 1), outcome, ms: 1, streamed: PartialAnswer::default(), prepared })
            .is_ok()
    );
    assert_eq!(names(&world)[2..], ["llm_ended", "tool_done", "tool_intent"]);
    // Where none of them can run, the next call is made at once, with both messages in its window.
    let mut other = World::new(vec![]);
    assert!(other.begin().is_ok());
    let prepared =
        vec![PreparedCall { key: call_key(1, 0), found: Err(PrepareError::Told("there is no tool `fly`".into())) }];
    let input = TurnInput::ModelEnded {
        call: (1, 1),
        outcome: uses(&[("fly", json!({}))]),
        ms: 1,
        streamed: PartialAnswer::default(),
        prepared,
    };
    assert!(other.input(input).is_ok());
    assert_eq!(names(&other)[2..], ["llm_ended", "tool_done", "llm_intent"]);
    let Some(Event::LlmIntent(intent)) = other.log.last() else { panic!("{:?}", other.log.last()) };
    assert_eq!((intent.request.upto, other.turn.history().len()), (3, 3));
    assert!(world.run().is_ok() && other.run().is_ok());
    assert_eq!((world.end(), other.end()), (&TurnOutcome::Answered, &TurnOutcome::Answered));
}

#[test]
fn a_broken_turn_ends_in_every_phase() {
    let broken = || TurnInput::Broken { detail: "the copy is gone".into() };
    let mut world = World::new(vec![]);
    assert!(world.input(broken()).is_ok() && !world.turn.is_busy(), "there is nothing to end");
    assert!(world.begin().is_ok());
    assert!(world.input(broken()).is_ok());
    assert!(matches!(world.end(), TurnOutcome::Broken { .. }) && !world.turn.is_busy());
    assert!(world.turn.ledger().unknown_nano > 0, "the call that was under way may have been paid");

    let mut world = World::new(vec![]);
    assert!(world.begin().is_ok());
    let outcome = uses(&[("read", json!({})), ("read", json!({"n": 1}))]);
    assert!(
        world
            .input(TurnInput::ModelEnded {
                call: (1, 1),
                outcome,
                ms: 1,
                streamed: PartialAnswer::default(),
                prepared: Vec::new()
            })
            .is_ok()
    );
    assert!(world.input(broken()).is_ok());
    assert!(matches!(world.end(), TurnOutcome::Broken { .. }));
    assert_eq!(world.turn.history().last().unwrap().parts.len(), 2, "no tool use is left dangling");
}

#[test]
fn a_permanent_failure_ends_the_turn() {
    let mut world = World::new(vec![]);
    assert!(world.begin().is_ok());
    let found = Err(PrepareError::Fatal("the project folder is gone".into()));
    let prepared = vec![PreparedCall { key: call_key(1, 0), found }];
    let outcome = uses(&[("read", json!({})), ("read", json!({"n": 1}))]);
    assert!(
        world
            .input(TurnInput::ModelEnded { call: (1, 1), outcome, ms: 1, streamed: PartialAnswer::default(), prepared })
            .is_ok()
    );
    assert!(matches!(world.end(), TurnOutcome::Broken { .. }));
    assert_eq!(world.turn.history().last().unwrap().parts.len(), 2, "no tool use is left dangling");
}

#[test]
fn plan_mode_refuses_without_asking() {
    let settings = Settings { mode: Mode::Plan, ..Settings::new(model("m")) };
    let world = World::with(settings, vec![uses(&[("write", json!({}))])]).talk();
    assert_eq!(world.wrote, Vec::<String>::new());
    assert!(format!("{:?}", world.dones()[0].content).contains("the user was not asked"));
}

#[test]
fn bad_calls_go_back_to_the_model() {
    let world = World::new(vec![uses(&[("fly", json!({})), ("read", json!({}))])]).talk();
    assert_eq!(world.dones()[0].ending, ToolOutcome::Invalid);
    assert_eq!(*world.end(), TurnOutcome::Answered);
    let results = &world.turn.history()[2];
    assert_eq!(results.parts.len(), 2, "every call has exactly one result");
}

#[test]
fn failures_are_retried_then_told() {
    let flaky = vec![fails(Failure::Network), fails(Failure::Truncated), says("hi")];
    let world = World::new(flaky).talk();
    assert_eq!(world.model_calls, [1, 1, 1]);
    assert_eq!(world.at_ms, 3_000);
    assert_eq!(*world.end(), TurnOutcome::Answered);

    let world = World::new(vec![fails(Failure::Network); 9]).talk();
    assert_eq!(world.model_calls.len(), 4);
    assert_eq!(*world.end(), TurnOutcome::Failed { failure: Failure::Network, detail: "d".into() });

    let world = World::new(vec![fails(Failure::Auth); 9]).talk();
    assert_eq!(world.model_calls.len(), 1);
}

#[test]
fn the_fallback_takes_over_for_the_rest_of_the_turn() {
    let settings = Settings { fallback: Some(model("f")), retries_max: 0, ..Settings::new(model("m")) };
    let script = vec![fails(Failure::Network), uses(&[("read", json!({}))]), says("hi")];
    let world = World::with(settings, script).talk();
    let models: Vec<_> = world
        .log
        .iter()
        .filter_map(|event| {
            if let Event::LlmIntent(intent) = event {
                Some(format!("{}/{}", intent.model.provider, intent.model.name))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(models, ["p/m", "p/f", "p/f"]);
    assert_eq!(*world.end(), TurnOutcome::Answered);
}

#[test]
fn an_overflow_makes_the_window_smaller_once_it_can() {
    let mut world = World::new(vec![says(&"old ".repeat(1_000)), fails(Failure::ContextOverflow), says("hi")]).talk();
    assert!(world.begin().is_ok() && world.run().is_ok());
    assert_eq!(world.turn.window().from, 2);
    assert_eq!(*world.end(), TurnOutcome::Answered);
    // A lone question cannot be made smaller.
    let world = World::new(vec![fails(Failure::ContextOverflow)]).talk();
    assert!(matches!(world.end(), TurnOutcome::Failed { .. }));
}

#[test]
fn odd_answers_have_defined_ends() {
    let empty = || answer(vec![], StopReason::EndTurn);
    let table: Vec<(Vec<LlmOutcome>, TurnOutcome, usize)> = vec![
        (vec![answer(vec![Part::text("half")], StopReason::MaxTokens)], TurnOutcome::Truncated, 1),
        (vec![answer(vec![Part::text("no")], StopReason::Refusal)], TurnOutcome::Refused, 1),
        (vec![empty(), says("hi")], TurnOutcome::Answered, 2),
        ((0..=NUDGES_MAX).map(|_| empty()).collect(), TurnOutcome::Empty, 3),
        ((0..30).map(|n| uses(&[("read", json!({"n": n}))])).collect(), TurnOutcome::Rounds, 20),
        (vec![answer(vec![Part::text("…")], StopReason::Pause), says("hi")], TurnOutcome::Answered, 2),
    ];
    for (script, end, calls) in table {
        let world = World::new(script).talk();
        assert_eq!((world.end(), world.model_calls.len()), (&end, calls));
    }
}

#[test]
fn a_loop_is_told_and_then_ended() {
    let settings = Settings { rounds_max: 1_000, ..Settings::new(model("m")) };
    let script = (0..REPEATS_MAX + 9).map(|_| uses(&[("read", json!({}))])).collect();
    let world = World::with(settings, script).talk();
    assert_eq!((world.end(), world.model_calls.len()), (&TurnOutcome::Looping, REPEATS_MAX as usize));
    let told = world.turn.history().iter().filter(|message| message.text().contains("exactly this call")).count();
    assert_eq!(told, REPEATS_MAX as usize - 2);
}

#[test]
fn a_structured_answer_is_taken_from_its_tool() {
    let settings = Settings { structured: true, ..Settings::new(model("m")) };
    let script = vec![says("prose"), uses(&[(STRUCTURED_OUTPUT, json!({"x": 1}))])];
    let world = World::with(settings.clone(), script).talk();
    assert_eq!(world.turn.last().unwrap().structured, Some(json!({"x": 1})));
    let world = World::with(settings, vec![says("prose"); 5]).talk();
    assert_eq!((world.end(), world.model_calls.len()), (&TurnOutcome::Unstructured, 3));
}

#[test]
fn an_answer_in_text_is_taken_if_it_was_found_to_fit() {
    let settings = Settings { structured: true, ..Settings::new(model("m")) };
    let fits = || Ok((Action::read("answer"), Repeatability::Pure));
    let misfits = || Err(PrepareError::Told("`/x`: not a number".into()));
    let play = |text: &str, found: Option<Result<_, _>>| {
        let mut world = World::with(settings.clone(), vec![]);
        assert!(world.begin().is_ok());
        let prepared = found.into_iter().map(|found| PreparedCall { key: call_key(1, 0), found }).collect();
        assert!(
            world
                .input(TurnInput::ModelEnded {
                    call: (1, 1),
                    outcome: says(text),
                    ms: 1,
                    streamed: PartialAnswer::default(),
                    prepared
                })
                .is_ok()
        );
        world
    };
    for text in ["{\"x\": 1}", "```json\n{\"x\": 1}\n```", "Here it is:\n```\n{\"x\": 1}\n```\nDone."] {
        let world = play(text, Some(fits()));
        assert_eq!(
            (world.end(), &world.turn.last().unwrap().structured),
            (&TurnOutcome::Answered, &Some(json!({"x": 1})))
        );
    }
    let last = |world: &World| world.turn.history().last().unwrap().text();
    let world = play("{\"x\": \"a\"}", Some(misfits()));
    assert!(last(&world).contains("not a number") && last(&world).contains("structured_output"), "{}", last(&world));
    assert!(last(&play("prose", None)).contains("structured_output"));
}

#[test]
fn json_is_found_in_text_where_it_is_the_answer() {
    let whole = Some(json!({"x": 1}));
    let table = [
        ("{\"x\":1}", whole.clone()),
        (" \n{\"x\":1}\n", whole.clone()),
        ("```json\n{\"x\":1}\n```", whole.clone()),
        ("```\n{\"x\":1}\n```", whole.clone()),
        ("I looked.\n\n```json\n{\"x\":1}\n```\n", whole),
        ("```json\n{\"x\":1}\n```\n```json\n{\"x\":2}\n```", None),
        ("[1]", None),
        ("7", None),
        ("{\"x\":1", None),
        ("seven", None),
        ("", None),
        ("```", None),
    ];
    for (text, want) in table {
        assert_eq!(json_in(text), want, "{text}");
    }
}

/// Somebody whose answer has a shape that was agreed has one more try, in whatever process.
#[test]
fn an_answer_under_contract_is_sent_back_once() {
    let given = |fits: bool| uses(&[(STRUCTURED_OUTPUT, json!({ "fits": fits }))]);
    let settings = Settings { structured: true, ..Settings::new(model("m")) };
    let play = |output: Option<Value>, script: Vec<LlmOutcome>| {
        let mut world = World::with(settings.clone(), script);
        let work = WorkSettings { output, ..WorkSettings::default() };
        let definition = Definition { name: "solo".into(), work, ..Definition::default() };
        let mut redefine = || {
            let _ = world.input(TurnInput::Redefine(definition.clone().into(), settings.clone().into()));
            world.log.len()
        };
        assert_eq!(redefine(), redefine(), "the same once more changes nothing");
        let world = world.talk();
        (world.end().clone(), world.model_calls.len())
    };
    let shape = Some(json!({ "type": "object" }));
    assert_eq!(play(shape.clone(), vec![given(false), given(true)]), (TurnOutcome::Answered, 2));
    assert_eq!(play(shape, vec![given(false), given(false), given(true)]), (TurnOutcome::Unstructured, 2));
    assert_eq!(
        play(None, vec![given(false), given(false), given(true)]),
        (TurnOutcome::Answered, 3),
        "nothing was agreed"
    );
}

#[test]
fn a_small_budget_hands_back_and_never_overruns() {
    let cap = 30_000_000;
    let settings = Settings { budget_nano: Some(cap), ..Settings::new(model("m")) };
    let script = (0..50).map(|n| {
        answer(
            vec![
                Part::text("so far"),
                Part::ToolUse { id: "t".into(), name: "read".into(), input: json!({"n": n}).into() },
            ],
            StopReason::ToolUse,
        )
    });
    let script = script.map(|outcome| match outcome {
        LlmOutcome::Done(answer) => {
            LlmOutcome::Done(chat::Answer { usage: Usage { input: 300, output: 1_000, ..Usage::default() }, ..answer })
        }
        other => other,
    });
    let world = World::with(settings, script.collect()).talk();
    assert_eq!(*world.end(), TurnOutcome::Budget);
    assert_eq!(world.turn.last().unwrap().text, "so far");
    assert!(world.turn.ledger().spent_nano <= cap, "{:?}", world.turn.ledger());
    assert!(names(&world).contains(&"nudged"));
    let settings = Settings { budget_nano: Some(1), ..Settings::new(model("m")) };
    let world = World::with(settings, vec![]).talk();
    assert_eq!((world.end(), world.model_calls.len()), (&TurnOutcome::Budget, 0));
}

#[test]
fn an_interrupt_leaves_a_history_that_can_go_on() {
    // While the model speaks.
    let mut world = World::new(vec![]);
    assert!(world.begin().is_ok());
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok());
    assert_eq!(world.turn.pending(), [TurnEffect::CancelAll]);
    let cancelled = LlmOutcome::Cancelled { partial: "half a".into(), usage: Usage::default() };
    assert!(
        world
            .input(TurnInput::ModelEnded {
                call: (1, 1),
                outcome: cancelled,
                ms: 1,
                streamed: PartialAnswer::default(),
                prepared: Vec::new()
            })
            .is_ok()
    );
    assert_eq!((world.end(), world.turn.last().unwrap().text.as_str()), (&TurnOutcome::Interrupted, "half a"));
    assert_eq!(world.turn.history().last().unwrap(), &Message::assistant(vec![Part::text("half a")]));

    // While one tool runs and another waits for an answer.
    let mut world = World::new(vec![uses(&[("read", json!({})), ("write", json!({}))])]);
    assert!(world.begin().is_ok());
    for _ in 0..2 {
        let effect = world.turn.pending().remove(0);
        assert!(world.perform(effect).is_ok());
    }
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok());
    assert!(world.turn.is_busy(), "the read still runs");
    let ended = TurnInput::ToolEnded {
        key: "1.0".into(),
        content: vec![],
        is_error: true,
        ending: ToolOutcome::Interrupted,
        fatal: None,
        ms: 1,
    };
    assert!(world.input(ended).is_ok());
    assert_eq!(*world.end(), TurnOutcome::Interrupted);
    assert_eq!(world.turn.history().last().unwrap().parts.len(), 2, "no tool use is left dangling");
}

#[test]
fn late_and_double_inputs_change_nothing() {
    let mut world = World::new(vec![uses(&[("write", json!({}))])]);
    assert!(world.begin().is_ok());
    let before = world.log.len();
    assert!(world.begin().is_ok());
    assert!(world.input(TurnInput::Woke).is_ok());
    assert!(
        world
            .input(TurnInput::Answered {
                question: QuestionId::new(id(9)),
                answer: PermissionAnswer::new(true, DecidedBy::Rule("r".into())),
            })
            .is_ok()
    );
    assert_eq!(world.log.len(), before);
}

/// The promise: whatever the instant of death, the next process comes to the same end, and nothing that finished is
/// done again.
#[test]
fn a_crash_at_every_boundary_leads_to_the_same_end() {
    let script = || {
        vec![
            uses(&[("read", json!({})), ("write", json!({})), ("read", json!({"n": 1}))]),
            fails(Failure::Network),
            uses(&[("write", json!({"n": 2}))]),
            says("all done"),
        ]
    };
    let calm = World::new(script()).talk();
    for at in 3..=calm.log.len() {
        let mut world = World::new(script());
        world.crash_at = Some(at);
        let survived = world.begin().and_then(|()| world.run()).is_ok();
        if !survived {
            world.refold();
            assert!(world.input(TurnInput::Recovered).is_ok());
            // A call lost in flight is made again: the script must answer it as before.
            let lost = world
                .log
                .iter()
                .filter(|event| matches!(event, Event::LlmEnded(ended) if ended.outcome == LlmOutcome::Lost))
                .count();
            assert!(lost <= 1);
            assert!(world.run().is_ok());
        }
        let last = world.turn.last().unwrap();
        assert_eq!((&last.end, last.text.as_str()), (&TurnOutcome::Answered, "all done"), "crash at {at}");
        assert_eq!(world.wrote, calm.wrote, "crash at {at}");
        assert_eq!(world.turn.history(), calm.turn.history(), "crash at {at}");
        assert_eq!(world.model_calls, calm.model_calls, "crash at {at}: nothing finished is paid twice");
    }
}

#[test]
fn an_opaque_call_is_never_repeated_silently() {
    let mut world = World::new(vec![uses(&[("shell", json!({}))]), says("ok")]);
    assert!(world.begin().is_ok());
    for _ in 0..2 {
        let effect = world.turn.pending().remove(0);
        assert!(world.perform(effect).is_ok());
    }
    assert!(matches!(world.turn.pending()[..], [TurnEffect::RunTool { .. }]));
    world.refold();
    assert!(world.input(TurnInput::Recovered).is_ok());
    assert_eq!(world.dones()[0].ending, ToolOutcome::Unknown);
    assert!(world.run().is_ok());
    assert_eq!(*world.end(), TurnOutcome::Answered);
}

#[test]
fn a_snapshot_is_the_state() {
    let world = World::new(vec![uses(&[("write", json!({}))]), says("hi")]).talk();
    let json = serde_json::to_string(&world.turn).unwrap();
    let back: Turn = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), json);
    assert_eq!(back.history(), world.turn.history());
}
