"""Files of common formats, made up, for programs whose tree has none to read. Pure.

All of them are valid; the same format and size give the same bytes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import struct
import tarfile
import wave
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from ensign.lab.init.attempts import Sample

_WORDS = """
amber basin cedar delta ember fable grove harbor island jasper kernel ladder
meadow needle orchard pebble quarry river saddle timber umbrella valley window
yonder zephyr of the and to in with from under over between
""".split()  # noqa: SIM905  # a list would be forty lines
# Several files of these in a row are one, so that a tree's own will do.
_JOINED = frozenset(
    "txt csv tsv yaml ini md c py diff bib dat gz bz2 xz bin fasta fastq".split()  # noqa: SIM905
)
_RECORDS = 1000
_SHORT = 2

Make = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Format:
    """How files of a kind are made of so many records; `names` has the suffix first."""

    names: tuple[str, ...]
    make: Make
    records: int = _RECORDS


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


def made_sample(suffix: str) -> Sample:
    """The file of a format, by its suffix without the dot. KeyError where there is none."""
    size_bytes = len(made_content(suffix, 1))
    return Sample(f"made.{suffix}", size_bytes, made=suffix)


def is_made_whole(suffix: str) -> bool:
    """Whether files with that suffix (`.json`) can be made, but not by more copies of one."""
    return suffix.removeprefix(".") in FORMATS.keys() - _JOINED


def made_content(suffix: str, factor: int) -> bytes:
    """A file of a format with so many times its usual records. KeyError as `made_sample`."""
    made = FORMATS[suffix]
    return made.make(made.records * factor)


def _place(name: str, text: str) -> int:
    before = r"\." if len(name) <= _SHORT else r"(?<![a-z])"
    found = re.search(rf"{before}{re.escape(name)}(?![a-z])", text, re.IGNORECASE)
    return found.start() if found else -1


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


def _words(count: int, seed: int) -> str:
    return " ".join(_WORDS[each % len(_WORDS)] for each in islice(_numbers(seed), count))


def _lines(record: Callable[[int, int], str], head: str = "", foot: str = "") -> Make:
    """A text of records, each of its place and a number."""

    def make(records: int) -> bytes:
        numbered = enumerate(islice(_numbers(), records))
        return (head + "".join(record(at, number) for at, number in numbered) + foot).encode()

    return make


def _ratio(number: int) -> float:
    return number / 2**31


def _prose(_at: int, number: int) -> str:
    return f"{_words(12, number).capitalize()}.\n"


def _json(records: int) -> bytes:
    items = ",\n".join(
        f'{{"id": {at}, "name": "{_words(2, number)}", "value": {_ratio(number):.6f}, '
        f'"tags": ["{_words(1, number + 1)}", "{_words(1, number + 2)}"], "ok": true}}'
        for at, number in enumerate(islice(_numbers(), records))
    )
    return f"[\n{items}\n]\n".encode()


def _code(at: int, number: int) -> str:
    return (
        f"/* {_words(8, number)} */\n"
        f"int function_{at}(int first, int second)\n{{\n"
        f"    if (first > {number % 1000})\n        return first * second + {number % 97};\n"
        f"    return second - {number % 89};\n}}\n\n"
    )


def _script(at: int, number: int) -> str:
    return (
        f"# {_words(8, number)}\n"
        f"def function_{at}(first, second):\n"
        f"    if first > {number % 1000}:\n        return first * second + {number % 97}\n"
        f"    return second - {number % 89}\n\n\n"
    )


def _markdown(at: int, number: int) -> str:
    return (
        f"## {_words(4, number).title()}\n\n{_words(30, number)} *{_words(2, at)}* and "
        f"`{_words(1, at)}`.\n\n- {_words(5, at)}\n- [{_words(2, at)}](#{at})\n\n"
    )


def _mesh(record: Callable[[int, int, float], str], face: Callable[[int, int], str]) -> Make:
    """A wavy surface: a square of points, and two triangles for each of its cells."""

    def make(records: int) -> bytes:
        side = max(2, int(records**0.5))
        heights = (_ratio(each) for each in _numbers())
        points = [
            record(row, column, next(heights)) for row in range(side) for column in range(side)
        ]
        cells = [
            face(row * side + column, side) for row in range(side - 1) for column in range(side - 1)
        ]
        return ("".join(points) + "".join(cells)).encode()

    return make


def _solid(at: int, number: int) -> str:
    x, z = float(at % 100), _ratio(number)
    y = float(at // 100)
    return (
        "facet normal 0 0 1\nouter loop\n"
        f"vertex {x:.4f} {y:.4f} {z:.4f}\nvertex {x + 1:.4f} {y:.4f} {z:.4f}\n"
        f"vertex {x:.4f} {y + 1:.4f} {z:.4f}\nendloop\nendfacet\n"
    )


def _bytes(count: int) -> bytes:
    """Text and numbers by turns, as many bytes as said."""
    parts: list[bytes] = []
    size = 0
    for each in _numbers():
        part = struct.pack("<I", each) if each % 3 else _words(3, each).encode()
        parts.append(part)
        size += len(part)
        if size >= count:
            break
    return b"".join(parts)[:count]


_ROW_BYTES = 16


def _intel_hex(records: int) -> bytes:
    """Intel HEX: data records of 16 bytes below 64 KiB, and the end."""
    lines = []
    for at, row in _rows(records):
        body = bytes((_ROW_BYTES, at >> 8, at & 0xFF, 0)) + row
        lines.append(f":{body.hex().upper()}{-sum(body) & 0xFF:02X}\n")
    return ("".join(lines) + ":00000001FF\n").encode()


def _s_records(records: int) -> bytes:
    """Motorola S-records with addresses of 16 bits."""
    lines = []
    for at, row in _rows(records):
        body = bytes((_ROW_BYTES + 3, at >> 8, at & 0xFF)) + row
        lines.append(f"S1{body.hex().upper()}{~sum(body) & 0xFF:02X}\n")
    return ("".join(lines) + "S9030000FC\n").encode()


def _rows(records: int) -> Iterator[tuple[int, bytes]]:
    count = min(records, (1 << 16) // _ROW_BYTES)
    content = _bytes(count * _ROW_BYTES)
    for at in range(0, len(content), _ROW_BYTES):
        yield at, content[at : at + _ROW_BYTES]


def _pixels(records: int) -> tuple[int, bytes]:
    """A square picture's side, and its pixels of three bytes: a gradient with noise."""
    side = max(8, int(records**0.5))
    noise = _numbers()
    rows = (
        bytes((row * 255 // side, column * 255 // side, next(noise) % 256))
        for row in range(side)
        for column in range(side)
    )
    return side, b"".join(rows)


def _ppm(records: int) -> bytes:
    side, pixels = _pixels(records)
    return f"P6\n{side} {side}\n255\n".encode() + pixels


def _pgm(records: int) -> bytes:
    side, pixels = _pixels(records)
    return f"P5\n{side} {side}\n255\n".encode() + pixels[::3]


def _bmp(records: int) -> bytes:
    side, pixels = _pixels(records)
    padding = bytes(-side * 3 % 4)
    rows = b"".join(pixels[at : at + side * 3] + padding for at in range(0, len(pixels), side * 3))
    head = struct.pack("<2sIHHI", b"BM", 54 + len(rows), 0, 0, 54)
    return (
        head + struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, len(rows), 0, 0, 0, 0) + rows
    )


def _png(records: int) -> bytes:
    side, pixels = _pixels(records)
    rows = b"".join(b"\0" + pixels[at : at + side * 3] for at in range(0, len(pixels), side * 3))

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _wav(records: int) -> bytes:
    """One channel of 16 bits at 44.1 kHz: a saw-tooth under noise."""
    noise = _numbers()
    samples = ((at * 200 % 20000 - 10000) + next(noise) % 4000 - 2000 for at in range(records))
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(44100)
        file.writeframes(b"".join(struct.pack("<h", each) for each in samples))
    return out.getvalue()


def _tar(records: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for at, number in enumerate(islice(_numbers(), max(1, records // 20))):
            content = _words(200, number).encode()
            member = tarfile.TarInfo(f"folder/{at}.txt")
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _packed(pack: Callable[[bytes], bytes]) -> Make:
    return lambda records: pack(_lines(_prose)(records))


def _bases(number: int, count: int) -> str:
    return "".join("ACGT"[each % 4] for each in islice(_numbers(number), count))


def _read(at: int, number: int) -> str:
    return f"@read{at}\n{_bases(number, 80)}\n+\n{'I' * 80}\n"


def _aligned(at: int, number: int) -> str:
    place = number % 900_000 + 1
    return f"read{at}\t0\tchr1\t{place}\t60\t80M\t*\t0\t0\t{_bases(number, 80)}\t{'I' * 80}\n"


def _partners(at: int, count: int) -> tuple[int, int, int]:
    return at, (at * 7 + 3) % count, (at * 13 + 5) % count


def _mps(count: int) -> bytes:
    """A linear program: the least cost of x ≥ 0, three of which cover each of so many demands."""
    covers: list[list[int]] = [[] for _ in range(count)]
    for row in range(count):
        for column in dict.fromkeys(_partners(row, count)):
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


def _lp(count: int) -> bytes:
    """The linear program of `_mps` in CPLEX's format."""
    costs = (f"{number % 90 + 10} x{at}" for at, number in enumerate(islice(_numbers(), count)))
    needs = (number % 50 + 1 for number in islice(_numbers(2), count))
    sums = (
        " + ".join(f"x{each}" for each in dict.fromkeys(_partners(row, count)))
        for row in range(count)
    )
    rows = (
        f" r{row}: {each} >= {need}"
        for row, (each, need) in enumerate(zip(sums, needs, strict=True))
    )
    objective = "\n + ".join(costs)
    return "\n".join(("Minimize", f" cost: {objective}", "Subject To", *rows, "End", "")).encode()


def _cnf(count: int) -> bytes:
    """Clauses of three variables, 3.5 for each variable: few are hard."""
    numbers = _numbers()
    clauses = int(count * 3.5)

    def literal() -> str:
        number = next(numbers)
        return str((number % count + 1) * (1 if number & (1 << 20) else -1))

    lines = (f"{literal()} {literal()} {literal()} 0" for _ in range(clauses))
    return "\n".join((f"p cnf {count} {clauses}", *lines, "")).encode()


def _arcs(kind: str, marks: Callable[[int], str]) -> Make:
    """A graph of DIMACS with four arcs for each node."""

    def make(count: int) -> bytes:
        ends = ((at, number) for at, number in enumerate(islice(_numbers(), 4 * count)))
        arcs = (f"a {at // 4 + 1} {number % count + 1} {number % 99 + 1}" for at, number in ends)
        head = f"p {kind} {count} {4 * count}\n{marks(count)}"
        return (head + "\n".join(arcs) + "\n").encode()

    return make


def _plist(at: int, number: int) -> str:
    return (
        f"<dict><key>id</key><integer>{at}</integer><key>name</key>"
        f"<string>{_words(3, number)}</string><key>value</key><real>{_ratio(number):.6f}</real>"
        "</dict>\n"
    )


_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def _formats() -> Iterator[Format]:
    yield Format(("txt", "text", "plain text"), _lines(_prose))
    yield Format(("json",), _json)
    yield Format(
        ("xml",),
        _lines(
            lambda at, n: f'<item id="{at}"><name>{_words(2, n)}</name><v>{n}</v></item>\n',
            f"{_XML}<items>\n",
            "</items>\n",
        ),
    )
    yield Format(
        ("html", "htm", "xhtml"),
        _lines(
            lambda at, n: f'<p id="p{at}">{_words(12, n)} <a href="#p{n % 100}">{at}</a></p>\n',
            "<!DOCTYPE html>\n<html><head><title>Made</title></head><body>\n",
            "</body></html>\n",
        ),
    )
    yield Format(
        ("svg",),
        _lines(
            lambda at, n: (
                f'<path d="M{n % 500} {at % 500} L{n % 300} {n % 200} C10 20 30 40 50 {n % 90}" '
                'fill="#abc" stroke="#123"/>\n'
            ),
            f'{_XML}<svg xmlns="http://www.w3.org/2000/svg" width="500" height="500">\n',
            "</svg>\n",
        ),
    )
    yield Format(
        ("plist",),
        _lines(_plist, f'{_XML}<plist version="1.0"><array>\n', "</array></plist>\n"),
    )
    yield Format(
        ("csv", "comma-separated"),
        _lines(lambda at, n: f"{at},{_words(1, n)},{_ratio(n):.6f},{n % 1000}\n", "id,name,x,y\n"),
    )
    yield Format(
        ("tsv", "tab-separated"),
        _lines(
            lambda at, n: f"{at}\t{_words(1, n)}\t{_ratio(n):.6f}\t{n % 1000}\n", "id\tname\tx\ty\n"
        ),
    )
    yield Format(
        ("yaml", "yml"),
        _lines(lambda at, n: f"- id: {at}\n  name: {_words(2, n)}\n  value: {_ratio(n):.6f}\n"),
    )
    yield Format(
        ("toml",),
        _lines(lambda at, n: f'[[item]]\nid = {at}\nname = "{_words(2, n)}"\nvalue = {n}\n\n'),
    )
    yield Format(
        ("ini", "conf"),
        _lines(lambda at, n: f"[section{at}]\nname = {_words(2, n)}\nvalue = {n}\n\n"),
    )
    yield Format(("md", "markdown"), _lines(_markdown), 300)
    yield Format(("c", "cpp", "c source"), _lines(_code), 500)
    yield Format(("py", "python"), _lines(_script), 500)
    yield Format(
        ("sql",),
        _lines(
            lambda at, n: f"INSERT INTO items VALUES ({at}, '{_words(2, n)}', {_ratio(n):.6f});\n",  # noqa: S608  # data
            "CREATE TABLE items (id INTEGER, name TEXT, value REAL);\n",
        ),
    )
    yield Format(
        ("dot", "gv", "graphviz"),
        _lines(
            lambda at, n: f'  n{at} -> n{n % (at + 1)} [label="{n % 9}"];\n', "digraph {\n", "}\n"
        ),
    )
    yield Format(
        ("diff", "patch", "unified diff"),
        _lines(
            lambda at, n: (
                f"--- a/{at}.txt\n+++ b/{at}.txt\n@@ -1,2 +1,2 @@\n {_words(4, at)}\n"
                f"-{_words(4, n)}\n+{_words(4, n + 1)}\n"
            )
        ),
        300,
    )
    yield Format(
        ("bib", "bibtex"),
        _lines(
            lambda at, n: (
                f"@article{{key{at},\n  author = {{{_words(2, n).title()}}},\n"
                f"  title = {{{_words(6, n)}}},\n  year = {{{1950 + n % 70}}}\n}}\n\n"
            )
        ),
    )
    yield Format(
        ("po", "gettext"),
        _lines(
            lambda at, n: f'msgid "{at} {_words(4, n)}"\nmsgstr "{_words(4, n + 1)}"\n\n',
            'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n',
        ),
    )
    yield Format(
        ("dat", "columns", "data file"),
        _lines(lambda at, n: f"{at} {_ratio(n):.6f} {_ratio(n * 7 % 2**31):.6f}\n"),
    )
    yield Format(
        ("obj", "wavefront"),
        _mesh(
            lambda row, column, z: f"v {row} {column} {z:.4f}\n",
            lambda at, side: (
                f"f {at + 1} {at + 2} {at + side + 1}\nf {at + 2} {at + side + 2} {at + side + 1}\n"
            ),
        ),
        2500,
    )
    yield Format(("stl",), _lines(_solid, "solid made\n", "endsolid made\n"))
    yield Format(("ppm", "pnm"), _ppm, 20_000)
    yield Format(("pgm",), _pgm, 40_000)
    yield Format(("bmp",), _bmp, 20_000)
    yield Format(("png",), _png, 20_000)
    yield Format(("wav", "wave"), _wav, 40_000)
    yield Format(("hex", "ihex", "intel hex"), _intel_hex)
    yield Format(("srec", "s19", "s-record"), _s_records)
    yield Format(("bin", "binary file", "raw"), _bytes, 64 << 10)
    yield Format(("tar",), _tar)
    yield Format(("gz", "gzip"), _packed(lambda content: gzip.compress(content, mtime=0)))
    yield Format(("bz2", "bzip2"), _packed(bz2.compress))
    yield Format(("xz", "lzma"), _packed(lzma.compress))
    yield Format(
        ("fasta", "fa"), _lines(lambda at, n: f">seq{at} {_words(2, n)}\n{_bases(n, 80)}\n"), 500
    )
    yield Format(("fastq", "fq"), _lines(_read), 300)
    yield Format(("sam",), _lines(_aligned, "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:1000000\n"), 300)
    yield Format(
        ("bed",),
        _lines(lambda at, n: f"chr1\t{at * 100}\t{at * 100 + n % 90 + 1}\tr{at}\t{n % 1000}\n"),
    )
    yield Format(
        ("pdb", "protein"),
        _lines(
            lambda at, n: (
                f"ATOM  {at % 99999 + 1:5d}  CA  ALA A{at % 9999 + 1:4d}    {n % 900 / 10:8.3f}"
                f"{n % 700 / 10:8.3f}{n % 500 / 10:8.3f}  1.00  0.00           C\n"
            ),
            foot="END\n",
        ),
    )
    yield Format(("mps", "linear program"), _mps, 300)
    yield Format(("lp",), _lp, 300)
    yield Format(("cnf", "sat solver"), _cnf, 300)
    yield Format(("gr", "shortest path"), _arcs("sp", lambda _count: ""))
    yield Format(
        ("max", "maximum flow", "dimacs"), _arcs("max", lambda count: f"n 1 s\nn {count} t\n")
    )


FORMATS = {each.names[0]: each for each in _formats()}
