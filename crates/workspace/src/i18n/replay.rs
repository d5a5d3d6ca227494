//! The phrases of runs that are looked at again.

use max_team_core::policy::Verdict;
use max_team_runtime::replay::{BadTape, TAPE_VERSION};

use super::Lang;

impl Lang {
    pub fn folded_counts(self, [turns, ledgers, plans, tasks, mail, rows]: [usize; 6]) -> String {
        self.folded_again_turn_histories(turns, ledgers, plans, tasks, mail, rows)
    }

    /// Why a file is no run.
    pub fn tape_fault(self, fault: &BadTape) -> String {
        match fault {
            BadTape::Io(error) => self.recording_unreadable(error),
            BadTape::Other => self.not_a_recording().to_owned(),
            BadTape::Newer(version) => self.recording_too_new(version, TAPE_VERSION),
            BadTape::Line { line, detail } => self.line_is_no_line(line, detail),
            BadTape::NoLead { line } => self.recording_without_lead(line),
            BadTape::LongLine { line, max } => self.line_has_more_than(line, max),
            BadTape::Long(max) => self.recording_too_long(max),
            BadTape::Cut(entries) => self.its_end_is_missing(entries),
        }
    }

    pub fn verdict(self, verdict: Verdict) -> &'static str {
        let (en, zh) = match verdict {
            Verdict::Allow => ("allowed", "允许"),
            Verdict::Ask => ("asked about", "询问"),
            Verdict::Deny => ("refused", "拒绝"),
        };
        if self == Self::En { en } else { zh }
    }

    pub fn judged_by(self, verdict: Verdict, rule: &str) -> String {
        let word = self.verdict(verdict);
        self.judged_by_text(word, rule)
    }

    pub fn forked(self, session: &str, seq: u64, copy: Option<&str>, root: &str) -> String {
        match copy {
            Some(copy) => self.forked_text(session, seq, root, copy),
            None => self.goes_on_from_behind(session, seq),
        }
    }

    /// Who does not come along.
    pub fn fork_alone(self, others: &[String]) -> String {
        let mut words = self.only_the_conversation_of().to_owned();
        if !others.is_empty() {
            let (en, zh) = (others.join(", "), others.join("、"));
            words.push_str(&say!(
                self,
                ": {en}, and their plans, tasks and messages, stay in the old session",
                "：{zh} 及其计划、任务和消息留在原会话中"
            ));
        }
        words
    }

    /// What a step of an agent was.
    pub fn step_kind(self, kind: &str) -> &'static str {
        let (en, zh) = match kind {
            "told" => ("is told", "收到"),
            "answer" => ("says", "答复"),
            "tool" => ("calls", "调用"),
            "result" => ("gets", "结果"),
            _ => ("ends", "结束"),
        };
        if self == Self::En { en } else { zh }
    }
}
