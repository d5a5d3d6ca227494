//! Which tools a called agent has: each layer only removes tools.
//!
//! Layers: tools that act on plans and members are removed from an agent that neither talks to the user nor works on a
//! plan (1). A type defined
//! in a file is trusted less than a built-in one (2). An agent in the background cannot ask a person (3). A type gets
//! only the tools that it lists (4). A caller with tools of its own gives the called agent none that it lacks itself (5).
//! The tools that each layer removed are recorded for display.

use serde::Serialize;

use super::offer::TOOL_SEARCH;
use crate::agent::{ALL_SOURCES, Definition, source_covers};
use crate::memory::is_keeper;
use crate::task_list;

/// Calls an expert with arguments.
pub const TASK: &str = "task";
/// Calls an agent with a text.
pub const AGENT: &str = "agent";
/// Continues with an agent that was called before.
pub const SEND_MESSAGE: &str = "send_message";
/// Asks the user.
pub const ASK_USER: &str = "ask_user";
/// Calls an agent with a text and does not wait for the answer.
pub const SPAWN: &str = "spawn";
/// Shows the result of a `spawn`.
pub const SPAWNED: &str = "spawned";
/// Starts a teammate.
pub const SPAWN_TEAMMATE: &str = "spawn_teammate";
/// Reads the agent's own mailbox.
pub const CHECK_INBOX: &str = "check_inbox";
/// Submits a plan to the lead for approval.
pub const EXIT_PLAN_MODE: &str = "exit_plan_mode";

/// Tools that begin or continue the work of other agents.
pub const SPAWNING: [&str; 3] = [AGENT, SEND_MESSAGE, TASK];
/// Tools of a lead only: an agent that it starts can start no teammates, and does not stay to hear the result of a
/// `spawn`.
pub const LEADING: [&str; 3] = [SPAWN, SPAWN_TEAMMATE, SPAWNED];
/// Tools that every teammate has, even if its type does not list them: without them it could not be written to.
pub const TEAMMATES: [&str; 2] = [CHECK_INBOX, SEND_MESSAGE];
/// The only tools of a lead in coordinator mode.
pub const COORDINATING: [&str; 4] = [AGENT, ASK_USER, SEND_MESSAGE, TASK];
/// Tools that only a definition that names them has: an agent that gets all tools does not get these.
pub const NAMED_ONLY: [&str; 1] = ["browser"];
/// Tools that hand work to the members of a team. A lead without any of them is not told about members.
const ASSIGNING: [&str; 5] = [AGENT, "dispatch_task", SPAWN, SPAWN_TEAMMATE, "submit_plan"];

/// The type that a call uses if it names none: all tools but those that call other agents.
pub const GENERAL: &str = "general";

/// Tools that steer the team, the plan or the conversation with the user.
const META: [&str; 9] = [
    ASK_USER,
    CHECK_INBOX,
    "dispatch_task",
    "need_clarify",
    SPAWN,
    SPAWN_TEAMMATE,
    SPAWNED,
    "submit_plan",
    TOOL_SEARCH,
];
/// Tools that change the permission mode.
const MODES: [&str; 3] = ["enter_plan_mode", EXIT_PLAN_MODE, "set_mode"];
/// Writes to memory.
const REMEMBERING: &str = "memory_write";
/// Tools that never need a person's approval.
const UNATTENDED: [&str; 15] = [
    "git_diff",
    "git_log",
    "git_status",
    "list_dir",
    "memory_read",
    REMEMBERING,
    "query_log",
    "query_metrics",
    "read_file",
    "search_code",
    "skill",
    "structured_output",
    task_list::CREATE,
    task_list::QUERY,
    task_list::UPDATE,
];

/// A reason for which tools are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterLayer {
    /// Tools that steer the team are not for a called agent.
    Meta,
    /// A type that a file defines is trusted less than a built-in one.
    Custom,
    /// An agent in the background cannot ask a person.
    Background,
    /// The type's own `tools` and `disallowed_tools`.
    Own,
    /// A called agent has no tool that its caller lacks.
    Caller,
}

/// The tools of a called agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllowedTools {
    /// The remaining tools, ordered by name.
    pub tools: Vec<String>,
    /// The tools that each layer removed from those that earlier layers had left.
    pub taken: Vec<(FilterLayer, Vec<String>)>,
}

/// The agent that makes the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// Its definition, if it has tools of its own that bound those of the agents it calls.
    pub own: Option<&'a Definition>,
    /// Whether the called agent may call other agents.
    pub deeper: bool,
}

/// Whether a layer removes a tool.
type Takes<'a> = &'a dyn Fn(&str) -> bool;

/// Applies all layers to the available tools (`there`).
pub fn allowed_tools<'a>(
    there: impl IntoIterator<Item = &'a str>,
    who: &Definition,
    caller: Caller<'_>,
) -> AllowedTools {
    let mut tools: Vec<String> = there.into_iter().map(str::to_owned).collect();
    tools.sort_unstable();
    tools.dedup();
    let mut taken = Vec::new();
    let layers: [(FilterLayer, Takes<'_>); 5] = [
        (FilterLayer::Meta, &|tool| {
            META.contains(&tool) || tool == EXIT_PLAN_MODE || (SPAWNING.contains(&tool) && !caller.deeper)
        }),
        (FilterLayer::Custom, &|tool| !(who.builtin || is_trusted(tool) || (tool == REMEMBERING && is_keeper(who)))),
        (FilterLayer::Background, &|tool| who.background && !UNATTENDED.contains(&tool)),
        (FilterLayer::Own, &|tool| !is_own(who, tool)),
        (FilterLayer::Caller, &|tool| caller.own.is_some_and(|own| !own.tools.iter().any(|own| own == tool))),
    ];
    for (layer, takes) in layers {
        let (gone, left) = tools.into_iter().partition(|tool| takes(tool));
        tools = left;
        taken.push((layer, gone));
    }
    AllowedTools { tools, taken }
}

/// The tool sources that a called agent keeps, and the tools that it may not use from them. An agent in the background
/// keeps no source: most of their calls need a person's approval.
pub fn sources(who: &Definition, caller: Caller<'_>) -> (Vec<String>, Vec<String>) {
    let has = |own: &Definition, source: &str| own.own_sources().iter().any(|own| source_covers(own, source));
    let is_left = |source: &String| !who.background && caller.own.is_none_or(|own| has(own, source));
    let mut left: Vec<String> = who.own_sources().into_iter().filter(is_left).collect();
    // An agent with all sources that is called by one with a few keeps these few.
    if let Some(own) = caller.own.filter(|own| who.inherits_tools && !who.background && !has(own, ALL_SOURCES)) {
        let shared = own.own_sources().into_iter().filter(|source| source_covers(ALL_SOURCES, source));
        left.extend(shared.filter(|source| !who.sources.contains(source)).collect::<Vec<_>>());
    }
    let callers = caller.own.filter(|_| !left.is_empty()).into_iter().flat_map(|own| &own.disallowed_tools);
    let without = who.disallowed_tools.iter().chain(callers).cloned().collect();
    (left, without)
}

/// Whether a type that a file defines may have a tool.
fn is_trusted(tool: &str) -> bool {
    !(SPAWNING.contains(&tool) || MODES.contains(&tool) || tool == REMEMBERING)
}

/// Whether the lists of a type's definition include a tool.
pub fn is_own(who: &Definition, tool: &str) -> bool {
    let inherits = who.inherits_tools && !NAMED_ONLY.contains(&tool);
    (inherits || is_among(&who.tools, tool)) && !is_among(&who.disallowed_tools, tool)
}

/// Whether a list names a tool; a `*` at the end of a name stands for any ending.
pub fn is_among(listed: &[String], tool: &str) -> bool {
    listed.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => pattern == tool,
    })
}

/// Whether the caller's definition permits a call of the callee. A list of names in the definition is complete; without
/// one, an agent may call every agent but itself.
pub fn may_call(caller: &Definition, callee: &Definition) -> bool {
    match &caller.may_call {
        Some(names) => names.contains(&callee.name),
        None => callee.name != caller.name,
    }
}

/// Whether an agent with these tools hands work to the members of a team.
pub fn assigns_work(tools: &[String]) -> bool {
    tools.iter().any(|tool| ASSIGNING.contains(&tool.as_str()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    use super::*;

    const THERE: [&str; 13] = [
        "agent",
        "ask_user",
        "dispatch_task",
        "edit_file",
        "memory_read",
        "memory_write",
        "mcp__x__y",
        "read_file",
        "run_shell",
        "send_message",
        "set_mode",
        "submit_plan",
        "task",
    ];

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn general() -> Definition {
        Definition { name: GENERAL.into(), builtin: true, inherits_tools: true, ..Definition::default() }
    }

    #[test]
    fn each_layer_takes_its_own() {
        let hand = |who: &Definition, caller| allowed_tools(THERE, who, caller).tools;
        let all = ["edit_file", "mcp__x__y", "memory_read", "memory_write", "read_file", "run_shell", "set_mode"];
        assert_eq!(hand(&general(), Caller::default()), all);
        let deeper = Caller { deeper: true, ..Caller::default() };
        assert!(SPAWNING.iter().all(|tool| hand(&general(), deeper).contains(&(*tool).to_owned())));
        let custom = Definition { name: "mine".into(), builtin: false, ..general() };
        assert_eq!(hand(&custom, deeper), ["edit_file", "mcp__x__y", "memory_read", "read_file", "run_shell"]);
        let posing = Definition { name: "memory".into(), ..custom.clone() };
        assert!(!hand(&posing, deeper).contains(&"memory_write".to_owned()));
        let keeper = Definition { trusted: true, ..posing };
        assert!(hand(&keeper, deeper).contains(&"memory_write".to_owned()), "the user's own expert writes");
        let quiet = Definition { background: true, ..custom.clone() };
        assert_eq!(hand(&quiet, deeper), ["memory_read", "read_file"]);
        let few =
            Definition { inherits_tools: false, tools: words(&["read_file", "agent", "mcp__*"]), ..custom.clone() };
        assert_eq!(hand(&few, deeper), ["mcp__x__y", "read_file"]);
        let none = Definition { inherits_tools: false, ..custom.clone() };
        assert!(hand(&none, deeper).is_empty());
        let but = Definition { disallowed_tools: words(&["mcp__*", "run_shell"]), ..custom };
        assert_eq!(hand(&but, deeper), ["edit_file", "memory_read", "read_file"]);
        let own = Definition { tools: words(&["read_file", "edit_file", "agent"]), ..Definition::default() };
        assert_eq!(hand(&general(), Caller { own: Some(&own), deeper: false }), ["edit_file", "read_file"]);
    }

    #[test]
    fn each_removed_tool_is_listed_once_with_its_layer() {
        let who = Definition { disallowed_tools: words(&["run_shell", "agent"]), builtin: false, ..general() };
        let AllowedTools { tools, taken } = allowed_tools(THERE, &who, Caller::default());
        let of = |layer| taken.iter().find(|(own, _)| *own == layer).map(|(_, tools)| tools.clone()).unwrap();
        assert_eq!(of(FilterLayer::Custom), ["memory_write", "set_mode"]);
        assert_eq!(of(FilterLayer::Own), ["run_shell"]);
        assert!(of(FilterLayer::Meta).contains(&"agent".to_owned()) && of(FilterLayer::Caller).is_empty());
        let told = taken.iter().map(|(_, tools)| tools.len()).sum::<usize>();
        assert_eq!(told + tools.len(), THERE.len());
    }

    #[test]
    fn sources_are_no_more_than_the_callers() {
        let who = Definition { sources: words(&["git", "web"]), disallowed_tools: words(&["mcp__a"]), ..general() };
        let own =
            Definition { sources: words(&["git", "db"]), disallowed_tools: words(&["mcp__git__push"]), ..general() };
        let bound = Caller { own: Some(&own), deeper: false };
        // An agent without a list of tools has all sources of the session.
        assert_eq!(sources(&who, Caller::default()), (words(&["git", "web", "*"]), words(&["mcp__a"])));
        let without = words(&["mcp__a", "mcp__git__push"]);
        assert_eq!(sources(&who, bound), (words(&["git", "web", "*"]), without.clone()));
        let few = Definition { inherits_tools: false, ..own.clone() };
        let bound = Caller { own: Some(&few), deeper: false };
        assert_eq!(sources(&who, bound), (words(&["git", "db"]), without.clone()));
        let listed = Definition { inherits_tools: false, sources: words(&["git/mcp__git__log", "web"]), ..who.clone() };
        assert_eq!(sources(&listed, bound), (words(&["git/mcp__git__log"]), without));
        let apart = Definition { background: true, ..who };
        assert!(sources(&apart, Caller::default()).0.is_empty());
    }

    #[test]
    fn callable_agents() {
        let (lead, expert) = (Definition { name: "max".into(), ..general() }, general());
        assert!(may_call(&lead, &expert), "`type` left out means `general`, for every caller");
        assert!(!may_call(&lead, &lead));
        let only = Definition { may_call: Some(words(&["ray", GENERAL])), ..lead };
        assert!(may_call(&only, &expert));
        assert!(!may_call(&only, &Definition { name: "leo".into(), ..general() }));
    }

    #[test]
    fn only_tools_that_assign_work_need_members() {
        assert!(assigns_work(&words(&["task", "dispatch_task"])) && assigns_work(&words(&["agent"])));
        assert!(!assigns_work(&words(&["task", "memory_read", "memory_write", "ask_user"])));
    }

    fn some() -> impl Strategy<Value = Vec<String>> {
        subsequence(&THERE[..], 0..=THERE.len()).prop_map(|chosen| words(&chosen))
    }

    proptest! {
        /// Whatever a definition says of itself, no layer is talked out of what it takes.
        #[test]
        fn no_definition_gets_around_a_layer(
            tools in some(),
            disallowed_tools in some(),
            inherits_tools in any::<bool>(),
            builtin in any::<bool>(),
            background in any::<bool>(),
            own in proptest::option::of(some()),
            deeper in any::<bool>(),
        ) {
            let who = Definition {
                tools, disallowed_tools, inherits_tools, builtin, background, ..Definition::default()
            };
            let own = own.map(|tools| Definition { tools, ..Definition::default() });
            let left = allowed_tools(THERE, &who, Caller { own: own.as_ref(), deeper }).tools;
            for tool in &left {
                let tool = tool.as_str();
                prop_assert!(!META.contains(&tool));
                prop_assert!(!SPAWNING.contains(&tool) || (deeper && builtin));
                prop_assert!(tool != REMEMBERING || builtin);
                prop_assert!(!background || UNATTENDED.contains(&tool));
                prop_assert!(!who.disallowed_tools.iter().any(|taken| taken == tool));
                prop_assert!(inherits_tools || who.tools.iter().any(|listed| listed == tool));
                prop_assert!(own.as_ref().is_none_or(|own| own.tools.iter().any(|has| has == tool)));
            }
        }
    }
}
