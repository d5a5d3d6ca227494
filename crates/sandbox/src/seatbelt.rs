//! A sandbox as a seatbelt profile. Later rules win, so deeper paths come later.

use std::path::Path;

use crate::spec::{Isolation, Network};

/// What every program needs to start at all.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.notification_center") (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(allow file-read* (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") (subpath "/Library/Frameworks") (subpath "/Library/Developer") (subpath "/Applications/Xcode.app") (subpath "/opt") (subpath "/private/etc") (subpath "/private/var/db/timezone") (subpath "/private/var/select") (literal "/") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read* file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))
"#;

/// The profile; `program` is the supervisor.
pub(crate) fn profile(isolation: &Isolation, program: &Path) -> String {
    let mut text = BASE.to_owned();
    let mut rule = |what: &str, how: &str, path: &Path| text.push_str(&format!("({what} ({how} {}))\n", quoted(path)));
    rule("allow file-read*", "literal", program);
    for path in &isolation.readable {
        rule("allow file-read*", "subpath", path);
    }
    for path in &isolation.writable {
        rule("allow file-read* file-write*", "subpath", path);
    }
    let within = |path: &Path| isolation.writable.iter().find(|root| path.starts_with(root));
    for path in isolation.protected.iter().chain(&isolation.hidden) {
        rule("deny file-write*", "subpath", path);
        // A folder above it must not be renamed away.
        let Some(root) = within(path) else { continue };
        for folder in path.ancestors().skip(1).take_while(|folder| folder != root) {
            rule("deny file-write-unlink", "literal", folder);
        }
    }
    for path in &isolation.hidden {
        rule("deny file-read*", "subpath", path);
    }
    if isolation.network == Network::All {
        text.push_str(
            "(allow network-outbound (remote ip))\n(allow network-inbound (local ip))\n(allow system-socket)\n",
        );
        text.push_str("(allow file-read* (literal \"/private/etc/resolv.conf\"))\n");
    }
    text
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn later_rules_are_the_stricter_ones() {
        let isolation = Isolation {
            readable: vec!["/p".into()],
            writable: vec![PathBuf::from("/p/o\"wn")],
            protected: vec!["/p/o\"wn/.git/config".into()],
            hidden: vec!["/p/.env".into()],
            ..Isolation::default()
        };
        let text = profile(&isolation, Path::new("/bin/max-team"));
        let own: Vec<&str> = text.strip_prefix(BASE).unwrap().lines().collect();
        let want = [
            r#"(allow file-read* (literal "/bin/max-team"))"#,
            r#"(allow file-read* (subpath "/p"))"#,
            r#"(allow file-read* file-write* (subpath "/p/o\"wn"))"#,
            r#"(deny file-write* (subpath "/p/o\"wn/.git/config"))"#,
            r#"(deny file-write-unlink (literal "/p/o\"wn/.git"))"#,
            r#"(deny file-write* (subpath "/p/.env"))"#,
            r#"(deny file-read* (subpath "/p/.env"))"#,
        ];
        assert_eq!(own, want);
        let open = profile(&Isolation { network: Network::All, ..isolation }, Path::new("/x"));
        assert!(open.contains("network-outbound") && !text.contains("network"));
    }
}
