//! What every request of an agent carries besides its history: system text, tools, settings.
//!
//! Each is a blob with a content address, so that an intent can name it and a request can be made again from the
//! journal alone, whatever the files say by then. Instruction files are read again at the start of each turn.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::policy::Sight;
use max_team_core::team::{Definition, Settings};
use max_team_core::turn;
use max_team_llm::ToolSpec;
use max_team_tools::command::{Network, Walls};
use max_team_tools::copy::Copy;
use max_team_tools::{Cx, Registry, Root, Shelf, Structured};
use tokio_util::sync::CancellationToken;

use crate::error::RuntimeError;
use crate::shared::{Shared, lock};

#[derive(Debug, Clone)]
pub(crate) struct Frame {
    root: PathBuf,
    surroundings: String,
    definition: Definition,
    settings: Settings,
    pub(super) registry: Arc<Registry>,
    beneath: Arc<Root>,
    /// What its commands read besides the folder.
    reads: Vec<PathBuf>,
    /// Says that the folder is in use.
    occupied: Option<Arc<OwnedFd>>,
    walled: bool,
    pub(super) system: Arc<str>,
    pub(super) tools: Arc<[ToolSpec]>,
    files: Vec<(String, usize)>,
    notes: Vec<String>,
    blobs: [Blob; 3],
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
        definition: Definition,
        settings: Settings,
        schema: Option<serde_json::Value>,
    ) -> Result<Self, RuntimeError> {
        let unusable = |detail: String| RuntimeError::Root { path: root.display().to_string(), detail };
        let mut registry = shared
            .tools
            .subset(definition.tools.iter().map(String::as_str).filter(|tool| !settings.permissions.takes_away(tool)))
            .map_err(|error| RuntimeError::Definition { agent: definition.name.clone(), detail: error.to_string() })?;
        if let Some(schema) = schema {
            let bad = |detail: String| RuntimeError::Schema { detail };
            let tool = Structured::new(schema).map_err(|error| bad(error.to_string()))?;
            registry.add(tool).map_err(|error| bad(error.to_string()))?;
        }
        let beneath = Arc::new(Root::open(root).map_err(|error| unusable(error.to_string()))?);
        let tools: Arc<[ToolSpec]> = registry
            .specs()
            .map(|spec| ToolSpec {
                name: spec.name.clone(),
                description: spec.description.clone(),
                schema: spec.schema.clone(),
            })
            .collect();
        let tools_blob = Blob::new(serde_json::to_vec(&tools).unwrap_or_default());
        let settings_blob = settings_blob(&settings);
        let mut frame = Self {
            root: root.to_path_buf(),
            surroundings: shared.surroundings.clone(),
            definition,
            settings,
            registry: Arc::new(registry),
            beneath,
            reads: Vec::new(),
            occupied: None,
            walled: shared.walled,
            system: Arc::from(""),
            tools,
            files: Vec::new(),
            notes: Vec::new(),
            blobs: [Blob::new(Vec::new()), tools_blob, settings_blob],
        };
        frame.refresh(shared);
        Ok(frame)
    }

    /// Reads the instruction files again.
    pub(crate) fn refresh(&mut self, shared: &Shared) {
        let read = shared.instructions(&self.root);
        let mut system = self.definition.prompt.trim_end().to_owned();
        system.push_str(&format!(
            "\n\n# Surroundings\n\nWorking directory: {}\n{}\n",
            self.root.display(),
            self.surroundings
        ));
        if !read.text.is_empty() {
            system.push_str("\n# Instructions from files\n\n");
            system.push_str(&read.text);
        }
        if *self.system != *system {
            let [instructions, ..] = &mut self.blobs;
            *instructions = Blob::new(system.as_bytes().to_vec());
            self.system = Arc::from(system);
        }
        (self.files, self.notes) = (read.files.clone(), read.notes.clone());
    }

    pub(crate) fn configure(&mut self, settings: &Settings) {
        self.settings = settings.clone();
        let [.., blob] = &mut self.blobs;
        *blob = settings_blob(settings);
    }

    /// The blobs' addresses, for an intent.
    pub(crate) fn address(&self) -> turn::Frame {
        let [instructions, tools, settings] = &self.blobs;
        turn::Frame {
            instructions: instructions.hash,
            tools: tools.hash,
            settings: settings.hash,
            bytes: instructions.bytes.len() + tools.bytes.len(),
        }
    }

    /// The blobs that this process has not put into the journal yet.
    pub(crate) fn unstored(&self, shared: &Shared) -> Vec<Vec<u8>> {
        let mut stored = lock(&shared.stored);
        self.blobs.iter().filter(|blob| stored.insert(blob.hash)).map(|blob| blob.bytes.to_vec()).collect()
    }

    /// The same in a copy, whose commands read what it borrows. As long as it lives, others see that it is in use.
    pub(crate) fn at_work_in(mut self, copy: &Copy) -> Self {
        self.reads = copy.reads();
        self.occupied = copy.occupy().map(Arc::new);
        self
    }

    /// The same for another agent of this definition.
    pub(crate) fn under(&self, settings: Settings) -> Self {
        let mut frame = self.clone();
        if frame.settings != settings {
            frame.configure(&settings);
        }
        frame
    }

    pub(crate) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// What the tools of one agent work with.
    pub(crate) fn context(&self, shared: &Shared, agent: Option<AgentId>, cancel: &CancellationToken) -> Cx {
        let sight = Arc::new(Sight::under(&self.settings.constraints, &self.settings.permissions));
        let network = match self.settings.constraints.allowed_hosts.as_slice() {
            [] => Network::None,
            hosts => Network::Hosts(hosts.to_vec()),
        };
        let walls = Walls {
            on: self.walled,
            sight: Arc::clone(&sight),
            reads: self.reads.clone(),
            network,
            ..Walls::around(self.beneath.path())
        };
        Cx {
            sight,
            walls: Arc::new(walls),
            cancel: cancel.clone(),
            shelf: agent.map(|agent| Arc::new(Shelf::new(shared.home.join("output").join(agent.to_string())))),
            reach: Arc::clone(&shared.reach),
            ..Cx::new(Arc::clone(&self.beneath))
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn files(&self) -> &[(String, usize)] {
        &self.files
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

fn settings_blob(settings: &Settings) -> Blob {
    Blob::new(serde_json::to_vec(settings).unwrap_or_default())
}
