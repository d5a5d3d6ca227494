//! Questions to a team whose journal is in this process: their answers are there at once.

use futures_util::FutureExt as _;
use max_team_core::event::Event;
use max_team_core::id::{PlanId, SessionId};
use max_team_core::plan::Plan;
use max_team_core::task_list::TaskList;
use max_team_runtime::{Cost, Question, Recipient, RuntimeError, SessionRow, Spawn, TeamHandle, query};

type Read<T> = Result<T, RuntimeError>;

pub(crate) trait Reads {
    fn read<Q: Question>(&self, question: Q) -> Read<Q::Answer>;

    fn sessions(&self, limit: usize) -> Read<Vec<SessionRow>> {
        self.read(query::Sessions { limit })
    }

    fn plan(&self, plan: PlanId) -> Read<Plan> {
        self.read(query::Plan { plan }).map(|plan| *plan)
    }

    fn events(&self, session: SessionId) -> Read<Vec<(i64, Event)>> {
        self.read(query::Events { session })
    }

    fn stopped(&self, session: SessionId) -> Read<Vec<Recipient>> {
        self.read(query::Stopped { session })
    }

    fn held(&self, session: SessionId) -> Read<usize> {
        self.read(query::HeldMessages { session, agent: None })
    }

    fn tasks(&self, session: SessionId) -> Read<TaskList> {
        self.read(query::Tasks { session })
    }

    fn costs(&self, session: SessionId) -> Read<Vec<Cost>> {
        self.read(query::Costs { session: Some(session), since_ms: 0 })
    }

    fn newcomers(&self, session: SessionId, teammates: Vec<Spawn>) -> Read<(Vec<Spawn>, Vec<Spawn>)> {
        self.read(query::Newcomers { session, teammates })
    }
}

impl Reads for TeamHandle {
    fn read<Q: Question>(&self, question: Q) -> Read<Q::Answer> {
        self.ask(question).now_or_never().unwrap()
    }
}
