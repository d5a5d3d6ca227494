//! Durations as people write them: `500ms`, `120s`, `2m`, `1h30m`; a plain number counts seconds.
//!
//! One shape like the others, in a file of its own for its small grammar. Zero is refused: no setting of ours means
//! "at once", and a timeout of nothing is always a slip.

use std::time::Duration;

use super::shape::Shape;
use super::yaml::Node;
use crate::i18n::Lang;

/// The shortest duration a setting may ask for.
const TIME_MIN: Duration = Duration::from_millis(1);
/// The longest duration a setting may ask for.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long something may take.
#[derive(Debug)]
pub struct Time;

impl Shape for Time {
    type Value = Duration;

    fn wanted(lang: Lang) -> String {
        lang.wanted_duration().to_owned()
    }

    fn read(node: &Node) -> Option<Duration> {
        duration(node.text()?).filter(|time| (TIME_MIN..=TIME_MAX).contains(time))
    }

    fn show(value: &Duration) -> String {
        match value.subsec_millis() {
            0 => format!("{}s", value.as_secs()),
            _ => format!("{}ms", value.as_millis()),
        }
    }
}

/// The duration that a text names, of any length.
pub fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let unit_at = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(unit_at);
        let unit_end = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = after;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    #[test]
    fn durations() {
        let cases = [
            ("120s", Some("120s")),
            ("120", Some("120s")),
            ("2m", Some("120s")),
            ("1h", Some("3600s")),
            ("1h30m", Some("5400s")),
            ("500ms", Some("500ms")),
            ("1.5s", Some("1500ms")),
            ("0.5", Some("500ms")),
            ("'2m'", Some("120s")),
            ("0", None),
            ("0.1ms", None),
            ("25h", None),
            ("-1s", None),
            ("s", None),
            ("5 s", None),
            ("5d", None),
            ("1e999s", None),
            ("1..5s", None),
            ("nan", None),
            ("inf", None),
            ("null", None),
            ("[1s]", None),
        ];
        for (text, expected) in cases {
            let shown = Time::read(&yaml::parse(text).unwrap()).map(|time| Time::show(&time));
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
    }
}
