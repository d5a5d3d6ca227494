//! Commands about what lies beside the sessions: the memory and the worktrees.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use max_team_core::hash::Hash;
use max_team_core::id::SessionId;
use max_team_core::memory::{BoardScope, Key, Source, Writer};
use max_team_core::message::Principal;
use max_team_core::policy::{ActionKind, DecidedBy, MergeDecision, PermissionAnswer};
use serde_json::Value;

use super::{Runtime, finished};
use crate::error::RuntimeError;
use crate::handle::Order;
use crate::memory::Memories;
use crate::query::{Inbox, StoredQuestion as _};
use crate::rows::Matter;
use crate::session::Sessions;
use crate::user_mail::{self, UserMail};
use crate::worktree::{self, WaitingWorktree, WorktreeDecision};

impl Runtime {
    pub(super) async fn remember(
        &self,
        by: &Principal,
        (scope, key): (&BoardScope, &Key),
        value: &Value,
    ) -> Result<(), RuntimeError> {
        let by = Writer::User(by.user.clone());
        Memories::new(&self.shared.journal).set(scope, &by, key, value, &Source::default()).await.map(drop)
    }

    pub(super) async fn forget(&self, by: &Principal, scope: &BoardScope, key: &Key) -> Result<(), RuntimeError> {
        let by = Writer::User(by.user.clone());
        Memories::new(&self.shared.journal).forget(scope, &by, key).await.map(drop)
    }

    /// Decides about files of a worktree in which no agent works.
    pub(super) async fn decide_worktree(
        &self,
        order: &Order,
        id: &str,
        (decision, files, shown): (MergeDecision, &[String], Option<Hash>),
    ) -> Result<(), RuntimeError> {
        let copy = worktree::copies(&self.shared).find(id)?;
        let journal = &self.shared.journal;
        // The worktree of an agent has its name; any other is that of a fork, whose session works in it.
        let agents = user_mail::session_at(journal, &format!("agent/{id}"));
        let inhabitant = match agents {
            Some(_) => None,
            None => Sessions::new(journal).working_in(&copy.root())?,
        };
        let is_occupied = copy.is_occupied();
        // A session that is open here keeps its worktree marked, although no agent works.
        let is_at_rest =
            agents.or(inhabitant).and_then(|session| self.active(session).ok()).is_some_and(|open| open.is_at_rest());
        if is_occupied && !is_at_rest {
            return Err(RuntimeError::WorktreeInUse(id.to_owned()));
        }
        let is_inhabited = is_occupied || inhabitant.is_some();
        let decided = WorktreeDecision { decision, files: files.to_vec(), shown, is_inhabited };
        let (shared, by) = (Arc::clone(&self.shared), order.by.clone());
        let work = move || decided.carry_out(&shared, copy, &by);
        if finished(tokio::task::spawn_blocking(work).await)? {
            self.answer_about(order, id, decision).await?;
        }
        Ok(())
    }

    /// Answers the question whether to merge a worktree that is gone, if one waits.
    async fn answer_about(&self, order: &Order, id: &str, decision: MergeDecision) -> Result<(), RuntimeError> {
        let is_about = |matter: &Matter| match matter {
            Matter::Tool { action, .. } => action.kind == ActionKind::Merge && action.target == id,
            Matter::Plan(_) => false,
        };
        let waiting = Inbox {}.read(&self.shared.journal)?;
        let Some(pending) = waiting.into_iter().find(|pending| is_about(&pending.row.matter)) else { return Ok(()) };
        let answer = PermissionAnswer::merge_answer(decision, DecidedBy::person(&order.by));
        let post = UserMail::new(&self.shared.journal);
        match post.answer(&order.by, order.key, pending.row.question, &answer).await {
            Ok(address) => self.ring(&address),
            // An answer that came first finds the worktree gone.
            Err(RuntimeError::Answered { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The worktrees of a session with changes that wait for the user.
    pub(crate) async fn waiting(&self, session: SessionId) -> Result<Vec<WaitingWorktree>, RuntimeError> {
        let row = Sessions::new(&self.shared.journal).row(session)?;
        let agents = crate::read_model::ReadModel::new(&self.shared.journal).agents(session)?;
        let agents = agents.into_iter().map(|row| row.agent).chain([row.lead]);
        let own = worktree::around(&self.shared, Path::new(&row.cwd)).map(|copy| copy.id().to_owned());
        let names: BTreeSet<String> = agents.map(|agent| agent.to_string()).chain(own).collect();
        let home = self.shared.home.clone();
        let looked = tokio::task::spawn_blocking(move || worktree::waiting(&home, &names)).await;
        // Worktrees that cannot be read are left out.
        Ok(looked.unwrap_or_default())
    }
}
