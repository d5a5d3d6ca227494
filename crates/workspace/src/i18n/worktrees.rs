//! The phrases of worktrees: what differs in one, and what became of it.

use max_team_runtime::WaitingWorktree;
use max_team_tools::worktree::{Fate, IgnoredFiles, file_names};

use super::{Lang, heads};

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
        self.ignored_files_left(all, files, id)
    }

    /// A merge that did not come to its end.
    pub fn copy_begun(self, taken: &[String], id: &str) -> String {
        let files = if taken.is_empty() { "-".to_owned() } else { file_names(taken.iter()) };
        self.merge_interrupted(&files, id)
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
            return self.worktree_unreadable(id, trouble);
        }
        let files = match (open, ignored) {
            (0, ignored) => self.only_ignored_files(ignored),
            (open, 0) => self.changed_files(open),
            (open, ignored) => self.changed_and_ignored_files(open, ignored),
        };
        let file = if *open == 0 { " FILE" } else { "" };
        self.worktree_waits(by, files, id, file)
    }

    /// The heads of the list.
    pub fn copy_heads(self) -> [&'static str; 5] {
        heads(self.copy_heads_row())
    }
}
