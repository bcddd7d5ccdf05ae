//! An answer as it comes in, piece by piece, and whether it is what was asked for.

use crate::content::Content;
use crate::http::{Framing, Head, Malformed, parse_head};
use crate::picker::Request;
use crate::recorder::Failure;
use crate::workload::Operation;

/// Bytes kept of an answer that is no success, for people.
const EXCERPT_BYTES: usize = 300;

/// What an answer belongs to, and what it is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The request.
    pub request: &'a Request,
    /// What objects hold.
    pub content: &'a Content,
    /// Whether every byte of a read is checked.
    pub verify: bool,
}

/// Where an answer stands after more of it came in.
#[derive(Debug)]
pub enum Progress {
    /// More of it is to come.
    More,
    /// It is whole.
    Whole,
    /// It will never be whole; in a word and in words.
    Failed(Failure, &'static str),
}

/// An answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// Start of a head that is not whole yet.
    begun: Vec<u8>,
    head: Option<Head>,
    received: u64,
    wrong: bool,
    excerpt: Vec<u8>,
}

impl Answer {
    /// Makes it one that has not begun.
    pub fn reset(&mut self) {
        self.begun.clear();
        self.head = None;
        self.received = 0;
        self.wrong = false;
        self.excerpt.clear();
    }

    /// Bytes of the body so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the connection ends with it.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.head.as_ref().is_none_or(|head| head.close)
    }

    /// How many of the bytes to come nobody needs to look at.
    #[must_use]
    pub fn unseen(&self, asked: &Asked<'_>) -> u64 {
        match &self.head {
            Some(Head { status: 200..=299, framing: Framing::Length(length), .. })
                if !(asked.verify && asked.request.operation == Operation::Read) =>
            {
                length.saturating_sub(self.received)
            }
            _ => 0,
        }
    }

    /// `count` bytes of those nobody needs to look at came in.
    pub fn skip(&mut self, count: u64) -> Progress {
        self.received += count;
        self.progress()
    }

    /// The peer closed.
    #[must_use]
    pub fn end(&self) -> Progress {
        match &self.head {
            Some(Head { framing: Framing::UntilClose, .. }) => Progress::Whole,
            Some(_) => Progress::Failed(Failure::ShortBody, "closed in the middle of a body"),
            None => Progress::Failed(Failure::Reset, "closed before an answer"),
        }
    }

    /// Takes in bytes.
    pub fn take(&mut self, bytes: &[u8], asked: &Asked<'_>) -> Progress {
        match self.digest(bytes, asked) {
            Ok(()) => self.progress(),
            Err(Malformed(what)) => Progress::Failed(Failure::Protocol, what),
        }
    }

    fn digest(&mut self, bytes: &[u8], asked: &Asked<'_>) -> Result<(), Malformed> {
        if self.head.is_some() {
            return self.body(bytes, asked);
        }
        let before = self.begun.len();
        if before > 0 {
            self.begun.extend_from_slice(bytes);
        }
        let whole = if before > 0 { &self.begun } else { bytes };
        let Some((head, length)) = parse_head(whole, asked.request.operation == Operation::Head)? else {
            if before == 0 {
                self.begun.extend_from_slice(bytes);
            }
            return Ok(());
        };
        self.head = Some(head);
        self.body(&bytes[length - before..], asked)
    }

    fn body(&mut self, bytes: &[u8], asked: &Asked<'_>) -> Result<(), Malformed> {
        let Some(head) = &mut self.head else { return Ok(()) };
        let good = (200..300).contains(&head.status);
        let check = good && asked.verify && asked.request.operation == Operation::Read;
        let before = self.received;
        let (received, wrong, excerpt) = (&mut self.received, &mut self.wrong, &mut self.excerpt);
        let mut sink = |part: &[u8]| {
            if check && !*wrong {
                *wrong = !asked.content.holds(asked.request.size, *received, part);
            }
            if !good {
                excerpt.extend_from_slice(&part[..part.len().min(EXCERPT_BYTES - excerpt.len())]);
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
        // Bytes after an answer that nobody asked for: the connection cannot be trusted with the next request.
        head.close |= used < bytes.len();
        Ok(())
    }

    fn progress(&self) -> Progress {
        match &self.head {
            Some(Head { framing: Framing::Length(length), .. }) if self.received >= *length => Progress::Whole,
            Some(Head { framing: Framing::Chunked(chunked), .. }) if chunked.is_done() => Progress::Whole,
            _ => Progress::More,
        }
    }

    /// Whether the whole answer is what was asked for; `gone_is_fine`: a 404 is too.
    ///
    /// # Errors
    /// As what it counts, and why in words.
    pub fn judge(&self, request: &Request, gone_is_fine: bool) -> Result<(), (Failure, String)> {
        let Some(head) = &self.head else { return Err((Failure::Protocol, "no answer".into())) };
        let status = head.status;
        let wanted = match request.operation {
            Operation::Read => status == 200,
            _ => (200..300).contains(&status) || (gone_is_fine && status == 404),
        };
        if !wanted {
            return Err((Failure::Http(status), format!("{status}: {}", String::from_utf8_lossy(&self.excerpt))));
        }
        let length = match request.operation {
            Operation::Read => Some(self.received),
            Operation::Head => head.length,
            _ => None,
        };
        match length {
            Some(length) if length < request.size => Err((Failure::ShortBody, format!("{length} bytes of {}", request.size))),
            Some(length) if length > request.size => {
                Err((Failure::WrongContent, format!("{length} bytes of an object of {}", request.size)))
            }
            _ if self.wrong => Err((Failure::WrongContent, "other bytes than were written".into())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picker::Object;

    const SIZE: u64 = 1000;

    /// Gives an answer to a request of `operation` in pieces of `step` bytes; how it ends.
    fn answered(operation: Operation, text: &[u8], step: usize) -> (Progress, Result<(), Failure>) {
        let content = Content::new(1);
        let request = Request { operation, container: 0, object: Object::Prepared(0), size: SIZE };
        let asked = Asked { request: &request, content: &content, verify: true };
        let mut answer = Answer::default();
        let mut progress = Progress::More;
        for piece in text.chunks(step) {
            progress = answer.take(piece, &asked);
            if !matches!(progress, Progress::More) {
                break;
            }
        }
        (progress, answer.judge(&request, false).map_err(|(class, _)| class))
    }

    #[test]
    fn a_good_answer_is_good_however_it_is_cut() {
        let body = Content::new(1).copy(SIZE, 0, SIZE as usize);
        let text = [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", &*body].concat();
        for step in (1..80).chain([text.len()]) {
            assert!(matches!(answered(Operation::Read, &text, step), (Progress::Whole, Ok(()))), "step {step}");
        }
    }

    #[test]
    fn lengths_are_judged_by_the_size_of_the_object() {
        for (operation, length, wanted) in [
            (Operation::Head, 1000, Ok(())),
            (Operation::Head, 999, Err(Failure::ShortBody)),
            (Operation::Head, 1001, Err(Failure::WrongContent)),
            (Operation::Delete, 0, Ok(())),
            (Operation::Read, 0, Err(Failure::ShortBody)),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let (progress, judged) = answered(operation, text.as_bytes(), 7);
            assert!(matches!(progress, Progress::Whole), "{operation:?} {length}");
            assert_eq!(judged, wanted, "{operation:?} {length}");
        }
    }

    #[test]
    fn only_the_start_of_a_bad_answer_is_kept() {
        let text = format!("HTTP/1.1 503 Busy\r\nContent-Length: 5000\r\n\r\n{}", "x".repeat(5000));
        let (progress, judged) = answered(Operation::Write, text.as_bytes(), 100);
        assert!(matches!(progress, Progress::Whole));
        assert_eq!(judged, Err(Failure::Http(503)));
    }
}
