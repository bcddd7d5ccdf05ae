//! Data passes unchanged from the web server to the origin and back.

use crate::play::{self, ABORT, BEGIN, GET_VALUES, STDIN, STDOUT, Web, field, origin, read_head};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::channel;

/// Answers every request with its head as the body; reads request bodies by `Content-Length`.
fn echoing_heads(mut stream: TcpStream) {
    loop {
        let (head, mut body) = read_head(&mut stream);
        if head.is_empty() {
            return;
        }
        let length = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        while body.len() < length {
            let mut buffer = [0; 4096];
            let got = stream.read(&mut buffer).unwrap();
            body.extend(&buffer[..got]);
        }
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len());
        stream.write_all(text.as_bytes()).unwrap();
    }
}

/// Sends chunks back as they arrive.
fn echoing(mut stream: TcpStream) {
    let (_, begun) = read_head(&mut stream);
    let mut out = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    out.extend(begun);
    let mut buffer = vec![0; 65536];
    loop {
        stream.write_all(&out).unwrap();
        if out.ends_with(b"\r\n0\r\n\r\n") {
            return;
        }
        let got = stream.read(&mut buffer).unwrap();
        out = buffer[..got].to_vec();
    }
}

#[test]
fn requests_of_a_connection_use_one_connection_to_the_origin() {
    let mut web = Web::of(origin(vec![Box::new(echoing_heads)]));
    for _ in 0..3 {
        let (text, complete) =
            web.ask("PUT", &[("CONTENT_LENGTH", "5"), ("HTTP_X_AMZ_DATE", "now")], b"hello");
        assert!(complete);
        let head = "PUT /b/o?q HTTP/1.1\r\nhost: h\r\nx-amz-date: now\r\ncontent-length: 5\r\n\r\n";
        assert!(text.ends_with(&format!("\r\n\r\n{head}")), "{text}");
    }
    assert_eq!(
        (web.counted(|stats| &stats.origin_opened), web.counted(|stats| &stats.origin_reused)),
        (1, 2)
    );
}

#[test]
fn a_request_without_a_body_gets_no_framing_and_a_length_of_zero_is_passed_on() {
    let mut web = Web::of(origin(vec![Box::new(echoing_heads)]));
    let (text, _) = web.ask("PUT", &[], b"");
    assert!(!text.contains("transfer-encoding") && !text.contains("content-length: "), "{text}");
    let (text, _) = web.ask("PUT", &[("CONTENT_LENGTH", "0")], b"");
    assert!(text.contains("\r\ncontent-length: 0\r\n"), "{text}");
}

#[test]
fn parameters_of_hundreds_of_kilobytes_are_passed_on() {
    let mut web = Web::of(origin(vec![Box::new(echoing_heads)]));
    let long = "v".repeat(300_000);
    let (text, complete) = web.ask("GET", &[("HTTP_X_LONG", &long)], b"");
    assert!(complete && text.contains(&format!("x-long: {long}\r\n")));
    let (text, complete) = web.ask("GET", &[], b"");
    assert!(complete && text.contains("GET /b/o?q"));
}

#[test]
fn both_directions_stream_concurrently_without_a_length() {
    let mut web = Web::of(origin(vec![Box::new(echoing)]));
    let body = play::counting(700_000);
    web.begin("PUT", &[]);
    let (mut stream, sent) = (web.stream.try_clone().unwrap(), body.clone());
    let sending = std::thread::spawn(move || {
        for part in sent.as_bytes().chunks(30_000) {
            play::send(&mut stream, STDIN, part);
        }
        play::send(&mut stream, STDIN, b"");
    });
    let (text, complete) = web.answer();
    assert!(complete);
    assert!(text.split_once("\r\n\r\n").unwrap().1 == body);
    sending.join().unwrap();
}

#[test]
fn an_upload_reaches_the_origin_while_it_is_being_sent() {
    let (report, reported) = channel();
    let script = move |mut stream: TcpStream| {
        let (_, mut body) = read_head(&mut stream);
        for wanted in [1000, 2000] {
            while body.len() < wanted {
                let mut buffer = [0; 4096];
                let got = stream.read(&mut buffer).unwrap();
                body.extend(&buffer[..got]);
            }
            report.send(body.len()).unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    };
    let mut web = Web::of(origin(vec![Box::new(script)]));
    web.begin("PUT", &[("CONTENT_LENGTH", "2000")]);
    web.stdin(&[b'x'; 1000]);
    assert_eq!(reported.recv_timeout(play::SOON), Ok(1000));
    web.stdin(&[b'x'; 1000]);
    assert_eq!(reported.recv_timeout(play::SOON), Ok(2000));
    web.record(STDIN, b"");
    assert_eq!(web.answer(), ("Status: 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(), true));
}

#[test]
fn an_answer_is_passed_on_as_it_arrives_with_its_head_in_the_first_piece() {
    let (go_on, wait) = channel::<()>();
    let script = move |mut stream: TcpStream| {
        read_head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            .unwrap();
        wait.recv_timeout(play::SOON).unwrap();
        stream.write_all(b"6\r\nsecond\r\n0\r\n\r\n").unwrap();
    };
    let mut web = Web::of(origin(vec![Box::new(script)]));
    web.begin("GET", &[]);
    web.record(STDIN, b"");
    assert_eq!(web.read(), Some((STDOUT, b"Status: 200 OK\r\n\r\nfirst".to_vec())));
    go_on.send(()).unwrap();
    assert_eq!(web.answer(), ("second".to_owned(), true));
}

#[test]
fn an_answer_of_any_framing_and_length_arrives_completely() {
    let body = play::counting(20_000);
    let chunked = body.as_bytes().chunks(1000).fold(String::new(), |mut chunked, part| {
        write!(chunked, "{:x}\r\n{}\r\n", part.len(), String::from_utf8_lossy(part)).unwrap();
        chunked
    });
    for head_and_body in [
        format!("Content-Length: {}\r\n\r\n{body}", body.len()),
        format!("Transfer-Encoding: chunked\r\n\r\n{chunked}0\r\n\r\n"),
        format!("Connection: close\r\n\r\n{body}"),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{head_and_body}");
        let script = move |mut stream: TcpStream| {
            read_head(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
        };
        let mut web = Web::of(origin(vec![Box::new(script)]));
        let (text, complete) = web.ask("GET", &[], b"");
        assert!(complete && text.split_once("\r\n\r\n").unwrap().1 == body);
    }
}

#[test]
fn the_length_of_an_answer_to_head_is_passed_on_without_waiting_for_a_body() {
    let script = |mut stream: TcpStream| {
        while !read_head(&mut stream).0.is_empty() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n").unwrap();
        }
    };
    let mut web = Web::of(origin(vec![Box::new(script)]));
    for _ in 0..2 {
        assert_eq!(
            web.ask("HEAD", &[], b""),
            ("Status: 200 OK\r\nContent-Length: 1048576\r\n\r\n".to_owned(), true)
        );
    }
    assert_eq!(web.counted(|stats| &stats.origin_opened), 1);
}

#[test]
fn values_are_reported_and_other_roles_refused_without_closing_the_connection() {
    let mut web = Web::of(origin(vec![Box::new(echoing_heads)]));
    web.stream.write_all(&[1, GET_VALUES, 0, 0, 0, 17, 0, 0]).unwrap();
    web.stream.write_all(b"\x0f\0FCGI_MPXS_CONNS").unwrap();
    assert_eq!(web.read(), Some((10, b"\x0f\x01FCGI_MPXS_CONNS0".to_vec())));
    web.record(BEGIN, &[0, 2, 1, 0, 0, 0, 0, 0]);
    assert_eq!(web.read(), Some((3, vec![0, 0, 0, 0, 3, 0, 0, 0])));
    assert!(web.ask("GET", &[], b"").1);
}

#[test]
fn other_protocols_close_the_connection_and_an_invalid_request_is_400() {
    let mut web = Web::of(origin(vec![Box::new(echoing_heads)]));
    let (text, complete) = web.ask("GET", &[("HTTP_X", "a\r\nb: c")], b"ignored");
    assert!(complete && text.starts_with("Status: 400 "));
    web.record(ABORT, b"");
    assert!(web.ask("GET", &[], b"").1);
    web.stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(web.read(), None);
    web.end();
    assert_eq!(web.counted(|stats| &stats.malformed), 2);
}
