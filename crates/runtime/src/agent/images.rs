//! Records files before an agent changes them, so that a rewind can restore them.
//!
//! For a file tool, in the commit of its intent: no file is changed whose content is not in the journal. For a
//! command, by a scan of the tree before and after it; its changes are committed to the session's stream during the
//! scan. What it deletes where no scan looks is kept and committed before it runs.

use std::sync::Arc;

use max_team_core::event::{Event, ToolIntent};
use max_team_core::id::SessionId;
use max_team_core::limits::REWIND_FILE_BYTES_MAX;
use max_team_core::policy::{Action, ActionKind, CommandLine, DeletedPath};
use max_team_core::rewind::{FileChange, FileState, FilesChanged, MovedFile, SkippedChange, SkippedReason, is_opaque};
use max_team_tools::rewind::{
    CommandCaller, DeletionSurvey, EndMark, FileSnapshot, KeptFiles, TreeWatch, changed_since,
};
use max_team_tools::{Registry, Root, ToolContext, ToolError};
use tokio_util::sync::CancellationToken;

use super::Agent;
use crate::rewind::{record_deletion, record_tree_step};
use crate::shared::Shared;

/// The parameter of a call that runs in the background.
const BACKGROUND: (&str, &str) = ("run_in_background", "true");

impl Agent {
    /// Adds to each intent to change a file the present state of that file, with its content.
    pub(super) async fn imaged(&mut self, events: Vec<Event>) -> (Vec<Event>, Vec<Vec<u8>>) {
        let intents: Vec<ToolIntent> = events.iter().filter_map(changing).cloned().collect();
        if intents.is_empty() {
            return (events, Vec::new());
        }
        let cx = self.context();
        let look = move || intents.iter().filter_map(|intent| image(&cx, intent)).collect::<Vec<_>>();
        // If the async runtime itself ends, nothing is committed, and nothing is changed.
        let mut images = tokio::task::spawn_blocking(look).await.unwrap_or_default().into_iter().peekable();
        let (mut all, mut blobs) = (Vec::with_capacity(events.len() + 1), Vec::new());
        for event in events {
            let key = changing(&event).map(|intent| intent.key.clone());
            all.push(event);
            if let Some((changed, bytes)) = images.next_if(|(changed, _)| Some(&changed.key) == key.as_ref()) {
                all.push(Event::FilesChanged(changed));
                blobs.extend(bytes);
            }
        }
        (all, blobs)
    }
}

/// Whether a call returns before its command has ended.
pub(crate) fn runs_on(action: &Action) -> bool {
    action.parameters.iter().any(|(name, value)| (name.as_str(), value.as_str()) == BACKGROUND)
}

/// The intent to change a file, if it is one.
fn changing(event: &Event) -> Option<&ToolIntent> {
    let Event::ToolIntent(intent) = event else { return None };
    let changes =
        matches!(intent.action.kind, ActionKind::Write | ActionKind::WriteOwn) && intent.action.after.is_some();
    changes.then_some(intent)
}

/// The state of a file that is about to change, with its content. A file that differs from the judged state will not
/// be changed.
fn image(cx: &ToolContext, ToolIntent { key, action, .. }: &ToolIntent) -> Option<(FilesChanged, Option<Vec<u8>>)> {
    let Ok(FileSnapshot { root, path, state, bytes }) = FileSnapshot::of(cx, &action.target) else { return None };
    let (hash, program, private, mode) = match state {
        FileState::Gone => (None, false, false, None),
        FileState::File { hash, program, private, mode } => (Some(hash), program, private, mode),
        FileState::Link { .. } | FileState::Large | FileState::Bulky { .. } | FileState::Other => return None,
    };
    if hash != action.before {
        return None;
    }
    let after = FileState::File { hash: action.after?, program, private, mode };
    let is_large = bytes.as_ref().is_some_and(|bytes| bytes.len() as u64 > REWIND_FILE_BYTES_MAX);
    let left =
        if is_large { vec![SkippedChange { path: path.clone(), why: SkippedReason::Large }] } else { Vec::new() };
    let changes = vec![FileChange { path, before: state, after }];
    let changed = FilesChanged { changes, left, ..FilesChanged::new(key.clone(), &root) };
    Some((changed, bytes.filter(|_| !is_large)))
}

/// Watches a call that may change any file of a tree.
pub(super) struct Witness {
    shared: Arc<Shared>,
    key: String,
    root: Arc<Root>,
    watch: TreeWatch,
    is_background: bool,
    /// What was kept of a deletion, with the line and the context to look again.
    kept: Option<KeptDeletion>,
}

/// Files that were kept before a command deletes them.
struct KeptDeletion {
    cx: ToolContext,
    line: CommandLine,
    caller: CommandCaller,
    files: Vec<KeptFiles>,
}

impl KeptDeletion {
    /// Keeps what the deletion was said to keep, and records it. Fails, so that nothing is run, if that is not possible or
    /// if more is lost by now. Blocking.
    fn begin(
        shared: &Shared,
        cx: &ToolContext,
        caller: CommandCaller,
        action: &Action,
    ) -> Result<Option<Self>, ToolError> {
        let Some((asked, line)) = action.deletion.as_deref().zip(action.line.clone()) else { return Ok(None) };
        let survey = DeletionSurvey::of(cx, &line);
        let now = survey.decide();
        let is_new = |lost: &&DeletedPath| !asked.lost.iter().any(|known| known.path == lost.path);
        if let Some(lost) = now.lost.iter().find(is_new) {
            let path = &lost.path;
            return Err(ToolError::correctable(format!(
                "`{path}` grew too large to be kept since this was judged; nothing was run"
            )));
        }
        let failed =
            |why: String| ToolError::correctable(format!("nothing was run: what it deletes cannot be kept: {why}"));
        let files = survey.keep(&shared.trees, &now, &cx.cancel).map_err(failed)?;
        for kept in &files {
            record_deletion(&shared.journal, &caller, kept, false).map_err(|error| failed(error.to_string()))?;
        }
        Ok(Some(Self { cx: cx.clone(), line, caller, files }))
    }

    /// Records the files that the command left or made where it deleted others. Blocking.
    fn end(self, shared: &Shared) {
        let survey = DeletionSurvey::of(&self.cx, &self.line);
        let now = survey.keep(&shared.trees, &survey.decide(), &CancellationToken::new()).unwrap_or_default();
        for changed in changed_since(&self.files, now) {
            // Without it the files count as the user's, and a rewind leaves them as they are.
            let _ = record_deletion(&shared.journal, &self.caller, &changed, true);
        }
    }
}

impl Witness {
    /// Scans before a call that may change files that it does not name. Blocking.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        registry: &Registry,
        cx: &ToolContext,
        (session, stream, key): (SessionId, &str, &str),
        tool: &str,
        action: &Action,
    ) -> Result<Option<Self>, ToolError> {
        let Some(class) = registry.get(tool).map(|tool| tool.class(action)) else { return Ok(None) };
        if !is_opaque(class, action) || cx.sandbox.read_only {
            return Ok(None);
        }
        let is_background = runs_on(action);
        let caller = CommandCaller { session, call: format!("{stream} {key}"), is_background };
        let record = |step| record_tree_step(&shared.journal, step);
        let watch = shared.trees.watch(&cx.root, caller.clone(), &cx.cancel, &cx.progress, &record);
        let kept = KeptDeletion::begin(shared, cx, caller, action)?;
        let (shared, root) = (Arc::clone(shared), Arc::clone(&cx.root));
        Ok(Some(Self { shared, key: key.to_owned(), root, watch, is_background, kept }))
    }

    /// The file in which the supervisor of the command notes its end.
    pub(super) fn end_mark(&self) -> Option<EndMark> {
        self.watch.end_mark()
    }

    /// Scans after the call, whose changes are recorded at once. Returns an event for its agent if some changes are
    /// not known, or if the call ran in the background. Blocking.
    pub(super) fn end(self) -> Option<FilesChanged> {
        let record = |step| record_tree_step(&self.shared.journal, step);
        let left = self.watch.end(&self.root, &record);
        if let Some(kept) = self.kept {
            kept.end(&self.shared);
        }
        let is_told = self.is_background || !left.is_empty();
        is_told.then(|| FilesChanged { left, seen: true, ..FilesChanged::new(self.key, self.root.path()) })
    }
}

/// The file changes of a call, with the protected files that were moved away.
pub(super) fn with_moved(
    changed: Option<FilesChanged>,
    moved: Vec<MovedFile>,
    key: String,
    root: &Root,
) -> Option<FilesChanged> {
    let nothing = || FilesChanged { seen: true, ..FilesChanged::new(key, root.path()) };
    if moved.is_empty() { changed } else { Some(FilesChanged { moved, ..changed.unwrap_or_else(nothing) }) }
}
