"""What decides on this machine which libraries a program would load."""

from __future__ import annotations

import os
import re

from ensign.meter.processor import read_processor
from ensign.model.instructions import LEVELS
from ensign.proof.loader import LoaderSurroundings, read_cache


def loader_surroundings() -> LoaderSurroundings:
    """The variable of this process, the processor, the loader's cache."""
    named = os.environ.get("LD_LIBRARY_PATH", "")
    folders = tuple(part or "." for part in re.split("[:;]", named)) if named else ()
    return LoaderSurroundings(folders, processor_levels(), read_cache())


def processor_levels() -> tuple[str, ...]:
    """The levels of x86-64 that the processor has, the highest first."""
    processor = read_processor()
    if not processor.flags:
        return ()
    return tuple(level for level in reversed(LEVELS) if not processor.lacks(level))
