"""Calls as if the recorder had seen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.meter.client import find_meter
from ensign.meter.questions import calls_of
from ensign.model.calls import AskedCall, Call, Output


def recorded(
    argv: Sequence[str],
    cwd: str,
    *,
    tool: str = "cc",
    program: str | None = None,
    outputs: tuple[Output, ...] = (),
    wall_ns: int = 0,
) -> Call:
    """A call of these words, which wrote `outputs` and nothing else."""
    (call,) = calls_of(find_meter(), [AskedCall(tool, tuple(argv), cwd)])
    return replace(
        call,
        program=program or argv[0],
        outputs=outputs,
        wall_ns=wall_ns,
    )
