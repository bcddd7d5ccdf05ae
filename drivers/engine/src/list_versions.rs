//! Parsers of listings of versions, as far as needed to count them, to check their order, and to
//! continue them. Delete markers are versions, too.

use crate::list::{Form, Page, name_of};
use crate::xml::{local, walk};
use std::borrow::Cow;
use std::collections::HashSet;

/// Reads a page of a listing of the versions of the names that begin with `prefix`: its `keys` are
/// versions.
/// Errors: Why it is not one.
pub fn versions_page(form: Form, body: &[u8], prefix: &[u8]) -> Result<Page, &'static str> {
    match form {
        Form::Xml => xml(body, prefix),
        Form::Json => json(body, prefix),
        Form::Plain => Err("no JSON"),
    }
}

/// The versions of a page. Names ascend, and those of one name have different IDs.
#[derive(Default)]
struct Listed<'a> {
    page: Page,
    last: Cow<'a, [u8]>,
    /// IDs of the name that was listed last.
    ids: HashSet<Cow<'a, [u8]>>,
}

impl<'a> Listed<'a> {
    fn add(
        &mut self,
        name: Cow<'a, [u8]>,
        id: Cow<'a, [u8]>,
        prefix: &[u8],
    ) -> Result<(), &'static str> {
        if name.is_empty() || id.is_empty() {
            return Err("a version without a name or an ID");
        }
        if *name < *self.last {
            return Err("a name that is not after the one before it");
        }
        if !name.starts_with(prefix) {
            return Err("a name without the prefix that was asked for");
        }
        let page = &mut self.page;
        if page.keys == 0 {
            (page.first, page.first_version) = (name.to_vec(), id.to_vec());
        }
        if *name != *self.last {
            page.names += 1;
            self.ids.clear();
            self.last = name;
        }
        page.keys += 1;
        page.last_version.clear();
        page.last_version.extend_from_slice(&id);
        if self.ids.insert(id) { Ok(()) } else { Err("a version that is listed twice") }
    }

    fn end(self) -> Page {
        Page { last: self.last.into_owned(), ..self.page }
    }
}

fn json(body: &[u8], prefix: &[u8]) -> Result<Page, &'static str> {
    #[derive(serde::Deserialize)]
    struct Entry {
        name: Option<String>,
        version_id: Option<String>,
    }
    let entries: Vec<Entry> = serde_json::from_slice(body).map_err(|_| "not a JSON list")?;
    let mut listed = Listed::default();
    for Entry { name, version_id } in entries {
        let [name, id] = [name, version_id].map(|text| text.unwrap_or_default().into_bytes());
        listed.add(name.into(), id.into(), prefix)?;
    }
    Ok(listed.end())
}

/// Reads `ListVersionsResult`.
fn xml(body: &[u8], prefix: &[u8]) -> Result<Page, &'static str> {
    let mut listed = Listed::default();
    let (mut name, mut id) = (Cow::default(), Cow::default());
    let mut more = false;
    let is_version = |name: &[u8]| matches!(local(name), b"Version" | b"DeleteMarker");
    walk(body, b"ListVersionsResult", |path, element, text| {
        match (path, element) {
            ([_, parent], b"Key") if is_version(parent) => name = name_of(text)?,
            ([_, parent], b"VersionId") if is_version(parent) => id = name_of(text)?,
            ([_], one) if is_version(one) => {
                listed.add(std::mem::take(&mut name), std::mem::take(&mut id), prefix)?;
            }
            ([_], b"CommonPrefixes") => return Err("a common prefix that no delimiter made"),
            ([_], b"IsTruncated") => more = text.trim_ascii() == b"true",
            _ => {}
        }
        Ok(())
    })?;
    Ok(Page { more, ..listed.end() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, name: &str, id: &str) -> String {
        format!("<{kind}><Key>{name}</Key><VersionId>{id}</VersionId></{kind}>")
    }

    fn result(inside: &str) -> String {
        format!("<?xml version=\"1.0\"?><ListVersionsResult>{inside}</ListVersionsResult>")
    }

    fn both(entries: &[(&str, &str)]) -> [(Form, String); 2] {
        let xml: String = entries.iter().map(|(name, id)| entry("Version", name, id)).collect();
        let json: Vec<_> = entries
            .iter()
            .map(|(name, id)| serde_json::json!({"name": name, "version_id": id, "bytes": 1}))
            .collect();
        let json = serde_json::Value::from(json).to_string();
        [(Form::Xml, result(&xml)), (Form::Json, json)]
    }

    #[test]
    fn versions_and_names_are_counted_in_both_formats() {
        for (form, body) in both(&[("a", "2"), ("a", "1"), ("b", "2"), ("b", "null")]) {
            let page = versions_page(form, body.as_bytes(), b"").expect("a page");
            assert_eq!((page.keys, page.names), (4, 2), "{form:?}");
            assert_eq!((&*page.first, &*page.first_version), (&b"a"[..], &b"2"[..]));
            assert_eq!((&*page.last, &*page.last_version), (&b"b"[..], &b"null"[..]));
        }
        for (form, body) in both(&[]) {
            assert_eq!(versions_page(form, body.as_bytes(), b"").expect("a page").keys, 0);
        }
    }

    #[test]
    fn names_must_ascend_and_versions_of_one_differ() {
        for entries in [
            &[("b", "1"), ("a", "1")][..],
            &[("a", "1"), ("a", "1")],
            &[("a", "1"), ("a", "2"), ("a", "1")],
            &[("", "1")],
            &[("a", "")],
            &[("a", "1"), ("xa", "1")],
        ] {
            for (form, body) in both(entries) {
                let prefix: &[u8] =
                    if entries.len() == 2 && entries[1].0 == "xa" { b"a" } else { b"" };
                assert!(versions_page(form, body.as_bytes(), prefix).is_err(), "{body}");
            }
        }
    }

    #[test]
    fn delete_markers_are_versions_and_a_page_says_whether_it_is_the_last() {
        let inside = entry("DeleteMarker", "a&lt;", "9")
            + &entry("Version", "a&lt;", "8")
            + "<IsTruncated>true</IsTruncated>";
        let page = versions_page(Form::Xml, result(&inside).as_bytes(), b"").expect("a page");
        assert_eq!((page.keys, page.names, page.more), (2, 1, true));
        assert_eq!((&*page.last, &*page.last_version), (&b"a<"[..], &b"8"[..]));
    }

    #[test]
    fn what_is_no_listing_of_versions_is_refused() {
        for (form, body) in [
            (Form::Plain, "a\n".into()),
            (Form::Json, "{}".into()),
            (Form::Json, r#"[{"name": "a"}]"#.into()),
            (Form::Json, r#"[{"subdir": "a"}]"#.into()),
            (Form::Xml, "<ListBucketResult></ListBucketResult>".into()),
            (Form::Xml, result("<Version><Key>a</Key></Version>")),
            (Form::Xml, result("<CommonPrefixes><Prefix>a</Prefix></CommonPrefixes>")),
            (Form::Xml, result(&entry("Version", "a&bad;", "1"))),
            (Form::Xml, "<ListVersionsResult>".into()),
        ] {
            let body: String = body;
            assert!(versions_page(form, body.as_bytes(), b"").is_err(), "{body}");
        }
    }
}
