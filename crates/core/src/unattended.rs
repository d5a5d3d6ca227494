//! What a run without a chat does about the questions of its agents: the user cannot be asked while it runs.
//!
//! A question to the user and a change of a file wait in the user's inbox, and the run ends with them. Any other call that
//! needs a yes is refused: the agent can do without it and says so. A user who goes on with new words is heard first: the
//! words answer a question that waited, and stand in for a decision about any other call.

use crate::policy::{Answer, By, Deed, Recourse};
use crate::verdict::Exit;

/// What becomes of a question that an agent asks during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// It waits in the inbox.
    Waits,
    /// It is refused at once, and the agent goes on.
    Refused,
    /// Another agent answers it.
    Left,
}

/// Decides about a question that an agent asks. A run that listens for further messages does not end with a question, so
/// nothing waits in it.
pub fn on_question(deed: Deed, listens: bool) -> Question {
    match deed {
        Deed::Ask | Deed::Write if !listens => Question::Waits,
        _ => Question::Refused,
    }
}

/// Decides about a question that waited when the session was opened again. Words of the user, in this run or in one that
/// listens for them, reach the agent before anything else is said to it.
pub fn on_reopening(deed: Deed, brings_words: bool) -> Question {
    match deed {
        // The plan of a teammate is its lead's to answer.
        Deed::Propose => Question::Left,
        _ if brings_words => Question::Waits,
        deed => on_question(deed, false),
    }
}

/// What a signal does to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The lead's turn is interrupted, and the run ends with it.
    Interrupts,
    /// The run is left at once; a plan that runs is paused by that.
    Leaves,
}

/// Decides what a signal does. Only the first Ctrl-C interrupts, and only where no plan runs.
pub fn on_signal(exit: Exit, is_stopped: bool, runs_plan: bool) -> Signal {
    if exit == Exit::Interrupted && !is_stopped && !runs_plan { Signal::Interrupts } else { Signal::Leaves }
}

impl Answer {
    /// The refusal of a call that needs a yes, with what would have helped.
    pub fn unattended(deed: Deed, recourse: Recourse) -> Self {
        let why = match (recourse, deed) {
            (Recourse::Person | Recourse::Nothing, _) => {
                "headless; no rule or mode allows it, a chat can ask (`max-team -c`)"
            }
            (Recourse::RuleOrMode, Deed::Write) => {
                "headless; `--permission-mode acceptEdits` allows edits, a chat can ask"
            }
            (Recourse::Mode, _) => "headless; another `--permission-mode` can allow it, a chat can ask",
            (Recourse::RuleOrMode | Recourse::Rule, _) => {
                "headless; a rule can allow it (`--allowed-tools`), a chat can ask"
            }
        };
        Self::new(false, By::Nobody(why.to_owned()))
    }

    /// The user's words where a question waited: they answer a question to the user; any other call is put off, and its agent
    /// reads them.
    pub fn in_words(deed: Deed, words: String, by: By) -> Self {
        let is_answer = deed == Deed::Ask;
        Self { comment: words, put_off: !is_answer, ..Self::new(is_answer, by) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_wait_or_are_refused() {
        let table = [
            (Deed::Ask, Question::Waits, Question::Waits, Question::Waits),
            (Deed::Write, Question::Waits, Question::Waits, Question::Waits),
            (Deed::Execute, Question::Refused, Question::Refused, Question::Waits),
            (Deed::Fetch, Question::Refused, Question::Refused, Question::Waits),
            (Deed::Merge, Question::Refused, Question::Refused, Question::Waits),
            (Deed::Propose, Question::Refused, Question::Left, Question::Left),
        ];
        for (deed, asked, reopened, with_words) in table {
            assert_eq!(on_question(deed, false), asked, "{deed:?}");
            assert_eq!(on_question(deed, true), Question::Refused, "{deed:?}");
            assert_eq!(on_reopening(deed, false), reopened, "{deed:?}");
            assert_eq!(on_reopening(deed, true), with_words, "{deed:?}");
        }
    }

    #[test]
    fn a_refusal_names_only_what_helps() {
        let table = [
            (Deed::Write, Recourse::RuleOrMode, "acceptEdits"),
            (Deed::Execute, Recourse::RuleOrMode, "--allowed-tools"),
            (Deed::Write, Recourse::Rule, "--allowed-tools"),
            (Deed::Execute, Recourse::Mode, "another `--permission-mode`"),
            (Deed::Write, Recourse::Person, "no rule or mode allows it"),
            (Deed::Execute, Recourse::Nothing, "no rule or mode allows it"),
        ];
        for (deed, recourse, words) in table {
            let By::Nobody(why) = Answer::unattended(deed, recourse).by else { panic!("{deed:?}") };
            assert!(why.contains(words), "{deed:?} {recourse:?}: {why}");
        }
    }

    #[test]
    fn only_the_first_ctrl_c_interrupts_and_a_plan_is_paused() {
        let table = [
            (Exit::Interrupted, false, false, Signal::Interrupts),
            (Exit::Interrupted, true, false, Signal::Leaves),
            (Exit::Interrupted, false, true, Signal::Leaves),
            (Exit::Terminated, false, false, Signal::Leaves),
        ];
        for (exit, is_stopped, runs_plan, want) in table {
            assert_eq!(on_signal(exit, is_stopped, runs_plan), want, "{exit:?}");
        }
    }

    #[test]
    fn words_answer_a_question_and_decide_nothing_else() {
        let by = || By::Person("me".to_owned());
        let answer = Answer::in_words(Deed::Ask, "blue".to_owned(), by());
        assert!(answer.allow && !answer.put_off);
        let answer = Answer::in_words(Deed::Write, "blue".to_owned(), by());
        assert!(!answer.allow && answer.put_off && answer.comment == "blue");
    }
}
