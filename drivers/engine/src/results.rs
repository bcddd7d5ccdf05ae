//! What stands in the bodies of answers to requests that are not on one object.

use crate::digests::{Sum, of_etag};
use crate::http::decimal;
use crate::workload::put_object_name;
use crate::xml::{local, unescape, walk};
use std::ops::Range;

/// Longest upload ID that is accepted.
const LONGEST_ID_BYTES: usize = 1024;

/// What a request that deletes several objects did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Deleted {
    /// Objects that were deleted.
    pub deleted: u64,
    /// Objects that did not exist, as far as the store says so.
    pub missing: u64,
    /// The first of the errors.
    pub error: Option<String>,
}

/// The `ETag` of S3's answer to a copy, if it is an MD5.
/// Errors: Why it is not such an answer.
pub fn copied(body: &[u8]) -> Result<Option<Sum>, &'static str> {
    let mut etag = None;
    walk(body, b"CopyObjectResult", |path, name, text| {
        if path.len() == 1 && name == b"ETag" {
            etag = unescape(text).as_deref().and_then(of_etag);
        }
        Ok(())
    })?;
    Ok(etag)
}

/// The ID of a new upload.
/// Errors: Why there is none.
pub fn upload_id(body: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut id = None;
    walk(body, b"InitiateMultipartUploadResult", |path, name, text| {
        if path.len() == 1 && name == b"UploadId" {
            id = unescape(text.trim_ascii());
        }
        Ok(())
    })?;
    id.filter(|id| (1..=LONGEST_ID_BYTES).contains(&id.len())).ok_or("no usable UploadId")
}

/// Checks S3's answer to the end of an upload of so many parts. Ceph 16 gives no `ETag` in it.
/// Errors: Why it is not such an answer.
pub fn check_finished(body: &[u8], parts: usize) -> Result<(), &'static str> {
    let mut etag = Vec::new();
    walk(body, b"CompleteMultipartUploadResult", |path, name, text| {
        if path.len() == 1 && name == b"ETag" {
            etag = unescape(text).unwrap_or_default();
        }
        Ok(())
    })?;
    let text = etag.trim_ascii();
    let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
    let count = text.iter().position(|&byte| byte == b'-').map(|at| decimal(&text[at + 1..]));
    match count {
        Some(Some(count)) if count != parts as u64 => Err("an ETag of another number of parts"),
        _ => Ok(()),
    }
}

/// What S3's multi-delete did of the prepared objects `asked`, each of which is named once at most.
/// Errors: Why it is not such an answer.
pub fn multi_deleted(body: &[u8], asked: Range<u64>) -> Result<Deleted, &'static str> {
    let mut found = Deleted::default();
    // Stores may name the objects in any order.
    let mut left = vec![true; (asked.end - asked.start) as usize];
    walk(body, b"DeleteResult", |path, name, text| {
        match (path, name) {
            ([_, parent], b"Key") if local(parent) == b"Deleted" => {
                let index = unescape(text).as_deref().and_then(prepared_index);
                let index = index
                    .filter(|index| asked.contains(index))
                    .ok_or("a deleted key that was not asked for")?;
                if !std::mem::replace(&mut left[(index - asked.start) as usize], false) {
                    return Err("a deleted key that is named twice");
                }
                found.deleted += 1;
            }
            ([_, parent], b"Code") if local(parent) == b"Error" && found.error.is_none() => {
                found.error = Some(String::from_utf8_lossy(text).into_owned());
            }
            ([_], b"Error") if found.error.is_none() => {
                found.error = Some("an error without a code".into());
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// The index of the prepared object of this name.
fn prepared_index(name: &[u8]) -> Option<u64> {
    let index = decimal(name.strip_prefix(b"object-")?)?;
    let mut wanted = Vec::new();
    put_object_name(&mut wanted, index);
    (wanted == name).then_some(index)
}

/// What Swift's bulk delete did, or the deletion of a large object with its segments: text or JSON
/// whose status is inside of it.
/// Errors: Why it is not such an answer.
pub fn bulk_deleted(body: &[u8]) -> Result<Deleted, &'static str> {
    if body.trim_ascii().is_empty() {
        return Err("an empty answer: was it done at all?");
    }
    if body.trim_ascii_start().starts_with(b"{") {
        return bulk_json(body);
    }
    let text = std::str::from_utf8(body).map_err(|_| "an answer that is not UTF-8")?;
    let (mut found, mut status, mut counted, mut errors) = (Deleted::default(), "", false, false);
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':').filter(|_| !errors) else {
            if errors && !line.trim().is_empty() && found.error.is_none() {
                found.error = Some(line.trim().into());
            }
            continue;
        };
        let value = value.trim();
        let number = || decimal(value.as_bytes()).ok_or("a count that is not a number");
        match key.trim() {
            "Number Deleted" => (found.deleted, counted) = (number()?, true),
            "Number Not Found" => found.missing = number()?,
            "Response Status" => status = value,
            "Errors" => errors = true,
            _ => {}
        }
    }
    found.judged(counted, status)
}

fn bulk_json(body: &[u8]) -> Result<Deleted, &'static str> {
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|_| "JSON that cannot be read")?;
    let number = |key: &str| value.get(key).and_then(serde_json::Value::as_u64);
    let mut found = Deleted {
        deleted: number("Number Deleted").unwrap_or(0),
        missing: number("Number Not Found").unwrap_or(0),
        error: None,
    };
    let errors = value.get("Errors").and_then(serde_json::Value::as_array);
    found.error = errors.and_then(|errors| errors.first()).map(ToString::to_string);
    let status = value.get("Response Status").and_then(serde_json::Value::as_str);
    found.judged(number("Number Deleted").is_some(), status.unwrap_or(""))
}

impl Deleted {
    /// It, if a count and a status are there; another status than 2xx is an error.
    fn judged(mut self, counted: bool, status: &str) -> Result<Self, &'static str> {
        if !counted || status.is_empty() {
            return Err("no count of deleted objects, or no status");
        }
        if !status.starts_with('2') && self.error.is_none() {
            self.error = Some(status.into());
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_answer_is_read_as_text_and_as_json() {
        let text = b"Number Deleted: 2\nNumber Not Found: 1\nResponse Body: \n\
            Response Status: 200 OK\nErrors:\n";
        let json = br#"{"Number Deleted": 2, "Number Not Found": 1, "Response Body": "",
            "Response Status": "200 OK", "Errors": []}"#;
        let wanted = Deleted { deleted: 2, missing: 1, error: None };
        assert_eq!(bulk_deleted(text), Ok(wanted.clone()));
        assert_eq!(bulk_deleted(json), Ok(wanted));
        for (body, error) in [
            (&b"Number Deleted: 1\nResponse Status: 400 Bad Request\nErrors:\n"[..], "400"),
            (b"Number Deleted: 1\nResponse Status: 200 OK\nErrors:\n/c/o, 409 Conflict\n", "/c/o"),
            (
                br#"{"Number Deleted":1,"Response Status":"400","Errors":[["/c/o","409"]]}"#,
                "[\"/c/o\"",
            ),
        ] {
            let found = bulk_deleted(body).expect("an answer").error.expect("an error");
            assert!(found.starts_with(error), "{found}");
        }
        for bad in [&b""[..], b" \n", b"ok", b"{", b"{}", b"Number Deleted: many\n"] {
            assert!(bulk_deleted(bad).is_err());
        }
    }

    #[test]
    fn results_of_s3_are_identified_by_their_root() {
        let etag = "1".repeat(32);
        let copy = format!("<CopyObjectResult><ETag>&quot;{etag}&quot;</ETag></CopyObjectResult>");
        assert_eq!(copied(copy.as_bytes()), Ok(Some([0x11; 16])));
        assert_eq!(copied(b"<CopyObjectResult></CopyObjectResult>"), Ok(None));
        assert!(copied(b"<DeleteResult></DeleteResult>").is_err());
        let begun = b"<InitiateMultipartUploadResult><UploadId>2~a&amp;b</UploadId>\
            </InitiateMultipartUploadResult>";
        assert_eq!(upload_id(begun).as_deref(), Ok(&b"2~a&b"[..]));
        assert!(
            upload_id(b"<InitiateMultipartUploadResult></InitiateMultipartUploadResult>").is_err()
        );
        let finished = |etag: &str| {
            let body = format!(
                "<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>"
            );
            check_finished(body.as_bytes(), 3)
        };
        assert!(finished("&quot;abc-3&quot;").is_ok() && finished("").is_ok());
        assert!(finished("&quot;abc-2&quot;").is_err());
        let many = b"<DeleteResult><Deleted><Key>object-0000000005</Key></Deleted>\
            <Error><Key>b</Key><Code>AccessDenied</Code></Error></DeleteResult>";
        let wanted = Deleted { deleted: 1, missing: 0, error: Some("AccessDenied".into()) };
        assert_eq!(multi_deleted(many, 5..7), Ok(wanted));
    }

    #[test]
    fn each_deleted_key_was_asked_for_and_is_named_once() {
        let deleted = |keys: &[&str]| {
            let keys = keys.iter().map(|key| format!("<Deleted><Key>{key}</Key></Deleted>"));
            let body = format!("<DeleteResult>{}</DeleteResult>", keys.collect::<String>());
            multi_deleted(body.as_bytes(), 5..8).map(|found| found.deleted)
        };
        let [five, six, seven, eight] = [5, 6, 7, 8].map(|index| format!("object-{index:010}"));
        assert_eq!(deleted(&[&seven, &five, &six]), Ok(3));
        assert_eq!(deleted(&[&five, "object-000000000&#54;"]), Ok(2));
        for bad in [&[&*five, &five, &five][..], &[&six, &eight], &["a"], &["object-5"], &["&e;"]] {
            assert!(deleted(bad).is_err(), "{bad:?}");
        }
    }
}
