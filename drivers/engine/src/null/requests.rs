//! The answers of the null target to requests that are more than one for a complete object: parts
//! of objects, conditions, copies, uploads in parts, deletions of several objects, and metadata and
//! tags, of which it keeps nothing.

use super::api::{Answer, Api, RequestHead, decode, has, number, parameter, split};
use super::s3::{escape, xml};
use super::store::{Container, Object, read, write};
use crate::http::decimal;
use crate::xml::{local, unescape, walk};
use serde_json::Value;
use std::fmt::Write as _;

impl Api {
    /// Answers such a request of S3's in an existing bucket; `None`: it is none.
    pub(super) fn s3_special(
        &self,
        head: &RequestHead,
        container: &Container,
        object: Option<&str>,
        size: u64,
        first: &[u8],
    ) -> Option<Answer> {
        if let Some(answer) = self.of_versions(head, container, object, first) {
            return Some(answer);
        }
        let asks = |method: &str, key: &str| head.method == method && has(head, key);
        let Some(object) = object else {
            let is_cut = size > first.len() as u64;
            return asks("POST", "delete").then(|| match deleted(container, first) {
                Some(text) if !is_cut => result("DeleteResult", &text),
                _ => Answer::error(head, 400, "MalformedXML"),
            });
        };
        if asks("POST", "uploads") {
            let id = self.store.begin_upload();
            let text = format!("<UploadId>{id}</UploadId>");
            return Some(result("InitiateMultipartUploadResult", &text));
        }
        if has(head, "uploadId") {
            return self.of_upload(head, container, object, size, first);
        }
        if asks("PUT", "tagging") {
            return Some(noted(head, container, object, 200));
        }
        if head.method == "PUT" && !head.copy_source.is_empty() {
            return Some(match self.copy(head, container, object) {
                Some(etag) => {
                    let time = &self.iso_time;
                    let text =
                        format!("<LastModified>{time}</LastModified><ETag>\"{etag}\"</ETag>");
                    result("CopyObjectResult", &text)
                }
                None => Answer::error(head, 404, "NoSuchKey"),
            });
        }
        refused_write(head, container, object)
    }

    fn of_upload(
        &self,
        head: &RequestHead,
        container: &Container,
        object: &str,
        size: u64,
        first: &[u8],
    ) -> Option<Answer> {
        let id = parameter(head, "uploadId");
        let answer = match head.method.as_str() {
            "PUT" if head.copy_source.is_empty() => {
                let part = self.store.object(size, first);
                let headers = format!("ETag: \"{}\"\r\n", part.etag);
                self.store
                    .put_part(&id, number(head, "partNumber", 0), part)
                    .then(|| Answer { headers, ..Answer::of(200) })
            }
            "POST" => self.store.end_upload(&id).map(|made| {
                let text = format!("<ETag>\"{}\"</ETag>", made.etag);
                write(container).insert(object.into(), made);
                result("CompleteMultipartUploadResult", &text)
            }),
            "DELETE" => self.store.end_upload(&id).map(|_| Answer::of(204)),
            _ => return None,
        };
        Some(answer.unwrap_or_else(|| Answer::error(head, 404, "NoSuchUpload")))
    }

    /// Answers such a request of Swift's on an object of an existing container; `None`: it is none.
    pub(super) fn swift_special(
        &self,
        head: &RequestHead,
        container: &Container,
        object: &str,
        size: u64,
        first: &[u8],
    ) -> Option<Answer> {
        let manifest = parameter(head, "multipart-manifest");
        match head.method.as_str() {
            "POST" => Some(noted(head, container, object, 202)),
            "PUT" if !head.copy_source.is_empty() => {
                Some(match self.copy(head, container, object) {
                    Some(etag) => {
                        Answer { headers: format!("ETag: \"{etag}\"\r\n"), ..Answer::of(201) }
                    }
                    None => Answer::error(head, 404, "Not Found"),
                })
            }
            "PUT" if manifest == "put" => {
                let is_cut = size > first.len() as u64;
                let made = if is_cut { None } else { self.large_object(first) };
                Some(match made {
                    Some(made) => {
                        let headers = format!("ETag: \"{}\"\r\n", made.etag);
                        write(container).insert(object.into(), made);
                        Answer { headers, ..Answer::of(201) }
                    }
                    None => Answer::error(head, 400, "Bad Request"),
                })
            }
            "DELETE" if manifest == "delete" => {
                let made = write(container).remove(object);
                let (mut gone, mut missing) = (u64::from(made.is_some()), 0);
                missing += 1 - gone;
                for path in made.and_then(|made| made.segments).iter().flat_map(|some| some.iter())
                {
                    let found = self.delete_path(path);
                    gone += u64::from(found);
                    missing += u64::from(!found);
                }
                Some(bulk(gone, missing))
            }
            _ => refused_write(head, container, object),
        }
    }

    /// Answers Swift's request to delete the objects that are named by the lines of its body.
    pub(super) fn bulk_delete(&self, head: &RequestHead, size: u64, first: &[u8]) -> Answer {
        let text = std::str::from_utf8(first).unwrap_or_default();
        if size > text.len() as u64 {
            return Answer::error(head, 400, "Bad Request");
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let (mut gone, mut missing) = (0, 0);
        for line in lines {
            let found = self.delete_path(&decode(line));
            gone += u64::from(found);
            missing += u64::from(!found);
        }
        bulk(gone, missing)
    }

    /// The answer to a GET or HEAD of an object.
    pub(super) fn object(&self, head: &RequestHead, object: Option<Object>) -> Answer {
        let is_s3 = !super::api::is_swift(&head.path);
        let Some(object) = object else {
            return Answer::error(head, 404, if is_s3 { "NoSuchKey" } else { "Not Found" });
        };
        let is_named = |header: &str| {
            header == "*" || header.split(',').any(|etag| self.store.has_etag(&object, etag.trim()))
        };
        if !head.if_match.is_empty() && !is_named(&head.if_match) {
            return Answer::error(head, 412, "PreconditionFailed");
        }
        let known = |status| Answer::of(status).listed(&object.etag, &self.http_time);
        if !head.if_none_match.is_empty() && is_named(&head.if_none_match) {
            return known(304);
        }
        let number_of = if is_s3 { "partNumber" } else { "part-number" };
        let asked = if has(head, number_of) {
            numbered(&object, number(head, number_of, 0))
        } else {
            range(&head.range, object.size)
        };
        let span = match asked {
            Range::All => None,
            Range::Of(span) => Some(span),
            Range::Beyond => return Answer::error(head, 416, "InvalidRange"),
        };
        let mut answer = known(if span.is_some() { 206 } else { 200 });
        if let Some((offset, length)) = span {
            let (last, size) = (offset + length - 1, object.size);
            let _ = write!(answer.headers, "Content-Range: bytes {offset}-{last}/{size}\r\n");
        }
        Answer { object: Some(object), span, ..answer }
    }

    /// Copies the object that a request names as its source; returns the copy's `ETag`.
    fn copy(&self, head: &RequestHead, container: &Container, object: &str) -> Option<String> {
        let made = self.at_path(&decode(&head.copy_source))?;
        let etag = made.etag.to_string();
        write(container).insert(object.into(), made);
        Some(etag)
    }

    /// The large object of a manifest.
    fn large_object(&self, manifest: &[u8]) -> Option<Object> {
        let entries: Vec<Value> = serde_json::from_slice(manifest).ok()?;
        let paths: Vec<Box<str>> = entries
            .iter()
            .map(|entry| Some(entry.get("path")?.as_str()?.into()))
            .collect::<Option<_>>()?;
        let parts: Vec<Object> =
            paths.iter().map(|path| self.at_path(path)).collect::<Option<_>>()?;
        let made = self.store.joined(&parts)?;
        Some(Object { segments: Some(paths.into()), ..made })
    }

    fn at_path(&self, path: &str) -> Option<Object> {
        let (name, object) = split(path);
        let container = self.store.container(name)?;
        read(&container).get(object?).cloned()
    }

    fn delete_path(&self, path: &str) -> bool {
        let (name, object) = split(path);
        self.store
            .container(name)
            .zip(object)
            .is_some_and(|(container, object)| write(&container).remove(object).is_some())
    }
}

/// The refusal of a write of an object that exists, if it was not to.
fn refused_write(head: &RequestHead, container: &Container, object: &str) -> Option<Answer> {
    let refuses =
        head.method == "PUT" && head.if_none_match == "*" && read(container).contains_key(object);
    refuses.then(|| Answer::error(head, 412, "PreconditionFailed"))
}

/// The answer to a change of what is noted of an object, which is not kept.
fn noted(head: &RequestHead, container: &Container, object: &str, status: u16) -> Answer {
    if read(container).contains_key(object) {
        return Answer::of(status);
    }
    let code = if status == 200 { "NoSuchKey" } else { "Not Found" };
    Answer::error(head, 404, code)
}

/// Deletes what a request of S3's names, and says so.
fn deleted(container: &Container, body: &[u8]) -> Option<String> {
    let mut text = String::new();
    walk(body, b"Delete", |path, name, value| {
        if matches!(path, [_, parent] if local(parent) == b"Object") && name == b"Key" {
            let key = unescape(value).ok_or("an unknown entity")?;
            let key = String::from_utf8_lossy(&key);
            write(container).remove(&key);
            let _ = write!(text, "<Deleted><Key>{}</Key></Deleted>", escape(&key));
        }
        Ok(())
    })
    .ok()
    .map(|()| text)
}

fn result(root: &str, text: &str) -> Answer {
    Answer::with(200, "application/xml", format!("{}{text}</{root}>", xml(root)))
}

fn bulk(gone: u64, missing: u64) -> Answer {
    let text = format!(
        "{{\"Number Deleted\": {gone}, \"Number Not Found\": {missing}, \"Response Status\": \
         \"200 OK\", \"Response Body\": \"\", \"Errors\": []}}"
    );
    Answer::with(200, "application/json", text)
}

/// What a `Range` asks for, or the number of a part.
#[derive(Debug, PartialEq)]
enum Range {
    /// All, also where it is not understood (RFC 9110).
    All,
    /// From this byte on so many.
    Of((u64, u64)),
    /// Nothing that the object has.
    Beyond,
}

/// A part of an object by its number from 1; one that was not uploaded in parts is its only part.
fn numbered(object: &Object, number: usize) -> Range {
    let whole = [object.size];
    let sizes = object.parts.as_deref().unwrap_or(&whole);
    let Some(&length) = number.checked_sub(1).and_then(|at| sizes.get(at)) else {
        return Range::Beyond;
    };
    let offset = sizes[..number - 1].iter().sum();
    if length == 0 { Range::All } else { Range::Of((offset, length)) }
}

fn range(header: &str, size: u64) -> Range {
    let Some((first, last)) = header.strip_prefix("bytes=").and_then(|text| text.split_once('-'))
    else {
        return Range::All;
    };
    let (first, last) = match (decimal(first.as_bytes()), decimal(last.as_bytes())) {
        (Some(first), Some(last)) if first <= last => (first, last.min(size.saturating_sub(1))),
        (Some(first), None) if last.is_empty() => (first, size.saturating_sub(1)),
        (None, Some(count)) if first.is_empty() => {
            (size - count.min(size), if count == 0 { 0 } else { size.saturating_sub(1) })
        }
        _ => return Range::All,
    };
    if first >= size { Range::Beyond } else { Range::Of((first, last + 1 - first)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_a_number_from_one() {
        let object = |parts: Option<&[u64]>| Object {
            version: 0,
            size: 10,
            verbatim: None,
            etag: "e".into(),
            segments: None,
            parts: parts.map(Into::into),
        };
        let three = object(Some(&[4, 4, 2]));
        assert_eq!(numbered(&three, 1), Range::Of((0, 4)));
        assert_eq!(numbered(&three, 3), Range::Of((8, 2)));
        assert_eq!(numbered(&three, 0), Range::Beyond);
        assert_eq!(numbered(&three, 4), Range::Beyond);
        assert_eq!(numbered(&object(None), 1), Range::Of((0, 10)));
        assert_eq!(numbered(&object(None), 2), Range::Beyond);
        assert_eq!(numbered(&object(Some(&[0])), 1), Range::All);
    }

    #[test]
    fn a_range_is_a_part_of_the_object_or_beyond_it() {
        assert_eq!(range("bytes=2-3", 10), Range::Of((2, 2)));
        assert_eq!(range("bytes=8-99", 10), Range::Of((8, 2)));
        assert_eq!(range("bytes=8-", 10), Range::Of((8, 2)));
        assert_eq!(range("bytes=-3", 10), Range::Of((7, 3)));
        assert_eq!(range("bytes=-99", 10), Range::Of((0, 10)));
        assert_eq!(range("bytes=10-", 10), Range::Beyond);
        assert_eq!(range("bytes=0-0", 0), Range::Beyond);
        for other in ["", "bytes=3-2", "bytes=1-2,4-5", "bytes=-", "lines=1-2"] {
            assert_eq!(range(other, 10), Range::All, "{other}");
        }
    }
}
