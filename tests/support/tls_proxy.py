"""TLS in front of a plain server: `python tls_proxy.py CERTIFICATE ADDRESS PORT TO_ADDRESS
TO_PORT`.

Prints its port when it listens (0: any); ends with its stdin. `authority` creates certificates with
openssl.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CA_CONFIG = """
[ca]
default_ca = here
[here]
new_certs_dir = {folder}
database = {folder}/index.txt
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


def authority(
    folder: Path,
    names: Sequence[str],
    name: str = "authority",
    *,
    expired: bool = False,
    use: str = "serverAuth",
    curve: str = "prime256v1",
    alternatives: bool = True,
    rootless: bool = False,
) -> tuple[Path, Path]:
    """A new CA, and a certificate with its key signed for `names`: both as PEM files. Without
    `alternatives` it has only the first of them, as its common name. `rootless`: another CA has
    signed that of this one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ca, ca_key, asked, leaf, leaf_key = (
        folder / f"{name}{end}" for end in (".pem", ".key", ".csr", "-leaf.pem", "-leaf.key")
    )
    key = ("-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{curve}", "-nodes")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    files = ("-keyout", str(ca_key), "-out", str(ca))
    _run("req", "-x509", *key, "-days", "2", "-subj", f"/CN=Test {name}", *usage, *files)
    kinds = ",".join(f"{'IP' if one.replace('.', '').isdigit() else 'DNS'}:{one}" for one in names)
    leaf_only = ("-addext", "basicConstraints=critical,CA:FALSE")
    own = ("-addext", f"subjectAltName={kinds}") if alternatives else ()
    own = (*own, "-addext", f"extendedKeyUsage={use}")
    files = ("-keyout", str(leaf_key), "-out", str(asked))
    _run("req", *key, "-subj", f"/CN={names[0]}", *leaf_only, *own, *files)
    (folder / "index.txt").write_text("")
    (folder / "ca.conf").write_text(CA_CONFIG.format(folder=folder))
    times = (
        ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z")
        if expired
        else ("-days", "2")
    )
    signer = ("-config", str(folder / "ca.conf"), "-cert", str(ca), "-keyfile", str(ca_key))
    _run("ca", "-batch", "-notext", *signer, *times, "-in", str(asked), "-out", str(leaf))
    if rootless:
        above, _ = authority(folder / "above", names, "root")
        root = ("-CA", str(above), "-CAkey", str(above.with_suffix(".key")), "-days", "2")
        _run("x509", "-in", str(ca), *root, "-set_serial", "1", "-out", str(ca))
    certificate = folder / f"{name}-server.pem"
    certificate.write_text(leaf.read_text() + leaf_key.read_text())
    return ca, certificate


def self_signed(path: Path, names: str) -> Path:
    """A certificate that signed itself, as `openssl req -x509` makes it: also that of a CA. `names`
    is its subjectAltName, if it has one.
    """
    alternatives = ("-addext", f"subjectAltName={names}") if names else ()
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", str(path.with_suffix(".key")), "-out", str(path))
    _run("req", "-x509", *key, "-subj", "/CN=localhost", *alternatives, *files)
    path.write_text(path.read_text() + path.with_suffix(".key").read_text())
    return path


def _run(*words: str) -> None:
    subprocess.run(("openssl", *words), check=True, capture_output=True)


@contextlib.contextmanager
def terminated(certificate: Path, backend: tuple[str, int]) -> Iterator[int]:
    places = ("127.0.0.1", "0", backend[0], str(backend[1]))
    argv = [sys.executable, __file__, str(certificate), *places]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.communicate("")


async def serve(certificate: str, address: str, port: int, to: tuple[str, int]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    server = await asyncio.start_server(one, address, port, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - a program for tests
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), (sys.argv[4], int(sys.argv[5]))))
