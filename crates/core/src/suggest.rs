//! The name that was probably meant.
//!
//! For messages only: no code ever acts on the guess.

use crate::limits::NAMES_TOLD_MAX;

/// Bytes of a name that is compared; comparing takes time with the product of both lengths.
const NAME_BYTES_MAX: usize = 64;
/// Names that are compared; names beyond this number are never suggested.
const NAMES_MAX: usize = 1_000;

/// `, did you mean `x`?`, or nothing when none of the names is near.
pub fn did_you_mean<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(asked, names).map(|name| format!(", did you mean `{name}`?")).unwrap_or_default()
}

/// The end of a message about an unknown name: the nearest name, if any is near, and the names there are, as far as
/// [`NAMES_TOLD_MAX`] goes.
pub fn candidates<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let near = did_you_mean(asked, names.iter().copied());
    let mut told: Vec<String> = names.iter().take(NAMES_TOLD_MAX).map(|name| format!("`{name}`")).collect();
    if let more @ 1.. = names.len().saturating_sub(NAMES_TOLD_MAX) {
        told.push(format!("and {more} more"));
    }
    let there = if told.is_empty() { "none".to_owned() } else { told.join(", ") };
    let end = if near.is_empty() { ";" } else { "" };
    format!("{near}{end} there are {there}")
}

/// The nearest of the names, if any is near.
pub fn nearest<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().take(NAMES_MAX).filter_map(|name| Some((slips(asked, name)?, name)));
    near.min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

/// The number of typos that turn `asked` into `name`; `None` if they are different words.
pub fn slips(asked: &str, name: &str) -> Option<usize> {
    if asked.is_empty() || asked.len().max(name.len()) > NAME_BYTES_MAX {
        return None;
    }
    let letters = |name: &str| -> Vec<char> { name.chars().flat_map(char::to_lowercase).collect() };
    let (asked, name) = (letters(asked), letters(name));
    // One slip in three letters; a word of one or two letters is another word at once.
    let allowed = (name.len() / 3).max(usize::from(name.len() > 2));
    if name.len().abs_diff(asked.len()) > allowed {
        return None;
    }
    Some(distance(&asked, &name)).filter(|slips| *slips <= allowed)
}

/// Letters that have to be put in, taken out, replaced or swapped with their neighbour to make one word the other.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    let mut above = None;
    for (at, letter) in one.iter().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(at + 1);
        let mut left = None;
        for (column, letter_other) in other.iter().enumerate() {
            let cost = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let swapped = above == Some(letter_other) && left == Some(letter);
            let mut best = cost(&row, column) + usize::from(letter != letter_other);
            best = best.min(cost(&row, column + 1) + 1).min(cost(&next, column) + 1);
            if swapped {
                best = best.min(cost(&before, column.wrapping_sub(1)) + 1);
            }
            next.push(best);
            left = Some(letter_other);
        }
        above = Some(letter);
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        let table = [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("leo", "leo", 0),
            ("leo", "loe", 1),
            ("leo", "lea", 1),
            ("design", "desing", 1),
            ("kitten", "sitting", 3),
            ("设计", "设记", 1),
        ];
        for (one, other, want) in table {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(distance(&letters(one), &letters(other)), want, "{one} {other}");
            assert_eq!(distance(&letters(other), &letters(one)), want, "{other} {one}");
        }
    }

    #[test]
    fn only_close_names_are_suggested() {
        let names = ["max", "leo", "ada", "ray", "sam", "design-api", "design-db"];
        let table = [
            ("loe", ", did you mean `leo`?"),
            ("Leo", ", did you mean `leo`?"),
            ("adda", ", did you mean `ada`?"),
            ("desing-api", ", did you mean `design-api`?"),
            ("leonardo", ""),
            ("x", ""),
            ("", ""),
        ];
        for (asked, want) in table {
            assert_eq!(did_you_mean(asked, names), want, "{asked}");
        }
        assert_eq!(did_you_mean(&"leo".repeat(100), names), "");
    }

    #[test]
    fn candidates_are_told_within_a_bound() {
        assert_eq!(candidates("loe", ["leo", "ada"]), ", did you mean `leo`? there are `leo`, `ada`");
        assert_eq!(candidates("x", []), "; there are none");
        let many: Vec<String> = (0..608).map(|number| format!("e{number:03}")).collect();
        let told = candidates("e60o", many.iter().map(String::as_str));
        assert!(told.starts_with(", did you mean `e600`?") && told.ends_with("and 568 more"), "{told}");
    }
}
