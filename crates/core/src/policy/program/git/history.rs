//! Git commands that print contents from the history and can leave out files: `git diff`, `git show`, `git log -p`.
//!
//! Paths to leave out count only where git compares commits: `git show BLOB` ignores them. So each revision is rewritten to
//! `REVISION^{commit}`.

use super::contents;
use crate::policy::command_line::{CommandLine, SimpleCommand};
use crate::policy::program::{flags, table};

/// Sub-commands that take revisions and then paths.
const SUBS: [&str; 4] = ["diff", "show", "log", "whatchanged"];
/// Options that show other contents than those of files that differ between the revisions, or that name them otherwise.
const OTHERS: [&str; 9] = [
    "--no-index",
    "--stdin",
    "--submodule",
    "--relative",
    "--no-relative",
    "--full-diff",
    "--find-object",
    "--diff-filter",
    "-L",
];
/// Options with which git does not list all names.
const UNLISTED: [&str; 7] = ["--follow", "--check", "--quiet", "-q", "-s", "--no-patch", "--exit-code"];
/// Ends of a revision that stand for several commits.
const SEVERAL: [&str; 3] = ["^!", "^@", "^-"];

/// A command that prints contents from the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    sub: String,
    options: Vec<String>,
    /// Words before `--`: revisions, then paths.
    words: Vec<String>,
    /// Words behind `--`.
    paths: Vec<String>,
}

impl HistoryQuery {
    /// The queries of a line, each with its place; none if the line changes the folder, which would be another one then.
    pub fn of_line(line: &CommandLine) -> Vec<(usize, Self)> {
        let CommandLine::Plain(parts) = line else { return Vec::new() };
        let is_cd = |part: &SimpleCommand| part.argv.first().is_some_and(|program| program == "cd");
        if parts.iter().any(is_cd) {
            return Vec::new();
        }
        let own = parts.iter().enumerate().filter(|(_, part)| part.env.is_empty());
        own.filter_map(|(at, part)| Some((at, Self::of(&part.argv)?))).collect()
    }

    fn of(argv: &[String]) -> Option<Self> {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let ["git", sub, args @ ..] = words.as_slice() else { return None };
        if !SUBS.contains(sub) || !contents::are_shown(sub, args) {
            return None;
        }
        let cut = args.iter().position(|word| *word == "--").unwrap_or(args.len());
        let (before, after) = args.split_at(cut);
        let (row, _, _) = table::find("git", words.get(1..)?)?;
        let seen = flags::read(row, before);
        let is_other = |name: &&str| OTHERS.iter().any(|other| name.starts_with(other));
        if !seen.unknown.is_empty() || !seen.effects.is_empty() || seen.names.iter().any(is_other) {
            return None;
        }
        // The words are slices of the arguments: so a word is told from an equal value of an option.
        let is_word = |word: &&&str| seen.rest.iter().any(|rest| std::ptr::eq(rest.as_ptr(), word.as_ptr()));
        let (words, options): (Vec<&&str>, Vec<&&str>) = before.iter().partition(is_word);
        let is_plain = |word: &&&str| {
            !word.contains([':', '{', '\\']) && !SEVERAL.iter().any(|end| word.contains(end)) && !word.is_empty()
        };
        if !words.iter().all(is_plain) {
            return None;
        }
        // One behind another option could be its value, which must not be dropped.
        let is_unlisted = |word: &&str| UNLISTED.contains(word);
        let is_value = |pair: &[&&str]| matches!(pair, [before, word] if is_unlisted(word) && !is_unlisted(before));
        if options.windows(2).any(is_value) {
            return None;
        }
        let own = |words: &[&&str]| words.iter().map(|word| (**word).to_owned()).collect();
        let paths = after.iter().skip(1).map(|word| (*word).to_owned()).collect();
        Some(Self { sub: (*sub).to_owned(), options: own(&options), words: own(&words), paths })
    }

    /// The arguments of git that print the names of all files that the query could show, each ended by a NUL or a new line.
    pub fn names(&self, is_path: impl Fn(&str) -> bool) -> Vec<String> {
        let mut args = vec![self.sub.clone()];
        let listed = self.options.iter().filter(|option| !UNLISTED.contains(&option.as_str()));
        args.extend(listed.cloned());
        args.extend(["--name-only", "-z", "--no-renames", "--no-relative", "--no-color"].map(str::to_owned));
        if self.sub != "diff" {
            args.extend(["--format=", "--no-graph"].map(str::to_owned));
        }
        args.extend(self.revisions(is_path).0);
        args.push("--".to_owned());
        args
    }

    /// The same command without these files, which are named from the top of the working tree.
    pub fn without(&self, hidden: &[String], is_path: impl Fn(&str) -> bool) -> Vec<String> {
        let (revisions, more) = self.revisions(is_path);
        let mut argv = vec!["git".to_owned(), self.sub.clone()];
        argv.extend(self.options.clone());
        argv.push("--submodule=short".to_owned());
        argv.extend(revisions);
        argv.push("--".to_owned());
        argv.extend(more);
        argv.extend(self.paths.clone());
        argv.extend(hidden.iter().map(|path| format!(":(top,exclude,literal){path}")));
        argv
    }

    /// The revisions, as commits, and the paths that follow them.
    fn revisions(&self, is_path: impl Fn(&str) -> bool) -> (Vec<String>, Vec<String>) {
        let first = self.words.iter().position(|word| is_path(word)).unwrap_or(self.words.len());
        let (revisions, paths) = self.words.split_at(first);
        (revisions.iter().map(|word| as_commits(word)).collect(), paths.to_vec())
    }
}

/// `a` as `a^{commit}`, `a..b` as `a^{commit}..b^{commit}`.
fn as_commits(word: &str) -> String {
    let one = |name: &str| if name.is_empty() { String::new() } else { format!("{name}^{{commit}}") };
    for dots in ["...", ".."] {
        if let Some((from, to)) = word.split_once(dots) {
            return format!("{}{dots}{}", one(from), one(to));
        }
    }
    one(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Option<HistoryQuery> {
        HistoryQuery::of(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn revisions_become_commits_and_hidden_files_are_left_out() {
        for (text, want) in [
            ("git diff", "git diff --submodule=short -- X"),
            ("git diff HEAD~2 -- src", "git diff --submodule=short HEAD~2^{commit} -- src X"),
            (
                "git diff main..topic --stat -p",
                "git diff --stat -p --submodule=short main^{commit}..topic^{commit} -- X",
            ),
            ("git diff ...topic src", "git diff --submodule=short ...topic^{commit} -- src X"),
            ("git show abc123", "git show --submodule=short abc123^{commit} -- X"),
            ("git log -p -n 5 5", "git log -p -n 5 --submodule=short 5^{commit} -- X"),
            ("git log -p ^main", "git log -p --submodule=short ^main^{commit} -- X"),
        ] {
            let hidden = [".env".to_owned()];
            let argv = query(text).unwrap().without(&hidden, |word| word == "src").join(" ");
            assert_eq!(argv, want.replace('X', ":(top,exclude,literal).env"), "{text}");
        }
        let names = query("git log -p -n 5 main src").unwrap().names(|word| word == "src").join(" ");
        let options = "--name-only -z --no-renames --no-relative --no-color --format= --no-graph";
        assert_eq!(names, format!("log -p -n 5 {options} main^{{commit}} --"));
    }

    #[test]
    fn what_cannot_leave_out_files_is_none() {
        for text in [
            "git log --oneline",
            "git diff --no-index a b",
            "git log -p --full-diff src",
            "git log -L1,5:.env",
            "git diff --submodule=diff",
            "git show HEAD^{tree}",
            "git diff HEAD:.env HEAD~1:.env",
            "git show abc^!",
            "git log -p --stdin",
            "git -C sub diff",
            "git diff --output=x",
            "git diff --ext-diff",
            "git cat-file -p abc",
            "git stash show -p",
            "/tmp/git diff",
        ] {
            assert_eq!(query(text), None, "{text}");
        }
    }
}
