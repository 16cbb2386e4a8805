"""Formats of bytes: pictures, sound, meshes, memory images, archives. Pure."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import wave
import zlib
from collections.abc import Callable, Iterator
from itertools import islice

from ensign.tools.init.formats.format import Format, Make, lines, numbers, prose, ratio, words

_ROW_BYTES = 16
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


def binary_formats() -> Iterator[Format]:
    """Those that programs read."""
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
    yield Format(("stl",), lines(_solid, "solid made\n", "endsolid made\n"))
    yield Format(("ppm", "pnm"), _ppm, 20_000)
    yield Format(("pgm",), _pgm, 40_000)
    yield Format(("bmp",), _bmp, 20_000)
    yield Format(("jpg", "jpeg"), jpeg, 64)
    yield Format(("png",), _png, 20_000)
    yield Format(("wav", "wave"), _wav, 40_000)
    yield Format(("hex", "ihex", "intel hex"), _intel_hex)
    yield Format(("srec", "s19", "s-record"), _s_records)
    yield Format(("bin", "binary file", "raw"), _bytes, 64 << 10)
    yield Format(("tar",), _tar)
    yield Format(("gz", "gzip"), _packed(lambda content: gzip.compress(content, 1, mtime=0)))
    yield Format(("bz2", "bzip2"), _packed(bz2.compress))
    yield Format(("xz", "lzma"), _packed(lambda content: lzma.compress(content, preset=0)))
    yield Format(("elf", "object files", "executables and libraries"), _elf)
    yield Format(("gif",), _gif, 20_000)
    yield Format(("au", "sun audio"), _au, 40_000)
    yield Format(("mid", "midi"), _midi)
    yield Format(("pcap", "tcpdump"), _pcap)


def _mesh(record: Callable[[int, int, float], str], face: Callable[[int, int], str]) -> Make:
    """A wavy surface: a square of points, and two triangles for each of its cells."""

    def make(records: int) -> bytes:
        side = max(2, int(records**0.5))
        heights = (ratio(each) for each in numbers())
        points = [
            record(row, column, next(heights)) for row in range(side) for column in range(side)
        ]
        cells = [
            face(row * side + column, side) for row in range(side - 1) for column in range(side - 1)
        ]
        return ("".join(points) + "".join(cells)).encode()

    return make


def _solid(at: int, number: int) -> str:
    x, z = float(at % 100), ratio(number)
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
    for each in numbers():
        part = struct.pack("<I", each) if each % 3 else words(3, each).encode()
        parts.append(part)
        size += len(part)
        if size >= count:
            break
    return b"".join(parts)[:count]


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
    noise = numbers()
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
    noise = numbers()
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
        for at, number in enumerate(islice(numbers(), max(1, records // 20))):
            content = words(200, number).encode()
            member = tarfile.TarInfo(f"folder/{at}.txt")
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _packed(pack: Callable[[bytes], bytes]) -> Make:
    return lambda records: pack(lines(prose)(records))


_CLEARED = 126


def _gif(records: int) -> bytes:
    """128 grays, 8 bits for each code: the table is cleared before codes would grow."""
    side, pixels = _pixels(records)
    grays = bytes(each >> 1 for each in pixels[::3])
    runs = (grays[at : at + _CLEARED] for at in range(0, len(grays), _CLEARED))
    codes = b"".join(b"\x80" + run for run in runs) + b"\x81"
    blocks = (codes[at : at + 255] for at in range(0, len(codes), 255))
    table = bytes(each * 2 for each in range(128) for _ in range(3))
    head = b"GIF87a" + struct.pack("<HHBBB", side, side, 0xF6, 0, 0) + table
    image = b"," + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x07"
    return head + image + b"".join(bytes((len(each),)) + each for each in blocks) + b"\0;"


def _au(records: int) -> bytes:
    """One channel of 16 bits at 8 kHz."""
    samples = (at * 200 % 20000 - 10000 + each % 4000 for at, each in enumerate(numbers()))
    content = b"".join(struct.pack(">h", each) for each in islice(samples, records))
    return struct.pack(">4sIIIII", b".snd", 24, len(content), 3, 8000, 1) + content


def _midi(records: int) -> bytes:
    """One track of so many notes."""
    notes = (each % 48 + 36 for each in islice(numbers(), records))
    events = b"".join(bytes((0, 0x90, note, 64, 48, 0x80, note, 0)) for note in notes)
    track = events + b"\0\xff\x2f\0"
    head = struct.pack(">4sIHHH", b"MThd", 6, 0, 1, 96)
    return head + struct.pack(">4sI", b"MTrk", len(track)) + track


def _pcap(records: int) -> bytes:
    """UDP over IPv4 over Ethernet, from one address to a hundred."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for at, number in enumerate(islice(numbers(), records)):
        content = words(10, number).encode()
        udp = struct.pack(">HHHH", 1024 + number % 999, 53, 8 + len(content), 0) + content
        fields = (
            0x45,
            0,
            20 + len(udp),
            at & 0xFFFF,
            0,
            64,
            17,
            0,
            0x0A000001,
            0x0A000100 + number % 99,
        )
        ip = struct.pack(">BBHHHBBHII", *fields)
        total = sum(struct.unpack(">10H", ip))
        checksum = ~(total % 0xFFFF) & 0xFFFF
        frame = bytes(12) + b"\x08\0" + ip[:10] + struct.pack(">H", checksum) + ip[12:] + udp
        parts.append(struct.pack("<IIII", at, number % 10**6, len(frame), len(frame)) + frame)
    return b"".join(parts)


_BASE, _TEXT_AT = 0x400000, 0x80


def _elf(records: int) -> bytes:
    """A program of x86-64 with so many functions of 16 bytes, and their symbols."""
    drawn = list(islice(numbers(), records))
    text = b"".join(
        # push %rbp; mov %rsp,%rbp; lea N(%rdi),%eax; pop %rbp; ret; nop
        b"\x55\x48\x89\xe5\x8d\x87" + struct.pack("<I", each) + b"\x5d\xc3\x0f\x1f\x40\0"
        for each in drawn
    )
    names = b"\0" + b"".join(f"function_{at}".encode() + b"\0" for at in range(records))
    rows, name_at = [bytes(24)], 1
    for at in range(records):
        address = _BASE + _TEXT_AT + 16 * at
        rows.append(struct.pack("<IBBHQQ", name_at, 0x12, 0, 1, address, 16))
        name_at += len(f"function_{at}") + 1
    symbols = b"".join(rows)
    of_sections = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    parts = (text, symbols, names, of_sections)
    places = [_TEXT_AT + sum(map(len, parts[:at])) for at in range(len(parts))]
    # Name, type, flags, address, place, size, link, info, alignment, size of an entry.
    sections = (
        (0,) * 10,
        (1, 1, 6, _BASE + _TEXT_AT, places[0], len(text), 0, 0, 16, 0),
        (7, 2, 0, 0, places[1], len(symbols), 3, 1, 8, 24),
        (15, 3, 0, 0, places[2], len(names), 0, 0, 1, 0),
        (23, 3, 0, 0, places[3], len(of_sections), 0, 0, 1, 0),
    )
    body = b"".join(parts)
    body += bytes(-len(body) % 8)
    table_at = _TEXT_AT + len(body)
    loaded = _TEXT_AT + len(text)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, _BASE + _TEXT_AT, 64, table_at, 0,
        64, 56, 1, 64, len(sections), 4,
    )  # fmt: skip
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, loaded, loaded, 0x1000)
    start = (head + segment).ljust(_TEXT_AT, b"\0")
    return start + body + b"".join(struct.pack("<IIQQQQIIQQ", *each) for each in sections)


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
