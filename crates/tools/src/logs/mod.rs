//! `query_log`: lines of logs, from files of the project, from journald or from Loki.
//!
//! Lines of every source pass the same sieve (time, level, pattern), and the newest of them are told. Files are read
//! as `read_file` reads them; journald's program is a command that the policy judges; Loki's address is a setting of
//! the user.

mod files;
mod filter;
mod journald;
mod loki;

use max_team_core::limits::LOG_LINES_MAX;
use max_team_core::policy::{Action, ActionKind};
use schemars::JsonSchema;
use serde::Deserialize;

use self::filter::{LogFilter, LogLine};
use crate::command::join;
use crate::remote::on_thread;
use crate::text::{clip, many, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::RemoteTyped;

/// The source that is a server.
const LOKI: &str = "loki";
/// Lines that come unless told otherwise.
const LINES_DEFAULT: u32 = 200;
/// Bytes of one line that are told.
const LINE_BYTES_MAX: usize = 2_000;

/// Search logs; returns the newest lines that fit, in order of time. Logs are files of the project (`source: files`), the
/// system's journal (`journald`), or Loki, if the user has set it up (`loki`, with a LogQL `query`). Narrow it down by
/// time, level and pattern. Lines without a time or level of their own, like those of a stack trace, go with the line
/// before them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryLog {
    /// Where to look. Default: files.
    #[schemars(extend("enum" = ["files", "journald", "loki"]))]
    source: Option<String>,
    /// For files: a file or folder, relative to the project folder. Default: everything. Ignored files are looked at too.
    path: Option<String>,
    /// For files: only those whose path fits, like `*.log` or `logs/**/web*`. Default: `*.log`, `*.log.*`, `*.jsonl`,
    /// `*.out`, `*.err`.
    glob: Option<String>,
    /// For Loki: what to look for, like `{app="web"} |= "timeout"`.
    query: Option<String>,
    /// For journald: the unit, like `nginx.service`.
    unit: Option<String>,
    /// Only lines that match this regular expression (Rust syntax, case does not count).
    pattern: Option<String>,
    /// Only lines of this level and above.
    #[schemars(extend("enum" = ["debug", "info", "warn", "error"]))]
    level: Option<String>,
    /// Only lines from this time on: how long ago, like `15m`, `2h`, `7d`, or a time like `2026-03-01T09:30:00Z`.
    since: Option<String>,
    /// Only lines before this time, written in the same way.
    until: Option<String>,
    /// At most so many lines, the newest. Default: 200.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

pub(crate) fn query_log() -> RemoteTyped<QueryLog> {
    let server = |args: &QueryLog, _: &Action| (args.source() == LOKI).then(|| "Loki".to_owned());
    RemoteTyped::reading("query_log", action, server, |cx, args, intent| Box::pin(call(cx, args, intent)))
}

impl QueryLog {
    fn limit(&self) -> usize {
        usize::try_from(self.limit.unwrap_or(LINES_DEFAULT)).unwrap_or(LOG_LINES_MAX).min(LOG_LINES_MAX)
    }

    fn source(&self) -> &str {
        self.source.as_deref().unwrap_or("files")
    }
}

fn action(cx: &ToolContext, args: &QueryLog) -> Result<Action, ToolError> {
    LogFilter::new(args)?;
    match args.source() {
        "journald" => {
            let line = visible(&join(&journald::argv(args)?));
            Ok(Action { kind: ActionKind::Execute, preview: line.clone(), ..Action::read(line) })
        }
        LOKI => Ok(Action { kind: ActionKind::Query, ..Action::read(loki::target(cx, args)?) }),
        _ => files::action(cx, args),
    }
}

async fn call(cx: &ToolContext, args: QueryLog, intent: &Action) -> Result<Output, ToolError> {
    let mut sieve = LogFilter::new(&args)?;
    if args.source() == LOKI {
        let notes = loki::read(cx, &args, &mut sieve).await?;
        return Ok(Output::text(told(sieve, notes)));
    }
    let (cx, intent) = (cx.clone(), intent.clone());
    on_thread(move || {
        let notes = match args.source() {
            "journald" => journald::read(&cx, &args, &intent, &mut sieve)?,
            _ => files::read(&cx, &args, &intent, &mut sieve)?,
        };
        cx.check()?;
        Ok(Output::text(told(sieve, notes)))
    })
    .await
}

fn told(sieve: LogFilter, mut notes: Vec<String>) -> String {
    let (seen, fitting) = (sieve.seen, sieve.fitting);
    let lines = sieve.finish();
    let mut text = String::new();
    for LogLine { from, line, .. } in &lines {
        let line = visible(&clip(line, LINE_BYTES_MAX));
        text.push_str(&if from.is_empty() { format!("{line}\n") } else { format!("{from}: {line}\n") });
    }
    notes.insert(
        0,
        match lines.len() as u64 {
            0 => format!("no line fits, of {}", many(seen, "line")),
            shown if shown == fitting => format!("{} of {} fit", many(shown, "line"), seen),
            shown => {
                format!("the newest {shown} of {fitting} lines that fit; narrow it with `since`, `level` or `pattern`")
            }
        },
    );
    format!("{text}[{}]", notes.join("; "))
}
