//! Queries of requests, and their headers that only some operations have.

use super::{HeadWriter, put_name};
use crate::body::sent_length;
use crate::config::Api;
use crate::flow::Flow;
use crate::picker::{Object, Part, Request};
use crate::workload::{Operation, WorkerId, put_number};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

impl HeadWriter {
    /// Writes the query of a request: its keys are sorted, as S3 signs them.
    pub(super) fn put_query(&mut self, request: &Request, flow: &Flow) {
        let is_s3 = self.api == Api::S3;
        let query = &mut self.query;
        query.clear();
        match (request.operation, request.part) {
            (Operation::List, _) if is_s3 => query.extend_from_slice(b"list-type=2&max-keys=1000"),
            (Operation::List, _) => query.extend_from_slice(b"limit=1000"),
            (operation, _) if operation.turns_pages() => self.put_page(operation, flow),
            (Operation::DeleteMany, _) if is_s3 => query.extend_from_slice(b"delete"),
            (_, Part::Several(_)) => query.extend_from_slice(b"bulk-delete"),
            (Operation::Tag, _) => query.extend_from_slice(b"tagging"),
            (Operation::ReadVersion, _) => {
                query.extend_from_slice(if is_s3 { b"versionId=" } else { b"version-id=" });
                put_encoded(query, &flow.version);
            }
            (Operation::Delete, _) if self.segments.has(request.object) => {
                query.extend_from_slice(b"multipart-manifest=delete");
            }
            (_, Part::Numbered { number, .. }) => {
                let name: &[u8] = if is_s3 { b"partNumber=" } else { b"part-number=" };
                query.extend_from_slice(name);
                put_number(query, number, 1);
            }
            (_, Part::Begin) => query.extend_from_slice(b"uploads"),
            (_, Part::Piece { number, .. }) if is_s3 => {
                query.extend_from_slice(b"partNumber=");
                put_number(query, number, 1);
                query.extend_from_slice(b"&uploadId=");
                put_encoded(query, &flow.upload);
            }
            (_, Part::Finish) if is_s3 => {
                query.extend_from_slice(b"uploadId=");
                put_encoded(query, &flow.upload);
            }
            (_, Part::Finish) => query.extend_from_slice(b"multipart-manifest=put"),
            _ => {}
        }
    }

    fn put_page(&mut self, operation: Operation, flow: &Flow) {
        let (prefix, delimiter) = (&self.listing.prefix, &self.listing.delimiter);
        let mut page = Vec::new();
        put_number(&mut page, self.listing.page, 1);
        let of_versions = operation == Operation::ListVersions;
        let fields: [(&str, &[u8]); 5] = if of_versions && self.api == Api::S3 {
            [
                ("key-marker", &flow.marker),
                ("max-keys", &page),
                ("prefix", prefix.as_bytes()),
                ("version-id-marker", &flow.version_marker),
                ("", b""),
            ]
        } else if of_versions {
            [
                ("format", b"json"),
                ("limit", &page),
                ("marker", &flow.marker),
                ("prefix", prefix.as_bytes()),
                ("version_marker", &flow.version_marker),
            ]
        } else if self.api == Api::S3 {
            [
                ("continuation-token", &flow.marker),
                ("delimiter", delimiter.as_bytes()),
                ("list-type", b"2"),
                ("max-keys", &page),
                ("prefix", prefix.as_bytes()),
            ]
        } else {
            [
                ("delimiter", delimiter.as_bytes()),
                ("limit", &page),
                ("marker", &flow.marker),
                ("prefix", prefix.as_bytes()),
                ("", b""),
            ]
        };
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            if !self.query.is_empty() {
                self.query.push(b'&');
            }
            self.query.extend_from_slice(name.as_bytes());
            self.query.push(b'=');
            put_encoded(&mut self.query, value);
        }
        if of_versions {
            self.query.extend_from_slice(b"&versions=");
        }
    }

    /// The bucket and name of the object that is copied, which replaces itself if it is only its
    /// metadata that changes; empty for other requests.
    pub(super) fn copy_source(&self, request: &Request, id: &WorkerId) -> Vec<u8> {
        let mut source = Vec::new();
        let (container, object) = match request.part {
            Part::From { container, index } => (container, Object::Prepared(index)),
            Part::Note(_) if request.operation == Operation::UpdateMetadata => {
                (request.container, request.object)
            }
            _ => return source,
        };
        source.push(b'/');
        source.extend_from_slice(&self.stem);
        put_number(&mut source, container, 1);
        source.push(b'/');
        put_name(&mut source, object, id);
        source
    }

    /// Appends the headers that depend on the operation.
    pub(super) fn put_fields(
        &self,
        out: &mut Vec<u8>,
        request: &Request,
        id: &WorkerId,
        flow: &Flow,
    ) {
        match request.part {
            Part::Whole | Part::Version(_) if request.operation.puts() => {
                if request.operation.creates_only() {
                    out.extend_from_slice(b"If-None-Match: *\r\n");
                }
                if self.signing.is_framed() {
                    out.extend_from_slice(b"Content-Encoding: aws-chunked\r\n");
                }
                self.put_length(out, sent_length(self.signing, request.size));
            }
            Part::Whole if request.operation.names_content() => {
                let name: &[u8] = match request.operation {
                    Operation::ReadIfMatch => b"If-Match",
                    _ => b"If-None-Match",
                };
                out.extend_from_slice(name);
                out.extend_from_slice(b": \"");
                for byte in flow.known.unwrap_or_default() {
                    out.extend(
                        [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[digit as usize]),
                    );
                }
                out.extend_from_slice(b"\"\r\n");
            }
            Part::Bytes { offset, length } => {
                out.extend_from_slice(b"Range: bytes=");
                put_number(out, offset, 1);
                out.push(b'-');
                put_number(out, offset + length - 1, 1);
                out.extend_from_slice(b"\r\n");
            }
            Part::From { .. } => {
                if self.api != Api::S3 {
                    out.extend_from_slice(b"X-Copy-From: ");
                    out.extend_from_slice(&self.copy_source(request, id));
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"Content-Length: 0\r\n");
            }
            Part::Begin => self.put_length(out, 0),
            Part::Piece { length, .. } => self.put_length(out, length),
            Part::Note(_) if request.operation != Operation::Tag => {
                if self.api != Api::S3 {
                    out.extend_from_slice(b"X-Object-Meta-Weighbridge: ");
                    out.extend_from_slice(&metadata(request));
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"Content-Length: 0\r\n");
            }
            Part::Several(_) | Part::Finish | Part::Note(_) => self.put_body_fields(out, request),
            Part::Whole | Part::Numbered { .. } | Part::Page(_) | Part::Version(_) => {}
        }
    }

    /// Appends the length of a body, and Swift's type of it. Over S3 a type must be signed (radosgw
    /// 20.2 refuses it otherwise); none is sent there, as SDKs send none of their own.
    fn put_length(&self, out: &mut Vec<u8>, length: u64) {
        if self.api != Api::S3 {
            out.extend_from_slice(b"Content-Type: application/octet-stream\r\n");
        }
        out.extend_from_slice(b"Content-Length: ");
        put_number(out, length, 1);
        out.extend_from_slice(b"\r\n");
    }

    fn put_body_fields(&self, out: &mut Vec<u8>, request: &Request) {
        let kind = match (self.api, request.part) {
            (Api::S3, _) => "",
            (_, Part::Finish) => "Content-Type: application/json\r\n",
            _ => "Content-Type: text/plain\r\n",
        };
        if self.api == Api::S3 && request.part != Part::Finish {
            // Required there: boto3's checksum instead is refused by older stores.
            let md5 = STANDARD.encode(Md5::digest(&self.body));
            out.extend_from_slice(format!("Content-MD5: {md5}\r\n").as_bytes());
        } else if matches!(request.part, Part::Several(_)) {
            out.extend_from_slice(b"Accept: application/json\r\n");
        }
        let length = self.body.len();
        out.extend_from_slice(format!("{kind}Content-Length: {length}\r\n").as_bytes());
    }
}

/// The value of the metadata that a request changes; empty for other requests.
pub(super) fn metadata(request: &Request) -> Vec<u8> {
    let mut value = Vec::new();
    if let (Part::Note(number), Operation::UpdateMetadata) = (request.part, request.operation) {
        put_number(&mut value, number, 1);
    }
    value
}

/// Appends text to a query, percent-encoded as it is signed.
fn put_encoded(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            let digits = [byte >> 4, byte & 15];
            out.push(b'%');
            out.extend(digits.map(|digit| b"0123456789ABCDEF"[usize::from(digit)]));
        }
    }
}
