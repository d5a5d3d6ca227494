//! Hostile lines at random: `fuzz_shell [SECONDS] [SEED]`. The seed is printed; a failure prints the line and stops.
//!
//! Whatever the text is, reading never panics, what is plain reads the same again when written down, and a push never
//! passes without a question.
#![expect(clippy::print_stdout, clippy::panic, reason = "a harness that must stop loudly")]

mod chance;

use chance::Chance;
use max_team_core::agent::Constraints;
use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{CommandLine, Mode, Permissions, Rule, Rules, Verdict, judge};
use max_team_tools::shell;

const PIECES: [&str; 44] = [
    "git",
    "push",
    " ",
    "  ",
    "\t",
    "'",
    "\"",
    "\\",
    "$",
    "(",
    ")",
    "`",
    ";",
    "&&",
    "||",
    "|",
    "&",
    ">",
    "<",
    "2>&1",
    "\n",
    "\r",
    "{",
    "}",
    "*",
    "~",
    "=",
    "#",
    "!",
    "env",
    "sh -c",
    "find . -exec",
    "xargs",
    "timeout 5",
    "rm -rf",
    "/",
    "..",
    "-c",
    "--output=",
    "é",
    "\u{200b}",
    "\u{1f600}",
    "<<E",
    "a",
];

fn main() {
    let mut chance = Chance::from_args("fuzz_shell");
    let origin = Origin { scope: RuleScope::User, file: "f".into(), line: 1 };
    let anchors = Anchors { root: "/r", base: "/r", home: "/h" };
    let rules = ["Bash(git:*)", "Bash(env:*)", "Bash(find:*)", "Bash(xargs:*)", "Edit", "Read"];
    let rules = rules.iter().map(|text| Rule::new(List::Allow, text, origin.clone(), &anchors)).collect();
    let (permissions, free) =
        (Permissions { root: "/r".into(), rules, ..Permissions::default() }, Constraints::default());
    let rules = Rules { permissions: &permissions, approved: true, ..Rules::new(Mode::AcceptEdits, &free) };
    let mut plain = 0_u64;
    while chance.goes_on() {
        let text: String = (0..chance.below(16)).map(|_| chance.pick(&PIECES)).collect();
        let action = shell::action(&text, "/r".as_ref());
        let judged = judge(&rules, "run_shell", &action);
        let Some(line @ CommandLine::Plain(parts)) = &action.line else { continue };
        plain += 1;
        let again = shell::parse_line(&line.to_string());
        // The grammar may stumble over what we wrote down, but never makes another line of it.
        if matches!(again, CommandLine::Plain(_)) && again != *line {
            panic!("{text:?} is {line:?}, and then {again:?}");
        }
        let pushes = parts.iter().any(|part| {
            part.argv.first().is_some_and(|word| word == "git") && part.argv.get(1).is_some_and(|word| word == "push")
        });
        if pushes && judged.verdict == Verdict::Allow {
            panic!("{text:?} passed: {judged:?}");
        }
    }
    println!("{} lines, {plain} of them plain, nothing found", chance.count());
}
