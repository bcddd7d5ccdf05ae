//! The FastCGI record layer: parses what a web server sends and builds the answers.
//!
//! Written after the FastCGI 1.0 specification. A connection has one request at a time, as web
//! servers use it.

/// The largest content of a record, a multiple of 8 so that it needs no padding.
pub(crate) const LARGEST_CONTENT_BYTES: usize = 65528;

/// Bytes of a record's header.
pub(crate) const HEADER_BYTES: usize = 8;

/// Bytes that end an answer: the end of its output, and of the request.
pub(crate) const END_BYTES: usize = 3 * HEADER_BYTES;

/// Names and values of `GET_VALUES` are short; no web server sends longer ones.
const LARGEST_VALUES_BYTES: usize = 4096;

const VERSION: u8 = 1;
const BEGIN_REQUEST: u8 = 1;
const ABORT_REQUEST: u8 = 2;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const GET_VALUES: u8 = 9;
const GET_VALUES_RESULT: u8 = 10;
const UNKNOWN_TYPE: u8 = 11;

const RESPONDER: u16 = 1;
const KEEP_CONNECTION: u8 = 1;
const UNKNOWN_ROLE: u8 = 3;

/// A parsed piece of a web server's data. Streams come in pieces of any size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Piece<'a> {
    /// A request begins.
    Begin {
        /// The request's id.
        id: u16,
        /// Whether it asks for a responder, the only supported role.
        responder: bool,
        /// Whether the connection stays open after the answer.
        keep: bool,
    },
    /// Names and values of the request.
    Params(u16, &'a [u8]),
    /// The end of the parameters.
    ParamsEnd(u16),
    /// A part of the body.
    Stdin(u16, &'a [u8]),
    /// The end of the body.
    StdinEnd(u16),
    /// The web server aborts the request.
    Abort(u16),
    /// A query for variables.
    GetValues(&'a [u8]),
    /// A management record of an unknown type.
    Unknown(u8),
    /// A record that a responder ignores.
    Nothing,
}

/// Why data is not FastCGI.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Malformed(pub &'static str);

/// Parses records from a buffer that the caller fills.
#[derive(Debug)]
pub struct Records {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The type and id of the record whose content is being read.
    current: (u8, u16),
    content: usize,
    padding: usize,
}

impl Records {
    /// With a buffer of this size, which must hold the largest record that is read in one piece.
    pub fn new(size: usize) -> Self {
        Self {
            buffer: vec![0; size].into_boxed_slice(),
            start: 0,
            end: 0,
            current: (0, 0),
            content: 0,
            padding: 0,
        }
    }

    /// The free part of the buffer; never empty after `next` has returned `None`.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes were put into `space`.
    pub fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    /// Whether a record is incomplete.
    pub(crate) fn amid(&self) -> bool {
        self.start != self.end || self.content > 0 || self.padding > 0
    }

    /// The next piece, of at most `most` bytes of a stream; `None` when more data is needed.
    /// Errors: When the data is not FastCGI.
    pub fn next(&mut self, most: usize) -> Result<Option<Piece<'_>>, Malformed> {
        if self.content == 0 {
            let skipped = self.padding.min(self.end - self.start);
            self.start += skipped;
            self.padding -= skipped;
            if self.padding > 0 || self.end - self.start < HEADER_BYTES {
                return Ok(None);
            }
            let header = &self.buffer[self.start..self.start + HEADER_BYTES];
            if header[0] != VERSION {
                return Err(Malformed("a record of another version than 1"));
            }
            let (kind, id) = (header[1], u16::from_be_bytes([header[2], header[3]]));
            let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let padding = usize::from(header[6]);
            let streamed = matches!(kind, PARAMS | STDIN) && length > 0;
            if !streamed {
                return self.complete(kind, id, length, padding);
            }
            self.start += HEADER_BYTES;
            (self.current, self.content, self.padding) = ((kind, id), length, padding);
        }
        let taken = self.content.min(self.end - self.start).min(most);
        if taken == 0 {
            return Ok(None);
        }
        let piece = &self.buffer[self.start..self.start + taken];
        self.start += taken;
        self.content -= taken;
        let (kind, id) = self.current;
        Ok(Some(if kind == PARAMS { Piece::Params(id, piece) } else { Piece::Stdin(id, piece) }))
    }

    /// A record that is read in one piece.
    fn complete(
        &mut self,
        kind: u8,
        id: u16,
        length: usize,
        padding: usize,
    ) -> Result<Option<Piece<'_>>, Malformed> {
        if length > LARGEST_VALUES_BYTES {
            return Err(Malformed("a management record of more than 4 KiB"));
        }
        if self.end - self.start < HEADER_BYTES + length {
            return Ok(None);
        }
        let content = self.start + HEADER_BYTES;
        self.start = content + length;
        self.padding = padding;
        let content = &self.buffer[content..content + length];
        Ok(Some(match kind {
            BEGIN_REQUEST if length >= 8 => Piece::Begin {
                id,
                responder: u16::from_be_bytes([content[0], content[1]]) == RESPONDER,
                keep: content[2] & KEEP_CONNECTION != 0,
            },
            BEGIN_REQUEST => return Err(Malformed("a BEGIN_REQUEST of less than 8 bytes")),
            PARAMS => Piece::ParamsEnd(id),
            STDIN => Piece::StdinEnd(id),
            ABORT_REQUEST => Piece::Abort(id),
            GET_VALUES => Piece::GetValues(content),
            _ if id == 0 => Piece::Unknown(kind),
            _ => Piece::Nothing,
        }))
    }
}

/// The header of a record.
fn header(kind: u8, id: u16, content: u16) -> [u8; HEADER_BYTES] {
    let (id, content) = (id.to_be_bytes(), content.to_be_bytes());
    [VERSION, kind, id[0], id[1], content[0], content[1], 0, 0]
}

/// The header of an output record of this length, at most [`LARGEST_CONTENT_BYTES`].
pub(crate) fn stdout_header(id: u16, content: usize) -> [u8; HEADER_BYTES] {
    header(STDOUT, id, u16::try_from(content).expect("a caller keeps to LARGEST_CONTENT_BYTES"))
}

/// The end of a request's output and of the request, without an error.
pub(crate) fn push_end(out: &mut Vec<u8>, id: u16) {
    out.extend(header(STDOUT, id, 0));
    out.extend(header(END_REQUEST, id, 8));
    out.extend([0; 8]);
}

/// The end of a request for an unsupported role.
pub(crate) fn push_unknown_role(out: &mut Vec<u8>, id: u16) {
    out.extend(header(END_REQUEST, id, 8));
    out.extend([0, 0, 0, 0, UNKNOWN_ROLE, 0, 0, 0]);
}

/// The answer to a management record of an unknown type.
pub(crate) fn push_unknown_type(out: &mut Vec<u8>, kind: u8) {
    out.extend(header(UNKNOWN_TYPE, 0, 8));
    out.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
}

/// The answer to `GET_VALUES`: requests are not multiplexed. The number of connections and requests
/// has no limit, so that those names get no answer, as the specification asks of unknown names.
/// Errors: When the query is not a list of names and values.
pub fn push_values(out: &mut Vec<u8>, asked: &[u8]) -> Result<(), Malformed> {
    let multiplexes = b"FCGI_MPXS_CONNS";
    let mut content = Vec::new();
    for pair in Pairs(asked) {
        if pair?.0 == multiplexes {
            content.extend([multiplexes.len() as u8, 1]);
            content.extend(multiplexes);
            content.push(b'0');
        }
    }
    out.extend(header(
        GET_VALUES_RESULT,
        0,
        u16::try_from(content.len()).map_err(|_| Malformed("the same name again and again"))?,
    ));
    out.extend(content);
    Ok(())
}

/// An iterator over names and values.
#[derive(Debug)]
pub struct Pairs<'a>(pub &'a [u8]);

impl<'a> Pairs<'a> {
    fn length(&mut self) -> Option<usize> {
        let (&first, rest) = self.0.split_first()?;
        if first < 128 {
            self.0 = rest;
            return Some(usize::from(first));
        }
        let (long, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some((u32::from_be_bytes(*long) & 0x7fff_ffff) as usize)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (name, value) = (self.length()?, self.length()?);
        Some((self.take(name)?, self.take(value)?))
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let pair = self.pair().ok_or(Malformed("truncated names and values"));
        if pair.is_err() {
            self.0 = &[];
        }
        Some(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
        let mut bytes = header(kind, 1, content.len() as u16).to_vec();
        bytes[6] = padding;
        bytes.extend(content);
        bytes.extend(vec![0xAA; usize::from(padding)]);
        bytes
    }

    /// Parameters, body and other pieces.
    type Read = (Vec<u8>, Vec<u8>, Vec<String>);

    /// All pieces of the bytes when received in parts of `part` bytes, with streams joined.
    fn read(bytes: &[u8], part: usize, most: usize) -> Result<Read, Malformed> {
        let mut records = Records::new(8192);
        let (mut params, mut stdin, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        for part in bytes.chunks(part) {
            records.space()[..part.len()].copy_from_slice(part);
            records.filled(part.len());
            while let Some(piece) = records.next(most)? {
                match piece {
                    Piece::Params(1, piece) => params.extend(piece),
                    Piece::Stdin(1, piece) => {
                        assert!(piece.len() <= most);
                        stdin.extend(piece);
                    }
                    other => marks.push(format!("{other:?}")),
                }
            }
        }
        assert!(!records.amid());
        Ok((params, stdin, marks))
    }

    #[test]
    fn records_are_parsed_the_same_in_parts_of_any_size() {
        let begin = record(BEGIN_REQUEST, &[0, 1, 1, 0, 0, 0, 0, 0], 0);
        let body: Vec<u8> = (0..3000_u32).map(|n| n as u8).collect();
        let parts = [
            begin,
            record(PARAMS, b"\x01\x02Ab", 5),
            record(PARAMS, b"c", 7),
            record(PARAMS, b"", 0),
            record(STDIN, &body, 255),
            record(STDIN, b"", 3),
        ];
        let bytes = parts.concat();
        let marks = ["Begin { id: 1, responder: true, keep: true }", "ParamsEnd(1)", "StdinEnd(1)"];
        for (part, most) in [(1, 4096), (7, 10), (8192, 4096), (4096, 1), (9, 8)] {
            let (params, stdin, seen) = read(&bytes, part, most).unwrap();
            assert_eq!(
                (params.as_slice(), stdin.as_slice()),
                (&b"\x01\x02Abc"[..], &body[..]),
                "{part} {most}"
            );
            assert_eq!(seen, marks, "{part} {most}");
        }
    }

    #[test]
    fn other_versions_and_records_of_wrong_length_are_refused() {
        assert_eq!(
            read(&[2, 1, 0, 1, 0, 0, 0, 0], 8, 8),
            Err(Malformed("a record of another version than 1"))
        );
        let long = header(GET_VALUES, 0, 5000);
        assert_eq!(read(&long, 8, 8), Err(Malformed("a management record of more than 4 KiB")));
        assert_eq!(
            read(&record(BEGIN_REQUEST, b"ab", 0), 8, 8),
            Err(Malformed("a BEGIN_REQUEST of less than 8 bytes"))
        );
    }

    #[test]
    fn values_report_only_that_requests_are_not_multiplexed() {
        let mut out = Vec::new();
        push_values(&mut out, b"\x0e\0FCGI_MAX_CONNS\x0f\0FCGI_MPXS_CONNS").unwrap();
        assert_eq!(out, b"\x01\x0a\0\0\0\x12\0\0\x0f\x01FCGI_MPXS_CONNS0");
        assert!(push_values(&mut out, b"\x0f\0FCGI").is_err());
    }

    #[test]
    fn names_and_values_may_have_long_lengths() {
        let mut bytes = vec![4, 0x80, 0, 1, 0];
        bytes.extend(b"LONG");
        bytes.extend([b'x'; 256]);
        bytes.extend(b"\x01\0E");
        let pairs: Vec<_> = Pairs(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!(pairs, [(&b"LONG"[..], &[b'x'; 256][..]), (b"E", b"")]);
        bytes.pop();
        assert!(Pairs(&bytes).any(|pair| pair.is_err()));
        assert!(Pairs(&[0xff; 8]).any(|pair| pair.is_err()));
    }
}
