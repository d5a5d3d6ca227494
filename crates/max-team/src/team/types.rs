//! The types of sub-agents that come with the program, and the lead that only coordinates.

use max_team_core::calling::hands::{COORDINATING, GENERAL};
use max_team_core::team::{Constraints, Definition, Member, Place};

use crate::agents;

const EXPLORE_PROMPT: &str = include_str!("../../../../prompts/explore.md");
const PLAN_PROMPT: &str = include_str!("../../../../prompts/plan.md");
const GENERAL_PROMPT: &str = include_str!("../../../../prompts/general.md");
const COORDINATOR_PROMPT: &str = include_str!("../../../../prompts/coordinator.md");

/// The one whose work a cheap and quick model does well.
pub(super) const EXPLORE: &str = "explore";
/// What only looks; commands run where nothing can be written.
const LOOKS: [&str; 7] = ["git_diff", "git_log", "git_status", "list_dir", "read_file", "run_shell", "search_code"];

/// All of them.
pub(super) fn all() -> Vec<Member> {
    let looks = Constraints { read_only: true, ..Constraints::default() };
    let kind = |name: &str, prompt: &str, description: &str, constraints: &Constraints| Member {
        definition: Definition {
            name: name.to_owned(),
            role: "sub-agent".to_owned(),
            prompt: prompt.to_owned(),
            tools: if constraints.read_only { LOOKS.map(str::to_owned).to_vec() } else { Vec::new() },
            inherits_tools: !constraints.read_only,
            description: description.to_owned(),
            place: Place::Expert,
            builtin: true,
            ..Definition::default()
        },
        model: None,
        mcp_servers: Vec::new(),
        constraints: constraints.clone(),
    };
    let explore =
        "Looks around in the project, quickly, and changes nothing: where something is, how it works, who uses it.";
    let plan = "Works out how a change is to be made: state, steps, critical files, risks. Changes nothing.";
    let general = "Does a task of several steps by itself, changes included.";
    vec![
        kind(EXPLORE, EXPLORE_PROMPT, explore, &looks),
        kind("plan", PLAN_PROMPT, plan, &looks),
        kind(GENERAL, GENERAL_PROMPT, general, &Constraints::default()),
    ]
}

/// What a lead is who only coordinates.
pub(super) fn coordinator(lead: &Definition, members: &[Member]) -> Definition {
    Definition {
        prompt: format!("{}\n\n{}", COORDINATOR_PROMPT.trim_end(), agents::roster(members)),
        tools: COORDINATING.map(str::to_owned).to_vec(),
        ..lead.clone()
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::calling::hands::{Caller, hands};
    use max_team_runtime::with_team;
    use max_team_tools::Registry;

    use super::*;

    #[test]
    fn types_have_the_hands_that_their_work_needs() {
        let there = with_team(Registry::builtin());
        let tools = |name: &str| {
            let who = all().into_iter().find(|member| member.definition.name == name).unwrap().definition;
            hands(there.specs().map(|spec| spec.name.as_str()), &who, Caller::default()).tools
        };
        assert_eq!(tools(EXPLORE), LOOKS, "all of them exist");
        assert_eq!(tools("plan"), LOOKS);
        let general = tools(GENERAL);
        for has in ["edit_file", "write_file", "run_shell", "http_get", "git_commit"] {
            assert!(general.iter().any(|tool| tool == has), "{has}");
        }
        for lacks in ["agent", "task", "send_message", "ask_user", "submit_plan", "dispatch_task"] {
            assert!(!general.iter().any(|tool| tool == lacks), "{lacks}");
        }
    }

    #[test]
    fn a_coordinator_is_told_not_to_hand_understanding_on() {
        let lead = coordinator(&Definition { name: "max".into(), ..Definition::default() }, &[]);
        assert_eq!((lead.name.as_str(), lead.tools.len()), ("max", COORDINATING.len()));
        assert!(lead.prompt.contains("\"Based on your findings\"") && lead.prompt.contains("# Your team"));
    }
}
