//! `compare`: two runs side by side.

use max_team_runtime::replay::{AgentStep, Comparison, Figures};
use serde_json::json;

use super::context::stop;
use super::table::{clip, table};
use crate::args;
use crate::recordings;
use max_team_terminal::plan_text;
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::Exit;
use max_team_workspace::format::{dollars, tokens};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;

/// Columns of what was said where they part, so that a line fits 80.
const STEP_CHARS: usize = 52;
/// Characters of the last answers.
const ANSWER_CHARS: usize = 1_200;

pub(crate) fn run(place: &AppEnv, options: &args::Compare) -> anyhow::Result<Exit> {
    let (a, b) = (recordings::find(place, Some(&options.a))?, recordings::find(place, Some(&options.b))?);
    let comparison = a.compare(&b).map_err(stop)?;
    let text = if options.json {
        let of = |session, entries| json!({ "session": session, "entries": entries });
        let sides = json!({ "a": of(a.session, a.len()), "b": of(b.session, b.len()), "comparison": comparison });
        format!("{sides}\n")
    } else {
        let heads = format!("A  {}  {}\nB  {}  {}\n\n", a.session, clean_line(&a.cwd), b.session, clean_line(&b.cwd));
        heads + &told(&comparison, place.speaks())
    };
    super::print(&text)?;
    Ok(Exit::Ok)
}

fn told(comparison: &Comparison, lang: Lang) -> String {
    let mut text = comparison.shared_seq.map(|seq| format!("{}\n", lang.shared_past(seq))).unwrap_or_default();
    match &comparison.parting {
        None => text.push_str(&format!("{}\n", lang.same_way())),
        Some(parting) => {
            let head = lang.parted_at(parting.step, clean_line(&parting.agent));
            let (a, b) = (step(parting.a.as_ref(), lang), step(parting.b.as_ref(), lang));
            text.push_str(&format!("{head}\n  A {a}\n  B {b}\n"));
        }
    }
    text.push_str(&format!("\n{}", figures(&comparison.a, &comparison.b, lang)));
    let (a, b) = (&comparison.a.answer, &comparison.b.answer);
    if a == b {
        text.push_str(&format!("\n{}\n", lang.answers_equal()));
    } else {
        for (side, answer) in [("A", a), ("B", b)] {
            text.push_str(&format!("\n{} {side}:\n", lang.last_answer()));
            clean(&clip(answer.trim(), ANSWER_CHARS)).lines().for_each(|line| text.push_str(&format!("    {line}\n")));
        }
    }
    text
}

/// A step on one line.
fn step(step: Option<&AgentStep>, lang: Lang) -> String {
    let Some(step) = step else { return lang.parted_never().to_owned() };
    let words = step.text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{:>6}  {} {}", step.seq, lang.step_kind(step.kind), clip(&clean_line(&words), STEP_CHARS))
}

/// What each came to, in columns.
fn figures(a: &Figures, b: &Figures, lang: Lang) -> String {
    let row = |name: &str, of: &dyn Fn(&Figures) -> String| vec![name.to_owned(), of(a), of(b)];
    let mut rows = vec![
        row(lang.agents_word(), &|of| of.agents.to_string()),
        row(lang.turns_word(), &|of| of.turns.to_string()),
        row(lang.model_calls_word(), &|of| of.calls.to_string()),
        row(lang.failed_calls_word(), &|of| of.failed_calls.to_string()),
        row(lang.tool_calls_word(), &|of| of.tool_calls().0.to_string()),
        row(lang.failed_tools_word(), &|of| of.tool_calls().1.to_string()),
    ];
    let mut names: Vec<&String> = a.tools.keys().chain(b.tools.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        rows.push(row(&format!("  {name}"), &|of| of.tools.get(name).map_or(0, |(calls, _)| *calls).to_string()));
    }
    rows.extend([
        row(lang.tokens_in_word(), &|of| tokens(of.usage.input_total())),
        row(lang.tokens_out_word(), &|of| tokens(of.usage.output)),
        row(lang.cost_word(), &|of| dollars(of.nano)),
        row(lang.model_time_word(), &|of| plan_text::duration(of.model_ms)),
        row(lang.time_word(), &|of| plan_text::duration(of.ms)),
    ]);
    table(&["", "A>", "B>"], &rows)
}
