//! The members at work: what each does right now.
//!
//! Each member's notices go through a transcript of its own, of which only the state is kept: their text never mixes
//! with the lead's. A member is known from its first notice until its turn is over; a member of a plan, until the plan
//! has recorded the outcome.

use max_team_core::agent::Settings;
use max_team_core::cost::Spending;
use max_team_core::event::{Event, ToolDone, TurnEnded, TurnOutcome};
use max_team_core::id::{AgentId, PlanId};
use max_team_runtime::{Delta, OpenQuestion, Origin};

use super::rows::{Row, ToolRow};
use super::teammates::{TeamMessage, envelopes};
use super::text::clean_line;
use super::transcript::{Activity, Item, Transcript};
use max_team_workspace::format::{duration, spent};
use max_team_workspace::i18n::Lang;

#[derive(Debug)]
pub(super) struct Members {
    lang: Lang,
    settings: Settings,
    teammates: Vec<ActiveMember>,
    /// Tool calls that ended since the last read, with their agents.
    tools: Vec<(String, ToolRow)>,
}

/// A member at work.
#[derive(Debug)]
pub(super) struct ActiveMember {
    pub(super) agent: AgentId,
    pub(super) name: String,
    /// Its task in a plan; none if the lead gave it one thing to do.
    pub(super) task: Option<(PlanId, String)>,
    /// The title of its task, if the caller gave one.
    title: String,
    /// Whether it works beside the session, which is at rest without it.
    pub(super) aside: bool,
    /// What it is painted in, if it is a teammate.
    pub(super) color: Option<String>,
    /// What it is writing to others.
    envelopes: Vec<TeamMessage>,
    transcript: Transcript,
    /// Whether it was stopped because it is to end.
    ends: bool,
    /// Whether its turn is over; its plan has not counted it yet.
    is_over: bool,
}

impl ActiveMember {
    /// What it does, in a few words; whether it waits for an answer is known to the session.
    pub(super) fn doing(&self, is_asking: bool, lang: Lang, now_ms: i64) -> String {
        let wait = |at_ms: i64| max_team_workspace::format::since(now_ms, at_ms);
        match self.transcript.activity() {
            Activity::Idle | Activity::Waiting if is_asking => lang.waits_for_you().to_owned(),
            Activity::Idle | Activity::Waiting => lang.working().to_owned(),
            Activity::Thinking => lang.thinking().to_owned(),
            Activity::Writing => lang.writing().to_owned(),
            Activity::Preparing(tool) => lang.preparing(clean_line(&tool)),
            Activity::Running(tools) => {
                let first = self.transcript.running().next();
                let words = first.map(|tool| match tool.progress_line() {
                    "" => format!("{} {}", tool.name, tool.target),
                    progress => format!("{} {} · {progress}", tool.name, tool.target),
                });
                let words = words.unwrap_or_default();
                let more = if tools.len() > 1 { format!(" (+{})", tools.len() - 1) } else { String::new() };
                clean_line(words.trim_end()) + &more
            }
            Activity::Retrying { at_ms } => lang.retrying_in(wait(at_ms)),
            Activity::Paced { until_ms } => lang.pacing(wait(until_ms)),
            Activity::Stopping => lang.stopping().to_owned(),
        }
    }

    /// The row about a message that is on its way now.
    fn wrote(&mut self, done: &ToolDone) -> Option<Row> {
        let index = self.envelopes.iter().position(|envelope| envelope.key == done.key)?;
        let TeamMessage { to, text, .. } = self.envelopes.swap_remove(index);
        let color = self.color.clone().unwrap_or_default();
        (!done.is_error).then(|| Row::Mail { from: self.name.clone(), color, to, text })
    }

    /// Who it is, and what it was called for.
    pub(super) fn called(&self) -> String {
        let name = clean_line(&self.name);
        if self.title.is_empty() { name } else { format!("{name} ({})", clean_line(&self.title)) }
    }

    pub(super) fn elapsed_ms(&self, now_ms: i64) -> u64 {
        self.transcript.elapsed_ms(now_ms)
    }
}

impl Members {
    pub(super) fn new(lang: Lang, settings: Settings) -> Self {
        Self { lang, settings, teammates: Vec::new(), tools: Vec::new() }
    }

    /// The tool calls that have ended since the last time.
    pub(super) fn take_tools(&mut self) -> Vec<(String, ToolRow)> {
        std::mem::take(&mut self.tools)
    }

    /// The member at a task.
    pub(super) fn at(&self, plan: PlanId, task: &str) -> Option<&ActiveMember> {
        self.teammates
            .iter()
            .find(|teammate| teammate.task.as_ref().is_some_and(|(at, name)| *at == plan && name == task))
    }

    /// Members that the lead gave one thing to do, and that are at it.
    pub(super) fn delegated(&self) -> impl Iterator<Item = &ActiveMember> {
        self.teammates.iter().filter(|teammate| teammate.task.is_none() && !teammate.is_over)
    }

    /// All agents at work.
    pub(super) fn busy(&self) -> impl Iterator<Item = &ActiveMember> {
        self.teammates.iter().filter(|teammate| !teammate.is_over)
    }

    /// The title of a teammate's current work.
    pub(super) fn title(&self, from: &Origin) -> Option<String> {
        let teammate =
            self.teammates.iter().find(|teammate| Some(teammate.agent) == from.agent && teammate.color.is_some())?;
        Some(teammate.title.clone()).filter(|title| !title.is_empty())
    }

    /// An agent in the middle of a turn.
    fn joins(&self, agent: AgentId, name: String, color: Option<String>, at_ms: i64) -> ActiveMember {
        let mut transcript = Transcript::new(self.lang, self.settings.clone());
        transcript.join(at_ms);
        let (task, title, envelopes) = (None, String::new(), Vec::new());
        ActiveMember {
            agent,
            name,
            task,
            title,
            aside: false,
            color,
            envelopes,
            transcript,
            ends: false,
            is_over: false,
        }
    }

    /// An agent was asking when the session was opened. Members of plans are shown with their plan.
    pub(super) fn resume(&mut self, asked: &OpenQuestion) {
        let is_of_plan = asked.task.is_some() && asked.color.is_none();
        let Some(agent) = asked.agent.filter(|_| !is_of_plan) else { return };
        if self.teammates.iter().all(|teammate| teammate.agent != agent) {
            let teammate = self.joins(agent, asked.by.clone(), asked.color.clone(), asked.at_ms);
            let title = asked.task.clone().unwrap_or_default();
            self.teammates.push(ActiveMember { title, ..teammate });
        }
    }

    /// Something happened to a member. Returns the row that is left of what the lead gave it to do, or of what a teammate
    /// wrote.
    pub(super) fn event(&mut self, from: &Origin, at_ms: i64, event: &Event) -> Option<Row> {
        let agent = from.agent?;
        // Only what begins something makes a member known: the ends of what was given up may come late.
        let begins = matches!(
            event,
            Event::TurnStarted(_) | Event::LlmIntent(_) | Event::ToolIntent(_) | Event::QuestionAsked(_)
        );
        let known = self.teammates.iter().position(|teammate| teammate.agent == agent);
        let index = match known {
            Some(index) => index,
            None if !begins => return None,
            None => {
                let (name, color) = (from.name.to_string(), from.color.as_deref().map(str::to_owned));
                let teammate = self.joins(agent, name, color, at_ms);
                self.teammates.push(ActiveMember { task: from.task.clone(), aside: from.aside, ..teammate });
                self.teammates.len() - 1
            }
        };
        let teammate = self.teammates.get_mut(index)?;
        if let Event::TurnStarted(started) = event {
            // The member's own notices say so only from the next one on.
            let given = started.assignment.as_ref();
            teammate.task = given.and_then(|given| Some((given.plan?, given.task.clone())));
            // What the lead gives a member to do begins with the words themselves.
            teammate.title = given.filter(|given| given.depth > 0).map(|given| given.title.clone()).unwrap_or_default();
            teammate.is_over = false;
        }
        teammate.ends |= matches!(event, Event::Interrupted(of) if of.ends);
        let ms = teammate.elapsed_ms(at_ms);
        for item in teammate.transcript.event(at_ms, event) {
            if let Item::Row(Row::Tool(row)) = item {
                self.tools.push((teammate.name.clone(), row));
            }
        }
        if teammate.color.is_some() {
            teammate.envelopes.extend(envelopes(event));
        }
        let wrote = if let Event::ToolDone(done) = event { teammate.wrote(done) } else { None };
        let Event::TurnEnded(ended) = event else { return wrote };
        teammate.is_over = true;
        if teammate.task.is_some() {
            return None;
        }
        let teammate = self.teammates.remove(index);
        let sum = Spending::sum_of(&ended.charges);
        let money = if sum.nano > 0 { format!(" · {}", spent(sum.nano, sum.unknown_nano)) } else { String::new() };
        let figures = format!("{}{money}", duration(ms));
        let ok = matches!(ended.end, TurnOutcome::Answered | TurnOutcome::Proposed);
        if let Some(color) = teammate.color {
            let words = if ok { ended.text.clone() } else { told(ended, teammate.ends, self.lang) };
            return Some(Row::Teammate { name: teammate.name, color, words, figures, ok });
        }
        Some(Row::Member { words: self.lang.member_done(&teammate.called(), ok, &figures), ok })
    }

    pub(super) fn delta(&mut self, from: &Origin, call: u32, delta: &Delta, now_ms: i64) {
        if let Some(teammate) = self.teammates.iter_mut().find(|teammate| Some(teammate.agent) == from.agent) {
            drop(teammate.transcript.delta(call, delta, now_ms));
        }
    }

    /// A plan has counted what a task came to.
    pub(super) fn counted(&mut self, plan: PlanId, event: &Event) {
        let task = match event {
            Event::TaskReported(reported) => &reported.task,
            Event::TaskDone(done) => &done.task,
            Event::TaskCorrected(corrected) => &corrected.task,
            Event::TaskFailed(failed) => &failed.task,
            Event::TaskCancelled(cancelled) => &cancelled.task,
            Event::TaskPaused(paused) => &paused.task,
            Event::PlanEnded(_) => {
                return self.teammates.retain(|teammate| teammate.task.as_ref().is_none_or(|(at, _)| *at != plan));
            }
            _ => return,
        };
        self.teammates.retain(|teammate| teammate.task.as_ref().is_none_or(|(at, name)| *at != plan || name != task));
    }

    pub(super) fn clear(&mut self) {
        self.teammates.clear();
    }
}

/// Why an agent has not finished its work, and its last words. An agent that is shutting down is not said to be
/// resumable.
fn told(ended: &TurnEnded, ends: bool, lang: Lang) -> String {
    let why = match ended.end {
        TurnOutcome::Interrupted if ends => lang.stopped_to_end().to_owned(),
        _ => lang.end(&ended.end).unwrap_or_default(),
    };
    let why = why.lines().next().unwrap_or_default();
    format!("{why}\n{}", ended.text).trim().to_owned()
}
