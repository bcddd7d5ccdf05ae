"""The door of the Rust crate `drivers/engine` (see its lib.rs). All records cross as JSON text, validated on both sides."""

class Engine:
    """One target, one workload, some workers.

    `config` is JSON: {"api": "s3"|"swift"|"object-server", "host": str, "port": int, "tls": bool, "ca_file": str|null,
    "base_path": str, "access_key": str, "secret_key": str, "region": str, "addressing": "path"|"virtual", "token": str,
    "bucket_prefix": str, "request_timeout_s": float, "threads": int, "verify": float, "seed": int,
    "workload": {...suites.Workload as JSON...}, "ring": {...}|null}.
    `base_path` is "" for S3 and the path of the storage URL ("/v1/AUTH_test") for Swift. `token` is Swift's, or the session
    token of S3's keys. `addressing` may be left out ("path"). With "virtual" (S3 only) each request names its bucket before
    `host`; connections are made to the first bucket's name, and serve all buckets.
    "ring" (for "object-server", whose account is the `base_path`, such as "/AUTH_test"; `host` and `port` are not used then) is
    {"disks": [{"address": str, "port": int, "device": str}, ...], "table": [[number of a disk for each partition] for each
    replica], "part_power": int, "hash_prefix": str, "hash_suffix": str}.
    Raises ValueError on a config it does not understand.

    Object servers are asked as Swift's proxies ask them (`/DEVICE/PARTITION/ACCOUNT/CONTAINER/OBJECT` with X-Timestamp), but over
    connections that are kept, one to each server for each worker, and without updates of containers. One request is one disk's
    work: reads and heads take a replica drawn by seed, each write or delete of a step goes to one disk, also drawn by seed.
    Prepared objects are written to, and deleted from, all of their disks.

    A worker is one connection with one request outstanding; connections are kept, made again when the target closes them,
    and sharded over `threads` epoll threads that never hold the GIL. A connection that ends under a request is an error
    (`reset`), nothing is sent twice unseen. A request that failed is counted and never timed; after one the worker rests
    10 ms, and at every further failure to connect twice as long, up to 1 s.
    S3 requests are signed one by one (SigV4, payload UNSIGNED-PAYLOAD).

    Answers are checked, and what is wrong with one is its error. The length of what is read (`short-body`, `wrong-content`), and
    of a seeded share of reads, the larger `verify` of config and workload, every byte (`wrong-content`). A HEAD's Content-Length
    (`wrong-length`). A write's ETag, where it is an MD5, against that of the body (`wrong-etag`): always where sizes are fixed, of
    drawn sizes by the same share and up to 1 MiB. A listing is parsed and has no more keys than were asked for, and no fewer
    than there are prepared objects, unless the workload deletes them (`bad-list`). A success whose body is an `<Error>` is
    none (`error-body`).
    """

    def __init__(self, config: str) -> None: ...
    def prepare(self, first: int, count: int, stride: int, parallel: int) -> None:
        """Start writing objects `first`, `first + stride`, ... (`count` of them) of the workload with `parallel` workers; returns
        at once. A write that fails is tried up to 10 times, with rests of 10 ms to 1 s; every failure is in `progress`. The job
        ends early when an object cannot be written: all are there when `done` grew by `count` (times replicas, over a
        ring). Raises ValueError when the workload has no such objects.
        """
    def add_worker(self, index: int, of: int, repeat: int) -> None:
        """Start closed-loop worker number `index` of `of` in the whole step (over all processes). Its sequence depends on
        seed, workload, `of`, `repeat` and `index` only. Nothing is recorded before `open_window`. With `rate_per_s`, worker k
        of n is meant to start requests at (i * n + k) / rate after the first worker was added, and latency counts from there.
        Raises ValueError for a number that runs already.
        """
    def remove_worker(self, index: int) -> None:
        """Let a worker finish the request it has in hand (unrecorded) and end."""
    def renew_token(self, token: str) -> None:
        """Send this token of Swift's with every request from now on; those in hand have the one before. S3 is signed as it was.
        Raises ValueError for one that cannot stand in a header.
        """
    def started(self) -> int:
        """How many of the workers have finished their first request, well or not. Removed ones do not count, exhausted ones do."""
    def open_window(self) -> None:
        """From now on what completes is recorded; what an earlier window recorded is forgotten."""
    def close_window(self) -> None:
        """From now on nothing is recorded but how long what is outstanding now has been so, since its start or at a rate since its
        intended start (`in_flight`); at a rate also what was to start by now and has not been sent. Workers go on until removed.
        """
    def stop(self, timeout_s: float) -> int:
        """End all workers (also of prepare and delete); returns how many had to be cut off while a request was in hand.
        Afterwards workers can be added anew. Raises RuntimeError when an I/O thread died.
        """
    def progress(self) -> str:
        """JSON {"running": int, "exhausted": int, "done": int, "failed": int, "bytes": int, "errors": {class: count},
        "last_error": str|null} since the engine was made, recorded or not. `running`: workers not ended; `exhausted`: workers
        that ran out of objects to delete; `last_error`: status and first bytes of the last failed answer, for people.
        Raises RuntimeError when an I/O thread died.
        """

    def snapshot(self) -> str:
        """JSON {"tallies": [...results.measurement.Tally...], "seconds": [...Second...], "window_s": float, "begun": int|null,
        "behind_us": int|null} of the window so far (the last two at a rate: see results.measurement.Measurement);
        histograms are V2 deflate base64, 1..3600000000 us, 3 digits, as HdrHistogram's own tools read them. The last second may
        be cut short by the end of the window.
        """
    def delete(self, what: str, parallel: int) -> None:
        """Start deleting "written" (what this engine's workers wrote, or may have written, and have not deleted; call it when
        they have ended) or "objects" (all of the workload's prepared objects); returns at once. 404 counts as deleted.
        Failures are as those of `prepare`; what could not be deleted can be tried again.
        """

    def delete_listed(self, numbers: list[int], parallel: int) -> None:
        """As `delete`, of prepared objects by their numbers, which count as those of `prepare`. Raises ValueError when the
        workload has no such objects.
        """

class Picker:
    """The sequence of one worker, as the engine replays it; for sdk users, so that both make the same requests.

    `workload` is JSON of suites.Workload.
    """

    def __init__(self, workload: str, seed: int, workers: int, repeat: int, index: int) -> None: ...
    def next(self) -> tuple[str, int, int, int]:
        """(operation, container index, object index, size in bytes) of the next request. For "write" the object index counts
        this worker's writes (container: that index modulo containers), and the size is that of the new object; for "list"
        the object index is 0.
        "delete" takes this worker's own writes, oldest first, given as -1 - index; when none are left, and the mix neither
        reads nor heads, prepared objects of its own share (index >= 0). A delete with nothing left to take is redrawn;
        when deletes are all there is, StopIteration is raised.
        """

def object_size(workload: str, seed: int, container: int, index: int) -> int:
    """Size in bytes of a prepared object; depends on nothing but these four."""

def object_sizes(workload: str, seed: int, first: int, count: int) -> list[int]:
    """Sizes in bytes of prepared objects `first`, `first + 1`, ..., which count as those of `Engine.prepare`: number n is in
    container n modulo containers, at index n // containers.
    """

def object_name(index: int) -> str:
    """Name of a prepared object within its container."""

def written_name(workers: int, repeat: int, worker: int, index: int) -> str:
    """Name of object number `index` that a worker writes during a step."""

def content(seed: int, size: int, offset: int, length: int) -> bytes:
    """Bytes `offset` .. `offset + length` of the content of any object of `size` bytes under `seed`."""

def ring_place(ring: str, path: str) -> tuple[int, list[int]]:
    """Partition of `/account/container/object`, and the number of the disk of each replica; `ring` is JSON, as of Engine."""

def sample(seed: list[int], population: int, count: int) -> list[int]:
    """`count` different numbers below `population`, in an order; the same for the same three, everywhere."""

def signed_headers(
    keys: tuple[str, str, str],
    region: str,
    host: str,
    method: str,
    path: str,
    query: str,
    unix_s: int,
) -> str:
    """The header lines that the engine signs an S3 request with, for checks against other signers. `keys`: access key, secret key
    and session token (or ""); `path` and `query` are percent-encoded already, the query's keys sorted; the payload counts as
    UNSIGNED-PAYLOAD.
    """

def added_histograms(encoded: list[str]) -> str:
    """The histogram of all samples of these, in the form that they have: V2 deflate base64, 1 us to 1 h, 3 significant digits.

    Raises ValueError when one of them is no such histogram: a sum without it would be wrong.
    """

def null_target(config: str) -> None:
    """Serve the S3 and Swift APIs from memory without storing bodies, until SIGINT or SIGTERM.

    `config` is JSON {"host": str, "port": int, "threads": int, "delay_ms": float, "delay_spread": float, "fail_share": float,
    "fail_status": int, "stall_after_s": float|null, "stall_s": float, "seed": int, "user": str, "key": str}. Prints one line
    {"listening": "http://host:port"} on stdout when it is ready (port 0: any). Call it from the main thread of a process
    of its own. A bucket may also be named by the host `BUCKET.localhost`. Bodies are not kept: what is the content of `seed` is
    made again, of other bodies the first 64 KiB are given back (the rest is the content of `seed`). S3 signatures are not
    checked; Swift needs the token. Each answer waits for `delay_ms`, or where `delay_spread` is above 0 for what `seed` draws,
    evenly from `delay_ms` * (1 - `delay_spread`) to `delay_ms` * (1 + `delay_spread`). Requests on objects fail with `fail_status`
    by a seeded draw; `stall_after_s` counts from the first request, and what would be answered in the `stall_s` after it is
    answered at its end. Raises ValueError on a config it does not understand, OSError when it cannot listen.
    """
