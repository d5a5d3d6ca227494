//! Who a command can talk to: nobody, unless it was said.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::*;

#[test]
fn without_a_network_no_host_is_reached() {
    let world = World::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let name = format!("max-team-test-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let socket = world.other.join("socket");
    let _path = UnixListener::bind(&socket).unwrap();
    let (port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let python = |body: &str| format!("python3 -c \"import socket as s\n{body}\"");
    let attacks = [
        python(&format!("s.create_connection(('127.0.0.1', {port}), 5)")),
        python("s.create_connection(('192.0.2.1', 80), 5)"),
        python("s.getaddrinfo('example.com', 80)"),
        python(&format!("c = s.socket(s.AF_UNIX); c.connect('\\\\0{name}')")),
        python(&format!("c = s.socket(s.AF_UNIX); c.connect('{}')", socket.display())),
        python("s.socket(s.AF_PACKET, s.SOCK_RAW)"),
        python("s.socket(s.AF_INET, s.SOCK_RAW, 1)"),
        python("s.socket(s.AF_VSOCK, s.SOCK_STREAM).connect((2, 1))"),
        python("s.socket(s.AF_ALG, s.SOCK_SEQPACKET)"),
    ];
    for engine in engines() {
        for attack in &attacks {
            let (over, output) = world.ran(engine, attack);
            assert!(over.code != Some(0) && output.contains("rror"), "{engine:?} {attack}: {output}");
        }
        let shout = python(&format!("s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp_port}))"));
        world.ran(engine, &shout);
        assert!(udp.recv(&mut [0; 8]).is_err(), "{engine:?}");
    }
    tcp.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err());
}

#[test]
fn with_every_network_the_machine_itself_is_reached() {
    let world = World::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    for engine in engines() {
        let isolation = Isolation { network: max_team_sandbox::Network::All, ..world.isolation() };
        let script =
            format!("exec python3 -c \"import socket as s; s.create_connection(('127.0.0.1', {port})).send(b'hi')\"");
        let (over, output) = ran(engine, &Spec { isolation: Some(isolation), ..world.spec(&script) }).unwrap();
        assert_eq!(over.code, Some(0), "{engine:?} {output}");
        let mut heard = String::new();
        tcp.accept().unwrap().0.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hi");
    }
}

#[test]
fn with_some_hosts_there_is_one_way_out_and_it_judges() {
    for engine in namespaced() {
        let world = World::new();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let network = max_team_sandbox::Network::Hosts(vec!["localhost".into()]);
        let isolation = Isolation { network, ..world.isolation() };
        let ask = |url: &str| {
            let script = format!(
                "exec python3 -c \"import http.client as h, os, urllib.parse as p\n\
                 u = p.urlsplit(os.environ['HTTP_PROXY']); c = h.HTTPConnection(u.hostname, u.port, timeout=20)\n\
                 c.request('GET', '{url}'); a = c.getresponse(); print(a.status, a.read().decode())\""
            );
            ran(engine, &Spec { isolation: Some(isolation.clone()), ..world.spec(&script) }).unwrap().1
        };
        assert!(ask("http://other.example/").contains("403 `other.example:80` is not among the hosts"));
        assert!(ask(&format!("http://localhost:{port}/")).contains("is not among the hosts"), "only the usual ports");
        let told = ask("http://localhost/");
        assert!(told.contains("403 `localhost` cannot be reached: its address is not out in the world"), "{told}");
        let direct = format!("exec python3 -c \"import socket as s; s.create_connection(('127.0.0.1', {port}), 5)\"");
        let (over, _) = ran(engine, &Spec { isolation: Some(isolation.clone()), ..world.spec(&direct) }).unwrap();
        assert_ne!(over.code, Some(0));
    }
}

#[test]
fn calls_that_reach_around_sandbox_are_refused() {
    let world = World::new();
    let call = |number: i64, args: &str| {
        format!(
            "python3 -c \"import ctypes as c, os; l = c.CDLL(None, use_errno=True); r = l.syscall({number}{args}); \
             print('got', r) if r >= 0 else print('refused', os.strerror(c.get_errno()))\""
        )
    };
    let calls = [
        ("ptrace", call(libc_numbers::PTRACE, ", 0, 0, 0, 0")),
        ("keyctl", call(libc_numbers::KEYCTL, ", 0, -3, 0")),
        ("bpf", call(libc_numbers::BPF, ", 0, 0, 0")),
        ("userfaultfd", call(libc_numbers::USERFAULTFD, ", 1")),
        ("unshare", call(libc_numbers::UNSHARE, ", 0x10000000")),
        ("clone3", call(libc_numbers::CLONE3, ", 0, 0")),
        ("io_uring_setup", call(libc_numbers::IO_URING_SETUP, ", 1, 0")),
        ("perf_event_open", call(libc_numbers::PERF_EVENT_OPEN, ", 0, 0, 0, 0, 0")),
    ];
    for engine in engines() {
        for (name, script) in &calls {
            let (_, output) = world.ran(engine, script);
            let want = ["refused Operation not permitted", "refused Function not implemented"];
            assert!(want.contains(&output.trim()), "{engine:?} {name}: {output}");
        }
        let (_, output) = world.ran(engine, "grep -E '^(CapPrm|CapEff|NoNewPrivs|Seccomp):' /proc/self/status");
        let want = "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
        assert_eq!(output, want, "{engine:?}");
    }
}

#[cfg(target_arch = "x86_64")]
mod libc_numbers {
    pub(super) const PTRACE: i64 = 101;
    pub(super) const KEYCTL: i64 = 250;
    pub(super) const BPF: i64 = 321;
    pub(super) const USERFAULTFD: i64 = 323;
    pub(super) const UNSHARE: i64 = 272;
    pub(super) const CLONE3: i64 = 435;
    pub(super) const IO_URING_SETUP: i64 = 425;
    pub(super) const PERF_EVENT_OPEN: i64 = 298;
}
#[cfg(target_arch = "aarch64")]
mod libc_numbers {
    pub(super) const PTRACE: i64 = 117;
    pub(super) const KEYCTL: i64 = 219;
    pub(super) const BPF: i64 = 280;
    pub(super) const USERFAULTFD: i64 = 282;
    pub(super) const UNSHARE: i64 = 97;
    pub(super) const CLONE3: i64 = 435;
    pub(super) const IO_URING_SETUP: i64 = 425;
    pub(super) const PERF_EVENT_OPEN: i64 = 241;
}
