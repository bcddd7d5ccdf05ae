"""A made-up run in whose steps a host fell silent."""

import math
import random
from pathlib import Path
from typing import Any

from fake_run import fake_run
from weighbridge.results.run.durability import Change, Outage, Seen, record_outage
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.store import RunStore
from weighbridge.suites import Fault, Objects, Workload

AT, BACK = 15.0, 40.0
SILENT = Workload(
    name="host-silent",
    objects=Objects(size=4096),
    operations={"read": 100},
    workers=(8,),
    runtime=60.0,
    fault=Fault.model_validate({"at": "15s", "silence": "storage-host", "back": "40s"}),
)
NOTHING = {"count": 0, "max_us": 0, "bands": (), "errors": 2, "failures": {"timeout": 2}}
STALLS_S = {"rgw-beast": 21.0, "swift": 2.0}
KEY = StepKey(layout="rgw-beast", api="swift", workload="host-silent", workers=8, repeat=0)


def fake_outage(key: StepKey = KEY, **more: Any) -> Outage:
    whole, less = "3 of 3 OSDs up", "2 of 3 OSDs up"
    values: dict[str, Any] = {
        "key": key,
        "way": "silence",
        "host": "store-2",
        "services": ("osd.1",),
        "fault": Change(begun_s=AT, done_s=AT + 0.1),
        "back": Change(begun_s=BACK, done_s=BACK + 4),
        "seen": (
            Seen(at_s=1, whole=True, words=whole),
            Seen(at_s=AT + 20.5, whole=False, words=less),
            Seen(at_s=BACK + 5, whole=True, words=whole),
            Seen(at_s=BACK + 6, whole=False, words="90 of 101 clean"),
            Seen(at_s=BACK + 30, whole=True, words=whole),
        ),
        "settings": {"osd_heartbeat_grace": "20"},
    }
    return Outage.model_validate({**values, **more})


def outage_run(runs: Path) -> RunStore:
    """Five repeats: nothing is served from the fault until shortly before the stall ends."""
    store = fake_run(runs, workloads=[SILENT])
    draw = random.Random(1)
    for step in store.steps():
        measured = step.measurement
        assert measured is not None
        stall_s = STALLS_S[step.key.layout] * math.exp(draw.gauss(0, 0.02))
        dead = range(int(AT), int(AT + STALLS_S[step.key.layout] - 1))
        seconds = tuple(
            one.model_copy(update=NOTHING) if one.second in dead else one
            for one in measured.seconds
        )
        update = {"stall_us": round(stall_s * 1e6), "seconds": seconds}
        changed = measured.model_copy(update=update)
        store.append(step.model_copy(update={"measurement": changed}))
        seen = {} if step.key.layout == "rgw-beast" else {"seen": (), "services": ("swift",)}
        record_outage(store.folder, fake_outage(step.key, **seen))
    return store
