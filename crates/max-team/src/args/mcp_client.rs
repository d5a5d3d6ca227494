//! `mcp`: the commands about servers that agents use.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use max_team_workspace::mcp::ServerScope;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum McpClient {
    /// List the MCP servers of this folder, with their state
    #[command(visible_alias = "ls")]
    List {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        lists: ServerLists,
    },
    /// Add a server: a program with its arguments, or an address
    Add(AddServer),
    /// Add a server from its entry in JSON
    AddJson {
        /// The name of the server
        name: String,
        /// The entry, such as '{"command": "npx", "args": ["-y", "package"]}'
        json: String,
        /// Where the entry is written
        #[arg(long, short, value_enum, default_value_t = Scope::Local)]
        scope: Scope,
        /// Replace an entry of that name
        #[arg(long)]
        force: bool,
    },
    /// Remove a server
    #[command(visible_alias = "rm")]
    Remove {
        /// The name of the server
        name: String,
        /// Remove it from this scope only; without it, from the first that has it
        #[arg(long, short, value_enum)]
        scope: Option<Scope>,
    },
    /// Show a server's entry, state and last error
    Get {
        /// The name of the server
        name: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        lists: ServerLists,
    },
    /// Connect to a server, list its tools, and call one that only reads and needs no input
    Test(OneServer),
    /// List the tools of a server
    Tools {
        #[command(flatten)]
        server: OneServer,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Call a tool of a server and print its result
    Call {
        #[command(flatten)]
        server: OneServer,
        /// The tool, by the server's own name or as mcp__SERVER__TOOL
        tool: String,
        /// The input in JSON
        #[arg(default_value = "{}")]
        input: String,
    },
    /// Trust a server of this project's .mcp.json, with the tools that it offers now
    Trust {
        /// The name of the server
        name: String,
        /// Trust it without a question
        #[arg(long)]
        yes: bool,
    },
    /// Sign in at a remote server with the browser
    Login {
        /// The name of the server
        name: String,
        #[command(flatten)]
        lists: ServerLists,
    },
    /// Forget the login at a remote server
    Logout {
        /// The name of the server
        name: String,
        #[command(flatten)]
        lists: ServerLists,
    },
    /// Print what a server wrote to its standard error
    Logs {
        /// The name of the server
        name: String,
        /// Print only the last lines
        #[arg(long, short = 'n', value_name = "LINES", default_value_t = 200)]
        lines: usize,
    },
}

/// Where an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// For you, in this folder
    Local,
    /// For everyone who works on this project (.mcp.json)
    Project,
    /// For you, in all folders
    User,
}

impl Scope {
    pub(crate) fn list(self) -> ServerScope {
        match self {
            Self::Local => ServerScope::Local,
            Self::Project => ServerScope::Project,
            Self::User => ServerScope::User,
        }
    }
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct AddServer {
    /// The server's name: its tools are called mcp__NAME__TOOL
    pub(crate) name: String,
    /// The program (behind `--`), or the address
    pub(crate) target: String,
    /// The program's arguments
    #[arg(trailing_var_arg = true)]
    pub(crate) args: Vec<String>,
    /// Where the entry is written
    #[arg(long, short, value_enum, default_value_t = Scope::Local)]
    pub(crate) scope: Scope,
    /// The transport; without it, http for an address, else stdio
    #[arg(long, short, value_enum)]
    pub(crate) transport: Option<Transport>,
    /// An environment variable for the program
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// An HTTP header for the address
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Replace an entry of that name
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct OneServer {
    /// The name of the server
    pub(crate) name: String,
    /// Start the server even if it comes from this project's .mcp.json and you have not trusted it
    #[arg(long)]
    pub(crate) trust: bool,
    #[command(flatten)]
    pub(crate) lists: ServerLists,
}

/// Lists of servers beside those of the folder and the user.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerLists {
    /// Use MCP servers from this file or JSON, too
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<String>,
    /// A settings file to use instead of the project's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
