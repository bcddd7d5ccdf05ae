from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weighbridge.common.errors import TargetError, UsageError
from weighbridge.conductor.clearing import clearing
from weighbridge.gateways.capabilities.capability import Answer, Capability, LayoutAnswers
from weighbridge.results.run.resolved import Sheet
from weighbridge.topologies.deployment import Deployment, StateFolders, deploy
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned

if TYPE_CHECKING:
    from weighbridge.gateways.capabilities.asking import Asked

SHEET: Final = "capabilities"
SAY_S: Final = 10.0

Say = Callable[[str], None]


def ask_layout(
    planned: Planned,
    hardware: Hardware,
    place: StateFolders,
    capabilities: Sequence[Capability],
    say: Say,
    *,
    logs: Path,
) -> LayoutAnswers:
    """Ask a layout on its own deployment; its failure is among the answers."""
    # botocore is imported with it: not where Locust patches sockets afterwards.
    from weighbridge.gateways.capabilities.asking import Asked  # noqa: PLC0415

    name = planned.layout.name
    asked = Asked()
    failures: list[TargetError] = []
    facts: dict[str, str] = {}
    try:
        with deploy(planned, hardware, place, say, logs=logs / name) as deployment:
            facts = deployment.facts()
            log = logs / f"asking-{name}.log"
            ask_deployment(deployment, capabilities, planned, say, asked, log=log)
    except UsageError:
        raise
    except TargetError as error:
        failures.append(error)
    return _answers(planned, capabilities, asked, failures, facts)


def ask_for_run(planned: Planned, deployment: Deployment, say: Say, *, log: Path) -> LayoutAnswers:
    """Ask a deployment of a run all that is not dangerous; a failure of it is in the answers."""
    from weighbridge.gateways.capabilities.asking import (  # noqa: PLC0415
        CAPABILITIES,
        Asked,
        in_order,
    )

    harmless = [one for one in in_order(CAPABILITIES) if not one.dangerous]
    asked = Asked()
    failures: list[TargetError] = []
    try:
        ask_deployment(deployment, harmless, planned, say, asked, log=log)
    except TargetError as error:
        failures.append(error)
    return _answers(planned, harmless, asked, failures, {})


def sheet_of(found: LayoutAnswers) -> Sheet:
    """The answers as a sheet of a run's manifest, which its report shows beside the others'."""
    from weighbridge.gateways.capabilities.asking import CAPABILITIES  # noqa: PLC0415

    facts = {}
    for key, answer in found.answers.items():
        one = CAPABILITIES[key]
        why = f": {answer.why}" if answer.outcome != "works" and answer.why else ""
        facts[f"{one.api}: {one.group}: {one.title}"] = f"{answer.outcome}{why}"
    return Sheet(title=SHEET, layout=found.layout, facts=facts)


def _answers(
    planned: Planned,
    capabilities: Sequence[Capability],
    asked: Asked,
    failures: Sequence[TargetError],
    facts: dict[str, str],
) -> LayoutAnswers:
    """What was answered; where there are no answers, the first failure is why."""
    died = str(asked.died) if asked.died is not None else ""
    if not asked.answers and failures:
        died = str(failures[0])
    not_asked = Answer(outcome="unknown", text=f"not asked: {died}")
    apis = planned.gateway.apis()
    return LayoutAnswers(
        layout=planned.layout.name,
        release=planned.layout.release,
        facts=facts,
        answers={
            one.key: asked.answers.get(one.key, not_asked)
            for one in capabilities
            if one.api in apis
        },
        died=died,
        left=tuple(one.message for one in failures if str(one) != died),
    )


def ask_deployment(
    deployment: Deployment,
    capabilities: Sequence[Capability],
    planned: Planned,
    say: Say,
    asked: Asked,
    *,
    log: Path,
) -> None:
    """Ask a running deployment, into `asked`; delete buckets that would outlive it. Raises
    TargetError naming what may be left.
    """
    from weighbridge.gateways.capabilities.asking import ask_all  # noqa: PLC0415

    name, outlives = deployment.layout.name, planned.gateway.already_runs
    served = {one.api for one in deployment.endpoints}
    count = sum(one.api in served for one in capabilities)
    say(f"{name}: asking {count} capabilities over {' and '.join(sorted(served))}")
    said = time.monotonic()

    def asking(one: Capability) -> None:
        nonlocal said
        if time.monotonic() - said >= SAY_S:
            said = time.monotonic()
            say(f"{name}: asking {one.key}; {len(asked.answers)} of {count} are answered")

    log.parent.mkdir(parents=True, exist_ok=True)
    with clearing(deployment, asked.buckets, say), deployment.unlimited():
        ask_all(
            deployment.client,
            deployment.endpoints,
            capabilities,
            asked,
            prefix=f"wb-{secrets.token_hex(4)}",
            own=not outlives,
            check=deployment.check,
            log=log,
            asking=asking,
        )
