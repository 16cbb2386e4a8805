"""What ran, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ensign.model.executed_files import WhatRan
from ensign.model.units import pluralize


def whose(file: WhatRan) -> str:
    """Whose a file is, and whether all variants that ran it had the same one."""
    owner = "built" if file.built else "of the machine"
    many = pluralize(len(file.variants), "variant")
    if file.same:
        return f"{owner}, the same for {many}"
    return f"{owner}, not the same for all of {many}"


def summary(files: Sequence[WhatRan]) -> str:
    """In one sentence; empty where nothing was followed."""
    built = [each.path for each in files if each.built]
    if not files:
        return ""
    own = ", ".join(built) or "nothing that was built"
    machine = len(files) - len(built)
    return f"What ran: {own}; and {pluralize(machine, 'file')} of the machine"
