//! The name server of a command: no name has an address, so that programs that do not use the proxy fail at once, and each name
//! is noted.

use std::io;
use std::time::Duration;

use max_team_sandbox::NameSockets;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

/// Bytes of a query.
const QUERY_BYTES_MAX: usize = 4 << 10;
/// Bytes before the question of a query.
const HEADER_BYTES: usize = 12;
/// How long a query over TCP may take to be made.
const QUERY_WAIT: Duration = Duration::from_secs(5);

/// Answers queries for as long as it is polled.
pub(super) async fn serve(sockets: NameSockets, note: impl Fn(&str)) {
    let opened = || {
        sockets.udp.set_nonblocking(true)?;
        sockets.tcp.set_nonblocking(true)?;
        io::Result::Ok((UdpSocket::from_std(sockets.udp)?, TcpListener::from_std(sockets.tcp)?))
    };
    // Without it, look-ups fail as well, and are not noted.
    let Ok((udp, tcp)) = opened() else { return };
    let mut query = vec![0; QUERY_BYTES_MAX];
    loop {
        tokio::select! {
            Ok((read, from)) = udp.recv_from(&mut query) => {
                if let Some((name, answer)) = answer(query.get(..read).unwrap_or_default()) {
                    note(&name);
                    // A program that is gone needs no answer.
                    let _ = udp.send_to(&answer, from).await;
                }
            }
            Ok((client, _)) = tcp.accept() => {
                if let Ok(Ok(name)) = timeout(QUERY_WAIT, answer_stream(client)).await {
                    note(&name);
                }
            }
            else => return,
        }
    }
}

async fn answer_stream(mut client: TcpStream) -> io::Result<String> {
    let size = client.read_u16().await?;
    let mut query = vec![0; size.into()];
    client.read_exact(&mut query).await?;
    let (name, answer) = answer(&query).ok_or(io::ErrorKind::InvalidData)?;
    client.write_u16(u16::try_from(answer.len()).map_err(io::Error::other)?).await?;
    client.write_all(&answer).await?;
    Ok(name)
}

/// The name that a query asks for, and the answer that there is no such name; `None`: it is no query.
fn answer(query: &[u8]) -> Option<(String, Vec<u8>)> {
    let (header, question) = query.split_at_checked(HEADER_BYTES)?;
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let size = usize::from(*question.get(at)?);
        at += 1;
        match size {
            0 => break,
            // Longer ones would be references to another place, which a question has none of.
            1..64 => labels.push(String::from_utf8_lossy(question.get(at..at + size)?).to_lowercase()),
            _ => return None,
        }
        at += size;
    }
    // The name is followed by a type and a class.
    let question = question.get(..at + 4)?;
    // An answer, recursion available; no such name; one question and no records.
    let mut answer = vec![*header.first()?, *header.get(1)?, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0];
    answer.extend_from_slice(question);
    Some((labels.join("."), answer))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_query_is_answered_with_its_question() {
        let head = [7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        let question = b"\x02DB\x07example\x00\x00\x1c\x00\x01";
        let query = [&head[..], question, b"more"].concat();
        let (name, answer) = answer(&query).unwrap();
        assert_eq!(name, "db.example");
        assert_eq!(answer, [&[7, 9, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0][..], question].concat());
        assert_eq!(super::answer(&query[..20]), None, "cut");
        assert_eq!(super::answer(&[&head[..], b"\xc0\x0c\x00\x01\x00\x01"].concat()), None, "a reference");
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(query in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = answer(&query);
        }
    }
}
