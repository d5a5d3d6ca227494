//! Reads a plan's mail: all messages in one commit.

use max_team_core::delegation::ending::not_done;
use max_team_core::event::TurnOutcome;
use max_team_core::id::QuestionId;
use max_team_core::message::{Assignment, Envelope, MessageKind, Principal};
use max_team_core::plan::event::{EditRefused, PlanDecision, PlanProposed, PlanQuestion, ResourceUse};
use max_team_core::plan::{Budget, Edit, PlanInput, Report};
use max_team_core::policy::DecidedBy;
use max_team_core::turn::is_stop;
use serde::Deserialize;
use serde_json::Value;

use super::{Batch, PlanLoop, check, correct, propose};
use crate::agent::text_at;
use crate::error::RuntimeError;
use crate::post::CONTINUES;
use crate::team_tools::Says;

impl PlanLoop {
    /// Reads all mail, in one commit.
    pub(super) async fn take_mail(&mut self) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        for letter in self.floor.mail(&self.plan.stream, false)? {
            batch.acks.push(letter.id);
            if letter.kind == MessageKind::TaskResult {
                // A larger budget counts before the result is decided, which might otherwise ask for one again.
                self.resume(&mut batch);
            }
            if let Some(reader) = correct::reader_of(&letter) {
                self.take_correction(&letter, &reader, &mut batch).await?;
            } else if let Some(input) = self.read(&letter) {
                self.decide(input, &mut batch);
            }
        }
        self.resume(&mut batch);
        self.commit(batch).await
    }

    pub(super) fn read(&self, letter: &Envelope) -> Option<PlanInput> {
        let body = &letter.body;
        match letter.kind {
            MessageKind::PlanApprovalRequest => {
                let proposed = PlanProposed::deserialize(body.get("proposed")?).ok()?;
                Some(PlanInput::Propose(Box::new(proposed)))
            }
            MessageKind::PlanApprovalResponse => {
                let question: QuestionId = body.get("question")?.as_str()?.parse().ok()?;
                let say = PlanDecision::deserialize(body.get("say")?).ok()?;
                let by = Principal::deserialize(body.get("by")?).ok()?;
                if let PlanDecision::Edit(edits) = say {
                    return Some(self.edited(question, edits, by));
                }
                Some(PlanInput::Answered { question, say, by: DecidedBy::person(&by) })
            }
            MessageKind::TaskResult => self.reported(body),
            MessageKind::NeedClarify => {
                let (task, attempt) = self.assigned(body)?;
                let question = text_at(body, "question");
                Some(PlanInput::Asked { task, attempt, question, letter: letter.id })
            }
            MessageKind::PermissionRequest => {
                let (task, attempt) = self.assigned(body)?;
                let outage = body.get("outage").and_then(Value::as_str).map(str::to_owned);
                Some(PlanInput::Held { task, attempt, outage })
            }
            MessageKind::PermissionResponse => {
                let (task, attempt) = self.assigned(body)?;
                Some(PlanInput::Freed { task, attempt })
            }
            MessageKind::TaskUpdate if is_continued(letter) => Some(PlanInput::Continue { by: text_at(body, "by") }),
            MessageKind::TaskUpdate => {
                let task = self.plan.graph()?.index(&text_at(body, "task"))?;
                let by = text_at(body, "by");
                match Says::deserialize(body.get("says")?).ok()? {
                    Says::Answer(answer) => Some(PlanInput::Told { task, answer, by }),
                    Says::Rule(ruling) => Some(PlanInput::Rule { task, ruling, by, note: text_at(body, "note") }),
                    Says::Note(note) => Some(PlanInput::Note { task, note, by }),
                    Says::Cancel => Some(PlanInput::Stop { task: Some(task), by }),
                }
            }
            MessageKind::PlanRevised => {
                let revision = body.get("revision")?.as_str()?.parse().ok()?;
                Some(match body.get("tasks") {
                    Some(tasks) => PlanInput::Revised { revision, tasks: Vec::deserialize(tasks).ok()? },
                    None => {
                        let reworked = body.get("reworked").and_then(Value::as_bool).unwrap_or_default();
                        PlanInput::RevisionEnded { revision, reworked }
                    }
                })
            }
            MessageKind::Shutdown if is_stop(letter) => Some(PlanInput::Hold { by: text_at(body, "by") }),
            MessageKind::Shutdown => {
                let replaced_by = body.get("replaced_by").and_then(Value::as_str);
                if let Some(revision) = replaced_by.and_then(|revision| revision.parse().ok()) {
                    return Some(PlanInput::Replaced { revision });
                }
                let task = match body.get("task").and_then(Value::as_str) {
                    Some(name) => Some(self.plan.graph()?.index(name)?),
                    None => None,
                };
                Some(PlanInput::Stop { task, by: text_at(body, "by") })
            }
            _ => None,
        }
    }

    /// The task and the attempt that a message is about.
    fn assigned(&self, body: &Value) -> Option<(usize, u32)> {
        let assignment = Assignment::deserialize(body.get("assignment")?).ok()?;
        Some((self.plan.graph()?.index(&assignment.task)?, assignment.attempt))
    }

    /// Edits that lead to a plan that cannot run change nothing, and their author is told why.
    fn edited(&self, question: QuestionId, edits: Vec<Edit>, by: Principal) -> PlanInput {
        let refused = |error: String| PlanInput::Unfit(EditRefused { question, error, by: by.clone() });
        if !self.plan.asked().any(|(open, about)| open == question && *about == PlanQuestion::Proposal) {
            return refused("the plan has changed since it was asked about; look at it again".to_owned());
        }
        let edited = self.floor.team().zip(self.plan.draft());
        let edited = edited.ok_or_else(|| "there is no team in this session".to_owned());
        match edited.and_then(|(team, draft)| {
            propose::edited(&team, &self.floor.root, draft, &edits, by.clone(), &self.floor.basis())
        }) {
            Ok(edited) => PlanInput::Edited { question, edits, edited: Box::new(edited) },
            Err(error) => refused(error),
        }
    }

    fn reported(&self, body: &Value) -> Option<PlanInput> {
        let (task, attempt) = self.assigned(body)?;
        let spent = ResourceUse::deserialize(body.get("spent")?).unwrap_or_default();
        let end = TurnOutcome::deserialize(body.get("end")?).ok()?;
        let output = text_at(body, "output");
        let ok = body.get("ok").and_then(Value::as_bool).unwrap_or_default();
        let report = match end {
            _ if ok => {
                let written = self.plan.draft()?.tasks.get(task)?;
                let leaves = self.leaves(task);
                // An attempt without changing calls changed nothing, but an earlier attempt may have.
                let acted = attempt > 1 || body.get("acted").and_then(Value::as_bool).unwrap_or(true);
                let looked = !self.is_apart(task) && !check::needs_a_look(written, leaves, acted);
                let findings = looked.then(|| check::words(leaves, &output));
                let unknown = body.get("unknown").and_then(|unknown| Vec::deserialize(unknown).ok());
                Report::Done { output, findings, unknown: unknown.unwrap_or_default() }
            }
            TurnOutcome::Budget => {
                let left = body.get("left").and_then(|left| Budget::deserialize(left).ok());
                let own = body.get("own").and_then(Value::as_bool).unwrap_or_default();
                Report::OutOfMoney { output, left, own }
            }
            TurnOutcome::Interrupted => Report::Stopped,
            TurnOutcome::Answered if not_done(&output).is_some() => Report::NotDone { output },
            _ => Report::Failed { error: text_at(body, "error"), output },
        };
        Some(PlanInput::Reported { task, attempt, report, spent })
    }
}

/// Whether the user continues the stopped plan.
fn is_continued(letter: &Envelope) -> bool {
    letter.body.get(CONTINUES).and_then(Value::as_bool).unwrap_or_default()
}
