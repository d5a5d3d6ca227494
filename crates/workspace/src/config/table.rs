//! Every setting, once.
//!
//! A line of the table below gives a key its place, type, shape, default and one sentence; from it come the struct that
//! the program reads, the check of every file and flag, and the page that `config explain` prints. To add a key,
//! add a line here and document it in `config/config.yaml`: a test compares the two, and `tests/it/manual/generated.rs` writes the
//! tables of the manual from it.

use std::path::PathBuf;
use std::time::Duration;

use max_team_core::{limits, policy};
use secrecy::SecretString;
use serde_json::Value as Json;

use super::choice::{Color, Durability, ExtractWhen, Frontend, Language, Level, WhileBusy};
use super::layers::Values;
use super::shape::{
    Command, Count, Hosts, Location, Maybe, OneOf, Port, ProfileNames, Secret, Shape, Switch, Text, Tree, Url, Usd,
};
use super::time::Time;
use super::yaml::Node;
use crate::i18n::Translated;

/// What the program knows about one key before it has read anything.
pub(super) struct ConfigKey {
    /// `section.name`.
    pub(super) path: &'static str,
    pub(super) doc: &'static str,
    /// Whether its value must never be shown.
    pub(super) secret: bool,
    /// Shows a value, or says what was wanted.
    pub(super) check: fn(&Node) -> Result<String, Translated>,
    /// Shows the default.
    pub(super) default: fn() -> String,
}

impl ConfigKey {
    /// The key itself, without its section.
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }

    /// The part before the dot; empty for a key at the top.
    pub(super) fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }
}

/// All keys in the order of the table.
pub(super) fn keys() -> impl Iterator<Item = &'static ConfigKey> {
    KEYS.iter().chain(std::iter::once(&CATALOG))
}

/// The key with this path.
pub(super) fn key(path: &str) -> Option<&'static ConfigKey> {
    keys().find(|key| key.path == path)
}

/// The key with this name in this section; the section is empty for a key at the top.
pub(super) fn find(section: &str, name: &str) -> Option<&'static ConfigKey> {
    // The name that other programs use.
    let name = if (section, name) == ("tools", "mcpServers") { "mcp_servers" } else { name };
    keys().find(|key| key.section() == section && key.name() == name)
}

fn check<S: Shape>(node: &Node) -> Result<String, Translated> {
    S::read(node).map(|value| S::show(&value)).ok_or_else(|| Translated::new(S::wanted))
}

/// The one key that is no section: rows for the catalogue of providers and models, checked where they are used.
static CATALOG: ConfigKey = ConfigKey {
    path: "catalog",
    doc: "Providers and models of your own, added to the built-in catalogue.",
    secret: false,
    check: check::<Tree>,
    default: || "{}".to_owned(),
};

pub(super) fn catalog(values: &Values) -> Json {
    values.get::<Tree>(CATALOG.path).unwrap_or_else(|| Json::Object(serde_json::Map::new()))
}

macro_rules! table {
    ($(
        $(#[doc = $about:literal])+
        $section:ident: $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident: $type:ty as $shape:ty = $default:expr; )+
        }
    )+) => {
        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone)]
            pub struct $name {
                $( $(#[doc = $doc])+ pub $field: $type, )+
            }

            impl $name {
                /// The values that were set, and the defaults for the rest.
                pub(super) fn new(values: &Values) -> Self {
                    Self {
                        $( $field: values
                            .get::<$shape>(concat!(stringify!($section), ".", stringify!($field)))
                            .unwrap_or_else(|| $default), )+
                    }
                }
            }
        )+

        /// The names before the dot.
        pub(super) static SECTIONS: &[&str] = &[$( stringify!($section) ),+];

        static KEYS: &[ConfigKey] = &[$($(
            ConfigKey {
                path: concat!(stringify!($section), ".", stringify!($field)),
                doc: concat!($($doc),+),
                secret: <$shape as Shape>::SECRET,
                check: check::<$shape>,
                default: || <$shape as Shape>::show(&$default),
            },
        )+)+];
    };
}

table! {
    /// The web page.
    server: Server {
        /// Port of the web page; 0 lets the system choose.
        port: u16 as Port = 8080;
        /// What opens without a command: the terminal or the web page.
        mode: Frontend as OneOf<Frontend> = Frontend::Cli;
        /// Address under which browsers reach the web page through a proxy; null if they reach it directly.
        public_url: Option<String> as Maybe<Url> = None;
    }

    /// The model and the way to it.
    llm: Llm {
        /// Whose models to use; null takes the first provider that a key is found for.
        provider: Option<String> as Maybe<Text> = None;
        /// The key itself; null looks for the provider's own variable, such as ANTHROPIC_API_KEY.
        api_key: Option<SecretString> as Maybe<Secret> = None;
        /// A file that holds the key and nothing else.
        api_key_file: Option<PathBuf> as Maybe<Location> = None;
        /// A program that prints the key, with its arguments.
        api_key_helper: Option<Vec<String>> as Maybe<Command> = None;
        /// Address of the provider or of a proxy; null takes the provider's own.
        base_url: Option<String> as Maybe<Url> = None;
        /// The model of every agent that names none; null takes the provider's default.
        default_model: Option<String> as Maybe<Text> = None;
        /// The model to use when the first one is overloaded; null waits instead.
        fallback_model: Option<String> as Maybe<Text> = None;
        /// How often a failed request is sent again (0 to 20).
        max_retries: u32 as Count<0, 20> = limits::RETRIES_MAX_DEFAULT;
        /// How long to wait for the model before a request counts as failed.
        timeout: Duration as Time = Duration::from_secs(120);
        /// Longest time without new content in an answer, also if keep-alive bytes arrive; at least `timeout`.
        progress_timeout: Duration as Time = Duration::from_millis(limits::PROGRESS_MS_DEFAULT);
        /// The longest answer, in tokens; null takes the model's own limit.
        max_tokens: Option<u32> as Maybe<Count<1, 1_000_000>> = None;
        /// Thinking tokens of one answer; 0 turns thinking off.
        thinking_tokens: u32 as Count<0, 1_000_000> = 0;
        /// Requests per minute, all agents together; null sets no limit of its own.
        requests_per_minute: Option<u32> as Maybe<Count<1, 100_000>> = None;
    }

    /// The file that auditors read.
    audit: Audit {
        /// Whether the audit file is written; the journal is kept either way.
        enabled: bool as Switch = true;
        /// Where it is written, one JSON object per line; below the project if you set it, else below ~/.max-team.
        output: PathBuf as Location = "logs/audit.jsonl".into();
        /// The least important events that are written.
        level: Level as OneOf<Level> = Level::Info;
    }

    /// The folder that is worked on.
    project: Project {
        /// The project's folder.
        root: PathBuf as Location = ".".into();
        /// Whether agents stay in the project: commands in a sandbox, file tools inside. Only you can turn it off.
        sandbox: bool as Switch = true;
    }

    /// What survives a crash.
    journal: Journal {
        /// `normal` syncs the disk before anything leaves the program; `full` syncs at every step.
        sync: Durability as OneOf<Durability> = Durability::Normal;
        /// Days without activity after which a session is erased; null keeps everything.
        keep_days: Option<u32> as Maybe<Count<1, 36_500>> = None;
    }

    /// Where work stops.
    limits: Limits {
        /// Model calls in one turn.
        rounds: u32 as Count<1, 1_000> = limits::ROUNDS_MAX_DEFAULT;
        /// Dollars that one session may cost; null sets no limit.
        budget_usd: Option<f64> as Maybe<Usd> = None;
        /// Percent of the model's window at which older messages are summarised; 0: only when you ask (`/compact`).
        compact_at: u32 as Count<0, 90> = 80;
    }

    /// Who works, and how.
    team: Team {
        /// Whether the lead only coordinates: it calls other agents, writes to them and asks you, and does nothing else.
        coordinator: bool as Switch = false;
        /// How deep calls go: 1 means that a called agent calls no other, 0 turns calling off.
        call_depth: u32 as Count<0, 2> = limits::CALL_DEPTH_DEFAULT;
    }

    /// What agents may do unasked.
    permissions: Permissions {
        /// The permission mode: what agents may do without a question.
        mode: policy::Mode as OneOf<policy::Mode> = policy::Mode::Default;
    }

    /// What is remembered.
    memory: Memory {
        /// Whether memory is used in prompts; `max-team memory why` shows which facts were.
        recall: bool as Switch = true;
        /// Whether what you say about yourself is remembered: in chats (`true`), never (`false`), or also with -p (`always`).
        extract: ExtractWhen as OneOf<ExtractWhen> = ExtractWhen::Chat;
        /// Exchanges after which a chat is searched for something to remember, in any case.
        every: u32 as Count<1, 100> = limits::MEMORY_EXCHANGES_MAX;
        /// The model that searches; null takes the session's. A small one is enough.
        model: Option<String> as Maybe<Text> = None;
    }

    /// What tools may ask beyond the project.
    tools: Tools {
        /// Address of Loki, for `query_log`; null means there is none.
        loki_url: Option<String> as Maybe<Url> = None;
        /// Address of Prometheus, for `query_metrics`; null means there is none.
        prometheus_url: Option<String> as Maybe<Url> = None;
        /// Address of a service like Open-Meteo's, for `geocode`; null takes Open-Meteo's own, which needs no key.
        geocode_url: Option<String> as Maybe<Url> = None;
        /// The service that `web_search` asks; without `provider` the one whose key is set, else DuckDuckGo.
        web_search: Json as Tree = Json::Object(serde_json::Map::new());
        /// Hosts on this machine or in a private network that agents may read without a question; with a port, only that port.
        private_hosts: Vec<String> as Hosts = Vec::new();
        /// Chromium, for `browser`; null takes the first in PATH.
        browser_path: Option<String> as Maybe<Text> = None;
        /// Profiles that `browser` may use: each keeps its sign-ins, in the home folder.
        browser_profiles: Vec<String> as ProfileNames = Vec::new();
        /// MCP servers for all projects, by name; `mcpServers` is the same key.
        mcp_servers: Json as Tree = Json::Object(serde_json::Map::new());
        /// Tools of MCP servers that requests describe; of more, those that fit the message, and `tool_search` finds the others.
        mcp_tools_shown: u32 as Count<0, 1_000> = limits::SOURCE_TOOLS_SHOWN;
    }

    /// What keys do.
    keys: Keys {
        /// What Enter does while a turn runs: send to its next step, wait until it is over, or interrupt it and send.
        enter_while_busy: WhileBusy as OneOf<WhileBusy> = WhileBusy::Steer;
    }

    /// The interface of the chat.
    ui: Ui {
        /// The language of the interface; `auto` follows the system.
        language: Language as OneOf<Language> = Language::Auto;
        /// When to use colour; `auto` means on a terminal, and obeys NO_COLOR.
        color: Color as OneOf<Color> = Color::Auto;
    }
}
