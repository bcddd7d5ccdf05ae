//! `fastcgi_responder FILE`, or `fastcgi_responder --listen PLACE --origin ADDRESS:PORT`: see
//! USAGE.

use responder::origin::Origins;
use responder::server::{Listener, serve, serve_stats};
use responder::stats::Stats;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
usage: fastcgi_responder FILE
       fastcgi_responder --listen PLACE --origin ADDRESS:PORT [--origin ...]
                         [--stats ADDRESS:PORT] [--keep N] [--timeout-s N]
  --listen     where the web server connects: a path for a unix socket, or ADDRESS:PORT
  --origin     an HTTP server; requests go to each in turn
  --stats      everyone who connects here gets the counters as a line of JSON
  --keep       idle connections kept to each origin (1024)
  --timeout-s  how long to wait for an answer, or for space to send a request (300)
FILE has the same options, one a line, without the dashes: `listen /run/responder.sock`.
";

struct Options {
    listen: String,
    origins: Vec<SocketAddr>,
    stats: Option<String>,
    keep: usize,
    timeout_s: u64,
}

/// The options of a file in the form of the command line.
fn read(path: &str) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines
        .flat_map(|line| {
            format!("--{line}")
                .splitn(2, ' ')
                .map(|word| word.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .collect())
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        listen: String::new(),
        origins: Vec::new(),
        stats: None,
        keep: 1024,
        timeout_s: 300,
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name}: a value is missing"))?;
        let wrong = |what: &str| format!("{name} {value}: {what}");
        match name.as_str() {
            "--listen" => options.listen = value,
            "--origin" => options
                .origins
                .push(value.parse().map_err(|_| wrong("not an address with a port"))?),
            "--stats" => options.stats = Some(value),
            "--keep" => options.keep = value.parse().map_err(|_| wrong("not a number"))?,
            "--timeout-s" => {
                let parsed = value.parse().ok().filter(|&timeout_s| timeout_s > 0);
                options.timeout_s = parsed.ok_or_else(|| wrong("not a number above 0"))?;
            }
            _ => return Err(format!("{name}: no such option")),
        }
    }
    if options.listen.is_empty() || options.origins.is_empty() {
        return Err("--listen and --origin are needed".to_owned());
    }
    Ok(options)
}

/// Every request needs two descriptors, and programs are often started with 1024.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // Refused only where the limit is enforced; further connections are then refused with a
    // message.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match arguments.as_slice() {
        [path] if !path.starts_with('-') => read(path).and_then(|lines| parse(lines.into_iter())),
        _ => parse(arguments.into_iter()),
    };
    let options = match options {
        Ok(options) => options,
        Err(what) => {
            eprint!("fastcgi_responder: {what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    raise_descriptors();
    let stats: &'static Stats = Box::leak(Box::default());
    let timeout = Duration::from_secs(options.timeout_s);
    let origins = Box::leak(Box::new(Origins::new(options.origins, options.keep, timeout, stats)));
    let listener = match Listener::new(&options.listen) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("fastcgi_responder: cannot listen at {}: {error}", options.listen);
            return ExitCode::FAILURE;
        }
    };
    if let Some(place) = &options.stats {
        if let Err(error) = serve_stats(place, stats) {
            eprintln!("fastcgi_responder: cannot serve counters at {place}: {error}");
            return ExitCode::FAILURE;
        }
    }
    serve(&listener, origins, stats)
}
