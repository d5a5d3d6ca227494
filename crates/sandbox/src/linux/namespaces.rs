//! Namespaces of our own around a command: user, mount, process, network, ipc and host name.
//!
//! This process makes them and forks; the child is the first process of the new process namespace, builds the file
//! tree, gives up every capability and goes on as the supervisor. There are two user namespaces, one in the other: in
//! the outer one we are root, which mounting some file systems needs; in the inner one we have our own user id again.
//! The inner one does not own the mounts, so that no process in it can undo them.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, capabilities, set_no_new_privs, unshare_unsafe};

use super::landlock::drop_capabilities;
use super::mounts;
use super::view::FileTree;
use crate::detach;
use crate::protocol::Order;
use crate::spec::{NameSockets, Network};
use crate::supervisor::Separated;

/// System settings that forbid user namespaces: the file, the forbidding value, and the name.
const LOCKS: [(&str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns"),
];

/// The port of name servers.
const NAMES_PORT: u16 = 53;

/// Makes the namespaces, and goes on in a child that is inside. This process must have one thread.
pub(crate) fn separate(order: &Order) -> Result<Separated, String> {
    let spec = &order.spec;
    let names_server = order.has_door.then_some(Ipv4Addr::LOCALHOST);
    let view = FileTree { names_server, ..FileTree::of(spec) };
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    // Leaves our terminal, so that keys pressed there do not reach the command.
    let _ = rustix::process::setsid();
    let mut kinds = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    let has_network = spec.isolation.as_ref().is_some_and(|isolation| isolation.network == Network::All);
    if !has_network {
        kinds |= UnshareFlags::NEWNET;
    }
    let is_mapped = match unshare(UnshareFlags::NEWUSER | kinds) {
        Ok(()) => true,
        // Root can make the others without one, and gives up all capabilities that could undo them.
        Err(_) if user == 0 && unshare(kinds).is_ok() => false,
        Err(errno) => return Err(denied(&format!("user namespaces: {errno}"))),
    };
    // Not every system has it; it only hides names.
    let _ = unshare(UnshareFlags::NEWCGROUP);
    if is_mapped {
        map(0, user, 0, group).map_err(|error| denied(&format!("user namespaces: {error}")))?;
    }
    if !has_network {
        start_loopback().map_err(|error| denied(&format!("network namespace: {error}")))?;
    }
    // Without them, look-ups fail at once all the same, and nothing learns the names.
    let names = names_server.and_then(|address| name_sockets(address).ok());
    if let Some(child) = detach::fork().map_err(|error| format!("process namespace: {error}"))? {
        return Ok(Separated::Outside(child));
    }
    mounts::enter(&view).map_err(|why| denied(&why))?;
    if is_mapped {
        unshare(UnshareFlags::NEWUSER).map_err(|errno| denied(&format!("inner user namespace: {errno}")))?;
        map(user, 0, group, 0).map_err(|error| format!("inner user namespace: {error}"))?;
    }
    drop_capabilities();
    match capabilities(None) {
        Ok(left) if left.permitted.is_empty() && left.effective.is_empty() => Ok(Separated::Inside(names)),
        _ => Err("its capabilities could not be dropped".to_owned()),
    }
}

/// Opens the port of name servers, which needs a capability that is given up afterwards.
fn name_sockets(address: Ipv4Addr) -> io::Result<NameSockets> {
    let place = (address, NAMES_PORT);
    Ok(NameSockets { udp: UdpSocket::bind(place)?, tcp: TcpListener::bind(place)? })
}

#[expect(unsafe_code, reason = "the library warns of threads that share open files")]
fn unshare(kinds: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: open files stay shared, and this process has one thread.
    unsafe { unshare_unsafe(kinds) }
}

/// Maps one user and one group in the user namespace that this process has just made.
fn map(user: u32, parent_user: u32, group: u32, parent_group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {parent_user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {parent_group} 1"))
}

/// The argument of the call below, as the system defines it.
#[repr(C)]
struct Interface {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Turns on the loopback interface; its addresses come by themselves.
#[expect(unsafe_code, reason = "no library has a safe name for this request")]
fn start_loopback() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut interface = Interface { name: [0; libc::IFNAMSIZ], flags: 0, rest: [0; 22] };
    for (to, from) in interface.name.iter_mut().zip(b"lo") {
        *to = *from;
    }
    interface.flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    // SAFETY: the structure has the size and the form of `ifreq`, and outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const interface) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Counters of the network of this process, and the names of those of packets that no route led anywhere.
const COUNTERS: [(&str, &str); 2] =
    [("/proc/self/net/snmp", "OutNoRoutes"), ("/proc/self/net/snmp6", "Ip6OutNoRoutes")];

/// Whether something in this network, which holds nothing but a loopback, tried to reach an address beyond it.
pub(crate) fn has_bypassed(order: &Order) -> bool {
    order.has_door
        && COUNTERS.iter().any(|(file, name)| fs::read_to_string(file).is_ok_and(|text| counter(&text, name) > 0))
}

/// The value of a counter: in the column of its name in the next line, or behind it.
fn counter(text: &str, name: &str) -> u64 {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut words = line.split_whitespace();
        let Some(column) = words.position(|word| word == name) else { continue };
        let value =
            if column == 0 { words.next() } else { lines.next().and_then(|line| line.split_whitespace().nth(column)) };
        return value.and_then(|value| value.parse().ok()).unwrap_or(0);
    }
    0
}

/// The refused step, with the setting that forbids it, if known.
fn denied(what: &str) -> String {
    let is_set =
        |(file, value, _): &&(&str, &str, &str)| fs::read_to_string(file).is_ok_and(|text| text.trim() == *value);
    match LOCKS.iter().find(is_set) {
        Some((_, value, name)) => format!("{what} (`sysctl {name}` is {value})"),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_in_both_forms() {
        let table = "Ip: Forwarding OutNoRoutes ReasmTimeout\nIp: 2 7 0\nTcp: OutNoRoutes\nTcp: 9\n";
        assert_eq!((counter(table, "OutNoRoutes"), counter(table, "Missing")), (7, 0));
        assert_eq!(counter("Ip6InReceives \t4\nIp6OutNoRoutes \t3\n", "Ip6OutNoRoutes"), 3);
    }
}
