"""The space of a tuning: its candidates as checked layouts, and what to restart between them."""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weighbridge.common.document import Document, DocumentError, Fault
from weighbridge.common.errors import UsageError
from weighbridge.common.structure import SCOPES, Scope, widest
from weighbridge.conductor.time_estimate import show_duration
from weighbridge.gateways.gateway import Say
from weighbridge.gateways.sizing import with_sizes
from weighbridge.results.run.trial import LayoutVariant, Settings
from weighbridge.suites.tuning import Level, Setting, Tuning, show_setting
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import LONGEST_NAME, Planned, changed_layout, path_of, slug

MOST_COMBINATIONS: Final = 500
"""A larger grid is refused: with five trials of 10 s each, 500 take seven hours."""
PROGRESS_EVERY_S: Final = 1.0


@dataclass(frozen=True)
class Choice:
    """A level of a parameter (from 0), with its place in the tuning's file."""

    parameter: int
    level: Level
    place: tuple[str | int, ...]


@dataclass(frozen=True)
class Candidate:
    """Settings that can be tried, as a checked layout, and the choices that they come from."""

    variant: LayoutVariant
    planned: Planned
    choices: tuple[Choice, ...] = ()

    @property
    def words(self) -> str:
        """As `speed=2, threads=16`, or `the baseline`."""
        settings = (f"{key}={value}" for key, value in self.variant.settings.items())
        return ", ".join(settings) or "the baseline"


class Space:
    """All settings of a layout that a tuning can try; faults point into the tuning's file."""

    def __init__(
        self, tuning: Tuning, baseline: Planned, hardware: Hardware, document: Document
    ) -> None:
        self.tuning = tuning
        self.baseline = Candidate(LayoutVariant(name=baseline.layout.name), baseline)
        self._hardware = hardware
        self._document = document
        self._kind = type(baseline.gateway)
        self._has = _settings(baseline)
        self._names: dict[str, Settings] = {baseline.layout.name: {}}
        keys = [
            key
            for parameter in tuning.parameters
            for level in parameter.levels
            for key in (parameter.key, *level.also)
        ]
        self.keys = tuple(dict.fromkeys(keys))
        self.layout_settings: Mapping[str, Setting | None] = {
            key: _plain(self._of(self._has, key)) for key in self.keys
        }

    def choices(self, number: int) -> tuple[Choice, ...]:
        """The levels of a parameter."""
        parameter = self.tuning.parameters[number]
        where = ("parameters", number)
        return tuple(
            Choice(
                number,
                level,
                (*where, "range") if parameter.range is not None else (*where, "values", index),
            )
            for index, level in enumerate(parameter.levels)
        )

    def scopes(self) -> dict[str, Scope]:
        """What must be restarted when a setting changes. Raises DocumentError if the file says
        less; `nothing` may stand for daemons, which decide at run time.
        """
        found: dict[str, Scope] = {}
        faults = []
        for number, parameter in enumerate(self.tuning.parameters):
            least = self._kind.scope(parameter.key)
            found[parameter.key] = parameter.scope or least
            asked = parameter.scope == "nothing" and least in ("reload", "restart")
            if (
                parameter.scope is not None
                and not asked
                and SCOPES.index(parameter.scope) < SCOPES.index(least)
            ):
                message = f"{parameter.key} needs scope {least}: {parameter.scope} is not enough"
                faults.append(self._document.fault_at(("parameters", number, "scope"), message))
        if faults:
            raise DocumentError(faults)
        return {key: found.get(key) or self._kind.scope(key) for key in self.keys}

    def candidate(self, choices: Sequence[Choice], *, name: str | None = None) -> Candidate:
        """The candidate of some levels together; the baseline if the layout has them already.

        A parameter's own value takes precedence over what another level sets besides (`also`); of
        two such numbers, the larger one. Raises DocumentError with all faults.
        """
        settings, places = self._merged(choices)
        own, named = self.baseline.planned, name or self._name(settings)
        planned = changed_layout(own, self._hardware, settings, lambda key: places[key], name=named)
        has = _settings(planned)
        differing: Settings = {}
        for key, value in settings.items():
            now = self._of(has, key)
            if now != self._of(self._has, key):
                plain = _plain(now)
                differing[key] = value if plain is None or plain != now else plain
        if not differing:
            return replace(self.baseline, choices=tuple(choices))
        if differing != settings and name is None:
            planned = _renamed(planned, self._name(differing))
        planned = self._with_unique_name(planned, differing)
        return Candidate(
            LayoutVariant(name=planned.layout.name, settings=differing), planned, tuple(choices)
        )

    def singles(self, say: Say) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
        """Each level alone, and remarks on others. Raises DocumentError with all faults."""
        values = sum(len(parameter.levels) for parameter in self.tuning.parameters)
        progress = _Progress("values", values, say)
        found: list[Candidate] = []
        faults: list[Fault] = []
        words: list[str] = []
        for number, parameter in enumerate(self.tuning.parameters):
            ways = self.choices(number)
            wrong: list[Fault] = []
            for choice in ways:
                progress.next()
                try:
                    one = self.candidate([choice])
                except DocumentError as error:
                    wrong += error.faults
                    continue
                if one.variant.is_baseline:
                    words.append(
                        f"{parameter.key}: {one.variant.name} already has "
                        f"{show_setting(choice.level.value)}: not tried"
                    )
                else:
                    found.append(one)
            # A fault of every level is a fault of the parameter.
            same = {fault.message for fault in wrong}
            if len(same) == 1 and len(wrong) == len(ways) > 1 and "unknown key" in wrong[0].message:
                wrong = [self._document.fault_at(("parameters", number, "key"), wrong[0].message)]
            faults += wrong
        if faults:
            raise DocumentError(once(faults))
        return tuple(found), tuple(words)

    def combinations(self, trial_s: float, say: Say) -> tuple[Candidate, ...]:
        """Every combination of levels, with the layout's own value as one of each parameter.

        Reports progress as `singles` does. Raises DocumentError with all faults; UsageError if
        there are too many, with the time that they take if a trial takes `trial_s`.
        """
        ways: list[tuple[Choice | None, ...]] = [
            (None, *self.choices(number)) for number in range(len(self.tuning.parameters))
        ]
        many = math.prod(len(one) for one in ways) - 1
        if many > MOST_COMBINATIONS:
            least = self.tuning.trials.least
            time = show_duration(many * least * trial_s)
            raise UsageError(
                f"the grid has {many} combinations, each tried {least} times at least: "
                f"{many * least} trials, {time} of warm-ups and windows alone",
                advice=f"Leave out values or parameters (at most {MOST_COMBINATIONS} "
                "combinations), or use search.",
            )
        found: dict[str, Candidate] = {}
        faults: list[Fault] = []
        progress = _Progress("combinations", many, say)
        for combined in itertools.product(*ways):
            progress.next()
            try:
                one = self.candidate([choice for choice in combined if choice is not None])
            except DocumentError as error:
                faults += error.faults
                continue
            if not one.variant.is_baseline:
                found.setdefault(one.variant.name, one)
        if faults:
            raise DocumentError(once(faults))
        return tuple(found.values())

    def _merged(self, choices: Sequence[Choice]) -> tuple[Settings, dict[str, Fault]]:
        settings: Settings = {}
        places: dict[str, Fault] = {}
        own = {self.tuning.parameters[choice.parameter].key for choice in choices}
        for choice in choices:
            key = self.tuning.parameters[choice.parameter].key
            settings[key] = choice.level.value
            places[key] = self._document.fault_at(choice.place, "")
            for other, value in choice.level.also.items():
                if other in own or (other in settings and not _larger(value, settings[other])):
                    continue
                settings[other] = value
                places[other] = self._document.fault_at((*choice.place, "also", other), "")
        return settings, places

    def _name(self, settings: Settings) -> str:
        """A name for the layout with these settings: the last word of each key, with its value."""
        words = [f"{key.rpartition('.')[2]}-{value}" for key, value in settings.items()]
        return slug([self.baseline.variant.name, *words], repr(sorted(settings.items())))

    def _with_unique_name(self, planned: Planned, settings: Settings) -> Planned:
        """The same under a unique name: values that differ only in signs have the same name."""
        name = planned.layout.name
        if self._names.setdefault(name, settings) == settings:
            return planned
        digest = hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()[:6]
        name = f"{name[: LONGEST_NAME - 7].rstrip('-')}-{digest}"
        self._names[name] = settings
        return _renamed(planned, name)

    def _of(self, settings: Mapping[str, Any], key: str) -> Any:
        found: Any = settings
        for word in path_of(key, self._kind.Settings):
            found = found.get(word) if isinstance(found, dict) else None
        return found


class _Progress:
    """Reports each second how many are checked; nothing if it takes less."""

    def __init__(self, what: str, many: int, say: Say) -> None:
        self._what, self._many, self._say = what, many, say
        self._done = 0
        self._said_at = time.monotonic()

    def next(self) -> None:
        """The next one is about to be checked."""
        if time.monotonic() - self._said_at >= PROGRESS_EVERY_S:
            self._say(f"checking settings to try: {self._done} of {self._many} {self._what}")
            self._said_at = time.monotonic()
        self._done += 1


def _renamed(planned: Planned, name: str) -> Planned:
    return replace(planned, layout=planned.layout.model_copy(update={"name": name}))


def differing(one: LayoutVariant, other: LayoutVariant) -> frozenset[str]:
    """The keys of the settings in which two differ."""
    return frozenset(
        key
        for key in {*one.settings, *other.settings}
        if one.settings.get(key) != other.settings.get(key)
    )


def scope_between(one: LayoutVariant, other: LayoutVariant, scopes: Mapping[str, Scope]) -> Scope:
    """What must be restarted to go from one to the other."""
    return widest(scopes[key] for key in differing(one, other))


def _settings(planned: Planned) -> Mapping[str, Any]:
    """All settings of a layout, defaults and sizes filled in, as JSON has them."""
    settings = type(planned.gateway).Settings.model_validate(planned.layout.settings)
    found: dict[str, Any] = with_sizes(settings, planned.sizing).model_dump(mode="json")
    return found


def _plain(value: Any) -> Setting | None:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _larger(value: Setting, other: Setting) -> bool:
    numbers = [
        one for one in (value, other) if isinstance(one, int | float) and not isinstance(one, bool)
    ]
    return len(numbers) == 2 and numbers[0] > numbers[1]


def once(faults: Iterable[Fault]) -> list[Fault]:
    """The faults, each once, by their places."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.file, fault.line, fault.column))
