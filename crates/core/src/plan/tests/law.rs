//! What holds after every event and every step of any plan.

use super::super::task_state::{TaskRecord, TaskState};
use super::*;

/// The task that an event is about.
pub(super) fn subject(event: &Event) -> Option<&str> {
    Some(match event {
        Event::TaskAssigned(event) => &event.task,
        Event::TaskStarted(event) => &event.task,
        Event::TaskAsked(event) => &event.task,
        Event::TaskMarked(event) => &event.task,
        Event::TaskHeld(event) => &event.task,
        Event::TaskAnswered(event) => &event.task,
        Event::TaskResumed(event) => &event.task,
        Event::TaskReported(event) => &event.task,
        Event::TaskDone(event) => &event.task,
        Event::TaskCorrected(event) => &event.task,
        Event::TaskFailed(event) => &event.task,
        Event::TaskQueued(event) => &event.task,
        Event::TaskRuled(event) => &event.task,
        Event::TaskPaused(event) => &event.task,
        Event::TaskSkipped(event) => &event.task,
        Event::TaskCancelled(event) => &event.task,
        Event::TaskStopped(event) => &event.task,
        Event::TaskDeferred(event) => &event.task,
        Event::TaskChanged(event) => &event.task,
        _ => return None,
    })
}

fn is_legal(from: TaskStatus, to: TaskStatus) -> bool {
    use TaskStatus::{Approved, Cancelled, Dispatched, Done, Failed, Planned, Running, Skipped};
    match from {
        // What an earlier plan had finished is done as soon as it is approved.
        Planned => matches!(to, Approved | Done | Cancelled),
        Approved => matches!(to, Dispatched | Skipped | Cancelled),
        Dispatched => matches!(to, Running | Done | Failed | Cancelled),
        // Back to approved: there was no money, and now there is.
        Running => matches!(to, Approved | Done | Failed | Cancelled),
        // Running again: mended by hand, and looked at. Done: its answer was accepted.
        Failed => matches!(to, Approved | Running | Done | Skipped | Cancelled),
        Done | Skipped | Cancelled => false,
    }
}

fn has_place(slot: &TaskRecord) -> bool {
    matches!(
        slot.state,
        TaskState::Dispatched { .. } | TaskState::Running { .. } | TaskState::Held { .. } | TaskState::Checking
    )
}

fn is_at_work(slot: &TaskRecord) -> bool {
    let reported =
        matches!(slot.state, TaskState::Deferred { .. }) || (slot.state == TaskState::Unchecked && !slot.tries.by_hand);
    has_place(slot) || reported || matches!(slot.state, TaskState::Asking { .. } | TaskState::Answered { .. })
}

impl Play {
    /// Folds an event and holds it to the laws of single moves.
    pub(super) fn fold(&mut self, event: &Event) {
        let is_late = matches!(event, Event::TaskCorrected(_));
        assert!(self.folded.ended().is_none() || is_late, "{event:?} after the end");
        if let Event::TaskAssigned(assigned) = event {
            self.check_assigned(&assigned.task, assigned.attempt);
        }
        let before: Vec<TaskRecord> = self.folded.slots.clone();
        self.folded.apply(event, self.now);
        if matches!(event, Event::PlanProposed(_) | Event::PlanEdited(_)) {
            self.overlaps = overlaps(self.folded.draft().unwrap());
            return;
        }
        for (task, (old, new)) in before.iter().zip(&self.folded.slots).enumerate() {
            let (from, to) = (old.status(), new.status());
            assert!(from == to || is_legal(from, to), "task {task} went from {from:?} to {to:?} by {event:?}");
            assert!(!old.state.is_settled() || old.state == new.state, "task {task} was settled; {event:?}");
        }
        self.check_places();
    }

    fn check_assigned(&self, id: &str, attempt: u32) {
        let plan = &self.folded;
        let graph = plan.graph().unwrap();
        let task = graph.index(id).unwrap();
        let slot = &plan.slots[task];
        assert_eq!(slot.state, TaskState::Approved, "{id} was assigned");
        assert_eq!(attempt, slot.tries.attempt + 1, "{id} was assigned");
        assert!(graph.wave(task) < plan.progress.waves, "{id} was not approved");
        assert!(graph.needs(task).iter().all(|need| plan.slots[*need].state.is_settled()), "{id} came too early");
        assert!(!graph.is_gated(task) || plan.queues.passed.contains(&task), "{id} went through its gate");
        assert!(plan.queues.paused.is_empty() && !plan.closing.stopped, "{id} was assigned");
        assert!(!plan.queues.stopping.contains(&task), "{id} was assigned while somebody was at it");
        assert!(self.may_run(task), "{id} was assigned");
        assert!(!plan.awaits_revision(task), "{id} was assigned before the user had decided");
    }

    /// Whether what a task builds on lets it run, said once more in other words.
    fn may_run(&self, task: usize) -> bool {
        let (plan, graph) = (&self.folded, self.folded.graph().unwrap());
        let state = |task: usize| &plan.slots[task].state;
        let condition = graph.condition(task);
        let is_met = condition.is_none_or(|(other, wanted)| match wanted {
            WhenCondition::Ok => *state(other) == TaskState::Done,
            WhenCondition::Failed => *state(other) == TaskState::Failed { settled: true },
        });
        let made_up = |failed: usize| {
            let handles = |need: &&usize| graph.condition(**need) == Some((failed, WhenCondition::Failed));
            graph.needs(task).iter().filter(handles).any(|need| *state(*need) == TaskState::Done)
        };
        let is_fine = |need: &usize| match state(*need) {
            TaskState::Failed { .. } => condition == Some((*need, WhenCondition::Failed)) || made_up(*need),
            TaskState::Cancelled => false,
            _ => true,
        };
        let gone = |need: &usize| *state(*need) == TaskState::Skipped(event::SkipReason::Condition);
        let needs = graph.needs(task);
        is_met && needs.iter().all(is_fine) && (needs.is_empty() || !needs.iter().all(gone))
    }

    fn check_places(&self) {
        let plan = &self.folded;
        let tasks = |wanted: fn(&TaskRecord) -> bool| -> Vec<usize> {
            (0..plan.slots.len()).filter(|task| wanted(&plan.slots[*task])).collect()
        };
        let placed = tasks(has_place);
        assert_eq!(placed, plan.active().collect::<Vec<_>>());
        assert!(placed.len() <= plan.places(), "{placed:?} hold a place");
        let working: Vec<usize> = (0..plan.slots.len())
            .filter(|task| is_at_work(&plan.slots[*task]) || plan.queues.stopping.contains(task))
            .collect();
        for (n, one) in working.iter().enumerate() {
            for other in &working[n + 1..] {
                assert!(!self.overlaps[*one][*other], "{one} and {other} are at work on the same paths");
            }
        }
    }

    /// The laws of a plan at rest between two inputs.
    pub(super) fn check_rest(&self) {
        let plan = &self.plan;
        let Some(graph) = plan.graph() else { return };
        let count = |wanted: &dyn Fn(&TaskRecord) -> bool| plan.slots.iter().filter(|slot| wanted(slot)).count();
        let unsettled = count(&|slot| !slot.state.is_settled());
        assert_eq!(plan.progress.unsettled, unsettled);
        if plan.ended().is_some() {
            let never_ran = matches!(plan.ended(), Some(PlanEnd::Rejected | PlanEnd::Replaced)) && !plan.is_approved();
            assert!(never_ran || unsettled == 0, "it ended with {unsettled} tasks open");
            assert!(plan.queues.stopping.is_empty(), "it ended with somebody at work");
            assert!(plan.pending().is_empty() && !plan.is_moving() && plan.questions.open.is_empty());
        } else {
            let waits = plan.revision().is_some() || !plan.questions.open.is_empty() || plan.is_held();
            assert!(plan.is_moving() || waits, "nothing moves and nobody is asked: {plan:#?}");
            assert!(unsettled > 0 || !plan.queues.stopping.is_empty(), "everything is settled and it has not ended");
        }
        self.check_tally();
        self.check_sets();
        let waiting = (0..graph.len()).filter(|task| plan.slots[*task].state == TaskState::Approved);
        for task in waiting.filter(|_| plan.ended().is_none()) {
            let open = graph.needs(task).iter().filter(|need| !plan.slots[**need].state.is_settled()).count();
            assert_eq!(plan.slots[task].open, open);
            let kept = plan.questions.is_asked(Some(task)) || plan.queues.ready.all().contains(&task);
            assert!(kept == (open == 0) || plan.awaits_revision(task), "task {task} is lost, or too early");
        }
        let is_open = plan.ended().is_none() && !plan.is_held();
        let idle = plan.queues.active.len() < plan.places() && plan.queues.paused.is_empty() && is_open;
        for task in plan.queues.ready.all().iter().filter(|_| idle) {
            let mut holders = (0..graph.len())
                .filter(|other| is_at_work(&plan.slots[*other]) || plan.queues.stopping.contains(other));
            let waits = plan.queues.stopping.contains(task) || !self.taken.is_empty();
            assert!(waits || holders.any(|other| self.overlaps[*task][other]), "task {task} could run");
        }
        assert!(!idle || plan.queues.answered.is_empty(), "an answered task could run");
    }

    fn check_tally(&self) {
        let (plan, tally) = (&self.plan, self.plan.tally());
        let graph = plan.graph().unwrap();
        let count = |wanted: &dyn Fn(usize, &TaskRecord) -> bool| {
            plan.slots.iter().enumerate().filter(|(task, slot)| wanted(*task, slot)).count()
        };
        let failed = |slot: &TaskRecord| slot.state == TaskState::Failed { settled: true };
        let made_up = |task: usize| {
            let handles = |other: &usize| graph.condition(*other) == Some((task, WhenCondition::Failed));
            (0..graph.len()).filter(handles).any(|other| plan.slots[other].state == TaskState::Done)
        };
        assert_eq!(tally.tasks, plan.slots.len());
        let cached = |slot: &TaskRecord| {
            slot.tries.attempt > 0 && slot.outcome.result.as_ref().is_some_and(|result| result.cached.is_some())
        };
        assert_eq!(tally.ran, count(&|_, slot| slot.tries.attempt > 0 && !cached(slot)));
        assert_eq!(tally.cached, count(&|_, slot| cached(slot)));
        assert!(
            plan.slots
                .iter()
                .all(|slot| !cached(slot) || slot.owner.agent.is_none() && slot.money.spent == ResourceUse::default())
        );
        assert_eq!(tally.done, count(&|_, slot| slot.state == TaskState::Done));
        assert_eq!(tally.verified, count(&|_, slot| slot.state == TaskState::Done && slot.is_verified()));
        assert_eq!(tally.failed, count(&|_, slot| failed(slot)));
        assert_eq!(tally.mended, count(&|task, slot| failed(slot) && made_up(task)));
        assert_eq!(tally.skipped, count(&|_, slot| matches!(slot.state, TaskState::Skipped(_))));
        assert_eq!(tally.cancelled, count(&|_, slot| slot.state == TaskState::Cancelled));
        let mut spent = ResourceUse::default();
        plan.slots.iter().for_each(|slot| spent.add(slot.money.spent));
        assert_eq!(tally.spent, spent);
        let settled = tally.done + tally.failed + tally.skipped + tally.cancelled;
        assert_eq!(settled + plan.progress.unsettled, tally.tasks);
    }

    /// What is kept beside the records says what they say.
    fn check_sets(&self) {
        let plan = &self.plan;
        let states = |wanted: &dyn Fn(&TaskState) -> bool| -> Vec<usize> {
            (0..plan.slots.len()).filter(|task| wanted(&plan.slots[*task].state)).collect()
        };
        let same = |set: &std::collections::BTreeSet<usize>, wanted: &dyn Fn(&TaskState) -> bool| {
            assert_eq!(set.iter().copied().collect::<Vec<_>>(), states(wanted));
        };
        same(&plan.queues.asking, &|state| matches!(state, TaskState::Asking { .. }));
        same(&plan.queues.answered, &|state| matches!(state, TaskState::Answered { .. }));
        same(&plan.queues.unchecked, &|state| *state == TaskState::Unchecked);
        same(&plan.queues.paused, &|state| *state == TaskState::Paused);
        same(&plan.queues.deferred, &|state| matches!(state, TaskState::Deferred { .. }));
        assert!(plan.queues.doomed.is_empty() && plan.queues.gated.is_empty() && plan.questions.withdrawn.is_empty());
        let asked = |task: &usize| plan.questions.is_asked(Some(*task));
        for task in states(&|state| *state == TaskState::Failed { settled: false }) {
            assert!(plan.queues.with_lead.contains(&task) != asked(&task), "who is to say about task {task}?");
        }
        assert!(
            plan.queues.with_lead.iter().all(|task| plan.slots[*task].state == TaskState::Failed { settled: false })
        );
        let abouts: std::collections::BTreeSet<_> = plan.questions.open.values().map(|(about, _)| about).collect();
        assert_eq!(plan.questions.open.len(), abouts.len());
        for (task, about) in plan.questions.open.values() {
            let state = task.map(|task| &plan.slots[task].state);
            match (about, state) {
                (PlanQuestion::Start { .. }, state) => assert_eq!(state, Some(&TaskState::Approved)),
                (PlanQuestion::Failure { .. }, state) => assert_eq!(state, Some(&TaskState::Failed { settled: false })),
                (PlanQuestion::Budget, None) => assert!(!plan.queues.paused.is_empty(), "nobody needs the money"),
                (PlanQuestion::Rest, None) => assert_eq!(plan.progress.open, 0),
                (PlanQuestion::Proposal, None) => assert!(!plan.is_approved()),
                (about, state) => panic!("{about:?} {state:?}"),
            }
        }
        let approved = |task: &usize| plan.graph().unwrap().wave(*task) < plan.progress.waves;
        assert_eq!(
            plan.progress.open,
            states(&|state| !state.is_settled()).iter().filter(|task| approved(task)).count()
        );
    }
}

fn overlaps(draft: &Draft) -> Vec<Vec<bool>> {
    let meet = |a: &TaskDraft, b: &TaskDraft| {
        a.owned().iter().any(|mine| b.owned().iter().any(|theirs| overlap(mine, theirs)))
    };
    draft.tasks.iter().map(|a| draft.tasks.iter().map(|b| meet(a, b)).collect()).collect()
}
