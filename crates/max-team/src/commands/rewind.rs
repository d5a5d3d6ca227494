//! `rewind`: restores files of a session. It shows what it would do, asks, and skips files that were changed by others
//! since.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use max_team_core::id::SessionId;
use max_team_runtime::rewind::{Moment, Outcome, RewindPlan, RewindPoint, Sheet};
use max_team_runtime::{RuntimeError, query};
use serde_json::{Value, json};

use super::context::{JournalContext, agreed, stop, wait};
use super::table::clip;
use crate::args;
use crate::headless::talk;
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

/// Characters of what the user said.
const WORDS_CHARS: usize = 72;
/// Fewer digits than that are more likely the name of a file.
const ID_DIGITS_MIN: usize = 6;

pub(crate) fn run(place: &AppEnv, options: &args::Rewind) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let (session, files) = meant(place, &context, &options.words)?;
    let rewind = context.storage.rewind(&place.home, session);
    if let Some(file) = rewind.untouched(&files).map_err(stop)?.first() {
        return Err(unknown(place, file).into());
    }
    if options.json && !(options.list || options.dry_run) {
        return Err(CliError::said(Exit::Usage, |lang| lang.rewind_no_json().to_owned()).into());
    }
    if options.list {
        let moments = rewind.moments().map_err(stop)?;
        super::print(&if options.json {
            as_json(&moments)
        } else {
            clean(&list(&moments, context.lang)).into_owned()
        })?;
        return Ok(Exit::Ok);
    }
    let to = match (&options.to, options.undo) {
        (_, true) => RewindPoint::Undo,
        (Some(text), _) => point(text)?,
        (None, false) => RewindPoint::default(),
    };
    if options.dry_run {
        if let Some(begun) = rewind.begun().map_err(stop)? {
            talk(&context.lang.rewind_open(begun.puts.len()));
        }
        let plan = rewind.plan(to, &files).map_err(stop)?;
        if options.json {
            super::print(&format!("{:#}\n", plan_json(session, &plan)))?;
        } else {
            show(place, &plan, &rewind.sheets(&plan).map_err(stop)?, context.lang)?;
        }
        return Ok(covered(&plan));
    }
    let (process, by) = (setup::worker_info(place, "rewind"), place.principal("cli"));
    let claimed = wait(async { Ok(rewind.claim(process, by).await.map_err(owned)?) })?;
    if let Some(outcome) = claimed.complete().map_err(stop)? {
        talk(&context.lang.rewind_resumed(outcome.done.len()));
        say_failed(&outcome, context.lang);
    }
    let plan = rewind.plan(to, &files).map_err(stop)?;
    show(place, &plan, &rewind.sheets(&plan).map_err(stop)?, context.lang)?;
    let partly = covered(&plan);
    if plan.puts.is_empty() {
        return Ok(partly);
    }
    if !options.yes && !agreed(context.lang.put_these_back(), Exit::Denied, |lang| lang.rewind_needs_yes())? {
        talk(context.lang.rewind_left_it());
        return Ok(Exit::Denied);
    }
    let outcome = claimed.carry_out(&plan).map_err(stop)?;
    talk(&context.lang.rewound(outcome.done.len()));
    say_failed(&outcome, context.lang);
    Ok(if outcome.failed.is_empty() { partly } else { Exit::Partial })
}

/// Whether everything since the point is put back, or can be.
fn covered(plan: &RewindPlan) -> Exit {
    if plan.is_complete() { Exit::Ok } else { Exit::Partial }
}

/// The session that is meant, and the files; the first word is the one or the other.
fn meant(place: &AppEnv, context: &JournalContext, words: &[String]) -> Result<(SessionId, Vec<PathBuf>), CliError> {
    let named = match words.first() {
        Some(first) if !place.cwd.join(first).exists() => context.read(query::FindSession { text: first.clone() })?,
        _ => None,
    };
    let files = words.iter().skip(usize::from(named.is_some()));
    let cwd = place.cwd.canonicalize().unwrap_or_else(|_| place.cwd.clone());
    let files = files.map(|file| lexical(&cwd.join(file))).collect();
    let session = match named {
        Some(session) => session,
        None => match context.team.ask(query::LatestSession { root: place.cwd.clone() }) {
            Ok(row) => row.session,
            Err(RuntimeError::NothingToContinue(_)) => {
                if let Some(word) = words.first().filter(|word| is_id(word)) {
                    return Err(CliError::said(Exit::Usage, |lang| lang.rewind_no_session(word)));
                }
                return Err(CliError::said(Exit::Failed, |lang| {
                    let word = words.first().map(|word| lang.rewind_no_such(clean_line(word))).unwrap_or_default();
                    lang.no_session_to_rewind(word)
                }));
            }
            Err(error) => return Err(stop(error)),
        },
    };
    Ok((session, files))
}

/// A word that names neither a session nor a file that any step has touched.
fn unknown(place: &AppEnv, file: &Path) -> CliError {
    let cwd = place.cwd.canonicalize().unwrap_or_else(|_| place.cwd.clone());
    let word = clean_line(&file.strip_prefix(cwd).unwrap_or(file).display().to_string());
    let is_session = is_id(&word) && !file.exists();
    CliError::said(
        Exit::Usage,
        |lang| if is_session { lang.rewind_no_session(&word) } else { lang.rewind_untouched(&word) },
    )
}

/// Whether a word looks like a session, or the beginning or end of one.
fn is_id(word: &str) -> bool {
    let digits = word.strip_prefix("ses_").unwrap_or(word);
    digits.len() >= ID_DIGITS_MIN && digits.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// A path without `.` and `..`; the file need not exist.
fn lexical(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// A point, by what is written; a time is one of here and, without a day, of today.
fn point(text: &str) -> Result<RewindPoint, CliError> {
    let now = max_team_tools::now();
    let civil = || text.parse::<jiff::civil::DateTime>().ok().and_then(|at| at.to_zoned(now.time_zone().clone()).ok());
    let today = || {
        let time = text.parse::<jiff::civil::Time>().ok().filter(|_| text.contains(':'))?;
        now.date().to_datetime(time).to_zoned(now.time_zone().clone()).ok()
    };
    let at = || {
        let exact = text.parse::<jiff::Timestamp>().ok();
        exact.or_else(|| civil().or_else(today).map(|at| at.timestamp()))
    };
    match text.parse::<RewindPoint>() {
        Ok(to) => Ok(to),
        Err(_) => match at() {
            Some(at) => Ok(RewindPoint::At(at.as_millisecond())),
            None => Err(CliError::said(Exit::Usage, |lang| lang.bad_rewind_point(text))),
        },
    }
}

fn owned(error: RuntimeError) -> CliError {
    match error {
        RuntimeError::OwnedElsewhere { by, .. } => {
            let by = format!("{}, pid {}", by.what, by.pid);
            CliError::said(Exit::Failed, |lang| lang.rewind_owned(&by))
        }
        other => stop(other),
    }
}

fn list(moments: &[Moment], lang: Lang) -> String {
    if moments.is_empty() {
        return format!("{}\n", lang.no_points());
    }
    let mut text = String::new();
    for moment in moments {
        let words = clip(&clean_line(&moment.words), WORDS_CHARS);
        let name = format!("turn:{}", moment.number);
        text.push_str(&format!("{name:<8} {}  #{}  {words}\n", local(moment.at_ms), moment.seq));
        text.push_str(&format!("         {}\n", clean_line(&lang.changes_after(moment))));
        for left in &moment.left {
            text.push_str(&format!("         ! {}\n", lang.rewind_left(left)));
        }
    }
    text
}

fn as_json(moments: &[Moment]) -> String {
    let row = |moment: &Moment| {
        let changes: Vec<Value> = moment
            .changes
            .iter()
            .map(|(root, change)| json!({ "root": root, "path": change.path, "before": change.before, "after": change.after }))
            .collect();
        json!({ "turn": moment.number, "event": moment.seq, "at_ms": moment.at_ms, "said": moment.words,
            "changes": changes, "left": moment.left, "rewound": moment.rewound })
    };
    format!("{:#}\n", Value::from(moments.iter().map(row).collect::<Vec<_>>()))
}

fn plan_json(session: SessionId, plan: &RewindPlan) -> Value {
    let skipped: Vec<Value> = plan
        .skipped
        .iter()
        .map(|skip| json!({ "root": skip.root, "path": skip.path, "why": Lang::En.rewind_skip(&skip.why) }))
        .collect();
    json!({ "session": session, "behind": plan.behind, "puts": plan.puts, "skipped": skipped, "left": plan.left })
}

/// Shows what would be put back, and what not.
fn show(place: &AppEnv, plan: &RewindPlan, sheets: &[Sheet], lang: Lang) -> anyhow::Result<()> {
    let no_color = place.env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
    let paints = std::io::stdout().is_terminal() && !no_color;
    let mut text = String::new();
    for sheet in sheets {
        let diff = clean(&sheet.text);
        text.push_str(&if paints { painted(&diff) } else { diff.into_owned() });
    }
    let shown = |root: &str, path: &str| {
        let full = Path::new(root).join(path);
        clean_line(&full.strip_prefix(&place.cwd).unwrap_or(&full).display().to_string())
    };
    if !plan.skipped.is_empty() {
        text.push_str(&format!("\n{}\n", lang.rewind_skips()));
    }
    for skip in &plan.skipped {
        let why = clean_line(&lang.rewind_skip(&skip.why));
        text.push_str(&format!("  {}: {why}\n", shown(&skip.root, &skip.path)));
    }
    if !plan.left.is_empty() {
        text.push_str(&format!("\n{}\n", lang.rewind_unseen()));
        plan.left.iter().for_each(|left| text.push_str(&format!("  {}\n", clean_line(&lang.rewind_left(left)))));
    }
    if plan.lost() > 0 {
        text.push_str(&format!("\n{}\n", lang.rewind_for_good(plan.lost())));
    }
    if plan.puts.is_empty() {
        text.push_str(&format!("{}\n", lang.nothing_put_back(plan)));
    }
    Ok(super::print(&text)?)
}

/// A diff in colours.
fn painted(diff: &str) -> String {
    let line = |line: &str| {
        let code = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "1",
            [b'+', ..] => "32",
            [b'-', ..] => "31",
            [b'@', ..] => "36",
            _ => return format!("{line}\n"),
        };
        format!("\u{1b}[{code}m{line}\u{1b}[0m\n")
    };
    diff.lines().map(line).collect()
}

fn say_failed(outcome: &Outcome, lang: Lang) {
    for failed in &outcome.failed {
        talk(&clean_line(&format!("{}: {}", failed.path, failed.why)));
    }
    if !outcome.failed.is_empty() {
        talk(&lang.rewind_failed(outcome.failed.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_turn_an_event_or_a_time() {
        assert_eq!(point("turn:2").unwrap(), RewindPoint::Turn(2));
        assert_eq!(point("last-turn").unwrap(), RewindPoint::LastTurn);
        assert_eq!(point("#120").unwrap(), RewindPoint::Behind(120));
        assert_eq!(point("2026-05-01T14:05:00Z").unwrap(), RewindPoint::At(1_777_644_300_000));
        assert!(matches!(point("2026-05-01T14:05").unwrap(), RewindPoint::At(_)));
        assert!(matches!(point("14:05").unwrap(), RewindPoint::At(_)));
        for text in ["", "yesterday", "end", "turn:0", "25:00"] {
            assert_eq!(point(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
    }

    #[test]
    fn diffs_are_painted_line_by_line() {
        assert_eq!(painted("--- a\n-x\n y\n"), "\u{1b}[1m--- a\u{1b}[0m\n\u{1b}[31m-x\u{1b}[0m\n y\n");
    }
}
