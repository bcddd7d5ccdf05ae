//! An answer, parsed as it arrives and checked against its request.

use crate::content::Content;
use crate::digests::Sum;
use crate::http::{Framing, Head, Malformed, parse_head};
use crate::list::{Form, is_error, keys};
use crate::picker::Request;
use crate::recorder::Failure;
use crate::workload::{LIST_MOST, Operation};

/// Bytes kept of an answer: enough to recognise an error and to report it.
const EXCERPT_BYTES: usize = 300;
/// Bytes kept of a listing: more than a page of the longest escaped names of S3 and Swift.
const LISTING_BYTES: usize = 16 << 20;

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
pub struct Required {
    /// MD5 of the body that was written, where it is known.
    pub md5: Option<Sum>,
    /// Whether a listing is S3's.
    pub xml: bool,
    /// The fewest keys that a listing has.
    pub least_listed: u64,
}

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
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the connection closes after it.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.head.as_ref().is_none_or(|head| head.close)
    }

    /// How many of the bytes to come need not be looked at.
    #[must_use]
    pub fn discardable(&self, expected: &Expected<'_>) -> u64 {
        match &self.head {
            Some(Head { status: 200..=299, framing: Framing::Length(length), .. })
                if expected.request.operation == Operation::Read
                    && !expected.verify
                    && *length == expected.request.size =>
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
    #[must_use]
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
        let check = good && expected.verify && expected.request.operation == Operation::Read;
        let (operation, size) = (expected.request.operation, expected.request.size);
        let most = match operation {
            Operation::List if good => LISTING_BYTES,
            Operation::Read
                if good && matches!(head.framing, Framing::Length(length) if length == size) =>
            {
                0
            }
            _ => EXCERPT_BYTES,
        };
        let before = self.received;
        let (received, wrong, excerpt) = (&mut self.received, &mut self.wrong, &mut self.excerpt);
        let mut sink = |part: &[u8]| {
            if check && !*wrong {
                *wrong = !expected.content.holds(expected.request.size, *received, part);
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

    /// Checks the complete answer; `gone_is_fine`: a 404 is accepted too.
    ///
    /// # Errors
    /// The class of error, and why.
    pub fn check(
        &self,
        request: &Request,
        required: &Required,
        gone_is_fine: bool,
    ) -> Result<(), (Failure, String)> {
        let Some(head) = &self.head else { return Err((Failure::Protocol, "no answer".into())) };
        let status = head.status;
        let wanted = match request.operation {
            Operation::Read => status == 200,
            _ => (200..300).contains(&status) || (gone_is_fine && status == 404),
        };
        if !wanted {
            return Err((
                Failure::Http(status),
                format!("{status}: {}", String::from_utf8_lossy(&self.excerpt)),
            ));
        }
        let error = (200..300).contains(&status) && is_error(&self.excerpt);
        if error && !(request.operation == Operation::Read && self.received == request.size) {
            let excerpt = &self.excerpt[..self.excerpt.len().min(EXCERPT_BYTES)];
            return Err((
                Failure::ErrorBody,
                format!("{status}: {}", String::from_utf8_lossy(excerpt)),
            ));
        }
        let size = request.size;
        match request.operation {
            Operation::Read if self.received < size => {
                Err((Failure::ShortBody, format!("{} bytes of {size}", self.received)))
            }
            Operation::Read if self.received > size => Err((
                Failure::WrongContent,
                format!("{} bytes of an object of {size}", self.received),
            )),
            Operation::Read if self.wrong => {
                Err((Failure::WrongContent, "other bytes than were written".into()))
            }
            // Some front ends omit the length of an empty object.
            Operation::Head if head.length.unwrap_or(0) != size => {
                let length =
                    head.length.map_or("no length".into(), |length| format!("{length} bytes"));
                Err((Failure::WrongLength, format!("{length} of an object of {size}")))
            }
            Operation::Write
                if required.md5.zip(head.md5).is_some_and(|(written, etag)| written != etag) =>
            {
                Err((Failure::WrongEtag, "the ETag is not the MD5 of what was written".into()))
            }
            Operation::List => self.check_listing(head, required),
            _ => Ok(()),
        }
    }

    fn check_listing(&self, head: &Head, required: &Required) -> Result<(), (Failure, String)> {
        let bad = |what: String| Err((Failure::BadList, what));
        if self.received > self.excerpt.len() as u64 {
            return bad(format!("a listing of {} bytes", self.received));
        }
        let form = if required.xml { Form::Xml } else { Form::Plain };
        match keys(if head.json { Form::Json } else { form }, &self.excerpt) {
            Ok(count) if count > LIST_MOST => {
                bad(format!("{count} keys where at most {LIST_MOST} were requested"))
            }
            Ok(count) if count < required.least_listed => {
                bad(format!("{count} keys where at least {} exist", required.least_listed))
            }
            Ok(_) => Ok(()),
            Err(why) => bad(why.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picker::Object;

    const SIZE: u64 = 1000;

    /// Parses an answer to `operation` in pieces of `step` bytes; returns the last state.
    fn answered(operation: Operation, text: &[u8], step: usize) -> (Progress, Result<(), Failure>) {
        let content = Content::new(1);
        let request = Request { operation, container: 0, object: Object::Prepared(0), size: SIZE };
        let expected = Expected { request: &request, content: &content, verify: true };
        let mut answer = Answer::default();
        let mut progress = Progress::More;
        for piece in text.chunks(step) {
            progress = answer.take(piece, &expected);
            if !matches!(progress, Progress::More) {
                break;
            }
        }
        let required = Required { md5: Some([0x11; 16]), xml: true, least_listed: 2 };
        (progress, answer.check(&request, &required, false).map_err(|(class, _)| class))
    }

    #[test]
    fn an_answer_is_checked_for_content_and_etag() {
        let list = |keys: usize| {
            format!(
                "<ListBucketResult>{}</ListBucketResult>",
                "<Contents><Key>k</Key></Contents>".repeat(keys)
            )
        };
        let error = "<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>".to_owned();
        let etag = |digit: &str| format!("ETag: \"{}\"\r\n", digit.repeat(32));
        for (operation, headers, body, wanted) in [
            (Operation::Write, etag("1"), String::new(), Ok(())),
            (Operation::Write, String::new(), String::new(), Ok(())),
            (Operation::Write, "ETag: \"none\"\r\n".into(), String::new(), Ok(())),
            (Operation::Write, etag("2"), String::new(), Err(Failure::WrongEtag)),
            (Operation::Write, etag("1"), error.clone(), Err(Failure::ErrorBody)),
            (Operation::Read, String::new(), error.clone(), Err(Failure::ErrorBody)),
            (Operation::Delete, String::new(), error.clone(), Err(Failure::ErrorBody)),
            (Operation::List, String::new(), error, Err(Failure::ErrorBody)),
            (Operation::List, String::new(), list(2), Ok(())),
            (Operation::List, String::new(), list(1000), Ok(())),
            (Operation::List, String::new(), list(1), Err(Failure::BadList)),
            (Operation::List, String::new(), list(1001), Err(Failure::BadList)),
            (Operation::List, String::new(), "not XML".into(), Err(Failure::BadList)),
            (
                Operation::List,
                "Content-Type: application/json\r\n".into(),
                "[{\"name\":\"a\"},{\"name\":\"b\"}]".into(),
                Ok(()),
            ),
        ] {
            let text =
                format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
            let chunked = format!(
                "HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n\
                 {:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            );
            for step in [1, 7, 100_000] {
                assert_eq!(
                    answered(operation, text.as_bytes(), step).1,
                    wanted,
                    "{operation:?} {headers} {body} by {step}"
                );
                if !body.is_empty() {
                    assert_eq!(
                        answered(operation, chunked.as_bytes(), step).1,
                        wanted,
                        "chunked {operation:?} {headers} {body}"
                    );
                }
            }
        }
    }

    #[test]
    fn pieces_of_any_size_are_accepted() {
        let body = Content::new(1).copy(SIZE, 0, SIZE as usize);
        let text = [
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
            &*body,
        ]
        .concat();
        for step in (1..80).chain([text.len()]) {
            assert!(
                matches!(answered(Operation::Read, &text, step), (Progress::Complete, Ok(()))),
                "step {step}"
            );
        }
    }

    #[test]
    fn lengths_are_checked_against_the_size_of_the_object() {
        for (operation, length, wanted) in [
            (Operation::Head, 1000, Ok(())),
            (Operation::Head, 999, Err(Failure::WrongLength)),
            (Operation::Head, 1001, Err(Failure::WrongLength)),
            (Operation::Delete, 0, Ok(())),
            (Operation::Read, 0, Err(Failure::ShortBody)),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let (progress, checked) = answered(operation, text.as_bytes(), 7);
            assert!(matches!(progress, Progress::Complete), "{operation:?} {length}");
            assert_eq!(checked, wanted, "{operation:?} {length}");
        }
    }

    #[test]
    fn only_the_start_of_a_bad_answer_is_kept() {
        let text = format!("HTTP/1.1 503 Busy\r\nContent-Length: 5000\r\n\r\n{}", "x".repeat(5000));
        let (progress, checked) = answered(Operation::Write, text.as_bytes(), 100);
        assert!(matches!(progress, Progress::Complete));
        assert_eq!(checked, Err(Failure::Http(503)));
    }
}
