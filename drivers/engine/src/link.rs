//! A connection, plain or TLS, that never blocks: it returns `WouldBlock` instead.

use crate::sys;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct};
use rustls::{Error, RootCertStore, SignatureScheme};
use socket2::Socket;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How connections to one target are made.
#[derive(Clone, Debug)]
pub struct Dialer {
    address: SocketAddr,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Dialer {
    /// Makes plain connections to `address`.
    pub fn plain(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }

    /// Makes TLS connections to `address`. Its certificate must name `host` and be signed by an
    /// authority of the PEM file `ca_file`, or else by one this machine trusts.
    /// Errors: No authority can be read, or `host` cannot be in a certificate.
    pub fn tls(address: SocketAddr, host: &str, ca_file: Option<&str>) -> Result<Self, String> {
        Ok(Self { address, tls: Some(trusting(host, ca_file)?) })
    }

    /// Where connections go.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins a connection; when its socket gets writable, see `Link::connected`.
    /// Errors: Of the system, or of TLS when it cannot even begin.
    pub fn dial(&self) -> io::Result<Link> {
        let socket = sys::connect(&self.address)?;
        let Some((config, name)) = &self.tls else {
            return Ok(Link { socket, tls: None, requests: 0 });
        };
        let mut tls =
            ClientConnection::new(Arc::clone(config), name.clone()).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(256 * 1024));
        Ok(Link { socket, tls: Some(Box::new(tls)), requests: 0 })
    }
}

/// How to speak TLS with `host`, see [`Dialer::tls`].
fn trusting(
    host: &str,
    ca_file: Option<&str>,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", ca_file.unwrap_or(host));
    let trusted: Vec<CertificateDer<'static>> = if let Some(file) = ca_file {
        CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect)
            .map_err(|error| wrong(&error))?
    } else {
        rustls_native_certs::load_native_certs().certs
    };
    let mut roots = RootCertStore::empty();
    if ca_file.is_some() {
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(|error| wrong(&error))?;
        }
    } else {
        roots.add_parsable_certificates(trusted.iter().cloned());
    }
    if roots.is_empty() {
        return Err(format!(
            "{}: no certificate of an authority",
            ca_file.unwrap_or("this machine's trust store")
        ));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("{host}: {error}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trust { chains, trusted }))
        .with_no_client_auth();
    Ok((Arc::new(config), name))
}

/// Shakes hands with `host` as every connection of the engine will, and sends nothing.
/// Errors: Why it cannot be done until `within` has passed.
pub fn shake_hands(
    address: SocketAddr,
    host: &str,
    ca_file: Option<&str>,
    within: Duration,
) -> Result<(), String> {
    let (config, name) = trusting(host, ca_file)?;
    let mut tls = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
    let until = Instant::now() + within;
    let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut handshake = || -> io::Result<()> {
        let mut socket = TcpStream::connect_timeout(&address, left())?;
        while tls.is_handshaking() {
            socket.set_write_timeout(Some(left()))?;
            while tls.wants_write() {
                tls.write_tls(&mut socket)?;
            }
            socket.set_read_timeout(Some(left()))?;
            if Instant::now() >= until {
                return Err(ErrorKind::WouldBlock.into());
            }
            if tls.is_handshaking() && tls.read_tls(&mut socket)? == 0 {
                return Err(io::Error::other("the connection was closed in TLS' handshake"));
            }
            tls.process_new_packets().map_err(io::Error::other)?;
        }
        Ok(())
    };
    handshake().map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("no TLS within {:.3} s", within.as_secs_f64())
        }
        _ => error.to_string(),
    })
}

/// What rustls takes; and, as OpenSSL does, a server's own certificate that is trusted by name,
/// though it is also one of an authority: `openssl req -x509` makes such.
#[derive(Debug)]
struct Trust {
    chains: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.chains.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            // An expired one is refused before this is found: `Expired` is another error.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if other.to_string() == "CaUsedAsEndEntity"
                    && self.trusted.iter().any(|own| own == end_entity) =>
            {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)
                    .map(|()| ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    /// Requests that it was used for.
    pub requests: u64,
}

impl Link {
    /// The descriptor for epoll.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Whether the kernel can discard what is received.
    pub fn discards(&self) -> bool {
        self.tls.is_none()
    }

    /// Checks whether the connection was established.
    /// Errors: Why it could not be made.
    pub fn connected(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Whether it is open and no unexpected bytes have arrived.
    pub fn is_quiet(&self) -> bool {
        sys::is_quiet(self.socket.as_raw_fd())
    }

    /// Sends as much of three pieces as there is room for; returns how many bytes were taken, at
    /// least 1.
    /// Errors: `WouldBlock` when there is no room; else why the connection ended.
    pub fn send(&mut self, pieces: [&[u8]; 3]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return sys::send(self.socket.as_raw_fd(), pieces);
        };
        // Buffered bytes first: only after the socket refused them does epoll report room again.
        flush(tls, &mut self.socket)?;
        let mut taken = 0;
        for piece in pieces {
            let count = tls.writer().write(piece)?;
            taken += count;
            if count < piece.len() {
                break;
            }
        }
        match flush(tls, &mut self.socket) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            // Full before the handshake is done: it continues when something is received.
            _ if taken == 0 => Err(ErrorKind::WouldBlock.into()),
            _ => Ok(taken),
        }
    }

    /// Sends what TLS has buffered.
    /// Errors: `WouldBlock` when there is no room; else why the connection ended.
    pub fn flush(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| flush(tls, &mut self.socket))
    }

    /// Receives into `into`; 0 bytes: the peer closed the connection.
    /// Errors: `WouldBlock` when nothing has arrived; `InvalidData` when TLS was violated; else why
    /// the connection ended.
    pub fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return sys::recv(self.socket.as_raw_fd(), into) };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Some peers close without TLS's close_notify.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets()
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            match flush(tls, &mut self.socket) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    }

    /// Discards up to `most` bytes of a plain connection, see [`sys::discard`].
    /// Errors: As of `recv`.
    pub fn discard(&mut self, most: usize) -> io::Result<usize> {
        sys::discard(self.socket.as_raw_fd(), most)
    }
}

fn flush(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}
