//! The names of events in the journal.

/// Every name, in the order of the events.
pub const NAMES: [&str; 74] = [
    "session_opened",
    "said",
    "withdrawn",
    "replied",
    "agent_started",
    "configured",
    "forked",
    "turn_started",
    "steered",
    "llm_intent",
    "llm_ended",
    "nudged",
    "tool_intent",
    "tool_done",
    "files_changed",
    "rewound",
    "rewind_ended",
    "question_asked",
    "question_answered",
    "task_drafted",
    "plan_submitted",
    "compaction_asked",
    "compacted",
    "compaction_failed",
    "uncompacted",
    "interrupted",
    "turn_ended",
    "review_begun",
    "requested",
    "responded",
    "letter_refused",
    "agent_ended",
    "granted",
    "command_begun",
    "command_over",
    "plan_proposed",
    "plan_edited",
    "edit_refused",
    "plan_asked",
    "plan_answered",
    "plan_unasked",
    "plan_revised",
    "revision_ended",
    "plan_resumed",
    "plan_stopped",
    "plan_paused",
    "plan_ended",
    "task_assigned",
    "task_started",
    "task_marked",
    "task_asked",
    "task_held",
    "task_answered",
    "task_resumed",
    "task_reported",
    "task_done",
    "task_failed",
    "task_queued",
    "task_deferred",
    "task_changed",
    "task_ruled",
    "task_paused",
    "task_skipped",
    "task_cancelled",
    "task_stopped",
    "memory_set",
    "memory_forgotten",
    "memory_handed",
    "cache_kept",
    "cache_cleared",
    "item_added",
    "item_written",
    "item_moved",
    "mailed",
];

#[cfg(test)]
mod tests {
    use super::NAMES;
    use crate::event::Event;

    /// What reads events names all that it knows.
    #[test]
    fn every_event_has_its_name_here() {
        let refused = serde_json::from_str::<Event>("{\"bogus\":null}").unwrap_err().to_string();
        let named: Vec<&str> = refused.split('`').skip(3).step_by(2).collect();
        assert_eq!(named, NAMES);
    }
}
