//! The phrases about what is kept: recovery, backups, forgetting.

use max_team_core::id::SessionId;
use max_team_runtime::{Recovered, Tombstone};

use super::Lang;
use crate::format::local;

impl Lang {
    /// One line on what a session had open; nothing, if it had nothing.
    pub fn recovered(self, found: &Recovered, session: SessionId) -> Option<String> {
        if found.is_empty() {
            return None;
        }
        let counted = |count: usize, words: fn(Self, usize) -> String| (count > 0).then(|| words(self, count));
        let open = [
            counted(found.agents, Self::recovered_agents),
            counted(found.tasks, Self::recovered_tasks),
            counted(found.mail, Self::recovered_messages),
            counted(found.teams, Self::recovered_teams),
            counted(found.approvals, Self::recovered_questions),
        ];
        let lost = counted(found.unknown, Self::recovered_calls).map(|calls| self.with_unknown_outcome(calls));
        let parts: Vec<String> = open.into_iter().chain([lost]).flatten().collect();
        let mut line = self.going_on_where_it(parts.join(self.comma()));
        if found.approvals > 0 {
            line.push_str(self.hint_inbox());
        }
        if found.unknown > 0 {
            line.push_str(&self.hint_trace(session));
        }
        Some(line)
    }

    pub fn backed_up(self, file: &str, entries: u64, bytes: u64) -> String {
        let size = size(bytes);
        self.backup_written(entries, &size, file)
    }

    /// The user asks for a session that was erased.
    pub fn was_forgotten(self, gone: &Tombstone) -> String {
        let Tombstone { session, seq, by, .. } = gone;
        let (at, by) = (local(gone.at_ms), self.person(by));
        self.session_was_forgotten(session, &at, &by, seq)
    }

    /// What is in a journal, in a few words.
    pub fn held(self, sessions: usize, entries: u64, last: Option<&str>) -> String {
        let mut words = self.journal_counts(sessions, entries);
        if let Some(last) = last {
            words.push_str(&self.last_used(last));
        }
        words
    }

    pub fn restored(self, file: &str, entries: u64, kept: Option<&str>) -> String {
        let mut words = self.entries_is_the_journal(file, entries);
        if let Some(kept) = kept {
            words.push_str(&self.old_journal_kept(kept));
        }
        words
    }

    pub fn forks_stay(self, forks: &[SessionId]) -> String {
        let names: Vec<String> = forks.iter().map(SessionId::to_string).collect();
        self.forks_are_kept(names.join(self.comma()))
    }

    pub fn forgot(self, sessions: usize, entries: u64, freed: u64, beside: bool) -> String {
        let space = size(freed);
        let mut words = self.sessions_forgotten(sessions, entries);
        words.push_str(&if beside { self.space_reused().to_owned() } else { self.given_back(&space) });
        words
    }
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    const KIB: f64 = 1_024.0;
    let bytes = bytes as f64;
    if bytes < KIB * KIB { format!("{:.0} KB", bytes / KIB) } else { format!("{:.1} MB", bytes / KIB / KIB) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_work_is_one_line_with_how_to_look_at_it() {
        let session: SessionId = "ses_01990000000070008000000000000001".parse().unwrap();
        let said = |lang: Lang, found| lang.recovered(&found, session);
        assert_eq!(said(Lang::En, Recovered::default()), None);
        let work = Recovered { agents: 2, tasks: 1, mail: 1, teams: 1, ..Recovered::default() };
        assert_eq!(said(Lang::En, work).unwrap(), "going on where it was left: 2 agents, 1 task, 1 message, 1 team");
        let asked = Recovered { approvals: 2, unknown: 1, ..Recovered::default() };
        assert_eq!(
            said(Lang::En, asked).unwrap(),
            "going on where it was left: 2 questions for you, 1 call with unknown outcome; `max-team inbox` shows what is \
             asked; `max-team trace ses_01990000000070008000000000000001` shows calls that may or may not have happened: please check"
        );
        let zh = said(Lang::Zh, Recovered { agents: 1, unknown: 2, ..Recovered::default() }).unwrap();
        assert!(zh.starts_with("从中断处继续：1 位成员、2 次调用结果未知") && zh.contains("max-team trace"), "{zh}");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([size(0), size(300_000), size(5 << 20)], ["0 KB", "293 KB", "5.0 MB"]);
    }
}
