//! Obeys the decisions of `core::turn` about an agent's messages, and begins turns with them.
//!
//! A message that is neither told nor carried out stays in the mailbox. The whole mailbox is read whenever the agent is idle;
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

use super::{Agent, Extra};
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
pub(crate) fn answering(letter: Envelope, asked: Option<EnvelopeId>) -> Envelope {
    if letter.kind == MessageKind::TaskResult { letter.answering(asked) } else { letter }
}

impl Agent {
    /// Reads the mailbox and obeys the decision about each message. During a turn it reads new messages only, unless `all`.
    pub(super) async fn take_mail(&mut self, all: bool) -> Result<(), RuntimeError> {
        if self.reviewed {
            return Ok(());
        }
        let was_busy = self.turn.is_busy();
        let Some(mut mail) = self.mail_in_hand(all)? else { return Ok(()) };
        self.stop_first(&mut mail).await?;
        if self.turn.mate().is_some() && mail.iter().any(|letter| letter.cause.is_some()) {
            self.know_stop()?;
        }
        let (mut open, mut ends, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for letter in mail {
            match self.turn.receive(&letter, self.turn.origin.lead) {
                receipt @ (MailAction::Begin | MailAction::Join | MailAction::Note) => open.push((receipt, letter)),
                MailAction::Respond => {
                    // A refusal counts at once, and is shown to the model when there is a turn for it.
                    let is_news = self.take_response(&letter).await?;
                    open.extend((is_news && !self.turn.is_busy()).then_some((MailAction::Join, letter)));
                }
                MailAction::End => {
                    if self.turn.is_busy() && letter.kind == MessageKind::ShutdownRequest {
                        self.put_aside(&letter);
                    }
                    ends.push(letter);
                }
                MailAction::Record => read.push(letter.id),
                receipt => self.carry_out(receipt, &letter).await?,
            }
        }
        self.commit(Vec::new(), Extra::acks(read)).await?;
        if self.reviewed {
            return Ok(());
        }
        // If a message has ended the turn, all are read anew, in order. An agent that is told to end begins nothing.
        let is_ending = ends.iter().any(|letter| letter.kind == MessageKind::Shutdown);
        if !was_busy && !is_ending {
            let first = self.turn.begins_with(open, self.turn.origin.lead, || self.floor.awaits_team());
            self.begin_with(first).await?;
        }
        self.part(ends).await
    }

    /// The messages to handle. `None` if only further reports came for a lead that waits for its team, so that each new
    /// report does not read all waiting ones again.
    fn mail_in_hand(&mut self, all: bool) -> Result<Option<Vec<Envelope>>, RuntimeError> {
        let is_idle = !self.turn.is_busy();
        if !self.turn.origin.lead || all || !is_idle {
            return self.floor.mail(&self.turn.stream, all || is_idle).map(Some);
        }
        let mut new = self.floor.mail(&self.turn.stream, false)?;
        if !new.is_empty() && new.iter().all(report::can_wait) && self.floor.awaits_team() {
            return Ok(None);
        }
        let mut mail = self.floor.mail(&self.turn.stream, true)?;
        new.retain(|letter| mail.iter().all(|known| known.id != letter.id));
        mail.extend(new);
        Ok(Some(mail))
    }

    /// Does what a message asks for that needs no turn of its own.
    async fn carry_out(&mut self, receipt: MailAction, letter: &Envelope) -> Result<(), RuntimeError> {
        match receipt {
            MailAction::Tell if letter.kind == MessageKind::UserInput => self.steer(letter).await,
            MailAction::Tell => self.offer(letter),
            MailAction::EndReview => self.ask_later().await?,
            MailAction::Result => self.take_result(letter).await?,
            MailAction::Answer => self.take_answer(letter).await?,
            MailAction::AskUser => self.ask_user(letter).await?,
            MailAction::SetMode => self.take_mode(letter).await?,
            MailAction::Grant => self.take_grants(letter).await?,
            MailAction::Recruit => self.recruit(letter).await?,
            MailAction::Stop => {
                let by = stopper(letter);
                self.step(TurnInput::Interrupt { by }, Extra::acks(vec![letter.id])).await?;
            }
            MailAction::Return => self.send_back(letter).await?,
            MailAction::Refuse(why) => self.refuse(letter, why).await?,
            // `Wait` stays in the mailbox; `take_mail` has dealt with the others.
            _ => {}
        }
        Ok(())
    }

    /// Begins a turn about these messages, or about as many as one turn is told.
    async fn begin_with(&mut self, letters: Vec<Envelope>) -> Result<(), RuntimeError> {
        let mut bytes = 0_usize;
        let fits = |letter: &Envelope| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(letter.text().len());
            is_first || bytes <= MAIL_TOLD_BYTES_MAX
        };
        let told: Vec<Envelope> = letters.into_iter().take_while(fits).collect();
        // All teammates that were idle have reported since, or work again.
        if told.iter().all(report::is_idle) && self.silent_teammates(&told)?.is_none() {
            let acks = told.iter().map(|letter| letter.id).collect();
            return self.commit(Vec::new(), Extra::acks(acks)).await;
        }
        let (_, is_quiet) = self.occasion(&told);
        if is_quiet && self.turn.echoes() >= self.echoes_max() && (self.turn.origin.lead || hops(&told) > HOPS_MAX) {
            return self.rest_from_echoes().await;
        }
        self.begin(&told).await
    }

    /// How many turns in a row it may begin without a message of its lead or the user.
    fn echoes_max(&self) -> u32 {
        if !self.turn.origin.lead {
            return ECHOES_MAX;
        }
        let ever = self.floor.count_mates().map_or(0, |(_, ever)| ever);
        UNASKED_TURNS_MAX.saturating_add(u32::try_from(ever).unwrap_or(u32::MAX).saturating_mul(2))
    }

    /// Teammates only answer each other: this one leaves its mail unread, and its lead is told. A lead has said so
    /// itself, in its last turn.
    async fn rest_from_echoes(&mut self) -> Result<(), RuntimeError> {
        let Some((engaged, mate)) = self.turn.engaged().zip(self.turn.mate()) else { return Ok(()) };
        let text = format!(
            "`{}` has worked for colleagues {} times in a row without a word from you or the user, and they only answer each \
             other. It leaves its mail unread until one of you writes to it.",
            mate.name,
            self.turn.echoes()
        );
        let letter = Envelope::new(
            derived(&[self.turn.stream.as_bytes(), &self.turn.head.to_be_bytes(), b"echoes"]),
            &self.turn.stream,
            &engaged.reply_to,
            MessageKind::TaskResult,
            Body::Result(Box::new(TaskResult {
                mate: Some(&mate.name),
                from: &mate.name,
                color: &mate.color,
                reason: "blocked",
                text: &text,
                ..TaskResult::default()
            })),
            crate::shared::now_ms(),
        );
        // Reported once, however many messages come.
        if self.floor.shared.journal.has_mail(letter.id)? {
            return Ok(());
        }
        self.commit(Vec::new(), Extra::send(letter)).await
    }

    /// The input that begins a turn.
    pub(super) fn beginning(&mut self, letters: &[Envelope]) -> TurnInput {
        self.running.begin_turn();
        self.frame.refresh(&self.floor.shared);
        if self.frame.follow_sources(&self.floor.shared) {
            self.frame.reveal_from(self.turn.history());
        }
        self.frame.may_call(self.floor.callees(self.frame.definition()));
        // A rewind is not part of the conversation, and the idle teammates are told of when the turn begins.
        let rewound = letters.iter().filter_map(told_of).collect();
        let is_spoken = |letter: &&Envelope| letter.kind != MessageKind::FilesRewound && !report::is_idle(letter);
        let spoken: Vec<&Envelope> = letters.iter().filter(is_spoken).collect();
        let (stopped, note) = self.stop_note(&spoken);
        let told = spoken.iter().filter(|letter| !stopped.contains(&letter.id)).map(|letter| self.told_as(letter));
        let words: Vec<String> = told.collect();
        let first = letters.first();
        // Only messages of the user can ask for skills.
        let asks = first.filter(|first| self.turn.origin.lead && first.kind == MessageKind::UserInput);
        let said = letters.iter().filter(|letter| letter.kind == MessageKind::UserInput);
        let said: Vec<String> = said.map(|letter| letter.text().to_owned()).collect();
        let skills = asks.map(|_| self.skills_for(&said));
        let mut words = words.join("\n\n");
        // Messages of the team are no search text for the memory.
        let asked = first.is_some_and(|first| first.kind == MessageKind::UserInput);
        let recall = self.recall(if asked { &words } else { "" });
        let given =
            first.filter(|first| first.kind == MessageKind::TaskAssign).and_then(|first| first.task().assignment);
        let given = given.map(Cow::into_owned);
        let (assignment, quiet) = match given {
            Some(given) => (Some(given), false),
            None => self.occasion(letters),
        };
        let is_last = self.turn.origin.lead && quiet && self.turn.echoes().saturating_add(1) == self.echoes_max();
        for own in note.into_iter().chain(is_last.then(|| LAST_UNASKED.trim_end().to_owned())) {
            words.push_str(if words.is_empty() { "" } else { "\n\n" });
            words.push_str(&own);
        }
        let mut input: Vec<Part> = Some(words).filter(|words| !words.is_empty()).map(Part::text).into_iter().collect();
        input.extend(skills.filter(|text| !text.is_empty()).map(Part::text));
        TurnInput::Begin {
            turn: self.floor.fresh_turn(),
            envelope: first.map_or_else(|| EnvelopeId::new(new_id()), |first| first.id),
            input,
            assignment: assignment.map(Arc::new),
            recall,
            rewound,
            letters: letters.iter().skip(1).map(|letter| letter.id).collect(),
            quiet,
            hops: if quiet && !self.turn.origin.lead { hops(letters) } else { 0 },
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
    fn occasion(&self, letters: &[Envelope]) -> (Option<Assignment>, bool) {
        let is_asked = || letters.iter().any(|letter| letter.kind == MessageKind::UserInput);
        let Some(engaged) = self.turn.engaged() else {
            return (self.spoken_to(letters).or_else(|| self.told_late(letters)), self.turn.origin.lead && !is_asked());
        };
        let has_written = |who: &str| letters.iter().any(|letter| letter.from == who);
        let user =
            letters.iter().find(|letter| letter.kind == MessageKind::UserInput).map(|letter| letter.from.clone());
        let is_quiet = user.is_none() && !has_written(&engaged.reply_to);
        let reply_to = user.filter(|_| !has_written(&engaged.reply_to)).unwrap_or_else(|| engaged.reply_to.clone());
        let title = title_of(letters).unwrap_or_else(|| engaged.title.clone());
        // More than one attempt means that it had finished its first task.
        (Some(Assignment { reply_to, title, attempt: engaged.attempt + 1, ..engaged.clone() }), is_quiet)
    }

    /// A user continues with an agent that another agent had called: the answer goes to the user.
    fn spoken_to(&self, letters: &[Envelope]) -> Option<Assignment> {
        let letter =
            letters.iter().find(|letter| letter.kind == MessageKind::UserInput).filter(|_| !self.turn.origin.lead)?;
        let given = self.floor.row_of(self.turn.origin.agent?)?.assignment?;
        let (reply_to, title) = (letter.from.clone(), team_tools::title(letter.text()));
        // A member of a plan goes on with its task, outside of the plan's approval.
        let (plan, corrects, attempt) = (None, given.plan.or(given.corrects), given.attempt + 1);
        Some(Assignment { reply_to, title, plan, corrects, attempt, cache: None, ..Arc::unwrap_or_clone(given) })
    }

    /// The texts of skills that the user asks for by name, to be added behind the message.
    fn skills_for(&self, words: &[String]) -> String {
        let session = self.floor.session.to_string();
        let asked = SkillContext { root: self.frame.root(), session: &session };
        let catalogue = self.floor.shared.skills.of(asked.root);
        let expanded = skills::expand(words, &catalogue, &asked);
        self.frame.wish(expanded.wish);
        expanded.text
    }

    /// What a lead that reads reports is told of the teammates that rest without one; `None` if there are none.
    fn silent_teammates(&self, letters: &[Envelope]) -> Result<Option<Part>, RuntimeError> {
        if !self.turn.origin.lead || !letters.iter().any(report::can_wait) {
            return Ok(None);
        }
        let mut names = Vec::new();
        for (name, agent) in self.floor.teammates()? {
            let address = session::agent_stream(agent);
            let has_written = letters.iter().any(|letter| letter.from == address && !report::is_idle(letter));
            if !has_written
                && !self.floor.is_working(&address)
                && self.floor.shared.fold_agent(agent)?.0.rests_unreported()
            {
                names.push(format!("`{name}`"));
            }
        }
        let is = if names.len() == 1 { "it waits for a message and works" } else { "they wait for messages and work" };
        let words = format!("No report from {}: {is} on nothing.", names.join(", "));
        Ok((!names.is_empty()).then(|| Part::text(words)))
    }

    async fn begin(&mut self, letters: &[Envelope]) -> Result<(), RuntimeError> {
        if letters.is_empty() {
            return Ok(());
        }
        self.redefine().await?;
        self.raise_budget(letters).await?;
        // Messages set aside for a turn whose end this process did not see are among these, or are read again.
        self.steer_no_more();
        let files = self.files_mentioned(letters).await;
        let mut begin = self.beginning(letters);
        let news = self.plan_news(&begin)?.or(self.silent_teammates(letters)?);
        if let TurnInput::Begin { input, .. } = &mut begin {
            input.extend(files.into_iter().chain(news));
        }
        self.leave_plan(&begin).await?;
        let acks = letters.iter().map(|letter| letter.id).collect();
        let sends = self.users_words_of(letters, crate::shared::now_ms());
        self.step(begin, Extra { sends, ..Extra::acks(acks) }).await?;
        self.know_task();
        self.running.begun = self.turn.assignment().cloned();
        Ok(())
    }

    /// A repeated task may come with a larger budget.
    async fn raise_budget(&mut self, letters: &[Envelope]) -> Result<(), RuntimeError> {
        let Some((first, known)) = letters.first().zip(self.turn.settings()) else { return Ok(()) };
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
            self.money.pool = self.floor.pool_of(agent, budget, self.bounds.caller.as_deref(), plan)?;
        }
        Ok(())
    }

    /// The result of a call that waited for it.
    async fn take_result(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let asked = letter.reply_to.and_then(|asked| self.asked_with(asked));
        let key = asked.unwrap_or_else(|| letter.result().work.call.to_owned());
        let (mut words, is_error) = self.told(&key, letter);
        let ms = letter.result().work.ms.unwrap_or_default();
        // Looking at a copy takes its time.
        self.tell().await;
        let changed = match self.whose(letter) {
            Some(child) => {
                self.floor.vacated(&child.to_string()).await;
                worktree::changed(&self.floor.shared, child).await
            }
            None => None,
        };
        // Only one question is open at a time: this one waits until the other is answered.
        let is_asked = !is_error && changed.as_ref().is_some_and(|changed| changed.is_open);
        if is_asked && self.turn.is_asking() {
            return Ok(());
        }
        Box::pin(self.note_error(letter)).await?;
        self.running.end_call(&key);
        let ack = Extra::acks(vec![letter.id]);
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
    pub(super) fn whose(&self, letter: &Envelope) -> Option<AgentId> {
        letter.from.strip_prefix("agent/").filter(|_| letter.kind == MessageKind::TaskResult)?.parse().ok()
    }

    /// The team could not answer a question of this agent: the user is asked instead.
    async fn ask_user(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let key = letter.reply_to.and_then(|asked| self.asked_with(asked)).unwrap_or_default();
        let question = self.turn.call(&key).and_then(clarified).unwrap_or_default();
        let action = Action { deed: ActionKind::Ask, preview: question.clone(), ..Action::read(question) };
        self.step(TurnInput::Unanswered { key, action }, Extra::acks(vec![letter.id])).await
    }

    /// The message that tells a plan that this turn waits (for a person, or for a model server that cannot be reached), or
    /// that it goes on.
    pub(super) fn held_letter(&self, event: &Event, at_ms: i64) -> Option<Envelope> {
        let is_mate = self.turn.mate().is_some();
        let assignment = self.turn.engaged().or(self.turn.assignment());
        let assignment = assignment.filter(|assignment| is_mate || assignment.plan.is_some())?;
        let given = || Some(Cow::Borrowed(assignment));
        let answer = |question| QuestionAnswer { assignment: given(), question, ..QuestionAnswer::default() };
        let goes_on = |question| Body::Answer(Box::new(answer(question)));
        let (kind, about, what, body) = match event {
            Event::QuestionAsked(asked) if is_mate => return Some(self.bubbled(assignment, asked, at_ms)),
            Event::QuestionAsked(QuestionAsked { question, .. }) => {
                let asked =
                    AgentQuestion { assignment: given(), question: Some(*question), ..AgentQuestion::default() };
                (MessageKind::PermissionRequest, question.to_string(), "asks", Body::Question(asked))
            }
            // Only for a plan, which waits for it; a lead is not told that a teammate goes on.
            Event::QuestionAnswered(QuestionAnswered { question, .. }) if !is_mate => {
                (MessageKind::PermissionResponse, question.to_string(), "goes on", goes_on(Some(*question)))
            }
            Event::LlmEnded(ended) if !is_mate => {
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
        let kind = match asked.action.deed {
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
    fn asked_with(&self, letter: EnvelopeId) -> Option<String> {
        self.turn.pending().into_iter().find_map(|effect| match effect {
            TurnEffect::RunTool { key, .. } => {
                (derived(&[self.turn.stream.as_bytes(), key.as_bytes(), b"clarify"]) == letter).then_some(key)
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
fn title_of(letters: &[Envelope]) -> Option<String> {
    let mut words = letters.iter().map(|letter| letter.text().to_owned());
    words.find(|words| !words.trim().is_empty() && !is_go_on(words)).map(|words| team_tools::title(&words))
}

/// How many messages between teammates in a row led here, by the shortest way. Messages that are only added do not
/// count.
fn hops(letters: &[Envelope]) -> u32 {
    letters.iter().filter(|letter| !is_note(letter, false)).map(|letter| letter.hops).min().unwrap_or_default()
}

/// The question that a call of `need_clarify` asks.
fn clarified(call: &ToolCall) -> Option<String> {
    match Act::read(&call.tool, (*call.input).clone()) {
        Ok(Act::Clarify { question }) => Some(question),
        _ => None,
    }
}

/// The note about rewound files in a message.
fn told_of(letter: &Envelope) -> Option<RewindNote> {
    match Body::read(letter) {
        Body::Rewound(rewound) => Some(rewound.told).filter(|told| !told.text.is_empty()),
        _ => None,
    }
}

/// An id that follows from the message's content: sending it twice changes nothing.
pub(crate) fn derived(fields: &[&[u8]]) -> EnvelopeId {
    EnvelopeId::new(Hash::of_fields(fields).uuid())
}

/// Who stops something by a message. A message from a person counts as that person's; others name the stopper.
pub(super) fn stopper(letter: &Envelope) -> InterruptedBy {
    let name = letter.by().to_owned();
    let said = letter.stop().who;
    let who = if letter.from.starts_with("user/") { Some(DecidedBy::Person(name.clone())) } else { said };
    InterruptedBy { name, who, ends: shutdown::is_end(letter), held: None }
}
