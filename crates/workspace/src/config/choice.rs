//! Settings that are one word of a closed set.
//!
//! Each set is an enum, and the words that users write for it are in one table beside it, for files, flags and
//! messages alike. What a choice means is decided by the code that uses it.

use max_team_core::policy;

/// A closed set of words.
pub trait Choice: Copy + PartialEq + 'static {
    /// Each word and what it stands for.
    const NAMES: &'static [(&'static str, Self)];

    /// The word users write.
    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}

impl Choice for policy::Mode {
    const NAMES: &'static [(&'static str, Self)] = &policy::Mode::NAMES;
}

/// What starts when no command is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frontend {
    Cli,
    /// The web page.
    Web,
}

impl Choice for Frontend {
    const NAMES: &'static [(&'static str, Self)] = &[("cli", Self::Cli), ("web", Self::Web)];
}

/// How important an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    /// What was done.
    Info,
    /// What went wrong and was mended.
    Warn,
    Error,
}

impl Choice for Level {
    const NAMES: &'static [(&'static str, Self)] =
        &[("debug", Self::Debug), ("info", Self::Info), ("warn", Self::Warn), ("error", Self::Error)];
}

/// How often the journal waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before anything leaves us.
    Normal,
    /// At every step.
    Full,
}

impl Choice for Durability {
    const NAMES: &'static [(&'static str, Self)] = &[("normal", Self::Normal), ("full", Self::Full)];
}

/// When what is worth remembering is taken from conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractWhen {
    Never,
    /// In a chat.
    Chat,
    /// Also after a single question.
    Always,
}

impl Choice for ExtractWhen {
    const NAMES: &'static [(&'static str, Self)] =
        &[("false", Self::Never), ("true", Self::Chat), ("always", Self::Always)];
}

/// What Enter does with a message while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhileBusy {
    /// The turn is told before its next call.
    #[default]
    Steer,
    /// It waits until the turn is over.
    Queue,
    /// The turn is interrupted; what it was doing is kept.
    Interrupt,
}

impl Choice for WhileBusy {
    const NAMES: &'static [(&'static str, Self)] =
        &[("steer", Self::Steer), ("queue", Self::Queue), ("interrupt", Self::Interrupt)];
}

/// The language we speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// What the system says.
    Auto,
    En,
    Zh,
}

impl Choice for Language {
    const NAMES: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("en", Self::En), ("zh", Self::Zh)];
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// On a terminal that wants it.
    Auto,
    /// Even into a pipe.
    Always,
    /// Not at all.
    Never,
}

impl Choice for Color {
    const NAMES: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("always", Self::Always), ("never", Self::Never)];
}
