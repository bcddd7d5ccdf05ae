//! What a disk of a model does under a load, by the model alone: the figures that attestation
//! expects and benchmarks compare with.

use crate::chance::Chance;
use crate::drive::{Drive, Event, Op, Request};
use crate::model::{Model, Nanos, nanos};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A load: `depth` requests in flight, each followed by the next as soon as it is answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Whether to write.
    pub write: bool,
    /// Whether at random places, multiples of `bytes`.
    pub(crate) random: bool,
    /// Whether each write is followed by a flush.
    #[serde(default)]
    pub flush: bool,
    /// Bytes of a request.
    pub bytes: u64,
    /// Requests in flight.
    pub(crate) depth: usize,
    /// The first so many bytes of the disk are used.
    pub(crate) span: u64,
    /// How long before measuring, in seconds.
    #[serde(default)]
    pub(crate) warmup: f64,
    /// How long to measure, in seconds.
    pub(crate) seconds: f64,
    /// A load of which more are served a second is not limited; before measuring, of which ten
    /// times as many are, since a cache may fill. `None`: only `MOST_REQUESTS` ends it.
    #[serde(default)]
    pub(crate) most_per_s: Option<f64>,
}

/// What the disk did; times in seconds.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Requests a second, flushes not counted.
    pub per_s: f64,
    /// The mean time of a request.
    pub mean_s: f64,
    /// The mean time of a flush; none were asked for: 0.
    pub flush_s: f64,
}

const MOST_REQUESTS: f64 = 20_000_000.0;

/// Run a load on a disk of `size` bytes.
/// Errors: What is wrong with the load: it names no request, or the model does not limit it.
pub fn simulate(model: &Model, size: u64, load: &Load) -> Result<Figures, String> {
    let span = load.span.min(size);
    if load.bytes == 0 || load.depth == 0 || span < load.bytes || load.depth > 65536 {
        return Err(format!("the load has no request within {span} bytes"));
    }
    let mut drive = Drive::new(model, size);
    let mut chance = Chance::new(0x10AD);
    let places = span / load.bytes;
    let mut next_place = 0;
    let (begin, end) = (nanos(load.warmup), nanos(load.warmup + load.seconds));
    let mut sent: HashMap<u64, (Nanos, Op)> = HashMap::new();
    let mut ids = 0_u64;
    let mut ask = |drive: &mut Drive, sent: &mut HashMap<u64, (Nanos, Op)>, op: Op, at: Nanos| {
        ids += 1;
        let place = if load.random { chance.next_u64() % places } else { next_place % places };
        if op != Op::Flush {
            next_place += 1;
        }
        sent.insert(ids, (at, op));
        let bytes = if op == Op::Flush { 0 } else { load.bytes };
        drive.arrive(Request { id: ids, op, start: place * load.bytes, bytes, arrived: at });
    };
    let op = if load.write { Op::Write } else { Op::Read };
    for _ in 0..load.depth {
        ask(&mut drive, &mut sent, op, 0);
    }
    let most_in = |seconds: f64| load.most_per_s.map_or(MOST_REQUESTS, |per_s| per_s * seconds);
    let (most_before, most) = (10.0 * most_in(load.warmup), most_in(load.seconds));
    let mut before = 0.0;
    let (mut took, mut flushes, mut events) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(now) = drive.next().filter(|&now| now <= end) {
        drive.advance(now, &mut events);
        for event in events.drain(..) {
            let Event::Done { id, at } = event else { continue };
            let (since, was) = sent.remove(&id).expect("it was asked for");
            if at >= begin {
                if was == Op::Flush { &mut flushes } else { &mut took }.push(at - since);
            } else {
                before += 1.0;
            }
            let then = if was != Op::Flush && load.flush { Op::Flush } else { op };
            ask(&mut drive, &mut sent, then, at);
        }
        if took.len() as f64 > most || before > most_before || (now == 0 && took.len() > 1000) {
            return Err("the model does not limit this load".to_owned());
        }
    }
    let seconds = |time: Nanos| time as f64 / 1e9;
    let mean = |times: &[Nanos]| {
        let sum: Nanos = times.iter().sum();
        seconds(sum) / times.len().max(1) as f64
    };
    Ok(Figures {
        per_s: took.len() as f64 / load.seconds,
        mean_s: mean(&took),
        flush_s: mean(&flushes),
    })
}
