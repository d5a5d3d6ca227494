//! Messages of a team that carry no text for a model, and how those that do reach one.
//!
//! A message that is not accepted (an answer to no request, to another one, from another sender, or too late) is
//! recorded with the reason and changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use max_team_core::agent::{Definition, Settings};
use max_team_core::body::{AgentQuestion, Body, SetMode, Stop};
use max_team_core::event::{Event, QuestionAnswered};
use max_team_core::id::{AgentId, EnvelopeId, QuestionId};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::policy::{DecidedBy, PermissionAnswer, Rules, Verdict, judge};
use max_team_core::teammate::render::{MessageAttributes, wrap};
use max_team_core::teammate::requests::Responded;
use max_team_core::teammate::{Granted, MessageRefused};
use max_team_core::turn::{TurnEffect, TurnInput};

use super::acts::ActionOutcome;
use super::bounds::wanted_by;
use super::mail::derived;
use super::steer::of_user;
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::rows::{self, AgentRow};
use crate::session;
use crate::shared::now_ms;
use crate::user_mail::{UserMail, is_go_on};

/// The author of a forced end after the deadline.
pub(super) const OVERDUE: &str = "the deadline of its shutdown";

impl Agent {
    /// A message as the model reads it.
    pub(super) fn told_as(&self, envelope: &Envelope) -> String {
        let text = envelope.text();
        let from = envelope.author();
        if envelope.kind == MessageKind::UserInput && !self.turn.origin.lead && !is_go_on(text) {
            return of_user(text);
        }
        if envelope.kind == MessageKind::ShutdownRequest {
            let from = if from.is_empty() { "user" } else { from };
            let request = envelope.id.to_string();
            let about = MessageAttributes {
                from,
                kind: Some(envelope.kind),
                request: &request,
                is_leads: envelope.from == session::agent_stream(self.active.lead),
                ..MessageAttributes::default()
            };
            let words = format!(
                "You are asked to end. {text}\nFinish what you are doing: you end with this turn. If you cannot, call `send_message` \
                 to `lead` with the message {{\"type\": \"shutdown_response\", \"request_id\": \"{request}\", \"approve\": \
                 false, \"reason\": \"…\"}}."
            );
            return wrap(about, &words);
        }
        let is_mail = matches!(
            envelope.kind,
            MessageKind::Text
                | MessageKind::TaskResult
                | MessageKind::TaskAssign
                | MessageKind::PlanApprovalRequest
                | MessageKind::ShutdownRejected
                | MessageKind::TeammateTerminated
                | MessageKind::Undelivered
        );
        if from.is_empty() || !is_mail {
            return text.to_owned();
        }
        let request = match Body::read(envelope) {
            Body::Question(AgentQuestion { question: Some(question), .. }) => question.to_string(),
            _ => String::new(),
        };
        let is_leads = !self.turn.origin.lead && envelope.from == session::agent_stream(self.active.lead);
        let about =
            MessageAttributes { from, color: envelope.color(), kind: Some(envelope.kind), request: &request, is_leads };
        match is_leads && self.turn.teammate().is_none() {
            // Only a teammate's prompt says what the mark means.
            true => format!("(From the lead: follow it.)\n{}", wrap(about, text)),
            false => wrap(about, text),
        }
    }

    /// A person, or for a plan its lead, answers a question.
    pub(super) async fn take_answer(&mut self, envelope: &Envelope) -> Result<(), RuntimeError> {
        let Some((question, answer)) = answer_of(envelope) else {
            return self.refuse(envelope, "it says nothing").await;
        };
        match self.turn.answer_error(question, envelope) {
            Some(why) => self.refuse(envelope, why).await,
            None => self.step(TurnInput::Answered { question, answer }, Extra::acks(vec![envelope.id])).await,
        }
    }

    /// Acknowledges a message and records why nothing is done about it.
    pub(super) async fn refuse(&mut self, envelope: &Envelope, why: &str) -> Result<(), RuntimeError> {
        self.commit(vec![refused(envelope, why)], Extra::acks(vec![envelope.id])).await
    }

    /// The answer of a teammate to a request; whether the model is told of it at once.
    pub(super) async fn take_response(&mut self, envelope: &Envelope) -> Result<bool, RuntimeError> {
        let responded = match self.turn.requests().respond(envelope) {
            Ok(responded) => responded,
            Err(why) => return self.refuse(envelope, why).await.map(|()| false),
        };
        // An accepted request needs no turn; a rejected one is shown to the model.
        let is_news = envelope.kind == MessageKind::ShutdownRejected;
        let extra = if is_news { Extra::default() } else { Extra::acks(vec![envelope.id]) };
        self.commit(vec![Event::Responded(responded)], extra).await?;
        Ok(is_news)
    }

    /// Requests that are overdue: a teammate that was asked to end, and did not, is ended.
    pub(super) async fn overdue(&mut self) -> Result<(), RuntimeError> {
        let now = now_ms();
        if now < self.restart.patient_ms {
            return Ok(());
        }
        let overdue: Vec<_> = self.turn.requests().overdue(now).cloned().collect();
        let (mut events, mut sends) = (Vec::new(), Vec::new());
        for asked in overdue {
            events.push(Event::Responded(Responded {
                request: asked.request,
                kind: None,
                envelope: None,
                reason: String::new(),
            }));
            if asked.kind == MessageKind::ShutdownRequest {
                sends.push(
                    Envelope::new(
                        derived(&[self.turn.stream.as_bytes(), asked.request.to_string().as_bytes(), b"end"]),
                        &self.turn.stream,
                        asked.to,
                        MessageKind::Shutdown,
                        Body::Stop(Stop {
                            by: OVERDUE,
                            end: true,
                            text: "it did not answer in time",
                            ..Stop::default()
                        }),
                        now_ms(),
                    )
                    .answering(asked.request),
                );
            }
        }
        self.commit(events, Extra { sends, ..Extra::default() }).await
    }

    /// The unread request to end with that id.
    pub(super) fn asked_to_end(&self, request: &str) -> Result<Option<Envelope>, RuntimeError> {
        let mail = self.active.shared.journal.pending_mail(&self.turn.stream)?;
        let is_it =
            |envelope: &Envelope| envelope.kind == MessageKind::ShutdownRequest && envelope.id.to_string() == request;
        Ok(mail.into_iter().find(is_it))
    }

    /// A request of its lead, or of the user, to work in another mode. It never becomes freer than the session.
    pub(super) async fn take_mode(&mut self, envelope: &Envelope) -> Result<(), RuntimeError> {
        let is_lead = self.turn.first_assignment().is_some_and(|given| given.reply_to == envelope.from);
        if !is_lead && !envelope.from.starts_with("user/") {
            return self.refuse(envelope, "only its lead or the user says so").await;
        }
        let Body::Mode(SetMode { mode: Some(mode), .. }) = Body::read(envelope) else {
            return self.refuse(envelope, "it names no mode").await;
        };
        let known = self.frame.definition().mode_in(self.frame.settings().mode);
        // Only a person may loosen a mode that a person or the lead has set: a model could be talked into it.
        if is_lead && mode != known && !mode.is_stricter(known) {
            return self.refuse(envelope, "a lead only makes it stricter; the user can loosen it").await;
        }
        let definition = Arc::new(Definition { mode: Some(mode), ..(**self.frame.definition()).clone() });
        let by = match envelope.from.strip_prefix("user/") {
            Some(user) => DecidedBy::Person(user.to_owned()),
            None => {
                let lead = envelope.from.strip_prefix("agent/").and_then(|id| id.parse().ok());
                let row = lead.and_then(|lead| self.active.row_of(lead));
                DecidedBy::Lead(row.map_or_else(|| envelope.from.clone(), |row| row.name))
            }
        };
        let events = wanted_by(self.become_(definition)?, Some(by));
        self.commit(events, Extra::acks(vec![envelope.id])).await
    }

    /// Messages to other agents about a person's approval for the session. A teammate's grant goes to all teammates;
    /// any agent's yes also goes to the agents whose question is open, where it settles an equal one.
    pub(super) fn sharing(&self, answered: &QuestionAnswered, at_ms: i64) -> Result<Vec<Envelope>, RuntimeError> {
        let grants = self.turn.shared_grants(answered);
        if grants.is_empty() {
            return Ok(Vec::new());
        }
        let teammates = if self.turn.teammate().is_some() { self.active.teammates()? } else { Vec::new() };
        let mut others: BTreeSet<String> =
            teammates.into_iter().map(|(_, agent)| session::agent_stream(agent)).collect();
        let inbox = UserMail::new(&self.active.shared.journal).inbox_of(self.active.session)?.into_iter();
        let waiting = inbox.filter(|pending| pending.noted.is_none());
        others.extend(waiting.map(|pending| pending.row.address).filter(|address| address.starts_with("agent/")));
        others.remove(&self.turn.stream);
        let envelope = |to: String| {
            Envelope::new(
                sharing_envelope(answered.question, &to),
                &self.turn.stream,
                to,
                MessageKind::TeamPermissionUpdate,
                Body::Grant(Granted { grants: grants.clone(), asker: self.turn.origin.name.to_string() }),
                at_ms,
            )
        };
        Ok(others.into_iter().map(envelope).collect())
    }

    /// Takes over what a person has allowed another teammate for the session, as far as its own rules permit such
    /// actions at all.
    pub(super) async fn take_grants(&mut self, envelope: &Envelope) -> Result<(), RuntimeError> {
        let from = envelope.from.strip_prefix("agent/").and_then(|id| id.parse::<AgentId>().ok());
        let table = rows::agents_of(&self.active.session.to_string());
        let row = |agent: AgentId| rows::row::<AgentRow>(&self.active.shared.journal, &table, &agent.to_string());
        let is_ours = from == Some(self.active.lead) || from.map(row).transpose()?.flatten().is_some();
        let granted = match Body::read(envelope) {
            Body::Grant(granted) if is_ours && !granted.grants.is_empty() => granted,
            _ => return self.refuse(envelope, "it grants nothing that could be understood").await,
        };
        if self.turn.teammate().is_none() {
            return self.settle_equal(&granted, envelope).await;
        }
        let asker = granted.asker.clone();
        self.commit(vec![Event::Granted(granted)], Extra::acks(vec![envelope.id])).await?;
        self.answer_by_grant(&asker).await
    }

    /// Answers its open question if the yes to another agent would be remembered as the same; it is granted nothing else.
    async fn settle_equal(&mut self, granted: &Granted, envelope: &Envelope) -> Result<(), RuntimeError> {
        let acked = Extra::acks(vec![envelope.id]);
        let asked = self.turn.pending().into_iter().find_map(|effect| match effect {
            TurnEffect::Ask { question, .. } if self.turn.grants_of(question) == granted.grants => Some(question),
            _ => None,
        });
        let Some(question) = asked else { return self.commit(Vec::new(), acked).await };
        let by = DecidedBy::Grant(granted.asker.clone());
        self.step(TurnInput::Answered { question, answer: PermissionAnswer::new(true, by) }, acked).await
    }

    /// Its open question may be allowed by now.
    async fn answer_by_grant(&mut self, asker: &str) -> Result<(), RuntimeError> {
        let asked = self.turn.pending().into_iter().find_map(|effect| match effect {
            TurnEffect::Ask { question, tool, action, .. } => Some((question, tool, action)),
            _ => None,
        });
        let Some((question, tool, action)) = asked else { return Ok(()) };
        let rules = Rules { grants: self.turn.grants(), ..self.frame.settings().rules() };
        if judge(&rules, &tool, &action).verdict != Verdict::Allow {
            return Ok(());
        }
        let by = DecidedBy::Grant(asker.to_owned());
        self.step(TurnInput::Answered { question, answer: PermissionAnswer::new(true, by) }, Extra::default()).await
    }

    /// Its plan was approved: it works in the usual mode of its type from now on.
    pub(super) async fn begin_planned(&mut self) -> Result<ActionOutcome, RuntimeError> {
        let own = self.frame.definition();
        let mode = self.active.callee(&own.name).and_then(|teammate| teammate.definition.mode);
        let events = self.become_(Arc::new(Definition { mode, ..(**own).clone() }))?;
        self.commit(events, Extra::default()).await?;
        Ok(ActionOutcome::said("Your plan is approved: carry it out now."))
    }

    /// Switches to a new definition of the same type.
    fn become_(&mut self, definition: Arc<Definition>) -> Result<Vec<Event>, RuntimeError> {
        let known = Settings::clone(self.frame.settings());
        let session = self.active.callee(&definition.name).map_or(known.mode, |teammate| teammate.settings.mode);
        let settings = Settings { mode: definition.mode_in(session), ..known };
        let now = self.active.settings_now(&definition, &settings, self.bounds.caller.as_deref())?;
        let settings = Arc::new(now.unwrap_or(settings));
        let depth = self.turn.first_assignment().or(self.turn.assignment()).map_or(0, |given| given.depth);
        self.frame = self.active.frame_for(&definition, &settings, depth)?;
        self.frame.reveal_from(self.turn.history());
        self.active.rebind(&self.turn.stream, &settings);
        Ok(self.decide(TurnInput::Redefine(definition, settings)))
    }
}

/// The message that tells a teammate what was allowed with the answer to another one's question.
pub(crate) fn sharing_envelope(question: QuestionId, to: &str) -> EnvelopeId {
    derived(&[question.to_string().as_bytes(), to.as_bytes(), b"granted"])
}

pub(super) fn answer_of(envelope: &Envelope) -> Option<(QuestionId, PermissionAnswer)> {
    match Body::read(envelope) {
        Body::Answer(said) => said.question.zip(said.answer),
        _ => None,
    }
}

/// The event that a message is not accepted.
pub(super) fn refused(envelope: &Envelope, why: &str) -> Event {
    let (id, from, kind) = (envelope.id, envelope.from.clone(), envelope.kind);
    Event::MessageRefused(MessageRefused { envelope: id, from, kind, why: why.to_owned() })
}
