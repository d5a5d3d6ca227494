//! What a prompt is told from memory, within bounds, and why.
//!
//! The lead is always told who its user is (in its system text, which stays the same as long as they do), and with each
//! message what the message's words find. Both say that they are data. Whatever went into a prompt is journalled with
//! the turn, together with the reason.

use std::collections::{HashMap, HashSet};

use max_team_core::context::{BYTES_PER_KILOTOKEN, tokens};
use max_team_core::event::Event;
use max_team_core::id::{SessionId, TurnId};
use max_team_core::limits::{
    MEMORY_PERSONALITY_BYTES_MAX, MEMORY_RECALL_TOKENS_MAX, MEMORY_RECALLED_MAX, MEMORY_STANDING_TOKENS_MAX,
};
use max_team_core::memory::{
    Fact, Key, Posting, Recall, Recalled, Scope, Section, Why, is_verbatim, query_terms, score,
};
use max_team_core::text::visible;
use max_team_core::time::rfc3339;
use serde::Serialize;

use super::{Memories, rows};
use crate::error::RuntimeError;
use crate::prompt::fill;
use crate::session::Sessions;

const PERSONALITY: &str = include_str!("../../../../prompts/personality.md");
const STANDING: &str = include_str!("../../../../prompts/standing.md");
const RECALL: &str = include_str!("../../../../prompts/recall.md");
const DIALOG: &str = include_str!("../../../../prompts/dialog.md");

/// Facts that are looked at per term, the newest first: a word that more of them have tells little.
const POSTINGS_MAX: usize = 100;
/// Facts of a section that are looked at for what a lead is always told: more than there is room for.
const STANDING_FACTS_MAX: usize = 200;
/// What is not at least so good as the best, in thousandths, has too little to do with the question.
const SCORE_MILLI_MIN: f64 = 400.0;

/// A fact that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// On which board.
    pub scope: Scope,
    /// The fact.
    pub fact: Fact,
    /// The words that it has in common with the question.
    pub terms: Vec<String>,
    /// How well it fits.
    pub score: f64,
}

/// What a turn was told, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The turn.
    pub turn: TurnId,
    /// When it began.
    pub at_ms: i64,
    /// What the user had said.
    pub said: String,
    /// What it was told from memory.
    pub recall: Recall,
}

/// What a lead is always told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    /// How it speaks; empty if nobody said.
    pub personality: String,
    /// Who its user is; empty if nobody knows.
    pub known: String,
    /// The facts behind both.
    pub facts: Vec<Recalled>,
    /// Facts that found no room.
    pub left_out: usize,
}

impl Memories<'_> {
    /// What words find, the best first.
    pub fn search(&self, scopes: &[Scope], words: &str, limit: usize) -> Result<Vec<Hit>, RuntimeError> {
        let mut found: HashMap<(usize, String), (f64, Vec<String>, i64)> = HashMap::new();
        for term in query_terms(words) {
            for (board, scope) in scopes.iter().enumerate() {
                let having = self.journal.list(&rows::having(scope, &term), POSTINGS_MAX, None)?;
                let all = having.len();
                for item in having {
                    let Ok((count, of)) = serde_json::from_slice(&item.value) else { continue };
                    let hit = found.entry((board, item.key)).or_insert((0.0, Vec::new(), item.sort_ms));
                    if item.sort_ms > hit.2 {
                        // What was found so far belongs to an older value.
                        *hit = (0.0, Vec::new(), item.sort_ms);
                    }
                    if item.sort_ms == hit.2 {
                        hit.0 += score(Posting { count, of }, all);
                        hit.1.push(term.clone());
                    }
                }
            }
        }
        let mut ranked: Vec<_> = found.into_iter().collect();
        // Of two that fit equally well, the newer; then by name, so that the order is always the same.
        ranked.sort_unstable_by(|((_, key), a), ((_, other), b)| {
            b.0.total_cmp(&a.0).then(b.2.cmp(&a.2)).then(key.cmp(other))
        });
        let mut hits = Vec::new();
        for ((board, key), (score, terms, at_ms)) in ranked {
            let (Some(scope), Ok(key)) = (scopes.get(board), key.parse::<Key>()) else { continue };
            // A term whose fact has changed or gone since says nothing; it may have changed twice in a moment.
            let has_them = |fact: &Fact| {
                let own = max_team_core::memory::terms(&fact.key, &fact.value);
                fact.at_ms == at_ms && terms.iter().all(|term| own.contains_key(term))
            };
            if let Some(fact) = self.fact(scope, &key)?.filter(has_them) {
                hits.push(Hit { scope: scope.clone(), fact, terms, score });
            }
            if hits.len() >= limit {
                break;
            }
        }
        Ok(hits)
    }

    /// What a lead in this project is always told.
    pub(crate) fn standing(&self, project: &Scope, soul: &str) -> Result<Standing, RuntimeError> {
        let mut standing = Standing::default();
        if !soul.is_empty() {
            standing.personality = format!("{}\n", soul.trim());
        }
        let mut lines = String::new();
        for section in [Section::Personality, Section::UserProfile, Section::Preferences] {
            for scope in [project, &Scope::User] {
                for fact in self.newest(scope, section, STANDING_FACTS_MAX)? {
                    // What a project says takes the place of what holds everywhere.
                    if standing.facts.iter().any(|told| told.key == fact.key) {
                        continue;
                    }
                    let why = if section == Section::Personality { Why::Personality } else { Why::Standing };
                    let fits = if section == Section::Personality {
                        let words = visible(fact.words().trim());
                        let fits = standing.personality.len() + words.len() <= MEMORY_PERSONALITY_BYTES_MAX;
                        if fits {
                            standing.personality.push_str(&format!("{words}\n"));
                        }
                        fits
                    } else {
                        add(&mut lines, &fact, MEMORY_STANDING_TOKENS_MAX)
                    };
                    if fits {
                        standing.facts.push(told(scope, &fact, why));
                    } else {
                        standing.left_out += 1;
                    }
                }
            }
        }
        if !standing.personality.is_empty() {
            standing.personality = fill(PERSONALITY, &[("personality", standing.personality.trim())]);
        }
        if !lines.is_empty() {
            standing.known = fill(STANDING, &[("facts", lines.trim_end())]);
        }
        Ok(standing)
    }

    /// What is known already of what words are about, a line per fact.
    pub(crate) fn known(&self, project: &Scope, words: &str) -> Result<String, RuntimeError> {
        let mut lines = String::new();
        for section in [Section::Personality, Section::UserProfile, Section::Preferences] {
            for fact in self.newest(&Scope::User, section, STANDING_FACTS_MAX)? {
                add(&mut lines, &fact, MEMORY_STANDING_TOKENS_MAX);
            }
        }
        for hit in self.search(&[project.clone(), Scope::User], words, MEMORY_RECALLED_MAX)? {
            if !hit.fact.key.section().is_personal() {
                add(&mut lines, &hit.fact, MEMORY_STANDING_TOKENS_MAX + MEMORY_RECALL_TOKENS_MAX);
            }
        }
        Ok(lines)
    }

    /// What each turn of a session was told from memory, oldest first.
    pub fn told(&self, session: SessionId) -> Result<Vec<Told>, RuntimeError> {
        let events = Sessions::new(self.journal).events(session)?;
        let told = events.into_iter().filter_map(|(at_ms, event)| match event {
            Event::TurnStarted(started) => {
                let said = max_team_core::chat::Message::user(started.input).text();
                Some(Told { turn: started.turn, at_ms, said, recall: started.recall.unwrap_or_default() })
            }
            _ => None,
        });
        Ok(told.collect())
    }
}

/// The memory text of a turn: the fixed facts for the lead, facts that match the user's message and, in the first turn
/// of a session, the state of the last conversation in the project, unless it is one of those in `begins`.
pub(crate) fn recalled(
    memories: &Memories<'_>,
    project: &Scope,
    standing: &Standing,
    words: &str,
    begins: Option<&HashSet<SessionId>>,
) -> Result<Option<Recall>, RuntimeError> {
    let mut recall = Recall { facts: standing.facts.clone(), left_out: standing.left_out, ..Recall::default() };
    let scopes = [project.clone(), Scope::User];
    let hits = memories.search(&scopes, words, MEMORY_RECALLED_MAX + standing.facts.len())?;
    let best = hits.first().map_or(0.0, |hit| hit.score);
    let mut lines = String::new();
    for hit in hits {
        let known = recall.facts.iter().any(|known| known.key == hit.fact.key);
        // Where a conversation stood is told to the next one as a whole, and not again within itself.
        let is_dialog = hit.fact.key.section() == Section::DialogContext;
        if known || is_dialog || hit.score * 1_000.0 < best * SCORE_MILLI_MIN {
            continue;
        }
        let matched = recall.facts.len() - standing.facts.len();
        if matched >= MEMORY_RECALLED_MAX || !add(&mut lines, &hit.fact, MEMORY_RECALL_TOKENS_MAX) {
            recall.left_out += 1;
            continue;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a score is small and positive")]
        let score_milli = (hit.score * 1_000.0) as u64;
        recall.facts.push(told(&hit.scope, &hit.fact, Why::Matched { terms: hit.terms, score_milli }));
    }
    if !lines.is_empty() {
        recall.text = fill(RECALL, &[("facts", lines.trim_end())]);
    }
    if let Some(left_out) = begins {
        let mut lines = String::new();
        for fact in memories.newest(project, Section::DialogContext, STANDING_FACTS_MAX)? {
            let is_told = fact.source.session.is_none_or(|session| !left_out.contains(&session));
            if is_told && add(&mut lines, &fact, MEMORY_RECALL_TOKENS_MAX) {
                recall.facts.push(told(project, &fact, Why::LastConversation));
            }
        }
        if !lines.is_empty() {
            let dialog = fill(DIALOG, &[("facts", lines.trim_end())]);
            recall.text = [dialog, std::mem::take(&mut recall.text)].join("\n").trim_end().to_owned();
        }
    }
    Ok((!recall.facts.is_empty()).then_some(recall))
}

fn told(scope: &Scope, fact: &Fact, why: Why) -> Recalled {
    Recalled { scope: scope.clone(), key: fact.key.clone(), at_ms: fact.at_ms, why }
}

/// Adds a fact's line if there is room for it.
fn add(lines: &mut String, fact: &Fact, tokens_max: u64) -> bool {
    let line = line(fact);
    if tokens(lines.len() + line.len(), BYTES_PER_KILOTOKEN) > tokens_max {
        return false;
    }
    lines.push_str(&line);
    true
}

/// A fact with where it came from, on one line: it cannot pass for a heading, a list or a message of its own.
fn line(fact: &Fact) -> String {
    let words = visible(&fact.value.to_string()).replace('<', "\\u{3c}");
    let day = rfc3339(fact.at_ms);
    let day = day.split_once('T').map_or(day.as_str(), |(day, _)| day);
    // A value that is not in the user's own words is shown with the quote.
    let quote = visible(&fact.source.quote).replace('<', "\\u{3c}");
    let said = match quote.is_empty() || is_verbatim(&fact.value, &fact.source.quote) {
        true => String::new(),
        false => format!(", from “{quote}”"),
    };
    format!("- {}: {words} ({}, {day}{said})\n", fact.key, fact.by.name())
}
