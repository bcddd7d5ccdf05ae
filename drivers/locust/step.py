"""One step: warm-up, window, drain, and the measurement that comes of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

import gevent

from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.floor import ANSWER_S, Floor
from weighbridge.drivers.locust.merge import merged, merged_pulses
from weighbridge.drivers.locust.station import CLOSE, END, OPEN, PULSE, Begin, End, Nothing
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress
from weighbridge.drivers.order import Progress, Setup, Step
from weighbridge.results.record.measurement import ClientLoad, Load, Measurement, Tally

Say = Callable[[Progress], None]
Phase = Literal["warm-up", "measure", "drain"]

PULSE_S = 0.25
"""How often the crews are asked how they are getting on; near the opening and for deletes oftener.
"""

NOTHING = Nothing()
GRACE_S = 10.0
"""What a station may take for its part beyond the time that a request may take."""
END_S = 5.0
"""How long users and crews may take to end when a step has failed: the floor is closed after it,
which ends all the same.
"""
CLOSE_S = 30.0
"""How long a station may take to say what it recorded."""
SATURATED_SHARE = 0.8
SKEW_SHARE = 0.01


class StepRun:
    """Runs one step on a floor. `allowance` is what all processes of this driver may use."""

    def __init__(
        self, setup: Setup, floor: Floor, allowance: CpuAllowance, order: Step, say: Say
    ) -> None:
        self._setup = setup
        self._floor = floor
        self._allowance = allowance
        self._order = order
        self._workload = order.workload
        self._say = say
        self._patience_s = setup.request_timeout_s + GRACE_S
        self._rates: deque[tuple[float, WorkerProgress]] = deque()
        self._said_s = 0.0
        self._notes: list[str] = [allowance.note] if allowance.note else []

    def run(self) -> tuple[Measurement, Window]:
        """Do it. Raises DriverError when it cannot be measured; users and crews are ended on every
        path.
        """
        order = self._order
        self._floor.begin(
            Begin(workload=self._workload, workers=order.workers, repeat=order.repeat)
        )
        try:
            window, load, started_at, warmup_s = self._measure()
        except gevent.GreenletExit:
            # this driver ends: its floor is closed next, which ends all of them and asks nobody
            raise
        except BaseException:
            # What raised is what is told; ending the rest must not hide it, and may fail for the
            # same reason.
            with gevent.Timeout(END_S, exception=False):
                self._end(0.0, hide=True)
            raise
        cut, renewed = self._drain()
        tallies = self._with_cut_off(window.tallies, cut)
        busiest = load.busiest
        if busiest.share(load.window_s) > SATURATED_SHARE:
            where = f" on {busiest.client}" if busiest.client else ""
            used = (
                f"{busiest.share(load.window_s):.0%} of the {busiest.cpu_limit:g} CPUs it may use"
            )
            self._notes.append(
                f"the driver{where} used {used}: it, not the gateway, may be the limit"
            )
        if renewed or any("http-401" in tally.errors for tally in tallies):
            self._notes.append(self._forgotten(renewed))
        measurement = Measurement(
            api=self._setup.api,
            workload=self._workload.name,
            workers=order.workers,
            driver=f"locust-{self._setup.users}",
            started_at=started_at,
            window_s=window.window_s,
            warmup_s=warmup_s,
            tallies=tallies,
            seconds=window.seconds,
            begun=window.begun,
            behind_us=window.behind_us,
            load=load,
            notes=tuple(self._notes),
        )
        return measurement, window

    def _forgotten(self, renewed: int) -> str:
        """What is to be known of a step in which requests were refused for their token."""
        if self._setup.target.token is not None:
            remedy = "it was given and cannot be got anew: give one that outlives the run"
        elif renewed:
            times = f", by {renewed} processes or times" if renewed > 1 else ""
            remedy = (
                f"a new one was got in the step{times}, and what was refused until then is "
                "counted as failed"
            )
        else:
            remedy = "a new one is got before the next step"
        return f"the gateway forgot the token in the step (http-401): {remedy}"

    def _measure(self) -> tuple[Window, Load, str, float]:
        """The window, the CPU that was used inside it, and when it opened (UTC, and seconds after
        the first user).
        """
        workload = self._workload
        # Objects to delete are used up: a window that waits for a warm-up could find none left.
        at_once = set(workload.operations) == {"delete"} and workload.warmup == 0
        began_s = time.monotonic()
        opened = self._open() if at_once else None
        self._floor.start_users(self._order.workers)
        if opened is None:
            self._warm_up(time.monotonic())
            opened = self._open()
        else:
            self._notes.append(
                "the window opened before the first request, since objects to delete are used up"
            )
        opened_s, own_cpu_at_open_s, started_at = opened
        self._watch(opened_s)
        windows = self._floor.ask(CLOSE, NOTHING, CLOSE_S)
        own_cpu_s = self._floor.own_cpu_s() - own_cpu_at_open_s
        window = merged(windows)
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
        """What the driver used, and where there are several clients what it used on each.

        `own_cpu_s` is of this process alone.
        """
        clients: list[ClientLoad] = []
        for client in dict.fromkeys(self._floor.clients):
            mine = [
                window
                for window, its in zip(windows, self._floor.clients, strict=True)
                if its == client
            ]
            # This process is on the first client, and what is to be known of that one's limit has
            # been said.
            cpu_s = sum(window.cpu_s for window in mine) + (0.0 if clients else own_cpu_s)
            self._notes += [f"{client}: {mine[0].note}"] if clients and mine[0].note else []
            clients.append(ClientLoad(client=client, cpu_s=cpu_s, cpu_limit=mine[0].cpu_limit))
        if len(clients) == 1:
            return Load(cpu_s=clients[0].cpu_s, cpu_limit=self._allowance.cpus, window_s=window_s)
        cpu_s, cpu_limit = sum(one.cpu_s for one in clients), sum(one.cpu_limit for one in clients)
        return Load(cpu_s=cpu_s, cpu_limit=cpu_limit, window_s=window_s, clients=tuple(clients))

    def _open(self) -> tuple[float, float, str]:
        own_cpu_s = self._floor.own_cpu_s()
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._floor.ask(OPEN, NOTHING, ANSWER_S)
        return time.monotonic(), own_cpu_s, started_at

    def _warm_up(self, began_s: float) -> None:
        """Wait until the warm-up is over and every worker has finished its first request, which has
        a deadline.
        """
        warmup_s = self._workload.warmup
        deadline_s = began_s + warmup_s + self._patience_s
        while True:
            pulse = self._pulse()
            passed_s = time.monotonic() - began_s
            self._progress("warm-up", min(passed_s, warmup_s), warmup_s, pulse)
            if pulse.exhausted >= self._order.workers:
                self._notes.append("objects to delete ran out in the warm-up")
                return
            if passed_s >= warmup_s and pulse.started >= self._order.workers:
                if passed_s > warmup_s + 1.0:
                    self._notes.append(
                        f"the window opened {passed_s - warmup_s:.1f} s late: a first request "
                        "took so long"
                    )
                return
            if time.monotonic() > deadline_s:
                late = self._order.workers - pulse.started
                last = f"; last error: {pulse.last_error}" if pulse.last_error else ""
                raise DriverError(
                    f"{late} of {self._order.workers} workers had not finished a request after "
                    f"{passed_s:.0f} s{last}"
                )
            gevent.sleep(max(0.005, min(PULSE_S, warmup_s - passed_s)))

    def _watch(self, opened_s: float) -> None:
        """Wait until the window is to be closed: at its end, or when nobody has anything left to
        delete.
        """
        runtime_s = self._workload.runtime
        pulse_s = 0.02 if "delete" in self._workload.operations else PULSE_S
        while True:
            left_s = opened_s + runtime_s - time.monotonic()
            if left_s <= 0:
                return
            # The last sleep is the exact rest, so that asking costs the window no length.
            gevent.sleep(min(pulse_s, left_s))
            if left_s <= pulse_s:
                return
            pulse = self._pulse()
            passed_s = time.monotonic() - opened_s
            self._progress("measure", min(passed_s, runtime_s), runtime_s, pulse)
            if pulse.exhausted >= self._order.workers:
                self._notes.append(
                    f"objects to delete ran out after {passed_s:.2f} s: the window ended there"
                )
                return
            if pulse.running == 0:
                last = (
                    f"last error: {pulse.last_error}"
                    if pulse.last_error
                    else "no request failed: no station has a worker left"
                )
                raise DriverError(f"all workers ended by themselves; {last}")

    def _drain(self) -> tuple[int, int]:
        """End users and crews; requests in hand get their time.

        How many were cut off, and how often a token was renewed.
        """
        timeout_s = self._setup.request_timeout_s
        ending = gevent.spawn(self._end, timeout_s)
        began_s = time.monotonic()
        try:
            while not ending.ready():
                passed_s = time.monotonic() - began_s
                self._progress("drain", min(passed_s, timeout_s), timeout_s, None)
                ending.join(PULSE_S)
            cut, renewed = ending.get()
            return int(cut), int(renewed)
        finally:
            ending.kill()

    def _end(self, timeout_s: float, *, hide: bool = False) -> tuple[int, int]:
        try:
            self._floor.stop_users()
            told = self._floor.ask(END, End(timeout_s=timeout_s), timeout_s + self._patience_s)
        except DriverError:
            if hide:
                return 0, 0
            raise
        return sum(one.requests for one in told), sum(one.renewed for one in told)

    def _with_cut_off(self, tallies: tuple[Tally, ...], cut: int) -> tuple[Tally, ...]:
        """Requests that never ended are errors of class `unfinished`."""
        if not cut:
            return tallies
        operations = sorted(self._workload.operations)
        seconds = f"{self._setup.request_timeout_s:g} s"
        self._notes.append(
            f"{cut} requests in hand at the end of the window were not answered within {seconds}: "
            "counted as unfinished"
        )
        if len(operations) > 1:
            self._notes.append(
                "of which operation the unfinished are is not known: they are counted under "
                f"{operations[0]!r}"
            )
        there = {tally.operation: tally for tally in tallies}
        one = there.get(operations[0]) or Tally(operation=operations[0], count=0, bytes=0)
        there[operations[0]] = one.model_copy(update={"errors": {**one.errors, "unfinished": cut}})
        return tuple(there.values())

    def _pulse(self) -> WorkerProgress:
        return merged_pulses(self._floor.ask(PULSE, NOTHING, ANSWER_S))

    def _progress(
        self, phase: Phase, done_s: float, total_s: float, pulse: WorkerProgress | None
    ) -> None:
        """Say how far it is, a few times a second, with rates over the last second or so."""
        now_s = time.monotonic()
        if now_s - self._said_s < PULSE_S * 0.9:
            return
        self._said_s = now_s
        if pulse is not None:
            self._rates.append((now_s, pulse))
            while len(self._rates) > 2 and now_s - self._rates[1][0] > 1.0:
                self._rates.popleft()
        if pulse is None or len(self._rates) < 2:
            self._say(
                Progress(
                    phase=phase,
                    done=done_s,
                    total=total_s,
                    errors=self._rates[-1][1].failed if self._rates else 0,
                )
            )
            return
        (then_s, then), (_, now) = self._rates[0], self._rates[-1]
        self._say(
            Progress(
                phase=phase,
                done=done_s,
                total=total_s,
                operations_per_s=max(0, now.done - then.done) / (now_s - then_s),
                bytes_per_s=max(0, now.bytes - then.bytes) / (now_s - then_s),
                errors=now.failed,
            )
        )
