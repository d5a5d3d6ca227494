//! Other names that tools answer to.
//!
//! The one table of them: older names of ours, those of the designs this product was asked for in, and those that
//! models and definitions know from elsewhere. A name on the right may be of a tool that another crate adds, or that
//! is not there at all; the table says what is meant, never what there is. A definition may use any of them; a model
//! that calls a tool only a few, because rules judge a call by the name it was made under.

use max_team_core::task_list::OTHER_NAMES;

/// The tool that runs commands.
pub(crate) const COMMAND: &str = "run_shell";

/// The tool that searches files.
pub(crate) const SEARCH: &str = "search_code";

/// Tools whose fields have other names elsewhere.
const FILE_TOOLS: [&str; 6] = ["read_file", "write_file", "edit_file", "list_dir", SEARCH, COMMAND];

/// Fields of those tools, and what Claude Code, Codex, Gemini, Cursor and others call them.
const FIELDS: &[(&str, &str)] = &[
    (
        "path",
        "filepath file filename absolutepath notebookpath targetfile dirpath directory dir folder \
     targetdirectory relativeworkspacepath",
    ),
    ("content", "contents filetext text"),
    ("old", "oldstring oldstr oldtext"),
    ("new", "newstring newstr newtext"),
    ("all", "replaceall"),
    ("offset", "startline"),
    ("pattern", "query regex regexp"),
    ("glob", "include includepattern filepattern"),
    ("ignore_case", "i caseinsensitive"),
    ("context", "c"),
    ("files_only", "filesonly"),
    ("command", "cmd"),
    ("background", "runinbackground isbackground"),
];

const ALIASES: &[(&str, &[&str])] = &[
    (COMMAND, &["exec", "bash", "shell", "execute", "runcommand", "terminal", "runterminalcmd"]),
    ("shell_output", &["bashoutput"]),
    ("shell_stop", &["killshell", "killbash"]),
    ("read_file", &["read", "view", "notebookread", "readmanyfiles"]),
    ("write_file", &["write", "createfile"]),
    ("edit_file", &["edit", "multiedit", "notebookedit", "strreplace", "replace", "applypatch"]),
    ("list_dir", &["ls", "list", "listfiles", "listdirectory", "glob"]),
    ("search_code", &["grep", "grepsearch", "search", "codebasesearch", "searchfiles", "searchfilecontent"]),
    ("web_fetch", &["httpget", "fetch", "fetchurl"]),
    ("web_search", &["googlewebsearch"]),
    ("agent", &["subagent"]),
    ("need_clarify", &["askuserquestion"]),
];

/// Names under which a model may call: an older one, and those of tools that rules know by what they do.
const CALLED: &[&str] = &["exec", "Bash", "BashOutput", "KillShell", "http_get", "WebFetch", "WebSearch"];

/// Names that keep what they are, although their letters are those of another: `Task` is what others call `agent`.
const EXACT: &[(&str, &str)] = &[("Task", "agent")];

/// Tools that this product has or may have, whose spelling elsewhere differs only in capitals and joints.
const SPELT: &str = "agent browser coverage_report edit_file geocode git_commit git_diff git_log git_status list_dir \
    memory_read memory_write need_clarify query_log query_metrics read_file run_shell run_test \
    search_code send_message skill task task_create task_query task_update web_fetch web_search write_file";

/// What elsewhere keeps lists, asks for a plan to be approved or runs commands of the user's: nothing here is given to an
/// agent for that, and nothing is missing without it.
const NOTHING: &str = "todowrite todoread exitplanmode enterplanmode slashcommand taskoutput taskstop listmcpresources \
    readmcpresource";

/// The name of the tool that is meant; the name itself if it is no other name of a tool.
pub fn canonical(name: &str) -> &str {
    if let Some((_, meant)) = EXACT.iter().find(|(exact, _)| *exact == name) {
        return meant;
    }
    if words(SPELT).any(|known| known == name) {
        return name;
    }
    // Definitions are read by the hundred, so the letters are only looked at once.
    let letters: String = bare(name).map(char::from).collect();
    let alias = ALIASES.iter().find(|(_, others)| others.contains(&letters.as_str())).map(|(meant, _)| *meant);
    let spelt = || words(SPELT).find(|known| bare(known).eq(letters.bytes()));
    let other = || OTHER_NAMES.iter().find(|(other, _)| bare(other).eq(letters.bytes())).map(|(_, meant)| *meant);
    alias.or_else(spelt).or_else(other).unwrap_or(name)
}

/// Like `canonical`, for a call.
pub(crate) fn called(name: &str) -> &str {
    if CALLED.contains(&name) { canonical(name) } else { name }
}

/// The field of a file tool that is meant by another name; `-i` and `-C` are those of grep.
pub(crate) fn field(tool: &str, name: &str) -> Option<&'static str> {
    let letters: String = bare(name).map(char::from).collect();
    let known = || {
        FIELDS
            .iter()
            .find(|(ours, theirs)| bare(ours).eq(letters.bytes()) || words(theirs).any(|other| other == letters))
    };
    FILE_TOOLS.contains(&tool).then(known).flatten().map(|(ours, _)| *ours)
}

/// Whether it is a tool of others that does nothing which an agent here would need.
pub fn is_needless(name: &str) -> bool {
    words(NOTHING).any(|known| is_same(known, name))
}

/// Whether two names differ only in capitals and joints: `web-fetch`, `WebFetch` and `web_fetch` are one.
pub fn is_same(one: &str, other: &str) -> bool {
    bare(one).eq(bare(other))
}

/// The words of a table's row.
fn words(row: &'static str) -> impl Iterator<Item = &'static str> {
    row.split(' ')
}

/// The letters of a name, without capitals and joints.
fn bare(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(|byte| !matches!(byte, b'-' | b'_' | b'.' | b' ')).map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_known() {
        let table = [
            ("read-file", "read_file"),
            ("Read", "read_file"),
            ("NotebookEdit", "edit_file"),
            ("MultiEdit", "edit_file"),
            ("write-file", "write_file"),
            ("list_files", "list_dir"),
            ("LS", "list_dir"),
            ("Glob", "list_dir"),
            ("grep_search", "search_code"),
            ("Grep", "search_code"),
            ("run-shell", "run_shell"),
            ("Bash", "run_shell"),
            ("exec", "run_shell"),
            ("BashOutput", "shell_output"),
            ("KillShell", "shell_stop"),
            ("http-get", "web_fetch"),
            ("http_get", "web_fetch"),
            ("WebFetch", "web_fetch"),
            ("web_fetch", "web_fetch"),
            ("WebSearch", "web_search"),
            ("memory.read", "memory_read"),
            ("memory.write", "memory_write"),
            ("Task", "agent"),
            ("task", "task"),
            ("Agent", "agent"),
            ("SendMessage", "send_message"),
            ("TaskCreate", "task_create"),
            ("TaskUpdate", "task_update"),
            ("TaskList", "task_query"),
            ("task_get", "task_query"),
            ("Skill", "skill"),
            ("read_file", "read_file"),
            ("mcp__x__Read", "mcp__x__Read"),
            ("nonsense", "nonsense"),
        ];
        for (name, meant) in table {
            assert_eq!(canonical(name), meant, "{name}");
        }
        assert!(is_needless("TodoWrite") && is_needless("ExitPlanMode") && !is_needless("Read"));
    }
}
