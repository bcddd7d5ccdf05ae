//! Parsers of listings, as far as needed to count their keys, to check their order, and to
//! continue them.

use crate::xml::{find, local, unescape, walk};
use std::borrow::Cow;

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

/// Reads a page of a listing of the names that begin with a prefix.
pub type ReadPage = fn(Form, &[u8], &[u8]) -> Result<Page, &'static str>;

/// A page of a listing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// Number of keys.
    pub keys: u64,
    /// Number of common prefixes, which only a delimiter makes.
    pub prefixes: u64,
    /// The least name on it; empty if there is none.
    pub first: Vec<u8>,
    /// The greatest one.
    pub last: Vec<u8>,
    /// Of S3: whether there is more, and the token to continue with.
    pub more: bool,
    /// See `more`; empty if there is none.
    pub token: Vec<u8>,
    /// Of versions: how many different names it has.
    pub names: u64,
    /// Of versions: the ID of the first one.
    pub first_version: Vec<u8>,
    /// Of versions: the ID of the last one.
    pub last_version: Vec<u8>,
}

/// Counts the keys of a listing that has no common prefixes.
/// Errors: Why it is not a listing.
pub fn keys(form: Form, body: &[u8]) -> Result<u64, &'static str> {
    match page(form, body, b"")? {
        Page { prefixes: 0, keys, .. } => Ok(keys),
        _ => Err("a common prefix that no delimiter made"),
    }
}

/// Reads a page of a listing of the names that begin with `prefix`.
/// Errors: Why it is not one.
pub fn page(form: Form, body: &[u8], prefix: &[u8]) -> Result<Page, &'static str> {
    match form {
        Form::Xml => xml(body, prefix),
        Form::Json => json(body, prefix),
        Form::Plain => plain(body, prefix),
    }
}

/// Names of one kind. S3 and Swift list them in the order of their bytes in UTF-8.
#[derive(Default)]
struct Names<'a> {
    count: u64,
    first: Cow<'a, [u8]>,
    last: Cow<'a, [u8]>,
}

impl<'a> Names<'a> {
    fn add(&mut self, name: Cow<'a, [u8]>, prefix: &[u8]) -> Result<(), &'static str> {
        if name.is_empty() {
            return Err("an empty name");
        }
        // No name is before the first one, as `last` is empty then.
        if *name <= *self.last {
            return Err("a name that is not after the one before it");
        }
        if !name.starts_with(prefix) {
            return Err("a name without the prefix that was asked for");
        }
        if self.count == 0 {
            self.first.clone_from(&name);
        }
        self.count += 1;
        self.last = name;
        Ok(())
    }
}

impl Page {
    /// A page of keys, and of common prefixes, which S3 lists apart.
    fn of(keys: Names<'_>, prefixes: Names<'_>) -> Self {
        let first = match (keys.count, prefixes.count) {
            (0, _) => prefixes.first,
            (_, 0) => keys.first,
            _ => keys.first.min(prefixes.first),
        };
        Self {
            keys: keys.count,
            prefixes: prefixes.count,
            first: first.into_owned(),
            last: keys.last.max(prefixes.last).into_owned(),
            ..Self::default()
        }
    }
}

/// Whether a body is an S3 error: XML whose root is `Error`, whatever status came with it.
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

fn plain(body: &[u8], prefix: &[u8]) -> Result<Page, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "names that are not UTF-8")?;
    let mut names = Names::default();
    if !text.is_empty() {
        // The last line may end with or without a newline: a truncated body is detected by its
        // length.
        for name in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            names.add(name.as_bytes().into(), prefix)?;
        }
    }
    Ok(Page::of(names, Names::default()))
}

fn json(body: &[u8], prefix: &[u8]) -> Result<Page, &'static str> {
    let entries: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_slice(body).map_err(|_| "not a JSON list")?;
    let (mut keys, mut prefixes) = (Names::default(), Names::default());
    for entry in &entries {
        let text = |key: &str| entry.get(key).and_then(serde_json::Value::as_str);
        let (name, names) = match (text("name"), text("subdir")) {
            (Some(name), _) => (name, &mut keys),
            (None, Some(name)) => (name, &mut prefixes),
            _ => return Err("an entry without a name"),
        };
        names.add(name.as_bytes().into(), prefix)?;
    }
    Ok(Page::of(keys, prefixes))
}

/// Reads `ListBucketResult`. Elements are identified by their path, and each must be closed; a
/// `KeyCount` must be right. Names are not percent-encoded: no request asks for that.
fn xml(body: &[u8], prefix: &[u8]) -> Result<Page, &'static str> {
    let (mut keys, mut prefixes) = (Names::default(), Names::default());
    let (mut more, mut token, mut key_count) = (false, Vec::new(), None);
    walk(body, b"ListBucketResult", |path, name, text| {
        match (path, name) {
            ([_, parent], b"Key") if local(parent) == b"Contents" => {
                keys.add(name_of(text)?, prefix)?;
            }
            ([_, parent], b"Prefix") if local(parent) == b"CommonPrefixes" => {
                prefixes.add(name_of(text)?, prefix)?;
            }
            ([_], b"IsTruncated") => more = text.trim_ascii() == b"true",
            ([_], b"NextContinuationToken") => {
                token = unescape(text).ok_or("a token with an unknown entity")?;
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
    if key_count.is_some_and(|count| count != keys.count + prefixes.count) {
        return Err("a KeyCount that differs from the number of keys");
    }
    Ok(Page { more, token, ..Page::of(keys, prefixes) })
}

/// The name in the text of an element, which is copied only where it has entities.
/// Errors: It has an unknown one.
pub fn name_of(text: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    if !text.contains(&b'&') {
        return Ok(text.into());
    }
    unescape(text).map(Cow::Owned).ok_or("a name with an unknown entity")
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

    fn body(form: Form, names: &[&str]) -> String {
        match form {
            Form::Plain => names.join("\n"),
            Form::Json => {
                let entries = names.iter().map(|name| serde_json::json!({"name": name}));
                entries.collect::<serde_json::Value>().to_string()
            }
            Form::Xml => {
                let contents = |name: &&str| {
                    let mut key = Vec::new();
                    crate::xml::put_escaped(&mut key, name.as_bytes());
                    format!("<Contents><Key>{}</Key></Contents>", String::from_utf8_lossy(&key))
                };
                let inside: String = names.iter().map(contents).collect();
                format!("<ListBucketResult>{inside}</ListBucketResult>")
            }
        }
    }

    #[test]
    fn names_ascend_strictly_by_their_bytes_and_have_the_prefix() {
        for (prefix, names, wanted) in [
            ("", &["o-1", "o-2", "o-3"][..], true),
            ("o-", &["o-1", "o-2", "o-3"], true),
            // Escaped, `&` would be before `-`; in UTF-16, the last two would change places.
            ("", &["-", "<", "a&amp;", "a&b", "\u{ffee}", "\u{1f600}"], true),
            ("", &["\u{1f600}", "\u{ffee}"], false),
            ("", &["B", "a"], true),
            ("", &["a", "B"], false),
            ("", &["o-3", "o-3", "o-3"], false),
            ("", &["o-1", "o-3", "o-2"], false),
            ("", &["", "o"], false),
            ("o-", &["o-1", "p-1"], false),
            ("o-", &["zzz-1"], false),
            ("<", &["<a", "<b"], true),
        ] {
            for form in [Form::Xml, Form::Json, Form::Plain] {
                let found = page(form, body(form, names).as_bytes(), prefix.as_bytes());
                assert_eq!(found.is_ok(), wanted, "{form:?} {prefix} {names:?}");
                if let Ok(page) = found {
                    let ends = (names[0].as_bytes(), names[names.len() - 1].as_bytes());
                    assert_eq!((&*page.first, &*page.last), ends);
                }
            }
        }
    }

    #[test]
    fn keys_and_common_prefixes_ascend_each_on_their_own() {
        let xml = "<ListBucketResult><Contents><Key>b</Key></Contents>\
            <Contents><Key>c</Key></Contents><CommonPrefixes><Prefix>a-</Prefix></CommonPrefixes>\
            <CommonPrefixes><Prefix>d-</Prefix></CommonPrefixes></ListBucketResult>";
        let json = r#"[{"subdir":"a-"},{"name":"b"},{"name":"c"},{"subdir":"d-"}]"#;
        for (form, body) in [(Form::Xml, xml), (Form::Json, json)] {
            let page = page(form, body.as_bytes(), b"").expect("a page");
            assert_eq!((page.keys, page.prefixes), (2, 2));
            assert_eq!((&*page.first, &*page.last), (&b"a-"[..], &b"d-"[..]));
        }
        let twice = xml.replace("d-", "a-");
        assert!(page(Form::Xml, twice.as_bytes(), b"").is_err());
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
