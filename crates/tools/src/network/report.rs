//! What the end of a command says about its network: one line for each kind of refusal.

use std::collections::BTreeMap;
use std::net::IpAddr;

use max_team_core::limits::BLOCKED_HOSTS_MAX;

use super::command::HostAnswer;
use crate::text::{clip, visible};

/// Bytes of a host that are told.
const HOST_BYTES_MAX: usize = 200;

/// What is said of a host that a person allowed too late.
const ALLOWED_LATE: &str = "blocked before the user allowed it; run the command again";

/// What is added to the result of a command that was over before a person decided about the host; nothing if no person did.
pub fn late_answer(host: &str, answer: HostAnswer) -> Option<String> {
    let host = list([host].into_iter());
    let words = match answer {
        HostAnswer::Allowed => format!("{host} was {ALLOWED_LATE}"),
        HostAnswer::Refused => format!("the user refused {host}"),
        HostAnswer::Unasked => return None,
    };
    Some(format!("[no network: {words}]\n"))
}

/// Why a host was not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BlockReason {
    /// No rule decides, and no person has allowed it in time.
    Undecided {
        key: String,
        rules: Vec<String>,
    },
    Denied {
        rule: String,
    },
    /// A person said no.
    Refused,
    /// It was allowed, and no address was found for it.
    NotFound {
        error: String,
    },
    /// It leads to an address that commands never reach.
    Address(IpAddr),
}

impl BlockReason {
    /// What the program is told.
    pub(super) fn words(&self, host: &str) -> String {
        match self {
            Self::Undecided { rules, .. } => {
                format!("`{host}` is not among the hosts that may be reached; {}", advice(rules))
            }
            Self::Refused => format!("the user refused `{host}`"),
            Self::NotFound { error } => format!("`{host}` is allowed, but {error}"),
            Self::Denied { rule } => format!("`{host}` may not be reached: {rule}"),
            Self::Address(address) => format!("`{host}` leads to {address}, which is in a private network or reserved"),
        }
    }
}

fn advice(rules: &[String]) -> String {
    if rules.is_empty() {
        return "a rule asks the user each time".to_owned();
    }
    format!("allow it with {}", list(rules.iter().map(String::as_str)))
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{}`", visible(&clip(name, HOST_BYTES_MAX)))).collect::<Vec<_>>().join(", ")
}

/// What became of the hosts that a command tried to reach.
#[derive(Debug, Default)]
pub(super) struct NetworkReport {
    blocked: BTreeMap<String, BlockReason>,
    /// Names that were looked up, and not asked of the proxy.
    looked_up: Vec<String>,
    /// Hosts that a person allowed for this command.
    allowed: Vec<String>,
}

impl NetworkReport {
    pub(super) fn block(&mut self, host: &str, why: BlockReason) {
        if self.blocked.len() < BLOCKED_HOSTS_MAX {
            self.blocked.insert(host.to_owned(), why);
        }
    }

    /// Notes a person's yes. Where it came too late for an earlier connection, the program has tried again.
    pub(super) fn allow(&mut self, host: &str) {
        self.blocked.remove(host);
        note(&mut self.allowed, host);
    }

    pub(super) fn look_up(&mut self, name: &str) {
        // Programs look up the machine's own name, and names of its addresses, by themselves.
        let is_own = name.is_empty()
            || name == "localhost"
            || name.ends_with(".arpa")
            || rustix::system::uname().nodename().to_str().is_ok_and(|own| own.eq_ignore_ascii_case(name));
        if !is_own {
            note(&mut self.looked_up, name);
        }
    }

    /// The lines, if there is anything to say. `answer`: a person's answer to a question, by now.
    pub(super) fn told(&self, answer: impl Fn(&str) -> Option<HostAnswer>, is_bypassed: bool) -> Option<String> {
        let (mut lines, mut refused, mut open, mut late) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut rules: Vec<String> = Vec::new();
        for (host, why) in &self.blocked {
            match why {
                BlockReason::Undecided { key, rules: own } => match answer(key) {
                    Some(HostAnswer::Allowed) => late.push(host.as_str()),
                    Some(HostAnswer::Refused) => refused.push(host.as_str()),
                    Some(HostAnswer::Unasked) | None => {
                        open.push(host.as_str());
                        own.iter().for_each(|rule| note(&mut rules, rule));
                    }
                },
                BlockReason::Refused => refused.push(host.as_str()),
                why => lines.push(why.words(host)),
            }
        }
        if !refused.is_empty() {
            lines.push(format!("the user refused {}", list(refused.into_iter())));
        }
        if !open.is_empty() {
            lines.push(format!("{} {} blocked; {}", list(open.iter().copied()), was(open.len()), advice(&rules)));
        }
        if !late.is_empty() {
            let hosts = list(late.iter().copied());
            lines.push(format!("{hosts} {} {ALLOWED_LATE}", was(late.len())));
        }
        let missed: Vec<&str> = self.looked_up.iter().map(String::as_str).filter(|name| !self.is_known(name)).collect();
        if !missed.is_empty() {
            let names = list(missed.into_iter());
            lines.push(format!("looked up without the proxy (HTTPS_PROXY), which is the only way out: {names}"));
        } else if is_bypassed {
            lines.push("a connection that did not use the proxy (HTTPS_PROXY) was blocked".to_owned());
        }
        let mut told: Vec<String> = lines.into_iter().map(|line| format!("[no network: {line}]\n")).collect();
        if !self.allowed.is_empty() {
            told.push(format!("[hosts that the user allowed: {}]\n", list(self.allowed.iter().map(String::as_str))));
        }
        (!told.is_empty()).then(|| told.concat())
    }

    fn is_known(&self, name: &str) -> bool {
        let is_of = |host: &str| host.split(':').next().is_some_and(|host| host.eq_ignore_ascii_case(name));
        self.blocked.keys().chain(&self.allowed).any(|host| is_of(host))
    }
}

fn was(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

fn note(names: &mut Vec<String>, name: &str) {
    if names.len() < BLOCKED_HOSTS_MAX && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_was_blocked_and_how_to_allow_it() {
        let mut report = NetworkReport::default();
        let undecided = |host: &str| BlockReason::Undecided {
            key: host.to_owned(),
            rules: vec![format!("WebFetch(domain:{host})")],
        };
        assert_eq!(report.told(|_| None, false), None);
        report.block("a.example", undecided("a.example"));
        report.look_up("A.example");
        report.look_up("localhost");
        let one = "[no network: `a.example` was blocked; allow it with `WebFetch(domain:a.example)`]\n";
        assert_eq!(report.told(|_| None, false).as_deref(), Some(one));
        let late = "[no network: `a.example` was blocked before the user allowed it; run the command again]\n";
        assert_eq!(report.told(|_| Some(HostAnswer::Allowed), false).as_deref(), Some(late));
        assert_eq!(report.told(|_| Some(HostAnswer::Unasked), false).as_deref(), Some(one));
        let no = "[no network: the user refused `a.example`]\n";
        assert_eq!(report.told(|_| Some(HostAnswer::Refused), false).as_deref(), Some(no));
        report.block("b.example", BlockReason::Denied { rule: "`deny: WebFetch`".into() });
        report.look_up("db.example");
        report.allow("c.example");
        let all = "[no network: `b.example` may not be reached: `deny: WebFetch`]\n\
                   [no network: `a.example` was blocked; allow it with `WebFetch(domain:a.example)`]\n\
                   [no network: looked up without the proxy (HTTPS_PROXY), which is the only way out: `db.example`]\n\
                   [hosts that the user allowed: `c.example`]\n";
        assert_eq!(report.told(|_| None, true).as_deref(), Some(all));
        let bypassed = "[no network: a connection that did not use the proxy (HTTPS_PROXY) was blocked]\n";
        assert_eq!(NetworkReport::default().told(|_| None, true).as_deref(), Some(bypassed));
    }
}
