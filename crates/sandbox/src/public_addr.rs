//! Which addresses are of the public internet.
//!
//! Everything else (this machine, the local network, link-local metadata services, what is reserved) is the user's
//! own, and neither a command nor a page that a model asks for has any business there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to the public internet, also where it is written inside another one.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = match (a, b, c) {
        // "This" network, and what comes from 224 up: multicast, reserved, broadcast.
        (0 | 224.., ..) => true,
        // Carriers' own addresses.
        (100, 64..=127, _) => true,
        // Protocol assignments, 6to4 relays, benchmarks.
        (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) => true,
        _ => false,
    };
    !(reserved
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [first, second, .., high, low] = address.segments();
    if let [0x64, 0xff9b, 0, 0, 0, 0, ..] = address.segments() {
        // Networks without IPv4 of their own reach it through this prefix.
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let special = match (first, second) {
        // Teredo, ORCHID and other protocols; documentation; 6to4, which has an IPv4 address inside.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x2002, _) | (0x3fff, 0..=0xfff) => true,
        _ => false,
    };
    // All that has been given out so far lies in 2000::/3.
    first & 0xe000 == 0x2000 && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        let public = ["1.1.1.1", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.0.1.1"];
        let public_v6 = ["2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "::ffff:1.1.1.1", "64:ff9b::101:101"];
        for text in public.into_iter().chain(public_v6) {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        let own = [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.255.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
        ];
        let own_v6 = [
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:101:101::1",
            "::1.1.1.1",
            "64:1::101:101",
            "192.88.99.1",
            "100::1",
            "3fff::1",
            "5f00::1",
        ];
        for text in own.into_iter().chain(own_v6) {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
