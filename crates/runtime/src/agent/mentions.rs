//! What the user mentions in a message (`@path`, `@server:uri`, `/mcp__server__prompt`): read when a turn takes the message in,
//! and journalled with it.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use max_team_core::agent::Settings;
use max_team_core::chat::Part;
use max_team_core::limits::{COMPLETION_PATHS_MAX, MENTION_BYTES_MAX, MENTION_GRACE_MS_MAX, MENTION_MS_MAX};
use max_team_core::mention::{self, Mention, SERVER_MENTIONS_MAX, ServerMention};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::policy::{Rules, Visibility, judge};
use max_team_core::teammate::name::{Addressee, resolve};
use max_team_tools::{PolicyCheck, Reading, Root, ToolContext, mentioned};
use tokio_util::sync::CancellationToken;

use super::Agent;
use crate::handle::Team;
use crate::rows;
use crate::shared::Shared;

impl Agent {
    /// What the user's messages mention, as parts behind the text: prompts and resources of servers, and files.
    pub(super) async fn read_mentions(&mut self, envelopes: &[Envelope]) -> Vec<Part> {
        let said = envelopes.iter().filter(|envelope| envelope.kind == MessageKind::UserInput);
        let said: Vec<String> = said.map(|envelope| envelope.text().to_owned()).collect();
        let mut parts = self.read_from_servers(&said).await;
        parts.extend(self.read_files(&said.join("\n\n")).await);
        parts
    }

    /// Prompts and resources of MCP servers, all at once. A stop ends the wait.
    async fn read_from_servers(&mut self, said: &[String]) -> Vec<Part> {
        let prompts = said.iter().filter_map(|message| ServerMention::prompt(message));
        let resources = said.iter().flat_map(|message| mention::find(message));
        let resources = resources.filter_map(|mention| ServerMention::resource(&mention));
        let wanted: Vec<ServerMention> = prompts.chain(resources).take(SERVER_MENTIONS_MAX).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let sources = self.active.shared.sources_of(self.frame.definition());
        let read = |wanted: &ServerMention| match (sources.iter().find_map(|source| source.read(wanted)), wanted) {
            // Other text can look like a resource; a command of this form is nothing else.
            (None, ServerMention::Prompt { .. }) => {
                let why = "no MCP server that this agent uses has a name that fits; `/mcp` lists servers and prompts";
                let part = Part::text(mention::left_out(&wanted.written(), why));
                Some(Box::pin(async { vec![part] }) as Reading)
            }
            (reading, _) => reading,
        };
        let readings: Vec<Reading> = wanted.iter().filter_map(read).collect();
        let stop = self.active.reading(&self.turn.stream);
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                self.inbox.stop_waits = true;
                Vec::new()
            }
            parts = join_all(readings) => parts.into_iter().flatten().collect(),
        }
    }

    async fn read_files(&mut self, said: &str) -> Vec<Part> {
        let mentions = self.paths_mentioned(said);
        if mentions.is_empty() {
            return Vec::new();
        }
        let cx = self.reading();
        let cancel = cx.cancel.clone();
        let left_out: Vec<Part> =
            mentions.iter().filter_map(|mention| mention.spellings.first()).map(|path| unread(path)).collect();
        // A token has about four bytes of text: files fill at most a quarter of the model's window.
        let window = usize::try_from(self.frame.settings().model.context_tokens).unwrap_or(usize::MAX);
        let bytes_max = MENTION_BYTES_MAX.min(window);
        let read = move || mentioned(&cx, &mentions, bytes_max);
        let limits = [MENTION_MS_MAX, MENTION_GRACE_MS_MAX].map(Duration::from_millis);
        within(limits, &cancel, read).await.unwrap_or(left_out)
    }

    /// Possible paths; `@name` is a teammate if one has that name.
    fn paths_mentioned(&self, said: &str) -> Vec<Mention> {
        let mut mentions = mention::find(said);
        if mentions.is_empty() {
            return mentions;
        }
        let there = rows::teammates_there(&self.active.shared.journal, self.active.session).unwrap_or_default();
        let lead = self.active.lead_name();
        let is_teammate = |name: &str| match resolve(name, &lead) {
            Addressee::Lead => true,
            Addressee::Everybody => !there.is_empty(),
            Addressee::Teammate(name) => there.iter().any(|(teammate, _)| teammate == name),
        };
        mentions.retain(|mention| !mention.spellings.iter().any(|spelling| is_teammate(spelling)));
        mentions
    }

    /// Mentioned files are read by the agent's own rules. A lead does not see files that are hidden from all its
    /// members.
    fn reading(&mut self) -> ToolContext {
        let cx = ToolContext { cancel: self.active.reading(&self.turn.stream), ..self.context() };
        let team = self.active.team().filter(|_| self.turn.origin.lead);
        let hidden = team.map(|team| hidden_from_all(&team)).unwrap_or_default();
        if hidden.is_empty() {
            return cx;
        }
        let settings = without(self.frame.settings(), hidden);
        let sight =
            Visibility::from_policy(&settings.constraints, &settings.permissions).without(&self.active.shared.closed);
        let grants = self.turn.grants().to_vec();
        let gate =
            PolicyCheck::new(move |tool, action| judge(&Rules { grants: &grants, ..settings.rules() }, tool, action));
        ToolContext { sight: sight.into(), policy: gate, ..cx }
    }
}

/// Reads files on a thread of their own, at most so long, and after a cancellation as long as the second limit. `None`: the file
/// system did not return from a read, and its thread is left behind.
async fn within(
    [limit, grace]: [Duration; 2],
    cancel: &CancellationToken,
    read: impl FnOnce() -> Vec<Part> + Send + 'static,
) -> Option<Vec<Part>> {
    let mut read = tokio::task::spawn_blocking(read);
    tokio::select! {
        read = &mut read => return Some(read.unwrap_or_default()),
        () = cancel.cancelled() => {}
        () = tokio::time::sleep(limit) => cancel.cancel(),
    }
    tokio::time::timeout(grace, read).await.ok().map(Result::unwrap_or_default)
}

fn unread(path: &str) -> Part {
    Part::text(mention::left_out(path, "the file system did not answer in time"))
}

/// The paths of a project that a message to its lead can mention.
pub(crate) fn paths(shared: &Shared, root: &Path, settings: &Settings, team: Option<&Team>) -> Vec<String> {
    let Ok(root) = Root::open(root) else { return Vec::new() };
    let settings = without(settings, team.map(hidden_from_all).unwrap_or_default());
    let sight = Visibility::from_policy(&settings.constraints, &settings.permissions).without(&shared.closed);
    max_team_tools::paths(&ToolContext { sight: sight.into(), ..ToolContext::new(root.into()) }, COMPLETION_PATHS_MAX)
}

/// Whether a text names a file or folder of a project.
pub fn is_path(root: &Path, text: &str) -> bool {
    Root::open(root).is_ok_and(|root| root.has_path(text))
}

fn without(settings: &Settings, hidden: Vec<String>) -> Settings {
    let mut settings = settings.clone();
    settings.constraints.blocked_patterns.extend(hidden);
    settings
}

/// The file patterns that are hidden from every member of a team.
fn hidden_from_all(team: &Team) -> Vec<String> {
    let Some((first, rest)) = team.members.split_first() else { return Vec::new() };
    let blocked = first.settings.constraints.blocked_patterns.iter();
    let by_all = |pattern: &&String| {
        rest.iter().all(|teammate| teammate.settings.constraints.blocked_patterns.contains(pattern))
    };
    blocked.filter(by_all).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    /// A stop ends a slow read at once, and what was read until then is kept.
    #[tokio::test]
    async fn a_stop_ends_a_slow_read() {
        let cancel = CancellationToken::new();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let inner = cancel.clone();
        let read = move || {
            begun.send(()).unwrap();
            while !inner.is_cancelled() {
                std::thread::yield_now();
            }
            vec![Part::text("one")]
        };
        let stop = async {
            begins.await.unwrap();
            cancel.cancel();
        };
        let (read, ()) = tokio::join!(within([LONG, LONG], &cancel, read), stop);
        assert_eq!(read, Some(vec![Part::text("one")]));
    }

    #[tokio::test]
    async fn a_read_that_never_returns_is_left_behind() {
        let (release, blocked) = mpsc::channel::<()>();
        let read = move || {
            blocked.recv().unwrap_err();
            vec![Part::text("late")]
        };
        let cancel = CancellationToken::new();
        assert_eq!(within([Duration::ZERO, Duration::ZERO], &cancel, read).await, None);
        assert!(cancel.is_cancelled());
        drop(release);
        let cancel = CancellationToken::new();
        assert_eq!(within([LONG, LONG], &cancel, Vec::new).await, Some(Vec::new()));
    }
}
