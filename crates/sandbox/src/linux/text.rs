//! The program's own machine code in memory.

use std::fs;

/// Gives back the memory of machine code that only start-up needed. The system maps code in big pieces; after this, a piece
/// that is needed again is mapped again from the file.
pub fn release_code() {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (begin, end) in maps.lines().filter_map(|line| code_range(line, &program.to_string_lossy())) {
        release(begin, end);
    }
}

/// The addresses of a line of `/proc/self/maps`, if it is code of the program.
fn code_range(line: &str, program: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()? == "r-xp" && line.ends_with(program);
    let address = |text: &str| usize::from_str_radix(text, 16).ok();
    is_code.then_some((address(begin)?, address(end)?))
}

#[expect(unsafe_code, reason = "no library has a safe way to unmap pages")]
fn release(begin: usize, end: usize) {
    let Some(len) = end.checked_sub(begin) else { return };
    // SAFETY: the system says that this range is mapped from the program's file and cannot be written, so what is read there
    // afterwards is the same.
    unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(begin), len, libc::MADV_DONTNEED) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_is_released() {
        for (line, want) in [
            ("1000-3000 r-xp 00aae000 fe:00 7   /bin/max-team", Some((0x1000, 0x3000))),
            ("1000-3000 r--p 00aae000 fe:00 7   /bin/max-team", None),
            ("1000-3000 rw-p 00aae000 fe:00 7   /bin/max-team", None),
            ("1000-3000 r-xp 00aae000 fe:00 7   /lib/libc.so.6", None),
            ("1000-3000 r-xp 00000000 00:00 0", None),
            ("", None),
        ] {
            assert_eq!(code_range(line, "/bin/max-team"), want, "{line}");
        }
    }

    #[test]
    fn the_program_continues_after_its_code_was_released() {
        let resident = || {
            let pages = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
            let line = pages.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let before = resident();
        release_code();
        assert!(resident() < before);
    }
}
