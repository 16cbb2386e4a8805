"""What Go writes of itself into each program: `.go.buildinfo`, as `go version -m` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, data_of
from ensign.proof.dwarf_forms import Cursor

_MAGIC, _HEADER_BYTES, _FLAGS_AT, _INLINE = b"\xff Go buildinf:", 32, 15, 2
_SENTINEL_BYTES = 16
_SETTING, _DEPENDENCY = "build\t", "dep\t"


@dataclass(frozen=True, slots=True)
class GoBuild:
    """`version` is empty where it is written down in another way, as before Go 1.18.

    `settings` are those of the build, as `GOAMD64` and `-pgo`.
    """

    version: str = ""
    path: str = ""
    dependencies: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


def read_go_build(elf: BoundedElf) -> GoBuild | None:
    """Read it; None for programs of others."""
    section = elf.get_section_by_name(".go.buildinfo")
    if section is None:
        return None
    data = data_of(section)
    if not data.startswith(_MAGIC) or len(data) <= _HEADER_BYTES:
        return GoBuild()
    if not data[_FLAGS_AT] & _INLINE:
        return GoBuild()
    cursor = Cursor(data[_HEADER_BYTES:], little=True)
    try:
        version = cursor.taken(cursor.unsigned()).decode(errors="replace")
        module = cursor.taken(cursor.unsigned())[_SENTINEL_BYTES:-_SENTINEL_BYTES]
    except (IndexError, DamagedFile):
        return GoBuild()
    lines = module.decode(errors="replace").splitlines()
    named = (line.removeprefix(_SETTING).partition("=") for line in lines if _is_setting(line))
    return GoBuild(
        version=version.removeprefix("go"),
        path=next((line[5:] for line in lines if line.startswith("path\t")), ""),
        dependencies=sum(line.startswith(_DEPENDENCY) for line in lines),
        settings={key: value for key, _, value in named},
    )


def _is_setting(line: str) -> bool:
    return line.startswith(_SETTING)
