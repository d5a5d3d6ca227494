//! `-c -p ""` where nothing is open: the last answer once more, with the outcome that it had.
//!
//! The outcome follows from the journal: the last turn, and the refusals and plans since the user last spoke.

use std::collections::HashMap;

use max_team_core::event::{End, Ending, Event, Refusal};
use max_team_core::ledger::dollars;
use max_team_core::plan::event::PlanEnd;
use max_team_core::policy::{By, Deed};
use max_team_runtime::Opened;

use super::tally::{Tally, denial};
use super::{Headless, called, talk};
use crate::args::Format;
use crate::exit::Exit;

impl Headless {
    /// Recalls the last answer and what decided its outcome, unless this run has an answer of its own.
    pub(super) fn repeat(&self, opened: &Opened, tally: &mut Tally) -> anyhow::Result<()> {
        if !tally.repeat(opened) {
            return Ok(());
        }
        let since_ms = self.handle.last_said_ms(opened.session)?.unwrap_or(i64::MIN);
        self.recall_plans(opened, since_ms, tally)?;
        self.recall_refusals(opened, since_ms, tally)
    }

    fn recall_plans(&self, opened: &Opened, since_ms: i64, tally: &mut Tally) -> anyhow::Result<()> {
        for line in self.handle.plans(opened.session)?.into_iter().filter(|line| line.row.at_ms >= since_ms) {
            let Some(end) = line.end.filter(|_| !tally.plans.iter().any(|(known, ..)| *known == line.row.plan)) else {
                continue;
            };
            tally.plans.push((line.row.plan, None, Some(end.end)));
            // The turn that proposed the plan is not an answer to its end.
            let is_answered =
                opened.last.as_ref().is_some_and(|last| last.end != End::Proposed && Exit::of(&last.end) == Exit::Ok);
            if is_answered && end.end == PlanEnd::Stopped {
                tally.outlived.insert(line.row.plan);
            }
            if self.format == Format::Text {
                let money = format!("${:.4}", dollars(end.tally.spent.nano));
                talk(&format!("{}: {}", self.lang.plan_word(), self.lang.came_to(end.end, &end.tally, &money)));
            }
        }
        Ok(())
    }

    fn recall_refusals(&self, opened: &Opened, since_ms: i64, tally: &mut Tally) -> anyhow::Result<()> {
        for row in self.handle.agents(opened.session)? {
            let is_lead = row.agent == opened.agent;
            let mut asked = HashMap::new();
            let events = self.handle.agent_events(row.agent)?;
            for (_, event) in events.into_iter().filter(|(at_ms, _)| *at_ms >= since_ms) {
                if is_lead {
                    tally.lines.hear(&event);
                }
                match event {
                    Event::ToolDone(done) if is_lead && done.ending == Ending::Refused => tally.refused(&done),
                    Event::QuestionAsked(question) => drop(asked.insert(question.question, question)),
                    Event::QuestionAnswered(answered) if matches!(answered.answer.by, By::Nobody(_)) => {
                        let Some(question) = asked.remove(&answered.question) else { continue };
                        if matches!(question.action.deed, Deed::Merge | Deed::Propose) {
                            continue;
                        }
                        tally.unasked.push(called(&question.tool, &question.action.target));
                        if !is_lead {
                            let (tool, target) = (question.tool, question.action.target);
                            let refusal = Refusal { tool: tool.clone(), target, by: answered.answer.by };
                            tally.denials.push(denial(&tool, None, Some(&refusal)));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
