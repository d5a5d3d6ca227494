//! The connections of one command: admitted by the policy, or by a person while they wait.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use max_team_core::limits::{BLOCKED_HOSTS_MAX, COMMAND_CONNECTIONS_MAX, HOST_QUESTION_MS};
use max_team_core::policy::{Action, Verdict, is_local_host};
use max_team_sandbox::{Activity, CommandOutcome, NetworkDoor, ProxyRequest, ProxyServer, is_public};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::lookup::Lookup;
use super::names;
use super::proxy::{Admission, AdmitFuture, serve, target};
use super::report::{BlockReason, NetworkReport};
use crate::policy_check::PolicyCheck;
use crate::web::is_host_opened;

/// The tool as which connections of commands are judged.
const TOOL: &str = "run_shell";
/// How long a connection waits for an answer.
const PATIENCE: Duration = Duration::from_millis(HOST_QUESTION_MS);
/// How often a connection that waits is counted as activity of its command.
const WAIT_TICK: Duration = Duration::from_secs(1);
/// How long a proxy's look-ups are waited for once its command is over.
const SHUTDOWN: Duration = Duration::ZERO;

/// The rules for the connections of commands.
#[derive(Clone, Default)]
pub struct HostRules {
    /// The rules of the agent.
    policy: PolicyCheck,
    /// Hosts of this machine or of private networks that the settings have opened.
    private: Vec<String>,
    /// Hosts that the command names; each was judged with it.
    named: Vec<String>,
    /// The name of the call, and where it has a person asked; `None`: no person can be asked.
    asks: Option<(String, mpsc::Sender<HostQuestion>)>,
    /// How long a connection waits for an answer, if not as long as usual.
    patience: Option<Duration>,
    pub(crate) lookup: Lookup,
}

impl HostRules {
    /// The rules of an agent, before it runs anything.
    pub fn new(policy: PolicyCheck, private: &[String]) -> Self {
        Self { policy, private: private.to_vec(), ..Self::default() }
    }

    /// The same for a call that has a person asked, by its name.
    #[must_use]
    pub fn asking(self, call: &str, questions: mpsc::Sender<HostQuestion>) -> Self {
        Self { asks: Some((call.to_owned(), questions)), ..self }
    }

    /// Has a person asked about a connection; `None`: no person can be asked.
    pub fn ask(&self, action: Action) -> Option<watch::Receiver<Option<HostAnswer>>> {
        let (_, questions) = self.asks.as_ref()?;
        let (answer, receiver) = watch::channel(None);
        questions.try_send(HostQuestion { action, answer }).ok().map(|()| receiver)
    }

    /// The same for a command that names these hosts, which were judged with it.
    pub(crate) fn naming(self, named: Vec<String>) -> Self {
        Self { named, ..self }
    }

    /// Lets connections wait for an answer for so long, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn waiting(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Finds the addresses of hosts with this function, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn finding(self, find: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self { lookup: Lookup::by(Arc::new(find)), ..self }
    }
}

impl fmt::Debug for HostRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostRules").field("named", &self.named).finish_non_exhaustive()
    }
}

/// A host that a person is asked about.
#[derive(Debug)]
pub struct HostQuestion {
    pub action: Action,
    /// Takes the answer.
    pub answer: watch::Sender<Option<HostAnswer>>,
}

/// What became of a question about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAnswer {
    Allowed,
    /// A person said no.
    Refused,
    /// No person could be asked.
    Unasked,
}

impl HostAnswer {
    /// The answer in a question that has one.
    pub fn of(answered: &Action) -> Self {
        match answered.answer().flatten() {
            Some(_) => Self::Allowed,
            None if answered.is_refused() => Self::Refused,
            None => Self::Unasked,
        }
    }
}

/// The network of one command. Its proxy ends with it.
#[derive(Debug)]
pub(crate) struct CommandNetwork {
    hosts: Arc<CommandHosts>,
    end: CancellationToken,
}

impl Drop for CommandNetwork {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl CommandNetwork {
    /// `command` is how a person is told of the command.
    pub(crate) fn new(rules: HostRules, command: String) -> Self {
        let hosts = CommandHosts {
            rules,
            command,
            activity: Activity::default(),
            questions: Mutex::default(),
            report: Mutex::default(),
        };
        Self { hosts: Arc::new(hosts), end: CancellationToken::new() }
    }

    pub(crate) fn activity(&self) -> Activity {
        self.hosts.activity.clone()
    }

    /// Serves the door of the command on a thread of its own, so that it needs nothing of the thread that waits for the command.
    pub(crate) fn server(&self) -> ProxyServer {
        let (hosts, end) = (Arc::clone(&self.hosts), self.end.clone());
        ProxyServer(Arc::new(move |door: NetworkDoor| {
            let (hosts, end) = (Arc::clone(&hosts), end.clone());
            let thread = thread::Builder::new().name("network of a command".into());
            // If no thread can be started, the command reaches nothing.
            drop(thread.spawn(move || {
                let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
                runtime.block_on(hosts.serve(door, end));
                runtime.shutdown_timeout(SHUTDOWN);
            }));
        }))
    }

    /// What is said about its network at the end of the command.
    pub(crate) fn report(&self, over: Option<&CommandOutcome>) -> Option<String> {
        let questions = lock(&self.hosts.questions);
        let answer = |host: &str| questions.get(host).and_then(|question| *question.answer.borrow());
        lock(&self.hosts.report).told(answer, over.is_some_and(|over| over.bypassed))
    }
}

/// A question that was asked, also if it has its answer.
#[derive(Debug, Clone)]
struct OpenQuestion {
    /// Until then connections wait for the answer. Later ones do not: a program that tries again would wait for minutes.
    until: Instant,
    /// A person's answer; `None` inside: not yet.
    answer: watch::Receiver<Option<HostAnswer>>,
}

/// Admits the connections of one command, and notes those that were refused.
#[derive(Debug)]
struct CommandHosts {
    rules: HostRules,
    command: String,
    activity: Activity,
    /// The questions by what they ask about.
    questions: Mutex<BTreeMap<String, OpenQuestion>>,
    report: Mutex<NetworkReport>,
}

impl Admission for CommandHosts {
    fn admit<'a>(&'a self, request: &'a ProxyRequest, _: Option<SocketAddr>) -> AdmitFuture<'a> {
        Box::pin(self.decide(request))
    }

    fn passes(&self) {
        self.activity.note();
    }
}

impl CommandHosts {
    async fn serve(self: Arc<Self>, door: NetworkDoor, end: CancellationToken) {
        let (hosts, is_over) = (Arc::clone(&self), end.clone());
        if let Some(sockets) = door.names {
            tokio::spawn(async move {
                tokio::select! {
                    () = is_over.cancelled() => {}
                    () = names::serve(sockets, |name| lock(&hosts.report).look_up(name)) => {}
                }
            });
        }
        serve(self, door.proxy, COMMAND_CONNECTIONS_MAX, end).await;
    }

    /// The addresses of a host. A name that no rule or person has allowed is not looked up, because a look-up alone can carry
    /// data away.
    async fn decide(&self, request: &ProxyRequest) -> Result<Vec<SocketAddr>, String> {
        let (host, port) = (request.host.as_str(), request.port);
        let target = target(host, port);
        let is_named = self.rules.named.iter().any(|named| named.eq_ignore_ascii_case(&target));
        if !is_named {
            self.judge(&target, None).await?;
        }
        let found = match self.rules.lookup.addresses(host).await {
            Ok(found) => found,
            Err(error) => {
                // To the program this is a host that is not there, and no refusal.
                self.block(&target, BlockReason::NotFound { error });
                return Ok(Vec::new());
            }
        };
        let is_open = is_host_opened(&self.rules.private, host, Some(port));
        let private: Vec<IpAddr> = found.iter().filter(|address| !is_public(**address)).copied().collect();
        // One private address among public ones is a trap.
        if let Some(address) =
            private.iter().find(|address| !is_local_host(&address.to_string()) || private.len() < found.len())
        {
            return Err(self.block(&target, BlockReason::Address(*address)));
        }
        let address = |address: &IpAddr| (self.rules.lookup.reach)(SocketAddr::new(*address, port));
        match private.first() {
            Some(own) if !is_open && !is_same(host, *own) => {
                self.judge(&target, Some(own_target(*own, port))).await?;
                Ok(vec![address(own)])
            }
            // A port of this machine is opened by itself, also by its number.
            Some(own) if !is_open && !is_named && own.is_loopback() && matches!(port, 80 | 443) => {
                self.judge(&target, Some(own_target(*own, port))).await?;
                Ok(vec![address(own)])
            }
            _ => Ok(found.iter().map(address).collect()),
        }
    }

    async fn judge(&self, target: &str, address: Option<String>) -> Result<(), String> {
        let key = address.as_ref().map_or_else(|| target.to_owned(), |address| format!("{target} at {address}"));
        let call = self.rules.asks.as_ref().map(|(call, _)| call.clone()).unwrap_or_default();
        // The name is allowed already; a rule for the address is enough.
        if let Some(address) = &address
            && self.rules.policy.judge(TOOL, &Action::connection(&*call, address, None, String::new())).verdict
                == Verdict::Allow
        {
            return Ok(());
        }
        let action = Action::connection(call, target, address, self.command.clone());
        let judged = self.rules.policy.judge(TOOL, &action);
        let rules = judged.memory.rules().to_vec();
        match judged.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Deny => Err(self.block(target, BlockReason::Denied { rule: judged.rule })),
            Verdict::Ask => {
                // It is told, too, if the program does not wait for the answer.
                let words = self.block(target, BlockReason::Undecided { key: key.clone(), rules });
                match self.answer(&key, action).await {
                    Some(HostAnswer::Allowed) => {
                        lock(&self.report).allow(target);
                        Ok(())
                    }
                    Some(HostAnswer::Refused) => Err(self.block(target, BlockReason::Refused)),
                    Some(HostAnswer::Unasked) | None => Err(words),
                }
            }
        }
    }

    /// A person's answer, if it comes while the connection waits. Connections to the same host wait for one answer.
    async fn answer(&self, key: &str, action: Action) -> Option<HostAnswer> {
        let OpenQuestion { until, mut answer } = self.ask(key, action)?;
        loop {
            if let Some(answer) = *answer.borrow_and_update() {
                return Some(answer);
            }
            let tick = Instant::now() + WAIT_TICK;
            self.activity.note();
            match timeout_at(tick.min(until), answer.changed()).await {
                Ok(Ok(())) => {}
                // The call is over, and no person will answer.
                Ok(Err(_)) => return *answer.borrow(),
                Err(_) if Instant::now() >= until => return None,
                Err(_) => {}
            }
        }
    }

    fn ask(&self, key: &str, action: Action) -> Option<OpenQuestion> {
        let mut questions = lock(&self.questions);
        if let Some(known) = questions.get(key) {
            return Some(known.clone());
        }
        if questions.len() >= BLOCKED_HOSTS_MAX {
            return None;
        }
        let until = Instant::now() + self.rules.patience.unwrap_or(PATIENCE);
        let question = OpenQuestion { until, answer: self.rules.ask(action)? };
        questions.insert(key.to_owned(), question.clone());
        Some(question)
    }

    /// Notes a refusal, and puts it into words for the program.
    fn block(&self, target: &str, why: BlockReason) -> String {
        let words = why.words(target);
        lock(&self.report).block(target, why);
        words
    }
}

/// Whether the host is this address literally, or `localhost` for a loopback address: no owner of a domain controls it.
fn is_same(host: &str, address: IpAddr) -> bool {
    let is_own_name = host.trim_end_matches('.').eq_ignore_ascii_case("localhost") && address.is_loopback();
    is_own_name || crate::web::bare(host).parse() == Ok(address)
}

/// A private address as a rule names it: a port of this machine always with its number.
fn own_target(address: IpAddr, port: u16) -> String {
    let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
    if address.is_loopback() { format!("{host}:{port}") } else { target(&host, port) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
