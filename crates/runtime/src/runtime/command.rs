//! Carries out the commands of frontends: each returns after its commit.

use std::sync::Arc;
use std::time::Duration;

use max_team_core::agent::Settings;
use max_team_core::event::{Event, InterruptedBy, UserMessage};
use max_team_core::id::{EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::message::{Envelope, Principal};
use max_team_core::plan::event::PlanDecision;
use max_team_core::plan::{Draft, Edit};
use max_team_core::policy::{DecidedBy, MergeDecision};
use max_team_journal::Durability;
use tokio::sync::oneshot;

use super::{Runtime, finished, heard};
use crate::active_session::fold_plan;
use crate::agent::Control;
use crate::error::RuntimeError;
use crate::handle::{Command, Notice, Order, Origin};
use crate::plan::{messages, propose};
use crate::rewind::{self, Rewind, RewindPoint, Sheet};
use crate::rows;
use crate::session;
use crate::shared::{append, commit_at, now_ms};
use crate::user_mail::{self, SentMessages, UserMail};
use crate::worktree::copies;

/// How long a rewind waits until all loops of the session are idle.
const REST_WAIT: Duration = Duration::from_secs(2);

impl Runtime {
    pub(crate) async fn command(&self, order: Order) -> Result<(), RuntimeError> {
        let post = UserMail::new(&self.shared.journal);
        match order.command {
            Command::Say { session, ref text } => self.say(session, text, false, &order).await,
            Command::Queue { session, ref text } => self.say(session, text, true, &order).await,
            Command::Withdraw { session, envelope } => self.withdraw(session, envelope, &order.by).await,
            Command::Write { session, ref to, ref text } => self.write(session, to, text, &order).await,
            Command::Continue { session, ref to } => {
                self.publish(session, &order.by, post.go_on(&order.by, session, to).await?);
                Ok(())
            }
            Command::Team { session, ref teammates } => {
                let written = post.recruit(&order.by, order.key, session, teammates).await?;
                self.publish(session, &order.by, written);
                Ok(())
            }
            Command::Answer { question, ref answer, .. } => {
                let address = post.answer(&order.by, order.key, question, answer).await?;
                self.ring(&address);
                Ok(())
            }
            Command::Decide { question, ref say } => self.decide(question, say, &order).await,
            Command::Stop { plan, ref task } => {
                let address = post.stop(&order.by, order.key, plan, task.as_deref()).await?;
                self.ring(&address);
                Ok(())
            }
            Command::Propose { session, ref draft, ref source } => {
                self.propose(session, &order, (**draft).clone(), source).await
            }
            Command::HandOver { session } => post.hand_over(&order.by, order.key, session, &copies(&self.shared)).await,
            Command::ServeFolder { ref folder } => self.serve(&user_mail::server_of(folder)).await,
            Command::SettleHandover { ref folder, handover } => self.settle_handover(&order.by, folder, handover).await,
            Command::ServeChannel { ref channel, ref account } => self.serve_channel(channel, account).await,
            Command::Deliver { message, ref chat, delivery } => self.deliver(&order.by, message, chat, delivery).await,
            Command::Compact { session, keep } => {
                let (reply, done) = oneshot::channel();
                self.tell(session, Control::Compact { keep, reply }).await?;
                heard(done).await?.then_some(()).ok_or(RuntimeError::NothingToCompact)
            }
            Command::Uncompact { session } => {
                let (reply, done) = oneshot::channel();
                self.tell(session, Control::Uncompact(reply)).await?;
                heard(done).await?.then_some(()).ok_or(RuntimeError::NothingCompacted)
            }
            Command::MarkRead { ref shown } => post.mark_read(&order.by, shown).await,
            Command::Rewind { session, plan } => self.rewind(session, order.key, *plan, order.by).await,
            Command::Leave { session } => {
                // A session that is not open here has no running plans to pause.
                self.active(session).iter().for_each(|active| active.leave_by(&order.by.user));
                Ok(())
            }
            Command::Interrupt { session } => {
                self.tell(session, Control::Interrupt(InterruptedBy::person(&order.by))).await
            }
            Command::StopSession { session } => self.stop_session(session, &order).await,
            Command::Configure { session, settings } => self.configure(session, settings, &order.by).await,
            Command::Remember { ref scope, ref key, ref value } => self.remember(&order.by, (scope, key), value).await,
            Command::Forget { ref scope, ref key } => self.forget(&order.by, scope, key).await,
            Command::AcceptWorktree { ref worktree, ref files, shown } => {
                self.decide_worktree(&order, worktree, (MergeDecision::Taken, files, shown)).await
            }
            Command::RejectWorktree { ref worktree, ref files, shown } => {
                self.decide_worktree(&order, worktree, (MergeDecision::Dropped, files, shown)).await
            }
        }
    }

    /// Takes a hand-over out of the mailbox of the folder that this process serves.
    async fn settle_handover(&self, by: &Principal, folder: &str, handover: EnvelopeId) -> Result<(), RuntimeError> {
        let address = user_mail::server_of(folder);
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.served(&address)?);
        commit.actor = by.address();
        commit.acks.push(handover);
        self.shared.journal.commit(commit).await?;
        Ok(())
    }

    async fn configure(&self, session: SessionId, settings: Settings, by: &Principal) -> Result<(), RuntimeError> {
        let active = self.active(session)?;
        // A person names the mode.
        let settings = active.bound.as_ref().map_or(settings.clone(), |bound| bound.lead_settings(settings, true));
        active.set_mode(settings.mode);
        active.cap(crate::plan::cap(&settings));
        self.tell(session, Control::Configure { settings: Box::new(settings), by: DecidedBy::person(by) }).await
    }

    /// Stops everything in a session. If it is not open here, the process that runs it reads the stop, or the next one that does.
    async fn stop_session(&self, session: SessionId, order: &Order) -> Result<(), RuntimeError> {
        let post = UserMail::new(&self.shared.journal);
        let Ok(active) = self.active(session) else { return post.stop_session(&order.by, session).await };
        let stops = post.stop_all(&order.by, session, active.fresh_turn()).await?;
        active.ring_to_stop(stops.into_iter().map(|stop| stop.to));
        Ok(())
    }

    /// What a rewind to a point would change.
    pub(crate) async fn rewinding(
        &self,
        session: SessionId,
        to: RewindPoint,
    ) -> Result<(rewind::RewindPlan, Vec<Sheet>), RuntimeError> {
        let shared = Arc::clone(&self.shared);
        let work = move || {
            let rewind = Rewind::new(&shared.journal, &shared.home, session);
            let plan = rewind.plan(to, &[])?;
            let sheets = rewind.sheets(&plan)?;
            Ok((plan, sheets))
        };
        finished(tokio::task::spawn_blocking(work).await)
    }

    /// Restores files, while no agent works. An unfinished earlier rewind is completed first. The key of the order is the rewind's id:
    /// a second order with the same key finds it begun, and only completes it.
    async fn rewind(
        &self,
        session: SessionId,
        key: EnvelopeId,
        plan: rewind::RewindPlan,
        by: Principal,
    ) -> Result<(), RuntimeError> {
        let active = self.active(session)?;
        // An agent that has just given its answer takes a moment to become idle.
        drop(tokio::time::timeout(REST_WAIT, active.settle()).await);
        if !active.is_at_rest() {
            return Err(RuntimeError::AtWork);
        }
        let (shared, fence) = (Arc::clone(&self.shared), active.fence.clone());
        let work = move || {
            let rewind = Rewind::new(&shared.journal, &shared.home, session);
            if let Some(begun) = rewind.begun()? {
                rewind.finish(&begun, &fence, &by)?;
            }
            if rewind.outcome(key)?.is_none() {
                rewind.carry_out(key, &plan, &fence, &by)?;
            }
            Ok(())
        };
        let outcome = finished(tokio::task::spawn_blocking(work).await);
        // The rewind has sent a message to the lead.
        active.ring(&session::agent_stream(active.lead));
        outcome
    }

    /// Edits that cannot be applied are refused here, while the caller can still be told.
    fn check_edits(
        &self,
        post: &UserMail<'_>,
        question: QuestionId,
        edits: &[Edit],
        by: &Principal,
    ) -> Result<(), RuntimeError> {
        let address = post.address(question)?;
        let active =
            user_mail::session_at(&self.shared.journal, &address).and_then(|session| self.active(session).ok());
        let plan = address.strip_prefix("plan/").and_then(|id| id.parse().ok());
        let (Some(active), Some(plan)) = (active, plan) else { return Ok(()) };
        let (plan, _) = fold_plan(&self.shared, plan)?;
        if let (Some(team), Some(draft)) = (active.team(), plan.draft()) {
            propose::edited(&team, &active.root, draft, edits, by.clone(), &active.basis())
                .map_err(RuntimeError::DraftFlaws)?;
        }
        Ok(())
    }

    async fn propose(&self, session: SessionId, order: &Order, draft: Draft, source: &str) -> Result<(), RuntimeError> {
        let active = self.active(session)?;
        let team = active.team().ok_or_else(|| RuntimeError::Plan("there is no team in this session".to_owned()))?;
        let plan = PlanId::new(order.key.uuid());
        let proposed = propose::propose(&active, &team, plan, draft, source.to_owned(), None, false)
            .map_err(RuntimeError::DraftFlaws)?;
        let message = messages::proposal(&active, &order.by.address(), proposed);
        let mut commit = commit_at(now_ms());
        commit.strength = Durability::Full;
        let said = Event::Said(UserMessage {
            envelope: order.key,
            text: format!("run {source}"),
            by: order.by.clone(),
            cwd: active.root.display().to_string(),
        });
        let stream = session::stream(session);
        commit.projections.extend(rows::project(&stream, commit.at_ms, &said));
        commit.appends.push(append(&stream, &said, &order.by.address())?);
        commit.sends.push(message.clone());
        rows::of_sends(&mut commit);
        self.shared.journal.commit(commit).await?;
        self.shared.notices.envelope(&message);
        active.seat_plan(plan)
    }

    async fn say(&self, session: SessionId, text: &str, wait: bool, order: &Order) -> Result<(), RuntimeError> {
        // A session that another process runs hears of the message through the journal.
        if self.active(session).is_err() && self.shared.journal.owner(&session::stream(session))?.is_none() {
            return Err(RuntimeError::NotOpen(session));
        }
        self.refresh(session).await?;
        let post = UserMail::new(&self.shared.journal);
        let written = post.say(&order.by, order.key, session, text, wait).await?;
        self.publish(session, &order.by, written);
        Ok(())
    }

    async fn write(&self, session: SessionId, to: &[String], text: &str, order: &Order) -> Result<(), RuntimeError> {
        self.refresh(session).await?;
        let before = self.knowing(session);
        let post = UserMail::telling(&self.shared.journal, &before);
        let written = post.write(&order.by, order.key, session, to, text).await?;
        self.publish(session, &order.by, written);
        Ok(())
    }

    async fn decide(&self, question: QuestionId, say: &PlanDecision, order: &Order) -> Result<(), RuntimeError> {
        let post = UserMail::new(&self.shared.journal);
        if let PlanDecision::Edit(edits) = say {
            self.check_edits(&post, question, edits, &order.by)?;
        }
        let address = post.decide(&order.by, order.key, question, say).await?;
        self.ring(&address);
        Ok(())
    }

    /// Marks messages that are about to be written as known, so that this process does not report them to its
    /// frontends as news.
    fn knowing(&self, session: SessionId) -> impl Fn(&[Envelope]) + Send + Sync + use<> {
        let active = self.active(session).ok();
        move |envelopes| active.iter().for_each(|active| active.wrote(envelopes))
    }

    /// After the commit: wakes the readers of the messages, and tells subscribers what was said to the lead.
    fn publish(&self, session: SessionId, by: &Principal, written: SentMessages) {
        for envelope in &written.envelopes {
            self.shared.notices.envelope(envelope);
        }
        if let Some(said) = written.said {
            // The sender must not wait for frontends, because it may be one; a frontend that is behind reads the log.
            let from = Arc::new(Origin::named(&by.user));
            self.shared.notices.show(&Notice::Event { session, from, at_ms: written.at_ms, event: Arc::new(said) });
        }
        written.envelopes.iter().for_each(|envelope| self.ring(&envelope.to));
    }
}
