//! Rows of the catalogue out of JSON: the embedded ones and the user's go through the same checks.
//!
//! Everything that is wrong is said with its row, its field and what would be right. An existing row keeps the
//! fields that its new version does not give.

use std::num::NonZeroU32;

use max_team_core::ledger::Price;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Catalog, CatalogError, MAX_TOKENS_LISTED, ModelRow, ProviderRow, closest};
use crate::dialect::Dialect;
use crate::endpoint::KeyStyle;
use crate::nano_dollars;
use crate::wire::Quirks;

const TOP: &[&str] = &["providers", "models"];
const PROVIDER: &[&str] = &[
    "dialect",
    "base_url",
    "key_env",
    "key_header",
    "headers",
    "local",
    "requests_per_minute",
    "vendor_names",
    "max_completion_tokens",
    "no_stream_options",
    "notes",
    "default_model",
    "fast_model",
];
const MODEL: &[&str] =
    &["provider", "name", "aliases", "context_tokens", "max_tokens", "thinking", "thinking_tokens", "price"];
const PRICE: &[&str] = &["input", "output", "cache_read", "cache_write"];

pub(super) fn merge(mut catalog: Catalog, rows: &Value) -> Result<Catalog, CatalogError> {
    let top = Fields::new("the catalogue".into(), rows, TOP)?;
    if let Some(providers) = top.get("providers") {
        let providers = providers.as_object().ok_or_else(|| top.wrong("providers", "must be a map of rows by name"))?;
        for (name, row) in providers {
            let fields = Fields::new(format!("provider `{name}`"), row, PROVIDER)?;
            let old = catalog.providers.iter().position(|provider| provider.name == *name);
            let row = provider(name, &fields, old.and_then(|at| catalog.providers.get(at)))?;
            put(&mut catalog.providers, old, row);
        }
    }
    if let Some(models) = top.get("models") {
        let models = models.as_array().ok_or_else(|| top.wrong("models", "must be a list of rows"))?;
        for (index, row) in models.iter().enumerate() {
            let fields = Fields::new(model_label(index, row), row, MODEL)?;
            let (name, owner) = (fields.required("name")?, fields.required("provider")?);
            let Ok(owner) = catalog.provider(&owner) else {
                let hint = catalog.provider_hint(&owner);
                return Err(fields.wrong("provider", &format!("names `{owner}`, which has no row; {hint}")));
            };
            let old = catalog.models.iter().position(|row| row.provider == owner.name && row.name == name);
            let known = old.and_then(|at| catalog.models.get(at));
            let row = model(&fields, known.cloned().unwrap_or_else(|| ModelRow::unlisted(owner, &name)))?;
            put(&mut catalog.models, old, row);
        }
    }
    Ok(catalog)
}

fn put<T>(rows: &mut Vec<T>, old: Option<usize>, row: T) {
    match old.and_then(|at| rows.get_mut(at)) {
        Some(place) => *place = row,
        None => rows.push(row),
    }
}

fn model_label(index: usize, row: &Value) -> String {
    match row.get("name").and_then(Value::as_str) {
        Some(name) => format!("model `{name}`"),
        None => format!("model {}", index + 1),
    }
}

fn provider(name: &str, fields: &Fields<'_>, old: Option<&ProviderRow>) -> Result<ProviderRow, CatalogError> {
    let mut row = match old {
        Some(old) => old.clone(),
        None => ProviderRow {
            name: name.to_owned(),
            dialect: fields.choice("dialect")?.ok_or_else(|| fields.missing("dialect"))?,
            base_url: fields.required("base_url")?,
            key_env: Vec::new(),
            key: KeyStyle::Bearer,
            headers: Vec::new(),
            local: false,
            requests_per_minute: None,
            notes: String::new(),
            default_model: None,
            fast_model: None,
            vendor_names: false,
            quirks: Quirks::default(),
        },
    };
    set(&mut row.dialect, fields.choice::<Dialect>("dialect")?);
    set(&mut row.base_url, fields.text("base_url")?);
    set(&mut row.key_env, fields.texts("key_env")?);
    set(&mut row.headers, fields.pairs("headers")?);
    set(&mut row.local, fields.flag("local")?);
    set(&mut row.notes, fields.text("notes")?);
    row.default_model = fields.text("default_model")?.or(row.default_model.take());
    row.fast_model = fields.text("fast_model")?.or(row.fast_model.take());
    set(&mut row.vendor_names, fields.flag("vendor_names")?);
    set(&mut row.quirks.completion_tokens, fields.flag("max_completion_tokens")?);
    set(&mut row.quirks.no_stream_options, fields.flag("no_stream_options")?);
    set(
        &mut row.key,
        fields.text("key_header")?.map(|header| match header.as_str() {
            "bearer" => KeyStyle::Bearer,
            _ => KeyStyle::Header(header),
        }),
    );
    if let Some(limit) = fields.count::<NonZeroU32>("requests_per_minute")? {
        row.requests_per_minute = Some(limit);
    }
    Ok(row)
}

fn model(fields: &Fields<'_>, mut row: ModelRow) -> Result<ModelRow, CatalogError> {
    set(&mut row.aliases, fields.texts("aliases")?);
    if let Some(tokens) = fields.count::<NonZeroU32>("context_tokens")? {
        row.context_tokens = u64::from(tokens.get());
        row.max_tokens = (tokens.get() / 4).min(MAX_TOKENS_LISTED);
    }
    set(&mut row.max_tokens, fields.count::<NonZeroU32>("max_tokens")?.map(NonZeroU32::get));
    set(&mut row.thinking, fields.choice("thinking")?);
    if let Some(tokens) = fields.count("thinking_tokens")? {
        row.thinking_tokens = Some(tokens);
    }
    match fields.get("price") {
        None => {}
        Some(Value::Null) => row.price = None,
        Some(Value::Array(prices)) => {
            let named: Map<String, Value> = PRICE.iter().map(|name| (*name).to_owned()).zip(prices.clone()).collect();
            row.price = Some(price(fields, &Value::Object(named), None)?);
        }
        Some(prices) => row.price = Some(price(fields, prices, row.price)?),
    }
    Ok(row)
}

/// Where a provider has no price for the cache, cached input costs what input costs.
fn price(row: &Fields<'_>, prices: &Value, old: Option<Price>) -> Result<Price, CatalogError> {
    let fields = Fields::new(format!("{}: price", row.row), prices, PRICE)?;
    let known = |key, old: Option<u64>| fields.price(key).map(|new| new.or(old));
    let input = known("input", old.map(|old| old.input))?.ok_or_else(|| fields.missing("input"))?;
    Ok(Price {
        input,
        output: known("output", old.map(|old| old.output))?.ok_or_else(|| fields.missing("output"))?,
        cache_read: known("cache_read", old.map(|old| old.cache_read))?.unwrap_or(input),
        cache_write: known("cache_write", old.map(|old| old.cache_write))?.unwrap_or(input),
    })
}

fn set<T>(place: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *place = new;
    }
}

/// One row's fields, and what to call it when something is wrong.
struct Fields<'v> {
    row: String,
    map: &'v Map<String, Value>,
}

impl<'v> Fields<'v> {
    fn new(row: String, value: &'v Value, known: &[&str]) -> Result<Self, CatalogError> {
        let Value::Object(map) = value else {
            let problem = format!("must be a map, not {}", kind(value));
            return Err(CatalogError::Field { row, field: "(the whole row)".into(), problem });
        };
        let fields = Self { row, map };
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(fields),
            Some(key) => Err(match closest(key, known.iter().copied()) {
                Some(close) => fields.wrong(key, &format!("is not a field; did you mean `{close}`?")),
                None => fields.wrong(key, &format!("is not a field; there are {}", known.join(", "))),
            }),
        }
    }

    fn get(&self, field: &str) -> Option<&'v Value> {
        self.map.get(field)
    }

    fn wrong(&self, field: &str, problem: &str) -> CatalogError {
        CatalogError::Field { row: self.row.clone(), field: field.to_owned(), problem: problem.to_owned() }
    }

    fn missing(&self, field: &str) -> CatalogError {
        self.wrong(field, "is missing")
    }

    /// Reads a field; `lens` returns `None` for a value of the wrong kind.
    fn read<T>(
        &self,
        field: &str,
        wanted: &str,
        lens: impl Fn(&'v Value) -> Option<T>,
    ) -> Result<Option<T>, CatalogError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let wrong = || self.wrong(field, &format!("must be {wanted}, not {}", kind(value)));
        lens(value).map(Some).ok_or_else(wrong)
    }

    fn text(&self, field: &str) -> Result<Option<String>, CatalogError> {
        self.read(field, "text", |value| value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned))
    }

    fn required(&self, field: &str) -> Result<String, CatalogError> {
        self.text(field)?.ok_or_else(|| self.missing(field))
    }

    fn texts(&self, field: &str) -> Result<Option<Vec<String>>, CatalogError> {
        self.read(field, "a list of texts", |value| {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    fn pairs(&self, field: &str) -> Result<Option<Vec<(String, String)>>, CatalogError> {
        self.read(field, "a map of texts", |value| {
            let pairs = value.as_object()?.iter();
            pairs.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
        })
    }

    fn flag(&self, field: &str) -> Result<Option<bool>, CatalogError> {
        self.read(field, "true or false", Value::as_bool)
    }

    /// A whole number that the type takes.
    fn count<T: for<'d> Deserialize<'d>>(&self, field: &str) -> Result<Option<T>, CatalogError> {
        self.read(field, "a whole number", |value| T::deserialize(value).ok())
    }

    fn choice<T: for<'d> Deserialize<'d>>(&self, field: &str) -> Result<Option<T>, CatalogError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        // serde's own words list the choices.
        T::deserialize(value).map(Some).map_err(|error| self.wrong(field, &format!("cannot be {value}: {error}")))
    }

    /// Dollars per million tokens as nano-dollars per token.
    fn price(&self, field: &str) -> Result<Option<u64>, CatalogError> {
        self.read(field, "dollars per million tokens", |value| nano_dollars(value.as_f64()? / 1e6))
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Object(_) => "a map".into(),
        Value::Array(_) => "a list".into(),
        plain => plain.to_string(),
    }
}
