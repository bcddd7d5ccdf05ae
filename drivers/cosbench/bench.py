"""COSBench set up for one target: prepares, measures and cleans up workloads."""

from __future__ import annotations

import logging
import platform
import secrets
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.access import StorageAccess, access
from weighbridge.drivers.cosbench.archive import Archived, folder_at, kept
from weighbridge.drivers.cosbench.containers import CosbenchContainers
from weighbridge.drivers.cosbench.controller import Controller
from weighbridge.drivers.cosbench.figures import rows
from weighbridge.drivers.cosbench.measurement import StepContext, measurement_of, outcome
from weighbridge.drivers.cosbench.progress import Meter, ProgressReporter
from weighbridge.drivers.cosbench.script import Script, prepare_script, step_script
from weighbridge.drivers.cosbench.selectors import unfit
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.cosbench.stop_request import StopRequest
from weighbridge.drivers.cosbench.submission import Submission
from weighbridge.drivers.driver import DriverFailure
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    Measured,
    Prepare,
    Prepared,
    Progress,
    Ready,
    Step,
)
from weighbridge.results.record.measurement import Load
from weighbridge.suites import Workload

SLOWEST_BYTES_PER_S: Final = 1_000_000
SLOWEST_OBJECT_S: Final = 5.0
"""Time for each worker's object when preparing: COSBench's S3 client takes 2 s for a failed one."""

FIRST_ALONE: Final = (
    "COSBench's CPU use is that of the first client; its drivers on other clients count in the "
    "use of their hosts"
)

Send = Callable[[Progress], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _PreparedWorkload:
    """A workload as it was prepared."""

    workload: Workload
    prepared: Prepared


class Cosbench:
    """COSBench and its target, for one thread. Methods raise DriverError."""

    def __init__(self, setup: CosbenchSetup, stop: StopRequest, send: Send) -> None:
        self._setup = setup
        self._site = setup.site
        self._send = send
        self._prepared: dict[str, _PreparedWorkload] = {}
        self._number = 0
        # Several drivers may work in a run, and names of workloads must not be reused.
        self._nonce = secrets.token_hex(3)
        self._account = Account(setup.target, setup.request_timeout_s)
        self._containers = CosbenchContainers(self._account, setup.bucket_prefix, stop)
        self._meter: Meter | None = None
        with ExitStack() as stack:
            self._account.authenticate()
            url, archive = self._locate(stack, self._site)
            self._controller = Controller(
                url, self._site.user, self._site.password.get_secret_value()
            )
            folder = folder_at(archive)
            stack.callback(folder.close)
            self._submission = Submission(self._controller, folder, stop)
            self._drivers = self._controller.index().drivers
            if not self._drivers:
                raise DriverError(
                    f"{url}: COSBench's controller has no drivers",
                    advice="List its drivers in conf/controller.conf.",
                )
            access(setup.target, self._account, self._site.auth, setup.request_timeout_s)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End all that was started."""
        self._stack.close()

    def ready(self) -> Ready:
        """Versions; of COSBench its place, since it reports a wrong version of itself."""
        where = "started by us" if self._site.home is not None else f"at {self._controller.url}"
        drivers = ", ".join(f"{name} {url}" for name, url in self._drivers.items())
        return Ready(
            versions={
                "python": platform.python_version(),
                "cosbench": where,
                "cosbench drivers": drivers,
            }
        )

    def prepare(self, command: Prepare) -> Prepared:
        """Make containers and objects, unless this was done before."""
        workload = command.workload
        self._check(workload)
        count = workload.objects.count if workload.needs_objects else 0
        earlier = self._prepared.get(workload.name)
        if earlier is not None and earlier.workload == workload:
            return earlier.prepared.model_copy(update={"seconds": 0.0, "kept": ()})
        began_s = time.monotonic()
        reach = self._access()
        containers = self._containers.prefix(workload)
        script = prepare_script(
            self._name(workload, "prepare"), workload, containers, reach, command.parallel
        )
        size = round(count * workload.objects.mean_bytes)
        work_s = size / SLOWEST_BYTES_PER_S + SLOWEST_OBJECT_S * (
            count / command.parallel + workload.objects.containers
        )
        with ProgressReporter(self._send, Progress(phase="prepare", done=0, total=count)):
            archived = self._run(script, reach, work_s, lambda _stage: None)
            files = kept(reach, script, archived)
            fault = self._missing(archived, workload, count)
            if not fault and archived.state != "FINISHED":
                fault = outcome(archived)
            if fault:
                raise DriverFailure(fault, kept=files)
            self._containers.make(workload)
        size = sum(
            row.bytes or 0 for row in rows(archived.summary) if row.operation == "prepare-write"
        )
        prepared = Prepared(
            objects=count, bytes=size, seconds=time.monotonic() - began_s, kept=files
        )
        self._prepared[workload.name] = _PreparedWorkload(workload, prepared)
        return prepared

    def step(self, command: Step) -> Measured:
        """Run a step, and measure it by COSBench's archive."""
        workload = command.workload
        self._check(workload)
        earlier = self._prepared.get(workload.name)
        if earlier is None or earlier.workload != workload:
            raise DriverError(f"workload {workload.name!r} was not prepared")
        if "delete" in workload.operations:
            del self._prepared[workload.name]
        reach = self._access(workload.warmup + workload.runtime)
        name = self._name(workload, f"w{command.workers}")
        containers = self._containers.prefix(workload)
        written = f"written-{self._nonce}-{self._number}-"
        script = step_script(name, workload, containers, reach, command.workers, written)
        opened = datetime.now(UTC)
        first = Progress(phase="warm-up", done=0, total=workload.warmup)
        with ProgressReporter(self._send, first, self._meter) as reporter:

            def began(_stage: str) -> None:
                nonlocal opened
                opened = datetime.now(UTC) + timedelta(seconds=workload.warmup)
                reporter.stage_began(workload.warmup, workload.runtime)

            archived = self._run(script, reach, workload.warmup + workload.runtime, began)
            files = kept(reach, script, archived)
            context = StepContext(
                api=self._setup.api,
                started_at=f"{opened:%Y-%m-%dT%H:%M:%SZ}",
                load=self._load(reporter),
                started_by_us=self._site.home is not None,
                drivers=len(self._drivers),
            )
            try:
                measurement = measurement_of(archived, script.stages[0], command, context)
                for tally in measurement.tallies:
                    if tally.operation == "delete":
                        self._check_deleted(workload, tally.count)
            except DriverError as error:
                raise DriverFailure(
                    reach.redacted(error.message), advice=error.advice, kept=files
                ) from None
        if self._site.drivers:
            notes = (*measurement.notes, FIRST_ALONE)
            measurement = measurement.model_copy(update={"notes": notes})
        return Measured(measurement=measurement, kept=files)

    def cleanup(self, command: Cleanup) -> Cleaned:
        """Delete, not by COSBench: its cleanup reports success whatever it did."""
        everything = command.what == "all"
        if everything:
            self._prepared.pop(command.workload.name, None)
        first = Progress(phase="cleanup", done=0, total=0)
        with ProgressReporter(self._send, first) as reporter:
            deleted, failed = self._containers.delete(
                command.workload, everything=everything, send=reporter.set
            )
        return Cleaned(deleted=deleted, failed=failed)

    def _locate(self, stack: ExitStack, site: CosbenchSite) -> tuple[str, str]:
        """The controller's URL and the archive's place; an installation is started."""
        if site.controller is not None and site.archive is not None:
            log.warning(
                "%s was not started here: its driver sets its host's clock (date -s) if it can",
                site.controller,
            )
            return site.controller, site.archive
        from weighbridge.drivers.cosbench.installation import Installation  # noqa: PLC0415 - wanted only where one is started

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="weighbridge-cosbench-"))
        with ProgressReporter(self._send, Progress(phase="prepare", done=0, total=0)):
            running = stack.enter_context(
                Installation(
                    Path(site.home or ""),
                    self._own_address(),
                    Path(folder) / "cosbench",
                    lambda text: log.info("%s", text),
                    others=site.drivers,
                )
            )
        self._meter = running.cpu_s
        return running.controller, site.archive or str(running.archive)

    def _own_address(self) -> str:
        """This host's address towards the target: on the lab's network."""
        try:
            with socket.socket(
                socket.AF_INET6 if ":" in self._account.host else socket.AF_INET, socket.SOCK_DGRAM
            ) as probe:
                probe.connect((self._account.host, self._account.port))  # sends nothing
                return str(probe.getsockname()[0])
        except OSError as error:
            raise DriverError(
                f"{self._account.host}: no route from this host: {error.strerror}"
            ) from None

    def _run(
        self, script: Script, reach: StorageAccess, work_s: float, began: Callable[[str], None]
    ) -> Archived:
        try:
            return self._submission.run(script, work_s, began)
        except DriverError as error:
            raise DriverFailure(
                reach.redacted(error.message), advice=error.advice, kept=kept(reach, script, None)
            ) from None

    def _access(self, lasting_s: float = 0.0) -> StorageAccess:
        """For each workload a new one: a token that expires in the middle would end it."""
        found = access(
            self._setup.target, self._account, self._site.auth, self._setup.request_timeout_s
        )
        left_s = self._account.left_s
        if left_s < lasting_s:
            raise DriverError(
                f"{self._account.url}: its token lasts another {left_s:.0f} s, and COSBench, "
                f"which cannot renew them, needs one for {lasting_s:g} s",
                advice="Shorten the workload, or choose the driver locust, which renews them.",
            )
        return found

    def _name(self, workload: Workload, what: str) -> str:
        self._number += 1
        return f"{self._setup.bucket_prefix}-{workload.name}-{what}-{self._nonce}-{self._number}"

    def _check(self, workload: Workload) -> None:
        faults = unfit(workload, self._setup.api)
        if faults:
            raise DriverError(
                f"{workload.name}: {'; '.join(faults)}",
                advice="Change the workload, or choose another driver.",
            )

    @staticmethod
    def _missing(archived: Archived, workload: Workload, count: int) -> str:
        """How many objects are missing, in words; "" when none are."""
        if not count or archived.state not in ("FINISHED", "FAILED"):
            return ""
        written = sum(
            row.count or 0 for row in rows(archived.summary) if row.operation == "prepare-write"
        )
        if written == count:
            return ""
        return (
            f"COSBench wrote {written} of {count} objects of {workload.name}; {outcome(archived)}"
        )

    def _load(self, reporter: ProgressReporter) -> Load | None:
        if reporter.cpu is None:
            return None
        cpu_s, window_s = reporter.cpu
        return Load(cpu_s=cpu_s, cpu_limit=allowance().cpus, window_s=window_s)

    def _check_deleted(self, workload: Workload, deleted: int) -> None:
        """Raise DriverError unless listings agree: COSBench counts every delete as a success."""
        count = workload.objects.count
        left = self._containers.left(workload, count - deleted)
        if not left:
            raise DriverError(
                f"all {count} objects of {workload.name} were deleted before the end, and "
                "COSBench counts deleting them again",
                advice="Give the workload more objects, or a shorter runtime.",
            )
        if count - left < deleted:
            raise DriverError(
                f"COSBench counted {deleted} deletes of {workload.name}, but only {count - left} "
                "of its objects are gone",
                advice="Deletes failed, which COSBench does not report; the gateway's log may say "
                "why.",
            )
