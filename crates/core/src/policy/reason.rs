//! Why an action is dangerous, and why the effects of a command cannot be known: typed, so that screens say it in the
//! user's language. Older entries have texts, which are read as `Other`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ShellSyntax;

/// An effect outside this machine or this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteEffect {
    /// It publishes commits.
    PublishesCommits,
    /// It publishes a package or an image.
    Publishes,
    /// It changes accounts or keys.
    ChangesAccounts,
    /// It deploys a program on other machines.
    Deploys,
    /// It runs as another user of this machine.
    ActsAsOther,
    /// It sends a message to people.
    Speaks,
    /// It runs a program on another machine.
    OtherMachine,
}

impl fmt::Display for RemoteEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PublishesCommits => "it publishes commits",
            Self::Publishes => "it publishes",
            Self::ChangesAccounts => "it changes who may publish, or the keys for it",
            Self::Deploys => "it changes what runs elsewhere",
            Self::ActsAsOther => "it acts as another user",
            Self::Speaks => "it sends a message to others in your name",
            Self::OtherMachine => "it acts on another machine",
        })
    }
}

/// Why an action always needs a person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerReason {
    /// The program reaches beyond this machine or this user.
    Remote(RemoteEffect),
    /// `…` gets arguments through a pipe, which cannot be checked.
    PipedArguments(String),
    /// `…` sounds like publishing or deploying.
    SoundsLikePublishing(String),
    /// It deletes `…`, which is outside the project.
    DeletesOutside(String),
    /// It deletes the whole project.
    DeletesProject,
    /// It deletes … for good: `/rewind` cannot give it back.
    DeletesForGood(String),
    /// The text of an older entry.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for DangerReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(effect) => effect.fmt(f),
            Self::PipedArguments(it) => write!(f, "`{it}` gets arguments through a pipe, which cannot be checked"),
            Self::SoundsLikePublishing(it) => write!(f, "`{it}` sounds like publishing or deploying"),
            Self::DeletesOutside(it) => write!(f, "it deletes `{it}`, which is outside the project"),
            Self::DeletesProject => f.write_str("it deletes the whole project"),
            Self::DeletesForGood(it) => write!(f, "it deletes {it} for good; `/rewind` cannot give it back"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// Why the effects of a command cannot be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenReason {
    /// Only a shell can parse the line.
    Shell(ShellSyntax),
    /// It may run in more than … folders.
    ManyFolders(usize),
    /// Programs that start programs, too many of them.
    ManyPrograms,
    /// `git -c …` can name a program to run.
    GitSetting(String),
    /// `git …` can name programs to run.
    GitOption(String),
    /// Git's configuration can name programs to run.
    GitConfig,
    /// It changes where commits go to.
    GitTarget,
    /// `…` names a program to reach the repository with.
    GitTransport(String),
    /// `env …` splits its text into a command.
    EnvSplit(String),
    /// The `sed` script may run programs or write files.
    SedScript,
    /// `sed -i` writes a backup whose path cannot be checked.
    SedBackup,
    /// The `awk` script may run programs or write files.
    AwkScript,
    /// An archive on another host is reached by a program.
    RemoteArchive,
    /// `ssh …` can name a program to run.
    SshOption(String),
    /// `…` holds flags that cannot be seen here.
    FlagFile(String),
    /// `…` runs what comes through a pipe.
    PipedCode(String),
    /// `…` runs a script in a word.
    Script(String),
    /// `…` runs what cannot be seen here.
    Unseen(String),
    /// `…` runs what it reads.
    ReadsCode(String),
    /// `…` runs a script that is not in a file.
    NoScriptFile(String),
    /// The setting `…` can name a program, flags or another folder.
    Setting(String),
    /// The variable `…` can change what runs.
    Variable(String),
    /// The `…` filter may read other files or variables.
    Filter(String),
    /// `…` is told to run or write something.
    Instructed(String),
    /// `…` can run anything.
    Anything(String),
    /// `…` runs a program.
    OptionRuns(String),
    /// The text of an older entry.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for HiddenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(syntax) => syntax.fmt(f),
            Self::ManyFolders(it) => write!(f, "it may run in more than {it} folders"),
            Self::ManyPrograms => f.write_str("programs that start programs, too many of them"),
            Self::GitSetting(it) => write!(f, "`git -c {it}` can name a program to run"),
            Self::GitOption(it) => write!(f, "`git {it}` can name programs to run"),
            Self::GitConfig => f.write_str("git's configuration can name programs to run"),
            Self::GitTarget => f.write_str("it changes where commits go to"),
            Self::GitTransport(it) => write!(f, "`{it}` names a program to reach the repository with"),
            Self::EnvSplit(it) => write!(f, "`env {it}` splits its text into a command"),
            Self::SedScript => f.write_str("the `sed` script may run programs or write files"),
            Self::SedBackup => f.write_str("`sed -i` writes a backup whose path cannot be checked"),
            Self::AwkScript => f.write_str("the `awk` script may run programs or write files"),
            Self::RemoteArchive => f.write_str("an archive on another host is reached by a program"),
            Self::SshOption(it) => write!(f, "`ssh {it}` can name a program to run"),
            Self::FlagFile(it) => write!(f, "`{it}` holds flags that cannot be seen here"),
            Self::PipedCode(it) => write!(f, "`{it}` runs what comes through a pipe"),
            Self::Script(it) => write!(f, "`{it}` runs a script in a word"),
            Self::Unseen(it) => write!(f, "`{it}` runs what cannot be seen here"),
            Self::ReadsCode(it) => write!(f, "`{it}` runs what it reads"),
            Self::NoScriptFile(it) => write!(f, "`{it}` runs a script that is not in a file"),
            Self::Setting(it) => write!(f, "the setting `{it}` can name a program, flags or another folder"),
            Self::Variable(it) => write!(f, "the variable `{it}` can change what runs"),
            Self::Filter(it) => write!(f, "the `{it}` filter may read other files or variables"),
            Self::Instructed(it) => write!(f, "`{it}` is told to run or write something"),
            Self::Anything(it) => write!(f, "`{it}` can run anything"),
            Self::OptionRuns(it) => write!(f, "`{it}` runs a program"),
            Self::Other(text) => f.write_str(text),
        }
    }
}
