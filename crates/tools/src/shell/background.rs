//! Commands that run on while their agent does other things, and the two tools that look after them.
//!
//! Each has a thread of its own and a file in the agent's store that its output goes to. They belong to one agent and
//! one process: they end when they are told to, when the agent's work is over, with the session, and with the process,
//! because their supervisors then do. Nothing here is journalled; the agent loop records what began and what has
//! ended. Other processes see them by notes in the store, which are removed when the agent's work is over.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use max_team_core::limits::{BACKGROUND_KNOWN_MAX, BACKGROUND_MAX, KEPT_BYTES_MAX};
use max_team_core::output::rendered;
use max_team_core::policy::{Action, ActionKind, Repeatability};
use max_team_sandbox::CommandOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::ended::{SHOWN, ended, is_fine, seconds};
use super::exec::ShellExec;
use super::job_note::JobNote;
use crate::text::{clip, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// How long a command that was told to stop is waited for: its supervisor kills it long before.
const STOP_WAIT: Duration = Duration::from_secs(20);
/// How often a wait checks whether its call was cancelled.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of a command where it is only named.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of its output that are told with the end of a command.
const LAST_BYTES: u64 = 4 << 10;

/// The commands of one agent that run in the background.
#[derive(Debug, Default)]
pub struct Background(Mutex<Jobs>);

/// Called when one of them has ended.
type Listener = Arc<dyn Fn() + Send + Sync>;

/// A command, as the agent loop sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundStatus {
    /// What it is called.
    pub id: String,
    /// What it is.
    pub name: String,
    /// Whether it is over.
    pub is_over: bool,
    /// Whether its agent has seen that it is over.
    pub is_seen: bool,
    /// Whether it was ended with everything else that its agent does.
    pub is_stopped: bool,
}

#[derive(Default)]
struct Jobs {
    listener: Option<Listener>,
    known: BTreeMap<u64, Arc<BackgroundCommand>>,
    threads: Vec<JoinHandle<()>>,
    last: u64,
    is_closed: bool,
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("known", &self.known).field("is_closed", &self.is_closed).finish_non_exhaustive()
    }
}

/// One command in the background.
#[derive(Debug)]
struct BackgroundCommand {
    id: u64,
    /// The command as a person would be shown it, and its purpose.
    name: String,
    /// Where its output is, as a model reads it.
    path: String,
    output: File,
    /// The note by which other processes see it.
    note: Option<PathBuf>,
    time: Duration,
    started: Instant,
    cancel: CancellationToken,
    state: Mutex<OutputState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct OutputState {
    /// Bytes in the file.
    bytes: u64,
    /// Bytes that came when the file was full.
    dropped: u64,
    /// Bytes that the agent has been told.
    told: u64,
    over: Option<Result<CommandOutcome, String>>,
    /// Whether the agent has been told that it is over.
    seen: bool,
    /// Whether it was ended by [`Background::stop_all`].
    stopped: bool,
    /// What is done before the agent is told.
    after: EndActions,
}

/// What is done once a command is over.
#[derive(Default)]
struct EndActions(Option<Box<dyn FnOnce() + Send>>);

impl std::fmt::Debug for EndActions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("After").field(&self.0.is_some()).finish()
    }
}

impl Background {
    /// Ends all of them, and starts no more. Blocking, for as long as it takes them.
    pub fn close(&self) {
        let threads = {
            let mut jobs = lock(&self.0);
            jobs.is_closed = true;
            jobs.known.values().for_each(|job| job.cancel.cancel());
            std::mem::take(&mut jobs.threads)
        };
        for thread in threads {
            // One that panicked has let go of its command.
            let _ = thread.join();
        }
        for note in lock(&self.0).known.values().filter_map(|job| job.note.as_ref()) {
            let _ = fs::remove_file(note);
        }
    }

    /// Calls this whenever one has ended.
    pub fn listen(&self, listener: impl Fn() + Send + Sync + 'static) {
        lock(&self.0).listener = Some(Arc::new(listener));
    }

    /// Calls the listener, for news of a command that has not ended.
    pub fn ring(&self) {
        let listener = lock(&self.0).listener.clone();
        if let Some(listener) = listener {
            listener();
        }
    }

    /// Runs `after` once the command that began last has ended, before its agent is told; at once, if it has ended
    /// already.
    pub fn when_over(&self, after: impl FnOnce() + Send + 'static) {
        let last = {
            let jobs = lock(&self.0);
            jobs.known.get(&jobs.last).cloned()
        };
        if let Some(job) = last {
            let mut state = lock(&job.state);
            if state.over.is_none() {
                state.after = EndActions(Some(Box::new(after)));
                return;
            }
        }
        after();
    }

    /// All that are known, oldest first.
    pub fn known(&self) -> Vec<BackgroundStatus> {
        let known = |job: &Arc<BackgroundCommand>| {
            let (is_over, is_seen, is_stopped) = {
                let state = lock(&job.state);
                (state.over.is_some(), state.seen, state.stopped)
            };
            BackgroundStatus { id: job.id(), name: job.name.clone(), is_over, is_seen, is_stopped }
        };
        lock(&self.0).known.values().map(known).collect()
    }

    /// Ends all of them. Their ends count as seen: a caller that stops them need not be told.
    pub fn stop_all(&self) {
        for job in lock(&self.0).known.values().filter(|job| !job.is_over()) {
            {
                let mut state = lock(&job.state);
                (state.seen, state.stopped) = (true, true);
            }
            job.cancel.cancel();
        }
    }

    /// Whether one of them runs.
    pub fn is_running(&self) -> bool {
        lock(&self.0).known.values().any(|job| !job.is_over())
    }

    /// How one of them ended and what it last printed, for an agent that has not seen it.
    pub fn last_words(&self, id: &str) -> Option<String> {
        let job = self.find(id).ok()?;
        let bytes = lock(&job.state).bytes;
        let since = bytes.saturating_sub(LAST_BYTES).max(lock(&job.state).told);
        let told = job.told(Some(since)).ok()?;
        told.content.into_iter().find_map(|part| match part {
            max_team_core::chat::Part::Text { text } => Some(text),
            _ => None,
        })
    }

    /// Whether there has been any.
    pub fn is_used(&self) -> bool {
        !lock(&self.0).known.is_empty()
    }

    fn find(&self, id: &str) -> Result<Arc<BackgroundCommand>, ToolError> {
        let jobs = lock(&self.0);
        let number = id.strip_prefix("sh-").unwrap_or(id).parse().ok();
        if let Some(job) = number.and_then(|number: u64| jobs.known.get(&number)) {
            return Ok(Arc::clone(job));
        }
        let known: Vec<String> = jobs.known.values().map(|job| format!("`{}` ({})", job.id(), job.name)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(ToolError::correctable(format!(
            "there is no background command `{}`; there are: {known}. They end with your work and with the program.",
            visible(&clip(id, NAME_BYTES_MAX))
        )))
    }
}

impl Drop for Background {
    /// Only cancels them: their supervisors do the rest, and nothing waits for it.
    fn drop(&mut self) {
        lock(&self.0).known.values().for_each(|job| job.cancel.cancel());
    }
}

impl Jobs {
    /// Makes room for one more: refuses if too many run, and forgets the oldest that have ended.
    fn admit(&mut self) -> Result<(), ToolError> {
        if self.is_closed {
            return Err(ToolError::correctable("your work is over; nothing more is started"));
        }
        self.threads.retain(|thread| !thread.is_finished());
        let running: Vec<String> =
            self.known.values().filter(|job| !job.is_over()).map(|job| format!("`{}`", job.id())).collect();
        if running.len() >= BACKGROUND_MAX {
            return Err(ToolError::correctable(format!(
                "{BACKGROUND_MAX} commands run in the background already ({}); end one with `shell_stop`",
                running.join(", ")
            )));
        }
        while self.known.len() >= BACKGROUND_KNOWN_MAX {
            // A command whose end the agent has not seen is kept, up to a bound, because the agent is still to be
            // told.
            let is_crowded = self.known.len() >= 2 * BACKGROUND_KNOWN_MAX;
            let is_done = |job: &&Arc<BackgroundCommand>| job.is_over() && (is_crowded || lock(&job.state).seen);
            let Some(id) = self.known.values().find(is_done).map(|job| job.id) else { break };
            if let Some(note) = self.known.remove(&id).and_then(|job| job.note.clone()) {
                let _ = fs::remove_file(note);
            }
        }
        Ok(())
    }
}

impl BackgroundCommand {
    fn id(&self) -> String {
        format!("sh-{}", self.id)
    }

    fn is_over(&self) -> bool {
        lock(&self.state).over.is_some()
    }

    /// Stores how the command ended (`None`: it does not count as ended yet), and runs what was to be done after it.
    fn follow_up(&self, over: Option<Result<CommandOutcome, String>>) {
        let after = {
            let mut state = lock(&self.state);
            state.over = over;
            state.after.0.take()
        };
        if let Some(after) = after {
            after();
        }
    }

    /// Takes some output; what does not fit into the file is counted.
    fn push(&self, bytes: &[u8]) {
        let room = (KEPT_BYTES_MAX as u64).saturating_sub(lock(&self.state).bytes);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let (kept, rest) = bytes.split_at(fits);
        let written = (&self.output).write_all(kept).is_ok();
        let mut state = lock(&self.state);
        let (kept, rest) = (kept.len() as u64, rest.len() as u64);
        if written {
            state.bytes += kept;
            state.dropped += rest;
        } else {
            state.dropped += kept + rest;
        }
        self.changed.notify_all();
    }

    /// Waits until there is something new or it is over, for so long.
    fn wait(
        &self,
        cx: &ToolContext,
        most: Duration,
        is_enough: impl Fn(&OutputState) -> bool,
    ) -> Result<(), ToolError> {
        let until = Instant::now() + most;
        let mut state = lock(&self.state);
        while state.over.is_none() && !is_enough(&state) && Instant::now() < until {
            cx.check()?;
            let next = LOOK.min(until.saturating_duration_since(Instant::now()));
            state = self.changed.wait_timeout(state, next).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Its state, and what it printed from there on.
    fn told(&self, since: Option<u64>) -> Result<Output, ToolError> {
        let (from, bytes, dropped, over) = {
            let state = lock(&self.state);
            let from = since.unwrap_or(state.told).min(state.bytes);
            (from, state.bytes, state.dropped, state.over.clone())
        };
        let unreadable = |error: std::io::Error| ToolError::correctable(format!("`{}`: {error}", self.path));
        let mut chunk = vec![0; SHOWN.min(usize::try_from(bytes - from).unwrap_or(SHOWN))];
        self.output.read_exact_at(&mut chunk, from).map_err(unreadable)?;
        let text = whole(&chunk, from + (chunk.len() as u64) < bytes);
        let to = from + text.len() as u64;
        {
            let mut state = lock(&self.state);
            state.told = to;
            state.seen |= over.is_some();
        }
        let how = match &over {
            None => format!("runs for {}", seconds(self.started.elapsed())),
            Some(Ok(over)) => ended(over, self.time),
            Some(Err(words)) => words.clone(),
        };
        let mut words = format!("`{}` ({}): {how}\n", self.id(), self.name);
        let printed: String =
            rendered(&String::from_utf8_lossy(text)).lines().map(|line| visible(line) + "\n").collect();
        words.push_str(if printed.is_empty() { "(nothing new)\n" } else { &printed });
        if to < bytes {
            words.push_str(&format!("[bytes {from} to {to} of {bytes}; the next come with `since: {to}`]\n"));
        }
        if dropped > 0 {
            words.push_str(&format!("[{dropped} bytes more than are kept were printed and are gone]\n"));
        }
        words.push_str(&format!("[all of it is in `{}`]", self.path));
        let is_error = over.is_some_and(|over| !over.as_ref().is_ok_and(is_fine));
        Ok(Output { is_error, ..Output::text(words) })
    }
}

/// The bytes without a letter that was cut in two, if the rest of it is still to come.
fn whole(bytes: &[u8], has_more: bool) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if has_more && error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a command run on.
pub(super) fn start(cx: &ToolContext, mut order: ShellExec, line: &str, note: &str) -> Result<Output, ToolError> {
    let store = cx.outputs.as_ref().ok_or_else(|| ToolError::correctable("nothing runs in the background here"))?;
    let mut jobs = lock(&cx.background.0);
    jobs.admit()?;
    let (number, path, file) = store
        .begin("sh", jobs.last + 1)
        .map_err(|error| ToolError::fatal(format!("there is no place for the command's output: {error}")))?;
    let note = if note.is_empty() { String::new() } else { format!(": {}", visible(&clip(note, NAME_BYTES_MAX))) };
    let name = format!("`{}`{note}", visible(&clip(line, NAME_BYTES_MAX)));
    let mut seen = JobNote::begun(format!("sh-{number}"), name.clone());
    let job = Arc::new(BackgroundCommand {
        id: number,
        name,
        path,
        output: file,
        note: seen.note(store),
        time: order.time(),
        started: Instant::now(),
        cancel: CancellationToken::new(),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    let (own, store, listener) = (Arc::clone(&job), Arc::clone(store), jobs.listener.clone());
    order.lives_on = true;
    let run = move || {
        let over = order.run(&own.cancel, &mut |bytes| own.push(bytes)).map_err(|error| error.to_string());
        own.follow_up(None);
        seen.over = Some(over.as_ref().map_or_else(String::clone, |over| ended(over, own.time)));
        seen.note(&store);
        // Also runs what was registered after the first call.
        own.follow_up(Some(over));
        own.changed.notify_all();
        if let Some(listener) = listener {
            listener();
        }
    };
    let thread = thread::Builder::new().name(job.id()).spawn(run);
    let thread = thread.map_err(|error| ToolError::fatal(format!("no thread could be started: {error}")))?;
    jobs.threads.push(thread);
    jobs.last = number;
    let text = format!(
        "runs in the background as `{0}`. `shell_output` with `id: {0}` shows how it goes (and waits, with `wait`), \
         `shell_stop` ends it. Its output is in `{1}`.",
        job.id(),
        job.path
    );
    jobs.known.insert(number, job);
    Ok(Output::text(text))
}

/// Look at a command that you started with `run_shell` in the background: whether it still runs or how it ended, and
/// what it has printed since you last looked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellOutput {
    /// The id that `run_shell` gave.
    id: String,
    /// Begin at this byte of what it printed. Default: where the last look ended.
    since: Option<u64>,
    /// Wait up to so many seconds for something new or for its end, instead of asking again and again. Default: 0.
    #[schemars(range(max = 300))]
    wait: Option<u32>,
}

/// End a command that you started with `run_shell` in the background, and everything that it started.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellStop {
    /// The id that `run_shell` gave.
    id: String,
}

pub(crate) fn shell_output() -> Typed<ShellOutput> {
    let action = |cx: &ToolContext, args: &ShellOutput| own(cx, &args.id);
    Typed::new("shell_output", Repeatability::Pure, action, |cx, args, _, _| {
        let job = cx.background.find(&args.id)?;
        let since = args.since;
        job.wait(cx, Duration::from_secs(args.wait.unwrap_or(0).into()), |state| {
            state.bytes + state.dropped > since.unwrap_or(state.told)
        })?;
        job.told(since)
    })
}

pub(crate) fn shell_stop() -> Typed<ShellStop> {
    let action = |cx: &ToolContext, args: &ShellStop| own(cx, &args.id);
    Typed::new("shell_stop", Repeatability::Idempotent, action, |cx, args, _, _| {
        let job = cx.background.find(&args.id)?;
        job.cancel.cancel();
        job.wait(cx, STOP_WAIT, |_| false)?;
        job.told(None).map(|output| Output { is_error: false, ..output })
    })
}

/// An agent may always look after its own commands.
fn own(cx: &ToolContext, id: &str) -> Result<Action, ToolError> {
    let job = cx.background.find(id)?;
    Ok(Action { kind: ActionKind::Query, ..Action::read(job.id()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_not_cut_in_two() {
        assert_eq!(whole("aé".as_bytes(), true), "aé".as_bytes());
        assert_eq!(whole(b"a\xc3", true), b"a");
        assert_eq!(whole(b"a\xc3", false), b"a\xc3");
        assert_eq!(whole(b"a\xff\xffb", true), b"a\xff\xffb");
    }

    #[test]
    fn the_schema_and_the_limits_say_the_same() {
        let spec = crate::tool::Spec::of::<ShellOutput>("shell_output", Repeatability::Pure);
        assert_eq!(spec.schema["properties"]["wait"]["maximum"], max_team_core::limits::BACKGROUND_WAIT_S_MAX);
    }
}
