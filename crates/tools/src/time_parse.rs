//! Times as a model writes them, and as logs do.
//!
//! `15m` is fifteen minutes ago; a date without a zone is meant in this machine's. Nothing here reads anything but the
//! clock.

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use serde_json::Value;

use crate::text::{clip, visible};
use crate::time_zone::time_zone;
use crate::tool::ToolError;

/// Bytes at the start of a line in which its time is looked for.
const STAMP_BYTES: usize = 80;
/// Bytes of a line that is taken apart as JSON.
const JSON_BYTES_MAX: usize = 64 << 10;

/// A time that a model wrote: `now`, how long ago (`15m`, `2h30m`, `7d`), or a date with or without a time.
pub(crate) fn parse(name: &str, text: &str) -> Result<Timestamp, ToolError> {
    read(text.trim()).ok_or_else(|| {
        let shown = visible(&clip(text, 60));
        ToolError::correctable(format!(
            "`{name}` is `{shown}`; write how long ago (`15m`, `2h`, `7d`) or a time like `2026-03-01T09:30:00Z`"
        ))
    })
}

fn read(text: &str) -> Option<Timestamp> {
    if text == "now" {
        return Some(Timestamp::now());
    }
    if let Some(seconds) = seconds(text) {
        return Timestamp::from_second(Timestamp::now().as_second().checked_sub(seconds)?).ok();
    }
    if let Ok(exact) = text.parse::<Timestamp>() {
        return Some(exact);
    }
    local(text.parse::<civil::DateTime>().ok()?)
}

/// How long something is, in seconds: `90s`, `15m`, `2h30m`, `7d`, `1w`.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let (mut whole, mut number) = (0_i64, None::<i64>);
    for letter in text.chars() {
        if let Some(digit) = letter.to_digit(10) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(digit.into())?);
            continue;
        }
        let unit = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return None,
        };
        whole = whole.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    (number.is_none() && !text.is_empty()).then_some(whole)
}

fn local(time: civil::DateTime) -> Option<Timestamp> {
    time.to_zoned(time_zone()).ok().map(|zoned| zoned.timestamp())
}

/// The time at the start of a line of a log, if it has one in a usual form.
pub(crate) fn stamp(line: &str) -> Option<Timestamp> {
    if line.starts_with('{') && line.len() <= JSON_BYTES_MAX {
        let entry: Value = serde_json::from_str(line).ok()?;
        return ["timestamp", "@timestamp", "time", "ts", "t", "date"].iter().find_map(|key| json(entry.get(key)?));
    }
    let head = line.get(..line.floor_char_boundary(STAMP_BYTES))?;
    iso(head).or_else(|| syslog(head)).or_else(|| common(head))
}

fn json(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => iso(text),
        number => {
            // Seconds, milliseconds, microseconds or nanoseconds: by how large it is.
            let (whole, exact) = (number.as_i64(), number.as_f64()?);
            match exact.abs() {
                ..1e11 =>
                {
                    #[expect(clippy::cast_possible_truncation, reason = "below 1e14, so it fits")]
                    Timestamp::from_millisecond((exact * 1_000.0) as i64).ok()
                }
                ..1e14 => Timestamp::from_millisecond(whole?).ok(),
                ..1e17 => Timestamp::from_microsecond(whole?).ok(),
                _ => Timestamp::from_nanosecond(whole?.into()).ok(),
            }
        }
    }
}

/// `2026-11-15T08:06:52.123Z`, `2026-11-15 08:06:52,123`, `2026/11/15 08:06:52 +0800`, after any other text.
fn iso(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let is_digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    };
    let is_date = |at: &usize| {
        let at = *at;
        is_digits(at..at + 4)
            && is_digits(at + 5..at + 7)
            && is_digits(at + 8..at + 10)
            && matches!((bytes.get(at + 4), bytes.get(at + 7)), (Some(b'-'), Some(b'-')) | (Some(b'/'), Some(b'/')))
            && matches!(bytes.get(at + 10), Some(b'T' | b't' | b' '))
            && is_digits(at + 11..at + 13)
    };
    let at = (0..bytes.len().saturating_sub(15)).find(is_date)?;
    let date = text.get(at..at + 10)?.replace('/', "-");
    let rest = text.get(at + 11..)?;
    let end = rest.find(|letter: char| !(letter.is_ascii_digit() || ":.,".contains(letter))).unwrap_or(rest.len());
    let time = rest.get(..end)?.trim_end_matches([':', '.', ',']).replace(',', ".");
    let when: civil::DateTime = format!("{date}T{time}").parse().ok()?;
    match offset(rest.get(end..)?.trim_start_matches(' ')) {
        Some(seconds) => {
            let utc = when.to_zoned(TimeZone::UTC).ok()?.timestamp();
            Timestamp::from_millisecond(utc.as_millisecond().checked_sub(seconds.checked_mul(1_000)?)?).ok()
        }
        None => local(when),
    }
}

/// A zone at the start of a text, in seconds east of UTC.
fn offset(text: &str) -> Option<i64> {
    if text.starts_with(['Z', 'z']) || text.starts_with("UTC") {
        return Some(0);
    }
    let sign = match text.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text.get(1..)?.chars().filter(|letter| *letter != ':').take(4).collect();
    let number: i64 = (digits.len() == 4).then(|| digits.parse().ok())??;
    Some(sign * (number / 100 * 3_600 + number % 100 * 60))
}

/// `Nov 15 08:06:52`: this year's, or last year's if that would be in the future.
fn syslog(text: &str) -> Option<Timestamp> {
    let mut words = text.trim_start_matches('<').split_whitespace();
    let month = month(words.next()?)?;
    let day = words.next()?.parse().ok()?;
    let time: civil::Time = words.next()?.parse().ok()?;
    let now = Timestamp::now();
    let year = now.to_zoned(time_zone()).year();
    let at = |year| civil::Date::new(year, month, day).ok().and_then(|date| local(date.to_datetime(time)));
    let tomorrow = now.as_second() + 86_400;
    at(year).filter(|at| at.as_second() < tomorrow).or_else(|| at(year - 1))
}

/// `[15/Nov/2026:08:06:52 +0000]`, as web servers write it.
fn common(text: &str) -> Option<Timestamp> {
    let (_, rest) = text.split_once('[')?;
    let (date, rest) = rest.split_once(':')?;
    let mut parts = date.split('/');
    let (day, month_name, year) = (parts.next()?, parts.next()?, parts.next()?);
    let time = rest.get(..8)?;
    let zone = rest.get(8..)?.split(']').next()?.trim();
    iso(&format!("{year}-{:02}-{day:0>2}T{time}{zone}", month(month_name)?))
}

fn month(name: &str) -> Option<i8> {
    let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let name = name.to_ascii_lowercase();
    (1..).zip(names).find(|(_, own)| *own == name).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_read() {
        let table = [
            ("90s", Some(90)),
            ("15m", Some(900)),
            ("2h30m", Some(9_000)),
            ("1w", Some(604_800)),
            ("7", None),
            ("", None),
            ("m", None),
            ("3x", None),
        ];
        for (text, want) in table {
            assert_eq!(seconds(text), want, "{text}");
        }
        assert!(parse("since", "yesterday").unwrap_err().to_string().contains("`since` is `yesterday`"));
        assert_eq!(parse("since", "2026-03-01T09:30:00Z").unwrap().as_second(), 1_772_357_400);
        let ago = Timestamp::now().as_second() - parse("since", "1h").unwrap().as_second();
        assert!((3_600..3_605).contains(&ago), "{ago}");
    }

    #[test]
    fn lines_of_logs_have_times() {
        let want = "2026-11-15T08:06:52Z".parse::<Timestamp>().unwrap();
        let lines = [
            "2026-11-15T08:06:52Z INFO started",
            "[2026-11-15T16:06:52.000+08:00] x",
            "2026/11/15 08:06:52 +0000 x",
            "level=info ts=2026-11-15T08:06:52.000Z caller=main.go",
            "127.0.0.1 - - [15/Nov/2026:09:06:52 +0100] \"GET / HTTP/1.1\" 200",
            r#"{"time":"2026-11-15T08:06:52Z","level":"info"}"#,
            r#"{"ts":1794730012.0}"#,
            r#"{"timestamp":1794730012000}"#,
        ];
        for line in lines {
            assert_eq!(stamp(line), Some(want), "{line}");
        }
        for line in ["", "no time", "    at main (a.js:1:2)", "2026-11-15", "{\"a\":1}", "10/11/12 1:2"] {
            assert_eq!(stamp(line), None, "{line}");
        }
        assert!(
            stamp("Nov 15 08:06:52 host kernel: x")
                .is_some_and(|at| at.as_second() <= Timestamp::now().as_second() + 86_400)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_line_is_looked_at(line in any::<String>(), odd in "(2026|-|/|:|T| |11|15|\\+|99|,|\\{|\\[|Nov|é){0,16}") {
            let _ = (stamp(&line), stamp(&odd), seconds(&odd), read(&odd), json(&Value::from(odd.len())));
        }
    }
}
