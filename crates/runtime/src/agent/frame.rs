//! The fixed part of an agent's requests: system text, tools, settings.
//!
//! Each is a blob with a content address, so that an intent can name it and a request can be rebuilt from the journal
//! alone, even if the files have changed. Instruction files are read again at the start of each turn.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use max_team_core::agent::{Definition, Settings, TeamRole};
use max_team_core::context::instructions::Instructions;
use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::policy::Visibility;
use max_team_core::turn;
use max_team_llm::{Dialect, Head, ToolSpec};
use max_team_tools::command::CommandSandbox;
use max_team_tools::worktree::Worktree;
use max_team_tools::{AgentStore, Handler, OutputStore, Registry, Root, Spec, Structured, Tool, ToolContext};
use tokio_util::sync::CancellationToken;

use super::{notes, tool_search};
use crate::error::RuntimeError;
use crate::memory::{Memories, MemoryFiles, MemorySection, project_scope};
use crate::shared::{Shared, lock};
use crate::skills::{self, Hand, SKILL, SkillContext, SkillTool, SkillWishes};
use crate::team_tools::{self, Callee, LIST_ONLY};
use crate::template::fill;
use crate::worktree;

/// Prompt for agents with file tools, about folders of their own.
const FOLDERS: &str = include_str!("../../../../prompts/folders.md");

/// Prompt for a lead, about the files of the project.
const OUTLINE: &str = include_str!("../../../../prompts/outline.md");

/// The note for the agent that the user talks to, in a run without a chat.
pub(crate) const UNATTENDED: &str = include_str!("../../../../prompts/unattended.md");
/// The note for the other agents of such a run: their answers go to another agent.
pub(crate) const UNATTENDED_MEMBER: &str = include_str!("../../../../prompts/unattended_member.md");

#[derive(Debug, Clone)]
pub(crate) struct Frame {
    root: PathBuf,
    pub(super) definition: Arc<Definition>,
    settings: Arc<Settings>,
    pub(crate) registry: Arc<Registry>,
    /// The generations of the sources whose tools the registry has.
    pub(super) generations: Vec<u64>,
    /// The agents that its tools can call.
    callees: Arc<[Callee]>,
    beneath: Arc<Root>,
    /// Folders that its commands may read besides the root.
    reads: Vec<PathBuf>,
    /// Marks the worktree as in use.
    occupied: Option<Arc<OwnedFd>>,
    walled: bool,
    system: Arc<str>,
    tools: Arc<[ToolSpec]>,
    /// System text and tools in wire format, shared by agents with the same frame.
    heads: Arc<Mutex<HashMap<Dialect, Arc<Head>>>>,
    /// The instruction files, as they were last read.
    read: Arc<Instructions>,
    /// Its access to skills, if it has any.
    hand: Option<Arc<Hand>>,
    /// Whether it may call other agents.
    delegates: bool,
    blobs: [Blob; 3],
    /// System text and tools for a call that makes a summary; the settings are those above.
    compact: [Blob; 2],
    extras: PromptExtras,
}

/// Parts of the system text that only some agents get.
#[derive(Debug, Clone, Default)]
struct PromptExtras {
    /// The outline of the project's files, for a lead that cannot list them. Taken once, so that requests keep their beginning.
    outline: Arc<str>,
    /// The standing part of the memory in a lead's system text; `None` for other agents.
    standing: Option<MemorySection>,
    /// Tells the agent that the user cannot be asked.
    unattended_note: Option<&'static str>,
}

#[derive(Debug, Clone)]
struct Blob {
    hash: Hash,
    bytes: Arc<[u8]>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self { hash: Hash::of(&bytes), bytes: bytes.into() }
    }
}

impl Frame {
    pub(crate) fn new(
        shared: &Shared,
        root: &Path,
        definition: Arc<Definition>,
        settings: Arc<Settings>,
        schema: Option<serde_json::Value>,
        callees: Vec<Callee>,
        unattended_note: Option<&'static str>,
    ) -> Result<Self, RuntimeError> {
        let unusable = |detail: String| RuntimeError::Root { path: root.display().to_string(), detail };
        let wrong = |error: max_team_tools::RegistryError| RuntimeError::Definition {
            agent: definition.name.clone(),
            detail: error.to_string(),
        };
        let own = || definition.tools.iter().map(String::as_str).filter(|tool| !settings.permissions.denies_tool(tool));
        let mut registry = shared.tools.subset(own().filter(|tool| *tool != SKILL)).map_err(wrong)?;
        let hand = own().any(|tool| tool == SKILL).then(|| {
            // A lead has no tools for files; the agents that it calls have them.
            let hands = if definition.place == TeamRole::Lead { &shared.tools } else { &registry };
            let names = hands.specs().map(|spec| spec.name.clone());
            let tools = names.filter(|tool| !settings.permissions.denies_tool(tool)).collect();
            let (library, shell) =
                (Arc::clone(&shared.skills), registry.get("run_shell").and_then(Handler::local).cloned());
            let reads = definition.place != TeamRole::Lead;
            Arc::new(Hand { library, tools, reads, shell, wish: Mutex::default() })
        });
        if let Some(hand) = &hand {
            registry.add(SkillTool::held(Arc::clone(hand))).map_err(wrong)?;
        }
        if let Some(schema) = schema.or_else(|| definition.work.output.clone()) {
            let bad = |detail: String| RuntimeError::Schema { detail };
            let tool = Structured::new(schema).map_err(|error| bad(error.to_string()))?;
            registry.add(tool).map_err(|error| bad(error.to_string()))?;
        }
        offer(&mut registry, &callees);
        if definition.place != TeamRole::Lead {
            registry.describe_as(&LIST_ONLY);
        }
        tool_search::hide(&mut registry, &definition, shared.services.source_tools_shown);
        let beneath = Arc::new(Root::open(root).map_err(|error| unusable(error.to_string()))?);
        let tools = specs(&registry);
        let tools_blob = Blob::new(serde_json::to_vec(&tools).unwrap_or_default());
        let settings_blob = settings_blob(&settings);
        let mut frame = Self {
            root: root.to_path_buf(),
            definition,
            settings,
            registry: Arc::new(registry),
            generations: Vec::new(),
            callees: callees.into(),
            beneath,
            reads: Vec::new(),
            occupied: None,
            walled: shared.walled,
            system: Arc::from(""),
            tools,
            heads: Arc::default(),
            read: Arc::default(),
            hand,
            delegates: true,
            blobs: [Blob::new(Vec::new()), tools_blob, settings_blob],
            compact: [Blob::new(super::compact::PROMPT.into()), Blob::new(b"[]".to_vec())],
            extras: PromptExtras { unattended_note, ..PromptExtras::default() },
        };
        frame.refresh(shared);
        frame.follow_sources(shared);
        // A whole session may work in a worktree.
        Ok(match worktree::around(shared, root) {
            Some(copy) => frame.at_work_in(&copy),
            None => frame,
        })
    }

    /// Adds the memory to a lead's system text, from its next turn on.
    pub(crate) fn recalling(mut self) -> Self {
        self.extras.standing = Some(MemorySection::default());
        self
    }

    /// Adds the list of files to a lead's system text, unless it can list them itself.
    pub(crate) fn outlining(mut self) -> Self {
        if self.definition.place == TeamRole::Lead && self.registry.get("list_dir").is_none() {
            let sight = Visibility::from_policy(&self.settings.constraints, &self.settings.permissions);
            self.extras.outline = Arc::from(max_team_tools::outline(&self.beneath, &sight));
        }
        self
    }

    /// For an agent at the greatest call depth: skills that other agents carry out are not offered to it.
    pub(crate) fn left_alone(mut self, shared: &Shared) -> Self {
        self.delegates = false;
        if self.hand.is_some() {
            self.refresh(shared);
        }
        self
    }

    /// The standing part of the memory in its system text, if it has one.
    pub(crate) fn standing(&self) -> Option<&MemorySection> {
        self.extras.standing.as_ref()
    }

    /// Reads instruction files, memory and skills again, and puts the system text together.
    pub(crate) fn refresh(&mut self, shared: &Shared) {
        let read = shared.instructions(&self.root);
        let remembers = self.extras.standing.is_some();
        let live = if remembers { MemoryFiles::read(&shared.home, &self.root) } else { MemoryFiles::default() };
        if let Some(standing) = &mut self.extras.standing {
            let memories = Memories::new(&shared.journal);
            // Facts that cannot be read are left out; if the journal is broken, the next commit reports it.
            *standing = memories.standing(&project_scope(&self.root), &live.soul).unwrap_or_default();
        }
        // Texts that change least come first: a provider's cache serves a request up to the first difference.
        let mut system = self.definition.prompt.trim_end().to_owned();
        if AgentStore::TOOLS.iter().any(|tool| self.registry.get(tool).is_some()) {
            system.push_str(&format!("\n\n{}", FOLDERS.trim_end()));
        }
        if !read.text.is_empty() {
            system.push_str(&format!("\n\n# Instructions from files\n\n{}", read.text.trim_end()));
        }
        if let Some(skills) = self.skills(shared) {
            system.push_str(&format!("\n\n{}", skills.trim_end()));
        }
        let standing = self.extras.standing.iter();
        for part in standing.flat_map(|standing| [&standing.personality, &standing.known, &live.files]) {
            if !part.is_empty() {
                system.push_str(&format!("\n\n{}", part.trim_end()));
            }
        }
        if let Some(notes) = notes::told(shared, &self.root, &self.definition) {
            system.push_str(&format!("\n\n{}", notes.trim_end()));
        }
        if !self.extras.outline.is_empty() {
            let outline = fill(OUTLINE, &[("outline", &self.extras.outline)]);
            system.push_str(&format!("\n\n{}", outline.trim_end()));
        }
        system.push_str(&format!(
            "\n\n# Surroundings\n\nWorking directory: {}\n{}\n",
            self.root.display(),
            shared.surroundings
        ));
        system.push_str(self.extras.unattended_note.unwrap_or_default());
        if *self.system != *system {
            let [instructions, ..] = &mut self.blobs;
            *instructions = Blob::new(system.as_bytes().to_vec());
            (self.system, self.heads) = (Arc::from(system), Arc::default());
        }
        self.read = read;
    }

    /// Updates the list of agents in the calling tools. An agent that could call no other has no such tool.
    pub(crate) fn may_call(&mut self, callees: Vec<Callee>) {
        if *self.callees == *callees || self.callees.is_empty() {
            return;
        }
        let mut registry = (*self.registry).clone();
        offer(&mut registry, &callees);
        self.equip(registry);
        self.callees = callees.into();
    }

    /// Removes tools while the agent works.
    pub(crate) fn lose(&mut self, tools: &[String]) {
        if !tools.iter().any(|tool| self.registry.get(tool).is_some()) {
            return;
        }
        let mut registry = (*self.registry).clone();
        tools.iter().for_each(|tool| registry.remove(tool));
        // Nor do agents that it calls inherit it.
        Arc::make_mut(&mut self.definition).tools.retain(|tool| !tools.contains(tool));
        if let Some(hand) = self.hand.take() {
            let left = hand.tools.iter().filter(|tool| !tools.contains(tool)).cloned().collect();
            let (shell, wish) =
                (registry.get("run_shell").and_then(Handler::local).cloned(), Mutex::new(lock(&hand.wish).clone()));
            let (library, reads) = (Arc::clone(&hand.library), hand.reads);
            let hand = Arc::new(Hand { library, tools: left, reads, shell, wish });
            if registry.get(SKILL).is_some() {
                registry.put(SkillTool::held(Arc::clone(&hand)));
            }
            self.hand = Some(hand);
        }
        self.equip(registry);
    }

    /// Replaces the tools.
    pub(super) fn equip(&mut self, registry: Registry) {
        self.tools = specs(&registry);
        let [_, blob, _] = &mut self.blobs;
        *blob = Blob::new(serde_json::to_vec(&self.tools).unwrap_or_default());
        (self.registry, self.heads) = (Arc::new(registry), Arc::default());
    }

    /// The beginning of every request.
    pub(super) fn head(&self, dialect: Dialect) -> Arc<Head> {
        let make = || Arc::new(Head::new(dialect, &self.system, &self.tools));
        Arc::clone(lock(&self.heads).entry(dialect).or_insert_with(make))
    }

    /// The text about skills: those that its definition names, and those that it can load.
    fn skills(&self, shared: &Shared) -> Option<String> {
        let named = &self.definition.skills;
        if named.is_empty() && self.hand.is_none() {
            return None;
        }
        let catalogue = shared.skills.of(&self.root);
        let mut text = skills::preload(named, &catalogue, &SkillContext { root: &self.root, session: "" });
        if let Some(hand) = &self.hand {
            let window = self.settings.model.context_tokens;
            text.push_str(&catalogue.listing(window, &hand.tools, self.delegates));
        }
        Some(text).filter(|text| !text.is_empty())
    }

    /// Sets the user's wishes about skills.
    pub(crate) fn wish(&self, wish: SkillWishes) {
        if let Some(hand) = &self.hand {
            *lock(&hand.wish) = wish;
        }
    }

    /// Adds to the user's earlier wishes.
    pub(crate) fn wish_also(&self, wish: SkillWishes) {
        if let Some(hand) = &self.hand {
            let mut known = lock(&hand.wish);
            // The latest wish counts.
            known.none = wish.none || (known.none && wish.names.is_empty());
            known.names.extend(wish.names);
        }
    }

    /// Its access to skills.
    pub(crate) fn hand(&self) -> Option<&Arc<Hand>> {
        self.hand.as_ref()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn configure(&mut self, settings: &Arc<Settings>) {
        self.settings = Arc::clone(settings);
        let [.., blob] = &mut self.blobs;
        *blob = settings_blob(settings);
    }

    /// The blobs' addresses, for an intent.
    pub(crate) fn address(&self) -> turn::PromptRef {
        let [instructions, tools, settings] = &self.blobs;
        turn::PromptRef {
            instructions: instructions.hash,
            tools: tools.hash,
            settings: settings.hash,
            bytes: instructions.bytes.len() + tools.bytes.len(),
        }
    }

    /// Like `address`, for a call that makes a summary.
    pub(crate) fn compact_address(&self) -> turn::PromptRef {
        let ([instructions, tools], [.., settings]) = (&self.compact, &self.blobs);
        turn::PromptRef {
            instructions: instructions.hash,
            tools: tools.hash,
            settings: settings.hash,
            bytes: instructions.bytes.len(),
        }
    }

    /// The system text and the tools' schemas, of a call for a summary or of any other.
    pub(crate) fn told(&self, sums_up: bool) -> (String, Vec<u8>) {
        let ([instructions, tools, _], [summing, nothing]) = (&self.blobs, &self.compact);
        let (instructions, tools) = if sums_up { (summing, nothing) } else { (instructions, tools) };
        (String::from_utf8_lossy(&instructions.bytes).into_owned(), tools.bytes.to_vec())
    }

    /// The blobs that this process has not stored yet.
    pub(crate) fn unstored(&self, shared: &Shared) -> Vec<Vec<u8>> {
        let stored = &mut lock(&shared.stored).blobs;
        let all = self.blobs.iter().chain(&self.compact);
        all.filter(|blob| stored.insert(blob.hash)).map(|blob| blob.bytes.to_vec()).collect()
    }

    /// Moves the frame into a worktree, whose commands may read the objects that it borrows. While the frame lives,
    /// the worktree is marked as in use.
    pub(crate) fn at_work_in(mut self, copy: &Worktree) -> Self {
        self.reads = copy.reads();
        self.occupied = copy.occupy().map(Arc::new);
        self
    }

    /// The worktree is no longer in use: it can be merged and removed.
    pub(crate) fn vacate(&mut self) {
        self.occupied = None;
    }

    /// A copy for another agent with this definition.
    pub(crate) fn under(&self, settings: &Arc<Settings>) -> Self {
        let mut frame = self.clone();
        if frame.settings != *settings {
            frame.configure(settings);
        }
        frame
    }

    pub(crate) fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// The root folder of its tools.
    pub(super) fn beneath(&self) -> &Arc<Root> {
        &self.beneath
    }

    /// The context of an agent's tools.
    pub(crate) fn context(&self, shared: &Shared, agent: Option<AgentId>, cancel: &CancellationToken) -> ToolContext {
        let sight = Visibility::from_policy(&self.settings.constraints, &self.settings.permissions);
        let sight = Arc::new(sight.without(&shared.closed));
        let read_only = self.settings.constraints.read_only;
        let isolation = CommandSandbox {
            // Read-only agents run in a sandbox even if the user has turned it off.
            on: self.walled || read_only,
            read_only,
            sight: Arc::clone(&sight),
            reads: self.reads.clone(),
            ..CommandSandbox::around(self.beneath.path())
        };
        // An agent that only reads stays inside, and so does one in a worktree, which must not reach the project itself.
        let leaves_root = !self.walled && !read_only && self.settings.permissions.copy.is_empty();
        ToolContext {
            leaves_root,
            sight,
            sandbox: Arc::new(isolation),
            cancel: cancel.clone(),
            outputs: agent.map(|agent| Arc::new(OutputStore::of(&shared.home, agent))),
            services: Arc::clone(&shared.services),
            remote: Arc::clone(&shared.remote),
            browsers: Arc::clone(&shared.browsers),
            ..ToolContext::new(Arc::clone(&self.beneath))
        }
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    pub(crate) fn files(&self) -> &[(String, usize)] {
        &self.read.files
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.read.notes
    }
}

/// Adds the list of agents to the calling tools; without agents the tools are removed.
fn offer(registry: &mut Registry, callees: &[Callee]) {
    for tool in team_tools::calling(callees) {
        let name = tool.spec().name.clone();
        if callees.is_empty() {
            registry.remove(&name);
        } else if registry.get(&name).is_some() {
            registry.put(tool);
        }
    }
}

fn specs(registry: &Registry) -> Arc<[ToolSpec]> {
    let spec = |spec: &Spec| ToolSpec {
        name: spec.name.clone(),
        description: spec.description.clone(),
        schema: spec.schema.clone(),
    };
    registry.offered().map(spec).collect()
}

fn settings_blob(settings: &Settings) -> Blob {
    Blob::new(serde_json::to_vec(settings).unwrap_or_default())
}
