//! `mcp`: its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::mcp_client::McpClient;
use super::serve::ServedFlags;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Mcp {
    #[command(flatten)]
    Client(McpClient),
    /// Serve the team of this folder to MCP clients, over standard input or HTTP
    Serve(ServeMcp),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeMcp {
    /// Serve over HTTP at /mcp instead of standard input and output
    #[arg(long)]
    pub(crate) http: bool,
    /// Listen on this port (0: a free one)
    #[arg(long, value_name = "N", default_value_t = 8807, requires = "http")]
    pub(crate) port: u16,
    /// Listen on this address; one that other machines can reach needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", requires = "http")]
    pub(crate) host: String,
    /// File with the bearer token that clients must send; without it, a token is created if other machines can reach the
    /// address
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept requests of web pages from this origin, such as http://localhost:6274
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,
    #[command(flatten)]
    pub(crate) served: ServedFlags,
}
