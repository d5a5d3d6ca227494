//! The phrases of copies: what differs in one, and what became of it.

use max_team_tools::copy::Fate;

use super::{Lang, plural};

phrases! {
    no_copies: "there are no copies; `isolation: worktree` lets an agent work in one",
        "没有副本；`isolation: worktree` 让智能体在副本中工作";
    which_copy: "several copies fit; name one of them:", "有多个副本符合；请指定其中一个：";
    copy_same: "nothing differs in this copy", "此副本没有改动";
    copy_gone: "nothing is left to decide; the copy is removed", "没有待决定的内容；副本已移除";
    copy_dropped: "the copy is removed, and its changes with it", "副本及其改动已移除";
    copy_left_out: "not in the copy:", "未放入副本：";
    copy_conflict: "both sides of", "双方的改动：";
    has_changes: "has changes for you, in a copy of the project", "有改动待您决定，位于项目的副本中";
    take_all: "take them", "接受改动";
    drop_all: "drop them", "丢弃改动";
    leave_it: "leave them for later", "稍后决定";
    plain_merge: "Take them? y = yes, n = drop them, l = leave them for later: ",
        "是否接受改动？y = 接受，n = 丢弃，l = 稍后决定：";
}

impl Lang {
    /// What becomes of a file, in a word or two.
    pub(crate) fn fate(self, fate: &Fate) -> String {
        match fate {
            Fate::Ready => say!(self, "ready", "可接受"),
            Fate::Done => say!(self, "in the project", "已在项目中"),
            Fate::Rejected => say!(self, "rejected", "已拒绝"),
            Fate::Conflict { why } => say!(self, "conflict: {why}", "冲突：{why}"),
            Fate::Refused { why } => say!(self, "not taken: {why}", "不接受：{why}"),
        }
    }

    /// What waits in a copy because nobody could be asked.
    pub(crate) fn copy_kept(self, id: &str) -> String {
        say!(
            self,
            "the changes are in a copy and not in the project; `max-team worktrees accept {id}` takes them, `show` \
             looks, `reject` drops them",
            "改动位于副本中，尚未进入项目；用 `max-team worktrees accept {id}` 接受，`show` 查看，`reject` 丢弃"
        )
    }

    /// What was taken of a copy.
    pub(crate) fn copy_taken(self, files: usize) -> String {
        let en = plural(files, "file");
        say!(self, "{en} taken into the project; nothing is committed", "已将 {files} 个文件纳入项目；未提交")
    }

    /// What waits in a copy.
    pub(crate) fn copy_open(self, open: usize, id: &str) -> String {
        let en = if open == 1 { "1 file still waits".to_owned() } else { format!("{open} files still wait") };
        say!(
            self,
            "{en} for a decision: `max-team worktrees show {id}`",
            "还有 {open} 个文件待决定：`max-team worktrees show {id}`"
        )
    }

    /// Somebody is in a copy.
    pub(crate) fn copy_in_use(self, id: &str) -> String {
        say!(
            self,
            "somebody is at work in the copy `{id}`; wait for them, or stop them with `max-team stop`",
            "副本 `{id}` 中有成员正在工作；请等待，或用 `max-team stop` 停止"
        )
    }

    /// Copies that were cleaned away, and those that stay.
    pub(crate) fn copies_cleaned(self, gone: usize, kept: usize) -> String {
        let en = if gone == 1 { "copy" } else { "copies" };
        say!(
            self,
            "{gone} {en} removed, {kept} kept (in use, or with changes that wait for a decision)",
            "已移除 {gone} 个副本，保留 {kept} 个（正在使用，或有待决定的改动）"
        )
    }

    /// The heads of the list.
    pub(crate) fn copy_heads(self) -> [&'static str; 5] {
        match self {
            Self::En => ["COPY", "MADE", "BY", "OPEN>", "PROJECT"],
            Self::Zh => ["副本", "创建时间", "成员", "待决定>", "项目"],
        }
    }
}
