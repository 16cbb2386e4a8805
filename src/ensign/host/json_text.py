"""Reading JSON that others may have written."""

from __future__ import annotations

import json
import math
from typing import Any

_LONGEST_INTEGER = 20


def read_json(text: str | bytes) -> Any:
    """What a JSON text says.

    ValueError where it is none, nests too deeply, or has numbers that no file of ensign has: those
    beyond 64 bits, and decimals that are infinite.
    """
    try:
        return json.loads(text, parse_int=_integer, parse_float=_decimal)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _decimal(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large")
    return number
