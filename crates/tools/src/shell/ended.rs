//! The end of a command in words, and how much of its output is shown with it.

use std::time::Duration;

use max_team_core::limits::COMMAND_IDLE_S_MAX;
use max_team_sandbox::CommandOutcome;

use crate::command::EndReason;

/// Bytes of output that a model sees at once.
pub(super) const SHOWN: usize = 24 << 10;

/// Whether it ended by itself and says that all went well.
pub(super) fn is_fine(over: &CommandOutcome) -> bool {
    over.ended == EndReason::Exited && over.code == Some(0)
}

/// How it ended, in a line.
pub(super) fn ended(over: &CommandOutcome, time: Duration) -> String {
    let took = seconds(Duration::from_millis(over.ms));
    let all = "with everything it had started";
    match (over.ended, over.code, over.signal) {
        (EndReason::Exited, Some(code), _) => format!("exit code {code}, {took}"),
        (EndReason::Exited, None, Some(signal)) => format!("ended by signal {signal}, {took}"),
        (EndReason::Exited, None, None) => format!("ended, {took}"),
        (EndReason::TimedOut, ..) if u128::from(over.ms) < time.as_millis() => {
            format!("TIMED OUT: nothing printed or transferred for {COMMAND_IDLE_S_MAX} s, ended {all}; {took}")
        }
        (EndReason::TimedOut, ..) => format!("TIMED OUT after {} s: ended {all}", time.as_secs()),
        (EndReason::Cancelled, ..) => format!("STOPPED after {took}, {all}"),
        (EndReason::Limit(limit), ..) => format!("STOPPED for taking too much ({}), {all}; {took}", limit.name()),
    }
}

/// A time as people read it.
pub(super) fn seconds(time: Duration) -> String {
    if time.as_secs() < 60 { format!("{:.1} s", time.as_secs_f64()) } else { format!("{} s", time.as_secs()) }
}
