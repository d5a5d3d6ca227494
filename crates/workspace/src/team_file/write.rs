//! A team into its file's text; what is empty or usual is left out.

use max_team_runtime::Spawn;

use super::TeamFile;
use crate::plan_file::scalar;

/// Where the fields of a member stand.
const INDENT: usize = 4;

/// The whole file.
pub fn write(team: &TeamFile) -> String {
    let mut text = format!("name: {}\n", scalar::line(&team.name, false));
    if !team.description.is_empty() {
        text.push_str(&format!("description: {}\n", scalar::block(&team.description, 0)));
    }
    if let Some(lead) = &team.lead {
        text.push_str(&format!("lead: {}\n", scalar::line(lead, false)));
    }
    text.push_str("members:\n");
    team.members.iter().for_each(|member| text.push_str(&entry(member)));
    text
}

fn entry(member: &Spawn) -> String {
    let mut text = format!("  - name: {}\n", scalar::line(&member.name, false));
    let mut row = |key: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            text.push_str(&format!("{}{key}: {value}\n", " ".repeat(INDENT)));
        }
    };
    let word = |text: &Option<String>| text.as_ref().map(|text| scalar::line(text, false));
    let block = |text: &str| Some(scalar::block(text, INDENT)).filter(|_| !text.is_empty());
    row("role", block(&member.role));
    row("type", word(&member.kind));
    row("model", word(&member.model));
    row("mode", member.mode.map(|mode| mode.name().to_owned()));
    row("plan_first", member.plan_first.then(|| "true".to_owned()));
    row("color", word(&member.color));
    row("isolation", member.isolation.filter(|isolation| !isolation.is_none()).map(|_| "worktree".to_owned()));
    row("auto_claim", member.claims.filter(|claims| *claims).map(|_| "true".to_owned()));
    row("prompt", block(&member.prompt));
    text
}
