//! What becomes of a message, by its kind and the state of the agent that reads it.
//!
//! `receive` decides about one message, `begins_with` about the messages that an idle agent has. The agent's loop obeys both;
//! queries that only look at a mailbox use the predicates behind them. A message that is neither told nor carried out stays in
//! the mailbox, which is read again when a turn is over.

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
    /// It is told with the next tool result of the turn that runs. If there is none, it is as if it came after the turn.
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
    pub fn receive(&self, letter: &Envelope, lead: bool) -> MailAction {
        let (is_mate, is_reviewing) = (self.mate().is_some(), self.reviewing().is_some());
        let is_for_review =
            is_reviewing && matches!(letter.kind, MessageKind::PermissionResponse | MessageKind::Shutdown);
        if self.gone().is_some() && !is_for_review {
            return MailAction::Return;
        }
        match letter.kind {
            _ if shutdown::is_end(letter) => MailAction::End,
            MessageKind::UserInput | MessageKind::TaskAssign if is_reviewing => MailAction::EndReview,
            MessageKind::UserInput if self.is_busy() => self.while_busy(letter),
            MessageKind::PermissionResponse | MessageKind::SandboxPermissionResponse => MailAction::Answer,
            MessageKind::PlanApprovalResponse if is_mate => MailAction::Answer,
            MessageKind::ModeSetRequest => MailAction::SetMode,
            MessageKind::TeamPermissionUpdate => MailAction::Grant,
            MessageKind::TeamRequest if !lead || !letter.from.starts_with("user/") => {
                MailAction::Refuse("only a user asks for teammates, and only a lead has any")
            }
            // The notice about new teammates must not come between a call and its result.
            MessageKind::TeamRequest if self.is_busy() && !self.turns_down(letter) => MailAction::Wait,
            MessageKind::TeamRequest => MailAction::Recruit,
            MessageKind::ShutdownApproved | MessageKind::ShutdownRejected if !lead => {
                MailAction::Refuse("it sent no shutdown request")
            }
            MessageKind::ShutdownApproved => MailAction::Respond,
            MessageKind::ShutdownRejected if !self.requests().is_accepted(letter.id) => MailAction::Respond,
            MessageKind::Text if is_unanswered(letter) => MailAction::AskUser,
            _ if self.is_busy() && (is_note(letter, lead) || self.is_news(letter, lead)) => self.while_busy(letter),
            _ if is_note(letter, lead) => MailAction::Note,
            _ if self.is_news(letter, lead) => MailAction::Join,
            MessageKind::TaskResult | MessageKind::Text => MailAction::Result,
            MessageKind::Shutdown => MailAction::Stop,
            MessageKind::UserInput | MessageKind::TaskAssign if self.is_busy() => MailAction::Wait,
            MessageKind::UserInput | MessageKind::TaskAssign => MailAction::Begin,
            _ => MailAction::Record,
        }
    }

    /// Whether a message is told to the turn that runs.
    fn while_busy(&self, letter: &Envelope) -> MailAction {
        // A task, and the news that a teammate is idle, does not end or that files were put back, are for a turn of their own.
        let is_news = matches!(
            letter.kind,
            MessageKind::ShutdownRejected | MessageKind::FilesRewound | MessageKind::IdleNotification
        );
        let is_later = is_news || letter.kind == MessageKind::TaskAssign;
        let is_instruction = self.engaged().is_some_and(|engaged| engaged.reply_to == letter.from);
        // This turn answers the user; an instruction of the lead waits for a turn that answers the lead.
        let is_others = is_instruction && self.trigger() == Some(TurnTrigger::User);
        let waits = is_later || is_others || waits(letter) || self.reviewing().is_some() || self.holds(letter);
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
        let beginning = || mail.iter().filter(|(receipt, _)| *receipt != MailAction::Note).map(|(_, letter)| letter);
        if beginning().all(|letter| self.holds(letter)) {
            return Vec::new();
        }
        // The lead is woken once with all reports.
        let gathers = lead && beginning().all(report::can_wait);
        if gathers && awaits_team() {
            return Vec::new();
        }
        let (mut said, mut told, mut is_open) = (Vec::new(), Vec::new(), true);
        for (receipt, letter) in mail {
            match receipt {
                MailAction::Begin if is_open && said.first().is_none_or(|first| joins(first, &letter)) => {
                    said.push(letter)
                }
                // It begins a turn of its own, and so does the next.
                MailAction::Begin => is_open = false,
                _ => told.push((receipt, letter)),
            }
        }
        // A message that was said is answered before news is, except for news that a stop has held.
        told.retain(|(receipt, _)| said.is_empty() || self.held().is_some() || *receipt == MailAction::Note);
        said.extend(told.into_iter().map(|(_, letter)| letter));
        said
    }

    /// Whether a stop, or a refusal before, keeps the teammates that a message asks for from beginning.
    pub fn turns_down(&self, letter: &Envelope) -> bool {
        self.holds(letter) || self.has_refused(letter.id)
    }

    /// Whether a message is news, which is told together with other news.
    fn is_news(&self, letter: &Envelope, lead: bool) -> bool {
        match letter.kind {
            MessageKind::TaskFailed
            | MessageKind::NeedClarify
            | MessageKind::AllTasksDone
            | MessageKind::ShutdownRejected => true,
            MessageKind::Text => letter.reply_to.is_none(),
            MessageKind::TaskAssign => letter.task().assignment.is_none(),
            MessageKind::TaskResult => letter.mate().is_some(),
            MessageKind::PlanApprovalRequest => {
                matches!(Body::read(letter), Body::Question(asked) if asked.question.is_some())
            }
            MessageKind::PlanApprovalResponse => self.mate().is_none(),
            MessageKind::UserInput => self.mate().is_some(),
            MessageKind::TeammateTerminated | MessageKind::Undelivered => lead,
            MessageKind::IdleNotification => lead && report::is_idle(letter),
            _ => false,
        }
    }

    /// Whether a message begins something by itself: a turn, or the start of teammates that a user asked for.
    pub fn is_beginning(&self, letter: &Envelope, lead: bool) -> bool {
        let is_given = matches!(letter.kind, MessageKind::UserInput | MessageKind::TaskAssign);
        let is_wanted = lead && letter.kind == MessageKind::TeamRequest;
        is_given || is_wanted || (self.is_news(letter, lead) && !is_note(letter, lead))
    }

    /// Whether a message stays in the mailbox until another comes: it has had its effect and is only told, or waits
    /// because of a stop.
    pub fn leaves(&self, letter: &Envelope, lead: bool) -> bool {
        self.is_left(letter, lead) || self.requests().is_accepted(letter.id)
    }

    fn is_left(&self, letter: &Envelope, lead: bool) -> bool {
        is_note(letter, lead) || self.turns_down(letter)
    }

    /// Whether any of these messages, in order of arrival, makes an idle agent act. Messages before a person's stop do
    /// not: they are on hold once the stop is read.
    pub fn would_begin(&self, mail: &[Envelope], lead: bool) -> bool {
        let stop = before_stop(mail);
        // A stop that does not end the agent has no effect on an idle one.
        let is_done = |letter: &Envelope| letter.kind == MessageKind::Shutdown && !shutdown::is_end(letter);
        let is_any = |letter: &Envelope| !is_done(letter) && !self.is_left(letter, lead);
        // An agent that has ended returns all messages.
        if self.gone().is_some() { !mail.is_empty() } else { mail.iter().skip(stop).any(is_any) }
    }

    /// The requests for teammates among a lead's messages, in order of arrival, that are about to be carried out:
    /// neither a stop nor a refusal applies to them.
    pub fn recruiting<'m>(&self, mail: &'m [Envelope]) -> impl Iterator<Item = &'m Envelope> {
        let is_open = |letter: &&Envelope| letter.kind == MessageKind::TeamRequest && !self.is_left(letter, true);
        mail.iter().skip(before_stop(mail)).filter(is_open)
    }

    /// How many of these messages, in order of arrival, are acted upon: no stop holds them or follows them.
    pub fn going_on(&self, mail: &[Envelope], lead: bool) -> usize {
        let is_open = |letter: &&Envelope| !self.leaves(letter, lead);
        mail.iter().skip(before_stop(mail)).filter(is_open).count()
    }

    /// How many of these messages, in order of arrival, wait because of a stop. A stop cancels requests for teammates,
    /// so these do not wait.
    pub fn waiting(&self, mail: &[Envelope], lead: bool) -> usize {
        let stop = before_stop(mail);
        let is_held = |(place, letter): &(usize, &Envelope)| {
            self.holds(letter) || (*place < stop && self.is_beginning(letter, lead))
        };
        let is_read = |letter: &Envelope| !is_note(letter, lead) && letter.kind != MessageKind::TeamRequest;
        mail.iter().enumerate().filter(|held| is_held(held) && is_read(held.1)).count()
    }
}

/// Whether a message asks for nothing: it is told with the message that begins the next turn.
pub fn is_note(letter: &Envelope, lead: bool) -> bool {
    match letter.kind {
        MessageKind::TaskResult | MessageKind::AllTasksDone => letter.is_stopped() || letter.is_aside(),
        MessageKind::TeammateTerminated | MessageKind::Undelivered => !lead,
        MessageKind::FilesRewound => true,
        _ => letter.is_aside(),
    }
}

/// Whether two messages of a user are told together: all that one person has said and the agent has not read, except for
/// messages that are to have a turn of their own.
fn joins(first: &Envelope, letter: &Envelope) -> bool {
    let is_said = |letter: &Envelope| letter.kind == MessageKind::UserInput && !waits(letter);
    is_said(first) && is_said(letter) && first.from == letter.from
}

/// Whether the user wants a message to be read once the turn that runs is over.
pub fn waits(letter: &Envelope) -> bool {
    matches!(Body::read(letter), Body::Input(input) if input.wait)
}

/// Whether a message says that no agent could answer its reader's question.
fn is_unanswered(letter: &Envelope) -> bool {
    matches!(Body::read(letter), Body::Words(words) if words.ask)
}

/// How many of these messages come before the last unread stop by a person, the stop included.
fn before_stop(mail: &[Envelope]) -> usize {
    mail.iter().rposition(is_stop).map_or(0, |stop| stop + 1)
}

/// Whether a message stops its reader on behalf of a person.
pub fn is_stop(letter: &Envelope) -> bool {
    letter.kind == MessageKind::Shutdown && letter.is_stopped()
}
