//! What the teams do: together all that a team can do and that can be cut off.
//!
//! What each says follows from the number of its call, so a story goes on wherever it was cut off. Where it depends on
//! the moment how often somebody is told something, they have the same words for each time.

use max_team_core::plan::event::ApprovalMode;

/// A story, and how the user takes part in it.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) approve: ApprovalMode,
    /// What the user says: the first to begin with, the others while that is worked on.
    pub(crate) said: &'static [&'static str],
    /// Whether an agent works in a worktree; the project is then under version control.
    pub(crate) copied: bool,
    pub(crate) recording: &'static str,
}

pub(crate) const STORIES: [Story; 8] = [
    Story {
        name: "plan",
        approve: ApprovalMode::Plan,
        said: &["do it"],
        copied: false,
        recording: r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: leo, description: A, owns: [a.txt]},
      {id: b, agent: leo, description: B},
      {id: c, agent: ray, description: C, owns: [c.txt], outputs: [c.txt]},
      {id: join, agent: ada, description: J, depends_on: [a, b, c]}]}}]
  - text: All ran.
members:
  leo/a: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: a is done}]
  leo/b: [{parts: [{tool: pay, input: {what: plan}}]}, {text: b is done}]
  ray/c: [{parts: [{tool: write_file, input: {path: c.txt, content: c}}]}, {text: c is done}]
  ada/join: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: joined}]
"#,
    },
    Story {
        name: "calls",
        approve: ApprovalMode::Plan,
        said: &["do it"],
        copied: false,
        recording: r#"
answers:
  - parts:
      - {tool: task, input: {agent: tides, arguments: {port: Hamburg}}}
      - {tool: task, input: {agent: tides, arguments: {port: Hamburg}}}
      - {tool: agent, input: {description: look, prompt: Look at a., type: explore}}
      - {tool: dispatch_task, input: {agent: leo, description: Change}}
  - parts: [{tool: send_message, input: {to: explore, message: And b?}}]
  - text: All of them answered.
members:
  tides: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: "---RESULT---\n{\"m\": 3}\n---TEXT---\nThree metres."}]
  explore: [{parts: [{tool: read_file, input: {path: b.txt}}]}, {text: One.}, {text: The same.}]
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}, {tool: pay, input: {what: call}}]}, {text: Changed.}]
"#,
    },
    Story {
        name: "mail",
        approve: ApprovalMode::Never,
        said: &["do it"],
        copied: false,
        recording: r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: ann, role: writer, prompt: Write to ben.}}
      - {tool: spawn_teammate, input: {name: ben, role: reader, prompt: Wait for ann.}}
  - {text: Noted.}
  - {text: Noted.}
  - {text: Noted.}
  - {text: Noted.}
  - {text: Noted.}
members:
  ann:
    - parts: [{tool: send_message, input: {to: ben, message: first}}, {tool: send_message, input: {to: ben, message: second}}]
    - parts: [{tool: pay, input: {what: mail}}, {tool: send_message, input: {to: ben, message: third}}]
    - {text: Written.}
    - {text: Written.}
  ben: [{text: Read.}, {text: Read.}, {text: Read.}, {text: Read.}, {text: Read.}]
"#,
    },
    Story {
        name: "list",
        approve: ApprovalMode::Plan,
        said: &["do it"],
        copied: false,
        recording: r#"
answers:
  - parts:
      - {tool: TaskCreate, input: {subject: one, description: The first.}}
      - {tool: TaskCreate, input: {subject: two, description: The second.}}
  - parts:
      - {tool: dispatch_task, input: {agent: leo, description: Begin.}}
      - {tool: dispatch_task, input: {agent: ada, description: Begin too.}}
      - {tool: dispatch_task, input: {agent: ray, description: And you.}}
  - text: Both.
members:
  leo:
    - parts: [{tool: TaskUpdate, input: {taskId: "1", status: in_progress}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "1", status: completed}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: in_progress}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: completed}}]
    - text: Done what I could.
  ada:
    - parts: [{tool: TaskUpdate, input: {taskId: "1", status: in_progress}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "1", status: completed}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: in_progress}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: completed}}]
    - text: Done what I could.
  ray:
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: in_progress}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: completed}}]
    - text: Done what I could.
"#,
    },
    Story {
        name: "approvals",
        approve: ApprovalMode::Each,
        said: &["do it"],
        copied: false,
        recording: r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A}]}}]
  - text: Report.
members:
  leo/a:
    - parts:
        - {tool: edit_file, input: {path: a.txt, old: one, new: one+a}}
        - {tool: pay, input: {what: first}}
        - {tool: pay, input: {what: second}}
    - text: Changed.
"#,
    },
    Story {
        name: "background",
        approve: ApprovalMode::Plan,
        said: &["do it"],
        copied: false,
        recording: r#"
answers:
  - parts:
      - {tool: spawn, input: {description: look, prompt: Look., type: explore}}
      - {tool: spawn, input: {description: change, prompt: Change., type: tides}}
  - {text: Noted.}
  - {text: Noted.}
  - {text: Noted.}
  - {text: Noted.}
members:
  explore: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: It says one.}]
  tides: [{parts: [{tool: edit_file, input: {path: b.txt, old: one, new: one+b}}, {tool: pay, input: {what: apart}}]}, {text: Done.}]
"#,
    },
    Story {
        name: "words",
        approve: ApprovalMode::Plan,
        said: &["first", "second", "third"],
        copied: false,
        recording: r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: ada, description: Look}}]
  - {text: Good.}
  - {text: Good.}
  - {text: Good.}
  - {text: Good.}
members:
  ada: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: It says one.}]
"#,
    },
    Story {
        name: "copy",
        approve: ApprovalMode::Plan,
        said: &["do it"],
        copied: true,
        recording: r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: eve, description: Change}}]
  - text: It is taken.
members:
  eve: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}, {tool: pay, input: {what: copy}}]}, {text: Changed.}]
"#,
    },
];
