//! Times as people and other programs read them. Stored times are milliseconds since 1970, UTC.

/// RFC 3339 in UTC, to the millisecond.
pub fn rfc3339(at_ms: i64) -> String {
    let (days, ms) = (at_ms.div_euclid(86_400_000), at_ms.rem_euclid(86_400_000));
    // Days since 0000-03-01, in eras of 400 years: the leap day is then the last day of its year.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    // Every line of the audit file has one: digits are put together by hand, which takes a tenth of what formats do.
    let mut text = String::with_capacity(24);
    if (0..10_000).contains(&year) {
        push(&mut text, year, 4);
    } else {
        text.push_str(&year.to_string());
    }
    text.push('-');
    for (number, digits, behind) in
        [(month, 2, '-'), (day, 2, 'T'), (hour, 2, ':'), (minute, 2, ':'), (second, 2, '.'), (ms % 1_000, 3, 'Z')]
    {
        push(&mut text, number, digits);
        text.push(behind);
    }
    text
}

/// Writes so many digits of a number.
fn push(text: &mut String, number: i64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = number / 10_i64.pow(place) % 10;
        text.push(char::from(b'0' + u8::try_from(digit).unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339() {
        let known = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z"),
            (1_798_761_599_000, "2026-12-31T23:59:59.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            // Nonsense is seen to be some.
            (253_402_300_800_000, "10000-01-01T00:00:00.000Z"),
        ];
        for (at_ms, text) in known {
            assert_eq!(rfc3339(at_ms), text);
        }
    }
}
