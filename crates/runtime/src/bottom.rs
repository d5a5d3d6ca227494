//! The loop that polls everything else on a face's thread.

use std::pin::Pin;

use tokio::runtime::Runtime;

/// Runs a face to its end. It is not generic on purpose: the scheduler's loop is compiled where it is called from, and here it
/// is compiled for speed, while faces are compiled for size.
pub fn block_on(runtime: &Runtime, face: Pin<&mut dyn Future<Output = ()>>) {
    runtime.block_on(face);
}
