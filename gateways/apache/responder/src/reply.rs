//! An origin's answer: its head in FastCGI's form, and the framing of its body.

use std::io::Write as _;

/// The largest head of an answer.
pub(crate) const LARGEST_HEAD_BYTES: usize = 60 * 1024;

const MOST_FIELDS: usize = 256;

/// Why an answer cannot be parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Malformed(pub &'static str);

/// How the end of a body is found (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Framing {
    /// So many bytes are left.
    Length(u64),
    /// Chunks.
    Chunked(Chunks),
    /// The origin closes the connection.
    UntilClose,
}

/// The head of an answer.
#[derive(Debug, Eq, PartialEq)]
pub struct Head {
    /// The text to pass on: `Status` and the origin's fields unchanged, except those of its
    /// connection.
    pub text: Vec<u8>,
    /// The framing of the body.
    pub(crate) framing: Framing,
    /// Whether the connection closes after this answer.
    pub close: bool,
}

impl Head {
    /// The head at the start of `bytes` and its length, including interim answers before it; `None`
    /// when more bytes are needed.
    /// Errors: When it is malformed.
    pub fn parse(bytes: &[u8], to_head: bool) -> Result<Option<(Self, usize)>, Malformed> {
        let mut skipped = 0;
        loop {
            let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
            let mut response = httparse::Response::new(&mut fields);
            let length = match response.parse(&bytes[skipped..]) {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) if bytes.len() < LARGEST_HEAD_BYTES => {
                    return Ok(None);
                }
                Ok(httparse::Status::Partial) => {
                    return Err(Malformed("a head of more than 60 KiB"));
                }
                Err(httparse::Error::TooManyHeaders) => {
                    return Err(Malformed("a head of more than 256 fields"));
                }
                Err(_) => return Err(Malformed("not the head of an HTTP answer")),
            };
            skipped += length;
            match response.code.unwrap_or(0) {
                101 => return Err(Malformed("a change of protocol without a request for it")),
                100..=199 => {}
                200..=999 => return Ok(Some((understand(&response, to_head)?, skipped))),
                _ => return Err(Malformed("a status below 100")),
            }
        }
    }
}

fn understand(response: &httparse::Response<'_, '_>, to_head: bool) -> Result<Head, Malformed> {
    let status = response.code.unwrap_or(0);
    let mut text = Vec::with_capacity(1024);
    write!(text, "Status: {status} {}\r\n", response.reason.unwrap_or(""))
        .expect("writing to memory");
    let mut close = response.version == Some(0);
    let (mut length, mut coded, mut chunked) = (None, false, false);
    for field in response.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("connection") {
            close =
                has_word(field.value, "close") || (close && !has_word(field.value, "keep-alive"));
        } else if is("transfer-encoding") {
            (coded, chunked) = (true, has_word(field.value, "chunked"));
        } else if !is("keep-alive") && !is("trailer") && !is("upgrade") && !is("status") {
            if is("content-length") {
                let value =
                    decimal(field.value).ok_or(Malformed("a Content-Length that is no number"))?;
                if length.is_some_and(|other| other != value) {
                    return Err(Malformed("two Content-Lengths"));
                }
                length = Some(value);
            }
            text.extend(field.name.bytes());
            text.extend(b": ");
            text.extend(field.value);
            text.extend(b"\r\n");
        }
    }
    text.extend(b"\r\n");
    let framing = if to_head || matches!(status, 204 | 304) {
        Framing::Length(0)
    } else if chunked {
        Framing::Chunked(Chunks::default())
    } else if coded {
        Framing::UntilClose
    } else {
        length.map_or(Framing::UntilClose, Framing::Length)
    };
    Ok(Head { text, close: close || framing == Framing::UntilClose, framing })
}

fn has_word(value: &[u8], word: &str) -> bool {
    value
        .split(|&byte| byte == b',')
        .any(|one| one.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

fn decimal(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// The position in a chunked body.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Chunks {
    /// Before the line with a chunk's size.
    #[default]
    Size,
    /// In a chunk, with so many bytes left.
    Data(u64),
    /// After a chunk's data, before the end of its line.
    DataEnd,
    /// In the lines after the last chunk.
    Trailer,
    /// At the end of the body.
    Done,
}

/// The longest line of a chunked body that is not data.
const LONGEST_LINE_BYTES: usize = 4096;

impl Chunks {
    /// The next data in `bytes`: the number of bytes before it, and its length. The length is 0
    /// when more bytes are needed, or at the end.
    /// Errors: When the chunks are malformed.
    pub fn next(&mut self, bytes: &[u8]) -> Result<(usize, usize), Malformed> {
        let mut at = 0;
        loop {
            match *self {
                Self::Done => return Ok((at, 0)),
                Self::Data(left) => {
                    let here =
                        usize::try_from(left).map_or(usize::MAX, |left| left).min(bytes.len() - at);
                    return Ok((at, here));
                }
                Self::Size | Self::DataEnd | Self::Trailer => {
                    let Some(end) = bytes[at..].iter().position(|&byte| byte == b'\n') else {
                        return if bytes.len() - at > LONGEST_LINE_BYTES {
                            Err(Malformed("a chunk whose size is a line of more than 4 KiB"))
                        } else {
                            Ok((at, 0))
                        };
                    };
                    let line = bytes[at..at + end].trim_ascii_end();
                    at += end + 1;
                    *self = match *self {
                        Self::Size => {
                            match size(line).ok_or(Malformed("a chunk without a size"))? {
                                0 => Self::Trailer,
                                size => Self::Data(size),
                            }
                        }
                        Self::DataEnd if line.is_empty() => Self::Size,
                        Self::DataEnd => return Err(Malformed("a chunk longer than its size")),
                        _ if line.is_empty() => Self::Done,
                        _ => Self::Trailer,
                    };
                }
            }
        }
    }

    /// So many bytes of the data were consumed.
    pub fn took(&mut self, bytes: usize) {
        if let Self::Data(left) = self {
            *left -= bytes as u64;
            if *left == 0 {
                *self = Self::DataEnd;
            }
        }
    }
}

fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    let text = std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str, to_head: bool) -> (String, Framing, bool, usize) {
        let (head, length) = Head::parse(text.as_bytes(), to_head).unwrap().unwrap();
        (String::from_utf8(head.text).unwrap(), head.framing, head.close, length)
    }

    #[test]
    fn fields_are_passed_on_unchanged_except_those_of_the_connection() {
        let text = "HTTP/1.1 200 OK\r\nx-Amz-request-ID: tx\u{e9}\r\nx-empty:\r\n\
                    Connection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello";
        let (passed, framing, close, length) = head(text, false);
        assert_eq!(
            passed,
            "Status: 200 OK\r\nx-Amz-request-ID: tx\u{e9}\r\nx-empty: \r\nContent-Length: 5\r\n\r\n"
        );
        assert_eq!((framing, close), (Framing::Length(5), false));
        assert_eq!(&text.as_bytes()[length..], b"hello");
    }

    #[test]
    fn an_answer_to_head_keeps_its_length_and_has_no_body() {
        let (passed, framing, ..) =
            head("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n", true);
        assert!(passed.contains("Content-Length: 1048576\r\n"));
        assert_eq!(framing, Framing::Length(0));
        assert_eq!(
            head("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", false).1,
            Framing::Length(0)
        );
    }

    #[test]
    fn the_framing_is_found_and_interim_answers_are_skipped() {
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false).1,
            Framing::Chunked(Chunks::Size)
        );
        let (_, framing, close, _) = head("HTTP/1.1 200 OK\r\n\r\n", false);
        assert_eq!((framing, close), (Framing::UntilClose, true));
        let (passed, framing, close, _) = head(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
            false,
        );
        assert!(passed.starts_with("Status: 403 Forbidden\r\n"));
        assert_eq!((framing, close), (Framing::Length(0), true));
        assert_eq!(Head::parse(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 2", false), Ok(None));
    }

    #[test]
    fn contradictory_or_endless_heads_are_refused() {
        for bad in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
        ] {
            assert!(Head::parse(bad.as_bytes(), false).is_err(), "{bad}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(LARGEST_HEAD_BYTES));
        assert!(Head::parse(endless.as_bytes(), false).is_err());
    }

    /// The decoded data of chunks received in parts of `part` bytes, and whether they are complete.
    fn decode(bytes: &[u8], part: usize) -> Result<(Vec<u8>, bool), Malformed> {
        let (mut chunks, mut kept, mut data) = (Chunks::default(), Vec::new(), Vec::new());
        for part in bytes.chunks(part) {
            kept.extend(part);
            loop {
                let (before, length) = chunks.next(&kept)?;
                data.extend(&kept[before..before + length]);
                chunks.took(length);
                kept.drain(..before + length);
                if length == 0 {
                    break;
                }
            }
        }
        Ok((data, chunks == Chunks::Done))
    }

    #[test]
    fn chunks_are_decoded_the_same_in_parts_of_any_size() {
        let bytes = b"5;x=y\r\nhello\r\n0006\r\n world\r\n0\r\nTrailer: t\r\n\r\n";
        for part in [1, 2, 3, 7, 100] {
            assert_eq!(decode(bytes, part).unwrap(), (b"hello world".to_vec(), true), "{part}");
            assert!(!decode(&bytes[..bytes.len() - 2], part).unwrap().1);
        }
        assert!(decode(b"5\r\nhello world\r\n", 100).is_err());
        assert!(decode(b"x\r\n", 100).is_err());
        assert!(decode(b"fffffffffffffffff\r\n", 100).is_err());
    }
}
