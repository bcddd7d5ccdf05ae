//! Bodies of requests that are not content of an object.

use super::{HeadWriter, put_name};
use crate::config::Api;
use crate::flow::Flow;
use crate::picker::{Object, Part, Request};
use crate::workload::{WorkerId, put_number};
use crate::xml::put_escaped;

const NAMESPACE: &str = "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

impl HeadWriter {
    /// Writes the body of a request that deletes several objects or ends an upload.
    pub(super) fn put_body(&mut self, request: &Request, id: &WorkerId, flow: &Flow) {
        match (request.part, self.api) {
            (Part::Note(value), _) => {
                let text = format!(
                    "<Tagging {NAMESPACE}><TagSet><Tag><Key>weighbridge</Key><Value>{value}\
                     </Value></Tag></TagSet></Tagging>"
                );
                self.body.extend_from_slice(text.as_bytes());
            }
            (Part::Several(count), Api::S3) => {
                let body = &mut self.body;
                body.extend_from_slice(format!("<Delete {NAMESPACE}>").as_bytes());
                for object in following(request.object, count) {
                    body.extend_from_slice(b"<Object><Key>");
                    put_name(body, object, id);
                    body.extend_from_slice(b"</Key></Object>");
                }
                body.extend_from_slice(b"</Delete>");
            }
            (Part::Several(count), _) => {
                for object in following(request.object, count) {
                    self.body.push(b'/');
                    self.body.extend_from_slice(&self.stem);
                    put_number(&mut self.body, request.container, 1);
                    self.body.push(b'/');
                    put_name(&mut self.body, object, id);
                    self.body.push(b'\n');
                }
            }
            (_, Api::S3) => self.put_parts(flow),
            _ => self.put_manifest(request, id, flow),
        }
    }

    /// The parts of an upload of S3's.
    fn put_parts(&mut self, flow: &Flow) {
        let body = &mut self.body;
        body.extend_from_slice(format!("<CompleteMultipartUpload {NAMESPACE}>").as_bytes());
        for (number, etag) in (1..).zip(&flow.etags) {
            body.extend_from_slice(b"<Part><PartNumber>");
            put_number(body, number, 1);
            body.extend_from_slice(b"</PartNumber><ETag>");
            put_escaped(body, etag);
            body.extend_from_slice(b"</ETag></Part>");
        }
        body.extend_from_slice(b"</CompleteMultipartUpload>");
    }

    /// The manifest of a static large object: segments by path, with their `ETag`s and sizes.
    fn put_manifest(&mut self, request: &Request, id: &WorkerId, flow: &Flow) {
        let mut left = request.size;
        let body = &mut self.body;
        body.push(b'[');
        for (number, etag) in (1..).zip(&flow.etags) {
            let size = left.min(self.part_bytes);
            left -= size;
            if number > 1 {
                body.push(b',');
            }
            body.extend_from_slice(b"{\"path\":\"/");
            body.extend_from_slice(&self.stem);
            put_number(body, request.container, 1);
            body.push(b'/');
            put_name(body, request.object, id);
            body.push(b'/');
            put_number(body, number, 8);
            let etag = String::from_utf8_lossy(etag);
            let etag = serde_json::Value::from(etag.trim_matches('"')).to_string();
            body.extend_from_slice(
                format!("\",\"etag\":{etag},\"size_bytes\":{size}}}").as_bytes(),
            );
        }
        body.push(b']');
    }
}

fn following(first: Object, count: u64) -> impl Iterator<Item = Object> {
    (0..count).map(move |more| match first {
        Object::Prepared(index) => Object::Prepared(index + more),
        Object::Written(index) => Object::Written(index + more),
    })
}
