//! Parsers of listings, as far as needed to count their keys and to continue them.

use crate::xml::{find, local, unescape, walk};

/// The format of a listing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// S3's XML.
    Xml,
    /// Swift's JSON.
    Json,
    /// Swift's plain text: one name per line.
    Plain,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// Number of keys.
    pub keys: u64,
    /// Number of common prefixes, which only a delimiter makes.
    pub prefixes: u64,
    /// The greatest name on it.
    pub last: Vec<u8>,
    /// Of S3: whether there is more, and the token to continue with.
    pub more: bool,
    /// See `more`; empty if there is none.
    pub token: Vec<u8>,
}

/// Counts the keys of a listing that has no common prefixes.
///
/// # Errors
/// Why it is not a listing.
pub fn keys(form: Form, body: &[u8]) -> Result<u64, &'static str> {
    match page(form, body)? {
        Page { prefixes: 0, keys, .. } => Ok(keys),
        _ => Err("a common prefix that no delimiter made"),
    }
}

/// Reads a page of a listing.
///
/// # Errors
/// Why it is not one.
pub fn page(form: Form, body: &[u8]) -> Result<Page, &'static str> {
    match form {
        Form::Xml => xml(body),
        Form::Json => json(body),
        Form::Plain => plain(body),
    }
}

/// Whether a body is an S3 error: XML whose root is `Error`, whatever status came with it.
#[must_use]
pub fn is_error(body: &[u8]) -> bool {
    let mut rest = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    if rest.starts_with(b"<?xml") {
        let Some(end) = find(rest, b"?>") else { return false };
        rest = rest[end + 2..].trim_ascii_start();
    }
    rest.strip_prefix(b"<Error").is_some_and(|after| {
        after.first().is_none_or(|&byte| byte == b'>' || byte.is_ascii_whitespace())
    })
}

fn plain(body: &[u8]) -> Result<Page, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "names that are not UTF-8")?;
    let mut page = Page::default();
    if text.is_empty() {
        return Ok(page);
    }
    // The last line may end with or without a newline: a truncated body is detected by its length.
    let mut last = "";
    for name in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if name.is_empty() {
            return Err("an empty name");
        }
        page.keys += 1;
        last = last.max(name);
    }
    page.last = last.into();
    Ok(page)
}

fn json(body: &[u8]) -> Result<Page, &'static str> {
    let entries: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_slice(body).map_err(|_| "not a JSON list")?;
    let mut page = Page::default();
    let mut last = "";
    for entry in &entries {
        let text = |key: &str| entry.get(key).and_then(serde_json::Value::as_str);
        let (name, count) = match (text("name"), text("subdir")) {
            (Some(name), _) => (name, &mut page.keys),
            (None, Some(name)) => (name, &mut page.prefixes),
            _ => return Err("an entry without a name"),
        };
        *count += 1;
        last = last.max(name);
    }
    page.last = last.into();
    Ok(page)
}

/// Reads `ListBucketResult`. Elements are identified by their path, and each must be closed; a
/// `KeyCount` must be right.
fn xml(body: &[u8]) -> Result<Page, &'static str> {
    let (mut page, mut key_count, mut last) = (Page::default(), None, &b""[..]);
    walk(body, b"ListBucketResult", |path, name, text| {
        match (path, name) {
            ([_, parent], b"Key") if local(parent) == b"Contents" => {
                page.keys += 1;
                last = last.max(text);
            }
            ([_, parent], b"Prefix") if local(parent) == b"CommonPrefixes" => {
                page.prefixes += 1;
                last = last.max(text);
            }
            ([_], b"IsTruncated") => page.more = text.trim_ascii() == b"true",
            ([_], b"NextContinuationToken") => {
                page.token = unescape(text).ok_or("a token with an unknown entity")?;
            }
            ([_], b"KeyCount") => {
                key_count = Some(
                    crate::http::decimal(text.trim_ascii())
                        .ok_or("a KeyCount that is not a number")?,
                );
            }
            _ => {}
        }
        Ok(())
    })?;
    if key_count.is_some_and(|count| count != page.keys + page.prefixes) {
        return Err("a KeyCount that differs from the number of keys");
    }
    page.last = last.to_vec();
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_in_each_format() {
        for (form, body, wanted) in [
            (Form::Plain, "", Ok(0)),
            (Form::Plain, "a\nb c\n", Ok(2)),
            (Form::Plain, "a\nb", Ok(2)),
            (Form::Plain, "a\n\nb\n", Err(())),
            (Form::Json, "[]", Ok(0)),
            (Form::Json, r#"[{"name": "a"}, {"name": "b", "bytes": 1}]"#, Ok(2)),
            (Form::Json, r#"[{"name": "a"}"#, Err(())),
            (Form::Json, r#"[{"subdir": "a"}]"#, Err(())),
            (Form::Json, r#"{"name": "a"}"#, Err(())),
            (Form::Xml, "<ListBucketResult/>", Err(())),
            (Form::Xml, "<ListBucketResult></ListBucketResult>", Ok(0)),
            (
                Form::Xml,
                "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3/?a>b\">\
                 <Name>x</Name><Prefix/><KeyCount>2</KeyCount>\
                 <Contents><Key>a</Key><Owner><Key>no</Key></Owner></Contents>\n\
                 <!-- <Key> --><Contents><Key>b&lt;</Key></Contents></ListBucketResult>\n",
                Ok(2),
            ),
            (
                Form::Xml,
                "<s:ListBucketResult><s:Contents><s:Key>a</s:Key></s:Contents>\
                 </s:ListBucketResult>",
                Ok(1),
            ),
            (
                Form::Xml,
                "<ListBucketResult><KeyCount>2</KeyCount>\
                 <Contents><Key>a</Key></Contents></ListBucketResult>",
                Err(()),
            ),
            (Form::Xml, "<ListBucketResult><Contents><Key>a</Key></Contents>", Err(())),
            (
                Form::Xml,
                "<ListBucketResult><Contents><Key>a</Contents></Key></ListBucketResult>",
                Err(()),
            ),
            (Form::Xml, "<ListAllMyBucketsResult></ListAllMyBucketsResult>", Err(())),
            (Form::Xml, "<ListBucketResult></ListBucketResult>more", Err(())),
            (Form::Xml, "", Err(())),
            (Form::Xml, "a\nb\n", Err(())),
        ] {
            assert_eq!(keys(form, body.as_bytes()).map_err(|_| ()), wanted, "{form:?} {body}");
        }
    }

    #[test]
    fn an_error_is_recognised_by_its_root() {
        for (body, wanted) in [
            ("<Error><Code>SlowDown</Code></Error>", true),
            ("\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n <Error xmlns=\"x\">", true),
            ("<Errors>", false),
            ("<ListBucketResult><Error>", false),
            ("<?xml", false),
            ("", false),
        ] {
            assert_eq!(is_error(body.as_bytes()), wanted, "{body}");
        }
    }
}
