//! The log as evidence: every entry with its agent, its content in a line, and who or what allowed it.
//!
//! A rule is shown as it was written, with its place; an answer with who gave it, where and when; an action covered by
//! an approved plan with who approved the plan. Entries with an erased payload are still listed, without content.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use max_team_core::chat::Part;
use max_team_core::event::{Approval, Event, LlmOutcome, NAMES, ToolIntent, ToolOutcome};
use max_team_core::id::{PlanId, QuestionId, SessionId};
use max_team_core::plan::event::PlanDecision;
use max_team_core::policy::{Basis, DecidedBy, PermissionAnswer, Recourse};
use max_team_journal::{ChainCheck, Entry, FaultDetail, Journal, JournalError, OWN_EVENTS, ScanItem};
use serde::{Serialize, Serializer};

use super::grants::Grants;
use super::span::ToolEnd;
use super::{Cast, ReadModel};
use crate::error::RuntimeError;
use crate::rows::{self, AgentRow, AnswerWord, AnsweredRow, event_of};
use crate::session::{self, preview};
use crate::user_mail;

/// A filter for entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only agents that this text names.
    pub agent: Option<String>,
    /// Only these events; any, if empty.
    pub kinds: Vec<String>,
    /// Only this task of a plan.
    pub task: Option<String>,
    /// Only entries from this time on.
    pub since_ms: Option<i64>,
    /// Only entries before this time.
    pub until_ms: Option<i64>,
    /// Only entries after this one.
    pub after_seq: u64,
}

/// An entry as evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// Its number in the log.
    pub seq: u64,
    pub at_ms: i64,
    /// The name of the event.
    pub event: String,
    /// The writer of the entry.
    pub actor: String,
    /// The stream it is in.
    pub stream: String,
    /// The session it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The agent it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The task of a plan that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Its content in a line.
    pub what: RecordText,
    /// Who or what allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
    /// The call that was refused, and who or what refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedEvidence>,
    /// Whether its payload was erased.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    /// What is wrong with it; empty if it is intact.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<FaultDetail>,
    /// Its hash in the chain.
    pub hash: String,
}

/// The content of an entry in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum RecordText {
    Text(String),
    /// An answer, and the question if it is known.
    Answer {
        word: AnswerWord,
        about: Option<String>,
    },
    /// How a tool call ended, with the refused call or the reason.
    Tool {
        key: String,
        end: ToolEnd,
        about: Option<String>,
    },
    /// A model call was stopped.
    Cancelled,
    /// A model call was lost with its process.
    Lost,
}

impl From<RecordText> for String {
    fn from(text: RecordText) -> Self {
        match text {
            RecordText::Text(text) => text,
            RecordText::Answer { word, about: None } => word.to_string(),
            RecordText::Answer { word, about: Some(about) } => format!("{word}: {about}"),
            RecordText::Tool { key, end, about: None } => format!("{key} {}", end.name()),
            RecordText::Tool { key, end, about: Some(about) } => format!("{key} {}: {about}", end.name()),
            RecordText::Cancelled => "cancelled".to_owned(),
            RecordText::Lost => "lost".to_owned(),
        }
    }
}

impl RecordText {
    /// The same with each text in it on one line, and not too long.
    fn in_a_line(self) -> Self {
        let line = |about: Option<String>| about.map(|about| preview(&about));
        match self {
            Self::Text(text) => Self::Text(preview(&text)),
            Self::Answer { word, about } => Self::Answer { word, about: line(about) },
            Self::Tool { key, end, about } => Self::Tool { key, end, about: line(about) },
            Self::Cancelled | Self::Lost => self,
        }
    }
}

/// What a walk over the log has met, wanted or not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WalkSummary {
    /// Number of damaged entries, wanted or not.
    pub damaged: u64,
    /// Whether there are entries that cannot be read.
    pub hides: bool,
    /// Names of the events in the wanted session and time.
    pub kinds: BTreeSet<String>,
    /// The agents that have entries.
    pub agents: BTreeSet<String>,
    /// The tasks that they are about.
    pub tasks: BTreeSet<String>,
    /// Whether the filter names one of the agents.
    meant: bool,
}

/// One step of a walk over the log.
#[derive(Debug)]
pub enum WalkStep<'w> {
    /// An entry, and what is wrong with it.
    Entry(&'w Entry, Vec<FaultDetail>),
    /// Unreadable entries: the first and the last, if any entry behind them can be read.
    Unread { from: u64, to: Option<u64> },
}

impl<'w> WalkStep<'w> {
    fn of(walked: ScanItem<'w>, check: &mut ChainCheck) -> Self {
        match walked {
            ScanItem::Entry(entry) => Self::Entry(entry, check.entry(entry)),
            ScanItem::Unread { from, to } => {
                check.skip(from, to);
                Self::Unread { from, to }
            }
        }
    }
}

/// What a reader of the evidence gets.
#[derive(Debug)]
pub enum EvidenceItem<'w> {
    /// A wanted entry, as evidence.
    Record(&'w Entry, &'w Record),
    /// Unreadable entries, wanted or not: the first and the last, if any entry behind them can be read.
    Unread { from: u64, to: Option<u64> },
}

/// A part of a filter that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// A name that no event has.
    Kind(String),
    /// An agent without entries in that time.
    Agent(String),
    /// A task without entries in that time.
    Task(String),
}

impl WalkSummary {
    fn note(&mut self, filter: &Filter, record: &Record, agent: Option<&AgentRow>) {
        if !filter.reaches(record) {
            return;
        }
        let note = |set: &mut BTreeSet<String>, name: &String| {
            if !set.contains(name) {
                set.insert(name.clone());
            }
        };
        note(&mut self.kinds, &record.event);
        record.agent.iter().for_each(|agent| note(&mut self.agents, agent));
        record.task.iter().for_each(|task| note(&mut self.tasks, task));
        self.meant |= agent.zip(filter.agent.as_ref()).is_some_and(|(row, text)| row.is(text));
    }

    /// The part of a filter that matches nothing; a known event that did not occur is none.
    pub fn unmet(&self, filter: &Filter) -> Option<Unmet> {
        let is_known = |kind: &str| NAMES.contains(&kind) || OWN_EVENTS.contains(&kind) || self.kinds.contains(kind);
        let kind = filter.kinds.iter().find(|kind| !is_known(kind)).cloned().map(Unmet::Kind);
        let agent = filter.agent.clone().filter(|_| !self.meant).map(Unmet::Agent);
        let task = filter.task.clone().filter(|task| !self.tasks.contains(task)).map(Unmet::Task);
        kind.or(agent).or(task)
    }
}

/// Who or what allowed an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// A rule with the place where it is written.
    Rule(#[serde(serialize_with = "rule_text")] RuleText),
    /// An answer to this very question.
    Answer(AnswerEvidence),
    /// An earlier answer that holds for longer, as the rule says it.
    Before {
        #[serde(serialize_with = "rule_text")]
        rule: RuleText,
        /// The last answer that by itself says so, if there is one.
        word: Option<AnswerEvidence>,
    },
    /// The agent's mode.
    Mode {
        /// The mode as text.
        #[serde(serialize_with = "rule_text")]
        rule: RuleText,
        /// The entry that set it, if known.
        set: Option<Set>,
    },
    /// A built-in rule.
    BuiltIn {
        name: &'static str,
        /// Its text in this case.
        #[serde(serialize_with = "rule_text")]
        rule: RuleText,
    },
    /// An approved plan.
    Plan {
        plan: PlanId,
        /// Who approved it, if that is known.
        word: Option<AnswerEvidence>,
    },
    /// Several, each for a part, in the order of the parts.
    All(Vec<Allowed>),
}

/// A rule as text, and what is known of it besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    pub text: String,
    pub basis: Basis,
}

fn rule_text<S: Serializer>(rule: &RuleText, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rule.text)
}

/// A refused call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedEvidence {
    pub tool: String,
    /// The whole command, path or host.
    pub target: String,
    /// Who or what refused it.
    pub by: Allowed,
}

/// The entry that set a mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Set {
    /// The entry that set it.
    pub seq: u64,
    /// When that was.
    pub at_ms: i64,
    /// Who set it, if known.
    pub by: Option<DecidedBy>,
    /// The writer of the entry.
    pub actor: String,
}

/// An answer, as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerEvidence {
    /// Who gave it, and where.
    pub by: DecidedBy,
    pub said: AnswerWord,
    pub at_ms: i64,
}

impl AnswerEvidence {
    pub(super) fn of(answer: &PermissionAnswer, at_ms: i64) -> Self {
        Self { by: answer.by.clone(), said: AnswerWord::of(answer), at_ms }
    }
}

impl Filter {
    fn wants(&self, record: &Record, agent: Option<&AgentRow>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&String>| wanted.as_ref().is_none_or(|it| Some(it) == found);
        self.agent.as_ref().is_none_or(|text| agent.is_some_and(|row| row.is(text)))
            && (self.kinds.is_empty() || self.kinds.contains(&record.event))
            && is(&self.task, record.task.as_ref())
            && self.reaches(record)
    }

    /// Whether an entry is within the wanted time, and after the wanted entry.
    fn reaches(&self, record: &Record) -> bool {
        record.seq > self.after_seq
            && self.since_ms.is_none_or(|since| record.at_ms >= since)
            && self.until_ms.is_none_or(|until| record.at_ms < until)
    }
}

impl ReadModel<'_> {
    /// Walks over the entries of the log, or of one session, in order, each with what is wrong with it; and the places
    /// of unreadable ones.
    pub fn walk(
        &self,
        session: Option<SessionId>,
        after_seq: u64,
        mut each: impl FnMut(WalkStep<'_>) -> ControlFlow<()>,
    ) -> Result<(), RuntimeError> {
        let Some(session) = session else {
            let mut check = self.journal.check_behind(after_seq);
            return Ok(self
                .journal
                .export(after_seq.saturating_add(1), |walked| each(WalkStep::of(walked, &mut check)))?);
        };
        let streams = Cast::of(self.journal, session)?.streams();
        let mut check = self.journal.check_streams();
        let all = match rows::all_entries(self.journal, &streams) {
            Ok(all) => all,
            // A stream ends where it cannot be read; the log is walked past that.
            Err(RuntimeError::Journal(JournalError::Corrupt { .. })) => {
                return Ok(self.journal.export(1, |walked| match walked {
                    ScanItem::Entry(entry) if !streams.contains(&entry.stream) => ControlFlow::Continue(()),
                    walked => match WalkStep::of(walked, &mut check) {
                        WalkStep::Entry(entry, _) if entry.seq <= after_seq => ControlFlow::Continue(()),
                        step => each(step),
                    },
                })?);
            }
            Err(error) => return Err(error),
        };
        // A reader that has seen enough breaks the loop; that is no error.
        let _: ControlFlow<()> = all.iter().try_for_each(|entry| {
            let damaged = check.entry(entry);
            if entry.seq > after_seq { each(WalkStep::Entry(entry, damaged)) } else { ControlFlow::Continue(()) }
        });
        Ok(())
    }

    /// Walks over the wanted entries, as evidence; returns what was met on the way.
    pub fn records(
        &self,
        filter: &Filter,
        mut each: impl FnMut(EvidenceItem<'_>) -> ControlFlow<()>,
    ) -> Result<WalkSummary, RuntimeError> {
        let (mut walk, mut met) = (LogWalk::new(self.journal), WalkSummary::default());
        self.walk(filter.session, 0, |step| {
            let (entry, damaged) = match step {
                WalkStep::Entry(entry, damaged) => (entry, damaged),
                WalkStep::Unread { from, to } => {
                    met.hides = true;
                    return each(EvidenceItem::Unread { from, to });
                }
            };
            let (mut record, agent) = walk.record(entry);
            record.damaged = damaged;
            met.damaged += u64::from(!record.damaged.is_empty());
            met.note(filter, &record, agent.as_ref());
            if filter.wants(&record, agent.as_ref()) {
                return each(EvidenceItem::Record(entry, &record));
            }
            ControlFlow::Continue(())
        })?;
        Ok(met)
    }
}

/// State of a walk over the log.
struct LogWalk<'j> {
    journal: &'j Journal,
    /// The session and agent of each stream.
    known: HashMap<String, (Option<SessionId>, Option<AgentRow>)>,
    /// Who approved each plan.
    plans: HashMap<PlanId, AnswerEvidence>,
    /// Answers that hold for longer.
    grants: Grants,
    /// What open questions are about.
    asked: HashMap<QuestionId, String>,
}

impl<'j> LogWalk<'j> {
    fn new(journal: &'j Journal) -> Self {
        let (known, plans, asked) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { journal, known, plans, grants: Grants::default(), asked }
    }

    fn record(&mut self, entry: &Entry) -> (Record, Option<AgentRow>) {
        let (session, agent) = self.whose(&entry.stream);
        let mut record = Record {
            seq: entry.seq,
            at_ms: entry.at_ms,
            event: entry.event.to_string(),
            actor: entry.actor.clone(),
            stream: entry.stream.clone(),
            session,
            agent: agent.as_ref().map(AgentRow::handle),
            task: None,
            what: RecordText::Text(String::new()),
            allowed: None,
            refused: None,
            erased: entry.payload.is_none(),
            damaged: Vec::new(),
            hash: entry.hash.to_string(),
        };
        let given = agent.as_ref().and_then(|row| row.assignment.as_ref());
        record.task = given.filter(|given| given.plan.is_some()).map(|given| given.task.clone());
        if let Ok(event) = event_of(entry) {
            let told = serde_json::to_value(&event).unwrap_or_default();
            let inner = told.as_object().and_then(|fields| fields.values().next());
            let task = inner.filter(|_| entry.stream.starts_with("plan/")).and_then(|inner| inner.get("task"));
            record.task = task.and_then(|task| task.as_str()).map(str::to_owned).or(record.task);
            record.what = self.what(&event).in_a_line();
            self.learn(session, entry, &event);
            let plan = given.and_then(|given| given.plan);
            record.allowed = self.allowed(session, plan, entry, &event);
            record.refused = self.refused(session, entry, &event);
        }
        (record, agent)
    }

    fn whose(&mut self, stream: &str) -> (Option<SessionId>, Option<AgentRow>) {
        if let Some(known) = self.known.get(stream) {
            return known.clone();
        }
        let address = stream.strip_prefix("mail/").unwrap_or(stream);
        let named = session::session_of(address).or_else(|| address.strip_prefix("tasks/"));
        let session = named.and_then(|id| id.parse().ok()).or_else(|| user_mail::session_at(self.journal, address));
        let agent = address.strip_prefix("agent/").zip(session).and_then(|(id, session)| {
            rows::row::<AgentRow>(self.journal, &rows::agents_of(&session.to_string()), id).ok().flatten()
        });
        self.known.insert(stream.to_owned(), (session, agent.clone()));
        (session, agent)
    }

    /// Remembers answers and settings that later entries rest on.
    fn learn(&mut self, session: Option<SessionId>, entry: &Entry, event: &Event) {
        self.grants.learn(session, entry, event);
        if let Event::PlanAnswered(answered) = event
            && matches!(answered.say, PlanDecision::Approve | PlanDecision::FirstWave | PlanDecision::Edit(_))
            && let Some(plan) = entry.stream.strip_prefix("plan/").and_then(|id| id.parse().ok())
        {
            let (by, said) = (answered.by.clone(), AnswerWord::of_plan(&answered.say));
            self.plans.insert(plan, AnswerEvidence { by, said, at_ms: entry.at_ms });
        }
    }

    fn allowed(
        &self,
        session: Option<SessionId>,
        plan: Option<PlanId>,
        entry: &Entry,
        event: &Event,
    ) -> Option<Allowed> {
        let at_ms = entry.at_ms;
        let answer = |by: &DecidedBy, said| Some(Allowed::Answer(AnswerEvidence { by: by.clone(), said, at_ms }));
        match event {
            Event::ToolIntent(intent) => Some(match &intent.approval {
                Approval::Question(question) => match self.answered(*question) {
                    Some(word) => Allowed::Answer(word),
                    None => Allowed::Rule(RuleText { text: question.to_string(), basis: Basis::Rule }),
                },
                Approval::Rule(_) if !intent.rules.is_empty() => {
                    let bases = intent.bases.iter().cloned().chain(std::iter::repeat(Basis::Rule));
                    let each = intent.rules.iter().cloned().zip(bases);
                    let each =
                        each.map(|(text, basis)| self.by_rule(session, plan, entry, intent, RuleText { text, basis }));
                    Allowed::All(each.collect())
                }
                Approval::Rule(rule) => {
                    let basis = intent.bases.first().cloned().unwrap_or_default();
                    self.by_rule(session, plan, entry, intent, RuleText { text: rule.clone(), basis })
                }
            }),
            Event::Rewound(rewound) => answer(&DecidedBy::person(rewound.by.as_ref()?), AnswerWord::Rewound),
            Event::QuestionAnswered(answered) => answer(&answered.answer.by, AnswerWord::of(&answered.answer)),
            Event::PlanAnswered(answered) => answer(&answered.by, AnswerWord::of_plan(&answered.say)),
            Event::TaskRuled(ruled) => {
                let who = ruled.who.clone().unwrap_or_else(|| DecidedBy::Person(ruled.by.clone()));
                answer(&who, AnswerWord::Decided)
            }
            _ => None,
        }
    }

    /// The source of a rule.
    fn by_rule(
        &self,
        session: Option<SessionId>,
        plan: Option<PlanId>,
        entry: &Entry,
        intent: &ToolIntent,
        rule: RuleText,
    ) -> Allowed {
        match (&rule.basis, plan) {
            (Basis::Plan, Some(plan)) => Allowed::Plan { plan, word: self.plans.get(&plan).cloned() },
            (Basis::Answer | Basis::Granted(_), _) => {
                let word = self.grants.behind(session, &entry.stream, intent, &rule.text);
                Allowed::Before { rule, word }
            }
            (Basis::BuiltIn(free), _) => Allowed::BuiltIn { name: free.name(), rule },
            (basis, _) if basis.is_mode() => self.by_mode(session, entry, rule),
            _ => Allowed::Rule(rule),
        }
    }

    fn by_mode(&self, session: Option<SessionId>, entry: &Entry, rule: RuleText) -> Allowed {
        Allowed::Mode { rule, set: self.grants.mode_set(session, &entry.stream) }
    }

    /// Who or what refused a call.
    fn refused(&self, session: Option<SessionId>, entry: &Entry, event: &Event) -> Option<RefusedEvidence> {
        let Event::ToolDone(done) = event else { return None };
        let refusal = done.refused.as_deref()?;
        let by = match &refusal.by {
            DecidedBy::Rule(text) => {
                let rule = RuleText { text: text.clone(), basis: refusal.basis.clone() };
                let is_mode = matches!(refusal.recourse, Recourse::Mode | Recourse::RuleOrMode);
                if is_mode { self.by_mode(session, entry, rule) } else { Allowed::Rule(rule) }
            }
            by => Allowed::Answer(AnswerEvidence { by: by.clone(), said: AnswerWord::No, at_ms: entry.at_ms }),
        };
        Some(RefusedEvidence { tool: refusal.tool.clone(), target: refusal.target.clone(), by })
    }

    /// An event in short; an answer with its question.
    fn what(&mut self, event: &Event) -> RecordText {
        match event {
            Event::QuestionAsked(asked) => {
                self.asked.insert(asked.question, format!("{} {}", asked.tool, asked.action.target));
            }
            Event::QuestionAnswered(answered) => {
                let (word, about) = (AnswerWord::of(&answered.answer), self.asked.remove(&answered.question));
                return RecordText::Answer { word, about };
            }
            _ => {}
        }
        what(event)
    }

    fn answered(&self, question: QuestionId) -> Option<AnswerEvidence> {
        let row = rows::row::<AnsweredRow>(self.journal, rows::ANSWERED, &question.to_string()).ok()??;
        Some(AnswerEvidence { by: row.by, said: row.said, at_ms: row.at_ms })
    }
}

/// An event in short.
fn what(event: &Event) -> RecordText {
    RecordText::Text(match event {
        Event::Said(said) => said.text.clone(),
        Event::ToolIntent(intent) => format!("{} {}", intent.tool, intent.action.target),
        Event::ToolDone(done) => {
            let about = match &done.refused {
                Some(of) => Some(format!("{} {}", of.tool, of.target)),
                // Older entries have the reason only in the text for the model.
                None => (done.ending == ToolOutcome::Refused).then(|| words(&done.content).to_owned()),
            };
            return RecordText::Tool { key: done.key.clone(), end: ToolEnd::of(done), about };
        }
        Event::QuestionAsked(asked) => format!("{} {}", asked.tool, asked.action.target),
        Event::PlanAnswered(answered) => {
            return RecordText::Answer { word: AnswerWord::of_plan(&answered.say), about: None };
        }
        Event::LlmIntent(intent) => intent.model.name.clone(),
        Event::LlmEnded(ended) => match &ended.outcome {
            LlmOutcome::Done(answer) => {
                format!("{}: {} → {}", answer.model, answer.usage.input_total(), answer.usage.output)
            }
            LlmOutcome::Failed { detail, .. } => detail.clone(),
            LlmOutcome::Cancelled { .. } => return RecordText::Cancelled,
            LlmOutcome::Lost => return RecordText::Lost,
        },
        Event::PlanProposed(proposed) => proposed.draft.goal.clone(),
        Event::Mailed(envelope) => {
            let kind = serde_json::to_value(envelope.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
            format!("{} {} → {}", kind.unwrap_or_default(), envelope.from, envelope.to)
        }
        Event::Rewound(rewound) => {
            rewound.puts.iter().map(|put| put.change.path.as_str()).collect::<Vec<_>>().join(", ")
        }
        Event::AgentStarted(started) => format!("{} ({})", started.definition.name, started.definition.role),
        _ => String::new(),
    })
}

/// The first text of a result.
fn words(content: &[Part]) -> &str {
    content
        .iter()
        .find_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .unwrap_or_default()
}
