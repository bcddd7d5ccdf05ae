//! The answers of the null target: common parts, and those to Swift requests.

use super::store::{Container, Object, Store, page, read, write};
use crate::http::decimal;
use std::fmt::Write as _;

/// The head of a request.
#[derive(Debug, Default)]
pub struct RequestHead {
    /// `GET`, `PUT`, ...
    pub method: String,
    /// Decoded path.
    pub path: String,
    /// Query, not decoded.
    pub query: String,
    /// `X-Auth-Token`.
    pub token: String,
    /// `X-Auth-User` and `X-Auth-Key`.
    pub login: (String, String),
    /// `Host`.
    pub host: String,
    /// Whether it names an object to copy.
    pub copies: bool,
}

impl RequestHead {
    /// Moves the bucket of a virtual host, which is any name below `localhost`, into the path.
    pub fn unfold_virtual_host(&mut self) {
        let name = self.host.rsplit_once(':').map_or(self.host.as_str(), |(name, _)| name);
        if let Some(bucket) = name.strip_suffix(".localhost").filter(|_| !is_swift(&self.path)) {
            self.path = format!("/{bucket}{}", self.path);
        }
    }
}

/// An answer: a status, headers, and a generated body or that of an object.
#[derive(Debug, Default)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Header lines, each with its line end.
    pub headers: String,
    /// A generated body.
    pub text: String,
    /// An object; its size is the `Content-Length`, also of an answer to HEAD.
    pub object: Option<Object>,
}

impl Answer {
    pub(super) fn of(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(super) fn with(status: u16, kind: &str, text: String) -> Self {
        let headers = format!("Content-Type: {kind}\r\n");
        Self { status, headers, text, ..Self::default() }
    }

    /// An error in the format of the requested API.
    pub fn error(head: &RequestHead, status: u16, code: &str) -> Self {
        if is_swift(&head.path) {
            return Self::with(status, "text/plain", format!("{code}\n"));
        }
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
             <Error><Code>{code}</Code><Message>{code}</Message></Error>"
        );
        Self::with(status, "application/xml", text)
    }

    pub(super) fn listed(mut self, etag: &str, time: &str) -> Self {
        let _ = write!(
            self.headers,
            "ETag: \"{etag}\"\r\nLast-Modified: {time}\r\n\
             Content-Type: application/octet-stream\r\n"
        );
        self
    }
}

pub(super) fn is_swift(path: &str) -> bool {
    path.starts_with("/v1/AUTH_") || path == "/auth/v1.0"
}

/// Keys of queries that ask for more than a complete object or a listing, and are refused.
const REFUSED: [&str; 12] = [
    "acl",
    "bulk-delete",
    "delete",
    "multipart-manifest",
    "part-number",
    "partNumber",
    "tagging",
    "uploads",
    "uploadId",
    "version-id",
    "versionId",
    "versions",
];

/// Constants of the server, and its objects.
#[derive(Debug)]
pub struct Api {
    /// Containers and objects.
    pub store: Store,
    /// Accepted user and key.
    pub login: (String, String),
    /// The token of every login.
    pub token: String,
    /// Start time as an HTTP date, the modification time of all objects.
    pub http_time: String,
    /// The same in ISO 8601.
    pub iso_time: String,
}

const ACCOUNT: &str = "/v1/AUTH_test";

impl Api {
    /// Whether it is a request on an object: only those can be made to fail.
    pub fn is_of_object(head: &RequestHead) -> bool {
        if head.path == "/auth/v1.0" {
            return false;
        }
        let path = head.path.strip_prefix(ACCOUNT).unwrap_or(&head.path);
        split(path).1.is_some()
    }

    /// Answers a request whose body had `size` bytes and began with `first`.
    pub fn answer(&self, head: &RequestHead, size: u64, first: &[u8]) -> Answer {
        if head.path == "/auth/v1.0" {
            return self.log_in(head);
        }
        if is_swift(&head.path) && head.token != self.token {
            return Answer::error(head, 401, "Unauthorized");
        }
        let asks = |name: &&str| has(head, name);
        if head.copies || REFUSED.iter().any(asks) || (head.method != "GET" && asks(&"versioning"))
        {
            return Answer::error(head, 501, "NotImplemented");
        }
        if !is_swift(&head.path) {
            return self.s3(head, size, first);
        }
        match head.path.strip_prefix(ACCOUNT) {
            Some(path) if path.is_empty() || path.starts_with('/') => {
                self.swift(head, path, size, first)
            }
            _ => Answer::error(head, 403, "Forbidden"),
        }
    }

    fn log_in(&self, head: &RequestHead) -> Answer {
        if head.login != self.login {
            return Answer::error(head, 401, "Unauthorized");
        }
        let token = &self.token;
        let headers = format!(
            "X-Storage-Url: http://{}{ACCOUNT}\r\nX-Auth-Token: {token}\r\n\
             X-Storage-Token: {token}\r\n",
            head.host
        );
        Answer { headers, ..Answer::of(200) }
    }

    fn swift(&self, head: &RequestHead, path: &str, size: u64, first: &[u8]) -> Answer {
        let store = &self.store;
        let method = head.method.as_str();
        let (name, object) = split(path);
        if name.is_empty() {
            return match method {
                "GET" | "HEAD" => self.swift_account(head),
                _ => Answer::error(head, 405, "Method Not Allowed"),
            };
        }
        if object.is_none() && method == "PUT" {
            return Answer::of(if store.make(name) { 201 } else { 202 });
        }
        let Some(container) = store.container(name) else {
            return Answer::error(head, 404, "Not Found");
        };
        match (method, object) {
            ("GET", None) => {
                let objects = read(&container);
                let most = number(head, "limit", 10_000);
                let (marker, prefix) = (parameter(head, "marker"), parameter(head, "prefix"));
                let (found, _) = page(&objects, &marker, &prefix, most);
                let modified = self.iso_time.trim_end_matches('Z');
                let entries = found.into_iter().map(|(name, Object { size, etag, .. })| {
                    let fields = format!(
                        "\"bytes\":{size},\"hash\":\"{etag}\",\
                         \"content_type\":\"application/octet-stream\",\
                         \"last_modified\":\"{modified}\""
                    );
                    (name, fields)
                });
                Self::swift_listing(head, objects.len(), entries)
            }
            ("HEAD", None) => {
                let count = read(&container).len();
                let headers = format!("X-Container-Object-Count: {count}\r\n");
                Answer { headers, ..Answer::of(204) }
            }
            ("DELETE", None) => match store.remove(name) {
                Some(true) => Answer::of(204),
                Some(false) => Answer::error(head, 409, "Conflict"),
                None => Answer::error(head, 404, "Not Found"),
            },
            ("PUT", Some(object)) => {
                let made = store.object(size, first);
                let answer = Answer::of(201).listed(&made.etag, &self.http_time);
                write(&container).insert(object.into(), made);
                answer
            }
            ("GET" | "HEAD", Some(object)) => self.object(head, &container, object),
            ("DELETE", Some(object)) => match write(&container).remove(object) {
                Some(_) => Answer::of(204),
                None => Answer::error(head, 404, "Not Found"),
            },
            _ => Answer::error(head, 405, "Method Not Allowed"),
        }
    }

    /// The answer to a GET or HEAD of an object.
    pub(super) fn object(&self, head: &RequestHead, container: &Container, name: &str) -> Answer {
        let Some(object) = read(container).get(name).cloned() else {
            let code = if is_swift(&head.path) { "Not Found" } else { "NoSuchKey" };
            return Answer::error(head, 404, code);
        };
        let answer = Answer::of(200).listed(&object.etag, &self.http_time);
        Answer { object: Some(object), ..answer }
    }

    fn swift_account(&self, head: &RequestHead) -> Answer {
        let containers = self.store.containers();
        let (marker, prefix, most) =
            (parameter(head, "marker"), parameter(head, "prefix"), number(head, "limit", 10_000));
        let found = containers
            .iter()
            .filter(|(name, _)| **name > *marker && name.starts_with(&*prefix))
            .take(most)
            .map(|(name, count)| (&**name, format!("\"count\":{count},\"bytes\":0")));
        Self::swift_listing(head, containers.len(), found)
    }

    fn swift_listing<'a>(
        head: &RequestHead,
        count: usize,
        found: impl Iterator<Item = (&'a str, String)>,
    ) -> Answer {
        let json = parameter(head, "format") == "json";
        let mut text = String::new();
        for (name, fields) in found {
            if json {
                let name = serde_json::to_string(name).unwrap_or_default();
                let _ = write!(
                    text,
                    "{}{{\"name\":{name},{fields}}}",
                    if text.is_empty() { "[" } else { "," }
                );
            } else {
                let _ = writeln!(text, "{name}");
            }
        }
        if json {
            text.push_str(if text.is_empty() { "[]" } else { "]" });
        }
        let status = if text.is_empty() { 204 } else { 200 };
        let mut answer = Answer::with(
            status,
            if json { "application/json; charset=utf-8" } else { "text/plain; charset=utf-8" },
            text,
        );
        let _ = write!(answer.headers, "X-Container-Object-Count: {count}\r\n");
        answer
    }
}

/// Container and object of a path, without its first slash.
pub(super) fn split(path: &str) -> (&str, Option<&str>) {
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.split_once('/') {
        Some((container, object)) if !object.is_empty() => (container, Some(object)),
        Some((container, _)) => (container, None),
        None => (path, None),
    }
}

fn parameters(head: &RequestHead) -> impl Iterator<Item = (&str, &str)> {
    head.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

pub(super) fn has(head: &RequestHead, name: &str) -> bool {
    !head.query.is_empty() && parameters(head).any(|(key, _)| key == name)
}

pub(super) fn parameter(head: &RequestHead, name: &str) -> String {
    parameters(head)
        .find(|(key, _)| *key == name)
        .map_or_else(String::new, |(_, value)| decode(&value.replace('+', " ")))
}

pub(super) fn number(head: &RequestHead, name: &str, otherwise: usize) -> usize {
    decimal(parameter(head, name).as_bytes()).map_or(otherwise, |value| value.min(1 << 20) as usize)
}

/// Percent-decodes text; invalid UTF-8 is replaced.
pub fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(code)) => {
                out.push(code);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_and_decoded() {
        assert_eq!(split("/"), ("", None));
        assert_eq!(split("/b"), ("b", None));
        assert_eq!(split("/b/"), ("b", None));
        assert_eq!(split("/b/o/p"), ("b", Some("o/p")));
        assert_eq!(decode("a%20b%2Fc%zz%"), "a b/c%zz%");
    }

    #[test]
    fn the_bucket_of_a_virtual_host_is_moved_into_the_path() {
        let path = |host: &str, path: &str| {
            let mut head =
                RequestHead { host: host.into(), path: path.into(), ..RequestHead::default() };
            head.unfold_virtual_host();
            head.path
        };
        assert_eq!(path("b.localhost:8080", "/o"), "/b/o");
        assert_eq!(path("b.localhost", "/"), "/b/");
        assert_eq!(path("localhost:8080", "/b/o"), "/b/o");
        assert_eq!(path("b.localhost", "/v1/AUTH_test/c"), "/v1/AUTH_test/c");
    }

    #[test]
    fn only_requests_on_objects_can_be_made_to_fail() {
        let of_object = |path: &str| {
            Api::is_of_object(&RequestHead { path: path.into(), ..RequestHead::default() })
        };
        assert!(of_object("/b/o") && of_object("/v1/AUTH_test/c/o"));
        assert!(!of_object("/b") && !of_object("/v1/AUTH_test/c") && !of_object("/auth/v1.0"));
    }
}
