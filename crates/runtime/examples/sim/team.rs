//! Who plays the stories, and the one tool whose effect cannot be looked at afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use max_team_core::agent::{CachePolicy, Constraints, Definition, Isolation, Model, Settings, TeamRole};
use max_team_core::delegation::tool_filter::{
    AGENT, CHECK_INBOX, GENERAL, SEND_MESSAGE, SPAWN, SPAWN_TEAMMATE, SPAWNED, TASK,
};
use max_team_core::id::WorkerId;
use max_team_core::message::{Principal, Role};
use max_team_core::plan::event::ApprovalMode;
use max_team_core::policy::{Action, ActionKind, Repeatability};
use max_team_core::task_list;
use max_team_journal::{Journal, WorkerInfo};
use max_team_llm::{Replay, Router};
use max_team_runtime::skills::Places;
use max_team_runtime::{AgentSpec, DISPATCH_TASK, OpenOptions, Options, Runtime, Team, TeamHandle, Which};
use max_team_tools::{Output, Registry, Services, Spec, Tool, ToolContext, ToolError};
use serde_json::{Value, json};

/// What was paid, in order: an effect that leaves no trace anywhere else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    pub(crate) fn write(&self, line: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.into());
    }

    /// How often each line stands there.
    pub(crate) fn count(&self) -> BTreeMap<String, usize> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().fold(BTreeMap::new(), |mut count, line| {
            *count.entry(line.clone()).or_default() += 1;
            count
        })
    }
}

#[derive(Debug)]
struct Pay(Spec, Ledger);

impl Tool for Pay {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn action(&self, _: &ToolContext, args: &Value) -> Result<Action, ToolError> {
        Ok(Action { kind: ActionKind::Execute, ..Action::read(format!("pay {}", args["what"])) })
    }

    fn call(&self, _: &ToolContext, args: Value, _: &Action, _: bool) -> Result<Output, ToolError> {
        self.1.write(format!("pay {}", args["what"].as_str().unwrap_or_default()));
        Ok(Output::text("Paid."))
    }
}

fn tools(ledger: &Ledger) -> Registry {
    let mut tools = Registry::builtin();
    let spec = Spec {
        name: "pay".into(),
        description: "Pays.".into(),
        schema: json!({ "type": "object", "properties": { "what": { "type": "string" } }, "required": ["what"] }),
        class: Repeatability::Opaque,
        null_is_absent: true,
    };
    tools.put(Pay(spec, ledger.clone()));
    tools
}

/// One process.
pub(crate) fn runtime(journal: &Journal, root: &Path, worker: WorkerId, replay: Replay, ledger: &Ledger) -> TeamHandle {
    let info = WorkerInfo {
        id: worker,
        pid: std::process::id(),
        host: "here".into(),
        started_at_ms: 0,
        what: "a life".into(),
    };
    Runtime::build(Options {
        storage: journal.clone().into(),
        process: info,
        router: Router::replay(replay),
        tools: tools(ledger),
        sources: Arc::new(Vec::new()),
        services: Services::default(),
        home: root.join("home"),
        others: Vec::new(),
        surroundings: "Platform: a simulation".into(),
        walled: true,
        audit: None,
        skills: Places::default(),
        remember: None,
    })
    .unwrap()
}

pub(crate) fn owner() -> Principal {
    Principal { door: "sim".into(), user: "ada".into(), role: Role::Owner }
}

fn teammate(name: &str, tools: &[&str]) -> AgentSpec {
    let model = Model {
        provider: "recording".into(),
        name: "m".into(),
        context_tokens: 100_000,
        max_tokens: 1_000,
        thinking_tokens: 0,
        price: None,
    };
    let tools = tools.iter().copied().chain(task_list::TOOLS).map(str::to_owned).collect();
    let definition = Definition {
        name: name.into(),
        role: "member".into(),
        prompt: format!("You are {name}."),
        tools,
        ..Definition::default()
    };
    AgentSpec { definition: definition.into(), settings: Settings { retries_max: 0, ..Settings::new(model) } }
}

pub(crate) fn open(which: Which, approve: ApprovalMode) -> OpenOptions {
    const CHANGES: [&str; 4] = ["read_file", "write_file", "edit_file", "pay"];
    let lead = ["submit_plan", DISPATCH_TASK, TASK, AGENT, SEND_MESSAGE, SPAWN_TEAMMATE, CHECK_INBOX, SPAWN, SPAWNED];
    let mut lead = teammate("max", &lead);
    Arc::make_mut(&mut lead.definition).place = TeamRole::Lead;
    let mut explore = teammate("explore", &["read_file"]);
    Arc::make_mut(&mut explore.definition).builtin = true;
    explore.settings = explore.settings.limited_by(&Constraints { read_only: true, ..Constraints::default() });
    let mut general = teammate(GENERAL, &CHANGES);
    Arc::make_mut(&mut general.definition).builtin = true;
    let mut tides = teammate("tides", &CHANGES);
    Arc::make_mut(&mut tides.definition).place = TeamRole::Expert;
    Arc::make_mut(&mut tides.definition).cache = Some(CachePolicy { ttl_s: 3_600, keys: vec!["port".into()] });
    let mut eve = teammate("eve", &CHANGES);
    Arc::make_mut(&mut eve.definition).isolation = Isolation::Worktree;
    let team = Team {
        members: vec![teammate("ada", &["read_file"]), teammate("leo", &CHANGES), teammate("ray", &CHANGES), eve],
        experts: vec![explore, general, tides],
        approve,
        max_parallel: 6,
        models: BTreeMap::new(),
        call_depth: 1,
        coordinator: false,
        wished: BTreeMap::new(),
    };
    OpenOptions::new(which, Arc::unwrap_or_clone(lead.definition), lead.settings, Some(team))
}
