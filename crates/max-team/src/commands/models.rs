//! `models`: the catalogue with the user's own rows, prices, and whether the key of each model is set.

use max_team_core::agent::Model;
use max_team_core::ledger::NANO;
use max_team_llm::{Catalog, ProviderRow};
use serde_json::{Value, json};

use super::table::table;
use crate::args;
use max_team_workspace::api_keys;
use max_team_workspace::config::Config;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::tokens;
use max_team_workspace::i18n::Lang;
use max_team_workspace::models;
use max_team_workspace::setup::AppEnv;

/// Tokens that a price is given for.
const PRICED_TOKENS: u64 = 1_000_000;

pub(crate) fn run(place: &AppEnv, options: &args::Models) -> anyhow::Result<Exit> {
    let config = place.settings(options.config.as_deref(), Vec::new())?;
    let catalog = models::catalog(&config)?;
    if let Some(name) = &options.provider {
        catalog.provider(name).map_err(|error| CliError::said(Exit::Usage, |lang| lang.catalog_fault(&error)))?;
    }
    let is_wanted = |model: &Model| options.provider.as_ref().is_none_or(|name| *name == model.provider);
    let shown: Vec<Model> = catalog.models().filter(is_wanted).collect();
    let key =
        |model: &Model| catalog.provider(&model.provider).map_or(KeyStatus::Unset, |row| key_of(place, &config, row));
    if options.json {
        let rows: Vec<Value> = shown.iter().map(|model| as_json(model, &catalog, key(model))).collect();
        super::print(&format!("{:#}\n", Value::from(rows)))?;
        return Ok(Exit::Ok);
    }
    let lang = place.lang(&config);
    let rows: Vec<Vec<String>> = shown.iter().map(|model| row(model, key(model), lang)).collect();
    super::print(&table(&lang.model_heads(), &rows))?;
    super::print(&format!("\n{}\n", lang.models_note()))?;
    Ok(Exit::Ok)
}

/// Whether a provider can be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyStatus {
    Set,
    Unset,
    NotNeeded,
}

/// Looks only where a key is named; no file is read and no helper is run.
fn key_of(place: &AppEnv, config: &Config, row: &ProviderRow) -> KeyStatus {
    match api_keys::is_named(&config.llm, &place.env, &row.name, &row.key_env) {
        true => KeyStatus::Set,
        false if row.local => KeyStatus::NotNeeded,
        false => KeyStatus::Unset,
    }
}

fn row(model: &Model, key: KeyStatus, lang: Lang) -> Vec<String> {
    let price = |nano: fn(&Model) -> Option<u64>| nano(model).map_or_else(|| "?".to_owned(), per_million);
    let key = match key {
        KeyStatus::Set => lang.key_set(),
        KeyStatus::Unset => lang.key_unset(),
        KeyStatus::NotNeeded => lang.key_not_needed(),
    };
    vec![
        format!("{}/{}", model.provider, model.name),
        tokens(model.context_tokens),
        price(|model| Some(model.price?.input)),
        price(|model| Some(model.price?.output)),
        key.to_owned(),
    ]
}

/// `$2.50`: the price of a million tokens, from the price of one.
fn per_million(nano: u64) -> String {
    let cents = nano.saturating_mul(PRICED_TOKENS) / (NANO / 100);
    format!("${}.{:02}", cents / 100, cents % 100)
}

fn as_json(model: &Model, catalog: &Catalog, key: KeyStatus) -> Value {
    let dollars = |nano: u64| nano as f64 * PRICED_TOKENS as f64 / NANO as f64;
    let provider = catalog.provider(&model.provider).ok();
    json!({
        "provider": model.provider, "name": model.name, "context_tokens": model.context_tokens,
        "max_tokens": model.max_tokens, "input_usd": model.price.map(|price| dollars(price.input)),
        "output_usd": model.price.map(|price| dollars(price.output)), "key_set": key != KeyStatus::Unset,
        "key_env": provider.map(|row| row.key_env.clone()).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_for_a_million_tokens() {
        let table = [(0, "$0.00"), (3_000, "$3.00"), (75, "$0.07"), (2_500, "$2.50"), (15_000, "$15.00")];
        assert!(table.iter().all(|(nano, text)| per_million(*nano) == *text), "{table:?}");
    }
}
