//! Sending a request.

use super::{NextStep, Phase, TURN_BYTES, Worker};
use crate::reactor::Context;
use crate::recorder::Failure;
use std::io::ErrorKind;

impl Worker {
    pub(super) fn send(&mut self, context: &mut Context<'_>) -> NextStep {
        let Some(link) = &mut self.link else { return NextStep::Wait };
        let Some(request) = &self.request else { return NextStep::Wait };
        let bytes = context.shared.content_of(request);
        let turn_ends = self.sent + TURN_BYTES;
        while self.sent < self.to_send {
            if self.sent >= turn_ends {
                return NextStep::Again;
            }
            self.body.go_on(&mut self.out, bytes);
            let mut pieces = self.body.pieces(&self.out, bytes);
            if pieces[0].is_empty() {
                pieces.rotate_left(1);
            }
            match link.send(pieces) {
                Ok(count) => {
                    self.body.sent(count, &self.out);
                    self.sent += count as u64;
                }
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
