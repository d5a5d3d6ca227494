//! Requests to a proxy: where they lead. `CONNECT` and plain requests are taken.

use std::net::Ipv6Addr;

/// Characters of methods and of names of headers, besides letters and digits.
const TOKEN: &str = "!#$%&'*+-.^_`|~";

/// Where a request to a proxy leads.
#[derive(Debug, PartialEq, Eq)]
pub struct ProxyRequest {
    pub host: String,
    pub port: u16,
    /// What is sent to the host; `None` for `CONNECT`.
    pub forward: Option<PlainRequest>,
}

/// A request that a proxy makes by itself. Nothing follows its body: another request could be meant for another host.
#[derive(Debug, PartialEq, Eq)]
pub struct PlainRequest {
    pub head: Vec<u8>,
    pub body: RequestBody,
}

/// Where the body of a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestBody {
    Bytes(u64),
    /// It says so itself.
    Chunked,
}

impl ProxyRequest {
    /// Reads a request up to its empty line; `None` if it is none that a proxy takes.
    pub fn read(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let (line, headers) = text.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let is_odd = line.contains(|letter: char| letter.is_control()) || !is_token(method);
        if is_odd || words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = place(target, None)?;
            return Some(Self { host, port, forward: None });
        }
        let rest = target.strip_prefix("http://")?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = place(authority, Some(80))?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
        let mut body = None;
        for header in headers.split("\r\n").filter(|header| !header.is_empty()) {
            // Refuse what another server could parse as a different host or end of the request.
            let (name, value) = header.split_once(':').filter(|(name, _)| is_token(name))?;
            if value.contains(|letter: char| letter.is_control() && letter != '\t') {
                return None;
            }
            let name = name.to_ascii_lowercase();
            if let Some(known) = length(&name, value.trim())?
                && body.replace(known).is_some()
            {
                return None;
            }
            if !["host", "connection", "keep-alive"].contains(&name.as_str()) && !name.starts_with("proxy-") {
                head.push_str(&format!("{header}\r\n"));
            }
        }
        head.push_str("\r\n");
        let plain = PlainRequest { head: head.into_bytes(), body: body.unwrap_or(RequestBody::Bytes(0)) };
        Some(Self { host, port, forward: Some(plain) })
    }
}

/// What a header says about the end of the body; `None`: it is ambiguous, and the request is refused.
fn length(name: &str, value: &str) -> Option<Option<RequestBody>> {
    Some(match name {
        "content-length" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(RequestBody::Bytes(value.parse().ok()?))
        }
        "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => Some(RequestBody::Chunked),
        "content-length" | "transfer-encoding" => return None,
        _ => None,
    })
}

fn is_token(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric() || TOKEN.contains(letter))
}

/// A host and a port; `None` if the name has characters that no host name has.
fn place(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, usual?),
    };
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(is_fine),
    };
    is_host.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<ProxyRequest> {
        ProxyRequest::read(text.as_bytes())
    }

    #[test]
    fn requests_say_where_they_lead() {
        let tunnel = read("CONNECT a.example:443 HTTP/1.1\r\nHost: other\r\n\r\n").unwrap();
        assert_eq!(tunnel, ProxyRequest { host: "a.example".into(), port: 443, forward: None });
        let tunnel = read("CONNECT [::1]:22 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(tunnel, ProxyRequest { host: "[::1]".into(), port: 22, forward: None });
        let plain = "GET http://a.example/x?y=http://b HTTP/1.1\r\nHost: b.example\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n";
        let want = "GET /x?y=http://b HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nAccept: */*\r\n\r\n";
        let plain = read(plain).unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("a.example", 80));
        assert_eq!(String::from_utf8(plain.forward.unwrap().head).unwrap(), want);
        let wrong = [
            "GET / HTTP/1.1\r\n\r\n",
            "GET ftp://a/ HTTP/1.1\r\n\r\n",
            "CONNECT a.example HTTP/1.1\r\n\r\n",
            "CONNECT a@b:443 HTTP/1.1\r\n\r\n",
            "GET http://user@b/ HTTP/1.1\r\n\r\n",
            "GET http://user:word@b/ HTTP/1.1\r\n\r\n",
            "GET http://a.example?x HTTP/1.1\r\n\r\n",
            "CONNECT a:99999 HTTP/1.1\r\n\r\n",
            "CONNECT a:443:22 HTTP/1.1\r\n\r\n",
            "CONNECT ::1:443 HTTP/1.1\r\n\r\n",
            "CONNECT [a.example]:443 HTTP/1.1\r\n\r\n",
            "CONNECT a:443 SPDY\r\n\r\n",
            "CONNECT a:443 HTTP/1.1 x\r\n\r\n",
        ];
        for text in wrong {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_request_has_one_end_that_all_servers_see() {
        let body = |headers: &str| {
            read(&format!("POST http://a.example/ HTTP/1.1\r\n{headers}\r\n")).map(|read| read.forward.unwrap().body)
        };
        assert_eq!(body(""), Some(RequestBody::Bytes(0)));
        assert_eq!(body("Content-Length: 12\r\n"), Some(RequestBody::Bytes(12)));
        assert_eq!(body("transfer-encoding: Chunked\r\n"), Some(RequestBody::Chunked));
        let wrong = [
            "Content-Length: 12\r\nContent-Length: 13\r\n",
            "Content-Length: 12\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: +12\r\n",
            "Content-Length:\r\n",
            "Content-Length : 12\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Host : b.example\r\n",
            "A: b\r\n Host: b.example\r\n",
            "A: b\nHost: b.example\r\n",
            "A: b\n\nGET / HTTP/1.1\r\n",
            "no header\r\n",
        ];
        for headers in wrong {
            assert_eq!(body(headers), None, "{headers:?}");
        }
        assert_eq!(read("GET\thttp://b.example/ http://a.example/ HTTP/1.1\r\n\r\n"), None);
    }
}
