//! What would become of a call: allowed, asked about or denied, by which rule, and where that rule is written.

use std::path::Path;

use max_team_core::agent_dirs::AgentDir;
use max_team_core::policy::{Action, ActionKind, Judgement, Rules, Verdict, judge};
use max_team_tools::{SearchService, shell};
use serde_json::{Value, json};

use crate::exit::{CliError, Exit};

/// The tool that runs a command line.
const COMMAND: &str = "run_shell";
/// The tool that searches the web.
const SEARCH: &str = "web_search";

/// A call to judge.
#[derive(Debug, Clone)]
pub struct PermissionQuestion<'a> {
    /// The tool; without one, a web address is fetched, a rule about the web is tried, and anything else is a command line.
    pub tool: Option<&'a str>,
    /// A command line or a web address; with a tool, a path, host, search or member.
    pub input: &'a str,
    /// The service that searches the web.
    pub search: &'a SearchService,
}

/// The judgement about a call.
#[derive(Debug, Clone)]
pub struct Explanation {
    pub tool: String,
    pub action: Action,
    pub judged: Judgement,
}

impl PermissionQuestion<'_> {
    /// The tools that can be asked about, by our names and by those in rules.
    pub const TOOLS: [&'static str; 19] = [
        COMMAND,
        "Bash",
        "read_file",
        "list_dir",
        "search_code",
        "Read",
        "write_file",
        "edit_file",
        "Write",
        "Edit",
        "web_fetch",
        "http_get",
        "geocode",
        "WebFetch",
        "web_search",
        "WebSearch",
        "browser",
        "dispatch_task",
        "Agent",
    ];

    /// Judges the call in a project's folder.
    pub fn explain(&self, root: &Path, rules: &Rules<'_>) -> Result<Explanation, CliError> {
        let host = host(self.input);
        let tool = match self.tool {
            Some("Bash") => COMMAND,
            Some("WebSearch") => SEARCH,
            Some(tool) => tool,
            None if host.is_some() => "web_fetch",
            None if self.input == "WebSearch" => SEARCH,
            None => COMMAND,
        };
        let action = match tool {
            COMMAND => shell::action(self.input, root),
            SEARCH => self.search.action(self.input).map_err(|error| CliError::new(Exit::Config, error.to_string()))?,
            tool => {
                let kind = kind(tool, self.input)?;
                let host = host.filter(|_| kind == ActionKind::Fetch);
                Action { kind, ..Action::read(host.unwrap_or_else(|| self.input.to_owned())) }
            }
        };
        let judged = judge(rules, tool, &action);
        Ok(Explanation { tool: tool.to_owned(), action, judged })
    }
}

impl Explanation {
    pub fn verdict(&self) -> &'static str {
        match self.judged.verdict {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }

    pub fn json(&self) -> Value {
        let judged = &self.judged;
        json!({
            "verdict": self.verdict(),
            "rule": judged.rule,
            "origin": judged.origin,
            "hint": judged.hint.to_string(),
            "danger": judged.is_danger,
            "remember": judged.memory.rules(),
        })
    }
}

/// The host of an address of the web, with its port where that is not the scheme's own; or that of a rule.
fn host(text: &str) -> Option<String> {
    if let Some(host) = text.strip_prefix("WebFetch(domain:").and_then(|rest| rest.strip_suffix(')')) {
        return Some(host.trim().to_ascii_lowercase());
    }
    let (rest, usual) = match text.strip_prefix("https://") {
        Some(rest) => (rest, "443"),
        None => (text.strip_prefix("http://")?, "80"),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let name = authority.rsplit_once('@').map_or(authority, |(_, name)| name);
    let (name, port) = match name.find(']') {
        Some(end) => (name.get(..=end)?, name.get(end + 1..)?.trim_start_matches(':')),
        None => name.split_once(':').unwrap_or((name, "")),
    };
    let shown = if port.is_empty() || port == usual { name.to_owned() } else { format!("{name}:{port}") };
    (!name.is_empty() && !shown.contains(char::is_whitespace)).then(|| shown.to_ascii_lowercase())
}

fn kind(tool: &str, input: &str) -> Result<ActionKind, CliError> {
    let is_own = AgentDir::split(input).is_some();
    match tool {
        "Read" | "read_file" | "list_dir" | "search_code" if is_own => Ok(ActionKind::ReadOwn),
        "Edit" | "Write" | "write_file" | "edit_file" if is_own => Ok(ActionKind::WriteOwn),
        "Read" | "read_file" | "list_dir" | "search_code" => Ok(ActionKind::Read),
        "Edit" | "Write" | "write_file" | "edit_file" => Ok(ActionKind::Write),
        "WebFetch" | "web_fetch" | "http_get" | "geocode" | "browser" => Ok(ActionKind::Fetch),
        "Agent" | "dispatch_task" => Ok(ActionKind::Team),
        _ => Err(CliError::said(Exit::Usage, |lang| lang.tool_not_judged(tool))),
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::agent::Constraints;
    use max_team_core::policy::Mode;

    use super::*;

    #[test]
    fn every_listed_tool_can_be_asked_about() {
        let constraints = Constraints::default();
        let rules = Rules::new(Mode::Default, &constraints);
        let search = SearchService::default();
        let ask = |tool| {
            PermissionQuestion { tool: Some(tool), input: "x", search: &search }.explain(Path::new("/p"), &rules)
        };
        for tool in PermissionQuestion::TOOLS {
            assert!(ask(tool).is_ok(), "{tool}");
        }
        assert!(ask("juggle").is_err());
    }
}
