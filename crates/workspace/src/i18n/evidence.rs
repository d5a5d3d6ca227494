//! The phrases of the journal as evidence: what happened, on whose word, and what is not as it was written.

use max_team_core::policy::{AutoAllow, DecidedBy};
use max_team_runtime::storage::{Drift, DriftKind, Fault, FaultDetail, FaultKind, SchemaChange};
use max_team_runtime::{Allowed, AnswerEvidence, RefusedEvidence, Set};

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
        if self == Self::En {
            return detail.to_string();
        }
        match detail {
            FaultDetail::Column => "某一列与其哈希不符".to_owned(),
            FaultDetail::Payload => "内容与其哈希不符".to_owned(),
            FaultDetail::PayloadGone { hash, entries } => {
                format!("{entries} 条记录的内容 `{hash}` 已不存在，且没有清除记录")
            }
            FaultDetail::Blob(hash) => format!("文本 `{hash}` 与其哈希不符"),
            FaultDetail::Link => "与前一条记录不衔接".to_owned(),
            FaultDetail::Gap { from, to } => format!("第 {from} 至 {to} 条不存在"),
            FaultDetail::StreamGap { from, to } => format!("该流的第 {from} 至 {to} 条不存在"),
            FaultDetail::Place { expected } => format!("此处应为该流的第 {expected} 条"),
            FaultDetail::SealUnread => "无法读取".to_owned(),
            FaultDetail::Seal { says: (count, from, to), found: (there, first, last) } => {
                format!("它覆盖 {count} 条（{from} 至 {to}）；现有 {there} 条（{first} 至 {last}），或内容不同")
            }
            FaultDetail::Head => "流的末尾标记与其最后一条不符".to_owned(),
            FaultDetail::NoHead => "该流没有末尾标记".to_owned(),
            FaultDetail::Unread { from, to: Some(to) } => format!("第 {from} 至 {to} 条无法读取"),
            FaultDetail::Unread { from, to: None } => format!("第 {from} 条起均无法读取"),
            FaultDetail::Short { found, expected } => format!("文件末尾缺失：应有 {expected} 字节，只有 {found} 字节"),
            FaultDetail::Schema { object, name, change } => {
                let object = match object.as_str() {
                    "table" => "表",
                    "index" => "索引",
                    "trigger" => "触发器",
                    "view" => "视图",
                    other => other,
                };
                match change {
                    SchemaChange::Added => format!("数据库中多出{object} `{name}`"),
                    SchemaChange::Missing => format!("数据库中缺少{object} `{name}`"),
                    SchemaChange::Changed => format!("数据库中的{object} `{name}` 被改动"),
                }
            }
            FaultDetail::ExternalSeal { to_seq, last_seq } if last_seq < to_seq => {
                format!("所给封印覆盖第 1 至 {to_seq} 条；日志止于第 {last_seq} 条")
            }
            FaultDetail::ExternalSeal { to_seq, .. } => format!("第 1 至 {to_seq} 条与所给封印不符"),
            // The database has one language.
            FaultDetail::File(words) => words.clone(),
        }
    }

    /// The mark of an entry that is not as it was written.
    pub fn damaged(self, details: &[FaultDetail]) -> String {
        let details: Vec<String> = details.iter().map(|detail| self.detail(detail)).collect();
        let why = details.join(if self == Self::En { "; " } else { "；" });
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
        match self {
            Self::En if named.is_empty() => "none".to_owned(),
            Self::Zh if named.is_empty() => "无".to_owned(),
            Self::En => named.join(", "),
            Self::Zh => named.join("、"),
        }
    }

    /// What to do about a file that is damaged; the copies that lie beside it are named, newest first.
    pub fn file_damaged(self, path: &str, detail: &str, copies: &[String]) -> String {
        let newest = copies.first().map_or(if self == Self::En { "FILE" } else { "文件" }, String::as_str);
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
        let named = named.join(if self == Self::En { ", " } else { "、" });
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
            Allowed::BuiltIn { name, rule } => {
                let rule = self.free(name, rule);
                self.built_in_rule(&rule, name)
            }
            Allowed::Rule(rule) | Allowed::Mode { rule, set: None } => self.rule(rule),
            Allowed::Before { rule, word } => self.with_word(&self.rule(rule), word.as_ref()),
            Allowed::Plan { plan, word } => {
                let rule = self.the_approved_plan(plan);
                self.with_word(&rule, word.as_ref())
            }
            Allowed::All(each) => {
                let each: Vec<String> = each.iter().map(|allowed| self.grounds(allowed)).collect();
                each.join(if self == Self::En { "; " } else { "；" })
            }
        }
    }

    /// What a built-in rule says, in the words of the judge or in Chinese.
    pub(super) fn free(self, name: &str, rule: &str) -> String {
        let words = AutoAllow::ALL.into_iter().find(|free| free.name() == name).filter(|_| self == Self::Zh);
        let zh = words.map(|free| match free {
            AutoAllow::Answer => "答复总是允许的",
            AutoAllow::Team => "与团队协作总是允许的",
            AutoAllow::SetUp => "查询用户已配置的内容总是允许的",
            AutoAllow::Read => "读取项目内的文件总是允许的",
            AutoAllow::ReadAlso => "读取 `additionalDirectories` 总是允许的",
            AutoAllow::Own => "它自己的目录总是可用的",
            AutoAllow::Device => "不保存任何内容的设备",
            AutoAllow::Places => "它所做的不超出已逐处判断的范围",
            AutoAllow::Rest => "命令行的其余部分",
            AutoAllow::Hosts => "该成员的 `allowed_hosts`",
            AutoAllow::Check => "其任务已批准的检查，或项目自身的测试命令",
            AutoAllow::Worktree => "始终可以在自己的工作树中编辑",
        });
        zh.unwrap_or(rule).to_owned()
    }

    /// Who has set a mode.
    fn setter(self, set: &Set) -> String {
        match &set.by {
            Some(DecidedBy::Person(who)) => self.set_by_person(self.told(who)),
            Some(DecidedBy::Lead(lead)) => self.the_lead(lead),
            Some(other) => other.name(),
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
        let (at, said) = (local(*at_ms), self.told(&word.said));
        match by {
            DecidedBy::Person(who) => self.by_at(&said, self.told(who), &at),
            DecidedBy::Rule(rule) => self.by_the_rule_at(&said, rule, &at),
            DecidedBy::Lead(lead) => self.by_the_lead_at(&said, lead, &at),
            DecidedBy::Nobody(why) => self.automatically_at(&said, why, &at),
        }
    }
}
