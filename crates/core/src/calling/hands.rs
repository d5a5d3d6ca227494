//! Which tools somebody who is called has: four layers, of which none gives back what another took.
//!
//! What steers the team is for whoever talks to the user or works at a plan (1). A type that a file defines is not
//! trusted like one that comes with the program (2). In the background nobody can be asked (3). And a type takes only what it
//! says it needs (4). Whoever has hands calls nobody with more of them than it has itself. What each layer takes is kept,
//! so that people can see it.

use serde::Serialize;

use super::offer::TOOL_SEARCH;
use crate::memory::is_keeper;
use crate::tasks;
use crate::team::Definition;

/// Calls an expert with arguments.
pub const TASK: &str = "task";
/// Calls somebody with words.
pub const AGENT: &str = "agent";
/// Goes on with somebody who was called.
pub const SEND_MESSAGE: &str = "send_message";
/// Asks the user.
pub const ASK_USER: &str = "ask_user";
/// Calls somebody with words and does not wait.
pub const SPAWN: &str = "spawn";
/// Looks at what that came to.
pub const SPAWNED: &str = "spawned";
/// Starts a teammate.
pub const SPAWN_TEAMMATE: &str = "spawn_teammate";
/// Looks into one's own mailbox.
pub const CHECK_INBOX: &str = "check_inbox";
/// Puts a plan before whoever leads.
pub const EXIT_PLAN_MODE: &str = "exit_plan_mode";

/// What begins or continues the work of others.
pub const SPAWNING: [&str; 3] = [AGENT, SEND_MESSAGE, TASK];
/// What only a lead has: nobody it starts starts teammates, or stays to hear what came of something.
pub const LEADING: [&str; 3] = [SPAWN, SPAWN_TEAMMATE, SPAWNED];
/// What every teammate has, whatever its type says: who cannot be written to is none.
pub const MATES: [&str; 2] = [CHECK_INBOX, SEND_MESSAGE];
/// The only tools of a lead in coordinator mode.
pub const COORDINATING: [&str; 4] = [AGENT, ASK_USER, SEND_MESSAGE, TASK];
/// Tools that hand work to the members of a team. A lead without any of them is not told about members.
const ASSIGNING: [&str; 5] = [AGENT, "dispatch_task", SPAWN, SPAWN_TEAMMATE, "submit_plan"];

/// The type that is called when nobody says which: all tools but those that call.
pub const GENERAL: &str = "general";

/// What steers the team, the plan or the conversation with the user.
const META: [&str; 12] = [
    ASK_USER,
    CHECK_INBOX,
    "dispatch_task",
    "need_clarify",
    SPAWN,
    SPAWN_TEAMMATE,
    SPAWNED,
    "submit_plan",
    "task_create",
    "task_query",
    "task_update",
    TOOL_SEARCH,
];
/// What changes how freely somebody acts.
const MODES: [&str; 3] = ["enter_plan_mode", EXIT_PLAN_MODE, "set_mode"];
/// What writes down what is remembered.
const REMEMBERING: &str = "memory_write";
/// What never needs a person, whatever is in its way.
const UNATTENDED: [&str; 16] = [
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
    tasks::CREATE,
    tasks::GET,
    tasks::LIST,
    tasks::UPDATE,
];

/// What takes tools away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// What steers the team is not for whoever is called.
    Meta,
    /// A type that a file defines is not trusted like a built-in one.
    Custom,
    /// In the background nobody can be asked.
    Background,
    /// The type's own `tools` and `disallowed_tools`.
    Own,
    /// Nobody has more hands than their caller.
    Caller,
}

/// What somebody who is called works with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hands {
    /// The tools that are left, ordered by name.
    pub tools: Vec<String>,
    /// What each layer took of what those before it had left.
    pub taken: Vec<(Layer, Vec<String>)>,
}

/// Who calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// Its tools, if it has hands of its own.
    pub tools: Option<&'a [String]>,
    /// Whether whoever it calls may call others in turn.
    pub deeper: bool,
}

/// Whether a layer takes a tool.
type Takes<'a> = &'a dyn Fn(&str) -> bool;

/// What is left of all tools there are for somebody who is called.
pub fn hands<'a>(there: impl IntoIterator<Item = &'a str>, who: &Definition, caller: Caller<'_>) -> Hands {
    let mut tools: Vec<String> = there.into_iter().map(str::to_owned).collect();
    tools.sort_unstable();
    tools.dedup();
    let mut taken = Vec::new();
    let layers: [(Layer, Takes<'_>); 5] = [
        (Layer::Meta, &|tool| {
            META.contains(&tool) || tool == EXIT_PLAN_MODE || (SPAWNING.contains(&tool) && !caller.deeper)
        }),
        (Layer::Custom, &|tool| !(who.builtin || is_trusted(tool) || (tool == REMEMBERING && is_keeper(who)))),
        (Layer::Background, &|tool| who.background && !UNATTENDED.contains(&tool)),
        (Layer::Own, &|tool| !is_own(who, tool)),
        (Layer::Caller, &|tool| caller.tools.is_some_and(|tools| !tools.iter().any(|own| own == tool))),
    ];
    for (layer, takes) in layers {
        let (gone, left) = tools.into_iter().partition(|tool| takes(tool));
        tools = left;
        taken.push((layer, gone));
    }
    Hands { tools, taken }
}

/// Whether a type that a file defines is given a tool.
fn is_trusted(tool: &str) -> bool {
    !(SPAWNING.contains(&tool) || MODES.contains(&tool) || tool == REMEMBERING)
}

/// Whether a type takes a tool by what it says of itself.
pub fn is_own(who: &Definition, tool: &str) -> bool {
    (who.inherits_tools || is_among(&who.tools, tool)) && !is_among(&who.disallowed_tools, tool)
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

    const THERE: [&str; 14] = [
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
        "task_query",
    ];

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn general() -> Definition {
        Definition { name: GENERAL.into(), builtin: true, inherits_tools: true, ..Definition::default() }
    }

    #[test]
    fn each_layer_takes_its_own() {
        let hand = |who: &Definition, caller| hands(THERE, who, caller).tools;
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
        let own = words(&["read_file", "edit_file", "agent"]);
        assert_eq!(hand(&general(), Caller { tools: Some(&own), deeper: false }), ["edit_file", "read_file"]);
    }

    #[test]
    fn what_was_taken_is_told_once_and_by_whom() {
        let who = Definition { disallowed_tools: words(&["run_shell", "agent"]), builtin: false, ..general() };
        let Hands { tools, taken } = hands(THERE, &who, Caller::default());
        let of = |layer| taken.iter().find(|(own, _)| *own == layer).map(|(_, tools)| tools.clone()).unwrap();
        assert_eq!(of(Layer::Custom), ["memory_write", "set_mode"]);
        assert_eq!(of(Layer::Own), ["run_shell"]);
        assert!(of(Layer::Meta).contains(&"agent".to_owned()) && of(Layer::Caller).is_empty());
        let told = taken.iter().map(|(_, tools)| tools.len()).sum::<usize>();
        assert_eq!(told + tools.len(), THERE.len());
    }

    #[test]
    fn whom_one_may_call() {
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
            let left = hands(THERE, &who, Caller { tools: own.as_deref(), deeper }).tools;
            for tool in &left {
                let tool = tool.as_str();
                prop_assert!(!META.contains(&tool));
                prop_assert!(!SPAWNING.contains(&tool) || (deeper && builtin));
                prop_assert!(tool != REMEMBERING || builtin);
                prop_assert!(!background || UNATTENDED.contains(&tool));
                prop_assert!(!who.disallowed_tools.iter().any(|taken| taken == tool));
                prop_assert!(inherits_tools || who.tools.iter().any(|listed| listed == tool));
                prop_assert!(own.as_ref().is_none_or(|own| own.iter().any(|has| has == tool)));
            }
        }
    }
}
