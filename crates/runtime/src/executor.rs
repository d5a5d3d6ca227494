//! The loop that polls everything else on a frontend's thread.

use std::pin::Pin;

use tokio::runtime::Runtime;

/// Runs a frontend to its end. It is not generic on purpose: the scheduler's loop is compiled where it is called from;
/// here it is compiled for speed, while frontends are compiled for size.
pub fn block_on(runtime: &Runtime, face: Pin<&mut dyn Future<Output = ()>>) {
    runtime.block_on(face);
}
