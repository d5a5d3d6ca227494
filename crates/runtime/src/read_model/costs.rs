//! Costs, turn by turn: from the rows of ended turns, and from running turns.

use max_team_core::cost::SessionCost;
use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_core::ledger::Charge;
use max_team_core::turn::Turn;
use serde::Serialize;

use super::ReadModel;
use crate::error::RuntimeError;
use crate::rows::{self, AgentRow, CostRow};

/// The cost of one turn of an agent on one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cost {
    pub session: SessionId,
    pub agent: AgentId,
    pub name: String,
    /// The plan it worked in.
    pub plan: Option<PlanId>,
    /// Its task: the task's name, or the key of the call that delegated it.
    pub task: Option<String>,
    /// The agent that called it, if one did: its cost belongs to that call.
    pub caller: Option<AgentId>,
    /// Model, tokens and cost.
    #[serde(flatten)]
    pub charge: Charge,
    /// When the turn ended; for a running one, the time of the query.
    pub at_ms: i64,
}

impl ReadModel<'_> {
    /// The cost since then, of all sessions or of one.
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
                for row in self.ended_turns(agent.agent)?.into_iter().filter(|row| row.at_ms >= since_ms) {
                    costs.extend(row.charges.into_iter().map(|charge| cost(&agent, charge, row.at_ms)));
                }
                if let Some(turn) = self.running_turn(agent.agent)? {
                    costs.extend(turn.charges().iter().cloned().map(|charge| cost(&agent, charge, now_ms)));
                }
            }
        }
        Ok(costs)
    }

    /// The cost of a session's agents, running turns included: a frontend folds later events on top of it.
    pub(crate) fn session_cost(&self, session: SessionId) -> Result<SessionCost, RuntimeError> {
        let mut cost = SessionCost::default();
        for AgentRow { agent, .. } in self.agents(session)? {
            for row in self.ended_turns(agent)? {
                row.charges.iter().for_each(|charge| cost.charge(agent, charge));
            }
            if let Some(turn) = self.running_turn(agent)? {
                cost.join(agent, &turn);
            }
        }
        Ok(cost)
    }

    fn ended_turns(&self, agent: AgentId) -> Result<Vec<CostRow>, RuntimeError> {
        let rows = rows::rows::<CostRow>(self.journal, &rows::costs_of(&agent.to_string()))?;
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    fn running_turn(&self, agent: AgentId) -> Result<Option<Turn>, RuntimeError> {
        self.is_busy(agent)?.then(|| self.turn(agent)).transpose()
    }
}

impl ReadModel<'_> {
    /// The cost of an agent since then, and that of the agents that worked for it, directly or through others.
    pub(crate) fn costs_of(
        &self,
        session: SessionId,
        agent: AgentId,
        since_ms: i64,
        now_ms: i64,
    ) -> Result<(Vec<Cost>, Vec<Cost>), RuntimeError> {
        let (mut own, mut others, mut callers) = (Vec::new(), Vec::new(), vec![agent]);
        // A called agent starts after its caller, so one pass in order finds all of them.
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
        charge,
        at_ms,
    }
}
