//! Whatever a gateway answers: it comes to the same however it is cut, nothing panics, and no read is a success that is not whole.
//!
//! Answers are good ones that were spoilt by chance, from seeds: a seed that fails is told and fails again.

use _native::answer::{Answer, Asked, Due, Progress};
use _native::content::Content;
use _native::http::{Chunked, parse_head};
use _native::list::{Form, is_error, keys};
use _native::picker::{Object, Request};
use _native::recorder::Failure;
use _native::workload::Operation;

const ROUNDS: u64 = 10_000;
const SIZE: u64 = 300;
const OPERATIONS: [Operation; 5] = [Operation::Read, Operation::Write, Operation::Delete, Operation::List, Operation::Head];

/// Chance from a seed: xorshift64*, good enough to cut and to spoil.
struct Chance(u64);

impl Chance {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }

    /// A few bytes of what is good replaced, left out, put in, repeated or cut off; every fourth time none.
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

fn good(operation: Operation, framing: usize, content: &Content) -> Vec<u8> {
    let body: Vec<u8> = match operation {
        Operation::Read => content.copy(SIZE, 0, SIZE as usize),
        Operation::List => b"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>".to_vec(),
        _ => Vec::new(),
    };
    let length = if operation == Operation::Head { SIZE } else { body.len() as u64 };
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\nETag: \"{}\"\r\n{fields}\r\n", "1".repeat(32)).into_bytes();
    match framing {
        0 => [&head(&format!("Content-Length: {length}\r\n"))[..], &body].concat(),
        1 if !body.is_empty() => {
            let size = format!("{:x};a=b\r\n", body.len());
            [&head("Transfer-Encoding: chunked\r\n")[..], size.as_bytes(), &body, b"\r\n0\r\nT: u\r\n\r\n"].concat()
        }
        1 => [b"HTTP/1.1 100 Continue\r\n\r\n", &head(&format!("Content-Length: {length}\r\n"))[..], &body].concat(),
        _ => [&head("Connection: close\r\n")[..], &body].concat(),
    }
}

/// How an answer ends whose parts come in, after which the peer closes: fine, or why not.
fn ended(operation: Operation, parts: &[&[u8]], content: &Content, seed: u64) -> Result<(), Option<Failure>> {
    let request = Request { operation, container: 0, object: Object::Prepared(0), size: SIZE };
    let asked = Asked { request: &request, content, verify: true };
    let mut answer = Answer::default();
    let mut progress = Progress::More;
    for part in parts {
        progress = answer.take(part, &asked);
        if !matches!(progress, Progress::More) {
            break;
        }
    }
    if matches!(progress, Progress::More) {
        progress = answer.end();
    }
    match progress {
        Progress::Whole => {
            let due = Due { md5: Some([0x11; 16]), xml: true, least_listed: 1 };
            let judged = answer.judge(&request, &due, false).map_err(|(class, _)| Some(class));
            if judged.is_ok() && operation == Operation::Read {
                assert_eq!(answer.received(), SIZE, "seed {seed}: a read that is fine is whole");
            }
            judged
        }
        Progress::Failed(class, _) => Err(Some(class)),
        Progress::More => Err(None),
    }
}

#[test]
fn spoilt_answers_are_fine_or_not_however_they_are_cut() {
    let content = Content::new(1);
    let mut fine = 0;
    for seed in 1..=ROUNDS {
        let mut chance = Chance::of(seed);
        let operation = OPERATIONS[chance.below(OPERATIONS.len())];
        let text = good(operation, chance.below(3), &content);
        let bytes = chance.spoil(&text);
        let whole = ended(operation, &[&bytes], &content, seed);
        let parts = chance.cut(&bytes, 60);
        let cut = ended(operation, &parts, &content, seed);
        assert_eq!(cut.is_ok(), whole.is_ok(), "seed {seed}: {operation:?} {cut:?} {whole:?} {}", bytes.escape_ascii());
        fine += u64::from(whole.is_ok());
    }
    assert!(fine > ROUNDS / 10 && fine < ROUNDS, "{fine} of {ROUNDS} were fine");
}

#[test]
fn spoilt_heads_are_no_longer_than_what_came_and_chunks_take_no_more_than_they_are_given() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nETag: \"a\"\r\nConnection: close\r\n\r\n";
    let body = b"5\r\nhello\r\n6;chunk-signature=ab\r\n world\r\n0\r\nx-amz-checksum: abc\r\n\r\nHTTP";
    for seed in 1..=ROUNDS {
        let mut chance = Chance::of(seed);
        let bytes = chance.spoil(head);
        if let Ok(Some((_, length))) = parse_head(&bytes, OPERATIONS[chance.below(OPERATIONS.len())]) {
            assert!(length <= bytes.len(), "seed {seed}");
        }
        let bytes = chance.spoil(body);
        let unchunked = |parts: &[&[u8]]| {
            let (mut chunked, mut taken, mut used) = (Chunked::default(), Vec::new(), 0);
            for part in parts {
                used += chunked.take(part, |part| taken.extend_from_slice(part)).map_err(|refused| refused.0)?;
            }
            assert!(used <= bytes.len() && taken.len() <= used, "seed {seed}");
            Ok::<_, &str>((taken, used, chunked.is_done()))
        };
        let whole = unchunked(&[&bytes]);
        let parts = chance.cut(&bytes, 9);
        assert_eq!(unchunked(&parts), whole, "seed {seed}: {}", bytes.escape_ascii());
    }
}

#[test]
fn spoilt_listings_have_no_more_keys_than_bytes_or_are_refused() {
    let entries = "<Contents><Key>a&amp;b</Key></Contents><Contents><Key>b</Key></Contents>";
    let xml = format!("<?xml version=\"1.0\"?><ListBucketResult>{entries}</ListBucketResult>");
    let json = br#"[{"name":"a\"b","bytes":1},{"name":"\u00e4","hash":"x"},{"subdir":"d/"}]"#;
    for seed in 1..=ROUNDS {
        let mut chance = Chance::of(seed);
        for (form, good) in [(Form::Xml, xml.as_bytes()), (Form::Json, &json[..]), (Form::Plain, b"a\nb\nc\n")] {
            let bytes = chance.spoil(good);
            if let Ok(count) = keys(form, &bytes) {
                assert!(count <= bytes.len() as u64, "seed {seed}");
            }
            let _ = is_error(&bytes);
        }
    }
}
