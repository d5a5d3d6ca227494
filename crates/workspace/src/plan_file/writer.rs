//! A draft into a plan file's text, in the order in which a person would tell it.
//!
//! What is empty or usual is left out, so a small plan is a small file and a changed plan is a small difference.

use max_team_core::ledger::NANO;
use max_team_core::plan::{Budget, Draft, TaskDraft};

use super::scalar::{self, LINE_MAX};

/// The whole file.
pub fn write(draft: &Draft) -> String {
    let mut page = PlanWriter::default();
    page.text("goal", &draft.goal);
    page.budget(&draft.budget);
    if let Some(count) = draft.max_parallel {
        page.row("max_parallel", &count.to_string());
    }
    page.space();
    if draft.tasks.is_empty() {
        page.row("tasks", "[]");
    } else {
        page.row("tasks", "");
    }
    page.indent = 4;
    for task in &draft.tasks {
        page.task(task);
        page.space();
    }
    page.indent = 0;
    if !draft.gates.is_empty() {
        page.row("gates", "");
        for gate in &draft.gates {
            let (before, ask) = (scalar::line(&gate.before, true), scalar::line(&gate.ask, true));
            page.lines.push(format!("  - {{before: {before}, ask: {ask}}}"));
        }
    }
    page.finish()
}

#[derive(Default)]
struct PlanWriter {
    lines: Vec<String>,
    indent: usize,
    /// The next row begins an item of a list.
    item: bool,
}

impl PlanWriter {
    fn task(&mut self, task: &TaskDraft) {
        self.item = true;
        self.row("id", &scalar::line(&task.id, false));
        self.word("agent", &task.agent);
        self.text("title", &task.title);
        self.text("do", &task.description);
        self.list("needs", &task.needs);
        if let Some(when) = &task.when {
            self.row("when", &scalar::line(when, false));
        }
        match &task.owns {
            Some(owns) if owns.is_empty() => self.row("owns", "[]"),
            owns => self.list("owns", owns.as_deref().unwrap_or_default()),
        }
        self.list("outputs", &task.outputs);
        self.list("verify", &task.verify);
        self.list("installs", &task.installs.iter().map(|manager| manager.name().to_owned()).collect::<Vec<_>>());
        if task.retry != TaskDraft::default().retry {
            self.row("retry", &task.retry.to_string());
        }
        if let Some(ms) = task.timeout_ms {
            self.row("timeout", &time(ms));
        }
        self.budget(&task.budget);
        if let Some(model) = &task.model {
            self.row("model", &scalar::line(model, false));
        }
        if task.skip {
            self.row("skip", "true");
        }
        if !task.isolation.is_none() {
            self.row("isolation", "worktree");
        }
    }

    fn word(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.row(key, &scalar::line(text, false));
        }
    }

    fn text(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.row(key, &scalar::block(text, self.indent));
        }
    }

    fn list(&mut self, key: &str, words: &[String]) {
        if words.is_empty() {
            return;
        }
        let flow: Vec<String> = words.iter().map(|word| scalar::line(word, true)).collect();
        let flow = format!("[{}]", flow.join(", "));
        if self.indent + key.len() + 2 + flow.chars().count() <= LINE_MAX {
            return self.row(key, &flow);
        }
        self.row(key, "");
        let margin = " ".repeat(self.indent);
        self.lines.extend(words.iter().map(|word| format!("{margin}  - {}", scalar::line(word, false))));
    }

    fn budget(&mut self, budget: &Budget) {
        let usd = budget.nano.map(|nano| format!("usd: {}", usd(nano)));
        let tokens = budget.tokens.map(|tokens| format!("tokens: {tokens}"));
        let wall = budget.wall_ms.map(|ms| format!("wall: {}", time(ms)));
        let bounds: Vec<String> = [usd, tokens, wall].into_iter().flatten().collect();
        if !bounds.is_empty() {
            self.row("budget", &format!("{{{}}}", bounds.join(", ")));
        }
    }

    fn row(&mut self, key: &str, value: &str) {
        let dash = if std::mem::take(&mut self.item) { "- " } else { "" };
        let margin = " ".repeat(self.indent - dash.len());
        let gap = if value.is_empty() { "" } else { " " };
        self.lines.push(format!("{margin}{dash}{key}:{gap}{value}"));
    }

    /// An empty line, but not at the beginning and never two.
    fn space(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    fn finish(mut self) -> String {
        while self.lines.last().is_some_and(String::is_empty) {
            self.lines.pop();
        }
        self.lines.push(String::new());
        self.lines.join("\n")
    }
}

/// Dollars with cents, and as many digits more as it takes.
fn usd(nano: u64) -> String {
    let part = format!("{:09}", nano % NANO);
    let part = part.trim_end_matches('0');
    format!("{}.{part:0<2}", nano / NANO)
}

/// `40m`, `1h30m`, `90s` only where minutes would not be shorter, `1500ms` where seconds do not do.
fn time(ms: u64) -> String {
    if !ms.is_multiple_of(1_000) {
        return format!("{ms}ms");
    }
    let seconds = ms / 1_000;
    let mut text = String::new();
    for (unit, count) in [("h", seconds / 3_600), ("m", seconds / 60 % 60), ("s", seconds % 60)] {
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}
