//! The phrases of traces: what a span is called, how it ended, and what allowed it.

use max_team_core::delegation::cache::AnswerAge;
use max_team_core::event::TurnOutcome;
use max_team_core::plan::event::{Proof, Totals};
use max_team_core::policy::DecidedBy;
use max_team_runtime::{SpanAuthor, SpanName, SpanOutcome, ToolEnd};

use super::Lang;

impl Lang {
    pub fn span_name(self, name: &SpanName) -> String {
        match name {
            SpanName::Text(text) | SpanName::Call { text, .. } => text.clone(),
            SpanName::Session { session, cwd } => self.session_in(session, cwd),
            SpanName::Model { model, summary, attempt } => {
                let name = if *summary { self.summary_by(model) } else { model.clone() };
                if *attempt > 1 { self.model_attempt(name, attempt) } else { name }
            }
            SpanName::MayIt(call) => self.may_it(call),
            SpanName::PlanQuestion(about) => self.about_plan(about),
            SpanName::Attempt { number, member } => self.attempt_by(number, member),
            SpanName::Messages { before, after } => self.messages_to(before, after),
            SpanName::NoSummary => self.no_summary().to_owned(),
            SpanName::TakenBack => self.compaction_taken_back().to_owned(),
        }
    }

    pub fn span_outcome(self, outcome: &SpanOutcome) -> String {
        let word = match outcome {
            SpanOutcome::Running => self.outcome_running(),
            SpanOutcome::Open => self.outcome_open(),
            SpanOutcome::Answered => self.outcome_answered(),
            SpanOutcome::Unanswered => self.outcome_unanswered(),
            SpanOutcome::Ok => self.outcome_ok(),
            SpanOutcome::Stopped => self.outcome_stopped(),
            SpanOutcome::Lost => self.outcome_lost(),
            SpanOutcome::Turn(end) => self.turn_end(end),
            SpanOutcome::Tool(end) => self.tool_end(*end),
            SpanOutcome::Answer { word, always: false } => self.answer_word(*word),
            SpanOutcome::Answer { word, .. } => return self.outcome_always(self.answer_word(*word)),
            SpanOutcome::Failed { why, again: true } => return self.outcome_failed_retried(why),
            SpanOutcome::Failed { why, .. } => return self.outcome_failed_because(why),
            SpanOutcome::TaskFailed { why, kind } => return self.outcome_failed_because(self.task_error(why, kind)),
            SpanOutcome::Tokens { from, to } => return self.outcome_tokens(from, to),
            SpanOutcome::Done { proof, cached } => {
                let proof = if *proof == Proof::Failed { self.proof_checks_failed() } else { self.proof(*proof) };
                return self.outcome_done(match cached {
                    Some(cached) => self.from_the_cache(proof, self.age(AnswerAge::from_ms(cached.age_ms))),
                    None => proof.to_owned(),
                });
            }
            SpanOutcome::Skipped(why) => return self.outcome_skipped(why),
            SpanOutcome::GivenUp { why, kind } => return self.outcome_given_up(self.task_error(why, kind)),
            SpanOutcome::Plan(end, Totals { done, tasks, verified, .. }) => {
                return self.outcome_totals(self.plan_end(*end), done, tasks, verified);
            }
        };
        word.to_owned()
    }

    /// What allowed, refused or stopped something.
    pub fn span_author(self, by: &SpanAuthor) -> String {
        match by {
            SpanAuthor::Decided(by @ (DecidedBy::Rule(_) | DecidedBy::Grant(_))) => self.by_rules(self.author(by)),
            SpanAuthor::Decided(by) => self.author(by),
            SpanAuthor::Rules(rules) => {
                let rules: Vec<String> = rules.iter().map(|rule| self.rule(rule)).collect();
                self.by_rules(rules.join(self.semicolon()))
            }
            SpanAuthor::APerson => self.a_person().to_owned(),
            SpanAuthor::Stopped(by) => self.stopped_by(by),
        }
    }

    pub(super) fn tool_end(self, end: ToolEnd) -> &'static str {
        match end {
            ToolEnd::Ok => self.outcome_ok(),
            ToolEnd::Failed => self.outcome_failed(),
            ToolEnd::Invalid => self.outcome_invalid(),
            ToolEnd::Refused => self.outcome_refused(),
            ToolEnd::Stopped => self.outcome_stopped(),
            ToolEnd::Unknown => self.outcome_unclear(),
        }
    }

    fn turn_end(self, end: &TurnOutcome) -> &'static str {
        match end {
            TurnOutcome::Answered => self.outcome_answered(),
            TurnOutcome::Proposed => self.outcome_proposed(),
            TurnOutcome::Truncated => self.outcome_truncated(),
            TurnOutcome::Refused => self.outcome_refused(),
            TurnOutcome::Empty => self.outcome_empty(),
            TurnOutcome::Unstructured => self.outcome_unstructured(),
            TurnOutcome::Looping => self.outcome_looping(),
            TurnOutcome::Rounds => self.outcome_rounds(),
            TurnOutcome::Budget => self.outcome_budget(),
            TurnOutcome::Interrupted => self.outcome_interrupted(),
            TurnOutcome::Failed { .. } => self.outcome_failed(),
            TurnOutcome::Broken { .. } => self.outcome_broken(),
        }
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::plan::event::{CheckFault, Evidence, PlanEnd, PlanQuestion, TaskErrorKind};
    use max_team_core::policy::{AutoAllow, Basis};
    use max_team_runtime::RuleText;

    use super::*;

    #[test]
    fn spans_are_said_as_programs_read_them() {
        let rule = |text: &str, basis| RuleText { text: text.to_owned(), basis };
        let names = [
            SpanName::Model { model: "m".to_owned(), summary: true, attempt: 2 },
            SpanName::MayIt("edit_file a".to_owned()),
            SpanName::PlanQuestion(PlanQuestion::Rest),
            SpanName::Attempt { number: 2, member: "leo".to_owned() },
            SpanName::Messages { before: 9, after: 3 },
            SpanName::NoSummary,
            SpanName::TakenBack,
        ];
        for name in names {
            assert_eq!(Lang::En.span_name(&name), String::from(name.clone()));
            assert_ne!(Lang::Zh.span_name(&name), String::from(name));
        }
        let why = || "no such file".to_owned();
        let outcomes = [
            SpanOutcome::Running,
            SpanOutcome::Lost,
            SpanOutcome::Failed { why: why(), again: true },
            SpanOutcome::TaskFailed { why: why(), kind: TaskErrorKind::Text },
            SpanOutcome::Turn(TurnOutcome::Looping),
            SpanOutcome::Tool(ToolEnd::Invalid),
            SpanOutcome::Tokens { from: 9, to: 3 },
            SpanOutcome::Done { proof: Proof::Verified, cached: None },
            SpanOutcome::Plan(PlanEnd::Partial, Totals::default()),
        ];
        for outcome in outcomes {
            assert_eq!(Lang::En.span_outcome(&outcome), String::from(outcome.clone()));
            assert_ne!(Lang::Zh.span_outcome(&outcome), String::from(outcome));
        }
        let rules = vec![
            rule("the rule `Edit`", Basis::Written("`Edit`".to_owned())),
            rule("reading inside the project is always allowed", Basis::BuiltIn(AutoAllow::Read)),
        ];
        let zh = "规则：规则 `Edit`；读取项目内的文件总是允许的";
        assert_eq!(Lang::Zh.span_author(&SpanAuthor::Rules(rules)), zh);
        let kind = TaskErrorKind::Checks(vec![Evidence::fault("a.txt", CheckFault::Missing)]);
        assert_eq!(Lang::En.task_error("", &kind), kind.to_string());
        assert_eq!(Lang::Zh.task_error("", &kind), "任务报告成功，但检查未通过：a.txt：文件不存在");
    }
}
