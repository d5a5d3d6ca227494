//! Prompts and resources of MCP servers that a user mentions: `/mcp__git__review main` and `@docs:file:///guide.md`.

use super::{Mention, TRAILING};
use crate::mcp::is_server_name;

/// Prompts and resources of one message that are asked for.
pub const SERVER_MENTIONS_MAX: usize = 8;

/// What a message asks of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMention {
    /// A prompt, by the command that stands for it at the beginning of a message: `mcp__SERVER__PROMPT`.
    Prompt { command: String, arguments: String },
    /// A resource, by its address: `SERVER:URI`.
    Resource { server: String, uri: String },
}

impl ServerMention {
    /// The prompt that a message begins with.
    pub fn prompt(message: &str) -> Option<Self> {
        let command = message.trim_start().strip_prefix('/').filter(|rest| rest.starts_with("mcp__"))?;
        let (command, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        Some(Self::Prompt { command: command.to_owned(), arguments: arguments.trim().to_owned() })
    }

    /// The resource that a mention may be; whether there is such a server is not known here.
    pub fn resource(mention: &Mention) -> Option<Self> {
        let first = mention.spellings.first()?;
        // The end of the sentence is no part of the address; in quotes there is one spelling.
        let trimmed = first.trim_end_matches(TRAILING);
        let text = mention.spellings.iter().find(|spelling| *spelling == trimmed).unwrap_or(first);
        let (server, uri) = text.split_once(':')?;
        let scheme = uri.split_once(':').map(|(scheme, _)| scheme)?;
        let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        (is_server_name(server) && is_scheme).then(|| Self::Resource { server: server.to_owned(), uri: uri.to_owned() })
    }

    /// As the user wrote it, without arguments.
    pub fn written(&self) -> String {
        match self {
            Self::Prompt { command, .. } => format!("/{command}"),
            Self::Resource { server, uri } => format!("{server}:{uri}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn a_prompt_begins_a_message() {
        let prompt = |command: &str, arguments: &str| {
            Some(ServerMention::Prompt { command: command.into(), arguments: arguments.into() })
        };
        assert_eq!(
            ServerMention::prompt("/mcp__git__review main  \"a b\""),
            prompt("mcp__git__review", "main  \"a b\"")
        );
        assert_eq!(ServerMention::prompt(" /mcp__git__review"), prompt("mcp__git__review", ""));
        for message in ["use /mcp__git__review", "/mcp", "mcp__git__review", "/mcp_x"] {
            assert_eq!(ServerMention::prompt(message), None, "{message}");
        }
    }

    #[test]
    fn a_resource_has_a_server_and_an_address() {
        let cases: [(&str, Option<(&str, &str)>); 9] = [
            ("read @docs:file:///guide.md.", Some(("docs", "file:///guide.md"))),
            ("(@my-db:postgres://users/schema)", Some(("my-db", "postgres://users/schema"))),
            ("@s:demo://x/1, please", Some(("s", "demo://x/1"))),
            ("@\"s:note:a b.\"", Some(("s", "note:a b."))),
            ("@s:memo:x", Some(("s", "memo:x"))),
            ("@src/a.rs:12:5", None),
            ("@a:12:5", None),
            ("@https://example.org", None),
            ("@skill:name:x", None),
        ];
        for (message, want) in cases {
            let found = find(message).iter().find_map(ServerMention::resource);
            let want = want.map(|(server, uri)| ServerMention::Resource { server: server.into(), uri: uri.into() });
            assert_eq!(found, want, "{message}");
        }
    }
}
