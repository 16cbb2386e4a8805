"""Axes of a study, and rules that name values of them. Pure."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from ensign.model.training_choice import read_training_choice
from ensign.model.unit_choices import read_unit_choices
from ensign.model.validation import Section

_COMPILER = re.compile(r"[A-Za-z0-9_./+-]*[A-Za-z0-9+](@[a-z0-9][a-z0-9_.+-]*)?")
_MOST_CODEGEN_UNITS = 256
FIRST_RELINKS, MOST_RELINKS = 12, 200
NATURAL = "natural"
_OPTIMIZATION = re.compile(r"-O([0-3gsz]|fast)?")


def _compiler(text: str) -> str:
    if not _COMPILER.fullmatch(text):
        raise ValueError(f"'{text}' is not a program's name; write it as gcc-12, clang-19 or rustc")
    return text


def _optimization(text: str) -> str:
    if not _OPTIMIZATION.fullmatch(text):
        raise ValueError(
            f"'{text}' is not an optimization level such as -O2 or -O3; other flags go to 'flags'"
        )
    return text


def _codegen_units(value: object) -> object:
    """A number is written as one, and kept as the text that all values of axes are."""
    if isinstance(value, bool):
        return value
    units = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if isinstance(units, int):
        if not 1 <= units <= _MOST_CODEGEN_UNITS:
            raise ValueError(f"{units} is not a number of codegen units from 1 to 256")
        return str(units)
    return value


def _default_or_number(text: str) -> str:
    if text != "default" and not text.isdigit():
        raise ValueError(f"'{text}' is neither a number of codegen units nor 'default'")
    return text


def _flags(text: str) -> str:
    flags = text.split()
    for flag in flags:
        if _OPTIMIZATION.fullmatch(flag):
            raise ValueError(f"'{flag}' belongs to the axis 'optimization', not to 'flags'")
    if flags and not flags[0].startswith("-"):
        raise ValueError(f"'{text}' does not start with a dash; write flags as they are passed")
    return " ".join(flags)


def _revision(text: str) -> str:
    if text.startswith("-") or any(ord(c) <= 32 or ord(c) == 127 for c in text):  # noqa: PLR2004
        raise ValueError(f"{text!a} is not a commit, tag or branch")
    return text


def _training(text: str) -> str:
    return str(read_training_choice(text))


def _units(text: str) -> str:
    if not text:
        return text
    choices = read_unit_choices(text)
    try:
        Choice.model_validate(choices.by_axis)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"'{text}': '{first['loc'][0]}': {first['msg']}") from None
    return str(choices)


Compiler = Annotated[str, AfterValidator(_compiler)]
Optimization = Annotated[str, AfterValidator(_optimization)]
Flags = Annotated[str, AfterValidator(_flags)]
Revision = Annotated[str, AfterValidator(_revision)]
Units = Annotated[str, AfterValidator(_units)]
TrainedOn = Annotated[str, AfterValidator(_training)]
Lto = Literal["off", "full", "thin"]
Target = Literal["default", "generic", "x86-64-v2", "x86-64-v3", "x86-64-v4", "native"]
Switch = Literal["off", "on"]
Linker = Literal["default", "bfd", "lld", "mold"]
Off = Literal["default", "off"]
FloatingPoint = Literal["default", "strict", "fma", "fast"]
Aliasing = Literal["default", "strict", "relaxed"]
Alignment = Literal["default", "functions", "loops"]
Hardening = Literal[
    "default",
    "none",
    "debian",
    "openssf",
    "pie",
    "relro",
    "bindnow",
    "canary",
    "fortify",
    "stack-clash",
    "cet",
    "auto-init",
]
Allocator = Literal["default", "bundled", "libc", "jemalloc", "tcmalloc"]
Dependencies = Literal["plain", "flags"]
Strip = Literal["no", "yes"]
CodegenUnits = Annotated[str, BeforeValidator(_codegen_units), AfterValidator(_default_or_number)]
Panic = Literal["default", "unwind", "abort"]
Combine = Literal["product", "one-at-a-time", "list"]


class Axes(Section):
    """Axes of a study. Every axis left out has its default alone.

    `combine` says which points of the axes are variants: `product` takes all, `one-at-a-time` the
    baseline and every point that differs from it on one axis, `list` only what `include` adds.
    """

    combine: Combine = Field(default="product", description="which points are variants")
    compiler: list[Compiler] = Field(
        min_length=1,
        description="programs: gcc-12, clang-19, rustc; gcc-9@NAME is of that environment; default "
        "is what the project's own commands call, with flags of their own",
    )
    optimization: list[Optimization] = Field(
        default=["-O2"], min_length=1, description="levels, such as -O2 or -O3"
    )
    lto: list[Lto] = Field(default=["off"], min_length=1, description="link-time optimization")
    flags: list[Flags] = Field(
        default=[""],
        min_length=1,
        description='further flags of compiler and link, one text per choice; "" is none',
    )
    target: list[Target] = Field(
        default=["default"], min_length=1, description="processor that code is made for"
    )
    pgo: list[Switch] = Field(
        default=["off"], min_length=1, description="profile from [training] at the compiler"
    )
    bolt: list[Switch] = Field(
        default=["off"], min_length=1, description="layout after the link by llvm-bolt"
    )
    training: list[TrainedOn] = Field(
        default=[""],
        min_length=1,
        description="what a profile learns from: [training] alone, with tests of the study (also "
        "TEST …), or without some of its workloads (all but WORKLOAD …)",
    )
    linker: list[Linker] = Field(
        default=["default"], min_length=1, description="default: GCC's own, Clang's lld"
    )
    interposition: list[Off] = Field(
        default=["default"], min_length=1, description="off: -fno-semantic-interposition"
    )
    plt: list[Off] = Field(default=["default"], min_length=1, description="off: -fno-plt")
    floating_point: list[FloatingPoint] = Field(
        default=["default"], min_length=1, description="strict, fma, or fast (-ffast-math)"
    )
    aliasing: list[Aliasing] = Field(
        default=["default"], min_length=1, description="type-based aliasing: strict or relaxed"
    )
    alignment: list[Alignment] = Field(
        default=["default"], min_length=1, description="functions; or loops, and functions as well"
    )
    hardening: list[Hardening] = Field(
        default=["default"], min_length=1, description="a preset, or one option by itself"
    )
    allocator: list[Allocator] = Field(
        default=["default"], min_length=1, description="needs {allocator} or a preload"
    )
    dependencies: list[Dependencies] = Field(
        default=["plain"], min_length=1, description="flags: bundled dependencies get them too"
    )
    strip: list[Strip] = Field(
        default=["no"], min_length=1, description="yes: without symbols and debug information"
    )
    codegen_units: list[CodegenUnits] = Field(
        default=["default"], min_length=1, description="rustc: parts of a crate, a number"
    )
    panic: list[Panic] = Field(
        default=["default"], min_length=1, description="rustc: unwind, or abort"
    )
    revision: list[Revision] = Field(
        default=[""],
        min_length=1,
        description="commits, tags or branches of a git source, instead of its `commit`",
    )
    units: list[Units] = Field(
        default=[""],
        min_length=1,
        description="sources with other choices: 'a.c b.c: AXIS=VALUE …', 'all but a.c: …'",
    )


class Choice(Section):
    """One value per axis named.

    In `exclude` and `baseline` an axis left out matches any value. In `include`, which adds one
    variant, it has the first value of the axis; values need not be listed in `axes`.
    """

    compiler: Compiler | None = Field(default=None, description="a compiler")
    optimization: Optimization | None = Field(default=None, description="an optimization level")
    lto: Lto | None = Field(default=None, description="link-time optimization")
    flags: Flags | None = Field(default=None, description="further flags")
    target: Target | None = Field(default=None, description="processor that code is made for")
    pgo: Switch | None = Field(default=None, description="profile at the compiler")
    bolt: Switch | None = Field(default=None, description="layout after the link")
    training: TrainedOn | None = Field(default=None, description="what a profile learns from")
    linker: Linker | None = Field(default=None, description="the linker")
    interposition: Off | None = Field(default=None, description="semantic interposition")
    plt: Off | None = Field(default=None, description="calls through the PLT")
    floating_point: FloatingPoint | None = Field(default=None, description="floating point")
    aliasing: Aliasing | None = Field(default=None, description="type-based aliasing")
    alignment: Alignment | None = Field(default=None, description="alignment of code")
    hardening: Hardening | None = Field(default=None, description="hardening")
    allocator: Allocator | None = Field(default=None, description="the allocator")
    dependencies: Dependencies | None = Field(default=None, description="flags of dependencies")
    strip: Strip | None = Field(default=None, description="stripped or not")
    codegen_units: CodegenUnits | None = Field(default=None, description="parts of a crate")
    panic: Panic | None = Field(default=None, description="what a panic does")
    revision: Revision | None = Field(default=None, description="commit, tag or branch")
    units: Units | None = Field(default=None, description="sources with other choices")


class Layouts(Section):
    """Relinks that differ in nothing but where code lies; `layouts = "natural"` has none.

    `order` links the objects in other orders and keeps what is near near; `shuffle` places every
    function anew.
    """

    count: int | None = Field(
        default=None,
        ge=2,
        le=MOST_RELINKS,
        description="relinks of each variant that is relinked; without it as many as rounds can "
        "use, and are worth their links",
    )
    how: Literal["order", "shuffle"] = Field(default="order", description="mild, or full")
    variants: Literal["all", "baseline", "none"] = Field(
        default="all",
        description="all: rounds rotate through them; baseline: its layout spread is measured; "
        "none: programs as they were linked",
    )
    seed: int = Field(default=1, ge=1, le=10**6, description="another one gives fresh relinks")

    @property
    def relinks(self) -> int:
        """Number of relinks that each variant gets first, before any are shown to be worth it."""
        return self.count or FIRST_RELINKS


def _in_a_word(said: object) -> object:
    return {"variants": "none"} if said == NATURAL else said


AskedLayouts = Annotated[Layouts, BeforeValidator(_in_a_word)]
