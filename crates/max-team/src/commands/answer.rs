//! `approve` and `deny`: the answer to a question, from any terminal.
//!
//! The answer is a message to the process that runs the session. The journal then says whose answer counted, and so
//! does this command: an answer that came second is told who was first, and where.

use std::path::PathBuf;

use max_team_core::id::EnvelopeId;
use max_team_core::plan::event::{PlanDecision, PlanQuestion, Ruling};
use max_team_core::policy::{ActionKind, DecidedBy, GrantScope, MergeDecision, PermissionAnswer, RememberedRule};
use max_team_core::time::rfc3339;
use max_team_runtime::{
    AnsweredRow, LogFollower, Matter, PendingQuestion, PersonReply, RuntimeError, UserMail, new_id, query,
};

use super::context::{self, JournalContext, stop, until};
use super::inbox;
use crate::args;
use crate::headless::talk;
use max_team_terminal as terminal;
use max_team_terminal::plan_text::PlanDetail;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::short;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::{agents, permissions};

/// What is said in the events when an answer has been read.
const ANSWERS: [&str; 3] = ["plan_answered", "question_answered", "plan_unasked"];

pub(crate) fn approve(place: &AppEnv, options: &args::Approve) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let pending = pick(&context, options.id.as_deref())?;
    let reply = yes(&pending, options)?;
    if let Some(name) = &options.by {
        check_member(&context, place, &pending, name)?;
    }
    let kept = kept(&context, &pending, options.until)?;
    let stands = send(&context, place, &pending, &reply)?;
    match kept {
        // The rule is stored only if this answer counted: the question may have been denied before.
        Some((root, rules)) if stands => {
            permissions::remember(&place.home, &root, rules).map_err(|words| CliError::new(Exit::Failed, words))?;
        }
        Some(_) => talk(context.lang.not_remembered()),
        None => {}
    }
    Ok(Exit::Ok)
}

/// What a yes for the repository leaves there: in the project that is asked about, wherever it is answered.
fn kept<'p>(
    context: &JournalContext,
    pending: &'p PendingQuestion,
    until: Option<GrantScope>,
) -> Result<Option<(PathBuf, &'p [String])>, CliError> {
    let rules = match (&pending.row.matter, until) {
        (Matter::Tool { memory, .. }, Some(GrantScope::Repository)) => memory.rules(),
        _ => &[],
    };
    if rules.is_empty() {
        return Ok(None);
    }
    let session = pending.session.ok_or_else(|| stop(RuntimeError::NoSession(pending.row.address.clone())))?;
    let row = context.read(query::Session { session })?;
    Ok(Some((PathBuf::from(row.cwd), rules)))
}

pub(crate) fn deny(place: &AppEnv, options: &args::Deny) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let pending = pick(&context, options.id.as_deref())?;
    let reply = no(&pending, options)?;
    send(&context, place, &pending, &reply)?;
    Ok(Exit::Ok)
}

/// The question that is meant.
fn pick(context: &JournalContext, id: Option<&str>) -> anyhow::Result<PendingQuestion> {
    if let Some(id) = id {
        return Ok(context.read(query::FindPending { text: id.to_owned() })?);
    }
    let mut all = context.read(query::Inbox {})?;
    match (all.pop(), all.len()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(CliError::said(Exit::Failed, |lang| lang.inbox_empty().to_owned()).into()),
        (Some(last), _) => {
            all.push(last);
            super::print(&inbox::list(&all, context, context::now_ms(), PlanDetail::Brief("max-team inbox --full"))?)?;
            Err(CliError::said(Exit::Usage, |lang| lang.which_question(all.len())).into())
        }
    }
}

fn usage<T>(words: impl Fn(Lang) -> &'static str) -> Result<T, CliError> {
    Err(CliError::said(Exit::Usage, |lang| words(lang).to_owned()))
}

fn yes(pending: &PendingQuestion, options: &args::Approve) -> Result<PersonReply, CliError> {
    let message = options.message.clone().unwrap_or_default();
    let ruling = ruling(options, &message);
    match &pending.row.matter {
        Matter::Plan(PlanQuestion::Failure { task, .. }) => {
            let id = short(&pending.row.question);
            let choose = || CliError::said(Exit::Usage, |lang| lang.failure_choices(&id, task));
            let ruling = ruling.filter(|_| !options.first_wave && !options.always);
            Ok(PersonReply::Plan(PlanDecision::Rule(ruling.ok_or_else(choose)?)))
        }
        _ if ruling.is_some() => usage(Lang::only_for_failures),
        Matter::Plan(_) if options.always => usage(Lang::always_not_for_plans),
        Matter::Plan(_) if options.message.is_some() => usage(Lang::plan_takes_no_words),
        Matter::Plan(PlanQuestion::Proposal | PlanQuestion::Rest) if options.first_wave => {
            Ok(PersonReply::Plan(PlanDecision::FirstWave))
        }
        _ if options.first_wave => usage(Lang::first_wave_too_late),
        Matter::Plan(_) => Ok(PersonReply::Plan(PlanDecision::Approve)),
        Matter::Tool { action, .. } if action.kind == ActionKind::Ask && message.is_empty() => {
            usage(Lang::answer_with_words)
        }
        Matter::Tool { memory: RememberedRule::Nothing, .. } if options.always => usage(Lang::asked_every_time),
        Matter::Tool { .. } => {
            let until = options.until.unwrap_or_default();
            let word = options.word.clone().unwrap_or_default();
            Ok(PersonReply::Agent(PermissionAnswer { always: options.always, until, word, ..answer(true, message) }))
        }
    }
}

fn ruling(options: &args::Approve, note: &str) -> Option<Ruling> {
    let retry = || Ruling::Retry { agent: options.by.clone(), model: options.with.clone(), note: note.to_owned() };
    match options {
        args::Approve { retry: true, .. } => Some(retry()),
        args::Approve { skip: true, .. } => Some(Ruling::Skip),
        args::Approve { fixed: true, .. } => Some(Ruling::Fixed),
        args::Approve { accept: true, .. } => Some(Ruling::Accept),
        args::Approve { give_up: true, .. } => Some(Ruling::GiveUp),
        _ => None,
    }
}

fn no(pending: &PendingQuestion, options: &args::Deny) -> Result<PersonReply, CliError> {
    let why = options.message.clone();
    match &pending.row.matter {
        Matter::Plan(PlanQuestion::Proposal) if options.changes => Ok(PersonReply::Plan(PlanDecision::Changes(why))),
        _ if options.changes => usage(Lang::changes_too_late),
        Matter::Plan(_) => Ok(PersonReply::Plan(PlanDecision::Reject(why))),
        Matter::Tool { action, .. } if action.kind == ActionKind::Merge => Ok(PersonReply::Agent(PermissionAnswer {
            comment: why,
            ..PermissionAnswer::merge_answer(MergeDecision::Dropped, DecidedBy::Person(String::new()))
        })),
        Matter::Tool { .. } => Ok(PersonReply::Agent(answer(false, why))),
    }
}

/// The post writes down who, and where.
fn answer(allow: bool, comment: String) -> PermissionAnswer {
    PermissionAnswer { comment, ..PermissionAnswer::new(allow, DecidedBy::Person(String::new())) }
}

/// A task of an unknown member would wait for ever.
fn check_member(context: &JournalContext, place: &AppEnv, pending: &PendingQuestion, name: &str) -> anyhow::Result<()> {
    let mut known: Vec<String> = Vec::new();
    if let Some(plan) = pending.plan {
        let plan = context.read(query::Plan { plan })?;
        known.extend(plan.draft().into_iter().flat_map(|draft| &draft.tasks).map(|task| task.agent.clone()));
    }
    // The team may have members that the plan did not need.
    let team = agents::team(None, place).map(|team| team.members).unwrap_or_default();
    known.extend(team.into_iter().map(|member| member.definition.name));
    known.sort_unstable();
    known.dedup();
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(CliError::said(Exit::Usage, |lang| lang.no_member(name, known.join(", "))).into())
}

/// Takes back a yes that was not read yet, in favour of a no. If a process runs the session, the yes counts as read.
fn take_back(
    context: &JournalContext,
    place: &AppEnv,
    pending: &PendingQuestion,
    reply: &PersonReply,
) -> anyhow::Result<()> {
    let Some(noted) = &pending.noted else { return Ok(()) };
    let at = rfc3339(noted.at_ms);
    let is_no = reply.word().is_no() && !noted.said.is_no();
    if !is_no || context.owner(pending.session)?.is_some() {
        let words = |lang: Lang| {
            format!("{}; {}", lang.answered_by_now(noted.said, &noted.by, &at), lang.noted(pending.session))
        };
        return Err(CliError::said(Exit::Denied, words).into());
    }
    let process = setup::worker_info(place, "an answer");
    context::wait(async { Ok(context.post().take_back(&context.by, process, pending).await.map_err(stop)?) })?;
    talk(&context.lang.taken_back(context.lang.answer_word(noted.said), context.lang.person(&noted.by), &at));
    // The file is the user's, who may have had the rule in it before: it stays, and they are told.
    if let Some((root, rules)) = kept(context, pending, noted.until)? {
        let (path, rules) = permissions::remembered(&root, rules);
        if !rules.is_empty() {
            let words = context.lang.rule_stays(rules.join(", "), path.to_string_lossy());
            talk(&terminal::text::clean_line(&words));
        }
    }
    Ok(())
}

/// Sends an answer. Returns whether it is known to be the one that counts.
fn send(
    context: &JournalContext,
    place: &AppEnv,
    pending: &PendingQuestion,
    reply: &PersonReply,
) -> anyhow::Result<bool> {
    take_back(context, place, pending, reply)?;
    context::wait(async {
        let (post, question) = (context.post(), pending.row.question);
        let mut watch = context.watch()?;
        let others = beside(&post, pending, reply)?;
        let key = EnvelopeId::new(new_id());
        post.reply(&context.by, key, question, reply).await.map_err(stop)?;
        let Some(owner) = context.owner(pending.session)? else {
            // It is the first in the asker's mailbox, and the only one.
            told(context, pending, reply, &context.lang.noted(pending.session))?;
            if let PersonReply::Agent(answer) = reply {
                let (names, answered) = post.will_reach(pending, answer, &others).map_err(stop)?;
                say_rule(context, pending, answer, names)?;
                answered.into_iter().try_for_each(|other| say_answered(context, other))?;
            }
            return Ok(true);
        };
        let heard = until(&mut watch, |entry| {
            let news = entry.is_none_or(|entry| ANSWERS.contains(&entry.name()));
            Ok(if news { context.read(query::Answered { question })? } else { None })
        });
        match heard.await? {
            None => told(context, pending, reply, &context.lang.unheard(&owner)).map(|()| false),
            Some(AnsweredRow { replaced_by: Some(plan), .. }) => Err(stop(RuntimeError::PlanReplaced(plan)).into()),
            Some(row) if is_ours(context, reply, &row) => {
                told(context, pending, reply, context.lang.done_word())?;
                if let PersonReply::Agent(answer) = reply {
                    tell_of_rule(context, pending, answer, &others, &mut watch).await?;
                }
                Ok(true)
            }
            Some(row) => {
                let (by, at) = (row.by.name(), rfc3339(row.at_ms));
                Err(CliError::said(Exit::Denied, |lang| lang.answered_by_now(row.said, &by, &at)).into())
            }
        }
    })
}

fn is_ours(context: &JournalContext, reply: &PersonReply, row: &AnsweredRow) -> bool {
    row.said == reply.word() && row.by == DecidedBy::person(&context.by)
}

/// Questions of the same session that a yes for longer may answer, too.
fn beside(post: &UserMail<'_>, pending: &PendingQuestion, reply: &PersonReply) -> anyhow::Result<Vec<PendingQuestion>> {
    if !matches!(reply, PersonReply::Agent(answer) if answer.always) {
        return Ok(Vec::new());
    }
    let mut all = post.inbox().map_err(stop)?;
    all.retain(|other| other.session == pending.session && other.row.question != pending.row.question);
    Ok(all)
}

/// Prints the new rules, the agents they apply to, and the other questions that they have answered.
async fn tell_of_rule(
    context: &JournalContext,
    pending: &PendingQuestion,
    answer: &PermissionAnswer,
    others: &[PendingQuestion],
    watch: &mut LogFollower,
) -> anyhow::Result<()> {
    let post = context.post();
    if !say_rule(context, pending, answer, post.told_of(pending).map_err(stop)?)? {
        return Ok(());
    }
    let mut left: Vec<&PendingQuestion> = others.iter().collect();
    until(watch, |_| {
        let mut open = Vec::new();
        for other in left.drain(..) {
            match post.is_answered_with(pending.row.question, other).map_err(stop)? {
                None => open.push(other),
                Some(false) => {}
                Some(true) => say_answered(context, other)?,
            }
        }
        left = open;
        Ok(left.is_empty().then_some(()))
    })
    .await?;
    Ok(())
}

/// Says that another question is answered, too.
fn say_answered(context: &JournalContext, other: &PendingQuestion) -> anyhow::Result<()> {
    let asked = terminal::text::clean_line(&inbox::asked_in(other, context.lang));
    let words = context.lang.answered_too(short(&other.row.question), &other.who, &asked);
    super::print(&format!("{words}\n"))?;
    Ok(())
}

/// Prints the new rules and the agents they apply to: the one that asked, and `others`. Returns whether there are
/// rules.
fn say_rule(
    context: &JournalContext,
    pending: &PendingQuestion,
    answer: &PermissionAnswer,
    others: Vec<String>,
) -> anyhow::Result<bool> {
    let Matter::Tool { memory, .. } = &pending.row.matter else { return Ok(false) };
    if !answer.always || memory.rules().is_empty() {
        return Ok(false);
    }
    let mut names = vec![pending.who.clone()];
    names.extend(others);
    let words = context.lang.allowed_from_now_on(&memory.rules().join(", "), answer.until, &names);
    super::print(&format!("{}\n", terminal::text::clean_line(&words)))?;
    Ok(true)
}

/// What was answered is data; how it stands is talk.
fn told(context: &JournalContext, pending: &PendingQuestion, reply: &PersonReply, how: &str) -> anyhow::Result<()> {
    let asked = terminal::text::clean_line(&inbox::asked_in(pending, context.lang));
    let word = context.lang.reply(reply);
    super::print(&format!("{} {word}: {asked}\n", short(&pending.row.question)))?;
    talk(how);
    Ok(())
}
