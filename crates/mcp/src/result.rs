//! The result of a call as parts of a message.

use max_team_core::chat::Part;
use max_team_tools::Output;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Bytes of an image in Base64 that are passed on.
const IMAGE_BYTES_MAX: usize = 5 << 20;
/// Kinds of images that models see.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What a model is told of a result. Structured content is told as JSON if the server did not also say it in words.
pub(crate) fn output(result: CallToolResult) -> Output {
    let is_error = result.is_error.unwrap_or_default();
    let mut content: Vec<Part> = result.content.into_iter().map(part).collect();
    let has_text = content.iter().any(|part| matches!(part, Part::Text { text } if !text.trim().is_empty()));
    if let Some(value) = result.structured_content.filter(|_| !has_text) {
        content.push(Part::text(serde_json::to_string_pretty(&value).unwrap_or_default()));
    }
    if content.is_empty() {
        content.push(Part::text("(no output)"));
    }
    Output { content, is_error }
}

pub(crate) fn part(block: ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => picture(image.mime_type, image.data),
        ContentBlock::Audio(audio) => Part::text(format!("[audio that cannot be heard: {}]", audio.mime_type)),
        ContentBlock::Resource(embedded) => match resource(embedded.resource) {
            Ok((uri, text)) => Part::text(format!("[{uri}]\n{text}")),
            Err(part) => part,
        },
        ContentBlock::ResourceLink(link) => Part::text(format!("[resource {}: {}]", link.name, link.uri)),
        _ => Part::text("[content of an unknown kind]"),
    }
}

/// The address and the text of a resource, or what else it is.
pub(crate) fn resource(contents: ResourceContents) -> Result<(String, String), Part> {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => Ok((uri, text)),
        ResourceContents::BlobResourceContents { mime_type: Some(media_type), blob, .. }
            if media_type.starts_with("image/") =>
        {
            Err(picture(media_type, blob))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
            let kind = mime_type.unwrap_or_else(|| "unknown type".into());
            Err(Part::text(format!("[binary data of `{uri}`, {kind}]")))
        }
        _ => Err(Part::text("[a resource of an unknown kind]")),
    }
}

fn picture(media_type: String, data: String) -> Part {
    if IMAGE_TYPES.contains(&media_type.as_str()) && data.len() <= IMAGE_BYTES_MAX {
        Part::Image { media_type, data }
    } else {
        Part::text(format!("[an image that cannot be shown: {media_type}]"))
    }
}
