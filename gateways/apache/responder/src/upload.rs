//! The body of a request on its way to the origin.

use crate::session::Broken;
use std::io::Write as _;

/// The body of a request on its way to the origin, behind the head.
#[derive(Debug)]
pub struct Upload {
    /// How far it was read.
    pub stage: Stage,
    /// Bytes that are still to come by `CONTENT_LENGTH`; `None`: chunks.
    pub left: Option<u64>,
    /// Whether there is a body at all.
    pub body: bool,
    /// What is to be sent next, the head before all else.
    pub pending: Vec<u8>,
    /// How much of it has been sent.
    pub sent: usize,
}

/// How far a body was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// It is read and sent.
    Sending,
    /// The rest is read and thrown away: nobody wants it any more.
    Discarding,
    /// It was read to its end.
    Read,
}

impl Upload {
    /// Of a request with this `CONTENT_LENGTH`; `None`: chunks, if anything comes at all.
    #[must_use]
    pub fn new(length: Option<u64>) -> Self {
        Self { stage: Stage::Sending, left: length, body: false, pending: Vec::new(), sent: 0 }
    }

    /// What is left to be sent of what was read.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.pending[self.sent..]
    }

    /// Whether it was read to its end, and nothing is left to be sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Read && self.pending().is_empty()
    }

    /// Nobody wants the rest of it any more.
    pub fn discard(&mut self) {
        self.pending.clear();
        self.sent = 0;
        if self.stage == Stage::Sending {
            self.stage = Stage::Discarding;
        }
    }

    /// A piece of the body has come.
    ///
    /// # Errors
    /// When that is more than its length.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Broken> {
        self.body = true;
        if self.pending().is_empty() {
            self.pending.clear();
            self.sent = 0;
        }
        if let Some(left) = &mut self.left {
            *left = left
                .checked_sub(piece.len() as u64)
                .ok_or(Broken::Malformed("a body longer than CONTENT_LENGTH"))?;
            self.pending.extend(piece);
        } else {
            write!(self.pending, "{:x}\r\n", piece.len())?;
            self.pending.extend(piece);
            self.pending.extend(b"\r\n");
        }
        Ok(())
    }

    /// The body has come to its end.
    ///
    /// # Errors
    /// When it is shorter than its length.
    pub fn end(&mut self) -> Result<(), Broken> {
        match self.left {
            Some(left) if left > 0 => {
                return Err(Broken::Aborted("a body shorter than CONTENT_LENGTH"));
            }
            None if self.body => self.pending.extend(b"0\r\n\r\n"),
            _ => {}
        }
        self.stage = Stage::Read;
        Ok(())
    }
}
