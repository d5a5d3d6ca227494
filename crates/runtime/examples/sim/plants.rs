//! Bugs that a durable program could have, as what each makes of a commit. Every one must be caught.
//!
//! They are planted into the journal of a simulated process, between the real runtime and what is stored: there a wrong
//! order, a forgotten part and a missing check look the same as if they had been written into the program.

use max_team_core::event::Event;
use max_team_core::id::{EnvelopeId, QuestionId};
use max_team_core::message::{Envelope, MessageKind};
use max_team_journal::{Commit, Durability, Sabotage, TimerOp};
use max_team_runtime::new_id;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plant {
    pub(crate) name: &'static str,
    /// A story that has what it spoils.
    pub(crate) story: &'static str,
    /// Part of what must be said about it.
    pub(crate) caught_as: &'static str,
    pub(crate) bend: fn(Commit) -> Sabotage,
}

pub(crate) const PLANTS: [Plant; 17] = [
    Plant {
        name: "effect before intent",
        story: "plan",
        caught_as: "happened twice",
        bend: |commit| early(commit, "tool_intent"),
    },
    Plant {
        name: "answer shown before commit",
        story: "calls",
        caught_as: "shown and lost",
        bend: |commit| early(commit, "turn_ended"),
    },
    Plant {
        name: "model's answer used before commit",
        story: "words",
        caught_as: "shown and lost",
        bend: |commit| early(commit, "llm_ended"),
    },
    Plant {
        name: "input acknowledged before commit",
        story: "calls",
        caught_as: "accepted and lost",
        bend: |commit| early(commit, "said"),
    },
    Plant {
        name: "question told before commit",
        story: "background",
        caught_as: "shown and lost",
        bend: |commit| early(commit, "question_asked"),
    },
    Plant { name: "synced too weakly", story: "mail", caught_as: "lost", bend: weakly },
    Plant {
        name: "lost ack",
        story: "words",
        caught_as: "it does not come to",
        bend: |commit| stored(Commit { acks: Vec::new(), ..commit }),
    },
    Plant { name: "ack apart from what was read", story: "words", caught_as: "read twice", bend: acks_apart },
    Plant {
        name: "message apart from its cause",
        story: "plan",
        caught_as: "at rest, waiting: true, and asked: []",
        bend: messages_apart,
    },
    Plant { name: "message lost", story: "mail", caught_as: "no message", bend: envelope_lost },
    Plant {
        name: "mail delivered twice",
        story: "mail",
        caught_as: "message was written twice",
        bend: |commit| envelopes_twice(commit, MessageKind::Text),
    },
    Plant {
        name: "result told twice",
        story: "calls",
        caught_as: "told twice",
        bend: |commit| envelopes_twice(commit, MessageKind::TaskResult),
    },
    Plant {
        name: "missing epoch check",
        story: "plan",
        caught_as: "zombie",
        bend: |commit| stored(Commit { fence: None, ..commit }),
    },
    Plant {
        name: "claim without the head check",
        story: "list",
        caught_as: "claimed twice",
        bend: |commit| stored(Commit { expect: Vec::new(), ..commit }),
    },
    Plant { name: "projection outside the transaction", story: "plan", caught_as: "rows", bend: rows_apart },
    Plant {
        name: "approval not in the log",
        story: "approvals",
        caught_as: "nobody has allowed",
        bend: answer_forgotten,
    },
    Plant { name: "timer fired twice", story: "plan", caught_as: "alarm", bend: timer_stays },
];

fn stored(commit: Commit) -> Sabotage {
    Sabotage::Apart(vec![commit])
}

fn early(commit: Commit, event: &str) -> Sabotage {
    if commit.appends.iter().any(|append| append.event == event) { Sabotage::Early(commit) } else { stored(commit) }
}

/// Nothing is ever synced by itself.
fn weakly(commit: Commit) -> Sabotage {
    stored(Commit { strength: Durability::Normal, ..commit })
}

/// What was read is taken out of the mailbox a moment later.
fn acks_apart(mut commit: Commit) -> Sabotage {
    let acks = Commit { acks: std::mem::take(&mut commit.acks), ..beside(&commit) };
    apart(commit, acks)
}

fn messages_apart(mut commit: Commit) -> Sabotage {
    let sends = Commit { sends: std::mem::take(&mut commit.sends), ..beside(&commit) };
    apart(commit, sends)
}

fn rows_apart(mut commit: Commit) -> Sabotage {
    let rows = Commit { projections: std::mem::take(&mut commit.projections), ..beside(&commit) };
    apart(commit, rows)
}

/// A message among colleagues is never written.
fn envelope_lost(mut commit: Commit) -> Sabotage {
    let ids: Vec<EnvelopeId> =
        commit.sends.iter().filter(|envelope| envelope.kind == MessageKind::Text).map(|l| l.id).collect();
    commit.sends.retain(|envelope| envelope.kind != MessageKind::Text);
    commit.acks.retain(|id| !ids.contains(id));
    stored(commit)
}

fn envelopes_twice(mut commit: Commit, kind: MessageKind) -> Sabotage {
    let again: Vec<_> = commit.sends.iter().filter(|envelope| envelope.kind == kind).cloned().collect();
    commit.sends.extend(again.into_iter().map(|envelope| Envelope { id: EnvelopeId::new(new_id()), ..envelope }));
    stored(commit)
}

/// The answer is acted upon, and the log has one to another question.
fn answer_forgotten(mut commit: Commit) -> Sabotage {
    for append in commit.appends.iter_mut().filter(|append| append.event == "question_answered") {
        let Ok(Event::QuestionAnswered(mut answered)) = serde_json::from_slice(&append.payload) else { continue };
        answered.question = QuestionId::new(new_id());
        append.payload = serde_json::to_vec(&Event::QuestionAnswered(answered)).unwrap();
    }
    stored(commit)
}

/// The alarm rings, and its row stays.
fn timer_stays(mut commit: Commit) -> Sabotage {
    commit.timers.retain(|op| !matches!(op, TimerOp::Fire { .. }));
    stored(commit)
}

/// Another transaction of the same writer at the same moment.
fn beside(commit: &Commit) -> Commit {
    Commit { at_ms: commit.at_ms, actor: commit.actor.clone(), fence: commit.fence.clone(), ..Commit::default() }
}

fn apart(first: Commit, second: Commit) -> Sabotage {
    let empty = beside(&second);
    Sabotage::Apart(if second == empty { vec![first] } else { vec![first, second] })
}
