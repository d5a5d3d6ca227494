//! The tools there are, and the check that stands between a model's words and a tool.
//!
//! [`Registry::prepare`] turns a name and some JSON into an action that can be judged, or into an error that tells
//! the model what to write instead. It never runs a tool; [`Registry::run`] and, for remote tools, [`run_remote`](crate::run_remote) do, and
//! never judge.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, LazyLock, OnceLock};

use jsonschema::Validator;
use max_team_core::limits::TOOL_INPUT_BYTES_MAX;
use max_team_core::policy::{Action, Repeatability};
use max_team_core::suggest::nearest;
use serde_json::{Map, Value};

use crate::aliases::{COMMAND, called, canonical};
use crate::remote::RemoteTool;
use crate::text::{clip, size};
use crate::tool::{Output, Spec, Tool, ToolContext, ToolError};
use crate::tool_query::ToolQuery;
use crate::{browser, files, git, logs, metrics, search, shell, test_runner, web};

/// Faults of one input that are told at once.
const FAULTS_MAX: usize = 8;
/// Bytes of one such fault.
const FAULT_BYTES_MAX: usize = 300;
/// Bytes of a value that does not fit, in such a line.
const VALUE_BYTES_MAX: usize = 80;

/// What comes with the tool that runs commands, to look after those in the background.
pub const COMPANIONS: [&str; 2] = ["shell_output", "shell_stop"];

/// A tool of either kind.
#[derive(Debug, Clone)]
pub enum Handler {
    /// Works on this machine and holds a thread meanwhile.
    Local(Arc<dyn Tool>),
    /// Waits for a server, without a thread.
    Remote(Arc<dyn RemoteTool>),
}

impl Handler {
    /// What is known about the tool.
    pub fn spec(&self) -> &Spec {
        match self {
            Self::Local(tool) => tool.spec(),
            Self::Remote(tool) => tool.spec(),
        }
    }

    /// What a crash in the middle of such a call means.
    pub fn class(&self, action: &Action) -> Repeatability {
        match self {
            Self::Local(tool) => tool.class(action),
            Self::Remote(tool) => tool.class(action),
        }
    }

    /// The tool, if it works on this machine.
    pub fn local(&self) -> Option<&Arc<dyn Tool>> {
        match self {
            Self::Local(tool) => Some(tool),
            Self::Remote(_) => None,
        }
    }

    fn action(&self, cx: &ToolContext, args: &Value) -> Result<Action, ToolError> {
        match self {
            Self::Local(tool) => tool.action(cx, args),
            Self::Remote(tool) => tool.action(cx, args),
        }
    }
}

/// A tool with its validator, which is made on first use and kept.
#[derive(Debug)]
struct RegisteredTool {
    tool: Handler,
    validator: OnceLock<Result<Validator, String>>,
}

/// The tools of one agent. Cheap to copy; copies share the validators.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    // Ordered by name, so that requests built from it are the same bytes for any order of registration.
    entries: BTreeMap<String, Arc<RegisteredTool>>,
    /// Tools that requests do not describe. A call by name works.
    pub(crate) hidden: BTreeSet<String>,
    /// Tools that come from a source, with its name.
    pub(crate) sourced: BTreeMap<String, String>,
    /// Tools that a source offered before and does not offer now.
    pub(crate) gone: BTreeMap<String, String>,
}

/// What cannot be registered or chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two tools under one name.
    #[error("there is already a tool `{0}`")]
    Duplicate(String),
    /// A tool that is not there; the text names the nearest.
    #[error("{0}")]
    Unknown(String),
}

/// A call that can be judged.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What the call would do.
    pub action: Action,
    /// What a crash in the middle of it would mean.
    pub class: Repeatability,
}

impl Registry {
    pub fn new() -> Self {
        Self::default()
    }

    /// The built-in tools: files, search, git, commands, tests, logs, metrics and the web.
    pub fn builtin() -> Self {
        // Their schemas are made once, however many members are given some of them.
        static ALL: LazyLock<Registry> = LazyLock::new(Registry::all);
        ALL.clone()
    }

    fn all() -> Self {
        let mut registry = Self::new();
        registry.put(files::read_file());
        registry.put(files::list_dir());
        registry.put(files::write_file());
        registry.put(files::edit_file());
        registry.put(search::search_code());
        registry.put(git::git_status());
        registry.put(git::git_diff());
        registry.put(git::git_log());
        registry.put(git::git_commit());
        registry.put(shell::run_shell());
        registry.put(shell::shell_output());
        registry.put(shell::shell_stop());
        registry.put(test_runner::run_test());
        registry.put(test_runner::coverage_report());
        registry.put_remote(logs::query_log());
        registry.put_remote(metrics::query_metrics());
        registry.put_remote(web::web_fetch());
        registry.put_remote(web::web_search());
        registry.put_remote(web::geocode());
        registry.put_remote(browser::browser());
        registry
    }

    /// Adds a tool under its name.
    pub fn add(&mut self, tool: impl Tool + 'static) -> Result<(), RegistryError> {
        let name = &tool.spec().name;
        if self.entries.contains_key(name) {
            return Err(RegistryError::Duplicate(name.clone()));
        }
        self.put(tool);
        Ok(())
    }

    /// Adds a tool, in the place of one of that name.
    pub fn put(&mut self, tool: impl Tool + 'static) {
        self.insert(Handler::Local(Arc::new(tool)));
    }

    /// Adds a remote tool, in the place of one of that name.
    pub fn put_remote(&mut self, tool: impl RemoteTool + 'static) {
        self.insert(Handler::Remote(Arc::new(tool)));
    }

    /// Describes tools as another registry does, where both have them.
    pub fn describe_as(&mut self, other: &Self) {
        for (name, entry) in &mut self.entries {
            if let Some(described) = other.entries.get(name) {
                *entry = Arc::clone(described);
            }
        }
    }

    /// Takes a tool away.
    pub fn remove(&mut self, name: &str) {
        self.entries.remove(name);
    }

    pub(crate) fn insert(&mut self, tool: Handler) {
        let name = tool.spec().name.clone();
        self.entries.insert(name, Arc::new(RegisteredTool { tool, validator: OnceLock::new() }));
    }

    /// The tool of that name, or that answers to it.
    pub fn get(&self, name: &str) -> Option<&Handler> {
        self.entry(name).map(|entry| &entry.tool)
    }

    fn entry(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        self.entries.get(name).or_else(|| self.entries.get(called(name)))
    }

    /// All of them, ordered by name.
    pub fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.entries.values().map(|entry| entry.tool.spec())
    }

    /// The tools that requests describe, ordered by name.
    pub fn offered(&self) -> impl Iterator<Item = &Spec> {
        self.specs().filter(|spec| !self.hidden.contains(&spec.name))
    }

    /// Leaves tools out of requests.
    pub fn hide(&mut self, names: impl IntoIterator<Item = String>) {
        self.hidden.extend(names);
    }

    /// Describes hidden tools in requests from now on; says whether one of them was hidden.
    pub fn reveal<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let before = self.hidden.len();
        names.into_iter().for_each(|name| drop(self.hidden.take(name)));
        self.hidden.len() < before
    }

    /// Whether requests do not describe a tool.
    pub fn is_hidden(&self, name: &str) -> bool {
        self.hidden.contains(name)
    }

    /// The tools that a query finds, best first: by the query's words in names and descriptions.
    pub fn search<'a>(&'a self, query: &str, most: usize, may_find: impl Fn(&str) -> bool) -> Vec<&'a Spec> {
        let query = ToolQuery::new(query);
        let scored = self.specs().filter(|spec| may_find(&spec.name)).map(|spec| (query.score(spec), spec));
        let mut found: Vec<(usize, &Spec)> = scored.filter(|(score, _)| *score > 0).collect();
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.into_iter().take(most).map(|(_, spec)| spec).collect()
    }

    /// Only these tools, with what comes with them. A name that is not there is an error, not a silent gap.
    pub fn subset<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Self, RegistryError> {
        let mut entries = BTreeMap::new();
        for name in names {
            let entry = self.entry(name).or_else(|| self.entry(canonical(name)));
            let entry = entry.ok_or_else(|| RegistryError::Unknown(self.unknown(name)))?;
            entries.insert(entry.tool.spec().name.clone(), Arc::clone(entry));
        }
        let mut hidden = BTreeSet::new();
        if entries.contains_key(COMMAND) {
            for (name, entry) in COMPANIONS.iter().filter_map(|name| self.entries.get_key_value(*name)) {
                // Of use only once a command runs in the background.
                if entries.insert(name.clone(), Arc::clone(entry)).is_none() {
                    hidden.insert(name.clone());
                }
            }
        }
        Ok(Self { entries, hidden, ..Self::default() })
    }

    /// Checks a call and says what it would do. Every error is told to the model, unless the tool itself says that
    /// it is fatal. Blocking.
    pub fn prepare(&self, cx: &ToolContext, name: &str, input: &Value) -> Result<Prepared, ToolError> {
        self.checked(cx, name, input).map_err(ToolError::bounded)
    }

    /// Whether an input has the shape that a tool takes.
    pub fn validate(&self, name: &str, input: &Value) -> Result<(), ToolError> {
        let entry = self.entry(name).ok_or_else(|| ToolError::correctable(self.unknown(name)))?;
        validate(entry, input).map_err(ToolError::bounded)
    }

    fn checked(&self, cx: &ToolContext, name: &str, input: &Value) -> Result<Prepared, ToolError> {
        let entry = self.entry(name).ok_or_else(|| ToolError::correctable(self.unknown(name)))?;
        let spec = entry.tool.spec();
        let Some(members) = input.as_object() else {
            return Err(ToolError::correctable(format!(
                "the input of `{name}` must be a JSON object, not {}; {}",
                kind(input),
                usage(spec)
            )));
        };
        if !fits(input, TOOL_INPUT_BYTES_MAX) {
            let most = size(TOOL_INPUT_BYTES_MAX as u64);
            return Err(ToolError::correctable(format!(
                "the input of `{name}` is larger than {most}; do it in pieces"
            )));
        }
        let input = if spec.null_is_absent { without_nulls(input, members, spec) } else { Cow::Borrowed(input) };
        validate(entry, &input)?;
        let action = entry.tool.action(cx, &input)?;
        let class = entry.tool.class(&action);
        Ok(Prepared { action, class })
    }

    /// Does what was judged with a tool of this machine, and bounds the result. Blocking.
    pub fn run(
        &self,
        cx: &ToolContext,
        name: &str,
        input: Value,
        intent: &Action,
        resumed: bool,
    ) -> Result<Output, ToolError> {
        let tool = self.get(name).and_then(Handler::local);
        let tool = tool.ok_or_else(|| ToolError::correctable(self.unknown(name)))?;
        tool.call(cx, input, intent, resumed).map(|output| output.bounded(cx)).map_err(ToolError::bounded)
    }

    /// Like `run`, if the call is over at once.
    pub fn run_inline(
        &self,
        cx: &ToolContext,
        name: &str,
        input: &Value,
        intent: &Action,
    ) -> Option<Result<Output, ToolError>> {
        let tool = self.get(name)?.local().filter(|tool| tool.spec().class == Repeatability::Pure)?;
        let ran = tool.try_inline(cx, input, intent)?;
        Some(ran.map(|output| output.bounded(cx)).map_err(ToolError::bounded))
    }

    fn unknown(&self, name: &str) -> String {
        if let Some(words) = self.gone(name) {
            return words;
        }
        let name = clip(name, 80);
        let meant = Some(canonical(&name)).filter(|meant| self.entries.contains_key(*meant));
        let like = match meant.or_else(|| nearest(&name, self.entries.keys().map(String::as_str))) {
            Some(like) => format!("; did you mean `{like}`?"),
            None => ".".to_owned(),
        };
        let names: Vec<_> = self.offered().map(|spec| format!("`{}`", spec.name)).collect();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("there is no tool `{name}`{like} The tools are: {there}")
    }
}

fn validate(entry: &RegisteredTool, input: &Value) -> Result<(), ToolError> {
    let spec = entry.tool.spec();
    let compiled = entry
        .validator
        .get_or_init(|| jsonschema::validator_for(&spec.schema).map_err(|err| clip(&err.to_string(), FAULT_BYTES_MAX)));
    // The schema is not the model's, so there is nothing it could do better.
    let validator = compiled
        .as_ref()
        .map_err(|err| ToolError::fatal(format!("the schema of the tool `{}` cannot be used: {err}", spec.name)))?;
    let mut faults: Vec<String> = validator
        .iter_errors(input)
        .take(FAULTS_MAX + 1)
        .map(|fault| {
            let path = fault.instance_path().to_string();
            // The type that is wanted stands behind the value, which may be long.
            let value = fault.instance().to_string();
            let words = fault.to_string().replace(&value, &clip(&value, VALUE_BYTES_MAX));
            let words = clip(&words, FAULT_BYTES_MAX);
            if path.is_empty() { words } else { format!("`{}`: {words}", clip(&path, FAULT_BYTES_MAX)) }
        })
        .collect();
    if faults.is_empty() {
        return Ok(());
    }
    if faults.len() > FAULTS_MAX {
        faults.truncate(FAULTS_MAX);
        faults.push("and more".to_owned());
    }
    Err(ToolError::correctable(format!(
        "the input of `{}` does not fit: {}. {}",
        spec.name,
        faults.join("; "),
        usage(spec)
    )))
}

/// One line on what a tool takes.
fn usage(spec: &Spec) -> String {
    let none = Map::new();
    let properties = spec.schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let mut takes: Vec<String> = properties
        .iter()
        .map(|(name, property)| {
            let kind = property.get("type").and_then(Value::as_str);
            let needed = is_required(spec, name).then_some("required");
            let notes: Vec<_> = kind.into_iter().chain(needed).collect();
            if notes.is_empty() { format!("`{name}`") } else { format!("`{name}` ({})", notes.join(", ")) }
        })
        .take(FAULTS_MAX + 1)
        .collect();
    if takes.len() > FAULTS_MAX {
        takes.truncate(FAULTS_MAX);
        takes.push("…".to_owned());
    }
    if takes.is_empty() { "it takes an object".to_owned() } else { format!("It takes {}", takes.join(", ")) }
}

fn is_required(spec: &Spec, name: &str) -> bool {
    let required = spec.schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

fn without_nulls<'a>(input: &'a Value, members: &Map<String, Value>, spec: &Spec) -> Cow<'a, Value> {
    let absent = |(name, value): (&String, &Value)| value.is_null() && !is_required(spec, name);
    if !members.iter().any(absent) {
        return Cow::Borrowed(input);
    }
    let kept = members.iter().filter(|member| !absent(*member));
    Cow::Owned(Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect()))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Whether the value is at most `max` bytes as JSON, found out without making the JSON.
fn fits(value: &Value, max: usize) -> bool {
    struct ByteLimit(usize);
    impl io::Write for ByteLimit {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(ByteLimit(max), value).is_ok()
}
