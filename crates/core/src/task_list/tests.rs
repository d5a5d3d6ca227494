//! Tables, properties and every order of a small list.

mod explore;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::limits::{LIST_BLOCKERS_MAX, LIST_SUBJECT_CHARS_MAX, LIST_TASKS_MAX};

fn doer(name: &str) -> Claimant {
    Claimant { at: format!("agent/{name}"), name: name.to_owned(), steers: name == "max" }
}

fn create(subject: &str) -> ListRequest {
    ListRequest::Create(NewTask { subject: subject.to_owned(), ..NewTask::default() })
}

fn change(id: &str) -> TaskUpdate {
    TaskUpdate { id: id.to_owned(), ..TaskUpdate::default() }
}

fn to(id: &str, status: ListTaskStatus) -> ListRequest {
    ListRequest::Update(Box::new(TaskUpdate { status: Some(status), ..change(id) }))
}

fn give(id: &str, owner: &str) -> ListRequest {
    ListRequest::Update(Box::new(TaskUpdate { owner: Some(owner.to_owned()), ..change(id) }))
}

fn after(id: &str, blockers: &[&str]) -> ListRequest {
    let blocked_by = blockers.iter().map(|id| (*id).to_owned()).collect();
    ListRequest::Update(Box::new(TaskUpdate { blocked_by, ..change(id) }))
}

/// Decides and folds; the words of a refusal.
fn step(tasks: &mut TaskList, who: &str, input: &ListRequest) -> Result<Vec<Event>, String> {
    let events = tasks.decide(&doer(who), input).map_err(|refusal| refusal.to_string())?;
    events.iter().for_each(|event| tasks.apply(event));
    Ok(events)
}

/// A list of so many tasks.
fn list(count: usize) -> TaskList {
    let mut tasks = TaskList::default();
    for number in 1..=count {
        step(&mut tasks, "max", &create(&format!("task {number}"))).unwrap();
    }
    tasks
}

fn state(tasks: &TaskList, id: &str) -> (ListTaskStatus, String, Option<String>, u32) {
    let ListTaskState { status, owner, holder, epoch, .. } = tasks.find(id).unwrap().state.clone();
    (status, owner, holder, epoch)
}

/// Whoever has given a task back is not handed it again, until the lead or the user gives it to somebody.
#[test]
fn a_returned_task_is_not_claimed_again_automatically() {
    let mut tasks = list(1);
    let back = to("1", ListTaskStatus::Pending);
    for name in ["leo", "ada"] {
        step(&mut tasks, name, &ListRequest::Next).unwrap();
        step(&mut tasks, name, &back).unwrap();
        assert!(tasks.next(&doer(name)).is_none(), "{name}");
    }
    assert!(tasks.next(&doer("ray")).is_some());
    // They may still want it.
    step(&mut tasks, "leo", &to("1", ListTaskStatus::InProgress)).unwrap();
    step(&mut tasks, "leo", &back).unwrap();
    step(&mut tasks, "max", &give("1", "leo")).unwrap();
    assert!(tasks.next(&doer("leo")).is_some());
}

#[test]
fn a_claim_is_one_persons() {
    let mut tasks = list(2);
    let claim = ListRequest::Update(Box::new(TaskUpdate {
        status: Some(ListTaskStatus::InProgress),
        owner: Some("leo".into()),
        ..change("1")
    }));
    step(&mut tasks, "leo", &claim).unwrap();
    assert_eq!(state(&tasks, "1"), (ListTaskStatus::InProgress, "leo".into(), Some("agent/leo".into()), 1));
    assert_eq!(step(&mut tasks, "leo", &claim).unwrap(), [], "said again, nothing happens");
    for who in ["ada", "max"] {
        let words = step(&mut tasks, who, &to("1", ListTaskStatus::InProgress)).unwrap_err();
        assert!(words.contains("task `1` is held by `leo`"), "{words}");
    }
    let namesake = Claimant { at: "agent/other".into(), ..doer("leo") };
    let refused = tasks.decide(&namesake, &to("1", ListTaskStatus::Completed)).unwrap_err();
    assert!(refused.to_string().contains("held by another `leo`"), "{refused}");
    step(&mut tasks, "leo", &to("#1", ListTaskStatus::Completed)).unwrap();
    assert_eq!(state(&tasks, "1"), (ListTaskStatus::Completed, "leo".into(), None, 1));
    let words = step(&mut tasks, "ada", &to("1", ListTaskStatus::InProgress)).unwrap_err();
    assert_eq!(words, "task `1` was completed by `leo` and stays so: create another for what is left");
}

#[test]
fn an_answer_of_a_former_owner_does_not_count() {
    let mut tasks = list(1);
    step(&mut tasks, "leo", &to("1", ListTaskStatus::InProgress)).unwrap();
    let gone = ListRequest::Gone { why: ReleaseReason::Died, for_good: false };
    let events = step(&mut tasks, "leo", &gone).unwrap();
    assert!(
        matches!(&*events, [Event::ItemMoved(ItemMoved { what: StatusChange::Released(ReleaseReason::Died), .. })]),
        "{events:?}"
    );
    assert_eq!(state(&tasks, "1"), (ListTaskStatus::Pending, String::new(), None, 1));
    assert_eq!(step(&mut tasks, "leo", &gone).unwrap(), []);
    step(&mut tasks, "ada", &ListRequest::Next).unwrap();
    assert_eq!(state(&tasks, "1"), (ListTaskStatus::InProgress, "ada".into(), Some("agent/ada".into()), 2));
    assert!(step(&mut tasks, "leo", &to("1", ListTaskStatus::Completed)).unwrap_err().contains("held by `ada`"));
    // The lead takes it back; then the same of ada's.
    step(&mut tasks, "max", &to("1", ListTaskStatus::Pending)).unwrap();
    step(&mut tasks, "leo", &to("1", ListTaskStatus::InProgress)).unwrap();
    assert!(step(&mut tasks, "ada", &to("1", ListTaskStatus::Completed)).unwrap_err().contains("held by `leo`"));
    assert_eq!(state(&tasks, "1").3, 3);
}

#[test]
fn a_task_with_an_owner_waits_for_that_owner() {
    let mut tasks = list(2);
    step(&mut tasks, "max", &give("1", "leo")).unwrap();
    assert_eq!(tasks.next(&doer("leo")).unwrap().id.to_string(), "1");
    assert_eq!(tasks.next(&doer("ada")).unwrap().id.to_string(), "2");
    assert!(step(&mut tasks, "ada", &to("1", ListTaskStatus::InProgress)).unwrap_err().contains("meant for `leo`"));
    assert!(step(&mut tasks, "ada", &give("1", "ada")).unwrap_err().contains("meant for `leo`"));
    let for_other = ListRequest::Update(Box::new(TaskUpdate {
        status: Some(ListTaskStatus::InProgress),
        owner: Some("ada".into()),
        ..change("2")
    }));
    let nobody = TaskUpdate { status: Some(ListTaskStatus::InProgress), owner: Some(String::new()), ..change("2") };
    assert!(
        tasks.decide(&doer("ray"), &ListRequest::Update(Box::new(nobody))).is_ok(),
        "an empty owner is nobody else"
    );
    let words = step(&mut tasks, "max", &for_other).unwrap_err();
    assert_eq!(words, "only `ada` can say that it begins: leave `status` out, and task `2` is meant for `ada`");
    step(&mut tasks, "leo", &ListRequest::Gone { why: ReleaseReason::Ended, for_good: false }).unwrap();
    assert_eq!(state(&tasks, "1").1, "leo", "another leo may come");
    step(&mut tasks, "leo", &ListRequest::Gone { why: ReleaseReason::Shutdown, for_good: true }).unwrap();
    assert_eq!(tasks.next(&doer("ada")).unwrap().id.to_string(), "1");
}

#[test]
fn the_owner_of_a_task_can_hand_it_on() {
    let mut tasks = list(1);
    step(&mut tasks, "leo", &to("1", ListTaskStatus::InProgress)).unwrap();
    let events = step(&mut tasks, "leo", &give("1", "ada")).unwrap();
    assert!(matches!(
        &*events,
        [Event::ItemMoved(ItemMoved { what: StatusChange::Released(ReleaseReason::GivenBack), .. })]
    ));
    assert_eq!(state(&tasks, "1"), (ListTaskStatus::Pending, "ada".into(), None, 1));
    step(&mut tasks, "ada", &to("1", ListTaskStatus::InProgress)).unwrap();
    let events = step(&mut tasks, "max", &give("1", "leo")).unwrap();
    assert!(matches!(
        &*events,
        [Event::ItemMoved(ItemMoved { what: StatusChange::Released(ReleaseReason::Taken), .. })]
    ));
    // Done without having been begun is begun and done.
    let events = step(&mut tasks, "leo", &to("1", ListTaskStatus::Completed)).unwrap();
    assert!(matches!(
        &*events,
        [
            Event::ItemMoved(ItemMoved { what: StatusChange::Claimed, .. }),
            Event::ItemMoved(ItemMoved { what: StatusChange::Completed, .. }),
        ]
    ));
    assert_eq!(state(&tasks, "1").3, 3);
}

#[test]
fn a_blocked_task_cannot_begin() {
    let mut tasks = list(3);
    step(&mut tasks, "max", &after("3", &["1", "2"])).unwrap();
    let words = step(&mut tasks, "leo", &to("3", ListTaskStatus::InProgress)).unwrap_err();
    assert!(words.starts_with("task `3` cannot begin yet: it waits for `1`, `2`; "), "{words}");
    assert!(step(&mut tasks, "leo", &to("3", ListTaskStatus::Completed)).unwrap_err().contains("waits for `1`, `2`"));
    step(&mut tasks, "leo", &to("1", ListTaskStatus::Completed)).unwrap();
    step(&mut tasks, "max", &to("2", ListTaskStatus::Deleted)).unwrap();
    step(&mut tasks, "leo", &to("3", ListTaskStatus::InProgress)).unwrap();
    assert!(step(&mut tasks, "max", &after("3", &["1"])).is_ok(), "it waits for that already");
    step(&mut tasks, "max", &create("another")).unwrap();
    assert!(step(&mut tasks, "max", &after("3", &["4"])).unwrap_err().contains("has been begun"));
    assert_eq!(tasks.items().map(|item| item.id.to_string()).collect::<Vec<_>>(), ["1", "3", "4"]);
    // Whoever claims in the same breath does not get past what they have put before it.
    let both = TaskUpdate { status: Some(ListTaskStatus::InProgress), blocked_by: vec!["3".into()], ..change("4") };
    assert!(step(&mut tasks, "ada", &ListRequest::Update(Box::new(both))).unwrap_err().contains("waits for `3`"));
}

#[test]
fn a_circle_is_named() {
    let mut tasks = list(4);
    step(&mut tasks, "max", &after("2", &["1"])).unwrap();
    let blocks = TaskUpdate { blocks: vec!["3".into()], ..change("2") };
    step(&mut tasks, "max", &ListRequest::Update(Box::new(blocks))).unwrap();
    let words = step(&mut tasks, "max", &after("1", &["4", "3"])).unwrap_err();
    assert_eq!(words, "that would be a circle: `1` waits for `3` waits for `2` waits for `1`; leave one of these out");
    assert!(tasks.find("1").unwrap().state.blocked_by.is_empty(), "all or nothing");
    assert!(step(&mut tasks, "max", &after("1", &["1"])).unwrap_err().contains("`1` waits for `1`"));
    // Two edges of one wish can make one, too.
    let both = TaskUpdate { blocks: vec!["4".into()], blocked_by: vec!["4".into()], ..change("1") };
    assert!(step(&mut tasks, "max", &ListRequest::Update(Box::new(both))).unwrap_err().contains("circle"));
}

#[test]
fn an_unknown_task_is_refused() {
    let mut tasks = list(2);
    step(&mut tasks, "max", &to("2", ListTaskStatus::Deleted)).unwrap();
    let table = [
        ("2", "task `2` was deleted; `task_query` lists the tasks"),
        ("7", "there is no task `7`; `task_query` lists the tasks"),
        ("0", "there is no task `0`; `task_query` lists the tasks"),
        ("Task 1", "there is no task `Task 1`, did you mean `1`?"),
    ];
    for (id, want) in table {
        assert_eq!(step(&mut tasks, "leo", &to(id, ListTaskStatus::Completed)).unwrap_err(), want);
    }
    assert!(
        step(&mut tasks, "leo", &to("plan:a", ListTaskStatus::Completed)).unwrap_err().contains("is a task of a plan")
    );
    let nothing = ListRequest::Update(Box::new(change("1")));
    assert!(step(&mut tasks, "leo", &nothing).unwrap_err().starts_with("say what is to change about task `1`"));
}

#[test]
fn bounds_are_said() {
    let mut tasks = list(LIST_TASKS_MAX);
    assert!(step(&mut tasks, "leo", &create("one more")).unwrap_err().contains("500 tasks and no more"));
    step(&mut tasks, "leo", &to("500", ListTaskStatus::Deleted)).unwrap();
    assert!(step(&mut tasks, "leo", &create(" ")).unwrap_err().contains("needs a `title`"));
    let words = step(&mut tasks, "leo", &create(&"x".repeat(LIST_SUBJECT_CHARS_MAX + 1))).unwrap_err();
    assert!(words.starts_with("`subject` is 201 long; at most 200 fit"), "{words}");
    let ids: Vec<String> = (2..=LIST_BLOCKERS_MAX + 2).map(|id| id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert!(step(&mut tasks, "leo", &after("1", &ids)).unwrap_err().contains("more than 64 others"));
    let events = step(&mut tasks, "leo", &create("again")).unwrap();
    assert!(matches!(&*events, [Event::ItemAdded(added)] if added.id.to_string() == "501"), "no number comes twice");
}

#[test]
fn the_text_of_a_task_can_change() {
    let mut tasks = list(1);
    let put = |value| TaskUpdate { metadata: json!({ "a": value }).as_object().unwrap().clone(), ..change("1") };
    let words = TaskUpdate { subject: Some(" new ".into()), active_form: Some("Doing".into()), ..put(json!(1)) };
    step(&mut tasks, "leo", &ListRequest::Update(Box::new(words))).unwrap();
    let text = &tasks.find("1").unwrap().text;
    assert_eq!((text.subject.as_str(), text.active_form.as_str(), &text.metadata["a"]), ("new", "Doing", &json!(1)));
    step(&mut tasks, "leo", &ListRequest::Update(Box::new(put(json!(null))))).unwrap();
    assert!(tasks.find("1").unwrap().text.metadata.is_empty());
    step(&mut tasks, "leo", &to("1", ListTaskStatus::InProgress)).unwrap();
    assert!(
        step(&mut tasks, "ada", &ListRequest::Update(Box::new(put(json!(2))))).unwrap_err().contains("held by `leo`")
    );
}

const PEOPLE: [&str; 4] = ["max", "leo", "ada", "ray"];

fn wishes() -> impl Strategy<Value = (usize, ListRequest)> {
    let id = || (0_u32..8).prop_map(|id| id.to_string());
    let ids = || prop::collection::vec(id(), 0..3);
    let owner = prop::option::of((0..PEOPLE.len()).prop_map(|who| PEOPLE[who].to_owned()));
    let status = prop::option::of((0..4_usize).prop_map(|status| ListTaskStatus::ALL[status]));
    let update = (id(), status, owner, ids(), ids()).prop_map(|(id, status, owner, blocks, blocked_by)| {
        ListRequest::Update(Box::new(TaskUpdate { id, status, owner, blocks, blocked_by, ..TaskUpdate::default() }))
    });
    let gone = any::<bool>().prop_map(|for_good| ListRequest::Gone { why: ReleaseReason::Died, for_good });
    let input = prop_oneof![2 => Just(create("x")), 6 => update, 2 => Just(ListRequest::Next), 1 => gone];
    (0..PEOPLE.len(), input)
}

proptest! {
    /// Whatever anybody wants, in any order: a task that is held is claimed by nobody else; what waits is not begun; nothing
    /// waits for itself; no number is given twice; what is done stays so; and a fold of the events is the list.
    #[test]
    fn the_rules_hold(wishes in prop::collection::vec(wishes(), 0..60)) {
        let mut tasks = TaskList::default();
        let mut log: Vec<Event> = Vec::new();
        let mut held: BTreeMap<TaskNumber, (String, u32)> = BTreeMap::new();
        let mut last = 0;
        for (who, input) in wishes {
            let before = tasks.clone();
            let Ok(events) = tasks.decide(&doer(PEOPLE[who]), &input) else { continue };
            for event in &events {
                match event {
                    Event::ItemAdded(added) => {
                        prop_assert!(added.id.0 > last);
                        last = added.id.0;
                    }
                    Event::ItemMoved(ItemMoved { id, what, state, .. }) => {
                        let was = before.items.get(id).unwrap();
                        prop_assert!(was.state.status != ListTaskStatus::Completed || *what == StatusChange::Deleted);
                        match what {
                            StatusChange::Claimed => {
                                let mut now = before.clone();
                                log.iter().chain(&events).take_while(|other| *other != event).for_each(|event| now.apply(event));
                                prop_assert!(now.blockers(&now.items[id]).next().is_none());
                                let holder = state.holder.clone().unwrap();
                                prop_assert_eq!(held.insert(*id, (holder, state.epoch)), None);
                                prop_assert_eq!(state.epoch, was.state.epoch + 1);
                            }
                            StatusChange::Released(_) | StatusChange::Completed => prop_assert!(held.remove(id).is_some()),
                            StatusChange::Deleted => drop(held.remove(id)),
                            StatusChange::Assigned | StatusChange::Blocked => prop_assert!(!held.contains_key(id)),
                        }
                    }
                    _ => {}
                }
                tasks.apply(event);
                tasks.apply(event);
            }
            log.extend(events);
            for item in tasks.items() {
                let holder = item.state.holder.clone().map(|holder| (holder, item.state.epoch));
                prop_assert_eq!(held.get(&item.id).cloned(), holder.clone());
                prop_assert_eq!(item.state.status == ListTaskStatus::InProgress, holder.is_some());
                let own: Vec<String> = vec![item.id.to_string()];
                let circle = TaskUpdate { blocked_by: own, ..change(&item.id.to_string()) };
                prop_assert!(tasks.decide(&doer("max"), &ListRequest::Update(Box::new(circle))).is_err());
            }
            prop_assert!(is_acyclic(&tasks));
        }
        let mut again = TaskList::default();
        log.iter().for_each(|event| again.apply(event));
        prop_assert_eq!(&again, &tasks);
        prop_assert_eq!(TaskList::from_rows(tasks.items().cloned(), tasks.last()), tasks);
    }
}

/// Whether tasks can be taken away one by one, each when it waits for none that is left.
fn is_acyclic(tasks: &TaskList) -> bool {
    let mut left: BTreeMap<TaskNumber, &ListTask> = tasks.items().map(|item| (item.id, item)).collect();
    while !left.is_empty() {
        let free = left.values().find(|item| !item.state.blocked_by.iter().any(|id| left.contains_key(id)));
        let Some(free) = free.map(|item| item.id) else { return false };
        left.remove(&free);
    }
    true
}
