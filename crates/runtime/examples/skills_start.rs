//! How long a catalogue of many skills takes: `cargo run --release -p max-team-runtime --example skills_start -- 500`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement talks to whoever runs it")]

use std::time::Instant;

use max_team_runtime::skills::{Catalogue, Places};

const HEAD: &str = "description: Works with files of one kind, fills forms in, and joins them. Use it when a task names \
                    such a file, or when somebody asks for a form to be filled in.\nlicense: Apache-2.0\n\
                    allowed-tools: Read Bash(python3:*)\nmetadata:\n  openclaw: {requires: {bins: [sh]}}\n";

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(500);
    let home = tempfile::tempdir().unwrap();
    for number in 0..count {
        let folder = home.path().join(format!("skills/skill-{number:04}"));
        std::fs::create_dir_all(folder.join("references")).unwrap();
        let body = "Step by step.\n".repeat(200);
        std::fs::write(folder.join("SKILL.md"), format!("---\nname: skill-{number:04}\n{HEAD}---\n{body}")).unwrap();
    }
    let machine = max_team_runtime::skills::Machine { path: vec!["/bin".into()], ..Default::default() };
    let index = Some(home.path().join("skills.index.json"));
    let user = vec![home.path().join("skills")];
    let places = Places { user, builtin: true, machine, index, ..Places::default() };
    for round in ["first", "second", "third"] {
        let began = Instant::now();
        let catalogue = Catalogue::read(&places, home.path());
        let read = began.elapsed();
        let listing = catalogue.listing(200_000, &[], true);
        println!(
            "{round}: {} skills in {read:?}, {} bytes for the prompt in {:?}",
            catalogue.all().count(),
            listing.len(),
            began.elapsed() - read
        );
    }
}
