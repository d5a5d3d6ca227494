//! A lead's teammates: starting them, and messages between them.
//!
//! A teammate is created in the commit that tells the lead's model about it; all teammates of one answer start in one
//! commit. A message is committed with the result of the call that sent it.

use std::sync::Arc;

use max_team_core::agent::{Definition, Isolation, Settings};
use max_team_core::body::{Body, QuestionAnswer, SetMode, Stop, Words};
use max_team_core::chat::Part;
use max_team_core::delegation::tool_filter::SPAWN_TEAMMATE;
use max_team_core::event::Event;
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::limits::{MAIL_TOLD_BYTES_MAX, MAIL_WAITING_MAX, SHUTDOWN_S_DEFAULT, SHUTDOWN_S_MAX, TEAMMATES_MAX};
use max_team_core::message::{Address, Assignment, Envelope, MessageKind};
use max_team_core::policy::{DecidedBy, Mode, PermissionAnswer};
use max_team_core::suggest::candidates;
use max_team_core::teammate::name::{self, Addressee};
use max_team_core::teammate::protocol::ProtocolMessage;
use max_team_core::teammate::requests::Requested;
use max_team_core::teammate::{Lifetime, Spawn, Teammate, next_color};
use max_team_core::turn::{MailAction, TurnInput};

use super::acts::ActionOutcome;
use super::commit::Guest;
use super::flight::Flight;
use super::mail::derived;
use super::{Agent, Extra};
use crate::active_session::{ActiveSession, callable};
use crate::error::RuntimeError;
use crate::handle::AgentSpec;
use crate::rows::{InboxRow, TeammateRow};
use crate::shared::now_ms;
use crate::team_tools::{self, Act, Message, Way};
use crate::template::fill;
use crate::worktree::Worker;
use crate::{rows, session};

/// First message of a teammate.
const TEAMMATE: &str = include_str!("../../../../prompts/teammate.md");
/// Addition for a teammate that plans first.
const PLANS_FIRST: &str = "You plan first: look around, change nothing, and put what you mean to do before your lead with \
    `exit_plan_mode`. Once it is approved, carry it out.";

/// The answer to a message for the user.
const TO_USER: &str = "messages go to agents; the user reads your answer: say it there";

/// The outcome of one call that starts a teammate.
pub(super) enum Started {
    /// It begins with this commit.
    Now(Box<Guest>, String),
    /// An earlier process had started it.
    Before(String),
    /// A worktree is being made for it.
    Later(Box<Worker>),
}

/// The readers of a message, by name.
type Readers = Option<Vec<(String, AgentId)>>;
/// The message that another answers, and its sender.
type Answered = Option<(EnvelopeId, Address)>;

/// Teammates that are about to start together.
#[derive(Default)]
pub(super) struct Joining {
    pub(super) names: Vec<String>,
    /// Their colors, wanted or given.
    pub(super) colors: Vec<String>,
    /// How many of the names belong to earlier requests, whose worktrees are still being made.
    pub(super) coming: usize,
    /// Whether a user asked for them: the texts for users differ from those for models.
    pub(super) is_users: bool,
}

impl Joining {
    pub(super) fn add(&mut self, guest: &Guest) {
        if let Some(teammate) = guest.assignment.life.teammate() {
            self.names.push(teammate.name.clone());
            self.colors.push(teammate.color.clone());
        }
    }

    /// A name among them that could be confused with this one.
    fn namesake(&self, name: &str) -> Option<&String> {
        self.names.iter().find(|other| name::looks_like(other, name))
    }

    /// Why a name is taken.
    fn taken(&self, there: &str) -> String {
        let is_coming = self.names.iter().take(self.coming).any(|name| name == there);
        let when = if is_coming { "is about to begin" } else { "is there already" };
        let write = match (self.is_users, is_coming) {
            (true, _) => "",
            (false, true) => " write to it with `send_message` once it is there, or",
            (false, false) => " write to it with `send_message`, or",
        };
        format!("`{there}` {when}:{write} choose another name")
    }
}

impl Agent {
    pub(super) fn is_spawn(&self, key: &str) -> bool {
        self.turn.call(key).is_some_and(|call| call.tool == SPAWN_TEAMMATE)
    }

    /// Starts the teammates that an answer asks for, in one commit with what the model is told about it.
    pub(super) async fn spawn(&mut self, keys: Vec<String>) -> Result<(), RuntimeError> {
        self.active.bind(&self.turn.stream, self.frame.settings());
        // Unread requests are not considered here: they will find these names taken.
        let mut new = if self.running.copying.is_making() { self.coming(None)? } else { Joining::default() };
        let (mut acted, mut guests) = (Vec::new(), Vec::new());
        for key in keys {
            let Some(input) = self.turn.call(&key).map(|call| (*call.input).clone()) else { continue };
            let started = match Act::read(SPAWN_TEAMMATE, input) {
                Ok(Act::Spawn(spawn)) => self.engage_teammate(&key, &spawn, &new)?,
                Ok(_) => continue,
                Err(words) => Err(words),
            };
            let (words, is_error) = match started {
                Ok(Started::Later(worker)) => {
                    self.make_copy(&key, *worker);
                    continue;
                }
                Ok(Started::Before(words)) => (words, false),
                Ok(Started::Now(guest, words)) => {
                    new.add(&guest);
                    guests.push(*guest);
                    (words, false)
                }
                Err(words) => (words, true),
            };
            self.running.land(&Flight::Tool(key.clone()));
            acted.push((key, vec![Part::text(words)], is_error));
        }
        if acted.is_empty() {
            return Ok(());
        }
        let known: Vec<(String, TeammateRow)> = guests.iter().filter_map(row_of).collect();
        let events = self.decide(TurnInput::Acted(acted));
        self.commit(events, Extra { guests, ..Extra::default() }).await?;
        known.into_iter().try_for_each(|(name, row)| self.active.know_teammate(&name, row))
    }

    pub(super) fn engage_teammate(
        &self,
        key: &str,
        spawn: &Spawn,
        new: &Joining,
    ) -> Result<Result<Started, String>, RuntimeError> {
        if !self.turn.origin.lead {
            return Ok(Err("teammates start no teammates: ask your lead".to_owned()));
        }
        let (id, name) = (self.delegate(key), spawn.name.as_str());
        if let Some(why) = name::name_error(name, &self.turn.origin.name) {
            return Ok(Err(format!("`{name}` is no name: {why}")));
        }
        let known = self.active.teammate(name)?;
        // A teammate that was started for this call before is not started again.
        if known.as_ref().is_some_and(|known| known.agent == id) {
            return Ok(Ok(Started::Before(started_words(name))));
        }
        if let Some(other) = self.works_here(name, spawn.kind()) {
            let words = format!("`{other}` is called so already, and works here without being a teammate");
            return Ok(Err(format!("{words}: choose another name")));
        }
        if let Some(there) = self.active.namesake(name)?.or_else(|| new.namesake(name).cloned()) {
            return Ok(Err(new.taken(&there)));
        }
        let (there, ever) = self.active.count_teammates()?;
        if there + new.names.len() >= TEAMMATES_MAX {
            return Ok(Err(format!("a team has at most {TEAMMATES_MAX} teammates: shut one down first")));
        }
        let (teammate, depth) = match self.hire_teammate(spawn) {
            Ok(hired) => hired,
            Err(words) => return Ok(Err(words)),
        };
        let teammate = self.apart(id, teammate, spawn.isolation.unwrap_or_default());
        if let Some(worker) = self.unmade(&spawn.name, &teammate.settings) {
            return Ok(Ok(Started::Later(Box::new(worker))));
        }
        let mut taken = self.active.colors()?;
        taken.extend(new.colors.iter().map(String::as_str));
        let painted = || next_color(ever + new.names.len(), &taken).to_owned();
        let who = Teammate {
            name: name.to_owned(),
            role: team_tools::title(&spawn.role),
            color: spawn.color.clone().unwrap_or_else(painted),
            claims: spawn.claims.unwrap_or_default(),
            plans: spawn.plans(),
            apart: spawn.isolation == Some(Isolation::Worktree),
        };
        let prompt =
            if who.plans { format!("{}\n\n{PLANS_FIRST}", spawn.prompt.trim_end()) } else { spawn.prompt.clone() };
        let text = self.told_first(&who, &prompt);
        let assignment = Assignment {
            reply_to: self.turn.stream.clone(),
            task: key.to_owned(),
            attempt: 1,
            title: team_tools::title(&spawn.prompt),
            depth,
            life: Lifetime::Teammate(Box::new(who)),
            ..Assignment::default()
        };
        let envelope = self.assigning(id, &assignment, &text, b"spawn");
        Ok(Ok(Started::Now(
            Box::new(Guest { id, teammate, assignment: assignment.into(), envelope }),
            started_words(name),
        )))
    }

    /// A member or type with a name that could be confused with this one. A teammate may have exactly the name of its
    /// own type.
    fn works_here(&self, name: &str, kind: &str) -> Option<String> {
        let team = self.active.team()?;
        let members = team.members.iter().map(|teammate| &*teammate.definition);
        let types = callable(&team, self.frame.definition());
        let mut others = members.chain(types).map(|who| &who.name).filter(|known| *known != kind || *known != name);
        others.find(|known| name::looks_like(known, name)).cloned()
    }

    fn told_first(&self, who: &Teammate, prompt: &str) -> String {
        let role = if who.role.is_empty() { String::new() } else { format!(" ({})", who.role) };
        let lead = self.turn.origin.name.to_string();
        fill(TEAMMATE, &[("name", &who.name), ("role", &role), ("lead", &lead), ("prompt", prompt)])
    }

    /// An agent of a type as a teammate of this lead, and its call depth.
    fn hire_teammate(&self, spawn: &Spawn) -> Result<(AgentSpec, u32), String> {
        let kind = spawn.kind();
        let teammate = self.active.callee(kind).ok_or_else(|| {
            let team = self.active.team();
            let types = team.iter().flat_map(|team| callable(team, self.frame.definition()));
            format!("there is no type `{kind}`{}", candidates(kind, types.map(|own| own.name.as_str())))
        })?;
        let (mut teammate, depth) = self.hire(teammate, Way::Words)?;
        if let Some(name) = spawn.model.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            let known = self.active.team().and_then(|team| team.models.get(name).cloned());
            let model = known.or_else(|| self.active.wished(name));
            teammate.settings.model = model.ok_or_else(|| format!("there is no model `{name}` here"))?;
        }
        let AgentSpec { definition, settings } = teammate;
        let own = Arc::unwrap_or_clone(definition);
        let plans = spawn.plans();
        let wanted = spawn.mode.filter(|mode| mode.is_stricter(own.mode.unwrap_or(settings.mode)));
        let mode = if plans { Some(Mode::Plan) } else { wanted.or(own.mode) };
        let definition =
            Definition { mode, ..ActiveSession::as_teammate(own, plans, spawn.claims.unwrap_or_default()) };
        let settings = Settings { mode: definition.mode_in(settings.mode), ..settings };
        Ok((AgentSpec { definition: definition.into(), settings }, depth))
    }

    /// Sends a message to a teammate, the lead or all; or continues an agent that was called before.
    pub(super) async fn message(
        &mut self,
        key: &str,
        message: &Message,
    ) -> Result<Option<ActionOutcome>, RuntimeError> {
        let readers = match self.readers(message)? {
            Ok(readers) => readers,
            Err(words) => return Ok(Some(ActionOutcome::wrong(words))),
        };
        match (&message.word, readers) {
            (ProtocolMessage::Text { text }, None) => {
                let to = message.to.join(", ");
                self.go_on_with(key, &to, text).await
            }
            (_, None) => {
                let words = self.nobody(&message.to.join(", "))?;
                Ok(Some(ActionOutcome::wrong(words)))
            }
            (word @ ProtocolMessage::TaskAssignment { .. }, Some(readers)) if self.turn.origin.lead => {
                match readers.as_slice() {
                    [one] => self.assign(key, one, word).await.map(|()| None),
                    _ => Ok(Some(ActionOutcome::wrong("a task is one teammate's: name one"))),
                }
            }
            (word, Some(readers)) => self.write_to(key, word, &readers).map(Some),
        }
    }

    /// The teammates that a message is for; `None`: it is for a called agent.
    fn readers(&self, message: &Message) -> Result<Result<Readers, String>, RuntimeError> {
        let mut readers: Vec<(String, AgentId)> = Vec::new();
        let lead = self.active.lead_name();
        for to in &message.to {
            match name::resolve(to, &lead) {
                Addressee::Everybody => {
                    readers.extend(self.active.teammates()?);
                    readers.push((lead.clone(), self.active.lead));
                }
                Addressee::Lead if self.turn.origin.lead => {
                    return Ok(Err("you are the lead: write to another agent".to_owned()));
                }
                Addressee::Lead => readers.push((lead.clone(), self.active.lead)),
                Addressee::Teammate(name) if name::is_user(name) => {
                    return Ok(Err(TO_USER.to_owned()));
                }
                Addressee::Teammate(name) => match self.active.teammate(name)? {
                    Some(TeammateRow { gone: Some(gone), .. }) => {
                        let why = if gone.reason.is_empty() { String::new() } else { format!(": {}", gone.reason) };
                        let words = format!("`{name}` has ended (by {}{why}); nothing was sent", gone.by);
                        return Ok(Err(words));
                    }
                    Some(TeammateRow { agent, .. }) => readers.push((name.to_owned(), agent)),
                    None if message.to.len() == 1 => return Ok(Ok(None)),
                    None => return Ok(Err(self.nobody(name)?)),
                },
            }
        }
        readers.retain(|(_, agent)| self.turn.origin.agent != Some(*agent));
        let mut seen = std::collections::HashSet::new();
        readers.retain(|(_, agent)| seen.insert(*agent));
        if readers.is_empty() {
            return Ok(Err("there are no other teammates".to_owned()));
        }
        Ok(Ok(Some(readers)))
    }

    fn nobody(&self, name: &str) -> Result<String, RuntimeError> {
        let there = self.active.teammates()?;
        if there.is_empty() {
            return Ok(format!("there is no teammate `{name}`, nor any other"));
        }
        Ok(format!("there is no teammate `{name}`{}", candidates(name, there.iter().map(|(name, _)| name.as_str()))))
    }

    /// Sends a message to present agents. The messages and the call's result go into one commit.
    fn write_to(
        &self,
        key: &str,
        word: &ProtocolMessage,
        readers: &[(String, AgentId)],
    ) -> Result<ActionOutcome, RuntimeError> {
        if let Some(why) = word.send_error(self.turn.origin.lead) {
            return Ok(ActionOutcome::wrong(why));
        }
        let (mut sends, mut events, mut told, mut acks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // An answer is one message to the agent that asked; the names that the model gives do not matter.
        let is_answer = matches!(word, ProtocolMessage::ShutdownResponse { .. });
        for (name, agent) in readers.iter().take(if is_answer { 1 } else { readers.len() }) {
            let to = session::agent_stream(*agent);
            if *agent == self.active.lead && !is_answer && !matches!(word, ProtocolMessage::Text { .. }) {
                continue;
            }
            let (body, answered) = match self.body(word, &to)? {
                Ok(written) => written,
                Err(words) => return Ok(ActionOutcome::wrong(words)),
            };
            // The requester may be a person.
            let (reply_to, to) = answered.map_or((None, to), |(envelope, asker)| (Some(envelope), asker));
            let is_users = to.starts_with("user/");
            let name = if is_answer { self.active.lead_name() } else { name.clone() };
            if !is_users && self.active.shared.journal.count_mail(&to)? >= MAIL_WAITING_MAX {
                return Ok(ActionOutcome::wrong(format!(
                    "`{name}` has {MAIL_WAITING_MAX} messages that it has not read: nothing was sent; wait until it reads them"
                )));
            }
            let envelope = Envelope::new(
                derived(&[self.turn.stream.as_bytes(), key.as_bytes(), to.as_bytes(), b"mail"]),
                &self.turn.stream,
                &to,
                word.kind(),
                body,
                now_ms(),
            )
            .answering(reply_to);
            if let ProtocolMessage::ShutdownRequest { deadline_s, .. } = word {
                let wait = deadline_s.unwrap_or(SHUTDOWN_S_DEFAULT).min(SHUTDOWN_S_MAX);
                let until_ms = envelope.sent_at_ms.saturating_add(i64::try_from(wait * 1_000).unwrap_or(i64::MAX));
                events.push(Event::Requested(Requested { request: envelope.id, kind: envelope.kind, to, until_ms }));
            }
            told.push(if is_users { "the user".to_owned() } else { format!("`{name}`") });
            match word {
                // An approval is answered by its end.
                ProtocolMessage::ShutdownResponse { approve: true, .. } => continue,
                // It goes on: the request is answered and does not wait for the end of its turn any more.
                ProtocolMessage::ShutdownResponse { .. } => acks.extend(reply_to),
                _ => {}
            }
            sends.push(envelope);
        }
        if told.is_empty() {
            return Ok(ActionOutcome::wrong("there is no agent to send this to"));
        }
        let words = format!("Sent to {}.{}", told.join(", "), afterwards(word, &told));
        Ok(ActionOutcome { events, extra: Extra { sends, acks, ..Extra::default() }, ..ActionOutcome::said(words) })
    }

    /// The body of a message, and the message that it answers, with its sender.
    fn body<'a>(
        &'a self,
        word: &'a ProtocolMessage,
        to: &str,
    ) -> Result<Result<(Body<'a>, Answered), String>, RuntimeError> {
        let (text, from) = (word.text(), &*self.turn.origin.name);
        let color = self.turn.teammate().map_or("", |teammate| teammate.color.as_str());
        let words = Body::Words(Words { text, from, color, ..Words::default() });
        let body = match word {
            // A task is sent with a change of the list.
            ProtocolMessage::Text { .. } | ProtocolMessage::TaskAssignment { .. } => words,
            ProtocolMessage::ShutdownRequest { .. } => {
                if self.turn.requests().is_asked(MessageKind::ShutdownRequest, to) {
                    return Ok(Err("it was asked already and has not answered yet: wait".to_owned()));
                }
                Body::Stop(Stop { text, from, ..Stop::default() })
            }
            ProtocolMessage::ShutdownResponse { request_id, .. } => {
                return Ok(match self.asked_to_end(request_id)? {
                    Some(request) => Ok((words, Some((request.id, request.from)))),
                    None => Err(format!("you have no shutdown request `{request_id}`")),
                });
            }
            ProtocolMessage::PlanApprovalResponse { request_id, approve, feedback } => {
                let row: Option<InboxRow> = rows::row(&self.active.shared.journal, rows::INBOX, to)?;
                let asked = row.filter(|row| row.question.to_string() == *request_id);
                let Some(asked) = asked else {
                    return Ok(Err(format!("it waits for no answer to `{request_id}`; nothing was sent")));
                };
                let by = DecidedBy::Lead(self.turn.origin.name.to_string());
                let answer = PermissionAnswer { comment: feedback.clone(), ..PermissionAnswer::new(*approve, by) };
                let (question, answer) = (Some(asked.question), Some(answer));
                Body::Answer(Box::new(QuestionAnswer { text, from, question, answer, ..QuestionAnswer::default() }))
            }
            ProtocolMessage::ModeSetRequest { mode } => Body::Mode(SetMode { mode: Some(*mode), from }),
        };
        Ok(Ok((body, None)))
    }

    /// Messages since the beginning of the turn, acknowledged with the result of the call that asks.
    pub(super) fn inbox(&mut self) -> Result<ActionOutcome, RuntimeError> {
        let mut told = Vec::new();
        let mut acks = Vec::new();
        let mail = self.active.mail(&self.turn.stream, true)?;
        // Messages that are not shown here are read again at once.
        self.active.ring(&self.turn.stream);
        let mut bytes = 0_usize;
        for envelope in mail {
            let is_end = envelope.kind == MessageKind::ShutdownRequest;
            let is_told = self.turn.receive(&envelope, self.turn.origin.lead) == MailAction::Tell;
            if !is_end && (!is_told || envelope.kind == MessageKind::UserInput) {
                continue;
            }
            let words = self.told_as(&envelope);
            bytes = bytes.saturating_add(words.len());
            // A message that is not shown is not acknowledged: it waits for the next call or turn.
            if bytes > MAIL_TOLD_BYTES_MAX && !told.is_empty() {
                break;
            }
            told.push(words);
            acks.extend((!is_end).then_some(envelope.id));
        }
        if told.is_empty() {
            return Ok(ActionOutcome::said("There are no new messages. Later messages reach you without a call."));
        }
        let words = told.join("\n\n");
        Ok(ActionOutcome { extra: Extra::acks(acks), ..ActionOutcome::said(words) })
    }
}

/// The task that a teammate was started with, in the author's words: its first message without the standard text.
pub(crate) fn asked_of(told: &str) -> &str {
    let head = TEAMMATE.split("{prompt}").next().and_then(|head| head.rsplit('}').next());
    let prompt = head.and_then(|head| told.split_once(head)).map_or(told, |(_, prompt)| prompt).trim_end();
    prompt.strip_suffix(PLANS_FIRST).unwrap_or(prompt).trim_end()
}

fn started_words(name: &str) -> String {
    format!(
        "`{name}` has begun. When it reports, your next turn begins; until then there is nothing to tell the user about it."
    )
}

pub(super) fn row_of(guest: &Guest) -> Option<(String, TeammateRow)> {
    let teammate = guest.assignment.life.teammate()?;
    Some((
        teammate.name.clone(),
        TeammateRow { agent: guest.id, color: teammate.color.clone(), claims: teammate.claims, gone: None },
    ))
}

/// The consequence of a message, for its sender.
fn afterwards(word: &ProtocolMessage, readers: &[String]) -> String {
    let words = match word {
        ProtocolMessage::Text { .. } | ProtocolMessage::TaskAssignment { .. } => " Answers come by themselves.",
        ProtocolMessage::ShutdownRequest { .. } => {
            let ends = |name: &String| format!(" {name} ends as soon as it has no work.");
            return readers.iter().map(ends).collect::<String>() + " If it refuses, its reason is sent to you.";
        }
        ProtocolMessage::ShutdownResponse { approve: true, .. } => " You end with this turn.",
        ProtocolMessage::ShutdownResponse { approve: false, .. } => " You go on.",
        ProtocolMessage::PlanApprovalResponse { .. } => " It goes on accordingly.",
        ProtocolMessage::ModeSetRequest { .. } => " It is never freer than this session is.",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_request_names_each_teammate_that_will_end() {
        let word = ProtocolMessage::ShutdownRequest { reason: "done".to_owned(), deadline_s: None };
        for (readers, want) in [
            (vec!["`ann`"], " `ann` ends as soon as it has no work. If it"),
            (
                vec!["`ann`", "`bob`"],
                " `ann` ends as soon as it has no work. `bob` ends as soon as it has no work. If it",
            ),
        ] {
            let readers: Vec<String> = readers.into_iter().map(str::to_owned).collect();
            assert!(afterwards(&word, &readers).starts_with(want), "{readers:?}");
        }
    }

    #[test]
    fn the_purpose_of_a_teammate_is_in_the_words_of_its_caller() {
        for given in ["Count the files.", "Plan.\n\nThen build."] {
            for prompt in [given.to_owned(), format!("{given}\n\n{PLANS_FIRST}")] {
                let named = [("name", "ann"), ("role", " (worker)"), ("lead", "max"), ("prompt", &prompt)];
                assert_eq!(asked_of(&fill(TEAMMATE, &named)), given);
            }
        }
    }
}
