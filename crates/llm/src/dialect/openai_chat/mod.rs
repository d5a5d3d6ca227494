//! OpenAI chat completions, as OpenAI and everybody who imitates it speak it.
//!
//! Content is text beside tool calls. Imitators differ in small ways; reading is tolerant, and what must differ in
//! requests is said by the provider's row in the catalogue, never guessed from a name here.

pub(crate) mod encode;
pub(crate) mod read;

#[cfg(test)]
mod tests;
