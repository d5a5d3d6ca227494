//! The team's part of a session: plans, members, and what the user says about them.
//!
//! Like the rest of the session it turns notices into items and wishes into orders, and does nothing else.

use std::sync::Arc;

use max_team_core::chat::Part;
use max_team_core::event::{Event, Interrupted};
use max_team_core::id::{PlanId, QuestionId};
use max_team_core::mention;
use max_team_core::plan::event::{PlanAnswered, PlanAsked, PlanDecision, PlanQuestion};
use max_team_core::plan::{Draft, Plan, TaskStatus};
use max_team_core::task_list::TaskList;
use max_team_runtime::{OpenedSession, Origin, RuntimeError, ShownContent, Team, is_go_on};

use super::super::background::Background;
use super::super::command_queue::{AgentWork, UiCommand};
use super::super::members::{ActiveMember, Members};
use super::super::plans::{DrawnPlan, NoticeEffect, PlanEntry, Plans};
use super::super::question::QuestionKind;
use super::super::rows::Row;
use super::super::slash_output;
use super::super::task_panel::TaskPanel;
use super::super::transcript::{Item, Transcript, text_of};
use super::{Session, note};
use crate::plan_text;

/// Rows and pieces of text that are shown of an agent's work; the last ones.
const SHOWN_ITEMS_MAX: usize = 200;

impl Session {
    /// Who works for the lead.
    pub(in super::super) fn with_team(mut self, team: Option<Team>) -> Self {
        self.setup.team = team;
        self
    }

    /// Others work here now, or something is wrong with how they are written.
    pub(super) fn hear_of_crew(
        &mut self,
        crew: Option<&max_team_runtime::TeamDefinitions>,
        notes: &[String],
    ) -> Vec<Item> {
        if let (Some(team), Some(crew)) = (&mut self.setup.team, crew) {
            (team.members, team.experts) = (crew.members.clone(), crew.experts.clone());
        }
        notes.iter().cloned().map(note).collect()
    }

    pub(in super::super) fn team(&self) -> Option<&Team> {
        self.setup.team.as_ref()
    }

    pub(in super::super) fn plans(&self) -> &Plans {
        &self.plans
    }

    /// The plan that people mean by "the plan".
    pub(in super::super) fn plan(&self) -> Option<&Plan> {
        self.plans.latest().map(|known| &known.plan)
    }

    /// The shared task list.
    pub(in super::super) fn list(&self) -> &TaskPanel {
        &self.list
    }

    /// They have changed, or may have.
    pub(in super::super) fn list_changed(&mut self) {
        self.acts.extend(self.list.change().then_some(UiCommand::Tasks));
    }

    pub(super) fn list_read(&mut self, outcome: Result<TaskList, RuntimeError>) -> Vec<Item> {
        let failed = outcome.as_ref().err().map(|error| Item::Row(Row::Error(error.to_string())));
        self.acts.extend(self.list.read(outcome.ok()).then_some(UiCommand::Tasks));
        // What is listed now may be newer than a stop.
        self.acts.extend(self.teammates.is_any_stopped().then_some(UiCommand::Standing));
        failed.into_iter().collect()
    }

    /// What an agent besides the lead does, in a few words.
    pub(in super::super) fn doing(&self, teammate: &ActiveMember, now_ms: i64) -> String {
        teammate.doing(self.agents.is_asking(teammate.agent), self.lang, now_ms)
    }

    pub(in super::super) fn crew(&self) -> &Members {
        &self.crew
    }

    /// Background commands of all agents.
    pub(in super::super) fn background(&self) -> &Background {
        &self.background
    }

    /// Whether anybody does anything, the lead or the team.
    pub(in super::super) fn is_at_work(&self) -> bool {
        self.is_busy() || self.is_team_at_work()
    }

    /// Whether the team does anything.
    pub(in super::super) fn is_team_at_work(&self) -> bool {
        self.plans.is_moving() || self.crew.busy().any(|teammate| !teammate.aside)
    }

    /// Whether `/stop` would stop anything: agents, also those that are about to start, background commands, or a plan.
    pub(super) fn is_stoppable(&self) -> bool {
        let is_joining = self.agents.is_joining() || !self.run.copies.is_empty();
        let is_running = self.is_at_work() || self.plans.running().any(|known| !known.plan.is_held());
        is_running || self.crew.busy().next().is_some() || is_joining || !self.background.is_empty()
    }

    /// How many copies of the project there are for those who are about to begin, and how many there will be.
    pub(in super::super) fn copies(&self) -> Option<(usize, usize)> {
        self.run.copies.values().copied().reduce(|(made, of), (more, and)| (made + more, of + and))
    }

    /// Takes up what the team was at before we came.
    pub(super) fn join_team(&mut self, opened: &OpenedSession) {
        self.plans = Plans::default();
        self.list = TaskPanel::default();
        if opened.resumed {
            self.list_changed();
        }
        self.crew.clear();
        self.background.clear();
        for plan in &opened.plans {
            self.plans.want(*plan);
            self.acts.push(UiCommand::Plan(*plan));
        }
        for asked in &opened.asked {
            self.questions.resume(asked);
            self.agents.resume(asked.question, asked.agent);
            if asked.agent != Some(self.lead) {
                self.crew.resume(asked);
            }
        }
    }

    pub(in super::super) fn propose(&mut self, draft: Draft, source: String) {
        self.run.turns = self.run.turns.max(1);
        self.run.quiet = false;
        self.acts.push(UiCommand::Propose { draft: Box::new(draft), source });
    }

    pub(in super::super) fn decide(&mut self, question: QuestionId, say: PlanDecision) {
        if matches!(say, PlanDecision::Edit(_)) {
            self.questions.edited_here(question, say.clone());
        } else {
            self.questions.answered_here(question);
        }
        self.acts.push(UiCommand::Decide { question, say });
    }

    pub(super) fn member_event(&mut self, from: &Origin, at_ms: i64, event: &Event) -> Vec<Item> {
        if let Event::Mailed(envelope) = event
            && envelope.from.starts_with("user/")
        {
            // Written at another terminal.
            let text = envelope.text();
            if is_go_on(text) {
                return Vec::new();
            }
            return self.written(&[from.name.to_string()], text.to_owned());
        }
        from.agent.into_iter().for_each(|agent| self.agents.apply(agent, &from.name, event));
        let mut items = self.hear_of_teammates(from, event);
        self.teammate_read(from, event);
        match event {
            // The session does not wait for an agent that works aside.
            Event::TurnStarted(_) if from.aside => {}
            Event::TurnStarted(_) => {
                (self.run.quiet, self.run.halted) = (false, false);
                self.messages.waits_told.remove(&*from.name);
            }
            Event::QuestionAsked(asked) => {
                let title = self.crew.title(from);
                self.questions.ask_at(from, &from.name, title, asked);
            }
            // How many messages wait for it is asked: as for the lead, the mail knows.
            Event::Interrupted(Interrupted { held: Some(_), .. }) => {
                self.acts
                    .extend(from.agent.map(|agent| UiCommand::TeammatesHeld(vec![(from.name.to_string(), agent)])));
            }
            Event::QuestionAnswered(answered) => items.extend(self.answered(answered)),
            Event::ToolDone(_) => self.questions.keep(&self.agents),
            Event::TurnEnded(ended) => {
                self.questions.keep(&self.agents);
                // What a plan spends is on its own account.
                if from.task.is_none() && !from.aside {
                    self.transcript.count(&ended.charges);
                }
            }
            _ => {}
        }
        let row = self.crew.event(from, at_ms, event);
        // What a teammate says at the end of a turn may be its answer to the user.
        if let (Some(Row::Teammate { .. }), Event::TurnEnded(ended)) = (&row, event) {
            self.seen(from.agent.map(|agent| ShownContent::Turn(agent, ended.turn)));
        }
        items.extend(row.map(Item::Row));
        items
    }

    pub(super) fn plan_event(&mut self, id: PlanId, at_ms: i64, event: &Event) -> Vec<Item> {
        match self.plans.hear(id, at_ms, event) {
            NoticeEffect::Folded => {}
            NoticeEffect::Known => return Vec::new(),
            NoticeEffect::Unread => {
                self.plans.want(id);
                self.acts.push(UiCommand::Plan(id));
                return Vec::new();
            }
        }
        self.run.quiet = false;
        self.crew.counted(id, event);
        let mut items = Vec::new();
        match event {
            Event::PlanAsked(asked) => {
                if !self.questions.renew(id, asked) {
                    self.questions.ask_about(id, asked);
                }
            }
            // What it says now is asked next; until then the question stays on the screen.
            Event::PlanAnswered(PlanAnswered { question, say: say @ PlanDecision::Edit(_), .. }) => {
                self.questions.edited(*question, say);
                return items;
            }
            Event::PlanEdited(_) => {
                items.push(note(self.lang.changed_plan().to_owned()));
                return items;
            }
            Event::PlanAnswered(answered) => {
                let elsewhere = self.questions.answered(answered.question);
                if elsewhere.is_some() {
                    items.push(note(self.lang.answered_by(&answered.say, &answered.by.name())));
                } else if !matches!(answered.say, PlanDecision::Rule(_)) {
                    // What becomes of a task says so itself.
                    items.push(note(format!("{}: {}", self.lang.plan_word(), self.lang.said(&answered.say))));
                }
            }
            Event::PlanEnded(_) => {
                if let Some(known) = self.plans.get(id) {
                    items.push(Item::Row(Row::Over(drawn(known), known.elapsed_ms(at_ms))));
                }
            }
            _ => items.extend(self.step(event)),
        }
        self.keep_questions(id);
        items
    }

    /// What of a step is shown, and where.
    fn step(&self, event: &Event) -> Option<Item> {
        let words = plan_text::step(event, self.lang)?;
        let (sign, bad) = match event {
            // What is given up follows from a failure or a stop that was told.
            Event::TaskStarted(_) | Event::TaskDone(_) | Event::TaskSkipped(_) | Event::TaskCancelled(_) => {
                return Some(Item::Minor(Row::Note(words)));
            }
            Event::TaskFailed(failed) => {
                if failed.retry_at_ms.is_some() {
                    ("↻", false)
                } else {
                    ("✗", true)
                }
            }
            Event::TaskAsked(_) => ("?", false),
            Event::TaskPaused(_) | Event::PlanStopped(_) => ("■", false),
            _ => ("→", false),
        };
        Some(Item::Row(Row::Step { sign, bad, words }))
    }

    /// A plan that was there before we came has been read.
    pub(super) fn plan_read(&mut self, id: PlanId, plan: Plan, now_ms: i64) {
        self.plans.read(id, plan, now_ms);
        let Some(known) = self.plans.get(id) else { return };
        let asked: Vec<(QuestionId, PlanQuestion)> =
            known.plan.asked().map(|(question, about)| (question, about.clone())).collect();
        for (question, about) in asked {
            self.questions.ask_about(id, &PlanAsked { question, about });
        }
        self.keep_questions(id);
    }

    /// Closes the plan's questions that the plan has no longer open.
    fn keep_questions(&mut self, id: PlanId) {
        if let Some(known) = self.plans.get(id) {
            self.questions.keep_of_plan(id, |question| known.plan.asked().any(|(open, _)| open == question));
        }
    }

    pub(in super::super) fn sheet(&self, id: PlanId, is_full: bool) -> Option<Item> {
        self.plans.get(id).map(|known| Item::Row(Row::Sheet(drawn(known), is_full)))
    }

    /// The plan that the first question asks about and the question, if it is whether it may run.
    fn asked_first(&self) -> Option<(PlanId, QuestionId)> {
        let first = self.questions.first()?;
        match &first.matter {
            QuestionKind::Plan { plan, about: PlanQuestion::Proposal } => Some((*plan, first.id)),
            _ => None,
        }
    }

    /// The sheet of the plan that is asked about first, unless it was shown last: the user must not approve one plan
    /// while another is on the screen.
    pub(in super::super) fn sheet_due(&mut self) -> Option<Item> {
        let (plan, question) = self.asked_first().filter(|(_, question)| self.offered.sheeted != Some(*question))?;
        self.offered.sheeted = Some(question);
        self.sheet(plan, false)
    }

    pub(super) fn show_plan(&mut self, is_full: bool) -> Vec<Item> {
        self.questions.unpark();
        let asked = self.asked_first();
        let Some(id) = asked.map(|(plan, _)| plan).or_else(|| self.plans.latest().map(|known| known.id)) else {
            return vec![note(self.lang.no_open_plan().to_owned())];
        };
        self.offered.sheeted = asked.map(|(_, question)| question);
        self.sheet(id, is_full).into_iter().collect()
    }

    pub(super) fn show_team(&mut self) -> Vec<Item> {
        self.acts.push(UiCommand::Roll(true));
        let Some(team) = self.setup.team.as_ref().filter(|team| !team.members.is_empty()) else {
            return vec![note(self.lang.no_team().to_owned())];
        };
        vec![Item::Row(slash_output::team(self.lang, team, &self.crew))]
    }

    /// All work of a called agent, or a list of called agents.
    pub(super) fn shown(&self, wanted: Option<&str>, (called, shown): &AgentWork) -> Vec<Item> {
        let Some((row, events)) = shown else {
            let words = wanted.map(|wanted| note(self.lang.nobody_called(wanted)));
            return words.into_iter().chain([Item::Row(slash_output::called(self.lang, called))]).collect();
        };
        let mut transcript = Transcript::new(self.lang, self.settings.clone());
        let mut items = Vec::new();
        for (at_ms, event) in events {
            let told = transcript.event(*at_ms, event);
            match event {
                // Here it is the caller who speaks.
                Event::TurnStarted(started) => {
                    let (own, files): (Vec<Part>, Vec<Part>) = started
                        .input
                        .iter()
                        .cloned()
                        .partition(|part| mention::labels(std::slice::from_ref(part)).is_empty());
                    items.push(Item::Row(Row::Said(text_of(&own))));
                    items.extend((!files.is_empty()).then(|| Item::Row(Row::Files(mention::labels(&files)))));
                }
                _ => items.extend(told),
            }
        }
        let hidden = items.len().saturating_sub(SHOWN_ITEMS_MAX);
        let mut all = vec![note(format!("── {}", row.handle()))];
        if hidden > 0 {
            all.push(note(format!("… {}", self.lang.earlier_left_out())));
        }
        all.extend(items.split_off(hidden));
        all.push(note("──".to_owned()));
        all
    }

    pub(super) fn show_inbox(&mut self) -> Vec<Item> {
        let waits: Vec<_> = self.questions.all().collect();
        let items = vec![Item::Row(slash_output::inbox(self.lang, &waits))];
        self.questions.unpark();
        items
    }

    /// Puts a question off; how it comes back.
    pub(in super::super) fn put_off(&mut self, id: QuestionId) -> String {
        let question = self.questions.all().find(|question| question.id == id);
        let words = match question.map(|question| (&question.matter, &question.by.name)) {
            Some((QuestionKind::Permit(permit), who)) => self.lang.put_off(who, &permit.tool),
            _ => self.lang.parked_hint().to_owned(),
        };
        self.questions.park(id);
        words
    }

    /// Stops what runs: a task of a plan, all plans, or the lead.
    pub(super) fn stop(&mut self, task: Option<String>) -> Vec<Item> {
        if self.is_stopped() {
            return self.stop_again();
        }
        let Some(task) = task else {
            if !self.is_stoppable() {
                return vec![note(self.lang.nothing_runs().to_owned())];
            }
            self.halt();
            return Vec::new();
        };
        let is_open = |known: &&PlanEntry| {
            known
                .plan
                .tasks()
                .any(|view| view.task.id == task && !matches!(view.status, TaskStatus::Done | TaskStatus::Skipped))
        };
        match self.plans.open().filter(is_open).last().map(|known| known.id) {
            Some(plan) => self.ask(UiCommand::Stop { plan, task: Some(task) }),
            None => vec![note(self.lang.no_task(&task))],
        }
    }
}

/// Whether the event changes the shared task list.
pub(super) fn is_of_list(event: &Event) -> bool {
    matches!(event, Event::ItemAdded(_) | Event::ItemWritten(_) | Event::ItemMoved(_))
}

fn drawn(known: &PlanEntry) -> DrawnPlan {
    DrawnPlan(Arc::new(known.plan.clone()))
}
