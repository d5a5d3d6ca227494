//! The plans of a session, as far as a face has heard of them.
//!
//! A plan that is proposed while we watch is folded from its notices. One that was there before is read from the
//! journal first; what comes while that is under way is in what will be read, and what is older than the reading is
//! read again rather than folded twice.

use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::id::PlanId;
use max_team_core::plan::Plan;

use max_team_workspace::format::since;

/// Plans that are over and still known.
const OVER_MAX: usize = 4;

/// A plan to be drawn, as it stood. Two are the same only if they are one.
#[derive(Debug, Clone)]
pub(super) struct DrawnPlan(pub(super) Arc<Plan>);

impl PartialEq for DrawnPlan {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoticeEffect {
    /// It is folded in.
    Folded,
    /// It is, or will be, in what is read from the journal.
    Known,
    /// The plan has to be read (again).
    Unread,
}

/// Where what we know of a plan comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanSource {
    /// From its first notice on.
    Watched,
    /// It is being read.
    Wanted,
    /// It was read at that time.
    Read { at_ms: i64 },
}

#[derive(Debug)]
pub(super) struct PlanEntry {
    pub(super) id: PlanId,
    pub(super) plan: Plan,
    source: PlanSource,
    /// When it was allowed to run.
    began_at_ms: Option<i64>,
    ended_at_ms: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Plans {
    known: Vec<PlanEntry>,
}

impl PlanEntry {
    /// Whether any of it runs or is going to.
    pub(super) fn is_running(&self) -> bool {
        self.plan.is_approved() && self.plan.ended().is_none()
    }

    pub(super) fn is_open(&self) -> bool {
        self.plan.proposed().is_some() && self.plan.ended().is_none()
    }

    /// How long it has been running, or ran.
    pub(super) fn elapsed_ms(&self, now_ms: i64) -> u64 {
        let began =
            self.began_at_ms.or_else(|| self.plan.tasks().map(|view| view.since_ms.0).filter(|at| *at > 0).min());
        began.map_or(0, |began| since(began, self.ended_at_ms.unwrap_or(now_ms)))
    }
}

impl Plans {
    /// A plan that was there before has to be read.
    pub(super) fn want(&mut self, id: PlanId) {
        // Until then what is known of it is shown.
        if let Some(known) = self.known.iter_mut().find(|known| known.id == id) {
            known.source = PlanSource::Wanted;
            return;
        }
        let (plan, source) = (Plan::new(), PlanSource::Wanted);
        self.known.push(PlanEntry { id, plan, source, began_at_ms: None, ended_at_ms: None });
    }

    /// It was read.
    pub(super) fn read(&mut self, id: PlanId, plan: Plan, now_ms: i64) {
        if let Some(known) = self.known.iter_mut().find(|known| known.id == id) {
            known.plan = plan;
            known.source = PlanSource::Read { at_ms: now_ms };
        }
    }

    /// It could not be read.
    pub(super) fn forget(&mut self, id: PlanId) {
        self.known.retain(|known| known.id != id);
    }

    pub(super) fn hear(&mut self, id: PlanId, at_ms: i64, event: &Event) -> NoticeEffect {
        let Some(index) = self.known.iter().position(|known| known.id == id) else {
            if !matches!(event, Event::PlanProposed(_)) {
                return NoticeEffect::Unread;
            }
            let source = PlanSource::Watched;
            let mut known = PlanEntry { id, plan: Plan::new(), source, began_at_ms: None, ended_at_ms: None };
            known.plan.apply(event, at_ms);
            self.known.push(known);
            self.drop_oldest();
            return NoticeEffect::Folded;
        };
        let Some(known) = self.known.get_mut(index) else { return NoticeEffect::Known };
        match known.source {
            PlanSource::Wanted => return NoticeEffect::Known,
            PlanSource::Read { at_ms: read } if at_ms <= read => return NoticeEffect::Unread,
            PlanSource::Read { .. } | PlanSource::Watched => {}
        }
        let ran = known.plan.is_approved();
        known.plan.apply(event, at_ms);
        if !ran && known.plan.is_approved() {
            known.began_at_ms = Some(at_ms);
        }
        if matches!(event, Event::PlanEnded(_)) {
            known.ended_at_ms = Some(at_ms);
        }
        NoticeEffect::Folded
    }

    pub(super) fn get(&self, id: PlanId) -> Option<&PlanEntry> {
        self.known.iter().find(|known| known.id == id)
    }

    /// All that are known, oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &PlanEntry> {
        self.known.iter()
    }

    /// The plans that are not over, oldest first.
    pub(super) fn open(&self) -> impl Iterator<Item = &PlanEntry> {
        self.known.iter().filter(|known| known.is_open())
    }

    /// Those of them that run.
    pub(super) fn running(&self) -> impl Iterator<Item = &PlanEntry> {
        self.known.iter().filter(|known| known.is_running())
    }

    /// The one that people mean by "the plan": one that is open, or the last.
    pub(super) fn latest(&self) -> Option<&PlanEntry> {
        self.open().last().or_else(|| self.known.iter().rfind(|known| known.plan.proposed().is_some()))
    }

    /// Whether anything is to come by itself.
    pub(super) fn is_moving(&self) -> bool {
        self.known.iter().any(|known| known.source == PlanSource::Wanted || known.plan.is_moving())
    }

    fn drop_oldest(&mut self) {
        let over = self.known.iter().filter(|known| known.plan.ended().is_some()).count();
        if over > OVER_MAX
            && let Some(index) = self.known.iter().position(|known| known.plan.ended().is_some())
        {
            self.known.remove(index);
        }
    }
}
