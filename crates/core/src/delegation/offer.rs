//! Which of its tools an agent's requests describe.
//!
//! Every request pays for every description. So an agent is offered the tools that its work usually takes; the others stay
//! its own: a call by name works, and [`TOOL_SEARCH`] finds them. A definition that lists a tool is always offered it.

use serde_json::Value;

use super::tool_filter::{
    AGENT, ASK_USER, CHECK_INBOX, EXIT_PLAN_MODE, SEND_MESSAGE, SPAWN, SPAWN_TEAMMATE, SPAWNED, TASK, is_among,
};
use crate::agent::Definition;
use crate::task_list;
use crate::turn::SUBMIT_PLAN;

/// Finds tools that requests do not describe.
pub const TOOL_SEARCH: &str = "tool_search";

/// The tools that requests describe to a lead whose definition lists none.
const LEAD: [&str; 7] = [AGENT, ASK_USER, "memory_read", SEND_MESSAGE, "skill", SPAWN_TEAMMATE, SUBMIT_PLAN];
/// Tools for tasks: requests describe them to a lead once there is a task, or a message names them.
const TASK_TOOLS: [&str; 2] = [task_list::QUERY, task_list::UPDATE];
/// The tools that requests describe to every other agent whose definition lists none: read, edit, search, run,
/// test and read the web.
const CORE: [&str; 14] = [
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
    "web_fetch",
    "web_search",
    "write_file",
];
/// Second names of described tools. A call by such a name works, but a search does not show it.
const COVERED: [(&str, &str); 4] =
    [(TASK, AGENT), ("dispatch_task", AGENT), (SPAWN, AGENT), (SPAWNED, task_list::QUERY)];

/// The tools of a lead without a list of its own that requests do not describe. A tool that the prompt names is
/// described.
pub fn hidden_from_lead(tools: &[String], prompt: &str) -> Vec<String> {
    hidden(tools, prompt, &LEAD)
}

/// The tools of any other agent without a list of its own that requests do not describe.
pub fn hidden_from(tools: &[String], prompt: &str) -> Vec<String> {
    hidden(tools, prompt, &CORE)
}

/// The tools that a call makes necessary, because there are tasks from then on.
pub fn needed_after(tool: &str, input: &Value) -> &'static [&'static str] {
    let is_set = |field: &str| input.get(field).and_then(Value::as_bool).unwrap_or_default();
    match tool {
        SUBMIT_PLAN | SPAWN_TEAMMATE | SPAWN | task_list::CREATE => &TASK_TOOLS,
        AGENT if is_set("run_in_background") => &TASK_TOOLS,
        _ => &[],
    }
}

/// The tools for tasks that a message names.
pub fn named_in(text: &str) -> impl Iterator<Item = &'static str> {
    TASK_TOOLS.into_iter().filter(move |tool| text.contains(&format!("`{tool}`")))
}

fn hidden(tools: &[String], prompt: &str, offered: &[&str]) -> Vec<String> {
    let is_named = |tool: &str| prompt.contains(&format!("`{tool}`"));
    tools.iter().filter(|tool| !offered.contains(&tool.as_str()) && !is_named(tool)).cloned().collect()
}

/// Whether an agent's requests describe one of its tools.
pub fn is_offered(who: &Definition, tool: &str) -> bool {
    !is_among(&who.hidden_tools, tool)
}

/// Whether a search shows a tool that requests do not describe. It hides second names of described tools, and mailbox
/// tools whose messages arrive without a call.
pub fn is_searchable(who: &Definition, tool: &str) -> bool {
    let has = |other: &str| is_among(&who.tools, other) && (is_offered(who, other) || TASK_TOOLS.contains(&other));
    let is_covered = COVERED.iter().any(|(name, by)| *name == tool && has(by));
    !is_offered(who, tool) && !is_covered && tool != CHECK_INBOX
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        ]);
        Definition { hidden_tools: hidden_from_lead(&tools, "Max"), tools, ..Definition::default() }
    }

    #[test]
    fn no_two_names_that_a_lead_is_offered_or_finds_say_the_same() {
        let lead = lead();
        let shown: Vec<&String> =
            lead.tools.iter().filter(|tool| is_offered(&lead, tool) || is_searchable(&lead, tool)).collect();
        assert_eq!(shown.len(), 10, "{shown:?}");
        let bare = |name: &str| name.replace('_', "").to_lowercase();
        for one in &shown {
            assert_eq!(shown.iter().filter(|other| bare(other) == bare(one)).count(), 1, "{one}");
        }
        let found: Vec<&String> = lead.tools.iter().filter(|tool| is_searchable(&lead, tool)).collect();
        assert_eq!(found, ["memory_write", "task_create", "task_query", "task_update"]);
    }

    #[test]
    fn tools_for_tasks_are_described_once_there_is_a_task() {
        let after = |tool: &str, input: Value| needed_after(tool, &input).len();
        assert_eq!(after(AGENT, json!({ "prompt": "x" })), 0);
        assert_eq!(after(AGENT, json!({ "prompt": "x", "run_in_background": true })), 2);
        assert_eq!(after(SUBMIT_PLAN, json!({})), 2);
        let named: Vec<&str> = named_in("Decide with `task_update`, not with task_query.").collect();
        assert_eq!(named, ["task_update"]);
    }

    #[test]
    fn an_agent_without_a_list_is_offered_core_tools_and_those_in_its_prompt() {
        let tools = words(&["edit_file", "geocode", "web_fetch", "read_file", "task_query"]);
        assert_eq!(hidden_from(&tools, "Ask `web_fetch`."), ["geocode", "task_query"]);
        let who = Definition { hidden_tools: words(&["task_query"]), tools, ..Definition::default() };
        assert!(is_searchable(&who, "task_query") && !is_searchable(&who, "geocode"));
    }
}
