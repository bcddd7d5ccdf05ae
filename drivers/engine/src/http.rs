//! HTTP/1.1 as far as both ends need it: response heads, and chunked bodies.

use crate::digests::{Sum, of_etag};
use crate::workload::Operation;

/// Larger heads are refused.
pub const LARGEST_HEAD_BYTES: usize = 64 * 1024;

const MOST_HEADERS: usize = 100;

/// Prefix of headers about encryption. Except with `AES256`, an `ETag` beside one is not the MD5 of
/// the body, whatever it looks like ("Object", Amazon S3 API reference).
const ENCRYPTION: &str = "x-amz-server-side-encryption";

/// Headers of S3 and Swift that name a version.
const VERSION_IDS: [&str; 2] = ["x-amz-version-id", "x-object-version-id"];

/// How the end of a body is found (RFC 9112, section 6.3).
#[derive(Debug)]
pub enum Framing {
    /// After so many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked(Chunked),
    /// When the peer closes.
    UntilClose,
}

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    /// Status code, never 1xx.
    pub status: u16,
    /// How the body ends.
    pub framing: Framing,
    /// `Content-Length`, also of an answer to HEAD.
    pub length: Option<u64>,
    /// Whether the connection closes after this answer.
    pub close: bool,
    /// MD5 in the `ETag` of an answer to a write, if any.
    pub md5: Option<Sum>,
    /// Whether a listing is JSON.
    pub json: bool,
    /// `ETag` of a part of an upload, as it was sent.
    pub etag: Option<Box<[u8]>>,
    /// Whether the body was encrypted by a key that makes its `ETag` something else than an MD5.
    pub encrypted: bool,
    /// ID of the version that was written or is read.
    pub version: Option<Box<[u8]>>,
    /// `Content-Range`: first and last byte, and the size of the object if it is given.
    pub range: Option<(u64, u64, Option<u64>)>,
}

/// Why an answer cannot be parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Malformed(pub &'static str);

/// Parses the head at the start of `bytes`; returns it and its length, interim answers (1xx)
/// before it included, or `None` when more is needed.
/// Errors: What is wrong with it.
pub fn parse_head(bytes: &[u8], to: Operation) -> Result<Option<(Head, usize)>, Malformed> {
    let mut skipped = 0;
    loop {
        let mut headers = [const { std::mem::MaybeUninit::uninit() }; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            &bytes[skipped..],
            &mut headers,
        );
        let length = match parsed {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() < LARGEST_HEAD_BYTES => return Ok(None),
            Ok(httparse::Status::Partial) => return Err(Malformed("a head larger than 64 KiB")),
            Err(_) => return Err(Malformed("not the head of an HTTP answer")),
        };
        skipped += length;
        let status = response.code.unwrap_or(0);
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        return Ok(Some((
            understand(status, response.version == Some(0), response.headers, to)?,
            skipped,
        )));
    }
}

fn understand(
    status: u16,
    old: bool,
    headers: &[httparse::Header<'_>],
    to: Operation,
) -> Result<Head, Malformed> {
    if !(200..=599).contains(&status) {
        return Err(Malformed("a status outside 200 to 599"));
    }
    let (mut length, mut chunked, mut coded, mut close) = (None, false, false, old);
    let (mut md5, mut json, mut encrypted) = (None, false, false);
    let (mut etag, mut range, mut version) = (None, None, None);
    let sums = to.puts() || to == Operation::Copy;
    for header in headers {
        let name = header.name;
        if name.eq_ignore_ascii_case("content-length") {
            let value =
                decimal(header.value).ok_or(Malformed("a Content-Length that is no number"))?;
            if length.is_some_and(|other| other != value) {
                return Err(Malformed("two Content-Lengths"));
            }
            length = Some(value);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            chunked = has_word(header.value, "chunked");
        } else if name.eq_ignore_ascii_case("connection") {
            close =
                has_word(header.value, "close") || (old && !has_word(header.value, "keep-alive"));
        } else if sums && name.eq_ignore_ascii_case("etag") {
            md5 = of_etag(header.value);
        } else if to == Operation::WriteMultipart && name.eq_ignore_ascii_case("etag") {
            etag = Some(header.value.trim_ascii().into());
        } else if matches!(to, Operation::ReadRange | Operation::ReadPart)
            && name.eq_ignore_ascii_case("content-range")
        {
            range = content_range(header.value);
        } else if (sums || to == Operation::WriteMultipart)
            && name.len() >= ENCRYPTION.len()
            && name[..ENCRYPTION.len()].eq_ignore_ascii_case(ENCRYPTION)
        {
            encrypted |= header.value != b"AES256";
        } else if (to.puts() || to == Operation::ReadVersion)
            && VERSION_IDS.iter().any(|one| name.eq_ignore_ascii_case(one))
        {
            version = Some(header.value.trim_ascii().into());
        } else if (to == Operation::List || to.turns_pages())
            && name.eq_ignore_ascii_case("content-type")
        {
            json = header.value.starts_with(b"application/json");
        }
    }
    if coded && !chunked {
        return Err(Malformed("a Transfer-Encoding other than chunked"));
    }
    let framing = match length {
        _ if to == Operation::Head || status == 204 || status == 304 => Framing::Length(0),
        _ if chunked => Framing::Chunked(Chunked::default()),
        Some(length) => Framing::Length(length),
        None => Framing::UntilClose,
    };
    let close = close || matches!(framing, Framing::UntilClose);
    let md5 = md5.filter(|_| !encrypted);
    Ok(Head { status, framing, length, close, md5, json, etag, encrypted, version, range })
}

/// Parses `bytes 0-9/100`; the size may be `*`.
fn content_range(value: &[u8]) -> Option<(u64, u64, Option<u64>)> {
    let text = std::str::from_utf8(value).ok()?.trim().strip_prefix("bytes ")?;
    let (span, size) = text.split_once('/')?;
    let (first, last) = span.split_once('-')?;
    let size = if size == "*" { None } else { Some(decimal(size.as_bytes())?) };
    Some((decimal(first.as_bytes())?, decimal(last.as_bytes())?, size))
}

/// Parses a number of decimal digits and nothing else.
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether a comma-separated header value contains a word, whatever its case.
pub fn has_word(value: &[u8], word: &str) -> bool {
    value
        .split(|&byte| byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// A decoder of the chunked coding (RFC 9112, section 7.1), also with the extensions of
/// `aws-chunked`.
#[derive(Debug, Default)]
pub struct Chunked {
    state: State,
    left: u64,
    line: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Size,
    Extension,
    Data,
    DataEnd,
    Trailer,
    Done,
}

const LONGEST_LINE: usize = 8192;

impl Chunked {
    /// Decodes the next bytes and passes those of the body to `sink`; returns how many bytes were
    /// used. Once `is_done`, none are.
    /// Errors: What is wrong with the coding.
    pub fn take(&mut self, bytes: &[u8], mut sink: impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if self.state == State::Data {
                let part =
                    &bytes[at..bytes.len().min(at + self.left.min(usize::MAX as u64) as usize)];
                sink(part);
                at += part.len();
                self.left -= part.len() as u64;
                if self.left == 0 {
                    self.state = State::DataEnd;
                }
                continue;
            }
            self.byte(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    fn byte(&mut self, byte: u8) -> Result<(), Malformed> {
        self.line += 1;
        if self.line > LONGEST_LINE {
            return Err(Malformed("a chunk line that is too long"));
        }
        match (self.state, byte) {
            (State::Size | State::Extension, b'\n') => {
                if self.line == 1 {
                    return Err(Malformed("a chunk without a size"));
                }
                self.line = 0;
                self.state = if self.left > 0 { State::Data } else { State::Trailer };
            }
            (State::Size, b';' | b' ' | b'\r') if self.line > 1 => self.state = State::Extension,
            (State::Size, digit) => {
                let digit = char::from(digit)
                    .to_digit(16)
                    .ok_or(Malformed("a chunk size that is no number"))?;
                let left =
                    self.left.checked_mul(16).and_then(|left| left.checked_add(u64::from(digit)));
                self.left = left
                    .filter(|&left| left < 1 << 62)
                    .ok_or(Malformed("a chunk size that is too large"))?;
            }
            (State::DataEnd, b'\r') if self.line == 1 => {}
            (State::DataEnd, b'\n') => {
                self.line = 0;
                self.state = State::Size;
            }
            (State::DataEnd, _) => return Err(Malformed("a chunk longer than its size")),
            (State::Trailer, b'\n') => {
                // An empty line, with or without its carriage return, ends the body.
                if self.left == 0 {
                    self.state = State::Done;
                }
                self.left = 0;
                self.line = 0;
            }
            // `left` is free here: it marks a line that is not empty.
            (State::Trailer, b'\r') => {}
            (State::Trailer, _) => self.left = 1,
            _ => {}
        }
        Ok(())
    }

    /// Whether the complete body was decoded.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<(Head, usize)>, Malformed> {
        parse_head(text.as_bytes(), Operation::Read)
    }

    #[test]
    fn only_a_complete_head_is_parsed() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello";
        for end in 0..text.len() - 5 {
            assert!(head(&text[..end]).expect("a good prefix").is_none(), "{end}");
        }
        let (head, length) = head(text).expect("good").expect("complete");
        assert_eq!(
            (head.status, head.length, head.close, length),
            (200, Some(5), false, text.len() - 5)
        );
        assert!(matches!(head.framing, Framing::Length(5)));
    }

    #[test]
    fn interim_answers_are_skipped() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        let (head, length) = head(text).expect("good").expect("complete");
        assert_eq!((head.status, length), (204, text.len()));
        assert!(matches!(head.framing, Framing::Length(0)));
    }

    #[test]
    fn the_end_of_a_body_is_found_by_the_rfc() {
        let framing = |text: &str| head(text).expect("good").expect("complete").0;
        assert!(matches!(
            framing("HTTP/1.1 304 N\r\nContent-Length: 7\r\n\r\n").framing,
            Framing::Length(0)
        ));
        let chunked =
            framing("HTTP/1.1 200 O\r\ntransfer-encoding: Chunked\r\nContent-Length: 3\r\n\r\n");
        assert!(matches!(chunked.framing, Framing::Chunked(_)));
        let endless = framing("HTTP/1.1 200 O\r\n\r\n");
        assert!(endless.close && matches!(endless.framing, Framing::UntilClose));
        assert!(
            framing("HTTP/1.1 200 O\r\nContent-Length: 0\r\nConnection: foo, Close\r\n\r\n").close
        );
        assert!(framing("HTTP/1.0 200 O\r\nContent-Length: 0\r\n\r\n").close);
        assert!(
            !framing("HTTP/1.0 200 O\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n").close
        );
        let answer = parse_head(b"HTTP/1.1 200 O\r\nContent-Length: 9\r\n\r\n", Operation::Head)
            .expect("good")
            .expect("complete")
            .0;
        assert!(answer.length == Some(9) && matches!(answer.framing, Framing::Length(0)));
    }

    #[test]
    fn an_etag_is_an_md5_unless_the_body_was_encrypted_by_another_key() {
        let md5 = |lines: &str| {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n");
            parse_head(text.as_bytes(), Operation::Write).expect("good").expect("complete").0.md5
        };
        let etag = "ETag: \"11111111111111111111111111111111\"\r\n";
        assert_eq!(md5(etag), Some([0x11; 16]));
        assert_eq!(
            md5(&format!("{etag}x-amz-server-side-encryption: AES256\r\n")),
            Some([0x11; 16])
        );
        assert_eq!(md5(&format!("X-Amz-Server-Side-Encryption: aws:kms\r\n{etag}")), None);
        assert_eq!(md5("ETag: \"11111111111111111111111111111111-2\"\r\n"), None);
        assert_eq!(md5(""), None);
    }

    #[test]
    fn other_than_http_is_refused() {
        for text in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 999 What\r\n\r\n",
            "HTTP/1.1 101 Switching\r\n\r\n",
            "HTTP/1.1 200 O\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 O\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 O\r\nTransfer-Encoding: gzip\r\n\r\n",
        ] {
            assert!(head(text).is_err(), "{text}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(LARGEST_HEAD_BYTES));
        assert!(head(&endless).is_err());
    }

    #[test]
    fn chunks_are_decoded_in_pieces_of_any_size() {
        let text =
            b"5\r\nhello\r\n6;chunk-signature=ab\r\n world\r\n0\r\nx-amz-checksum: abc\r\n\r\nHTTP";
        for step in 1..text.len() {
            let (mut chunked, mut body, mut at) = (Chunked::default(), Vec::new(), 0);
            while !chunked.is_done() {
                let end = text.len().min(at + step);
                at += chunked
                    .take(&text[at..end], |part| body.extend_from_slice(part))
                    .expect("good");
            }
            assert_eq!(
                (body.as_slice(), &text[at..]),
                (&b"hello world"[..], &b"HTTP"[..]),
                "step {step}"
            );
        }
    }

    #[test]
    fn broken_chunks_are_refused() {
        for text in ["x\r\n", "\r\n", "3\r\nhello\r\n", "ffffffffffffffffff\r\n"] {
            assert!(Chunked::default().take(text.as_bytes(), |_| {}).is_err(), "{text}");
        }
        let line = "1;".to_owned() + &"e".repeat(LONGEST_LINE);
        assert!(Chunked::default().take(line.as_bytes(), |_| {}).is_err());
    }
}
