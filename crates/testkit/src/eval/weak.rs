//! The weak model: what the strong one would do, with a mistake.
//!
//! Which mistake a step gets follows from the job, the role and the step, so every run makes the same ones. A mistake in a
//! call is mended only by a result that says how (it names the tool or the field); otherwise the model makes it again. A
//! mistake that ends a turn is mended once the model is told anything more.

use serde_json::{Value, json};

use super::policy::{Call, Decision, PROMISE, TRIES_MAX, Worth};
use super::view::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// `ReadFile` for `read_file`.
    Case,
    /// `functions.read_file` for `read_file`.
    Prefix,
    /// A required field is left out.
    MissingField,
    /// The whole input is a string that holds JSON.
    StringInput,
    /// Lists and objects inside the input are strings that hold JSON.
    StringFields,
    /// A call that has succeeded is made again, twice.
    Repeat,
    /// "I will now …", and no call.
    Prose,
    /// The result is claimed, and nothing was done.
    Claim,
    /// The same call for ever.
    Loop,
}

const MEMBER: [Mistake; 8] = [
    Mistake::Case,
    Mistake::Prose,
    Mistake::MissingField,
    Mistake::StringInput,
    Mistake::Repeat,
    Mistake::Claim,
    Mistake::Prefix,
    Mistake::StringFields,
];
/// A lead that only talks has answered: no program could tell that from a mistake.
const LEAD: [Mistake; 6] = [
    Mistake::StringFields,
    Mistake::Case,
    Mistake::MissingField,
    Mistake::StringInput,
    Mistake::Prefix,
    Mistake::Repeat,
];

/// The mistake that the weak model makes at a call of a job.
fn mistake(view: &View, job: usize, call: &Call) -> Mistake {
    if view.role == "look" {
        return Mistake::Loop;
    }
    let places = call.step.split('_').filter_map(|part| part.trim_start_matches('s').parse::<usize>().ok());
    let role: usize = view.role.bytes().map(usize::from).sum();
    let number = job + role + places.sum::<usize>();
    let of = |kinds: &[Mistake]| kinds.get(number % kinds.len()).copied().unwrap_or(Mistake::Case);
    if view.role == "lead" { of(&LEAD) } else { of(&MEMBER) }
}

/// What the weak model makes of a decision, and the mistake in it, if there is one. `claim` is a result that the program could
/// find to be false.
pub(super) fn weaken(view: &View, job: usize, decided: Decision, claim: Option<&str>) -> (Decision, Option<Mistake>) {
    let Decision::Call(calls) = decided else { return after_the_last(view, job, decided) };
    let Some(first) = calls.first().filter(|call| call.step.starts_with('s')) else {
        // A decision that the lead must make with a call: it talks first.
        let promise = "I will see to it.".to_owned();
        let is_promised = view.has_said(&promise);
        let said = (Decision::Say(promise, Worth::Idle), Some(Mistake::Prose));
        return if is_promised { (Decision::Call(calls), None) } else { said };
    };
    // An agent that is asked again takes more care.
    let is_warned = view.news().contains("gain (") || view.has_heard("Again (") || view.has_heard("(again)");
    let kind = mistake(view, job, first);
    let claim = claim.filter(|claim| !is_warned && first.step == "s0_0_0_" && !view.has_said(claim));
    let words = format!("{PROMISE} {} and report.", first.tool);
    match (kind, claim) {
        (Mistake::Prose, _) if !is_warned && !view.has_said(&words) => (Decision::Say(words, Worth::Idle), Some(kind)),
        (Mistake::Claim, Some(claim)) => (Decision::Say(claim.to_owned(), Worth::Idle), Some(kind)),
        (Mistake::Prose | Mistake::Claim | Mistake::Repeat, _) => (Decision::Call(calls), None),
        (Mistake::Loop, _) if is_warned => (Decision::Call(calls), None),
        _ => {
            let made: Vec<(Call, bool)> = calls.iter().map(|call| spoilt(view, kind, call)).collect();
            let is_spoilt = made.iter().any(|(_, is_spoilt)| *is_spoilt);
            (Decision::Call(made.into_iter().map(|(call, _)| call).collect()), is_spoilt.then_some(kind))
        }
    }
}

/// A call that succeeded is made again: twice, or for ever.
fn after_the_last(view: &View, job: usize, decided: Decision) -> (Decision, Option<Mistake>) {
    let Some((call, kind)) = view.last_call().map(|call| (call.clone(), mistake(view, job, &call))) else {
        return (decided, None);
    };
    let is_warned = view.has_heard("Again (") || view.has_heard("(again)");
    let repeats = match kind {
        // Two equal plans at once would make the counts depend on time.
        Mistake::Repeat => call.tool != "submit_plan" && view.attempts(&call.step) < TRIES_MAX,
        Mistake::Loop => !is_warned,
        _ => false,
    };
    if repeats { (Decision::Call(vec![call]), Some(kind)) } else { (decided, None) }
}

/// The call with the mistake in it, and whether it is in it.
fn spoilt(view: &View, kind: Mistake, call: &Call) -> (Call, bool) {
    let schema = view.offered(&call.tool).cloned().unwrap_or_default();
    let field = missing(&schema, &call.input);
    let hint = match kind {
        Mistake::Case | Mistake::Prefix => call.tool.clone(),
        Mistake::MissingField => format!("`{field}`"),
        _ => "object".to_owned(),
    };
    let told = view.results(&call.step);
    let is_mended = told.last().is_some_and(|(text, _)| text.contains(&hint));
    if is_mended {
        return (call.clone(), false);
    }
    let mut made = call.clone();
    match kind {
        Mistake::Case => made.tool = camel(&call.tool),
        Mistake::Prefix => made.tool = format!("functions.{}", call.tool),
        Mistake::MissingField => {
            made.input.as_object_mut().map(|fields| fields.shift_remove(&field));
        }
        Mistake::StringInput => made.input = json!(call.input.to_string()),
        Mistake::StringFields => {
            for (_, value) in made.input.as_object_mut().into_iter().flatten() {
                if value.is_array() || value.is_object() || value.is_number() {
                    *value = json!(value.to_string());
                }
            }
        }
        _ => {}
    }
    let is_spoilt = made.tool != call.tool || made.input != call.input;
    (made, is_spoilt)
}

/// The field that is forgotten: the last that is required, or else the last that is given.
fn missing(schema: &Value, input: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array).and_then(|names| names.last()?.as_str());
    let given = input.as_object().and_then(|fields| fields.keys().next_back().map(String::as_str));
    required.or(given).unwrap_or_default().to_owned()
}

fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(error: Option<&str>) -> View {
        let schema = json!({ "properties": { "path": {}, "content": {} }, "required": ["path", "content"] });
        let mut messages = vec![json!({ "role": "user", "content": "ref:code Write a.txt." })];
        if let Some(error) = error {
            let used = json!({ "type": "tool_use", "id": "s0_0_0_3", "name": "write_file", "input": {} });
            let result =
                json!({ "type": "tool_result", "tool_use_id": "s0_0_0_3", "content": error, "is_error": true });
            messages.push(json!({ "role": "assistant", "content": [used] }));
            messages.push(json!({ "role": "user", "content": [result] }));
        }
        View::new(&json!({ "tools": [{ "name": "write_file", "input_schema": schema }], "messages": messages }))
    }

    #[test]
    fn a_mistake_is_mended_only_by_an_error_that_says_how() {
        let input = json!({ "path": "a.txt", "content": "a" });
        let call = Call { step: "s0_0_0_".to_owned(), tool: "write_file".to_owned(), input: input.clone() };
        for (kind, error, is_wrong) in [
            (Mistake::Case, None, true),
            (Mistake::Case, Some("unknown tool"), true),
            (Mistake::Case, Some("did you mean `write_file`?"), false),
            (Mistake::Prefix, None, true),
            (Mistake::MissingField, None, true),
            (Mistake::MissingField, Some("a field is missing"), true),
            (Mistake::MissingField, Some("`content` is missing"), false),
            (Mistake::StringInput, None, true),
            (Mistake::StringInput, Some("the input must be an object"), false),
            // Nothing in this input can be written as text by mistake.
            (Mistake::StringFields, None, false),
        ] {
            let (made, is_spoilt) = spoilt(&view(error), kind, &call);
            let is_changed = made.tool != call.tool || made.input != input;
            assert_eq!((is_spoilt, is_changed), (is_wrong, is_wrong), "{kind:?} {error:?}: {made:?}");
        }
    }
}
