//! The phrases about what is kept: recovery, backups, forgetting.

use max_team_core::id::SessionId;
use max_team_runtime::{Gone, Recovered};

use super::{Lang, plural};
use crate::figures::local;

phrases! {
    not_backed_up: "no backup was made: a copy of a journal that does not hold is none; `max-team audit verify` tells all, and \
        an earlier backup can be put in its place with `max-team restore FILE`",
        "没有生成备份：不完好的日志的副本不是备份；`max-team audit verify` 列出全部问题，可用 `max-team restore 文件` 恢复较早的备份";
    not_restored: "nothing was changed: this backup does not hold; try another",
        "未作任何改动：此备份不完好；请换一个";
    restore_it: "Restore it?", "是否恢复？";
    restore_needs_yes: "this would replace a journal, and there is no terminal to ask: pass --yes to confirm",
        "此处无法询问，而现有日志将被替换：确认请加 --yes";
    nothing_to_forget: "there is nothing to forget", "没有可清除的会话";
    forget_which: "say which session, or since when nothing was said: `max-team sessions forget --older-than 90d`; or set \
        `journal.keep_days`",
        "请指定会话或时间：`max-team sessions forget --older-than 90d`；或设置 `journal.keep_days`";
    forget_needs_yes: "there is no terminal to ask: pass --yes to confirm, or --dry-run to list them",
        "此处无法询问：确认请加 --yes，只查看请加 --dry-run";
    held_unread(bytes: u64): "{bytes} bytes that cannot be read as they are", "{bytes} 字节，目前无法读取";
    would_replace(now: &str, file: &str, with: &str):
        "The journal ({now}) is to be replaced by `{file}` ({with}); the one of before is kept beside it.",
        "现有日志（{now}）将被替换为 `{file}`（{with}）；此前的日志会保存在旁边。";
    no_backup(path: &str, detail: &str): "`{path}` is no whole journal: {detail}; nothing was changed",
        "`{path}` 不是完整的日志：{detail}；未作任何改动";
    lines_in(lines: u64, file: &str): "{lines} lines are in `{file}`", "`{file}` 共 {lines} 行";
    file_is_there(path: &str): "`{path}` is already there and was left as it is: name another file",
        "`{path}` 已存在，未作改动：请换一个文件名";
    cannot_write(path: &str, detail: &str): "cannot write `{path}`: {detail}", "无法写入 `{path}`：{detail}";
    session_runs(session: &str, what: &str, pid: u32):
        "`{session}` is run by `{what}` (process {pid}): stop it first with `max-team stop {session}`",
        "`{session}` 正由 `{what}`（进程 {pid}）运行：请先用 `max-team stop {session}` 停止";
    not_all_forgotten(left: usize): "; stopped: {left} more would be forgotten", "；已停止：还有 {left} 个会话未清除";
    not_forgotten(error: &str): "what is older than `journal.keep_days` could not be forgotten: {error}",
        "未能清除早于 `journal.keep_days` 的会话：{error}";
}

impl Lang {
    /// One line on what a session had open; nothing, if it had nothing.
    pub fn recovered(self, found: &Recovered, session: SessionId) -> Option<String> {
        if found.is_empty() {
            return None;
        }
        let counts = [
            (found.agents, "agent", "位成员"),
            (found.tasks, "task", "项任务"),
            (found.mail, "message", "条消息"),
            (found.teams, "team", "个团队"),
            (found.approvals, "question for you", "个待您答复的问题"),
            (found.unknown, "call", "次调用"),
        ];
        let said = |(count, en, zh): &(usize, &str, &str)| match self {
            Self::En if en.starts_with("question") && *count != 1 => format!("{count} questions for you"),
            Self::En => plural(*count, en),
            Self::Zh => format!("{count} {zh}"),
        };
        let (open, lost) = counts.split_at(counts.len() - 1);
        let mut parts: Vec<String> = open.iter().filter(|(count, ..)| *count > 0).map(said).collect();
        for lost in lost.iter().filter(|(count, ..)| *count > 0) {
            let what = said(lost);
            parts.push(say!(self, "{what} with unknown outcome", "{what}结果未知"));
        }
        let parts = parts.join(if self == Self::En { ", " } else { "、" });
        let mut line = say!(self, "going on where it was left: {parts}", "从中断处继续：{parts}");
        if found.approvals > 0 {
            line.push_str(&say!(self, "; `max-team inbox` shows what is asked", "；`max-team inbox` 查看问题"));
        }
        if found.unknown > 0 {
            line.push_str(&say!(
                self,
                "; `max-team trace {session}` shows what may or may not have happened: please look",
                "；`max-team trace {session}` 查看可能已发生也可能未发生的操作，请核对"
            ));
        }
        Some(line)
    }

    pub fn backed_up(self, file: &str, entries: u64, bytes: u64) -> String {
        let size = size(bytes);
        say!(
            self,
            "{entries} entries ({size}) are in `{file}`, and every hash, chain and seal of it holds",
            "`{file}` 已包含 {entries} 条记录（{size}），其哈希、链条和封印均完好"
        )
    }

    /// The user asks for a session that was erased.
    pub fn was_forgotten(self, gone: &Gone) -> String {
        let Gone { session, seq, by, .. } = gone;
        let (at, by) = (local(gone.at_ms), self.told(by));
        say!(
            self,
            "session `{session}` was forgotten at {at}, by {by} (entry {seq}): what was said and done in it is erased; \
             `max-team audit show` still lists its entries, without their content, and `max-team sessions list` what is there",
            "会话 `{session}` 已于 {at} 由 {by} 清除（第 {seq} 条记录）：其中所说所做的内容已删除；`max-team audit show` 仍会列出其记录，\
             但没有内容；现有的会话见 `max-team sessions list`"
        )
    }

    /// What is in a journal, in a few words.
    pub fn held(self, sessions: usize, entries: u64, last: Option<&str>) -> String {
        let en = plural(sessions, "session");
        let mut words = say!(self, "{en}, {entries} entries", "{sessions} 个会话，{entries} 条记录");
        if let Some(last) = last {
            words.push_str(&say!(self, ", last used {last}", "，最近使用于 {last}"));
        }
        words
    }

    pub fn restored(self, file: &str, entries: u64, kept: Option<&str>) -> String {
        let mut words =
            say!(self, "`{file}` ({entries} entries) is the journal now", "日志现为 `{file}`（{entries} 条记录）");
        if let Some(kept) = kept {
            words.push_str(&say!(self, "; the one of before is `{kept}`", "；此前的日志保存在 `{kept}`"));
        }
        words
    }

    pub fn would_forget(self, count: usize) -> String {
        let sessions = plural(count, "session");
        say!(self, "{sessions} would be forgotten", "将清除 {count} 个会话")
    }

    pub fn forget_for_good(self, count: usize) -> String {
        let sessions = plural(count, "session");
        say!(
            self,
            "What was said and done in {sessions} is erased for good, with the answers of experts and the messages to you that \
             came of it. What is remembered, forks, the audit file (which cannot be rewritten), recordings and backups stay. \
             Go on?",
            "{count} 个会话的内容将被永久清除，包括由此产生的专家答案和发给您的消息。记忆、分支会话、审计文件（无法改写）、录制和备份仍会\
             保留。继续吗？"
        )
    }

    pub fn forks_stay(self, forks: &[SessionId]) -> String {
        let names: Vec<String> = forks.iter().map(SessionId::to_string).collect();
        let (en, zh) = (names.join(", "), names.join("、"));
        say!(
            self,
            "forks that go on from there stay, with what was said until then: {en}",
            "由此分出的会话仍会保留，包括分支之前的内容：{zh}"
        )
    }

    pub fn forgot(self, sessions: usize, entries: u64, freed: u64, beside: bool) -> String {
        let (what, space) = (plural(sessions, "session"), size(freed));
        let mut words = say!(
            self,
            "{what} forgotten: {entries} entries have no content any more, and the chain still holds",
            "已清除 {sessions} 个会话：{entries} 条记录的内容已删除，链条依然完好"
        );
        words.push_str(&if beside {
            say!(self, "; their space is used again (others are at work)", "；空间将被重复使用（有其他进程在工作）")
        } else {
            say!(self, "; {space} given back", "；已释放 {space}")
        });
        words
    }
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    const KIB: f64 = 1_024.0;
    let bytes = bytes as f64;
    if bytes < KIB * KIB { format!("{:.0} KB", bytes / KIB) } else { format!("{:.1} MB", bytes / KIB / KIB) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_one_line_with_how_to_look_at_it() {
        let session: SessionId = "ses_01990000000070008000000000000001".parse().unwrap();
        let said = |lang: Lang, found| lang.recovered(&found, session);
        assert_eq!(said(Lang::En, Recovered::default()), None);
        let work = Recovered { agents: 2, tasks: 1, mail: 1, teams: 1, ..Recovered::default() };
        assert_eq!(said(Lang::En, work).unwrap(), "going on where it was left: 2 agents, 1 task, 1 message, 1 team");
        let asked = Recovered { approvals: 2, unknown: 1, ..Recovered::default() };
        assert_eq!(
            said(Lang::En, asked).unwrap(),
            "going on where it was left: 2 questions for you, 1 call with unknown outcome; `max-team inbox` shows what is \
             asked; `max-team trace ses_01990000000070008000000000000001` shows what may or may not have happened: please look"
        );
        let zh = said(Lang::Zh, Recovered { agents: 1, unknown: 2, ..Recovered::default() }).unwrap();
        assert!(zh.starts_with("从中断处继续：1 位成员、2 次调用结果未知") && zh.contains("max-team trace"), "{zh}");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([size(0), size(300_000), size(5 << 20)], ["0 KB", "293 KB", "5.0 MB"]);
    }
}
