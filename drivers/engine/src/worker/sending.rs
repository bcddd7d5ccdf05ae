//! Sending a request.

use super::{NextStep, PIECE_BYTES, Phase, TURN_BYTES, Worker};
use crate::reactor::Context;
use crate::recorder::Failure;
use std::io::ErrorKind;

impl Worker {
    pub(super) fn send(&mut self, context: &mut Context<'_>) -> NextStep {
        let (Some(link), Some(request)) = (&mut self.link, &self.request) else {
            return NextStep::Wait;
        };
        let turn_ends = self.sent + TURN_BYTES;
        let head = self.out.len() as u64;
        while self.sent < self.to_send {
            if self.sent >= turn_ends {
                return NextStep::Again;
            }
            let unsent = &self.out[self.sent.min(head) as usize..];
            let body = if self.to_send > head {
                let at = self.sent.max(head);
                let most = (self.to_send - at).min(PIECE_BYTES as u64) as usize;
                let offset = request.span().0 + at - head;
                context.shared.content.piece(request.size, offset, most)
            } else {
                &[]
            };
            let result =
                if unsent.is_empty() { link.send(body, &[]) } else { link.send(unsent, body) };
            match result {
                Ok(count) => self.sent += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return NextStep::Wait,
                Err(error) => return self.receive_early_answer(context, &error.to_string()),
            }
        }
        self.phase = Phase::Receiving;
        NextStep::Wait
    }

    /// Receives an answer sent before the connection broke: it says more than the broken pipe.
    fn receive_early_answer(&mut self, context: &mut Context<'_>, error: &str) -> NextStep {
        let next_step = self.receive(context);
        match self.phase {
            Phase::Sending => {
                self.fail(context, Failure::Reset, &format!("while sending: {error}"))
            }
            _ => next_step,
        }
    }
}
