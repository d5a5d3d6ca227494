//! `trace`: what happened when, in a session or a plan, and on whose word.

use max_team_core::chat::Usage;
use max_team_runtime::{IdTarget, Span, SpanKind, SpanName, query};

use super::context::JournalContext;
use super::table::clip;
use crate::args;
use max_team_terminal::plan_text;
use max_team_terminal::text::clean_line;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::format::{dollars, tokens};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;

/// Characters of a span's name and of its outcome.
const NAME_CHARS: usize = 80;

pub(crate) fn run(place: &AppEnv, options: &args::Trace) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let span = find(&context, options.id.as_deref())?;
    let text = if options.json {
        format!("{}\n", serde_json::to_string(&span)?)
    } else {
        let mut lines = Vec::new();
        let zero = span.at_ms;
        if options.timeline {
            timeline(&span, context.lang, &mut lines);
        } else {
            put(&span, zero, 0, context.lang, &mut lines);
        }
        let left = lines.len().saturating_sub(options.limit);
        lines.truncate(options.limit);
        if left > 0 {
            lines.push(context.lang.more_trace(left, options.limit.saturating_add(left)));
        }
        format!("{}\n", lines.join("\n"))
    };
    super::print(&text)?;
    Ok(Exit::Ok)
}

fn find(context: &JournalContext, id: Option<&str>) -> anyhow::Result<Span> {
    let Some(id) = id else {
        let last = context.read(query::Sessions { limit: 1 })?;
        let none = || CliError::said(Exit::Failed, |lang| lang.no_sessions_yet().to_owned());
        let session = last.first().ok_or_else(none)?.session;
        return Ok(*context.read(query::Trace { session })?);
    };
    match context.read(query::Find { text: id.to_owned() })? {
        Some(IdTarget::Session(session)) => Ok(*context.read(query::Trace { session })?),
        Some(IdTarget::Plan(plan)) => Ok(*context.read(query::TracePlan { plan })?),
        None => Err(CliError::said(Exit::Failed, |lang| lang.no_plan_or_session(id)).into()),
    }
}

/// A span and what happened inside, each with the time since the beginning.
fn put(span: &Span, zero_ms: i64, depth: usize, lang: Lang, lines: &mut Vec<String>) {
    let at = if depth == 0 { local(span.at_ms) } else { offset(span.at_ms.saturating_sub(zero_ms)) };
    lines.push(line(span, &at, &"  ".repeat(depth), lang));
    for child in &span.children {
        put(child, zero_ms, depth + 1, lang, lines);
    }
}

/// The spans without the tree, each with the agent's name in front.
fn timeline(whole: &Span, lang: Lang, lines: &mut Vec<String>) {
    fn gather<'s>(span: &'s Span, who: &'s str, all: &mut Vec<(&'s str, &'s Span)>) {
        let who = match &span.name {
            SpanName::Text(name) if span.kind == SpanKind::Turn => name,
            _ => who,
        };
        all.push((who, span));
        span.children.iter().for_each(|child| gather(child, who, all));
    }
    let mut all = Vec::new();
    gather(whole, "", &mut all);
    // Stable: what begins in the same moment stays in the order of the tree.
    all.sort_by_key(|(_, span)| span.at_ms);
    for (who, span) in all {
        let at = offset(span.at_ms.saturating_sub(whole.at_ms));
        let who = if span.kind == SpanKind::Turn || who.is_empty() { String::new() } else { format!("{who}: ") };
        lines.push(line(span, &at, &clean_line(&who), lang));
    }
}

/// One line: when, what, how long, how it ended, what it used, on whose word.
fn line(span: &Span, at: &str, before: &str, lang: Lang) -> String {
    let time = span.ms.map_or_else(|| "…".to_owned(), plan_text::duration);
    let sign = if span.failed { '!' } else { ' ' };
    let name = clip(&clean_line(&lang.span_name(&span.name)), NAME_CHARS);
    let outcome = clip(&clean_line(&lang.span_outcome(&span.outcome)), NAME_CHARS);
    let mut line = format!("{at:>9} {sign} {before}{} {name}  {time}  {outcome}", lang.span(span.kind));
    if span.usage != Usage::default() {
        let usage = span.usage;
        let (input, output) = (tokens(usage.input_total()), tokens(usage.output));
        line.push_str(&format!("  {}", lang.used(&input, &output, dollars(span.nano))));
    }
    if let Some(by) = &span.by {
        line.push_str(&format!("  [{}]", clean_line(&lang.span_author(by))));
    }
    line
}

fn offset(ms: i64) -> String {
    format!("+{}.{:03}s", ms / 1_000, ms.rem_euclid(1_000))
}
