//! Questions of agents in a run without a chat: those to the user and those about a change of a file wait in the inbox, as
//! plans do.
//!
//! The agent that asked waits; the run ends once every agent rests or waits, and goes on with `-c` when the answer is there.
//! Anything else that needs a yes (a command, a web page) is refused: the agent can do without it and says so. So is
//! everything where the run listens for further messages, and what waited before the user went on with other words.

use max_team_core::event::{QuestionAsked, Refusal};
use max_team_core::id::{AgentId, EnvelopeId, QuestionId, SessionId};
use max_team_core::policy::{Answer, By, Deed, always_asks};
use max_team_runtime::{Asked, Command, Opened, Order, Origin, RuntimeError, new_id};

use super::tally::{Tally, denial};
use super::{Headless, Task, called, talk};

impl Headless {
    /// Questions that were open when the session was opened. A plan of a teammate is its lead's to answer.
    pub(super) async fn open_questions(
        &self,
        session: SessionId,
        opened: &Opened,
        tally: &mut Tally,
    ) -> anyhow::Result<()> {
        let goes_on = matches!(&self.task, Task::Say(text) if text.is_empty());
        for asked in opened.asked.iter().filter(|asked| asked.action.deed != Deed::Propose) {
            if goes_on && self.waits(asked.action.deed) {
                let what = called(&asked.tool, &asked.action.target);
                tally.waiting.push(Waiting { question: asked.question, agent: asked.agent, what });
            } else {
                self.refuse(session, asked, None, tally).await?;
            }
        }
        Ok(())
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
        if self.waits(asked.action.deed) {
            let what = called(&asked.tool, &asked.action.target);
            tally.waiting.push(Waiting { question: asked.question, agent: from.agent, what });
            return Ok(());
        }
        let key = from.lead.then_some(asked.key.as_str());
        self.refuse(session, &asked_by(from, at_ms, asked), key, tally).await
    }

    /// Whether a question waits for the user.
    fn waits(&self, deed: Deed) -> bool {
        matches!(deed, Deed::Ask | Deed::Write) && !matches!(self.task, Task::Listen)
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
            tally.unasked.push((called(&asked.tool, &asked.action.target), always_asks(&asked.rule)));
        }
        tally.sent.insert(asked.question);
        tally.asked_by.insert(asked.question, asked.by.clone());
        if key.is_none() && !merges {
            let (tool, target) = (asked.tool.clone(), asked.action.target.clone());
            let by = By::Nobody("headless".to_owned());
            tally.denials.push(denial(&asked.tool, None, Some(&Refusal { tool, target, by })));
        }
        let why = match asked.action.deed {
            _ if always_asks(&asked.rule) => "headless; no rule or mode allows it, a chat can ask (`max-team -c`)",
            Deed::Write => "headless; `--permission-mode acceptEdits` allows edits, a chat can ask",
            _ => "headless; a rule can allow it (`--allowed-tools`), a chat can ask",
        };
        let answer = Answer::new(false, By::Nobody(why.to_owned()));
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
            Err(RuntimeError::Answered { .. } | RuntimeError::NoQuestion(_) | RuntimeError::PlanStopping(_)) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A question that waits in the user's inbox.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) question: QuestionId,
    pub(super) agent: Option<AgentId>,
    /// The call that it is about, for people.
    what: String,
}

/// A question as it was just heard.
fn asked_by(from: &Origin, at_ms: i64, asked: &QuestionAsked) -> Asked {
    let QuestionAsked { question, tool, action, rule, memory, .. } = asked.clone();
    let (by, color) = (from.name.to_string(), from.color.as_deref().map(str::to_owned));
    let task = from.task.as_ref().map(|(_, task)| task.clone());
    Asked { question, tool, action, by, agent: from.agent, task, color, rule, memory, at_ms }
}
