//! Bounds the texts of the stream, and removes secrets from them.

use max_team_core::limits::{STREAM_ARGS_BYTES_MAX, STREAM_TASKS_MAX, STREAM_TEXT_BYTES_MAX};
use max_team_core::secret::redact;

use super::event::What;
use max_team_core::status::IdleReason;

impl What {
    /// Cuts the event to its bounds; whether something was cut.
    pub(super) fn fit(mut self) -> (Self, bool) {
        let cut = match &mut self {
            Self::Status { message, .. } => message.edit(|text| hide(text, STREAM_TEXT_BYTES_MAX)),
            Self::Mail { message, .. } => hide(message, STREAM_TEXT_BYTES_MAX),
            Self::ToolStart { tool_args, target, .. } => {
                hide(tool_args, STREAM_ARGS_BYTES_MAX) | hide(target, STREAM_ARGS_BYTES_MAX)
            }
            Self::ToolResult { summary, tool_result, .. } => {
                hide(summary, STREAM_TEXT_BYTES_MAX) | hide(tool_result, STREAM_TEXT_BYTES_MAX)
            }
            Self::ContentDelta { delta, .. } => hide(delta, STREAM_TEXT_BYTES_MAX),
            Self::Final { response, .. } => hide(response, STREAM_TEXT_BYTES_MAX),
            Self::Error { message, response, .. } => {
                message.edit(|text| hide(text, STREAM_TEXT_BYTES_MAX)) | hide(response, STREAM_TEXT_BYTES_MAX)
            }
            Self::Plan { goal, tasks, message, .. } => {
                let mut too_many = shorten(tasks);
                tasks.iter_mut().for_each(|task| too_many |= shorten(&mut task.needs));
                hide(goal, STREAM_TEXT_BYTES_MAX) | hide(message, STREAM_TEXT_BYTES_MAX) | too_many
            }
            Self::Task { message, .. } => hide(message, STREAM_TEXT_BYTES_MAX),
            Self::Approval { message, preview, .. } => {
                message.edit(|text| hide(text, STREAM_TEXT_BYTES_MAX)) | hide(preview, STREAM_TEXT_BYTES_MAX)
            }
            Self::Agent { reason, message, .. } => {
                let bound = |reason: &mut IdleReason| reason.edit_detail(|text| hide(text, STREAM_TEXT_BYTES_MAX));
                reason.as_mut().is_some_and(bound) | message.edit(|text| hide(text, STREAM_TEXT_BYTES_MAX))
            }
            Self::Session { status } => status.truncate(STREAM_TASKS_MAX),
            Self::Budget { .. } => false,
        };
        (self, cut)
    }
}

/// Drops tasks beyond the bound; whether there were any.
fn shorten<T>(tasks: &mut Vec<T>) -> bool {
    let too_many = tasks.len() > STREAM_TASKS_MAX;
    tasks.truncate(STREAM_TASKS_MAX);
    too_many
}

/// Cuts a text at a character boundary; returns whether it was too long.
fn bound(text: &mut String, bytes_max: usize) -> bool {
    let cut = text.len() > bytes_max;
    text.truncate(text.floor_char_boundary(bytes_max));
    cut
}

/// Like `bound`, without secrets. Twice the allowed length is searched, for a secret that lies across the cut.
fn hide(text: &mut String, bytes_max: usize) -> bool {
    let cut = bound(text, bytes_max.saturating_mul(2));
    if let std::borrow::Cow::Owned(hidden) = redact(text) {
        *text = hidden;
    }
    bound(text, bytes_max) || cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_message_and_say_so() {
        let status =
            |message: String| What::Status { iteration: 1, message: message.into(), tool_id: None, model: None };
        assert_eq!(status("short".into()).fit(), (status("short".into()), false));
        let (fitted, cut) = status("字".repeat(STREAM_TEXT_BYTES_MAX)).fit();
        let What::Status { message, .. } = fitted else { panic!("{fitted:?}") };
        let message = message.to_string();
        assert!(cut && message.len() <= STREAM_TEXT_BYTES_MAX && message.ends_with('字'));
    }

    #[test]
    fn tool_arguments_hold_no_secret_not_even_half_of_one() {
        let key = "sk-ant-0123456789abcdef0123456789abcdef";
        for before in [0, 10, STREAM_ARGS_BYTES_MAX - 20, STREAM_ARGS_BYTES_MAX - 1, STREAM_ARGS_BYTES_MAX + 5] {
            let tool_args = format!("{} {key}", "x".repeat(before));
            let name = || "t".to_owned();
            let start = What::ToolStart { iteration: 1, tool_id: name(), tool_name: name(), tool_args, target: name() };
            let (What::ToolStart { tool_args, .. }, _) = start.fit() else { panic!("another type") };
            assert!(!tool_args.contains("sk-ant-0"), "{before}");
        }
    }

    #[test]
    fn a_plan_lists_so_many_tasks_and_no_more() {
        use crate::stream::event::{PlanStep, TaskLine};
        let needs: Vec<String> = (0..2 * STREAM_TASKS_MAX).map(|number| number.to_string()).collect();
        let tasks = |count| vec![TaskLine { id: "a".into(), agent: "leo".into(), needs: needs.clone() }; count];
        let plan = |tasks| What::Plan {
            plan: max_team_core::id::PlanId::new(uuid::Uuid::nil()),
            state: PlanStep::Proposed,
            goal: String::new(),
            tasks,
            task: None,
            message: String::new(),
            by: None,
            tally: None,
        };
        for count in [1, STREAM_TASKS_MAX + 1] {
            let (What::Plan { tasks, .. }, true) = plan(tasks(count)).fit() else { panic!("nothing was cut") };
            assert!(tasks.len() == count.min(STREAM_TASKS_MAX) && tasks[0].needs.len() == STREAM_TASKS_MAX);
        }
    }

    #[test]
    fn no_text_holds_a_secret() {
        let key = "sk-ant-0123456789abcdef0123456789abcdef";
        let text = || format!("use {key}");
        let told = [
            What::Final { iteration: 1, response: text(), done: true, end: "answered".into() },
            What::ContentDelta { iteration: 1, delta: text(), whole: false },
            What::Status { iteration: 1, message: text().into(), tool_id: None, model: None },
        ];
        for what in told {
            let (fitted, _) = what.fit();
            assert!(!format!("{fitted:?}").contains(key), "{fitted:?}");
        }
    }
}
