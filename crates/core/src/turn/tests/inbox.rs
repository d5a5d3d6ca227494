//! Every kind of message in every state of its reader: one table.

use super::*;
use crate::id::QuestionId;
use crate::message::{Assignment, Envelope, MessageKind};
use crate::teammate::{AgentEnded, Lifetime, Teammate};

const LEAD: &str = "agent/lead";
const USER: &str = "user/me";
const OTHER: &str = "agent/other";

/// The readers, by column: a lead, a teammate, and an agent that was called.
const STATES: [(Who, State); 11] = [
    (Who::Lead, State::Idle),
    (Who::Lead, State::Held),
    (Who::Lead, State::Busy),
    (Who::Teammate, State::Idle),
    (Who::Teammate, State::Held),
    (Who::Teammate, State::Busy),
    (Who::Teammate, State::ForUser),
    (Who::Teammate, State::Ended),
    (Who::Called, State::Idle),
    (Who::Called, State::Busy),
    (Who::Called, State::Review),
];

#[derive(Clone, Copy, PartialEq)]
enum Who {
    Lead,
    Teammate,
    Called,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Idle,
    /// Stopped by a person, with the message on hold.
    Held,
    Busy,
    /// In a turn that answers the user.
    ForUser,
    Ended,
    /// The user decides about its changes.
    Review,
}

fn envelope(kind: MessageKind, from: &str, body: Value) -> Envelope {
    Envelope::new(EnvelopeId::new(id(7)), from, "agent/reader", kind, body, 0)
}

fn reader(who: Who, state: State) -> Turn {
    let life = match who {
        Who::Teammate => Lifetime::Teammate(Box::new(Teammate { name: "ann".into(), ..Teammate::default() })),
        Who::Lead | Who::Called => Lifetime::Call,
    };
    let given = Assignment { reply_to: LEAD.into(), life, attempt: 1, ..Assignment::default() };
    let mut turn = Turn::new();
    turn.apply(&Event::AgentStarted(AgentStarted {
        agent: AgentId::new(id(1)),
        session: SessionId::new(id(2)),
        definition: Definition::default().into(),
        assignment: (who != Who::Lead).then(|| given.clone().into()),
        settings: Some(Settings::new(model("m")).into()),
    }));
    let assignment = match state {
        State::ForUser => Some(Assignment { reply_to: USER.into(), ..given }),
        _ => (who != Who::Lead).then_some(given),
    };
    let mut current = RunningTurn::new(TurnId::new(id(3)), assignment.map(Arc::new));
    match state {
        State::Idle => {}
        State::Held => {
            turn.stop.held = Some(Box::new(Hold { envelopes: vec![EnvelopeId::new(id(7))], ..Hold::default() }))
        }
        State::Ended => turn.apply(&Event::AgentEnded(AgentEnded {
            session: SessionId::new(id(2)),
            name: "ann".into(),
            by: "me".into(),
            reason: String::new(),
            forced: false,
        })),
        State::Review => {
            current.reviewing = Some(Box::new(envelope(MessageKind::TaskResult, OTHER, json!({}))));
            turn.current = Some(current);
        }
        State::Busy | State::ForUser => turn.current = Some(current),
    }
    turn
}

/// What becomes of the message, if nothing else is in the mailbox.
fn outcome(turn: &Turn, envelope: &Envelope, lead: bool) -> &'static str {
    match turn.receive(envelope, lead) {
        action @ (MailAction::Begin | MailAction::Join | MailAction::Note) => {
            let begins = !turn.begins_with(vec![(action, envelope.clone())], lead, || true).is_empty();
            match (action, begins) {
                (MailAction::Note, _) => "note",
                (_, true) => "begin",
                (_, false) if turn.held().is_some() => "held",
                (_, false) => "gather",
            }
        }
        MailAction::Tell => "tell",
        MailAction::Wait => "wait",
        MailAction::EndReview => "go on",
        MailAction::Result => "result",
        MailAction::Answer => "answer",
        MailAction::Respond => "respond",
        MailAction::AskUser => "ask",
        MailAction::SetMode => "mode",
        MailAction::Grant => "grant",
        MailAction::Recruit => "recruit",
        MailAction::Stop => "stop",
        MailAction::End => "end",
        MailAction::Return => "return",
        MailAction::Refuse(_) => "refuse",
        MailAction::Record => "record",
    }
}

fn messages() -> Vec<(&'static str, Envelope)> {
    let plain = |kind, from| envelope(kind, from, json!({}));
    let answer = Some(EnvelopeId::new(id(9)));
    let given = json!({ "assignment": Assignment::default() });
    vec![
        ("user_input", plain(MessageKind::UserInput, USER)),
        ("user_input, later", envelope(MessageKind::UserInput, USER, json!({ "wait": true }))),
        ("task_assign", envelope(MessageKind::TaskAssign, LEAD, given)),
        ("task_assign, list", plain(MessageKind::TaskAssign, LEAD)),
        ("text of the lead", plain(MessageKind::Text, LEAD)),
        ("text", plain(MessageKind::Text, OTHER)),
        ("text, aside", envelope(MessageKind::Text, OTHER, json!({ "aside": true }))),
        ("text, answer", plain(MessageKind::Text, OTHER).answering(answer)),
        ("text, no answer", envelope(MessageKind::Text, OTHER, json!({ "ask": true })).answering(answer)),
        ("task_result", plain(MessageKind::TaskResult, OTHER)),
        ("task_result, done", envelope(MessageKind::TaskResult, OTHER, json!({ "mate": "bob", "reason": "done" }))),
        ("task_result, failed", envelope(MessageKind::TaskResult, OTHER, json!({ "mate": "bob", "reason": "failed" }))),
        ("task_result, stopped", envelope(MessageKind::TaskResult, OTHER, json!({ "mate": "bob", "stopped": true }))),
        ("task_failed", plain(MessageKind::TaskFailed, OTHER)),
        ("need_clarify", plain(MessageKind::NeedClarify, OTHER)),
        ("all_tasks_done", plain(MessageKind::AllTasksDone, OTHER)),
        ("all_tasks_done, stopped", envelope(MessageKind::AllTasksDone, OTHER, json!({ "stopped": true }))),
        ("task_update", plain(MessageKind::TaskUpdate, LEAD)),
        (
            "plan_approval_request",
            envelope(MessageKind::PlanApprovalRequest, OTHER, json!({ "question": QuestionId::new(id(8)) })),
        ),
        ("plan_approval_response", plain(MessageKind::PlanApprovalResponse, LEAD)),
        ("plan_revised", plain(MessageKind::PlanRevised, LEAD)),
        ("permission_request", plain(MessageKind::PermissionRequest, OTHER)),
        ("permission_response", plain(MessageKind::PermissionResponse, USER)),
        ("sandbox_permission_request", plain(MessageKind::SandboxPermissionRequest, OTHER)),
        ("sandbox_permission_response", plain(MessageKind::SandboxPermissionResponse, USER)),
        ("team_permission_update", plain(MessageKind::TeamPermissionUpdate, OTHER)),
        ("mode_set_request", plain(MessageKind::ModeSetRequest, LEAD)),
        ("team_request", plain(MessageKind::TeamRequest, USER)),
        ("team_request of an agent", plain(MessageKind::TeamRequest, OTHER)),
        ("idle_notification", envelope(MessageKind::IdleNotification, OTHER, json!({ "mate": "bob" }))),
        (
            "idle_notification, stopped",
            envelope(MessageKind::IdleNotification, OTHER, json!({ "mate": "bob", "stopped": true })),
        ),
        ("shutdown", plain(MessageKind::Shutdown, OTHER)),
        ("shutdown, end", envelope(MessageKind::Shutdown, USER, json!({ "end": true }))),
        ("shutdown_request", plain(MessageKind::ShutdownRequest, LEAD)),
        ("shutdown_approved", plain(MessageKind::ShutdownApproved, OTHER)),
        ("shutdown_rejected", plain(MessageKind::ShutdownRejected, OTHER)),
        ("teammate_terminated", plain(MessageKind::TeammateTerminated, OTHER)),
        ("undelivered", plain(MessageKind::Undelivered, OTHER)),
        ("files_rewound", plain(MessageKind::FilesRewound, USER)),
        ("session_handover", plain(MessageKind::SessionHandover, USER)),
    ]
}

/// `begin`, `held`, `gather`: a turn begins now, after the user writes, or when the team rests. `note`: told with the next turn.
/// `tell`, `wait`: told with the next tool result, or after the turn. `record`, `refuse`: only recorded.
const TABLE: &str = "
                            lead                       mate                                         called
                            idle     held     busy     idle     held     busy     for user ended    idle     busy     review
user_input                  begin    held     tell     begin    held     tell     tell     return   begin    tell     go on
user_input, later           begin    held     wait     begin    held     wait     wait     return   begin    wait     go on
task_assign                 begin    held     wait     begin    held     wait     wait     return   begin    wait     go on
task_assign, list           begin    held     wait     begin    held     wait     wait     return   begin    wait     go on
text of the lead            begin    held     tell     begin    held     tell     wait     return   begin    tell     wait
text                        begin    held     tell     begin    held     tell     tell     return   begin    tell     wait
text, aside                 note     note     tell     note     note     tell     tell     return   note     tell     wait
text, answer                result   result   result   result   result   result   result   return   result   result   result
text, no answer             ask      ask      ask      ask      ask      ask      ask      return   ask      ask      ask
task_result                 result   result   result   result   result   result   result   return   result   result   result
task_result, done           gather   held     tell     begin    held     tell     tell     return   begin    tell     wait
task_result, failed         begin    held     tell     begin    held     tell     tell     return   begin    tell     wait
task_result, stopped        note     note     tell     note     note     tell     tell     return   note     tell     wait
task_failed                 begin    held     tell     begin    held     tell     tell     return   begin    tell     wait
need_clarify                begin    held     tell     begin    held     tell     tell     return   begin    tell     wait
all_tasks_done              begin    held     tell     begin    held     tell     tell     return   begin    tell     wait
all_tasks_done, stopped     note     note     tell     note     note     tell     tell     return   note     tell     wait
task_update                 record   record   record   record   record   record   record   return   record   record   record
plan_approval_request       begin    held     tell     begin    held     tell     tell     return   begin    tell     wait
plan_approval_response      begin    held     tell     answer   answer   answer   answer   return   begin    tell     wait
plan_revised                record   record   record   record   record   record   record   return   record   record   record
permission_request          record   record   record   record   record   record   record   return   record   record   record
permission_response         answer   answer   answer   answer   answer   answer   answer   return   answer   answer   answer
sandbox_permission_request  record   record   record   record   record   record   record   return   record   record   record
sandbox_permission_response answer   answer   answer   answer   answer   answer   answer   return   answer   answer   answer
team_permission_update      grant    grant    grant    grant    grant    grant    grant    return   grant    grant    grant
mode_set_request            mode     mode     mode     mode     mode     mode     mode     return   mode     mode     mode
team_request                recruit  recruit  wait     refuse   refuse   refuse   refuse   return   refuse   refuse   refuse
team_request of an agent    refuse   refuse   refuse   refuse   refuse   refuse   refuse   return   refuse   refuse   refuse
idle_notification           gather   held     wait     record   record   record   record   return   record   record   record
idle_notification, stopped  record   record   record   record   record   record   record   return   record   record   record
shutdown                    stop     stop     stop     stop     stop     stop     stop     return   stop     stop     stop
shutdown, end               end      end      end      end      end      end      end      return   end      end      end
shutdown_request            end      end      end      end      end      end      end      return   end      end      end
shutdown_approved           respond  respond  respond  refuse   refuse   refuse   refuse   return   refuse   refuse   refuse
shutdown_rejected           respond  respond  respond  refuse   refuse   refuse   refuse   return   refuse   refuse   refuse
teammate_terminated         begin    held     tell     note     note     tell     tell     return   note     tell     wait
undelivered                 begin    held     tell     note     note     tell     tell     return   note     tell     wait
files_rewound               note     note     wait     note     note     wait     wait     return   note     wait     wait
session_handover            record   record   record   record   record   record   record   return   record   record   record
";

#[test]
fn every_message_in_every_state_has_one_outcome() {
    let row = |name: &str, cells: Vec<&str>| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:<8}")).collect();
        format!("{name:<28}{}", cells.join(" ")).trim_end().to_owned()
    };
    let mut table = Vec::new();
    for (name, envelope) in messages() {
        assert!(name.starts_with(envelope.kind.name()), "{name}");
        let cell = |(who, state): &(Who, State)| outcome(&reader(*who, *state), &envelope, *who == Who::Lead);
        table.push(row(name, STATES.iter().map(cell).collect()));
    }
    let known: Vec<&str> = TABLE.lines().skip(3).collect();
    assert_eq!(table, known, "\n{}", table.join("\n"));
    let kinds: std::collections::HashSet<&str> = messages().iter().map(|(_, envelope)| envelope.kind.name()).collect();
    assert_eq!(kinds.len(), 27, "a kind is missing");
}
