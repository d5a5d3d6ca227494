//! Money as people write it becomes whole nano-dollars, which is all that anything else computes with.

/// The nano-dollars in an amount of dollars; none for what is no amount.
pub fn nano_dollars(dollars: f64) -> Option<u64> {
    let nano = (dollars * 1e9).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
    (nano.is_finite() && (0.0..1.8e19).contains(&nano)).then_some(nano as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_become_whole_nano_dollars() {
        assert_eq!(nano_dollars(0.000_000_003), Some(3));
        assert_eq!(nano_dollars(2.5), Some(2_500_000_000));
        assert_eq!([nano_dollars(-1.0), nano_dollars(f64::NAN), nano_dollars(1e30)], [None; 3]);
    }
}
