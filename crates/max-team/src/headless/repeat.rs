//! `-c -p ""` where nothing is open: the last answer once more, with the outcome that it had.
//!
//! The outcome follows from the journal: the last turn, and the refusals and plans since the user last spoke.

use max_team_core::verdict::{DeniedCall, RefusedCalls, is_outlived};
use max_team_runtime::OpenedSession;
use max_team_runtime::query;

use super::run_state::{RunState, denial};
use super::{Headless, called, talk};
use crate::args::Format;

impl Headless {
    /// Recalls the last answer and what decided its outcome, unless this run has an answer of its own.
    pub(super) async fn repeat(&self, opened: &OpenedSession, tally: &mut RunState) -> anyhow::Result<()> {
        if !tally.repeat(opened) {
            return Ok(());
        }
        let since_ms = self.handle.ask(query::LastMessageTime { session: opened.session }).await?.unwrap_or(i64::MIN);
        self.recall_plans(opened, since_ms, tally).await?;
        self.recall_refusals(opened, since_ms, tally).await
    }

    async fn recall_plans(&self, opened: &OpenedSession, since_ms: i64, tally: &mut RunState) -> anyhow::Result<()> {
        for line in self
            .handle
            .ask(query::Plans { session: opened.session })
            .await?
            .into_iter()
            .filter(|line| line.row.at_ms >= since_ms)
        {
            let Some(end) = line.end.filter(|_| !tally.plans.known.iter().any(|(known, ..)| *known == line.row.plan))
            else {
                continue;
            };
            tally.plans.known.push((line.row.plan, None, Some(end.end)));
            if is_outlived(end.end, opened.last.as_ref().map(|last| &last.end)) {
                tally.plans.outlived.insert(line.row.plan);
            }
            if self.format == Format::Text {
                talk(&format!("{}: {}", self.lang.plan_word(), self.lang.came_to(end.end, &end.tally)));
            }
        }
        Ok(())
    }

    async fn recall_refusals(&self, opened: &OpenedSession, since_ms: i64, tally: &mut RunState) -> anyhow::Result<()> {
        for row in self.handle.ask(query::Agents { session: opened.session }).await? {
            let is_lead = row.agent == opened.agent;
            let mut refusals = RefusedCalls::default();
            let events = self.handle.ask(query::AgentEvents { agent: row.agent }).await?;
            for (_, event) in events.into_iter().filter(|(at_ms, _)| *at_ms >= since_ms) {
                if is_lead {
                    tally.output.lines.hear(&event);
                }
                refusals.apply(is_lead, event);
                // A call of the lead's is known by its id only until its turn is over.
                for denied in refusals.denied.drain(..) {
                    match denied {
                        DeniedCall::Lead(done) => tally.refused(&done),
                        DeniedCall::Other(refusal) => {
                            tally.refused_calls.denials.push(denial(&refusal.tool, None, Some(&refusal)))
                        }
                    }
                }
            }
            for question in &refusals.unasked {
                let call = called(&question.tool, &question.action.target);
                tally.refused_calls.unasked.push((call, question.recourse));
            }
        }
        Ok(())
    }
}
