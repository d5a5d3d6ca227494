//! The phrases of answers that are kept. Arguments, data and words are passed through as they are.

use max_team_core::delegation::cache::AnswerAge;

use super::{Lang, plural};

phrases! {
    nothing_cached: "no answers are kept; experts with `cache: {ttl, keys}` have theirs kept",
        "没有缓存的答复；定义了 `cache: {ttl, keys}` 的专家的答复会被缓存";
    expired: "expired", "已过期";
    only_words: "(none: it only spoke)", "（无：只有文字）";
    found_at: "found", "获取时间";
    arguments_word: "arguments", "参数";
    data_word: "data", "数据";
    said_word: "said", "文字";
}

impl Lang {
    pub fn age(self, age: AnswerAge) -> String {
        if self == Self::En {
            return age.to_string();
        }
        match age {
            AnswerAge::Moments => "不到 1 分钟前".to_owned(),
            AnswerAge::Minutes(minutes) => format!("{minutes} 分钟前"),
            AnswerAge::Hours(hours) => format!("{hours} 小时前"),
            AnswerAge::Days(days) => format!("{days} 天前"),
        }
    }

    pub fn cache_heads(self) -> [&'static str; 5] {
        match self {
            Self::En => ["EXPERT", "KEY", "FOUND", "LEFT", "ARGUMENTS"],
            Self::Zh => ["专家", "键", "获取时间", "剩余", "参数"],
        }
    }

    /// How much time there still is, never more than that.
    pub fn time_left(self, ms: u64) -> String {
        const MINUTE_S: u64 = 60;
        match ms / 1_000 {
            seconds @ 0..MINUTE_S => say!(self, "{seconds} s left", "剩余 {seconds} 秒"),
            seconds => {
                let minutes = seconds / MINUTE_S;
                say!(self, "{minutes} min left", "剩余 {minutes} 分钟")
            }
        }
    }

    pub fn nothing_cached_of(self, expert: &str, key: Option<&str>) -> String {
        match key {
            None => say!(
                self,
                "no answers of `{expert}` are kept; `max-team cache list` shows what is",
                "没有缓存 `{expert}` 的答复；用 `max-team cache list` 查看"
            ),
            Some(key) => say!(
                self,
                "no answers of `{expert}` are kept under `{key}`; `max-team cache show {expert}` shows what is",
                "`{expert}` 在 `{key}` 下没有缓存的答复；用 `max-team cache show {expert}` 查看"
            ),
        }
    }

    pub fn cleared(self, count: usize) -> String {
        let en = plural(count, "answer");
        say!(self, "{en} cleared", "已清除 {count} 条答复")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_not_said_to_be_more() {
        for (ms, want) in
            [(8_400, "8 s left"), (60_000, "1 min left"), (119_999, "1 min left"), (7_200_000, "120 min left")]
        {
            assert_eq!(Lang::En.time_left(ms), want);
        }
    }
}
