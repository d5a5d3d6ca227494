//! The only way out for a command that may reach some hosts: a proxy, at an address that only the command can reach.
//!
//! The command's network has nothing in it but this proxy's socket, which the supervisor opened inside and handed out.
//! `CONNECT` and plain requests are taken; where they lead is judged by [`allowlist`], and nothing else is looked at.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::allowlist;

/// Connections at one time.
const CONNECTIONS_MAX: usize = 128;
/// Bytes of a request before its body.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long a request may take to be made.
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// Ports that may be asked for at a host that is listed without one.
const PORTS: [u16; 2] = [80, 443];

/// How a host is reached.
type Dial = fn(&str, u16) -> io::Result<TcpStream>;

/// A proxy at work; it takes no more connections once this is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    _stop: UnixStream,
}

impl Proxy {
    /// Serves a socket.
    pub(crate) fn serve(listener: TcpListener, list: Vec<String>) -> io::Result<Self> {
        Self::with(listener, list, allowlist::connect)
    }

    fn with(listener: TcpListener, list: Vec<String>, dial: Dial) -> io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let list: Arc<[String]> = list.into();
        let open = Arc::new(AtomicUsize::new(0));
        thread::Builder::new().name("proxy of a command".into()).spawn(move || {
            while let Some(client) = next(&listener, &stopped) {
                if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                    open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (list, open) = (Arc::clone(&list), Arc::clone(&open));
                // If no thread can be started, the connection is closed.
                drop(thread::Builder::new().spawn(move || {
                    // The client sees that its connection has ended; the error matters nowhere else.
                    let _ = pass(&client, &list, dial);
                    open.fetch_sub(1, Ordering::Relaxed);
                }));
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

/// The next connection; `None` once the proxy has been dropped.
fn next(listener: &TcpListener, stopped: &UnixStream) -> Option<TcpStream> {
    loop {
        let mut fds = [PollFd::new(listener, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let polled = poll(&mut fds, None);
        let [listening, stopping] = &fds;
        if polled.is_err_and(|errno| errno != rustix::io::Errno::INTR) || !stopping.revents().is_empty() {
            return None;
        }
        if !listening.revents().is_empty() {
            return listener.accept().ok().map(|(client, _)| client);
        }
    }
}

/// Takes one request and passes on what follows, both ways.
fn pass(mut client: &TcpStream, list: &[String], dial: Dial) -> io::Result<()> {
    client.set_read_timeout(Some(HEAD_WAIT))?;
    let Some((head, rest)) = head(client)? else { return Ok(()) };
    let Some(request) = ProxyRequest::read(&head) else { return client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n") };
    if !is_open(list, &request) {
        return refuse(
            client,
            &format!("`{}:{}` is not among the hosts that may be reached", request.host, request.port),
        );
    }
    let mut server = match dial(&request.host, request.port) {
        Ok(server) => server,
        Err(error) => return refuse(client, &format!("`{}` cannot be reached: {error}", request.host)),
    };
    match &request.forward {
        Some(head) => server.write_all(head)?,
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
    }
    server.write_all(&rest)?;
    client.set_read_timeout(None)?;
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    let up = thread::Builder::new().spawn(move || copy(&from, &to))?;
    copy(&server, client);
    // The server has closed: what the client still sends has no receiver.
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    let _ = up.join();
    Ok(())
}

/// Whether a request leads to a host of the list, at a port of the web or at the one that is listed with it.
fn is_open(list: &[String], request: &ProxyRequest) -> bool {
    let named = format!("{}:{}", request.host.trim_end_matches('.'), request.port);
    list.iter().any(|entry| entry.eq_ignore_ascii_case(&named))
        || (PORTS.contains(&request.port) && allowlist::is_listed(list, &request.host))
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    // Either end may close at any time; the other is told.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

fn refuse(mut client: &TcpStream, words: &str) -> io::Result<()> {
    let body = format!("{words}\n");
    let head = "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length:";
    client.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes())
}

/// A request up to the empty line, and the bytes that came after it.
fn head(mut client: &TcpStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4 << 10];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok(Some((bytes, rest)));
        }
        let read = client.read(&mut chunk)?;
        if read == 0 || bytes.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
}

/// Where a request to a proxy leads.
#[derive(Debug, PartialEq, Eq)]
pub struct ProxyRequest {
    pub host: String,
    pub port: u16,
    /// What is sent to the host; `None` for `CONNECT`.
    pub forward: Option<Vec<u8>>,
}

impl ProxyRequest {
    /// Reads a request up to its empty line; `None` if it is none that a proxy takes.
    pub fn read(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let (line, headers) = text.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = place(target, None)?;
            return Some(Self { host, port, forward: None });
        }
        let rest = target.strip_prefix("http://")?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = place(authority, Some(80))?;
        let mut forward = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
        for header in headers.split("\r\n").filter(|header| !header.is_empty()) {
            let name = header.split(':').next().unwrap_or_default().to_ascii_lowercase();
            if !["host", "connection", "keep-alive"].contains(&name.as_str()) && !name.starts_with("proxy-") {
                forward.push_str(&format!("{header}\r\n"));
            }
        }
        forward.push_str("\r\n");
        Some(Self { host, port, forward: Some(forward.into_bytes()) })
    }
}

/// A host and a port; `None` if the name has characters that no host name has.
fn place(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, usual?),
    };
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "-._:[]".contains(letter);
    (!host.is_empty() && host.chars().all(is_fine)).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_say_where_they_lead() {
        let read = |text: &str| ProxyRequest::read(text.as_bytes());
        let tunnel = read("CONNECT a.example:443 HTTP/1.1\r\nHost: other\r\n\r\n").unwrap();
        assert_eq!(tunnel, ProxyRequest { host: "a.example".into(), port: 443, forward: None });
        let plain = "GET http://a.example/x?y=http://b HTTP/1.1\r\nHost: b.example\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n";
        let want = "GET /x?y=http://b HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nAccept: */*\r\n\r\n";
        let plain = read(plain).unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("a.example", 80));
        assert_eq!(String::from_utf8(plain.forward.unwrap()).unwrap(), want);
        let wrong = [
            "GET / HTTP/1.1\r\n\r\n",
            "GET ftp://a/ HTTP/1.1\r\n\r\n",
            "CONNECT a.example HTTP/1.1\r\n\r\n",
            "CONNECT a@b:443 HTTP/1.1\r\n\r\n",
            "GET http://user@b/ HTTP/1.1\r\n\r\n",
            "CONNECT a:99999 HTTP/1.1\r\n\r\n",
            "CONNECT a:443 SPDY\r\n\r\n",
            "CONNECT a:443 HTTP/1.1 x\r\n\r\n",
        ];
        for text in wrong {
            assert_eq!(read(text), None, "{text}");
        }
    }

    /// A host that says what it was asked.
    fn echo(_: &str, _: u16) -> io::Result<TcpStream> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let stream = TcpStream::connect(listener.local_addr()?)?;
        let (mut server, _) = listener.accept()?;
        thread::spawn(move || {
            let mut asked = [0; 4 << 10];
            let read = server.read(&mut asked).unwrap();
            server.write_all(b"HTTP/1.1 200 OK\r\n\r\nasked: ").unwrap();
            server.write_all(&asked[..read]).unwrap();
        });
        Ok(stream)
    }

    fn ask(proxy: std::net::SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(proxy).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn listed_hosts_are_passed_on_and_others_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _proxy = Proxy::with(listener, vec!["a.example".into(), "c.example:8080".into()], echo).unwrap();
        let plain = ask(address, "GET http://a.example/x HTTP/1.1\r\n\r\n");
        assert!(plain.starts_with("HTTP/1.1 200 OK") && plain.contains("asked: GET /x HTTP/1.1\r\n"), "{plain}");
        let tunnel = ask(address, "CONNECT a.example:443 HTTP/1.1\r\n\r\nhello");
        assert!(
            tunnel.starts_with("HTTP/1.1 200 Connection established") && tunnel.ends_with("asked: hello"),
            "{tunnel}"
        );
        for request in [
            "GET http://b.example/ HTTP/1.1\r\n\r\n",
            "CONNECT b.example:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.example:22 HTTP/1.1\r\n\r\n",
            "CONNECT c.example:443 HTTP/1.1\r\n\r\n",
        ] {
            assert!(ask(address, request).starts_with("HTTP/1.1 403 Forbidden"), "{request}");
        }
        let named = ask(address, "GET http://C.example:8080/x HTTP/1.1\r\n\r\n");
        assert!(named.starts_with("HTTP/1.1 200 OK"), "{named}");
        assert!(ask(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    }
}
