//! The workload of a suite, and the sizes, names and places of its objects.

use crate::connections::Connections;
use crate::encryption::Encryption;
use crate::options::{Listing, Multipart, Range};
use crate::random::{Random, hash, hash_text};
use crate::signing::{self, Signing};
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};

pub use crate::operation::{OPERATIONS, Operation};

/// Maximum number of names requested by a list: one page.
pub const LIST_MOST: u64 = 1000;

/// Sizes of objects, in bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// All of one size.
    Fixed(u64),
    /// Uniformly from a range, both ends included.
    Uniform {
        /// Smallest and largest.
        uniform: (u64, u64),
    },
    /// From weighted bars.
    Histogram {
        /// The bars; at least one.
        histogram: Vec<Bar>,
    },
}

/// A bar of a histogram of sizes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    size: Span,
    weight: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Span {
    One(u64),
    Range((u64, u64)),
}

impl Span {
    fn bounds(&self) -> (u64, u64) {
        match *self {
            Self::One(size) => (size, size),
            Self::Range(bounds) => bounds,
        }
    }
}

fn evenly((smallest, largest): (u64, u64), random: &mut Random) -> u64 {
    smallest + random.below(largest - smallest + 1)
}

impl Size {
    /// Draws a size.
    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(size) => *size,
            Self::Uniform { uniform } => evenly(*uniform, random),
            Self::Histogram { histogram } => {
                let total: f64 = histogram.iter().map(|bar| bar.weight).sum();
                let mut at = random.unit() * total;
                for bar in histogram {
                    at -= bar.weight;
                    if at < 0.0 {
                        return evenly(bar.size.bounds(), random);
                    }
                }
                evenly(histogram[histogram.len() - 1].size.bounds(), random)
            }
        }
    }

    /// The sizes that are not drawn from a range.
    pub fn fixed(&self) -> BTreeSet<u64> {
        let one = |(smallest, largest): (u64, u64)| (smallest == largest).then_some(smallest);
        match self {
            Self::Fixed(size) => BTreeSet::from([*size]),
            Self::Uniform { uniform } => one(*uniform).into_iter().collect(),
            Self::Histogram { histogram } => {
                histogram.iter().filter_map(|bar| one(bar.size.bounds())).collect()
            }
        }
    }

    /// The smallest and the largest.
    pub fn bounds(&self) -> (u64, u64) {
        match self {
            Self::Fixed(size) => (*size, *size),
            Self::Uniform { uniform } => *uniform,
            Self::Histogram { histogram } => histogram
                .iter()
                .map(|bar| bar.size.bounds())
                .fold((u64::MAX, 0), |found, bar| (found.0.min(bar.0), found.1.max(bar.1))),
        }
    }

    /// Whether none is drawn from a range.
    pub fn is_fixed(&self) -> bool {
        match self {
            Self::Histogram { histogram } => {
                histogram.iter().map(|bar| bar.size.bounds()).all(|(least, most)| least == most)
            }
            _ => self.bounds().0 == self.bounds().1,
        }
    }

    fn check(&self) -> Result<(), String> {
        let ordered = |(smallest, largest): (u64, u64)| {
            if smallest <= largest && largest <= 5 << 40 {
                Ok(())
            } else {
                Err(format!("object sizes {smallest} to {largest} are not a range up to 5 TiB"))
            }
        };
        match self {
            Self::Fixed(size) => ordered((*size, *size)),
            Self::Uniform { uniform } => ordered(*uniform),
            Self::Histogram { histogram } if histogram.is_empty() => {
                Err("a histogram of sizes has no bars".into())
            }
            Self::Histogram { histogram } => histogram.iter().try_for_each(|bar| {
                if bar.weight.is_finite() && bar.weight > 0.0 {
                    ordered(bar.size.bounds())
                } else {
                    Err(format!("{} is not a weight", bar.weight))
                }
            }),
        }
    }
}

/// The prepared objects: `containers` x `per_container`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objects {
    /// Their sizes.
    pub size: Size,
    /// How many buckets or containers.
    pub containers: u64,
    /// How many objects in each.
    pub per_container: u64,
    /// The share of their bytes that compress to nothing; `None`: a shorter random pattern.
    #[serde(default)]
    pub compressible: Option<f64>,
}

/// How objects are chosen.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Pick {
    /// At random, or one after the other.
    Named(Order),
    /// By Zipf's law.
    Zipf {
        /// The exponent.
        zipf: f64,
    },
}

/// Choices without a parameter.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Uniformly at random.
    Uniform,
    /// Worker k of n takes objects k, k + n, k + 2n ..., so that together they take all in turn.
    Sequential,
}

/// A workload. Fields that only Python needs (worker counts, runtime, warm-up) are ignored here.
#[derive(Clone, Debug, Deserialize)]
pub struct Workload {
    /// Its name, part of the names of its buckets.
    pub name: String,
    /// Its objects.
    pub objects: Objects,
    /// Weights of its operations.
    pub operations: BTreeMap<Operation, f64>,
    /// How objects are picked.
    pub pick: Pick,
    /// Operations per second of all workers; `None`: a closed loop.
    pub rate_per_s: Option<f64>,
    /// Share of reads whose content is checked.
    #[serde(default, deserialize_with = "share")]
    pub verify: f64,
    /// How long a worker keeps a connection.
    #[serde(default)]
    pub connections: Connections,
    /// How S3 requests are signed.
    #[serde(default, deserialize_with = "signing::written")]
    pub signing: Signing,
    /// How objects are encrypted over S3.
    #[serde(default)]
    pub encryption: Encryption,
    /// What `read-range` reads.
    #[serde(default)]
    pub range: Option<Range>,
    /// The parts of `write-multipart`.
    #[serde(default)]
    pub multipart: Option<Multipart>,
    /// What `list-all` lists.
    #[serde(default)]
    pub listing: Option<Listing>,
    /// Objects of which nothing but listings is asked: nobody else adds to them.
    #[serde(default)]
    pub listed: Option<serde::de::IgnoredAny>,
    /// How many objects a `delete-many` deletes.
    #[serde(default)]
    pub delete_many: Option<u64>,
    /// How many versions each prepared object has; `None`: its containers keep no versions.
    #[serde(default)]
    pub versions: Option<u64>,
}

/// Deserialises a share, 0 to 1; a boolean is none or all.
/// Errors: It is neither.
pub fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Share {
        All(bool),
        Some(f64),
    }
    let share = match Share::deserialize(deserializer)? {
        Share::All(all) => f64::from(u8::from(all)),
        Share::Some(share) => share,
    };
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(serde::de::Error::custom(format!("{share} is not a share, 0 to 1")))
    }
}

impl Workload {
    /// Parses a workload.
    /// Errors: What is wrong with it.
    pub fn parse(json: &str) -> Result<Self, String> {
        let workload: Self =
            serde_json::from_str(json).map_err(|error| format!("workload: {error}"))?;
        workload.check()?;
        Ok(workload)
    }

    /// Checks that the sequence can be drawn from it.
    /// Errors: What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let fail = |what: String| Err(format!("workload {:?}: {what}", self.name));
        self.objects.size.check().or_else(fail)?;
        let (containers, each) = (self.objects.containers, self.objects.per_container);
        if containers == 0 || each == 0 {
            return fail("containers and per_container must be at least 1".into());
        }
        if containers.checked_mul(each).is_none_or(|count| count > 1 << 40) {
            return fail("more than 2^40 objects".into());
        }
        if self.operations.is_empty()
            || self.operations.values().any(|weight| !weight.is_finite() || *weight <= 0.0)
        {
            return fail("operations need weights above 0".into());
        }
        if let Pick::Zipf { zipf } = self.pick {
            if !(zipf > 0.0 && zipf <= 5.0) {
                return fail(format!("zipf: {zipf} is not above 0 and up to 5"));
            }
        }
        if self.rate_per_s.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
            return fail("rate_per_s must be above 0".into());
        }
        self.signing.check().and_then(|()| self.check_options()).or_else(fail)
    }

    /// The fewest names in a listing: prepared objects exist, unless the workload deletes them.
    pub fn least_listed(&self) -> u64 {
        if self.deletes_prepared() { 0 } else { self.objects.per_container.min(LIST_MOST) }
    }

    /// Whether prepared objects are deleted: not if others pick among them.
    pub fn deletes_prepared(&self) -> bool {
        self.operations.keys().any(|one| one.deletes())
            && !self.operations.keys().any(|one| one.picks())
    }

    /// How many prepared objects there are.
    pub fn count(&self) -> u64 {
        self.objects.containers * self.objects.per_container
    }

    /// Container and index within it of prepared object `number`; neighbours are in different
    /// containers.
    pub fn place(&self, number: u64) -> (u64, u64) {
        (number % self.objects.containers, number / self.objects.containers)
    }

    /// Size of a prepared object, in bytes.
    pub fn object_size(&self, seed: u64, container: u64, index: u64) -> u64 {
        let mut random = Random::new(hash(&[seed, hash_text(&self.name), 1, container, index]));
        self.objects.size.draw(&mut random)
    }

    /// Size of object `index` that a worker writes, in bytes.
    pub fn written_size(&self, seed: u64, id: &WorkerId, index: u64) -> u64 {
        let WorkerId { workers, repeat, worker } = *id;
        let mut random =
            Random::new(hash(&[seed, hash_text(&self.name), 2, workers, repeat, worker, index]));
        self.objects.size.draw(&mut random)
    }
}

/// A worker of a step: number `worker` of `workers`, in visit `repeat` of the step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorkerId {
    /// Workers of the step, over all processes.
    pub workers: u64,
    /// Visit of the step, from 0.
    pub repeat: u64,
    /// Number of the worker, from 0.
    pub worker: u64,
}

impl WorkerId {
    /// For objects that no worker of a step wrote.
    pub const NONE: Self = Self { workers: 0, repeat: 0, worker: 0 };
}

/// Appends the name of a prepared object.
pub fn put_object_name(out: &mut Vec<u8>, index: u64) {
    out.extend_from_slice(b"object-");
    put_number(out, index, 10);
}

/// Appends the name of object `index` that a worker writes.
pub fn put_written_name(out: &mut Vec<u8>, id: &WorkerId, index: u64) {
    out.extend_from_slice(b"written-");
    put_number(out, id.workers, 5);
    out.push(b'-');
    put_number(out, id.repeat, 4);
    out.push(b'-');
    put_number(out, id.worker, 5);
    out.push(b'-');
    put_number(out, index, 10);
}

/// Appends `number` padded with zeros to at least `width` digits.
pub fn put_number(out: &mut Vec<u8>, number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let (mut at, mut rest) = (20, number);
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[at.min(20 - width)..]);
}

#[cfg(test)]
pub(crate) mod tests;
