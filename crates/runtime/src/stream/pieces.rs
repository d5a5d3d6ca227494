//! Live pieces of answers, for readers of the stream in this process, and for other processes that show its sessions.
//!
//! Writers never wait for a reader: pieces that do not fit into its queue are dropped. Each piece has its number
//! within the answer, so a reader notices a gap and shows no later pieces; the whole answer comes by the log.

use std::path::Path;
use std::sync::{Arc, Mutex};

use max_team_core::id::{AgentId, SessionId};
use max_team_core::limits::STREAM_PIECES_MAX;
use max_team_core::secret::Redactor;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::other_processes::OtherProcesses;
use crate::handle::Delta;
use crate::shared::{lock, now_ms};

/// A live piece.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LivePiece {
    pub(crate) session: SessionId,
    pub(crate) agent: AgentId,
    pub(crate) at_ms: i64,
    pub(crate) live: LiveContent,
    /// Whether another process sent it. Its entries of the log may not have been read yet.
    #[serde(skip)]
    pub(crate) is_from_outside: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum LiveContent {
    /// Text of an answer: its call and attempt, and how many pieces came before.
    Words { call: (u32, u32), index: u64, text: String },
    /// Progress of a tool.
    Progress { key: String, words: String },
}

/// The readers of live pieces.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    readers: Mutex<Vec<mpsc::Sender<Arc<LivePiece>>>>,
    others: OtherProcesses,
}

impl Pieces {
    /// `home` is the folder that all processes of the user share.
    pub(crate) fn within(home: &Path) -> Self {
        Self { readers: Mutex::default(), others: OtherProcesses::new(home) }
    }

    /// Passes pieces of other processes to the readers in this one. `pieces` finds them as long as they are there.
    pub(crate) fn hear_others(
        &self,
        pieces: impl Fn(&dyn Fn(&Pieces)) -> bool + Send + 'static,
    ) -> Result<(), std::io::Error> {
        self.others.listen(move |piece| {
            let piece = Arc::new(piece);
            pieces(&|pieces| pieces.pass_on(&piece))
        })
    }

    /// The pieces from now on.
    pub(crate) fn read(&self) -> mpsc::Receiver<Arc<LivePiece>> {
        let (sender, receiver) = mpsc::channel(STREAM_PIECES_MAX);
        lock(&self.readers).push(sender);
        receiver
    }

    fn say(&self, piece: impl FnOnce() -> LivePiece) {
        let is_for_others = self.others.any();
        if lock(&self.readers).is_empty() && !is_for_others {
            return;
        }
        let piece = Arc::new(piece());
        self.pass_on(&piece);
        if is_for_others {
            self.others.send(&piece);
        }
    }

    fn pass_on(&self, piece: &Arc<LivePiece>) {
        let is_open = |reader: &mut mpsc::Sender<Arc<LivePiece>>| {
            !matches!(reader.try_send(Arc::clone(piece)), Err(TrySendError::Closed(_)))
        };
        lock(&self.readers).retain_mut(is_open);
    }
}

/// Sends the pieces of one call, in order.
#[derive(Debug)]
pub(crate) struct Sayer {
    session: SessionId,
    agent: Option<AgentId>,
    call: (u32, u32),
    index: u64,
    redactor: Redactor,
}

impl Sayer {
    pub(crate) fn new(session: SessionId, agent: Option<AgentId>, call: (u32, u32)) -> Self {
        Self { session, agent, call, index: 0, redactor: Redactor::default() }
    }

    /// Sends a piece, but holds its end back while a secret may begin there.
    pub(crate) fn say(&mut self, pieces: &Pieces, delta: &Delta) {
        let Delta::Text(text) = delta else { return };
        let text = self.redactor.push(text);
        self.pass_on(pieces, text);
    }

    /// The answer is over: emits the held-back text.
    pub(crate) fn finish(&mut self, pieces: &Pieces) {
        let text = self.redactor.finish();
        self.pass_on(pieces, text);
    }

    fn pass_on(&mut self, pieces: &Pieces, text: String) {
        let Some(agent) = self.agent.filter(|_| !text.is_empty()) else { return };
        let (call, index) = (self.call, self.index);
        self.index += 1;
        let live = || LiveContent::Words { call, index, text };
        pieces.say(|| LivePiece {
            session: self.session,
            agent,
            at_ms: now_ms(),
            live: live(),
            is_from_outside: false,
        });
    }
}

/// Sends the progress of a tool.
pub(crate) fn progress(pieces: &Pieces, session: SessionId, agent: Option<AgentId>, key: &str, words: &str) {
    let Some(agent) = agent else { return };
    let live = || LiveContent::Progress { key: key.to_owned(), words: words.to_owned() };
    pieces.say(|| LivePiece { session, agent, at_ms: now_ms(), live: live(), is_from_outside: false });
}
