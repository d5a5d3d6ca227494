//! Lines that print the history of a repository, without the files that are hidden from their agent.

use std::collections::BTreeSet;

use max_team_core::limits::HIDDEN_NAMES_MAX;
use max_team_core::policy::Visibility;
use max_team_core::policy::command_line::CommandLine;
use max_team_core::policy::program::HistoryQuery;

use crate::git::Repo;
use crate::tool::{ToolContext, ToolError};

/// A line as it runs, and how many files are left out of it.
pub(super) struct VisibleLine {
    pub(super) line: CommandLine,
    pub(super) hidden: usize,
}

impl VisibleLine {
    /// Asks git for the names of the files, and waits for it.
    pub(super) fn new(cx: &ToolContext, line: &CommandLine) -> Result<Self, ToolError> {
        let sight = if cx.sandbox.attended { Visibility::clone(&cx.sight) } else { cx.sight.for_scan() };
        let mut own = Self { line: line.clone(), hidden: 0 };
        let queries = if sight.is_whole() { Vec::new() } else { HistoryQuery::of_line(line) };
        let repo = if queries.is_empty() { None } else { Repo::open(cx.root.path(), &sight, &cx.cancel)? };
        let (Some(repo), CommandLine::Plain(parts)) = (repo, &mut own.line) else { return Ok(own) };
        let folder = repo.told(&["rev-parse", "--show-prefix"], "tell where the folder is")?.line();
        let is_path = |word: &str| cx.root.path().join(word).symlink_metadata().is_ok();
        let mut hidden = BTreeSet::new();
        for (at, query) in queries {
            let Some(part) = parts.get_mut(at) else { continue };
            let args = query.names(is_path);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let mut names = repo.long(&args, "name the files of this query")?;
            // A hidden file reads as empty in the sandbox, so also an unchanged one would differ.
            let tracked = repo.long(&["ls-files", "-z", "--full-name"], "name the tracked files")?;
            if names.is_cut || tracked.is_cut {
                return Err(unsure());
            }
            names.bytes.push(0);
            names.bytes.extend(tracked.bytes);
            let names = String::from_utf8(names.bytes).map_err(|_| unsure())?;
            let is_hidden = |name: &&str| {
                !name.strip_prefix(&*folder).is_some_and(|name| sight.is_visible(name.trim_matches('\n')))
            };
            let names = names.split(['\0', '\n']).filter(|name| !name.is_empty()).filter(is_hidden);
            let found: BTreeSet<String> = names.map(str::to_owned).collect();
            if found.len() > HIDDEN_NAMES_MAX {
                return Err(unsure());
            }
            part.argv = query.without(&found.iter().cloned().collect::<Vec<_>>(), is_path);
            hidden.extend(found);
        }
        own.hidden = hidden.len();
        Ok(own)
    }
}

/// The hidden files of a query cannot all be left out.
fn unsure() -> ToolError {
    ToolError::correctable("which hidden files this would show cannot be told; name fewer files, or use `git_diff`")
}
