//! Both sides of the responder in tests: a web server, and a scripted origin.

use responder::origin::Origins;
use responder::session::Session;
use responder::stats::Stats;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The timeout of every operation in a test.
pub const SOON: Duration = Duration::from_secs(20);

pub const BEGIN: u8 = 1;
pub const ABORT: u8 = 2;
pub const END: u8 = 3;
pub const PARAMS: u8 = 4;
pub const STDIN: u8 = 5;
pub const STDOUT: u8 = 6;
pub const GET_VALUES: u8 = 9;

/// An origin that serves each connection by a script, in turn; the last script serves all others.
pub fn origin(scripts: Vec<Box<dyn Fn(TcpStream) + Send>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let stream = stream.unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            scripts[number.min(scripts.len() - 1)](stream);
        }
    });
    place
}

/// An address where nothing listens.
pub fn unreachable_place() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9)) // one that no other test can get meanwhile
}

/// Read a head; also returns what came after it.
pub fn read_head(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return (String::from_utf8(bytes).unwrap(), rest);
        }
        let length = stream.read(&mut buffer).unwrap_or(0);
        if length == 0 {
            return (String::new(), bytes);
        }
        bytes.extend(&buffer[..length]);
    }
}

/// The value of a field of a head.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// A text in which every position is different.
pub fn counting(numbers: u32) -> String {
    (0..numbers).fold(String::new(), |mut text, number| {
        write!(text, "{number:07} ").unwrap();
        text
    })
}

/// Send a record.
pub fn send(stream: &mut UnixStream, kind: u8, content: &[u8]) {
    let length = (content.len() as u16).to_be_bytes();
    let padding = (8 - content.len() % 8) % 8;
    let mut bytes = vec![1, kind, 0, 1, length[0], length[1], padding as u8, 0];
    bytes.extend(content);
    bytes.extend(vec![0; padding]);
    stream.write_all(&bytes).unwrap();
}

/// The web server's side of a session.
pub struct Web {
    pub stream: UnixStream,
    pub stats: &'static Stats,
    session: Option<JoinHandle<()>>,
}

impl Web {
    pub fn new(origins: &[SocketAddr], timeout: Duration) -> Self {
        let stats: &'static Stats = Box::leak(Box::default());
        let origins: &'static Origins<'static> =
            Box::leak(Box::new(Origins::new(origins.to_vec(), 8, timeout, stats)));
        let (stream, other) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.set_write_timeout(Some(SOON)).unwrap();
        let session = thread::spawn(move || Session::new(other, origins, stats).serve());
        Self { stream, stats, session: Some(session) }
    }

    pub fn of(origin: SocketAddr) -> Self {
        Self::new(&[origin], SOON)
    }

    pub fn counted(&self, counter: impl Fn(&Stats) -> &AtomicU64) -> u64 {
        counter(self.stats).load(SeqCst)
    }

    pub fn record(&mut self, kind: u8, content: &[u8]) {
        send(&mut self.stream, kind, content);
    }

    /// Send a request without its body.
    pub fn begin(&mut self, method: &str, more: &[(&str, &str)]) {
        self.record(BEGIN, &[0, 1, 1, 0, 0, 0, 0, 0]);
        let mut params = Vec::new();
        for (name, value) in
            [("REQUEST_METHOD", method), ("REQUEST_URI", "/b/o?q"), ("HTTP_HOST", "h")]
                .iter()
                .chain(more)
        {
            params.extend(
                [(name.len() as u32) | 1 << 31, (value.len() as u32) | 1 << 31]
                    .iter()
                    .flat_map(|n| n.to_be_bytes()),
            );
            params.extend(name.bytes().chain(value.bytes()));
        }
        for part in params.chunks(60_000) {
            self.record(PARAMS, part);
        }
        self.record(PARAMS, b"");
    }

    pub fn stdin(&mut self, content: &[u8]) {
        for part in content.chunks(16 * 1024) {
            self.record(STDIN, part);
        }
    }

    /// Send a complete request and read its complete answer.
    pub fn ask(&mut self, method: &str, more: &[(&str, &str)], body: &[u8]) -> (String, bool) {
        self.begin(method, more);
        self.stdin(body);
        self.record(STDIN, b"");
        self.answer()
    }

    /// The next record: its type and content; `None` when the session has closed the connection.
    pub fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 8];
        match self.stream.read_exact(&mut header) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                return None;
            }
            result => result.unwrap(),
        }
        let mut content = vec![
            0;
            usize::from(u16::from_be_bytes([header[4], header[5]]))
                + usize::from(header[6])
        ];
        self.stream.read_exact(&mut content).unwrap();
        Some((header[1], content))
    }

    /// The rest of an answer, and whether it is complete.
    pub fn answer(&mut self) -> (String, bool) {
        let mut text = Vec::new();
        loop {
            match self.read() {
                Some((STDOUT, content)) => text.extend(content),
                Some((END, _)) => return (String::from_utf8(text).unwrap(), true),
                Some(other) => panic!("{other:?}"),
                None => return (String::from_utf8(text).unwrap(), false),
            }
        }
    }

    /// Close the connection and wait until the session has ended.
    pub fn end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(session) = self.session.take() {
            let ended = session.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

impl Drop for Web {
    // A session that does not end with its connection keeps the test from ending.
    fn drop(&mut self) {
        self.end();
    }
}
