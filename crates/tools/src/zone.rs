//! The time zone that people here mean.
//!
//! A zone that `TZ` names is read from its own file: a database of all names would walk over six hundred files to find one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Where systems keep their zones.
const FOLDERS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];
/// Bytes of a zone's file.
const ZONE_BYTES_MAX: u64 = 1 << 20;

/// The zone.
pub fn zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let of = |variable: Option<OsString>| named(variable.as_deref().and_then(OsStr::to_str), &folders());
    ZONE.get_or_init(|| of(std::env::var_os("TZ")).unwrap_or_else(TimeZone::system)).clone()
}

/// This moment, there.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(zone())
}

fn folders() -> Vec<PathBuf> {
    std::env::var_os("TZDIR").map(PathBuf::from).into_iter().chain(FOLDERS.map(PathBuf::from)).collect()
}

/// The zone that is called so; none for one that is described, or that nobody knows.
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
