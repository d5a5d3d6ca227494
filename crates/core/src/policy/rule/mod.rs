//! Permission rules as people write them: `Bash(git log:*)`, `Read(./secrets/**)`, `Edit`, `WebFetch(domain:x.org)`.
//!
//! A rule belongs to one of three lists and has an origin; both are kept, so that every verdict can name its file and
//! line. It is parsed once. A rule that cannot be understood counts strictly: as a denial or a question it covers the
//! whole tool, as a permission nothing. Nothing here decides between rules; `judge` does.

mod path;
mod pattern;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use path::{Anchors, escape};
pub(super) use path::{ResolvedPath, absolute};
pub(super) use pattern::Spelling;
pub use pattern::is_local_host;
use pattern::{CommandPattern, HostPattern};

use super::glob::Glob;

/// The tool that loads skills: a rule can name one skill.
const SKILL: &str = "skill";
/// The tool that searches the web.
pub(super) const SEARCH: &str = "web_search";
/// The tool whose name as a rule allows acts on a page, and no host.
pub(super) const BROWSER: &str = "browser";

/// The list that a rule belongs to, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// The call is refused.
    Deny,
    /// A person must approve.
    Ask,
    /// No question is needed.
    Allow,
}

impl List {
    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// The owner of a rule. It says nothing about precedence: rules of all scopes are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// Set by the machine's administrator.
    Managed,
    /// The user's rules for all projects.
    User,
    /// The project's rules; they may come from a stranger.
    Project,
    /// The user's rules for this project.
    Local,
    /// Given by a flag of this run.
    Flags,
    /// A remembered answer.
    Answer,
    /// A hook of another program, which cannot be run here.
    Hook,
}

impl RuleScope {
    /// The name in lists.
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
    /// The owner of the rule.
    pub scope: RuleScope,
    /// The file, or the flag.
    pub file: String,
    /// The line in the file, from 1; 0 if it is no file.
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

/// A parsed permission rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RuleText", into = "RuleText")]
pub struct Rule {
    pub list: List,
    /// The rule as written.
    pub text: String,
    pub origin: Origin,
    /// The folder that its path is relative to; empty without a path.
    anchor: String,
    tool: RuleTool,
    spec: RuleSpec,
    flaw: Option<RuleFlaw>,
}

impl Rule {
    /// Whether it has the same meaning as another rule, wherever each is written.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        (self.list, &self.text, &self.anchor) == (other.list, &other.text, &other.anchor)
    }
}

#[derive(Serialize, Deserialize)]
struct RuleText {
    list: List,
    text: String,
    origin: Origin,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    anchor: String,
}

impl From<RuleText> for Rule {
    fn from(written: RuleText) -> Self {
        let RuleText { list, text, origin, anchor } = written;
        let (tool, spec, flaw) = read(list, &text, &anchor);
        Self { list, text, origin, anchor, tool, spec, flaw }
    }
}

impl From<Rule> for RuleText {
    fn from(rule: Rule) -> Self {
        Self { list: rule.list, text: rule.text, origin: rule.origin, anchor: rule.anchor }
    }
}

/// Why a rule does not mean what it seems to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleFlaw {
    /// A permission for every tool.
    #[error("a permission for tools by `*` is not taken; name the tool, or a server as `mcp__server__*`")]
    Bare,
    /// `Write(path)` and similar forms that never match.
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
    Glob(super::glob::GlobError),
    /// The text in the parentheses is not understood.
    #[error("`{0}` takes no `({1})`")]
    Unknown(String, String),
    /// A parameter can only be denied or asked about.
    #[error("`{0}` holds for `deny` and `ask` only; as a permission it covers nothing")]
    Parameter(String),
}

/// The tools that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RuleTool {
    /// The tool that runs commands.
    Bash,
    /// All tools that read files.
    Read,
    /// All tools that change files.
    Edit,
    /// All tools that reach a host.
    Fetch,
    /// Work assigned to a member.
    Agent,
    /// One tool by its name, or several by a pattern.
    Named(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RuleSpec {
    /// Every use of the tool.
    All,
    /// No use at all.
    Nothing,
    /// Commands that match this pattern.
    Command(CommandPattern),
    /// Paths that match; `only` limits the rule to one tool.
    Path { glob: Glob, only: Option<String> },
    /// Hosts that match this pattern.
    Host(HostPattern),
    /// Work assigned to this member.
    Member(String),
    /// Calls with this parameter.
    Parameter { key: String, value: String },
}

/// What rules are compared with.
#[derive(Debug, Clone, Copy)]
pub(super) enum RuleSubject<'a> {
    /// A command in all its spellings.
    Command(&'a [Spelling]),
    /// A command that only a shell can parse, as written.
    Text(&'a str),
    /// Reading a path.
    Read(&'a ResolvedPath),
    /// Changing a path.
    Edit(&'a ResolvedPath),
    /// Reaching a host.
    Host(&'a str),
    /// Work assigned to a member.
    Member(&'a str),
    /// Only the tool.
    Tool,
}

impl Rule {
    /// Parses a rule.
    pub fn new(list: List, text: &str, origin: Origin, anchors: &Anchors<'_>) -> Self {
        let (_, inside) = split(text).unwrap_or((text, None));
        let anchor = inside.map(|path| anchors.anchor_of(path)).unwrap_or_default();
        RuleText { list, text: text.trim().to_owned(), origin, anchor }.into()
    }

    /// The same rule for a worktree of the folder `from` at `to`; `None` if it names no path in that folder.
    pub(crate) fn moved(&self, from: &str, to: &str) -> Option<Self> {
        let (tool, inside) = split(&self.text).filter(|_| self.is_of_places())?;
        let beneath = |path: &str| {
            let rest = path.strip_prefix(from.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        let written = |text: String, anchor: String| {
            RuleText { list: self.list, text, origin: self.origin.clone(), anchor }.into()
        };
        if let Some(rest) = beneath(&self.anchor) {
            return Some(written(self.text.clone(), format!("{}{rest}", to.trim_end_matches('/'))));
        }
        // An absolute path, or one in the user's home folder.
        let path = inside?.trim();
        let path = path.strip_prefix('~').unwrap_or(path).trim_start_matches('/');
        let rest = beneath(&format!("{}/{path}", self.anchor.trim_end_matches('/')))?;
        Some(written(format!("{tool}(/{})", rest.trim_start_matches('/')), to.to_owned()))
    }

    /// Why it does not mean what it seems to.
    pub fn flaw(&self) -> Option<&RuleFlaw> {
        self.flaw.as_ref()
    }

    /// Whether it names one exact command.
    pub(super) fn is_exact(&self) -> bool {
        matches!(&self.spec, RuleSpec::Command(words) if words.is_exact())
    }

    pub(super) fn tool(&self) -> &RuleTool {
        &self.tool
    }

    /// Whether it covers every use of its tool.
    pub(super) fn is_whole(&self) -> bool {
        self.spec == RuleSpec::All
    }

    /// Whether it denies every use of a tool.
    pub(super) fn denies_tool(&self, tool: &str) -> bool {
        let speaks = self.tool == named(tool).0 || self.tool.is(tool, RuleSubject::Tool);
        self.list == List::Deny && self.is_whole() && self.flaw.is_none() && speaks
    }

    /// Whether it names paths.
    pub(super) fn is_of_places(&self) -> bool {
        matches!(self.spec, RuleSpec::Path { .. })
    }

    /// Whether it applies to paths in a folder, for any tool of its kind.
    pub(super) fn reaches(&self, folder: &str) -> bool {
        match &self.spec {
            RuleSpec::All => true,
            RuleSpec::Path { glob, only: None } => glob.reaches(folder),
            _ => false,
        }
    }

    /// The pattern of a command, if it is one.
    pub(super) fn command_pattern(&self) -> Option<&CommandPattern> {
        if let RuleSpec::Command(words) = &self.spec { Some(words) } else { None }
    }

    /// Whether it names one host without a wildcard.
    pub(super) fn names_host(&self) -> bool {
        matches!(&self.spec, RuleSpec::Host(pattern) if pattern.is_exact())
    }

    /// Whether it names a domain, and not every host.
    pub(super) fn names_domain(&self) -> bool {
        matches!(&self.spec, RuleSpec::Host(pattern) if pattern.is_of_domain())
    }

    /// Whether it is about hosts.
    pub(super) fn is_of_hosts(&self) -> bool {
        matches!(self.tool, RuleTool::Fetch)
    }

    /// Whether it applies to this call.
    pub(super) fn fits(&self, call: &str, parameters: &[(String, String)], subject: RuleSubject<'_>) -> bool {
        if let RuleSpec::Parameter { key, value } = &self.spec {
            return self.tool.is(call, subject)
                && parameters.iter().any(|(name, given)| name == key && given.eq_ignore_ascii_case(value));
        }
        if !self.tool.is(call, subject) {
            return false;
        }
        let strict = self.list != List::Allow;
        match (&self.spec, subject) {
            (RuleSpec::All, _) => true,
            (RuleSpec::Command(words), RuleSubject::Command(spellings)) => spellings
                .iter()
                .filter(|spelling| strict || spelling.is_literal)
                .any(|spelling| if strict { words.resembles(spelling) } else { words.fits(spelling) }),
            (RuleSpec::Command(words), RuleSubject::Text(text)) => words.is(text),
            (RuleSpec::Path { glob, only }, RuleSubject::Read(place) | RuleSubject::Edit(place)) => {
                only.as_ref().is_none_or(|only| only == call)
                    && if strict { place.any(|path| glob.touches(path)) } else { place.all(|path| glob.owns(path)) }
            }
            (RuleSpec::Host(domain), RuleSubject::Host(host)) => domain.fits(host, strict),
            (RuleSpec::Member(name), RuleSubject::Member(member)) => name.eq_ignore_ascii_case(member),
            _ => false,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}: {}` ({})", self.list.name(), self.text, self.origin)
    }
}

impl RuleTool {
    fn is(&self, call: &str, subject: RuleSubject<'_>) -> bool {
        match (self, subject) {
            (Self::Bash, RuleSubject::Command(_) | RuleSubject::Text(_))
            | (Self::Read, RuleSubject::Read(_))
            | (Self::Edit, RuleSubject::Edit(_))
            | (Self::Fetch, RuleSubject::Host(_))
            | (Self::Agent, RuleSubject::Member(_)) => true,
            // A model may call a tool by the name that other programs have for it.
            (Self::Named(name), _) => {
                pattern::is_named(name, call)
                    || matches!(named(call).0, Self::Named(ours) if pattern::is_named(name, &ours))
            }
            _ => false,
        }
    }
}

/// Splits `Tool(…)` into the tool and the text in the parentheses.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else { return Some((text, None)) };
    rest.strip_suffix(')').map(|inside| (name.trim_end(), Some(inside)))
}

fn read(list: List, text: &str, anchor: &str) -> (RuleTool, RuleSpec, Option<RuleFlaw>) {
    let strict = list != List::Allow;
    // A rule that is not understood covers everything as a denial, and nothing as a permission.
    let whole = if strict { RuleSpec::All } else { RuleSpec::Nothing };
    let Some((name, inside)) = split(text).filter(|(name, _)| !name.is_empty() && !name.contains(['(', ')'])) else {
        let name = text.split('(').next().unwrap_or_default().trim();
        return (named(name).0, whole, Some(RuleFlaw::Form));
    };
    let (tool, alias) = named(name);
    let inside = inside.map(str::trim);
    if !strict && matches!(inside, Some("" | "domain:")) {
        return (tool, RuleSpec::Nothing, Some(RuleFlaw::Empty(name.to_owned())));
    }
    let inside = inside.filter(|inside| !matches!(*inside, "" | "*"));
    if !strict && name.contains('*') && !pattern::is_server(name) {
        return (tool, RuleSpec::Nothing, Some(RuleFlaw::Bare));
    }
    let Some(inside) = inside else {
        let spec = match alias {
            Alias::Only(only) => return (RuleTool::Named(only), RuleSpec::All, None),
            _ => RuleSpec::All,
        };
        return (tool, spec, None);
    };
    if let Some((key, value)) = parameter(&tool, inside) {
        let spec =
            if strict { RuleSpec::Parameter { key: key.into(), value: value.into() } } else { RuleSpec::Nothing };
        return (tool, spec, (!strict).then(|| RuleFlaw::Parameter(inside.to_owned())));
    }
    match (&tool, alias) {
        (RuleTool::Read | RuleTool::Edit, Alias::Dead(dead, good)) if !strict => {
            (tool, RuleSpec::Nothing, Some(RuleFlaw::Dead(dead, good)))
        }
        (RuleTool::Read | RuleTool::Edit, alias) => {
            let only = if let Alias::Only(only) = &alias { Some(only.clone()) } else { None };
            let dead = if let Alias::Dead(dead, good) = alias { Some(RuleFlaw::Dead(dead, good)) } else { None };
            match path::glob(anchor, inside, strict) {
                Ok(glob) => (tool, RuleSpec::Path { glob, only }, dead),
                Err(error) => (tool, whole, Some(RuleFlaw::Glob(error))),
            }
        }
        (RuleTool::Bash, _) => (tool, RuleSpec::Command(CommandPattern::new(inside)), None),
        (RuleTool::Fetch, _) => match inside.strip_prefix("domain:").map(HostPattern::new) {
            Some(domain) => (tool, RuleSpec::Host(domain), None),
            None => (tool, whole, Some(RuleFlaw::Unknown(name.to_owned(), inside.to_owned()))),
        },
        (RuleTool::Agent, _) => (tool, RuleSpec::Member(inside.to_owned()), None),
        (RuleTool::Named(_), _) => (tool, whole, Some(RuleFlaw::Unknown(name.to_owned(), inside.to_owned()))),
    }
}

/// `model:opus`, `run_in_background:true`, the `name:pdf` of a skill: a parameter of the call, not a pattern.
fn parameter<'a>(tool: &RuleTool, inside: &'a str) -> Option<(&'a str, &'a str)> {
    let (key, value) = inside.split_once(':')?;
    let is_key = key.starts_with(|letter: char| letter.is_ascii_lowercase())
        && key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    // Names of skills may use any script, and those of a plugin have a colon.
    let is_skill = matches!(tool, RuleTool::Named(name) if name == SKILL);
    let is_letter = |letter: char| match is_skill {
        true => letter.is_alphanumeric() || "-_.:".contains(letter),
        false => letter.is_ascii_alphanumeric() || "-_.".contains(letter),
    };
    let is_value = !value.is_empty() && value.chars().all(is_letter);
    let fits = match tool {
        RuleTool::Agent => true,
        RuleTool::Bash => key.contains('_') && matches!(value, "true" | "false"),
        RuleTool::Named(_) => is_skill && key == "name",
        _ => false,
    };
    (is_key && is_value && fits).then_some((key, value))
}

/// How a name stands for its kind of tool.
enum Alias {
    /// For all tools of the kind.
    Whole,
    /// For this tool alone.
    Only(String),
    /// For all tools of the kind without a path; with a path it never matches, and another name is needed.
    Dead(&'static str, &'static str),
}

/// The names of whole kinds of tools, for suggestions.
pub(super) const KINDS: [&str; 12] = [
    "Bash",
    "Read",
    "Glob",
    "Grep",
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "WebFetch",
    "WebSearch",
    "Browser",
    "Agent",
];

/// Names that other programs use, and the names of this project.
fn named(name: &str) -> (RuleTool, Alias) {
    match name {
        "Bash" | "run_shell" | "exec" => (RuleTool::Bash, Alias::Whole),
        "Read" => (RuleTool::Read, Alias::Whole),
        "Glob" => (RuleTool::Read, Alias::Dead("Glob", "Read")),
        "Grep" => (RuleTool::Read, Alias::Dead("Grep", "Read")),
        "read_file" | "list_dir" | "search_code" => (RuleTool::Read, Alias::Only(name.to_owned())),
        "Edit" | "MultiEdit" => (RuleTool::Edit, Alias::Whole),
        "Write" => (RuleTool::Edit, Alias::Dead("Write", "Edit")),
        "NotebookEdit" => (RuleTool::Edit, Alias::Dead("NotebookEdit", "Edit")),
        "write_file" | "edit_file" => (RuleTool::Edit, Alias::Only(name.to_owned())),
        "WebFetch" | "web_fetch" | "http_get" => (RuleTool::Fetch, Alias::Whole),
        "WebSearch" => (RuleTool::Named(SEARCH.to_owned()), Alias::Whole),
        "Browser" => (RuleTool::Named("browser".to_owned()), Alias::Whole),
        "BashOutput" => (RuleTool::Named("shell_output".to_owned()), Alias::Whole),
        "KillShell" => (RuleTool::Named("shell_stop".to_owned()), Alias::Whole),
        "Agent" | "Task" | "dispatch_task" => (RuleTool::Agent, Alias::Whole),
        name => {
            let other = crate::task_list::OTHER_NAMES.iter().find(|(other, _)| *other == name);
            (RuleTool::Named(other.map_or(name, |(_, ours)| ours).to_owned()), Alias::Whole)
        }
    }
}

#[cfg(test)]
mod tests;
