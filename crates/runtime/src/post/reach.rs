//! Whom a yes for the whole session reaches besides whoever asked, and which of their questions it answers.

use max_team_core::id::QuestionId;
use max_team_core::policy::{By, Rules, Verdict, judge};

use super::{Pending, Post};
use crate::agent::sharing_letter;
use crate::census::fold_agent;
use crate::error::RuntimeError;
use crate::rows::{self, MateRow, Matter};
use crate::session;

impl Post<'_> {
    /// The colleagues who were told of what was allowed with the answer to a question, by name.
    pub fn told_of(&self, asked: &Pending) -> Result<Vec<String>, RuntimeError> {
        let Some(session) = asked.session else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for (name, mate) in rows::rows::<MateRow>(self.journal, &rows::mates_of(&session.to_string()))? {
            let letter = sharing_letter(asked.row.question, &session::agent_stream(mate.agent));
            if mate.gone.is_none() && self.journal.has_mail(letter)? {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Whether a colleague's question is answered by what was allowed with the answer to another; `None`: that is not over yet.
    pub fn is_answered_with(&self, asked: QuestionId, other: &Pending) -> Result<Option<bool>, RuntimeError> {
        let is_over = self.has_considered(asked, other)?;
        // Looked at last: it may have been answered while the rest was read.
        let row = self.answered(other.row.question)?;
        Ok(row.map(|row| matches!(row.by, By::Rule(_))).or(is_over.then_some(false)))
    }

    /// Whether a colleague will not answer its own question by what another was allowed, or has.
    fn has_considered(&self, asked: QuestionId, other: &Pending) -> Result<bool, RuntimeError> {
        let letter = sharing_letter(asked, &other.row.address);
        if !self.journal.has_mail(letter)? {
            return Ok(true);
        }
        if self.journal.pending_mail(&other.row.address)?.iter().any(|waiting| waiting.id == letter) {
            return Ok(false);
        }
        // It has read it, and is about to answer itself if it may.
        let agent = other.row.address.strip_prefix("agent/").and_then(|agent| agent.parse().ok());
        let (Some(agent), Matter::Tool { tool, action, .. }) = (agent, &other.row.matter) else { return Ok(true) };
        let (turn, _) = fold_agent(self.journal, agent)?;
        let Some(settings) = turn.settings() else { return Ok(true) };
        let judged = judge(&Rules { grants: turn.grants(), ..settings.rules() }, tool, action);
        Ok(turn.asks(other.row.question).is_none() || judged.verdict != Verdict::Allow)
    }
}
