//! The command line. Spelling follows what people already type elsewhere where the meaning is the same.
//!
//! This module only describes and parses; what a flag means is decided where its value is used. No flag takes a
//! key: keys come from the environment, a private file or a helper command.

mod agents;
mod cache;
pub(crate) mod chinese;
mod examples;
mod fetch;
mod files;
mod groups;
mod journal_cmds;
mod maintenance;
mod mcp;
pub(crate) mod mcp_client;
mod memory;
mod models;
mod permissions;
mod replay;
mod reserved;
mod rewind;
mod serve;
mod skills;
mod stream;
mod tasks;
mod team;
mod value_fault;
mod worktrees;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use max_team_core::plan::event::ApprovalMode;
use max_team_core::policy::Mode;
use max_team_core::suggest::nearest;
use max_team_workspace::i18n::Lang;

use crate::demo::NAMES;
use max_team_workspace::selection::Selection;

pub(crate) use agents::{Agents, TryAgent};
pub(crate) use cache::Cache;
pub(crate) use fetch::{Fetch, Render};
pub(crate) use files::{Files, FolderOwner};
pub(crate) use journal_cmds::{Approve, Cost, Deny, Inbox, Plans, Ps, Stop, Trace};
pub(crate) use maintenance::{Audit, AuditScope, Backup, Export, Forget, Restore, Sessions};
pub(crate) use mcp::{Mcp, ServeMcp};
pub(crate) use memory::{Board, Memory, OwnFolder};
pub(crate) use models::Models;
pub(crate) use permissions::{ExplainVerdict, Permissions};
pub(crate) use replay::{Compare, Fork, Replay};
pub(crate) use reserved::{find as find_reserved, reserved};
pub(crate) use rewind::Rewind;
pub(crate) use serve::{Serve, ServeCommand, ServeOptions, ServeToken, ServerChoice};
pub(crate) use skills::{RunSkill, Skills};
pub(crate) use stream::{Attach, Events, Logs, Reading};
pub(crate) use tasks::{TaskListScope, Tasks, Update};
pub(crate) use team::{Mail, Send, Team};
use value_fault::ValueFault;
pub(crate) use worktrees::Worktrees;

/// Talk to Max, a team of AI agents behind one lead. Without a prompt this opens a chat.
#[derive(Debug, Parser)]
#[command(name = "max-team", version, about, max_term_width = 100, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "No key yet? `max-team demo` shows the team at work; `max-team demo --list` lists more demos.\n\
Exit codes: 0 ok, 1 failed, 2 usage, 3 config, 4 no key, 5 denied or needs approval,\n\
6 budget used up, 7 another limit reached (model calls, output, time), 8 partly done,\n\
130 interrupted (Ctrl-C or `max-team stop`), 143 terminated (SIGTERM)."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) talk: TalkFlags,
}

/// What was given on the command line. Only help asks for the language.
pub(crate) fn parse(lang: impl FnOnce() -> Lang) -> Result<Cli, clap::Error> {
    let (chosen, words) = without_lang(std::env::args_os());
    let words = spelled_out(command_first(words));
    let mut cli = match Cli::try_parse_from(words.clone()) {
        Err(help) if is_help(help.kind()) => {
            Cli::from_arg_matches(&groups::grouped(lang()).try_get_matches_from(words)?)?
        }
        parsed => parsed?,
    };
    cli.talk.lang = cli.talk.lang.or(chosen);
    Ok(cli)
}

/// The first word after the program's name, apart from the language.
pub(crate) fn first_word() -> String {
    let (_, words) = without_lang(std::env::args_os());
    words.get(1).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Removes a valid `--lang`, which the parser would take for an argument of the chat. It stays behind `--` and in a command whose last
/// argument takes the words of another program; an invalid one stays for the parser to report.
fn without_lang(words: impl Iterator<Item = OsString>) -> (Option<String>, Vec<OsString>) {
    let (mut chosen, mut left, mut is_over) = (None, Vec::new(), false);
    let (root, mut words) = (Cli::command(), words.peekable());
    let mut command = &root;
    while let Some(word) = words.next() {
        command = command.find_subcommand(&word).unwrap_or(command);
        is_over |= word == "--" || command.get_arguments().any(clap::Arg::is_trailing_var_arg_set);
        let text = word.to_str().filter(|_| !is_over).unwrap_or_default();
        let after = |word: &OsString| word.to_str().filter(|name| LANGS.contains(name)).map(str::to_owned);
        let name = match text.strip_prefix("--lang=") {
            Some(name) => after(&OsString::from(name)),
            None if text == "--lang" => words.next_if(|next| after(next).is_some()).as_ref().and_then(after),
            None => None,
        };
        match name {
            Some(name) => chosen = Some(name),
            None => left.push(word),
        }
    }
    (chosen, left)
}

/// Whether the parser answers with help: asked for, or because a command such as `memory` was left without its subcommand.
fn is_help(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// The command line with the examples of all commands.
pub(crate) fn documented() -> clap::Command {
    examples::with_examples(Cli::command(), Lang::En)
}

/// The same with the name of a command before the flags of that command that stand in front of it (`--base-url URL run FILE`): the
/// parser takes flags in front of a command for those of a chat.
fn command_first(mut words: Vec<OsString>) -> Vec<OsString> {
    let command = Cli::command();
    let text = |index: usize| words.get(index).and_then(|word| word.to_str()).unwrap_or_default();
    let (mut at, mut flags) = (1, Vec::new());
    while let Some(flag) = text(at).strip_prefix("--") {
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let Some(known) = command.get_arguments().find(|known| known.get_long() == Some(name)) else { return words };
        at += if value.is_none() && known.get_action().takes_values() { 2 } else { 1 };
        flags.push(name.to_owned());
    }
    if text(at) == HELP && flags.iter().all(|flag| flag == "no-color") {
        return help_alone(words.split_off(at));
    }
    let Some(found) = command.find_subcommand(text(at)).filter(|_| at > 1) else { return words };
    let has = |flag: &String| found.get_arguments().any(|known| known.get_long() == Some(flag.as_str()));
    if flags.iter().all(has) {
        let name = words.remove(at);
        words.insert(1, name);
    }
    words
}

/// `help` and the names of commands behind it, without flags: the parser takes names only.
fn help_alone(asked: Vec<OsString>) -> Vec<OsString> {
    let names = asked.into_iter().filter(|word| !matches!(word.to_str(), Some("--no-color" | "--help" | "-h")));
    std::iter::once(OsString::from("max-team")).chain(names).collect()
}

/// The same with the prompt that `-p` was left without before another flag (`-p --output-format json`): what begins with a dash
/// may well be a prompt, what is a flag of ours is none.
fn spelled_out(mut words: Vec<OsString>) -> Vec<OsString> {
    let text = |word: &OsString| word.to_str().map(str::to_owned).unwrap_or_default();
    let prompt = words.iter().position(|word| word == "-p" || word == "--print").map(|index| index + 1);
    let (Some(prompt), Some(first)) = (prompt, words.get(1).map(text)) else { return words };
    let next = words.get(prompt).map(text).unwrap_or_default();
    let name = next.strip_prefix("--").map(|name| name.split('=').next().unwrap_or_default());
    // Commands have their own flags.
    let Some(name) = name.filter(|_| first.starts_with('-')) else { return words };
    if Cli::command().get_arguments().any(|known| known.get_long() == Some(name)) {
        words.insert(prompt, OsString::new());
    }
    words
}

/// The language that is wished for in words that cannot be understood as a whole.
pub(crate) fn wished(words: impl Iterator<Item = String>) -> Option<String> {
    let mut words = words.skip_while(|word| word != "--lang" && !word.starts_with("--lang="));
    let flag = words.next()?;
    flag.strip_prefix("--lang=").map(str::to_owned).or_else(|| words.next())
}

/// Whether a result object is asked for, also in words that cannot be understood as a whole.
pub(crate) fn wants_json(words: impl Iterator<Item = String>) -> bool {
    const FLAG: &str = "--output-format";
    let mut words = words.skip_while(|word| !word.starts_with(FLAG));
    let flag = words.next().unwrap_or_default();
    let format = flag.strip_prefix(FLAG).and_then(|value| value.strip_prefix('=')).map(str::to_owned);
    matches!(format.or_else(|| words.next()).as_deref(), Some("json" | "stream-json"))
}

/// Whether the command is `config`, which shows settings and changes none.
pub(crate) fn is_about_settings(mut words: impl Iterator<Item = String>) -> bool {
    words.find(|word| !word.starts_with("--lang")).is_some_and(|word| word == "config")
}

/// The parser's own command.
const HELP: &str = "help";
/// The languages of the interface; `auto` is that of the system.
const LANGS: [&str; 3] = ["auto", "en", "zh"];

/// The command that was probably meant, if one of the first words is nearly one.
pub(crate) fn meant(mut words: impl Iterator<Item = String>) -> Option<String> {
    let mut command = Cli::command();
    let mut path: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        // The language is no part of the name.
        if word == "--lang" {
            words.next();
        }
        if word.starts_with("--lang") || word == HELP {
            continue;
        }
        if word.starts_with('-') {
            return None;
        }
        if let Some(inner) = command.find_subcommand(&word).cloned() {
            path.push(word);
            command = inner;
            continue;
        }
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        path.push(nearest(&word, names)?.to_owned());
        return Some(path.join(" "));
    }
    None
}

/// A prompt that was written without quotes: several words in front of any flag, the first of which is no command.
pub(crate) fn unquoted(words: impl Iterator<Item = String>) -> Option<String> {
    let prompt: Vec<String> = words.take_while(|word| !word.starts_with('-')).collect();
    let is_command =
        prompt.first().is_none_or(|first| first == HELP || Cli::command().find_subcommand(first).is_some());
    (prompt.len() > 1 && !is_command).then(|| prompt.join(" "))
}

/// What a run without a chat reads and prints.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Formats {
    /// How to print the answer of -p
    #[arg(long, value_enum, default_value_t = Format::Text, requires = "print")]
    pub(crate) output_format: Format,
    /// Choose what -p reads from standard input. text: context for the prompt. stream-json: messages instead of a prompt, one
    /// JSON line each: {"type":"user","message":{"content":"…"}}. A message that comes
    /// during a turn is added to it. The run ends when the input is closed
    #[arg(long, value_enum, default_value_t = Input::Text, requires = "print")]
    pub(crate) input_format: Input,
    /// With --output-format stream-json: also print pieces of answers as they arrive
    #[arg(long, requires = "print")]
    pub(crate) include_partial_messages: bool,
}

/// How to talk: the flags of chat, headless and demo.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TalkFlags {
    /// Start the chat with this message
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Answer one prompt and exit; standard input, if piped, is added as context. `-c -p ""` (an
    /// empty prompt) continues interrupted work
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1, default_missing_value = "", conflicts_with = "prompt", allow_hyphen_values = true)]
    pub(crate) print: Option<String>,
    #[command(flatten)]
    pub(crate) formats: Formats,
    /// Continue the last session of this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Resume a session by its ID, or the first or last characters of it (see `max-team sessions list`)
    #[arg(short = 'r', long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// With -r: bring back older messages that were summarized when the conversation became too long
    #[arg(long, requires = "resume", conflicts_with = "continue_last")]
    pub(crate) before_compaction: bool,
    /// The skill that the agent carries out, in a replayed run.
    #[arg(skip)]
    pub(crate) skill: Option<String>,
    /// Talk to one agent with all tools, without the team
    #[arg(long)]
    pub(crate) solo: bool,
    /// Use this model when the first one fails
    #[arg(long, value_name = "NAME")]
    pub(crate) fallback_model: Option<String>,
    /// Talk to one member of the team
    #[arg(long, value_name = "NAME", conflicts_with = "solo")]
    pub(crate) agent: Option<String>,
    /// The lead may only call agents and ask you: no plans, no skills, no memory
    #[arg(long, conflicts_with_all = ["solo", "agent"])]
    pub(crate) coordinator: bool,
    /// Start with the teammates (agents that stay for the session) of a saved team: its name, or a file; see `max-team team list`
    #[arg(long = "team", value_name = "NAME")]
    pub(crate) teammates: Option<String>,
    /// Call models at most N times in one turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// A JSON Schema (text, or @FILE) that the answer must follow
    #[arg(long, value_name = "SCHEMA", requires = "print")]
    pub(crate) json_schema: Option<String>,
    /// Print without colours
    #[arg(long)]
    pub(crate) no_color: bool,
    /// Choose the language of the interface; works with every command, before or after its name
    #[arg(long, value_name = "LANG", value_parser = LANGS, global = true)]
    pub(crate) lang: Option<String>,
    /// At the end, write a recording to this file; `max-team replay FILE` plays it on any machine
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Approve plans without a question (`run --yes`)
    #[arg(skip)]
    pub(crate) yes_to_plans: bool,
    #[command(flatten)]
    pub(crate) team: TeamFlags,
}

/// Everything that is not talking.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the team at work without a key: recorded models, real tools
    Demo(Demo),
    /// Start a server: the team in a browser, and over HTTP for programs
    Serve(Box<Serve>),
    /// Let Max write a plan file; no task runs yet
    Plan {
        /// The goal of the plan
        goal: String,
        /// Write the plan to this file (YAML); default: standard output
        #[arg(short = 'o', long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the file if there is one
        #[arg(long, requires = "output")]
        force: bool,
        /// At the end, write a recording to this file; `max-team replay FILE` plays it on any machine
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
        #[command(flatten)]
        team: TeamFlags,
    },
    /// Run a plan file
    Run {
        /// The plan (YAML or JSON)
        file: PathBuf,
        /// Only show the plan: order, owners, checks, instructions, expected cost and time
        #[arg(long)]
        dry_run: bool,
        /// Show all instructions of the tasks, not only three lines of each
        #[arg(long, requires = "dry_run")]
        full: bool,
        /// Approve the plan without a question
        #[arg(long)]
        yes: bool,
        /// Choose the output format
        #[arg(long, value_enum, default_value_t = Format::Text)]
        output_format: Format,
        /// At the end, write a recording to this file; `max-team replay FILE` plays it on any machine
        #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
        record: Option<PathBuf>,
        #[command(flatten)]
        team: TeamFlags,
    },
    /// List questions and plans that wait for your answer
    Inbox(Inbox),
    /// Answer a question, approve a plan, or decide what to do about a failed task
    Approve(Approve),
    /// Say no to a question or a plan, with a reason
    Deny(Deny),
    /// Stop a session or an agent, or give up a plan or a task
    Stop(Stop),
    /// List agents and what they are doing
    Ps(Ps),
    /// Print the events of a session; with `-f` also new ones
    Events(Events),
    /// Print what one agent did, one line per event
    Logs(Logs),
    /// Print what one agent did and does, until Ctrl-C (same as `logs -f`)
    Attach(Attach),
    /// Show a session's team; save and load teams
    #[command(subcommand)]
    Team(Team),
    /// List messages between agents and whether they were read
    #[command(subcommand)]
    Mail(Mail),
    /// Send a message to Max or another agent of a session
    Send(Send),
    /// List and show plans
    #[command(subcommand)]
    Plans(Plans),
    /// Show a session as a tree: calls, tools, tokens, cost, approvals
    Trace(Trace),
    /// Replay a session offline, or compare it with the current configuration (--strict)
    Replay(Box<Replay>),
    /// Continue from any point of a session, in a new session and worktree
    Fork(Box<Fork>),
    /// Restore files to an earlier point of a session; shows the changes first
    Rewind(Rewind),
    /// Compare two sessions: answers, tools, tokens, cost, time
    Compare(Compare),
    /// Show the cost of all sessions by agent, task, model, day or session
    Cost(Cost),
    /// List and show sessions, and forget their content
    #[command(subcommand)]
    Sessions(Sessions),
    /// Show, merge and remove worktrees of agents
    #[command(subcommand)]
    Worktrees(Worktrees),
    /// Show, verify and export the audit trail
    #[command(subcommand)]
    Audit(Audit),
    /// Copy the journal into one verified file, also while the team works
    Backup(Backup),
    /// Replace the journal by a backup; the old journal is kept
    Restore(Restore),
    /// Export the journal, or one session, as JSON lines or HTML (same as `audit export`)
    Export(Export),
    /// Show settings and where they come from
    #[command(
        subcommand,
        after_help = "To change settings, edit ~/.max-team/config.yaml (all projects) or .max-team/config.yaml\n\
                      (this project). `max-team config default` prints every setting: copy the lines that you change."
    )]
    Config(Config),
    /// List, show, create and test agents
    #[command(subcommand)]
    Agents(Agents),
    /// List and describe the tools of agents
    #[command(subcommand)]
    Tools(Tools),
    /// List, check, trust and run skills
    #[command(subcommand)]
    Skills(Skills),
    /// Show, change and export the memory about you and your projects
    #[command(subcommand)]
    Memory(Memory),
    /// Show and change the shared task list of a session
    #[command(subcommand)]
    Tasks(Tasks),
    /// Show and clear cached answers of experts, such as `weather`
    #[command(subcommand)]
    Cache(Cache),
    /// List and read files that agents keep outside the project (@files, @data)
    #[command(subcommand)]
    Files(Files),
    /// Print the text of a web page, as agents read it; needs no key
    Fetch(Fetch),
    /// Show and explain permission rules, and trust those of a project
    #[command(subcommand)]
    Permissions(Permissions),
    /// Add, test and trust MCP servers; serve the team itself over MCP
    #[command(subcommand)]
    Mcp(Mcp),
    /// List models with prices and whether their keys are set
    Models(Models),
    /// Check keys, models, journal and this machine
    Doctor(Doctor),
    /// Print a completion script
    Completion {
        /// Shell to complete commands in
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// The flags of everything that puts agents to work.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TeamFlags {
    /// The model: a name, an alias or provider/name
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The provider, such as anthropic (see `max-team models`)
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// The provider's address; also ANTHROPIC_BASE_URL or OPENAI_BASE_URL
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// A settings file to use instead of the project's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Use the team of this YAML file instead of the project's (config/agents.yaml, .max-team/agents.yaml) or the built-in one.
    /// A Markdown file, a JSON file or JSON text adds agents to the team: '{"reviewer": {"description": "…", "prompt": "…"}}'
    #[arg(long, value_name = "FILE")]
    pub(crate) agents: Option<PathBuf>,
    /// Choose when a plan needs your approval. plan (the default): before it starts, and for changes outside it. each: before it
    /// starts, and for every change. risky: before it starts if it has risks (marked `!`), and for changes outside it. never: as
    /// `risky`, but in the permission mode `default`, changes outside the plan are refused
    #[arg(long, value_name = "WHEN", value_parser = approve)]
    pub(crate) approve: Option<ApprovalMode>,
    /// Run at most this many tasks of a plan at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) max_parallel: Option<u32>,
    /// Report on standard error when a model is silent for some seconds (a terminal always shows this)
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Stop before the session costs more than this
    #[arg(long, value_name = "USD")]
    pub(crate) max_budget_usd: Option<String>,
    /// Choose the permission mode. default: read freely, ask before changes. acceptEdits, auto (the same): change files freely,
    /// ask before commands that do more than read. plan: read only. dontAsk: refuse every action that would ask.
    /// bypassPermissions: ask only before dangerous actions (publishing, acting on other machines), commands that cannot be
    /// analysed, web hosts that no rule names, and actions that an `ask` rule names.
    /// In every mode, changes of protected files ask or are refused, and `deny` rules, constraints (limits in agents'
    /// definitions) and the sandbox apply
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) permission_mode: Option<Mode>,
    /// Rules for actions that run without a question, for example "Bash(git log:*) Edit"
    #[arg(long, value_name = "RULES", alias = "allowedTools")]
    pub(crate) allowed_tools: Vec<String>,
    /// Rules for actions that never run, for example "Bash(git push:*) WebFetch"
    #[arg(long, value_name = "RULES", alias = "disallowedTools")]
    pub(crate) disallowed_tools: Vec<String>,
    /// Domains whose pages are read without a question, with their subdomains, for example docs.rs,rust-lang.org
    #[arg(long, value_name = "DOMAINS", value_delimiter = ',')]
    pub(crate) allowed_domains: Vec<String>,
    /// Use MCP servers from this file or JSON, too
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<String>,
    /// Use no other MCP servers than those of --mcp-config
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,
}

impl TeamFlags {
    /// The rules that `--allowed-domains` stands for.
    fn domain_rules(&self) -> impl Iterator<Item = String> {
        let domains = self.allowed_domains.iter().map(|domain| domain.trim()).filter(|domain| !domain.is_empty());
        domains.flat_map(|domain| [format!("WebFetch(domain:{domain})"), format!("WebFetch(domain:*.{domain})")])
    }

    /// The team and the rules that the flags name.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            agents: self.agents.clone(),
            config: self.config.clone(),
            model_is_named: self.model.is_some(),
            allowed_tools: self.allowed_tools.iter().cloned().chain(self.domain_rules()).collect(),
            disallowed_tools: self.disallowed_tools.clone(),
            mcp_config: self.mcp_config.clone(),
            strict_mcp_config: self.strict_mcp_config,
            approve: self.approve,
            max_parallel: self.max_parallel,
            ..Selection::default()
        }
    }
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Demo {
    /// The demo to play; see --list
    #[arg(value_parser = NAMES, hide_possible_values = true)]
    pub(crate) name: Option<String>,
    /// List the demos
    #[arg(long, conflicts_with = "name")]
    pub(crate) list: bool,
    /// Keep the scratch project (without --yes, a demo in a terminal always keeps it)
    #[arg(long)]
    pub(crate) keep: bool,
    /// Approve everything; needs no terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// At the end, write a recording to this file; `max-team replay FILE` plays it on any machine
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print without colours
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Config {
    /// Show the value of a setting and where it comes from; without KEY, all settings
    Explain {
        /// For example llm.timeout
        key: Option<String>,
        /// A settings file to use instead of the project's own
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Print the annotated default file
    Default,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Tools {
    /// List the tools
    List {
        /// As JSON, with their schemas
        #[arg(long)]
        json: bool,
    },
    /// Describe one tool
    Show {
        /// For example read_file
        name: String,
        /// As JSON, with its schema
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Doctor {
    /// Rebuild task lists, mailboxes and states from the journal if they differ from it
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Also send the model one small request, to find a wrong key, a dead server or a wrong model
    #[arg(long)]
    pub(crate) online: bool,
    /// The model to look at: a name, an alias or provider/name
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The provider to look at
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// The provider's address
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// A file that defines the team
    #[arg(long, value_name = "FILE")]
    pub(crate) agents: Option<PathBuf>,
    /// A settings file to use instead of the project's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// What -p reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Input {
    /// Context for the prompt
    #[default]
    Text,
    /// A JSON line per message
    StreamJson,
}

/// How -p prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Print only the answer, or a plan's report
    #[default]
    Text,
    /// One JSON object at the end
    Json,
    /// A JSON line per event
    StreamJson,
}

impl TalkFlags {
    /// The agent, team and rules that the flags name.
    pub(crate) fn selection(&self) -> Selection {
        let (skill, solo, agent) = (self.skill.clone(), self.solo, self.agent.clone());
        let (coordinator, structured) = (self.coordinator, self.json_schema.is_some());
        Selection { skill, solo, agent, coordinator, structured, ..self.team.selection() }
    }
}

fn approve(text: &str) -> Result<ApprovalMode, ValueFault> {
    let found =
        ApprovalMode::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, approve)| *approve);
    found.ok_or_else(|| {
        let names = ApprovalMode::NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
        ValueFault::new(|lang| lang.value_approval(&names))
    })
}

fn mode(text: &str) -> Result<Mode, ValueFault> {
    let found = Mode::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, mode)| *mode);
    found
        .or((text == "manual").then_some(Mode::Default))
        .ok_or_else(|| ValueFault::one_of(text, &Mode::NAMES.map(|(name, _)| name)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn print_takes_a_prompt_or_none() {
        let parse = |words: &[&str]| {
            let words = spelled_out(words.iter().map(OsString::from).collect());
            Cli::try_parse_from(words).map(|cli| cli.talk.print)
        };
        assert_eq!(parse(&["max-team", "-p", "hi"]).unwrap(), Some("hi".into()));
        assert_eq!(parse(&["max-team", "-c", "-p", ""]).unwrap(), Some(String::new()));
        assert_eq!(parse(&["max-team", "-p"]).unwrap(), Some(String::new()));
        assert_eq!(parse(&["max-team", "-p", "--output-format", "json"]).unwrap(), Some(String::new()));
        assert_eq!(parse(&["max-team", "--solo", "-p", "--input-format=stream-json"]).unwrap(), Some(String::new()));
        assert_eq!(parse(&["max-team", "-p", "--what is this?"]).unwrap(), Some("--what is this?".into()));
        assert!(parse(&["max-team", "fork", "x", "-p", "--output-format", "json"]).is_ok(), "a command's own");
        assert!(parse(&["max-team", "-c", "-r", "x"]).is_err());
    }

    #[test]
    fn the_language_may_stand_anywhere_but_among_the_words_of_another_program() {
        let table: [(&[&str], Option<&str>, &[&str]); 6] = [
            (&["max-team", "serve", "--lang", "zh", "link"], Some("zh"), &["max-team", "serve", "link"]),
            (&["max-team", "--lang=en", "ps"], Some("en"), &["max-team", "ps"]),
            (&["max-team", "-p", "--lang", "zh"], Some("zh"), &["max-team", "-p"]),
            (&["max-team", "--lang", "xx", "ps"], None, &["max-team", "--lang", "xx", "ps"]),
            (
                &["max-team", "mcp", "add", "fs", "node", "--lang", "zh"],
                None,
                &["max-team", "mcp", "add", "fs", "node", "--lang", "zh"],
            ),
            (&["max-team", "run", "--", "--lang=zh"], None, &["max-team", "run", "--", "--lang=zh"]),
        ];
        for (words, chosen, left) in table {
            let (lang, rest) = without_lang(words.iter().map(OsString::from));
            assert_eq!((lang.as_deref(), rest), (chosen, left.iter().map(OsString::from).collect()), "{words:?}");
        }
    }
}
