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

fn part(block: ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image)
            if IMAGE_TYPES.contains(&image.mime_type.as_str()) && image.data.len() <= IMAGE_BYTES_MAX =>
        {
            Part::Image { media_type: image.mime_type, data: image.data }
        }
        ContentBlock::Image(image) => Part::text(format!("[an image that cannot be shown: {}]", image.mime_type)),
        ContentBlock::Audio(audio) => Part::text(format!("[audio that cannot be heard: {}]", audio.mime_type)),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => Part::text(format!("[{uri}]\n{text}")),
            ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                Part::text(format!("[binary data of `{uri}`, {}]", mime_type.unwrap_or_else(|| "unknown type".into())))
            }
            _ => Part::text("[a resource of an unknown kind]"),
        },
        ContentBlock::ResourceLink(link) => Part::text(format!("[resource {}: {}]", link.name, link.uri)),
        _ => Part::text("[content of an unknown kind]"),
    }
}
