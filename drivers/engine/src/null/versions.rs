//! The objects of a container of the null target, with their versions where it keeps them.

use super::api::{Answer, Api, RequestHead, has, is_swift, number, parameter};
use super::s3::{escape, xml};
use super::store::{Container, Object, read, write};
use crate::xml::find;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Deref;

/// A version: its number, which is its ID, and its object; `None`: a delete marker.
type Version = (u64, Option<Object>);

/// The objects that a container has now, and what it keeps of earlier ones.
#[derive(Debug, Default)]
pub struct Objects {
    current: BTreeMap<Box<str>, Object>,
    /// All versions of each name, oldest first, also the current ones; `None`: none are kept.
    versions: Option<BTreeMap<Box<str>, Vec<Version>>>,
    made: u64,
}

impl Deref for Objects {
    type Target = BTreeMap<Box<str>, Object>;

    fn deref(&self) -> &Self::Target {
        &self.current
    }
}

impl Objects {
    /// Whether versions are kept.
    pub fn keeps(&self) -> bool {
        self.versions.is_some()
    }

    /// Keeps versions from now on.
    fn keep(&mut self) {
        let Self { current, versions, .. } = self;
        versions.get_or_insert_with(|| {
            let first = |object: &Object| vec![(0, Some(object.clone()))];
            current.iter().map(|(name, object)| (name.clone(), first(object))).collect()
        });
    }

    fn add(&mut self, name: &str, object: Option<Object>) -> Option<u64> {
        let versions = self.versions.as_mut()?;
        self.made += 1;
        versions.entry(name.into()).or_default().push((self.made, object));
        Some(self.made)
    }

    /// Puts an object; returns the number of the version, if versions are kept.
    pub fn insert(&mut self, name: Box<str>, object: Object) -> Option<u64> {
        let made = self.add(&name, Some(object.clone()));
        self.current.insert(name, object);
        made
    }

    /// Deletes an object; leaves a marker where versions are kept.
    pub fn remove(&mut self, name: &str) -> Option<Object> {
        self.add(name, None);
        self.current.remove(name)
    }

    /// Whether nothing is left, no version either.
    pub fn is_empty(&self) -> bool {
        self.current.is_empty() && self.versions.as_ref().is_none_or(BTreeMap::is_empty)
    }

    fn version(&self, name: &str, id: &str) -> Option<&Version> {
        let found = self.versions.as_ref()?.get(name)?;
        found.iter().find(|(number, _)| id_of(*number) == id)
    }

    /// Deletes a version; returns whether there was one.
    fn forget(&mut self, name: &str, id: &str) -> bool {
        let Some(versions) = &mut self.versions else { return false };
        let Some(of_name) = versions.get_mut(name) else { return false };
        let before = of_name.len();
        of_name.retain(|(number, _)| id_of(*number) != id);
        let found = of_name.len() < before;
        match of_name.last() {
            Some((_, Some(object))) => {
                self.current.insert(name.into(), object.clone());
            }
            Some((_, None)) => {
                self.current.remove(name);
            }
            None => {
                self.current.remove(name);
                versions.remove(name);
            }
        }
        found
    }

    /// Up to `most` versions after one, newest first, of names that begin with `prefix`, and
    /// whether there are more; without an ID after all of the name.
    fn page(
        &self,
        (name, id): (&str, &str),
        prefix: &str,
        most: usize,
    ) -> (Vec<(&str, &Version, bool)>, bool) {
        let mut found = self
            .versions
            .iter()
            .flatten()
            .filter(|(one, _)| one.starts_with(prefix) && ***one >= *name)
            .flat_map(|(one, versions)| {
                let at = versions.iter().rposition(|(number, _)| id_of(*number) == id);
                let left = if **one == *name && !name.is_empty() {
                    at.unwrap_or(0)
                } else {
                    versions.len()
                };
                let last = versions.len() - 1;
                let each = versions[..left].iter().enumerate().rev();
                each.map(move |(at, version)| (&**one, version, at == last))
            });
        let taken = found.by_ref().take(most).collect();
        (taken, found.next().is_some())
    }
}

fn id_of(number: u64) -> String {
    if number == 0 { "null".into() } else { format!("{number:010}.00000") }
}

/// The line of a head that names a version, if there is one.
pub(super) fn version_header(name: &str, number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| format!("{name}: {}\r\n", id_of(number)))
}

impl Api {
    /// Answers a request about versions in an existing container; `None`: it is none.
    pub(super) fn of_versions(
        &self,
        head: &RequestHead,
        container: &Container,
        object: Option<&str>,
        first: &[u8],
    ) -> Option<Answer> {
        let is_s3 = !is_swift(&head.path);
        let (method, asks) = (head.method.as_str(), |key| has(head, key));
        let Some(object) = object else {
            let enables = if is_s3 {
                method == "PUT" && asks("versioning")
            } else {
                method == "POST" && !head.keep_versions.is_empty()
            };
            if enables {
                let is_on = find(first, b"<Status>Enabled</Status>").is_some()
                    || head.keep_versions.eq_ignore_ascii_case("true");
                if !is_on {
                    return Some(Answer::error(head, 501, "NotImplemented"));
                }
                write(container).keep();
                return Some(Answer::of(if is_s3 { 200 } else { 204 }));
            }
            let objects = read(container);
            return match method {
                "GET" if is_s3 && asks("versioning") && objects.keeps() => {
                    let root = "VersioningConfiguration";
                    let text = format!("{}<Status>Enabled</Status></{root}>", xml(root));
                    Some(Answer::with(200, "application/xml", text))
                }
                "GET" if asks("versions") && is_s3 => Some(self.s3_versions(head, &objects)),
                "GET" if asks("versions") => Some(self.swift_versions(head, &objects)),
                _ => None,
            };
        };
        let (key, header) = if is_s3 {
            ("versionId", "x-amz-version-id")
        } else {
            ("version-id", "X-Object-Version-Id")
        };
        if !asks(key) {
            return None;
        }
        let id = parameter(head, key);
        let missing =
            || Answer::error(head, 404, if is_s3 { "NoSuchVersion" } else { "Not Found" });
        match method {
            "GET" | "HEAD" => {
                let Some((number, found)) = read(container).version(object, &id).cloned() else {
                    return Some(missing());
                };
                let mut answer = self.object(head, found);
                answer.headers += &version_header(header, Some(number));
                Some(answer)
            }
            "DELETE" => {
                let found = write(container).forget(object, &id);
                Some(if found || is_s3 { Answer::of(204) } else { missing() })
            }
            _ => Some(Answer::error(head, 400, "Bad Request")),
        }
    }

    fn s3_versions(&self, head: &RequestHead, objects: &Objects) -> Answer {
        let after = (parameter(head, "key-marker"), parameter(head, "version-id-marker"));
        let most = number(head, "max-keys", 1000).min(1000);
        let prefix = parameter(head, "prefix");
        let (found, more) = objects.page((&after.0, &after.1), &prefix, most);
        let mut text = xml("ListVersionsResult");
        let _ = write!(text, "<IsTruncated>{more}</IsTruncated>");
        if let (true, Some((name, (number, _), _))) = (more, found.last()) {
            let (name, id) = (escape(name), id_of(*number));
            let _ = write!(
                text,
                "<NextKeyMarker>{name}</NextKeyMarker>\
                 <NextVersionIdMarker>{id}</NextVersionIdMarker>"
            );
        }
        for (name, (number, object), is_latest) in found {
            let kind = if object.is_some() { "Version" } else { "DeleteMarker" };
            let _ = write!(
                text,
                "<{kind}><Key>{}</Key><VersionId>{}</VersionId><IsLatest>{is_latest}</IsLatest>\
                 <LastModified>{}</LastModified>",
                escape(name),
                id_of(*number),
                self.iso_time
            );
            if let Some(Object { size, etag, .. }) = object {
                let _ = write!(text, "<ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size>");
            }
            let _ = write!(text, "</{kind}>");
        }
        text.push_str("</ListVersionsResult>");
        Answer::with(200, "application/xml", text)
    }

    fn swift_versions(&self, head: &RequestHead, objects: &Objects) -> Answer {
        let after = (parameter(head, "marker"), parameter(head, "version_marker"));
        let most = number(head, "limit", 10_000);
        let prefix = parameter(head, "prefix");
        let (found, _) = objects.page((&after.0, &after.1), &prefix, most);
        let modified = self.iso_time.trim_end_matches('Z');
        let entries: Vec<_> = found
            .into_iter()
            .map(|(name, (number, object), is_latest)| {
                let kind = match object {
                    Some(_) => "application/octet-stream",
                    None => "application/x-deleted;swift_versions_deleted=1",
                };
                serde_json::json!({
                    "name": name,
                    "version_id": id_of(*number),
                    "is_latest": is_latest,
                    "bytes": object.as_ref().map_or(0, |one| one.size),
                    "hash": object.as_ref().map_or("", |one| &one.etag),
                    "content_type": kind,
                    "last_modified": modified,
                })
            })
            .collect();
        let text = serde_json::Value::from(entries).to_string();
        Answer::with(200, "application/json; charset=utf-8", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::store::Store;

    fn listed(objects: &Objects, after: (&str, &str), most: usize) -> (Vec<(String, u64)>, bool) {
        let (found, more) = objects.page(after, "", most);
        (found.into_iter().map(|(name, (number, _), _)| (name.into(), *number)).collect(), more)
    }

    #[test]
    fn versions_are_kept_until_each_is_deleted() {
        let store = Store::new(3);
        let mut objects = Objects::default();
        assert_eq!(objects.insert("a".into(), store.object(1, b"x")), None);
        objects.keep();
        assert_eq!(objects.insert("a".into(), store.object(2, b"xy")), Some(1));
        assert_eq!(objects.insert("b".into(), store.object(3, b"xyz")), Some(2));
        assert!(objects.remove("a").is_some() && objects.get("a").is_none());
        let all = [("a", 3), ("a", 1), ("a", 0), ("b", 2)].map(|(name, id)| (name.into(), id));
        assert_eq!(listed(&objects, ("", ""), 9), (all.to_vec(), false));
        assert_eq!(listed(&objects, ("", ""), 2), (all[..2].to_vec(), true));
        assert_eq!(listed(&objects, ("a", &id_of(1)), 2), (all[2..].to_vec(), false));
        assert_eq!(listed(&objects, ("a", ""), 9), (all[3..].to_vec(), false));
        // Without the marker the version before it is the object again.
        assert!(objects.forget("a", &id_of(3)) && !objects.forget("a", &id_of(3)));
        assert_eq!(objects.get("a").map(|one| one.size), Some(2));
        assert!(objects.version("a", "null").is_some_and(|(_, one)| one.is_some()));
        for (name, id) in [("a", id_of(1)), ("a", id_of(0)), ("b", id_of(2))] {
            assert!(!objects.is_empty() && objects.forget(name, &id));
        }
        assert!(objects.is_empty() && objects.get("a").is_none());
    }
}
