//! The command line of teammates and their mail.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use max_team_core::policy::Mode;
use max_team_runtime::Fate;

use super::mode;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Mail {
    /// List letters, in the order they were written: who to whom, what became of it
    #[command(after_help = "Example:\n  max-team mail list --agent alice --state dead")]
    List {
        /// The session: its id, or its beginning or end; the one last used here without it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Only what somebody wrote or was written
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Only in this state: queued (nobody runs the session), delivered, read (in a turn), acted (the turn is over), dead
        /// (it came back), refused, withdrawn (taken back before anybody read it)
        #[arg(long, value_name = "STATE", value_parser = Fate::NAMES, hide_possible_values = true)]
        state: Option<String>,
        /// Also what only keeps the team going: who rests, who asks, who ends
        #[arg(long)]
        all: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one letter whole
    #[command(after_help = "Example:\n  max-team mail show 1f2e3d4c")]
    Show {
        /// The letter: its id, or its beginning or end
        id: String,
        /// The session it belongs to; the one last used here without it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write to somebody: names, then the words; `team` is everybody
    #[command(after_help = "Example:\n  max-team mail send alice bob \"the port is 8080\"")]
    Send {
        /// Names, and what to say last
        #[arg(required = true, num_args = 2.., value_names = ["NAME", "TEXT"])]
        words: Vec<String>,
        /// The session; one that has these names without it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  max-team send alice \"use tabs\"\n  max-team send max \"how far are you?\"\n\n\
    Whoever is at work is told at its next step, or when its next turn begins if it takes no further one; whoever rests is woken; if \
    nobody runs the session, it waits.")]
pub(crate) struct Send {
    /// A teammate, the lead, somebody who was called before, or `team`
    pub(crate) name: String,
    /// What to say
    pub(crate) text: String,
    /// The session; one that has this name without it
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Team {
    /// Who is on the team of a session, what they do, and why somebody does nothing
    #[command(after_help = "Example:\n  max-team team show --json | jq '.members[] | select(.isActive) | .name'")]
    Show {
        /// The session; the one last used here without it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Ask teammates to end, once their work and their mail are done; one that is at work can say no (exit 5 if
    /// it does within five seconds)
    #[command(after_help = "Example:\n  max-team team shutdown alice --now")]
    Shutdown {
        /// Names; `team` is everybody
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// At once, without asking: what runs is stopped
        #[arg(long)]
        now: bool,
        /// The session; one that has these names without it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Let a teammate work in another mode; nobody is freer than the session is
    #[command(after_help = "Example:\n  max-team team mode alice plan")]
    Mode {
        /// Who; `team` is everybody
        name: String,
        /// default, acceptEdits, plan, auto, dontAsk or bypassPermissions
        #[arg(value_parser = mode)]
        mode: Mode,
        /// The session; one that has this name without it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Teams that are written down: .max-team/teams of this project, and your own
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the team of a session down, to be loaded again
    #[command(after_help = "Example:\n  max-team team save reviewers --user")]
    Save {
        /// What it is called
        name: String,
        /// The session; the one last used here without it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// In your own folder instead of .max-team/teams, for all projects
        #[arg(long)]
        user: bool,
        /// Replace the file if there is one
        #[arg(long)]
        force: bool,
    },
    /// Let the teammates of a written team begin: in a session that is there, or in a new chat; without a terminal until all rest
    #[command(after_help = "Examples:\n  max-team team load reviewers \"review the last commit\"\n  \
        max-team team load reviewers --session 1f2e3d4c")]
    Load {
        /// Its name, or a file
        name: String,
        /// What to say to the lead then
        prompt: Option<String>,
        /// A session that is there, whoever runs it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Write the team of a session as files that other programs read
    #[command(
        after_help = "Example:\n  max-team team export --claude ./out   writes ./out/teams/NAME/config.json and inboxes"
    )]
    Export {
        /// The folder that stands for ~/.claude
        #[arg(long, value_name = "DIR")]
        claude: PathBuf,
        /// The session; the one last used here without it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}
