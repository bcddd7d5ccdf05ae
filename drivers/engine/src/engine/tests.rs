use super::*;
use crate::null;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn target() -> null::Server {
    target_with(&json!({"seed": 3}))
}

fn target_with(config: &serde_json::Value) -> null::Server {
    let config = null::Config::parse(&config.to_string()).expect("a config");
    let server = null::Server::start(&config).expect("a free port");
    for container in 0..2 {
        let mut stream = TcpStream::connect(server.address()).expect("it listens");
        write!(stream, "PUT /wb-w-{container} HTTP/1.1\r\nConnection: close\r\n\r\n")
            .expect("sent");
        stream.read_to_end(&mut Vec::new()).expect("answered");
    }
    server
}

fn engine(
    server: &null::Server,
    operations: &serde_json::Value,
    size: u64,
    threads: usize,
) -> Engine {
    let workload = json!({
        "name": "w", "objects": {"size": size, "containers": 2, "per_container": 5},
        "operations": operations, "pick": "uniform", "rate_per_s": null, "verify": true,
    });
    let config = json!({
        "api": "s3", "host": "127.0.0.1", "port": server.address().port(), "tls": false,
        "ca_file": null, "base_path": "", "access_key": "a", "secret_key": "b", "region": "r",
        "token": "", "bucket_prefix": "wb", "request_timeout_s": 10.0, "threads": threads,
        "verify": false, "seed": 3, "workload": workload,
    });
    Engine::new(Config::parse(&config.to_string()).expect("a config")).expect("an engine")
}

fn idle(engine: &Engine) -> Progress {
    assert!(engine.shared.wait_idle(Duration::from_secs(20)), "still busy");
    engine.progress().expect("alive")
}

/// Starts workers, and waits until each has finished a request.
fn start(engine: &Engine, workers: u64) {
    for worker in 0..workers {
        engine.add_worker(worker, workers, 0).expect("a new worker");
    }
    while engine.started() < workers {
        std::thread::yield_now();
    }
}

fn await_done(engine: &Engine, requests: u64) {
    while engine.progress().expect("alive").done < requests {
        std::thread::yield_now();
    }
}

#[test]
fn written_objects_are_read_back_and_deleted() {
    let server = target();
    for size in [0, 4096, 2_000_000] {
        let engine = engine(
            &server,
            &json!({"read": 2.0, "write": 1.0, "delete": 1.0, "list": 1.0, "head": 1.0}),
            size,
            2,
        );
        engine.prepare(0, 10, 1, 3, None).expect("ten objects");
        assert_eq!(idle(&engine).done, 10);
        engine.open_window();
        start(&engine, 4);
        await_done(&engine, 200);
        engine.close_window();
        assert_eq!(engine.stop(Duration::from_secs(20)), Ok(0));
        engine.delete("written", 4).expect("valid");
        idle(&engine);
        engine.delete("objects", 4).expect("valid");
        let progress = idle(&engine);
        assert_eq!((progress.failed, progress.last_error), (0, None));
        assert!(lock(&engine.shared.written).is_empty());
    }
}

#[test]
fn requests_completed_after_the_window_count_as_outstanding() {
    let server = target();
    let engine = engine(&server, &json!({"write": 1.0}), 100, 3);
    engine.open_window();
    start(&engine, 6);
    await_done(&engine, 100);
    engine.close_window();
    let closed = serde_json::to_value(engine.snapshot()).expect("JSON");
    await_done(&engine, 1100);
    engine.close_window();
    assert_eq!(serde_json::to_value(engine.snapshot()).expect("JSON"), closed);
    let tally = &closed["tallies"][0];
    // Each of the six was busy for the length of the window, no more and no less.
    let busy_us = ["sum_us", "outstanding_us"]
        .map(|key| tally[key].as_u64().expect("a count"))
        .iter()
        .sum::<u64>();
    let window_us = closed["window_s"].as_f64().expect("a length") * 1e6;
    assert!(
        (busy_us as f64) < 6.0 * window_us + 6000.0,
        "{busy_us} us in six windows of {window_us} us"
    );
    assert_eq!((tally["failed_us"].as_u64(), tally["before_us"].as_u64()), (Some(0), Some(0)));
    assert!(
        tally["in_flight"].is_string()
            && tally["in_flight_max_us"].as_u64() <= tally["outstanding_us"].as_u64()
    );
    assert!(closed["begun"].is_null() && closed["behind_us"].is_null());
}

#[test]
fn requests_that_end_while_the_window_is_being_closed_count_as_outstanding() {
    let server = target();
    let engine = engine(&server, &json!({"write": 1.0}), 100, 2);
    start(&engine, 8);
    let mut outstanding = 0;
    for _ in 0..100 {
        engine.open_window();
        let before = engine.progress().expect("alive").done;
        await_done(&engine, before + 50);
        engine.close_window();
        let snapshot = serde_json::to_value(engine.snapshot()).expect("JSON");
        let Some(text) = snapshot["tallies"][0]["in_flight"].as_str() else { continue };
        let bytes = STANDARD.decode(text).expect("base64");
        let ages: Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
        outstanding += ages.len();
    }
    // Each of the eight has a request outstanding, but for the moment between two.
    assert!((640..=800).contains(&outstanding), "{outstanding} of 800");
}

#[test]
fn a_request_of_a_leaving_worker_is_not_outstanding_when_the_window_closes() {
    [false, true].into_iter().for_each(check_leaving);
}

/// `census`: whether requests end before what is outstanding is counted, or after.
fn check_leaving(census: bool) {
    let server = target_with(&json!({"seed": 3, "delay_ms": 500.0}));
    let engine = engine(&server, &json!({"write": 1.0}), 100, 1);
    start(&engine, 2);
    engine.open_window();
    for worker in 0..2 {
        engine.remove_worker(worker);
    }
    let thread = &engine.shared.threads[0];
    while !lock(&thread.commands).is_empty() {
        std::thread::yield_now();
    }
    // The thread holds it while it handles the commands that it took: both are leaving now.
    drop(lock(&thread.recorder));
    if census {
        engine.close_window();
    } else {
        assert!(engine.shared.window.close());
        idle(&engine);
    }
    let snapshot = serde_json::to_value(engine.snapshot()).expect("JSON");
    let tally = &snapshot["tallies"][0];
    assert_eq!((tally["outstanding_us"].as_u64(), &tally["in_flight"]), (Some(0), &json!(null)));
}

#[test]
fn a_stall_lasts_over_all_tries_until_one_succeeds() {
    let server =
        target_with(&json!({"seed": 3, "delay_ms": 100.0, "fail_share": 0.7, "fail_status": 503}));
    let engine = engine(&server, &json!({"write": 1.0}), 100, 1);
    engine.open_window();
    start(&engine, 2);
    await_done(&engine, 8);
    engine.close_window();
    let snapshot = serde_json::to_value(engine.snapshot()).expect("JSON");
    assert!(snapshot["stall_us"].as_u64() >= Some(200_000), "{}", snapshot["stall_us"]);
    let seconds = snapshot["seconds"].as_array().expect("seconds");
    let of = |key: &str| -> Vec<u64> {
        seconds.iter().map(|one| one[key].as_u64().expect("a count")).collect()
    };
    assert!(of("errors").iter().sum::<u64>() > 0);
    for second in seconds {
        assert_eq!(second["failures"]["http-503"].as_u64().unwrap_or(0), second["errors"]);
    }
    // Workers pause 10 ms after failures; else each has a request outstanding.
    let later = &of("in_flight")[1..];
    assert!(!later.is_empty() && later.iter().all(|&count| count <= 2), "{later:?}");
    assert!(later.iter().sum::<u64>() > 0, "{later:?}");
}

#[test]
fn dropping_a_busy_engine_ends_its_threads() {
    let server = target();
    let engine = engine(&server, &json!({"write": 1.0}), 100_000, 2);
    start(&engine, 8);
    let shared = Arc::downgrade(&engine.shared);
    drop(engine);
    assert!(shared.upgrade().is_none());
}
