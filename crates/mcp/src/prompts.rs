//! Prompts and resources of a server: what a user asks for with `/mcp__SERVER__PROMPT` and `@SERVER:URI`.

use std::time::Duration;

use max_team_core::chat::Part;
use max_team_core::limits::{MCP_DESCRIPTION_BYTES_MAX, MCP_LIST_MS, MCP_PROMPTS_MAX, MENTION_FILE_BYTES_MAX};
use max_team_core::mcp::tool_name;
use max_team_core::mention::{ServerMention, prompt_text, resource_text};
use rmcp::model::{GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::clean;
use crate::connection::{Connection, McpError};
use crate::result;
use crate::server::Server;

/// Bytes of the name of a prompt or of an argument.
const NAME_BYTES_MAX: usize = 200;
/// Arguments of one prompt that are known.
const ARGUMENTS_MAX: usize = 32;

/// A prompt as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPrompt {
    pub name: String,
    pub description: String,
    /// The names of its arguments in their order, and whether each is required.
    pub arguments: Vec<(String, bool)>,
}

/// Why a prompt or a resource cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Server(#[from] McpError),
    /// The user's command does not fit.
    #[error("{0}")]
    Command(String),
}

impl From<rmcp::model::Prompt> for KnownPrompt {
    fn from(prompt: rmcp::model::Prompt) -> Self {
        let description = prompt.description.as_deref().or(prompt.title.as_deref()).unwrap_or_default();
        let arguments = prompt.arguments.into_iter().flatten().take(ARGUMENTS_MAX);
        let argument = |argument: rmcp::model::PromptArgument| {
            (clean::text(&argument.name, NAME_BYTES_MAX), argument.required.unwrap_or_default())
        };
        Self {
            name: clean::text(&prompt.name, NAME_BYTES_MAX),
            description: clean::text(description, MCP_DESCRIPTION_BYTES_MAX),
            arguments: arguments.map(argument).collect(),
        }
    }
}

impl KnownPrompt {
    /// The command that stands for it, with its arguments: `/mcp__git__review BRANCH [FOCUS]`.
    pub fn usage(&self, server: &str) -> String {
        let mut usage = format!("/{}", tool_name(server, &self.name));
        for (name, is_required) in &self.arguments {
            let name = name.to_uppercase();
            usage.push_str(&if *is_required { format!(" {name}") } else { format!(" [{name}]") });
        }
        usage
    }

    /// The arguments by name. Words stand for them in their order; the last one takes all that is left.
    fn fill(&self, words: &str) -> Result<Map<String, Value>, String> {
        let mut words: Vec<String> =
            shlex::split(words).unwrap_or_else(|| words.split_whitespace().map(str::to_owned).collect());
        if words.len() > self.arguments.len() {
            let Some(last) = self.arguments.len().checked_sub(1) else {
                return Err("it takes no arguments".to_owned());
            };
            let rest = words.split_off(last).join(" ");
            words.push(rest);
        }
        let missing: Vec<&str> = self
            .arguments
            .iter()
            .skip(words.len())
            .filter(|(_, is_required)| *is_required)
            .map(|(name, _)| name.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(format!("it also needs: {}", missing.join(", ")));
        }
        let names = self.arguments.iter().map(|(name, _)| name.clone());
        Ok(names.zip(words.into_iter().map(Value::String)).collect())
    }
}

impl Connection {
    /// The prompts that the server offers, up to a bound.
    pub(crate) async fn prompts(&self) -> Result<Vec<KnownPrompt>, McpError> {
        let limit = Duration::from_millis(MCP_LIST_MS);
        timeout(limit, self.all_prompts()).await.unwrap_or(Err(McpError::Timeout(limit)))
    }

    async fn all_prompts(&self) -> Result<Vec<KnownPrompt>, McpError> {
        let peer = self.service.peer();
        let mut prompts = Vec::new();
        if peer.peer_info().is_none_or(|info| info.capabilities.prompts.is_none()) {
            return Ok(prompts);
        }
        let mut cursor = None;
        loop {
            let page = peer.list_prompts(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
            prompts.extend(page.prompts.into_iter().map(KnownPrompt::from));
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() || prompts.len() >= MCP_PROMPTS_MAX {
                prompts.truncate(MCP_PROMPTS_MAX);
                return Ok(prompts);
            }
        }
    }
}

impl Server {
    /// Whether a mention names this server.
    pub(crate) fn has(&self, mention: &ServerMention) -> bool {
        match mention {
            ServerMention::Prompt { command, .. } => command.starts_with(&tool_name(&self.config().name, "")),
            ServerMention::Resource { server, .. } => *server == self.config().name,
        }
    }

    /// The commands that stand for its prompts.
    pub fn prompt_commands(&self) -> Vec<String> {
        let known = self.known();
        let prompts = known.iter().flat_map(|known| &known.prompts);
        prompts.map(|prompt| prompt.usage(&self.config().name)).collect()
    }

    pub(crate) async fn read(&self, mention: &ServerMention) -> Result<Vec<Part>, ReadError> {
        match mention {
            ServerMention::Prompt { command, arguments } => self.read_prompt(command, arguments).await,
            ServerMention::Resource { uri, .. } => self.read_resource(&mention.written(), uri).await,
        }
    }

    async fn prompt(&self, command: &str) -> Result<KnownPrompt, ReadError> {
        let find = |prompts: &[KnownPrompt]| {
            prompts.iter().find(|prompt| tool_name(&self.config().name, &prompt.name) == command).cloned()
        };
        if let Some(found) = self.known().and_then(|known| find(&known.prompts)) {
            return Ok(found);
        }
        let known = self.refresh().await?;
        find(&known.prompts).ok_or_else(|| {
            let all: Vec<String> = known.prompts.iter().map(|prompt| prompt.usage(&self.config().name)).collect();
            let all = if all.is_empty() { "it has none".to_owned() } else { format!("it has {}", all.join(", ")) };
            ReadError::Command(format!("the MCP server `{}` has no such prompt; {all}", self.config().name))
        })
    }

    async fn read_prompt(&self, command: &str, arguments: &str) -> Result<Vec<Part>, ReadError> {
        let name = &self.config().name;
        let prompt = self.prompt(command).await?;
        let arguments =
            prompt.fill(arguments).map_err(|why| ReadError::Command(format!("{why}; write {}", prompt.usage(name))))?;
        let params = GetPromptRequestParams::new(prompt.name.clone()).with_arguments(arguments);
        let got = self.ask(|open| async move { Ok(open.connection.service.get_prompt(params).await?) }).await?;
        let (mut text, mut others) = (String::new(), Vec::new());
        for message in got.messages {
            match result::part(message.content) {
                Part::Text { text: said } if message.role == Role::Assistant => {
                    text.push_str(&format!("[an example of an answer:]\n{said}\n"));
                }
                Part::Text { text: said } => text.push_str(&format!("{said}\n")),
                other => others.push(other),
            }
        }
        let text = prompt_text(&format!("/{command}"), name, &clean::text(&text, MENTION_FILE_BYTES_MAX));
        Ok(std::iter::once(Part::text(text)).chain(others).collect())
    }

    async fn read_resource(&self, written: &str, uri: &str) -> Result<Vec<Part>, ReadError> {
        let params = ReadResourceRequestParams::new(uri);
        let read = self.ask(|open| async move { Ok(open.connection.service.read_resource(params).await?) }).await?;
        let (mut text, mut others) = (String::new(), Vec::new());
        for contents in read.contents {
            match result::resource(contents) {
                Ok((own, said)) if own == uri => text.push_str(&format!("{said}\n")),
                Ok((own, said)) => text.push_str(&format!("[{own}]\n{said}\n")),
                Err(Part::Text { text: said }) => text.push_str(&format!("{said}\n")),
                Err(other) => others.push(other),
            }
        }
        let text = resource_text(written, &self.config().name, &clean::text(&text, MENTION_FILE_BYTES_MAX));
        Ok(std::iter::once(Part::text(text)).chain(others).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_arguments_in_their_order() {
        let prompt = |arguments: &[(&str, bool)]| KnownPrompt {
            name: "plan a trip".into(),
            description: String::new(),
            arguments: arguments.iter().map(|(name, required)| ((*name).to_owned(), *required)).collect(),
        };
        let two = prompt(&[("city", true), ("days", false)]);
        assert_eq!(two.usage("t"), "/mcp__t__plan_a_trip CITY [DAYS]");
        let filled = |words: &str| two.fill(words).map(|map| Value::Object(map).to_string());
        assert_eq!(filled("Rome").unwrap(), r#"{"city":"Rome"}"#);
        assert_eq!(filled("'New York' 3").unwrap(), r#"{"city":"New York","days":"3"}"#);
        assert_eq!(filled("Rome 3 or 4").unwrap(), r#"{"city":"Rome","days":"3 or 4"}"#);
        assert_eq!(filled("it's Rome").unwrap(), r#"{"city":"it's","days":"Rome"}"#);
        assert_eq!(filled("").unwrap_err(), "it also needs: city");
        assert_eq!(prompt(&[]).fill("x").unwrap_err(), "it takes no arguments");
        assert!(prompt(&[]).fill("").unwrap().is_empty());
    }
}
