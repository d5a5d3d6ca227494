//! One definition that is a Markdown file, or an entry of `--agents '{…}'`.
//!
//! Unlike an agents file it is read leniently: what is odd is told and left out, and only what would be a hole in a
//! wall makes the whole definition unusable. `values` reads single values, `front_matter` takes the file apart. Nothing in
//! it is filled in from the environment but its constraints, which follow the rules of agents files.

use max_team_core::agent::{Constraints, Definition, Member, NotesScope, TeamRole, owned_source};
use max_team_core::policy::Mode;
use max_team_core::suggest::nearest;
use max_team_core::text::{code_points, hidden_lines, visible};
use max_team_runtime::front_matter;
use max_team_tools::aliases;

use super::read::{AgentsReader, LIMITS, TAKEN, unknown_key};
use super::tool_roles::{self, ToolRole};
use super::values;
use crate::config::trust::ProjectLimit;
use crate::config::yaml::{Name, Node, Spot, Value};
use crate::config::{ConfigFile, Env, FileTrust, Shape, Switch, found, quote};
use crate::i18n::{Lang, Translated};

/// Bytes of one definition; the longest that are known have a fifth of it.
pub(super) const FILE_BYTES_MAX: u64 = 256 << 10;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a description that is taken from the first line of the prompt, because the file has none.
const DESCRIPTION_BYTES_MAX: usize = 200;
/// What a file's name may end in, for readers' sake.
const ENDINGS: [&str; 2] = ["-agent", "-sub"];

/// The keys as they are usually written; capitals and joints do not matter.
const KEYS: [&str; 27] = [
    "name",
    "description",
    "tools",
    "allowed-tools",
    "disallowedTools",
    "model",
    "permissionMode",
    "maxTurns",
    "skills",
    "mcpServers",
    "hooks",
    "memory",
    "background",
    "effort",
    "isolation",
    "color",
    "initialPrompt",
    "prompt",
    "type",
    "role",
    "cache",
    "constraints",
    "budget",
    "owns",
    "write_globs",
    "allowed_commands",
    "max",
];
/// Keys that keep an agent to something: where one of them cannot be read, the agent would be freer than was meant.
const LIMITING: [&str; 12] = [
    "tools",
    "allowed-tools",
    "disallowedTools",
    "permissionMode",
    "maxTurns",
    "isolation",
    "constraints",
    "budget",
    "owns",
    "write_globs",
    "allowed_commands",
    "max",
];
/// Keys with allow-lists: an empty list allows nothing.
const LISTS: [&str; 5] = ["tools", "allowed-tools", "owns", "write_globs", "allowed_commands"];
/// Keys that mean something elsewhere and nothing that is missed here.
const QUIET: [&str; 6] = [
    "avatar",
    "omitClaudeMd",
    "autoCompactWindow",
    "observer",
    "observerMessage",
    "criticalSystemReminder_EXPERIMENTAL",
];

/// A definition, read.
#[derive(Debug, Clone)]
pub(super) struct AgentFile {
    pub(super) member: Member,
    /// Where its name stands, or the file begins.
    pub(super) line: u64,
    /// What its author should be told.
    pub(super) warnings: Vec<Translated>,
    /// Tools that it lists and does not get: they do not exist, or not yet.
    pub(super) left_out: Vec<String>,
    /// Whether the definition blocks patterns itself. One that the user trusts then does not inherit the team's
    /// patterns.
    pub(super) says_unseen: bool,
}

/// Reads a file. `None`: it is a text of another kind.
pub(super) fn read(bytes: &[u8], file: &ConfigFile, env: &Env) -> Result<Option<AgentFile>, Translated> {
    let broken = |line: u64, why: &dyn Fn(Lang) -> String| Translated::at(format!("{}:{line}", file.shown), why);
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(broken(1, &|lang| lang.file_too_large(FILE_BYTES_MAX >> 10)));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = good.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        broken(line, &|lang| lang.file_not_utf8().to_owned())
    })?;
    // Something like a key of ours is a slip of the pen, and is told as one.
    let page = front_matter::read(text, |name| known(name).is_some() || nearest(name, KEYS).is_some())
        .map_err(|fault| broken(fault.spot.line, &|lang| lang.yaml_fault(&fault.kind)))?;
    let stem = file.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let bare = ENDINGS.iter().find_map(|ending| stem.strip_suffix(ending)).unwrap_or(&stem);
    let is_ours = page.front.as_ref().is_some_and(tells) || bare != stem;
    if file.standing == FileTrust::Shared && !is_ours {
        return Ok(None);
    }
    if page.text.is_empty() && page.front.as_ref().is_none_or(Node::is_null) {
        return Err(broken(1, &|lang| lang.file_is_empty().to_owned()));
    }
    let mut card = card(page.front.as_ref(), page.text, bare, file, env)?;
    for (line, letters) in hidden_lines(text) {
        let letters = code_points(&letters);
        let place = format!("{}:{line}", file.shown);
        card.warnings.push(Translated::at(&place, |lang| lang.invisible_letters(&letters)));
    }
    Ok(Some(card))
}

/// Whether front matter is that of an agent.
fn tells(front: &Node) -> bool {
    let Value::Map(entries) = &front.value else { return false };
    let has = |key: &str| entries.iter().any(|(name, _)| name.text == key);
    has("name") || has("type") || has("description")
}

/// Makes a definition of what stands in front of a text, and the text.
pub(super) fn card(
    front: Option<&Node>,
    text: String,
    called: &str,
    file: &ConfigFile,
    env: &Env,
) -> Result<AgentFile, Translated> {
    let mut maker = DefinitionBuilder {
        reader: AgentsReader::new(file, env),
        card: AgentFile {
            member: Member {
                definition: Definition { place: TeamRole::Expert, inherits_tools: true, ..Definition::default() },
                model: None,
                mcp_servers: Vec::new(),
                constraints: Constraints::default(),
            },
            line: 1,
            warnings: Vec::new(),
            left_out: Vec::new(),
            says_unseen: false,
        },
        prompt: String::new(),
        tools: None,
    };
    match front.map(|node| (&node.value, node)) {
        None => {}
        Some((Value::Map(entries), _)) => entries.iter().for_each(|entry| maker.entry(entry)),
        Some((_, node)) if node.is_null() => {}
        Some((_, node)) => maker.warn(node.spot, |lang| lang.front_matter_no_map().to_owned()),
    }
    maker.finish(text, called)
}

/// The key that is meant.
fn known(written: &str) -> Option<&'static str> {
    let all = || KEYS.iter().chain(&QUIET);
    all().find(|key| **key == written).or_else(|| all().find(|key| aliases::is_same(key, written))).copied()
}

struct DefinitionBuilder<'a> {
    reader: AgentsReader<'a>,
    card: AgentFile,
    /// The words of `prompt`, for a definition without a text.
    prompt: String,
    tools: Option<Vec<(String, Spot)>>,
}

impl DefinitionBuilder<'_> {
    fn warn(&mut self, spot: Spot, words: impl Fn(Lang) -> String) {
        let place = format!("{}:{}", self.reader.file.shown, spot.line);
        self.card.warnings.push(Translated::at(&place, words));
    }

    fn entry(&mut self, (name, node): &(Name, Node)) {
        match known(&name.text) {
            Some(key) if node.is_null() && LISTS.contains(&key) => {
                self.warn(name.spot, |lang| lang.list_allows_nothing(key));
                self.value(key, name.spot, &Node { value: Value::List(Vec::new()), spot: node.spot });
            }
            _ if node.is_null() => {}
            Some("max") => match &node.value {
                Value::Map(entries) => entries.iter().for_each(|entry| self.entry(entry)),
                _ => self.unfit("max", node),
            },
            Some(key) => self.value(key, name.spot, node),
            None if LIMITS.contains(&name.text.as_str()) => {
                let limits = Node { value: Value::Map(vec![(name.clone(), node.clone())]), spot: node.spot };
                self.constraints(&limits);
            }
            None => {
                let words = unknown_key(&name.text, &KEYS);
                self.warn(name.spot, |lang| words.get(lang).to_owned());
            }
        }
    }

    /// One entry. Short ones are read here, so that every key has one line.
    fn value(&mut self, key: &'static str, spot: Spot, node: &Node) {
        let made = &mut self.card.member;
        let own = &mut made.definition;
        let fits = match key {
            "name" => {
                self.card.line = spot.line;
                node.text().filter(|name| !name.is_empty()).map(|name| own.name = name.to_owned())
            }
            // It is shown to people and to other agents: nothing hides in it.
            "description" => values::text(node).map(|words| own.description = visible(&words)),
            "prompt" => values::text(node).map(|words| self.prompt = words),
            "initialPrompt" => values::text(node).map(|words| own.work.initial_prompt = words),
            "color" => values::text(node).map(|color| own.color = Some(color)),
            "role" => values::text(node).map(|role| own.role = role),
            "model" => values::text(node).map(|name| made.model = Some(name).filter(|name| name != "inherit")),
            "maxTurns" => values::Rounds::read(node).map(|rounds| own.work.rounds_max = Some(rounds)),
            "background" => Switch::read(node).map(|is| own.background = is),
            "effort" => values::effort(node).map(|effort| own.work.effort = Some(effort)),
            "memory" => return self.memory(node),
            "isolation" => values::isolation(node).map(|isolation| own.isolation = isolation),
            "cache" => return self.cache(node),
            "budget" => return self.budget(node),
            "type" => values::place(node).map(|place| own.place = place),
            "skills" => values::words(node).map(|words| own.skills = words),
            "tools" | "allowed-tools" => return self.tools(node),
            "disallowedTools" => return self.taken(node),
            "permissionMode" => return self.mode(node),
            "mcpServers" => return self.servers(node),
            "hooks" => return self.hooks(node),
            "constraints" => return self.constraints(node),
            "owns" | "write_globs" => return self.globs(key, node),
            "allowed_commands" => values::words(node).map(|words| made.constraints.allowed_commands = Some(words)),
            // Known, and nothing to us.
            _ => Some(()),
        };
        if fits.is_none() {
            self.unfit(key, node);
        }
    }

    /// Reports a value of the wrong type. An unreadable limit rejects the whole definition, since the agent would run
    /// without that limit; any other key is dropped with a warning.
    fn unfit(&mut self, key: &str, node: &Node) {
        if LIMITING.contains(&key) {
            return self.reader.expected(node, key, |lang| values::wanted(key, lang));
        }
        let found = found(node);
        self.warn(node.spot, |lang| lang.value_left_out(key, values::wanted(key, lang), found.get(lang)));
    }

    fn cache(&mut self, node: &Node) {
        for (spot, words) in values::strange(node, "cache", &values::CACHE) {
            self.warn(spot, |lang| words.get(lang).to_owned());
        }
        match values::cache(node) {
            Some(cache) => self.card.member.definition.cache = Some(cache),
            None => self.unfit("cache", node),
        }
    }

    fn budget(&mut self, node: &Node) {
        for (spot, words) in values::strange(node, "budget", &values::BUDGET) {
            self.reader.rule(spot, |lang| words.get(lang).to_owned());
        }
        match values::budget(node) {
            Some(budget) => self.card.member.definition.work.budget = budget,
            None => self.unfit("budget", node),
        }
    }

    /// Tools come as a list, as words in a line, or as a map of yes and no.
    fn tools(&mut self, node: &Node) {
        if let Value::Map(entries) = &node.value {
            for (name, node) in entries.iter().filter(|(_, node)| Switch::read(node).is_none()) {
                let key = format!("tools.{}", quote(&name.text));
                self.reader.expected(node, key, |lang| lang.wanted_true_false().to_owned());
            }
            let is = |node: &Node, want: bool| Switch::read(node) == Some(want);
            let named = |want| entries.iter().filter(move |(name, node)| is(node, want) && name.text != "*");
            if entries.is_empty() || entries.iter().any(|(name, node)| name.text == "*" && is(node, false)) {
                self.tools = Some(named(true).map(|(name, _)| (name.text.clone(), name.spot)).collect());
            }
            let taken = named(false).map(|(name, _)| aliases::canonical(&name.text).to_owned());
            self.card.member.definition.disallowed_tools.extend(taken.collect::<Vec<_>>());
            return;
        }
        let Some(words) = values::spotted(node) else { return self.unfit("tools", node) };
        self.tools.get_or_insert_default().extend(words);
    }

    fn taken(&mut self, node: &Node) {
        let Some(words) = values::spotted(node) else { return self.unfit("disallowedTools", node) };
        for (word, spot) in words {
            let (name, inside) = values::call(&word);
            if inside.is_some_and(|inside| inside != "*") {
                self.warn(spot, |lang| lang.whole_tool_taken(quote(&word)));
            }
            let name = aliases::canonical(name);
            let has_near = !tool_roles::near(name, false, Lang::En).is_empty();
            let is_unknown =
                tool_roles::hand(tool_roles::known(), name, false) == ToolRole::Unknown && !name.ends_with('*');
            if is_unknown && !aliases::is_needless(name) && has_near {
                self.reader.rule(spot, |lang| {
                    let near = tool_roles::near(name, false, lang);
                    lang.headed("`disallowedTools`", lang.no_tool_called(quote(&word), near))
                });
            }
            self.card.member.definition.disallowed_tools.push(name.to_owned());
        }
    }

    /// A stranger's file may only make its agent less free; anybody's only counts where it does.
    fn mode(&mut self, node: &Node) {
        let word = node.text().unwrap_or_default();
        let known = Mode::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, mode)| *mode);
        match known.or_else(|| Mode::parse(word)) {
            None => {
                let shown = if word.is_empty() { found(node) } else { format!("`{}`", quote(word)).into() };
                self.reader.rule(node.spot, |lang| {
                    lang.agent_no_mode(shown.get(lang), lang.near(word, Mode::NAMES.map(|(name, _)| name)))
                });
            }
            Some(mode) if self.reader.is_strange() && Mode::Default.is_stricter(mode) => {
                self.warn(node.spot, |lang| {
                    lang.held_back(format!("permissionMode: {}", mode.name()), lang.project_limit(ProjectLimit::Free))
                });
            }
            Some(mode) => self.card.member.definition.mode = Some(mode),
        }
    }

    /// What is kept with the user is told in all projects: a stranger's agent neither reads it nor adds to it.
    fn memory(&mut self, node: &Node) {
        match values::memory(node) {
            None => self.unfit("memory", node),
            Some(NotesScope::User) if self.reader.is_strange() => {
                self.warn(node.spot, |lang| lang.held_back("memory: user", lang.project_limit(ProjectLimit::Memory)));
            }
            Some(memory) => self.card.member.definition.work.memory = Some(memory),
        }
    }

    fn hooks(&mut self, node: &Node) {
        let is_strange = self.reader.is_strange();
        self.warn(node.spot, |lang| match is_strange {
            true => lang.held_back_all("hooks", lang.project_limit(ProjectLimit::Run)),
            false => lang.held_back_all("hooks", lang.hooks_not_yet(lang.not_yet())),
        });
    }

    /// Servers by name are the session's; those with a command are its own, unless a stranger wrote it.
    fn servers(&mut self, node: &Node) {
        let entries: Vec<&(Name, Node)> = match &node.value {
            Value::Map(entries) => entries.iter().collect(),
            Value::List(items) => items.iter().flat_map(values::entries).collect(),
            Value::Scalar(_) => Vec::new(),
        };
        let (inline, named): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(_, node)| matches!(node.value, Value::Map(_)));
        self.card.member.definition.sources.extend(named.into_iter().map(|(name, _)| name.text.clone()));
        if inline.is_empty() {
            return;
        }
        if self.reader.is_strange() {
            return self
                .warn(node.spot, |lang| lang.held_back_all("mcpServers", lang.project_limit(ProjectLimit::Run)));
        }
        for (name, node) in inline {
            let before = self.reader.problems.len();
            let server = self.reader.named_server("mcpServers", name, node);
            // Without a server an agent can do less, not more.
            let odd = self.reader.problems.split_off(before);
            let left_out = odd.iter().map(|odd| Translated::new(|lang| lang.server_left_out(odd.words(lang))));
            self.card.warnings.extend(left_out);
            match server {
                Some(server) => self.card.member.mcp_servers.extend(odd.is_empty().then_some(server)),
                None if odd.is_empty() => {
                    let key = format!("mcpServers.{}", quote(&name.text));
                    self.warn(name.spot, |lang| lang.server_no_command(&key));
                }
                None => {}
            }
        }
    }

    fn constraints(&mut self, node: &Node) {
        let made = self.reader.constraints("constraints", node);
        let own = &mut self.card.member.constraints;
        self.card.says_unseen |= !made.blocked_patterns.is_empty();
        values::merge(own, made);
    }

    fn globs(&mut self, key: &str, node: &Node) {
        let Some(words) = values::spotted(node) else { return self.unfit(key, node) };
        let globs = self.reader.globs_of(key, words);
        match key {
            "owns" => self.card.member.definition.work.owns = Some(globs),
            _ => self.card.member.constraints.write_patterns = Some(globs),
        }
    }

    /// Everything is read: now the parts that depend on each other.
    fn finish(mut self, text: String, called: &str) -> Result<AgentFile, Translated> {
        let file = self.reader.file.shown.clone();
        let written = std::mem::take(&mut self.card.member.definition.name);
        let name = slug(&written).or_else(|| slug(called)).filter(|name| !TAKEN.contains(&name.as_str()));
        let Some(name) = name else {
            let place = format!("{file}:{}", self.card.line);
            return Err(Translated::at(&place, |lang| lang.agent_no_usable_name().to_owned()));
        };
        if !written.is_empty() && written != name {
            let spot = Spot { line: self.card.line, col: 1 };
            self.warn(spot, |lang| lang.agent_called_here(quote(&written), &name));
        }
        let own = &mut self.card.member.definition;
        own.name = name;
        if own.description.is_empty() {
            own.description = first_line(&text);
        }
        own.prompt = if !text.is_empty() {
            text
        } else if !self.prompt.is_empty() {
            std::mem::take(&mut self.prompt)
        } else {
            own.description.clone()
        };
        match own.role.as_str() {
            "" => own.role = "expert".to_owned(),
            "lead" | "team_lead" => own.place = TeamRole::Lead,
            _ if own.place != TeamRole::Lead && super::read::is_name(&own.name) => own.place = TeamRole::Member,
            _ => {}
        }
        if let Some(words) = self.tools.take() {
            self.equip(words);
        }
        let own = &mut self.card.member;
        let owned = own.mcp_servers.iter().map(|server| owned_source(&own.definition.name, &server.name));
        own.definition.sources.extend(owned);
        let own = &mut self.card.member.constraints;
        own.foreign_commands |= self.reader.is_strange() && own.allowed_commands.is_some();
        let AgentsReader { problems, warnings, .. } = self.reader;
        // All of them are about limits.
        if let Some(problem) = problems.first() {
            return Err(Translated::new(|lang| match problem.words(lang) {
                question if is_question(&question) => lang.agent_without_limit_near(question),
                words => lang.agent_without_limit(words),
            }));
        }
        self.card.warnings.extend(warnings);
        Ok(self.card)
    }

    /// Gives it the tools it lists, as far as there are such tools.
    fn equip(&mut self, words: Vec<(String, Spot)>) {
        let is_lead = self.card.member.definition.place == TeamRole::Lead;
        let (mut commands, mut is_any_command) = (None::<Vec<String>>, false);
        self.card.member.definition.inherits_tools = false;
        for (word, spot) in words {
            let (name, inside) = values::call(&word);
            // Empty brackets are an empty list.
            let inside = inside.filter(|inside| *inside != "*");
            if matches!(name, "*" | "all" | "inherit") {
                self.card.member.definition.inherits_tools = true;
                continue;
            }
            let name = aliases::canonical(name);
            match (name, inside) {
                ("run_shell", Some(inside)) => {
                    let command = inside.trim_end_matches(['*', ':', ' ']).to_owned();
                    commands.get_or_insert_default().extend(Some(command).filter(|command| !command.is_empty()));
                }
                ("run_shell", None) => is_any_command = true,
                ("agent" | "task", Some(inside)) => {
                    let whom = inside.split(',').filter_map(|name| slug(name.trim()));
                    self.card.member.definition.may_call.get_or_insert_default().extend(whom);
                }
                ("edit_file" | "write_file", Some(inside)) => {
                    let words = Some((inside.to_owned(), spot)).filter(|(inside, _)| !inside.is_empty());
                    let globs = self.reader.globs_of("tools", words.into_iter().collect());
                    self.card.member.constraints.write_patterns.get_or_insert_default().extend(globs);
                }
                (_, Some("")) => {
                    self.warn(spot, |lang| lang.empty_brackets(quote(&word)));
                    self.leave_out(&word);
                    continue;
                }
                (_, None) => {}
                (_, Some(_)) => self.warn(spot, |lang| lang.brackets_not_kept(quote(&word))),
            }
            self.give(name, &word, spot, is_lead);
        }
        if let Some(commands) = commands.filter(|_| !is_any_command) {
            self.card.member.constraints.allowed_commands.get_or_insert_default().extend(commands);
        }
        if self.card.member.definition.inherits_tools {
            self.card.member.definition.tools.clear();
        }
    }

    fn give(&mut self, name: &str, word: &str, spot: Spot, is_lead: bool) {
        let own = &mut self.card.member.definition;
        match tool_roles::hand(tool_roles::known(), name, is_lead) {
            ToolRole::Has(name) if own.tools.contains(&name) => {}
            ToolRole::Has(name) => own.tools.push(name),
            ToolRole::Anyway => {}
            ToolRole::Source(source) => own.sources.push(source),
            ToolRole::Later => self.leave_out(name),
            ToolRole::Unknown if aliases::is_needless(name) => self.leave_out(word),
            ToolRole::Unknown => {
                self.warn(spot, |lang| {
                    let fault = lang.no_tool_called(quote(word), tool_roles::near(name, is_lead, lang));
                    if is_question(&fault) { lang.fault_left_out_near(fault) } else { lang.fault_left_out(fault) }
                });
                self.leave_out(word);
            }
            ToolRole::Wrong(why) => {
                self.warn(spot, |lang| lang.fault_left_out(why.get(lang)));
                self.leave_out(word);
            }
        }
    }

    fn leave_out(&mut self, tool: &str) {
        if !self.card.left_out.iter().any(|known| known == tool) {
            self.card.left_out.push(tool.to_owned());
        }
    }
}

/// Whether a message ends in a guess at what was meant, so that the next words begin a sentence.
fn is_question(words: &str) -> bool {
    words.ends_with(['?', '？'])
}

/// A name as it is said in a call: small letters of any script, digits, `-` and `_`.
pub fn slug(written: &str) -> Option<String> {
    let mut name = String::new();
    for letter in written.trim().chars().flat_map(char::to_lowercase) {
        match letter {
            _ if letter.is_alphanumeric() || letter == '_' => name.push(letter),
            '-' | ' ' | '\t' | '/' | ':' | '.' if !name.ends_with('-') && !name.is_empty() => name.push('-'),
            _ => {}
        }
        if name.len() > NAME_BYTES_MAX {
            name.pop();
            break;
        }
    }
    let name = name.trim_end_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// The first words of a text, for those who wrote no description.
fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(|line| line.trim_start_matches('#').trim());
    let line = lines.find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or_default();
    let cut = line.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    visible(line.get(..cut).unwrap_or_default())
}
