//! Questions of agents in a run without a chat: those to the user and those about a change of a file wait in the inbox, as
//! plans do.
//!
//! The agent that asked waits; the run ends once every agent rests or waits, and goes on with `-c` when the answer is there.
//! `core::unattended` decides which questions wait; this carries it out.

use max_team_core::event::{QuestionAsked, Refusal};
use max_team_core::id::{EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::plan::event::{PlanDecision, PlanQuestion, Ruling};
use max_team_core::policy::{Action, ActionKind, DecidedBy, PermissionAnswer};
use max_team_core::unattended::{UnattendedQuestion, on_question, on_reopening};
use max_team_runtime::query;
use max_team_runtime::{Command, OpenQuestion, OpenedSession, Order, Origin, RuntimeError, new_id};

use super::run_state::{RunState, denial};
use super::{Consent, Headless, Task, called, talk};
use crate::commands::short;
use crate::commands::table::clip;
use max_team_terminal::plan_text::{self, PlanDetail};
use max_team_terminal::text::clean_line;
use max_team_workspace::i18n::Lang;

/// Where the answers to the questions of a demo come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DemoAnswers {
    /// The flag `--yes`.
    Flag,
    /// The demo itself, which has no terminal: yes.
    Demo,
    /// A no on standard input.
    Input,
}

impl DemoAnswers {
    pub(crate) fn refuses(self) -> bool {
        self == Self::Input
    }

    /// The name in the journal.
    fn name(self) -> &'static str {
        match self {
            Self::Flag => "--yes",
            Self::Demo => "demo",
            Self::Input => "standard input",
        }
    }

    fn words(self, lang: Lang) -> &'static str {
        match self {
            Self::Flag => self.name(),
            Self::Demo => lang.demo_answers_itself(),
            Self::Input => lang.standard_input(),
        }
    }
}

/// Characters of a call's input that a demo shows.
const DEMO_INPUT_CHARS: usize = 100;

/// A call of a server's tool in one line.
fn remote_call(action: &Action) -> String {
    let input: String = action.preview.split_whitespace().collect::<Vec<_>>().join(" ");
    clean_line(&format!("`{}` {}", action.target, clip(&input, DEMO_INPUT_CHARS)))
}

impl Headless {
    /// Takes in the questions that were open when the session was opened, and gives them the user's words, if there are some.
    /// Returns what is left to be said to the lead.
    pub(super) async fn open_questions(
        &self,
        session: SessionId,
        opened: &OpenedSession,
        tally: &mut RunState,
    ) -> anyhow::Result<AnswerReach> {
        let words = match &self.task {
            Task::Say(text) => text.as_str(),
            _ => "",
        };
        let brings_words = !words.is_empty() || matches!(self.task, Task::Listen(_));
        for asked in &opened.asked {
            match on_reopening(asked.action.kind, brings_words) {
                UnattendedQuestion::Waits => {
                    tally.questions.waiting.push(WaitingQuestion::new(asked, asked.agent == Some(opened.agent)))
                }
                UnattendedQuestion::Refused => self.refuse(session, asked, None, tally).await?,
                UnattendedQuestion::Left => {}
            }
        }
        if words.is_empty() { Ok(AnswerReach::Unheard) } else { self.answer_waiting(session, words, tally).await }
    }

    /// Gives the user's words to every question that waits.
    pub(super) async fn answer_waiting(
        &self,
        session: SessionId,
        words: &str,
        tally: &mut RunState,
    ) -> anyhow::Result<AnswerReach> {
        let mut heard = AnswerReach::Unheard;
        for WaitingQuestion { question, kind, what, is_leads } in std::mem::take(&mut tally.questions.waiting) {
            let answer = PermissionAnswer::from_message(kind, words.to_owned(), DecidedBy::person(&self.by));
            let is_put_off = answer.put_off;
            tally.questions.sent.insert(question, None);
            if !self.heard(Command::Answer { session, question, answer }).await? {
                tally.questions.sent.remove(&question);
                continue;
            }
            talk(&if is_put_off { self.lang.call_put_off(&what) } else { self.lang.words_answer(&what) });
            heard = if is_leads || heard == AnswerReach::ByLead { AnswerReach::ByLead } else { AnswerReach::ByAnother };
        }
        Ok(heard)
    }

    /// Whether questions of a kind are for the user here. The plan of a teammate is its lead's to answer, except in a demo.
    pub(super) fn answers_here(&self, kind: ActionKind) -> bool {
        kind != ActionKind::Propose || matches!(self.consent, Consent::Everything { .. })
    }

    /// An agent asks.
    pub(super) async fn question(
        &self,
        session: SessionId,
        at_ms: i64,
        from: &Origin,
        asked: &QuestionAsked,
        tally: &mut RunState,
    ) -> anyhow::Result<()> {
        let key = from.lead.then_some(asked.key.as_str());
        let asked = asked_by(from, at_ms, asked);
        if let Consent::Everything { answers, .. } = self.consent {
            // A yes is no answer to a question in words.
            let source = answers.name().to_owned();
            let by = if answers.refuses() { DecidedBy::Person(source) } else { DecidedBy::Rule(source) };
            // No flag types the word that approves a loss.
            let is_answerable = asked.action.kind != ActionKind::Ask && asked.action.loss().is_none();
            let answer = PermissionAnswer::new(!answers.refuses() && is_answerable, by);
            if asked.action.kind == ActionKind::Remote {
                let said = if answer.allow { self.lang.yes_word() } else { self.lang.no_word() };
                let call = remote_call(&asked.action);
                self.out.put(self.lang.demo_question(&from.name, call, said, answers.words(self.lang)))?;
            }
            tally.questions.sent.insert(asked.question, None);
            return self.heard(Command::Answer { session, question: asked.question, answer }).await.map(drop);
        }
        // The call that asks is under way and ends with the run, so its question cannot wait for longer.
        let cannot_wait = matches!(self.task, Task::Listen(_)) || asked.action.asking_call().is_some();
        match on_question(asked.action.kind, cannot_wait) {
            UnattendedQuestion::Waits => {
                let waiting = WaitingQuestion::new(&asked, from.lead);
                let id = short(&asked.question);
                talk(&self.lang.question_waits(&from.name, &waiting.what, &id, asked.action.kind == ActionKind::Ask));
                tally.questions.waiting.push(waiting);
                Ok(())
            }
            UnattendedQuestion::Refused => self.refuse(session, &asked, key, tally).await,
            UnattendedQuestion::Left => Ok(()),
        }
    }

    /// Prints a call of a server's tool in a demo: nothing else shows that one was used.
    pub(super) fn show_demo_call(&self, from: &Origin, action: &Action) -> anyhow::Result<()> {
        let is_shown = matches!(self.consent, Consent::Everything { .. })
            && matches!(action.kind, ActionKind::Remote | ActionKind::Query);
        if is_shown { Ok(self.out.put(self.lang.demo_call(&from.name, remote_call(action)))?) } else { Ok(()) }
    }

    /// The user's answer to a question about a plan, if it was given before the run.
    pub(super) fn say_beforehand(&self, plan: PlanId, about: &PlanQuestion, tally: &RunState) -> Option<PlanDecision> {
        let is_first = tally.plans.known.first().is_some_and(|(first, ..)| *first == plan);
        match (self.consent, about) {
            // The plan goes into a file, so no person needs to approve it here.
            _ if matches!(self.task, Task::Plan { .. }) => Some(PlanDecision::Reject(String::new())),
            (Consent::Plans, PlanQuestion::Proposal) => Some(PlanDecision::Approve),
            (Consent::Nothing | Consent::Plans, _) => None,
            (Consent::Everything { answers: DemoAnswers::Input, .. }, _) | (_, PlanQuestion::Budget) => {
                Some(PlanDecision::Reject(String::new()))
            }
            (Consent::Everything { objection: Some(words), .. }, PlanQuestion::Proposal) if is_first => {
                Some(PlanDecision::Changes(words.to_owned()))
            }
            (_, PlanQuestion::Proposal | PlanQuestion::Rest | PlanQuestion::Start { .. }) => {
                Some(PlanDecision::Approve)
            }
            (_, PlanQuestion::Failure { .. }) => Some(PlanDecision::Rule(Ruling::GiveUp)),
        }
    }

    /// Prints a plan of a demo, with the answer that it gets.
    pub(super) async fn show_demo_plan(&self, plan: PlanId, say: &PlanDecision) -> anyhow::Result<()> {
        let Consent::Everything { answers, .. } = self.consent else { return Ok(()) };
        let state = self.handle.ask(query::Plan { plan }).await?;
        let command = format!("max-team plans show {plan} --full");
        let sheet = plan_text::sheet(&state, plan_text::WIDTH, PlanDetail::Brief(&command), self.lang);
        Ok(self.out.put(format!("{}\n{} ({})\n", sheet.trim_end(), self.lang.said(say), answers.words(self.lang)))?)
    }

    /// Says which questions wait and how to go on; nothing where none does.
    pub(super) fn tell_of_questions(&self, session: SessionId, tally: &RunState) {
        if let Some((first, more)) = tally.questions.waiting.split_first() {
            talk(&self.lang.questions_wait(&first.what, more.len(), &session.to_string()));
        }
        self.lang.nobody_asked(&tally.refused_calls.unasked).iter().for_each(|words| talk(words));
    }

    async fn refuse(
        &self,
        session: SessionId,
        asked: &OpenQuestion,
        key: Option<&str>,
        tally: &mut RunState,
    ) -> anyhow::Result<()> {
        // Changes in a worktree stay there, and nothing was refused: how they are taken is said at the end.
        let merges = asked.action.kind == ActionKind::Merge;
        if !merges {
            tally.refused_calls.unasked.push((called(&asked.tool, &asked.action.target), asked.recourse));
        }
        tally.questions.sent.insert(asked.question, None);
        if key.is_none() && !merges {
            let (tool, target) = (asked.tool.clone(), asked.action.target.clone());
            let (by, basis) = (DecidedBy::Nobody("headless".to_owned()), asked.basis.clone());
            let recourse = asked.recourse;
            tally.refused_calls.denials.push(denial(
                &asked.tool,
                None,
                Some(&Refusal { tool, target, by, basis, recourse }),
            ));
        }
        let answer = PermissionAnswer::unattended(asked.action.kind, asked.recourse, asked.memory.rules());
        let command = Command::Answer { session, question: asked.question, answer };
        if !self.heard(command).await? {
            tally.questions.sent.remove(&asked.question);
        }
        Ok(())
    }

    /// Answers a question; `false` if it has an answer, or is no longer asked.
    pub(super) async fn heard(&self, command: Command) -> anyhow::Result<bool> {
        let cwd = self.cwd.display().to_string();
        let order = Order { by: self.by.clone(), cwd, key: EnvelopeId::new(new_id()), command };
        match self.handle.command(order).await {
            Ok(()) => Ok(true),
            Err(
                RuntimeError::Answered { .. }
                | RuntimeError::NoQuestion(_)
                | RuntimeError::PlanStopping(_)
                | RuntimeError::PlanReplaced(_),
            ) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Which agents the user's words have reached as the answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerReach {
    /// None: no question waited.
    Unheard,
    ByLead,
    /// Another agent, and not the lead.
    ByAnother,
}

/// A question that waits in the user's inbox.
#[derive(Debug)]
pub(super) struct WaitingQuestion {
    pub(super) question: QuestionId,
    kind: ActionKind,
    /// The call that it is about, for people.
    what: String,
    is_leads: bool,
}

impl WaitingQuestion {
    fn new(asked: &OpenQuestion, is_leads: bool) -> Self {
        let what = called(&asked.tool, &asked.action.target);
        Self { question: asked.question, kind: asked.action.kind, what, is_leads }
    }
}

/// A question as it was just heard.
fn asked_by(from: &Origin, at_ms: i64, asked: &QuestionAsked) -> OpenQuestion {
    let QuestionAsked { question, tool, action, rule, basis, recourse, memory, .. } = asked.clone();
    let (by, color) = (from.name.to_string(), from.color.as_deref().map(str::to_owned));
    let task = from.task.as_ref().map(|(_, task)| task.clone());
    OpenQuestion { question, tool, action, by, agent: from.agent, task, color, rule, basis, recourse, memory, at_ms }
}
