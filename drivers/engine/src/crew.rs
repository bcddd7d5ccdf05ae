//! An upload whose parts go over several connections at once: what a worker and its helpers share.
//! All of them belong to one I/O thread.

use crate::config::Config;
use crate::flow::piece;
use crate::options::parts;
use crate::picker::Request;
use crate::recorder::Failure;
use crate::shared::lock;
use std::sync::Mutex;

/// A worker that has helpers, and those.
#[derive(Debug, Default)]
pub struct Crew(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    upload: Option<Upload>,
    /// Slots of those that wait for a part, or for the parts of others.
    waiting: Vec<usize>,
    leaving: bool,
    ended: bool,
}

#[derive(Debug)]
struct Upload {
    request: Request,
    id: Vec<u8>,
    checks: bool,
    etags: Vec<Option<Box<[u8]>>>,
    /// Parts that were handed out.
    begun: usize,
    /// Parts that were handed out and have not ended.
    outstanding: usize,
    failed: Option<Failure>,
}

impl Upload {
    fn is_drained(&self) -> bool {
        self.outstanding == 0 && (self.failed.is_some() || self.begun == self.etags.len())
    }
}

/// A part to send.
#[derive(Debug)]
pub struct Handed {
    /// Its request.
    pub request: Request,
    /// ID of the upload.
    pub upload: Vec<u8>,
    /// Whether its answer is checked.
    pub checks: bool,
}

/// An upload all of whose parts have ended.
#[derive(Debug)]
pub struct Drained {
    /// The request of one of them.
    pub request: Request,
    /// The class of the first failure; `None`: all were taken.
    pub failed: Option<Failure>,
    /// The parts' `ETag`s.
    pub etags: Vec<Box<[u8]>>,
}

impl Crew {
    /// Begins an upload, whose first part `request` is sent by the worker itself.
    pub fn open(&self, request: &Request, id: &[u8], checks: bool, config: &Config) {
        let bytes = config.workload.multipart.map_or(request.size, |multipart| multipart.part);
        let count = parts(request.size, bytes) as usize;
        lock(&self.0).upload = Some(Upload {
            request: *request,
            id: id.into(),
            checks,
            etags: vec![None; count],
            begun: 1,
            outstanding: 1,
            failed: None,
        });
    }

    /// Hands out the next part; `None`: there is none to send.
    pub fn take(&self, config: &Config) -> Option<Handed> {
        let mut state = lock(&self.0);
        let upload = state.upload.as_mut()?;
        if upload.failed.is_some() || upload.begun == upload.etags.len() {
            return None;
        }
        upload.begun += 1;
        upload.outstanding += 1;
        let part = piece(&upload.request, config, upload.begun as u64);
        let request = Request { part, ..upload.request };
        Some(Handed { request, upload: upload.id.clone(), checks: upload.checks })
    }

    /// A part was taken; returns whether it was the last to end.
    pub fn took(&self, number: u64, etag: Box<[u8]>) -> bool {
        self.ended_part(|upload| upload.etags[number as usize - 1] = Some(etag))
    }

    /// A part failed; returns whether it was the last to end.
    pub fn failed(&self, class: Failure) -> bool {
        self.ended_part(|upload| upload.failed = upload.failed.or(Some(class)))
    }

    fn ended_part(&self, note: impl FnOnce(&mut Upload)) -> bool {
        lock(&self.0).upload.as_mut().is_some_and(|upload| {
            upload.outstanding -= 1;
            note(upload);
            upload.is_drained()
        })
    }

    /// The upload, if all of its parts have ended; it is forgotten then.
    pub fn drained(&self) -> Option<Drained> {
        let upload = lock(&self.0).upload.take_if(|upload| upload.is_drained())?;
        let Upload { request, failed, etags, .. } = upload;
        Some(Drained { request, failed, etags: etags.into_iter().flatten().collect() })
    }

    /// Notes who waits.
    pub fn wait(&self, slot: usize) {
        lock(&self.0).waiting.push(slot);
    }

    /// Those who wait, to be resumed.
    pub fn wake(&self) -> Vec<usize> {
        std::mem::take(&mut lock(&self.0).waiting)
    }

    /// From now on nothing is recorded.
    pub fn leave(&self) {
        lock(&self.0).leaving = true;
    }

    /// Whether nothing is recorded.
    pub fn is_leaving(&self) -> bool {
        lock(&self.0).leaving
    }

    /// The worker has ended: so do its helpers.
    pub fn end(&self) {
        lock(&self.0).ended = true;
    }

    /// Whether the worker has ended.
    pub fn has_ended(&self) -> bool {
        lock(&self.0).ended
    }
}
