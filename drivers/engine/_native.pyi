"""The Python interface of the Rust crate `drivers/engine` (see its lib.rs). Records are JSON texts,
validated on both sides.
"""

class Engine:
    """Workers that send one workload's requests to one target.

    `config` is JSON: {"api": "s3"|"swift"|"object-server", "host": str, "port": int, "tls": bool,
    "ca_file": str|null, "base_path": str, "access_key": str, "secret_key": str, "region": str,
    "addressing": "path"|"virtual", "token": str, "bucket_prefix": str, "request_timeout_s": float,
    "threads": int, "verify": float, "seed": int, "workload": {...suites.Workload as JSON...},
    "ring": {...}|null, "endpoints": [...], "spread": "per-worker"|"round-robin", "drop_dead":
    bool}.
    `base_path` is "" for S3 and the path of the storage URL ("/v1/AUTH_test") for Swift. `token` is
    Swift's, or the session token of S3's keys. `addressing` is optional ("path"). With "virtual"
    (S3 only) each request has its bucket before `host`; connections are made to the first bucket's
    name, and serve all buckets.
    `endpoints` (optional) are several of the same target: {"name": str, "host": str, "port": int,
    "address": str|null}, at most 64 with different names; `host` and `port` of the config are then
    unused. `host` is for the Host header, which is signed, and for certificates; connections go to
    `address`, or the first one of `host`. Worker k begins with endpoint k modulo their number, and
    keeps to it ("per-worker", the default), or takes the next one for each request
    ("round-robin"), with a connection to each. Workers of jobs take turns in any case. With
    `drop_dead` an endpoint is left out for good after three failed connections in a row, of any
    workers, unless it is the last one; its workers are spread evenly over the others.
    "ring" is for "object-server", whose account is the `base_path`, such as "/AUTH_test"; `host`
    and `port` are then unused: {"disks": [{"address": str, "port": int, "device": str}, ...],
    "table": [[index of a disk for each partition] for each replica], "part_power": int,
    "hash_prefix": str, "hash_suffix": str}.
    Raises ValueError on an invalid config.

    Object servers get requests like those of Swift's proxies
    (`/DEVICE/PARTITION/ACCOUNT/CONTAINER/OBJECT` with X-Timestamp), but over persistent
    connections, one to each server for each worker, and without container updates. A request is for
    one disk: reads and heads use a replica drawn by seed, each write or delete of a step one disk
    drawn by seed. Prepared objects are written to, and deleted from, all of their disks.

    A worker is one connection with one request outstanding. Connections are persistent, or as the
    workload's `connections` says, opened again when the target closes them, and distributed over
    `threads` epoll threads that never hold the GIL. A connection that ends during a request is an
    error (`reset`); nothing is sent again silently. A failed request is counted and has no latency;
    after one the worker pauses 10 ms, and after every further failure to connect twice as long, up
    to 1 s.
    S3 requests are signed individually (SigV4), as the workload's `signing` says: {"payload":
    "unsigned"|"signed"|"chunks"|"trailer", "checksum": "crc32"|"crc64nvme"|null, "auth":
    "header"|"query"|"none"}; by default with UNSIGNED-PAYLOAD. Hashes and checksums are computed
    for each request on its I/O thread, within its latency: those of the head before it is sent,
    others chunk by chunk. The workload's `encryption`, "none"|"sse-c"|"sse-s3", asks the store to
    encrypt S3 objects; the key of SSE-C is the SHA-256 of `weighbridge sse-c SEED`.

    Answers are verified; what is wrong with one is its error. The length of a body (`short-body`,
    `wrong-content`), and every byte (`wrong-content`) of a seeded share of reads, the larger
    `verify` of config and workload. A HEAD's Content-Length (`wrong-length`). A write's ETag, if it
    is an MD5 (`wrong-etag`): always for fixed sizes, for drawn sizes by the same share and up to
    1 MiB. A listing is parsed and has no more keys than requested, and no fewer than there are
    prepared objects, unless the workload deletes them (`bad-list`). A success with an `<Error>` as
    its body is an error (`error-body`). A range must be the one requested (`ignored-range`,
    `wrong-range`), and so must a part by its number (`ignored-part`, `wrong-range`); an object that
    has not changed is not sent, and one that exists is not taken if that is the condition
    (`ignored-condition`); a request for several objects must have deleted each (`not-deleted`), and
    a copy, an upload or a deletion of several must say what was done (`bad-result`). In a workload
    with `versions`, so must a write: the ID of the version that it made. A read of a version must
    name it, and has its own content (`wrong-content`). A listing of versions ascends by name, has
    no version twice, and all that were prepared, and no more if nothing of the workload changes
    any (`bad-list`).

    An upload in parts and a complete listing are several requests, one after the other, unless
    `multipart` has `at_once`: then so many parts are outstanding at the same time. They are one
    operation, whose latency is from the first to the last; each part and each page is counted
    beside it (`write-part`, `list-page`, `versions-page`). After a failure the operation is not
    continued.
    """

    def __init__(self, config: str) -> None: ...
    def prepare(
        self, first: int, count: int, stride: int, parallel: int, version: int | None = None
    ) -> None:
        """Start writing objects `first`, `first + stride`, ... (`count` of them) of the workload,
        or one version of each (0 to the workload's `versions` - 1, in this order), with `parallel`
        workers; returns at once. Those of a workload with `read-part` are written in parts. A
        failed write is retried up to 10 times, with pauses of 10 ms to 1 s; every failure is in
        `progress`. The job ends early when an object cannot be written: all exist when `done` grew
        by `count` (times replicas, with a ring).
        Raises ValueError when the workload has no such objects.
        """
    def know_versions(self, ids: list[str]) -> None:
        """Give it the IDs of the prepared versions, which `read-version` needs: of object 0 from
        version 0 on, of object 1, ... Raises ValueError when they are not as many as there are.
        """
    def add_worker(self, index: int, of: int, repeat: int) -> None:
        """Start worker `index` of `of` in the entire step (over all processes). Its sequence
        depends on seed, workload, `of`, `repeat` and `index` only. Nothing is recorded before
        `open_window`. With `rate_per_s`, request i of worker k of n is due (i * n + k) / rate after
        the first worker was added, and latency counts from there. Raises ValueError for the index
        of a running worker.
        """
    def remove_worker(self, index: int) -> None:
        """Let a worker complete its outstanding request (unrecorded) and end."""
    def renew_keys(self, keys: tuple[str, str, str]) -> None:
        """Sign every new request with this access key, secret key and session token, or send this
        Swift token. Raises ValueError for one that no header can contain.
        """
    def started(self) -> int:
        """How many workers have completed their first request, successfully or not; without removed
        workers, with exhausted ones.
        """
    def open_window(self) -> None:
        """Record from now on, and forget what an earlier window recorded."""
    def close_window(self) -> None:
        """Stop recording, except for the age of outstanding requests (`in_flight`), since their
        start, or at a rate since they were due; at a rate also of due requests that were not sent.
        Workers continue until they are removed.
        """
    def stop(self, timeout_s: float) -> int:
        """End all workers (also of prepare and delete); returns how many had a request cut off.
        Workers can be added again afterwards. Raises RuntimeError when an I/O thread died.
        """
    def progress(self) -> str:
        """JSON {"running": int, "exhausted": int, "done": int, "failed": int, "bytes": int,
        "errors": {class: count}, "last_error": str|null} since the engine was created, recorded or
        not. `running`: workers that have not ended; `exhausted`: workers without objects left to
        delete; `last_error`: status and first bytes of the last failed answer, for people. Raises
        RuntimeError when an I/O thread died.
        """

    def snapshot(self) -> str:
        """JSON {"tallies": [...results.measurement.Tally...], "seconds": [...Second...],
        "window_s": float, "begun": int|null, "behind_us": int|null, "connections": int,
        "stall_us": int, "endpoints": [...EndpointTally...]} of the window so far (`begun` and
        `behind_us` at a rate: see results.measurement.Measurement; `endpoints` only of several).
        Histograms are V2 deflate base64, 1..3600000000 us, 3 digits, as HdrHistogram's own tools
        read them. The last second may be cut short by the end of the window.
        """
    def delete(self, what: str, parallel: int) -> None:
        """Start deleting "written" (what this engine's workers wrote, or may have written, and did
        not delete; after they have ended) or "objects" (all of the workload's prepared objects);
        returns at once. 404 counts as deleted. Failures are as those of `prepare`; what could not
        be deleted can be retried.
        """

    def delete_listed(self, numbers: list[int], parallel: int) -> None:
        """As `delete`, for prepared objects by their numbers, which count as those of `prepare`.
        Raises ValueError when the workload has no such objects.
        """

class Picker:
    """The sequence of one worker, as the engine replays it; SDK users make the same requests by it.

    `workload` is JSON of suites.Workload.
    """

    def __init__(self, workload: str, seed: int, workers: int, repeat: int, index: int) -> None: ...
    def next(self) -> tuple[str, int, int, int]:
        """(operation, container index, object index, size in bytes) of the next request. For
        "write" the object index counts this worker's writes (container: that index modulo
        containers), and the size is the new object's; for "list" the object index is 0.
        "delete" takes this worker's own writes, oldest first, as -1 - index; when none are left,
        and the mix neither reads nor heads, prepared objects of its own share (index >= 0). A
        delete with nothing left to take is redrawn; when there are only deletes, StopIteration is
        raised.
        """

def socket_options() -> list[tuple[str, str]]:
    """Options of the engine's sockets: their names in getsockopt(2), and the values it returns.
    Raises OSError.
    """

def object_size(workload: str, seed: int, container: int, index: int) -> int:
    """Size in bytes of a prepared object; depends on these four only."""

def object_sizes(workload: str, seed: int, first: int, count: int) -> list[int]:
    """Sizes in bytes of prepared objects `first`, `first + 1`, ..., which count as those of
    `Engine.prepare`: number n is in container n modulo containers, at index n // containers.
    """

def object_name(index: int) -> str:
    """Name of a prepared object in its container."""

def written_name(workers: int, repeat: int, worker: int, index: int) -> str:
    """Name of object `index` that a worker writes during a step."""

def content(
    seed: int,
    size: int,
    offset: int,
    length: int,
    compressible: float | None = None,
    version: int = 0,
) -> bytes:
    """Bytes `offset` .. `offset + length` of the content of any object of `size` bytes by
    `seed`, or of a version of it: 0 is as without versions.
    """

def checksum(algorithm: str, seed: int, size: int) -> str:
    """The checksum of the content of an object of `size` bytes, "crc32" or "crc64nvme", as headers
    have it, computed as requests compute it. Raises ValueError for another algorithm.
    """

def ring_place(ring: str, path: str) -> tuple[int, list[int]]:
    """Partition of `/account/container/object`, and the index of each replica's disk.

    `ring` is JSON, as in Engine.
    """

def sample(seed: list[int], population: int, count: int) -> list[int]:
    """`count` different numbers below `population`, in random order; always the same for the same
    arguments.
    """

def signed_headers(
    keys: tuple[str, str, str],
    region: str,
    host: str,
    method: str,
    path: str,
    query: str,
    unix_s: int,
) -> str:
    """The header lines that sign an S3 request as the engine signs it. `keys`: access key, secret
    key and session token (or ""); `path` and `query` are percent-encoded, the query's keys sorted;
    the payload is UNSIGNED-PAYLOAD.
    """

def shake_hands(address: str, host: str, ca_file: str | None, within_s: float) -> None:
    """Shake hands by TLS at `address` (`10.0.0.1:443`) with `host` as each of the engine's
    connections will, and send nothing. Raises OSError with the reason, such as a certificate that
    it does not accept.
    """

def added_histograms(encoded: list[str]) -> str:
    """The histogram of all samples of these, in the same form: V2 deflate base64, 1 us to 1 h,
    3 significant digits. Raises ValueError when one of them is invalid: a sum without it would be
    wrong.
    """

def null_target(config: str) -> None:
    """Serve the S3 and Swift APIs from memory without storing bodies, until SIGINT or SIGTERM.

    `config` is JSON {"host": str, "port": int, "threads": int, "delay_ms": float, "delay_spread":
    float, "fail_share": float, "fail_status": int, "stall_after_s": float|null, "stall_s": float,
    "seed": int, "user": str, "key": str}. Prints one line {"listening": "http://host:port"} on
    stdout when it is ready (port 0: any). To be called from the main thread of a separate process.
    A bucket may also be given by the host `BUCKET.localhost`. Bodies are not stored: the content of
    `seed` is generated again, of other bodies the first 64 KiB are returned, and then that content.
    Copies, parts, versions and deletions of several objects are refused, and ranges and conditions
    ignored. S3 signatures are not checked; Swift needs the token. Each answer is delayed
    by `delay_ms`, or if `delay_spread` is above 0 by a value drawn by `seed`, uniform from
    `delay_ms` * (1 - `delay_spread`) to `delay_ms` * (1 + `delay_spread`). Requests on objects fail
    with `fail_status` by a seeded draw; `stall_after_s` counts from the first request, and answers
    due in the following `stall_s` are sent at their end. Raises ValueError on an invalid config,
    OSError when it cannot listen.
    """
