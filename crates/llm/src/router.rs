//! The one seam between an agent's loop and its models, whether they are real or recorded.
//!
//! It knows which provider is where, keeps each provider's pace, and makes one attempt per call. It never retries,
//! never changes models and never decides what to send.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use max_team_core::agent::Model;
use max_team_core::chat::{Answer, PartialAnswer};
use max_team_core::recovery::Failure;
use tokio_util::sync::CancellationToken;

use crate::call::{CallError, Delta, Sink};
use crate::catalog::Catalog;
use crate::client::{Client, Options};
use crate::dialect::Dialect;
use crate::endpoint::Endpoint;
use crate::rate_limit::RateLimit;
use crate::replay::Replay;
use crate::wire::{Request, Wire};

/// Answers requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Router {
    backend: Arc<Backend>,
}

#[derive(Debug)]
enum Backend {
    Http(Http),
    Replay(Replay),
    /// No provider is set up yet.
    Pending(OnceLock<Router>),
}

#[derive(Debug)]
struct Http {
    client: Client,
    catalog: Arc<Catalog>,
    providers: HashMap<String, Route>,
    stream: bool,
}

#[derive(Debug)]
struct Route {
    endpoint: Endpoint,
    pace: Option<RateLimit>,
}

impl Router {
    /// A router to real models, over HTTP.
    pub fn http(catalog: Arc<Catalog>, endpoints: impl IntoIterator<Item = Endpoint>, options: Options) -> Self {
        let stream = options.stream;
        let providers = endpoints.into_iter().map(|endpoint| {
            let pace = endpoint.provider().requests_per_minute.map(RateLimit::new);
            (endpoint.provider().name.clone(), Route { endpoint, pace })
        });
        let http = Http { client: Client::new(options), catalog, providers: providers.collect(), stream };
        Self { backend: Arc::new(Backend::Http(http)) }
    }

    /// A router to a recorded model.
    pub fn replay(replay: Replay) -> Self {
        Self { backend: Arc::new(Backend::Replay(replay)) }
    }

    /// A router to providers that are set up later, with [`Router::set_up`].
    pub fn pending() -> Self {
        Self { backend: Arc::new(Backend::Pending(OnceLock::new())) }
    }

    /// Whether no provider is set up yet.
    pub fn is_pending(&self) -> bool {
        matches!(self.backend(), Backend::Pending(_))
    }

    /// Passes requests on to `router` from now on. Changes nothing if this router has its providers.
    pub fn set_up(&self, router: &Self) {
        if let Backend::Pending(slot) = &*self.backend
            && !router.is_pending()
        {
            slot.get_or_init(|| router.clone());
        }
    }

    fn backend(&self) -> &Backend {
        match &*self.backend {
            Backend::Pending(slot) => slot.get().map_or(&*self.backend, Self::backend),
            backend => backend,
        }
    }

    /// How a model is spoken to.
    pub fn wire(&self, model: &Model) -> Wire {
        match self.backend() {
            Backend::Http(http) => Wire { stream: http.stream, ..http.catalog.wire(model) },
            Backend::Replay(_) | Backend::Pending(_) => Wire::new(Dialect::Anthropic, &model.provider, &model.name),
        }
    }

    /// The proxy that a provider is asked through, if there is one; an error says what has to be corrected before anything is
    /// asked.
    pub fn proxy_for(&self, provider: &str) -> Result<Option<String>, String> {
        match self.backend() {
            Backend::Http(http) => {
                http.providers.get(provider).map_or(Ok(None), |route| http.client.proxy_for(&route.endpoint))
            }
            Backend::Replay(_) | Backend::Pending(_) => Ok(None),
        }
    }

    /// Does the work of the first call to a provider ahead of it. Blocks for some milliseconds.
    pub fn warm(&self, provider: &str) {
        if let Backend::Http(http) = self.backend()
            && let Some(route) = http.providers.get(provider)
        {
            http.client.warm(&route.endpoint);
        }
    }

    /// Makes one attempt.
    pub async fn call(
        &self,
        request: &Request,
        cancel: &CancellationToken,
        mut on_delta: impl FnMut(Delta<'_>) + Send,
    ) -> Result<Answer, CallError> {
        match self.backend() {
            Backend::Http(http) => http.call(request, cancel, &mut on_delta).await,
            Backend::Replay(replay) => replay.call(request, cancel, &mut on_delta).await,
            Backend::Pending(_) => Err(not_set_up(&request.wire.provider)),
        }
    }
}

impl Http {
    async fn call(
        &self,
        request: &Request,
        cancel: &CancellationToken,
        sink: &mut Sink<'_>,
    ) -> Result<Answer, CallError> {
        let provider = &request.wire.provider;
        let Some(Route { endpoint, pace }) = self.providers.get(provider) else {
            return Err(not_set_up(provider));
        };
        if let Some(variables) = endpoint.missing_key() {
            return Err(CallError::failed(Failure::Auth, format!("no key for `{provider}`; set {variables}")));
        }
        if let Some(pace) = pace {
            keep(pace, cancel, sink).await?;
        }
        self.client.call(endpoint, request, cancel, sink).await
    }
}

fn not_set_up(provider: &str) -> CallError {
    let detail = format!("`{provider}` is not set up; choose another model, or configure the provider");
    CallError::failed(Failure::InvalidRequest, detail)
}

async fn keep(pace: &RateLimit, cancel: &CancellationToken, sink: &mut Sink<'_>) -> Result<(), CallError> {
    while let Err(wait) = pace.take(Instant::now()) {
        sink(Delta::Waiting(wait));
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                return Err(CallError::Cancelled { partial: String::new(), streamed: PartialAnswer::default() });
            }
            () = tokio::time::sleep(wait) => {}
        }
    }
    Ok(())
}
