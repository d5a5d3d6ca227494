//! Requests to a proxy: where they lead. `CONNECT` and plain requests are taken.

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
}
