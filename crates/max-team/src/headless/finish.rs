//! The end of a run without a chat: the answer or the plan, why there is none, and the exit code (which `core::verdict` decides).

use max_team_core::event::{Event, TurnEnded, TurnOutcome};
use max_team_core::id::{QuestionId, SessionId};
use max_team_core::verdict::{RunFacts, RunVerdict};
use max_team_runtime::query;
use max_team_runtime::{Notice, OpenedSession, Origin};
use tokio::sync::mpsc;

use super::run_state::RunState;
use super::{Headless, Task, millis, talk, unsaid};
use crate::args::{Format, Input};
use crate::signals::Signals;
use crate::stream_json::RunResult;
use max_team_terminal::plan_text::{self, PlanDetail};
use max_team_terminal::text::clean;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::plan_file;

impl Headless {
    pub(super) async fn finish(
        &self,
        opened: &OpenedSession,
        tally: &RunState,
        stopped: Option<Exit>,
    ) -> anyhow::Result<Exit> {
        if let Some(exit) = self.finish_plan(opened, tally, stopped).await? {
            return Ok(exit);
        }
        let Some(ended) = &tally.turn.ended else {
            let has_plan = tally.plan_to_tell().is_some();
            // Why a team could not begin is told; and where others than the lead had something to do, there was something.
            if !has_plan && !tally.teammates.unjoined && tally.heard.is_empty() && tally.questions.waiting.is_empty() {
                return Err(CliError::said(Exit::Usage, |lang| lang.nothing_open().to_owned()).into());
            }
            // The lead says nothing about a stopped plan; its last step was printed already.
            let verdict = self.verdict(tally, None, stopped).await?;
            if verdict.exit == Exit::Ok && !has_plan {
                talk(self.lang.nothing_said());
            }
            self.tell_silence(opened.session, &verdict, tally)?;
            return Ok(verdict.exit);
        };
        self.tell_result(opened.session, ended, tally, stopped).await
    }

    /// The result of a run that was stopped before its end: the last answer, or a note that there is none.
    pub(super) async fn tell_stopped(
        &self,
        session: SessionId,
        tally: &RunState,
        stopped: Option<Exit>,
    ) -> anyhow::Result<()> {
        match tally.turn.ended.as_ref().filter(|_| !tally.turn.repeats) {
            Some(ended) => self.tell_result(session, ended, tally, stopped).await.map(drop),
            None => self.tell_silence(session, &self.verdict(tally, None, stopped).await?, tally),
        }
    }

    /// The end of a run that has listened: each turn's result was told.
    pub(super) async fn finish_listening(
        &self,
        opened: &OpenedSession,
        tally: &RunState,
        notices: mpsc::Receiver<Notice>,
        signals: &mut Signals,
        (stopped, exit): (Option<Exit>, Exit),
    ) -> anyhow::Result<Exit> {
        let session = opened.session;
        self.pause_plans(session, stopped).await?;
        if let Some(exit) = stopped {
            self.tell_of_stop(session, stopped).await?;
            if tally.owes_result() {
                drop(self.tell_silence(session, &self.verdict(tally, None, stopped).await?, tally));
            }
            return Ok(exit);
        }
        if tally.turn.ended.is_none() {
            let is_text = matches!(self.task, Task::Listen(Input::Text));
            let words = |lang: Lang| if is_text { lang.no_text_came_in() } else { lang.nothing_came_in() };
            return Err(CliError::said(Exit::Usage, |lang| words(lang).to_owned()).into());
        }
        let exit = match self.finish_plan(opened, tally, None).await? {
            Some(exit) => exit,
            None => self.tell_rest(session, tally, exit).await?,
        };
        drop(notices);
        self.part(session, tally, None, exit, signals).await
    }

    /// What no turn of a run that has listened has told, if that is no good end.
    async fn tell_rest(&self, session: SessionId, tally: &RunState, exit: Exit) -> anyhow::Result<Exit> {
        let rest = self.verdict(tally, None, None).await?;
        if rest.exit == Exit::Ok || (rest.plan.is_none() && exit != Exit::Ok) {
            return Ok(exit);
        }
        self.tell_silence(session, &rest, tally)?;
        Ok(rest.exit)
    }

    /// Takes in the questions of plans that are stored and whose notice has not come yet.
    pub(super) async fn hear_of_open_plans(&self, session: SessionId, tally: &mut RunState) -> anyhow::Result<()> {
        let inbox = self.handle.ask(query::Inbox {}).await?;
        for pending in inbox.into_iter().filter(|pending| pending.session == Some(session)) {
            let Some(plan) = pending.plan else { continue };
            let known = &mut tally.plans.known;
            match known.iter_mut().find(|(known, ..)| *known == plan) {
                Some((_, asked, None)) => *asked = asked.or(Some(pending.row.question)),
                Some(_) => {}
                None => known.push((plan, Some(pending.row.question), None)),
            }
        }
        Ok(())
    }

    /// The result is out: what is said beside it, and what fails now, changes the code and makes no second one.
    pub(super) async fn part(
        &self,
        session: SessionId,
        tally: &RunState,
        stopped: Option<Exit>,
        exit: Exit,
        signals: &mut Signals,
    ) -> anyhow::Result<Exit> {
        let last = async {
            self.tell_of_parked(session, tally).await?;
            self.tell_of_the_stopped(session, tally, stopped, exit).await?;
            self.tell_of_copies(session).await?;
            self.leave(session, stopped.is_none(), signals).await
        };
        match last.await {
            Err(error) if error.downcast_ref::<std::io::Error>().is_none() => {
                talk(&crate::told(&error, self.lang));
                Ok(crate::exit_of(&error))
            }
            ended => ended.map(|()| exit),
        }
    }

    /// That a plan waits for the model server, and how to go on with it.
    async fn tell_of_parked(&self, session: SessionId, tally: &RunState) -> anyhow::Result<()> {
        for (plan, ..) in &tally.plans.known {
            if self.handle.ask(query::Plan { plan: *plan }).await?.is_parked() {
                let words = self.lang.plan_awaits_server(plan.to_string(), session.to_string());
                let error = tally.outage.as_ref().map_or_else(String::new, |error| format!(" ({error})"));
                talk(&format!("{words}{error}"));
            }
        }
        Ok(())
    }

    /// That a run was stopped, and how to go on where something is left to go on with.
    pub(super) async fn tell_of_stop(&self, session: SessionId, stopped: Option<Exit>) -> anyhow::Result<()> {
        if let Some(late) = self.late(stopped, self.lang) {
            talk(&late);
            return Ok(());
        }
        if matches!(stopped, Some(Exit::Interrupted | Exit::Terminated)) && self.runs_plan(session).await? {
            return self.tell_of_pause(session).await;
        }
        let left = self.handle.ask(query::Unfinished { session }).await?;
        let is_told = unsaid(self.is_cut(left.last.as_ref()), left.lead, left.held).is_some();
        let goes_on = left.lead || left.others || is_told;
        talk(&self.lang.interrupted(goes_on.then(|| session.to_string()).as_deref()));
        Ok(())
    }

    /// That a plan is paused: what its unfinished tasks have changed so far, and how to go on.
    async fn tell_of_pause(&self, session: SessionId) -> anyhow::Result<()> {
        for plan in self.handle.ask(query::OpenPlans { session: Some(session) }).await? {
            for left in self.handle.ask(query::UnfinishedFiles { plan }).await? {
                talk(&format!("{}: {}", left.task, self.lang.task_left(&left)));
            }
            if self.handle.ask(query::Plan { plan }).await?.is_moving() {
                talk(&self.lang.plan_paused(session, plan));
            }
        }
        Ok(())
    }

    /// An agent's turn has ended. If it worked for the user, its answer is printed here, since the lead does not
    /// repeat it.
    pub(super) fn is_over(&self, from: &Origin, event: &Event, tally: &mut RunState) {
        let Event::TurnEnded(ended) = event else { return };
        // A plan says itself that it waits for money.
        if ended.end == TurnOutcome::Budget && !from.lead && from.task.is_none() {
            tally.teammates.unpaid.extend(from.agent);
        }
        if ended.end == TurnOutcome::Interrupted
            || !from.agent.is_some_and(|agent| tally.teammates.for_user.remove(&agent))
        {
            return;
        }
        tally.teammates.written =
            Some(tally.teammates.written.unwrap_or(true) && Exit::of_turn_outcome(&ended.end) == Exit::Ok);
        // A stream has a line of its own for it.
        if self.format != Format::StreamJson {
            let said = self.lang.ended_because(&ended.end).into_iter().chain([ended.text.clone()]);
            let said: Vec<String> = said.filter(|words| !words.trim().is_empty()).collect();
            talk(&self.lang.wrote(&from.name, said.join("\n")));
        }
    }

    /// Reports agents that were stopped from elsewhere: the whole run, or those without which the lead has answered.
    pub(super) async fn tell_of_the_stopped(
        &self,
        session: SessionId,
        tally: &RunState,
        stopped: Option<Exit>,
        exit: Exit,
    ) -> anyhow::Result<()> {
        if stopped.is_some() {
            return Ok(());
        }
        if exit == Exit::Interrupted {
            return self.tell_of_stop(session, stopped).await;
        }
        let names = tally.stopped();
        if !names.is_empty() {
            // A call of the lead's is the lead's to make again.
            let go_on = self
                .handle
                .ask(query::Stopped { session })
                .await?
                .iter()
                .any(|reader| names.contains(&reader.name.as_str()));
            let go_on = go_on.then(|| session.to_string());
            talk(&self.lang.answered_without(&names, go_on.as_deref()));
        }
        Ok(())
    }

    /// What a turn came to, and the exit code for it.
    pub(super) async fn tell_result(
        &self,
        session: SessionId,
        ended: &TurnEnded,
        tally: &RunState,
        stopped: Option<Exit>,
    ) -> anyhow::Result<Exit> {
        let verdict = self.verdict(tally, Some(ended), stopped).await?;
        if self.format == Format::Text {
            let is_silent = ended.structured.is_none() && ended.text.trim().is_empty();
            if verdict.exit == Exit::Ok && is_silent && tally.plan_to_tell().is_none() {
                talk(self.lang.nothing_said());
            }
            self.print_text(ended)?;
        }
        self.print_result(session, &verdict, (Some(ended), None), tally)?;
        let because = [self.lang.ended_because(&ended.end), self.lang.budget_unknown(ended)];
        because.iter().flatten().for_each(|words| talk(words));
        if tally.turn.repeats {
            talk(self.lang.answered_before());
        }
        self.tell_of_questions(session, tally);
        Ok(verdict.exit)
    }

    /// The result of a run in which the lead has said nothing.
    fn tell_silence(&self, session: SessionId, verdict: &RunVerdict, tally: &RunState) -> anyhow::Result<()> {
        let question = tally.questions.waiting.first().map(|waiting| waiting.question);
        self.print_result(session, verdict, (None, question), tally)?;
        self.tell_of_questions(session, tally);
        Ok(())
    }

    /// The `result` object, where one is wanted: of this turn, or of a plan that waits with this question.
    fn print_result(
        &self,
        session: SessionId,
        verdict: &RunVerdict,
        (ended, question): (Option<&TurnEnded>, Option<QuestionId>),
        tally: &RunState,
    ) -> anyhow::Result<()> {
        if self.format == Format::Text {
            return Ok(());
        }
        let result = RunResult {
            verdict,
            session: Some(session),
            ended,
            question,
            rounds: tally.turn.rounds,
            duration_ms: millis(tally.turn.began),
            api_ms: tally.turn.api_ms,
            first_ms: tally.turn.first_ms,
            denials: &tally.refused_calls.denials,
            moved: &tally.moved,
            cost: Some(&tally.cost),
            stopped: &tally.stopped(),
            repeated: tally.turn.repeats && ended.is_some(),
        };
        self.print_result_line(&result.json())
    }

    /// Work in a worktree is not in the project yet: the user is told, not only the model.
    pub(super) async fn tell_of_copies(&self, session: SessionId) -> anyhow::Result<()> {
        for copy in self.handle.ask(query::Worktrees { session }).await? {
            talk(&self.lang.copy_waits(&copy));
        }
        Ok(())
    }

    /// What is said of plans that wait for a person, or that were all that was wanted.
    async fn finish_plan(
        &self,
        opened: &OpenedSession,
        tally: &RunState,
        stopped: Option<Exit>,
    ) -> anyhow::Result<Option<Exit>> {
        let Some((plan, asked, _)) = tally.plan_to_tell() else {
            if matches!(self.task, Task::Plan { .. }) && tally.questions.waiting.is_empty() {
                if let Some(ended) = &tally.turn.ended {
                    self.print_text(ended)?;
                    self.lang.ended_because(&ended.end).into_iter().for_each(|why| talk(&why));
                }
                talk(self.lang.no_plan_came());
                return Ok(Some(stopped.unwrap_or(Exit::Failed)));
            }
            return Ok(None);
        };
        let state = self.handle.ask(query::Plan { plan: *plan }).await?;
        if let (Task::Plan { output, .. }, Some(draft)) = (&self.task, state.draft()) {
            let text = plan_file::write(draft);
            match output {
                Some(path) => {
                    let shown = path.display().to_string();
                    let unwritable = |error| CliError::unwritable(&shown, &error);
                    plan_file::put(path, &text).map_err(unwritable)?;
                    talk(&self.lang.plan_written(&shown));
                }
                None => crate::commands::print(&text)?,
            }
            return Ok(Some(RunVerdict::from_facts(&RunFacts { others: tally.others(), ..RunFacts::default() }).exit));
        }
        if asked.is_none() {
            return Ok(None);
        }
        let session = opened.session;
        let verdict = RunVerdict { plan: Some(*plan), ..self.verdict_of_waiting(&state, stopped) };
        if self.format == Format::Text {
            // What was asked for comes first.
            if let (Task::Say(_), Some(ended), false) = (&self.task, &tally.turn.ended, tally.turn.repeats) {
                self.print_text(ended)?;
            }
            let command = format!("max-team plans show {plan} --full");
            crate::commands::print(&plan_text::sheet(
                &state,
                plan_text::WIDTH,
                PlanDetail::Brief(&command),
                self.lang,
            ))?;
        }
        let said = tally.turn.ended.as_ref().filter(|_| matches!(self.task, Task::Say(_)) && !tally.turn.repeats);
        self.print_result(session, &verdict, (said, *asked), tally)?;
        if let Some(words) = self.lang.answered_with(&state) {
            talk(&self.lang.then_go_on(&words, session.to_string()));
        }
        Ok(Some(verdict.exit))
    }

    fn print_text(&self, ended: &TurnEnded) -> anyhow::Result<()> {
        match &ended.structured {
            Some(value) => Ok(self.out.put(value.to_string())?),
            None if ended.text.is_empty() => Ok(()),
            // Standard output of a skill is the agreed object or nothing.
            None if self.limit.is_some() => {
                talk(ended.text.trim_end());
                Ok(())
            }
            // A terminal must not be driven by them, and what goes through a pipe ends on one, too.
            None => Ok(self.out.put(clean(ended.text.trim_end()).into_owned())?),
        }
    }
}
