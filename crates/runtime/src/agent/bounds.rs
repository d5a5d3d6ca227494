//! What an agent's definition and settings follow from: its session, its caller, and changes of its definition.

use std::sync::Arc;

use max_team_core::agent::{Definition, Model, Settings};
use max_team_core::event::Event;
use max_team_core::message::Address;
use max_team_core::policy::DecidedBy;
use max_team_core::turn::TurnInput;

use super::{Agent, Extra, Frame};
use crate::error::RuntimeError;
use crate::handle::Origin;
use crate::worktree;

#[derive(Debug)]
pub(super) struct Bounds {
    /// The agent that has called it, if one has: it never has more rights than its caller.
    pub(super) caller: Option<Address>,
    /// The version of the session's rules that its settings follow.
    followed: Option<u64>,
    /// Its definition from the next turn on.
    pub(super) next: Option<Box<Redefined>>,
}

impl Bounds {
    pub(super) fn new(caller: Option<Address>) -> Self {
        Self { caller, followed: None, next: None }
    }
}

/// A new definition for a lead.
#[derive(Debug)]
pub(crate) struct Redefined {
    pub definition: Arc<Definition>,
    pub frame: Frame,
    /// The model, if it is another one.
    pub model: Option<Model>,
}

impl Agent {
    /// Works under other settings from now on, where it works already.
    pub(super) async fn reconfigure(&mut self, settings: Settings, by: DecidedBy) -> Result<(), RuntimeError> {
        let known = &self.frame.settings().permissions;
        let permissions = worktree::still(known, &settings.permissions);
        self.configure(Settings { permissions, ..settings }, Some(by)).await
    }

    /// Works under other settings from now on, because a person or the lead wants that (`by`), or because its session has changed.
    pub(super) async fn configure(&mut self, settings: Settings, by: Option<DecidedBy>) -> Result<(), RuntimeError> {
        self.bounds.followed = None;
        let settings = Arc::new(settings);
        self.frame.configure(&settings);
        self.active.rebind(&self.turn.stream, &settings);
        let events = wanted_by(self.decide(TurnInput::Configure(settings)), by);
        self.commit(events, Extra::default()).await
    }

    /// Is what it is written to be now. What else it works under is the session's, which may have changed meanwhile.
    pub(super) async fn redefine(&mut self) -> Result<(), RuntimeError> {
        let Some(Redefined { definition, frame, model }) = self.bounds.next.take().map(|next| *next) else {
            return Ok(());
        };
        let now = Settings::clone(self.frame.settings());
        let turn_ms = frame.settings().turn_ms;
        let settings =
            Settings { model: model.unwrap_or(now.model), turn_ms, ..now }.limited_by(&frame.settings().constraints);
        let settings = Arc::new(settings);
        self.frame = frame.under(&settings);
        self.frame.reveal_from(self.turn.history());
        self.active.rebind(&self.turn.stream, &settings);
        self.turn.origin = Arc::new(Origin { name: definition.name.as_str().into(), ..(*self.turn.origin).clone() });
        let events = self.decide(TurnInput::Redefine(definition, settings));
        self.commit(events, Extra::default()).await
    }

    /// A member is as free as its session, its definition and its caller are now, not as they were when the task began:
    /// what has become stricter holds from the next judgement on.
    pub(super) async fn follow(&mut self) -> Result<(), RuntimeError> {
        let rules = self.active.rules();
        if self.bounds.followed == Some(rules) {
            return Ok(());
        }
        let Some(settings) = self.turn.settings().filter(|_| !self.turn.origin.lead) else { return Ok(()) };
        let [tools, sources] = self.active.lost(self.frame.definition(), self.bounds.caller.as_deref());
        self.frame.lose(&tools);
        if self.frame.lose_sources(&sources, &self.active.shared) {
            self.frame.reveal_from(self.turn.history());
        }
        match self.active.settings_now(self.frame.definition(), settings, self.bounds.caller.as_deref())? {
            Some(settings) => self.configure(settings, None).await,
            None => {
                self.bounds.followed = Some(rules);
                Ok(())
            }
        }
    }
}

/// Adds to a change of settings who asked for it.
pub(super) fn wanted_by(mut events: Vec<Event>, by: Option<DecidedBy>) -> Vec<Event> {
    for event in &mut events {
        if let Event::Configured(configured) = event {
            configured.by.clone_from(&by);
        }
    }
    events
}
