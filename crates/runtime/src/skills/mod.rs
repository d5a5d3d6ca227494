//! Skills: instructions in folders that agents load when they need them.
//!
//! `find` searches the usual folders, `known` caches what was read before, `read` parses a file, `needs` says what the
//! machine lacks, `pin` hashes a folder that the user trusted. The [`Catalogue`] is the result: which file provides a
//! name, what is offered, what is broken. Only names and descriptions go into a prompt; the text comes by the `skill`
//! tool (`tool`), filled in (`fill`) and with its commands run one by one, each judged by itself. `mention` finds
//! skills that a user asks for. Skills with a contract (`contract`) take an input and give an output, each with a
//! schema. Nothing here prints, reads the environment or decides what is trusted: all of that is passed in.

mod builtin;
mod catalogue;
mod contract;
mod fill;
mod find;
mod hand;
mod inline;
mod known;
mod mention;
mod needs;
mod pin;
mod read;
#[cfg(test)]
mod tests;
mod tool;

use std::path::PathBuf;

use max_team_core::agent::Effort;
use serde::{Deserialize, Serialize};

pub(crate) use catalogue::Library;
pub use catalogue::{Broken, Catalogue, Shadow};
pub use contract::{Contract, Misfit};
pub use fill::{misplaced, written_commands};
pub use find::{Disabled, Places, Trust};
pub(crate) use hand::{Errand, Hand, SkillWishes};
pub(crate) use mention::{expand, preload};
pub use needs::{Machine, Needs};
pub use pin::Pin;
pub use read::read;
pub use tool::SKILL;
pub(crate) use tool::{SkillContext, SkillTool, loaded, looked_at};

/// Depth of folders below a place in which skills are searched.
pub const DEPTH_MAX: usize = 4;
/// Folders that are searched per place.
pub const FOLDERS_MAX: usize = 2_000;
/// Skills of one catalogue.
pub const SKILLS_MAX: usize = 2_000;
/// Bytes of one skill's file.
pub const FILE_BYTES_MAX: usize = 256 << 10;
/// Files of one folder that is pinned.
pub const PINNED_FILES_MAX: usize = 1_000;
/// Bytes of all of them.
pub const PINNED_BYTES_MAX: u64 = 32 << 20;
/// Characters of a name.
pub const NAME_CHARS_MAX: usize = 64;
/// Characters of one skill in a prompt.
pub const LISTED_CHARS_MAX: usize = 1_536;
/// The catalogue gets one part in this many of the context window.
pub const CATALOGUE_SHARE: u64 = 100;
/// Bytes that it gets in any window.
pub const CATALOGUE_BYTES_MIN: usize = 1_000;
/// Commands of one skill.
pub const COMMANDS_MAX: usize = 16;
/// Time limit of each, in seconds.
pub const COMMAND_S: u32 = 30;
/// Bytes of all skill texts that one message adds.
pub const MENTIONED_BYTES_MAX: usize = 64 << 10;
/// Files of a folder that are named to a model.
pub const NAMED_FILES_MAX: usize = 40;

/// The source of a skill. The order is the precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// The project; perhaps written by a stranger.
    Project,
    /// The user's own folders.
    User,
    /// It comes with this program.
    Builtin,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Builtin => "built-in",
        }
    }
}

/// Whether a skill can be used, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It can be used.
    Ready,
    /// It came with the project, and the user has not approved it.
    Untrusted,
    /// The user has approved it, and it has changed since.
    Changed,
    /// The machine lacks these.
    Lacks(Vec<String>),
    /// The user has turned it off.
    Off,
}

/// The front matter of a skill besides name and description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// A hint about its arguments, shown behind its name.
    pub argument_hint: Option<String>,
    /// Names of its arguments.
    pub arguments: Vec<String>,
    /// Whether a model may load it by itself.
    pub for_models: bool,
    /// Whether a user may ask for it by name.
    pub for_users: bool,
    /// Tools that it expects. This does not grant them.
    pub tools: Vec<String>,
    /// Tools that must not be used with it.
    pub without_tools: Vec<String>,
    /// Its requirements on the machine.
    pub needs: Needs,
    /// The license, in the author's words.
    pub license: Option<String>,
    /// Requirements, in the author's words.
    pub compatibility: Option<String>,
    /// The agent that carries it out in a context of its own; `None`: the agent that loads it.
    #[serde(default)]
    pub fork: Option<Fork>,
    /// Globs of the files that it is for; empty: any.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Keys of other programs without a meaning here.
    pub idle: Vec<String>,
}

/// An agent that carries out a skill in a context of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The type of the agent.
    pub agent: String,
    /// The model that it asks for, used if the session has it.
    pub model: Option<String>,
    /// The effort that it asks for.
    pub effort: Option<Effort>,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            argument_hint: None,
            arguments: Vec::new(),
            for_models: true,
            for_users: true,
            tools: Vec::new(),
            without_tools: Vec::new(),
            needs: Needs::default(),
            license: None,
            compatibility: None,
            fork: None,
            paths: Vec::new(),
            idle: Vec::new(),
        }
    }
}

/// One skill, without its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skill {
    pub name: String,
    /// What it is for, and when to use it.
    pub description: String,
    pub scope: Scope,
    /// Its file; a display name for a skill that comes with this program.
    pub file: PathBuf,
    /// Its folder, if it has one of its own.
    pub folder: Option<PathBuf>,
    /// The rest of its front matter.
    pub head: Head,
    /// The line of the file that its text begins with, from 1.
    pub first_line: usize,
    /// Its contract, if it has one.
    pub contract: Option<Box<Contract>>,
    /// Warnings about its file.
    pub warnings: Vec<String>,
    /// Whether it can be used.
    pub state: State,
}

impl Skill {
    /// Whether it is listed for models.
    pub fn is_offered(&self) -> bool {
        self.state == State::Ready && self.head.for_models
    }

    /// The agent that carries the skill out; `None`: the caller follows its text itself.
    pub fn done_by(&self) -> Option<String> {
        let contractor = self.contract.as_ref().map(|_| format!("skill:{}", self.name));
        contractor.or_else(|| self.head.fork.as_ref().map(|fork| fork.agent.clone()))
    }

    /// Whether a user can ask for it.
    pub fn is_callable(&self) -> bool {
        self.state == State::Ready && self.head.for_users
    }
}
