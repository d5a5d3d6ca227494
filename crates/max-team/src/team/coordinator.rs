//! The lead that only coordinates.

use max_team_core::calling::hands::COORDINATING;
use max_team_core::team::{Definition, Member};

use crate::agents;

const PROMPT: &str = include_str!("../../../../prompts/coordinator.md");

/// What a lead is who only coordinates.
pub(super) fn lead(lead: &Definition, members: &[Member]) -> Definition {
    Definition {
        prompt: format!("{}\n\n{}", PROMPT.trim_end(), agents::roster(members)),
        tools: COORDINATING.map(str::to_owned).to_vec(),
        ..lead.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinator_is_told_not_to_hand_understanding_on() {
        let lead = lead(&Definition { name: "max".into(), ..Definition::default() }, &[]);
        assert_eq!((lead.name.as_str(), lead.tools.len()), ("max", COORDINATING.len()));
        assert!(lead.prompt.contains("\"Based on your findings\"") && lead.prompt.contains("# Your team"));
    }
}
