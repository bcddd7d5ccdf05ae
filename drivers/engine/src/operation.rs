//! The operations of a workload, and what they have in common.

use serde::{Deserialize, Serialize};

/// An operation.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// GET of a prepared object.
    Read,
    /// PUT of a new object.
    Write,
    /// DELETE of an object written before, or of a prepared one.
    Delete,
    /// First page of a bucket's listing, at most 1000 names.
    List,
    /// HEAD of a prepared object.
    Head,
    /// GET of a part of a prepared object.
    ReadRange,
    /// GET of a prepared object if it is not the one that is known: it is, so the answer is 304.
    ReadIfNoneMatch,
    /// GET of a prepared object if it is the one that is known.
    ReadIfMatch,
    /// Copy of a prepared object to a new one, inside of the store.
    Copy,
    /// One request that deletes several prepared objects of a bucket.
    DeleteMany,
    /// A new object in parts: several requests.
    WriteMultipart,
    /// A complete listing, page by page: several requests.
    ListAll,
    /// PUT of a new object unless it exists: it does not, so it is taken.
    WriteIfNoneMatch,
    /// PUT of a prepared object unless it exists: it does, so the answer is 412.
    RewriteIfNoneMatch,
    /// Another metadata value of a prepared object.
    UpdateMetadata,
    /// Another tag of a prepared object; S3 only.
    Tag,
    /// GET of one part, by its number, of a prepared object that was uploaded in parts.
    ReadPart,
    /// PUT of a prepared object, which exists: in a versioned container another version of it.
    Overwrite,
    /// GET of one of the versions of a prepared object.
    ReadVersion,
    /// A complete listing of versions, page by page: several requests.
    ListVersions,
    /// A part of `WriteMultipart`; counted beside it, in no workload by itself.
    WritePart,
    /// A page of `ListAll`; counted beside it, in no workload by itself.
    ListPage,
    /// A page of `ListVersions`; counted beside it, in no workload by itself.
    VersionsPage,
}

/// The operations that a workload can have, in the order their weights are drawn.
pub const OPERATIONS: [Operation; 20] = [
    Operation::Read,
    Operation::Write,
    Operation::Delete,
    Operation::List,
    Operation::Head,
    Operation::ReadRange,
    Operation::ReadIfNoneMatch,
    Operation::ReadIfMatch,
    Operation::Copy,
    Operation::DeleteMany,
    Operation::WriteMultipart,
    Operation::ListAll,
    Operation::WriteIfNoneMatch,
    Operation::RewriteIfNoneMatch,
    Operation::UpdateMetadata,
    Operation::Tag,
    Operation::ReadPart,
    Operation::Overwrite,
    Operation::ReadVersion,
    Operation::ListVersions,
];

impl Operation {
    /// Whether its answer has a body, whose first byte is timed.
    pub fn has_body(self) -> bool {
        matches!(self, Self::List | Self::ListPage | Self::VersionsPage) || self.reads()
    }

    /// Whether its answer is the content of an object, or of a part of it.
    pub fn reads(self) -> bool {
        matches!(
            self,
            Self::Read | Self::ReadRange | Self::ReadIfMatch | Self::ReadPart | Self::ReadVersion
        )
    }

    /// Whether it makes a new object.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::WriteIfNoneMatch | Self::Copy | Self::WriteMultipart)
    }

    /// Whether it is a PUT of a complete object.
    pub fn puts(self) -> bool {
        matches!(self, Self::Write | Self::Overwrite) || self.creates_only()
    }

    /// Whether it is a PUT that must not replace an object.
    pub fn creates_only(self) -> bool {
        matches!(self, Self::WriteIfNoneMatch | Self::RewriteIfNoneMatch)
    }

    /// Whether it deletes objects.
    pub fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteMany)
    }

    /// Whether prepared objects must not be deleted beside it.
    pub fn picks(self) -> bool {
        matches!(self, Self::Head | Self::ReadIfNoneMatch | Self::Copy | Self::RewriteIfNoneMatch)
            || self.reads()
            || self.notes()
            || self == Self::Overwrite
    }

    /// Whether it leaves all as it was.
    pub fn only_looks(self) -> bool {
        self.reads()
            || matches!(
                self,
                Self::Head
                    | Self::List
                    | Self::ListAll
                    | Self::ListVersions
                    | Self::ReadIfNoneMatch
                    | Self::RewriteIfNoneMatch
            )
    }

    /// Whether it lists a container page by page.
    pub fn turns_pages(self) -> bool {
        matches!(self, Self::ListAll | Self::ListVersions)
    }

    /// Whether it changes what is known of an object, but not its content.
    pub fn notes(self) -> bool {
        matches!(self, Self::UpdateMetadata | Self::Tag)
    }

    /// Whether it names an object by the MD5 of its content.
    pub fn names_content(self) -> bool {
        matches!(self, Self::ReadIfNoneMatch | Self::ReadIfMatch)
    }

    /// Whether the MD5 of an object is needed before or after its request.
    pub fn needs_sum(self) -> bool {
        self.writes()
            || self.names_content()
            || matches!(self, Self::UpdateMetadata | Self::Overwrite)
    }

    /// Whether its request names a container, and no object.
    pub fn names_container(self) -> bool {
        self.turns_pages() || matches!(self, Self::List | Self::DeleteMany)
    }

    /// The operation that counts the requests of one that has several.
    pub fn part(self) -> Option<Self> {
        match self {
            Self::WriteMultipart => Some(Self::WritePart),
            Self::ListAll => Some(Self::ListPage),
            Self::ListVersions => Some(Self::VersionsPage),
            _ => None,
        }
    }

    /// Its name in suites and measurements.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Head => "head",
            Self::ReadRange => "read-range",
            Self::ReadIfNoneMatch => "read-if-none-match",
            Self::ReadIfMatch => "read-if-match",
            Self::Copy => "copy",
            Self::DeleteMany => "delete-many",
            Self::WriteMultipart => "write-multipart",
            Self::ListAll => "list-all",
            Self::WriteIfNoneMatch => "write-if-none-match",
            Self::RewriteIfNoneMatch => "rewrite-if-none-match",
            Self::UpdateMetadata => "update-metadata",
            Self::Tag => "tag",
            Self::ReadPart => "read-part",
            Self::Overwrite => "overwrite",
            Self::ReadVersion => "read-version",
            Self::ListVersions => "list-versions",
            Self::WritePart => "write-part",
            Self::ListPage => "list-page",
            Self::VersionsPage => "versions-page",
        }
    }
}
