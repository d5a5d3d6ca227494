//! How files were before an agent changed them, so that it can be taken back.
//!
//! Of a file tool, in the commit of its intent: nothing is changed whose bytes are not in the journal. Of a command, by a look at
//! the tree before and after it.

use max_team_core::event::{Event, ToolIntent};
use max_team_core::limits::REWIND_FILE_BYTES_MAX;
use max_team_core::policy::{Action, Deed};
use max_team_core::rewind::{Change, FilesChanged, Left, MovedFile, State, Why, is_opaque};
use max_team_tools::rewind::{Image, Seen, Watch};
use max_team_tools::{Cx, Registry, Root};

use super::Agent;
use crate::shared::{Shared, lock};

/// What a call says of itself that runs on by itself.
const BACKGROUND: (&str, &str) = ("run_in_background", "true");

impl Agent {
    /// Puts behind each intent to change a file how that file is; its bytes go with it.
    pub(super) async fn imaged(&mut self, events: Vec<Event>) -> (Vec<Event>, Vec<Vec<u8>>) {
        let intents: Vec<ToolIntent> = events.iter().filter_map(changing).cloned().collect();
        if intents.is_empty() {
            return (events, Vec::new());
        }
        let cx = self.context();
        let look = move || intents.iter().filter_map(|intent| image(&cx, intent)).collect::<Vec<_>>();
        // If the runtime itself ends, nothing is committed any more, and nothing is changed.
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

    /// What commands were seen to do.
    pub(super) fn files_seen(&self) -> Vec<Event> {
        std::mem::take(&mut *lock(&self.seen)).into_iter().map(Event::FilesChanged).collect()
    }
}

/// Whether a call comes back before what it began is over.
pub(crate) fn runs_on(action: &Action) -> bool {
    action.parameters.iter().any(|(name, value)| (name.as_str(), value.as_str()) == BACKGROUND)
}

/// The intent to change a file, if it is one.
fn changing(event: &Event) -> Option<&ToolIntent> {
    let Event::ToolIntent(intent) = event else { return None };
    let changes = matches!(intent.action.deed, Deed::Write | Deed::WriteOwn) && intent.action.after.is_some();
    changes.then_some(intent)
}

/// How a file is that is about to change, with its bytes. What is no longer as it was judged is not changed at all.
fn image(cx: &Cx, ToolIntent { key, action, .. }: &ToolIntent) -> Option<(FilesChanged, Option<Vec<u8>>)> {
    let Ok(Image { root, path, state, bytes }) = Image::of(cx, &action.target) else { return None };
    let (hash, program, private, mode) = match state {
        State::Gone => (None, false, false, None),
        State::File { hash, program, private, mode } => (Some(hash), program, private, mode),
        State::Link { .. } | State::Large | State::Bulky { .. } | State::Other => return None,
    };
    if hash != action.before {
        return None;
    }
    let after = State::File { hash: action.after?, program, private, mode };
    let is_large = bytes.as_ref().is_some_and(|bytes| bytes.len() as u64 > REWIND_FILE_BYTES_MAX);
    let left = if is_large { vec![Left { path: path.clone(), why: Why::Large }] } else { Vec::new() };
    let changes = vec![Change { path, before: state, after }];
    let root = root.display().to_string();
    let changed = FilesChanged { key: key.clone(), root, changes, left, seen: false, moved: Vec::new(), since_ms: 0 };
    Some((changed, bytes.filter(|_| !is_large)))
}

/// Somebody who looks at a tree before and after a call that may change anything in it.
pub(super) struct Witness {
    key: String,
    root: String,
    watch: Watch,
    /// Whether nobody waits for the call.
    is_apart: bool,
}

impl Witness {
    /// Looks before a call, if it may change what it does not name. Blocking.
    pub(super) fn begin(
        shared: &Shared,
        registry: &Registry,
        cx: &Cx,
        key: &str,
        tool: &str,
        action: &Action,
    ) -> Option<Self> {
        let class = registry.get(tool)?.class(action);
        if !is_opaque(class, action) || cx.walls.read_only {
            return None;
        }
        let is_apart = runs_on(action);
        let watch = if is_apart {
            shared.trees.watch_apart(&cx.root, &cx.cancel, &cx.progress)
        } else {
            shared.trees.watch(&cx.root, &cx.cancel, &cx.progress)
        };
        Some(Self { key: key.to_owned(), root: cx.root.path().display().to_string(), watch, is_apart })
    }

    /// What has changed; nothing to say if nothing has, but that somebody has looked when a call that nobody waits for was over.
    /// Blocking.
    pub(super) fn end(self, root: &Root) -> Option<FilesChanged> {
        let Seen { changes, left, since_ms } = self.watch.end(root);
        let is_told = self.is_apart || !changes.is_empty() || !left.is_empty();
        let (key, root) = (self.key, self.root);
        is_told.then_some(FilesChanged { key, root, changes, left, seen: true, moved: Vec::new(), since_ms })
    }
}

/// What a call did to files, with the protected ones that were moved away.
pub(super) fn with_moved(
    changed: Option<FilesChanged>,
    moved: Vec<MovedFile>,
    key: String,
    root: &Root,
) -> Option<FilesChanged> {
    let nothing = || FilesChanged {
        key,
        root: root.path().display().to_string(),
        changes: Vec::new(),
        left: Vec::new(),
        seen: true,
        moved: Vec::new(),
        since_ms: 0,
    };
    if moved.is_empty() { changed } else { Some(FilesChanged { moved, ..changed.unwrap_or_else(nothing) }) }
}
