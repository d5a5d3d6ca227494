//! The phrases about what is kept: recovery, backups, forgetting, the journal as evidence.

use max_team_core::id::SessionId;
use max_team_runtime::Recovered;

use super::{Lang, plural};

impl Lang {
    /// One line on what a session had open; nothing, if it had nothing.
    pub(crate) fn recovered(self, found: &Recovered, session: SessionId) -> Option<String> {
        if found.is_empty() {
            return None;
        }
        let counts = [
            (found.agents, "agent", "位成员"),
            (found.tasks, "task", "项任务"),
            (found.mail, "letter", "封信件"),
            (found.approvals, "question for you", "个待您答复的问题"),
            (found.unknown, "call", "次调用"),
        ];
        let said = |(count, en, zh): &(usize, &str, &str)| match self {
            Self::En if en.starts_with("question") && *count != 1 => format!("{count} questions for you"),
            Self::En => plural(*count, en),
            Self::Zh => format!("{count} {zh}"),
        };
        let (open, lost) = counts.split_at(counts.len() - 1);
        let mut parts: Vec<String> = open.iter().filter(|(count, ..)| *count > 0).map(said).collect();
        for lost in lost.iter().filter(|(count, ..)| *count > 0) {
            let what = said(lost);
            parts.push(say!(self, "{what} with unknown outcome", "{what}结果未知"));
        }
        let parts = parts.join(if self == Self::En { ", " } else { "、" });
        let mut line = say!(self, "going on where it was left: {parts}", "从中断处继续：{parts}");
        if found.approvals > 0 {
            line.push_str(&say!(self, "; `max-team inbox` shows what is asked", "；`max-team inbox` 查看问题"));
        }
        if found.unknown > 0 {
            line.push_str(&say!(
                self,
                "; `max-team trace {session}` shows what may or may not have happened: please look",
                "；`max-team trace {session}` 查看可能已发生也可能未发生的操作，请核对"
            ));
        }
        Some(line)
    }
}
