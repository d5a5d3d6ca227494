//! What lies beyond the project that tools may use, as the user has set it up. Never from a model.

use std::ffi::OsString;
use std::path::PathBuf;

/// Services, hosts and programs beyond the project.
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// Loki, for `query_log`.
    pub loki_url: Option<String>,
    /// Prometheus, for `query_metrics`.
    pub prometheus_url: Option<String>,
    /// A service like Open-Meteo's, for `geocode`; none: Open-Meteo's own.
    pub geocode_url: Option<String>,
    /// Hosts that may be asked although they are on this machine or in a private network, in lower case.
    pub private_hosts: Vec<String>,
    /// Certificates beside the usual ones.
    pub cert_file: Option<PathBuf>,
    /// The program, with its arguments, that reads a document in a process of its own; empty: documents are refused.
    pub reader: Vec<OsString>,
}
