//! The system's journal, through its own program.
//!
//! The journal lies outside the project and may hold anything, so reading it is a command that the policy judges, line
//! and all.

use std::time::Duration;

use jiff::Timestamp;
use max_team_core::policy::Action;
use serde_json::Value;

use super::QueryLog;
use super::filter::{LogFilter, LogLevel};
use crate::command::{EndReason, Invocation, join};
use crate::text::{clip, visible};
use crate::time_parse;
use crate::tool::{ToolContext, ToolError};

/// How long the program may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Entries that are looked at, the newest.
const ENTRIES_MAX: usize = 50_000;
/// Bytes of what the program says when it fails.
const REASON_BYTES_MAX: usize = 500;
/// Bytes of one entry that are kept until it ends.
const ENTRY_BYTES_MAX: usize = 256 << 10;

/// The command that reads the journal.
pub(super) fn argv(args: &QueryLog) -> Result<Vec<String>, ToolError> {
    let entries = if args.pattern.is_some() { ENTRIES_MAX } else { args.limit() };
    let mut argv: Vec<String> = ["journalctl", "--no-pager", "--quiet", "--output=json"].map(str::to_owned).into();
    argv.push(format!("--lines={entries}"));
    if let Some(unit) = &args.unit {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "@._:-\\".contains(letter);
        if unit.is_empty() || unit.len() > 256 || !unit.chars().all(is_name) {
            return Err(ToolError::correctable("`unit` is a name like `nginx.service`"));
        }
        argv.push(format!("--unit={unit}"));
    }
    if let Some(level) = &args.level {
        let priority = match level.as_str() {
            "error" => "err",
            "warn" => "warning",
            other => other,
        };
        argv.push(format!("--priority={priority}"));
    }
    // As it was written: a time computed from `15m` would be another one by the time the policy has allowed the call.
    for (name, text) in [("since", &args.since), ("until", &args.until)] {
        let Some(text) = text else { continue };
        time_parse::parse(name, text)?;
        argv.push(match time_parse::seconds(text.trim()) {
            Some(seconds) => format!("--{name}=-{seconds}s"),
            None => format!("--{name}=@{}", time_parse::parse(name, text)?.as_second()),
        });
    }
    Ok(argv)
}

pub(super) fn read(
    cx: &ToolContext,
    args: &QueryLog,
    intent: &Action,
    sieve: &mut LogFilter,
) -> Result<Vec<String>, ToolError> {
    let argv = argv(args)?;
    if visible(&join(&argv)) != intent.target {
        return Err(ToolError::fatal(format!("`{}` is not what was judged", join(&argv))));
    }
    let (mut line, mut noise) = (Vec::new(), Vec::new());
    // The program has looked at the time already, by its own clock.
    (sieve.since, sieve.until) = (None, None);
    // Without a sandbox: it would hide the machine's log, and every word of this command is ours.
    let over = Invocation::new(&argv, cx.root.path(), TIMEOUT, None).run(&cx.cancel, &mut |_, bytes| {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = ENTRY_BYTES_MAX.saturating_sub(line.len()).min(piece.len());
            line.extend_from_slice(piece.get(..room).unwrap_or_default());
            if piece.ends_with(b"\n") {
                entry(&line, sieve, &mut noise);
                line.clear();
            }
        }
        cx.progress.say(|| format!("{} entries", sieve.seen));
        true
    });
    let over = over.map_err(|err| ToolError::correctable(format!("the journal cannot be read: {err}")))?;
    let reason = visible(&clip(String::from_utf8_lossy(&noise).trim(), REASON_BYTES_MAX));
    match (over.ended, over.code) {
        (EndReason::Cancelled, _) => Err(ToolError::correctable("stopped before it was done")),
        (EndReason::TimedOut, _) => Ok(vec![format!("`journalctl` was ended after {} s", TIMEOUT.as_secs())]),
        (EndReason::Exited, Some(0)) => Ok(Vec::new()),
        (EndReason::Exited | EndReason::Limit(_), _) => {
            Err(ToolError::correctable(format!("the journal cannot be read: {reason}")))
        }
    }
}

/// Takes one entry; what is none is what the program says about itself.
fn entry(line: &[u8], sieve: &mut LogFilter, noise: &mut Vec<u8>) {
    let Ok(entry) = serde_json::from_slice::<Value>(line) else {
        if noise.len() < REASON_BYTES_MAX {
            noise.extend_from_slice(line);
        }
        return;
    };
    let field = |name: &str| entry.get(name).and_then(Value::as_str);
    let number = |name: &str| field(name).and_then(|text| text.parse::<i64>().ok());
    let at = number("__REALTIME_TIMESTAMP").and_then(|micros| Timestamp::from_microsecond(micros).ok());
    let level = number("PRIORITY").map(|priority| match priority {
        ..=3 => LogLevel::Error,
        4 => LogLevel::Warn,
        5 | 6 => LogLevel::Info,
        _ => LogLevel::Debug,
    });
    let message = match entry.get("MESSAGE") {
        Some(Value::String(text)) => text.clone(),
        // What is no UTF-8 comes as numbers.
        Some(Value::Array(bytes)) => {
            let bytes: Vec<u8> = bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => return,
    };
    let who = field("_SYSTEMD_UNIT").or(field("SYSLOG_IDENTIFIER")).unwrap_or("?");
    let time = at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default();
    sieve.take(at, level, &message, || visible(&format!("{time} {who}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> QueryLog {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_command_is_fixed_words() {
        let asked = args(
            r#"{"source":"journald","unit":"nginx.service","level":"error","since":"2h","until":"2026-01-01T00:00:00Z","limit":5}"#,
        );
        assert_eq!(
            join(&argv(&asked).unwrap()),
            "journalctl --no-pager --quiet --output=json --lines=5 --unit=nginx.service --priority=err --since=-7200s --until=@1767225600"
        );
        for unit in ["", "a b", "$(id)", "a\nb", "../x"] {
            let asked = QueryLog { unit: Some(unit.to_owned()), ..args("{}") };
            assert!(argv(&asked).is_err(), "{unit}");
        }
    }

    #[test]
    fn entries_are_read() {
        let mut sieve = LogFilter::new(&args(r#"{"level":"warn"}"#)).unwrap();
        let mut noise = Vec::new();
        let lines = [
            r#"{"__REALTIME_TIMESTAMP":"1794730012000000","PRIORITY":"3","_SYSTEMD_UNIT":"a.service","MESSAGE":"disk gone"}"#,
            r#"{"__REALTIME_TIMESTAMP":"1794730013000000","PRIORITY":"6","MESSAGE":"fine"}"#,
            r#"{"__REALTIME_TIMESTAMP":"1794730014000000","PRIORITY":"4","SYSLOG_IDENTIFIER":"b","MESSAGE":[104,105,255]}"#,
            "Hint: You are currently not seeing messages from other users\n",
        ];
        for line in lines {
            entry(line.as_bytes(), &mut sieve, &mut noise);
        }
        let told: Vec<String> =
            sieve.finish().into_iter().map(|told| format!("{}: {}", told.from, told.line)).collect();
        assert_eq!(told, ["2026-11-15T08:06:52Z a.service: disk gone", "2026-11-15T08:06:54Z b: hi\u{fffd}"]);
        assert!(String::from_utf8_lossy(&noise).starts_with("Hint"));
    }
}
