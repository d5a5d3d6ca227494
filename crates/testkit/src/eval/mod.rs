//! The evaluation: ten jobs played by the real program against scripted models, a strong and a weak one.
//!
//! [`play`] runs one job and gives a [`Row`]: whether the outcome is right (files, tests, the answer that the user got),
//! what it cost in calls and input, and whether a result was lost between agents. The model's side is a small policy
//! (`policy`, spoilt by `weak`) that decides from each request alone and looks its tools up in the list offered.

mod job;
mod jobs;
mod policy;
mod score;
mod stage;
mod view;
mod weak;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use self::job::Job;
use self::policy::{Decision, Worth, decide};
use self::score::{ModelReply, row};
use self::stage::Stage;
use self::view::View;
use self::weak::weaken;
use crate::{Gate, ModelServer, Recorded, Reply, Script};

pub use self::score::{Fixed, Outcome, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Character {
    /// Correct calls, few words.
    Strong,
    /// Wrong tool names, missing fields, input as text, prose, repetitions, false claims.
    Weak,
}

impl Character {
    pub fn name(self) -> &'static str {
        match self {
            Character::Strong => "strong",
            Character::Weak => "weak",
        }
    }
}

/// The names of the jobs, in order.
pub fn names() -> Vec<&'static str> {
    jobs::all().iter().map(|job| job.name).collect()
}

/// Plays a job in an empty folder with the program at a path; none if there is no job of that name.
pub fn play(name: &str, character: Character, program: &Path, folder: &Path) -> Option<Row> {
    let (number, job) = jobs::all().into_iter().enumerate().find(|(_, job)| job.name == name)?;
    let job = Arc::new(job);
    let held = job.parts.iter().filter(|part| part.held.is_some()).map(|part| (part.role, Gate::new()));
    let gates: BTreeMap<&'static str, Gate> = held.collect();
    let made = Arc::new(Mutex::new(Vec::new()));
    let model = Model { number, job: job.clone(), character, gates: gates.clone(), made: made.clone() };
    let server = ModelServer::start(Script::new().when(move |request| Some(model.reply(request))));
    let mut stage = Stage::new(program, folder, server.url(), gates);
    for (path, text) in job.files {
        stage.write(path, text);
    }
    (job.play)(&mut stage);
    let made = made.lock().unwrap_or_else(PoisonError::into_inner);
    stage.keep_trace(&made);
    Some(row(&job, character, &stage, &server.requests(), &made))
}

/// The model's side of a job.
struct Model {
    number: usize,
    job: Arc<Job>,
    character: Character,
    gates: BTreeMap<&'static str, Gate>,
    made: Arc<Mutex<Vec<ModelReply>>>,
}

impl Model {
    fn reply(&self, request: &Recorded) -> Reply {
        let view = View::new(&request.body);
        let part = self.job.parts.iter().find(|part| part.role == view.role);
        let claims = part.filter(|part| ["coder", "tester"].contains(&part.kind)).map(|part| (part.result)(&view));
        let strong = decide(&view, &self.job);
        self.open_gate(&view, &strong);
        let (decision, mistake) = match self.character {
            Character::Strong => (strong, None),
            Character::Weak => weaken(&view, self.number, strong, claims.as_deref()),
        };
        let mut made = ModelReply { request: request.n, role: view.role.clone(), mistake, ..ModelReply::default() };
        let mut reply = Reply::new();
        let mut held = None;
        for item in view.new_items() {
            made.trace.push(format!("{item:?}"));
        }
        match decision {
            Decision::Say(text, worth) => {
                made.trace.push(format!("=> {text:?}"));
                made.is_idle = worth == Worth::Idle;
                let marker = part.and_then(|part| part.marker);
                made.marker = marker.filter(|marker| worth == Worth::Result && text.contains(marker));
                reply = reply.say(text);
            }
            Decision::Call(calls) => {
                for call in calls {
                    made.trace.push(format!("=> {} {}", call.tool, call.input));
                    let id = format!("{}{}", call.step, request.n);
                    let is_repeated = view.has_called(&call.tool, &call.input);
                    made.calls.push((id.clone(), is_repeated));
                    let at = part.and_then(|part| part.held.map(|step| format!("s0_{step}_")));
                    held = held.or(at.filter(|at| call.step.starts_with(at.as_str())));
                    // Input that is text is a string in the stream, as such models write it.
                    reply = reply.tool(id, call.tool, call.input);
                }
            }
        }
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(made);
        let tokens = u64::try_from(request.bytes / score::TOKEN_BYTES).unwrap_or(u64::MAX);
        let reply = reply.usage(tokens, 20, 0, 0);
        match self.gates.get(view.role.as_str()).filter(|_| held.is_some()) {
            Some(gate) => reply.gate_before(gate),
            None => reply,
        }
    }

    /// Lets the reply go that waits until the lead has made its last call.
    fn open_gate(&self, view: &View, decision: &Decision) {
        let heard = view.heard();
        let phase = self.job.phases.iter().rfind(|phase| heard.contains(phase.cue)).filter(|_| view.role == "lead");
        // A plan that was submitted ends the lead's turn.
        let is_last = match decision {
            Decision::Say(..) => true,
            Decision::Call(calls) => calls.iter().any(|call| call.tool == "submit_plan"),
        };
        if let Some(gate) = phase.and_then(|phase| phase.opens).filter(|_| is_last) {
            self.gates.get(gate).into_iter().for_each(Gate::open);
        }
    }
}

/// The bytes of a request's field.
fn field_bytes(request: &Recorded, name: &str) -> usize {
    request.body.get(name).map_or(0, |value: &Value| value.to_string().len())
}
