//! Mutated data from a web server or radosgw is parsed the same in parts of any size, or refused;
//! nothing panics.
//!
//! `tests/mutation.rs` of the suite defines the mutations.

#[path = "../../../../tests/mutation.rs"]
mod mutation;

use mutation::{Bytes, cut, faults, hold, sizes, spoilt, with_faults};
use proptest::prelude::*;
use responder::record::{Malformed, Pairs, Piece, Records, push_values};
use responder::reply::{Chunks, Head};
use responder::request::Request;

fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    let mut bytes = vec![1, kind, 0, 1, length[0], length[1], padding, 0];
    bytes.extend(content);
    bytes.extend(vec![0xAA; usize::from(padding)]);
    bytes
}

fn session() -> Vec<u8> {
    let params = b"\x0e\x03REQUEST_METHODPUT\x0b\x04REQUEST_URI/b/o\
                   \x09\x04HTTP_HOSThost\x0e\x02CONTENT_LENGTH10";
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

/// Joined streams, and everything else as text; an error is the last of it.
fn read(parts: &[&[u8]], most: usize) -> (Bytes, Bytes, Vec<String>) {
    let mut records = Records::new(8192);
    let (mut params, mut stdin, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        let space = records.space();
        assert!(space.len() >= part.len(), "there is always space for the next part");
        space[..part.len()].copy_from_slice(part);
        records.filled(part.len());
        loop {
            match records.next(most) {
                Ok(None) => break,
                Ok(Some(Piece::Params(_, piece))) => params.extend(piece),
                Ok(Some(Piece::Stdin(_, piece))) => stdin.extend(piece),
                Ok(Some(other)) => marks.push(format!("{other:?}")),
                Err(Malformed(why)) => {
                    marks.push(why.to_owned());
                    return (Bytes(params), Bytes(stdin), marks);
                }
            }
        }
    }
    (Bytes(params), Bytes(stdin), marks)
}

#[test]
fn mutated_records_are_parsed_the_same_however_they_are_cut_or_refused_alike() {
    hold((spoilt(&session()), sizes(40), 1..=64_usize), |(bytes, sizes, most)| {
        let uncut = read(&bytes.0.chunks(4096).collect::<Vec<_>>(), 4096);
        assert_eq!(read(&cut(&bytes.0, &sizes), most), uncut);
        uncut.2.last().is_some_and(|mark| mark == "Abort(1)")
    });
}

const NAMES_AND_VALUES: [&[u8]; 10] = [
    b"REQUEST_METHOD",
    b"PUT",
    b"REQUEST_URI",
    b"/b/o",
    b"HTTP_HOST",
    b"host",
    b"HTTP_X_A",
    b"ab",
    b"CONTENT_LENGTH",
    b"5",
];

/// Names and values encoded as parameters.
fn params<T: AsRef<[u8]>>(texts: &[T]) -> Vec<u8> {
    let pairs = texts.chunks(2).map(|pair| (pair[0].as_ref(), pair[1].as_ref()));
    pairs
        .flat_map(|(name, value)| [&[name.len() as u8, value.len() as u8], name, value].concat())
        .collect()
}

#[test]
fn mutated_parameters_make_no_request_of_several_lines() {
    hold(spoilt(&params(&NAMES_AND_VALUES)), |bytes| is_one_request(&bytes.0));
}

#[test]
fn a_mutated_name_or_value_makes_no_request_of_several_lines() {
    let one = (0..NAMES_AND_VALUES.len(), faults()).prop_map(|(which, faults)| {
        let mut texts = NAMES_AND_VALUES.map(|text| Bytes(text.to_vec()));
        texts[which] = with_faults(texts[which].0.clone(), &faults);
        texts
    });
    hold(one, |texts| is_one_request(&params(&texts.map(|text| text.0))));
}

/// Whether parameters are a request, after checking that its head is a single one.
fn is_one_request(params: &[u8]) -> bool {
    assert!(Pairs(params).count() <= params.len() / 2 + 1);
    let _ = push_values(&mut Vec::new(), params);
    let Ok(request) = Request::parse(params) else { return false };
    let head = request.head(false);
    assert!(head.ends_with(b"\r\n\r\n"), "{}", head.escape_ascii());
    let lines: Vec<&[u8]> = head[..head.len() - 4].split(|&byte| byte == b'\n').collect();
    let (last, others) = lines.split_last().expect("a head has a line");
    for line in others {
        assert!(
            line.len() > 1 && line.iter().position(|&byte| byte == b'\r') == Some(line.len() - 1),
            "{}",
            head.escape_ascii()
        );
    }
    assert!(!last.contains(&b'\r') && !last.is_empty(), "{}", head.escape_ascii());
    // The target is passed on byte for byte and may not be UTF-8, which httparse requires.
    let words: Vec<&[u8]> = lines[0].trim_ascii_end().split(|&byte| byte == b' ').collect();
    assert!(
        matches!(words[..], [method, _, b"HTTP/1.1"] if is_token(method)),
        "{}",
        head.escape_ascii()
    );
    for line in &lines[1..] {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        assert!(is_token(name) && name.len() < line.len(), "{}", head.escape_ascii());
    }
    true
}

/// Whether this is a valid field name (RFC 9110, section 5.6.2).
fn is_token(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[test]
fn mutated_heads_are_refused_or_no_longer_than_the_data() {
    let head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nETag: \"a\"\r\n\
          Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    hold((spoilt(head), any::<bool>()), |(bytes, to_head)| {
        let Ok(Some((_, length))) = Head::parse(&bytes.0, to_head) else { return false };
        assert!(length <= bytes.0.len(), "{length}");
        true
    });
}

#[test]
fn mutated_chunks_are_decoded_the_same_however_they_are_cut_or_refused() {
    let body = b"5;x=y\r\nhello\r\n0006\r\n world\r\n0\r\nTrailer: t\r\n\r\n";
    hold((spoilt(body), sizes(9)), |(bytes, sizes)| {
        let uncut = decode(&[&bytes.0]);
        assert_eq!(decode(&cut(&bytes.0, &sizes)), uncut);
        matches!(uncut, Ok((_, true)))
    });
}

/// The decoded data and whether it is complete, or why it is refused. Data before a fault may be
/// passed on.
fn decode(parts: &[&[u8]]) -> Result<(Bytes, bool), &'static str> {
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
    Ok((Bytes(data), chunks == Chunks::Done))
}
