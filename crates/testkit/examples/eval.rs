//! Plays the ten jobs of the evaluation with the real program. Started by `scripts/eval.sh`.
//!
//! `eval --bin PATH [--json] [--keep FOLDER] [strong|weak] [JOB…]`; exit 1 if a strong model's job is not done right, a weak
//! model's fails in silence, or a result is lost.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::path::PathBuf;
use std::process::ExitCode;

use max_team_testkit::eval::{Character, Fixed, Row, names, play};

const USAGE: &str = "usage: eval --bin PATH [--json] [--keep FOLDER] [strong|weak] [JOB…]";

fn main() -> ExitCode {
    match evaluate() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("eval: {message}");
            ExitCode::from(2)
        }
    }
}

fn evaluate() -> Result<bool, String> {
    let (mut program, mut keep, mut json) = (None, None, false);
    let (mut characters, mut jobs) = (Vec::new(), Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bin" => program = words.next(),
            "--keep" => keep = words.next().map(PathBuf::from),
            "--json" => json = true,
            "strong" => characters.push(Character::Strong),
            "weak" => characters.push(Character::Weak),
            name => jobs.push(*names().iter().find(|job| **job == name).ok_or(format!("no job `{name}`; {USAGE}"))?),
        }
    }
    let program = PathBuf::from(program.ok_or(USAGE)?).canonicalize().map_err(|error| error.to_string())?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = keep.unwrap_or_else(|| scratch.path().to_owned());
    if characters.is_empty() {
        characters = vec![Character::Strong, Character::Weak];
    }
    if jobs.is_empty() {
        jobs = names();
    }
    let mut rows = Vec::new();
    if !json {
        println!(
            "{:<9} {:<9} {:<7} {:>4} {:>5} {:>6} {:>8} {:>8} {:>5}  lost",
            "model", "job", "outcome", "exit", "calls", "wasted", "input", "usage", "fixed"
        );
    }
    for character in characters {
        for job in &jobs {
            let place = folder.join(format!("{}-{job}", character.name()));
            let row = play(job, character, &program, &place).ok_or("a job without a name")?;
            if json {
                println!("{}", row.json());
            } else {
                println!("{}", line(&row));
            }
            rows.push(row);
        }
    }
    if !json {
        summary(&rows);
    }
    Ok(rows.iter().all(Row::is_fine))
}

fn line(row: &Row) -> String {
    format!(
        "{:<9} {:<9} {:<7} {:>4} {:>5} {:>6} {:>8} {:>8} {:>4}%  {}{}",
        row.character.name(),
        row.job,
        row.outcome_word(),
        row.codes.last().copied().unwrap_or(-1),
        row.calls,
        row.wasted,
        row.input_tokens,
        row.usage_tokens,
        row.fixed_percent,
        if row.lost.is_empty() { "-".to_owned() } else { row.lost.join(" ") },
        if row.why.is_empty() {
            String::new()
        } else {
            format!("\n{:20}{:.150}", "", row.why.lines().next().unwrap_or_default())
        },
    )
}

/// Sums per character, and the fixed input of each kind of agent.
fn summary(rows: &[Row]) {
    println!();
    for character in [Character::Strong, Character::Weak] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.character == character).collect();
        if rows.is_empty() {
            continue;
        }
        let sum = |count: fn(&Row) -> usize| rows.iter().map(|row| count(row)).sum::<usize>();
        let (calls, wasted, input) = (sum(|row| row.calls), sum(|row| row.wasted), sum(|row| row.input_tokens));
        let fixed = sum(|row| row.input_tokens * row.fixed_percent / 100);
        let right = rows.iter().filter(|row| row.outcome_word() == "right").count();
        println!(
            "{}: {right} of {} right, {calls} calls, {wasted} wasted ({} %), {input} input tokens, {} % fixed, {} results lost",
            character.name(),
            rows.len(),
            wasted * 100 / calls.max(1),
            fixed * 100 / input.max(1),
            sum(|row| row.lost.len()),
        );
    }
    let mut kinds: std::collections::BTreeMap<&str, Fixed> = std::collections::BTreeMap::new();
    for (kind, fixed) in rows.iter().flat_map(|row| &row.fixed) {
        let most = kinds.entry(kind).or_default();
        *most = Fixed { calls: most.calls + fixed.calls, tokens: most.tokens.max(fixed.tokens) };
    }
    let told = kinds.iter().map(|(kind, fixed)| format!("{kind} {}", fixed.tokens));
    println!("fixed input per call, in tokens: {}", told.collect::<Vec<_>>().join(", "));
}
