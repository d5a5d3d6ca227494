//! Who a command can talk to: nobody, unless it was said.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use max_team_sandbox::{EndReason, NetworkDoor, ProxyServer};

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

/// What a name server answers to everything: there is no such name.
fn no_such_name(query: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    (answer[2], answer[3]) = (0x81, 0x83);
    answer
}

/// Answers every look-up and sends the words of the look-up; answers every request to the proxy with its first line.
fn server(names: mpsc::Sender<String>) -> ProxyServer {
    ProxyServer(Arc::new(move |door: NetworkDoor| {
        let names = names.clone();
        if let Some(sockets) = door.names {
            thread::spawn(move || {
                let mut query = [0; 512];
                while let Ok((read, from)) = sockets.udp.recv_from(&mut query) {
                    names.send(String::from_utf8_lossy(&query[..read]).into_owned()).unwrap();
                    sockets.udp.send_to(&no_such_name(&query[..read]), from).unwrap();
                }
            });
        }
        thread::spawn(move || {
            let (mut client, _) = door.proxy.accept().unwrap();
            let mut asked = [0; 1_024];
            let read = client.read(&mut asked).unwrap();
            let line = String::from_utf8_lossy(&asked[..read]).lines().next().unwrap().to_owned();
            client.write_all(format!("HTTP/1.1 200 OK\r\n\r\nasked: {line}").as_bytes()).unwrap();
        });
    }))
}

#[test]
fn the_proxy_is_the_only_way_out_and_everything_else_fails_at_once() {
    for engine in namespaced() {
        let world = World::new();
        let isolation = Isolation { network: max_team_sandbox::Network::Proxy, ..world.isolation() };
        let (sender, names) = mpsc::channel();
        let run = |python: &str| {
            let spec = world.spec(&format!("exec python3 -c \"{python}\""));
            let proxy = Some(server(sender.clone()));
            ran(engine, &Spec { isolation: Some(isolation.clone()), proxy, ..spec }).unwrap()
        };
        let (over, output) = run("import http.client as h, os, urllib.parse as p\n\
            u = p.urlsplit(os.environ['HTTP_PROXY']); c = h.HTTPConnection(u.hostname, u.port, timeout=20)\n\
            c.request('GET', 'http://a.example/'); print(c.getresponse().read().decode())");
        assert!(output.contains("asked: GET http://a.example/ HTTP/1.1") && !over.bypassed, "{engine:?} {output}");
        let (over, output) = run("import socket as s; s.create_connection(('192.0.2.1', 80), 30)");
        assert!(output.contains("unreachable") && over.bypassed && over.ms < 5_000, "{engine:?} {over:?} {output}");
        let (over, output) = run("import socket as s; s.getaddrinfo('db.example', 80)");
        assert!(output.contains("gaierror") && over.ms < 5_000, "{engine:?} {over:?} {output}");
        if engine == Engine::Namespaces {
            assert!(output.contains("Name or service not known") && !over.bypassed, "{over:?} {output}");
            assert!(
                names.try_iter().all(|query| query.contains("\u{2}db\u{7}example")),
                "no domain is tried behind it"
            );
        }
    }
}

#[test]
fn a_command_that_does_nothing_for_too_long_is_ended() {
    let world = World::new();
    for engine in engines() {
        let limits = Limits { idle: Some(Duration::from_secs(2)), ..world.spec("").limits };
        let (over, output) =
            ran(engine, &Spec { limits, ..world.spec("for i in 1 2 3; do sleep 1; echo $i; done; sleep 30") }).unwrap();
        assert_eq!((over.ended, output.as_str()), (EndReason::TimedOut, "1\n2\n3\n"), "{engine:?}");
        let activity = Activity::default();
        let (over_at, noted) = (Instant::now() + Duration::from_secs(4), activity.clone());
        let busy = thread::spawn(move || {
            while Instant::now() < over_at {
                noted.note();
                thread::park_timeout(Duration::from_millis(200));
            }
        });
        let spec = Spec { limits, activity, ..world.spec("sleep 3; echo done") };
        assert_eq!(ran(engine, &spec).unwrap().1, "done\n", "{engine:?}");
        busy.join().unwrap();
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
