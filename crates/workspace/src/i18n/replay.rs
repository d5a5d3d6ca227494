//! The phrases of runs that are looked at again.

use max_team_core::policy::Verdict;
use max_team_runtime::replay::{BadTape, TAPE_VERSION};

use super::Lang;

impl Lang {
    pub fn folded_counts(self, [turns, ledgers, plans, tasks, mail, rows]: [usize; 6]) -> String {
        self.rebuilt_counts(turns, ledgers, plans, tasks, mail, rows)
    }

    /// Why a file is no run.
    pub fn tape_fault(self, fault: &BadTape) -> String {
        match fault {
            BadTape::Io(error) => self.recording_unreadable(error),
            BadTape::Other => self.not_a_recording().to_owned(),
            BadTape::Newer(version) => self.recording_too_new(version, TAPE_VERSION),
            BadTape::Line { line, detail } => self.bad_recording_line(line, detail),
            BadTape::NoLead { line } => self.recording_without_lead(line),
            BadTape::LongLine { line, max } => self.recording_line_too_long(line, max),
            BadTape::Long(max) => self.recording_too_long(max),
            BadTape::Cut(entries) => self.recording_cut_off(entries),
        }
    }

    pub fn verdict(self, verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::Allow => self.verdict_allow(),
            Verdict::Ask => self.verdict_ask(),
            Verdict::Deny => self.verdict_deny(),
        }
    }

    pub fn judged_by(self, verdict: Verdict, rule: &str) -> String {
        let word = self.verdict(verdict);
        self.verdict_by_rule(word, rule)
    }

    pub fn forked(self, session: &str, seq: u64, copy: Option<&str>, root: &str) -> String {
        match copy {
            Some(copy) => self.forked_into_worktree(session, seq, root, copy),
            None => self.forked_in_project(session, seq),
        }
    }

    /// Who does not come along.
    pub fn fork_alone(self, others: &[String]) -> String {
        let mut words = self.only_leads_conversation().to_owned();
        if !others.is_empty() {
            words.push_str(&self.others_stay(others.join(self.comma())));
        }
        words
    }

    /// What a step of an agent was.
    pub fn step_kind(self, kind: &str) -> &'static str {
        match kind {
            "told" => self.step_kind_told(),
            "answer" => self.step_kind_answer(),
            "tool" => self.step_kind_tool(),
            "result" => self.step_kind_result(),
            _ => self.step_kind_other(),
        }
    }
}
