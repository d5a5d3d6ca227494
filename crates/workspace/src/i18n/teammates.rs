//! The phrases of teammates and their mail.

use max_team_core::body::{Body, ReturnCause};
use max_team_core::limits::TEAMMATE_NAME_CHARS_MAX;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::teammate::name::NameError;
use max_team_runtime::{Enrolled, Fate};

use super::{Lang, heads};

impl Lang {
    pub fn mail_heads(self) -> [&'static str; 7] {
        heads(self.mail_heads_row())
    }

    pub fn no_such_owner(self, name: &str, near: Option<&str>, there: &[String]) -> String {
        match near {
            Some(near) => self.owner_near(name, near),
            None => self.owner_unknown(name, there.join(self.comma())),
        }
    }

    pub fn nobody_there(self, name: &str, near: Option<&str>, there: &[&str], lead: &str) -> String {
        match near {
            Some(near) => self.recipient_near(name, near, lead),
            None if there.is_empty() => self.recipient_alone(name, lead),
            None => self.recipient_unknown(name, there.join(self.comma()), lead),
        }
    }

    pub fn roll_heads(self) -> [&'static str; 11] {
        heads(self.roll_heads_row())
    }

    pub fn team_heads(self) -> [&'static str; 4] {
        heads(self.team_heads_row())
    }

    pub fn envelope_fate(self, fate: &Fate) -> &'static str {
        match fate {
            Fate::Queued => self.mail_queued(),
            Fate::Delivered => self.mail_delivered(),
            Fate::Read(_) => self.mail_read(),
            Fate::Acted(_) => self.mail_acted(),
            Fate::Dead { .. } => self.mail_dead(),
            Fate::Refused(_) => self.mail_refused(),
            Fate::Withdrawn => self.mail_withdrawn(),
        }
    }

    pub fn envelope_kind(self, kind: MessageKind) -> &'static str {
        match kind {
            MessageKind::UserInput => self.mail_kind_user_input(),
            MessageKind::Text => self.mail_kind_text(),
            MessageKind::TaskAssign => self.mail_kind_task_assign(),
            MessageKind::TaskResult => self.mail_kind_task_result(),
            MessageKind::PlanApprovalRequest => self.mail_kind_plan_approval_request(),
            MessageKind::PlanApprovalResponse => self.mail_kind_plan_approval_response(),
            kind => kind.name(),
        }
    }

    pub fn member_state(self, member: &Enrolled) -> &'static str {
        let person = &member.person;
        if member.is_active() { self.person_state(person.state, person.reason.as_ref()) } else { self.is_gone() }
    }

    /// Why a teammate is in its state.
    pub fn member_why(self, member: &Enrolled) -> Option<String> {
        if let Some(gone) = &member.gone {
            return Some(self.ended_by(&gone.by, &gone.reason));
        }
        let asked = member.asked_to_end.as_ref().map(|by| self.asked_to_end_by(self.person(by)));
        let reason = member.person.reason.as_ref().map(|reason| self.idle_because(reason));
        let whys: Vec<String> = reason.into_iter().chain(asked).collect();
        (!whys.is_empty()).then(|| whys.join(self.semicolon()))
    }

    /// A teammate that was asked to shut down refuses.
    pub fn will_not_end(self, envelope: &Envelope) -> Option<String> {
        let (name, text) = (envelope.author(), envelope.text());
        let why = if text.is_empty() { String::new() } else { format!(": {text}") };
        let is_it = envelope.kind == MessageKind::ShutdownRejected && envelope.to.starts_with("user/");
        is_it.then(|| self.refuses_to_end(name, &why))
    }

    /// Worktrees are being made, in a headless run.
    pub fn copies_begun(self, of: usize) -> String {
        self.making_worktrees(of)
    }

    /// Messages wait because the agent was stopped; without a name, the lead.
    pub fn envelopes_wait(self, who: Option<&str>, count: usize) -> String {
        match who {
            None => self.messages_wait_for_lead(count),
            Some(who) => self.messages_wait_for(who, count),
        }
    }

    pub fn envelope_taken_back_but(self, names: &[String]) -> String {
        let names = names.join(", ");
        self.taken_back_but_not(&names)
    }

    /// Some mailboxes could not be asked for a message that is taken back.
    pub fn envelope_untaken(self, failed: &[String], why: &str, read: &[String]) -> String {
        let read = match read.is_empty() {
            true => String::new(),
            false => self.read_already_by(read.join(self.comma())),
        };
        self.error_untaken(failed.join(self.comma()), why, read)
    }

    /// Why a teammate has ended.
    pub fn ended_by(self, by: &str, reason: &str) -> String {
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        self.ended_by_whom(self.person(by), &why)
    }

    /// The mode that was asked for is freer than allowed: by the session, or by the teammate's own definition.
    pub fn mode_bounded(self, name: &str, mode: &str, changed: bool, by_session: bool) -> String {
        let words = match changed {
            true => self.mode_set(name, mode),
            false => self.stays_at(name, mode),
        };
        match by_session {
            true => self.mode_bounded_by_session(&words),
            false => words,
        }
    }

    pub fn they_go_on(self, names: &[String]) -> String {
        let names = names.join(", ");
        self.going_on(&names)
    }

    pub fn no_team_file(self, name: &str, names: &str) -> String {
        match names {
            "" => self.no_saved_teams(name),
            _ => self.unknown_team(name, names),
        }
    }

    pub fn nothing_to_save(self) -> String {
        self.no_teammates_to_save().to_owned()
    }

    /// What is said of a message that tells people that something of theirs came to nothing; `None`: it is another.
    pub fn came_to_nothing(self, envelope: &Envelope) -> Option<String> {
        self.came_back(envelope).or_else(|| self.will_not_end(envelope))
    }

    /// A message of the user that a teammate did not read. `None` for messages of any other kind.
    fn came_back(self, envelope: &Envelope) -> Option<String> {
        let Body::Undelivered(back) = Body::read(envelope) else { return None };
        if !envelope.to.starts_with("user/") {
            return None;
        }
        let (name, why, said) = (back.from, self.returned_because(back.why, &back.cause), back.said);
        // Messages of earlier releases have only the words for a model.
        if why.is_empty() {
            return Some(back.text.to_owned());
        }
        let words = self.message_came_back(name, &why);
        Some(match said {
            "" => words,
            said => self.returned_message(&words, said),
        })
    }

    /// Why a message was not read.
    pub fn fate_why(self, fate: &Fate) -> Option<String> {
        match fate {
            Fate::Dead { why, cause } => Some(self.returned_because(why, cause)),
            fate => fate.why().map(str::to_owned),
        }
    }

    fn returned_because(self, why: &str, cause: &ReturnCause) -> String {
        match cause {
            ReturnCause::Text => why.to_owned(),
            ReturnCause::Ended => self.returned_ended().to_owned(),
            ReturnCause::Failed(why) => self.returned_failed(why),
        }
    }

    /// A teammate has ended.
    pub fn teammate_ended(self, name: &str, by: &str, reason: &str) -> String {
        let how = self.ended_by(by, reason);
        self.has_ended(name, &how)
    }

    /// Why a teammate cannot have a name.
    pub fn name_error(self, name: &str, why: &NameError) -> String {
        let why = match why {
            NameError::Empty => self.name_empty().to_owned(),
            NameError::Long => self.name_long(TEAMMATE_NAME_CHARS_MAX),
            NameError::Letters => self.name_letters().to_owned(),
            NameError::Number => self.name_number().to_owned(),
            NameError::Styled(letter) => self.name_styled(letter),
            NameError::Mixed => self.name_mixed().to_owned(),
            NameError::Reserved => self.name_reserved().to_owned(),
        };
        self.no_name_because(name, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mail_are_those_of_the_journal() {
        let dead = Fate::Dead { why: String::new(), cause: ReturnCause::Text };
        for fate in
            [Fate::Queued, Fate::Delivered, Fate::Read(None), Fate::Acted(None), dead, Fate::Refused(String::new())]
        {
            assert_eq!(Lang::En.envelope_fate(&fate), fate.name());
            assert_ne!(Lang::Zh.envelope_fate(&fate), fate.name());
        }
        let kinds = [
            MessageKind::UserInput,
            MessageKind::Text,
            MessageKind::TaskAssign,
            MessageKind::TaskResult,
            MessageKind::PlanApprovalRequest,
            MessageKind::PlanApprovalResponse,
        ];
        for kind in kinds {
            assert_eq!(Lang::En.envelope_kind(kind), kind.name());
            assert_ne!(Lang::Zh.envelope_kind(kind), kind.name());
        }
    }
}
