//! `completion` and `man`: made from the command line's own description.

use clap::CommandFactory;

use crate::args::{self, Cli};
use max_team_workspace::exit::{CliError, Exit};

pub(crate) fn completion(shell: clap_complete::Shell) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "max-team", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man() -> Result<(), CliError> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(args::documented()).render(&mut page);
    rendered.map_err(|error| CliError::new(Exit::Failed, format!("the manual page cannot be made: {error}")))?;
    super::print(&String::from_utf8_lossy(&page))
}
