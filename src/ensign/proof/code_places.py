"""Where the functions of an ELF file begin, by its sections and its symbols."""

from __future__ import annotations

from ensign.proof.bounded_elf import BoundedElf
from ensign.proof.facts import CodePlaces
from ensign.proof.symbol_tables import function_places
from ensign.toolchains.alignment import FUNCTION_BYTES

_LEFT_BY_BOLT = ".bolt.org.text"


def code_places(elf: BoundedElf) -> CodePlaces:
    """What they are aligned to. A linker gives a section the largest alignment of its parts."""
    sections = list(elf.iter_sections())
    compiled = {at: each for at, each in enumerate(sections) if each.name.startswith(".text")}
    begins = [address for section, address in function_places(elf) if section in compiled]
    bolted = any(each.name == _LEFT_BY_BOLT for each in sections)
    alignments = [] if bolted else [int(each["sh_addralign"]) for each in compiled.values()]
    return CodePlaces(
        functions=len(begins),
        aligned=sum(address % FUNCTION_BYTES == 0 for address in begins),
        strictest=max(alignments, default=0),
    )
