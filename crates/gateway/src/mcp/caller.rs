//! The client that makes a call, and the sessions that are its own.

use max_team_core::channel::{ChatAddress, MCP};
use max_team_core::hash::Hash;
use max_team_core::id::SessionId;
use max_team_core::limits::{CHANNEL_NAME_CHARS_MAX, CHAT_ID_CHARS_MAX, MCP_CONVERSATION_CHARS_MAX};
use max_team_core::message::{Principal, Role};
use max_team_runtime::{SessionRow, query};
use rmcp::RoleServer;
use rmcp::service::RequestContext;

use super::McpServer;
use super::result::CallError;
use crate::gateway::Gateway;

/// A client, by the name that it gives itself. The name keeps clients apart; it proves nothing.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    name: String,
}

impl Caller {
    pub(super) fn new(context: &RequestContext<RoleServer>) -> Self {
        Self::named(&context.client_info().map(|client| client.name).unwrap_or_default())
    }

    fn named(given: &str) -> Self {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_.@".contains(*letter);
        let plain = |letter: char| if is_plain(&letter) { letter } else { '-' };
        let name: String = given.trim().chars().map(plain).take(CHANNEL_NAME_CHARS_MAX).collect();
        Self { name: if name.is_empty() { "client".to_owned() } else { name } }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn principal(&self) -> Principal {
        Gateway::principal(MCP, &self.name, Role::Member)
    }

    /// Whether a session is one of its own.
    pub(super) fn owns(&self, row: &SessionRow) -> bool {
        row.chat.as_ref().is_some_and(|chat| chat.channel() == MCP && chat.account() == self.name)
    }
}

impl McpServer {
    /// The chat of a call: the client's usual one in this folder, the one that it names, or the one of a session of its own.
    pub(super) fn own_chat(&self, caller: &Caller, session: Option<&str>) -> Result<ChatAddress, CallError> {
        let given = session.map(str::trim).filter(|given| !given.is_empty());
        let Some(given) = given else { return self.chat(caller, None) };
        let Ok(session) = given.parse::<SessionId>() else { return self.chat(caller, Some(given)) };
        let row = self.shared.reader.ask(query::Session { session }).map_err(|error| self.failed(&error))?;
        match row.chat.clone().filter(|_| caller.owns(&row)) {
            Some(chat) => Ok(chat),
            None => Err(CallError(format!(
                "session `{given}` is not one of yours: leave `session` out, or give a conversation another name"
            ))),
        }
    }

    /// The session that a call wants to read: one of this folder, by its id, or a conversation of the client.
    pub(super) fn session_to_read(&self, caller: &Caller, session: Option<&str>) -> Result<SessionRow, CallError> {
        if let Some(Ok(session)) = session.map(|given| given.trim().parse::<SessionId>()) {
            let row = self.shared.reader.ask(query::Session { session }).map_err(|error| self.failed(&error))?;
            return match self.is_here(&row) {
                true => Ok(row),
                false => Err(CallError(format!("session `{session}` belongs to another folder"))),
            };
        }
        let chat = self.own_chat(caller, session)?;
        let known = query::Chats { channel: MCP.to_owned(), account: caller.name.clone() };
        let rows = self.shared.reader.ask(known).map_err(|error| self.failed(&error))?;
        let row = rows.into_iter().find(|row| row.chat.as_ref() == Some(&chat));
        row.ok_or_else(|| CallError("there is no such conversation yet: begin it with `ask`".to_owned()))
    }

    /// Whether a session works in the folder of this server.
    pub(super) fn is_here(&self, row: &SessionRow) -> bool {
        std::path::Path::new(&row.cwd) == self.shared.root
    }

    fn chat(&self, caller: &Caller, conversation: Option<&str>) -> Result<ChatAddress, CallError> {
        let is_long = conversation.is_some_and(|name| name.chars().count() > MCP_CONVERSATION_CHARS_MAX);
        if is_long {
            return Err(CallError(format!(
                "a conversation's name has at most {MCP_CONVERSATION_CHARS_MAX} characters"
            )));
        }
        let mut folder = self.shared.root.display().to_string();
        if folder.chars().count() + MCP_CONVERSATION_CHARS_MAX >= CHAT_ID_CHARS_MAX {
            folder = Hash::of(&folder).uuid().to_string();
        }
        let chat = conversation.map_or(folder.clone(), |name| format!("{folder}#{name}"));
        ChatAddress::new(MCP, &caller.name, &chat).map_err(|error| CallError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_of_a_client_is_one_of_an_account() {
        for (given, name) in
            [("claude-code", "claude-code"), ("Visual Studio Code", "Visual-Studio-Code"), ("", "client")]
        {
            assert_eq!(Caller::named(given).name(), name);
        }
        for given in ["猫", "a/b:c", &"x".repeat(500)] {
            assert!(ChatAddress::new(MCP, Caller::named(given).name(), "/p").is_ok(), "{given}");
        }
        let by = Caller::named("cursor").principal();
        assert_eq!((by.door.as_str(), by.user.as_str(), by.role), ("mcp", "mcp:cursor", Role::Member));
    }
}
