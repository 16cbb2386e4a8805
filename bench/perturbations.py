"""Builds of harmless edits, and draws of each way to move a program's code, data, stack or heap."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from elftools.elf.elffile import ELFFile

from edited_programs import KEEP, Program, edit, run
from ensign.builders.layouts import (
    LinkCommand,
    Relinks,
    link_call,
    link_of,
    relink,
    shuffles,
)
from ensign.builders.link_members import (
    RelinkContext,
    build_archives,
    linked,
    same_program,
    with_named_members,
)
from ensign.builders.relink import make_relinks
from ensign.host.processes import Outcome
from ensign.meter.questions import calls_of
from ensign.model.calls import AskedCall
from ensign.proof.link import TreePlace
from ensign.proof.loaded_bytes import read_artifact
from tools import ENSIGN

_METER = ENSIGN.with_name("ensign-meter")
# Which sections are padded: before the first object, before each or before one, by up to `most`
# steps. One is what an edit does: what lies behind it moves.
_PADS = {
    "padding": ((".text",), 16, 256, "first"),
    "one object": ((".text",), 16, 256, "one"),
    "within lines": ((".text",), 16, 4, "each"),
    "lines": ((".text",), 64, 64, "each"),
    "pages": ((".text",), 4096, 16, "each"),
    "data": ((".rodata", ".data", ".bss"), 16, 256, "each"),
}
_FLAGS = {".text": "axR", ".rodata": "aR", ".data": "awR", ".bss": "awR"}
_CLASSES = (".text.unlikely", ".text.hot", ".text.startup", ".text.exit", ".text.sorted")
_BY_ENSIGN = ("order and padding", "order and padding of functions")
KINDS = (*_BY_ENSIGN, *_PADS, "functions", "environment", "heap", "copies")
_HEAP = """#include <stdlib.h>
__attribute__((constructor)) static void shift(void) {
    const char *size = getenv("HEAP_SHIFT");
    volatile char *kept = malloc(size ? strtoul(size, 0, 10) : 16);
    if (kept) *kept = 1;
}
"""


@dataclass(frozen=True)
class Draw:
    """A program in a folder, with words for env; `neutral` are those of the natural link."""

    folder: Path
    environment: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()


def natural_build(folder: Path, tree: Path, program: Program, flags: str = "-O2") -> Path:
    """A copy of its tree, built; with other flags another one."""
    name = "natural" if flags == "-O2" else "sections"
    built = folder / "built" / program.name / name
    if not built.exists():
        part = built.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(tree, part, symlinks=True)
        keep = folder / "keep"
        keep.write_text(KEEP)
        keep.chmod(0o755)
        run(("make", "-j2", "program", f"CFLAGS={flags}", f"RUSTFLAGS=-Clinker={keep}"), part)
        part.rename(built)
        words = built / "kept/words"
        if words.exists():
            words.write_text(words.read_text().replace(str(part), str(built)))
    return built


def edited(program: Program, tree: Path, _kind: str, place: Path, count: int) -> list[Draw]:
    """The program after so many edits, each of the natural tree."""

    def make(number: int) -> Draw:
        target = place / f"{number:02}"
        if not target.exists():
            part = place / f"part-{number}"
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(tree, part, symlinks=True)
            edit(program, part, number)
            run(("make", "program"), part)
            _keep(program, part, target)
            shutil.rmtree(part)
        return Draw(target)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(make, range(count)))


def drawn(program: Program, tree: Path, kind: str, place: Path, count: int) -> list[Draw]:
    """Draws of one kind, fewer where links cannot be told apart."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if kind in _BY_ENSIGN:
        built = _of_sections(program, tree) if "functions" in kind else tree
        return _by_ensign(program, built, place, count)
    if kind in _PADS:
        return _padded(program, tree, kind, place, count)
    if kind == "functions":
        return _functions(program, tree, place, count)
    rng = random.Random(f"{program.name} {kind}")
    if kind == "environment":
        return [Draw(tree, (f"PADDING={'x' * rng.randrange(4096)}",)) for _ in range(count)]
    if kind == "heap":
        (place / "heap.c").write_text(_HEAP)
        run(("gcc", "-O2", "-shared", "-fPIC", "-o", "heap.so", "heap.c"), place)
        words = (f"LD_PRELOAD={place}/heap.so", "HEAP_SHIFT=")
        sizes = [16 * rng.randrange(1, 4096) for _ in range(count)]
        return [
            Draw(tree, (words[0], f"{words[1]}{size}"), (words[0], f"{words[1]}16"))
            for size in sizes
        ]
    targets = [place / f"{number:02}" for number in range(count)]
    for target in targets:
        _keep(program, tree, target)
    return [Draw(target) for target in targets]


def _keep(program: Program, tree: Path, target: Path) -> None:
    part = target.with_suffix(".kept")
    part.mkdir(parents=True, exist_ok=True)
    for name in program.made:
        shutil.copy2(tree / name, part / name)
    part.rename(target)


def _context(program: Program, tree: Path, place: Path) -> RelinkContext:
    def done(argv: tuple[str, ...], _limit_ns: int | None) -> Outcome:
        ended = subprocess.run(argv, cwd=tree, capture_output=True, check=False)
        return Outcome(ended.returncode, None, "exited")

    asked = [AskedCall("cc", program.link(tree, name), str(tree)) for name in program.made]
    scratch = place / "scratch"
    return RelinkContext(
        done, calls_of(_METER, asked), TreePlace(tree, str(tree)), (scratch, str(scratch)),
        program.made, os.environ["PATH"],
    )  # fmt: skip


def _by_ensign(program: Program, tree: Path, place: Path, count: int) -> list[Draw]:
    """As a study relinks it."""
    asked = Relinks("order", tuple(range(1, count + 1)), gcc=True, profiled=False)
    made = make_relinks(asked, _context(program, tree, place), place)
    if made.obstacles or made.notes:
        print(f"{program.name}: {made.obstacles} {made.notes}")
    return [Draw(place / str(number)) for number in range(len(made.hashes))]


@dataclass(frozen=True)
class _Linkable:
    """The link of one file with members of archives as objects."""

    name: str
    link: LinkCommand
    context: RelinkContext

    def made(self, before: Mapping[int, Sequence[str]], target: Path) -> None:
        """Link into a folder, with these words before each object, counted from 0."""
        target.mkdir(parents=True, exist_ok=True)
        units = {at: number for number, at in enumerate(self.link.unit_places)}
        words = [
            each
            for at, word in enumerate(self.link.words)
            for each in (*(before.get(units[at], ()) if at in units else ()), word)
        ]
        output = str(target / self.name)
        run((self.link.program, *words, "-o", output), Path(self.link.cwd))


def _linkables(program: Program, tree: Path, place: Path) -> list[_Linkable]:
    context = _context(program, tree, place)
    found = []
    for number, name in enumerate(program.made):
        own = context.of(number)
        call = link_call(own.calls, f"{tree}/{name}", "")
        assert call is not None
        link = link_of(call)
        first = linked(link, own)
        assert same_program(first.artifact, read_artifact(tree / name)), name
        named = with_named_members(link, build_archives(call, own.place), first, own)
        found.append(_Linkable(name, named.link, own))
    return found


def _padded(program: Program, tree: Path, kind: str, place: Path, count: int) -> list[Draw]:
    sections, step, most, where = _PADS[kind]
    pads = [
        [_pad(place, section, step << bit) for bit in range((most - 1).bit_length())]
        for section in sections
    ]
    linkables = _linkables(program, tree, place)
    units = [(one, unit) for one in linkables for unit in range(len(one.link.unit_places))]

    def some(rng: random.Random) -> list[str]:
        chosen = [rng.randrange(most) for _ in pads]
        return [
            pad
            for sizes, steps in zip(pads, chosen, strict=True)
            for bit, pad in enumerate(sizes)
            if steps >> bit & 1
        ]

    draws = []
    for number in range(count):
        target = place / f"{number:02}"
        rng = random.Random(f"{program.name} {kind} {number}")
        firsts = [each for each in units if each[1] == 0]
        padded = {"each": units, "first": firsts, "one": [rng.choice(units)]}[where]
        words = [(one, unit, some(rng)) for one, unit in padded]
        for each in linkables:
            each.made({unit: own for one, unit, own in words if one is each}, target)
        draws.append(Draw(target))
    return draws


def _pad(place: Path, section: str, size: int) -> str:
    """An object that is padding alone, which no linker leaves out."""
    path = place / f"pad{section}-{size}.s"
    kind, fill = ("@nobits", "0") if section == ".bss" else ("@progbits", "0x90")
    flags = _FLAGS[section]
    skip = f".zero {size}" if section == ".bss" else f".skip {size}, {fill}"
    path.write_text(f'.section {section}.padding,"{flags}",{kind}\n{skip}\n'
                    '.section .note.GNU-stack,"",@progbits\n')  # fmt: skip
    run(("as", "-o", str(path.with_suffix(".o")), str(path)), place)
    return str(path.with_suffix(".o"))


def _functions(program: Program, tree: Path, place: Path, count: int) -> list[Draw]:
    """Each function anew: sections with names that ld's script sorts."""
    if program.where == "crate":
        return _functions_by_lld(program, tree, place, count)
    linkables = _linkables(program, _of_sections(program, tree), place)
    draws = []
    for number in range(count):
        rng = random.Random(f"{program.name} functions {number}")
        for each in linkables:
            words, scratch = list(each.link.words), each.context.scratch[0]
            for at in each.link.unit_places:
                moved = scratch / f"moved-{at}.o"
                _shuffled(each.context.place.find(words[at], each.link.cwd), moved, rng)
                words[at] = str(moved)
            laid = replace(each, link=replace(each.link, words=tuple(words)))
            laid.made({}, place / f"{number:02}")
        draws.append(Draw(place / f"{number:02}"))
    return draws


def _of_sections(program: Program, tree: Path) -> Path:
    """The tree built with a section for each function, as rustc does by itself."""
    own = tree.parents[2]
    flags = "-O2" if program.where == "crate" else "-O2 -ffunction-sections"
    return natural_build(own, own / "trees" / program.name, program, flags)


def _functions_by_lld(program: Program, tree: Path, place: Path, count: int) -> list[Draw]:
    """As a study shuffles what lld links; rustc brings one."""
    (one,) = _linkables(program, tree, place)
    draws = []
    for seed in range(1, count + 1):
        asked = Relinks("shuffle", (seed,), gcc=True, profiled=False)
        assert shuffles(one.link, asked)
        target = place / f"{seed:02}"
        target.mkdir()
        run(relink(one.link, asked, seed, str(target / one.name), ()), tree)
        draws.append(Draw(target))
    return draws


def _shuffled(path: Path, target: Path, rng: random.Random) -> None:
    with path.open("rb") as stream:
        names = sorted(
            section.name
            for section in ELFFile(stream).iter_sections()
            if section.name.startswith(".text.") and not section.name.startswith(_CLASSES)
        )
    renamed = (f"{name}=.text.sorted.{rng.randrange(10**9):09}" for name in dict.fromkeys(names))
    words = [word for each in renamed for word in ("--rename-section", each)]
    run(("objcopy", *words, str(path), str(target)), target.parent)
