//! The phrases of runs that are looked at again.

use max_team_core::policy::Verdict;
use max_team_runtime::replay::{BadTape, TAPE_VERSION};

use super::{Lang, plural};

phrases! {
    fork_files_unknown: "the files are as they are now: how they were is not in this journal",
        "文件为当前状态：此日志中没有其原来的内容";
    fork_goes_on: "from here on in a session of its own", "从此处起在独立的会话中继续";
    step_keys: "[Enter: next, q Enter: end]", "[Enter：下一条，q Enter：结束]";
    same_way: "All agents did the same in both.", "两次运行中每个智能体的行为都相同。";
    parted_never: "(nothing: it was done)", "（无：已结束）";
    last_answer: "The last answer", "最后的答复";
    answers_equal: "The last answer is the same in both.", "两次运行的最后答复相同。";
    agents_word: "agents", "智能体";
    turns_word: "turns", "轮次";
    model_calls_word: "model calls", "模型调用";
    failed_calls_word: "  without an answer", "  无答复";
    tool_calls_word: "tool calls", "工具调用";
    failed_tools_word: "  failed", "  失败";
    tokens_in_word: "tokens in", "输入 token";
    tokens_out_word: "tokens out", "输出 token";
    cost_word: "cost", "费用";
    model_time_word: "models' time", "模型耗时";
    time_word: "time", "总耗时";
    strict_same: "Every one of them would be the same.", "每一次都会相同。";
    as_kept: "All of it is byte for byte what was kept.", "全部与保存的内容逐字节一致。";
    run_goes_on: "The run goes on while it is looked at: what is kept of it was not compared.",
        "该运行仍在进行：未与保存的内容比较。";
    no_run(run: &str): "`{run}` is neither a file nor a session; `max-team sessions list` shows those there are",
        "`{run}` 既不是文件也不是会话；用 `max-team sessions list` 查看现有会话";
    bad_tape(path: &str, why: &str): "`{path}` is no recorded run: {why}", "`{path}` 不是录制的运行：{why}";
    tape_exists(path: &str):
        "`{path}` is there already; name another file, or give --force with `max-team replay RUN --record`",
        "`{path}` 已存在；请换一个文件名，或使用 `max-team replay RUN --record FILE --force`";
    tape_unwritten(path: &str, why: &str): "the run was not recorded in `{path}`: {why}", "运行未能录制到 `{path}`：{why}";
    tape_written(path: &str, entries: usize, redacted: usize):
        "recorded in `{path}`: {entries} entries, {redacted} of them with something taken out that looked like a secret",
        "已录制到 `{path}`：{entries} 条记录，其中 {redacted} 条去除了疑似密钥的内容";
    replay_begins(session: &str, cwd: &str): "replay of {session} in {cwd}: no model is called, nothing is written",
        "回放 {session}（{cwd}）：不调用模型，不写入任何内容";
    replayed(entries: usize, calls: usize):
        "played {entries} entries; {calls} model calls are in them, and none was made",
        "已回放 {entries} 条记录；其中有 {calls} 次模型调用，本次一次也未发起";
    strict_begins(session: &str, calls: usize):
        "{session}: {calls} recorded model calls, held against today's prompts, tools, definitions and rules; none was made",
        "{session}：{calls} 次录制的模型调用，与当前的提示词、工具、定义和规则对照；未发起任何调用";
    diverged_at(agent: &str, calls: &str, piece: &str): "{agent}, call {calls}: {piece}",
        "{agent}，第 {calls} 次调用：{piece}";
    more_diff(lines: usize): "… {lines} more lines; `--json` has all of them", "……还有 {lines} 行；用 `--json` 查看全部";
    diverged(diverged: usize, calls: usize):
        "diverged: {diverged} of {calls} recorded calls would be other ones today; if that is meant, record the run again",
        "已偏离：{calls} 次录制的调用中有 {diverged} 次如今会不同；如属预期，请重新录制";
    skill_gone(name: &str, why: &str):
        "diverged: the run carried out the skill `{name}`, which cannot be carried out today: {why}",
        "已偏离：这次运行执行的是技能 `{name}`，如今它无法执行：{why}";
    made_elsewhere(then: &str, here: &str):
        "The run was made in {then}, and this is {here}: its instructions, definitions and rules are looked for here. \
             Run it in its project.",
        "这次运行是在 {then} 进行的，而这里是 {here}：指令、定义与规则都取自这里。请在它的项目中执行。";
    fork_file_left(path: &str, why: &str): "as it is now: {path} ({why})", "保持现状：{path}（{why}）";
    fork_more_left(more: usize): "as they are now: {more} more", "保持现状：另有 {more} 个";
    no_fork_copy(why: &str): "there is no copy of the project to go on in: {why}; --here goes on in the project itself",
        "无法建立项目副本：{why}；用 --here 直接在项目中继续";
    shared_past(seq: u64): "One goes on from the other: what both share, up to entry {seq}, is left out.",
        "其中一次从另一次分出：两者共有的部分（到第 {seq} 条记录）不计。";
    parted_at(agent: &str, step: usize): "They part at step {step} of {agent}:", "两次运行在 {agent} 的第 {step} 步分开：";
    not_as_kept(count: usize):
        "{count} of them are not what was kept; `max-team audit verify` checks the log, `max-team doctor --rebuild` makes the rows again",
        "其中 {count} 项与保存的内容不一致；`max-team audit verify` 检查日志，`max-team doctor --rebuild` 重建记录";
}

impl Lang {
    pub fn folded_counts(self, [turns, ledgers, plans, tasks, mail, rows]: [usize; 6]) -> String {
        say!(
            self,
            "folded again: {turns} turn histories, {ledgers} ledgers, {plans} plans, {tasks} task rows, {mail} mailboxes, {rows} other rows",
            "重新折叠：{turns} 份对话历史、{ledgers} 份账目、{plans} 个计划、{tasks} 条任务、{mail} 个信箱、{rows} 条其他记录"
        )
    }

    /// Why a file is no run.
    pub fn tape_fault(self, fault: &BadTape) -> String {
        match fault {
            BadTape::Io(error) => say!(self, "it cannot be read: {error}", "无法读取：{error}"),
            BadTape::Other => say!(
                self,
                "it does not begin like a recording; `max-team replay RUN --record FILE` makes one",
                "开头不是录制内容；可用 `max-team replay RUN --record 文件` 录制"
            ),
            BadTape::Newer(version) => say!(
                self,
                "it is a recording of version {version}, and this program knows those up to {TAPE_VERSION}; use a newer one",
                "其录制版本为 {version}，本程序最高支持 {TAPE_VERSION}；请使用更新的程序"
            ),
            BadTape::Line { line, detail } => {
                say!(self, "line {line} is no line of a recording: {detail}", "第 {line} 行不是录制内容：{detail}")
            }
            BadTape::NoLead { line } => say!(
                self,
                "it ends at line {line}, and no entry says who leads",
                "在第 {line} 行结束，而没有记录说明由谁主导"
            ),
            BadTape::LongLine { line, max } => {
                say!(self, "line {line} has more than {max} bytes", "第 {line} 行超过 {max} 字节")
            }
            BadTape::Long(max) => say!(self, "it has more than {max} lines", "超过 {max} 行"),
            BadTape::Cut(entries) => say!(
                self,
                "its end is missing after {entries} entries; record it again",
                "在 {entries} 条记录之后缺少结尾；请重新录制"
            ),
        }
    }

    pub fn verdict(self, verdict: Verdict) -> &'static str {
        let (en, zh) = match verdict {
            Verdict::Allow => ("allowed", "允许"),
            Verdict::Ask => ("asked about", "询问"),
            Verdict::Deny => ("refused", "拒绝"),
        };
        if self == Self::En { en } else { zh }
    }

    pub fn judged_by(self, verdict: Verdict, rule: &str) -> String {
        let word = self.verdict(verdict);
        say!(self, "{word}, by {rule}", "{word}，依据：{rule}")
    }

    pub fn forked(self, session: &str, seq: u64, copy: Option<&str>, root: &str) -> String {
        match copy {
            Some(copy) => say!(
                self,
                "goes on from {session} behind event {seq}, in a copy of the project: {root}\n\
                 `max-team worktrees show {copy}` shows what differs, `accept` takes it, `reject` drops the copy; \
                 go on later with `cd {root} && max-team -c`",
                "从 {session} 的第 {seq} 条记录之后继续，工作在项目的副本中：{root}\n\
                 `max-team worktrees show {copy}` 查看差异，`accept` 采纳，`reject` 丢弃副本；\
                 以后可用 `cd {root} && max-team -c` 继续"
            ),
            None => say!(
                self,
                "goes on from {session} behind event {seq}, in the project itself",
                "从 {session} 的第 {seq} 条记录之后继续，直接在项目中工作"
            ),
        }
    }

    /// Who does not come along.
    pub fn fork_alone(self, others: &[String]) -> String {
        let mut words = say!(self, "only the conversation of the lead goes over", "只带来负责人的对话");
        if !others.is_empty() {
            let (en, zh) = (others.join(", "), others.join("、"));
            words.push_str(&say!(
                self,
                ": {en}, and their plans, tasks and messages, stay in the old session",
                "：{zh} 及其计划、任务和消息留在原会话中"
            ));
        }
        words
    }

    pub fn fork_files(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(
            self,
            "what was changed behind that point is there as it was then ({en}); the project itself is not touched",
            "该时间点之后改动过的 {files} 个文件在副本中已恢复原样；项目本身未作改动"
        )
    }

    /// What a step of an agent was.
    pub fn step_kind(self, kind: &str) -> &'static str {
        let (en, zh) = match kind {
            "told" => ("is told", "收到"),
            "answer" => ("says", "答复"),
            "tool" => ("calls", "调用"),
            "result" => ("gets", "结果"),
            _ => ("ends", "结束"),
        };
        if self == Self::En { en } else { zh }
    }

    pub fn run_damaged(self, count: usize) -> String {
        let entries =
            if count == 1 { "1 entry of the run is".to_owned() } else { format!("{count} entries of the run are") };
        say!(
            self,
            "{entries} not as written: what is played is not what happened; `max-team audit verify` tells all",
            "该运行中有 {count} 条记录与写入时不同：回放的内容并非当时发生的；`max-team audit verify` 列出全部问题"
        )
    }

    pub fn not_as_recorded(self, count: usize) -> String {
        let things = if count == 1 {
            "1 thing that follows from it is"
        } else {
            &format!("{count} things that follow from it are")
        };
        say!(
            self,
            "{things} not what was recorded: the file was changed, or another version made it; record the run again",
            "有 {count} 项与录制时的结果不一致：文件被改动过，或由其他版本录制；请重新录制"
        )
    }
}
