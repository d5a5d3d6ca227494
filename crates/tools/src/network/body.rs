//! The body of a plain request: what belongs to it is sent, and what comes after it is not.

use std::io;

use max_team_sandbox::RequestBody;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink};

/// Bytes that are read at a time.
const PIECE: usize = 16 << 10;

/// Sends the body, whose first bytes have been read with the head. Then it waits for the end of the client's bytes, so that
/// a client that is gone is noticed.
pub(super) async fn send(
    body: RequestBody,
    mut bytes: Vec<u8>,
    client: &mut (impl AsyncRead + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut left = BodyRest::of(body);
    loop {
        let own = left.take(&bytes)?;
        server.write_all(bytes.get(..own).unwrap_or_default()).await?;
        if left.is_over() {
            break;
        }
        server.flush().await?;
        bytes.clear();
        bytes.reserve(PIECE);
        if client.read_buf(&mut bytes).await? == 0 {
            break;
        }
    }
    server.flush().await?;
    copy(client, &mut sink()).await?;
    server.shutdown().await
}

/// What is left of a body.
#[derive(Debug, PartialEq, Eq)]
enum BodyRest {
    Bytes(u64),
    /// In the size of a chunk, if that has a digit; the chunk is that long.
    Size(Option<u64>),
    /// Behind the size of a chunk, in its line; whether its end has begun.
    SizeLine(u64, bool),
    Chunk(u64),
    /// In the line end behind a chunk, with so many of its bytes.
    ChunkEnd(usize),
    /// Behind the last chunk; whether the line has anything in it.
    Trailer(bool),
}

impl BodyRest {
    fn of(body: RequestBody) -> Self {
        match body {
            RequestBody::Bytes(count) => Self::Bytes(count),
            RequestBody::Chunked => Self::Size(None),
        }
    }

    fn is_over(&self) -> bool {
        *self == Self::Bytes(0)
    }

    /// How many of these bytes belong to it.
    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while let Some(byte) = bytes.get(taken).filter(|_| !self.is_over()) {
            let here = bytes.len() - taken;
            match self {
                Self::Bytes(left) | Self::Chunk(left) => {
                    let part = usize::try_from(*left).unwrap_or(here).min(here);
                    *left -= part as u64;
                    taken += part;
                    if *self == Self::Chunk(0) {
                        *self = Self::ChunkEnd(0);
                    }
                }
                _ => {
                    *self = self.after(*byte).ok_or(io::ErrorKind::InvalidData)?;
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }

    /// What is left after a byte outside of the data; `None`: it cannot be there.
    fn after(&self, byte: u8) -> Option<Self> {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        Some(match (self, byte, digit) {
            (Self::Size(size), _, Some(digit)) => {
                Self::Size(Some(size.unwrap_or(0).checked_mul(16)?.checked_add(digit)?))
            }
            (Self::Size(Some(size)) | Self::SizeLine(size, false), b'\r', _) => Self::SizeLine(*size, true),
            (Self::Size(Some(size)), b';', _) => Self::SizeLine(*size, false),
            (Self::SizeLine(0, true), b'\n', _) => Self::Trailer(false),
            (Self::SizeLine(size, true), b'\n', _) => Self::Chunk(*size),
            // Some servers end the line at a bare LF, so it is refused.
            (Self::SizeLine(size, false), _, _) if byte != b'\n' => Self::SizeLine(*size, false),
            (Self::ChunkEnd(0), b'\r', _) => Self::ChunkEnd(1),
            (Self::ChunkEnd(1), b'\n', _) => Self::Size(None),
            (Self::Trailer(false), b'\n', _) => Self::Bytes(0),
            (Self::Trailer(true), b'\n', _) => Self::Trailer(false),
            (Self::Trailer(has_any), b'\r', _) => Self::Trailer(*has_any),
            (Self::Trailer(_), ..) => Self::Trailer(true),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_body_is_no_part_of_it() {
        let table = [
            (RequestBody::Bytes(0), "", true),
            (RequestBody::Bytes(4), "body", true),
            (RequestBody::Bytes(40), "bodyGET / HTTP/1.1\r\n\r\n", false),
            (RequestBody::Chunked, "0\r\n\r\n", true),
            (RequestBody::Chunked, "4;x=y\r\nbody\r\nA\r\n0\r\n\r\n12345\r\n0\r\nTrailer: x\r\n\r\n", true),
            (RequestBody::Chunked, "ff\r\nGET / HTTP/1.1\r\n\r\n", false),
        ];
        for (body, own, is_whole) in table {
            let all = format!("{own}{}", if is_whole { "GET http://b.example/ HTTP/1.1\r\n\r\n" } else { "" });
            for piece in [1, 3, all.len().max(1)] {
                let mut left = BodyRest::of(body);
                let taken: usize = all.as_bytes().chunks(piece).map(|bytes| left.take(bytes).unwrap()).sum();
                assert_eq!((taken, left.is_over()), (own.len(), is_whole), "{own:?} by {piece}");
            }
        }
        for wrong in [
            "x\r\n",
            "\r\n",
            " 4\r\nbody\r\n",
            "4\nbody\r\n",
            "4;x\nbody\r\n",
            "4\r\nbody!\r\n",
            "11111111111111111\r\n",
        ] {
            assert!(BodyRest::of(RequestBody::Chunked).take(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
