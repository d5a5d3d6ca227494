//! Files beneath one folder: reading, listing, writing, editing.
//!
//! `place` cleans what a model writes, `root` opens it so that nothing outside can be reached, `slot` replaces a file
//! atomically, `change` binds a write to the action that was judged; the tools are thin on top. No tool here opens a
//! file by its full path. See AGENTS.md beside this file for what must stay true.

mod change;
pub mod diff;
mod edit;
mod list;
mod mention;
mod outline;
mod place;
mod read;
mod root;
mod slot;
mod swap;
mod twin;
mod walk;
mod window;
mod write;

pub use edit::EditFile;
pub(crate) use edit::edit_file;
pub use list::ListDir;
pub(crate) use list::list_dir;
pub use mention::{mentioned, paths};
pub use outline::outline;
pub(crate) use place::Place;
pub use read::ReadFile;
pub(crate) use read::{read_action, read_file, still_as_judged};
pub use root::Root;
pub(crate) use root::{Opened, bytes_in, open_part_dir, open_part_file};
pub(crate) use slot::is_temp;
pub(crate) use swap::{Content, Found, bulky, file_state, find, look, prune, state, swap};
pub(crate) use walk::{Entry, Rules, Walk, entries};
pub use write::WriteFile;
pub(crate) use write::write_file;
