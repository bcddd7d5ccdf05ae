//! The heads of requests, in both APIs.

use crate::body::{Framing, Said};
use crate::config::{Api, Config, Segmented};
use crate::content::Content;
use crate::encryption::Asked;
use crate::flow::Flow;
use crate::options::Listing;
use crate::picker::{Object, Part, Request};
use crate::ring::Ring;
use crate::sign::keys::Keys;
use crate::sign::{Signer, Told};
use crate::signing::{Auth, Signing};
use crate::workload::{Operation, WorkerId, put_number, put_object_name, put_written_name};
use std::{sync::Arc, time::Duration};

mod bodies;
mod queries;

use queries::metadata;

/// Writes the heads of one engine's requests.
#[derive(Debug)]
pub struct HeadWriter {
    api: Api,
    signer: Signer,
    signing: Signing,
    encryption: Asked,
    content: Arc<Content>,
    /// The query of a presigned URL.
    presigned: Vec<u8>,
    /// Buckets are named in the host name, not in the path.
    is_virtual: bool,
    /// `/base`.
    base: Vec<u8>,
    /// `prefix-workload-`, followed by a container's number.
    stem: Vec<u8>,
    /// Values of the `Host` header, by endpoint; a virtual host has the bucket's name and a dot
    /// before it.
    hosts: Vec<Vec<u8>>,
    /// What follows `Host` in every head: `User-Agent`, Swift's token.
    common: Vec<u8>,
    path: Vec<u8>,
    authority: Vec<u8>,
    query: Vec<u8>,
    /// The body of the last request, if it is not content of an object.
    body: Vec<u8>,
    /// What complete listings list.
    listing: Listing,
    versions: u64,
    /// Which objects are deleted with their segments.
    segments: Segmented,
    /// Length of a part of an upload.
    part_bytes: u64,
    ring: Option<Routes>,
}

/// The ring, and what a head needs of each disk.
#[derive(Debug)]
struct Routes {
    ring: Ring,
    /// `/device/` by number of a disk.
    devices: Vec<Vec<u8>>,
    /// Value of the `Host` header by number of a disk.
    hosts: Vec<Vec<u8>>,
    servers: Vec<usize>,
}

impl HeadWriter {
    /// Makes a writer for a config; `hosts` are the values of the `Host` header for a bucket in the
    /// path, by endpoint, `servers` the number of the object server of each disk of the ring.
    pub fn new(config: &Config, hosts: &[String], servers: &[usize]) -> Self {
        Self {
            api: config.api,
            signer: Signer::new(
                &config.access_key,
                &config.secret_key,
                &config.region,
                &config.token,
            ),
            signing: config.workload.signing,
            encryption: Asked::of(config.workload.encryption, config.seed),
            content: Content::of(config.seed, config.workload.objects.compressible),
            presigned: Vec::new(),
            is_virtual: config.is_virtual(),
            base: config.base_path.clone().into_bytes(),
            stem: format!("{}-{}-", config.bucket_prefix, config.workload.name).into_bytes(),
            hosts: hosts.iter().map(|host| host.as_bytes().to_vec()).collect(),
            common: common(config.api, &config.token),
            path: Vec::with_capacity(256),
            authority: Vec::with_capacity(256),
            query: Vec::with_capacity(256),
            body: Vec::new(),
            listing: config.workload.listing.clone().unwrap_or_default(),
            versions: config.workload.versions(),
            segments: config.segmented(),
            part_bytes: config.workload.multipart.map_or(u64::MAX, |multipart| multipart.part),
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

    /// Signs with other keys, or sends another Swift token, from now on; object servers know none.
    pub fn renew(&mut self, keys: &Keys) {
        match self.api {
            Api::S3 => self.signer.renew(keys),
            Api::Swift => self.common = common(self.api, &keys.token),
            Api::ObjectServer => {}
        }
    }

    /// The body of the request whose head was written last, if it is not content of an object.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Writes the head of `request` into `out`, which is cleared first; `id` names written
    /// objects, `place` is the number of the replica if there is a ring, else of the endpoint,
    /// `now` is the time since 1970, `flow` has what earlier requests of the operation gave.
    /// Returns the number of the server that it goes to.
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        request: &Request,
        id: &WorkerId,
        place: u64,
        now: Duration,
        flow: &Flow,
    ) -> usize {
        let method = match request.part {
            Part::Finish if self.api != Api::S3 => "PUT",
            Part::Finish => "POST",
            Part::Note(_) if self.api != Api::S3 => "POST",
            _ => method(request),
        };
        let mut server = if self.ring.is_some() { 0 } else { place as usize };
        self.put_path(request, id, server);
        self.body.clear();
        let is_tag = request.operation == Operation::Tag;
        if is_tag || matches!(request.part, Part::Several(_) | Part::Finish) {
            self.put_body(request, id, flow);
        }
        self.put_query(request, flow);
        let auth = if self.api == Api::S3 { self.signing.auth } else { Auth::None };
        if auth == Auth::Query {
            self.presigned.clear();
            let (into, authority) = (&mut self.presigned, &self.authority);
            let (path, query) = (&self.path, &self.query);
            self.signer.put_query(into, method, authority, path, query, now.as_secs());
            std::mem::swap(&mut self.query, &mut self.presigned);
        }
        out.clear();
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
        if let Some(routes) = &self.ring {
            let partition = routes.ring.partition(&self.path);
            let disk = routes.ring.disk(partition, place);
            server = routes.servers[disk];
            out.extend_from_slice(&routes.devices[disk]);
            put_number(out, u64::from(partition), 1);
            self.authority.clear();
            self.authority.extend_from_slice(&routes.hosts[disk]);
        }
        out.extend_from_slice(&self.path);
        if !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        out.extend_from_slice(&self.authority);
        out.extend_from_slice(&self.common);
        if auth == Auth::Header {
            let (copy_source, metadata) = (&self.copy_source(request, id), &metadata(request));
            if matches!(self.query.as_slice(), b"uploads" | b"delete" | b"tagging") {
                self.query.push(b'='); // as it is signed
            }
            let (authority, path, query) = (&self.authority, &self.path, &self.query);
            let body = request.operation.puts().then_some(request.size);
            let content = &self.content.of_version(request.version(self.versions));
            let said = Said::of(self.signing, body, content);
            let encryption = self.encryption.fields_of(request);
            let told = Told { copy_source, encryption, metadata, ..said.told() };
            let signer = &mut self.signer;
            signer.put_headers(out, method, authority, path, query, now.as_secs(), &told);
        }
        if self.ring.is_some() {
            // Swift's format: seconds and hundred-thousandths. A request older than the stored
            // object is refused (409).
            out.extend_from_slice(b"X-Timestamp: ");
            put_number(out, now.as_secs(), 10);
            out.push(b'.');
            put_number(out, u64::from(now.subsec_micros() / 10), 5);
            out.extend_from_slice(b"\r\n");
        }
        self.put_fields(out, request, id, flow);
        out.extend_from_slice(b"\r\n");
        server
    }

    /// How the body of the write whose head was written last is framed.
    pub fn framing(&self) -> Option<Framing> {
        Framing::of(self.signing, || self.signer.chunk_signer())
    }

    /// Writes the path of a request, and the value of its `Host` header.
    fn put_path(&mut self, request: &Request, id: &WorkerId, server: usize) {
        let of_bucket = request.operation.names_container();
        let (path, authority) = (&mut self.path, &mut self.authority);
        path.clear();
        path.extend_from_slice(&self.base);
        authority.clear();
        if matches!(request.part, Part::Several(_)) && self.api != Api::S3 {
            authority.extend_from_slice(&self.hosts[server]);
            path.push(b'/'); // of the account: names include the container
            return;
        }
        if self.is_virtual {
            authority.extend_from_slice(&self.stem);
            put_number(authority, request.container, 1);
            authority.push(b'.');
        } else {
            path.push(b'/');
            path.extend_from_slice(&self.stem);
            put_number(path, request.container, 1);
        }
        authority.extend_from_slice(&self.hosts[server]);
        if !of_bucket || self.is_virtual {
            path.push(b'/');
        }
        if !of_bucket {
            put_name(path, request.object, id);
            if let (Part::Piece { number, .. }, true) = (request.part, self.api != Api::S3) {
                path.push(b'/');
                put_number(path, number, 8);
            }
        }
    }
}

fn method(request: &Request) -> &'static str {
    match (request.operation, request.part) {
        (_, Part::Begin | Part::Several(_)) => "POST",
        (Operation::Copy | Operation::WritePart, _) | (_, Part::Piece { .. } | Part::Note(_)) => {
            "PUT"
        }
        (operation, _) if operation.puts() => "PUT",
        (Operation::Delete, _) => "DELETE",
        (Operation::Head, _) => "HEAD",
        _ => "GET",
    }
}

/// Appends the name of an object; `id` is the worker that wrote it.
fn put_name(out: &mut Vec<u8>, object: Object, id: &WorkerId) {
    match object {
        Object::Prepared(index) => put_object_name(out, index),
        Object::Written(index) => put_written_name(out, id, index),
    }
}

/// Adds to a complete head that its connection ends with this request.
pub fn put_close(head: &mut Vec<u8>) {
    head.truncate(head.len() - b"\r\n".len());
    head.extend_from_slice(b"Connection: close\r\n\r\n");
}

/// What follows `Host` in every head.
fn common(api: Api, token: &str) -> Vec<u8> {
    let token = match api {
        Api::S3 => String::new(),
        Api::Swift if token.is_empty() => String::new(),
        Api::Swift => format!("X-Auth-Token: {token}\r\n"),
        // As proxies, which pass the client's token on. Without a token an object server would keep
        // authenticated reads in the page cache, which it otherwise drops (keep_cache_private). The
        // value is not checked.
        Api::ObjectServer => "X-Auth-Token: none\r\n".into(),
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("\r\nUser-Agent: weighbridge/{version}\r\n{token}").into_bytes()
}

#[cfg(test)]
mod tests;
