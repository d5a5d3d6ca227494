//! The phrases of runs that are looked at again.

use super::Lang;

phrases! {
    as_kept: "All of it is byte for byte what was kept.", "全部与保存的内容逐字节一致。";
    run_goes_on: "The run goes on while it is looked at: what is kept of it was not compared.",
        "该运行仍在进行：未与保存的内容比较。";
}

impl Lang {
    pub(crate) fn no_run(self, run: &str) -> String {
        say!(
            self,
            "`{run}` is neither a file nor a session; `max-team sessions list` shows those there are",
            "`{run}` 既不是文件也不是会话；用 `max-team sessions list` 查看现有会话"
        )
    }

    pub(crate) fn bad_tape(self, path: &str, why: &str) -> String {
        say!(self, "`{path}` is no recorded run: {why}", "`{path}` 不是录制的运行：{why}")
    }

    pub(crate) fn tape_exists(self, path: &str) -> String {
        say!(
            self,
            "`{path}` is there already; name another file, or give --force with `max-team replay RUN --record`",
            "`{path}` 已存在；请换一个文件名，或使用 `max-team replay RUN --record FILE --force`"
        )
    }

    pub(crate) fn tape_unwritten(self, path: &str, why: &str) -> String {
        say!(self, "the run was not recorded in `{path}`: {why}", "运行未能录制到 `{path}`：{why}")
    }

    pub(crate) fn tape_written(self, path: &str, entries: usize, redacted: usize) -> String {
        say!(
            self,
            "recorded in `{path}`: {entries} entries, {redacted} of them with something taken out that looked like a secret",
            "已录制到 `{path}`：{entries} 条记录，其中 {redacted} 条去除了疑似密钥的内容"
        )
    }

    pub(crate) fn replay_begins(self, session: &str, cwd: &str) -> String {
        say!(
            self,
            "replay of {session} in {cwd}: no model is called, nothing is written",
            "回放 {session}（{cwd}）：不调用模型，不写入任何内容"
        )
    }

    pub(crate) fn replayed(self, entries: usize, calls: usize) -> String {
        say!(
            self,
            "played {entries} entries; {calls} model calls are in them, and none was made",
            "已回放 {entries} 条记录；其中有 {calls} 次模型调用，本次一次也未发起"
        )
    }

    pub(crate) fn folded_counts(self, [turns, ledgers, plans, tasks, mail, rows]: [usize; 6]) -> String {
        say!(
            self,
            "folded again: {turns} turn histories, {ledgers} ledgers, {plans} plans, {tasks} task rows, {mail} mailboxes, {rows} other rows",
            "重新折叠：{turns} 份对话历史、{ledgers} 份账目、{plans} 个计划、{tasks} 条任务、{mail} 个信箱、{rows} 条其他记录"
        )
    }

    pub(crate) fn not_as_kept(self, count: usize) -> String {
        say!(
            self,
            "{count} of them are not what was kept; `max-team audit verify` checks the log, `max-team doctor --rebuild` makes the rows again",
            "其中 {count} 项与保存的内容不一致；`max-team audit verify` 检查日志，`max-team doctor --rebuild` 重建记录"
        )
    }
}
