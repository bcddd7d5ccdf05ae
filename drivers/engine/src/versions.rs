//! Versions of prepared objects: how many each has, and their IDs.

use crate::operation::Operation;
use crate::picker::{Object, Request};
use crate::workload::Workload;
use std::sync::OnceLock;

/// Most versions of a prepared object.
pub const MOST_VERSIONS: u64 = 100;
/// Versions of smaller objects need not differ.
pub const LEAST_BYTES: u64 = 16;
/// The same of content of which a share is zeros: more than a block of it.
pub const LEAST_COMPRESSIBLE_BYTES: u64 = 2048;

impl Workload {
    /// How many versions each prepared object has; 0: its containers keep no versions.
    pub fn versions(&self) -> u64 {
        self.versions.unwrap_or(0)
    }
}

/// Checks what a workload says of versions.
/// Errors: What is missing or wrong.
pub fn check(workload: &Workload) -> Result<(), String> {
    let Some(versions) = workload.versions else {
        let needs =
            |one: &&Operation| matches!(one, Operation::ReadVersion | Operation::ListVersions);
        return match workload.operations.keys().find(needs) {
            Some(one) => Err(format!("{} needs `versions`", one.word())),
            None => Ok(()),
        };
    };
    if !(1..=MOST_VERSIONS).contains(&versions) {
        return Err(format!("versions: {versions} is not 1 to {MOST_VERSIONS}"));
    }
    let least = match workload.objects.compressible {
        Some(_) => LEAST_COMPRESSIBLE_BYTES,
        None => LEAST_BYTES,
    };
    if workload.objects.size.bounds().0 < least {
        return Err(format!("versions: objects need {least} bytes to differ"));
    }
    let none = [Operation::WriteMultipart, Operation::ReadPart];
    if none.iter().any(|&one| workload.has(one)) || workload.listed.is_some() {
        return Err("versions: not of uploads in parts, nor of objects that are only listed".into());
    }
    let of_page = workload.listing.as_ref();
    if workload.has(Operation::ListVersions) && of_page.is_some_and(|one| !one.delimiter.is_empty())
    {
        return Err("list-versions lists without a delimiter".into());
    }
    Ok(())
}

/// IDs of the versions of prepared objects.
#[derive(Debug)]
pub struct VersionIds {
    containers: u64,
    each: u64,
    ids: OnceLock<Vec<String>>,
}

impl VersionIds {
    /// Those of a workload, not known yet.
    pub fn of(workload: &Workload) -> Self {
        let containers = workload.objects.containers;
        Self { containers, each: workload.versions(), ids: OnceLock::new() }
    }

    /// Gives them all: of object number 0 from the oldest version on, of number 1, ...
    /// Errors: They are known already, or one of them is no ID.
    pub fn set(&self, ids: Vec<String>) -> Result<(), String> {
        if ids.iter().any(String::is_empty) {
            return Err("a version without an ID".into());
        }
        self.ids.set(ids).map_err(|_| "the IDs of versions are known already".into())
    }

    /// Whether they are known.
    pub fn are_known(&self) -> bool {
        self.ids.get().is_some()
    }

    /// The ID of a version of the prepared object of a request; empty if it is not known.
    pub fn of_request(&self, request: &Request, version: u64) -> &[u8] {
        let Object::Prepared(index) = request.object else { return b"" };
        let number = index * self.containers + request.container;
        let at = number * self.each + version;
        self.ids
            .get()
            .and_then(|ids| ids.get(usize::try_from(at).ok()?))
            .map_or(b"", |id| id.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picker::Part;
    use crate::workload::tests::workload;
    use serde_json::json;

    #[test]
    fn an_id_is_found_by_container_index_and_version() {
        let objects = json!({"size": 100, "containers": 2, "per_container": 3});
        let some = workload(&json!({"objects": objects, "operations": {"read-version": 1.0},
            "versions": 2}));
        let ids = VersionIds::of(&some);
        let whole = Request::whole(Operation::ReadVersion, 1, Object::Prepared(2), 100);
        assert_eq!((ids.are_known(), ids.of_request(&whole, 0)), (false, &b""[..]));
        assert!(ids.set(vec![String::new()]).is_err());
        ids.set((0..12).map(|at| format!("v{at}")).collect()).expect("IDs");
        assert!(ids.set(vec!["again".into()]).is_err());
        // Object 5 of 6: index 2 in container 1.
        assert_eq!(ids.of_request(&whole, 0), b"v10");
        assert_eq!(ids.of_request(&Request { part: Part::Version(1), ..whole }, 1), b"v11");
        assert_eq!(ids.of_request(&Request { container: 0, ..whole }, 0), b"v8");
    }

    #[test]
    fn what_a_workload_cannot_have_of_versions_is_refused() {
        let check_of = |operation: &str, size: u64, more: serde_json::Value| {
            let objects = json!({"size": size, "containers": 1, "per_container": 1});
            let mut given = json!({"name": "w", "objects": objects, "pick": "uniform",
                "operations": {operation: 1.0}});
            for (key, value) in more.as_object().expect("keys") {
                given[key] = value.clone();
            }
            Workload::parse(&given.to_string()).map(|some| some.versions())
        };
        assert_eq!(check_of("read-version", 16, json!({"versions": 100})), Ok(100));
        assert_eq!(check_of("overwrite", 0, json!({})), Ok(0));
        for (operation, size, more, why) in [
            ("read-version", 16, json!({}), "needs `versions`"),
            ("list-versions", 16, json!({}), "needs `versions`"),
            ("read", 16, json!({"versions": 0}), "not 1 to 100"),
            ("read", 16, json!({"versions": 101}), "not 1 to 100"),
            ("read", 15, json!({"versions": 2}), "need 16 bytes"),
            ("write-multipart", 16, json!({"versions": 2, "multipart": {"part": 16}}), "in parts"),
            ("list", 16, json!({"versions": 2, "listed": {}}), "only listed"),
            (
                "list-versions",
                16,
                json!({"versions": 2, "listing": {"page": 2, "prefix": "", "delimiter": "-"}}),
                "delimiter",
            ),
        ] {
            let found = check_of(operation, size, more).expect_err(why);
            assert!(found.contains(why), "{found}");
        }
    }
}
