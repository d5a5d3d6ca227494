//! Plans as files: YAML that a person writes, reads, compares and runs again.
//!
//! [`read`] takes our names and those of other tools, and JSON, which is YAML; [`write()`] writes ours, so that
//! whatever was written reads back the same. Neither touches the disk, and whether the plan is sound is for
//! `core::plan::Graph` to say.

mod reader;
mod scalar;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use reader::{Read, read};
pub(crate) use writer::write;
