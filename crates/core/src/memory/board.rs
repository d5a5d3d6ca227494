//! The facts of one board, or of several merged, and how they are read.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Fact, Key, MemoryForgotten, MemorySet};
use serde::Serialize;

/// Facts by their keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Board {
    facts: BTreeMap<Key, Fact>,
}

impl Board {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// All of them, in the order of their keys.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.facts.values()
    }

    /// The fact under exactly this key.
    pub fn get(&self, key: &Key) -> Option<&Fact> {
        self.facts.get(key)
    }

    /// The facts at a key and below it.
    pub fn at_or_below<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = &'a Fact> {
        self.facts.values().filter(move |fact| fact.key.below(key).is_some())
    }

    /// The facts above and below a key, which cannot exist beside a fact under this key.
    pub fn related<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = &'a Fact> {
        let clash =
            move |fact: &&Fact| fact.key != *key && (fact.key.below(key).is_some() || key.below(&fact.key).is_some());
        self.facts.values().filter(clash)
    }

    /// Inserts a fact, or replaces the one under the same key.
    pub fn put(&mut self, fact: Fact) {
        self.facts.insert(fact.key.clone(), fact);
    }

    /// Folds a write in. Folding it twice changes nothing.
    pub fn set(&mut self, set: &MemorySet, at_ms: i64) {
        set.over.iter().for_each(|key| drop(self.facts.remove(key)));
        let MemorySet { key, value, by, source, .. } = set.clone();
        self.put(Fact { key, value, by, source, at_ms });
    }

    /// Folds a removal in. Folding it twice changes nothing.
    pub fn forget(&mut self, forgotten: &MemoryForgotten) {
        forgotten.keys.iter().for_each(|key| drop(self.facts.remove(key)));
    }

    /// What is under a key: the value of a fact, or an object made of the facts below; `None` if there is nothing.
    pub fn read(&self, key: &Key) -> Option<Value> {
        if let Some(fact) = self.facts.get(key) {
            return Some(fact.value.clone());
        }
        let mut tree = Map::new();
        for fact in self.at_or_below(key) {
            let parts: Vec<&str> = fact.key.below(key).unwrap_or_default().split('.').collect();
            grow(&mut tree, &parts, &fact.value);
        }
        (!tree.is_empty()).then_some(Value::Object(tree))
    }
}

/// Adds a fact to the tree. Two processes that wrote at the same moment may have left a fact above another: then the
/// deeper ones count.
fn grow(tree: &mut Map<String, Value>, path: &[&str], value: &Value) {
    match path {
        [] => {}
        [last] => drop(tree.entry(*last).or_insert_with(|| value.clone())),
        [first, rest @ ..] => {
            let inner = tree.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                grow(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::memory::{Source, Writer, forget, set};

    fn key(text: &str) -> Key {
        text.parse().unwrap()
    }

    #[test]
    fn a_section_reads_as_a_tree() {
        let mut board = Board::default();
        for (at, value) in [("notes.a.b", json!(1)), ("notes.a.c", json!([2])), ("notes.d", json!("x"))] {
            let by = Writer::Expert;
            board.put(Fact { key: key(at), value, by, source: Source::default(), at_ms: 0 });
        }
        assert_eq!(board.read(&key("notes")), Some(json!({ "a": { "b": 1, "c": [2] }, "d": "x" })));
        assert_eq!(board.read(&key("notes.a.b")), Some(json!(1)));
        assert_eq!(board.read(&key("notes.x")), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Set(MemorySet),
        Forget(MemoryForgotten),
    }

    fn fold(board: &mut Board, steps: &[(Step, i64)]) {
        for (step, at_ms) in steps {
            match step {
                Step::Set(write) => board.set(write, *at_ms),
                Step::Forget(forgotten) => board.forget(forgotten),
            }
        }
    }

    proptest! {
        /// Whatever is written and forgotten: an event that is delivered again right away, any number of times, changes
        /// nothing; no fact ever stands above another; and a board reads back what was written last.
        #[test]
        fn folding_again_changes_nothing(
            moves in prop::collection::vec((0_usize..8, any::<bool>(), 0_u8..4, 0_usize..3), 0..40),
        ) {
            const KEYS: [&str; 8] = ["notes.a", "notes.a.b", "notes.a.b.c", "notes.b", "notes", "user_profile.x",
                "user_profile.x.y", "personality"];
            let user = Writer::User("ada".into());
            let (mut once, mut often) = (Board::default(), Board::default());
            for (at_ms, (which, forgets, value, again)) in moves.into_iter().enumerate() {
                let at = key(KEYS[which]);
                let at_ms = i64::try_from(at_ms).unwrap();
                let section = Key::of(at.section());
                let is_covering = once.related(&at).any(|fact| fact.key.below(&at).is_some());
                let is_within = at != section && once.get(&section).is_some();
                if !forgets && (at == section && is_covering || is_within) {
                    prop_assert!(set(&once, &user, &at, &json!(value), &Source::default(), true).is_err());
                    continue;
                }
                let steps: Vec<(Step, i64)> = if forgets {
                    forget(&once, &user, &at, true).map(|step| (Step::Forget(step), at_ms)).into_iter().collect()
                } else {
                    let writes = set(&once, &user, &at, &json!(value), &Source::default(), true).unwrap();
                    writes.into_iter().map(|step| (Step::Set(step), at_ms)).collect()
                };
                fold(&mut once, &steps);
                for _ in 0..=again {
                    fold(&mut often, &steps);
                }
                prop_assert_eq!(&once, &often);
                let clash = once.facts().find(|fact| once.related(&fact.key).next().is_some());
                prop_assert!(clash.is_none(), "{:?}", clash);
                let left = once.read(&at);
                prop_assert_eq!(left, (!forgets).then(|| json!(value)));
            }
        }
    }
}
