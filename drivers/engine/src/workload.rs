//! The workload as suites write it, and the sizes, names and places of its objects.

use crate::random::{Random, hash, hash_text};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a request does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// GET of a prepared object.
    Read,
    /// PUT of a new object.
    Write,
    /// DELETE of an object written before.
    Delete,
    /// First page of a bucket's listing, 1000 names at most.
    List,
    /// HEAD of a prepared object.
    Head,
}

/// All operations, in the order in which weights are drawn.
pub const OPERATIONS: [Operation; 5] = [Operation::Read, Operation::Write, Operation::Delete, Operation::List, Operation::Head];

/// Names that a list asks for: one page.
pub const LIST_MOST: u64 = 1000;

impl Operation {
    /// The word that suites and measurements use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Head => "head",
        }
    }
}

/// Sizes of objects, in bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// All of one size.
    Fixed(u64),
    /// Evenly from a range, both ends included.
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

/// One bar of a histogram of sizes.
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
    /// The size that `random` gives.
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
    #[must_use]
    pub fn fixed(&self) -> BTreeSet<u64> {
        let one = |(smallest, largest): (u64, u64)| (smallest == largest).then_some(smallest);
        match self {
            Self::Fixed(size) => BTreeSet::from([*size]),
            Self::Uniform { uniform } => one(*uniform).into_iter().collect(),
            Self::Histogram { histogram } => histogram.iter().filter_map(|bar| one(bar.size.bounds())).collect(),
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
            Self::Histogram { histogram } if histogram.is_empty() => Err("a histogram of sizes has no bars".into()),
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
}

/// How objects are picked.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Pick {
    /// Evenly, or one after the other.
    Named(Order),
    /// By Zipf's law, with this exponent.
    Zipf {
        /// The exponent.
        zipf: f64,
    },
}

/// The picks that have no parameter.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Each object as likely as any other.
    Uniform,
    /// Worker k of n takes objects k, k + n, k + 2n ..., so that together they take all in turn.
    Sequential,
}

/// A workload. What only the Python side needs (worker counts, runtime, warm-up) is not read here.
#[derive(Clone, Debug, Deserialize)]
pub struct Workload {
    /// Its name, part of its buckets' names.
    pub name: String,
    /// Its objects.
    pub objects: Objects,
    /// Weights of its operations.
    pub operations: BTreeMap<Operation, f64>,
    /// How objects are picked.
    pub pick: Pick,
    /// Operations a second over all workers; `None`: a closed loop.
    pub rate_per_s: Option<f64>,
    /// Share of reads of which every byte is checked.
    #[serde(default, deserialize_with = "share")]
    pub verify: f64,
}

/// A share, 0 to 1; a boolean is none or all.
///
/// # Errors
/// That it is neither.
pub fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Told {
        All(bool),
        Some(f64),
    }
    let share = match Told::deserialize(deserializer)? {
        Told::All(all) => f64::from(u8::from(all)),
        Told::Some(share) => share,
    };
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(serde::de::Error::custom(format!("{share} is not a share, 0 to 1"))) }
}

impl Workload {
    /// A workload of its JSON.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(json: &str) -> Result<Self, String> {
        let workload: Self = serde_json::from_str(json).map_err(|error| format!("workload: {error}"))?;
        workload.check()?;
        Ok(workload)
    }

    /// Whether the sequence can be drawn from it.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn check(&self) -> Result<(), String> {
        let fail = |what: String| Err(format!("workload {:?}: {what}", self.name));
        self.objects.size.check().or_else(fail)?;
        if self.objects.containers == 0 || self.objects.per_container == 0 {
            return fail("containers and per_container must be at least 1".into());
        }
        if self.objects.containers.checked_mul(self.objects.per_container).is_none_or(|count| count > 1 << 40) {
            return fail("more than 2^40 objects".into());
        }
        if self.operations.is_empty() || self.operations.values().any(|weight| !weight.is_finite() || *weight <= 0.0) {
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
        Ok(())
    }

    /// The fewest names that a list may give: prepared objects are there, unless the workload deletes them.
    #[must_use]
    pub fn least_listed(&self) -> u64 {
        let has = |operation: Operation| self.operations.contains_key(&operation);
        let deletes = has(Operation::Delete) && !has(Operation::Read) && !has(Operation::Head);
        if deletes { 0 } else { self.objects.per_container.min(LIST_MOST) }
    }

    /// How many prepared objects there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.objects.containers * self.objects.per_container
    }

    /// Container and index within it of prepared object number `number`; neighbours lie in different containers.
    #[must_use]
    pub fn place(&self, number: u64) -> (u64, u64) {
        (number % self.objects.containers, number / self.objects.containers)
    }

    /// Size of a prepared object, in bytes.
    #[must_use]
    pub fn object_size(&self, seed: u64, container: u64, index: u64) -> u64 {
        let mut random = Random::new(hash(&[seed, hash_text(&self.name), 1, container, index]));
        self.objects.size.draw(&mut random)
    }

    /// Size of object number `index` that a worker writes, in bytes.
    #[must_use]
    pub fn written_size(&self, seed: u64, whose: &Whose, index: u64) -> u64 {
        let Whose { workers, repeat, worker } = *whose;
        let mut random = Random::new(hash(&[seed, hash_text(&self.name), 2, workers, repeat, worker, index]));
        self.objects.size.draw(&mut random)
    }
}

/// Which worker of which step writes: number `worker` of `workers`, in visit `repeat` of the step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Whose {
    /// Workers of the step, over all processes.
    pub workers: u64,
    /// Visit of the step, from 0.
    pub repeat: u64,
    /// Number of the worker, from 0.
    pub worker: u64,
}

impl Whose {
    /// For objects that no worker of a step wrote.
    pub const NOBODY: Self = Self { workers: 0, repeat: 0, worker: 0 };
}

/// Appends the name of a prepared object.
pub fn put_object_name(out: &mut Vec<u8>, index: u64) {
    out.extend_from_slice(b"object-");
    put_number(out, index, 10);
}

/// Appends the name of object number `index` that a worker writes.
pub fn put_written_name(out: &mut Vec<u8>, whose: &Whose, index: u64) {
    out.extend_from_slice(b"written-");
    put_number(out, whose.workers, 5);
    out.push(b'-');
    put_number(out, whose.repeat, 4);
    out.push(b'-');
    put_number(out, whose.worker, 5);
    out.push(b'-');
    put_number(out, index, 10);
}

/// Appends `number` with zeros in front up to `width` digits; more digits where it needs them.
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
pub(crate) mod tests {
    use super::*;

    /// A workload for tests: the keys given replace those of a small one.
    pub(crate) fn workload(keys: &serde_json::Value) -> Workload {
        let mut json = serde_json::json!({
            "name": "w", "objects": {"size": 100, "containers": 4, "per_container": 25}, "operations": {"read": 1.0},
            "pick": "uniform", "workers": [1], "runtime": 1.0, "warmup": 0.0, "rate_per_s": null, "verify": false
        });
        for (key, value) in keys.as_object().expect("an object of keys") {
            json[key] = value.clone();
        }
        Workload::parse(&json.to_string()).expect("a workload")
    }

    #[test]
    fn names_have_fixed_widths() {
        let mut name = Vec::new();
        put_object_name(&mut name, 12);
        assert_eq!(name, b"object-0000000012");
        name.clear();
        put_written_name(&mut name, &Whose { workers: 8, repeat: 1, worker: 7 }, 0);
        assert_eq!(name, b"written-00008-0001-00007-0000000000");
        name.clear();
        put_number(&mut name, 123_456, 4);
        assert_eq!(name, b"123456");
    }

    #[test]
    fn sizes_follow_the_histogram() {
        let bars = serde_json::json!([{"size": 10, "weight": 1.0}, {"size": [20, 29], "weight": 3.0}]);
        let w = workload(&serde_json::json!({"objects": {"size": {"histogram": bars}, "containers": 1, "per_container": 1}}));
        let sizes: Vec<u64> = (0..10_000).map(|index| w.object_size(1, 0, index)).collect();
        let small = sizes.iter().filter(|&&size| size == 10).count();
        assert!((2300..2700).contains(&small), "{small}");
        assert!(sizes.iter().all(|&size| size == 10 || (20..=29).contains(&size)));
        assert!((20..=29).all(|size| sizes.contains(&size)));
    }

    #[test]
    fn a_size_depends_on_seed_and_place_only() {
        let size = serde_json::json!({"size": {"uniform": [0, 1_000_000]}, "containers": 4, "per_container": 25});
        let a = workload(&serde_json::json!({"objects": size.clone()}));
        let b = workload(&serde_json::json!({"objects": size, "operations": {"write": 2.0}, "pick": "sequential"}));
        assert_eq!(a.object_size(9, 3, 7), b.object_size(9, 3, 7));
        assert_ne!(a.object_size(9, 3, 7), a.object_size(9, 7, 3));
        assert_ne!(a.object_size(9, 3, 7), a.object_size(8, 3, 7));
    }

    #[test]
    fn every_object_has_one_place() {
        let w = workload(&serde_json::json!({}));
        let mut places: Vec<_> = (0..w.count()).map(|number| w.place(number)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len() as u64, w.count());
        assert!(places.iter().all(|&(container, index)| container < 4 && index < 25));
    }

    #[test]
    fn what_cannot_be_drawn_from_is_refused() {
        for (key, value) in [
            ("operations", serde_json::json!({})),
            ("operations", serde_json::json!({"read": 0.0})),
            ("operations", serde_json::json!({"copy": 1.0})),
            ("pick", serde_json::json!({"zipf": 0.0})),
            ("pick", serde_json::json!("often")),
            ("objects", serde_json::json!({"size": {"uniform": [9, 3]}, "containers": 1, "per_container": 1})),
            ("objects", serde_json::json!({"size": 1, "containers": 0, "per_container": 1})),
            ("rate_per_s", serde_json::json!(0.0)),
        ] {
            let mut json = serde_json::json!({"name": "w", "objects": {"size": 1, "containers": 1, "per_container": 1},
                "operations": {"read": 1.0}, "pick": "uniform", "rate_per_s": null});
            assert!(Workload::parse(&json.to_string()).is_ok());
            json[key] = value;
            assert!(Workload::parse(&json.to_string()).is_err(), "{json}");
        }
    }
}
