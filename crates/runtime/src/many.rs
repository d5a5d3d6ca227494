//! Many small files at once: each costs little, and hundreds of them are what a start waits for.

use std::num::NonZero;
use std::thread;

/// Fewer are not worth a thread.
const ALONE_MAX: usize = 64;
/// Threads that share the work.
const THREADS_MAX: usize = 4;

/// Does the same with each, in parallel where that pays; results come in the order of what they are of.
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
            // What crashes there crashes here.
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
