//! Which of its tools an agent's requests describe.
//!
//! Every request pays for every description. So an agent is offered the tools that its work usually takes; the others stay
//! its own: a call by name works, and [`TOOL_SEARCH`] finds them. A definition that lists a tool is always offered it.

use super::hands::{
    AGENT, ASK_USER, CHECK_INBOX, EXIT_PLAN_MODE, SEND_MESSAGE, SPAWN, SPAWN_TEAMMATE, SPAWNED, TASK, is_among,
};
use crate::tasks;
use crate::team::Definition;

/// Finds tools that are not offered.
pub const TOOL_SEARCH: &str = "tool_search";

/// The tools that requests describe to a lead whose definition lists none.
const LEAD: [&str; 9] =
    [AGENT, ASK_USER, "memory_read", SEND_MESSAGE, "skill", SPAWN_TEAMMATE, "submit_plan", "task_query", "task_update"];
/// What every other agent is offered that lists no tools: read, edit, search, run and test.
const CORE: [&str; 12] = [
    AGENT,
    "edit_file",
    EXIT_PLAN_MODE,
    "list_dir",
    "need_clarify",
    "read_file",
    "run_shell",
    "run_test",
    "search_code",
    SEND_MESSAGE,
    "skill",
    "write_file",
];
/// Second names of described tools. A call by such a name works, but a search does not show it.
const COVERED: [(&str, &str); 8] = [
    (TASK, AGENT),
    ("dispatch_task", AGENT),
    (SPAWN, AGENT),
    (SPAWNED, "task_query"),
    ("task_create", "submit_plan"),
    (tasks::UPDATE, "task_update"),
    (tasks::GET, "task_query"),
    (tasks::LIST, "task_query"),
];

/// The tools of a lead without a list of its own that are not offered. A tool that its prompt names is.
pub fn hidden_from_lead(tools: &[String], prompt: &str) -> Vec<String> {
    hidden(tools, prompt, &LEAD)
}

/// The tools that requests describe to any other agent whose definition lists none.
pub fn hidden_from(tools: &[String], prompt: &str) -> Vec<String> {
    hidden(tools, prompt, &CORE)
}

fn hidden(tools: &[String], prompt: &str, offered: &[&str]) -> Vec<String> {
    let is_named = |tool: &str| prompt.contains(&format!("`{tool}`"));
    tools.iter().filter(|tool| !offered.contains(&tool.as_str()) && !is_named(tool)).cloned().collect()
}

/// Whether an agent's requests describe one of its tools.
pub fn is_offered(who: &Definition, tool: &str) -> bool {
    !who.hidden_tools.iter().any(|hidden| hidden == tool)
}

/// Whether a search shows a tool that requests do not describe. It hides second names of described tools, and mailbox
/// tools whose messages arrive without a call.
pub fn is_found(who: &Definition, tool: &str) -> bool {
    let has = |other: &str| is_among(&who.tools, other) && is_offered(who, other);
    let is_covered = COVERED.iter().any(|(name, by)| *name == tool && has(by));
    !is_offered(who, tool) && !is_covered && tool != CHECK_INBOX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn lead() -> Definition {
        let tools = words(&[
            AGENT,
            ASK_USER,
            CHECK_INBOX,
            "dispatch_task",
            "memory_read",
            "memory_write",
            SEND_MESSAGE,
            SPAWN,
            SPAWNED,
            SPAWN_TEAMMATE,
            "submit_plan",
            TASK,
            "task_create",
            "task_query",
            "task_update",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskUpdate",
        ]);
        Definition { hidden_tools: hidden_from_lead(&tools, "Max"), tools, ..Definition::default() }
    }

    #[test]
    fn no_two_names_that_a_lead_is_offered_or_finds_say_the_same() {
        let lead = lead();
        let shown: Vec<&String> =
            lead.tools.iter().filter(|tool| is_offered(&lead, tool) || is_found(&lead, tool)).collect();
        assert_eq!(shown.len(), 10, "{shown:?}");
        let bare = |name: &str| name.replace('_', "").to_lowercase();
        for one in &shown {
            assert_eq!(shown.iter().filter(|other| bare(other) == bare(one)).count(), 1, "{one}");
        }
        let found: Vec<&String> = lead.tools.iter().filter(|tool| is_found(&lead, tool)).collect();
        assert_eq!(found, ["memory_write", "TaskCreate"]);
    }

    #[test]
    fn an_agent_without_a_list_is_offered_the_core_and_what_its_prompt_names() {
        let tools = words(&["edit_file", "geocode", "http_get", "read_file", "TaskList"]);
        assert_eq!(hidden_from(&tools, "Ask `http_get`."), ["geocode", "TaskList"]);
        let who = Definition { hidden_tools: words(&["TaskList"]), tools, ..Definition::default() };
        assert!(is_found(&who, "TaskList") && !is_found(&who, "geocode"), "only a lead has `task_query`");
    }
}
