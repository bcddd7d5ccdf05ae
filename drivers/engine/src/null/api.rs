//! What the null target answers, in both APIs.

use super::store::{Object, Store, page, read, write};
use crate::http::decimal;
use std::fmt::Write as _;

/// A request whose head has been read.
#[derive(Debug, Default)]
pub struct Asked {
    /// `GET`, `PUT`, ...
    pub method: String,
    /// Decoded path.
    pub path: String,
    /// Query as it came.
    pub query: String,
    /// `X-Auth-Token`.
    pub token: String,
    /// `X-Auth-User` and `X-Auth-Key`.
    pub login: (String, String),
    /// `Host`.
    pub host: String,
    /// Whether it has a copy source, which is not understood.
    pub copies: bool,
}

impl Asked {
    /// Puts the bucket of a virtual host, which is any name below `localhost`, into the path.
    pub fn unfold_virtual_host(&mut self) {
        let name = self.host.rsplit_once(':').map_or(self.host.as_str(), |(name, _)| name);
        if let Some(bucket) = name.strip_suffix(".localhost").filter(|_| !is_swift(&self.path)) {
            self.path = format!("/{bucket}{}", self.path);
        }
    }
}

/// An answer: a status, headers, and a body of its own or an object's.
#[derive(Debug, Default)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Header lines, each with its line end.
    pub headers: String,
    /// A body made here.
    pub text: String,
    /// An object, whose size is the answer's length, and whose body is its body.
    pub object: Option<Object>,
}

impl Answer {
    fn of(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    fn with(status: u16, kind: &str, text: String) -> Self {
        Self { status, headers: format!("Content-Type: {kind}\r\n"), text, object: None }
    }

    /// An error in the words of the API that was spoken.
    pub fn error(asked: &Asked, status: u16, code: &str) -> Self {
        if is_swift(&asked.path) {
            return Self::with(status, "text/plain", format!("{code}\n"));
        }
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
        );
        Self::with(status, "application/xml", text)
    }

    fn listed(mut self, etag: &str, time: &str) -> Self {
        let _ = write!(
            self.headers,
            "ETag: \"{etag}\"\r\nLast-Modified: {time}\r\nContent-Type: application/octet-stream\r\n"
        );
        self
    }
}

fn is_swift(path: &str) -> bool {
    path.starts_with("/v1/AUTH_") || path == "/auth/v1.0"
}

/// What does not change while it serves.
#[derive(Debug)]
pub struct Api {
    /// What it remembers.
    pub store: Store,
    /// Who may log in, with which key.
    pub login: (String, String),
    /// The token of all who did.
    pub token: String,
    /// Time of its start, as HTTP writes it: that is when all objects were modified.
    pub http_time: String,
    /// The same as ISO 8601.
    pub iso_time: String,
}

const ACCOUNT: &str = "/v1/AUTH_test";

impl Api {
    /// Whether the request is one on an object: those can be told to fail.
    pub fn is_of_object(asked: &Asked) -> bool {
        if asked.path == "/auth/v1.0" {
            return false;
        }
        let path = asked.path.strip_prefix(ACCOUNT).unwrap_or(&asked.path);
        split(path).1.is_some()
    }

    /// The answer to a request whose body had `size` bytes and began with `first`.
    pub fn answer(&self, asked: &Asked, size: u64, first: &[u8]) -> Answer {
        if asked.path == "/auth/v1.0" {
            return self.log_in(asked);
        }
        if !is_swift(&asked.path) {
            return self.s3(asked, size, first);
        }
        if asked.token != self.token {
            return Answer::error(asked, 401, "Unauthorized");
        }
        match asked.path.strip_prefix(ACCOUNT) {
            Some(path) if path.is_empty() || path.starts_with('/') => {
                self.swift(asked, path, size, first)
            }
            _ => Answer::error(asked, 403, "Forbidden"),
        }
    }

    fn log_in(&self, asked: &Asked) -> Answer {
        if asked.login != self.login {
            return Answer::error(asked, 401, "Unauthorized");
        }
        let token = &self.token;
        let headers = format!(
            "X-Storage-Url: http://{}{ACCOUNT}\r\nX-Auth-Token: {token}\r\nX-Storage-Token: {token}\r\n",
            asked.host
        );
        Answer { headers, ..Answer::of(200) }
    }

    fn swift(&self, asked: &Asked, path: &str, size: u64, first: &[u8]) -> Answer {
        let store = &self.store;
        let method = asked.method.as_str();
        let (name, object) = split(path);
        if name.is_empty() {
            return match method {
                "GET" | "HEAD" => self.swift_account(asked),
                _ => Answer::error(asked, 405, "Method Not Allowed"),
            };
        }
        if object.is_none() && method == "PUT" {
            return Answer::of(if store.make(name) { 201 } else { 202 });
        }
        let Some(container) = store.container(name) else {
            return Answer::error(asked, 404, "Not Found");
        };
        match (method, object) {
            ("GET", None) => {
                let objects = read(&container);
                let most = number(asked, "limit", 10_000);
                let (marker, prefix) = (parameter(asked, "marker"), parameter(asked, "prefix"));
                let (found, _) = page(&objects, &marker, &prefix, most);
                Self::swift_listing(asked, objects.len(), found.into_iter().map(|(name, object)| {
                    let size = object.size;
                    let etag = &object.etag;
                    (name, format!("\"bytes\":{size},\"hash\":\"{etag}\",\"content_type\":\"application/octet-stream\",\"last_modified\":\"{}\"", self.iso_time.trim_end_matches('Z')))
                }))
            }
            ("HEAD", None) => {
                let headers = format!("X-Container-Object-Count: {}\r\n", read(&container).len());
                Answer { headers, ..Answer::of(204) }
            }
            ("DELETE", None) => match store.remove(name) {
                Some(true) => Answer::of(204),
                Some(false) => Answer::error(asked, 409, "Conflict"),
                None => Answer::error(asked, 404, "Not Found"),
            },
            ("PUT", Some(object)) if !asked.copies => {
                let made = store.object(size, first);
                let answer = Answer::of(201).listed(&made.etag, &self.http_time);
                write(&container).insert(object.into(), made);
                answer
            }
            ("GET" | "HEAD", Some(object)) => {
                self.object(asked, read(&container).get(object).cloned())
            }
            ("DELETE", Some(object)) => match write(&container).remove(object) {
                Some(_) => Answer::of(204),
                None => Answer::error(asked, 404, "Not Found"),
            },
            _ => Answer::error(asked, 405, "Method Not Allowed"),
        }
    }

    fn swift_account(&self, asked: &Asked) -> Answer {
        let containers = self.store.containers();
        let (marker, prefix, most) = (
            parameter(asked, "marker"),
            parameter(asked, "prefix"),
            number(asked, "limit", 10_000),
        );
        let found = containers
            .iter()
            .filter(|(name, _)| **name > *marker && name.starts_with(&*prefix))
            .take(most)
            .map(|(name, count)| (&**name, format!("\"count\":{count},\"bytes\":0")));
        Self::swift_listing(asked, containers.len(), found)
    }

    fn swift_listing<'a>(
        asked: &Asked,
        count: usize,
        found: impl Iterator<Item = (&'a str, String)>,
    ) -> Answer {
        let json = parameter(asked, "format") == "json";
        let mut text = String::new();
        for (name, rest) in found {
            if json {
                let name = serde_json::to_string(name).unwrap_or_default();
                let _ = write!(
                    text,
                    "{}{{\"name\":{name},{rest}}}",
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

    fn object(&self, asked: &Asked, object: Option<Object>) -> Answer {
        match object {
            Some(object) => Answer {
                object: Some(object.clone()),
                ..Answer::of(200).listed(&object.etag, &self.http_time)
            },
            None => Answer::error(
                asked,
                404,
                if is_swift(&asked.path) { "Not Found" } else { "NoSuchKey" },
            ),
        }
    }

    fn s3(&self, asked: &Asked, size: u64, first: &[u8]) -> Answer {
        let store = &self.store;
        let method = asked.method.as_str();
        let (name, object) = split(&asked.path);
        if name.is_empty() {
            return match method {
                "GET" => self.s3_buckets(),
                _ => Answer::error(asked, 405, "MethodNotAllowed"),
            };
        }
        if ["uploads", "uploadId", "delete", "acl", "tagging"].iter().any(|name| has(asked, name))
            || asked.copies
        {
            return Answer::error(asked, 501, "NotImplemented");
        }
        if object.is_none() && method == "PUT" {
            store.make(name);
            return Answer { headers: format!("Location: /{name}\r\n"), ..Answer::of(200) };
        }
        let Some(container) = store.container(name) else {
            return Answer::error(asked, 404, "NoSuchBucket");
        };
        match (method, object) {
            ("GET", None) => self.s3_bucket(asked, name, &container),
            ("HEAD", None) => Answer::of(200),
            ("DELETE", None) => match store.remove(name) {
                Some(true) => Answer::of(204),
                Some(false) => Answer::error(asked, 409, "BucketNotEmpty"),
                None => Answer::error(asked, 404, "NoSuchBucket"),
            },
            ("PUT", Some(object)) => {
                let made = store.object(size, first);
                let answer =
                    Answer { headers: format!("ETag: \"{}\"\r\n", made.etag), ..Answer::of(200) };
                write(&container).insert(object.into(), made);
                answer
            }
            ("GET" | "HEAD", Some(object)) => {
                self.object(asked, read(&container).get(object).cloned())
            }
            ("DELETE", Some(object)) => {
                write(&container).remove(object);
                Answer::of(204)
            }
            _ => Answer::error(asked, 405, "MethodNotAllowed"),
        }
    }

    fn s3_buckets(&self) -> Answer {
        let mut text = xml("ListAllMyBucketsResult");
        text.push_str("<Owner><ID>null</ID></Owner><Buckets>");
        for (name, _) in self.store.containers() {
            let _ = write!(
                text,
                "<Bucket><Name>{}</Name><CreationDate>{}</CreationDate></Bucket>",
                escape(&name),
                self.iso_time
            );
        }
        text.push_str("</Buckets></ListAllMyBucketsResult>");
        Answer::with(200, "application/xml", text)
    }

    fn s3_bucket(&self, asked: &Asked, name: &str, container: &super::store::Container) -> Answer {
        if has(asked, "location") {
            return Answer::with(
                200,
                "application/xml",
                xml("LocationConstraint") + "</LocationConstraint>",
            );
        }
        if has(asked, "versioning") {
            return Answer::with(
                200,
                "application/xml",
                xml("VersioningConfiguration") + "</VersioningConfiguration>",
            );
        }
        let objects = read(container);
        let (prefix, most) =
            (parameter(asked, "prefix"), number(asked, "max-keys", 1000).min(1000));
        let marker = ["continuation-token", "start-after", "marker"]
            .map(|name| parameter(asked, name))
            .into_iter()
            .find(|text| !text.is_empty());
        let (found, more) = page(&objects, marker.as_deref().unwrap_or(""), &prefix, most);
        let mut text = xml("ListBucketResult");
        let _ = write!(
            text,
            "<Name>{}</Name><Prefix>{}</Prefix><KeyCount>{}</KeyCount><MaxKeys>{most}</MaxKeys><IsTruncated>{more}</IsTruncated>",
            escape(name),
            escape(&prefix),
            found.len()
        );
        if let (true, Some((last, _))) = (more, found.last()) {
            let _ = write!(text, "<NextContinuationToken>{}</NextContinuationToken>", escape(last));
        }
        for (name, object) in found {
            let _ = write!(
                text,
                "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>&quot;{}&quot;</ETag><Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
                escape(name),
                self.iso_time,
                object.etag,
                object.size
            );
        }
        text.push_str("</ListBucketResult>");
        Answer::with(200, "application/xml", text)
    }
}

/// Container and object of a path, without its first slash.
fn split(path: &str) -> (&str, Option<&str>) {
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.split_once('/') {
        Some((container, object)) if !object.is_empty() => (container, Some(object)),
        Some((container, _)) => (container, None),
        None => (path, None),
    }
}

fn parameters(asked: &Asked) -> impl Iterator<Item = (&str, &str)> {
    asked.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn has(asked: &Asked, name: &str) -> bool {
    !asked.query.is_empty() && parameters(asked).any(|(key, _)| key == name)
}

fn parameter(asked: &Asked, name: &str) -> String {
    parameters(asked)
        .find(|(key, _)| *key == name)
        .map_or_else(String::new, |(_, value)| decode(&value.replace('+', " ")))
}

fn number(asked: &Asked, name: &str, otherwise: usize) -> usize {
    decimal(parameter(asked, name).as_bytes())
        .map_or(otherwise, |value| value.min(1 << 20) as usize)
}

/// Percent-decoded text; what is not UTF-8 then is replaced.
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn xml(root: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><{root} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    )
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
    fn the_bucket_of_a_virtual_host_goes_into_the_path() {
        let path = |host: &str, path: &str| {
            let mut asked = Asked { host: host.into(), path: path.into(), ..Asked::default() };
            asked.unfold_virtual_host();
            asked.path
        };
        assert_eq!(path("b.localhost:8080", "/o"), "/b/o");
        assert_eq!(path("b.localhost", "/"), "/b/");
        assert_eq!(path("localhost:8080", "/b/o"), "/b/o");
        assert_eq!(path("b.localhost", "/v1/AUTH_test/c"), "/v1/AUTH_test/c");
    }

    #[test]
    fn only_requests_on_objects_can_be_told_to_fail() {
        let of_object =
            |path: &str| Api::is_of_object(&Asked { path: path.into(), ..Asked::default() });
        assert!(of_object("/b/o") && of_object("/v1/AUTH_test/c/o"));
        assert!(!of_object("/b") && !of_object("/v1/AUTH_test/c") && !of_object("/auth/v1.0"));
    }
}
