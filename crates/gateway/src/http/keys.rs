//! Answers under idempotency keys: a repeated write is answered as before, and a key of another request is refused.
//!
//! Each answer is a file, so it also holds after a restart. If the process is killed between a write and its file, the write is carried
//! out again with the same id; commands that send a message are done once even then. Erasing a session removes all kept answers.

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use max_team_core::hash::Hash;
use max_team_core::id::EnvelopeId;
use max_team_core::limits::{WEB_KEY_MS, WEB_KEYS_KEPT_MAX, WEB_KEYS_SWEPT_AFTER};
use max_team_runtime::WEB_ANSWERS;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use super::error::ApiError;
use super::extract::OrderKey;

/// What a write was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptAnswer {
    /// The fingerprint of the request.
    pub(crate) asked: Hash,
    pub(crate) status: u16,
    /// The JSON that was sent; `None` for a stream.
    pub(crate) body: Option<String>,
}

impl KeptAnswer {
    pub(crate) fn into_response(self) -> Result<Response, ApiError> {
        let gone =
            || ApiError::conflict("the request with this `Idempotency-Key` was carried out; its answer was a stream");
        let body = self.body.ok_or_else(gone)?;
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        if body.is_empty() {
            return Ok(status.into_response());
        }
        Ok((status, [(header::CONTENT_TYPE, "application/json")], body).into_response())
    }
}

/// The answers that are kept.
#[derive(Debug)]
pub(crate) struct KeptAnswers {
    folder: PathBuf,
    /// The folder that the server serves: keys of different servers never meet.
    served: PathBuf,
    /// The keys under which a write is carried out now.
    running: Mutex<HashMap<EnvelopeId, Weak<tokio::sync::Mutex<()>>>>,
    count: AtomicUsize,
}

/// A key, as long as its write is carried out; another request with the key waits.
#[derive(Debug)]
pub(crate) struct KeyPlace {
    kept: Arc<KeptAnswers>,
    path: PathBuf,
    _turn: OwnedMutexGuard<()>,
}

impl KeptAnswers {
    pub(crate) fn new(home: &Path, served: &Path) -> Arc<Self> {
        let (folder, served) = (home.join(WEB_ANSWERS), served.to_owned());
        Arc::new(Self { folder, served, running: Mutex::default(), count: AtomicUsize::new(0) })
    }

    /// Waits until no other request with the key is carried out.
    pub(crate) async fn enter(self: &Arc<Self>, OrderKey(key): OrderKey) -> KeyPlace {
        let turn = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.retain(|_, turn| turn.strong_count() > 0);
            let known = running.get(&key).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let new = Arc::default();
                running.insert(key, Arc::downgrade(&new));
                new
            })
        };
        let key = key.uuid();
        let fields = [self.served.as_os_str().as_bytes(), key.as_bytes()];
        let path = self.folder.join(format!("{}.json", Hash::of_fields(&fields).uuid().simple()));
        KeyPlace { kept: Arc::clone(self), path, _turn: turn.lock_owned().await }
    }

    /// Removes old answers, and the oldest of too many. Files that another server removes meanwhile are passed over.
    fn sweep(&self) {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<_> =
            entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
        files.sort();
        let surplus = files.len().saturating_sub(WEB_KEYS_KEPT_MAX);
        for (at, (written, path)) in files.into_iter().enumerate() {
            if at < surplus || is_old(written) {
                drop(std::fs::remove_file(path));
            }
        }
    }
}

/// Whether an answer is no longer given.
fn is_old(written: SystemTime) -> bool {
    written.elapsed().is_ok_and(|age| age >= Duration::from_millis(WEB_KEY_MS))
}

impl KeyPlace {
    /// What the request was answered before; an error if the key belongs to another request.
    pub(crate) fn answer(&self, asked: Hash) -> Result<Option<KeptAnswer>, ApiError> {
        match self.read() {
            Some(kept) if kept.asked != asked => Err(ApiError::key_reused()),
            kept => Ok(kept),
        }
    }

    /// The answer in the file. One that is old, or was not written to its end, is none.
    fn read(&self) -> Option<KeptAnswer> {
        let written = std::fs::metadata(&self.path).ok()?.modified().ok()?;
        let text = std::fs::read(&self.path).ok().filter(|_| !is_old(written))?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps the answer. If the disk does not take it, the write is carried out again when it is repeated.
    pub(crate) fn keep(&self, answer: &KeptAnswer) {
        drop(self.write(answer));
        if self.kept.count.fetch_add(1, Ordering::Relaxed).is_multiple_of(WEB_KEYS_SWEPT_AFTER) {
            self.kept.sweep();
        }
    }

    fn write(&self, answer: &KeptAnswer) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.kept.folder)?;
        let new = self.path.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(answer)?)?;
        std::fs::rename(new, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use max_team_runtime::new_id;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_kept_for_its_request_only() {
        let home = tempfile::tempdir().unwrap();
        let key = OrderKey(EnvelopeId::new(new_id()));
        let (one, other) = (Hash::of("one"), Hash::of("other"));
        let answer = KeptAnswer { asked: one, status: 201, body: Some("{}".to_owned()) };
        let keys = KeptAnswers::new(home.path(), Path::new("/a"));
        let place = keys.enter(key).await;
        assert_eq!(place.answer(one).unwrap(), None);
        // A second request with the key waits for the first.
        let second = tokio::spawn({
            let keys = Arc::clone(&keys);
            async move { keys.enter(key).await.answer(one).unwrap() }
        });
        tokio::task::yield_now().await;
        place.keep(&answer);
        drop(place);
        assert_eq!(second.await.unwrap(), Some(answer.clone()));
        // Another process, after a restart.
        let again = KeptAnswers::new(home.path(), Path::new("/a")).enter(key).await;
        assert_eq!(again.answer(one).unwrap(), Some(answer));
        assert_eq!(again.answer(other).unwrap_err().status, StatusCode::UNPROCESSABLE_ENTITY);
        // The server of another folder has keys of its own.
        let elsewhere = KeptAnswers::new(home.path(), Path::new("/b")).enter(key).await;
        assert_eq!(elsewhere.answer(other).unwrap(), None);
        // An old answer is none, and the next one that is kept removes it.
        let file = std::fs::File::options().write(true).open(&again.path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_millis(WEB_KEY_MS)).unwrap();
        assert_eq!(again.answer(other).unwrap(), None);
        elsewhere.keep(&KeptAnswer { asked: other, status: 200, body: None });
        assert!(!again.path.exists() && elsewhere.path.exists());
    }
}
