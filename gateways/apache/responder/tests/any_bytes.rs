//! Whatever comes from a web server or from radosgw: it is read the same in whatever parts it comes, or refused; nothing panics.
//!
//! Bytes are good ones that were spoilt by chance, from seeds: a seed that fails is told and fails again.

use responder::record::{Malformed, Pairs, Piece, Records, push_values};
use responder::reply::{Chunks, Head};
use responder::request::Request;

const ROUNDS: u64 = 20_000;

/// Chance from a seed: xorshift64*, good enough to cut and to spoil.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }

    /// A few bytes of what is good replaced, left out, put in, repeated or cut off.
    fn spoil(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len());
            let length = self.below(9).min(bytes.len() - at);
            match self.below(6) {
                0 if !bytes.is_empty() => bytes[at] = self.below(256) as u8,
                1 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                2 => bytes.insert(at, self.below(256) as u8),
                3 => drop(bytes.drain(at..at + length)),
                4 => {
                    let part = bytes[at..at + length].to_vec();
                    bytes.splice(at..at, part);
                }
                _ => bytes.truncate(at),
            }
        }
        bytes
    }

    /// The bytes in parts of chance, none of them empty.
    fn cut<'a>(&mut self, mut bytes: &'a [u8], most: usize) -> Vec<&'a [u8]> {
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at((1 + self.below(most)).min(bytes.len()));
            parts.push(part);
            bytes = rest;
        }
        parts
    }
}

fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    let mut bytes = vec![1, kind, 0, 1, length[0], length[1], padding, 0];
    bytes.extend(content);
    bytes.extend(vec![0xAA; usize::from(padding)]);
    bytes
}

fn session() -> Vec<u8> {
    let params = b"\x0e\x03REQUEST_METHODPUT\x0b\x04REQUEST_URI/b/o\x09\x04HTTP_HOSThost\x0e\x02CONTENT_LENGTH10";
    let parts = [
        record(9, b"\x0f\0FCGI_MPXS_CONNS", 0),
        record(1, &[0, 1, 1, 0, 0, 0, 0, 0], 0),
        record(4, &params[..20], 4),
        record(4, &params[20..], 0),
        record(4, b"", 0),
        record(5, b"0123456789", 6),
        record(5, b"", 0),
        record(2, b"", 0),
    ];
    parts.concat()
}

/// Streams joined and all else in words; an error is the last of them.
fn read(parts: &[&[u8]], most: usize) -> (Vec<u8>, Vec<u8>, Vec<String>) {
    let mut records = Records::new(8192);
    let (mut params, mut stdin, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        let room = records.room();
        assert!(room.len() >= part.len(), "there is always room for what comes next");
        room[..part.len()].copy_from_slice(part);
        records.filled(part.len());
        loop {
            match records.next(most) {
                Ok(None) => break,
                Ok(Some(Piece::Params(_, piece))) => params.extend(piece),
                Ok(Some(Piece::Stdin(_, piece))) => stdin.extend(piece),
                Ok(Some(other)) => marks.push(format!("{other:?}")),
                Err(Malformed(why)) => {
                    marks.push(why.to_owned());
                    return (params, stdin, marks);
                }
            }
        }
    }
    (params, stdin, marks)
}

#[test]
fn spoilt_records_are_read_the_same_however_they_are_cut_or_refused_for_the_same_reason() {
    let good = session();
    for seed in 1..=ROUNDS {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let bytes = chance.spoil(&good);
        let whole = read(&bytes.chunks(4096).collect::<Vec<_>>(), 4096);
        let parts = chance.cut(&bytes, 40);
        let most = 1 + chance.below(64);
        assert_eq!(read(&parts, most), whole, "seed {seed}");
    }
}

#[test]
fn spoilt_names_and_values_end_and_make_no_request_of_several_lines() {
    let good = b"\x0e\x03REQUEST_METHODPUT\x0b\x04REQUEST_URI/b/o\x09\x04HTTP_HOSThost\x08\x02HTTP_X_Aab\x0e\x01CONTENT_LENGTH5";
    for seed in 1..=ROUNDS {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let bytes = chance.spoil(good);
        assert!(Pairs(&bytes).count() <= bytes.len() / 2 + 1, "seed {seed}");
        let _ = push_values(&mut Vec::new(), &bytes);
        let Ok(request) = Request::parse(&bytes) else { continue };
        let head = request.head(false);
        assert!(head.ends_with(b"\r\n\r\n"), "seed {seed}");
        let lines: Vec<&[u8]> = head[..head.len() - 4].split(|&byte| byte == b'\n').collect();
        let (last, others) = lines.split_last().expect("a head has a line");
        assert!(others.iter().all(|line| line.len() > 1 && line.ends_with(b"\r")), "seed {seed}: {}", head.escape_ascii());
        assert!(!last.contains(&b'\r') && !last.is_empty(), "seed {seed}: {}", head.escape_ascii());
        // A target is passed on byte for byte, so that httparse cannot be asked: it wants UTF-8 there.
        let words: Vec<&[u8]> = lines[0].trim_ascii_end().split(|&byte| byte == b' ').collect();
        assert!(matches!(words[..], [_, _, b"HTTP/1.1"]), "seed {seed}: {}", head.escape_ascii());
        for line in &lines[1..] {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            assert!(is_token(name) && name.len() < line.len(), "seed {seed}: {}", head.escape_ascii());
        }
    }
}

/// Whether this can be the name of a field (RFC 9110, section 5.6.2).
fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[test]
fn spoilt_answers_are_refused_or_read_and_the_same_chunks_come_however_they_are_cut() {
    let head =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    let body = b"5;x=y\r\nhello\r\n0006\r\n world\r\n0\r\nTrailer: t\r\n\r\n";
    for seed in 1..=ROUNDS {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let bytes = chance.spoil(head);
        if let Ok(Some((_, length))) = Head::parse(&bytes, chance.below(2) == 1) {
            assert!(length <= bytes.len(), "seed {seed}");
        }
        let bytes = chance.spoil(body);
        let parts = chance.cut(&bytes, 9);
        assert_eq!(decode(&parts), decode(&[&bytes]), "seed {seed}: {}", bytes.escape_ascii());
    }
}

/// The data of chunks and how it ended: whole, not yet, or why it is refused. What comes before a fault may be handed on.
fn decode(parts: &[&[u8]]) -> Result<(Vec<u8>, bool), &'static str> {
    let (mut chunks, mut kept, mut data) = (Chunks::default(), Vec::new(), Vec::new());
    for part in parts {
        kept.extend(*part);
        loop {
            let (before, length) = chunks.next(&kept).map_err(|refused| refused.0)?;
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
