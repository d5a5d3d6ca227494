//! `config explain` and `config default`: what a setting is, and where its value comes from.

use crate::args;
use crate::headless;
use max_team_workspace::config::DEFAULT_FILE;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::setup::AppEnv;

pub(crate) fn run(place: &AppEnv, command: &args::Config) -> Result<(), CliError> {
    match command {
        args::Config::Default => super::print(DEFAULT_FILE),
        args::Config::Explain { key, config } => {
            let settings = place.settings(config.as_deref(), Vec::new())?;
            settings.warnings.iter().for_each(|warning| headless::talk(warning));
            let text = settings
                .explain(key.as_deref(), place.lang(&settings))
                .map_err(|error| CliError::said(Exit::Usage, |lang| error.words(lang)))?;
            super::print(&format!("{}\n", text.trim_end()))
        }
    }
}
