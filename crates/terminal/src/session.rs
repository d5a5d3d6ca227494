//! One conversation as a face knows it: what was said, what is queued, what is asked, what it costs.
//!
//! Both faces (screen and lines) hold one. Notices and finished orders go in, items to show come out, and what the
//! user wants becomes orders ([`Session::take_acts`]). It draws nothing and waits for nothing. A message counts as
//! sent only when the journal has it: until then its text is kept here, and comes back if it could not be sent.

mod again;
mod mates;
mod queue;
mod rewind;
mod team;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use max_team_core::event::{End, Event, QuestionAnswered};
use max_team_core::id::{AgentId, EnvelopeId, QuestionId, SessionId};
use max_team_core::policy::{Answer, By, Mode, Until};
use max_team_core::stop::Held;
use max_team_core::team::{Model, Settings};
use max_team_runtime::rewind::Plan;
use max_team_runtime::{Notice, Opened, Origin, RuntimeError, SessionRow, Status, Team, Which, is_go_on};

use super::background::Background;
use super::crew::Crew;
use super::details::Details;
use super::link::{Act, Arrival, Done, Reason};
use super::list::List;
use super::mates::Mates;
use super::plans::Plans;
use super::question::{Matter, Questions};
use super::report;
use super::rows::Row;
use super::slash::Slash;
use super::transcript::{Activity, Item, Transcript};
use max_team_workspace::config::choice::WhileBusy;
use max_team_workspace::words::Lang;

use again::Later;
pub(super) use queue::Queued;
use queue::Sent;
use team::is_of_list;

/// Turns of a resumed session that are shown again.
const REPLAY_TURNS_MAX: usize = 10;
/// What the user said where the program says in its own words that somebody is to go on.
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
    /// What was ordered, which the journal may not have confirmed yet.
    settings: Settings,
    models: Models,
    /// Whether this is a demo, which cannot answer messages.
    recorded: bool,
    transcript: Transcript,
    team: Option<Team>,
    /// The lead, as an agent.
    lead: AgentId,
    plans: Plans,
    list: List,
    crew: Crew,
    background: Background,
    details: Details,
    pub(super) questions: Questions,
    /// The question with which a plan's sheet was shown last.
    sheeted: Option<QuestionId>,
    queue: Vec<Queued>,
    /// What Enter does while a turn runs.
    while_busy: WhileBusy,
    /// What was written to teammates, as far as it is not known to be read, oldest first.
    sent: Vec<Sent>,
    /// What a stop has left waiting at the lead when it came.
    held: Option<Held>,
    /// How many letters wait there since a stop, as the mail was last counted.
    waiting: usize,
    /// Somebody has said stop here, and nobody has begun anything since.
    halted: bool,
    /// The message that is being taken back.
    taking_back: Option<EnvelopeId>,
    status: Option<Status>,
    /// What the team had spent when that was said.
    counted_nano: u64,
    acts: Vec<Act>,
    returned: Vec<String>,
    listed: Vec<SessionRow>,
    /// Events that were replayed and may still come as notices.
    seen: Vec<(i64, Event)>,
    replaying: bool,
    /// Whether the house has said that nobody does anything.
    quiet: bool,
    /// Why the session cannot go on here, if the house has said so: it is let go of then.
    stopped: Option<String>,
    /// What is done once it is open again.
    later: Vec<Later>,
    /// What the last turn was told, and what was taken back since it began.
    read: Vec<EnvelopeId>,
    last: Option<End>,
    turns: usize,
    /// Skills that the user can ask for by name.
    skills: Vec<String>,
    mates: Mates,
    /// Those who are to be on the team and have not begun, by name.
    joining: Vec<String>,
    /// Copies of the project that are being made for them, by the order that asks for them, until all are there: how many there
    /// are, and how many there will be.
    copies: BTreeMap<EnvelopeId, (usize, usize)>,
    /// Teammates of whom was said that so many letters wait for them since a stop.
    waits_told: HashMap<String, usize>,
    /// Teammates who were stopped and have begun nothing since.
    stopped_mates: BTreeMap<String, AgentId>,
    teams: Teams,
    files: Files,
    /// What was shown that would be put back.
    rewind: Option<Box<Plan>>,
}

use mates::Files;
pub use mates::Teams;

impl Session {
    pub(super) fn new(lang: Lang, who: String, models: Models, opened: &Opened) -> Self {
        let settings = Settings::clone(&opened.settings);
        Self {
            lang,
            who,
            id: opened.session,
            transcript: Transcript::new(lang, settings.clone()),
            team: None,
            lead: opened.agent,
            plans: Plans::default(),
            list: List::default(),
            crew: Crew::new(lang, settings.clone()),
            background: Background::default(),
            details: Details::default(),
            settings,
            models,
            recorded: false,
            questions: Questions::default(),
            sheeted: None,
            queue: Vec::new(),
            while_busy: WhileBusy::default(),
            sent: Vec::new(),
            held: None,
            waiting: 0,
            halted: false,
            taking_back: None,
            status: None,
            counted_nano: 0,
            acts: Vec::new(),
            returned: Vec::new(),
            listed: Vec::new(),
            seen: Vec::new(),
            replaying: false,
            quiet: false,
            stopped: None,
            later: Vec::new(),
            read: Vec::new(),
            last: None,
            turns: 0,
            skills: opened.skills.clone(),
            mates: Mates::default(),
            joining: Vec::new(),
            copies: BTreeMap::new(),
            waits_told: HashMap::new(),
            stopped_mates: BTreeMap::new(),
            teams: Teams::default(),
            files: Files::default(),
            rewind: None,
        }
    }

    /// Begins, or moves to another session: shows where we are and what was said last.
    pub(super) fn begin(&mut self, opened: &Opened, events: Vec<(i64, Event)>) -> Vec<Item> {
        let is_again = self.stopped.take().is_some() && self.id == opened.session;
        self.id = opened.session;
        self.rewind = None;
        self.turns = 0;
        self.skills.clone_from(&opened.skills);
        self.transcript = Transcript::new(self.lang, self.settings.clone());
        self.questions.clear();
        self.queue_again(&opened.queued);
        self.sent.clear();
        (self.status, self.last, self.held, self.waiting) = (None, None, None, 0);
        self.acts.push(Act::Status(Reason::Footer));
        self.mates.begin(is_again);
        self.joining.clear();
        self.copies.clear();
        self.waits_told.clear();
        self.stopped_mates.clear();
        if opened.resumed {
            self.acts.push(Act::Roll(false));
        }
        self.lead = opened.agent;
        self.quiet = !opened.continuing;
        let mut items = self.replay(events);
        self.join_team(opened);
        for (name, bytes) in &opened.instructions {
            items.push(note(report::instruction(self.lang, name, *bytes)));
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
        self.turns = events.iter().filter(|event| starts(event)).count();
        let skipped = self.turns.saturating_sub(REPLAY_TURNS_MAX);
        let mut items = Vec::new();
        if skipped > 0 {
            items.push(note(format!("… {}", self.lang.earlier_left_out())));
        }
        let mut turn = 0;
        let mut current = 0;
        let lead = Origin { lead: true, ..Origin::agent(self.lead) };
        self.replaying = true;
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
        self.replaying = false;
        self.seen = events.into_iter().skip(current).collect();
        items
    }

    pub(super) fn id(&self) -> SessionId {
        self.id
    }

    /// Says whether this is a demo.
    pub(super) fn set_recorded(&mut self, recorded: bool) {
        self.recorded = recorded;
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.recorded
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

    /// What the user has said that nobody has read.
    pub(super) fn queue(&self) -> Vec<&Queued> {
        self.queue.iter().filter(|queued| !is_go_on(&queued.text)).collect()
    }

    pub(super) fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    /// What the session has cost at most, as far as it is known by now: what its status said, and what the team has spent since.
    pub(super) fn nano(&self) -> u64 {
        let own = |status: &Status| status.ledger.spent_nano.saturating_add(status.ledger.unknown_nano);
        let said = self.status.as_ref().map_or(0, |status| own(status).saturating_add(status.others_nano));
        said.saturating_add(self.crew.spent_nano().saturating_sub(self.counted_nano))
    }

    /// Whether some of that may not have been paid: the outcome of a call is unknown.
    pub(super) fn is_estimated(&self) -> bool {
        let is_unknown = |status: &Status| status.ledger.unknown_nano > 0 || status.others_unknown_nano > 0;
        self.crew.is_estimated() || self.status.as_ref().is_some_and(is_unknown)
    }

    /// How the last turn ended, if one did.
    pub(super) fn last(&self) -> Option<&End> {
        self.last.as_ref()
    }

    /// Whether anything was ever said.
    pub(super) fn is_fresh(&self) -> bool {
        self.turns == 0
    }

    /// Whether a turn runs or is about to.
    pub(super) fn is_busy(&self) -> bool {
        self.transcript.is_busy() || self.queue.iter().any(|queued| !self.is_left_waiting(queued.key))
    }

    /// Orders to send, oldest first.
    pub(super) fn take_acts(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.acts)
    }

    /// Messages that could not be sent.
    pub(super) fn take_returned(&mut self) -> Vec<String> {
        std::mem::take(&mut self.returned)
    }

    /// Stops the turn that runs; what was said meanwhile is told next.
    pub(super) fn interrupt(&mut self) {
        if self.transcript.activity() != Activity::Stopping {
            self.acts.push(Act::Interrupt);
        }
    }

    /// Stops whoever is at work; nothing begins before somebody writes anew.
    pub(super) fn halt(&mut self) {
        self.halted = true;
        self.acts.push(Act::Halt);
    }

    pub(super) fn answer(&mut self, question: QuestionId, answer: Answer) {
        self.questions.answered_here(question);
        // Something comes of it.
        self.quiet = false;
        self.acts.push(Act::Answer { question, answer });
    }

    pub(super) fn next_mode(&mut self) {
        let index = MODES.iter().position(|mode| *mode == self.settings.mode).map_or(0, |index| index + 1);
        self.settings.mode = MODES.get(index).copied().unwrap_or_default();
        self.acts.push(Act::Configure(Box::new(self.settings.clone())));
    }

    pub(super) fn notice(&mut self, notice: &Notice, now_ms: i64) -> Vec<Item> {
        match notice {
            Notice::Stopped { session, whole: true, error } if *session == self.id => self.house_stopped(error),
            // The others go on, and are heard. What only follows from what is on the screen is nothing to read about.
            Notice::Stopped { session, error, .. } if *session == self.id => {
                match self.is_stopped() && error.is_anothers() {
                    true => Vec::new(),
                    false => vec![Item::Row(Row::Error(self.lang.runtime_failure(error)))],
                }
            }
            // What others still bring to an end is in the journal, for whoever opens the session next.
            _ if self.is_stopped() => Vec::new(),
            Notice::Event { session, event, .. } if *session == self.id && is_of_list(event) => {
                self.list_changed();
                Vec::new()
            }
            Notice::Event { session, from, at_ms, event } if *session == self.id => match from.plan {
                Some(plan) => self.plan_event(plan, *at_ms, event),
                None if from.lead || from.agent.is_none() => {
                    if let Some(index) = self.seen.iter().position(|(at, seen)| at == at_ms && *seen == **event) {
                        self.seen.remove(index);
                        return Vec::new();
                    }
                    self.apply(from, *at_ms, event)
                }
                None => {
                    let items = self.member_event(from, *at_ms, event);
                    for (who, row) in self.crew.take_tools() {
                        self.details.add(Some(&who), &row);
                    }
                    items
                }
            },
            Notice::Delta { session, from, call, delta } if *session == self.id => {
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
                self.copies.insert(*order, (*made, *of));
                if self.copies.values().all(|(made, of)| made >= of) {
                    self.copies.clear();
                }
                Vec::new()
            }
            Notice::Idle { session, waiting } if *session == self.id => {
                // Whoever waited for an answer that was given since goes on.
                self.quiet = (!waiting || self.questions.all().next().is_some()) && self.joining.is_empty();
                self.seen.clear();
                self.acts.push(Act::Status(Reason::Footer));
                // Whoever was stopped has written its last by now.
                self.count_waiting();
                self.count_mates_waiting();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn apply(&mut self, from: &Origin, at_ms: i64, event: &Event) -> Vec<Item> {
        let mut items = self.transcript.event(at_ms, event);
        if matches!(event, Event::TurnStarted(_)) {
            self.details.clear();
        }
        for item in &items {
            if let Item::Row(Row::Tool(row)) = item {
                self.details.add(None, row);
            }
        }
        if !self.replaying {
            items.extend(self.hear_of_mates(from, event));
        }
        match event {
            Event::Configured(configured) => self.settings = Settings::clone(&configured.settings),
            // A session that was opened earlier keeps its own lead.
            Event::AgentStarted(started) => self.who.clone_from(&started.definition.name),
            Event::Said(said) if !self.is_known(said.envelope) => {
                self.queue.push(Queued { key: said.envelope, text: said.text.clone(), wait: false });
            }
            Event::Withdrawn(withdrawn) => self.was_read(&[withdrawn.envelope]),
            Event::Steered(steered) => self.lead_read(&steered.envelopes),
            Event::TurnStarted(started) => {
                (self.quiet, self.held, self.waiting, self.halted) = (false, None, 0, false);
                self.turns = self.turns.max(1);
                self.read.clear();
                self.lead_read(&[started.envelope]);
                self.lead_read(&started.letters);
            }
            Event::Interrupted(interrupted) => self.left_waiting(interrupted),
            Event::QuestionAsked(asked) => self.questions.ask(from, &self.who, asked),
            Event::QuestionAnswered(answered) => items.extend(self.answered(answered)),
            Event::ToolDone(done) => self.questions.close(from.agent, &done.key),
            Event::TurnEnded(ended) => {
                self.questions.close_all_of(from.agent);
                self.last = Some(ended.end.clone());
                // It may be long before the house says that nobody does anything.
                if !self.replaying {
                    self.acts.push(Act::Status(Reason::Footer));
                }
                self.count_waiting();
            }
            _ => {}
        }
        items
    }

    /// Somebody answered a question; if it was not us, that is worth a line.
    fn answered(&mut self, answered: &QuestionAnswered) -> Option<Item> {
        let answer = &answered.answer;
        if answer.allow && answer.always && answer.until == Until::Repository {
            // Whoever said it writes it down, and not before it counts: somebody may have been faster.
            let rules = self.questions.rules_sent(answered.question);
            self.acts.extend((!rules.is_empty()).then_some(Act::Remember(rules)));
        }
        self.quiet &= self.replaying;
        let question = self.questions.answered(answered.question).filter(|_| !self.replaying)?;
        // What nobody could be asked about is told with what came of it.
        let (By::Person(by) | By::Lead(by) | By::Rule(by)) = &answer.by else { return None };
        let by = self.lang.told(by);
        let rules = match &question.matter {
            Matter::Permit(permit) if answer.allow && answer.always => permit.memory.rules().join(", "),
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
        self.quiet = true;
        // Somebody was faster, or nobody asks any more: asking again would help nobody.
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
    pub(super) fn done(&mut self, done: Done, now_ms: i64) -> Vec<Item> {
        let failed = |error: &dyn fmt::Display| vec![Item::Row(Row::Error(error.to_string()))];
        match done {
            Done::Said { outcome: Ok(()), .. } => Vec::new(),
            Done::Withdrawn { key, text, outcome } => self.withdrawn(key, text, outcome),
            Done::Answered { outcome: Ok(()), .. } => Vec::new(),
            Done::Interrupted(Ok(())) | Done::Configured(Ok(())) | Done::Remembered(Ok(())) => Vec::new(),
            Done::Remembered(Err(words)) => failed(&words),
            Done::Decided { outcome: Ok(()), .. } | Done::Proposed(Ok(())) | Done::Stopped(Ok(())) => Vec::new(),
            Done::Said { key, text, outcome: Err(error) } => {
                // It may have left the queue: with the session, which has stopped meanwhile.
                self.queue.retain(|queued| queued.key != key);
                self.returned.push(if is_go_on(&text) { GO_ON.to_owned() } else { text });
                failed(&error)
            }
            Done::Answered { question, outcome: Err(error) } | Done::Decided { question, outcome: Err(error) } => {
                self.unanswered(question, &error);
                failed(&error)
            }
            Done::Plan { plan, outcome: Ok(read) } => {
                self.plan_read(plan, *read, now_ms);
                Vec::new()
            }
            Done::Plan { plan, outcome: Err(error) } => {
                self.plans.forget(plan);
                failed(&error)
            }
            Done::Tasks(outcome) => self.list_read(outcome),
            Done::Proposed(Err(error)) => {
                self.quiet = true;
                failed(&error)
            }
            Done::Compacted(Ok(())) => self.ask(Act::Status(Reason::Footer)),
            Done::Interrupted(Err(error)) | Done::Stopped(Err(error)) | Done::Compacted(Err(error)) => failed(&error),
            done @ (Done::Moments(_) | Done::Rewinding(_) | Done::Rewound(_)) => self.rewind_done(done),
            Done::Configured(Err(error)) => {
                self.settings = self.transcript.settings().clone();
                failed(&error)
            }
            Done::Status { reason, outcome: Ok(status) } => self.counted_up(reason, *status),
            Done::Paths(_) | Done::Left | Done::Seen | Done::Status { reason: Reason::Footer, outcome: Err(_) } => {
                Vec::new()
            }
            Done::Status { outcome: Err(error), .. } => failed(&error),
            done @ (Done::Written { .. }
            | Done::Continued { .. }
            | Done::Held { .. }
            | Done::MatesHeld(_)
            | Done::Standing(_)
            | Done::Recruited(_)
            | Done::Roll { .. }
            | Done::Letters(_)) => self.mates_done(done, now_ms),
            Done::Shown { wanted, outcome: Ok(shown) } => self.shown(wanted.as_deref(), &shown),
            Done::Shown { outcome: Err(error), .. } => failed(&error),
            Done::Sessions { wanted, outcome: Ok(rows) } => self.sessions(wanted, rows, now_ms),
            Done::Sessions { outcome: Err(error), .. } => failed(&error),
            Done::Opened { outcome: Err(error) } => {
                self.still_stopped();
                failed(&self.lang.runtime_failure(&error))
            }
            Done::Opened { outcome: Ok(arrival) } => self.opened(arrival),
        }
    }

    /// What has been used so far was asked for.
    fn counted_up(&mut self, reason: Reason, status: Status) -> Vec<Item> {
        let items = match reason {
            Reason::Footer => Vec::new(),
            Reason::Cost => vec![Item::Row(report::cost(self.lang, &status, &self.plans))],
            Reason::Context => vec![Item::Row(report::context(self.lang, &status))],
        };
        self.status = Some(status);
        self.counted_nano = self.crew.counted_by_house();
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
        self.skills.iter().any(|skill| skill == name)
    }

    /// Carries a slash command out. Leaving is the face's own business.
    pub(super) fn slash(&mut self, slash: Slash) -> Vec<Item> {
        // Another session can be opened from here.
        let is_possible =
            matches!(slash, Slash::Help | Slash::Quit | Slash::Clear | Slash::Resume(_) | Slash::Stop(None));
        if self.is_stopped() && !is_possible {
            return self.try_again(Later::Command(slash));
        }
        match slash {
            Slash::Help => report::help(self.lang, self.while_busy).into_iter().map(Item::Row).collect(),
            Slash::Quit => Vec::new(),
            Slash::Cost => self.ask(Act::Status(Reason::Cost)),
            Slash::Context => self.ask(Act::Status(Reason::Context)),
            Slash::Compact(_) | Slash::Uncompact if self.is_busy() => vec![note(self.lang.busy_first().to_owned())],
            Slash::Compact(keep) => self.ask(Act::Compact(keep)),
            Slash::Uncompact => self.ask(Act::Uncompact),
            Slash::Rewind(back) => self.rewind(back),
            Slash::Model(None) => {
                let names = (self.models.names)();
                vec![Item::Row(report::models(self.lang, &self.settings.model, &names))]
            }
            Slash::Model(Some(name)) => match (self.models.resolve)(&name) {
                Ok(model) => {
                    let mut now = format!("{}: {}/{}", self.lang.model_now(), model.provider, model.name);
                    if model.price.is_none() {
                        now.push_str(self.lang.unpriced_model());
                    }
                    self.settings.model = model;
                    self.acts.push(Act::Configure(Box::new(self.settings.clone())));
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
            Slash::Show(wanted) => self.ask(Act::Show(wanted)),
            Slash::Stop(task) => self.stop(task),
            Slash::Inbox => self.show_inbox(),
            Slash::Clear => self.open(Which::New),
            Slash::Resume(wanted) => self.ask(Act::Sessions(wanted)),
        }
    }

    fn ask(&mut self, act: Act) -> Vec<Item> {
        self.acts.push(act);
        Vec::new()
    }

    fn open(&mut self, which: Which) -> Vec<Item> {
        let settings = Box::new(self.settings.clone());
        self.ask(Act::Open { which, settings })
    }

    /// Lists the other sessions, or opens the one that is meant: by its place in the list, or by a piece of its id.
    fn sessions(&mut self, wanted: Option<String>, rows: Vec<SessionRow>, now_ms: i64) -> Vec<Item> {
        let others = || rows.iter().filter(|row| row.session != self.id).cloned();
        let Some(wanted) = wanted else {
            self.listed = others().collect();
            return vec![Item::Row(report::sessions(self.lang, &self.listed, now_ms))];
        };
        let by_number = wanted.parse::<usize>().ok().and_then(|number| {
            let listed = if self.listed.is_empty() { others().collect() } else { self.listed.clone() };
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
