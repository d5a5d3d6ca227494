//! A chat on a terminal in memory, with a clock that stands still until it is told to go.
//!
//! Tests play the user (keys) and the team (events, deltas) and look at the glass. Every step is painted, so that a
//! step that paints wrongly shows in all later ones.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use max_team_core::agent::{Model, Settings};
use max_team_core::chat::{Answer, Message, Part, StopReason, Usage};
use max_team_core::context::Window;
use max_team_core::cost::{SessionCost, Spending};
use max_team_core::event::{
    Approval, Event, LlmEnded, LlmIntent, LlmOutcome, QuestionAsked, RequestRef, ToolDone, ToolIntent, ToolOutcome,
    TurnEnded, TurnOutcome, TurnStarted,
};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, QuestionId, SessionId, TurnId};
use max_team_core::ledger::{Charge, Ledger, Price};
use max_team_core::policy::{Action, ActionKind, Basis, Mode, Recourse, RememberedRule, Repeatability};
use max_team_runtime::{Delta, Notice, OpenedSession, Origin, Recovered, SessionDetails, Team};
use ratatui::layout::Size;
use serde_json::Value;
use uuid::Uuid;

use super::super::chat::{Chat, Wish};
use super::super::command_queue::UiCommand;
use super::super::screen::Screen;
use super::super::session::{Models, Session};
use super::super::theme::Theme;
use super::super::view::view;
use super::glass::Glass;
use max_team_workspace::config::choice::WhileBusy;
use max_team_workspace::i18n::Lang;

/// When everything begins.
pub(super) const START_MS: i64 = 1_750_000_000_000;

pub(super) struct Stage {
    pub(super) chat: Chat,
    pub(super) glass: Glass,
    pub(super) acts: Vec<UiCommand>,
    screen: Screen,
    now_ms: i64,
    calls: u32,
    /// The number of the last model call.
    call: u32,
    /// The calls of each agent, for the charges at the end of its turn.
    cost: SessionCost,
    _folder: tempfile::TempDir,
}

pub(crate) fn session_id() -> SessionId {
    SessionId::new(Uuid::from_u128(1))
}

/// The lead, as a source of notices.
pub(crate) fn lead() -> Arc<Origin> {
    Arc::new(Origin { lead: true, name: "Max".into(), ..Origin::agent(AgentId::new(Uuid::from_u128(2))) })
}

pub(crate) fn settings() -> Settings {
    Settings::new(Model {
        provider: "anthropic".into(),
        name: "claude-sonnet-4-6".into(),
        context_tokens: 200_000,
        max_tokens: 8_192,
        thinking_tokens: 0,
        price: Some(Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 }),
    })
}

pub(crate) fn opened() -> OpenedSession {
    OpenedSession {
        held: 0,
        session: session_id(),
        agent: AgentId::new(Uuid::from_u128(2)),
        settings: settings().into(),
        resumed: false,
        continuing: false,
        lead_goes_on: false,
        lead_halts: false,
        history: Vec::new(),
        queued: Vec::new(),
        last: None,
        asked: Vec::new(),
        recovered: Recovered::default(),
        plans: Vec::new(),
        instructions: Vec::new(),
        skills: Vec::new(),
        notes: Vec::new(),
        moved: Vec::new(),
        cost: SessionCost::default(),
        crew: None,
    }
}

pub(super) fn status() -> SessionDetails {
    SessionDetails {
        ledger: Ledger::default(),
        cost: SessionCost::default(),
        window_tokens: 0,
        frame_bytes: 0,
        messages: (0, 0),
        settings: settings(),
        instructions: Vec::new(),
        busy: false,
        sources: Vec::new(),
    }
}

pub(crate) fn models() -> Models {
    Models {
        names: Box::new(|| vec!["claude-sonnet-4-6".into(), "gpt-5".into()]),
        resolve: Box::new(|name| match name {
            "gpt-5" => Ok(Model { provider: "openai".into(), name: "gpt-5".into(), ..settings().model }),
            _ => Err(anyhow::anyhow!("there is no model `{name}`")),
        }),
    }
}

impl Stage {
    pub(super) fn new(columns: u16, rows: u16) -> Self {
        Self::with(columns, rows, true, Lang::En)
    }

    pub(super) fn with(columns: u16, rows: u16, color: bool, lang: Lang) -> Self {
        Self::led(columns, rows, color, lang, None, &opened())
    }

    /// With a team, or after a resume.
    pub(super) fn led(
        columns: u16,
        rows: u16,
        color: bool,
        lang: Lang,
        team: Option<Team>,
        opened: &OpenedSession,
    ) -> Self {
        let session = Session::new(lang, "Max".into(), models(), opened).with_team(team);
        Self::of(columns, rows, color, session, opened)
    }

    /// With what Enter does while a turn runs.
    pub(super) fn keyed(while_busy: WhileBusy, opened: &OpenedSession) -> Self {
        let session = Session::new(Lang::En, "Max".into(), models(), opened).with_keys(while_busy);
        Self::of(80, 24, true, session, opened)
    }

    fn of(columns: u16, rows: u16, color: bool, mut session: Session, opened: &OpenedSession) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let begun = session.begin(opened, Vec::new());
        let history = folder.path().join("history");
        let mut chat = Chat::new(session, history, "/home/me/project".into(), Theme { color }, columns.into());
        chat.at(START_MS);
        chat.greet();
        chat.show(begun);
        let mut stage = Self {
            chat,
            glass: Glass::new(columns.into(), rows.into()),
            acts: Vec::new(),
            screen: Screen::new(Size::new(columns, rows)),
            now_ms: START_MS,
            calls: 0,
            call: 0,
            cost: SessionCost::default(),
            _folder: folder,
        };
        stage.paint();
        stage
    }

    pub(super) fn paint(&mut self) {
        self.acts.extend(self.chat.session_mut().take_acts());
        let live = view(&mut self.chat, self.screen.rows_max(), self.now_ms);
        let mut bytes = Vec::new();
        self.screen.paint(&mut bytes, &self.chat.take_finished(), &live).unwrap();
        self.glass.feed(&bytes);
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub(super) fn wait(&mut self, ms: i64) {
        self.now_ms += ms;
        self.chat.at(self.now_ms);
        self.paint();
    }

    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        self.glass.resize(columns.into(), rows.into());
        let mut bytes = Vec::new();
        self.screen.resize(&mut bytes, Size::new(columns, rows)).unwrap();
        self.glass.feed(&bytes);
        self.chat.resize(columns.into());
        self.paint();
    }

    pub(super) fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<Wish> {
        let wish = self.chat.key(KeyEvent::new(code, modifiers));
        self.paint();
        wish
    }

    pub(super) fn key(&mut self, code: KeyCode) -> Option<Wish> {
        self.press(code, KeyModifiers::NONE)
    }

    pub(super) fn control(&mut self, letter: char) -> Option<Wish> {
        self.press(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    pub(super) fn write(&mut self, text: &str) {
        for letter in text.chars() {
            self.key(KeyCode::Char(letter));
        }
    }

    /// Writes and sends.
    pub(super) fn say(&mut self, text: &str) {
        self.write(text);
        self.key(KeyCode::Enter);
    }

    pub(super) fn event(&mut self, event: Event) {
        self.event_from(lead(), event);
    }

    pub(super) fn event_from(&mut self, from: Arc<Origin>, mut event: Event) {
        if let (Some(agent), Event::TurnEnded(ended)) = (from.agent, &mut event) {
            let Spending { calls, usage, nano, .. } = self.cost.turn(agent);
            let own =
                Charge { model: settings().model.name, calls, usage, nano, last_call: self.call, ..Charge::default() };
            ended.charges.extend((calls > 0).then_some(own));
        }
        from.agent.iter().for_each(|agent| self.cost.apply(*agent, &event));
        if let Event::LlmIntent(intent) = &event {
            self.call = intent.call;
        }
        let (session, event) = (session_id(), Arc::new(event));
        self.chat.notice(&Notice::Event { session, from, at_ms: self.now_ms, event });
        self.paint();
    }

    pub(super) fn delta(&mut self, delta: Delta) {
        self.delta_from(lead(), delta);
    }

    pub(super) fn delta_from(&mut self, from: Arc<Origin>, delta: Delta) {
        self.chat.notice(&Notice::Delta { session: session_id(), from, call: self.call, delta });
        self.paint();
    }

    pub(super) fn stream(&mut self, text: &str) {
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(7) {
            self.delta(Delta::Text(piece.iter().collect()));
        }
    }

    /// A turn begins with the message sent last (or with one from elsewhere), and the model is called.
    pub(super) fn begin(&mut self, text: &str) {
        let sent = self.acts.iter().rev().find_map(|act| match act {
            UiCommand::Say { key, text: said, .. } if said == text => Some(*key),
            _ => None,
        });
        let Event::TurnStarted(mut begun) = started(text) else { unreachable!() };
        begun.envelope = sent.unwrap_or(begun.envelope);
        self.event(Event::TurnStarted(begun));
        self.call();
    }

    pub(super) fn call(&mut self) {
        self.calls += 1;
        self.event(intent(self.calls, 1));
    }

    /// The call ends with these parts.
    pub(super) fn answer(&mut self, parts: Vec<Part>) {
        self.event(answer(self.calls, parts));
    }

    pub(super) fn end(&mut self, end: TurnOutcome) {
        self.event(ended(end));
    }

    pub(super) fn runs(&mut self, key: &str, tool: &str, action: Action) {
        self.event(runs(key, tool, action));
    }

    pub(super) fn done(&mut self, key: &str, ending: ToolOutcome, result: &str, is_error: bool, ms: u64) {
        let content = vec![Part::text(result)];
        self.event(Event::ToolDone(ToolDone {
            key: key.into(),
            ending,
            content,
            is_error,
            ms,
            refused: None,
            words: String::new(),
        }));
    }

    pub(super) fn asks(&mut self, number: u128, key: &str, action: Action) {
        self.event(Event::QuestionAsked(QuestionAsked {
            question: QuestionId::new(Uuid::from_u128(number)),
            key: key.into(),
            tool: "edit_file".into(),
            action,
            class: Repeatability::Idempotent,
            rule: "permission mode `default`".into(),
            basis: Basis::InMode(Mode::Default),
            memory: RememberedRule::Rules(vec!["Edit".into()]),
            recourse: Recourse::default(),
        }));
    }
}

pub(crate) fn intent(call: u32, attempt: u32) -> Event {
    let hash = Hash::of("x");
    Event::LlmIntent(LlmIntent {
        call,
        attempt,
        request: RequestRef { instructions: hash, tools: hash, settings: hash, window: Window::default(), upto: 1 },
        model: settings().model,
        fallback: false,
        max_tokens: 8_192,
        reserved_nano: 0,
        bytes: 0,
        hand_back: false,
        summary: None,
    })
}

pub(super) fn tool_use(name: &str, input: Value) -> Part {
    Part::ToolUse { id: "t".into(), name: name.into(), input: input.into() }
}

pub(crate) fn edit(target: &str, preview: &str) -> Action {
    Action { kind: ActionKind::Write, preview: preview.into(), ..Action::read(target) }
}

/// What somebody did in a copy is asked about.
pub(crate) fn merges(key: &str, preview: &str) -> Event {
    Event::QuestionAsked(QuestionAsked {
        question: QuestionId::new(Uuid::from_u128(7)),
        key: key.into(),
        tool: "dispatch_task".into(),
        action: Action { kind: ActionKind::Merge, ..edit("agt_01a1dfae29d575888718e5a0ab5218de", preview) },
        class: Repeatability::Idempotent,
        rule: "a person decides about changes in a worktree".into(),
        basis: Basis::WorktreeChanges,
        memory: RememberedRule::Nothing,
        recourse: Recourse::default(),
    })
}

pub(crate) fn started(text: &str) -> Event {
    Event::TurnStarted(TurnStarted {
        turn: TurnId::new(Uuid::from_u128(3)),
        envelope: EnvelopeId::new(Uuid::from_u128(99)),
        input: vec![Part::text(text)],
        assignment: None,
        recall: None,
        rewound: Vec::new(),
        envelopes: Vec::new(),
        quiet: false,
        hops: 0,
    })
}

pub(crate) fn ended(end: TurnOutcome) -> Event {
    let turn = TurnId::new(Uuid::from_u128(3));
    let (text, charges) = (String::new(), Vec::new());
    Event::TurnEnded(TurnEnded { turn, end, text, structured: None, charges, short: None, unknown_nano: 0 })
}

pub(crate) fn runs(key: &str, tool: &str, action: Action) -> Event {
    Event::ToolIntent(ToolIntent {
        key: key.into(),
        tool: tool.into(),
        input: Hash::of("x"),
        class: Repeatability::Pure,
        approval: Approval::Rule("r".into()),
        action,
        attended: false,
        rules: Vec::new(),
        bases: Vec::new(),
        words: String::new(),
    })
}

pub(super) fn answer(call: u32, parts: Vec<Part>) -> Event {
    let answer = Answer {
        message: Message::assistant(parts),
        stop: StopReason::EndTurn,
        usage: Usage { input: 1_200, output: 340, ..Usage::default() },
        request_id: None,
        model: "m".into(),
    };
    Event::LlmEnded(LlmEnded { call, outcome: LlmOutcome::Done(answer), ms: 10, summary: false, estimate: None })
}

pub(crate) fn answered(call: u32, text: &str) -> Event {
    answer(call, vec![Part::text(text)])
}
