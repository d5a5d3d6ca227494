//! Numbers the way people read them: tokens, money, time, sizes.
//!
//! Rounded for the eye, in whole-number arithmetic; nothing here is ever computed with further. The same figures are
//! used in both languages.

/// `950`, `1.2k`, `34k`, `1.2M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..=999 => count.to_string(),
        1_000..=9_999 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        10_000..=999_999 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// `$0.0012`, `$0.31`, `$12.40`. What costs anything is never shown as nothing.
pub fn dollars(nano: u64) -> String {
    match nano / 100_000 {
        0 if nano == 0 => "$0".to_owned(),
        0 => "<$0.0001".to_owned(),
        parts if parts < 1_000 => format!("$0.{parts:04}"),
        parts => {
            let cents = (parts + 50) / 100;
            format!("${}.{:02}", cents / 100, cents % 100)
        }
    }
}

/// Formats spent money; `≈ $0.31` if a part is estimated.
pub fn spent(nano: u64, unknown_nano: u64) -> String {
    format!("{}{}", if unknown_nano > 0 { "≈ " } else { "" }, dollars(nano))
}

/// `0.4 s`, `12 s`, `3 min 5 s`, `2 h 4 min`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..=9 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        10..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// The same for a clock that runs: no tenths.
pub fn whole_seconds(ms: u64) -> String {
    if ms < 10_000 { format!("{} s", ms / 1_000) } else { duration(ms) }
}

/// Whole seconds, rounded up: what is left of a wait.
pub fn seconds_up(ms: u64) -> u64 {
    ms.div_ceil(1_000)
}

/// `310 B`, `4.2 kB`, `1.3 MB`.
pub fn bytes(count: usize) -> String {
    match count {
        0..=999 => format!("{count} B"),
        1_000..=999_999 => format!("{}.{} kB", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{} MB", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// The milliseconds between two times; none if the clock went back.
pub fn since(then_ms: i64, now_ms: i64) -> u64 {
    u64::try_from(now_ms.saturating_sub(then_ms)).unwrap_or(0)
}

/// Local time to the second.
pub fn local(at_ms: i64) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(at_ms) else { return at_ms.to_string() };
    at.to_zoned(max_team_tools::time_zone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The end of an id: enough to name it.
pub fn short(id: &impl ToString) -> String {
    let full = id.to_string();
    let from = full.len().saturating_sub(8);
    full.get(from..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1_234, 34_900, 1_250_000].map(tokens), ["0", "999", "1.2k", "34k", "1.2M"]);
        let nano = [0, 10, 1_230_000, 99_900_000, 137_800_000, 310_000_000, 12_399_000_000];
        assert_eq!(nano.map(dollars), ["$0", "<$0.0001", "$0.0012", "$0.0999", "$0.14", "$0.31", "$12.40"]);
        assert_eq!([400, 12_900, 185_000, 7_440_000].map(duration), ["0.4 s", "12 s", "3 min 5 s", "2 h 4 min"]);
        assert_eq!([310, 4_200, 1_300_000].map(bytes), ["310 B", "4.2 kB", "1.3 MB"]);
        assert_eq!((since(5, 9), since(9, 5), seconds_up(1_001)), (4, 0, 2));
    }

    #[test]
    fn ids_are_named_by_their_end() {
        assert_eq!(short(&"ses_0123456789abcdef"), "89abcdef");
    }
}
