//! Open questions of all agents, in the order they were asked.
//!
//! Answering one never loses another. A question that was answered here is put aside until the journal has the answer;
//! if it could not be sent, the question comes back. The user can park a question for later. A question that is closed
//! elsewhere (by an answer in another frontend, an interrupt, the end of the turn or of the plan) is closed here too.

use std::collections::VecDeque;

use max_team_core::event::QuestionAsked;
use max_team_core::id::{AgentId, PlanId, QuestionId};
use max_team_core::plan::event::{PlanAsked, PlanDecision, PlanQuestion};
use max_team_core::policy::{Action, ActionKind, Basis, Deletion, RememberedRule};
use max_team_core::status::SessionStatus;
use max_team_runtime::{OpenQuestion, Origin};

use max_team_workspace::i18n::Lang;

/// What is asked, for show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) id: QuestionId,
    pub(super) by: Asker,
    pub(super) matter: QuestionKind,
    /// The id it was first asked under: a plan that is changed here asks on in the same form.
    pub(super) form: QuestionId,
    /// Changes that were sent from here and that the journal may not have yet.
    edits: Vec<PlanDecision>,
}

/// The asking agent, and its task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Asker {
    agent: Option<AgentId>,
    pub(super) name: String,
    /// The task that it is at.
    pub(super) task: Option<String>,
    /// What it is painted in, if it is a teammate.
    pub(super) color: Option<String>,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// Whether something may be done.
    Permit(PermissionQuestion),
    /// What to do, in words.
    Words(TextQuestion),
    Plan {
        plan: PlanId,
        about: PlanQuestion,
    },
}

/// What would be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PermissionQuestion {
    pub(super) tool: String,
    pub(super) target: String,
    pub(super) preview: String,
    pub(super) rule: String,
    pub(super) basis: Basis,
    /// What a "yes, always" is remembered as.
    pub(super) memory: RememberedRule,
    /// Whether it is done already, in a copy, and a yes takes it.
    pub(super) merges: bool,
    /// What it deletes where no scan watches.
    pub(super) deletion: Option<Box<Deletion>>,
}

impl PermissionQuestion {
    /// What it deletes for good, if it does: then a yes needs a word.
    pub(super) fn loss(&self) -> Option<&Deletion> {
        self.deletion.as_deref().filter(|deletion| !deletion.lost.is_empty())
    }
}

/// Something that only the user can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextQuestion {
    pub(super) question: String,
    pub(super) options: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    open: VecDeque<Question>,
    /// Answered here, not yet in the journal.
    sent: Vec<Question>,
    /// Put off by the user.
    parked: Vec<Question>,
}

impl Asker {
    /// Who, and for which task.
    pub(super) fn title(&self, lang: Lang) -> String {
        match &self.task {
            Some(task) => lang.at_task(&self.name, task),
            None => self.name.clone(),
        }
    }

    /// Whether it is at that task.
    pub(super) fn is_at(&self, task: &str) -> bool {
        self.agent.is_some() && self.task.as_deref() == Some(task)
    }
}

impl Question {
    fn new(id: QuestionId, by: Asker, matter: QuestionKind) -> Self {
        Self { id, by, matter, form: id, edits: Vec::new() }
    }
}

impl QuestionKind {
    /// What is asked, in a few words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Permit(permit) => format!("{} {}", permit.tool, permit.target).trim_end().to_owned(),
            Self::Words(words) => words.question.clone(),
            Self::Plan { .. } => String::new(),
        }
    }

    fn of(tool: &str, action: &Action, (rule, basis): (&str, &Basis), memory: &RememberedRule) -> Self {
        if action.kind == ActionKind::Ask {
            let words = if action.preview.is_empty() { &action.target } else { &action.preview };
            return Self::Words(TextQuestion::read(words));
        }
        let merges = action.kind == ActionKind::Merge;
        Self::Permit(PermissionQuestion {
            tool: tool.to_owned(),
            target: action.target.clone(),
            preview: action.preview.clone(),
            // What is done already is asked about by no rule.
            rule: if merges { String::new() } else { rule.to_owned() },
            basis: basis.clone(),
            memory: memory.clone(),
            merges,
            deletion: action.deletion.clone(),
        })
    }
}

impl TextQuestion {
    /// A question whose options stand below it, numbered.
    fn read(text: &str) -> Self {
        let (mut question, mut options): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let number = format!("{}. ", options.len() + 1);
            match (line.strip_prefix(&number), options.last_mut()) {
                (Some(option), _) => options.push(option.to_owned()),
                (None, Some(option)) => {
                    option.push('\n');
                    option.push_str(line);
                }
                (None, None) => question.push(line),
            }
        }
        Self { question: question.join("\n"), options }
    }
}

impl Questions {
    /// An agent asks.
    pub(super) fn ask(&mut self, from: &Origin, name: &str, asked: &QuestionAsked) {
        self.ask_at(from, name, None, asked);
    }

    /// The same of a teammate, with what it is at in a few words.
    pub(super) fn ask_at(&mut self, from: &Origin, name: &str, title: Option<String>, asked: &QuestionAsked) {
        let task = from.task.as_ref().map(|(_, task)| task.clone()).or(title);
        let color = from.color.as_deref().map(str::to_owned);
        let by = Asker { agent: from.agent, name: name.to_owned(), task, color };
        let matter = QuestionKind::of(&asked.tool, &asked.action, (&asked.rule, &asked.basis), &asked.memory);
        self.add(Question::new(asked.question, by, matter));
    }

    /// A question that was open before we came.
    pub(super) fn resume(&mut self, asked: &OpenQuestion) {
        let (task, color) = (asked.task.clone(), asked.color.clone());
        let by = Asker { agent: asked.agent, name: asked.by.clone(), task, color };
        let matter = QuestionKind::of(&asked.tool, &asked.action, (&asked.rule, &asked.basis), &asked.memory);
        self.add(Question::new(asked.question, by, matter));
    }

    /// A change to a plan is on its way; until it is made, its question stays on the screen.
    pub(super) fn edited_here(&mut self, id: QuestionId, edit: PlanDecision) {
        if let Some(question) = self.waiting().find(|question| question.id == id) {
            question.edits.push(edit);
        }
    }

    /// A plan was changed. If the change is not ours, its question counts as a new one that the user has not seen.
    pub(super) fn edited(&mut self, id: QuestionId, edit: &PlanDecision) {
        if let Some(question) = self.waiting().find(|question| question.id == id) {
            question.edits.retain(|sent| sent == edit);
        }
    }

    /// A plan that was changed here asks the same of what it says now: its question stays where it stands.
    pub(super) fn renew(&mut self, wanted: PlanId, asked: &PlanAsked) -> bool {
        let same = |question: &&mut Question| match &question.matter {
            QuestionKind::Plan { plan, about } => {
                *plan == wanted && *about == asked.about && !question.edits.is_empty()
            }
            QuestionKind::Permit(_) | QuestionKind::Words(_) => false,
        };
        let Some(question) = self.waiting().find(same) else { return false };
        question.id = asked.question;
        question.edits.clear();
        true
    }

    fn waiting(&mut self) -> impl Iterator<Item = &mut Question> {
        self.open.iter_mut().chain(&mut self.parked)
    }

    /// A plan asks. Returns whether that is news.
    pub(super) fn ask_about(&mut self, plan: PlanId, asked: &PlanAsked) -> bool {
        let task = match &asked.about {
            PlanQuestion::Start { task } | PlanQuestion::Failure { task, .. } => Some(task.clone()),
            PlanQuestion::Proposal | PlanQuestion::Rest | PlanQuestion::Budget => None,
        };
        let matter = QuestionKind::Plan { plan, about: asked.about.clone() };
        self.add(Question::new(asked.question, Asker { task, ..Asker::default() }, matter))
    }

    fn add(&mut self, question: Question) -> bool {
        let known = self.open.iter().chain(&self.sent).chain(&self.parked).any(|known| known.id == question.id);
        if !known {
            self.open.push_back(question);
        }
        !known
    }

    /// The one to be answered next.
    pub(super) fn first(&self) -> Option<&Question> {
        self.open.front()
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Whether an answer is on its way.
    pub(super) fn is_answering(&self) -> bool {
        !self.sent.is_empty()
    }

    /// All that wait, those that were put off last.
    pub(super) fn all(&self) -> impl Iterator<Item = &Question> {
        self.open.iter().chain(&self.parked)
    }

    /// Whether an agent's question was put off.
    pub(super) fn is_put_off(&self) -> bool {
        self.parked.iter().any(|question| !matches!(question.matter, QuestionKind::Plan { .. }))
    }

    /// Puts a question off.
    pub(super) fn park(&mut self, id: QuestionId) {
        if let Some(index) = self.open.iter().position(|question| question.id == id) {
            self.parked.extend(self.open.remove(index));
        }
    }

    /// What was put off is asked again, first of all. Returns whether there was anything.
    pub(super) fn unpark(&mut self) -> bool {
        let any = !self.parked.is_empty();
        for question in std::mem::take(&mut self.parked).into_iter().rev() {
            self.open.push_front(question);
        }
        any
    }

    /// The rules that a "yes, always" is remembered as, to a question that was answered here.
    pub(super) fn rules_sent(&self, id: QuestionId) -> Vec<String> {
        let own = self.sent.iter().find(|question| question.id == id);
        match own.map(|question| &question.matter) {
            Some(QuestionKind::Permit(permit)) => permit.memory.rules().to_vec(),
            _ => Vec::new(),
        }
    }

    /// An answer is on its way.
    pub(super) fn answered_here(&mut self, id: QuestionId) {
        if let Some(index) = self.open.iter().position(|question| question.id == id) {
            self.sent.extend(self.open.remove(index));
        }
    }

    /// The answer did not get through: the question is asked again, before the others.
    pub(super) fn reopen(&mut self, id: QuestionId) {
        if let Some(index) = self.sent.iter().position(|question| question.id == id) {
            self.open.push_front(self.sent.remove(index));
        }
    }

    /// The journal has an answer. Returns the question if it was not answered here.
    pub(super) fn answered(&mut self, id: QuestionId) -> Option<Question> {
        let question = self.all().find(|question| question.id == id).cloned();
        self.retain(|question| question.id != id);
        question
    }

    /// Keeps the questions of agents that still wait for an answer, and those of plans.
    pub(super) fn keep(&mut self, agents: &SessionStatus) {
        self.retain(|question| question.by.agent.is_none() || agents.is_asked(question.id));
    }

    /// Only these questions of a plan are still open.
    pub(super) fn keep_of_plan(&mut self, wanted: PlanId, open: impl Fn(QuestionId) -> bool) {
        self.retain(|question| match question.matter {
            QuestionKind::Plan { plan, .. } => plan != wanted || open(question.id),
            QuestionKind::Permit(_) | QuestionKind::Words(_) => true,
        });
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn retain(&mut self, keep: impl Fn(&Question) -> bool) {
        self.open.retain(&keep);
        self.sent.retain(&keep);
        self.parked.retain(&keep);
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::policy::{Action, Recourse, Repeatability};
    use uuid::Uuid;

    use super::*;

    fn from(agent: u128) -> Origin {
        Origin::agent(AgentId::new(Uuid::from_u128(agent)))
    }

    fn asked(number: u128) -> QuestionAsked {
        QuestionAsked {
            question: QuestionId::new(Uuid::from_u128(number)),
            key: format!("1.{number}"),
            tool: "edit_file".into(),
            action: Action::read("a"),
            class: Repeatability::Idempotent,
            rule: "permission mode `default`".into(),
            basis: Basis::InMode(max_team_core::policy::Mode::Default),
            memory: RememberedRule::Rules(vec!["Edit".into()]),
            recourse: Recourse::default(),
        }
    }

    #[test]
    fn answering_one_never_loses_another() {
        let ids: Vec<QuestionId> = (0..3).map(|number| asked(number).question).collect();
        let mut questions = Questions::default();
        (0..3).for_each(|number| questions.ask(&from(1), "max", &asked(number)));
        questions.ask(&from(1), "max", &asked(1));
        assert_eq!(questions.count(), 3);

        questions.answered_here(ids[0]);
        assert_eq!(questions.first().map(|question| question.id), Some(ids[1]));
        questions.ask(&from(1), "max", &asked(0));
        assert_eq!(questions.count(), 2, "a question on its way to being answered is not asked again");

        assert!(questions.is_answering());
        questions.reopen(ids[0]);
        assert!(!questions.is_answering());
        assert_eq!(questions.first().map(|question| question.id), Some(ids[0]));
        assert!(questions.answered(ids[1]).is_some(), "somebody else answered");
        questions.answered_here(ids[0]);
        assert_eq!(questions.answered(ids[0]), None, "we did");
        let mut agents = SessionStatus::default();
        agents.resume(ids[2], from(1).agent);
        questions.keep(&agents);
        assert_eq!(questions.count(), 1, "it is still asked");
        questions.keep(&SessionStatus::default());
        assert_eq!(questions.count(), 0);
    }

    #[test]
    fn one_agents_end_leaves_the_others_questions() {
        let mut questions = Questions::default();
        questions.ask(&from(1), "max", &asked(1));
        questions.ask(&from(2), "leo", &asked(2));
        let mut agents = SessionStatus::default();
        agents.resume(asked(2).question, from(2).agent);
        questions.keep(&agents);
        assert_eq!(questions.first().map(|question| question.by.name.as_str()), Some("leo"));
        let id = asked(2).question;
        questions.park(id);
        assert_eq!((questions.count(), questions.all().count()), (0, 1));
        questions.ask(&from(2), "leo", &asked(2));
        assert_eq!(questions.count(), 0, "what was put off is not asked again");
        assert!(questions.unpark() && !questions.unpark());
        assert_eq!(questions.first().map(|question| question.id), Some(id));
    }

    #[test]
    fn options_stand_below_the_question() {
        let read = TextQuestion::read("Which one?\nIt matters.\n1. this\n2. that\n   and more\n");
        let options = vec!["this".to_owned(), "that\n   and more".to_owned()];
        assert_eq!(read, TextQuestion { question: "Which one?\nIt matters.".into(), options });
        assert_eq!(TextQuestion::read("Why?").options, Vec::<String>::new());
    }
}
