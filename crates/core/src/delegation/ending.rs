//! How a member reports the end of a task: done, or `NOT DONE`. Also detects an answer that only announces what comes
//! next.

use crate::limits::ANNOUNCEMENT_CHARS_MAX;

/// Prefix of an answer that ends a task as not done. The reason follows.
pub const NOT_DONE: &str = "NOT DONE:";

/// Sent to an agent that announced an action and ended its turn.
pub(crate) const NUDGE_ANNOUNCED: &str = "(You say what you will do, and your turn ends with that. Do it now with your tools, or \
                                          answer with `NOT DONE:` and why.)";

/// The reason, if an answer begins with `NOT DONE`.
pub fn not_done(answer: &str) -> Option<&str> {
    let answer = answer.trim_start_matches(|c: char| c.is_whitespace() || "*#_`>".contains(c));
    let (begin, why) = answer.split_at_checked("not done".len())?;
    let is_word = why.chars().next().is_none_or(|c| !c.is_alphanumeric());
    // Strip punctuation that belongs to the words; a quote after a space belongs to the reason.
    let why = why.trim_start_matches(|c: char| "*_`:：,.".contains(c)).trim();
    let why = why.trim_start_matches(['-', '–', '—']).trim_start();
    (begin.eq_ignore_ascii_case("not done") && is_word).then_some(why)
}

/// Whether an answer is short and its last sentence announces an action ("I will …").
pub fn announces(answer: &str) -> bool {
    let answer = answer.trim();
    if answer.chars().count() > ANNOUNCEMENT_CHARS_MAX || not_done(answer).is_some() {
        return false;
    }
    let is_end = |c: char| "\n!?;。！？；".contains(c);
    let sentences = answer.split(is_end).flat_map(|part| part.split(". ")).map(str::trim);
    let Some(last) = sentences.filter(|part| part.chars().any(char::is_alphabetic)).last() else { return false };
    let last = last.to_lowercase().replace('’', "'");
    let mut words = last.trim_start_matches(|c: char| !c.is_alphabetic());
    for filler in ["okay", "ok", "now", "next", "first", "then", "so", "好的", "现在", "接下来", "下面", "首先"]
    {
        if let Some(rest) =
            words.strip_prefix(filler).filter(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            words = rest.trim_start_matches(|c: char| !c.is_alphabetic());
        }
    }
    let begins = ["i will ", "i'll ", "i am going to ", "i'm going to ", "let me ", "我将", "我会", "我来", "让我"];
    // A condition makes it an offer, a negation no plan.
    let offers = ["let me know", " not ", " never ", " if ", " once ", " when ", " unless ", "如果", "不"];
    begins.iter().any(|begin| words.starts_with(begin)) && !offers.iter().any(|offer| words.contains(offer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_begins_with_not_done_says_why() {
        for (answer, want) in [
            ("NOT DONE: the code is wrong.\nadd(1, 2) is 4.", Some("the code is wrong.\nadd(1, 2) is 4.")),
            ("\n**NOT DONE:** the code is wrong.", Some("the code is wrong.")),
            ("Not done – 代码有错", Some("代码有错")),
            ("NOT DONE：代码有错", Some("代码有错")),
            ("`NOT DONE:` `add(1, 2)` is 4.", Some("`add(1, 2)` is 4.")),
            ("NOT DONE", Some("")),
            ("not donets", None),
            ("It is NOT DONE: see below.", None),
            ("Done.", None),
            ("", None),
        ] {
            assert_eq!(not_done(answer), want, "{answer:?}");
        }
    }

    #[test]
    fn an_announcement_is_short_and_ends_with_a_plan() {
        for (answer, want) in [
            ("I will now call write_file and report.", true),
            ("The file is `a.py`. Let me edit it:", true),
            ("Okay, now I'll run the tests.", true),
            ("- I’m going to add the test.", true),
            ("好的，我将修改文件。", true),
            ("现在让我运行测试", true),
            ("I will not change it: the test is right.", false),
            ("Changed it. Let me know what you think.", false),
            ("Changed it. I will adjust it if you want.", false),
            ("I'll wait until it is there, once bob is ready.", false),
            ("Changed `a.py` and ran the tests: 3 passed.", false),
            ("First I read it. I will explain: the function adds.\nIt is right.", false),
            ("NOT DONE: I will need the key.", false),
            ("", false),
        ] {
            assert_eq!(announces(answer), want, "{answer:?}");
        }
        assert!(!announces(&format!("{} I will do it.", "Found it. ".repeat(ANNOUNCEMENT_CHARS_MAX))));
    }
}
