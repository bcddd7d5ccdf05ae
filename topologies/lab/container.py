"""Starting the container of one host."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.errors import CommandFailed
from weighbridge.common.home import IMPORTED_FROM
from weighbridge.topologies.lab.bundle import Bundle
from weighbridge.topologies.lab.requirements import exhausted
from weighbridge.topologies.lab.runc import Runc

START_S: Final = 60.0
"""A host starts in 0.1 s, and even on a very busy machine in less than this."""
FIRST_SPARE_DESCRIPTOR: Final = 100


def start_container(bundle: Bundle, runc: Runc, submounts: Sequence[str], lock: int) -> int:
    """Start one container; returns the pid of its first process.

    `submounts`: see `Bundle.script`; `lock` is the claim's descriptor. Raises CommandFailed.
    """
    bundle.write()
    # runc passes on descriptors from 3 on, where bash moves the disks'. They are copied to
    # numbers above 100 first, so that none overwrites another.
    spare = [
        fcntl.fcntl(disk.descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_SPARE_DESCRIPTOR)
        for disk in bundle.disks
    ]
    moves = "".join(f"exec {3 + index}<&{one} {one}<&-\n" for index, one in enumerate(spare))
    run = (
        *("run", "--detach", "--no-new-keyring", "--preserve-fds", str(len(spare))),
        *("--bundle", ".", "--pid-file", "pid"),
    )
    script = f'{moves}{bundle.script(submounts)}\nexec "$@"'
    private = ("unshare", "--mount", "--propagation", "private")
    argv = [*private, "bash", "-ec", script, "bash", *runc.argv(*run, bundle.id)]
    log = bundle.logs / "init.out"
    try:
        with log.open("wb") as out:
            code = subprocess.run(
                argv,
                cwd=bundle.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                pass_fds=(*spare, lock),
                # Ctrl-C in the conductor's terminal must not reach it.
                start_new_session=True,
                timeout=START_S,
                check=False,
            ).returncode
    except subprocess.TimeoutExpired:
        output = log.read_text(errors="replace")
        raise CommandFailed(bundle.host, ["runc", *run], None, output) from None
    finally:
        for one in spare:
            os.close(one)
    if code:
        output = log.read_text(errors="replace")
        advice = exhausted(output)
        raise CommandFailed(bundle.host, ["runc", *run], code, output, advice=advice)
    return int((bundle.folder / "pid").read_text())


def python_of_this_process() -> tuple[Path, ...]:
    """Folders of this Python and this project, for drivers on clients, even below /tmp."""
    return tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), IMPORTED_FROM)))
