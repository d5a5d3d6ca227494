//! `-p`, `run` and `plan`: one prompt in, one answer out, for scripts.
//!
//! Standard output carries data only (text, one JSON object, or JSON lines); talk goes to standard error. A question waits
//! in the user's inbox, and the exit code is 5 (`questions`).

mod events;
mod finish;
mod out;
mod questions;
mod repeat;
mod run_result;
mod run_state;
mod silence;
mod stdin_messages;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use max_team_core::chat::{Message, Part};
use max_team_core::event::{Event, Interrupted, LlmOutcome, Refusal, ToolDone, ToolOutcome, TurnEnded};
use max_team_core::id::{EnvelopeId, PlanId, SessionId, TurnId};
use max_team_core::mention;
use max_team_core::message::{MessageKind, Principal};
use max_team_core::plan::Draft;
use max_team_core::policy::DecidedBy;
use max_team_core::rewind::MovedFile;
use max_team_core::secret::{redact, redact_value};
use max_team_runtime::query;
use max_team_runtime::{
    CONTINUE, Command, Delta, Mark, Notice, OpenOptions, OpenedSession, Order, Origin, READ_ON, Scope, Spawn,
    TIME_OVER, TeamHandle, new_id,
};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::args::{Format, Input};
use crate::commands::last_lines;
use crate::recordings;
use crate::signals::Signals;
use crate::stream_json;
use max_team_terminal::plan_text;
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;

use events::{RunEvent, RunEvents};
pub(crate) use max_team_core::verdict::{RunVerdict, end_name};
pub(crate) use out::OutputLines;
use questions::AnswerReach;
pub(crate) use questions::DemoAnswers;
use run_state::RunState;
use silence::SilenceWatch;
pub(crate) use stdin_messages::slash_fault;

/// What the lead is told when only a plan is wanted.
const PROPOSE: &str = include_str!("../../../../prompts/propose.md");
/// How long a terminated run waits for its output to be read.
const STOPPED_WAIT: Duration = Duration::from_secs(1);
/// How long those who work beside a session are waited for once its answer is out.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// How long an interrupted skill has to end after its time limit; then the run stops waiting for it.
const LIMIT_GRACE: Duration = Duration::from_secs(5);

/// Refused calls that are named on standard error; `permission_denials` has all of the lead's.
const REFUSALS_TOLD_MAX: usize = 10;

/// One headless run.
pub(crate) struct Headless {
    pub(crate) handle: TeamHandle,
    pub(crate) by: Principal,
    pub(crate) cwd: std::path::PathBuf,
    pub(crate) task: Task,
    pub(crate) format: Format,
    pub(crate) partial: bool,
    pub(crate) key_source: String,
    /// The user's answers to questions that come during the run.
    pub(crate) consent: Consent,
    pub(crate) lang: Lang,
    /// Print what the run waits for.
    pub(crate) verbose: bool,
    /// Buffers lines for a slow reader.
    pub(crate) out: OutputLines,
    /// Teammates that begin before anything is said.
    pub(crate) teammates: Vec<Spawn>,
    /// Where the run is written down afterwards.
    pub(crate) record: Option<PathBuf>,
    /// The name and time limit of a skill. After the limit it is interrupted; after `LIMIT_GRACE` the run ends without
    /// it.
    pub(crate) limit: Option<(String, Duration)>,
}

/// Answers that the user gave before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// None: questions wait in the inbox, or are refused.
    Nothing,
    /// Plans are approved as they come.
    Plans,
    /// Every question has an answer: a demo asks no person.
    Everything {
        answers: DemoAnswers,
        /// The changes that the user wants in the first plan.
        objection: Option<&'static str>,
    },
}

/// What a headless run is for.
pub(crate) enum Task {
    /// Answer this; without words, go on with what is open.
    Say(String),
    /// Answer messages from standard input until it ends: JSON lines, or plain lines one after the other.
    Listen(Input),
    /// Carry this plan out.
    Run {
        draft: Box<Draft>,
        /// Where it comes from.
        source: String,
    },
    /// Only propose: the plan goes here, or to standard output.
    Plan { goal: String, output: Option<PathBuf> },
}

impl Headless {
    /// A run that prints text and asks no one.
    pub(crate) fn new(place: &AppEnv, team: &TeamHandle, cwd: PathBuf, task: Task, lang: Lang) -> Self {
        Self {
            handle: team.clone(),
            by: place.principal("headless"),
            cwd,
            task,
            format: Format::Text,
            partial: false,
            key_source: "none".to_owned(),
            consent: Consent::Nothing,
            lang,
            verbose: false,
            out: OutputLines::default(),
            teammates: Vec::new(),
            record: None,
            limit: None,
        }
    }

    pub(crate) async fn run(self, open: OpenOptions, mut signals: Signals) -> anyhow::Result<Exit> {
        let exit = self.answer(open, &mut signals).await;
        // Waits until the remaining lines are read, or for a signal; a terminated run waits only briefly.
        let is_stopped = matches!(exit, Ok(Exit::Terminated | Exit::Interrupted));
        let patience = if matches!(exit, Ok(Exit::Terminated)) { STOPPED_WAIT } else { Duration::MAX };
        let stopped = tokio::select! {
            closed = self.out.close() => closed.map(|()| None),
            signal = signals.next() => Ok(Some(signal)),
            () = tokio::time::sleep(patience) => Ok(None),
        };
        let exit = exit?;
        match stopped {
            Err(_) if is_stopped => Ok(exit),
            // After a signal the reader has not got all lines, so the signal decides the exit code.
            stopped => Ok(stopped?.unwrap_or(exit)),
        }
    }

    async fn answer(&self, open: OpenOptions, signals: &mut Signals) -> anyhow::Result<Exit> {
        let started = Instant::now();
        let notices = self.handle.watch();
        let here = self.handle.ask(query::Position {}).await?;
        let unattended = !matches!(self.consent, Consent::Everything { .. });
        let open = OpenOptions { unattended, ..open };
        let opened = self.in_time(started, self.handle.open(self.by.clone(), &self.cwd, open.clone())).await??;
        match self.attend(&open, &opened, (started, here), notices, signals).await {
            Err(error) if error.downcast_ref::<std::io::Error>().is_none() => self.fail(opened.session, &error),
            ended => ended,
        }
    }

    /// A failure in an open session: said to people, and to programs with the session's id.
    fn fail(&self, session: SessionId, error: &anyhow::Error) -> anyhow::Result<Exit> {
        talk(&crate::told(error, self.lang));
        let verdict = RunVerdict::of_error(crate::exit_of(error), error.to_string());
        if self.format != Format::Text {
            let result = stream_json::RunResult { session: Some(session), ..stream_json::RunResult::early(&verdict) };
            self.print_line(&result.json())?;
        }
        Ok(verdict.exit)
    }

    /// Counts the plans that were open before the run.
    async fn count_plans(&self, opened: &OpenedSession, tally: &mut RunState) -> anyhow::Result<()> {
        for &plan in &opened.plans {
            let state = self.handle.ask(query::Plan { plan }).await?;
            tally.plans.known.push((plan, state.asked().next().map(|(question, _)| question), None));
            // Stopped before the run: what the lead says in it is not cut short by that.
            tally.plans.outlived.extend(self.handle.ask(query::IsPlanStopped { plan }).await?.then_some(plan));
        }
        tally.plans.before = tally.plans.known.len();
        Ok(())
    }

    /// The first line of a stream.
    async fn emit_init(&self, open: &OpenOptions, opened: &OpenedSession) -> anyhow::Result<()> {
        if self.format != Format::StreamJson {
            return Ok(());
        }
        let sources = self.handle.ask(query::Details { session: opened.session }).await?.sources;
        self.emit_stream(|| stream_json::init(opened, open, &sources, &self.cwd, &self.key_source))
    }

    /// Sends the prompt to an open session, follows it, and prints the result.
    async fn attend(
        &self,
        open: &OpenOptions,
        opened: &OpenedSession,
        (started, here): (Instant, Mark),
        mut notices: mpsc::Receiver<Notice>,
        signals: &mut Signals,
    ) -> anyhow::Result<Exit> {
        let session = opened.session;
        self.emit_init(open, opened).await?;
        self.tell_of_what_is_left(opened)?;
        let key = EnvelopeId::new(new_id());
        let mut tally = RunState::new(session, open.settings.retries_max);
        tally.open(opened);
        if self.format == Format::StreamJson {
            tally.output.stream = Some(self.handle.stream(Scope::Session(session), here)?);
        }
        if opened.resumed && opened.continuing {
            // Results of calls that were made before this run name their calls.
            self.handle
                .ask(query::AgentEvents { agent: opened.agent })
                .await?
                .iter()
                .for_each(|(_, event)| tally.output.lines.hear(event));
        }
        let has_members = open.team.as_ref().is_some_and(|team| !team.members.is_empty());
        tally.team = has_members || !self.teammates.is_empty();
        self.recruit(session, &mut tally).await?;
        let words = self.open_questions(session, opened, &mut tally).await?;
        let command = self.first(opened, words);
        // Words to a lead that is busy come into the turn that it is in, which is waited for without them.
        let waits_for = (command.is_some() && words == AnswerReach::Unheard).then_some(key);
        if let Some(command) = command {
            self.order(key, command).await?;
        }
        let goes_on = self.go_on(session, &mut tally).await?;
        self.count_plans(opened, &mut tally).await?;
        if matches!(self.task, Task::Listen(_)) {
            let (stopped, exit) = self.listen(opened, &mut notices, signals, &mut tally).await?;
            self.tell_of_more_refusals(&tally);
            return self.finish_listening(opened, &tally, notices, signals, (stopped, exit)).await;
        }
        let stopped = if waits_for.is_some()
            || words != AnswerReach::Unheard
            || opened.continuing
            || goes_on
            || tally.agents.is_joining()
        {
            let followed = self.follow(session, started, waits_for, &mut notices, signals, &mut tally);
            let stopped = match self.in_time(started, followed).await {
                Ok(stopped) => stopped?,
                Err(over) => return self.leave(session, false, signals).await.and(Err(over)),
            };
            // What waited may have been for others than the lead, who has said nothing new.
            if waits_for.is_none() && !tally.has_stopped_plan() {
                self.repeat(opened, &mut tally).await?;
            }
            stopped
        } else {
            // Nothing was open: what `-c -p ""` goes on to is the answer that is already there.
            self.repeat(opened, &mut tally).await?;
            None
        };
        self.tell_of_more_refusals(&tally);
        let is_paused = self.pause_plans(session, stopped).await?;
        if stopped.is_some() {
            self.tell_of_stop(session, stopped).await?;
        }
        if let Some(exit) = stopped.filter(|exit| *exit == Exit::Terminated || is_paused || tally.turn.ended.is_none())
        {
            // The run ends also if its result cannot be printed any more.
            drop(self.tell_stopped(session, &tally, stopped).await);
            return Ok(exit);
        }
        self.emit_team(&mut tally)?;
        let exit = match self.finish(opened, &tally, stopped).await {
            Ok(exit) => exit,
            Err(none) => return self.leave(session, stopped.is_none(), signals).await.and(Err(none)),
        };
        drop(notices);
        self.part(session, &tally, stopped, exit, signals).await
    }

    /// That the time of a skill is over, if that has stopped it.
    fn late(&self, stopped: Option<Exit>, lang: Lang) -> Option<String> {
        let (name, limit) = self.limit.as_ref().filter(|_| stopped == Some(Exit::Limit))?;
        Some(lang.skill_timed_out(name, limit.as_secs()))
    }

    /// What is ordered first.
    fn first(&self, opened: &OpenedSession, words: AnswerReach) -> Option<Command> {
        let session = opened.session;
        match &self.task {
            Task::Say(_) if words == AnswerReach::ByLead => None,
            Task::Say(text) if words == AnswerReach::ByAnother => Some(Command::Say { session, text: text.clone() }),
            Task::Say(text) if text.is_empty() => {
                // Together with what waits: nothing is open that it could come between.
                let is_stopped = opened.lead_halts || self.is_cut(opened.last.as_ref());
                unsaid(is_stopped, opened.lead_goes_on, opened.held)
                    .map(|words| Command::Say { session, text: words.trim_end().to_owned() })
            }
            // A separate question: a turn that is still open is answered first.
            Task::Say(text) => Some(Command::Queue { session, text: text.clone() }),
            Task::Listen(_) => None,
            Task::Plan { goal, .. } => Some(Command::Queue { session, text: format!("{PROPOSE}\n\n{goal}") }),
            Task::Run { draft, source } => {
                Some(Command::Propose { session, draft: draft.clone(), source: source.clone() })
            }
        }
    }

    /// Whether the lead's last turn was cut short. A skill still owes its agreed object, so there every last turn
    /// counts as cut short.
    fn is_cut(&self, last: Option<&TurnEnded>) -> bool {
        last.is_some_and(|last| self.limit.is_some() || last.end.is_unfinished())
    }

    /// The answer is out. Waits for agents that work aside, since their work would otherwise rest until the session is
    /// opened again.
    async fn leave(&self, session: SessionId, waits: bool, signals: &mut Signals) -> anyhow::Result<()> {
        if waits {
            tokio::select! {
                _ = self.handle.ask(query::Settled { session }) => {}
                () = tokio::time::sleep(SETTLE_MAX) => {}
                _ = signals.next() => {}
            }
        }
        if let Some(path) = &self.record {
            talk(&recordings::save(&*self.handle.ask(query::Recording { session }).await?, path, false, self.lang)?);
        }
        Ok(())
    }

    /// Says once what was open and goes on now, and which protected files are still moved away.
    fn tell_of_what_is_left(&self, opened: &OpenedSession) -> anyhow::Result<()> {
        let (session, found) = (opened.session, &opened.recovered);
        if let Some(words) = self.lang.recovered(found, session) {
            talk(&words);
            self.emit_stream(|| stream_json::recovered(session, found))?;
        }
        self.tell_of_moved(session, "", &opened.moved)
    }

    /// Says that protected files were moved away, and whose command made them.
    fn tell_of_moved(&self, session: SessionId, who: &str, moved: &[MovedFile]) -> anyhow::Result<()> {
        if moved.is_empty() {
            return Ok(());
        }
        let words = self.lang.moved_away(moved);
        talk(&if who.is_empty() { words } else { format!("{who}: {words}") });
        self.emit_stream(|| stream_json::moved(session, who, moved))
    }

    /// Without a prompt, stopped agents and plans go on like the lead; whether some do.
    async fn go_on(&self, session: SessionId, tally: &mut RunState) -> anyhow::Result<bool> {
        if !matches!(&self.task, Task::Say(text) if text.is_empty()) {
            return Ok(false);
        }
        let stopped = self.handle.ask(query::Stopped { session }).await?;
        let plans = self.handle.ask(query::StoppedPlans { session }).await?;
        tally.teammates.awaited = stopped.into_iter().map(|reader| reader.agent).collect();
        let is_any = !tally.teammates.awaited.is_empty() || !plans.is_empty();
        tally.teammates.awaited_plans = plans.into_iter().collect();
        if is_any {
            self.order(EnvelopeId::new(new_id()), Command::Continue { session, to: Vec::new() }).await?;
        }
        Ok(is_any)
    }

    /// Lets those begin who are to and are not there.
    async fn recruit(&self, session: SessionId, tally: &mut RunState) -> anyhow::Result<()> {
        let teammates = self.not_there_yet(session).await?;
        if teammates.is_empty() {
            return Ok(());
        }
        tally.agents.expect(teammates.iter().map(|teammate| teammate.name.clone()));
        self.order(EnvelopeId::new(new_id()), Command::Team { session, teammates }).await
    }

    /// Those who are to begin, less those who are there already: a run that goes on is started with the same words.
    async fn not_there_yet(&self, session: SessionId) -> anyhow::Result<Vec<Spawn>> {
        if self.teammates.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.handle.ask(query::Newcomers { session, teammates: self.teammates.clone() }).await?.1)
    }

    async fn order(&self, key: EnvelopeId, command: Command) -> anyhow::Result<()> {
        let cwd = self.cwd.display().to_string();
        Ok(self.handle.command(Order { by: self.by.clone(), cwd, key, command }).await?)
    }

    /// Copying a large project takes time, so the user is told once.
    fn tell_of_making(&self, of: usize, tally: &mut RunState) {
        if !std::mem::replace(&mut tally.copying, true) {
            talk(&self.lang.copies_begun(of));
        }
    }

    /// Runs `work` within the skill's time limit and grace; after that the run ends without it.
    async fn in_time<T>(&self, began: Instant, work: impl Future<Output = T>) -> anyhow::Result<T> {
        let patience = self.limit.as_ref().map(|(_, limit)| *limit + LIMIT_GRACE);
        let limit = self.limit.as_ref().map(|(name, limit)| self.lang.skill_timed_out(name, limit.as_secs()));
        let over = || CliError::new(Exit::Limit, limit.unwrap_or_default());
        within(patience, began, work).await.ok_or_else(|| over().into())
    }

    /// Follows the session until the prompt is answered (or, without one, until nothing is left to do).
    async fn follow(
        &self,
        session: SessionId,
        started: Instant,
        waits_for: Option<EnvelopeId>,
        notices: &mut mpsc::Receiver<Notice>,
        signals: &mut Signals,
        tally: &mut RunState,
    ) -> anyhow::Result<Option<Exit>> {
        let mut stopped = None;
        let mut ours: Option<TurnId> = None;
        let late = self.limit.as_ref().map(|(_, limit)| started + *limit);
        let mut vigil = SilenceWatch::default();
        let mut ear = RunEvents::new(notices, signals);
        loop {
            let notice = match ear.next(vigil.due(), late.filter(|_| stopped.is_none())).await? {
                RunEvent::Notice(notice) => notice,
                // The next process goes on with everything, as after a kill.
                RunEvent::Signal(signal) => {
                    self.hear_of_open_plans(session, tally).await?;
                    return Ok(Some(signal));
                }
                RunEvent::Silence => {
                    self.tell_of_silence(session, &mut vigil)?;
                    continue;
                }
                RunEvent::Late => {
                    stopped = Some(Exit::Limit);
                    self.order(EnvelopeId::new(new_id()), Command::Interrupt { session }).await?;
                    self.stop_plans(session).await?;
                    continue;
                }
            };
            match notice {
                Notice::Event { from, event, at_ms, .. } => {
                    vigil.hear(&from, &event, Instant::now());
                    self.note(session, at_ms, &from, &event, tally).await?;
                    self.emit_team(tally)?;
                    match &*event {
                        _ if tally.team || !from.lead => {}
                        Event::TurnStarted(started) if tally.begun(waits_for) => {
                            ours.get_or_insert(started.turn);
                        }
                        Event::TurnEnded(ended) if Some(ended.turn) == ours => return Ok(stopped),
                        Event::TurnEnded(_) if stopped.is_some() => return Ok(stopped),
                        _ => {}
                    }
                }
                Notice::Delta { from, call, delta, .. } => {
                    vigil.delta(&from, Instant::now());
                    self.hear_piece(session, &from, (call, &delta), tally)?;
                }
                Notice::Copies { of, .. } => self.tell_of_making(of, tally),
                Notice::Redefined { notes, .. } => notes.iter().for_each(|note| talk(note)),
                Notice::Idle { .. } if tally.is_awaiting() => {}
                Notice::Idle { waiting: true, .. } if !tally.questions.waiting.is_empty() => return Ok(stopped),
                // The session was stopped from elsewhere.
                Notice::Idle { .. } if tally.is_held(waits_for) => return Ok(stopped.or(Some(Exit::Interrupted))),
                Notice::Idle { .. } if waits_for.is_none() || (tally.team && tally.begun(waits_for)) => {
                    return Ok(stopped);
                }
                Notice::Idle { .. } => {}
                Notice::Stopped { error, .. } => return Err(CliError::new(Exit::Failed, error.to_string()).into()),
            }
        }
    }

    /// A piece of an agent's answer; only the lead's is passed on.
    fn hear_piece(
        &self,
        session: SessionId,
        from: &Origin,
        (call, delta): (u32, &Delta),
        tally: &mut RunState,
    ) -> anyhow::Result<()> {
        if let (Some(agent), Delta::Usage(usage)) = (from.agent, delta) {
            tally.cost.apply_usage(agent, call, *usage);
        }
        if from.lead {
            tally.turn.first_ms.get_or_insert(millis(tally.turn.began));
            let shown = match delta {
                Delta::Text(text) => Delta::Text(tally.output.said.push(text)),
                Delta::Thinking(text) => Delta::Thinking(tally.output.thought.push(text)),
                other => other.clone(),
            };
            self.emit_piece(session, &shown)?;
        }
        Ok(())
    }

    /// The call is over: print the held-back text and thinking of the lead.
    fn end_pieces(&self, session: SessionId, tally: &mut RunState) -> anyhow::Result<()> {
        self.emit_piece(session, &Delta::Thinking(tally.output.thought.finish()))?;
        self.emit_piece(session, &Delta::Text(tally.output.said.finish()))
    }

    fn emit_piece(&self, session: SessionId, piece: &Delta) -> anyhow::Result<()> {
        let is_empty = matches!(piece, Delta::Text(text) | Delta::Thinking(text) if text.is_empty());
        if !self.partial || is_empty {
            return Ok(());
        }
        self.emit_stream(|| stream_json::delta(session, piece))
    }

    /// Records that the user left, if a signal ended the run while plans run: they are paused. Whether there are some.
    async fn pause_plans(&self, session: SessionId, stopped: Option<Exit>) -> anyhow::Result<bool> {
        let is_left = matches!(stopped, Some(Exit::Interrupted | Exit::Terminated)) && self.runs_plan(session).await?;
        if is_left {
            self.order(EnvelopeId::new(new_id()), Command::Leave { session }).await?;
        }
        Ok(is_left)
    }

    /// Whether a plan of the session is at work.
    async fn runs_plan(&self, session: SessionId) -> anyhow::Result<bool> {
        for plan in self.handle.ask(query::OpenPlans { session: Some(session) }).await? {
            if self.handle.ask(query::Plan { plan }).await?.is_moving() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Stops the plans that work for the lead; a plan that only waits for the user's answer is left waiting.
    async fn stop_plans(&self, session: SessionId) -> anyhow::Result<()> {
        // Not only those that we have heard of: one may be at work already.
        for plan in self.handle.ask(query::OpenPlans { session: Some(session) }).await? {
            let known = self.handle.ask(query::Plan { plan }).await?;
            if known.is_moving() || known.asked().next().is_none() {
                let command = Command::Stop { plan, task: None };
                self.order(EnvelopeId::new(new_id()), command).await?;
            }
        }
        Ok(())
    }

    /// Reports which silent model the run waits for: to a user who watches, and in the stream.
    fn tell_of_silence(&self, session: SessionId, vigil: &mut SilenceWatch) -> anyhow::Result<()> {
        for silence in vigil.silences(Instant::now()) {
            if self.is_watched() {
                talk(&self.lang.waiting_for(&silence.model, &silence.who, silence.seconds));
            }
            self.emit_stream(|| stream_json::silence(session, &silence.who, &silence.model, silence.seconds))?;
        }
        Ok(())
    }

    /// Whether the user sees standard error and wants to follow the run.
    fn is_watched(&self) -> bool {
        self.verbose || (self.format == Format::Text && std::io::stderr().is_terminal())
    }

    async fn note(
        &self,
        session: SessionId,
        at_ms: i64,
        from: &Origin,
        event: &Event,
        tally: &mut RunState,
    ) -> anyhow::Result<()> {
        tally.hear(from, event);
        if let Some(plan) = from.plan {
            self.note_plan(plan, event, tally).await?;
        }
        match event {
            Event::Steered(steered) => tally.steered(from, steered),
            Event::TurnStarted(started) => tally.begins(from, started),
            Event::Interrupted(interrupted) if from.lead && interrupted.by == TIME_OVER => {
                tally.turn.is_out_of_time = true;
                talk(self.lang.lead_out_of_time());
            }
            // A stop from before the run is no end of it.
            Event::Interrupted(Interrupted { held: Some(held), .. }) if tally.agents.counts(held) => {
                tally.holds(from, held);
            }
            Event::MessageRefused(refused) if refused.kind == MessageKind::TeamRequest => {
                tally.teammates.unjoined = true;
                talk(&self.lang.not_joined(&refused.why));
            }
            Event::Mailed(envelope) => self.lang.came_to_nothing(envelope).iter().for_each(|words| talk(words)),
            Event::PlanAnswered(answered) => drop(tally.questions.sent.remove(&answered.question)),
            Event::TurnEnded(_) | Event::PlanEnded(_) => self.is_over(from, event, tally),
            Event::QuestionAsked(asked) if from.lead || self.answers_here(asked.action.kind) => {
                self.question(session, at_ms, from, asked, tally).await?;
            }
            Event::LlmEnded(ended) => self.tell_of_retry(from, &ended.outcome, tally),
            Event::ToolIntent(intent) => {
                self.show_demo_call(from, &intent.action)?;
                tally.intends(from, intent);
            }
            Event::ToolDone(done) => {
                done.refused.iter().for_each(|refusal| self.tell_of_refusal(from, refusal, tally));
                self.tell_of_command(from, done, tally);
            }
            Event::FilesChanged(changed) if !changed.moved.is_empty() => {
                tally.moved.extend(changed.moved.iter().cloned());
                self.tell_of_moved(session, &from.name, &changed.moved)?;
            }
            Event::CompactionFailed(failed) if from.lead && self.format == Format::Text => {
                talk(&self.lang.not_compacted(&failed.detail));
            }
            _ => {}
        }
        if !from.lead {
            tally.denied(event);
            let is_told = self.format == Format::StreamJson;
            let called = is_told.then(|| tally.of_call(from, at_ms, event)).flatten();
            return called.map_or(Ok(()), |line| self.print_line(&line));
        }
        match event {
            Event::TurnStarted(started) => {
                tally.turn.rounds = 0;
                self.tell_of_files(&started.input);
            }
            Event::LlmIntent(intent) if intent.attempt == 1 && intent.summary.is_none() => tally.turn.rounds += 1,
            Event::LlmEnded(ended) => {
                tally.turn.api_ms += ended.ms;
                self.end_pieces(session, tally)?;
            }
            Event::ToolDone(done) if done.ending == ToolOutcome::Refused => tally.refused(done),
            Event::TurnEnded(ended) => tally.ends(ended),
            _ => {}
        }
        tally.output.lines.hear(event);
        if self.format != Format::StreamJson {
            return Ok(());
        }
        tally.output.lines.line(at_ms, event).map_or(Ok(()), |line| self.print_line(&line))
    }

    /// Something happened to a plan.
    async fn note_plan(&self, plan: PlanId, event: &Event, tally: &mut RunState) -> anyhow::Result<()> {
        tally.plan(plan, event);
        if let Event::PlanAsked(asked) = event
            && let Some(say) = self.say_beforehand(plan, &asked.about, tally)
        {
            self.show_demo_plan(plan, &say).await?;
            tally.questions.sent.insert(asked.question, Some(plan));
            if !self.heard(Command::Decide { question: asked.question, say }).await? {
                tally.questions.sent.remove(&asked.question);
            }
        }
        // A plan that is only written to a file cannot be refused.
        let is_ours = matches!(event, Event::PlanAnswered(_) | Event::PlanEnded(_));
        if !(is_ours && matches!(self.task, Task::Plan { .. })) {
            self.tell(event);
        }
        Ok(())
    }

    /// A file that the message mentions and the model does not get is said.
    fn tell_of_files(&self, input: &[Part]) {
        for label in mention::labels(input.get(1..).unwrap_or_default()).iter().filter(|label| !label.is_included) {
            talk(&self.lang.file_not_included(clean_line(&label.path), clean_line(&label.note)));
        }
    }

    /// Reports a failed command with its last lines; a member's command only on a terminal.
    fn tell_of_command(&self, from: &Origin, done: &ToolDone, tally: &mut RunState) {
        let Some(command) = tally.commands.remove(&(from.agent, done.key.clone())) else { return };
        let is_told = self.is_watched() || (from.lead && self.format == Format::Text);
        if !is_told || !done.is_error || done.ending != ToolOutcome::Ran {
            return;
        }
        let result = Message::user(done.content.clone()).text();
        let how = result.lines().next().unwrap_or_default();
        let words = self.lang.command_failed(&from.name, clean_line(&command), clean_line(how));
        talk(&format!("{words}{}", last_lines(&result)));
    }

    /// Reports a retried call; a member's only to a user who watches.
    fn tell_of_retry(&self, from: &Origin, outcome: &LlmOutcome, tally: &mut RunState) {
        if let LlmOutcome::Failed { detail, parked: true, .. } = outcome {
            tally.outage = Some(detail.clone());
        }
        if let LlmOutcome::Failed { detail, retry_at_ms: Some(_), .. } = outcome
            && (self.is_watched() || (from.lead && self.format == Format::Text))
        {
            talk(&self.lang.retrying(&from.name, detail));
        }
    }

    /// A call that a rule or the mode refuses is named, with the reason: the model's answer may not mention it.
    fn tell_of_refusal(&self, from: &Origin, refusal: &Refusal, tally: &mut RunState) {
        let DecidedBy::Rule(rule) = &refusal.by else { return };
        tally.refused_calls.refusals_told += 1;
        if tally.refused_calls.refusals_told <= REFUSALS_TOLD_MAX {
            talk(&self.lang.refused_call(&from.name, &called(&refusal.tool, &refusal.target), rule, refusal));
        }
    }

    /// How many refused calls were not named.
    fn tell_of_more_refusals(&self, tally: &RunState) {
        if let Some(more) = tally.refused_calls.refusals_told.checked_sub(REFUSALS_TOLD_MAX).filter(|more| *more > 0) {
            talk(&self.lang.more_refused(more));
        }
    }

    /// Prints one line per step of a plan.
    fn tell(&self, event: &Event) {
        if self.format == Format::Text
            && let Some(line) = plan_text::step(event, self.lang)
        {
            talk(&line);
        }
    }

    /// What the log tells of the team since the last time.
    fn emit_team(&self, tally: &mut RunState) -> anyhow::Result<()> {
        let Some(stream) = &mut tally.output.stream else { return Ok(()) };
        while let Some(event) = stream.try_next()? {
            stream_json::of_stream(&event).map_or(Ok(()), |line| self.print_line(&line))?;
        }
        Ok(())
    }

    fn emit_stream(&self, line: impl FnOnce() -> Value) -> anyhow::Result<()> {
        if self.format == Format::StreamJson { self.print_line(&line()) } else { Ok(()) }
    }

    fn print_line(&self, line: &Value) -> anyhow::Result<()> {
        Ok(self.out.put(redact_value(line).to_string())?)
    }

    /// Prints a run's result: the answer in it is the user's own and stays as the lead gave it.
    fn print_result_line(&self, result: &Value) -> anyhow::Result<()> {
        let mut line = redact_value(result);
        for name in ["result", "structured_output"] {
            if let (Some(shown), Some(answer)) = (line.get_mut(name), result.get(name)) {
                *shown = answer.clone();
            }
        }
        Ok(self.out.put(line.to_string())?)
    }
}

/// What work comes to, unless it takes longer than so long.
async fn within<T>(patience: Option<Duration>, began: Instant, work: impl Future<Output = T>) -> Option<T> {
    match patience {
        Some(patience) => tokio::time::timeout_at((began + patience).into(), work).await.ok(),
        None => Some(work.await),
    }
}

/// What a lead is told that is to go on without words: it was stopped, or what was said to it waits since then.
fn unsaid(is_stopped: bool, goes_on: bool, held: usize) -> Option<&'static str> {
    let words = if is_stopped { CONTINUE } else { READ_ON };
    // Messages that a stop left unread start no turn by themselves, and a stopped lead resumes only when told, even if
    // other agents go on.
    ((is_stopped && !goes_on) || held > 0).then_some(words)
}

/// Messages go to standard error, without secrets; a closed standard error is no failure.
pub(crate) fn talk(words: &str) {
    // Standard error keeps nothing back: what is not one string would be several writes.
    drop(std::io::stderr().write_all(format!("max-team: {}\n", clean(&redact(words))).as_bytes()));
}

/// A call, for people.
fn called(tool: &str, target: &str) -> String {
    clean_line(format!("{tool} {target}").trim_end())
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hanging_shutdown_is_not_waited_for_beyond_its_time() {
        let began = Instant::now();
        let late = std::future::pending::<()>();
        assert_eq!(within(Some(Duration::ZERO), began, late).await, None);
        assert_eq!(within(Some(LIMIT_GRACE), began, async { 1 }).await, Some(1));
        assert_eq!(within(None, began, async { 2 }).await, Some(2), "without a limit there is none");
    }
}
