//! The engine with servers that answer like Swift's object servers.

use _native::config::Config;
use _native::engine::Engine;
use _native::link::Dialer;
use _native::ring::Ring;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request: method, path and headers by lower-case name.
type Seen = (String, String, HashMap<String, String>);

/// A timestamp and a body.
type Stored = (String, Vec<u8>);

/// An object server. It stores objects by path, with their timestamps.
#[derive(Clone, Default)]
struct ObjectServer {
    objects: Arc<Mutex<HashMap<String, Stored>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<u32>>,
}

impl ObjectServer {
    fn start() -> (Self, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        let server = Self::default();
        let shared = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                *shared.connections.lock().expect("not poisoned") += 1;
                let shared = shared.clone();
                std::thread::spawn(move || shared.serve(stream.expect("a connection")));
            }
        });
        (server, port)
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let (method, path) = line
                .split_once(' ')
                .map(|(m, rest)| (m.to_owned(), rest.split(' ').next().unwrap_or("").to_owned()))
                .expect("a line");
            let mut headers = HashMap::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a header");
                let Some((name, value)) = line.trim_end().split_once(": ") else { break };
                headers.insert(name.to_lowercase(), value.to_owned());
            }
            let length =
                headers.get("content-length").map_or(0, |text| text.parse().expect("a length"));
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            let (status, body) = self.answer(&method, &path, &headers, body);
            self.seen.lock().expect("not poisoned").push((method.clone(), path, headers));
            let mut answer =
                format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len())
                    .into_bytes();
            if method != "HEAD" {
                answer.extend_from_slice(&body);
            }
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    }

    fn answer(
        &self,
        method: &str,
        path: &str,
        headers: &HashMap<String, String>,
        body: Vec<u8>,
    ) -> (u16, Vec<u8>) {
        let mut objects = self.objects.lock().expect("not poisoned");
        let time = headers.get("x-timestamp").cloned().unwrap_or_default();
        match (method, objects.get(path)) {
            ("PUT", Some((stored, _))) if *stored >= time => (409, Vec::new()),
            ("PUT", _) if !headers.contains_key("content-type") || time.len() != 16 => {
                (400, Vec::new())
            }
            ("PUT", _) => {
                objects.insert(path.into(), (time, body));
                (201, Vec::new())
            }
            (_, None) => (404, b"<html>not here</html>".to_vec()),
            ("DELETE", Some(_)) => {
                objects.remove(path);
                (204, Vec::new())
            }
            (_, Some((_, body))) => (200, body.clone()),
        }
    }
}

fn ring(ports: [u16; 2]) -> Value {
    let disk =
        |port: u16, device: &str| json!({"address": "127.0.0.1", "port": port, "device": device});
    json!({"disks": [disk(ports[0], "d0"), disk(ports[0], "d1"), disk(ports[1], "d0")],
        "table": [[0, 1, 2, 0], [2, 2, 1, 1]], "part_power": 2,
        "hash_prefix": "pre", "hash_suffix": "suf"})
}

fn engine(ring: &Value, operations: &Value) -> Engine {
    let workload = json!({
        "name": "w", "objects": {"size": 3000, "containers": 2, "per_container": 10},
        "operations": operations, "pick": "uniform", "rate_per_s": null, "verify": true,
    });
    let config = json!({
        "api": "object-server", "host": "127.0.0.1", "port": 1, "tls": false, "ca_file": null,
        "base_path": "/AUTH_test", "access_key": "", "secret_key": "", "region": "", "token": "",
        "ring": ring, "bucket_prefix": "wbo", "request_timeout_s": 10.0, "threads": 2,
        "verify": false, "seed": 3, "workload": workload,
    });
    Engine::new(Config::parse(&config.to_string()).expect("a config")).expect("an engine")
}

fn progress(engine: &Engine) -> Value {
    serde_json::to_value(engine.progress().expect("alive")).expect("JSON")
}

fn idle(engine: &Engine) -> Value {
    loop {
        let now = progress(engine);
        if now["running"] == 0 {
            return now;
        }
        std::thread::yield_now();
    }
}

/// Runs four workers until `count` more requests have succeeded, and each worker had time to reach
/// both servers: on a busy machine, three workers can be done before the fourth has begun.
fn run(engine: &Engine, servers: [&ObjectServer; 2], count: u64) -> Value {
    let connections = || servers.map(|server| *server.connections.lock().expect("not poisoned"));
    let all = connections().map(|now| now + 4);
    let before = progress(engine)["done"].as_u64().expect("a count");
    engine.open_window();
    for worker in 0..4 {
        engine.add_worker(worker, 4, 0).expect("a new worker");
    }
    loop {
        let done = progress(engine)["done"].as_u64().expect("a count") - before;
        let reached = connections().iter().zip(all).all(|(now, all)| *now >= all);
        if done >= count && (reached || done >= 100 * count) {
            break;
        }
        std::thread::yield_now();
    }
    engine.close_window();
    assert_eq!(engine.stop(Duration::from_secs(20)), Ok(0));
    progress(engine)
}

#[test]
fn every_replica_of_a_prepared_object_is_on_the_disk_that_the_ring_names() {
    let ((one, first), (other, second)) = (ObjectServer::start(), ObjectServer::start());
    let json = ring([first, second]);
    let engine = engine(&json, &json!({"read": 1.0}));
    engine.prepare(0, 20, 1, 3, None).expect("twenty objects");
    assert_eq!(idle(&engine)["done"], 40);
    let parsed = Ring::parse(&json.to_string()).expect("a ring");
    let mut wanted = [Vec::new(), Vec::new()];
    for (container, index) in (0..20).map(|number| (number % 2, number / 2)) {
        let path = format!("/AUTH_test/wbo-w-{container}/object-{index:010}");
        let partition = parsed.partition(path.as_bytes());
        for replica in 0..2 {
            let disk = parsed.disk(partition, replica);
            wanted[usize::from(disk == 2)]
                .push(format!("/{}/{partition}{path}", parsed.disks()[disk].device));
        }
    }
    for (server, mut wanted) in [one, other].into_iter().zip(wanted) {
        wanted.sort();
        let objects = server.objects.lock().expect("not poisoned");
        let mut paths: Vec<_> = objects.keys().cloned().collect();
        paths.sort();
        assert_eq!(paths, wanted);
        for (method, _, headers) in &*server.seen.lock().expect("not poisoned") {
            assert_eq!(
                (method.as_str(), &*headers["content-type"]),
                ("PUT", "application/octet-stream")
            );
            assert!(!headers.keys().any(|name| name.starts_with("x-container")), "{headers:?}");
        }
    }
}

#[test]
fn reads_spread_over_both_replicas_with_one_connection_to_each_server() {
    let ((one, first), (other, second)) = (ObjectServer::start(), ObjectServer::start());
    let engine = engine(&ring([first, second]), &json!({"read": 3.0, "head": 1.0}));
    engine.prepare(0, 20, 1, 1, None).expect("twenty objects");
    idle(&engine);
    let before = [&one, &other].map(|server| *server.connections.lock().expect("not poisoned"));
    assert_eq!(before, [1, 1]);
    let now = run(&engine, [&one, &other], 2000);
    assert_eq!((now["failed"].as_u64(), &now["last_error"]), (Some(0), &Value::Null));
    let mut replicas: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (port, server) in [(first, &one), (second, &other)] {
        assert_eq!(*server.connections.lock().expect("not poisoned"), 5);
        for (method, path, headers) in &*server.seen.lock().expect("not poisoned") {
            assert_eq!(headers["host"], format!("127.0.0.1:{port}"));
            assert!(headers.contains_key("x-auth-token"), "{headers:?}");
            if method == "GET" {
                let (disk, object) = path[1..].split_once('/').expect("a disk");
                replicas.entry(object.into()).or_default().push(format!("{port}/{disk}"));
            }
        }
    }
    assert_eq!(replicas.len(), 20);
    for (object, mut disks) in replicas {
        disks.sort();
        disks.dedup();
        assert_eq!(disks.len(), 2, "{object}: {disks:?}");
    }
}

#[test]
fn a_write_is_on_one_disk_and_deletes_find_it_there() {
    let ((one, first), (other, second)) = (ObjectServer::start(), ObjectServer::start());
    let engine = engine(&ring([first, second]), &json!({"write": 2.0, "delete": 1.0}));
    // A worker that has written nothing deletes these.
    engine.prepare(0, 20, 1, 2, None).expect("twenty objects");
    idle(&engine);
    let now = run(&engine, [&one, &other], 300);
    assert_eq!((now["failed"].as_u64(), &now["last_error"]), (Some(0), &Value::Null));
    let written: Vec<String> = [&one, &other]
        .iter()
        .flat_map(|server| server.seen.lock().expect("not poisoned").clone())
        .filter(|(method, ..)| method == "PUT")
        .map(|(_, path, _)| path.split("/AUTH_test").nth(1).expect("an account").to_owned())
        .filter(|path| path.contains("/written-"))
        .collect();
    let mut objects = written.clone();
    objects.sort();
    objects.dedup();
    assert_eq!(objects.len(), written.len(), "an object was written to two disks");
    let stored = |kind: &str| {
        [&one, &other].map(|server| {
            server
                .objects
                .lock()
                .expect("not poisoned")
                .keys()
                .filter(|path| path.contains(kind))
                .count()
        })
    };
    assert!(stored("/written-").iter().all(|&count| count > 0));
    for (what, kind) in [("written", "/written-"), ("objects", "/object-")] {
        engine.delete(what, 4).expect("valid");
        assert_eq!(idle(&engine)["failed"], 0);
        assert_eq!(stored(kind), [0, 0]);
    }
}

#[test]
fn listed_objects_are_deleted_and_no_others() {
    let ((one, first), (other, second)) = (ObjectServer::start(), ObjectServer::start());
    let engine = engine(&ring([first, second]), &json!({"read": 1.0}));
    engine.prepare(0, 20, 1, 2, None).expect("twenty objects");
    idle(&engine);
    engine.delete_listed(vec![3, 8, 19], 2).expect("three objects");
    assert_eq!(idle(&engine)["done"], 46);
    let mut left: Vec<String> = [&one, &other]
        .iter()
        .flat_map(|server| {
            server.objects.lock().expect("not poisoned").keys().cloned().collect::<Vec<_>>()
        })
        .map(|path| path.split("/wbo-w-").nth(1).expect("a container").to_owned())
        .collect();
    left.sort();
    left.dedup();
    let wanted: Vec<u64> = (0..20).filter(|number| ![3, 8, 19].contains(number)).collect();
    let mut wanted: Vec<String> =
        wanted.iter().map(|number| format!("{}/object-{:010}", number % 2, number / 2)).collect();
    wanted.sort();
    assert_eq!(left, wanted);
    assert!(engine.delete_listed(vec![20], 1).is_err());
}

#[test]
fn a_refusal_is_an_error_of_its_status() {
    let ((one, first), (_, second)) = (ObjectServer::start(), ObjectServer::start());
    let engine = engine(&ring([first, second]), &json!({"read": 1.0}));
    engine.add_worker(0, 1, 0).expect("a new worker");
    while progress(&engine)["failed"].as_u64().expect("a count") < 5
        || one.seen.lock().expect("not poisoned").is_empty()
    {
        std::thread::yield_now();
    }
    engine.stop(Duration::from_secs(20)).expect("alive");
    let now = progress(&engine);
    assert_eq!(now["errors"]["http-404"], now["failed"]);
    assert_eq!(now["done"], 0);
}

#[test]
fn a_config_that_object_servers_do_not_support_is_refused() {
    let good = json!({
        "api": "object-server", "host": "h", "port": 1, "tls": false, "ca_file": null,
        "base_path": "/A", "access_key": "", "secret_key": "", "region": "", "token": "",
        "ring": ring([1, 2]), "bucket_prefix": "wbo", "request_timeout_s": 1.0, "threads": 1,
        "verify": false, "seed": 1,
        "workload": {
            "name": "w", "objects": {"size": 1, "containers": 1, "per_container": 1},
            "operations": {"read": 1.0}, "pick": "uniform", "rate_per_s": null,
        },
    });
    assert!(Config::parse(&good.to_string()).is_ok());
    for (key, value) in [("ring", Value::Null), ("tls", json!(true)), ("api", json!("swift"))] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(Config::parse(&bad.to_string()).is_err(), "{key}");
    }
    let mut lists = good;
    lists["workload"]["operations"] = json!({"list": 1.0});
    assert!(Config::parse(&lists.to_string()).is_err());
}

#[test]
fn a_connection_is_quiet_until_its_peer_sends_something_or_closes() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let dialer = Dialer::plain(listener.local_addr().expect("it listens"));
    let open = || {
        let link = dialer.dial().expect("begun");
        (link, listener.accept().expect("made").0)
    };
    let (written, mut first_peer) = open();
    let (closed, second_peer) = open();
    let (idle, _idler) = open();
    assert!(written.is_quiet() && closed.is_quiet());
    first_peer.write_all(b"x").expect("sent");
    drop(second_peer);
    while written.is_quiet() || closed.is_quiet() {
        std::thread::yield_now();
    }
    assert!(idle.is_quiet());
}
