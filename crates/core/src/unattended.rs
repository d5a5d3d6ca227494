//! What a run without a chat does about questions of its agents, as the user cannot be asked during the run.
//!
//! A question to the user and a change of a file wait in the user's inbox, and the run ends with them. Any other call
//! that needs an approval is refused: the agent can do without it and reports that. If the user continues with a new
//! message, the message comes first: it answers a question that waited, and replaces a decision about any other call.

use crate::policy::{ActionKind, DecidedBy, PermissionAnswer, Recourse};

/// What happens to a question that an agent asks during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnattendedQuestion {
    /// It waits in the inbox.
    Waits,
    /// It is refused at once, and the agent continues.
    Refused,
    /// Another agent answers it.
    Left,
}

/// Decides about a question that an agent asks. A run that listens for further messages does not end with a question,
/// so nothing waits in it.
pub fn on_question(kind: ActionKind, listens: bool) -> UnattendedQuestion {
    match kind {
        ActionKind::Ask | ActionKind::Write if !listens => UnattendedQuestion::Waits,
        _ => UnattendedQuestion::Refused,
    }
}

/// Decides about a question that waited when the session was opened again. A message of the user, given with this run
/// or expected by a run that listens, reaches the agent before anything else.
pub fn on_reopening(kind: ActionKind, brings_words: bool) -> UnattendedQuestion {
    match kind {
        // The lead answers the plan of its teammate.
        ActionKind::Propose => UnattendedQuestion::Left,
        _ if brings_words => UnattendedQuestion::Waits,
        kind => on_question(kind, false),
    }
}

impl PermissionAnswer {
    /// The refusal of a call that needs an approval, with what would have helped. `rules`: those that would allow it.
    pub fn unattended(kind: ActionKind, recourse: Recourse, rules: &[String]) -> Self {
        let why = match (recourse, kind) {
            (Recourse::RuleOrMode | Recourse::Rule, kind) if kind != ActionKind::Write && !rules.is_empty() => {
                let why = format!("this run has no chat; `--allowed-tools '{}'` allows it", rules.join(" "));
                return Self::new(false, DecidedBy::Nobody(why));
            }
            (Recourse::Person | Recourse::Nothing, _) => {
                "this run has no chat; only the user can allow it, in a chat (`max-team -c`)"
            }
            (Recourse::RuleOrMode, ActionKind::Write) => {
                "this run has no chat; `--permission-mode acceptEdits` allows it"
            }
            (Recourse::Mode, _) => "this run has no chat; another `--permission-mode` can allow it",
            (Recourse::RuleOrMode | Recourse::Rule, _) => {
                "this run has no chat; a rule can allow it (`--allowed-tools`)"
            }
        };
        Self::new(false, DecidedBy::Nobody(why.to_owned()))
    }

    /// The user's message where a question waited: it answers a question to the user; any other call is postponed, and
    /// its agent reads the message.
    pub fn from_message(kind: ActionKind, words: String, by: DecidedBy) -> Self {
        let is_answer = kind == ActionKind::Ask;
        Self { comment: words, put_off: !is_answer, ..Self::new(is_answer, by) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_wait_or_are_refused() {
        let table = [
            (ActionKind::Ask, UnattendedQuestion::Waits, UnattendedQuestion::Waits, UnattendedQuestion::Waits),
            (ActionKind::Write, UnattendedQuestion::Waits, UnattendedQuestion::Waits, UnattendedQuestion::Waits),
            (ActionKind::Execute, UnattendedQuestion::Refused, UnattendedQuestion::Refused, UnattendedQuestion::Waits),
            (ActionKind::Fetch, UnattendedQuestion::Refused, UnattendedQuestion::Refused, UnattendedQuestion::Waits),
            (ActionKind::Merge, UnattendedQuestion::Refused, UnattendedQuestion::Refused, UnattendedQuestion::Waits),
            (ActionKind::Propose, UnattendedQuestion::Refused, UnattendedQuestion::Left, UnattendedQuestion::Left),
        ];
        for (kind, asked, reopened, with_words) in table {
            assert_eq!(on_question(kind, false), asked, "{kind:?}");
            assert_eq!(on_question(kind, true), UnattendedQuestion::Refused, "{kind:?}");
            assert_eq!(on_reopening(kind, false), reopened, "{kind:?}");
            assert_eq!(on_reopening(kind, true), with_words, "{kind:?}");
        }
    }

    #[test]
    fn a_refusal_names_only_useful_flags() {
        let table = [
            (ActionKind::Write, Recourse::RuleOrMode, "acceptEdits"),
            (ActionKind::Execute, Recourse::RuleOrMode, "--allowed-tools"),
            (ActionKind::Write, Recourse::Rule, "--allowed-tools"),
            (ActionKind::Execute, Recourse::Mode, "another `--permission-mode`"),
            (ActionKind::Write, Recourse::Person, "only the user can allow it"),
            (ActionKind::Execute, Recourse::Nothing, "only the user can allow it"),
        ];
        for (kind, recourse, words) in table {
            let DecidedBy::Nobody(why) = PermissionAnswer::unattended(kind, recourse, &[]).by else {
                panic!("{kind:?}")
            };
            assert!(why.contains(words), "{kind:?} {recourse:?}: {why}");
        }
    }

    #[test]
    fn a_refusal_names_the_rule_that_would_allow_the_call() {
        let rules = ["WebFetch(domain:a.example)".to_owned()];
        let answer = PermissionAnswer::unattended(ActionKind::Fetch, Recourse::Rule, &rules);
        let DecidedBy::Nobody(why) = answer.by else { panic!("{:?}", answer.by) };
        assert_eq!(why, "this run has no chat; `--allowed-tools 'WebFetch(domain:a.example)'` allows it");
    }

    #[test]
    fn words_answer_a_question_and_decide_nothing_else() {
        let by = || DecidedBy::Person("me".to_owned());
        let answer = PermissionAnswer::from_message(ActionKind::Ask, "blue".to_owned(), by());
        assert!(answer.allow && !answer.put_off);
        let answer = PermissionAnswer::from_message(ActionKind::Write, "blue".to_owned(), by());
        assert!(!answer.allow && answer.put_off && answer.comment == "blue");
    }
}
