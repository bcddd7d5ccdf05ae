//! Containers and objects of the null target.

use crate::content::{Content, SINGLE_PIECE_BYTES};
use crate::shared::lock;
use md5::{Digest as _, Md5};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its size, in bytes.
    pub size: u64,
    /// First bytes of a body that differs from the seed's content.
    pub verbatim: Option<Arc<[u8]>>,
    /// MD5 of the body, or a fixed text that is not an MD5 where hashing would cost too much.
    pub etag: Arc<str>,
}

/// The objects of a container, by name.
pub type Container = RwLock<BTreeMap<Box<str>, Object>>;

/// All containers.
#[derive(Debug)]
pub struct Store {
    /// The seed's content.
    content: Content,
    containers: RwLock<BTreeMap<Box<str>, Arc<Container>>>,
    /// `ETag`s of the seed's content, by size.
    etags: Mutex<HashMap<u64, Arc<str>>>,
    opaque: Arc<str>,
}

/// Locks for reading, ignoring poison.
pub fn read<T>(locked: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    locked.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing, ignoring poison.
pub fn write<T>(locked: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    locked.write().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Makes an empty store with the content of `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            content: Content::new(seed),
            containers: RwLock::new(BTreeMap::new()),
            etags: Mutex::new(HashMap::new()),
            opaque: "not-computed-for-large-bodies".into(),
        }
    }

    /// A container, if it exists.
    pub fn container(&self, name: &str) -> Option<Arc<Container>> {
        read(&self.containers).get(name).cloned()
    }

    /// Creates a container; returns whether it is new.
    pub fn make(&self, name: &str) -> bool {
        let mut containers = write(&self.containers);
        let new = !containers.contains_key(name);
        if new {
            containers.insert(name.into(), Arc::default());
        }
        new
    }

    /// Removes an empty container; `None`: it does not exist, `Some(false)`: it is not empty.
    pub fn remove(&self, name: &str) -> Option<bool> {
        let mut containers = write(&self.containers);
        let empty = read(containers.get(name)?).is_empty();
        if empty {
            containers.remove(name);
        }
        Some(empty)
    }

    /// Sorted names of the containers, each with its number of objects.
    pub fn containers(&self) -> Vec<(Box<str>, usize)> {
        read(&self.containers)
            .iter()
            .map(|(name, container)| (name.clone(), read(container).len()))
            .collect()
    }

    /// Makes an object of `size` whose body began with `first` (up to 64 KiB).
    pub fn object(&self, size: u64, first: &[u8]) -> Object {
        let is_known = self.content.holds(size, 0, first);
        let etag = if size > SINGLE_PIECE_BYTES as u64 {
            Arc::clone(&self.opaque)
        } else if is_known {
            Arc::clone(lock(&self.etags).entry(size).or_insert_with(|| md5_of(first)))
        } else {
            md5_of(first)
        };
        let verbatim = (!is_known).then(|| first.into());
        Object { size, verbatim, etag }
    }

    /// Bytes of an object from `offset` on, as many as are contiguous.
    pub fn piece<'a>(&'a self, object: &'a Object, offset: u64, most: usize) -> &'a [u8] {
        match &object.verbatim {
            Some(first) if offset < first.len() as u64 => {
                &first[offset as usize..first.len().min((offset as usize).saturating_add(most))]
            }
            _ => self.content.piece(object.size, offset, most),
        }
    }
}

/// Up to `most` objects after `marker` whose names begin with `prefix`, and whether there are more.
pub fn page<'a>(
    objects: &'a BTreeMap<Box<str>, Object>,
    marker: &str,
    prefix: &str,
    most: usize,
) -> (Vec<(&'a str, &'a Object)>, bool) {
    let from = if marker < prefix { Bound::Included(prefix) } else { Bound::Excluded(marker) };
    let mut found = objects
        .range::<str, _>((from, Bound::Unbounded))
        .take_while(|(name, _)| name.starts_with(prefix))
        .map(|(name, object)| (&**name, object));
    let taken = found.by_ref().take(most).collect();
    (taken, found.next().is_some())
}

fn md5_of(bytes: &[u8]) -> Arc<str> {
    let mut text = String::with_capacity(32);
    for byte in Md5::digest(bytes) {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(store: &Store, object: &Object) -> Vec<u8> {
        let mut body = Vec::new();
        while (body.len() as u64) < object.size {
            body.extend_from_slice(store.piece(object, body.len() as u64, usize::MAX));
        }
        body
    }

    #[test]
    fn bodies_of_the_seed_are_not_stored_and_read_back_equal() {
        let store = Store::new(3);
        for size in [0u64, 1, 4096, 65_536, 65_537, 1_000_000] {
            let content = store.content.copy(size, 0, size as usize);
            let object = store.object(size, &content[..content.len().min(SINGLE_PIECE_BYTES)]);
            assert!(object.verbatim.is_none(), "{size}");
            assert_eq!(body(&store, &object), content);
        }
    }

    #[test]
    fn other_small_bodies_are_stored_and_have_their_md5() {
        let store = Store::new(3);
        let object = store.object(5, b"hello");
        assert_eq!(body(&store, &object), b"hello");
        assert_eq!(&*object.etag, "5d41402abc4b2a76b9719d911017c592");
    }

    #[test]
    fn pages_continue_after_their_marker() {
        let store = Store::new(3);
        let objects: BTreeMap<Box<str>, Object> = ["a1", "b1", "b2", "b3", "c1"]
            .iter()
            .map(|name| ((*name).into(), store.object(0, b"")))
            .collect();
        let names = |marker, prefix, most| {
            let (found, more) = page(&objects, marker, prefix, most);
            (found.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), more)
        };
        assert_eq!(names("", "", 2), (vec!["a1", "b1"], true));
        assert_eq!(names("b1", "", 3), (vec!["b2", "b3", "c1"], false));
        assert_eq!(names("", "b", 2), (vec!["b1", "b2"], true));
        assert_eq!(names("b2", "b", 2), (vec!["b3"], false));
        assert_eq!(names("", "", 0), (vec![], true));
    }

    #[test]
    fn a_container_with_objects_is_not_removed() {
        let store = Store::new(3);
        assert!(store.make("c") && !store.make("c"));
        let container = store.container("c").expect("made");
        write(&container).insert("o".into(), store.object(0, b""));
        assert_eq!(store.remove("c"), Some(false));
        write(&container).remove("o");
        assert_eq!((store.remove("c"), store.remove("c")), (Some(true), None));
    }
}
