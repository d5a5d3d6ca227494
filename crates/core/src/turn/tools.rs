//! Tool calls: how they are judged, who approves them, and what follows once all have a result.

use std::sync::Arc;

use super::decide::{PendingInput, ended};
use super::teammate::{answer_team, end_turn};
use super::worktree_review::reviewed;
use super::{PrepareError, PreparedCall, RunningTurn, ToolCall, ToolCallStatus, Turn, TurnEnv, TurnStop};
use crate::agent::{Constraints, Settings};
use crate::chat::{Part, write};
use crate::event::{
    Approval, Event, QuestionAnswered, QuestionAsked, Refusal, ToolDone, ToolIntent, ToolOutcome, TurnEnded,
    TurnOutcome,
};
use crate::hash::Hash;
use crate::id::QuestionId;
use crate::interrupt;
use crate::limits::{CALLS_PER_ANSWER_MAX, CORRECTIONS_MAX};
use crate::policy::{
    self, Action, ActionKind, Basis, CommandReach, DecidedBy, MergeDecision, Mode, Recourse, Repeatability, Rules,
    Verdict,
};

/// The tool that hands over a structured answer.
pub const STRUCTURED_OUTPUT: &str = "structured_output";
/// The tool that proposes a plan to the user; it ends the turn.
pub const SUBMIT_PLAN: &str = "submit_plan";
/// The tool with which the owner of a task asks a question.
pub const NEED_CLARIFY: &str = "need_clarify";

/// The parameter of a merge with the decision about the worktree.
pub const SETTLE: &str = "settle";

/// Why changes stay in their worktree.
const NOBODY_ASKED: &str = "the user could not be asked";
pub(super) const PUT_OFF: &str = "the user decides later";

const TOLD_UNANSWERED: &str = "There is no answer. Decide yourself, and name your assumptions.";

impl Turn {
    pub(super) fn prepared(
        &self,
        current: &RunningTurn,
        calls: &[ToolCall],
        prepared: Vec<PreparedCall>,
        ahead: PendingInput,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let (mut done, mut events) = (Vec::new(), Vec::new());
        for PreparedCall { key, found } in prepared {
            let Some((index, call)) = calls.iter().enumerate().find(|(_, call)| call.key == key) else { continue };
            if !matches!(call.status, ToolCallStatus::Open) {
                continue;
            }
            if index >= CALLS_PER_ANSWER_MAX {
                let why = format!("Not run: at most {CALLS_PER_ANSWER_MAX} tool calls are run per answer.");
                done.push(tool_done_with(key, ToolOutcome::Invalid, &why));
                continue;
            }
            match found {
                Err(PrepareError::Told(why)) => done.push(tool_done_with(key, ToolOutcome::Invalid, &why)),
                Err(PrepareError::Refused { target, basis, words }) => {
                    let by = DecidedBy::Rule(basis.to_string());
                    done.push(refused(call, target, by, basis, Recourse::Nothing, &words));
                }
                Err(PrepareError::Fatal(detail)) => {
                    close(calls, &mut done, ToolOutcome::Interrupted, &format!("Not run: {detail}"));
                    return finish_with(done, ended(current, TurnOutcome::Broken { detail }, None));
                }
                Ok((action, class)) => match self.judge(call, action, class, now) {
                    ToolJudgement::Refused(refusal) => done.push(refusal),
                    ToolJudgement::Intend(event) => events.push(event),
                    // One question at a time: later calls are judged after it is answered.
                    ToolJudgement::Ask(event) => {
                        events.push(event);
                        break;
                    }
                },
            }
        }
        events.splice(0..0, self.tools_done(current, calls, done, ahead, now));
        events
    }

    fn judge(&self, call: &ToolCall, action: Action, class: Repeatability, now: &TurnEnv) -> ToolJudgement {
        let (settings, free) = (self.settings.as_ref(), Constraints::default());
        let rules = Rules {
            grants: &self.grants,
            ..settings.map_or_else(|| Rules::new(Mode::Default, &free), |settings| settings.rules())
        };
        let judgement = policy::judge(&rules, &call.tool, &action);
        let action = Action { reach: judgement.reach, ..action };
        match judgement.verdict {
            Verdict::Allow => {
                let bases = judgement.all_bases().to_vec();
                let mut intent = intent(call, action, class, Approval::Rule(judgement.rule), false);
                (intent.rules, intent.bases) = (judgement.rules, bases);
                ToolJudgement::Intend(Event::ToolIntent(intent))
            }
            Verdict::Deny => {
                let why =
                    format!("Not allowed ({}); the user was not asked. Do not try to get around this.", judgement.rule);
                let (by, basis) = (DecidedBy::Rule(judgement.rule), judgement.basis);
                ToolJudgement::Refused(refused(call, action.target, by, basis, judgement.recourse, &why))
            }
            Verdict::Ask => ToolJudgement::Ask(Event::QuestionAsked(QuestionAsked {
                question: QuestionId::new(now.fresh),
                key: call.key.clone(),
                tool: call.tool.clone(),
                action,
                class,
                rule: judgement.rule,
                basis: judgement.basis,
                memory: judgement.memory,
                recourse: judgement.recourse,
            })),
        }
    }

    pub(super) fn answered(
        &self,
        current: &RunningTurn,
        calls: &[ToolCall],
        question: QuestionId,
        answer: policy::PermissionAnswer,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let asked = calls.iter().find_map(|call| match &call.status {
            ToolCallStatus::Asked { question: asked, action, class, words, .. } if *asked == question => {
                Some((call, action, *class, words))
            }
            _ => None,
        });
        let Some((call, action, class, earlier)) = asked else { return Vec::new() };
        let said = Event::QuestionAnswered(QuestionAnswered { question, answer: answer.clone() });
        let (inside, behind) = match action.kind {
            // A review has no model answer, so the comment becomes part of the result.
            ActionKind::Merge if current.reviewing.is_some() => (they_say("\n\n", &answer), String::new()),
            ActionKind::Merge => (String::new(), along(calls, call, &answer, "decided about the changes of")),
            _ => Default::default(),
        };
        if action.asking_call().is_some() {
            let action = match (answer.allow, &answer.by) {
                (true, _) => action.clone().with_answer(Some(&answer.comment)),
                (false, DecidedBy::Person(_) | DecidedBy::Lead(_)) => action.clone().with_answer(None),
                (false, _) => action.clone().without_answer(),
            };
            let intent = intent(call, action, class, Approval::Question(question), false);
            return vec![said, Event::ToolIntent(ToolIntent { words: earlier.clone(), ..intent })];
        }
        if let Some(told) = told_by(action, &answer) {
            let done = ToolDone { words: behind, ..ran(call, told + &inside) };
            let next = self.tools_done(current, calls, vec![done], PendingInput::default(), now);
            return [said].into_iter().chain(next).collect();
        }
        if action.kind == ActionKind::Merge {
            let parameters = vec![(SETTLE.to_owned(), answer.merge_decision().name().to_owned())];
            let mut action = Action { parameters, ..action.clone() };
            action.said.push_str(&inside);
            let intent = intent(call, action, class, Approval::Question(question), false);
            return vec![said, Event::ToolIntent(ToolIntent { words: joined(earlier, &behind), ..intent })];
        }
        if answer.approves(action) {
            let attended = matches!(answer.by, DecidedBy::Person(_));
            // The person has seen the whole line; any other yes leaves the sandbox as it was judged.
            let after_yes = |settings: &Arc<Settings>| settings.rules().reach_after_yes(action.reach);
            let reach =
                if attended { self.settings.as_ref().map_or(CommandReach::Project, after_yes) } else { action.reach };
            let intent =
                intent(call, Action { reach, ..action.clone() }, class, Approval::Question(question), attended);
            let words = joined(earlier, &along(calls, call, &answer, "said yes to"));
            return vec![said, Event::ToolIntent(ToolIntent { words, ..intent })];
        }
        let (target, by) = (action.target.clone(), answer.by.clone());
        // A yes without the word approves no loss, so it counts as a no.
        let words = refusal_words(&policy::PermissionAnswer { allow: false, ..answer });
        let refusal = refused(call, target, by, Basis::Rule, Recourse::Person, &words);
        let mut events = vec![said];
        events.extend(self.tools_done(current, calls, vec![refusal], PendingInput::default(), now));
        events
    }

    /// If the called agent has no answer, a server asks something during a call, or changes in a worktree need a decision,
    /// the user is asked. In a mode that never asks, the model is told so, and a server's question is declined.
    pub(super) fn unanswered(
        &self,
        current: &RunningTurn,
        calls: &[ToolCall],
        key: &str,
        action: Action,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let asked = calls.iter().find_map(|call| match &call.status {
            ToolCallStatus::Intended { class, words, .. } if call.key == key => Some((call, *class, words)),
            _ => None,
        });
        let Some((call, class, earlier)) = asked else { return Vec::new() };
        let asking = action.asking_call().is_some().then(|| action.clone());
        let (class, unsaid) = match action.kind {
            ActionKind::Merge => (Repeatability::Idempotent, left(&action, NOBODY_ASKED)),
            _ => (class, TOLD_UNANSWERED.to_owned()),
        };
        let judged = (current.stopped.is_none()).then(|| self.judge(call, action, class, now));
        if let Some(ToolJudgement::Ask(event)) = judged {
            return vec![event];
        }
        if let Some((action, judged)) = asking.zip(judged) {
            // A rule may have come since the call began, by the answer to the same question of another agent.
            let (action, rule) = match judged {
                ToolJudgement::Intend(_) if action.kind == ActionKind::Fetch => {
                    (action.with_answer(Some("")), "a rule allows it by now")
                }
                _ => (action.without_answer(), "a question that no person is asked is declined"),
            };
            let intent = intent(call, action, class, Approval::Rule(rule.to_owned()), false);
            return vec![Event::ToolIntent(ToolIntent { words: earlier.clone(), ..intent })];
        }
        self.tools_done(current, calls, vec![ran(call, unsaid)], PendingInput::default(), now)
    }

    /// The results, and what follows once every call has one. `ahead` is what earlier events of the same decision add
    /// to the history.
    pub(super) fn tools_done(
        &self,
        current: &RunningTurn,
        calls: &[ToolCall],
        done: Vec<ToolDone>,
        mut ahead: PendingInput,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let is_done = |call: &ToolCall| call.is_done() || done.iter().any(|done| done.key == call.key);
        if !calls.iter().all(is_done) {
            return done.into_iter().map(Event::ToolDone).collect();
        }
        if current.reviewing.is_some() {
            return reviewed(current, done);
        }
        let structured = calls.iter().find(|call| call.tool == STRUCTURED_OUTPUT && ran_well(call, &done));
        let over = if current.stopped.is_some() {
            Some(ended(current, TurnOutcome::Interrupted, None))
        } else if let Some(call) = structured {
            Some(ended(current, TurnOutcome::Answered, Some((*call.input).clone())))
        } else if calls.iter().any(|call| call.tool == SUBMIT_PLAN && ran_well(call, &done)) {
            Some(ended(current, TurnOutcome::Proposed, None))
        } else if current.quiet
            && !current.is_steered
            && answer_team(calls)
            && calls.iter().all(|call| ran_well(call, &done))
        {
            // The team asked, and this call was the answer: further text would have no reader.
            Some(ended(current, TurnOutcome::Answered, None))
        } else if let Some(question) = asked_back(current, calls, &done) {
            Some(TurnEnded { text: question, ..ended(current, TurnOutcome::Answered, None) })
        } else if end_turn(self.teammate().is_some(), calls) && calls.iter().all(|call| ran_well(call, &done)) {
            Some(ended(current, TurnOutcome::Answered, None))
        } else if current.is_looping() {
            Some(ended(current, TurnOutcome::Looping, None))
        } else if self.is_under_contract() && misfits(calls, &done) && current.counts.misfits >= CORRECTIONS_MAX {
            Some(ended(current, TurnOutcome::Unstructured, None))
        } else {
            None
        };
        if let Some(over) = over {
            return finish_with(done, over);
        }
        let earlier = calls.iter().filter_map(|call| match &call.status {
            ToolCallStatus::Done { content, .. } => Some(content),
            _ => None,
        });
        let contents = earlier.chain(done.iter().map(|done| &done.content)).cloned();
        let results = contents.map(|content| Part::ToolResult { id: String::new(), content, is_error: false });
        let said = done.iter().filter(|done| !done.words.is_empty()).map(|done| Part::text(&done.words));
        let told: Vec<Part> = results.chain(calls.iter().filter_map(ToolCall::said_along)).chain(said).collect();
        ahead.add(&told);
        let next = self.next_call(current, ahead, now);
        done.into_iter().map(Event::ToolDone).chain(next).collect()
    }
}

impl Turn {
    /// Whether the agent's definition has a schema for its answers.
    fn is_under_contract(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.definition.work.output.is_some())
    }
}

/// The question that ends a turn outside of plans: the agent that gave the task gets it as the answer and continues
/// from there.
fn asked_back(current: &RunningTurn, calls: &[ToolCall], done: &[ToolDone]) -> Option<String> {
    let call = calls.iter().find(|call| call.tool == NEED_CLARIFY && ran_well(call, done))?;
    let question = call.input.get("question").and_then(serde_json::Value::as_str)?;
    let is_planned = current.assignment.as_ref().is_some_and(|assignment| assignment.plan.is_some());
    let said = [current.text.trim(), question.trim()];
    let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
    (!is_planned && !question.trim().is_empty()).then(|| said.join("\n\n"))
}

/// The result of a call that consists of the answer alone: nothing is run.
fn told_by(action: &Action, answer: &policy::PermissionAnswer) -> Option<String> {
    match (action.kind, answer.allow, &answer.by) {
        (ActionKind::Ask, true, _) if answer.comment.is_empty() => Some("The user answers: Yes.".to_owned()),
        (ActionKind::Ask, true, _) => Some(format!("The user answers: {}", answer.comment)),
        (ActionKind::Ask, false, DecidedBy::Nobody(_)) => Some(TOLD_UNANSWERED.to_owned()),
        (ActionKind::Merge, _, DecidedBy::Nobody(_)) => Some(left(action, NOBODY_ASKED)),
        (ActionKind::Merge, ..) if answer.merge_decision() == MergeDecision::Left => Some(left(action, PUT_OFF)),
        _ => None,
    }
}

/// The result of a call whose changes stay in their worktree.
pub(super) fn left(action: &Action, why: &str) -> String {
    let Action { said, target, .. } = action;
    format!(
        "{said}\n\n[The changes are in a worktree and not in the project yet: {why}. The user accepts them \
         with `max-team worktrees accept {target}`, looks with `show`, rejects them with `reject`.]"
    )
}

/// The result of a call.
pub(super) fn came_to(key: String, ending: ToolOutcome, content: Vec<Part>, is_error: bool, ms: u64) -> ToolDone {
    ToolDone { key, ending, content, is_error, ms, refused: None, words: String::new() }
}

/// The result of a successful call, with this text.
pub(super) fn ran(call: &ToolCall, words: String) -> ToolDone {
    came_to(call.key.clone(), ToolOutcome::Ran, vec![Part::text(words)], false, 0)
}

enum ToolJudgement {
    Intend(Event),
    Ask(Event),
    Refused(ToolDone),
}

fn intent(call: &ToolCall, action: Action, class: Repeatability, approval: Approval, attended: bool) -> ToolIntent {
    let mut input = Vec::new();
    write(&mut input, &call.input);
    let (key, tool, input) = (call.key.clone(), call.tool.clone(), Hash::of(input));
    let (rules, bases, words) = Default::default();
    ToolIntent { key, tool, input, class, approval, action, attended, rules, bases, words }
}

/// The result of a call that was not allowed, with what it would have done and who or what refused it.
fn refused(call: &ToolCall, target: String, by: DecidedBy, basis: Basis, recourse: Recourse, words: &str) -> ToolDone {
    let refusal = Refusal { tool: call.tool.clone(), target, by, basis, recourse };
    ToolDone { refused: Some(Box::new(refusal)), ..tool_done_with(call.key.clone(), ToolOutcome::Refused, words) }
}

pub(super) fn tool_done_with(key: String, ending: ToolOutcome, words: &str) -> ToolDone {
    came_to(key, ending, vec![Part::text(words)], true, 0)
}

pub(super) fn finish_with(done: Vec<ToolDone>, over: TurnEnded) -> Vec<Event> {
    done.into_iter().map(Event::ToolDone).chain([Event::TurnEnded(over)]).collect()
}

/// Gives every call without a result one, so that no tool use stays open.
pub(super) fn close(calls: &[ToolCall], done: &mut Vec<ToolDone>, ending: ToolOutcome, words: &str) {
    for call in calls {
        if !call.is_done() && !done.iter().any(|done| done.key == call.key) {
            done.push(tool_done_with(call.key.clone(), ending, words));
        }
    }
}

/// Like `close`, but only for calls that do not run; running ones end when they are cancelled.
pub(super) fn close_idle(calls: &[ToolCall], done: &mut Vec<ToolDone>, current: &RunningTurn) {
    let words = told_interrupted(current);
    for call in calls {
        if matches!(call.status, ToolCallStatus::Open | ToolCallStatus::Asked { .. })
            && !done.iter().any(|done| done.key == call.key)
        {
            done.push(match &call.status {
                // The called agent has answered; only the decision about its changes is open.
                ToolCallStatus::Asked { action, .. } if action.kind == ActionKind::Merge => {
                    ran(call, left(action, PUT_OFF))
                }
                // It had begun when it asked.
                ToolCallStatus::Asked { action, class: Repeatability::Opaque, .. }
                    if action.asking_call().is_some() =>
                {
                    let words = format!("{words} Whether the call took effect is unknown.");
                    tool_done_with(call.key.clone(), ToolOutcome::Unknown, &words)
                }
                _ => tool_done_with(call.key.clone(), ToolOutcome::Interrupted, &words),
            });
        }
    }
}

/// The result of a call whose turn was stopped.
pub(super) fn told_interrupted(current: &RunningTurn) -> String {
    match &current.stopped {
        None | Some(TurnStop { who: Some(DecidedBy::Person(_)) | None, .. }) => {
            "Not finished: the user interrupted the turn.".to_owned()
        }
        Some(TurnStop { by, who }) => {
            format!("Not finished. {} stopped the turn.", interrupt::stopper_words(by, who.as_ref()))
        }
    }
}

/// Whether an answer contains a structured output that does not match its schema.
pub(super) fn misfits(calls: &[ToolCall], done: &[ToolDone]) -> bool {
    let is_misfit = |call: &ToolCall| match &call.status {
        ToolCallStatus::Done { is_error, ran, .. } => *is_error && !ran,
        _ => done.iter().any(|done| done.key == call.key && done.ending == ToolOutcome::Invalid),
    };
    calls.iter().any(|call| call.tool == STRUCTURED_OUTPUT && is_misfit(call))
}

fn ran_well(call: &ToolCall, done: &[ToolDone]) -> bool {
    match &call.status {
        ToolCallStatus::Done { is_error, ran, .. } => *ran && !is_error,
        _ => done.iter().any(|done| done.key == call.key && done.ending == ToolOutcome::Ran && !done.is_error),
    }
}

/// The comment of an answer, if there is one.
fn they_say(before: &str, answer: &policy::PermissionAnswer) -> String {
    if answer.comment.is_empty() { String::new() } else { format!("{before}They say: {}", answer.comment) }
}

/// The comment that came with an approval or with a decision about changes. It names the call and follows the results,
/// however the call ended.
fn along(calls: &[ToolCall], call: &ToolCall, answer: &policy::PermissionAnswer, did: &str) -> String {
    let who = match &answer.by {
        _ if answer.comment.is_empty() => return String::new(),
        DecidedBy::Person(_) => "The user",
        DecidedBy::Lead(lead) => &format!("`{lead}`"),
        DecidedBy::Rule(_) | DecidedBy::Grant(_) | DecidedBy::Nobody(_) => return String::new(),
    };
    let place = calls.iter().position(|other| other.key == call.key).unwrap_or(0) + 1;
    let which = if calls.len() > 1 { format!(" (call {place} of {})", calls.len()) } else { String::new() };
    format!("[{who} {did} `{}`{which}.{}]", call.tool, they_say(" ", answer))
}

/// Joins the comments of two approvals, if a call is asked about twice.
pub(super) fn joined(earlier: &str, later: &str) -> String {
    let said = [earlier, later].into_iter().filter(|words| !words.is_empty());
    said.collect::<Vec<_>>().join("\n\n")
}

impl ToolCall {
    /// The comment that came with the approval of a call. It is a part of its own after the results: the output of a
    /// tool is always inside its result, so no tool can forge it.
    pub(super) fn said_along(&self) -> Option<Part> {
        let words = self.comment();
        (!words.is_empty()).then(|| Part::text(words))
    }

    pub(super) fn comment(&self) -> &str {
        match &self.status {
            ToolCallStatus::Asked { words, .. }
            | ToolCallStatus::Intended { words, .. }
            | ToolCallStatus::Done { words, .. } => words,
            ToolCallStatus::Open => "",
        }
    }
}

/// Says "the user" only if a person was asked.
fn refusal_words(answer: &policy::PermissionAnswer) -> String {
    match &answer.by {
        DecidedBy::Person(_) if answer.put_off => {
            let words = &answer.comment;
            format!(
                "Not run: the user has not decided about this call, and wrote: {words}\nIf you still need it, call again."
            )
        }
        DecidedBy::Person(_) => format!("The user said no.{}", they_say(" ", answer)),
        DecidedBy::Lead(lead) => format!("`{lead}` said no.{}", they_say(" ", answer)),
        DecidedBy::Rule(_) | DecidedBy::Grant(_) => {
            format!("Not allowed ({}); the user was not asked.", answer.by.name())
        }
        DecidedBy::Nobody(why) => {
            format!(
                "Not run: this needs the user's yes, and the user could not be asked ({why}). Report that, and do not try to get around it."
            )
        }
    }
}
