//! What the team's own records say, in the user's language.
//!
//! The journal, the trace and the stream have one language, as they are data that is kept and compared. A face says their
//! sentences in the user's by this table: one row per sentence, with `{}` where something of the matter stands. A
//! sentence that is not in it is shown as it is.

use max_team_core::policy::AutoAllow;
use max_team_runtime::SpanKind;

use super::Lang;

/// How something ended and on whose word, and the same in Chinese; the first that fits counts.
const ENDS: &[(&str, &str)] = &[
    // How something ended.
    ("ok", "成功"),
    ("open", "未决"),
    ("running", "进行中"),
    ("answered", "已答复"),
    ("unanswered", "未答复"),
    ("proposed", "已提出计划"),
    ("truncated", "已截断"),
    ("empty", "没有内容"),
    ("unstructured", "没有给出所要求格式的答复"),
    ("looping", "重复同样的内容"),
    ("rounds", "达到模型调用上限"),
    ("budget", "预算已用完"),
    ("interrupted", "已停止"),
    ("broken", "无法继续"),
    ("ran", "已执行"),
    ("invalid", "无法按要求执行"),
    ("could not run as asked", "无法按要求执行"),
    ("stopped", "已停止"),
    ("cancelled", "已取消"),
    ("unknown", "结果不明"),
    ("lost", "已丢失"),
    ("lost with its process", "随进程丢失"),
    ("ended", "已结束"),
    ("failed: {} of {} done, {} verified", "失败：{} / {} 项完成，{} 项已验证"),
    ("failed: {}; tried again", "失败：{}；已重试"),
    ("failed: {}", "失败：{}"),
    ("failed", "失败"),
    ("refused: {}", "被拒绝：{}"),
    ("refused", "被拒绝"),
    // Answers to permission questions.
    ("yes, always", "允许，并记住"),
    ("no, always", "拒绝，并记住"),
    ("yes: {}", "允许：{}"),
    ("no: {}", "拒绝：{}"),
    ("yes", "允许"),
    ("no", "拒绝"),
    ("approved the first wave", "批准了第一批"),
    ("approved", "已批准"),
    ("edited", "已修改"),
    ("asked for changes", "要求修改"),
    ("rejected", "已否决"),
    ("replaced", "被替换"),
    ("decided", "已决定"),
    ("rewound", "恢复了文件"),
    // Why a message was not read.
    ("it is no more", "对方已结束"),
    ("it cannot work: {}", "对方无法工作：{}"),
    // On whose word.
    ("what {} was allowed for the session", "{} 在本会话中获准的"),
    ("a person", "某人"),
    ("nobody ({})", "无人（{}）"),
    ("the rule {}", "规则 {}"),
    ("permission mode {}", "权限模式 {}"),
    ("the approved plan", "已批准的计划"),
    ("allowed for this session by the user", "用户已在本会话内允许"),
    ("allowed for this task by the user", "用户已在本任务内允许"),
    ("allowed {} by the user", "用户已允许（{}）"),
    ("the member's {}", "该成员的 {}"),
    ("only the user changes {}: {} runs it by itself", "只有用户可以更改 {}：{} 会自行运行它"),
    ("only the user changes {}: {} takes it for instructions", "只有用户可以更改 {}：{} 会把它当作指令"),
    (
        "only the user changes {}: it configures {}: who works there and what they may do",
        "只有用户可以更改 {}：它配置 {}：谁在那里工作、可以做什么",
    ),
    ("only the user changes {}: it is the record of what agents did", "只有用户可以更改 {}：它记录智能体的行为"),
    (
        "only the user changes {}: this run was started with it, or keeps its record in it",
        "只有用户可以更改 {}：本次运行由它启动，或把记录写在其中",
    ),
    ("always asked: {}: {} runs it by itself", "总是询问：{}：{} 会自行运行它"),
    ("always asked: {}: {} takes it for instructions", "总是询问：{}：{} 会把它当作指令"),
    (
        "always asked: {}: it configures {}: who works there and what they may do",
        "总是询问：{}：它配置 {}：成员及其权限",
    ),
    ("always asked: {}: it is the record of what agents did", "总是询问：{}：它记录智能体的行为"),
    ("always asked: {}", "总是询问：{}"),
    ("the lead or a person approves a teammate's plan", "队友的计划由主管或用户批准"),
    ("a person decides about changes in a worktree", "工作树中的改动由用户决定"),
    ("outside the paths this task owns", "在此任务负责的文件之外"),
    // What makes a plan risky, and why a task failed.
    ("task {} runs {} as a check: {}", "任务 {} 以 {} 作为检查：{}"),
    ("task {} runs {} as a check", "任务 {} 以 {} 作为检查"),
    ("task {} changes {}, which is protected: {} runs it by itself", "任务 {} 更改受保护的 {}：{} 会自行运行它"),
    (
        "task {} changes {}, which is protected: {} takes it for instructions",
        "任务 {} 更改受保护的 {}：{} 会把它当作指令",
    ),
    ("task {} changes {}, which is protected: {}", "任务 {} 更改受保护的 {}：{}"),
    (
        "the task reported success, but a check failed: {}: the file does not exist",
        "任务报告成功，但检查未通过：{}：文件不存在",
    ),
    ("the task reported success, but a check failed: {}: exit {}", "任务报告成功，但检查未通过：{}：退出码 {}"),
    ("the task reported success, but a check failed: {}", "任务报告成功，但检查未通过：{}"),
    ("not to be seen through: {}", "无法看清：{}"),
    ("it can discard uncommitted work; {}", "可能丢弃未提交的内容；{}"),
    ("done, verified", "完成，已验证"),
    ("done, unverified", "完成，未验证"),
    ("done, checks failed", "完成，检查未通过"),
    ("done, verified, {}", "完成，已验证，{}"),
    ("done, unverified, {}", "完成，未验证，{}"),
    ("skipped: {}", "已跳过：{}"),
    ("given up: {}", "已放弃：{}"),
    ("done: {} of {} done, {} verified", "完成：{} / {} 项完成，{} 项已验证"),
    ("partly done: {} of {} done, {} verified", "部分完成：{} / {} 项完成，{} 项已验证"),
    ("stopped: {} of {} done, {} verified", "已停止：{} / {} 项完成，{} 项已验证"),
    ("rejected: {} of {} done, {} verified", "已否决：{} / {} 项完成，{} 项已验证"),
    ("replaced: {} of {} done, {} verified", "被替换：{} / {} 项完成，{} 项已验证"),
    ("about {} → {} tokens", "约 {} → {} 词元"),
];

/// What happens and what is asked, on the way; beside them stands what a model says, so that none is a mere word.
const STEPS: &[(&str, &str)] = &[
    ("stopped by {}", "由 {} 停止"),
    ("may it {}?", "是否允许 {}？"),
    ("may this plan run?", "是否执行此计划？"),
    ("the first wave is over; may the rest run?", "第一批已完成；是否继续其余部分？"),
    ("may task {} start?", "是否开始任务 {}？"),
    ("task {} failed: {}", "任务 {} 失败：{}"),
    ("the budget is used up; is there more?", "预算已用完；是否追加？"),
    ("attempt {} by {}", "第 {} 次，由 {}"),
    ("{} → {} messages", "{} → {} 条消息"),
    ("no summary", "没有摘要"),
    ("taken back", "已撤回"),
    ("the built-in team", "内置团队"),
    ("bubblewrap is not installed", "未安装 bubblewrap"),
    ("no control group from {} up hands caps on memory and processes down", "自 {} 起没有控制组可用于限制内存和进程数"),
    ("the session begins in {}", "会话在 {} 中开始"),
    ("goes on from {} behind {}", "从 {} 的第 {} 条之后继续"),
    ("calls {} for a summary, attempt {}", "调用 {} 生成摘要，第 {} 次"),
    ("calls {} for a summary", "调用 {} 生成摘要"),
    ("calls {}, attempt {}", "调用 {}，第 {} 次"),
    ("calls {}", "调用 {}"),
    ("the model is told: {}", "告知模型：{}"),
    ("is told on its way: {}", "途中告知：{}"),
    ("task {} is written down", "任务 {} 已记下"),
    ("what was said so far is to be summed up", "将总结此前的内容"),
    ("{} messages are told in {} from now on", "{} 条消息自此以 {} 条概括"),
    ("there is no summary: {}", "没有摘要：{}"),
    ("the last summary counts no more", "上一个摘要已作废"),
    ("{} is sent to {}", "已向 {1} 发出 {0}"),
    ("{} has come", "已收到 {}"),
    ("no answer came in time", "未及时收到答复"),
    ("{} of {} is refused: {}", "{1} 的 {0} 被拒绝：{2}"),
    ("ended by {}", "由 {} 结束"),
    ("its changes in its worktree are reviewed", "正在审查它在工作树中的改动"),
    ("may do what {} was allowed for the session", "可以做 {} 在本会话中获准做的"),
    ("{} runs in the background: {}", "{} 在后台运行：{}"),
    ("{} is over", "{} 已结束"),
    ("task {} is added: {}", "新增任务 {}：{}"),
    ("task {} says: {}", "任务 {} 改为：{}"),
    ("task {} is pending, of {}", "任务 {} 待办，归 {}"),
    ("task {} is in_progress, of {}", "任务 {} 进行中，归 {}"),
    ("task {} is completed, of {}", "任务 {} 已完成，归 {}"),
    ("task {} is deleted, of {}", "任务 {} 已删除，归 {}"),
    ("files were put back; {} could not be", "文件已恢复；{} 个未能恢复"),
    ("the process died while the model was called", "进程在调用模型时终止"),
    ("the answer was too long and is cut", "答复过长，已截断"),
];

/// What is wrong or odd about a team's file.
const FAULTS: &[(&str, &str)] = &[
    ("there are no members in it", "其中没有成员"),
    ("a team is a map of names", "团队应为键值映射"),
    ("a member is a map of names", "成员应为键值映射"),
    ("there is no `{}` in a team, did you mean `{}`?", "团队中没有 `{}` 这一项，是否想写 `{}`？"),
    ("there is no `{}` in a team", "团队中没有 `{}` 这一项"),
    ("there is no `{}` in a member, did you mean `{}`?", "成员中没有 `{}` 这一项，是否想写 `{}`？"),
    ("there is no `{}` in a member", "成员中没有 `{}` 这一项"),
    ("`members` is a list", "`members` 应为列表"),
    ("`{}` is a text", "`{}` 应为文本"),
    ("`{}` is in it twice", "`{}` 出现了两次"),
    ("`{}` looks like `{}`, which is in it, too", "`{}` 与其中的 `{}` 形似"),
    ("`{}`: `prompt` is missing: what it does first", "`{}`：缺少 `prompt`，即首先做什么"),
    ("there is no type `{}`, did you mean `{}`? there are {}", "没有类型 `{}`，是否想写 `{}`？现有 {}"),
    ("there is no type `{}`; there are {}", "没有类型 `{}`；现有 {}"),
    ("there is no colour `{}`; there are {}; it gets one that is free", "没有颜色 `{}`；现有 {}；将取未用的颜色"),
    ("`mode` is one of {}", "`mode` 应为以下之一：{}"),
    ("`mode: {}` is held back: {}", "`mode: {}` 不予采用：{}"),
    (
        "`mode: {}`: no teammate is freer than the session, which is `{}`",
        "`mode: {}`：队友的权限不会超过会话，会话为 `{}`",
    ),
    ("`isolation` is `none` or `worktree`", "`isolation` 应为 `none` 或 `worktree`"),
    ("`{}` is true or false", "`{}` 应为 true 或 false"),
    ("a teammate needs a name", "队友需要名字"),
    ("a name has at most {} characters", "名字最多 {} 个字符"),
    ("`{}` is no name: use letters, digits, `-`, `_` and `.`", "`{}` 不能作名字：请用字母、数字、`-`、`_` 和 `.`"),
    ("`{}` is no name: a number means something else where people write it", "`{}` 不能作名字：数字在书写时另有含义"),
    (
        "`{}` is no name: `{}` looks like another letter; use plain ones",
        "`{}` 不能作名字：`{}` 形似别的字母；请用普通字母",
    ),
    (
        "`{}` is no name: it mixes Latin, Greek or Cyrillic letters, which look alike",
        "`{}` 不能作名字：混用了形似的拉丁、希腊或西里尔字母",
    ),
    ("`{}` is a reserved name", "`{}` 是保留名称"),
    (
        "`{}` is called so already, and works here without being a teammate: choose another name",
        "`{}` 已是此处工作者的名字，但不是队友：请另取名字",
    ),
    ("it is a link that leads out of the project", "它是指向项目之外的链接"),
];

/// What stands before a rule in a trace.
const RULE: &str = "rule: ";
const NEXT_RULE: &str = "; rule: ";
/// Where something of the matter stands.
const GAP: &str = "{}";

impl Lang {
    /// Translates how something ended, who ended it, or a fixed phrase about it.
    pub fn told(self, text: &str) -> String {
        self.person(text).unwrap_or_else(|| self.by_table(ENDS, text))
    }

    /// A user and the way an answer came, as `ada at cli` is stored. `owner` stands for a user without a name.
    fn person(self, text: &str) -> Option<String> {
        let (who, door) = text.rsplit_once(" at ")?;
        let door = match door {
            "cli" => self.door_command_line(),
            "terminal" => self.door_chat(),
            "headless" => self.door_headless(),
            "web" => self.door_web(),
            _ => return None,
        };
        Some(self.person_at_door(if who == "owner" { self.you_word() } else { who }, door))
    }

    /// What happens, or is asked.
    pub fn step(self, text: &str) -> String {
        self.by_table(STEPS, text)
    }

    /// What is wrong or odd about a team's file: a line for each, behind its place.
    pub fn team_faults(self, text: &str) -> String {
        let line = |line: &str| match line.split_once(": ") {
            Some((place, words)) => format!("{place}: {}", self.by_table(FAULTS, words)),
            None => line.to_owned(),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    fn by_table(self, table: &[(&str, &str)], text: &str) -> String {
        let fits = |(en, zh): &(&str, &str)| Some(filled(zh, &gaps(en, text)?));
        match self {
            Self::En => text.to_owned(),
            Self::Zh => table.iter().find_map(fits).unwrap_or_else(|| text.to_owned()),
        }
    }

    /// A rule in the words of the judge; a built-in one says it in ours.
    pub fn rule(self, rule: &str) -> String {
        match AutoAllow::from_reason(rule) {
            Some(free) => self.free(free.name(), rule),
            None => self.told(rule),
        }
    }

    /// On whose word a span of a trace happened.
    pub fn whose_word(self, by: &str) -> String {
        match by.strip_prefix(RULE) {
            Some(rules) if self == Self::Zh => {
                let each = rules.split(NEXT_RULE).map(|rule| self.rule(rule));
                format!("规则：{}", each.collect::<Vec<_>>().join("；"))
            }
            _ => self.told(&self.step(by)),
        }
    }

    /// What a trace calls one of its spans.
    pub fn span_name(self, kind: SpanKind, name: &str) -> String {
        match (kind, self) {
            (_, Self::En) | (SpanKind::Tool | SpanKind::Turn | SpanKind::Task | SpanKind::Plan, _) => name.to_owned(),
            (SpanKind::Session, Self::Zh) => {
                name.split_once(" in ").map_or_else(|| name.to_owned(), |(id, cwd)| format!("{id}，位于 {cwd}"))
            }
            (SpanKind::Model, Self::Zh) => {
                let name = name.replace(" (summary)", "（摘要）");
                name.split_once(" (attempt ").map_or_else(
                    || name.clone(),
                    |(model, number)| format!("{model}（第 {} 次）", number.trim_end_matches(')')),
                )
            }
            (_, Self::Zh) => self.step(name),
        }
    }

    /// What an entry says, in a line.
    pub fn what(self, event: &str, what: &str) -> String {
        match event {
            "tool_done" => match what.split_once(' ') {
                Some((key, ending)) => format!("{key} {}", self.told(ending)),
                None => what.to_owned(),
            },
            "question_answered" | "plan_answered" | "llm_ended" => self.told(what),
            _ => what.to_owned(),
        }
    }
}

/// What stands in the gaps of a sentence, if the text is one like it. A gap ends where the words behind it first come again.
fn gaps<'t>(sentence: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let mut pieces = sentence.split(GAP);
    let mut rest = text.strip_prefix(pieces.next()?)?;
    let mut found = Vec::new();
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none();
        let at = match (is_last, piece.is_empty()) {
            (true, true) => rest.len(),
            (true, false) => rest.len().checked_sub(piece.len()).filter(|at| rest.get(*at..) == Some(piece))?,
            (false, _) => rest.find(piece)?,
        };
        let (gap, behind) = rest.split_at_checked(at)?;
        // A sentence that begins with a name begins with one word.
        if gap.is_empty() || (sentence.starts_with(GAP) && found.is_empty() && gap.contains(char::is_whitespace)) {
            return None;
        }
        found.push(gap);
        rest = behind.strip_prefix(piece)?;
    }
    rest.is_empty().then_some(found)
}

/// A sentence with its gaps filled, in order or as it numbers them.
fn filled(sentence: &str, gaps: &[&str]) -> String {
    let mut text = sentence.to_owned();
    for (index, gap) in gaps.iter().enumerate() {
        let numbered = format!("{{{index}}}");
        let place = if text.contains(&numbered) { &numbered } else { GAP };
        text = text.replacen(place, gap, 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_said_in_chinese_with_what_stands_in_them() {
        for (en, zh) in [
            ("failed: no such file; tried again", "失败：no such file；已重试"),
            ("done: 2 of 3 done, 1 verified", "完成：2 / 3 项完成，1 项已验证"),
            ("failed: 0 of 3 done, 0 verified", "失败：0 / 3 项完成，0 项已验证"),
            ("yes", "允许"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!((Lang::Zh.told(en), Lang::En.told(en)), (zh.to_owned(), en.to_owned()));
        }
        for (en, zh) in [
            ("the session begins in /p", "会话在 /p 中开始"),
            ("text is sent to leo", "已向 leo 发出 text"),
            ("calls m", "调用 m"),
            ("calls ", "calls "),
            // What a model says is nobody's to change.
            ("yes", "yes"),
            ("The long day is over", "The long day is over"),
        ] {
            assert_eq!((Lang::Zh.step(en), Lang::En.step(en)), (zh.to_owned(), en.to_owned()));
        }
        let rules = "rule: the rule `allow: Bash(make)` (a.json:4); rule: reading inside the project is always allowed";
        let zh = "规则：规则 `allow: Bash(make)` (a.json:4)；读取项目内的文件总是允许的";
        assert_eq!((Lang::Zh.whose_word(rules), Lang::En.whose_word(rules)), (zh.to_owned(), rules.to_owned()));
    }

    #[test]
    fn both_sides_of_a_row_have_the_same_gaps() {
        for (en, zh) in ENDS.iter().chain(STEPS).chain(FAULTS) {
            let count = en.matches(GAP).count();
            let numbered = (0..count).filter(|index| zh.contains(&format!("{{{index}}}"))).count();
            assert!(zh.matches(GAP).count() == count || numbered == count, "{en}: {zh}");
        }
    }

    #[test]
    fn the_stopper_of_a_task_is_named_in_one_language() {
        let by = "stopped by owner at cli";
        assert_eq!(Lang::Zh.given_up(by), "放弃：由 您（命令行） 停止");
        assert_eq!(Lang::En.given_up(by), "given up: stopped by you (command line)");
        assert_eq!(Lang::En.told("ada at terminal"), "ada (chat)");
        assert_eq!(
            (Lang::Zh.told("ada at noon"), Lang::En.told("ada at noon")),
            ("ada at noon".into(), "ada at noon".into())
        );
    }
}
