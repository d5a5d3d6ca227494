//! The phrases of the journal as evidence: what happened, on whose word, and what is not as it was written.

use max_team_core::message::Principal;
use max_team_core::packages::{Installs, PackageRegistry};
use max_team_core::plan::event::{PlanProposed, PlanRisk};
use max_team_core::policy::{AutoAllow, Basis, DecidedBy, ProtectedReason, Protection};
use max_team_runtime::storage::{Drift, DriftKind, Fault, FaultDetail, FaultKind, SchemaChange};
use max_team_runtime::{Allowed, AnswerEvidence, AnswerWord, RecordText, RefusedEvidence, RuleText, Set};

use super::{Lang, heads};
use crate::format::local;

impl Lang {
    /// One fault of the journal.
    pub fn fault(self, fault: &Fault) -> String {
        let Fault { seq, stream, .. } = fault;
        let kind = match fault.kind {
            FaultKind::Edited => self.fault_edited(),
            FaultKind::Missing => self.fault_missing(),
            FaultKind::Reordered => self.fault_reordered(),
            FaultKind::SealBroken => self.fault_seal_broken(),
            FaultKind::PayloadMissing => self.fault_payload_missing(),
            FaultKind::Damaged => self.fault_damaged(),
        };
        let detail = self.detail(&fault.detail);
        match (*seq, stream.is_empty()) {
            (0, true) => self.fault_in_file(kind, &detail),
            (0, false) => self.stream(stream, kind, &detail),
            _ => self.fault_in_entry(seq, stream, kind, &detail),
        }
    }

    /// What exactly is wrong.
    pub fn detail(self, detail: &FaultDetail) -> String {
        match detail {
            FaultDetail::Column => self.detail_column().to_owned(),
            FaultDetail::Payload => self.detail_payload().to_owned(),
            FaultDetail::PayloadGone { hash, entries: 1 } => self.detail_payload_gone(hash),
            FaultDetail::PayloadGone { hash, entries } => self.detail_payloads_gone(hash, entries),
            FaultDetail::Blob(hash) => self.detail_blob(hash),
            FaultDetail::Link => self.detail_link().to_owned(),
            FaultDetail::Gap { from, to } => self.detail_gap(from, to),
            FaultDetail::StreamGap { from, to } => self.detail_stream_gap(from, to),
            FaultDetail::Place { expected } => self.detail_place(expected),
            FaultDetail::SealUnread => self.detail_seal_unread().to_owned(),
            FaultDetail::Seal { says: (count, from, to), found: (there, first, last) } => {
                self.detail_seal(count, from, to, there, first, last)
            }
            FaultDetail::Head => self.detail_head().to_owned(),
            FaultDetail::NoHead => self.detail_no_head().to_owned(),
            FaultDetail::Unread { from, to: Some(to) } if from == to => self.detail_entry_unread(from),
            FaultDetail::Unread { from, to: Some(to) } => self.detail_entries_unread(from, to),
            FaultDetail::Unread { from, to: None } => self.detail_rest_unread(from),
            FaultDetail::Short { found, expected } => self.detail_short(found, expected),
            FaultDetail::Schema { object, name, change } => {
                let object = self.database_object(object);
                match change {
                    SchemaChange::Added => self.detail_object_added(object, name),
                    SchemaChange::Missing => self.detail_object_missing(object, name),
                    SchemaChange::Changed => self.detail_object_changed(object, name),
                }
            }
            FaultDetail::ExternalSeal { to_seq, last_seq } if last_seq < to_seq => {
                self.detail_seal_beyond_log(to_seq, last_seq)
            }
            FaultDetail::ExternalSeal { to_seq, .. } => self.detail_seal_differs(to_seq),
            // The database has one language.
            FaultDetail::File(words) => words.clone(),
        }
    }

    /// What an object of the database is, by SQLite's word for it.
    fn database_object(self, object: &str) -> &str {
        match object {
            "table" => self.database_table(),
            "index" => self.database_index(),
            "trigger" => self.database_trigger(),
            "view" => self.database_view(),
            other => other,
        }
    }

    /// The mark of an entry that is not as it was written.
    pub fn damaged(self, details: &[FaultDetail]) -> String {
        let details: Vec<String> = details.iter().map(|detail| self.detail(detail)).collect();
        let why = details.join(self.semicolon());
        self.damaged_because(&why)
    }

    pub fn no_kind(self, kind: &str, there: &[String]) -> String {
        let there = self.there(there);
        self.no_event_is_called(kind, &there)
    }

    pub fn no_agent_there(self, agent: &str, there: &[String]) -> String {
        let there = self.there(there);
        self.no_entry_of_agent(agent, &there)
    }

    pub fn no_task_there(self, task: &str, there: &[String]) -> String {
        let there = self.there(there);
        self.no_entry_about_task(task, &there)
    }

    /// Names, or that there are none.
    fn there(self, names: &[String]) -> String {
        let named: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        if named.is_empty() { self.no_names().to_owned() } else { named.join(self.comma()) }
    }

    /// What to do about a file that is damaged; the copies that lie beside it are named, newest first.
    pub fn file_damaged(self, path: &str, detail: &str, copies: &[String]) -> String {
        let newest = copies.first().map_or(self.file_placeholder(), String::as_str);
        let mut words = self.journal_file_damaged(path, detail, newest);
        words.push_str(&self.copies_beside(copies));
        words
    }

    /// The copies that lie beside the journal.
    pub fn copies_beside(self, copies: &[String]) -> String {
        if copies.is_empty() {
            return self.no_backup_lies_beside().to_owned();
        }
        let named: Vec<String> = copies.iter().map(|copy| format!("`{copy}`")).collect();
        let named = named.join(self.comma());
        self.beside_it_newest_first(&named)
    }

    /// A journal without anything in it, where there must have been one.
    pub fn journal_emptied(self, path: &str, trace: &str, copies: &[String]) -> String {
        let mut words = self.journal_file_empty(path, trace);
        words.push_str(&self.copies_beside(copies));
        words
    }

    /// One row that is not as the log says.
    pub fn drift(self, row: &Drift) -> String {
        let Drift { table, key, how } = row;
        match how {
            DriftKind::Missing => self.row_missing(key, table),
            DriftKind::Extra => self.row_extra(key, table),
            DriftKind::Differs => self.row_differs(key, table),
        }
    }

    pub fn audit_heads(self) -> [&'static str; 9] {
        heads(self.audit_heads_row())
    }

    /// On whose word something happened.
    pub fn allowed(self, allowed: &Allowed) -> String {
        let reason = self.grounds(allowed);
        match allowed {
            Allowed::Answer(_) | Allowed::Before { .. } => reason,
            Allowed::Plan { .. } => self.allowed_by(&reason),
            _ => self.allowed_because(&reason),
        }
    }

    /// On whose word something did not happen.
    pub fn refused_by(self, refused: &RefusedEvidence) -> String {
        let reason = self.grounds(&refused.by);
        self.refused_because(&reason)
    }

    /// A rule, an answer or a plan, with its place.
    fn grounds(self, allowed: &Allowed) -> String {
        match allowed {
            Allowed::Answer(word) => self.word(word),
            Allowed::Mode { rule, set: Some(set) } => {
                let (seq, at, who, rule) = (set.seq, local(set.at_ms), self.setter(set), self.rule(rule));
                self.mode_set_by(&rule, &who, &at, seq)
            }
            Allowed::BuiltIn { name, rule } => self.built_in_rule(self.rule(rule), name),
            Allowed::Rule(rule) | Allowed::Mode { rule, set: None } => self.rule(rule),
            Allowed::Before { rule, word } => self.with_word(&self.rule(rule), word.as_ref()),
            Allowed::Plan { plan, word } => {
                let rule = self.the_approved_plan(plan);
                self.with_word(&rule, word.as_ref())
            }
            Allowed::All(each) => {
                let each: Vec<String> = each.iter().map(|allowed| self.grounds(allowed)).collect();
                each.join(self.semicolon())
            }
        }
    }

    fn free(self, free: AutoAllow) -> &'static str {
        match free {
            AutoAllow::Answer => self.free_answer(),
            AutoAllow::Team => self.free_team(),
            AutoAllow::SetUp => self.free_set_up(),
            AutoAllow::Read => self.free_read(),
            AutoAllow::ReadAlso => self.free_read_also(),
            AutoAllow::Own => self.free_own(),
            AutoAllow::Device => self.free_device(),
            AutoAllow::Places => self.free_places(),
            AutoAllow::Rest => self.free_rest(),
            AutoAllow::Hosts => self.free_hosts(),
            AutoAllow::Check => self.free_check(),
            AutoAllow::Worktree => self.free_worktree(),
            AutoAllow::Still => self.free_still(),
        }
    }

    /// A judgement's rule; one that is not typed is shown as it was written.
    pub fn basis(self, basis: &Basis, text: &str) -> String {
        let then = |then: &Basis| self.basis(then, text);
        match basis {
            Basis::Rule | Basis::Answer | Basis::Mode => text.to_owned(),
            Basis::Plan => self.basis_plan().to_owned(),
            Basis::BuiltIn(free) => self.free(*free).to_owned(),
            Basis::Written(rule) => self.basis_written(rule),
            Basis::Granted(until) => self.basis_granted(self.how_long(*until)),
            Basis::InMode(mode) => self.basis_mode(mode.name()),
            Basis::Member(limit) => self.basis_member(limit),
            Basis::NotAllowed { command, near: Some(near), .. } => self.basis_not_allowed_near(command, near),
            Basis::NotAllowed { command, is_empty: true, .. } => self.basis_none_allowed(command),
            Basis::NotAllowed { command, .. } => self.basis_not_allowed(command),
            Basis::NeedsShell(why) => self.basis_needs_shell(self.shell_syntax(why)),
            Basis::Hook { origin, rule } => self.basis_hook(origin, rule),
            Basis::Host(host) => self.basis_host(host),
            Basis::LocalHost(host) => self.basis_local_host(host),
            Basis::Connection { host, address: None } => self.basis_connection(host),
            Basis::Connection { host, address: Some(address) } => self.basis_private_connection(host, address),
            Basis::Searches(host) => self.basis_searches(host),
            Basis::Closed { path, setting } => self.basis_closed(path, setting),
            Basis::Question => self.basis_question().to_owned(),
            Basis::EmptyLine => self.basis_empty_line().to_owned(),
            Basis::OthersFiles => self.basis_others_files().to_owned(),
            Basis::PrivateKey(path) => self.basis_private_key(path),
            Basis::Held { path, why } => self.basis_held(path, self.protection(why)),
            Basis::Protected { path, why } => self.basis_protected(path, self.protection(why)),
            Basis::Danger(why) => self.basis_danger(self.danger(why)),
            Basis::Hidden(why) => self.basis_hidden(self.hidden_reason(why)),
            Basis::TeammatePlan => self.basis_teammate_plan().to_owned(),
            Basis::WorktreeChanges => self.basis_worktree().to_owned(),
            Basis::Unowned => self.basis_unowned().to_owned(),
            Basis::Outside { path, then: inner } => self.basis_outside(path, then(inner)),
            Basis::Discards(inner) => self.basis_discards(then(inner)),
            Basis::History(inner) => self.basis_history(then(inner)),
            Basis::Unshielded(inner) => self.basis_unshielded(then(inner)),
            Basis::NeverAsks(inner) => self.basis_never_asks(then(inner)),
        }
    }

    pub(super) fn rule(self, rule: &RuleText) -> String {
        self.basis(&rule.basis, &rule.text)
    }

    /// Why a file is protected.
    fn protection(self, why: &Protection) -> String {
        match why.reach {
            ProtectedReason::Runs => self.protection_runs(self.protector(&why.by)),
            ProtectedReason::Instructs => self.protection_instructs(self.protector(&why.by)),
            ProtectedReason::Configures => self.protection_configures(self.protector(&why.by)),
            ProtectedReason::Records => self.protection_records().to_owned(),
            ProtectedReason::Given => self.protection_given().to_owned(),
        }
    }

    /// What a person should check carefully in a plan; risks of older entries are shown as they were written.
    pub fn plan_risks(self, proposed: &PlanProposed) -> Vec<String> {
        let risk = |risk: &PlanRisk| match risk {
            PlanRisk::Check { check, rule, .. } if rule.is_empty() => self.risk_check(&check.task, &check.line),
            PlanRisk::Check { check, rule, basis } => {
                self.risk_check_because(&check.task, &check.line, self.basis(basis, rule))
            }
            PlanRisk::Protected { task, path, why } => self.risk_protected(task, path, self.protection(why)),
            PlanRisk::Installs(installs) => self.installs(installs),
        };
        match proposed.risk_kinds.len() == proposed.risks.len() {
            true => proposed.risk_kinds.iter().map(risk).collect(),
            false => proposed.risks.clone(),
        }
    }

    /// What a plan installs, and from where.
    fn installs(self, installs: &Installs) -> String {
        let registry = |registry: &PackageRegistry| match &registry.file {
            Some(file) => self.registry_of_project(&registry.host, file),
            None => registry.host.clone(),
        };
        let registries: Vec<String> = installs.registries.iter().map(registry).collect();
        self.risk_installs(&installs.task, installs.managers(), registries.join(", "))
    }

    /// The author of an act by their signature: a user and the frontend they used, or a name as it is. `owner` stands for
    /// a user without a name.
    pub fn person(self, by: &str) -> String {
        let Some((who, door)) = Principal::parse_signature(by) else { return by.to_owned() };
        let door = match door {
            "cli" => self.door_command_line(),
            "terminal" => self.door_chat(),
            "headless" => self.door_headless(),
            "web" => self.door_web(),
            _ => return by.to_owned(),
        };
        self.person_at_door(if who == "owner" { self.you_word() } else { who }, door)
    }

    /// The author of an answer.
    pub fn author(self, by: &DecidedBy) -> String {
        match by {
            DecidedBy::Person(who) => self.person(who),
            DecidedBy::Lead(name) | DecidedBy::Rule(name) => name.clone(),
            DecidedBy::Grant(asker) => self.by_grant(asker),
            DecidedBy::Nobody(why) => self.nobody_because(why),
        }
    }

    pub fn answer_word(self, word: AnswerWord) -> &'static str {
        match word {
            AnswerWord::Yes => self.answer_yes(),
            AnswerWord::No => self.answer_no(),
            AnswerWord::Approved => self.answer_approved(),
            AnswerWord::FirstWave => self.answer_first_wave(),
            AnswerWord::Edited => self.answer_edited(),
            AnswerWord::Changes => self.answer_changes(),
            AnswerWord::Rejected => self.answer_rejected(),
            AnswerWord::Replaced => self.answer_replaced(),
            AnswerWord::Decided => self.answer_decided(),
            AnswerWord::Answered => self.answer_answered(),
            AnswerWord::Rewound => self.answer_rewound(),
        }
    }

    /// Another answer came first.
    pub fn answered_by_now(self, said: AnswerWord, by: &str, at: &str) -> String {
        self.answered_already(self.answer_word(said), self.person(by), at)
    }

    /// The content of an entry in a line.
    pub fn record_text(self, text: &RecordText) -> String {
        let with = |head: String, about: &Option<String>| match about {
            Some(about) => self.headed(head, about),
            None => head,
        };
        match text {
            RecordText::Text(text) => text.clone(),
            RecordText::Answer { word, about } => with(self.answer_word(*word).to_owned(), about),
            RecordText::Tool { key, end, about } => with(format!("{key} {}", self.tool_end(*end)), about),
            RecordText::Cancelled => self.outcome_cancelled().to_owned(),
            RecordText::Lost => self.outcome_lost().to_owned(),
        }
    }

    /// Who has set a mode.
    fn setter(self, set: &Set) -> String {
        match &set.by {
            Some(DecidedBy::Person(who)) => self.set_by_person(self.person(who)),
            Some(DecidedBy::Lead(lead)) => self.the_lead(lead),
            Some(other) => self.author(other),
            None => {
                let actor = &set.actor;
                self.setter_unknown(actor)
            }
        }
    }

    fn with_word(self, rule: &str, word: Option<&AnswerEvidence>) -> String {
        word.map_or_else(|| rule.to_owned(), |word| format!("{rule}: {}", self.word(word)))
    }

    fn word(self, word: &AnswerEvidence) -> String {
        let AnswerEvidence { by, at_ms, .. } = word;
        let (at, said) = (local(*at_ms), self.answer_word(word.said));
        match by {
            DecidedBy::Person(who) => self.by_at(said, self.person(who), &at),
            DecidedBy::Rule(_) | DecidedBy::Grant(_) => self.by_the_rule_at(said, self.author(by), &at),
            DecidedBy::Lead(lead) => self.by_the_lead_at(said, lead, &at),
            DecidedBy::Nobody(why) => self.automatically_at(said, why, &at),
        }
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::hash::Hash;
    use max_team_core::policy::{DangerReason, GrantScope, HiddenReason, Mode};

    use super::*;

    #[test]
    fn a_rule_is_said_in_both_languages() {
        let why = |reach| Protection { reach, by: "git".to_owned() };
        let path = || "a".to_owned();
        let mode = || Box::new(Basis::InMode(Mode::Default));
        let protected = ProtectedReason::ALL.into_iter().chain([ProtectedReason::Given]);
        let protected = protected.map(|reach| Basis::Protected { path: path(), why: why(reach) });
        let typed = [
            Basis::Plan,
            Basis::Written("`allow: Bash(make)` (a.json:4)".to_owned()),
            Basis::Granted(GrantScope::Session),
            Basis::Member("`read_only`".to_owned()),
            Basis::OthersFiles,
            Basis::PrivateKey(path()),
            Basis::Held { path: path(), why: why(ProtectedReason::Runs) },
            Basis::Danger(DangerReason::DeletesProject),
            Basis::Danger(DangerReason::DeletesForGood("`.git`".to_owned())),
            Basis::Hidden(HiddenReason::ManyPrograms),
            Basis::TeammatePlan,
            Basis::WorktreeChanges,
            Basis::Unowned,
            Basis::Outside { path: path(), then: mode() },
            Basis::Discards(mode()),
            Basis::History(mode()),
            Basis::Unshielded(mode()),
            Basis::NeverAsks(mode()),
        ];
        let free = AutoAllow::ALL.into_iter().map(Basis::BuiltIn);
        for basis in typed.into_iter().chain(protected).chain(free) {
            // The judge says it in English, too, for models and records.
            assert_eq!(Lang::En.basis(&basis, ""), basis.to_string());
            assert_ne!(Lang::Zh.basis(&basis, ""), basis.to_string());
        }
        for lang in [Lang::En, Lang::Zh] {
            assert_eq!(lang.basis(&Basis::Mode, "permission mode `plan`"), "permission mode `plan`", "an older entry");
        }
    }

    #[test]
    fn a_person_is_named_with_their_frontend() {
        assert_eq!(Lang::Zh.stopped_by("owner at cli"), "由 您（命令行） 停止");
        assert_eq!(Lang::En.person("ada at terminal"), "ada (chat)");
        assert_eq!([Lang::Zh.person("ada at noon"), Lang::En.person("max")], ["ada at noon", "max"]);
    }

    #[test]
    fn answers_are_said_as_they_are_recorded() {
        for word in [AnswerWord::Yes, AnswerWord::FirstWave, AnswerWord::Changes, AnswerWord::Rewound] {
            assert_eq!(Lang::En.answer_word(word), word.name());
            assert_eq!(serde_json::to_value(word).unwrap(), word.name());
        }
    }

    #[test]
    fn faults_are_the_same_on_screens_and_in_reports() {
        let schema = |(object, change): (&str, SchemaChange)| FaultDetail::Schema {
            object: object.to_owned(),
            name: "events".to_owned(),
            change,
        };
        let objects = [
            ("table", SchemaChange::Added),
            ("index", SchemaChange::Missing),
            ("trigger", SchemaChange::Changed),
            ("view", SchemaChange::Added),
        ];
        let details = [
            FaultDetail::Column,
            FaultDetail::Payload,
            FaultDetail::PayloadGone { hash: Hash::of("it"), entries: 1 },
            FaultDetail::PayloadGone { hash: Hash::of("it"), entries: 2 },
            FaultDetail::Blob(Hash::of("it")),
            FaultDetail::Link,
            FaultDetail::Gap { from: 3, to: 5 },
            FaultDetail::StreamGap { from: 3, to: 5 },
            FaultDetail::Place { expected: 3 },
            FaultDetail::SealUnread,
            FaultDetail::Seal { says: (1, 2, 3), found: (4, 5, 6) },
            FaultDetail::Head,
            FaultDetail::NoHead,
            FaultDetail::Unread { from: 3, to: Some(3) },
            FaultDetail::Unread { from: 3, to: Some(5) },
            FaultDetail::Unread { from: 3, to: None },
            FaultDetail::Short { found: 3, expected: 5 },
            FaultDetail::ExternalSeal { to_seq: 5, last_seq: 3 },
            FaultDetail::ExternalSeal { to_seq: 3, last_seq: 5 },
        ];
        for detail in details.into_iter().chain(objects.map(schema)) {
            assert_eq!(Lang::En.detail(&detail), detail.to_string());
            assert_ne!(Lang::Zh.detail(&detail), detail.to_string());
        }
    }
}
