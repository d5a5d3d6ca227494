//! `max-team`: arguments, settings, frontends and commands over one `TeamHandle`.
//!
//! Start-up does only what the command needs: `--version` and `--help` touch nothing; talking reads the settings,
//! opens the journal and prepares the connection side by side, and calls no model before the user has spoken.

mod args;
mod commands;
mod converse;
mod crash;
mod demo;
mod flags;
mod headless;
mod recordings;
mod signals;
mod stdin;
mod stream_json;

use std::process::ExitCode;

use clap::error::ErrorKind;
use max_team_runtime::RuntimeError;
use max_team_tools::document;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{AppEnv, DOCUMENT_READER};

use args::{Cli, Command};

/// Every answer is taken apart into small pieces that soon go again, a thousand agents at once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Files that must be allowed to be open at once: the journal's, a runtime's, a connection's.
const FILES_MIN: u64 = 32;

fn code(exit: Exit) -> ExitCode {
    ExitCode::from(exit as u8)
}

fn main() -> ExitCode {
    // Before anything else: a supervisor of a command is this program, too.
    if let Some(status) = max_team_tools::command::child() {
        return status.into();
    }
    max_team_sandbox::prefer(std::env::var_os(max_team_sandbox::ENGINE).as_deref());
    crash::contain();
    if std::env::args_os().nth(1).is_some_and(|word| word == DOCUMENT_READER) {
        max_team_sandbox::close_inherited();
        // The parent reads only the answer, so errors are not printed.
        return code(if document::serve().is_ok() { Exit::Ok } else { Exit::Failed });
    }
    let cli = match args::parse(|| spoken(args::wished(words()))) {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            let spoken = || spoken(args::wished(words()));
            if let Some(name) = args::reserved(words()).filter(|_| exit == Exit::Usage) {
                headless::talk(&spoken().reserved(name));
                return code(exit);
            }
            let meant = args::meant(words()).filter(|_| exit == Exit::Usage);
            match exit == Exit::Usage && spoken() == Lang::Zh {
                // The parser takes a misspelt command for a prompt and reports a conflict; the command is what is wrong.
                _ if meant.is_some() && error.kind() == ErrorKind::ArgumentConflict => {
                    headless::talk(&spoken().no_such_command(args::first_word()));
                }
                true => headless::talk(&args::chinese::usage_error(&error)),
                // If this fails, there is no other place to report it.
                false => drop(error.print()),
            }
            if exit == Exit::Usage && args::wants_json(words()) {
                print_failure(exit, error.to_string().trim_end().to_owned());
            }
            if let Some(meant) = meant {
                headless::talk(&spoken().did_you_mean(&meant));
            } else if let Some(prompt) = args::unquoted(words()).filter(|_| exit == Exit::Usage) {
                headless::talk(&spoken().quote_the_prompt(&prompt));
            } else if exit == Exit::Usage && args::is_about_settings(words()) {
                let file = AppEnv::here(headless::talk).map(|place| place.home.join("config.yaml"));
                let file = file.map(|file| file.display().to_string());
                headless::talk(&spoken().settings_edited(file.unwrap_or_default()));
            }
            return code(exit);
        }
    };
    let lang = cli.talk.lang.clone();
    let wants_json = args::wants_json(words());
    match run(cli) {
        Ok(exit) => code(exit),
        // The reader of the output is gone, so nothing is printed.
        Err(error) if error.downcast_ref::<std::io::Error>().is_some_and(is_broken_pipe) => code(Exit::Failed),
        Err(error) => {
            headless::talk(&told(&error, spoken(lang)));
            if wants_json {
                print_failure(exit_of(&error), error.to_string());
            }
            code(exit_of(&error))
        }
    }
}

/// A program that parses the output finds a failure there, too.
fn print_failure(exit: Exit, error: String) {
    let verdict = headless::RunVerdict::of_error(exit, error);
    // If the reader is gone, nothing is lost.
    drop(commands::print(&format!("{}\n", stream_json::RunResult::early(&verdict).json())));
}

fn is_broken_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

/// The arguments as readable text, also if they are not UTF-8.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// The language of the interface.
fn spoken(wished: Option<String>) -> Lang {
    AppEnv::here(headless::talk).map_or(Lang::En, |place| place.speaking(wished).speaks())
}

/// The failure in the language of the interface, as far as it has words in it.
fn told(error: &anyhow::Error, lang: Lang) -> String {
    match (error.downcast_ref::<CliError>(), error.downcast_ref::<RuntimeError>()) {
        (Some(stop), _) => stop.words(lang).to_owned(),
        (_, Some(failure)) => lang.runtime_failure(failure),
        _ => error.to_string(),
    }
}

fn exit_of(error: &anyhow::Error) -> Exit {
    match (error.downcast_ref::<CliError>(), error.downcast_ref::<RuntimeError>()) {
        (Some(stop), _) => stop.exit,
        (
            _,
            Some(RuntimeError::Schema { .. } | RuntimeError::Elsewhere { .. } | RuntimeError::NothingToContinue(_)),
        ) => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// Below that some of what we stand on does not fail but panics.
fn check_files() -> Result<(), CliError> {
    match rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        Some(most) if most < FILES_MIN => Err(CliError::said(Exit::Failed, |lang| lang.few_files(most, FILES_MIN))),
        _ => Ok(()),
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    check_files()?;
    let Cli { command, talk: words } = cli;
    let here = || {
        let place = AppEnv::here(headless::talk)?.speaking(words.lang.clone());
        place.check_names().map(|()| place)
    };
    match command {
        Some(Command::Completion { shell }) => commands::man::completion(shell)?,
        Some(Command::Man) => commands::man::man()?,
        Some(Command::Config(command)) => commands::config::run(&here()?, &command)?,
        Some(Command::Agents(command)) => return commands::agents::run(&here()?, command),
        Some(Command::Tools(command)) => commands::tools::run(&here()?, &command)?,
        Some(Command::Sessions(command)) => return commands::sessions::run(&here()?, &command),
        Some(Command::Inbox(options)) => return commands::inbox::run(&here()?, &options),
        Some(Command::Approve(options)) => return commands::answer::approve(&here()?, &options),
        Some(Command::Deny(options)) => return commands::answer::deny(&here()?, &options),
        Some(Command::Stop(options)) => return commands::stop::run(&here()?, &options),
        Some(Command::Ps(options)) => return commands::ps::run(&here()?, &options),
        Some(Command::Events(options)) => return commands::stream::events(&here()?, &options),
        Some(Command::Logs(options)) => return commands::stream::logs(&here()?, &options),
        Some(Command::Attach(options)) => return commands::stream::logs(&here()?, &options.into()),
        Some(Command::Team(command)) => return commands::team::run(&here()?, command),
        Some(Command::Mail(command)) => return commands::mail::run(&here()?, &command),
        Some(Command::Send(options)) => return commands::mail::send(&here()?, &options),
        Some(Command::Plans(command)) => return commands::plans::run(&here()?, &command),
        Some(Command::Trace(options)) => return commands::trace::run(&here()?, &options),
        Some(Command::Replay(options)) => return commands::replay::run(&here()?, &options),
        Some(Command::Rewind(options)) => return commands::rewind::run(&here()?, &options),
        Some(Command::Fork(options)) => return converse::fork(&here()?, &options),
        Some(Command::Compare(options)) => return commands::compare::run(&here()?, &options),
        Some(Command::Cost(options)) => return commands::cost::run(&here()?, &options),
        Some(Command::Worktrees(command)) => return commands::worktrees::run(&here()?, &command),
        Some(Command::Audit(command)) => return commands::audit::run(&here()?, &command),
        Some(Command::Backup(options)) => return commands::backup::backup(&here()?, &options),
        Some(Command::Restore(options)) => return commands::backup::restore(&here()?, &options),
        Some(Command::Export(options)) => return commands::audit::export(&here()?, &options),
        Some(Command::Skills(command)) => return commands::skills::run(&here()?, command),
        Some(Command::Memory(command)) => return commands::memory::run(&here()?, &command),
        Some(Command::Tasks(command)) => return commands::tasks::run(&here()?, command),
        Some(Command::Cache(command)) => return commands::cache::run(&here()?, &command),
        Some(Command::Files(command)) => return commands::files::run(&here()?, &command),
        Some(Command::Fetch(options)) => return commands::fetch::run(&here()?, &options),
        Some(Command::Permissions(command)) => return commands::permissions::run(&here()?, &command),
        Some(Command::Mcp(command)) => return commands::mcp::run(&here()?, command),
        Some(Command::Models(options)) => return commands::models::run(&here()?, &options),
        Some(Command::Doctor(options)) => return commands::doctor::run(&here()?, &options),
        Some(Command::Demo(options)) => return converse::demo(&here()?, &options),
        Some(Command::Serve(command)) => return commands::serve::run(&here()?, *command),
        Some(Command::Plan { goal, output, force, record, team }) => {
            let options = commands::plan::PlanOptions { output, force, record, flags: team };
            return commands::plan::plan(&here()?, goal, options);
        }
        Some(Command::Run { file, dry_run, full, yes, output_format, record, team }) => {
            let options = commands::plan::RunOptions { dry_run, full, yes, format: output_format, record, flags: team };
            return commands::plan::run(&here()?, &file, options);
        }
        None => return converse::run(&here()?, words.clone()),
    }
    Ok(Exit::Ok)
}
