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
        match (layer, self) {
            (FilterLayer::Meta, Self::En) => "steers the team",
            (FilterLayer::Meta, Self::Zh) => "用于管理团队",
            (FilterLayer::Custom, Self::En) => "only for what comes with the program",
            (FilterLayer::Custom, Self::Zh) => "仅限内置智能体",
            (FilterLayer::Background, Self::En) => "there is no user to ask in the background",
            (FilterLayer::Background, Self::Zh) => "后台无人可问",
            (FilterLayer::Own, Self::En) => "by its definition",
            (FilterLayer::Own, Self::Zh) => "定义所限",
            (FilterLayer::Caller, Self::En) => "its caller has none",
            (FilterLayer::Caller, Self::Zh) => "调用者没有",
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
