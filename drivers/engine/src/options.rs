//! Options of the operations that have any.

use crate::encryption::Encryption;
use crate::operation::Operation;
use crate::signing::{Auth, Signing};
use crate::versions;
use crate::workload::{Workload, put_object_name};
use serde::Deserialize;

/// Most keys of a request that deletes several objects, and of a page of a listing over S3.
pub const MOST_KEYS: u64 = 1000;
/// Most parts of an object: as many as a manifest of Swift's may name by default.
pub const MOST_PARTS: u64 = 1000;
/// Most parts that a worker sends at the same time.
pub const MOST_AT_ONCE: u64 = 64;

/// Which part of an object `read-range` reads.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Length of a part.
    pub bytes: u64,
    /// Which part.
    pub at: At,
}

/// The choice of a part.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum At {
    /// The first.
    Start,
    /// Any of them, at random.
    Random,
    /// One after the other, and then those of the next object.
    Sequential,
}

/// The parts of `write-multipart`, and of what `read-part` reads.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Multipart {
    /// Length of a part.
    pub part: u64,
    /// How many are sent at the same time, each over a connection of its own.
    #[serde(default = "one")]
    pub at_once: u64,
}

fn one() -> u64 {
    1
}

impl Multipart {
    /// Where part number `number`, from 1, of an object of `size` begins, and its length.
    pub fn span(self, size: u64, number: u64) -> (u64, u64) {
        let offset = (number - 1) * self.part;
        (offset, self.part.min(size - offset))
    }
}

/// What `list-all` lists.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// What names begin with.
    pub prefix: String,
    /// Names are listed up to this text after the prefix, each once; empty: completely.
    pub delimiter: String,
    /// Most names of a page.
    pub page: u64,
}

impl Default for Listing {
    fn default() -> Self {
        Self { prefix: String::new(), delimiter: String::new(), page: MOST_KEYS }
    }
}

/// Number of parts of `bytes` of an object of `size`.
pub fn parts(size: u64, bytes: u64) -> u64 {
    size.div_ceil(bytes).max(1)
}

impl Workload {
    /// The fewest names in a complete listing.
    pub fn least_in_all(&self) -> u64 {
        let delimited = self.listing.as_ref().is_some_and(|listing| !listing.delimiter.is_empty());
        if self.deletes_prepared() || delimited { 0 } else { self.prepared_in_all() }
    }

    /// How many prepared objects of a container have the prefix of listings.
    pub fn prepared_in_all(&self) -> u64 {
        let usual = Listing::default();
        let listing = self.listing.as_ref().unwrap_or(&usual);
        if listing.prefix.is_empty() {
            return self.objects.per_container;
        }
        let mut name = Vec::new();
        let begins = |index: &u64| {
            name.clear();
            put_object_name(&mut name, *index);
            name.starts_with(listing.prefix.as_bytes())
        };
        (0..self.objects.per_container).filter(begins).count() as u64
    }

    /// The most names in a complete listing; `None`: not known.
    pub fn most_in_all(&self) -> Option<u64> {
        let known = self.listing.as_ref().is_none_or(|listing| listing.delimiter.is_empty());
        (known && self.listed.is_some()).then(|| self.least_in_all())
    }

    /// Whether it has the operation.
    pub fn has(&self, operation: Operation) -> bool {
        self.operations.contains_key(&operation)
    }

    /// Checks that every operation has its options.
    /// Errors: What is missing or wrong.
    pub(crate) fn check_options(&self) -> Result<(), String> {
        let has = |operation| self.has(operation);
        versions::check(self)?;
        for part in [Operation::WritePart, Operation::ListPage, Operation::VersionsPage] {
            if has(part) {
                return Err(format!("{} is a part of another operation", part.word()));
            }
        }
        let is_fixed = |one: &Operation| {
            matches!(one, Operation::Copy | Operation::DeleteMany | Operation::WriteMultipart)
                || one.notes()
                || *one == Operation::ReadPart
        };
        let fixed = self.operations.keys().find(|&one| is_fixed(one));
        if let Some(one) = fixed.filter(|_| self.signing != Signing::default()) {
            return Err(format!("signing: {} is signed in one way only", one.word()));
        }
        if self.encryption != Encryption::None {
            // A copy needs two keys, and an encrypted object's ETag need not be its MD5.
            let is_plain = |one: &Operation| {
                matches!(one, Operation::Copy | Operation::UpdateMetadata | Operation::ReadPart)
                    || one.names_content()
                    || one.creates_only()
            };
            if let Some(one) = self.operations.keys().find(|&one| is_plain(one)) {
                return Err(format!("encryption: {} is sent without it only", one.word()));
            }
            if self.signing.auth != Auth::Header {
                return Err("encryption: needs `auth: header`, which signs what asks for it".into());
            }
        }
        let (smallest, _) = self.objects.size.bounds();
        if has(Operation::ReadRange) {
            let Some(range) = self.range else { return Err("read-range needs a `range`".into()) };
            if range.bytes == 0 || smallest == 0 {
                return Err("ranges and the objects they are read from need at least 1 byte".into());
            }
        }
        self.check_parts()?;
        if self.operations.keys().any(|one| one.turns_pages()) {
            let page = self.listing.as_ref().map_or(MOST_KEYS, |listing| listing.page);
            if !(1..=MOST_KEYS).contains(&page) {
                return Err(format!("listings need a `listing` with a page of 1 to {MOST_KEYS}"));
            }
        }
        if has(Operation::DeleteMany) {
            if !(1..=MOST_KEYS).contains(&self.delete_many.unwrap_or(0)) {
                return Err(format!("delete-many needs a `delete_many` of 1 to {MOST_KEYS}"));
            }
            if has(Operation::Delete) || self.operations.keys().any(|one| one.picks()) {
                return Err("delete-many leaves no objects for other operations".into());
            }
        }
        if self.operations.keys().any(|one| one.names_content()) && !self.objects.size.is_fixed() {
            return Err("conditional reads need objects of fixed sizes".into());
        }
        Ok(())
    }

    /// Checks the parts of what is written and read in parts.
    fn check_parts(&self) -> Result<(), String> {
        let (reads, writes) = (self.has(Operation::ReadPart), self.has(Operation::WriteMultipart));
        if !reads && !writes {
            return Ok(());
        }
        let (smallest, largest) = self.objects.size.bounds();
        let Some(Multipart { part, at_once }) = self.multipart else {
            return Err("write-multipart and read-part need a `multipart`".into());
        };
        if part == 0 || smallest == 0 || parts(largest, part) > MOST_PARTS {
            return Err(format!("an object has 1 to {MOST_PARTS} parts of at least 1 byte"));
        }
        if !(1..=MOST_AT_ONCE).contains(&at_once) {
            return Err(format!("at_once: {at_once} is not 1 to {MOST_AT_ONCE}"));
        }
        let others = |one: &Operation| one.writes() && *one != Operation::WriteMultipart;
        if writes && self.operations.keys().any(others) {
            return Err(
                "write-multipart beside other writes: how an object is deleted depends on \
                 how it was written"
                    .into(),
            );
        }
        if reads && smallest <= part {
            return Err("read-part needs objects of at least two parts".into());
        }
        let whole = |one: &Operation| {
            matches!(one, Operation::Copy | Operation::UpdateMetadata) || one.names_content()
        };
        match self.operations.keys().find(|&one| whole(one)) {
            Some(one) if reads => {
                Err(format!("read-part beside {}, which needs whole objects", one.word()))
            }
            _ => Ok(()),
        }
    }
}
