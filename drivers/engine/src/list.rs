//! Parsers of listings, as far as needed to count their keys.

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

/// Counts the keys of a listing.
///
/// # Errors
/// Why it is not a listing.
pub fn keys(form: Form, body: &[u8]) -> Result<u64, &'static str> {
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

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

fn plain(body: &[u8]) -> Result<u64, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "names that are not UTF-8")?;
    if text.is_empty() {
        return Ok(0);
    }
    // The last line may end with or without a newline: a truncated body is detected by its length.
    let mut count = 0;
    for name in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if name.is_empty() {
            return Err("an empty name");
        }
        count += 1;
    }
    Ok(count)
}

fn json(body: &[u8]) -> Result<u64, &'static str> {
    let entries: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_slice(body).map_err(|_| "not a JSON list")?;
    if entries.iter().any(|entry| !entry.get("name").is_some_and(serde_json::Value::is_string)) {
        return Err("an entry without a name");
    }
    Ok(entries.len() as u64)
}

/// Counts the keys of `ListBucketResult`. Elements are identified by their path, and each must be
/// closed; a `KeyCount` must be right.
fn xml(body: &[u8]) -> Result<u64, &'static str> {
    std::str::from_utf8(body).map_err(|_| "XML that is not UTF-8")?;
    let (mut rest, mut path, mut keys, mut key_count, mut has_root) =
        (body, Vec::<&[u8]>::new(), 0, None, false);
    while let Some(at) = rest.iter().position(|&byte| byte == b'<') {
        let text = &rest[..at];
        rest = &rest[at + 1..];
        if path.is_empty() && !text.trim_ascii().is_empty() {
            return Err("text outside of the root element");
        }
        if let Some(end) = [(&b"?"[..], &b"?>"[..]), (b"!--", b"-->")]
            .iter()
            .find(|(start, _)| rest.starts_with(start))
        {
            rest = &rest[find(rest, end.1).ok_or("truncated XML")? + end.1.len()..];
            continue;
        }
        let end = tag_end(rest).ok_or("truncated XML")?;
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix(b"/") {
            if path.pop() != Some(name.trim_ascii_end()) {
                return Err("XML whose elements do not match");
            }
            match (path.as_slice(), local(name)) {
                ([_, contents], b"Key") if local(contents) == b"Contents" => keys += 1,
                ([_], b"KeyCount") => {
                    key_count = Some(
                        crate::http::decimal(text.trim_ascii())
                            .ok_or("a KeyCount that is not a number")?,
                    );
                }
                _ => {}
            }
        } else {
            let name = tag
                .split(|&byte| byte.is_ascii_whitespace() || byte == b'/')
                .next()
                .unwrap_or_default();
            if name.is_empty()
                || name[0] == b'!'
                || (path.is_empty() && (has_root || local(name) != b"ListBucketResult"))
            {
                return Err("XML that is not a listing");
            }
            if tag.ends_with(b"/") {
                continue;
            }
            path.push(name);
            has_root = true;
        }
    }
    if !path.is_empty() || !has_root || !rest.trim_ascii().is_empty() {
        return Err("truncated XML");
    }
    if key_count.is_some_and(|count| count != keys) {
        return Err("a KeyCount that differs from the number of keys");
    }
    Ok(keys)
}

/// Where a tag ends: at the first `>` outside of quotes.
fn tag_end(text: &[u8]) -> Option<usize> {
    let mut quote = None;
    text.iter().position(|&byte| {
        match (quote, byte) {
            (None, b'>') => return true,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        false
    })
}

/// A name without its namespace prefix.
fn local(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b':').next().unwrap_or(name).trim_ascii_end()
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
