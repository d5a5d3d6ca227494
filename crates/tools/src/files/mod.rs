//! Files beneath one folder: reading, listing, writing, editing.
//!
//! `rel_path` cleans what a model writes, `root` opens it so that nothing outside can be reached, `atomic_write` replaces a file
//! atomically, `change` binds a write to the action that was judged; the tools are thin on top. No tool here opens a
//! file by its full path. See AGENTS.md beside this file for what must stay true.

mod atomic_write;
mod change;
pub mod diff;
mod edit;
mod hard_links;
mod line_range;
mod list;
mod mention;
mod outline;
mod read;
mod rel_path;
mod replace;
mod root;
mod walk;
mod write;

pub(crate) use atomic_write::{AtomicWrite, is_temp};
pub(crate) use change::store_bytes;
pub use edit::EditFile;
pub(crate) use edit::edit_file;
pub use list::ListDir;
pub(crate) use list::list_dir;
pub use mention::{mentioned, paths};
pub use outline::outline;
pub use read::ReadFile;
pub(crate) use read::{read_action, read_file, still_as_judged};
pub(crate) use rel_path::RelPath;
pub(crate) use replace::{Content, PathContent, bulky, file_state, find, look, prune, replace, state};
pub use root::Root;
pub(crate) use root::{OpenedFile, bytes_in, open_part_dir, open_part_file};
pub(crate) use walk::{DirEntry, IgnoreRules, Walk, entries};
pub use write::WriteFile;
pub(crate) use write::write_file;
