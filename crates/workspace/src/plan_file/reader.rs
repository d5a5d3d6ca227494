//! Parses a plan file into a draft.
//!
//! Reading goes on after a mistake, so that one run reports all mistakes with their places, together with what is
//! wrong with the plan as a plan. A wrong type, duration or amount is an error, an unknown key only a warning. Scalars
//! are taken as written, so an id of `007` keeps its zeros.

use max_team_core::agent::Isolation;
use max_team_core::packages::PackageManager;
use max_team_core::plan::{Budget, Draft, Gate, TaskDraft};
use max_team_core::text::{code_points, hidden_lines};

use super::{ParsedPlan, place};
use crate::config::yaml::{self, Name, Node, Spot, Value};
use crate::config::{ConfigError, Problem, Shape, Switch, duration, found, quote};
use crate::exit::{CliError, Exit};
use crate::i18n::{Lang, Translated};

/// Bytes of one plan file.
const BYTES_MAX: usize = 16 << 20;
/// Values in one plan file: the largest plan, with every key of every task and all dependencies.
const NODES_MAX: usize = 1_000_000;
/// Mistakes, and warnings, that are told.
const TOLD_MAX: usize = 20;
/// What would do in place of a value.
type Wanted = fn(Lang) -> &'static str;

/// Reads a plan; `name` is how messages call the file.
pub fn read(text: &str, name: &str) -> Result<ParsedPlan, CliError> {
    if text.len() > BYTES_MAX {
        let words = |lang: Lang| lang.plan_file_too_large(name, text.len());
        return Err(CliError::said(Exit::Config, words));
    }
    let root = yaml::parse_up_to(text, NODES_MAX).map_err(|fault| {
        let message = Translated::new(|lang| lang.yaml_fault(&fault.kind));
        CliError::from(ConfigError::from(Problem::Syntax { place: place(name, fault.spot), message }))
    })?;
    let mut reader = PlanReader {
        name,
        problems: Vec::new(),
        warnings: Vec::new(),
        warnings_dropped: 0,
        spots: Vec::new(),
        broken: Vec::new(),
        told: 0,
    };
    let draft = reader.plan(&root);
    if reader.warnings_dropped > 0 {
        reader.warnings.push(Translated::new(|lang| lang.more_warnings(reader.warnings_dropped)));
    }
    for (line, letters) in hidden_lines(text) {
        let letters = code_points(&letters);
        let place = format!("{name}:{line}");
        reader.warnings.push(Translated::at(&place, |lang| lang.invisible_letters(&letters)));
    }
    let PlanReader { problems, warnings, spots, broken, .. } = reader;
    Ok(ParsedPlan { draft, warnings, name: name.to_owned(), begins: root.spot, spots, problems, broken })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanKey {
    Goal,
    Budget,
    MaxParallel,
    Tasks,
    Gates,
}

const KEYS: &[(&str, PlanKey)] = &[
    ("goal", PlanKey::Goal),
    ("budget", PlanKey::Budget),
    ("max_parallel", PlanKey::MaxParallel),
    ("tasks", PlanKey::Tasks),
    ("gates", PlanKey::Gates),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskField {
    Id,
    Title,
    Do,
    Agent,
    Needs,
    When,
    Owns,
    Outputs,
    Verify,
    Installs,
    Retry,
    Timeout,
    TimeoutMs,
    Budget,
    Model,
    Skip,
    Isolation,
}

/// Our names first, then what others call the same things.
const FIELDS: &[(&str, TaskField)] = &[
    ("id", TaskField::Id),
    ("title", TaskField::Title),
    ("do", TaskField::Do),
    ("agent", TaskField::Agent),
    ("needs", TaskField::Needs),
    ("when", TaskField::When),
    ("owns", TaskField::Owns),
    ("outputs", TaskField::Outputs),
    ("verify", TaskField::Verify),
    ("installs", TaskField::Installs),
    ("retry", TaskField::Retry),
    ("timeout", TaskField::Timeout),
    ("budget", TaskField::Budget),
    ("model", TaskField::Model),
    ("skip", TaskField::Skip),
    ("isolation", TaskField::Isolation),
    ("timeout_ms", TaskField::TimeoutMs),
    ("description", TaskField::Do),
    ("prompt", TaskField::Do),
    ("agent_name", TaskField::Agent),
    ("owner", TaskField::Agent),
    ("depends_on", TaskField::Needs),
    ("blocked_by", TaskField::Needs),
    ("max_retries", TaskField::Retry),
];

/// What a run has written into its own copy of the plan; a new run begins without it.
const STATE: &[&str] =
    &["status", "result", "artifacts", "retry_count", "created_at", "updated_at", "started_at", "finished_at"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum BudgetField {
    Usd,
    Nano,
    Tokens,
    Wall,
    WallMs,
}

const BOUNDS: &[(&str, BudgetField)] = &[
    ("usd", BudgetField::Usd),
    ("tokens", BudgetField::Tokens),
    ("wall", BudgetField::Wall),
    ("nano", BudgetField::Nano),
    ("wall_ms", BudgetField::WallMs),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum GateField {
    Before,
    Ask,
}

const STANDS: &[(&str, GateField)] = &[("before", GateField::Before), ("ask", GateField::Ask)];

struct PlanReader<'a> {
    name: &'a str,
    problems: Vec<(u64, Problem)>,
    warnings: Vec<Translated>,
    warnings_dropped: usize,
    spots: Vec<Spot>,
    broken: Vec<usize>,
    /// Problems so far, also those that are too many to tell.
    told: usize,
}

impl PlanReader<'_> {
    fn plan(&mut self, root: &Node) -> Draft {
        let mut draft = Draft::default();
        if let Value::List(tasks) = &root.value {
            draft.tasks = self.tasks(tasks);
            return draft;
        }
        for (key, name, node) in self.map(root, Lang::key_plan, Lang::wanted_plan, KEYS) {
            match key {
                PlanKey::Goal => self.set(&mut draft.goal, name, node, Lang::wanted_words, word),
                PlanKey::Budget => draft.budget = self.budget(name, node),
                PlanKey::MaxParallel => {
                    self.set(&mut draft.max_parallel, name, node, Lang::wanted_whole, |node| count(node).map(Some))
                }
                PlanKey::Tasks => match &node.value {
                    Value::List(tasks) => draft.tasks = self.tasks(tasks),
                    _ => self.mistake(name, node, Lang::wanted_tasks),
                },
                PlanKey::Gates => match &node.value {
                    Value::List(gates) => draft.gates = gates.iter().map(|gate| self.gate(gate)).collect(),
                    _ => self.mistake(name, node, Lang::wanted_gates),
                },
            }
        }
        draft
    }

    fn tasks(&mut self, tasks: &[Node]) -> Vec<TaskDraft> {
        let mut read = Vec::new();
        for (at, node) in tasks.iter().enumerate() {
            let wrong = self.told;
            read.push(self.task(node));
            self.spots.push(node.spot);
            if self.told > wrong {
                self.broken.push(at);
            }
        }
        read
    }

    fn task(&mut self, node: &Node) -> TaskDraft {
        let mut task = TaskDraft::default();
        for (field, name, node) in self.map(node, Lang::key_task, Lang::wanted_task, FIELDS) {
            match field {
                TaskField::Id => self.set(&mut task.id, name, node, Lang::wanted_word, word),
                TaskField::Title => self.set(&mut task.title, name, node, Lang::wanted_words, word),
                TaskField::Do => self.set(&mut task.description, name, node, Lang::wanted_words, word),
                TaskField::Agent => self.set(&mut task.agent, name, node, Lang::wanted_member, word),
                TaskField::Needs => self.set(&mut task.needs, name, node, Lang::wanted_ids, words),
                TaskField::When => {
                    self.set(&mut task.when, name, node, Lang::wanted_when, |node| word(node).map(Some));
                }
                TaskField::Owns => {
                    self.set(&mut task.owns, name, node, Lang::wanted_paths, |node| words(node).map(Some))
                }
                TaskField::Outputs => self.set(&mut task.outputs, name, node, Lang::wanted_paths, words),
                TaskField::Verify => self.set(&mut task.verify, name, node, Lang::wanted_commands, words),
                TaskField::Installs => self.set(&mut task.installs, name, node, Lang::wanted_managers, managers),
                TaskField::Retry => self.set(&mut task.retry, name, node, Lang::wanted_whole, count),
                TaskField::Timeout => {
                    self.set(&mut task.timeout_ms, name, node, Lang::wanted_task_time, |node| time(node).map(Some));
                }
                TaskField::TimeoutMs => {
                    self.set(&mut task.timeout_ms, name, node, Lang::wanted_whole, |node| count(node).map(Some));
                }
                TaskField::Budget => task.budget = self.budget(name, node),
                TaskField::Model => {
                    self.set(&mut task.model, name, node, Lang::wanted_model, |node| word(node).map(Some));
                }
                TaskField::Skip => self.set(&mut task.skip, name, node, Lang::wanted_switch, Switch::read),
                TaskField::Isolation => self.set(&mut task.isolation, name, node, Lang::wanted_isolation, isolation),
            }
        }
        task
    }

    fn budget(&mut self, name: &Name, node: &Node) -> Budget {
        let mut budget = Budget::default();
        // `budget: 2.00` can only mean money.
        if let Some(nano) = usd(node) {
            budget.nano = Some(nano);
            return budget;
        }
        for (bound, name, node) in self.map(node, |_| &name.text, Lang::wanted_budget, BOUNDS) {
            let (slot, wanted): (_, Wanted) = match bound {
                BudgetField::Usd => (&mut budget.nano, Lang::wanted_usd),
                BudgetField::Nano => (&mut budget.nano, Lang::wanted_whole),
                BudgetField::Tokens => (&mut budget.tokens, Lang::wanted_whole),
                BudgetField::Wall => (&mut budget.wall_ms, Lang::wanted_task_time),
                BudgetField::WallMs => (&mut budget.wall_ms, Lang::wanted_whole),
            };
            self.set(slot, name, node, wanted, |node| {
                let value = match bound {
                    BudgetField::Usd => usd(node),
                    BudgetField::Wall => time(node),
                    BudgetField::Nano | BudgetField::Tokens | BudgetField::WallMs => count(node),
                };
                value.map(Some)
            });
        }
        budget
    }

    fn gate(&mut self, node: &Node) -> Gate {
        let mut gate = Gate { before: String::new(), ask: "owner".to_owned() };
        if let Some(before) = word(node) {
            gate.before = before;
            return gate;
        }
        for (stand, name, node) in self.map(node, Lang::key_gate, Lang::wanted_gate, STANDS) {
            let slot = match stand {
                GateField::Before => &mut gate.before,
                GateField::Ask => &mut gate.ask,
            };
            self.set(slot, name, node, Lang::wanted_word, word);
        }
        gate
    }

    /// The known entries of a map that say something.
    fn map<'n, 'w, K: Copy + PartialEq>(
        &mut self,
        node: &'n Node,
        what: impl Fn(Lang) -> &'w str,
        wanted: Wanted,
        known: &[(&'static str, K)],
    ) -> Vec<(K, &'n Name, &'n Node)> {
        let mut found: Vec<(K, &Name, &Node)> = Vec::new();
        let Value::Map(entries) = &node.value else {
            self.value(node.spot, Translated::new(|lang| what(lang).to_owned()), wanted, node);
            return found;
        };
        for (name, node) in entries {
            let Some((_, key)) = known.iter().find(|(known, _)| *known == name.text) else {
                if STATE.contains(&name.text.as_str()) {
                    continue;
                }
                let known = known.iter().map(|(name, _)| *name);
                self.warn(name.spot, |lang| lang.unknown_key(quote(&name.text), lang.near(&name.text, known.clone())));
                continue;
            };
            if let Some((_, first, _)) = found.iter().find(|(found, ..)| found == key) {
                let first = &first.text;
                self.syntax(name.spot, |lang| lang.said_again(&name.text, first));
            }
            if !node.is_null() {
                found.push((*key, name, node));
            }
        }
        found
    }

    fn set<T>(&mut self, slot: &mut T, name: &Name, node: &Node, wanted: Wanted, read: impl Fn(&Node) -> Option<T>) {
        match read(node) {
            Some(value) => *slot = value,
            None => self.mistake(name, node, wanted),
        }
    }

    fn mistake(&mut self, name: &Name, node: &Node, wanted: Wanted) {
        self.value(node.spot, name.text.as_str().into(), wanted, node);
    }

    fn value(&mut self, spot: Spot, key: Translated, wanted: Wanted, node: &Node) {
        let wanted = Translated::new(|lang| wanted(lang).to_owned());
        let place = self.place(spot);
        self.problem(spot.line, Problem::Value { place, key, wanted, found: found(node) });
    }

    fn syntax(&mut self, spot: Spot, words: impl Fn(Lang) -> String) {
        let (place, message) = (self.place(spot), Translated::new(words));
        self.problem(spot.line, Problem::Syntax { place, message });
    }

    fn problem(&mut self, line: u64, problem: Problem) {
        self.told += 1;
        if self.problems.len() < TOLD_MAX {
            self.problems.push((line, problem));
        }
    }

    fn warn(&mut self, spot: Spot, words: impl Fn(Lang) -> String) {
        if self.warnings.len() < TOLD_MAX {
            let place = self.place(spot);
            self.warnings.push(Translated::at(&place, words));
        } else {
            self.warnings_dropped += 1;
        }
    }

    fn place(&self, spot: Spot) -> String {
        place(self.name, spot)
    }
}

/// A scalar's text as it is written, without YAML's typing.
fn word(node: &Node) -> Option<String> {
    match &node.value {
        Value::Scalar(scalar) if !scalar.json.is_null() => Some(scalar.text.clone()),
        _ => None,
    }
}

/// A list of words; one word is a list too.
fn words(node: &Node) -> Option<Vec<String>> {
    match &node.value {
        Value::List(items) => items.iter().map(word).collect(),
        _ => word(node).map(|word| vec![word]),
    }
}

fn managers(node: &Node) -> Option<Vec<PackageManager>> {
    words(node)?.iter().map(|name| PackageManager::from_name(name)).collect()
}

fn count<T: std::str::FromStr>(node: &Node) -> Option<T> {
    node.text()?.parse().ok()
}

fn isolation(node: &Node) -> Option<Isolation> {
    match node.text()? {
        "worktree" => Some(Isolation::Worktree),
        "none" => Some(Isolation::None),
        _ => None,
    }
}

fn time(node: &Node) -> Option<u64> {
    let time = duration(node.text()?)?;
    // A fraction of a second goes through binary fractions; what is meant is the nearest millisecond.
    u64::try_from(time.checked_add(std::time::Duration::from_micros(500))?.as_millis()).ok()
}

/// Dollars to nano-dollars, to the last digit.
fn usd(node: &Node) -> Option<u64> {
    let text = node.text()?;
    let text = text.strip_prefix('$').unwrap_or(text);
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 9 || !digits(whole) || !digits(part) {
        return None;
    }
    format!("{whole}{part:0<9}").parse().ok()
}
