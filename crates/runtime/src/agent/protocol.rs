//! The letters of a team that are no words for a model, and how those that are reach one.
//!
//! What is not accepted (an answer to nothing, to something else, from somebody else, too late) is written down with the
//! reason and changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use max_team_core::event::{Event, QuestionAnswered};
use max_team_core::id::{AgentId, EnvelopeId, QuestionId};
use max_team_core::mates::letter::{About, wrapped};
use max_team_core::mates::requests::Responded;
use max_team_core::mates::{Granted, LetterRefused};
use max_team_core::message::{Envelope, Kind};
use max_team_core::policy::{Answer, By, Mode, Rules, Verdict, judge};
use max_team_core::team::{Definition, Settings};
use max_team_core::turn::{Effect, Input};
use serde::Deserialize;
use serde_json::json;

use super::acts::Done;
use super::mail::{derived, text_at};
use super::steer::of_user;
use super::{Agent, Extra, wanted_by};
use crate::error::RuntimeError;
use crate::post::{Post, is_go_on};
use crate::rows::{self, AgentRow};
use crate::session;
use crate::shared::now_ms;

/// Who ends what did not end by itself.
pub(super) const OVERDUE: &str = "the deadline of its shutdown";

impl Agent {
    /// A letter as the model reads it.
    pub(super) fn told_as(&self, letter: &Envelope) -> String {
        let text = text_at(&letter.body, "text");
        let from = text_at(&letter.body, "from");
        if letter.kind == Kind::UserInput && !self.lead && !is_go_on(&text) {
            return of_user(&text);
        }
        if letter.kind == Kind::ShutdownRequest {
            let from = if from.is_empty() { "user" } else { &from };
            let request = letter.id.to_string();
            let about = About { from, kind: Some(letter.kind), request: &request, ..About::default() };
            let words = format!(
                "You are asked to come to an end. {text}\nFinish what you are at: you end with this turn. If you cannot, say so to \
                 `lead` with `shutdown_response`."
            );
            return wrapped(about, &words);
        }
        let is_mail = matches!(
            letter.kind,
            Kind::Text
                | Kind::TaskResult
                | Kind::TaskAssign
                | Kind::PlanApprovalRequest
                | Kind::ShutdownRejected
                | Kind::TeammateTerminated
                | Kind::Undelivered
        );
        if from.is_empty() || !is_mail {
            return text;
        }
        let (color, question) = (text_at(&letter.body, "color"), text_at(&letter.body, "question"));
        let request = match letter.kind {
            Kind::PlanApprovalRequest => question,
            _ => String::new(),
        };
        let is_leads = !self.lead && letter.from == session::agent_stream(self.floor.lead);
        let about = About { from: &from, color: &color, kind: Some(letter.kind), request: &request, is_leads };
        match is_leads && self.turn.mate().is_none() {
            // Only a teammate's prompt says what the mark means.
            true => format!("(From the lead: follow it.)\n{}", wrapped(about, &text)),
            false => wrapped(about, &text),
        }
    }

    /// A person, or for a plan its lead, answers a question.
    pub(super) async fn take_answer(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let Some((question, answer)) = answer_of(letter) else { return self.refuse(letter, "it says nothing").await };
        match self.turn.misanswers(question, letter) {
            Some(why) => self.refuse(letter, why).await,
            None => self.step(Input::Answered { question, answer }, Extra::acks(vec![letter.id])).await,
        }
    }

    /// Takes a letter and does nothing about it but say why.
    pub(super) async fn refuse(&mut self, letter: &Envelope, why: &str) -> Result<(), RuntimeError> {
        self.commit(vec![refused(letter, why)], Extra::acks(vec![letter.id])).await
    }

    /// What a teammate says to what it was asked; whether the model is to hear of it at once.
    pub(super) async fn take_response(&mut self, letter: &Envelope) -> Result<bool, RuntimeError> {
        let responded = match self.turn.requests().respond(letter) {
            Ok(responded) => responded,
            Err(why) => return self.refuse(letter, why).await.map(|()| false),
        };
        // What was asked for and happened needs no turn; what did not is told.
        let is_news = letter.kind == Kind::ShutdownRejected;
        let extra = if is_news { Extra::default() } else { Extra::acks(vec![letter.id]) };
        self.commit(vec![Event::Responded(responded)], extra).await?;
        Ok(is_news)
    }

    /// Nobody waits any more: whoever was asked to end, and did not, is ended.
    pub(super) async fn overdue(&mut self) -> Result<(), RuntimeError> {
        let now = now_ms();
        if now < self.patient_ms {
            return Ok(());
        }
        let overdue: Vec<_> = self.turn.requests().overdue(now).cloned().collect();
        let (mut events, mut sends) = (Vec::new(), Vec::new());
        for asked in overdue {
            events.push(Event::Responded(Responded {
                request: asked.request,
                kind: None,
                letter: None,
                reason: String::new(),
            }));
            if asked.kind == Kind::ShutdownRequest {
                sends.push(
                    Envelope::new(
                        derived(&[self.stream.as_bytes(), asked.request.to_string().as_bytes(), b"end"]),
                        &self.stream,
                        asked.to,
                        Kind::Shutdown,
                        json!({ "by": OVERDUE, "end": true, "text": "it did not answer in time" }),
                        now_ms(),
                    )
                    .answering(asked.request),
                );
            }
        }
        self.commit(events, Extra { sends, ..Extra::default() }).await
    }

    /// The request to end that this somebody was given by that name.
    pub(super) fn asked_to_end(&self, request: &str) -> Result<Option<Envelope>, RuntimeError> {
        let mail = self.floor.shared.journal.pending_mail(&self.stream)?;
        let is_it = |letter: &Envelope| letter.kind == Kind::ShutdownRequest && letter.id.to_string() == request;
        Ok(mail.into_iter().find(is_it))
    }

    /// Its lead, or the user, wants it to work in another mode. It is never freer than the session is.
    pub(super) async fn take_mode(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let is_lead = self.turn.engaged().is_some_and(|given| given.reply_to == letter.from);
        if !is_lead && !letter.from.starts_with("user/") {
            return self.refuse(letter, "only its lead or the user says so").await;
        }
        let Some(mode) = letter.body.get("mode").and_then(|mode| Mode::deserialize(mode).ok()) else {
            return self.refuse(letter, "it names no mode").await;
        };
        let known = self.frame.definition().mode_in(self.frame.settings().mode);
        // What a person has set, or its lead before, only a person loosens: a model could be talked into it.
        if is_lead && mode != known && !mode.is_stricter(known) {
            return self.refuse(letter, "a lead only makes it stricter; the user can loosen it").await;
        }
        let definition = Arc::new(Definition { mode: Some(mode), ..(**self.frame.definition()).clone() });
        let by = match letter.from.strip_prefix("user/") {
            Some(user) => By::Person(user.to_owned()),
            None => {
                let lead = letter.from.strip_prefix("agent/").and_then(|id| id.parse().ok());
                let row = lead.and_then(|lead| self.floor.row_of(lead));
                By::Lead(row.map_or_else(|| letter.from.clone(), |row| row.name))
            }
        };
        let events = wanted_by(self.become_(definition)?, Some(by));
        self.commit(events, Extra::acks(vec![letter.id])).await
    }

    /// Messages to other agents about a person's approval for the session. A teammate's grant goes to all teammates;
    /// any agent's yes also goes to the agents whose question is open, where it settles an equal one.
    pub(super) fn sharing(&self, answered: &QuestionAnswered, at_ms: i64) -> Result<Vec<Envelope>, RuntimeError> {
        // What was allowed in a copy is looked at once more when it is merged; in the project it would not be.
        let is_here = self.frame.settings().permissions.copy.is_empty();
        let grants = if is_here { self.turn.shared_grants(answered) } else { Vec::new() };
        if grants.is_empty() {
            return Ok(Vec::new());
        }
        let mates = if self.turn.mate().is_some() { self.floor.teammates()? } else { Vec::new() };
        let mut others: BTreeSet<String> = mates.into_iter().map(|(_, agent)| session::agent_stream(agent)).collect();
        let inbox = Post::new(&self.floor.shared.journal).inbox_of(self.floor.session)?.into_iter();
        let waiting = inbox.filter(|pending| pending.noted.is_none());
        others.extend(waiting.map(|pending| pending.row.address).filter(|address| address.starts_with("agent/")));
        others.remove(&self.stream);
        let letter = |to: String| {
            Envelope::new(
                sharing_letter(answered.question, &to),
                &self.stream,
                to,
                Kind::TeamPermissionUpdate,
                json!({ "grants": grants, "asker": &*self.origin.name }),
                at_ms,
            )
        };
        Ok(others.into_iter().map(letter).collect())
    }

    /// What a person has allowed a colleague for the session, it may too, as far as it may do such things at all.
    pub(super) async fn take_grants(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let from = letter.from.strip_prefix("agent/").and_then(|id| id.parse::<AgentId>().ok());
        let table = rows::agents_of(&self.floor.session.to_string());
        let row = |agent: AgentId| rows::row::<AgentRow>(&self.floor.shared.journal, &table, &agent.to_string());
        let is_ours = from == Some(self.floor.lead) || from.map(row).transpose()?.flatten().is_some();
        match Granted::deserialize(&letter.body) {
            Ok(granted) if is_ours && self.turn.mate().is_none() => self.settle_equal(&granted, letter).await,
            Ok(granted) if is_ours => {
                let asker = granted.asker.clone();
                self.commit(vec![Event::Granted(granted)], Extra::acks(vec![letter.id])).await?;
                self.answer_by_grant(&asker).await
            }
            _ => self.refuse(letter, "it grants nothing that could be understood").await,
        }
    }

    /// Answers its open question if the yes to another agent would be remembered as the same; it is granted nothing else.
    async fn settle_equal(&mut self, granted: &Granted, letter: &Envelope) -> Result<(), RuntimeError> {
        let acked = Extra::acks(vec![letter.id]);
        let asked = self.turn.pending().into_iter().find_map(|effect| match effect {
            Effect::Ask { question, .. } if self.turn.grants_of(question) == granted.grants => Some(question),
            _ => None,
        });
        let Some(question) = asked else { return self.commit(Vec::new(), acked).await };
        let by = By::Rule(format!("what `{}` was allowed for the session", granted.asker));
        self.step(Input::Answered { question, answer: Answer::new(true, by) }, acked).await
    }

    /// What it asks may be allowed by now.
    async fn answer_by_grant(&mut self, asker: &str) -> Result<(), RuntimeError> {
        let asked = self.turn.pending().into_iter().find_map(|effect| match effect {
            Effect::Ask { question, tool, action, .. } => Some((question, tool, action)),
            _ => None,
        });
        let Some((question, tool, action)) = asked else { return Ok(()) };
        let rules = Rules { grants: self.turn.grants(), ..self.frame.settings().rules() };
        if judge(&rules, &tool, &action).verdict != Verdict::Allow {
            return Ok(());
        }
        let by = By::Rule(format!("what `{asker}` was allowed for the session"));
        self.step(Input::Answered { question, answer: Answer::new(true, by) }, Extra::default()).await
    }

    /// A plan was approved: it is carried out, as freely as others of its type work.
    pub(super) async fn begin_planned(&mut self) -> Result<Done, RuntimeError> {
        let own = self.frame.definition();
        let mode = self.floor.callee(&own.name).and_then(|mate| mate.definition.mode);
        let events = self.become_(Arc::new(Definition { mode, ..(**own).clone() }))?;
        self.commit(events, Extra::default()).await?;
        Ok(Done::said("Your plan is approved: carry it out now."))
    }

    /// Works by another definition of the same type from now on.
    fn become_(&mut self, definition: Arc<Definition>) -> Result<Vec<Event>, RuntimeError> {
        let known = Settings::clone(self.frame.settings());
        let session = self.floor.callee(&definition.name).map_or(known.mode, |mate| mate.settings.mode);
        let settings = Settings { mode: definition.mode_in(session), ..known };
        let now = self.floor.settings_now(&definition, &settings, self.caller.as_deref())?;
        let settings = Arc::new(now.unwrap_or(settings));
        let depth = self.turn.engaged().or(self.turn.assignment()).map_or(0, |given| given.depth);
        self.frame = self.floor.frame_for(&definition, &settings, depth)?;
        self.frame.reveal_from(self.turn.history());
        self.floor.rebind(&self.stream, &settings);
        Ok(self.decide(Input::Redefine(definition, settings)))
    }
}

/// The letter that tells somebody what was allowed with the answer to a colleague's question.
pub(crate) fn sharing_letter(question: QuestionId, to: &str) -> EnvelopeId {
    derived(&[question.to_string().as_bytes(), to.as_bytes(), b"granted"])
}

pub(super) fn answer_of(letter: &Envelope) -> Option<(QuestionId, Answer)> {
    let question = letter.body.get("question")?.as_str()?.parse().ok()?;
    let answer = Answer::deserialize(letter.body.get("answer")?).ok()?;
    Some((question, answer))
}

/// That a letter is not accepted.
pub(super) fn refused(letter: &Envelope, why: &str) -> Event {
    let (id, from, kind) = (letter.id, letter.from.clone(), letter.kind);
    Event::LetterRefused(LetterRefused { letter: id, from, kind, why: why.to_owned() })
}
