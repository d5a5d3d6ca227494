//! Identities: UUIDv7 newtypes with a readable prefix (`ses_0199…`).
//!
//! They sort by time, parse strictly, and never mix: a session's id is not an agent's. This module cannot make
//! a new one (core has neither a clock nor randomness); the runtime hands fresh UUIDs in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A text that is not an identity of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {prefix} id (want `{prefix}_` and 32 hex digits)")]
pub struct IdError {
    /// What was given.
    pub text: String,
    /// The prefix that was wanted.
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// The readable prefix.
            pub const PREFIX: &'static str = $prefix;

            /// Wraps a UUID made by the caller (version 7, so that ids sort by time).
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The bare UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(concat!($prefix, "_"))
                    .filter(|hex| hex.len() == 32)
                    .and_then(|hex| Uuid::try_parse(hex).ok())
                    .map(Self)
                    .ok_or_else(|| IdError { text: text.to_owned(), prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                let mut text = [0; Self::PREFIX.len() + 33];
                let (prefix, digits) = text.split_at_mut(Self::PREFIX.len() + 1);
                prefix.copy_from_slice(concat!($prefix, "_").as_bytes());
                self.0.simple().encode_lower(digits);
                s.serialize_str(std::str::from_utf8(&text).map_err(serde::ser::Error::custom)?)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// A conversation with a user.
    SessionId, "ses"
);
id!(
    /// An agent: a definition, a mailbox and a loop.
    AgentId, "agt"
);
id!(
    /// One turn: from a message to its answer.
    TurnId, "trn"
);
id!(
    /// A question put to a person.
    QuestionId, "ask"
);
id!(
    /// A message between addresses; also the key that makes sending twice harmless.
    EnvelopeId, "env"
);
id!(
    /// A plan: tasks with owners, and how far they are.
    PlanId, "pln"
);
id!(
    /// A process that owns sessions and agents.
    WorkerId, "wrk"
);

impl EnvelopeId {
    /// Whether the runtime wrote the message: its id then follows from what it is about, and people's ids never do.
    pub fn is_programs(self) -> bool {
        self.uuid().get_version() == Some(uuid::Version::Custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_refuses_other_kinds() {
        let id = SessionId::new(Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001));
        let text = id.to_string();
        assert_eq!(text, "ses_01990000000070008000000000000001");
        assert_eq!(text.parse::<SessionId>(), Ok(id));
        assert!(text.parse::<AgentId>().is_err());
        for bad in
            ["", "ses_", "ses_xyz", "ses_0199000000007000800000000000000", "ses_{01990000000070008000000000000001}"]
        {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
        assert_eq!(serde_json::from_str::<SessionId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
    }
}
