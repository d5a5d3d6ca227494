//! OpenAI chat completions, as OpenAI and everybody who imitates it speak it.

pub(crate) mod encode;
pub(crate) mod read;

#[cfg(test)]
mod tests;
