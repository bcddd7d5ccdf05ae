//! `vdisk serve FOLDER`, `vdisk try FOLDER`, `vdisk simulate`: see USAGE.

use nix::sys::signal::{SigSet, Signal};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vdisk::counts::Counts;
use vdisk::dirty::BLOCK;
use vdisk::disk::Disk;
use vdisk::failing::FailingDisk;
use vdisk::journal::{Journal, Mark};
use vdisk::model::Model;
use vdisk::mount::{Device, Files, Open, mount};
use vdisk::recorded::RecordedDisk;
use vdisk::replay::AfterCut;
use vdisk::simulate::{Load, simulate};
use vdisk::store::Store;

/// How long the last descriptors of disks may take to be closed.
const CLOSING: Duration = Duration::from_secs(5);
const USAGE: &str = "\
usage: vdisk serve FOLDER   mount disks at a folder; the first line of stdin has them as JSON:
                            {\"disks\": [{\"name\", \"file\", \"bytes\", \"model\"}], \"journal\": FILE};
                            with a journal (optional), power can be cut and models take no time
       vdisk try FOLDER     only show that a file system can be mounted there
       vdisk simulate       for each line of stdin, {\"model\", \"bytes\", \"load\"}, a line of what such a
                            disk does under that load
`serve` makes each file, which has no name afterwards, says {\"ready\": true}, and takes orders as
lines on stdin: {\"order\": \"pace\", \"on\": BOOL} (disks take the time of their model; at first they take
none), {\"order\": \"count\"} and {\"order\": \"fail\", \"disk\": NAME, \"on\": BOOL} (all I/O to a disk
is an error, or it answers again with all that it had). It goes on when stdin ends. SIGTERM: disks take no time from now on,
and the program ends when the last of them is closed.

Orders of disks with a journal, in this order; the answer repeats the word:
  {\"order\": \"record\", \"flushes\": BOOL}   remember each write and flush from now on; once. Without
                      flushes those are answered, and a cut takes what they flushed too
  {\"order\": \"mark\"}     a number for this instant on all disks, from 1 on, and what they were given
  {\"order\": \"cut\"}      all I/O fails from now on; what is written later is in no mark
  {\"order\": \"restore\", \"mark\": N, \"keep\": P, \"seed\": S}   once every disk is closed (it waits 5 s),
                      serve again as a power cut at mark N leaves disks: with all that was flushed
                      and, by a chance of P for each 4 KiB, a version of what was not
`restore` and `cut` can be repeated, with any marks: what is written after `restore` is gone then.
Discards are refused from `record` on. If a file fails, all I/O and all these orders do.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    disks: Vec<WantedDisk>,
    journal: Option<PathBuf>,
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
    Fail { disk: String, on: bool },
    Record { flushes: bool },
    Mark,
    Cut,
    Restore { mark: usize, keep: f64, seed: u64 },
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Ready(bool),
    Paced(bool),
    Disks(Vec<Counts>),
    Failed(bool),
    Recording(bool),
    Marked(Mark),
    Cut(bool),
    Restored { disks: Vec<AfterCut> },
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
        ["try", folder] => mount(Files::new(Vec::new(), Arc::default(), || ()), Path::new(folder))
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

/// Make a file without a name, so that its space is free as soon as this program ends.
fn make(file: &Path) -> Result<File, String> {
    let path = file.display();
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(file);
    let opened = made.map_err(|error| format!("{path} cannot be made: {error}"))?;
    std::fs::remove_file(file).map_err(|error| format!("{path}: {error}"))?;
    Ok(opened)
}

/// Make the file of a disk.
fn make_disk(wanted: &WantedDisk) -> Result<File, String> {
    let WantedDisk { name, file, bytes, model } = wanted;
    model.check().map_err(|what| format!("{name}: {what}"))?;
    let made = make(file).map_err(|what| format!("{name}: {what}"))?;
    // The cache works on complete blocks, also where the disk ends within one.
    made.set_len(bytes.next_multiple_of(BLOCK)).map_err(|error| {
        format!("{name}: {} cannot have {bytes} bytes: {error}", file.display())
    })?;
    Ok(made)
}

/// What is served, and takes orders.
struct Served {
    disks: Vec<Arc<FailingDisk>>,
    journal: Option<Arc<Journal>>,
    open: Arc<Open>,
}

impl Served {
    fn start(wanted: &Wanted) -> Result<Self, String> {
        let files: Vec<File> = wanted.disks.iter().map(make_disk).collect::<Result<_, _>>()?;
        let all = wanted.disks.iter().zip(files);
        let open = Arc::default();
        let failing = |disk| Arc::new(FailingDisk::new(disk));
        let Some(journal) = &wanted.journal else {
            let start = |(one, file): (&WantedDisk, File)| -> Result<Arc<dyn Device>, String> {
                Disk::start(one.name.clone(), one.bytes, &one.model, Store::new(file))
                    .map(|disk| disk as Arc<dyn Device>)
                    .map_err(|error| format!("{}: {error}", one.name))
            };
            return Ok(Self {
                disks: all.map(start).map(|disk| disk.map(failing)).collect::<Result<_, _>>()?,
                journal: None,
                open,
            });
        };
        let named = all.map(|(one, file)| (one.name.clone(), file)).collect();
        let journal = Arc::new(Journal::new(make(journal)?, named));
        let recorded = |(number, one): (usize, &WantedDisk)| -> Arc<dyn Device> {
            Arc::new(RecordedDisk::new(one.name.clone(), one.bytes, number, journal.clone()))
        };
        let disks = wanted.disks.iter().enumerate().map(recorded).map(failing).collect();
        Ok(Self { disks, journal: Some(journal), open })
    }

    fn obey(&self, order: &Order) -> Result<Said, String> {
        let journal = self.journal.as_ref().ok_or_else(|| "these disks have no journal".to_owned());
        match *order {
            Order::Pace { on: true } if self.journal.is_some() => {
                Err("disks with a journal take no time".to_owned())
            }
            Order::Pace { on } => {
                for disk in &self.disks {
                    disk.pace(on);
                }
                Ok(Said::Paced(on))
            }
            Order::Count => Ok(Said::Disks(self.disks.iter().map(|disk| disk.counts()).collect())),
            Order::Fail { ref disk, on } => {
                let named = self.disks.iter().find(|one| one.name() == disk);
                let found = named.ok_or_else(|| format!("there is no disk {disk}"))?;
                found.fail(on);
                Ok(Said::Failed(on))
            }
            Order::Record { flushes } => journal?.record(flushes).map(|()| Said::Recording(true)),
            Order::Mark => journal?.mark().map(Said::Marked),
            Order::Cut => journal?.cut().map(|()| Said::Cut(true)),
            Order::Restore { mark, keep, seed } => {
                let journal = journal?;
                // The kernel closes a loop device's file after the last process has closed it.
                let open = self.open.after(CLOSING);
                if open > 0 {
                    return Err(format!("{open} descriptors of disks are open"));
                }
                journal.restore(mark, keep, seed).map(|disks| Said::Restored { disks })
            }
        }
    }
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
    let served = Arc::new(Served::start(&wanted)?);
    let ending = Arc::new(AtomicBool::new(false));
    let closed = ending.clone();
    let devices = served.disks.iter().map(|disk| disk.clone() as Arc<dyn Device>).collect();
    let files = Files::new(devices, served.open.clone(), move || {
        if closed.load(Ordering::SeqCst) {
            std::process::exit(0);
        }
    });
    let session = mount(files, folder)
        .map_err(|error| format!("cannot mount at {}: {error}", folder.display()))?;
    let ended = served.clone();
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map_err(|error| format!("no thread for {name}: {error}"))
    };
    spawn("signals", Box::new(move || wait_for_end(signals, &ended, &ending)))?;
    say(&Said::Ready(true))?;
    spawn("orders", Box::new(move || take_orders(&served)))?;
    session.run().map_err(|error| format!("the file system ended: {error}"))?;
    Err("the file system was unmounted by somebody else".to_owned())
}

fn wait_for_end(signals: SigSet, served: &Served, ending: &AtomicBool) {
    while signals.wait() != Ok(Signal::SIGTERM) {}
    for disk in &served.disks {
        disk.pace(false);
    }
    ending.store(true, Ordering::SeqCst);
    if served.open.after(Duration::ZERO) == 0 {
        std::process::exit(0);
    }
}

/// Until stdin ends or nobody reads the answers: whoever gave orders has left the disks to run.
fn take_orders(served: &Served) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let order = serde_json::from_str(&line).map_err(|error| format!("not an order: {error}"));
        let said = order.and_then(|order| served.obey(&order)).unwrap_or_else(Said::Error);
        if say(&said).is_err() {
            return;
        }
    }
}
