//! What lies beyond the project that tools may use, as the user has set it up. Never from a model.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::limits::SOURCE_TOOLS_SHOWN;

use crate::web::{PageRenderer, SearchService};

/// Services, hosts and programs beyond the project.
#[derive(Debug, Clone)]
pub struct Services {
    /// Loki, for `query_log`.
    pub loki_url: Option<String>,
    /// Prometheus, for `query_metrics`.
    pub prometheus_url: Option<String>,
    /// A service like Open-Meteo's, for `geocode`; none: Open-Meteo's own.
    pub geocode_url: Option<String>,
    /// The service that `web_search` asks.
    pub search: SearchService,
    /// Hosts (`HOST`, or `HOST:PORT` for one port) that may be asked although they are on this machine or in a private
    /// network, in lower case.
    pub private_hosts: Vec<String>,
    /// How many tools of sources requests describe.
    pub source_tools_shown: u32,
    /// Certificates beside the usual ones.
    pub cert_file: Option<PathBuf>,
    /// The program, with its arguments, that reads a document in a process of its own; empty: documents are refused.
    pub reader: Vec<OsString>,
    /// The browser that runs the scripts of pages, if there is one.
    pub renderer: Option<Arc<dyn PageRenderer>>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            loki_url: None,
            prometheus_url: None,
            geocode_url: None,
            search: SearchService::default(),
            private_hosts: Vec::new(),
            source_tools_shown: SOURCE_TOOLS_SHOWN,
            cert_file: None,
            reader: Vec::new(),
            renderer: None,
        }
    }
}
