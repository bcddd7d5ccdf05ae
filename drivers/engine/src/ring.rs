//! Swift's object servers as its proxies see them: which disk of which server has an object,
//! according to Swift's ring.
//!
//! An object's partition is the first bits of the MD5 of prefix, `/account/container/object` and
//! suffix, and the ring names a disk for each replica of a partition (Swift's
//! `swift.common.utils.hash_path` and `swift.common.ring.Ring.get_part`).

use crate::picker::{Object, Request};
use crate::random::{hash, hash_text};
use crate::workload::WorkerId;
use md5::{Digest as _, Md5};
use serde::Deserialize;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// A disk of an object server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Host name or address of its server.
    pub address: String,
    /// The server's port.
    pub port: u16,
    /// Name of the disk.
    pub device: String,
}

impl Disk {
    /// Value of the `Host` header of its server.
    pub fn host(&self) -> String {
        let port = self.port;
        if self.address.contains(':') {
            format!("[{}]:{port}", self.address)
        } else {
            format!("{}:{port}", self.address)
        }
    }
}

/// A ring. The fields are documented in `_native.pyi`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ring {
    disks: Vec<Disk>,
    /// Number of a disk for each replica (row) of each partition.
    table: Vec<Vec<u32>>,
    part_power: u32,
    hash_prefix: String,
    hash_suffix: String,
}

impl std::fmt::Debug for Ring {
    /// Omits the secret hash prefix and suffix, which make paths unpredictable.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "Ring of {} replicas of 2^{} partitions on {:?}",
            self.table.len(),
            self.part_power,
            self.disks
        )
    }
}

impl Ring {
    /// Parses a ring.
    /// Errors: What is wrong with it.
    pub fn parse(json: &str) -> Result<Self, String> {
        let ring: Self = serde_json::from_str(json).map_err(|error| format!("ring: {error}"))?;
        ring.check()?;
        Ok(ring)
    }

    /// Checks that every replica of every partition has a disk.
    /// Errors: What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=32).contains(&self.part_power) {
            return Err(format!("ring: part_power {} is not 1 to 32", self.part_power));
        }
        let partitions = 1u64 << self.part_power;
        if self.table.is_empty() || self.table.iter().any(|row| row.len() as u64 != partitions) {
            return Err(format!("ring: needs a row of {partitions} partitions for each replica"));
        }
        if self.table.iter().flatten().any(|&disk| disk as usize >= self.disks.len()) {
            return Err(format!("ring: a partition names no disk of {}", self.disks.len()));
        }
        let plain = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        if self
            .disks
            .iter()
            .any(|disk| !plain(&disk.device) || disk.address.contains(char::is_control))
        {
            return Err("ring: names of disks hold letters, digits and -._~ only".into());
        }
        Ok(())
    }

    /// How many disks store each object.
    pub fn replicas(&self) -> u64 {
        self.table.len() as u64
    }

    /// All disks.
    pub fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// The partition of `/account/container/object`.
    pub fn partition(&self, path: &[u8]) -> u32 {
        let sum = Md5::new()
            .chain_update(&self.hash_prefix)
            .chain_update(path)
            .chain_update(&self.hash_suffix)
            .finalize();
        let first = u32::from_be_bytes([sum[0], sum[1], sum[2], sum[3]]);
        (u64::from(first) >> (32 - self.part_power)) as u32
    }

    /// Number of the disk that stores a replica of a partition.
    pub fn disk(&self, partition: u32, replica: u64) -> usize {
        self.table[replica as usize][partition as usize] as usize
    }

    /// The distinct servers, and for each disk the number of its server.
    /// Errors: A name cannot be resolved.
    pub fn servers(&self) -> Result<(Vec<SocketAddr>, Vec<usize>), String> {
        let mut servers = Vec::new();
        let mut of = Vec::with_capacity(self.disks.len());
        for disk in &self.disks {
            let known = (disk.address.as_str(), disk.port).to_socket_addrs();
            let found = known.map_err(|error| format!("{}: {error}", disk.host()))?.next();
            let address =
                found.ok_or_else(|| format!("{}: the name has no address", disk.address))?;
            let number =
                servers.iter().position(|&server| server == address).unwrap_or_else(|| {
                    servers.push(address);
                    servers.len() - 1
                });
            of.push(number);
        }
        Ok((servers, of))
    }
}

/// The replica that request number `turn` of a step's worker uses: reads and heads take any, as a
/// proxy does; a worker writes to one disk, and all deletes of a step go to one. Drawn by seed,
/// apart from the sequence, which is the same for every gateway.
pub fn replica(
    replicas: u64,
    seed: u64,
    name: &str,
    id: &WorkerId,
    turn: u64,
    request: &Request,
) -> u64 {
    use crate::workload::Operation::{Delete, Write};
    if replicas <= 1 {
        return 0;
    }
    let WorkerId { workers, repeat, worker } = *id;
    let drawn = match (request.operation, request.object) {
        (Write | Delete, Object::Written(index)) => {
            hash(&[seed, hash_text(name), 5, workers, repeat, worker, index])
        }
        (Write | Delete, Object::Prepared(index)) => {
            hash(&[seed, hash_text(name), 6, request.container, index])
        }
        _ => hash(&[seed, hash_text(name), 4, workers, repeat, worker, turn]),
    };
    drawn % replicas
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// A ring of three disks, two of them behind one port, with two replicas.
    pub(crate) fn ring(ports: [u16; 2]) -> serde_json::Value {
        json!({"disks": [{"address": "127.0.0.1", "port": ports[0], "device": "d0"},
                {"address": "127.0.0.1", "port": ports[0], "device": "d1"},
                {"address": "127.0.0.1", "port": ports[1], "device": "d0"}],
            "table": [[0, 1, 2, 0], [2, 2, 1, 1]], "part_power": 2,
            "hash_prefix": "pre", "hash_suffix": "suf"})
    }

    fn parsed(json: &serde_json::Value) -> Result<Ring, String> {
        Ring::parse(&json.to_string())
    }

    #[test]
    fn partitions_are_computed_as_by_swift() {
        // struct.unpack_from(">I", swift.common.utils.hash_path("AUTH_a", "c", name,
        // raw_digest=True))[0] >> 22, with Swift's HASH_PATH_PREFIX b"pre" and HASH_PATH_SUFFIX
        // b"suf".
        let mut json = ring([1, 2]);
        json["part_power"] = json!(10);
        json["table"] = json!([vec![0; 1024]]);
        let ring = parsed(&json).expect("a ring");
        for (path, partition) in PARTITIONS {
            assert_eq!(ring.partition(path.as_bytes()), partition, "{path}");
        }
    }

    const PARTITIONS: [(&str, u32); 3] = [
        ("/AUTH_a/c/object-0000000000", 562),
        ("/AUTH_a/c/object-0000000001", 203),
        ("/AUTH_a/c/with space", 990),
    ];

    #[test]
    fn servers_are_distinct_and_disks_refer_to_them() {
        let (servers, of) = parsed(&ring([1, 2])).expect("a ring").servers().expect("addresses");
        assert_eq!(
            servers,
            ["127.0.0.1:1".parse().expect("one"), "127.0.0.1:2".parse().expect("one")]
        );
        assert_eq!(of, [0, 0, 1]);
    }

    #[test]
    fn an_incomplete_ring_is_refused() {
        for (key, value) in [
            ("table", json!([])),
            ("table", json!([[0, 1, 2, 0], [2, 2, 1]])),
            ("table", json!([[0, 1, 2, 3]])),
            ("part_power", json!(0)),
            ("part_power", json!(3)),
            ("disks", json!([{"address": "127.0.0.1", "port": 1, "device": "../x"}])),
        ] {
            let mut json = ring([1, 2]);
            json[key] = value;
            assert!(parsed(&json).is_err(), "{json}");
        }
    }

    #[test]
    fn the_secrets_of_the_hash_are_not_printed() {
        let text = format!("{:?}", parsed(&ring([1, 2])).expect("a ring"));
        assert!(!text.contains("pre") && !text.contains("suf"), "{text}");
    }

    #[test]
    fn reads_go_to_every_replica_and_deletes_to_the_disk_that_was_written() {
        use crate::workload::Operation;
        let id = WorkerId { workers: 2, repeat: 0, worker: 1 };
        let request = |operation, object| Request::whole(operation, 0, object, 1);
        let mut seen = [0; 3];
        for turn in 0..3000 {
            let read = request(Operation::Read, Object::Prepared(7));
            seen[replica(3, 9, "w", &id, turn, &read) as usize] += 1;
            let at = |operation, turn| {
                replica(3, 9, "w", &id, turn, &request(operation, Object::Written(5)))
            };
            assert_eq!(at(Operation::Write, 0), at(Operation::Delete, turn));
        }
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }
}
