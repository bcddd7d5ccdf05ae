//! An answer, parsed as it arrives and checked against its request.

use crate::content::Content;
use crate::digests::Sum;
use crate::http::{Framing, Head, Malformed, parse_head};
use crate::list::Page;
use crate::picker::Request;
use crate::recorder::Failure;
use crate::workload::Operation;

mod checks;

/// Bytes kept of an answer: enough to recognise an error and to report it.
const EXCERPT_BYTES: usize = 300;
/// Bytes kept of a listing or of another result: more than a page of the longest escaped names of
/// S3 and Swift.
const RESULT_BYTES: usize = 16 << 20;

/// The request that an answer belongs to, and the content it is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The request.
    pub request: &'a Request,
    /// What objects hold.
    pub content: &'a Content,
    /// Whether every byte of a read is checked.
    pub verify: bool,
}

/// What an answer to a write or a list must contain besides a good status.
#[derive(Clone, Copy, Debug, Default)]
pub struct Required<'a> {
    /// MD5 of the body that was written, where it is known.
    pub md5: Option<Sum>,
    /// Whether listings and other results are S3's.
    pub xml: bool,
    /// The fewest keys that a listing has.
    pub least_listed: u64,
    /// The most keys that a listing has.
    pub most_listed: u64,
    /// ID of the version that is read.
    pub version: Option<&'a [u8]>,
    /// Whether what is written must become a version.
    pub versioned: bool,
    /// What the names of a listing begin with.
    pub prefix: &'a [u8],
    /// Whether a large object is deleted with its segments.
    pub segments: bool,
    /// Number of parts of an upload that ends.
    pub parts: usize,
}

/// What an answer gives to the requests after it.
#[derive(Debug, Default)]
pub enum Outcome {
    /// Nothing.
    #[default]
    Done,
    /// ID of an upload.
    Upload(Vec<u8>),
    /// `ETag` of a part.
    Etag(Box<[u8]>),
    /// A page of a listing.
    Page(Box<Page>),
}

type Bad = (Failure, String);

/// State of an answer after more of it arrived.
#[derive(Debug)]
pub enum Progress {
    /// More is to come.
    More,
    /// It is complete.
    Complete,
    /// It can never be complete: the class of error, and why.
    Failed(Failure, &'static str),
}

/// An answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// Start of an incomplete head.
    begun: Vec<u8>,
    head: Option<Head>,
    received: u64,
    wrong: bool,
    excerpt: Vec<u8>,
}

impl Answer {
    /// Resets it to an answer that has not begun.
    pub fn reset(&mut self) {
        self.begun.clear();
        self.head = None;
        self.received = 0;
        self.wrong = false;
        self.excerpt.clear();
    }

    /// Bytes of the body received so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the connection closes after it.
    pub fn closes(&self) -> bool {
        self.head.as_ref().is_none_or(|head| head.close)
    }

    /// How many of the bytes to come need not be looked at.
    pub fn discardable(&self, expected: &Expected<'_>) -> u64 {
        match &self.head {
            Some(Head { status: 200 | 206, framing: Framing::Length(length), .. })
                if expected.request.operation.reads()
                    && !expected.verify
                    && *length == expected.request.span().1 =>
            {
                length.saturating_sub(self.received)
            }
            _ => 0,
        }
    }

    /// Counts `count` received bytes that need not be looked at.
    pub fn skip(&mut self, count: u64) -> Progress {
        self.received += count;
        self.progress()
    }

    /// The peer closed the connection.
    pub fn end(&self) -> Progress {
        match &self.head {
            Some(Head { framing: Framing::UntilClose, .. }) => Progress::Complete,
            Some(_) => Progress::Failed(Failure::ShortBody, "closed in the middle of a body"),
            None => Progress::Failed(Failure::Reset, "closed before an answer"),
        }
    }

    /// Parses received bytes.
    pub fn take(&mut self, bytes: &[u8], expected: &Expected<'_>) -> Progress {
        match self.digest(bytes, expected) {
            Ok(()) => self.progress(),
            Err(Malformed(what)) => Progress::Failed(Failure::Protocol, what),
        }
    }

    fn digest(&mut self, bytes: &[u8], expected: &Expected<'_>) -> Result<(), Malformed> {
        if self.head.is_some() {
            return self.body(bytes, expected);
        }
        let before = self.begun.len();
        if before > 0 {
            self.begun.extend_from_slice(bytes);
        }
        let received = if before > 0 { &self.begun } else { bytes };
        let Some((head, length)) = parse_head(received, expected.request.operation)? else {
            if before == 0 {
                self.begun.extend_from_slice(bytes);
            }
            return Ok(());
        };
        self.head = Some(head);
        self.body(&bytes[length - before..], expected)
    }

    fn body(&mut self, bytes: &[u8], expected: &Expected<'_>) -> Result<(), Malformed> {
        let Some(head) = &mut self.head else { return Ok(()) };
        let good = (200..300).contains(&head.status);
        let (operation, size) = (expected.request.operation, expected.request.size);
        let check = good && expected.verify && operation.reads();
        let (offset, length) = expected.request.span();
        let most = match operation {
            _ if !good => EXCERPT_BYTES,
            _ if operation.reads() => {
                if matches!(head.framing, Framing::Length(found) if found == length) {
                    0
                } else {
                    EXCERPT_BYTES
                }
            }
            Operation::Head | Operation::ReadIfNoneMatch | Operation::Tag => EXCERPT_BYTES,
            _ if operation.puts() => EXCERPT_BYTES,
            _ => RESULT_BYTES,
        };
        let before = self.received;
        let (received, wrong, excerpt) = (&mut self.received, &mut self.wrong, &mut self.excerpt);
        let mut sink = |part: &[u8]| {
            if check && !*wrong {
                *wrong = !expected.content.holds(size, offset + *received, part);
            }
            if excerpt.len() < most {
                excerpt.extend_from_slice(&part[..part.len().min(most - excerpt.len())]);
            }
            *received += part.len() as u64;
        };
        let used = match &mut head.framing {
            Framing::Length(length) => {
                let part = bytes.len().min(length.saturating_sub(before) as usize);
                sink(&bytes[..part]);
                part
            }
            Framing::Chunked(chunked) => chunked.take(bytes, sink)?,
            Framing::UntilClose => {
                sink(bytes);
                bytes.len()
            }
        };
        // Bytes after an answer that were not requested: do not send the next request on it.
        head.close |= used < bytes.len();
        Ok(())
    }

    fn progress(&self) -> Progress {
        match &self.head {
            Some(Head { framing: Framing::Length(length), .. }) if self.received >= *length => {
                Progress::Complete
            }
            Some(Head { framing: Framing::Chunked(chunked), .. }) if chunked.is_done() => {
                Progress::Complete
            }
            _ => Progress::More,
        }
    }
}

#[cfg(test)]
mod tests;
