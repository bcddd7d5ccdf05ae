//! The bodies of writes as they are sent: as they are, or in `aws-chunked` encoding, see
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html> and
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html>.
//!
//! Hashes and checksums are computed for each request, as clients must: of what a request sends
//! before its head, the rest chunk by chunk as it is sent.

use crate::checksum::{PIECE_BYTES, Sum, checksum_of, each_piece};
use crate::content::Content;
use crate::sign::{ChunkSigner, NOTHING, Told, UNSIGNED, hex};
use crate::signing::{Checksum, Payload, Signing};
use crate::workload::put_number;
use ring::digest;
use std::ops::Range;

/// Bytes of content in a chunk that has a signature. S3 wants 8 KiB at least.
pub const SIGNED_CHUNK_BYTES: u64 = 64 << 10;
/// Bytes of content in a chunk without a signature, as botocore sends them.
pub const PLAIN_CHUNK_BYTES: u64 = 1 << 20;

const CHUNK_SIGNATURE: &[u8] = b";chunk-signature=";
const TRAILER_SIGNATURE: &[u8] = b"x-amz-trailer-signature:";

/// The SHA-256 of an object of `size`, in hexadecimal.
pub fn sha256_of(content: &Content, size: u64) -> [u8; 64] {
    sha256_between(content, size, 0, size)
}

fn sha256_between(content: &Content, size: u64, from: u64, to: u64) -> [u8; 64] {
    let mut hash = digest::Context::new(&digest::SHA256);
    each_piece(content, size, from, to, |piece| hash.update(piece));
    hex(hash.finish().as_ref())
}

/// What the head of a request says of its payload.
#[derive(Debug)]
pub struct Said {
    /// Of the body, if it is signed.
    sha256: Option<[u8; 64]>,
    hash: &'static [u8],
    /// The value is empty if it comes in a trailer.
    checksum: Option<(Checksum, String)>,
    decoded_length: Vec<u8>,
}

impl Said {
    /// For a request whose body is the object of `size`; `None`: it has none.
    pub fn of(signing: Signing, size: Option<u64>, content: &Content) -> Self {
        let mut said =
            Self { sha256: None, hash: UNSIGNED, checksum: None, decoded_length: Vec::new() };
        let Some(size) = size else {
            if matches!(signing.payload, Payload::Signed | Payload::Chunks) {
                said.hash = NOTHING;
            }
            return said;
        };
        match (signing.payload, signing.checksum) {
            (Payload::Unsigned, _) => {}
            (Payload::Signed, _) => said.sha256 = Some(sha256_of(content, size)),
            (Payload::Chunks, None) => said.hash = b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            (Payload::Chunks, Some(_)) => {
                said.hash = b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
            }
            (Payload::Trailer, _) => said.hash = b"STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        }
        said.checksum = signing.checksum.map(|kind| {
            let in_head = signing.in_head().is_some();
            (kind, if in_head { checksum_of(kind, content, size) } else { String::new() })
        });
        if signing.is_framed() {
            put_number(&mut said.decoded_length, size, 1);
        }
        said
    }

    /// For the signer.
    pub fn told(&self) -> Told<'_> {
        Told {
            hash: self.sha256.as_ref().map_or(self.hash, |hash| hash),
            checksum: self.checksum.as_ref().map(|(kind, value)| (*kind, value.as_bytes())),
            decoded_length: &self.decoded_length,
            copy_source: b"",
            encryption: &[],
            metadata: b"",
        }
    }
}

/// How a body is divided into chunks.
#[derive(Debug)]
pub struct Framing {
    chunk_bytes: u64,
    signer: Option<ChunkSigner>,
    trailer: Option<Sum>,
}

impl Framing {
    /// The framing of a workload's bodies; `signer` continues the signature of the head. `None`:
    /// they are sent as they are.
    pub fn of(signing: Signing, signer: impl FnOnce() -> ChunkSigner) -> Option<Self> {
        let is_signed = signing.payload == Payload::Chunks;
        signing.is_framed().then(|| Self {
            chunk_bytes: chunk_bytes(signing),
            signer: is_signed.then(signer),
            trailer: signing.checksum.map(Sum::new),
        })
    }

    /// Appends the line before a chunk, the bytes `from .. to` of the content.
    fn put_line(&mut self, out: &mut Vec<u8>, content: &Content, size: u64, from: u64, to: u64) {
        put_hex(out, to - from);
        if let Some(signer) = &mut self.signer {
            let hash = sha256_between(content, size, from, to);
            out.extend_from_slice(CHUNK_SIGNATURE);
            out.extend_from_slice(signer.chunk(&hash));
        }
        out.extend_from_slice(b"\r\n");
        if let Some(sum) = self.trailer.as_mut() {
            each_piece(content, size, from, to, |piece| sum.add(piece));
        }
    }

    /// Appends the last chunk, which is empty, and the trailer.
    fn put_end(&mut self, out: &mut Vec<u8>) {
        out.push(b'0');
        if let Some(signer) = &mut self.signer {
            out.extend_from_slice(CHUNK_SIGNATURE);
            out.extend_from_slice(
                signer.chunk(&hex(digest::digest(&digest::SHA256, b"").as_ref())),
            );
        }
        out.extend_from_slice(b"\r\n");
        if let Some(sum) = &self.trailer {
            let line = format!("{}:{}", sum.kind().header(), sum.text());
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b"\r\n");
            if let Some(signer) = &mut self.signer {
                out.extend_from_slice(TRAILER_SIGNATURE);
                out.extend_from_slice(signer.trailer(&line));
                out.extend_from_slice(b"\r\n");
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn chunk_bytes(signing: Signing) -> u64 {
    if signing.payload == Payload::Chunks { SIGNED_CHUNK_BYTES } else { PLAIN_CHUNK_BYTES }
}

/// Length of the body of an object of `size` as it is sent.
pub fn sent_length(signing: Signing, size: u64) -> u64 {
    if !signing.is_framed() {
        return size;
    }
    let line_end = 2;
    let is_signed = signing.payload == Payload::Chunks;
    let signature = if is_signed { CHUNK_SIGNATURE.len() as u64 + 64 } else { 0 };
    let chunk = |bytes: u64| hex_digits(bytes) + signature + line_end + bytes + line_end;
    let most = chunk_bytes(signing);
    let rest = size % most;
    let chunks = size / most * chunk(most) + if rest > 0 { chunk(rest) } else { 0 };
    let trailer = signing.checksum.map_or(0, |kind| {
        let value = match kind {
            Checksum::Crc32 => 8,
            Checksum::Crc64nvme => 12,
        };
        let signed = if is_signed { TRAILER_SIGNATURE.len() as u64 + 64 + line_end } else { 0 };
        kind.header().len() as u64 + 1 + value + line_end + signed
    });
    chunks + 1 + signature + line_end + trailer + line_end
}

/// What is sent of a request after its head.
#[derive(Debug, Default)]
pub struct Body {
    /// Size of the object.
    size: u64,
    /// Where the part of it that is sent ends.
    last: u64,
    /// Bytes of the content that were sent.
    at: u64,
    /// Where the current chunk ends in the content.
    end: u64,
    framing: Option<Framing>,
    /// What is before the content that is sent next: the request's head, then a chunk's line.
    before_sent: usize,
    /// What follows the last chunk's content.
    tail: Vec<u8>,
    tail_sent: usize,
}

impl Body {
    /// Begins a body, which is the bytes of `span` of an object of `size`; appends to `head`, the
    /// request's, what comes before the first content.
    pub fn begin(
        &mut self,
        head: &mut Vec<u8>,
        size: u64,
        span: Range<u64>,
        framing: Option<Framing>,
        content: &Content,
    ) {
        self.tail.clear();
        (self.at, self.before_sent, self.tail_sent) = (span.start, 0, 0);
        (self.size, self.framing) = (size, framing);
        (self.last, self.end) = (span.end, span.end);
        if self.framing.is_some() {
            self.next_chunk(head, content);
        }
    }

    /// What is sent next, in three pieces; `before` is what `begin` or `go_on` has written. All
    /// empty: a chunk ended.
    pub fn pieces<'a>(&'a self, before: &'a [u8], content: &'a Content) -> [&'a [u8]; 3] {
        let data = content.piece(
            self.size,
            self.at,
            (self.end - self.at).min(PIECE_BYTES as u64) as usize,
        );
        let is_last = self.at + data.len() as u64 == self.last;
        let tail = if is_last { &self.tail[self.tail_sent..] } else { &[] };
        [&before[self.before_sent..], data, tail]
    }

    /// `count` bytes of those pieces were sent.
    pub fn sent(&mut self, count: usize, before: &[u8]) {
        let first = count.min(before.len() - self.before_sent);
        self.before_sent += first;
        let data = ((count - first) as u64).min(self.end - self.at);
        self.at += data;
        self.tail_sent += count - first - data as usize;
    }

    /// Goes on to the next chunk, if the current one is sent: writes into `before` what precedes
    /// its content.
    pub fn go_on(&mut self, before: &mut Vec<u8>, content: &Content) {
        if self.at == self.end && self.at < self.last && self.before_sent == before.len() {
            before.clear();
            before.extend_from_slice(b"\r\n");
            self.before_sent = 0;
            self.next_chunk(before, content);
        }
    }

    fn next_chunk(&mut self, before: &mut Vec<u8>, content: &Content) {
        let Some(framing) = &mut self.framing else { return };
        self.end = self.last.min(self.at + framing.chunk_bytes);
        if self.at < self.end {
            framing.put_line(before, content, self.size, self.at, self.end);
        }
        if self.end == self.last {
            if self.last > 0 {
                self.tail.extend_from_slice(b"\r\n");
            }
            framing.put_end(&mut self.tail);
        }
    }
}

fn hex_digits(value: u64) -> u64 {
    u64::from((67 - value.max(1).leading_zeros()) / 4)
}

fn put_hex(out: &mut Vec<u8>, value: u64) {
    for place in (0..hex_digits(value)).rev() {
        out.push(b"0123456789abcdef"[(value >> (4 * place) & 15) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign::Signer;

    const WAYS: [(Payload, Option<Checksum>); 6] = [
        (Payload::Unsigned, None),
        (Payload::Chunks, None),
        (Payload::Chunks, Some(Checksum::Crc32)),
        (Payload::Chunks, Some(Checksum::Crc64nvme)),
        (Payload::Trailer, Some(Checksum::Crc32)),
        (Payload::Trailer, Some(Checksum::Crc64nvme)),
    ];

    /// All that is sent of an object, at most `step` bytes at a time.
    fn all(signing: Signing, size: u64, step: usize) -> Vec<u8> {
        sent_of(signing, size, 0..size, step)
    }

    fn sent_of(signing: Signing, size: u64, span: Range<u64>, step: usize) -> Vec<u8> {
        let content = Content::of(3, None);
        let mut signer = Signer::new("AK", "SK", "us-east-1", "");
        signer.put_headers(
            &mut Vec::new(),
            "PUT",
            b"h",
            b"/b/o",
            b"",
            1_400_000_000,
            &crate::sign::Told::default(),
        );
        let framing = Framing::of(signing, || signer.chunk_signer());
        let (mut body, mut before, mut sent) = (Body::default(), Vec::new(), Vec::new());
        body.begin(&mut before, size, span, framing, &content);
        loop {
            body.go_on(&mut before, &content);
            let joined = body.pieces(&before, &content).concat();
            let count = joined.len().min(step);
            if count == 0 {
                return sent;
            }
            sent.extend_from_slice(&joined[..count]);
            body.sent(count, &before);
        }
    }

    #[test]
    fn a_body_is_as_long_as_its_head_says_however_it_is_sent() {
        for (payload, checksum) in WAYS {
            let signing = Signing { payload, checksum, ..Signing::default() };
            for size in [0, 1, 15, 16, 4096, 65_535, 65_536, 65_537, 1 << 20, (3 << 20) + 7] {
                let whole = all(signing, size, usize::MAX);
                assert_eq!(whole.len() as u64, sent_length(signing, size), "{signing:?} {size}");
                if size < 100_000 {
                    assert_eq!(all(signing, size, 7), whole, "{signing:?} {size}");
                }
                assert_eq!(all(signing, size, 99_991), whole, "{signing:?} {size}");
            }
        }
    }

    #[test]
    fn a_part_of_an_object_is_its_bytes_and_no_others() {
        let (content, size) = (Content::of(3, None), 3_000_001);
        for span in [0..7, 5..5, 1_000_000..2_000_000, 2_000_000..size] {
            let expected = content.copy(size, span.start, (span.end - span.start) as usize);
            let sent = sent_of(Signing::default(), size, span.clone(), 99_991);
            assert_eq!(sent, expected, "{span:?}");
        }
    }

    #[test]
    fn a_trailer_has_the_checksum_of_all_chunks() {
        let content = Content::of(3, None);
        let size = (2 << 20) + 5;
        for kind in [Checksum::Crc32, Checksum::Crc64nvme] {
            let signing =
                Signing { payload: Payload::Trailer, checksum: Some(kind), ..Signing::default() };
            let end =
                format!("\r\n0\r\n{}:{}\r\n\r\n", kind.header(), checksum_of(kind, &content, size));
            let sent = all(signing, size, usize::MAX);
            assert!(sent.starts_with(b"100000\r\n"));
            assert!(sent.ends_with(end.as_bytes()), "{end}");
        }
    }
}
