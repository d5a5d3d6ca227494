//! The rules of the sources: imports between crates, the length of files, and the words of names, comments and messages.
//!
//! It reads `cargo metadata`, the lock file and the sources; it compiles nothing. When it fails, reshape the code:
//! the limits are not the thing to change.
#![expect(clippy::unwrap_used, reason = "a broken fixture must fail the test loudly")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Lines of a Rust file that fail the build. The aim is 400.
const FILE_LINES_MAX: usize = 800;
/// Type names that several modules of one crate may share. The aim is none.
const SHARED_TYPE_NAMES_MAX: usize = 10;
/// Characters of a string that is a sentence. Shorter ones may be names, which are stored.
const SENTENCE_MIN: usize = 25;
/// Subjects that hide what a sentence is about.
const PRONOUNS: [&str; 7] = ["whoever", "whatever", "whomever", "whom", "somebody", "nobody", "everybody"];
/// Words that are no name for a type: they say what happened to it and not what it is.
const PARTICIPLES: &str = " Told Said Kept Held Seen Known Left Found Asked Gone Put Taken Given Walked Landed Settled \
    Sorted Carried Shown Wanted Begun Done Ran Tried Met Read Written Waiting Standing Parting Ending Calling Meant Sent \
    Lost Cut Made Grown Bound Stored Named Chosen Drawn Folded Opened Touched Fitted Served Judged Looked ";
/// Words that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = ["utils", "util", "helpers", "helper", "manager", "common", "misc", "legacy"];

/// Who may import whom; `dev` may also be imported by tests.
fn may_import(package: &str) -> &'static [&'static str] {
    match package {
        "max-team-llm" | "max-team-journal" => &["max-team-core"],
        "max-team-tools" => &["max-team-core", "max-team-sandbox"],
        "max-team-mcp" => &["max-team-core", "max-team-sandbox", "max-team-tools"],
        "max-team-runtime" => &["max-team-core", "max-team-llm", "max-team-journal", "max-team-tools"],
        "max-team-workspace" => {
            &["max-team-core", "max-team-llm", "max-team-tools", "max-team-mcp", "max-team-runtime"]
        }
        "max-team-gateway" | "max-team-terminal" => &["max-team-core", "max-team-runtime", "max-team-workspace"],
        "max-team" => &[
            "max-team-core",
            "max-team-llm",
            "max-team-sandbox",
            "max-team-tools",
            "max-team-mcp",
            "max-team-runtime",
            "max-team-workspace",
            "max-team-gateway",
            "max-team-terminal",
        ],
        "max-team-testkit" => &["max-team-core"],
        _ => &[],
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn files(under: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(under).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "node_modules", ".git", "dist"].contains(&name.as_str()) {
                files(&path, ending, found);
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    assert!(found.len() > 50, "the sources were not found");
    found
}

#[test]
fn layers_point_one_way() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: Vec<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    assert_eq!(ours.len(), 12, "a thirteenth crate needs an argument: {ours:?}");
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            let dev = dependency["kind"].as_str() == Some("dev");
            let fine =
                may_import(name).contains(&other) || (dev && ["max-team-testkit", "max-team-journal"].contains(&other));
            if ours.contains(&other) && !fine {
                wrong.push(format!("{name} imports {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn core_is_pure() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let core = packages.iter().find(|package| package["name"] == "max-team-core").unwrap();
    let names: Vec<&str> = core["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["serde", "serde_json", "sha2", "thiserror", "uuid"], "core takes no IO, clock or randomness in");
    let mut found = Vec::new();
    files(&root().join("crates/core/src"), ".rs", &mut found);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        for banned in
            ["std::fs", "std::net", "std::env", "std::process", "std::thread", "SystemTime", "Instant::", "now_v"]
        {
            assert!(!text.contains(banned), "{} uses `{banned}`", path.display());
        }
    }
}

/// Frontends ask the runtime (`query`), and commands about storage use its verbs (`maintenance`): the journal itself is the runtime's.
#[test]
fn frontends_do_not_hold_the_journal() {
    let frontends = ["crates/gateway/src/", "crates/max-team/src/", "crates/terminal/src/", "crates/workspace/src/"];
    for path in sources() {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        if !frontends.iter().any(|frontend| name.starts_with(frontend)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for word in
            ["max_team_journal", "storage::Journal,", "storage::Journal;", "{Journal,", " Journal,", "ReadModel"]
        {
            let is_used = text.lines().any(|line| line.contains("max_team_") && line.contains(word));
            assert!(!is_used, "{name}: `{word}`; use `max_team_runtime::query` or `maintenance` instead");
        }
    }
}

#[test]
fn no_cargo_features_for_behaviour() {
    for package in metadata()["packages"].as_array().unwrap() {
        let features = package["features"].as_object().unwrap();
        assert!(features.is_empty(), "{} has features {features:?}", package["name"]);
    }
}

#[test]
fn one_stack_of_each_kind() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in lock.lines() {
        if let Some(text) = line.strip_prefix("name = ") {
            name = text.trim_matches('"');
        } else if let Some(text) = line.strip_prefix("version = ") {
            versions.entry(name).or_default().push(text.trim_matches('"'));
        }
    }
    for banned in ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls", "sqlx"] {
        assert!(!versions.contains_key(banned), "`{banned}` entered the lock file");
    }
    for single in ["rustls", "ring", "libsqlite3-sys", "rusqlite", "hyper", "reqwest", "h2", "tokio", "serde_json"] {
        assert_eq!(versions.get(single).map(Vec::len), Some(1), "{single}: {:?}", versions.get(single));
    }
}

#[test]
fn files_fit_a_head() {
    for path in sources() {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= FILE_LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn names_say_something() {
    for path in sources() {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let empty = EMPTY_NAMES.contains(&stem.as_str()) || stem.ends_with("_v2") || stem.ends_with("_old");
        assert!(!empty, "{} says nothing about what is inside", path.display());
    }
}

#[test]
fn modules_open_with_what_they_do() {
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{} does not say what it does", path.display());
    }
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() {
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        // Written apart, so that this line does not find itself.
        let allow = ["#[", "allow("].concat();
        assert!(!text.contains(&allow), "{} allows a lint; expect it with a reason", path.display());
    }
}

/// The product's sources without their tests, and the crate of each.
fn products() -> Vec<(String, PathBuf, String)> {
    let crates = root().join("crates");
    let inside = |path: &Path| path.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
    let is_product = |path: &PathBuf| {
        let name = inside(path);
        let is_test = name.contains("/tests/") || name.ends_with("/tests.rs") || name.starts_with("testkit/");
        name.contains("/src/") && !is_test
    };
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
        let package = inside(&path).split('/').next().unwrap_or_default().to_owned();
        (package, path, text.get(..end).unwrap_or_default().to_owned())
    };
    sources().into_iter().filter(is_product).map(read).collect()
}

fn has_pronoun(text: &str) -> bool {
    let text = text.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).any(|word| PRONOUNS.contains(&word))
}

#[test]
fn comments_and_messages_name_their_subject() {
    for (_, path, text) in products() {
        for (at, line) in text.lines().enumerate() {
            let string = || line.split('"').nth(1).filter(|string| string.len() >= SENTENCE_MIN);
            let said = line.trim_start().strip_prefix("//").or_else(string).unwrap_or_default();
            assert!(!has_pronoun(said), "{}:{}: name the subject: {said}", path.display(), at + 1);
        }
    }
}

#[test]
fn comments_have_more_than_two_words() {
    for (_, path, text) in products() {
        let is_comment = |line: Option<&&str>| line.is_some_and(|line| line.trim_start().starts_with("//"));
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(said) = line.trim_start().strip_prefix("//") else { continue };
            let is_alone = !is_comment(lines.get(at + 1)) && (at == 0 || !is_comment(lines.get(at - 1)));
            let said = said.trim_start_matches(['/', '!', ' ']);
            let is_word = !said.starts_with(['#', '`', '-']);
            let is_empty = is_alone && is_word && said.split_whitespace().count() <= 2;
            assert!(!is_empty, "{}:{}: `{said}` says nothing: leave it out, or say why", path.display(), at + 1);
        }
    }
}

#[test]
fn types_are_nouns_and_few_share_a_name() {
    let mut names = BTreeMap::<(String, String), Vec<PathBuf>>::new();
    for (package, path, text) in products() {
        for line in text.lines() {
            let line = line.trim_start();
            let line =
                line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').map_or(line, |(_, rest)| rest));
            let kinds = ["struct ", "enum ", "trait "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else { continue };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let is_noun = !PARTICIPLES.contains(&format!(" {name} "));
            assert!(is_noun, "{}: `{name}` does not say what the type is", path.display());
            names.entry((package.clone(), name)).or_default().push(path.clone());
        }
    }
    let shared: Vec<_> = names.into_iter().filter(|(_, paths)| paths.len() > 1).collect();
    assert!(shared.len() <= SHARED_TYPE_NAMES_MAX, "names of several types: {shared:#?}");
}
