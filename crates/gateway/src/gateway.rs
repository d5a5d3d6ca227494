//! Sessions of chats: opened for their first message, and again for unfinished work.

use std::collections::VecDeque;

use max_team_core::channel::ChatAddress;
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::limits::CHATS_OPEN_MAX;
use max_team_core::message::{Principal, Role};
use max_team_runtime::{Command, Order, RuntimeError, TeamHandle, Which, new_id, query};
use max_team_workspace::exit::Stop;
use max_team_workspace::open::Workspace;
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::Place;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::channel::{Channel, ChannelError, Incoming};
use crate::sender::Sender;

/// The team, as channels reach it.
#[derive(Debug)]
pub struct Gateway {
    team: TeamHandle,
    place: Place,
    selection: Selection,
    /// Open sessions of chats, least recently used first. The lock is held while one is opened, so that two messages of a new chat
    /// share a session.
    open: Mutex<VecDeque<(ChatAddress, SessionId)>>,
}

/// Why a message was not taken in, or a channel not served.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The team refused or failed.
    #[error(transparent)]
    Team(#[from] RuntimeError),
    /// The folder's settings, models or definitions cannot be used.
    #[error("{0:?}")]
    Workspace(Stop),
    /// The channel cannot go on.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl Gateway {
    /// Sessions of chats are opened in `place` with what `selection` names.
    pub fn new(team: TeamHandle, place: Place, selection: Selection) -> Self {
        Self { team, place, selection, open: Mutex::default() }
    }

    /// Serves a channel until `shutdown`: receives, sends, and goes on with what the last process left.
    pub async fn run<C: Channel>(&self, channel: &C, shutdown: &CancellationToken) -> Result<(), GatewayError> {
        let (name, account) = (channel.name().to_owned(), channel.account().to_owned());
        let by = self.principal(&name, "gateway", Role::Owner);
        let serve = Command::ServeChannel { channel: name.clone(), account: account.clone() };
        self.command(by.clone(), EnvelopeId::new(new_id()), serve).await?;
        let sender = Sender::new(&self.team, channel, by.clone());
        sender.recover().await?;
        for row in self.team.ask(query::Chats { channel: name, account }).await? {
            if let Some(chat) = row.chat.filter(|_| !row.answered) {
                self.session(&chat, &by).await?;
            }
        }
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
        let (listened, sent) = tokio::join!(receive, send);
        Ok(listened?).and(Ok(sent?))
    }

    /// Takes a message in. Once this returns, the message is committed and can be acknowledged; a second delivery changes nothing.
    pub async fn receive(&self, incoming: Incoming) -> Result<SessionId, GatewayError> {
        let Incoming { chat, native, sender, role, text } = incoming;
        let by = self.principal(chat.channel(), &sender, role);
        let session = self.session(&chat, &by).await?;
        self.command(by, chat.message_key(&native), Command::Say { session, text }).await?;
        Ok(session)
    }

    fn principal(&self, channel: &str, user: &str, role: Role) -> Principal {
        Principal { door: channel.to_owned(), user: format!("{channel}:{user}"), role }
    }

    async fn command(&self, by: Principal, key: EnvelopeId, command: Command) -> Result<(), RuntimeError> {
        let cwd = self.place.cwd.display().to_string();
        self.team.command(Order { by, cwd, key, command }).await
    }

    /// The session of a chat, open in this process or in another one.
    async fn session(&self, chat: &ChatAddress, by: &Principal) -> Result<SessionId, GatewayError> {
        let mut open = self.open.lock().await;
        if let Some(at) = open.iter().position(|(other, _)| other == chat) {
            let known = open.remove(at);
            open.extend(known.clone());
            if let Some((_, session)) = known {
                return Ok(session);
            }
        }
        self.make_room(&mut open).await;
        // Changed definitions are told to one session, so each reads its own.
        let workspace = Workspace::read(&self.place, &self.selection, Vec::new()).map_err(GatewayError::Workspace)?;
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

    /// Closes idle sessions, least recently used first, until there is room for one more.
    async fn make_room(&self, open: &mut VecDeque<(ChatAddress, SessionId)>) {
        let mut at = 0;
        while open.len() >= CHATS_OPEN_MAX {
            let Some((_, session)) = open.get(at) else { return };
            let session = *session;
            match self.team.ask(query::Status { session }).await {
                Ok(status) if status.busy => at += 1,
                _ => {
                    self.team.close(session).await;
                    open.remove(at);
                }
            }
        }
    }
}
