//! What was spent, turn by turn: from the rows that ended turns leave, and from those that run.

use max_team_core::chat::Usage;
use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_core::ledger::Charge;
use serde::Serialize;

use super::Census;
use crate::error::RuntimeError;
use crate::rows::{self, AgentRow, CostRow};

/// What one turn of an agent spent on one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: AgentId,
    /// Its name.
    pub name: String,
    /// The plan it worked in.
    pub plan: Option<PlanId>,
    /// What it worked on: the task's name, or the key of the call that delegated it.
    pub task: Option<String>,
    /// Whoever had called it, if somebody had: what it spent was spent for them.
    pub caller: Option<AgentId>,
    /// The model.
    pub model: String,
    /// Settled calls.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Nano-dollars, as far as the price is known.
    pub nano: u64,
    /// How much of them is for calls whose outcome nobody knows.
    pub unknown_nano: u64,
    /// When the turn ended; for one that runs, when it was looked at.
    pub at_ms: i64,
}

impl Census<'_> {
    /// What was spent since then, by everybody or in one session.
    pub fn costs(&self, session: Option<SessionId>, since_ms: i64, now_ms: i64) -> Result<Vec<Cost>, RuntimeError> {
        let sessions: Vec<SessionId> = match session {
            Some(session) => vec![session],
            None => {
                let found = rows::rows::<String>(self.journal, rows::AGENT)?;
                let mut ids: Vec<SessionId> = found.iter().filter_map(|(_, session)| session.parse().ok()).collect();
                ids.sort_unstable();
                ids.dedup();
                ids
            }
        };
        let mut costs = Vec::new();
        for session in sessions {
            for agent in self.agents(session)? {
                let key = agent.agent.to_string();
                for (_, row) in rows::rows::<CostRow>(self.journal, &rows::costs_of(&key))? {
                    if row.at_ms >= since_ms {
                        costs.extend(row.charges.into_iter().map(|charge| cost(&agent, charge, row.at_ms)));
                    }
                }
                if self.is_busy(agent.agent)? {
                    let turn = self.turn(agent.agent)?;
                    costs.extend(turn.charges().iter().cloned().map(|charge| cost(&agent, charge, now_ms)));
                }
            }
        }
        Ok(costs)
    }
}

impl Census<'_> {
    /// What an agent has spent since then, and what those have who worked for it, directly or through others.
    pub(crate) fn costs_of(
        &self,
        session: SessionId,
        agent: AgentId,
        since_ms: i64,
        now_ms: i64,
    ) -> Result<(Vec<Cost>, Vec<Cost>), RuntimeError> {
        let (mut own, mut others, mut callers) = (Vec::new(), Vec::new(), vec![agent]);
        // Whoever is called begins after its caller, so one look at all of them finds everybody.
        for cost in self.costs(Some(session), since_ms, now_ms)? {
            if cost.agent == agent {
                own.push(cost);
            } else if cost.caller.is_some_and(|caller| callers.contains(&caller)) {
                callers.push(cost.agent);
                others.push(cost);
            }
        }
        Ok((own, others))
    }
}

fn cost(agent: &AgentRow, charge: Charge, at_ms: i64) -> Cost {
    let assignment = agent.assignment.as_ref();
    Cost {
        session: agent.session,
        agent: agent.agent,
        name: agent.name.clone(),
        plan: assignment.and_then(|assignment| assignment.plan),
        task: assignment.map(|assignment| assignment.task.clone()),
        caller: assignment.and_then(|assignment| assignment.reply_to.strip_prefix("agent/")?.parse().ok()),
        model: charge.model,
        calls: charge.calls,
        usage: charge.usage,
        nano: charge.nano,
        unknown_nano: charge.unknown_nano,
        at_ms,
    }
}
