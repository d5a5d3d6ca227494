//! Teammates on the screen: who works, what they write, what they come to, and whom a line is for.

use std::sync::Arc;

use crossterm::event::KeyCode;
use max_team_core::chat::Part;
use max_team_core::cost::SessionCost;
use max_team_core::event::{
    Configured, Event, Interrupted, QuestionAnswered, Steered, ToolDone, ToolOutcome, TurnEnded, TurnOutcome,
    UserMessage,
};
use max_team_core::id::{AgentId, EnvelopeId, QuestionId, TurnId};
use max_team_core::ledger::Charge;
use max_team_core::message::{Assignment, Envelope, MessageKind, Principal, Role};
use max_team_core::policy::{Action, Basis, DecidedBy, PermissionAnswer, Recourse, RememberedRule};
use max_team_core::teammate::render::{MessageAttributes, wrap};
use max_team_core::teammate::{AgentEnded, CommandBegun, CommandOver, Lifetime, Teammate};
use max_team_runtime::{
    Fate, MailRecord, Notice, OpenQuestion, OpenedSession, Origin, Queued, READ_ON, RuntimeError, SessionDetails,
    Spawn, envelope_of,
};
use serde_json::json;
use uuid::Uuid;

use super::super::command_queue::{Arrival, CommandResult, StatusReason, UiCommand, fresh};
use super::super::plans::Plans;
use super::super::rows::Row;
use super::super::slash_output;
use super::stage::{self, Stage, edit};
use super::team_stage::{asks, started, team};
use max_team_workspace::i18n::Lang;

pub(super) fn teammate(number: u128, name: &str, color: &str) -> Arc<Origin> {
    let agent = AgentId::new(Uuid::from_u128(number));
    Arc::new(Origin { name: name.into(), color: Some(color.into()), ..Origin::agent(agent) })
}

pub(super) fn begins(stage: &mut Stage, from: &Arc<Origin>, title: &str) {
    let (name, color) = (from.name.to_string(), from.color.as_deref().unwrap().to_owned());
    let life = Lifetime::Teammate(Box::new(Teammate { name, color, ..Teammate::default() }));
    let given = Assignment { title: title.into(), depth: 1, attempt: 1, life, ..Assignment::default() };
    stage.event_from(from.clone(), started(Some(given)));
    stage.event_from(from.clone(), stage::intent(1, 1));
}

/// One answer that writes to somebody, and that it was sent.
fn writes(stage: &mut Stage, from: &Arc<Origin>, to: &str, text: &str) {
    let part = stage::tool_use("send_message", json!({ "to": to, "message": text }));
    stage.event_from(from.clone(), stage::answer(1, vec![part]));
    stage.event_from(
        from.clone(),
        Event::ToolDone(ToolDone {
            key: "1.0".into(),
            content: Vec::new(),
            is_error: false,
            ending: ToolOutcome::Ran,
            ms: 0,
            refused: None,
            words: String::new(),
        }),
    );
}

pub(super) fn ends(stage: &mut Stage, from: &Arc<Origin>, text: &str) {
    let Event::TurnEnded(ended) = stage::ended(TurnOutcome::Answered) else { panic!("no end") };
    let turn = TurnId::new(Uuid::from_u128(4));
    stage.event_from(from.clone(), Event::TurnEnded(TurnEnded { turn, text: text.into(), ..ended }));
}

pub(super) fn stage(lang: Lang) -> Stage {
    Stage::led(80, 24, false, lang, Some(team()), &stage::opened())
}

#[test]
fn teammates_at_work() {
    for (lang, name) in [(Lang::En, "mates_80x24"), (Lang::Zh, "chinese_mates_80x24")] {
        let mut stage = stage(lang);
        let (alice, bob) = (teammate(11, "alice", "blue"), teammate(12, "bob", "green"));
        begins(&mut stage, &alice, "Make a schema");
        begins(&mut stage, &bob, "Wait for alice");
        writes(&mut stage, &alice, "bob", "users(id, name)");
        stage.wait(1_000);
        ends(&mut stage, &bob, "I wait.\n\nFor the schema.");
        insta::assert_snapshot!(name, stage.glass.screen());
    }
}

#[test]
fn three_questions_wait_in_one_queue() {
    let mut stage = stage(Lang::En);
    for (number, name, color) in [(11, "ann", "blue"), (12, "ben", "green"), (13, "cat", "yellow")] {
        let from = teammate(number, name, color);
        begins(&mut stage, &from, "Write your file");
        stage.event_from(from, asks(number, "write_file", edit(&format!("{name}.txt"), "@@ -0,0 +1 @@\n+x\n")));
    }
    stage.wait(1_000);
    insta::assert_snapshot!("mates_ask_80x24", stage.glass.screen());
    stage.key(KeyCode::Char('y'));
    stage.key(KeyCode::Enter);
    stage.wait(1_000);
    assert!(stage.glass.screen().contains("ben (task Write your file) wants to use write_file  (1 of 2 questions)"));
    stage.key(KeyCode::Char('n'));
    stage.key(KeyCode::Enter);
    stage.wait(1_000);
    stage.key(KeyCode::Char('y'));
    stage.key(KeyCode::Enter);
    let answered: Vec<bool> = stage
        .acts
        .iter()
        .filter_map(|act| if let UiCommand::Answer { answer, .. } = act { Some(answer.allow) } else { None })
        .collect();
    assert_eq!(answered, [true, false, true]);
}

/// What is asked and how to answer it are seen in a small window, whatever gives way for it; or it takes no answer.
#[test]
fn a_small_window_keeps_what_is_asked_and_how_to_answer() {
    let small = [(40, 8, false), (40, 7, false), (24, 7, false), (40, 6, false), (20, 5, false)];
    let sizes = [(40, 10, true), (40, 9, true), (80, 24, true)].into_iter().chain(small);
    for (columns, rows, fits) in sizes {
        let mut stage = Stage::led(columns, rows, false, Lang::En, Some(team()), &stage::opened());
        let from = teammate(12, "bob", "green");
        begins(&mut stage, &from, "say hello to everybody who is there");
        let diff = "@@ -1,3 +1,3 @@\n # Title\n-old\n+new\n end\n";
        stage.event_from(from, asks(12, "write_file", edit("b6.txt", diff)));
        stage.wait(1_000);
        stage.acts.clear();
        let screen = stage.glass.screen();
        assert!(!fits || screen.contains("more lines") || screen.contains("+ new"), "{columns}x{rows}\n{screen}");
        insta::assert_snapshot!(format!("question_{columns}x{rows}"), screen);
        stage.key(KeyCode::Char('y'));
        stage.key(KeyCode::Enter);
        let answers = stage.acts.iter().any(|act| matches!(act, UiCommand::Answer { .. }));
        assert_eq!(answers, fits, "{columns}x{rows}: {:?}", stage.acts);
        // Nor is it a message.
        assert!(
            !stage.acts.iter().any(|act| matches!(act, UiCommand::Say { .. })),
            "{columns}x{rows}: {:?}",
            stage.acts
        );
    }
}

/// Whoever looks at a question that somebody else answers sees whose it was, which, and what else was allowed with it.
#[test]
fn an_answer_from_elsewhere_says_whose_question_it_was() {
    for (lang, told) in [
        (
            Lang::En,
            [
                "answered elsewhere: yes (you (command line)): ben: write_file ben.txt; allowed from now on, for this session: Edit",
                "answered elsewhere: yes (what `ben` was allowed for the session): ann: write_file ann.txt",
            ],
        ),
        (
            Lang::Zh,
            [
                "已在别处答复：同意（您（命令行））：ben: write_file ben.txt；从现在起在本会话中允许：Edit",
                "已在别处答复：同意（`ben` 在本会话中获准的）：ann: write_file ann.txt",
            ],
        ),
    ] {
        let mut stage = Stage::led(160, 24, false, lang, Some(team()), &stage::opened());
        let [ann, ben] = [(11, "ann"), (12, "ben")].map(|(number, name)| {
            let from = teammate(number, name, "blue");
            begins(&mut stage, &from, "Write your file");
            stage.event_from(
                from.clone(),
                asks(number, "write_file", edit(&format!("{name}.txt"), "@@ -0,0 +1 @@\n+x\n")),
            );
            from
        });
        let of = |number: u128| QuestionId::new(Uuid::from_u128(number));
        let always =
            PermissionAnswer { always: true, ..PermissionAnswer::new(true, DecidedBy::Person("owner at cli".into())) };
        stage.event_from(ben, Event::QuestionAnswered(QuestionAnswered { question: of(12), answer: always }));
        let shared = PermissionAnswer::new(true, DecidedBy::Grant("ben".into()));
        stage.event_from(ann, Event::QuestionAnswered(QuestionAnswered { question: of(11), answer: shared }));
        let screen = stage.glass.screen();
        told.iter().for_each(|told| assert!(screen.contains(told), "{told}\n{screen}"));
    }
}

#[test]
fn a_line_that_names_a_teammate_is_sent_to_it() {
    let mut stage = stage(Lang::En);
    let alice = teammate(11, "alice", "blue");
    begins(&mut stage, &alice, "Make a schema");
    ends(&mut stage, &alice, "Made.");
    stage.write("@al");
    assert!(stage.glass.screen().contains("❯ @alice"), "{}", stage.glass.screen());
    stage.key(KeyCode::Tab);
    stage.say("use tabs");
    let written =
        |act: &UiCommand| matches!(act, UiCommand::Write { to, text, .. } if *to == ["alice"] && text == "use tabs");
    assert!(stage.acts.iter().any(written), "{:?}", stage.acts);
    let to = || vec!["alice".to_owned()];
    stage.chat.done(CommandResult::Written { key: fresh(), to: to(), text: "use tabs".into(), outcome: Ok(()) });
    stage.paint();
    assert!(stage.glass.screen().contains("✉ you → alice: use tabs"), "{}", stage.glass.screen());
    // What could not be sent comes back into the draft.
    let full = RuntimeError::MailFull { name: "alice".into(), max: 1_000 };
    stage.chat.done(CommandResult::Written { key: fresh(), to: to(), text: "again".into(), outcome: Err(full) });
    stage.paint();
    assert!(stage.glass.screen().contains("> @alice again"), "{}", stage.glass.screen());
    stage.control('c');
    stage.say("@src/main.rs is wrong");
    assert!(stage.acts.iter().any(|act| matches!(act, UiCommand::Say { text, .. } if text == "@src/main.rs is wrong")));
    stage.say("/send alice");
    assert!(stage.glass.screen().contains("give a name and a message"), "{}", stage.glass.screen());
    stage.say("/team load web");
    assert!(stage.glass.screen().contains("there are no teams here"), "{}", stage.glass.screen());
    let gone = AgentEnded {
        session: stage::session_id(),
        name: "alice".into(),
        by: "max".into(),
        reason: "all is done".into(),
        forced: false,
    };
    stage.event_from(alice, Event::AgentEnded(gone));
    let screen = stage.glass.screen();
    assert!(screen.contains("alice has ended (by max: all is done)") && !screen.contains("○ idle"), "{screen}");
}

/// One that is told to end is not to be gone on with, and whoever wrote to it gets the words back.
#[test]
fn a_message_to_an_ended_teammate_comes_back() {
    for (lang, words, stopped) in [
        (
            Lang::En,
            "your message to hal came back (it has ended): look at the blue file",
            "Stopped: it was told to end.",
        ),
        (Lang::Zh, "您写给 hal 的消息被退回（对方已结束）：look at the blue file", "已停止：被要求结束。"),
    ] {
        let mut stage = stage(lang);
        let hal = teammate(11, "hal", "blue");
        begins(&mut stage, &hal, "Look around");
        stage.event_from(
            hal.clone(),
            Event::Interrupted(Interrupted { by: "cli".into(), who: None, ends: true, held: None }),
        );
        stage.event_from(hal.clone(), stage::ended(TurnOutcome::Interrupted));
        let body = json!({
            "text": "A message to `hal` was not delivered, because it has ended: look at the blue file",
            "from": "hal", "why": "it has ended", "cause": "ended", "said": "look at the blue file",
        });
        let id = EnvelopeId::new(Uuid::from_u128(9));
        let envelope = Envelope::new(id, "agent/hal", "user/cli/owner", MessageKind::Undelivered, body, 0);
        stage.event_from(hal.clone(), Event::Mailed(envelope));
        let screen = stage.glass.screen();
        assert!(screen.contains(words) && screen.matches("blue file").count() == 1, "{screen}");
        assert!(screen.contains(stopped) && !screen.contains("/continue"), "{screen}");
    }
}

/// Who was asked to end and does not says so to whoever asked, once.
#[test]
fn a_no_to_an_end_is_one_row() {
    for (to, told) in [
        ("user/cli/owner", "hal does not end: busy (`max-team team shutdown hal --now` ends it)"),
        ("agent/max", "✉ hal → Max: shutdown_rejected: busy"),
    ] {
        let mut stage = stage(Lang::En);
        let hal = teammate(11, "hal", "blue");
        begins(&mut stage, &hal, "Look around");
        let no = json!({ "type": "shutdown_response", "request_id": "r", "approve": false, "reason": "busy" });
        let part = stage::tool_use("send_message", json!({ "to": "lead", "message": no }));
        stage.event_from(hal.clone(), stage::answer(1, vec![part]));
        let done = ToolDone {
            key: "1.0".into(),
            content: Vec::new(),
            is_error: false,
            ending: ToolOutcome::Ran,
            ms: 0,
            refused: None,
            words: String::new(),
        };
        stage.event_from(hal.clone(), Event::ToolDone(done));
        let (id, body) = (EnvelopeId::new(Uuid::from_u128(9)), json!({ "text": "busy", "from": "hal" }));
        let envelope = Envelope::new(id, "agent/hal", to, MessageKind::ShutdownRejected, body, 0);
        stage.event_from(hal.clone(), Event::Mailed(envelope));
        let screen = stage.glass.screen();
        assert!(screen.contains(told) && screen.matches("busy").count() == 1, "{screen}");
    }
}

/// A message that arrives in the middle of a sentence stands behind the paragraph, not in it.
#[test]
fn a_message_does_not_cut_a_sentence() {
    let mut stage = stage(Lang::En);
    let alice = teammate(11, "alice", "blue");
    begins(&mut stage, &alice, "Make a schema");
    stage.begin("how far are you?");
    stage.call();
    stage.stream("The first half of the sen");
    writes(&mut stage, &alice, "bob", "users(id, name)");
    stage.wait(100);
    assert!(!stage.glass.screen().contains("users(id, name)"), "{}", stage.glass.screen());
    stage.stream("tence is this.\n\nAnother par");
    stage.stream("agraph.");
    stage
        .answer(vec![max_team_core::chat::Part::text("The first half of the sentence is this.\n\nAnother paragraph.")]);
    stage.end(TurnOutcome::Answered);
    stage.wait(100);
    let screen = stage.glass.screen();
    assert!(screen.contains("The first half of the sentence is this."), "{screen}");
    assert!(screen.contains("Another paragraph.") && screen.contains("users(id, name)"), "{screen}");
}

/// Nor does it break a block that is being written: what follows is drawn as if nothing had come between.
#[test]
fn a_message_breaks_no_block() {
    // What is written before it comes, what is written then, and in which order it all stands.
    let table: [(&str, &[&str], &[&str]); 3] = [
        (
            "Look:\n\n```rust\nfn one() {}\n",
            &["fn two() {}\n", "```\n", "\nDone **now**."],
            &["fn one() {}", "fn two() {}", "users(id, name)", "Done now."],
        ),
        (
            "1. first\n1. sec",
            &["ond\n", "1. third\n", "\nSo it **is**.\n\n"],
            &["1. first", "2. second", "3. third", "So it is.", "users(id, name)"],
        ),
        ("Look he", &["re:\n\n##", " Head\n", "Text."], &["Look here:", "Head", "users(id, name)", "Text."]),
    ];
    for (before, then, order) in table {
        let mut stage = stage(Lang::En);
        let alice = teammate(11, "alice", "blue");
        begins(&mut stage, &alice, "Make a schema");
        stage.begin("how far are you?");
        stage.call();
        stage.stream(before);
        writes(&mut stage, &alice, "bob", "users(id, name)");
        then.iter().for_each(|words| stage.stream(words));
        stage.answer(vec![max_team_core::chat::Part::text(format!("{before}{}", then.concat()))]);
        stage.end(TurnOutcome::Answered);
        stage.wait(100);
        let shown = stage.glass.everything();
        let places: Vec<_> = order.iter().map(|words| shown.find(words)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{shown}");
    }
}

/// What teammates spend is in the bar while they spend it, and once.
#[test]
fn the_cost_in_the_bar_moves_while_teammates_spend() {
    let mut stage = stage(Lang::En);
    let alice = teammate(11, "alice", "blue");
    let cost = |stage: &Stage| {
        let screen = stage.glass.screen();
        let bar = screen.lines().find(|line| line.contains("default mode")).unwrap().to_owned();
        bar.split('$').nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok()).unwrap_or_default()
    };
    let before = cost(&stage);
    begins(&mut stage, &alice, "Make a schema");
    writes(&mut stage, &alice, "bob", "users(id, name)");
    stage.wait(1_000);
    let one = cost(&stage);
    assert!(one > before, "{}", stage.glass.screen());
    stage.event_from(alice.clone(), stage::intent(2, 1));
    stage.event_from(alice.clone(), stage::answer(2, vec![max_team_core::chat::Part::text("Made.")]));
    ends(&mut stage, &alice, "Made.");
    stage.wait(1_000);
    assert!((cost(&stage) - 2.0 * one + before).abs() < 1e-9, "{}", stage.glass.screen());
}

/// A session that is gone on with shows what was last written, in the colours of whoever wrote it.
#[test]
fn messages_of_a_session_are_shown_again() {
    let mut stage = stage(Lang::En);
    let message = |number: u128, kind: MessageKind, from: &str, to: &str, body: serde_json::Value| MailRecord {
        envelope: Envelope::new(EnvelopeId::new(Uuid::from_u128(number)), "agent/a", "agent/b", kind, body, 0),
        seq: 0,
        from: from.into(),
        to: to.into(),
        fate: Fate::Delivered,
    };
    let messages = vec![
        message(1, MessageKind::UserInput, "user", "Max", json!({ "text": "said in the conversation" })),
        message(2, MessageKind::Text, "alice", "bob", json!({ "text": "users(id, name)" })),
        message(3, MessageKind::TaskResult, "explore", "max", json!({ "text": "of a call", "call": "1.0" })),
        message(4, MessageKind::TaskResult, "bob", "max", json!({ "text": "Got it.", "mate": "bob" })),
        message(5, MessageKind::UserInput, "user", "alice", json!({ "text": "use tabs" })),
        MailRecord {
            fate: Fate::Withdrawn,
            ..message(6, MessageKind::UserInput, "user", "bob", json!({ "text": "no, taken back" }))
        },
        message(7, MessageKind::UserInput, "user", "bob", json!({ "text": READ_ON.trim_end() })),
    ];
    stage.chat.done(CommandResult::Messages(Ok(messages)));
    stage.wait(100);
    let screen = stage.glass.screen();
    let at = |words: &str| screen.find(words).unwrap_or_else(|| panic!("{words}: {screen}"));
    assert!(at("latest messages") < at("users(id, name)"));
    assert!(at("users(id, name)") < at("Got it.") && at("Got it.") < at("use tabs"), "{screen}");
    let others = ["said in the conversation", "of a call", "taken back", "Read the messages that came"];
    assert!(others.iter().all(|words| !screen.contains(words)), "{screen}");
}

/// A name that nobody has is said to be nobody's, and what was written is there to be mended.
#[test]
fn a_line_to_an_unknown_name_comes_back() {
    let mut stage = stage(Lang::En);
    begins(&mut stage, &teammate(11, "alice", "blue"), "Make a schema");
    stage.acts.clear();
    stage.say("@alcie use tabs");
    stage.wait(100);
    let screen = stage.glass.screen();
    assert!(
        screen.contains("no teammate is called `alcie`: did you mean `alice`?") && screen.contains("> @alcie use tabs"),
        "{screen}"
    );
    let sent =
        |acts: &[UiCommand]| acts.iter().any(|act| matches!(act, UiCommand::Say { .. } | UiCommand::Write { .. }));
    assert!(!sent(&stage.acts), "{:?}", stage.acts);
    stage.control('u');
    stage.say("@src/main.rs is wrong");
    stage.wait(100);
    assert!(sent(&stage.acts), "a file is no name: {:?}", stage.acts);
}

/// Nobody works, and yet something runs: it is shown, `/stop` and the words reach it, and what was stopped is said.
#[test]
fn background_work_is_shown_and_stopped() {
    let mut stage = stage(Lang::En);
    let sal = teammate(11, "sal", "blue");
    begins(&mut stage, &sal, "Serve");
    for id in ["sh-1", "sh-2"] {
        let begun = CommandBegun { id: id.into(), name: format!("`serve {id}`") };
        stage.event_from(sal.clone(), Event::CommandBegun(begun));
    }
    ends(&mut stage, &sal, "They run.");
    stage.wait(1_000);
    insta::assert_snapshot!("mates_background_80x24", stage.glass.screen());
    let stops = |act: &&UiCommand| matches!(act, UiCommand::Interrupt | UiCommand::StopSession);
    let interrupts = |stage: &Stage| stage.acts.iter().filter(stops).count();
    stage.key(KeyCode::Esc);
    assert!(stage.glass.screen().contains("the team goes on: “stop” or /stop stops it"), "{}", stage.glass.screen());
    assert_eq!(interrupts(&stage), 0);
    stage.say("/stop");
    stage.say("打断");
    assert_eq!(interrupts(&stage), 2);
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Say { .. })), "{:?}", stage.acts);
    let over = |id: &str, stopped| {
        Event::CommandOver(CommandOver { id: id.into(), lost: false, stopped, name: String::new() })
    };
    stage.event_from(sal.clone(), over("sh-1", true));
    stage.event_from(sal.clone(), over("sh-2", false));
    let screen = stage.glass.screen();
    assert!(screen.contains("■ sal: stopped in the background: `serve sh-1`"), "{screen}");
    assert!(!screen.contains("serve sh-2") && !screen.contains("in the background: sal ("), "{screen}");
    stage.say("/stop");
    assert!(stage.glass.screen().contains("Nothing runs."), "{}", stage.glass.screen());
}

/// Whoever asked before we came waits for us, and is at work for whoever says stop; what follows is its own.
#[test]
fn a_waiting_teammate_is_shown_when_a_session_is_opened() {
    let ask = |number: u128, name: &str, color: Option<&str>, task: Option<&str>| OpenQuestion {
        question: QuestionId::new(Uuid::from_u128(number)),
        tool: "write_file".into(),
        action: edit("A.txt", ""),
        by: name.into(),
        agent: Some(AgentId::new(Uuid::from_u128(number))),
        task: task.map(str::to_owned),
        color: color.map(str::to_owned),
        rule: "edits are asked about".into(),
        basis: Basis::Rule,
        memory: RememberedRule::Nothing,
        recourse: Recourse::default(),
        at_ms: stage::START_MS,
    };
    let asked = vec![ask(11, "alice", Some("blue"), Some("Make a schema")), ask(2, "Max", None, None)];
    let opened = OpenedSession { resumed: true, continuing: true, asked, ..stage::opened() };
    let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &opened);
    stage.wait(1_000);
    let screen = stage.glass.screen();
    assert!(screen.contains("⏺ alice (Make a schema): waits for you"), "{screen}");
    assert!(!screen.contains("○ idle") && !screen.contains("⏺ Max"), "{screen}");
    let alice = teammate(11, "alice", "blue");
    // That the session's settings reach it, or a message does, ends no waiting.
    let configured =
        Configured { settings: stage.chat.session().settings().clone().into(), definition: None, by: None };
    stage.event_from(alice.clone(), Event::Configured(configured));
    assert!(stage.glass.screen().contains("⏺ alice (Make a schema): waits for you"), "{}", stage.glass.screen());
    stage.event_from(alice.clone(), stage::runs("1.0", "write_file", edit("A.txt", "")));
    assert!(stage.glass.screen().contains("⏺ alice (Make a schema): write_file A.txt"), "{}", stage.glass.screen());
    ends(&mut stage, &alice, "Made.");
    assert!(!stage.glass.screen().contains("⏺ alice (Make a schema)"), "{}", stage.glass.screen());
}

/// Whoever is started is named, and so is whom somebody writes to at another terminal.
#[test]
fn rows_name_their_agent() {
    let mut stage = stage(Lang::En);
    stage.begin("go");
    let spawn = json!({ "type": "general", "name": "pia", "role": "writer", "prompt": "Write." });
    stage.answer(vec![stage::tool_use("spawn_teammate", spawn)]);
    stage.runs("1.0", "spawn_teammate", Action::read("general"));
    stage.done("1.0", ToolOutcome::Ran, "started", false, 3);
    assert!(stage.glass.screen().contains("spawn_teammate pia (general)"), "{}", stage.glass.screen());
    let pia = teammate(11, "pia", "blue");
    let body = json!({ "text": "use tabs" });
    let id = EnvelopeId::new(Uuid::from_u128(5));
    let envelope = Envelope::new(id, "user/me", "agent/x", MessageKind::UserInput, body, stage::START_MS);
    stage.event_from(pia, Event::Mailed(envelope));
    assert!(stage.glass.screen().contains("✉ you → pia: use tabs"), "{}", stage.glass.screen());
    stage.say("/team mode pia plan");
    assert!(stage.glass.screen().contains("max-team team mode pia plan"), "{}", stage.glass.screen());
}

/// What may not have been paid is marked in the status line as it is elsewhere.
#[test]
fn a_bound_is_not_shown_as_a_sum() {
    let lead = stage::opened().agent;
    let status = |unknown: (u64, u64)| {
        let mut cost = SessionCost::default();
        let charge = |nano, unknown_nano| Charge { calls: 1, nano, unknown_nano, ..Charge::default() };
        cost.charge(lead, &charge(3_000_000 + unknown.0, unknown.0));
        cost.charge(AgentId::new(Uuid::from_u128(11)), &charge(unknown.1, unknown.1));
        SessionDetails { cost, ..stage::status() }
    };
    for (unknown, shown) in
        [((0, 0), " · $0.0030 · "), ((487_000_000, 0), " · ≈ $0.49 · "), ((0, 487_000_000), " · ≈ $0.49 · ")]
    {
        let mut stage = stage(Lang::En);
        stage.chat.done(CommandResult::Status { reason: StatusReason::Footer, outcome: Ok(Box::new(status(unknown))) });
        stage.paint();
        assert!(stage.glass.screen().contains(shown), "{}", stage.glass.screen());
        let Row::Table(rows) =
            slash_output::cost(Lang::En, &status(unknown), &status(unknown).cost, lead, &Plans::default())
        else {
            unreachable!()
        };
        assert_eq!(rows[0].1, shown.trim_matches([' ', '·']), "`/cost` has the same sum: {rows:?}");
    }
}

/// Whoever works aside, and a team that has not begun, is stopped like everybody.
#[test]
fn a_stop_reaches_background_and_starting_teammates() {
    for (words, joins) in [("stop", false), ("/stop", false), ("stop", true), ("/stop", true)] {
        let mut stage = stage(Lang::En);
        if joins {
            stage.chat.session_mut().recruit(vec![Spawn { name: "eva".into(), ..Spawn::default() }]);
        } else {
            let memory =
                Origin { name: "memory".into(), aside: true, ..Origin::agent(AgentId::new(Uuid::from_u128(5))) };
            stage.event_from(Arc::new(memory), started(None));
        }
        stage.say(words);
        assert!(matches!(stage.acts.last(), Some(UiCommand::StopSession)), "{words} {joins}: {:?}", stage.acts);
    }
}

/// As with what is said to Max: what a teammate has not read comes back into the draft, and is gone; what it has read is only there
/// like everything that was written before.
#[test]
fn an_unread_message_to_a_teammate_is_taken_back() {
    for (outcome, row) in [
        (Ok(()), "✉ taken back: bob has not read it"),
        (Err(RuntimeError::Taken), "✉ bob has it already: what you send now is another message"),
    ] {
        let mut stage = stage(Lang::En);
        let bob = teammate(11, "bob", "blue");
        begins(&mut stage, &bob, "Work");
        stage.say("@bob take me back");
        let Some(UiCommand::Write { key, to, text }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
        stage.chat.done(CommandResult::Written { key, to, text, outcome: Ok(()) });
        stage.key(KeyCode::Up);
        let Some(UiCommand::Withdraw { key, text }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
        stage.chat.done(CommandResult::Withdrawn { key, text, outcome });
        stage.paint();
        let screen = stage.glass.screen();
        assert!(screen.contains("> @bob take me back") && screen.contains(row), "{screen}");
    }
    let mut stage = stage(Lang::En);
    let bob = teammate(11, "bob", "blue");
    begins(&mut stage, &bob, "Work");
    stage.say("@bob look");
    let Some(UiCommand::Write { key, to, text }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
    stage.chat.done(CommandResult::Written { key, to, text, outcome: Ok(()) });
    let steered =
        Steered { envelopes: vec![envelope_of(key, bob.agent.unwrap())], input: Vec::new(), from_team: Vec::new() };
    stage.event_from(bob, Event::Steered(steered));
    stage.key(KeyCode::Up);
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Withdraw { .. })), "{:?}", stage.acts);
    assert!(stage.glass.screen().contains("> @bob look"), "{}", stage.glass.screen());
}

/// What is nearly for somebody goes to nobody: the draft has it, with a remark.
#[test]
fn a_line_that_is_nearly_for_a_teammate_is_not_said_to_max() {
    for line in ["@bob: hi", "@bob,hi", "@bob"] {
        let mut stage = stage(Lang::En);
        begins(&mut stage, &teammate(11, "bob", "blue"), "Work");
        stage.say(line);
        assert!(
            !stage.acts.iter().any(|act| matches!(act, UiCommand::Say { .. } | UiCommand::Write { .. })),
            "{:?}",
            stage.acts
        );
        let screen = stage.glass.screen();
        assert!(screen.contains("Write `@bob WORDS`") && screen.contains(&format!("> {line}")), "{screen}");
    }
}

/// What was written to all is one thing to take back: from everybody who has not read it, and whoever has is named.
#[test]
fn a_broadcast_is_taken_back_from_all_that_have_not_read_it() {
    for (reads, outcome, row) in [
        (false, Ok(()), "✉ taken back: team has not read it"),
        (true, Err(RuntimeError::TakenBy(vec!["max".into()])), "✉ taken back, but not from max: read already"),
    ] {
        let mut stage = stage(Lang::En);
        for (number, name) in [(11, "alice"), (12, "bob")] {
            begins(&mut stage, &teammate(number, name, "blue"), "Work");
        }
        stage.say("@team hold on");
        let Some(UiCommand::Write { key, to, text }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
        let by = Principal { door: "terminal".into(), user: "me".into(), role: Role::Owner };
        let said = UserMessage { envelope: key, text: text.clone(), by, cwd: String::new() };
        stage.event(Event::Said(said));
        stage.chat.done(CommandResult::Written { key, to, text, outcome: Ok(()) });
        if reads {
            stage.event(Event::Steered(Steered { envelopes: vec![key], input: Vec::new(), from_team: Vec::new() }));
        }
        stage.key(KeyCode::Up);
        let Some(UiCommand::Withdraw { key: wanted, text }) = stage.acts.last().cloned() else {
            panic!("{:?}", stage.acts)
        };
        assert_eq!((wanted, text.as_str()), (key, "@team hold on"));
        stage.chat.done(CommandResult::Withdrawn { key, text, outcome });
        stage.paint();
        let screen = stage.glass.screen();
        assert!(screen.contains("> @team hold on") && screen.contains(row), "{screen}");
        assert!(stage.chat.session().queue().is_empty());
    }
}

/// One that could not be asked is named beside those who have read it, and the line is not lost.
#[test]
fn a_partly_read_broadcast_names_its_readers() {
    for lang in [Lang::En, Lang::Zh] {
        let mut stage = stage(lang);
        for (number, name) in [(11, "alice"), (12, "bob")] {
            begins(&mut stage, &teammate(number, name, "blue"), "Work");
        }
        stage.say("@team hold on");
        let Some(UiCommand::Write { key, to, text }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
        stage.chat.done(CommandResult::Written { key, to, text, outcome: Ok(()) });
        stage.key(KeyCode::Up);
        let Some(UiCommand::Withdraw { text, .. }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
        let (failed, read) = (vec!["bob".to_owned()], vec!["alice".to_owned()]);
        let outcome = Err(RuntimeError::Untaken { failed, why: "disk full".into(), read });
        stage.chat.done(CommandResult::Withdrawn { key, text, outcome });
        stage.paint();
        let screen = stage.glass.screen();
        let named = ["> @team hold on", "bob", "disk full", "alice"].iter().all(|words| screen.contains(words));
        assert!(named, "{screen}");
    }
}

/// What was written to all is offered as long as somebody has not read it: whoever reads it before we hear that it is stored, or
/// comes to an end, does not have it any more.
#[test]
fn a_read_message_is_not_offered_for_taking_back() {
    let mut stage = stage(Lang::En);
    let (alice, bob) = (teammate(11, "alice", "blue"), teammate(12, "bob", "green"));
    begins(&mut stage, &alice, "Work");
    begins(&mut stage, &bob, "Work");
    stage.say("@team hold on");
    let Some(UiCommand::Write { key, to, text }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
    let reads =
        |message| Event::Steered(Steered { envelopes: vec![message], input: Vec::new(), from_team: Vec::new() });
    stage.event_from(alice.clone(), reads(envelope_of(key, alice.agent.unwrap())));
    stage.event(reads(key));
    stage.chat.done(CommandResult::Written { key, to, text, outcome: Ok(()) });
    let (session, name) = (stage::session_id(), "bob".to_owned());
    let ended = AgentEnded { session, name, by: "owner at cli".into(), reason: String::new(), forced: false };
    stage.event_from(bob, Event::AgentEnded(ended));
    stage.key(KeyCode::Up);
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Withdraw { .. })), "{:?}", stage.acts);
}

/// What was written to all before the program ended is, taken back, a line for all.
#[test]
fn an_older_message_to_all_is_taken_back_for_all() {
    let queued =
        Queued { envelope: EnvelopeId::new(Uuid::from_u128(9)), text: "hold on".into(), wait: false, all: true };
    let opened = OpenedSession { resumed: true, queued: vec![queued], ..stage::opened() };
    let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &opened);
    stage.key(KeyCode::Up);
    let Some(UiCommand::Withdraw { key, text }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
    assert_eq!(text, "@team hold on");
    stage.chat.done(CommandResult::Withdrawn { key, text, outcome: Ok(()) });
    stage.paint();
    assert!(stage.glass.screen().contains("> @team hold on"), "{}", stage.glass.screen());
}

/// A session that had stopped is opened again by a line for a teammate: it is for that one, and comes back if it is not stored.
#[test]
fn a_line_for_a_teammate_of_a_session_that_has_stopped_is_not_lost() {
    let mut stage = stage(Lang::En);
    begins(&mut stage, &teammate(11, "bob", "blue"), "Work");
    let full = || RuntimeError::AgentStopped("disk full".into());
    let stopped = || Notice::Stopped { session: stage::session_id(), whole: true, error: Arc::new(full()) };
    stage.chat.notice(&stopped());
    stage.say("@bob one more thing");
    let arrival = Arrival {
        opened: Box::new(OpenedSession { resumed: true, continuing: true, ..stage::opened() }),
        events: Vec::new(),
    };
    stage.chat.done(CommandResult::Opened { outcome: Ok(arrival) });
    stage.paint();
    let Some(UiCommand::Write { key, to, text }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
    assert_eq!((to.as_slice(), text.as_str()), (&["bob".to_owned()][..], "one more thing"));
    stage.chat.notice(&stopped());
    stage.chat.done(CommandResult::Written { key, to, text, outcome: Err(full()) });
    stage.paint();
    assert!(stage.glass.screen().contains("> @bob one more thing"), "{}", stage.glass.screen());
}

/// What the team wrote and was told behind the user's words is not shown as theirs.
#[test]
fn notes_beside_the_users_words_are_news() {
    let mut stage = stage(Lang::En);
    let about = MessageAttributes { from: "bob", color: "green", ..MessageAttributes::default() };
    stage.begin(&format!("hello again\n\n{}", wrap(about, "it was stopped")));
    let screen = stage.glass.screen();
    assert!(screen.contains("> hello again\n") && screen.contains("✉ news from the team"), "{screen}");
    assert!(!screen.contains("teammate-message") && !screen.contains("it was stopped"), "{screen}");
}

/// Also where a message asks for a skill, whose text is told behind everything else.
#[test]
fn notes_before_a_skill_are_news_too() {
    let message =
        wrap(MessageAttributes { from: "bob", color: "green", ..MessageAttributes::default() }, "it was stopped");
    let skill = || Part::text("The user asks you to follow this skill:\n<skill name=\"deploy\">\nStep one\n</skill>");
    let Event::TurnStarted(mut begun) = stage::started("") else { unreachable!() };
    begun.input = vec![Part::text(format!("/deploy now\n\n{message}")), skill()];
    let steered = vec![Part::text("/deploy now"), skill(), Part::text(message)];
    let steered = Event::Steered(Steered { envelopes: Vec::new(), input: steered, from_team: Vec::new() });
    for event in [Event::TurnStarted(begun), steered] {
        let mut stage = stage(Lang::En);
        stage.event(event);
        let screen = stage.glass.screen();
        assert!(screen.contains("> /deploy now\n") && screen.contains("✉ news from the team"), "{screen}");
        for hidden in ["teammate-message", "it was stopped", "Step one"] {
            assert!(!screen.contains(hidden), "{screen}");
        }
    }
}

/// A command that ends with its owner, or ended with an earlier program, has a row.
#[test]
fn a_command_that_was_ended_or_lost_is_told() {
    let mut stage = stage(Lang::En);
    let (sal, tom) = (teammate(11, "sal", "blue"), teammate(12, "tom", "green"));
    begins(&mut stage, &sal, "Serve");
    stage.event_from(sal.clone(), Event::CommandBegun(CommandBegun { id: "sh-1".into(), name: "`serve`".into() }));
    ends(&mut stage, &sal, "It runs.");
    let over = |lost, name: &str| CommandOver { id: "sh-1".into(), lost, stopped: !lost, name: name.into() };
    stage.event_from(sal.clone(), Event::CommandOver(over(false, "`serve`")));
    let (session, name) = (stage::session_id(), "sal".to_owned());
    let ended = AgentEnded { session, name, by: "owner at cli".into(), reason: String::new(), forced: false };
    stage.event_from(sal, Event::AgentEnded(ended));
    stage.event_from(tom, Event::CommandOver(over(true, "`sleep 500`")));
    let screen = stage.glass.screen();
    for row in ["■ sal: stopped in the background: `serve`", "■ tom: ended with the program: `sleep 500`"] {
        assert_eq!(screen.matches(row).count(), 1, "{screen}");
    }
}

/// A message that comes back while the session is opened is news, and among what was written before.
#[test]
fn a_message_that_came_back_is_told_once() {
    let body = json!({ "text": "x", "from": "bob", "why": "it has ended", "said": "offline" });
    let id = EnvelopeId::new(Uuid::from_u128(9));
    let envelope = Envelope::new(id, "agent/bob", "user/cli/owner", MessageKind::Undelivered, body, 0);
    let message =
        MailRecord { envelope: envelope.clone(), seq: 1, from: "bob".into(), to: "user".into(), fate: Fate::Delivered };
    for is_heard_first in [true, false] {
        let mut stage = stage(Lang::En);
        let mailed = Event::Mailed(envelope.clone());
        if is_heard_first {
            stage.event_from(teammate(11, "bob", "blue"), mailed.clone());
        }
        stage.chat.done(CommandResult::Messages(Ok(vec![message.clone()])));
        if !is_heard_first {
            stage.event_from(teammate(11, "bob", "blue"), mailed);
        }
        stage.paint();
        let screen = stage.glass.screen();
        assert_eq!(screen.matches("offline").count(), 1, "{screen}");
    }
}
