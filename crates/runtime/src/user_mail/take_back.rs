//! Takes back an unread answer, so that another one can be given.

use max_team_core::event::{Event, Withdrawn};
use max_team_core::id::EnvelopeId;
use max_team_core::message::{Principal, Role};
use max_team_journal::{Durability, Fence, WorkerInfo};

use super::{PendingQuestion, UserMail, asks, read_answer};
use crate::error::RuntimeError;
use crate::handle::require;
use crate::rows;
use crate::session;
use crate::shared::{append, commit_at, now_ms};

impl UserMail<'_> {
    /// Takes back an unread answer. Claims the session meanwhile, so that no loop reads the answer at the same time;
    /// if another process runs the session, this fails with its name.
    pub async fn take_back(
        &self,
        by: &Principal,
        process: WorkerInfo,
        pending: &PendingQuestion,
    ) -> Result<(), RuntimeError> {
        require(by, Role::Owner)?;
        let worker = self.journal.worker(process)?;
        let session = pending.session.ok_or_else(|| RuntimeError::NoSession(pending.row.address.clone()))?;
        let resource = session::stream(session);
        let epoch = self.journal.claim(&resource, &worker).await?;
        let fence = Fence { resource: resource.clone(), worker: worker.id(), epoch };
        let taken = self.withdraw_answers(by, pending, fence).await;
        // A claim that cannot be released ends with the process.
        drop(self.journal.release(&resource, &worker, epoch).await);
        taken
    }

    async fn withdraw_answers(
        &self,
        by: &Principal,
        pending: &PendingQuestion,
        fence: Fence,
    ) -> Result<(), RuntimeError> {
        let mail = self.journal.pending_mail(&pending.row.address)?;
        let answers = mail.iter().filter(|message| asks(message) == Some(pending.row.question));
        let answers: Vec<EnvelopeId> =
            answers.filter(|message| read_answer(message).is_some()).map(|message| message.id).collect();
        if answers.is_empty() {
            return Ok(());
        }
        let mut commit = commit_at(now_ms());
        let stream = fence.resource.clone();
        for envelope in &answers {
            let event = Event::Withdrawn(Withdrawn { envelope: *envelope });
            commit.projections.extend(rows::project(&stream, commit.at_ms, &event));
            commit.appends.push(append(&stream, &event, &by.address())?);
        }
        commit.fence = Some(fence);
        commit.acks = answers;
        // The user is told that it was taken back, so it must survive a power cut.
        commit.strength = Durability::Full;
        self.journal.commit(commit).await?;
        Ok(())
    }
}
