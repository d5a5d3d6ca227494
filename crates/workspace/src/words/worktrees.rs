//! The phrases of copies: what differs in one, and what became of it.

use max_team_runtime::Waiting;
use max_team_tools::copy::{Fate, Ignored, named};

use super::{Lang, plural};

phrases! {
    no_copies: "there are no copies; `isolation: worktree` lets an agent work in one",
        "没有副本；`isolation: worktree` 让智能体在副本中工作";
    which_copy: "several copies fit; name one of them:", "有多个副本符合；请指定其中一个：";
    copy_same: "nothing differs in this copy", "此副本没有改动";
    copy_gone: "nothing is left to decide; the copy is removed", "没有待决定的内容；副本已移除";
    copy_dropped: "the copy is removed, and its changes with it", "副本及其改动已移除";
    copy_left_out: "not in the copy:", "未放入副本：";
    copy_ignores: "ignored by git, not taken:", "被 git 忽略，未纳入：";
    copy_conflict: "both sides of", "双方的改动：";
    has_changes: "has changes for you, in a copy of the project", "有改动待您决定，位于项目的副本中";
    take_all: "take them", "接受改动";
    drop_all: "drop them", "丢弃改动";
    leave_it: "leave them for later", "稍后决定";
    copy_in_use(id: &str): "an agent works in the worktree `{id}`; wait for it, or stop it with `max-team stop`",
        "副本 `{id}` 中有成员正在工作；请等待，或用 `max-team stop` 停止";
}

impl Lang {
    /// What becomes of a file, in a word or two.
    pub fn fate(self, fate: &Fate) -> String {
        match fate {
            Fate::Ready => say!(self, "ready", "可接受"),
            Fate::Done => say!(self, "in the project", "已在项目中"),
            Fate::Rejected => say!(self, "rejected", "已拒绝"),
            Fate::Back => say!(self, "put back by the fork, taken only by its name", "分支时恢复，仅在指明时接受"),
            Fate::Conflict { why } => say!(self, "conflict: {why}", "冲突：{why}"),
            Fate::Refused { why } => say!(self, "not taken: {why}", "不接受：{why}"),
        }
    }

    /// What was taken of a copy.
    pub fn copy_taken(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(self, "{en} taken into the project; nothing is committed", "已将 {files} 个文件纳入项目；未提交")
    }

    /// Files that git ignores: a merge takes one only if the user names it.
    pub fn copy_ignored(self, ignored: &Ignored, id: &str) -> String {
        let (files, all) = (named(ignored.files.iter()), ignored.count());
        let en = if all == 1 { "1 file is ignored by git and was" } else { "files are ignored by git and were" };
        let en = if all == 1 { en.to_owned() } else { format!("{all} {en}") };
        say!(
            self,
            "{en} not taken: {files}; `max-team worktrees accept {id} FILE` takes one by its name, `max-team worktrees \
             reject {id}` drops the copy",
            "{all} 个文件被 git 忽略，未纳入项目：{files}；用 `max-team worktrees accept {id} FILE` 按名称接受，\
             用 `max-team worktrees reject {id}` 丢弃副本"
        )
    }

    /// A merge that did not come to its end.
    pub fn copy_begun(self, taken: &[String], id: &str) -> String {
        let files = if taken.is_empty() { "-".to_owned() } else { named(taken.iter()) };
        say!(
            self,
            "a merge of this copy was begun and did not come to its end; in the project already: {files}; `max-team \
             worktrees accept {id}` takes the rest, `max-team worktrees reject {id}` leaves the project as it is",
            "此副本的合并已开始但没有完成；已在项目中：{files}；用 `max-team worktrees accept {id}` 接受其余文件，\
             用 `max-team worktrees reject {id}` 让项目保持现状"
        )
    }

    /// What a merge had already taken of a worktree that the user then rejects.
    pub fn copy_stays(self, taken: &[String]) -> String {
        let files = named(taken.iter());
        say!(
            self,
            "a merge that did not come to its end had taken these already; they stay in the project: {files}",
            "没有完成的合并已纳入以下文件，它们保留在项目中：{files}"
        )
    }

    /// How much waits in a copy, for a table.
    pub fn copy_count(self, open: usize, ignored: usize) -> String {
        match ignored {
            0 => open.to_string(),
            _ => say!(self, "{open} (+{ignored} ignored)", "{open}（另有 {ignored} 个被忽略）"),
        }
    }

    /// What a run leaves in a copy.
    pub fn copy_waits(self, copy: &Waiting) -> String {
        let Waiting { id, by, open, ignored, trouble } = copy;
        if let Some(trouble) = trouble {
            return say!(
                self,
                "the copy `{id}` could not be looked at: {trouble}; look again with \
                 `max-team worktrees show {id}`",
                "无法查看副本 `{id}`：{trouble}；\
                 可用 `max-team worktrees show {id}` 再次查看"
            );
        }
        let (en, zh) = match (open, ignored) {
            (0, _) => (
                format!("{} that git ignores, not taken", plural(*ignored, "file")),
                format!("{ignored} 个被 git 忽略的文件，未纳入"),
            ),
            (_, 0) => (plural(*open, "file"), format!("{open} 个文件")),
            _ => (
                format!("{}, and {ignored} that git ignores", plural(*open, "file")),
                format!("{open} 个文件，另有 {ignored} 个被 git 忽略"),
            ),
        };
        let file = if *open == 0 { " FILE" } else { "" };
        say!(
            self,
            "work of {by} is in a copy and not in the project ({en}): `max-team worktrees show {id}` to look, \
             `max-team worktrees accept {id}{file}` to take it",
            "{by} 的改动在副本中，尚未进入项目（{zh}）：用 `max-team worktrees show {id}` 查看，\
             用 `max-team worktrees accept {id}{file}` 接受"
        )
    }

    /// What waits in a copy.
    pub fn copy_open(self, open: usize, id: &str) -> String {
        let en = if open == 1 { "1 file still waits".to_owned() } else { format!("{open} files still wait") };
        say!(
            self,
            "{en} for a decision: `max-team worktrees show {id}`",
            "还有 {open} 个文件待决定：`max-team worktrees show {id}`"
        )
    }

    /// Copies that were cleaned away, and those that stay.
    pub fn copies_cleaned(self, gone: usize, kept: usize) -> String {
        let en = if gone == 1 { "copy" } else { "copies" };
        say!(
            self,
            "{gone} {en} removed, {kept} kept (in use, or with changes or ignored files that wait for a decision)",
            "已移除 {gone} 个副本，保留 {kept} 个（正在使用，或有待决定的改动或被忽略的文件）"
        )
    }

    /// The heads of the list.
    pub fn copy_heads(self) -> [&'static str; 5] {
        match self {
            Self::En => ["COPY", "MADE", "BY", "OPEN>", "PROJECT"],
            Self::Zh => ["副本", "创建时间", "成员", "待决定>", "项目"],
        }
    }
}
