//! Which providers and models there are, and what they cost.
//!
//! The rows are in `catalog.yaml`, embedded, read on first use; the user's own rows are merged over them. A model
//! without a row still works at a known provider, with careful defaults and no price. Nothing here connects to
//! anything or reads the environment: the caller has the key and makes an `Endpoint` of a provider.

mod row;

use std::num::NonZeroU32;
use std::sync::OnceLock;

use max_team_core::agent::Model;
use max_team_core::ledger::Price;
use serde_json::Value;
use thiserror::Error;

use crate::dialect::Dialect;
use crate::endpoint::KeyStyle;
use crate::wire::{Quirks, Thinking, Wire};
use crate::yaml;

const BUILTIN: &str = include_str!("catalog.yaml");

/// The context window of a model that has no row.
const CONTEXT_TOKENS_DEFAULT: u64 = 128_000;
/// The context window of a model that has no row and runs on the user's side, where windows are small unless the user
/// enlarges them.
const CONTEXT_TOKENS_LOCAL: u64 = 32_000;
/// Output tokens of a model that has no row: few, because providers refuse more than a model can write.
const MAX_TOKENS_UNLISTED: u32 = 8_192;
/// Output tokens of a model whose row does not say; more is possible, but all of it is reserved from the budget.
const MAX_TOKENS_LISTED: u32 = 32_000;
/// Thinking tokens of a model that decides by itself how much it thinks.
const THINKING_TOKENS_DEFAULT: u32 = 8_000;

/// Why something is not in the catalogue, or cannot be put there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CatalogError {
    /// A row is not as it should be.
    #[error("catalogue: {row}: `{field}` {problem}")]
    Field {
        row: String,
        /// Which field of it.
        field: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// The catalogue has no such provider.
    #[error("unknown provider `{name}`; {hint}")]
    UnknownProvider {
        /// As it was asked for.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// The catalogue has no such model, and no provider was named.
    #[error("unknown model `{name}`; {hint}")]
    UnknownModel {
        /// As it was asked for.
        name: String,
        /// What may have been meant.
        hint: String,
    },
}

/// A provider's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRow {
    pub name: String,
    /// The wire format it speaks.
    pub dialect: Dialect,
    /// Where it is.
    pub base_url: String,
    /// Environment variables that may hold its key; the first one set wins.
    pub key_env: Vec<String>,
    /// How it wants to see the key.
    pub key: KeyStyle,
    /// Headers it wants besides.
    pub headers: Vec<(String, String)>,
    /// Whether it runs on the user's side: free, and without a key unless it says otherwise.
    pub local: bool,
    /// How many requests it takes in a minute.
    pub requests_per_minute: Option<NonZeroU32>,
    /// What a user should know.
    pub notes: String,
    /// The model that answers when none is named.
    pub default_model: Option<String>,
    /// A quick and cheap model, for what needs no better.
    pub fast_model: Option<String>,
    /// Its models' names look like `vendor/model`.
    vendor_names: bool,
    quirks: Quirks,
}

/// A model's row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ModelRow {
    provider: String,
    name: String,
    aliases: Vec<String>,
    context_tokens: u64,
    max_tokens: u32,
    thinking: Thinking,
    /// `None`: as the kind of thinking suggests.
    thinking_tokens: Option<u32>,
    price: Option<Price>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    providers: Vec<ProviderRow>,
    models: Vec<ModelRow>,
}

impl Catalog {
    /// The rows that come with the product.
    pub fn builtin() -> &'static Self {
        static CATALOG: OnceLock<Catalog> = OnceLock::new();
        // A test holds the file to its shape; without it there would be no models, and every call would say so.
        CATALOG.get_or_init(|| Self::parse().unwrap_or_default())
    }

    fn parse() -> Result<Self, String> {
        let rows: Value = yaml::read(BUILTIN)?;
        Self::default().with(&rows).map_err(|error| error.to_string())
    }

    /// These rows with the user's merged over them.
    pub fn with(&self, rows: &Value) -> Result<Self, CatalogError> {
        row::merge(self.clone(), rows)
    }

    pub fn providers(&self) -> &[ProviderRow] {
        &self.providers
    }

    /// All listed models, resolved.
    pub fn models(&self) -> impl Iterator<Item = Model> {
        self.models.iter().map(ModelRow::model)
    }

    /// A provider by name.
    pub fn provider(&self, name: &str) -> Result<&ProviderRow, CatalogError> {
        self.providers
            .iter()
            .find(|provider| provider.name == name)
            .ok_or_else(|| CatalogError::UnknownProvider { name: name.to_owned(), hint: self.provider_hint(name) })
    }

    /// The model that a name means: `name`, an alias, or `provider/name`. With `provider`, names are looked up there
    /// unless they name another provider themselves; what has no row is taken as the provider's own name for it.
    pub fn resolve(&self, name: &str, provider: Option<&str>) -> Result<Model, CatalogError> {
        let given = provider.map(|provider| self.provider(provider)).transpose()?;
        if let Some(provider) = given.filter(|provider| provider.vendor_names) {
            let own = name.strip_prefix(provider.name.as_str()).and_then(|rest| rest.strip_prefix('/'));
            return self.at(provider, own.unwrap_or(name));
        }
        let named = name.split_once('/').and_then(|(provider, name)| Some((self.provider(provider).ok()?, name)));
        if let Some((provider, name)) = named {
            return self.at(provider, name);
        }
        if let Some(provider) = given {
            return self.at(provider, name);
        }
        if let Some(row) = self.models.iter().find(|row| row.is(name)) {
            return Ok(row.model());
        }
        match name.split_once('/') {
            Some((prefix, _)) => self.provider(prefix).map(|_| ()).and(Err(self.unknown_model(name))),
            None => Err(self.unknown_model(name)),
        }
    }

    /// How a model is spoken to.
    pub(crate) fn wire(&self, model: &Model) -> Wire {
        let provider = self.provider(&model.provider).ok();
        let dialect = provider.map_or(Dialect::OpenaiChat, |provider| provider.dialect);
        let row = self.row(&model.provider, &model.name);
        Wire {
            thinking: row.map_or(Thinking::None, |row| row.thinking),
            thinking_tokens: model.thinking_tokens,
            quirks: provider.map_or_else(Quirks::default, |provider| provider.quirks),
            ..Wire::new(dialect, &model.provider, &model.name)
        }
    }

    fn row(&self, provider: &str, name: &str) -> Option<&ModelRow> {
        self.models.iter().find(|row| row.provider == provider && row.is(name))
    }

    fn at(&self, provider: &ProviderRow, name: &str) -> Result<Model, CatalogError> {
        if name.trim().is_empty() {
            return Err(self.unknown_model(name));
        }
        let row = self.row(&provider.name, name);
        Ok(row.map_or_else(|| ModelRow::unlisted(provider, name).model(), ModelRow::model))
    }

    fn unknown_model(&self, name: &str) -> CatalogError {
        let names = self.models.iter().flat_map(|row| std::iter::once(&row.name).chain(&row.aliases));
        let hint = match closest(name, names.map(String::as_str)) {
            Some(close) => format!("did you mean `{close}`? For a model that is not listed write `provider/name`"),
            None => "for a model that is not listed write `provider/name`".into(),
        };
        CatalogError::UnknownModel { name: name.to_owned(), hint }
    }

    fn provider_hint(&self, name: &str) -> String {
        let names = || self.providers.iter().map(|provider| provider.name.as_str());
        match closest(name, names()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("known are {}; add your own under `catalog`", names().collect::<Vec<_>>().join(", ")),
        }
    }
}

impl ModelRow {
    fn unlisted(provider: &ProviderRow, name: &str) -> Self {
        Self {
            provider: provider.name.clone(),
            name: name.to_owned(),
            aliases: Vec::new(),
            context_tokens: if provider.local { CONTEXT_TOKENS_LOCAL } else { CONTEXT_TOKENS_DEFAULT },
            max_tokens: MAX_TOKENS_UNLISTED,
            thinking: Thinking::None,
            thinking_tokens: None,
            price: provider.local.then_some(Price::FREE),
        }
    }

    fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    fn model(&self) -> Model {
        let by_itself = match self.thinking {
            Thinking::Adaptive | Thinking::Switch => THINKING_TOKENS_DEFAULT,
            Thinking::None | Thinking::Budget | Thinking::Effort | Thinking::EffortWithoutTools => 0,
        };
        Model {
            provider: self.provider.clone(),
            name: self.name.clone(),
            context_tokens: self.context_tokens,
            max_tokens: self.max_tokens,
            thinking_tokens: self.thinking_tokens.unwrap_or(by_itself),
            price: self.price,
        }
    }
}

/// The candidate that looks most like a word, if one does.
fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    /// Below this the likeness is chance.
    const LIKENESS_MIN: f64 = 0.8;
    let word = word.to_lowercase();
    let scored = candidates.map(|candidate| (strsim::jaro_winkler(&word, &candidate.to_lowercase()), candidate));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 >= LIKENESS_MIN).then_some(best.1)
}

#[cfg(test)]
mod tests;
