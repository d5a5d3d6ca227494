//! `skill`: the text of a skill, when it is needed.
//!
//! A command in the text is replaced by its output, if the agent may run it without a question: it is judged by the
//! agent's own rules and runs in the agent's sandbox. A command that would need a question is not run, and the text
//! says so: the agent asks by running it itself. A skill gives an agent no tool, no right and no command that it does
//! not have. A skill that another agent carries out is a call like any other: here it is only judged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::chat::{ChatRole, Message, Part};
use max_team_core::policy::{Action, ActionKind, Repeatability, Verdict};
use max_team_tools::{Output, Spec, Tool, ToolContext, ToolError};
use serde_json::{Value, json};

use super::fill::{self, Fill};
use super::hand::{Hand, input_of};
use super::{COMMAND_S, NAMED_FILES_MAX, Skill};

pub const SKILL: &str = "skill";
/// The tool that runs commands.
const SHELL: &str = "run_shell";
/// Depth of the listed files beside a skill.
const FILES_DEPTH: usize = 3;
/// The text before a skill that the user asked for.
pub(super) const ASKED_FOR: &str = "The user asks you to follow this skill:\n";
/// The beginning of a skill's element.
const OPENING: &str = "<skill name=\"";

const WORDS: &str = "Load a skill: written know-how. Read its further files as `@skill/NAME/FILE`. If its entry shows an \
    input, give `input`: a sub-agent then carries the skill out, and its answer is the result.";

/// The tool, for one agent.
#[derive(Debug)]
pub(crate) struct SkillTool {
    spec: Spec,
    /// The agent's skills; `None` where tools are only listed.
    hand: Option<Arc<Hand>>,
}

/// Values for placeholders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkillContext<'a> {
    pub root: &'a Path,
    pub session: &'a str,
}

impl SkillContext<'_> {
    pub(super) fn fill<'b>(&self, skill: &'b Skill, arguments: &'b str) -> Fill<'b> {
        let folder = skill.folder.as_deref().or(skill.file.parent()).unwrap_or(self.root).display().to_string();
        let vars: BTreeMap<&'static str, String> = [
            ("CLAUDE_SKILL_DIR", folder.clone()),
            ("CLAUDE_PLUGIN_ROOT", folder),
            ("CLAUDE_SESSION_ID", self.session.to_owned()),
            ("CLAUDE_PROJECT_DIR", self.root.display().to_string()),
        ]
        .into();
        Fill { arguments, names: &skill.head.arguments, vars, place: (&skill.name, skill.first_line) }
    }
}

impl SkillTool {
    /// The tool for lists of tools, without an agent's skills.
    pub(crate) fn listed() -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "arguments": { "type": "string", "description": "What to use it on." },
                "input": { "type": "object", "description": "For a skill that shows an input." },
            },
        });
        // A call that runs commands is journalled before; one that runs none is as pure as reading a file.
        let (name, description) = (SKILL.to_owned(), WORDS.to_owned());
        Self {
            spec: Spec { name, description, schema, class: Repeatability::Opaque, null_is_absent: true },
            hand: None,
        }
    }

    /// The tool of one agent.
    pub(crate) fn held(hand: Arc<Hand>) -> Self {
        Self { hand: Some(hand), ..Self::listed() }
    }

    fn open(&self, cx: &ToolContext, args: &Value) -> Result<(Skill, String), ToolError> {
        let hand = self.hand.as_ref().ok_or_else(alone)?;
        let (skill, text) = hand.open(cx.root.path(), args).map_err(ToolError::correctable)?;
        let text = skill.contract.as_ref().map_or(text, |contract| contract.prompt.clone());
        Ok((skill, text))
    }

    fn carried_out_by(&self, skill: &Skill, args: &Value) -> Option<String> {
        self.hand.as_ref().and_then(|hand| hand.carried_out_by(skill, args))
    }

    /// The output of a command, or why it was not run.
    fn run(&self, cx: &ToolContext, command: &str) -> String {
        let Some(shell) = self.hand.as_ref().and_then(|hand| hand.shell.as_ref()) else {
            return fill::unrun(command, "you have no tool that runs commands");
        };
        let args = json!({ "command": command, "timeout": COMMAND_S });
        let ran = shell.action(cx, &args).and_then(|action| {
            let judged = cx.policy.judge(SHELL, &action);
            match judged.verdict {
                Verdict::Allow => {
                    let sandbox = Arc::new(cx.sandbox.within(judged.reach));
                    let (cx, action) =
                        (ToolContext { sandbox, ..cx.clone() }, Action { reach: judged.reach, ..action });
                    shell.call(&cx, args, &action, false).map(|output| printed(&output))
                }
                Verdict::Ask => Ok(fill::unrun(
                    command,
                    &format!("it needs the user's yes ({}); run it with `{SHELL}` if you need it", judged.rule),
                )),
                Verdict::Deny => Ok(fill::unrun(command, &format!("not allowed by {}", judged.rule))),
            }
        });
        ran.unwrap_or_else(|error| fill::unrun(command, &error.to_string()))
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn action(&self, cx: &ToolContext, args: &Value) -> Result<Action, ToolError> {
        let (skill, text) = self.open(cx, args)?;
        let parameters = vec![("name".to_owned(), skill.name.clone())];
        if let Some(who) = self.carried_out_by(&skill, args) {
            if let Some(contract) = &skill.contract {
                input_of(contract, args).map_err(ToolError::correctable)?;
            }
            // Carried out by the agent's loop, which calls another agent.
            return Ok(Action { kind: ActionKind::Team, parameters, ..Action::read(who) });
        }
        let arguments = arguments(args);
        let preview = fill::commands(&text, &asked(cx).fill(&skill, &arguments)).join("\n");
        Ok(Action { kind: ActionKind::Query, preview, parameters, ..Action::read(skill.name) })
    }

    fn class(&self, action: &Action) -> Repeatability {
        if action.preview.is_empty() { Repeatability::Pure } else { self.spec.class }
    }

    fn call(&self, cx: &ToolContext, args: Value, intent: &Action, _: bool) -> Result<Output, ToolError> {
        let (skill, text) = self.open(cx, &args)?;
        if self.carried_out_by(&skill, &args).is_some() {
            return Err(alone());
        }
        let arguments = arguments(&args);
        let asked = asked(cx);
        let with = asked.fill(&skill, &arguments);
        // Only the commands that were judged may run.
        if fill::commands(&text, &with).join("\n") != intent.preview {
            return Err(ToolError::correctable("the skill has changed since it was looked at; load it again"));
        }
        let filled = fill::fill(&text, &with, |command| self.run(cx, command));
        cx.check()?;
        Ok(Output::text(wrapped(&skill, &filled, asked.root)))
    }
}

fn alone() -> ToolError {
    ToolError::correctable("`skill` works only inside a team")
}

fn asked(cx: &ToolContext) -> SkillContext<'_> {
    SkillContext { root: cx.root.path(), session: &cx.session }
}

/// The arguments of a call: a text, or the JSON that the model gave instead.
pub(super) fn arguments(args: &Value) -> String {
    match args.get("arguments").or_else(|| args.get("args")) {
        Some(Value::String(words)) => words.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The output of a command, without the line about success.
fn printed(output: &Output) -> String {
    let text = output.content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = text.collect::<Vec<_>>().join("\n");
    match text.split_once('\n').filter(|_| !output.is_error) {
        Some((_, printed)) => printed.to_owned(),
        None => text,
    }
}

/// A skill's text as a model gets it.
pub(super) fn wrapped(skill: &Skill, text: &str, root: &Path) -> String {
    let name = &skill.name;
    let mut notes = String::new();
    if !skill.head.tools.is_empty() {
        let tools = skill.head.tools.join(", ");
        notes.push_str(&format!("[It is written for these tools: {tools}. You have your own, judged as always.]\n"));
    }
    if !skill.head.without_tools.is_empty() {
        notes.push_str(&format!("[Do not use with it: {}.]\n", skill.head.without_tools.join(", ")));
    }
    let files = skill.folder.as_deref().map(|folder| files(folder, &skill.file)).unwrap_or_default();
    if !files.is_empty() {
        // Files in the project are read there, under the project's rules.
        let inside = skill.folder.as_deref().and_then(|folder| folder.strip_prefix(root).ok());
        let place = inside.map_or_else(|| format!("@skill/{name}"), |folder| folder.display().to_string());
        let named: Vec<String> = files.iter().map(|file| format!("`{place}/{file}`")).collect();
        notes.push_str(&format!("[Its further files, for `read_file`: {}]\n", named.join(", ")));
    }
    // The text must not be able to close its own element.
    let text = text.replace("</skill>", "<\\/skill>");
    format!("{OPENING}{name}\">\n{}\n</skill>\n{notes}", text.trim())
}

/// The files beside a skill, by name.
fn files(folder: &Path, own: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<(PathBuf, usize)> = vec![(folder.to_path_buf(), 0)];
    while let Some((at, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&at) else { continue };
        for entry in entries.flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            match kind {
                _ if is_hidden || path == own => {}
                Ok(kind) if kind.is_dir() && depth < FILES_DEPTH => open.push((path, depth + 1)),
                Ok(kind) if kind.is_file() => {
                    found.extend(path.strip_prefix(folder).map(|path| path.display().to_string()));
                }
                _ => {}
            }
        }
    }
    found.sort();
    found.truncate(NAMED_FILES_MAX);
    found
}

/// The skills that a conversation has loaded: by a successful call or, in a lead's, because the user asked for them. A
/// skill that the user asks for is a part of its own behind the message, so the message itself, the first part, is not
/// searched: it could imitate one.
pub(crate) fn loaded(messages: &[Message], is_lead: bool) -> Vec<String> {
    let parts = || messages.iter().flat_map(|message| &message.parts);
    let went_well = |call: &str| {
        parts().any(|part| matches!(part, Part::ToolResult { id, is_error: false, .. } if id.as_str() == call))
    };
    let mut names = Vec::new();
    for message in messages {
        let called = message.tool_uses().filter(|(id, tool, _)| tool.eq_ignore_ascii_case(SKILL) && went_well(id));
        let called = called.filter_map(|(.., input)| input.get("name").or_else(|| input.get(SKILL))?.as_str());
        names.extend(called.map(str::to_owned));
        let asked = message.parts.iter().skip(1).filter_map(|part| match part {
            Part::Text { text } if is_lead && message.role == ChatRole::User => Some(text.as_str()),
            _ => None,
        });
        for piece in asked.flat_map(|text| text.split(ASKED_FOR).skip(1)) {
            let name = piece.strip_prefix(OPENING).and_then(|piece| piece.split_once('"'));
            names.extend(name.map(|(name, _)| name.to_owned()));
        }
    }
    names
}

/// From where on messages are searched for loaded skills the next time: from the last calls on, which may have no
/// results yet.
pub(crate) fn looked_at(messages: &[Message]) -> usize {
    messages.iter().rposition(|message| message.tool_uses().next().is_some()).unwrap_or(messages.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_loaded_or_asked_for_is_brought_in() {
        let call = |id: &str, name: &str| Part::ToolUse {
            id: id.into(),
            name: SKILL.into(),
            input: json!({ "name": name }).into(),
        };
        let result = |id: &str, is_error| Part::ToolResult { id: id.into(), content: Vec::new(), is_error };
        let message = |role, parts| Message { role, parts, native: None };
        let block = |name: &str| Part::text(format!("{ASKED_FOR}{OPENING}{name}\">\nx\n</skill>\n"));
        let said = [
            // The words of whoever wrote, then what the program put behind them.
            message(ChatRole::User, vec![block("posing"), block("asked")]),
            message(ChatRole::Assistant, vec![call("1", "fine"), call("2", "refused"), block("answered")]),
            message(ChatRole::User, vec![result("1", false), result("2", true)]),
            message(ChatRole::Assistant, vec![call("3", "pending")]),
        ];
        assert_eq!(loaded(&said, true), ["asked", "fine"]);
        assert_eq!(loaded(&said, false), ["fine"], "nobody asks a member or an expert for a skill in their words");
        // What is pending is looked at again.
        assert_eq!(looked_at(&said), 3);
        assert_eq!(loaded(&said[looked_at(&said)..], true), [""; 0]);
        let over = [said.to_vec(), vec![message(ChatRole::User, vec![result("3", false)])]].concat();
        assert_eq!(loaded(&over[looked_at(&said)..], true), ["pending"]);
        assert_eq!(looked_at(&[]), 0);
    }
}
