//! What becomes of a message, by its kind and the state of the agent that reads it.
//!
//! `receive` decides about one message, `begins_with` about the messages that an idle agent has. The agent's loop obeys both;
//! queries that only look at a mailbox use the predicates behind them. A message that is neither given to the model
//! nor acted on stays in the mailbox, which is read again when a turn is over.

use super::Turn;
use crate::body::Body;
use crate::message::{Envelope, MessageKind};
use crate::teammate::report::{self, TurnTrigger};
use crate::teammate::shutdown;

/// What the reader of a message does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailAction {
    /// It begins a turn of its own.
    Begin,
    /// It begins a turn together with other news.
    Join,
    /// It is told with the messages that begin the next turn, and begins none.
    Note,
    /// It is added to the next model call of the turn that runs. Without a further model call, it is handled after the turn.
    Tell,
    /// It waits until the turn that runs is over.
    Wait,
    /// It waits for the end of a review, which it ends: the agent has more to do.
    EndReview,
    /// It is the result of a call of the turn that runs.
    Result,
    /// It answers a question of the agent.
    Answer,
    /// It answers a request of the agent.
    Respond,
    /// No agent could answer a call: the user is asked.
    AskUser,
    /// It sets the mode of a teammate.
    SetMode,
    /// It grants what the user has granted another agent.
    Grant,
    /// It starts teammates.
    Recruit,
    /// It stops the turn that runs.
    Stop,
    /// It ends the agent: now, or when its turn is over.
    End,
    /// The agent has ended: the message goes back to its sender.
    Return,
    /// It changes nothing, and the reason is recorded.
    Refuse(&'static str),
    /// It is recorded as read.
    Record,
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnStage {
    /// No turn runs.
    Idle,
    /// A turn runs.
    Working,
    /// A turn runs, and one of its calls waits for a person.
    Asking,
}

impl Turn {
    /// What the agent is doing, as far as its messages are concerned.
    pub fn stage(&self) -> TurnStage {
        match () {
            () if !self.is_busy() => TurnStage::Idle,
            () if self.is_asking() => TurnStage::Asking,
            () => TurnStage::Working,
        }
    }

    /// What becomes of a message that has come.
    pub fn receive(&self, envelope: &Envelope, lead: bool) -> MailAction {
        let (is_teammate, is_reviewing) = (self.teammate().is_some(), self.review_message().is_some());
        let is_for_review =
            is_reviewing && matches!(envelope.kind, MessageKind::PermissionResponse | MessageKind::Shutdown);
        if self.agent_end().is_some() && !is_for_review {
            return MailAction::Return;
        }
        match envelope.kind {
            _ if shutdown::is_end(envelope) => MailAction::End,
            MessageKind::UserInput | MessageKind::TaskAssign if is_reviewing => MailAction::EndReview,
            MessageKind::UserInput if self.is_busy() => self.while_busy(envelope),
            MessageKind::PermissionResponse | MessageKind::SandboxPermissionResponse => MailAction::Answer,
            MessageKind::PlanApprovalResponse if is_teammate => MailAction::Answer,
            MessageKind::ModeSetRequest => MailAction::SetMode,
            MessageKind::TeamPermissionUpdate => MailAction::Grant,
            MessageKind::TeamRequest if !lead || !envelope.from.starts_with("user/") => {
                MailAction::Refuse("only a user asks for teammates, and only a lead has any")
            }
            // The notice about new teammates must not come between a call and its result.
            MessageKind::TeamRequest if self.is_busy() && !self.refuses_team(envelope) => MailAction::Wait,
            MessageKind::TeamRequest => MailAction::Recruit,
            MessageKind::ShutdownApproved | MessageKind::ShutdownRejected if !lead => {
                MailAction::Refuse("it sent no shutdown request")
            }
            MessageKind::ShutdownApproved => MailAction::Respond,
            MessageKind::ShutdownRejected if !self.requests().is_accepted(envelope.id) => MailAction::Respond,
            MessageKind::Text if is_unanswered(envelope) => MailAction::AskUser,
            _ if self.is_busy() && (is_note(envelope, lead) || self.is_news(envelope, lead)) => {
                self.while_busy(envelope)
            }
            _ if is_note(envelope, lead) => MailAction::Note,
            _ if self.is_news(envelope, lead) => MailAction::Join,
            MessageKind::TaskResult | MessageKind::Text => MailAction::Result,
            MessageKind::Shutdown => MailAction::Stop,
            MessageKind::TaskAssign if self.is_busy() => MailAction::Wait,
            MessageKind::UserInput | MessageKind::TaskAssign => MailAction::Begin,
            _ => MailAction::Record,
        }
    }

    /// Whether a message is told to the turn that runs.
    fn while_busy(&self, envelope: &Envelope) -> MailAction {
        // These wait for a turn of their own: a task, and the news that a teammate is idle or refuses to end, or that files
        // were restored.
        let is_news = matches!(
            envelope.kind,
            MessageKind::ShutdownRejected | MessageKind::FilesRewound | MessageKind::IdleNotification
        );
        let is_later = is_news || envelope.kind == MessageKind::TaskAssign;
        let is_instruction = self.first_assignment().is_some_and(|engaged| engaged.reply_to == envelope.from);
        // This turn answers the user; an instruction of the lead waits for a turn that answers the lead.
        let is_for_lead = is_instruction && self.trigger() == Some(TurnTrigger::User);
        let waits = is_later
            || is_for_lead
            || waits_for_turn_end(envelope)
            || self.review_message().is_some()
            || self.is_on_hold(envelope);
        if waits { MailAction::Wait } else { MailAction::Tell }
    }

    /// The messages that the next turn of an idle agent begins with, of those that may (`Begin`, `Join`, `Note`), in the order
    /// they came. Empty: no turn begins. `awaits_team`: whether teammates of a lead still work.
    pub fn begins_with(
        &self,
        mail: Vec<(MailAction, Envelope)>,
        lead: bool,
        awaits_team: impl FnOnce() -> bool,
    ) -> Vec<Envelope> {
        let beginning = || mail.iter().filter(|(action, _)| *action != MailAction::Note).map(|(_, envelope)| envelope);
        if beginning().all(|envelope| self.is_on_hold(envelope)) {
            return Vec::new();
        }
        // The lead is woken once with all reports.
        let gathers = lead && beginning().all(report::can_wait);
        if gathers && awaits_team() {
            return Vec::new();
        }
        let (mut said, mut told, mut is_open) = (Vec::new(), Vec::new(), true);
        for (action, envelope) in mail {
            match action {
                MailAction::Begin if is_open && said.first().is_none_or(|first| joins(first, &envelope)) => {
                    said.push(envelope)
                }
                // It begins a turn of its own, and so does the next.
                MailAction::Begin => is_open = false,
                _ => told.push((action, envelope)),
            }
        }
        // A message that was said is answered before news is, except for news that a stop has held.
        told.retain(|(action, _)| said.is_empty() || self.held().is_some() || *action == MailAction::Note);
        said.extend(told.into_iter().map(|(_, envelope)| envelope));
        said
    }

    /// Whether a stop, or a refusal before, keeps the teammates that a message asks for from beginning.
    pub fn refuses_team(&self, envelope: &Envelope) -> bool {
        self.is_on_hold(envelope) || self.has_refused(envelope.id)
    }

    /// Whether a message is news, which is told together with other news.
    fn is_news(&self, envelope: &Envelope, lead: bool) -> bool {
        match envelope.kind {
            MessageKind::TaskFailed
            | MessageKind::NeedClarify
            | MessageKind::AllTasksDone
            | MessageKind::ShutdownRejected => true,
            MessageKind::Text => envelope.reply_to.is_none(),
            MessageKind::TaskAssign => envelope.task().assignment.is_none(),
            MessageKind::TaskResult => envelope.teammate().is_some(),
            MessageKind::PlanApprovalRequest => {
                matches!(Body::read(envelope), Body::Question(asked) if asked.question.is_some())
            }
            MessageKind::PlanApprovalResponse => self.teammate().is_none(),
            MessageKind::UserInput => self.teammate().is_some(),
            MessageKind::TeammateTerminated | MessageKind::Undelivered => lead,
            MessageKind::IdleNotification => lead && report::is_idle(envelope),
            _ => false,
        }
    }

    /// Whether a message begins something by itself: a turn, or the start of teammates that a user asked for.
    pub fn is_beginning(&self, envelope: &Envelope, lead: bool) -> bool {
        let is_given = matches!(envelope.kind, MessageKind::UserInput | MessageKind::TaskAssign);
        let is_wanted = lead && envelope.kind == MessageKind::TeamRequest;
        is_given || is_wanted || (self.is_news(envelope, lead) && !is_note(envelope, lead))
    }

    /// Whether a message stays in the mailbox until another comes: it has had its effect and is only told, or waits
    /// because of a stop.
    pub fn stays_in_mailbox(&self, envelope: &Envelope, lead: bool) -> bool {
        self.is_left(envelope, lead) || self.requests().is_accepted(envelope.id)
    }

    fn is_left(&self, envelope: &Envelope, lead: bool) -> bool {
        is_note(envelope, lead) || self.refuses_team(envelope)
    }

    /// Whether any of these messages, in order of arrival, makes an idle agent act. Messages before a person's stop do
    /// not: they are on hold once the stop is read.
    pub fn would_begin(&self, mail: &[Envelope], lead: bool) -> bool {
        let stop = before_stop(mail);
        // A stop that does not end the agent has no effect on an idle one.
        let is_done = |envelope: &Envelope| envelope.kind == MessageKind::Shutdown && !shutdown::is_end(envelope);
        let is_any = |envelope: &Envelope| !is_done(envelope) && !self.is_left(envelope, lead);
        // An agent that has ended returns all messages.
        if self.agent_end().is_some() { !mail.is_empty() } else { mail.iter().skip(stop).any(is_any) }
    }

    /// The requests for teammates among a lead's messages, in order of arrival, that are about to be carried out:
    /// neither a stop nor a refusal applies to them.
    pub fn team_requests<'m>(&self, mail: &'m [Envelope]) -> impl Iterator<Item = &'m Envelope> {
        let is_open = |envelope: &&Envelope| envelope.kind == MessageKind::TeamRequest && !self.is_left(envelope, true);
        mail.iter().skip(before_stop(mail)).filter(is_open)
    }

    /// How many of these messages, in order of arrival, are acted upon: no stop holds them or follows them.
    pub fn actionable_count(&self, mail: &[Envelope], lead: bool) -> usize {
        let is_open = |envelope: &&Envelope| !self.stays_in_mailbox(envelope, lead);
        mail.iter().skip(before_stop(mail)).filter(is_open).count()
    }

    /// How many of these messages, in order of arrival, wait because of a stop. A stop cancels requests for teammates,
    /// so these do not wait.
    pub fn waiting(&self, mail: &[Envelope], lead: bool) -> usize {
        let stop = before_stop(mail);
        let is_held = |(place, envelope): &(usize, &Envelope)| {
            self.is_on_hold(envelope) || (*place < stop && self.is_beginning(envelope, lead))
        };
        let is_read = |envelope: &Envelope| !is_note(envelope, lead) && envelope.kind != MessageKind::TeamRequest;
        mail.iter().enumerate().filter(|held| is_held(held) && is_read(held.1)).count()
    }
}

/// Whether a message asks for nothing: it is told with the message that begins the next turn.
pub fn is_note(envelope: &Envelope, lead: bool) -> bool {
    match envelope.kind {
        MessageKind::TaskResult | MessageKind::AllTasksDone => envelope.is_stopped() || envelope.is_aside(),
        MessageKind::TeammateTerminated | MessageKind::Undelivered => !lead,
        MessageKind::FilesRewound => true,
        _ => envelope.is_aside(),
    }
}

/// Whether two messages of a user are told together: all that one person has said and the agent has not read, except for
/// messages that are to have a turn of their own.
fn joins(first: &Envelope, envelope: &Envelope) -> bool {
    let is_said = |envelope: &Envelope| envelope.kind == MessageKind::UserInput && !waits_for_turn_end(envelope);
    is_said(first) && is_said(envelope) && first.from == envelope.from
}

/// Whether the user wants a message to be read once the turn that runs is over.
pub fn waits_for_turn_end(envelope: &Envelope) -> bool {
    matches!(Body::read(envelope), Body::Input(input) if input.wait)
}

/// Whether a message says that no agent could answer its reader's question.
fn is_unanswered(envelope: &Envelope) -> bool {
    matches!(Body::read(envelope), Body::Words(words) if words.ask)
}

/// How many of these messages come before the last unread stop by a person, the stop included.
fn before_stop(mail: &[Envelope]) -> usize {
    mail.iter().rposition(is_stop).map_or(0, |stop| stop + 1)
}

/// Whether a message stops its reader on behalf of a person.
pub fn is_stop(envelope: &Envelope) -> bool {
    envelope.kind == MessageKind::Shutdown && envelope.is_stopped()
}
