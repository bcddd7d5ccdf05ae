"""The engine without Locust, for driver_cost.py: a job as JSON on stdin, results on stdout."""

from __future__ import annotations

import json
import resource
import sys
import time

from weighbridge.drivers.engine import _native

STOP_S = 10.0


def wait_until_idle(engine: _native.Engine) -> None:
    """Wait for a job of the engine. Raises RuntimeError if any part of it failed."""
    while (progress := json.loads(engine.progress()))["running"]:
        time.sleep(0.01)
    if progress["failed"]:
        raise RuntimeError(f"{progress['errors']}: {progress['last_error']}")


def cpu_s() -> float:
    """CPU seconds of this process so far, over all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the job on stdin."""
    job = json.load(sys.stdin)
    engine = _native.Engine(json.dumps(job["config"]))
    if "write" not in job["config"]["workload"]["operations"]:
        engine.prepare(0, job["config"]["workload"]["objects"]["per_container"], 1, 4)
        wait_until_idle(engine)
    for worker in range(job["connections"]):
        engine.add_worker(worker, job["connections"], 0)
    time.sleep(job["warmup_s"])
    engine.open_window()
    before_s = cpu_s()
    time.sleep(job["window_s"])
    used_s = cpu_s() - before_s
    engine.close_window()
    snapshot = json.loads(engine.snapshot())
    [tally] = snapshot["tallies"]
    engine.stop(STOP_S)
    figures = {key: tally[key] for key in ("count", "bytes", "errors", "latency")}
    print(json.dumps({**figures, "window_s": snapshot["window_s"], "cpu_s": used_s}))


if __name__ == "__main__":
    main()
