//! The null target: an S3 and Swift server that costs next to nothing, for calibrating drivers. It
//! stores names, sizes and, of bodies that differ from the content of its seed, the first 64 KiB;
//! the rest is served as the seed's content. Complete objects are written, read, listed and
//! deleted: copies, parts, versions and whatever else a query asks for are refused, and conditions
//! and ranges are ignored.

mod api;
mod connection;
mod s3;
mod server;
mod store;

pub use server::Server;

use serde::Deserialize;
use std::io::Write as _;

/// The configuration of a null target. The fields are documented in `_native.pyi`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default = "loopback")]
    pub host: String,
    #[serde(default)]
    pub port: u16,
    #[serde(default = "one")]
    pub threads: usize,
    #[serde(default)]
    pub delay_ms: f64,
    #[serde(default)]
    pub delay_spread: f64,
    #[serde(default)]
    pub fail_share: f64,
    #[serde(default = "unavailable")]
    pub fail_status: u16,
    #[serde(default)]
    pub stall_after_s: Option<f64>,
    #[serde(default)]
    pub stall_s: f64,
    #[serde(default)]
    pub seed: u64,
    #[serde(default = "user")]
    pub user: String,
    #[serde(default = "key")]
    pub key: String,
}

fn loopback() -> String {
    "127.0.0.1".into()
}

fn one() -> usize {
    1
}

fn unavailable() -> u16 {
    503
}

fn user() -> String {
    "test:tester".into()
}

fn key() -> String {
    "testing".into()
}

impl Config {
    /// Parses a config.
    /// Errors: What is wrong with it.
    pub fn parse(json: &str) -> Result<Self, String> {
        let config: Self =
            serde_json::from_str(json).map_err(|error| format!("null target config: {error}"))?;
        let seconds = |name: &str, value: f64| {
            if (0.0..=3600.0).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name}: {value} is not 0 up to an hour"))
            }
        };
        seconds("delay_ms", config.delay_ms / 1000.0)?;
        seconds("stall_s", config.stall_s)?;
        config.stall_after_s.map_or(Ok(()), |after| seconds("stall_after_s", after))?;
        for (name, share) in
            [("delay_spread", config.delay_spread), ("fail_share", config.fail_share)]
        {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("{name}: {share} is not 0 to 1"));
            }
        }
        if !(400..=599).contains(&config.fail_status) {
            return Err(format!("fail_status: {} is not 400 to 599", config.fail_status));
        }
        if !(1..=64).contains(&config.threads) {
            return Err(format!("threads: {} is not 1 to 64", config.threads));
        }
        Ok(config)
    }
}

/// Serves until SIGINT or SIGTERM; prints one line of JSON with the address when it is ready.
/// Errors: The system refused a resource.
pub fn serve_until_signal(config: &Config) -> Result<(), String> {
    // Before any thread is started, so that no thread receives the signals instead.
    let signals =
        crate::sys::TerminationSignals::block().map_err(|error| format!("signals: {error}"))?;
    let server = Server::start(config)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{{\"listening\": \"http://{}\"}}", server.address())
        .and_then(|()| out.flush())
        .map_err(|error| format!("stdout: {error}"))?;
    drop(out);
    signals.wait().map_err(|error| format!("signals: {error}"))?;
    Ok(())
}
