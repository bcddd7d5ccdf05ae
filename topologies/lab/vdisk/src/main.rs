//! `vdisk serve FOLDER`, `vdisk try FOLDER`, `vdisk simulate`: see USAGE.

use nix::sys::signal::{SigSet, Signal};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vdisk::counts::Counts;
use vdisk::dirty::BLOCK;
use vdisk::disk::Disk;
use vdisk::model::Model;
use vdisk::mount::{Files, Open, mount};
use vdisk::simulate::{Load, simulate};
use vdisk::store::Store;

const USAGE: &str = "\
usage: vdisk serve FOLDER   mount disks at a folder; the first line of stdin has them as JSON:
                            {\"disks\": [{\"name\", \"file\", \"bytes\", \"model\"}]}
       vdisk try FOLDER     only show that a file system can be mounted there
       vdisk simulate       for each line of stdin, {\"model\", \"bytes\", \"load\"}, a line of what such a
                            disk does under that load
`serve` makes each file, which has no name afterwards, says {\"ready\": true}, and takes orders as
lines on stdin: {\"order\": \"pace\", \"on\": BOOL} (disks take the time of their model; at first they take
none) and {\"order\": \"count\"}. It goes on when stdin ends. SIGTERM: disks take no time from now on,
and the program ends when the last of them is closed.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    disks: Vec<WantedDisk>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedDisk {
    name: String,
    file: PathBuf,
    bytes: u64,
    model: Model,
}

#[derive(Deserialize)]
#[serde(tag = "order", rename_all = "lowercase", deny_unknown_fields)]
enum Order {
    Pace { on: bool },
    Count,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Ready(bool),
    Paced(bool),
    Disks(Vec<Counts>),
    Error(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    model: Model,
    bytes: u64,
    load: Load,
}

fn main() -> ExitCode {
    // A thread that panics leaves disks that nobody serves: the program ends, and with it all I/O.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("vdisk: {panic}");
        std::process::exit(101);
    }));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["serve", folder] => serve(Path::new(folder)),
        ["try", folder] => mount(Files::new(Vec::new(), Open::default(), || ()), Path::new(folder))
            .map(drop)
            .map_err(|error| format!("cannot mount at {folder}: {error}")),
        ["simulate"] => answer_questions(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("vdisk: {what}");
            ExitCode::FAILURE
        }
    }
}

fn say(said: &impl Serialize) -> Result<(), String> {
    let mut line = serde_json::to_string(said).map_err(|error| error.to_string())?;
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(line.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("nobody reads what it says: {error}"))
}

fn answer_questions() -> Result<(), String> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        let asked: Question =
            serde_json::from_str(&line).map_err(|error| format!("stdin: {error}"))?;
        asked.model.check()?;
        match simulate(&asked.model, asked.bytes, &asked.load) {
            Ok(figures) => say(&figures)?,
            Err(what) => say(&Said::Error(what))?,
        }
    }
    Ok(())
}

fn start(wanted: &WantedDisk) -> Result<Arc<Disk>, String> {
    let WantedDisk { name, file, bytes, model } = wanted;
    model.check().map_err(|what| format!("{name}: {what}"))?;
    let path = file.display();
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(file);
    let opened = made.map_err(|error| format!("{name}: {path} cannot be made: {error}"))?;
    // Without a name, so that its space is free as soon as this program ends.
    std::fs::remove_file(file).map_err(|error| format!("{name}: {path}: {error}"))?;
    // The cache works on complete blocks, also where the disk ends within one.
    opened
        .set_len(bytes.next_multiple_of(BLOCK))
        .map_err(|error| format!("{name}: {path} cannot have {bytes} bytes: {error}"))?;
    Disk::start(name.clone(), *bytes, model, Store::new(opened))
        .map_err(|error| format!("{name}: {error}"))
}

fn serve(folder: &Path) -> Result<(), String> {
    // Before any thread starts: all inherit it. Ctrl-C is the conductor's, which ends this in turn.
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().map_err(|error| format!("signals: {error}"))?;
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|error| format!("the kernel's timers: {error}"))?;
    // Memory that this program needs must not wait for a write-back to its own disks. Root in a
    // container may lack the right (CAP_SYS_RESOURCE); then only a full memory is a danger.
    if let Err(error) = rustix::process::configure_io_flusher_behavior(true) {
        eprintln!("vdisk: not known to the kernel as serving disks (PR_SET_IO_FLUSHER): {error}");
    }

    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| format!("stdin: {error}"))?;
    let wanted: Wanted = serde_json::from_str(&line).map_err(|error| format!("stdin: {error}"))?;
    let disks: Vec<_> = wanted.disks.iter().map(start).collect::<Result<_, _>>()?;
    let (open, ending) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let closed = ending.clone();
    let files = Files::new(disks.clone(), open.clone(), move || {
        if closed.load(Ordering::SeqCst) {
            std::process::exit(0);
        }
    });
    let session = mount(files, folder)
        .map_err(|error| format!("cannot mount at {}: {error}", folder.display()))?;
    let ended = disks.clone();
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map_err(|error| format!("no thread for {name}: {error}"))
    };
    spawn("signals", Box::new(move || wait_for_end(signals, &ended, &ending, &open)))?;
    say(&Said::Ready(true))?;
    spawn("orders", Box::new(move || take_orders(&disks)))?;
    session.run().map_err(|error| format!("the file system ended: {error}"))?;
    Err("the file system was unmounted by somebody else".to_owned())
}

fn wait_for_end(signals: SigSet, disks: &[Arc<Disk>], ending: &AtomicBool, open: &AtomicU64) {
    while signals.wait() != Ok(Signal::SIGTERM) {}
    for disk in disks {
        disk.pace(false);
    }
    ending.store(true, Ordering::SeqCst);
    if open.load(Ordering::SeqCst) == 0 {
        std::process::exit(0);
    }
}

/// Until stdin ends or nobody reads the answers: whoever gave orders has left the disks to run.
fn take_orders(disks: &[Arc<Disk>]) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let said = match serde_json::from_str(&line) {
            Ok(Order::Pace { on }) => {
                for disk in disks {
                    disk.pace(on);
                }
                Said::Paced(on)
            }
            Ok(Order::Count) => Said::Disks(disks.iter().map(|disk| disk.counts()).collect()),
            Err(error) => Said::Error(format!("not an order: {error}")),
        };
        if say(&said).is_err() {
            return;
        }
    }
}
