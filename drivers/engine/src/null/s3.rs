//! The answers of the null target to S3 requests.

use super::api::{Answer, Api, RequestHead, has, number, parameter, split};
use super::store::{Container, page, read, write};
use std::fmt::Write as _;

impl Api {
    pub(super) fn s3(&self, head: &RequestHead, size: u64, first: &[u8]) -> Answer {
        let store = &self.store;
        let method = head.method.as_str();
        let (name, object) = split(&head.path);
        if name.is_empty() {
            return match method {
                "GET" => self.s3_buckets(),
                _ => Answer::error(head, 405, "MethodNotAllowed"),
            };
        }
        if object.is_none() && method == "PUT" {
            store.make(name);
            return Answer { headers: format!("Location: /{name}\r\n"), ..Answer::of(200) };
        }
        let Some(container) = store.container(name) else {
            return Answer::error(head, 404, "NoSuchBucket");
        };
        match (method, object) {
            ("GET", None) => self.s3_bucket(head, name, &container),
            ("HEAD", None) => Answer::of(200),
            ("DELETE", None) => match store.remove(name) {
                Some(true) => Answer::of(204),
                Some(false) => Answer::error(head, 409, "BucketNotEmpty"),
                None => Answer::error(head, 404, "NoSuchBucket"),
            },
            ("PUT", Some(object)) => {
                let made = store.object(size, first);
                let headers = format!("ETag: \"{}\"\r\n", made.etag);
                write(&container).insert(object.into(), made);
                Answer { headers, ..Answer::of(200) }
            }
            ("GET" | "HEAD", Some(object)) => self.object(head, &container, object),
            ("DELETE", Some(object)) => {
                write(&container).remove(object);
                Answer::of(204)
            }
            _ => Answer::error(head, 405, "MethodNotAllowed"),
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

    fn s3_bucket(&self, head: &RequestHead, name: &str, container: &Container) -> Answer {
        if has(head, "location") {
            return Answer::with(
                200,
                "application/xml",
                xml("LocationConstraint") + "</LocationConstraint>",
            );
        }
        if has(head, "versioning") {
            return Answer::with(
                200,
                "application/xml",
                xml("VersioningConfiguration") + "</VersioningConfiguration>",
            );
        }
        let objects = read(container);
        let (prefix, most) = (parameter(head, "prefix"), number(head, "max-keys", 1000).min(1000));
        let marker = ["continuation-token", "start-after", "marker"]
            .map(|name| parameter(head, name))
            .into_iter()
            .find(|text| !text.is_empty());
        let (found, more) = page(&objects, marker.as_deref().unwrap_or(""), &prefix, most);
        let mut text = xml("ListBucketResult");
        let _ = write!(
            text,
            "<Name>{}</Name><Prefix>{}</Prefix><KeyCount>{}</KeyCount>\
             <MaxKeys>{most}</MaxKeys><IsTruncated>{more}</IsTruncated>",
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
                "<Contents><Key>{}</Key><LastModified>{}</LastModified>\
                 <ETag>&quot;{}&quot;</ETag><Size>{}</Size>\
                 <StorageClass>STANDARD</StorageClass></Contents>",
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn xml(root: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <{root} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    )
}
