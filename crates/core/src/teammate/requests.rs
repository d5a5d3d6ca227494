//! Requests that an agent has sent to others, and which answers to them count.
//!
//! A request is identified by its message. The first answer that comes from the agent that was asked, has the expected
//! kind and is in time counts; every other answer is refused, with the reason.

use serde::{Deserialize, Serialize};

use crate::id::EnvelopeId;
use crate::limits::REQUESTS_KEPT_MAX;
use crate::message::{Address, Envelope, MessageKind};

/// An agent has sent a request (stream of the sender).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// The message that asks.
    pub request: EnvelopeId,
    /// What is asked.
    pub kind: MessageKind,
    pub to: Address,
    /// When the request expires.
    pub until_ms: i64,
}

/// The request was answered, or has expired (stream of the sender of the request).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Responded {
    /// The message that asked.
    pub request: EnvelopeId,
    /// The answer; `None` if the request expired.
    pub kind: Option<MessageKind>,
    /// The message that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "letter")]
    pub envelope: Option<EnvelopeId>,
    /// The reason that came with the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseRefusal {
    /// That message asked nothing.
    Unknown,
    /// The request was answered already, or has expired.
    Late,
    /// Another agent was asked.
    NotAsked,
    /// The answer has another kind than the request expects.
    OtherKind,
}

impl ResponseRefusal {
    /// The reason as text.
    pub fn as_text(&self) -> &'static str {
        match self {
            Self::Unknown => "nothing was asked in that letter",
            Self::Late => "it was answered already, or the request is no longer open",
            Self::NotAsked => "another agent was asked",
            Self::OtherKind => "it is no answer to what was asked",
        }
    }
}

/// All requests of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    open: Vec<Requested>,
    /// The latest closed requests, each with the message that answered it.
    closed: Vec<(EnvelopeId, Option<EnvelopeId>)>,
}

impl Requests {
    /// Whether the agent never asked anything.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty()
    }

    /// The requests that wait for an answer.
    pub fn open(&self) -> &[Requested] {
        &self.open
    }

    /// Whether this agent was asked this and has not answered.
    pub fn is_asked(&self, kind: MessageKind, to: &str) -> bool {
        self.open.iter().any(|asked| asked.kind == kind && asked.to == to)
    }

    /// Whether this message is the answer that counted.
    pub fn is_accepted(&self, envelope: EnvelopeId) -> bool {
        self.closed.iter().any(|(_, accepted)| *accepted == Some(envelope))
    }

    /// Whether an answer counts.
    pub fn judge(&self, request: EnvelopeId, kind: MessageKind, from: &str) -> Result<&Requested, ResponseRefusal> {
        let Some(asked) = self.open.iter().find(|asked| asked.request == request) else {
            let is_known = self.closed.iter().any(|(closed, _)| *closed == request);
            return Err(if is_known { ResponseRefusal::Late } else { ResponseRefusal::Unknown });
        };
        if asked.to != from {
            return Err(ResponseRefusal::NotAsked);
        }
        let answers = match asked.kind {
            MessageKind::ShutdownRequest => {
                matches!(kind, MessageKind::ShutdownApproved | MessageKind::ShutdownRejected)
            }
            _ => false,
        };
        if answers { Ok(asked) } else { Err(ResponseRefusal::OtherKind) }
    }

    /// The event that a message answering a request leads to, or why it does not count.
    pub fn respond(&self, envelope: &Envelope) -> Result<Responded, &'static str> {
        let asked = envelope.reply_to.ok_or("it answers nothing")?;
        let asked = self.judge(asked, envelope.kind, &envelope.from).map_err(|refusal| refusal.as_text())?;
        let reason = envelope.text().to_owned();
        Ok(Responded { request: asked.request, kind: Some(envelope.kind), envelope: Some(envelope.id), reason })
    }

    /// The requests that have expired.
    pub fn overdue(&self, now_ms: i64) -> impl Iterator<Item = &Requested> {
        self.open.iter().filter(move |asked| asked.until_ms <= now_ms)
    }

    /// When the next request expires.
    pub fn next_ms(&self) -> Option<i64> {
        self.open.iter().map(|asked| asked.until_ms).min()
    }

    pub(crate) fn ask(&mut self, asked: &Requested) {
        if !self.open.iter().any(|known| known.request == asked.request) {
            self.open.push(asked.clone());
        }
    }

    pub(crate) fn close(&mut self, responded: &Responded) {
        let before = self.open.len();
        self.open.retain(|asked| asked.request != responded.request);
        if self.open.len() < before {
            self.closed.push((responded.request, responded.envelope));
            let over = self.closed.len().saturating_sub(REQUESTS_KEPT_MAX);
            self.closed.drain(..over);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(number: u128) -> EnvelopeId {
        EnvelopeId::new(Uuid::from_u128(number))
    }

    fn asked(number: u128, to: &str) -> Requested {
        Requested { request: id(number), kind: MessageKind::ShutdownRequest, to: to.to_owned(), until_ms: 100 }
    }

    #[test]
    fn only_the_first_answer_counts() {
        let mut requests = Requests::default();
        requests.ask(&asked(1, "agent/a"));
        requests.ask(&asked(1, "agent/a"));
        requests.ask(&asked(2, "agent/b"));
        assert_eq!(requests.open().len(), 2, "the same request twice is one");
        for (request, kind, from, want) in [
            (3, MessageKind::ShutdownApproved, "agent/a", ResponseRefusal::Unknown),
            (1, MessageKind::ShutdownApproved, "agent/b", ResponseRefusal::NotAsked),
            (1, MessageKind::Text, "agent/a", ResponseRefusal::OtherKind),
        ] {
            assert_eq!(requests.judge(id(request), kind, from), Err(want));
        }
        assert!(requests.judge(id(1), MessageKind::ShutdownRejected, "agent/a").is_ok());
        requests.close(&Responded {
            request: id(1),
            kind: Some(MessageKind::ShutdownRejected),
            envelope: Some(id(9)),
            reason: String::new(),
        });
        assert!(requests.is_accepted(id(9)) && !requests.is_accepted(id(8)));
        assert_eq!(requests.judge(id(1), MessageKind::ShutdownApproved, "agent/a"), Err(ResponseRefusal::Late));
        assert!(
            requests.is_asked(MessageKind::ShutdownRequest, "agent/b")
                && !requests.is_asked(MessageKind::ShutdownRequest, "agent/a")
        );
        assert_eq!(requests.overdue(99).count(), 0);
        assert_eq!((requests.overdue(100).count(), requests.next_ms()), (1, Some(100)));
    }

    #[test]
    fn closed_requests_are_forgotten_within_bounds() {
        let mut requests = Requests::default();
        for number in 0..2 * REQUESTS_KEPT_MAX as u128 {
            requests.ask(&asked(number, "agent/a"));
            requests.close(&Responded { request: id(number), kind: None, envelope: None, reason: String::new() });
        }
        assert_eq!(requests.closed.len(), REQUESTS_KEPT_MAX);
    }
}
