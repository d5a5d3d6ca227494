//! What earlier tasks of the members used: the basis of a forecast.

/// Earlier tasks of a member that are needed for a 90th percentile.
const SAMPLES_MIN: usize = 3;
/// The share of earlier tasks, in percent, that cost no more than the high figure.
const HIGH_PERCENT: usize = 90;

/// A finished task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSample {
    /// The member that did it.
    pub member: String,
    /// The model that answered.
    pub model: String,
    /// Model calls, of all attempts.
    pub calls: u64,
    /// Nano-dollars, of all attempts.
    pub nano: u64,
    /// Milliseconds of work.
    pub ms: u64,
}

/// Finished tasks of earlier plans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History(pub Vec<TaskSample>);

/// Averages over earlier tasks of one member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PastTasks {
    /// How many there were.
    pub tasks: u64,
    /// Model calls per task.
    pub calls: Option<u64>,
    /// Nano-dollars with the same model: the mean, and the 90th percentile if there were enough of them.
    pub nano: Option<(u64, Option<u64>)>,
    /// Milliseconds of work per task.
    pub ms: Option<u64>,
}

impl History {
    /// The tasks of a member. Their cost counts only for the same model.
    pub fn past_tasks(&self, member: &str, model: &str) -> PastTasks {
        let own: Vec<&TaskSample> =
            self.0.iter().filter(|sample| sample.member == member && sample.calls > 0).collect();
        let mut paid: Vec<u64> =
            own.iter().filter(|sample| sample.model == model && sample.nano > 0).map(|sample| sample.nano).collect();
        paid.sort_unstable();
        PastTasks {
            tasks: u64::try_from(own.len()).unwrap_or(u64::MAX),
            calls: mean(own.iter().map(|sample| sample.calls)).map(|calls| calls.max(1)),
            nano: mean(paid.iter().copied()).map(|mean| (mean, high(&paid))),
            ms: mean(own.iter().map(|sample| sample.ms)),
        }
    }
}

fn mean(values: impl Iterator<Item = u64>) -> Option<u64> {
    let (sum, count) = values.fold((0_u64, 0_u64), |(sum, count), value| (sum.saturating_add(value), count + 1));
    sum.checked_div(count)
}

/// The 90th percentile by nearest rank, of values in order.
fn high(sorted: &[u64]) -> Option<u64> {
    let rank = (sorted.len() * HIGH_PERCENT).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied().filter(|_| sorted.len() >= SAMPLES_MIN)
}
