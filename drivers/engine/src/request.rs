//! The heads of requests, in both APIs.

use crate::config::{Api, Config};
use crate::picker::{Object, Request};
use crate::ring::Ring;
use crate::sign::Signer;
use crate::workload::{Operation, Whose, put_number, put_object_name, put_written_name};
use std::time::Duration;

/// Writes the heads of one engine's requests.
#[derive(Debug)]
pub struct Scribe {
    api: Api,
    signer: Signer,
    /// Buckets stand before the host's name, not in the path.
    is_virtual: bool,
    /// `/base`.
    base: Vec<u8>,
    /// `prefix-workload-`, to which a container's number is added.
    stem: Vec<u8>,
    /// Value of the `Host` header, before which a virtual host has the bucket's name and a dot.
    host: Vec<u8>,
    /// What every head has after `Host`: `User-Agent`, Swift's token.
    common: Vec<u8>,
    path: Vec<u8>,
    authority: Vec<u8>,
    ring: Option<Routes>,
}

/// Where the ring leads: all that a head says of a disk, and which server has it.
#[derive(Debug)]
struct Routes {
    ring: Ring,
    /// `/device/` by number of a disk.
    devices: Vec<Vec<u8>>,
    /// Value of the `Host` header by number of a disk.
    hosts: Vec<Vec<u8>>,
    servers: Vec<usize>,
}

impl Scribe {
    /// A scribe for a config; `host` is the value of the `Host` header of a bucket in the path,
    /// `servers` the number of the object server of each disk of the ring.
    #[must_use]
    pub fn new(config: &Config, host: &str, servers: &[usize]) -> Self {
        Self {
            api: config.api,
            signer: Signer::new(
                &config.access_key,
                &config.secret_key,
                &config.region,
                &config.token,
            ),
            is_virtual: config.is_virtual(),
            base: config.base_path.clone().into_bytes(),
            stem: format!("{}-{}-", config.bucket_prefix, config.workload.name).into_bytes(),
            host: host.as_bytes().to_vec(),
            common: common(config.api, &config.token),
            path: Vec::with_capacity(256),
            authority: Vec::with_capacity(256),
            ring: config.ring.as_ref().map(|ring| Routes {
                ring: ring.clone(),
                devices: ring
                    .disks()
                    .iter()
                    .map(|disk| format!("/{}/", disk.device).into_bytes())
                    .collect(),
                hosts: ring.disks().iter().map(|disk| disk.host().into_bytes()).collect(),
                servers: servers.to_vec(),
            }),
        }
    }

    /// From now on requests carry another token of Swift's; others carry none that could be
    /// replaced.
    pub fn renew(&mut self, token: &str) {
        if self.api == Api::Swift {
            self.common = common(self.api, token);
        }
    }

    /// Puts the head of `request` into `out`, which is emptied first; `whose` names written
    /// objects, `replica` says which disk is asked where the ring tells, `now` is the time since
    /// 1970. Gives the number of the server that it goes to.
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        request: &Request,
        whose: &Whose,
        replica: u64,
        now: Duration,
    ) -> usize {
        let method = match request.operation {
            Operation::Read | Operation::List => "GET",
            Operation::Write => "PUT",
            Operation::Delete => "DELETE",
            Operation::Head => "HEAD",
        };
        let (path, authority) = (&mut self.path, &mut self.authority);
        path.clear();
        path.extend_from_slice(&self.base);
        authority.clear();
        if self.is_virtual {
            authority.extend_from_slice(&self.stem);
            put_number(authority, request.container, 1);
            authority.push(b'.');
        } else {
            path.push(b'/');
            path.extend_from_slice(&self.stem);
            put_number(path, request.container, 1);
        }
        authority.extend_from_slice(&self.host);
        let query: &[u8] = match (request.operation, self.api) {
            (Operation::List, Api::S3) => b"list-type=2&max-keys=1000",
            (Operation::List, Api::Swift | Api::ObjectServer) => b"limit=1000",
            _ => b"",
        };
        if request.operation != Operation::List || self.is_virtual {
            path.push(b'/');
        }
        if request.operation != Operation::List {
            match request.object {
                Object::Prepared(index) => put_object_name(path, index),
                Object::Written(index) => put_written_name(path, whose, index),
            }
        }
        out.clear();
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
        let mut server = 0;
        if let Some(routes) = &self.ring {
            let partition = routes.ring.partition(path);
            let disk = routes.ring.disk(partition, replica);
            server = routes.servers[disk];
            out.extend_from_slice(&routes.devices[disk]);
            put_number(out, u64::from(partition), 1);
            authority.clear();
            authority.extend_from_slice(&routes.hosts[disk]);
        }
        out.extend_from_slice(path);
        if !query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(query);
        }
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        out.extend_from_slice(authority);
        out.extend_from_slice(&self.common);
        if self.api == Api::S3 {
            self.signer.put_headers(out, method, authority, path, query, now.as_secs());
        }
        if self.ring.is_some() {
            // Swift's own form: seconds and hundred-thousandths. What is older than what is there
            // is refused (409).
            out.extend_from_slice(b"X-Timestamp: ");
            put_number(out, now.as_secs(), 10);
            out.push(b'.');
            put_number(out, u64::from(now.subsec_micros() / 10), 5);
            out.extend_from_slice(b"\r\n");
        }
        if request.operation == Operation::Write {
            out.extend_from_slice(b"Content-Type: application/octet-stream\r\nContent-Length: ");
            put_number(out, request.size, 1);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        server
    }
}

/// What every head has after `Host`.
fn common(api: Api, token: &str) -> Vec<u8> {
    let token = match api {
        Api::S3 => String::new(),
        Api::Swift => format!("X-Auth-Token: {token}\r\n"),
        // Proxies hand the client's token on, and without one an object server would keep in the
        // page cache what it drops of every read that was authenticated (keep_cache_private).
        // Nobody looks at what it is.
        Api::ObjectServer => "X-Auth-Token: none\r\n".into(),
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("\r\nUser-Agent: weighbridge/{version}\r\n{token}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scribe(api: &str) -> Scribe {
        scribe_at(api, "127.0.0.1", "path")
    }

    fn scribe_at(api: &str, host: &str, addressing: &str) -> Scribe {
        let json = serde_json::json!({
            "api": api, "host": host, "addressing": addressing, "port": 8080, "tls": false, "ca_file": null, "base_path": "/v1/AUTH_a:b/",
            "access_key": "AK", "secret_key": "SK", "region": "us-east-1", "token": "tok", "bucket_prefix": "wb",
            "request_timeout_s": 1.0, "threads": 1, "verify": false, "seed": 1,
            "workload": {"name": "w", "objects": {"size": 1, "containers": 1, "per_container": 1},
                "operations": {"read": 1.0}, "pick": "uniform", "rate_per_s": null}
        });
        let config = Config::parse(&json.to_string()).expect("a config");
        Scribe::new(&config, &config.host_header(), &[])
    }

    fn write(api: &str, operation: Operation) -> String {
        let request = Request { operation, container: 3, object: Object::Prepared(7), size: 4096 };
        let mut out = Vec::new();
        scribe(api).write(
            &mut out,
            &request,
            &Whose { workers: 1, repeat: 0, worker: 0 },
            0,
            Duration::from_secs(1_401_192_000),
        );
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn swift_requests_carry_the_token_and_the_storage_path() {
        let head = write("swift", Operation::Read);
        assert!(
            head.starts_with(
                "GET /v1/AUTH_a:b/wb-w-3/object-0000000007 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"
            ),
            "{head}"
        );
        assert!(head.contains("\r\nX-Auth-Token: tok\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(!head.contains("Authorization"));
        assert!(
            write("swift", Operation::List)
                .starts_with("GET /v1/AUTH_a:b/wb-w-3?limit=1000 HTTP/1.1\r\n")
        );
    }

    #[test]
    fn a_renewed_token_replaces_the_first_and_is_none_of_s3() {
        for (api, carried) in [("swift", true), ("s3", false)] {
            let mut scribe = scribe(api);
            scribe.renew("another");
            let request = Request {
                operation: Operation::Read,
                container: 3,
                object: Object::Prepared(7),
                size: 4096,
            };
            let mut out = Vec::new();
            scribe.write(
                &mut out,
                &request,
                &Whose { workers: 1, repeat: 0, worker: 0 },
                0,
                Duration::from_secs(1_401_192_000),
            );
            let head = String::from_utf8(out).expect("text");
            assert_eq!(head.contains("\r\nX-Auth-Token: another\r\n"), carried, "{head}");
            assert!(!carried || !head.contains("tok\r\n"), "{head}");
        }
    }

    #[test]
    fn virtual_hosts_name_the_bucket_before_the_host_and_not_in_the_path() {
        let mut scribe = scribe_at("s3", "store.example", "virtual");
        let mut head = |operation, container| {
            let mut out = Vec::new();
            let request = Request { operation, container, object: Object::Prepared(7), size: 4096 };
            scribe.write(
                &mut out,
                &request,
                &Whose { workers: 1, repeat: 0, worker: 0 },
                0,
                Duration::from_secs(1_401_192_000),
            );
            String::from_utf8(out).expect("text")
        };
        let read = head(Operation::Read, 3);
        assert!(
            read.starts_with(
                "GET /v1/AUTH_a:b/object-0000000007 HTTP/1.1\r\nHost: wb-w-3.store.example:8080\r\n"
            ),
            "{read}"
        );
        let list = head(Operation::List, 12);
        assert!(
            list.starts_with("GET /v1/AUTH_a:b/?list-type=2&max-keys=1000 HTTP/1.1\r\nHost: wb-w-12.store.example:8080\r\n"),
            "{list}"
        );
        assert!(list.contains("\r\nx-amz-security-token:tok\r\nAuthorization: "), "{list}");
    }

    #[test]
    fn s3_requests_are_signed_and_writes_say_their_length() {
        let head = write("s3", Operation::Write);
        assert!(
            head.starts_with("PUT /v1/AUTH_a:b/wb-w-3/object-0000000007 HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(
            head.contains("\r\nx-amz-date: 20140527T120000Z\r\nx-amz-security-token:tok\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AK/20140527/"),
            "{head}"
        );
        assert!(
            head.contains("\r\nContent-Length: 4096\r\n") && !head.contains("X-Auth-Token"),
            "{head}"
        );
        assert!(!write("s3", Operation::Delete).contains("Content-Length"));
    }
}
