//! One conversation as a face knows it: what was said, what is queued, what is asked, what it costs.
//!
//! Both faces (screen and lines) hold one. Notices and finished orders go in, items to show come out, and what the
//! user wants becomes orders ([`Session::take_acts`]). It draws nothing and waits for nothing. A message counts as
//! sent only when the journal has it: until then its text is kept here, and comes back if it could not be sent.

mod detach;
mod queue;
mod reopen;
mod rewind;
mod team;
mod teammates;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use max_team_core::agent::{Model, Settings};
use max_team_core::cost::{SessionCost, Spending};
use max_team_core::event::{Event, QuestionAnswered, TurnOutcome};
use max_team_core::id::{AgentId, EnvelopeId, QuestionId, SessionId};
use max_team_core::policy::{DecidedBy, GrantScope, Mode, PermissionAnswer};
use max_team_core::status::SessionStatus;
use max_team_runtime::rewind::RewindPlan;
use max_team_runtime::{
    Delta, Notice, OpenedSession, Origin, RuntimeError, SessionDetails, SessionRow, Team, Which, is_go_on,
};

use super::background::Background;
use super::command_queue::{Arrival, CommandResult, StatusReason, UiCommand};
use super::details::Details;
use super::members::{ActiveMember, Members};
use super::plans::Plans;
use super::question::{QuestionKind, Questions};
use super::rows::Row;
use super::slash::Slash;
use super::slash_output;
use super::task_panel::TaskPanel;
use super::teammates::Teammates;
use super::transcript::{Activity, Item, Transcript};
use max_team_workspace::config::choice::WhileBusy;
use max_team_workspace::i18n::Lang;

pub(super) use queue::QueuedMessage;
use queue::SentMessage;
use reopen::DeferredInput;
use team::is_of_list;

/// Turns of a resumed session that are shown again.
const REPLAY_TURNS_MAX: usize = 10;
/// What returns to the draft if a resume fails: the command, not the text that the program sent for it.
const GO_ON: &str = "/continue";
/// The modes that Shift+Tab goes through. Modes that never ask are chosen at the start, not by a slip of the finger.
const MODES: [Mode; 3] = [Mode::Default, Mode::AcceptEdits, Mode::Plan];

/// What a face asks of the settings: which models there are, and what one is.
pub struct Models {
    /// Names that `/model` lists.
    pub names: Box<dyn Fn() -> Vec<String> + Send>,
    /// The model behind a name, ready to be called.
    pub resolve: Resolve,
}

type Resolve = Box<dyn Fn(&str) -> anyhow::Result<Model> + Send>;

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Models")
    }
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) lang: Lang,
    /// The lead's name.
    pub(super) who: String,
    id: SessionId,
    /// The lead, as an agent.
    lead: AgentId,
    /// What was ordered, which the journal may not have confirmed yet.
    settings: Settings,
    setup: Setup,
    transcript: Transcript,
    plans: Plans,
    list: TaskPanel,
    crew: Members,
    teammates: Teammates,
    /// Which agents were stopped, and which teammates are to begin.
    agents: SessionStatus,
    background: Background,
    details: Details,
    pub(super) questions: Questions,
    messages: Messages,
    run: Run,
    cost: SessionCost,
    acts: Vec<UiCommand>,
    offered: LastOffers,
}

/// What the chat was started with.
#[derive(Debug)]
struct Setup {
    models: Models,
    /// Whether this is a demo, which cannot answer messages.
    recorded: bool,
    /// What Enter does while a turn runs.
    while_busy: WhileBusy,
    /// Skills that the user can ask for by name.
    skills: Vec<String>,
    team: Option<Team>,
    teams: TeamFiles,
    files: ProjectPaths,
}

/// The user's messages.
#[derive(Debug, Default)]
struct Messages {
    queue: Vec<QueuedMessage>,
    /// Messages to teammates that are not known to be read, oldest first.
    sent: Vec<SentMessage>,
    /// The message that is being taken back.
    taking_back: Option<EnvelopeId>,
    returned: Vec<String>,
    /// The messages that the last turn has read, and those that were taken back since it began.
    read: Vec<EnvelopeId>,
    /// How many messages wait for the lead since a stop, as the mail was last counted.
    waiting: usize,
    /// The same of teammates, as far as it was told.
    waits_told: HashMap<String, usize>,
    /// What is done once the session is open again.
    later: Vec<DeferredInput>,
}

/// The state of the session besides its agents.
#[derive(Debug, Default)]
struct Run {
    status: Option<SessionDetails>,
    /// Events that were replayed and may still come as notices.
    seen: Vec<(i64, Event)>,
    replaying: bool,
    /// Whether the runtime has said that all agents rest.
    quiet: bool,
    /// Why the session cannot go on here, if the runtime has said so: it is closed then.
    stopped: Option<String>,
    /// The session was handed over: what the user is told about it.
    detached: Option<String>,
    last: Option<TurnOutcome>,
    turns: usize,
    /// The user has stopped the session here, and no agent has begun anything since.
    halted: bool,
    /// Worktrees that are being made for teammates, by the order that asks for them, until all are there: how many there are, and
    /// how many there will be.
    copies: BTreeMap<EnvelopeId, (usize, usize)>,
}

/// What was shown last and the next command may refer to.
#[derive(Debug, Default)]
struct LastOffers {
    /// The question with which a plan's sheet was shown last.
    sheeted: Option<QuestionId>,
    listed: Vec<SessionRow>,
    /// What a rewind would restore.
    rewind: Option<Box<RewindPlan>>,
}

use teammates::ProjectPaths;
pub use teammates::TeamFiles;

impl Session {
    pub(super) fn new(lang: Lang, who: String, models: Models, opened: &OpenedSession) -> Self {
        let settings = Settings::clone(&opened.settings);
        let setup = Setup {
            models,
            recorded: false,
            while_busy: WhileBusy::default(),
            skills: opened.skills.clone(),
            team: None,
            teams: TeamFiles::default(),
            files: ProjectPaths::default(),
        };
        Self {
            lang,
            who,
            id: opened.session,
            lead: opened.agent,
            setup,
            transcript: Transcript::new(lang, settings.clone()),
            plans: Plans::default(),
            list: TaskPanel::default(),
            crew: Members::new(lang, settings.clone()),
            settings,
            teammates: Teammates::default(),
            agents: SessionStatus::default(),
            background: Background::default(),
            details: Details::default(),
            questions: Questions::default(),
            messages: Messages::default(),
            run: Run::default(),
            cost: SessionCost::default(),
            acts: Vec::new(),
            offered: LastOffers::default(),
        }
    }

    /// Begins, or moves to another session: shows where we are and what was said last.
    pub(super) fn begin(&mut self, opened: &OpenedSession, events: Vec<(i64, Event)>) -> Vec<Item> {
        let is_again = self.run.stopped.take().is_some() && self.id == opened.session;
        self.id = opened.session;
        self.offered.rewind = None;
        self.run.turns = 0;
        self.setup.skills.clone_from(&opened.skills);
        self.transcript = Transcript::new(self.lang, self.settings.clone());
        self.questions.clear();
        self.queue_again(&opened.queued);
        self.messages.sent.clear();
        (self.run.status, self.run.last, self.messages.waiting) = (None, None, 0);
        self.agents = SessionStatus::default();
        self.cost = opened.cost.clone();
        self.acts.push(UiCommand::Status(StatusReason::Footer));
        self.teammates.begin(is_again);
        self.run.copies.clear();
        self.messages.waits_told.clear();
        if opened.resumed {
            self.acts.push(UiCommand::Roll(false));
        }
        self.lead = opened.agent;
        self.run.quiet = !opened.continuing;
        let mut items = self.replay(events);
        self.join_team(opened);
        for (name, bytes) in &opened.instructions {
            items.push(note(slash_output::instruction(self.lang, name, *bytes)));
        }
        items.extend(opened.notes.iter().cloned().map(note));
        if is_again {
            // All of it is on the screen.
            items.clear();
        }
        items.extend(self.lang.recovered(&opened.recovered, opened.session).map(note));
        items.extend((!opened.moved.is_empty()).then(|| note(self.lang.moved_away(&opened.moved))));
        items.extend(self.counted(opened.held));
        items
    }

    fn replay(&mut self, events: Vec<(i64, Event)>) -> Vec<Item> {
        let starts = |(_, event): &(i64, Event)| matches!(event, Event::TurnStarted(_));
        self.run.turns = events.iter().filter(|event| starts(event)).count();
        let skipped = self.run.turns.saturating_sub(REPLAY_TURNS_MAX);
        let mut items = Vec::new();
        if skipped > 0 {
            items.push(note(format!("… {}", self.lang.earlier_left_out())));
        }
        let mut turn = 0;
        let mut current = 0;
        let lead = Origin { lead: true, ..Origin::agent(self.lead) };
        self.run.replaying = true;
        for (index, (at_ms, event)) in events.iter().enumerate() {
            if let Event::TurnStarted(_) = event {
                turn += 1;
                current = index;
            }
            // What comes before the turns is about them, and is not shown itself.
            let is_before = match event {
                Event::AgentStarted(_) | Event::Configured(_) => true,
                Event::Forked(_) => skipped == 0,
                _ => false,
            };
            if turn > skipped || is_before {
                items.extend(self.apply(&lead, *at_ms, event));
            }
        }
        self.run.replaying = false;
        self.run.seen = events.into_iter().skip(current).collect();
        items
    }

    pub(super) fn id(&self) -> SessionId {
        self.id
    }

    /// Says whether this is a demo.
    pub(super) fn set_recorded(&mut self, recorded: bool) {
        self.setup.recorded = recorded;
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.setup.recorded
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The pager with the last turn's calls.
    pub(super) fn details(&self) -> &Details {
        &self.details
    }

    pub(super) fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The user's messages that no agent has read yet.
    pub(super) fn queue(&self) -> Vec<&QueuedMessage> {
        self.messages.queue.iter().filter(|queued| !is_go_on(&queued.text)).collect()
    }

    pub(super) fn status(&self) -> Option<&SessionDetails> {
        self.run.status.as_ref()
    }

    /// The cost of all agents of the session.
    pub(super) fn cost(&self) -> &SessionCost {
        &self.cost
    }

    /// The cost of the lead's turn so far, with the agents that have worked for it.
    pub(super) fn turn_spending(&self) -> Spending {
        let mut sum = self.cost.turn(self.lead);
        sum += self.transcript.called_spending();
        sum
    }

    /// The cost of the turn that a member is in.
    pub(super) fn turn_nano(&self, teammate: &ActiveMember) -> u64 {
        self.cost.turn(teammate.agent).nano
    }

    /// Whether anything was ever said.
    pub(super) fn is_fresh(&self) -> bool {
        self.run.turns == 0
    }

    /// Whether a turn runs or is about to.
    pub(super) fn is_busy(&self) -> bool {
        self.transcript.is_busy() || self.messages.queue.iter().any(|queued| !self.is_left_waiting(queued.key))
    }

    /// Orders to send, oldest first.
    pub(super) fn take_acts(&mut self) -> Vec<UiCommand> {
        std::mem::take(&mut self.acts)
    }

    /// Messages that could not be sent.
    pub(super) fn take_returned(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages.returned)
    }

    /// Stops the lead's turn and the agents that it called. Waiting messages begin the next turn.
    pub(super) fn interrupt(&mut self) {
        if self.transcript.activity() != Activity::Stopping {
            self.acts.push(UiCommand::Interrupt);
        }
    }

    /// Stops everything in the session.
    pub(super) fn halt(&mut self) {
        self.run.halted = true;
        self.acts.push(UiCommand::StopSession);
    }

    pub(super) fn answer(&mut self, question: QuestionId, answer: PermissionAnswer) {
        self.questions.answered_here(question);
        // Something comes of it.
        self.run.quiet = false;
        self.acts.push(UiCommand::Answer { question, answer });
    }

    pub(super) fn next_mode(&mut self) {
        let index = MODES.iter().position(|mode| *mode == self.settings.mode).map_or(0, |index| index + 1);
        self.settings.mode = MODES.get(index).copied().unwrap_or_default();
        self.acts.push(UiCommand::Configure(Box::new(self.settings.clone())));
    }

    pub(super) fn notice(&mut self, notice: &Notice, now_ms: i64) -> Vec<Item> {
        match notice {
            Notice::Stopped { session, whole: true, error } if *session == self.id => self.runtime_stopped(error),
            // The others go on, and are heard. What only follows from what is on the screen is nothing to read about.
            Notice::Stopped { session, error, .. } if *session == self.id => {
                match self.is_stopped() && error.is_anothers() {
                    true => Vec::new(),
                    false => vec![Item::Row(Row::Error(self.lang.runtime_failure(error)))],
                }
            }
            // The session is closed here. Events of agents that still finish are in the journal, for the next process
            // that opens it.
            _ if self.is_stopped() => Vec::new(),
            Notice::Event { session, event, .. } if *session == self.id && is_of_list(event) => {
                self.list_changed();
                Vec::new()
            }
            Notice::Event { session, from, at_ms, event } if *session == self.id => self.event(from, *at_ms, event),
            Notice::Delta { session, from, call, delta } if *session == self.id => {
                if let (Some(agent), Delta::Usage(usage)) = (from.agent, delta) {
                    self.cost.apply_usage(agent, *call, *usage);
                }
                if from.lead {
                    return self.transcript.delta(*call, delta, now_ms);
                }
                self.crew.delta(from, *call, delta, now_ms);
                Vec::new()
            }
            Notice::Redefined { session, crew, notes } if *session == self.id => {
                self.hear_of_crew(crew.as_deref(), notes)
            }
            Notice::Copies { session, order, made, of } if *session == self.id => {
                self.run.copies.insert(*order, (*made, *of));
                if self.run.copies.values().all(|(made, of)| made >= of) {
                    self.run.copies.clear();
                }
                Vec::new()
            }
            Notice::Idle { session, waiting } if *session == self.id => {
                // An agent waits, but no question is open here: it was answered meanwhile, so that agent goes on.
                self.run.quiet = (!waiting || self.questions.all().next().is_some()) && !self.agents.is_joining();
                self.run.seen.clear();
                self.acts.push(UiCommand::Status(StatusReason::Footer));
                // Stopped agents write nothing more now, so the messages that wait can be counted.
                self.count_waiting();
                self.count_teammates_waiting();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn event(&mut self, from: &Origin, at_ms: i64, event: &Event) -> Vec<Item> {
        if let Some(agent) = from.agent {
            self.cost.apply(agent, event);
        }
        if let Some(plan) = from.plan {
            return self.plan_event(plan, at_ms, event);
        }
        if from.lead || from.agent.is_none() {
            if let Some(index) = self.run.seen.iter().position(|(at, seen)| *at == at_ms && seen == event) {
                self.run.seen.remove(index);
                return Vec::new();
            }
            return self.apply(from, at_ms, event);
        }
        let items = self.member_event(from, at_ms, event);
        for (who, row) in self.crew.take_tools() {
            self.details.add(Some(&who), &row);
        }
        items
    }

    fn apply(&mut self, from: &Origin, at_ms: i64, event: &Event) -> Vec<Item> {
        from.agent.into_iter().for_each(|agent| self.agents.apply(agent, &from.name, event));
        let mut items = self.transcript.event(at_ms, event);
        if matches!(event, Event::TurnStarted(_)) {
            self.details.clear();
        }
        for item in &items {
            if let Item::Row(Row::Tool(row)) = item {
                self.details.add(None, row);
            }
        }
        if !self.run.replaying {
            items.extend(self.hear_of_teammates(from, event));
        }
        match event {
            Event::Configured(configured) => self.settings = Settings::clone(&configured.settings),
            // A session that was opened earlier keeps its own lead.
            Event::AgentStarted(started) => self.who.clone_from(&started.definition.name),
            Event::Said(said) if !self.is_known(said.envelope) => {
                self.messages.queue.push(QueuedMessage { key: said.envelope, text: said.text.clone(), wait: false });
            }
            Event::Withdrawn(withdrawn) => self.was_read(&[withdrawn.envelope]),
            Event::Steered(steered) => self.lead_read(&steered.envelopes),
            Event::TurnStarted(started) => {
                (self.run.quiet, self.messages.waiting, self.run.halted) = (false, 0, false);
                self.run.turns = self.run.turns.max(1);
                self.messages.read.clear();
                self.lead_read(&[started.envelope]);
                self.lead_read(&started.envelopes);
            }
            // How many messages wait is told once the turn is over.
            Event::Interrupted(_) if !self.transcript.is_busy() => self.count_waiting(),
            Event::QuestionAsked(asked) => self.questions.ask(from, &self.who, asked),
            Event::QuestionAnswered(answered) => items.extend(self.answered(answered)),
            Event::ToolDone(_) => self.questions.keep(&self.agents),
            Event::TurnEnded(ended) => {
                self.questions.keep(&self.agents);
                self.run.last = Some(ended.end.clone());
                // `Notice::Idle` may come much later, so the footer is refreshed now.
                if !self.run.replaying {
                    self.acts.push(UiCommand::Status(StatusReason::Footer));
                }
                self.count_waiting();
            }
            _ => {}
        }
        items
    }

    /// A question was answered; if not in this chat, that is worth a line.
    fn answered(&mut self, answered: &QuestionAnswered) -> Option<Item> {
        let answer = &answered.answer;
        if answer.allow && answer.always && answer.until == GrantScope::Repository {
            // Only the chat that sent the answer stores its rules, and only once it is in the journal: another answer
            // may have come first.
            let rules = self.questions.rules_sent(answered.question);
            self.acts.extend((!rules.is_empty()).then_some(UiCommand::Remember(rules)));
        }
        self.run.quiet &= self.run.replaying;
        let question = self.questions.answered(answered.question).filter(|_| !self.run.replaying)?;
        // Answers that are not by a person, the lead or a rule are reported with the result of the call.
        if matches!(answer.by, DecidedBy::Nobody(_)) {
            return None;
        }
        let by = self.lang.author(&answer.by);
        let rules = match &question.matter {
            QuestionKind::Permit(permit) if answer.allow && answer.always => permit.memory.rules().join(", "),
            _ => String::new(),
        };
        let asked = format!("{}: {}", question.by.name, question.matter.words());
        let mut words = self.lang.answered_elsewhere(answer.allow, &asked, &by);
        if !rules.is_empty() {
            words.push_str(&self.lang.and_allowed(&rules, answer.until));
        }
        Some(note(words))
    }

    /// An answer could not be given.
    fn unanswered(&mut self, question: QuestionId, error: &RuntimeError) {
        self.run.quiet = true;
        // The question was already answered or is gone, so it is not shown again.
        if let RuntimeError::Answered { .. }
        | RuntimeError::NoQuestion(_)
        | RuntimeError::PlanStopping(_)
        | RuntimeError::PlanReplaced(_) = error
        {
            self.questions.answered(question);
        } else {
            self.questions.reopen(question);
        }
    }

    /// What became of an order.
    pub(super) fn done(&mut self, done: CommandResult, now_ms: i64) -> Vec<Item> {
        let failed = |error: &dyn fmt::Display| vec![Item::Row(Row::Error(error.to_string()))];
        match done {
            CommandResult::Said { outcome: Ok(()), .. } | CommandResult::Answered { outcome: Ok(()), .. } => Vec::new(),
            CommandResult::Withdrawn { key, text, outcome } => self.withdrawn(key, text, outcome),
            CommandResult::Interrupted(Ok(()))
            | CommandResult::Configured(Ok(()))
            | CommandResult::Remembered(Ok(())) => Vec::new(),
            CommandResult::Remembered(Err(words)) => failed(&words),
            CommandResult::Decided { outcome: Ok(()), .. }
            | CommandResult::Proposed(Ok(()))
            | CommandResult::Stopped(Ok(())) => Vec::new(),
            CommandResult::Said { key, text, outcome: Err(error) } => {
                // It may have left the queue: with the session, which has stopped meanwhile.
                self.messages.queue.retain(|queued| queued.key != key);
                self.messages.returned.push(if is_go_on(&text) { GO_ON.to_owned() } else { text });
                failed(&error)
            }
            CommandResult::Answered { question, outcome: Err(error) }
            | CommandResult::Decided { question, outcome: Err(error) } => {
                self.unanswered(question, &error);
                failed(&error)
            }
            CommandResult::Plan { plan, outcome: Ok(read) } => {
                self.plan_read(plan, *read, now_ms);
                Vec::new()
            }
            CommandResult::Plan { plan, outcome: Err(error) } => {
                self.plans.forget(plan);
                failed(&error)
            }
            CommandResult::Tasks(outcome) => self.list_read(outcome),
            CommandResult::Proposed(Err(error)) => {
                self.run.quiet = true;
                failed(&error)
            }
            CommandResult::Compacted(Ok(())) => self.ask(UiCommand::Status(StatusReason::Footer)),
            CommandResult::Interrupted(Err(error))
            | CommandResult::Stopped(Err(error))
            | CommandResult::Compacted(Err(error)) => failed(&error),
            done @ (CommandResult::Moments(_) | CommandResult::Rewinding(_) | CommandResult::Rewound(_)) => {
                self.rewind_done(done)
            }
            CommandResult::Configured(Err(error)) => {
                self.settings = self.transcript.settings().clone();
                failed(&error)
            }
            CommandResult::Status { reason, outcome: Ok(status) } => self.counted_up(reason, *status),
            CommandResult::Detached(outcome) => self.detached(outcome),
            CommandResult::Paths(_)
            | CommandResult::Left
            | CommandResult::Seen
            | CommandResult::Status { reason: StatusReason::Footer, outcome: Err(_) } => Vec::new(),
            CommandResult::Status { outcome: Err(error), .. } => failed(&error),
            done @ (CommandResult::Written { .. }
            | CommandResult::Continued { .. }
            | CommandResult::Held { .. }
            | CommandResult::TeammatesHeld(_)
            | CommandResult::Standing(_)
            | CommandResult::Recruited(_)
            | CommandResult::Roll { .. }
            | CommandResult::Messages(_)) => self.teammates_done(done, now_ms),
            CommandResult::Shown { wanted, outcome: Ok(shown) } => self.shown(wanted.as_deref(), &shown),
            CommandResult::Shown { outcome: Err(error), .. } => failed(&error),
            CommandResult::Sessions { wanted, outcome: Ok(rows) } => self.sessions(wanted, rows, now_ms),
            CommandResult::Sessions { outcome: Err(error), .. } => failed(&error),
            CommandResult::Opened { outcome: Err(error) } => {
                self.still_stopped();
                failed(&self.lang.runtime_failure(&error))
            }
            CommandResult::Opened { outcome: Ok(arrival) } => self.opened(arrival),
        }
    }

    /// What has been used so far was asked for.
    fn counted_up(&mut self, reason: StatusReason, status: SessionDetails) -> Vec<Item> {
        self.cost.merge(status.cost.clone());
        let items = match reason {
            StatusReason::Footer => Vec::new(),
            StatusReason::Cost => {
                vec![Item::Row(slash_output::cost(self.lang, &status, &self.cost, self.lead, &self.plans))]
            }
            StatusReason::Mcp => vec![Item::Row(slash_output::servers(self.lang, &status))],
            StatusReason::Context => vec![Item::Row(slash_output::context(self.lang, &status))],
        };
        self.run.status = Some(status);
        items
    }

    /// Another session is talked in from now on.
    fn opened(&mut self, Arrival { opened, events }: Arrival) -> Vec<Item> {
        let said = self.hear_of_crew(opened.crew.as_deref(), &[]);
        self.settings = Settings::clone(&opened.settings);
        if self.is_stopped() && opened.session == self.id {
            let mut items = said;
            items.extend(self.begin(&opened, events));
            items.extend(self.go_on_again(&opened));
            return items;
        }
        let what = if opened.resumed { self.lang.resumed() } else { self.lang.new_session() };
        let mut items = vec![note(format!("── {what} {}", opened.session))];
        items.extend(said);
        items.extend(self.begin(&opened, events));
        items
    }

    /// Whether the user can ask for a skill of that name: then it is no command of ours.
    pub(super) fn has_skill(&self, name: &str) -> bool {
        self.setup.skills.iter().any(|skill| skill == name)
    }

    /// Carries a slash command out. Leaving is the face's own business.
    pub(super) fn slash(&mut self, slash: Slash) -> Vec<Item> {
        // Another session can be opened from here.
        let is_possible =
            matches!(slash, Slash::Help | Slash::Quit | Slash::Clear | Slash::Resume(_) | Slash::Stop(None));
        if self.is_stopped() && !is_possible {
            return self.try_again(DeferredInput::Command(slash));
        }
        match slash {
            Slash::Help => slash_output::help(self.lang, self.setup.while_busy).into_iter().map(Item::Row).collect(),
            Slash::Quit => Vec::new(),
            Slash::Detach => self.detach(),
            Slash::Cost => self.ask(UiCommand::Status(StatusReason::Cost)),
            Slash::Context => self.ask(UiCommand::Status(StatusReason::Context)),
            Slash::Mcp => self.ask(UiCommand::Status(StatusReason::Mcp)),
            Slash::Compact(_) | Slash::Uncompact if self.is_busy() => vec![note(self.lang.busy_first().to_owned())],
            Slash::Compact(keep) => self.ask(UiCommand::Compact(keep)),
            Slash::Uncompact => self.ask(UiCommand::Uncompact),
            Slash::Rewind(back) => self.rewind(back),
            Slash::Model(None) => {
                let names = (self.setup.models.names)();
                vec![Item::Row(slash_output::models(self.lang, &self.settings.model, &names))]
            }
            Slash::Model(Some(name)) => match (self.setup.models.resolve)(&name) {
                Ok(model) => {
                    let mut now = format!("{}: {}/{}", self.lang.model_now(), model.provider, model.name);
                    if model.price.is_none() {
                        now.push_str(self.lang.unpriced_model());
                    }
                    self.settings.model = model;
                    self.acts.push(UiCommand::Configure(Box::new(self.settings.clone())));
                    vec![note(now)]
                }
                Err(error) => vec![Item::Row(Row::Error(format!("{error:#}")))],
            },
            Slash::Clear | Slash::Resume(_) if self.is_busy() => vec![note(self.lang.busy_first().to_owned())],
            Slash::Clear | Slash::Resume(_) if self.is_at_work() => {
                vec![note(self.lang.team_busy_first().to_owned())]
            }
            Slash::Continue(name) => self.go_on(name),
            Slash::Plan { full } => self.show_plan(full),
            Slash::Team => self.show_team(),
            Slash::TeamOther(words) => vec![note(self.lang.team_elsewhere(&words))],
            Slash::Load(name) => self.load(name.as_deref()),
            Slash::Send(argument) => self.send(argument.as_deref()),
            Slash::Show(wanted) => self.ask(UiCommand::Show(wanted)),
            Slash::Stop(task) => self.stop(task),
            Slash::Inbox => self.show_inbox(),
            Slash::Clear => self.open(Which::New),
            Slash::Resume(wanted) => self.ask(UiCommand::Sessions(wanted)),
        }
    }

    fn ask(&mut self, act: UiCommand) -> Vec<Item> {
        self.acts.push(act);
        Vec::new()
    }

    fn open(&mut self, which: Which) -> Vec<Item> {
        let settings = Box::new(self.settings.clone());
        self.ask(UiCommand::Open { which, settings })
    }

    /// Lists the other sessions, or opens the one that is meant: by its place in the list, or by a piece of its id.
    fn sessions(&mut self, wanted: Option<String>, rows: Vec<SessionRow>, now_ms: i64) -> Vec<Item> {
        let others = || rows.iter().filter(|row| row.session != self.id).cloned();
        let Some(wanted) = wanted else {
            self.offered.listed = others().collect();
            return vec![Item::Row(slash_output::sessions(self.lang, &self.offered.listed, now_ms))];
        };
        let by_number = wanted.parse::<usize>().ok().and_then(|number| {
            let listed = if self.offered.listed.is_empty() { others().collect() } else { self.offered.listed.clone() };
            number.checked_sub(1).and_then(|index| listed.get(index).map(|row| row.session))
        });
        let by_id = wanted.parse::<SessionId>().ok();
        let mut found = rows.iter().map(|row| row.session).filter(|id| id.to_string().contains(&wanted));
        let by_piece = found.next().filter(|_| found.next().is_none());
        match by_number.or(by_id).or(by_piece) {
            Some(id) if id == self.id => vec![note(self.lang.same_session().to_owned())],
            Some(id) => self.open(Which::Id(id)),
            None => vec![note(self.lang.unknown_session(&wanted))],
        }
    }
}

fn note(words: String) -> Item {
    Item::Row(Row::Note(words))
}
