//! Which hosts a name may be, and which addresses a host may have.
//!
//! A name that is allowed can still lead to the machine itself or to its neighbours: whoever keeps the name decides. So
//! the address is judged after the name was looked up, and it is that address that is talked to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

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

/// Connects to a host at an address that is out in the world.
pub(crate) fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let found: Vec<SocketAddr> = (host.trim_matches(['[', ']']), port).to_socket_addrs()?.collect();
    let mut last = io::Error::new(io::ErrorKind::PermissionDenied, "its address is not out in the world");
    for address in found.into_iter().filter(|address| is_outside(address.ip())) {
        match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether an address is neither this machine's nor its neighbours' nor nobody's.
fn is_outside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_outside_v4(address),
        IpAddr::V6(address) => is_outside_v6(address),
    }
}

fn is_outside_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_inside = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || first == 0
        || first >= 240
        || (first == 100 && (64..128).contains(&second))
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && (18..20).contains(&second));
    !is_inside
}

fn is_outside_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, .., seventh, eighth] = address.segments();
    let embedded = |high: u16, low: u16| is_outside_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    if let Some(address) = address.to_ipv4() {
        return is_outside_v4(address);
    }
    match first {
        0x64 => embedded(seventh, eighth),
        0x2002 => embedded(second, third),
        // Addresses that are handed out to the world; all of the others are somebody's own.
        0x2000..0x4000 => (first, second) != (0x2001, 0xdb8) && (first, second) != (0x2001, 0),
        _ => false,
    }
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
        let outside = ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"];
        for address in outside {
            assert!(is_outside(address.parse().unwrap()), "{address}");
        }
        let inside = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.8",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
        ];
        for address in inside {
            assert!(!is_outside(address.parse().unwrap()), "{address}");
        }
        assert!(connect("localhost", 1).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied));
        assert!(connect("127.0.0.1", 1).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied));
    }
}
