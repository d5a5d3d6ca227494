//! What lies beyond the project that tools may use, as the user has set it up. Never from a model.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::limits::SOURCE_TOOLS_SHOWN;

use crate::text::clip;
use crate::tool::ToolError;
use crate::web::{PageRenderer, RecordedPages, SearchService};

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
    /// Chromium, for `browser`; none: the first in `PATH`.
    pub browser_path: Option<PathBuf>,
    /// Profiles of `browser` that agents may use, by their names.
    pub browser_profiles: Vec<String>,
    /// The folder that holds these profiles.
    pub profiles_dir: Option<PathBuf>,
    /// Certificates beside the usual ones.
    pub cert_file: Option<PathBuf>,
    /// The program, with its arguments, that reads a document in a process of its own; empty: documents are refused.
    pub reader: Vec<OsString>,
    /// The browser that runs the scripts of pages, if there is one.
    pub renderer: Option<Arc<dyn PageRenderer>>,
    /// What addresses answer instead of the network, in a demo.
    pub recorded_pages: Option<Arc<RecordedPages>>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            loki_url: None,
            prometheus_url: None,
            geocode_url: None,
            search: SearchService::default(),
            private_hosts: Vec::new(),
            browser_path: None,
            browser_profiles: Vec::new(),
            profiles_dir: None,
            source_tools_shown: SOURCE_TOOLS_SHOWN,
            cert_file: None,
            reader: Vec::new(),
            renderer: None,
            recorded_pages: None,
        }
    }
}

impl Services {
    /// The folder of a profile of the browser that the user has granted, made if it is not there.
    pub(crate) fn profile_folder(&self, name: &str) -> Result<PathBuf, ToolError> {
        let shown = clip(name, 40);
        if !self.browser_profiles.iter().any(|granted| granted == name) {
            return Err(ToolError::correctable(format!(
                "the profile `{shown}` is not granted; only the user can grant it, with `tools.browser_profiles`"
            )));
        }
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let folder = self.profiles_dir.as_ref().filter(|_| !name.is_empty() && name.chars().all(is_name));
        let folder = folder.map(|folder| folder.join(name)).ok_or_else(|| {
            ToolError::correctable(format!("`{shown}` is no name of a profile; letters, digits, `-` and `_` make one"))
        })?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder).and_then(|()| folder.canonicalize());
        made.map_err(|error| ToolError::correctable(format!("the profile `{shown}` cannot be opened: {error}")))
    }
}
