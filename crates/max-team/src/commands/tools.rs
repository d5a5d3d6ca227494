//! `tools list` and `tools show`: what agents can do, as they are told it.

use max_team_core::policy::Repeatability;
use max_team_runtime::with_team;
use max_team_tools::{Registry, Spec};
use serde_json::{Value, json};

use super::table::table;
use crate::args;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;

pub(crate) fn run(place: &AppEnv, command: &args::Tools) -> Result<(), CliError> {
    let tools = with_team(Registry::builtin());
    match command {
        args::Tools::List { json: true } => {
            let all: Vec<Value> = tools.specs().map(as_json).collect();
            super::print(&format!("{:#}\n", Value::from(all)))
        }
        args::Tools::List { json: false } => {
            let lang = place.speaks();
            let about = |spec: &Spec| lang.about(&spec.name).unwrap_or_default().to_owned();
            let row = |spec: &Spec| vec![spec.name.clone(), class(spec.class).to_owned(), about(spec)];
            super::print(&table(&lang.tool_heads(), &tools.specs().map(row).collect::<Vec<_>>()))
        }
        args::Tools::Show { name, json } => {
            let tool = tools.get(name).ok_or_else(|| {
                let names = tools.specs().map(|spec| spec.name.as_str());
                let near = max_team_core::suggest::nearest(name, names);
                CliError::said(Exit::Usage, |lang| match near {
                    Some(near) => lang.lint_unknown_near(name, near),
                    None => lang.lint_unknown(name),
                })
            })?;
            super::print(&if *json {
                format!("{:#}\n", as_json(tool.spec()))
            } else {
                page(tool.spec(), place.speaks())
            })
        }
    }
}

fn as_json(spec: &Spec) -> Value {
    json!({ "name": spec.name, "class": class(spec.class), "description": spec.description, "schema": spec.schema })
}

/// What a crash in the middle of a call means, in a word.
fn class(class: Repeatability) -> &'static str {
    match class {
        Repeatability::Pure => "pure",
        Repeatability::Idempotent => "idempotent",
        Repeatability::Keyed => "keyed",
        Repeatability::Opaque => "opaque",
    }
}

fn page(spec: &Spec, lang: Lang) -> String {
    let Spec { name, description, schema, class: kind, .. } = spec;
    let about = lang.about(name).unwrap_or_default();
    let mut text = format!("{name} ({})\n\n{about}\n\n{}\n{description}\n", class(*kind), lang.tool_told());
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let inputs = schema.get("properties").and_then(Value::as_object);
    for (name, input) in inputs.into_iter().flatten() {
        let word = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
        let needed = if required(name) { format!(", {}", lang.tool_required()) } else { String::new() };
        let one_of = input.get("enum").and_then(Value::as_array).map(|words| {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            format!(" {}", lang.tool_one_of(words.join(", ")))
        });
        text.push_str(&format!(
            "\n  {name} ({}{needed})\n      {}{}\n",
            word("type"),
            word("description"),
            one_of.unwrap_or_default()
        ));
    }
    text
}
