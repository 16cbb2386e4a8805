"""A variant: one way to build the program. The axes, their order, and what "nothing asked" is."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from ensign.model.unit_choices import read_unit_choices

_ALWAYS_SHOWN = ("compiler", "optimization", "lto")
# As compiler: the one that the project's own build calls, with flags of its own.
OWN_COMPILER = "default"


@dataclass(frozen=True, slots=True)
class Variant:
    """A point of the axes. `name` is unique in its study and safe as a file name.

    The default of an axis leaves the matter to the compiler or to the project. `dependencies` is
    `plain` where the bundled ones are built without the variant's flags, `flags` where with them.
    `revision` is a commit, tag or branch of the source, "" the one that the source itself names.
    `units` are sources with other choices, as `read_unit_choices` reads them; "" is none.
    `training` is what a profile is trained on besides, or without (`read_training_choice`).
    With the compiler `default` the project's own commands say compiler and flags, and nothing is
    added to them. `profile` is no axis: it counts profiles that are collected independently.
    """

    name: str
    compiler: str
    optimization: str
    lto: str = "off"
    flags: str = ""
    target: str = "default"
    pgo: str = "off"
    bolt: str = "off"
    training: str = ""
    linker: str = "default"
    interposition: str = "default"
    plt: str = "default"
    floating_point: str = "default"
    aliasing: str = "default"
    alignment: str = "default"
    hardening: str = "default"
    allocator: str = "default"
    dependencies: str = "plain"
    strip: str = "no"
    codegen_units: str = "default"
    panic: str = "default"
    revision: str = ""
    units: str = ""
    profile: int = 1

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """Axis and value, in the order of the axes, without what was not asked for."""
        if self.by_project:
            return (("revision", self.revision),) if self.revision else ()
        return tuple(
            (axis, getattr(self, axis))
            for axis in AXES
            if axis in _ALWAYS_SHOWN or getattr(self, axis) != DEFAULTS[axis]
        )

    @property
    def by_project(self) -> bool:
        """True if its compiler and flags are the project's own."""
        return self.compiler == OWN_COMPILER


def of_units(variant: Variant) -> Variant | None:
    """The variant that the sources with other choices are of; None without any."""
    if not variant.units or variant.by_project:
        return None
    values: dict[str, Any] = read_unit_choices(variant.units).by_axis
    return replace(variant, **{**values, "units": ""})


def trained(variant: Variant) -> bool:
    """True if a variant needs a profile."""
    return "on" in (variant.pgo, variant.bolt)


_NO_AXES = ("name", "profile")
AXES: tuple[str, ...] = tuple(field.name for field in fields(Variant) if field.name not in _NO_AXES)
DEFAULTS: dict[str, str] = {
    field.name: field.default if isinstance(field.default, str) else ""
    for field in fields(Variant)
    if field.name not in _NO_AXES
}
