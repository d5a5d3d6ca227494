//! `propose_plan` and `run_plan`. Only the user approves a plan, with the program itself.

use std::fmt::Write as _;
use std::time::Duration;

use max_team_core::event::TurnOutcome;
use max_team_core::id::{PlanId, SessionId};
use max_team_core::limits::{MCP_CALL_WAIT_MS_MAX, MCP_ROWS_MAX};
use max_team_core::plan::event::PlanQuestion;
use max_team_core::plan::{Plan, PlanState};
use max_team_runtime::stream::ApprovalStep;
use max_team_runtime::{RuntimeError, Scope, StreamReader, What, query};
use max_team_workspace::i18n::Lang;
use max_team_workspace::plan_file;
use serde::Deserialize;

use super::McpServer;
use super::answer::{SentMessage, Wait, Waited, waiting};
use super::caller::Caller;
use super::progress::Progress;
use super::result::{CallError, CallReply, row_text};

/// What the lead is told when only a plan is wanted.
const PROPOSE: &str = include_str!("../../../../prompts/propose_to_user.md");

/// How long a call waits for a plan that the lead has submitted to be put before the user.
const PROPOSAL_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProposePlan {
    goal: String,
    session: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunPlan {
    plan: String,
}

impl McpServer {
    pub(super) async fn propose_plan(
        &self,
        caller: &Caller,
        given: ProposePlan,
        wait: Wait<'_>,
    ) -> Result<CallReply, CallError> {
        if given.goal.trim().is_empty() {
            return Err(CallError("the goal is empty".to_owned()));
        }
        let chat = self.own_chat(caller, given.session.as_deref())?;
        let text = format!("{}\n\n{}", PROPOSE.trim_end(), given.goal);
        let mut sent = self.send(caller, &chat, text).await?;
        let waited = self.wait_for_answer(caller, &mut sent, wait).await?;
        let session = sent.session;
        Ok(match waited {
            Waited::Ended(ended) if ended.end == TurnOutcome::Proposed => {
                let text = format!("{}\n\n{}", ended.text, self.proposal(&mut sent).await?);
                CallReply::Text(text.trim_start().to_owned())
            }
            Waited::Ended(ended) => {
                let reason = Lang::En.end(&ended.end).unwrap_or_else(|| "Max proposed no plan.".to_owned());
                CallReply::Failed(format!("{}\n\n{reason}", ended.text).trim_start().to_owned())
            }
            Waited::Asked(questions) => CallReply::Text(waiting(&questions, session)),
            Waited::Late => {
                CallReply::Text(format!("Max still works on the plan. Call `status` later (session `{session}`)."))
            }
            Waited::Cancelled => CallReply::Failed("The call was cancelled, and the team has stopped.".to_owned()),
        })
    }

    /// The plan that a turn has proposed: its tasks, its id, and how the user approves it.
    pub(super) async fn proposal(&self, sent: &mut SentMessage) -> Result<String, CallError> {
        let shown = async {
            loop {
                if let Some(text) = self.shown_proposal(sent.session)? {
                    return Ok(text);
                }
                sent.events.next().await.map_err(|error| self.failed(&error))?;
            }
        };
        // The plan's loop asks the user after the turn has ended.
        let late = || Ok("The plan is not ready yet: `status` lists it later.".to_owned());
        tokio::time::timeout(PROPOSAL_WAIT, shown).await.unwrap_or_else(|_| late())
    }

    /// The last open plan of a session, once it waits for the user or runs.
    fn shown_proposal(&self, session: SessionId) -> Result<Option<String>, CallError> {
        let failed = |error: RuntimeError| self.failed(&error);
        let open = self.shared.reader.ask(query::OpenPlans { session: Some(session) }).map_err(failed)?;
        let Some(id) = open.last().copied() else { return Ok(None) };
        let plan = self.shared.reader.ask(query::Plan { plan: id }).map_err(failed)?;
        let is_asked = plan.asked().next().is_some() || plan.is_approved();
        Ok(plan.draft().filter(|_| is_asked).map(|draft| {
            let tasks = plan_file::write(draft);
            format!("{tasks}\n{}", how_to_approve(id, &plan))
        }))
    }

    pub(super) async fn run_plan(
        &self,
        caller: &Caller,
        given: RunPlan,
        wait: Wait<'_>,
    ) -> Result<CallReply, CallError> {
        let Wait { mut progress, stop } = wait;
        let failed = |error: RuntimeError| self.failed(&error);
        let id = self.find_plan(&given.plan)?;
        let (plan, session) = self.plan_here(id)?;
        if plan.ended().is_some() {
            return Ok(outcome(id, &plan));
        }
        if !plan.is_approved() && !self.is_answered(&plan)? {
            return Err(CallError(format!("The plan is not approved. {}", how_to_approve(id, &plan))));
        }
        // Before the state is read, so that nothing that happens after it is missed.
        let from = self.shared.reader.ask(query::Position {}).map_err(failed)?;
        self.see_to(caller, id, session).await?;
        let mut events = self.shared.reader.stream(Scope::Session(session), from).map_err(failed)?;
        let late = tokio::time::sleep(Duration::from_millis(MCP_CALL_WAIT_MS_MAX));
        tokio::select! {
            followed = self.follow_plan(id, session, &mut events, &mut progress) => followed,
            () = stop.cancelled() => Ok(CallReply::Text(format!(
                "The call was cancelled. Plan `{id}` goes on; the user stops it with `max-team stop {id}`."
            ))),
            () = late => Ok(CallReply::Text(format!("Plan `{id}` still runs. Call `run_plan` again later."))),
        }
    }

    /// Whether the user has answered about a plan that has not read the answer: it does once its session is open.
    fn is_answered(&self, plan: &Plan) -> Result<bool, CallError> {
        let inbox = self.shared.reader.ask(query::Inbox {}).map_err(|error| self.failed(&error))?;
        let is_asked = |question| plan.asked().any(|(asked, _)| asked == question);
        Ok(inbox.iter().any(|pending| pending.noted.is_some() && is_asked(pending.row.question)))
    }

    /// Follows a plan to its end, or to a question for the user.
    async fn follow_plan(
        &self,
        id: PlanId,
        session: SessionId,
        events: &mut StreamReader,
        progress: &mut Progress,
    ) -> Result<CallReply, CallError> {
        loop {
            let (plan, _) = self.plan_here(id)?;
            if plan.ended().is_some() {
                return Ok(outcome(id, &plan));
            }
            let questions = self.questions_of(session)?;
            if !questions.is_empty() {
                return Ok(CallReply::Text(waiting(&questions, session)));
            }
            // The next event after which one of these may be different.
            loop {
                let event = events.next().await.map_err(|error| self.failed(&error))?;
                progress.report(&event).await;
                let is_asked = matches!(event.what, What::Approval { state: ApprovalStep::Asked, .. });
                if is_asked || matches!(event.what, What::Plan { plan, .. } if plan == id) {
                    break;
                }
            }
        }
    }

    /// Makes sure that a process runs an approved plan: this one opens the client's own session.
    async fn see_to(&self, caller: &Caller, id: PlanId, session: SessionId) -> Result<(), CallError> {
        let failed = |error: RuntimeError| self.failed(&error);
        let (_, state) = self.shared.reader.ask(query::PlanWithState { plan: id }).map_err(failed)?;
        if state == PlanState::Stopped {
            return Err(CallError(format!(
                "The user stopped plan `{id}`. The user continues it in the chat: `max-team -r {session}`, then `/continue`."
            )));
        }
        if self.shared.reader.ask(query::Owner { session }).map_err(failed)?.is_some() {
            return Ok(());
        }
        let row = self.shared.reader.ask(query::Session { session }).map_err(failed)?;
        let Some(chat) = row.chat.clone().filter(|_| caller.owns(&row)) else {
            return Err(CallError(format!(
                "Plan `{id}` belongs to a session that no process has open and that is not yours. The user goes on with it: \
                 `max-team -r {session}`."
            )));
        };
        let gateway = self.gateway().await.map_err(|error| self.refused(&error))?;
        gateway.session(&chat, &caller.principal()).await.map(drop).map_err(|error| self.not_taken(&error))
    }

    pub(super) fn find_plan(&self, text: &str) -> Result<PlanId, CallError> {
        let found = self.shared.reader.ask(query::FindPlan { text: text.trim().to_owned() });
        let unknown = || CallError(format!("there is no plan `{}`: `status` lists open plans", text.trim()));
        found.map_err(|error| self.failed(&error))?.ok_or_else(unknown)
    }

    /// A plan of a session in the folder of this server.
    pub(super) fn plan_here(&self, id: PlanId) -> Result<(Box<Plan>, SessionId), CallError> {
        let failed = |error: RuntimeError| self.failed(&error);
        let plan = self.shared.reader.ask(query::Plan { plan: id }).map_err(failed)?;
        let session = plan.session().ok_or_else(|| CallError(format!("plan `{id}` belongs to no session")))?;
        let row = self.shared.reader.ask(query::Session { session }).map_err(failed)?;
        match self.is_here(&row) {
            true => Ok((plan, session)),
            false => Err(CallError(format!("plan `{id}` belongs to another folder"))),
        }
    }
}

fn how_to_approve(id: PlanId, plan: &Plan) -> String {
    let question =
        plan.asked().find(|(_, about)| matches!(about, PlanQuestion::Proposal)).map(|(question, _)| question);
    let command = question.map_or("max-team inbox".to_owned(), |question| format!("max-team approve {question}"));
    format!(
        "Plan `{id}` waits for the user: nothing runs until they approve it with `{command}` (`max-team plans show {id}` shows it). \
         Then call `run_plan` with plan `{id}`."
    )
}

/// How a plan ended, task by task.
fn outcome(id: PlanId, plan: &Plan) -> CallReply {
    let end = plan.ended();
    let mut text = match end {
        Some(end) => format!("Plan `{id}`: {}.\n", Lang::En.came_to(end, &plan.tally())),
        None => String::new(),
    };
    for view in plan.tasks().take(MCP_ROWS_MAX) {
        let result = view.result.map_or(view.error, |result| result.output.as_str());
        let _ = writeln!(text, "- {} ({}): {}: {}", view.task.id, view.member, view.status.name(), row_text(result));
    }
    text.push_str("`read_artifact` shows the whole result of a task, `answer_of` Max's report.");
    match end.map(PlanState::of_end) {
        Some(PlanState::Done) | None => CallReply::Text(text),
        Some(_) => CallReply::Failed(text),
    }
}
