//! The scripted model: one policy engine, with a [`Job`]'s parts as its data.
//!
//! A part is a list of steps and a result. The engine takes the first step that has not succeeded yet, tries the next way
//! of a call that failed, gives up when there is none, and gives its result when nothing is left. The lead's part has
//! phases instead, one per wish of the user, and its answer is the list of facts that reached it.

use serde_json::{Map, Value, json};

use super::job::{Job, Part, Phase, Step};
use super::view::View;

/// Tries of one call before the model gives up.
pub(super) const TRIES_MAX: usize = 3;
/// What an answer begins with when a fact is missing.
pub(super) const NOT_DONE: &str = "Not done";

/// How a promise begins that stands in for a call.
pub(super) const PROMISE: &str = "I will now call";

/// What a reply is worth, for the count of wasted calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// The lead's answer or a member's result, given for the first time.
    Result,
    /// Words without a call, an answer or a result: a wait, a promise, a repetition.
    Idle,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) step: String,
    pub(super) tool: String,
    pub(super) input: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Decision {
    Call(Vec<Call>),
    Say(String, Worth),
}

/// What the strong model does.
pub(super) fn decide(view: &View, job: &Job) -> Decision {
    match view.role.as_str() {
        "lead" => lead(view, job),
        role => match job.parts.iter().find(|part| part.role == role) {
            Some(part) => member(view, part),
            None => Decision::Say("nothing".to_owned(), Worth::Result),
        },
    }
}

fn member(view: &View, part: &Part) -> Decision {
    match steps(view, 0, &part.steps) {
        Progress::Next(calls) => Decision::Call(calls),
        Progress::Stuck(error) => say_once(view, format!("I could not do it: {error}")),
        Progress::Waits => Decision::Say("I wait.".to_owned(), Worth::Idle),
        Progress::Done if part.after.is_some_and(|word| !view.has_heard(word)) => {
            Decision::Say("I wait.".to_owned(), Worth::Idle)
        }
        Progress::Done => say_once(view, (part.result)(view)),
    }
}

fn lead(view: &View, job: &Job) -> Decision {
    if let Some(call) = ruling(view).or_else(|| nudge(view)) {
        return Decision::Call(vec![call]);
    }
    let heard = view.heard();
    let Some((index, phase)) = job.phases.iter().enumerate().rfind(|(_, phase)| heard.contains(phase.cue)) else {
        return Decision::Say("Noted.".to_owned(), Worth::Idle);
    };
    match steps(view, index, &phase.steps) {
        Progress::Next(calls) => Decision::Call(calls),
        Progress::Stuck(error) => say_once(view, format!("{NOT_DONE}: {error}")),
        Progress::Waits | Progress::Done => answer(view, phase),
    }
}

/// The facts that reached the lead; without all of them an answer only once the work is over.
fn answer(view: &View, phase: &Phase) -> Decision {
    let known = format!("{}\n{}", view.system, view.heard());
    let (found, missing): (Vec<&str>, Vec<&str>) = phase.facts.iter().partition(|fact| known.contains(**fact));
    let is_over = !phase.is_long || view.news().contains("is over");
    if missing.is_empty() {
        say_once(view, format!("The answer: {}.", found.join(", ")))
    } else if is_over {
        say_once(view, format!("{NOT_DONE}: nothing is known about {}. Known: {}.", missing.len(), found.join(", ")))
    } else {
        Decision::Say("It is under way.".to_owned(), Worth::Idle)
    }
}

/// A failed task that waits for the lead's decision is tried again once, then given up.
fn ruling(view: &View) -> Option<Call> {
    let news = view.news();
    let asks = news.contains("has failed") && news.contains("task_update") && view.offered("task_update").is_some();
    let task = news.split('`').nth(1).filter(|_| asks)?;
    let step = format!("ruling_{task}_");
    let retry = json!({ "task_id": task, "decision": "retry", "note": "Do the work with your tools (again)." });
    let give_up = json!({ "task_id": task, "decision": "give_up" });
    let input = if view.attempts(&step) == 0 { retry } else { give_up };
    Some(Call { step, tool: "task_update".to_owned(), input })
}

/// A teammate that only says what it will do is told to do it.
fn nudge(view: &View) -> Option<Call> {
    let news = view.news();
    let (before, _) = news.split_once(PROMISE).filter(|_| view.offered("send_message").is_some())?;
    let (_, name) = before.rsplit_once("teammate_id=\"")?;
    let name = name.split('"').next()?;
    let input = json!({ "to": name, "message": format!("Do it now, {name}, with your tools (again).") });
    Some(Call { step: format!("nudge_{name}_"), tool: "send_message".to_owned(), input })
}

fn say_once(view: &View, text: String) -> Decision {
    let worth = if view.has_said(&text) { Worth::Idle } else { Worth::Result };
    Decision::Say(text, worth)
}

enum Progress {
    Next(Vec<Call>),
    /// A step waits for a word that has not come.
    Waits,
    Stuck(String),
    Done,
}

fn steps(view: &View, phase: usize, steps: &[Step]) -> Progress {
    for (index, step) in steps.iter().enumerate() {
        if step.after.is_some_and(|word| !view.has_heard(word)) {
            return Progress::Waits;
        }
        let mut calls = Vec::new();
        for (place, ways) in (step.calls)(view).into_iter().enumerate() {
            let id = format!("s{phase}_{index}_{place}_");
            let results = view.results(&id);
            let is_fit = |text: &str| step.expects.is_none_or(|word| text.contains(word) && !is_empty_claim(text));
            if results.iter().any(|(text, failed)| !failed && is_fit(text)) {
                continue;
            }
            let attempts = view.attempts(&id);
            let offered: Vec<&(&str, Value)> = ways.iter().filter(|(tool, _)| view.offered(tool).is_some()).collect();
            let untried = offered.iter().find(|(tool, input)| !view.has_failed(&id, tool, input));
            let Some((tool, input)) = untried.filter(|_| attempts < TRIES_MAX) else {
                if step.is_optional {
                    continue;
                }
                let error = results.last().map(|(text, _)| text.lines().next().unwrap_or_default().to_owned());
                return Progress::Stuck(error.unwrap_or_else(|| format!("no tool fits: {ways:?}")));
            };
            // A call that went well without the result is made again in other words.
            let is_poor = results.last().is_some_and(|(_, failed)| !failed);
            let input = if is_poor { again(input, attempts) } else { input.clone() };
            calls.push(Call { step: id, tool: (*tool).to_owned(), input });
        }
        if !calls.is_empty() {
            return Progress::Next(calls);
        }
    }
    Progress::Done
}

/// Whether the program says that the agent of a result has done nothing.
fn is_empty_claim(text: &str) -> bool {
    text.contains("called no tool")
        || text.contains("tool call, and it failed")
        || text.contains("all of them failed")
        || (text.contains("changed no file") && !text.contains("ran commands"))
}

/// The same wish in other words: an equal call would be a repetition.
fn again(input: &Value, attempt: usize) -> Value {
    let text = input.to_string().replace("ref:", &format!("Again ({attempt}): ref:"));
    serde_json::from_str(&text).unwrap_or_else(|_| input.clone())
}

/// The ways to give an agent work, fitted to the schemas that are offered: tools differ in what they call the fields.
pub(super) fn give(
    view: &View,
    tools: &[&'static str],
    who: &str,
    title: &str,
    text: &str,
) -> Vec<(&'static str, Value)> {
    let ways = tools.iter().filter_map(|tool| Some((*tool, fitted(view.offered(tool)?, who, title, text))));
    // An agent that failed is asked once more before another tool is tried.
    ways.flat_map(|(tool, input)| [(tool, input.clone()), (tool, again(&input, 1))]).collect()
}

fn fitted(schema: &Value, who: &str, title: &str, text: &str) -> Value {
    let Some(Value::Object(properties)) = schema.get("properties") else { return json!({}) };
    let first = |names: &[&'static str]| names.iter().copied().find(|name| properties.contains_key(*name));
    let whom = first(&["agent", "type", "member", "to", "who", "name"]);
    let body = first(&["prompt", "message", "task", "question", "instructions", "text", "description"]);
    let mut input = Map::new();
    for (name, value) in [(whom, who), (body, text)] {
        input.extend(name.map(|name| (name.to_owned(), json!(value))));
    }
    for name in ["title", "description", "name", "role"] {
        let is_required = schema.get("required").is_some_and(|list| list.to_string().contains(&format!("\"{name}\"")));
        if is_required && !input.contains_key(name) {
            input.insert(name.to_owned(), json!(title));
        }
    }
    Value::Object(input)
}

#[cfg(test)]
mod tests {
    use super::super::jobs;
    use super::*;

    const TOOLS: &str = r#"[{"name": "submit_plan", "input_schema": {}},
        {"name": "agent", "input_schema": {"properties": {"type": {}, "prompt": {}, "description": {}}, "required": ["description"]}}]"#;

    fn lead(messages: Value) -> Decision {
        let tools: Value = serde_json::from_str(TOOLS).expect("tools");
        let question = jobs::all().into_iter().find(|job| job.name == "question").expect("a job");
        decide(&View::new(&json!({ "tools": tools, "messages": messages })), &question)
    }

    #[test]
    fn the_lead_fits_its_call_to_the_tools_offered_and_answers_with_what_came_back() {
        let asked = json!({ "role": "user", "content": "Which port?" });
        let Decision::Call(calls) = lead(json!([asked])) else { panic!("no call") };
        let [call] = calls.as_slice() else { panic!("{calls:?}") };
        let fields: Vec<&str> = call.input.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!((call.tool.as_str(), fields), ("agent", vec!["type", "prompt", "description"]));
        let used = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "s0_0_0_1", "name": "agent", "input": call.input }] });
        let result = |text: &str| json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "s0_0_0_1", "content": text }] });
        let Decision::Say(answer, Worth::Result) = lead(json!([asked, used, result("8431 mark-look")])) else {
            panic!("no answer")
        };
        assert_eq!(answer, "The answer: 8431, mark-look.");
        // A result without the marker is asked for again, in other words.
        let Decision::Call(again) = lead(json!([asked, used, result("I will look.")])) else { panic!("no call") };
        assert!(again.iter().all(|again| again.input != call.input && again.tool == call.tool), "{again:?}");
    }
}
