//! `cost`: what was spent, added up by agent, task, model, day or session.

use std::collections::{BTreeMap, BTreeSet};

use max_team_core::cost::Spending;
use max_team_core::id::AgentId;
use max_team_runtime::{Cost, query};
use serde_json::{Value, json};

use super::context::{self, JournalContext};
use super::table::table;
use crate::args;
use max_team_workspace::exit::Exit;
use max_team_workspace::format::{dollars, local, short, spent, tokens};
use max_team_workspace::i18n::CostBy;
use max_team_workspace::setup::{self, AppEnv};

pub(crate) fn run(place: &AppEnv, options: &args::Cost) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let session = match &options.session {
        Some(id) => Some(setup::session(&context.team, id)?),
        None => None,
    };
    let since_ms = options.since.map_or(i64::MIN, |ms| context::now_ms().saturating_sub(ms));
    let costs = context.read(query::Costs { session, since_ms })?;
    let (rows, total) = add_up(&costs, options.by);
    let callers = if options.by == CostBy::Agent { with_calls(&costs) } else { BTreeMap::new() };
    let text = if options.json {
        let all = |rows: &mut dyn Iterator<Item = (&String, &Spending)>| {
            rows.map(|(name, sum)| json_of(name, sum)).collect::<Vec<Value>>()
        };
        let (rows, callers) = (all(&mut rows.iter().map(|(name, sum)| (name, sum))), all(&mut callers.iter()));
        let total = json_of("total", &total);
        format!("{}\n", json!({ "by": name_of(options.by), "rows": rows, "with_calls": callers, "total": total }))
    } else if rows.is_empty() {
        format!("{}\n", context.lang.nothing_spent())
    } else {
        // The end of an id names a session everywhere, also in `ps`; a whole id does not fit a column.
        let label = |name: &String| if options.by == CostBy::Session { short(name) } else { name.clone() };
        let own = rows.iter().map(|(name, sum)| cells(&label(name), sum));
        let callers = callers.iter().map(|(name, sum)| cells(&context.lang.with_calls(name), sum));
        let lines = own.chain(callers).chain([cells(context.lang.total(), &total)]);
        let mut text = table(&context.lang.cost_heads(options.by), &lines.collect::<Vec<_>>());
        if total.unknown_nano > 0 {
            text.push_str(&format!("{}\n", context.lang.unknown_outcome(dollars(total.unknown_nano))));
        }
        text
    };
    super::print(&text)?;
    Ok(Exit::Ok)
}

/// The sums, dearest first (days in order), and the sum of all.
fn add_up(costs: &[Cost], by: CostBy) -> (Vec<(String, Spending)>, Spending) {
    let mut sums: BTreeMap<String, Spending> = BTreeMap::new();
    let mut total = Spending::default();
    for cost in costs {
        *sums.entry(key(cost, by)).or_default() += Spending::from(&cost.charge);
        total += Spending::from(&cost.charge);
    }
    let mut rows: Vec<(String, Spending)> = sums.into_iter().collect();
    if by != CostBy::Day {
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.nano, sum.tokens())));
    }
    (rows, total)
}

/// The spending of each caller, with that of the agents it called.
fn with_calls(costs: &[Cost]) -> BTreeMap<String, Spending> {
    let agents: BTreeMap<AgentId, &Cost> = costs.iter().map(|cost| (cost.agent, cost)).collect();
    let callers = |cost: &Cost| std::iter::successors(cost.caller, |id| agents.get(id).and_then(|by| by.caller));
    let all: BTreeSet<AgentId> = costs.iter().flat_map(callers).collect();
    let mut sums: BTreeMap<String, Spending> = BTreeMap::new();
    for cost in costs {
        for id in std::iter::once(cost.agent).chain(callers(cost)).filter(|id| all.contains(id)) {
            if let Some(caller) = agents.get(&id) {
                *sums.entry(caller.name.clone()).or_default() += Spending::from(&cost.charge);
            }
        }
    }
    sums
}

fn key(cost: &Cost, by: CostBy) -> String {
    match by {
        CostBy::Agent => cost.name.clone(),
        CostBy::Model => cost.charge.model.clone(),
        CostBy::Session => cost.session.to_string(),
        CostBy::Day => local(cost.at_ms).chars().take("2000-01-01".len()).collect(),
        CostBy::Task => match (&cost.plan, &cost.task) {
            (Some(plan), Some(task)) => format!("{}/{task}", short(plan)),
            (None, Some(_)) => format!("({}, delegated)", cost.name),
            _ => format!("({})", cost.name),
        },
    }
}

fn name_of(by: CostBy) -> &'static str {
    match by {
        CostBy::Agent => "agent",
        CostBy::Task => "task",
        CostBy::Model => "model",
        CostBy::Day => "day",
        CostBy::Session => "session",
    }
}

fn cells(name: &str, sum: &Spending) -> Vec<String> {
    vec![
        name.to_owned(),
        sum.calls.to_string(),
        tokens(sum.usage.input_total()),
        tokens(sum.usage.cache_read),
        tokens(sum.usage.output),
        spent(sum.nano, sum.unknown_nano),
    ]
}

fn json_of(name: &str, sum: &Spending) -> Value {
    json!({
        "name": name,
        "calls": sum.calls,
        "input_tokens": sum.usage.input_total(),
        "cached_tokens": sum.usage.cache_read,
        "output_tokens": sum.usage.output,
        "cost_usd": max_team_core::ledger::dollars(sum.nano),
        "unknown_cost_usd": max_team_core::ledger::dollars(sum.unknown_nano),
    })
}

#[cfg(test)]
mod tests {
    use max_team_core::chat::Usage;
    use max_team_core::id::{PlanId, SessionId};
    use max_team_core::ledger::Charge;

    use super::*;

    fn cost(name: &str, task: Option<&str>, nano: u64) -> Cost {
        let id = uuid::Uuid::from_u128(7);
        Cost {
            session: SessionId::new(id),
            agent: AgentId::new(id),
            name: name.into(),
            plan: task.map(|_| PlanId::new(id)),
            task: task.map(str::to_owned),
            caller: None,
            charge: Charge {
                model: "m".into(),
                calls: 2,
                usage: Usage { input: 10, output: 1, cache_read: 5, cache_write: 0 },
                nano,
                unknown_nano: nano / 2,
                ..Charge::default()
            },
            at_ms: 0,
        }
    }

    #[test]
    fn costs_of_sub_agents_count_for_their_caller() {
        let agent = |id| AgentId::new(uuid::Uuid::from_u128(id));
        let of = |name: &str, id, caller: Option<u128>, nano| Cost {
            agent: agent(id),
            caller: caller.map(agent),
            ..cost(name, None, nano)
        };
        let costs = [
            of("max", 1, None, 1),
            of("max", 1, None, 2),
            of("general", 2, Some(1), 10),
            of("explore", 3, Some(2), 100),
            of("leo", 4, None, 1_000),
        ];
        let sums: Vec<(String, u64)> = with_calls(&costs).into_iter().map(|(name, sum)| (name, sum.nano)).collect();
        assert_eq!(sums, [("general".to_owned(), 110), ("max".to_owned(), 113)]);
    }

    #[test]
    fn sums_are_by_what_was_asked() {
        let costs = [cost("max", None, 1), cost("leo", Some("impl"), 5), cost("leo", Some("impl"), 7)];
        let table = [
            (CostBy::Agent, vec![("leo", 12), ("max", 1)]),
            (CostBy::Task, vec![("00000007/impl", 12), ("(max)", 1)]),
            (CostBy::Model, vec![("m", 13)]),
        ];
        for (by, want) in table {
            let (rows, total) = add_up(&costs, by);
            let got: Vec<(&str, u64)> = rows.iter().map(|(name, sum)| (name.as_str(), sum.nano)).collect();
            assert_eq!(got, want, "{by:?}");
            assert_eq!((total.calls, total.nano, total.usage.input_total()), (6, 13, 45));
            assert_eq!(total.unknown_nano, 5);
        }
        let sum = Spending { nano: 2_000_000, unknown_nano: 1_000_000, ..Spending::default() };
        assert_eq!(cells("leo", &sum).last().unwrap(), "≈ $0.0020", "an estimate is marked");
    }
}
