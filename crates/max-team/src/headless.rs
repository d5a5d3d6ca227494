//! `-p`: one prompt in, one answer out, for scripts.
//!
//! Standard output carries data only (text, one JSON object, or JSON lines); talk goes to standard error. Nobody can
//! be asked here: a question is answered "nobody could be asked", the model is told so, and the exit code is 5.

use std::collections::{HashMap, HashSet};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use max_team_core::event::{End, Ending, Event, Outcome, TurnEnded};
use max_team_core::id::{EnvelopeId, PlanId, QuestionId, SessionId, TurnId};
use max_team_core::message::Principal;
use max_team_core::plan::Draft;
use max_team_core::plan::event::{About, PlanEnd, Say};
use max_team_core::policy::{Answer, By};
use max_team_runtime::{Asked, Command, Notice, Open, Opened, Order, Origin, RuntimeError, TeamHandle};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::args::Format;
use crate::exit::{Exit, Stop};
use crate::plan_file;
use crate::sheet;
use crate::signals::Signals;
use crate::stream_json;
use crate::terminal::text::clean;

/// What the lead is told when only a plan is wanted.
const PROPOSE: &str = include_str!("../../../prompts/propose.md");

/// One headless run.
pub(crate) struct Headless {
    pub(crate) handle: TeamHandle,
    pub(crate) by: Principal,
    pub(crate) cwd: std::path::PathBuf,
    pub(crate) task: Task,
    pub(crate) format: Format,
    pub(crate) partial: bool,
    pub(crate) key_source: String,
    /// Plans are approved as they come.
    pub(crate) yes: bool,
}

/// What a headless run is for.
pub(crate) enum Task {
    /// Answer this; without words, go on with what is open.
    Say(String),
    /// Carry this plan out.
    Run {
        /// The plan.
        draft: Box<Draft>,
        /// Where it comes from.
        source: String,
    },
    /// Only propose: the plan goes here, or to standard output.
    Plan {
        /// What for.
        goal: String,
        /// The file.
        output: Option<PathBuf>,
    },
}

/// What is known when it is over.
struct Tally {
    lines: stream_json::Lines,
    rounds: u32,
    api_ms: u64,
    first_ms: Option<u64>,
    denials: Vec<Value>,
    unasked: bool,
    ended: Option<TurnEnded>,
    /// Whether the session has a team, and so more than one turn may belong to the answer.
    team: bool,
    /// Who asked them.
    asked_by: HashMap<QuestionId, String>,
    /// Questions that we have answered and whose answer is on its way.
    sent: HashSet<QuestionId>,
    /// Letters that a turn has begun with.
    heard: Vec<EnvelopeId>,
    /// Plans by id: the last question that is open, and how it ended.
    plans: Vec<(PlanId, Option<QuestionId>, Option<PlanEnd>)>,
}

impl Tally {
    fn new(session: SessionId, retries_max: u32) -> Self {
        Self {
            lines: stream_json::Lines::new(session, retries_max),
            rounds: 0,
            api_ms: 0,
            first_ms: None,
            denials: Vec::new(),
            unasked: false,
            ended: None,
            team: false,
            asked_by: HashMap::new(),
            sent: HashSet::new(),
            heard: Vec::new(),
            plans: Vec::new(),
        }
    }

    /// Whether what we asked for has been taken up.
    fn begun(&self, waits_for: Option<EnvelopeId>) -> bool {
        !self.plans.is_empty() || waits_for.is_some_and(|key| self.heard.contains(&key))
    }

    /// Whoever this is has no open questions any more.
    fn forget(&mut self, from: &Origin) {
        let asked_by = &self.asked_by;
        self.sent.retain(|question| asked_by.get(question).is_none_or(|by| **by != *from.name));
    }

    /// What is known of a plan.
    fn plan(&mut self, plan: PlanId, event: &Event) {
        if !self.plans.iter().any(|(known, ..)| *known == plan) {
            self.plans.push((plan, None, None));
        }
        let Some((_, asked, end)) = self.plans.iter_mut().find(|(known, ..)| *known == plan) else { return };
        match event {
            Event::PlanAsked(question) => *asked = Some(question.question),
            Event::PlanAnswered(answered) if *asked == Some(answered.question) => *asked = None,
            Event::PlanEnded(ended) => (*asked, *end) = (None, Some(ended.end)),
            _ => {}
        }
    }

    /// A call was not allowed, by a rule or because nobody could be asked.
    fn refused(&mut self, key: &str) {
        let (id, tool) = (self.lines.id(key), self.lines.tool(key));
        self.denials.push(json!({ "tool_name": tool, "tool_use_id": id }));
    }
}

impl Headless {
    pub(crate) async fn run(self, open: Open, mut signals: Signals) -> anyhow::Result<Exit> {
        let started = Instant::now();
        let mut notices = self.handle.watch();
        let opened = self.handle.open(self.by.clone(), &self.cwd, open.clone()).await?;
        let session = opened.session;
        self.emit_stream(|| stream_json::init(&opened, &open, &self.cwd, &self.key_source))?;
        let key = EnvelopeId::new(Uuid::now_v7());
        let mut tally = Tally::new(session, open.settings.retries_max);
        tally.team = open.team.is_some();
        let command = match &self.task {
            Task::Say(text) if text.is_empty() => None,
            Task::Say(text) => Some(Command::Say { session, text: text.clone() }),
            Task::Plan { goal, .. } => Some(Command::Say { session, text: format!("{PROPOSE}\n\n{goal}") }),
            Task::Run { draft, source } => {
                Some(Command::Propose { session, draft: draft.clone(), source: source.clone() })
            }
        };
        let waits_for = command.is_some().then_some(key);
        if let Some(command) = command {
            self.order(key, command).await?;
        }
        for plan in &opened.plans {
            let asked = self.handle.plan(*plan)?.asked().next().map(|(question, _)| question);
            tally.plans.push((*plan, asked, None));
        }
        for asked in &opened.asked {
            self.refuse(session, asked, None, &mut tally).await?;
        }
        let stopped = if waits_for.is_some() || opened.continuing {
            self.follow(session, waits_for, &mut notices, &mut signals, &mut tally).await?
        } else {
            // Nothing was open: what `-c -p ""` goes on to is the answer that is already there.
            tally.ended = opened.last.clone();
            None
        };
        if stopped == Some(Exit::Terminated) || (stopped.is_some() && tally.ended.is_none()) {
            return Ok(stopped.unwrap_or(Exit::Terminated));
        }
        self.finish(&opened, &tally, started, stopped).await
    }

    async fn order(&self, key: EnvelopeId, command: Command) -> anyhow::Result<()> {
        let cwd = self.cwd.display().to_string();
        Ok(self.handle.command(Order { by: self.by.clone(), cwd, key, command }).await?)
    }

    /// Follows the session until the prompt is answered (or, without one, until nothing is left to do).
    async fn follow(
        &self,
        session: SessionId,
        waits_for: Option<EnvelopeId>,
        notices: &mut mpsc::Receiver<Notice>,
        signals: &mut Signals,
        tally: &mut Tally,
    ) -> anyhow::Result<Option<Exit>> {
        let mut stopped = None;
        let mut ours: Option<TurnId> = None;
        let began = Instant::now();
        loop {
            let notice = tokio::select! {
                biased;
                signal = signals.next() => match (signal, stopped) {
                    (Exit::Interrupted, None) => {
                        stopped = Some(Exit::Interrupted);
                        self.order(EnvelopeId::new(Uuid::now_v7()), Command::Interrupt { session }).await?;
                        // Whoever works for it stops too; a plan that only waits for a person goes on waiting.
                        for (plan, asked, end) in &tally.plans {
                            if end.is_none() && asked.is_none() {
                                let command = Command::Stop { plan: *plan, task: None };
                                self.order(EnvelopeId::new(Uuid::now_v7()), command).await?;
                            }
                        }
                        continue;
                    }
                    (signal, _) => return Ok(Some(signal)),
                },
                notice = notices.recv() => notice.ok_or_else(|| Stop::new(Exit::Failed, "the team stopped without a word"))?,
            };
            match notice {
                Notice::Event { from, event, at_ms, .. } => {
                    self.note(session, at_ms, &from, &event, tally).await?;
                    match &*event {
                        _ if tally.team || !from.lead => {}
                        Event::TurnStarted(started) if Some(started.envelope) == waits_for => ours = Some(started.turn),
                        Event::TurnEnded(ended) if Some(ended.turn) == ours => return Ok(stopped),
                        Event::TurnEnded(_) if stopped.is_some() => return Ok(stopped),
                        _ => {}
                    }
                }
                Notice::Delta { from, .. } if !from.lead => {}
                Notice::Delta { delta, .. } => {
                    tally.first_ms.get_or_insert_with(|| millis(began));
                    if self.partial {
                        self.emit_stream(|| stream_json::delta(session, &delta))?;
                    }
                }
                // What we have said ourselves is still to be heard.
                Notice::Idle { .. } if !tally.sent.is_empty() => {}
                Notice::Idle { .. } if waits_for.is_none() || (tally.team && tally.begun(waits_for)) => {
                    return Ok(stopped);
                }
                Notice::Idle { .. } => {}
                Notice::Stopped { error, .. } => return Err(Stop::new(Exit::Failed, error.to_string()).into()),
            }
        }
    }

    async fn note(
        &self,
        session: SessionId,
        at_ms: i64,
        from: &Origin,
        event: &Event,
        tally: &mut Tally,
    ) -> anyhow::Result<()> {
        if let Some(plan) = from.plan {
            tally.plan(plan, event);
            if let (Task::Plan { .. }, Event::PlanAsked(asked)) = (&self.task, event) {
                // It goes into a file; here it need not wait for anybody.
                let say = Say::Reject(String::new());
                tally.sent.insert(asked.question);
                tally.asked_by.insert(asked.question, from.name.to_string());
                self.heard(Command::Decide { question: asked.question, say }).await?;
            }
            if let (true, Event::PlanAsked(asked)) = (self.yes, event)
                && asked.about == About::Proposal
            {
                let command = Command::Decide { question: asked.question, say: Say::Approve };
                tally.sent.insert(asked.question);
                tally.asked_by.insert(asked.question, from.name.to_string());
                if !self.heard(command).await? {
                    tally.sent.remove(&asked.question);
                }
            }
            self.tell(plan, event)?;
        }
        match event {
            Event::TurnStarted(started) => tally.heard.push(started.envelope),
            Event::PlanAnswered(answered) => drop(tally.sent.remove(&answered.question)),
            // A question that its asker no longer waits for gets no answer.
            Event::TurnEnded(_) | Event::PlanEnded(_) => tally.forget(from),
            Event::QuestionAnswered(answered) => drop(tally.sent.remove(&answered.question)),
            Event::QuestionAsked(asked) if !from.lead => {
                let (question, tool, action) = (asked.question, asked.tool.clone(), asked.action.clone());
                let (by, memory) = (from.name.to_string(), asked.memory.clone());
                self.refuse(session, &Asked { question, tool, action, by, memory }, None, tally).await?;
            }
            _ => {}
        }
        if !from.lead {
            return self.emit_stream_some(|| stream_json::of_team(session, from, at_ms, event));
        }
        match event {
            Event::TurnStarted(_) => tally.rounds = 0,
            Event::LlmIntent(intent) if intent.attempt == 1 => tally.rounds += 1,
            Event::LlmEnded(ended) => {
                tally.api_ms += ended.ms;
                if let Outcome::Failed { detail, retry_at_ms: Some(_), .. } = &ended.outcome
                    && self.format == Format::Text
                {
                    talk(&format!("retrying: {detail}"));
                }
            }
            Event::QuestionAsked(asked) => {
                let (question, tool, action) = (asked.question, asked.tool.clone(), asked.action.clone());
                let (by, memory) = (from.name.to_string(), asked.memory.clone());
                self.refuse(session, &Asked { question, tool, action, by, memory }, Some(&asked.key), tally).await?;
            }
            Event::ToolDone(done) if done.ending == Ending::Refused => tally.refused(&done.key),
            Event::TurnEnded(ended) => tally.ended = Some(ended.clone()),
            _ => {}
        }
        tally.lines.hear(event);
        if self.format != Format::StreamJson {
            return Ok(());
        }
        tally.lines.line(at_ms, event).map_or(Ok(()), |line| print_line(&line))
    }

    /// Nobody sits here who could be asked.
    async fn refuse(
        &self,
        session: SessionId,
        asked: &Asked,
        key: Option<&str>,
        tally: &mut Tally,
    ) -> anyhow::Result<()> {
        tally.unasked = true;
        tally.sent.insert(asked.question);
        tally.asked_by.insert(asked.question, asked.by.clone());
        if key.is_none() {
            tally.denials.push(json!({ "tool_name": asked.tool, "tool_use_id": null, "target": asked.action.target }));
        }
        let why = "headless; `--permission-mode acceptEdits` allows edits, a chat can ask".to_owned();
        let answer = Answer::new(false, By::Nobody(why));
        let command = Command::Answer { session, question: asked.question, answer };
        if !self.heard(command).await? {
            tally.sent.remove(&asked.question);
        }
        Ok(())
    }

    /// Answers a question; `false` if somebody else has, or nobody asks any more.
    async fn heard(&self, command: Command) -> anyhow::Result<bool> {
        let cwd = self.cwd.display().to_string();
        let order = Order { by: self.by.clone(), cwd, key: EnvelopeId::new(Uuid::now_v7()), command };
        match self.handle.command(order).await {
            Ok(()) => Ok(true),
            Err(RuntimeError::Answered { .. } | RuntimeError::NoQuestion(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn finish(
        &self,
        opened: &Opened,
        tally: &Tally,
        started: Instant,
        stopped: Option<Exit>,
    ) -> anyhow::Result<Exit> {
        if let Some(exit) = self.finish_plan(opened, tally)? {
            return Ok(exit);
        }
        let Some(ended) = &tally.ended else {
            talk("there is nothing to go on with in this session; give a prompt with -p");
            return Ok(Exit::Ok);
        };
        let status = self.handle.status(opened.session).await?;
        let others = self.handle.costs(opened.session)?.into_iter().filter(|cost| cost.agent != opened.agent);
        let team_nano = others.map(|cost| cost.nano).sum();
        let mut exit = stopped.unwrap_or_else(|| Exit::of(&ended.end));
        if exit == Exit::Ok && (tally.unasked || !tally.denials.is_empty()) {
            exit = Exit::Denied;
        }
        if exit == Exit::Ok {
            exit = tally.plans.last().map_or(Exit::Ok, |(_, asked, end)| exit_of_plan(asked.is_some(), *end));
        }
        let result = stream_json::Result {
            session: opened.session,
            ended,
            rounds: tally.rounds,
            duration_ms: millis(started),
            api_ms: tally.api_ms,
            first_ms: tally.first_ms,
            denials: &tally.denials,
            status: &status,
            team_nano,
        };
        match self.format {
            Format::Text => self.print_text(ended)?,
            Format::Json | Format::StreamJson => print_line(&result.json())?,
        }
        if let Some(words) = explain(&ended.end) {
            talk(&words);
        }
        if tally.unasked {
            talk("some calls needed a yes and nobody could be asked; see --permission-mode");
        }
        Ok(exit)
    }

    /// What is said of plans that wait for a person, or that were all that was wanted.
    fn finish_plan(&self, opened: &Opened, tally: &Tally) -> anyhow::Result<Option<Exit>> {
        let Some((plan, asked, _)) = tally.plans.last() else {
            if let Task::Plan { .. } = &self.task {
                tally.ended.as_ref().map_or(Ok(()), |ended| self.print_text(ended))?;
                talk("no plan came of this; nothing was written");
                return Ok(Some(Exit::Failed));
            }
            return Ok(None);
        };
        let state = self.handle.plan(*plan)?;
        if let (Task::Plan { output, .. }, Some(draft)) = (&self.task, state.draft()) {
            let text = plan_file::write(draft);
            match output {
                Some(path) => {
                    let shown = path.display();
                    let unwritable = |error| Stop::new(Exit::Failed, format!("`{shown}` cannot be written: {error}"));
                    std::fs::write(path, text).map_err(unwritable)?;
                    talk(&format!("the plan is in `{shown}`: look at it with `max-team run {shown} --dry-run`"));
                }
                None => crate::commands::print(&text)?,
            }
            return Ok(Some(Exit::Ok));
        }
        if asked.is_none() {
            return Ok(None);
        }
        let session = opened.session;
        let budget = state.asked().any(|(_, about)| *about == About::Budget);
        if self.format == Format::Text {
            // What was asked for comes first.
            if let (Task::Say(_), Some(ended)) = (&self.task, &tally.ended) {
                self.print_text(ended)?;
            }
            crate::commands::print(&sheet::sheet(&state, sheet::WIDTH))?;
        } else {
            print_line(&stream_json::waits(session, *plan, *asked, budget))?;
        }
        let words = match state.asked().next() {
            Some((question, About::Failure { task, .. })) => format!(
                "task `{task}` failed and somebody must decide: `max-team approve {question} --retry`, `--skip`, \
                 `--fixed` or `--give-up`"
            ),
            Some((question, About::Budget)) => {
                format!(
                    "the budget is used up: go on with a larger --max-budget-usd, or `max-team deny {question} -m WHY`"
                )
            }
            Some((question, About::Start { .. } | About::Rest)) => {
                format!(
                    "the plan waits for a person: `max-team approve {question}` or `max-team deny {question} -m WHY`"
                )
            }
            Some((_, About::Proposal)) | None => format!(
                "the plan waits for a person: `max-team approve {plan}` or `max-team deny {plan} -m WHY` \
                 (`--approve never` asks nobody)"
            ),
        };
        talk(&format!("{words}; then go on with `max-team -r {session} -p \"\"`"));
        Ok(Some(if budget { Exit::Budget } else { Exit::Denied }))
    }

    /// One line per step of a plan, for whoever watches.
    fn tell(&self, _: PlanId, event: &Event) -> anyhow::Result<()> {
        if self.format == Format::Text
            && let Some(line) = sheet::step(event)
        {
            talk(&line);
        }
        Ok(())
    }

    fn emit_stream_some(&self, line: impl FnOnce() -> Option<Value>) -> anyhow::Result<()> {
        if self.format != Format::StreamJson {
            return Ok(());
        }
        line().map_or(Ok(()), |line| print_line(&line))
    }

    fn print_text(&self, ended: &TurnEnded) -> anyhow::Result<()> {
        match &ended.structured {
            Some(value) => print_line(value),
            None if ended.text.is_empty() => Ok(()),
            None => {
                let mut out = std::io::stdout().lock();
                let text = ended.text.trim_end();
                // A script gets the words as they are; a terminal must not be driven by them.
                let text = if out.is_terminal() { clean(text) } else { text.into() };
                writeln!(out, "{text}")?;
                Ok(out.flush()?)
            }
        }
    }

    fn emit_stream(&self, line: impl FnOnce() -> Value) -> anyhow::Result<()> {
        if self.format == Format::StreamJson { print_line(&line()) } else { Ok(()) }
    }
}

/// The code for how a plan stands.
fn exit_of_plan(asked: bool, end: Option<PlanEnd>) -> Exit {
    match end {
        None if asked => Exit::Denied,
        None | Some(PlanEnd::Done | PlanEnd::Replaced) => Exit::Ok,
        Some(PlanEnd::Partial) => Exit::Partial,
        Some(PlanEnd::Failed) => Exit::Failed,
        Some(PlanEnd::Stopped) => Exit::Interrupted,
        Some(PlanEnd::Rejected) => Exit::Denied,
    }
}

/// Why a turn ended without a plain answer, and what to do next.
pub(crate) fn explain(end: &End) -> Option<String> {
    Some(match end {
        End::Answered | End::Proposed | End::Interrupted => return None,
        End::Truncated => "the answer was cut at the model's output limit; raise llm.max_tokens or ask for less".into(),
        End::Refused => "the model refused to answer; rephrase, or use another model".into(),
        End::Empty => "the model kept answering with nothing; try again or use another model".into(),
        End::Unstructured => "the model never gave the structured answer; check the schema or use another model".into(),
        End::Looping => "the model repeated the same call again and again and was stopped; rephrase the task".into(),
        End::Rounds => "the round limit was reached; go on with -c, or raise --max-turns".into(),
        End::Budget => "the budget was reached; go on with -c and a larger --max-budget-usd".into(),
        End::Failed { detail, .. } => format!("the model could not answer: {detail}"),
        End::Broken { detail } => format!("the work could not go on: {detail}"),
    })
}

/// Data goes out line by line and at once, so that a reader sees each when it happens.
fn print_line(line: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Talk goes to standard error; if nobody can hear it, that is no failure.
pub(crate) fn talk(words: &str) {
    drop(writeln!(std::io::stderr(), "max-team: {}", clean(words)));
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
