//! OpenAI chat completions, as OpenAI and compatible providers speak it.
//!
//! Content is text beside tool calls. Compatible servers differ in small ways: answers are read tolerantly, and
//! requests differ only by the provider's row in the catalogue, never by a name that is known here.

pub(crate) mod encode;
pub(crate) mod read;

#[cfg(test)]
mod tests;
