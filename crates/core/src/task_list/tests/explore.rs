//! Every order in which a few agents can work a small list off, with a crash of any of them at any moment.
//!
//! Each agent reads the list, decides, and commits what it decided; between any two of these steps anybody else may act.
//! A commit counts only if nobody else has committed since the list was read, as the journal sees to. States that were seen
//! are not looked at again, so that all orders are covered by a few thousand of them.

use std::collections::{BTreeSet, HashMap};

use super::*;

const AGENTS: [&str; 3] = ["leo", "ada", "ray"];

/// What an agent is about to commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Intent {
    events: Vec<ItemMoved>,
    /// Somebody else has committed since.
    is_stale: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Agent {
    lives: bool,
    intent: Option<Intent>,
    /// What it believes to hold, whatever became of that.
    believes: BTreeSet<TaskNumber>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    tasks: TaskList,
    agents: Vec<Agent>,
    /// Whether the lead may still take a task away.
    takes: bool,
}

#[derive(Debug, Default)]
struct Found {
    worlds: usize,
    /// Worlds from which no way leads to one in which all is done.
    lost: usize,
    double: usize,
    /// Answers of those who had lost their task.
    refused: usize,
}

/// Walks through every world that can come of one. `checks`: whether the journal looks who was first.
fn explore(first: World, checks: bool) -> Found {
    let mut found = Found::default();
    let mut known = HashMap::from([(first.clone(), 0)]);
    let (mut ahead, mut from, mut good) = (vec![first], vec![Vec::new()], Vec::new());
    while let Some(world) = ahead.pop() {
        let at = known[&world];
        if world.tasks.items().all(|item| item.state.status == ListTaskStatus::Completed) {
            good.push(at);
        }
        for next in world.next(checks, &mut found) {
            let number = known.len();
            let to = *known.entry(next.clone()).or_insert(number);
            if to == number {
                from.push(Vec::new());
                ahead.push(next);
            }
            from[to].push(at);
        }
    }
    let mut leads = vec![false; from.len()];
    while let Some(at) = good.pop() {
        if !std::mem::replace(&mut leads[at], true) {
            good.extend(&from[at]);
        }
    }
    found.worlds = known.len();
    found.lost = leads.iter().filter(|leads| !**leads).count();
    found
}

impl World {
    fn next(&self, checks: bool, found: &mut Found) -> Vec<Self> {
        let mut worlds = Vec::new();
        let held = self.tasks.items().filter(|item| self.takes && item.state.holder.is_some());
        for item in held {
            let events = self.tasks.decide(&doer("max"), &to(&item.id.to_string(), ListTaskStatus::Pending)).unwrap();
            let mut world = Self { takes: false, ..self.clone() };
            world.happen(&events);
            worlds.push(world);
        }
        for (at, agent) in self.agents.iter().enumerate() {
            let who = doer(AGENTS[at]);
            match &agent.intent {
                Some(intent) => worlds.push(self.commit(at, intent, checks, found)),
                None if agent.lives => {
                    let takes = self.tasks.items().map(|item| to(&item.id.to_string(), ListTaskStatus::InProgress));
                    let ends = agent.believes.iter().map(|id| to(&id.to_string(), ListTaskStatus::Completed));
                    for wish in takes.chain(ends).chain([ListRequest::Next]) {
                        match self.tasks.decide(&who, &wish) {
                            Ok(events) if !events.is_empty() => worlds.push(self.intend(at, &events)),
                            Ok(_) => {}
                            Err(ListRefusal::Held { .. }) if is_end(&wish) => found.refused += 1,
                            Err(_) => {}
                        }
                    }
                }
                // Somebody notices that it is gone.
                None => {
                    let gone = ListRequest::Gone { why: ReleaseReason::Died, for_good: true };
                    let events = self.tasks.decide(&who, &gone).unwrap();
                    if !events.is_empty() {
                        worlds.push(self.intend(at, &events));
                    }
                }
            }
            let others = self.agents.iter().filter(|other| other.lives).count();
            if agent.lives && others > 1 {
                let mut world = self.clone();
                // What it had decided dies with it, or was handed in before it died.
                world.agents[at].lives = false;
                worlds.push(world.clone());
                world.agents[at].intent = None;
                worlds.push(world);
            }
        }
        worlds
    }

    fn intend(&self, at: usize, events: &[Event]) -> Self {
        let mut world = self.clone();
        let moved = |event: &Event| match event {
            Event::ItemMoved(moved) => moved.clone(),
            other => panic!("{other:?}"),
        };
        world.agents[at].intent = Some(Intent { events: events.iter().map(moved).collect(), is_stale: false });
        world
    }

    fn commit(&self, at: usize, intent: &Intent, checks: bool, found: &mut Found) -> Self {
        let mut world = self.clone();
        world.agents[at].intent = None;
        if intent.is_stale && checks {
            return world;
        }
        for moved in &intent.events {
            let held = world.tasks.items.get(&moved.id).and_then(|item| item.state.holder.clone());
            if moved.what == StatusChange::Claimed {
                found.double += usize::from(held.is_some_and(|holder| Some(holder) != moved.state.holder));
                world.agents[at].believes.insert(moved.id);
            } else {
                world.agents[at].believes.remove(&moved.id);
            }
        }
        let events: Vec<Event> = intent.events.iter().cloned().map(Event::ItemMoved).collect();
        world.happen(&events);
        world
    }

    /// Something is committed: whoever has decided meanwhile has decided by what is no longer so.
    fn happen(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.tasks.apply(event));
        self.agents.iter_mut().filter_map(|agent| agent.intent.as_mut()).for_each(|intent| intent.is_stale = true);
    }
}

fn is_end(wish: &ListRequest) -> bool {
    matches!(wish, ListRequest::Update(update) if update.status == Some(ListTaskStatus::Completed))
}

/// Tasks of which the last waits for the others.
fn world(agents: usize, tasks: usize) -> World {
    let mut list = list(tasks);
    let before: Vec<String> = (1..tasks).map(|id| id.to_string()).collect();
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    step(&mut list, "max", &after(&tasks.to_string(), &before)).unwrap();
    let agent = Agent { lives: true, intent: None, believes: BTreeSet::new() };
    World { tasks: list, agents: vec![agent; agents], takes: true }
}

#[test]
fn in_every_order_all_is_done_and_nothing_twice() {
    for (agents, tasks, takes) in [(2, 2, true), (3, 2, false)] {
        let found = explore(World { takes, ..world(agents, tasks) }, true);
        assert_eq!((found.lost, found.double), (0, 0), "{found:?}");
        assert!(found.worlds > 1_000 && (found.refused > 0) == takes, "{found:?}");
    }
}

#[test]
fn without_the_owner_check_a_task_would_be_claimed_twice() {
    let found = explore(world(2, 2), false);
    assert!(found.double > 0, "{found:?}");
}
