//! Operations of several requests, one after the other: uploads in parts, and complete listings.

use crate::answer::Outcome;
use crate::config::{Api, Config};
use crate::digests::Sum;
use crate::list::Page;
use crate::operation::Operation;
use crate::picker::{Part, Request};
use crate::recorder::Failure;

/// Pages in a row without a name before a listing is given up.
const MOST_EMPTY_PAGES: u32 = 10;

/// What the requests of one operation need of those before them.
#[derive(Debug, Default)]
pub struct Flow {
    /// Start of the operation, in nanoseconds; `None` before its first request.
    pub started_ns: Option<u64>,
    /// MD5 of the object of a conditional read.
    pub known: Option<Sum>,
    /// ID of the upload.
    pub upload: Vec<u8>,
    /// `ETag`s of its parts.
    pub etags: Vec<Box<[u8]>>,
    /// Where the next page of a listing begins: a token of S3's, or a name; empty: at the start.
    pub marker: Vec<u8>,
    /// ID of the version that is read.
    pub version: Vec<u8>,
    /// Of a listing of versions: the ID of the version after which the next page begins.
    pub version_marker: Vec<u8>,
    /// Bytes of all requests so far.
    pub bytes: u64,
    listed: u64,
    /// Different names among them, of a listing of versions.
    names: u64,
    last: Vec<u8>,
    last_version: Vec<u8>,
    empty_pages: u32,
}

impl Flow {
    /// Forgets an operation that ended.
    pub fn reset(&mut self) {
        if self.started_ns.take().is_some() {
            self.upload.clear();
            self.etags.clear();
            self.marker.clear();
            self.version_marker.clear();
            self.last.clear();
            self.last_version.clear();
            (self.bytes, self.listed, self.names, self.empty_pages) = (0, 0, 0, 0);
        }
    }

    /// The first request of an operation: Swift's uploads begin with their first part.
    pub fn first(request: Request, config: &Config) -> Request {
        match request.part {
            Part::Begin if config.api != Api::S3 => {
                Request { part: piece(&request, config, 1), ..request }
            }
            _ => request,
        }
    }

    /// The request after this one, which succeeded; `None`: the operation is complete.
    /// Errors: The operation cannot go on: the class of error, and why.
    pub fn next(
        &mut self,
        request: &Request,
        outcome: Outcome,
        config: &Config,
    ) -> Result<Option<Request>, (Failure, String)> {
        let part = match (request.part, outcome) {
            (Part::Begin, Outcome::Upload(id)) => {
                self.upload = id;
                piece(request, config, 1)
            }
            (Part::Piece { number, offset, length }, Outcome::Etag(etag)) => {
                self.etags.push(etag);
                if offset + length < request.size {
                    piece(request, config, number + 1)
                } else {
                    Part::Finish
                }
            }
            (Part::Page(number), Outcome::Page(page)) => {
                let turned = match request.operation {
                    Operation::ListVersions => self.turn_versions(*page, config),
                    _ => self.turn_page(*page, config),
                };
                if !turned.map_err(|why| (Failure::BadList, why))? {
                    return Ok(None);
                }
                Part::Page(number + 1)
            }
            _ => return Ok(None),
        };
        Ok(Some(Request { part, ..*request }))
    }

    /// Notes a page; returns whether there may be another.
    fn turn_page(&mut self, page: Page, config: &Config) -> Result<bool, String> {
        let names = page.keys + page.prefixes;
        self.listed += page.keys;
        // The names of a page ascend: only its first can be one of those before.
        if names > 0 && !self.last.is_empty() && page.first <= self.last {
            return Err("a page with names that were listed before".into());
        }
        let more = if config.api == Api::S3 {
            if page.more && (page.token.is_empty() || page.token == self.marker) {
                return Err("a truncated page without a new token".into());
            }
            page.more
        } else {
            // Ceph's pages may be shorter than asked for: only an empty one is the last.
            names > 0
        };
        self.empty_pages = if names > 0 { 0 } else { self.empty_pages + 1 };
        if self.empty_pages > MOST_EMPTY_PAGES {
            return Err(format!("{MOST_EMPTY_PAGES} pages without a name, and still more"));
        }
        let least = config.least_in_all;
        if !more && self.listed < least {
            return Err(format!("{} keys where at least {least} exist", self.listed));
        }
        if let Some(most) = config.most_in_all.filter(|most| self.listed > *most) {
            return Err(format!("{} keys or more where only {most} exist", self.listed));
        }
        if names > 0 {
            self.last.clone_from(&page.last);
        }
        self.marker = if config.api == Api::S3 { page.token } else { page.last };
        Ok(more)
    }

    /// Notes a page of versions, whose `keys` are versions; returns whether there may be another.
    fn turn_versions(&mut self, page: Page, config: &Config) -> Result<bool, String> {
        self.listed += page.keys;
        self.names += page.names;
        if page.keys > 0 && !self.last.is_empty() {
            if page.first < self.last {
                return Err("a page with names that were listed before".into());
            }
            if page.first == self.last {
                self.names -= 1;
                if page.first_version == self.last_version {
                    return Err("a page that begins with the version before it".into());
                }
            }
        }
        // Of S3 a page says so; Ceph's pages over Swift may be shorter than asked for.
        let more = if config.api == Api::S3 { page.more } else { page.keys > 0 };
        if more && page.keys == 0 {
            return Err("a truncated page without a version".into());
        }
        let workload = &config.workload;
        let (names, each) = (config.prepared_in_all, workload.versions());
        let (listed, least) = (self.listed, names * each);
        if !more && (self.names < names || listed < least) {
            let found = self.names;
            return Err(format!(
                "{listed} versions of {found} objects where at least {least} of {names} exist"
            ));
        }
        // Deleting an object adds a version, too: a marker.
        if listed > least && workload.operations.keys().all(|one| one.only_looks()) {
            return Err(format!("{listed} versions or more where only {least} exist"));
        }
        // After the last one, whatever an answer says: s3api before 2.38 says `null` for its ID, and
        // would list all of that name again.
        (self.marker, self.version_marker) = (page.last.clone(), page.last_version.clone());
        (self.last, self.last_version) = (page.last, page.last_version);
        Ok(more)
    }
}

/// Part number `number` of an object.
pub fn piece(request: &Request, config: &Config, number: u64) -> Part {
    let part = config.workload.multipart.map_or(request.size, |multipart| multipart.part);
    let offset = (number - 1) * part;
    Part::Piece { number, offset, length: part.min(request.size - offset) }
}
