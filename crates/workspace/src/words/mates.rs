//! The phrases of teammates and their mail.

use max_team_core::message::{Envelope, MessageKind};
use max_team_runtime::{Enrolled, Fate};
use serde_json::Value;

use super::Lang;

phrases! {
    no_letters: "no messages; `--all` also lists control messages", "没有消息；`--all` 还会列出控制消息";
    no_teams: "no team is written down; `max-team team save NAME` writes the one of a session",
        "还没有写下的团队；用 `max-team team save 名称` 写下某个会话的团队";
    nobody_joined: "no teammates", "没有队友";
    is_lead: "lead", "负责人";
    goes_on_letter: "(continue: the program says that it goes on)", "（继续：由程序告知其继续）";
    is_gone: "ended", "已结束";
    read_soon: "an agent at work reads it at its next step; an idle one starts a turn", "正在工作的在下一步得知；休息的会被唤醒";
    asked_to_end: "asked; it ends once its work and its mail are done, unless it says no; --now ends it at once",
        "已请求；完成手头工作和消息后结束，除非它拒绝；--now 立即结束";
    stopped_to_end: "Stopped: it was told to end.", "已停止：被要求结束。";
    you_word: "you", "您";
    load_which: "/team load NAME: the name of a team that is written down", "/team load 名称：已写下的团队的名称";
    send_whom: "/send NAME WORDS, or @NAME WORDS: give a name and a message", "/send 姓名 内容，或 @姓名 内容：请写明对象和内容";
    unread(count: usize): "{count} unread", "{count} 封未读";
    resting(names: &str): "at rest: {names}", "休息中：{names}";
    resting_stopped(names: &str): "stopped: {names}", "已停止：{names}";
    team_elsewhere(words: &str):
        "`max-team team {words}` is for another terminal; here `/team` shows who is there, and `/team load NAME` lets a written team \
             begin",
        "`max-team team {words}` 请在另一个终端执行；此处 `/team` 显示成员，`/team load 名称` 让写下的团队开始";
    left_in_background(whose: &str): "in the background: {whose} · /stop stops it", "后台命令：{whose} · /stop 可停止";
    making_copies(made: usize, of: usize): "making copies of the project for the team: {made} of {of} · /stop stops it",
        "正在为团队制作项目副本：{made} / {of} · /stop 可停止";
    put_off(who: &str, tool: &str): "⏸ {who} goes on waiting for your answer ({tool}); /inbox brings the question back",
        "⏸ {who} 继续等待您的答复（{tool}）；用 /inbox 重新打开该问题";
    letter_taken_back(to: &str): "✉ taken back: {to} has not read it", "✉ 已收回：{to} 还没有读";
    nearly_to(name: &str): "For {name}? Write `@{name} WORDS`, with a space behind the name.",
        "是写给 {name} 的吗？请写成 `@{name} 内容`，名字后面加空格。";
    letter_was_read(to: &str): "✉ {to} has it already: what you send now is another message", "✉ {to} 已经收到：现在发送的是另一条消息";
    command_lost(who: &str, command: &str): "■ {who}: ended with the program: {command}", "■ {who}：随程序终止：{command}";
    command_stopped(who: &str, command: &str): "■ {who}: stopped in the background: {command}",
        "■ {who}：已停止后台命令 {command}";
    no_letter(id: &str): "there is no message `{id}` in this session; `max-team mail list --all` shows those there are",
        "此会话中没有消息 `{id}`；用 `max-team mail list --all` 查看";
    sent_to(names: &str): "sent to {names}", "已发送给 {names}";
    nobody_has(name: &str):
        "no agent is called `{name}` in a running session or in the last one here; name the session with --session",
        "正在运行的会话和此处最近的会话中都没有 `{name}`；请用 --session 指定会话";
    several_have(name: &str, sessions: &str): "`{name}` is in several sessions: {sessions}; say which with --session",
        "多个会话中都有 `{name}`：{sessions}；请用 --session 指定";
    mode_set(names: &str, mode: &str): "{names}: {mode}, from the next decision on", "{names}：从下一个决定起为 {mode}";
    mode_wanted(names: &str, mode: &str): "{names}: {mode} once it is read; no teammate is freer than the session",
        "{names}：读到后为 {mode}；队友不能比会话更自由";
    joined(names: &str): "{names}: begun", "{names}：已开始";
    there_already(names: &str): "{names}: there already or about to begin", "{names}：已在团队中或即将开始";
    not_joined(why: &str): "none of these teammates has started: {why}", "这些成员均未开始：{why}";
    team_written(file: &str, name: &str): "{file} is written; `max-team --team {name}` starts with it",
        "已写入 {file}；用 `max-team --team {name}` 从它开始";
    team_exists(file: &str): "`{file}` is there already; --force replaces it", "`{file}` 已存在；用 --force 替换";
    no_team_name(name: &str): "`{name}` cannot be the name of a team: use letters, digits, `-`, `_` and `.`",
        "`{name}` 不能作为团队名称：请使用字母、数字、`-`、`_` 和 `.`";
    exported(file: &str): "{file} is written, with an inbox for each", "已写入 {file}，每位成员各有一个收件箱";
    other_lead(wanted: &str, lead: &str): "this team was written for the lead `{wanted}`; `{lead}` leads here",
        "此团队是为负责人 `{wanted}` 写的；这里由 `{lead}` 负责";
    wrote(name: &str, text: &str): "{name}: {text}", "{name}：{text}";
}

impl Lang {
    pub fn mail_heads(self) -> [&'static str; 7] {
        match self {
            Self::En => ["ID", "SENT", "FROM", "TO", "KIND", "STATE", "TEXT"],
            Self::Zh => ["ID", "发送时间", "发件人", "收件人", "类型", "状态", "内容"],
        }
    }

    pub fn no_such_owner(self, name: &str, near: Option<&str>, there: &[String]) -> String {
        match (self, near) {
            (Self::En, Some(near)) => format!("no agent is called `{name}`: did you mean `{near}`?"),
            (Self::En, None) => format!("no agent is called `{name}`; there are {}", there.join(", ")),
            (Self::Zh, Some(near)) => format!("没有叫 `{name}` 的人：是指 `{near}` 吗？"),
            (Self::Zh, None) => format!("没有叫 `{name}` 的人；现有 {}", there.join("、")),
        }
    }

    pub fn nobody_there(self, name: &str, near: Option<&str>, there: &[&str], lead: &str) -> String {
        match (self, near) {
            (Self::En, Some(near)) => format!(
                "no teammate is called `{name}`: did you mean `{near}`? The message was not sent (begin it with `@{lead}` to send it to {lead})"
            ),
            (Self::En, None) if there.is_empty() => format!(
                "no teammate is called `{name}`, and there are no others; the message was not sent (begin it with `@{lead}` to send it to {lead})"
            ),
            (Self::Zh, None) if there.is_empty() => {
                format!("没有叫 `{name}` 的人，也没有其他队友；未发送（前面加 `@{lead}` 就是对 {lead} 说）")
            }
            (Self::En, None) => format!(
                "no teammate is called `{name}`: there are {}; the message was not sent (begin it with `@{lead}` to send it to {lead})",
                there.join(", ")
            ),
            (Self::Zh, Some(near)) => {
                format!("没有叫 `{name}` 的人：是指 `{near}` 吗？未发送（前面加 `@{lead}` 就是对 {lead} 说）")
            }
            (Self::Zh, None) => {
                format!("没有叫 `{name}` 的人：现有 {}；未发送（前面加 `@{lead}` 就是对 {lead} 说）", there.join("、"))
            }
        }
    }

    /// What stands beside a team that cannot begin.
    pub fn faulty_team(self, faults: usize) -> String {
        match self {
            Self::En => format!("✗ cannot begin: {}", super::plural(faults, "fault")),
            Self::Zh => format!("✗ 无法开始：{faults} 处错误"),
        }
    }

    pub fn written_before(self) -> &'static str {
        match self {
            Self::En => "what was last written",
            Self::Zh => "最近的来信",
        }
    }

    pub fn roll_heads(self) -> [&'static str; 11] {
        match self {
            Self::En => ["NAME", "TYPE", "COLOR", "STATE", "LAST", "UNREAD>", "MODE", "MODEL", "COST>", "TASK", "WHY"],
            Self::Zh => ["姓名", "类型", "颜色", "状态", "最近活动", "未读>", "模式", "模型", "花费>", "任务", "原因"],
        }
    }

    pub fn team_heads(self) -> [&'static str; 4] {
        match self {
            Self::En => ["NAME", "FROM", "MEMBERS", "DESCRIPTION"],
            Self::Zh => ["名称", "来源", "成员", "说明"],
        }
    }

    pub fn letter_fate(self, fate: &Fate) -> &'static str {
        match (self, fate) {
            (Self::En, Fate::Withdrawn) => "taken back",
            (Self::En, fate) => fate.name(),
            (Self::Zh, Fate::Queued) => "排队",
            (Self::Zh, Fate::Delivered) => "已送达",
            (Self::Zh, Fate::Read(_)) => "已读",
            (Self::Zh, Fate::Acted(_)) => "已处理",
            (Self::Zh, Fate::Dead(_)) => "退回",
            (Self::Zh, Fate::Refused(_)) => "拒收",
            (Self::Zh, Fate::Withdrawn) => "已收回",
        }
    }

    pub fn letter_kind(self, kind: MessageKind) -> &'static str {
        match (self, kind) {
            (Self::Zh, MessageKind::UserInput) => "用户",
            (Self::Zh, MessageKind::Text) => "消息",
            (Self::Zh, MessageKind::TaskAssign) => "任务",
            (Self::Zh, MessageKind::TaskResult) => "结果",
            (Self::Zh, MessageKind::PlanApprovalRequest) => "计划待批",
            (Self::Zh, MessageKind::PlanApprovalResponse) => "计划答复",
            (_, kind) => kind.name(),
        }
    }

    pub fn member_state(self, member: &Enrolled) -> &'static str {
        if member.is_active() { self.person_state(member.person.state) } else { self.is_gone() }
    }

    /// Why a teammate is in its state.
    pub fn member_why(self, member: &Enrolled) -> Option<String> {
        if let Some(gone) = &member.gone {
            return Some(self.ended_by(&gone.by, &gone.reason));
        }
        let asked = member.asked_to_end.as_ref().map(|by| say!(self, "asked to end by {by}", "{by} 已请求它结束"));
        let whys: Vec<String> = self.reason(&member.person).into_iter().chain(asked).collect();
        (!whys.is_empty()).then(|| whys.join(if self == Self::Zh { "；" } else { "; " }))
    }

    /// A teammate that was asked to shut down refuses.
    pub fn will_not_end(self, letter: &Envelope) -> Option<String> {
        let (name, text) = (letter.author(), letter.text());
        let why = if text.is_empty() { String::new() } else { format!(": {text}") };
        let is_it = letter.kind == MessageKind::ShutdownRejected && letter.to.starts_with("user/");
        is_it.then(|| {
            say!(
                self,
                "{name} does not end{why} (`max-team team shutdown {name} --now` ends it)",
                "{name} 拒绝结束{why}（`max-team team shutdown {name} --now` 可立即结束）"
            )
        })
    }

    /// Worktrees are being made, in a headless run.
    pub fn copies_begun(self, of: usize) -> String {
        let copies = if of == 1 { "a copy" } else { "copies" };
        say!(
            self,
            "making {copies} of the project for {of} of the team before anybody begins; Ctrl-C stops it",
            "正在为团队中的 {of} 人制作项目副本，完成后才开始；Ctrl-C 可停止"
        )
    }

    /// Messages wait because the agent was stopped; without a name, the lead.
    pub fn letters_wait(self, who: Option<&str>, count: usize) -> String {
        let (letters, wait) = if count == 1 { ("message", "waits") } else { ("messages", "wait") };
        match who {
            None => say!(
                self,
                "✉ {count} {letters} {wait}; write or /continue",
                "✉ 有 {count} 条消息在等待；写点什么或输入 /continue"
            ),
            Some(who) => say!(
                self,
                "✉ {who}: {count} {letters} {wait}; write to {who} or /continue {who}",
                "✉ {who}：有 {count} 条消息在等待；给 {who} 发消息或输入 /continue {who}"
            ),
        }
    }

    pub fn letter_taken_back_but(self, names: &[String]) -> String {
        let names = names.join(", ");
        say!(self, "✉ taken back, but not from {names}: read already", "✉ 已收回，但 {names} 已经读到")
    }

    /// In Chinese: the error itself says it in English.
    pub fn letter_untaken(self, failed: &[String], why: &str, read: &[String]) -> String {
        let read = if read.is_empty() { String::new() } else { format!("；{} 已经读到", read.join("、")) };
        format!("未能从 {} 收回：{why}{read}；其他人已没有这条消息", failed.join("、"))
    }

    /// Why a teammate has ended.
    pub fn ended_by(self, by: &str, reason: &str) -> String {
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        say!(self, "by {by}{why}", "由 {by} 结束{why}")
    }

    /// The mode that was asked for is freer than allowed: by the session, or by the teammate's own definition.
    pub fn mode_bounded(self, name: &str, mode: &str, changed: bool, by_session: bool) -> String {
        let words = match changed {
            true => self.mode_set(name, mode),
            false => say!(self, "{name}: stays at {mode}", "{name}：仍为 {mode}"),
        };
        match by_session {
            true => say!(self, "{words}; no teammate is freer than the session", "{words}；队友不能比会话更自由"),
            false => words,
        }
    }

    pub fn they_go_on(self, names: &[String]) -> String {
        let names = names.join(", ");
        say!(self, "{names}: going on", "{names}：继续")
    }

    pub fn no_team_file(self, name: &str, names: &str) -> String {
        match names {
            "" => say!(self, "there is no team `{name}`, nor any other", "没有团队 `{name}`，也没有其他团队"),
            _ => say!(self, "there is no team `{name}`; there are {names}", "没有团队 `{name}`；有 {names}"),
        }
    }

    pub fn nothing_to_save(self) -> String {
        say!(self, "this session has no teammates to write down", "此会话没有可写下的队友")
    }

    /// What is said of a letter that tells people that something of theirs came to nothing; `None`: it is another.
    pub fn came_to_nothing(self, letter: &Envelope) -> Option<String> {
        self.came_back(letter).or_else(|| self.will_not_end(letter))
    }

    /// A message of the user that a teammate did not read. `None` for messages of any other kind.
    fn came_back(self, letter: &Envelope) -> Option<String> {
        if letter.kind != MessageKind::Undelivered || !letter.to.starts_with("user/") {
            return None;
        }
        let at = |key: &str| letter.body.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, why, said) = (at("from"), self.told(at("why")), at("said"));
        // Letters of before carry nothing but the words for a model.
        if why.is_empty() {
            return Some(at("text").to_owned());
        }
        let words = say!(self, "your message to {name} came back ({why})", "您写给 {name} 的消息被退回（{why}）");
        Some(match said {
            "" => words,
            said => say!(self, "{words}: {said}", "{words}：{said}"),
        })
    }

    /// A teammate has ended.
    pub fn mate_ended(self, name: &str, by: &str, reason: &str) -> String {
        let how = self.ended_by(by, reason);
        say!(self, "{name} has ended ({how})", "{name} 已结束（{how}）")
    }
}
