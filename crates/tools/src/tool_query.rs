//! The words of a search for tools, and how well a tool fits them.

use crate::tool::Spec;

/// The weight of a word in a tool's name, compared with a word of its description.
const NAME_WEIGHT: usize = 3;
/// Letters that two words may differ by at their end: `test`, `tests`, `testing`.
const ENDING_MAX: usize = 3;
/// Words that fit every tool.
const COMMON: [&str; 17] = [
    "a", "an", "and", "can", "for", "from", "how", "in", "into", "of", "on", "or", "the", "to", "tool", "tools", "with",
];

/// A query for tools.
pub(crate) struct ToolQuery {
    text: String,
    words: Vec<String>,
}

impl ToolQuery {
    pub(crate) fn new(query: &str) -> Self {
        let mut words = words(query);
        words.retain(|word| !COMMON.contains(&word.as_str()));
        Self { text: query.to_lowercase(), words }
    }

    /// How well a tool fits; 0: it does not. A tool fits if the query names it, or if more than half of the query's words
    /// are in its name or description. One common word alone would fit a tool for something else.
    pub(crate) fn score(&self, spec: &Spec) -> usize {
        let (name, about) = (words(&spec.name), words(&spec.description));
        let has = |among: &[String], word: &String| among.iter().any(|other| is_alike(word, other));
        let hits = self.words.iter().filter(|word| has(&name, word) || has(&about, word)).count();
        let is_named = self.text.contains(&spec.name.to_lowercase());
        if !is_named && hits * 2 <= self.words.len() {
            return 0;
        }
        let in_name = self.words.iter().filter(|word| has(&name, word)).count();
        usize::from(is_named) + hits + in_name * NAME_WEIGHT
    }
}

/// The lower-case words of a text; `TaskCreate` and `task_create` are two words each.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in text.chars() {
        if !letter.is_alphanumeric() || (was_lower && letter.is_uppercase()) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether two words are one word, apart from its ending.
fn is_alike(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let is_same_stem = short.len() >= ENDING_MAX && long.len() - short.len() <= ENDING_MAX && long.starts_with(short);
    one == other || is_same_stem
}

#[cfg(test)]
mod tests {
    use max_team_core::policy::Repeatability;
    use serde_json::json;

    use super::*;

    fn spec(name: &str, about: &str) -> Spec {
        let (name, description) = (name.to_owned(), about.to_owned());
        Spec { name, description, schema: json!({}), class: Repeatability::Pure, null_is_absent: false }
    }

    #[test]
    fn a_tool_fits_a_query_if_most_of_its_words_do() {
        let create = spec("task_create", "Add a task to the list that all teammates share.");
        let get = spec("web_fetch", "Fetch a page from the web.");
        for (query, tool, fits) in [
            ("create tasks", &create, true),
            ("add a task to the shared list", &create, true),
            ("TaskCreate", &create, true),
            ("create a pull request", &create, false),
            ("deploy the list of containers to a cluster", &create, false),
            ("send an email", &create, false),
            ("web_fetch or something that reads pictures", &get, true),
            ("fetch web pages", &get, true),
            ("weather", &get, false),
            ("the tool", &get, false),
            ("", &get, false),
            ("天气", &get, false),
        ] {
            assert_eq!(ToolQuery::new(query).score(tool) > 0, fits, "{query}");
        }
    }
}
