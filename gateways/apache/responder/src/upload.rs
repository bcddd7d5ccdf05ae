//! A request's body on its way to the origin.

use crate::session::Broken;
use std::io::Write as _;

/// A request's head and body on their way to the origin.
#[derive(Debug)]
pub(crate) struct Upload {
    /// How far it has been read.
    pub(crate) stage: Stage,
    /// Bytes left by `CONTENT_LENGTH`; `None`: chunked.
    pub(crate) left: Option<u64>,
    /// Whether there is a body.
    pub body: bool,
    /// Data to send next, beginning with the head.
    pub(crate) pending: Vec<u8>,
    /// How much of `pending` has been sent.
    pub sent: usize,
}

/// How far a body has been read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    /// It is being read and sent.
    Sending,
    /// The rest is read and discarded: the origin does not want it.
    Discarding,
    /// It was read completely.
    Read,
}

impl Upload {
    /// For a request with this `CONTENT_LENGTH`; `None`: chunked, if there is a body.
    pub fn new(length: Option<u64>) -> Self {
        Self { stage: Stage::Sending, left: length, body: false, pending: Vec::new(), sent: 0 }
    }

    /// Data that was read but not yet sent.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.pending[self.sent..]
    }

    /// Whether everything was read and sent.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Read && self.pending().is_empty()
    }

    /// Discard the rest.
    pub(crate) fn discard(&mut self) {
        self.pending.clear();
        self.sent = 0;
        if self.stage == Stage::Sending {
            self.stage = Stage::Discarding;
        }
    }

    /// Add a piece of the body.
    /// Errors: When the body is longer than its length.
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

    /// The body is complete.
    /// Errors: When it is shorter than its length.
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
