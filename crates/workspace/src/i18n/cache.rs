//! The phrases of answers that are kept. Arguments, data and words are passed through as they are.

use max_team_core::delegation::cache::AnswerAge;

use super::{Lang, heads};

impl Lang {
    pub fn age(self, age: AnswerAge) -> String {
        match age {
            AnswerAge::Moments => self.age_moments().to_owned(),
            AnswerAge::Minutes(minutes) => self.age_minutes(minutes),
            AnswerAge::Hours(hours) => self.age_hours(hours),
            AnswerAge::Days(days) => self.age_days(days),
        }
    }

    pub fn cache_heads(self) -> [&'static str; 5] {
        heads(self.cache_heads_row())
    }

    /// How much time there still is, never more than that.
    pub fn time_left(self, ms: u64) -> String {
        const MINUTE_S: u64 = 60;
        match ms / 1_000 {
            seconds @ 0..MINUTE_S => self.s_left(seconds),
            seconds => {
                let minutes = seconds / MINUTE_S;
                self.min_left(minutes)
            }
        }
    }

    pub fn nothing_cached_of(self, expert: &str, key: Option<&str>) -> String {
        match key {
            None => self.no_cached_answers_of(expert),
            Some(key) => self.no_cached_answers_under(expert, key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_rounded_down() {
        for (ms, want) in
            [(8_400, "8 s left"), (60_000, "1 min left"), (119_999, "1 min left"), (7_200_000, "120 min left")]
        {
            assert_eq!(Lang::En.time_left(ms), want);
        }
    }

    #[test]
    fn ages_are_the_same_on_screens_and_for_models() {
        for age in [AnswerAge::Moments, AnswerAge::Minutes(3), AnswerAge::Hours(3), AnswerAge::Days(3)] {
            assert_eq!(Lang::En.age(age), age.to_string());
            assert_ne!(Lang::Zh.age(age), age.to_string());
        }
    }
}
