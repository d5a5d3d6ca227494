//! Hostile paths at random: `fuzz_path [SECONDS] [SEED]`. The seed is printed; a failure prints the path and stops.
//!
//! However a path is written, what is blocked is never read, what lies outside the project is never read or removed
//! without a question, and what the team is made of is never written without one.
#![expect(clippy::print_stdout, clippy::panic, reason = "a harness that must stop loudly")]

mod chance;

use chance::Chance;
use max_team_core::agent::Constraints;
use max_team_core::policy::{Action, CommandLine, Mode, Permissions, Rules, Verdict, judge};

const NAMES: [&str; 14] =
    ["..", ".", "", "a", "b", ".env", "PROD.ENV", "src", ".git", ".GIT", "config", "agents.yaml", ".max-team", "r"];

/// Where a path leads, by the oldest way to find out.
fn parts(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = if path.starts_with('/') { Vec::new() } else { vec!["r".into()] };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part.to_lowercase()),
        }
    }
    parts
}

fn main() {
    let mut chance = Chance::from_args("fuzz_path");
    let permissions = Permissions { root: "/r".into(), ..Permissions::default() };
    let constraints = Constraints { blocked_patterns: vec!["*.env".into()], ..Constraints::default() };
    let rules = Rules { permissions: &permissions, approved: true, ..Rules::new(Mode::AcceptEdits, &constraints) };
    let verdict = |program: &str, path: &str| {
        let line = CommandLine::single(&[program.to_owned(), "--".to_owned(), path.to_owned()]);
        let action = Action { kind: max_team_core::policy::ActionKind::Execute, line: Some(line), ..Action::read("x") };
        judge(&rules, "run_shell", &action).verdict
    };
    while chance.goes_on() {
        let names: Vec<&str> = (0..=chance.below(6)).map(|_| chance.pick(&NAMES)).collect();
        let path = format!("{}{}", chance.pick(&["", "/", "./", "/r/"]), names.join("/"));
        let parts = parts(&path);
        let is_inside = parts.first().is_some_and(|first| first == "r");
        let is_blocked = parts.iter().any(|part| part.ends_with(".env"));
        let is_ours = is_inside && parts.iter().skip(1).any(|part| part == ".git" || part == ".max-team");
        let (read, write, removed) = (verdict("cat", &path), verdict("touch", &path), verdict("rm", &path));
        if is_blocked && (read, write, removed) != (Verdict::Deny, Verdict::Deny, Verdict::Deny) {
            panic!("{path:?} is blocked: {read:?} {write:?} {removed:?}");
        }
        if !is_inside && (read == Verdict::Allow || write == Verdict::Allow || removed == Verdict::Allow) {
            panic!("{path:?} is outside: {read:?} {write:?} {removed:?}");
        }
        if is_ours && (write == Verdict::Allow || removed == Verdict::Allow) {
            panic!("{path:?} is the team's: {write:?} {removed:?}");
        }
    }
    println!("{} paths, nothing found", chance.count());
}
