//! Which answers serve again, by tables and by property.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agent::{CachePolicy, Isolation};

const NOW: i64 = 1_700_000_000_000;
const PLACE: &str = "/home/ada/project";

fn weather(keys: &[&str]) -> Definition {
    Definition {
        name: "weather".into(),
        prompt: "Say how the weather is.".into(),
        tools: vec!["http_get".into(), "geocode".into()],
        cache: Some(CachePolicy { ttl_s: 60, keys: keys.iter().map(|key| (*key).to_owned()).collect() }),
        ..Definition::default()
    }
}

fn asked(args: &Value) -> CacheKey {
    CacheKey::for_call(&weather(&["city"]), PLACE, args).unwrap()
}

fn entry(args: &Value) -> CacheEntry {
    let data = Some(json!({ "temp": 5 }));
    CacheEntry { key: asked(args).key, raw: args.clone(), data, text: "5 °C.".into(), created_at_ms: NOW, ttl_s: 60 }
}

#[test]
fn only_relevant_arguments_change_the_cache_key() {
    let (args, home) = (json!({ "city": "北京", "units": "C" }), weather(&["city", "day"]));
    let key = |definition: &Definition, args: &Value| CacheKey::for_call(definition, PLACE, args).unwrap().key;
    let known = key(&home, &args);
    assert!(known.len() == 12 && known.bytes().all(|digit| digit.is_ascii_hexdigit()), "{known}");
    let change = |change: fn(&mut Definition)| {
        let mut definition = home.clone();
        change(&mut definition);
        definition
    };
    let cache = |keys: &[&str], ttl_s| Some(CachePolicy { ttl_s, ..weather(keys).cache.unwrap() });
    let same = [
        ("units do not count", home.clone(), json!({ "city": "北京", "units": "F" })),
        ("nor does the time to live", Definition { cache: cache(&["city", "day"], 9), ..home.clone() }, args.clone()),
        ("nor the order of keys", Definition { cache: cache(&["day", "city"], 60), ..home.clone() }, args.clone()),
        ("nor that of tools", change(|home| home.tools.reverse()), args.clone()),
        ("nor a colour", change(|home| home.color = Some("red".into())), args.clone()),
    ];
    for (what, definition, args) in same {
        assert_eq!(key(&definition, &args), known, "{what}");
    }
    let other = [
        ("another city", home.clone(), json!({ "city": "上海" })),
        ("a key that is there", home.clone(), json!({ "city": "北京", "day": "today" })),
        ("even if it is nothing", home.clone(), json!({ "city": "北京", "day": null })),
        ("another prompt", change(|home| home.prompt.push('!')), args.clone()),
        ("another tool", change(|home| home.tools.push("read_file".into())), args.clone()),
        ("another key", Definition { cache: cache(&["city"], 60), ..home.clone() }, args.clone()),
    ];
    for (what, definition, args) in other {
        assert_ne!(key(&definition, &args), known, "{what}");
    }
    assert_ne!(CacheKey::for_call(&home, "/elsewhere", &args).unwrap().key, known, "another project");
    assert_eq!(CacheKey::for_call(&Definition { cache: None, ..home.clone() }, PLACE, &args), None);
    assert_eq!(CacheKey::for_call(&Definition { cache: cache(&["city"], 0), ..home }, PLACE, &args), None);
}

#[test]
fn a_task_of_a_plan_is_the_same_if_all_that_its_owner_is_told_is() {
    let (home, model) = (weather(&["city"]), "anthropic/opus");
    let task = TaskDraft { id: "sky".into(), description: "Say how it is in Berlin.".into(), ..TaskDraft::default() };
    let upstream = |text: &str| vec![("answer of `place`".to_owned(), Hash::of(text))];
    let step = |definition: &Definition, place: &str, model: &str, task: &TaskDraft, upstream: &[(String, Hash)]| {
        CacheKey::step(definition, place, model, task, upstream).map(|asked| asked.key)
    };
    let known = step(&home, PLACE, model, &task, &upstream("Berlin")).unwrap();
    let with = |change: fn(&mut TaskDraft)| {
        let mut task = task.clone();
        change(&mut task);
        task
    };
    let same = [
        ("its name in the plan", with(|task| task.id = "weather".into())),
        ("what it may use", with(|task| (task.retry, task.timeout_ms) = (0, Some(1)))),
        ("when it runs", with(|task| task.when = Some("place.ok".into()))),
    ];
    for (what, task) in same {
        assert_eq!(step(&home, PLACE, model, &task, &upstream("Berlin")).as_ref(), Some(&known), "{what}");
    }
    let prompted = Definition { prompt: "Guess.".into(), ..home.clone() };
    let other = [
        ("another text", step(&home, PLACE, model, &with(|task| task.description.push('!')), &upstream("Berlin"))),
        ("another title", step(&home, PLACE, model, &with(|task| task.title = "Sky".into()), &upstream("Berlin"))),
        ("another result to build on", step(&home, PLACE, model, &task, &upstream("Bremen"))),
        ("none", step(&home, PLACE, model, &task, &[])),
        ("another model", step(&home, PLACE, "anthropic/haiku", &task, &upstream("Berlin"))),
        ("another definition", step(&prompted, PLACE, model, &task, &upstream("Berlin"))),
        ("another project", step(&home, "/elsewhere", model, &task, &upstream("Berlin"))),
    ];
    for (what, key) in other {
        assert!(key.is_some_and(|key| key != known), "{what}");
    }
    let never = [
        ("a file", with(|task| task.outputs.push("sky.md".into()))),
        ("a check", with(|task| task.verify.push("true".into()))),
        ("paths of its own", with(|task| task.owns = Some(vec!["docs/**".into()]))),
        ("a copy", with(|task| task.isolation = Isolation::Worktree)),
    ];
    for (what, task) in never {
        assert_eq!(step(&home, PLACE, model, &task, &[]), None, "{what}");
    }
    let (fleeting, forgetful) = (Some(CachePolicy { ttl_s: 0, keys: Vec::new() }), None);
    for cache in [fleeting, forgetful] {
        assert_eq!(step(&Definition { cache, ..home.clone() }, PLACE, model, &task, &[]), None);
    }
    // Its answer is found again, and by nobody who makes a call.
    let asked = CacheKey::step(&home, PLACE, model, &task, &upstream("Berlin")).unwrap();
    let raw = asked.step.clone().unwrap();
    let told = ExpertReply { text: "---RESULT---\n5\n---TEXT---\n5 °C.".into(), ..ExpertReply::default() };
    let kept = asked.entry_for(raw.clone(), told.clone(), &[], NOW).unwrap();
    assert_eq!((&kept.text, &kept.data), (&told.text, &None), "as it was said");
    assert_eq!(asked.find(std::slice::from_ref(&kept), &raw, NOW), CacheLookup::Answer(kept.clone()));
    assert_eq!(CacheKey::for_call(&home, PLACE, &raw).unwrap().find(&[kept], &raw, NOW), CacheLookup::Nothing);
}

#[test]
fn ages_are_said_in_the_unit_that_fits() {
    for (minutes, want) in [
        (0, "less than a minute old"),
        (12, "12 min old"),
        (119, "119 min old"),
        (120, "2 h old"),
        (47 * 60, "47 h old"),
        (49 * 60, "2 days old"),
    ] {
        assert_eq!(AnswerAge::from_ms(minutes * 60_000 + 59_999).to_string(), want);
    }
}

#[test]
fn without_keys_every_argument_counts() {
    let key = |args: Value| CacheKey::for_call(&weather(&[]), PLACE, &args).unwrap().key;
    assert_eq!(key(json!({ "a": 1, "b": 2 })), key(json!({ "b": 2, "a": 1 })));
    assert_ne!(key(json!({ "a": 1, "b": 2 })), key(json!({ "a": 1 })));
}

#[test]
fn an_entry_answers_hands_over_or_is_nothing() {
    let (args, other) = (json!({ "city": "Berlin" }), json!({ "city": "Berlin", "units": "F" }));
    let known = entry(&args);
    let name = |found: CacheLookup| match found {
        CacheLookup::Answer(_) => "answer",
        CacheLookup::Data(_) => "data",
        CacheLookup::Nothing => "nothing",
    };
    let like = CacheEntry { created_at_ms: NOW - 9, ..entry(&other) };
    let table = [
        (vec![known.clone()], &args, NOW, "answer"),
        (vec![known.clone()], &args, NOW + 59_999, "answer"),
        (vec![known.clone()], &args, NOW + 60_000, "nothing"),
        (vec![known.clone()], &args, NOW - 1, "nothing"),
        (vec![known.clone()], &other, NOW, "data"),
        (vec![known.clone()], &other, NOW + 60_000, "nothing"),
        (vec![known.clone(), like.clone()], &other, NOW, "data"),
        (vec![known.clone(), like.clone()], &args, NOW, "answer"),
        (vec![known.clone(), like.clone()], &args, NOW + 59_995, "answer"),
        (vec![CacheEntry { text: String::new(), ..known.clone() }], &args, NOW, "data"),
        (vec![CacheEntry { data: None, ..known.clone() }], &args, NOW, "answer"),
        (vec![CacheEntry { data: None, ..known.clone() }], &other, NOW, "nothing"),
        (vec![CacheEntry { ttl_s: 10, ..known.clone() }], &args, NOW + 10_000, "nothing"),
        (vec![CacheEntry { ttl_s: 999, ..known.clone() }], &args, NOW + 60_000, "nothing"),
        (vec![CacheEntry { key: "0".repeat(12), ..known.clone() }], &args, NOW, "nothing"),
        (vec![], &args, NOW, "nothing"),
    ];
    for (entries, args, now_ms, want) in table {
        assert_eq!(name(asked(args).find(&entries, args, now_ms)), want, "{entries:?} at {now_ms}");
    }
    let third = json!({ "city": "Berlin", "units": "K" });
    assert_eq!(asked(&third).find(&[like, known.clone()], &third, NOW), CacheLookup::Data(known), "the newest");
}

#[test]
fn a_derived_entry_is_as_old_as_its_source() {
    let args = json!({ "city": "Berlin" });
    let (fresh, before) = (asked(&args), entry(&args));
    let handed = CacheKey { handed_at_ms: Some(NOW), ..fresh.clone() };
    let later = NOW + 30_000;
    let keep = |asked: &CacheKey, answer: &str, before: Option<&CacheEntry>| {
        let kept = asked.entry_for(
            args.clone(),
            ExpertReply::parse(answer),
            before.map(std::slice::from_ref).unwrap_or_default(),
            later,
        );
        kept.map(|kept| (kept.data, kept.text, kept.created_at_ms))
    };
    let both = "---RESULT---\n{\"temp\":6}\n---TEXT---\n6 °C.";
    let six = Some(json!({ "temp": 6 }));
    assert_eq!(keep(&fresh, both, None), Some((six.clone(), "6 °C.".into(), later)));
    assert_eq!(keep(&handed, both, Some(&before)), Some((six.clone(), "6 °C.".into(), later)));
    assert_eq!(keep(&fresh, "6 °C.\n---CACHE---\n{\"temp\":6}", None), Some((six.clone(), "6 °C.".into(), later)));
    assert_eq!(keep(&handed, "Cold.", Some(&before)), Some((before.data.clone(), "Cold.".into(), NOW)));
    assert_eq!(keep(&fresh, "Cold.", None), Some((None, "Cold.".into(), later)));
    assert_eq!(keep(&fresh, "---RESULT---\n{\"temp\":6}", None), Some((six, String::new(), later)));
    let newer = CacheEntry { created_at_ms: NOW + 1, ..before };
    assert_eq!(keep(&handed, "Cold.", Some(&newer)), None, "what its words are about is gone");
    assert_eq!(keep(&handed, "Cold.", None), None);
    assert_eq!(keep(&fresh, "---RESULT---\n{temp\n---TEXT---\nCold.", None), None, "a slip is not repeated");
    assert_eq!(keep(&fresh, " ", None), None);
    assert_eq!(keep(&fresh, "---RESULT---\nnull", None), None);
    assert_eq!(keep(&fresh, &"x".repeat(CACHE_ENTRY_BYTES_MAX), None), None);
}

#[test]
fn the_old_and_the_oldest_make_room() {
    let at = |number: usize, created_at_ms| CacheEntry { created_at_ms, ..entry(&json!({ "city": number })) };
    let millis = |number: usize| NOW + i64::try_from(number).unwrap();
    let mut full: Vec<CacheEntry> = (0..CACHE_ENTRIES_MAX).map(|number| at(number, millis(number))).collect();
    let now_ms = NOW + 1_000;
    let new = at(CACHE_ENTRIES_MAX + 1, now_ms);
    assert_eq!(dropped(&full, &new, now_ms), [at(0, 0).id()]);
    assert_eq!(dropped(&full, &at(7, now_ms), now_ms), [""; 0], "it takes its own place");
    full.push(at(CACHE_ENTRIES_MAX, NOW - 60_000));
    assert_eq!(dropped(&full, &new, now_ms), [at(CACHE_ENTRIES_MAX, 0).id(), at(0, 0).id()]);
}

#[test]
fn newer_data_displaces_older_answers_under_the_same_key() {
    let (celsius, fahrenheit) = (json!({ "city": "北京", "units": "C" }), json!({ "city": "北京", "units": "F" }));
    let (old, elsewhere) = (entry(&celsius), entry(&json!({ "city": "上海" })));
    let at = |data: Option<Value>, later_ms| CacheEntry { data, created_at_ms: NOW + later_ms, ..entry(&fahrenheit) };
    let entries = [old.clone(), elsewhere.clone()];
    for (what, new, gone, answered) in [
        ("newer data", at(Some(json!({ "temp": 9 })), 5), true, false),
        ("words about the same data", at(old.data.clone(), 0), false, true),
        ("words without data", at(None, 5), false, true),
    ] {
        let wanted: Vec<String> = gone.then(|| old.id()).into_iter().collect();
        assert_eq!(dropped(&entries, &new, NOW + 10), wanted, "{what}");
        // Entries of earlier versions were not dropped: they do not answer either.
        let all = [old.clone(), new.clone(), elsewhere.clone()];
        let found = asked(&celsius).find(&all, &celsius, NOW + 10);
        assert_eq!(found, if answered { CacheLookup::Answer(old.clone()) } else { CacheLookup::Data(new) }, "{what}");
    }
}

#[test]
fn data_that_is_handed_back_unchanged_gets_no_younger() {
    let (args, old) = (json!({ "city": "北京", "units": "F" }), entry(&json!({ "city": "北京", "units": "C" })));
    let asked = CacheKey { handed_at_ms: Some(NOW), ..asked(&args) };
    let told = |data: Value| ExpertReply { result: Some(data), text: "41 °F.".into(), ..ExpertReply::default() };
    for (data, at_ms) in [(json!({ "temp": 5 }), NOW), (json!({ "temp": 6 }), NOW + 7)] {
        let kept = asked.entry_for(args.clone(), told(data), std::slice::from_ref(&old), NOW + 7).unwrap();
        assert_eq!(kept.created_at_ms, at_ms);
    }
}

#[test]
fn the_message_to_an_expert_can_be_parsed() {
    let args = json!({ "city": "北京" });
    assert_eq!(message(&args, None), r#"{"args":{"city":"北京"},"cache_data":null}"#);
    assert_eq!(arguments(&message(&args, Some(&json!([1])))), Some(args));
    assert_eq!(arguments("words"), None);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z北]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-d]", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value with the members of every object the other way round.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn order_of_members_and_keys_does_not_matter(value in values(), rest in values()) {
        let args = json!({ "city": value, "more": rest });
        let turned = reversed(&args);
        prop_assert_eq!(canonical(&args), canonical(&turned));
        let one = CacheKey::for_call(&weather(&["city", "more"]), PLACE, &args);
        prop_assert_eq!(&one, &CacheKey::for_call(&weather(&["more", "city", "more"]), PLACE, &turned));
    }

    #[test]
    fn different_values_have_different_forms(one in values(), other in values()) {
        prop_assert_eq!(one == other, canonical(&one) == canonical(&other));
    }

    #[test]
    fn a_changed_prompt_is_another_version(prompt in "[a-z ]{0,20}") {
        let home = weather(&["city"]);
        let other = Definition { prompt: prompt.clone(), ..home.clone() };
        let args = json!({ "city": "Berlin" });
        let same = CacheKey::for_call(&home, PLACE, &args) == CacheKey::for_call(&other, PLACE, &args);
        prop_assert_eq!(same, prompt == home.prompt);
    }
}
