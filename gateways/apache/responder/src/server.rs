//! The listening socket, and a thread for each connection.

use crate::origin::Origins;
use crate::session::Session;
use crate::stats::{Held, Stats};
use std::fs::{Permissions, remove_file, set_permissions};
use std::io::{self, Write as _};
use std::net::{TcpListener, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A session's buffers are on the heap; its calls are shallow.
const STACK_BYTES: usize = 128 * 1024;

/// How long to wait when another connection cannot be served.
const PAUSE: Duration = Duration::from_millis(20);

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// On an address and port.
    Tcp(TcpListener),
    /// At a path.
    Unix(UnixListener),
}

impl Listener {
    /// Listen at `place`: a path, or an address with a port. A socket left at the path is removed;
    /// the new one is open to every user of the host, since web servers change theirs.
    /// Errors: When the place is in use or invalid.
    pub fn new(place: &str) -> io::Result<Self> {
        if !place.starts_with('/') {
            let addresses: Vec<_> = place.to_socket_addrs()?.collect();
            return Ok(Self::Tcp(TcpListener::bind(addresses.as_slice())?));
        }
        let path = Path::new(place);
        match remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        set_permissions(path, Permissions::from_mode(0o666))?;
        Ok(Self::Unix(listener))
    }

    /// The next connection, with `timeout` for sending.
    fn accept(&self, timeout: Duration) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(timeout))?;
                Ok(stream.into())
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_write_timeout(Some(timeout))?;
                Ok(stream.into())
            }
        }
    }
}

/// Serve connections forever, with a thread each.
pub fn serve(listener: &Listener, origins: &'static Origins<'static>, stats: &'static Stats) -> ! {
    loop {
        let session = |socket| {
            move || {
                let _held = Held::new(&stats.connections);
                Session::new(socket, origins, stats).serve();
            }
        };
        let started = listener.accept(origins.timeout()).and_then(|socket| {
            thread::Builder::new().stack_size(STACK_BYTES).spawn(session(socket))
        });
        if let Err(error) = started {
            stats.log(&format!("a connection could not be served: {error}"));
            thread::sleep(PAUSE);
        }
    }
}

/// Serve the counters, one line for each connection, in a separate thread.
/// Errors: When it cannot listen there, or no thread can be started.
pub fn serve_stats(place: &str, stats: &'static Stats) -> io::Result<()> {
    let listener = TcpListener::bind(place)?;
    thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        loop {
            match listener.accept() {
                // A client that leaves before reading the line does not need it.
                Ok((mut stream, _)) => drop(stream.write_all(stats.line().as_bytes())),
                Err(error) => {
                    stats.log(&format!("counters could not be sent: {error}"));
                    thread::sleep(PAUSE);
                }
            }
        }
    })?;
    Ok(())
}
