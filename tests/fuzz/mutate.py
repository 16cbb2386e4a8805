"""Damage of the kinds that parsers meet: bytes, numbers, parts of documents. A seed decides. Pure.

Where the form of an input is known, most damage keeps it, and so gets beyond the first check.
"""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Sequence
from typing import Any

from ensign.store.bundle import pack

_MOST_BYTES, _SMALL_BYTES = 1 << 17, 1 << 14
_NUMBERS = (0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
            0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF)  # fmt: skip
_WRITTEN = (b"0", b"-1", b"1", b"9" * 5, b"9" * 20, b"9" * 400, b"1e308", b"1e999", b"-0.0",
            b"NaN", b"inf", b"0x10", b"007", b"1_0", "\u0663".encode())  # fmt: skip
_VALUES: tuple[object, ...] = (
           None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, 1e308, -0.0, 0.5, "", "x",
           "a" * 300, "\x1b[31m", "\ud800", "../../x", [], {}, [[]], {"": 0}, float("nan"),
           float("inf"))  # fmt: skip
_TOKENS = (b"\0", b"\n", b"\r\n", b"\xff\xfe", b"\xf0\x9f\x92\xa9", b"[", b"]" * 3, b"{" * 40, b'"',
           b"'", b"=", b"#", b"\\", b"..", b"/", b"%s", b"\x1b]52;c;x\x07", b"-", b" ", b"\t",
           b"[" * 3000, b"(" * 300, b"a." * 200)  # fmt: skip
_DIGITS = re.compile(rb"\d+")


def mutated(data: bytes, kind: str, others: Sequence[bytes], seed: int) -> bytes:
    """The input with a few changes; `others` are inputs to take parts of."""
    choose = random.Random(seed)  # noqa: S311  # damage, no secret
    for _ in range(choose.choice((1, 1, 2, 3, 6))):
        data = _changed(data, kind, others, choose)
    return data[:_MOST_BYTES]


def _changed(data: bytes, kind: str, others: Sequence[bytes], choose: random.Random) -> bytes:
    if len(data) <= _MOST_BYTES and choose.random() < 0.7:
        try:
            if kind == "zip":
                return _other_zip(data, choose)
            if kind == "json":
                return _other_json(data, choose)
            if kind == "lines":
                return _other_line(data, choose)
        except (ValueError, zipfile.BadZipFile, KeyError, NotImplementedError, RecursionError):
            pass
    written = kind in ("text", "toml", "json", "lines", "yaml")
    changes = [_flip, _remove, _repeat, _insert, _cut]
    changes += (
        [_write_number, _write_number] if written else [_set_number, _set_number, _set_number]
    )
    change = choose.choice(changes)
    if others and choose.random() < 0.1:
        return _spliced(data, choose.choice(others), choose)
    return change(data, choose)


def _place(data: bytes, choose: random.Random) -> int:
    """Headers stand at both ends."""
    size = len(data)
    if size > 128 and choose.random() < 0.4:
        return choose.choice((choose.randrange(128), size - 1 - choose.randrange(128)))
    return choose.randrange(size) if size else 0


def _flip(data: bytes, choose: random.Random) -> bytes:
    at = _place(data, choose)
    return data[:at] + bytes([choose.randrange(256)]) + data[at + 1 :]


def _set_number(data: bytes, choose: random.Random) -> bytes:
    width = choose.choice((1, 2, 4, 4, 8, 8))
    at = _place(data, choose)
    at -= at % width if choose.random() < 0.7 else 0
    order = choose.choice(("little", "little", "big"))
    old = int.from_bytes(data[at : at + width], "little")
    size = len(data)
    number = choose.choice((*_NUMBERS, size, size - 1, size + 1, old + 1, old - 1, -old, old * 2))
    new = (number % (1 << 8 * width)).to_bytes(width, "big" if order == "big" else "little")
    return data[:at] + new + data[at + width :]


def _write_number(data: bytes, choose: random.Random) -> bytes:
    found = list(_DIGITS.finditer(data[:_MOST_BYTES]))
    if not found:
        return _insert(data, choose)
    match = choose.choice(found)
    return data[: match.start()] + choose.choice(_WRITTEN) + data[match.end() :]


def _remove(data: bytes, choose: random.Random) -> bytes:
    at = _place(data, choose)
    return data[:at] + data[at + choose.choice((1, 2, 4, 8, 40, 300)) :]


def _repeat(data: bytes, choose: random.Random) -> bytes:
    at = _place(data, choose)
    part = data[at : at + choose.choice((1, 4, 16, 60, 200))]
    return data[:at] + part * choose.choice((2, 2, 3, 50)) + data[at + len(part) :]


def _insert(data: bytes, choose: random.Random) -> bytes:
    at = _place(data, choose)
    return data[:at] + choose.choice((*_TOKENS, *_WRITTEN)) + data[at:]


def _cut(data: bytes, choose: random.Random) -> bytes:
    return data[: _place(data, choose)]


def _spliced(data: bytes, other: bytes, choose: random.Random) -> bytes:
    return data[: _place(data, choose)] + other[_place(other, choose) :]


def _other_line(data: bytes, choose: random.Random) -> bytes:
    """JSON, one document a line."""
    lines = data.split(b"\n")
    at = choose.randrange(len(lines))
    match choose.randrange(4):
        case 0:
            lines.insert(at, choose.choice(lines))
        case 1:
            del lines[at]
        case _:
            lines[at] = _other_json(lines[at], choose)
    return b"\n".join(lines)


def _other_json(data: bytes, choose: random.Random) -> bytes:
    document = json.loads(data)
    places = list(_places(document))
    if not places:
        return json.dumps(choose.choice(_VALUES)).encode()
    where, key = choose.choice(places)
    match choose.randrange(6):
        case 0:
            del where[key]
        case 1:
            _, from_key = other = choose.choice(places)
            where[key] = other[0][from_key] if other[0] is not where else choose.choice(_VALUES)
            return _dumped(document)
        case 2 if isinstance(where, list):
            small = len(data) < _SMALL_BYTES and not isinstance(where[key], list | dict)
            where.extend([where[key]] * choose.choice((1, 2, 500 if small else 3)))
        case 2:
            where[choose.choice(("", "x", "type", "\x1b[2J"))] = choose.choice(_VALUES)
        case 3 if isinstance(where[key], int | float):
            number = where[key]
            where[key] = choose.choice((-number, number * 1e18, number + 1, number / 3, 0))
        case _:
            where[key] = choose.choice(_VALUES)
    return _dumped(document)


def _dumped(document: object) -> bytes:
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _places(document: object) -> list[tuple[Any, Any]]:
    """A table or list, and its key, for each value in a document."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [document]
    while waiting:
        each = waiting.pop()
        keys = (
            list(each)
            if isinstance(each, dict)
            else range(len(each))
            if isinstance(each, list)
            else ()
        )
        for key in keys:
            found.append((each, key))
            waiting.append(each[key])
    return found


def _other_zip(data: bytes, choose: random.Random) -> bytes:
    """A bundle of which one file is another one, by somebody who writes the manifest anew."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        large = any(each.file_size > _MOST_BYTES for each in archive.infolist())
        if large or "manifest.json" not in archive.namelist():
            raise ValueError("another zip")
        said = json.loads(archive.read("manifest.json"))
        members = {
            each: archive.read(each) for each in archive.namelist() if each != "manifest.json"
        }
    name = choose.choice(sorted(members))
    match choose.randrange(8):
        case 0:
            del members[name]
        case 1:
            members[choose.choice((*members, f"{name}x"))] = members[name]
        case _:
            kind = (
                "json" if name.endswith(".json") else "toml" if name.endswith(".toml") else "bytes"
            )
            members[name] = _changed(members[name], kind, (), choose)
    return pack(said["study"], said["ensign"], members)
