"""YAML files with positions: all faults of a file at once, with file:line:column and a caret."""

from __future__ import annotations

import difflib
import inspect
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from weighbridge.common.errors import UsageError
from weighbridge.common.escaping import escape_controls, mask_line

Model = TypeVar("Model", bound=BaseModel)
Path_ = tuple[str | int, ...]

WRITTEN = "written"
"""Validation context for files that a person wrote: names in them must be known here."""

LARGEST_FILE_BYTES = 1_000_000
"""Larger files are refused unread: no suite, layout or hardware file comes near this."""

DEEPEST = 30
MOST_VALUES = 50_000
"""Limits of what a file may unfold to."""

LONGEST_NUMBER = 100
"""Characters of a number: Python refuses integers of thousands of digits."""

LONGEST_SHOWN = 400
"""Characters of a line that are shown with a fault."""


@dataclass(frozen=True)
class Fault:
    """One fault of a file: position (line and column from 1), message, and the text of the line.

    `caret` is its position in `text` where that is not the line itself: from 1, or 0 for none.
    """

    file: str
    line: int
    column: int
    message: str
    text: str
    caret: int | None = None

    def __str__(self) -> str:
        at = self.column if self.caret is None else self.caret
        # Long lines are cut around the fault, and nothing shown may move a terminal's cursor.
        begin = max(0, at - LONGEST_SHOWN // 2) if len(self.text) > LONGEST_SHOWN else 0
        text = mask_line(self.text)
        shown = "".join(
            one if one.isprintable() else " " for one in text[begin : begin + LONGEST_SHOWN]
        )
        lines = (
            f"{self.file}:{self.line}:{self.column}: {escape_controls(self.message)}\n    {shown}"
        )
        if at <= 0:
            return lines.rstrip()
        blanks = " " * (at - 1 - begin)
        return f"{lines}\n    {blanks}^"


class DocumentError(UsageError):
    """All faults of one file. `faults` is never empty."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # known at run time
    """Safe loading: tags make no objects. Uses libyaml's parser where PyYAML has it."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node; errors of PyYAML's number and date parsers get a position."""
        scalar = isinstance(node, yaml.ScalarNode)
        if scalar and node.tag in _PLAIN and len(node.value) > LONGEST_NUMBER:
            problem = f"a number of more than {LONGEST_NUMBER} characters"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        # YAML 1.1 takes `9:23` for a number of base 60, `010` for 8, `on` for true. Here they are
        # the texts that they look like, which the field that they are for reads or refuses.
        usual = self.resolve(yaml.ScalarNode, node.value, (True, False)) if scalar else ""
        if usual == node.tag in _PLAIN and not _PLAIN[node.tag].fullmatch(node.value):
            return node.value
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
            kind = node.tag.rpartition(":")[2]
            value = repr(node.value[:60]) if scalar else "this"
            problem = f"{value} is not a value of YAML's type {kind!r}; put text in quotes"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


_PLAIN = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(0|[1-9][0-9_]*)"),
    "tag:yaml.org,2002:float": re.compile(r"[^:]*"),
    "tag:yaml.org,2002:bool": re.compile(r"true|false", re.IGNORECASE),
}


class Document:
    """One parsed YAML file that knows the position of each of its values."""

    def __init__(self, file: str, text: str) -> None:
        """Parse `text` of `file`. Raises DocumentError, or UsageError if it is too large."""
        if len(text) > LARGEST_FILE_BYTES:
            raise _too_large(file)
        self.file = file
        self.lines = text.splitlines()
        self._places: dict[Path_, tuple[int, int]] = {}
        self._changes: list[tuple[Path_, Fault]] = []
        self._faults: list[Fault] = []
        self._unfolds = False
        self.was_valid = False
        """It was, before it was changed: every fault is that of a change."""
        try:
            self._refuse_deep_nesting(text)
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
        """Read a file. Raises DocumentError, or UsageError if the file cannot be read."""
        try:
            # Devices and pipes have no size, so the read itself is limited.
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
        """Set a value that does not come from the file; its faults are reported at `origin`.

        Raises DocumentError at `origin` if the path leads through a plain value, or to an item that
        a list lacks.
        """
        inner = self.data
        for part in path[:-1]:
            if isinstance(inner, list) and part in range(len(inner)):
                inner = inner[int(part)]
            else:
                inner = inner.setdefault(part, {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict):
            message = f"{'.'.join(map(str, path))}: there is nothing of that name to change"
            raise DocumentError([replace(origin, message=message)])
        inner[path[-1]] = value
        self._changes.append((path, origin))

    def _fault(self, line: int, column: int, message: str) -> None:
        self._faults.append(self._fault_in_line(line, column, message))

    def _fault_in_line(self, line: int, column: int, message: str) -> Fault:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return Fault(self.file, line, column, message, text)

    def _refuse_deep_nesting(self, text: str) -> None:
        """Refuse deep nesting before nodes are composed.

        PyYAML composes by recursion in C, and running out of stack there ends the process.
        """
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST + 1:
                    mark = event.start_mark
                    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
                    self._fault(line, column, "nested too deeply")
                    return
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1

    def _walk(self, node: yaml.Node, path: Path_, depth: int) -> None:
        place = (node.start_mark.line + 1, node.start_mark.column + 1)
        if self._unfolds:
            return
        # Aliases can make a small file unfold without end.
        if depth > DEEPEST:
            self._unfolds = True
            self._fault(*place, "nested too deeply")
            return
        if len(self._places) > MOST_VALUES:
            self._unfolds = True
            self._fault(*place, f"too many values (more than {MOST_VALUES})")
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
        elif isinstance(node, yaml.ScalarNode) and not node.style:
            self._refuse_cut(node.end_mark)

    def _refuse_cut(self, end: yaml.Mark) -> None:
        """Refuse a text without quotes of which YAML takes the number of an issue for a comment."""
        line = self.lines[end.line] if end.line < len(self.lines) else ""
        cut = re.match(r"\s+(#\d.*)", line[end.column :])
        if cut is not None:
            message = f"to YAML {cut[1]!r} is a comment: put the text before it and it in quotes"
            self._fault(end.line + 1, end.column + cut.start(1) + 1, message)

    def fault_at(self, path: Path_, message: str, *, key: bool = False) -> Fault:
        """A fault at the value, or with `key` at the key, of a path: ("workloads", 0, "name")."""
        if self.was_valid and self._changes:
            words = set(re.findall(r"\w+", message))

            def nearness(change: tuple[Path_, Fault]) -> tuple[int, int]:
                same = [part == other for part, other in zip(path, change[0], strict=False)]
                common = same.index(False) if False in same else len(same)
                return common, len(words & set(map(str, change[0])))

            return replace(max(self._changes, key=nearness)[1], message=message)
        for changed, origin in reversed(self._changes):
            if path[: len(changed)] == changed:
                return replace(origin, message=message)
        return self._fault_in_line(*self._place(path, key=key), message)

    def _place(self, path: Path_, *, key: bool) -> tuple[int, int]:
        if key and (*path, "#key") in self._places:
            return self._places[(*path, "#key")]
        # Skip the names of union members that pydantic adds: they are not in the file.
        known: Path_ = ()
        for part in path:
            if (*known, part) in self._places:
                known = (*known, part)
        return self._places.get(known, (1, 1))

    def into(self, model: type[Model]) -> Model:
        """The file as a record. Raises DocumentError with every fault at once."""
        if not isinstance(self.data, dict):
            found = "nothing" if self.data is None else f"a {type(self.data).__name__}"
            message = f"expected a mapping of keys here, such as `name: ...`, but found {found}"
            raise DocumentError([self.fault_at((), message)])
        try:
            record = model.model_validate(self.data, context=WRITTEN)
        except ValidationError as error:
            raise DocumentError(self.faults_of(error, model)) from None
        if faults := self.truths(self.data, record):
            raise DocumentError(faults)
        return record

    def truths(self, given: object, read: object, at: Path_ = ()) -> list[Fault]:
        """Faults where `true` or `false` was read as an integer, as pydantic does."""
        faults = []
        if given is read:  # what no record reads; a list of aliases may hold itself
            return []
        if isinstance(given, bool) and type(read) is int:
            faults = [self.fault_at(at, f"{str(given).lower()} cannot be a number")]
        elif isinstance(given, dict):
            values = dict(read) if isinstance(read, (BaseModel, Mapping)) else {}
            for key, value in given.items():
                faults += self.truths(value, values.get(key), (*at, key))
        elif isinstance(given, list) and isinstance(read, Sequence):
            for number, (value, one) in enumerate(zip(given, read, strict=False)):
                faults += self.truths(value, one, (*at, number))
        return faults

    def faults_of(
        self, error: ValidationError, model: type[BaseModel], under: Path_ = ()
    ) -> list[Fault]:
        """The faults of a pydantic error about the part of this file at `under`, in file order."""
        faults = []
        errors = error.errors(include_url=False, include_context=False)
        for one in errors:
            place = one["loc"]
            below = [
                other for other in errors if other["loc"][: len(place)] == place != other["loc"]
            ]
            if one["type"] == "too_short" and below:
                continue  # wrong items are not counted, but they have faults of their own
            path: Path_ = (*under, *one["loc"])
            unknown = one["type"] == "extra_forbidden"
            message = one["msg"].removeprefix("Value error, ").replace(*_NAMES)
            if unknown:
                name = str(one["loc"][-1])
                hint = did_you_mean(name, _fields_at(model, one["loc"][:-1]))
                message = f"unknown key {name!r}{hint}"
            elif one["type"] == "missing":
                message = f"{one['loc'][-1]!r} is missing"
                path = path[:-1]
            else:
                # Leave out the names of union members that pydantic adds ("function-before[...]").
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


_NAMES = (
    "String should match pattern '^[a-z0-9][a-z0-9-]{0,39}$'",
    "use lower-case letters, digits and hyphens, 40 at most, no hyphen first",
)


def _too_large(file: str) -> UsageError:
    return UsageError(f"{file}: larger than {LARGEST_FILE_BYTES} bytes: not a file of this suite")


def did_you_mean(word: str, choices: Sequence[str], *, known: bool = True) -> str:
    """` (did you mean 'x'?)`; if nothing is close, with `known` the list of choices, else ""."""
    close = difflib.get_close_matches(word, list(choices), 1)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(choices)})" if choices and known else ""


def _fields_at(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    models: list[Any] = [model]
    for part in loc:
        found: list[Any] = []
        for one in models:
            if isinstance(part, str) and part in one.model_fields:
                found += models_in(one.model_fields[part].annotation)
            else:
                found += [one] if getattr(one, "__name__", "") == part else []
        models = found or models
    return sorted({name for one in models for name in one.model_fields})


def models_in(annotation: Any) -> list[Any]:
    """The records in this type."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    return [one for argument in typing.get_args(annotation) for one in models_in(argument)]
