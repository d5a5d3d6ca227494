//! Every phrase of the interface, in English and Chinese.
//!
//! The sentences are in `i18n/en.toml` and `i18n/zh.toml`; the build makes a method of `Lang` from each and fails if one
//! language lacks it. The methods in these modules choose between sentences. Texts of models, tools and errors of other
//! crates are shown as they are.

use max_team_core::cost::Spending;
use max_team_core::event::TurnOutcome;
use max_team_core::recovery::Failure;

use crate::config::choice::WhileBusy;
use crate::format::{duration, seconds_up, spent, tokens};

/// The language that the interface speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    #[default]
    En,
    Zh,
}

include!(concat!(env!("OUT_DIR"), "/phrases.rs"));

/// A text in both languages, for code that does not know the user's. Without a translation, the English text is in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    english: Box<str>,
    chinese: Box<str>,
}

impl Translated {
    pub fn new(words: impl Fn(Lang) -> String) -> Self {
        Self { english: words(Lang::En).into(), chinese: words(Lang::Zh).into() }
    }

    /// Words behind the place that they are about.
    pub fn at(place: impl std::fmt::Display, words: impl Fn(Lang) -> String) -> Self {
        Self::new(|lang| lang.headed(&place, words(lang)))
    }

    pub fn get(&self, lang: Lang) -> &str {
        match lang {
            Lang::En => &self.english,
            Lang::Zh => &self.chinese,
        }
    }
}

impl From<String> for Translated {
    fn from(text: String) -> Self {
        Self { english: text.clone().into(), chinese: text.into() }
    }
}

impl From<&str> for Translated {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

pub use first_steps::LineFault;
pub use journal::CostBy;
pub use models::ModelFault;

/// The heads of a table, which a data file gives in one line.
fn heads<const N: usize>(line: &'static str) -> [&'static str; N] {
    let mut heads = line.split(',');
    std::array::from_fn(|_| heads.next().unwrap_or_default())
}

/// A name as it begins a sentence.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

mod agent_files;
mod agents;
mod cache;
mod evidence;
mod files;
mod first_steps;
mod journal;
mod maintenance;
mod mcp;
mod memory;
mod models;
mod reasons;
mod replay;
mod rewind;
mod run;
mod serve;
mod skills;
mod spans;
mod stream;
mod system;
mod tasks;
mod team;
mod teammates;
mod web;
mod worktrees;

#[cfg(test)]
mod tests;

impl Lang {
    /// What a built-in tool, agent or skill does.
    pub fn about(self, name: &str) -> Option<&'static str> {
        let (_, english, chinese) = ABOUT.iter().find(|(known, ..)| *known == name)?;
        Some(if self == Self::En { english } else { chinese })
    }

    pub fn thought_for(self, ms: u64) -> String {
        self.thought_time(duration(ms))
    }

    pub fn retrying_in(self, ms: u64) -> String {
        self.retrying_after(seconds_up(ms))
    }

    pub fn pacing(self, ms: u64) -> String {
        self.pacing_for(seconds_up(ms))
    }

    pub fn retry(self, failure: &Failure, ms: u64, nth: u32, of: u32) -> String {
        self.retry_number(self.failure(failure), self.retrying_in(ms), nth, of)
    }

    /// The same where there is room; what is being written may be what takes it.
    pub fn window_too_small(self, id: &str, has_draft: bool) -> String {
        match has_draft {
            false => self.window_too_small_for_question(id),
            true => self.window_too_small_with_draft().to_owned(),
        }
    }

    pub fn unknown_command(self, name: &str, nearest: Option<&str>) -> String {
        match nearest {
            Some(nearest) => self.unknown_slash_near(name, nearest),
            None => self.unknown_slash(name),
        }
    }

    pub fn ago(self, ms: u64) -> String {
        let minutes = ms / 60_000;
        match minutes {
            0 => self.just_now().to_owned(),
            1..=59 => self.minutes_ago(minutes),
            60..=1_439 => self.hours_ago(minutes / 60),
            _ => self.days_ago(minutes / 1_440),
        }
    }

    /// The line under a turn: tokens, money, time.
    pub fn footer(self, sum: &Spending, ms: u64) -> String {
        let money = sum.known_nano().filter(|nano| *nano > 0);
        let money = money.map_or_else(String::new, |nano| format!(" · {}", spent(nano, sum.unknown_nano)));
        let (input, output) = (tokens(sum.usage.input_total()), tokens(sum.usage.output));
        self.turn_footer(input, output, money, duration(ms))
    }

    /// The placeholder of the empty input line; `who` is the agent that the user talks to.
    pub fn placeholder(self, who: &str) -> String {
        let name = capital(who);
        self.ask_or_give_task(&name)
    }

    pub fn failure(self, failure: &Failure) -> &'static str {
        match failure {
            Failure::Auth => self.failure_auth(),
            Failure::RateLimited { .. } => self.failure_rate_limited(),
            Failure::Overloaded { .. } => self.failure_overloaded(),
            Failure::ContextOverflow => self.failure_context_overflow(),
            Failure::InvalidRequest => self.failure_invalid_request(),
            Failure::Server { .. } => self.failure_server(),
            Failure::Network => self.failure_network(),
            Failure::Timeout => self.failure_timeout(),
            Failure::Truncated => self.failure_truncated(),
            Failure::Malformed => self.failure_malformed(),
            Failure::TooLarge => self.failure_too_large(),
            Failure::Setup => self.failure_setup(),
            Failure::Unrecorded => self.failure_unrecorded(),
        }
    }

    /// What to do about a call that failed for good.
    fn remedy(self, failure: &Failure) -> &'static str {
        match failure {
            Failure::Auth => self.remedy_auth(),
            Failure::ContextOverflow => self.remedy_context_overflow(),
            Failure::InvalidRequest => self.remedy_invalid_request(),
            Failure::Network => self.remedy_network(),
            Failure::TooLarge => self.remedy_too_large(),
            Failure::Setup => self.remedy_setup(),
            Failure::Unrecorded => self.remedy_unrecorded(),
            _ => self.remedy_other(),
        }
    }

    /// What Enter does.
    pub fn enter_does(self, while_busy: WhileBusy) -> &'static str {
        match while_busy {
            WhileBusy::Steer => self.enter_does_steer(),
            WhileBusy::Queue => self.enter_does_queue(),
            WhileBusy::Interrupt => self.enter_does_interrupt(),
        }
    }

    /// The message that the user wanted to take back was already read.
    pub fn too_late_to_take_back(self, who: &str) -> String {
        let who = capital(who);
        self.message_already_read(&who)
    }

    /// How a turn ended, if it is worth a line, and what to do next.
    pub fn end(self, end: &TurnOutcome) -> Option<String> {
        let words = match end {
            TurnOutcome::Answered | TurnOutcome::Proposed => return None,
            TurnOutcome::Failed { failure, detail } => {
                let what = self.failure(failure);
                return Some(format!("{what}: {detail}\n{}", self.remedy(failure)));
            }
            TurnOutcome::Broken { detail } => {
                let next = self.fix_then_say();
                return Some(format!("{detail}\n{next}"));
            }
            TurnOutcome::Interrupted => self.end_interrupted(),
            TurnOutcome::Truncated => self.end_truncated(),
            TurnOutcome::Refused => self.end_refused(),
            TurnOutcome::Empty => self.end_empty(),
            TurnOutcome::Unstructured => self.end_unstructured(),
            TurnOutcome::Looping => self.end_looping(),
            TurnOutcome::Rounds => self.end_rounds(),
            TurnOutcome::Budget => self.end_budget(),
        };
        Some(words.to_owned())
    }
}
