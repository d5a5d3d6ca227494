//! The phrases about definitions of agents.

use max_team_core::delegation::tool_filter::FilterLayer;

use super::Lang;

impl Lang {
    /// A list of what is allowed; an empty one allows nothing.
    pub fn listed(self, words: &[String]) -> String {
        if words.is_empty() { self.nothing().to_owned() } else { words.join(", ") }
    }

    /// Why a called agent does not have a tool.
    pub fn layer(self, layer: FilterLayer) -> &'static str {
        match layer {
            FilterLayer::Meta => self.filter_meta(),
            FilterLayer::Custom => self.filter_custom(),
            FilterLayer::Background => self.filter_background(),
            FilterLayer::Own => self.filter_own(),
            FilterLayer::Caller => self.filter_caller(),
        }
    }

    pub fn no_agent(self, name: &str, near: Option<&str>) -> String {
        match near {
            Some(near) => self.unknown_agent_near(name, near),
            None => self.unknown_agent(name),
        }
    }

    pub fn no_agent_name(self, name: &str, near: Option<&str>) -> String {
        let near = near.map(|near| self.would_do(near));
        let near = near.unwrap_or_default();
        self.bad_agent_name(name, &near)
    }
}
