//! Reads many small files in parallel: each costs little, but a start waits for hundreds of them.

use std::num::NonZero;
use std::thread;

/// Fewer items are not worth a thread.
const ALONE_MAX: usize = 64;
/// Threads that share the work.
const THREADS_MAX: usize = 4;

/// Applies `work` to each item, in parallel where that pays; results are in the order of the items.
pub fn each<T: Send, R: Send>(mut items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    if items.len() <= ALONE_MAX || threads == 1 {
        return items.into_iter().map(work).collect();
    }
    let share = items.len().div_ceil(threads);
    let work = &work;
    thread::scope(|scope| {
        let mut others = Vec::new();
        while items.len() > share {
            let part = items.split_off(items.len() - share);
            others.push(scope.spawn(move || part.into_iter().map(work).collect::<Vec<R>>()));
        }
        let mut done: Vec<R> = items.into_iter().map(work).collect();
        for other in others.into_iter().rev() {
            // A panic there is a panic here.
            done.extend(other.join().unwrap_or_else(|crash| std::panic::resume_unwind(crash)));
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_their_number_the_order_stays() {
        for count in [0, 1, ALONE_MAX, ALONE_MAX + 1, 500, 501, 503] {
            let want: Vec<usize> = (0..count).map(|number| number * 2).collect();
            assert_eq!(each((0..count).collect(), |number| number * 2), want);
        }
    }
}
