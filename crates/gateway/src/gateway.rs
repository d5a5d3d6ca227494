//! Sessions of chats: opened for their first message, and again for unfinished work.

use std::collections::VecDeque;

use max_team_core::channel::ChatAddress;
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::limits::CHATS_OPEN_MAX;
use max_team_core::message::{Principal, Role};
use max_team_runtime::{Command, Notice, Order, RuntimeError, TeamHandle, Which, new_id, query};
use max_team_workspace::exit::CliError;
use max_team_workspace::open::Workspace;
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::AppEnv;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::channel::{Channel, ChannelError, Incoming};
use crate::sender::Sender;

/// The team, as channels reach it.
#[derive(Debug)]
pub struct Gateway {
    team: TeamHandle,
    place: AppEnv,
    selection: Selection,
    /// Open sessions of chats, least recently used first. The lock is held while one is opened, so that two messages of a new chat
    /// share a session.
    open: Mutex<VecDeque<(ChatAddress, SessionId)>>,
    /// Signalled when a session may have become idle or was closed, so that another one can be opened.
    room: Notify,
    /// [`CHATS_OPEN_MAX`], or fewer in tests.
    open_max: usize,
}

/// Why a message was not taken in, or a channel not served.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The team refused or failed.
    #[error(transparent)]
    Team(#[from] RuntimeError),
    /// The folder's settings, models or definitions cannot be used.
    #[error("{0:?}")]
    Workspace(CliError),
    /// All sessions that may be open at once work or wait for a person.
    #[error(
        "{0} chats are at work or wait for an answer, which is the limit; the message was not taken: send it again later"
    )]
    Full(usize),
    /// The channel cannot go on.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl Gateway {
    /// Sessions of chats are opened in `place` with what `selection` names.
    pub fn new(team: TeamHandle, place: AppEnv, selection: Selection) -> Self {
        Self { team, place, selection, open: Mutex::default(), room: Notify::new(), open_max: CHATS_OPEN_MAX }
    }

    /// The team that its sessions belong to.
    pub(crate) fn team(&self) -> &TeamHandle {
        &self.team
    }

    /// Serves a channel until `shutdown`: receives, sends, and goes on with what the last process left.
    pub async fn run<C: Channel>(&self, channel: &C, shutdown: &CancellationToken) -> Result<(), GatewayError> {
        let (name, account) = (channel.name().to_owned(), channel.account().to_owned());
        let by = Self::principal(&name, "gateway", Role::Owner);
        let serve = Command::ServeChannel { channel: name.clone(), account: account.clone() };
        self.command(by.clone(), EnvelopeId::new(new_id()), serve).await?;
        let sender = Sender::new(&self.team, channel, by.clone());
        sender.recover().await?;
        let chats = self.team.ask(query::Chats { channel: name, account }).await?;
        let unanswered: Vec<ChatAddress> =
            chats.into_iter().filter(|row| !row.answered).filter_map(|row| row.chat).collect();
        let stop = shutdown.child_token();
        let receive = async {
            let listened = tokio::select! {
                listened = channel.listen(self, &stop) => listened,
                () = stop.cancelled() => Ok(()),
            };
            stop.cancel();
            listened
        };
        let send = async {
            let sent = sender.run(&stop).await;
            stop.cancel();
            sent
        };
        let resume = async {
            let resumed = tokio::select! {
                resumed = self.resume(&unanswered, &by) => resumed,
                () = stop.cancelled() => Ok(()),
            };
            if resumed.is_err() {
                stop.cancel();
            }
            resumed
        };
        let notices = self.team.watch();
        let follow = async {
            tokio::select! {
                () = self.follow(notices) => {}
                () = stop.cancelled() => {}
            }
        };
        let (listened, sent, resumed, ()) = tokio::join!(receive, send, resume, follow);
        listened?;
        sent?;
        resumed
    }

    /// Opens the sessions of chats whose last message has no answer yet, as room for them becomes free.
    async fn resume(&self, chats: &[ChatAddress], by: &Principal) -> Result<(), GatewayError> {
        for chat in chats {
            loop {
                // Registered before the attempt, so that room that becomes free meanwhile is not missed.
                let room = self.room.notified();
                match self.session(chat, by).await {
                    Err(GatewayError::Full(_)) => room.await,
                    Err(error) => return Err(error),
                    Ok(_) => break,
                }
            }
        }
        Ok(())
    }

    /// Heeds what becomes of open sessions.
    pub(crate) async fn follow(&self, mut notices: mpsc::Receiver<Notice>) {
        loop {
            match notices.recv().await {
                Some(Notice::Stopped { error, .. }) if matches!(*error, RuntimeError::Behind(_)) => {
                    notices = self.team.watch();
                    self.close_dead().await;
                }
                Some(notice) => self.heed(&notice).await,
                None => return,
            }
        }
    }

    async fn heed(&self, notice: &Notice) {
        match notice {
            // The next message of the chat opens the session again, and it goes on from the journal.
            Notice::Stopped { session, whole: true, .. } => self.close(*session).await,
            Notice::Idle { .. } => self.room.notify_waiters(),
            _ => {}
        }
    }

    /// Closes the sessions whose lead no longer runs; called after notices were missed.
    async fn close_dead(&self) {
        let open: Vec<SessionId> = self.open.lock().await.iter().map(|(_, session)| *session).collect();
        for session in open {
            if self.team.ask(query::Details { session }).await.is_err() {
                self.close(session).await;
            }
        }
        self.room.notify_waiters();
    }

    async fn close(&self, session: SessionId) {
        let mut open = self.open.lock().await;
        self.team.close(session).await;
        open.retain(|(_, other)| *other != session);
        self.room.notify_waiters();
    }

    /// Takes a message in. Once this returns, the message is committed and can be acknowledged; a second delivery changes nothing.
    pub async fn receive(&self, incoming: Incoming) -> Result<SessionId, GatewayError> {
        let Incoming { chat, native, sender, role, text } = incoming;
        let by = Self::principal(chat.channel(), &sender, role);
        let key = chat.message_key(&native);
        // Held until the message is committed: a session that makes room for another chat has no message without an answer.
        let mut open = self.open.lock().await;
        let session = self.open_chat(&mut open, &chat, &by).await?;
        match self.command(by.clone(), key, Command::Say { session, text: text.clone() }).await {
            // The session stopped meanwhile.
            Err(RuntimeError::NotOpen(_)) => {
                open.retain(|(_, other)| *other != session);
                let session = self.open_chat(&mut open, &chat, &by).await?;
                self.command(by, key, Command::Say { session, text }).await?;
                Ok(session)
            }
            said => Ok(said.map(|()| session)?),
        }
    }

    pub(crate) fn principal(channel: &str, user: &str, role: Role) -> Principal {
        Principal { door: channel.to_owned(), user: format!("{channel}:{user}"), role }
    }

    pub(crate) async fn command(&self, by: Principal, key: EnvelopeId, command: Command) -> Result<(), RuntimeError> {
        let cwd = self.place.cwd.display().to_string();
        self.team.command(Order { by, cwd, key, command }).await
    }

    /// The session of a chat, open in this process or in another one.
    pub(crate) async fn session(&self, chat: &ChatAddress, by: &Principal) -> Result<SessionId, GatewayError> {
        self.open_chat(&mut *self.open.lock().await, chat, by).await
    }

    async fn open_chat(
        &self,
        open: &mut VecDeque<(ChatAddress, SessionId)>,
        chat: &ChatAddress,
        by: &Principal,
    ) -> Result<SessionId, GatewayError> {
        if let Some(at) = open.iter().position(|(other, _)| other == chat) {
            let known = open.remove(at);
            open.extend(known.clone());
            if let Some((_, session)) = known {
                return Ok(session);
            }
        }
        if !close_idle(&self.team, open, self.open_max, |(_, session)| *session).await? {
            return Err(GatewayError::Full(self.open_max));
        }
        // Changed definitions are told to one session, so each reads its own.
        let workspace = Workspace::read(&self.place, &self.selection, Vec::new()).map_err(GatewayError::Workspace)?;
        workspace.require_model(&self.place).map_err(GatewayError::Workspace)?;
        let request = workspace.request(Which::Chat(chat.clone()));
        let session = match self.team.open(by.clone(), &workspace.root, request).await {
            Ok(opened) => opened.session,
            // Another process has it open: its messages travel through the journal.
            Err(RuntimeError::OwnedElsewhere { .. }) => {
                let name = chat.channel().to_owned();
                let chats = self.team.ask(query::Chats { channel: name, account: chat.account().to_owned() }).await?;
                let row = chats.into_iter().find(|row| row.chat.as_ref() == Some(chat));
                return row.map(|row| row.session).ok_or_else(|| RuntimeError::NoSession(chat.to_string()).into());
            }
            Err(error) => return Err(error.into()),
        };
        open.push_back((chat.clone(), session));
        Ok(session)
    }
}

/// Closes idle sessions, least recently used first, until fewer than `max` are open; false if there are too many that are not idle. A
/// session in which an agent or a plan works, or a question waits for a person, stays open.
pub(crate) async fn close_idle<T>(
    team: &TeamHandle,
    open: &mut VecDeque<T>,
    max: usize,
    session_of: impl Fn(&T) -> SessionId,
) -> Result<bool, RuntimeError> {
    let mut at = 0;
    while open.len() >= max {
        let Some(session) = open.get(at).map(&session_of) else { return Ok(false) };
        if is_busy(team, session).await? {
            at += 1;
        } else {
            team.close(session).await;
            open.remove(at);
        }
    }
    Ok(true)
}

/// Whether an agent or a plan of a session works, or a question waits for a person.
pub(crate) async fn is_busy(team: &TeamHandle, session: SessionId) -> Result<bool, RuntimeError> {
    // A message that no turn has taken in yet begins one soon. Asked before the status: once it is taken in, the status says so.
    if !team.ask(query::AgentsAtWork { session }).await?.is_empty() {
        return Ok(true);
    }
    let status = team.ask(query::Status { session }).await?;
    Ok(status.is_busy() || team.ask(query::HasRunningPlan { session }).await?)
}

#[cfg(test)]
mod tests;
