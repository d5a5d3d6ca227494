//! Reads a plan's mail: all messages in one commit.

use std::borrow::Cow;

use max_team_core::body::{Body, Instruction, PlanAnswer, PlanRevision, Stop, TaskInstruction, Work};
use max_team_core::delegation::ending::not_done;
use max_team_core::event::TurnOutcome;
use max_team_core::id::QuestionId;
use max_team_core::message::{Assignment, Envelope, MessageKind, Principal};
use max_team_core::plan::event::{EditRefused, PlanDecision, PlanQuestion};
use max_team_core::plan::{Edit, PlanInput, Report, cannot_run};
use max_team_core::policy::DecidedBy;

use super::{Batch, PlanLoop, check, correct, propose};
use crate::error::RuntimeError;

impl PlanLoop {
    /// Reads all mail, in one commit.
    pub(super) async fn take_mail(&mut self) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        for envelope in self.active.mail(&self.plan.stream, false)? {
            batch.acks.push(envelope.id);
            if envelope.kind == MessageKind::TaskResult {
                // A larger budget counts before the result is decided, which might otherwise ask for one again.
                self.resume(&mut batch);
            }
            if let Some(reader) = correct::reader_of(&envelope) {
                self.take_correction(&envelope, reader, &mut batch).await?;
            } else if let Some(input) = self.read(&envelope) {
                self.decide(input, &mut batch);
            }
        }
        self.resume(&mut batch);
        self.commit(batch).await
    }

    pub(super) fn read(&self, envelope: &Envelope) -> Option<PlanInput> {
        match Body::read(envelope) {
            Body::Proposal(proposal) => proposal.proposed.map(PlanInput::Propose),
            Body::PlanAnswer(PlanAnswer { question: Some(question), say: Some(say), by: Some(by), .. }) => match say {
                PlanDecision::Edit(edits) => Some(self.edited(question, edits, by)),
                say => Some(PlanInput::Answered { question, say, by: DecidedBy::person(&by) }),
            },
            Body::Result(result) => self.reported(&result.work),
            Body::Clarification(asked) => {
                let (task, attempt) = self.assigned(asked.assignment)?;
                Some(PlanInput::Asked { task, attempt, question: asked.question.to_owned(), envelope: envelope.id })
            }
            Body::Question(asked) => {
                let (task, attempt) = self.assigned(asked.assignment)?;
                Some(PlanInput::Held { task, attempt, outage: asked.outage.map(str::to_owned) })
            }
            Body::Answer(answer) => {
                let (task, attempt) = self.assigned(answer.assignment)?;
                Some(PlanInput::Freed { task, attempt })
            }
            Body::Update(update) => self.updated(update),
            Body::Revision(PlanRevision { revision: Some(revision), tasks, reworked }) => Some(match tasks {
                Some(tasks) => PlanInput::Revised { revision, tasks: tasks.into_owned() },
                None => PlanInput::RevisionEnded { revision, reworked },
            }),
            Body::Stop(stop) if envelope.kind == MessageKind::Shutdown => self.stopped(stop),
            _ => None,
        }
    }

    fn updated(&self, update: TaskInstruction<'_>) -> Option<PlanInput> {
        let by = update.by.to_owned();
        if update.continues {
            return Some(PlanInput::Continue { by });
        }
        let task = self.plan.graph()?.index(update.task)?;
        Some(match update.says? {
            Instruction::Answer(answer) => PlanInput::Told { task, answer, by },
            Instruction::Rule(ruling) => {
                PlanInput::Rule { task, ruling, by, note: update.note.unwrap_or_default().to_owned() }
            }
            Instruction::Note(note) => PlanInput::Note { task, note, by },
            Instruction::Cancel => PlanInput::Stop { task: Some(task), by },
        })
    }

    fn stopped(&self, stop: Stop<'_>) -> Option<PlanInput> {
        let by = stop.by.to_owned();
        Some(match (stop.replaced_by, stop.task) {
            _ if stop.stopped => PlanInput::Hold { by },
            (Some(revision), _) => PlanInput::Replaced { revision },
            (None, Some(name)) => PlanInput::Stop { task: Some(self.plan.graph()?.index(name)?), by },
            (None, None) => PlanInput::Stop { task: None, by },
        })
    }

    /// The task and the attempt that a message is about.
    fn assigned(&self, assignment: Option<Cow<'_, Assignment>>) -> Option<(usize, u32)> {
        let assignment = assignment?;
        Some((self.plan.graph()?.index(&assignment.task)?, assignment.attempt))
    }

    /// Edits that lead to a plan that cannot run change nothing, and their author is told why.
    fn edited(&self, question: QuestionId, edits: Vec<Edit>, by: Principal) -> PlanInput {
        let refused = |error: String, flaws| PlanInput::Unfit(EditRefused { question, error, flaws, by: by.clone() });
        if !self.plan.asked().any(|(open, about)| open == question && *about == PlanQuestion::Proposal) {
            let words = "the plan has changed since it was asked about; look at it again";
            return refused(words.to_owned(), Vec::new());
        }
        let Some((team, draft)) = self.active.team().zip(self.plan.draft()) else {
            return refused("there is no team in this session".to_owned(), Vec::new());
        };
        match propose::edited(&team, &self.active.root, draft, &edits, by.clone(), &self.active.basis()) {
            Ok(edited) => PlanInput::Edited { question, edits, edited: Box::new(edited) },
            Err(flaws) => refused(cannot_run(&flaws), flaws),
        }
    }

    fn reported(&self, work: &Work<'_>) -> Option<PlanInput> {
        let (task, attempt) = self.assigned(work.assignment.clone())?;
        let output = work.output.to_owned();
        let report = match work.end.as_ref()? {
            _ if work.ok => {
                let written = self.plan.draft()?.tasks.get(task)?;
                let leaves = self.leaves(task);
                // An attempt without changing calls changed nothing, but an earlier attempt may have.
                let acted = attempt > 1 || work.acted.unwrap_or(true);
                let looked = !self.is_apart(task) && !check::needs_a_look(written, leaves, acted);
                let findings = looked.then(|| check::words(leaves, &output));
                Report::Done { output, findings, unknown: work.unknown.clone() }
            }
            TurnOutcome::Budget => Report::OutOfMoney { output, left: work.left, own: work.own },
            TurnOutcome::Interrupted => Report::Stopped,
            TurnOutcome::Answered if not_done(&output).is_some() => Report::NotDone { output },
            _ => Report::Failed { error: work.error.to_owned(), output },
        };
        Some(PlanInput::Reported { task, attempt, report, spent: work.spent.unwrap_or_default() })
    }
}
