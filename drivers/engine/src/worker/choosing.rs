//! Which server the current request goes to, and over which connection, old or new.

use super::{NextStep, Phase, Worker};
use crate::picker::Request;
use crate::reactor::Context;
use crate::recorder::Failure;

impl Worker {
    /// The endpoint of the current request, or the replica of its object if there is a ring.
    pub(super) fn place(&mut self, context: &Context<'_>, request: &Request) -> u64 {
        let endpoints = &context.shared.endpoints;
        if !endpoints.several() {
            return self.source.replica(&context.shared.config, request);
        }
        self.asked += 1;
        let job = self.number().is_none() && !self.is_helper();
        endpoints.choose(self.source.rank(), self.asked - 1, job) as u64
    }

    /// Selects the connection to a server, if it can be reused.
    pub(super) fn select_server(&mut self, server: usize) {
        if server == self.server {
            return;
        }
        let most = self.server.max(server);
        if self.parked.len() <= most {
            self.parked.resize_with(most + 1, || None);
        }
        self.parked[self.server] = self.link.take().map(|link| (link, self.serial));
        self.server = server;
        // Its events were ignored meanwhile: do not reuse it if the server closed it or sent
        // anything.
        if let Some((link, serial)) = self.parked[server].take().filter(|(link, _)| link.is_quiet())
        {
            (self.link, self.serial, self.hung_up) = (Some(link), serial, false);
        }
    }

    /// Begins a connection to the selected server.
    pub(super) fn dial(&mut self, context: &mut Context<'_>) -> NextStep {
        self.phase = Phase::Connecting;
        self.hung_up = false;
        self.serials = self.serials.wrapping_add(1);
        self.serial = self.serials;
        let dialed = context.shared.dialers[self.server].dial().and_then(|mut link| {
            context.epoll.add(link.fd(), context.token(self.serial))?;
            link.requests = 1;
            Ok(link)
        });
        match dialed {
            Ok(link) => {
                self.link = Some(link);
                NextStep::Wait
            }
            Err(error) => self.fail(context, Failure::Connect, &error.to_string()),
        }
    }
}
