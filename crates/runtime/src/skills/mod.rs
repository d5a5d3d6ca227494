//! Skills: know-how in folders, for whoever needs it.
//!
//! `find` looks in the usual places, `known` remembers what was read before, `read` takes a file apart, `needs` says what the machine lacks, `pin` what a
//! folder held when the user trusted it. The [`Catalogue`] is what came of it: who wins a name, what is offered, what is
//! broken. Only names and descriptions go into a prompt; the text comes by the `skill` tool (`tool`), filled in (`fill`)
//! and with its commands run one by one, each judged by itself. `mention` finds what a user asks for. Skills with a
//! contract (`contract`) take an input and give an output, each of a shape. Nothing here prints, reads the environment
//! or decides what is trusted: all of that is handed in.

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

use max_team_core::team::Effort;
use serde::{Deserialize, Serialize};

pub(crate) use catalogue::Library;
pub use catalogue::{Broken, Catalogue, Shadow};
pub use contract::{Contract, Misfit};
pub use fill::{misplaced, written_commands};
pub use find::{Disabled, Places, Trust};
pub(crate) use hand::{Errand, Hand, Wish};
pub(crate) use mention::{expand, preload};
pub use needs::{Machine, Needs};
pub use pin::Pin;
pub use read::read;
pub use tool::SKILL;
pub(crate) use tool::{Asked, SkillTool, loaded, looked_at};

/// How deep below a place a skill may lie.
pub const DEPTH_MAX: usize = 4;
/// Folders that are looked into, per place.
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
/// Characters that one skill has in a prompt.
pub const LISTED_CHARS_MAX: usize = 1_536;
/// The catalogue's share of the window: one part of so many.
pub const CATALOGUE_SHARE: u64 = 100;
/// Bytes that it may have in any window.
pub const CATALOGUE_BYTES_MIN: usize = 1_000;
/// Commands of one skill.
pub const COMMANDS_MAX: usize = 16;
/// Seconds that each may take.
pub const COMMAND_S: u32 = 30;
/// Bytes of all texts that one message brings along.
pub const MENTIONED_BYTES_MAX: usize = 64 << 10;
/// Files of a folder that are named to a model.
pub const NAMED_FILES_MAX: usize = 40;

/// Where a skill comes from. The order is the precedence: the first wins a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// The project; perhaps from a stranger.
    Project,
    /// The user's own folders.
    User,
    /// With this program.
    Builtin,
}

impl Scope {
    /// In a word.
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
    /// It can.
    Ready,
    /// It came with the project, and the user has not said that they trust it.
    Untrusted,
    /// They have, and it has changed since.
    Changed,
    /// The machine lacks something, as told.
    Lacks(Vec<String>),
    /// The user has turned it off.
    Off,
}

/// What the front of a file says besides name and description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// What to write behind its name.
    pub argument_hint: Option<String>,
    /// Names of its arguments.
    pub arguments: Vec<String>,
    /// Whether a model may load it by itself.
    pub for_models: bool,
    /// Whether a user may ask for it by name.
    pub for_users: bool,
    /// Tools that it expects. It gets none by that.
    pub tools: Vec<String>,
    /// Tools that are not to be used with it.
    pub without_tools: Vec<String>,
    /// What it needs of the machine.
    pub needs: Needs,
    /// Who may use it, in the author's words.
    pub license: Option<String>,
    /// What it works with, in the author's words.
    pub compatibility: Option<String>,
    /// Who carries it out by itself; nobody: whoever loads it.
    #[serde(default)]
    pub fork: Option<Fork>,
    /// Globs of the files that it is for; empty: any.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Keys of other programs that mean nothing here.
    pub idle: Vec<String>,
}

/// Somebody who carries a skill out with a context of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// Of which type.
    pub agent: String,
    /// The model it would like, where the session has it.
    pub model: Option<String>,
    /// How hard that is to think.
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
    /// What it is called.
    pub name: String,
    /// What it is for, and when.
    pub description: String,
    /// Where it comes from.
    pub scope: Scope,
    /// Its file; a name for people where it came with this program.
    pub file: PathBuf,
    /// Its folder, if it has one of its own.
    pub folder: Option<PathBuf>,
    /// What else it says about itself.
    pub head: Head,
    /// The line of the file that its text begins with, from 1.
    pub first_line: usize,
    /// What it takes and gives, if that is agreed.
    pub contract: Option<Box<Contract>>,
    /// What is odd about its file.
    pub warnings: Vec<String>,
    /// Whether it can be used.
    pub state: State,
}

impl Skill {
    /// Whether models are told of it.
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
