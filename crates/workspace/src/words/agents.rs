//! The phrases about definitions of agents.

use max_team_core::delegation::tool_filter::FilterLayer;

use super::Lang;

phrases! {
    lead_word: "lead", "负责人";
    member_word: "member", "成员";
    expert_word: "expert", "专家";
    source_word: "from", "来源";
    shadows_word: "shadows", "遮盖";
    model_word: "model", "模型";
    tools_word: "tools", "工具";
    taken_word: "not for it", "不提供";
    left_out_word: "left out", "未采用";
    limits_word: "limits", "限制";
    cache_word: "cache", "缓存";
    skills_word: "skills", "技能";
    calls_word: "may call", "可调用";
    notes_word: "notes", "提示";
    sessions_model: "the session's", "与会话相同";
    all_tools: "all tools that a called agent may have", "被调用者可用的全部工具";
    no_tools: "none", "无";
    only_looks: "only looks", "只读";
    own_copy: "works in a copy of the repository", "在仓库副本中工作";
    in_background: "has nothing that may need a person", "没有可能需要人来确认的工具";
    memory_word: "memory", "记忆";
    draft_description: "What it is for, and when to call it", "它的用途，以及何时调用";
    last_good_counts(fault: &str): "{fault}; until it is mended, what was last read there counts",
        "{fault}；修正之前，沿用上次读取的内容";
    project_leads(place: &str, name: &str): "{place}: the project's `{name}` leads instead of the built-in lead",
        "{place}：由项目的 `{name}` 代替内置负责人";
    more_about_agents(more: usize): "{more} more notes on definitions of agents: `max-team agents list` shows them",
        "另有 {more} 条关于智能体定义的提示：`max-team agents list` 可查看";
    agent_exists(path: &str): "`{path}` is there already and stays as it is; choose another name, or edit it",
        "`{path}` 已存在，保持不变；请换一个名称，或直接编辑它";
    agent_elsewhere(name: &str, place: &str):
        "`{name}` is already written in {place}, and of two with one name the first counts; choose another name, \
             or edit it there",
        "`{name}` 已写在 {place} 中，同名时以先者为准；请换一个名称，或在那里编辑";
    agent_shadows(name: &str, place: &str, shadows: &str): "`{name}`: {place} counts, not {shadows}",
        "`{name}`：以 {place} 为准，不采用 {shadows}";
    agent_written(path: &str, name: &str): "wrote {path}; edit it, then try `max-team agents test {name} \"…\"`",
        "已写入 {path}；编辑后可用 `max-team agents test {name} \"…\"` 试用";
    rounds_each(rounds: u32): "{rounds} rounds per call", "每次调用 {rounds} 轮";
    mode_at_most(mode: &str): "mode `{mode}` or stricter", "模式 `{mode}` 或更严";
    cached_by(seconds: u64, keys: &str): "{seconds} s, by {keys}", "{seconds} 秒，依据 {keys}";
}

impl Lang {
    /// A list of what is allowed; an empty one allows nothing.
    pub fn listed(self, words: &[String]) -> String {
        if words.is_empty() { say!(self, "nothing", "无") } else { words.join(", ") }
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
            Some(near) => say!(
                self,
                "there is no agent `{name}`, did you mean `{near}`? `max-team agents list` shows them",
                "没有智能体 `{name}`，您是否指 `{near}`？`max-team agents list` 可查看全部"
            ),
            None => say!(
                self,
                "there is no agent `{name}`; `max-team agents list` shows them",
                "没有智能体 `{name}`；`max-team agents list` 可查看全部"
            ),
        }
    }

    pub fn no_agent_name(self, name: &str, near: Option<&str>) -> String {
        let near = near.map(|near| match self {
            Self::En => format!("; `{near}` would do"),
            Self::Zh => format!("；可用 `{near}`"),
        });
        let near = near.unwrap_or_default();
        say!(
            self,
            "`{name}` is no name for an agent: small letters, digits, `-` and `_`{near}",
            "`{name}` 不能作为智能体的名称：请用小写字母、数字、`-` 和 `_`{near}"
        )
    }
}
