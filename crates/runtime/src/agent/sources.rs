//! Tools of an agent that come from sources: its registry follows them between turns.

use std::sync::Arc;

use max_team_core::delegation::tool_filter::is_among;
use max_team_tools::Handler;

use super::{Frame, tool_search};
use crate::shared::Shared;

impl Frame {
    /// Brings the registry up to date with the agent's sources; whether it has changed. A turn keeps one set of tools: this runs
    /// before a turn, and an unchanged generation costs one number per source.
    pub(super) fn follow_sources(&mut self, shared: &Shared) -> bool {
        let definition = &self.definition;
        let own = shared.sources_of(definition);
        // Read before the tools: a change in between is seen by the next turn.
        let generations: Vec<u64> = own.iter().map(|source| source.generation()).collect();
        if generations == self.generations {
            return false;
        }
        let offered =
            own.iter().flat_map(|source| source.tools().into_iter().map(|tool| (source.name().to_owned(), tool)));
        let may_have = |tool: &Handler| {
            let name = tool.spec().name.as_str();
            !is_among(&definition.disallowed_tools, name) && !self.settings().permissions.takes_away(name)
        };
        let mut registry = (*self.registry).clone();
        registry.replace_sourced(offered.filter(|(_, tool)| may_have(tool)));
        tool_search::hide(&mut registry, definition);
        self.generations = generations;
        self.equip(registry);
        true
    }

    /// Removes sources while the agent works; whether the registry has changed.
    pub(super) fn lose_sources(&mut self, lost: &[String], shared: &Shared) -> bool {
        if lost.is_empty() {
            return false;
        }
        Arc::make_mut(&mut self.definition).sources.retain(|source| !lost.contains(source));
        self.follow_sources(shared)
    }
}
