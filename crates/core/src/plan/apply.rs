//! Folding events into a plan. Nothing here chooses: the same events always give the same state.

use super::decide::skipped;
use super::event::{About, PlanProposed, Ruling, Say, SkipReason, Spent, TaskFailed, TaskResult};
use super::machine::{Doom, Plan, Slot, State};
use super::{Draft, Graph, Wanted};
use crate::event::Event;

impl Plan {
    /// Folds one event of the plan's stream in.
    pub fn apply(&mut self, event: &Event, at_ms: i64) {
        match event {
            Event::PlanProposed(proposed) => self.begin(proposed),
            Event::PlanEdited(edited) => {
                if let Some(proposed) = &mut self.proposed {
                    proposed.draft = edited.draft.clone();
                    proposed.forecast = edited.forecast.clone();
                }
                self.shape();
            }
            Event::PlanAsked(asked) => {
                self.questions += 1;
                if let About::Failure { task, .. } = &asked.about
                    && let Some(index) = self.place(task)
                {
                    self.with_lead.remove(&index);
                }
                self.asked.insert(asked.question, asked.about.clone());
            }
            Event::PlanAnswered(answered) => {
                if let Some(about) = self.asked.remove(&answered.question) {
                    self.answer(&about, &answered.say);
                }
            }
            Event::PlanResumed(_) => {
                for task in std::mem::take(&mut self.paused) {
                    self.slot(task, |slot| slot.note = "There is more to spend now: go on where you were.".to_owned());
                    self.make_ready(task);
                }
                self.asked.retain(|_, about| *about != About::Budget);
            }
            Event::PlanStopped(stopped) => match stopped.task.as_deref().and_then(|task| self.place(task)) {
                Some(task) => self.doom(task, Doom::Cancel(format!("stopped by {}", stopped.by))),
                None => self.stop(&stopped.by),
            },
            Event::PlanEnded(ended) => {
                self.ended = Some(ended.end);
                self.asked.clear();
                self.clock.clear();
            }
            Event::TaskAssigned(assigned) => {
                let Some(task) = self.place(&assigned.task) else { return };
                self.leave(task);
                self.clock.insert((assigned.deadline_ms, task));
                self.active.insert(task);
                let (ran, state) = (assigned.attempt == 1, State::Dispatched { deadline_ms: assigned.deadline_ms });
                self.slot(task, |slot| {
                    slot.state = state;
                    slot.attempt = assigned.attempt;
                    slot.agent = Some(assigned.agent);
                    slot.member = Some(assigned.member.clone());
                    slot.model.clone_from(&assigned.model);
                    slot.assigned_at_ms = at_ms;
                });
                self.tally.ran += usize::from(ran);
            }
            Event::TaskStarted(started) => self.on(&started.task, |slot| {
                if let State::Dispatched { deadline_ms } = slot.state {
                    slot.state = State::Running { deadline_ms };
                }
            }),
            Event::TaskAsked(asked) => {
                let Some(task) = self.place(&asked.task) else { return };
                let deadline_ms = self.leave(task).unwrap_or(asked.at_ms);
                let left_ms = deadline_ms.saturating_sub(asked.at_ms).max(0);
                self.asking.insert(task);
                let (question, letter) = (asked.question.clone(), asked.letter);
                self.slot(task, |slot| slot.state = State::Asking { question, letter, left_ms });
            }
            Event::TaskAnswered(answered) => {
                let Some(task) = self.place(&answered.task) else { return };
                self.asking.remove(&task);
                self.answered.insert(task);
                self.slot(task, |slot| {
                    if let State::Asking { letter, left_ms, .. } = slot.state {
                        slot.state = State::Answered { answer: answered.answer.clone(), letter, left_ms };
                    }
                });
            }
            Event::TaskResumed(resumed) => {
                let Some(task) = self.place(&resumed.task) else { return };
                self.leave(task);
                self.active.insert(task);
                self.clock.insert((resumed.deadline_ms, task));
                self.slot(task, |slot| slot.state = State::Running { deadline_ms: resumed.deadline_ms });
            }
            Event::TaskReported(reported) => {
                let Some(task) = self.place(&reported.task) else { return };
                self.leave(task);
                self.active.insert(task);
                self.tally.spent.add(reported.spent);
                self.slot(task, |slot| {
                    slot.state = State::Checking;
                    slot.output.clone_from(&reported.output);
                    slot.spent.add(reported.spent);
                });
            }
            Event::TaskDone(done) => {
                let Some(task) = self.place(&done.task) else { return };
                self.finish(task, &done.result, at_ms);
            }
            Event::TaskFailed(failed) => self.fail(failed, at_ms),
            Event::TaskQueued(queued) => {
                if let Some(task) = self.place(&queued.task) {
                    self.leave(task);
                    self.make_ready(task);
                }
            }
            Event::TaskRuled(ruled) => {
                if let Some(task) = self.place(&ruled.task) {
                    self.ruled(task, &ruled.ruling, at_ms);
                }
            }
            Event::TaskPaused(paused) => {
                let Some(task) = self.place(&paused.task) else { return };
                self.leave(task);
                self.paused.insert(task);
                self.tally.spent.add(paused.spent);
                self.slot(task, |slot| {
                    slot.state = State::Paused;
                    slot.output.clone_from(&paused.output);
                    slot.spent.add(paused.spent);
                });
            }
            Event::TaskSkipped(skipped) => {
                if let Some(task) = self.place(&skipped.task) {
                    self.skip(task, skipped.reason, &skipped.detail, at_ms);
                }
            }
            Event::TaskCancelled(cancelled) => {
                let Some(task) = self.place(&cancelled.task) else { return };
                self.leave(task);
                self.tally.cancelled += 1;
                self.tally.spent.add(cancelled.spent);
                self.slot(task, |slot| {
                    slot.state = State::Cancelled;
                    slot.error.clone_from(&cancelled.detail);
                    slot.spent.add(cancelled.spent);
                });
                self.settle(task, at_ms);
            }
            _ => {}
        }
    }

    fn begin(&mut self, proposed: &PlanProposed) {
        self.proposed = Some(Box::new(proposed.clone()));
        self.shape();
    }

    /// Makes the records for the draft as it stands.
    fn shape(&mut self) {
        let Some(proposed) = &self.proposed else { return };
        let draft: &Draft = &proposed.draft;
        let mut members: Vec<&str> = draft.tasks.iter().map(|task| task.agent.as_str()).collect();
        members.sort_unstable();
        members.dedup();
        // It was checked before it was proposed; a log that says otherwise has nothing to run.
        let Ok(graph) = Graph::new(draft, &members) else { return };
        self.slots = (0..graph.len()).map(|task| Slot { open: graph.needs(task).len(), ..Slot::default() }).collect();
        self.unsettled = graph.len();
        self.tally.tasks = graph.len();
        self.graph = Some(graph);
    }

    fn answer(&mut self, about: &About, say: &Say) {
        match (about, say) {
            (About::Proposal, Say::Approve) => self.approve_waves(usize::MAX),
            (About::Proposal, Say::FirstWave) => self.approve_waves(1),
            (About::Rest, Say::Approve | Say::FirstWave) => self.approve_waves(usize::MAX),
            (About::Start { task }, Say::Approve | Say::FirstWave) => {
                self.passed.extend(self.place(task));
            }
            _ => {}
        }
    }

    fn approve_waves(&mut self, upto: usize) {
        let Some(graph) = &self.graph else { return };
        let from = self.waves.min(graph.waves().len());
        let upto = upto.min(graph.waves().len());
        let new: Vec<usize> = graph.waves().iter().take(upto).skip(from).flatten().copied().collect();
        self.waves = upto;
        self.open += new.len();
        for task in &new {
            self.slot(*task, |slot| slot.state = State::Approved);
        }
        for (task, result) in self.carried(from, upto) {
            self.finish(task, &result, 0);
        }
        for task in new {
            let struck = self.draft().and_then(|draft| draft.tasks.get(task)).is_some_and(|task| task.skip);
            if struck {
                self.doom(task, Doom::Skip(SkipReason::Decision, "struck out by the user".to_owned()));
            } else {
                self.consider(task);
            }
        }
    }

    /// What an earlier plan had finished of the tasks in these waves.
    fn carried(&self, from: usize, upto: usize) -> Vec<(usize, TaskResult)> {
        let (Some(graph), Some(proposed)) = (&self.graph, &self.proposed) else { return Vec::new() };
        let found = proposed.carried.iter().filter_map(|carried| {
            let task = graph.index(&carried.task)?;
            let result = TaskResult { spent: Spent::default(), ..carried.result.clone() };
            (from..upto).contains(&graph.wave(task)).then_some((task, result))
        });
        found.collect()
    }

    fn finish(&mut self, task: usize, result: &TaskResult, at_ms: i64) {
        self.leave(task);
        let mut more = Spent::default();
        self.slot(task, |slot| {
            // What earlier steps had already reported is in there too.
            more.nano = result.spent.nano.saturating_sub(slot.spent.nano);
            more.ms = result.spent.ms.saturating_sub(slot.spent.ms);
            more.usage.input = result.spent.usage.input.saturating_sub(slot.spent.usage.input);
            more.usage.output = result.spent.usage.output.saturating_sub(slot.spent.usage.output);
            more.usage.cache_read = result.spent.usage.cache_read.saturating_sub(slot.spent.usage.cache_read);
            more.usage.cache_write = result.spent.usage.cache_write.saturating_sub(slot.spent.usage.cache_write);
            slot.state = State::Done;
            slot.spent = result.spent;
            slot.error.clear();
            slot.result = Some(Box::new(result.clone()));
        });
        self.tally.spent.add(more);
        self.tally.done += 1;
        self.tally.verified += usize::from(self.slots.get(task).is_some_and(Slot::is_verified));
        let mends = self.graph.as_ref().and_then(|graph| graph.condition(task));
        if let Some((_, Wanted::Failed)) = mends {
            self.tally.mended += 1;
        }
        self.settle(task, at_ms);
    }

    fn fail(&mut self, failed: &TaskFailed, at_ms: i64) {
        let Some(task) = self.place(&failed.task) else { return };
        self.leave(task);
        self.tally.spent.add(failed.spent);
        let handled = self.is_handled(task);
        self.slot(task, |slot| {
            slot.failures += 1;
            slot.error.clone_from(&failed.error);
            slot.note = format!("The last attempt failed: {}", failed.error);
            slot.spent.add(failed.spent);
            slot.ended_at_ms = at_ms;
            if !failed.output.is_empty() {
                slot.output.clone_from(&failed.output);
            }
        });
        match failed.retry_at_ms {
            Some(until_ms) => {
                self.slot(task, |slot| slot.state = State::Waiting { until_ms });
                self.clock.insert((until_ms, task));
            }
            None if handled => self.fail_for_good(task, at_ms),
            None => {
                self.slot(task, |slot| slot.state = State::Failed { settled: false });
                self.with_lead.insert(task);
            }
        }
    }

    fn fail_for_good(&mut self, task: usize, at_ms: i64) {
        self.slot(task, |slot| slot.state = State::Failed { settled: true });
        self.tally.failed += 1;
        self.settle(task, at_ms);
    }

    /// Whether the plan itself says what happens when this fails.
    fn is_handled(&self, task: usize) -> bool {
        let Some(graph) = &self.graph else { return false };
        graph.dependents(task).iter().any(|other| graph.condition(*other) == Some((task, Wanted::Failed)))
    }

    fn ruled(&mut self, task: usize, ruling: &Ruling, at_ms: i64) {
        self.with_lead.remove(&task);
        let name = self.name(task).unwrap_or_default();
        self.asked.retain(|_, about| !matches!(about, About::Failure { task, .. } if *task == name));
        match ruling {
            Ruling::Skip => self.skip(task, SkipReason::Decision, "left out after it failed", at_ms),
            Ruling::GiveUp => self.fail_for_good(task, at_ms),
            Ruling::Fixed => {
                self.active.insert(task);
                self.slot(task, |slot| slot.state = State::Checking);
            }
            Ruling::Retry { agent, model, note } => {
                self.slot(task, |slot| {
                    slot.failures = 0;
                    if let Some(agent) = agent {
                        slot.member = Some(agent.clone());
                    }
                    if model.is_some() {
                        slot.model.clone_from(model);
                    }
                    if !note.is_empty() {
                        slot.note = format!("{}\n{note}", slot.note);
                    }
                });
                self.make_ready(task);
            }
            Ruling::Escalate => {}
        }
    }

    fn skip(&mut self, task: usize, reason: SkipReason, detail: &str, at_ms: i64) {
        self.leave(task);
        self.tally.skipped += 1;
        self.slot(task, |slot| {
            slot.state = State::Skipped(reason);
            detail.clone_into(&mut slot.error);
        });
        self.settle(task, at_ms);
    }

    /// Takes a task out of whatever set it is in; gives the deadline it had.
    fn leave(&mut self, task: usize) -> Option<i64> {
        let at_ms = match self.slots.get(task).map(|slot| &slot.state) {
            Some(State::Dispatched { deadline_ms } | State::Running { deadline_ms }) => Some(*deadline_ms),
            Some(State::Waiting { until_ms }) => Some(*until_ms),
            _ => None,
        };
        if let Some(at_ms) = at_ms {
            self.clock.remove(&(at_ms, task));
        }
        let key = self.key(task);
        self.ready.remove(&key);
        self.doomed.remove(&task);
        for set in [&mut self.active, &mut self.asking, &mut self.answered, &mut self.with_lead, &mut self.paused] {
            set.remove(&task);
        }
        at_ms
    }

    fn settle(&mut self, task: usize, at_ms: i64) {
        self.slot(task, |slot| slot.ended_at_ms = at_ms);
        self.unsettled = self.unsettled.saturating_sub(1);
        self.open = self.open.saturating_sub(1);
        let dependents = self.graph.as_ref().map(|graph| graph.dependents(task).to_vec()).unwrap_or_default();
        for dependent in dependents {
            self.slot(dependent, |slot| slot.open = slot.open.saturating_sub(1));
            self.consider(dependent);
        }
    }

    /// What becomes of a task once everything it builds on is settled.
    fn consider(&mut self, task: usize) {
        let waits = self.slots.get(task).is_none_or(|slot| slot.open > 0 || slot.state != State::Approved);
        if waits || self.doomed.contains_key(&task) {
            return;
        }
        match self.fate(task) {
            None => self.make_ready(task),
            Some(doom) => self.doom(task, doom),
        }
    }

    fn fate(&self, task: usize) -> Option<Doom> {
        let graph = self.graph.as_ref()?;
        let condition = graph.condition(task);
        let state = |other: usize| self.slots.get(other).map(|slot| &slot.state);
        let name = |other: usize| self.name(other).unwrap_or_default();
        if let Some((other, wanted)) = condition {
            let holds = match wanted {
                Wanted::Ok => state(other) == Some(&State::Done),
                Wanted::Failed => matches!(state(other), Some(State::Failed { .. })),
            };
            if !holds {
                let wanted = if wanted == Wanted::Ok { "succeed" } else { "fail" };
                return Some(skipped(format!("`{}` did not {wanted}", name(other))));
            }
        }
        let needs = graph.needs(task).iter().copied().filter(|need| condition.is_none_or(|(other, _)| other != *need));
        let (mut there, mut absent) = (condition.is_some(), None);
        for need in needs {
            match state(need) {
                Some(State::Skipped(SkipReason::Condition)) => absent = Some(need),
                Some(State::Failed { .. }) if self.is_mended(task, need) => there = true,
                Some(State::Failed { .. }) => {
                    return Some(Doom::Cancel(format!("it needs `{}`, which failed", name(need))));
                }
                Some(State::Cancelled) => {
                    return Some(Doom::Cancel(format!("it needs `{}`, which was given up", name(need))));
                }
                _ => there = true,
            }
        }
        match absent {
            Some(need) if !there => Some(skipped(format!("`{}` was skipped", name(need)))),
            _ => None,
        }
    }

    /// Whether a task also builds on one that made up for a failed need.
    fn is_mended(&self, task: usize, failed: usize) -> bool {
        let Some(graph) = &self.graph else { return false };
        graph.needs(task).iter().any(|need| {
            graph.condition(*need) == Some((failed, Wanted::Failed))
                && self.slots.get(*need).is_some_and(|slot| slot.state == State::Done)
        })
    }

    fn make_ready(&mut self, task: usize) {
        self.slot(task, |slot| slot.state = State::Approved);
        if self.stopped {
            self.doom(task, Doom::Cancel("the plan was stopped".to_owned()));
        } else {
            let key = self.key(task);
            self.ready.insert(key);
        }
    }

    fn doom(&mut self, task: usize, doom: Doom) {
        if self.slots.get(task).is_some_and(|slot| !slot.state.is_settled()) {
            let key = self.key(task);
            self.ready.remove(&key);
            self.doomed.insert(task, doom);
        }
    }

    fn stop(&mut self, by: &str) {
        self.stopped = true;
        self.asked.clear();
        for task in 0..self.slots.len() {
            self.doom(task, Doom::Cancel(format!("stopped by {by}")));
        }
    }

    fn key(&self, task: usize) -> (std::cmp::Reverse<u32>, usize) {
        (std::cmp::Reverse(self.graph.as_ref().map_or(0, |graph| graph.tail(task))), task)
    }

    fn place(&self, task: &str) -> Option<usize> {
        self.graph.as_ref()?.index(task)
    }

    fn slot(&mut self, task: usize, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots.get_mut(task) {
            change(slot);
        }
    }

    fn on(&mut self, task: &str, change: impl FnOnce(&mut Slot)) {
        if let Some(task) = self.place(task) {
            self.slot(task, change);
        }
    }
}
