//! Anthropic Messages.
//!
//! Content is a list of blocks, and the provider's own blocks go back exactly as they came: thinking is signed, and
//! kinds that we have never heard of still belong to the conversation.

pub(crate) mod encode;
pub(crate) mod read;

#[cfg(test)]
mod tests;
