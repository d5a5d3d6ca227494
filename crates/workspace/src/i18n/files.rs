//! The phrases of what sessions and agents keep in folders of their own.

use super::Lang;

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
}
