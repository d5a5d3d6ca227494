//! A folder to work in, one beside it that must not be reached, and calls as the runtime makes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::agent::Constraints;
use max_team_core::chat::Part;
use max_team_core::policy::{Action, Permissions, Visibility};
use max_team_tools::{Handler, Output, Registry, Root, ToolContext, ToolError, run_remote};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Project {
    pub(crate) cx: ToolContext,
    pub(crate) registry: Registry,
    base: TempDir,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self::with(Root::open)
    }

    /// Both ways that files are opened: by the kernel, and part by part as on systems without `openat2`.
    pub(crate) fn both() -> [Self; 2] {
        [Self::with(Root::open), Self::with(Root::portable)]
    }

    fn with(open: fn(PathBuf) -> std::io::Result<Root>) -> Self {
        let base = TempDir::new().unwrap();
        fs::create_dir(base.path().join("in")).unwrap();
        fs::create_dir(base.path().join("out")).unwrap();
        let cx = ToolContext::new(Arc::new(open(base.path().join("in")).unwrap()));
        Self { cx, registry: Registry::builtin(), base }
    }

    /// The same as somebody sees it who is kept from the rest.
    pub(crate) fn within(mut self, constraints: &Constraints) -> Self {
        self.cx.sight = Arc::new(Visibility::from_constraints(constraints));
        self
    }

    /// The same under what settings say.
    pub(crate) fn under(mut self, permissions: &Permissions) -> Self {
        self.cx.sight = Arc::new(Visibility::from_policy(&Constraints::default(), permissions));
        self
    }

    /// A path in the folder that is worked in.
    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        self.base.path().join("in").join(path)
    }

    /// A path in the folder beside it.
    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.base.path().join("out").join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.inside(path)).unwrap()
    }

    pub(crate) fn action(&self, tool: &str, input: &Value) -> Result<Action, ToolError> {
        self.registry.prepare(&self.cx, tool, input).map(|prepared| prepared.action)
    }

    pub(crate) fn run(&self, tool: &str, input: &Value, intent: &Action, resumed: bool) -> Result<Output, ToolError> {
        match self.registry.get(tool) {
            Some(Handler::Remote(remote)) => {
                let call = run_remote(Arc::clone(remote), self.cx.clone(), input.clone(), intent.clone(), resumed);
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(call)
            }
            _ => self.registry.run(&self.cx, tool, input.clone(), intent, resumed),
        }
    }

    /// Prepares and runs a call; the text of its result.
    pub(crate) fn call(&self, tool: &str, input: Value) -> Result<String, ToolError> {
        let intent = self.action(tool, &input)?;
        self.run(tool, &input, &intent, false).map(text)
    }

    /// A call that must fail in a way that the model is told.
    pub(crate) fn refused(&self, tool: &str, input: Value) -> String {
        match self.call(tool, input.clone()) {
            Err(ToolError::Correctable(words) | ToolError::Refused { words, .. }) => words,
            other => panic!("{tool} {input}: {other:?}"),
        }
    }

    /// Names in a folder, our temporary files too.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        names(&self.inside(path))
    }
}

pub(crate) fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn text(output: Output) -> String {
    match output.content.as_slice() {
        [Part::Text { text }, ..] => text.clone(),
        other => panic!("{other:?}"),
    }
}
