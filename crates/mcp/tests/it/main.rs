//! Servers as an agent sees them: real ones from npm, and one that misbehaves on purpose.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "functions that tests share are tests, too"
)]

max_team_tools::command::child_before_main!();

mod fake_http;
mod hostile;
mod hostile_http;
mod logins;
mod modern;
mod planted;
mod real;
mod real_http;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::mcp::McpServer;
use max_team_core::mention::{self, ServerMention};
use max_team_core::policy::{Action, ActionKind};
use max_team_mcp::{Launch, Server, ServerEntry, Servers};
use max_team_tools::{Handler, Output, RemoteTool, Root, ToolContext, ToolError, ToolSource, ToolSources, run_remote};
use serde_json::Value;
use tempfile::TempDir;

/// A project with the servers of one entry.
struct World {
    folder: TempDir,
    servers: Servers,
}

impl World {
    fn new(server: McpServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(&root).unwrap();
        let world = Self { servers: Self::servers(&folder, &root), folder };
        world.servers.set(vec![ServerEntry { source: server.name.clone(), server, pin: None }]);
        world
    }

    fn servers(folder: &TempDir, root: &Path) -> Servers {
        let home = folder.path().canonicalize().unwrap().join("home");
        Servers::new(Launch { root: root.to_owned(), home, user: user(), sandboxed: true }, None)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    fn server(&self) -> Arc<Server> {
        self.servers.list().remove(0).1
    }

    fn source(&self) -> Arc<dyn ToolSource> {
        self.servers.source(&self.server().config().name).unwrap()
    }

    /// The tools after the preparation that an agent's first request waits for.
    async fn tools(&self) -> Vec<Arc<dyn RemoteTool>> {
        if let Some(preparation) = self.source().prepare() {
            preparation.await;
        }
        let remote = |tool| match tool {
            Handler::Remote(tool) => tool,
            other => panic!("{other:?}"),
        };
        self.source().tools().into_iter().map(remote).collect()
    }

    async fn call(&self, tool: &str, args: Value) -> Result<Output, ToolError> {
        let tools = self.tools().await;
        let found = tools.iter().find(|own| own.spec().name.ends_with(tool));
        self.call_on(found.unwrap_or_else(|| panic!("{tool} is not among {tools:?}")), args).await
    }

    /// The call of a tool that asked something, with the answer.
    async fn resume(&self, tool: &str, question: Action) -> Result<Output, ToolError> {
        let tools = self.tools().await;
        let found = tools.into_iter().find(|own| own.spec().name.ends_with(tool)).unwrap();
        let cx = ToolContext::new(Arc::new(Root::open(self.root()).unwrap()));
        run_remote(found, cx, Value::Null, question, false).await
    }

    /// What a message that mentions a prompt or a resource is read as.
    async fn read(&self, message: &str) -> String {
        let resource = || mention::find(message).iter().find_map(ServerMention::resource);
        let mention = ServerMention::prompt(message).or_else(resource).unwrap();
        let parts = self.source().read(&mention).unwrap().await;
        text(&Output { content: parts, is_error: false })
    }

    async fn call_on(&self, tool: &Arc<dyn RemoteTool>, args: Value) -> Result<Output, ToolError> {
        let cx = ToolContext::new(Arc::new(Root::open(self.root()).unwrap()));
        let intent = tool.action(&cx, &args).unwrap();
        assert!(matches!(intent.kind, ActionKind::Query | ActionKind::Remote));
        run_remote(Arc::clone(tool), cx, args, intent, false).await
    }
}

fn text(output: &Output) -> String {
    let part = |part: &max_team_core::chat::Part| match part {
        max_team_core::chat::Part::Text { text } => text.clone(),
        other => format!("{other:?}"),
    };
    output.content.iter().map(part).collect::<Vec<_>>().join("\n")
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

/// The home folder of the user who runs the tests.
fn user() -> Option<PathBuf> {
    std::env::vars_os().find(|(name, _)| name == "HOME").map(|(_, home)| home.into())
}
