//! Which teammates get an approval for the whole session besides the agent that asked, and which of their questions it
//! answers.

use max_team_core::event::QuestionAnswered;
use max_team_core::id::{AgentId, QuestionId};
use max_team_core::policy::{DecidedBy, Grant, PermissionAnswer, Rules, Verdict, judge};
use max_team_core::turn::Turn;

use super::{NotedAnswer, PendingQuestion, UserMail};
use crate::agent::sharing_envelope;
use crate::error::RuntimeError;
use crate::read_model::fold_agent;
use crate::rows::{self, Matter};
use crate::session;

impl UserMail<'_> {
    /// Names of the teammates that were told of the approval in the answer to a question.
    pub fn told_of(&self, asked: &PendingQuestion) -> Result<Vec<String>, RuntimeError> {
        let Some(session) = asked.session else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for (name, teammate) in rows::teammates_there(self.journal, session)? {
            let envelope = sharing_envelope(asked.row.question, &session::agent_stream(teammate.agent));
            if self.journal.has_mail(envelope)? {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Like `told_of`, for a session that no process runs: the teammates that will be told, and the questions that
    /// will be answered by it.
    pub fn will_reach<'p>(
        &self,
        asked: &PendingQuestion,
        answer: &PermissionAnswer,
        others: &'p [PendingQuestion],
    ) -> Result<(Vec<String>, Vec<&'p PendingQuestion>), RuntimeError> {
        let (Some(session), Some(asker)) = (asked.session, agent_at(asked)) else { return Ok(Default::default()) };
        let (turn, _) = fold_agent(self.journal, asker)?;
        // `answer` records it as a person's, too.
        let answer = PermissionAnswer { by: DecidedBy::Person(String::new()), ..answer.clone() };
        let grants = turn.shared_grants(&QuestionAnswered { question: asked.row.question, answer });
        if turn.teammate().is_none() || grants.is_empty() {
            return Ok(Default::default());
        }
        let there =
            rows::teammates_there(self.journal, session)?.into_iter().filter(|(_, teammate)| teammate.agent != asker);
        let (mut names, agents): (Vec<String>, Vec<AgentId>) =
            there.map(|(name, teammate)| (name, teammate.agent)).unzip();
        names.sort_unstable();
        let mut answered = Vec::new();
        // An answer that was already given to a question takes precedence.
        for other in others.iter().filter(|other| other.noted.is_none()) {
            let Some(agent) = agent_at(other).filter(|agent| agents.contains(agent)) else { continue };
            let (turn, _) = fold_agent(self.journal, agent)?;
            if allows(&turn, other, &grants) {
                answered.push(other);
            }
        }
        Ok((names, answered))
    }

    /// Marks the questions that a lasting approval of another question will answer, once the session runs, as
    /// answered.
    pub fn note_along(&self, all: &mut [PendingQuestion]) -> Result<(), RuntimeError> {
        let said = all.iter().filter(|pending| pending.noted.as_ref().is_some_and(|noted| noted.until.is_some()));
        let mut along: Vec<(QuestionId, NotedAnswer)> = Vec::new();
        for (asked, noted) in said.filter_map(|pending| Some((pending, pending.noted.as_ref()?))) {
            let person = PermissionAnswer::new(true, DecidedBy::Person(String::new()));
            let answer = PermissionAnswer { always: true, until: noted.until.unwrap_or_default(), ..person };
            let mut others = all.to_vec();
            others.retain(|other| other.session == asked.session && other.row.question != asked.row.question);
            let (_, answered) = self.will_reach(asked, &answer, &others)?;
            let noted = NotedAnswer { until: None, ..noted.clone() };
            along.extend(answered.iter().map(|other| (other.row.question, noted.clone())));
        }
        for (question, noted) in along {
            let other = all.iter_mut().find(|other| other.row.question == question && other.noted.is_none());
            other.into_iter().for_each(|other| other.noted = Some(noted.clone()));
        }
        Ok(())
    }

    /// Whether a teammate's question was answered by the approval of another; `None`: that is not decided yet.
    pub fn is_answered_with(&self, asked: QuestionId, other: &PendingQuestion) -> Result<Option<bool>, RuntimeError> {
        let is_over = self.has_considered(asked, other)?;
        // Read last: it may have been answered meanwhile.
        let row = self.answered(other.row.question)?;
        Ok(row.map(|row| matches!(row.by, DecidedBy::Rule(_) | DecidedBy::Grant(_))).or(is_over.then_some(false)))
    }

    /// Whether the approval of another question can no longer answer this one: the teammate was not told of it, or has
    /// read it and still needs an answer.
    fn has_considered(&self, asked: QuestionId, other: &PendingQuestion) -> Result<bool, RuntimeError> {
        let envelope = sharing_envelope(asked, &other.row.address);
        if !self.journal.has_mail(envelope)? {
            return Ok(true);
        }
        if self.journal.pending_mail(&other.row.address)?.iter().any(|waiting| waiting.id == envelope) {
            return Ok(false);
        }
        // It has read the approval, and answers its question by itself if its rules now allow it.
        let Some(agent) = agent_at(other) else { return Ok(true) };
        let (turn, _) = fold_agent(self.journal, agent)?;
        Ok(!allows(&turn, other, &[]))
    }
}

fn agent_at(asked: &PendingQuestion) -> Option<AgentId> {
    asked.row.address.strip_prefix("agent/").and_then(|agent| agent.parse().ok())
}

/// Whether an agent still asks a question that its rules now allow, with additional grants.
fn allows(turn: &Turn, asked: &PendingQuestion, besides: &[Grant]) -> bool {
    let (Some(settings), Matter::Tool { tool, action, .. }) = (turn.settings(), &asked.row.matter) else {
        return false;
    };
    let grants = [turn.grants(), besides].concat();
    let judged = judge(&Rules { grants: &grants, ..settings.rules() }, tool, action);
    turn.asked_action(asked.row.question).is_some() && judged.verdict == Verdict::Allow
}
