//! Files that pages download: Chromium writes them into a folder of ours, and an action moves them to the session's files.
//!
//! A downloaded file is never run and has no permission to be. Its name is the page's proposal, made harmless.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use max_team_core::agent_dirs::AgentDir;
use max_team_core::limits::BROWSER_DOWNLOAD_BYTES_MAX;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::devtools::{DevTools, lock};
use super::pages::Context;
use crate::file_name::{kept_names, safe_name};
use crate::files::store_bytes;
use crate::text::{clip, size, visible};
use crate::tool::ToolContext;

/// Downloads of one agent that are remembered at a time.
const DOWNLOADS_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DownloadState {
    Running,
    Done,
    Cancelled,
    TooLarge,
}

#[derive(Debug)]
struct Download {
    url: String,
    name: String,
    state: DownloadState,
}

/// The downloads of one agent that were not told yet, by Chromium's names for them, which are also those of the files.
#[derive(Debug, Default)]
pub(super) struct Downloads {
    all: Mutex<HashMap<String, Download>>,
    count: AtomicUsize,
    pub(super) changed: Notify,
}

impl Downloads {
    /// Remembers a download; `false` if there are too many.
    pub(super) fn began(&self, params: &Value) -> bool {
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut all = lock(&self.all);
        let is_taken = all.len() < DOWNLOADS_MAX;
        if is_taken {
            let (url, name) = (text("url").to_owned(), safe_name(text("suggestedFilename"), "download"));
            all.insert(text("guid").to_owned(), Download { url, name, state: DownloadState::Running });
        }
        drop(all);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
        is_taken
    }

    /// How many have begun.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn progressed(&self, devtools: &DevTools, context: &Context, params: &Value) {
        let guid = params.get("guid").and_then(Value::as_str).unwrap_or_default();
        let mut all = lock(&self.all);
        let Some(download) = all.get_mut(guid).filter(|download| download.state == DownloadState::Running) else {
            return;
        };
        let count = |name: &str| params.get(name).and_then(Value::as_f64).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "the limit is far below where numbers become inexact")]
        let is_large = count("receivedBytes").max(count("totalBytes")) > BROWSER_DOWNLOAD_BYTES_MAX as f64;
        match params.get("state").and_then(Value::as_str) {
            _ if is_large => {
                download.state = DownloadState::TooLarge;
                devtools.post(None, "Browser.cancelDownload", &context.with_id(json!({ "guid": guid })));
            }
            Some("completed") => download.state = DownloadState::Done,
            Some("canceled") => download.state = DownloadState::Cancelled,
            _ => return,
        }
        drop(all);
        self.changed.notify_waiters();
    }

    pub(super) fn are_running(&self) -> bool {
        lock(&self.all).values().any(|download| download.state == DownloadState::Running)
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.all).is_empty()
    }

    /// Moves what is complete from `folder` to the session's files, and tells about all that is over. Blocking.
    pub(super) fn collect(&self, cx: &ToolContext, folder: &Path) -> Vec<String> {
        let mut all = lock(&self.all);
        let over: Vec<String> = all
            .iter()
            .filter(|(_, download)| download.state != DownloadState::Running)
            .map(|(guid, _)| guid.clone())
            .collect();
        let taken: Vec<(String, Download)> = over.into_iter().filter_map(|guid| all.remove_entry(&guid)).collect();
        drop(all);
        let mut told = Vec::new();
        for (guid, download) in taken {
            let file = folder.join(&guid);
            let url = visible(&clip(&download.url, 200));
            told.push(match download.state {
                DownloadState::Done => kept(cx, &file, &download.name, &url),
                DownloadState::TooLarge => format!(
                    "the download of `{url}` was stopped: it is larger than {}",
                    size(BROWSER_DOWNLOAD_BYTES_MAX)
                ),
                _ => format!("the download of `{url}` was cancelled"),
            });
            // It may not exist.
            let _ = fs::remove_file(&file);
        }
        told
    }
}

/// Keeps a file under its name, or one like it.
fn kept(cx: &ToolContext, file: &Path, name: &str, url: &str) -> String {
    let read = fs::symlink_metadata(file).and_then(|meta| {
        if meta.is_file() && meta.len() <= BROWSER_DOWNLOAD_BYTES_MAX {
            fs::read(file)
        } else {
            Err(std::io::Error::other("it is no file of a size that is kept"))
        }
    });
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) => return format!("the download of `{url}` cannot be read: {error}"),
    };
    for name in kept_names(name) {
        match store_bytes(cx, AgentDir::Files, &format!("downloads/{name}"), &bytes) {
            Ok(Some(place)) => return format!("downloaded `{place}` ({}) from `{url}`", size(bytes.len() as u64)),
            Ok(None) => {}
            Err(error) => return format!("the download of `{url}` was not kept: {error}"),
        }
    }
    format!("the download of `{url}` was not kept: there are too many files of its name")
}
