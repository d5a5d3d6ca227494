//! Frees space in the context window: the call for a summary, and the facts that are kept without a model.
//!
//! Facts are written from state when the summary arrives: open plans, waiting questions, files, skills, the last
//! messages. They are in the window even if the model leaves them out.

use std::fmt::Write as _;
use std::sync::Arc;

use max_team_core::chat::{Message, Part};
use max_team_core::context::Window;
use max_team_core::context::files::{TouchedFile, touched_files};
use max_team_core::context::summary::Summary;
use max_team_core::event::LlmIntent;
use max_team_core::limits::{FACTS_BYTES_MAX, SUMMARY_WORDS_BYTES_MAX};
use max_team_core::turn::TurnInput;
use max_team_llm::{Head, Request, RequestOptions, Transcript};

use super::{Agent, Extra};
use crate::active_session::fold_plan;
use crate::error::RuntimeError;
use crate::plan::about_words;
use crate::read_model::ReadModel;
use crate::rows::Matter;
use crate::skills;
use crate::user_mail::UserMail;

/// Prompt for a summary.
pub(crate) const PROMPT: &str = include_str!("../../../../prompts/compact.md");
/// Files that are listed, the last touched first.
const FILES_MAX: usize = 60;

impl Agent {
    /// The request for a summary: a conversation of its own, without tools.
    pub(super) fn summary_request(&self, intent: &LlmIntent, about: &Summary) -> Request {
        let mut transcript = Transcript::new(self.active.shared.router.wire(&intent.model));
        transcript.instruct(Arc::new(Head::new(transcript.wire().dialect, PROMPT, &[])));
        transcript.belongs_to(&self.speaker());
        transcript.push(&Message::user(vec![Part::text(self.turn.asked_for(about, &intent.model))]));
        let (number, max_tokens, window) = (intent.call, intent.max_tokens, Window::default());
        transcript.request(&RequestOptions { number, max_tokens, tools_off: false, window, upto: 1 })
    }

    /// Summarizes the conversation so far; whether there is anything to summarize, and no turn runs.
    pub(super) async fn compact(&mut self, keep: String) -> Result<bool, RuntimeError> {
        if self.turn.is_busy() {
            return Ok(false);
        }
        self.running.begin_turn();
        self.step(TurnInput::Compact { turn: self.active.fresh_turn(), keep }, Extra::default()).await?;
        Ok(self.turn.is_busy())
    }

    /// Takes the last compaction back; whether there was one.
    pub(super) async fn uncompact(&mut self) -> Result<bool, RuntimeError> {
        let head = self.turn.head;
        self.step(TurnInput::Uncompact, Extra::default()).await?;
        Ok(self.turn.head > head)
    }

    /// Facts that a compaction keeps without a model. Those that cannot be read are left out; if the journal is
    /// broken, the next commit reports it.
    pub(super) fn facts(&self, about: &Summary) -> String {
        let mut facts = String::new();
        let sections = [
            ("Your task", self.task_told()),
            (
                "Plans that are not over",
                if self.turn.origin.lead { self.plans_told().unwrap_or_default() } else { Vec::new() },
            ),
            ("Questions that wait for the user", self.questions_told().unwrap_or_default()),
            ("Skills that were loaded (load one again if you need its text)", self.skills_told()),
            ("Files in this conversation (read one again before you rely on it)", self.files_told()),
        ];
        let words = self.turn.asked_before(about.before).unwrap_or_default();
        let words = words.get(..words.floor_char_boundary(SUMMARY_WORDS_BYTES_MAX)).unwrap_or_default();
        for (title, lines) in sections.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            let _ = writeln!(facts, "{title}:");
            for line in lines {
                // The last messages below always have room.
                if facts.len() + line.len() + words.len() > FACTS_BYTES_MAX {
                    facts.push_str("- [more is left out]\n");
                    break;
                }
                let _ = writeln!(facts, "- {line}");
            }
        }
        if !words.is_empty() {
            let _ = writeln!(facts, "The last request before what follows, word for word:\n{words}");
        }
        facts
    }

    fn task_told(&self) -> Vec<String> {
        let told = |task: &max_team_core::message::Assignment| format!("`{}`: {}", task.task, task.title);
        self.turn.assignment().filter(|task| !task.title.is_empty()).map(told).into_iter().collect()
    }

    fn plans_told(&self) -> Result<Vec<String>, RuntimeError> {
        let shared = &self.active.shared;
        let mut lines = Vec::new();
        for id in ReadModel::new(&shared.journal).open_plans(Some(self.active.session))? {
            let (plan, _) = fold_plan(shared, id)?;
            lines.push(format!("plan `{id}`: {}", plan.draft().map_or("", |draft| &draft.goal)));
            for view in plan.tasks() {
                let (task, status) = (view.task, view.status.name());
                lines.push(format!("task `{}` ({}): {status}, attempt {}", task.id, view.member, view.attempt));
            }
        }
        Ok(lines)
    }

    fn questions_told(&self) -> Result<Vec<String>, RuntimeError> {
        let inbox = UserMail::new(&self.active.shared.journal).inbox()?;
        let mine = inbox.into_iter().filter(|pending| pending.session == Some(self.active.session));
        let told = mine.map(|pending| match &pending.row.matter {
            Matter::Tool { tool, action, .. } => format!("{} asks: `{tool}` {}", pending.who, action.target),
            Matter::Plan(about) => format!("{} asks: {}", pending.who, about_words(about)),
        });
        Ok(told.collect())
    }

    fn skills_told(&self) -> Vec<String> {
        let mut names = skills::loaded(self.turn.history(), self.turn.origin.lead);
        names.sort_unstable();
        names.dedup();
        names
    }

    fn files_told(&self) -> Vec<String> {
        touched_files(self.turn.history()).iter().rev().take(FILES_MAX).map(TouchedFile::summary_line).collect()
    }
}
