"""Baseline JPEG pictures of random coefficients, in grey (ITU-T T.81). Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice

from ensign.lab.init.formats.format import numbers

_WIDTH = 1024
_BLOCKS = _WIDTH // 8
_MOST_ROWS = 8190
_DIFFERENT_ROWS = 32
# Codes of one length each, without the one of ones alone, which T.81 keeps free.
_DC_BITS, _DC = 3, bytes(range(4))
_AC_BITS, _AC = 4, bytes((0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x11, 0x12, 0x13, 0x21, 0x22, 0x31,
                          0x41, 0x51, 0x61))  # fmt: skip
_END_OF_BLOCK = 0
_MOST_COEFFICIENTS = 6


def jpeg(rows: int) -> bytes:
    """A picture with so many rows of blocks of 8 × 8 pixels; at most what a JPEG can have."""
    rows = min(rows, _MOST_ROWS)
    random = numbers()
    different = [_row(random) for _ in range(min(rows, _DIFFERENT_ROWS))]
    # Each row starts anew, so that rows can be repeated.
    parts = [
        different[at % len(different)] + (bytes((0xFF, 0xD0 + at % 8)) if at + 1 < rows else b"")
        for at in range(rows)
    ]
    head = [
        b"\xff\xd8",
        _segment(0xE0, b"JFIF\0" + struct.pack(">HBHHBB", 0x102, 0, 1, 1, 0, 0)),
        _segment(0xDB, bytes((0, *(8 + at for at in range(64))))),
        _segment(0xC0, struct.pack(">BHHB", 8, rows * 8, _WIDTH, 1) + bytes((1, 0x11, 0))),
        _segment(0xC4, bytes((0x00,)) + _lengths(_DC_BITS, _DC)),
        _segment(0xC4, bytes((0x10,)) + _lengths(_AC_BITS, _AC)),
        _segment(0xDD, struct.pack(">H", _BLOCKS)),
        _segment(0xDA, bytes((1, 1, 0, 0, 63, 0))),
    ]
    return b"".join((*head, *parts, b"\xff\xd9"))


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _lengths(bits: int, symbols: bytes) -> bytes:
    """A table of Huffman codes that all have so many bits: how many of each length, and of what."""
    return bytes(len(symbols) if length == bits else 0 for length in range(1, 17)) + symbols


def _row(random: Iterator[int]) -> bytes:
    """The blocks of one row, filled up with ones, and zeros after what looks like a marker."""
    text = "".join(_block(random) for _ in range(_BLOCKS))
    text += "1" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8).replace(b"\xff", b"\xff\0")


def _block(random: Iterator[int]) -> str:
    parts = [_coded(_DC_BITS, _DC, next(random))]
    count = next(random) % _MOST_COEFFICIENTS
    parts += [_coded(_AC_BITS, _AC[1:], each, 1) for each in islice(random, count)]
    return "".join((*parts, f"{_END_OF_BLOCK:0{_AC_BITS}b}"))


def _coded(bits: int, symbols: bytes, number: int, first: int = 0) -> str:
    """One coefficient: the code of a symbol, and its lower half's number of bits of value."""
    at = number % len(symbols)
    size = symbols[at] & 15
    value = (number >> 8) % (1 << size)
    return f"{at + first:0{bits}b}" + (f"{value:0{size}b}" if size else "")
