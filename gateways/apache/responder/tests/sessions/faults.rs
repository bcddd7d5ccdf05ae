//! A failure on one side is seen on the other.

use crate::play::{self, ABORT, STDIN, STDOUT, Web, origin, read_head, unreachable_place};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const FINE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers every request of a connection.
fn fine(mut stream: TcpStream) {
    while !read_head(&mut stream).0.is_empty() {
        stream.write_all(FINE).unwrap();
    }
}

/// Answers one request and closes the connection after the next one.
fn fine_once(mut stream: TcpStream) {
    read_head(&mut stream);
    stream.write_all(FINE).unwrap();
    read_head(&mut stream);
}

/// Sends what it received of a request when the connection ends.
fn collecting(report: Sender<String>) -> Box<dyn Fn(TcpStream) + Send> {
    Box::new(move |mut stream| {
        let mut bytes = Vec::new();
        // A cut may come as a reset.
        let _ = stream.read_to_end(&mut bytes);
        report.send(String::from_utf8(bytes).unwrap()).unwrap();
    })
}

#[test]
fn an_origin_that_is_down_is_502_and_the_connection_can_be_used_again() {
    let mut web = Web::of(unreachable_place());
    for _ in 0..2 {
        let (text, complete) =
            web.ask("PUT", &[("CONTENT_LENGTH", "300000")], &vec![b'x'; 300_000]);
        assert!(complete && text.starts_with("Status: 502 Bad Gateway\r\n"), "{text}");
    }
    assert_eq!(web.counted(|stats| &stats.origin_failed), 2);
}

#[test]
fn the_reachable_one_of_two_origins_answers() {
    let mut web = Web::new(&[unreachable_place(), origin(vec![Box::new(fine)])], play::SOON);
    for _ in 0..4 {
        assert!(web.ask("GET", &[], b"").0.starts_with("Status: 200"));
    }
}

#[test]
fn an_answer_that_the_origin_cuts_has_no_end() {
    for head in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nhello\r\n");
        let script = move |mut stream: TcpStream| {
            read_head(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
        };
        let mut web = Web::of(origin(vec![Box::new(script)]));
        let (text, complete) = web.ask("GET", &[], b"");
        assert!(text.contains("hello") && !complete, "{head}");
        web.end();
        assert_eq!(web.counted(|stats| &stats.origin_failed), 1);
    }
}

#[test]
fn an_answer_that_is_not_http_or_has_an_endless_head_is_502() {
    for answer in
        ["SSH-2.0-x\r\n\r\n".to_owned(), format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(70_000))]
    {
        let script = move |mut stream: TcpStream| {
            read_head(&mut stream);
            // The responder may close before everything is sent.
            let _ = stream.write_all(answer.as_bytes());
        };
        let mut web = Web::of(origin(vec![Box::new(script)]));
        let (text, complete) = web.ask("GET", &[], b"");
        assert!(complete && text.starts_with("Status: 502"), "{text}");
    }
}

#[test]
fn an_origin_that_never_answers_is_504_at_the_timeout() {
    let script = |mut stream: TcpStream| while !read_head(&mut stream).0.is_empty() {};
    let mut web = Web::new(&[origin(vec![Box::new(script)])], Duration::from_secs(2));
    let (text, complete) = web.ask("GET", &[], b"");
    assert!(complete && text.starts_with("Status: 504 Gateway Timeout\r\n"), "{text}");
}

#[test]
fn a_rejection_before_the_body_is_passed_on_at_once_and_the_rest_is_read() {
    let reject = |mut stream: TcpStream| {
        read_head(&mut stream);
        stream
            .write_all(
                b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope",
            )
            .unwrap();
    };
    let mut web = Web::of(origin(vec![Box::new(reject), Box::new(fine)]));
    web.begin("PUT", &[("CONTENT_LENGTH", "4000000")]);
    web.stdin(&[b'x'; 1000]);
    let mut head = Vec::new();
    while !head.ends_with(b"nope") {
        let (kind, content) = web.read().unwrap();
        assert_eq!(kind, STDOUT);
        head.extend(content);
    }
    assert!(head.starts_with(b"Status: 403 Forbidden\r\n"));
    web.stdin(&vec![b'x'; 3_999_000]);
    web.record(STDIN, b"");
    assert_eq!(web.answer(), (String::new(), true));
    assert!(web.ask("GET", &[], b"").0.starts_with("Status: 200"));
}

#[test]
fn an_aborted_upload_is_cut_at_the_origin() {
    for (length, abort) in
        [(Some("5000"), false), (Some("5000"), true), (None, false), (None, true)]
    {
        let (report, reported) = channel();
        let mut web = Web::of(origin(vec![collecting(report)]));
        web.begin(
            "PUT",
            &length.map(|length| ("CONTENT_LENGTH", length)).into_iter().collect::<Vec<_>>(),
        );
        web.stdin(b"some of it");
        if abort {
            web.record(ABORT, b"");
        } else {
            web.stream.shutdown(Shutdown::Both).unwrap();
        }
        let got = reported.recv_timeout(play::SOON).unwrap();
        assert!(!got.ends_with("0\r\n\r\n"), "{got}");
        assert!(got.is_empty() || got.starts_with("PUT "), "{got}");
        assert_eq!(web.read(), None);
        web.end();
        assert_eq!(web.counted(|stats| &stats.aborted), 1);
    }
}

#[test]
fn a_body_shorter_than_its_length_is_cut() {
    let (report, reported) = channel();
    let mut web = Web::of(origin(vec![collecting(report)]));
    let (text, complete) = web.ask("PUT", &[("CONTENT_LENGTH", "5000")], b"short");
    assert_eq!((text.as_str(), complete), ("", false));
    assert!(reported.recv_timeout(play::SOON).unwrap().len() < 5000);
}

#[test]
fn a_closed_kept_connection_is_replaced_only_for_safe_methods() {
    let scripts =
        || -> Vec<Box<dyn Fn(TcpStream) + Send>> { vec![Box::new(fine_once), Box::new(fine)] };
    let mut web = Web::of(origin(scripts()));
    assert!(web.ask("GET", &[], b"").0.starts_with("Status: 200"));
    assert!(web.ask("GET", &[], b"").0.starts_with("Status: 200"));
    assert_eq!(web.counted(|stats| &stats.retried), 1);
    for (method, length) in [("DELETE", None), ("PUT", Some("2"))] {
        let mut web = Web::of(origin(scripts()));
        assert!(web.ask("GET", &[], b"").0.starts_with("Status: 200"));
        let params: Vec<_> = length.map(|length| ("CONTENT_LENGTH", length)).into_iter().collect();
        let (text, complete) = web.ask(method, &params, if length.is_some() { b"ok" } else { b"" });
        assert!(complete && text.starts_with("Status: 502"), "{method} {text}");
        assert_eq!(web.counted(|stats| &stats.retried), 0);
    }
}

#[test]
fn a_kept_connection_that_is_known_to_be_closed_is_not_reused() {
    let (closed, was_closed) = channel::<()>();
    let closing = move |mut stream: TcpStream| {
        read_head(&mut stream);
        stream.write_all(FINE).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
        closed.send(()).unwrap();
    };
    let mut web = Web::of(origin(vec![Box::new(closing), Box::new(fine)]));
    assert!(web.ask("GET", &[], b"").0.starts_with("Status: 200"));
    was_closed.recv_timeout(play::SOON).unwrap();
    assert!(web.ask("PUT", &[("CONTENT_LENGTH", "0")], b"").0.starts_with("Status: 200"));
    assert_eq!(
        (web.counted(|stats| &stats.origin_opened), web.counted(|stats| &stats.retried)),
        (2, 0)
    );
}

#[test]
fn a_web_server_that_disconnects_ends_the_origins_answer() {
    let (report, reported) = channel();
    let script = move |mut stream: TcpStream| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").unwrap();
        while stream.write_all(&[0; 8192]).is_ok() {}
        report.send(()).unwrap();
    };
    let mut web = Web::of(origin(vec![Box::new(script)]));
    web.begin("GET", &[]);
    web.record(STDIN, b"");
    web.read().unwrap();
    web.stream.shutdown(Shutdown::Both).unwrap();
    reported.recv_timeout(play::SOON).unwrap();
}
