//! What a job is made of: files, wishes of the user, parts of the agents, how it is played and how it is checked.

use serde_json::Value;

use super::stage::Stage;
use super::view::View;

/// Ways to make one call: the first that is offered, the next one after a failure.
pub(super) type Ways = Vec<(&'static str, Value)>;

#[derive(Debug)]
pub(super) struct Step {
    /// A word that must have come before.
    pub(super) after: Option<&'static str>,
    /// A word that the result must hold; a call without it is made again in other words.
    pub(super) expects: Option<&'static str>,
    /// Whether the work goes on without it.
    pub(super) is_optional: bool,
    /// The calls of one answer.
    pub(super) calls: fn(&View) -> Vec<Ways>,
}

impl Step {
    pub(super) fn new(calls: fn(&View) -> Vec<Ways>) -> Step {
        Step { after: None, expects: None, is_optional: false, calls }
    }

    pub(super) fn after(mut self, word: &'static str) -> Step {
        self.after = Some(word);
        self
    }

    pub(super) fn expects(mut self, word: &'static str) -> Step {
        self.expects = Some(word);
        self
    }
}

/// What an agent other than the lead does.
#[derive(Debug)]
pub(super) struct Part {
    /// The name in its task text (`ref:NAME`).
    pub(super) role: &'static str,
    /// The kind of agent, for the table of fixed input.
    pub(super) kind: &'static str,
    pub(super) steps: Vec<Step>,
    /// A word that must have come before the result.
    pub(super) after: Option<&'static str>,
    pub(super) result: fn(&View) -> String,
    /// A word of the result that the lead must get.
    pub(super) marker: Option<&'static str>,
    /// The step whose reply waits at the stage's gate of this role.
    pub(super) held: Option<usize>,
}

impl Part {
    pub(super) fn new(role: &'static str, kind: &'static str, result: fn(&View) -> String) -> Part {
        Part { role, kind, steps: Vec::new(), after: None, result, marker: None, held: None }
    }

    pub(super) fn step(mut self, calls: fn(&View) -> Vec<Ways>) -> Part {
        self.steps.push(Step::new(calls));
        self
    }

    /// The project's tests: their result is reported either way.
    pub(super) fn tests(mut self, calls: fn(&View) -> Vec<Ways>) -> Part {
        self.steps.push(Step { is_optional: true, ..Step::new(calls) });
        self
    }

    pub(super) fn step_after(mut self, word: &'static str, calls: fn(&View) -> Vec<Ways>) -> Part {
        self.steps.push(Step::new(calls).after(word));
        self
    }

    pub(super) fn after(mut self, word: &'static str) -> Part {
        self.after = Some(word);
        self
    }

    pub(super) fn marker(mut self, word: &'static str) -> Part {
        self.marker = Some(word);
        self
    }

    pub(super) fn held(mut self, step: usize) -> Part {
        self.held = Some(step);
        self
    }
}

/// What the lead does about one wish of the user.
#[derive(Debug)]
pub(super) struct Phase {
    /// Words of the wish.
    pub(super) cue: &'static str,
    pub(super) steps: Vec<Step>,
    /// Words that the answer must hold; the lead knows them from results alone.
    pub(super) facts: &'static [&'static str],
    /// Whether results come later than the calls return.
    pub(super) is_long: bool,
    /// The gate that opens once the lead has nothing more to call.
    pub(super) opens: Option<&'static str>,
}

impl Phase {
    pub(super) fn new(cue: &'static str, facts: &'static [&'static str]) -> Phase {
        Phase { cue, steps: Vec::new(), facts, is_long: false, opens: None }
    }

    pub(super) fn step(mut self, step: Step) -> Phase {
        self.steps.push(step);
        self
    }

    pub(super) fn long(mut self) -> Phase {
        self.is_long = true;
        self
    }

    pub(super) fn opens(mut self, gate: &'static str) -> Phase {
        self.opens = Some(gate);
        self
    }
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) phases: Vec<Phase>,
    pub(super) parts: Vec<Part>,
    pub(super) play: fn(&mut Stage),
    /// What is wrong with the outcome.
    pub(super) check: fn(&Stage) -> Result<(), String>,
}
