//! What an agent does with its mail, and the letters it writes when a turn is over.
//!
//! Answers are taken at any time. What begins a turn waits until there is none: a user's message (unless the turn that
//! runs is told, see `steer`), a task, or news for the lead; news that came together is told together. Nothing here decides
//! what the model is told beyond the words in the letter.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use max_team_core::chat::Part;
use max_team_core::event::{Ending, Event, Outcome, QuestionAnswered, QuestionAsked, Stopper};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, TurnId};
use max_team_core::limits::{ECHOES_MAX, HOPS_MAX, MAIL_TOLD_BYTES_MAX, UNASKED_TURNS_MAX};
use max_team_core::mates::{parting, report};
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::policy::{Action, By, Deed};
use max_team_core::rewind::Told;
use max_team_core::team::Settings;
use max_team_core::turn::{Effect, Input, is_note, is_stop};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::flight::Flight;
use super::members::CallResult;
use super::steer::waits;
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::handle::Origin;
use crate::plan::cap;
use crate::post::is_go_on;
use crate::shared::new_id;
use crate::skills::{self, Asked};
use crate::team_tools;
use crate::worktree;

/// What a lead is told in the last turn that it has without the user.
const LAST_UNASKED: &str = include_str!("../../../../prompts/last_unasked.md");

/// What has come, by what becomes of it.
#[derive(Default)]
struct Sorted {
    /// Begins a turn: a task, or what one person has said and nobody has read, oldest first.
    said: Vec<Envelope>,
    /// Begins one, together with others.
    news: Vec<Envelope>,
    /// Is only told with others.
    notes: Vec<Envelope>,
    /// Ends its reader.
    ends: Vec<Envelope>,
    /// Needs nothing more.
    seen: Vec<EnvelopeId>,
    /// Begins the turn after.
    later: Vec<Envelope>,
    /// What of it begins a turn, in the order it came.
    came: Vec<EnvelopeId>,
}

impl Sorted {
    /// Whether a letter begins a turn together with what was said before it. What one person has said and nobody has read is told
    /// together, as at a step of a turn; a task, and what is to wait for a turn, has one of its own.
    fn joins(&self, letter: &Envelope) -> bool {
        let is_said = |letter: &Envelope| letter.kind == Kind::UserInput && !waits(letter);
        let joins_all = |first: &Envelope| is_said(first) && is_said(letter) && first.from == letter.from;
        self.later.is_empty() && self.said.first().is_none_or(joins_all)
    }
}

/// The letter with what comes of a turn: there is one, however often it is written.
pub(crate) fn result_id(stream: &str, turn: TurnId) -> EnvelopeId {
    derived(&[stream.as_bytes(), turn.to_string().as_bytes(), b"result"])
}

/// The result of a turn as the answer to the message that began the turn.
pub(crate) fn answering(letter: Envelope, asked: Option<EnvelopeId>) -> Envelope {
    if letter.kind == Kind::TaskResult { letter.answering(asked) } else { letter }
}

impl Agent {
    /// Takes what the mailbox holds and fits the moment. What did not fit an earlier moment is only found by `all`.
    pub(super) async fn take_mail(&mut self, all: bool) -> Result<(), RuntimeError> {
        if self.reviewed {
            return Ok(());
        }
        self.put_off &= !all;
        let was_busy = self.turn.is_busy();
        let mut sorted = Sorted::default();
        let Some(mut mail) = self.mail_in_hand(all)? else { return Ok(()) };
        self.stop_ahead(&mut mail).await?;
        if self.turn.mate().is_some() && mail.iter().any(|letter| letter.cause.is_some()) {
            self.turn.know_stop(self.floor.stopped_since()?);
        }
        let places: HashMap<EnvelopeId, usize> = mail.iter().enumerate().map(|(at, letter)| (letter.id, at)).collect();
        for letter in mail {
            if self.turn.gone().is_some() && !self.is_for_review(&letter) {
                self.send_back(&letter).await?;
            } else {
                self.sort(letter, &mut sorted).await?;
            }
        }
        let Sorted { said, mut news, later, mut notes, ends, seen, .. } = sorted;
        self.commit(Vec::new(), Extra::acks(seen)).await?;
        if self.reviewed {
            // What else has come stays where it is.
            return Ok(());
        }
        if was_busy && !self.turn.is_busy() {
            // One of them has ended the turn: what was meant for it is read anew, with what came behind, in order.
            self.steer_no_more();
            self.left_over = true;
            return self.part(ends).await;
        }
        if self.lead && self.gathers(&said, &news) {
            notes.append(&mut news);
        }
        // Somebody who speaks is answered before what else has come.
        let (mut first, mut rest) = if said.is_empty() { (news, Vec::new()) } else { (said, news) };
        if self.is_held(&first) && self.is_held(&rest) && self.is_held(&later) {
            self.noted |= !first.is_empty();
            first.clear();
            rest.clear();
        } else if self.turn.held().is_some() {
            notes.splice(0..0, std::mem::take(&mut rest));
        }
        // Whoever is told to end at once begins nothing more: what it was written goes back.
        let is_ending = ends.iter().any(|letter| letter.kind == Kind::Shutdown);
        let waits = (self.turn.is_busy() || is_ending) && !first.is_empty();
        self.left_over |= waits || !rest.is_empty();
        if !waits && !first.is_empty() {
            if first.iter().all(|letter| self.turn.is_news(letter, self.lead)) {
                // What only waited to be told came before it: a teammate is not done first and stopped afterwards.
                first.append(&mut notes);
                first.sort_by_key(|letter| places.get(&letter.id).copied());
            }
            self.begin_with(first, std::mem::take(&mut notes)).await?;
        }
        self.noted |= !notes.is_empty();
        self.part(ends).await
    }

    /// The messages to handle. Empty if only further reports came for a lead that waits for its team, so that each new
    /// report does not read all waiting ones again.
    fn mail_in_hand(&mut self, all: bool) -> Result<Option<Vec<Envelope>>, RuntimeError> {
        let was_noted = std::mem::take(&mut self.noted);
        if !self.lead || !was_noted || all || self.turn.is_busy() {
            return self.floor.mail(&self.stream, all | was_noted).map(Some);
        }
        let handed = self.floor.mail(&self.stream, false)?;
        if !handed.is_empty() && handed.iter().all(report::can_wait) && self.floor.awaits_team() {
            self.noted = true;
            return Ok(None);
        }
        let mut mail = self.floor.mail(&self.stream, true)?;
        let is_new = |letter: &Envelope| mail.iter().all(|known| known.id != letter.id);
        let handed: Vec<Envelope> = handed.into_iter().filter(is_new).collect();
        mail.extend(handed);
        Ok(Some(mail))
    }

    /// Whether there is nothing but reports of teammates, and some still work: the lead is woken once all of them rest.
    fn gathers(&self, said: &[Envelope], news: &[Envelope]) -> bool {
        let is_any = !news.is_empty() && said.is_empty() && !self.turn.is_busy();
        is_any && news.iter().all(report::can_wait) && self.floor.awaits_team()
    }

    /// Carries a letter out, or says what becomes of it.
    async fn sort(&mut self, letter: Envelope, sorted: &mut Sorted) -> Result<(), RuntimeError> {
        sorted.came.extend(self.turn.is_beginning(&letter, self.lead).then_some(letter.id));
        match letter.kind {
            _ if parting::is_end(&letter) => {
                if self.turn.is_busy() && letter.kind == Kind::ShutdownRequest {
                    self.put_aside(&letter);
                }
                sorted.ends.push(letter);
            }
            Kind::UserInput | Kind::TaskAssign if self.turn.reviewing().is_some() => {
                self.left_over = true;
                self.ask_later().await?;
            }
            Kind::UserInput if self.turn.is_busy() => self.put_by(&letter).await,
            Kind::PermissionResponse | Kind::SandboxPermissionResponse => self.take_answer(&letter).await?,
            Kind::PlanApprovalResponse if self.turn.mate().is_some() => self.take_answer(&letter).await?,
            Kind::ModeSetRequest => self.take_mode(&letter).await?,
            Kind::TeamPermissionUpdate => self.take_grants(&letter).await?,
            Kind::TeamRequest => self.recruit(&letter).await?,
            Kind::ShutdownApproved | Kind::ShutdownRejected if !self.lead => {
                self.refuse(&letter, "it asked nobody to shut down").await?;
            }
            Kind::ShutdownApproved => drop(self.take_response(&letter).await?),
            Kind::ShutdownRejected => {
                // It counts at once, and is told when there is a turn for it.
                if self.turn.requests().is_accepted(letter.id) || self.take_response(&letter).await? {
                    sorted.news.push(letter);
                }
            }
            Kind::Text if letter.body.get("ask").and_then(Value::as_bool).unwrap_or_default() => {
                self.ask_user(&letter).await?;
            }
            _ if is_note(&letter, self.lead) => {
                self.offer(&letter);
                sorted.notes.push(letter);
            }
            _ if self.turn.is_news(&letter, self.lead) => {
                self.offer(&letter);
                sorted.news.push(letter);
            }
            Kind::TaskResult | Kind::Text => self.take_result(&letter).await?,
            Kind::Shutdown if is_stop(&letter) => self.stop_by(&letter, &sorted.came).await?,
            Kind::Shutdown => {
                let by = stopper(&letter);
                self.step(Input::Interrupt { by }, Extra::acks(vec![letter.id])).await?;
            }
            Kind::UserInput | Kind::TaskAssign if sorted.joins(&letter) && !self.turn.is_busy() => {
                sorted.said.push(letter)
            }
            // It begins a turn of its own, and so does what came after it.
            Kind::UserInput | Kind::TaskAssign => {
                self.left_over = true;
                sorted.later.push(letter);
            }
            // That somebody waits or rests is known from its own stream.
            Kind::IdleNotification | Kind::PermissionRequest | Kind::SandboxPermissionRequest => {
                sorted.seen.push(letter.id)
            }
            // Nobody who knows us writes this to an agent.
            Kind::PlanApprovalRequest
            | Kind::PlanApprovalResponse
            | Kind::PlanRevised
            | Kind::TaskUpdate
            | Kind::TaskFailed
            | Kind::NeedClarify
            | Kind::AllTasksDone
            | Kind::TeammateTerminated
            | Kind::Undelivered
            | Kind::FilesRewound
            | Kind::ShutdownRequest => sorted.seen.push(letter.id),
        }
        Ok(())
    }

    /// Begins a turn about what has come, as much of it as one turn is told; what came beside it is told too.
    async fn begin_with(&mut self, news: Vec<Envelope>, notes: Vec<Envelope>) -> Result<(), RuntimeError> {
        let (mut told, mut bytes) = (Vec::new(), 0_usize);
        for letter in news.into_iter().chain(notes) {
            bytes = bytes.saturating_add(text_at(&letter.body, "text").len());
            if bytes > MAIL_TOLD_BYTES_MAX && !told.is_empty() {
                self.left_over = true;
                break;
            }
            told.push(letter);
        }
        let (_, is_quiet) = self.occasion(&told);
        if is_quiet && self.turn.echoes() >= self.echoes_max() && (self.lead || hops(&told) > HOPS_MAX) {
            return self.rest_from_echoes().await;
        }
        self.begin(&told).await
    }

    /// Turns in a row that it begins though nobody who leads it wants anything.
    fn echoes_max(&self) -> u32 {
        if !self.lead {
            return ECHOES_MAX;
        }
        let ever = self.floor.count_mates().map_or(0, |(_, ever)| ever);
        UNASKED_TURNS_MAX.saturating_add(u32::try_from(ever).unwrap_or(u32::MAX).saturating_mul(2))
    }

    /// Colleagues go on writing to each other and nobody wants anything of it: it leaves its mail unread, and its lead is told. A
    /// lead has said so itself, in its last turn.
    async fn rest_from_echoes(&mut self) -> Result<(), RuntimeError> {
        self.noted = true;
        let Some((engaged, mate)) = self.turn.engaged().zip(self.turn.mate()) else { return Ok(()) };
        let text = format!(
            "`{}` has worked for colleagues {} times in a row without a word from you or the user, and they only answer each \
             other. It leaves its mail unread until one of you writes to it.",
            mate.name,
            self.turn.echoes()
        );
        let letter = Envelope::new(
            derived(&[self.stream.as_bytes(), &self.head.to_be_bytes(), b"echoes"]),
            &self.stream,
            &engaged.reply_to,
            Kind::TaskResult,
            json!({ "mate": mate.name, "from": mate.name, "color": mate.color, "reason": "blocked", "text": text }),
            crate::shared::now_ms(),
        );
        // It is said once, however many write.
        if self.floor.shared.journal.has_mail(letter.id)? {
            return Ok(());
        }
        self.commit(Vec::new(), Extra::send(letter)).await
    }

    /// What begins a turn, with everything fresh.
    pub(super) fn beginning(&mut self, letters: &[Envelope]) -> Input {
        self.cancel = CancellationToken::new();
        self.began = Instant::now();
        self.frame.refresh(&self.floor.shared);
        self.frame.may_call(self.floor.callees(self.frame.definition()));
        // That files were put back is not what anybody says.
        let (beside, spoken): (Vec<&Envelope>, Vec<&Envelope>) =
            letters.iter().partition(|letter| letter.kind == Kind::FilesRewound);
        let rewound = beside.iter().filter_map(|letter| Told::deserialize(&letter.body).ok()).collect();
        let (stopped, note) = self.stop_note(&spoken);
        let told = spoken.iter().filter(|letter| !stopped.contains(&letter.id)).map(|letter| self.told_as(letter));
        let words: Vec<String> = told.collect();
        let first = letters.first();
        // Only what the user says asks for skills.
        let asks = first.filter(|first| self.lead && first.kind == Kind::UserInput);
        let said = letters.iter().filter(|letter| letter.kind == Kind::UserInput);
        let said: Vec<String> = said.map(|letter| text_at(&letter.body, "text")).collect();
        let skills = asks.map(|_| self.skills_for(&said));
        let mut words = words.join("\n\n");
        // News of the team's is no question that could find anything.
        let asked = first.is_some_and(|first| first.kind == Kind::UserInput);
        let recall = self.recall(if asked { &words } else { "" });
        let given = first.and_then(|first| Assignment::deserialize(first.body.get("assignment")?).ok());
        let given = given.filter(|_| first.is_some_and(|first| first.kind == Kind::TaskAssign));
        let (assignment, quiet) = match given {
            Some(given) => (Some(given), false),
            None => self.occasion(letters),
        };
        let is_last = self.lead && quiet && self.turn.echoes().saturating_add(1) == self.echoes_max();
        for own in note.into_iter().chain(is_last.then(|| LAST_UNASKED.trim_end().to_owned())) {
            words.push_str(if words.is_empty() { "" } else { "\n\n" });
            words.push_str(&own);
        }
        let mut input = vec![Part::text(words)];
        input.extend(skills.filter(|text| !text.is_empty()).map(Part::text));
        Input::Begin {
            turn: self.floor.fresh_turn(),
            envelope: first.map_or_else(|| EnvelopeId::new(new_id()), |first| first.id),
            input,
            assignment: assignment.map(Arc::new),
            recall,
            rewound,
            letters: letters.iter().skip(1).map(|letter| letter.id).collect(),
            quiet,
            hops: if quiet && !self.lead { hops(letters) } else { 0 },
        }
    }

    /// The same for something that came by no letter, and that somebody waits for; what it is in a few words.
    pub(super) fn beginning_about(&mut self, words: String, title: &str) -> Input {
        let mut begin = self.beginning(&[]);
        if let Input::Begin { input, quiet, assignment, .. } = &mut begin {
            (*input, *quiet) = (vec![Part::text(words)], false);
            if let Some(given) = assignment {
                Arc::make_mut(given).title = team_tools::title(title);
            }
        }
        begin
    }

    /// What a teammate's turn about its mail is a part of, and whether nobody waits for what comes of it. For a lead, only the
    /// user does.
    fn occasion(&self, letters: &[Envelope]) -> (Option<Assignment>, bool) {
        let is_asked = || letters.iter().any(|letter| letter.kind == Kind::UserInput);
        let Some(engaged) = self.turn.engaged() else {
            return (self.spoken_to(letters).or_else(|| self.told_late(letters)), self.lead && !is_asked());
        };
        let has_written = |who: &str| letters.iter().any(|letter| letter.from == who);
        let user = letters.iter().find(|letter| letter.kind == Kind::UserInput).map(|letter| letter.from.clone());
        let is_quiet = user.is_none() && !has_written(&engaged.reply_to);
        let reply_to = user.filter(|_| !has_written(&engaged.reply_to)).unwrap_or_else(|| engaged.reply_to.clone());
        let title = title_of(letters).unwrap_or_else(|| engaged.title.clone());
        // More than one attempt says that it had been done with what it was started for.
        (Some(Assignment { reply_to, title, attempt: engaged.attempt + 1, ..engaged.clone() }), is_quiet)
    }

    /// A user goes on with somebody whom an agent had called: what comes of it is for the user.
    fn spoken_to(&self, letters: &[Envelope]) -> Option<Assignment> {
        let letter = letters.iter().find(|letter| letter.kind == Kind::UserInput).filter(|_| !self.lead)?;
        let given = self.floor.row_of(self.origin.agent?)?.assignment?;
        let (reply_to, title) = (letter.from.clone(), team_tools::title(&text_at(&letter.body, "text")));
        // A member of a plan goes on with its task, outside of the plan's approval.
        let (plan, corrects, attempt) = (None, given.plan.or(given.corrects), given.attempt + 1);
        Some(Assignment { reply_to, title, plan, corrects, attempt, cache: None, ..Arc::unwrap_or_clone(given) })
    }

    /// What the user asks for by the name of a skill, to be put behind their words.
    fn skills_for(&self, words: &[String]) -> String {
        let session = self.floor.session.to_string();
        let asked = Asked { root: self.frame.root(), session: &session };
        let catalogue = self.floor.shared.skills.of(asked.root);
        let expanded = skills::expand(words, &catalogue, &asked);
        self.frame.wish(expanded.wish);
        expanded.text
    }

    async fn begin(&mut self, letters: &[Envelope]) -> Result<(), RuntimeError> {
        if letters.is_empty() {
            return Ok(());
        }
        self.redefine().await?;
        self.raise_budget(letters).await?;
        // What was put by for a turn that nobody here saw the end of is among these, or read anew.
        self.steer_no_more();
        let files = self.files_mentioned(letters).await;
        let mut begin = self.beginning(letters);
        if let Input::Begin { input, .. } = &mut begin {
            input.extend(files);
        }
        self.leave_plan(&begin).await?;
        let acks = letters.iter().map(|letter| letter.id).collect();
        let sends = self.users_words_of(letters, crate::shared::now_ms());
        self.step(begin, Extra { sends, ..Extra::acks(acks) }).await?;
        self.know_task();
        self.begun = self.turn.assignment().cloned();
        Ok(())
    }

    /// A task that comes again may come with more to spend.
    async fn raise_budget(&mut self, letters: &[Envelope]) -> Result<(), RuntimeError> {
        let Some((first, known)) = letters.first().zip(self.turn.settings()) else { return Ok(()) };
        let more = |key: &str| first.body.get(key).and_then(Value::as_u64);
        let settings = Settings {
            budget_nano: more("budget_nano").or(known.budget_nano),
            budget_tokens: more("budget_tokens").or(known.budget_tokens),
            ..Settings::clone(known)
        };
        if settings == **known {
            return Ok(());
        }
        let budget = cap(&settings);
        self.configure(settings, None).await?;
        let plan = first.body.get("assignment").and_then(|given| Assignment::deserialize(given).ok()?.plan);
        if let Some(agent) = self.origin.agent {
            self.purse = self.floor.purse_of(agent, budget, self.caller.as_deref(), plan)?;
        }
        Ok(())
    }

    /// Something that a call of ours has been waiting for.
    async fn take_result(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let asked = letter.reply_to.and_then(|asked| self.asked_with(asked));
        let key = asked.unwrap_or_else(|| text_at(&letter.body, "call"));
        if self.rechecked.get(&key) == Some(&letter.id) {
            return Ok(());
        }
        let (mut words, is_error) = self.told(&key, letter);
        let ms = letter.body.get("ms").and_then(Value::as_u64).unwrap_or_default();
        // Looking at a copy takes its time.
        self.tell().await;
        let changed = match self.whose(letter) {
            Some(child) => {
                self.floor.vacated(&child.to_string()).await;
                worktree::changed(&self.floor.shared, child).await
            }
            None => None,
        };
        // One thing is asked at a time: it waits until the other is answered.
        let is_asked = !is_error && changed.as_ref().is_some_and(|changed| changed.is_open);
        if is_asked && self.turn.is_asking() {
            self.put_off = true;
            return Ok(());
        }
        Box::pin(self.note_error(letter)).await?;
        self.is_over(&key);
        if let Some(correction) = self.late_correction(letter)? {
            if correction.acted() && changed.is_none() {
                self.check_again(key, letter.id, correction, CallResult { words, is_error, ms });
                return Ok(());
            }
            words = format!("{words}\n\n{}", correction.unchecked());
        }
        self.in_flight.remove(&Flight::Tool(key.clone()));
        let ack = Extra::acks(vec![letter.id]);
        if let Some(changed) = changed {
            if is_asked {
                let action = changed.question(words);
                return self.step(Input::Unanswered { key, action }, ack).await;
            }
            words = format!("{words}\n\n{}", changed.news);
        }
        let content = vec![Part::text(words)];
        let ended = Input::ToolEnded { key, content, is_error, ending: Ending::Ran, fatal: None, ms };
        self.step(ended, ack).await
    }

    /// Who has answered with this letter. Not whom the call would start: `send_message` goes on with somebody who was
    /// started by another.
    pub(super) fn whose(&self, letter: &Envelope) -> Option<AgentId> {
        letter.from.strip_prefix("agent/").filter(|_| letter.kind == Kind::TaskResult)?.parse().ok()
    }

    /// Nobody on the team could answer a call of ours: the user is asked in its place.
    async fn ask_user(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let key = letter.reply_to.and_then(|asked| self.asked_with(asked)).unwrap_or_default();
        let question = self.turn.call(&key).map(|call| text_at(&call.input, "question")).unwrap_or_default();
        let action = Action { deed: Deed::Ask, preview: question.clone(), ..Action::read(question) };
        self.step(Input::Unanswered { key, action }, Extra::acks(vec![letter.id])).await
    }

    /// The message that tells a plan that this turn waits (for a person, or for a model server that cannot be reached), or
    /// that it goes on.
    pub(super) fn held_letter(&self, event: &Event, at_ms: i64) -> Option<Envelope> {
        let is_mate = self.turn.mate().is_some();
        let assignment = self.turn.engaged().or(self.turn.assignment());
        let assignment = assignment.filter(|assignment| is_mate || assignment.plan.is_some())?;
        let (kind, about, what, more) = match event {
            Event::QuestionAsked(asked) if is_mate => return Some(self.bubbled(assignment, asked, at_ms)),
            Event::QuestionAsked(QuestionAsked { question, .. }) => {
                (Kind::PermissionRequest, question.to_string(), "asks", json!({ "question": question }))
            }
            // A plan waits for it; a lead sees who rests.
            Event::QuestionAnswered(QuestionAnswered { question, .. }) if !is_mate => {
                (Kind::PermissionResponse, question.to_string(), "goes on", json!({ "question": question }))
            }
            Event::LlmEnded(ended) if !is_mate => {
                let about = format!("call {}", ended.call);
                match (&ended.outcome, self.turn.is_parked()) {
                    (Outcome::Failed { parked: true, .. }, true) => return None,
                    (Outcome::Failed { parked: true, detail, .. }, false) => {
                        (Kind::PermissionRequest, about, "parks", json!({ "outage": detail }))
                    }
                    (_, true) => (Kind::PermissionResponse, about, "goes on", json!({})),
                    (_, false) => return None,
                }
            }
            _ => return None,
        };
        let mut body = more;
        add(&mut body, "assignment", assignment);
        Some(Envelope::new(
            derived(&[self.stream.as_bytes(), about.as_bytes(), what.as_bytes()]),
            &self.stream,
            &assignment.reply_to,
            kind,
            body,
            at_ms,
        ))
    }

    /// The letter that tells its lead what a teammate asks: a plan is put before it, all else is for a person.
    fn bubbled(&self, given: &Assignment, asked: &QuestionAsked, at_ms: i64) -> Envelope {
        let kind = match asked.action.deed {
            Deed::Propose => Kind::PlanApprovalRequest,
            Deed::Fetch => Kind::SandboxPermissionRequest,
            _ => Kind::PermissionRequest,
        };
        let mut body = json!({ "from": &*self.origin.name, "tool": asked.tool, "target": asked.action.target });
        if kind == Kind::PlanApprovalRequest {
            add(&mut body, "question", &asked.question);
            add(&mut body, "text", &asked.action.preview);
        }
        Envelope::new(
            derived(&[self.stream.as_bytes(), asked.question.to_string().as_bytes(), b"asks"]),
            &self.stream,
            &given.reply_to,
            kind,
            body,
            at_ms,
        )
    }

    /// The call that asked with this letter.
    fn asked_with(&self, letter: EnvelopeId) -> Option<String> {
        self.turn.pending().into_iter().find_map(|effect| match effect {
            Effect::RunTool { key, .. } => {
                (derived(&[self.stream.as_bytes(), key.as_bytes(), b"clarify"]) == letter).then_some(key)
            }
            _ => None,
        })
    }

    /// Faces are told whose task or call it is.
    pub(super) fn know_task(&mut self) {
        let given = self.turn.assignment();
        let task = given.and_then(|given| Some((given.plan?, given.task.clone())));
        let caller =
            |given: &Assignment| Some((given.reply_to.strip_prefix("agent/")?.parse().ok()?, given.task.clone()));
        let call = given.and_then(caller);
        if self.origin.task != task || self.origin.call != call {
            self.origin = Arc::new(Origin { task, call, ..(*self.origin).clone() });
        }
    }
}

/// What letters are about, in a few words: the first of them that somebody wrote.
fn title_of(letters: &[Envelope]) -> Option<String> {
    let mut words = letters.iter().map(|letter| text_at(&letter.body, "text"));
    words.find(|words| !words.trim().is_empty() && !is_go_on(words)).map(|words| team_tools::title(&words))
}

/// How many letters of colleagues in a row led to what has come: the shortest way there is. What is only told beside them leads
/// nowhere.
fn hops(letters: &[Envelope]) -> u32 {
    letters.iter().filter(|letter| !is_note(letter, false)).map(|letter| letter.hops).min().unwrap_or_default()
}

/// Adds a field to what a letter says.
pub(super) fn add(body: &mut Value, name: &str, value: &impl Serialize) {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(name.to_owned(), json!(value));
    }
}

/// An id that follows from what the letter is about: sending it twice changes nothing.
pub(crate) fn derived(fields: &[&[u8]]) -> EnvelopeId {
    EnvelopeId::new(Hash::of_fields(fields).uuid())
}

/// Who stops something by a letter. One of a person's is a person's word; others say whose it is.
pub(super) fn stopper(letter: &Envelope) -> Stopper {
    let name = text_at(&letter.body, "by");
    let said = letter.body.get("who").and_then(|who| By::deserialize(who).ok());
    let who = if letter.from.starts_with("user/") { Some(By::Person(name.clone())) } else { said };
    Stopper { name, who, ends: parting::is_end(letter), held: None }
}

pub(crate) fn text_at(body: &Value, key: &str) -> String {
    body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}
