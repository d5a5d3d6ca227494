//! The phrases of what sessions and agents keep in folders of their own.

use super::{Lang, plural};

phrases! {
    nothing_kept: "nothing is kept; agents keep what they write to `@files/…` (their session's) and `@data/…` (their own)",
        "没有保存任何文件；智能体写入 `@files/…`（会话共享）和 `@data/…`（自己专用）的文件会保存在此";
    whose_data: "say whose it is: `--agent NAME`; `max-team files list` shows who keeps something",
        "请用 `--agent 名称` 指明是谁的；用 `max-team files list` 查看";
    clear_whose: "say what to clear: `--session ID` or `--agent NAME`; `max-team files list` shows who keeps something",
        "请指明要清除的目录：`--session ID` 或 `--agent 名称`；用 `max-team files list` 查看";
}

impl Lang {
    pub fn kept_heads(self) -> [&'static str; 5] {
        match self {
            Self::En => ["FOLDER", "FILES>", "SIZE>", "CHANGED", "WHOSE"],
            Self::Zh => ["目录", "文件>", "大小>", "修改时间", "所属"],
        }
    }

    pub fn kept_file_heads(self) -> [&'static str; 3] {
        match self {
            Self::En => ["CHANGED", "SIZE>", "FILE"],
            Self::Zh => ["修改时间", "大小>", "文件"],
        }
    }

    pub fn files_cleared(self, count: usize) -> String {
        let en = plural(count, "file");
        say!(self, "{en} removed", "已删除 {count} 个文件")
    }
}
