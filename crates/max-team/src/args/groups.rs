//! The list of commands in `max-team --help`, grouped by purpose.

use clap::CommandFactory as _;
use max_team_workspace::i18n::Lang;

use super::{Cli, chinese, documented, examples};

pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Talk", &["demo", "serve", "send", "attach", "sessions"]),
    ("Plans", &["plan", "run", "plans", "inbox", "approve", "deny", "stop"]),
    ("Watch", &["ps", "events", "logs", "mail", "trace", "cost"]),
    ("Team", &["team", "agents", "tools", "tasks", "worktrees"]),
    ("Knowledge", &["memory", "skills", "files", "cache", "fetch"]),
    ("Records", &["replay", "fork", "rewind", "compare", "audit", "backup", "restore", "export"]),
    ("Setup", &["config", "permissions", "models", "mcp", "doctor", "completion", "man"]),
];
const INDENT: usize = 2;
const NAME_COLUMNS: usize = 12;

/// The command line whose help lists the commands by group. Building the list costs time, so only help does it.
pub(super) fn grouped(lang: Lang) -> clap::Command {
    if lang == Lang::Zh {
        return examples::with_examples(chinese::in_chinese(Cli::command()), lang);
    }
    let command = documented();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Arguments:\n{{positionals}}\n\nOptions:\n{{options}}{{after-help}}",
        listed(&command)
    );
    command.help_template(template)
}

fn listed(command: &clap::Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{group}:\n"));
        for about in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let words = about.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("{:INDENT$}{:NAME_COLUMNS$} {words}\n", "", about.get_name()));
        }
        text.push('\n');
    }
    text.push_str("`max-team help COMMAND` explains a command with examples.\n\n");
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_visible_command_is_in_one_group_and_fits_a_line() {
        let mut command = Cli::command();
        command.build();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
        let shown: BTreeSet<&str> = shown.map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(shown.len(), grouped.len());
        assert_eq!(shown, grouped.into_iter().collect());
        assert!(listed(&command).lines().all(|line| line.chars().count() <= 100), "{}", listed(&command));
    }
}
