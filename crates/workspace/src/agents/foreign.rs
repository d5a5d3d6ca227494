//! Definitions of many hands, and what each becomes.

use std::fmt::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;

use super::agent_file::{self, FILE_BYTES_MAX};
use crate::config::{ConfigFile, Env, FileTrust};
use crate::i18n::Lang;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/agents/fixtures").join(name)
}

fn file(name: &str, standing: FileTrust) -> ConfigFile {
    ConfigFile { path: name.into(), shown: name.to_owned(), standing, named: false }
}

/// What a file becomes, as people compare it.
fn told(name: &str, bytes: &[u8], standing: FileTrust) -> String {
    let mut text = format!("## {name}\n");
    match agent_file::read(bytes, &file(name, standing), &Env::default()) {
        Ok(None) => text.push_str("no definition\n"),
        Err(why) => {
            let _ = writeln!(text, "broken: {}", why.get(Lang::En));
        }
        Ok(Some(card)) => {
            let mut told = serde_json::to_value(&card.member).unwrap();
            let own = told["definition"].as_object_mut().unwrap();
            // Every one of these is an expert with a short text, unless it says otherwise.
            own.retain(|key, value| !(["place", "role"].contains(&key.as_str()) && value == "expert"));
            let _ = writeln!(text, "{told}");
            if !card.left_out.is_empty() {
                let _ = writeln!(text, "left out: {}", card.left_out.join(", "));
            }
            card.warnings.iter().for_each(|warning| {
                let _ = writeln!(text, "warning: {}", warning.get(Lang::En));
            });
        }
    }
    text
}

fn all(name: &str, standing: FileTrust) -> (usize, String) {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let told: Vec<String> = files
        .iter()
        .map(|path| told(&path.file_name().unwrap().to_string_lossy(), &std::fs::read(path).unwrap(), standing))
        .collect();
    (told.len(), told.join("\n"))
}

#[test]
fn every_style_of_front_matter_is_read() {
    let (count, told) = all("styles", FileTrust::Trusted);
    assert!(count >= 50, "{count}");
    insta::assert_snapshot!(told);
}

#[test]
fn the_designs_own_files_load_as_they_stand() {
    let (_, told) = all("seeds", FileTrust::Shared);
    assert!(!told.contains("broken") && !told.contains("warning") && !told.contains("no definition"), "{told}");
    insta::assert_snapshot!(told);
}

#[test]
fn rights_a_project_may_not_grant_are_dropped() {
    let read = |name: &str| {
        let path = folder("styles").join(name);
        told(name, &std::fs::read(path).unwrap(), FileTrust::Project)
    };
    let told = ["bypass.md", "hooks.md", "mcp-inline.md", "kebab-keys.md", "constraints.md", "all-fields.md"].map(read);
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_limit_that_cannot_be_read_makes_no_agent() {
    for (line, told) in [
        ("disallowedTools: {Bash: true}", "`disallowedTools`: expected"),
        ("tools: [{name: Read}]", "`tools`: expected"),
        ("tools: {Bash: perhaps}", "`tools.Bash`: expected"),
        ("allowed_commands: {make: true}", "`allowed_commands`: expected"),
        ("permissionMode: plann", "there is no mode `plann`"),
        ("permissionMode: [plan]", "there is no mode a list"),
        ("write_globs: {src: true}", "`write_globs`: expected"),
        ("owns: {src: true}", "`owns`: expected"),
        ("maxTurns: many", "`maxTurns`: expected"),
        ("isolation: vm", "`isolation`: expected"),
        ("budget: {usd: free}", "`budget`: expected"),
        ("max: [read_only]", "`max`: expected"),
        ("max: {permissionMode: plann}", "there is no mode `plann`"),
    ] {
        let text = format!("---\nname: x\n{line}\n---\nYou review.\n");
        for standing in [FileTrust::Trusted, FileTrust::Project] {
            let read = agent_file::read(text.as_bytes(), &file("x.md", standing), &Env::default());
            assert!(read.as_ref().is_err_and(|why| why.get(Lang::En).contains(told)), "{line}: {read:?}");
        }
    }
}

#[test]
fn an_empty_list_allows_nothing() {
    let none = Some(Vec::new());
    let read = |line: &str| {
        let text = format!("---\nname: x\n{line}\n---\nYou review.\n");
        agent_file::read(text.as_bytes(), &file("x.md", FileTrust::Trusted), &Env::default()).unwrap().unwrap()
    };
    assert!(read("color: red").member.definition.inherits_tools, "a list that is left out restricts nothing");
    for line in ["tools: []", "tools: \"\"", "tools:", "tools: {}", "allowed-tools: []", "max: {tools: []}"] {
        let own = read(line).member.definition;
        assert!(own.tools.is_empty() && !own.inherits_tools, "{line}");
    }
    for line in ["tools: [Read()]", "tools: [WebFetch(), Grep()]", "tools: Skill()", "allowed-tools: [mcp__x__y()]"] {
        let own = read(line).member.definition;
        assert!(own.tools.is_empty() && !own.inherits_tools, "{line}");
    }
    assert!(read("constraints: {allowed_hosts: []}").member.constraints.allowed_hosts.is_empty());
    for line in ["allowed_commands: []", "allowed_commands:", "tools: [Read, Bash()]", "tools: Bash(:*)"] {
        assert_eq!(read(line).member.constraints.allowed_commands, none, "{line}");
    }
    for line in ["write_globs: []", "write_globs:", "constraints: {write_patterns: []}", "tools: [Edit()]"] {
        assert_eq!(read(line).member.constraints.write_patterns, none, "{line}");
    }
    assert_eq!(read("constraints: {allowed_dirs: []}").member.constraints.allowed_dirs, none);
    assert_eq!(read("owns: []").member.definition.work.owns, none);
    assert_eq!(read("tools: [Read, Agent()]").member.definition.may_call, none);
    // A limit without a value could mean either: it is refused.
    for key in ["allowed_dirs", "allowed_commands", "write_patterns", "allowed_hosts"] {
        let text = format!("---\nname: x\nconstraints:\n  {key}:\n---\nYou review.\n");
        let read = agent_file::read(text.as_bytes(), &file("x.md", FileTrust::Trusted), &Env::default());
        assert!(
            read.as_ref().is_err_and(|why| why.get(Lang::En).contains("write `[]` to allow nothing")),
            "{key}: {read:?}"
        );
    }
}

#[test]
fn commands_that_a_stranger_names_are_known_as_such() {
    for line in [
        "allowed_commands: [make]",
        "tools: Bash(make:*)",
        "constraints: {allowed_commands: [make]}",
        "max: {allowed_commands: [make]}",
        "constraints: {allowed_commands: [make]}\nallowed_commands: [make]",
    ] {
        let text = format!("---\nname: x\n{line}\n---\nYou review.\n");
        let foreign = |standing| {
            let card = agent_file::read(text.as_bytes(), &file("x.md", standing), &Env::default()).unwrap().unwrap();
            assert!(card.member.constraints.allowed_commands.is_some(), "{line}");
            card.member.constraints.foreign_commands
        };
        assert!(foreign(FileTrust::Project) && !foreign(FileTrust::Trusted), "{line}");
    }
}

#[test]
fn texts_beside_definitions_are_passed_over_where_others_keep_theirs() {
    let read = |name: &str, text: &str| {
        agent_file::read(text.as_bytes(), &file(name, FileTrust::Shared), &Env::default()).unwrap().is_some()
    };
    assert!(!read("notes.md", "# Notes\n") && !read("post.md", "---\ntitle: x\n---\ny"));
    assert!(read("x-sub.md", "You x.") && read("y.md", "---\nname: y\n---\n") && read("z.md", "---\ntype: sub\n---\n"));
}

#[test]
fn too_large_files_are_named() {
    let text = |bytes: usize| format!("---\nname: large\n---\n{}", "a".repeat(bytes));
    let most = usize::try_from(FILE_BYTES_MAX).unwrap();
    let read =
        |bytes: usize| agent_file::read(text(bytes).as_bytes(), &file("large.md", FileTrust::Trusted), &Env::default());
    assert_eq!(read(most).unwrap_err().get(Lang::En), "large.md:1: larger than 256 KiB");
    assert_eq!(read(most - 100).unwrap().unwrap().member.definition.prompt.len(), most - 100);
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for standing in [FileTrust::Trusted, FileTrust::Shared] {
            let _ = agent_file::read(&bytes, &file("x.md", standing), &Env::default());
        }
    }

    /// Text that looks like front matter, of pieces that mean something.
    #[test]
    fn no_front_matter_breaks_the_reader(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "---\n", "name", "tools", "cache", "max", ": ", ":", "\n", "\r\n", "\t", "  ", "- ", "a", "中", "[", "]",
                "{", "}", "\"", "'", "|", ">", "#", "&a", "*a", "!", "Bash(", ")", ",", "\u{feff}", "constraints", "type",
            ]),
            0..60,
        )
    ) {
        let text = format!("---\n{}", pieces.concat());
        if let Ok(Some(card)) = agent_file::read(text.as_bytes(), &file("x.md", FileTrust::Project), &Env::default()) {
            let own = card.member.definition;
            prop_assert!(!own.name.is_empty() && !own.name.contains(char::is_whitespace));
            prop_assert!(card.member.mcp_servers.is_empty() && card.member.constraints.allowed_hosts.is_empty());
        }
    }
}
