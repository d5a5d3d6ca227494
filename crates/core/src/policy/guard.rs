//! What other programs run or obey: whoever changes it changes more than the place.
//!
//! One list for all who keep it: the gate asks a person, the tools that write refuse, the walls of commands hold it as
//! it is. Names are compared as the most forgiving file systems do: letter case does not count, invisible characters do
//! not exist.

use super::rule::absolute;

/// Where they lie beneath a project's folder, but for git's own folder, of which only a part is obeyed.
pub const GUARDED: [&str; 5] = [".max-team", ".claude", ".mcp.json", "config/agents.yaml", "config/config.yaml"];

/// A folder in which only the definitions are guarded: others keep code in one of that name. Who holds [`GUARDED`] as it
/// is holds those files too.
pub const DEFINITIONS: &str = "agents";

const TEAM: &str = "it says who is on the team and what they may do";

/// Why a change of this path changes more than the path.
pub fn guarded(path: &str) -> Option<&'static str> {
    let names: Vec<String> = path.split('/').filter(|part| !matches!(*part, "" | ".")).map(folded).collect();
    let has = |name: &str| names.iter().any(|own| own == name);
    if has(".git") {
        return Some("git runs what is in there (hooks, filters)");
    }
    if has(".max-team") || has(".claude") {
        return Some("it holds the team's settings and permissions");
    }
    match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["config"] | ["config", "agents.yaml" | "config.yaml"] => Some(TEAM),
        [DEFINITIONS, file] if file.ends_with(".md") => Some(TEAM),
        [.., ".mcp.json"] => Some("it names programs that are started"),
        _ => None,
    }
}

/// The same for files that this run was given by name, all absolute; also a folder that one of them lies in.
pub(super) fn given(files: &[String], path: &str) -> Option<&'static str> {
    let path = folded(&absolute("", &format!("/{path}")));
    let lies_in =
        |file: &String| folded(file).strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    files.iter().any(lies_in).then_some(TEAM)
}

fn folded(name: &str) -> String {
    // What HFS+ leaves out when it compares names (CVE-2014-9390).
    let hidden = |letter: &char| !matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    name.chars().filter(hidden).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_list_for_all() {
        for path in GUARDED {
            assert!(guarded(path).is_some() && guarded(&path.to_uppercase()).is_some(), "{path}");
        }
        for path in ["src/.git/config", "a/.claude/x", "a/.mcp.json", "agents/Leo.MD", ".g\u{200c}it/x", "./config"] {
            assert!(guarded(path).is_some(), "{path}");
        }
        for path in [
            "src/config/agents.yaml",
            "agents/a.py",
            "src/agents/a.md",
            "config/other.yaml",
            "src/a.rs",
            ".github/x",
            ".",
        ] {
            assert!(guarded(path).is_none(), "{path}");
        }
    }

    #[test]
    fn files_that_were_named_are_kept_with_their_folders() {
        let files = ["/p/team/Mine.yaml".to_owned()];
        for (path, kept) in
            [("p/team/mine.yaml", true), ("/p/team", true), ("p/team/other.yaml", false), ("p/te", false)]
        {
            assert_eq!(given(&files, path).is_some(), kept, "{path}");
        }
    }
}
