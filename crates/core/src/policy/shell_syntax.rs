//! The part of a command line that only a shell can parse.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What makes a line opaque. Older entries have texts, which are read as `Other`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellSyntax {
    /// A variable or an expansion (`$`).
    Expansion,
    /// A command inside a word.
    Substitution,
    /// A command in backticks.
    Backticks,
    /// A command in place of a file.
    ProcessSubstitution,
    /// A quote of bash's own (`$'…'`).
    BashQuote,
    /// Text in place of a file (`<<`).
    HereText,
    /// Commands in brackets.
    Group,
    /// A command in the background (`&`).
    Background,
    /// A pipe of both outputs (`|&`).
    PipeOfBoth,
    /// A negated command (`!`).
    Negation,
    /// A test of bash's own (`[[`).
    BashTest,
    /// The definition of a function.
    Function,
    /// Braces that stand for several words (`{a,b}`).
    Braces,
    /// Variables of the shell.
    ShellVariables,
    /// A control structure.
    ControlStructure,
    /// A pattern of file names.
    Pattern,
    /// A pattern that fits more than … files.
    WidePattern(usize),
    /// A pattern over more than … files.
    SlowPattern(usize),
    /// It is longer than … bytes.
    TooLong(usize),
    /// More than … commands.
    ManyCommands(usize),
    /// It names more than … places.
    ManyPlaces(usize),
    /// A zero byte.
    ZeroByte,
    /// There is nothing in it.
    Nothing,
    /// It cannot be parsed.
    Unparsed,
    /// It is nested too deep.
    TooDeep,
    /// An odd assignment.
    OddAssignment,
    /// A variable behind its command.
    LateAssignment,
    /// An odd redirection.
    OddRedirection,
    /// An odd descriptor.
    OddDescriptor,
    /// An unusual character between words.
    OddSign,
    /// A line that goes on inside a word.
    ContinuedWord,
    /// A part without a command.
    NoCommand,
    /// `…` where a program should stand.
    NoProgram(String),
    /// A quote that does not end.
    OpenQuote,
    /// A backslash with nothing behind it.
    OpenBackslash,
    /// A home folder (`~`).
    HomeFolder,
    /// A comment behind `#`.
    Comment,
    /// A sign of the shell inside a word.
    SignInWord,
    /// A control character or an odd space.
    OddCharacter,
    /// Something that is not a plain word (`…`).
    NotPlain(String),
    /// The text of an older entry.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for ShellSyntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expansion => f.write_str("a variable or an expansion (`$`)"),
            Self::Substitution => f.write_str("a command inside a word"),
            Self::Backticks => f.write_str("a command in backticks"),
            Self::ProcessSubstitution => f.write_str("a command in place of a file"),
            Self::BashQuote => f.write_str("a quote of bash's own (`$'…'`)"),
            Self::HereText => f.write_str("text in place of a file (`<<`)"),
            Self::Group => f.write_str("commands in brackets"),
            Self::Background => f.write_str("a command in the background (`&`)"),
            Self::PipeOfBoth => f.write_str("a pipe of both outputs (`|&`)"),
            Self::Negation => f.write_str("a negated command (`!`)"),
            Self::BashTest => f.write_str("a test of bash's own (`[[`)"),
            Self::Function => f.write_str("a function"),
            Self::Braces => f.write_str("braces"),
            Self::ShellVariables => f.write_str("variables of the shell"),
            Self::ControlStructure => f.write_str("a control structure"),
            Self::Pattern => f.write_str("a pattern of file names"),
            Self::WidePattern(it) => write!(f, "a pattern that fits more than {it} files"),
            Self::SlowPattern(it) => write!(f, "a pattern over more than {it} files"),
            Self::TooLong(it) => write!(f, "it is longer than {it} bytes"),
            Self::ManyCommands(it) => write!(f, "more than {it} commands"),
            Self::ManyPlaces(it) => write!(f, "it names more than {it} places"),
            Self::ZeroByte => f.write_str("a zero byte"),
            Self::Nothing => f.write_str("there is nothing in it"),
            Self::Unparsed => f.write_str("it cannot be parsed"),
            Self::TooDeep => f.write_str("it is nested too deep"),
            Self::OddAssignment => f.write_str("an odd assignment"),
            Self::LateAssignment => f.write_str("a variable behind its command"),
            Self::OddRedirection => f.write_str("an odd redirection"),
            Self::OddDescriptor => f.write_str("an odd descriptor"),
            Self::OddSign => f.write_str("an unusual character between words"),
            Self::ContinuedWord => f.write_str("a line that goes on inside a word"),
            Self::NoCommand => f.write_str("a part without a command"),
            Self::NoProgram(it) => write!(f, "`{it}` where a program should stand"),
            Self::OpenQuote => f.write_str("a quote that does not end"),
            Self::OpenBackslash => f.write_str("a backslash with nothing behind it"),
            Self::HomeFolder => f.write_str("a home folder (`~`)"),
            Self::Comment => f.write_str("a comment"),
            Self::SignInWord => f.write_str("a sign of the shell inside a word"),
            Self::OddCharacter => f.write_str("a control character or an odd space"),
            Self::NotPlain(it) => write!(f, "something that is not a plain word (`{it}`)"),
            Self::Other(text) => f.write_str(text),
        }
    }
}
