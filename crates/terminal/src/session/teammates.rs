//! Teammates' part of a session: who is there, writing to them, letting more begin.

use std::fmt;

use max_team_core::event::{Event, TurnOutcome};
use max_team_core::id::AgentId;
use max_team_core::interrupt::is_stop;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::status::{BlockCause, IdleReason};
use max_team_core::suggest::nearest;
use max_team_core::teammate::name::{Addressee, resolve};
use max_team_runtime::{CONTINUE, Enrolled, Fate, MailRecord, Origin, READ_ON, Roll, ShownContent, Spawn, is_go_on};

use super::super::background::LostCommand;
use super::super::command_queue::{CommandResult, UiCommand, fresh};
use super::super::rows::Row;
use super::super::slash_output;
use super::super::teammates::Teammates;
use super::super::transcript::Item;
use super::{Session, note};
use max_team_workspace::config::choice::WhileBusy;
use max_team_workspace::exit::CliError;
use max_team_workspace::i18n::Lang;

/// Messages of a session that is gone on with that are shown again; the last ones.
const ENVELOPES_AGAIN_MAX: usize = 10;

/// How `/team load` finds a team: its members, and what is odd about it.
pub struct TeamFiles(pub FindTeam);

type FindTeam = Box<dyn Fn(&str) -> anyhow::Result<(Vec<Spawn>, Vec<String>)> + Send>;

impl Default for TeamFiles {
    fn default() -> Self {
        Self(Box::new(|_| anyhow::bail!("there are no teams here")))
    }
}

impl fmt::Debug for TeamFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Teams")
    }
}

/// Whether a name is one of a file or folder of the project.
pub(super) struct ProjectPaths(Box<dyn Fn(&str) -> bool + Send>);

impl Default for ProjectPaths {
    fn default() -> Self {
        Self(Box::new(|_| false))
    }
}

impl fmt::Debug for ProjectPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

impl Session {
    pub(in super::super) fn find_files(&mut self, is_file: impl Fn(&str) -> bool + Send + 'static) {
        self.setup.files = ProjectPaths(Box::new(is_file));
    }

    /// Lists the paths that a message can mention.
    pub(in super::super) fn list_paths(&mut self) {
        self.acts.push(UiCommand::Paths(Box::new(self.settings.clone())));
    }

    pub(in super::super) fn find_teams(&mut self, teams: TeamFiles) {
        self.setup.teams = teams;
    }

    pub(in super::super) fn teammates(&self) -> &Teammates {
        &self.teammates
    }

    /// Sends a line to the lead, or to the teammate that it begins with.
    pub(in super::super) fn speak(&mut self, text: String, how: WhileBusy) -> Vec<Item> {
        if self.is_stopped() {
            return self.speak_again(text, how);
        }
        if self.is_recorded() && !is_stop(&text) {
            return vec![note(self.lang.demo_cannot_answer().to_owned())];
        }
        if let Some(name) = self.teammates.nearly(&text, &self.who) {
            let words = self.lang.nearly_to(name);
            self.messages.returned.push(text);
            return vec![note(words)];
        }
        match self.teammates.addressed(&text, &self.who) {
            // A line to the agent of this chat is an ordinary message.
            Some((to, text)) if to != self.who => {
                self.write(to, text);
                Vec::new()
            }
            _ => match self.addressed_to_nobody(&text) {
                Some(name) => {
                    let near = nearest(name, self.teammates.iter().map(|known| known.name.as_str()));
                    let there: Vec<&str> = self.teammates.iter().map(|known| known.name.as_str()).collect();
                    let words = self.lang.nobody_there(name, near, &there, &self.who);
                    self.messages.returned.push(text);
                    vec![note(words)]
                }
                None => self.say_by(text, how),
            },
        }
    }

    /// The name at the beginning of a message for which there is neither a teammate nor a file.
    fn addressed_to_nobody<'a>(&self, text: &'a str) -> Option<&'a str> {
        let name = self.teammates.nobody(text, &self.who, self.setup.team.is_some())?;
        (!self.works_here(name) && !(self.setup.files.0)(name)).then_some(name)
    }

    /// Whether a member or expert has this name. Only the lead gives work to those, so the line goes to the lead.
    fn works_here(&self, name: &str) -> bool {
        let all = self.setup.team.iter().flat_map(|team| team.members.iter().chain(&team.experts));
        all.into_iter().any(|teammate| teammate.definition.name == name)
    }

    fn write(&mut self, to: String, text: String) {
        // The addressee is going to work.
        self.run.quiet = false;
        let key = fresh();
        self.note_sent(key, &to, &text);
        self.acts.push(UiCommand::Write { key, to: vec![to], text });
    }

    /// `/send NAME WORDS`.
    pub(super) fn send(&mut self, argument: Option<&str>) -> Vec<Item> {
        match argument.and_then(|argument| argument.split_once(char::is_whitespace)) {
            Some((to, text)) if !text.trim().is_empty() => {
                self.write(to.to_owned(), text.trim().to_owned());
                Vec::new()
            }
            _ => vec![note(self.lang.send_whom().to_owned())],
        }
    }

    /// `/continue [NAME]`: the lead is spoken to, the others are given what they were at.
    pub(super) fn go_on(&mut self, name: Option<String>) -> Vec<Item> {
        let others = name.clone().filter(|name| !matches!(resolve(name, &self.who), Addressee::Lead));
        if others.is_some() {
            self.acts.push(UiCommand::Continue { name: others, lead: false });
            return Vec::new();
        }
        if self.is_busy() {
            return vec![note(self.lang.busy_first().to_owned())];
        }
        // Whether messages wait for it is the mail's to say.
        let lead = self.run.last.as_ref().is_some_and(TurnOutcome::is_unfinished);
        let items = if lead { self.say(CONTINUE.trim_end().to_owned()) } else { Vec::new() };
        match name {
            None => self.acts.push(UiCommand::Continue { name: None, lead }),
            Some(_) if !lead => self.acts.push(UiCommand::Held { read: true }),
            Some(_) => {}
        }
        items
    }

    /// What became of an order about teammates.
    pub(super) fn teammates_done(&mut self, done: CommandResult, now_ms: i64) -> Vec<Item> {
        let failed = match done {
            CommandResult::Written { to, text, outcome: Ok(()), .. } => return self.written(&to, text),
            CommandResult::Continued { lead, outcome: Ok((names, held)) } => return self.gone_on(lead, &names, held),
            CommandResult::Continued { outcome: Err(error), .. } => {
                return vec![Item::Row(Row::Error(self.lang.runtime_failure(&error)))];
            }
            CommandResult::Held { read: true, outcome: Ok(count) } => return self.gone_on(false, &[], count),
            // A turn that has begun meanwhile has read them.
            CommandResult::Held { outcome: Ok(count), .. } if self.agents.hold(self.lead).is_some() => {
                return self.counted(count).into_iter().collect();
            }
            CommandResult::TeammatesHeld(Ok(counts)) => {
                // Agents that have started since have read their messages.
                let stopped: Vec<String> = self.stopped_teammates().map(|(name, _)| name).collect();
                let counts = counts.into_iter().filter(|(name, _)| stopped.contains(name));
                return counts.filter_map(|(name, count)| self.teammate_waits(&name, count)).collect();
            }
            CommandResult::Held { read: true, outcome: Err(error) } => {
                return vec![Item::Row(Row::Error(self.lang.runtime_failure(&error)))];
            }
            CommandResult::Standing(Ok(stopped)) => {
                self.teammates.stand(stopped);
                return Vec::new();
            }
            CommandResult::Roll { shown, outcome: Ok(roll) } => return self.enrolled(&roll, shown, now_ms),
            CommandResult::Written { key, to, text, outcome: Err(error) } => {
                self.unsent(key);
                self.messages.returned.push(format!("@{} {text}", to.join(",")));
                error
            }
            CommandResult::Messages(Ok(envelopes)) => return self.retold(&envelopes),
            CommandResult::Recruited(Ok(there)) => return self.left_out(&there),
            CommandResult::Recruited(Err(error))
            | CommandResult::Roll { outcome: Err(error), .. }
            | CommandResult::Messages(Err(error)) => error,
            _ => return Vec::new(),
        };
        self.run.quiet = true;
        self.agents.expect_none();
        vec![Item::Row(Row::Error(self.lang.runtime_failure(&failed)))]
    }

    /// These go on, and the lead may.
    fn gone_on(&mut self, lead: bool, names: &[String], held: usize) -> Vec<Item> {
        // An agent is going to work.
        self.run.quiet &= names.is_empty();
        // What came to the lead after the stop, of work that began before it, waits too.
        let reads_on = !lead && held > 0 && !self.is_busy();
        let mut items = if reads_on { self.say(READ_ON.trim_end().to_owned()) } else { Vec::new() };
        items.extend(match names {
            [] if lead || reads_on => Vec::new(),
            [] => vec![note(self.lang.nothing_to_continue().to_owned())],
            names => vec![note(self.lang.they_go_on(names))],
        });
        items
    }

    /// What was written is in the journal.
    pub(super) fn written(&self, to: &[String], text: String) -> Vec<Item> {
        let from = self.lang.you_word().to_owned();
        vec![Item::Row(Row::Mail { from, color: String::new(), to: to.join(", "), text })]
    }

    pub(in super::super) fn recruit(&mut self, teammates: Vec<Spawn>) {
        self.run.quiet = false;
        // The runtime says when all of it is over.
        self.run.turns = self.run.turns.max(1);
        self.agents.expect(teammates.iter().map(|teammate| teammate.name.clone()));
        self.acts.push(UiCommand::Recruit(teammates));
    }

    /// These teammates were there already or are being started, so they are not waited for a second time.
    fn left_out(&mut self, there: &[String]) -> Vec<Item> {
        there.iter().for_each(|name| self.agents.unexpect(name));
        if there.is_empty() {
            return Vec::new();
        }
        self.run.quiet |= !self.agents.is_joining();
        vec![note(self.lang.there_already(there.join(", ")))]
    }

    /// `/team load NAME`.
    pub(super) fn load(&mut self, name: Option<&str>) -> Vec<Item> {
        let Some(name) = name else { return vec![note(self.lang.load_which().to_owned())] };
        match (self.setup.teams.0)(name) {
            Ok((teammates, mut warnings)) => {
                let is_there = |teammate: &Spawn| self.teammates.iter().any(|known| known.name == teammate.name);
                let (there, teammates): (Vec<Spawn>, Vec<Spawn>) = teammates.into_iter().partition(is_there);
                if !there.is_empty() {
                    let names: Vec<&str> = there.iter().map(|teammate| teammate.name.as_str()).collect();
                    warnings.push(self.lang.there_already(names.join(", ")));
                }
                if !teammates.is_empty() {
                    self.recruit(teammates);
                }
                warnings.into_iter().map(note).collect()
            }
            Err(error) => {
                let words = error.downcast_ref::<CliError>().map(|stop| stop.words(self.lang).to_owned());
                vec![Item::Row(Row::Error(words.unwrap_or_else(|| format!("{error:#}"))))]
            }
        }
    }

    /// The registry has come.
    fn enrolled(&mut self, roll: &Roll, shown: bool, now_ms: i64) -> Vec<Item> {
        self.teammates.read(roll);
        // Who was here before us may have written.
        self.acts.extend((!shown && !roll.teammates.is_empty()).then_some(UiCommand::Messages));
        if shown {
            let is_any = !roll.teammates.is_empty();
            return is_any.then(|| Item::Row(slash_output::roll(self.lang, roll, now_ms))).into_iter().collect();
        }
        // Teammates that a stop left with unread messages do not go on by themselves: the user is told.
        let waits = |teammate: &Enrolled| match &teammate.person.reason {
            Some(IdleReason::Blocked(BlockCause::Messages(count))) if teammate.is_active() => Some(*count),
            _ => None,
        };
        let waiting =
            roll.teammates.iter().filter_map(|teammate| Some((teammate.person.name.as_str(), waits(teammate)?)));
        waiting.filter_map(|(name, count)| self.teammate_waits(name, count)).collect()
    }

    /// Agents other than the lead that were stopped and have begun nothing since.
    fn stopped_teammates(&self) -> impl Iterator<Item = (String, AgentId)> {
        let teammates = self.agents.stopped().filter(|(agent, _)| *agent != self.lead);
        teammates.map(|(agent, name)| (name.to_owned(), agent))
    }

    /// Counts the messages that wait for stopped teammates once all agents are idle, since others may have written to
    /// them meanwhile.
    pub(super) fn count_teammates_waiting(&mut self) {
        let teammates: Vec<(String, AgentId)> = self.stopped_teammates().collect();
        // A stop writes nothing for those who rest.
        let is_any_stopped = self.run.halted || self.teammates.is_any_stopped() || !teammates.is_empty();
        self.acts.extend((!teammates.is_empty()).then_some(UiCommand::TeammatesHeld(teammates)));
        self.acts.extend(is_any_stopped.then_some(UiCommand::Standing));
    }

    /// That messages wait for a teammate since a stop; said once.
    fn teammate_waits(&mut self, name: &str, count: usize) -> Option<Item> {
        let is_known = count == 0 || self.messages.waits_told.insert(name.to_owned(), count) == Some(count);
        (!is_known).then(|| note(self.lang.envelopes_wait(Some(name), count)))
    }

    /// The last messages of a session that is gone on with, as they were shown when they were written.
    fn retold(&mut self, envelopes: &[MailRecord]) -> Vec<Item> {
        let is_shown = |envelope: &&MailRecord| match envelope.envelope.kind {
            _ if envelope.fate == Fate::Withdrawn || is_go_on(&envelope.text()) => false,
            // What was written in this chat stands in it.
            MessageKind::Text | MessageKind::UserInput | MessageKind::TaskResult if self.teammates.is_again() => false,
            MessageKind::Text => !envelope.text().is_empty(),
            // What was said to the lead stands in the conversation.
            MessageKind::UserInput => envelope.to != self.who,
            MessageKind::TaskResult => envelope.envelope.teammate().is_some(),
            // What came to nothing while the session was being opened has been told.
            MessageKind::Undelivered | MessageKind::ShutdownRejected => {
                envelope.to == "user" && self.teammates.is_news(&envelope.envelope)
            }
            _ => false,
        };
        let shown: Vec<&MailRecord> = envelopes.iter().rev().filter(is_shown).take(ENVELOPES_AGAIN_MAX).collect();
        let seen = shown.iter().filter(|envelope| envelope.to == "user" && envelope.fate == Fate::Delivered);
        let seen: Vec<ShownContent> = seen.map(|envelope| ShownContent::Message(envelope.envelope.id)).collect();
        let mut told: Vec<Item> = shown.into_iter().map(|envelope| self.row(envelope)).collect();
        self.acts.extend((!seen.is_empty()).then_some(UiCommand::Seen(seen)));
        if !told.is_empty() {
            told.push(note(format!("✉ {}", self.lang.written_before())));
        }
        told.reverse();
        envelopes.iter().for_each(|envelope| self.teammates.tell(&envelope.envelope));
        told
    }

    fn row(&self, envelope: &MailRecord) -> Item {
        if let Some(words) = self.lang.came_to_nothing(&envelope.envelope) {
            return note(words);
        }
        let name = |name: &str| if name == "user" { self.lang.you_word().to_owned() } else { name.to_owned() };
        let color = self.teammates.iter().find(|known| known.name == envelope.from).map(|known| known.color.clone());
        let (from, to, color) = (name(&envelope.from), name(&envelope.to), color.unwrap_or_default());
        Item::Row(Row::Mail { from, color, to, text: envelope.text() })
    }

    /// A message was not delivered, or a shutdown was refused.
    fn hear_of_envelope(&mut self, from: &Origin, envelope: &Envelope) -> Option<Item> {
        if !self.teammates.is_news(envelope) {
            return None;
        }
        self.teammates.tell(envelope);
        let told = self.lang.came_to_nothing(envelope).map(note);
        let told =
            told.or_else(|| (envelope.kind == MessageKind::ShutdownRejected).then(|| self.refuses(from, envelope)));
        if told.is_some() {
            self.seen(Some(ShownContent::Message(envelope.id)));
        }
        told
    }

    /// A teammate refuses to shut down.
    fn refuses(&self, from: &Origin, envelope: &Envelope) -> Item {
        let why = envelope.text();
        let text = format!("{}: {why}", envelope.kind.name()).trim_end_matches(": ").to_owned();
        let color = from.color.as_deref().unwrap_or_default().to_owned();
        Item::Row(Row::Mail { from: from.name.to_string(), color, to: self.who.clone(), text })
    }

    /// This is on the screen now; what was there before is read.
    pub(super) fn seen(&mut self, shown: Option<ShownContent>) {
        let shown = shown.filter(|_| !self.run.replaying);
        self.acts.extend(shown.map(|shown| UiCommand::Seen(vec![shown])));
    }

    /// What of an event is about the team itself.
    pub(super) fn hear_of_teammates(&mut self, from: &Origin, event: &Event) -> Vec<Item> {
        self.teammates.hear(from, event);
        if let Some(LostCommand { who, command, is_lost }) = self.background.hear(from, event) {
            let words = if is_lost { Lang::command_lost } else { Lang::command_stopped };
            return vec![note(words(self.lang, &who, &command))];
        }
        match event {
            Event::AgentEnded(ended) => {
                self.seen(from.agent.map(ShownContent::End));
                vec![note(self.lang.teammate_ended(&ended.name, &ended.by, &ended.reason))]
            }
            Event::FilesChanged(changed) if !changed.moved.is_empty() => {
                vec![note(format!("■ {}: {}", from.name, self.lang.moved_away(&changed.moved)))]
            }
            Event::Mailed(envelope) => self.hear_of_envelope(from, envelope).into_iter().collect(),
            Event::MessageRefused(refused) if refused.kind == MessageKind::TeamRequest => {
                vec![Item::Row(Row::Error(self.lang.not_joined(&refused.why)))]
            }
            _ => Vec::new(),
        }
    }
}
