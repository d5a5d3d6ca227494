//! Which hosts a command may reach, and how they are connected to.
//!
//! An allowed name can still lead to this machine or its local network, because the owner of the name chooses the
//! address. So the address is checked after the lookup, and exactly that address is connected to.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::public_addr::is_public;

/// How long a host may take to answer.
const CONNECT_WAIT: Duration = Duration::from_secs(15);

/// Whether a host is on a list: by its name, or below a name that is written with `*.`.
pub(crate) fn is_listed(list: &[String], host: &str) -> bool {
    let clean = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    let host = clean(host);
    list.iter().map(|name| clean(name)).any(|name| match name.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => host == name,
    })
}

/// Connects to a host at a public address.
pub(crate) fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let found: Vec<SocketAddr> = (host.trim_matches(['[', ']']), port).to_socket_addrs()?.collect();
    let mut last = io::Error::new(io::ErrorKind::PermissionDenied, "its address is not out in the world");
    for address in found.into_iter().filter(|address| is_public(address.ip())) {
        match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_whole() {
        let list = ["crates.io", "*.example.com"].map(str::to_owned);
        let table = [
            ("crates.io", true),
            ("CRATES.io.", true),
            ("static.crates.io", false),
            ("crates.io.evil", false),
            ("evilcrates.io", false),
            ("a.example.com", true),
            ("a.b.example.com", true),
            ("example.com", false),
            ("evilexample.com", false),
            (".example.com", false),
            ("", false),
        ];
        for (host, want) in table {
            assert_eq!(is_listed(&list, host), want, "{host}");
        }
    }

    #[test]
    fn only_addresses_of_the_world_are_talked_to() {
        assert!(connect("localhost", 1).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied));
        assert!(connect("127.0.0.1", 1).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied));
    }
}
