//! Obeys the decisions of `core::turn` about an agent's messages, and begins turns with them.
//!
//! A message that is neither given to the model nor acted on stays in the mailbox. The whole mailbox is read whenever the agent is idle;
//! during a turn only new messages are.

use std::borrow::Cow;
use std::sync::Arc;

use max_team_core::agent::Settings;
use max_team_core::body::{AgentQuestion, Body, QuestionAnswer, TaskResult};
use max_team_core::chat::Part;
use max_team_core::event::{Event, InterruptedBy, LlmOutcome, QuestionAnswered, QuestionAsked, ToolOutcome};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, TurnId};
use max_team_core::limits::{ECHOES_MAX, HOPS_MAX, MAIL_TOLD_BYTES_MAX, UNASKED_TURNS_MAX};
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::policy::{Action, ActionKind, DecidedBy};
use max_team_core::rewind::RewindNote;
use max_team_core::teammate::{report, shutdown};
use max_team_core::turn::{MailAction, ToolCall, TurnEffect, TurnInput, is_note};

use super::{Agent, Extra, MailScope};
use crate::error::RuntimeError;
use crate::handle::Origin;
use crate::plan::cap;
use crate::session;
use crate::shared::new_id;
use crate::skills::{self, SkillContext};
use crate::team_tools::{self, Act};
use crate::user_mail::is_go_on;
use crate::worktree;

/// Prompt for the last turn that a lead has without a message of the user.
const LAST_UNASKED: &str = include_str!("../../../../prompts/last_unasked.md");

/// The id of the message with a turn's result: there is one, however often it is written.
pub(crate) fn result_id(stream: &str, turn: TurnId) -> EnvelopeId {
    derived(&[stream.as_bytes(), turn.to_string().as_bytes(), b"result"])
}

/// The result of a turn as the answer to the message that began the turn.
pub(crate) fn answering(envelope: Envelope, asked: Option<EnvelopeId>) -> Envelope {
    if envelope.kind == MessageKind::TaskResult { envelope.answering(asked) } else { envelope }
}

impl Agent {
    /// Reads the mailbox and obeys the decision about each message.
    pub(super) async fn take_mail(&mut self, scope: MailScope) -> Result<(), RuntimeError> {
        if self.reviewed {
            return Ok(());
        }
        let was_busy = self.turn.is_busy();
        let Some(mut mail) = self.mail_in_hand(scope)? else { return Ok(()) };
        self.stop_first(&mut mail).await?;
        if self.turn.teammate().is_some() && mail.iter().any(|envelope| envelope.cause.is_some()) {
            self.know_stop()?;
        }
        let (mut open, mut ends, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for envelope in mail {
            match self.turn.receive(&envelope, self.turn.origin.lead) {
                action @ (MailAction::Begin | MailAction::Join | MailAction::Note) => open.push((action, envelope)),
                MailAction::Respond => {
                    // A refusal counts at once, and is shown to the model when there is a turn for it.
                    let is_news = self.take_response(&envelope).await?;
                    open.extend((is_news && !self.turn.is_busy()).then_some((MailAction::Join, envelope)));
                }
                MailAction::End => {
                    if self.turn.is_busy() && envelope.kind == MessageKind::ShutdownRequest {
                        self.put_aside(&envelope);
                    }
                    ends.push(envelope);
                }
                MailAction::Record => read.push(envelope.id),
                action => self.carry_out(action, &envelope).await?,
            }
        }
        self.commit(Vec::new(), Extra::acks(read)).await?;
        if self.reviewed {
            return Ok(());
        }
        // If a message has ended the turn, all are read anew, in order. An agent that is told to end begins nothing.
        let is_ending = ends.iter().any(|envelope| envelope.kind == MessageKind::Shutdown);
        if !was_busy && !is_ending {
            let first = self.turn.begins_with(open, self.turn.origin.lead, || self.active.awaits_team());
            self.begin_with(first).await?;
        }
        self.part(ends).await
    }

    /// The messages to handle. `None` if only further reports came for a lead that waits for its team, so that each new
    /// report does not read all waiting ones again.
    fn mail_in_hand(&mut self, scope: MailScope) -> Result<Option<Vec<Envelope>>, RuntimeError> {
        let all = scope == MailScope::All;
        let is_idle = !self.turn.is_busy();
        if !self.turn.origin.lead || all || !is_idle {
            return self.active.mail(&self.turn.stream, all || is_idle).map(Some);
        }
        let mut new = self.active.mail(&self.turn.stream, false)?;
        if !new.is_empty() && new.iter().all(report::can_wait) && self.active.awaits_team() {
            return Ok(None);
        }
        let mut mail = self.active.mail(&self.turn.stream, true)?;
        new.retain(|envelope| mail.iter().all(|known| known.id != envelope.id));
        mail.extend(new);
        Ok(Some(mail))
    }

    /// Does what a message asks for that needs no turn of its own.
    async fn carry_out(&mut self, action: MailAction, envelope: &Envelope) -> Result<(), RuntimeError> {
        match action {
            MailAction::Tell if envelope.kind == MessageKind::UserInput => self.steer(envelope).await,
            MailAction::Tell => self.offer(envelope),
            MailAction::EndReview => self.ask_later().await?,
            MailAction::Result => self.take_result(envelope).await?,
            MailAction::Answer => self.take_answer(envelope).await?,
            MailAction::AskUser => self.ask_user(envelope).await?,
            MailAction::SetMode => self.take_mode(envelope).await?,
            MailAction::Grant => self.take_grants(envelope).await?,
            MailAction::Recruit => self.recruit(envelope).await?,
            MailAction::Stop => {
                let by = stopper(envelope);
                self.step(TurnInput::Interrupt { by }, Extra::acks(vec![envelope.id])).await?;
            }
            MailAction::Return => self.send_back(envelope).await?,
            MailAction::Refuse(why) => self.refuse(envelope, why).await?,
            // `Wait` stays in the mailbox; `take_mail` has dealt with the others.
            _ => {}
        }
        Ok(())
    }

    /// Begins a turn about these messages, or about as many as one turn is told.
    async fn begin_with(&mut self, envelopes: Vec<Envelope>) -> Result<(), RuntimeError> {
        let mut bytes = 0_usize;
        let fits = |envelope: &Envelope| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(envelope.text().len());
            is_first || bytes <= MAIL_TOLD_BYTES_MAX
        };
        let told: Vec<Envelope> = envelopes.into_iter().take_while(fits).collect();
        // All teammates that were idle have reported since, or work again.
        if told.iter().all(report::is_idle) && self.silent_teammates(&told)?.is_none() {
            let acks = told.iter().map(|envelope| envelope.id).collect();
            return self.commit(Vec::new(), Extra::acks(acks)).await;
        }
        let (_, is_quiet) = self.occasion(&told);
        if is_quiet
            && self.turn.teammate_only_turns() >= self.echoes_max()
            && (self.turn.origin.lead || hops(&told) > HOPS_MAX)
        {
            return self.rest_from_echoes().await;
        }
        self.begin(&told).await
    }

    /// How many turns in a row it may begin without a message of its lead or the user.
    fn echoes_max(&self) -> u32 {
        if !self.turn.origin.lead {
            return ECHOES_MAX;
        }
        let ever = self.active.count_teammates().map_or(0, |(_, ever)| ever);
        UNASKED_TURNS_MAX.saturating_add(u32::try_from(ever).unwrap_or(u32::MAX).saturating_mul(2))
    }

    /// Teammates only answer each other: this one leaves its mail unread, and its lead is told. A lead has said so
    /// itself, in its last turn.
    async fn rest_from_echoes(&mut self) -> Result<(), RuntimeError> {
        let Some((engaged, teammate)) = self.turn.first_assignment().zip(self.turn.teammate()) else { return Ok(()) };
        let text = format!(
            "`{}` has worked for colleagues {} times in a row without a word from you or the user, and they only answer each \
             other. It leaves its mail unread until one of you writes to it.",
            teammate.name,
            self.turn.teammate_only_turns()
        );
        let envelope = Envelope::new(
            derived(&[self.turn.stream.as_bytes(), &self.turn.head.to_be_bytes(), b"echoes"]),
            &self.turn.stream,
            &engaged.reply_to,
            MessageKind::TaskResult,
            Body::Result(Box::new(TaskResult {
                teammate: Some(&teammate.name),
                from: &teammate.name,
                color: &teammate.color,
                reason: "blocked",
                text: &text,
                ..TaskResult::default()
            })),
            crate::shared::now_ms(),
        );
        // Reported once, however many messages come.
        if self.active.shared.journal.has_mail(envelope.id)? {
            return Ok(());
        }
        self.commit(Vec::new(), Extra::send(envelope)).await
    }

    /// The input that begins a turn.
    pub(super) fn beginning(&mut self, messages: &[Envelope]) -> TurnInput {
        self.running.begin_turn();
        self.frame.refresh(&self.active.shared);
        if self.frame.follow_sources(&self.active.shared) {
            self.frame.reveal_from(self.turn.history());
        }
        self.frame.may_call(self.active.callees(self.frame.definition()));
        // A rewind is not part of the conversation, and the idle teammates are told of when the turn begins.
        let rewound = messages.iter().filter_map(told_of).collect();
        let is_spoken = |message: &&Envelope| message.kind != MessageKind::FilesRewound && !report::is_idle(message);
        let spoken: Vec<&Envelope> = messages.iter().filter(is_spoken).collect();
        let (stopped, note) = self.stop_note(&spoken);
        let told = spoken.iter().filter(|message| !stopped.contains(&message.id)).map(|message| self.told_as(message));
        let words: Vec<String> = told.collect();
        let first = messages.first();
        // Only messages of the user can ask for skills.
        let asks = first.filter(|first| self.turn.origin.lead && first.kind == MessageKind::UserInput);
        let said = messages.iter().filter(|message| message.kind == MessageKind::UserInput);
        let said: Vec<String> = said.map(|message| message.text().to_owned()).collect();
        let skills = asks.map(|_| self.skills_for(&said));
        let mut words = words.join("\n\n");
        if self.turn.history().is_empty() {
            let fitting = self.frame.fitting(&words);
            self.frame.reveal(&fitting);
        }
        // Messages of the team are no search text for the memory.
        let asked = first.is_some_and(|first| first.kind == MessageKind::UserInput);
        let recall = self.recall(if asked { &words } else { "" });
        let given =
            first.filter(|first| first.kind == MessageKind::TaskAssign).and_then(|first| first.task().assignment);
        let given = given.map(Cow::into_owned);
        let (assignment, quiet) = match given {
            Some(given) => (Some(given), false),
            None => self.occasion(messages),
        };
        let is_last =
            self.turn.origin.lead && quiet && self.turn.teammate_only_turns().saturating_add(1) == self.echoes_max();
        for own in note.into_iter().chain(is_last.then(|| LAST_UNASKED.trim_end().to_owned())) {
            words.push_str(if words.is_empty() { "" } else { "\n\n" });
            words.push_str(&own);
        }
        let mut input: Vec<Part> = Some(words).filter(|words| !words.is_empty()).map(Part::text).into_iter().collect();
        input.extend(skills.filter(|text| !text.is_empty()).map(Part::text));
        TurnInput::Begin {
            turn: self.active.fresh_turn(),
            envelope: first.map_or_else(|| EnvelopeId::new(new_id()), |first| first.id),
            input,
            assignment: assignment.map(Arc::new),
            recall,
            rewound,
            envelopes: messages.iter().skip(1).map(|message| message.id).collect(),
            quiet,
            hops: if quiet && !self.turn.origin.lead { hops(messages) } else { 0 },
        }
    }

    /// Like `beginning`, for work that came by no message and whose result is awaited; `title` describes it in a few
    /// words.
    pub(super) fn beginning_about(&mut self, words: String, title: &str) -> TurnInput {
        let mut begin = self.beginning(&[]);
        if let TurnInput::Begin { input, quiet, assignment, .. } = &mut begin {
            (*input, *quiet) = (vec![Part::text(words)], false);
            if let Some(given) = assignment {
                Arc::make_mut(given).title = team_tools::title(title);
            }
        }
        begin
    }

    /// The assignment of a teammate's turn about its mail, and whether its result is not awaited. For a lead, only the
    /// user awaits it.
    fn occasion(&self, envelopes: &[Envelope]) -> (Option<Assignment>, bool) {
        let is_asked = || envelopes.iter().any(|envelope| envelope.kind == MessageKind::UserInput);
        let Some(engaged) = self.turn.first_assignment() else {
            return (
                self.spoken_to(envelopes).or_else(|| self.told_late(envelopes)),
                self.turn.origin.lead && !is_asked(),
            );
        };
        let has_written = |who: &str| envelopes.iter().any(|envelope| envelope.from == who);
        let user = envelopes
            .iter()
            .find(|envelope| envelope.kind == MessageKind::UserInput)
            .map(|envelope| envelope.from.clone());
        let is_quiet = user.is_none() && !has_written(&engaged.reply_to);
        let reply_to = user.filter(|_| !has_written(&engaged.reply_to)).unwrap_or_else(|| engaged.reply_to.clone());
        let title = title_of(envelopes).unwrap_or_else(|| engaged.title.clone());
        // More than one attempt means that it had finished its first task.
        (Some(Assignment { reply_to, title, attempt: engaged.attempt + 1, ..engaged.clone() }), is_quiet)
    }

    /// A user continues with an agent that another agent had called: the answer goes to the user.
    fn spoken_to(&self, envelopes: &[Envelope]) -> Option<Assignment> {
        let envelope = envelopes
            .iter()
            .find(|envelope| envelope.kind == MessageKind::UserInput)
            .filter(|_| !self.turn.origin.lead)?;
        let given = self.active.row_of(self.turn.origin.agent?)?.assignment?;
        let (reply_to, title) = (envelope.from.clone(), team_tools::title(envelope.text()));
        // A member of a plan goes on with its task, outside of the plan's approval.
        let (plan, corrects, attempt) = (None, given.plan.or(given.corrects), given.attempt + 1);
        Some(Assignment { reply_to, title, plan, corrects, attempt, cache: None, ..Arc::unwrap_or_clone(given) })
    }

    /// The texts of skills that the user asks for by name, to be added behind the message.
    fn skills_for(&self, words: &[String]) -> String {
        let session = self.active.session.to_string();
        let asked = SkillContext { root: self.frame.root(), session: &session };
        let catalogue = self.active.shared.skills.of(asked.root);
        let expanded = skills::expand(words, &catalogue, &asked);
        self.frame.wish(expanded.wish);
        expanded.text
    }

    /// What a lead that reads reports is told of the teammates that rest without one; `None` if there are none.
    fn silent_teammates(&self, envelopes: &[Envelope]) -> Result<Option<Part>, RuntimeError> {
        if !self.turn.origin.lead || !envelopes.iter().any(report::can_wait) {
            return Ok(None);
        }
        let mut names = Vec::new();
        for (name, agent) in self.active.teammates()? {
            let address = session::agent_stream(agent);
            let has_written = envelopes.iter().any(|envelope| envelope.from == address && !report::is_idle(envelope));
            if !has_written
                && !self.active.is_working(&address)
                && self.active.shared.fold_agent(agent)?.0.rests_unreported()
            {
                names.push(format!("`{name}`"));
            }
        }
        let is = if names.len() == 1 { "it waits for a message and works" } else { "they wait for messages and work" };
        let words = format!("No report from {}: {is} on nothing.", names.join(", "));
        Ok((!names.is_empty()).then(|| Part::text(words)))
    }

    async fn begin(&mut self, envelopes: &[Envelope]) -> Result<(), RuntimeError> {
        if envelopes.is_empty() {
            return Ok(());
        }
        self.redefine().await?;
        self.raise_budget(envelopes).await?;
        // Messages set aside for a turn whose end this process did not see are among these, or are read again.
        self.steer_no_more();
        let files = self.read_mentions(envelopes).await;
        self.prepare_sources().await;
        let mut begin = self.beginning(envelopes);
        let news = self.plan_news(&begin)?.or(self.silent_teammates(envelopes)?);
        if let TurnInput::Begin { input, .. } = &mut begin {
            input.extend(files.into_iter().chain(news));
        }
        self.leave_plan(&begin).await?;
        let acks = envelopes.iter().map(|envelope| envelope.id).collect();
        let sends = self.users_words_of(envelopes, crate::shared::now_ms());
        self.step(begin, Extra { sends, ..Extra::acks(acks) }).await?;
        self.know_task();
        self.running.begun = self.turn.assignment().cloned();
        Ok(())
    }

    /// A repeated task may come with a larger budget.
    async fn raise_budget(&mut self, envelopes: &[Envelope]) -> Result<(), RuntimeError> {
        let Some((first, known)) = envelopes.first().zip(self.turn.settings()) else { return Ok(()) };
        let task = first.task();
        let settings = Settings {
            budget_nano: task.budget_nano.or(known.budget_nano),
            budget_tokens: task.budget_tokens.or(known.budget_tokens),
            ..Settings::clone(known)
        };
        if settings == **known {
            return Ok(());
        }
        let budget = cap(&settings);
        self.configure(settings, None).await?;
        let plan = task.assignment.and_then(|given| given.plan);
        if let Some(agent) = self.turn.origin.agent {
            self.money.pool = self.active.pool_of(agent, budget, self.bounds.caller.as_deref(), plan)?;
        }
        Ok(())
    }

    /// The result of a call that waited for it.
    async fn take_result(&mut self, envelope: &Envelope) -> Result<(), RuntimeError> {
        let asked = envelope.reply_to.and_then(|asked| self.asked_with(asked));
        let key = asked.unwrap_or_else(|| envelope.result().work.call.to_owned());
        let (mut words, is_error) = self.told(&key, envelope);
        let ms = envelope.result().work.ms.unwrap_or_default();
        // Looking at a copy takes its time.
        self.tell().await;
        let changed = match self.whose(envelope) {
            Some(child) => {
                self.active.vacated(&child.to_string()).await;
                worktree::changed(&self.active.shared, child).await
            }
            None => None,
        };
        // Only one question is open at a time: this one waits until the other is answered.
        let is_asked = !is_error && changed.as_ref().is_some_and(|changed| changed.is_open);
        if is_asked && self.turn.is_asking() {
            return Ok(());
        }
        Box::pin(self.note_error(envelope)).await?;
        self.running.end_call(&key);
        let ack = Extra::acks(vec![envelope.id]);
        if let Some(changed) = changed {
            if is_asked {
                let action = changed.question(words);
                return self.step(TurnInput::Unanswered { key, action }, ack).await;
            }
            words = format!("{words}\n\n{}", changed.news);
        }
        let content = vec![Part::text(words)];
        let ended = TurnInput::ToolEnded { key, content, is_error, ending: ToolOutcome::Ran, fatal: None, ms };
        self.step(ended, ack).await
    }

    /// The agent that has answered with this message. Not the agent that the call would start: `send_message`
    /// continues one that another call started.
    pub(super) fn whose(&self, envelope: &Envelope) -> Option<AgentId> {
        envelope.from.strip_prefix("agent/").filter(|_| envelope.kind == MessageKind::TaskResult)?.parse().ok()
    }

    /// The team could not answer a question of this agent: the user is asked instead.
    async fn ask_user(&mut self, envelope: &Envelope) -> Result<(), RuntimeError> {
        let key = envelope.reply_to.and_then(|asked| self.asked_with(asked)).unwrap_or_default();
        let question = self.turn.call(&key).and_then(clarified).unwrap_or_default();
        let action = Action { kind: ActionKind::Ask, preview: question.clone(), ..Action::read(question) };
        self.step(TurnInput::Unanswered { key, action }, Extra::acks(vec![envelope.id])).await
    }

    /// The message that tells a plan that this turn waits (for a person, or for a model server that cannot be reached), or
    /// that it goes on.
    pub(super) fn held_envelope(&self, event: &Event, at_ms: i64) -> Option<Envelope> {
        let is_teammate = self.turn.teammate().is_some();
        let assignment = self.turn.first_assignment().or(self.turn.assignment());
        let assignment = assignment.filter(|assignment| is_teammate || assignment.plan.is_some())?;
        let given = || Some(Cow::Borrowed(assignment));
        let answer = |question| QuestionAnswer { assignment: given(), question, ..QuestionAnswer::default() };
        let goes_on = |question| Body::Answer(Box::new(answer(question)));
        let (kind, about, what, body) = match event {
            Event::QuestionAsked(asked) if is_teammate => return Some(self.bubbled(assignment, asked, at_ms)),
            Event::QuestionAsked(QuestionAsked { question, .. }) => {
                let asked =
                    AgentQuestion { assignment: given(), question: Some(*question), ..AgentQuestion::default() };
                (MessageKind::PermissionRequest, question.to_string(), "asks", Body::Question(asked))
            }
            // Only for a plan, which waits for it; a lead is not told that a teammate goes on.
            Event::QuestionAnswered(QuestionAnswered { question, .. }) if !is_teammate => {
                (MessageKind::PermissionResponse, question.to_string(), "goes on", goes_on(Some(*question)))
            }
            Event::LlmEnded(ended) if !is_teammate => {
                let about = format!("call {}", ended.call);
                match (&ended.outcome, self.turn.is_parked()) {
                    (LlmOutcome::Failed { parked: true, .. }, true) => return None,
                    (LlmOutcome::Failed { parked: true, detail, .. }, false) => {
                        let outage = Some(detail.as_str());
                        let asked = AgentQuestion { assignment: given(), outage, ..AgentQuestion::default() };
                        (MessageKind::PermissionRequest, about, "parks", Body::Question(asked))
                    }
                    (_, true) => (MessageKind::PermissionResponse, about, "goes on", goes_on(None)),
                    (_, false) => return None,
                }
            }
            _ => return None,
        };
        Some(Envelope::new(
            derived(&[self.turn.stream.as_bytes(), about.as_bytes(), what.as_bytes()]),
            &self.turn.stream,
            &assignment.reply_to,
            kind,
            body,
            at_ms,
        ))
    }

    /// The message to the lead about a teammate's question: a plan is put to the lead for approval, all else is for a
    /// person.
    fn bubbled(&self, given: &Assignment, asked: &QuestionAsked, at_ms: i64) -> Envelope {
        let kind = match asked.action.kind {
            ActionKind::Propose => MessageKind::PlanApprovalRequest,
            ActionKind::Fetch => MessageKind::SandboxPermissionRequest,
            _ => MessageKind::PermissionRequest,
        };
        let (from, tool, target) = (&*self.turn.origin.name, asked.tool.as_str(), asked.action.target.as_str());
        let mut body = AgentQuestion { from, tool, target, ..AgentQuestion::default() };
        if kind == MessageKind::PlanApprovalRequest {
            body.question = Some(asked.question);
            body.text = &asked.action.preview;
        }
        Envelope::new(
            derived(&[self.turn.stream.as_bytes(), asked.question.to_string().as_bytes(), b"asks"]),
            &self.turn.stream,
            &given.reply_to,
            kind,
            Body::Question(body),
            at_ms,
        )
    }

    /// The call that asked with this message.
    fn asked_with(&self, envelope: EnvelopeId) -> Option<String> {
        self.turn.pending().into_iter().find_map(|effect| match effect {
            TurnEffect::RunTool { key, .. } => {
                (derived(&[self.turn.stream.as_bytes(), key.as_bytes(), b"clarify"]) == envelope).then_some(key)
            }
            _ => None,
        })
    }

    /// Sets the task or call that frontends show with this agent's events.
    pub(super) fn know_task(&mut self) {
        let given = self.turn.assignment();
        let task = given.and_then(|given| Some((given.plan?, given.task.clone())));
        let caller =
            |given: &Assignment| Some((given.reply_to.strip_prefix("agent/")?.parse().ok()?, given.task.clone()));
        let call = given.and_then(caller);
        if self.turn.origin.task != task || self.turn.origin.call != call {
            self.turn.origin = Arc::new(Origin { task, call, ..(*self.turn.origin).clone() });
        }
    }
}

/// What messages are about, in a few words: the first text that a person or an agent wrote.
fn title_of(envelopes: &[Envelope]) -> Option<String> {
    let mut words = envelopes.iter().map(|envelope| envelope.text().to_owned());
    words.find(|words| !words.trim().is_empty() && !is_go_on(words)).map(|words| team_tools::title(&words))
}

/// How many messages between teammates in a row led here, by the shortest way. Messages that are only added do not
/// count.
fn hops(envelopes: &[Envelope]) -> u32 {
    envelopes
        .iter()
        .filter(|envelope| !is_note(envelope, false))
        .map(|envelope| envelope.hops)
        .min()
        .unwrap_or_default()
}

/// The question that a call of `need_clarify` asks.
fn clarified(call: &ToolCall) -> Option<String> {
    match Act::read(&call.tool, (*call.input).clone()) {
        Ok(Act::Clarify { question }) => Some(question),
        _ => None,
    }
}

/// The note about rewound files in a message.
fn told_of(envelope: &Envelope) -> Option<RewindNote> {
    match Body::read(envelope) {
        Body::Rewound(rewound) => Some(rewound.told).filter(|told| !told.text.is_empty()),
        _ => None,
    }
}

/// An id that follows from the message's content: sending it twice changes nothing.
pub(crate) fn derived(fields: &[&[u8]]) -> EnvelopeId {
    EnvelopeId::new(Hash::of_fields(fields).uuid())
}

/// Who stops something by a message. A message from a person counts as that person's; others name the stopper.
pub(super) fn stopper(envelope: &Envelope) -> InterruptedBy {
    let name = envelope.by().to_owned();
    let said = envelope.stop().who;
    let who = if envelope.from.starts_with("user/") { Some(DecidedBy::Person(name.clone())) } else { said };
    InterruptedBy { name, who, ends: shutdown::is_end(envelope), held: None }
}
