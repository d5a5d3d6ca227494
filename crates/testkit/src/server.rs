//! The server: one thread of its own, so that a sync test can block while it answers.
//!
//! Every connection is a task on a current-thread runtime; dropping the server drops the runtime and with it every
//! connection, stalled and gated ones included. Paths: the two dialects' endpoints, `/v1/models`, `/api/tags`, and
//! `/_log` for benches, which is not recorded itself.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::http::{Connection, Request};
use crate::plan::Plan;
use crate::record::Recorded;
use crate::script::Script;
use crate::signal::{Signal, off_thread};
use crate::wire::{Ask, Dialect, model_list, tag_list};

#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    /// Dropped to stop the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What connections share.
#[derive(Debug)]
struct ServerState {
    started: Instant,
    script: Mutex<Script>,
    log: Signal<Log>,
    /// Started by the first delay.
    clock: LazyLock<Clock>,
}

#[derive(Debug, Default)]
struct Log {
    /// How many have arrived; more than `requests` holds once a bench has cleared it.
    arrived: usize,
    /// How many of them have been answered, well or badly.
    answered: usize,
    requests: Vec<Recorded>,
    problems: Vec<String>,
}

impl ModelServer {
    /// Starts on a free port. Takes a [`Script`], or just the replies.
    pub fn start(script: impl Into<Script>) -> ModelServer {
        ModelServer::start_on(0, script)
    }

    pub fn start_on(port: u16, script: impl Into<Script>) -> ModelServer {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("bind the model server");
        let address = listener.local_addr().expect("the model server's address");
        let state = Arc::new(ServerState {
            started: Instant::now(),
            script: Mutex::new(script.into()),
            log: Signal::default(),
            clock: LazyLock::new(Clock::start),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("model-server".into()).spawn({
            let state = state.clone();
            move || run(listener, state, stopped)
        });
        ModelServer { address, state, stop: Some(stop), thread: Some(thread.expect("start the model server")) }
    }

    /// The base URL, without a path: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.log.read(|log| log.requests.clone())
    }

    pub fn count(&self) -> usize {
        self.state.log.read(|log| log.arrived)
    }

    /// What was wrong with the script rather than with the product: requests it had no reply for, faults past the end
    /// of a reply. The client got HTTP 500 for each.
    pub fn problems(&self) -> Vec<String> {
        self.state.log.read(|log| log.problems.clone())
    }

    /// How many replies of the script's list are still to be given.
    pub fn left(&self) -> usize {
        self.state.script.lock().unwrap_or_else(PoisonError::into_inner).left()
    }

    /// Blocks until `count` requests have arrived. In async tests use [`ModelServer::arrived`].
    pub fn wait_requests(&self, count: usize) {
        self.state.wait(count);
    }

    /// Blocks until `count` requests have been answered, so that their times are whole: a client may have its answer
    /// before the server has written that down.
    pub fn wait_answered(&self, count: usize) {
        let story = |log: &Log| format!("{} of {count} requests were answered: {:#?}", log.answered, log.problems);
        self.state.log.wait(|log| log.answered >= count, story);
    }

    pub async fn arrived(&self, count: usize) {
        off_thread(self.state.clone(), move |state| state.wait(count)).await;
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // Its panic, if any, was printed by itself; a second one here would hide the test's own.
            let _ = thread.join();
        }
    }
}

fn run(listener: TcpListener, state: Arc<ServerState>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("the server's runtime");
    runtime.block_on(async {
        listener.set_nonblocking(true).expect("a nonblocking listener");
        let listener = tokio::net::TcpListener::from_std(listener).expect("register the listener");
        let accept = async {
            loop {
                let (stream, _) = listener.accept().await.expect("accept a client");
                // Owned by the runtime, which ends with this function.
                tokio::spawn(state.clone().serve(stream));
            }
        };
        tokio::select! {
            _ = stopped => {}
            () = accept => {}
        }
    });
}

impl ServerState {
    /// One client until it leaves, or until a reply says so. Its leaving early is not our trouble: crash tests kill it.
    async fn serve(self: Arc<ServerState>, stream: TcpStream) {
        let Ok(mut connection) = Connection::new(stream) else { return };
        loop {
            let request = match connection.next().await {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err(message) => {
                    let _ = self.trouble(400, message).deliver(&mut connection, &self.clock).await;
                    return;
                }
            };
            let closes = request.closes();
            let (n, plan) = self.answer(request);
            let delivered = plan.deliver(&mut connection, &self.clock).await;
            if let Some(n) = n {
                self.ended(n, connection.wrote_at);
            }
            if delivered.is_err() || plan.close || closes {
                return;
            }
        }
    }

    /// Records the request and plans its answer.
    fn answer(&self, request: Request) -> (Option<usize>, Plan) {
        match (request.method.as_str(), request.target.as_str()) {
            ("GET", "/_log") => return (None, Plan::json(200, &self.times())),
            ("DELETE", "/_log") => {
                self.log.update(|log| log.requests.clear());
                return (None, Plan::json(200, &json!({})));
            }
            _ => {}
        }
        let arrived = request.arrived;
        if let Some(glanced) = self.glance(&request) {
            return glanced;
        }
        let request = Recorded::new(self.log.read(|log| log.arrived), self.us(arrived), request);
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = if script.lean { request.stub() } else { request.clone() };
        self.log.update(|log| {
            log.arrived += 1;
            log.requests.push(kept);
        });
        let plan = match (request.dialect(), request.method.as_str(), request.route()) {
            (Some(dialect), ..) => self.reply(&mut script, dialect, &request, arrived),
            (None, "GET", "/v1/models") => Plan::json(200, &model_list(&script.models)),
            (None, "GET", "/api/tags") => Plan::json(200, &tag_list(&script.models)),
            (None, method, path) => Plan::error(404, &format!("nothing at {method} {path}")),
        };
        (Some(request.n), plan)
    }

    /// The answer to a request that the script knows by its bytes.
    fn glance(&self, request: &Request) -> Option<(Option<usize>, Plan)> {
        let dialect = Dialect::of(&request.method, &request.target)?;
        let reply = self.script.lock().unwrap_or_else(PoisonError::into_inner).glanced(&request.body)?;
        let (us, label) = (self.us(request.arrived), reply.label.clone());
        let n = self.log.update(|log| {
            log.requests.push(Recorded { label, ..Recorded::glimpse(log.arrived, us, request) });
            log.arrived += 1;
            log.arrived - 1
        });
        let plan = Plan::reply(&reply, &Ask::streamed(dialect, n), request.arrived)
            .unwrap_or_else(|message| self.trouble(500, message));
        Some((Some(n), plan))
    }

    fn reply(&self, script: &mut Script, dialect: Dialect, request: &Recorded, arrived: Instant) -> Plan {
        if request.body.is_null() {
            return self.trouble(400, format!("{}: the body is not JSON", request.line()));
        }
        let Some(reply) = script.reply(request) else {
            return self.trouble(500, format!("{}: the script has no reply left for it", request.line()));
        };
        if reply.label.is_some() {
            self.change(request.n, |kept| kept.label = reply.label.clone());
        }
        Plan::reply(&reply, &Ask::new(dialect, request), arrived)
            .unwrap_or_else(|message| self.trouble(500, format!("{}: {message}", request.line())))
    }

    fn trouble(&self, status: u16, message: String) -> Plan {
        let plan = Plan::error(status, &message);
        self.log.update(|log| log.problems.push(message));
        plan
    }

    fn ended(&self, n: usize, wrote_at: Instant) {
        let (send_us, end_us) = (self.us(wrote_at), self.us(Instant::now()));
        self.change(n, |kept| (kept.send_us, kept.end_us) = (Some(send_us), Some(end_us)));
        self.log.update(|log| log.answered += 1);
    }

    /// Changes what is kept of a request, unless a bench has cleared it.
    fn change(&self, n: usize, change: impl FnOnce(&mut Recorded)) {
        self.log.update(|log| log.requests.iter_mut().rev().find(|request| request.n == n).map(change));
    }

    fn times(&self) -> Value {
        let row = |request: &Recorded| {
            json!({
                "n": request.n, "path": request.path, "label": request.label, "arrive_us": request.arrive_us,
                "send_us": request.send_us, "end_us": request.end_us, "bytes": request.bytes,
            })
        };
        self.log.read(|log| log.requests.iter().map(row).collect())
    }

    fn wait(&self, count: usize) {
        self.log.wait(
            |log| log.arrived >= count,
            |log| {
                let seen: Vec<String> = log.requests.iter().map(Recorded::line).collect();
                format!("{} of {count} requests arrived: {seen:#?}, problems: {:#?}", log.arrived, log.problems)
            },
        );
    }

    /// A time on the server's clock.
    fn us(&self, at: Instant) -> u64 {
        u64::try_from(at.duration_since(self.started).as_micros()).unwrap_or(u64::MAX)
    }
}
