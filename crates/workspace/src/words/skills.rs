//! The phrases about skills.

use max_team_core::limits::UNTRUSTED_NAMED_MAX;
use max_team_runtime::skills::State;

use super::Lang;

phrases! {
    skill_heads: "SKILL,FROM,STATE,WHAT", "技能,来源,状态,用途";
    no_skills: "no skills", "没有技能";
    ready: "ready", "可用";
    untrusted: "not trusted", "未信任";
    turned_off: "off", "已停用";
    changed: "changed since it was trusted", "信任后已更改";
    only_users: "ready, only for you", "可用，仅供您调用";
    only_models: "ready, only for agents", "可用，仅供智能体调用";
    skills_fine: "nothing is wrong", "没有问题";
    trust_these: "Let agents use it as it is now?", "允许智能体使用它的当前内容吗？";
    left_untrusted: "left as it is", "保持不变";
    nothing_to_trust: "nothing waits: every skill of this project that can be trusted is",
        "没有待信任的技能：此项目中可信任的技能均已信任";
    trust_needs_yes: "there is no terminal to ask: `--yes` trusts without a question", "此处无人可问：`--yes` 可直接信任";
    skill_shadowed(name: &str, file: &str, by: &str): "`{name}`: {file} is not used, {by} is",
        "`{name}`：未使用 {file}，使用的是 {by}";
    hidden_letters(letters: &str): "invisible characters ({letters}) are left out for the model",
        "不可见字符（{letters}）不会告知模型";
    at_line(line: usize, words: &str): "line {line}: {words}", "第 {line} 行：{words}";
    skill_broken(file: &str, why: &str): "{file} is no skill: {why}", "{file} 不是技能：{why}";
    skill_skipped(file: &str, why: &str): "{file} is skipped: {why}", "已跳过 {file}：{why}";
    skill_off_elsewhere(name: &str, file: &str): "skill `{name}` is still off: {file} says so (`skillOverrides`)",
        "技能 `{name}` 仍为停用：{file} 中有设置（`skillOverrides`）";
    bad_skill_name(name: &str): "`{name}` cannot be a skill's name: small letters, digits and single `-`, at most 64",
        "`{name}` 不能作为技能名：只用小写字母、数字和单个 `-`，最多 64 个字符";
    skill_exists(file: &str): "`{file}` is there already", "`{file}` 已存在";
    skill_trusted(name: &str, root: &str): "`{name}` is used from now on in {root}", "`{name}` 从现在起在 {root} 中可用";
    not_a_projects(name: &str, scope: &str): "`{name}` needs no trust: it is {scope}", "`{name}` 无需信任：它属于 {scope}";
    cannot_be_pinned(name: &str, why: &str): "`{name}` cannot be trusted: {why}", "`{name}` 无法被信任：{why}";
    no_contract(name: &str): "`{name}` has no contract and cannot be run by itself; say `/{name}` in a chat",
        "`{name}` 没有约定，不能单独运行；请在聊天中输入 `/{name}`";
    trust_first(name: &str): "not trusted yet: `max-team skills trust {name}`", "尚未信任：`max-team skills trust {name}`";
    skill_unusable(name: &str, why: &str): "the skill `{name}` cannot be used: {why}", "技能 `{name}` 无法使用：{why}";
    skill_has_its_form(name: &str):
        "this session carries out `{name}`, whose contract says what its answer looks like: leave --json-schema out, or say \
             something to it",
        "此会话执行的是 `{name}`，其答案的格式由约定规定：请去掉 --json-schema，或对它说些什么";
    skill_timed_out(name: &str, seconds: u64):
        "`{name}` was stopped after {seconds} s, the time that its contract gives it",
        "`{name}` 已在 {seconds} 秒后停止，这是其约定的时限";
}

impl Lang {
    /// How a skill stands.
    pub fn skill_state(self, state: &State, for_users: bool, for_models: bool) -> String {
        match (state, for_users, for_models) {
            (State::Untrusted, ..) => self.untrusted().to_owned(),
            (State::Changed, ..) => self.changed().to_owned(),
            (State::Off, ..) => self.turned_off().to_owned(),
            (State::Lacks(missing), ..) => self.lacks(&missing.join(", ")),
            (State::Ready, true, false) => self.only_users().to_owned(),
            (State::Ready, false, true) => self.only_models().to_owned(),
            (State::Ready, ..) => self.ready().to_owned(),
        }
    }

    /// Skills that came with the project and that no agent uses yet.
    pub fn skills_untrusted(self, names: &[String]) -> String {
        let more = names.len().saturating_sub(UNTRUSTED_NAMED_MAX);
        let named = names.iter().take(UNTRUSTED_NAMED_MAX).map(|name| format!("`{name}`"));
        let more = (more > 0).then(|| say!(self, "{more} more", "另外 {more} 个"));
        let names = named.chain(more).collect::<Vec<_>>().join(", ");
        say!(
            self,
            "this project brings skills that are not used until you trust them: {names}; see `max-team skills trust`",
            "此项目带来的技能在您信任之前不会使用：{names}；参见 `max-team skills trust`"
        )
    }

    fn lacks(self, missing: &str) -> String {
        say!(self, "needs {missing}", "需要 {missing}")
    }

    pub fn no_skill(self, name: &str, near: Option<&str>) -> String {
        match near {
            Some(near) => say!(
                self,
                "there is no skill `{name}`, did you mean `{near}`? `max-team skills list` shows them",
                "没有技能 `{name}`，是否指 `{near}`？用 `max-team skills list` 查看全部"
            ),
            None => say!(
                self,
                "there is no skill `{name}`; `max-team skills list` shows them",
                "没有技能 `{name}`；用 `max-team skills list` 查看全部"
            ),
        }
    }

    pub fn skill_switched(self, name: &str, is_on: bool) -> String {
        match is_on {
            true => say!(self, "skill `{name}` is on", "技能 `{name}` 已启用"),
            false => say!(
                self,
                "skill `{name}` is off; `max-team skills enable {name}` turns it on",
                "技能 `{name}` 已停用；用 `max-team skills enable {name}` 启用"
            ),
        }
    }

    pub fn skill_made(self, file: &str, name: &str, is_project: bool) -> String {
        match is_project {
            true => say!(
                self,
                "made {file}; fill it in, then `max-team skills trust {name}`",
                "已创建 {file}；填写后运行 `max-team skills trust {name}`"
            ),
            false => say!(self, "made {file}; fill it in", "已创建 {file}；请填写"),
        }
    }

    /// A skill that has not come to its end is talked to.
    pub fn skill_talked_to(self, name: &str, goes_on: bool) -> String {
        let back = match goes_on {
            true => say!(
                self,
                "; `max-team -c -p \"\"` goes on under it afterwards",
                "；之后可用 `max-team -c -p \"\"` 按约定继续"
            ),
            false => String::new(),
        };
        say!(
            self,
            "this session carried out `{name}`, which has not come to its end: from here on it is a plain talk, without the time and the \
             form of its contract{back}",
            "此会话执行的 `{name}` 尚未完成：从这里起是普通的谈话，不受其约定的时限和格式限制{back}"
        )
    }
}
