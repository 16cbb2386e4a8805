"""Made-up files are what their names say, and larger where more is asked for. Pure."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import struct
import subprocess
import sys
import tarfile
import tomllib
import wave
import zlib
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ensign.tools.init.attempts import COUNT, INPUT, Attempt, Executable
from ensign.tools.init.documented_commands import Shown, counted_of, shown_attempts
from ensign.tools.init.made_samples import (
    FORMATS,
    formats_of_name,
    is_made_whole,
    made_content,
    made_sample,
    made_samples,
)


def of_png(content: bytes) -> int:
    """The bytes of its pixels, if every chunk's sum is right."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, pixels = 8, b""
    while at < len(content):
        (size,) = struct.unpack_from(">I", content, at)
        body = content[at + 4 : at + 8 + size]
        assert struct.unpack_from(">I", content, at + 8 + size) == (zlib.crc32(body),)
        pixels += body[4:] if body.startswith(b"IDAT") else b""
        at += 12 + size
    side: int = struct.unpack_from(">I", content, 16)[0]
    unpacked = zlib.decompress(pixels)
    assert len(unpacked) == side * (3 * side + 1)
    return len(unpacked)


def of_wav(content: bytes) -> int:
    with wave.open(io.BytesIO(content), "rb") as file:
        return file.getnframes()


def of_tar(content: bytes) -> int:
    with tarfile.open(fileobj=io.BytesIO(content)) as file:
        return len(file.getmembers())


def of_intel_hex(content: bytes) -> int:
    lines = content.decode().split()
    for line in lines:
        assert sum(bytes.fromhex(line[1:])) % 256 == 0
    assert lines[-1] == ":00000001FF"
    return len(lines)


def of_s_records(content: bytes) -> int:
    lines = content.decode().split()
    for line in lines:
        body = bytes.fromhex(line[2:])
        assert sum(body) % 256 == 0xFF
        assert body[0] == len(body) - 1
    return len(lines)


def of_picture(content: bytes) -> int:
    kind, size, most, pixels = content.split(b"\n", 3)
    width, height = map(int, size.split())
    assert most == b"255"
    assert len(pixels) == width * height * {b"P5": 1, b"P6": 3}[kind]
    return len(pixels)


def of_bmp(content: bytes) -> int:
    assert struct.unpack_from("<2sI", content) == (b"BM", len(content))
    return len(content)


def of_obj(content: bytes) -> int:
    lines = [line.split() for line in content.decode().splitlines()]
    points = sum(line[0] == "v" for line in lines)
    corners = [int(each) for line in lines if line[0] == "f" for each in line[1:]]
    assert min(corners) == 1
    assert max(corners) == points
    return points


def of_mps(content: bytes) -> int:
    """The rows; each has a demand and is covered by some column."""
    sections: dict[str, list[list[str]]] = {}
    name = ""
    for line in content.decode().splitlines():
        if line.startswith(" "):
            sections[name].append(line.split())
        else:
            name = line.split()[0]
            sections[name] = []
    rows = {words[1] for words in sections["ROWS"] if words[0] == "G"}
    assert {words[1] for words in sections["COLUMNS"]} == {*rows, "COST"}
    assert {words[1] for words in sections["RHS"]} == rows
    return len(rows)


def of_cnf(content: bytes) -> int:
    head, *clauses = content.decode().splitlines()
    variables, count = map(int, head.split()[2:])
    assert len(clauses) == count
    literals = [int(each) for line in clauses for each in line.split()[:-1]]
    assert all(0 < abs(each) <= variables for each in literals)
    assert min(literals) < 0 < max(literals)
    return count


def of_graph(content: bytes) -> int:
    lines = [line.split() for line in content.decode().splitlines()]
    nodes, arcs = map(int, lines[0][2:])
    ends = [int(each) for line in lines if line[0] == "a" for each in line[1:3]]
    assert len(ends) == 2 * arcs
    assert all(1 <= each <= nodes for each in ends)
    return arcs


def of_fastq(content: bytes) -> int:
    lines = content.decode().splitlines()
    assert all(
        len(bases) == len(marks) for bases, marks in zip(lines[1::4], lines[3::4], strict=True)
    )
    return len(lines) // 4


def of_gif(content: bytes) -> int:
    """The pixels: each run of codes begins with the code that clears the table."""
    width, height, packed = struct.unpack_from("<HHB", content, 6)
    assert content.startswith(b"GIF87a")
    colors = 2 << (packed & 7)
    at = 13 + 3 * colors + 10
    assert content[at] == 7  # bits of a pixel
    codes, at = b"", at + 1
    while content[at]:
        codes += content[at + 1 : at + 1 + content[at]]
        at += 1 + content[at]
    assert content[at:] == b"\0;"
    runs = codes.removesuffix(b"\x81").split(b"\x80")
    assert max(map(len, runs)) < 127  # codes of 8 bits until the table has 256
    assert all(each < colors for run in runs for each in run)
    assert sum(map(len, runs)) == width * height
    return int(width * height)


def of_pcap(content: bytes) -> int:
    at, packets = 24, 0
    while at < len(content):
        size, on_wire = struct.unpack_from("<II", content, at + 8)
        ip = content[at + 30 : at + 50]
        assert size == on_wire
        assert sum(struct.unpack(">10H", ip)) % 0xFFFF == 0
        at, packets = at + 16 + size, packets + 1
    return packets


def of_midi(content: bytes) -> int:
    size = int(struct.unpack_from(">I", content, 18)[0])
    assert len(content) == 22 + size
    return (size - 4) // 8


def of_elf(content: bytes) -> int:
    """The functions that its symbol table names, each of which begins as functions do."""
    file = ELFFile(io.BytesIO(content))
    text, table = (file.get_section_by_name(name) for name in (".text", ".symtab"))
    assert text is not None
    assert isinstance(table, SymbolTableSection)
    functions = [each for each in table.iter_symbols() if each["st_info"]["type"] == "STT_FUNC"]
    for each in functions:
        at = each["st_value"] - text["sh_addr"]
        assert text.data()[at : at + 4] == b"\x55\x48\x89\xe5"
    assert functions[-1].name == f"function_{len(functions) - 1}"
    return len(functions)


def of_temporal(content: bytes) -> int:
    """The words of one formula: each operator has two operands."""
    said = content.decode().split()
    missing = 1
    for word in said:
        missing += 1 if word in ("&", "U") else -1
    assert missing == 0
    return len(said)


def of_jpeg(content: bytes) -> int:
    """The blocks of its one scan, each of which its Huffman tables can read to its end."""
    at, tables, rows = 2, dict[int, dict[str, int]](), 0
    while content[at + 1] != 0xDA:
        marker, size = struct.unpack_from(">xBH", content, at)
        body = content[at + 4 : at + 2 + size]
        if marker == 0xC4:
            bits = next(each for each in range(1, 17) if body[each])
            codes = (f"{code:0{bits}b}" for code in range(body[bits]))
            tables[body[0]] = dict(zip(codes, body[17:], strict=True))
        elif marker == 0xC0:
            rows = struct.unpack_from(">H", body, 1)[0] // 8
        at += 2 + size
    assert content.endswith(b"\xff\xd9")
    scans = re.split(rb"\xff[\xd0-\xd7]", content[at + 10 : -2])
    assert len(scans) == rows
    return sum(jpeg_blocks(scan.replace(b"\xff\0", b"\xff"), tables) for scan in scans)


def jpeg_blocks(scan: bytes, tables: dict[int, dict[str, int]]) -> int:
    bits = "".join(f"{each:08b}" for each in scan)
    at = blocks = 0

    def symbol(table: int) -> int:
        nonlocal at
        length = len(next(iter(tables[table])))
        found = tables[table][bits[at : at + length]]
        at += length + (found & 15)
        return found

    while len(bits) - at >= 8 or "0" in bits[at:]:
        symbol(0x00)
        coefficient = 1
        while found := symbol(0x10):
            coefficient += 1 + (found >> 4)
        assert coefficient <= 64
        blocks += 1
    return blocks


READERS: dict[str, Callable[[bytes], int]] = {
    "json": lambda content: len(json.loads(content)),
    "csv": lambda content: len(list(csv.reader(io.StringIO(content.decode())))),
    "toml": lambda content: len(tomllib.loads(content.decode())["item"]),
    "png": of_png,
    "wav": of_wav,
    "tar": of_tar,
    "hex": of_intel_hex,
    "srec": of_s_records,
    "ppm": of_picture,
    "pgm": of_picture,
    "bmp": of_bmp,
    "obj": of_obj,
    "mps": of_mps,
    "cnf": of_cnf,
    "gr": of_graph,
    "max": of_graph,
    "fastq": of_fastq,
    "elf": of_elf,
    "gif": of_gif,
    "jpg": of_jpeg,
    "pcap": of_pcap,
    "mid": of_midi,
    "eml": lambda content: content.count(b"\nMessage-ID: "),
    "gz": lambda content: len(gzip.decompress(content)),
    "bz2": lambda content: len(bz2.decompress(content)),
    "xz": lambda content: len(lzma.decompress(content)),
    "py": lambda content: len(compile(content, "made", "exec").co_names),
    **dict.fromkeys(
        ("xml", "svg", "plist"),
        lambda content: sum(1 for _ in ET.fromstring(content).iter()),  # noqa: S314
    ),
}


@pytest.mark.parametrize("suffix", READERS)
def test_a_made_file_is_what_its_name_says(suffix: str) -> None:
    assert READERS[suffix](made_content(suffix, 1)) >= 50


def test_a_formula_is_whole() -> None:
    assert of_temporal(made_content("ltl", 1)) == 15
    assert of_temporal(made_content("ltl", 3)) == 47


@pytest.mark.parametrize(
    ("suffix", "interpreter"),
    [("awk", ("awk", "-f")), ("sh", ("sh",)), ("py", (sys.executable,))],
)
def test_a_made_program_runs(tmp_path: Path, suffix: str, interpreter: tuple[str, ...]) -> None:
    file = tmp_path / f"made.{suffix}"
    file.write_bytes(made_content(suffix, 1))
    done = subprocess.run([*interpreter, file], check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("suffix", FORMATS)
def test_there_is_more_of_it_where_more_is_asked_for_and_always_the_same(suffix: str) -> None:
    once, more = made_content(suffix, 1), made_content(suffix, 2)
    assert made_content(suffix, 1) == once
    assert made_sample(suffix).size_bytes == len(once)
    assert len(more) > 1.8 * len(once)


def test_formats_are_those_that_a_text_names() -> None:
    def named(text: str) -> list[str]:
        return [each.made for each in made_samples(text, 9)]

    assert named("Usage: mesh [options] -i FILE.obj; also reads .stl files") == ["obj", "stl"]
    assert named("a disassembler; reads Intel HEX on its standard input") == ["hex"]
    assert named("objects, jsonnet, c, a. md5") == []
    assert named("compiles foo.c") == ["c"]
    assert len(made_samples("json xml csv", 2)) == 2


def test_a_program_may_be_called_like_what_it_reads() -> None:
    assert formats_of_name("jpegoptim") == ["jpg"]
    assert formats_of_name("optipng") == ["png"]
    assert formats_of_name("gif2png") == ["png", "gif"]
    assert formats_of_name("cat") == []


def test_large_files_are_made_of_formats_of_which_copies_are_no_file() -> None:
    assert [is_made_whole(each) for each in (".mps", ".json", ".txt", ".gz", ".emf", "")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_command_that_names_a_file_of_a_kind_that_the_tree_has_not_gets_a_made_one() -> None:
    shown = Shown(("-i", INPUT), suffix=".obj")
    found = list(shown_attempts(shown, Executable("mesh"), [], []))
    assert [each.sample and each.sample.made for each in found] == ["obj"]


def test_options_that_take_numbers_are_told_by_their_help() -> None:
    lines = ("  -n NUM  nodes", "  --rounds <int>, how often", " -o FILE", "  --size=N")
    said = "\n".join((*lines, " -h number", " -x numbers"))
    assert counted_of(said) == ["-n", "--rounds", "--size"]


def test_a_count_grows_as_a_sample_does() -> None:
    attempt = Attempt(Executable("make-graph"), ("-n", COUNT), count=1000)
    assert attempt.command == ("{artifact}", "-n", "1000")
    larger = attempt.times(40)
    assert larger is not None
    assert larger.command == ("{artifact}", "-n", "40000")
