"""YAML files with places: every fault of a file at once, as file:line:column with the line, a caret
and "did you mean".
"""

from __future__ import annotations

import difflib
import inspect
import re
import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from weighbridge.common.errors import UsageError
from weighbridge.common.inert import inert

Model = TypeVar("Model", bound=BaseModel)
Path_ = tuple[str | int, ...]

WRITTEN = "written"
"""The context in which records are validated that a person wrote: names in them must be known here
and now.
"""

LARGEST_FILE_BYTES = 1_000_000
"""Files beyond this are refused unread: no suite, layout or hardware file comes near it."""

DEEPEST = 30
MOST_VALUES = 50_000
"""Bounds of what a file may unfold to."""

LONGEST_NUMBER = 100
"""Characters of a number: Python neither reads nor prints whole numbers of thousands of digits."""

LONGEST_SHOWN = 400
"""Characters of a line that are shown with a fault."""

_USER_IN_URL = re.compile(r"(?<=://)[^/\s]*(?=@)")
"""It is refused wherever a URL is wanted, and the line that is shown with the refusal must not tell
it.
"""


@dataclass(frozen=True)
class Fault:
    """One fault of a file: where (1-based line and column), what, and the text of that line.

    `caret` is where in the text it is, when the text is not the line itself: from 1, or 0 for
    nowhere.
    """

    file: str
    line: int
    column: int
    message: str
    text: str
    caret: int | None = None

    def __str__(self) -> str:
        at = self.column if self.caret is None else self.caret
        # Of a very long line what stands around the fault; nothing of it moves a terminal's cursor.
        begin = max(0, at - LONGEST_SHOWN // 2) if len(self.text) > LONGEST_SHOWN else 0
        text = _USER_IN_URL.sub(lambda found: "*" * len(found[0]), self.text)
        shown = "".join(
            one if one.isprintable() else " " for one in text[begin : begin + LONGEST_SHOWN]
        )
        told = f"{self.file}:{self.line}:{self.column}: {inert(self.message)}\n    {shown}"
        return f"{told}\n    {' ' * (at - 1 - begin)}^" if at > 0 else told.rstrip()


class DocumentError(UsageError):
    """All faults of one file. `faults` is never empty."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # which of the two is known at run time
    """Safe loading only: no tags make objects. libyaml's parser where PyYAML has it."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node.

        PyYAML lets what its own readers of numbers and dates raise through; here it has a place.
        """
        if (
            isinstance(node, yaml.ScalarNode)
            and node.tag in _NUMBERS
            and len(node.value) > LONGEST_NUMBER
        ):
            problem = f"a number of more than {LONGEST_NUMBER} characters"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
            kind = node.tag.rpartition(":")[2]
            value = repr(node.value[:60]) if isinstance(node, yaml.ScalarNode) else "this"
            problem = (
                f"{value} is not a value of YAML's type {kind!r}; as a text it would stand "
                "in quotes"
            )
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


class Document:
    """One parsed YAML file that knows where each of its values stands."""

    def __init__(self, file: str, text: str) -> None:
        """Parse `text`; `file` is only its name in messages.

        Raises DocumentError, or UsageError when it is too large.
        """
        if len(text) > LARGEST_FILE_BYTES:
            raise _too_large(file)
        self.file = file
        self.lines = text.splitlines()
        self._places: dict[Path_, tuple[int, int]] = {}
        self._changes: list[tuple[Path_, Fault]] = []
        self._faults: list[Fault] = []
        self._unfolds = False
        try:
            self._see_how_deep(text)
            root = None if self._faults else yaml.compose(text, Loader=_Loader)
            if root is not None:
                self._walk(root, (), 0)
            if not self._faults:
                self.data: Any = yaml.load(text, Loader=_Loader)  # noqa: S506 - _Loader is a SafeLoader
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            self._fault(line, column, f"not YAML: {error.problem or error.context}")
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            self._fault(1, 1, f"not YAML: {' '.join(str(error).split())}")
        if self._faults:
            raise DocumentError(self._faults)

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a file. Raises DocumentError, or UsageError when the file cannot be read."""
        try:
            # Neither a device nor a pipe has a size: what is read is bounded, whatever it is.
            with path.open("rb") as file:
                data = file.read(LARGEST_FILE_BYTES + 1)
            if len(data) > LARGEST_FILE_BYTES:
                raise _too_large(str(path))
            return cls(str(path), data.decode("utf-8").replace("\r\n", "\n"))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: byte {error.start}: not UTF-8 text") from error
        except ValueError as error:
            raise UsageError(f"{str(path)!r}: {error}") from error

    def change(self, path: Path_, value: object, origin: Fault) -> None:
        """Put a value in that did not come from the file. Faults about it are told at `origin`,
        with other words.

        Raises DocumentError at `origin` when there is no such place: something on the way is a
        plain value.
        """
        inner = self.data
        for part in path[:-1]:
            inner = inner.setdefault(part, {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict):
            raise DocumentError(
                [
                    replace(
                        origin,
                        message=f"{'.'.join(map(str, path))}: there is nothing of that name to "
                        "change",
                    )
                ]
            )
        inner[path[-1]] = value
        self._changes.append((path, origin))

    def _fault(self, line: int, column: int, message: str) -> None:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        self._faults.append(Fault(self.file, line, column, message, text))

    def _see_how_deep(self, text: str) -> None:
        """Refuse what is nested too deeply before nodes are made of it:

        PyYAML does so by calls in C, which end the process.
        """
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST + 1:
                    mark = event.start_mark
                    self._fault(
                        mark.line + 1 if mark else 1,
                        mark.column + 1 if mark else 1,
                        "nested too deeply",
                    )
                    return
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1

    def _walk(self, node: yaml.Node, path: Path_, depth: int) -> None:
        place = (node.start_mark.line + 1, node.start_mark.column + 1)
        if depth > DEEPEST or len(self._places) > MOST_VALUES:
            # Aliases can make a small file unfold without end; none of our files is like that.
            if not self._unfolds:
                self._fault(
                    *place,
                    "nested too deeply"
                    if depth > DEEPEST
                    else f"too many values (more than {MOST_VALUES})",
                )
            self._unfolds = True
        if self._unfolds:
            return
        self._places[path] = place
        if isinstance(node, yaml.MappingNode):
            seen: dict[str, int] = {}
            for key, value in node.value:
                line, column = key.start_mark.line + 1, key.start_mark.column + 1
                if not isinstance(key, yaml.ScalarNode):
                    self._fault(line, column, "a key must be a plain word")
                    continue
                name = str(key.value)
                if name in seen:
                    self._fault(
                        line, column, f"duplicate key {name!r} (first at line {seen[name]})"
                    )
                    continue
                seen[name] = line
                self._places[(*path, name, "#key")] = (line, column)
                self._walk(value, (*path, name), depth + 1)
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                self._walk(value, (*path, index), depth + 1)

    def fault_at(self, path: Path_, message: str, *, key: bool = False) -> Fault:
        """A fault at the value (or with `key` at the key) of a path such as ("workloads", 0,
        "name").
        """
        for changed, origin in reversed(self._changes):
            if path[: len(changed)] == changed:
                return replace(origin, message=message)
        line, column = self._place(path, key=key)
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return Fault(self.file, line, column, message, text)

    def _place(self, path: Path_, *, key: bool) -> tuple[int, int]:
        if key and (*path, "#key") in self._places:
            return self._places[(*path, "#key")]
        # pydantic adds names of union members and the like, which are not in the file: skip what is
        # not there.
        known: Path_ = ()
        for part in path:
            if (*known, part) in self._places:
                known = (*known, part)
        return self._places.get(known, (1, 1))

    def into(self, model: type[Model]) -> Model:
        """The file as a record. Raises DocumentError with every fault at once."""
        if not isinstance(self.data, dict):
            raise DocumentError(
                [
                    self.fault_at(
                        (),
                        "a mapping of keys is wanted here, such as `name: ...`, not "
                        f"{_kind(self.data)}",
                    )
                ]
            )
        try:
            return model.model_validate(self.data, context=WRITTEN)
        except ValidationError as error:
            raise DocumentError(self.faults_of(error, model)) from None

    def faults_of(
        self, error: ValidationError, model: type[BaseModel], under: Path_ = ()
    ) -> list[Fault]:
        """The faults of a pydantic error about the part of this file that stands at `under`, in the
        order of the file.
        """
        faults = []
        errors = error.errors(include_url=False, include_context=False)
        for one in errors:
            if one["type"] == "too_short" and any(
                _below(other["loc"], one["loc"]) for other in errors
            ):
                continue  # items that are wrong do not count as there: they are told by themselves
            path: Path_ = (*under, *one["loc"])
            unknown = one["type"] == "extra_forbidden"
            message = one["msg"].removeprefix("Value error, ")
            if unknown:
                fields = _fields_at(model, one["loc"][:-1])
                message = (
                    "unknown key "
                    f"{str(one['loc'][-1])!r}{did_you_mean(str(one['loc'][-1]), fields)}"
                )
            elif one["type"] == "missing":
                message = f"{one['loc'][-1]!r} is missing"
                path = path[:-1]
            else:
                # Of a value that may be of several kinds pydantic puts its own name of the kind in,
                # which is in no file.
                name = ".".join(str(part) for part in one["loc"] if "(" not in str(part))
                message = f"{name}: {message}" if name else message
                if one["type"] == "literal_error" and isinstance(one["input"], str):
                    choices = [
                        word.strip("' ")
                        for word in one["msg"].split("be", 1)[-1].replace(" or ", ",").split(",")
                    ]
                    message += did_you_mean(one["input"], choices, known=False)
            fault = self.fault_at(path, message, key=unknown)
            if fault not in faults:
                faults.append(fault)
        return sorted(faults, key=lambda fault: (fault.line, fault.column))


def _too_large(file: str) -> UsageError:
    return UsageError(f"{file}: larger than {LARGEST_FILE_BYTES} bytes: not a file of this suite")


def did_you_mean(word: str, choices: Sequence[str], *, known: bool = True) -> str:
    """` (did you mean 'x'?)`, else with `known` the list of what there is, else nothing."""
    close = difflib.get_close_matches(word, list(choices), 1)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(choices)})" if choices and known else ""


def _below(path: Path_, other: Path_) -> bool:
    return len(path) > len(other) and path[: len(other)] == other


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _fields_at(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """Names of the fields of the model that stands at `loc`, as far as annotations tell."""
    models: list[Any] = [model]
    for part in loc:
        found: list[Any] = []
        for one in models:
            if isinstance(part, str) and part in one.model_fields:
                found += _models_in(one.model_fields[part].annotation)
            else:
                found += [one] if getattr(one, "__name__", "") == part else []
        models = found or models
    return sorted({name for one in models for name in one.model_fields})


def _models_in(annotation: Any) -> list[Any]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    return [one for argument in typing.get_args(annotation) for one in _models_in(argument)]
