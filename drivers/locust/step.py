"""One step: warm-up, window, drain, and its measurement."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any, Literal

import gevent

from weighbridge.common.errors import DriverError
from weighbridge.common.record import Record
from weighbridge.drivers.engine._native import added_histograms
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.load_runner import ANSWER_S, LoadRunner
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress
from weighbridge.drivers.locust.worker_process import (
    CLOSE,
    END,
    OPEN,
    PROGRESS,
    RELEASE,
    Begin,
    CutOff,
    Empty,
    End,
)
from weighbridge.drivers.protocol import Progress, Setup, Step
from weighbridge.results.run.step import (
    LAST_ERROR,
    RAN_OUT,
    ClientLoad,
    EndpointTally,
    Load,
    Measurement,
    Second,
    Tally,
)
from weighbridge.suites import PARTS, Operation, Workload
from weighbridge.suites.operations import ListingOptions


def endpoint_notes(endpoints: Sequence[EndpointTally]) -> tuple[str, ...]:
    """A sentence for each endpoint that was left out, or at which requests failed."""
    notes = []
    for one in endpoints:
        share = f"{one.failed} of {one.count + one.failed} requests to it failed ({one.words})"
        failed = share if one.failed else "it got no request in the window"
        if one.left_out:
            notes.append(
                f"endpoint {one.name} was left out after failed connections in a row, and its "
                f"workers went on with the others: {failed}"
            )
        elif one.failed:
            notes.append(f"endpoint {one.name}: {failed}")
    return tuple(notes)


# Windows of several worker groups merged: counts are added, exact minima and maxima are kept,
# percentiles are never averaged.


def merged(windows: Sequence[Window]) -> Window:
    """One window of all. `window_s` is their mean, since they open and close together.

    CPU seconds are added; `cpu_limit` is left out, since it differs by host. Raises ValueError when
    there are no windows.
    """
    if not windows:
        raise ValueError("no windows to merge")
    if len(windows) == 1:
        return windows[0]
    tallies: dict[Operation, list[Tally]] = {}
    moments: dict[tuple[Operation, int], list[Second]] = {}
    for window in windows:
        for tally in window.tallies:
            tallies.setdefault(tally.operation, []).append(tally)
        for second in window.seconds:
            moments.setdefault((second.operation, second.second), []).append(second)
    return Window(
        **_together(
            windows, added=("begun", "connections", "cpu_s"), most=("behind_us", "stall_us")
        ),
        tallies=tuple(_tally(same) for _, same in sorted(tallies.items())),
        seconds=tuple(_second(same) for _, same in sorted(moments.items())),
        window_s=sum(window.window_s for window in windows) / len(windows),
        endpoints=_endpoints([one for window in windows for one in window.endpoints]),
    )


def merged_progress(parts: Sequence[WorkerProgress]) -> WorkerProgress:
    """The progress of all worker groups; the last error is the last group's that has one."""
    return WorkerProgress(
        **_together(parts, added=("started", "running", "exhausted", "done", "failed", "bytes")),
        errors=_added_errors(part.errors for part in parts),
        last_error=next((part.last_error for part in reversed(parts) if part.last_error), None),
    )


def _added_errors(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    errors: Counter[str] = Counter()
    for part in parts:
        errors.update(part)
    return dict(errors)


def _tally(same: Sequence[Tally]) -> Tally:
    return Tally(
        **_together(
            same,
            added=("count", "bytes", "sum_us", "outstanding_us", "failed_us", "before_us"),
            most=("max_us", "in_flight_max_us"),
            histograms=("latency", "first_byte", "in_flight", "awaiting"),
        ),
        operation=same[0].operation,
        errors=_added_errors(tally.errors for tally in same),
        min_us=min((tally.min_us for tally in same if tally.min_us is not None), default=None),
    )


def _endpoints(parts: Sequence[EndpointTally]) -> tuple[EndpointTally, ...]:
    """The counts of each endpoint, added; one is left out if any process left it out."""
    by_name: dict[str, list[EndpointTally]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part)
    return tuple(
        EndpointTally(
            **_together(same, added=("count",), most=("left_out",), histograms=("latency",)),
            name=name,
            errors=_added_errors(one.errors for one in same),
        )
        for name, same in by_name.items()
    )


def _second(same: Sequence[Second]) -> Second:
    bands: Counter[int] = Counter()
    for second in same:
        bands.update(dict(second.bands))
    added = ("count", "bytes", "errors", "sum_us", "in_flight")
    return Second(
        **_together(same, added=added, most=("max_us",)),
        second=same[0].second,
        operation=same[0].operation,
        bands=tuple(sorted(bands.items())),
        failures=_added_errors(second.failures for second in same),
    )


def _together(
    same: Sequence[Record],
    *,
    added: Sequence[str],
    most: Sequence[str] = (),
    histograms: Sequence[str] = (),
) -> dict[str, Any]:
    """Fields of records as one: a sum is unknown if a part is, and without it would be wrong."""
    fields: dict[str, Any] = {}
    for name in (*added, *most, *histograms):
        values = [getattr(one, name) for one in same]
        known = [value for value in values if value is not None]
        if name in added:
            fields[name] = sum(known) if len(known) == len(values) else None
        elif name in most or len(known) < 2:
            fields[name] = max(known, default=None)
        else:
            fields[name] = added_histograms(known)
    return fields


Send = Callable[[Progress], None]
Phase = Literal["warm-up", "measure", "drain"]

POLL_S = 0.25
"""How often progress is polled; near the opening of the window and for deletes more often."""

EMPTY = Empty()
GRACE_S = 10.0
"""Time that a worker process may take beyond a request's timeout."""
END_S = 5.0
"""Time for users and worker groups to end when a step has failed; `close` ends them in any case."""
PAGE_S = 1.0
"""Time allowed for each further page of a first listing. On lab hosts 1,000 names took 0.09 s, and
0.4 s in a bucket of 101 shards (docs/listing.md).
"""
CLOSE_S = 30.0
"""Time that a worker process may take to return its window."""
LEAST_WARMUP_S = 1.5
"""The shortest warm-up in which a store can be seen to settle; the first second scatters most."""
GOLDEN_SHARE = 0.6180339887
"""Its multiples, without their whole parts, are spread evenly however many there are."""
SATURATED_SHARE = 0.8
SKEW_SHARE = 0.01


def _further_pages(workload: Workload) -> int:
    """The most pages after the first of an operation that lists everything; 0 without one."""
    if not {"list-all", "list-versions"} & set(workload.operations):
        return 0
    return workload.objects.per_container // (workload.listing or ListingOptions()).page


class StepRun:
    """Runs one step. `allowance` is for all of its host; `told`: whether the store has settled."""

    def __init__(
        self,
        setup: Setup,
        runner: LoadRunner,
        allowance: CpuAllowance,
        command: Step,
        send: Send,
        told: Callable[[], bool],
    ) -> None:
        self._setup = setup
        self._runner = runner
        self._allowance = allowance
        self._command = command
        self._workload = command.workload
        self._send = send
        self._told = told
        self._patience_s = setup.request_timeout_s + GRACE_S
        self._rates = deque([(time.monotonic(), WorkerProgress())])
        self._sent_s = 0.0
        self._notes: list[str] = [allowance.note] if allowance.note else []

    def run(self) -> tuple[Measurement, Window]:
        """Measure the step, and end its users on every path. Raises DriverError if it fails."""
        command = self._command
        try:
            # The users wait, until Locust has said which of them are where.
            self._runner.start_users(command.workers)
            self._runner.begin(
                Begin(
                    workload=self._workload,
                    workers=command.workers,
                    repeat=command.repeat,
                    count=command.workers,
                )
            )
            window, load, started_at, warmup_s = self._measure()
        except gevent.GreenletExit:
            # The driver is being ended: closing the runner ends everything, without questions.
            raise
        except BaseException:
            # The original error is reported; ending the rest may fail for the same reason, and
            # must not hide it.
            with gevent.Timeout(END_S, exception=False):
                self._end(0.0, hide=True)
            raise
        ended = self._drain()
        tallies = self._with_cut_off(window.tallies, ended.requests)
        busiest = load.busiest
        if busiest.share(load.window_s) > SATURATED_SHARE:
            where = f" on {busiest.client}" if busiest.client else ""
            share = f"{busiest.share(load.window_s):.0%} of its {busiest.cpu_limit:g} CPUs"
            self._notes.append(
                f"the driver{where} used {share}: it, not the gateway, may be the bottleneck"
            )
        if ended.renewed or any("http-401" in tally.errors for tally in tallies):
            self._notes.append(self._token_note(ended.renewed))
        what = "keys" if self._setup.api == "s3" else "tokens"
        if ended.replaced:
            self._notes.append(f"{what} renewed in the step before they expired: {ended.replaced}")
        if ended.without:
            self._notes.append(
                f"no new {what} in the step, the old ones were used: {ended.without}"
            )
        self._notes += endpoint_notes(window.endpoints)
        measurement = Measurement(
            api=self._setup.api,
            workload=self._workload.name,
            workers=command.workers,
            driver=f"locust-{self._setup.users}",
            started_at=started_at,
            window_s=window.window_s,
            warmup_s=warmup_s,
            tallies=tallies,
            seconds=window.seconds,
            begun=window.begun,
            behind_us=window.behind_us,
            connections=window.connections,
            stall_us=window.stall_us,
            endpoints=window.endpoints,
            load=load,
            notes=tuple(self._notes),
        )
        return measurement, window

    def _token_note(self, renewed: int) -> str:
        if self._setup.target.token is not None:
            remedy = "a given token cannot be renewed: give one that outlives the run"
        elif renewed:
            times = f", by {renewed} processes or times" if renewed > 1 else ""
            remedy = f"it was renewed during the step{times}; refused requests count as failed"
        else:
            remedy = "a new one is requested before the next step"
        return f"the gateway forgot the token in the step (http-401): {remedy}"

    def _measure(self) -> tuple[Window, Load, str, float]:
        """The window, its CPU use, and when it opened (UTC, and seconds after the first user)."""
        workload = self._workload
        # Objects to delete are used up: after a warm-up there could be none left for the window.
        at_once = workload.only_deletes and workload.warmup == 0
        opened_s, own_cpu_at_open_s, started_at = self._open()
        began_s = time.monotonic()
        self._runner.ask(RELEASE, EMPTY, ANSWER_S)
        if at_once:
            self._notes.append(
                "the window opened before the first request, since objects to delete are used up"
            )
        else:
            self._warm_up(began_s)
            self._fall_out_of_step()
            opened_s, own_cpu_at_open_s, started_at = self._open()
        self._watch(opened_s)
        windows = self._runner.ask(CLOSE, EMPTY, CLOSE_S)
        own_cpu_s = self._runner.own_cpu_s() - own_cpu_at_open_s
        window = merged(windows)
        # Classes do not say why: 403 is for a key, a quota, a clock.
        if any(one.failed for one in window.tallies) and (last := self._progress().last_error):
            self._notes.append(f"{LAST_ERROR}{last}")
        lengths_s = [one.window_s for one in windows]
        if max(lengths_s) - min(lengths_s) > SKEW_SHARE * window.window_s:
            self._notes.append(
                f"windows of the worker processes are {min(lengths_s):.3f} s to "
                f"{max(lengths_s):.3f} s long"
            )
        if not window.window_s:
            raise DriverError("the window has no length")
        return (
            window,
            self._load(windows, own_cpu_s, window.window_s),
            started_at,
            max(0.0, opened_s - began_s),
        )

    def _load(self, windows: Sequence[Window], own_cpu_s: float, window_s: float) -> Load:
        """The CPU use of the driver and of each of several clients; `own_cpu_s`: this process's."""
        clients: list[ClientLoad] = []
        for client in dict.fromkeys(self._runner.clients):
            windows_here = [
                window
                for window, its_client in zip(windows, self._runner.clients, strict=True)
                if its_client == client
            ]
            # This process is on the first client, whose note is there already.
            first = windows_here[0]
            cpu_s = sum(window.cpu_s for window in windows_here) + (0.0 if clients else own_cpu_s)
            self._notes += [f"{client}: {first.note}"] if clients and first.note else []
            clients.append(ClientLoad(client=client, cpu_s=cpu_s, cpu_limit=first.cpu_limit))
        if len(clients) == 1:
            return Load(cpu_s=clients[0].cpu_s, cpu_limit=self._allowance.cpus, window_s=window_s)
        cpu_s, cpu_limit = sum(one.cpu_s for one in clients), sum(one.cpu_limit for one in clients)
        return Load(cpu_s=cpu_s, cpu_limit=cpu_limit, window_s=window_s, clients=tuple(clients))

    def _open(self) -> tuple[float, float, str]:
        own_cpu_s = self._runner.own_cpu_s()
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._runner.ask(OPEN, EMPTY, ANSWER_S)
        return time.monotonic(), own_cpu_s, started_at

    def _warm_up(self, began_s: float) -> None:
        """Wait until the warm-up is over, the store has settled, and every worker has completed a
        request.

        Raises DriverError when one has not after the warm-up and a request's timeout. A complete
        listing is one operation of many requests, each with its own timeout.
        """
        warmup_s, settle_s, told = self._workload.warmup, self._command.settle_s, False
        if settle_s:
            warmup_s = max(warmup_s, LEAST_WARMUP_S)
        due_s = warmup_s + settle_s
        deadline_s = began_s + due_s + self._patience_s + PAGE_S * _further_pages(self._workload)
        while True:
            progress = self._progress()
            passed_s = time.monotonic() - began_s
            self._report("warm-up", min(passed_s, warmup_s), warmup_s, progress)
            if progress.exhausted >= self._command.workers:
                self._notes.append(f"{RAN_OUT} in the warm-up")
                return
            if settle_s and not told and self._told():
                told, due_s = True, max(warmup_s, min(due_s, passed_s))
            if passed_s >= due_s and progress.started >= self._command.workers:
                if passed_s > due_s + 1.0:
                    delay = f"the window opened {passed_s - due_s:.1f} s late"
                    self._notes.append(f"{delay}: a first request took that long")
                if settle_s and not told:
                    still = "the disks' reads per operation still fell"
                    self._notes.append(f"after a warm-up of {passed_s:.1f} s {still}")
                return
            if time.monotonic() > deadline_s:
                late = self._command.workers - progress.started
                last = f"; last error: {progress.last_error}" if progress.last_error else ""
                raise DriverError(
                    f"{late} of {self._command.workers} workers had not finished a request after "
                    f"{passed_s:.0f} s{last}"
                )
            left_s = due_s - passed_s if told or not settle_s else max(0.05, warmup_s - passed_s)
            gevent.sleep(max(0.005, min(POLL_S, left_s)))

    def _fall_out_of_step(self) -> None:
        """Close the window that the warm-up had, and let a share of its mean latency pass.

        Workers are in step with its end, when the last has finished its first request. A window
        of few requests that opens there counts up to a fifth less than workers / mean latency
        (benchmarks/window_phase.py). Shares of repeats are spread evenly from a drawn one on.
        """
        command = self._command
        window = merged(self._runner.ask(CLOSE, EMPTY, CLOSE_S))
        complete = [tally for tally in window.tallies if tally.operation not in PARTS]
        spent_us = sum((tally.sum_us or 0) + (tally.failed_us or 0) for tally in complete)
        ended = max(1, sum(tally.count + tally.failed for tally in complete))
        drawn = Random(f"{self._setup.seed} {command.workload.name} {command.workers}")  # noqa: S311 - not a secret
        share = (drawn.random() + command.repeat * GOLDEN_SHARE) % 1
        opens_s = time.monotonic() + share * spent_us / ended / 1e6
        while (left_s := opens_s - time.monotonic()) > 0:
            gevent.sleep(min(POLL_S, left_s))
            self._report("warm-up", self._workload.warmup, self._workload.warmup, None)

    def _watch(self, opened_s: float) -> None:
        """Wait until the window closes: at its end, or when no objects are left to delete."""
        runtime_s = self._workload.runtime
        poll_s = 0.02 if self._workload.deletes else POLL_S
        while True:
            left_s = opened_s + runtime_s - time.monotonic()
            if left_s <= 0:
                return
            # The last sleep is the exact remainder, so that polling does not change the length.
            gevent.sleep(min(poll_s, left_s))
            if left_s <= poll_s:
                return
            progress = self._progress()
            passed_s = time.monotonic() - opened_s
            self._report("measure", min(passed_s, runtime_s), runtime_s, progress)
            if progress.exhausted >= self._command.workers:
                self._notes.append(f"{RAN_OUT} after {passed_s:.2f} s: the window ended there")
                return
            if progress.running == 0:
                reason = "no request failed: no worker process has a worker left"
                last = f"last error: {progress.last_error}" if progress.last_error else reason
                raise DriverError(f"all workers ended by themselves; {last}")

    def _drain(self) -> CutOff:
        timeout_s = self._setup.request_timeout_s
        ending = gevent.spawn(self._end, timeout_s)
        began_s = time.monotonic()
        try:
            while not ending.ready():
                passed_s = time.monotonic() - began_s
                self._report("drain", min(passed_s, timeout_s), timeout_s, None)
                ending.join(POLL_S)
            return CutOff.model_validate(ending.get())
        finally:
            ending.kill()

    def _end(self, timeout_s: float, *, hide: bool = False) -> CutOff:
        try:
            self._runner.stop_users(timeout_s)
            ended = self._runner.ask(END, End(timeout_s=timeout_s), timeout_s + self._patience_s)
        except DriverError:
            if hide:
                return CutOff(requests=0)
            raise
        without = "; ".join(dict.fromkeys(one.without for one in ended if one.without))
        return CutOff(
            **_together(ended, added=("requests", "renewed", "replaced")), without=without
        )

    def _with_cut_off(self, tallies: tuple[Tally, ...], cut: int) -> tuple[Tally, ...]:
        if not cut:
            return tallies
        operations = sorted(self._workload.operations)
        self._notes.append(
            f"{cut} requests outstanding at the end of the window were not answered within "
            f"{self._setup.request_timeout_s:g} s: counted as unfinished"
        )
        if len(operations) > 1:
            self._notes.append(
                "the operation of unfinished requests is not known: they are counted under "
                f"{operations[0]!r}"
            )
        by_operation = {tally.operation: tally for tally in tallies}
        one = by_operation.get(operations[0]) or Tally(operation=operations[0], count=0, bytes=0)
        errors = {**one.errors, "unfinished": cut}
        by_operation[operations[0]] = one.model_copy(update={"errors": errors})
        return tuple(by_operation.values())

    def _progress(self) -> WorkerProgress:
        return merged_progress(self._runner.ask(PROGRESS, EMPTY, ANSWER_S))

    def _report(
        self, phase: Phase, done_s: float, total_s: float, progress: WorkerProgress | None
    ) -> None:
        now_s = time.monotonic()
        if now_s - self._sent_s < POLL_S * 0.9:
            return
        self._sent_s = now_s
        if progress is not None:
            self._rates.append((now_s, progress))
            while len(self._rates) > 2 and now_s - self._rates[1][0] > 1.0:
                self._rates.popleft()
        (then_s, then), (at_s, now) = self._rates[0], self._rates[-1]
        passed_s = (at_s - then_s if progress is not None else 0.0) or math.inf
        self._send(
            Progress(
                phase=phase,
                done=done_s,
                total=total_s,
                operations=now.done,
                operations_per_s=max(0, now.done - then.done) / passed_s,
                bytes_per_s=max(0, now.bytes - then.bytes) / passed_s,
                errors=now.failed,
            )
        )
