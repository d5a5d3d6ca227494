//! The time zone of the user.
//!
//! A zone that is named is read from its own file: a database of all names would walk over six hundred files to find
//! one. The process's own variables are the binary's to read.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Where systems keep their zones.
const FOLDERS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];
/// Bytes of a zone's file.
const ZONE_BYTES_MAX: u64 = 1 << 20;

/// What the process was started with: `TZ` and `TZDIR`.
static STARTED_WITH: OnceLock<(Option<String>, Option<String>)> = OnceLock::new();

/// Stores once, at the start, what `TZ` and `TZDIR` are. The zone itself is only looked up on first use.
pub fn set_time_zone(zone: Option<&str>, folder: Option<&str>) {
    STARTED_WITH.get_or_init(|| (zone.map(str::to_owned), folder.map(str::to_owned)));
}

pub fn time_zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let find = || {
        let (name, folder) = STARTED_WITH.get().cloned().unwrap_or_default();
        named(name.as_deref(), &folders(folder)).unwrap_or_else(TimeZone::system)
    };
    ZONE.get_or_init(find).clone()
}

/// The current time in that zone.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(time_zone())
}

fn folders(own: Option<String>) -> Vec<PathBuf> {
    own.map(PathBuf::from).into_iter().chain(FOLDERS.map(PathBuf::from)).collect()
}

/// The zone of that name; `None` for one that is described by rules, or that is unknown.
fn named(variable: Option<&str>, folders: &[PathBuf]) -> Option<TimeZone> {
    let name = variable?;
    let name = name.strip_prefix(':').unwrap_or(name);
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '_' | '-' | '+');
    let is_name = !name.is_empty() && !name.starts_with('/') && name.chars().all(is_part);
    folders.iter().filter(|_| is_name).find_map(|folder| read(name, &folder.join(name)))
}

fn read(name: &str, path: &Path) -> Option<TimeZone> {
    let is_zone = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= ZONE_BYTES_MAX);
    TimeZone::tzif(name, &std::fs::read(path).ok().filter(|_| is_zone)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("Asia")).unwrap();
        // The shortest there is: no changes, one rule.
        let mut zone = b"TZif2".to_vec();
        zone.extend([0; 15]);
        zone.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4]);
        zone.extend([0, 0, 0x70, 0x80, 0, 0]);
        zone.extend(b"CST\0");
        let (first, _) = zone.split_at(44);
        let whole: Vec<u8> = [&zone, first, zone.get(44..).unwrap(), b"\nCST-8\n"].concat();
        std::fs::write(folder.path().join("Asia/Shanghai"), whole).unwrap();
        let folders = [folder.path().join("none"), folder.path().to_owned()];
        let hour =
            |variable: &str| named(Some(variable), &folders).map(|zone| Timestamp::UNIX_EPOCH.to_zoned(zone).hour());
        for name in ["Asia/Shanghai", ":Asia/Shanghai"] {
            assert_eq!(hour(name), Some(8), "{name}");
        }
        for name in ["", "CST-8", "Asia", "../Asia/Shanghai", "/etc/passwd", "Asia/Nowhere"] {
            assert_eq!(hour(name), None, "{name}");
        }
        assert!(named(None, &folders).is_none());
    }
}
