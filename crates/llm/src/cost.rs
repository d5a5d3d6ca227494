//! Money as people write it.
//!
//! Sums and prices are whole nano-dollars everywhere else; only here do they become text, or come from a fraction of
//! a dollar.

use max_team_core::ledger::NANO;

/// `$12.34`; below a dollar with four places, below those `<$0.0001`.
pub fn dollars(nano: u64) -> String {
    const CENT: u64 = NANO / 100;
    const TENTH_OF_MILL: u64 = NANO / 10_000;
    match nano {
        0 => "$0".into(),
        1..TENTH_OF_MILL => "<$0.0001".into(),
        // Rounded to the places that are shown; what rounds up to a dollar is shown as one.
        _ if nano < NANO - TENTH_OF_MILL / 2 => format!("$0.{:04}", (nano + TENTH_OF_MILL / 2) / TENTH_OF_MILL),
        _ => {
            let cents = nano.saturating_add(CENT / 2) / CENT;
            format!("${}.{:02}", cents / 100, cents % 100)
        }
    }
}

/// The nano-dollars in an amount of dollars; none for what is no amount.
pub fn nano(dollars: f64) -> Option<u64> {
    let nano = (dollars * 1e9).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
    (nano.is_finite() && (0.0..1.8e19).contains(&nano)).then_some(nano as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well() {
        let table = [
            (0, "$0"),
            (1, "<$0.0001"),
            (99_999, "<$0.0001"),
            (100_000, "$0.0001"),
            (12_345_678, "$0.0123"),
            (999_940_000, "$0.9999"),
            (999_960_000, "$1.00"),
            (NANO, "$1.00"),
            (1_234_567_890_123, "$1234.57"),
            (u64::MAX, "$18446744073.70"),
        ];
        for (nano, want) in table {
            assert_eq!(dollars(nano), want, "{nano}");
        }
        assert_eq!(nano(0.000_000_003), Some(3));
        assert_eq!(nano(2.5), Some(2_500_000_000));
        assert_eq!([nano(-1.0), nano(f64::NAN), nano(1e30)], [None; 3]);
    }
}
