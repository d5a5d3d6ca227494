//! An agents file, member by member.
//!
//! Reading goes on after a problem, so that one run names them all. Words are filled in from the environment as in the
//! settings, never keys; a file that came with a project reads no variable of the user's and starts no program.

use std::collections::{BTreeMap, BTreeSet};

use max_team_core::agent::{Constraints, Definition, Member};
use max_team_core::mcp::McpServer;
use max_team_core::policy::glob::Glob;

use super::PROMPTS;
use super::resolve::{AgentRoll, MemberEntry};
use super::source::AgentsFile;
use crate::config::expand::{self, ExpandError};
use crate::config::trust::{self, ProjectLimit};
use crate::config::yaml::{Name, Node, Spot, Value};
use crate::config::{ConfigError, ConfigFile, Count, Env, FileTrust, Problem, Shape, Switch, Time, found, quote};
use crate::i18n::{Lang, Translated};

/// Members of one team.
const MEMBERS_MAX: usize = 64;
/// Entries of one list.
pub(super) const LIST_MAX: usize = 256;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 32;
/// Problems, and warnings, that one reading tells.
pub(super) const TOLD_MAX: usize = 20;
/// Names that no agent can have: `user` addresses the user.
pub(super) const TAKEN: [&str; 1] = ["user"];

const TOP: [&str; 1] = ["agents"];
const KEYS: [&str; 7] = ["name", "role", "model", "system_prompt", "tools", "mcp_servers", "constraints"];
pub(super) const LIMITS: [&str; 8] = [
    "allowed_dirs",
    "blocked_patterns",
    "write_patterns",
    "read_only",
    "allowed_commands",
    "allowed_hosts",
    "max_tokens",
    "timeout",
];
const SERVER: [&str; 4] = ["name", "command", "args", "env"];

/// Reads all agents of a file.
pub(super) fn roll(source: &AgentsFile, env: &Env) -> Result<AgentRoll, ConfigError> {
    let mut reader = AgentsReader::new(&source.file, env);
    let rows = reader.rows(&source.node);
    let AgentsReader { mut problems, mut warnings, .. } = reader;
    if !problems.is_empty() {
        problems.truncate(TOLD_MAX);
        return Err(ConfigError { problems });
    }
    if warnings.len() > TOLD_MAX {
        let more = warnings.len() - TOLD_MAX;
        warnings.truncate(TOLD_MAX);
        warnings.push(Translated::at(&source.file.shown, |lang| lang.more_warnings(more)));
    }
    let (file, end) = (source.file.clone(), source.node.spot);
    Ok(AgentRoll { file, rows, warnings, later: Vec::new(), end, is_builtin: source.is_builtin })
}

/// Reads what is written about one file's agents, and keeps what is wrong with it.
pub(super) struct AgentsReader<'a> {
    pub(super) file: &'a ConfigFile,
    env: &'a Env,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Translated>,
}

type Fields<'n> = BTreeMap<&'n str, &'n Node>;
/// The place of an unknown key, and the warning about it.
type UnknownKey = (Spot, Translated);

impl<'a> AgentsReader<'a> {
    pub(super) fn new(file: &'a ConfigFile, env: &'a Env) -> Self {
        Self { file, env, problems: Vec::new(), warnings: Vec::new() }
    }
}

impl AgentsReader<'_> {
    fn rows(&mut self, top: &Node) -> Vec<MemberEntry> {
        let file = Translated::new(|lang| lang.key_file().to_owned());
        if top.is_null() {
            self.expected(top, file, |lang| map_with(lang, &TOP));
            return Vec::new();
        }
        let Some(fields) = self.fields(file, top, &TOP) else { return Vec::new() };
        let items = match fields.get("agents").map(|node| (&node.value, node)) {
            Some((Value::List(items), _)) => items.as_slice(),
            Some((_, node)) => {
                self.expected(node, "agents", |lang| lang.wanted_agents().to_owned());
                &[]
            }
            None => {
                self.rule(top.spot, |lang| lang.agents_no_list().to_owned());
                &[]
            }
        };
        if let Some(extra) = items.get(MEMBERS_MAX) {
            self.rule(extra.spot, |lang| lang.agents_too_many(items.len(), MEMBERS_MAX));
        }
        let mut names = BTreeMap::new();
        let mut rows = Vec::new();
        for item in items.iter().take(MEMBERS_MAX) {
            let Some(row) = self.row(item) else { continue };
            let name = row.member.definition.name.clone();
            if let Some(first) = names.insert(name.clone(), row.spot.line) {
                self.rule(row.spot, |lang| lang.agent_name_twice(&name, first));
            }
            rows.push(row);
        }
        rows
    }

    fn row(&mut self, node: &Node) -> Option<MemberEntry> {
        let fields = self.fields(Translated::new(|lang| lang.key_agent().to_owned()), node, &KEYS)?;
        let name = fields.get("name").and_then(|node| Some((self.word("name", node)?, node.spot)));
        let (name, spot) = match name {
            Some(name) => name,
            None if fields.contains_key("name") => return None,
            None => {
                self.rule(node.spot, |lang| lang.agent_without_name().to_owned());
                return None;
            }
        };
        self.check_name(&name, spot);
        let called = quote(&name);
        let key = |key: &str| format!("{called}.{key}");
        let role = match fields.get("role") {
            Some(node) => self.word(&key("role"), node),
            None => {
                self.rule(spot, |lang| lang.agent_without_role(&called));
                None
            }
        };
        let prompt = self.prompt(&called, spot, fields.get("system_prompt").copied());
        let model = fields.get("model").and_then(|node| self.word(&key("model"), node));
        let model_at = fields.get("model").map_or(spot, |node| node.spot);
        let tools = fields.get("tools").map(|node| self.words(&key("tools"), node));
        let mcp_servers = fields.get("mcp_servers").map(|node| self.servers(&called, node)).unwrap_or_default();
        let constraints = fields.get("constraints").map(|node| self.constraints(&key("constraints"), node));
        let constraints = constraints.unwrap_or_default();
        let definition = Definition { name, role: role?, prompt: prompt?, tools: Vec::new(), ..Definition::default() };
        let model = model.filter(|model| model != "inherit");
        Some(MemberEntry { member: Member { definition, model, mcp_servers, constraints }, spot, model_at, tools })
    }

    fn check_name(&mut self, name: &str, spot: Spot) {
        if !is_name(name) {
            self.unfit(spot, "name", name, |lang| lang.wanted_agent_name(NAME_BYTES_MAX));
        } else if TAKEN.contains(&name) {
            self.rule(spot, |lang| lang.agent_name_reserved(name));
        }
    }

    fn prompt(&mut self, called: &str, spot: Spot, node: Option<&Node>) -> Option<String> {
        let names = |lang: Lang| PROMPTS.map(|(name, _)| format!("`@builtin/{name}`")).join(lang.comma());
        let Some(node) = node else {
            self.rule(spot, |lang| lang.agent_without_prompt(called, names(lang)));
            return None;
        };
        let text = self.word(&format!("{called}.system_prompt"), node)?;
        let Some(wanted) = text.strip_prefix("@builtin/") else { return Some(text) };
        let built_in = PROMPTS.iter().find(|(name, _)| *name == wanted).map(|(_, text)| (*text).to_owned());
        if built_in.is_none() {
            self.rule(node.spot, |lang| lang.agent_unknown_prompt(called, quote(&text), names(lang)));
        }
        built_in
    }

    /// Reads an agent's constraints; `called` is the key that holds them.
    pub(super) fn constraints(&mut self, called: &str, node: &Node) -> Constraints {
        let mut made = Constraints::default();
        let Some((fields, strange)) = self.sorted(called, node, &LIMITS) else { return made };
        for (spot, words) in strange {
            self.rule(spot, |lang| lang.constraint_unknown(called, words.get(lang)));
        }
        for (name, spot) in blank(node) {
            self.rule(spot, |lang| lang.constraint_blank(format!("{called}.{name}")));
        }
        for (name, node) in fields {
            let key = format!("{called}.{name}");
            match name {
                "max_tokens" => made.max_tokens = self.shaped::<Count<1, 10_000_000>>(&key, node),
                "timeout" => {
                    let time = self.shaped::<Time>(&key, node);
                    made.timeout_ms = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                }
                "read_only" => made.read_only = self.shaped::<Switch>(&key, node).unwrap_or_default(),
                "allowed_commands" => {
                    made.allowed_commands = Some(plain(self.words(&key, node)));
                    made.foreign_commands = self.is_strange();
                }
                "allowed_hosts" => made.allowed_hosts = self.hosts(&key, node),
                "allowed_dirs" => made.allowed_dirs = Some(self.dirs(&key, node)),
                "blocked_patterns" => made.blocked_patterns = self.globs(&key, node),
                _ => made.write_patterns = Some(self.globs(&key, node)),
            }
        }
        made
    }

    /// Hosts that need no question make a member freer, so those of a stranger's file do not count.
    fn hosts(&mut self, key: &str, node: &Node) -> Vec<String> {
        let words = self.words(key, node);
        for (host, spot) in &words {
            let name = host.strip_prefix("*.").unwrap_or(host);
            let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let name = name.split_once(':').filter(|(_, port)| is_port(port)).map_or(name, |(name, _)| name);
            if name.is_empty() || name.contains(['/', ':', '*', '@']) || name.contains(char::is_whitespace) {
                self.unfit(*spot, key, host, |lang| lang.wanted_host().to_owned());
            }
        }
        if words.is_empty() || !self.holds_back(key, node, ProjectLimit::Free) { plain(words) } else { Vec::new() }
    }

    /// Whether something is left unused because the file came with a project; then that is told.
    fn holds_back(&mut self, key: &str, node: &Node, why: ProjectLimit) -> bool {
        if self.is_strange() {
            let file = self.file;
            self.warn(node.spot, |lang| lang.agents_held_back(key, lang.project_limit(why), &file.shown));
        }
        self.is_strange()
    }

    fn dirs(&mut self, key: &str, node: &Node) -> Vec<String> {
        let words = self.words(key, node);
        for (dir, spot) in &words {
            if dir.starts_with(['/', '~']) || dir.split('/').any(|part| part == "..") {
                self.unfit(*spot, key, dir, |lang| lang.wanted_inner_folder().to_owned());
            }
        }
        plain(words)
    }

    fn globs(&mut self, key: &str, node: &Node) -> Vec<String> {
        let words = self.words(key, node);
        self.globs_of(key, words)
    }

    /// Patterns, each of them checked.
    pub(super) fn globs_of(&mut self, key: &str, words: Vec<(String, Spot)>) -> Vec<String> {
        for (text, spot) in &words {
            if let Err(error) = Glob::new(text, true) {
                self.rule(*spot, |lang| lang.pattern_unusable(key, quote(text), lang.glob_error(&error)));
            }
        }
        plain(words)
    }

    fn servers(&mut self, called: &str, node: &Node) -> Vec<McpServer> {
        let key = format!("{called}.mcp_servers");
        let Value::List(items) = &node.value else {
            self.expected(node, key.as_str(), |lang| lang.wanted_servers().to_owned());
            return Vec::new();
        };
        if !items.is_empty() && self.holds_back(&key, node, ProjectLimit::Run) {
            return Vec::new();
        }
        let mut names = BTreeSet::new();
        let mut servers = Vec::new();
        for item in items.iter().take(LIST_MAX) {
            let Some(server) = self.server(&key, item) else { continue };
            if names.insert(server.name.clone()) {
                servers.push(server);
            } else {
                self.rule(item.spot, |lang| lang.server_name_twice(&key, quote(&server.name)));
            }
        }
        servers
    }

    /// A server that is written under its name; none if it is not one that is started here.
    pub(super) fn named_server(&mut self, key: &str, name: &Name, node: &Node) -> Option<McpServer> {
        let Value::Map(entries) = &node.value else { return None };
        let mut entries: Vec<_> = entries.iter().filter(|(name, _)| SERVER.contains(&&*name.text)).cloned().collect();
        if !entries.iter().any(|(name, _)| name.text == "command") {
            return None;
        }
        let called = Name { text: "name".to_owned(), spot: name.spot };
        entries.push((called, Node { spot: name.spot, ..Node::word(&name.text) }));
        self.server(key, &Node { value: Value::Map(entries), spot: node.spot })
    }

    fn server(&mut self, key: &str, node: &Node) -> Option<McpServer> {
        let fields = self.fields(key, node, &SERVER)?;
        for needed in ["name", "command"] {
            if !fields.contains_key(needed) {
                self.rule(node.spot, |lang| lang.server_without(key, needed));
            }
        }
        let name = self.word(&format!("{key}.name"), fields.get("name")?);
        let command = self.word(&format!("{key}.command"), fields.get("command")?);
        let args = fields.get("args").map(|node| plain(self.words(&format!("{key}.args"), node))).unwrap_or_default();
        let env = match fields.get("env").map(|node| (&node.value, node)) {
            None => BTreeMap::new(),
            Some((Value::Map(entries), _)) => entries.iter().filter_map(|entry| self.variable(key, entry)).collect(),
            Some((_, node)) => {
                self.expected(node, format!("{key}.env"), |lang| lang.wanted_variables().to_owned());
                BTreeMap::new()
            }
        };
        Some(McpServer { name: name?, command: command?, args, env, ..McpServer::default() })
    }

    /// A variable for a server; it may be empty, and it is never shown.
    fn variable(&mut self, key: &str, (name, node): &(Name, Node)) -> Option<(String, String)> {
        let key = format!("{key}.env.{}", quote(&name.text));
        let filled = self.filled(&key, node)?;
        let Some(text) = filled.text() else {
            let wanted = Translated::new(|lang| lang.wanted_word().to_owned());
            self.problems.push(Problem::Value {
                place: self.file.place(node.spot),
                key: key.into(),
                wanted,
                found: Translated::new(|lang| lang.found_other().to_owned()),
            });
            return None;
        };
        Some((name.text.clone(), text.to_owned()))
    }

    /// The entries of a map that we know. Others are told.
    fn fields<'n>(&mut self, what: impl Into<Translated>, node: &'n Node, keys: &[&'static str]) -> Option<Fields<'n>> {
        let (fields, strange) = self.sorted(what, node, keys)?;
        for (spot, words) in strange {
            self.warn(spot, |lang| words.get(lang).to_owned());
        }
        Some(fields)
    }

    /// The entries of a map that we know, and words about the others. What is null counts as not written.
    fn sorted<'n>(
        &mut self,
        what: impl Into<Translated>,
        node: &'n Node,
        keys: &[&'static str],
    ) -> Option<(Fields<'n>, Vec<UnknownKey>)> {
        let Value::Map(entries) = &node.value else {
            if !node.is_null() {
                self.expected(node, what, |lang| map_with(lang, keys));
            }
            return None;
        };
        let (mut fields, mut strange) = (Fields::new(), Vec::new());
        for (name, node) in entries {
            if keys.contains(&name.text.as_str()) {
                if !node.is_null() {
                    fields.insert(&name.text, node);
                }
            } else {
                strange.push((name.spot, unknown_key(&name.text, keys)));
            }
        }
        Some((fields, strange))
    }

    fn word(&mut self, key: &str, node: &Node) -> Option<String> {
        let filled = self.filled(key, node)?;
        let text = filled.text().filter(|text| !text.is_empty()).map(str::to_owned);
        if text.is_none() {
            self.expected(&filled, key, |lang| lang.wanted_word().to_owned());
        }
        text
    }

    fn words(&mut self, key: &str, node: &Node) -> Vec<(String, Spot)> {
        let Value::List(items) = &node.value else {
            self.expected(node, key, |lang| lang.wanted_word_list().to_owned());
            return Vec::new();
        };
        if let Some(extra) = items.get(LIST_MAX) {
            self.rule(extra.spot, |lang| lang.list_too_long(key, items.len(), LIST_MAX));
        }
        items.iter().take(LIST_MAX).filter_map(|item| Some((self.word(key, item)?, item.spot))).collect()
    }

    fn shaped<S: Shape>(&mut self, key: &str, node: &Node) -> Option<S::Value> {
        let filled = self.filled(key, node)?;
        let value = S::read(&filled);
        if value.is_none() {
            self.expected(&filled, key, S::wanted);
        }
        value
    }

    /// The value with its variables filled in.
    fn filled(&mut self, key: &str, node: &Node) -> Option<Node> {
        let key = key.to_owned();
        if self.is_strange()
            && let Some(why) = trust::by_names(&expand::names(node))
        {
            let file = self.file;
            self.rule(node.spot, |lang| lang.agents_not_trusted(&key, lang.project_limit(why), &file.shown));
            return None;
        }
        let mut node = node.clone();
        match expand::fill(&mut node, self.env) {
            Ok(_) => return Some(node),
            Err((spot, ExpandError::Unset(name))) => {
                self.problems.push(Problem::Unset { place: self.file.place(spot), key, name });
            }
            Err((spot, ExpandError::Form(text))) => {
                let text = quote(&text);
                self.problems.push(Problem::Reference { place: self.file.place(spot), key, text });
            }
        }
        None
    }

    /// Whether the file came with a project.
    pub(super) fn is_strange(&self) -> bool {
        self.file.standing != FileTrust::Trusted
    }

    fn warn(&mut self, spot: Spot, words: impl Fn(Lang) -> String) {
        let place = self.file.place(spot);
        self.warnings.push(Translated::at(&place, words));
    }

    pub(super) fn rule(&mut self, spot: Spot, words: impl Fn(Lang) -> String) {
        self.problems.push(Problem::Rule { place: self.file.place(spot), message: Translated::new(words) });
    }

    pub(super) fn expected(&mut self, node: &Node, key: impl Into<Translated>, wanted: impl Fn(Lang) -> String) {
        let (place, found) = (self.file.place(node.spot), found(node));
        self.problems.push(Problem::Value { place, key: key.into(), wanted: Translated::new(wanted), found });
    }

    /// Like `expected`, for a word that does not fit.
    fn unfit(&mut self, spot: Spot, key: &str, word: &str, wanted: impl Fn(Lang) -> String) {
        let (place, found) = (self.file.place(spot), format!("`{}`", quote(word)).into());
        self.problems.push(Problem::Value { place, key: key.into(), wanted: Translated::new(wanted), found });
    }
}

fn map_with(lang: Lang, keys: &[&str]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    lang.wanted_map_with(keys.join(lang.comma()))
}

/// The words about an unknown key, with the key that was probably meant.
pub(super) fn unknown_key(written: &str, known: &[&'static str]) -> Translated {
    Translated::new(|lang| lang.unknown_key(quote(written), lang.near(written, known.iter().copied())))
}

/// The allow-lists of constraints that are written without a value: neither no limit nor an empty list can be meant.
fn blank(node: &Node) -> Vec<(&str, Spot)> {
    const LISTS: [&str; 4] = ["allowed_dirs", "allowed_commands", "allowed_hosts", "write_patterns"];
    let Value::Map(entries) = &node.value else { return Vec::new() };
    let blank = entries.iter().filter(|(name, node)| node.is_null() && LISTS.contains(&name.text.as_str()));
    blank.map(|(name, _)| (name.text.as_str(), name.spot)).collect()
}

/// Whether this is a valid name for a member.
pub(super) fn is_name(name: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
    let is_word = name.starts_with(|first: char| first.is_ascii_lowercase()) && name.chars().all(letters);
    is_word && name.len() <= NAME_BYTES_MAX
}

pub(super) fn plain(words: Vec<(String, Spot)>) -> Vec<String> {
    words.into_iter().map(|(word, _)| word).collect()
}
