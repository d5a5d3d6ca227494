//! What a prompt contains from memory, within bounds, and why.
//!
//! The lead's system text says who its user is (it changes only with those facts), and each message comes with the
//! facts that its words find. Both are marked as data. Every fact that went into a prompt is journalled with the turn,
//! together with the reason.

use std::collections::{HashMap, HashSet};

use max_team_core::context::{BYTES_PER_KILOTOKEN, tokens};
use max_team_core::event::Event;
use max_team_core::id::{SessionId, TurnId};
use max_team_core::limits::{
    MEMORY_PERSONALITY_BYTES_MAX, MEMORY_RECALL_TOKENS_MAX, MEMORY_RECALLED_MAX, MEMORY_STANDING_TOKENS_MAX,
};
use max_team_core::memory::{
    BoardScope, Fact, Key, Posting, Recall, RecallReason, RecalledFact, Section, is_verbatim, query_terms, score,
};
use max_team_core::text::visible;
use max_team_core::time::rfc3339;
use serde::Serialize;

use super::{Memories, rows};
use crate::error::RuntimeError;
use crate::session::Sessions;
use crate::template::fill;

const PERSONALITY: &str = include_str!("../../../../prompts/personality.md");
const STANDING: &str = include_str!("../../../../prompts/standing.md");
const RECALL: &str = include_str!("../../../../prompts/recall.md");
const DIALOG: &str = include_str!("../../../../prompts/dialog.md");

/// Facts that are read per term, the newest first: a term with more facts says little.
const POSTINGS_MAX: usize = 100;
/// Facts of a section that are read for the standing part of a prompt: more than fits.
const STANDING_FACTS_MAX: usize = 200;
/// A hit with a lower score than this share of the best, in thousandths, is not related to the question.
const SCORE_MILLI_MIN: f64 = 400.0;

/// A fact that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    pub scope: BoardScope,
    pub fact: Fact,
    /// The words that it has in common with the question.
    pub terms: Vec<String>,
    /// How well it fits.
    pub score: f64,
}

/// The facts that a turn's prompt contained, and when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecalledFacts {
    pub turn: TurnId,
    /// When it began.
    pub at_ms: i64,
    /// What the user had said.
    pub said: String,
    /// The facts, with their reasons.
    pub recall: Recall,
}

/// The part of a lead's system text that comes from memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemorySection {
    /// How the lead should speak; empty if nothing is remembered.
    pub personality: String,
    /// Who the user is; empty if nothing is remembered.
    pub known: String,
    /// The facts in both texts.
    pub facts: Vec<RecalledFact>,
    /// Number of facts that did not fit.
    pub left_out: usize,
}

impl Memories<'_> {
    /// The facts that match these words, the best first.
    pub fn search(&self, scopes: &[BoardScope], words: &str, limit: usize) -> Result<Vec<Hit>, RuntimeError> {
        let mut found: HashMap<(usize, String), (f64, Vec<String>, i64)> = HashMap::new();
        for term in query_terms(words) {
            for (board, scope) in scopes.iter().enumerate() {
                let having = self.journal.list(&rows::having(scope, &term), POSTINGS_MAX, None)?;
                let all = having.len();
                for item in having {
                    let Ok((count, of)) = serde_json::from_slice(&item.value) else { continue };
                    let hit = found.entry((board, item.key)).or_insert((0.0, Vec::new(), item.sort_ms));
                    if item.sort_ms > hit.2 {
                        // The terms so far belong to an older value.
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
        // Equal scores are ordered by time, then by key, so that the order is deterministic.
        ranked.sort_unstable_by(|((_, key), a), ((_, other), b)| {
            b.0.total_cmp(&a.0).then(b.2.cmp(&a.2)).then(key.cmp(other))
        });
        let mut hits = Vec::new();
        for ((board, key), (score, terms, at_ms)) in ranked {
            let (Some(scope), Ok(key)) = (scopes.get(board), key.parse::<Key>()) else { continue };
            // A row whose fact has changed or gone since is skipped. The terms are compared, because a fact may change
            // twice within a millisecond.
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

    /// The standing part of a lead's system text in this project.
    pub(crate) fn standing(&self, project: &BoardScope, soul: &str) -> Result<MemorySection, RuntimeError> {
        let mut standing = MemorySection::default();
        if !soul.is_empty() {
            standing.personality = format!("{}\n", soul.trim());
        }
        let mut lines = String::new();
        for section in [Section::Personality, Section::UserProfile, Section::Preferences] {
            for scope in [project, &BoardScope::User] {
                for fact in self.newest(scope, section, STANDING_FACTS_MAX)? {
                    // A project's fact takes precedence over the user's.
                    if standing.facts.iter().any(|told| told.key == fact.key) {
                        continue;
                    }
                    let why = if section == Section::Personality {
                        RecallReason::Personality
                    } else {
                        RecallReason::Standing
                    };
                    let fits = if section == Section::Personality {
                        let words = visible(fact.value_text().trim());
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

    /// Known facts related to these words, a line per fact.
    pub(crate) fn known(&self, project: &BoardScope, words: &str) -> Result<String, RuntimeError> {
        let mut lines = String::new();
        for section in [Section::Personality, Section::UserProfile, Section::Preferences] {
            for fact in self.newest(&BoardScope::User, section, STANDING_FACTS_MAX)? {
                add(&mut lines, &fact, MEMORY_STANDING_TOKENS_MAX);
            }
        }
        for hit in self.search(&[project.clone(), BoardScope::User], words, MEMORY_RECALLED_MAX)? {
            if !hit.fact.key.section().is_personal() {
                add(&mut lines, &hit.fact, MEMORY_STANDING_TOKENS_MAX + MEMORY_RECALL_TOKENS_MAX);
            }
        }
        Ok(lines)
    }

    /// The facts in the prompts of a session's turns, oldest first.
    pub fn told(&self, session: SessionId) -> Result<Vec<RecalledFacts>, RuntimeError> {
        let events = Sessions::new(self.journal).events(session)?;
        let told = events.into_iter().filter_map(|(at_ms, event)| match event {
            Event::TurnStarted(started) => {
                let said = max_team_core::chat::Message::user(started.input).text();
                Some(RecalledFacts { turn: started.turn, at_ms, said, recall: started.recall.unwrap_or_default() })
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
    project: &BoardScope,
    standing: &MemorySection,
    words: &str,
    begins: Option<&HashSet<SessionId>>,
) -> Result<Option<Recall>, RuntimeError> {
    let mut recall = Recall { facts: standing.facts.clone(), left_out: standing.left_out, ..Recall::default() };
    let scopes = [project.clone(), BoardScope::User];
    let hits = memories.search(&scopes, words, MEMORY_RECALLED_MAX + standing.facts.len())?;
    let best = hits.first().map_or(0.0, |hit| hit.score);
    let mut lines = String::new();
    for hit in hits {
        let known = recall.facts.iter().any(|known| known.key == hit.fact.key);
        // The state of a conversation is shown as a whole at the beginning of the next one, so it is no hit of a
        // search.
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
        recall.facts.push(told(&hit.scope, &hit.fact, RecallReason::Matched { terms: hit.terms, score_milli }));
    }
    if !lines.is_empty() {
        recall.text = fill(RECALL, &[("facts", lines.trim_end())]);
    }
    if let Some(left_out) = begins {
        let mut lines = String::new();
        for fact in memories.newest(project, Section::DialogContext, STANDING_FACTS_MAX)? {
            let is_told = fact.source.session.is_none_or(|session| !left_out.contains(&session));
            if is_told && add(&mut lines, &fact, MEMORY_RECALL_TOKENS_MAX) {
                recall.facts.push(told(project, &fact, RecallReason::LastConversation));
            }
        }
        if !lines.is_empty() {
            let dialog = fill(DIALOG, &[("facts", lines.trim_end())]);
            recall.text = [dialog, std::mem::take(&mut recall.text)].join("\n").trim_end().to_owned();
        }
    }
    Ok((!recall.facts.is_empty()).then_some(recall))
}

fn told(scope: &BoardScope, fact: &Fact, why: RecallReason) -> RecalledFact {
    RecalledFact { scope: scope.clone(), key: fact.key.clone(), at_ms: fact.at_ms, why }
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
