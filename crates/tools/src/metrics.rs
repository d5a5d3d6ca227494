//! `query_metrics`: numbers out of Prometheus, at the address that the user has set up.
//!
//! Values now come as one line per series; values over time as one line of figures and one of points. How many series
//! and points come is bounded, and what is left out is said.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use max_team_core::limits::{POINTS_MAX, SERIES_MAX};
use max_team_core::policy::{Action, ActionKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::json_get;
use crate::text::{clip, many, visible};
use crate::time_parse;
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::RemoteTyped;

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Bytes of one series' labels.
const LABELS_BYTES_MAX: usize = 500;
/// Names of metrics that are listed.
const NAMES_MAX: usize = 500;
/// Bytes of a query that are shown to a person or a rule.
const QUERY_SHOWN_MAX: usize = 200;

/// Ask Prometheus for numbers, if the user has set it up. Give a PromQL `query`: without `since` its value now (or at
/// `until`) comes, one line per series; with `since` the values over time, with minimum, maximum, mean and last.
/// Give `names` instead to find out which metrics there are. At most 50 series and 60 points of each come: use `sum by`,
/// `topk` or labels to ask for less.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryMetrics {
    /// What to ask, in PromQL, like `sum by (code) (rate(http_requests_total[5m]))`.
    query: Option<String>,
    /// List the metrics whose name contains this, instead of asking for values; empty lists all.
    names: Option<String>,
    /// Give the values from this time on: how long ago, like `15m`, `2h`, `7d`, or a time like `2026-03-01T09:30:00Z`.
    since: Option<String>,
    /// Up to this time, written in the same way. Default: now.
    until: Option<String>,
    /// Time between two values, like `30s` or `5m`. Default: at most 60 values result.
    step: Option<String>,
}

pub(crate) fn query_metrics() -> RemoteTyped<QueryMetrics> {
    RemoteTyped::reading(
        "query_metrics",
        action,
        |_, _| Some("Prometheus".to_owned()),
        |cx, args, _| Box::pin(call(cx, args)),
    )
}

/// What is asked, worked out.
enum MetricsRequest<'a> {
    Names(&'a str),
    Now { query: &'a str, at: Timestamp },
    Range { query: &'a str, from: Timestamp, to: Timestamp, step: i64 },
}

impl<'a> MetricsRequest<'a> {
    fn new(args: &'a QueryMetrics) -> Result<Self, ToolError> {
        let query = match (&args.query, &args.names) {
            (None, Some(names)) => return Ok(Self::Names(names)),
            (Some(query), None) if !query.trim().is_empty() => query.as_str(),
            _ => return Err(ToolError::correctable("give a `query` in PromQL, or `names` to list the metrics")),
        };
        let to = args.until.as_ref().map_or_else(|| Ok(Timestamp::now()), |text| time_parse::parse("until", text))?;
        let Some(since) = &args.since else { return Ok(Self::Now { query, at: to }) };
        let from = time_parse::parse("since", since)?;
        let span = to.as_second() - from.as_second();
        if span <= 0 {
            return Err(ToolError::correctable("`since` must be before `until`"));
        }
        let most = i64::try_from(POINTS_MAX).unwrap_or(i64::MAX);
        let least = span.checked_div(most - 1).unwrap_or(span).max(1);
        let step = match &args.step {
            None => least,
            Some(text) => {
                let step = time_parse::seconds(text.trim()).filter(|step| *step > 0);
                // A shorter step would give more points than are told.
                step.ok_or_else(|| ToolError::correctable("`step` is a time like `30s` or `5m`"))?.max(least)
            }
        };
        Ok(Self::Range { query, from, to, step })
    }
}

fn action(cx: &ToolContext, args: &QueryMetrics) -> Result<Action, ToolError> {
    base(cx)?;
    let words = match MetricsRequest::new(args)? {
        MetricsRequest::Names(names) => format!("names {names}"),
        MetricsRequest::Now { query, .. } | MetricsRequest::Range { query, .. } => query.to_owned(),
    };
    let shown = visible(&clip(&words, QUERY_SHOWN_MAX));
    Ok(Action { kind: ActionKind::Query, ..Action::read(format!("prometheus {shown}")) })
}

fn base(cx: &ToolContext) -> Result<reqwest::Url, ToolError> {
    json_get::base(&cx.services.prometheus_url, "Prometheus", "tools.prometheus_url")
}

async fn call(cx: &ToolContext, args: QueryMetrics) -> Result<Output, ToolError> {
    let base = base(cx)?;
    let ask = async |path: &str, fields: &[(&str, String)]| {
        json_get::ask(cx, "Prometheus", &base, &format!("api/v1/{path}"), fields, ANSWER_BYTES_MAX).await
    };
    let seconds = |at: Timestamp| at.as_second().to_string();
    let text = match MetricsRequest::new(&args)? {
        MetricsRequest::Names(part) => names(&ask("label/__name__/values", &[]).await?, part),
        MetricsRequest::Now { query, at } => {
            told(&ask("query", &[("query", query.to_owned()), ("time", seconds(at))]).await?)
        }
        MetricsRequest::Range { query, from, to, step } => {
            let fields = [
                ("query", query.to_owned()),
                ("start", seconds(from)),
                ("end", seconds(to)),
                ("step", step.to_string()),
            ];
            let head = format!("from {} to {}, every {step} s (UTC)\n", from.strftime("%FT%TZ"), to.strftime("%FT%TZ"));
            head + &told(&ask("query_range", &fields).await?)
        }
    };
    Ok(Output::text(text))
}

fn names(answer: &Value, part: &str) -> String {
    let empty = Vec::new();
    let all = answer.get("data").and_then(Value::as_array).unwrap_or(&empty);
    let fitting: Vec<&str> = all.iter().filter_map(Value::as_str).filter(|name| name.contains(part)).collect();
    let mut text: String = fitting.iter().take(NAMES_MAX).map(|name| format!("{}\n", visible(name))).collect();
    let more = if fitting.len() > NAMES_MAX { "; give a part of the name for less" } else { "" };
    text.push_str(&format!("[{} of {}{more}]", many(fitting.len(), "metric"), all.len()));
    text
}

/// An answer of either kind as lines.
fn told(answer: &Value) -> String {
    let result = answer.pointer("/data/result");
    let Some(series) = result.and_then(Value::as_array).filter(|_| is_series(answer)) else {
        // A single number or text: a pair of time and value.
        return result.and_then(|pair| pair.get(1)).map_or_else(|| "[nothing]".to_owned(), |value| number(Some(value)));
    };
    let mut text = String::new();
    for one in series.iter().take(SERIES_MAX) {
        let labels = visible(&clip(&json_get::labels(one.get("metric")), LABELS_BYTES_MAX));
        match one.get("values").and_then(Value::as_array) {
            Some(points) => text.push_str(&format!("{labels}\n{}", line(points))),
            None => text.push_str(&format!("{labels} {}\n", number(one.pointer("/value/1")))),
        }
    }
    let more = match series.len() {
        0 => "; nothing fits: see which metrics there are with `names`".to_owned(),
        many if many > SERIES_MAX => format!("; {SERIES_MAX} shown; ask for less with `topk`, `sum by` or labels"),
        _ => String::new(),
    };
    text + &format!("[{} series{more}]", series.len())
}

fn is_series(answer: &Value) -> bool {
    matches!(answer.pointer("/data/resultType").and_then(Value::as_str), Some("vector" | "matrix"))
}

/// The values of one series over time: its figures, then its points.
fn line(points: &[Value]) -> String {
    let values: Vec<f64> = points.iter().filter_map(|point| point.get(1)?.as_str()?.parse().ok()).collect();
    let real: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let least = real.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = real.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    #[expect(clippy::cast_precision_loss, reason = "there are at most a few dozen points")]
    let mean = real.iter().sum::<f64>() / real.len().max(1) as f64;
    let last = values.last().copied().unwrap_or(f64::NAN);
    let figures = if real.is_empty() {
        "  no numbers".to_owned()
    } else {
        format!("  min {} max {} mean {} last {}", short(least), short(greatest), short(mean), short(last))
    };
    let shown: Vec<String> = points.iter().take(POINTS_MAX).map(point).collect();
    format!("{figures}\n  {}\n", shown.join(" "))
}

fn point(point: &Value) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "seconds of this age")]
    let at = point.get(0).and_then(Value::as_f64).map(|seconds| seconds as i64);
    let at = at.and_then(|at| Timestamp::from_second(at).ok()).map(|at| at.to_zoned(TimeZone::UTC));
    let at = at.map(|at| at.strftime("%d %H:%M:%S").to_string()).unwrap_or_default();
    // The day only where it is new would be shorter; a day in front of each is plainer.
    format!("{}={}", at.replace(' ', "T"), number(point.get(1)))
}

fn number(value: Option<&Value>) -> String {
    let text = value.and_then(Value::as_str).unwrap_or("?");
    match text.parse::<f64>() {
        Ok(number) => short(number),
        Err(_) => visible(&clip(text, LABELS_BYTES_MAX)),
    }
}

/// A number with as many digits as are useful.
fn short(number: f64) -> String {
    let size = number.abs();
    if number.fract() == 0.0 && size < 1e15 {
        return format!("{number:.0}");
    }
    match size {
        1e-3..1e6 => {
            let text = format!("{number:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ if number.is_finite() => format!("{number:.4e}"),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_become_lines() {
        let vector = json!({"status": "success", "data": {"resultType": "vector", "result": [
            {"metric": {"__name__": "up", "job": "web"}, "value": [1794730012.1, "1"]},
            {"metric": {}, "value": [1794730012.1, "0.123456"]},
        ]}});
        assert_eq!(told(&vector), "up{job=\"web\"} 1\n{} 0.1235\n[2 series]");
        let matrix = json!({"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {"__name__": "x"}, "values": [[1794730012, "1"], [1794730072, "NaN"], [1794730132, "4"]]},
        ]}});
        assert_eq!(
            told(&matrix),
            "x\n  min 1 max 4 mean 2.5 last 4\n  15T08:06:52=1 15T08:07:52=NaN 15T08:08:52=4\n[1 series]"
        );
        assert_eq!(told(&json!({"data": {"resultType": "scalar", "result": [1, "42"]}})), "42");
        assert!(told(&json!({"data": {"resultType": "vector", "result": []}})).contains("nothing fits"));
        assert_eq!(told(&json!({})), "[nothing]");
    }

    #[test]
    fn numbers_are_short() {
        let table = [
            (3.0, "3"),
            (0.5, "0.5"),
            (1e9, "1000000000"),
            (1.5e9, "1500000000"),
            (12_345_678.9, "1.2346e7"),
            (1e-7, "1.0000e-7"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ];
        for (value, want) in table {
            assert_eq!(short(value), want);
        }
    }
}
