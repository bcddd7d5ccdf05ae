use super::*;
use crate::picker::Object;

const SIZE: u64 = 1000;

/// Parses an answer to `operation` in pieces of `step` bytes; returns the last state.
fn answered(operation: Operation, text: &[u8], step: usize) -> (Progress, Result<(), Failure>) {
    let content = Content::new(1);
    let request = Request::whole(operation, 0, Object::Prepared(0), SIZE);
    let expected = Expected { request: &request, content: &content, verify: true };
    let mut answer = Answer::default();
    let mut progress = Progress::More;
    for piece in text.chunks(step) {
        progress = answer.take(piece, &expected);
        if !matches!(progress, Progress::More) {
            break;
        }
    }
    let required = Required {
        md5: Some([0x11; 16]),
        xml: true,
        least_listed: 2,
        most_listed: 1000,
        ..Required::default()
    };
    let checked = answer.check(&request, &required, false);
    (progress, checked.map(|_| ()).map_err(|(class, _)| class))
}

#[test]
fn an_answer_is_checked_for_content_and_etag() {
    let list = |keys: usize| {
        let keys = (0..keys).map(|key| format!("<Contents><Key>k{key:04}</Key></Contents>"));
        format!("<ListBucketResult>{}</ListBucketResult>", keys.collect::<String>())
    };
    let error = "<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>".to_owned();
    let etag = |digit: &str| format!("ETag: \"{}\"\r\n", digit.repeat(32));
    for (operation, headers, body, wanted) in [
        (Operation::Write, etag("1"), String::new(), Ok(())),
        (Operation::Write, String::new(), String::new(), Ok(())),
        (Operation::Write, "ETag: \"none\"\r\n".into(), String::new(), Ok(())),
        (Operation::Write, etag("2"), String::new(), Err(Failure::WrongEtag)),
        (Operation::Write, etag("1"), error.clone(), Err(Failure::ErrorBody)),
        (Operation::Read, String::new(), error.clone(), Err(Failure::ErrorBody)),
        (Operation::Delete, String::new(), error.clone(), Err(Failure::ErrorBody)),
        (Operation::List, String::new(), error, Err(Failure::ErrorBody)),
        (Operation::List, String::new(), list(2), Ok(())),
        (Operation::List, String::new(), list(1000), Ok(())),
        (Operation::List, String::new(), list(1), Err(Failure::BadList)),
        (Operation::List, String::new(), list(1001), Err(Failure::BadList)),
        (Operation::List, String::new(), "not XML".into(), Err(Failure::BadList)),
        (Operation::List, String::new(), list(3).replace("k0002", "k0001"), Err(Failure::BadList)),
        (
            Operation::List,
            "Content-Type: application/json\r\n".into(),
            "[{\"name\":\"a\"},{\"name\":\"b\"}]".into(),
            Ok(()),
        ),
    ] {
        let text =
            format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        let chunked = format!(
            "HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        );
        for step in [1, 7, 100_000] {
            assert_eq!(
                answered(operation, text.as_bytes(), step).1,
                wanted,
                "{operation:?} {headers} {body} by {step}"
            );
            if !body.is_empty() {
                assert_eq!(
                    answered(operation, chunked.as_bytes(), step).1,
                    wanted,
                    "chunked {operation:?} {headers} {body}"
                );
            }
        }
    }
}

#[test]
fn pieces_of_any_size_are_accepted() {
    let body = Content::new(1).copy(SIZE, 0, SIZE as usize);
    let text =
        [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", &*body]
            .concat();
    for step in (1..80).chain([text.len()]) {
        assert!(
            matches!(answered(Operation::Read, &text, step), (Progress::Complete, Ok(()))),
            "step {step}"
        );
    }
}

#[test]
fn lengths_are_checked_against_the_size_of_the_object() {
    for (operation, length, wanted) in [
        (Operation::Head, 1000, Ok(())),
        (Operation::Head, 999, Err(Failure::WrongLength)),
        (Operation::Head, 1001, Err(Failure::WrongLength)),
        (Operation::Delete, 0, Ok(())),
        (Operation::Read, 0, Err(Failure::ShortBody)),
    ] {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let (progress, checked) = answered(operation, text.as_bytes(), 7);
        assert!(matches!(progress, Progress::Complete), "{operation:?} {length}");
        assert_eq!(checked, wanted, "{operation:?} {length}");
    }
}

#[test]
fn only_the_start_of_a_bad_answer_is_kept() {
    let text = format!("HTTP/1.1 503 Busy\r\nContent-Length: 5000\r\n\r\n{}", "x".repeat(5000));
    let (progress, checked) = answered(Operation::Write, text.as_bytes(), 100);
    assert!(matches!(progress, Progress::Complete));
    assert_eq!(checked, Err(Failure::Http(503)));
}
