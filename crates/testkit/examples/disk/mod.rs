//! How long the disk takes to keep a promise.
//!
//! Appends to a fresh file and syncs its data after every write, as a journal does; the file is removed afterwards.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

pub(crate) fn median_us(dir: &Path, writes: usize, bytes: usize) -> io::Result<f64> {
    let path = dir.join(format!("floor-{}.tmp", std::process::id()));
    let times = append(&path, writes.max(1), bytes);
    fs::remove_file(&path)?;
    let mut times = times?;
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

fn append(path: &Path, writes: usize, bytes: usize) -> io::Result<Vec<f64>> {
    let mut file = File::create_new(path)?;
    let block = vec![b'x'; bytes];
    let mut times = Vec::with_capacity(writes);
    for _ in 0..writes {
        let start = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}
