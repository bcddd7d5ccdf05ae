//! The configuration of an engine.

use crate::encryption::Encryption;
use crate::picker::Object;
use crate::ring::Ring;
use crate::signing::Signing;
use crate::workload::{Operation, Workload, share};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The API of the target.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// S3, Signature Version 4.
    S3,
    /// `OpenStack` Swift with a token.
    Swift,
    /// Requests of Swift's proxies to its object servers, found by the ring.
    #[serde(rename = "object-server")]
    ObjectServer,
}

/// Where an S3 bucket is named.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Addressing {
    /// In the path.
    #[default]
    Path,
    /// In the host name.
    Virtual,
}

/// One of several endpoints of a target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Its name in results.
    pub name: String,
    /// Its name in the `Host` header, and in its certificate.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The address that connections go to; `None`: the first of `host`.
    pub address: Option<IpAddr>,
}

/// Which endpoint a worker's requests go to.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Always the same one: workers take the endpoints in turn.
    #[default]
    PerWorker,
    /// One after the other.
    RoundRobin,
}

/// Which objects are large objects of Swift's, deleted with their segments.
#[derive(Clone, Copy, Debug)]
pub struct Segmented {
    /// Those that are written before a step.
    pub prepared: bool,
    /// Those that workers write.
    pub written: bool,
}

impl Segmented {
    /// Whether this one is.
    pub fn has(self, object: Object) -> bool {
        match object {
            Object::Prepared(_) => self.prepared,
            Object::Written(_) => self.written,
        }
    }
}

/// Most endpoints of a target.
const MOST_ENDPOINTS: usize = 64;

/// The target, the workload and how it is replayed. The fields are documented in `_native.pyi`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub api: Api,
    pub host: String,
    pub port: u16,
    pub tls: bool,
    pub ca_file: Option<String>,
    pub base_path: String,
    pub access_key: String,
    pub secret_key: String,
    pub region: String,
    #[serde(default)]
    pub addressing: Addressing,
    pub token: String,
    #[serde(default)]
    pub ring: Option<Ring>,
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    #[serde(default)]
    pub spread: Spread,
    #[serde(default)]
    pub drop_dead: bool,
    pub bucket_prefix: String,
    pub request_timeout_s: f64,
    pub threads: usize,
    #[serde(deserialize_with = "share")]
    pub verify: f64,
    pub seed: u64,
    pub workload: Workload,
    /// See [`Workload::least_in_all`].
    #[serde(skip)]
    pub least_in_all: u64,
    /// See [`Workload::most_in_all`].
    #[serde(skip)]
    pub most_in_all: Option<u64>,
    /// See [`Workload::prepared_in_all`].
    #[serde(skip)]
    pub prepared_in_all: u64,
}

impl Config {
    /// Parses a config.
    /// Errors: What is wrong with it; values of secrets are never included.
    pub fn parse(json: &str) -> Result<Self, String> {
        let mut config: Self =
            serde_json::from_str(json).map_err(|error| format!("engine config: {error}"))?;
        config.workload.check()?;
        if !(1..=64).contains(&config.threads) {
            return Err(format!("threads: {} is not 1 to 64", config.threads));
        }
        if !(config.request_timeout_s > 0.0 && config.request_timeout_s <= 86_400.0) {
            return Err(format!(
                "request_timeout_s: {} is not above 0 and up to a day",
                config.request_timeout_s
            ));
        }
        let hosts = config.endpoints.iter().flat_map(|one| [&one.name, &one.host]);
        if [&config.host, &config.token, &config.access_key, &config.region]
            .into_iter()
            .chain(hosts)
            .any(|text| text.contains(char::is_control))
        {
            return Err("host, token, access_key and region may not hold control characters".into());
        }
        // Only characters that are not escaped in a URL: paths are signed exactly as they are sent.
        let plain = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        for one in config.places() {
            let is_address = one.host.parse::<IpAddr>().is_ok();
            if config.is_virtual() && (config.api != Api::S3 || is_address) {
                return Err(format!(
                    "addressing: only S3 has virtual hosts, and only below a name: {:?} is none",
                    one.host
                ));
            }
        }
        let names: BTreeSet<_> = config.endpoints.iter().map(|one| &one.name).collect();
        if names.len() < config.endpoints.len() || config.endpoints.len() > MOST_ENDPOINTS {
            return Err(format!("endpoints: needs different names, at most {MOST_ENDPOINTS}"));
        }
        if !plain(&config.bucket_prefix)
            || !plain(&config.workload.name)
            || config.bucket_prefix.is_empty()
        {
            return Err(
                "bucket_prefix and the workload's name may hold letters, digits and -._~ only"
                    .into(),
            );
        }
        config.base_path.truncate(config.base_path.trim_end_matches('/').len());
        let path = config.base_path.as_bytes();
        if !path.is_empty()
            && (path[0] != b'/'
                || path.iter().any(|byte| !byte.is_ascii_graphic() || b"?#".contains(byte)))
        {
            return Err(format!("base_path: {:?} is not the path of a URL", config.base_path));
        }
        match &config.ring {
            Some(ring) => ring.check()?,
            None if config.api == Api::ObjectServer => {
                return Err("ring: required for object servers".into());
            }
            None => {}
        }
        if config.ring.is_some() && !config.endpoints.is_empty() {
            return Err("endpoints: a ring has its own servers".into());
        }
        if config.ring.is_some() && (config.api != Api::ObjectServer || config.tls) {
            return Err("ring: only for plain requests to object servers".into());
        }
        let plain = [Operation::Read, Operation::Write, Operation::Delete, Operation::Head];
        let other = config.workload.operations.keys().find(|one| !plain.contains(one));
        if let Some(other) = other.filter(|_| config.ring.is_some()) {
            return Err(format!("object servers have no {} operation", other.word()));
        }
        if config.ring.is_some() && config.workload.versions.is_some() {
            return Err("versions: object servers keep none".into());
        }
        if config.api != Api::S3 && config.workload.has(Operation::Tag) {
            return Err("tag: only S3 has tags of objects".into());
        }
        if config.api != Api::S3 && config.workload.signing != Signing::default() {
            return Err("signing: only S3 requests are signed".into());
        }
        if config.api != Api::S3 && config.workload.encryption != Encryption::None {
            return Err("encryption: only S3 requests ask for it".into());
        }
        config.least_in_all = config.workload.least_in_all();
        config.most_in_all = config.workload.most_in_all();
        config.prepared_in_all = config.workload.prepared_in_all();
        config.verify = config.verify.max(config.workload.verify);
        Ok(config)
    }

    /// Which objects have segments.
    pub fn segmented(&self) -> Segmented {
        let has = |operation| self.api == Api::Swift && self.workload.has(operation);
        Segmented { prepared: has(Operation::ReadPart), written: has(Operation::WriteMultipart) }
    }

    /// Whether buckets are named in the host name.
    pub fn is_virtual(&self) -> bool {
        self.addressing == Addressing::Virtual
    }

    /// Where requests go: the endpoints, or the only one.
    pub fn places(&self) -> Vec<Endpoint> {
        if self.endpoints.is_empty() {
            let (name, host) = (self.host.clone(), self.host.clone());
            return vec![Endpoint { name, host, port: self.port, address: None }];
        }
        self.endpoints.clone()
    }

    /// The name connections to an endpoint are made to. With virtual hosts that of the first
    /// bucket: a connection serves all of them, each request with the right `Host`.
    pub fn peer(&self, place: &Endpoint) -> String {
        if self.is_virtual() {
            format!("{}-{}-0.{}", self.bucket_prefix, self.workload.name, place.host)
        } else {
            place.host.clone()
        }
    }

    /// How many copies of an object the engine writes one by one, each to a disk.
    pub fn copies(&self) -> u64 {
        self.ring.as_ref().map_or(1, Ring::replicas)
    }

    /// The address requests to an endpoint go to: its own, or the first of the name.
    /// Errors: The name cannot be resolved.
    pub fn address(&self, place: &Endpoint) -> Result<SocketAddr, String> {
        if let Some(address) = place.address {
            return Ok(SocketAddr::new(address, place.port));
        }
        let peer = self.peer(place);
        let mut found = (peer.as_str(), place.port)
            .to_socket_addrs()
            .map_err(|error| format!("{peer}:{}: {error}", place.port))?;
        found.next().ok_or_else(|| format!("{peer}: the name has no address"))
    }

    /// Values of the `Host` header, by endpoint, for a bucket in the path; the default port of the
    /// scheme is left out, as other signers do.
    pub fn host_headers(&self) -> Vec<String> {
        let header = |Endpoint { host, port, .. }: Endpoint| {
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            let is_usual = port == if self.tls { 443 } else { 80 };
            if is_usual { host } else { format!("{host}:{port}") }
        };
        self.places().into_iter().map(header).collect()
    }
}
