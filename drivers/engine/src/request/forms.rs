//! Objects in HTML forms, as browsers post them (RFC 7578): what is sent before an object's content
//! and after it.

use super::{HeadWriter, put_name};
use crate::config::Api;
use crate::picker::Request;
use crate::workload::{Operation, WorkerId, put_number};

/// What the names of written objects begin with. Over Swift it is in the path, and the rest of a
/// name is the file's.
pub(super) const PREFIX: &[u8] = b"written-";
/// The objects' content is seeded: none of it is this line.
const BOUNDARY: &str = "weighbridge-5f0c6c1e9a7d4b38";
const END: &[u8] = b"\r\n--weighbridge-5f0c6c1e9a7d4b38--\r\n";

/// What follows the content of an object in a request's body.
#[must_use]
pub fn tail_of(request: &Request) -> &'static [u8] {
    if request.operation == Operation::WriteForm { END } else { b"" }
}

impl HeadWriter {
    /// Writes what comes before the content: the fields that let it in, and the file's head.
    pub(super) fn put_form(&mut self, request: &Request, id: &WorkerId, unix_s: u64) {
        let mut name = Vec::new();
        put_name(&mut name, request.object, id);
        let (fields, file) = if self.api == Api::S3 {
            let mut bucket = self.stem.clone();
            put_number(&mut bucket, request.container, 1);
            let [bucket, key] =
                [&bucket, &name].map(|text| String::from_utf8_lossy(text).into_owned());
            (self.signer.policy_fields(&bucket, &key, request.size, unix_s), &name[..])
        } else {
            let signer = self.temp_urls.as_ref().expect("a config with forms has a key");
            (signer.form_fields(&self.path, request.size, unix_s), &name[PREFIX.len()..])
        };
        let body = &mut self.body;
        let mut put = |name: &str, more: &[u8]| {
            body.extend_from_slice(b"--");
            body.extend_from_slice(BOUNDARY.as_bytes());
            body.extend_from_slice(b"\r\nContent-Disposition: form-data; name=\"");
            body.extend_from_slice(name.as_bytes());
            body.push(b'"');
            body.extend_from_slice(more);
        };
        for (field, value) in fields {
            put(field, format!("\r\n\r\n{value}\r\n").as_bytes());
        }
        let begin: [&[u8]; 3] =
            [b"; filename=\"", file, b"\"\r\nContent-Type: application/octet-stream\r\n\r\n"];
        put("file", &begin.concat());
    }

    /// Appends the headers of a form.
    pub(super) fn put_form_headers(&self, out: &mut Vec<u8>, request: &Request) {
        out.extend_from_slice(b"Content-Type: multipart/form-data; boundary=");
        out.extend_from_slice(BOUNDARY.as_bytes());
        out.extend_from_slice(b"\r\nContent-Length: ");
        put_number(out, self.body.len() as u64 + request.size + END.len() as u64, 1);
        out.extend_from_slice(b"\r\n");
    }
}
