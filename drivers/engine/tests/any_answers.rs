//! Fuzz tests of the parsers of answers: the result does not depend on how the bytes are split into
//! pieces, nothing panics, and no incomplete read succeeds.
//!
//! Inputs are valid answers mutated by `tests/mutation.rs`.

#[path = "../../../tests/mutation.rs"]
mod mutation;

use _native::answer::{Answer, Expected, Progress, Required};
use _native::content::Content;
use _native::http::{Chunked, parse_head};
use _native::list::{Form, is_error, keys};
use _native::list_versions::versions_page;
use _native::picker::{Object, Request};
use _native::recorder::Failure;
use _native::results::{bulk_deleted, copied, multi_deleted, upload_id};
use _native::workload::Operation;
use mutation::{Bytes, cut, faults, hold, sizes, spoilt, with_faults};
use proptest::prelude::*;
use proptest::sample::select;

const SIZE: u64 = 300;
const OPERATIONS: [Operation; 5] =
    [Operation::Read, Operation::Write, Operation::Delete, Operation::List, Operation::Head];

fn good(operation: Operation, framing: usize, content: &Content) -> Vec<u8> {
    let body: Vec<u8> = match operation {
        Operation::Read => content.copy(SIZE, 0, SIZE as usize),
        Operation::List => {
            b"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>".to_vec()
        }
        _ => Vec::new(),
    };
    let length = if operation == Operation::Head { SIZE } else { body.len() as u64 };
    let head = |fields: &str| {
        format!("HTTP/1.1 200 OK\r\nETag: \"{}\"\r\n{fields}\r\n", "1".repeat(32)).into_bytes()
    };
    match framing {
        0 => [&head(&format!("Content-Length: {length}\r\n"))[..], &body].concat(),
        1 if !body.is_empty() => {
            let (first, rest) = body.split_at(10);
            let size = format!("\r\n{:x};a=b\r\n", rest.len());
            let head = head("Transfer-Encoding: chunked\r\n");
            [&head[..], b"a\r\n", first, size.as_bytes(), rest, b"\r\n0\r\nT: u\r\n\r\n"].concat()
        }
        1 => [
            b"HTTP/1.1 100 Continue\r\n\r\n",
            &head(&format!("Content-Length: {length}\r\n"))[..],
            &body,
        ]
        .concat(),
        _ if operation == Operation::Head => {
            head(&format!("Content-Length: {length}\r\nConnection: close\r\n"))
        }
        _ => [&head("Connection: close\r\n")[..], &body].concat(),
    }
}

/// Parses an answer that arrives in these parts, after which the peer closes.
fn ended(
    operation: Operation,
    parts: &[&[u8]],
    content: &Content,
    verify: bool,
) -> Result<(), Option<Failure>> {
    let request = Request::whole(operation, 0, Object::Prepared(0), SIZE);
    let expected = Expected { request: &request, content, verify };
    let mut answer = Answer::default();
    let mut progress = Progress::More;
    for part in parts {
        progress = answer.take(part, &expected);
        if !matches!(progress, Progress::More) {
            break;
        }
    }
    if matches!(progress, Progress::More) {
        progress = answer.end();
    }
    match progress {
        Progress::Complete => {
            let required = Required {
                md5: Some([0x11; 16]),
                xml: true,
                least_listed: 1,
                most_listed: 1000,
                ..Required::default()
            };
            let checked = answer
                .check(&request, &required, false)
                .map(|_| ())
                .map_err(|(class, _)| Some(class));
            if checked.is_ok() && operation == Operation::Read {
                assert_eq!(answer.received(), SIZE, "a successful read is complete");
            }
            checked
        }
        Progress::Failed(class, _) => Err(Some(class)),
        Progress::More => Err(None),
    }
}

#[test]
fn the_result_for_a_mutated_answer_does_not_depend_on_its_pieces() {
    let content = Content::new(1);
    let answers =
        (select(&OPERATIONS[..]), 0..3_usize, faults()).prop_map(|(operation, framing, faults)| {
            let good = good(operation, framing, &content);
            let bytes = with_faults(good.clone(), &faults);
            (operation, bytes.0 == good, bytes)
        });
    hold((answers, sizes(60), any::<bool>()), |((operation, unspoilt, bytes), sizes, verify)| {
        let at_once = ended(operation, &[&bytes.0], &content, verify);
        let cut = ended(operation, &cut(&bytes.0, &sizes), &content, verify);
        assert_eq!(cut.is_ok(), at_once.is_ok(), "{cut:?} {at_once:?}");
        assert!(at_once.is_ok() || !unspoilt, "{at_once:?}");
        at_once.is_ok()
    });
}

#[test]
fn a_mutated_head_is_no_longer_than_the_input() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\
        ETag: \"a\"\r\nConnection: close\r\n\r\n";
    hold((spoilt(head), select(&OPERATIONS[..])), |(bytes, operation)| {
        let Ok(Some((_, length))) = parse_head(&bytes.0, operation) else { return false };
        assert!(length <= bytes.0.len(), "{length}");
        true
    });
}

#[test]
fn the_result_for_mutated_chunks_is_bounded_and_does_not_depend_on_their_pieces() {
    let body =
        b"5\r\nhello\r\n6;chunk-signature=ab\r\n world\r\n0\r\nx-amz-checksum: abc\r\n\r\nHTTP";
    hold((spoilt(body), sizes(9)), |(bytes, sizes)| {
        let unchunked = |parts: &[&[u8]]| {
            let (mut chunked, mut taken, mut used) = (Chunked::default(), Vec::new(), 0);
            for part in parts {
                used += chunked
                    .take(part, |part| taken.extend_from_slice(part))
                    .map_err(|refused| refused.0)?;
            }
            assert!(
                used <= bytes.0.len() && taken.len() <= used,
                "{used} used for {}",
                taken.len()
            );
            Ok::<_, &str>((Bytes(taken), used, chunked.is_done()))
        };
        let at_once = unchunked(&[&bytes.0]);
        assert_eq!(unchunked(&cut(&bytes.0, &sizes)), at_once);
        matches!(at_once, Ok((_, _, true)))
    });
}

#[test]
fn a_mutated_listing_is_refused_or_has_no_more_keys_than_bytes() {
    let entries = "<Contents><Key>a&amp;b</Key></Contents><Contents><Key>b</Key></Contents>";
    let xml = format!("<?xml version=\"1.0\"?><ListBucketResult>{entries}</ListBucketResult>");
    let json = br#"[{"name":"a\"b","bytes":1},{"name":"\u00e4","hash":"x"}]"#;
    for (form, good) in
        [(Form::Xml, xml.as_bytes()), (Form::Json, &json[..]), (Form::Plain, b"a\nb\nc\n")]
    {
        hold(spoilt(good), |bytes| {
            let _ = is_error(&bytes.0);
            let Ok(count) = keys(form, &bytes.0) else { return false };
            assert!(count <= bytes.0.len() as u64, "{form:?} {count}");
            true
        });
    }
}

#[test]
fn a_mutated_listing_of_versions_is_refused_or_has_no_more_of_them_than_bytes() {
    let version =
        |id: u8| format!("<Version><Key>a&amp;b</Key><VersionId>{id}</VersionId></Version>");
    let inside = version(2) + &version(1) + "<IsTruncated>true</IsTruncated>";
    let xml = format!("<?xml version=\"1.0\"?><ListVersionsResult>{inside}</ListVersionsResult>");
    let json = br#"[{"name":"a","version_id":"2.5"},{"name":"a","version_id":"1.5"}]"#;
    for (form, good) in [(Form::Xml, xml.as_bytes()), (Form::Json, &json[..])] {
        hold(spoilt(good), |bytes| {
            let Ok(page) = versions_page(form, &bytes.0, b"a") else { return false };
            assert!(page.names <= page.keys && page.keys <= bytes.0.len() as u64, "{page:?}");
            assert!(page.keys == 0 || page.first <= page.last, "{page:?}");
            true
        });
    }
}

#[test]
fn a_mutated_result_is_refused_or_counts_no_more_than_it_has_bytes() {
    let many = b"<DeleteResult><Deleted><Key>object-0000000000</Key></Deleted><Error><Key>b</Key>\
        <Code>AccessDenied</Code></Error></DeleteResult>";
    hold(spoilt(many), |bytes| {
        let Ok(found) = multi_deleted(&bytes.0, 0..2) else { return false };
        assert!(found.deleted <= bytes.0.len() as u64, "{found:?}");
        true
    });
    let json = br#"{"Number Deleted":2,"Response Status":"200 OK","Errors":[["/c/o","409"]]}"#;
    let text = b"Number Deleted: 2\nNumber Not Found: 1\nResponse Status: 200 OK\nErrors:\n";
    hold(spoilt(json), |bytes| bulk_deleted(&bytes.0).is_ok());
    hold(spoilt(text), |bytes| bulk_deleted(&bytes.0).is_ok());
    let begun = b"<InitiateMultipartUploadResult><UploadId>2~a&amp;b</UploadId>\
        </InitiateMultipartUploadResult>";
    hold(spoilt(begun), |bytes| {
        let Ok(id) = upload_id(&bytes.0) else { return false };
        assert!(!id.is_empty() && id.len() <= bytes.0.len(), "{id:?}");
        true
    });
    let copy = b"<CopyObjectResult><ETag>&quot;11111111111111111111111111111111&quot;</ETag>\
        </CopyObjectResult>";
    hold(spoilt(copy), |bytes| copied(&bytes.0).is_ok());
}
