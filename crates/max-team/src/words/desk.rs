//! The phrases of the commands that work on the journal alone.

use max_team_journal::{Fault, FaultKind};

use super::Lang;

phrases! {
    all_holds: "every hash, chain and seal holds, and the file is sound", "所有哈希、链条和封印均完好，文件完整";
}

impl Lang {
    pub(crate) fn verified(self, entries: u64, streams: u64, seals: u64, erased: u64) -> String {
        say!(
            self,
            "{entries} entries in {streams} streams, {seals} seals, {erased} erased payloads",
            "{streams} 个流共 {entries} 条记录，{seals} 个封印，{erased} 份内容已清除"
        )
    }

    /// One fault of the journal; what was found stays in the words of the check.
    pub(crate) fn fault(self, fault: &Fault) -> String {
        let Fault { seq, stream, detail, .. } = fault;
        let (en, zh) = match fault.kind {
            FaultKind::Edited => ("edited", "被改动"),
            FaultKind::Missing => ("missing", "缺失"),
            FaultKind::Reordered => ("moved", "顺序被改"),
            FaultKind::SealBroken => ("the seal is broken", "封印被破坏"),
            FaultKind::PayloadMissing => ("its content is gone", "内容缺失"),
            FaultKind::Damaged => ("damaged", "损坏"),
        };
        let kind = if self == Self::En { en } else { zh };
        match (*seq, stream.is_empty()) {
            (0, true) => say!(self, "the file: {kind}: {detail}", "文件：{kind}：{detail}"),
            (0, false) => say!(self, "stream `{stream}`: {kind}: {detail}", "流 `{stream}`：{kind}：{detail}"),
            _ => {
                say!(self, "entry {seq} of `{stream}`: {kind}: {detail}", "`{stream}` 的第 {seq} 条：{kind}：{detail}")
            }
        }
    }

    pub(crate) fn log_edited(self, faults: u64) -> String {
        let things = if faults == 1 { "fault" } else { "faults" };
        say!(
            self,
            "{faults} {things}: the journal is not as it was written; keep this copy as evidence and restore another",
            "发现 {faults} 处问题：日志与写入时不同；请保留此副本作为证据，并恢复其他备份"
        )
    }

    pub(crate) fn file_damaged(self, path: &str) -> String {
        say!(
            self,
            "`{path}` is damaged: stop every max-team, copy the file (and `-wal` beside it) away, then restore a \
             backup, or move it aside to start anew; `max-team audit export` prints what can still be read",
            "`{path}` 已损坏：请先停止所有 max-team，把该文件（及旁边的 `-wal`）复制到别处，然后恢复备份，或将其移走重新开始；\
             `max-team audit export` 可输出仍可读取的内容"
        )
    }
}
