//! Questions of agents in a run without a chat: those to the user and those about a change of a file wait in the inbox, as
//! plans do.
//!
//! The agent that asked waits; the run ends once every agent rests or waits, and goes on with `-c` when the answer is there.
//! `core::unattended` decides which questions wait; this carries it out.

use max_team_core::event::{QuestionAsked, Refusal};
use max_team_core::id::{AgentId, EnvelopeId, QuestionId, SessionId};
use max_team_core::policy::{Answer, By, Deed};
use max_team_core::unattended::{Question, on_question, on_reopening};
use max_team_runtime::{Asked, Command, Opened, Order, Origin, RuntimeError, new_id};

use super::tally::{Tally, denial};
use super::{Headless, Task, called, talk};
use crate::commands::short;

impl Headless {
    /// Takes in the questions that were open when the session was opened, and gives them the user's words, if there are some.
    /// Returns what is left to be said to the lead.
    pub(super) async fn open_questions(
        &self,
        session: SessionId,
        opened: &Opened,
        tally: &mut Tally,
    ) -> anyhow::Result<Words> {
        let words = match &self.task {
            Task::Say(text) => text.as_str(),
            _ => "",
        };
        let brings_words = !words.is_empty() || matches!(self.task, Task::Listen);
        for asked in &opened.asked {
            match on_reopening(asked.action.deed, brings_words) {
                Question::Waits => tally.waiting.push(Waiting::new(asked, asked.agent == Some(opened.agent))),
                Question::Refused => self.refuse(session, asked, None, tally).await?,
                Question::Left => {}
            }
        }
        if words.is_empty() { Ok(Words::Unheard) } else { self.answer_waiting(session, words, tally).await }
    }

    /// Gives the user's words to every question that waits.
    pub(super) async fn answer_waiting(
        &self,
        session: SessionId,
        words: &str,
        tally: &mut Tally,
    ) -> anyhow::Result<Words> {
        let mut heard = Words::Unheard;
        for Waiting { question, deed, who, what, is_leads, .. } in std::mem::take(&mut tally.waiting) {
            let answer = Answer::in_words(deed, words.to_owned(), By::person(&self.by));
            let is_put_off = answer.put_off;
            tally.sent.insert(question);
            tally.asked_by.insert(question, who);
            if !self.heard(Command::Answer { session, question, answer }).await? {
                tally.sent.remove(&question);
                continue;
            }
            talk(&if is_put_off { self.lang.call_put_off(&what) } else { self.lang.words_answer(&what) });
            heard = if is_leads || heard == Words::ByLead { Words::ByLead } else { Words::ByAnother };
        }
        Ok(heard)
    }

    /// An agent asks.
    pub(super) async fn question(
        &self,
        session: SessionId,
        at_ms: i64,
        from: &Origin,
        asked: &QuestionAsked,
        tally: &mut Tally,
    ) -> anyhow::Result<()> {
        let key = from.lead.then_some(asked.key.as_str());
        let asked = asked_by(from, at_ms, asked);
        match on_question(asked.action.deed, matches!(self.task, Task::Listen)) {
            Question::Waits => {
                let waiting = Waiting::new(&asked, from.lead);
                let id = short(&asked.question);
                talk(&self.lang.question_waits(&from.name, &waiting.what, &id, asked.action.deed == Deed::Ask));
                tally.waiting.push(waiting);
                Ok(())
            }
            Question::Refused => self.refuse(session, &asked, key, tally).await,
            Question::Left => Ok(()),
        }
    }

    /// Says which questions wait and how to go on; nothing where none does.
    pub(super) fn tell_of_questions(&self, session: SessionId, tally: &Tally) {
        if let Some((first, more)) = tally.waiting.split_first() {
            talk(&self.lang.questions_wait(&first.what, more.len(), &session.to_string()));
        }
        self.lang.nobody_asked(&tally.unasked).iter().for_each(|words| talk(words));
    }

    async fn refuse(
        &self,
        session: SessionId,
        asked: &Asked,
        key: Option<&str>,
        tally: &mut Tally,
    ) -> anyhow::Result<()> {
        // Changes in a worktree stay there, and nothing was refused: how they are taken is said at the end.
        let merges = asked.action.deed == Deed::Merge;
        if !merges {
            tally.unasked.push((called(&asked.tool, &asked.action.target), asked.recourse));
        }
        tally.sent.insert(asked.question);
        tally.asked_by.insert(asked.question, asked.by.clone());
        if key.is_none() && !merges {
            let (tool, target) = (asked.tool.clone(), asked.action.target.clone());
            let (by, recourse) = (By::Nobody("headless".to_owned()), asked.recourse);
            tally.denials.push(denial(&asked.tool, None, Some(&Refusal { tool, target, by, recourse })));
        }
        let answer = Answer::unattended(asked.action.deed, asked.recourse);
        let command = Command::Answer { session, question: asked.question, answer };
        if !self.heard(command).await? {
            tally.sent.remove(&asked.question);
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
pub(super) enum Words {
    /// None: no question waited.
    Unheard,
    /// The lead.
    ByLead,
    /// Another agent, and not the lead.
    ByAnother,
}

/// A question that waits in the user's inbox.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) question: QuestionId,
    pub(super) agent: Option<AgentId>,
    deed: Deed,
    /// The agent that asks.
    who: String,
    /// The call that it is about, for people.
    what: String,
    is_leads: bool,
}

impl Waiting {
    fn new(asked: &Asked, is_leads: bool) -> Self {
        let what = called(&asked.tool, &asked.action.target);
        let (question, agent, deed, who) = (asked.question, asked.agent, asked.action.deed, asked.by.clone());
        Self { question, agent, deed, who, what, is_leads }
    }
}

/// A question as it was just heard.
fn asked_by(from: &Origin, at_ms: i64, asked: &QuestionAsked) -> Asked {
    let QuestionAsked { question, tool, action, rule, recourse, memory, .. } = asked.clone();
    let (by, color) = (from.name.to_string(), from.color.as_deref().map(str::to_owned));
    let task = from.task.as_ref().map(|(_, task)| task.clone());
    Asked { question, tool, action, by, agent: from.agent, task, color, rule, recourse, memory, at_ms }
}
