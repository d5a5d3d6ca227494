//! Anthropic Messages.

pub(crate) mod encode;
pub(crate) mod read;

#[cfg(test)]
mod tests;
