//! The messages of an OpenAI-compatible request as one message for the team. Pictures become files of the session that it mentions.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use max_team_core::id::SessionId;
use max_team_core::limits::{IMAGE_BYTES_MAX, MENTION_IMAGES_MAX};
use serde::Deserialize;
use serde_json::Value;

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::files::mention_of;

/// The kinds of pictures that models see, with the endings of their files.
const PICTURES: [(&str, &str); 4] =
    [("image/png", "png"), ("image/jpeg", "jpg"), ("image/gif", "gif"), ("image/webp", "webp")];

#[derive(Debug, Deserialize)]
pub(crate) struct ChatMessage {
    role: String,
    #[serde(default)]
    content: Value,
}

#[derive(Debug, PartialEq, Eq)]
enum PromptPart {
    Text(String),
    Picture { name: String, bytes: Vec<u8> },
}

/// What is said to the team.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// Messages that the session does not know, with their roles.
    before: Vec<(String, Vec<PromptPart>)>,
    last: Vec<PromptPart>,
}

impl Prompt {
    /// Reads the last message, and those before it if the session does not know them.
    pub(crate) fn read(messages: &[ChatMessage], is_continued: bool) -> Result<Self, ApiError> {
        let Some((last, before)) = messages.split_last() else {
            return Err(ApiError::bad_request("`messages` is empty"));
        };
        let known = if is_continued { before.len() } else { 0 };
        let mut told = Vec::new();
        for (at, message) in before.iter().enumerate().skip(known) {
            told.push((message.role.clone(), pieces(at, message)?));
        }
        let last = pieces(before.len(), last)?;
        let says = |piece: &PromptPart| matches!(piece, PromptPart::Text(text) if !text.trim().is_empty());
        if !last.iter().any(says) {
            return Err(ApiError::bad_request("the last message has no text"));
        }
        let all = told.iter().flat_map(|(_, pieces)| pieces).chain(&last);
        if all.filter(|piece| matches!(piece, PromptPart::Picture { .. })).count() > MENTION_IMAGES_MAX {
            return Err(ApiError::bad_request(format!("a request has at most {MENTION_IMAGES_MAX} pictures")));
        }
        Ok(Self { before: told, last })
    }

    /// Keeps the pictures among the files of the session; returns the text that mentions them.
    pub(crate) async fn keep(self, web: &Web, visitor: &Visitor, session: SessionId) -> Result<String, ApiError> {
        let mut told = Vec::new();
        for (role, pieces) in self.before {
            told.push(format!("{role}: {}", text(web, visitor, session, pieces).await?));
        }
        let last = text(web, visitor, session, self.last).await?;
        if told.is_empty() {
            return Ok(last);
        }
        Ok(format!("The conversation so far:\n\n{}\n\nNow:\n\n{last}", told.join("\n\n")))
    }
}

async fn text(web: &Web, visitor: &Visitor, session: SessionId, pieces: Vec<PromptPart>) -> Result<String, ApiError> {
    let mut lines = Vec::new();
    for piece in pieces {
        lines.push(match piece {
            PromptPart::Text(text) => text,
            PromptPart::Picture { name, bytes } => mention_of(&web.add_file(visitor, session, &name, bytes).await?),
        });
    }
    Ok(lines.join("\n"))
}

/// The content of the message at a place: a string, or a list of parts.
fn pieces(at: usize, message: &ChatMessage) -> Result<Vec<PromptPart>, ApiError> {
    match &message.content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![PromptPart::Text(text.clone())]),
        Value::Array(parts) => {
            parts.iter().enumerate().map(|(nth, part)| piece(&format!("messages[{at}].content[{nth}]"), part)).collect()
        }
        _ => Err(ApiError::bad_request(format!("`messages[{at}].content` is neither a text nor a list of parts"))),
    }
}

fn piece(place: &str, part: &Value) -> Result<PromptPart, ApiError> {
    let refused = |words: &str| ApiError::bad_request(format!("`{place}` {words}"));
    let kind = part.get("type").and_then(Value::as_str);
    match (kind, part.get("text").and_then(Value::as_str)) {
        (Some("text") | None, Some(text)) => return Ok(PromptPart::Text(text.to_owned())),
        (Some("image_url"), _) => {}
        (kind, _) => {
            let kind = kind.unwrap_or_default();
            return Err(refused(&format!("has the type `{kind}`; parts are `text` and `image_url`")));
        }
    }
    let url = part.pointer("/image_url/url").and_then(Value::as_str).unwrap_or_default();
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((mime, encoded)) = data else {
        return Err(refused("is no picture in itself: `image_url.url` must be `data:image/png;base64,…`"));
    };
    let Some((_, ending)) = PICTURES.iter().find(|(known, _)| *known == mime) else {
        return Err(refused(&format!("is `{mime}`; pictures are {}", PICTURES.map(|(known, _)| known).join(", "))));
    };
    let bytes = BASE64_STANDARD.decode(encoded).map_err(|error| refused(&format!("is not base64: {error}")))?;
    if bytes.is_empty() || bytes.len() as u64 > IMAGE_BYTES_MAX {
        return Err(refused(&format!("has {} bytes; a picture has 1 to {IMAGE_BYTES_MAX}", bytes.len())));
    }
    Ok(PromptPart::Picture { name: format!("picture.{ending}"), bytes })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(content: Value, is_continued: bool) -> Result<Prompt, ApiError> {
        let first = json!({ "role": "system", "content": "Be brief." });
        let messages: Vec<ChatMessage> =
            serde_json::from_value(json!([first, { "role": "user", "content": content }])).unwrap();
        Prompt::read(&messages, is_continued)
    }

    #[test]
    fn messages_that_the_session_knows_are_left_out() {
        let content = json!([{ "type": "text", "text": "Hi" }, { "type": "text", "text": "there" }]);
        let said = |text: &str| PromptPart::Text(text.to_owned());
        assert_eq!(read(content.clone(), true).unwrap().before, []);
        let prompt = read(content, false).unwrap();
        assert_eq!(prompt.before, [("system".to_owned(), vec![said("Be brief.")])]);
        assert_eq!(prompt.last, [said("Hi"), said("there")]);
        assert!(Prompt::read(&[], false).is_err());
    }

    #[test]
    fn a_part_that_cannot_be_used_is_named() {
        let image = |url: &str| json!([{ "type": "text", "text": "see" }, { "type": "image_url", "image_url": { "url": url } }]);
        let prompt = read(image("data:image/png;base64,iVBORw=="), true).unwrap();
        assert!(
            matches!(prompt.last.get(1), Some(PromptPart::Picture { name, bytes }) if name == "picture.png" && bytes == b"\x89PNG")
        );
        for content in [
            image("https://example.org/a.png"),
            image("data:image/svg+xml;base64,PHN2Zz4="),
            image("data:image/png;base64,???"),
            image("data:image/png;base64,"),
            json!([{ "type": "text", "text": "hear" }, { "type": "input_audio" }]),
        ] {
            let refused = read(content, true).unwrap_err().object();
            assert!(refused["message"].as_str().unwrap().starts_with("`messages[1].content[1]`"), "{refused}");
        }
    }
}
