//! Chats of messaging services: where a message comes from, and where its answer goes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::event::TurnOutcome;
use crate::hash::Hash;
use crate::id::{EnvelopeId, TurnId};
use crate::limits::{CHANNEL_NAME_CHARS_MAX, CHAT_ID_CHARS_MAX};

/// The channel of MCP clients. The account is the client's name, the chat the folder that the team works in.
pub const MCP: &str = "mcp";

/// The channel of the web server. A chat there is one conversation.
pub const WEB: &str = "webui";

/// One chat of an account of a channel, written `<channel>:<account>/<chat>` (`telegram:home_bot/4711`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatAddress {
    channel: String,
    account: String,
    chat: String,
}

impl ChatAddress {
    /// The address of a chat. Channel and account are short plain names; the chat is the service's own id.
    pub fn new(channel: &str, account: &str, chat: &str) -> Result<Self, ChatAddressError> {
        let fault = |text: &str| ChatAddressError { text: text.chars().take(CHAT_ID_CHARS_MAX).collect() };
        for name in [channel, account] {
            let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.@".contains(letter));
            if name.is_empty() || name.len() > CHANNEL_NAME_CHARS_MAX || !is_plain {
                return Err(fault(name));
            }
        }
        if chat.is_empty() || chat.chars().count() > CHAT_ID_CHARS_MAX || chat.chars().any(char::is_control) {
            return Err(fault(chat));
        }
        Ok(Self { channel: channel.into(), account: account.into(), chat: chat.into() })
    }

    /// The messaging service.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The account (a bot, a mailbox) that receives there.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The service's id of the chat.
    pub fn chat(&self) -> &str {
        &self.chat
    }

    /// Whether answers are sent there. MCP clients and web pages fetch them instead.
    pub fn gets_answers_sent(&self) -> bool {
        self.channel != MCP && self.channel != WEB
    }

    /// The key of a message that the service calls `native`: delivering it twice changes nothing.
    pub fn message_key(&self, native: &str) -> EnvelopeId {
        let fields = ["channel", &self.channel, &self.account, native].map(str::as_bytes);
        EnvelopeId::new(Hash::of_fields(&fields).uuid())
    }
}

impl fmt::Display for ChatAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.channel, self.account, self.chat)
    }
}

impl FromStr for ChatAddress {
    type Err = ChatAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').and_then(|(channel, rest)| Some((channel, rest.split_once('/')?)));
        let Some((channel, (account, chat))) = parts else { return Err(ChatAddressError { text: text.to_owned() }) };
        Self::new(channel, account, chat)
    }
}

impl Serialize for ChatAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChatAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is no address of a chat.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not part of a chat's address: write `<channel>:<account>/<chat>`, such as `telegram:home_bot/4711`"
)]
pub struct ChatAddressError {
    text: String,
}

/// A message to a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outgoing {
    /// The end of a turn of the lead.
    Reply {
        turn: TurnId,
        /// The text of the answer; empty if the turn ended without one.
        text: String,
        /// How the turn ended.
        end: TurnOutcome,
    },
}

/// What happened to a message on its way to a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It is about to be sent.
    Sending,
    /// The service has it.
    Sent {
        /// The service's id of it.
        native: String,
    },
    /// The process ended while it was sent: the service may have it.
    Unknown,
    /// It was not sent and waits for the next attempt.
    Retry,
    /// It will never be sent.
    Dead {
        /// Why it was given up.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_address_is_read_as_it_was_written(channel in "[a-z0-9_-]{1,32}", account in "[A-Za-z0-9_.@-]{1,32}", chat in "[^\\pC]{1,40}") {
            let address = ChatAddress::new(&channel, &account, &chat).unwrap();
            prop_assert_eq!(address.to_string().parse::<ChatAddress>(), Ok(address.clone()));
            let json = serde_json::to_string(&address).unwrap();
            prop_assert_eq!(serde_json::from_str::<ChatAddress>(&json).unwrap(), address);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "telegram", "telegram:", "telegram:bot", "telegram:/1", ":bot/1", "tele gram:bot/1", "a:b/"] {
            assert!(text.parse::<ChatAddress>().is_err(), "{text}");
        }
        assert!(ChatAddress::new("telegram", "bot", "a\nb").is_err());
        assert!(ChatAddress::new("telegram", "bo/t", "1").is_err());
    }

    #[test]
    fn a_message_is_known_by_channel_account_and_native_id() {
        let key =
            |channel, account, chat, native| ChatAddress::new(channel, account, chat).unwrap().message_key(native);
        let first = key("telegram", "bot", "1", "7");
        assert_eq!(first, key("telegram", "bot", "2", "7"));
        let others =
            [key("matrix", "bot", "1", "7"), key("telegram", "tob", "1", "7"), key("telegram", "bot", "1", "8")];
        assert!(others.iter().all(|other| *other != first));
    }
}
