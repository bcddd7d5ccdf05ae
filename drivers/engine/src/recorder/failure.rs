//! Why a request failed.

use std::fmt;

/// Classes of errors.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Failure {
    /// A status that is not a success.
    Http(u16),
    /// No connection could be made.
    Connect,
    /// The connection ended before the answer did.
    Reset,
    /// No answer within the request timeout.
    Timeout,
    /// Fewer bytes than the object has.
    ShortBody,
    /// Content that differs from what was written, or is longer.
    WrongContent,
    /// HEAD returned no length, or not the object's.
    WrongLength,
    /// The `ETag` of a write is the MD5 of other content.
    WrongEtag,
    /// A listing that cannot be parsed, or has too few or too many keys.
    BadList,
    /// A success status with an error as its body.
    ErrorBody,
    /// The complete object in answer to a request for a part of it.
    IgnoredRange,
    /// Another part of the object than was requested, or none that is named.
    WrongRange,
    /// The complete object in answer to a request for one of its parts by number.
    IgnoredPart,
    /// The object in answer to a request for it unless it is the known one, which it is.
    IgnoredCondition,
    /// A success that says that not all of the objects were deleted.
    NotDeleted,
    /// A success whose body does not say what was done.
    BadResult,
    /// Not HTTP.
    Protocol,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(status) => write!(f, "http-{status}"),
            Self::Connect => f.write_str("connect"),
            Self::Reset => f.write_str("reset"),
            Self::Timeout => f.write_str("timeout"),
            Self::ShortBody => f.write_str("short-body"),
            Self::WrongContent => f.write_str("wrong-content"),
            Self::WrongLength => f.write_str("wrong-length"),
            Self::WrongEtag => f.write_str("wrong-etag"),
            Self::BadList => f.write_str("bad-list"),
            Self::ErrorBody => f.write_str("error-body"),
            Self::IgnoredRange => f.write_str("ignored-range"),
            Self::WrongRange => f.write_str("wrong-range"),
            Self::IgnoredPart => f.write_str("ignored-part"),
            Self::IgnoredCondition => f.write_str("ignored-condition"),
            Self::NotDeleted => f.write_str("not-deleted"),
            Self::BadResult => f.write_str("bad-result"),
            Self::Protocol => f.write_str("protocol"),
        }
    }
}
