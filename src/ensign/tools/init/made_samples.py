"""Files of common formats, made up, for programs whose tree has none to read. Pure.

All of them are valid; the same format and size give the same bytes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ensign.tools.init.attempts import Sample
from ensign.tools.init.formats.binaries import binary_formats
from ensign.tools.init.formats.problems import problem_formats
from ensign.tools.init.formats.programs import program_formats
from ensign.tools.init.formats.texts import text_formats

# Several files of these in a row are one, so that a tree's own will do.
_JOINED = frozenset(
    "txt csv tsv yaml ini md c py diff bib dat gz bz2 xz bin fasta fastq".split()  # noqa: SIM905
)
_SHORT = 2
_KINDS = (*text_formats(), *binary_formats(), *problem_formats(), *program_formats())
FORMATS = {each.names[0]: each for each in _KINDS}


def made_samples(text: str, most: int) -> list[Sample]:
    """Files of the formats that a text names, such as a program's help; those named first, first.

    A name of one or two letters counts with the dot before it alone: `.c`.
    """
    found: list[tuple[int, str]] = []
    for suffix, each in FORMATS.items():
        places = (_place(name, text) for name in each.names)
        first = min((place for place in places if place >= 0), default=-1)
        if first >= 0:
            found.append((first, suffix))
    return [made_sample(suffix) for _, suffix in sorted(found)[:most]]


def formats_of_name(program: str) -> list[str]:
    """The formats with which a program's name begins or ends, by their suffixes: `jpegoptim`."""
    return [
        suffix
        for suffix, each in FORMATS.items()
        if any(
            len(name) > _SHORT and (program.startswith(name) or program.endswith(name))
            for name in each.names
        )
    ]


def made_sample(suffix: str) -> Sample:
    """The file of a format, by its suffix without the dot. KeyError where there is none."""
    size_bytes = len(made_content(suffix, 1))
    return Sample(f"made.{suffix}", size_bytes, made=suffix)


def is_made_whole(suffix: str) -> bool:
    """Whether files with that suffix (`.json`) can be made, but not by more copies of one."""
    return suffix.removeprefix(".") in FORMATS.keys() - _JOINED


# The same is asked for at each command that is tried with it, and takes seconds to make.
@lru_cache(maxsize=2)
def made_content(suffix: str, factor: int) -> bytes:
    """A file of a format with so many times its usual records. KeyError as `made_sample`."""
    made = FORMATS[suffix]
    return made.make(made.records * factor)


def _place(name: str, text: str) -> int:
    before = r"\." if len(name) <= _SHORT else r"(?<![a-z])"
    found = re.search(rf"{before}{re.escape(name)}(?![a-z])", text, re.IGNORECASE)
    return found.start() if found else -1
