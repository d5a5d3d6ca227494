//! Loki's HTTP API, at the address that the user has set up.

use jiff::Timestamp;
use serde_json::Value;

use super::QueryLog;
use super::filter::LogFilter;
use crate::json_get;
use crate::text::{clip, visible};
use crate::tool::{ToolContext, ToolError};

/// How far back to look unless told otherwise, in seconds.
const SINCE_DEFAULT_S: i64 = 3_600;
/// Lines that are asked for where they are still to be sifted.
const LINES_ASKED_MAX: usize = 5_000;
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Bytes of the labels that stand before a line.
const LABELS_BYTES_MAX: usize = 200;

/// What is asked, for people and rules.
pub(super) fn target(cx: &ToolContext, args: &QueryLog) -> Result<String, ToolError> {
    json_get::base(&cx.services.loki_url, "Loki", "tools.loki_url")?;
    Ok(format!("loki {}", visible(&clip(query(args)?, LABELS_BYTES_MAX))))
}

fn query(args: &QueryLog) -> Result<&str, ToolError> {
    args.query.as_deref().filter(|query| !query.trim().is_empty()).ok_or_else(|| {
        ToolError::correctable("Loki wants a `query`, like `{app=\"web\"}` or `{app=\"web\"} |= \"timeout\"`")
    })
}

pub(super) async fn read(cx: &ToolContext, args: &QueryLog, sieve: &mut LogFilter) -> Result<Vec<String>, ToolError> {
    let base = json_get::base(&cx.services.loki_url, "Loki", "tools.loki_url")?;
    let until = sieve.until.unwrap_or_else(Timestamp::now);
    let since = sieve.since.map_or_else(|| Timestamp::from_second(until.as_second() - SINCE_DEFAULT_S), Ok);
    let since = since.map_err(|err| ToolError::correctable(format!("`until` is too early: {err}")))?;
    let is_sifted = args.pattern.is_some() || args.level.is_some();
    let limit = if is_sifted { LINES_ASKED_MAX } else { args.limit() };
    let fields = [
        ("query", query(args)?.to_owned()),
        ("start", since.as_nanosecond().to_string()),
        ("end", until.as_nanosecond().to_string()),
        ("limit", limit.to_string()),
        ("direction", "backward".to_owned()),
    ];
    let answer = json_get::ask(cx, "Loki", &base, "loki/api/v1/query_range", &fields, ANSWER_BYTES_MAX).await?;
    let kind = answer.pointer("/data/resultType").and_then(Value::as_str).unwrap_or_default();
    if kind != "streams" {
        return Err(ToolError::correctable(format!(
            "the query gives a `{}`, not lines; ask for lines, like `{{app=\"web\"}}`",
            visible(&clip(kind, 40))
        )));
    }
    // The time was Loki's to look at.
    (sieve.since, sieve.until) = (None, None);
    let empty = Vec::new();
    for stream in answer.pointer("/data/result").and_then(Value::as_array).unwrap_or(&empty) {
        let labels = visible(&clip(&json_get::labels(stream.get("stream")), LABELS_BYTES_MAX));
        let mut lines: Vec<(i128, &str)> = stream
            .get("values")
            .and_then(Value::as_array)
            .unwrap_or(&empty)
            .iter()
            .filter_map(|pair| Some((pair.get(0)?.as_str()?.parse().ok()?, pair.get(1)?.as_str()?)))
            .collect();
        lines.sort_by_key(|(at, _)| *at);
        for (at, line) in lines {
            let at = Timestamp::from_nanosecond(at).ok();
            let time = at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default();
            sieve.told_line(at, line, || format!("{time} {labels}"));
        }
        sieve.end_stream();
    }
    Ok(vec![format!("from {} to {}", since.strftime("%FT%TZ"), until.strftime("%FT%TZ"))])
}
