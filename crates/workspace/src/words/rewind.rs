//! The phrases of files that are put back.

use max_team_core::rewind::{FileState, RewindNote, SkippedChange, SkippedReason};
use max_team_runtime::rewind::{Moment, Plan, Skip};

use super::{Lang, plural};

/// Changed files that a row names.
const NAMED_MAX: usize = 8;
/// Files that a row names.
const TOLD_MAX: usize = 5;

phrases! {
    nothing_to_rewind: "nothing to put back: the files are as they were, or nothing was changed",
        "没有可恢复的内容：文件与当时一致，或没有任何改动";
    nothing_can_be_rewound: "nothing can be put back", "没有可以恢复的内容";
    no_points: "there are no messages in this session yet", "此会话中还没有任何对话";
    no_session_to_rewind: "there is no session in this folder yet; name one: `max-team rewind SESSION` (`max-team sessions list`)",
        "此文件夹中还没有会话；请指明会话：`max-team rewind 会话`（用 `max-team sessions list` 查看）";
    put_these_back: "Put these files back?", "是否恢复这些文件？";
    rewind_needs_yes: "there is no terminal to ask: `max-team rewind --yes` restores them without a question, `--dry-run` only shows them",
        "无法询问：`max-team rewind --yes` 不经询问直接恢复，`--dry-run` 只查看";
    rewind_left_it: "nothing was put back", "未恢复任何文件";
    rewind_skips: "left alone:", "保持不变：";
    rewind_unseen: "not known in full, and not put back:", "无法完整得知，未恢复：";
    rewind_no_json: "--json goes with --list or --dry-run", "--json 需与 --list 或 --dry-run 一起使用";
    rewind_unchanged: "no files were changed", "未改动文件";
    rewind_first: "`/rewind N` shows first what would be put back", "请先用 `/rewind N` 查看将恢复的内容";
    rewind_list_hint: "`/rewind N` shows what it would put back to before your N-th message; `/rewind undo` takes the last time back",
        "`/rewind N` 查看恢复到您第 N 条消息之前的改动；`/rewind undo` 撤销上一次恢复";
    rewind_yes_hint: "`/rewind yes` puts these files back", "`/rewind yes` 恢复这些文件";
    bad_rewind_point(text: &str):
        "`{text}` is no point: it is `last-turn`, `turn:N`, the number of an event, or a time such as 14:05 or \
             2026-05-01T14:05; `max-team rewind --list` shows the points",
        "`{text}` 不是有效的时间点：可用 `last-turn`、`turn:N`、事件编号，或时间，例如 14:05 或 2026-05-01T14:05；\
             用 `max-team rewind --list` 查看";
    rewind_untouched(word: &str):
        "nothing in this session has touched `{word}`; `max-team rewind --list` shows what was changed",
        "此会话没有改动过 `{word}`；用 `max-team rewind --list` 查看有哪些改动";
    rewind_no_session(word: &str): "there is no session `{word}`; `max-team sessions list` shows them",
        "没有会话 `{word}`；用 `max-team sessions list` 查看";
    rewind_owned(by: &str):
        "the session is open in another process ({by}); put files back there with `/rewind`, or close it first",
        "会话正在另一个进程中打开（{by}）；请在那里用 `/rewind` 恢复文件，或先关闭它";
    rewind_times(times: usize): "(files were put back here)", "（此后恢复过文件，{times} 次）";
}

impl Lang {
    /// What was changed after some words, in a line: `+` for what is new, `-` for what has gone, `~` for the rest.
    pub fn changes_after(self, moment: &Moment) -> String {
        let mut files: Vec<(char, &str)> = Vec::new();
        for (_, change) in &moment.changes {
            let sign = match (change.before, change.after) {
                (FileState::Gone, _) => '+',
                (_, FileState::Gone) => '-',
                _ => '~',
            };
            match files.iter_mut().find(|(_, path)| *path == change.path) {
                // What came and was changed has come; what came and went is nothing worth a sign of its own.
                Some((known, _)) if *known != '+' || sign == '-' => *known = sign,
                Some(_) => {}
                None => files.push((sign, &change.path)),
            }
        }
        let more = files.len().saturating_sub(NAMED_MAX);
        let mut named: Vec<String> = files.iter().take(NAMED_MAX).map(|(sign, path)| format!("{sign}{path}")).collect();
        if named.is_empty() {
            named.push(self.rewind_unchanged().to_owned());
        }
        if more > 0 {
            named.push(format!("… +{more}"));
        }
        if moment.rewound > 0 {
            named.push(self.rewind_times(moment.rewound));
        }
        named.join("  ")
    }

    /// Why nothing is put back.
    pub fn nothing_put_back(self, plan: &Plan) -> &'static str {
        if plan.is_complete() { self.nothing_to_rewind() } else { self.nothing_can_be_rewound() }
    }

    /// A rewind that was begun by a process that did not come to its end.
    pub fn rewind_resumed(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(self, "a rewind of {en} that was interrupted is finished now", "已完成此前中断的恢复（{files} 个文件）")
    }

    pub fn rewind_open(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(
            self,
            "a rewind of {en} was interrupted; the next `max-team rewind` without `--dry-run` goes on with it first",
            "有一次恢复（{files} 个文件）被中断；下一次不带 `--dry-run` 的 `max-team rewind` 会先完成它"
        )
    }

    pub fn rewound(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(
            self,
            "{en} put back; `max-team rewind --undo` takes that back",
            "已恢复 {files} 个文件；`max-team rewind --undo` 可撤销"
        )
    }

    /// The same in a chat.
    pub fn rewound_here(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(
            self,
            "{en} put back; the lead is told with your next message, and `/rewind undo` takes it back",
            "已恢复 {files} 个文件；负责人会在您的下一条消息中得知，`/rewind undo` 可撤销"
        )
    }

    pub fn rewind_failed(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(self, "{en} could not be put back", "{files} 个文件未能恢复")
    }

    pub fn rewind_skip(self, why: &Skip) -> String {
        match why {
            Skip::Changed => say!(self, "it has been changed since", "此后被他人改动过"),
            Skip::Lost => say!(self, "what it was is not kept", "未保存其原内容"),
            Skip::Unread(why) => say!(self, "{why}", "{why}"),
            Skip::Large => say!(
                self,
                "it is larger than what is kept, and how it was is not known; it stays as it is",
                "超出可保存的大小，原来的样子无从得知；保持不变"
            ),
            Skip::Away => say!(
                self,
                "this folder is not there; bring it back to where it was, and nothing is lost",
                "此文件夹不存在；把它移回原处即可恢复"
            ),
        }
    }

    pub fn rewind_left(self, left: &SkippedChange) -> String {
        format!("{} ({})", self.rewind_left_what(left), self.rewind_left_why(left.why))
    }

    /// What cannot be put back.
    pub fn rewind_left_what(self, left: &SkippedChange) -> String {
        if left.path.is_empty() { say!(self, "a command", "某条命令") } else { left.path.clone() }
    }

    pub fn rewind_left_why(self, why: SkippedReason) -> String {
        match why {
            SkippedReason::Large => say!(self, "larger than what is kept", "超出可保存的大小"),
            SkippedReason::Many => say!(self, "too many files, or too many bytes", "文件过多或总量过大"),
            SkippedReason::Slow => say!(self, "looking took too long", "查看耗时过长"),
            SkippedReason::Unread => say!(self, "it could not be looked at", "无法查看"),
            SkippedReason::Background => say!(self, "a command in the background", "后台命令"),
            SkippedReason::Later => {
                say!(
                    self,
                    "changed after a command was killed; kept as your change",
                    "在命令被终止之后改动；视为您的改动予以保留"
                )
            }
            SkippedReason::Cut => {
                say!(self, "it did not come to its end; what it did is not known", "未运行到结束；做了什么无从得知")
            }
        }
    }

    /// What the lead is told with the user's words.
    pub fn told_rewound(self, told: &RewindNote) -> String {
        let mut names: Vec<&str> = told.files.iter().take(TOLD_MAX).map(String::as_str).collect();
        if told.count > names.len() && !names.is_empty() {
            names.push("…");
        }
        let (count, names) = (told.count, names.join(", "));
        let en = if count == 0 { "files".to_owned() } else { plural(count, "file") };
        let zh = if count == 0 { String::new() } else { format!(" {count} 个") };
        let names = if names.is_empty() { names } else { say!(self, ": {names}", "：{names}") };
        if told.again {
            say!(
                self,
                "the lead is told that {en} put back before came again{names}",
                "已告知负责人：撤销恢复了{zh}文件{names}"
            )
        } else {
            say!(self, "the lead is told that you put {en} back{names}", "已告知负责人：您恢复了{zh}文件{names}")
        }
    }

    /// Files that are removed and were never kept.
    pub fn rewind_for_good(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(
            self,
            "{en} above 8 MB that came since would be removed whole: an undo cannot bring back what is too large to be kept",
            "此后新建的 {files} 个超过 8 MB 的文件会被整个删除：内容过大未保存，撤销时无法找回"
        )
    }
}
