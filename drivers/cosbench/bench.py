"""The bench: COSBench set up for one target, which prepares, measures and cleans up workloads."""

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
from weighbridge.drivers.cosbench.archive import Archived, folder_at
from weighbridge.drivers.cosbench.containers import CosbenchContainers
from weighbridge.drivers.cosbench.controller import Controller
from weighbridge.drivers.cosbench.ending import EndRequest
from weighbridge.drivers.cosbench.figures import rows
from weighbridge.drivers.cosbench.fitness import unfit
from weighbridge.drivers.cosbench.from_archive import Circumstances, measured, outcome
from weighbridge.drivers.cosbench.keeping import kept
from weighbridge.drivers.cosbench.pulse import Meter, ProgressPulse
from weighbridge.drivers.cosbench.script import Script, prepare_script, step_script
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.cosbench.submission import Submission
from weighbridge.drivers.driver import GaveUp
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.order import (
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
"""What preparing is given for each worker's object:

COSBench's S3 client takes 2 s for one that fails.
"""

FIRST_ALONE: Final = (
    "COSBench's CPU is that of the first client: what its drivers on the others "
    "used is told by what the hosts used"
)

Say = Callable[[Progress], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Standing:
    """What is prepared of a workload."""

    workload: Workload
    prepared: Prepared


class Cosbench:
    """COSBench and its target, for one thread.

    `close` ends what was started. Methods raise DriverError.
    """

    def __init__(self, setup: CosbenchSetup, ending: EndRequest, say: Say) -> None:
        self._setup = setup
        self._site = setup.site
        self._ending = ending
        self._say = say
        self._standing: dict[str, _Standing] = {}
        self._number = 0
        # Drivers come and go within a run, and their workloads' names must not come again.
        self._nonce = secrets.token_hex(3)
        self._account = Account(setup.target, setup.request_timeout_s)
        self._stock = CosbenchContainers(self._account, setup.bucket_prefix, ending)
        self._meter: Meter | None = None
        with ExitStack() as stack:
            self._account.authenticate()
            url, archive = self._found(stack, self._site)
            self._controller = Controller(
                url, self._site.user, self._site.password.get_secret_value()
            )
            folder = folder_at(archive)
            stack.callback(folder.close)
            self._errand = Submission(self._controller, folder, ending)
            self._drivers = self._controller.index().drivers
            if not self._drivers:
                raise DriverError(
                    f"{url}: COSBench's controller has no driver",
                    advice="Name its drivers in conf/controller.conf.",
                )
            access(setup.target, self._account, self._site.auth, setup.request_timeout_s)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End what was started."""
        self._stack.close()

    def ready(self) -> Ready:
        """Versions: COSBench tells a wrong one of its own, so that its place stands for it."""
        where = "started by us" if self._site.home is not None else f"at {self._controller.url}"
        drivers = ", ".join(f"{name} {url}" for name, url in self._drivers.items())
        return Ready(
            versions={
                "python": platform.python_version(),
                "cosbench": where,
                "cosbench drivers": drivers,
            }
        )

    def prepare(self, order: Prepare) -> Prepared:
        """Have containers and objects made, unless they stand."""
        workload = order.workload
        self._fit(workload)
        count = workload.objects.count if workload.needs_objects else 0
        standing = self._standing.get(workload.name)
        if standing is not None and standing.workload == workload:
            return standing.prepared.model_copy(update={"seconds": 0.0, "kept": ()})
        began_s = time.monotonic()
        reach = self._access()
        containers = self._stock.containers(workload)
        script = prepare_script(
            self._name(workload, "prepare"), workload, containers, reach, order.parallel
        )
        size = round(count * workload.objects.mean_bytes)
        work_s = size / SLOWEST_BYTES_PER_S + SLOWEST_OBJECT_S * (
            count / order.parallel + workload.objects.containers
        )
        with ProgressPulse(self._say, Progress(phase="prepare", done=0, total=count)):
            archived = self._run(script, reach, work_s, lambda _stage: None)
            files = kept(reach, script, archived)
            if archived.state != "FINISHED":
                raise GaveUp(
                    self._short(archived, workload, count) or outcome(archived), kept=files
                )
            if short := self._short(archived, workload, count):
                raise GaveUp(short, kept=files)
            self._stock.make(workload)
        size = sum(
            row.bytes or 0 for row in rows(archived.summary) if row.operation == "prepare-write"
        )
        prepared = Prepared(
            objects=count, bytes=size, seconds=time.monotonic() - began_s, kept=files
        )
        self._standing[workload.name] = _Standing(workload, prepared)
        return prepared

    def step(self, order: Step) -> Measured:
        """Have one step run, and measure it by what COSBench archives."""
        workload = order.workload
        self._fit(workload)
        standing = self._standing.get(workload.name)
        if standing is None or standing.workload != workload:
            raise DriverError(f"workload {workload.name!r} was not prepared")
        if "delete" in workload.operations:
            del self._standing[workload.name]
        reach = self._access()
        name = self._name(workload, f"w{order.workers}")
        containers, written = (
            self._stock.containers(workload),
            f"written-{self._nonce}-{self._number}-",
        )
        script = step_script(name, workload, containers, reach, order.workers, written)
        opened = datetime.now(UTC)
        with ProgressPulse(
            self._say, Progress(phase="warm-up", done=0, total=workload.warmup), self._meter
        ) as pulse:

            def began(_stage: str) -> None:
                nonlocal opened
                opened = datetime.now(UTC) + timedelta(seconds=workload.warmup)
                pulse.stage_began(workload.warmup, workload.runtime)

            archived = self._run(script, reach, workload.warmup + workload.runtime, began)
            files = kept(reach, script, archived)
            around = Circumstances(
                api=self._setup.api,
                started_at=f"{opened:%Y-%m-%dT%H:%M:%SZ}",
                load=self._load(pulse),
                started_by_us=self._site.home is not None,
                drivers=len(self._drivers),
            )
            try:
                measurement = measured(archived, script.stages[0], order, around)
                for tally in measurement.tallies:
                    if tally.operation == "delete":
                        self._see_that_they_are_gone(workload, tally.count)
            except DriverError as error:
                raise GaveUp(
                    reach.redacted(error.message), advice=error.advice, kept=files
                ) from None
        if self._site.drivers:
            measurement = measurement.model_copy(
                update={"notes": (*measurement.notes, FIRST_ALONE)}
            )
        return Measured(measurement=measurement, kept=files)

    def cleanup(self, order: Cleanup) -> Cleaned:
        """Delete by requests of our own: COSBench's cleanup says that it did, whatever it did."""
        everything = order.what == "all"
        if everything:
            self._standing.pop(order.workload.name, None)
        with ProgressPulse(self._say, Progress(phase="cleanup", done=0, total=0)) as pulse:
            deleted, failed = self._stock.delete(
                order.workload, all_of_it=everything, say=pulse.tell
            )
        return Cleaned(deleted=deleted, failed=failed)

    def _found(self, stack: ExitStack, site: CosbenchSite) -> tuple[str, str]:
        """URL of the controller and place of its archive; an installation is started."""
        if site.controller is not None and site.archive is not None:
            log.warning(
                "%s was not started by us: its driver sets its host's clock (date -s) where it may",
                site.controller,
            )
            return site.controller, site.archive
        from weighbridge.drivers.cosbench.installation import Installation  # noqa: PLC0415 - wanted only where one is started

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="weighbridge-cosbench-"))
        with ProgressPulse(self._say, Progress(phase="prepare", done=0, total=0)):
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
        """The address by which this host reaches the target: that of the lab's network."""
        try:
            with socket.socket(
                socket.AF_INET6 if ":" in self._account.host else socket.AF_INET, socket.SOCK_DGRAM
            ) as probe:
                probe.connect((self._account.host, self._account.port))  # sends nothing
                return str(probe.getsockname()[0])
        except OSError as error:
            raise DriverError(
                f"{self._account.host}: no way there from this host: {error.strerror}"
            ) from None

    def _run(
        self, script: Script, reach: StorageAccess, work_s: float, began: Callable[[str], None]
    ) -> Archived:
        try:
            return self._errand.run(script, work_s, began)
        except DriverError as error:
            raise GaveUp(
                reach.redacted(error.message), advice=error.advice, kept=kept(reach, script, None)
            ) from None

    def _access(self) -> StorageAccess:
        """Got anew for each workload: a token that expires in the middle of one would end it."""
        return access(
            self._setup.target, self._account, self._site.auth, self._setup.request_timeout_s
        )

    def _name(self, workload: Workload, what: str) -> str:
        self._number += 1
        return f"{self._setup.bucket_prefix}-{workload.name}-{what}-{self._nonce}-{self._number}"

    def _fit(self, workload: Workload) -> None:
        faults = unfit(workload, self._setup.api)
        if faults:
            raise DriverError(
                f"{workload.name}: {'; '.join(faults)}",
                advice="Change the workload, or choose another driver.",
            )

    @staticmethod
    def _short(archived: Archived, workload: Workload, count: int) -> str:
        """What is missing of the objects; "" when nothing is."""
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

    def _load(self, pulse: ProgressPulse) -> Load | None:
        if pulse.cpu is None:
            return None
        cpu_s, window_s = pulse.cpu
        return Load(cpu_s=cpu_s, cpu_limit=allowance().cpus, window_s=window_s)

    def _see_that_they_are_gone(self, workload: Workload, deleted: int) -> None:
        """Raise DriverError unless the listings bear out what COSBench counted: it counts every
        delete as a success.
        """
        count = workload.objects.count
        left = self._stock.left(workload, count - deleted)
        if not left:
            raise DriverError(
                f"all {count} objects of {workload.name} were gone before the end, and COSBench "
                "counts them as deleted again",
                advice="Give the workload more objects, or a shorter runtime.",
            )
        if count - left < deleted:
            raise DriverError(
                f"COSBench counted {deleted} deletes of {workload.name}, but only {count - left} "
                "of its objects are gone",
                advice="Deletes failed, which COSBench does not tell: the gateway's log may say "
                "why.",
            )
