"""What a loader is told: the dynamic segment, which is there without section headers, too."""

from __future__ import annotations

from dataclasses import dataclass

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.segments import InterpSegment

from ensign.proof.bounded_elf import BoundedElf

_FLAGS_1_PIE = 0x0800_0000
_TEXTS = {
    "DT_NEEDED": "needed",
    "DT_RPATH": "rpath",
    "DT_RUNPATH": "runpath",
    "DT_SONAME": "soname",
}


@dataclass(frozen=True, slots=True)
class DynamicTags:
    """Numbers and texts by the names of their tags; the loader asked for, empty where none is."""

    numbers: dict[str, int]
    texts: dict[str, list[str]]
    interpreter: str

    @property
    def pie(self) -> bool:
        """Whether it is a program that may lie anywhere, if its type is that of a library.

        A C library asks for a loader, too, and has a name by which others load it.
        """
        flagged = bool(self.numbers.get("DT_FLAGS_1", 0) & _FLAGS_1_PIE)
        return flagged or (bool(self.interpreter) and "DT_SONAME" not in self.texts)

    @property
    def static(self) -> bool:
        """Whether nothing else is loaded with it; of a program."""
        return not self.interpreter and "DT_NEEDED" not in self.texts


def dynamic_tags(elf: BoundedElf) -> DynamicTags:
    """Read them."""
    numbers: dict[str, int] = {}
    texts: dict[str, list[str]] = {}
    for segment in elf.iter_segments("PT_DYNAMIC"):
        for tag in segment.iter_tags() if isinstance(segment, DynamicSegment) else ():
            name = str(tag.entry.d_tag)
            numbers[name] = int(tag.entry.d_val)
            if name in _TEXTS:
                texts.setdefault(name, []).append(str(getattr(tag, _TEXTS[name])))
    interpreter = next(
        (str(s.get_interp_name()) for s in elf.iter_segments() if isinstance(s, InterpSegment)), ""
    )
    return DynamicTags(numbers, texts, interpreter)
