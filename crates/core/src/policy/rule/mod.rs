//! Permission rules as people write them: `Bash(git log:*)`, `Read(./secrets/**)`, `Edit`, `WebFetch(domain:x.org)`.
//!
//! A rule stands in one of three lists and comes from somewhere; both are kept, so that every verdict can name its file
//! and line. It is taken apart once. What cannot be understood is taken strictly: as a denial or a question it covers
//! the whole tool, as a permission nothing. Nothing here decides between rules; `judge` does.

mod path;
mod words;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use path::{Anchors, escape};
pub(super) use path::{Place, absolute};
pub(super) use words::Spelling;
use words::{Domain, Words};

use super::pattern::Glob;

/// The tool that loads skills: a rule may be about one of them.
const SKILL: &str = "skill";

/// The list that a rule stands in; the order is the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// Never.
    Deny,
    /// Only with a person's yes.
    Ask,
    /// Without a question.
    Allow,
}

impl List {
    /// As it is called in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// Whose rule it is. It says nothing about strength: rules of all scopes are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The machine's.
    Managed,
    /// The user's.
    User,
    /// The project's; it may have come from a stranger.
    Project,
    /// The user's for this project.
    Local,
    /// This run's.
    Flags,
    /// An answer that was to be remembered.
    Answer,
    /// A hook of another program that cannot be run here.
    Hook,
}

impl Scope {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Flags => "flags",
            Self::Answer => "answer",
            Self::Hook => "hook",
        }
    }
}

/// Where a rule is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Whose it is.
    pub scope: Scope,
    /// The file, or the flag.
    pub file: String,
    /// The line in the file, from 1; 0: it is no file.
    #[serde(default)]
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Rule {
    /// The list.
    pub list: List,
    /// As written.
    pub text: String,
    /// Where.
    pub origin: Origin,
    /// The folder that its path starts from; empty without one.
    anchor: String,
    tool: Tool,
    spec: Spec,
    flaw: Option<Flaw>,
}

impl Rule {
    /// Whether it says the same as another one, wherever each is written.
    pub fn means(&self, other: &Self) -> bool {
        (self.list, &self.text, &self.anchor) == (other.list, &other.text, &other.anchor)
    }
}

#[derive(Serialize, Deserialize)]
struct Written {
    list: List,
    text: String,
    origin: Origin,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    anchor: String,
}

impl From<Written> for Rule {
    fn from(written: Written) -> Self {
        let Written { list, text, origin, anchor } = written;
        let (tool, spec, flaw) = read(list, &text, &anchor);
        Self { list, text, origin, anchor, tool, spec, flaw }
    }
}

impl From<Rule> for Written {
    fn from(rule: Rule) -> Self {
        Self { list: rule.list, text: rule.text, origin: rule.origin, anchor: rule.anchor }
    }
}

/// What keeps a rule from meaning what it seems to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A permission for every tool there is.
    #[error("a permission for tools by `*` is not taken; name the tool, or a server as `mcp__server__*`")]
    Bare,
    /// `Write(path)` and its kin.
    #[error("`{0}(path)` is never consulted for a permission; write `{1}(path)`, which covers every tool of that kind")]
    Dead(&'static str, &'static str),
    /// Not of the form `Tool` or `Tool(…)`.
    #[error("it is not of the form `Tool` or `Tool(what)`")]
    Form,
    /// `Tool()` as a permission.
    #[error("empty brackets allow nothing; write `{0}` alone to allow every use of it")]
    Empty(String),
    /// The path is no glob.
    #[error("its path cannot be read: {0}")]
    Glob(super::pattern::GlobError),
    /// What stands in the parentheses is not understood.
    #[error("`{0}` takes no `({1})`")]
    Unknown(String, String),
    /// A parameter can only be denied or asked about.
    #[error("`{0}` holds for `deny` and `ask` only; as a permission it covers nothing")]
    Parameter(String),
}

/// Which tools a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tool {
    /// Commands.
    Bash,
    /// Whatever looks at files.
    Read,
    /// Whatever changes files.
    Edit,
    /// Whatever reaches a host.
    Fetch,
    /// Work given to a member.
    Agent,
    /// One tool by its name, or several by a pattern.
    Named(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Spec {
    /// Every use.
    All,
    /// No use at all.
    Nothing,
    /// Commands like this.
    Command(Words),
    /// What lies there; `only` is the one tool it holds for.
    Path { glob: Glob, only: Option<String> },
    /// Hosts like this.
    Host(Domain),
    /// That member.
    Member(String),
    /// Calls with this parameter.
    Parameter { key: String, value: String },
}

/// What is held against rules.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'a> {
    /// A command in each of its spellings.
    Command(&'a [Spelling]),
    /// A command that only a shell understands, as it was written.
    Text(&'a str),
    /// A look at a place.
    Read(&'a Place),
    /// A change of a place.
    Edit(&'a Place),
    /// A host.
    Host(&'a str),
    /// Work for a member.
    Member(&'a str),
    /// Nothing but the tool.
    Tool,
}

impl Rule {
    /// Takes a rule apart.
    pub fn new(list: List, text: &str, origin: Origin, anchors: &Anchors<'_>) -> Self {
        let (_, inside) = split(text).unwrap_or((text, None));
        let anchor = inside.map(|path| anchors.of(path)).unwrap_or_default();
        Written { list, text: text.trim().to_owned(), origin, anchor }.into()
    }

    /// The same rule for a copy of the folder `from` at `to`; `None` if it names no place in that folder.
    pub(crate) fn moved(&self, from: &str, to: &str) -> Option<Self> {
        let (tool, inside) = split(&self.text).filter(|_| self.is_of_places())?;
        let beneath = |path: &str| {
            let rest = path.strip_prefix(from.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        let written = |text: String, anchor: String| {
            Written { list: self.list, text, origin: self.origin.clone(), anchor }.into()
        };
        if let Some(rest) = beneath(&self.anchor) {
            return Some(written(self.text.clone(), format!("{}{rest}", to.trim_end_matches('/'))));
        }
        // A path from the top of the disk, or from the user's folder.
        let path = inside?.trim();
        let path = path.strip_prefix('~').unwrap_or(path).trim_start_matches('/');
        let rest = beneath(&format!("{}/{path}", self.anchor.trim_end_matches('/')))?;
        Some(written(format!("{tool}(/{})", rest.trim_start_matches('/')), to.to_owned()))
    }

    /// What is wrong with it.
    pub fn flaw(&self) -> Option<&Flaw> {
        self.flaw.as_ref()
    }

    /// Whether it speaks of one command, word for word.
    pub(super) fn is_exact(&self) -> bool {
        matches!(&self.spec, Spec::Command(words) if words.is_exact())
    }

    pub(super) fn tool(&self) -> &Tool {
        &self.tool
    }

    /// Whether it covers every use of its tool.
    pub(super) fn is_whole(&self) -> bool {
        self.spec == Spec::All
    }

    /// Whether it takes a tool away altogether: there is no use of it that is not denied.
    pub(super) fn takes_away(&self, tool: &str) -> bool {
        let speaks = self.tool == named(tool).0 || self.tool.is(tool, Subject::Tool);
        self.list == List::Deny && self.is_whole() && self.flaw.is_none() && speaks
    }

    /// Whether it speaks of places.
    pub(super) fn is_of_places(&self) -> bool {
        matches!(self.spec, Spec::Path { .. })
    }

    /// Whether it holds for places in a folder, whichever tool of its kind touches them.
    pub(super) fn reaches(&self, folder: &str) -> bool {
        match &self.spec {
            Spec::All => true,
            Spec::Path { glob, only: None } => glob.reaches(folder),
            _ => false,
        }
    }

    /// The pattern of a command, if it is one.
    pub(super) fn words(&self) -> Option<&Words> {
        if let Spec::Command(words) = &self.spec { Some(words) } else { None }
    }

    /// Whether it holds for a call of that tool to that end.
    pub(super) fn fits(&self, call: &str, parameters: &[(String, String)], subject: Subject<'_>) -> bool {
        if let Spec::Parameter { key, value } = &self.spec {
            return self.tool.is(call, subject)
                && parameters.iter().any(|(name, given)| name == key && given.eq_ignore_ascii_case(value));
        }
        if !self.tool.is(call, subject) {
            return false;
        }
        let strict = self.list != List::Allow;
        match (&self.spec, subject) {
            (Spec::All, _) => true,
            (Spec::Command(words), Subject::Command(spellings)) => spellings
                .iter()
                .filter(|spelling| strict || spelling.is_literal)
                .any(|spelling| if strict { words.resembles(spelling) } else { words.fits(spelling) }),
            (Spec::Command(words), Subject::Text(text)) => words.is(text),
            (Spec::Path { glob, only }, Subject::Read(place) | Subject::Edit(place)) => {
                only.as_ref().is_none_or(|only| only == call)
                    && if strict { place.any(|path| glob.touches(path)) } else { place.all(|path| glob.owns(path)) }
            }
            (Spec::Host(domain), Subject::Host(host)) => domain.fits(host, strict),
            (Spec::Member(name), Subject::Member(member)) => name.eq_ignore_ascii_case(member),
            _ => false,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}: {}` ({})", self.list.name(), self.text, self.origin)
    }
}

impl Tool {
    fn is(&self, call: &str, subject: Subject<'_>) -> bool {
        match (self, subject) {
            (Self::Bash, Subject::Command(_) | Subject::Text(_))
            | (Self::Read, Subject::Read(_))
            | (Self::Edit, Subject::Edit(_))
            | (Self::Fetch, Subject::Host(_))
            | (Self::Agent, Subject::Member(_)) => true,
            (Self::Named(name), _) => words::is_named(name, call),
            _ => false,
        }
    }
}

/// `Tool` and what stands in its parentheses.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else { return Some((text, None)) };
    rest.strip_suffix(')').map(|inside| (name.trim_end(), Some(inside)))
}

fn read(list: List, text: &str, anchor: &str) -> (Tool, Spec, Option<Flaw>) {
    let strict = list != List::Allow;
    // What is not understood covers all as a denial, and nothing as a permission.
    let whole = if strict { Spec::All } else { Spec::Nothing };
    let Some((name, inside)) = split(text).filter(|(name, _)| !name.is_empty() && !name.contains(['(', ')'])) else {
        let name = text.split('(').next().unwrap_or_default().trim();
        return (named(name).0, whole, Some(Flaw::Form));
    };
    let (tool, alias) = named(name);
    let inside = inside.map(str::trim);
    if !strict && matches!(inside, Some("" | "domain:")) {
        return (tool, Spec::Nothing, Some(Flaw::Empty(name.to_owned())));
    }
    let inside = inside.filter(|inside| !matches!(*inside, "" | "*"));
    if !strict && name.contains('*') && !words::is_server(name) {
        return (tool, Spec::Nothing, Some(Flaw::Bare));
    }
    let Some(inside) = inside else {
        let spec = match alias {
            Alias::Only(only) => return (Tool::Named(only), Spec::All, None),
            _ => Spec::All,
        };
        return (tool, spec, None);
    };
    if let Some((key, value)) = parameter(&tool, inside) {
        let spec = if strict { Spec::Parameter { key: key.into(), value: value.into() } } else { Spec::Nothing };
        return (tool, spec, (!strict).then(|| Flaw::Parameter(inside.to_owned())));
    }
    match (&tool, alias) {
        (Tool::Read | Tool::Edit, Alias::Dead(dead, good)) if !strict => {
            (tool, Spec::Nothing, Some(Flaw::Dead(dead, good)))
        }
        (Tool::Read | Tool::Edit, alias) => {
            let only = if let Alias::Only(only) = &alias { Some(only.clone()) } else { None };
            let dead = if let Alias::Dead(dead, good) = alias { Some(Flaw::Dead(dead, good)) } else { None };
            match path::glob(anchor, inside, strict) {
                Ok(glob) => (tool, Spec::Path { glob, only }, dead),
                Err(error) => (tool, whole, Some(Flaw::Glob(error))),
            }
        }
        (Tool::Bash, _) => (tool, Spec::Command(Words::new(inside)), None),
        (Tool::Fetch, _) => match inside.strip_prefix("domain:").map(Domain::new) {
            Some(domain) => (tool, Spec::Host(domain), None),
            None => (tool, whole, Some(Flaw::Unknown(name.to_owned(), inside.to_owned()))),
        },
        (Tool::Agent, _) => (tool, Spec::Member(inside.to_owned()), None),
        (Tool::Named(_), _) => (tool, whole, Some(Flaw::Unknown(name.to_owned(), inside.to_owned()))),
    }
}

/// `model:opus`, `run_in_background:true`, the `name:pdf` of a skill: a parameter of the call, not a pattern.
fn parameter<'a>(tool: &Tool, inside: &'a str) -> Option<(&'a str, &'a str)> {
    let (key, value) = inside.split_once(':')?;
    let is_key = key.starts_with(|letter: char| letter.is_ascii_lowercase())
        && key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    // Skills are called in any script, and those of a plugin with a colon.
    let is_skill = matches!(tool, Tool::Named(name) if name == SKILL);
    let is_letter = |letter: char| match is_skill {
        true => letter.is_alphanumeric() || "-_.:".contains(letter),
        false => letter.is_ascii_alphanumeric() || "-_.".contains(letter),
    };
    let is_value = !value.is_empty() && value.chars().all(is_letter);
    let fits = match tool {
        Tool::Agent => true,
        Tool::Bash => key.contains('_') && matches!(value, "true" | "false"),
        Tool::Named(_) => is_skill && key == "name",
        _ => false,
    };
    (is_key && is_value && fits).then_some((key, value))
}

/// How a name stands for its kind of tool.
enum Alias {
    /// For all of them.
    Whole,
    /// For itself alone.
    Only(String),
    /// For all of them without a path; with one, another name is consulted.
    Dead(&'static str, &'static str),
}

/// The names of other programs, and ours.
fn named(name: &str) -> (Tool, Alias) {
    match name {
        "Bash" | "run_shell" | "exec" => (Tool::Bash, Alias::Whole),
        "Read" => (Tool::Read, Alias::Whole),
        "Glob" => (Tool::Read, Alias::Dead("Glob", "Read")),
        "Grep" => (Tool::Read, Alias::Dead("Grep", "Read")),
        "read_file" | "list_dir" | "search_code" => (Tool::Read, Alias::Only(name.to_owned())),
        "Edit" | "MultiEdit" => (Tool::Edit, Alias::Whole),
        "Write" => (Tool::Edit, Alias::Dead("Write", "Edit")),
        "NotebookEdit" => (Tool::Edit, Alias::Dead("NotebookEdit", "Edit")),
        "write_file" | "edit_file" => (Tool::Edit, Alias::Only(name.to_owned())),
        "WebFetch" | "http_get" => (Tool::Fetch, Alias::Whole),
        "Agent" | "Task" | "dispatch_task" => (Tool::Agent, Alias::Whole),
        name => (Tool::Named(name.to_owned()), Alias::Whole),
    }
}

#[cfg(test)]
mod tests;
