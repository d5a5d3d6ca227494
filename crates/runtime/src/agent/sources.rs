//! Tools of an agent that come from sources: its registry follows them between turns.

use std::sync::Arc;

use max_team_core::agent::source_covers;
use max_team_core::delegation::tool_filter::is_among;
use max_team_tools::Handler;

use futures_util::future::join_all;

use super::{Agent, Frame, tool_search};
use crate::handle::Notice;
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
        let has = definition.own_sources();
        let may_have = |source: &str, tool: &Handler| {
            let name = tool.spec().name.as_str();
            let one = |own: &str| own.split_once('/').is_some_and(|(of, tool)| of == source && tool == name);
            let is_chosen = has.iter().any(|own| source_covers(own, source) || one(own));
            is_chosen && !is_among(&definition.disallowed_tools, name) && !self.settings().permissions.denies_tool(name)
        };
        let mut registry = (*self.registry).clone();
        registry.replace_sourced(offered.filter(|(source, tool)| may_have(source, tool)));
        tool_search::hide(&mut registry, definition, shared.services.source_tools_shown);
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

impl Agent {
    /// Waits for sources of which nothing is known yet, all at once, and shows what is wrong with any. Each bounds its own time,
    /// and a stop ends the wait.
    pub(super) async fn prepare_sources(&mut self) {
        let own = self.active.shared.sources_of(self.frame.definition());
        if own.is_empty() {
            return;
        }
        let unknown: Vec<_> = own.iter().filter_map(|source| source.prepare()).collect();
        if !unknown.is_empty() && !self.inbox.stop_waits {
            let stop = self.active.reading(&self.turn.stream);
            tokio::select! {
                biased;
                // A source that is not ready yet is prepared again before the next turn.
                () = stop.cancelled() => self.inbox.stop_waits = true,
                _ = join_all(unknown) => {}
            }
        }
        self.show_source_notices();
        if self.frame.follow_sources(&self.active.shared) {
            self.frame.reveal_from(self.turn.history());
        }
    }
    /// Shows what is wrong with a source, if that was not shown yet.
    pub(super) fn show_source_notices(&self) {
        let own = self.active.shared.sources_of(self.frame.definition());
        let notes: Vec<String> = own.iter().flat_map(|source| source.notices()).collect();
        if !notes.is_empty() {
            let session = self.active.session;
            self.active.shared.notices.show(&Notice::Redefined { session, crew: None, notes });
        }
    }
}
