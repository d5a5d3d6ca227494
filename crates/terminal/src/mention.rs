//! A mention that is being typed: where it begins, which paths fit, and how a path is written.

use std::cmp::Reverse;

use max_team_core::mention::{ENDS, is_bare, may_precede};

/// A mention that ends at the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenMention<'a> {
    /// Where its `@` stands, in bytes.
    pub(super) start: usize,
    /// The typed part of the path.
    pub(super) query: &'a str,
}

/// Finds the mention that the cursor (a byte offset) stands at the end of.
pub(super) fn open_at(text: &str, cursor: usize) -> Option<OpenMention<'_>> {
    let before = text.get(..cursor)?;
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    // The nearest `@` that may begin one: `@"a b@c` is one mention.
    let signs = before.get(line..)?.rmatch_indices('@').map(|(at, _)| line + at);
    for start in signs {
        if !may_precede(before.get(..start)?.chars().next_back()) {
            continue;
        }
        let typed = before.get(start + 1..)?;
        match typed.strip_prefix('"') {
            Some(query) if !query.contains('"') => return Some(OpenMention { start, query }),
            None if !typed.contains(|letter: char| letter.is_whitespace() || ENDS.contains(letter)) => {
                return Some(OpenMention { start, query: typed });
            }
            _ => {}
        }
    }
    None
}

/// A path as a mention: in quotes where it would end too early. A folder's stays open, so that typing goes on inside it.
pub(super) fn written(path: &str) -> String {
    match (is_bare(path), path.ends_with('/')) {
        (true, true) => format!("@{path}"),
        (true, false) => format!("@{path} "),
        (false, true) => format!("@\"{path}"),
        (false, false) => format!("@\"{path}\" "),
    }
}

/// The paths that fit a query, best first, at most `max`. Letter case does not count.
pub(super) fn rank<'a>(query: &str, paths: impl IntoIterator<Item = &'a str>, max: usize) -> Vec<&'a str> {
    let query = query.strip_prefix("./").unwrap_or(query).to_lowercase();
    let mut fits: Vec<(Fit, usize, usize, &str)> = paths
        .into_iter()
        .filter_map(|path| {
            Some((fit(&query, path)?, path.trim_end_matches('/').matches('/').count(), path.len(), path))
        })
        .collect();
    let best = |fits: &(Fit, usize, usize, &'a str)| {
        (Reverse(fits.0), fits.1, if query.is_empty() { 0 } else { fits.2 }, fits.3)
    };
    if fits.len() > max && max > 0 {
        fits.select_nth_unstable_by_key(max - 1, best);
        fits.truncate(max);
    }
    fits.sort_unstable_by_key(best);
    fits.into_iter().take(max).map(|(.., path)| path).collect()
}

/// How well a path fits, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The letters come in this order somewhere in the path …
    Letters,
    /// … or in the name.
    NameLetters,
    InPath,
    InName,
    NameStart,
    PathStart,
    Name,
}

fn fit(query: &str, path: &str) -> Option<Fit> {
    let path = path.to_lowercase();
    let bare = path.trim_end_matches('/');
    let name = bare.rsplit('/').next().unwrap_or_default();
    if path == *query {
        // Nothing is left to complete.
        return (!path.ends_with('/')).then_some(Fit::Name);
    }
    Some(match query {
        query if name == query || name.split_once('.').is_some_and(|(stem, _)| stem == query) => Fit::Name,
        query if path.starts_with(query) => Fit::PathStart,
        query if name.starts_with(query) => Fit::NameStart,
        query if name.contains(query) => Fit::InName,
        query if path.contains(query) => Fit::InPath,
        query if has_letters(name, query) => Fit::NameLetters,
        query if has_letters(bare, query) => Fit::Letters,
        _ => return None,
    })
}

fn has_letters(text: &str, query: &str) -> bool {
    let mut text = text.chars();
    query.chars().all(|letter| text.any(|other| other == letter))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_mention_at_the_cursor_is_found() {
        // `|` is the cursor.
        let cases: [(&str, Option<(usize, &str)>); 16] = [
            ("@|", Some((0, ""))),
            ("@sr|", Some((0, "sr"))),
            ("see @src/ma|", Some((4, "src/ma"))),
            ("see @src/ma|in.rs", Some((4, "src/ma"))),
            ("see @a.rs |", None),
            ("me@exa|", None),
            ("@\"my fi|", Some((0, "my fi"))),
            ("@\"a b@c|", Some((0, "a b@c"))),
            ("@\"my file\" |", None),
            ("@\"my file\"|", None),
            ("@a\n@b|", Some((3, "b"))),
            ("@a\nb|", None),
            ("看@文|", Some((3, "文"))),
            ("no mention|", None),
            ("(@a|)", Some((1, "a"))),
            ("@a,|", Some((0, "a,"))),
        ];
        for (text, want) in cases {
            let cursor = text.find('|').unwrap();
            let text = text.replace('|', "");
            assert_eq!(open_at(&text, cursor).map(|open| (open.start, open.query)), want, "{text}");
        }
        assert_eq!(open_at("中", 1), None, "not between two characters");
    }

    #[test]
    fn a_path_is_written_so_that_it_is_found_again() {
        for (path, want) in [
            ("src/main.rs", "@src/main.rs "),
            ("src/", "@src/"),
            ("my file.txt", "@\"my file.txt\" "),
            ("my folder/", "@\"my folder/"),
            ("笔记.md", "@\"笔记.md\" "),
        ] {
            assert_eq!(written(path), want);
            if !path.ends_with('/') {
                let found = max_team_core::mention::find(&format!("{want}rest"));
                assert_eq!(found.first().and_then(|mention| mention.spellings.first()).map(String::as_str), Some(path));
            }
        }
    }

    #[test]
    fn the_best_fit_comes_first() {
        let paths = [
            "README.md",
            "docs/",
            "docs/main.md",
            "src/",
            "src/main.rs",
            "src/domain.rs",
            "src/my_app_in.rs",
            "tests/it/main.rs",
        ];
        let cases: [(&str, &[&str]); 8] = [
            ("", &["README.md", "docs/", "src/", "docs/main.md", "src/domain.rs"]),
            ("main", &["src/main.rs", "docs/main.md", "tests/it/main.rs", "src/domain.rs", "src/my_app_in.rs"]),
            ("MAIN.rs", &["src/main.rs", "tests/it/main.rs", "src/domain.rs", "src/my_app_in.rs"]),
            ("src/", &["src/main.rs", "src/domain.rs", "src/my_app_in.rs"]),
            ("./src/m", &["src/main.rs", "src/my_app_in.rs", "src/domain.rs"]),
            ("sdr", &["src/domain.rs"]),
            ("src/main.rs", &["src/main.rs", "src/domain.rs", "src/my_app_in.rs"]),
            ("zzz", &[]),
        ];
        for (query, want) in cases {
            assert_eq!(rank(query, paths, 5), want, "{query}");
        }
        assert_eq!(rank("main", paths, 0), [""; 0]);
    }

    proptest! {
        #[test]
        fn a_shorter_list_is_the_beginning_of_a_longer_one(
            query in "[a-c/]{0,3}", paths in prop::collection::vec("[a-c]{1,3}(/[a-c]{1,3}){0,2}/?", 0..20), max in 0_usize..10
        ) {
            let all = rank(&query, paths.iter().map(String::as_str), usize::MAX);
            let some = rank(&query, paths.iter().map(String::as_str), max);
            prop_assert_eq!(some, all.into_iter().take(max).collect::<Vec<_>>());
        }
    }
}
