"""Files of common formats, made up, for programs whose tree has none to read. Pure.

All of them are valid; the same format and size give the same bytes. Which formats are worth a row
was tried: `bench/results/init_rules.md`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from ensign.tools.init.attempts import Sample

_WORDS = """
amber basin cedar delta ember fable grove harbor island jasper kernel ladder
meadow needle orchard pebble quarry river saddle timber umbrella valley window
yonder zephyr of the and to in with from under over between
""".split()  # noqa: SIM905  # a list would be forty lines
_SHORT = 2
_ROW_BYTES = 16

Make = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Format:
    """Format of made files of so many records; `names` has the suffix first.

    `joined`: several files of it in a row are one, so that a tree's own will do.
    """

    names: tuple[str, ...]
    make: Make
    records: int = 1000
    joined: bool = False


@dataclass(frozen=True, slots=True)
class _Words:
    """Formatted as `{words:3}` three words, the same for the same seed."""

    seed: int

    def __format__(self, count: str) -> str:
        return " ".join(
            _WORDS[number % len(_WORDS)] for number in islice(_numbers(self.seed), int(count))
        )


def _numbers(seed: int = 1) -> Iterator[int]:
    """Numbers below 2³¹ that look random.

    The linear congruential generator of ISO C's `rand` example, without its last bits.
    """
    state = seed
    while True:
        state = (state * 1103515245 + 12345) & 0xFFFFFFFF
        high = state >> 16
        state = (state * 1103515245 + 12345) & 0xFFFFFFFF
        yield (high << 15) | (state >> 17)


def _text(record: str, head: str = "", foot: str = "", between: str = "") -> Make:
    """Records by a template: `at` counts them, `n`, `x` (a part of 1) and `words` are random."""

    def make(records: int) -> bytes:
        made = (
            record.format(at=at, n=n, x=n / 2**31, words=_Words(n), other=_Words(n + 1))
            for at, n in enumerate(islice(_numbers(), records))
        )
        return f"{head}{between.join(made)}{foot}".encode()

    return make


def _bytes(count: int) -> bytes:
    """Text and numbers by turns, as many bytes as said."""
    parts: list[bytes] = []
    size = 0
    for number in _numbers():
        part = struct.pack("<I", number) if number % 3 else f"{_Words(number):3}".encode()
        parts.append(part)
        size += len(part)
        if size >= count:
            break
    return b"".join(parts)[:count]


def _intel_hex(records: int) -> bytes:
    """Intel HEX: data records of 16 bytes below 64 KiB, and the end."""
    content = _bytes(min(records * _ROW_BYTES, 1 << 16))
    lines = []
    for at in range(0, len(content), _ROW_BYTES):
        body = bytes((_ROW_BYTES, at >> 8, at & 0xFF, 0)) + content[at : at + _ROW_BYTES]
        lines.append(f":{body.hex().upper()}{-sum(body) & 0xFF:02X}\n")
    return ("".join(lines) + ":00000001FF\n").encode()


def _mesh(records: int) -> bytes:
    """Wavefront: a square of points at random heights, and two triangles for each of its cells."""
    side = max(2, int(records**0.5))
    heights = _numbers()
    cells = (row * side + at for row in range(side - 1) for at in range(1, side))
    points = "".join(
        f"v {row} {column} {next(heights) / 2**31:.4f}\n"
        for row in range(side)
        for column in range(side)
    )
    faces = "".join(
        f"f {at} {at + 1} {at + side}\nf {at + 1} {at + side + 1} {at + side}\n" for at in cells
    )
    return f"{points}{faces}".encode()


def _linear_program(count: int) -> bytes:
    """MPS: the least cost of x ≥ 0, three of which cover each of so many demands."""
    covers: list[list[int]] = [[] for _ in range(count)]
    for row in range(count):
        for column in dict.fromkeys((row, (row * 7 + 3) % count, (row * 13 + 5) % count)):
            covers[column].append(row)
    costs = [number % 90 + 10 for number in islice(_numbers(), count)]
    needs = [number % 50 + 1 for number in islice(_numbers(2), count)]
    lines = ["NAME          COVER", "ROWS", " N  COST"]
    lines += [f" G  R{row}" for row in range(count)] + ["COLUMNS"]
    for column, rows in enumerate(covers):
        lines.append(f"    X{column:<8} COST      {costs[column]}")
        lines += [f"    X{column:<8} R{row:<8} 1" for row in rows]
    lines += ["RHS", *(f"    RHS       R{row:<8} {need}" for row, need in enumerate(needs))]
    return ("\n".join((*lines, "ENDATA")) + "\n").encode()


_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_KINDS = (
    Format(("txt", "text", "plain text"), _text("{words:12}.\n"), joined=True),
    Format(("dat", "columns", "data file"), _text("{at} {x:.6f} {n}\n"), joined=True),
    Format(("bin", "binary file", "raw"), _bytes, 64 << 10, joined=True),
    Format(
        ("json",),
        _text(
            '{{"id": {at}, "name": "{words:2}", "value": {x:.6f}, '
            '"tags": ["{words:1}", "{other:1}"], "ok": true}}',
            "[\n",
            "\n]\n",
            ",\n",
        ),
    ),
    Format(
        ("xml",),
        _text(
            '<item id="{at}"><name>{words:2}</name><v>{n}</v></item>\n',
            f"{_XML}<items>\n",
            "</items>\n",
        ),
    ),
    Format(
        ("plist",),
        _text(
            "<dict><key>id</key><integer>{at}</integer><key>name</key>"
            "<string>{words:3}</string><key>value</key><real>{x:.6f}</real></dict>\n",
            f'{_XML}<plist version="1.0"><array>\n',
            "</array></plist>\n",
        ),
    ),
    Format(
        ("csv", "comma-separated"),
        _text("{at},{words:1},{x:.6f},{n}\n", "id,name,x,n\n"),
        joined=True,
    ),
    Format(
        ("c", "cpp", "c source"),
        _text(
            "/* {words:8} */\nint function_{at}(int first, int second)\n{{\n"
            "    if (first > {n})\n        return first * second + {at};\n"
            "    return second - {at};\n}}\n\n"
        ),
        500,
        joined=True,
    ),
    # Awk ends without input where there are BEGIN blocks alone.
    Format(
        ("awk", "mawk", "gawk", "nawk"),
        _text(
            "# {words:8}\nfunction f{at}(a, i, s) {{\n"
            "  for (i = 0; i < 2000; i++) s = (s * 31 + i + a) % 65521\n"
            "  seen[s % 97] = s; return s\n}}\nBEGIN {{ total += f{at}({n} % 65521) }}\n",
            foot="BEGIN { print total }\n",
        ),
        100,
    ),
    Format(("obj", "wavefront"), _mesh, 2500),
    Format(("hex", "ihex", "intel hex"), _intel_hex),
    Format(("mps", "linear program"), _linear_program, 300),
)
FORMATS = {kind.names[0]: kind for kind in _KINDS}


def made_samples(text: str, most: int) -> list[Sample]:
    """Files of the formats that a text names, such as a program's help; those named first, first.

    A name of one or two letters counts with the dot before it alone: `.c`.
    """
    suffixes: list[tuple[int, str]] = []
    for suffix, file_format in FORMATS.items():
        places = [_place(name, text) for name in file_format.names]
        first = min((place for place in places if place >= 0), default=-1)
        if first >= 0:
            suffixes.append((first, suffix))
    return [made_sample(suffix) for _, suffix in sorted(suffixes)[:most]]


def formats_of_name(program: str) -> list[str]:
    """The formats with which a program's name begins or ends, by their suffixes: `csvcount`."""
    return [
        suffix
        for suffix, file_format in FORMATS.items()
        if any(
            len(name) > _SHORT and (program.startswith(name) or program.endswith(name))
            for name in file_format.names
        )
    ]


def made_sample(suffix: str) -> Sample:
    """The file of a format, by its suffix without the dot. KeyError where there is none."""
    size_bytes = len(made_content(suffix, 1))
    return Sample(f"made.{suffix}", size_bytes, made=suffix)


def is_made_whole(suffix: str) -> bool:
    """True if files with that suffix (`.json`) can be made, but not by more copies of one."""
    known = FORMATS.get(suffix.removeprefix("."))
    return known is not None and not known.joined


# The same is asked for at each command that is tried with it, and takes seconds to make.
@lru_cache(maxsize=2)
def made_content(suffix: str, factor: int) -> bytes:
    """A file of a format with so many times its usual records. KeyError as `made_sample`."""
    made = FORMATS[suffix]
    return made.make(made.records * factor)


def _place(name: str, text: str) -> int:
    before = r"\." if len(name) <= _SHORT else r"(?<![a-z])"
    match = re.search(rf"{before}{re.escape(name)}(?![a-z])", text, re.IGNORECASE)
    return match.start() if match else -1
