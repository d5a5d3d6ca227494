//! Hosts that lead elsewhere, and requests that hide where they lead.

use std::io::BufRead as _;

use super::*;

/// Rules that open these hosts, on a port of this machine.
fn opening(hosts: &[&str], port: u16) -> PolicyCheck {
    let rules: Vec<String> = hosts.iter().map(|host| format!("WebFetch(domain:{host}:{port})")).collect();
    policy(&[&rules[..], &[format!("WebFetch(domain:127.0.0.1:{port})")]].concat())
}

/// Sends bytes to the proxy and prints the answer up to its body.
const RAW: &str = "import os, socket, urllib.parse\n\
    u = urllib.parse.urlsplit(os.environ['HTTP_PROXY'])\n\
    def raw(text):\n    s = socket.create_connection((u.hostname, u.port), 30)\n    s.sendall(text.encode()); s.shutdown(socket.SHUT_WR)\n    \
    out = b''\n    while True:\n        b = s.recv(4096)\n        if not b: return out.decode()\n        out += b\n";

/// The address that was checked is the one that is connected to: a name is looked up once for a connection, and judged again
/// for the next.
#[test]
fn a_name_that_changes_its_address_gains_nothing() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), server());
    let looked_up = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looked_up);
    let hosts = HostRules::new(opening(&["turns.test"], port), &[]).finding(move |_| {
        let address = if count.fetch_add(1, Ordering::Relaxed) == 0 { "127.0.0.1" } else { "169.254.169.254" };
        Ok(vec![address.parse().unwrap()])
    });
    let script = format!("{GET}print(get('http://turns.test:{port}/1')); print(get('http://turns.test:{port}/2'))");
    let over = python(dir.path(), hosts, &script);
    let want = format!("served /1\n403 `turns.test:{port}` leads to 169.254.169.254");
    assert!(over.output.starts_with(&want), "{over:?}");
    assert_eq!(looked_up.load(Ordering::Relaxed), 2);
}

#[test]
fn a_redirect_to_an_undecided_host_is_judged() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), server());
    let hosts = || HostRules::new(opening(&["a.test", "b.test"], port), &[]).finding(here);
    let follow = |to: &str| format!("{GET}print(get('http://a.test:{port}/to/{to}:{port}/data'))");
    let over = python(dir.path(), hosts(), &follow("b.test"));
    assert_eq!(over.output, "served /data\n");
    let over = python(dir.path(), hosts(), &follow("evil.test"));
    assert!(over.output.starts_with(&format!("403 `evil.test:{port}` is not among")), "{over:?}");
    assert!(over.output.ends_with(&format!("allow it with `WebFetch(domain:evil.test:{port})`]\n")), "{over:?}");
}

#[test]
fn requests_that_hide_their_host_are_refused() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), server());
    let looked_up = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looked_up);
    let hosts = HostRules::new(policy(&["WebFetch(domain:a.test)".to_owned()]), &[]).finding(move |host| {
        count.fetch_add(1, Ordering::Relaxed);
        here(host)
    });
    let table = [
        (format!("GET http://a.test@evil.test:{port}/"), "400"),
        (format!("GET http://a.test:80@evil.test:{port}/"), "400"),
        (format!("GET http://evil.test:{port}\\\\@a.test/"), "400"),
        (format!("CONNECT a.test@evil.test:{port}"), "400"),
        (format!("CONNECT a.test:443:{port}"), "400"),
        ("CONNECT a.test:0x16".to_owned(), "400"),
        ("CONNECT a.test:65558".to_owned(), "400"),
        ("CONNECT a.test".to_owned(), "400"),
        ("CONNECT a.test:22".to_owned(), "403"),
        ("CONNECT a.test:25".to_owned(), "403"),
        ("CONNECT a.test:0".to_owned(), "403"),
        (format!("CONNECT a.test:{port}"), "403"),
        (format!("CONNECT 127.0.0.1:{port}"), "403"),
        (format!("CONNECT [::1]:{port}"), "403"),
    ];
    let lines: Vec<String> = table.iter().map(|(line, _)| format!("'{line} HTTP/1.1\\r\\n\\r\\n'")).collect();
    let script = format!("{RAW}for text in [{}]: print(raw(text).split(' ')[1])", lines.join(", "));
    let over = python(dir.path(), hosts, &script);
    for (status, (line, want)) in over.output.lines().zip(&table) {
        assert_eq!(status, *want, "{line}: {over:?}");
    }
    assert!(over.output.lines().count() > table.len(), "{over:?}");
    assert_eq!(looked_up.load(Ordering::Relaxed), 0);
}

/// A server on this machine that keeps its connections, and answers with what it was asked. It ends a connection once the client
/// has.
fn keeping() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            thread::spawn(move || {
                let mut lines = std::io::BufReader::new(&client).lines();
                while let Some(Ok(line)) = lines.next() {
                    // A client may be gone.
                    let _ = (&client).write_all(format!("heard {line}\n").as_bytes());
                }
            });
        }
    });
    port
}

/// Two requests on one connection: the second could name another host of the same server.
#[test]
fn a_second_request_on_a_connection_is_not_sent() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), keeping());
    let hosts = HostRules::new(opening(&["a.test"], port), &[]).finding(here);
    let second = format!("GET http://evil.test:{port}/2 HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n");
    let first = |headers: &str| format!("POST http://a.test:{port}/1 HTTP/1.1\\r\\n{headers}\\r\\n");
    let script = format!(
        "{RAW}print(raw('{}{second}')); print(raw('{}body\\n{second}')); print(raw('{}5\\r\\nbody\\n\\r\\n0\\r\\n\\r\\n{second}'))",
        first(""),
        first("Content-Length: 5\\r\\n"),
        first("Transfer-Encoding: chunked\\r\\n"),
    );
    let over = python(dir.path(), hosts, &script);
    assert_eq!(over.output.matches("heard POST /1").count(), 3, "{over:?}");
    assert_eq!(over.output.matches("heard body").count(), 2, "{over:?}");
    assert!(!over.output.contains("evil.test"), "{over:?}");
}
