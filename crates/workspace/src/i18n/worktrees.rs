//! The phrases of worktrees: what differs in one, and what became of it.

use max_team_runtime::WaitingWorktree;
use max_team_tools::worktree::{Fate, IgnoredFiles, file_names};

use super::{Lang, plural};

impl Lang {
    /// What becomes of a file, in a word or two.
    pub fn fate(self, fate: &Fate) -> String {
        match fate {
            Fate::Ready => self.fate_ready().to_owned(),
            Fate::Done => self.in_the_project().to_owned(),
            Fate::Rejected => self.fate_rejected().to_owned(),
            Fate::Back => self.fate_restored_by_fork().to_owned(),
            Fate::Conflict { why } => self.conflict(why),
            Fate::Refused { why } => self.fate_not_merged(why),
        }
    }

    /// Files that git ignores: a merge takes one only if the user names it.
    pub fn copy_ignored(self, ignored: &IgnoredFiles, id: &str) -> String {
        let (files, all) = (file_names(ignored.files.iter()), ignored.count());
        let en = if all == 1 { "1 file is ignored by git and was" } else { "files are ignored by git and were" };
        let en = if all == 1 { en.to_owned() } else { format!("{all} {en}") };
        say!(
            self,
            "{en} not taken: {files}; `max-team worktrees accept {id} FILE` takes one by its name, `max-team worktrees \
             reject {id}` drops the worktree",
            "{all} 个文件被 git 忽略，未纳入项目：{files}；用 `max-team worktrees accept {id} FILE` 按名称接受，\
             用 `max-team worktrees reject {id}` 丢弃副本"
        )
    }

    /// A merge that did not come to its end.
    pub fn copy_begun(self, taken: &[String], id: &str) -> String {
        let files = if taken.is_empty() { "-".to_owned() } else { file_names(taken.iter()) };
        self.copy_begun_text(&files, id)
    }

    /// What a merge had already taken of a worktree that the user then rejects.
    pub fn copy_stays(self, taken: &[String]) -> String {
        let files = file_names(taken.iter());
        self.merge_cut_off(&files)
    }

    /// How much waits in a worktree, for a table.
    pub fn copy_count(self, open: usize, ignored: usize) -> String {
        match ignored {
            0 => open.to_string(),
            _ => self.ignored(open, ignored),
        }
    }

    /// What a run leaves in a worktree.
    pub fn copy_waits(self, copy: &WaitingWorktree) -> String {
        let WaitingWorktree { id, by, open, ignored, trouble } = copy;
        if let Some(trouble) = trouble {
            return self.copy_waits_text(id, trouble);
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
            "work of {by} is in a worktree and not in the project ({en}): `max-team worktrees show {id}` to look, \
             `max-team worktrees accept {id}{file}` to take it",
            "{by} 的改动在副本中，尚未进入项目（{zh}）：用 `max-team worktrees show {id}` 查看，\
             用 `max-team worktrees accept {id}{file}` 接受"
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
