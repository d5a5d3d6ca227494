//! Which model answers: from flags, settings, the environment, or a server on this machine.
//!
//! The order: what was named wins; else a provider whose key is there; else a local server (loopback only, looked for
//! only when nothing else is set up); else nothing, and the user is told how to begin. A named model decides its
//! provider; a key written down for one provider is never sent to another.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use max_team_core::agent::{Model, Settings};
use max_team_core::suggest::slips;
use max_team_llm::{Catalog, CatalogError, Endpoint, Options, ProviderRow, Replay, Router};
use serde_json::Value;

use crate::api_keys::{self, ApiKey};
use crate::config::{Config, Env};
use crate::exit::{CliError, Exit};
use crate::setup::AppEnv;

/// How long a server on this machine may take to say what it has.
const LOCAL_WAIT: Duration = Duration::from_millis(300);
/// Bytes of its answer.
const LOCAL_BYTES_MAX: u64 = 1 << 20;
/// Servers that people run on their own machine, by row of the catalogue, port and the path that lists models.
const LOCAL: [(&str, u16, &str); 2] = [("ollama", 11434, "/api/tags"), ("lmstudio", 1234, "/v1/models")];
/// Names that definitions from elsewhere take for granted.
const USUAL: [&str; 4] = ["haiku", "sonnet", "opus", "fable"];

/// Providers in the order in which their keys are looked for.
const PREFERRED: [&str; 3] = ["anthropic", "openai", "deepseek"];

/// The model that answers, and the way to it.
#[derive(Debug)]
pub struct ChosenModel {
    pub model: Model,
    pub fallback: Option<Model>,
    /// A cheaper one of the same provider, for what needs no better.
    pub fast: Option<Model>,
    pub key_source: String,
    pub router: Router,
    pub catalog: Arc<Catalog>,
}

impl ChosenModel {
    /// Whether no provider was set up when it was chosen or since.
    pub fn is_pending(&self) -> bool {
        self.router.is_pending()
    }

    /// Asks the provider of `other` from now on, if none was set up so far.
    pub fn set_up(&self, other: &Self) {
        self.router.set_up(&other.router);
    }

    /// The models that can be chosen now: those listed for the provider that is set up.
    pub fn names(&self) -> Vec<String> {
        let here = self.catalog.models().filter(|model| model.provider == self.model.provider);
        here.map(|model| model.name).collect()
    }

    /// The model behind a name.
    pub fn resolve(&self, name: &str) -> Result<Model, CliError> {
        let model = self.catalog.resolve(name, Some(&self.model.provider));
        let mut model = model.map_err(|error| CliError::said(Exit::Usage, |lang| lang.catalog_fault(&error)))?;
        if model.provider != self.model.provider {
            return Err(CliError::said(Exit::Usage, |lang| lang.model_elsewhere(name, &model.provider)));
        }
        if let Some(near) = nearest(&self.catalog, &model) {
            return Err(CliError::said(Exit::Usage, |lang| lang.model_not_listed(name, &near)));
        }
        model.thinking_tokens = self.model.thinking_tokens;
        Ok(model)
    }

    /// Every model that can be wished for here, by name.
    pub fn wishes(&self) -> BTreeMap<String, Model> {
        let usual = USUAL.into_iter().chain(["fast"]).map(str::to_owned);
        let names = self.names().into_iter().chain(usual);
        names.filter_map(|name| self.wished(&name).map(|model| (name, model))).collect()
    }

    /// The model that a definition wishes for, if there is such a one here.
    pub fn wished(&self, name: &str) -> Option<Model> {
        // `resolve` passes an unlisted name on as it is. Most providers have no model called `sonnet` or the like, so
        // that does not count as found.
        let is_known = |model: &Model| !USUAL.contains(&name) || model.name != name;
        let listed = || self.resolve(name).ok().filter(is_known);
        match name {
            "fast" => self.fast.clone(),
            "balanced" | "deep" => None,
            "haiku" => listed().or_else(|| self.fast.clone()),
            _ => listed(),
        }
    }
}

/// Reads the catalogue with the user's own rows.
pub fn catalog(config: &Config) -> Result<Catalog, CliError> {
    Catalog::builtin()
        .with(&config.catalog)
        .map_err(|error| CliError::said(Exit::Config, |lang| lang.catalog_of_settings(lang.catalog_fault(&error))))
}

pub fn choose(config: &Config, place: &AppEnv) -> Result<ChosenModel, CliError> {
    let env = &place.env;
    let catalog = Arc::new(catalog(config)?);
    let named = config.llm.default_model.as_deref();
    let provider = match provider_for(config, env, &catalog, named)? {
        Some(provider) => provider,
        None => return local(config, place, &catalog, named),
    };
    build(config, place, &catalog, &provider, named)
}

/// Like `choose`, but without a key the model that would be asked, and a router that gets a provider later: enough to show a team, not
/// to ask it.
pub fn choose_or_wait(config: &Config, place: &AppEnv) -> Result<ChosenModel, CliError> {
    match choose(config, place) {
        Err(stop) if stop.exit == Exit::NoKey => without_key(config, place),
        chosen => chosen,
    }
}

fn without_key(config: &Config, place: &AppEnv) -> Result<ChosenModel, CliError> {
    let bad = |error: &CatalogError| CliError::said(Exit::Config, |lang| lang.catalog_fault(error));
    let catalog = Arc::new(catalog(config)?);
    let named = config.llm.default_model.as_deref();
    let [usual, ..] = PREFERRED;
    let provider = provider_for(config, &place.env, &catalog, named)?.unwrap_or_else(|| usual.to_owned());
    let row = catalog.provider(&provider).map_err(|error| bad(&error))?;
    let name = named.or(row.default_model.as_deref()).unwrap_or_default();
    let model = sized(catalog.resolve(name, Some(&provider)).map_err(|error| bad(&error))?, config);
    let (key_source, router) = ("none".to_owned(), Router::pending());
    Ok(ChosenModel { model, fallback: None, fast: None, key_source, router, catalog })
}

/// The models of a recorded run, as the catalogue has them now. Needs no key, because no provider is called.
pub fn recorded(config: &Config, then: &Settings) -> Result<ChosenModel, CliError> {
    let catalog = Arc::new(catalog(config)?);
    let now = |model: &Model| {
        let listed = catalog.models().find(|row| (&row.provider, &row.name) == (&model.provider, &model.name));
        listed.map_or_else(|| model.clone(), |row| sized(row, config))
    };
    let model = match &config.llm.default_model {
        Some(name) => {
            let provider = config.llm.provider.as_deref().unwrap_or(&then.model.provider);
            let found = catalog.resolve(name, Some(provider));
            sized(found.map_err(|error| CliError::said(Exit::Config, |lang| lang.catalog_fault(&error)))?, config)
        }
        None => now(&then.model),
    };
    let (fallback, fast) = (then.fallback.as_ref().map(now), then.compaction.model.as_ref().map(now));
    let (key_source, router) = ("none".to_owned(), Router::replay(Replay::default()));
    Ok(ChosenModel { model, fallback, fast, key_source, router, catalog })
}

/// The provider that is named, or implied by the model's name, an address, or a key.
fn provider_for(
    config: &Config,
    env: &Env,
    catalog: &Catalog,
    named: Option<&str>,
) -> Result<Option<String>, CliError> {
    if let Some(provider) = &config.llm.provider {
        return Ok(Some(provider.clone()));
    }
    if let Some(model) = named.and_then(|name| catalog.resolve(name, None).ok()) {
        return Ok(Some(model.provider));
    }
    let addressed = |provider: &&&str| base_url(config, env, provider).is_some() && config.llm.base_url.is_none();
    if let Some(provider) = ["anthropic", "openai"].iter().find(addressed) {
        return Ok(Some((*provider).to_owned()));
    }
    let has_key = |name: &str| {
        let variables = catalog.provider(name).map(|provider| provider.key_env.as_slice()).unwrap_or_default();
        variables.iter().any(|variable| env.get(variable).is_some_and(|value| !value.trim().is_empty()))
    };
    let known = catalog.providers().iter().map(|provider| provider.name.as_str());
    let mut order = PREFERRED.into_iter().chain(known);
    if let Some(provider) = order.find(|name| has_key(name)) {
        return Ok(Some(provider.to_owned()));
    }
    // An address alone: most servers that people point at speak the common dialect.
    Ok(config.llm.base_url.as_ref().map(|_| "openai".to_owned()))
}

/// The address to use instead of the catalogue's, if any.
pub fn base_url(config: &Config, env: &Env, provider: &str) -> Option<String> {
    let variable = match provider {
        "anthropic" => "ANTHROPIC_BASE_URL",
        "openai" => "OPENAI_BASE_URL",
        _ => "",
    };
    let from_env = || env.get(variable).filter(|url| !url.is_empty()).map(str::to_owned);
    config.llm.base_url.clone().or_else(from_env)
}

fn build(
    config: &Config,
    place: &AppEnv,
    catalog: &Arc<Catalog>,
    provider: &str,
    named: Option<&str>,
) -> Result<ChosenModel, CliError> {
    let env = &place.env;
    let bad = |error: &CatalogError| CliError::said(Exit::Config, |lang| lang.catalog_fault(error));
    let row = catalog.provider(provider).map_err(|error| bad(&error))?;
    let url = base_url(config, env, provider);
    let name = match named.or(row.default_model.as_deref()) {
        Some(name) => name.to_owned(),
        None => {
            return Err(CliError::said(Exit::Config, |lang| lang.no_usual_model(provider)));
        }
    };
    let model = catalog.resolve(&name, Some(provider)).map_err(|error| bad(&error))?;
    if let Some(near) = nearest(catalog, &model) {
        place.tell(&place.lang(config).model_asked_as_is(&model.name, near));
    }
    let fallback = match &config.llm.fallback_model {
        Some(name) => Some(sized(
            catalog
                .resolve(name, None)
                .or_else(|_| catalog.resolve(name, Some(provider)))
                .map_err(|error| bad(&error))?,
            config,
        )),
        None => None,
    };
    let key = api_keys::find(&config.llm, env, provider, &row.key_env)?;
    let key_source = key.as_ref().map_or_else(|| "none".to_owned(), |key| key.source.clone());
    let first = endpoint(config, row, url.as_deref(), key)?;
    if first.missing_key().is_some() {
        return Err(no_key(Some(row)));
    }
    let mut endpoints = vec![first];
    if let Some(other) = fallback.as_ref().filter(|other| other.provider != provider)
        && let Ok(row) = catalog.provider(&other.provider)
    {
        let key = api_keys::find(&config.llm, env, &row.name, &row.key_env)?;
        endpoints.push(endpoint(config, row, None, key)?);
    }
    let options = Options {
        idle_timeout: config.llm.timeout,
        progress_timeout: config.llm.progress_timeout,
        cert_file: env.get("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(Into::into),
        ..Options::default()
    };
    let router = Router::http(Arc::clone(catalog), endpoints, options);
    let fast = url.is_none().then(|| cheaper(catalog, row, &model)).flatten().map(|fast| sized(fast, config));
    let model = sized(model, config);
    Ok(ChosenModel { model, fallback, fast, key_source, router, catalog: Arc::clone(catalog) })
}

/// The provider's quick model, if it costs less than this one. Not for a server of the user's own: its models are
/// unknown.
fn cheaper(catalog: &Catalog, provider: &ProviderRow, than: &Model) -> Option<Model> {
    let fast = catalog.resolve(provider.fast_model.as_deref()?, Some(&provider.name)).ok()?;
    let cost = |model: &Model| model.price.map(|price| (price.input, price.output));
    let (less, more) = (cost(&fast)?, cost(than)?);
    (less.0 < more.0 && less.1 < more.1).then_some(fast)
}

/// Slips that make one model's name of another; their names are more alike than other words.
const SLIPS_MAX: usize = 2;

/// The listed model that an unlisted one may have been meant to be.
fn nearest(catalog: &Catalog, model: &Model) -> Option<String> {
    let listed: Vec<String> =
        catalog.models().filter(|row| row.provider == model.provider).map(|row| row.name).collect();
    if listed.contains(&model.name) {
        return None;
    }
    listed.into_iter().find(|name| slips(&model.name, name).is_some_and(|slips| slips <= SLIPS_MAX))
}

fn endpoint(config: &Config, row: &ProviderRow, url: Option<&str>, key: Option<ApiKey>) -> Result<Endpoint, CliError> {
    let mut row = row.clone();
    row.requests_per_minute = config.llm.requests_per_minute.and_then(NonZeroU32::new).or(row.requests_per_minute);
    Endpoint::new(&row, url, key.map(|key| key.secret)).map_err(|error| CliError::new(Exit::Config, error.to_string()))
}

/// The model with what the settings say about its answers.
fn sized(mut model: Model, config: &Config) -> Model {
    if let Some(tokens) = config.llm.max_tokens {
        model.max_tokens = tokens;
    }
    model.thinking_tokens = config.llm.thinking_tokens;
    model
}

/// Uses a server on this machine, if one answers.
fn local(
    config: &Config,
    place: &AppEnv,
    catalog: &Arc<Catalog>,
    named: Option<&str>,
) -> Result<ChosenModel, CliError> {
    for (provider, port, path) in LOCAL {
        let Some(models) = ask_local(port, path) else { continue };
        let Some(name) = named.map(str::to_owned).or_else(|| models.into_iter().next()) else { continue };
        return build(config, place, catalog, provider, Some(&name));
    }
    api_keys::require_provider(&config.llm)?;
    Err(no_key(None))
}

/// What `doctor` and the first run say about local servers: provider and models.
pub fn local_servers() -> Vec<(&'static str, Vec<String>)> {
    LOCAL.into_iter().filter_map(|(provider, port, path)| Some((provider, ask_local(port, path)?))).collect()
}

/// Asks a loopback server for its models, with the least HTTP there is.
fn ask_local(port: u16, path: &str) -> Option<Vec<String>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, LOCAL_WAIT).ok()?;
    stream.set_read_timeout(Some(LOCAL_WAIT)).ok()?;
    stream.set_write_timeout(Some(LOCAL_WAIT)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.take(LOCAL_BYTES_MAX).read_to_string(&mut text).ok()?;
    let body = text.split_once("\r\n\r\n")?.1;
    let json: Value = serde_json::from_str(body.get(body.find('{')?..=body.rfind('}')?)?).ok()?;
    let rows = json.get("models").or_else(|| json.get("data"))?.as_array()?;
    let name = |row: &Value| Some(row.get("name").or_else(|| row.get("id"))?.as_str()?.to_owned());
    Some(rows.iter().filter_map(name).collect())
}

fn no_key(row: Option<&ProviderRow>) -> CliError {
    CliError::said(Exit::NoKey, |lang| match row {
        Some(row) => lang.no_key_for(&row.name, row.key_env.join(", ")),
        None => lang.no_model_yet().to_owned(),
    } + "\n" + lang.how_to_begin())
}
