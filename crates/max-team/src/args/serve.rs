//! `serve`: its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use max_team_core::message::Role;
use max_team_gateway::http::tokens::{ROLES, role_named};
use max_team_workspace::selection::Selection;

use super::{TalkFlags, TeamFlags, ValueFault};
use crate::demo::NAMES;

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    #[command(flatten)]
    pub(crate) options: ServeOptions,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ServeCommand {
    /// Print a link that logs one browser in to the running server of this folder; it works once
    Link {
        #[command(flatten)]
        server: ServerChoice,
    },
    /// Create, list and revoke tokens for programs and other devices
    Token {
        #[command(subcommand)]
        command: ServeToken,
        #[command(flatten)]
        server: ServerChoice,
    },
}

/// The running server that is meant, if not that of this folder.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerChoice {
    /// Use the running server at this port; it may belong to any folder
    #[arg(long, value_name = "N", global = true)]
    pub(crate) port: Option<u16>,
    /// Use the running server of a demo; NAME as in `demo --list`
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "team", value_parser = NAMES, hide_possible_values = true, global = true, conflicts_with = "port")]
    pub(crate) demo: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ServeToken {
    /// Create a token and print it; it is not shown again
    Create {
        /// A name to recognise it by
        name: String,
        /// What its holder may do. viewer: look at everything. member: also talk to the team and stop it. owner: also
        /// answer questions, approve plans and change settings
        #[arg(long, alias = "scope", value_name = "ROLE", default_value = "member", value_parser = role)]
        role: Role,
        /// End it after this time, such as 12h or 30d; without it, it lasts until it is revoked
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List tokens and the browsers that are logged in
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token; a running server refuses it from now on
    Revoke {
        /// The name or id in `serve token list`
        name: String,
    },
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServeOptions {
    /// Listen on this port (0: a free one); without it, the one in the settings
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Listen on this address; one that other machines can reach needs TLS or a proxy
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Print the address and the login link as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve a recorded team in a scratch project, without a key; NAME as in `demo --list`
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "team", value_parser = NAMES, hide_possible_values = true)]
    pub(crate) demo: Option<String>,
    /// The certificate chain for TLS (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A proxy in front of the server handles TLS; `server.public_url` must name its address
    #[arg(long)]
    pub(crate) behind_proxy: bool,
    #[command(flatten)]
    pub(crate) served: ServedFlags,
}

/// The team that a server offers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServedFlags {
    /// Serve one agent with all tools, without the team
    #[arg(long)]
    pub(crate) solo: bool,
    /// A file that defines the team, instead of the project's own
    #[arg(long, value_name = "FILE")]
    pub(crate) agents: Option<PathBuf>,
    /// A settings file to use instead of the project's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl ServedFlags {
    pub(crate) fn selection(&self) -> Selection {
        let (solo, agents, config) = (self.solo, self.agents.clone(), self.config.clone());
        Selection { solo, agents, config, ..Selection::default() }
    }
}

impl ServeOptions {
    /// On this machine alone, with the team that other flags name.
    pub(crate) fn at_home(talk: &TalkFlags) -> Self {
        let TeamFlags { agents, config, .. } = talk.team.clone();
        let served = ServedFlags { solo: talk.solo, agents, config };
        Self { host: "127.0.0.1".to_owned(), served, ..Self::default() }
    }
}

fn role(text: &str) -> Result<Role, ValueFault> {
    role_named(text).ok_or_else(|| ValueFault::one_of(text, &ROLES.map(|(role, _)| role.name())))
}
