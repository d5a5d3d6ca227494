//! Calls: experts and sub-agents who are called, answer, and can be gone on with; and what none of them can do.

use std::path::Path;
use std::sync::Arc;

use max_team_core::agent::{CachePolicy, Constraints, Settings, TeamRole};
use max_team_core::chat::Part;
use max_team_core::delegation::tool_filter::{AGENT, GENERAL, SEND_MESSAGE, TASK};
use max_team_core::event::{AgentStarted, Event, TurnOutcome};
use max_team_core::id::SessionId;
use max_team_core::ledger::Price;
use max_team_core::limits::CALLS_PARALLEL_MAX;
use max_team_core::plan::event::ApprovalMode;
use max_team_core::policy::Mode;
use max_team_journal::Journal;
use max_team_runtime::skills::SKILL;
use max_team_runtime::{
    AgentSpec, Command, Notice, OpenOptions, ReadModel, Team, TeamDefinitions, TeamHandle, UserMail, Which,
};
use tokio::sync::mpsc;

use super::crashes::{check_rest, events};
use super::crew::Files;
use super::read::Reads as _;
use super::team::{Heard, rest, teammate, with_team};
use super::{open, order, owner, project, runtime_of, yes};

/// The types that come with the program, and an expert of the user's.
pub(crate) fn experts() -> Vec<AgentSpec> {
    let looks = ["read_file", "list_dir", "search_code", "run_shell"];
    let read_only = Constraints { read_only: true, ..Constraints::default() };
    let mut explore = teammate("explore", "sub-agent", &looks);
    let own = Arc::make_mut(&mut explore.definition);
    (own.builtin, own.description) = (true, "Looks around.".into());
    explore.settings = explore.settings.limited_by(&read_only);
    let mut general = teammate(GENERAL, "sub-agent", &[]);
    let own = Arc::make_mut(&mut general.definition);
    (own.builtin, own.inherits_tools) = (true, true);
    let mut weather = teammate("weather", "expert", &["read_file", "write_file", AGENT, "memory_write", "submit_plan"]);
    Arc::make_mut(&mut weather.definition).place = TeamRole::Expert;
    let mut tides = teammate("tides", "expert", &["read_file", "edit_file"]);
    let cache = Some(CachePolicy { ttl_s: 3_600, keys: vec!["port".into()] });
    let own = Arc::make_mut(&mut tides.definition);
    (own.place, own.cache) = (TeamRole::Expert, cache);
    vec![explore, general, weather, tides]
}

/// A lead with members that may call.
pub(crate) fn calling(which: Which) -> OpenOptions {
    let mut open = with_team(which, ApprovalMode::Plan);
    open.definition.tools.extend([AGENT, TASK, SEND_MESSAGE, SKILL].map(str::to_owned));
    open.definition.place = TeamRole::Lead;
    open.team.as_mut().unwrap().experts = experts();
    open
}

/// One agent with hands that may call.
pub(crate) fn alone(depth: u32) -> OpenOptions {
    let mut open = open(Which::New);
    open.definition.tools = ["read_file", "edit_file", "write_file", AGENT, SEND_MESSAGE].map(str::to_owned).to_vec();
    let team = with_team(Which::New, ApprovalMode::Plan).team.unwrap();
    open.team = Some(Team { members: Vec::new(), experts: experts(), call_depth: depth, ..team });
    open
}

pub(crate) async fn say(team: &TeamHandle, root: &Path, open: OpenOptions) -> (SessionId, mpsc::Receiver<Notice>) {
    let mut notices = team.watch();
    let opened = team.open(owner(), root, open).await.unwrap();
    rest(&mut notices).await;
    order(team, Command::Say { session: opened.session, text: "do it".into() }).await.unwrap();
    (opened.session, notices)
}

fn words(content: &[Part]) -> String {
    match content {
        [Part::Text { text }] => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// The same, of whom so many are expected.
pub(crate) fn came_to<const N: usize>(heard: &Heard, who: &str) -> [(String, bool); N] {
    results(heard, who).try_into().unwrap_or_else(|all| panic!("{all:?}"))
}

/// What somebody's calls came to: the words, and whether they are an error.
fn results(heard: &Heard, who: &str) -> Vec<(String, bool)> {
    let of = heard.events.iter().filter_map(|(name, event)| match event {
        Event::ToolDone(done) if name == who => Some(done),
        _ => None,
    });
    let mut all: Vec<_> = of.map(|done| (done.key.clone(), words(&done.content), done.is_error)).collect();
    all.sort();
    all.into_iter().map(|(_, text, is_error)| (text, is_error)).collect()
}

fn one(journal: &Journal, name: &str) -> AgentStarted {
    let [one] = started(journal, name).try_into().unwrap_or_else(|all| panic!("{all:?}"));
    one
}

pub(crate) fn started(journal: &Journal, name: &str) -> Vec<AgentStarted> {
    let all = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::AgentStarted(started) if started.definition.name == name => Some(started),
        _ => None,
    });
    all.collect()
}

/// What the user's side of an agent's conversation said.
pub(crate) fn inputs(journal: &Journal, name: &str) -> Vec<String> {
    let streams: Vec<String> =
        started(journal, name).iter().map(|started| format!("agent/{}", started.agent)).collect();
    let all = events(journal).into_iter().filter(|(stream, _)| streams.contains(stream));
    let said = all.filter_map(|(_, event)| match event {
        Event::TurnStarted(started) => Some(words(&started.input)),
        _ => None,
    });
    said.collect()
}

const BOTH: &str = r#"
answers:
  - parts:
      - {tool: agent, input: {description: find the word, prompt: "What does a.txt say?", type: explore}}
      - {tool: task, input: {agent_name: weather, arguments: {city: Berlin}}}
  - text: Both answered.
members:
  explore: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: It says one.}]
  weather: [{text: "---RESULT---\n{\"temp\": 5}\n---TEXT---\nFive degrees."}]
"#;

#[tokio::test]
async fn a_lead_calls_a_type_and_an_expert_at_once() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), BOTH);
    let (session, mut notices) = say(&team, folder.path(), calling(Which::New)).await;
    let heard = rest(&mut notices).await;
    assert_eq!(
        (heard.last_words().end.clone(), heard.last_words().text.as_str()),
        (TurnOutcome::Answered, "Both answered.")
    );
    let [(explored, false), (weather, false)] = came_to(&heard, "max") else { panic!() };
    assert!(explored.starts_with("It says one.\n\n[To ask it more: `send_message` to `explore-"), "{explored}");
    assert!(weather.starts_with("Five degrees.") && !weather.contains("temp"), "{weather}");
    assert_eq!(inputs(&journal, "explore"), ["What does a.txt say?"]);
    assert_eq!(inputs(&journal, "weather"), [r#"{"args":{"city":"Berlin"},"cache_data":null}"#]);
    // Both were at work before either was done.
    let begun = heard.names().iter().rposition(|name| *name == "turn_started").unwrap();
    let ended = heard.names().iter().position(|name| *name == "turn_ended").unwrap();
    assert!(begun < ended, "{:?}", heard.names());
    let expert = one(&journal, "weather");
    assert_eq!(expert.definition.tools, ["read_file", "write_file"], "nothing that calls, plans or remembers");
    assert!(expert.definition.prompt.contains("---RESULT---"), "it is told the form");
    let given = expert.assignment.unwrap();
    assert_eq!((given.depth, given.title.as_str()), (1, r#"{"city":"Berlin"}"#));
    // What was spent is known by agent, and for whom.
    let lead = team.costs(session).unwrap().into_iter().find(|cost| cost.name == "max").unwrap().agent;
    let costs = team.costs(session).unwrap();
    let called: Vec<_> = costs.iter().filter(|cost| cost.caller == Some(lead)).map(|cost| cost.name.as_str()).collect();
    assert_eq!(called.len(), 2, "{costs:?}");
    check_rest(&journal);
}

const SILENT: &str = r#"
answers:
  - parts:
      - {tool: agent, input: {description: d, prompt: p, type: explore}}
      - {tool: task, input: {agent: weather}}
      - {tool: agent, input: {description: d, prompt: p, type: ada}}
      - {tool: agent, input: {description: d, prompt: p, type: general}}
      - {tool: task, input: {agent: nobody}}
  - text: So be it.
members:
  explore: [{text: ""}, {text: ""}, {text: ""}, {text: ""}]
  weather: [{fails: invalid_request, detail: the city is missing}]
  ada: [{text: "---RESULT---\nnot json\n---TEXT---\nHello."}]
"#;

#[tokio::test]
async fn silence_failure_and_bad_form_come_back_as_words() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), SILENT);
    let (_, mut notices) = say(&team, folder.path(), calling(Which::New)).await;
    let heard = rest(&mut notices).await;
    assert_eq!(heard.last_words().text, "So be it.");
    let [silent, failed, formless, general, nobody] = came_to(&heard, "max");
    assert!(silent.0.starts_with("`explore` answered nothing.") && silent.1, "{silent:?}");
    assert!(failed.0.contains("`weather` did not finish: ") && failed.0.contains("city is missing"), "{failed:?}");
    assert!(formless.0.starts_with("Hello.") && formless.0.contains("is no JSON") && !formless.1, "{formless:?}");
    // A lead of members gives such work to them; and it can call nobody who is not there.
    assert!(general.1 && general.0.contains("`type`") || general.0.contains("general"), "{general:?}");
    assert!(nobody.1 && nobody.0.contains("weather"), "{nobody:?}");
}

const GOES_ON: &str = r#"
answers:
  - parts: [{tool: agent, input: {description: d, prompt: First., type: explore}}]
  - parts:
      - {tool: send_message, input: {to: explore, message: And now?}}
      - {tool: send_message, input: {to: explore-ffffff0, message: Who are you?}}
  - text: Done.
members:
  explore: [{text: One.}, {text: Two., given: "One.", otherwise: "I know nothing."}]
"#;

#[tokio::test]
async fn an_agent_that_has_answered_is_continued() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), GOES_ON);
    let (session, mut notices) = say(&team, folder.path(), calling(Which::New)).await;
    let heard = rest(&mut notices).await;
    let [first, second, unknown] = came_to(&heard, "max");
    assert!(first.0.starts_with("One.") && second.0.starts_with("Two."), "{first:?} {second:?}");
    assert!(unknown.1 && unknown.0.contains("you have called no agent `explore-ffffff0`"), "{unknown:?}");
    assert_eq!(started(&journal, "explore").len(), 1, "it is the same one");
    assert_eq!(inputs(&journal, "explore"), ["First.", "And now?"]);
    let agents = ReadModel::new(&journal).agents(session).unwrap();
    assert_eq!(agents.len(), 2, "{agents:?}");
    check_rest(&journal);
}

#[tokio::test]
async fn whom_was_called_in_another_session_is_nobody_here() {
    let folder = project();
    let journal = Journal::memory();
    let first = "answers: [{parts: [{tool: agent, input: {description: d, prompt: p, type: explore}}]}, {text: Done.}]\n\
                 members: {explore: [{text: One.}]}";
    let team = runtime_of(&journal, folder.path(), first);
    let (_, mut notices) = say(&team, folder.path(), calling(Which::New)).await;
    rest(&mut notices).await;
    team.shutdown().await.unwrap();
    let journal = journal.reopen().unwrap();
    let second = "answers: [{parts: [{tool: send_message, input: {to: explore, message: Go on.}}]}, {text: Done.}]";
    let team = runtime_of(&journal, folder.path(), second);
    let (_, mut notices) = say(&team, folder.path(), calling(Which::New)).await;
    let heard = rest(&mut notices).await;
    let [(words, is_error)] = came_to(&heard, "max");
    assert!(is_error && words.contains("no agent `explore`") && words.contains("call an agent first"), "{words}");
}

#[tokio::test]
async fn no_more_work_for_one_caller_than_there_are_places() {
    let folder = project();
    let journal = Journal::memory();
    // Those who have a place keep it: each waits for a person.
    let call = "{tool: agent, input: {description: d, prompt: p, type: general}}";
    let calls = [call; CALLS_PARALLEL_MAX + 1].join(", ");
    let recording = format!(
        "answers: [{{parts: [{calls}]}}]\nmembers:\n  \
         general: [{{parts: [{{tool: write_file, input: {{path: x.txt, content: x}}}}]}}]"
    );
    let team = runtime_of(&journal, folder.path(), &recording);
    let (_, mut notices) = say(&team, folder.path(), alone(1)).await;
    let heard = rest(&mut notices).await;
    assert!(results(&heard, "solo").is_empty());
    assert_eq!(started(&journal, "general").len(), CALLS_PARALLEL_MAX);
}

#[tokio::test]
async fn a_call_waits_for_a_place() {
    let (folder, journal) = (project(), Journal::memory());
    let calls = ["{tool: agent, input: {description: d, prompt: p, type: general}}"; 2 * CALLS_PARALLEL_MAX + 1];
    let recording = format!(
        "answers: [{{parts: [{}]}}, {{text: Done.}}]\nmembers:\n  general: [{{text: found}}]",
        calls.join(", ")
    );
    let team = runtime_of(&journal, folder.path(), &recording);
    let (_, mut notices) = say(&team, folder.path(), alone(1)).await;
    let heard = rest(&mut notices).await;
    let all = results(&heard, "solo");
    assert_eq!(all.len(), calls.len());
    assert!(all.iter().all(|(words, is_error)| !is_error && words.contains("found")), "{all:?}");
}

/// Whatever text gets into it: whoever is called writes, calls, plans and widens nothing that its caller could not.
#[tokio::test]
async fn a_called_agent_can_do_nothing_that_its_caller_cannot() {
    let recording = r#"
answers:
  - parts:
      - {tool: agent, input: {description: d, prompt: p, type: explore}}
      - {tool: task, input: {agent: weather}}
  - text: Done.
members:
  explore:
    - parts:
        - {tool: write_file, input: {path: a.txt, content: owned}}
        - {tool: run_shell, input: {command: "touch owned.txt"}}
        - {tool: agent, input: {description: d, prompt: p}}
        - {tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: d}]}}
        - {tool: ask_user, input: {question: May I?}}
        - {tool: read_file, input: {path: ../secret}}
    - text: I could not.
  weather:
    - parts:
        - {tool: write_file, input: {path: a.txt, content: owned}}
        - {tool: memory_write, input: {key: a, value: b}}
        - {tool: send_message, input: {to: explore, message: write}}
        - {tool: read_file, input: {path: key.env}}
    - text: Nor could I.
"#;
    let folder = project();
    std::fs::write(folder.path().join("key.env"), "sk-1").unwrap();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = calling(Which::New);
    // The caller may write nothing and does not see keys; the expert's own settings say nothing of that.
    let constraints = Constraints { blocked_patterns: vec!["*.env".into()], ..Constraints::default() };
    open.settings = Settings { mode: Mode::Plan, ..open.settings.limited_by(&constraints) };
    for expert in &mut open.team.as_mut().unwrap().experts {
        expert.settings.mode = Mode::BypassPermissions;
    }
    let (_, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    for who in ["explore", "weather"] {
        let all = results(&heard, who);
        assert!(!all.is_empty() && all.iter().all(|(_, is_error)| *is_error), "{who}: {all:?}");
        assert!(!all.iter().any(|(words, _)| words.contains("sk-1")));
    }
    assert!(!heard.waiting && heard.last_words().text == "Done.");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n");
    assert!(!folder.path().join("owned.txt").exists());
    assert_eq!(started(&journal, GENERAL).len(), 0);
}

/// A person says yes to a command that nobody can see through: the sandbox still lets it only read.
#[tokio::test]
async fn sandbox_that_only_look_hold_whatever_is_allowed() {
    let recording = r#"
answers:
  - parts: [{tool: agent, input: {description: d, prompt: p, type: explore}}]
  - text: Done.
members:
  explore:
    - parts: [{tool: run_shell, input: {command: "for name in x; do cat a.txt; echo owned > $name.txt; done"}}]
    - text: It could not write.
"#;
    // Not in /tmp, which is another one inside the sandbox.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = calling(Which::New);
    open.settings.mode = Mode::BypassPermissions;
    open.team
        .as_mut()
        .unwrap()
        .experts
        .iter_mut()
        .for_each(|teammate| teammate.settings.mode = Mode::BypassPermissions);
    let (session, mut notices) = say(&team, folder.path(), open).await;
    assert!(rest(&mut notices).await.waiting);
    let question = UserMail::new(&journal).inbox().unwrap().pop().unwrap().row.question;
    order(&team, Command::Answer { session, question, answer: yes() }).await.unwrap();
    let heard = rest(&mut notices).await;
    let [(said, is_error)] = came_to(&heard, "explore");
    assert!(is_error && said.contains("one") && said.contains("x.txt"), "{said}");
    assert!(!folder.path().join("x.txt").exists());
}

const DEEP: &str = r#"
answers:
  - parts: [{tool: agent, input: {description: d, prompt: p}}]
  - text: Done.
members:
  general:
    - parts: [{tool: agent, input: {description: deeper, prompt: p, type: explore}}]
    - {text: It looked., after_error: I call nobody.}
  explore:
    - parts: [{tool: agent, input: {description: deepest, prompt: p, type: explore}}, {tool: read_file, input: {path: a.txt}}]
    - text: Seen.
"#;

#[tokio::test]
async fn calls_go_as_deep_as_the_user_says_and_no_deeper() {
    for (depth, answer, explorers) in [(1, "I call nobody.", 0), (2, "It looked.", 1)] {
        let folder = project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), DEEP);
        let (_, mut notices) = say(&team, folder.path(), alone(depth)).await;
        let heard = rest(&mut notices).await;
        let [(words, false)] = came_to(&heard, "solo") else { panic!("{depth}") };
        assert!(words.starts_with(answer), "{depth}: {words}");
        assert_eq!(started(&journal, "explore").len(), explorers);
        let general = one(&journal, GENERAL);
        assert!(!general.definition.tools.iter().any(|tool| tool == "git_commit" || tool == "run_shell"));
        check_rest(&journal);
    }
}

const ASKS: &str = r#"
answers:
  - parts: [{tool: agent, input: {description: d, prompt: p}}]
  - text: Done.
members:
  general: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed.}]
"#;

#[tokio::test]
async fn stopping_goes_down_and_never_up() {
    // The caller is stopped: so is whoever works for it.
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), ASKS);
    let (session, mut notices) = say(&team, folder.path(), alone(1)).await;
    assert!(rest(&mut notices).await.waiting, "a change is asked about as usual");
    order(&team, Command::Interrupt { session }).await.unwrap();
    let heard = rest(&mut notices).await;
    let ends = heard.events.iter().filter_map(|(who, event)| match event {
        Event::TurnEnded(ended) => Some((who.as_str(), ended.end.clone())),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    assert!(
        ends.contains(&("solo", TurnOutcome::Interrupted)) && ends.contains(&(GENERAL, TurnOutcome::Interrupted)),
        "{ends:?}"
    );
    check_rest(&journal);

    // Whoever works for it is stopped: the caller hears of it and goes on.
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), ASKS);
    let (_, mut notices) = say(&team, folder.path(), alone(1)).await;
    rest(&mut notices).await;
    let general = one(&journal, GENERAL);
    UserMail::new(&journal).stop_agent(&owner(), super::crashes::key("stop"), general.agent).await.unwrap();
    let heard = rest(&mut notices).await;
    let [(words, true)] = came_to(&heard, "solo") else { panic!() };
    assert!(words.starts_with("`general` did not finish: it was stopped."), "{words}");
    assert!(heard.events.iter().any(|(who, event)| who == "solo"
        && matches!(event, Event::TurnEnded(ended) if ended.end == TurnOutcome::Answered && ended.text == "Done.")));
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n");
}

/// Whoever was called follows its caller: what became stricter meanwhile holds when it goes on.
#[tokio::test]
async fn a_continued_agent_works_under_its_callers_current_settings() {
    let recording = r#"
answers:
  - parts: [{tool: agent, input: {description: d, prompt: p}}]
  - text: First.
  - parts: [{tool: send_message, input: {to: general, message: Now change it.}}]
  - text: Second.
members:
  general: [{text: Looked.}, {parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed., after_error: Refused.}]
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = alone(1);
    open.settings.mode = Mode::AcceptEdits;
    let settings = open.settings.clone();
    let (session, mut notices) = say(&team, folder.path(), open).await;
    rest(&mut notices).await;
    let stricter = Settings { mode: Mode::Plan, ..settings };
    order(&team, Command::Configure { session, settings: stricter }).await.unwrap();
    order(&team, Command::Say { session, text: "go on".into() }).await.unwrap();
    let mut heard = rest(&mut notices).await;
    while !heard.names().contains(&"replied") {
        heard = rest(&mut notices).await;
    }
    let [(words, false)] = came_to(&heard, "solo") else { panic!() };
    assert!(words.starts_with("Refused."), "{words}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n");
}

/// A session that becomes freer frees nobody whose own definition is stricter.
#[tokio::test]
async fn whose_definition_is_stricter_stays_so_when_the_session_becomes_freer() {
    let recording = r#"
answers:
  - text: First.
  - parts: [{tool: agent, input: {description: d, prompt: p}}]
  - text: Second.
members:
  general: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed., after_error: Refused.}]
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = alone(1);
    for teammate in &mut open.team.as_mut().unwrap().experts {
        (Arc::make_mut(&mut teammate.definition).mode, teammate.settings.mode) = (Some(Mode::Plan), Mode::Plan);
    }
    let settings = open.settings.clone();
    let (session, mut notices) = say(&team, folder.path(), open).await;
    rest(&mut notices).await;
    let freer = Settings { mode: Mode::BypassPermissions, ..settings };
    order(&team, Command::Configure { session, settings: freer }).await.unwrap();
    order(&team, Command::Say { session, text: "go on".into() }).await.unwrap();
    let mut heard = rest(&mut notices).await;
    while !heard.names().contains(&"replied") {
        heard = rest(&mut notices).await;
    }
    let [(words, false)] = came_to(&heard, "solo") else { panic!() };
    assert!(words.starts_with("Refused."), "{words}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n");
}

/// What a session may cost binds whoever is called in it, together with everybody else.
#[tokio::test]
async fn a_called_agent_draws_from_the_callers_pool() {
    let folder = project();
    let journal = Journal::memory();
    let recording = "answers: [{parts: [{tool: agent, input: {description: d, prompt: p}}], usage: {input: 19990, output: 1}}, \
                     {text: Done.}]\nmembers: {general: [{text: Never said., usage: {input: 10, output: 10}}]}";
    let team = runtime_of(&journal, folder.path(), recording);
    let price = Some(Price { input: 1_000, output: 1_000, cache_read: 1_000, cache_write: 1_000 });
    let mut open = alone(1);
    open.settings.budget_nano = Some(20_000_000);
    open.settings.model.price = price;
    for teammate in &mut open.team.as_mut().unwrap().experts {
        teammate.settings.model.price = price;
    }
    let (session, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    let [(words, true)] = came_to(&heard, "solo") else { panic!() };
    assert!(words.starts_with("`general` did not finish: the budget was used up"), "{words}");
    assert!(team.costs(session).unwrap().iter().all(|cost| cost.name == "solo"), "nothing was spent by whom it called");
}

/// What a call sets aside is much more than it costs: the others wait for it to come back.
#[tokio::test]
async fn an_agent_waits_for_a_reserved_budget() {
    let (folder, journal) = (project(), Journal::memory());
    let calls = ["{tool: agent, input: {description: d, prompt: p}}"; 6];
    let recording = format!(
        "answers: [{{parts: [{}]}}, {{text: Done.}}]\nmembers:\n  \
         general: [{{text: found, usage: {{input: 10, output: 10}}}}]",
        calls.join(", ")
    );
    let team = runtime_of(&journal, folder.path(), &recording);
    let mut open = alone(1);
    let price = Price { input: 1, output: 10_000, cache_read: 1, cache_write: 1 };
    let full = price.output * u64::from(open.settings.model.max_tokens);
    open.settings.budget_nano = Some(2 * full + full / 2);
    open.settings.model.price = Some(price);
    for teammate in &mut open.team.as_mut().unwrap().experts {
        teammate.settings.model.price = Some(price);
    }
    let (_, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    let all = results(&heard, "solo");
    assert_eq!(all.len(), calls.len());
    assert!(all.iter().all(|(words, is_error)| !is_error && words.contains("found")), "{all:?}");
}

/// The same through somebody in between who has no budget of its own.
#[tokio::test]
async fn nor_by_having_others_call() {
    let recording = r#"
answers: [{parts: [{tool: dispatch_task, input: {agent: leo, description: d}}]}, {text: Done.}]
members:
  leo: [{parts: [{tool: agent, input: {description: d, prompt: p}}]}, {text: Once.}]
  general: [{parts: [{tool: agent, input: {description: d, prompt: p, type: explore}}]}, {text: Twice.}]
  explore: [{text: Here., usage: {input: 30000, output: 1}}]
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = calling(Which::New);
    let colleagues = open.team.as_mut().unwrap();
    colleagues.call_depth = 2;
    for teammate in colleagues.members.iter_mut().chain(&mut colleagues.experts) {
        teammate.settings.model.price =
            Some(Price { input: 1_000, output: 1_000, cache_read: 1_000, cache_write: 1_000 });
        if teammate.definition.name == "leo" {
            teammate.settings.budget_nano = Some(30_000_000);
            Arc::make_mut(&mut teammate.definition)
                .tools
                .extend([AGENT, "list_dir", "search_code", "run_shell"].map(str::to_owned));
        }
    }
    let (_, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    let [(words, true)] = came_to(&heard, "max") else { panic!("it was not told that the budget is used up") };
    assert!(words.contains("budget") && !words.contains("Once."), "{words}");
    assert_eq!(started(&journal, "explore").len(), 1);
}

/// What somebody may spend includes what those spend whom it calls, one after another too.
#[tokio::test]
async fn a_member_cannot_spend_more_by_calling_others() {
    let recording = r#"
answers: [{parts: [{tool: dispatch_task, input: {agent: leo, description: d}}]}, {text: Done.}]
members:
  leo:
    - parts: [{tool: agent, input: {description: d, prompt: p}}]
    - parts: [{tool: agent, input: {description: d, prompt: p}}]
    - text: Twice.
  general: [{text: Here., usage: {input: 30000, output: 1}}]
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = calling(Which::New);
    let colleagues = open.team.as_mut().unwrap();
    for teammate in colleagues.members.iter_mut().chain(&mut colleagues.experts) {
        teammate.settings.model.price =
            Some(Price { input: 1_000, output: 1_000, cache_read: 1_000, cache_write: 1_000 });
        if teammate.definition.name == "leo" {
            teammate.settings.budget_nano = Some(30_000_000);
            Arc::make_mut(&mut teammate.definition).tools.push(AGENT.to_owned());
        }
    }
    let (_, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    let [(words, true)] = came_to(&heard, "max") else { panic!("it was not told that the budget is used up") };
    assert!(words.contains("budget"), "{words}");
    assert_eq!(started(&journal, GENERAL).len(), 1);
}

/// A lead that only coordinates has no other hands, whatever its definition says.
#[tokio::test]
async fn a_coordinator_calls_goes_on_and_asks_and_nothing_else() {
    let recording = r#"
answers:
  - parts:
      - {tool: dispatch_task, input: {agent: leo, description: d}}
      - {tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: d}]}}
      - {tool: agent, input: {description: change it, prompt: p}}
      - {tool: agent, input: {description: review it, prompt: p, type: ada}}
  - text: Done.
members: {general: [{text: Changed.}], ada: [{text: Fine.}]}
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = calling(Which::New);
    open.team.as_mut().unwrap().coordinator = true;
    let (_, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    let [dispatch, plan, general, ada] = came_to(&heard, "max");
    assert!(dispatch.1 && plan.1, "{dispatch:?} {plan:?}");
    assert!(general.0.starts_with("Changed.") && ada.0.starts_with("Fine."), "{general:?} {ada:?}");
}

/// Those who can be called now are those that a model is told of.
#[tokio::test]
async fn experts_come_and_go_between_turns() {
    let recording = "answers: [{text: One.}, {parts: [{tool: task, input: {agent: train, arguments: {to: Rome}}}]}, \
                     {text: Two.}]\nmembers: {train: [{text: At nine.}]}";
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = calling(Which::New);
    let files = Files::of(&mut open);
    let (session, mut notices) = say(&team, folder.path(), open).await;
    rest(&mut notices).await;
    let members = with_team(Which::New, ApprovalMode::Plan).team.unwrap().members;
    let crew = TeamDefinitions { lead: None, members, experts: vec![teammate("train", "expert", &["read_file"])] };
    files.change(&team, session, crew).await.unwrap();
    order(&team, Command::Say { session, text: "and?".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    let [(words, false)] = came_to(&heard, "max") else { panic!() };
    assert!(words.starts_with("At nine."), "{words}");
}

/// Whoever has answered and may be gone on with is rows in the journal, not memory.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_agent_costs_next_to_nothing() {
    const WARM: usize = 5;
    const TURNS: usize = 25;
    const IDLE_BYTES_MAX: usize = 40 << 10;
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4_096
    };
    let call = "{tool: agent, input: {description: d, prompt: p, type: explore}}";
    let turn = format!("{{parts: [{}]}}, {{text: Done.}}", [call; CALLS_PARALLEL_MAX].join(", "));
    let answers = vec![turn; WARM + TURNS].join(", ");
    let recording = format!("answers: [{answers}]\nmembers: {{explore: [{{text: Here.}}]}}");
    let folder = project();
    let journal = Journal::open(folder.path().join("home"), max_team_journal::Options::default()).unwrap();
    let team = runtime_of(&journal, folder.path(), &recording);
    let (session, mut notices) = say(&team, folder.path(), calling(Which::New)).await;
    rest(&mut notices).await;
    let mut before = 0;
    for turn in 1..WARM + TURNS {
        if turn == WARM {
            before = resident();
        }
        order(&team, Command::Say { session, text: "again".into() }).await.unwrap();
        rest(&mut notices).await;
    }
    let agents = started(&journal, "explore").len();
    assert_eq!(agents, (WARM + TURNS) * CALLS_PARALLEL_MAX);
    let each = resident().saturating_sub(before) / (TURNS * CALLS_PARALLEL_MAX);
    assert!(each <= IDLE_BYTES_MAX, "{each} bytes");
}

/// A member at a task has hands, and may call if it lists that: within the plan that stands behind it and its purse.
#[tokio::test]
async fn a_member_at_a_task_calls_within_its_plan() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A, owns: ["src/**"]}]}}]
  - text: Report.
members:
  leo/a:
    - parts: [{tool: agent, input: {description: write, prompt: p}}, {tool: agent, input: {description: look, prompt: p, type: explore}}]
      usage: {input: 1, output: 1}
    - {text: They did., usage: {input: 1, output: 1}}
  general:
    - parts: [{tool: write_file, input: {path: src/a.txt, content: inside}}, {tool: read_file, input: {path: a.txt}}]
      usage: {input: 1, output: 1}
    - {text: Written., usage: {input: 100, output: 10}}
  explore: [{text: Seen., usage: {input: 2000, output: 100}}]
"#;
    let folder = super::team::repository();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = calling(Which::New);
    let leo =
        open.team.as_mut().unwrap().members.iter_mut().find(|teammate| teammate.definition.name == "leo").unwrap();
    Arc::make_mut(&mut leo.definition).tools.push(AGENT.to_owned());
    let (_, mut notices) = say(&team, folder.path(), open).await;
    let proposed = rest(&mut notices).await;
    let (question, _) = proposed.asked();
    order(&team, Command::Decide { question, say: max_team_core::plan::event::PlanDecision::Approve }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(!heard.waiting, "an approved plan is the permission of whoever works for it, too: {:?}", heard.names());
    assert_eq!(heard.last_words().text, "Report.");
    assert_eq!(std::fs::read_to_string(folder.path().join("src/a.txt")).unwrap(), "inside");
    let general = one(&journal, GENERAL);
    let settings = general.settings.unwrap();
    assert!(settings.approved && settings.owns.as_deref() == Some(&["src/**".to_owned()][..]));
    assert_eq!(general.definition.tools, ["edit_file", "read_file", "write_file"], "leo's own, and nothing that calls");
    assert!(one(&journal, "explore").settings.unwrap().constraints.read_only);
    // What it spent was spent for the task.
    let spent = team.plan(proposed.plan()).unwrap().tally().spent;
    assert_eq!((spent.usage.input, spent.usage.output), (2_103, 113));
    check_rest(&journal);
}
